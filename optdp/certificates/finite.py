"""The dual of the kernel program on a finite alphabet: the same inequality as `optdp.certificates.kernel`, output by output.

With multipliers lam_i >= 0 of the losses and nu_i of the masses, r_ij = lam_i L_ij - nu_i, and g_j = sum_i r_ij + (E - 1)
sum_i min(r_ij, 0), every eps-LDP mechanism has worst-case loss (average loss, if lam is the prior) at least

    ( sum_i nu_i + min(0, min_j g_j) ) / sum_i lam_i.

All of it is rational but e^eps, which enters through a rational above it.
"""

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np

from optdp.certificates.base import Bound, Certificate
from optdp.exact import Within, dyadic, enclosures, require, work
from optdp.problem import LDP, Alphabet, Average, Problem, WorstCase

#: Multipliers are at most this large, and loss matrices have at most this many entries: a proof takes a bounded time.
LARGEST, ENTRIES = 2.0**1023, 2_000_000


@dataclass(frozen=True)
class Weighted(Certificate):
    """Multipliers of the losses of each symbol: `weights`, or none where the bound is about an average."""

    weights: Annotated[tuple[float, ...], Within(0.0, LARGEST, most=ENTRIES)]

    def _weights(self, objective: WorstCase | Average, domain: Alphabet) -> list[Fraction]:
        """The exact weight of each symbol."""
        if isinstance(objective, WorstCase):
            if len(self.weights) != len(domain) or not sum(self.weights) > 0:
                self._refuse("a worst case needs a weight for each symbol, not all of them 0")
            return [Fraction(w) for w in self.weights]
        if self.weights:
            self._refuse("it is for a worst case: for an average, the problem's own prior gives the weights")
        if isinstance(objective.prior, str):  # "uniform"
            return [Fraction(1, len(domain))] * len(domain)
        lam = [Fraction(0)] * len(domain)
        for i, p in zip(domain.index(list(objective.prior.categories)).tolist(), objective.prior.exact, strict=True):
            lam[i] = p
        return lam


@dataclass(frozen=True)
class FiniteCertificate(Weighted):
    """Multipliers that bound every mechanism on a finite alphabet with the guarantee eps-LDP.

    **Arguments:** `weights`: lam_i, one for each symbol, or empty where the bound is about an average: then they are the
    probabilities of the problem's own prior; `masses`: nu_i, one for each symbol.

    **Proves** bounds for the worst case and for averages of losses given by a matrix, for every family.
    """

    tag = "finite"
    masses: Annotated[tuple[float, ...], Within(-LARGEST, LARGEST, most=ENTRIES)]

    def bound(self, problem: Problem) -> Bound:
        privacy, domain, objective = problem.privacy, problem.domain, problem.objective
        if not isinstance(privacy, LDP) or not enclosures.at_most(privacy.eps, require.MAX_EPS):
            self._refuse("it is for local differential privacy with eps at most 30")
        if not isinstance(objective, WorstCase | Average) or objective.loss.form != "matrix":
            self._refuse("it is for the worst case or the average of a loss given by a matrix")
        if not isinstance(domain, Alphabet) or len(objective.loss.rows) != len(domain):
            self._refuse("it is for an alphabet with a symbol for each row of the loss matrix")
        count = len(domain)
        if count * len(objective.loss.rows[0]) > ENTRIES:
            self._refuse(f"the loss matrix has more than {ENTRIES} entries")
        if len(self.masses) != count:
            self._refuse(f"it must have a mass for each of the {count} symbols")
        lam, growth = self._weights(objective, domain), enclosures.exp_above(privacy.eps) - 1
        size = max(map(work.words, objective.loss.rows)) + work.words(self.masses) + work.words(lam)
        work.count(
            objective.loss.array.size * (1.5 + 3 * work.product(size, 2) + work.product(size, work.words([growth])))
        )
        # All of it in integers over one denominator: r = L lam - nu, then g times the denominator of e^eps - 1.
        losses, loss_bits = dyadic.integers(objective.loss.array)
        masses, mass_bits = dyadic.integers(np.array(self.masses))
        common, bits = math.lcm(*(w.denominator for w in lam)), max(loss_bits, mass_bits)
        heights = np.array([int(w * common) << (bits - loss_bits) for w in lam], dtype=object)
        levels = masses * (common << (bits - mass_bits))
        r = losses * heights[:, None] - levels[:, None]
        prices = growth.denominator * r.sum(axis=0) + growth.numerator * np.minimum(r, 0).sum(axis=0)
        least = Fraction(min(0, *prices.tolist()), growth.denominator)
        value = enclosures.round_down((int(levels.sum()) + least) / (sum(lam) * (common << bits)))
        return Bound(max(0.0, value), "kernel dual, exact rationals")

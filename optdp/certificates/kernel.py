"""The dual of the kernel program: multipliers that bound every eps-LDP mechanism, whatever its outputs.

Inputs x_1..x_k in the domain (shares of its width: 0 is the lower end, 1 the upper), multipliers lam_i >= 0 of the loss
at x_i, nu_i of its mass, and mu_i of its mean where the mechanism must be unbiased. Put

    r_i(y) = lam_i L(|y - x_i|) - nu_i - mu_i (y - x_i),      g(y) = sum_i r_i(y) + (E - 1) sum_i min(r_i(y), 0).

An eps-LDP kernel K has a floor m(dy) = inf_x K(dy|x) with m <= K(.|x) <= E m. Its loss at the x_i, weighted by lam, is

    sum_i lam_i int L K(dy|x_i)  =  sum_i nu_i + sum_i int r_i(y) K(dy|x_i)  >=  sum_i nu_i + int g dm,

because K(dy|x_i) is at least m where r_i >= 0 and at most E m where r_i < 0. As m has mass at most 1, the worst-case
loss is at least

    ( sum_i nu_i + min(0, inf_y g(y)) ) / sum_i lam_i                                                          (*)

in units of width^q for L = d^q. With the probabilities of a prior as lam_i and its points as x_i, (*) bounds the average
loss under that prior. What has to be proven is a lower bound on g over all outputs. Cut their range at the
inputs into cells, and bisect these. On a cell with middle m each r_i is convex (q >= 1), so it lies above its tangent
T_i at m; sum T_i + (E - 1) sum min(T_i, 0) is concave, so its least value is at one of the two ends of the cell. For
q = 1 tangents are exact and the inputs are the only cuts needed. If outputs are unbounded, all r_i must be
nonnegative and pointing up at both ends of the range: by convexity, g >= 0 beyond it.

**Which outputs.** Where means are free, an output outside the domain is no better than the nearest end of it: moving all
such outputs there keeps the guarantee and loses nothing. So the range is that of the problem, pushed into the domain. Where
the mechanism must be unbiased and the mu_i are used, it is that of the problem, or the whole line.

For q = 1 and q = 2 this is integer arithmetic from end to end (a float is a dyadic rational; e^eps enters through a
rational above it); for other powers it is ball arithmetic.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from optdp.certificates.base import Bound, Certificate, Refusal
from optdp.exact import enclosures, require
from optdp.exact.fields import Within
from optdp.exact.numbers import Number
from optdp.problem.domains import Interval
from optdp.problem.objectives import Average, WorstCase
from optdp.problem.priors import Prior
from optdp.problem.privacy import LDP

if TYPE_CHECKING:
    from optdp.problem.problem import Problem

#: Cells narrower than this share of the domain are not bisected further.
FINEST = 2.0**-44
#: Multipliers are rounded to multiples of this.
GRAIN = 2.0**-62
#: Most inputs of a certificate, the largest size of a multiplier or of a reach, and the number of tangents (cells times
#: inputs) after which cells are not bisected further: a proof takes a bounded time, whatever it is asked to prove.
INPUTS, LARGEST, TANGENTS = 2048, 2.0**60, 2**22
#: Tangents that are held in memory at once.
CHUNK = 2**17


@dataclass(frozen=True)
class KernelCertificate(Certificate):
    """Multipliers for which (*) bounds every mechanism on an interval with the guarantee eps-LDP from below.

    **Arguments:**

    - `inputs`: the x_i as shares of the domain, in [0, 1]; `weights`: lam_i >= 0. Both are empty where the bound is about an
      average: points and probabilities are then those of the problem's own prior, in its order.
    - `masses`: nu_i; `means`: mu_i, which only unbiased mechanisms allow, or None.
    - `reach`: the range in shares outside of which all r_i point up; needed where outputs are unlimited and `means` are given.

    **Proves** bounds for the worst case and for averages under priors of finitely many points, losses |y - x|^q with q >= 1,
    every family, and outputs in any range.
    """

    tag = "kernel"
    inputs: Annotated[tuple[float, ...], Within(0.0, 1.0, most=INPUTS)]
    weights: Annotated[tuple[float, ...], Within(0.0, LARGEST, most=INPUTS)]
    masses: Annotated[tuple[float, ...], Within(-LARGEST, LARGEST, 1, INPUTS)]
    means: Annotated[tuple[float, ...] | None, Within(-LARGEST, LARGEST, most=INPUTS)] = None
    reach: Annotated[tuple[float, float] | None, Within(-LARGEST, LARGEST)] = None

    def bound(self, problem: Problem) -> Bound:
        privacy, domain, objective = problem.privacy, problem.domain, problem.objective
        if not isinstance(privacy, LDP) or not enclosures.at_most(privacy.eps, require.MAX_EPS):
            self._refuse("it is for local differential privacy with eps at most 30")
        if not isinstance(domain, Interval):
            self._refuse("it is for intervals")
        if not isinstance(objective, WorstCase | Average) or (objective.loss.exponent or 0.0) < 1:
            self._refuse("it is for the worst case or the average of a loss |y - x|^q with q >= 1")
        if self.means is not None and not problem.unbiased:
            self._refuse("it has multipliers of the means, which only unbiased mechanisms allow")
        x, lam = self._points(objective, domain)
        self._validate(len(x))
        dual = _Dual(privacy.eps, objective.loss.exponent, x, lam, self.masses, self.means)
        span = self._span(problem, domain, dual)
        least = dual.prove(dual.cells(span))
        share = (sum(map(Fraction, self.masses)) + min(Fraction(0), least)) / sum(lam)
        with ctx.workprec(enclosures.PRECISION):
            scale = enclosures.ball(domain.exact_width) ** enclosures.ball(objective.loss.exponent)
            value = max(0.0, enclosures.round_down(enclosures.ball(share) * scale))
        arithmetic = "integer" if dual.q in (1.0, 2.0) else "ball"
        return Bound(value, f"kernel dual at {len(x)} inputs, any outputs, {arithmetic} arithmetic")

    def _points(self, objective: WorstCase | Average, domain: Interval) -> tuple[list[Fraction], list[Fraction]]:
        """Exact inputs, as shares of the domain, and exact weights."""
        if isinstance(objective, WorstCase):
            sound = all(0 <= x <= 1 for x in self.inputs) and all(0 <= w <= LARGEST for w in self.weights)
            if not sound or len(self.inputs) != len(self.weights) or not sum(self.weights) > 0:
                self._refuse("a worst case needs inputs in [0, 1] and a weight >= 0 for each, not all of them 0")
            return list(map(Fraction, self.inputs)), list(map(Fraction, self.weights))
        if not isinstance(objective.prior, Prior):
            self._refuse("it is for priors of finitely many points")
        if self.inputs or self.weights:
            self._refuse("it is for a worst case: for an average, the problem's own prior gives inputs and weights")
        low = Fraction(domain.lower)
        return [(Fraction(p) - low) / domain.exact_width for p in objective.prior.categories], list(
            objective.prior.exact
        )

    def _validate(self, count: int) -> None:
        """Refuse what no proof should be run on."""
        sizes = {count, len(self.masses), count if self.means is None else len(self.means)}
        if len(sizes) != 1 or not 0 < count <= INPUTS:
            self._refuse(f"there must be a mass for each of 1 to {INPUTS} inputs, and a mean for each or for none")
        values = (*self.masses, *(self.means or ()), *(self.reach or ()))
        if not all(abs(v) <= LARGEST for v in values):
            self._refuse(f"multipliers must lie between -{LARGEST:g} and {LARGEST:g}")
        if self.reach is not None and not self.reach[0] < self.reach[1]:
            self._refuse("the reach must be a pair (lowest, highest) with lowest < highest")

    def _span(self, problem: Problem, domain: Interval, dual: _Dual) -> tuple[float, float]:
        """The shares of the domain within which outputs must be searched, rounded outwards."""
        low, high = Fraction(0), Fraction(1)
        if problem.outputs is not None:
            low, high = ((Fraction(end) - Fraction(domain.lower)) / domain.exact_width for end in problem.outputs)
        if self.means is None:
            low, high = (min(max(end, Fraction(0)), Fraction(1)) for end in (low, high))
        elif problem.outputs is None or max(abs(low), abs(high)) > LARGEST:
            if self.reach is None or not dual.points_up(self.reach):
                self._refuse("outputs are unlimited, and it does not close off those far away")
            return self.reach
        return enclosures.round_down(low), enclosures.round_up(high)


def certify(
    problem: Problem, inputs: ArrayLike, weights: ArrayLike, masses: ArrayLike, means: ArrayLike | None = None
) -> KernelCertificate:
    """The certificate for `problem` with these multipliers, rounded to multiples of 2^-62.

    **Arguments:** `inputs`, `weights`: of a worst case; for an average they are those of the problem's prior, and `masses` and
    `means` are in its order. Poor multipliers cost tightness, never validity.
    """
    mu = None if means is None or not problem.unbiased else tuple(_grain(means).tolist())
    nu = tuple(_grain(masses).tolist())
    made = KernelCertificate((), (), nu, mu)
    if not isinstance(problem.objective, Average):
        lam = np.maximum(_grain(weights), 0.0)
        if mu is not None:
            # Every input needs a weight, or its mean's multiplier drags g down without end.
            lam = _grain(lam + 1e-9 * lam.sum())
        made = replace(made, inputs=tuple(np.asarray(inputs, dtype=float).tolist()), weights=tuple(lam.tolist()))
    if mu is None:
        return made
    x, lam_exact = made._points(problem.objective, problem.domain)
    return replace(made, reach=_Dual(problem.eps, problem.loss.exponent, x, lam_exact, nu, mu).reach())  # type: ignore[arg-type]


def _grain(values: ArrayLike) -> np.ndarray:
    return np.round(np.asarray(values, dtype=float) / GRAIN) * GRAIN


class _Dual:
    """r_i and g for given multipliers: in floats to find the cells, exactly to prove them."""

    def __init__(
        self,
        eps: Number,
        q: float,
        x: list[Fraction],
        lam: list[Fraction],
        nu: Sequence[float],
        mu: Sequence[float] | None,
    ) -> None:
        self.eps, self.q, self.growth = eps, q, math.expm1(float(eps))
        self.exact = x, lam, list(map(Fraction, nu)), [Fraction(0)] * len(x) if mu is None else list(map(Fraction, mu))
        self.x, self.lam, self.nu, self.mu = (np.array([float(v) for v in values]) for values in self.exact)

    def _fold(self, r: np.ndarray) -> np.ndarray:
        """sum r + (E - 1) sum min(r, 0) along the last axis."""
        return np.asarray(r.sum(-1) + self.growth * np.minimum(r, 0.0).sum(-1))

    def values(self, y: np.ndarray) -> np.ndarray:
        """r_i(y_j) as an array (outputs, inputs)."""
        d = y[:, None] - self.x
        return np.asarray(self.lam * np.abs(d) ** self.q - self.nu - self.mu * d)

    def slopes(self, y: np.ndarray) -> np.ndarray:
        """r_i'(y_j) as an array (outputs, inputs)."""
        d = y[:, None] - self.x
        return np.asarray(self.lam * self.q * np.sign(d) * np.abs(d) ** (self.q - 1) - self.mu)

    def _bounds(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """For each cell, the lesser of the tangents' g at its two ends (floats)."""
        middle = (left + right) / 2
        r, slope, half = self.values(middle), self.slopes(middle), ((right - left) / 2)[:, None]
        return np.asarray(np.minimum(self._fold(r - slope * half), self._fold(r + slope * half)))

    def reach(self) -> tuple[float, float]:
        """A range beyond which all r_i are nonnegative (if doubling finds one)."""
        far = 1.0
        while far < 2.0**40 and not self.points_up((0.5 - far, 0.5 + far)):
            far *= 2
        return 0.5 - far, 0.5 + far

    def points_up(self, span: tuple[float, float]) -> bool:
        """Whether every r_i is >= 0 at both ends of `span` and does not decrease outwards: then g >= 0 beyond it.
        Exact for q = 2.
        """
        if self.q != 2:
            return False
        for end, side in zip(map(Fraction, span), (-1, 1), strict=True):
            for x, lam, nu, mu in zip(*self.exact, strict=True):
                d = end - x
                if lam * d * d - nu - mu * d < 0 or side * (2 * lam * d - mu) < 0:
                    return False
        return True

    def cells(self, span: tuple[float, float]) -> list[float]:
        """Ends of cells that cover `span`, fine enough for the tangents' bound to be within 1e-13 of the least g."""
        inner = self.x[(self.x > span[0]) & (self.x < span[1])]
        cuts = np.unique(np.concatenate([[span[0], span[1]], inner]))
        if self.q == 1 or cuts.size == 1:
            return [float(v) for v in (*cuts, *cuts)[: max(cuts.size, 2)]]
        scale = float(np.abs(self.nu).sum() + np.abs(self.mu).sum() + self.lam.sum())
        done: list[np.ndarray] = [cuts]
        left, right = cuts[:-1], cuts[1:]
        least = float(self._fold(self.values(cuts)).min())
        most = TANGENTS if self.q == 2 else TANGENTS // 16  # balls are slower than integers
        while left.size and sum(map(len, done)) * self.x.size < most:
            bound = self._bounds(left, right)
            open_ = (bound < min(0.0, least) - 1e-13 * scale) & (right - left > FINEST)
            left, right = left[open_], right[open_]
            middle = (left + right) / 2
            done.append(middle)
            if middle.size:
                least = min(least, float(self._fold(self.values(middle)).min()))
            left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        return [float(v) for v in np.unique(np.concatenate(done))]

    def prove(self, cuts: list[float]) -> Fraction:
        """An exact lower bound of g over [cuts[0], cuts[-1]], from the tangents on the cells between the cuts."""
        return self._prove_integers(cuts) if self.q in (1.0, 2.0) else self._prove_balls(cuts)

    def _prove_integers(self, cuts: list[float]) -> Fraction:
        # Points over one denominator s, multipliers over another, t; twice the numerators, so that middles are integers too.
        (x, *points), s = _integers([self.exact[0], *([Fraction(c)] for c in cuts)])
        (lam, nu, mu), t = _integers(self.exact[1:])
        ends, x, unit = 2 * np.concatenate(points), 2 * x, 2 * s
        growth, step = enclosures.exp_above(self.eps) - 1, max(1, CHUNK // x.size)
        least: Fraction | None = None
        for i in range(0, ends.size - 1, step):
            left, right = ends[i : i + step, None][: ends.size - 1 - i], ends[i + 1 : i + 1 + step, None]
            middle, half = (left + right) // 2, (right - left) // 2
            d = middle - x
            if self.q == 1:  # in units of 1/(2 s t)
                side = np.where(d >= 0, 1, -1).astype(object)
                r, slope = lam * np.abs(d) - nu * unit - mu * d, lam * side - mu
            else:  # in units of 1/(4 s^2 t)
                r, slope = lam * d * d - nu * unit**2 - mu * d * unit, 2 * lam * d - mu * unit
            tilt = slope * half
            found = min(_least(r - tilt, growth), _least(r + tilt, growth))
            least = found if least is None else min(least, found)
        assert least is not None
        return least / Fraction(unit ** int(self.q) * t)

    def _prove_balls(self, cuts: list[float]) -> Fraction:
        with ctx.workprec(enclosures.PRECISION):
            q, growth = enclosures.ball(self.q), enclosures.exp(self.eps) - 1
            x, lam, nu, mu = (np.array([enclosures.ball(v) for v in values], dtype=object) for values in self.exact)
            least: arb | None = None
            for a, b in pairwise(cuts):
                middle, half = (arb(a) + arb(b)) / 2, (arb(b) - arb(a)) / 2
                d = middle - x
                size = np.array([abs(v) ** (q - 1) for v in d], dtype=object)
                side = np.array([1 if v >= 0 else -1 if v <= 0 else arb(0, 1) for v in d], dtype=object)
                r, slope = lam * size * np.abs(d) - nu - mu * d, lam * q * side * size - mu
                for ends in (r - slope * half, r + slope * half):
                    g = sum(ends, arb(0)) + growth * sum((v.min(arb(0)) for v in ends), arb(0))
                    least = g if least is None else least.min(g)
            if least is None or not least.is_finite():
                raise Refusal("the kernel certificate proves nothing here: its reduced costs could not be enclosed")
            return enclosures.lower(least)


def _integers(lists: Sequence[list[Fraction]]) -> tuple[list[np.ndarray], int]:
    """Object arrays of exact integers and s with value = integer / s, the same s for all."""
    s = math.lcm(*{v.denominator for values in lists for v in values})
    return [np.array([v.numerator * (s // v.denominator) for v in values], dtype=object) for values in lists], s


def _least(r: np.ndarray, growth: Fraction) -> Fraction:
    """The least over rows of sum r + growth * sum min(r, 0), exactly."""
    scaled = growth.denominator * r.sum(axis=1) + growth.numerator * np.minimum(r, 0).sum(axis=1)
    return Fraction(min(scaled), growth.denominator)

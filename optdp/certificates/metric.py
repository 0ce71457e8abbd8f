"""The dual of the program over all kernels with metric privacy, for a matrix of losses.

Multipliers u_yij >= 0 of the inequalities K_iy <= E_ij K_jy, E_ij = e^(eps d(i, j)), and lam_i of the losses (the prior, for an
average) leave a problem for each input alone, whose rows are distributions. So every such mechanism has worst-case (average)
loss at least

    sum_x min_y [ lam_x L_xy + sum_j u_yxj - sum_i E_ix u_yix ] / sum_x lam_x.

Any multipliers prove something: there is nothing to be feasible for. All of it is rational but E, which enters through a
float above it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np

from optdp.certificates.base import Bound
from optdp.certificates.finite import ENTRIES, LARGEST, Weighted
from optdp.exact import Within, dyadic, enclosures, work
from optdp.problem import Alphabet, Average, MetricLDP, Problem, WorstCase

#: A certificate has at most this many multipliers.
FLOWS = 1_000_000


@dataclass(frozen=True)
class MetricCertificate(Weighted):
    """Multipliers that bound every mechanism on a finite alphabet with metric privacy.

    **Arguments:** `weights`: lam_i, one for each symbol, or empty where the bound is about an average; `outputs`,
    `highs`, `lows`, `flows`: y, i, j and u_yij of the inequalities whose multipliers are not 0.

    **Proves** bounds for the worst case and for averages of losses given by a matrix, for every family.
    """

    tag = "metric"
    outputs: Annotated[tuple[int, ...], Within(0, ENTRIES, most=FLOWS)] = ()
    highs: Annotated[tuple[int, ...], Within(0, ENTRIES, most=FLOWS)] = ()
    lows: Annotated[tuple[int, ...], Within(0, ENTRIES, most=FLOWS)] = ()
    flows: Annotated[tuple[float, ...], Within(0.0, LARGEST, most=FLOWS)] = ()

    def bound(self, problem: Problem) -> Bound:
        privacy, domain, objective = problem.privacy, problem.domain, problem.objective
        if not isinstance(privacy, MetricLDP) or not isinstance(domain, Alphabet):
            self._refuse("it is for metric privacy between the symbols of an alphabet")
        if not isinstance(objective, WorstCase | Average) or objective.loss.form != "matrix":
            self._refuse("it is for the worst case or the average of a loss given by a matrix")
        losses = objective.loss.array
        n, m = losses.shape
        if n != len(domain) or losses.size > ENTRIES:
            self._refuse(f"the loss matrix must have a row for each symbol and at most {ENTRIES} entries")
        y, i, j = (np.array(part, dtype=np.int64) for part in (self.outputs, self.highs, self.lows))
        flows = np.array(self.flows, dtype=float)
        if not y.size == i.size == j.size == flows.size:
            self._refuse("it must have an output, two symbols and a multiplier for each inequality")
        if y.size and (y.max() >= m or max(i.max(), j.max()) >= n):
            self._refuse("it is about outputs or symbols that there are not")
        lam = self._weights(objective, domain)
        size = max(map(work.words, objective.loss.rows)) + work.words(self.flows) + work.words(lam) + 20
        work.count((losses.size + 4 * y.size) * (1 + 2 * work.product(size)))
        above = self._above(privacy, n, i, j)
        # All of it in integers over one denominator.
        entries, loss_bits = dyadic.integers(losses)
        sent, sent_bits = dyadic.integers(flows)
        grown, grown_bits = dyadic.integers(above)
        common, bits = math.lcm(*(w.denominator for w in lam)), max(loss_bits, sent_bits + grown_bits)
        heights = np.array([int(w * common) << (bits - loss_bits) for w in lam], dtype=object)
        reduced = entries * heights[:, None]
        sent = sent * (common << (bits - sent_bits - grown_bits))
        np.add.at(reduced, (i, y), sent * (1 << grown_bits))
        np.subtract.at(reduced, (j, y), sent * grown)
        total = sum(min(row) for row in reduced.tolist())
        value = enclosures.round_down(Fraction(total, common << bits) / sum(lam))
        return Bound(max(0.0, value), "dual of the privacy inequalities, exact rationals")

    def _above(self, privacy: MetricLDP, n: int, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """Floats above e^(eps d) of these pairs."""
        first, second, _, above = privacy.factors
        place = np.full((n, n), -1, dtype=np.int64)
        place[first, second] = place[second, first] = np.arange(first.size)
        at = place[i, j]
        if (at < 0).any() or not np.isfinite(above[at]).all():
            self._refuse("it has multipliers of inequalities that the metric does not have")
        return np.asarray(above[at])


def certify(
    problem: Problem, weights: np.ndarray, rows: np.ndarray, flows: np.ndarray, share: float
) -> MetricCertificate:  # fmt: skip
    """The certificate with as few of the multipliers as cost no more than a `share` of the bound.

    **Arguments:** `weights`: lam; `rows`: (output, i, j) of each multiplier, pairs of the metric.
    """
    privacy: Any = problem.privacy
    losses = problem.loss.array
    n, m = losses.shape
    worst = isinstance(problem.objective, WorstCase)
    if worst:  # their unit is free: that in which none is too large
        unit = max(1.0, float(flows.max(initial=0.0)) / LARGEST)
        weights, flows = weights / unit, flows / unit
    weights = np.clip(weights, 0.0, LARGEST)
    known = np.full((n, n), np.nan)
    i, j, _, above = privacy.factors
    known[i, j] = known[j, i] = above
    fit = np.isfinite(known[rows[1], rows[2]]) & (flows > 0)
    rows, flows = rows[:, fit], flows[fit]
    grown = known[rows[1], rows[2]]

    @np.errstate(over="ignore", invalid="ignore")  # large losses: all multipliers are kept then
    def promised(kept: np.ndarray) -> float:
        y, a, b = rows[:, kept]
        paid = np.bincount(a * m + y, flows[kept], n * m) - np.bincount(b * m + y, (grown * flows)[kept], n * m)
        return float((weights[:, None] * losses + paid.reshape(n, m)).min(axis=1).sum())

    order = np.argsort(-flows, kind="stable")[:FLOWS]
    best, least = order, promised(order)
    for power in range(4, 31):  # from few to many
        few = order[flows[order] > flows.max(initial=0.0) * 2.0 ** -(1.5 * power)]
        if promised(few) >= least - share * abs(least):
            best = few
            break
    best = np.sort(best)
    y, a, b = rows[:, best].tolist()
    return MetricCertificate(
        tuple(weights.tolist()) if worst else (), tuple(y), tuple(a), tuple(b), tuple(np.clip(flows[best], 0.0, LARGEST).tolist())
    )  # fmt: skip

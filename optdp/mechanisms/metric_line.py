"""Metric privacy on an interval: distributions at the points of a grid, and mixtures of two neighbours in between.

Where k_i and k_(i+1) are the probabilities of an output at two grid points, k(x) between them is linear, so that
|k'(x)| = |k_(i+1) - k_i| / h <= eps min(k_i, k_(i+1)) <= eps k(x) if they differ by a factor of at most 1 + eps h: then log k
changes by at most eps |x - x'| from x to x', whatever the two. The mixture is drawn exactly, with a coin of probability
s = (x - x_i) / h for the rational number x.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import Check, Log, Seed, Within, as_rng, enclosures, number, work
from optdp.exact.rounding import TOTAL, Table
from optdp.exact.sampling import LIMB, tossed
from optdp.mechanisms.base import Mechanism
from optdp.problem import Apart, Interval, MetricLDP, Objective, Privacy, WorstCase, places


@dataclass(frozen=True, repr=False)
class MetricLineMechanism(Mechanism):
    """At the i-th of the evenly spaced points of an interval the j-th output with probability `weights[i][j] / 2^62`, and in
    between the mixture of the two nearest distributions by the distance from both.

    **Arguments:** `domain`: an `optdp.Interval`; `outputs`: different numbers; `table`: the weights, a row for each point.
    """

    exact = True
    domain: Interval
    outputs: Annotated[tuple[float, ...], Within(least=1, most=20_000)]
    table: Table = field(metadata={"saved": "weights"})

    def __post_init__(self) -> None:
        rows, columns = self.table.weights.shape
        if not isinstance(self.domain, Interval) or rows < 2 or columns != len(self.outputs):
            raise TypeError("weights are not allowed: there must be a row for each point, a column for each output")
        if len(set(self.outputs)) < len(self.outputs) or not np.isfinite(self.outputs).all():
            raise ValueError("outputs are not allowed: they must be different, finite numbers")

    @property
    def cells(self) -> int:
        """How many there are between the points."""
        return len(self.table.weights) - 1

    def _place(self, x: float) -> tuple[int, Fraction]:
        """The point below and the share of the next one."""
        at = (Fraction(x) - Fraction(self.domain.lower)) * self.cells / self.domain.exact_width
        low = min(int(at), self.cells - 1)
        return low, at - low

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, source = self.domain.check(x), as_rng(rng)
        found = [self._place(value) for value in inputs.reshape(-1).tolist()]
        rows = np.array([low for low, _ in found], dtype=np.int64)
        toss = source.integers(0, LIMB, size=rows.size)
        for k, (_, share) in enumerate(found):
            rows[k] += tossed(int(toss[k]), share, source)
        drawn = self.table.draw(rows, source)
        return np.asarray(np.array(self.outputs)[drawn].reshape(inputs.shape))

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        inputs = self.domain.check(x)
        at = np.clip((inputs - self.domain.lower) / self.domain.width * self.cells, 0, self.cells)
        low = np.minimum(at.astype(np.int64), self.cells - 1)
        column, share, rows = places(self.outputs, y), at - low, self.table.rows
        safe = np.maximum(column, 0)
        return np.where(column >= 0, (1 - share) * rows[low, safe] + share * rows[low + 1, safe], 0.0)

    def atoms(self) -> np.ndarray:
        return np.sort(np.array(self.outputs))

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        """The least and the largest output."""
        return min(self.outputs), max(self.outputs)

    def _kinks(self) -> list[float]:
        points = np.linspace(self.domain.lower, self.domain.upper, self.cells + 1).tolist()
        return sorted({*points, *self.outputs})

    def _slope(self) -> Fraction | None:
        """The largest relative slope of a probability, per unit of input; None if infinite."""
        largest = Fraction(0)
        for low, high in zip(self.table.weights[:-1].tolist(), self.table.weights[1:].tolist(), strict=True):
            for a, b in zip(low, high, strict=True):
                if a != b and min(a, b) == 0:
                    return None
                if a != b:
                    largest = max(largest, Fraction(abs(a - b), min(a, b)))
        return largest * self.cells / self.domain.exact_width

    def guarantee(self) -> MetricLDP | None:
        """Metric privacy with the largest relative slope."""
        slope = self._slope()
        return None if slope is None else MetricLDP(number(slope, "eps"), Apart())

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        if not isinstance(privacy, MetricLDP) or not isinstance(privacy.metric, Apart):
            return super().check_privacy(privacy)
        work.count(2.0 * self.table.weights.size)
        slope = self._slope()
        limit = below(privacy.eps)
        told = "probabilities change by at most eps times themselves per unit of input"
        shown = "infinitely much" if slope is None else f"{float(slope):.17g} times"
        kept = slope is not None and slope <= limit
        return [Check("privacy", kept, f"{told}: the most is {shown} (exact rational)"), self.table.check_mass()]

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """Between two points both expected losses lie below their chords, as the loss is convex: the mixture below a parabola."""
        if not isinstance(objective, WorstCase) or objective.loss.exponent not in (1, 2):
            return super().enclose(objective)
        power, step = int(objective.loss.exponent), self.domain.exact_width / self.cells
        work.count(12.0 * self.table.weights.size)
        points = [Fraction(self.domain.lower) + i * step for i in range(self.cells + 1)]
        outputs = [Fraction(y) for y in self.outputs]
        scale = math.lcm(*(v.denominator for v in [*points, *outputs]))
        x = np.array([int(v * scale) for v in points], dtype=object)
        y = np.array([int(v * scale) for v in outputs], dtype=object)
        losses = np.abs(np.subtract.outer(x, y)) ** power  # (points, outputs)
        weights = self.table.weights.astype(object)
        own = (weights * losses).sum(axis=1)
        ahead = (weights[:-1] * losses[1:]).sum(axis=1)  # the lower row at the upper point
        behind = (weights[1:] * losses[:-1]).sum(axis=1)
        best = max(own)
        for a, cross, c in zip(own[:-1], ahead + behind, own[1:], strict=True):
            # (1 - s)^2 a + s (1 - s) cross + s^2 c
            bend = a - cross + c
            if bend < 0 and 0 < (vertex := Fraction(2 * a - cross, 2 * bend)) < 1:
                best = max(best, a + (cross - 2 * a) * vertex + bend * vertex**2)
        units = TOTAL * scale**power
        return enclosures.round_down(Fraction(max(own), units)), enclosures.round_up(Fraction(best) / units)

    def __repr__(self) -> str:
        slope = self._slope()
        told = "no metric privacy" if slope is None else f"eps = {float(slope):.6g} per unit"
        return f"MetricLineMechanism on {self.domain}: {self.cells} cells, {len(self.outputs)} outputs; {told}"


def below(eps: Any) -> Fraction:
    """A rational that is at most eps."""
    if isinstance(eps, Log):
        return Fraction(enclosures.round_down(enclosures.ball(eps)))
    return Fraction(eps)

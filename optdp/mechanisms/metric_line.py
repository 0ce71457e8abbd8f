"""Metric privacy on an interval and a circle: distributions at the points of a grid, and mixtures of two neighbours in between.

Where k_i and k_(i+1) are the probabilities of an output at two grid points, k(x) between them is linear, so that
|k'(x)| = |k_(i+1) - k_i| / h <= eps min(k_i, k_(i+1)) <= eps k(x) if they differ by a factor of at most 1 + eps h: then log k
changes by at most eps |x - x'| from x to x', whatever the two. The mixture is drawn exactly, with a coin of probability
s = (x - x_i) / h for the rational number x.

On a circle the output's distribution turns with the input: at a point of the grid the turn by j steps has the probability w_j.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import Check, Log, Seed, Within, as_rng, enclosures, number, work
from optdp.exact.numbers import digits
from optdp.exact.rounding import TOTAL, Table
from optdp.exact.sampling import LIMB, Alias, tossed
from optdp.mechanisms.base import Mechanism
from optdp.problem import Apart, Circle, Interval, LossLike, MetricLDP, Objective, Privacy, WorstCase, places

#: Most steps of half a turn.
STEPS = 2**14
#: Weights sum to at most this.
MOST = 2**124


class GridMixture(Mechanism):
    """At each point of an even grid a distribution, and in between the mixture of the two nearest by the distance from both."""

    exact = True

    @property
    @abstractmethod
    def cells(self) -> int:
        """How many there are between the points."""

    @cached_property
    @abstractmethod
    def _slope(self) -> Fraction | None:
        """The largest relative slope of a probability, per unit of input; None if infinite."""

    def _drawn(self, x: np.ndarray, source: Any) -> np.ndarray:
        """For each input one of the two points next to it, with the probability that it is mixed with."""
        start, rate = Fraction(self.domain.lower), self.cells / self.domain.exact_width
        toss = source.integers(0, LIMB, size=x.size)
        points = np.zeros(x.size, dtype=np.int64)
        for k, value in enumerate(x.reshape(-1).tolist()):
            at = (Fraction(value) - start) * rate
            points[k] = int(at) + tossed(int(toss[k]), at - int(at), source)
        return points

    def _place(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The point below and the share of the next one, in floats."""
        at = np.clip((x - self.domain.lower) / self.domain.width * self.cells, 0, self.cells)
        low = np.minimum(at.astype(np.int64), self.cells - 1)
        return low, at - low

    def guarantee(self) -> MetricLDP | None:
        """Metric privacy with the largest relative slope."""
        return None if self._slope is None else MetricLDP(number(self._slope, "eps"), Apart())

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        if not isinstance(privacy, MetricLDP) or not isinstance(privacy.metric, Apart):
            return super().check_privacy(privacy)
        slope = self._slope
        told = "probabilities change by at most eps times themselves per unit of input"
        shown = "infinitely much" if slope is None else f"{digits(slope)} times"
        kept = slope is not None and enclosures.at_most(slope, privacy.eps) is True
        return [Check("privacy", kept, f"{told}: the most is {shown} (exact rational)")]

    def __repr__(self) -> str:
        slope = self._slope
        told = "no metric privacy" if slope is None else f"eps = {enclosures.rounded_up(slope, 6)} per unit"
        return f"{type(self).__name__} on {self.domain}: {self.cells} cells, {len(self.atoms())} outputs; {told}"


@dataclass(frozen=True, repr=False)
class MetricLineMechanism(GridMixture):
    """At the i-th of the evenly spaced points of an interval the j-th output with probability `weights[i][j] / 2^62`, and in
    between the mixture of the two nearest distributions by the distance from both.

    **Arguments:** `domain`: an `optdp.Interval`; `outputs`: different numbers; `table`: the weights, a row for each point.
    """

    domain: Interval
    outputs: Annotated[tuple[float, ...], Within(least=1, most=20_000)]
    table: Table = field(metadata={"saved": "weights"})

    def __post_init__(self) -> None:
        super().__post_init__()
        rows, columns = self.table.weights.shape
        if rows < 2 or columns != len(self.outputs):
            raise TypeError("weights are not allowed: there must be a row for each point, a column for each output")
        if len(set(self.outputs)) < len(self.outputs):
            raise ValueError("outputs are not allowed: they must be different")

    @property
    def cells(self) -> int:
        return len(self.table.weights) - 1

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, source = self.domain.check_exactly(x), as_rng(rng)
        drawn = self.table.draw(self._drawn(inputs, source), source)
        return np.asarray(np.array(self.outputs)[drawn].reshape(inputs.shape))

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        low, share = self._place(self.domain.check(x))
        column, rows = places(self.outputs, y), self.table.rows
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

    @cached_property
    def _slope(self) -> Fraction | None:
        work.count(2.0 * self.table.weights.size)
        top, bottom = 0, 1  # the largest so far: fractions of all of them take several times as long
        for low, high in zip(self.table.weights[:-1].tolist(), self.table.weights[1:].tolist(), strict=True):
            for a, b in zip(low, high, strict=True):
                if a != b and min(a, b) == 0:
                    return None
                if abs(a - b) * bottom > top * min(a, b):
                    top, bottom = abs(a - b), min(a, b)
        return Fraction(top, bottom) * self.cells / self.domain.exact_width

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        return [*super().check_privacy(privacy), self.table.check_mass()]

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """Between two points both expected losses lie below their chords, as the loss is convex: the mixture below a parabola.

        The lower end is attained at a float: an end of the interval, or the one next to the worst point of the grid.
        """
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
        units, near = TOTAL * scale**power, Fraction(enclosures.nearest(points[int(np.argmax(own))]))
        least = max(Fraction(max(own[0], own[-1]), units), self._loss_at(near, power))
        return enclosures.round_down(least), enclosures.round_up(Fraction(best) / units)

    def _loss_at(self, x: Fraction, power: int) -> Fraction:
        """E|Y - x|^power, exactly."""
        at = (x - Fraction(self.domain.lower)) * self.cells / self.domain.exact_width
        low = min(int(at), self.cells - 1)
        work.count(len(self.outputs) * work.rational(4 * work.words([x, *self.outputs])))
        found = [
            sum(int(w) * abs(Fraction(y) - x) ** power for w, y in zip(row, self.outputs, strict=True))
            for row in self.table.weights[low : low + 2].tolist()
        ]
        return (found[0] + (at - low) * (found[1] - found[0])) / TOTAL


@dataclass(frozen=True, repr=False)
class MetricCircleMechanism(GridMixture):
    """At a point of a grid of 2 m steps the outputs j steps away, on both sides, have probabilities proportional to `weights[j]`;
    in between the two nearest distributions are mixed by the distance from both.

    **Arguments:** `domain`: an `optdp.Circle`; `weights`: m + 1 positive integers, of the own place first, of the opposite one
    last.
    """

    domain: Circle
    weights: Annotated[tuple[int, ...], Within(1, MOST, 2, STEPS + 1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self._total > MOST:
            raise ValueError("weights are not allowed: with both sides they must sum to at most 2^124")

    @classmethod
    def private(cls, eps: Any, domain: Circle, steps: int) -> MetricCircleMechanism:
        """The narrowest one: weights fall by the factor 1 + eps h from step to step."""
        factor = 1 + below(eps) * domain.exact_width / (2 * steps)
        weights = [2**40 * math.ceil(1 / (factor - 1))]
        for _ in range(steps):
            weights.append(weights[-1] * factor.numerator // factor.denominator)
        return cls(domain, tuple(reversed(weights)))

    @property
    def steps(self) -> int:
        """Of the whole circle: an even number."""
        return 2 * (len(self.weights) - 1)

    cells = steps

    @cached_property
    def _total(self) -> int:
        return 2 * sum(self.weights) - self.weights[0] - self.weights[-1]

    @cached_property
    def _ring(self) -> list[int]:
        """The weight of each turn, 0, ..., 2 m - 1 steps."""
        return [*self.weights, *self.weights[-2:0:-1]]

    @cached_property
    def _outputs(self) -> np.ndarray:
        start, step = Fraction(self.domain.start), self.domain.exact_width / self.steps
        return np.minimum(np.array([float(start + k * step) for k in range(self.steps)]), self.domain.upper)

    @cached_property
    def _alias(self) -> Alias:
        return Alias([self._ring], self._total)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, source = self.domain.check_exactly(x), as_rng(rng)
        turns = self._drawn(inputs, source)
        turns += self._alias.draw(np.zeros(inputs.size, dtype=np.int64), source)
        return np.asarray(self._outputs[turns % self.steps].reshape(inputs.shape))

    def _place(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The point below and the share of the next one: start + period, as a float, may lie beyond the last point."""
        at = (x - self.domain.lower) / self.domain.width * self.steps
        low = at.astype(np.int64)
        return low, at - low

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        low, share = self._place(self.domain.check(x))
        # Where floats are coarse several points of the grid are written as one.
        outputs, starts = np.unique(self._outputs, return_index=True)
        column, low, share = np.broadcast_arrays(places(tuple(outputs.tolist()), y), low, share)
        found = np.empty(column.shape)
        for point in np.unique(low).tolist():
            some = low == point
            first, second = (np.add.reduceat(np.roll(self._chance, point + k), starts)[column[some]] for k in (0, 1))
            found[some] = (1 - share[some]) * first + share[some] * second
        return np.where(column >= 0, found, 0.0)

    def atoms(self) -> np.ndarray:
        return np.unique(self._outputs)

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        """The least and the largest output, as they are written."""
        return float(self._outputs.min()), float(self._outputs.max())

    @cached_property
    def _chance(self) -> np.ndarray:
        """The probability of each turn."""
        return np.array([w / self._total for w in self._ring])

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        inputs, law = self.domain.check(x), self._loss(loss)

        def one(place: float, low: int, share: float) -> float:
            apart = self.domain.distance(place, self._outputs) if law.form == "distance" else None
            losses = law.of(place, self._outputs) if apart is None else law(apart)
            return float(((1 - share) * np.roll(self._chance, low) + share * np.roll(self._chance, low + 1)) @ losses)

        different, back = np.unique(inputs, return_inverse=True)
        found = map(one, different.tolist(), *(part.tolist() for part in self._place(different)))
        return np.array(list(found))[back].reshape(inputs.shape)

    def _inputs(self, law: Any, shares: np.ndarray) -> np.ndarray:
        """Inputs at these shares of the first step, after which expected losses repeat: of the whole circle where they do not,
        as the loss is none of the arc, or outputs are moved to floats that are not dense in a step.
        """
        step, end = self.domain.period / self.steps, max(abs(self.domain.lower), abs(self.domain.upper))
        repeats = law.form == "distance" and np.spacing(end) <= 2.0**-24 * step
        inputs = self.domain.start + shares * (step if repeats else self.domain.period)
        return np.clip(inputs, self.domain.lower, self.domain.upper)

    def worst_input(self, loss: LossLike = "abs") -> Any:
        """The worst of 257 places in the first step, or in the circle."""
        inputs = self._inputs(self._loss(loss), np.linspace(0, 1, 257))
        return inputs[int(np.argmax(self.expected_loss(inputs, loss)))]

    def average_loss(self, loss: LossLike = "abs") -> float:
        """The mean over 256 places in the first step, or in the circle."""
        inputs = self._inputs(self._loss(loss), (np.arange(256) + 0.5) / 256)
        return float(self.expected_loss(inputs, loss).mean())

    @cached_property
    def _slope(self) -> Fraction:
        work.count(4.0 * len(self.weights))
        pairs = zip(self.weights[:-1], self.weights[1:], strict=True)
        return max(Fraction(abs(a - b), min(a, b)) for a, b in pairs) * self.steps / self.domain.exact_width

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """Between two points of the grid both expected losses lie below their chords, as arcs from a third are convex there:
        the mixture lies below a parabola. The numbers sent are the floats next to the points of the grid.
        """
        if not isinstance(objective, WorstCase) or objective.loss.exponent not in (1, 2):
            return super().enclose(objective)
        work.count(2.0 * self.steps)
        power, width = int(objective.loss.exponent), self.domain.exact_width
        ring, n = self._ring, self.steps
        losses = [min(k, n - k) ** power for k in range(n)]
        own = sum(w * v for w, v in zip(ring, losses, strict=True))
        beside = sum(w * (losses[k - 1] + losses[(k + 1) % n]) for k, w in enumerate(ring))
        # (1 - s)^2 own + s (1 - s) beside + s^2 own is largest at s = 1/2, or at the ends.
        best = max(Fraction(own), Fraction(2 * own + beside, 4))
        unit = (width / n) ** power / self._total
        start = Fraction(self.domain.start)
        moved = max(abs(Fraction(y) - start - k * width / n) for k, y in enumerate(self._outputs.tolist()))
        slack = moved * (1 if power == 1 else width)
        low, high = own * unit - slack, best * unit + slack
        return max(0.0, enclosures.round_down(low)), enclosures.round_up(high)


def below(eps: Any) -> Fraction:
    """A rational that is at most eps."""
    if isinstance(eps, Log):
        return Fraction(enclosures.round_down(enclosures.ball(eps)))
    return Fraction(eps)

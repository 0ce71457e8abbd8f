"""Metric privacy on a circle: one distribution of the turn from input to output, on a grid and mixed in between.

The output's distribution turns with the input: at a point of a grid the turn by j steps has the probability w_j. Between two
points it is the mixture of both by the distance, as in `optdp.mechanisms.metric_line`, and private for the same reason: if
neighbouring w differ by a factor of at most 1 + eps h, logarithms of probabilities change by at most eps per unit of arc.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import Check, Seed, Within, as_rng, enclosures, number, work
from optdp.exact.sampling import LIMB, Alias, tossed
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.metric_line import below
from optdp.problem import Apart, Circle, LossLike, MetricLDP, Objective, Privacy, WorstCase, places

#: Most steps of half a turn.
STEPS = 2**14
#: Weights sum to at most this.
MOST = 2**124


@dataclass(frozen=True, repr=False)
class MetricCircleMechanism(Mechanism):
    """At a point of a grid of 2 m steps the outputs j steps away, on both sides, have probabilities proportional to `weights[j]`;
    in between the two nearest distributions are mixed by the distance from both.

    **Arguments:** `domain`: an `optdp.Circle`; `weights`: m + 1 positive integers, of the own place first, of the opposite one
    last.
    """

    exact = True
    domain: Circle
    weights: Annotated[tuple[int, ...], Within(1, MOST, 2, STEPS + 1)]

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Circle):
            raise TypeError(f"domain = {self.domain!r} is not allowed: it must be an optdp.Circle")
        object.__setattr__(self, "weights", tuple(self.weights))
        if not 2 <= len(self.weights) <= STEPS + 1 or not all(isinstance(w, int) and w >= 1 for w in self.weights):
            raise ValueError(f"weights are not allowed: they must be 2 to {STEPS + 1} integers >= 1")
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
        inputs, source = self.domain.check(x), as_rng(rng)
        flat, turns = inputs.reshape(-1), np.zeros(inputs.size, dtype=np.int64)
        toss = source.integers(0, LIMB, size=flat.size)
        start, rate = Fraction(self.domain.start), self.steps / self.domain.exact_width
        for k, value in enumerate(flat.tolist()):
            at = (Fraction(value) - start) * rate
            low = int(at)
            turns[k] = low + tossed(int(toss[k]), at - low, source)
        turns += self._alias.draw(np.zeros(flat.size, dtype=np.int64), source)
        return np.asarray(self._outputs[turns % self.steps].reshape(inputs.shape))

    def _place(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The point below and the share of the next one, in floats."""
        at = np.clip((x - self.domain.start) / self.domain.period * self.steps, 0, self.steps)
        low = np.minimum(at.astype(np.int64), self.steps - 1)
        return low, at - low

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        low, share = self._place(self.domain.check(x))
        column = places(tuple(self._outputs.tolist()), y)
        chance = np.array([w / self._total for w in self._ring])
        first, second = (chance[(column - low - k) % self.steps] for k in (0, 1))
        return np.where(column >= 0, (1 - share) * first + share * second, 0.0)

    def atoms(self) -> np.ndarray:
        return np.unique(self._outputs)

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        """The least and the largest output, as they are written."""
        return float(self._outputs.min()), float(self._outputs.max())

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        """It depends on the place between two points of the grid alone."""
        inputs, law = self.domain.check(x), self._loss(loss)
        if law.form != "distance":
            return super().expected_loss(inputs, law)
        step, chance = self.domain.period / self.steps, np.array([w / self._total for w in self._ring])
        turn = np.arange(self.steps)

        def one(share: float) -> float:
            found = 0.0
            for part, ahead in ((1 - share, turn - share), (share, turn + 1 - share)):
                arc = np.mod(ahead, self.steps)
                found += part * float(chance @ law(step * np.minimum(arc, self.steps - arc)))
            return found

        shares, back = np.unique(self._place(inputs.reshape(-1))[1], return_inverse=True)
        return np.array([one(share) for share in shares.tolist()])[back].reshape(inputs.shape)

    def worst_input(self, loss: LossLike = "abs") -> Any:
        """The worst of 33 places in the first step."""
        inputs = self.domain.start + np.linspace(0, self.domain.period / self.steps, 33)
        return inputs[int(np.argmax(self.expected_loss(inputs, loss)))]

    def average_loss(self, loss: LossLike = "abs") -> float:
        """The mean over 32 places in the first step."""
        inputs = self.domain.start + (np.arange(32) + 0.5) / 32 * self.domain.period / self.steps
        return float(self.expected_loss(inputs, loss).mean())

    @cached_property
    def _slope(self) -> Fraction:
        """The largest relative slope of a probability, per unit of arc."""
        pairs = zip(self.weights[:-1], self.weights[1:], strict=True)
        return max(Fraction(abs(a - b), min(a, b)) for a, b in pairs) * self.steps / self.domain.exact_width

    def guarantee(self) -> MetricLDP:
        """Metric privacy with the largest relative slope."""
        return MetricLDP(number(self._slope, "eps"), Apart())

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        if not isinstance(privacy, MetricLDP) or not isinstance(privacy.metric, Apart):
            return super().check_privacy(privacy)
        work.count(4.0 * len(self.weights))
        kept = self._slope <= below(privacy.eps)
        told = "probabilities change by at most eps times themselves per unit of arc"
        return [Check("privacy", kept, f"{told}: the most is {float(self._slope):.17g} times (exact rational)")]

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

    def __repr__(self) -> str:
        return f"MetricCircleMechanism on {self.domain}: {self.steps} outputs; eps = {float(self._slope):.6g} per unit"

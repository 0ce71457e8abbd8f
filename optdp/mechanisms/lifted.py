"""Vectors of the unit ball as unit vectors with one coordinate more."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from optdp.closed_forms.vector import PRECISION, second
from optdp.exact import Check, Number, Seed, Within, as_rng, enclosures
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.cap import ROUNDING, CapMechanism
from optdp.mechanisms.unbiased_vectors import COINS, UnbiasedVectors
from optdp.problem import Ball, LossLike, Objective, WorstCase


@dataclass(frozen=True, repr=False)
class LiftedMechanism(UnbiasedVectors):
    """An unbiased mechanism for the unit ball of R^d: that for (x, sqrt(1 - |x|^2)) in R^(d + 1), without its last coordinate.

    The last coordinate h may be any number with |(x, h)| <= 1, as the mechanism on the ball of R^(d + 1) has the mean (x, h): a
    float a little below the root serves, and no bias comes of it.

    With the best cap the error is the same for all x: that of the sphere, but for a term that is small where d is large.

    **Arguments:** `domain`: the ball, an `optdp.Ball`; `whole`: a `CapMechanism` on the ball of one dimension more.
    """

    exact = True
    domain: Ball
    whole: Annotated[Any, Within(kind=Mechanism)]

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Ball) or not isinstance(self.whole, CapMechanism):
            raise TypeError("domain and whole are not allowed: they must be an optdp.Ball and a CapMechanism")
        if self.whole.domain != Ball(self.domain.dim + 1):
            raise ValueError(f"whole on {self.whole.domain} is not allowed: it must be on {Ball(self.domain.dim + 1)}")

    @classmethod
    def private(cls, eps: Number, domain: Ball) -> LiftedMechanism:
        """The eps-LDP mechanism with the best cap."""
        whole = CapMechanism.private(eps, Ball(domain.dim + 1))
        # The error is smaller than E|Y|^2 in R^(d + 1), for which the step is chosen.
        made = cls(domain, whole)
        low, high = (float(end) for end in made._ends[0])
        step = whole.step
        while low > 0 and (domain.dim + 1) * step**2 / 4 > high * ROUNDING:
            step /= 2
        return cls(domain, CapMechanism(whole.domain, whole.height, whole.coins, step))

    @property
    def _slack(self) -> float:
        """By how much 1 - |x|^2 is lowered before its root is taken: more than floats can be wrong."""
        return (self.dim + 8) * 2.0**-52

    @cached_property
    def _ends(self) -> tuple[tuple[Fraction, Fraction], tuple[Fraction, Fraction], Fraction]:
        """(low, high) around the error at x = 0 and at |x| = 1, but for rounding, and an upper bound on E|Y|^2 in R^(d + 1).

        Let q be the share of the last coordinate in (x, h)/|(x, h)|, squared. Then E[U_last^2] = m q + (1 - m)(1 - q)/d with
        m = E<u, (x, h)/|(x, h)|>^2: between the two ends the error is linear in q.
        """
        with ctx.workprec(PRECISION):
            inside = arb(self.whole.coins) / COINS
            m = second(self.dim + 1, arb(self.whole.height), inside)
            square = self.whole.square
            at_zero, at_one = square * (1 - m), square * (1 - (1 - m) / self.dim) - 1
            ends = [(enclosures.lower(end), enclosures.upper(end)) for end in (at_zero, at_one)]
            return ends[0], ends[1], enclosures.upper(square)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs = np.asarray(self.domain.check(x), dtype=float)
        rest = 1 - np.einsum("...i,...i->...", inputs, inputs) - self._slack
        last = np.sqrt(np.maximum(rest, 0.0))[..., None]
        return np.asarray(self.whole.randomize(np.concatenate([inputs, last], axis=-1), as_rng(rng))[..., :-1])

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        """(lowest, highest) value of a coordinate of Y."""
        return self.whole.support()

    def variance(self, x: ArrayLike) -> np.ndarray:
        """E|Y - x|^2."""
        inputs = self.mean(x)
        share = np.minimum(np.einsum("...i,...i->...", inputs, inputs), 1.0)
        (_, zero), (_, one), _ = self._ends
        return np.asarray(float(zero) * (1 - share) + float(one) * share)

    def worst_input(self, loss: LossLike = "squared") -> Any:
        """0 or a unit vector: the error is linear in |x|^2."""
        (_, zero), (_, one), _ = self._ends
        return np.eye(1, self.dim)[0] * (0.0 if zero >= one else 1.0)

    def average_loss(self, loss: LossLike = "squared") -> float:
        """The expected loss under the uniform distribution on the ball."""
        (_, zero), (_, one), _ = self._ends
        share = self.dim / (self.dim + 2)
        return float(zero) * (1 - share) + float(one) * share

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(low, high) around the largest error: the larger end, and for the upper one what floats and rounding can add."""
        if not isinstance(objective, WorstCase) or objective.loss.exponent != 2:
            return super().enclose(objective)
        (low, zero), (_, one), square = self._ends
        more = 4 * Fraction(self._slack) * (square + 1) + self.dim * Fraction(self.whole.step) ** 2 / 4
        return enclosures.round_down(low), enclosures.round_up(max(zero, one) + more)

    @property
    def _ratio(self) -> Fraction:
        """That of the mechanism in R^(d + 1)."""
        ratio: Fraction = self.whole._ratio
        return ratio

    def check_unbiased(self) -> Check:
        return Check("unbiased", True, "the mean in R^(d + 1) is (x, h), whatever h is")

    def __repr__(self) -> str:
        return f"LiftedMechanism on {self.domain}: all but the last coordinate of a {self.whole!r}"

"""Every coordinate of a vector by itself, with a share of epsilon."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from flint import ctx
from numpy.typing import ArrayLike

from optdp.exact import Check, Log, Number, Seed, Within, as_rng, enclosures
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.unbiased_vectors import Vectors
from optdp.problem import LDP, Ball, Box, Interval, LossLike, Objective, Privacy, WorstCase

#: Bits of powers of likelihood ratios.
DIGITS = 2**16


@dataclass(frozen=True, repr=False)
class ProductMechanism(Vectors):
    """All d coordinates of a vector of a cube, each by one mechanism for numbers: (d eps)-LDP if that one is eps-LDP.

    **Arguments:** `domain`: an `optdp.Box` with equal sides, or the unit ball of R^1; `part`: a mechanism on that side.
    """

    domain: Annotated[Any, Within(kind=Box | Ball)]
    part: Annotated[Any, Within(kind=Mechanism)]

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.domain, Ball) and self.domain.dim > 1:
            raise TypeError(f"domain = {self.domain!r} is not allowed: it must be an optdp.Box")
        sides = {Interval(-1.0, 1.0)} if isinstance(self.domain, Ball) else set(self.domain.sides)
        if not isinstance(self.part.domain, Interval) or sides != {self.part.domain}:
            raise ValueError(f"part on {self.part.domain} is not allowed: that must be every side of {self.domain}")

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """That of the part."""
        return self.part.exact

    def _inputs(self, x: ArrayLike) -> np.ndarray:
        return np.clip(np.asarray(self.domain.check(x), dtype=float), self.part.domain.lower, self.part.domain.upper)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        return np.asarray(self.part.randomize(self._inputs(x), as_rng(rng)))

    def support(self, x: ArrayLike | None = None) -> tuple[Any, Any]:
        """(lowest, highest) value of a coordinate of Y."""
        return self.part.support()

    def mean(self, x: ArrayLike) -> np.ndarray:
        return np.asarray(self.part.mean(self._inputs(x)))

    def variance(self, x: ArrayLike) -> np.ndarray:
        """The sum of the coordinates' variances."""
        return np.asarray(self.part.variance(self._inputs(x)).sum(axis=-1))

    def expected_loss(self, x: ArrayLike, loss: LossLike = "squared") -> np.ndarray:
        return np.asarray(self.part.expected_loss(self._inputs(x), self._squared(loss)).sum(axis=-1))

    def worst_input(self, loss: LossLike = "squared") -> Any:
        """The worst input of the part in every coordinate."""
        return np.full(self.dim, self.part.worst_input(loss))

    def worst_case_loss(self, loss: LossLike = "squared") -> float:
        return self.dim * self.part.worst_case_loss(loss)

    def average_loss(self, loss: LossLike = "squared") -> float:
        """Under the uniform distribution on the box."""
        return self.dim * self.part.average_loss(loss)

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """d times that of the part: the coordinates may be at their worst at once."""
        if not isinstance(objective, WorstCase) or objective.loss.exponent != 2:
            return super().enclose(objective)
        low, high = (self.dim * Fraction(end) for end in self.part.enclose(objective))
        return enclosures.round_down(low), enclosures.round_up(high)

    def guarantee(self) -> Privacy | None:
        return composed(self.part.guarantee(), self.dim)

    def satisfies(self, privacy: Privacy) -> bool | None:
        """As for every mechanism, but False only where the part has no better guarantee than it states."""
        return denied(super().satisfies(privacy), self.part)

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        """Whether all coordinates together keep epsilon, and whatever else there is to check of the part."""
        own = self.part.guarantee()
        rest = self.part.check_privacy(own) if isinstance(own, LDP) else []
        return super().check_privacy(privacy) + [check for check in rest if check.name != "privacy"]

    def check_unbiased(self) -> Check:
        return self.part.check_unbiased()

    def __repr__(self) -> str:
        return f"ProductMechanism on {self.domain}: each coordinate by {self.part!r}"


def composed(own: Privacy | None, times: int) -> LDP | None:
    """What so many answers with this guarantee have together; None if it is not LDP."""
    if not isinstance(own, LDP):
        return None
    eps: Number
    if not isinstance(own.eps, Log):
        eps = Fraction(own.eps) * times
    elif times * own.eps.argument.numerator.bit_length() <= DIGITS:
        eps = enclosures.log_of(own.eps.argument**times)
    else:  # a power of too many digits
        with ctx.workprec(256):
            eps = enclosures.upper(enclosures.ball(own.eps) * times)
    return LDP(eps, ideal=own.ideal)


def denied(answer: bool | None, *parts: Mechanism) -> bool | None:
    """The answer, but None for False where a part may have a better guarantee than it states: then so may all together."""

    def tight(part: Mechanism) -> bool:
        own = part.guarantee()
        return isinstance(own, LDP) and part.satisfies(replace(own, eps=float(own.eps) * (1 - 1e-9))) is False

    return None if answer is False and not all(map(tight, parts)) else answer


def share_of(eps: Number, parts: int) -> Number:
    """eps/parts, exactly, or a rational just below where that has no exact form."""
    if isinstance(eps, Log):
        with ctx.workprec(256):
            return enclosures.lower(enclosures.ball(eps) / parts)
    return Fraction(eps) / parts

"""What mechanisms for vectors have in common that prefer one part of their outputs by a coin, and are unbiased."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb
from numpy.typing import ArrayLike

from optdp.exact import Check, Log, Number, enclosures, require
from optdp.mechanisms.base import Mechanism
from optdp.problem import LDP, Box, LossLike, Privacy

#: Probabilities of coins are multiples of 2^-124.
COINS = 2**124
#: With fewer coins the ratio would be e^eps to less than seven digits, or more than it.
FEWEST = 2**24


def coins_below(eps: Number, share: arb, refused: str, whose: str) -> int:
    """The most coins for a part with this share of the outputs that e^eps allows: E W/(1 - W + E W) of them, rounded down.

    **Raises** ValueError for a share that so many coins cannot express; it begins with `refused`.
    """
    odds = enclosures.exp(eps) * share / (1 - share)
    coins = math.floor(enclosures.lower(odds / (1 + odds) * COINS))
    if not FEWEST <= coins < COINS:
        told = f"e^eps times {whose} share is {float(odds):.1e}, too {'small' if coins < FEWEST else 'large'}"
        raise ValueError(f"{refused}: {told} for {COINS} coins")
    return coins


def odds_above(coins: int, share: arb) -> Fraction:
    """An upper bound on the larger ratio of the densities of a part with this share and `coins`/2^124, and of the rest."""
    odds = arb(coins) / (COINS - coins) * (1 - share) / share
    return enclosures.upper(odds.max(1 / odds))


def power_of_two(step: float) -> float:
    """`step`, checked. **Raises** TypeError or ValueError."""
    found = require.real("step", step, low=2.0**-1000, high=2.0**1000)
    if math.frexp(found)[0] != 0.5:
        raise ValueError(f"step = {found!r} is not allowed: it must be a power of two")
    return found


def cubic(domain: Box) -> None:
    """**Raises** ValueError unless it is the cube."""
    if not domain.is_cube:
        told = "it must be the cube [-1, 1]^d, an optdp.Box.cube(d)"
        raise ValueError(f"domain = {domain} is not allowed: {told}")


class Vectors(Mechanism):
    """What mechanisms for vectors share whose squared error has a formula."""

    @property
    def dim(self) -> int:
        """The dimension."""
        return int(self.domain.dimension)

    def mean(self, x: ArrayLike) -> np.ndarray:
        """E[Y | x]: x as it is read, which on a sphere is its direction, and in a ball too where its norm is above 1."""
        return np.asarray(self.domain.as_read(x))

    def expected_loss(self, x: ArrayLike, loss: LossLike = "squared") -> np.ndarray:
        self._squared(loss)
        return self.variance(x)

    def _squared(self, loss: LossLike) -> Any:
        """The squared loss. **Raises** ValueError for another one."""
        law = self._loss(loss)
        if law.exponent != 2:
            raise ValueError("loss is not allowed here: it must be 'squared'")
        return law

    def worst_case_loss(self, loss: LossLike = "squared") -> float:
        return float(self.expected_loss(self.worst_input(loss), loss))


class UnbiasedVectors(Vectors):
    """An unbiased mechanism for vectors with two values of the density."""

    @property
    @abstractmethod
    def _ratio(self) -> Fraction:
        """An upper bound on their ratio."""

    def guarantee(self) -> LDP:
        return LDP(Log(self._ratio))

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        """The ratio of the densities of the preferred outputs and of the others, in ball arithmetic."""
        return [privacy.check(self._ratio)] if isinstance(privacy, LDP) else super().check_privacy(privacy)

"""Vectors of a cube as vectors of the ball around it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import Check, Seed, Within, as_rng, enclosures
from optdp.exact.lattice import dither
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.lifted import LiftedMechanism
from optdp.mechanisms.unbiased_vectors import UnbiasedVectors, cubic
from optdp.problem import Ball, Box, LossLike, Objective, WorstCase

#: Inputs are read as multiples of READ, and given to the mechanism of the ball as multiples of GRID: exact powers of two.
READ, GRID = Fraction(1, 2**52), Fraction(1, 2**40)
#: Significant bits of the scale at most: outputs are products of it, and must be floats.
BITS = 20


@dataclass(frozen=True, repr=False)
class ScaledMechanism(UnbiasedVectors):
    """An unbiased mechanism for the cube [-1, 1]^d: one for the unit ball, of which x/scale is a vector, times the scale.

    x/scale is rounded at random to a grid, without bias, and the scale has so few digits that its products with outputs are
    floats: what is sent has exactly the mean x, where the coordinates of x are multiples of 2^-52 (others are read as the nearest
    one). The guarantee is that of the ball's mechanism.

    **Arguments:** `domain`: the cube, an `optdp.Box`; `whole`: a mechanism on the ball of the same dimension; `scale`: a little
    more than sqrt(d).
    """

    exact = True
    domain: Box
    whole: Annotated[Any, Within(kind=Mechanism)]
    scale: Annotated[float, Within(1.0, 2.0**12)]

    def __post_init__(self) -> None:
        super().__post_init__()
        cubic(self.domain)
        if not isinstance(self.whole, UnbiasedVectors) or self.whole.domain != Ball(self.dim):
            raise ValueError(f"whole is not allowed: it must be a mechanism for vectors on {Ball(self.dim)}")
        scale = Fraction(self.scale)
        # A coordinate is at most 1/scale + GRID: the norm is at most 1.
        if not self.dim * (1 + GRID * scale) ** 2 <= scale**2:
            raise ValueError(f"scale = {self.scale!r} is not allowed: it must be a little more than sqrt({self.dim})")
        if not self._outputs * scale.numerator <= 2**53:
            raise ValueError(f"scale = {self.scale!r} is not allowed: it has too many digits")

    @classmethod
    def private(cls, domain: Box, whole: UnbiasedVectors) -> Self:
        """The least scale of as many digits as there may be."""
        dim = domain.dimension
        digits = min(BITS, 52 - (math.ceil(_outputs(whole)) + 1).bit_length())
        unit = 2.0 ** (math.frexp(math.sqrt(dim))[1] - digits)
        return cls(domain, whole, math.ceil(math.sqrt(dim) * (1 + 2.0**-30 + float(GRID) * dim) / unit) * unit)

    @property
    def _outputs(self) -> int:
        """The largest multiple of its step that a coordinate of the ball's mechanism can be."""
        return math.ceil(_outputs(self.whole)) + 1

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng = self.mean(x), as_rng(rng)
        unit = GRID * Fraction(self.scale)
        index = (inputs / float(READ)).astype(np.int64) + 2**52
        shrunk = dither(index, -1 / unit, READ / unit, rng) * float(GRID)
        return np.asarray(self.whole.randomize(shrunk, rng) * self.scale)

    def mean(self, x: ArrayLike) -> np.ndarray:
        """E[Y | x]: the nearest multiples of 2^-52, as which x is read."""
        return np.asarray(np.rint(super().mean(x) / float(READ)) * float(READ)) + 0.0

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        """(lowest, highest) value of a coordinate of Y."""
        low, high = self.whole.support()
        return low * self.scale, high * self.scale

    def variance(self, x: ArrayLike) -> np.ndarray:
        """E|Y - x|^2, but for the rounding of x/scale."""
        return np.asarray(self.whole.variance(self.mean(x) / self.scale) * self.scale**2)

    def worst_input(self, loss: LossLike = "squared") -> Any:
        """A multiple of (1, ..., 1): only the norm matters."""
        norm = float(np.linalg.norm(self.whole.worst_input(loss))) * self.scale / math.sqrt(self.dim)
        return np.full(self.dim, min(norm, 1.0))

    def average_loss(self, loss: LossLike = "squared") -> float:
        """The expected loss under the uniform distribution on the cube: the mean over 1000 of its points."""
        points = np.random.default_rng(0).uniform(-1, 1, (1000, self.dim))
        return float(self.expected_loss(points, loss).mean())

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(0, what no input exceeds): scale^2 times the largest error on the ball, and what all roundings can add."""
        if not isinstance(objective, WorstCase) or objective.loss.exponent != 2:
            return super().enclose(objective)
        most = Fraction(self.whole.enclose(objective)[1]) + self.dim * GRID**2 / 4
        return 0.0, enclosures.round_up(most * Fraction(self.scale) ** 2 + self.dim * READ**2 / 4)

    @property
    def _ratio(self) -> Fraction:
        """That of the ball's mechanism."""
        ratio: Fraction = self.whole._ratio
        return ratio

    def check_unbiased(self) -> Check:
        """Every step keeps the mean."""
        inner = self.whole.check_unbiased()
        return Check("unbiased", inner.passed, f"x/scale is rounded without bias, products are exact; {inner.detail}")

    def __repr__(self) -> str:
        return f"ScaledMechanism on {self.domain}: {self.scale:.6g} times a {self.whole!r}"


def _outputs(whole: UnbiasedVectors) -> float:
    """The largest coordinate, in steps."""
    own: Any = whole.whole if isinstance(whole, LiftedMechanism) else whole
    return float(whole.support()[1] / own.step)

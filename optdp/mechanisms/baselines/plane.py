"""Mechanisms for places in a rectangle that stand beside the optimum: noise in the plane, and every side by itself.

Their expected losses are sums over a few ten thousand outputs, in floats.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import Log, Number, Seed, Within, as_rng, enclosures, require
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.plane import flat, grid_of
from optdp.mechanisms.product import denied
from optdp.problem import LDP, Box, Interval, LossLike, Privacy

#: Angles and radii of noise, cells of each side, and inputs each way at which the largest loss is sought.
ANGLES, CELLS, INPUTS = 128, 128, 8


class _Planar(Mechanism):
    """What they share: an input's outputs as points with weights."""

    domain: Box

    def _outputs(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(points, their weights), relative to the input."""
        raise NotImplementedError(f"{type(self).__name__} has no outputs")

    def _each(self, x: ArrayLike) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for row in np.asarray(self.domain.check(x), dtype=float).reshape(-1, 2):
            yield self._outputs(row)

    def mean(self, x: ArrayLike) -> np.ndarray:
        inputs = np.asarray(self.domain.check(x), dtype=float)
        moved = np.array([weights @ points for points, weights in self._each(inputs)])
        return np.asarray(inputs + moved.reshape(inputs.shape))

    def variance(self, x: ArrayLike) -> np.ndarray:
        """E|Y - E[Y]|^2."""
        found = [w @ np.square(p - w @ p).sum(axis=1) for p, w in self._each(x)]
        return np.array(found).reshape(np.shape(x)[:-1])

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        law = self._loss(loss)
        if law.form != "distance":
            raise ValueError(f"loss is not allowed on {self.domain}: it must be a function of the distance")
        found = [weights @ law(np.sqrt(np.square(points).sum(axis=1))) for points, weights in self._each(x)]
        return np.array(found).reshape(np.shape(x)[:-1])

    def worst_input(self, loss: LossLike = "abs") -> Any:
        """The worst point of a grid, which has the corners and the centre."""
        grid = grid_of(*(np.linspace(side.lower, side.upper, INPUTS + 1) for side in self.domain.sides))
        return grid[int(np.argmax(self.expected_loss(grid, loss)))]

    def average_loss(self, loss: LossLike = "abs") -> float:
        """Under the uniform distribution on the rectangle: Gauss's rule, with INPUTS places each way."""
        places, weights = np.polynomial.legendre.leggauss(INPUTS)
        grid = grid_of(*(side.lower + side.width * (1 + places) / 2 for side in self.domain.sides))
        return float(np.outer(weights, weights).reshape(-1) @ self.expected_loss(grid, loss)) / 4

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        return min(self.domain.lower), max(self.domain.upper)


@dataclass(frozen=True)
class ClampedPlanarLaplace(_Planar):
    """Noise with the density (eps/D)^2 / (2 pi) e^(-eps |z| / D), D the diagonal of the rectangle, and the nearest point of it.

    **Arguments:** `eps`; `domain`: an `optdp.Box` with two sides.

        >>> round(ClampedPlanarLaplace(1.0, Box((0, 0), (1, 1))).worst_case_loss("abs"), 3)
        0.69
    """

    eps: float
    domain: Box

    def __post_init__(self) -> None:
        super().__post_init__()
        require.epsilon(self.eps)
        flat(self.domain)

    @property
    def scale(self) -> float:
        """Of the noise: the diagonal over eps."""
        return math.hypot(*np.subtract(self.domain.upper, self.domain.lower)) / self.eps

    def _outputs(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        from scipy.stats import gamma

        turns = (np.arange(ANGLES) + 0.5) * (2 * np.pi / ANGLES)
        radii = self.scale * gamma.ppf((np.arange(CELLS) + 0.5) / CELLS, 2.0)
        moved = (radii[:, None, None] * np.stack([np.cos(turns), np.sin(turns)], axis=-1)).reshape(-1, 2)
        moved = np.clip(moved, np.array(self.domain.lower) - x, np.array(self.domain.upper) - x)
        return moved, np.full(len(moved), 1 / len(moved))

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng = np.asarray(self.domain.check(x), dtype=float), as_rng(rng)
        turns = rng.uniform(0.0, 2 * np.pi, inputs.shape[:-1])
        radii = rng.gamma(2.0, self.scale, inputs.shape[:-1])[..., None]
        noise = radii * np.stack([np.cos(turns), np.sin(turns)], axis=-1)
        return np.clip(inputs + noise, self.domain.lower, self.domain.upper)

    def guarantee(self) -> Privacy:
        return LDP(self.eps).in_real_arithmetic()


@dataclass(frozen=True)
class SidesMechanism(_Planar):
    """Both coordinates of a point of a rectangle, each by a mechanism for numbers of its own: their epsilons add up.

    **Arguments:** `domain`: an `optdp.Box` with two sides; `first`, `second`: mechanisms on these.
    """

    domain: Box
    first: Annotated[Any, Within(kind=Mechanism)]
    second: Annotated[Any, Within(kind=Mechanism)]

    def __post_init__(self) -> None:
        super().__post_init__()
        flat(self.domain)
        for part, side in zip(self.parts, self.domain.sides, strict=True):
            if part.domain != side:
                raise ValueError(f"first and second are not allowed: they must be mechanisms on {side}")

    @property
    def parts(self) -> tuple[Mechanism, Mechanism]:
        """Both."""
        return self.first, self.second

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """Whether both are."""
        return self.first.exact and self.second.exact

    def _outputs(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        laws = [_law(part, float(v)) for part, v in zip(self.parts, x, strict=True)]
        return grid_of(*(points for points, _ in laws)), np.outer(laws[0][1], laws[1][1]).reshape(-1)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng = np.asarray(self.domain.check(x), dtype=float), as_rng(rng)
        return np.stack([part.randomize(inputs[..., k], rng) for k, part in enumerate(self.parts)], axis=-1)

    def guarantee(self) -> Privacy | None:
        own = [part.guarantee() for part in self.parts]
        if not all(isinstance(each, LDP) for each in own):
            return None
        levels: list[Any] = [each.eps for each in own]  # type: ignore[union-attr]
        logs = [isinstance(eps, Log) for eps in levels]
        if any(logs) and not all(logs):
            return None
        eps: Number = (
            enclosures.log_of(levels[0].argument * levels[1].argument)
            if all(logs)
            else sum(map(Fraction, levels), Fraction(0))
        )
        return LDP(eps, ideal=any(each.ideal for each in own))  # type: ignore[union-attr]

    def satisfies(self, privacy: Privacy) -> bool | None:
        """As for every mechanism, but False only where both have no better guarantee than they state."""
        return denied(super().satisfies(privacy), *self.parts)


def _law(part: Mechanism, x: float) -> tuple[np.ndarray, np.ndarray]:
    """(outputs less x, weights) of a mechanism on an interval: its atoms, and the middles of cells between them."""
    side: Interval = part.domain
    atoms = part.atoms()
    cuts = np.linspace(side.lower, side.upper, CELLS + 1)
    middles = (cuts[1:] + cuts[:-1]) / 2
    points = np.concatenate([atoms, middles])
    weights = np.concatenate([part.probability(atoms, x), part.density(middles, x) * np.diff(cuts)])
    keep = weights > 0
    return points[keep] - x, weights[keep] / weights.sum()


def clamped_planar_laplace(eps: float, domain: Box) -> ClampedPlanarLaplace | None:
    """None unless there are two sides."""
    return ClampedPlanarLaplace(eps, domain) if domain.dimension == 2 else None

"""Published unbiased mechanisms for vectors: unit vectors, the unit ball, the cube. Sources: `optdp.mechanisms.baselines`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from flint import ctx
from numpy.typing import ArrayLike

from optdp.exact import Check, Log, Number, Seed, Within, as_rng, enclosures, require
from optdp.exact.numbers import border
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines.unbiased import hybrid, piecewise, pm_opt
from optdp.mechanisms.cap import CapMechanism
from optdp.mechanisms.product import composed, denied, share_of
from optdp.mechanisms.signs import SignMechanism
from optdp.mechanisms.unbiased_vectors import COINS, Vectors, cubic
from optdp.problem import LDP, Ball, Box, Interval, LossLike, Privacy, Sphere

SIDE = Interval(-1.0, 1.0)


@dataclass(frozen=True)
class VectorLaplace(Vectors):
    """Laplace noise for vectors, computed in floats.

    **Arguments:** `eps`; `domain`: a sphere, a ball or a box; `norm`: "l1": independent noise on every coordinate, of the scale
    (largest l1 distance)/eps; "l2": a vector with the density exp(-eps |z|/(largest distance)).
    """

    eps: float
    domain: Annotated[Any, Within(kind=Sphere | Ball | Box)]
    norm: Literal["l1", "l2"] = "l1"

    def __post_init__(self) -> None:
        super().__post_init__()
        require.epsilon(self.eps)

    @property
    def scale(self) -> float:
        """Of the noise."""
        if isinstance(self.domain, Box):
            sides = np.subtract(self.domain.upper, self.domain.lower)
            reach = float(sides.sum() if self.norm == "l1" else math.sqrt(np.square(sides).sum()))
        else:
            reach = 2 * math.sqrt(self.dim) if self.norm == "l1" else 2.0
        return reach / self.eps

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng = self.mean(x), as_rng(rng)
        if self.norm == "l1":
            return np.asarray(inputs + rng.laplace(0.0, self.scale, size=inputs.shape))
        noise = rng.standard_normal(inputs.shape)
        noise *= (rng.gamma(self.dim, self.scale, inputs.shape[:-1]) / np.linalg.norm(noise, axis=-1))[..., None]
        return np.asarray(inputs + noise)

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        return -math.inf, math.inf

    def variance(self, x: ArrayLike) -> np.ndarray:
        """E|Y - x|^2."""
        factor = 2 * self.dim if self.norm == "l1" else self.dim * (self.dim + 1)
        return np.full(self.mean(x).shape[:-1], factor * self.scale**2)

    def worst_input(self, loss: LossLike = "squared") -> Any:
        if isinstance(self.domain, Box):
            return np.array(self.domain.lower)
        return np.eye(1, self.dim)[0]

    def average_loss(self, loss: LossLike = "squared") -> float:
        """The expected loss, the same for every input."""
        return self.worst_case_loss(loss)

    def guarantee(self) -> Privacy:
        return LDP(self.eps).in_real_arithmetic()

    def check_unbiased(self) -> Check:
        return Check("unbiased", False, "E[Y | x] = x holds in real arithmetic only: floats are sampled")


@dataclass(frozen=True)
class SampledCoordinates(Vectors):
    """k of the d coordinates of a vector of the cube, chosen uniformly, each by a mechanism for numbers, times d/k; 0 elsewhere.

    **Arguments:** `domain`: the cube; `part`: an unbiased mechanism on [-1, 1]; `k`.
    """

    domain: Box
    part: Annotated[Any, Within(kind=Mechanism)]
    k: Annotated[int, Within(1, 10**6)]

    def __post_init__(self) -> None:
        super().__post_init__()
        cubic(self.domain)
        if self.part.domain != SIDE:
            raise ValueError("part is not allowed: it must be a mechanism on [-1, 1]")
        require.integer("k", self.k, low=1, high=self.dim)

    @property
    def exact(self) -> bool:  # type: ignore[override]
        """That of the part: scaling comes after."""
        return self.part.exact

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng = self.mean(x), as_rng(rng)
        rows = inputs.reshape(-1, self.dim)
        out = np.zeros(rows.shape)
        for i in range(0, len(rows), block := max(1, 2**20 // self.dim)):
            some = rows[i : i + block]
            chosen = np.tile(np.arange(self.dim), (len(some), 1))
            chosen = rng.permuted(chosen, axis=1)[:, : self.k]
            values = self.part.randomize(np.take_along_axis(some, chosen, axis=1), rng)
            np.put_along_axis(out[i : i + block], chosen, values * (self.dim / self.k), axis=1)
        return out.reshape(inputs.shape)

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        low, high = self.part.support()
        factor = self.dim / self.k  # rounded as in what is sent
        return min(0.0, low * factor), max(0.0, high * factor)

    def _each(self, x: np.ndarray) -> np.ndarray:
        """The variance of a coordinate: (d/k)(V(x) + x^2) - x^2."""
        return np.asarray(self.dim / self.k * (self.part.variance(x) + x**2) - x**2)

    def variance(self, x: ArrayLike) -> np.ndarray:
        """E|Y - x|^2."""
        return np.asarray(self._each(self.mean(x)).sum(axis=-1))

    def worst_input(self, loss: LossLike = "squared") -> Any:
        """All coordinates at the worst place (of a grid, refined)."""
        grid = np.linspace(0.0, 1.0, 1025)
        for _ in range(3):
            values = self._each(grid)
            best = int(np.argmax(values))
            found = grid[best]
            grid = np.linspace(grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)], 65)
        return np.full(self.dim, found)

    def worst_case_loss(self, loss: LossLike = "squared") -> float:
        self._squared(loss)
        return self.dim * float(self._each(self.worst_input(loss)[:1])[0])

    def average_loss(self, loss: LossLike = "squared") -> float:
        """Under the uniform distribution on the cube, where E[x^2] = 1/3 for every coordinate."""
        return self.dim * (self.dim / self.k * (self.part.average_loss(self._squared(loss)) + 1 / 3) - 1 / 3)

    def guarantee(self) -> Privacy | None:
        return composed(self.part.guarantee(), self.k)

    def satisfies(self, privacy: Privacy) -> bool | None:
        """As for every mechanism, but False only where the part has no better guarantee than it states."""
        return denied(super().satisfies(privacy), self.part)

    def check_unbiased(self) -> Check:
        return Check("unbiased", False, "E[Y | x] = x holds in real arithmetic only: outputs times d/k are rounded")


def duchi_l2(eps: Number, domain: Sphere | Ball) -> CapMechanism:
    """The half-sphere around the input, with probability e^eps/(e^eps + 1)."""
    return CapMechanism.private(eps, domain, 0.0)


def priv_unit(eps: Number, domain: Sphere | Ball) -> CapMechanism:
    """PrivUnit as published: a height that one of the two inequalities of its theorem allows for a share of eps, and the odds
    e^(the rest) of the cap; the best of 100 shares. Both inequalities are sufficient only, so that some of eps is lost.
    """
    best: tuple[float, CapMechanism] | None = None
    whole = float(eps)
    for part in range(100):
        height = _height(whole * part / 100, domain.dim)
        with ctx.workprec(256):
            odds = (enclosures.ball(eps) * (100 - part) / 100).exp()
            coins = math.floor(enclosures.lower(odds / (1 + odds) * COINS))
        model = CapMechanism.private(eps, domain, height)
        made = CapMechanism(domain, height, min(coins, model.coins), model.step)
        if best is None or float(made.least) < best[0]:
            best = float(made.least), made
    assert best is not None
    return best[1]


def _height(eps: float, dim: int) -> float:
    """The largest height for which one of the two inequalities holds."""
    if dim == 1:
        return 0.0
    first = math.tanh(eps / 2) * math.sqrt(math.pi / (2 * (dim - 1)))
    low = math.sqrt(2 / dim)

    def holds(g: float) -> bool:
        return eps >= math.log(dim) / 2 + math.log(6) - (dim - 1) / 2 * math.log1p(-g * g) + math.log(g)

    second = 0.0
    if low < 1 and holds(low):
        second, _ = border(holds, low, 1 - 2.0**-40)
    return min(max(first, second), 1 - 2.0**-40)


def duchi_linf(eps: Number, domain: Box) -> SignMechanism | None:
    """Sign vectors of all coordinates, those that agree with the input in half of them or more preferred.

    For odd d this is the published mechanism. For even d a sign vector may agree in exactly half: as published it belongs to
    both half-spaces, here to the preferred one alone. That is as private, and the error is smaller.
    """
    if not domain.is_cube:
        return None
    return SignMechanism.private(eps, domain, domain.dimension, ((domain.dimension or 0) + 1) // 2)


def _sampled(part: Any, eps: Number, domain: Box, k: int, floats: bool = False) -> SampledCoordinates | None:
    if not domain.is_cube:
        return None
    share = share_of(eps, k)
    if floats:
        share = enclosures.round_down(enclosures.ball(share)) if not isinstance(share, Log) else float(share)
    return SampledCoordinates(domain, part(share, SIDE), k)


def published_size(eps: Number, domain: Box) -> int:
    """How many coordinates Wang et al. report: eps/2.5, rounded down, at least 1."""
    return max(1, min(domain.dimension or 1, math.floor(float(eps) / 2.5)))


def pm_sampled(eps: Number, domain: Box) -> SampledCoordinates | None:
    """PM on floor(eps/2.5) coordinates."""
    return _sampled(piecewise, eps, domain, published_size(eps, domain))


def hm_sampled(eps: Number, domain: Box) -> SampledCoordinates | None:
    """HM on floor(eps/2.5) coordinates."""
    return _sampled(hybrid, eps, domain, published_size(eps, domain), floats=True)


def one_coordinate(eps: Number, domain: Box) -> SampledCoordinates | None:
    """OPTT's Algorithm 3 with its best piecewise transformation of type I."""
    return _sampled(pm_opt, eps, domain, 1)


def laplace(eps: float, domain: Any) -> VectorLaplace:
    """On every coordinate."""
    return VectorLaplace(eps, domain)


def euclidean_laplace(eps: float, domain: Any) -> VectorLaplace:
    """With the Euclidean norm of the noise in the exponent."""
    return VectorLaplace(eps, domain, "l2")

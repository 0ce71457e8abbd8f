"""What all additive noise has in common: the output is x + Z, and Z does not depend on x."""

import math
from abc import abstractmethod
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import Check, Seed, as_rng, in_blocks, require
from optdp.mechanisms.base import Mechanism
from optdp.problem import At, Average, Integers, Interval, Line, LossLike, Objective, Squared, WorstCase, as_loss


class AdditiveNoise(Mechanism):
    """x -> x + Z for numbers (or integers) x whose neighbours lie at most `sensitivity` apart.

    `domain` is the line, the integers, or an interval at least as wide as the sensitivity covers (then any two inputs are
    neighbours: local privacy). Everything that can be asked of Z can be asked here: `noise_density`, `noise_probability`,
    `cdf`, `quantile`, `confidence_interval`, the expected loss (the same for every input) and the privacy profile `delta(eps)`.
    """

    domain: Line | Integers | Interval
    sensitivity: float
    adds_noise = True

    @property
    def discrete(self) -> bool:
        """Whether inputs and noise are integers."""
        return isinstance(self.domain, Integers)

    def noise_density(self, z: ArrayLike) -> np.ndarray:
        """Density of the continuous part of Z at z."""
        return np.zeros(np.shape(z))

    def noise_probability(self, z: ArrayLike) -> np.ndarray:
        """P(Z = z): nonzero only at atoms."""
        return np.zeros(np.shape(z))

    @abstractmethod
    def cdf(self, z: ArrayLike) -> np.ndarray:
        """P(Z <= z)."""

    @abstractmethod
    def quantile(self, level: ArrayLike) -> np.ndarray:
        """The smallest z with P(Z <= z) >= level, for levels in (0, 1)."""

    @abstractmethod
    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draws of Z as floats."""

    @abstractmethod
    def noise_loss(self, loss: LossLike = "abs") -> float:
        """E L(|Z|), in floating point."""

    @abstractmethod
    def delta(self, eps: float) -> float:
        """The privacy profile: the smallest delta (rounded up, where exact) for which the noise is (eps, delta)-private."""

    def _levels(self, level: Any) -> tuple[np.ndarray, np.ndarray]:
        """(sign, P(Z > radius)) for quantiles."""
        levels = np.asarray(level, dtype=float)
        if not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"level = {level!r} is not allowed: levels must lie strictly between 0 and 1")
        return np.where(levels >= 0.5, 1.0, -1.0), np.minimum(levels, 1 - levels)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs = self.domain.check(x)
        return inputs + self.sample(inputs.shape, as_rng(rng))

    def density(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        return self.noise_density(require.reals(y, "y") - self.domain.check(x))

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        return self.noise_probability(require.reals(y, "y") - self.domain.check(x))

    def cumulative(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        return self.cdf(require.reals(y, "y") - self.domain.check(x))

    def noise_radius(self) -> float:
        """The largest |Z| that occurs."""
        return np.inf

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        inputs = np.array([self.domain.lower, self.domain.upper]) if x is None else self.domain.check(x)
        return float(np.min(inputs)) - self.noise_radius(), float(np.max(inputs)) + self.noise_radius()

    def mean(self, x: ArrayLike) -> np.ndarray:
        return self.domain.check(x)

    def variance(self, x: ArrayLike | None = None) -> np.ndarray:
        return self.expected_loss(x, Squared)

    def expected_loss(self, x: ArrayLike | None = None, loss: LossLike = "abs") -> np.ndarray:
        """E[L(|Y - x|)], the same for every input."""
        return np.full(() if x is None else self.domain.check(x).shape, self.noise_loss(loss))

    def worst_input(self, loss: LossLike = "abs") -> float:
        """Any input is as bad as any other: 0, or the lower end of an interval."""
        self._loss(loss)
        return self.domain.lower if np.isfinite(self.domain.lower) else 0.0

    def worst_case_loss(self, loss: LossLike = "abs") -> float:
        return self.noise_loss(loss)

    average_loss = worst_case_loss

    def confidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """(-r, r) with the least r for which P(|Z| <= r) >= level: [y - r, y + r] covers the true value behind an output y."""
        level = require.real("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
        radius = float(self.quantile((1 + level) / 2))
        return -radius, radius

    def check_unbiased(self) -> Check:
        """The noise is symmetric by construction."""
        sent = "" if self.discrete else ", but for what is rounded to the grid of the numbers that are sent"
        return Check("unbiased", True, f"the noise is symmetric about 0, so that E[Y | x] = x at every input{sent}")

    def _loss(self, loss: Any) -> Any:
        law, radius = as_loss(loss), self.noise_radius()
        refusal = f"loss = {law.name!r} is not allowed here: "
        if law.form != "distance":
            raise ValueError(refusal + "for additive noise it must be one of the distance")
        if self.discrete:
            law = law.whole
        if np.isfinite(radius):
            return law.on(radius)
        if law.assumptions:
            raise ValueError(refusal + "this noise is unbounded, and a user's loss is known on a bounded range only")
        return law


class ProvenNoise(AdditiveNoise):
    """Noise whose expected losses are enclosed."""

    @abstractmethod
    def enclose_loss(self, loss: LossLike = "abs") -> tuple[float, float]:
        """(low, high) that contain E L(|Y - x|), proven."""

    def enclose(self, objective: Objective) -> tuple[float, float]:
        if not isinstance(objective, WorstCase | Average | At) or objective.loss.form != "distance":
            return super().enclose(objective)
        return self.enclose_loss(objective.loss)

    def _shown(self, what: str) -> str:
        """The noise in words."""
        losses = f"E|Z| = {self.noise_loss('abs'):.6g}, sd = {self.noise_loss('squared') ** 0.5:.6g}"
        return f"{type(self).__name__} for sensitivity {self.sensitivity:g}: {what}, {losses}"


class OnLattice(ProvenNoise):
    """Noise g J for a random integer J, added to inputs that are rounded down to multiples of g."""

    exact = True

    @property
    @abstractmethod
    def step(self) -> float:
        """g: the distance of lattice points, a power of two."""

    @abstractmethod
    def _trial(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """(numbers, which of them are drawn again)."""

    def _places(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Draws of J."""
        found, again = self._trial(size, rng)
        while again.size:  # what is not accepted is drawn again
            found[again], left = self._trial(again.size, rng)
            again = again[left]
        return found

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return self._places(math.prod(shape), rng).reshape(shape) * self.step

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng = self.domain.check(x), as_rng(rng)
        return in_blocks(lambda part: added(part, self._places(part.size, rng), self.step), inputs)

    def _refuse_others(self) -> None:
        """**Raises** TypeError unless inputs are from the line."""
        if not isinstance(self.domain, Line):
            raise TypeError(f"domain = {self.domain!r} is not allowed: it must be an optdp.Line()")


class NormalNoise(AdditiveNoise):
    """Noise that is normal, or made from what is."""

    @property
    @abstractmethod
    def sigma(self) -> float:
        """The standard deviation."""

    def noise_density(self, z: ArrayLike) -> np.ndarray:
        return np.exp(-np.square(np.asarray(z, dtype=float) / self.sigma) / 2) / (self.sigma * math.sqrt(2 * math.pi))

    def cdf(self, z: ArrayLike) -> np.ndarray:
        from scipy.special import ndtr

        return ndtr(np.asarray(z, dtype=float) / self.sigma)

    def quantile(self, level: ArrayLike) -> np.ndarray:
        from scipy.special import ndtri

        sign, tail = self._levels(level)
        return -sign * self.sigma * ndtri(tail) + 0.0

    def _normal_moment(self, q: float) -> float:
        """E|Z|^q."""
        return float(self.sigma**q * 2 ** (q / 2) * math.gamma((q + 1) / 2) / math.sqrt(math.pi))


def added(inputs: np.ndarray, places: np.ndarray, g: float) -> np.ndarray:
    """Inputs rounded down to multiples of g, a power of two, and as many more of them as `places` says, as floats."""
    with np.errstate(over="ignore"):
        scaled = np.floor(inputs / g)  # exact: g is a power of two
    if (np.abs(scaled) < 2.0**62).all():
        return ((scaled.astype(np.int64) + places) * g).astype(float)
    pairs, grid = zip(inputs.flat, places.flat, strict=True), Fraction(g)
    return np.array([float((Fraction(x) // grid + int(z)) * grid) for x, z in pairs]).reshape(inputs.shape)

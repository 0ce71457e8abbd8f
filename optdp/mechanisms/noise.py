"""What all additive noise has in common: the output is x + Z, and Z does not depend on x."""

from __future__ import annotations

import math
from abc import abstractmethod
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import Check, Seed, as_rng, enclosures, in_blocks, require
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

    def _far(self) -> float:
        """The largest |Y - x|: more than the radius where numbers are rounded to a grid."""
        return self.noise_radius()

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        inputs = np.array([self.domain.lower, self.domain.upper]) if x is None else self.domain.check(x)
        return float(np.min(inputs)) - self._far(), float(np.max(inputs)) + self._far()

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


class Stairs:
    """A law in floats: symmetric about 0, with a density that is constant on steps, which may be repeated further out, falling.

    **Arguments:** `ends`: of the steps on the positive side, increasing from 0; `masses`: of the steps, in any unit; `atom`: the
    probability of 0; `start`: the end from which on the steps are repeated, with `fall` times the masses each time (0: never).

    Tails are summed from the outside, so that small ones keep their digits.
    """

    def __init__(
        self, ends: np.ndarray, masses: np.ndarray, *, atom: float = 0.0, start: float = 0.0, fall: float = 0.0
    ) -> None:
        wide = np.diff(ends) > 0
        self.ends, self.masses = np.append(ends[:-1][wide], ends[-1]), np.asarray(masses, dtype=float)[wide]
        self.again = self.ends[:-1] >= start
        self.start, self.width, self.fall = start, ends[-1] - start, fall if self.masses[self.again].any() else 0.0
        further = self.masses[self.again].sum() * self.fall / (1 - self.fall)
        unit = (1 - atom) / 2 / (self.masses.sum() + further)
        self.masses *= unit
        self.heights = self.masses / np.diff(self.ends)
        self.above = np.append(np.cumsum(self.masses[::-1])[::-1], 0.0) + further * unit  # P(Z > end)
        self.above[0] = (1 - atom) / 2

    def _first(self, far: np.ndarray) -> tuple[Any, np.ndarray]:
        """(by what masses are less than at first, the place there) for places at these distances from 0."""
        if not self.fall:
            return 1.0, far
        far = np.minimum(far, self.start + 2.0**62 * self.width)  # nothing is beyond, and infinity would be no number
        times = np.maximum(np.floor((far - self.start) / self.width), 0.0)
        return self.fall**times, np.minimum(far - times * self.width, self.ends[-1])

    def density(self, far: np.ndarray) -> np.ndarray:
        """At these distances from 0."""
        less, near = self._first(far)
        step = np.minimum(np.searchsorted(self.ends[1:], near, side="right"), self.heights.size - 1)
        return np.where(near <= self.ends[-1], self.heights[step] * less, 0.0)

    def beyond(self, far: np.ndarray) -> np.ndarray:
        """P(Z > far)."""
        less, near = self._first(far)
        return np.asarray(np.interp(near, self.ends, self.above) * less)

    def reach(self, tail: np.ndarray) -> np.ndarray:
        """The least distance that is exceeded on one side with a probability of at most `tail`."""
        times = np.zeros(tail.shape)
        if self.fall:
            whole = self.above[np.searchsorted(self.ends, self.start)]
            times = np.maximum(np.floor(np.log(tail / whole) / math.log(self.fall) + 1e-15), 0.0)
        wanted = tail / self.fall**times
        step = np.clip(np.searchsorted(-self.above, -wanted), 1, self.heights.size)
        mass = self.masses[step - 1]
        share = np.clip((self.above[step - 1] - wanted) / np.where(mass > 0, mass, 1.0), 0.0, 1.0)
        return np.asarray(self.ends[step - 1] + share * np.diff(self.ends)[step - 1] + times * self.width)

    def pieces(self, far: float = math.inf) -> tuple[np.ndarray, np.ndarray]:
        """(ends, heights) of the steps up to a distance at least, or down to a negligible tail."""
        if not self.fall:
            return self.ends, self.heights
        most = min(50 / -math.log(self.fall) + 2, (far - self.start) / self.width)
        times = np.arange(max(1, math.ceil(most)))[:, None]
        ends = np.append(self.ends[:-1][self.again] + times * self.width, self.start + times.size * self.width)
        heights = self.heights[self.again] * self.fall**times
        return np.append(self.ends[:-1][~self.again], ends), np.append(self.heights[~self.again], heights)


class StairNoise(AdditiveNoise):
    """Noise with such a law; on the integers, noise Z for which that is the law of Z + U, U uniform within half a unit of 0."""

    @cached_property
    @abstractmethod
    def _law(self) -> Stairs:
        """In floats."""

    @property
    def atom_mass(self) -> float:
        """P(Z = 0) from what is mixed in at 0 alone."""
        return 0.0

    def noise_density(self, z: ArrayLike) -> np.ndarray:
        return np.zeros(np.shape(z)) if self.discrete else self._law.density(np.abs(np.asarray(z, dtype=float)))

    def noise_probability(self, z: ArrayLike) -> np.ndarray:
        points = np.asarray(z, dtype=float)
        if self.discrete:
            return np.where(points == np.round(points), self._law.density(np.abs(points)), 0.0)
        return np.where(points == 0, self.atom_mass, 0.0)

    def cdf(self, z: ArrayLike) -> np.ndarray:
        points = np.floor(z) + 0.5 if self.discrete else np.asarray(z, dtype=float)
        tail = self._law.beyond(np.abs(points))
        return np.where(points >= 0, 1 - tail, tail)

    def quantile(self, level: ArrayLike) -> np.ndarray:
        sign, tail = self._levels(level)
        found = sign * self._law.reach(tail) + 0.0
        if not self.discrete:
            return found
        found = np.ceil(found - 0.5)
        found = found + (self.cdf(found) < level)  # where the place was rounded to the end of a cell
        return found - (self.cdf(found - 1) >= level) + 0.0


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

    def _far(self) -> float:
        radius = self.noise_radius()
        return radius if math.isinf(radius) else enclosures.round_up(Fraction(radius) + Fraction(self.step))

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng = self.domain.check(x), as_rng(rng)
        return in_blocks(lambda part: added(part, self._places(part.size, rng), self.step), inputs)


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

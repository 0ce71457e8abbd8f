"""What all additive noise has in common: the output is x + Z, and Z does not depend on x."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np

from optdp.exact import require
from optdp.mechanisms.base import Mechanism, as_rng
from optdp.problem.domains import AdditiveLine
from optdp.problem.losses import CustomLoss, Loss, Power, Squared, as_loss


class AdditiveNoise(Mechanism):
    """x -> x + Z for numbers (or whole numbers) x whose neighbours lie at most `domain.sensitivity` away.

    Everything that can be asked of Z can be asked here: `noise_density`, `noise_probability`, `cdf`, `quantile`,
    `confidence_interval`, the expected loss (the same for every input) and the privacy profile `delta(eps)`.
    """

    domain: AdditiveLine  # type: ignore[assignment]

    @abstractmethod
    def noise_density(self, z: Any) -> np.ndarray:
        """Density of the continuous part of Z at z."""

    def noise_probability(self, z: Any) -> np.ndarray:
        """P(Z = z): nonzero only at atoms."""
        return np.zeros(np.shape(z))

    @abstractmethod
    def cdf(self, z: Any) -> np.ndarray:
        """P(Z <= z)."""

    @abstractmethod
    def quantile(self, level: Any) -> np.ndarray:
        """The smallest z with P(Z <= z) >= level, for levels in (0, 1)."""

    @abstractmethod
    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draws of Z as floats."""

    @abstractmethod
    def noise_loss(self, loss: Any = "abs") -> float:
        """E L(|Z|), in floating point."""

    @abstractmethod
    def delta(self, eps: float) -> float:
        """The privacy profile: the smallest delta (rounded up, where exact) for which the noise is (eps, delta)-private."""

    def randomize(self, x: Any, rng: Any = None) -> np.ndarray:
        inputs = self.domain.check(x)
        return inputs + self.sample(inputs.shape, as_rng(rng))

    def density(self, y: Any, x: Any) -> np.ndarray:
        return self.noise_density(np.asarray(y, dtype=float) - self.domain.check(x))

    def probability(self, y: Any, x: Any) -> np.ndarray:
        return self.noise_probability(np.asarray(y, dtype=float) - self.domain.check(x))

    def noise_radius(self) -> float:
        """The largest |Z| that occurs."""
        return np.inf

    def support(self, x: Any = None) -> tuple[float, float]:
        """(lowest, highest) output: for an input `x`, or over all inputs."""
        if x is None:
            return -np.inf, np.inf
        inputs, radius = self.domain.check(x), self.noise_radius()
        return float(np.min(inputs)) - radius, float(np.max(inputs)) + radius

    def mean(self, x: Any) -> np.ndarray:
        """x: the noise is symmetric."""
        return self.domain.check(x)

    def variance(self, x: Any = 0.0) -> np.ndarray:
        return self.expected_loss(x, Squared)

    def expected_loss(self, x: Any = 0.0, loss: Any = "abs") -> np.ndarray:
        """E[L(|Y - x|)], the same for every input."""
        return np.full(self.domain.check(x).shape, self.noise_loss(loss))

    def worst_input(self, loss: Any = "abs") -> float:
        """Any input is as bad as any other: 0."""
        self._loss(loss)
        return 0.0

    def worst_case_loss(self, loss: Any = "abs") -> float:
        return self.noise_loss(loss)

    def average_loss(self, loss: Any = "abs") -> float:
        """The expected loss, the same for every input."""
        return self.noise_loss(loss)

    def confidence_interval(self, level: float = 0.95) -> tuple[float, float]:
        """(-r, r) with the least r for which P(|Z| <= r) >= level: [y - r, y + r] covers the true value behind an output y."""
        level = require.real("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
        radius = float(self.quantile((1 + level) / 2))
        return -radius, radius

    def _loss(self, loss: Any) -> Loss:
        radius = self.noise_radius()
        law = loss if isinstance(loss, Power) else as_loss(loss, radius if np.isfinite(radius) else self._reach())
        if isinstance(law, CustomLoss) and not np.isfinite(radius):
            raise ValueError(
                f"loss = {law.name!r} is not allowed here: this noise is unbounded, and a user's loss is known on a bounded "
                "range only"
            )
        return law

    def _reach(self) -> float:
        return self.domain.sensitivity

    def plot(self, ax: Any = None, inputs: Any = None) -> Any:
        """Draw the noise density (masses, for whole numbers), with an atom as a dot. Returns the matplotlib axes."""
        if ax is None:
            from matplotlib.figure import Figure

            ax = Figure(figsize=(6.4, 4)).subplots()
        low, high = self.confidence_interval(0.999)
        for x in np.atleast_1d(0.0 if inputs is None else inputs):
            if self.domain.discrete:
                z = np.arange(np.floor(low), np.ceil(high) + 1)
                ax.vlines(x + z, 0, self.noise_probability(z), lw=1.5)
                ax.plot(x + z, self.noise_probability(z), ".", ms=5)
            else:
                z = np.linspace(low, high, 4001)
                ax.plot(x + z, self.noise_density(z), lw=1.5)
                if float(self.noise_probability(0.0)) > 0:
                    ax.plot([x], [float(self.noise_density(0.0))], "o", ms=6)
                    ax.annotate(f"atom {float(self.noise_probability(0.0)):.3g}", (x, float(self.noise_density(0.0))),
                                textcoords="offset points", xytext=(10, -4))  # fmt: skip
        ax.set(xlabel="output" if inputs is not None else "noise", ylabel="mass" if self.domain.discrete else "density",
               title=f"{type(self).__name__}, sensitivity {self.domain.sensitivity:g}")  # fmt: skip
        ax.set_ylim(bottom=0)
        return ax

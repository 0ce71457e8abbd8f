"""Additive noise with the output clamped to the domain: what OGPM calls Laplace and staircase "+ truncation".

Noise Z is symmetric with scale set by the width of the domain; the output min(max(x + Z, a), b) has atoms at both ends.
The expected loss is G(x - a) + G(b - x) with G(t) = E[L(min(Z, t)); Z > 0] = int_0^t L'(s) P(Z > s) ds.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optdp.exact import require
from optdp.mechanisms.base import Mechanism, as_rng
from optdp.problem.domains import Circle, Interval, as_domain, domain_from_dict
from optdp.problem.losses import Absolute, Loss, Power


@dataclass(frozen=True)
class _Clamped(Mechanism):
    eps: float
    domain: Interval = field(default_factory=Interval)

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", require.epsilon(self.eps))
        domain = as_domain(self.domain)
        if isinstance(domain, Circle):
            raise ValueError("domain = a Circle is not allowed: noise is clamped to an interval")
        object.__setattr__(self, "domain", domain)

    @abstractmethod
    def _noise(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray: ...

    @abstractmethod
    def _noise_density(self, z: np.ndarray) -> np.ndarray: ...

    @abstractmethod
    def _survival(self, t: np.ndarray) -> np.ndarray:
        """P(Z > t) for t in [0, width]."""

    @abstractmethod
    def _one_sided(self, t: np.ndarray, loss: Loss) -> np.ndarray:
        """G(t) for t in [0, width]."""

    def randomize(self, x: Any, rng: Any = None) -> np.ndarray:
        inputs = self.domain.check(x)
        return np.clip(inputs + self._noise(inputs.shape, as_rng(rng)), self.domain.lower, self.domain.upper)

    def density(self, y: Any, x: Any) -> np.ndarray:
        outputs = np.asarray(y, dtype=float)
        inside = (outputs > self.domain.lower) & (outputs < self.domain.upper)
        return np.where(inside, self._noise_density(np.abs(outputs - self.domain.check(x))), 0.0)

    def probability(self, y: Any, x: Any) -> np.ndarray:
        inputs, outputs = self.domain.check(x), np.asarray(y, dtype=float)
        low = np.where(outputs == self.domain.lower, self._survival(inputs - self.domain.lower), 0.0)
        return low + np.where(outputs == self.domain.upper, self._survival(self.domain.upper - inputs), 0.0)

    def support(self, x: Any = None) -> tuple[float, float]:
        return self.domain.lower, self.domain.upper

    def mean(self, x: Any) -> np.ndarray:
        inputs = self.domain.check(x)
        up = self._one_sided(self.domain.upper - inputs, Absolute)
        return inputs + up - self._one_sided(inputs - self.domain.lower, Absolute)

    def expected_loss(self, x: Any, loss: Any = "abs") -> np.ndarray:
        inputs, law = self.domain.check(x), self._loss(loss)
        return self._one_sided(inputs - self.domain.lower, law) + self._one_sided(self.domain.upper - inputs, law)

    def privacy(self) -> float:
        """eps: the noise is calibrated to the width of the domain, and clamping is post-processing."""
        return self.eps

    def to_dict(self) -> dict[str, Any]:
        return {"mechanism": type(self).__name__, "eps": self.eps, "domain": self.domain.to_dict()}

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> _Clamped:
        return cls(data["eps"], domain_from_dict(data["domain"]))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(eps={self.eps:g}, domain={self.domain})"


@dataclass(frozen=True, repr=False)
class ClampedLaplace(_Clamped):
    """Laplace noise of scale width/eps, output clamped to the domain. A baseline: floats are sampled plainly."""

    @property
    def scale(self) -> float:
        """Scale of the noise before clamping."""
        return self.domain.width / self.eps

    def _noise(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.laplace(0.0, self.scale, size)

    def _noise_density(self, z: np.ndarray) -> np.ndarray:
        return np.exp(-z / self.scale) / (2 * self.scale)

    def _survival(self, t: np.ndarray) -> np.ndarray:
        return np.exp(-t / self.scale) / 2

    def _one_sided(self, t: np.ndarray, loss: Loss) -> np.ndarray:
        from scipy.special import gamma, gammainc

        if isinstance(loss, Power):
            q = loss.exponent
            return self.scale**q / 2 * gamma(q + 1) * gammainc(q, t / self.scale)
        nodes, weights = np.polynomial.legendre.leggauss(400)
        t = np.asarray(t)[..., None]
        s = t * (nodes + 1) / 2
        body = np.sum(weights * t / 2 * loss(s) * self._noise_density(s), axis=-1)
        return body + loss(t[..., 0]) * self._survival(t[..., 0])


@dataclass(frozen=True, repr=False)
class ClampedStaircase(_Clamped):
    """Staircase noise (Geng and Viswanath, 2014) for sensitivity = width, output clamped to the domain. A baseline.

    `steps` chooses the stair that is optimal before clamping for "abs" or for "squared" loss.
    """

    steps: str = "abs"

    def __post_init__(self) -> None:
        super().__post_init__()
        require.choice("steps", self.steps, ("abs", "squared"))

    @property
    def gamma(self) -> float:
        """Where in each step of one sensitivity the density drops: optimal for the loss that `steps` names."""
        b = np.exp(-self.eps)
        if self.steps == "abs":
            return float(1 / (1 + np.exp(self.eps / 2)))
        # b - 2 b^2 + 2 b^4 - b^5 = b (1 - b)^3 (1 + b), and -b/d + ... cancels for small eps: combine the two.
        d = -np.expm1(-self.eps)
        return float((np.cbrt(b * (1 + b) / 2) - b) / d)

    @property
    def _top(self) -> float:
        """Density at 0."""
        b, g = np.exp(-self.eps), self.gamma
        return float(-np.expm1(-self.eps) / (2 * self.domain.width * (g + b * (1 - g))))

    def _noise(self, size: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        b, g, width = np.exp(-self.eps), self.gamma, self.domain.width
        step = rng.geometric(-np.expm1(-self.eps), size) - 1
        low = rng.random(size) >= g / (g + b * (1 - g))
        within = np.where(low, g + (1 - g) * rng.random(size), g * rng.random(size))
        return rng.choice((-1.0, 1.0), size) * (step + within) * width

    def _noise_density(self, z: np.ndarray) -> np.ndarray:
        step = np.floor(z / self.domain.width)
        low = (z / self.domain.width - step) >= self.gamma
        return self._top * np.exp(-self.eps * (step + low))

    def _survival(self, t: np.ndarray) -> np.ndarray:
        return 0.5 - self._below(np.asarray(t), lambda d: d)

    def _below(self, t: np.ndarray, integral: Any) -> np.ndarray:
        # Only the first step counts: t is at most the width.
        drop = np.minimum(t, self.gamma * self.domain.width)
        return self._top * (integral(drop) + np.exp(-self.eps) * (integral(t) - integral(drop)))

    def _one_sided(self, t: np.ndarray, loss: Loss) -> np.ndarray:
        t = np.asarray(t)
        return self._below(t, loss.integral) + loss(t) * self._survival(t)

    def _kinks(self) -> list[float]:
        drop = self.gamma * self.domain.width
        return [self.domain.lower + drop, self.domain.upper - drop]

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "steps": self.steps}

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> ClampedStaircase:
        return cls(data["eps"], domain_from_dict(data["domain"]), data["steps"])

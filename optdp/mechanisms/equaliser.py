"""The unbiased mechanism of constant variance: log-uniform magnitude, a window whose length varies with the input."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optdp.exact import require
from optdp.mechanisms.base import Mechanism, as_rng
from optdp.problem.domains import Circle, Interval, as_domain, domain_from_dict
from optdp.problem.losses import CustomLoss


@dataclass(frozen=True, repr=False)
class EqualiserMechanism(Mechanism):
    """Unbiased on an interval, with the same variance at every input: the least possible one if eps <= 0.7122.

    On [-1, 1], with tau = tanh(eps/2), c = coth(tau) and Lam = c^2 - 1: the output has magnitude |y| in [c - 1, c +
    1] and density 1/(2 (E - 1) |y|), times E if it lies in the window [x - sqrt(x^2 + Lam), x + sqrt(x^2 + Lam)]. The
    variance is coth(eps/2) coth(tau) - 1 (`optdp.closed_forms.kernel` has the proof of optimality). Other intervals:
    moved and scaled.

    **Arguments:** `eps`; `domain`: an interval. Sampled by inverse transform in floats: ratios of the density are
    e^eps by construction, but the outputs are floats of a continuous law (`KernelMechanism` is exact).
    """

    eps: float
    domain: Interval = field(default_factory=lambda: Interval(-1.0, 1.0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", require.epsilon(self.eps))
        domain = as_domain(self.domain)
        if isinstance(domain, Circle):
            raise ValueError("domain = a Circle is not allowed: an unbiased mechanism needs an interval")
        object.__setattr__(self, "domain", domain)

    @property
    def _tau(self) -> float:
        return math.tanh(self.eps / 2)

    @property
    def _ends(self) -> tuple[float, float]:
        c = 1 / math.tanh(self._tau)
        return 1 / (math.sinh(self._tau) ** 2 * (c + 1)), c + 1  # c - 1 = Lam/(c + 1), without cancellation

    def _unit(self, x: Any) -> np.ndarray:
        """Inputs on the scale of [-1, 1]."""
        return np.clip(2 * (self.domain.check(x) - self.domain.lower) / self.domain.width - 1, -1.0, 1.0)

    def _scale(self, y: np.ndarray) -> np.ndarray:
        return (self.domain.lower + self.domain.upper) / 2 + self.domain.width / 2 * y

    def _window(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Largest favoured magnitude below 0 and above 0; their product is Lam."""
        low, high = self._ends
        root = np.sqrt(x**2 + low * high)
        above = np.where(x >= 0, root + np.abs(x), low * high / (root + np.abs(x)))
        return low * high / above, above

    def randomize(self, x: Any, rng: Any = None) -> np.ndarray:
        inputs, rng = self._unit(x), as_rng(rng)
        low, high = self._ends
        below, above = self._window(inputs)
        near = rng.random(inputs.shape) < self._tau
        positive = rng.random(inputs.shape) < np.where(near, np.log(above / low) / (2 * self._tau), 0.5)
        reach = np.where(near, np.where(positive, above, below), high)
        magnitude = low * np.exp(np.log(reach / low) * rng.random(inputs.shape))
        return self._scale(np.where(positive, magnitude, -magnitude))

    def density(self, y: Any, x: Any) -> np.ndarray:
        inputs, half = self._unit(x), self.domain.width / 2
        outputs = (np.asarray(y, dtype=float) - (self.domain.lower + self.domain.upper) / 2) / half
        low, high = self._ends
        below, above = self._window(inputs)
        size = np.abs(outputs)
        favoured = size <= np.where(outputs > 0, above, below)
        valid = (size >= low) & (size <= high)
        with np.errstate(divide="ignore"):
            floor = 1 / (2 * math.expm1(self.eps) * size)
        return np.where(valid, floor * np.where(favoured, math.exp(self.eps), 1.0), 0.0) / half

    def support(self, x: Any = None) -> tuple[float, float]:
        return float(self._scale(np.array(-self._ends[1]))), float(self._scale(np.array(self._ends[1])))

    def mean(self, x: Any) -> np.ndarray:
        """x itself."""
        return self.domain.check(x) + 0.0

    def variance(self, x: Any) -> np.ndarray:
        """The same at every input."""
        value = 1 / (self._tau * math.tanh(self._tau)) - 1
        return np.full(self.domain.check(x).shape, value * (self.domain.width / 2) ** 2)

    def expected_loss(self, x: Any, loss: Any = "squared") -> np.ndarray:
        """Closed form for the squared loss, Gauss-Legendre quadrature between the density's jumps for others."""
        law = self._loss(loss)
        inputs = self._unit(x)
        if not isinstance(law, CustomLoss) and law.exponent == 2:
            return self.variance(x)
        if isinstance(law, CustomLoss):
            raise ValueError(
                f"loss = {law.name!r} is not allowed: outputs go beyond the distances at which it was checked"
            )
        low, high = self._ends
        below, above = self._window(inputs)
        nodes, weights = np.polynomial.legendre.leggauss(64)
        total = np.zeros(inputs.shape)
        for sign, edge in ((1.0, above), (-1.0, below)):
            kink = np.clip(sign * inputs, low, high)
            cuts = np.sort(np.stack([np.full_like(edge, low), edge, kink, np.full_like(edge, high)]), axis=0)
            for a, b in zip(np.log(cuts[:-1]), np.log(cuts[1:]), strict=True):
                magnitude = np.exp((a + b)[..., None] / 2 + (b - a)[..., None] / 2 * nodes)  # dy/|y| = d log|y|
                height = np.where(magnitude <= edge[..., None], math.exp(self.eps), 1.0) / (2 * math.expm1(self.eps))
                values = law(np.abs(sign * magnitude - inputs[..., None]) * (self.domain.width / 2))
                total += ((values * height) @ weights) * (b - a) / 2
        return total

    def worst_input(self, loss: Any = "squared") -> float:
        law = self._loss(loss)
        if not isinstance(law, CustomLoss) and law.exponent == 2:
            return self.domain.lower
        return super().worst_input(law)

    def privacy(self) -> float:
        """eps: the density is a floor that ignores the input, times 1 or e^eps."""
        return self.eps

    def to_dict(self) -> dict[str, Any]:
        return {"mechanism": "EqualiserMechanism", "eps": self.eps, "domain": self.domain.to_dict()}

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> EqualiserMechanism:
        return cls(data["eps"], domain_from_dict(data["domain"]))

    def __repr__(self) -> str:
        variance = float(self.variance(self.domain.lower))
        return (
            f"EqualiserMechanism on {self.domain}: unbiased, variance {variance:.6g} at every input; eps = {self.eps:g}"
        )

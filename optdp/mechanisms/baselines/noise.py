"""Published additive noise, with the interface of the optimal one. Floats are sampled plainly: baselines to compare with.

Laplace (Dwork et al. 2006), staircase (Geng and Viswanath), truncated Laplacian (Geng, Ding, Guo, Kumar), Gaussian with
analytic calibration (Balle and Wang 2018), uniform (Geng and Viswanath), and on the integers discrete Laplace
(Ghosh et al. 2009) and discrete Gaussian (Canonne, Kamath and Steinke 2020).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from optdp.exact import enclosures, require
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.noise import AdditiveNoise
from optdp.problem.domains import AdditiveLine
from optdp.problem.losses import Loss, Power


@dataclass(frozen=True)
class _Baseline(AdditiveNoise):
    """(eps, delta)-private noise for the sensitivity of `domain`."""

    eps: float
    delta_promised: float = 0.0
    sensitivity: float = 1.0
    domain: AdditiveLine = field(init=False, default_factory=AdditiveLine)

    _discrete = False
    _needs_eps = True
    _needs_delta = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", require.epsilon(self.eps, zero=not self._needs_eps))
        low = {"low": 0.0, "high": 1.0, "open_low": self._needs_delta, "open_high": True}
        object.__setattr__(self, "delta_promised", require.real("delta", self.delta_promised, **low))  # type: ignore[arg-type]
        object.__setattr__(self, "domain", AdditiveLine(self.sensitivity, self._discrete))
        object.__setattr__(self, "sensitivity", self.domain.sensitivity)

    def privacy(self) -> float:
        """The eps that the noise was calibrated for, together with `delta_promised`."""
        return self.eps

    def _symmetric(self, z: Any, upper: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """P(Z <= z) from P(Z > t), t >= 0."""
        points = np.asarray(z, dtype=float)
        tail = upper(np.abs(points))
        return np.where(points >= 0, 1 - tail, tail)

    def _levels(self, level: Any) -> tuple[np.ndarray, np.ndarray]:
        """(sign, P(Z > radius)) for quantiles."""
        levels = np.asarray(level, dtype=float)
        if not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"level = {level!r} is not allowed: levels must lie strictly between 0 and 1")
        return np.where(levels >= 0.5, 1.0, -1.0), np.minimum(levels, 1 - levels)

    def to_dict(self) -> dict[str, Any]:
        return {"mechanism": type(self).__name__, "eps": self.eps, "delta": self.delta_promised,
                "sensitivity": self.sensitivity}  # fmt: skip

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> _Baseline:
        return cls(data["eps"], data["delta"], data["sensitivity"])

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(eps={self.eps:g}, delta={self.delta_promised:g}, sensitivity={self.sensitivity:g})"
        )


def _bounded_loss(noise: AdditiveNoise, law: Loss) -> float:
    """E L by Gauss-Legendre on the density of bounded noise (for a user's loss)."""
    nodes, weights = np.polynomial.legendre.leggauss(64)
    edges = np.linspace(0.0, noise.noise_radius(), 65)
    z = (edges[:-1, None] + edges[1:, None]) / 2 + (edges[1:, None] - edges[:-1, None]) / 2 * nodes
    values = law(z) * noise.noise_density(z * (1 - 1e-15))
    return float(np.sum(values * weights * (edges[1:, None] - edges[:-1, None]) / 2)) * 2


@dataclass(frozen=True, repr=False)
class Laplace(_Baseline):
    """Density e^(-|z|/lam)/(2 lam), lam = sensitivity/eps."""

    @property
    def scale(self) -> float:
        """lam."""
        return self.sensitivity / self.eps

    def noise_density(self, z: Any) -> np.ndarray:
        return np.exp(-np.abs(z) / self.scale) / (2 * self.scale)

    def cdf(self, z: Any) -> np.ndarray:
        return self._symmetric(z, lambda t: np.exp(-t / self.scale) / 2)

    def quantile(self, level: Any) -> np.ndarray:
        sign, tail = self._levels(level)
        return -sign * self.scale * np.log(2 * tail)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.laplace(0.0, self.scale, shape)

    def noise_loss(self, loss: Any = "abs") -> float:
        law = self._loss(loss)
        assert isinstance(law, Power)
        return float(math.gamma(law.exponent + 1) * self.scale**law.exponent)

    def delta(self, eps: float) -> float:
        return max(0.0, -math.expm1((require.epsilon(eps, zero=True) - self.eps) / 2))


@dataclass(frozen=True, repr=False)
class Staircase(_Baseline):
    """The staircase density: on each sensitivity a high part (share gamma) and a low one (e^-eps as high); `steps` picks gamma
    for "abs" or for "squared" loss, for which it is optimal among all eps-private noise."""

    steps: str = "abs"

    def __post_init__(self) -> None:
        super().__post_init__()
        require.choice("steps", self.steps, ("abs", "squared"))

    @property
    def gamma(self) -> float:
        """Where in each step the density drops."""
        b, d = math.exp(-self.eps), -math.expm1(-self.eps)
        if self.steps == "abs":
            return 1 / (1 + math.exp(self.eps / 2))
        return (float(np.cbrt(b * (1 + b) / 2)) - b) / d

    @property
    def _top(self) -> float:
        g = self.gamma
        return -math.expm1(-self.eps) / (2 * self.sensitivity * (g + math.exp(-self.eps) * (1 - g)))

    def noise_density(self, z: Any) -> np.ndarray:
        units = np.abs(np.asarray(z, dtype=float)) / self.sensitivity
        step = np.floor(units)
        return self._top * np.exp(-self.eps * (step + (units - step >= self.gamma)))

    def _upper(self, t: np.ndarray) -> np.ndarray:
        units = t / self.sensitivity
        step = np.floor(units)
        inside, b, g = units - step, math.exp(-self.eps), self.gamma
        used = np.minimum(inside, g) + b * np.maximum(inside - g, 0.0)
        return np.exp(-self.eps * step) * (0.5 - self._top * self.sensitivity * used)

    def cdf(self, z: Any) -> np.ndarray:
        return self._symmetric(z, self._upper)

    def quantile(self, level: Any) -> np.ndarray:
        sign, tail = self._levels(level)
        step = np.floor(-np.log(2 * tail) / self.eps + 1e-15)
        rest = (0.5 - tail * np.exp(self.eps * step)) / (self._top * self.sensitivity)
        g, b = self.gamma, math.exp(-self.eps)
        inside = np.where(rest <= g, rest, g + (rest - g) / b)
        return sign * (step + inside) * self.sensitivity

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        g, b = self.gamma, math.exp(-self.eps)
        step = rng.geometric(-math.expm1(-self.eps), shape) - 1
        low = rng.random(shape) >= g / (g + b * (1 - g))
        inside = np.where(low, g + (1 - g) * rng.random(shape), g * rng.random(shape))
        return rng.choice((-1.0, 1.0), shape) * (step + inside) * self.sensitivity

    def _steps(self) -> tuple[np.ndarray, np.ndarray]:
        """(edges in sensitivities, heights) of the pieces on the positive side, down to a negligible tail."""
        count = math.ceil(50 / self.eps) + 2
        k = np.arange(count)
        edges = np.append(np.stack([k, k + self.gamma], axis=1).ravel(), count)
        heights = self._top * np.exp(-self.eps * np.stack([k, k + 1], axis=1).ravel())
        return edges, heights

    def noise_loss(self, loss: Any = "abs") -> float:
        law = self._loss(loss)
        edges, heights = self._steps()
        return float(2 * heights @ np.diff(law.integral(edges * self.sensitivity)))

    def delta(self, eps: float) -> float:
        # The divergence is piecewise linear in the shift, with kinks where breakpoints meet.
        e = math.exp(require.epsilon(eps, zero=True))
        if eps >= self.eps:
            return 0.0
        g, (edges, _) = self.gamma, self._steps()
        shifts = {round(abs(a + s * c) % 1, 15) or 1.0 for a in (0, g, -g) for c in (0, g, 2 * g) for s in (1, -1)} | {
            1.0
        }
        line = np.concatenate([-edges[:0:-1], edges]) * self.sensitivity
        worst = 0.0
        for d in (u * self.sensitivity for u in shifts):
            cuts = np.unique(np.concatenate([line, line - d]))
            middle = (cuts[:-1] + cuts[1:]) / 2
            gain = np.maximum(self.noise_density(middle) - e * self.noise_density(middle + d), 0.0)
            worst = max(worst, float(gain @ np.diff(cuts)))
        return worst

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "steps": self.steps}

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> Staircase:
        return cls(data["eps"], data["delta"], data["sensitivity"], data["steps"])


@dataclass(frozen=True, repr=False)
class TruncatedLaplacian(_Baseline):
    """Laplace noise of scale sensitivity/eps, cut off at lam log(1 + (e^eps - 1)/(2 delta)), where delta allows it."""

    _needs_delta = True

    @property
    def scale(self) -> float:
        """lam."""
        return self.sensitivity / self.eps

    def noise_radius(self) -> float:
        return self.scale * math.log1p(math.expm1(self.eps) / (2 * self.delta_promised))

    @property
    def _mass(self) -> float:
        """P(|Laplace noise| <= radius)."""
        return -math.expm1(-self.noise_radius() / self.scale)

    def noise_density(self, z: Any) -> np.ndarray:
        distance = np.abs(z)
        return np.where(
            distance <= self.noise_radius(), np.exp(-distance / self.scale) / (2 * self.scale * self._mass), 0.0
        )

    def _upper(self, t: np.ndarray) -> np.ndarray:
        end = math.exp(-self.noise_radius() / self.scale)
        return np.maximum(np.exp(-t / self.scale) - end, 0.0) / (2 * self._mass)

    def cdf(self, z: Any) -> np.ndarray:
        return self._symmetric(z, self._upper)

    def quantile(self, level: Any) -> np.ndarray:
        sign, tail = self._levels(level)
        return -sign * self.scale * np.log(2 * tail * self._mass + math.exp(-self.noise_radius() / self.scale))

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return self.quantile(np.clip(rng.random(shape), 1e-300, 1 - 2.0**-53))

    def noise_loss(self, loss: Any = "abs") -> float:
        from scipy.special import gamma, gammainc

        law = self._loss(loss)
        if not isinstance(law, Power):
            return _bounded_loss(self, law)
        q = law.exponent
        if q in (1, 2):  # without the cancellation of the incomplete gamma function for small epsilon
            u = math.expm1(self.eps) / (2 * self.delta_promised)
            x = math.log1p(u)  # E Z^q = lam^q q! (1 - sum_(k=1..q) x^k/k!/u)
            if x > 0.05:
                share = x / u if q == 1 else (x * x / 2 + x) / u
                return float(self.scale**q * math.factorial(int(q)) * (1 - share))
            series = sum((-x) ** k / math.factorial(k) / (k + q + 1) for k in range(12))
            return float(self.scale**q * x ** (q + 1) * series / self._mass)
        return float(self.scale**q * gamma(q + 1) * gammainc(q + 1, self.noise_radius() / self.scale) / self._mass)

    def delta(self, eps: float) -> float:
        eps = require.epsilon(eps, zero=True)
        if eps >= self.eps:
            return float(1 - self.cdf(self.noise_radius() - self.sensitivity))
        start = (eps * self.scale - self.sensitivity) / 2  # beyond it the likelihood ratio exceeds e^eps
        return float((1 - self.cdf(start)) - math.exp(eps) * (1 - self.cdf(start + self.sensitivity)))


@dataclass(frozen=True, repr=False)
class Gaussian(_Baseline):
    """Gaussian noise of the least standard deviation that is (eps, delta)-private (Balle and Wang 2018), to the last bit.

    delta(sigma) = Phi(1/(2 s) - eps s) - e^eps Phi(-1/(2 s) - eps s), s = sigma/sensitivity, is evaluated in ball
    arithmetic; `sigma` is the least float (in units of the sensitivity) for which it is provably at most delta.
    """

    _needs_eps = False
    _needs_delta = True

    @staticmethod
    def _profile(s: float, eps: float) -> Any:
        from flint import arb

        x, e = arb(s), enclosures.ball(eps)
        root = arb(2).sqrt()
        half = 1 / (2 * x)
        return ((e * x - half) / root).erfc() / 2 - e.exp() * ((e * x + half) / root).erfc() / 2

    @cached_property
    def sigma(self) -> float:
        """Standard deviation."""
        from flint import ctx

        with ctx.workprec(enclosures.PRECISION + 200):
            target = enclosures.ball(self.delta_promised)

            def private(s: float) -> bool:
                return bool(self._profile(s, self.eps) <= target)

            high = 1.0
            while not private(high):
                high *= 2
            low = high / 2
            while private(low):
                low /= 2
            while low < (middle := (low + high) / 2) < high:
                low, high = (low, middle) if private(middle) else (middle, high)
        return math.nextafter(high * self.sensitivity, math.inf) if self.sensitivity != 1 else high

    def noise_density(self, z: Any) -> np.ndarray:
        return np.exp(-np.square(np.asarray(z, dtype=float) / self.sigma) / 2) / (self.sigma * math.sqrt(2 * math.pi))

    def cdf(self, z: Any) -> np.ndarray:
        from scipy.special import ndtr

        return ndtr(np.asarray(z, dtype=float) / self.sigma)

    def quantile(self, level: Any) -> np.ndarray:
        from scipy.special import ndtri

        sign, tail = self._levels(level)
        return -sign * self.sigma * ndtri(tail)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.normal(0.0, self.sigma, shape)

    def noise_loss(self, loss: Any = "abs") -> float:
        law = self._loss(loss)
        assert isinstance(law, Power)
        q = law.exponent
        return float(self.sigma**q * 2 ** (q / 2) * math.gamma((q + 1) / 2) / math.sqrt(math.pi))

    def delta(self, eps: float) -> float:
        from flint import ctx

        with ctx.workprec(enclosures.PRECISION + 200):
            ratio = enclosures.ball(self.sigma) / enclosures.ball(self.sensitivity)
            return enclosures.round_up(self._profile(ratio, require.epsilon(eps, zero=True)))


@dataclass(frozen=True, repr=False)
class UniformNoise(_Baseline):
    """Uniform noise over a width of sensitivity/delta: (0, delta)-private, hence (eps, delta)-private for every eps."""

    _needs_eps = False
    _needs_delta = True

    def noise_radius(self) -> float:
        return self.sensitivity / self.delta_promised / 2

    def noise_density(self, z: Any) -> np.ndarray:
        return np.where(np.abs(z) <= self.noise_radius(), 0.5 / self.noise_radius(), 0.0)

    def cdf(self, z: Any) -> np.ndarray:
        return np.clip(0.5 + np.asarray(z, dtype=float) / (2 * self.noise_radius()), 0.0, 1.0)

    def quantile(self, level: Any) -> np.ndarray:
        sign, tail = self._levels(level)
        return sign * (0.5 - tail) * 2 * self.noise_radius()

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-self.noise_radius(), self.noise_radius(), shape)

    def noise_loss(self, loss: Any = "abs") -> float:
        law = self._loss(loss)
        return float(law.integral(np.asarray(self.noise_radius()))) / self.noise_radius()

    def delta(self, eps: float) -> float:
        require.epsilon(eps, zero=True)
        return min(1.0, self.delta_promised)


@dataclass(frozen=True, repr=False)
class _Whole(_Baseline):
    """Noise on the integers, by its masses down to a negligible tail."""

    _discrete = True

    @cached_property
    def _half(self) -> np.ndarray:
        """P(Z = 0), P(Z = 1), ..."""
        raise TypeError("a base class")

    @cached_property
    def _sums(self) -> np.ndarray:
        """P(|Z| <= a)."""
        return np.cumsum(np.concatenate([self._half[:1], 2 * self._half[1:]]))

    def noise_density(self, z: Any) -> np.ndarray:
        return np.zeros(np.shape(z))

    def noise_probability(self, z: Any) -> np.ndarray:
        distance = np.abs(np.asarray(z, dtype=float))
        index = np.minimum(distance, self._half.size - 1).astype(np.int64)
        return np.where((distance == np.round(distance)) & (distance < self._half.size), self._half[index], 0.0)

    def cdf(self, z: Any) -> np.ndarray:
        points = np.asarray(z, dtype=float)
        k = np.floor(points)
        distance = np.where(k >= 0, k, -k - 1).astype(np.int64)
        inside = np.where(distance >= self._sums.size, 1.0, self._sums[np.minimum(distance, self._sums.size - 1)])
        return np.where(k >= 0, (1 + inside) / 2, (1 - inside) / 2)

    def quantile(self, level: Any) -> np.ndarray:
        sign, tail = self._levels(level)
        return sign * np.minimum(np.searchsorted(self._sums, 1 - 2 * tail, side="left"), self._sums.size - 1) + 0.0

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        distance = np.minimum(np.searchsorted(self._sums, rng.random(shape), side="right"), self._sums.size - 1)
        return rng.choice((-1.0, 1.0), shape) * distance + 0.0

    def noise_loss(self, loss: Any = "abs") -> float:
        law = self._loss(loss)
        values = np.asarray(law(np.arange(self._half.size) * 1.0), dtype=float)
        return float(self._half[0] * values[0] + 2 * (self._half[1:] @ values[1:]))

    def delta(self, eps: float) -> float:
        e = math.exp(require.epsilon(eps, zero=True))
        return max(_whole_divergence(self._half, s, e) for s in range(1, int(self.sensitivity) + 1))


def _whole_divergence(half: np.ndarray, shift: int, ratio: float) -> float:
    line = np.concatenate([np.zeros(shift), half[:0:-1], half, np.zeros(shift)])
    return float(np.maximum(line[:-shift] - ratio * line[shift:] * (1 - 1e-14), 0.0).sum())


@dataclass(frozen=True, repr=False)
class DiscreteLaplace(_Whole):
    """P(Z = k) proportional to e^(-eps |k|/sensitivity)."""

    @cached_property
    def _half(self) -> np.ndarray:
        rate = self.eps / self.sensitivity
        return math.tanh(rate / 2) * np.exp(-rate * np.arange(math.ceil(60 / rate) + 2))

    def noise_loss(self, loss: Any = "abs") -> float:
        law = self._loss(loss)
        rate = self.eps / self.sensitivity
        if law == Power(1):
            return 1 / math.sinh(rate)
        return super().noise_loss(law)

    def delta(self, eps: float) -> float:
        return 0.0 if eps >= self.eps else super().delta(eps)


@dataclass(frozen=True, repr=False)
class DiscreteGaussian(_Whole):
    """P(Z = k) proportional to e^(-k^2/(2 sigma^2)), sigma calibrated numerically to (eps, delta)."""

    _needs_eps = False
    _needs_delta = True

    @staticmethod
    def _masses(sigma: float) -> np.ndarray:
        weights = np.exp(-np.square(np.arange(math.ceil(14 * sigma) + 2) / sigma) / 2)
        return weights / (2 * weights.sum() - weights[0])

    @cached_property
    def sigma(self) -> float:
        """The parameter, found by bisection from above (the standard deviation is slightly less)."""
        ratio, shift = math.exp(self.eps), int(self.sensitivity)

        def private(sigma: float) -> bool:
            half = self._masses(sigma)
            shifts = {1, shift // 2 or 1, shift}
            return max(_whole_divergence(half, s, ratio) for s in shifts) <= self.delta_promised

        high = Gaussian(self.eps, self.delta_promised, self.sensitivity).sigma * 1.01 + 0.1
        while not private(high):
            high *= 1.1
        low = high / 4
        for _ in range(48):
            middle = (low + high) / 2
            low, high = (low, middle) if private(middle) else (middle, high)
        return high

    @cached_property
    def _half(self) -> np.ndarray:
        return self._masses(self.sigma)


def _if_possible(make: Callable[..., Mechanism], eps: float, delta: float, **arguments: Any) -> AdditiveNoise | None:
    needs_eps, needs_delta = make._needs_eps, make._needs_delta  # type: ignore[attr-defined]
    if (needs_eps and eps == 0) or (needs_delta and delta == 0):
        return None
    return make(eps, delta, **arguments)  # type: ignore[return-value]


#: Name -> class, on the line and on the integers.
NOISES: dict[str, type[_Baseline]] = {
    "truncated Laplacian": TruncatedLaplacian,
    "Gaussian": Gaussian,
    "Laplace": Laplace,
    "staircase": Staircase,
    "uniform": UniformNoise,
}
WHOLE_NOISES: dict[str, type[_Baseline]] = {"discrete Laplace": DiscreteLaplace, "discrete Gaussian": DiscreteGaussian}


def noise_baselines(
    eps: float, delta: float, sensitivity: float = 1.0, loss: Any = "abs", *, discrete: bool = False
) -> dict[str, AdditiveNoise]:
    """Every published noise that keeps the (eps, delta) promise: those that need eps > 0 or delta > 0 only where it is."""
    steps = "squared" if loss in ("squared", "l2", Power(2)) else "abs"
    out = {}
    for name, kind in (WHOLE_NOISES if discrete else NOISES).items():
        extra = {"steps": steps} if kind is Staircase else {}
        noise = _if_possible(kind, eps, delta, sensitivity=sensitivity, **extra)
        if noise is not None:
            out[name] = noise
    return out

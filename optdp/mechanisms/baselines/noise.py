"""Published additive noise, with the interface of the optimal one. Floats are sampled plainly: baselines to compare with.

Laplace (Dwork et al. 2006), staircase (Geng and Viswanath 2014), truncated Laplacian (Geng, Ding, Guo, Kumar 2020), Gaussian
with analytic (Balle and Wang 2018) or classical calibration, uniform (Geng and Viswanath 2016), and on the integers discrete
Laplace (Ghosh et al. 2009) and discrete Gaussian (Canonne, Kamath and Steinke 2020).

On the line and the integers neighbours are inputs at most `sensitivity` apart. `local` gives the same noise for an interval whose
inputs are all neighbours: local differential privacy, with the width as sensitivity.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Literal, Self

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from optdp.exact import Number, Seed, as_rng, enclosures, number, require
from optdp.exact.numbers import border
from optdp.mechanisms.base import Mechanism, quadrature
from optdp.mechanisms.noise import AdditiveNoise, NormalNoise, StairNoise, Stairs
from optdp.problem import LDP, ApproxDP, DomainLike, Integers, Interval, Line, as_interval
from optdp.problem.losses import Absolute, DistanceLoss, LossLike, Squared
from optdp.problem.privacy import Sensitivity

UNIT = (-1.0, 1.0)

#: Where integers begin to be taken in groups.
GROUPED = 2**16


def truncated_radius(eps: float, delta: float) -> float:
    """Where the truncated Laplacian ends, in sensitivities: log(1 + (e^eps - 1)/(2 delta))/eps (1/(2 delta) for eps = 0).

    >>> round(truncated_radius(1.0, 0.01), 4)
    4.4649
    """
    if eps > 0 and delta < 1e-200:  # the quotient may overflow
        return (math.log(math.expm1(eps)) - math.log(delta) - math.log(2)) / eps
    return math.log1p(math.expm1(eps) / (2 * delta)) / eps if eps > 0 else 1 / (2 * delta)


def staircase_stair(eps: float, steps: str) -> float:
    """Where in each step of one sensitivity the staircase density drops, optimal for "abs" or "squared" loss."""
    if steps == "abs":
        return 1 / (1 + math.exp(eps / 2))
    b = math.exp(-eps)
    return (float(np.cbrt(b * (1 + b) / 2)) - b) / -math.expm1(-eps)


@dataclass(frozen=True, repr=False)
class PublishedNoise(AdditiveNoise):
    """What the noises of this module share.

    **Arguments:** `eps`, `target_delta`: what the noise is calibrated to; `sensitivity`: how far apart neighbours are; `domain`:
    by default the line (the integers, for integer noise), or an `Interval` no wider than the sensitivity.

    **Raises** TypeError or ValueError naming the argument.
    """

    eps: Number
    target_delta: Number = field(default=0.0, metadata={"saved": "delta"})
    sensitivity: Sensitivity = 1.0
    domain: Line | Integers | Interval = None  # type: ignore[assignment]

    needs_eps: ClassVar[bool] = True
    needs_delta: ClassVar[bool] = False
    integral: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if self.domain is None:
            object.__setattr__(self, "domain", Integers() if self.integral else Line())
        super().__post_init__()
        object.__setattr__(self, "eps", require.exact_epsilon(self.eps, zero=not self.needs_eps))
        object.__setattr__(self, "target_delta", number(self.target_delta, "delta"))
        require.real("delta", self._delta, low=0.0, high=1.0, open_low=self.needs_delta, open_high=True)
        width = self.sensitivity
        if not isinstance(self.domain, Integers if self.integral else Line | Interval):
            raise TypeError(f"domain = {self.domain!r} is not allowed: this noise is for other numbers")
        if self.integral and (width != int(width) or width > 10**6):
            allowed = "on the integers it must be an integer up to 10^6"
            raise ValueError(f"sensitivity = {width!r} is not allowed: {allowed}")
        if isinstance(self.domain, Interval) and width < self.domain.exact_width:
            raise ValueError(f"sensitivity = {width!r} is not allowed: on {self.domain} it must be at least the width")

    @classmethod
    def local(cls, eps: Number, domain: DomainLike, delta: Number = 0.0, **options: Any) -> Self:
        """The noise for inputs of an interval that are all neighbours: the sensitivity is its width."""
        area = as_interval(domain, cls.__name__)
        return cls(eps, delta, enclosures.round_up(area.exact_width), area, **options)

    @property
    def _eps(self) -> float:
        return float(self.eps)

    @property
    def _delta(self) -> float:
        return float(self.target_delta)

    def guarantee(self) -> LDP | ApproxDP:
        delta = self.target_delta if self.needs_delta else 0.0
        if isinstance(self.domain, Interval) and delta == 0:
            return LDP(self.eps).in_real_arithmetic()
        return ApproxDP(self.eps, delta, self.sensitivity).in_real_arithmetic()

    def _upper(self, t: np.ndarray) -> np.ndarray:
        """P(Z > t) for t >= 0."""
        raise TypeError("a noise needs a cdf or an upper tail")

    def cdf(self, z: ArrayLike) -> np.ndarray:
        points = np.asarray(z, dtype=float)
        tail = self._upper(np.abs(points))
        return np.where(points >= 0, 1 - tail, tail)

    def partial_loss(self, t: ArrayLike, law: DistanceLoss) -> np.ndarray:
        """int_0^t L(z) f(z) dz for the density f, t >= 0. Default: by adaptive quadrature, as losses may jump."""
        ends = np.ravel(np.asarray(t, dtype=float))
        cuts = ends[:, None] * np.linspace(0, 1, 33)
        rows = quadrature(lambda z, _: np.stack([law(z) * self.noise_density(z * (1 - 1e-15)), 0.0 * z]), cuts, ends)
        return rows[0].reshape(np.shape(t))

    def noise_loss(self, loss: LossLike = "abs") -> float:
        end = min(self.noise_radius(), -float(self.quantile(1e-18)))
        return 2 * float(self.partial_loss(end, self._loss(loss)))

    def __repr__(self) -> str:
        where = f", domain={self.domain}" if isinstance(self.domain, Interval) else ""
        sizes = f"eps={self._eps:g}, delta={self._delta:g}, sensitivity={self.sensitivity:g}"
        return f"{type(self).__name__}({sizes}{where})"


@dataclass(frozen=True, repr=False)
class Laplace(PublishedNoise):
    """Density e^(-|z|/lam)/(2 lam), lam = sensitivity/eps.

    **Source:** Dwork, McSherry, Nissim, Smith, "Calibrating noise to sensitivity in private data analysis" (2006).

        >>> Laplace(0.5).noise_loss("abs")
        2.0
    """

    @property
    def scale(self) -> float:
        """lam."""
        return self.sensitivity / self._eps

    @property
    def _end(self) -> float:
        """P(|Z| > radius) before truncation: 0 here."""
        return math.exp(-self.noise_radius() / self.scale)

    @property
    def _mass(self) -> float:
        return -math.expm1(-self.noise_radius() / self.scale)

    def noise_density(self, z: ArrayLike) -> np.ndarray:
        plain = np.exp(-np.abs(z) / self.scale) / (2 * self.scale)
        return np.where(np.abs(z) <= self.noise_radius(), plain / self._mass, 0.0)

    def _upper(self, t: np.ndarray) -> np.ndarray:
        return np.maximum(np.exp(-t / self.scale) - self._end, 0.0) / (2 * self._mass)

    def quantile(self, level: ArrayLike) -> np.ndarray:
        sign, tail = self._levels(level)
        return -sign * self.scale * np.log(2 * tail * self._mass + self._end)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.laplace(0.0, self.scale, shape)

    def partial_loss(self, t: ArrayLike, law: DistanceLoss) -> np.ndarray:
        from scipy.special import gammainc

        near, q = np.minimum(t, self.noise_radius()), law.exponent
        if q is None:
            return super().partial_loss(near, law)
        return self.scale**q / 2 * math.gamma(q + 1) * gammainc(q + 1, near / self.scale) / self._mass

    def noise_loss(self, loss: LossLike = "abs") -> float:
        law = self._loss(loss)
        if (q := law.exponent) is None:
            return super().noise_loss(law)
        return float(math.gamma(q + 1) * self.scale**q)

    def delta(self, eps: float) -> float:
        return max(0.0, -math.expm1((require.epsilon(eps, zero=True) - self._eps) / 2))


class PublishedStairs(StairNoise, PublishedNoise):
    """Published noise with a density that is constant on steps."""

    def partial_loss(self, t: ArrayLike, law: DistanceLoss) -> np.ndarray:
        far = np.asarray(t, dtype=float)
        ends, heights = self._law.pieces(float(np.max(far, initial=0.0)))
        ends = np.minimum(ends, far[..., None])
        masses = heights * np.diff(ends, axis=-1)
        return np.asarray(np.sum(masses * law.between(ends[..., :-1], ends[..., 1:]), axis=-1))

    def noise_loss(self, loss: LossLike = "abs") -> float:
        ends, heights = self._law.pieces()
        return float(2 * (heights * np.diff(ends)) @ self._loss(loss).between(ends[:-1], ends[1:]))


@dataclass(frozen=True, repr=False)
class Staircase(PublishedStairs):
    """The staircase density: on each sensitivity a high part (share gamma) and a low one (e^-eps as high).

    **Arguments:** as `PublishedNoise`; `steps`: picks gamma for "abs" or for "squared" loss, for which the noise is then optimal
    among all eps-private noise.

    **Source:** Geng and Viswanath, "The optimal noise-adding mechanism in differential privacy" (2014).
    """

    steps: Literal["abs", "squared"] = "abs"

    @property
    def gamma(self) -> float:
        """Where in each step the density drops."""
        return staircase_stair(self._eps, self.steps)

    @cached_property
    def _law(self) -> Stairs:
        b, g = math.exp(-self._eps), self.gamma
        return Stairs(self.sensitivity * np.array([0.0, g, 1.0]), np.array([g, b * (1 - g)]), fall=b)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        g, b = self.gamma, math.exp(-self._eps)
        step = rng.geometric(-math.expm1(-self._eps), shape) - 1
        low = rng.random(shape) >= g / (g + b * (1 - g))
        inside = np.where(low, g + (1 - g) * rng.random(shape), g * rng.random(shape))
        return rng.choice((-1.0, 1.0), shape) * (step + inside) * self.sensitivity

    def delta(self, eps: float) -> float:
        # The divergence is piecewise linear in the shift, with kinks where breakpoints meet.
        e = math.exp(require.epsilon(eps, zero=True))
        if eps >= self._eps:
            return 0.0
        g, (edges, _) = self.gamma, self._law.pieces()
        kinks = (abs(a + s * c) for a in (0, g, -g) for c in (0, g, 2 * g) for s in (1, -1))
        shifts = {round(kink % 1, 15) or 1.0 for kink in kinks} | {1.0}
        line = np.concatenate([-edges[:0:-1], edges])
        worst = 0.0
        for d in (u * self.sensitivity for u in shifts):
            cuts = np.unique(np.concatenate([line, line - d]))
            middle = (cuts[:-1] + cuts[1:]) / 2
            gain = np.maximum(self.noise_density(middle) - e * self.noise_density(middle + d), 0.0)
            worst = max(worst, float(gain @ np.diff(cuts)))
        return worst


@dataclass(frozen=True, repr=False)
class TruncatedLaplacian(Laplace):
    """Laplace noise of scale sensitivity/eps, truncated at lam log(1 + (e^eps - 1)/(2 delta)), where delta allows it.

    **Source:** Geng, Ding, Guo, Kumar, "Tight analysis of privacy and utility tradeoff in approximate differential privacy"
    (2020).
    """

    needs_delta = True

    def noise_radius(self) -> float:
        return self.sensitivity * truncated_radius(self._eps, self._delta)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return self.quantile(np.clip(rng.random(shape), 1e-300, 1 - 2.0**-53))

    def noise_loss(self, loss: LossLike = "abs") -> float:
        law = self._loss(loss)
        q = law.exponent
        if q not in (1, 2):
            return 2 * float(self.partial_loss(self.noise_radius(), law))
        # Without the cancellation of the incomplete gamma function for small epsilon:
        u = math.expm1(self._eps) / (2 * self._delta)
        x = math.log1p(u)  # E Z^q = lam^q q! (1 - sum_(k=1..q) x^k/k!/u)
        if x > 0.05:
            share = x / u if q == 1 else (x * x / 2 + x) / u
            return float(self.scale**q * math.factorial(int(q)) * (1 - share))
        series = sum((-x) ** k / math.factorial(k) / (k + q + 1) for k in range(12))
        return float(self.scale**q * x ** (q + 1) * series / self._mass)

    def delta(self, eps: float) -> float:
        eps = require.epsilon(eps, zero=True)
        # Tails are those on the left, which keep their digits.
        if eps >= self._eps:
            return float(self.cdf(self.sensitivity - self.noise_radius()))
        # Beyond it the likelihood ratio exceeds e^eps, or the other distribution has ended.
        start = min(eps * self.scale - self.sensitivity, 2 * (self.noise_radius() - self.sensitivity)) / 2
        return float(self.cdf(-start) - math.exp(eps) * self.cdf(-start - self.sensitivity))


@dataclass(frozen=True, repr=False)
class Gaussian(NormalNoise, PublishedNoise):
    """Gaussian noise, by default of the least standard deviation that is (eps, delta)-private, to the last bit.

    delta(sigma) = Phi(1/(2 s) - eps s) - e^eps Phi(-1/(2 s) - eps s), s = sigma/sensitivity, is evaluated in ball
    arithmetic; `sigma` is the least float (in units of the sensitivity) for which it is provably at most delta.

    **Arguments:** as `PublishedNoise`; `calibration`: "analytic", or "classical": sigma = sqrt(2 ln(1.25/delta)) sensitivity/eps,
    which is proven to be enough for eps <= 1 only. `guarantee()` computes its delta at eps, whatever the formula says.

    **Source:** Balle and Wang, "Improving the Gaussian mechanism for differential privacy" (2018); classical: Dwork and Roth,
    "The algorithmic foundations of differential privacy" (2014), Appendix A.
    """

    calibration: Literal["analytic", "classical"] = "analytic"

    needs_eps = False
    needs_delta = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.calibration == "classical":
            require.epsilon(self._eps)

    @classmethod
    def classical(cls, eps: Number, delta: Number, sensitivity: float = 1.0) -> Gaussian:
        """With the classical formula in place of the least standard deviation."""
        return cls(eps, delta, sensitivity, calibration="classical")

    def guarantee(self) -> LDP | ApproxDP:
        if self.calibration == "analytic":
            return super().guarantee()
        return ApproxDP(self.eps, self.delta(self.eps), self.sensitivity, ideal=True)

    @staticmethod
    def _profile(s: Any, eps: Number) -> Any:
        x, e = arb(s), enclosures.ball(eps)
        root = arb(2).sqrt()
        half = 1 / (2 * x)
        return ((e * x - half) / root).erfc() / 2 - e.exp() * ((e * x + half) / root).erfc() / 2

    @cached_property
    def sigma(self) -> float:
        """Standard deviation."""
        if self.calibration == "classical":
            return math.sqrt(2 * math.log(1.25 / self._delta)) * self.sensitivity / self._eps
        with ctx.workprec(enclosures.PRECISION + 200):
            target = enclosures.ball(self.target_delta)

            def private(s: float) -> bool:
                return bool(self._profile(s, self.eps) <= target)

            high = 1.0
            while not private(high):
                high *= 2
            low = high / 2
            while private(low):
                low /= 2
            _, high = border(lambda s: not private(s), low, high)
        return math.nextafter(high * self.sensitivity, math.inf) if self.sensitivity != 1 else high

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.normal(0.0, self.sigma, shape)

    def noise_loss(self, loss: LossLike = "abs") -> float:
        law = self._loss(loss)
        return super().noise_loss(law) if law.exponent is None else self._normal_moment(law.exponent)

    def delta(self, eps: Number) -> float:
        with ctx.workprec(enclosures.PRECISION + 200):
            ratio = enclosures.ball(self.sigma) / enclosures.ball(self.sensitivity)
            return enclosures.round_up(self._profile(ratio, require.exact_epsilon(eps, zero=True)))


@dataclass(frozen=True, repr=False)
class UniformNoise(PublishedStairs):
    """Uniform noise over a width of sensitivity/delta: (0, delta)-private, hence (eps, delta)-private for every eps.

    **Source:** Geng and Viswanath, "Optimal noise adding mechanisms for approximate differential privacy" (2016).
    """

    needs_eps = False
    needs_delta = True

    def guarantee(self) -> LDP | ApproxDP:
        return ApproxDP(0.0, self.target_delta, self.sensitivity, ideal=True)

    def noise_radius(self) -> float:
        return self.sensitivity / self._delta / 2

    @cached_property
    def _law(self) -> Stairs:
        return Stairs(np.array([0.0, self.noise_radius()]), np.ones(1))

    def noise_loss(self, loss: LossLike = "abs") -> float:
        law, r = self._loss(loss), self.noise_radius()
        with np.errstate(over="ignore"):  # r is the larger the smaller delta is, and its squares are beyond all floats
            if (q := law.exponent) is None:
                return super().noise_loss(law)
            return float(np.power(r, q) / (q + 1))

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return rng.uniform(-self.noise_radius(), self.noise_radius(), shape)

    def delta(self, eps: float) -> float:
        require.epsilon(eps, zero=True)
        return min(1.0, self._delta)


class Tabulated(StairNoise):
    """Noise on the integers, by its masses down to a negligible tail."""

    @cached_property
    def _law(self) -> Stairs:
        ends = np.append(0.0, np.arange(self._half.size) + 0.5)
        return Stairs(ends, np.append(self._half[0] / 2, self._half[1:]))

    @cached_property
    def _half(self) -> np.ndarray:
        """P(Z = 0), P(Z = 1), ..."""
        raise TypeError("a base class")

    @cached_property
    def _sums(self) -> np.ndarray:
        """P(|Z| <= a)."""
        return np.cumsum(np.concatenate([self._half[:1], 2 * self._half[1:]]))

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        distance = np.minimum(np.searchsorted(self._sums, rng.random(shape), side="right"), self._sums.size - 1)
        return rng.choice((-1.0, 1.0), shape) * distance + 0.0

    def noise_loss(self, loss: LossLike = "abs") -> float:
        values = np.asarray(self._loss(loss)(np.arange(self._half.size) * 1.0), dtype=float)
        return float(self._half[0] * values[0] + 2 * (self._half[1:] @ values[1:]))

    def delta(self, eps: float) -> float:
        e = math.exp(require.epsilon(eps, zero=True))
        return max(_divergence(self._half, s, e) for s in range(1, int(self.sensitivity) + 1))


@dataclass(frozen=True, repr=False)
class IntegerNoise(Tabulated, PublishedNoise):
    """Published noise on the integers."""

    integral = True

    @cached_property
    def grouped(self) -> tuple[np.ndarray, np.ndarray]:
        """(places, masses) of the law, down to a negligible tail: far out, of groups of integers at their middles.

        Groups are 2^-12 of their distance wide: smooth losses are averaged to seven digits at every eps above 1e-8.
        """
        first, far = np.arange(1.0, GROUPED), max(-float(self.quantile(1e-19)), 1.0)
        if far > GROUPED:
            count = math.ceil(math.log(far / GROUPED) * 2**12) + 1
            first = np.append(first, np.rint(np.geomspace(GROUPED, far, count)))
        last = np.append(first[1:], math.inf) - 1
        middle, masses = (first + np.append(last[:-1], first[-1])) / 2, self.cdf(-first) - self.cdf(-last - 1)
        zero = np.array([float(self.noise_probability(0))])
        return np.concatenate([-middle[::-1], [0.0], middle]), np.concatenate([masses[::-1], zero, masses])


def _divergence(half: np.ndarray, shift: int, ratio: float) -> float:
    line = np.concatenate([np.zeros(shift), half[:0:-1], half, np.zeros(shift)])
    return float(np.maximum(line[:-shift] - ratio * line[shift:] * (1 - 1e-14), 0.0).sum())


@dataclass(frozen=True, repr=False)
class DiscreteLaplace(IntegerNoise):
    """P(Z = k) proportional to e^(-eps |k|/sensitivity).

    **Source:** Ghosh, Roughgarden, Sundararajan, "Universally utility-maximizing privacy mechanisms" (2009).
    """

    @property
    def rate(self) -> float:
        """eps/sensitivity."""
        return self._eps / self.sensitivity

    @cached_property
    def _law(self) -> Stairs:
        fall = math.exp(-self.rate)
        return Stairs(np.array([0.0, 0.5, 1.5]), np.array([0.5, fall]), start=0.5, fall=fall)

    @cached_property
    def _half(self) -> np.ndarray:
        return self._law.pieces()[1]

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        drop = -math.expm1(-self.rate)
        return (rng.geometric(drop, shape) - rng.geometric(drop, shape)) * 1.0

    def noise_loss(self, loss: LossLike = "abs") -> float:
        law = self._loss(loss)
        if law == Absolute:
            return 1 / math.sinh(self.rate)
        if law == Squared:
            return 0.5 / math.sinh(self.rate / 2) ** 2
        places, masses = self.grouped
        return float(masses @ np.asarray(law(np.abs(places)), dtype=float))

    def delta(self, eps: float) -> float:
        return 0.0 if eps >= self._eps else super().delta(eps)


@dataclass(frozen=True, repr=False)
class DiscreteGaussian(IntegerNoise):
    """P(Z = k) proportional to e^(-k^2/(2 sigma^2)), sigma calibrated numerically to (eps, delta).

    **Source:** Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy" (2020).
    """

    needs_eps = False
    needs_delta = True

    def _masses(self, sigma: float) -> np.ndarray:
        # Down to a share of e^-40 of delta: what lies beyond, a shift moves to where there is nothing else.
        reach = max(14.0, math.sqrt(2 * (40 - math.log(self._delta))))
        weights = np.exp(-np.square(np.arange(math.ceil(reach * sigma) + 2) / sigma) / 2)
        return weights / (2 * weights.sum() - weights[0])

    @cached_property
    def sigma(self) -> float:
        """The parameter, found by bisection from above (the standard deviation is slightly less)."""
        ratio, shift = math.exp(self._eps), int(self.sensitivity)

        def private(sigma: float) -> bool:
            half = self._masses(sigma)  # floats of e^-700 and their sums are wrong by a share of 1e-10 at most
            most = max(_divergence(half, s, ratio) for s in {1, shift // 2 or 1, shift})
            return most <= self._delta * (1 - 1e-9)

        high = Gaussian(self.eps, self.target_delta, self.sensitivity).sigma * 1.01 + 0.1
        while not private(high):
            high *= 1.1
        return border(lambda sigma: not private(sigma), high / 4, high, 1e-14 * high)[1]

    @cached_property
    def _half(self) -> np.ndarray:
        return self._masses(self.sigma)


def _tabled(law: Callable[[np.ndarray], np.ndarray], places: np.ndarray) -> np.ndarray:
    """law(places), for integers: at each of those between the ends once, where these are fewer than `places`."""
    if not places.size or not (places.max() - (first := places.min())) < places.size:
        return law(places)
    return law(np.arange(first, places.max() + 1))[(places - first).astype(np.intp)]


@dataclass(frozen=True)
class LatticeNoise(Mechanism):
    """Integer noise on a lattice of `noise.sensitivity` steps across an interval, after rounding the input to it at random.

    Rounding to the two neighbours with the weights that keep the mean makes it unbiased (noise on a shifted lattice would give
    the input away).

    **Arguments:** `noise`: an `IntegerNoise`; `domain`: an `Interval`; `clamped`: whether outputs are clamped to the domain,
    which is post-processing, bounded, and biased.
    """

    noise: IntegerNoise
    domain: Interval
    clamped: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", as_interval(self.domain, "a lattice"))
        super().__post_init__()

    @property
    def steps(self) -> int:
        """Steps of the lattice across the domain."""
        return int(self.noise.sensitivity)

    @property
    def step(self) -> float:
        """Distance of lattice points."""
        return self.domain.width / self.steps

    def guarantee(self) -> LDP | ApproxDP:
        own = self.noise.guarantee()
        assert isinstance(own, ApproxDP)
        wide = enclosures.round_up(self.domain.exact_width)
        return ApproxDP(own.eps, own.delta, wide, ideal=True) if own.delta else LDP(own.eps, ideal=True)

    def _place(self, x: Any) -> np.ndarray:
        return (self.domain.check(x) - self.domain.lower) / self.step

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        rng, place = as_rng(rng), self._place(x)
        low = np.floor(place)
        out = low + (rng.random(place.shape) < place - low) + self.noise.sample(place.shape, rng)
        return self.domain.lower + (np.clip(out, 0, self.steps) if self.clamped else out) * self.step

    def _mass(self, index: np.ndarray, x: Any) -> np.ndarray:
        """P(Y is the lattice point of this index | x)."""
        place = self._place(x)
        low = np.floor(place)

        def mass(start: np.ndarray) -> np.ndarray:
            places = np.asarray(index - start)
            found = np.array(_tabled(self.noise.noise_probability, places))
            if not self.clamped:
                return found
            for end, sign in ((0, 1), (self.steps, -1)):  # P(Z >= j) = P(Z <= -j)
                there = np.broadcast_to(index == end, found.shape)
                found[there] = _tabled(self.noise.cdf, sign * places[there])
            return np.where((index >= 0) & (index <= self.steps), found, 0.0)

        return (1 - place + low) * mass(low) + (place - low) * mass(low + 1)

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        outputs = require.reals(y, "y")
        node = (outputs - self.domain.lower) / self.step
        index = np.rint(node)
        # Far from 0 a point of the lattice is rounded to a float that may be many times 1e-9 of a step away.
        rounding = np.spacing(np.maximum(np.abs(outputs), abs(self.domain.lower))) / self.step
        return np.where(np.abs(node - index) < 1e-9 * (1 + np.abs(node)) + rounding, self._mass(index, x), 0.0)

    def atoms(self) -> np.ndarray:
        """Lattice points in the domain (without clamping there are more, on both sides)."""
        return self.domain.lower + self.step * np.arange(self.steps + 1)

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        return (self.domain.lower, self.domain.upper) if self.clamped else (-math.inf, math.inf)

    def mean(self, x: ArrayLike) -> np.ndarray:
        inputs = self.domain.check(x)
        return inputs + self._bias(inputs)

    def _bias(self, inputs: np.ndarray) -> np.ndarray:
        if not self.clamped:
            return np.zeros(inputs.shape)
        masses = self._mass(np.arange(self.steps + 1), inputs[..., None])
        return np.asarray(np.sum(masses * (self.atoms() - inputs[..., None]), axis=-1))

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        law, inputs = self._loss(loss), self.domain.check(x)
        if law in (Absolute, Squared) and not self.clamped:  # E|Z - s| = E|Z| + s P(Z = 0) for s in [0, 1]
            share = np.mod(self._place(inputs), 1.0)
            each = 1.0 if law == Squared else 2 * float(self.noise.noise_probability(0))
            return self.step**law.exponent * (self.noise.noise_loss(law) + each * share * (1 - share))
        if self.clamped:
            masses = self._mass(np.arange(self.steps + 1), inputs[..., None])
            return np.sum(masses * law.of(inputs[..., None], self.atoms()), axis=-1)
        jumps, masses = self.noise.grouped
        place = self._place(inputs)
        low = np.floor(place)

        def mean(x: float, start: float) -> float:
            return float(masses @ law.of(x, self.domain.lower + self.step * (start + jumps)))

        both = np.vectorize(lambda x, start, up: (1 - up) * mean(x, start) + up * mean(x, start + 1))
        return np.asarray(both(inputs, low, place - low))

    def _loss(self, loss: Any) -> Any:
        return super()._loss(loss) if self.clamped else self.noise._loss(loss)


def laplace(eps: Number, domain: DomainLike = UNIT) -> Laplace:
    """Laplace noise of scale width/eps, eps-LDP on an interval.

    >>> float(laplace(1.0, (0, 2)).variance(0.5))
    8.0
    """
    return Laplace.local(eps, domain)


def gaussian(eps: Number, domain: DomainLike = UNIT, delta: Number = 1e-5) -> Gaussian:
    """Gaussian noise on an interval with the classical calibration, as the composite paper's baseline (its Eq. 5)."""
    return Gaussian.local(eps, domain, delta, calibration="classical")


def discrete_laplace(eps: Number, domain: DomainLike = UNIT, steps: int = 100) -> LatticeNoise:
    """Discrete Laplace noise on a lattice of `steps` steps across an interval: unbiased, eps-LDP."""
    steps = require.integer("steps", steps, low=1, high=10**6)
    return LatticeNoise(DiscreteLaplace(eps, 0.0, steps), as_interval(domain))

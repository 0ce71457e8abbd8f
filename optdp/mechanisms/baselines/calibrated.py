"""Published noises made to keep a Gaussian-DP, Renyi, KL or profile guarantee, with the proof of each calibration.

**Gaussian** noise of standard deviation Delta/mu is mu-GDP by definition, and so is its rounding to the integers where neighbours
differ by integers, which is post-processing that moves with the input. What mu-GDP implies (`Privacy.implied_by`) gives the rest.
**Discrete Gaussian** noise has Renyi divergences of at most alpha mu^2/2 at every order (Canonne, Kamath and Steinke).

**Laplace** noise of scale Delta/eps: the divergences at shift t (in scales, t <= eps) grow with t, and are known in closed form,

- KL: t + e^-t - 1; Renyi moment: (alpha e^((alpha-1)t) + (alpha-1) e^(-alpha t))/(2 alpha - 1), whose derivative in t is >= 0;
- delta(e) = 1 - e^((e - t)/2);
- GDP: eps <= -2 log(2 Phi(-mu/2)). The test at level e^-a/2, 0 <= a <= eps, has power 1 - e^(a-eps)/2, so that mu must be at
  least h(a) + h(eps - a), h(a) = Phi^-1(1 - e^-a/2); h is concave (its derivative is the Mills ratio at h, which falls), so
  that the sum is largest at a = eps/2. At levels outside the likelihood ratio is constant, and the Gaussian's curve, which is
  concave, is above.

**All others** are built for one pair (eps, delta) that implies the notion: the guarantee of the pair is theirs, the notion
follows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from flint import ctx
from numpy.typing import ArrayLike

from optdp.exact import OPTIONAL, Number, Within, enclosures, require
from optdp.exact.numbers import border
from optdp.mechanisms.baselines.noise import Gaussian, Laplace, Tabulated
from optdp.mechanisms.noise import NormalNoise
from optdp.problem import GDP, KL, RDP, ApproxDP, Integers, Line, LossLike, Privacy, Problem, Profile
from optdp.problem.privacy import Divergence, Sensitivity, gauss_tail

#: The largest standard deviation on the integers.
WIDEST = 10**6
#: The least eps of noise that is summed up step by step.
LEAST = 1e-4


@dataclass(frozen=True, repr=False)
class GaussianNoise(NormalNoise, Tabulated):
    """N(0, (sensitivity/mu)^2); on the integers rounded to the nearest one, or the discrete Gaussian with this parameter.

    **Arguments:** `mu` in (0, 8]; `sensitivity`; `domain`: a `Line` or the `Integers`; `kind`: "gaussian", or "discrete"
    (integers); `order`: at which `guarantee()` of the discrete one states its Renyi divergence; 1: KL.

    **Source:** Dong, Roth, Su, "Gaussian differential privacy" (2022); "discrete": Canonne, Kamath, Steinke, "The discrete
    Gaussian for differential privacy" (2020).

        >>> import optdp
        >>> noise = GaussianNoise(0.5)
        >>> noise.sigma, noise.satisfies(optdp.RDP(4, 0.5).in_real_arithmetic())
        (2.0, True)
    """

    mu: Number
    sensitivity: Sensitivity = 1.0
    domain: Line | Integers = field(default_factory=Line)
    kind: Literal["gaussian", "discrete"] = "gaussian"
    order: Annotated[Number, Within(1.0, 1e4)] = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "mu", GDP(self.mu, self.sensitivity).mu)
        if self.kind == "discrete" and not self.discrete:
            raise ValueError(f"kind = {self.kind!r} is not allowed on the line: it is noise on the integers")
        if self.discrete and (self.sensitivity != int(self.sensitivity) or self.sigma > WIDEST):
            raise ValueError(
                f"sensitivity = {self.sensitivity!r} is not allowed: on the integers it must be one, at most {WIDEST} mu"
            )

    @cached_property
    def sigma(self) -> float:
        """sensitivity/mu, rounded up."""
        with ctx.workprec(enclosures.PRECISION):
            return enclosures.round_up(enclosures.ball(self.sensitivity) / enclosures.ball(self.mu))

    def guarantee(self) -> Privacy:
        """mu-GDP; of the discrete Gaussian, whose trade-off curve is another one, a Renyi divergence of order * mu^2/2."""
        if self.kind == "gaussian":
            return GDP(self.mu, self.sensitivity, ideal=True)
        with ctx.workprec(enclosures.PRECISION):
            bound = enclosures.round_up(enclosures.ball(self.order) * enclosures.ball(self.mu) ** 2 / 2)
        if self.order == 1:
            return KL(bound, self.sensitivity, ideal=True)
        return RDP(self.order, bound, self.sensitivity, ideal=True)

    @cached_property
    def _half(self) -> np.ndarray:
        """P(Z = 0), P(Z = 1), ... on the integers, down to a negligible tail."""
        from scipy.special import ndtr

        k = np.arange(math.ceil(14 * self.sigma) + 3)
        if self.kind == "gaussian":  # from the nearer tail, where no digits are lost
            upper = ndtr(-(k - 0.5) / self.sigma)
            return np.concatenate([[1 - 2 * upper[1]], upper[1:-1] - upper[2:]])
        weights = np.exp(-np.square(k / self.sigma) / 2)
        return weights / (2 * weights.sum() - weights[0])

    def noise_density(self, z: ArrayLike) -> np.ndarray:
        return np.zeros(np.shape(z)) if self.discrete else super().noise_density(z)

    def noise_probability(self, z: ArrayLike) -> np.ndarray:
        return super().noise_probability(z) if self.discrete else np.zeros(np.shape(z))

    def cdf(self, z: ArrayLike) -> np.ndarray:
        return Tabulated.cdf(self, z) if self.discrete else super().cdf(z)

    def quantile(self, level: ArrayLike) -> np.ndarray:
        return Tabulated.quantile(self, level) if self.discrete else super().quantile(level)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        if self.kind == "gaussian":
            drawn = rng.normal(0.0, self.sigma, shape)
            return np.rint(drawn) + 0.0 if self.discrete else drawn
        return super().sample(shape, rng)

    def noise_loss(self, loss: LossLike = "abs") -> float:
        law = self._loss(loss)
        if self.discrete:
            return super().noise_loss(law)
        if law.exponent is None:
            from scipy.integrate import quad

            end = 40 * self.sigma
            return float(2 * quad(lambda z: float(law(z)) * float(self.noise_density(z)), 0, end, limit=400)[0])
        return self._normal_moment(law.exponent)

    def delta(self, eps: float) -> float:
        own = ApproxDP(eps, 0.5, self.sensitivity).eps
        if self.kind == "gaussian":
            return enclosures.round_up(GDP(self.mu, self.sensitivity).delta_at(own))
        return super().delta(float(own))

    def __repr__(self) -> str:
        kind = "discrete" if self.kind == "discrete" else "rounded" if self.discrete else "plain"
        return f"GaussianNoise(mu={float(self.mu):g}, sensitivity={self.sensitivity:g}, {kind})"


def laplace_keeps(eps: float, notion: Privacy) -> bool:
    """Whether Laplace noise of scale sensitivity/eps is proven to keep the notion for this sensitivity."""
    with ctx.workprec(enclosures.PRECISION):
        t = enclosures.ball(eps)
        if isinstance(notion, KL):
            return bool(t + (-t).exp() - 1 <= enclosures.ball(notion.bound))
        if isinstance(notion, RDP):
            a = enclosures.ball(notion.alpha)
            return bool((a * ((a - 1) * t).exp() + (a - 1) * (-a * t).exp()) / (2 * a - 1) <= notion.limit())
        if isinstance(notion, GDP):
            return bool((-t / 2).exp() >= 2 * gauss_tail(enclosures.ball(notion.mu) / 2))
        assert isinstance(notion, Profile)
        return all(
            bool(1 - ((enclosures.ball(e) - t) / 2).exp() <= enclosures.ball(delta)) for e, delta in notion.pairs
        )


@dataclass(frozen=True, repr=False)
class CalibratedLaplace(Laplace):
    """Laplace noise whose eps is the largest that is proven to keep a notion; `guarantee()` is that notion.

    **Arguments:** as `Laplace`; `notion`: a `GDP`, `RDP`, `KL` or `Profile` for the same sensitivity, which must hold.

        >>> import optdp
        >>> round(laplace(optdp.GDP(1.0)).noise_loss("abs"), 4)
        1.0357
    """

    notion: Privacy | None = field(default=None, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        super().__post_init__()
        own: Any = self.notion
        if not isinstance(own, GDP | RDP | KL | Profile) or own.sensitivity != self.sensitivity:
            raise TypeError(f"notion = {own!r} is not allowed: it must be GDP, RDP, KL or Profile for this sensitivity")
        if not laplace_keeps(self._eps, own):
            raise ValueError(f"eps = {self.eps!r} is not allowed: this noise is not proven to be {own.adjective}")

    def guarantee(self) -> Any:
        assert self.notion is not None
        return self.notion.in_real_arithmetic()


def largest(keeps: Callable[[float], bool], high: float, least: float = 0.0) -> float | None:
    """About the largest float up to `high` with `keeps`, which must hold below wherever it holds; None if it is below `least`."""
    least, low = max(least, 1e-9 * high), high
    while not keeps(low):
        if low == least:
            return None
        low, high = max(low / 2, least), low
    return border(keeps, low, high)[0]


def laplace(notion: Divergence) -> CalibratedLaplace | None:
    """Laplace noise for the notion."""
    eps = largest(lambda e: laplace_keeps(e, notion), require.MAX_EPS)
    return None if eps is None else CalibratedLaplace(eps, 0.0, notion.sensitivity, notion=notion)


def gaussian(problem: Problem) -> GaussianNoise | None:
    """Gaussian noise for the notion; on the integers rounded."""
    notion: Any = problem.privacy
    if isinstance(notion, Profile):  # the analytic calibration of each pair: the largest sigma
        if any(delta == 0 for _, delta in notion.pairs):
            return None
        sigma = max(Gaussian(eps, delta).sigma for eps, delta in notion.pairs)
        mu = min(8.0, 1 / sigma)
        while notion.implied_by(GDP(mu, notion.sensitivity)) is not True:
            mu = math.nextafter(mu, 0.0)
        return _of(mu, problem)
    return _of(largest(lambda m: notion.implied_by(GDP(m, notion.sensitivity)) is True, 8.0), problem)


def _of(mu: float | None, problem: Problem, **more: Any) -> GaussianNoise | None:
    """None where integer noise would be too wide to be tabulated."""
    width, domain = getattr(problem.privacy, "sensitivity", 1.0), problem.domain
    if mu is None or (isinstance(domain, Integers) and width > (1 - 1e-9) * WIDEST * mu):
        return None
    return GaussianNoise(mu, width, domain, **more)


def discrete_gaussian(problem: Problem) -> GaussianNoise | None:
    """Discrete Gaussian noise for a Renyi or KL bound: mu^2 = 2 bound/order."""
    notion: Any = problem.privacy
    order = getattr(notion, "alpha", 1)

    def made(mu: float) -> GaussianNoise:
        return GaussianNoise(mu, notion.sensitivity, problem.domain, "discrete", order)

    least = notion.sensitivity / WIDEST * (1 + 1e-6)
    mu = largest(lambda m: notion.in_real_arithmetic().implied_by(made(m).guarantee()) is True, 8.0, least)
    return None if mu is None else made(mu)


def pure(notion: Any) -> ApproxDP | None:
    """The (eps, 0)-differential privacy with the largest eps that is proven to imply the notion."""
    eps = largest(lambda e: notion.implied_by(ApproxDP(e, 0.0, notion.sensitivity)) is True, require.MAX_EPS, LEAST)
    return None if eps is None else ApproxDP(eps, 0.0, notion.sensitivity)


def pairs(notion: Any) -> list[ApproxDP]:
    """(eps, delta) with delta > 0 that imply a profile: each of its eps with the least delta from there on, if that is enough."""
    if not isinstance(notion, Profile):
        return []
    deltas: list[Any] = [delta for _, delta in notion.pairs]
    least = [min(map(Fraction, deltas[j:])) for j in range(len(deltas))]
    made = [ApproxDP(eps, d, notion.sensitivity) for (eps, _), d in zip(notion.pairs, least, strict=True) if d > 0]
    return [pair for pair in made if notion.implied_by(pair) is True]

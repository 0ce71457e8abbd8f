"""Additive noise with the output clamped to the domain: what OGPM calls Laplace and staircase "+ truncation".

Noise Z is symmetric with scale set by the width of the domain; the output min(max(x + Z, a), b) has atoms at both ends.
The expected loss is G(x - a) + G(b - x) with G(t) = E[L(min(Z, t)); Z > 0] = int_0^t L f + L(t) P(Z > t), f the density of Z.
"""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import Fields, Number, Seed, as_rng, require
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines.noise import UNIT, Laplace, LatticeNoise, PublishedNoise, Staircase, discrete_laplace
from optdp.problem import LDP, Absolute, ApproxDP, DistanceLoss, DomainLike, Interval, LossLike


@dataclass(frozen=True, repr=False)
class Clamped(Mechanism):
    """x -> min(max(x + Z, a), b) on the interval [a, b]: clamping is post-processing, and makes noise bounded and biased.

    **Arguments:** `noise`: published noise whose domain is an `Interval` (`Laplace.local(eps, domain)`).
    """

    noise: PublishedNoise
    kind: ClassVar[type[Any]] = PublishedNoise

    def __post_init__(self) -> None:
        if not isinstance(self.noise, self.kind) or not isinstance(self.noise.domain, Interval):
            kind = self.kind.__name__
            raise TypeError(f"noise = {self.noise!r} is not allowed: it must be {kind} noise on an Interval")

    @property
    def domain(self) -> Interval:
        return self.noise.domain  # type: ignore[return-value]

    @property
    def eps(self) -> Number:
        """What the noise is calibrated to."""
        return self.noise.eps

    def guarantee(self) -> LDP | ApproxDP:
        return self.noise.guarantee()

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs = self.domain.check(x)
        return np.clip(inputs + self.noise.sample(inputs.shape, as_rng(rng)), self.domain.lower, self.domain.upper)

    def density(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        outputs = require.reals(y, "y")
        inside = (outputs > self.domain.lower) & (outputs < self.domain.upper)
        return np.where(inside, self.noise.noise_density(outputs - self.domain.check(x)), 0.0)

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        inputs, outputs = self.domain.check(x), require.reals(y, "y")
        low = np.where(outputs == self.domain.lower, self.noise.cdf(self.domain.lower - inputs), 0.0)
        return low + np.where(outputs == self.domain.upper, self.noise.cdf(inputs - self.domain.upper), 0.0)

    def cumulative(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        outputs = require.reals(y, "y")
        inside = np.where(outputs < self.domain.lower, 0.0, self.noise.cdf(outputs - self.domain.check(x)))
        return np.where(outputs < self.domain.upper, inside, 1.0)

    def atoms(self) -> np.ndarray:
        return np.array([self.domain.lower, self.domain.upper])

    def _one_sided(self, t: np.ndarray, law: DistanceLoss) -> np.ndarray:
        """G(t) for t in [0, width]."""
        return self.noise.partial_loss(t, law) + law(t) * self.noise.cdf(-t)

    def mean(self, x: ArrayLike) -> np.ndarray:
        inputs = self.domain.check(x)
        return inputs + self._bias(inputs)

    def _bias(self, inputs: np.ndarray) -> np.ndarray:
        up, down = self.domain.upper - inputs, inputs - self.domain.lower
        return np.asarray(self._one_sided(up, Absolute) - self._one_sided(down, Absolute))

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        inputs, law = self.domain.check(x), self._loss(loss)
        if law.form != "distance":
            return super().expected_loss(inputs, law)
        return self._one_sided(inputs - self.domain.lower, law) + self._one_sided(self.domain.upper - inputs, law)

    @classmethod
    def _read(cls, fields: Fields) -> Self:
        made = object.__new__(cls)  # subclasses are made from other arguments
        Clamped.__init__(made, Mechanism.read(fields.child("noise")))  # type: ignore[arg-type]
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}(eps={float(self.eps):g}, domain={self.domain})"


class ClampedLaplace(Clamped):
    """Laplace noise of scale width/eps, output clamped to the domain.

    >>> ClampedLaplace(1.0).support()
    (0.0, 1.0)
    """

    kind = Laplace

    def __init__(self, eps: Number, domain: DomainLike = (0.0, 1.0)) -> None:
        super().__init__(Laplace.local(eps, domain))


class ClampedStaircase(Clamped):
    """Staircase noise for sensitivity = width, output clamped to the domain.

    **Arguments:** `eps`; `domain`; `steps`: the stair that is optimal before clamping, for "abs" or for "squared" loss.
    """

    kind = Staircase

    def __init__(self, eps: Number, domain: DomainLike = (0.0, 1.0), steps: str = "abs") -> None:
        super().__init__(Staircase.local(eps, domain, steps=steps))

    @property
    def gamma(self) -> float:
        return self.noise.gamma  # type: ignore[attr-defined]

    def _kinks(self) -> list[float]:
        drop = self.gamma * self.domain.width
        return [self.domain.lower + drop, self.domain.upper - drop]


#: The names in the style of the other baselines.
clamped_laplace, clamped_staircase = ClampedLaplace, ClampedStaircase


def clamped_discrete_laplace(eps: Number, domain: DomainLike = UNIT, steps: int = 100) -> LatticeNoise:
    """Discrete Laplace noise on a lattice, clamped to the domain: eps-LDP, bounded and biased."""
    return replace(discrete_laplace(eps, domain, steps), clamped=True)

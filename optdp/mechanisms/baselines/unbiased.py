"""Published unbiased mechanisms for a mean under local differential privacy: inputs in `domain`, [-1, 1] by default.

Duchi, Three-Outputs, PM, HM, PM-SUB, PM-OPT and HM-TP are bounded, the Central Piecewise Mechanism too. PM, PM-SUB and PM-OPT are
rectangles that follow the input, sampled exactly by `CompositeMechanism`; the others compute in floats, and their guarantees
say so. Sources: `optdp.mechanisms.baselines`.
"""

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.closed_forms.affine_window import best_window
from optdp.exact import Check, Number, Seed, Within, as_rng, enclosures, require
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.composite import CompositeMechanism, mean_loss
from optdp.problem import LDP, ApproxDP, DomainLike, Interval, LossLike, Privacy, Rectangle, as_interval

UNIT = (-1.0, 1.0)


class Scaled(Mechanism):
    """What unbiased eps-LDP mechanisms stated on [-1, 1] and computed in floats share: the affine map to the domain."""

    eps: float
    domain: Interval

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", require.epsilon(self.eps))
        object.__setattr__(self, "domain", as_interval(self.domain))

    def _refuse_infinities(self, reach: float) -> None:
        """`reach`: how far answers lie from 0 on [-1, 1]."""
        if not math.isfinite(abs(self._middle) + self._half * reach):
            told = "at this eps unbiased answers lie beyond all floats; use larger units or a narrower domain"
            raise ValueError(f"domain = {self.domain} is not allowed: {told}")

    @property
    def _half(self) -> float:
        return self.domain.width / 2

    @property
    def _middle(self) -> float:
        return self.domain.lower / 2 + self.domain.upper / 2

    @cached_property
    def _off(self) -> float:
        """How far `_middle`, a float, is above the middle: as much as half of the domain where it holds few floats."""
        return float(Fraction(self._middle) - (Fraction(self.domain.lower) + Fraction(self.domain.upper)) / 2)

    def _standard(self, y: np.ndarray) -> np.ndarray:
        """Numbers where the domain is [-1, 1]."""
        return (y - self._middle + self._off) / self._half

    def _unit(self, x: Any) -> np.ndarray:
        """Inputs on [-1, 1]."""
        return np.clip(self._standard(self.domain.check(x)), -1.0, 1.0)

    def _sent(self, z: np.ndarray) -> np.ndarray:
        """The floats next to numbers that are z where the domain is [-1, 1]."""
        return np.asarray(self._middle + (self._half * z - self._off))

    def mean(self, x: ArrayLike) -> np.ndarray:
        """x, before what is sent is rounded to floats."""
        return np.array(self.domain.check(x))

    def variance(self, x: ArrayLike) -> np.ndarray:
        """Var[Y | x], before what is sent is rounded to floats."""
        return self._half**2 * self._unit_variance(self._unit(x))

    @abstractmethod
    def _unit_variance(self, u: np.ndarray) -> np.ndarray:
        """The variance on [-1, 1]."""

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        law = self._loss(loss)
        if law.exponent != 2:
            return super().expected_loss(x, law)
        return self.variance(x) + np.square(self._bias(self.domain.check(x)))

    def guarantee(self) -> Privacy:
        return LDP(self.eps).in_real_arithmetic()

    def check_unbiased(self) -> Check:
        return Check("unbiased", False, "E[Y | x] = x holds in real arithmetic only: floats are sampled")

    def _kinks(self) -> list[float]:
        return [self._middle]


@dataclass(frozen=True)
class ThreeOutputs(Scaled):
    """Three-Outputs (Zhao et al., IEEE IoT Journal 2020): outputs -C, 0, C; with `zero` = 0 Duchi's mechanism (2018).

    At the input u in [-1, 1] the output is 0 with probability a (1 - (1 - 1/E)|u|), where a is the probability at u = 0, and
    the rest is split so that the mean is u: C = (E + 1)/((E - 1)(1 - a/E)).

    **Arguments:** `eps`; `domain`; `zero`: a in [0, E/(E + 2)], by default the one with the least worst-case variance.
    """

    eps: float
    domain: Interval = field(default_factory=lambda: Interval(*UNIT))
    zero: Annotated[float, Within(0.0, 1.0)] = -1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.zero == -1.0:
            object.__setattr__(self, "zero", _best_zero(self.eps))
        require.real("zero", self.zero, low=0.0, high=math.nextafter(1 / (1 + 2 * math.exp(-self.eps)), 1.0))
        self._refuse_infinities(self.reach)

    @property
    def reach(self) -> float:
        """C, on [-1, 1]."""
        return 1 / (math.tanh(self.eps / 2) * (1 - self.zero * math.exp(-self.eps)))

    def _zero(self, u: np.ndarray) -> np.ndarray:
        return self.zero * (1 + math.expm1(-self.eps) * np.abs(u))

    def _high(self, u: np.ndarray) -> np.ndarray:
        return (1 - self._zero(u) + u / self.reach) / 2

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        u = self._unit(x)
        toss = as_rng(rng).random(u.shape)
        high, zero = self._high(u), self._zero(u)
        sign = np.where(toss < high, 1.0, np.where(toss < high + zero, 0.0, -1.0))
        return self._sent(self.reach * sign)

    def atoms(self) -> np.ndarray:
        places = np.array([-self.reach, 0.0, self.reach] if self.zero > 0 else [-self.reach, self.reach])
        return np.unique(self._sent(places))  # several may be one float

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        u, outputs = self._unit(x), require.reals(y, "y")
        return sum((np.where(outputs == sent, p, 0.0) for sent, _, _, p in self._law(u)), np.zeros(()))

    def _law(self, u: np.ndarray) -> list[tuple[float, float, float, np.ndarray]]:
        """(output, what it is where the domain is [-1, 1], how far its float is above that number, probability)."""
        places, chances = (self.reach, -self.reach, 0.0), (self._high(u), self._high(-u), self._zero(u))
        middle, half = Fraction(self._middle) - Fraction(self._off), Fraction(self._half)
        sent = self._sent(np.array(places)).tolist()
        above = [float(Fraction(y) - middle - half * Fraction(z)) for y, z in zip(sent, places, strict=True)]
        return list(zip(sent, places, above, chances, strict=True))

    def mean(self, x: ArrayLike) -> np.ndarray:
        """E[Y | x] of the floats that are sent."""
        inputs = self.domain.check(x)
        return inputs + self._bias(inputs)

    def _bias(self, inputs: np.ndarray) -> np.ndarray:
        return np.asarray(sum(above * p for _, _, above, p in self._law(self._unit(inputs))))

    def variance(self, x: ArrayLike) -> np.ndarray:
        """Var[Y | x] of the floats that are sent."""
        u, bias = self._unit(x), self._bias(self.domain.check(x))
        return np.asarray(sum(p * np.square(self._half * (z - u) + (above - bias)) for _, z, above, p in self._law(u)))

    def _unit_variance(self, u: np.ndarray) -> np.ndarray:
        return self.reach**2 * (1 - self._zero(u)) - u**2


def _best_zero(eps: float) -> float:
    """The probability of 0 at input 0 that minimises the worst-case variance, which is convex in it.

    On [-1, 1] the variance at |u| is C^2 (1 - a + a (1 - 1/E)|u|) - u^2, largest where the parabola peaks or at |u| = 1.
    """
    b = math.exp(-eps)

    def worst(a: float) -> float:
        c2 = 1 / (math.tanh(eps / 2) * (1 - a * b)) ** 2
        u = min(c2 * a * (1 - b) / 2, 1.0)
        return c2 * (1 - a + a * (1 - b) * u) - u * u

    return _ternary(worst, 0.0, 1 / (1 + 2 * b))


def _ternary(function: Callable[[float], float], low: float, high: float) -> float:
    """The minimum of a unimodal function on [low, high], ends included."""
    a, b = low, high
    for _ in range(200):
        left, right = a + (b - a) / 3, b - (b - a) / 3
        a, b = (a, right) if function(left) <= function(right) else (left, b)
    return min((low, (a + b) / 2, high), key=function)


@dataclass(frozen=True)
class Mixture(Mechanism):
    """One of several mechanisms on the same interval, chosen at random whatever the input: as private as the least private.

    **Arguments:** `parts`; `weights`: their probabilities, which sum to 1; `name`.
    """

    parts: Annotated[tuple[Mechanism, ...], Within(least=1, most=100)]
    weights: Annotated[tuple[float, ...], Within(0.0, 1.0, 1, 100)]
    name: str = "mixture"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.parts) != len(self.weights) or abs(sum(self.weights) - 1) > 1e-12:
            raise ValueError(
                f"weights = {self.weights!r} is not allowed: there must be one for each part, and they must sum to 1"
            )
        if any(p.domain != self.parts[0].domain for p in self.parts) or not isinstance(self.domain, Interval):
            raise ValueError("parts are not allowed here: they must have the same interval as their domain")

    @property
    def domain(self) -> Interval:
        return self.parts[0].domain

    @property
    def _used(self) -> list[Mechanism]:
        return [p for p, w in zip(self.parts, self.weights, strict=True) if w > 0]

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng = self.domain.check(x), as_rng(rng)
        which = rng.choice(len(self.parts), size=inputs.shape, p=np.asarray(self.weights) / sum(self.weights))
        out = np.empty(inputs.shape)
        for k, part in enumerate(self.parts):
            out[which == k] = part.randomize(inputs[which == k], rng)
        return out

    def _mix(self, value: Callable[[Mechanism], np.ndarray]) -> np.ndarray:
        return sum((w * value(p) for w, p in zip(self.weights, self.parts, strict=True)), np.zeros(()))

    def density(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        return self._mix(lambda p: p.density(y, x))

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        return self._mix(lambda p: p.probability(y, x))

    def cumulative(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        return self._mix(lambda p: p.cumulative(y, x))

    def atoms(self) -> np.ndarray:
        return np.unique(np.concatenate([p.atoms() for p in self._used]))

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        ends = [p.support(x) for p in self._used]
        return min(low for low, _ in ends), max(high for _, high in ends)

    def mean(self, x: ArrayLike) -> np.ndarray:
        inputs = self.domain.check(x)
        return inputs + self._bias(inputs)

    def _bias(self, inputs: np.ndarray) -> np.ndarray:
        return self._mix(lambda p: p._bias(inputs))

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        law = self._loss(loss)
        return self._mix(lambda p: p.expected_loss(x, law))

    def guarantee(self) -> Privacy | None:
        """That of the least private part; which part is drawn tells nothing of the input. None if they are no LDP mechanisms."""
        ratios = [g for g in (p.guarantee() for p in self._used) if isinstance(g, LDP)]
        if len(ratios) < len(self._used):
            return None
        worst = next(g for g in ratios if all(enclosures.at_most(other.eps, g.eps) for other in ratios))
        return worst.in_real_arithmetic() if any(g.ideal for g in ratios) else worst

    def satisfies(self, privacy: Privacy) -> bool | None:
        """As for every mechanism, but False only of a single part: several hide each other's outputs."""
        answer = super().satisfies(privacy)
        if answer is not False:
            return answer
        return self._used[0].satisfies(privacy) if len(self._used) == 1 else None

    def check_unbiased(self) -> Check:
        """Whether every part is: the first that is not, if any."""
        return min((p.check_unbiased() for p in self._used), key=lambda check: check.passed)

    def _kinks(self) -> list[float]:
        return [k for p in self._used for k in p._kinks()]

    def __repr__(self) -> str:
        parts = " + ".join(f"{w:.4g} {p!r}" for w, p in zip(self.weights, self.parts, strict=True))
        return f"{self.name}: {parts}"


@dataclass(frozen=True)
class CentralPiecewise(Scaled):
    """The Central Piecewise Mechanism (Yamamoto et al.): a staircase that follows the input, for central queries.

    Unbiased and bounded, and private for queries that neighbours change by at most a share 1/(steps + 1) of the domain:
    K(y|x) <= e^eps K(y|x') whenever |x - x'| <= width/(steps + 1). Its m + 1 levels fall by a factor e^eps each,
    where the next lower one is wider by what the centre moves for one sensitivity. With `steps` = 0, where neighbours may be any
    two inputs, it is the Piecewise Mechanism with t = e^(eps - eps/b), and b = 2 is PM.

    **Arguments:** `eps`; `domain`; `steps`: m, the number of steps besides the top; `b`: the shape, by default the one with
    the least worst-case variance.
    """

    eps: float
    domain: Interval = field(default_factory=lambda: Interval(*UNIT))
    steps: Annotated[int, Within(0, 10**6)] = 0
    b: Annotated[float, Within(0.0)] = -1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        require.integer("steps", self.steps, low=0, high=int(600 / self.eps))
        if self.b == -1.0:
            best = _ternary(lambda t: float(_staircase(self.eps, self.steps, 2.0**t)[3](1.0)), -40.0, 10.0)
            ratio, least = _staircase_scale(self.eps, self.steps)
            object.__setattr__(self, "b", self.eps / math.log(2.0**best * ratio + least))
        require.real("b", self.b, low=0.0, open_low=True)
        if self._top <= 0:
            raise ValueError(f"b = {self.b!r} is not allowed: with {self.steps} steps the top would have no width")
        self._refuse_infinities(float(self._levels[1][0]))

    @property
    def _top(self) -> float:
        """Half-width of the top in units of the stretch: (e^(eps/b) - A)/E^(m+1), A = Delta E (E^m - 1)/(E - 1)."""
        ratio, least = _staircase_scale(self.eps, self.steps)
        return (math.exp(self.eps / self.b) - least) / ratio

    @property
    def sensitivity(self) -> float:
        """How much neighbours may change the input (rounded down)."""
        return enclosures.round_down(self.domain.exact_width / (self.steps + 1))

    @cached_property
    def _levels(self) -> tuple[np.ndarray, np.ndarray, float, Callable[[Any], np.ndarray]]:
        return _staircase(self.eps, self.steps, self._top)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        u, rng = self._unit(self.domain.check_exactly(x) if self.steps else x), as_rng(rng)
        mass, half, stretch, _ = self._levels
        level = rng.choice(half.size, size=u.shape, p=mass / mass.sum())
        centre = np.where(level == 0, 0.0, stretch * u)
        return self._sent(centre + half[level] * rng.uniform(-1.0, 1.0, u.shape))

    def density(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        u, z = self._unit(x), self._standard(require.reals(y, "y"))
        mass, half, stretch, _ = self._levels
        levels = enumerate(zip(mass, half, strict=True))
        parts = (m / (2 * h) * (np.abs(z - (0.0 if j == 0 else stretch * u)) <= h) for j, (m, h) in levels)
        return np.where(np.abs(z) <= half[0], sum(parts, np.zeros(())), 0.0) / self._half

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        low, high = self._sent(np.array([-1.0, 1.0]) * self._levels[1][0]).tolist()
        return low, high

    def _unit_variance(self, u: np.ndarray) -> np.ndarray:
        return self._levels[3](u)

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        law, u = self._loss(loss), self._unit(x)
        if law.exponent == 2 or law.form != "distance":
            return super().expected_loss(x, law)
        mass, half, stretch, _ = self._levels
        still = np.zeros(u.shape)
        centres = [still, *[stretch * u] * (half.size - 1)]
        parts = zip(mass, self._half * (np.array(centres) - u), self._half * half, strict=True)
        return sum((m * mean_loss(Rectangle(), off, h, law) for m, off, h in parts), still)

    def guarantee(self) -> Privacy:
        """For inputs at most one sensitivity apart; with no steps these are any two."""
        if self.steps == 0:
            return super().guarantee()
        return ApproxDP(self.eps, 0.0, self.sensitivity).in_real_arithmetic()


def _staircase_scale(eps: float, m: int) -> tuple[float, float]:
    """E^(m+1), and the least e^(eps/b)."""
    return math.exp(eps * (m + 1)), 2 / (m + 1) * math.exp(eps) * math.expm1(eps * m) / math.expm1(eps)


def _staircase(eps: float, m: int, top: float) -> tuple[np.ndarray, np.ndarray, float, Callable[[Any], np.ndarray]]:
    """(masses, half-widths, stretch, variance) on [-1, 1]: level 0 is the floor on the whole range, 1..m+1 follow the input.

    Half-widths h_j = h_(m+1) + (m + 1 - j) k Delta for Delta = 2/(m + 1), densities (E - 1) E^(j-1) f above a floor f.
    Given the top half-width in units of k, mass 1 and unbiasedness fix f and k.
    """
    growth = math.expm1(eps)
    j = np.arange(1, m + 2)
    width = top + (m + 1 - j) * 2 / (m + 1)  # half-widths for k = 1
    rise = growth * np.exp(eps * (j - 1 - m)) * width  # masses up to a common factor, scaled against overflow
    floor = math.exp(-eps * m) * (1 + width[0])
    mass = np.concatenate([[floor], rise])
    mass = mass / mass.sum()
    stretch = 1 / (1 - mass[0])
    half = stretch * np.concatenate([[1 + width[0]], width])

    return mass, half, float(stretch), lambda u: (stretch - 1) * np.square(u) + float(mass @ half**2) / 3


def duchi(eps: float, domain: DomainLike = UNIT) -> ThreeOutputs:
    """Duchi, Jordan and Wainwright (2018): two outputs +-(E + 1)/(E - 1)."""
    return ThreeOutputs(eps, as_interval(domain), 0.0)


def three_outputs(eps: float, domain: DomainLike = UNIT) -> ThreeOutputs:
    """Three-Outputs (Zhao et al., 2020) with the probability of 0 that minimises the worst-case variance."""
    return ThreeOutputs(eps, as_interval(domain))


def _window(eps: Number, domain: Any, divisor: int) -> CompositeMechanism:
    share = 1 / (math.exp(require.epsilon(float(eps)) / divisor) + 1)
    return CompositeMechanism.private(eps, share, as_interval(domain))


def piecewise(eps: Number, domain: DomainLike = UNIT) -> CompositeMechanism:
    """The Piecewise Mechanism PM (Wang et al., ICDE 2019): I-PTT with eta = e^(eps/2) + 1."""
    return _window(eps, domain, 2)


def pm_sub(eps: Number, domain: DomainLike = UNIT) -> CompositeMechanism:
    """PM-SUB (Zhao et al., 2020): I-PTT with eta = e^(eps/3) + 1, in closed form nearly the best."""
    return _window(eps, domain, 3)


def pm_opt(eps: Number, domain: DomainLike = UNIT) -> CompositeMechanism:
    """PM-OPT (Zhao et al., 2020), which is the best I-PTT: eta = t + 1 for the t with the least worst-case variance."""
    share, _, _ = best_window(require.exact_epsilon(eps), Rectangle(), Rectangle())
    return CompositeMechanism.private(eps, share, as_interval(domain))


def hybrid(eps: float, domain: DomainLike = UNIT) -> Mixture:
    """The Hybrid Mechanism HM (Wang et al., ICDE 2019): PM with probability 1 - e^(-eps/2) where eps > 0.61, else Duchi."""
    share = -math.expm1(-require.epsilon(eps) / 2) if eps > 0.61 else 0.0
    return Mixture((piecewise(eps, domain), duchi(eps, domain)), (share, 1 - share), "HM")


def hm_tp(eps: float, domain: DomainLike = UNIT) -> Mixture:
    """HM-TP (Zhao et al., 2020): PM-SUB or Three-Outputs, mixed so that the worst-case variance is least."""
    x = np.linspace(*UNIT, 2001)[1000:]  # symmetric, and the same in all units
    a, b = pm_sub(eps).variance(x), three_outputs(eps)._unit_variance(x)
    share = _ternary(lambda beta: float(np.max(beta * a + (1 - beta) * b)), 0.0, 1.0)
    return Mixture((pm_sub(eps, domain), three_outputs(eps, domain)), (share, 1 - share), "HM-TP")


def central_piecewise(eps: float, domain: DomainLike = UNIT, steps: int = 0) -> CentralPiecewise:
    """The Central Piecewise Mechanism; with `steps` = 0 a local one, the best I-PTT again."""
    return CentralPiecewise(eps, as_interval(domain), steps)

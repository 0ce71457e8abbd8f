"""Noise on the integers of any sensitivity: noise on the line, rounded without bias.

The law of integer noise at a sensitivity of a million has millions of numbers. Instead Z is drawn on the line and rounded at
random to one of its two neighbours, so that the mean stays; this commutes with integer inputs, x + round(Z) = round(x + Z), and
what is done to an output costs no privacy. The loss of round(Z) is, on average, on the line between those of the neighbours: for
|.| it is that of Z exactly, for the square it exceeds that by f(1 - f), f the fractional part of Z, by at most 1/4
(`optdp.problem.rounding`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from optdp.exact import Check, Seed, Within, as_rng, enclosures, in_blocks, work
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.mechanisms.gaussian import LatticeGaussian
from optdp.mechanisms.noise import AdditiveNoise, ProvenNoise, StairNoise, added
from optdp.mechanisms.staircase import LatticeStaircase
from optdp.problem import Integers, Line, LossLike, Objective, Privacy, Quantile
from optdp.problem.losses import Pieces
from optdp.problem.privacy import gauss_tail
from optdp.problem.rounding import ramped, rounded

#: Sensitivities from 1 to this: the grid of the noise on the line is finer than the integers.
WIDEST = 2.0**36
#: Ends of parts of [0, 1], for averages over how Z is rounded. Added to them is where its density jumps within a unit, so that it
#: is constant on each part: for so many jumps, those nearest to 0, rounded to a grid on which equal ones are told to be.
_NEAR = np.concatenate([[0.0], 2.0 ** (np.arange(28) / 4 - 12)])
ENDS = np.concatenate([_NEAR, np.arange(1, 32) / 32, 1 - _NEAR[::-1]])
JUMPS, SAME = 64, 2.0**44
#: Nodes and weights on [0, 1] for laws without jumps, of a standard deviation of 1/8 or more.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
GAUSS = (_NODES + 1) / 2, _WEIGHTS / 2
#: Expected losses in floats are sums over so many units, and over so many blocks of them further out.
UNITS, BLOCKS = 256, 200
#: The largest standard deviation of a Gaussian whose values are summed up over the integers, and how far: in standard deviations,
#: and how many more for the root of the degree by which the loss grows.
SUMMED, FAR, FURTHER = 100.0, 40, 2


@dataclass(frozen=True, repr=False)
class RoundedNoise(ProvenNoise):
    """Integer noise, exactly sampled: noise on the line, rounded to an integer at random without bias.

    **Arguments:** `domain`: the `Integers`; `noise`: an `AdditiveMechanism`, `LatticeStaircase` or `LatticeGaussian` on the
    `Line`.

        >>> import optdp
        >>> noise = RoundedNoise(optdp.Integers(), LatticeStaircase.private(1.0, 10**6))
        >>> noise.enclose_loss("abs")[1] / 10**6                  # 1/(2 sinh(1/2)) = 0.95951737566747...
        0.959517375667...
        >>> bool(noise.randomize(5, 0) % 1 == 0)
        True
    """

    exact = True
    domain: Integers
    noise: Annotated[Any, Within(kind=AdditiveNoise)]

    def __post_init__(self) -> None:
        super().__post_init__()
        kinds = AdditiveMechanism | LatticeStaircase | LatticeGaussian
        if not isinstance(self.noise, kinds) or not isinstance(self.noise.domain, Line):
            allowed = "it must be an AdditiveMechanism, LatticeStaircase or LatticeGaussian on the line"
            raise TypeError(f"noise = {self.noise!r} is not allowed: {allowed}")
        if not 1 <= self.noise.sensitivity <= WIDEST or not self._per:
            raise ValueError(
                f"noise is not allowed: its sensitivity must be between 1 and {WIDEST:g}, its cells 1 or more"
            )

    @property
    def sensitivity(self) -> float:  # type: ignore[override]
        """How far apart neighbours are."""
        return self.noise.sensitivity

    @property
    def _per(self) -> int:
        """Grid points of the noise per unit, 0 where they are coarser than the integers."""
        g = self.noise._grid()[0] if isinstance(self.noise, AdditiveMechanism) else self.noise.step
        return int(1 / g)

    # --- privacy: that of the noise on the line

    def guarantee(self) -> Privacy | None:
        return self.noise.guarantee()

    def satisfies(self, privacy: Privacy) -> bool | None:
        """True where the noise on the line satisfies it; otherwise not known: rounding may help."""
        return self.noise.satisfies(privacy) or None

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        return self.noise.check_privacy(privacy)

    def delta(self, eps: float) -> float:
        """An upper bound on the privacy profile: that of the noise on the line."""
        return self.noise.delta(eps)

    def privacy(self) -> float:
        """The smallest eps, rounded up, of noise that needs no delta. **Raises** ValueError for other noise."""
        return self.noise.privacy()

    # --- values

    def enclose_loss(self, loss: LossLike = "abs") -> tuple[float, float]:
        """(low, high) that contain E L(|Y - x|) for powers and piecewise polynomials, proven."""
        law = self._loss(loss)
        try:
            smooth = ramped(law)
            rounded(smooth, 1.0)
        except ValueError as error:
            raise TypeError(f"loss = {law.name!r} is not allowed: {error}") from None
        # Inputs are integers, which are points of the noise's grid: what it says of numbers sent holds for Z as it is drawn.
        exact = {"sent": True} if isinstance(self.noise, AdditiveMechanism) else {}
        low, high = self.noise.enclose_loss(smooth, **exact)
        with ctx.workprec(enclosures.PRECISION):
            less, more = rounded(smooth, high)
            low, high = enclosures.round_down(low - less), enclosures.round_up(high + more)
        return max(low, 0.0), high

    def enclose(self, objective: Objective) -> tuple[float, float]:
        return self._quantile(objective.level) if isinstance(objective, Quantile) else super().enclose(objective)

    def _quantile(self, level: float) -> tuple[float, float]:
        """Of |Y - x|, an integer: the least t from which on P(|Y - x| > t) <= 1 - level, as far as that is proven."""
        most = 1 - Fraction(level)

        def enough(t: int, side: int) -> bool:
            beyond = (
                Pieces((0, t + 1), ((0,), (1,))) if t >= 0 else None
            )  # t may be beyond all integers that are floats
            return beyond is not None and Fraction(self.enclose_loss(beyond)[side]) <= most

        found, guess = [], math.ceil(self.noise.quantile(min((1 + level) / 2, math.nextafter(1.0, 0.0))))
        for side in (0, 1):
            low, high, step = guess - 1, guess, 1
            while enough(low, side):
                low, high, step = low - step, low, 2 * step
            while not enough(high, side):
                low, high, step = high, high + step, 2 * step
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if enough(middle, side) else (middle, high)
            found.append(Fraction(high))
        return enclosures.round_down(found[0]), enclosures.round_up(found[1])

    def noise_loss(self, loss: LossLike = "abs") -> float:
        """E L(|Z|), in floating point."""
        law = self._loss(loss)
        smooth = ramped(law)
        return self.noise.noise_loss(smooth) + self._over(law, smooth)

    def _over(self, law: Any, smooth: Any) -> Any:
        """By how much the lines between the losses of integers are above `smooth` on average: far out by one unit of many."""
        reach = self.noise_radius()
        last = reach if math.isfinite(reach) else float(self.noise.quantile(1 - 1e-15))
        near, ends = np.arange(min(math.ceil(last), UNITS)), np.geomspace(UNITS, max(last, UNITS), BLOCKS)
        side = (1 - self.noise.noise_probability(0.0)) / 2  # of what is not exactly 0, which costs the same
        parts = near[:, None] + self._ends
        within, beyond = (-np.diff(np.minimum(self.noise.cdf(-at), side)) for at in (parts, ends))
        units, middles, widths = near[:, None], self._middles, np.diff(self._ends)
        line = law(units) * (1 - middles) + law(units + 1) * middles
        over = (within * (line - np.diff(smooth.integral(parts)) / widths)).sum()
        units = np.floor((ends[1:] + ends[:-1]) / 2)[:, None]
        line = law(units) * (1 - middles) + law(units + 1) * middles
        return 2 * (over + (beyond[:, None] * widths * (line - smooth(units + middles))).sum())

    @cached_property
    def _ends(self) -> np.ndarray:
        """`ENDS`, and where the density of Z jumps within units; shorter parts where it is never constant."""
        if not isinstance(self.noise, StairNoise):
            return np.union1d(ENDS, np.arange(1, 512) / 512)
        jumps = np.round(self.noise._law.pieces()[0][:JUMPS] % 1.0 * SAME) / SAME
        return np.unique(np.concatenate([ENDS, jumps, 1 - jumps]))

    @property
    def _middles(self) -> np.ndarray:
        return (self._ends[1:] + self._ends[:-1]) / 2

    # --- the law in floats: the average over how Z is rounded

    def _averaged(self, function: Callable[[np.ndarray], np.ndarray], at: np.ndarray) -> np.ndarray:
        """The mean of `function` over [at, at + 1]: by midpoints, which are exact where the density of Z is constant."""
        stairs = isinstance(self.noise, StairNoise)
        nodes, weights = (self._middles, np.diff(self._ends)) if stairs else GAUSS
        value: np.ndarray = function(at[..., None] + nodes) @ weights
        return value

    def noise_probability(self, z: ArrayLike) -> np.ndarray:
        points = np.asarray(z, dtype=float)
        left = -np.abs(points)  # where the distribution function is small, and precise
        mass = self._averaged(lambda t: self.noise.cdf(t) - self.noise.cdf(t - 1), left)
        return np.where(points == np.round(points), mass, 0.0)

    def cdf(self, z: ArrayLike) -> np.ndarray:
        return self._averaged(self.noise.cdf, np.floor(np.asarray(z, dtype=float)))

    def quantile(self, level: ArrayLike) -> np.ndarray:
        self._levels(level)
        levels = np.asarray(level, dtype=float)
        guess = np.floor(self.noise.quantile(levels))
        found = guess + 2
        for r in (1, 0, -1, -2):
            found = np.where(self.cdf(guess + r) >= levels, guess + r, found)
        return found + 0.0

    def noise_radius(self) -> float:
        radius = self.noise.noise_radius()
        if math.isinf(radius) or not isinstance(self.noise, AdditiveMechanism):
            return float(np.ceil(radius))
        return enclosures.round_up(Fraction(-(-self.noise._farthest // self._per)))

    # --- draws

    def _integers(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draws of the noise: a point of the grid, rounded down after a uniform share of a unit was added, with a fair sign."""
        per = self._per
        places = self.noise._places(math.prod(shape), rng).reshape(shape)
        rounded = (places + rng.integers(0, per, size=shape)) // per
        return np.where(rng.integers(0, 2, size=shape) == 1, rounded, -rounded)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        """Sums are made of integers and turned into floats at the very end: noise beyond 2^53 that was a float before would leave
        the last digits of the input in the sum.
        """
        inputs, rng = self.domain.check(x), as_rng(rng)
        return in_blocks(lambda part: added(part, self._integers(part.shape, rng), 1.0), inputs)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return (self._integers(shape, rng) * 1.0).astype(float)

    def __repr__(self) -> str:
        losses = f"E|Z| = {self.noise_loss('abs'):.6g}, sd = {self.noise_loss('squared') ** 0.5:.6g}"
        name = type(self).__name__
        return f"{name}, integer noise for sensitivity {self.sensitivity:g}: rounded noise of the line, {losses}"

    def _loss(self, loss: Any) -> Any:
        law = self.noise._loss(loss)
        return law.whole if law.form == "distance" else law


@dataclass(frozen=True, repr=False)
class RoundedGaussian(RoundedNoise):
    """Gaussian noise, exactly sampled and rounded to the nearest integer, which keeps mu-GDP: it moves with the input.

    It is N that is rounded, which is half-way between two integers with probability 0. What is on the lattice already may be, and
    where it goes would depend on the sign of the noise, and so on the input.

    **Arguments:** `domain`: the `Integers`; `noise`: a `LatticeGaussian` on the `Line` with a standard deviation of at most 100.

    **Source:** Dong, Roth, Su, "Gaussian differential privacy" (2022) for the guarantee; the value is optdp's.

        >>> import optdp
        >>> noise = RoundedGaussian(optdp.Integers(), LatticeGaussian(optdp.Line(), 1.0, 2))
        >>> noise.enclose_loss(optdp.Threshold(0))                # 2 Phi(-1) = 0.31731050786291...
        (0.31731050786291..., 0.31731050786291...)
        >>> noise.guarantee()
        GDP(mu=2.0, sensitivity=1.0)
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.noise, LatticeGaussian) or self.noise.sigma > SUMMED:
            allowed = f"it must be a LatticeGaussian with a standard deviation of at most {SUMMED:g}"
            raise ValueError(f"noise = {self.noise!r} is not allowed: {allowed}")

    def satisfies(self, privacy: Privacy) -> bool | None:
        """True where the noise on the line satisfies it, False where a half-line of integers breaks it."""
        if self.noise.satisfies(privacy):
            return True
        reach = getattr(privacy, "sensitivity", self.sensitivity)
        return False if self.noise._broken(privacy, math.floor(reach) * self._per, self._per) else None

    def enclose_loss(self, loss: LossLike = "abs") -> tuple[float, float]:
        """(low, high) that contain E L(|Y - x|) = L(0) + sum_k P(|N| >= k - 1/2) (L(k) - L(k - 1)), proven."""
        law = self._loss(loss)
        with ctx.workprec(2 * enclosures.PRECISION):
            s, per = self.noise._steps(), self._per
            places, more = _rises(law, s / per)
            work.count(60 * len(places))
            value = _at(law, 0)
            for k in places:
                value += 2 * gauss_tail((k * per - per // 2) / s) * (_at(law, k) - _at(law, k - 1))
            return max(enclosures.round_down(value), 0.0), enclosures.round_up(value + more)

    def noise_loss(self, loss: LossLike = "abs") -> float:
        low, high = self.enclose_loss(loss)
        return low + (high - low) / 2

    def _averaged(self, function: Callable[[np.ndarray], np.ndarray], at: np.ndarray) -> np.ndarray:
        """All of a unit is rounded alike."""
        return function(at + 0.5)

    def _integers(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """|N|/g is in [j, j + 1), and what lies half-way between two integers is a whole number of steps."""
        per, halves = self._per, self.noise._halves(math.prod(shape), rng).reshape(shape)
        return np.sign(halves) * ((np.abs(halves) + per) // (2 * per))


def _at(law: Any, k: int) -> arb:
    """L(k)."""
    if law.exponent is not None:
        return arb(k) ** enclosures.ball(law.exponent) if k else arb(0)
    return enclosures.ball(law.exact(Fraction(k)))


def _rises(law: Any, sigma: arb) -> tuple[list[int], arb]:
    """(the k at which L(k) - L(k - 1) may not be 0, a bound on what larger k add to E L(|Z|)) for a standard deviation sigma.

    Where L(K + i) <= c (i + 1)^d they add at most 2 Q(z) c sum_i (i + 1)^d r^i <= 2 Q(z) c d!/(1 - r)^(d + 1), with
    z = (K - 1/2)/sigma and r = e^(-z/sigma), as Q(z + h) <= e^(-zh) Q(z).
    """
    factor, power = law.growth
    degree = math.ceil(power)
    last = math.ceil((FAR + FURTHER * math.sqrt(degree)) * float(sigma)) + 1
    breaks, rows = law.polynomials or ((Fraction(0),), ((0, 1),))
    places = {k for b in breaks[1:] for k in (math.ceil(b), math.floor(b) + 1)}
    for row, start, end in zip(rows, breaks, (*breaks[1:], None), strict=True):
        if any(row[1:]):
            places.update(range(math.floor(start) + 1, last if end is None else min(math.floor(end) + 1, last)))
    if law.bounded and breaks[-1] < last:
        return sorted(places), arb(0)
    z = (last - enclosures.ball(Fraction(1, 2))) / sigma
    count = (1 - (-z / sigma).exp()) ** -(degree + 1) * arb(degree + 1).gamma()
    return sorted(places), 2 * gauss_tail(z) * enclosures.ball(factor) * arb(last) ** enclosures.ball(power) * count

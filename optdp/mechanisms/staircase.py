r"""Staircase noise on a lattice, of few integers at any eps: whole, or cut off where delta allows it.

The noise is g J for an integer J. In units of g a period (the sensitivity, rounded up) has M points; of these the first F
points have the weight 1 and the others b, and every further period b times as much: with |j| = kM + r, 0 <= r < M,

    w(j) = b^k  for r < F,    b^(k+1)  else.

w does not grow with |j|, and w(|j| + M) = b w(|j|), so that w(j) <= w(j + s)/b for all shifts |s| <= M: the noise is
log(1/b)-private, whatever F is. Cut off beyond |j| = C, what a shift moves outside is at most the mass of the last M points, and
there is no other excess: that mass is delta. A mass at 0 that is mixed in adds itself to delta.

Unlike `AdditiveMechanism`, whose cells all have one width, this holds the first step of the optimal noise at any eps: it is about
e^(-eps/2) of the sensitivity.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import count
from typing import Annotated, Any, Self

import numpy as np
from flint import arb, ctx, fmpq

from optdp.exact import Alias, Check, Geometric, Log, Number, Within, coin, either, enclosures, require, work
from optdp.exact.numbers import BITS, below, exp_of
from optdp.exact.sampling import LIMB
from optdp.mechanisms.base import asked_for
from optdp.mechanisms.noise import OnLattice, StairNoise, Stairs
from optdp.problem import ApproxDP, Line, LossLike, Objective, Privacy, Quantile
from optdp.problem.privacy import Sensitivity

#: A period has between 2^PERIOD and 2^(PERIOD + 1) points; b is a multiple of 2^-FALL.
PERIOD, FALL = 40, 80
#: The eps for which periods are drawn one by one, and at most so many of them before a cut.
LEAST, PERIODS = 0.05, 200
#: A guarantee's delta of too many bits is rounded up to so many, and to a multiple of the least float, 2^-LEAST_MASS.
DIGITS, LEAST_MASS = 256, 1074


@dataclass(frozen=True, repr=False)
class LatticeStaircase(StairNoise, OnLattice):
    """Staircase noise whose probabilities are exact rationals: see the module.

    **Arguments:**

    - `domain`: a `Line`; `sensitivity`: how far apart neighbours are.
    - `decay`: b, in units of 2^-80; `first`: F, in points of the lattice.
    - `cut`: C, or 0 where the noise is not cut off; `atom`: the mass mixed in at 0, in units of 2^-62.

    `LatticeStaircase.private(eps)` and `.truncated(eps, delta)` choose them. As for `AdditiveMechanism`, inputs are rounded
    down to the lattice, and a sum is turned into a float at the very end; `enclose` counts the first.

    **Source:** the shape is that of Geng and Viswanath, "The optimal noise-adding mechanism in differential privacy" (2014).

        >>> LatticeStaircase.private(10.0).enclose_loss("abs")     # 1/(2 sinh(5)) = 0.00673825291529454...
        (0.0067382529152945425, 0.006738252915294543)
    """

    domain: Line
    sensitivity: Sensitivity
    decay: Annotated[int, Within(1, 2**FALL - 1)]
    first: Annotated[int, Within(1, 2 ** (PERIOD + 1))]
    cut: Annotated[int, Within(0, 2**62 - 1)] = 0
    atom: Annotated[int, Within(0, LIMB - 1)] = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        require.integer("first", self.first, low=1, high=self.period)
        if not math.exp(-require.MAX_EPS) * (1 - 1e-9) <= float(self.fall) <= math.exp(-LEAST) * (1 + 1e-9):
            raise ValueError(f"decay is not allowed: this noise is for eps from {LEAST} to {require.MAX_EPS:g}")
        if self.cut // self.period >= PERIODS:
            raise ValueError(f"cut is not allowed: it must come within {PERIODS} sensitivities")
        if self.cut and self._rest > 1 - 2.0**-10:  # what is cut off is drawn again
            raise ValueError("cut is not allowed: hardly any of the noise is left")

    @classmethod
    def private(
        cls, eps: Number, sensitivity: float = 1.0, *, share: float | None = None, delta: Number = 0.0, domain: Line | None = None
    ) -> Self:  # fmt: skip
        """The noise that keeps eps with delta = 0, or with a mass of delta at 0.

        **Arguments:** `eps`: from 0.05 to 30; `share`: of the sensitivity that the first step takes (default: best for "abs").
        """
        eps = require.exact_epsilon(eps)
        require.real("eps", float(eps), low=LEAST, high=require.MAX_EPS)
        own = 1 / (1 + math.exp(float(eps) / 2)) if share is None else require.real("share", share, low=0.0, high=1.0)
        ratio = enclosures.exp_below(eps)
        decay = -(-(2**FALL) * ratio.denominator // ratio.numerator)
        atom = int(Fraction(ApproxDP(eps, delta).delta) * LIMB)  # type: ignore[arg-type]
        area = Line() if domain is None else domain
        points = _points(require.real("sensitivity", sensitivity, low=1e-150, high=1e150))
        return cls(area, float(sensitivity), decay, min(max(round(own * points), 1), points), 0, atom)

    @classmethod
    def truncated(
        cls, eps: Number, delta: Number, sensitivity: float = 1.0, *, share: float | None = None, domain: Line | None = None
    ) -> Self:  # fmt: skip
        """The noise that is cut off as early as delta allows it.

        For "abs" and "squared" it costs less than the truncated Laplacian at every eps and 0 < delta <= 1/2 (`optdp discoveries`,
        D-TLAP-2).

        **Raises** ValueError where the noise would reach over more than 200 sensitivities.
        """
        whole = cls.private(eps, sensitivity, share=share, domain=domain)
        exact = Fraction(ApproxDP(eps, delta, sensitivity).delta)  # type: ignore[arg-type]
        if exact <= 0:
            raise ValueError("delta is not allowed: it must lie strictly between 0 and 1")

        def moved(cut: int, b: Any) -> Any:
            return _moved(b, whole.period, whole.first, cut)

        def kept(cut: int) -> bool:
            with ctx.workprec(enclosures.PRECISION):
                return cut > 0 and bool(moved(cut, enclosures.ball(whole.fall)) <= enclosures.ball(exact))

        low, high = 0, whole.period
        b, most = float(whole.fall), float(exact)
        while high < 2 * PERIODS * whole.period and moved(high, b) > most:
            low, high = high, 2 * high
        while high - low > max(1, high >> 41):  # floats know where to look
            middle = (low + high) // 2
            low, high = (low, middle) if moved(middle, b) <= most else (middle, high)
        low, high = low - (low >> 41), high + (high >> 41)
        replace(whole, cut=high)  # what reaches too far is refused before powers with many digits are taken
        while not kept(high):
            low, high = high, 2 * high
        while low > 0 and kept(low):
            low, high = low // 2, low
        while high - low > max(1, high >> 40):
            middle = (low + high) // 2
            low, high = (low, middle) if kept(middle) else (middle, high)
        return replace(whole, cut=high)

    @cached_property
    def period(self) -> int:
        """M: points of the lattice per sensitivity, rounded up."""
        return _points(self.sensitivity)

    @property
    def step(self) -> float:
        return _step(self.sensitivity)

    @property
    def fall(self) -> Fraction:
        """b."""
        return Fraction(self.decay, 2**FALL)

    def _sums(self, power: int, b: Any) -> Any:
        """sum of j^power w(j) over all j >= 0 up to the cut, for power 0, 1, 2: in the numbers that b is given in."""
        m, f = self.period, self.first

        def plain(q: int, n: int) -> int:
            """sum of r^q over r < n."""
            return (n, n * (n - 1) // 2, (n - 1) * n * (2 * n - 1) // 6)[q]

        def within(q: int, n: int) -> Any:
            """sum of r^q w(r) over r < n <= M."""
            return plain(q, min(n, f)) + b * (plain(q, n) - plain(q, min(n, f)))

        choose = ((1,), (1, 1), (1, 2, 1))[power]
        series = 1 / (1 - b), b / (1 - b) ** 2, b * (1 + b) / (1 - b) ** 3  # sum_k k^i b^k
        whole = sum(c * m**i * series[i] * within(power - i, m) for i, c in enumerate(choose))
        if not self.cut:
            return whole
        # Less what comes after the last whole period before the cut: with k = n + l, (k m)^i = sum of (n m)^(i - s) (l m)^s.
        n, rest = divmod(self.cut + 1, m)
        work.count(1e-5 * (n + 10))
        beyond = sum(
            c * m**i * within(power - i, m) * sum(math.comb(i, s) * n ** (i - s) * series[s] for s in range(i + 1))
            for i, c in enumerate(choose)
        )
        ended = sum(c * (n * m) ** i * within(power - i, rest) for i, c in enumerate(choose))
        return whole + b**n * (ended - beyond)

    @property
    def _exactly(self) -> fmpq:
        """b, as an exact rational: its powers have many digits, for which FLINT is made."""
        return fmpq(self.decay, 2**FALL)

    @cached_property
    def least_delta(self) -> Fraction:
        """The delta of `guarantee()`: the atom, and of the rest the largest mass that a shift moves beyond the cut."""
        return min(_fraction(self._least), Fraction(1))

    @cached_property
    def _least(self) -> fmpq:
        atom = fmpq(self.atom, LIMB)
        if not self.cut:
            return atom
        work.count(1e-5 * (self.cut // self.period + 10))
        return atom + (1 - atom) * _moved(self._exactly, self.period, self.first, self.cut)

    def exact_delta(self, ratio: Fraction, reach: float | None = None) -> Fraction:
        """An upper bound on the divergence over all shifts up to `reach`, at most the sensitivity; 1 for a larger reach.

        Of ratios below 1/b the largest that `guarantee()` allows. By (e^eps, delta) for a set of outputs and for its complement

            P <= e^eps Q + delta,    1 - Q <= e^eps (1 - P) + delta,    P <= 1,

        and P - ratio Q is largest where two of these lines cross: Kairouz, Oh and Viswanath, "The composition theorem for
        differential privacy" (2015).
        """
        if reach is not None and reach > self.sensitivity:
            return Fraction(1)
        return 1 - (1 - self.least_delta) * min(Fraction(1), (1 + ratio) / (1 + 1 / self.fall), ratio)

    def hockey_stick(self, shift: Fraction | float, ratio: Fraction) -> Fraction:
        """An upper bound on the divergence at a shift of at most the sensitivity; 1 for a larger one."""
        if abs(Fraction(shift)) > Fraction(self.sensitivity):
            return Fraction(1)
        return self.exact_delta(ratio) if shift else max(1 - ratio, Fraction(0))

    def moment(self, power: int) -> Fraction:
        """E|Z|^power for power 1 or 2, exactly."""
        return _fraction(self._moment(power, self._exactly)[0])

    def _moment(self, power: int, b: Any) -> tuple[Any, Any]:
        """E|Z|^power, and P(J = 0), in the numbers that b is given in."""
        share, total = fmpq(LIMB - self.atom, LIMB), 2 * self._sums(0, b) - 1
        mean = 2 * self._sums(power, b) / total * share
        return mean * fmpq(*self.step.as_integer_ratio()) ** power, share / total + fmpq(self.atom, LIMB)

    def guarantee(self) -> ApproxDP | None:
        worst = _rounded_up(self.least_delta)
        return ApproxDP(Log(1 / self.fall), worst, self.sensitivity) if worst < 1 else None

    def satisfies(self, privacy: Privacy) -> bool | None:
        """True where the guarantee implies it; False without delta alone, where the guarantee's ratio is attained."""
        asked_for(privacy)
        own = self.guarantee()
        if own is not None and privacy.implied_by(own):
            return True
        if not isinstance(privacy, ApproxDP) or not privacy.delta == 0 == self.least_delta or self.first <= 1:
            return None
        attained = privacy.sensitivity >= self.sensitivity and 1 / self.fall > enclosures.exp_above(privacy.eps)
        return False if attained else None

    @property
    def atom_mass(self) -> float:
        """P(Z = 0) from what is mixed in at 0."""
        return self.atom / LIMB

    def privacy(self) -> float:
        """The smallest eps, rounded up, of noise that needs no delta. **Raises** ValueError for other noise."""
        if self.least_delta:
            raise ValueError("privacy() is ambiguous here: this noise has an eps and a delta; use guarantee()")
        return enclosures.log_above(1 / self.fall)

    def delta(self, eps: float) -> float:
        """An upper bound on the privacy profile: the guarantee's delta from its eps on, and what it implies below."""
        return enclosures.round_up(self.exact_delta(enclosures.exp_below(require.exact_epsilon(eps, zero=True))))

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        if not isinstance(privacy, ApproxDP):
            return super().check_privacy(privacy)
        reach, ratios = privacy.sensitivity <= self.sensitivity, enclosures.at_most_exp(1 / self.fall, privacy.eps)
        told = f"the guarantee is for neighbours up to {privacy.sensitivity:g} apart"
        steps = f"a period further out the weights are 2^{FALL}/{self.decay} times smaller"
        if not ratios:
            steps += f", not proven to be at most {exp_of(privacy.eps)}: more of delta is used"
        most = 1 / self.fall if ratios else enclosures.exp_below(privacy.eps)
        held = privacy.check(self.exact_delta(most, privacy.sensitivity))
        return [
            held,
            Check("likelihood ratios", ratios or held.passed, steps),
            Check("sensitivity", reach, f"{told}, the noise for {self.sensitivity:g}"),
        ]

    # --- values

    def enclose(self, objective: Objective) -> tuple[float, float]:
        return (
            self._quantile(Fraction(objective.level)) if isinstance(objective, Quantile) else super().enclose(objective)
        )

    def _quantile(self, level: Fraction) -> tuple[float, float]:
        """Of |gJ - u|, for all u in [0, g): between g (|J| - 1) and g |J| or, where J is not above 0, g (|J| + 1)."""
        with ctx.workprec(enclosures.PRECISION):
            b, share = enclosures.ball(self.fall), enclosures.ball(Fraction(LIMB - self.atom, LIMB))
            every = 2 * _mass(b, self.period, self.first, self.cut + 1) - 1 if self.cut else 2 * self._sums(0, b) - 1
            most = enclosures.ball(1 - level)

            def beyond(n: int) -> arb:
                """P(|J| >= n)."""
                return share * (1 - (2 * _mass(b, self.period, self.first, n) - 1) / every) if n else arb(1)

            def first(enough: Callable[[arb], bool]) -> int:
                """The least n >= 1 with `enough` of beyond(n), which does not grow."""
                low, high = 0, self.period
                while not enough(beyond(high)):
                    work.count(1e-5)
                    low, high = high, 2 * high
                while high - low > 1:
                    middle = (low + high) // 2
                    low, high = (low, middle) if enough(beyond(middle)) else (middle, high)
                return high

            low, high = first(lambda p: not p > most), first(lambda p: bool(p <= most))
        step = Fraction(self.step)
        return enclosures.round_down(step * max(low - 2, 0)), enclosures.round_up(step * high)

    def enclose_loss(self, loss: LossLike = "abs") -> tuple[float, float]:
        """(low, high) that contain E L(|Y - x|), the rounding of the input included.

        With u in [0, g) what is rounded off, E|gJ - u| = E|gJ| + u P(J = 0) and E(gJ - u)^2 = E(gJ)^2 + u^2, exactly. For other
        losses a sum over a step lies between integrals over it, one or two points further in or out.
        """
        law = self._loss(loss)
        if law.assumptions:
            raise TypeError(f"loss = {law.name!r} is not allowed: only powers and pieces have proven values here")
        g = fmpq(*self.step.as_integer_ratio())
        with ctx.workprec(enclosures.PRECISION):
            if law.exponent not in (1, 2):
                low, high = self._bounds(law)
                return max(enclosures.round_down(low), 0.0), enclosures.round_up(high)
            plain, still = self._moment(int(law.exponent), enclosures.ball(self.fall))
            more = g * still if law.exponent == 1 else g * g
            return enclosures.round_down(plain), enclosures.round_up(plain + more)

    def _bounds(self, law: Any, still: bool = False) -> tuple[arb, arb]:
        """Balls around a lower and an upper bound on E L(|gJ - u|), for all u in [0, g); of J = 0 (`still`) for u = 0 alone."""
        g, b, one = enclosures.ball(self.step), enclosures.ball(self.fall), arb(1)
        scale, power = law.growth
        known: dict[int, arb] = {}
        least = arb(2) ** -LEAST_MASS  # a loss may be 0 as far as floats can tell

        def integral(j: int) -> arb:
            """Of L, from 0 to the point j, in points."""
            if j not in known:
                known[j] = law.integral_ball(g * j) / g if j > 0 else arb(0)
            return known[j]

        zero = enclosures.ball(law.exact(Fraction(0))) if law.exponent is None else arb(0)
        moved = zero if still else integral(2) - integral(1)
        low, high, start, last = zero, moved, 1, self.cut or None
        for i in count():
            work.count(5e-5)
            k, weight = i // 2, b ** ((i + 1) // 2)
            end = k * self.period + (self.period if i % 2 else self.first)
            end = end if last is None else min(end, last + 1)
            # Of the points j and -j one is at most g j from gJ - u = 0 and one g (j + 1), and both are no nearer than one less.
            low += weight * (integral(end - 1) - integral(start - 1) + integral(end - 2) - integral(start - 2))
            high += weight * (integral(end) - integral(start) + integral(end + 1) - integral(start + 1))
            start = end
            if last is not None and end > last:
                break
            if i % 2:  # of further periods no point's loss is more than at the end of its period
                fall = b * (enclosures.ball(power) / (k + 3)).exp()
                reach = enclosures.ball(self.sensitivity).max(one) * (k + 3) * (1 + one / 2**30)
                most = enclosures.ball(scale) * reach ** enclosures.ball(power)
                rest = 2 * b ** (k + 1) * self.period * most / (1 - fall)
                if fall < 1 and rest < (high / 2**70).max(least):
                    high += rest
                    break
        total, share = 2 * self._sums(0, b) - 1, enclosures.ball(Fraction(LIMB - self.atom, LIMB))
        return share * low / total + (1 - share) * zero, share * high / total + (1 - share) * moved

    def noise_loss(self, loss: LossLike = "abs") -> float:
        law = self._loss(loss)
        if law.exponent in (1, 2):
            return float(self.moment(int(law.exponent)))
        if not law.assumptions:
            with ctx.workprec(enclosures.PRECISION):
                low, high = self._bounds(law, still=True)
                return float(((low + high) / 2).mid())
        ends, heights = self._law.pieces()
        return float(2 * heights @ np.diff(law.integral(ends))) + self.atom_mass * float(law(0.0))

    def noise_radius(self) -> float:
        return self.cut * self.step if self.cut else math.inf

    # --- the law in floats

    @property
    def _whole(self) -> Stairs:
        """Before cut and atom. A point of the lattice is spread over the step around it: half of 0 is on either side."""
        f, m, b = self.first, self.period, float(self.fall)
        ends = self.step * (np.array([0.5, f, m, m + f, 2 * m]) - 0.5)
        masses = np.array([f - 0.5, b * (m - f), b * f, b**2 * (m - f)])
        return Stairs(ends, masses, start=ends[2], fall=b)

    @cached_property
    def _law(self) -> Stairs:
        if not self.cut:
            whole = self._whole
            return Stairs(whole.ends, whole.masses, atom=self.atom_mass, start=whole.start, fall=float(self.fall))
        ends, heights = self._whole.pieces(edge := (self.cut + 0.5) * self.step)
        ends = np.minimum(ends, edge)
        return Stairs(ends, heights * np.diff(ends), atom=self.atom_mass)

    @property
    def _rest(self) -> float:
        """What the cut takes away."""
        return 2 * float(self._whole.beyond(np.array((self.cut + 0.5) * self.step))) if self.cut else 0.0

    # --- sampling

    @cached_property
    def _alias(self) -> Alias:
        """The first step of a period or the second."""
        weights = [self.first << FALL, self.decay * (self.period - self.first)]
        return Alias([weights], sum(weights))

    @cached_property
    def _periods(self) -> Geometric:
        return Geometric(self.fall)

    def _places(self, size: int, rng: np.random.Generator) -> np.ndarray:
        if not self.atom:
            return super()._places(size, rng)
        out, open_ = np.zeros(size, dtype=np.int64), np.flatnonzero(~coin(self.atom, LIMB, size, rng))
        out[open_] = super()._places(open_.size, rng)
        return out

    def _trial(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Without the atom: 0 has one sign, and there is nothing beyond the cut."""
        low = self._alias.draw(np.zeros(size, dtype=np.int64), rng) == 1
        further = self.first + rng.integers(0, max(self.period - self.first, 1), size=size)
        far = either(low, further, rng.integers(0, self.first, size=size))
        far += self._periods.draw(size, rng) * self.period
        minus = rng.integers(0, 2, size=size)
        again = np.flatnonzero((far > self.cut) | (far < minus) if self.cut else far < minus)
        far *= 1 - 2 * minus
        return far, again

    def __repr__(self) -> str:
        reach = f"|z| <= {self.noise_radius():.6g}" if self.cut else "unbounded"
        atom = f", atom {below(self.atom_mass, 6)} at 0" if self.atom else ""
        return self._shown(f"{reach}{atom}")


def _fraction(q: fmpq) -> Fraction:
    return Fraction(int(q.p), int(q.q))


def _step(sensitivity: float) -> float:
    """The power of two of which the sensitivity is between 2^PERIOD and 2^(PERIOD + 1) times as much."""
    return math.ldexp(1.0, math.frexp(sensitivity)[1] - 1 - PERIOD)


def _moved(b: Any, period: int, first: int, cut: int) -> Any:
    """The share of a staircase cut off after this point that a shift by one period moves beyond it: that of the last M points."""

    k, rest = divmod(cut + 1, period)
    edge = b**k * _start(b, first, rest)
    if k:
        edge += b ** (k - 1) * (_start(b, first, period) - _start(b, first, rest))
    else:
        edge += _mass(b, period, first, min(period - cut, cut + 1)) - 1
    return edge / (2 * _mass(b, period, first, cut + 1) - 1)


def _start(b: Any, first: int, n: int) -> Any:
    """The sum of the first n <= M weights."""
    return min(n, first) + b * max(n - first, 0)


def _mass(b: Any, period: int, first: int, n: int) -> Any:
    """The sum of the first n weights of a staircase that is not cut off."""
    k, rest = divmod(n, period)
    return _start(b, first, period) * (1 - b**k) / (1 - b) + b**k * _start(b, first, rest)


def _rounded_up(mass: Fraction) -> Fraction:
    """A delta that a notion takes: where the noise is cut off after many periods, the exact one has thousands of bits."""
    if not mass or (mass.denominator.bit_length() <= BITS and float(mass) > 0):
        return mass
    places = min(mass.denominator.bit_length() - mass.numerator.bit_length() + DIGITS, LEAST_MASS)
    return Fraction(-(-(mass.numerator << places) // mass.denominator), 1 << places)


def _points(sensitivity: float) -> int:
    return math.ceil(Fraction(sensitivity) / Fraction(_step(sensitivity)))


def noise_of(problem: Any, share: float | None = None) -> list[LatticeStaircase]:
    """The staircase noises for a problem with (eps, delta): with an atom, and cut off; none for an eps that is too small."""
    privacy: Any = problem.privacy
    if float(privacy.eps) < LEAST:
        return []
    options: Any = {"share": share, "domain": problem.domain}
    found = [LatticeStaircase.private(privacy.eps, privacy.sensitivity, delta=privacy.delta, **options)]
    if privacy.delta > 0:
        with contextlib.suppress(ValueError):  # so small a delta that the noise would not end within PERIODS
            found.append(LatticeStaircase.truncated(privacy.eps, privacy.delta, privacy.sensitivity, **options))
    return found

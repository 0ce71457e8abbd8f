r"""Gaussian noise as it can be sent: drawn exactly, and rounded without bias to a lattice.

**The law.** N is normal with standard deviation sigma = M g/mu, where the lattice's step g is a power of two near 2^-50 sigma and
M g is the sensitivity, rounded up to whole steps. What is added is g K: N is rounded at random to one of the two lattice points
next to it, so that the mean stays. Inputs are rounded down to the lattice; neighbours are at most M steps apart then, and
g(i + K) is N + g i, rounded: what is done to an output costs no privacy, and the noise is exactly mu-GDP.

**Draws.** |N|/g lies in [j, j + 1) with the probability of N. A stretch of M' = sigma/(64 g) such j is chosen by a bound on the
density there, in exact integers; j is uniform within; it is kept with the probability e^(-(j + v)^2/(2 s^2)) over that bound,
s = sigma/g, v the uniform place between j and j + 1. Beyond LAST bounds fall by a constant factor each stretch. Whether a j is
kept is decided by integers nearly always, by floats where their error cannot matter, and else by balls, with digits of v and of
the uniform number that are drawn as far as they are needed. What is kept is rounded up with probability v: as long as v has no
digits, by a fair coin.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from flint import arb, ctx

from optdp.exact import Alias, Geometric, Log, Number, Within, enclosures, require, work
from optdp.exact.numbers import BITS as DIGITS
from optdp.exact.sampling import BITS, LIMB, limbs
from optdp.mechanisms.base import asked_for
from optdp.mechanisms.noise import NormalNoise, OnLattice
from optdp.problem import GDP, ApproxDP, Curve, Line, LossLike, Objective, Privacy, Profile, Quantile
from optdp.problem.privacy import Sensitivity, gauss_tail

#: sigma is between 2^FINE and 2^(FINE + 1) steps of the lattice, and the sensitivity at least 2^20: it is at least LEAST sigma.
FINE, LEAST = 49, 2.0**-29
#: The largest standard deviation before it is rounded, over what floats reach.
WIDEST = 1e150
#: Stretches per standard deviation, how many of them have a bound of their own, and by what the bounds of all others fall.
STRETCHES, LAST, FALL = 64, 560, Fraction(9, 10)
#: Bounds are integers over 2^HEIGHT.
HEIGHT = 100
#: Floats decide where they are further apart, in units of 2^-62: their errors are below 2^-43.
DOUBT = 2.0**24
#: Further bits for the moments of stretches that are short beside sigma, at most.
MOST = 30_000


@dataclass(frozen=True, repr=False)
class LatticeGaussian(OnLattice, NormalNoise):
    """Gaussian noise that is mu-GDP as it is sent: see the module.

    **Arguments:** `domain`: a `Line`; `sensitivity`: how far apart neighbours are; `mu`: an exact number from 2^-29 to 8.

    `enclose` counts the rounding of inputs and of noise to the lattice, of a share of at most 2^-49 sigma; sums beyond 2^53 steps
    are rounded to floats at the very end, which it does not count.

        >>> import optdp
        >>> noise = LatticeGaussian(optdp.Line(), 1.0, 0.5)
        >>> noise.guarantee(), noise.enclose_loss("squared")
        (GDP(mu=0.5, sensitivity=1.0), (3.9999999999999996, 4.000000000000001))
        >>> noise.satisfies(optdp.ApproxDP(1.0, 0.02))
        True
    """

    domain: Line
    sensitivity: Sensitivity
    mu: Annotated[Number, Within(LEAST, 8.0)]

    def __post_init__(self) -> None:
        super().__post_init__()
        require.real("sensitivity/mu", self.sensitivity / float(self.mu), low=0.0, high=WIDEST)

    # --- the lattice

    @property
    def step(self) -> float:
        return math.ldexp(1.0, math.frexp(self.sensitivity / float(self.mu))[1] - 1 - FINE)

    def _apart(self, reach: float) -> int:
        """How many steps inputs that are up to `reach` apart may be apart on the lattice."""
        return math.ceil(Fraction(reach) / Fraction(self.step))

    def _steps(self) -> arb:
        """s: the standard deviation in steps."""
        return self._apart(self.sensitivity) / enclosures.ball(self.mu)

    @cached_property
    def sigma(self) -> float:
        """The standard deviation before noise is rounded, rounded up."""
        with ctx.workprec(enclosures.PRECISION):
            return enclosures.round_up(self._steps() * enclosures.ball(self.step))

    # --- privacy: that of the Gaussian

    def guarantee(self) -> GDP:
        return GDP(self.mu, self.sensitivity)

    def satisfies(self, privacy: Privacy) -> bool | None:
        """True where Gaussian DP at the sensitivity asked for implies it; False where a half-line breaks it, even as sent."""
        asked_for(privacy)
        reach, own = getattr(privacy, "sensitivity", self.sensitivity), self.guarantee()
        if reach != self.sensitivity:
            mu = self._scaled(Fraction(self._apart(reach), self._apart(self.sensitivity)))
            own = GDP(mu, reach) if float(mu) <= 8 else own
        if own.sensitivity == reach and privacy.implied_by(own):
            return True
        return False if self._broken(privacy, math.floor(Fraction(reach) / Fraction(self.step))) else None

    def _scaled(self, share: Fraction) -> Number:
        """mu times `share`, rounded up where it is a logarithm or has too many digits."""
        if not isinstance(self.mu, Log):
            exact = Fraction(self.mu) * share
            if max(exact.numerator, exact.denominator).bit_length() <= DIGITS:
                return exact
        with ctx.workprec(enclosures.PRECISION):
            return enclosures.round_up(enclosures.ball(self.mu) * enclosures.ball(share))

    def _broken(self, privacy: Privacy, apart: int, unit: int = 1) -> bool:
        """Whether the outputs from a lattice point on, K >= k, of inputs that are so many steps apart prove that it is not kept.

        As N/g >= k implies K >= k, which implies N/g > k - 1: P(K >= k - apart) >= Q((k - apart)/s), P(K >= k) <= Q((k - 1)/s).

        **Arguments:** `unit`: of k, if not 1, only the first ones that are nearer to a multiple of it than to those below.
        """
        with ctx.workprec(2 * enclosures.PRECISION):
            s = self._steps()
            if isinstance(privacy, GDP):
                return bool(enclosures.ball(privacy.mu) < (apart - 1) / s)
            pairs: Any = ()
            if isinstance(privacy, ApproxDP):
                pairs = ((privacy.eps, privacy.delta),)
            elif isinstance(privacy, Profile | Curve):  # a curve's pairs imply it; what it asks for are its points
                pairs = privacy.pairs if isinstance(privacy, Profile) else privacy.points
            for eps, delta in pairs if apart else ():
                best = math.ceil(enclosures.upper(enclosures.ball(eps) * s**2 / apart)) + apart // 2
                first = best // unit * unit + unit // 2 + 1
                for k in [best] if unit == 1 else [first - unit, first] if first > unit else [first]:
                    excess = gauss_tail((k - apart) / s) - enclosures.exp(eps) * gauss_tail((k - 1) / s)
                    if excess > enclosures.ball(delta):
                        return True
        return False

    def delta(self, eps: Number) -> float:
        """An upper bound on the privacy profile at `eps`: that of the Gaussian, rounded up."""
        return enclosures.round_up(GDP(self.mu, self.sensitivity).delta_at(require.exact_epsilon(eps, zero=True)))

    # --- values

    def enclose_loss(self, loss: LossLike = "abs") -> tuple[float, float]:
        """(low, high) that contain E L(|Y - x|), proven.

        Y - x = gK - u with 0 <= u < g what is rounded off the input. |.| is linear between lattice points, so that E|gK| = E|N|,
        and E|gK - u| = E|gK| + u P(K = 0), where P(K = 0) <= g/(sigma sqrt(2 pi)); E(gK - u)^2 = E(gK)^2 + u^2, and rounding adds
        at most g^2/4 to the square. For other losses |Y - x| is within 2g of |N|; for a power q < 1, at |N| >= 4g the slope
        between is at most q (|N|/2)^(q - 1), and |N| < 4g has a probability of at most 8g/(sigma sqrt(2 pi)).
        """
        law = self._loss(loss)
        if law.exponent is None and law.polynomials is None:
            told = "for Gaussian noise powers and piecewise polynomials have a proven value"
            raise TypeError(f"loss = {law.name!r} is not allowed: {told}")
        with ctx.workprec(2 * enclosures.PRECISION):
            g, s = enclosures.ball(self.step), self._steps()
            sigma, q = g * s, law.exponent
            if q is None:
                return self._enclose_pieces(law)
            order, root = enclosures.ball(q), (2 * arb.pi()).sqrt()
            value = _power(sigma, order)
            if q in (1, 2):
                value = value.union(value + (g / s / root if q == 1 else 5 * g**2 / 4))
            elif q > 1:  # Minkowski's inequality
                norm = value ** (1 / order)
                value = ((norm - 2 * g) ** order).union((norm + 2 * g) ** order)
            else:
                near = (6 * g) ** order * 8 / s / root
                room = near + 2 * g * order * arb(2) ** (1 - order) * _power(sigma, order - 1)
                value = (value - room).union(value + room)
            return max(0.0, enclosures.round_down(value)), enclosures.round_up(value)

    def _enclose_pieces(self, law: Any) -> tuple[float, float]:
        """For a piecewise polynomial. Moments of a stretch that is short beside sigma cancel, so that more digits are needed."""
        breaks, rows = law.polynomials
        longest = max(map(len, rows))
        short = (
            math.log2(self.sigma) - float(enclosures.ball(breaks[1]).log() / arb(2).log()) if len(breaks) > 1 else 0.0
        )
        bits = 2 * enclosures.PRECISION + min(math.ceil((longest + 2) * max(short, 0.0)), MOST)
        work.count(bits / 800 * sum((len(row) + 3) ** 2 for row in rows))
        with ctx.workprec(bits):
            g = enclosures.ball(self.step)
            sigma = g * self._steps()
            value = self._pieces(law, sigma, -2 * g).union(self._pieces(law, sigma, 2 * g))
            return max(0.0, enclosures.round_down(value)), enclosures.round_up(value)

    @staticmethod
    def _pieces(law: Any, sigma: arb, shift: arb) -> arb:
        """E L((|N| + shift)_+) for a piecewise polynomial L."""
        breaks, rows = law.polynomials
        ends = [(enclosures.ball(b) - shift).max(arb(0)) / sigma for b in breaks] + [None]
        start = (-shift).max(arb(0)) / sigma
        total = enclosures.ball(rows[0][0]) * (1 - 2 * gauss_tail(start))
        for row, low, high in zip(rows, ends[:-1], ends[1:], strict=True):
            # The polynomial in z, |N| = sigma z: by Horner's rule.
            moved = [arb(0)]
            for a in reversed(row):
                up = [arb(0), *(c * sigma for c in moved)]
                moved = [x + y * shift for x, y in zip(up, [*moved, arb(0)], strict=True)]
                moved[0] += enclosures.ball(a)
            for coefficient, moment in zip(moved, _moments(low, high, len(moved)), strict=True):
                total += coefficient * moment
        return total

    def noise_loss(self, loss: LossLike = "abs") -> float:
        low, high = self.enclose_loss(loss)
        return low + (high - low) / 2

    def enclose(self, objective: Objective) -> tuple[float, float]:
        return self._error_bar(objective.level) if isinstance(objective, Quantile) else super().enclose(objective)

    def _error_bar(self, level: float) -> tuple[float, float]:
        """(low, high) that contain the level-quantile of |Y - x|, which is within 2g of |N|."""
        from scipy.special import ndtri

        with ctx.workprec(2 * enclosures.PRECISION):
            tail, g, room = (1 - enclosures.ball(level)) / 2, enclosures.ball(self.step), arb(2) ** -50
            guess = arb(-float(ndtri((1 - level) / 2)))
            room *= 1 + guess  # the guess may be 0
            while not gauss_tail(guess - room) > tail > gauss_tail(guess + room):
                room *= 4
            low, high = (g * (self._steps() * (guess + side * room) + 2 * side) for side in (-1, 1))
            return max(0.0, enclosures.round_down(low)), enclosures.round_up(high)

    # --- draws: densities and quantiles are those of N, before it is rounded to the lattice

    @cached_property
    def _width(self) -> int:
        """Steps of a stretch."""
        with ctx.workprec(enclosures.PRECISION):
            return math.floor(enclosures.lower(self._steps())) // STRETCHES

    @cached_property
    def _bounds(self) -> list[int]:
        """Above 2^HEIGHT e^(-z^2/2) on the stretches 0, ..., LAST."""
        with ctx.workprec(enclosures.PRECISION):
            s = self._steps()
            tops = ((arb(2) ** HEIGHT) * (-((c * self._width / s) ** 2) / 2).exp() for c in range(LAST + 1))
            return [math.ceil(enclosures.upper(top)) for top in tops]

    @cached_property
    def _sure(self) -> np.ndarray:
        """Tosses below this keep any j of the stretch; 0 beyond the last."""
        with ctx.workprec(enclosures.PRECISION):
            s, bounds = self._steps(), self._bounds
            ends = ((-(((c + 1) * self._width / s) ** 2) / 2).exp() * arb(2) ** (HEIGHT + BITS) for c in range(LAST))
            low = [math.floor(enclosures.lower(end / bound)) for end, bound in zip(ends, bounds, strict=False)]
        return np.array([*low, 0], dtype=np.int64)

    @cached_property
    def _scales(self) -> np.ndarray:
        """2^62 over the bounds, for e^(-z^2/2)."""
        return np.array([2.0**BITS * float(Fraction(2**HEIGHT, bound)) for bound in self._bounds])

    @cached_property
    def _deviation(self) -> float:
        """s as a float."""
        with ctx.workprec(enclosures.PRECISION):
            return float(self._steps())

    @cached_property
    def _alias(self) -> Alias:
        """The stretches, and all that follow."""
        weights = [*self._bounds[:-1], int(self._bounds[-1] / (1 - FALL))]
        return Alias([weights], sum(weights))

    @cached_property
    def _further(self) -> Geometric:
        return Geometric(FALL)

    def _places(self, size: int, rng: np.random.Generator) -> np.ndarray:
        halves = self._halves(size, rng)
        return np.sign(halves) * ((np.abs(halves) + 1) >> 1)

    def _halves(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Draws of 2j, or 2j + 1 where it is rounded up, with the sign of N."""
        return super()._places(size, rng)

    def _trial(self, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        stretch = self._alias.draw(np.zeros(size, dtype=np.int64), rng)
        within = rng.integers(0, 4 * self._width, size=size)
        toss = limbs(size, rng)
        up = within & 1
        minus = within & 2
        within >>= 2
        within += stretch * self._width
        unsure = np.flatnonzero(toss >= self._sure.take(stretch))
        of, place = stretch[unsure], within[unsure]
        over = toss[unsure] - self._scales.take(of) * np.exp(-np.square((place + 0.5) / self._deviation) / 2)
        kept = over < 0
        for i in np.flatnonzero((np.abs(over) <= DOUBT) | (of == LAST)).tolist():
            height, row = Fraction(self._bounds[of[i]]), unsure[i]
            if of[i] == LAST:
                further = int(self._further.draw(1, rng)[0])
                within[row] += further * self._width
                height *= FALL**further
            kept[i], up[row] = self._settled(int(within[row]), height, int(toss[row]), bool(up[row]), rng)
        within <<= 1
        within += up
        within *= 1 - minus
        return within, unsure[~kept]

    def _settled(self, j: int, bound: Fraction, toss: int, up: bool, rng: np.random.Generator) -> tuple[bool, bool]:
        """(whether j is kept, whether it is rounded up): with digits of v, and of the numbers that decide, as they are needed."""
        v, u, bits = 0, 0, 0
        while True:
            with ctx.workprec(enclosures.PRECISION + 2 * bits):
                s, scale = self._steps(), arb(2) ** HEIGHT / enclosures.ball(bound)
                ends = (enclosures.ball(Fraction((j << bits) + v + k, 1 << bits)) / s for k in (0, 1))
                most, least = ((-(z**2) / 2).exp() * scale for z in ends)
                low, high = (enclosures.ball(Fraction(toss + k, LIMB << bits)) for k in (0, 1))
                if high <= least or low >= most:
                    return bool(high <= least), u < v or (u == v and up)
            v, u, toss = (number * LIMB + int(limbs((), rng)) for number in (v, u, toss))
            bits += BITS

    def __repr__(self) -> str:
        return self._shown(self.guarantee().adjective)


def _power(sigma: arb, order: arb) -> arb:
    """E |N|^order for a standard deviation sigma, order > -1."""
    return sigma**order * arb(2) ** (order / 2) * ((order + 1) / 2).gamma() / arb.pi().sqrt()


def _moments(low: arb, high: arb | None, count: int) -> list[arb]:
    """2 int_low^high z^k phi(z) dz for k < count, phi the normal density; `high` None: without end."""
    ends = [low] if high is None else [low, high]
    bends = [(-(z**2) / 2).exp() / (2 * arb.pi()).sqrt() for z in ends]
    out: list[arb] = []
    for k in range(count):
        parts = [2 * z ** (k - 1) * bend if k else 2 * gauss_tail(z) for z, bend in zip(ends, bends, strict=True)]
        out.append(parts[0] - sum(parts[1:]) + ((k - 1) * out[k - 2] if k > 1 else 0))
    return out

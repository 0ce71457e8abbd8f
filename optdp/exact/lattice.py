"""What is sent and what is read: the multiples of a power of two between two numbers, each of them a float; and exact rounding.

Every multiple of `step` in [lower, upper] is a float if the larger end is at most 2^53 steps from 0, so that the numbers that a
mechanism sends are those that its proof is about. Inputs are read as the nearest multiple, by a rule that sees nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optdp.exact.sampling import LIMB

#: Floats hold integers up to this size.
LARGEST = 2**53
#: Bits of a limb where products of integers are taken apart, and limbs behind the point of a factor: what is cut off is
#: below 2^-46 of a unit for an index below 2^61. Floats decide where they are further than MARGIN from a tie.
BITS, LIMBS, MARGIN = 27, 4, 2.0**-30
#: Indices that `dither` takes at a time: what stands between fits into a cache.
BLOCK = 1 << 13


@dataclass(frozen=True)
class Lattice:
    """The numbers k `step`, `first` <= k <= `last`."""

    step: Fraction
    first: int
    last: int

    @classmethod
    def between(cls, lower: Fraction | float, upper: Fraction | float, whole: bool = False) -> Lattice:
        """The finest one whose numbers between the ends are all floats; `whole`: the integers, which need not be floats."""
        largest = max(abs(Fraction(lower)), abs(Fraction(upper)))
        power = max(largest.numerator.bit_length() - largest.denominator.bit_length() - 54, -1074)
        while largest > LARGEST * Fraction(2) ** power:
            power += 1
        step = Fraction(1) if whole else Fraction(2) ** power
        return cls(step, math.ceil(Fraction(lower) / step), math.floor(Fraction(upper) / step))

    @property
    def whole(self) -> bool:
        """Whether it is of integers that are not all floats."""
        return self.step == 1 and max(-self.first, self.last) > LARGEST

    @property
    def count(self) -> int:
        """How many numbers there are."""
        return self.last - self.first + 1

    def index(self, x: np.ndarray) -> np.ndarray:
        """k of the nearest number to each float (integers as they are): dividing by a power of two is exact."""
        near = x if x.dtype.kind in "iu" else np.asarray(x / float(self.step))
        k = (near if near is x else np.rint(near, out=near)).astype(np.int64)
        return np.minimum(np.maximum(k, self.first, out=k), self.last, out=k)  # np.clip is slower

    def sent(self, k: np.ndarray) -> np.ndarray:
        """k step, exactly: integers where the step is 1 and they are not all floats."""
        return k if self.whole else np.asarray(k * float(self.step))

    def slack(self, lower: Fraction | float, upper: Fraction | float) -> Fraction:
        """How far the ends lie outside: 0 where they are numbers of the lattice."""
        return max(self.first * self.step - Fraction(lower), Fraction(upper) - self.last * self.step)


def nearest(q: Fraction) -> float:
    """The nearest float; infinite beyond the largest."""
    try:
        return float(q)
    except OverflowError:
        return math.inf if q > 0 else -math.inf


def dither(index: np.ndarray, offset: Fraction, factor: Fraction, rng: np.random.Generator) -> np.ndarray:
    """One of the two integers around offset + index factor, at random such that its mean is exactly that number.

    **Arguments:** `index`: integers from 0 to 2^60; `factor`: >= 0; the results must stay below 2^62 in size.

    Products are taken in integers of 27 bits. A toss of 62 bits that is too near to be decided so is decided in rationals,
    and one that ties is tossed on.
    """
    whole = math.floor(offset)
    parts = [offset - whole, factor]
    fixed = [math.floor(part * (1 << (BITS * LIMBS))) for part in parts]
    limbs = [[(f >> (BITS * k)) & ((1 << BITS) - 1) for k in range(LIMBS)] + [f >> (BITS * LIMBS)] for f in fixed]
    toss = rng.integers(0, LIMB, size=index.shape)
    out, places, tosses = np.empty(index.size, dtype=np.int64), index.reshape(-1), np.asarray(toss).reshape(-1)
    for start in range(0, index.size, BLOCK):
        part = slice(start, start + BLOCK)
        out[part] = _dithered(places[part], tosses[part], offset, factor, whole, limbs, rng)
    return out.reshape(index.shape)


def _dithered(
    index: np.ndarray, toss: np.ndarray, offset: Fraction, factor: Fraction, whole: int, limbs: list[list[int]],
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """A block of `dither`."""
    low, high = index & ((1 << BITS) - 1), index >> BITS
    # Position k counts units of 2^(BITS (k - LIMBS)); the first positions are of no use but for their carry.
    carry, digits = np.zeros(index.shape, dtype=np.int64), []
    for k in range(LIMBS + 1):
        total = low * limbs[1][k]
        total += carry
        total += limbs[0][k]
        if k:
            total += high * limbs[1][k - 1]
        if k == LIMBS:
            digits.append(total + ((high * limbs[1][k]) << BITS))
            break
        carry = total >> BITS
        digits.append(total & ((1 << BITS) - 1))
    rest = (digits[LIMBS - 1] + digits[LIMBS - 2] / 2.0**BITS) / 2.0**BITS
    excess = toss / LIMB - rest
    up, out = excess < 0, digits[LIMBS] + whole
    unsure = (np.abs(excess) < MARGIN) | (rest < MARGIN) | (rest > 1 - MARGIN)
    for place in np.unique(index[unsure]).tolist():
        exact = offset + place * factor
        here = unsure & (index == place)
        share = exact - math.floor(exact)
        out[here] = math.floor(exact)
        up[here] = toss[here] < (cut := math.floor(share * LIMB))
        for i in np.flatnonzero(here & (toss == cut)):
            up[i] = tossed(cut, share, rng)
    out += up
    return out


def tossed(toss: int, share: Fraction, rng: np.random.Generator) -> bool:
    """Whether a uniform number, of which `toss` holds the first 62 bits, is below `share`: with exactly that probability."""
    while toss == (cut := share.numerator * LIMB // share.denominator) and share * LIMB != cut:
        share, toss = share * LIMB - cut, int(rng.integers(0, LIMB))
    return toss < cut

"""What is sent and what is read: the multiples of a power of two between two numbers, each of them a float; and exact rounding.

Every multiple of `step` in [lower, upper] is a float if the larger end is at most 2^53 steps from 0, so that the numbers that a
mechanism sends are those that its proof is about. Inputs are read as the nearest multiple, by a rule that sees nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from optdp.exact.sampling import BITS, in_blocks, limbs, tossed

#: Floats hold integers up to this size.
LARGEST = 2**53
#: Bits behind the point of what `dither` computes in 64-bit integers, and how far from a tie these decide.
BEHIND, MARGIN = 51, 1 << 21


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


def dither(index: np.ndarray, offset: Fraction, factor: Fraction, rng: np.random.Generator) -> np.ndarray:
    """One of the two integers around offset + index factor, at random such that its mean is exactly that number.

    **Arguments:** `index`: integers from 0 to 2^60; `factor`: >= 0; the results must stay below 2^62 in size.

    Of the sum, with a uniform number below 1 added to it, 64 bits around the point are taken in integers, which floats complete
    to the left: they are wrong by less than 2^12. What is cut off to the right is below 2^(9 - BEHIND). Where the
    number is too near to a tie to decide so, rationals do, and a tie of its 62 bits is tossed on.
    """
    whole = math.floor(offset)
    parts = [(offset - whole) * 2**BEHIND, factor * 2**BEHIND]
    start, step = ((math.floor(part) + 2**63) % 2**64 - 2**63 for part in parts)
    start += (1 << BEHIND) - 1 + MARGIN  # what this puts one too high is near to a tie
    rest, slope = float(parts[1] - math.floor(parts[1])), float(factor)

    def draw(places: np.ndarray) -> np.ndarray:
        toss, near = limbs(places.shape, rng), places.astype(float)
        fixed: np.ndarray = places * step  # modulo 2^64
        if rest:
            fixed += (near * rest).astype(np.int64)
        part = toss >> (BITS - BEHIND)
        fixed -= part
        fixed += start
        ties = np.flatnonzero(np.bitwise_and(fixed, (1 << BEHIND) - 1, out=part) < 2 * MARGIN)
        near *= slope
        about = near.astype(np.int64)
        fixed -= np.left_shift(about, BEHIND, out=part)
        fixed >>= BEHIND  # how far above `about`, with its sign
        fixed += about
        fixed += whole
        for i in ties.tolist():
            exactly = offset + int(places[i]) * factor
            down = math.floor(exactly)
            fixed[i] = down + tossed(int(toss[i]), exactly - down, rng)
        return fixed

    return in_blocks(draw, index)

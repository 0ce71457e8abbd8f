"""Everything that draws: the source of random bits, the one exact coin, and the one alias table, all in integers."""

import math
import os
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np

#: Random integers are drawn in limbs of 62 bits.
BITS = 62
LIMB = 1 << BITS
#: Answers that are drawn at a time: calls of numpy cost little beside them, and what stands between still fits into a cache.
BLOCK = 1 << 16

#: What integer seeds are given beside themselves: whoever made data with `numpy.random.default_rng(0)` may add noise with seed 0.
STREAM = tuple(b"optdp")

#: A source of random bits: None (the operating system's), or for experiments that are to be repeated a Generator or a seed.
Seed = np.random.Generator | int | None


def as_rng(rng: Seed) -> np.random.Generator:
    """The numpy Generator behind `rng`.

    **Arguments:** `rng`: None for the process's own cryptographic generator (`SystemGenerator`). An integer seed or a numpy
    Generator makes an experiment repeatable and protects nobody: who knows the seed, or recovers the state of a generator
    that is not cryptographic from its outputs, can undo the privacy. An integer gives other numbers here than it gives to
    `numpy.random.default_rng`: data simulated with the same one are independent of the noise. A Generator is used as it is:
    give it the same state only where the same numbers are wanted.

    **Raises** TypeError or ValueError for anything else.
    """
    try:
        if isinstance(rng, int | np.integer):
            return np.random.default_rng(np.random.SeedSequence(int(rng), spawn_key=STREAM))
        return _system() if rng is None else np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        told = f"rng = {rng!r} is not allowed: it must be None, an integer of at least 0 or a numpy Generator"
        raise type(error)(told) from None


class SystemGenerator(np.random.Generator):
    """AES-128 in counter mode under a key from the operating system: what draws where no seed is given.

    Threads share one by its lock. A forked process gets a key of its own; a copy, or what arrives in another process by
    pickling, is the generator of that process: no two processes ever draw the same bits.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return as_rng, (None,)

    def spawn(self, n_children: int) -> list[Any]:
        """As many times the generator itself: what it draws is independent for everybody."""
        return [self] * n_children


@cache
def _system() -> SystemGenerator:
    """The generator of this process."""
    bits = _keyed()

    def rekey() -> None:
        bits.state = _keyed().state
        bits.lock.release()

    if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
        os.register_at_fork(before=bits.lock.acquire, after_in_parent=bits.lock.release, after_in_child=rekey)
    return SystemGenerator(bits)


def _keyed() -> np.random.BitGenerator:
    """The cipher under a fresh key. **Raises** RuntimeError where its build fails the example in FIPS 197, Appendix C.1."""
    from randomgen import AESCounter

    key, block, expected = bytes(range(16)), bytes(range(0, 256, 17)), "69c4e0d86a7b0430d8cdb78070b4c55a"
    known = AESCounter(key=int.from_bytes(key, "little"), counter=int.from_bytes(block, "little")).random_raw(2)
    if known.astype("<u8").tobytes().hex() != expected:
        raise RuntimeError("the cipher of randomgen is broken on this machine: install another build of it")
    cipher: np.random.BitGenerator = AESCounter(key=int.from_bytes(os.urandom(16), "little"))
    return cipher


class Tape(np.random.Generator):
    """Integers made from given 32-bit words by the rule of `optdp/statistics/portable.py`: what a client must draw from the same.

    **Arguments:** `source`: gives as many bytes as it is asked for. It is for tests alone and protects nobody; a mechanism that
    is given one number at a time asks for its integers in the order in which a client draws them.

    >>> Tape(bytes).integers(5, size=3)
    array([0, 0, 0])
    """

    def __init__(self, source: Callable[[int], bytes]) -> None:
        super().__init__(np.random.PCG64(0))
        self._source = source

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: bool = False
    ) -> Any:
        """As numpy's, for ranges of at most 2^64."""
        start, stop = (0, int(low)) if high is None else (int(low), int(high))
        count = stop - start + endpoint
        if size is None:
            return start + self._below(count)
        out = np.empty(size, dtype=dtype)
        out.reshape(-1)[:] = [start + self._below(count) for _ in range(out.size)]
        return out

    def _below(self, count: int) -> int:
        bits = (count - 1).bit_length()
        words, spare = -(-bits // 32), -bits % 32
        while True:
            found = 0
            for i in range(words):
                word = int.from_bytes(self._source(4), "little")
                found = found << 32 | (word if i else word >> spare)
            if found < count:
                return found


def limbs(shape: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Uniform integers below 2^62."""
    if type(rng) not in (np.random.Generator, SystemGenerator):  # one that answers what it is asked in a way of its own
        return np.asarray(rng.integers(0, LIMB, size=shape))
    words = np.asarray(rng.integers(0, 2**64, size=shape, dtype=np.uint64))  # in half the time of 62 bits
    words >>= np.uint64(64 - BITS)
    return words.view(np.int64)


def in_blocks(draw: Callable[[np.ndarray], np.ndarray], inputs: np.ndarray) -> np.ndarray:
    """What `draw` gives for the inputs, of which it gets at most BLOCK at a time, in one row."""
    flat = inputs.reshape(-1)
    first = draw(flat[:BLOCK])
    if flat.size <= BLOCK:
        return first.reshape(inputs.shape)
    out = np.empty(flat.size, dtype=first.dtype)
    out[:BLOCK] = first
    for start in range(BLOCK, flat.size, BLOCK):
        out[start : start + BLOCK] = draw(flat[start : start + BLOCK])
    return out.reshape(inputs.shape)


def either(first: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Numbers of `a` where `first` is true, else of `b`; four times as fast as numpy's `where` if that cannot be foreseen."""
    out: np.ndarray = np.subtract(a, b)
    out *= first
    out += b
    return out


class Guide:
    """On which of many stretches numbers lie: by a table of equal groups, and by bisection where a group has several.

    **Arguments:** `starts`: integers (or floats) at which stretches start, not decreasing; `bits`: numbers are below 2^bits.
    """

    def __init__(self, starts: np.ndarray, bits: int) -> None:
        whole, groups = starts.dtype.kind == "i", min(max(starts.size.bit_length() + 4, 12), 17)
        groups = min(groups, bits) if whole else groups
        self.starts, self.shift, self.scale = starts, bits - groups if whole else None, 2.0 ** (groups - bits)
        self.ends = np.append(starts[1:], np.iinfo(np.int64).max if whole else np.inf)
        edges = np.arange(2**groups) << self.shift if whole else np.arange(2**groups) / self.scale
        first = np.maximum(np.searchsorted(starts, edges, side="right") - 1, 0)
        first[0] = 0  # also for numbers below 0
        self.first = first.astype(np.min_scalar_type(starts.size))  # small, for the cache

    def __call__(self, at: np.ndarray) -> np.ndarray:
        """The last stretch that starts at or below each number, or the first one."""
        group = (at * self.scale).astype(np.int64) if self.shift is None else at >> self.shift
        found = self.first.take(group, mode="clip").astype(np.int64)
        late = np.flatnonzero(at >= self.ends.take(found))
        if late.size:
            found[late] = np.searchsorted(self.starts, at[late], side="right") - 1
        return found


def tossed(toss: int, share: Fraction, rng: np.random.Generator) -> bool:
    """Whether a uniform number, of which `toss` holds the first 62 bits, is below `share`: with exactly that probability."""
    while toss == (cut := share.numerator * LIMB // share.denominator) and share * LIMB != cut:
        share, toss = share * LIMB - cut, int(limbs((), rng))
    return toss < cut


def coin(heads: int, total: int, shape: int | tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """True with probability heads/total, exactly; `total` is a power of two of at most 2^124.

    One limb is tossed, and another one on a tie alone.
    """
    if heads >= total:
        return np.ones(shape, dtype=bool)
    high, low = divmod(heads * (LIMB * LIMB // total), LIMB)
    toss = limbs(shape, rng)
    out, tie = np.asarray(toss < high), np.asarray(toss == high)
    if low and tie.any():
        out[tie] = limbs(int(tie.sum()), rng) < low
    return out


class Geometric:
    """How many tosses in a row come up, each with the probability `share` < 1, as if they were tossed: exact.

    A uniform number is compared with the probabilities of fewer than k, which are looked up; where its first 62 bits leave that
    open it is drawn on, and after the last of the table the tosses start anew.
    """

    def __init__(self, share: Fraction) -> None:
        powers = [Fraction(1), share]
        while len(powers) <= 64 and powers[-1] * share * LIMB > 2**20:
            powers.append(powers[-1] * share)
        self.fewer = [1 - p for p in powers]
        self.guide = Guide(np.array([math.floor(f * LIMB) for f in self.fewer], dtype=np.int64), BITS)

    def draw(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """So many numbers."""
        found = self._drawn(size, rng)
        more = np.flatnonzero(found == len(self.fewer) - 1)
        while more.size:
            further = self._drawn(more.size, rng)
            found[more] += further
            more = more[further == len(self.fewer) - 1]
        return found

    def _drawn(self, size: int, rng: np.random.Generator) -> np.ndarray:
        toss = limbs(size, rng)
        found = self.guide(toss)
        for i in np.flatnonzero((toss == self.guide.starts.take(found)) & (found > 0)).tolist():
            found[i] = self._exactly(int(toss[i]), rng)
        return found

    def _exactly(self, toss: int, rng: np.random.Generator) -> int:
        scale = LIMB
        while True:
            low = bisect_right(self.fewer, Fraction(toss, scale))
            if low == bisect_left(self.fewer, Fraction(toss + 1, scale)):
                return low - 1
            toss, scale = toss * LIMB + int(limbs((), rng)), scale * LIMB


class Alias:
    """Walker's alias table (by Vose's method) of several distributions over the same outcomes, in exact integers.

    **Arguments:** `rows`: integer weights >= 0 of the outcomes, one sequence for each distribution, all with the sum `total`.

    One random integer of 62 bits gives both the cell, by its leading bits, and the choice between the two outcomes of a cell,
    which is tossed on where the other bits tie.
    """

    def __init__(self, rows: Sequence[Sequence[int]], total: int) -> None:
        count = len(rows[0])
        self.bits = (count - 1).bit_length()
        self.columns, self.rest = 1 << self.bits, BITS - self.bits
        cuts = np.empty((len(rows), self.columns), dtype=object)
        other = np.tile(np.arange(self.columns), (len(rows), 1))
        for i, row in enumerate(rows):
            left = [w << self.bits for w in row] + [0] * (self.columns - count)
            small = [j for j, w in enumerate(left) if w < total]
            large = [j for j, w in enumerate(left) if w >= total]
            while small:
                j, donor = small.pop(), large[-1]
                cuts[i, j], other[i, j] = left[j], donor
                left[donor] -= total - left[j]
                if left[donor] < total:
                    small.append(large.pop())
            for j in large:  # exactly full: integers leave no rest
                cuts[i, j] = total
        self.other = other.reshape(-1)
        scaled = cuts.reshape(-1) << self.rest
        self.bars = (scaled // total).astype(np.int64)
        #: What a tie leaves to be tossed for: of cells where that is anything.
        self.ties = {k: Fraction(int(left), total) for k, left in enumerate((scaled % total).tolist()) if left}

    def draw(self, row: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One outcome for each entry of `row`, exactly with the probabilities of that row (given ideal random integers)."""
        return in_blocks(lambda part: self._draw(part, rng), row)

    def _draw(self, row: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        ticket = limbs(row.shape, rng)
        cell = np.left_shift(row, self.bits, dtype=np.int64)
        cell += ticket >> self.rest
        ticket &= (1 << self.rest) - 1
        bars = self.bars.take(cell)
        first = np.asarray(ticket < bars)
        if self.ties:
            for i in np.flatnonzero(ticket == bars).tolist():
                share = self.ties.get(int(cell.flat[i]))
                first.flat[i] = share is not None and tossed(int(limbs((), rng)), share, rng)
        return either(first, cell & (self.columns - 1), self.other.take(cell))

"""Everything that draws: the source of random bits, the one exact coin, and the one alias table, all in integers."""

import os
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

#: Random integers are drawn in limbs of 62 bits.
BITS = 62
LIMB = 1 << BITS

#: A source of random bits: None (the operating system's), or for experiments that are to be repeated a Generator or a seed.
Seed = np.random.Generator | int | None


def as_rng(rng: Seed) -> np.random.Generator:
    """The numpy Generator behind `rng`.

    **Arguments:** `rng`: None for the process's own cryptographic generator (`SystemGenerator`). An integer seed or a numpy
    Generator makes an experiment repeatable and protects nobody: who knows the seed, or recovers the state of a generator
    that is not cryptographic from its outputs, can undo the privacy.
    """
    return _system() if rng is None else np.random.default_rng(rng)


class SystemGenerator(np.random.Generator):
    """AES-128 in counter mode under a key from the operating system: what draws where no seed is given.

    Threads share one by its lock. A forked process gets a key of its own; a copy, or what arrives in another process by
    pickling, is the generator of that process: no two processes ever draw the same bits.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return as_rng, (None,)

    def spawn(self, n_children: int) -> list[np.random.Generator]:
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


def below(total: int, size: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Uniform integers below `total` <= 2^124 in two limbs (high, low); exact, by rejection."""
    top, bottom = divmod(total, LIMB)
    if top == 0:
        return np.zeros(size, dtype=np.int64), rng.integers(0, bottom, size=size)
    high = rng.integers(0, top + (bottom > 0), size=size)
    low = rng.integers(0, LIMB, size=size)
    while bottom and (bad := (high == top) & (low >= bottom)).any():
        high[bad] = rng.integers(0, top + 1, size=int(bad.sum()))
        low[bad] = rng.integers(0, LIMB, size=int(bad.sum()))
    return high, low


def coin(heads: int, total: int, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """True with probability heads/total, exactly; `total` is a power of two of at most 2^124.

    One limb is tossed, and another one on a tie alone.
    """
    if heads >= total:
        return np.ones(shape, dtype=bool)
    high, low = divmod(heads * (LIMB * LIMB // total), LIMB)
    toss = rng.integers(0, LIMB, size=shape)
    out, tie = np.asarray(toss < high), np.asarray(toss == high)
    if low and tie.any():
        out[tie] = rng.integers(0, LIMB, size=int(tie.sum())) < low
    return out


class Alias:
    """Walker's alias table (by Vose's method) of several distributions over the same outcomes, in exact integers.

    **Arguments:** `rows`: integer weights >= 0 of the outcomes, one sequence for each distribution, all with the sum `total`,
    at most 2^124. Where `total` is 2^62 one random integer gives both the cell and the choice within it.
    """

    def __init__(self, rows: Sequence[Sequence[int]], total: int) -> None:
        count = len(rows[0])
        self.total, self.bits = total, max(count - 1, 1).bit_length()
        self.single = total == LIMB and self.bits < BITS
        self.columns = 1 << self.bits if self.single else count
        capacity = total >> self.bits if self.single else total
        factor = 1 if self.single else count
        cuts = np.empty((len(rows), self.columns), dtype=object)
        other = np.tile(np.arange(self.columns), (len(rows), 1))
        for i, row in enumerate(rows):
            left = [w * factor for w in row] + [0] * (self.columns - count)
            small = [j for j, w in enumerate(left) if w < capacity]
            large = [j for j, w in enumerate(left) if w >= capacity]
            while small:
                j, donor = small.pop(), large[-1]
                cuts[i, j], other[i, j] = left[j], donor
                left[donor] -= capacity - left[j]
                if left[donor] < capacity:
                    small.append(large.pop())
            for j in large:  # exactly full: integers leave no rest
                cuts[i, j] = capacity
        self.other = other.reshape(-1).astype(np.int64)
        self.high = (cuts.reshape(-1) >> BITS).astype(np.int64)
        self.low = (cuts.reshape(-1) & (LIMB - 1)).astype(np.int64)

    def draw(self, row: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One outcome for each entry of `row`, exactly with the probabilities of that row (given ideal random integers)."""
        if self.single:
            ticket = rng.integers(0, LIMB, size=row.shape)  # top bits: the cell; the rest: which of its two outcomes
            cell = row << self.bits
            cell += ticket >> (BITS - self.bits)
            ticket &= (1 << (BITS - self.bits)) - 1
            first = ticket < self.low[cell]
            return np.where(first, cell & (self.columns - 1), self.other[cell])
        column = rng.integers(0, self.columns, size=row.shape)
        cell = row * self.columns + column
        if self.total < LIMB:  # one limb is all there is
            stay = rng.integers(0, self.total, size=row.shape) < self.low[cell]
            return np.where(stay, column, self.other[cell])
        bar = self.high[cell]
        if self.total % LIMB:
            high, low = (part.reshape(row.shape) for part in below(self.total, row.size, rng))
            stay = (high < bar) | ((high == bar) & (low < self.low[cell]))
        else:  # another limb is tossed on a tie alone
            high = rng.integers(0, self.total // LIMB, size=row.shape)
            stay, tie = np.asarray(high < bar), np.asarray(high == bar)
            if tie.any():
                stay[tie] = rng.integers(0, LIMB, size=int(tie.sum())) < self.low[cell[tie]]
        return np.where(stay, column, self.other[cell])

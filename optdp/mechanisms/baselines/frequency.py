"""Published frequency oracles: unary encodings, local hashing, Hadamard response. Sources: `optdp.mechanisms.baselines`.

All are sampled exactly, with integers alone; direct encoding (d-ary randomised response) and subset selection are
`optdp.mechanisms.frequency.SubsetOracle`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from flint import ctx
from numpy.typing import ArrayLike

from optdp.closed_forms.frequency import best_size
from optdp.exact import Number, Seed, Within, as_rng, coin, enclosures, require
from optdp.mechanisms.frequency import COINS, FrequencyOracle, SubsetOracle, prime_at_least, shares
from optdp.problem import Average, LossLike, Objective, OneHot

_Coins = Annotated[int, Within(1, COINS - 1)]


@dataclass(frozen=True, repr=False)
class UnaryEncoding(FrequencyOracle):
    """One bit for each category: 1 with probability `own`/2^124 for the own category, `other`/2^124 for any other."""

    domain: OneHot
    own: _Coins
    other: _Coins

    @property
    def message(self) -> tuple[int, ...]:
        return (self.domain.d,)

    @property
    def exact_rates(self) -> tuple[Fraction, Fraction]:
        return Fraction(self.own, COINS), Fraction(self.other, COINS)

    @property
    def exact_ratio(self) -> Fraction:
        odds = Fraction(self.own, COINS - self.own) * Fraction(COINS - self.other, self.other)
        return max(odds, 1 / odds)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng = self.domain.check(x), as_rng(rng)
        bits = coin(self.other, COINS, (*inputs.shape, self.domain.d), rng)
        np.put_along_axis(bits, inputs[..., None], coin(self.own, COINS, (*inputs.shape, 1), rng), axis=-1)
        return bits.astype(np.uint8)

    def supports(self, messages: ArrayLike, categories: ArrayLike) -> np.ndarray:
        return np.asarray(messages)[..., np.asarray(categories)].astype(bool)

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        """The probability of the bits `y` along the last axis for the category `x`."""
        bits, inputs = np.asarray(y).astype(bool), self.domain.check(x)
        own = inputs[..., None] == np.arange(self.domain.d)
        one, none = (np.where(own, *pair) for pair in zip(shares(self.own), shares(self.other), strict=True))
        found: np.ndarray = np.prod(np.where(bits, one, none), axis=-1)
        return found

    def _within(self, rows: np.ndarray) -> bool:
        return bool(rows.max() <= 1)


@dataclass(frozen=True, repr=False)
class LocalHashing(FrequencyOracle):
    """A random hash function to `buckets` values and the own value of it, which is kept with probability `coins`/2^124 and else
    replaced by another one.

    Messages are (a, b, value) for the hash function c -> (a c + b mod q) mod buckets with a != 0 and the least prime q >= d,
    whose pairs of values have an exactly known distribution.
    """

    domain: OneHot
    buckets: Annotated[int, Within(2, 10**9)]
    coins: _Coins

    def __post_init__(self) -> None:
        super().__post_init__()
        require.integer("buckets", self.buckets, low=2, high=self._prime)

    @property
    def _prime(self) -> int:
        return prime_at_least(self.domain.d)

    @property
    def message(self) -> tuple[int, ...]:
        return (3,)

    @property
    def exact_rates(self) -> tuple[Fraction, Fraction]:
        q, g, own = self._prime, self.buckets, Fraction(self.coins, COINS)
        small, more = divmod(q, g)  # buckets of small + 1 and of small residues
        same = Fraction(more * (small + 1) * small + (g - more) * small * (small - 1), q * (q - 1))
        return own, same * own + (1 - same) * (1 - own) / (g - 1)

    @property
    def exact_ratio(self) -> Fraction:
        odds = Fraction(self.coins * (self.buckets - 1), COINS - self.coins)
        return max(odds, 1 / odds)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng, q = self.domain.check(x), as_rng(rng), self._prime
        slope, start = rng.integers(1, q, size=inputs.shape), rng.integers(0, q, size=inputs.shape)
        value = (slope * inputs + start) % q % self.buckets
        other = rng.integers(0, self.buckets - 1, size=inputs.shape)
        kept = coin(self.coins, COINS, inputs.shape, rng)
        return np.stack([slope, start, np.where(kept, value, other + (other >= value))], axis=-1)

    def supports(self, messages: ArrayLike, categories: ArrayLike) -> np.ndarray:
        a, b, value = (np.asarray(messages)[..., k, None] for k in range(3))
        return np.asarray((a * np.asarray(categories) + b) % self._prime % self.buckets == value)

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        """The probability of the message `y` = (a, b, value) along the last axis for the category `x`."""
        sent, inputs, q, (own, rest) = np.asarray(y), self.domain.check(x), self._prime, shares(self.coins)
        same = (sent[..., 0] * inputs + sent[..., 1]) % q % self.buckets == sent[..., 2]
        return np.where(same, own, rest / (self.buckets - 1)) / (q * (q - 1))

    def _within(self, rows: np.ndarray) -> bool:
        good = rows[:, :2].max() < self._prime and rows[:, 0].min() > 0 and rows[:, 2].max() < self.buckets
        return bool(good)


@dataclass(frozen=True, repr=False)
class HadamardResponse(FrequencyOracle):
    """Categories share `blocks` blocks of `size` outputs (a power of two), size - 1 categories to a block; each favours the half
    of its block where its row of the Hadamard matrix is +1, with `coins`/2^124 the probability of this half.

    Every other output is equally likely. T is 1/2 on the favoured half, -1/2 on the other half of the block, else 0.
    """

    domain: OneHot
    blocks: Annotated[int, Within(1, 10**9)]
    size: Annotated[int, Within(2, 2**30)]
    coins: _Coins
    _statistics = (-0.5, 0.5)
    binary = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.size & (self.size - 1) or self.blocks * (self.size - 1) < self.domain.d:
            raise ValueError("size is not allowed: it must be a power of two, with blocks (size - 1) >= d")

    @property
    def message(self) -> tuple[int, ...]:
        return ()

    @property
    def _outputs(self) -> int:
        return self.blocks * self.size

    @property
    def _rest(self) -> Fraction:
        """The probability of each output that is not favoured."""
        return (1 - Fraction(self.coins, COINS)) / (self._outputs - self.size // 2)

    @property
    def exact_rates(self) -> tuple[Fraction, Fraction]:
        return (Fraction(self.coins, COINS) - self._rest * (self.size // 2)) / 2, Fraction(0)

    @property
    def exact_ratio(self) -> Fraction:
        odds = Fraction(self.coins, COINS) / (self.size // 2) / self._rest
        return max(odds, 1 / odds)

    def _error(self, mine: int) -> Fraction:
        """E|Y - e_x|^2 of the categories of a block that has so many: T_c^2 is 1/4 on the block of c."""
        own = Fraction(self.coins, COINS) + self._rest * (self.size // 2)
        energy = (mine * own + (self.domain.d - mine) * self._rest * self.size) / 4
        return energy / self.exact_gap**2 - 1

    @property
    def _last(self) -> int:
        """How many categories are in the last block that has any: in the others there are size - 1."""
        return (self.domain.d - 1) % (self.size - 1) + 1

    @property
    def _errors(self) -> tuple[Fraction, Fraction]:
        """E|Y - e_x|^2 of the first category and of the last."""
        return self._error(min(self.domain.d, self.size - 1)), self._error(self._last)

    @property
    def exact_value(self) -> Fraction:
        return max(self._errors)

    def variance(self, x: ArrayLike) -> np.ndarray:
        """E|Y - e_x|^2, another one in a last block that is not full."""
        first, last = map(float, self._errors)
        return np.where(self.domain.check(x) < self.domain.d - self._last, first, last)

    def worst_input(self, loss: LossLike = "squared") -> Any:
        first, last = self._errors
        return self.domain.labels[0 if first >= last else -1]

    def average_loss(self, loss: LossLike = "squared") -> float:
        self._squared(loss)
        (first, last), share = self._errors, Fraction(self._last, self.domain.d)
        return float((1 - share) * first + share * last)

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(low, high) around the largest E|Y - e_x|^2, or around all of them, where an average lies."""
        low, high = super().enclose(objective)
        return enclosures.round_down(min(self._errors)) if isinstance(objective, Average) else low, high

    def _place(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(block, row of the Hadamard matrix): row 0, which is constant, is not used."""
        return x // (self.size - 1), x % (self.size - 1) + 1

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng, half = self.domain.check(x), as_rng(rng), self.size // 2
        block, row = self._place(inputs)
        near = coin(self.coins, COINS, inputs.shape, rng)
        # Half of a block: any column, with the lowest bit of the row exchanged where the sign is the wrong one.
        column = rng.integers(0, self.size, size=inputs.shape)
        far = rng.integers(0, self._outputs - half, size=inputs.shape)  # the first `half` of them: in the own block
        wanted = (~near).astype(np.int64)
        column = np.where(_parity(column & row) == wanted, column, column ^ (row & -row))
        elsewhere = np.where(far - half < block * self.size, far - half, far + half)
        return np.where(near | (far < half), block * self.size + column, elsewhere)

    def supports(self, messages: ArrayLike, categories: ArrayLike) -> np.ndarray:
        sent, (block, row) = np.asarray(messages)[..., None], self._place(np.asarray(categories))
        sign = 0.5 - _parity((sent % self.size) & row)
        return np.where(sent // self.size == block, sign, 0.0)

    def _tally(self, sent: np.ndarray, asked: np.ndarray, progress: bool) -> np.ndarray:
        """The fast Hadamard transform of the outputs' histogram."""
        counts = np.bincount(sent, minlength=self._outputs).astype(float).reshape(self.blocks, -1)
        step = 1
        while step < self.size:
            pairs = counts.reshape(self.blocks, -1, 2, step)
            counts = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
            step *= 2
        block, row = self._place(asked)
        return np.asarray(counts.reshape(self.blocks, self.size)[block, row] / 2)

    def second(self, messages: ArrayLike, categories: ArrayLike | None = None) -> np.ndarray:
        """The mean of T_c^2: a quarter of the share of the messages in the block of c."""
        sent, (block, _) = self.check_messages(messages), self._place(self._asked(categories))
        return np.bincount(sent // self.size, minlength=self.blocks)[block] / (4 * len(sent))

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        sent, (block, row) = np.asarray(y), self._place(self.domain.check(x))
        near = (sent // self.size == block) & (_parity((sent % self.size) & row) == 0)
        return np.where(near, self.coins / COINS / (self.size // 2), float(self._rest))

    def _within(self, rows: np.ndarray) -> bool:
        return bool(rows.max() < self._outputs)


def _parity(bits: np.ndarray) -> np.ndarray:
    return (np.bitwise_count(bits) & 1).astype(np.int64)


def _coins(share: Fraction) -> int:
    return share.numerator * COINS // share.denominator


def direct(eps: Number, domain: OneHot) -> SubsetOracle:
    """d-ary randomised response: the own category, or a uniform other one."""
    return SubsetOracle.private(eps, domain, 1)


def subset(eps: Number, domain: OneHot) -> SubsetOracle:
    """Subset selection with the better of the two sizes next to d/(e^eps + 1)."""
    return SubsetOracle.private(eps, domain, best_size(enclosures.exp_below(eps, 200), domain.d))


def rappor(eps: Number, domain: OneHot) -> UnaryEncoding:
    """Basic one-time RAPPOR: each of the d bits is kept with probability e^(eps/2)/(e^(eps/2) + 1)."""
    with ctx.workprec(264):
        root = max(Fraction(1), enclosures.lower(enclosures.exp(eps).sqrt()))
    kept = _coins(root / (1 + root))
    return UnaryEncoding(domain, kept, COINS - kept)


def optimised_unary(eps: Number, domain: OneHot) -> UnaryEncoding:
    """OUE: the own bit is kept with probability 1/2, any other set with probability 1/(e^eps + 1)."""
    ratio = enclosures.exp_below(eps, 200)
    return UnaryEncoding(domain, COINS // 2, COINS - _coins(ratio / (ratio + 1)))


def local_hashing(eps: Number, domain: OneHot) -> LocalHashing:
    """OLH: e^eps + 1 buckets, rounded to an integer."""
    ratio = enclosures.exp_below(eps, 200)
    buckets = min(max(2, round(ratio + 1)), prime_at_least(domain.d))
    return LocalHashing(domain, buckets, _coins(ratio / (ratio + buckets - 1)))


def hadamard(eps: Number, domain: OneHot) -> HadamardResponse:
    """Hadamard response with the number of blocks of its paper, the power of two below min(e^eps, 2 d)."""
    ratio = enclosures.exp_below(eps, 200)
    blocks = 2 ** (math.ceil(math.log2(min(ratio, Fraction(2 * domain.d)))) - 1)
    blocks = max(1, min(blocks, domain.d))
    size = 2 ** math.ceil(math.log2(-(-domain.d // blocks) + 1))
    half = size // 2
    return HadamardResponse(domain, blocks, size, _coins(half * ratio / (half * ratio + blocks * size - half)))

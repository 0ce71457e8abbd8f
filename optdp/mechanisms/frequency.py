"""Frequency oracles: one of d categories is made private, and the frequencies of the categories are estimated without bias.

Every oracle here supports each category c with a number T_c of the message, with E[T_c | x] = own if x = c and other if not;
Y_c = (T_c - other)/(own - other) is then unbiased for the one-hot vector of x, and the mean of Y over the messages for the
frequencies. `SubsetOracle` sends a set of categories; `AffineOracle` sends two integers that stand for one.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import Check, Log, Number, Seed, Within, as_rng, coin, enclosures, require, show
from optdp.mechanisms.unbiased_vectors import Vectors
from optdp.problem import LDP, Average, LossLike, Objective, OneHot, WorstCase

#: Probabilities of coins are multiples of 2^-124.
COINS = 2**124
#: Entries of the tables with which messages are drawn and decoded, at a time.
BLOCK = 2**24


class FrequencyOracle(Vectors):
    """A mechanism for one of d categories whose messages are decoded to unbiased estimates of the frequencies.

    Messages are integers: `randomize` gives one for each input, with further axes of the shape `message`. Sampling is in integers
    from end to end, so that privacy, bias and error are statements about what is really sent.
    """

    exact = True
    domain: OneHot

    @property
    @abstractmethod
    def message(self) -> tuple[int, ...]:
        """The shape of one message."""

    @property
    @abstractmethod
    def exact_rates(self) -> tuple[Fraction, Fraction]:
        """(own, other): E[T_c | x] for c = x and for c != x."""

    @property
    @abstractmethod
    def exact_ratio(self) -> Fraction:
        """The largest likelihood ratio K(y|x) / K(y|x')."""

    @abstractmethod
    def supports(self, messages: ArrayLike, categories: ArrayLike) -> np.ndarray:
        """T_c of each message for each of the numbers c of categories: one more axis than the messages themselves."""

    @property
    def exact_value(self) -> Fraction:
        """E|Y - e_x|^2, the same for all categories: T_c is 0 or 1, so that its variance follows from its mean."""
        own, other = self.exact_rates
        return (own * (1 - own) + (self.domain.d - 1) * other * (1 - other)) / self.exact_gap**2

    @property
    def exact_gap(self) -> Fraction:
        """own - other, by which Y is divided: not 0, but so near to it for a small eps that their floats may agree."""
        own, other = self.exact_rates
        if own == other:
            raise ValueError(
                "coins are not allowed here: messages that do not depend on the category say nothing of it"
            )
        return own - other

    def tally(
        self, messages: ArrayLike, categories: ArrayLike | None = None, *, progress: bool = False
    ) -> tuple[np.ndarray, int]:
        """(the sum of T_c over all messages for each category, the number of messages): all that `decode` needs.

        Tallies of parts of the messages add up. **Arguments:** `messages`: what `randomize` gave; `categories`: names or numbers
        of some categories, None for all; `progress`: a bar on stderr.
        """
        sent = self.check_messages(messages)
        return self._tally(sent, self._asked(categories), progress), len(sent)

    def _asked(self, categories: ArrayLike | None) -> np.ndarray:
        """The numbers of these categories, in a row; None: of all."""
        return np.arange(self.domain.d) if categories is None else np.ravel(self.domain.check(categories, "categories"))

    def _tally(self, sent: np.ndarray, asked: np.ndarray, progress: bool) -> np.ndarray:
        """Block after block of categories and messages."""
        total = np.zeros(asked.size)
        rows = max(1, BLOCK // max(1, min(asked.size, 4096)))
        blocks = [(i, j) for j in range(0, asked.size, 4096) for i in range(0, len(sent), rows)]
        for i, j in _bar(blocks, progress):
            total[j : j + 4096] += self.supports(sent[i : i + rows], asked[j : j + 4096]).sum(axis=0)
        return total

    def second(self, messages: ArrayLike, categories: ArrayLike | None = None) -> np.ndarray:
        """The mean of T_c^2 over the messages: for T_c = 0 or 1 that of T_c."""
        sums, count = self.tally(messages, categories)
        return sums / count

    def decode(self, messages: ArrayLike, categories: ArrayLike | None = None, *, progress: bool = False) -> np.ndarray:
        """Unbiased estimates of the frequencies of all or some categories; arguments as in `tally`.

        They sum to 1 on average only, and may be negative: `optdp.estimate` gives them with their uncertainty.
        """
        sums, count = self.tally(messages, categories, progress=progress)
        if not count:
            raise ValueError("messages are not allowed: there must be at least one")
        return self.frequencies(sums / count)

    def frequencies(self, means: ArrayLike) -> np.ndarray:
        """(mean of T - other)/(own - other)."""
        return (np.asarray(means, dtype=float) - float(self.exact_rates[1])) / float(self.exact_gap)

    def check_messages(self, messages: ArrayLike) -> np.ndarray:
        """Messages as rows of integers. **Raises** ValueError if they are not what this oracle sends."""
        sent, shape = require.array(messages, "messages"), self.message
        if sent.dtype.kind not in "iub" or sent.ndim < len(shape) or sent.shape[sent.ndim - len(shape) :] != shape:
            raise ValueError(
                f"messages are not allowed: they must be integers, with {shape or '()'} as their last axes"
            )
        rows = sent.reshape(-1, *shape)
        if rows.size and not (rows.min() >= 0 and self._within(rows)):
            raise ValueError("messages are not allowed: there are some that this mechanism never sends")
        return rows

    def _messages(self, y: ArrayLike) -> np.ndarray:
        """`y` as numbers along a last axis of a message's shape."""
        sent = np.asarray(y)
        if sent.dtype.kind not in "iuf" or (self.message and sent.shape[-1:] != self.message):
            raise ValueError(f"y is not allowed: messages are integers, {self.message or 1} to each")
        return sent

    @abstractmethod
    def _within(self, rows: np.ndarray) -> bool:
        """Whether messages are not too large."""

    # --- what every mechanism can do

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        """(lowest, highest) value of a coordinate of Y."""
        low, high = sorted(
            float(self.frequencies(t)) for t in self._statistics
        )  # the own category may have the smaller T
        return low, high

    #: The least and the largest T, and whether it is one of these two.
    _statistics: tuple[float, float] = (0.0, 1.0)
    binary: bool = True

    def density(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        """0: messages have probabilities."""
        return np.zeros(self.probability(y, x).shape)

    def mean(self, x: ArrayLike) -> np.ndarray:
        """E[Y | x]: the one-hot vectors, along a new last axis."""
        found: np.ndarray = (self.domain.check(x)[..., None] == np.arange(self.domain.d)).astype(float)
        return found

    def variance(self, x: ArrayLike) -> np.ndarray:
        """E|Y - e_x|^2."""
        return np.full(self.domain.check(x).shape, float(self.exact_value))

    def worst_input(self, loss: LossLike = "squared") -> Any:
        """The first category: all are alike."""
        return self.domain.labels[0]

    def average_loss(self, loss: LossLike = "squared") -> float:
        """The expected loss, the same for every category."""
        return self.worst_case_loss(loss)

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(low, high) around E|Y - e_x|^2: one exact rational, rounded both ways."""
        if not isinstance(objective, WorstCase | Average) or objective.loss.exponent != 2:
            return super().enclose(objective)
        return enclosures.round_down(self.exact_value), enclosures.round_up(self.exact_value)

    def guarantee(self) -> LDP:
        return LDP(Log(self.exact_ratio))

    def check_privacy(self, privacy: Any) -> list[Check]:
        """The exact ratio of the probabilities of a message."""
        return [privacy.check(self.exact_ratio)] if isinstance(privacy, LDP) else super().check_privacy(privacy)

    def check_unbiased(self) -> Check:
        """Whether T tells a category from the others: then the mean of Y is the one-hot vector, by an affine map."""
        own, other = self.exact_rates
        told = f"E[T_c | x] = {float(own):.6g} if x = c and {float(other):.6g} if not, a difference of {float(own - other):.6g}"
        return Check("unbiased", own != other, f"{told} (exact rationals)")

    def __repr__(self) -> str:
        own, other = map(float, self.exact_rates)
        return (
            f"{type(self).__name__} for {self.domain.d} categories: {self._short()}; the own category is supported with "
            f"{own:.6g}, any other with {other:.6g}; eps = {self._told()}"
        )

    def _short(self) -> str:
        return f"messages of shape {self.message}"


@dataclass(frozen=True, repr=False)
class SubsetOracle(FrequencyOracle):
    """A set of `size` categories, which contains the own one with probability `coins`/2^124 and is else uniform.

    **Arguments:** `domain`: an `optdp.OneHot`; `size`: in [1, d - 1]; `coins`: an integer in [1, 2^124 - 1].

    With the right size it is the optimum of `optdp.solve_frequency`; with `size` = 1 it is d-ary randomised response. A message
    is the sorted list of the numbers of the categories (for `size` = 1: one number).

    **Source:** subset selection: Ye and Barg, "Optimal schemes for discrete distribution estimation under locally differential
    privacy", IEEE Trans. Inf. Theory 64(8), 2018.
    """

    domain: OneHot
    size: Annotated[int, Within(1, 10**9)]
    coins: Annotated[int, Within(1, COINS - 1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        require.integer("size", self.size, low=1, high=self.universe - 1)

    @classmethod
    def private(cls, eps: Number, domain: OneHot, size: int) -> Self:
        """The eps-LDP oracle with sets of this size: the largest probability of the own category whose ratio is at most e^eps.

        **Raises** ValueError for an eps that is so small that no number of coins has such a ratio.
        """
        eps, rest = require.exact_epsilon(eps), cls(domain, size, 1).universe - size
        weight = size * enclosures.exp_below(eps, 200)
        share = weight / (weight + rest)
        made = cls(domain, size, share.numerator * COINS // share.denominator)
        if not enclosures.at_most_exp(made.exact_ratio, eps):  # fewer coins than at random
            told = f"no multiple of 2^-124 is so near to a share of {size}/{rest + size}"
            raise ValueError(f"eps = {show(eps)} is not allowed: {told}")
        return made

    @property
    def universe(self) -> int:
        """Of how many categories the sets are sets; d, or more where some stand for nothing."""
        return self.domain.d

    @property
    def message(self) -> tuple[int, ...]:
        return () if self.size == 1 else (self.size,)

    @property
    def exact_rates(self) -> tuple[Fraction, Fraction]:
        own = Fraction(self.coins, COINS)
        return own, (self.size - own) / (self.universe - 1)

    @property
    def exact_ratio(self) -> Fraction:
        odds = Fraction(self.coins, COINS - self.coins) * Fraction(self.universe - self.size, self.size)
        return max(odds, 1 / odds)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs = self.domain.check(x)
        rng = as_rng(rng)
        own = coin(self.coins, COINS, inputs.shape, rng).reshape(-1)
        flat = inputs.reshape(-1)
        if self.size == 1:
            other = rng.integers(0, self.universe - 1, size=flat.size)
            return np.where(own, flat, other + (other >= flat)).reshape(inputs.shape)
        out = np.empty((flat.size, self.size), dtype=np.int64)
        rows = max(1, 2**20 // self.universe)  # fits the cache
        for i in range(0, flat.size, rows):
            out[i : i + rows] = self._sets(flat[i : i + rows], own[i : i + rows], rng)
        return out.reshape(*inputs.shape, self.size)

    def _sets(self, x: np.ndarray, own: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Sorted sets: uniform ones of the other m - 1 categories, drawn by Floyd's algorithm for all users at once."""
        m, users = self.universe, np.arange(x.size)
        chosen = np.zeros((x.size, m), dtype=bool)
        for k in range(self.size):  # where the own category is in, one fewer is drawn: its first step is left out
            top = m - 1 - self.size + k
            active = ~own if k == 0 else slice(None)
            who = users[active]
            drawn = rng.integers(0, top + 1, size=who.size)
            taken = chosen[who, drawn]
            chosen[who, np.where(taken, top, drawn)] = True
        # Number m - 1 was never drawn: the own category is renamed to it, so that all others keep their chances.
        chosen[:, m - 1] = chosen[users, x]
        chosen[users, x] = own
        return np.nonzero(chosen)[1].reshape(x.size, self.size)

    def supports(self, messages: ArrayLike, categories: ArrayLike) -> np.ndarray:
        sent, asked = np.asarray(messages), np.asarray(categories)
        if self.size == 1:
            return np.asarray(sent[..., None] == asked)
        table = np.zeros((sent.size // self.size, self.universe), dtype=bool)
        np.put_along_axis(table, sent.reshape(-1, self.size), True, axis=1)
        return table[:, asked].reshape(*sent.shape[:-1], asked.size)

    def _tally(self, sent: np.ndarray, asked: np.ndarray, progress: bool) -> np.ndarray:
        return np.bincount(sent.reshape(-1), minlength=self.universe)[asked].astype(float)

    def _within(self, rows: np.ndarray) -> bool:
        return bool(rows.max() < self.universe and (self.size == 1 or (np.diff(rows, axis=1) > 0).all()))

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        """The probability of the message `y` (along its last axis, unless the size is 1) for the category `x`."""
        from scipy.special import gammaln

        m, w, (own, rest) = self.universe, self.size, shares(self.coins)
        sent, inputs = self._messages(y), self.domain.check(x)
        inside = sent == inputs if w == 1 else (sent == inputs[..., None]).any(axis=-1)

        def sets(k: int) -> float:  # log of the number of sets of k others
            return float(gammaln(m) - gammaln(k + 1) - gammaln(m - k))

        return np.where(inside, own * np.exp(-sets(w - 1)), rest * np.exp(-sets(w)))

    def _short(self) -> str:
        return f"sets of {self.size}"


@dataclass(frozen=True, repr=False)
class AffineOracle(SubsetOracle):
    """The same with two integers (a, b) as message: the set {c : a c + b mod q < size} for the least prime q >= d.

    The maps c -> a c + b with a != 0 take any two different residues to any two others equally often, and the error of a set
    depends on pairs of categories alone: among the q residues the sets (a, b) do as well as all sets of the same size. The
    residues that are no categories cost a factor of at most about q/d.

    **Arguments:** as for `SubsetOracle`, with `size` in [1, q - 1].
    """

    @property
    def universe(self) -> int:
        """q."""
        return prime_at_least(self.domain.d)

    @property
    def message(self) -> tuple[int, ...]:
        return (2,)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs = self.domain.check(x)
        rng = as_rng(rng)
        q, w = self.universe, self.size
        own = coin(self.coins, COINS, inputs.shape, rng)
        slope = rng.integers(1, q, size=inputs.shape)
        place = np.where(own, rng.integers(0, w, size=inputs.shape), rng.integers(w, q, size=inputs.shape))
        return np.stack([slope, (place - slope * inputs) % q], axis=-1)

    def supports(self, messages: ArrayLike, categories: ArrayLike) -> np.ndarray:
        sent, asked = np.asarray(messages), np.asarray(categories)
        return np.asarray((sent[..., :1] * asked + sent[..., 1:]) % self.universe < self.size)

    def _tally(self, sent: np.ndarray, asked: np.ndarray, progress: bool) -> np.ndarray:
        q = self.universe
        slopes = np.unique(sent[:, 0]).size
        if slopes * (q + asked.size) < len(sent) * asked.size:
            return affine_tally(sent, asked, q, self.size, progress)
        return FrequencyOracle._tally(self, sent, asked, progress)

    def _within(self, rows: np.ndarray) -> bool:
        return bool(rows.max() < self.universe and rows[:, 0].min() > 0)

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        """The probability of the message `y` = (a, b) along the last axis for the category `x`."""
        sent, inputs, (own, rest) = self._messages(y), self.domain.check(x), shares(self.coins)
        q, w = self.universe, self.size
        inside = (sent[..., 0] * inputs + sent[..., 1]) % q < w
        return np.where(inside, own / w, rest / (q - w)) / (q - 1)

    def _short(self) -> str:
        return f"sets of {self.size} of {self.universe} residues, sent as two integers"


def affine_tally(sent: np.ndarray, asked: np.ndarray, q: int, width: int, progress: bool = False) -> np.ndarray:
    """How often a c + b mod q < width among the messages (a, b), for each c: slope by slope.

    With the messages of one slope in a histogram over b, running sums answer for all categories at once.
    """
    order = np.argsort(sent[:, 0], kind="stable")
    slopes, starts = np.unique(sent[order, 0], return_index=True)
    groups, total = np.split(sent[order, 1], starts[1:]), np.zeros(asked.size)
    for a, b in _bar(list(zip(slopes.tolist(), groups, strict=True)), progress):
        counts = np.bincount(b, minlength=q)
        running = np.concatenate([[0], np.cumsum(np.concatenate([counts, counts[:width]]))])
        low = -a * asked % q
        total += running[low + width] - running[low]
    return total


def shares(coins: int) -> tuple[float, float]:
    """The probability of so many coins and that of the others, which of 1 less the former may have lost its digits."""
    return coins / COINS, (COINS - coins) / COINS


@cache
def prime_at_least(number: int) -> int:
    """The least prime that is at least `number`."""
    from flint import fmpz

    candidate = max(2, number)
    while not fmpz(candidate).is_prime():
        candidate += 1
    return candidate


def _bar(items: list[Any], progress: bool) -> Any:
    """The items, with a bar on stderr if asked for."""
    from tqdm import tqdm

    return tqdm(items, disable=not progress, leave=False)

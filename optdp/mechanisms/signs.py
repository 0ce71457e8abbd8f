"""Vectors of a cube by the signs of some of their coordinates."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from optdp.closed_forms.cube import best_signs, moment, share, threshold
from optdp.exact import Check, Number, Seed, Within, as_rng, coin, enclosures, require
from optdp.exact.sampling import BITS, LIMB, tossed
from optdp.mechanisms.directions import PRECISIONS, Digits, below
from optdp.mechanisms.unbiased_vectors import COINS, UnbiasedVectors, coins_below, cubic, odds_above
from optdp.problem import Box, LossLike, Objective, WorstCase

#: Bits of the enclosures.
PRECISION = 320


@dataclass(frozen=True, repr=False)
class SignMechanism(UnbiasedVectors):
    """An unbiased mechanism for vectors of the cube [-1, 1]^d: the signs of k random coordinates, times a number, 0 elsewhere.

    Each coordinate of the input is first rounded at random to -1 or 1 without bias. k coordinates are chosen uniformly, and a
    sign vector for them: with probability coins/2^124 uniformly from those that agree with the rounded input in at least `least`
    places, else from the others. Its multiple r that makes the output unbiased is a real number; what is sent are the two floats
    around it, at random with the mean r. All sampling is exact.

    k = 1 is one coordinate at a time by randomised response; k = d with `least` > d/2 is the mechanism of Duchi et al. for
    the maximum norm; thresholds further out do better for larger eps.

    **Arguments:** `domain`: the cube, an `optdp.Box`; `k`: in [1, d]; `least`: in [1, k]; `coins`: in [1, 2^124 - 1].
    """

    exact = True
    domain: Box
    k: Annotated[int, Within(1, 10**6)]
    least: Annotated[int, Within(1, 10**6)]
    coins: Annotated[int, Within(1, COINS - 1)]

    def __post_init__(self) -> None:
        super().__post_init__()
        cubic(self.domain)
        require.integer("k", self.k, low=1, high=self.domain.dimension)
        require.integer("least", self.least, low=1, high=self.k)
        with ctx.workprec(PRECISION):
            if not self._mean() > 0:
                raise ValueError("coins are not allowed: sign vectors must prefer those that agree")

    @classmethod
    def private(cls, eps: Number, domain: Box, k: int | None = None, least: int | None = None) -> Self:
        """The eps-LDP mechanism with k coordinates and this threshold; None: the best ones."""
        eps = require.exact_epsilon(eps)
        if k is None:
            k, least = best_signs(float(eps), domain.dimension or 0)
        k = require.integer("k", k, low=1, high=domain.dimension)
        least = require.integer("least", threshold(float(eps), k)[1] if least is None else least, low=1, high=k)
        with ctx.workprec(PRECISION):
            inside = share(k, least)
            coins = coins_below(eps, inside, f"least = {least} of k = {k} signs is not allowed", "the vectors'")
        return cls(domain, k, least, coins)

    # --- enclosures, at the working precision

    def _mean(self) -> arb:
        """E[2 N - k], N the number of agreements."""
        inside, part = share(self.k, self.least), moment(self.k, self.least)
        chance = arb(self.coins) / COINS
        return chance * part / inside - (1 - chance) * part / (1 - inside)

    def _scale(self) -> arb:
        """r: a chosen coordinate agrees with mean E[2 N - k]/k, and is chosen with probability k/d."""
        return self.dim / self._mean()

    @cached_property
    def _floats(self) -> tuple[float, float]:
        """The floats around r."""
        with ctx.workprec(PRECISION):
            low = enclosures.round_down(self._scale())
        return low, math.nextafter(low, math.inf)

    @cached_property
    def _ratio(self) -> Fraction:
        """An upper bound on the largest ratio of the probabilities of an output."""
        with ctx.workprec(PRECISION):
            return odds_above(self.coins, share(self.k, self.least))

    @cached_property
    def _square(self) -> tuple[Fraction, Fraction]:
        """(low, high) around E|Y|^2 = k E[R^2], R one of the two floats with the mean r."""
        low, high = map(Fraction, self._floats)
        with ctx.workprec(PRECISION):
            square = self.k * self._scale() ** 2
            return enclosures.lower(square), enclosures.upper(square) + self.k * (high - low) ** 2 / 4

    # --- sampling

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng = np.asarray(self.domain.check(x), dtype=float), as_rng(rng)
        rows = inputs.reshape(-1, self.dim)
        out = np.empty(rows.shape)
        block = max(1, 2**20 // self.dim)
        for i in range(0, len(rows), block):
            out[i : i + block] = self._rows(rows[i : i + block], rng)
        return out.reshape(inputs.shape)

    def _rows(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        count, places = len(x), np.arange(self.dim)
        agree = self._agreements(count, rng)
        # n agreements, k - n disagreements and d - k zeros in a uniformly random order.
        signs = np.where(places < agree[:, None], 1, np.where(places < self.k, -1, 0)).astype(np.int8)
        rng.permuted(signs, axis=1, out=signs)
        low, high = self._floats
        with ctx.workprec(PRECISION):
            upper = self._below(lambda: (self._scale() - arb(low)) / (arb(high) - arb(low)), count, rng)
        size = np.where(upper, high, low)
        # The product is one of integers: among floats 0 times -1 is -0.0, whose sign bit tells the sign of the input.
        return (signs * self._vertices(x, rng)) * size[:, None]

    def _agreements(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """Binomial numbers with the given chance of `least` or more, by inversion."""
        inside = coin(self.coins, COINS, (count,), rng)
        toss = rng.integers(0, LIMB, size=count)
        chance = (toss + 0.5) * 2.0**-BITS
        # The upper part is counted from above, as k - N has the law of N: small tails keep their digits.
        part = np.where(inside, self._tail, 1 - self._tail)
        goal = chance * part
        rank = np.searchsorted(self._cdf, goal, side="right")
        found = np.where(inside, self.k - rank, rank)
        near = self._near(goal, part * 2.0**-BITS, inside, found)
        for i in np.flatnonzero(near).tolist():
            found[i] = self._exactly(bool(inside[i]), Digits(int(toss[i]), BITS), rng)
        return found

    @cached_property
    def _cdf(self) -> np.ndarray:
        """P(N <= n) for n = 0, ..., k, to a relative 1e-9. **Raises** RuntimeError where they are further off."""
        from scipy.stats import binom

        found = np.asarray(binom.cdf(np.arange(self.k + 1), self.k, 0.5))
        _trust(self.k, found)
        return found

    @cached_property
    def _tail(self) -> float:
        with ctx.workprec(PRECISION):
            return float(share(self.k, self.least))

    def _near(self, goal: np.ndarray, digit: np.ndarray, inside: np.ndarray, found: np.ndarray) -> np.ndarray:
        """Whether the floats leave the place open: they are off by a relative 1e-9 at most, and by the last `digit` of the toss,
        within which the ends of many coordinates' law lie. What is never drawn there would be proof of another input.
        """
        rank = np.clip(np.where(inside, self.k - found, found), 0, self.k)
        high = self._cdf[rank]
        low = np.where(rank > 0, self._cdf[np.maximum(rank - 1, 0)], 0.0)
        slack = 1e-8 * goal + digit
        outside = np.where(inside, found < self.least, found >= self.least)
        return (goal - low < slack) | (high - goal < slack) | outside

    def _exactly(self, inside: bool, toss: Digits, rng: np.random.Generator) -> int:
        """One number of agreements in balls, by bisection."""
        k, least = self.k, self.least
        for bits in PRECISIONS:
            toss = toss.more(rng, bits)
            with ctx.workprec(bits + 64):
                part = share(k, least)
                goal = toss.ball() * (part if inside else 1 - part)
                # inside: N = k - j for the j with P(N <= j - 1) <= goal < P(N <= j); P(N <= j) = P(N >= k - j).
                low, high = 0, (k - least if inside else least - 1)
                known = True
                while low < high and known:
                    middle = (low + high) // 2
                    bar = share(k, k - middle)  # P(N <= middle)
                    if goal < bar:
                        high = middle
                    elif goal >= bar:
                        low = middle + 1
                    else:
                        known = False
                if known:
                    return k - low if inside else low
        raise RuntimeError("a random number could not be told from a threshold")

    @staticmethod
    def _below(chance: Any, count: int, rng: np.random.Generator) -> np.ndarray:
        """Coins with a real probability that the function `chance` encloses at the working precision."""
        whole = math.floor(float((chance() * LIMB).floor().mid()))
        toss = rng.integers(0, LIMB, size=count)
        out = toss < whole
        for i in np.flatnonzero(np.abs(toss - whole) <= 1024).tolist():
            out[i] = below(Digits(int(toss[i]), BITS), chance, rng)
        return out

    @staticmethod
    def _vertices(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """1 with probability (1 + x)/2, else -1, exactly: 53 bits are tossed, and more where they are those of x."""
        toss = rng.integers(0, 2**53, size=x.shape)
        wanted = (toss - 2.0**52) * 2.0**-52  # a multiple of 2^-52, exactly
        up = wanted < x
        step = 2.0**-52
        for i in np.flatnonzero(up.ravel() & ((x - wanted).ravel() <= step)).tolist():
            # x lies in the cell of the toss, or floats cannot tell it from the end: the place of x in it is the chance.
            rest = (Fraction(float(x.flat[i])) - Fraction(float(wanted.flat[i]))) / Fraction(step)
            up.flat[i] = tossed(int(rng.integers(0, LIMB)), rest, rng)
        return np.where(up, np.int8(1), np.int8(-1))

    # --- what every mechanism can do

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        """(lowest, highest) value of a coordinate of Y."""
        return -self._floats[1], self._floats[1]

    def variance(self, x: ArrayLike) -> np.ndarray:
        """E|Y - x|^2 = E|Y|^2 - |x|^2."""
        inputs = self.mean(x)
        return np.asarray(float(self._square[1]) - np.einsum("...i,...i->...", inputs, inputs))

    def worst_input(self, loss: LossLike = "squared") -> Any:
        """0: E|Y|^2 is the same for all inputs."""
        return np.zeros(self.dim)

    def average_loss(self, loss: LossLike = "squared") -> float:
        """The expected loss under the uniform distribution on the cube."""
        return self.worst_case_loss(loss) - self.dim / 3

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(low, high) around E|Y|^2, the error at 0."""
        if not isinstance(objective, WorstCase) or objective.loss.exponent != 2:
            return super().enclose(objective)
        return enclosures.round_down(self._square[0]), enclosures.round_up(self._square[1])

    def check_unbiased(self) -> Check:
        """Every step keeps the mean."""
        return Check(
            "unbiased", True, "rounding to a vertex keeps the mean, signs have the mean x/r by symmetry, R the mean r"
        )

    def __repr__(self) -> str:
        return (
            f"SignMechanism on {self.domain}: the signs of {self.k} of {self.domain.dimension} coordinates, "
            f"at least {self.least} of them right with probability {self.coins / COINS:.6g}, "
            f"times {self._floats[0]:.6g}; eps = {self._told()}"
        )


def _trust(k: int, cdf: np.ndarray) -> None:
    """Compare P(N <= n) with balls: where nearly all draws are, in the tails, over all of the range. **Raises** RuntimeError."""
    middle, tails = np.arange(-4, 5) + k // 2, k / 2 + math.sqrt(k) * np.linspace(-18, 18, 37)
    places = np.unique(np.clip(np.concatenate([middle, tails, np.linspace(0, k, 33)]), 0, k).astype(int))
    with ctx.workprec(128):
        for n in places.tolist():
            true, found = share(k, k - n), float(cdf[n])
            if not abs(arb(found) - true) <= arb("1e-9") * true + arb("1e-300"):
                raise RuntimeError(
                    "scipy's binomial distribution is not accurate enough on this machine to sample with"
                )
    if (np.diff(cdf) < 0).any():
        raise RuntimeError("scipy's binomial distribution is not increasing on this machine")

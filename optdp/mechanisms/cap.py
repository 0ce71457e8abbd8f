"""Unit vectors, and vectors of the unit ball, by a random direction that prefers a cap of the sphere."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Self

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from optdp.closed_forms.vector import PRECISION, best_height, cap
from optdp.exact import Check, Number, Seed, Within, as_rng, coin, enclosures, require
from optdp.exact.sampling import BITS, LIMB
from optdp.mechanisms.directions import Digits, below, multiples
from optdp.mechanisms.unbiased_vectors import COINS, UnbiasedVectors, coins_below, odds_above, power_of_two
from optdp.problem import Average, Ball, LossLike, Objective, Sphere, WorstCase

#: The share of the error that rounding to the grid may add.
ROUNDING = 2.0**-40


@dataclass(frozen=True, repr=False)
class CapMechanism(UnbiasedVectors):
    """An unbiased mechanism for unit vectors: Y = r u for a unit vector u, on a grid.

    u is uniform on the cap {<u, x> >= height} with probability coins/2^124 and uniform on the rest of the sphere else; r is the
    number that makes Y unbiased. On the ball the direction x/|x| is first reversed with probability (1 - |x|)/2. Each coordinate
    of r u is then rounded at random to a multiple of `step`, without bias. The law of Y is exactly this one: u is a vector of
    real numbers, of which as many digits are drawn as the rounding needs (`optdp.mechanisms.directions`), so that the guarantee
    holds for the floats that are sent, without a margin.

    **Arguments:** `domain`: an `optdp.Sphere` or `optdp.Ball`; `height`: in [0, 1); `coins`: an integer in [1, 2^124 - 1];
    `step`: a power of two.

    An input on the sphere counts by its direction, so that the norm of a float vector need not be 1 exactly.

    **Source:** PrivUnit: Bhowmick, Duchi, Freudiger, Kapoor and Rogers, "Protection against reconstruction and its applications
    in private federated learning", 2018; optimality: Asi, Feldman and Talwar, "Optimal algorithms for mean estimation under
    local differential privacy", ICML 2022.
    """

    exact = True
    domain: Annotated[Any, Within(kind=Sphere | Ball)]
    height: Annotated[float, Within(0.0, 1.0, open_high=True)]
    coins: Annotated[int, Within(1, COINS - 1)]
    step: float

    def __post_init__(self) -> None:
        super().__post_init__()
        step = power_of_two(self.step)
        with ctx.workprec(PRECISION):
            if not _mean(self.dim, self.height, self.coins) > 0:
                raise ValueError("coins are not allowed: the direction must prefer the cap")
            if not self._scale() < arb(step) * arb(2) ** 50:
                raise ValueError(f"step = {step!r} is not allowed: outputs must be floats")

    @classmethod
    def private(cls, eps: Number, domain: Sphere | Ball, height: float | None = None) -> Self:
        """The eps-LDP mechanism with a cap of this height (None: the best one), and the largest probability that eps allows."""
        eps, dim = require.exact_epsilon(eps), domain.dim
        height = best_height(eps, dim) if height is None else require.real("height", height, low=0.0, high=1 - 2.0**-53)
        with ctx.workprec(PRECISION):
            share, _ = cap(dim, arb(height))
            coins = coins_below(eps, share, f"height = {height!r} is not allowed in dimension {dim}", "the cap's")
            # E|Y - x|^2 is r^2 - 1 and at most dim step^2/4 more.
            error = 1 / _mean(dim, height, coins) ** 2 - (1 if isinstance(domain, Sphere) else 0)
            step = math.sqrt(4 * ROUNDING * float(error) / dim)
        return cls(domain, height, coins, 2.0 ** math.floor(math.log2(step)))

    # --- enclosures

    def _scale(self) -> arb:
        """r, at the working precision."""
        return 1 / _mean(self.dim, self.height, self.coins)

    @cached_property
    def _ratio(self) -> Fraction:
        """An upper bound on the largest ratio of the densities of u."""
        with ctx.workprec(PRECISION):
            share, _ = cap(self.dim, arb(self.height))
            return odds_above(self.coins, share)

    @cached_property
    def _square(self) -> tuple[Fraction, Fraction]:
        """(low, high) around E|Y|^2."""
        with ctx.workprec(PRECISION):
            square = self._scale() ** 2
            return enclosures.lower(square), enclosures.upper(square) + self.dim * Fraction(self.step) ** 2 / 4

    @property
    def shares(self) -> tuple[arb, arb]:
        """The share of the sphere that the cap has, and E[<u, x>] over it times that share."""
        with ctx.workprec(PRECISION):
            return cap(self.dim, arb(self.height))

    @property
    def square(self) -> arb:
        """r^2, at the working precision: E|Y|^2 but for rounding."""
        return self._scale() ** 2

    @property
    def least(self) -> Fraction:
        """A lower bound on E|Y|^2."""
        return self._square[0]

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng = np.asarray(self.domain.check(x), dtype=float), as_rng(rng)
        rows = inputs.reshape(-1, self.dim)
        inside = coin(self.coins, COINS, (len(rows),), rng)
        if isinstance(self.domain, Ball):
            rows = self._turned(rows, rng)
        found = multiples(rows, (~inside).astype(np.int64), self.height, self._scale, self.step, rng)
        found *= self.step
        return found.reshape(inputs.shape)

    def _turned(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """x with probability (1 + |x|)/2, else -x; for x = 0 the first axis either way."""
        norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        toss = rng.integers(0, LIMB, size=len(rows))
        wanted = toss * 2.0 ** (1 - BITS) - 1  # x where this is below |x|
        keep = wanted < norms
        margin = 2.0**-40 + self.dim * 2.0**-52  # squares may be added one after the other
        for i in np.flatnonzero(np.abs(wanted - norms) < margin).tolist():
            keep[i] = self._below_norm(int(toss[i]), rows[i], rng)
        out: np.ndarray = np.where(keep[:, None], rows, -rows)
        zero = norms == 0
        if zero.any():  # squares of tiny numbers vanish as floats
            largest = np.abs(rows).max(axis=1)
            lost = zero & (largest > 0)
            out[lost] = out[lost] / largest[lost, None]
            empty = zero & (largest == 0)
            out[empty, 0] = np.where(keep[empty], 1.0, -1.0)
        return out

    @staticmethod
    def _below_norm(toss: int, row: np.ndarray, rng: np.random.Generator) -> bool:
        """Whether a uniform number in (-1, 1), whose first digits are `toss`, is below |row|, exactly."""
        square = min(sum((Fraction(c) ** 2 for c in row.tolist()), Fraction(0)), Fraction(1))
        return below(Digits(toss, BITS), lambda: (1 + enclosures.ball(square).sqrt()) / 2, rng)

    # --- what every mechanism can do

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        """(lowest, highest) value of a coordinate of Y."""
        high = math.sqrt(enclosures.round_up(self._square[1])) + 2 * self.step
        return -high, high

    def variance(self, x: ArrayLike) -> np.ndarray:
        """E|Y - x|^2."""
        inputs = self.mean(x)
        if isinstance(self.domain, Sphere):
            return np.full(inputs.shape[:-1], float(self._square[1] - 1))
        return np.asarray(float(self._square[1]) - np.minimum(np.einsum("...i,...i->...", inputs, inputs), 1.0))

    def worst_input(self, loss: LossLike = "squared") -> Any:
        """A unit vector, all of which are alike; 0 in the ball."""
        point = np.zeros(self.dim)
        point[0] = 1.0 if isinstance(self.domain, Sphere) else 0.0
        return point

    def average_loss(self, loss: LossLike = "squared") -> float:
        """The expected loss under the uniform distribution."""
        if isinstance(self.domain, Sphere):
            return self.worst_case_loss(loss)
        return self.worst_case_loss(loss) - self.dim / (self.dim + 2)

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(low, high) around E|Y - x|^2 for unit vectors, E|Y|^2 for the ball, where 0 is the worst input."""
        ball = isinstance(self.domain, Ball)
        averaged = isinstance(objective, Average) and objective.prior == "uniform" and not ball
        known = isinstance(objective, WorstCase) or averaged
        if not known or objective.loss.exponent != 2:  # type: ignore[attr-defined]
            return super().enclose(objective)
        low, high = (end - (0 if ball else 1) for end in self._square)
        return enclosures.round_down(low), enclosures.round_up(high)

    def check_unbiased(self) -> Check:
        """E[Y | x] is x by symmetry around x and the choice of r; rounding adds no bias."""
        return Check(
            "unbiased", True, "E[u | x] is a multiple of x by symmetry, r its inverse; rounding keeps the mean"
        )

    def __repr__(self) -> str:
        return (
            f"CapMechanism on {self.domain}: {math.sqrt(self._square[1]):.6g} times a direction in the cap "
            f"<u, x> >= {self.height:.6g} with probability {self.coins / COINS:.6g}; eps = {self._told()}"
        )


def _mean(dim: int, height: float, coins: int) -> arb:
    """E<u, x> for a unit vector x."""
    share, moment = cap(dim, arb(height))
    inside = arb(coins) / COINS
    return inside * moment / share - (1 - inside) * moment / (1 - share)

"""Vectors of the unit ball by outputs on a few spheres around 0, of which those near a multiple of the input are preferred.

**The law.** Outputs have uniform directions and radii r_k with the probabilities m_k, the floor; what the floor leaves is
distributed like the floor within {|y - c x/|x|| <= R}, a cap of every sphere. So densities lie between the floor and a multiple
of it. Such rows are given for finitely many pairs (c, R), with means rho_1 < ... < rho_n along x/|x|, rho_n >= 1. An input
between two of these takes one of the two rows, with the odds that make the mean exactly x; one below rho_1 the first row for
x/|x| or for -x/|x|. Mean and E|Y|^2 are then linear in |x| between the rho_i: the largest error is known in closed form.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from optdp.closed_forms.vector import any_cap
from optdp.exact import enclosures, require, work
from optdp.exact.check import Check
from optdp.exact.fields import Within
from optdp.exact.rounding import TOTAL
from optdp.exact.sampling import BITS, LIMB, Alias, Seed, as_rng
from optdp.mechanisms.directions import DEEPEST, Digits, above
from optdp.mechanisms.unbiased_vectors import UnbiasedVectors
from optdp.problem.domains import Ball
from optdp.problem.losses import LossLike
from optdp.problem.objectives import Objective, WorstCase

#: Most radii and rows; bits of the enclosures; the share of the error that rounding to the grid may add.
RADII, ROWS, PRECISION, ROUNDING = 1024, 8192, 192, 2.0**-40
#: The largest radius, slope and level.
LARGEST = 2.0**60

Numbers = Annotated[tuple[float, ...], Within(-LARGEST, LARGEST, 1, ROWS)]


@dataclass(frozen=True, repr=False)
class RadialMechanism(UnbiasedVectors):
    """An unbiased mechanism for the unit ball: Y = r u for a random radius r and a random unit vector u, on a grid.

    **Arguments:** `domain`: an `optdp.Ball` of two dimensions or more; `radii`: increasing and > 0; `floors`: integers >= 1, the
    probabilities of the radii times 2^62, that sum to less than 2^62; `slopes`, `levels`: 2 c and R^2 - c^2 of each row: on the
    sphere of radius r it prefers the cap of the height (r^2 - level)/(slope r), rounded to a float; `step`: a power of two, to
    multiples of which each coordinate is rounded at random without bias.

    The law of Y is exactly this one, as for `optdp.mechanisms.cap.CapMechanism`: the guarantee needs no margin.
    """

    exact = True
    domain: Ball
    radii: Annotated[tuple[float, ...], Within(0.0, LARGEST, 1, RADII)]
    floors: Annotated[tuple[int, ...], Within(1, TOTAL, 1, RADII)]
    slopes: Annotated[tuple[float, ...], Within(0.0, LARGEST, 1, ROWS)]
    levels: Numbers
    step: float

    def __post_init__(self) -> None:
        if not isinstance(self.domain, Ball) or self.domain.dim < 2:
            raise TypeError(f"domain = {self.domain!r} is not allowed: it must be an optdp.Ball with dim >= 2")
        for name in ("radii", "floors", "slopes", "levels"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if (
            not 1 <= len(self.radii) == len(self.floors) <= RADII
            or not 1 <= len(self.slopes) == len(self.levels) <= ROWS
        ):
            raise ValueError(f"radii are not allowed: at most {RADII}, each with a floor, and {ROWS} rows")
        if not all(0 < r <= LARGEST for r in self.radii) or any(a >= b for a, b in pairwise(self.radii)):
            raise ValueError(f"radii are not allowed: they must increase between 0 and {LARGEST:g}")
        for name, low in (("slopes", 2.0**-60), ("levels", -LARGEST)):
            if not all(low <= v <= LARGEST for v in getattr(self, name)):
                raise ValueError(f"{name} are not allowed: they must lie between {low:g} and {LARGEST:g}")
        if any(m < 1 for m in self.floors) or sum(self.floors) >= TOTAL:
            raise ValueError("floors are not allowed: they must be at least 1 and sum to less than 2^62")
        step = require.real("step", self.step, low=2.0**-1000, high=2.0**1000)
        if math.frexp(step)[0] != 0.5:
            raise ValueError(f"step = {step!r} is not allowed: it must be a power of two")
        if not self.radii[-1] < step * 2.0**50:
            raise ValueError(f"step = {step!r} is not allowed: outputs must be floats")
        with ctx.workprec(PRECISION):
            if not all(a < b for a, b in pairwise([arb(0), *self._means])) or not self._means[-1] >= 1:
                raise ValueError("slopes and levels are not allowed: means must increase from above 0 to 1 or more")

    @classmethod
    def of_rows(
        cls,
        domain: Ball,
        radii: Sequence[float],
        floors: Sequence[int],
        slopes: Sequence[float],
        levels: Sequence[float],
    ) -> RadialMechanism:
        """The mechanism with a step that adds next to nothing to the error."""
        made = cls(
            domain, tuple(radii), tuple(floors), tuple(slopes), tuple(levels), 2.0 ** (math.frexp(max(radii))[1] - 49)
        )
        error = made.enclose(WorstCase("squared"))[1]
        step = max(math.sqrt(4 * ROUNDING * error / domain.dim), made.step)
        return replace(made, step=2.0 ** math.floor(math.log2(step)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Its arguments alone: what is computed from them consists of balls, which cannot be pickled."""
        return type(self), (self.domain, self.radii, self.floors, self.slopes, self.levels, self.step)

    @property
    def dim(self) -> int:
        """The dimension."""
        return int(self.domain.dim)

    # --- rows

    @cached_property
    def _heights(self) -> np.ndarray:
        """The heights of the caps, in [-1, 1] (rows, radii): elementary operations on floats, alike everywhere."""
        r, mu, nu = np.array(self.radii), np.array(self.slopes)[:, None], np.array(self.levels)[:, None]
        return np.asarray(np.clip((r * r - nu) / (mu * r), -1.0, 1.0))

    def _caps(self, row: int) -> list[tuple[arb, arb]]:
        """(W, T) on each radius."""
        heights = self._heights[row].tolist()
        inner = 20.0 if self.dim <= 3 else 80.0 if self.dim <= 100 else 400.0
        work.count(6 * len(heights) + sum(abs(h) < 1 for h in heights) * inner)
        return [any_cap(self.dim, arb(h)) for h in heights]

    @cached_property
    def _laws(self) -> tuple[list[list[int]], list[arb], arb]:
        """(the coins of each radius beyond its floor in each row, the means of rows, the largest ratio of densities)."""
        rest, extra, means, ratio = TOTAL - sum(self.floors), [], [], arb(1)
        with ctx.workprec(PRECISION):
            for row in range(len(self.slopes)):
                caps = self._caps(row)
                room = [m * share for m, (share, _) in zip(self.floors, caps, strict=True)]
                total = sum(room, arb(0))
                if not total > 0:
                    raise ValueError("slopes and levels are not allowed: every row must prefer some outputs")
                coins = [math.floor(enclosures.lower(rest * part / total)) if part > 0 else 0 for part in room]
                coins[max(range(len(coins)), key=coins.__getitem__)] += rest - sum(coins)
                for n, part in zip(coins, room, strict=True):
                    if n:
                        ratio = ratio.max(1 + n / part)
                extra.append(coins)
                means.append(self._mean(coins, caps))
        return extra, means, ratio

    def _mean(self, coins: list[int], caps: list[tuple[arb, arb]]) -> arb:
        parts = zip(self.radii, coins, caps, strict=True)
        return sum((arb(r) * n * moment / share for r, n, (share, moment) in parts if n), arb(0)) / TOTAL

    @property
    def _means(self) -> list[arb]:
        return self._laws[1]

    @cached_property
    def _squares(self) -> list[Fraction]:
        """E|Y|^2 of each row, but for rounding."""
        squares = [Fraction(r) ** 2 for r in self.radii]
        work.count(len(self.slopes) * len(squares) * work.rational(work.words(squares)) * 2)
        return [
            sum((s * (m + n) for s, m, n in zip(squares, self.floors, coins, strict=True)), Fraction(0)) / TOTAL
            for coins in self._laws[0]
        ]

    @cached_property
    def _ratio(self) -> Fraction:
        return enclosures.upper(self._laws[2])

    @cached_property
    def _rounding(self) -> Fraction:
        """The most that rounding to the grid adds to the error."""
        return self.dim * Fraction(self.step) ** 2 / 4

    # --- sampling

    @cached_property
    def _alias(self) -> Alias:
        return Alias([[*self.floors, *coins] for coins in self._laws[0]], TOTAL)

    @cached_property
    def _ends(self) -> np.ndarray:
        """-rho_1, rho_1, rho_2, ... as floats."""
        means = np.array([float(mean.mid()) for mean in self._means])
        return np.concatenate([[-means[0]], means])

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng = np.asarray(self.domain.check(x), dtype=float), as_rng(rng)
        rows = inputs.reshape(-1, self.dim)
        place = self._place(rows, rng)
        law, turned = np.maximum(place - 1, 0), place == 0
        axis = self._axes(rows)
        axis[turned] *= -1
        drawn = self._alias.draw(law, rng)
        count = len(self.radii)
        radius, favoured = drawn % count, drawn >= count
        heights = np.where(favoured, self._heights[law, radius], -1.0)
        found = above(axis, heights, np.array(self.radii)[radius], self.step, rng)
        found *= self.step
        return found.reshape(inputs.shape)

    def _axes(self, rows: np.ndarray) -> np.ndarray:
        """Rows with the directions of the inputs; the first axis for 0."""
        largest = np.abs(rows).max(axis=1, initial=0.0)
        out: np.ndarray = rows / np.where((largest > 0) & (largest < 2.0**-100), largest, 1.0)[:, None]
        out[largest == 0, 0] = 1.0
        return out

    def _place(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One of the two `_ends` around each norm, at random so that the mean is the norm (at most 1)."""
        norms = np.minimum(np.sqrt(np.einsum("ij,ij->i", rows, rows)), 1.0)
        ends = self._ends
        low = np.clip(np.searchsorted(ends, norms, side="right") - 1, 0, ends.size - 2)
        width = ends[low + 1] - ends[low]
        toss = rng.integers(0, LIMB, size=len(rows))
        excess = toss / LIMB - (norms - ends[low]) / width
        margin = 2.0**-50 * (4 + self.dim + 4 * ends[-1]) / width + 2.0**-50
        near = np.minimum(np.abs(norms - ends[low]), np.abs(ends[low + 1] - norms)) <= margin * width
        out: np.ndarray = low + (excess < 0)
        for i in np.flatnonzero((np.abs(excess) <= margin) | near).tolist():
            out[i] = self._place_exactly(rows[i], int(low[i]), int(toss[i]), rng)
        return out

    def _place_exactly(self, row: np.ndarray, low: int, toss: int, rng: np.random.Generator) -> int:
        square = min(sum((Fraction(c) ** 2 for c in row.tolist()), Fraction(0)), Fraction(1))
        digits, bits = Digits(toss, BITS), 2 * PRECISION
        while bits <= DEEPEST:
            digits = digits.more(rng, bits)
            with ctx.workprec(bits + 64):
                norm = enclosures.ball(square).sqrt()
                near = range(max(low - 1, 0), min(low + 3, len(self._ends)))
                ends = {k: self._end(k) for k in near}
                # The last end that is not proven to be above the norm: next to it either side has the same odds.
                first = max((k for k in near if not ends[k] > norm), default=near[0])
                first = min(first, near[-1] - 1)
                chance = (norm - ends[first]) / (ends[first + 1] - ends[first])
                if digits.ball() < chance:
                    return first + 1
                if digits.ball() >= chance:
                    return first
            bits *= 2
        raise RuntimeError("a random number could not be told from a threshold")

    def _end(self, k: int) -> arb:
        """`_ends` at the working precision."""
        row = max(k - 1, 0)
        if (row, ctx.prec) not in self._known_ends:
            self._known_ends[row, ctx.prec] = self._mean(self._laws[0][row], self._caps(row))
        mean = self._known_ends[row, ctx.prec]
        return mean if k else -mean

    @cached_property
    def _known_ends(self) -> dict[tuple[int, int], arb]:
        return {}

    # --- what every mechanism can do

    def norms(self, norm: float) -> tuple[np.ndarray, np.ndarray]:
        """(radii, probabilities): the law of |Y|, before rounding, for inputs of this norm in [0, 1]."""
        rows = (np.array(self.floors, dtype=float) + np.array(self._laws[0], dtype=float)) / TOTAL
        ends, laws = self._ends, np.concatenate([rows[:1], rows])
        return np.array(self.radii), np.array([np.interp(norm, ends, column) for column in laws.T])

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        """(lowest, highest) value of a coordinate of Y."""
        high = self.radii[-1] + 2 * self.step
        return -high, high

    def variance(self, x: ArrayLike) -> np.ndarray:
        """E|Y - x|^2, but for rounding to the grid."""
        inputs = self.mean(x)
        norms = np.minimum(np.sqrt(np.einsum("...i,...i->...", inputs, inputs)), 1.0)
        return np.asarray(self._square(norms) - norms**2)

    def _square(self, norms: ArrayLike) -> np.ndarray:
        squares = np.array(list(map(float, self._squares)))
        return np.asarray(np.interp(np.asarray(norms), self._ends[1:], squares))

    @cached_property
    def _worst(self) -> tuple[arb, float]:
        """(the largest error but for rounding to the grid, the norm of an input that has it)."""
        with ctx.workprec(PRECISION):
            squares = list(map(enclosures.ball, self._squares))
            worst, at = squares[0], 0.0
            for (low, first), (high, second) in pairwise(zip(self._means, squares, strict=True)):
                rise = (second - first) / (high - low)
                point = (rise / 2).max(low).min(high).min(arb(1))
                found = first + rise * (point - low) - point * point
                if found.mid() > worst.mid():
                    at = float(point.mid())
                worst = worst.max(found)
                if high >= 1:
                    break
        return worst, min(at, 1.0)

    def worst_input(self, loss: LossLike = "squared") -> Any:
        """A multiple of the first axis: only the norm matters."""
        self._loss(loss)
        return np.eye(1, self.dim)[0] * self._worst[1]

    def average_loss(self, loss: LossLike = "squared") -> float:
        """The expected loss under the uniform distribution on the ball, but for rounding to the grid."""
        if self._loss(loss).exponent != 2:
            raise ValueError("loss is not allowed here: it must be 'squared'")
        d, total = self.dim, float(self._squares[0])
        ends, squares = self._ends[1:], list(map(float, self._squares))
        for (low, first), (high, second) in pairwise(zip(ends.tolist(), squares, strict=True)):
            rise, top = (second - first) / (high - low), min(high, 1.0)
            if low < 1:  # the change of slope at `low`: the integral of (t - low)_+ over [low, top] and beyond
                total += rise * _above(low, d) - rise * (_above(top, d) if high < 1 else 0.0)
        return total - d / (d + 2)

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(low, high) around the largest error, and for the upper one what rounding to the grid can add."""
        if not isinstance(objective, WorstCase) or objective.loss.exponent != 2:
            return super().enclose(objective)
        worst = self._worst[0]
        return max(0.0, enclosures.round_down(worst)), enclosures.round_up(enclosures.upper(worst) + self._rounding)

    def check_unbiased(self) -> Check:
        """E[Y | x] is x by symmetry around x and the odds of the two rows next to |x|; rounding adds no bias."""
        told = "rows have means along x by symmetry, and two of them are mixed to the mean |x|; rounding keeps the mean"
        return Check("unbiased", True, told)

    def __repr__(self) -> str:
        return (
            f"RadialMechanism on {self.domain}: {len(self.radii)} radii from {self.radii[0]:.4g} to {self.radii[-1]:.4g}, "
            f"{len(self.slopes)} rows; eps = {self.privacy():.6g}"
        )


def _above(low: float, d: int) -> float:
    """E[(|x| - low)_+] for x uniform on the unit ball of R^d."""
    return d / (d + 1) * (1 - low ** (d + 1)) - low * (1 - low**d)

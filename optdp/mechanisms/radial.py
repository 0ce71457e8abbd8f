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

from optdp.closed_forms.caps import DIMS, TINY, UNIT, caps
from optdp.closed_forms.vector import any_cap
from optdp.exact import Check, Seed, Within, as_rng, enclosures, work
from optdp.exact.rounding import TOTAL
from optdp.exact.sampling import BITS, LIMB, limbs
from optdp.mechanisms.directions import PRECISIONS, Digits, above
from optdp.mechanisms.unbiased_vectors import UnbiasedVectors, power_of_two
from optdp.problem import Ball, LossLike, Objective, WorstCase

#: Most radii and rows; bits of the enclosures; the share of the error that rounding to the grid may add.
RADII, ROWS, PRECISION, ROUNDING = 2**15, 2**17, 192, 2.0**-40
#: Bits of the integers that shares of a radius are rounded to: sums of `RADII` of them are below 2^62.
PART = 46
#: Radii of a row are sought in a ball that is wider by this share of its norms: more than floats can be wrong.
WIDER = 2.0**-22
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
    slopes: Annotated[tuple[float, ...], Within(1 / LARGEST, LARGEST, 1, ROWS)]
    levels: Numbers
    step: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 2 <= self.domain.dim <= DIMS:
            raise TypeError(f"domain = {self.domain!r} is not allowed: it must be an optdp.Ball, 2 <= dim <= {DIMS}")
        if len(self.radii) != len(self.floors) or len(self.slopes) != len(self.levels):
            raise ValueError("radii are not allowed: each must have a floor, and each slope a level")
        if any(a >= b for a, b in pairwise((0.0, *self.radii))):
            raise ValueError("radii are not allowed: they must increase from above 0")
        if sum(self.floors) >= TOTAL:
            raise ValueError("floors are not allowed: they must sum to less than 2^62")
        step = power_of_two(self.step)
        if not self.radii[-1] < step * 2.0**50:
            raise ValueError(f"step = {step!r} is not allowed: outputs must be floats")
        low, high = self._means - self._wrong, self._means + self._wrong
        if not (low > np.append(0.0, high[:-1])).all() or not low[-1] >= 1:
            raise ValueError("slopes and levels are not allowed: means must increase from above 0 to 1 or more")

    @classmethod
    def of_rows(
        cls, domain: Ball, radii: Sequence[float], floors: Sequence[int], slopes: Sequence[float], levels: Sequence[float]
    ) -> RadialMechanism:  # fmt: skip
        """The mechanism with a step that adds next to nothing to the error."""
        step = 2.0 ** (math.frexp(max(radii))[1] - 49)
        made = cls(domain, tuple(radii), tuple(floors), tuple(slopes), tuple(levels), step)
        error = made.enclose(WorstCase("squared"))[1]
        step = max(math.sqrt(4 * ROUNDING * error / domain.dim), made.step)
        return replace(made, step=2.0 ** math.floor(math.log2(step)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Its arguments alone: what is computed from them consists of balls, which cannot be pickled."""
        return type(self), (self.domain, self.radii, self.floors, self.slopes, self.levels, self.step)

    # --- rows

    @cached_property
    def _rows(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(the first radius, the end, the place of the first height in `_heights`) of each row: others have the height 1."""
        mu, nu, r = np.array(self.slopes), np.array(self.levels), np.array(self.radii)
        size = np.sqrt(np.maximum(mu**2 / 4 + nu, 0.0)) + WIDER * (mu + np.sqrt(np.abs(nu)))
        first, end = np.searchsorted(r, mu / 2 - size), np.searchsorted(r, mu / 2 + size)
        work.count(0.1 * float((end - first).sum()))
        return first, end, np.concatenate([[0], np.cumsum(end - first)])

    @cached_property
    def _heights(self) -> np.ndarray:
        """The heights of the caps, in [-1, 1], row by row: elementary operations on floats, alike everywhere."""
        first, end, place = self._rows
        row = np.repeat(np.arange(first.size), end - first)
        r = np.array(self.radii)[np.arange(place[-1]) - place[row] + first[row]]
        mu, nu = np.array(self.slopes)[row], np.array(self.levels)[row]
        return np.asarray(np.clip((r * r - nu) / (mu * r), -1.0, 1.0))

    @cached_property
    def _laws(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
        """(coins of each radius beyond its floor, row by row; means, by how much they are wrong at most, E|Y|^2, the ratio).

        Coins are functions of floats and integers that are alike everywhere: only integers are summed. The largest ratio of
        densities is an upper bound.
        """
        first, end, place = self._rows
        if not (end > first).all():
            raise ValueError("slopes and levels are not allowed: every row must prefer some outputs")
        work.count(0.3 * float(place[-1]))
        heights, rest = self._heights, TOTAL - sum(self.floors)
        share, moment, _, error = caps(self.dim, (1 - np.abs(heights)) / 2, heights < 0)
        at = np.arange(heights.size) - np.repeat(place[:-1] - first, end - first)
        floors, radii = np.array(self.floors)[at], np.array(self.radii)[at]
        room = floors * share
        most = np.maximum.reduceat(room, place[:-1])
        if not (most > 2.0**-400).all():
            raise ValueError("slopes and levels are not allowed: every row must prefer some outputs")
        row = np.repeat(np.arange(first.size), end - first)
        parts = np.ldexp(room, (PART - np.frexp(most)[1])[row]).astype(np.int64)
        coins = np.floor(rest * (parts / np.add.reduceat(parts, place[:-1])[row])).astype(np.int64)
        largest = np.flatnonzero(room == most[row])
        largest = largest[np.unique(row[largest], return_index=True)[1]]
        coins[largest] += rest - np.add.reduceat(coins, place[:-1])
        if coins.min() < 0:
            raise ValueError("floors are not allowed: they leave next to nothing to the rows")
        used = coins > 0
        excess = float((coins[used] / (floors[used] * (share[used] * (1 - error)) - TINY)).max())
        with np.errstate(invalid="ignore"):
            along = radii * coins * np.where(used, moment / share, 0.0)
        means, squares = (np.add.reduceat(v, place[:-1]) / TOTAL for v in (along, radii**2 * coins))
        floor = math.fsum(r * r * m for r, m in zip(self.radii, self.floors, strict=True)) / TOTAL
        return coins, means, means * (2 * error + self._steps) + TINY, floor + squares, excess * (1 + 8 * UNIT)

    @property
    def _steps(self) -> float:
        """What sums over the radii of a row may be wrong by, as a share."""
        first, end, _ = self._rows
        return UNIT * (int((end - first).max()) + 32)

    @property
    def _means(self) -> np.ndarray:
        return self._laws[1]

    @property
    def _wrong(self) -> np.ndarray:
        return self._laws[2]

    @property
    def _squares(self) -> np.ndarray:
        """E|Y|^2 of each row, but for rounding: floats, as exact as sums of so many."""
        return self._laws[3]

    @cached_property
    def _ratio(self) -> Fraction:
        return 1 + Fraction(self._laws[4])

    @cached_property
    def _rounding(self) -> Fraction:
        """The most that rounding to the grid adds to the error."""
        return self.dim * Fraction(self.step) ** 2 / 4

    # --- sampling

    @cached_property
    def _sums(self) -> tuple[np.ndarray, np.ndarray]:
        """(sums of the floors, sums of the coins of each row, row by row): the last ones are `TOTAL`, less the floors."""
        first, end, place = self._rows
        sums = np.cumsum(self._laws[0])  # of all rows, modulo 2^64: so are differences, which are less
        before = np.concatenate([[0], sums])[place[:-1]]
        return np.cumsum(np.array(self.floors, dtype=np.int64)), sums - np.repeat(before, end - first)

    def _draw(self, law: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """(radii, heights of caps) of these rows, by inversion: `TOTAL` is the number of tickets."""
        first, end, place = self._rows
        floors, sums = self._sums
        ticket = limbs(law.shape, rng)
        at = np.searchsorted(floors, ticket, side="right")
        low, high = place[law], place[law + 1] - 1
        ticket, favoured = ticket - floors[-1], at == floors.size
        for _ in range(int((end - first).max()).bit_length()):
            middle = (low + high) // 2
            above_ = sums[middle] > ticket
            low, high = np.where(above_, low, np.minimum(middle + 1, high)), np.where(above_, middle, high)
        heights = np.where(favoured, self._heights[low], -1.0)
        return np.array(self.radii)[np.where(favoured, low - place[law] + first[law], at)], heights

    @cached_property
    def _ends(self) -> np.ndarray:
        """-rho_1, rho_1, rho_2, ... as floats."""
        return np.concatenate([-self._means[:1], self._means])

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng = np.asarray(self.domain.check(x), dtype=float), as_rng(rng)
        rows = inputs.reshape(-1, self.dim)
        place = self._place(rows, rng)
        law, turned = np.maximum(place - 1, 0), place == 0
        axis = self._axes(rows)
        axis[turned] *= -1
        radii, heights = self._draw(law, rng)
        found = above(axis, heights, radii, self.step, rng)
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
        margin = (2.0**-50 * (4 + self.dim) + 4 * self._wrong[-1]) / width + 2.0**-50
        near = np.minimum(np.abs(norms - ends[low]), np.abs(ends[low + 1] - norms)) <= margin * width
        out: np.ndarray = low + (excess < 0)
        for i in np.flatnonzero((np.abs(excess) <= margin) | near).tolist():
            out[i] = self._place_exactly(rows[i], int(low[i]), int(toss[i]), rng)
        return out

    def _place_exactly(self, row: np.ndarray, low: int, toss: int, rng: np.random.Generator) -> int:
        square = min(sum((Fraction(c) ** 2 for c in row.tolist()), Fraction(0)), Fraction(1))
        digits = Digits(toss, BITS)
        for bits in PRECISIONS[1:]:
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
        raise RuntimeError("a random number could not be told from a threshold")

    def _end(self, k: int) -> arb:
        """`_ends` at the working precision."""
        row = max(k - 1, 0)
        if (row, ctx.prec) not in self._known_ends:
            (first, end, place), mean = self._rows, arb(0)
            inside = slice(place[row], place[row + 1])
            heights, coins = self._heights[inside].tolist(), self._laws[0][inside].tolist()
            for r, n, height in zip(self.radii[first[row] : end[row]], coins, heights, strict=True):
                if n:
                    share, moment = any_cap(self.dim, arb(height))
                    mean += arb(r) * n * moment / share
            self._known_ends[row, ctx.prec] = mean / TOTAL
        mean = self._known_ends[row, ctx.prec]
        return mean if k else -mean

    @cached_property
    def _known_ends(self) -> dict[tuple[int, int], arb]:
        return {}

    # --- what every mechanism can do

    def norms(self, norm: float) -> tuple[np.ndarray, np.ndarray]:
        """(radii, probabilities): the law of |Y|, before rounding, for inputs of this norm in [0, 1]."""
        ends, law = self._ends, np.array(self.floors, dtype=float) / TOTAL
        high = int(np.clip(np.searchsorted(ends, norm, side="right"), 1, ends.size - 1))
        share = (norm - ends[high - 1]) / (ends[high] - ends[high - 1])
        for row, part in ((max(high - 2, 0), 1 - share), (high - 1, share)):
            place = self._rows[2][row : row + 2]
            law[self._rows[0][row] : self._rows[1][row]] += part * self._laws[0][place[0] : place[1]] / TOTAL
        return np.array(self.radii), law

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
        return np.asarray(np.interp(np.asarray(norms), self._ends[1:], self._squares))

    @cached_property
    def _worst(self) -> tuple[float, float, float]:
        """(bounds on the largest error but for rounding to the grid, the norm of an input that has it, nearly).

        Between two means with the errors u and v, d apart, the error is (1 - t) u + t v + t (1 - t) d^2 at the share t.
        """
        count = int(np.argmax(self._means - self._wrong >= 1)) + 1
        means, wrong, squares = (v[:count] for v in (self._means, self._wrong, self._squares))
        steps, bounds, at = self._steps, [], 0.0
        for sign in (-1, 1):
            error = squares * (1 + sign * steps) - (means - sign * wrong) ** 2 * (1 - sign * steps)
            gaps, moved = np.diff(means), wrong[:-1] + wrong[1:]
            u, rise, square = error[:-1], np.diff(error), np.maximum(0.0, gaps + sign * moved) ** 2
            most = np.ones(u.size)
            least = gaps[-1:] - sign * moved[-1:]  # not proven to be positive, as a difference of floats
            if (least > 0).all():
                most[-1:] = (1 - means[-2:-1] + sign * wrong[-2:-1]) / least
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.clip(np.nan_to_num(0.5 + rise / (2 * square)), 0.0, np.clip(most, 0.0, 1.0))
            found = u + share * rise + share * (1 - share) * square + sign * steps * (np.abs(u) + np.abs(rise) + square)
            found = np.append(found, squares[0] * (1 + sign * steps))  # norms below the least mean have its E|Y|^2
            place = int(np.argmax(found))
            bounds.append(float(found[place]))
            at = float(means[place] + share[place] * gaps[place]) if place < u.size else 0.0
        return bounds[0], bounds[1], min(at, 1.0)

    def worst_input(self, loss: LossLike = "squared") -> Any:
        """A multiple of the first axis: only the norm matters."""
        self._loss(loss)
        return np.eye(1, self.dim)[0] * self._worst[2]

    def average_loss(self, loss: LossLike = "squared") -> float:
        """The expected loss under the uniform distribution on the ball, but for rounding to the grid."""
        self._squared(loss)
        d, total = self.dim, float(self._squares[0])
        for (low, first), (high, second) in pairwise(zip(self._means.tolist(), self._squares.tolist(), strict=True)):
            rise, top = (second - first) / (high - low), min(high, 1.0)
            if low < 1:  # the change of slope at `low`: the integral of (t - low)_+ over [low, top] and beyond
                total += rise * _above(low, d) - rise * (_above(top, d) if high < 1 else 0.0)
        return total - d / (d + 2)

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(low, high) around the largest error, and for the upper one what rounding to the grid can add."""
        if not isinstance(objective, WorstCase) or objective.loss.exponent != 2:
            return super().enclose(objective)
        low, high, _ = self._worst
        return max(0.0, low), enclosures.round_up(Fraction(high) + self._rounding)

    def check_unbiased(self) -> Check:
        """E[Y | x] is x by symmetry around x and the odds of the two rows next to |x|; rounding adds no bias."""
        told = "rows have means along x by symmetry, and two of them are mixed to the mean |x|; rounding keeps the mean"
        return Check("unbiased", True, told)

    def __repr__(self) -> str:
        return (
            f"RadialMechanism on {self.domain}: {len(self.radii)} radii from {self.radii[0]:.4g} to {self.radii[-1]:.4g}, "
            f"{len(self.slopes)} rows; eps = {self._told()}"
        )


def _above(low: float, d: int) -> float:
    """E[(|x| - low)_+] for x uniform on the unit ball of R^d."""
    return d / (d + 1) * (1 - low ** (d + 1)) - low * (1 - low**d)

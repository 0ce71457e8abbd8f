"""Kernel mechanisms: a floor that varies over the outputs, and a window of fixed floor mass that follows the input."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Annotated, Any, Literal

import numpy as np
from flint import arb, arb_poly, ctx, fmpq
from numpy.typing import ArrayLike

from optdp.exact import enclosures, require, sweep, work
from optdp.exact.check import Check
from optdp.exact.enclosures import ball, nearest
from optdp.exact.fields import Within
from optdp.exact.lattice import Lattice
from optdp.exact.numbers import Number, next_float, span
from optdp.exact.polynomial import exact, fraction
from optdp.exact.sampling import LIMB, Guide, Seed, as_rng, coin, either, in_blocks, limbs, tossed
from optdp.exact.sweep import Branches, Cell, Limit, Sweep
from optdp.mechanisms.piecewise import CELLS, COINS, CellWindow, least_floor
from optdp.problem.density import Density
from optdp.problem.domains import DomainLike, Interval, as_interval
from optdp.problem.losses import Loss, LossLike
from optdp.problem.objectives import Average, Objective, WorstCase
from optdp.problem.priors import Prior
from optdp.problem.privacy import LDP, Privacy

#: Most pieces of a floor.
PIECES = 2**15
#: Where means are exact: outputs are numbers of a lattice of at most 2^STEPS steps, and windows start at multiples of a power of
#: two, about 2^-STARTS of their width, or 2^-STRETCH of the way on which both ends move linearly. Coarse enough for floats to
#: decide nearly all roundings, and fine enough to cost nothing.
STEPS, STARTS, STRETCH = 40, 22, 12
#: Windows placed by their ends are those of an input this share of the largest number (in domains) away, by rounding of floats.
READ = Fraction(1, 2**49)
#: How many bits atoms that are smaller than others may be finer.
FINER = 8
#: Losses of inputs in floats are equal up to this share.
TIED = 2.0**-40
#: Averages over points of losses that jump are exact for at most so many pairs of a point and a piece.
POINTWISE = 2**12

Rule = Literal["ends", "mean"]


@dataclass(frozen=True, repr=False)
class KernelMechanism(CellWindow):
    """A piecewise mechanism seen through a nondecreasing map Q of [0, 1] to the outputs.

    With probability `floor_mass` the output is Q(U), U uniform; else Q(U) for U uniform over a window [a, a + w] that the
    input places. So the floor is any measure on the outputs (Q its quantile function), and the likelihood ratios are those of
    a piecewise mechanism with a window of the same width, wherever the window is: every mechanism whose rows are the best
    for their floor has this form.

    **Arguments:**

    - `domain`: an interval. Outputs are written as shares of it: 0 is the lower end, 1 the upper; they may lie beyond.
    - `cells`: the pieces of Q in 2^-50, positive integers with sum 2^50.
    - `lows`, `highs`: Q rises linearly from `lows[k]` to `highs[k]` over piece k (an atom, if they are equal).
    - `width_cells`: the window's width w in 2^-50; `floor_coins`: the floor's mass in 2^-124.
    - `rule`: where the window of an input x starts. "ends": so that x divides the distance of the window's ends as `share` says,
      x = (1 - share) Q(a) + share Q(a + w); "mean": so that the mean of the output is x.
    - `share`: in [0, 1]; 1/2 is best for losses of the distance, tau for `Pinball(tau)`.

    Use `KernelMechanism.private(eps, ...)` to build one from real numbers.

    **Exactness.** Masses and ratios are exact rationals; `randomize` draws a cell of 2^-50 with integers alone, and what it sends
    for a cell is a number of a lattice: a multiple of one power of two that is a float (or an integer, for integers on a domain
    whose floats are coarser). "ends": the number next to Q at the cell's middle; where all pieces are atoms, the float next to
    each (next to 0 a number of a lattice 2^8 times as fine as floats at the ends), with windows that are placed without
    rounding. "mean": the pieces' ends are numbers of the lattice, an input is read as the nearest float of the domain's lattice,
    its window starts at one of two places and one of the two numbers around Q at the cell's middle is sent, both at random with
    exact probabilities, so that E[Y | x] = x for the numbers sent. `enclose` is about the numbers sent: the law on the
    continuum, and what all that can add to it.
    """

    domain: Interval
    cells: Annotated[tuple[int, ...], Within(1, CELLS, 1, PIECES)]
    lows: Annotated[tuple[float, ...], Within(least=1, most=PIECES)]
    highs: Annotated[tuple[float, ...], Within(least=1, most=PIECES)]
    width_cells: Annotated[int, Within(1, CELLS)]
    floor_coins: Annotated[int, Within(1, COINS)]
    rule: Rule = "ends"
    share: Annotated[float, Within(0.0, 1.0)] = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", as_interval(self.domain, "a kernel mechanism"))
        for name in ("cells", "lows", "highs"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        low, high = np.array(self.lows, dtype=float), np.array(self.highs, dtype=float)
        if not len(self.cells) == low.size == high.size or sum(self.cells) != CELLS or min(self.cells, default=0) < 1:
            raise ValueError(
                "cells are not allowed: they must be positive, sum to 2^50, and have one of `lows` and `highs` each"
            )
        if not np.isfinite([low, high]).all() or (low > high).any() or (high[:-1] > low[1:]).any():
            raise ValueError("lows and highs are not allowed: Q must not decrease")
        require.integer("width_cells", self.width_cells, low=1, high=CELLS)
        require.integer("floor_coins", self.floor_coins, low=1, high=COINS)
        require.choice("rule", self.rule, ("ends", "mean"))
        require.real("share", self.share, low=0.0, high=1.0)

    @classmethod
    def private(
        cls, eps: Number, masses: ArrayLike, lows: ArrayLike, highs: ArrayLike, window: float,
        domain: DomainLike = (0.0, 1.0), rule: Rule = "ends", share: float = 0.5,
    ) -> KernelMechanism:  # fmt: skip
        """The eps-LDP mechanism with this floor (`masses` of its pieces, up to a factor), a window with the share `window` of it,
        and the least mass under the floor.
        """
        share_of = np.asarray(masses, dtype=float)
        running = np.cumsum(share_of)
        ends = np.round(running / running[-1] * CELLS).astype(np.int64)
        if np.array_equal(share_of, share_of[::-1]):  # and so are the cells
            count = ends.size // 2
            ends[ends.size - 1 - count : -1] = CELLS - ends[:count][::-1]
        cells = np.diff(ends, prepend=0)
        keep = cells > 0
        width = min(max(round(Fraction(window) * CELLS), 1), CELLS)
        return cls(
            as_interval(domain, "a kernel mechanism"), tuple(cells[keep].tolist()),
            tuple(np.asarray(lows, dtype=float)[keep].tolist()), tuple(np.asarray(highs, dtype=float)[keep].tolist()),
            width, least_floor(eps, width), rule, share,
        )  # fmt: skip

    # Sampling and probabilities ---------------------------------------------------------------------------------

    @cached_property
    def _edges(self) -> np.ndarray:
        """Where pieces start, in cells, and 2^50."""
        return np.array([0, *accumulate(self.cells)], dtype=np.int64)

    @cached_property
    def _piece(self) -> Guide:
        """The piece of each cell."""
        return Guide(self._edges[:-1], CELLS.bit_length() - 1)

    @cached_property
    def _discrete(self) -> bool:
        """Whether outputs are atoms, and windows are placed by their ends, so that they only jump."""
        return self.rule == "ends" and self.lows == self.highs

    def _lattice(self, whole: bool = False) -> Lattice:
        """What the outputs are numbers of; `whole`: integers."""
        low, high = self.exact_ends
        lattice = Lattice.between(low, high, whole)
        step = lattice.step
        if self._discrete and step < 1:  # atoms are floats, also where these are finer than for all others
            step, low, high = max(step / 2**FINER, Fraction(1, 2**1074)), _float_from(low), -_float_from(-high)
        while self.rule == "mean" and high - low > step * 2**STEPS:
            step *= 2
        first, last = math.ceil(low / step), math.floor(high / step)
        return Lattice(step, min(first, last), max(first, last))  # exchanged where no number is between the ends

    @cached_property
    def _sent(self) -> Lattice:
        return self._lattice()

    @cached_property
    def _whole(self) -> KernelMechanism | None:
        """The mechanism for integers on a domain whose floats are coarser than integers, if there are any."""
        ends = self.domain.lower, self.domain.upper
        lattice = self._lattice(True)
        far = max(abs(Fraction(end)) for end in (*ends, lattice.first * lattice.step, lattice.last * lattice.step))
        if Lattice.between(*ends).step <= 1 or far >= 2**62:
            return None
        twin = replace(self)
        twin.__dict__.update(_sent=lattice, _reads=self._lattices[1])
        return twin

    @cached_property
    def _places(self) -> list[tuple[int, int]]:
        """The ends of each piece: the nearest numbers of the lattice."""
        lower, width, sent = Fraction(self.domain.lower), self.domain.exact_width, self._sent
        work.count(4 * len(self.cells) * work.rational(2 + work.words((lower, Fraction(self.domain.upper)))))

        def place(end: float) -> int:
            point = lower + width * Fraction(end)
            if self._discrete and sent.step < 1:
                point = Fraction(nearest(point))
            return min(max(round(point / sent.step), sent.first), sent.last)

        return [(place(low), place(high)) for low, high in zip(self.lows, self.highs, strict=True)]

    @cached_property
    def _shares(self) -> list[tuple[fmpq, fmpq]]:
        """The ends of each piece in exact shares: as given, or where means are exact those of the lattice."""
        if self.rule == "ends":
            return [(exact(a), exact(b)) for a, b in zip(self.lows, self.highs, strict=True)]
        unit = exact(self._sent.step / self.domain.exact_width)
        start = exact(Fraction(self.domain.lower) / self.domain.exact_width)
        return [(a * unit - start, b * unit - start) for a, b in self._places]

    @cached_property
    def _line(self) -> tuple[np.ndarray, np.ndarray]:
        """(first, slope): the number sent for the middle of a cell is about first + slope (2 cell + 1) on its piece, in steps."""
        if self.rule == "mean":
            starts, spans = [a for a, _ in self._places], [Fraction(b - a) for a, b in self._places]
        else:
            lower, width, step = Fraction(self.domain.lower), self.domain.exact_width, self._sent.step
            if self._discrete:
                return np.array([a for a, _ in self._places], dtype=np.int64), np.zeros(len(self.cells))
            spans = [(Fraction(b) - Fraction(a)) * width / step for a, b in zip(self.lows, self.highs, strict=True)]
            # Not moved to the lattice, which may begin one step later: the whole piece would be moved with its start.
            starts = [round((lower + width * Fraction(a)) / step) for a in self.lows]
        first = np.array(starts, dtype=np.int64)
        return first, np.array([float(span / (2 * cells)) for span, cells in zip(spans, self.cells, strict=True)])

    @cached_property
    def _rises(self) -> tuple[np.ndarray, np.ndarray]:
        """Of each piece, in integers: how many numbers further it ends, and twice its cells."""
        return np.array([b - a for a, b in self._places], dtype=np.int64), 2 * np.array(self.cells, dtype=np.int64)

    def _quantile(self, cell: np.ndarray, rng: np.random.Generator | None = None) -> np.ndarray:
        """The number sent for each cell, in steps: the nearest one; with `rng` one of two, so that the mean is exact."""
        flat = cell.reshape(-1)
        piece = self._piece(flat)
        first, slope = self._line
        middle = flat - self._edges.take(piece)
        middle <<= 1
        middle += 1
        along = slope.take(piece)
        along *= middle
        if rng is None:
            near = np.rint(along, out=along).astype(np.int64)
            near += first.take(piece)
            np.maximum(near, self._sent.first, out=near)
            return np.minimum(near, self._sent.last, out=near).reshape(cell.shape)
        toss = limbs(flat.shape, rng)
        out, (rises, twice) = along.astype(np.int64), self._rises
        # Floats are wrong by less than one step, so that modulo 2^64 the rest is known.
        whole = twice.take(piece)
        rest = rises.take(piece)
        rest *= middle
        rest -= out * whole
        out += first.take(piece)
        excess = rest / whole
        excess -= (LIMB - 1 - toss) * (1 / LIMB)
        near = np.ceil(excess)
        out += near.astype(np.int64)
        near -= excess
        for i in np.flatnonzero(np.abs(near - 0.5) > 0.5 - 2.0**-49).tolist():
            low, high = self._places[piece[i]]
            down, left = divmod((high - low) * int(middle[i]), int(whole[i]))
            out[i] = low + down + tossed(LIMB - 1 - int(toss[i]), Fraction(left, int(whole[i])), rng)
        return out.reshape(cell.shape)

    @cached_property
    def _windows(self) -> list[tuple[int, int, fmpq, fmpq, fmpq, fmpq]]:
        """(a, a', Q(a), Q(a'), Q(a + w), Q(a' + w)) in cells and exact shares: between a and a' both ends move linearly."""
        work.count(len(self.cells) * (10 + 40 * work.flint(self._words + 1)))
        edges = self._edges.tolist()
        last = CELLS - self.width_cells
        marks = {0, last, *edges, *(e - self.width_cells for e in edges)}
        starts = sorted(a for a in marks if 0 <= a <= last)
        out = []
        for a, b in pairwise(starts):
            i, j = bisect_right(edges, a) - 1, bisect_right(edges, a + self.width_cells) - 1
            low, high = ((self._at(k, a + w), self._at(k, b + w)) for k, w in ((i, 0), (j, self.width_cells)))
            out.append((a, b, *low, *high))
        if not out:  # the window is everything
            low, high = self._shares[0][0], self._shares[-1][1]
            out.append((0, 0, low, low, high, high))
        return out

    def _at(self, piece: int, cell: int) -> fmpq:
        """Q on a piece, or at its ends, in exact shares."""
        low, high = self._shares[piece]
        return low + (high - low) * fmpq(cell - int(self._edges[piece]), self.cells[piece])

    @cached_property
    def _words(self) -> float:
        """Words of the outputs, for counted work."""
        return work.words((*self.lows, *self.highs))

    @cached_property
    def _targets(self) -> list[tuple[fmpq, fmpq]]:
        """The inputs, as shares, whose windows start at the two ends of each of `_windows`."""
        work.count(len(self._windows) * 8 * work.flint(self._words + 3))
        if self.rule == "ends":
            s = exact(self.share)
            return [((1 - s) * qa + s * ra, (1 - s) * qb + s * rb) for _, _, qa, qb, ra, rb in self._windows]
        found = []
        at = self._mean_from(0)
        for a, b, qa, qb, ra, rb in self._windows:
            end = at + self._growth * fmpq(b - a, CELLS) * (ra - qa + rb - qb) / 2
            found.append((at, end))
            at = end
        return found

    @cached_property
    def _growth(self) -> fmpq:
        """(1 - M)/w: the density of the window beyond the floor's, per unit of floor."""
        return exact((1 - self.exact_floor_mass) / self.exact_window)

    def _mean_from(self, start: int) -> fmpq:
        """E[Y] with the window at the first cell (`start` = 0), in exact shares."""
        mass = exact(self.exact_floor_mass)
        twice = [a + b for a, b in self._shares]
        whole = sum((m * c for m, c in zip(twice, self.cells, strict=True)), fmpq(0)) / (2 * CELLS)
        near, left = fmpq(0), self.width_cells
        for k, count in enumerate(self.cells):
            part = min(count, left)
            near += part * (self._shares[k][0] + self._at(k, int(self._edges[k]) + part)) / 2
            left -= part
            if not left:
                break
        return mass * whole + (1 - mass) * near / self.width_cells

    @cached_property
    def _map(self) -> tuple[np.ndarray, ...]:
        """For floats: inputs x and starts a at both ends of each stretch, and how fast the mean moves there."""
        x = np.array([[_float(p), _float(q)] for p, q in self._targets])
        a = np.array([w[:2] for w in self._windows], dtype=float)
        rate = np.array([[_float(ra - qa), _float(rb - qb)] for _, _, qa, qb, ra, rb in self._windows])
        return x[:, 0], x[:, 1], a[:, 0], a[:, 1], rate[:, 0], rate[:, 1]

    @cached_property
    def _where(self) -> tuple[Guide, np.ndarray]:
        """On which stretch each input lies, given as a share, and how long stretches are."""
        return Guide(self._map[0], 0), self._map[1] - self._map[0]

    def _start(self, x: np.ndarray) -> np.ndarray:
        """The first cell of each input's window (where means are exact: next to which it is), for shares."""
        flat, (guide, lengths) = x.reshape(-1), self._where
        left, _, start, end, r0, r1 = self._map
        k = guide(flat)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = flat - left.take(k)
            t /= lengths.take(k)
            if self.rule == "mean":  # r0 t + (r1 - r0) t^2/2 is the share t of (r0 + r1)/2
                c = t * (r0[k] + r1[k]) / 2
                t = 2 * c / (r0[k] + np.sqrt(np.maximum(r0[k] ** 2 + 2 * (r1[k] - r0[k]) * c, 0.0)))
            np.fmin(np.fmax(t, 0.0, out=t), 1.0, out=t)  # 0/0 is 0
        low = start.take(k)
        t *= end.take(k) - low
        t += low
        cell = t.astype(np.int64)
        np.maximum(cell, 0, out=cell)
        return np.minimum(cell, CELLS - self.width_cells, out=cell).reshape(x.shape)

    @cached_property
    def _jumps(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Where outputs are atoms, so that windows only jump: their starts, and the first float and integer input of each."""
        lower, width = Fraction(self.domain.lower), self.domain.exact_width
        after = [lower + width * fraction(target) for target, _ in self._targets]
        whole = [min(max(math.floor(x) + 1, -(2**63)), 2**63 - 1) for x in after]
        starts = [0, *(b for _, b, *_ in self._windows)]
        return (
            np.array(starts, dtype=np.int64),
            np.array([next_float(x) for x in after]),
            np.array(whole, dtype=np.int64),
        )

    def _first_cell(self, inputs: np.ndarray) -> np.ndarray:
        """The same for floats; integers are taken from an integer, so that nothing of them is rounded before."""
        if self._discrete:
            starts, floats, integers = self._jumps
            return starts.take(np.searchsorted(integers if inputs.dtype.kind in "iu" else floats, inputs, side="right"))
        lower = self.domain.lower
        if inputs.dtype.kind in "iu":
            base = math.floor(lower)
            return self._start(((inputs - base) - (lower - base)) / self.domain.width)
        return self._start((inputs - lower) / self.domain.width)

    def _grid(self, length: int) -> int:
        """Where means are exact windows start at multiples of so many cells on a stretch of starts, and at its ends."""
        return int(2 ** max(min(self.width_cells.bit_length() - 1 - STARTS, length.bit_length() - 1 - STRETCH), 0))

    @cached_property
    def _reads(self) -> Lattice:
        """What inputs are numbers of."""
        return Lattice.between(self.domain.lower, self.domain.upper)

    @cached_property
    def _moves(self) -> tuple[Guide, tuple[np.ndarray, ...]]:
        """(on which stretch each input lies, what floats know of stretches), inputs in steps of `_reads` from its first number.

        That is a stretch's first mean, as an integer and a rest; its first start, its cells and `_grid`; how fast the mean moves
        with the start, and half of how fast that changes; what bounds the error of a difference of means.
        """
        step = exact(self._reads.step / self.domain.exact_width)
        offset = exact((self._reads.first * self._reads.step - Fraction(self.domain.lower)) / self.domain.exact_width)
        means = [((a - offset) / step, (b - a) / step) for a, b in self._targets]
        # Means may lie far outside of the domain, where nothing is read.
        floors = np.array([min(max(int(mean.floor()), 0), 2**63 - 1) for mean, _ in means], dtype=np.int64)
        rests = np.array([_float(mean - low) for (mean, _), low in zip(means, floors.tolist(), strict=True)])
        spans = np.array([_float(span) for _, span in means])
        _, _, start, end, r0, r1 = self._map
        unit = _float(self._growth / (CELLS * step))
        grids = np.array([float(self._grid(b - a)) for a, b, *_ in self._windows])
        bends = unit * (r1 - r0) / np.maximum(2 * (end - start), 1)
        reached = np.array([min(max(int(mean.ceil()), 0), 2**63 - 1) for mean, _ in means], dtype=np.int64)
        guide = Guide(reached, (self._reads.count - 1).bit_length())
        # At most 64 roundings of numbers like the stretch, each by a share of 2^-53, and one of the rest.
        sizes = spans * 2.0**-47 + 2.0**-53
        return guide, (floors, rests, start, end - start, grids, unit * r0, bends, sizes)

    def _tossed_start(self, at: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The first cell of each input's window, one of two, so that the mean of the output is the input exactly."""
        guide, tables = self._moves
        place, toss = at - self._reads.first, limbs(at.shape, rng)
        k = guide(place)
        floor, rest, start, length, grid, rate, bend, size = (part.take(k) for part in tables)
        x = (place - floor) - rest
        with np.errstate(divide="ignore", invalid="ignore"):
            root = rate * rate
            root += 4 * bend * x
            root = np.sqrt(np.maximum(root, 0.0, out=root), out=root)
            root += rate
            low = np.minimum(2 * x / root, length)
            low /= grid
            low = np.maximum(np.floor(low, out=low), 0.0, out=low)
            low *= grid
            grid = np.minimum(grid, length - low)
            step = grid * (rate + bend * (low + low + grid))
            chance = (x - low * (rate + bend * low)) / step
            excess = toss * (1 / LIMB) - chance
            size /= step
            size += 2.0**-50
            sure = (np.abs(excess) > size) & (np.abs(chance - 0.5) < 0.5 - size)
            start += low
            grid *= excess < 0
            start += grid
            cell = start.astype(np.int64)
        unsure = np.flatnonzero(~sure)
        if unsure.size:
            places, which = np.unique(at[unsure], return_inverse=True)
            lower, width = Fraction(self.domain.lower), self.domain.exact_width
            nodes = [self._nodes(exact((k * self._reads.step - lower) / width)) for k in places.tolist()]
            for i, (first, second, share) in zip(unsure.tolist(), (nodes[j] for j in which.tolist()), strict=True):
                cell[i] = second if tossed(int(toss[i]), share, rng) else first
        return cell

    def _nodes(self, x: fmpq) -> tuple[int, int, Fraction]:
        """Two starts between whose means x lies, and the chance of the second one with which the mean is x; x a share."""
        k = max(bisect_right(self._targets, x, key=lambda ends: ends[0]) - 1, 0)
        from_mean, (a, b, qa, qb, ra, rb) = self._targets[k][0], self._windows[k]
        if a == b or x <= from_mean:
            return a, a, Fraction(0)

        def rise(cell: int) -> fmpq:
            return self._growth * fmpq(cell, CELLS) * (ra - qa + (rb - qb - ra + qa) * fmpq(cell, 2 * (b - a)))

        grid = self._grid(b - a)
        nodes = range(-(-(b - a) // grid))
        low = (bisect_right(nodes, x - from_mean, key=lambda j: rise(j * grid)) - 1) * grid
        high = min(low + grid, b - a)
        step = rise(high) - rise(low)
        share = (x - from_mean - rise(low)) / step if step else fmpq(0)
        return a + low, a + high, min(fraction(share), Fraction(1))

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        raw, domain = require.array(x), self.domain
        whole = raw.dtype.kind in "iu" and self._whole is not None
        law: KernelMechanism = self._whole if whole else self  # type: ignore[assignment]
        inputs = domain.check_integers(raw) if whole else domain.check(x)
        rng, mean = as_rng(rng), self.rule == "mean"
        step = law._sent.step

        def draw(part: np.ndarray) -> np.ndarray:
            cell = rng.integers(0, CELLS, size=part.shape)
            from_floor = coin(self.floor_coins, COINS, part.shape, rng)
            near = law._tossed_start(law._reads.index(part), rng) if mean else law._first_cell(part)
            near += rng.integers(0, self.width_cells, size=part.shape)
            sent = law._quantile(either(from_floor, cell, near), rng if mean else None)
            return sent * (int(step) if whole else float(step))

        return in_blocks(draw, inputs)

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        """The outputs at the ends of each piece; of atoms, and where means are exact, the numbers that are sent."""
        if self.rule == "mean":
            low, high = np.array(self._places, dtype=float).T * float(self._sent.step)
            return low, high
        flat = np.equal(self.lows, self.highs)
        atoms = np.array([a for a, _ in self._places], dtype=float) * float(self._sent.step)
        ends = (self.domain.lower + self.domain.width * np.array(share) for share in (self.lows, self.highs))
        low, high = (np.where(flat, atoms, end) for end in ends)
        return low, high

    @cached_property
    def _offsets(self) -> tuple[np.ndarray, np.ndarray]:
        """The same above the domain's lower end, which may be so large that the ends themselves are rounded by much."""
        (low, high), lower = self._ends, self.domain.lower
        if self.rule == "mean":
            return low - lower, high - lower
        ends = (self.domain.width * np.array(share) for share in (self.lows, self.highs))
        low, high = (np.where(low == high, low - lower, end) for end in ends)
        return low, high

    def density(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        outputs, inputs = np.broadcast_arrays(require.reals(y, "y"), self.domain.check(x))
        outputs, (low, high) = outputs - self.domain.lower, self._offsets
        k = np.clip(np.searchsorted(low, outputs, side="right") - 1, 0, low.size - 1)
        span = high[k] - low[k]
        inside = (outputs >= low[k]) & (outputs <= high[k]) & (span > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            place = self._edges[k] + np.array(self.cells)[k] * ((outputs - low[k]) / span)
            floor = self.floor_mass * np.array(self.cells)[k] / CELLS / span
        first = self._first_cell(inputs)
        near = (place >= first) & (place <= first + self.width_cells)
        return np.where(inside, floor * np.where(near, float(self.exact_ratio), 1.0), 0.0)

    def cumulative(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        """P(Y <= y | x)."""
        outputs, (low, high) = require.reals(y, "y"), self._ends
        if not self._discrete:  # of atoms neighbouring floats are told apart
            outputs, (low, high) = outputs - self.domain.lower, self._offsets
        k = np.searchsorted(low, outputs, side="right") - 1
        span = high[k] - low[k]
        share = np.where(span > 0, np.clip((outputs - low[k]) / np.where(span > 0, span, 1.0), 0.0, 1.0), 1.0)
        place = np.where(k < 0, 0.0, self._edges[k] + np.array(self.cells)[k] * share)
        place = np.where(np.isnan(outputs), np.nan, place)  # which is sorted behind all numbers
        near = np.clip(place - self._first_cell(self.domain.check(x)), 0.0, self.width_cells)
        return np.asarray(self._mix(place / CELLS, near / self.width_cells))

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        outputs, inputs = np.broadcast_arrays(require.reals(y, "y"), self.domain.check(x))
        first, total = self._first_cell(inputs), np.zeros(outputs.shape)
        low, high = self._ends
        for k in np.flatnonzero(low == high):
            over = np.minimum(self._edges[k + 1], first + self.width_cells) - np.maximum(self._edges[k], first)
            share = self._mix(self.cells[k] / CELLS, np.maximum(over, 0) / self.width_cells)
            total = total + np.where(outputs == low[k], share, 0.0)
        return np.asarray(total)

    def atoms(self) -> np.ndarray:
        low, high = self._ends
        return np.unique(low[low == high])

    def tables(self) -> dict[str, Any]:
        """What `randomize` computes with for floats: integers, and floats that are rounded once.

        Stretches are of inputs from 0, in units of the second number of `unit` above the first.
        """
        found = {"edges": self._edges[:-1].tolist(), "places": self._places, "sent": self._sent}
        if self.rule == "mean":
            grids = [self._grid(b - a) for a, b, *_ in self._windows]
            return found | {"starts": [a for a, *_ in self._windows], "grids": grids}
        first, slope = (part.tolist() for part in self._line)
        found |= {"starts": first, "slopes": slope}
        if not self._discrete:
            return found | {
                "stretches": [part.tolist() for part in self._map[:4]],
                "unit": (self.domain.lower, self.domain.width),
            }
        least, most = self.domain.lower, self.domain.upper  # windows that only jump are those of stretches of one float
        jumps = [
            (max(x, least), a) for x, a in zip((least, *self._jumps[1].tolist()), self._jumps[0].tolist(), strict=True)
        ]
        at, starts = map(list, zip(*(jump for jump in jumps if jump[0] <= most), strict=True))
        return found | {"stretches": [at, at, starts, starts], "unit": (0.0, 1.0)}

    def floor(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(masses, lows, highs): the pieces of the floor with their outputs; masses sum to `floor_mass`."""
        return self.floor_mass * np.array(self.cells) / CELLS, *self._ends

    def favoured(self, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """The ends of each input's window: the least and the largest output that it favours."""
        first, step = self._first_cell(self.domain.check(x)), float(self._sent.step)
        return self._quantile(first) * step, self._quantile(first + (self.width_cells - 1)) * step

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        low, high = self.exact_support()
        return nearest(low), nearest(high)

    @property
    def exact_ends(self) -> tuple[Fraction, Fraction]:
        """The ends of Q, exactly."""
        low, width = Fraction(self.domain.lower), self.domain.exact_width
        return low + width * Fraction(self.lows[0]), low + width * Fraction(self.highs[-1])

    def exact_support(self) -> tuple[Fraction, Fraction]:
        """(lowest, highest) number that is sent."""
        ends = list[Fraction]()
        for law in [self] if self._whole is None else [self, self._whole]:
            low, high = law._sent.first, law._sent.last
            if self._discrete:  # between them there may be none
                low, high = law._places[0][0], law._places[-1][1]
            ends += [low * law._sent.step, high * law._sent.step]
        return min(ends), max(ends)

    def mean(self, x: ArrayLike) -> np.ndarray:
        inputs = self.domain.check(x)
        return inputs + self._bias(inputs)

    def _bias(self, inputs: np.ndarray) -> np.ndarray:
        low, high = self._offsets
        middle, cells = low / 2 + high / 2, np.array(self.cells)
        before = np.concatenate([[0.0], np.cumsum(middle * (cells / CELLS))])

        def moment(cell: np.ndarray) -> np.ndarray:
            k = np.clip(np.searchsorted(self._edges, cell, side="right") - 1, 0, cells.size - 1)
            t = cell - self._edges[k]
            return np.asarray(before[k] + t / CELLS * (low[k] + (high[k] - low[k]) * (t / cells[k] / 2)))

        first = self._first_cell(inputs)
        near = (moment(first + self.width_cells) - moment(first)) / (self.width_cells / CELLS)
        return np.asarray(self._mix(before[-1], near) - (inputs - self.domain.lower))

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        inputs, law = self.domain.check(x), self._loss(loss)
        if law.form != "distance":
            return super().expected_loss(inputs, law)
        (low, high), cells, out = self._offsets, np.array(self.cells), []
        for part in np.array_split(inputs.reshape(-1), inputs.size * cells.size // 2**20 + 1):
            first, at = self._first_cell(part)[:, None], part[:, None] - self.domain.lower
            # The share of each piece under the window, and between which outputs it lies there.
            a = np.clip(first - self._edges[:-1], 0, cells)
            b = np.clip(first + self.width_cells - self._edges[:-1], 0, cells)
            slope = (high - low) / cells
            near = law.between(low + slope * a - at, low + slope * b - at) * ((b - a) / self.width_cells)
            far = law.between(low - at, high - at) * (cells / CELLS)
            out.append(self._mix(far.sum(axis=1), near.sum(axis=1)))
        return np.concatenate(out).reshape(inputs.shape)

    # Exact statements -------------------------------------------------------------------------------------------

    @property
    def exact_ratio(self) -> Fraction:
        """The largest likelihood ratio, exactly: window over floor."""
        return self._exact_ratio

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        """Exact tests: the mass is 1, and likelihood ratios keep the guarantee."""
        if not isinstance(privacy, LDP):
            return super().check_privacy(privacy)
        total = sum(self.cells)
        mass = Check("mass", total == CELLS, f"the floor's pieces sum to {total} of 2^50")
        return [privacy.check(self.exact_ratio), mass]

    def check_unbiased(self) -> Check:
        """Whether E[Y|x] = x for all x: by the rule, if windows reach far enough, which is decided in exact rationals."""
        if self.rule != "mean":
            return Check("unbiased", False, "windows are placed by their ends")
        laws = [self] if self._whole is None else [self, self._whole]
        low, high = max(law._targets[0][0] for law in laws), min(law._targets[-1][1] for law in laws)
        step = float(Lattice.between(self.domain.lower, self.domain.upper).step)
        return Check(
            "unbiased", low <= 0 and high >= 1,
            f"every mean in the domain is reached: they go from share {_float(low):.9g} to {_float(high):.9g}, for the numbers "
            f"sent and every multiple x of {step!r}; other inputs are read as the nearest one",
        )  # fmt: skip

    def _sweep(self, branches: Branches) -> Sweep:
        edges, law = [fmpq(e, CELLS) for e in self._edges.tolist()], (arb_poly([1]), arb_poly())
        cells = [Cell(*ends, *shares, *law) for ends, shares in zip(pairwise(edges), self._shares, strict=True)]
        return Sweep(cells, branches, 1, 3 * self._words + 1)

    def _stretches(self) -> Iterator[tuple[fmpq, fmpq, int, int, list[tuple[fmpq, fmpq]]]]:
        """Inputs from x to x' (shares) whose windows start from a to a' (cells), linearly or by their means, over [0, 1].

        And from where to where the ends of their windows move.
        """
        edges, count = self._edges.tolist(), len(self.cells) - 1

        def still(a: int) -> list[tuple[fmpq, fmpq]]:
            """The ends of a window that stays; on both sides of a gap of Q."""
            at = {(max(bisect_left(edges, c) - 1, 0), c) for c in (a, a + self.width_cells)}
            at |= {(min(bisect_right(edges, c) - 1, count), c) for c in (a, a + self.width_cells)}
            return [(end := self._at(piece, c), end) for piece, c in at]

        before = (fmpq(0), 0)
        for (x0, x1), (a, b, qa, qb, ra, rb) in zip(self._targets, self._windows, strict=True):
            if x0 > before[0]:
                yield before[0], x0, a, a, still(a)  # Q jumps here: the window stays
            yield x0, x1, a, b, [(qa, qb), (ra, rb)]
            before = max(x1, before[0]), b
        if before[0] < 1:
            yield before[0], fmpq(1), before[1], before[1], still(before[1])

    @cached_property
    def _symmetric(self) -> bool:
        """Whether inputs x and 1 - x have outputs Y and 1 - Y, exactly."""
        even = self.rule == "mean" or self.share == 0.5
        pairs = zip(self._shares, reversed(self._shares), strict=True)
        return even and self.cells == self.cells[::-1] and all(a + b == 1 for (a, _), (_, b) in pairs)

    def _losses(self, branches: Branches, bottom: fmpq, top: fmpq) -> Iterator[tuple[fmpq, fmpq, arb_poly, arb_poly]]:
        """(x, x', x(s), J(s)): the expected loss on stretches of inputs that cover [bottom, top], polynomials in s on [0, 1]."""
        over, mass, growth = self._sweep(branches), arb(exact(self.exact_floor_mass)), arb(self._growth)
        number = work.flint(2 * self._words + work.words(branches.knots))
        work.count(2 * len(self.cells) * len(over.offsets) * 8 * number)
        marks = sweep.ordered([q - o for c in over.cells for q in (c.low, c.high) for o in over.offsets])
        each = over.each + 20 * number
        edges, last = self._edges.tolist(), len(self.cells) - 1

        def limits(a: int, rise: fmpq, x: fmpq) -> tuple[Limit, Limit]:
            """The ends of the window that starts at a for x, and further on by `rise` for each unit of the variable."""
            inside = [(min(bisect_right(edges, start) - 1, last), start) for start in (a, a + self.width_cells)]
            low, high = (Limit(k, (e - edges[k] - rise * x) / self.cells[k], rise / self.cells[k]) for k, e in inside)
            return low, high

        for x0, x1, a, b, ends in self._stretches():
            if x0 == x1:
                # All windows of one input, whose loss is largest at one end and least at the other. Next to other inputs these
                # are theirs; not at an end of the domain, nor where one end of the window is the input.
                if self.rule == "ends" and (x0 in (0, top) or (self.share in (0.0, 1.0) and 0 < x0 < top)):
                    work.count(2 * each)
                    over.seek(x0)
                    for start in (a, b):
                        loss = over.whole() * mass + over.between(*limits(start, fmpq(0), x0), x0) * growth
                        yield x0, x0, arb_poly([x0]), loss(arb_poly([x0]))
                continue
            if x1 <= bottom or x0 >= top:
                continue
            work.count(each)
            p, q = max(x0, bottom), min(x1, top)
            curved = self.rule == "mean" and a != b  # then s from 0 to 1 is the variable, in place of x
            x, rise = (fmpq(0), fmpq(b - a)) if curved else (x0, (b - a) / (x1 - x0))
            left, right = limits(a, rise, x)
            if curved:
                (qa, qb), (ra, rb) = ends
                scale = self._growth * fmpq(b - a, CELLS)
                v = arb_poly([arb(x0), arb(scale * (ra - qa)), arb(scale * (rb - qb - ra + qa) / 2)])
                loss = over.whole()(v) * mass + over.between(left, right, fmpq(1, 2), v) * growth
                if (p, q) != (x0, x1):  # the part of it within [0, top]
                    start = _place(x0, x1, v, p)
                    within = arb_poly([start, _place(x0, x1, v, q) - start])
                    v, loss = v(within), loss(within)
                yield p, q, v, loss
                continue
            inner = marks[bisect_right(marks, p) : bisect_left(marks, q)]
            for start, end in ends if over.offsets else ():  # where a window's end passes a knot of the loss
                apart, change = start - x0, end - start - (x1 - x0)
                passed = [x0 + (x1 - x0) * (o - apart) / change for o in over.offsets if change]
                more = [x for x in passed if x0 < x < x1]
                inner += more
            pieces = sweep.pieces(inner, p, q)
            work.count((len(pieces) - 1) * each)
            for y0, y1 in pieces:
                over.seek(y0)
                v = sweep.line(y0, y1)
                yield y0, y1, v, (over.whole() * mass + over.between(left, right, (y0 + y1) / 2) * growth)(v)

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(low, high) proven to contain the worst-case expected loss over all inputs, or the average one under a prior.

        Along a stretch of inputs the expected loss of the law on the continuum is a polynomial in the place (unbiased: in the
        window's start), with coefficients in balls; the largest value is found by Bernstein coefficients. A loss that is not
        piecewise polynomial is replaced by pieces above it and below it. What is sent for a cell, and the input for which the
        window is placed, are elsewhere by at most `_blur`, which the loss is widened by; what else the rounding to cells
        can add is added (`_roundings`).
        """
        if not isinstance(objective, WorstCase | Average):
            return super().enclose(objective)
        if self.rule == "mean":
            if objective.loss.exponent != 2:
                return super().enclose(objective)
            both = [law._variances(objective) for law in ([self] if self._whole is None else [self, self._whole])]
            return min(low for low, _ in both), max(high for _, high in both)
        law, unit = objective.loss, self.domain.exact_width
        blur, moved = self._blur, self._placed
        dense = isinstance(objective, Average) and not isinstance(objective.prior, Prior)
        if isinstance(objective, Average) and (dense or not _floats(objective.prior)):  # read as the nearest float
            blur, moved = (_short(off + self._reads.step / unit / 2) for off in (blur, moved))
        far = Fraction(2 ** max(0, math.ceil(max(self.highs[-1], 1 - self.lows[0])).bit_length()))
        if self.lows[0] >= 0 and self.highs[-1] <= 1:
            far = Fraction(1)
        eps = math.log(self.exact_ratio)
        below, above = (law.branches(unit * far, side, eps) for side in (True, False))
        if below is None or above is None:
            return super().enclose(objective)
        if below.flat and above.flat and self.lows == self.highs:
            exactly = [side.stretched(far) for side in dict.fromkeys((below, above))]
            read = [self] if self._whole is None else [self, self._whole]
            known = [found for one in read for side in exactly if (found := one._stepped(objective, side))]
            if len(known) == len(read) * len(exactly):
                return min(low for low, _ in known), max(high for _, high in known)
        constant = self.lows == self.highs and len(self.cells) == 1 and self._whole is None
        if law.sampled and constant and isinstance(objective, WorstCase):
            # The worst input is the end that is farther away.
            sent = self._places[0][0] * self._sent.step
            return law.at(max(abs(sent - Fraction(end)) for end in (self.domain.lower, self.domain.upper)))
        if isinstance(objective, Average) and isinstance(objective.prior, Prior):
            sides = (None,) if law.exponent is not None and below != above else (below, above)
            ends = [self._pointwise(objective.prior, law, side, unit * far) for side in dict.fromkeys(sides)]
            if ends[0] is not None and ends[-1] is not None:
                return ends[0][0], ends[-1][1]
        if below != above:  # they hold as far as they are asked for
            wide = far + Fraction(math.ceil(2 * blur * 2**20) + 1, 2**20)
            low_law, high_law = (law.branches(unit * wide, side, eps) for side in (True, False))
            if low_law is None or high_law is None:  # not known so far: no number sent is farther from its input
                below, above = below.capped, above.capped
            else:
                far, below, above = wide, low_law, high_law
        with ctx.workprec(max(below.bits, above.bits)):
            below, above = below.stretched(far), above.stretched(far)
            steep, top = above.slope(far + blur), above.top(far + blur)
            floor = ball(self.exact_floor_mass / CELLS)
            near = ball((1 - self.exact_floor_mass) / self.width_cells)
            smooth, most = law.convex and above.divided(Fraction(self.share)), floor + near
            sloped = [b - a for a, b in self._shares if a < b]
            slope = ball(max((b - a) / count for (a, b), count in zip(self._shares, self.cells, strict=True)))
            inner = top if smooth else min(top, above.top(min(self._window_reach + 2 * blur, far + blur)))
            start = 2 * near * ball(steep) * slope if smooth else 2 * near * ball(inner)
            change = 2 * (floor * ball(top) + near * ball(inner))  # each cell's, all of which rise and fall once
            cells = change if sloped and not law.convex else arb(0)
            power = above.power
            if power is not None:
                value, near_worst = self._value(objective, above, blur, moved)
                high = ((value / ball(power[0])).root(power[1]) + ball(blur)) ** power[1] * ball(power[0])
            else:
                high, near_worst = self._value(objective, above.widened(blur), blur, moved)
            if smooth and below == above:
                # Along inputs, too, the loss changes by at most `steep` times their distance.
                unseen = self._reads.step / unit
                span = Fraction(self.highs[-1]) - Fraction(self.lows[0])
                near_by = self._value(objective, below, blur, moved, least=True)[0] if dense else high
                low = near_by - ball(steep * (4 * blur + unseen)) - start - most * ball(steep * span)
            else:
                found, _ = self._value(objective, below.widened(-blur), blur, moved, least=True, near=near_worst)
                low = found - start - change
            # On stretches as short as the smallest floats no digits may be left: then nothing is known but that losses are
            # between 0 and `top`.
            high = high + start + cells
            least = max(enclosures.round_down(low), 0.0) if low.is_finite() else 0.0
            most_of_all = enclosures.round_up(ball(top))
            return least, min(enclosures.round_up(high), most_of_all) if high.is_finite() else most_of_all

    @property
    def _window_reach(self) -> Fraction:
        """How far an output of a window, or of the two cells before and after it, is at most from its input, in shares."""
        edges, cells, width = self._edges, np.array(self.cells), self.width_cells
        low, high = np.array([[_float(end) for end in pair] for pair in self._shares]).T
        slope, parts = (high - low) / cells, [(_float(x0), _float(x1), a, b) for x0, x1, a, b, _ in self._stretches()]
        x0, x1, a, b = map(np.array, zip(*parts, strict=True))
        moves, reach = (x1 - x0) / np.maximum(b - a, 1) * (a < b), 0.0  # inputs for each cell that a window goes on
        for x, start in ((x0, a), (x1, b)):  # in between ends are linear, but for what two cells add
            for change in (-2, 0, 2, width - 2, width, width + 2):
                at = np.clip(start + change, 0, CELLS)
                for side in ("left", "right"):
                    k = np.clip(np.searchsorted(edges, at, side=side) - 1, 0, cells.size - 1)
                    off = np.abs(low[k] + slope[k] * (at - edges[k]) - x)
                    reach = max(reach, float((off + 2 * (slope[k] + moves)).max()))
        return _short(Fraction(reach) + Fraction(1, 2**48) * math.ceil(1 + abs(low).max() + abs(high).max()))

    def _stepped(self, objective: WorstCase | Average, law: Branches) -> tuple[float, float] | None:
        """`enclose` where outputs are atoms and the loss is flat in pieces, for inputs that are floats, all that there are, or
        integers.

        Both jump, and meet exactly: losses of the numbers sent are decided in rationals, windows as `randomize` places them,
        which is monotone. Between the inputs around two neighbouring jumps only the window moves.
        """
        width, whole = self.domain.exact_width, self._reads.whole

        def beside(x: float, way: int) -> float:
            return x + way if whole else math.nextafter(x, way * math.inf)

        at = [first * self._sent.step for first, _ in self._places]
        if isinstance(objective, Average):
            density = Density.uniform(self.domain) if isinstance(objective.prior, str) else objective.prior
            if isinstance(density, Density) and len(at) == 1:  # one number, and no input with mass at a jump
                low, top = Fraction(self.domain.lower), Fraction(self.domain.upper)
                cuts = [top, *(min(max(at[0] - k * width, low), top) for k in law.knots), low]
                parts = zip(law.rows, cuts, cuts[1:], strict=False)
                value = sum((row[0] * density.mass(a, b) for row, b, a in parts), Fraction(0))
                return enclosures.round_down(value), enclosures.round_up(value)
            inputs = _floats(objective.prior) if isinstance(objective.prior, Prior) else []
            if not inputs or (whole and not all(x.is_integer() for x in inputs)):
                return None
            inputs = [int(x) for x in inputs] if whole else inputs
        work.count(30 * len(at) * len(law.knots))
        values = [row[0] for row in law.rows]
        #: For each knot the first float for which the piece before it holds up to each output.
        firsts = []
        for knot, value in zip(law.knots, values, strict=False):
            jumps, closed = [y - knot * width for y in at], law(knot) == value
            pairs = [(jump, math.floor(jump) if whole else nearest(jump)) for jump in jumps]
            firsts.append([x if x > q or (closed and x == q) else beside(x, 1) for q, x in pairs])
        if isinstance(objective, WorstCase):
            ends = (self._reads.first, self._reads.last) if whole else (self.domain.lower, self.domain.upper)
            near = {x for row in firsts for first in row for x in (beside(first, -1), first)}
            inputs = sorted(x for x in near | {*ends} if ends[0] <= x <= ends[1])
        starts = self._first_cell(np.array(inputs)).tolist()
        edges, size, mass = self._edges.tolist(), self.width_cells, self.exact_floor_mass
        marks = sorted({e - s for e in edges for s in (0, size)})
        work.count((sum(v.denominator.bit_length() for v in values) / 64) ** 2 / 200)
        unit = math.lcm(*(v.denominator for v in values))
        scaled, words = [int(v * unit) for v in values], work.words([unit, *values])
        work.count(len(inputs) * (2 * len(values) * (1 + words / 8) + work.rational(4 + words)))

        every, inside = mass.numerator * size, (mass.denominator - mass.numerator) * CELLS
        unit *= mass.denominator * size * CELLS

        def total(cuts: list[int]) -> int:
            return sum(v * (b - a) for v, a, b in zip(scaled, cuts, cuts[1:], strict=False))

        def lost(cuts: list[int], start: int, far: int) -> int:
            """The loss of an input with its window there, in units, if each piece of the loss holds between two of these cells,
            where `far` is their total.
            """
            return every * far + inside * total([min(max(cut, start), start + size) for cut in cuts])

        found, between = [], []
        for k, (x, start) in enumerate(zip(inputs, starts, strict=True)):
            held = [0, *(edges[bisect_right(row, x)] for row in firsts), CELLS]
            found.append(lost(held, start, far := total(held)))
            if k + 1 < len(inputs) and inputs[k + 1] > beside(x, 1):
                inner = marks[bisect_right(marks, start) : bisect_left(marks, starts[k + 1])]
                work.count(len(inner) * (2 * len(values) * (1 + words / 8) + work.rational(4 + words)))
                between += [lost(held, a, far) for a in inner]
        if isinstance(objective, Average):
            value = sum((c * v for c, v in zip(objective.prior.exact, found, strict=True)), Fraction(0)) / unit
            return enclosures.round_down(value), enclosures.round_up(value)
        low, high = Fraction(max(found), unit), Fraction(max(found + between), unit)
        return enclosures.round_down(low), enclosures.round_up(high)

    def _pointwise(self, prior: Prior, loss: Loss, law: Branches | None, unit: Fraction) -> tuple[float, float] | None:
        """`enclose` for an average over floats where outputs are atoms, few of both, and the loss changes much within a blur: it
        jumps, or is steep at 0; or where one number is sent, with a loss that may be less than a blur. That of each number that
        is sent is known exactly, and so are windows.
        """
        steep = law.jumps if law is not None else loss.exponent is not None and loss.exponent < 1
        steep = steep or loss.sampled or (len(self.cells) == 1 and (law is not None or loss.exponent is not None))
        few = self.lows == self.highs and self._whole is None and len(prior) * len(self.cells) <= POINTWISE
        inputs = _floats(prior) if steep and few else []
        if not inputs or not self.domain.lower <= min(inputs) <= max(inputs) <= self.domain.upper:
            return None
        work.count(30 * len(inputs) * len(self.cells))
        size, mass, total = self.width_cells, self.exact_floor_mass, arb(0)
        with ctx.workprec(enclosures.PRECISION):
            for x, chance, start in zip(inputs, prior.exact, self._first_cell(np.array(inputs)).tolist(), strict=True):
                for (first, _), (a, b) in zip(self._places, pairwise(self._edges.tolist()), strict=True):
                    off = first * self._sent.step - Fraction(x)
                    near = max(min(b, start + size) - max(a, start), 0)
                    if loss.sampled:
                        least, most = loss.at(abs(off))
                        lost = arb(least).union(arb(most))
                    else:
                        lost = ball(law(off / unit)) if law is not None else ball(abs(off)) ** ball(loss.exponent)  # type: ignore[arg-type]
                    total += ball(chance * (mass * (b - a) / CELLS + (1 - mass) * near / size)) * lost
        return max(enclosures.round_down(total), 0.0), enclosures.round_up(total)

    @cached_property
    def _blur(self) -> Fraction:
        """How far what is sent is from Q, and the input for which the window is placed from x, together at most, in shares.

        Of what is sent the piece's end and the place on the piece are rounded by half a step each, after two roundings of floats.
        """
        low, high = self.exact_ends
        return _short((Lattice.between(low, high).step + (high - low) / 2**52) / self.domain.exact_width + self._placed)

    @cached_property
    def _placed(self) -> Fraction:
        """How far the input for which the window is placed is from x, a float, at most, in shares."""
        ends = (*self._targets[0], *self._targets[-1])
        return READ * max(math.ceil(_float(max(map(abs, ends)))), 1)

    def _variances(self, objective: WorstCase | Average) -> tuple[float, float]:
        """`enclose` where means are exact: the variance on the continuum, and what four roundings add to it."""
        unit, sent = self.domain.exact_width, self._sent
        lattice = Lattice.between(self.domain.lower, self.domain.upper)
        off = max(lattice.step / 2, lattice.slack(self.domain.lower, self.domain.upper))
        low, high = map(fraction, (self._shares[0][0], self._shares[-1][1]))
        with ctx.workprec(sweep.BITS):
            branches = objective.loss.branches(unit, True)
            assert branches is not None
            value, _ = self._value(objective, branches, Fraction(0), Fraction(0))
            # A start between two others, with means m and sums h = Q(a) + Q(a + w) of the window's ends: E[Y^2] grows by h for
            # each unit of m, h linearly with the start. Of the chord over it no more than an eighth of what h and m, at its
            # fastest, change by is to be seen: integrated from the place where h is the chord's slope to the nearer end.
            starts = arb(0)
            for a, b, qa, qb, ra, rb in self._windows:
                if step := min(self._grid(b - a), b - a):
                    rise = ball((1 - self.exact_floor_mass) * step / self.width_cells) * arb(max(ra - qa, rb - qb))
                    starts = starts.max(rise * arb((qb - qa + rb - ra) * step / (b - a)) / 8)
            # A number next to Q adds a quarter of the step's square, the reading its own square, and in averages the change
            # of the variance from one input to the other.
            reach = max(high, 1 - low) * unit
            moved = 2 * reach * off if isinstance(objective, Average) else Fraction(0)
            added = starts * ball(unit**2) + ball(sent.step**2 / 4 + off**2 + moved)
            # Cells in place of the continuum: less by the variance within a cell.
            slope = ball(max((b - a) / count for (a, b), count in zip(self._shares, self.cells, strict=True)))
            most = ball(self.exact_floor_mass / CELLS + (1 - self.exact_floor_mass) / self.width_cells)
            lost = most * slope * ball((high - low) * unit**2) / 12 + ball(4 * reach * off)
            return max(enclosures.round_down(value - lost), 0.0), enclosures.round_up(value + added)

    def _value(
        self, objective: WorstCase | Average, branches: Branches, blur: Fraction, moved: Fraction, *, least: bool = False,
        near: tuple[fmpq, fmpq] | None = None,
    ) -> tuple[arb, tuple[fmpq, fmpq] | None]:  # fmt: skip
        """A ball whose upper end is not below the value where windows are those of inputs up to `moved` away; `least`: whose
        lower end is not above it. And where nearly the worst inputs are, for `near`: a stretch of inputs that suffices for
        the lower end.

        Of a loss that jumps only limits count. One that is widened by `blur` has these values next to a jump already: what is
        sent for an atom is less than that away from it.
        """
        half = isinstance(objective, WorstCase) and self._symmetric and branches.even
        stretches = list(self._losses(branches, *(near or (sweep.ZERO, fmpq(1, 2) if half else fmpq(1)))))
        if isinstance(objective, Average):
            return self._average(objective, stretches, exact(moved), -1 if least else 1), None
        unseen = Lattice.between(self.domain.lower, self.domain.upper).step / self.domain.exact_width
        # Of one stretch with all that is near: it must be wider than that.
        wide, low = 8 * exact(2 * blur + unseen), arb(0)
        if least:
            for p, q, _, loss in stretches:
                if q - p > wide:
                    drop = sum((k * abs(c) for k, c in enumerate(loss.coeffs())), arb(0)) * arb(wide / (q - p)) / 2
                    fine = abs(loss(arb(0.5))) * 2.0**-40
                    low = low.max(sweep.most(loss, fine) - fine - drop)
            return low, None
        largest = [max(float(loss(arb(s)).mid()) for s in (0, 0.5, 1)) for *_, loss in stretches]
        best: arb | None = None
        order = sorted(range(len(stretches)), key=largest.__getitem__, reverse=True)
        for k in order:
            loss = stretches[k][3]
            top = sweep.most(loss, abs(loss(arb(0.5))) * sweep.FINE, best)
            best = top if best is None else best.max(top)
        assert best is not None
        return best, next((stretches[k][:2] for k in order if stretches[k][1] - stretches[k][0] > wide), None)

    def _average(self, objective: Average, stretches: list[Any], moved: fmpq, sign: int) -> arb:
        """The same under a prior."""
        total = arb(0)
        if isinstance(objective.prior, Prior):
            low, width = Fraction(self.domain.lower), self.domain.exact_width
            chances = zip(objective.prior.categories, objective.prior.exact, strict=True)
            points = [(exact((Fraction(p) - low) / width), c) for p, c in chances]
            work.count(len(points) * (20 + 0.2 * len(stretches)))
            for x, c in points:
                best: arb | None = None
                for p, q, v, loss in stretches:
                    if p - moved <= x <= q + moved:
                        start, end = (_place(p, q, v, min(max(x + side, p), q)) for side in (-moved, moved))
                        around = loss(arb_poly([start, end - start])) if moved and p < q else loss(arb_poly([start]))
                        found = -sweep.most(sign * around, abs(loss(start)) * sweep.FINE) * -sign
                        best = found if best is None else best.max(found) if sign > 0 else best.min(found)
                if best is None:
                    raise ValueError(
                        f"prior is not allowed: it has inputs outside of the mechanism's domain {self.domain}"
                    )
                total += ball(c) * best
            return total
        prior = [(exact(a), exact(b), arb_poly([ball(c) for c in row])) for a, b, row in objective.density(self.domain)]
        terms = max(len(row) for *_, row in prior) + max((len(loss) for *_, loss in stretches), default=0)
        pairs = len(stretches) + len(prior)  # that overlap
        terms *= 2 if self.rule == "mean" else 1
        work.count(len(stretches) * len(prior) + 0.4 * pairs * sweep.integration(terms, terms))
        for p, q, v, loss in stretches:
            for start, end, row in prior:
                low, high = max(p, start), min(q, end)
                if low < high:
                    primitive = (row(v) * loss * v.derivative()).integral()
                    total += primitive(_place(p, q, v, high)) - primitive(_place(p, q, v, low))
        if not moved:
            return total
        # A function of x, seen at places up to `moved` away, changes its integral by that times twice its variation.
        variation, last = arb(0), None
        for *_, loss in stretches:
            variation += sum((abs(c) for c in loss.coeffs()[1:]), arb(0))
            variation += abs(loss(arb(0)) - last) if last is not None else arb(0)
            last = loss(arb(1))
        densest = max((sum((abs(c) for c in row.coeffs()), arb(0)) for *_, row in prior), key=lambda c: float(c.mid()))
        return total + sign * 2 * arb(moved) * variation * densest

    def worst_input(self, loss: LossLike = "abs") -> float:
        law = self._loss(loss)
        marks, pieces = [*self._map[:2], np.array([0.0, 1.0])], law.branches(self.domain.exact_width, True)
        if pieces is not None and pieces.jumps:
            marks += [end - float(knot) for knot in pieces.knots for end in map(np.array, (self.lows, self.highs))]
        cuts = np.unique(np.clip(np.concatenate(marks), 0.0, 1.0))
        beside = np.diff(cuts) * 2.0**-30  # a loss that jumps may be higher next to a cut
        middles = (cuts[:-1] + cuts[1:]) / 2
        losses = self.expected_loss(self.domain.lower + self.domain.width * middles, law)
        high = np.argsort(losses)[-32:]  # where peaks between cuts are looked for
        peaks = np.linspace(cuts[high], cuts[high + 1], 33).ravel()
        points = np.concatenate([cuts, middles, cuts[:-1] + beside, cuts[1:] - beside, peaks])
        points = np.clip(self.domain.lower + self.domain.width * points, self.domain.lower, self.domain.upper)
        losses = self.expected_loss(points, law)
        return float(points[int(np.argmax(losses >= losses.max() * (1 - TIED)))])  # of equals the first, which is a cut

    def __repr__(self) -> str:
        return (
            f"KernelMechanism on {self.domain}: {len(self.cells)} pieces of floor in {span(*self.support())}, window with the "
            f"share {float(self.exact_window):.6g} of it; eps = {self._told()}"
        )


def spacing(domain: Interval, low: float, high: float, mean: bool = True) -> float:
    """How far the numbers are apart that a mechanism with outputs between these shares can send, as a share; `mean`: an unbiased
    one, and else what rounding of floats moves windows by at least.
    """
    start, width = Fraction(domain.lower), domain.exact_width
    step = Lattice.between(start + width * Fraction(low), start + width * Fraction(high)).step / width
    return max(float(step), (high - low) * 2.0 ** (1 - STEPS) if mean else float(READ))


def _floats(prior: Prior) -> list[float]:
    """The prior's points, if all are floats; else none."""
    return [float(p) for p in prior.categories] if all(float(p) == Fraction(p) for p in prior.categories) else []


def _float_from(q: Fraction) -> Fraction:
    """The least float that is not smaller."""
    near = nearest(q)
    return Fraction(near if Fraction(near) >= q else next_float(q))


def _float(q: fmpq) -> float:
    return nearest(fraction(q))


def _short(q: Fraction) -> Fraction:
    """A rational of 32 bits not below q > 0: short numbers are fast to calculate with."""
    unit = Fraction(2) ** (q.numerator.bit_length() - q.denominator.bit_length() - 32)
    return math.ceil(q / unit) * unit


def _place(p: fmpq, q: fmpq, v: arb_poly, x: fmpq) -> arb:
    """Where the curve v, which goes from p at s = 0 to q at s = 1 and increases (or stays at x), reaches x."""
    if p == q:
        return arb(0)
    if v.degree() <= 1 or x in (p, q):
        return arb((x - p) / (q - p))
    a, b, c = v[2], v[1], v[0] - arb(x)  # a s^2 + b s + c = 0
    return -2 * c / (b + (b * b - 4 * a * c).max(arb(0)).sqrt())


def two_point(eps: Number, domain: DomainLike = (0.0, 1.0)) -> KernelMechanism:
    """Outputs at the shares 1/(1 + E) and E/(1 + E), the upper one with probability linear in x between the same two numbers.

    The best of all eps-LDP mechanisms for the worst-case squared error if eps <= ln(3 + 2 sqrt 2), with the value
    width^2 E/(1 + E)^2: two atoms of the floor, and a window of half of it.
    """
    share = float(1 / (1 + enclosures.exp_below(require.exact_epsilon(eps))))
    return KernelMechanism.private(eps, [1.0, 1.0], [share, 1 - share], [share, 1 - share], 0.5, domain)

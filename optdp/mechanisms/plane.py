"""Kernels from a rectangle of the plane to finitely many of its points: a floor, and the nearest outputs favoured.

An output has a probability between its floor and its top for every input, so that the likelihood ratios are at most the
largest top over its floor, whatever the inputs. Within these limits an input gives its mass to the outputs that are nearest to
it: the best row for every loss that does not fall with the distance.

**The value.** Rows are the best among those within the limits, which are the same for all inputs. So the row of a cell's centre
bounds the expected loss of every input x in the cell, and for a loss that is convex in x its mean is largest at a corner. What
the floors contribute is the same function of x for all rows, convex, and so at most what its values on a grid say in between.
What all this loses falls with the square of the cell's size. Cells are halved where it matters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import Check, Log, Seed, Within, as_rng, enclosures, require, work
from optdp.exact.rounding import TOTAL
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.finite import integer_floors
from optdp.problem import LDP, Box, LossLike, Objective, Privacy, WorstCase

#: Most outputs.
OUTPUTS = 2**14
#: At most so many cells along the longer side in which what the floors contribute is bounded by its values at the corners, and
#: about so many distances for these.
CELLS, CORNERS = 128, 2**26
#: Distances between inputs and outputs that are computed at once.
BLOCK = 2**20
#: Cells are halved until what is left is this share of the value (where inputs favour few outputs, and else), or so many
#: distances have been computed.
CLOSE, CLOSER, DISTANCES = 2.0**-13, 2.0**-15, 2**25
#: Coordinates in units of the longer side, their differences and norms: floats are within this of the exact numbers, and so are
#: distances and their squares.
ROUNDING = 2.0**-47

Pair = Annotated[tuple[float, ...], Within(least=2, most=2)]


@dataclass(frozen=True, repr=False)
class PlaneMechanism(Mechanism):
    """For an input x of a rectangle the j-th output with a probability between `floors[j] / 2^62` and `tops[j] / 2^62`: the mass
    that floors leave goes to the nearest outputs first.

    **Arguments:** `domain`: an `optdp.Box` with two sides; `outputs`: different points of it; `floors`, `tops`: integers with
    1 <= floors[j] <= tops[j], that sum to at most, and to at least, 2^62.

    Probabilities are integers over 2^62 and are drawn exactly. Which outputs are nearest is decided in floating point:
    the guarantee does not depend on it, and `enclose` allows for it.
    """

    exact = True
    domain: Box
    outputs: Annotated[tuple[Pair, ...], Within(least=1, most=OUTPUTS)]
    floors: Annotated[tuple[int, ...], Within(1, TOTAL, 1, OUTPUTS)]
    tops: Annotated[tuple[int, ...], Within(1, TOTAL, 1, OUTPUTS)]

    def __post_init__(self) -> None:
        super().__post_init__()
        flat(self.domain)
        object.__setattr__(self, "outputs", tuple(tuple(map(float, point)) for point in self.outputs))
        if not len(self.outputs) == len(self.floors) == len(self.tops):
            raise ValueError("outputs are not allowed: each must have a floor and a top")
        if len(set(self.outputs)) < len(self.outputs):
            raise ValueError("outputs are not allowed: they must be different")
        self.domain.check(self.outputs, "outputs")
        if any(low > high for low, high in zip(self.floors, self.tops, strict=True)):
            raise ValueError("floors are not allowed: they must be at most the tops")
        if not sum(self.floors) <= TOTAL <= sum(self.tops):
            raise ValueError("floors and tops are not allowed: 2^62 must lie between their sums")

    @classmethod
    def of_floors(cls, domain: Box, outputs: ArrayLike, floors: np.ndarray, ratio: Fraction) -> PlaneMechanism:
        """The mechanism with these floors (>= 0, scaled if no distribution lies above them) and tops `ratio` times as high."""
        points = np.asarray(outputs, dtype=float)
        low = integer_floors(floors, ratio)
        kept = [j for j, m in enumerate(low) if m]
        tops = [min(int(ratio * low[j]), TOTAL) for j in kept]
        return cls(domain, tuple(map(tuple, points[kept].tolist())), tuple(low[j] for j in kept), tuple(tops))

    # Everything is computed in units of the longer side, from the lower corner.

    @cached_property
    def _unit(self) -> Fraction:
        """The longer side."""
        return max(side.exact_width for side in self.domain.sides)

    @cached_property
    def _sides(self) -> np.ndarray:
        return np.array([float(side.exact_width / self._unit) for side in self.domain.sides])

    @cached_property
    def _points(self) -> np.ndarray:
        lower = list(map(Fraction, self.domain.lower))
        rows = [[float((Fraction(v) - a) / self._unit) for v, a in zip(p, lower, strict=True)] for p in self.outputs]
        return np.array(rows)

    @cached_property
    def _floors(self) -> np.ndarray:
        return np.array(self.floors, dtype=np.int64)

    @cached_property
    def _room(self) -> np.ndarray:
        return np.array(self.tops, dtype=np.int64) - self._floors

    @cached_property
    def _rest(self) -> int:
        """What the floors leave."""
        return TOTAL - sum(self.floors)

    def _inputs(self, x: ArrayLike) -> np.ndarray:
        """Rows of inputs, in these units."""
        inputs = np.asarray(self.domain.check(x), dtype=float).reshape(-1, 2)
        with np.errstate(under="ignore"):
            return np.asarray((inputs - np.array(self.domain.lower)) / float(self._unit))

    def _distances(self, at: np.ndarray, some: Any = slice(None)) -> np.ndarray:
        """Of each input to all outputs, or to `some`, a row of indices for each."""
        with np.errstate(under="ignore"):
            across, up = (at[:, None, k] - self._points[some, k] for k in (0, 1))
            return np.asarray(np.sqrt(across * across + up * up))

    def _favoured(self, distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(outputs by distance, what each of them gets beyond its floor); of equally distant ones the first comes first."""
        order = np.argsort(distances, axis=1, kind="stable")
        return order, self._more(order)

    def _more(self, order: np.ndarray) -> np.ndarray:
        """What the nearest outputs, in this order, get beyond their floors."""
        # Tops may sum to more than 63 bits: what lies beyond `rest` does not count.
        room = np.minimum(self._room, self._rest)[order]
        before = np.zeros(room.shape, dtype=np.int64)
        total = np.zeros(len(room), dtype=np.int64)
        if int(np.minimum(self._room, self._rest).astype(object).sum()) < 2**63:
            before = np.cumsum(room, axis=1) - room
        else:
            for j in range(room.shape[1]):
                before[:, j] = total
                total = np.minimum(total, self._rest - room[:, j]) + room[:, j]
        return np.clip(self._rest - before, 0, room)

    def _rows(self, distances: np.ndarray) -> np.ndarray:
        """Probabilities (inputs, outputs), rounded to floats."""
        order, more = self._favoured(distances)
        rows = np.empty(distances.shape)
        np.put_along_axis(rows, order, (self._floors[order] + more) / TOTAL, axis=1)
        return rows

    @cached_property
    def _few(self) -> int:
        """Twice as many of the nearest outputs as take, on average, what the floors leave: what is sent beyond the floors is
        nearly always one of these.
        """
        return 2 * math.ceil(self._rest * len(self.outputs) / max(float(np.sum(self._room.astype(float))), 1.0)) + 8

    def _blocks(
        self, rows: np.ndarray, function: Callable[[np.ndarray], np.ndarray], each: int | None = None
    ) -> np.ndarray:
        step = max(1, BLOCK // (each or len(self.outputs)))
        return np.concatenate([function(rows[i : i + step]) for i in range(0, max(len(rows), 1), step)])

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, source = self._inputs(x), as_rng(rng)
        drawn = source.integers(0, TOTAL, size=len(inputs))
        place = np.searchsorted(np.cumsum(self._floors), drawn, side="right")
        far = np.flatnonzero(drawn >= TOTAL - self._rest)

        if not far.size:
            return self.atoms()[place].reshape(np.shape(x))

        def nearest(which: np.ndarray) -> np.ndarray:
            asked = drawn[which] - (TOTAL - self._rest)
            if self._few < len(self.outputs) // 4:
                return self._among_few(inputs[which], asked, self._few)
            return self._among_all(inputs[which], asked)

        place[far] = self._blocks(far, nearest)
        return self.atoms()[place].reshape(np.shape(x))

    def _among_all(self, inputs: np.ndarray, asked: np.ndarray) -> np.ndarray:
        """The outputs at these places of what the floors leave."""
        order, more = self._favoured(self._distances(inputs))
        column = (np.cumsum(more, axis=1) <= asked[:, None]).sum(axis=1)
        return np.take_along_axis(order, column[:, None], axis=1)[:, 0]

    def _among_few(self, inputs: np.ndarray, asked: np.ndarray, few: int) -> np.ndarray:
        """The same, sought among the nearest few outputs first."""
        some = np.sort(self._tree.query(inputs, few)[1], axis=1)
        distances = self._distances(inputs, some)
        nearer = np.argsort(distances, axis=1, kind="stable")
        order, distances = (np.take_along_axis(part, nearer, axis=1) for part in (some, distances))
        column = (np.cumsum(self._more(order), axis=1) <= asked[:, None]).sum(axis=1)
        last = np.minimum(column, few - 1)[:, None]
        place, distance = (np.take_along_axis(part, last, axis=1)[:, 0] for part in (order, distances))
        # What is clearly nearer than the farthest of the few has the same place among all.
        if (rest := np.flatnonzero(distance >= distances[:, -1] * (1 - 1e-12))).size:
            place[rest] = self._among_all(inputs[rest], asked[rest])
        return place

    @cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree

        return cKDTree(self._points)

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        """The probability of the output y (two coordinates along the last axis) for the input x."""
        outputs, members = require.reals(y, "y"), np.asarray(self.domain.check(x), dtype=float)
        if outputs.shape[-1:] != (2,):
            raise ValueError(f"y of shape {outputs.shape} is not allowed: its last axis must have length 2")
        try:
            asked, inputs = np.broadcast_arrays(outputs, members)
        except ValueError:
            told = f"it must be as many points as x, of shape {members.shape}, or one"
            raise ValueError(f"y of shape {outputs.shape} is not allowed: {told}") from None
        known = {point: j for j, point in enumerate(self.outputs)}
        column = np.array([known.get(tuple(p), -1) for p in asked.reshape(-1, 2).tolist()], dtype=np.int64)
        at = self._inputs(inputs)
        rows = self._blocks(at, lambda some: self._rows(self._distances(some)))
        found = np.where(column >= 0, rows[np.arange(column.size), np.maximum(column, 0)], 0.0)
        return np.asarray(found.reshape(asked.shape[:-1]))

    def atoms(self) -> np.ndarray:
        """The outputs, one in each row."""
        return np.array(self.outputs)

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        """(lowest, highest) value of a coordinate of Y."""
        return float(self.atoms().min()), float(self.atoms().max())

    def rows(self, x: ArrayLike) -> np.ndarray:
        """The probabilities of all outputs (along the last axis) for the inputs x."""
        found = self._blocks(self._inputs(x), lambda some: self._rows(self._distances(some)))
        return np.asarray(found.reshape(*np.shape(x)[:-1], len(self.outputs)))

    def mean(self, x: ArrayLike) -> np.ndarray:
        # From the corner: beside numbers far from 0 what is lost of rows' sums is more than digits.
        return np.asarray(np.array(self.domain.lower) + float(self._unit) * (self.rows(x) @ self._points))

    def variance(self, x: ArrayLike) -> np.ndarray:
        """E|Y - E[Y]|^2."""

        def spread(some: np.ndarray) -> np.ndarray:
            rows = self._rows(self._distances(some))
            return np.asarray((rows * self._distances(rows @ self._points) ** 2).sum(axis=1))

        return float(self._unit) ** 2 * self._blocks(self._inputs(x), spread).reshape(np.shape(x)[:-1])

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        law, unit = self._distance_loss(loss), float(self._unit)

        def mean(some: np.ndarray) -> np.ndarray:
            far = self._distances(some)
            return np.asarray((self._rows(far) * law(unit * far)).sum(axis=1))

        return self._blocks(self._inputs(x), mean).reshape(np.shape(x)[:-1])

    def _distance_loss(self, loss: Any) -> Any:
        law = self._loss(loss)
        if law.form != "distance":
            raise ValueError(f"loss is not allowed on {self.domain}: it must be a function of the distance")
        return law

    def _grid(self, cells: int, around: np.ndarray | None = None, reach: float = 1.0) -> np.ndarray:
        """Inputs on a grid, in rows: of the rectangle, or of so many of its sides `around` an input."""
        low, high = np.array(self.domain.lower), np.array(self.domain.upper)
        if around is not None:
            low, high = np.maximum(around - reach * (high - low), low), np.minimum(around + reach * (high - low), high)
        return grid_of(*(np.linspace(a, b, cells + 1) for a, b in zip(low, high, strict=True)))

    def worst_input(self, loss: LossLike = "abs") -> Any:
        """The worst point of a grid of 64 cells each way, refined around it."""
        grid = self._grid(64)
        for reach in (1 / 64, 1 / 512, 1 / 4096):
            best = grid[int(np.argmax(self.expected_loss(grid, loss)))]
            grid = np.concatenate([best[None], self._grid(16, best, reach)])
        return grid[int(np.argmax(self.expected_loss(grid, loss)))]

    def average_loss(self, loss: LossLike = "abs") -> float:
        """The mean over the middles of 64 cells each way."""
        middles = self._grid(128).reshape(129, 129, 2)[1::2, 1::2]
        return float(self.expected_loss(middles, loss).mean())

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(what is attained at a float, what no input exceeds): see the top of this file."""
        if not isinstance(objective, WorstCase) or objective.loss.exponent not in (1, 2):
            return super().enclose(objective)
        power, n = int(objective.loss.exponent), len(self.outputs)
        slack = 4 * ROUNDING + (n + 64) * 2.0**-50
        floors = self._under_floors(power)
        counts = np.maximum(1, np.round(16 * self._sides)).astype(int)
        centres, half = _cells(self._sides, counts)
        attained, closed, done, worst = 0.0, 0.0, 0, [*grid_of(*np.stack([np.zeros(2), self._sides], axis=1))]
        each, close, most = (self._few, CLOSE, DISTANCES) if self._few < n // 4 else (n, CLOSER, DISTANCES // 2)
        while len(centres):
            found = self._blocks(centres, lambda some, half=half: self._cell(some, half, power, floors, each), each)  # type: ignore[misc]
            done += int(found[:, 2].sum())
            attained = max(attained, float(found[:, 0].max()))
            worst.append(centres[int(np.argmax(found[:, 0]))])
            open_ = found[:, 1] > attained * (1 + close)
            across = half > half.max() / 2  # the other way cells of slivers are short enough
            if done + 2 ** int(across.sum()) * int(found[open_, 2].sum()) > most:
                open_[:] = False
            closed = max(closed, float(found[~open_, 1].max(initial=0.0)))
            half = np.where(across, half / 2, half)
            shifts = grid_of(*(h * np.array([-1, 1] if cut else [0]) for h, cut in zip(half, across, strict=True)))
            centres = (centres[open_][:, None] + shifts).reshape(-1, 2)
        # Where floats are coarse nobody is at the centre of a cell.
        corners = np.array(self.domain.lower), np.array(self.domain.upper)
        inputs = self._inputs(np.clip(corners[0] + float(self._unit) * np.array(worst), *corners))

        def lost(some: np.ndarray) -> np.ndarray:
            far = self._distances(some)
            return np.asarray((self._rows(far) * far**power).sum(axis=1))

        reached = float(self._blocks(inputs, lost).max())
        scale = self._unit**power
        low, high = Fraction(reached) - Fraction(slack), max(Fraction(closed), Fraction(attained)) + Fraction(slack)
        return max(0.0, enclosures.round_down(low * scale)), enclosures.round_up(high * scale)

    def _under_floors(self, power: int) -> Callable[[np.ndarray], np.ndarray]:
        """What the floors contribute to the expected loss of inputs is at most this."""
        n, floors = len(self.outputs), self._floors / TOTAL
        most = max(1, min(CELLS, math.isqrt(CORNERS // n)))
        counts = np.maximum(1, np.round(most * self._sides)).astype(int)
        nodes = grid_of(*(np.linspace(0.0, side, k + 1) for side, k in zip(self._sides, counts, strict=True)))
        work.count(0.02 * len(nodes) * n)
        values = self._blocks(nodes, lambda some: np.asarray(self._distances(some) ** power @ floors))
        table = values.reshape(counts + 1)

        def bound(x: np.ndarray) -> np.ndarray:
            # A side may underflow to 0: along it nothing changes.
            place = np.clip(x / np.maximum(self._sides, 1e-300) * counts, 0.0, counts)
            cell = np.minimum(place.astype(int), counts - 1)
            (a, b), (i, j) = (place - cell).T, cell.T
            low = (1 - b) * table[i, j] + b * table[i, j + 1]
            return np.asarray((1 - a) * low + a * ((1 - b) * table[i + 1, j] + b * table[i + 1, j + 1]))

        return bound

    def _cell(
        self, centres: np.ndarray, half: np.ndarray, power: int, floors: Callable[[np.ndarray], np.ndarray], few: int
    ) -> np.ndarray:
        """(about the expected loss at the centre, a bound of those at the corners under the centre's row, among how many outputs
        that row was sought) in each row: among the nearest `few`, and where these do not take what the floors leave among more.
        """
        work.count((0.15 if few < len(self.outputs) else 0.4) * len(centres) * few)
        near, more = self._nearest(centres, few)
        short, more = more.sum(axis=1) < self._rest, more / TOTAL

        def loss(at: np.ndarray) -> np.ndarray:
            return floors(at) + (more * self._distances(at, near) ** power).sum(axis=1)

        corners = [loss(centres + half * (a, b)) for a in (-1, 1) for b in (-1, 1)]
        found = np.stack([loss(centres), np.max(corners, axis=0), np.full(len(centres), few)], axis=1)
        if short.any():
            wider = 2 * few if 2 * few < len(self.outputs) // 4 else len(self.outputs)
            found[short] = self._blocks(centres[short], lambda x: self._cell(x, half, power, floors, wider), wider)
        return found

    def _nearest(self, inputs: np.ndarray, few: int) -> tuple[np.ndarray, np.ndarray]:
        """(the nearest few outputs, what each of them gets of what the floors leave), in rows."""
        if few == len(self.outputs):
            return self._favoured(self._distances(inputs))
        near = self._tree.query(inputs, few)[1]
        return near, self._more(near)

    def guarantee(self) -> LDP:
        """LDP with the logarithm of the largest probability over its floor."""
        return LDP(Log(self._ratio))

    @cached_property
    def _ratios(self) -> list[Fraction]:
        """Bounds for each output: where that is the input it is the first to get what the floors leave, up to its top."""
        pairs = zip(self.floors, self.tops, strict=True)
        return [Fraction(min(high, low + self._rest), low) for low, high in pairs]

    @property
    def _ratio(self) -> Fraction:
        return max(self._ratios)

    @cached_property
    def _attained(self) -> Fraction:
        """The largest ratio between corners and the output of the largest bound, which may always have more than its floor."""
        corners = grid_of(*np.array([self.domain.lower, self.domain.upper]).T)
        best = self.outputs[self._ratios.index(self._ratio)]
        order, more = self._favoured(self._distances(self._inputs(np.vstack([corners, best]))))
        weights = np.empty_like(more)
        np.put_along_axis(weights, order, self._floors[order] + more, axis=1)
        ends = zip(weights.min(axis=0).tolist(), weights.max(axis=0).tolist(), strict=True)
        return max(Fraction(high, low) for low, high in ends)

    def satisfies(self, privacy: Privacy) -> bool | None:
        """As for every mechanism, but False only where two inputs show it."""
        answer = super().satisfies(privacy)
        shown = isinstance(privacy, LDP) and not enclosures.at_most_exp(self._attained, privacy.eps)
        return None if answer is False and not shown else answer

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        if not isinstance(privacy, LDP):
            return super().check_privacy(privacy)
        held = sum(self.floors) <= TOTAL <= sum(self.tops)
        told = "for every input the mass that the floors leave fits under the tops: rows sum to 1 in exact rationals"
        return [privacy.check(self._ratio), Check("mass", held, told)]

    def __repr__(self) -> str:
        return f"PlaneMechanism on {self.domain}: {len(self.outputs)} outputs; eps = {self._told()}"


def _cells(sides: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(centres, half a cell) of so many cells each way."""
    half = sides / counts / 2
    return grid_of(*(h * (2 * np.arange(k) + 1) for h, k in zip(half, counts, strict=True))), half


def flat(domain: Box) -> None:
    """**Raises** TypeError unless it is a rectangle."""
    if domain.dimension != 2:
        raise TypeError(f"domain = {domain!r} is not allowed: it must be an optdp.Box with two sides")


def grid_of(across: np.ndarray, up: np.ndarray) -> np.ndarray:
    """All points with these coordinates, one in each row."""
    return np.stack(np.meshgrid(across, up, indexing="ij"), axis=-1).reshape(-1, 2)

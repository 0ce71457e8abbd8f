"""Lower bounds for additive noise on a mesh that is fine near 0: the program behind `optdp.certificates.graded`.

At a large mu half of the optimal noise lies within a hundredth of the sensitivity. The relaxation has probabilities of the
points of a fine lattice as variables, of those alone that matter, and a row for each test: a function that is 1 at some nodes of
a mesh, 0 at the others and linear between, against its average over a kernel of shifts. Both rows and columns are found as they
are needed: rows as the likelihood ratio's level sets of the nodes' probabilities, columns where the certificate's bracket is
least.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from optdp.certificates.graded import GradedCertificate, Test
from optdp.solvers.lp import LinearProgram, LinearSolver, hats

#: How fast the nodes' distances grow from 0 where hardly any loss is.
COARSE = 0.5
#: Shifts, in sensitivities, around which kernels may be narrower, where the narrowest are of most use.
MIDDLE = (0.5, 0.9)
#: Near the sensitivity cells are cut in two so many times.
DULL = 2
#: Columns have so many places in a cell of the mesh.
PLACES = 2
#: Rows that are added in a round, and for one kernel; rounds; times that columns are added.
MOST, EACH, ROUNDS, TIMES = 200, 3, 300, 25
#: Columns that a finer mesh starts from, for each row.
CARRIED = 3
#: How far from the best multipliers to the last ones better ones are looked for.
SHARES = (0.1, 0.2, 0.3, 0.5, 0.7, 0.85, 1.0)
#: Rows are looked for until this share of the gap to the bound is left: before that columns matter more.
LOOSE = 0.1
#: Costs are magnified, so that the solver's tolerance is small beside them: columns of the tail have small scales.
MAGNIFY = 2.0**20
#: What counts as breaking the curve.
BROKEN = 1e-6


def magnified(costs: np.ndarray, n: int) -> float:
    """What costs are multiplied by: what the solver sees does not depend on the unit of the loss."""
    cost = float(costs[min(n, costs.size - 1)])
    return MAGNIFY / 2.0 ** round(math.log2(cost)) if cost > 0 else MAGNIFY


def spaced(cell: int, growth: float, inner: float = 0.0, coarse: float = COARSE) -> list[int]:
    """0 < x_1 < ...: steps are powers of 2, at most `growth` times x and 1 at first, up to `cell`; they share many distances.

    **Arguments:** `inner`: up to there steps may grow as fast as `coarse` says.
    """
    found, step = [0], 1
    while step < cell:
        found.append(found[-1] + step)
        x = found[-1]
        while step > 1 and x >= inner and step > max(growth * x, 1):
            step //= 2
        if 2 * step <= (coarse if x < inner else growth) * x and x % (2 * step) == 0:
            step *= 2
    return found


def peaks(
    curve: Any, excess: np.ndarray, level: np.ndarray, tolerance: float, each: int
) -> Iterator[tuple[int, int, float, float, float]]:
    """(row, column, excess, eps, delta) where a curve is broken most, `each` of a row at most, with its tangent there."""
    before, after = np.roll(excess, 1, axis=1), np.roll(excess, -1, axis=1)
    row, column = np.nonzero((excess > tolerance) & (excess >= before) & (excess >= after))
    order = np.lexsort((-excess[row, column], row))
    row, column = row[order], column[order]
    rank = np.arange(row.size) - np.searchsorted(row, row)
    row, column = row[rank < each], column[rank < each]
    eps, delta = curve.tangent(level[row, column])
    return zip(row.tolist(), column.tolist(), excess[row, column].tolist(), eps.tolist(), delta.tolist(), strict=True)


def broken_sets(
    curve: Any, here: np.ndarray, there: np.ndarray, ignored: np.ndarray, known: float, tolerance: float, each: int,
    atom: float = 0.0,
) -> Iterator[tuple[int, np.ndarray, float, float, float]]:  # fmt: skip
    """(row, mask of columns, excess, eps, delta) of the sets that break a curve most: level sets of the likelihood ratio.

    **Arguments:** `here`, `there`: masses under two neighbours in each row; `ignored`: those that no set has; `known`: levels up
    to this are not looked at, but for powers above that at which the curve's chord ends; `atom`: what every set has beside its
    masses here; `each`: sets of a row, at most.
    """
    ratio = np.log(np.maximum(here, 1e-300)) - np.log(np.maximum(there, 1e-300))
    ratio[ignored] = -800.0
    order = np.argsort(-ratio, axis=1, kind="stable")
    power, level = (np.cumsum(np.take_along_axis(v, order, 1), axis=1) for v in (here, there))
    far = (level <= known) & (power <= curve.ratio * curve.rare)  # a narrow peak is no tail
    looked = (level < 0.5) & ~far & (np.take_along_axis(ratio, order, 1) >= 0)
    excess = np.full(looked.shape, -1.0)
    excess[looked] = curve.excess(power[looked] + atom, level[looked])
    for k, i, over, eps, delta in peaks(curve, excess, level, tolerance, each):
        chosen = np.zeros(here.shape[1], dtype=bool)
        chosen[order[k, : i + 1]] = True
        yield k, chosen, over, eps, delta


@dataclass(frozen=True)
class Mesh:
    """`growth`: of the nodes' distances near 0; `parts`: nodes in a cell far from it; `narrow`: kernels half as wide as well."""

    growth: float
    parts: int = 1
    narrow: bool = False


@dataclass(frozen=True)
class _Row:
    mask: np.ndarray
    kernel: int
    eps: float
    delta: float

    @property
    def key(self) -> tuple[bytes, int, int]:
        return self.mask.tobytes(), self.kernel, round(1e6 * self.eps)


@dataclass(frozen=True)
class _Point:
    """Multipliers, their bracket at all distances and their budget, in floats."""

    rows: tuple[_Row, ...]
    dual: np.ndarray
    bracket: np.ndarray
    budget: float

    @property
    def bound(self) -> float:
        return float(self.bracket.min()) - self.budget

    def towards(self, other: _Point, share: float) -> _Point:
        """Part of the way: everything here is affine in the multipliers."""
        if share == 1:
            return other
        found = {row.key: (row, (1 - share) * float(y)) for row, y in zip(self.rows, self.dual, strict=True)}
        for row, y in zip(other.rows, other.dual, strict=True):
            found[row.key] = row, share * float(y) + found.get(row.key, (row, 0.0))[1]
        rows, dual = zip(*found.values(), strict=True) if found else ((), ())
        bracket = (1 - share) * self.bracket + share * other.bracket
        return _Point(tuple(rows), np.array(dual), bracket, (1 - share) * self.budget + share * other.budget)


class Relaxation:
    """Noise on a lattice of `cells * fine` points per sensitivity, under the curve's tests on a mesh.

    **Arguments:** `curve`: as of a `TailProgram`; `cells`: per sensitivity, far from 0; `mesh`: how fine it is; `inner`: the
    distance, in sensitivities, within which hardly any loss is; `reach`: where the mesh ends; `costs`: from the points per
    sensitivity and the last index to c_0, ..., in floats.
    """

    def __init__(
        self, curve: Any, cells: int, fine: int, mesh: Mesh, inner: float, reach: float,
        costs: Callable[[int, int], np.ndarray], solver: LinearSolver,
    ) -> None:  # fmt: skip
        cell = fine // mesh.parts
        self.curve, self.n, self.fine, self.solver = curve, cells * fine, fine, solver
        near = spaced(cell, mesh.growth, inner * self.n)
        edge = [x for x in near if cell >> DULL <= x]
        self.end = math.ceil(reach * cells) * fine
        flat = range((near[-1] // cell + 1) * cell, self.end + 1, cell)
        self.half = np.unique([*near, *flat, *(self.n - x for x in edge), *(self.n + x for x in edge)])
        self.nodes = np.concatenate([-self.half[:0:-1], self.half])
        narrow = [fine >> j for j in range(2, fine.bit_length()) if fine >> j > 1]
        half, low, high = fine // 2, *(round(x * self.n) for x in MIDDLE)
        quarter = half // 2 if mesh.narrow else 0
        #: Shifts: by the sensitivity itself, around all multiples of half a cell, and closer to the sensitivity.
        self.kernels = [
            (self.n, 1),
            *((k * half, half) for k in range(4, 2 * cells)),
            *((k * quarter, quarter) for k in (range(low // quarter, high // quarter) if quarter else ())),
            *((self.n - w, w) for w in narrow),
        ]
        self.last = self.end + self.n + 1
        self.costs = costs(self.n, self.last)
        self.magnify = magnified(self.costs, self.n)
        self._reach = self.last + self.n + fine
        every = hats(np.arange(-self._reach, self._reach + 1), self.nodes).toarray()
        self._plain, self._twice = every, np.cumsum(np.cumsum(every, axis=0), axis=0)
        far = np.arange(self.end, self.last, fine)
        inside = np.arange(0, self.end, max(cell // PLACES, 1))
        between = (self.half[1:] + self.half[:-1]) // 2
        self.columns = np.unique(np.concatenate([self.half, between, inside, far]))
        self._base = self.tight = self.columns
        self.rows: list[_Row] = []
        self._known: dict[tuple[bytes, int, int], np.ndarray] = {}

    def _averaged(self, at: np.ndarray, centre: int, width: int) -> np.ndarray:
        """The value at each place of each node's hat, averaged over a kernel of shifts: second differences of sums of sums."""
        i = at - centre + self._reach
        if width == 1:
            return self._plain[i]
        total = self._twice
        found: np.ndarray = (total[i + width - 1] - 2 * total[i - 1] + total[i - width - 1]) / width**2
        return found

    def _own(self, at: np.ndarray) -> np.ndarray:
        found: np.ndarray = (self._plain[at + self._reach] + self._plain[-at + self._reach]) / 2
        return found

    def _shifted(self, at: np.ndarray, kernel: int) -> np.ndarray:
        found: np.ndarray = (self._averaged(at, *self.kernels[kernel]) + self._averaged(-at, *self.kernels[kernel])) / 2
        return found

    def follow(self, coarse: Relaxation) -> None:
        """Start from the rows and columns of a coarser mesh."""
        rise, places = self.n / coarse.n, coarse.nodes / coarse.n
        own = np.array(self.kernels) / self.n
        found: dict[tuple[bytes, int, int], _Row] = {}
        for row in coarse.rows:
            mask = np.interp(self.nodes / self.n, places, row.mask.astype(float)) >= 0.5
            nearest = np.abs(own - np.array(coarse.kernels[row.kernel]) / coarse.n) @ (1.0, 1e-3)
            moved = _Row(mask, int(nearest.argmin()), row.eps, row.delta)
            found.setdefault(moved.key, moved)
        self.rows = list(found.values())
        self.columns = np.union1d(self.columns, np.round(coarse.tight * rise).astype(int))

    def solve(self, noise: np.ndarray, rtol: float, deadline: float) -> GradedCertificate:
        """The certificate of the optimum, or of where time ran out.

        **Arguments:** `noise`: probabilities of the distances 0, 1, ..., end on the lattice, of noise that keeps the notion: rows
        are looked for halfway between the relaxation's optimum and it.
        """
        from scipy.sparse import csr_matrix

        at = np.arange(self.end + 1)
        inner = noise @ self._own(at), np.array([noise @ self._shifted(at, k) for k in range(len(self.kernels))])
        value = float(noise @ self.costs[: self.end + 1])
        rows = self.rows
        centre = _Point((), np.zeros(0), self.costs.copy(), 0.0)
        for _ in range(TIMES):
            mass = LinearProgram(self.costs[self.columns] * self.magnify, np.ones((1, self.columns.size)), [1.0], [1.0])  # type: ignore[arg-type]
            session, seen, norms = self.solver.session(mass), {row.key for row in rows}, np.zeros(0)
            objective, dual, fresh = 0.0, np.zeros(0), rows
            rows = []
            for _ in range(ROUNDS):
                if fresh:
                    entries = np.array([self._function(row)[self.columns] for row in fresh])
                    norm = np.maximum(np.abs(entries).max(axis=1), 1e-300)
                    limits = np.array([r.delta for r in fresh]) / norm
                    session.add_rows(csr_matrix(entries / norm[:, None]), np.full(len(fresh), -np.inf), limits)
                    rows, norms, seen = rows + fresh, np.append(norms, norm), seen | {r.key for r in fresh}
                found = session.solve(time_limit=max(deadline - time.perf_counter(), 0.1))
                if not found.usable:
                    return self._certificate(centre)
                objective = found.objective / self.magnify
                dual = np.maximum(-found.row_dual[1:] / self.magnify, 0.0) / norms
                used = np.flatnonzero(found.x)
                p, places = found.x[used], self.columns[used]
                ours = p @ self._own(places), np.array([p @ self._shifted(places, k) for k in range(len(self.kernels))])
                for share in (0.5, 0.5, 0.5, 1.0):
                    tried = share * ours[0] + (1 - share) * inner[0], share * ours[1] + (1 - share) * inner[1]
                    fresh = [row for row in self._broken(*tried) if row.key not in seen][:MOST]
                    if fresh:
                        break
                    inner, value = tried, share * objective + (1 - share) * value
                near = max(rtol, LOOSE * (1 - centre.bound / value))
                if not fresh or value - objective <= near * value or time.perf_counter() > deadline:
                    break
            kept = dual > 1e-13 * dual.max(initial=0.0)
            rows, dual = [row for row, y in zip(rows, kept, strict=True) if y], dual[kept]
            bracket = self.costs + sum(y * self._function(row) for row, y in zip(rows, dual, strict=True))
            point = _Point(tuple(rows), dual, bracket, float(dual @ np.array([row.delta for row in rows])))
            self.rows, self._known = rows, {row.key: self._known[row.key] for row in rows}
            self.tight = self.columns[np.argsort(bracket[self.columns])[: CARRIED * len(rows)]]
            # Multipliers jump about while columns are few: between the best and the last ones are better ones.
            between = max((centre.towards(point, share) for share in SHARES), key=lambda p: p.bound)
            centre = max(centre, between, key=lambda p: p.bound)
            for one in (between, point):
                b = one.bracket
                low = (b < objective + one.budget) & (b <= np.roll(b, 1)) & (b <= np.roll(b, -1))
                fewer = np.setdiff1d(np.flatnonzero(low), self.columns)
                if (bracket[fewer] < objective + point.budget).any():  # else the program would not change
                    break
            if objective - centre.bound <= 0.2 * rtol * objective or not fewer.size or time.perf_counter() > deadline:
                break
            idle = (found.x <= 0) & (bracket[self.columns] > 2 * np.median(bracket[self.columns]) - bracket.min())
            self.columns = np.unique(np.concatenate([self.columns[~idle], self._base, fewer]))
        return self._certificate(centre)

    def _broken(self, own: np.ndarray, shifted: np.ndarray) -> list[_Row]:
        """Tests that break the curve, the worst first."""
        rare, own = self.curve.rare, np.broadcast_to(own, shifted.shape)
        found = [
            (over, _Row(chosen, k, eps, delta))
            for k, chosen, over, eps, delta in broken_sets(
                self.curve, own, shifted, own + shifted < 1e-4 * rare, rare, BROKEN, EACH
            )
        ]
        return [row for _, row in sorted(found, key=lambda item: -item[0])]

    def _function(self, row: _Row) -> np.ndarray:
        """A test's function less e^eps times its average over the kernel, made even, at all distances; in floats."""
        if row.key not in self._known:
            last, (centre, width) = self.last, self.kernels[row.kernel]
            values = np.interp(np.arange(-self._reach, self._reach + 1), self.nodes, row.mask.astype(float))
            at = self._reach - last
            around = values[at - centre - width + 1 : self._reach + last - centre + width]
            for _ in range(2 if width > 1 else 0):  # weights width - |u| are two boxes of that width
                sums = np.append(0.0, np.cumsum(around))
                around = (sums[width:] - sums[:-width]) / width
            line = values[at : self._reach + last + 1] - math.exp(row.eps) * around
            self._known[row.key] = (line[last:] + line[last::-1]) / 2
        return self._known[row.key]

    def _certificate(self, point: _Point) -> GradedCertificate:
        tests = []
        for row, y in zip(point.rows, point.dual, strict=True):
            ends = np.flatnonzero(np.diff(row.mask.astype(np.int8), prepend=0))
            tests.append(Test(*self.kernels[row.kernel], tuple(ends.tolist()), row.eps, float(y)))
        return GradedCertificate(self.n, tuple(self.half.tolist()), tuple(tests))

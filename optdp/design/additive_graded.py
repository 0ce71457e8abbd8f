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
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optdp.certificates.graded import GradedCertificate, Test
from optdp.solvers.lp import LinearProgram, LinearSolver

#: How fast the nodes' distances grow from 0.
GROWTH = 0.25
#: Near the sensitivity cells are cut in two so many times.
DULL = 2
#: Levels below this are not tested; columns have so many places in a cell of the mesh.
LEAST, PLACES = 1e-6, 2
#: Rows that are added in a round, and for one kernel; rounds; times that columns are added.
MOST, EACH, ROUNDS, TIMES = 200, 3, 300, 25
#: Costs are magnified, so that the solver's tolerance is small beside them.
MAGNIFY = 2.0**20
#: What counts as breaking the curve.
BROKEN = 1e-6


def spaced(cell: int, growth: float) -> list[int]:
    """0 < x_1 < ...: steps are powers of 2, at most `growth` times x and 1 at first, up to `cell`; they share many distances."""
    found, step = [0], 1
    while step < cell:
        found.append(found[-1] + step)
        if 2 * step <= growth * found[-1] and found[-1] % (2 * step) == 0:
            step *= 2
    return found


@dataclass(frozen=True)
class _Row:
    mask: np.ndarray
    kernel: int
    eps: float
    delta: float

    @property
    def key(self) -> tuple[bytes, int, int]:
        return self.mask.tobytes(), self.kernel, round(1e6 * self.eps)


class Relaxation:
    """Noise on a lattice of `cells * fine` points per sensitivity, under the curve's tests on a mesh.

    **Arguments:** `curve`: a `PowerCurve`; `cells`: nodes per sensitivity far from 0, `fine` lattice points apart; `reach`: where
    the mesh ends, in sensitivities; `costs`: from the points per sensitivity and the last index to c_0, ..., in floats.
    """

    def __init__(
        self, curve: Any, cells: int, fine: int, reach: float, costs: Callable[[int, int], np.ndarray],
        solver: LinearSolver,
    ) -> None:  # fmt: skip
        self.curve, self.n, self.fine, self.solver = curve, cells * fine, fine, solver
        near = spaced(fine, GROWTH)
        edge = [x for x in near if fine >> DULL <= x]
        self.end = math.ceil(reach * cells) * fine
        flat = range(near[-1] + fine, self.end + 1, fine)
        self.half = np.unique([*near, *flat, *(self.n - x for x in edge), *(self.n + x for x in edge)])
        self.nodes = np.concatenate([-self.half[:0:-1], self.half])
        narrow = [fine >> j for j in range(2, fine.bit_length()) if fine >> j > 1]
        #: Shifts: by the sensitivity itself, around all multiples of half a cell, and closer to the sensitivity.
        half = fine // 2
        self.kernels = [
            (self.n, 1),
            *((k * half, half) for k in range(4, 2 * cells)),
            *((self.n - w, w) for w in narrow),
        ]
        self.last = self.end + self.n + 1
        self.costs = costs(self.n, self.last)
        self._reach = self.last + self.n + fine
        every = self._hats(np.arange(-self._reach, self._reach + 1))
        self._plain, self._twice = every, np.cumsum(np.cumsum(every, axis=0), axis=0)
        far = np.arange(self.end, self.last, fine)
        inside = np.arange(0, self.end, max(fine // PLACES, 1))
        self.columns = np.unique(np.concatenate([self.half, inside, far]))

    def _hats(self, at: np.ndarray) -> np.ndarray:
        """The value at each place of each node's hat: linear between nodes, constant beyond them."""
        at = np.clip(at, self.nodes[0], self.nodes[-1])
        left = np.clip(np.searchsorted(self.nodes, at, side="right") - 1, 0, self.nodes.size - 2)
        share = (at - self.nodes[left]) / (self.nodes[left + 1] - self.nodes[left])
        found, row = np.zeros((at.size, self.nodes.size)), np.arange(at.size)
        found[row, left], found[row, left + 1] = 1 - share, share
        return found

    def _averaged(self, at: np.ndarray, centre: int, width: int) -> np.ndarray:
        """The same for the average over a kernel of shifts: second differences of sums of sums."""
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

    def solve(self, noise: np.ndarray, rtol: float, deadline: float) -> GradedCertificate:
        """The certificate of the optimum, or of where time ran out.

        **Arguments:** `noise`: probabilities of the distances 0, 1, ..., end on the lattice, of noise that keeps the notion: rows
        are looked for halfway between the relaxation's optimum and it.
        """
        at = np.arange(self.end + 1)
        inner = noise @ self._own(at), np.array([noise @ self._shifted(at, k) for k in range(len(self.kernels))])
        value = float(noise @ self.costs[: self.end + 1])
        rows: list[_Row] = []
        best, bound = GradedCertificate(self.n, tuple(self.half.tolist()), ()), 0.0
        for _ in range(TIMES):
            own = self._own(self.columns)
            shifted = np.array([self._shifted(self.columns, k) for k in range(len(self.kernels))])
            mass = LinearProgram(self.costs[self.columns] * MAGNIFY, np.ones((1, self.columns.size)), [1.0], [1.0])  # type: ignore[arg-type]
            session, seen, norms = self.solver.session(mass), {row.key for row in rows}, np.zeros(0)
            objective, dual, fresh = 0.0, np.zeros(0), rows
            rows = []
            for _ in range(ROUNDS):
                if fresh:
                    entries = np.array(
                        [own[:, r.mask].sum(1) - math.exp(r.eps) * shifted[r.kernel][:, r.mask].sum(1) for r in fresh]
                    )
                    norm = np.maximum(np.abs(entries).max(axis=1), 1e-300)
                    limits = np.array([r.delta for r in fresh]) / norm
                    session.add_rows(_sparse(entries / norm[:, None]), np.full(len(fresh), -np.inf), limits)
                    rows, norms, seen = rows + fresh, np.append(norms, norm), seen | {r.key for r in fresh}
                found = session.solve(time_limit=max(deadline - time.perf_counter(), 0.1))
                if not found.usable:
                    return best
                objective = found.objective / MAGNIFY
                dual = np.maximum(-found.row_dual[1:] / MAGNIFY, 0.0) / norms
                ours = found.x @ own, np.einsum("a,kaj->kj", found.x, shifted)
                for share in (0.5, 0.5, 0.5, 1.0):
                    tried = share * ours[0] + (1 - share) * inner[0], share * ours[1] + (1 - share) * inner[1]
                    fresh = [row for row in self._broken(*tried) if row.key not in seen][:MOST]
                    if fresh:
                        break
                    inner, value = tried, share * objective + (1 - share) * value
                if not fresh or value - objective <= rtol * value or time.perf_counter() > deadline:
                    break
            rows = [row for row, y in zip(rows, dual, strict=True) if y > 1e-13 * dual.max()]
            dual = dual[dual > 1e-13 * dual.max(initial=0.0)]
            bracket = self._bracket(rows, dual)
            budget = float(dual @ np.array([row.delta for row in rows]))
            if bracket.min() - budget > bound:
                best, bound = self._certificate(rows, dual), float(bracket.min()) - budget
            low = (bracket < objective + budget) & (bracket <= np.roll(bracket, 1)) & (bracket <= np.roll(bracket, -1))
            fewer = np.setdiff1d(np.flatnonzero(low), self.columns)
            if objective - bound <= 0.2 * rtol * objective or not fewer.size or time.perf_counter() > deadline:
                break
            self.columns = np.union1d(self.columns, fewer)
        return best

    def _broken(self, own: np.ndarray, shifted: np.ndarray) -> list[_Row]:
        """Tests that break the curve, the worst first."""
        ratio = np.log(np.maximum(own, 1e-300)) - np.log(np.maximum(shifted, 1e-300))
        ratio[own + shifted < 1e-4 * LEAST] = -800.0
        order = np.argsort(-ratio, axis=1, kind="stable")
        level = np.cumsum(np.take_along_axis(shifted, order, 1), axis=1)
        known = (level < 0.5) & (level > LEAST) & (np.take_along_axis(ratio, order, 1) >= 0)
        excess = np.where(known, self.curve.excess(np.cumsum(own[order], axis=1), level), -1.0)
        found: list[tuple[float, _Row]] = []
        for k, over in enumerate(excess):
            peaks = np.flatnonzero((over > BROKEN) & (over >= np.roll(over, 1)) & (over >= np.roll(over, -1)))
            peaks = peaks[np.argsort(-over[peaks])][:EACH]
            for i, eps, delta in zip(peaks, *self.curve.tangent(level[k, peaks]), strict=True):
                mask = np.zeros(own.size, dtype=bool)
                mask[order[k, : i + 1]] = True
                found.append((float(over[i]), _Row(mask, k, float(eps), float(delta))))
        return [row for _, row in sorted(found, key=lambda item: -item[0])]

    def _bracket(self, rows: list[_Row], dual: np.ndarray) -> np.ndarray:
        """The certificate's bracket at all distances, in floats."""
        own, shifted = np.zeros(self.nodes.size), np.zeros((len(self.kernels), self.nodes.size))
        for row, y in zip(rows, dual, strict=True):
            own[row.mask] += y
            shifted[row.kernel, row.mask] += y * math.exp(row.eps)
        at = np.arange(self.last + 1)
        used = np.flatnonzero(shifted.any(axis=1))
        found: np.ndarray = self.costs[: self.last + 1] + self._own(at) @ own
        return found - sum(self._shifted(at, int(k)) @ shifted[k] for k in used)

    def _certificate(self, rows: list[_Row], dual: np.ndarray) -> GradedCertificate:
        tests = []
        for row, y in zip(rows, dual, strict=True):
            ends = np.flatnonzero(np.diff(row.mask.astype(np.int8), prepend=0))
            tests.append(Test(*self.kernels[row.kernel], tuple(ends.tolist()), row.eps, float(y)))
        return GradedCertificate(self.n, tuple(self.half.tolist()), tuple(tests))


def _sparse(rows: np.ndarray) -> Any:
    from scipy.sparse import csr_matrix

    return csr_matrix(rows)

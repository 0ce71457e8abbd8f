"""Linear programs whose rows have hardly a zero, with more rows than columns: interior points.

Mehrotra's predictor and corrector (`optdp.solvers.interior`) with a Cholesky factor of one row for each column. A step takes as
long as some ten of the simplex method, and some 25 steps do. What it ends in is near the middle of the best points, and not one
vertex of many that are as good.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np

from optdp.exact import require
from optdp.solvers import interior
from optdp.solvers.lp import Highs, LinearProgram, LinearResult, LinearSolver, LinearStatus, log

#: Steps at most; which share of the way to the boundary each goes; how many may be no better in a row close to the end.
STEPS, SHARE, PATIENCE, SETTLED = 100, 0.995, 5, 1e-4
#: How far rows and reduced costs may be off at most, relatively.
OFF = 1e-7
#: Gaps are relative to values of at least this share of the largest cost. In the end they are at most so many times the tolerance
#: beside all that is paid, and reduced costs are off by at most this share of what they are summed from.
SMALL, GAP, OWN = 1e-3, 10.0, 1e-6


@dataclass(frozen=True)
class Dense(LinearSolver):
    """Interior points for programs whose rows have hardly a zero.

    **Arguments:** `tolerance`: of the gap between the program's value and its dual's, relatively; `behind`: solves programs that
    this one does not: with columns without lower limit, infeasible or unbounded, or with too few digits; `least`: what is paid
    counts as this share of the largest cost at least, as where nothing need be paid.

    The value is right to the tolerance beside the sum of what is paid: of costs that all but cancel fewer digits are left, and
    so of values that are far smaller than others.
    """

    tolerance: float = 1e-8
    behind: LinearSolver = field(default_factory=Highs)
    least: float = 0.0

    name = "interior points"

    def __post_init__(self) -> None:
        require.real("tolerance", self.tolerance, low=1e-12, high=1e-2)
        require.real("least", self.least, low=0.0, high=1.0)

    def solve(self, program: LinearProgram, *, time_limit: float = math.inf) -> LinearResult:
        end = time.perf_counter() + time_limit
        found = _solved(program, self.tolerance, end, self.least)
        if found is not None:
            return found
        left = end - time.perf_counter()
        if left <= 0:
            return LinearResult(LinearStatus.TIME_LIMIT, program=program)
        log.debug("%s: no end, %s is asked", self.name, self.behind.name)
        return self.behind.solve(program, time_limit=left)


@np.errstate(all="ignore")  # what is not finite ends it
def _solved(program: LinearProgram, tolerance: float, end: float, nought: float = 0.0) -> LinearResult | None:
    """The best point, or None: of min c.x with A x >= b, E x = e, x >= 0, where x is what is above the lower limits."""
    if not np.isfinite(program.lower).all() or (program.lower > program.upper).any():
        return None
    sign, free = -1.0 if program.maximise else 1.0, program.lower < program.upper
    every, c = program.rows.toarray(), sign * program.cost[free]
    least, most = (limits - every @ program.lower for limits in (program.row_lower, program.row_upper))
    every, tops = every[:, free], (program.upper - program.lower)[free]
    equal, capped = least == most, np.flatnonzero(np.isfinite(tops))
    low, high = np.flatnonzero(np.isfinite(least) & ~equal), np.flatnonzero(np.isfinite(most) & ~equal)
    a = np.vstack([every[low], -every[high], -np.eye(c.size)[capped]])
    b = np.concatenate([least[low], -most[high], -tops[capped]])
    if not a.size:
        return None
    point = _Point(c, a, b, every[equal], least[equal])
    best, error, idle = None, math.inf, 0
    for _ in range(STEPS):
        gap, off = point.errors()
        now = max(gap, off * tolerance / OFF)
        if not math.isfinite(now) or time.perf_counter() > end:
            break
        idle = 0 if now < error else idle + 1
        if not idle:
            best, error = (point.x, point.y, point.w, point.z, point.steps), now
        if error <= tolerance or (idle > PATIENCE and error < SETTLED):
            break
        try:
            point.advance()
        except np.linalg.LinAlgError:
            break
    if best is None or error > tolerance:
        return None
    values, y, w, z, steps = best
    x, row_dual, reduced_cost = program.lower.copy(), np.zeros(program.row_lower.size), np.zeros(program.cost.size)
    x[free] += values
    costs = np.abs(program.cost)
    if not point.proves(*best[:4], GAP * tolerance * float(max(costs @ np.abs(x), nought * costs.max(initial=0.0)))):
        return None
    of_low, of_high, of_tops = np.split(y, [low.size, low.size + high.size])
    row_dual[low] += of_low
    row_dual[high] -= of_high
    row_dual[equal] = w
    z = z.copy()
    z[capped] -= of_tops
    reduced_cost[free] = z
    reduced_cost[~free] = sign * program.cost[~free] - row_dual @ program.rows[:, np.flatnonzero(~free)]
    log.debug("%s: %d rows, %d columns, %d steps", Dense.name, *program.rows.shape, steps)
    return LinearResult(
        LinearStatus.OPTIMAL, float(program.cost @ x), x, sign * row_dual, sign * reduced_cost, steps, program=program
    )


class _Point:
    """Values and slacks of A x - s = b, E x = e and A' y + E' w + z = c."""

    def __init__(self, c: np.ndarray, a: np.ndarray, b: np.ndarray, equal: np.ndarray, e: np.ndarray) -> None:
        self.c, self.a, self.b, self.equal, self.e, self.steps = c, a, b, equal, e, 0
        self.across = np.ascontiguousarray(a.T)
        price = float(np.abs(c).max(initial=1e-3))
        self.x, self.w = np.ones(c.size), np.zeros(e.size)
        self.s = np.maximum(a @ self.x - b, 1.0)
        self.y = np.full(b.size, price / max(b.size, 1))
        self.z = np.maximum(c - self.across @ self.y, 0.1 * price)

    def errors(self) -> tuple[float, float]:
        """(the gap, how far rows and reduced costs are off), relatively."""
        self.rows, self.even = self.b - self.a @ self.x + self.s, self.e - self.equal @ self.x
        self.costs = self.c - self.across @ self.y - self.equal.T @ self.w - self.z
        price = float(np.abs(self.c).max(initial=1e-300))
        gap = float(self.x @ self.z + self.s @ self.y) / max(abs(float(self.c @ self.x)), SMALL * price)
        parts = (self.rows, self.b), (self.even, self.e), (self.costs, self.c)
        return gap, max(float(np.abs(v).max(initial=0.0) / (1 + np.abs(of).max(initial=0.0))) for v, of in parts)

    def proves(self, x: np.ndarray, y: np.ndarray, w: np.ndarray, z: np.ndarray, most: float) -> bool:
        """Whether the gap is at `most` this, and each reduced cost is right beside what it is summed from: next to the largest
        cost a small one may be off by more than it is. (Where all that is paid is 0, so are the multipliers, up to roundings.)
        """
        size = np.abs(self.c) + np.abs(self.across) @ y + np.abs(self.equal).T @ np.abs(w) + z
        off = np.abs(self.c - self.across @ y - self.equal.T @ w - z)
        right = (off <= OWN * size) | (off * x.max(initial=0.0) <= most)
        return bool(right.all()) and abs(float(self.c @ x - self.b @ y - self.e @ w)) <= most

    def advance(self) -> None:
        """One predictor and corrector. **Raises** LinAlgError where the Newton matrix is not positive definite in floats."""
        from scipy.linalg import blas, lapack

        n = self.c.size
        every = np.arange(n)
        matrix = blas.dsyrk(1.0, (self.a * np.sqrt(self.y / self.s)[:, None]).T)
        matrix[every, every] = (matrix[every, every] + self.z / self.x) * (1 + 1e-14)
        factor, failed = lapack.dpotrf(matrix, clean=False, overwrite_a=True)
        if failed:
            raise np.linalg.LinAlgError("the Newton matrix is not positive definite in floats")
        border = lapack.dpotrs(factor, self.equal.T)[0] if self.e.size else self.equal.T
        corner = self.equal @ border

        def step(targets: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            first, second = targets[:n], targets[n:]
            right = self.across @ ((second + self.y * self.rows) / self.s) + first / self.x - self.costs
            dx = lapack.dpotrs(factor, right)[0]
            dw = np.linalg.solve(corner, self.even - self.equal @ dx)
            dx = dx + border @ dw
            ds = self.a @ dx - self.rows
            slips = np.concatenate([(first - self.z * dx) / self.x, (second - self.y * ds) / self.s])
            return np.concatenate([dx, ds]), dw, slips

        values, slacks = np.concatenate([self.x, self.s]), np.concatenate([self.z, self.y])
        values, slacks, behind, dw = interior.advance(values, slacks, step, SHARE)
        (self.x, self.s), (self.z, self.y) = np.split(values, [n]), np.split(slacks, [n])
        self.w, self.steps = self.w + behind * dw, self.steps + 1

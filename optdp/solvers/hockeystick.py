"""Interior points for lattice programs with many hockey-stick rows: one dense matrix of the size of the support per step.

The program is, over x >= 0 (masses, and the atom as the last entry),

    min c.x   with   g.x = 1,   a_r.x = u_r - v_r,   sum_(r in s) w_r u_r + k x_last + z_s = 1,   u, v, z >= 0,

with a row r for each pair of a shift s and a lattice index. There are tens of thousands of rows and a few hundred masses. In
the Newton system of a primal-dual method (Mehrotra's predictor and corrector) each row's u_r, v_r and its multiplier can be
eliminated by hand, then each budget's, and what is left is a positive definite matrix in x alone, bordered by the mass row:
a general solver does not see that. For a long support that matrix is banded (a shift couples masses at most n apart) plus
one of rank n (the budgets), and is treated as such. What comes out is a hint, like any solver's answer: the certificate and
the mechanism are made from it in exact arithmetic.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp.solvers import interior

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

#: Above this size, and above so many times its bandwidth, the matrix is treated as a band plus low rank.
BANDED, SLENDER = 700, 6
#: Below this error, six steps that bring no better point say that rounding allows none.
SETTLED = 1e-6


@dataclass(frozen=True)
class Point:
    """A primal-dual point: x, the mass multiplier t, row multipliers y <= 0, budget multipliers e <= 0."""

    x: np.ndarray
    t: float
    y: np.ndarray
    e: np.ndarray
    iterations: int
    error: float


class _Program:
    """The data, with costs scaled to order 1, and the current primal-dual point: `primal` is x, u, v, z, and `slack` theirs."""

    def __init__(self, c: np.ndarray, g: np.ndarray, a: csr_matrix, group: np.ndarray, w: np.ndarray, k: float) -> None:
        self.price = max(float(np.abs(c).max() / g.max()), 1e-300)
        self.c, self.g, self.a, self.at, self.group, self.w, self.k = c / self.price, g, a, a.T.tocsr(), group, w, k
        self.rows, self.size = a.shape
        self.groups = int(group.max()) + 1
        self._lay_out()
        x = np.full(self.size, 1 / g.sum())
        start = a @ x
        spread = 0.1 * float(np.abs(start).mean()) + 1e-8
        self.t = float(self.c @ x)
        self.e = np.full(self.groups, -0.1 * self.t)
        self.y = 0.5 * w * self.e[group]
        above, below = np.maximum(start, 0) + spread, np.maximum(-start, 0) + spread
        self.primal = np.concatenate([x, above, below, np.full(self.groups, 0.1)])
        cost = np.maximum(self.c - g * self.t - self.at @ self.y, 0) + 0.1 * float(np.abs(self.c).mean())
        self.slack = np.concatenate([cost, -self.y, -self.y, -self.e])
        self.residuals()

    def parts(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What belongs to x, u, v and z."""
        first, second, third = self.size, self.size + self.rows, self.size + 2 * self.rows
        return values[:first], values[first:second], values[second:third], values[third:]

    def _lay_out(self) -> None:
        """Where the products of two entries of a row go in the Newton matrix, of which only the lower half is looked at."""
        a, count = self.a, np.diff(self.a.indptr)
        self.ends = np.repeat(np.arange(self.rows), count)
        self.spots = a.indices * self.groups + self.group[self.ends]
        mates = count[self.ends]
        first = np.repeat(np.arange(a.nnz), mates)
        second = np.arange(first.size) + np.repeat(a.indptr[self.ends] - np.cumsum(mates) + mates, mates)
        lower = a.indices[first] >= a.indices[second]
        first, second = first[lower], second[lower]
        row, column = a.indices[first].astype(np.int64), a.indices[second]
        #: How far apart the masses of a row are: the bandwidth of the matrix.
        self.width = int((row - column).max(initial=0))
        self.banded = self.size > max(BANDED, SLENDER * self.width)
        self.place = (row - column if self.banded else row) * self.size + column
        self.product, self.of = a.data[first] * a.data[second], self.ends[first]

    def by_group(self, values: np.ndarray) -> np.ndarray:
        """Sums over the rows of each budget."""
        return np.bincount(self.group, weights=values, minlength=self.groups)

    def residuals(self) -> float:
        """Set the residuals at the current point; the largest of them and of the gap, relatively."""
        x, u, v, z = self.parts(self.primal)
        self.mass = 1.0 - float(self.g @ x)
        self.row = u - v - self.a @ x
        self.budget = 1.0 - self.by_group(self.w * u) - self.k * x[-1] - z
        dual = self.c - self.g * self.t - self.at @ self.y
        dual[-1] -= self.k * self.e.sum()
        self.dual = np.concatenate([dual, self.y - self.w * self.e[self.group], -self.y, -self.e]) - self.slack
        sizes = (
            abs(self.mass), float(np.abs(self.row).max()) / (1 + float(u.max())), float(np.abs(self.budget).max()),
            float(np.abs(self.dual[: self.size] / (self.c + self.g * abs(self.t) + 1e-12)).max()),
            float(self.primal @ self.slack) / (abs(float(self.c @ x)) + 1e-300),
        )  # fmt: skip
        return max(sizes) if np.isfinite(sizes).all() else np.inf

    def point(self, iteration: int, error: float) -> Point:
        """The current point, in the caller's units."""
        return Point(
            self.primal[: self.size], self.t * self.price, self.y * self.price, self.e * self.price, iteration, error
        )

    def advance(self) -> None:
        """One predictor and corrector."""
        found = interior.advance(self.primal, self.slack, _Newton(self).step, 0.995)
        self.primal, self.slack, behind, (dt, dy, de) = found
        self.t, self.y, self.e = self.t + behind * dt, self.y + behind * dy, self.e + behind * de


class _Newton:
    """The factorised Newton system at a point. **Raises** LinAlgError where it is not positive definite in floats."""

    def __init__(self, program: _Program) -> None:
        self.program = p = program
        self.q = p.primal / p.slack
        qx, qu, qv, qz = p.parts(self.q)
        self.inner = 1 / (qu + qv)
        self.share = self.inner * qu * p.w
        lines = p.width + 1 if p.banded else p.size
        h = np.bincount(p.place, p.product * self.inner[p.of], lines * p.size).reshape(lines, p.size)
        self.b = np.bincount(p.spots, p.a.data * self.share[p.ends], p.size * p.groups).reshape(p.size, p.groups)
        self.b[-1] += p.k
        self.d = p.by_group(p.w * self.share * qv) + qz
        (self._factorise_band if p.banded else self._factorise_dense)(h, 1 / qx)
        self.border = self.inverse(p.g)

    def _factorise_dense(self, dense: np.ndarray, diagonal: np.ndarray) -> None:
        from scipy.linalg import blas, lapack

        # In place: the lower half by rows is the upper half by columns, LAPACK's order.
        h = blas.dsyrk(1.0, (self.b / np.sqrt(self.d)).T, 1.0, dense.T, trans=True, overwrite_c=True)
        every = np.arange(diagonal.size)
        h[every, every] = (h[every, every] + diagonal) * (1 + 1e-15)
        self.factor, failed = lapack.dpotrf(h, clean=False, overwrite_a=True)
        if failed:
            raise np.linalg.LinAlgError("the Newton matrix is not positive definite in floats")

    def _factorise_band(self, band: np.ndarray, diagonal: np.ndarray) -> None:
        """The band by itself; then the Schur complement of the budgets."""
        from scipy.linalg import cho_factor, cho_solve_banded, cholesky_banded

        self.diagonal = diagonal
        band[0] = (band[0] + diagonal) * (1 + 1e-14)
        self.factor = cholesky_banded(band, lower=True, overwrite_ab=True, check_finite=False)
        self.across = cho_solve_banded((self.factor, True), self.b, check_finite=False)
        self.schur = cho_factor(np.diag(self.d) + self.b.T @ self.across, lower=True, check_finite=False)

    def inverse(self, r: np.ndarray) -> np.ndarray:
        """The solution of the system in x alone."""
        from scipy.linalg import cho_solve, cho_solve_banded, lapack

        if not self.program.banded:
            return np.asarray(lapack.dpotrs(self.factor, r)[0])
        found = np.zeros(r.size)
        rest = r
        for _ in range(4):  # eliminating the band first costs digits: iterative refinement brings them back
            plain = cho_solve_banded((self.factor, True), rest, check_finite=False)
            found = found + plain - self.across @ cho_solve(self.schur, self.b.T @ plain, check_finite=False)
            again = self.program.at @ (self.inner * (self.program.a @ found))
            rest = r - (again + self.diagonal * found + self.b @ ((self.b.T @ found) / self.d))
        return found

    def step(self, targets: np.ndarray) -> tuple[np.ndarray, Any, np.ndarray]:
        """Directions of the primal, of (t, y, e) and of the slacks for these changes of the products primal times slack."""
        p = self.program
        h = targets / p.primal
        np.subtract(p.dual, h, out=h)  # so long arrays are worth writing over
        (_, qu, qv, qz), (hx, hu, hv, hz) = p.parts(self.q), p.parts(h)
        rho = p.row - qu * hu + qv * hv
        r3 = p.budget + p.by_group(p.w * qu * (self.inner * rho + hu)) + qz * hz
        base = self.inverse(-hx + p.at @ (self.inner * rho) + self.b @ (r3 / self.d))
        dt = (p.mass - float(p.g @ base)) / float(p.g @ self.border)
        dx = base + dt * self.border
        de = (r3 - self.b.T @ dx) / self.d
        spent = p.w * de[p.group]
        dy = self.inner * (rho - p.a @ dx + qu * spent)
        moves = np.concatenate([dx, spent - dy, dy, de]) - h
        moves[: p.size] = dx
        moves[p.size :] *= self.q[p.size :]
        slips = p.slack * moves
        np.subtract(targets, slips, out=slips)
        slips /= p.primal
        return moves, (dt, dy, de), slips


@np.errstate(all="ignore")  # what is not finite ends it
def solve(
    c: np.ndarray, g: np.ndarray, a: csr_matrix, group: np.ndarray, w: np.ndarray, k: float, *, tolerance: float = 1e-9,
    deadline: float = np.inf, limit: int = 150,
) -> Point | None:  # fmt: skip
    """Solve the program above; None if no point good to 1e-4 was reached.

    **Arguments:** `c`, `g`: costs and mass row; `a`: the rows, a scipy CSR matrix; `group`: the budget of each row; `w`: its
    weight there; `k`: weight of the last entry of x in every budget; `tolerance`: relative, of residuals and gap.
    """
    program = _Program(c, g, a, group, w, k)
    best: Point | None = None
    for iteration in range(limit):
        error = program.residuals()
        if not np.isfinite(error):
            break
        if best is None or error < best.error:
            best = program.point(iteration, error)
        stuck = best.error < SETTLED and iteration >= best.iterations + 6
        if (
            error < tolerance
            or stuck
            or time.perf_counter() > deadline
            or (iteration > 40 and error > 1e3 * best.error)
        ):
            break
        try:
            program.advance()
        except np.linalg.LinAlgError:
            break
    return best if best is not None and best.error < 1e-4 else None

"""An interior-point method for the kernel program on a grid that eliminates floors and favours before it factorises.

The program of `optdp.solvers.kernel_lp`, for the worst case, with m_j = v_j / E, favours (E - 1) u_a / E and rows
divided by their orbit's size:

    min t   s.t.   P u + M v + (0, w) - (0, t) = (1, 0, 0)     [rows: mass, mean, loss],     z = J v - u,
                   u, v, w, z >= 0,

with one u_a for each pair a = (i, j) and J v the floor of each pair. In the Newton system of such a program the pairs
appear in a diagonal, and once they are gone, so do the floors: what is left is one dense positive definite matrix with
a row for each mass, mean and loss,

    S = P h P' + Q H^-1 Q' + diag(w / sigma_w),     Q = M + P theta J,

where h, theta (pairs) and H (outputs) are quotients of the iterates. Its size does not depend on the number of pairs
or outputs: a step on 257 inputs and 513 outputs takes a fraction of a second, where general solvers factorise a
sparse matrix with a row for every pair. Steps are Mehrotra's predictor and corrector.
"""

from __future__ import annotations

import time

import numpy as np

from optdp.solvers import interior
from optdp.solvers.kernel_lp import Folding, Grid, Outcome
from optdp.solvers.lp import LinearStatus, SolverFailure

#: Steps after which the method gives up on the tolerance asked for.
STEPS = 150


def solve_interior(
    grid: Grid, y: np.ndarray, *, pairs: np.ndarray | None = None, tolerance: float = 1e-9, time_limit: float = 1e9
) -> Outcome:
    """The optimum over the outputs `y` (those <= 1/2 of a symmetric grid), for the worst case.

    **Arguments:** `pairs`: (knots, outputs) booleans, which inputs may favour which outputs; None: all. `tolerance`:
    largest relative gap between the value and its dual.

    **Raises** SolverFailure if no point within 1e-5 of feasible and optimal is reached in time.
    """
    program = _Newton(grid, y, pairs)
    began = time.perf_counter()
    best = np.inf
    kept: tuple[float, np.ndarray, interior.Parts] | None = None
    for _ in range(STEPS):
        error = program.error()
        if error < best:
            best, kept = error, (program.t, program.y, program.primal)
        if error <= tolerance or error > 1e6 * best:
            break
        if time.perf_counter() - began > time_limit:
            raise SolverFailure("the interior-point method ran out of time", LinearStatus.TIME_LIMIT)
        if not program.step():
            break
    if kept is None or best > 1e-5:
        raise SolverFailure("the interior-point method did not converge")
    return program.outcome(*kept)


class _Newton:
    """Data, iterate and step. The primal values are (u, z, v, w)."""

    def __init__(self, grid: Grid, y: np.ndarray, pairs: np.ndarray | None) -> None:
        self.grid, self.points = grid, y
        self.fold = Folding(grid)
        self.i, self.j = np.nonzero(np.ones((grid.knots.size, y.size), dtype=bool) if pairs is None else pairs)
        self.share, self.masses, self.first = 1 / self.fold.sizes, self.fold.masses, self.fold.first
        growth = (grid.ratio - 1) / grid.ratio
        self.P = self.fold.pairs(self.i, self.j, y).multiply(growth * self.share[:, None]).tocsr()
        self.PT = self.P.T.tocsr()
        self.M = self.fold.entries(np.ones((y.size, grid.knots.size)), y) * self.share[:, None] / grid.ratio
        self.right = np.zeros(self.share.size)
        self.right[: self.masses] = 1.0
        self._start()

    def _start(self) -> None:
        """All floors equal, and shares of what may be favoured that fall with the distance d from the input like
        1/(1 + (d/h)^2), on the scale h = e^(-eps/2) of optimal mechanisms: products of u and s_u are then alike.
        """
        grid, count, losses = self.grid, self.points.size, self.share.size - self.first
        h = grid.ratio**-0.5
        away = np.abs(self.points[self.j] - grid.knots[self.i])
        f = 0.9 / (1 + (away / h) ** max(grid.power, 2.0))
        mass = float(np.mean((self.P @ f + self.M @ np.ones(count))[: self.masses]))
        u, v, z = f / mass, np.full(count, 1 / mass), (1 - f) / mass
        lost = (self.P @ u + self.M @ v)[self.first :]
        self.t = float(1.2 * lost.max() + 0.2 * h**grid.power)
        self.primal: interior.Parts = (u, z, v, self.t - lost)
        # Prices under which every pair costs its loss.
        self.y = np.concatenate([np.zeros(self.first), np.full(losses, -1 / losses)])
        cost = -(self.PT @ self.y)
        least = 0.05 * h**grid.power / losses
        su, sz = np.maximum(cost, 0.0) + least, np.maximum(-cost, 0.0) + least
        floors = -(self.M.T @ self.y)
        sv = np.maximum(floors - self._by_output(sz), 0.1 * floors)
        self.slack: interior.Parts = (su, sz, sv, np.full(losses, 1 / losses))

    def _by_output(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.j, weights=values, minlength=self.points.size)

    def _residuals(self) -> tuple[np.ndarray, ...]:
        """Primal residual, and dual ones of u, v, w and t."""
        (u, _, v, w), (su, sz, sv, sw) = self.primal, self.slack
        lhs = self.P @ u + self.M @ v
        lhs[self.first :] += w - self.t
        losses = self.y[self.first :]
        return (
            self.right - lhs, self.PT @ self.y + su - sz, self.M.T @ self.y + self._by_output(sz) + sv, losses + sw,
            np.array([1 + losses.sum()]),
        )  # fmt: skip

    def error(self) -> float:
        """The largest of the relative gap and the residuals."""
        primal, *dual = self._residuals()
        gap = abs(self.t - float(self.y[: self.masses].sum())) / max(abs(self.t), 1e-300)
        # A kernel that misses its rows by r is off by about as much in value.
        return max(
            gap, float(np.abs(primal).max()) / min(1.0, self.t), *(float(np.abs(d).max(initial=0.0)) for d in dual)
        )

    def step(self) -> bool:
        """One step of predictor and corrector. Returns False if it cannot be taken."""
        import scipy.linalg as la
        import scipy.sparse as sp

        (u, z, v, w), (su, sz, sv, sw), (rp, ru, rv, rw, rt) = self.primal, self.slack, self._residuals()
        alpha, beta = su / u, sz / z
        h = 1 / (alpha + beta)
        theta = beta * h
        floors = sv / v + self._by_output(alpha * theta)
        lift = sp.csr_matrix((theta, (np.arange(self.i.size), self.j)), shape=(self.i.size, self.points.size))
        Q = self.M + (self.P @ lift).toarray()
        scaled = Q / np.sqrt(floors)
        S = scaled @ scaled.T
        S += (self.P @ sp.diags(h) @ self.PT).toarray()
        diagonal = np.einsum("ii->i", S)
        diagonal[self.first :] += w / sw
        diagonal[diagonal == 0] = 1.0  # the mean at the middle of a symmetric grid is 0 = 0
        diagonal *= 1 + 1e-13
        root = 1 / np.sqrt(diagonal)
        try:
            factor = la.cho_factor(S * root * root[:, None], lower=True, check_finite=False)
        except la.LinAlgError:
            return False

        def backsolve(b: np.ndarray) -> np.ndarray:
            x = root * la.cho_solve(factor, root * b, check_finite=False)
            return x + root * la.cho_solve(factor, root * (b - S @ x), check_finite=False)

        ones = np.zeros(S.shape[0])
        ones[self.first :] = 1.0
        border = backsolve(ones)

        def direction(targets: interior.Parts) -> tuple[interior.Parts, tuple[np.ndarray, float], interior.Parts]:
            cu, cz, cv, cw = targets
            gu = cu / u - cz / z + ru
            gv = self._by_output(cz / z + theta * gu) + cv / v + rv
            gw = (w * rw + cw) / sw
            b = rp - self.P @ (h * gu) - Q @ (gv / floors)
            b[self.first :] -= gw
            dy = backsolve(b)
            dt = float((-rt[0] - ones @ dy) / (ones @ border))
            dy = dy + dt * border
            dv = (Q.T @ dy + gv) / floors
            du = theta * dv[self.j] + h * (self.PT @ dy + gu)
            moves = (du, dv[self.j] - du, dv, w / sw * dy[self.first :] + gw)
            parts = zip(targets, self.slack, moves, self.primal, strict=True)
            return moves, (dy, dt), tuple((c - s * dx) / x for c, s, dx, x in parts)

        _, mean = interior.complementarity(self.primal, self.slack)
        primal, slack, ahead, behind, (dy, dt) = interior.advance(
            self.primal, self.slack, direction, 0.99 if mean > 1e-8 else 0.9
        )
        if not np.isfinite(dt) or max(ahead, behind) < 1e-6:
            return False
        self.primal, self.slack, self.t, self.y = primal, slack, self.t + ahead * dt, self.y + behind * dy
        return True

    def outcome(self, t: float, dual: np.ndarray, primal: interior.Parts) -> Outcome:
        """The kernel and the prices, unfolded."""
        (u, _, v, _), ratio = primal, self.grid.ratio
        rows = np.tile(v / ratio, (self.grid.knots.size, 1))
        rows[self.i, self.j] += np.minimum(u, v[self.j]) * (ratio - 1) / ratio
        shape = self.share.size + self.i.size, self.i.size + self.points.size + 1
        return self.fold.outcome(t, self.fold.dual(dual * self.share), self.points, v / ratio, rows, shape)

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
from typing import Any

import numpy as np

from optdp.solvers.kernel_lp import Dual, Grid, Outcome, _failure, _unfold
from optdp.solvers.lp import LinearStatus

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
    kept: tuple[float, np.ndarray, np.ndarray, np.ndarray] | None = None
    for _ in range(STEPS):
        error = program.error()
        if error < best:
            best, kept = error, (program.t, program.y.copy(), program.u.copy(), program.v.copy())
        if error <= tolerance or error > 1e6 * best:
            break
        if time.perf_counter() - began > time_limit:
            raise _failure(LinearStatus.TIME_LIMIT)
        if not program.step():
            break
    if kept is None or best > 1e-5:
        raise _failure(LinearStatus.FAILED)
    return program.outcome(*kept)


class _Newton:
    """Data, iterate and step."""

    def __init__(self, grid: Grid, y: np.ndarray, pairs: np.ndarray | None) -> None:
        import scipy.sparse as sp

        self.grid, self.points = grid, y
        k, n = grid.knots.size, grid.samples.size
        self.knot_row, self.sign = grid.orbits(k)
        self.sample_row, _ = grid.orbits(n)
        self.kf, self.nf = int(self.knot_row.max()) + 1, int(self.sample_row.max()) + 1
        self.i, self.j = np.nonzero(np.ones((k, y.size), dtype=bool) if pairs is None else pairs)
        share = 1 / np.bincount(self.knot_row), 1 / np.bincount(self.sample_row)
        self.share = np.concatenate([share[0], share[0], share[1]] if grid.unbiased else share)
        fold_knots = sp.csr_matrix((share[0][self.knot_row], (self.knot_row, np.arange(k))), shape=(self.kf, k))
        fold_samples = sp.csr_matrix((share[1][self.sample_row], (self.sample_row, np.arange(n))), shape=(self.nf, n))

        # Entries of the pairs' columns: row, pair, entry; each pair is in the loss rows of the samples its knot reaches.
        arcs, loss, mix = np.arange(self.i.size), grid.losses(y), sp.csr_matrix(grid.mixing())
        reach = np.diff(mix.indptr)[self.i]
        pair = np.repeat(arcs, reach)
        entry = mix.indptr[self.i][pair] + np.arange(pair.size) - np.repeat(np.cumsum(reach) - reach, reach)
        sample = mix.indices[entry]
        row = self.knot_row[self.i]
        parts = [(row, arcs, share[0][row])]
        floors = [np.ones((self.kf, y.size))]
        if grid.unbiased:
            away = y - grid.knots[:, None]
            parts.append((self.kf + row, arcs, share[0][row] * self.sign[self.i] * away[self.i, self.j]))
            floors.append(fold_knots @ (self.sign[:, None] * away))
        self.first = self.kf * len(parts)
        place = self.sample_row[sample]
        parts.append((self.first + place, pair, share[1][place] * mix.data[entry] * loss[sample, self.j[pair]]))
        floors.append(fold_samples @ loss)
        rows, columns, entries = (np.concatenate(column) for column in zip(*parts, strict=True))
        size = self.first + self.nf
        growth = (grid.ratio - 1) / grid.ratio
        self.P = sp.csr_matrix((growth * entries, (rows, columns)), shape=(size, arcs.size))
        self.PT = self.P.T.tocsr()
        self.M = np.vstack(floors) / grid.ratio
        self.right = np.concatenate([np.ones(self.kf), np.zeros(size - self.kf)])
        self._start()

    def _start(self) -> None:
        """All floors equal, and shares of what may be favoured that fall with the distance d from the input like
        1/(1 + (d/h)^2), on the scale h = e^(-eps/2) of optimal mechanisms: products of u and s_u are then alike.
        """
        grid, count = self.grid, self.points.size
        h = grid.ratio**-0.5
        away = np.abs(self.points[self.j] - grid.knots[self.i])
        f = 0.9 / (1 + (away / h) ** max(grid.power, 2.0))
        mass = float(np.mean((self.P @ f + self.M @ np.ones(count))[: self.kf]))
        self.v, self.u, self.z = np.full(count, 1 / mass), f / mass, (1 - f) / mass
        lost = (self.P @ self.u + self.M @ self.v)[self.first :]
        self.t = float(1.2 * lost.max() + 0.2 * h**grid.power)
        self.w = self.t - lost
        # Prices under which every pair costs its loss.
        self.y = np.concatenate([np.zeros(self.first), np.full(self.nf, -1 / self.nf)])
        cost = -(self.PT @ self.y)
        least = 0.05 * h**grid.power / self.nf
        self.su, self.sz = np.maximum(cost, 0.0) + least, np.maximum(-cost, 0.0) + least
        floors = -(self.M.T @ self.y)
        self.sv = np.maximum(floors - self._by_output(self.sz), 0.1 * floors)
        self.sw = np.full(self.nf, 1 / self.nf)

    def _by_output(self, values: np.ndarray) -> np.ndarray:
        return np.bincount(self.j, weights=values, minlength=self.points.size)

    def _residuals(self) -> tuple[np.ndarray, ...]:
        """Primal residual, and dual ones of u, v, w and t."""
        lhs = self.P @ self.u + self.M @ self.v
        lhs[self.first :] += self.w - self.t
        return (
            self.right - lhs,
            self.PT @ self.y + self.su - self.sz,
            self.M.T @ self.y + self._by_output(self.sz) + self.sv,
            self.y[self.first :] + self.sw,
            np.array([1 + self.y[self.first :].sum()]),
        )

    def error(self) -> float:
        """The largest of the relative gap and the residuals."""
        primal, *dual = self._residuals()
        gap = abs(self.t - float(self.y[: self.kf].sum())) / max(abs(self.t), 1e-300)
        # A kernel that misses its rows by r is off by about as much in value.
        return max(
            gap, float(np.abs(primal).max()) / min(1.0, self.t), *(float(np.abs(d).max(initial=0.0)) for d in dual)
        )

    def step(self) -> bool:
        """One step of predictor and corrector. Returns False if it cannot be taken."""
        import scipy.linalg as la
        import scipy.sparse as sp

        residuals = self._residuals()
        alpha, beta = self.su / self.u, self.sz / self.z
        h = 1 / (alpha + beta)
        theta = beta * h
        floors = self.sv / self.v + self._by_output(alpha * theta)
        lift = sp.csr_matrix((theta, (np.arange(self.i.size), self.j)), shape=(self.i.size, self.points.size))
        Q = self.M + (self.P @ lift).toarray()
        scaled = Q / np.sqrt(floors)
        S = scaled @ scaled.T
        S += (self.P @ sp.diags(h) @ self.PT).toarray()
        diagonal = np.einsum("ii->i", S)
        diagonal[self.first :] += self.w / self.sw
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
        work = h, theta, floors, Q, backsolve, ones, border
        pairs = [(self.u, self.su), (self.z, self.sz), (self.v, self.sv), (self.w, self.sw)]
        count = sum(x.size for x, _ in pairs)
        mu = sum(float(x @ s) for x, s in pairs) / count
        target = [-x * s for x, s in pairs]
        moves = self._direction(work, residuals, target)
        primal, dual = self._lengths(moves, 1.0)
        after = sum(
            float((x + primal * dx) @ (s + dual * ds)) for (x, s), (dx, ds) in zip(pairs, moves[2], strict=True)
        )
        centre = min(1.0, (after / count / mu) ** 3) * mu
        target = [centre - x * s - dx * ds for (x, s), (dx, ds) in zip(pairs, moves[2], strict=True)]
        moves = self._direction(work, residuals, target)
        primal, dual = self._lengths(moves, 0.99 if mu > 1e-8 else 0.9)
        dy, dt, changes = moves
        if not np.isfinite(dt) or max(primal, dual) < 1e-6:
            return False
        for (x, s), (dx, ds) in zip(pairs, changes, strict=True):
            x += primal * dx
            s += dual * ds
        self.t += primal * dt
        self.y += dual * dy
        return True

    def _direction(self, work: Any, residuals: tuple[np.ndarray, ...], target: list[np.ndarray]) -> Any:
        """dy, dt and the changes of (u, s_u), (z, s_z), (v, s_v), (w, s_w) that bring every product to its target."""
        h, theta, floors, Q, backsolve, ones, border = work
        rp, ru, rv, rw, rt = residuals
        cu, cz, cv, cw = target
        gu = cu / self.u - cz / self.z + ru
        gv = self._by_output(cz / self.z + theta * gu) + cv / self.v + rv
        gw = (self.w * rw + cw) / self.sw
        b = rp - self.P @ (h * gu) - Q @ (gv / floors)
        b[self.first :] -= gw
        dy = backsolve(b)
        dt = float((-rt[0] - ones @ dy) / (ones @ border))
        dy = dy + dt * border
        dv = (Q.T @ dy + gv) / floors
        du = theta * dv[self.j] + h * (self.PT @ dy + gu)
        dz = dv[self.j] - du
        dw = self.w / self.sw * dy[self.first :] + gw
        changes = [
            (dx, (c - s * dx) / x)
            for dx, c, s, x in (
                (du, cu, self.su, self.u),
                (dz, cz, self.sz, self.z),
                (dv, cv, self.sv, self.v),
                (dw, cw, self.sw, self.w),
            )
        ]
        return dy, dt, changes

    def _lengths(self, moves: Any, share: float) -> tuple[float, float]:
        """How far primal and dual can go, at most `share` of the way to the boundary."""
        limits = [1.0, 1.0]
        values = [(self.u, self.su), (self.z, self.sz), (self.v, self.sv), (self.w, self.sw)]
        for pair, change in zip(values, moves[2], strict=True):
            for side in range(2):
                falls = change[side] < 0
                if falls.any():
                    limits[side] = min(limits[side], share * float((-pair[side][falls] / change[side][falls]).min()))
        return limits[0], limits[1]

    def outcome(self, t: float, dual: np.ndarray, u: np.ndarray, v: np.ndarray) -> Outcome:
        """The kernel and the prices, unfolded."""
        grid, k = self.grid, self.grid.knots.size
        prices = dual * self.share
        weights = np.maximum(-prices[self.first :], 0.0)[self.sample_row]
        means = self.sign * prices[self.kf : self.first][self.knot_row] if grid.unbiased else np.zeros(k)
        floors, favour = v / grid.ratio, np.zeros((k, self.points.size))
        favour[self.i, self.j] = np.minimum(u, v[self.j]) * (grid.ratio - 1) / grid.ratio
        outputs, floors, rows = _unfold(grid, self.points, floors, floors + favour)
        return Outcome(
            t,
            Dual(grid, weights, prices[: self.kf][self.knot_row], means),
            outputs,
            floors,
            rows,
            self.i.size + self.points.size + 1,
            self.first + self.nf + self.i.size,
        )

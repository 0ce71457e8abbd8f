"""The kernel program on a grid of inputs, as linear programs for HiGHS.

Inputs ("knots") x_1..x_k carry rows K(.|x_i); in between rows are mixed linearly, with weights A[i, p] at the sample
point p. The worst-case loss t is bounded at the sample points only. Two choices matter: samples = knots gives a
relaxation of the continuous problem, whose dual is a lower bound; samples in between as well make the mixed kernel
good everywhere, which gives the mechanism.

    min t   s.t.   m_j <= K_ij <= E m_j,   sum_j K_ij = 1,   [ sum_j K_ij (y_j - x_i) = 0, ]
                   sum_ij A[i, p] K_ij L(|y_j - p|) <= t       (or sum_p prior_p of the left side, minimised)

Three ways to solve it:

- `blocks`: K_ij = m_j + u_ij, one block of columns (m_j, u_1j..u_kj) for each output, pairs (i, j) that cannot pay
  left out, interior point. A block stands for all columns (y_j, S) at once, so that few rounds of pricing are needed.
- `columns`: one column for every output y and set S of favoured inputs, K(y|x_i) = w (E if i in S else 1), generated
  by pricing, simplex with warm starts, duals smoothed.
- `dense`: all K_ij and m_j as written above, no symmetry, no pricing: the reference.

A problem that is symmetric under x -> 1 - x, y -> 1 - y is halved: outputs y <= 1/2 only, rows of mirrored inputs
added up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optdp.solvers.lp import STATUS_OF_HIGHS, LinearProgram, LinearSolver, LinearStatus, stacked
from optdp.solvers.lp import SolverFailure as SolverFailure


@dataclass(frozen=True)
class Grid:
    """One linear program: everything but the outputs. Inputs and outputs are shares of the domain.

    **Arguments:** `ratio`: E; `power`: q of the loss d^q, q >= 1; `knots`; `samples`; `unbiased`; `prior`: weights of
    the samples, or None for the worst case; `symmetric`: whether to halve (knots, samples and range of outputs must
    be symmetric); `matrix`: for a finite alphabet, the losses (inputs, outputs); knots and samples are then 0, 1, 2,
    ... and so are the outputs.
    """

    ratio: float
    power: float
    knots: np.ndarray
    samples: np.ndarray
    unbiased: bool = False
    prior: np.ndarray | None = None
    symmetric: bool = True
    matrix: np.ndarray | None = None

    def mixing(self) -> np.ndarray:
        """A[i, p]: the weight of knot i at sample p."""
        a = np.zeros((self.knots.size, self.samples.size))
        i = np.clip(np.searchsorted(self.knots, self.samples, side="right") - 1, 0, self.knots.size - 2)
        t = (self.samples - self.knots[i]) / (self.knots[i + 1] - self.knots[i])
        place = np.arange(self.samples.size)
        a[i, place] = 1 - t
        a[i + 1, place] += t
        return a

    def losses(self, y: np.ndarray) -> np.ndarray:
        """L(|y_j - p|) as an array (samples, outputs)."""
        if self.matrix is not None:
            return self.matrix[:, y.astype(int)]
        return np.abs(y - self.samples[:, None]) ** self.power

    def orbits(self, count: int) -> tuple[np.ndarray, np.ndarray]:
        """Row of each of `count` symmetric points after folding, and the sign of a mirrored mean."""
        place = np.arange(count)
        if not self.symmetric:
            return place, np.ones(count)
        mirrored = count - 1 - place
        return np.minimum(place, mirrored), np.sign(mirrored - place).astype(float)


@dataclass(frozen=True)
class Dual:
    """Multipliers of a `Grid`: of the losses at the samples, the masses and the means at the knots."""

    grid: Grid
    weights: np.ndarray
    masses: np.ndarray
    means: np.ndarray

    def reduced(self, y: np.ndarray) -> np.ndarray:
        """r_i(y_j) as an array (outputs, knots)."""
        prices = (self.grid.losses(y) * self.weights[:, None]).T @ self.grid.mixing().T
        return prices - self.masses - self.means * (y[:, None] - self.grid.knots)

    def value(self, y: np.ndarray) -> np.ndarray:
        """g(y): the reduced cost of the best column at y."""
        r = self.reduced(y)
        return r.sum(axis=1) + (self.grid.ratio - 1) * np.minimum(r, 0).sum(axis=1)

    def bound(self, least: float) -> float:
        """The lower bound on the grid's optimum, if g >= least."""
        return float((self.masses.sum() + min(least, 0.0)) / self.weights.sum())

    def mix(self, other: Dual, share: float) -> Dual:
        """This dual moved by `share` of the way to another one."""
        parts = (
            (1 - share) * a + share * b
            for a, b in ((self.weights, other.weights), (self.masses, other.masses), (self.means, other.means))
        )
        return Dual(self.grid, *parts)

    def minima(self, span: tuple[float, float]) -> tuple[np.ndarray, np.ndarray]:
        """Outputs at which g has a local minimum on `span`, found on the continuum, and g there.

        For q = 1, g is piecewise linear and convex kinks are at the samples alone. For q = 2, g is a quadratic
        between consecutive roots of the r_i, where its kinks are concave: the vertices that lie in their own piece
        are all there is. For other powers: from the local minima on a fine grid, by golden section.
        """
        grid = self.grid
        if grid.matrix is not None:
            y = np.arange(grid.matrix.shape[1])
            return y, self.value(y)
        inner = grid.samples[(grid.samples > span[0]) & (grid.samples < span[1])]
        if grid.power == 2:
            y = self._vertices(span)
            return y, self.value(y)
        y = np.unique(np.concatenate([[span[0]], inner, [span[1]]]))
        if grid.power != 1:
            y = np.union1d(y, np.linspace(span[0], span[1], 16 * max(grid.knots.size, 9) + 1))
        g = self.value(y)
        wall = np.concatenate([[np.inf], g, [np.inf]])
        low = np.flatnonzero((g <= wall[:-2]) & (g <= wall[2:]))
        if grid.power == 1:
            return y[low], g[low]
        points = self._golden(y[low], np.diff(y).max(), span)
        return points, self.value(points)

    def _vertices(self, span: tuple[float, float]) -> np.ndarray:
        """The local minima for q = 2, and the ends of `span`."""
        mix, x = self.grid.mixing(), self.grid.knots
        heavy, pull = mix @ self.weights, mix @ (self.weights * self.grid.samples) + self.means / 2
        rest = (
            mix @ (self.weights * self.grid.samples**2) - self.masses + self.means * x
        )  # r = heavy y^2 - 2 pull y + rest
        with np.errstate(divide="ignore", invalid="ignore"):
            spread = np.sqrt(pull**2 - heavy * rest)
            roots = np.concatenate([(pull - spread) / heavy, (pull + spread) / heavy, rest / (2 * pull)])
        cuts = np.unique(np.concatenate([span, roots[np.isfinite(roots) & (roots > span[0]) & (roots < span[1])]]))
        share = np.where(self.reduced((cuts[:-1] + cuts[1:]) / 2) < 0, self.grid.ratio, 1.0)
        vertex = (share @ pull) / np.maximum(share @ heavy, 1e-300)
        room = 1e-9 * (span[1] - span[0])
        own = (vertex >= cuts[:-1] - room) & (vertex <= cuts[1:] + room)
        return np.unique(np.concatenate([np.clip(vertex[own], *span), span]))

    def _golden(self, y: np.ndarray, step: float, span: tuple[float, float]) -> np.ndarray:
        ratio = (np.sqrt(5) - 1) / 2
        a, b = np.maximum(y - step, span[0]), np.minimum(y + step, span[1])
        for _ in range(40):
            c, d = b - ratio * (b - a), a + ratio * (b - a)
            left = self.value(c) < self.value(d)
            a, b = np.where(left, a, c), np.where(left, d, b)
        return (a + b) / 2


@dataclass(frozen=True)
class Outcome:
    """A solved grid: its optimum over the given outputs, the dual, and the kernel (outputs, floors, rows)."""

    value: float
    dual: Dual
    outputs: np.ndarray
    floors: np.ndarray
    rows: np.ndarray
    variables: int
    constraints: int


def _failure(status: LinearStatus) -> SolverFailure:
    return SolverFailure(f"the solver stopped without a solution: {status.value}", status)


def _highs(time_limit: float) -> Any:
    import highspy

    solver = highspy.Highs()
    tight = [(f"{side}_feasibility_tolerance", 1e-9) for side in ("primal", "dual")]
    for name, value in [("output_flag", False), ("threads", 1), ("time_limit", max(time_limit, 0.01)), *tight]:
        solver.setOptionValue(name, value)
    return solver


def _run(solver: Any) -> tuple[float, np.ndarray, np.ndarray]:
    """Objective, columns and row duals. **Raises** SolverFailure."""
    solver.run()
    status = STATUS_OF_HIGHS.get(solver.getModelStatus().name, LinearStatus.FAILED)
    solution = solver.getSolution()
    if status not in (LinearStatus.OPTIMAL, LinearStatus.IMPRECISE) or not solution.dual_valid:
        raise _failure(status)
    return solver.getInfo().objective_function_value, np.array(solution.col_value), np.array(solution.row_dual)


def _pass(solver: Any, matrix: Any, cost: np.ndarray, low: np.ndarray, rows: tuple[np.ndarray, np.ndarray]) -> None:
    import highspy

    lp = highspy.HighsLp()
    matrix = matrix.tocsc()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = cost, low, np.full(cost.size, highspy.kHighsInf)
    lp.row_lower_, lp.row_upper_ = rows
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_, lp.a_matrix_.value_ = matrix.indptr, matrix.indices, matrix.data
    solver.passModel(lp)


def solve_blocks(
    grid: Grid, y: np.ndarray, *, pairs: np.ndarray | None = None, vertex: bool = False, time_limit: float = 1e9
) -> Outcome:
    """The optimum over the outputs `y` (those <= 1/2 of a symmetric grid) by interior point.

    **Arguments:** `pairs`: (knots, outputs) booleans, which inputs may favour which outputs; None: all. `vertex`:
    cross over to a vertex, which uses fewer outputs.
    """
    import scipy.sparse as sp

    k, n, m = grid.knots.size, grid.samples.size, y.size
    knot_row, sign = grid.orbits(k)
    sample_row, _ = grid.orbits(n)
    kf, nf = int(knot_row.max()) + 1, int(sample_row.max()) + 1
    i, j = np.nonzero(np.ones((k, m), dtype=bool) if pairs is None else pairs)
    arcs = np.arange(i.size)
    loss, mix = grid.losses(y), sp.csr_matrix(grid.mixing())
    fold_knots = sp.csr_matrix((np.ones(k), (knot_row, np.arange(k))), shape=(kf, k))
    fold_samples = sp.csr_matrix((np.ones(n), (sample_row, np.arange(n))), shape=(nf, n))
    size_knots, size_samples = np.bincount(knot_row).astype(float), np.bincount(sample_row).astype(float)

    # Each pair (i, j) appears in the loss rows of the samples that knot i reaches.
    reach = np.diff(mix.indptr)[i]
    pair = np.repeat(arcs, reach)
    inside = np.arange(pair.size) - np.repeat(np.cumsum(reach) - reach, reach)
    entry = mix.indptr[i][pair] + inside
    sample = mix.indices[entry]
    pair_loss = sp.csr_matrix((mix.data[entry] * loss[sample, j[pair]], (sample, pair)), shape=(n, arcs.size))

    mass = sp.hstack(
        [
            sp.csr_matrix(size_knots[:, None] * np.ones(m)),
            sp.csr_matrix((np.ones(arcs.size), (knot_row[i], arcs)), shape=(kf, arcs.size)),
        ]
    )
    blocks = [mass]
    equal = [size_knots]
    if grid.unbiased:
        away = y - grid.knots[:, None]
        turn = sp.diags(sign)
        blocks.append(
            sp.hstack(
                [
                    fold_knots @ turn @ sp.csr_matrix(away),
                    sp.csr_matrix((sign[i] * away[i, j], (knot_row[i], arcs)), shape=(kf, arcs.size)),
                ]
            )
        )
        equal.append(np.zeros(kf))
    cap = sp.hstack(
        [sp.csr_matrix((np.full(arcs.size, 1 - grid.ratio), (arcs, j)), shape=(arcs.size, m)), sp.identity(arcs.size)]
    )
    fixed = np.concatenate(equal)
    if grid.prior is None:
        losses = sp.hstack([fold_samples @ sp.csr_matrix(loss), fold_samples @ pair_loss])
        matrix = sp.vstack(
            [
                sp.hstack([sp.csr_matrix((fixed.size, 1)), sp.vstack(blocks)]),
                sp.hstack([sp.csr_matrix(-size_samples[:, None]), losses]),
                sp.hstack([sp.csr_matrix((arcs.size, 1)), cap]),
            ]
        )
        cost = np.zeros(matrix.shape[1])
        cost[0] = 1.0
        free = 1
    else:
        matrix = sp.vstack([*blocks, cap])
        cost = np.concatenate([grid.prior @ loss, grid.prior @ pair_loss])
        nf, free = 0, 0
    low = np.zeros(cost.size)
    low[:free] = -np.inf
    rows = np.concatenate([fixed, np.full(nf + arcs.size, -np.inf)]), np.concatenate([fixed, np.zeros(nf + arcs.size)])
    solver = _highs(time_limit)
    solver.setOptionValue("solver", "ipm")
    solver.setOptionValue("run_crossover", "on" if vertex else "off")
    _pass(solver, matrix, cost, low, rows)
    value, found, duals = _run(solver)

    worst = np.maximum(-duals[fixed.size : fixed.size + nf], 0.0)
    weights = worst[sample_row] if grid.prior is None else grid.prior
    means = sign * duals[kf : 2 * kf][knot_row] if grid.unbiased else np.zeros(k)
    dual = Dual(grid, weights, duals[:kf][knot_row], means)
    floors, favour = np.maximum(found[free : free + m], 0.0), np.zeros((k, m))
    favour[i, j] = np.clip(found[free + m :], 0.0, (grid.ratio - 1) * floors[j])
    outputs, floors, kernel = _unfold(grid, y, floors, floors + favour)
    return Outcome(value, dual, outputs, floors, kernel, *reversed(matrix.shape))


def _unfold(
    grid: Grid, y: np.ndarray, floors: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The whole kernel from the half with outputs y <= 1/2: half of it and half of its mirror image."""
    if grid.symmetric:
        y, floors = np.concatenate([y, 1 - y]), np.concatenate([floors, floors]) / 2
        rows = np.hstack([rows, rows[::-1]]) / 2
    outputs, place = np.unique(y, return_inverse=True)
    merged = np.zeros((rows.shape[0], outputs.size))
    np.add.at(merged.T, place, rows.T)
    return outputs, np.bincount(place, weights=floors), merged


def dense_program(grid: Grid, y: np.ndarray) -> LinearProgram:
    """The program as it is written above, over the outputs `y`: rows "mass", "mean" (unbiased), "loss" (worst case), "most" and
    "least" (likelihood ratios); variables "kernel" (row by row), "floor" and, for the worst case, "value".
    """
    import scipy.sparse as sp

    k, n, m = grid.knots.size, grid.samples.size, y.size
    loss, mix = grid.losses(y), grid.mixing()
    entries = np.arange(k * m)  # K[i, j] at i m + j, then m_j, then t
    floor = sp.csr_matrix((np.ones(k * m), (entries, entries % m)), shape=(k * m, m))
    names, blocks, right = ["mass"], [np.kron(np.eye(k), np.ones(m))], [np.ones(k)]
    if grid.unbiased:
        names.append("mean")
        blocks.append(np.vstack([np.kron(np.eye(k)[i], y - x) for i, x in enumerate(grid.knots)]))
        right.append(np.zeros(k))
    priced = np.vstack([np.kron(mix[:, p], loss[p]) for p in range(n)])
    worst = grid.prior is None
    if worst:
        names.append("loss")
        blocks.append(priced)
        right.append(np.zeros(n))
    fixed = k * (2 if grid.unbiased else 1)
    body = sp.vstack([
        sp.hstack([sp.csr_matrix(np.vstack(blocks)), sp.csr_matrix((sum(map(len, right)), m))]),
        sp.hstack([sp.identity(k * m), -grid.ratio * floor]),
        sp.hstack([-sp.identity(k * m), floor]),
    ])  # fmt: skip
    high = np.concatenate([*right, np.zeros(2 * k * m)])
    low = np.where(np.arange(high.size) < fixed, high, -np.inf)
    variables = [("kernel", k * m), ("floor", m)]
    if worst:
        last = np.zeros((high.size, 1))
        last[fixed : fixed + n] = -1.0
        body = sp.hstack([body, sp.csr_matrix(last)])
        variables.append(("value", 1))
    cost = np.append(np.zeros(k * m + m), 1.0) if worst else np.concatenate([grid.prior @ priced, np.zeros(m)])
    lower = np.zeros(cost.size)
    lower[k * m + m :] = -np.inf
    sizes = [*zip(names, map(len, right), strict=True), ("most", k * m), ("least", k * m)]
    return LinearProgram(
        cost, body, low, high, lower, blocks=stacked(sizes), variables=stacked(variables), name="kernel"
    )


def solve_dense(
    grid: Grid, y: np.ndarray, *, solver: LinearSolver | None = None, time_limit: float = float("inf")
) -> Outcome:
    """The reference: every kernel entry a variable, likelihood ratios as constraints, no symmetry; simplex, or `solver`."""
    grid = replace(grid, symmetric=False)
    program = dense_program(grid, y)
    found = program.solve(solver, time_limit=time_limit)
    if not found.usable:
        raise _failure(found.status)
    weights = grid.prior if grid.prior is not None else np.maximum(-found.dual("loss"), 0.0)
    means = found.dual("mean") if grid.unbiased else np.zeros(grid.knots.size)
    order = np.argsort(y)
    floors, kernel = np.maximum(found.value("floor"), 0.0), found.value("kernel").reshape(grid.knots.size, y.size)
    dual = Dual(grid, weights, found.dual("mass"), means)
    return Outcome(found.objective, dual, y[order], floors[order], kernel[:, order], *reversed(program.rows.shape))


def solve_columns(
    grid: Grid,
    y: np.ndarray,
    span: tuple[float, float] = (0.0, 1.0),
    *,
    tolerance: float = 1e-9,
    smoothing: float = 0.5,
    rounds: int = 500,
    time_limit: float = 1e9,
) -> Outcome:
    """Column generation over pairs (output, set of favoured inputs): the master is re-solved by simplex from its last
    basis.

    Starts from the empty set at every output of `y`. Each round prices at the present dual and at one moved by
    `smoothing` towards the best dual so far, and adds the best set for each local minimum of g on `span` (and for the
    outputs in `y`), until the bound meets the value.
    """
    import time

    import highspy

    began = time.perf_counter()
    solver = _highs(time_limit)
    solver.setOptionValue("presolve", "off")
    knot_row, sign = grid.orbits(grid.knots.size)
    sample_row, _ = grid.orbits(grid.samples.size)
    kf, nf = int(knot_row.max()) + 1, 0 if grid.prior is not None else int(sample_row.max()) + 1
    sizes, mix = np.bincount(knot_row).astype(float), grid.mixing()
    inf, empty = highspy.kHighsInf, np.array([], dtype=np.int32)
    for size in sizes:
        solver.addRow(size, size, 0, empty, np.array([]))
    for _ in range(kf if grid.unbiased else 0):
        solver.addRow(0.0, 0.0, 0, empty, np.array([]))
    first = solver.getNumRow()
    for _ in range(nf):
        solver.addRow(-inf, 0.0, 0, empty, np.array([]))
    if nf:
        worst = np.arange(first, first + nf, dtype=np.int32)
        solver.addCol(1.0, -inf, inf, nf, worst, -np.bincount(sample_row).astype(float))
    made: list[tuple[float, np.ndarray]] = []

    def add(points: np.ndarray, sets: np.ndarray) -> None:
        height = np.where(sets, grid.ratio, 1.0)
        rows = [_gather(height, knot_row, kf)]
        if grid.unbiased:
            rows.append(_gather(height * (points[:, None] - grid.knots) * sign, knot_row, kf))
        loss = (height @ mix) * grid.losses(points).T
        cost = np.zeros(points.size) if grid.prior is None else loss @ grid.prior
        if nf:
            rows.append(_gather(loss, sample_row, nf))
        entries = np.hstack(rows)
        place, count = np.nonzero(entries)[1].astype(np.int32), (entries != 0).sum(axis=1)
        starts = np.concatenate([[0], np.cumsum(count)[:-1]]).astype(np.int32)
        solver.addCols(
            points.size,
            cost,
            np.zeros(points.size),
            np.full(points.size, inf),
            place.size,
            starts,
            place,
            entries[entries != 0],
        )
        made.extend(zip(points.tolist(), sets, strict=True))

    add(y, np.zeros((y.size, grid.knots.size), dtype=bool))
    if grid.unbiased:  # a first kernel that is unbiased: the two ends, favoured alone by sets that are half lines
        steps = np.arange(grid.knots.size)
        for end, sets in ((y.min(), steps[None, :] <= steps[:, None]), (y.max(), steps[None, :] >= steps[:, None])):
            add(np.full(grid.knots.size, end), sets)
        if grid.symmetric:
            add(np.full(grid.knots.size, y.min()), steps[None, :] >= steps[:, None])
    best, bound = None, -np.inf
    for _ in range(rounds):
        solver.setOptionValue("time_limit", max(0.01, time_limit - (time.perf_counter() - began)) + solver.getRunTime())
        value, found, duals = _run(solver)
        weights = grid.prior if grid.prior is not None else np.maximum(-duals[first : first + nf], 0.0)[sample_row]
        dual = Dual(
            grid,
            weights,
            duals[:kf][knot_row],
            sign * duals[kf : 2 * kf][knot_row] if grid.unbiased else np.zeros(knot_row.size),
        )
        size = len(made)
        for trial in [dual] if best is None else [dual, dual.mix(best, smoothing)]:
            points, g = trial.minima(span)
            reached = trial.bound(float(g.min()))
            if reached > bound:
                best, bound = trial, reached
            points = np.union1d(points, y)
            points = points[points <= 0.5] if grid.symmetric else points
            sets = trial.reduced(points) < 0
            true = dual.reduced(points)
            pays = true.sum(axis=1) + (grid.ratio - 1) * np.where(sets, true, 0.0).sum(axis=1) < -1e-10 * max(
                abs(value), 1e-3
            )
            if pays.any():
                add(points[pays], sets[pays])
        if bound >= value - tolerance * abs(value) or len(made) == size:
            break
    assert best is not None
    used = np.flatnonzero(found[bool(nf) :] > 0)
    points = np.array([made[c][0] for c in used])
    mass = found[bool(nf) :][used]
    rows = (np.where(np.array([made[c][1] for c in used]), grid.ratio, 1.0) * mass[:, None]).T
    outputs, place = np.unique(points, return_inverse=True)
    merged = np.zeros((grid.knots.size, outputs.size))
    np.add.at(merged.T, place, rows.T)
    outputs, floors, kernel = _unfold(grid, outputs, np.bincount(place, weights=mass), merged)
    return Outcome(value, best, outputs, floors, kernel, solver.getNumCol(), solver.getNumRow())


def _gather(entries: np.ndarray, place: np.ndarray, count: int) -> np.ndarray:
    """Columns of `entries` added up by `place`."""
    total = np.zeros((entries.shape[0], count))
    np.add.at(total.T, place, entries.T)
    return total

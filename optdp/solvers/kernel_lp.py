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

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from optdp.solvers.lp import Highs, LinearProgram, LinearSolver, stacked
from optdp.solvers.lp import SolverFailure as SolverFailure

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


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


class Folding:
    """The rows of a grid's program: masses, means (if unbiased) and losses, those of mirrored points added up."""

    def __init__(self, grid: Grid) -> None:
        from scipy.sparse import csr_matrix

        self.grid, k, n = grid, grid.knots.size, grid.samples.size
        self.knot, self.sign = grid.orbits(k)
        self.sample, _ = grid.orbits(n)
        self.fold_knots = csr_matrix((np.ones(k), (np.arange(k), self.knot)))
        self.fold_samples = csr_matrix((np.ones(n), (np.arange(n), self.sample)))
        knots, samples = (np.bincount(place).astype(float) for place in (self.knot, self.sample))
        #: How many rows each stands for, where the losses begin, and the right sides of the rows before them.
        self.sizes = np.concatenate([knots, knots, samples] if grid.unbiased else [knots, samples])
        self.masses, self.first = knots.size, self.sizes.size - samples.size
        self.right = np.concatenate([knots, np.zeros(self.first - knots.size)])

    def entries(self, heights: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Columns with these heights (columns, knots) at the outputs `y`, as an array (rows, columns)."""
        grid, parts = self.grid, [heights @ self.fold_knots]
        if grid.unbiased:
            parts.append((heights * (y[:, None] - grid.knots) * self.sign) @ self.fold_knots)
        parts.append(((heights @ grid.mixing()) * grid.losses(y).T) @ self.fold_samples)
        return np.hstack(parts).T

    def pairs(self, i: np.ndarray, j: np.ndarray, y: np.ndarray) -> csr_matrix:
        """The same of height 1 for the knot i at the output y_j alone: it is in the losses of the samples that it reaches."""
        from scipy.sparse import csr_matrix

        grid, arcs, mix = self.grid, np.arange(i.size), csr_matrix(self.grid.mixing())
        reach = np.diff(mix.indptr)[i]
        pair = np.repeat(arcs, reach)
        entry = mix.indptr[i][pair] + np.arange(pair.size) - np.repeat(np.cumsum(reach) - reach, reach)
        sample, row = mix.indices[entry], self.knot[i]
        parts = [(row, arcs, np.ones(i.size))]
        if grid.unbiased:
            parts.append((self.masses + row, arcs, self.sign[i] * (y[j] - grid.knots[i])))
        parts.append((self.first + self.sample[sample], pair, mix.data[entry] * grid.losses(y)[sample, j[pair]]))
        rows, columns, entries = (np.concatenate(column) for column in zip(*parts, strict=True))
        return csr_matrix((entries, (rows, columns)), shape=(self.sizes.size, i.size))

    def priced(self, columns: csr_matrix) -> tuple[np.ndarray, csr_matrix]:
        """(costs, rows) of columns in the linear program: under a prior, losses are costs."""
        if self.grid.prior is None:
            return np.zeros(columns.shape[1]), columns
        return self.grid.prior @ columns[self.first :], columns[: self.first]

    def program(self, columns: csr_matrix, caps: csr_matrix | None = None) -> LinearProgram:
        """The program over these columns, with further rows `caps` <= 0. In the worst case, t is the first variable."""
        from scipy.sparse import csr_matrix, hstack, vstack

        (cost, body), worst = self.priced(columns), int(self.grid.prior is None)
        if worst:
            top = np.concatenate([np.zeros(self.first), -self.sizes[self.first :]])
            cost, body = np.append(1.0, cost), hstack([csr_matrix(top[:, None]), body])
        if caps is not None:
            body = vstack([body, hstack([csr_matrix((caps.shape[0], worst)), caps])])
        rest, lower = body.shape[0] - self.first, np.zeros(cost.size)
        lower[:worst] = -np.inf
        below, above = (np.concatenate([self.right, np.full(rest, limit)]) for limit in (-np.inf, 0.0))
        return LinearProgram(cost, body, below, above, lower)

    def dual(self, prices: np.ndarray) -> Dual:
        """The multipliers, from the prices of the rows."""
        grid, means = self.grid, np.zeros(self.knot.size)
        weights = (
            np.maximum(-prices[self.first : self.sizes.size], 0.0)[self.sample] if grid.prior is None else grid.prior
        )
        if grid.unbiased:
            means = self.sign * prices[self.masses : self.first][self.knot]
        return Dual(grid, weights, prices[: self.masses][self.knot], means)

    def outcome(
        self, value: float, dual: Dual, y: np.ndarray, floors: np.ndarray, rows: np.ndarray, shape: tuple[int, int]
    ) -> Outcome:
        """The whole kernel from the half with outputs y <= 1/2: half of it and half of its mirror image; equal outputs merged."""
        if self.grid.symmetric:
            y, floors = np.concatenate([y, 1 - y]), np.concatenate([floors, floors]) / 2
            rows = np.hstack([rows, rows[::-1]]) / 2
        outputs, place = np.unique(y, return_inverse=True)
        merged = np.zeros((rows.shape[0], outputs.size))
        np.add.at(merged.T, place, rows.T)
        return Outcome(value, dual, outputs, np.bincount(place, weights=floors), merged, *reversed(shape))


def solve_blocks(
    grid: Grid, y: np.ndarray, *, pairs: np.ndarray | None = None, vertex: bool = False, time_limit: float = 1e9
) -> Outcome:
    """The optimum over the outputs `y` (those <= 1/2 of a symmetric grid) by interior point.

    **Arguments:** `pairs`: (knots, outputs) booleans, which inputs may favour which outputs; None: all. `vertex`:
    cross over to a vertex, which uses fewer outputs.
    """
    from scipy.sparse import csr_matrix, hstack, identity

    fold, k, m = Folding(grid), grid.knots.size, y.size
    i, j = np.nonzero(np.ones((k, m), dtype=bool) if pairs is None else pairs)
    arcs = i.size
    most = csr_matrix((np.full(arcs, 1 - grid.ratio), (np.arange(arcs), j)), shape=(arcs, m))
    columns = hstack([csr_matrix(fold.entries(np.ones((m, k)), y)), fold.pairs(i, j, y)], format="csr")
    program = fold.program(columns, hstack([most, identity(arcs)]))
    found = program.solve(Highs("ipm", crossover=vertex), time_limit=time_limit).checked()
    floors, favours = np.split(np.maximum(found.x[-m - arcs :], 0.0), [m])
    rows = np.tile(floors, (k, 1))
    rows[i, j] += np.minimum(favours, (grid.ratio - 1) * floors[j])
    return fold.outcome(found.objective, fold.dual(found.row_dual), y, floors, rows, program.rows.shape)


def dense_program(grid: Grid, y: np.ndarray) -> LinearProgram:
    """The program as it is written above, over the outputs `y`: rows "mass", "mean" (unbiased), "loss" (worst case), "most" and
    "least" (likelihood ratios); variables "value" (worst case), "kernel" (row by row) and "floor".
    """
    from scipy.sparse import csr_matrix, hstack, identity, vstack

    fold, k, m = Folding(replace(grid, symmetric=False)), grid.knots.size, y.size
    i, j = (place.ravel() for place in np.indices((k, m)))
    floor = csr_matrix((np.ones(k * m), (np.arange(k * m), j)), shape=(k * m, m))
    ratios = vstack([hstack([identity(k * m), -grid.ratio * floor]), hstack([-identity(k * m), floor])])
    kernel = fold.pairs(i, j, y)
    program = fold.program(hstack([kernel, csr_matrix((kernel.shape[0], m))], format="csr"), ratios)
    program.rows.eliminate_zeros()
    means, worst = k * grid.unbiased, grid.prior is None
    rows = [("mass", k), ("mean", means), ("loss", worst * grid.samples.size), ("most", k * m), ("least", k * m)]
    program.blocks = stacked([row for row in rows if row[1]])
    program.variables = stacked([("value", 1)] * worst + [("kernel", k * m), ("floor", m)])
    program.name = "kernel"
    return program


def solve_dense(
    grid: Grid, y: np.ndarray, *, solver: LinearSolver | None = None, time_limit: float = float("inf")
) -> Outcome:
    """The reference: every kernel entry a variable, likelihood ratios as constraints, no symmetry; simplex, or `solver`."""
    grid = replace(grid, symmetric=False)
    program = dense_program(grid, y)
    found = program.solve(solver, time_limit=time_limit).checked()
    weights = grid.prior if grid.prior is not None else np.maximum(-found.dual("loss"), 0.0)
    means = found.dual("mean") if grid.unbiased else np.zeros(grid.knots.size)
    dual, rows = Dual(grid, weights, found.dual("mass"), means), found.value("kernel").reshape(grid.knots.size, y.size)
    floors = np.maximum(found.value("floor"), 0.0)
    return Folding(grid).outcome(found.objective, dual, y, floors, rows, program.rows.shape)


def solve_columns(
    grid: Grid, y: np.ndarray, span: tuple[float, float] = (0.0, 1.0), *, tolerance: float = 1e-9,
    smoothing: float = 0.5, rounds: int = 500, time_limit: float = 1e9,
) -> Outcome:  # fmt: skip
    """Column generation over pairs (output, set of favoured inputs): the master is re-solved by simplex from its last
    basis.

    Starts from the empty set at every output of `y`. Each round prices at the present dual and at one moved by
    `smoothing` towards the best dual so far, and adds the best set for each local minimum of g on `span` (and for the
    outputs in `y`), until the bound meets the value.
    """
    from scipy.sparse import csr_matrix

    began, fold, steps = time.perf_counter(), Folding(grid), np.arange(grid.knots.size)
    points, sets = [y], [np.zeros((y.size, steps.size), dtype=bool)]
    if grid.unbiased:  # a first kernel that is unbiased: the two ends, favoured alone by sets that are half lines
        left, right = steps <= steps[:, None], steps >= steps[:, None]
        for end, half in [(y.min(), left), (y.max(), right)] + [(y.min(), right)] * grid.symmetric:
            points.append(np.full(steps.size, end))
            sets.append(half)

    def made(outputs: np.ndarray, favoured: np.ndarray) -> csr_matrix:
        return csr_matrix(fold.entries(np.where(favoured, grid.ratio, 1.0), outputs))

    first = fold.program(made(np.concatenate(points), np.vstack(sets)))
    session = Highs(options=(("presolve", "off"),)).session(first)
    best, bound = None, -np.inf
    for _ in range(rounds):
        found = session.solve(time_limit=time_limit - (time.perf_counter() - began)).checked()
        value, dual, grown = found.objective, fold.dual(found.row_dual), False
        for trial in [dual] if best is None else [dual, dual.mix(best, smoothing)]:
            low, g = trial.minima(span)
            reached = trial.bound(float(g.min()))
            if reached > bound:
                best, bound = trial, reached
            low = np.union1d(low, y)
            low = low[low <= 0.5] if grid.symmetric else low
            favoured, cost = trial.reduced(low) < 0, dual.reduced(low)
            gain = cost.sum(axis=1) + (grid.ratio - 1) * np.where(favoured, cost, 0.0).sum(axis=1)
            pays = gain < -1e-10 * max(abs(value), 1e-3)
            if pays.any():
                points.append(low[pays])
                sets.append(favoured[pays])
                session.add_columns(*fold.priced(made(points[-1], sets[-1])))
                grown = True
        if bound >= value - tolerance * abs(value) or not grown:
            break
    assert best is not None
    mass = found.x[int(grid.prior is None) :]
    used = np.flatnonzero(mass > 0)
    heights = np.where(np.vstack(sets)[used], grid.ratio, 1.0) * mass[used][:, None]
    return fold.outcome(value, best, np.concatenate(points)[used], mass[used], heights.T, session.program.rows.shape)

"""The linear program over posteriors, solved by column generation.

    max sum_k w_k phi(r_k)   over weights w_k >= 0 of posteriors r_k in Q   with   sum_k w_k r_k = P.

In ratios s = r / P the rows are sum_k w_k s_k(i) = 1: they are of one scale however rare a category is. The prices nu of
the rows (per unit of r) are a dual point, phi(r) <= nu.r + sigma on Q with sigma from the pricing problem, and the
next columns are posteriors at which phi - nu.r is positive.

The dual values of such a degenerate program oscillate. They are therefore kept in a box around the best dual point so far
(slack columns whose cost is the box's edge), which shrinks when it does not help; and for a sum the first box comes
from a problem with half as many categories, neighbouring values merged, whose posteriors are columns here too.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from optdp.design.lip.pricing import ENTER, Priced, Pricer, Sum
from optdp.solvers.lp import Highs, LinearProgram, LinearResult, LinearSolver, LinearStatus, SolverFailure

#: Below this many categories, column generation for a sum starts from scratch.
COARSEST = 24
#: How closely merged problems are solved (in units of the prior variance).
COARSE = 1e-5
#: Solvers that end inside leave small weights where there are none: those below this are dropped.
USED = 1e-9
#: Simplex iterations per row after which a solve counts as stalled (a few are usual).
STALL = 12
#: Many columns at once, and more of them later: from any basis the primal simplex method goes on at once. Rows are of one scale.
PRIMAL = (("presolve", "off"), ("simplex_scale_strategy", 0), ("simplex_strategy", 4))
#: Costs that HiGHS takes for infinite: prices are in no box then.
INFINITE = 1e20
#: By how much HiGHS may miss a row or the sign of a weight before it is asked another way.
MISSED = 1e-7
#: The last of these ways.
INSIDE = Highs(method="ipm", tolerance=1e-8, crossover=False)
#: Column generation gives up after so many rounds in a row that do not bring bound and value closer.
PATIENCE = 60
#: The last solve may end this share of the time so far after the deadline: without it the others were for nothing.
LAST = 0.1

#: Where prices are kept: (centre, radius).
Box = tuple[np.ndarray, float]
#: (objective, prices, weights, largest slack).
Solved = tuple[float, np.ndarray, np.ndarray, float]


@dataclass(frozen=True)
class Generated:
    """A solution of the program: posteriors with weights, the best dual point, and what is believed of both."""

    posteriors: np.ndarray
    weights: np.ndarray
    objective: float
    nu: np.ndarray
    bound: float
    columns: int
    rounds: int
    timed_out: bool


class Master:
    """The restricted program in a solver's session, if `boxed` with slack columns that keep each price in a box.

    Its rows are in z_k = (r_k / P - b_k) / (1 - 1/E), where b_k is the least r / P of a posterior, which most categories have:
    sum_k w_k z_k(i) = y for every i, sum_k w_k = 1 is the same system (add up the rows with weights P). So most entries are
    0 and the others of one scale. Its prices are those of r less their mean, times 1 - 1/E.
    """

    def __init__(self, p: np.ndarray, ratio: float, solver: LinearSolver | None, boxed: bool = True) -> None:
        from scipy.sparse import csr_matrix

        self.p, self.d, self.scale, self.own = p, p.size, 1 - 1 / ratio, solver is None
        self.blocks: list[np.ndarray] = []
        self.entries: list[np.ndarray] = []  # dense: to multiply a few times is cheaper than to join sparse ones
        pairs = self.d if boxed else 0
        self.slack, self.right = slice(0, 2 * pairs), np.append(np.zeros(self.d), 1.0)
        rows, each = np.zeros((self.d + 1, 2 * pairs + 1)), np.arange(pairs)
        rows[each, 2 * each], rows[each, 2 * each + 1], rows[:-1, -1] = 1.0, -1.0, -1.0  # the last column is y
        self.rows = csr_matrix(rows)
        # Simplex, from the last basis or at once; where degeneracy makes it stall, interior point and crossover once.
        limit, options = (STALL, ()) if boxed else (4 * STALL, PRIMAL)
        solver = solver or Highs(tolerance=1e-10, iterations=limit * self.d, options=options)
        cost = np.zeros(rows.shape[1])
        self.session = solver.session(LinearProgram(cost, self.rows, self.right, self.right, maximise=True))

    def add(self, posteriors: np.ndarray, gains: np.ndarray) -> None:
        from scipy.sparse import csc_matrix

        self.blocks.append(posteriors)
        s = posteriors / self.p
        z = np.column_stack([(s - s.min(axis=1, keepdims=True)) / self.scale, np.ones(gains.size)])
        z[abs(z) < 1e-13] = 0.0
        self.entries.append(z)
        row, column = np.nonzero(z)
        starts = np.searchsorted(row, np.arange(gains.size + 1))
        self.session.add_columns(gains, csc_matrix((z[row, column], column, starts), shape=(self.d + 1, gains.size)))

    def within(self, deadline: float, box: Box | None) -> Solved | None:
        """(objective, prices, weights, largest slack), or None where it is stopped at the deadline; without a box no slack."""
        cost = np.full(self.slack.stop, np.inf)
        if box is not None:
            centre, radius = self.scale * (box[0] - float(box[0] @ self.p)), self.scale * box[1]
            cost = np.column_stack([self.p * (centre - radius), -self.p * (centre + radius)]).ravel()
        if (abs(cost) < INFINITE).all():
            self.session.change(self.slack, cost=cost, upper=np.full(cost.size, np.inf))
        else:
            self.session.change(self.slack, upper=np.zeros(cost.size))
        found = self.session.solve(time_limit=deadline - time.perf_counter())
        if not self._good(found):
            found = self._better(found, self.session.solve(time_limit=deadline - time.perf_counter(), method="ipm"))
            if self.own and not self._good(found):
                left = deadline - time.perf_counter()
                found = self._better(found, INSIDE.solve(self.session.program, time_limit=left))
        if found.status is LinearStatus.TIME_LIMIT:
            return None
        if not found.usable:
            raise SolverFailure(f"the linear program over posteriors: {found.message}", found.status)
        prices = found.row_dual[:-1] / (self.p * self.scale) + found.row_dual[-1]
        return found.objective, prices, found.x[self.slack.stop + 1 :], float(found.x[self.slack].max(initial=0.0))

    def used(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The posteriors that have a weight, and their weights."""
        used = weights > (0.0 if self.own else USED)
        return np.vstack(self.blocks)[used], weights[used]

    def _good(self, found: LinearResult) -> bool:
        """Whether it can be used; where rows are all but dependent, simplex and crossover may end with weights below 0."""
        return found.usable and (not self.own or self._missed(found) <= MISSED)

    def _better(self, found: LinearResult, other: LinearResult) -> LinearResult:
        worse = found.usable and (not other.usable or self._missed(found) < self._missed(other))
        return found if worse else other

    def _missed(self, found: LinearResult) -> float:
        """By how much a row is missed without what is below 0, which is dropped: of a rare category little is much."""
        x, at = np.maximum(found.x, 0.0), self.slack.stop + 1
        off = self.rows @ x[:at] - self.right
        for z in self.entries:
            off += x[at : at + len(z)] @ z
            at += len(z)
        return float(abs(off).max())


def generate(
    pricer: Pricer, start: np.ndarray, weights: np.ndarray, centre: np.ndarray, radius: float, *, tol: float,
    deadline: float, solver: LinearSolver | None = None, max_rounds: int = 2000, patience: int = PATIENCE,
) -> Generated:  # fmt: skip
    """Column generation from the columns `start` and the dual point `centre`, until bound - objective <= tol.

    **Arguments:** `weights`: of the first columns, with which they are a mechanism: what is returned where no program is
    solved in time (if empty, the prior is); `radius`: of the first box around `centre`, at most; `deadline`: on the clock of
    `time.perf_counter`; `patience`: rounds in a row that may pass without bringing them closer.
    """
    p, begun = pricer.probabilities, time.perf_counter()
    master = Master(p, pricer.ratio, solver)
    posteriors = np.vstack([p[None], start])
    master.add(posteriors, pricer.gain(posteriors))
    columns = len(posteriors)

    def look(nu: np.ndarray, accuracy: float) -> tuple[Priced, float]:
        nonlocal columns
        priced = pricer.price(nu, accuracy)
        good = priced.reduced > ENTER
        if good.any():
            master.add(priced.posteriors[good], priced.gains[good])
            columns += int(good.sum())
        return priced, float(nu @ p) + priced.excess

    priced, bound = look(centre, tol)
    if len(start) and priced.excess > tol:
        radius = min(radius, 4 * priced.excess)  # the centre is already good
    best = centre + priced.excess  # sum r = 1: a constant makes it feasible
    failures, idle, closest, timed_out = 0, 0, np.inf, False
    rounds = 0
    while rounds < max_rounds:
        rounds += 1
        solved = master.within(deadline, (best, radius))
        if solved is None:
            timed_out = True
            break
        model, nu, _, slack = solved
        predicted = bound - model
        if predicted <= tol:
            # With slack the model promises more than the columns attain: ask them alone.
            alone = solved if slack <= 1e-11 else master.within(deadline, None)
            timed_out = alone is None
            if alone is None or bound - alone[0] <= tol:
                break
            radius *= 4
            continue
        if time.perf_counter() > deadline:
            timed_out = True
            break
        priced, candidate = look(nu, max(tol / 8, 1e-3 * predicted))
        stuck = not (priced.reduced > ENTER).any()
        if stuck and 1e-3 * predicted > tol / 8:  # nothing at a glance: look closely
            priced, candidate = look(nu, tol / 8)
            stuck = not (priced.reduced > ENTER).any()
        if candidate < bound:
            best = nu + priced.excess
        if candidate < bound - 0.1 * predicted or stuck:
            failures = 0
            radius *= 1.0 if slack <= 1e-11 else 4.0 if stuck else 1.5  # nothing is missing here: look further away
        else:
            failures += 1
            if failures % 2 == 0:
                radius *= 0.6
        idle = 0 if predicted < 0.999 * closest else idle + 1
        closest = min(closest, predicted)
        bound = min(bound, candidate)
        if (stuck and slack <= 1e-11) or idle >= patience:
            break
    else:
        timed_out = True
    now = time.perf_counter()
    final = master.within(max(now, deadline) + LAST * (now - begun), None)
    if final is None:
        rows, weights = (start[: weights.size], weights) if weights.size else (p[None], np.ones(1))
        return Generated(rows, weights, float(weights @ pricer.gain(rows)), best, bound, columns, rounds, True)
    every = np.vstack(master.blocks)
    used = final[2] > 0
    return Generated(every[used], final[2][used], final[0], best, bound, columns, rounds, timed_out)


def enumerate_all(
    p: np.ndarray, ratio: float, posteriors: np.ndarray, gains: np.ndarray, solver: LinearSolver | None = None
) -> Generated:
    """The program over a given list of posteriors (all extreme ones), in one solve."""
    master = Master(p, ratio, solver, boxed=False)
    master.add(posteriors, gains)
    solved = master.within(math.inf, None)
    if solved is None:
        raise SolverFailure(
            "the linear program over posteriors: stopped by a limit of the solver's own", LinearStatus.TIME_LIMIT
        )
    objective, nu, weights, _ = solved
    excess = float((gains - posteriors @ nu).max())
    bound = float(nu @ p) + excess
    return Generated(*master.used(weights), objective, nu + excess, bound, len(gains), 1, False)


def polish(generated: Generated, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(posteriors, weights) with equal posteriors merged and the weights solved once more to full precision."""
    posteriors, weights = generated.posteriors, generated.weights
    _, first, inverse = np.unique(np.round(posteriors / p, 11), axis=0, return_index=True, return_inverse=True)
    merged = np.bincount(inverse.ravel(), weights)
    ratios = posteriors[first] / p
    solved = merged + np.linalg.lstsq(ratios.T, 1 - merged @ ratios, rcond=None)[0]
    return posteriors[first], solved if solved.min() >= 0 else merged


def multilevel(pricer: Sum, *, tol: float, deadline: float, solver: LinearSolver | None = None) -> Generated:
    """`generate` for a sum: solve with neighbouring values merged in pairs first, and start from there."""
    x, d, none = pricer.values, pricer.probabilities.size, np.zeros(0)
    if d <= COARSEST:
        return generate(pricer, np.zeros((0, d)), none, x**2 / 2, 0.3, tol=tol, deadline=deadline, solver=solver)
    order = np.argsort(x, kind="stable")
    groups = np.empty(d, dtype=np.int64)
    groups[order] = np.arange(d) // 2
    coarse = pricer.merged(groups)
    found = multilevel(coarse, tol=max(tol, COARSE), deadline=deadline, solver=solver)
    start = (found.posteriors / coarse.probabilities)[:, groups] * pricer.probabilities
    centre = np.interp(x, coarse.values, found.nu)
    return generate(pricer, start, found.weights, centre, 0.05, tol=tol, deadline=deadline, solver=solver)

"""The master program: the floor alone, and cuts.

For a fixed floor m the best row of each input is a bathtub, so that its loss J(x; m) is a maximum of functions that are affine
in m, one for each interval of favoured outputs:

    J(x; m) >= nu + int r(x, y) m(dy) + (E - 1) int min(r(x, y), 0) m(dy),   r = L - nu,

with equality for the floor's own window. The linear program has the floor's hats and atoms and the value as unknowns; inputs
with a larger loss than the value add their cut, until there are none. For unbiased mechanisms r has a multiplier of the mean, and
inputs whose mean no window reaches add the cut of that ray.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from optdp.design.kernel.floor import Floor, hat_masses, hats
from optdp.design.kernel.task import Fold, Task
from optdp.solvers.dense import Dense
from optdp.solvers.lp import Highs, LinearProgram, LinearSolver, LinearStatus, Session, SolverFailure

#: The default solver must not drop the small entries of narrow cells; rows and columns have their scales already, and programs
#: are solved twice as fast as they come.
HIGHS = Highs(options=(("small_matrix_value", 1e-12), ("presolve", "off"), ("simplex_scale_strategy", 0)))
#: For means at eps below 1, where far outputs all but cancel: as precise as it can be.
FINE = replace(HIGHS, tolerance=1e-10)
#: Large programs of averages take a third fewer steps where costs are perturbed by little (and stall now and then where they are
#: not). Those of the worst case, whose rows have no zeros, are solved by interior points.
PERTURBED = ("dual_simplex_cost_perturbation_multiplier", 0.01)
#: Which share of all duals those of cuts that are not active may have where programs end beside vertices; in a vertex they are 0.
IDLE, NONE = 6e-3, 1e-12
#: Values below this share of the largest cost are as good as 0: those of the first rounds are.
NOUGHT = 1e-3
#: Rounds of cuts, and cuts in each, after which the floor is taken as it is.
ROUNDS, CUTS = 80, 150
#: Atoms of less than this share of all of a floor are none to the next finer mesh.
SPECK = 1e-5
#: Inputs that are looked at in each stretch on which the loss is smooth; and at the end, when it may be largest between these.
INNER = 3, 9
#: How many times the tolerance the loss may be larger there; up to which tolerance it is looked at.
ROOM, ROUGH = 4.0, 2.5e-5
#: Windows have at least this share of the floor's mass: floats do not find lighter ones.
LIGHTEST = 1e-11
#: Windows are narrow beside the distances of inputs, that stand for a density, if they are less than this share of them.
APART = 0.25
#: Unbiased mechanisms reach beyond the ends by this share of a window, so that every mean is reached after rounding.
MARGIN = 1e-8


@dataclass
class Cuts:
    """Inputs and the ends of their favoured outputs."""

    x: np.ndarray = field(default_factory=lambda: np.empty(0))
    a: np.ndarray = field(default_factory=lambda: np.empty(0))
    b: np.ndarray = field(default_factory=lambda: np.empty(0))

    def __add__(self, other: Cuts) -> Cuts:
        return Cuts(np.append(self.x, other.x), np.append(self.a, other.a), np.append(self.b, other.b))

    def take(self, which: np.ndarray) -> Cuts:
        """Some of them."""
        return Cuts(self.x[which], self.a[which], self.b[which])


@dataclass(frozen=True)
class Master:
    """What the program found: its value, the best floor with its own, and the active cuts."""

    value: float
    floor: Floor
    attained: float
    cuts: Cuts
    program: LinearProgram
    rounds: int

    def atoms_near(self, y: np.ndarray) -> np.ndarray:
        """Which nodes of another mesh are within a cell of an atom of this one's floor."""
        nodes = np.append(np.insert(self.floor.y, 0, -np.inf), np.inf)
        on = np.flatnonzero(self.floor.atoms > SPECK * self.floor.total)
        first, last = np.searchsorted(y, nodes[on]), np.searchsorted(y, nodes[on + 2], side="right")
        change = np.bincount(first, minlength=y.size + 1) - np.bincount(last, minlength=y.size + 1)
        return np.asarray(np.cumsum(change)[:-1] > 0)


def rows(task: Task, y: np.ndarray, cuts: Cuts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(hats, atoms, nu): coefficients of the floor in the cuts, and their constants."""
    cost, growth, x, a, b = task.cost, task.growth, cuts.x, cuts.a, cuts.b

    def excess(k: Any, t: np.ndarray) -> np.ndarray:
        return cost.excess(x[k], t, a[k], b[k])

    at, nu = cost.excess(x[:, None], y[None], a[:, None], b[:, None]), cost.nu(x, a, b)
    if cost.square:
        mass, first, second = hats(np.zeros(3), y, lambda k, t: t**k, ())
        smooth = second - np.outer(a + b, first) + np.outer(a * b, mass)
    else:
        smooth = hats(x, y, lambda k, t: cost.of(t - x[k]), cost.cuts) - np.outer(nu, hat_masses(y))
    smooth += growth * hats(x, y, excess, cost.cuts, a, b)
    return smooth, at + growth * np.minimum(at, 0.0), nu


def usual(task: Task) -> LinearSolver:
    """The task's solver, or the default one for it."""
    found = FINE if task.cost.tilted and task.eps < 1 else HIGHS
    if task.solver or not task.fine:
        return task.solver or found
    return (
        Dense(behind=found, least=NOUGHT) if task.prior is None else replace(found, options=(*found.options, PERTURBED))
    )


def solve(task: Task, y: np.ndarray, cuts: Cuts, rtol: float, before: Master | None = None) -> Master:
    """The best floor on the mesh `y`, to the relative tolerance `rtol` between the program's value and the floor's own.

    `before`: that of a coarser mesh; for a worst case only where it has atoms may this one have any, and few unknowns of atoms
    are left. (Averages have many atoms.)
    """
    fold, scale, growth, prior = Fold(y.size, task.symmetric), task.scale, task.growth, task.prior
    thin = max(scale, 1.0)  # about 1/m(all): floors are in units of its inverse
    n, values = fold.count, 1 if prior is None else int(task.groups[-1]) + 1
    whole = np.concatenate([np.zeros(values), fold.rows(hat_masses(y)[None])[0], fold.rows(np.ones((1, y.size)))[0]])
    price = np.ones(1) if prior is None else np.bincount(task.groups, prior[1])
    # Of losses in steps the inputs looked at stand for all others if the floor is atoms; of windows that are much narrower than
    # these inputs are apart only if it is none.
    apart = task.smooth and prior is not None and task.width * prior[0].size < APART
    allowed = np.full(n, not apart)
    if before is not None and prior is None and not task.in_steps:
        allowed = before.atoms_near(y)[:n]
    most = np.concatenate([
        np.full(values, np.inf), np.full(n, 0.0 if task.in_steps else np.inf), np.where(allowed, np.inf, 0.0)
    ])  # fmt: skip
    program = LinearProgram(
        np.concatenate([price, np.zeros(2 * n)]), whole[None], np.array([thin * np.exp(-task.eps)]),
        np.array([thin / (1 + LIGHTEST * growth)]),
        upper=most,
        blocks={"mass": slice(0, 1)}, variables={"value": slice(0, values), "density": slice(values, values + n),
                                                 "atom": slice(values + n, values + 2 * n)},
        name="optdp-kernel-floor",
    )  # fmt: skip
    session = usual(task).session(program)
    kinds: list[np.ndarray] = [np.zeros(1, dtype=bool)]  # rows that are cuts of losses
    owners = [np.empty(0, dtype=np.int64)]  # for each cut, which of these it is a part of

    def add(new: Cuts) -> None:
        smooth, atoms, nu = rows(task, y, new)
        owner = np.arange(new.x.size)
        if prior is not None:
            place = np.searchsorted(prior[0], new.x)
            group = task.groups[place]
            first = np.append(True, (np.diff(group) != 0) | (np.diff(new.x) <= 0))
            owner = np.cumsum(first) - 1
            share = prior[1][place] / price[group]
            smooth, atoms = (np.add.reduceat(share[:, None] * t, np.flatnonzero(first)) for t in (smooth, atoms))
            nu = np.add.reduceat(share * nu, np.flatnonzero(first))
        head = np.zeros((nu.size, values))
        head[np.arange(nu.size), 0 if prior is None else group[first]] = 1.0
        owners.append(owner + sum(int(kind.sum()) for kind in kinds))
        at_least(session, np.hstack([head, *(-scale / thin * fold.rows(t) for t in (smooth, atoms))]), nu * scale)
        kinds.append(np.ones(nu.size, dtype=bool))

    def reach(ends: np.ndarray, upper: bool) -> None:
        """E[Y] <= 0 must be possible: c + int (y - c) + (E - 1) min(y - c, 0) dm <= 0 for all c; mirrored at the upper end."""
        sign, goal, size = -1.0 if upper else 1.0, float(upper), max(float(y[-1] - y[0]), 1.0)
        zero = np.zeros(ends.size)

        def below(k: Any, t: np.ndarray) -> np.ndarray:
            return np.asarray(sign * (t - ends[k]))

        low, high = (ends, zero + y[-1]) if upper else (zero + y[0], ends)
        at = sign * (y[None] - ends[:, None])
        smooth = hats(zero, y, below, ()) + growth * hats(zero, y, below, (), low, high)
        parts = [-fold.rows(t) / size for t in (smooth, at + growth * np.minimum(at, 0.0))]
        least = (sign * (ends - goal) + MARGIN * task.width) * thin / size
        at_least(session, np.hstack([np.zeros((ends.size, values)), *parts]), least)
        kinds.append(np.zeros(ends.size, dtype=bool))

    if cuts.x.size:
        add(cuts)
    if task.cost.tilted:
        reach(y[y < 0.5], False)
        if not task.symmetric:
            reach(y[y > 0.5], True)
    best: tuple[float, Floor] | None = None
    count, inner, size = 0, INNER[0], 0
    # A mean that is missed by so little is reached by outputs farther apart.
    room = 0.0 if prior is None or task.problem.outputs is not None else rtol / 8
    while count < ROUNDS or best is None:
        count += 1
        if session.size[0] > size:
            size, solved = session.size[0], session.solve(time_limit=task.left())
        if not solved.usable and solved.status is not LinearStatus.TIME_LIMIT:
            solved = session.solve(time_limit=task.left(), method="ipm")
        if solved.status is LinearStatus.TIME_LIMIT and best is not None and np.isfinite(best[0]):
            break
        result = solved.checked()
        value = result.objective / scale
        density, atoms = fold.full(result.value("density")) / thin, fold.full(result.value("atom")) / thin
        floor = Floor.of_hats(y, density, atoms)
        x, a, b, losses = task.losses(floor, inner)
        if task.cost.tilted:
            means = floor.lowest_mean(growth), floor.lowest_mean(growth, highest=True)
            if means[0] > 0:
                reach(floor.quantile(np.array([floor.window(growth)])), False)
            if means[1] < 1 and not task.symmetric:
                reach(floor.quantile(np.array([floor.total - floor.window(growth)])), True)
            reached = (x >= means[0] - room) & (x <= means[1] + room)
        else:
            means, reached = (0.0, 1.0), np.ones(x.size, dtype=bool)
        losses = np.where(reached, losses, np.inf)
        attained = task.overall(losses)
        if means[0] > room or means[1] < 1 - room:  # inputs without weight count, too
            attained = np.inf
        if best is None or attained < best[0]:
            best = attained, floor
        if np.isfinite(best[0]) and best[0] - value <= (rtol if inner == INNER[0] else ROOM * rtol) * best[0]:
            if prior is not None or inner == INNER[1] or rtol > ROUGH:
                break
            best, inner = None, INNER[1]
            continue
        if not task.left():
            if np.isfinite(best[0]):
                break
            raise SolverFailure("the time limit was reached before the program was solved", LinearStatus.TIME_LIMIT)
        seen = np.where(reached, losses, 0.0)
        if prior is None:
            use = _peaks(seen, value, float(seen.max()), rtol)
        else:
            means_of = np.bincount(task.groups, prior[1] * seen) / price
            use = np.flatnonzero((means_of > result.value("value") / scale + 1e-12 * value)[task.groups])
        if use.size:
            add(Cuts(x[use], a[use], b[use]))
            cuts = cuts + Cuts(x[use], a[use], b[use])
    assert best is not None
    duals = np.abs(result.row_dual)[np.concatenate(kinds)[: result.row_dual.size]]
    tight = duals > NONE
    if isinstance(session.solver, Dense):
        order = np.argsort(duals)
        tight[order[np.cumsum(duals[order]) <= IDLE * duals.sum()]] = False
    active = cuts.take(np.flatnonzero(np.append(tight, np.zeros(cuts.x.size, dtype=bool))[np.concatenate(owners)]))
    return Master(value, best[1], best[0], active, session.program, count)


def _peaks(losses: np.ndarray, value: float, top: float, rtol: float) -> np.ndarray:
    """Where the loss has a local maximum well above the program's value."""
    # What is twice the value is cut off however large the largest loss is: one input's may be that of a floor of nearly 0.
    least = np.clip(value + 0.02 * (top - value), value * (1 + rtol / 4), 2 * value)
    use = np.flatnonzero(minima(-losses) & (losses > least))
    return use if use.size <= CUTS else use[np.argsort(-losses[use])[:CUTS]]


def at_least(session: Session, table: np.ndarray, least: np.ndarray) -> None:
    """Add rows."""
    from scipy.sparse import csr_matrix

    session.add_rows(csr_matrix(table), least, np.full(least.size, np.inf))


def minima(g: np.ndarray, width: int = 1) -> np.ndarray:
    """Where g is least among its neighbours, so many at each side."""
    around = np.lib.stride_tricks.sliding_window_view(np.pad(g, width, constant_values=np.inf), 2 * width + 1)
    return np.asarray(around.min(axis=1) == g)

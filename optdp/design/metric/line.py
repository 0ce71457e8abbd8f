"""The best mechanism with metric privacy on an interval, d = |x - x'|: a bracket from a grid, proven on both sides.

From above: the grid's problem with factors 1 + eps h from point to point, whose mechanism is private for all inputs when it is
mixed in between (`optdp.mechanisms.metric_line`). From below: the grid's problem with factors e^(eps h), a relaxation
(`optdp.certificates.metric_line`). Both meet as h falls, and cells are halved until they do.

**Cells with a row of their own.** That mixture loses a share of eps h. Where the interval is longer than 1/eps, rows are given at
the points of a much finer grid, whose share is small, by few of them: between two points of the coarse one, k fine steps from one
and M - k from the other, a probability is w + A q^k + B q^-k, q = 1 + eps h/M. It is u and v at the ends, and w belongs to the
cell: the row w is mixed in where u and v leave mass, which is 0 at both ends. Such a sequence changes by factors of at most q if,
with E = q^M and c = 1 + 1/q,

    c u <= c E v - g w,    c v <= c E u - g w,    g = c E - c - E + 1/E,        (at the ends, where it is steepest)

so that this is a linear program in u, v and w. It loses a share of the order of (eps h)^2.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from optdp.certificates.metric import certify
from optdp.certificates.metric_line import MetricLineCertificate, on_grid
from optdp.design.registry import Run, register
from optdp.exact.numbers import Log
from optdp.exact.rounding import TOTAL, Table
from optdp.mechanisms.metric import MetricMechanism
from optdp.mechanisms.metric_line import MetricLineMechanism, below
from optdp.problem import AllMechanisms, Apart, Graph, Interval, MetricLDP, Problem, WorstCase
from optdp.solution import Solution
from optdp.solvers.lipschitz import solve_columns
from optdp.solvers.lp import Highs, LinearProgram
from optdp.solvers.threads import one_thread

#: Cells of the first grid and of the last.
FIRST, LAST = 16, 128
#: eps times the width is at most this, and the width is between these: distances on the grid are lengths of a graph's edges.
MOST, SHORTEST, LONGEST = 30.0, 1e-140, 1e140
#: Cells have rows of their own where eps times the width is at least this, and there are at most so many; steps of the fine
#: grid, and places in a cell where the program looks at the loss.
LONG, PEAKED, FINE, LOOKS = 1.0, 64, 2048, 4


def accepts(problem: Problem) -> str | None:
    """All mechanisms from an interval to itself, the worst case of |y - x| or (y - x)^2."""
    privacy, domain, asked = problem.privacy, problem.domain, problem.objective
    if not isinstance(privacy, MetricLDP) or not isinstance(privacy.metric, Apart) or not isinstance(domain, Interval):
        return "privacy must be MetricLDP with metric 'abs' and the domain an interval"
    if not isinstance(problem.family, AllMechanisms) or problem.constraints:
        return "the family must be all mechanisms, without constraints"
    if not isinstance(asked, WorstCase) or asked.loss.exponent not in (1, 2):
        return f"objective = {asked} is not allowed: it must be a worst case, and the loss 'abs' or 'squared'"
    if not SHORTEST <= domain.width <= LONGEST:
        return f"the width of {domain} must be between {SHORTEST:g} and {LONGEST:g}: use other units"
    reach = float(privacy.eps) * domain.width
    return (
        None
        if 1e-6 <= reach <= MOST
        else f"eps is not allowed: eps times the width must be in [1e-6, {MOST:g}], and is {reach:g}"
    )


@one_thread()
def design(run: Run) -> Solution:
    """See `optdp.solve_kernel`."""
    problem = run.problem
    kept: dict[str, Any] = {"value": np.inf, "bound": -1.0, "stopped": False}
    cells = FIRST
    while True:
        _level(run, cells, kept)
        run.progress(f"{cells} cells", kept["bound"], kept["value"])
        if kept["value"] - kept["bound"] <= run.rtol * kept["value"] or cells >= LAST or kept["stopped"]:
            break
        cells *= 2
        if run.seconds > run.time_limit:
            kept["stopped"] = True
            break
    return run.solution(
        kept["made"], kept["proof"], f"{(cells + 1) ** 2} columns: probabilities on a grid, and the loss",
        f"{2 * (cells + 1)} rows and privacy from point to point, twice", "interior point by output", objective=kept["objective"],
        message=f"{cells} cells", stopped=kept["stopped"], build=build_model, arguments=(problem, cells),
    )  # fmt: skip


def build_model(problem: Problem, cells: int) -> Any:
    """The plain linear program of the grid, a relaxation but for outputs in between."""
    from optdp.design.metric import build_model as plain

    return plain(on_grid(problem, cells))


def _level(run: Run, cells: int, kept: dict[str, Any]) -> None:
    """Both sides with one grid."""
    problem, domain = run.problem, run.problem.domain
    privacy: Any = problem.privacy
    relaxed = on_grid(problem, cells)
    grid: Any = relaxed.privacy
    losses, count = relaxed.loss.array, cells + 1
    asked = min(run.rtol / 10, 1e-5)

    lower = solve_columns(losses, grid.growth, None, tolerance=asked, left=run.left, pairs=grid.direct)
    weights = lower.weights if lower.weights.any() else np.full(count, 1 / count)
    proof = certify(relaxed, weights, lower.rows, lower.flows, 1e-7)
    made = MetricLineCertificate(cells, proof.weights, proof.outputs, proof.highs, proof.lows, proof.flows)
    bound = made.bound(problem).value
    if bound > kept["bound"]:
        kept.update(bound=bound, proof=made)
    kept["stopped"] = lower.stopped
    if kept["bound"] >= (1 - run.rtol) * kept["value"]:  # of a coarser grid
        return
    if float(privacy.eps) * domain.width >= LONG:
        if cells <= PEAKED:
            _keep(problem, kept, *_peaked(run, cells))
        if kept["value"] < np.inf:
            return
    factor = 1 + below(privacy.eps) * domain.exact_width / cells
    chain = MetricLDP(Log(factor), Graph(grid.metric.edges))
    upper = solve_columns(losses, chain.growth, None, tolerance=asked, left=run.left, pairs=chain.direct)
    table = MetricMechanism.of_rows(relaxed.domain, range(count), upper.kernel, chain, losses).table
    kept["stopped"] |= upper.stopped
    _keep(problem, kept, table, upper.value)


def _keep(problem: Problem, kept: dict[str, Any], table: Table | None, objective: float) -> None:
    """The mechanism with a table for outputs on a grid, if it is better."""
    if table is None:
        return
    domain: Any = problem.domain
    start, last = Fraction(domain.lower), table.weights.shape[1] - 1
    places = np.array([float(start + k * domain.exact_width / last) for k in range(last + 1)])
    # Where floats are coarse several places are written as one, which has what all of them have.
    outputs, first = np.unique(np.clip(places, domain.lower, domain.upper), return_index=True)
    merged = Table(np.add.reduceat(table.weights, first, axis=1))
    mechanism = MetricLineMechanism(domain, tuple(outputs.tolist()), merged)
    value = mechanism.enclose(problem.objective)[1]
    if value < kept["value"] and mechanism.check_privacy(problem.privacy)[0].passed:
        kept.update(value=value, made=mechanism, objective=objective)


def _shares(q: float, steps: int) -> np.ndarray:
    """What the rows of both ends and of the cell are mixed with, 0, ..., `steps` - 1 steps from the first end."""
    k = np.arange(steps)
    one, two = np.sinh((steps - k) * math.log(q)), np.sinh(k * math.log(q))
    ends = np.stack([one, two]) / math.sinh(steps * math.log(q))
    return np.concatenate([ends, 1 - ends.sum(axis=0, keepdims=True)])


def peaked_program(eps: float, cells: int, power: int) -> tuple[LinearProgram, Any]:
    """The program with a row for each point of a grid on [0, 1] and for each cell, an even number; outputs are its points and the
    middles. Images of optima are optima, and so is their mean with the optimum: what the middle of [0, 1] maps onto each other is
    one variable, and one of two images is enough of the inequalities. Second, what rows and outputs follow from these variables.
    """
    from scipy.sparse import csr_matrix, eye, hstack, kron, vstack

    steps, half = FINE // cells, cells // 2
    q, m = 1 + eps / FINE, 2 * cells + 1
    big, c = q**steps, 1 + 1 / q
    g, lines, points = c * big - c - big + 1 / big, np.arange(2 * cells + 1), np.arange(cells)
    image = np.where(lines <= cells, cells - lines, 3 * cells + 1 - lines)[:, None] * m + np.arange(m)[::-1]
    size = image.size
    kept, column = np.unique(np.minimum(image.ravel(), np.arange(size)), return_inverse=True)
    fold = csr_matrix((np.ones(size), (np.arange(size), column)), shape=(size, kept.size))
    first, second = (csr_matrix((np.ones(cells), (points, points + k)), shape=(cells, cells + 1)) for k in (0, 1))
    slopes = kron(hstack([c * (first - big * second), g * eye(cells)]), eye(m))
    looks = steps * np.arange(LOOKS) // LOOKS
    u, v, w = _shares(q, steps)[:, looks]
    y, rows = np.arange(m) / (m - 1), []
    for i in range(half + 1):
        far = np.abs((i + looks[:, None] / steps) / cells - y) ** power
        row = [csr_matrix((LOOKS, m))] * (2 * cells + 1)
        row[i], row[i + 1], row[cells + 1 + i] = (csr_matrix(part[:, None] * far) for part in (u, v, w))
        rows.append(hstack(row).tocsr()[: LOOKS if i < half else 1])
    losses, mass = vstack(rows), kron(eye(2 * cells + 1), np.ones((1, m))).tocsr()
    mass = mass[np.append(lines[: half + 1], lines[cells + 1 : cells + 1 + half])]
    free = np.full(slopes.shape[0] + losses.shape[0], -np.inf)
    high = np.concatenate([np.zeros(free.size), np.ones(mass.shape[0])])
    worst = csr_matrix(
        (-np.ones(losses.shape[0]), (slopes.shape[0] + np.arange(losses.shape[0]), [0] * losses.shape[0])),
        shape=(high.size, 1),
    )
    body = hstack([vstack([slopes, losses, mass]) @ fold, worst])
    low = np.append(free, np.ones(mass.shape[0]))
    return LinearProgram(np.append(np.zeros(kept.size), 1.0), body, low, high, name="peaked"), fold


def _peaked(run: Run, cells: int) -> tuple[Table | None, float]:
    """(the table on the fine grid, the program's value in units of the loss); None where there is none."""
    problem, domain = run.problem, run.problem.domain
    privacy, power = problem.privacy, int(problem.loss.exponent)
    eps = float(privacy.eps) * domain.width  # type: ignore[attr-defined]
    program, fold = peaked_program(eps, cells, power)
    found = program.solve(Highs(method="ipm", crossover=False), time_limit=max(run.left(), 0.1))
    if not found.usable:
        return None, math.inf
    rows = np.maximum(fold @ found.x[:-1], 0.0).reshape(2 * cells + 1, -1)
    shares = _shares(1 + eps / FINE, FINE // cells)
    parts = np.stack([rows[:cells], rows[1 : cells + 1], rows[cells + 1 :]])
    fine = np.concatenate([np.einsum("pk,pcy->cky", shares, parts).reshape(FINE, -1), rows[cells : cells + 1]])
    fall = 1 / (1 + eps / FINE * (1 - 1e-9))
    for way in (slice(None), slice(None, None, -1)):  # the least columns above these that change by no more
        turned = fine[way]
        for i in range(FINE):
            np.maximum(turned[i + 1], turned[i] * fall, out=turned[i + 1])
    fine /= fine.sum(axis=1).max()
    units, middle = math.ceil(FINE / eps) + 2, cells
    share, limit = 2.0**-44 + 2.0 * units * fine.shape[1] / TOTAL, below(privacy.eps) * domain.exact_width / FINE  # type: ignore[attr-defined]
    while share < 0.1:
        weights = np.floor(fine * ((1 - share) * TOTAL)).astype(np.int64) + units * fine.any(axis=0)
        weights[:, middle] += TOTAL - weights.sum(axis=1)
        rest = weights[:, middle].tolist()
        if min(rest) > 0 and all(abs(a - b) <= limit * min(a, b) for a, b in pairwise(rest)):
            return Table(weights), found.objective * domain.width**power
        share *= 4
    return None, math.inf


register(
    "metric line",
    (f"MetricLDP with metric 'abs', eps * width <= {MOST:g}", "Interval", "WorstCase of abs or squared", "AllMechanisms", ""),
    accepts, design, solvers=False,
)  # fmt: skip

"""The best mechanism with metric privacy on an interval, d = |x - x'|: a bracket from a grid, proven on both sides.

From above: the grid's problem with factors 1 + eps h from point to point, whose mechanism is private for all inputs when it is
mixed in between (`optdp.mechanisms.metric_line`). From below: the grid's problem with factors e^(eps h), a relaxation
(`optdp.certificates.metric_line`). Both meet as h falls, and cells are halved until they do.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from optdp.certificates.metric import certify
from optdp.certificates.metric_line import MetricLineCertificate, on_grid
from optdp.design.registry import Run, register
from optdp.exact.numbers import Log
from optdp.mechanisms.metric import MetricMechanism
from optdp.mechanisms.metric_line import MetricLineMechanism, below
from optdp.problem import AllMechanisms, Apart, Graph, Interval, MetricLDP, Problem, WorstCase
from optdp.solution import Solution
from optdp.solvers.lipschitz import solve_columns

#: Cells of the first grid and of the last.
FIRST, LAST = 16, 128
#: eps times the width is at most this.
MOST = 30.0


def accepts(problem: Problem) -> str | None:
    """All mechanisms from an interval to itself, the worst case of |y - x| or (y - x)^2."""
    privacy, domain, asked = problem.privacy, problem.domain, problem.objective
    if not isinstance(privacy, MetricLDP) or not isinstance(privacy.metric, Apart) or not isinstance(domain, Interval):
        return "privacy must be MetricLDP with metric 'abs' and the domain an interval"
    if not isinstance(problem.family, AllMechanisms) or problem.constraints:
        return "the family must be all mechanisms, without constraints"
    if not isinstance(asked, WorstCase) or asked.loss.exponent not in (1, 2):
        return f"loss = {problem.loss.name!r} is not allowed: it must be the worst case of 'abs' or 'squared'"
    reach = float(privacy.eps) * domain.width
    return (
        None
        if 1e-6 <= reach <= MOST
        else f"eps is not allowed: eps times the width must be in [1e-6, {MOST:g}], and is {reach:g}"
    )


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
    factor = 1 + below(privacy.eps) * domain.exact_width / cells
    chain = MetricLDP(Log(factor), Graph(grid.metric.edges))
    upper = solve_columns(losses, chain.growth, None, tolerance=asked, left=run.left, pairs=chain.direct)
    table = MetricMechanism.of_rows(relaxed.domain, range(count), upper.kernel, chain, losses).table
    ends = Fraction(domain.lower), domain.exact_width / cells
    outputs = tuple(min(max(float(ends[0] + k * ends[1]), domain.lower), domain.upper) for k in range(count))
    mechanism = MetricLineMechanism(domain, outputs, table)
    value = mechanism.enclose(problem.objective)[1]
    kept["stopped"] = lower.stopped or upper.stopped
    if value < kept["value"]:
        kept.update(value=value, made=mechanism, objective=upper.value)


register(
    "metric line",
    ("MetricLDP with metric 'abs'", "Interval", "WorstCase of abs or squared", "AllMechanisms", ""),
    accepts, design, solvers=False,
)  # fmt: skip

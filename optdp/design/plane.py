"""The best of all eps-LDP mechanisms from a rectangle of the plane to itself, for Euclidean distances: a bracket.

Given its floor m the best row of every input favours the nearest outputs, and the optimum is a convex program in the floor alone
(`optdp.solvers.floors`). Inputs and outputs on a grid make it a finite one, with one unknown for each output of a quarter of the
rectangle, as images of an optimum under reflections are optima. Its floor is a mechanism for every input of the rectangle
(`optdp.mechanisms.plane`), and its multipliers are a bound for all outputs of the plane (`optdp.certificates.plane`): both are
evaluated on the continuum. Grids are refined until the two meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optdp.certificates.plane import certify, images
from optdp.design.finite_kernel import plain_program
from optdp.design.registry import Run, register
from optdp.exact import enclosures
from optdp.mechanisms.plane import OUTPUTS, PlaneMechanism, grid_of
from optdp.problem import LDP, AllMechanisms, Box, Problem, WorstCase
from optdp.solution import Solution
from optdp.solvers.floors import solve_floors
from optdp.solvers.lp import LinearProgram

#: Cells of the grids of inputs along the longer side, from the first to the last; those of outputs are half as wide.
LEVELS = (8, 16, 24, 32, 48)
#: The least eps: ratios are those of integers over 2^62. The largest: grids are too coarse beyond. The shortest and the longest
#: side: squares neither overflow nor underflow.
LEAST, MOST, SHORTEST, LONGEST = 1e-6, 8.0, 1e-100, 1e100


def accepts(problem: Problem) -> str | None:
    """All mechanisms from a rectangle, the worst case of |Y - x| or |Y - x|^2."""
    privacy, domain, asked = problem.privacy, problem.domain, problem.objective
    if not isinstance(privacy, LDP) or not LEAST <= float(privacy.eps) <= MOST:
        return f"privacy must be LDP with eps in [{LEAST:g}, {MOST:g}]"
    if not isinstance(domain, Box) or domain.dimension != 2:
        return "the domain must be an optdp.Box with two sides"
    if not isinstance(problem.family, AllMechanisms) or problem.constraints:
        return "the family must be all mechanisms, without constraints"
    if not isinstance(asked, WorstCase) or asked.loss.exponent not in (1, 2):
        return f"loss = {problem.loss.name!r} is not allowed: it must be the worst case of 'abs' or 'squared'"
    if not SHORTEST <= max(side.width for side in domain.sides) <= LONGEST:
        return f"the longer side of {domain} must be between {SHORTEST:g} and {LONGEST:g}: use other units"
    return None


def design(run: Run) -> Solution:
    """See `optdp.solve_kernel`."""
    problem = run.problem
    kept: dict[str, Any] = {"value": np.inf, "bound": -1.0, "stopped": False}
    for cells in LEVELS:
        _level(run, cells, kept)
        run.progress(f"{cells} cells", kept["bound"], kept["value"])
        if kept["value"] - kept["bound"] <= run.rtol * kept["value"] or kept["stopped"]:
            break
    return run.solution(
        kept["made"], kept["proof"], f"{kept['columns']} columns: floors of a quarter's outputs, and the loss",
        f"{1 + kept['rows']} rows: total mass, cuts", "HiGHS (cutting planes)", (max(kept["bound"], 0.0), kept["value"]),
        objective=kept["objective"], message=f"{cells} cells along the longer side", stopped=kept["stopped"],
        build=build_model, arguments=(problem, cells),
    )  # fmt: skip


def _level(run: Run, cells: int, kept: dict[str, Any]) -> None:
    """Both sides with one grid."""
    problem: Any = run.problem
    domain, power, eps = problem.domain, int(problem.loss.exponent), float(problem.eps)
    widths = [side.exact_width for side in domain.sides]
    sides = np.array([float(w / max(widths)) for w in widths])
    counts = [2 * max(1, round(cells * side / 2)) for side in sides]
    shares, outputs = quarter(counts), images(quarter([2 * n for n in counts]))
    losses = np.square((shares[:, None] - outputs) * sides).sum(axis=2) ** (power / 2)
    found = solve_floors(losses, eps, tolerance=min(run.rtol / 10, 1e-4), copies=4, left=run.left)
    kept["stopped"] = found.stopped
    proof = certify(problem, shares, found.weights, found.masses)
    bound = proof.bound(problem).value
    if bound > kept["bound"]:
        kept.update(bound=bound, proof=proof)
    low = np.array(domain.lower)
    points = np.clip(low + outputs * [float(w) for w in widths], low, np.array(domain.upper))
    points, places = np.unique(points, axis=0, return_inverse=True)
    floors = np.bincount(places.reshape(-1), np.tile(found.floors / 4, 4))
    used = np.sort(np.argsort(-floors, kind="stable")[: min(OUTPUTS, int((floors > 1e-9 * floors.max()).sum()))])
    made = PlaneMechanism.of_floors(domain, points[used], floors[used], enclosures.exp_below(problem.eps))
    value = made.enclose(problem.objective)[1]
    if value < kept["value"]:
        kept.update(value=value, made=made, objective=found.value * float(max(widths)) ** power)
        kept.update(columns=len(outputs) // 4 + 1, rows=found.cuts)


def build_model(problem: Problem, cells: int) -> LinearProgram:
    """The plain linear program of inputs on a grid and outputs on one that is twice as fine, without the symmetry: a relaxation
    but for outputs in between.
    """
    domain: Any = problem.domain
    widths = [float(side.exact_width) for side in domain.sides]
    counts = [2 * max(1, round(cells * w / max(widths) / 2)) for w in widths]
    inputs, outputs = (
        grid_of(*(np.linspace(0, w, k * n + 1) for w, n in zip(widths, counts, strict=True))) for k in (1, 2)
    )
    losses = np.linalg.norm(inputs[:, None] - outputs, axis=2) ** problem.loss.exponent
    return plain_program(losses, float(problem.eps), None)  # type: ignore[arg-type]


def quarter(cells: list[int]) -> np.ndarray:
    """The points of a grid with even numbers of cells that lie in the lower quarter, as shares of the sides."""
    return grid_of(*(np.arange(n // 2 + 1) / n for n in cells))


register(
    "plane",
    ("LDP", "Box with two sides", "WorstCase of abs or squared", "AllMechanisms", ""),
    accepts, design, solvers=False,
)  # fmt: skip

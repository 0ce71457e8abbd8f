"""The best of all eps-LDP mechanisms from a rectangle of the plane to itself, for Euclidean distances: a bracket.

Given its floor m the best row of every input favours the nearest outputs, and the optimum is a convex program in the floor alone
(`optdp.solvers.floors`). Inputs and outputs on a grid make it a finite one, with one unknown for each output of a quarter of the
rectangle, as images of an optimum under reflections are optima. Its floor is a mechanism for every input of the rectangle
(`optdp.mechanisms.plane`), and its multipliers are a bound for all outputs of the plane (`optdp.certificates.plane`): both are
evaluated on the continuum. Grids are refined until the two meet.

For small eps optima are few atoms, which grids find. For larger ones they are smooth but at the sides, and windows too small for
grids: floors and priors are then sums of a few functions (`optdp.solvers.plane`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optdp.certificates.plane import certify, images
from optdp.design.finite_kernel import plain_program
from optdp.design.registry import Run, register
from optdp.exact import enclosures
from optdp.mechanisms.plane import OUTPUTS, PlaneMechanism, grid_of
from optdp.problem import LDP, AllMechanisms, Box, Problem, WorstCase
from optdp.solution import Solution
from optdp.solvers import plane as solvers
from optdp.solvers.floors import solve_floors
from optdp.solvers.lp import LinearProgram
from optdp.solvers.threads import one_thread

#: Cells of the grids of inputs along a square's side, from the first to the last; those of outputs are half as wide. Rectangles
#: have as many in all.
LEVELS = (8, 16, 24, 32, 48)
#: From this eps on (for |y - x|, and its square) floors and priors are smooth after the first grid: in a square, in others, and
#: later by so much times the logarithm of the sides' ratio, less so much; in slivers grids are fine enough.
SMOOTH, OTHERS, LATER = (5.5, 6.5), (5.5, 7.5), ((2.0, 3.0), (0.6, 0.0))
#: Along half of the longer side: cells of the floor, its outputs, cells of the prior, its inputs, inputs and outputs looked at.
MESHES = ((6, 24, 6, 24, 16, 24), (10, 36, 12, 36, 36, 40), (12, 60, 20, 50, 48, 56))
#: They are as many in a square; in a rectangle, which has fewer symmetries, this share times the square root of its sides' ratio,
#: and at most so many times.
OBLONG, STRETCH = 0.75, 3.0
#: How many times as long as the last step the next one takes at least.
LONGER = 2.0
#: The least eps: ratios are those of integers over 2^62. The largest: grids are too coarse beyond. The shortest and the longest
#: side: squares neither overflow nor underflow.
LEAST, MOST, SHORTEST, LONGEST = 1e-6, 10.0, 1e-100, 1e100


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
        return f"objective = {asked} is not allowed: it must be a worst case, and the loss 'abs' or 'squared'"
    if not SHORTEST <= max(side.width for side in domain.sides) <= LONGEST:
        return f"the longer side of {domain} must be between {SHORTEST:g} and {LONGEST:g}: use other units"
    return None


@one_thread()
def design(run: Run) -> Solution:
    """See `optdp.solve_kernel`."""
    problem: Any = run.problem
    kept: dict[str, Any] = {"value": np.inf, "bound": -1.0, "stopped": False}
    widths = [float(side.exact_width) for side in problem.domain.sides]
    thin = math.sqrt(max(widths) / min(widths))
    share = 1.0 if thin == 1 else min(OBLONG * thin, STRETCH)
    smooth: list[Any] = [(_smooth, [round(share * count) for count in mesh]) for mesh in MESHES]
    grids: list[Any] = [(_level, round(min(thin * cells, cells**2 / 2))) for cells in LEVELS]
    loss = int(problem.loss.exponent) - 1
    rate, less = LATER[loss]
    start = SMOOTH[loss] if thin == 1 else OTHERS[loss] + rate * max(2 * math.log(thin) - less, 0.0)
    steps = grids[:1] + smooth if float(problem.eps) >= start else grids
    for step, size in steps:
        began = run.left()
        step(run, size, kept)
        cells = size if step is _level else 2 * size[0]
        run.progress(f"{cells} cells", kept["bound"], kept["value"])
        if kept["value"] - kept["bound"] <= run.rtol * kept["value"] or kept["stopped"]:
            break
        if (step, size) != steps[-1] and run.left() < LONGER * (began - run.left()):
            kept["stopped"] = True
            break
    return run.solution(
        kept["made"], kept["proof"], f"{kept['columns']} columns: floors of a quarter's outputs, and the loss",
        f"{1 + kept['rows']} rows: total mass, cuts", "HiGHS (cutting planes)", (max(kept["bound"], 0.0), kept["value"]),
        objective=kept["objective"], message=f"{cells} cells along the longer side",
        stopped=kept["stopped"], build=kept["build"], arguments=kept["arguments"],
    )  # fmt: skip


def _level(run: Run, cells: int, kept: dict[str, Any]) -> None:
    """Both sides with one grid."""
    from scipy.sparse import eye, vstack

    problem: Any = run.problem
    domain, power, eps = problem.domain, int(problem.loss.exponent), float(problem.eps)
    widths = [side.exact_width for side in domain.sides]
    sides = np.array([float(w / max(widths)) for w in widths])
    counts = [2 * max(1, round(cells * side / 2)) for side in sides]
    shares, outputs = quarter(counts), images(quarter([2 * n for n in counts]))
    losses = np.square((shares[:, None] - outputs) * sides).sum(axis=2) ** (power / 2)
    fold = vstack([eye(len(outputs) // 4, format="csr") / 4] * 4)
    found = solve_floors(losses, eps, tolerance=min(run.rtol / 10, 1e-4), basis=fold, left=run.left)
    kept["stopped"] = found.stopped
    _prove(run, shares, found.weights, found.masses / np.maximum(found.weights, 1e-300), kept)
    _send(run, outputs, found.floors, kept, {
        "objective": found.value * float(max(widths)) ** power, "columns": len(outputs) // 4 + 1, "rows": found.cuts,
        "build": build_model, "arguments": (problem, cells),
    })  # fmt: skip


def _smooth(run: Run, mesh: list[int], kept: dict[str, Any]) -> None:
    """Both sides with smooth functions."""
    problem: Any = run.problem
    domain, power, eps = problem.domain, int(problem.loss.exponent), float(problem.eps)
    cells, count, coarse, fine, inputs, outputs = mesh
    widths = [side.exact_width for side in domain.sides]
    sides = np.array([float(w / max(widths)) for w in widths])
    x, (y, table) = solvers.inputs_of(sides, inputs), solvers.lattice(sides, cells, count, solvers.GRADED)
    found = solve_floors(solvers.losses(x, y, power), eps, tolerance=run.rtol / 10, basis=table, left=run.left)
    thresholds = found.masses / np.maximum(found.weights, 1e-300)
    _send(run, y / sides, found.floors, kept, {
        "objective": found.value * float(max(widths)) ** power, "columns": table.shape[1] + 1, "rows": found.cuts,
        "build": build_smooth, "arguments": (problem, cells, count, *(
            tuple(map(tuple, part[found.weights > 0].reshape(-1, k).tolist())) for part, k in ((x, 2), (thresholds, 1))
        )),
    })  # fmt: skip
    prior = solvers.best_prior(
        sides,
        eps,
        power,
        lambda x: solvers.thresholds_of(x, y, found.floors, eps, power),
        coarse,
        fine,
        outputs,
        run.left,
    )
    if prior is not None:
        _prove(run, np.minimum(prior.inputs / sides, 0.5), prior.weights, prior.thresholds, kept)


def _placed(domain: Box, shares: np.ndarray) -> np.ndarray:
    """Points at these shares of the sides."""
    low = np.array(domain.lower)
    return np.clip(low + shares * [float(side.exact_width) for side in domain.sides], low, np.array(domain.upper))


def _prove(run: Run, shares: np.ndarray, weights: np.ndarray, thresholds: np.ndarray, kept: dict[str, Any]) -> None:
    """Keep what this prior proves, if it is more."""
    proof = certify(run.problem, shares, weights, thresholds)
    bound = proof.bound(run.problem).value
    if bound > kept["bound"]:
        kept.update(bound=bound, proof=proof)


def _send(run: Run, shares: np.ndarray, floors: np.ndarray, kept: dict[str, Any], told: dict[str, Any]) -> None:
    """Keep the mechanism with this floor and what is `told` of its program, if it is better. Outputs between which there are no
    floats are one.
    """
    placed: Any = _placed(run.problem.domain, shares)
    points, places = np.unique(placed, axis=0, return_inverse=True)
    floors = np.bincount(places.reshape(-1), floors)
    used = np.sort(np.argsort(-floors, kind="stable")[: min(OUTPUTS, int((floors > 1e-9 * floors.max()).sum()))])
    ratio = enclosures.exp_below(run.problem.eps)  # type: ignore[arg-type]
    made = PlaneMechanism.of_floors(run.problem.domain, points[used], floors[used], ratio)
    value = made.enclose(run.problem.objective)[1]
    if value < kept["value"]:
        kept.update(value=value, made=made, **told)


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


def build_smooth(
    problem: Problem,
    cells: int,
    count: int,
    inputs: tuple[tuple[float, float], ...],
    thresholds: tuple[tuple[float], ...],
) -> LinearProgram:
    """The program of floors that are sums of a few functions, with the cuts of its multipliers: t is the loss in the units of
    the problem, and the columns of the floor are masses.
    """
    domain: Any = problem.domain
    widths, eps = [float(side.exact_width) for side in domain.sides], float(problem.eps)  # type: ignore[arg-type]
    unit, power = max(widths), int(problem.loss.exponent)
    y, table = solvers.lattice(np.array(widths) / unit, cells, count, solvers.GRADED)
    nu = np.array(thresholds)
    reduced = solvers.losses(np.array(inputs), y, power) - nu
    cuts = (reduced + np.expm1(eps) * np.minimum(reduced, 0.0)) @ table * unit**power
    rows = np.vstack([np.append(0.0, np.ones(table.shape[1])), np.hstack([np.ones((len(nu), 1)), -cuts])])
    least = np.append(np.exp(-eps), nu[:, 0] * unit**power)
    return LinearProgram(
        np.append(1.0, np.zeros(table.shape[1])), rows, least, np.append(1.0, np.full(len(nu), np.inf)),
        blocks={"mass": slice(0, 1), "loss": slice(1, len(least))},
        variables={"value": slice(0, 1), "floor": slice(1, 1 + table.shape[1])}, name="optdp-plane-floor",
    )  # fmt: skip


def quarter(cells: list[int]) -> np.ndarray:
    """The points of a grid with even numbers of cells that lie in the lower quarter, as shares of the sides."""
    return grid_of(*(np.arange(n // 2 + 1) / n for n in cells))


register(
    "plane",
    (f"LDP with eps in [{LEAST:g}, {MOST:g}]", "Box with two sides", "WorstCase of abs or squared", "AllMechanisms", ""),
    accepts, design, solvers=False,
)  # fmt: skip

"""The plain linear program on a grid: every probability is a variable. The program in the floor is tested with it."""

from __future__ import annotations

import numpy as np

from optdp.certificates.kernel import KernelCertificate
from optdp.design.finite_kernel import plain_program
from optdp.design.kernel.task import Task
from optdp.design.registry import Run
from optdp.problem.problem import Problem
from optdp.solution import Solution
from optdp.solvers.lp import LinearProgram, SolverFailure

#: Inputs of the grid, and outputs.
INPUTS, OUTPUTS = 17, 33
#: Every input keeps this weight in the dual where means are multipliers.
LEAST = 1e-9


def _grid(task: Task) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """(inputs, outputs, prior): even points, or those of the prior, and outputs between the limits."""
    if task.prior is None:
        inputs, chances = np.linspace(0.0, 1.0, INPUTS), None
    else:
        inputs, chances = task.prior
        if task.cost.tilted:  # means are exact at the ends of the domain, too, whatever their weights
            ends = np.setdiff1d([0.0, 1.0], inputs)
            inputs, chances = np.append(inputs, ends), np.append(chances, 0.0 * ends)
    low, high = task.span
    inside = inputs[(inputs >= low) & (inputs <= high)]
    y = task.meshes(1.0)[0] if task.cost.tilted else np.linspace(low, high, OUTPUTS)
    return inputs, np.union1d(y, inside), chances


def build_model(problem: Problem) -> LinearProgram:
    """Rows "mass", "loss" (worst case), "mean" (unbiased), "most" and "least" (likelihood ratios); variables "value" (worst
    case), "kernel" (input by input) and "floor". In shares of the domain and units of the largest loss.
    """
    task = Task(problem)
    inputs, y, chances = _grid(task)
    losses = task.cost.of(y[None] - inputs[:, None])
    return plain_program(losses, task.eps, chances, (y, inputs) if task.cost.tilted else None)


def design(run: Run) -> Solution:
    """The floor of the plain program as a mechanism with atoms, its dual as a prior with atoms, neither refined nor repaired."""
    task, problem = Task(run.problem), run.problem
    cost, (inputs, y, chances) = task.cost, _grid(task)
    found = build_model(problem).solve(run.solver, time_limit=run.time_limit).checked()
    floor = np.maximum(found.value("floor"), 0.0)
    use = floor > 1e-12 * floor.sum()
    lows = y[use]
    if cost.tilted:  # so that every mean is reached after rounding
        lows = 0.5 + (lows - 0.5) * (1 + 2.0**-20)
    mechanism = task.mechanism(lows, lows, floor[use])
    if cost.tilted and not mechanism.check_unbiased().passed:
        raise SolverFailure("the linear program's answer is no unbiased mechanism: its floor does not reach every mean")
    weights = np.maximum(-found.dual("loss"), 0.0) if chances is None else chances * (1 - 1e-12)
    masses, rays = found.dual("mass"), []
    if cost.tilted:
        tilt = found.dual("mean")
        if chances is None:
            weights = np.maximum(weights, LEAST)
        rays = [(t, -m / t) for t, m, w in zip(*np.array([tilt, masses, weights]).tolist(), strict=True) if not w and t]
        inputs, masses, tilt, weights = (v[weights > 0] for v in (inputs, masses, tilt, weights))
        # nu + mu y = nu + mu x + mu (y - x): the constant of the solver's multipliers is at y = 0.
        centre = inputs + tilt / (2 * weights)
        reach = np.sqrt(np.maximum((masses + tilt * inputs) / weights + (tilt / (2 * weights)) ** 2, 0.0))
    else:
        centre, reach = np.empty(0), cost.reaches(masses / np.maximum(weights, 1e-300))[0]
    keep = weights > 0
    certificate = KernelCertificate(
        points=tuple(inputs[keep].tolist()), weights=tuple(weights[keep].tolist()), point_reaches=tuple(reach[keep].tolist()),
        point_centres=tuple(centre[keep].tolist()) if cost.tilted else (), rays=tuple(rays),
    )  # fmt: skip
    return run.solution(
        mechanism, certificate, f"{inputs.size * y.size + y.size + 1} columns: probabilities and floors at {y.size} outputs",
        f"mass and loss at {inputs.size} inputs, {2 * inputs.size * y.size} likelihood ratios",
        run.solver.name if run.solver is not None else "HiGHS (dense)",
        objective=found.objective * cost.unit, build=build_model, arguments=(problem,),
    )  # fmt: skip

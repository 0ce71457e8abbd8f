"""Nonlinear programs as Pyomo models, solved by SCIP or Gurobi (spatial branch and bound): one driver for both."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from typing import Any

log = logging.getLogger("optdp.solvers")

#: Pyomo's name of a solver, the package that brings it, and the extra of optdp that installs it.
GLOBAL = {"scip": ("scip_direct", "pyscipopt", "scip"), "gurobi": ("gurobi_direct_minlp", "gurobipy", "gurobi")}


@dataclass(frozen=True)
class NonlinearResult:
    """Raw, unverified solver output. `found`: whether there is a feasible point, which the model's variables then hold."""

    found: bool
    objective: float | None
    bound: float | None
    message: str
    timed_out: bool


def available(name: str) -> bool:
    """Whether the solver can be used on this machine."""
    return bool(_solver(name).available())


def _solver(name: str) -> Any:
    import pyomo.environ  # noqa: F401  (registers the solvers)
    from pyomo.contrib.solver.common.factory import SolverFactory

    return SolverFactory(GLOBAL[name][0])


def solve(model: Any, name: str = "scip", *, time_limit: float = 60.0, rel_gap: float | None = None) -> NonlinearResult:
    """Minimise a Pyomo model, loading the best point into its variables.

    **Raises** RuntimeError naming the extra if the solver is not installed.
    """
    solver = _solver(name)
    if not solver.available():
        _, package, extra = GLOBAL[name]
        raise RuntimeError(f"method = {name!r} needs the package {package}: pip install 'optdp[{extra}]'")
    solver.config.time_limit = time_limit
    if name == "scip":
        solver.config.solver_options["timing/clocktype"] = 2  # wall seconds, not CPU seconds
    if rel_gap is not None:
        solver.config.rel_gap = rel_gap
    solver.config.raise_exception_on_nonoptimal_result = False
    solver.config.load_solutions = False
    result = solver.solve(model)
    message = f"{result.termination_condition.name}, {result.solution_status.name}"
    log.debug("%s: %s", name, message)
    bound = result.objective_bound
    bound = float(bound) if bound is not None and math.isfinite(bound) else None
    late = result.termination_condition.name == "maxTimeLimit"
    if result.incumbent_objective is None:
        return NonlinearResult(False, None, bound, message, late)
    result.solution_loader.load_vars()
    return NonlinearResult(True, float(result.incumbent_objective), bound, message, late)

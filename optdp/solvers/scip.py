"""SCIP on a Pyomo model, in process."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Outcome:
    """What SCIP says of a model: nothing of it is trusted."""

    objective: float
    bound: float | None
    message: str
    timed_out: bool


def run(model: Any, time_limit: float) -> Outcome:
    """Minimise a Pyomo model by spatial branch and bound, loading the best point into its variables.

    **Raises** RuntimeError if PySCIPOpt is not installed, or if no feasible point was found within the limit.
    """
    from pyomo.contrib.solver.common.factory import SolverFactory

    solver = SolverFactory("scip_direct")
    if not solver.available():
        raise RuntimeError("backend = 'scip' needs PySCIPOpt: pip install pyscipopt")
    solver.config.time_limit = time_limit
    solver.config.solver_options["timing/clocktype"] = 2  # wall seconds, not CPU seconds
    solver.config.rel_gap = 1e-9
    solver.config.raise_exception_on_nonoptimal_result = False
    solver.config.load_solutions = False
    result = solver.solve(model)
    if result.incumbent_objective is None:
        raise RuntimeError(
            f"SCIP found no feasible point in {time_limit:g} s ({result.termination_condition}): raise time_limit"
        )
    result.solution_loader.load_vars()
    timed_out = result.termination_condition.name == "maxTimeLimit"
    bound = result.objective_bound
    return Outcome(
        float(result.incumbent_objective),
        float(bound) if bound is not None and math.isfinite(bound) else None,
        f"{result.termination_condition.name}, {result.solution_status.name}",
        timed_out,
    )

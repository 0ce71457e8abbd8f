"""Nonlinear programs: Pyomo models by SCIP or Gurobi (spatial branch and bound), CasADi expressions by Ipopt (local)."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel

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


def solve(
    model: ConcreteModel, name: str = "scip", *, time_limit: float = 60.0, rel_gap: float | None = None
) -> NonlinearResult:
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
    try:
        return _solved(solver, model, name)
    except Exception as error:  # whatever a solver may raise: there is no point then
        log.debug("%s failed", name, exc_info=True)
        return NonlinearResult(False, None, None, f"{name} raised {type(error).__name__}: {error}", False)


def _solved(solver: Any, model: ConcreteModel, name: str) -> NonlinearResult:
    from pyomo.environ import Var

    result = solver.solve(model)
    message = f"{result.termination_condition.name}, {result.solution_status.name}"
    log.debug("%s: %s", name, message)
    bound = result.objective_bound
    bound = float(bound) if bound is not None and math.isfinite(bound) else None
    late = result.termination_condition.name == "maxTimeLimit"
    if result.incumbent_objective is None:
        return NonlinearResult(False, None, bound, message, late)
    result.solution_loader.load_vars()
    values = [float(result.incumbent_objective), *(float(v.value) for v in model.component_data_objects(Var))]
    if not all(map(math.isfinite, values)):
        return NonlinearResult(False, None, bound, f"{message}, a point that is not finite", late)
    return NonlinearResult(True, values[0], bound, message, late)


def ipopt(
    rows: Callable[[Any, Any], Any], objective: int, bounds: Sequence[tuple[float, float]], equalities: int,
    starts: Sequence[np.ndarray], *, time_limit: float = 60.0,
) -> tuple[np.ndarray | None, str]:  # fmt: skip
    """Minimise one variable subject to rows = 0 (the first `equalities`) and >= 0 (the rest), by Ipopt as CasADi bundles it.

    **Arguments:** `rows(casadi, z)`: the rows as a CasADi expression in the variables z; `objective`: which variable;
    `bounds`: of each variable; `starts`: points to start from.

    **Returns** (the best point that Ipopt calls optimal or None, what it said). **Raises** RuntimeError naming the extra.
    """
    try:
        import casadi
    except ImportError:
        raise RuntimeError("method = 'ipopt' needs the package casadi: pip install 'optdp[ipopt]'") from None
    z = casadi.SX.sym("z", len(bounds))
    g = rows(casadi, z)
    quiet: dict[str, Any] = {"ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False}
    options = quiet | {"ipopt.max_cpu_time": time_limit, "ipopt.tol": 1e-10}
    solver = casadi.nlpsol("solver", "ipopt", {"x": z, "f": z[objective], "g": g}, options)
    low, high = np.array(bounds).T
    top = np.concatenate((np.zeros(equalities), np.full(g.shape[0] - equalities, np.inf)))
    best, status, converged = None, "no start converged", 0
    for start in starts:
        found = solver(x0=start, lbx=low, ubx=high, lbg=np.zeros(g.shape[0]), ubg=top)
        if not solver.stats()["success"]:
            continue
        converged += 1
        point = np.asarray(found["x"]).ravel()
        if best is None or point[objective] < best[objective]:
            best, status = point, str(solver.stats()["return_status"])
    return best, f"{converged} of {len(starts)} starts converged, {status}"

"""Linear programs in cvxpy, as a reader would write them down, and its conic solvers behind the protocol of `lp`."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from optdp.solvers.lp import LinearProgram, LinearResult, LinearSolver, LinearStatus

#: Clarabel's tolerances: what a solution is worth is for its certificate to judge.
TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}

STATUS_OF_CVXPY = {
    "optimal": LinearStatus.OPTIMAL, "optimal_inaccurate": LinearStatus.IMPRECISE,
    "infeasible": LinearStatus.INFEASIBLE, "unbounded": LinearStatus.UNBOUNDED, "user_limit": LinearStatus.TIME_LIMIT,
}  # fmt: skip


def as_cvxpy(program: LinearProgram) -> Any:
    """A linear program as a cvxpy `Problem` with the variable `x`: its equations, rows from below, rows from above, bounds.

    Rows without a limit are left out; `constraints[0]` are the equations where there are any.
    """
    import cvxpy as cp

    x = cp.Variable(program.cost.size, name="x")
    limits = []
    for rows, low, high in ((program.rows, program.row_lower, program.row_upper), (None, program.lower, program.upper)):
        equal = low == high
        for which, sign, limit in (
            (equal, 0, low),
            (~equal & np.isfinite(low), 1, low),
            (~equal & np.isfinite(high), -1, high),
        ):
            if which.any():
                left = x[which] if rows is None else rows[which] @ x
                limits.append(left == limit[which] if sign == 0 else sign * left >= sign * limit[which])
    goal = cp.Maximize if program.maximise else cp.Minimize
    return cp.Problem(goal(program.cost @ x), limits)


@dataclass(frozen=True)
class Clarabel(LinearSolver):
    """Clarabel, an interior-point method for conic programs, through cvxpy: slower than HiGHS, and independent of it."""

    name = "cvxpy, Clarabel"

    def solve(self, program: LinearProgram, *, time_limit: float = math.inf) -> LinearResult:
        import cvxpy as cp

        model = as_cvxpy(program)
        limit = {"time_limit": time_limit} if math.isfinite(time_limit) else {}
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Solution may be inaccurate")
            try:
                model.solve(solver="CLARABEL", **TIGHT, **limit)
            except cp.SolverError as error:
                return LinearResult(LinearStatus.FAILED, message=str(error), program=program)
        status = STATUS_OF_CVXPY.get(model.status, LinearStatus.FAILED)
        if status not in (LinearStatus.OPTIMAL, LinearStatus.IMPRECISE):
            return LinearResult(status, message=model.status, program=program)
        # cvxpy's dual of an equation is minus the change of a minimum per unit of its right side, and plus that of a maximum.
        x = model.variables()[0].value
        duals = np.zeros(program.rows.shape[0])
        low, high, constraints = program.row_lower, program.row_upper, iter(model.constraints)
        equal = low == high
        side = 1.0 if program.maximise else -1.0
        for which, sign in ((equal, side), (~equal & np.isfinite(low), -side), (~equal & np.isfinite(high), side)):
            if which.any():
                duals[which] += sign * np.atleast_1d(next(constraints).dual_value)
        return LinearResult(
            status, float(model.value), np.array(x), duals, program.cost - program.rows.T @ duals,
            int(model.solver_stats.num_iters or 0), model.status, program,
        )  # fmt: skip

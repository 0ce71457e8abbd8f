"""Programs in cvxpy, as a reader would write them down, and its conic solvers behind the protocol of `lp`."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp.solvers.lp import LinearProgram, LinearResult, LinearSolver, LinearStatus

if TYPE_CHECKING:
    import cvxpy as cp

#: Clarabel's tolerances: what a solution is worth is for its certificate to judge.
TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}

#: Entries of a matrix that cvxpy gets as an array, which it takes faster than a sparse one.
DENSE = 10_000

STATUS_OF_CVXPY = {
    "optimal": LinearStatus.OPTIMAL, "optimal_inaccurate": LinearStatus.IMPRECISE,
    "infeasible": LinearStatus.INFEASIBLE, "unbounded": LinearStatus.UNBOUNDED, "user_limit": LinearStatus.TIME_LIMIT,
}  # fmt: skip


def as_cvxpy(program: LinearProgram) -> cp.Problem:
    """A linear program as a cvxpy `Problem` with the variable `x`: its equations, rows from below, rows from above, bounds.

    Rows without a limit are left out; `constraints[0]` are the equations where there are any.
    """
    import cvxpy as cp

    positive = (
        not program.lower.any() and not np.isfinite(program.upper).any()
    )  # an attribute is built faster than rows
    x = cp.Variable(program.cost.size, name="x", nonneg=positive)
    limits: list[Any] = []
    bounds: tuple[Any, Any, Any] = (None, program.lower, program.upper)
    matrix = program.rows.toarray() if math.prod(program.rows.shape) <= DENSE else program.rows
    for rows, low, high in ((matrix, program.row_lower, program.row_upper), *([] if positive else [bounds])):
        for which, sign in _limits(low, high):
            left, limit = x[which] if rows is None else rows[which] @ x, (high if sign < 0 else low)[which]
            limits.append(left == limit if sign == 0 else left >= limit if sign > 0 else left <= limit)
    return cp.Problem((cp.Maximize if program.maximise else cp.Minimize)(program.cost @ x), limits)


def _limits(low: Any, high: Any) -> list[tuple[np.ndarray, int]]:
    """(which rows, 0: equations, 1: bounded from below, -1: from above), where there are any."""
    equal = low == high
    kinds = (equal, 0), (~equal & np.isfinite(low), 1), (~equal & np.isfinite(high), -1)
    return [(which, sign) for which, sign in kinds if which.any()]


def solved(model: cp.Problem, **options: Any) -> str:
    """Solve with Clarabel; cvxpy's word for how it ended, or what was raised: whatever it is, there is no point then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.solve(solver="CLARABEL", **options)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return str(model.status)


@dataclass(frozen=True)
class Clarabel(LinearSolver):
    """Clarabel, an interior-point method for conic programs, through cvxpy: slower than HiGHS, and independent of it."""

    name = "cvxpy, Clarabel"

    def solve(self, program: LinearProgram, *, time_limit: float = math.inf) -> LinearResult:
        model = as_cvxpy(program)
        ended = solved(model, **TIGHT, **({"time_limit": time_limit} if math.isfinite(time_limit) else {}))
        status = STATUS_OF_CVXPY.get(ended, LinearStatus.FAILED)
        if status not in (LinearStatus.OPTIMAL, LinearStatus.IMPRECISE):
            return LinearResult(status, message=ended, program=program)
        if model.variables()[0].value is None or any(limit.dual_value is None for limit in model.constraints):
            return LinearResult(LinearStatus.FAILED, message=f"{ended}, without a point", program=program)
        # cvxpy's dual of an equation is minus the change of a minimum per unit of its right side, and plus that of a maximum.
        duals, side = np.zeros(program.rows.shape[0]), 1.0 if program.maximise else -1.0
        for (which, sign), limit in zip(_limits(program.row_lower, program.row_upper), model.constraints, strict=False):
            duals[which] += (-side if sign > 0 else side) * np.atleast_1d(limit.dual_value)
        return LinearResult(
            status, float(model.value), np.array(model.variables()[0].value), duals, program.cost - program.rows.T @ duals,
            int(model.solver_stats.num_iters or 0), model.status, program,
        )  # fmt: skip


def set_program(ratio: float, d: int) -> cp.Problem:
    """The plain program of frequency oracles over all sets of categories.

    Minimise t over masses theta_S >= 0 of all 2^d sets S and vectors u_S = theta_S v_S in R^d: under the
    category i the message S, which stands for v_S, has the probability theta_S k_i, k_i = `ratio` for i in S and 1 else;

        sum_S theta_S k_i = 1,   sum_S k_i u_S = e_i,   sum_S k_i |u_S|^2/theta_S - 1 <= t      for every i.

    The variables are called `theta`, `u` and `t`.
    """
    import cvxpy as cp

    height = 1 + (ratio - 1) * np.array(list(product([0, 1], repeat=d)), dtype=float)
    theta = cp.Variable(len(height), nonneg=True, name="theta")
    u, t = cp.Variable((len(height), d), name="u"), cp.Variable(name="t")
    energy = cp.hstack([cp.quad_over_lin(u[s], theta[s]) for s in range(len(height))])
    limits = [height.T @ theta == 1, height.T @ u == np.eye(d), height.T @ energy - 1 <= t]
    return cp.Problem(cp.Minimize(t), limits)

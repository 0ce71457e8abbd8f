"""Solvers that fail: what they answer is noisy, empty, late, of another size, or not an answer at all.

`Faulty` stands behind the protocol of linear solvers, `nonlinear` and `conic` stand in for Pyomo's and cvxpy's solvers.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np

from optdp.solvers import nlp
from optdp.solvers.lp import Highs, LinearResult, LinearSolver, LinearStatus

NOISE = tuple(10.0**-k for k in range(12, 0, -1))
ANSWERS = (
    *(f"noise {level:.0e}" for level in NOISE),
    "zeros", "minus", "huge", "tiny", "shuffled", "constant", "primal alone", "dual alone", "objective", "imprecise",
    "nan", "nan dual", "infinite", "short", "long", "table", "text", "none", "number", "no status", "empty",
    "infeasible", "unbounded", "failed", "time limit", "iteration limit", "ValueError", "RuntimeError", "ArithmeticError",
    "TimeoutError", "MemoryError", "KeyError", "AssertionError",
)  # fmt: skip
#: What a solver may raise that says so.
RAISED = {
    kind.__name__: kind
    for kind in (ValueError, RuntimeError, ArithmeticError, TimeoutError, MemoryError, KeyError, AssertionError)
}
STATUS = {
    "infeasible": LinearStatus.INFEASIBLE, "unbounded": LinearStatus.UNBOUNDED, "failed": LinearStatus.FAILED,
    "time limit": LinearStatus.TIME_LIMIT, "iteration limit": LinearStatus.ITERATION_LIMIT,
}  # fmt: skip


@dataclass(frozen=True)
class Faulty(LinearSolver):
    """HiGHS with faults.

    **Arguments:** `fault`: one of `ANSWERS`; `after`: how many solves are right before the first that is not; `every`: from then
    on, one in how many is wrong; `number`: of the random draws.
    """

    fault: str
    after: int = 0
    every: int = 1
    number: int = 0
    calls: list = field(default_factory=list, compare=False, repr=False)

    @property
    def name(self):
        return f"faulty ({self.fault}, after {self.after}, every {self.every})"

    def solve(self, program, *, time_limit=math.inf):
        self.calls.append(program.rows.shape)
        count = len(self.calls) - 1 - self.after
        if count < 0 or count % self.every:
            return Highs(iterations=20_000).solve(program, time_limit=time_limit)
        if self.fault in RAISED:
            raise RAISED[self.fault]("the solver is broken")
        if self.fault in STATUS:
            return LinearResult(STATUS[self.fault], message=self.fault, program=program)
        if self.fault in ("none", "number", "text", "no status"):
            return {"none": None, "number": 1.0, "text": "optimal", "no status": LinearResult("optimal")}[self.fault]
        return wrong(
            Highs(iterations=20_000).solve(program, time_limit=time_limit), self.fault, len(self.calls) + self.number
        )


def wrong(found, fault, number):
    """A result with this fault."""
    rng = np.random.default_rng(number)
    x, dual = found.x, found.row_dual
    if fault.startswith("noise"):
        level = float(fault.split()[1])
        value = found.objective * (1 + level * rng.normal())
        return replace(found, objective=value, x=spoilt(x, level, rng), row_dual=spoilt(dual, level, rng))
    change = {
        "zeros": lambda v: 0 * v, "minus": np.negative, "huge": lambda v: 1e300 * (1 + v), "tiny": lambda v: 1e-300 * v,
        "shuffled": rng.permutation, "constant": lambda v: 0 * v + 1.0, "nan": lambda v: v * math.nan,
        "infinite": lambda v: v + math.inf, "short": lambda v: v[:-1], "long": lambda v: np.append(v, 1.0),
        "table": lambda v: v[:, None],
    }  # fmt: skip
    if fault in change:
        objective = float(change[fault](np.array([found.objective]))[0]) if fault not in ("short", "table") else 0.0
        return replace(found, objective=objective, x=change[fault](x), row_dual=change[fault](dual))
    return {
        "primal alone": lambda: replace(found, row_dual=0 * dual), "dual alone": lambda: replace(found, x=0 * x),
        "objective": lambda: replace(found, objective=found.objective + 1.0),
        "imprecise": lambda: replace(
            found, status=LinearStatus.IMPRECISE, x=spoilt(x, 1e-3, rng), row_dual=spoilt(dual, 1e-3, rng)
        ),
        "nan dual": lambda: replace(found, row_dual=dual * math.nan),
        "empty": lambda: LinearResult(LinearStatus.OPTIMAL, 0.0),
    }[fault]()  # fmt: skip


def spoilt(values, level, rng):
    """With noise, relative to each and to the largest of them."""
    largest = float(np.abs(values).max(initial=0.0))
    return values * (1 + level * rng.normal(size=values.shape)) + level * largest * rng.normal(size=values.shape) / 10


@contextlib.contextmanager
def linear(fault, **options):
    """HiGHS itself with faults in its answers, for what brings its own solver (it is not one that raises)."""
    solve = type(Highs().session(_nothing())).solve
    count = [0]

    def faulty(session, **given):
        found = solve(session, **given)
        count[0] += 1
        step = count[0] - 1 - options.get("after", 0)
        if step < 0 or step % options.get("every", 1) or not found.usable:
            return found
        if fault in STATUS or fault in RAISED or fault in ("none", "number", "text", "no status"):
            return LinearResult(STATUS.get(fault, LinearStatus.FAILED), message=fault, program=found.program)
        return wrong(found, fault, count[0])

    kind = type(Highs().session(_nothing()))
    kind.solve = faulty
    try:
        yield
    finally:
        kind.solve = solve


def _nothing():
    from optdp.solvers.lp import LinearProgram

    return LinearProgram([1.0], [[1.0]], [0.0], [1.0])


@contextlib.contextmanager
def nonlinear(fault, number=0):
    """Pyomo's solvers with faults."""
    original, rng = nlp._solver, np.random.default_rng(number)

    def solver(name):
        inner = original(name)

        def solve(model):
            if fault in RAISED:
                raise RAISED[fault]("the solver is broken")
            found = inner.solve(model)
            values = {
                "nan": math.nan, "infinite": math.inf, "huge": 1e300, "zeros": 0.0, "minus": -1.0, "constant": 1.0,
                "tiny": 1e-300,
            }  # fmt: skip
            level = float(fault.split()[1]) if fault.startswith("noise") else 0.0

            def load():
                if fault == "number":
                    raise ValueError("no solution to load")
                found.solution_loader.load_vars()
                for part in model.component_data_objects(__import__("pyomo.environ", fromlist=["Var"]).Var):
                    if part.fixed or part.value is None:
                        continue
                    new = values.get(fault, part.value * (1 + level * rng.normal()) + level * rng.normal() / 10)
                    part.set_value(None if fault == "none" else new, skip_validation=True)

            late = fault in ("time limit", "iteration limit", "infeasible", "unbounded", "failed", "empty")
            condition = {"time limit": "maxTimeLimit"}.get(fault, "error" if late else found.termination_condition.name)
            objective = None if late else values.get(fault, found.incumbent_objective)
            bound = values.get(fault, found.objective_bound)
            return SimpleNamespace(
                termination_condition=SimpleNamespace(name=condition), solution_status=found.solution_status,
                objective_bound=bound, incumbent_objective=objective, solution_loader=SimpleNamespace(load_vars=load),
            )  # fmt: skip

        return SimpleNamespace(available=inner.available, config=inner.config, solve=solve)

    nlp._solver = solver
    try:
        yield
    finally:
        nlp._solver = original


@contextlib.contextmanager
def conic(fault, number=0):
    """cvxpy with faults in the values and dual values of what it has solved."""
    import cvxpy as cp

    original, rng = cp.Problem.solve, np.random.default_rng(number)

    def spoil(values):
        values = np.asarray(values, dtype=float)
        if fault.startswith("noise"):
            return spoilt(values, float(fault.split()[1]), rng)
        return {
            "zeros": 0 * values, "minus": -values, "huge": 1e300 * (1 + values), "tiny": 1e-300 * values,
            "constant": 0 * values + 1, "nan": values * math.nan, "infinite": values + math.inf,
        }.get(fault, values)  # fmt: skip

    def solve(problem, *args, **given):
        if fault == "failed":
            raise cp.SolverError("the solver is broken")
        if fault in RAISED:
            raise RAISED[fault]("the solver is broken")
        value = original(problem, *args, **given)
        if fault in ("infeasible", "unbounded", "time limit"):
            problem._status = {"time limit": "user_limit"}.get(fault, fault)
            for variable in problem.variables():
                variable.save_value(None)
            return value
        for variable in problem.variables():
            if variable.value is not None and fault != "dual alone":
                variable.save_value(None if fault == "none" else spoil(variable.value))
        for limit in problem.constraints:
            for dual in limit.dual_variables:
                if dual.value is not None and fault != "primal alone":
                    dual.save_value(None if fault == "none" else spoil(dual.value))
        return value

    cp.Problem.solve = solve
    try:
        yield
    finally:
        cp.Problem.solve = original

"""The best of all eps-LDP mechanisms from a finite alphabet to finitely many answers, for a given matrix of losses.

The linear program of `optdp.design.kernel` without the geometry: floors m_j, favoured pairs u_ij <= (E - 1) m_j,
mass 1 for each input; the worst-case loss is minimised, or the average under a prior. Its extreme points are the
staircase mechanisms of Kairouz, Oh and Viswanath (JMLR 17, 2016): every output is a set of inputs that get it with the
high probability.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optdp.certificates.finite import ENTRIES, LARGEST, FiniteCertificate
from optdp.design.registry import Run, register
from optdp.exact import enclosures, require
from optdp.exact.rounding import SLACK, Table, private_weights
from optdp.mechanisms.finite import FiniteMechanism
from optdp.problem.domains import Alphabet
from optdp.problem.families import AllMechanisms
from optdp.problem.losses import LossLike, as_loss
from optdp.problem.objectives import Average, WorstCase
from optdp.problem.priors import Prior, PriorLike
from optdp.problem.privacy import LDP
from optdp.problem.problem import Problem
from optdp.solution import Solution
from optdp.solvers import kernel_lp as lp
from optdp.solvers.lp import LinearProgram, LinearSolver, LinearStatus

METHODS = ("auto", "columns", "dense")


def objective(loss: LossLike | None, domain: Alphabet, prior: PriorLike | str | None) -> WorstCase | Average:
    """What `optdp.solve_kernel` minimises on an alphabet; `prior`: one probability for each symbol, "uniform", or None.

    **Raises** TypeError or ValueError naming the argument.
    """
    if loss is None or isinstance(loss, str):
        raise TypeError(
            f"loss = {loss!r} is not allowed: with an Alphabet it must be a matrix, "
            "a row for each input, a column for each output"
        )
    law = as_loss(loss)
    if prior is None:
        return WorstCase(law)
    known = isinstance(prior, Prior | str) or hasattr(prior, "items")
    return Average(law, prior if known else Prior.of(prior, domain.symbols))


def accepts(problem: Problem) -> str | None:
    """All mechanisms from an alphabet, worst case or average of a loss matrix."""
    privacy, domain, asked = problem.privacy, problem.domain, problem.objective
    if not isinstance(privacy, LDP) or not 0 < float(privacy.eps) <= require.MAX_EPS:
        return "privacy must be LDP with eps in (0, 30]"
    if not isinstance(domain, Alphabet) or not isinstance(problem.family, AllMechanisms):
        return "the domain must be an alphabet and the family all mechanisms"
    if not isinstance(asked, WorstCase | Average) or asked.loss.form != "matrix":
        return "loss is not allowed: it must be the worst case or average of a matrix"
    if len(asked.loss.rows) != len(domain) or asked.loss.array.size > ENTRIES:
        return (
            f"loss is not allowed: it has {len(asked.loss.rows)} rows, and must have one for each of the {len(domain)} symbols "
            f"of {domain}, and at most {ENTRIES} entries"
        )
    return None if not problem.constraints else "there must be no constraints"


def method_for(method: str, solver: LinearSolver | None) -> str:
    """The method that uses `solver`, if one is given."""
    if solver is not None and method == "columns":
        raise ValueError("solver is not allowed with method = 'columns': leave it out, or use 'dense'")
    return method if solver is None else "dense"


def design(run: Run) -> Solution:
    """See `optdp.solve_kernel`. Outputs are the columns of the loss matrix, 0, 1, 2, ..., or the symbols if the matrix is square.

    A `solver` solves the plain linear program.
    """
    problem, solver, method = run.problem, run.solver, method_for(run.method, run.solver)
    domain: Any = problem.domain
    eps, law = problem.eps, problem.loss
    d, m = law.array.shape
    scale = float(law.array.max()) or 1.0
    answers, stopped = np.arange(m), list[str]()

    def solve(ratio: float) -> lp.Outcome:
        left, grid = run.time_limit - run.seconds, _grid(problem, ratio, scale)
        try:
            if left <= 0:
                raise lp.SolverFailure(
                    "the time limit was reached before a program was solved", LinearStatus.TIME_LIMIT
                )
            if method == "dense":
                return lp.solve_dense(grid, answers, solver=solver, time_limit=left)
            if method == "columns":
                return lp.solve_columns(grid, answers, time_limit=left)
            return lp.solve_blocks(grid, answers, vertex=True, time_limit=left)
        except lp.SolverFailure as failure:
            if failure.status is not LinearStatus.TIME_LIMIT:
                raise
            stopped.append(str(failure))
            return _constant(grid)

    run.progress(f"{d} symbols, {m} outputs: lower bound")
    below = solve(float(np.exp(float(eps))))  # type: ignore[arg-type]
    weights = (
        () if isinstance(problem.objective, Average) else tuple(np.clip(below.dual.weights, 0.0, LARGEST).tolist())
    )
    certificate = FiniteCertificate(weights, tuple((below.dual.masses * scale).tolist()))
    run.progress("mechanism")
    ratio = enclosures.exp_below(eps)  # type: ignore[arg-type]
    above = solve(float(ratio) * (1 - SLACK))
    use = above.floors > 1e-10
    table = np.zeros((d, m), dtype=np.int64)
    table[:, above.outputs[use].astype(int)] = private_weights(above.rows[:, use], above.floors[use], ratio)
    mechanism = FiniteMechanism(domain, domain.symbols if m == d else tuple(range(m)), Table(table))
    return run.solution(
        mechanism, certificate, f"{above.variables} columns (floors and favoured pairs of input and output)",
        f"{above.constraints} rows: mass and loss of {d} inputs, likelihood ratios",
        f"HiGHS ({method})" if solver is None else solver.name, objective=above.value * scale, bound=below.value * scale,
        message=" ".join(stopped[:1]), stopped=bool(stopped), build=build_model, arguments=(problem,),
    )  # fmt: skip


register(
    "finite kernel",
    ("LDP", "Alphabet", "WorstCase or Average of a loss matrix", "AllMechanisms", ""),
    accepts, design, METHODS,
)  # fmt: skip


def build_model(problem: Problem) -> LinearProgram:
    """The plain linear program: see `optdp.solvers.kernel_lp.dense_program`."""
    grid = _grid(problem, float(np.exp(float(problem.eps))), 1.0)  # type: ignore[arg-type]
    return lp.dense_program(grid, np.arange(problem.loss.array.shape[1]))


def _grid(problem: Problem, ratio: float, scale: float) -> lp.Grid:
    """The program with losses in units of `scale`."""
    place, chances, asked = np.arange(len(problem.domain), dtype=float), None, problem.objective
    if isinstance(asked, Average):
        chances = np.full(place.size, 1 / place.size)
        if isinstance(asked.prior, Prior):
            chances[:] = 0.0
            chances[problem.domain.index(list(asked.prior.categories))] = asked.prior.probabilities
    return lp.Grid(ratio, 1.0, place, place, False, chances, False, problem.loss.array / scale)


def _constant(grid: lp.Grid) -> lp.Outcome:
    """What there is without a solver: the best output for everybody, and multipliers that prove nothing more than 0."""
    loss, d = np.asarray(grid.matrix), grid.knots.size
    costs = loss.max(axis=0) if grid.prior is None else grid.prior @ loss
    best, ones = np.array([int(np.argmin(costs))]), np.ones(1)
    dual = lp.Dual(grid, np.ones(d), np.zeros(d), np.zeros(d))
    return lp.Outcome(float(costs.min()), dual, best, ones, np.ones((d, 1)), loss.shape[1], d)

"""The best of all eps-LDP mechanisms from a finite alphabet to finitely many answers, for a given matrix of losses.

A mechanism K is eps-LDP if and only if m_y <= K(y|x) <= e^eps m_y for its floor m_y = min_x K(y|x). Given the floor the best row
of each input is known, so the optimum is a convex program in one number for each output: `optdp.solvers.floors` solves it by
cutting planes. The mechanism is the floor with each input's favoured outputs, and the dual a weight and a threshold for each
input (`optdp.certificates.finite`). The plain linear program over all pairs, `method="dense"`, is the reference; its extreme
points are the staircase mechanisms of Kairouz, Oh and Viswanath (JMLR 17, 2016): every output is a set of inputs that get it with
the high probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp.certificates.finite import ENTRIES, LARGEST, FiniteCertificate
from optdp.design.registry import Run, register
from optdp.exact import enclosures, require
from optdp.exact.numbers import counted
from optdp.mechanisms.finite import FiniteMechanism
from optdp.problem import LDP, AllMechanisms, Alphabet, Average, LossLike, Prior, PriorLike, Problem, WorstCase, as_loss
from optdp.solution import Solution
from optdp.solvers.floors import Floors, solve_floors
from optdp.solvers.lp import LinearProgram, LinearStatus, SolverFailure, stacked

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

METHODS = ("auto", "dense")

#: Alphabets with at most this many pairs of input and output are solved to DIGITS whatever was asked for: it takes a second.
SMALL, DIGITS = 100_000, 1e-9


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


def design(run: Run) -> Solution:
    """See `optdp.solve_kernel`. Outputs are the columns of the loss matrix, 0, 1, 2, ..., or the symbols if the matrix is square.

    A `solver` solves the plain linear program.
    """
    problem, solver = run.problem, run.solver
    domain: Any = problem.domain
    eps, losses = problem.eps, problem.loss.array
    d, m = losses.shape
    dense = run.method == "dense" or solver is not None
    run.progress(f"{d} symbols, {m} outputs")
    prior = prior_of(problem)
    # Nobody pays for the others: they need only be private.
    asked = np.arange(d) if prior is None else np.flatnonzero(prior)
    found = (plain if dense else _cuts)(run, losses[asked], None if prior is None else prior[asked])
    masses = np.zeros(d)
    masses[asked] = found.masses
    weights = () if prior is not None else tuple(np.clip(found.weights, 0.0, LARGEST).tolist())
    certificate = FiniteCertificate(weights, tuple(np.clip(masses, -LARGEST, LARGEST).tolist()))
    if prior is not None:  # where a constant output is the best it is proven by its losses, however small they are
        constant = prior * losses[:, int((prior @ losses).argmin())]
        by_constant = FiniteCertificate((), tuple(np.clip(constant, -LARGEST, LARGEST).tolist()))
        certificate = max(certificate, by_constant, key=lambda proof: proof.bound(run.problem).value)
    run.progress("mechanism")
    outputs = domain.symbols if m == d else tuple(range(m))
    ratio = enclosures.exp_below(eps)  # type: ignore[arg-type]
    mechanism = FiniteMechanism.of_floors(domain, outputs, found.floors, losses, ratio)
    if dense:
        size = f"{d * m + m + (prior is None)} columns", f"{d * (1 + (prior is None)) + 2 * d * m} rows"
    else:
        size = f"{m + (1 if prior is None else asked.size)} columns", f"{1 + found.cuts} rows"
    return run.solution(
        mechanism, certificate,
        f"{size[0]}: " + ("probabilities and floors" if dense else "floors and losses"),
        f"{size[1]}: " + ("mass and loss of each input, likelihood ratios" if dense else "total mass, cuts"),
        solver.name if solver is not None else "HiGHS (dense)" if dense else "HiGHS (cutting planes)",
        objective=found.value, bound=found.bound, message=counted(found.rounds, "round"),
        stopped=found.stopped, build=build_model, arguments=(problem,),
    )  # fmt: skip


register(
    "finite kernel",
    ("LDP", "Alphabet", "WorstCase or Average of a loss matrix", "AllMechanisms", ""),
    accepts, design, METHODS,
)  # fmt: skip


def prior_of(problem: Problem) -> np.ndarray | None:
    """The probability of each symbol, or None for the worst case."""
    asked, count = problem.objective, len(problem.domain)
    if not isinstance(asked, Average):
        return None
    if not isinstance(asked.prior, Prior):
        return np.full(count, 1 / count)
    chances = np.zeros(count)
    chances[problem.domain.index(list(asked.prior.categories))] = asked.prior.probabilities
    return chances


def _cuts(run: Run, losses: np.ndarray, prior: np.ndarray | None) -> Floors:
    """The convex program in the floor."""
    half = run.rtol / 2  # what rounding costs has the other half
    return solve_floors(
        losses, float(run.problem.eps), prior, tolerance=half if losses.size > SMALL else min(half, DIGITS),  # type: ignore[arg-type]
        left=run.left, tell=lambda low, high: run.progress("cutting planes", low, high),
    )  # fmt: skip


def plain(run: Run, losses: np.ndarray, prior: np.ndarray | None) -> Floors:
    """The plain linear program, with losses in units of the largest."""
    scale = float(losses.max()) or 1.0
    eps, left, found = float(run.problem.eps), run.left(), None  # type: ignore[arg-type]
    try:
        found = plain_program(losses / scale, eps, prior).solve(run.solver, time_limit=left).checked() if left else None
    except SolverFailure as stopped:
        if stopped.status is not LinearStatus.TIME_LIMIT:
            raise
    if found is None:  # the best output for everybody, and multipliers that prove no more than 0
        return solve_floors(losses, eps, prior, left=lambda: -1.0)
    weights = np.maximum(-found.dual("loss"), 0.0) if prior is None else prior
    masses, value = found.dual("mass") * scale, found.objective * scale
    return Floors(np.maximum(found.value("floor"), 0.0), weights, masses, value, value, 1, 0, False)


def build_model(problem: Problem) -> LinearProgram:
    """The plain linear program: rows "mass", "loss" (worst case), "most" and "least" (likelihood ratios); variables "value"
    (worst case), "kernel" (input by input) and "floor".
    """
    return plain_program(problem.loss.array, float(problem.eps), prior_of(problem))  # type: ignore[arg-type]


def plain_program(
    losses: np.ndarray, eps: float, prior: np.ndarray | None, means: tuple[np.ndarray, np.ndarray] | None = None
) -> LinearProgram:
    """The program over all pairs for a matrix of losses; with `means` = (outputs, inputs) unbiased, with rows "mean"."""
    from scipy.sparse import csr_matrix, hstack, identity

    d, m = losses.shape
    pairs, every = d * m, np.arange(d * m)
    each, floor = identity(pairs), csr_matrix((np.ones(pairs), (every, np.tile(np.arange(m), d))), shape=(pairs, m))
    limits = np.full(pairs, -np.inf), np.zeros(pairs)
    rows = [("most", hstack([each, -math.exp(eps) * floor]), *limits), ("least", hstack([-each, floor]), *limits)]
    if means is not None:
        rows.insert(0, ("mean", _by_input(np.tile(means[0], (d, 1)), m), means[1], means[1]))
    program = program_of_rows(losses, prior, rows, [("floor", m)], name="kernel")
    program.rows.eliminate_zeros()
    return program


def _by_input(values: np.ndarray, more: int) -> csr_matrix:
    """For each input a row with its values at its probabilities, and so many columns of zeros."""
    from scipy.sparse import csr_matrix

    (d, m), pairs = values.shape, values.size
    return csr_matrix((values.ravel(), (np.repeat(np.arange(d), m), np.arange(pairs))), shape=(d, pairs + more))


def program_of_rows(
    losses: np.ndarray, prior: np.ndarray | None, rows: Sequence[tuple[str, Any, np.ndarray, np.ndarray]],
    columns: Sequence[tuple[str, int]] = (), *, name: str,
) -> LinearProgram:  # fmt: skip
    """The least loss over probabilities "kernel" (input by input) with rows "mass", and "loss" where the worst case has the
    variable "value".

    **Arguments:** `rows`: what else there is, as (name, matrix, lower limits, upper limits); `columns`: names and numbers of
    variables behind the probabilities, which cost nothing.
    """
    from scipy.sparse import csr_matrix, hstack, vstack

    (d, m), worst, more = losses.shape, prior is None, sum(count for _, count in columns)
    one, free = np.ones(d), np.full(d, -np.inf)
    parts = [("mass", _by_input(np.ones((d, m)), more), one, one)]
    parts += [("loss", _by_input(losses, more), free, np.zeros(d)), *rows] if worst else rows
    body, cost = vstack([part[1] for part in parts]), np.zeros(d * m + more)
    if prior is not None:
        cost[: d * m] = (prior[:, None] * losses).ravel()
    else:
        top = np.zeros(body.shape[0])
        top[d : 2 * d] = -1.0
        body, cost = hstack([csr_matrix(top[:, None]), body]), np.append(1.0, cost)
    lower = np.zeros(cost.size)
    lower[: int(worst)] = -np.inf
    low, high = (np.concatenate([part[k] for part in parts]) for k in (2, 3))
    program = LinearProgram(cost, body, low, high, lower, name=name)
    program.blocks = stacked([(block, matrix.shape[0]) for block, matrix, _, _ in parts])
    program.variables = stacked([*([("value", 1)] if worst else []), ("kernel", d * m), *columns])
    return program

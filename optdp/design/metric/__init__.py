"""The best of all mechanisms with metric privacy between finitely many places, for a given matrix of losses.

The plain linear program has a probability for each pair of input and output and n^2 (n - 1) inequalities: the
optimum of geo-indistinguishability of Bordenabe, Chatzikokolakis and Palamidessi (CCS 2014). Its structure is used
(`optdp.solvers.lipschitz`): outputs meet in the row sums alone, few inequalities are tight, and those of distant pairs
nearly follow from those of near ones. The mechanism is the solution lifted to what is exactly private
(`optdp.mechanisms.metric`), and the bound the multipliers of the inequalities that matter (`optdp.certificates.metric`).
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from optdp.certificates.metric import MetricCertificate, certify
from optdp.design.finite_kernel import prior_of, program_of_rows
from optdp.design.registry import Run, register
from optdp.exact import require
from optdp.exact.numbers import counted
from optdp.exact.rounding import ENTRIES
from optdp.mechanisms.metric import MetricMechanism
from optdp.problem import AllMechanisms, Apart, Average, LossLike, Metric, MetricLDP, Problem, WorstCase, as_loss
from optdp.problem.domains import Alphabet
from optdp.solution import Solution
from optdp.solvers.lipschitz import Columns, solve_columns
from optdp.solvers.lp import LinearProgram, SolverFailure

METHODS = ("auto", "dense")

#: Programs with at most so many inputs are solved to this gap whatever was asked for: it takes a second.
SMALL, DIGITS = 40, 1e-9
#: Up to so many inequalities the plain program is solved where the interior point has too few digits.
PLAIN = 5_000
#: eps d between the nearest symbols is at least this: below it floats cannot tell private from not private.
NEAREST = 1e-9
#: Factors of the plain program are e to this at most: HiGHS takes no number above 1e15, and is unsure of those next to it.
LOUDEST = 30.0
#: Losses are at most so many times the unit of the plain program.
SPREAD = 1e9


def loss_of_distances(loss: LossLike | None, metric: Metric) -> Any:
    """A loss of the distance ("abs", "squared", `optdp.Power(q)`, ...) as the matrix for outputs that are symbols.

    **Raises** TypeError or ValueError if it is no loss.
    """
    far = metric.array
    law = as_loss("abs" if loss is None else loss)
    if law.form == "matrix":
        return law
    if law.form != "distance":
        raise TypeError(
            f"loss = {law.name!r} is not allowed: with a metric it must be a matrix, or a function of the distance"
        )
    return as_loss(law.on(float(far.max()))(far))


def accepts(problem: Problem) -> str | None:
    """All mechanisms with metric privacy from an alphabet, worst case or average of a loss matrix."""
    privacy, domain, asked = problem.privacy, problem.domain, problem.objective
    if not isinstance(privacy, MetricLDP) or isinstance(privacy.metric, Apart) or not isinstance(domain, Alphabet):
        return "privacy must be MetricLDP with distances between the symbols of an alphabet"
    if not isinstance(problem.family, AllMechanisms) or problem.constraints:
        return "the family must be all mechanisms, without constraints"
    if not isinstance(asked, WorstCase | Average) or asked.loss.form != "matrix":
        return "loss is not allowed: it must be the worst case or average of a matrix"
    if len(asked.loss.rows) != len(domain) or asked.loss.array.size > ENTRIES // 8:
        return (
            f"loss is not allowed: it has {len(asked.loss.rows)} rows, and must have one for each of the {len(domain)} symbols "
            f"of {domain}, and at most {ENTRIES // 8} entries"
        )
    near = privacy.metric.array[~np.eye(len(domain), dtype=bool)].min() * float(privacy.eps)
    if not NEAREST <= near <= require.MAX_EPS:
        return f"eps is not allowed: eps times the least distance must be in [{NEAREST:g}, {require.MAX_EPS:g}], and is {near:g}"
    return None


def design(run: Run) -> Solution:
    """See `optdp.solve_kernel`. Outputs are the columns of the loss matrix, 0, 1, ..., or the symbols if it is square."""
    problem, domain = run.problem, run.problem.domain
    privacy: Any = problem.privacy
    losses, prior = problem.loss.array, prior_of(problem)
    n, m = losses.shape
    paid = losses if prior is None else (prior @ losses)[None]
    outputs = domain.symbols if m == n else tuple(range(m))
    dense = run.method == "dense" or run.solver is not None
    best: list[Any] = []
    # What anybody has who lets all answer the same, and what is proven without multipliers.
    constant = np.eye(m)[[int(np.argmin(paid.max(axis=0)))] * n]
    kept: dict[str, Any] = {"value": np.inf, "bound": -1.0}

    def keep(found: Columns) -> bool:
        weights = np.full(n, 1 / n) if prior is None else prior
        if prior is None and found.weights.any():
            weights = found.weights
        proof = certify(problem, weights, found.rows, found.flows, run.rtol / 50 if n > SMALL else DIGITS / 50)
        proven = proof.bound(problem).value
        if proven > kept["bound"]:
            kept.update(bound=proven, proof=proof)
        made = MetricMechanism.of_rows(domain, outputs, found.kernel, privacy, paid)
        value = made.enclose(problem.objective)[1]
        if value < kept["value"]:
            kept.update(value=value, made=made)
        best[:] = [found]
        run.progress("inequalities as needed", kept["bound"], kept["value"])
        return bool(kept["value"] - kept["bound"] <= run.rtol * kept["value"])

    run.progress(f"{n} symbols, {m} outputs")
    keep(Columns(constant, np.zeros(n), np.zeros((3, 0), dtype=np.int64), np.zeros(0), 0.0, 0.0, 0, 0, False))
    asked = run.rtol / 4 if n > SMALL else min(run.rtol / 4, DIGITS)
    if not kept["value"]:  # nothing is less
        found = best[0]
    elif dense:
        found = _plain(run, losses, prior, kept["value"])
    else:
        found = solve_columns(
            losses, privacy.growth, prior, tolerance=asked, left=run.left, good=keep, pairs=privacy.direct
        )
    if best[0] is not found:
        keep(found)
    short = kept["value"] - kept["bound"] > 10 * asked * kept["value"]
    if short and not dense and n * n * m <= PLAIN and not found.stopped:
        with suppress(SolverFailure):  # which leaves the bracket that there is
            keep(vertex := _plain(run, losses, prior, kept["value"]))  # more digits than an interior point has
            found = vertex
    proof: MetricCertificate = kept["proof"]
    return run.solution(
        kept["made"], proof,
        f"{n * m + (prior is None)} columns: probabilities" + (" and the loss" if prior is None else ""),
        f"{n + n * (prior is None) + found.rows.shape[1]} rows: mass" + (" and loss" if prior is None else "")
        + " of each input, privacy",
        run.solver.name if run.solver is not None else "HiGHS (dense)" if dense else "interior point by output",
        objective=found.value, bound=found.bound,
        message=f"{counted(found.iterations, 'iteration')}, {counted(found.rounds, 'round')}",
        stopped=found.stopped, build=build_model, arguments=(problem,),
    )  # fmt: skip


register(
    "metric kernel",
    ("MetricLDP", "Alphabet", "WorstCase or Average of a loss matrix", "AllMechanisms", ""),
    accepts, design, METHODS,
)  # fmt: skip


def _plain(run: Run, losses: np.ndarray, prior: np.ndarray | None, attained: float) -> Columns:
    """The plain linear program, in units of a loss that is attained, where none is too large in these."""
    (n, m), scale = losses.shape, max(attained, float(losses.max()) / SPREAD)
    program = _program(run.problem, losses / scale)
    found = program.solve(run.solver, time_limit=max(run.left(), 0.1))
    empty = Columns(
        np.full((n, m), 1 / m), np.zeros(n), np.zeros((3, 0), dtype=np.int64), np.zeros(0), 0.0, 0.0, 0, 1, True
    )
    try:
        found.checked()
    except SolverFailure:
        if run.seconds < run.time_limit:
            raise
        return empty
    rows = _inequalities(run.problem)
    weights = np.maximum(-found.dual("loss"), 0.0) if prior is None else prior
    kernel = found.value("kernel").reshape(n, m)
    flows, value = np.maximum(-found.dual("privacy"), 0.0) / _roots(run.problem, rows) * scale, found.objective * scale
    return Columns(kernel, weights, rows, flows, value, value, found.iterations, 1, False)


def _inequalities(problem: Problem) -> np.ndarray:
    """(output, i, j) of the inequalities K_i <= E_ij K_j that imply all others."""
    privacy: Any = problem.privacy
    (i, j), m = np.nonzero(privacy.direct), len(problem.loss.rows[0])
    return np.stack([np.repeat(np.arange(m), i.size), np.tile(i, m), np.tile(j, m)])


def _roots(problem: Problem, rows: np.ndarray) -> np.ndarray:
    """r = sqrt(E_ij) of these inequalities, K_i / r <= r K_j in the program: E itself spans more digits than HiGHS has."""
    privacy: Any = problem.privacy
    return np.asarray(np.exp(np.minimum(float(privacy.eps) * privacy.metric.array[rows[1], rows[2]], LOUDEST) / 2))


def build_model(problem: Problem) -> LinearProgram:
    """The plain linear program: rows "mass", "loss" (worst case) and "privacy"; variables "value" (worst case) and "kernel"
    (input by input).
    """
    return _program(problem, problem.loss.array)


def _program(problem: Problem, losses: np.ndarray) -> LinearProgram:
    from scipy.sparse import csr_matrix

    y, i, j = rows = _inequalities(problem)
    m, count, root = losses.shape[1], np.arange(y.size), _roots(problem, rows)
    places = np.tile(count, 2), np.concatenate([i * m + y, j * m + y])
    body = csr_matrix((np.concatenate([1 / root, -root]), places), shape=(y.size, losses.size))
    private = [("privacy", body, np.full(y.size, -np.inf), np.zeros(y.size))]
    return program_of_rows(losses, prior_of(problem), private, name="metric")

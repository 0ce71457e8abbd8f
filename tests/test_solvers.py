"""Linear programs as data: status maps, named duals, files, growing sessions, and a solver of one's own."""

import math
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
import pytest
import threadpoolctl
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csc_matrix, csr_matrix

import optdp
from optdp.solvers.dense import Dense, _solved
from optdp.solvers.lp import (
    Highs,
    LinearProgram,
    LinearResult,
    LinearSolver,
    LinearStatus,
    SolverFailure,
    read,
    stacked,
)
from optdp.solvers.threads import one_thread

INF = math.inf
METHODS = ("auto", "simplex", "ipm", "pdlp")


def diet(maximise=False):
    """min x + 2 y + 3 z, x + y + z = 1 ("mass"), y + z >= 0.5, z >= 0.2 ("least"); optimum x = .5, y = .3, z = .2."""
    sign = -1.0 if maximise else 1.0
    return LinearProgram(
        sign * np.array([1.0, 2.0, 3.0]),
        csr_matrix([[1.0, 1, 1], [0, 1, 1], [0, 0, 1]]),
        np.array([1.0, 0.5, 0.2]),
        np.array([1.0, INF, INF]),
        maximise=maximise,
        blocks=stacked([("mass", 1), ("least", 2)]),
        variables=stacked([("x", 1), ("rest", 2)]),
    )


@dataclass(frozen=True)
class Scipy(LinearSolver):
    """scipy's `linprog` as a solver of optdp."""

    name: str = "scipy linprog"
    calls: list = field(default_factory=list, compare=False)

    def solve(self, program, *, time_limit=INF):
        sign = -1.0 if program.maximise else 1.0
        up, low = np.isfinite(program.row_upper), np.isfinite(program.row_lower)
        both = up & low & (program.row_lower == program.row_upper)
        rows = program.rows.tocsr()
        upper, lower = up & ~both, low & ~both
        from scipy.sparse import vstack

        found = linprog(
            sign * program.cost,
            A_ub=vstack([rows[upper], -rows[lower]]), b_ub=np.concatenate([program.row_upper[upper], -program.row_lower[lower]]),
            A_eq=rows[both], b_eq=program.row_lower[both],
            bounds=np.column_stack([program.lower, program.upper]), method="highs",
        )  # fmt: skip
        self.calls.append(program.rows.shape)
        status = {
            0: LinearStatus.OPTIMAL,
            1: LinearStatus.ITERATION_LIMIT,
            2: LinearStatus.INFEASIBLE,
            3: LinearStatus.UNBOUNDED,
        }
        if found.status != 0:
            return LinearResult(status.get(found.status, LinearStatus.FAILED), message=found.message, program=program)
        dual = np.zeros(rows.shape[0])
        dual[both] = found.eqlin.marginals
        k = int(upper.sum())
        dual[upper] += found.ineqlin.marginals[:k]
        dual[lower] -= found.ineqlin.marginals[k:]
        reduced = found.lower.marginals + found.upper.marginals
        return LinearResult(
            LinearStatus.OPTIMAL, sign * found.fun, found.x, sign * dual, sign * reduced, found.nit, "", program
        )


SOLVERS = [Highs(method) for method in METHODS] + [Dense(), Scipy()]


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)
@pytest.mark.parametrize("maximise", [False, True])
def test_point_value_and_duals(solver, maximise):
    sign = -1.0 if maximise else 1.0
    program = diet(maximise)
    found = program.solve(solver)
    close = {"abs": 1e-5}
    assert found.status in (LinearStatus.OPTIMAL, LinearStatus.IMPRECISE) and found.usable
    assert found.objective == pytest.approx(sign * 1.7, **close)
    assert found.x == pytest.approx([0.5, 0.3, 0.2], **close)
    assert found.value("x") == pytest.approx([0.5], **close) and found.value("rest") == pytest.approx(
        [0.3, 0.2], **close
    )
    assert found.dual("mass") == pytest.approx([sign], **close) and found.dual("least") == pytest.approx(
        [sign, sign], **close
    )
    assert found.reduced_cost == pytest.approx(program.cost - found.row_dual @ program.rows, **close)
    changed = diet(maximise)  # a dual is the change of the objective per unit of a row's limit
    changed.row_lower[1] += 1e-3
    assert changed.solve(solver).objective - found.objective == pytest.approx(1e-3 * found.dual("least")[0], abs=3e-5)


@pytest.mark.parametrize("solver", SOLVERS, ids=lambda s: s.name)
def test_status_map(solver):
    impossible, endless = diet(), diet()
    impossible.row_lower[0] = impossible.row_upper[0] = 0.1
    found = impossible.solve(solver)
    assert not found.usable and found.x.size == 0
    if "pdlp" not in solver.name:  # a first-order method may end without saying so
        assert found.status in (LinearStatus.INFEASIBLE, LinearStatus.UNBOUNDED)
    if solver.name in ("HiGHS simplex", "scipy linprog"):
        assert found.status is LinearStatus.INFEASIBLE
    endless.row_lower[:], endless.row_upper[:] = -INF, INF
    endless.cost = np.array([-1.0, 0.0, 0.0])
    assert not endless.solve(solver).usable
    if "pdlp" not in solver.name:
        assert endless.solve(solver).status is LinearStatus.UNBOUNDED


def random_program(seed, n, m, maximise):
    """Dense rows with limits of all kinds, fixed and limited columns; and whether it is one to solve."""
    rng = np.random.default_rng(seed)
    rows, inside = rng.normal(size=(m, n)), rng.random(n)
    fixed, capped = rng.random(n) < 0.2, rng.random(n) < 0.8
    lower = np.where(fixed, inside, np.where(capped, inside - rng.random(n), 0.0))
    upper = np.where(fixed, inside, np.where(capped | (m < n), inside + rng.random(n), INF))
    at, kind = rows @ inside, rng.integers(0, 4, m)
    kind[np.flatnonzero(kind == 3)[(~fixed).sum() // 2 :]] = 2  # not more equations than there is room for
    low = np.where(kind == 1, -INF, at - rng.random(m) * (kind != 3))
    high = np.where(kind == 0, INF, at + rng.random(m) * (kind != 3))
    high[kind == 3] = low[kind == 3]
    program = LinearProgram(rng.normal(size=n), csr_matrix(rows), low, high, lower, upper, maximise)
    return program, not fixed.all() and (m >= n or capped.any() or (kind < 3).any())


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 12), m=st.integers(1, 30), maximise=st.booleans())
def test_interior_points_end_where_vertices_do(seed, n, m, maximise):
    """The same value, and duals that prove it."""
    program, proper = random_program(seed, n, m, maximise)
    assume(proper)
    rows, low, high, lower, upper = program.rows, program.row_lower, program.row_upper, program.lower, program.upper
    wanted, found = program.solve(), _solved(program, 1e-8, INF)
    if not wanted.usable:  # unbounded
        assert found is None
        return
    if found is None:  # seldom
        assert Dense().solve(program).objective == pytest.approx(wanted.objective, rel=1e-6, abs=1e-7)
        return
    assert found.objective == pytest.approx(wanted.objective, rel=1e-6, abs=1e-7)
    assert (found.x >= lower - 1e-9).all() and (found.x <= upper + 1e-7).all()
    assert (rows @ found.x >= low - 1e-6).all() and (rows @ found.x <= high + 1e-6).all()
    np.testing.assert_allclose(found.reduced_cost, program.cost - found.row_dual @ rows, atol=1e-6)
    sign = -1.0 if maximise else 1.0
    proven = 0.0
    for prices, least, most in ((sign * found.row_dual, low, high), (sign * found.reduced_cost, lower, upper)):
        proven += np.where(
            prices > 0, prices * np.nan_to_num(least, neginf=-1e9), prices * np.nan_to_num(most, posinf=1e9)
        ).sum()
    assert proven == pytest.approx(sign * wanted.objective, rel=1e-5, abs=1e-5)


def test_interior_points_and_limits_of_time():
    rng = np.random.default_rng(1)
    big = LinearProgram(rng.random(50), csr_matrix(rng.random((200, 50))), np.ones(200), np.full(200, INF))
    assert Dense().solve(big, time_limit=0.0).status is LinearStatus.TIME_LIMIT
    assert Dense().solve(big).iterations < 60 and "interior" in Dense.name
    free = LinearProgram(
        [1.0, 0.0], csr_matrix([[1.0, 1.0]]), [1.0], [INF], np.array([-INF, 0.0]), np.array([INF, 3.0])
    )
    assert Dense().solve(free).objective == pytest.approx(-2.0)
    crossed = LinearProgram(
        [1.0, 1.0], csr_matrix([[1.0, 1.0]]), [1.0], [INF], np.array([2.0, 0.0]), np.array([1.0, INF])
    )
    assert not Dense().solve(crossed).usable


def test_interior_points_seldom_need_another_solver():
    programs = [random_program(seed, 8, 20, False)[0] for seed in range(100)]
    left = [program for program in programs if _solved(program, 1e-8, INF) is None and program.solve().usable]
    assert len(left) <= 2


@pytest.mark.parametrize("small", [1e-3, 1e-6, 1e-8])
def test_interior_points_tell_small_costs_beside_large_ones(small):
    """Unbounded by the small one alone; and the value of the others beside a large one has as many digits as HiGHS finds."""
    rows, least, most = csr_matrix([[1.0, 1.0], [1.0, 2.0]]), [1.0, 1.0], [INF, INF]
    assert not Dense().solve(LinearProgram([-small, 1.0], rows, least, most)).usable
    program = LinearProgram([1 / small, 1.0, 1.5], csr_matrix([[1.0, 1.0, 2.0], [3.0, 2.0, 1.0]]), least, most)
    assert Dense().solve(program).objective == pytest.approx(5 / 6, rel=1e-6)


def test_interior_points_solve_programs_that_cost_nothing():
    """Their multipliers are roundings; `least` says beside which costs."""
    rows = csr_matrix([[1.0, 2.0, 0.0], [0.0, 1.0, 1.0]])
    program = LinearProgram([0.0, 0.0, 1.0], rows, [1.0, 1e-3], [INF, INF])
    found = _solved(program, 1e-8, INF, 1e-3)
    assert found is not None and found.usable and 0 <= found.objective < 1e-9
    assert _solved(program, 1e-8, INF) is None  # HiGHS is asked
    with pytest.raises(ValueError, match="least"):
        Dense(least=2.0)


def blas_threads():
    return [pool["num_threads"] for pool in threadpoolctl.threadpool_info() if pool["user_api"] == "blas"]


def test_linear_algebra_has_its_threads_back():
    """After the last of several solves at a time, in whatever order these end, or fail."""
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        first, second = one_thread(), one_thread()
        first.__enter__()
        second.__enter__()
        assert set(blas_threads()) == {1}
        first.__exit__(None, None, None)
        assert set(blas_threads()) == {1}
        with pytest.raises(KeyError), one_thread():
            raise KeyError
        second.__exit__(None, None, None)
        assert blas_threads() == before


def test_linear_algebra_has_one_thread_in_every_thread_of_python():
    """The library that sets it obeys only the thread that came first (3.8), here the main one."""

    def inside():
        with one_thread():
            return set(blas_threads())

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        assert inside() == {1}
        with ThreadPoolExecutor(1) as others:
            assert others.submit(inside).result() == {1}
        assert blas_threads() == before


def test_limits_have_a_status():
    rng = np.random.default_rng(0)
    n = 400
    big = LinearProgram(-rng.random(n), csr_matrix(rng.random((n, n))), np.full(n, -INF), np.full(n, 1.0))
    assert (
        Highs("simplex", iterations=1, options=(("presolve", "off"),)).solve(big).status is LinearStatus.ITERATION_LIMIT
    )
    began = time.perf_counter()
    found = big.solve(Highs("simplex"), time_limit=1e-9)
    assert found.status in (LinearStatus.TIME_LIMIT, LinearStatus.OPTIMAL) and time.perf_counter() - began < 20


@pytest.mark.parametrize("ending", [".mps", ".lp"])
@pytest.mark.parametrize("maximise", [False, True])
def test_files(tmp_path, ending, maximise):
    path = tmp_path / f"x{ending}"
    program = diet(maximise)
    program.upper[2] = 0.9
    program.lower[1] = -0.25
    program.write(path)
    again = read(path)
    assert again.solve().objective == pytest.approx(program.solve().objective, abs=1e-12)
    np.testing.assert_allclose(again.rows.toarray(), program.rows.toarray())
    for part in ("cost", "lower", "upper", "row_lower", "row_upper"):
        np.testing.assert_allclose(getattr(again, part), getattr(program, part))
    assert again.maximise == maximise


def test_files_refuse(tmp_path):
    with pytest.raises(ValueError, match=r"\.mps or \.lp"):
        diet().write(tmp_path / "x.nl")
    with pytest.raises(ValueError, match="path"):
        read(tmp_path / "none.mps")
    (tmp_path / "bad.mps").write_text("not a model")
    with pytest.raises(ValueError, match="path"):
        read(tmp_path / "bad.mps")


def test_a_program_that_still_grows_is_refused():
    """A result's program may lack the rows of its session: solved by itself it would be another one."""
    session = optdp.solvers.Highs().session(diet())
    n = session.solve().x.size
    session.add_rows(csr_matrix(np.ones((1, n))), [0.0], [np.inf])
    found = session.solve()
    with pytest.raises(ValueError, match="session"):
        found.program.solve()
    assert session.program.solve().objective == pytest.approx(found.objective, abs=1e-9)
    assert found.program.solve().objective == pytest.approx(found.objective, abs=1e-9)


@pytest.mark.parametrize("solver", [Highs("simplex"), Highs("ipm"), Dense(), Scipy()], ids=lambda s: s.name)
def test_a_growing_session_equals_from_scratch(solver):
    """Columns, rows, changed costs and limits, in every order, against the program built whole."""
    rng = np.random.default_rng(3)
    program = diet()
    session = solver.session(diet())
    assert session.solve().objective == pytest.approx(program.solve().objective, abs=1e-7)
    for turn in range(6):
        m, n = program.rows.shape
        if turn % 2 == 0:
            cost, column = rng.random(2) + 0.2, csc_matrix(rng.random((m, 2)).round(2))
            session.add_columns(cost, column, np.zeros(2), np.full(2, 0.7))
            program = LinearProgram(
                np.append(program.cost, cost), csr_matrix(np.hstack([program.rows.toarray(), column.toarray()])), program.row_lower,  # noqa: E501
                program.row_upper, np.append(program.lower, [0, 0]), np.append(program.upper, [0.7, 0.7]),
            )  # fmt: skip
        else:
            row = csr_matrix(rng.random((1, n)).round(2))
            session.add_rows(row, [-INF], [0.9])
            session.change(slice(0, 2), cost=[0.5 + turn, 0.1], upper=[0.9, 0.8])
            program = LinearProgram(
                program.cost.copy(), csr_matrix(np.vstack([program.rows.toarray(), row.toarray()])), np.append(program.row_lower, -INF),  # noqa: E501
                np.append(program.row_upper, 0.9), program.lower.copy(), program.upper.copy(),
            )  # fmt: skip
            program.cost[:2], program.upper[:2] = [0.5 + turn, 0.1], [0.9, 0.8]
        grown, scratch = session.solve(), Highs("simplex").solve(program)
        assert grown.usable and scratch.usable
        assert grown.objective == pytest.approx(scratch.objective, rel=1e-6, abs=1e-8)
        np.testing.assert_allclose(session.program.rows.toarray(), program.rows.toarray())
        weak = grown.row_dual @ np.where(
            grown.row_dual > 0, np.nan_to_num(program.row_lower, neginf=0), np.nan_to_num(program.row_upper, posinf=0)
        )
        reduced = program.cost - grown.row_dual @ program.rows
        weak += np.minimum(
            reduced * program.lower, reduced * np.where(np.isfinite(program.upper), program.upper, 0)
        ).sum()
        assert weak == pytest.approx(grown.objective, abs=1e-5)  # strong duality: signs of the duals are right
    session.change(np.array([0]), lower=np.array([0.05]))
    program.lower[0] = 0.05
    assert session.solve().objective == pytest.approx(program.solve().objective, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize(
    ("make", "says"),
    [(lambda: Highs("newton"), "method"), (lambda: Highs(threads=0), "threads"), (lambda: Highs(tolerance=0.0), "tolerance"),
     (lambda: Highs(threads=1.5), "threads"), (lambda: Dense(0.0), "tolerance"), (lambda: diet().solve().dual("no"), "blocks"), (lambda: LinearProgram([1.0], [[1.0]], [1.0], [1.0]).solve().dual("no"), "blocks"), (lambda: diet().solve().value("no"), "variables"),  # noqa: E501
     (lambda: LinearProgram(np.ones(2), csr_matrix(np.ones((1, 3))), [0], [1]), "sizes"),
     (lambda: LinearProgram(np.ones(2), csr_matrix(np.ones((1, 2))), [0, 1], [1]), "sizes")],
)  # fmt: skip
def test_refusals(make, says):
    with pytest.raises((TypeError, ValueError), match=says):
        make()


@pytest.mark.parametrize("part", ["cost", "row_lower", "row_upper", "lower", "upper"])
def test_nan_is_refused(part):
    good = diet()
    parts = {name: getattr(good, name).copy() for name in ("cost", "row_lower", "row_upper", "lower", "upper")}
    parts[part][0] = math.nan
    with pytest.raises(ValueError, match=part):
        LinearProgram(rows=good.rows, **parts)


def test_solver_failure_keeps_its_status():
    error = SolverFailure("no point", LinearStatus.INFEASIBLE)
    assert error.status is LinearStatus.INFEASIBLE and "no point" in str(error)


def test_unusable_results_are_not_usable():
    assert not LinearResult(LinearStatus.OPTIMAL, 1.0, np.array([math.nan]), np.array([0.0])).usable
    assert not LinearResult(LinearStatus.INFEASIBLE).usable


def test_solvers_are_values():
    import pickle

    solver = Highs("ipm", threads=2, tolerance=1e-8)
    assert pickle.loads(pickle.dumps(solver)) == solver and solver.name == "HiGHS ipm"
    assert optdp.solvers.Highs is Highs and optdp.solvers.LinearSolver is LinearSolver


def test_what_fails_without_scaling_is_solved_with_it(monkeypatch):
    """HiGHS gives up on some programs that are not scaled: they are solved once more, from the start."""
    session = Highs(options=(("presolve", "off"), ("simplex_scale_strategy", 0))).session(diet())
    inner = session.highs

    class Fails:
        """HiGHS, which fails as long as nothing is scaled."""

        def __getattr__(self, name):
            return getattr(inner, name)

        def getModelStatus(self):
            status = inner.getModelStatus()
            return status if inner.getOptionValue("simplex_scale_strategy")[1] else type(status).kSolveError

    monkeypatch.setattr(session, "highs", Fails())
    assert session.solve().objective == pytest.approx(1.7)
    assert session.solve().status is LinearStatus.OPTIMAL
    assert inner.getOptionValue("presolve")[1] == "choose"


def test_what_fails_from_an_old_basis_is_solved_from_the_start(monkeypatch):
    session = Highs().session(diet())
    session.solve()
    inner, cleared = session.highs, []

    class Fails:
        """HiGHS, which fails until it forgets its basis."""

        def __getattr__(self, name):
            return getattr(inner, name)

        def clearSolver(self):
            cleared.append(True)
            return inner.clearSolver()

        def getModelStatus(self):
            return inner.getModelStatus() if cleared else type(inner.getModelStatus()).kSolveError

    monkeypatch.setattr(session, "highs", Fails())
    assert session.solve().objective == pytest.approx(1.7)


def test_what_fails_with_scaling_has_failed(monkeypatch):
    session = Highs().session(diet())
    inner = session.highs

    class Fails:
        """HiGHS, which always fails."""

        def __getattr__(self, name):
            return getattr(inner, name)

        def getModelStatus(self):
            return type(inner.getModelStatus()).kSolveError

    monkeypatch.setattr(session, "highs", Fails())
    assert session.solve().status is LinearStatus.FAILED


def test_solvers_print_nothing():
    """What is printed goes into somebody's file; HiGHS 1.16 says who it is before it can be asked not to."""
    code = (
        "import optdp; optdp.solve_kernel(1.0); optdp.solve_additive(1.0, 0.1); optdp.solve_piecewise(1.0);"
        "optdp.solve_lip([0.2, 0.8], 1.0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout == done.stderr == ""

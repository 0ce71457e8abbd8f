"""The plain nonlinear program, as it stands, against the structured solution."""

import math
import pickle

import numpy as np
import pytest

import optdp
from optdp.design.piecewise import build_model
from optdp.design.piecewise_plain import _Plain
from optdp.problem.constraints import Unbiased
from optdp.problem.domains import as_domain
from optdp.problem.shapes import Quartic

CIRCLE = optdp.Circle(2 * math.pi)


@pytest.mark.parametrize("loss", ["abs", "squared", optdp.Power(1.5)])
@pytest.mark.parametrize("domain", [(0, 1), (-2, 3), CIRCLE])
@pytest.mark.parametrize("m", [2, 3, 4, pytest.param(6, marks=pytest.mark.soak)])
def test_local_search_from_many_starts_finds_the_certified_optimum(m, domain, loss):
    exact = optdp.solve_piecewise(1.0, m, loss, domain=domain)
    found = optdp.solve_piecewise(1.0, m, loss, domain=domain, backend="slsqp", starts=12)
    assert found.program.objective == pytest.approx(exact.value, rel=1e-7)
    assert found.verify() and found.gap <= 1e-7
    assert found.certificate == exact.certificate


def test_local_search_takes_a_users_function():
    found = optdp.solve_piecewise(1.0, 3, np.square, backend="slsqp", starts=6)
    assert found.program.objective == pytest.approx(0.217298522, rel=1e-5)


@pytest.mark.parametrize("domain", [(0, 2), CIRCLE])
def test_derivatives_of_the_plain_program_are_right(domain):
    area = as_domain(domain)
    plain = _Plain(1.3, 4, optdp.Power(1.7), area)
    rng = np.random.default_rng(0)
    for _ in range(5):
        z = plain.start(rng)
        _, _, mass_jac, slack_jac = plain.rows(z)
        for k in range(plain.size):
            step = np.zeros(plain.size)
            step[k] = 1e-6
            up, down = plain.rows(z + step), plain.rows(z - step)
            assert np.allclose((up[0] - down[0]) / 2e-6, mass_jac[:, k], atol=1e-6)
            assert np.allclose((up[1] - down[1]) / 2e-6, slack_jac[:, k], atol=1e-6)


def test_scip_brackets_the_certified_optimum():
    exact = optdp.solve_piecewise(1.0, 3, "abs")
    found = optdp.solve_piecewise(1.0, 3, "abs", backend="scip", time_limit=120)
    tolerance = 1e-5  # SCIP's feasibility tolerance of 1e-6, seen through the program's multipliers
    assert found.value == pytest.approx(exact.value, abs=tolerance)
    assert found.program.bound <= exact.value + 1e-12
    assert found.program.bound <= found.program.objective
    assert found.program.objective >= exact.lower_bound - tolerance
    assert found.lower_bound <= exact.value and found.verify()


def test_scip_stopped_early_says_so_and_keeps_a_valid_bracket():
    found = optdp.solve_piecewise(1.0, 5, "squared", backend="scip", time_limit=1)
    tight = found.gap <= found.program.rtol  # heights found in time may be the best ones already
    assert found.program.stopped and found.status is (optdp.Status.OPTIMAL if tight else optdp.Status.TIME_LIMIT)
    assert found.verify()
    assert found.program.bound is None or found.program.bound <= found.value


@pytest.mark.parametrize(("backend", "package"), [("gurobi", "gurobipy"), ("ipopt", "casadi")])
@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_optional_solvers_agree_where_installed(backend, package, loss):
    pytest.importorskip(package)
    exact = optdp.solve_piecewise(1.0, 3, loss)
    found = optdp.solve_piecewise(1.0, 3, loss, backend=backend, starts=4)
    assert found.value == pytest.approx(exact.value, rel=1e-5)
    assert found.program.objective == pytest.approx(exact.value, rel=1e-5)
    assert found.verify()


@pytest.mark.parametrize("domain", [(0, 1), CIRCLE])
def test_the_model_says_what_the_paper_says(domain):
    """The optimal heights and windows are feasible in the Pyomo model, with the certified value."""
    import pyomo.environ as pyo

    solution = optdp.solve_piecewise(1.0, 3, "squared", domain=domain)
    model = solution.program.model
    assert model is solution.program.model
    mechanism, width = solution.mechanism, solution.mechanism.domain.width
    share, peak, floor = mechanism.window / width, mechanism.peak * width, mechanism.floor * width
    circle = isinstance(domain, optdp.Circle)
    for i, height in zip((1, 2, 3), (floor, peak, floor), strict=True):
        model.p[i] = height
    if circle:
        for i, place in enumerate((-0.5, -share / 2, share / 2, 0.5, 0.5)):
            model.l[0, i].set_value(place)
            model.ahead[0, i], model.behind[0, i] = max(place, 0), max(-place, 0)
    else:
        for x, points in ((0, (0, 0, share, 1)), (1, (0, 1 - share, 1, 1))):
            for i, place in enumerate(points):
                model.l[x, i].set_value(place)
    model.value = solution.value / width**2
    for constraint in model.component_data_objects(pyo.Constraint):
        body = pyo.value(constraint.body)
        for bound in (constraint.lower, constraint.upper):
            if bound is not None:
                slack = body - pyo.value(bound) if bound is constraint.lower else pyo.value(bound) - body
                assert slack >= -1e-9 or (constraint.equality and abs(slack) <= 1e-9), constraint.name
    model.value = solution.value / width**2 * (1 - 1e-6)
    broken = [c.name for c in model.worst_case.values() if pyo.value(c.body) < pyo.value(c.lower or 0) - 1e-12
              or (c.upper is not None and pyo.value(c.body) > pyo.value(c.upper) + 1e-12)]  # fmt: skip
    assert broken


def test_a_users_function_has_no_model():
    with pytest.raises(ValueError, match="algebraic form"):
        build_model(1.0, 3, np.square)


def affine(eps, family, objective):
    return optdp.Problem(optdp.LDP(eps), (-2.0, 4.0), objective, family, (Unbiased(),))


NONLINEAR = {
    "piecewise": optdp.Problem(optdp.LDP(1.0), (0.0, 2.0), "abs", optdp.Piecewise(3)),
    "I-PTT": affine(1.0, optdp.AffineWindow("I"), optdp.WorstCase("squared")),
    "II-PTT at an input": affine(2.0, optdp.AffineWindow("II"), optdp.At("squared", 3.0)),
    "free": affine(1.0, optdp.AffineWindow("free"), optdp.At("squared", -1.0)),
    "A2B2": affine(1.0, optdp.Composite("A2", "B2"), optdp.At("squared", 1.0)),
    "a range off centre": affine(6.0, optdp.Composite("A1", Quartic(0.5)), optdp.At("squared", 3.7)),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.soak] * ("range" in name)) for name in NONLINEAR]
)
def test_the_written_program_read_by_scip_has_the_same_optimum(name, tmp_path):
    pyscipopt = pytest.importorskip("pyscipopt")
    solution = optdp.solve(NONLINEAR[name])
    # The piecewise model is on a domain of width 1, whose losses are those of the problem over width^q.
    unit = solution.problem.domain.width if name == "piecewise" else 1.0
    path = tmp_path / "program.nl"
    pickle.loads(pickle.dumps(solution.program)).write(path)
    model = pyscipopt.Model()
    model.hideOutput()
    model.readProblem(str(path))
    model.setParam("limits/gap", 1e-6)
    model.setParam("limits/time", 600)
    model.optimize()
    assert model.getStatus() in ("optimal", "gaplimit")
    assert model.getObjVal() * unit == pytest.approx(solution.value, rel=1e-4)  # SCIP's feasibility tolerance is 1e-6
    with pytest.raises(ValueError, match=r"\.nl or \.gams"):
        solution.program.write(tmp_path / "program.lp")


def test_the_linear_program_of_a_free_window_is_written_too(tmp_path):
    problem = affine(1.5, optdp.AffineWindow("free"), optdp.At("squared", 2.0))
    solution = optdp.solve(problem, method="lp", cells=40, solver=optdp.solvers.Highs(method="ipm"))
    assert solution.verify() and solution.gap < 0.02
    least = solution.program.objective / 9 + (1 / 3) ** 2  # on [-1, 1], before x^2 is subtracted
    for ending in ("mps", "lp"):
        solution.program.write(tmp_path / f"program.{ending}")
        read = optdp.solvers.lp.read(tmp_path / f"program.{ending}").solve()
        assert read.objective == pytest.approx(least, rel=1e-5)


def test_a_backend_without_a_feasible_point_keeps_a_valid_bracket():
    solution = optdp.solve_ptt(1.0, backend="scip", time_limit=1e-6)
    if solution.program.objective is None:
        assert "no feasible point" in solution.program.message
    assert solution.verify() and solution.gap < 1e-4

"""Solutions as objects: pickles, copies, pools, models that are built on demand, files of programs."""

import copy
import io
import logging
import math
import pickle
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

import optdp
from optdp.certificates.base import Bound
from optdp.solvers.lp import LinearProgram, read
from tests.solutions import MAKE, solution

FRONT = ["piecewise abs", "ptt I", "composite A1B1", "additive", "kernel abs", "finite hamming", "lip sum"]


@pytest.mark.parametrize("name", list(MAKE))
def test_solutions_are_pickled_and_copied(name):
    own = solution(name)
    for again in (pickle.loads(pickle.dumps(own)), copy.deepcopy(own)):
        assert again.problem == own.problem and again.certificate == own.certificate
        assert again.mechanism.to_dict() == own.mechanism.to_dict()
        assert again.verify() and repr(again) == repr(own)
        domain = own.problem.domain
        symbols = getattr(domain, "symbols", None) or getattr(domain, "names", None)
        if domain.tag in ("sphere", "ball", "box"):
            x = np.eye(1, domain.dimension).repeat(2, axis=0)
        elif symbols or domain.dimension is not None:
            x = np.array(symbols[:2] if symbols else [0, 1])
        else:
            x = np.array([max(domain.lower, 0.0)] * 2)
        assert np.array_equal(again.mechanism.randomize(x, 5), own.mechanism.randomize(x, 5))


def test_a_process_pool_maps_solves():
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(optdp.solve_piecewise, [0.5, 1.0]))
    assert [s.problem.eps for s in found] == [0.5, 1.0] and all(s.verify() for s in found)


@pytest.mark.parametrize("name", FRONT)
def test_the_model_is_a_real_one_and_is_written(name, tmp_path):
    """Linear programs as .mps and .lp with the same optimum for HiGHS's own reader; nonlinear ones as .nl."""
    own = solution(name)
    model = own.program.model
    if isinstance(model, LinearProgram):
        optimum = model.solve().objective
        assert model.blocks and model.variables
        for ending in (".mps", ".lp"):
            own.program.write(tmp_path / f"x{ending}")
            assert read(tmp_path / f"x{ending}").solve().objective == pytest.approx(optimum, rel=1e-6, abs=1e-9)
    elif hasattr(model, "component_objects"):
        own.program.write(tmp_path / "x.nl")
        assert (tmp_path / "x.nl").stat().st_size > 100
        with pytest.raises(ValueError, match="path"):
            own.program.write(tmp_path / "x.txt")
    else:
        assert name == "kernel abs"
    with pytest.raises(ValueError):
        own.program.write(tmp_path / "x.unknown")
    assert pickle.loads(pickle.dumps(own)).program.model is not None  # the model is built again elsewhere


@pytest.mark.parametrize("name", FRONT)
def test_progress_and_log(name, caplog):
    steps = []
    with caplog.at_level(logging.INFO, logger="optdp"):
        again = optdp.solve(solution(name).problem, rtol=0.05, progress=steps.append)
    assert again.verify() and steps and all(isinstance(step, optdp.Step) for step in steps)
    assert steps[-1].stage == "done" and (steps[-1].lower, steps[-1].value) == (again.lower_bound, again.value)
    assert any(record.name.startswith("optdp") for record in caplog.records)


@pytest.mark.parametrize("name", FRONT)
def test_a_solve_is_a_function_of_its_arguments(name):
    """The same problem twice gives the same numbers, bit for bit."""
    one, two = (optdp.solve(solution(name).problem, rtol=0.05) for _ in range(2))
    assert (one.value, one.lower_bound, one.certificate) == (two.value, two.lower_bound, two.certificate)
    assert one.mechanism.to_dict() == two.mechanism.to_dict() and one == two  # however many seconds each took


@pytest.mark.parametrize("name", FRONT)
@pytest.mark.parametrize(
    "bad", [{"rtol": 0.0}, {"rtol": "x"}, {"time_limit": -1.0}, {"method": "magic"}, {"progress": 3}, {"colour": 1}]
)
def test_wrong_options_are_named(name, bad):
    with pytest.raises((TypeError, ValueError), match=next(iter(bad))):
        optdp.solve(solution(name).problem, **bad)


@pytest.mark.parametrize("name", list(MAKE))
def test_guarantees_agree_with_the_check(name):
    """What a mechanism says of itself implies what was asked, or nothing is known; it is never denied."""
    own = solution(name)
    guarantee = own.mechanism.guarantee()
    assert guarantee is not None and own.mechanism.satisfies(own.problem.privacy) is not False
    assert all(check.passed for check in own.mechanism.check_privacy(own.problem.privacy))
    if own.mechanism.satisfies(guarantee) is not None:
        assert own.mechanism.satisfies(guarantee) is True


def test_a_proof_above_what_the_mechanism_attains_does_not_verify(monkeypatch):
    """It was cut to the value without a word, and the gap was 0: a proof or an enclosure is wrong."""
    found = solution("additive")
    monkeypatch.setattr(type(found.certificate), "bound", lambda *_: Bound(2 * found.value, "a false proof"))
    verified = found.verify()
    assert not verified and "contradicts it" in str(verified)


def test_shown_in_a_notebook():
    own = solution("kernel abs")
    assert own._repr_html_().startswith("<") and own.problem._repr_latex_().startswith("$")
    assert len(repr(own)) < 400
    print(own, file=io.StringIO())


@pytest.mark.parametrize("said", [math.nan, math.inf, -math.inf])
def test_what_a_solver_says_that_is_no_number_is_left_out_of_files(said, tmp_path):
    found = optdp.solve_piecewise(1.0)
    odd = replace(found, program=replace(found.program, objective=said, bound=said))
    assert odd.program.objective is None and odd.program.bound is None
    odd.save(tmp_path / "odd.json")
    assert optdp.Solution.load(tmp_path / "odd.json").verify()


def test_files_that_hold_something_else_are_told_apart(tmp_path):
    solution = optdp.solve_piecewise(1.0)
    plan, ledger = optdp.plan({"smoker": optdp.Flag()}, 1.0), optdp.Ledger(1.0)
    things = {"a solution": solution, "a mechanism": solution.mechanism, "a plan": plan, "a ledger": ledger}
    loads = {
        "a solution": optdp.Solution,
        "a mechanism": optdp.Mechanism,
        "a plan": optdp.Plan,
        "a ledger": optdp.Ledger,
    }
    for held, thing in things.items():
        thing.save(tmp_path / "x.json")
        for kind, cls in loads.items():
            if kind == held:
                cls.load(tmp_path / "x.json")
                continue
            with pytest.raises(ValueError, match=rf"^x\.json holds {held}, which is not allowed: it must hold {kind}$"):
                cls.load(tmp_path / "x.json")


def test_a_program_without_a_file_format_is_named():
    """Whoever wrote it to a file was told that "a Problem" has none."""
    with pytest.raises(ValueError, match=r"path = 'x\.mps' is not allowed: the program is a cvxpy Problem"):
        optdp.solve_frequency(1.0, 5).program.write("x.mps")

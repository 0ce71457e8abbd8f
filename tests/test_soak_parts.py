"""A bounded part of each soak: `make soak-calls`, `soak-faults`, `soak-brackets`, `soak-samplers` and
`soak-noise` run the whole."""

import itertools

import numpy as np
import pytest

import optdp
from tests import faults, soak_brackets, soak_calls, soak_faults, soak_noise, soak_samplers


def test_calls():
    for number in range(150):
        verdict, what = soak_calls.judged_call(10**6 + number)
        assert verdict != "wrong", what


def test_command_lines():
    for number in range(30):
        verdict, what = soak_calls.judged_line(10**6 + number)
        assert verdict != "wrong", what


QUICK = ("kernel", "kernel dense", "finite", "additive", "additive delta=0", "lip", "lip columns", "ptt lp")


@pytest.mark.parametrize("name", QUICK)
def test_faulty_linear_solvers(name):
    """Some kinds of answers, from the first solve on and from the second."""
    for k, fault in enumerate(faults.ANSWERS[len(name) % 8 :: 17]):
        verdict, what = soak_faults.judged(name, "solver", fault, soak_faults.RHYTHMS[2 * (k % 2)], k)
        assert verdict != "wrong", (fault, what)


@pytest.mark.parametrize(("name", "kind"), [("lip levels", "own"), ("lip cvxpy", "conic"), ("frequency plain", "conic"),
                                            ("finite cuts", "own")])  # fmt: skip
def test_faults_of_the_solvers_that_designs_bring(name, kind):
    for k, fault in enumerate(faults.ANSWERS[::13]):
        verdict, what = soak_faults.judged(name, kind, fault, (0, 1), k)
        assert verdict != "wrong", (fault, what)


def test_posteriors_that_make_no_mechanism_are_a_failure_of_the_solver():
    """Where nobody chose the solver, categories are answered at random instead."""
    verdict, what = soak_faults.judged("lip cvxpy", "conic", "noise 1e-02", (0, 1), 28)
    assert verdict == "refused" and what.startswith("SolverFailure"), what
    verdict, what = soak_faults.judged("lip levels", "own", "noise 1e-02", (0, 1), 10)
    assert verdict == "bracket", what


def test_every_kind_of_fault_comes_up():
    seen = {case[2] for case in itertools.islice(soak_faults.cases(), 1000)}
    assert seen == set(faults.ANSWERS)


def test_brackets():
    for number in range(12):
        verdict, what = soak_brackets.judged(soak_brackets.KINDS[number % len(soak_brackets.KINDS)], 10**6 + number)
        assert verdict == "held", what


def test_samplers():
    sound, told = soak_samplers.summary(1000, every=7)
    assert sound, told


def test_noise():
    """Random eps and shifts; and the same check notices noise that keeps a slightly weaker promise only."""
    rng = np.random.default_rng(0)
    for notion, weaker in (
        (optdp.GDP(1.1), optdp.GDP(1.2)), (optdp.KL(0.4), optdp.KL(0.44)), (optdp.RDP(3.5, 0.7), optdp.RDP(3.5, 0.75)),
        (optdp.Profile([(1.2, 0.02), (0.5, 0.08)]), optdp.Profile([(1.2, 0.025), (0.5, 0.09)])),
    ):  # fmt: skip
        solution = optdp.solve_additive(notion, rtol=0.05)
        for _ in range(8):
            good, told = soak_noise.judged(solution, rng)
            assert good, told
        other = optdp.solve_additive(weaker, rtol=0.05).mechanism.to_dict()
        cells = int(other["n"])
        assert not all(
            soak_noise.kept(notion, other, s * soak_noise.PARTS, e)
            for s in range(1, cells + 1)
            for e in (0.0, 0.5, 1.0, 2.0)
        )

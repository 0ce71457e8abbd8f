"""A bounded part of each soak: `make soak-calls`, `soak-faults`, `soak-brackets` and `soak-samplers` run the whole."""

import itertools

import pytest

from tests import faults, soak_brackets, soak_calls, soak_faults, soak_samplers


def test_calls():
    for number in range(250):
        verdict, what = soak_calls.judged_call(10**6 + number)
        assert verdict != "wrong", what


def test_command_lines():
    for number in range(60):
        verdict, what = soak_calls.judged_line(10**6 + number)
        assert verdict != "wrong", what


QUICK = ("kernel", "kernel dense", "finite", "additive", "additive delta=0", "lip", "lip columns", "ptt lp")


@pytest.mark.parametrize("name", QUICK)
def test_faulty_linear_solvers(name):
    """Some kinds of answers, from the first solve on and from the second."""
    for k, fault in enumerate(faults.ANSWERS[len(name) % 8 :: 11]):
        verdict, what = soak_faults.judged(name, "solver", fault, soak_faults.RHYTHMS[2 * (k % 2)], k)
        assert verdict != "wrong", (fault, what)


@pytest.mark.parametrize(("name", "kind"), [("lip levels", "own"), ("lip cvxpy", "conic"), ("frequency plain", "conic"),
                                            ("finite cuts", "own")])  # fmt: skip
def test_faults_of_the_solvers_that_designs_bring(name, kind):
    for k, fault in enumerate(faults.ANSWERS[::8]):
        verdict, what = soak_faults.judged(name, kind, fault, (0, 1), k)
        assert verdict != "wrong", (fault, what)


def test_every_kind_of_fault_comes_up():
    seen = {case[2] for case in itertools.islice(soak_faults.cases(), 1000)}
    assert seen == set(faults.ANSWERS)


def test_brackets():
    for number in range(40):
        verdict, what = soak_brackets.judged(soak_brackets.KINDS[number % len(soak_brackets.KINDS)], 10**6 + number)
        assert verdict == "held", what


def test_samplers():
    sound, told = soak_samplers.summary(1000, every=7)
    assert sound, told

"""Histograms over many categories: splitting a prior into sets, the program over levels, and the brackets that they give."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optdp
from optdp.certificates.lip import LIPCertificate
from optdp.design.lip import extreme_posteriors
from optdp.design.lip.histogram import box_split, levels, split
from optdp.design.lip.posteriors import Master, generate
from optdp.design.lip.pricing import BoxHistogram, ConeHistogramRelaxed, box, box_chord
from optdp.problem.priors import Prior
from optdp.solvers.lp import LinearProgram, LinearStatus, _HighsSession
from tests.faults import Faulty


@settings(max_examples=60)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.booleans())
def test_a_split_mixes_to_the_probabilities_and_fills_one_total(d, seed, alike):
    rng = np.random.default_rng(seed)
    width = rng.exponential(size=d) + 1e-3
    phi = np.full(d, rng.random()) if alike else np.round(rng.random(d), 1)
    weights, shares = split(phi, width)
    assert len(weights) <= d + 1 and weights.min() >= 0 and weights.sum() == pytest.approx(1, abs=1e-12)
    assert weights @ shares == pytest.approx(phi, abs=1e-9)
    assert shares @ width == pytest.approx(np.full(len(weights), phi @ width), rel=1e-9, abs=1e-12)
    assert shares.min() >= 0 and shares.max() <= 1
    between = ((shares > 1e-9) & (shares < 1 - 1e-9)).sum(axis=1)
    assert (between[weights > 1e-8] <= 1).all()


@settings(max_examples=30)
@given(st.integers(2, 60), st.floats(0.1, 6), st.integers(0, 2**32 - 1))
def test_the_split_prior_keeps_the_guarantee_and_stays_below_the_chord_bound(d, eps, seed):
    p = np.random.default_rng(seed).dirichlet(np.ones(d))
    if p.min() < 1e-6:
        return
    found, (lo, hi) = box_split(p, np.exp(eps)), box(p, np.exp(eps))
    assert found.weights @ found.posteriors == pytest.approx(p, abs=1e-9)
    assert (found.posteriors >= lo * (1 - 1e-9)).all() and (found.posteriors <= hi * (1 + 1e-9)).all()
    assert found.objective <= float(box_chord(p, np.exp(eps))[0] @ p) + 1e-12


@pytest.mark.parametrize("eps", [2.0, 2.1, 3.0])
def test_a_category_that_fills_the_room_alone_does_so_whatever_rounding_says(eps):
    """An ulp more than the room kept it out of every set, and 1.3 % was lost."""
    p = 1 / np.arange(1, 501)
    p /= p.sum()
    assert box_chord(p, np.exp(eps))[0] @ p - box_split(p, np.exp(eps)).objective <= 1e-4
    assert optdp.solve_lip(p, eps, task="histogram", rtol=1e-3).gap <= 1e-3


def test_a_crossover_that_ends_early_is_not_taken_at_its_word(monkeypatch):
    """HiGHS may call a point with weights below 0 all but optimal; then the mechanism could not be made."""
    solve = _HighsSession.solve

    def short(self, *, time_limit=np.inf, method=None):
        found = solve(self, time_limit=time_limit, method=method)
        if not self.solver.crossover or not found.usable:
            return found
        x = found.x.copy()
        x[np.argmax(x)] *= -0.1
        return replace(found, status=LinearStatus.IMPRECISE, x=x)

    p = np.random.default_rng(0).dirichlet(np.ones(20))
    usual = optdp.solve_lip(p, 1.0, task="sum")
    monkeypatch.setattr(_HighsSession, "solve", short)
    found = optdp.solve_lip(p, 1.0, task="sum")
    assert found.verify() and found.value == pytest.approx(usual.value, rel=1e-5)


@settings(max_examples=10)
@given(st.integers(2, 9), st.floats(0.1, 4), st.integers(0, 2**32 - 1))
def test_the_program_over_levels_bounds_every_mechanism(d, eps, seed):
    """Its bound lies above E phi of the optimum, which enumeration finds; its mechanism below."""
    prior = Prior.of(np.random.default_rng(seed).dirichlet(np.full(d, 3.0)))
    best = 1 - optdp.solve_lip(prior, eps, task="histogram", notion="ldp", backend="enumeration").value
    found = levels(ConeHistogramRelaxed(prior.probabilities, np.exp(eps), prior.weights), 1e-4)
    assert found.objective <= best + 1e-8
    assert found.bound >= best - 1e-8
    assert found.weights @ found.posteriors == pytest.approx(prior.probabilities, abs=1e-8)
    vertices = extreme_posteriors(prior.probabilities, np.exp(eps), "ldp")
    assert ((vertices**2).sum(axis=1) - vertices @ found.nu).max() <= 1e-8


@pytest.mark.parametrize("notion", ["lip", "ldp"])
@pytest.mark.parametrize("kind", ["zipf", "random", "uniform"])
def test_many_categories_are_certified(notion, kind):
    d = 200
    raw = {
        "zipf": 1 / np.arange(1, d + 1),
        "uniform": np.ones(d),
        "random": np.random.default_rng(1).dirichlet(np.ones(d)),
    }
    solution = optdp.solve_lip(raw[kind] / raw[kind].sum(), 0.5, task="histogram", notion=notion, rtol=2e-3)
    assert solution.verify(), str(solution.verify())
    assert solution.gap <= 2e-3 and solution.status is optdp.Status.OPTIMAL
    assert not solution.program.stopped


def test_the_relaxed_certificate_never_exceeds_the_optimum():
    """The chord certificate for LDP, for problems small enough that the vertices prove the optimum."""
    for seed in range(4):
        prior = Prior.of(np.random.default_rng(seed).dirichlet(np.ones(7)))
        for eps in (0.5, 2.0, 5.0):
            exact = optdp.solve_lip(prior, eps, task="histogram", notion="ldp")
            relaxed = ConeHistogramRelaxed(prior.probabilities, np.exp(eps), prior.weights)
            found = levels(relaxed, 1e-4)
            knots = relaxed.price(found.nu, 1e-4).knots
            certificate = LIPCertificate("chord", tuple(found.nu), tuple(map(tuple, knots)))
            proven = certificate.bound(exact.problem).value
            assert proven <= exact.value
            assert proven >= 1 - found.bound - 2e-4  # what the pricing was asked for


@cache
def sets_of_thirty(eps):
    return optdp.solve_lip(np.random.default_rng(1).dirichlet(np.ones(30)), eps, task="histogram", notion="ldp")


@pytest.mark.parametrize("eps", [*(pytest.param(eps, marks=pytest.mark.soak) for eps in (0.5, 3.0, 7.0)), 12.0])
def test_a_fractional_category_costs_nothing_where_few_are_high(eps):
    """A knapsack's fractional category left 3e-3 open at eps = 5, 0.04 at 7 and 0.37 at 12; branch and bound leaves nothing."""
    other = np.arange(20.0, 50.0)
    for found in (sets_of_thirty(eps), optdp.solve_lip(other / other.sum(), eps, task="histogram", notion="ldp")):
        assert found.verify() and found.certificate.method == "vertices"
        assert found.gap <= 1e-6


def test_a_large_eps_leaves_few_sets_of_many_categories():
    raw = np.random.default_rng(2).dirichlet(np.ones(100))
    found = optdp.solve_lip(raw, 9.0, task="histogram", notion="ldp")
    assert found.verify() and found.gap <= 1e-6


def test_a_proof_that_looks_at_more_sets_than_it_may_leaves_the_bound_of_the_levels(monkeypatch):
    """Integers may need more sets than floats did; a wider bracket is better than none."""
    usual = sets_of_thirty(3.0)
    monkeypatch.setattr("optdp.certificates.lip.PAIRS", 100)
    found = sets_of_thirty.__wrapped__(3.0)
    assert found.certificate.method == "chord" and found.verify()
    assert 0 < found.lower_bound <= usual.lower_bound and found.value == usual.value


@pytest.mark.parametrize("left", [0, 1, 3])
def test_the_program_over_levels_ends_with_the_time_limit(monkeypatch, left):
    """With 1,000 categories a time limit of 0.1 seconds took 7: a program that had begun went on to its end."""
    p = np.random.default_rng(0).dirichlet(np.ones(30))
    pricer, solver = ConeHistogramRelaxed(p, np.exp(4.0), tuple(range(30))), Faulty("time limit", left)
    whole = levels(pricer, 1e-12)
    monkeypatch.setattr(LinearProgram, "solve", lambda program, *_, **limits: solver.solve(program, **limits))
    found = levels(pricer, 1e-12)
    assert found.weights @ found.posteriors == pytest.approx(p)
    assert found.objective <= whole.bound + 1e-12 and whole.objective <= found.bound + 1e-12
    assert found.bound - found.objective > whole.bound - whole.objective


def test_a_bracket_for_which_there_was_no_time_says_so(monkeypatch):
    """With slack the program promises what its columns may not attain; they were not asked any more."""
    p, within, asked = np.random.default_rng(0).dirichlet(np.ones(12)), Master.within, []

    def late(self, deadline, box):
        asked.append(box)
        if box is None and asked.count(None) == 1:
            return None
        solved = within(self, deadline, box)
        return solved if box is None else (np.inf, *solved[1:3], 1.0)

    monkeypatch.setattr(Master, "within", late)
    found = generate(
        BoxHistogram(p, np.e, tuple(range(12))), np.zeros((0, 12)), np.zeros(0), p, 0.1, tol=1e-9, deadline=np.inf
    )
    assert found.timed_out and found.bound - found.objective > 1e-9


@cache
def of_thirty(**problem):
    return optdp.solve_lip(np.random.default_rng(0).dirichlet(np.ones(30)), 2.0, **problem)


@pytest.mark.parametrize("left", [pytest.param(0, marks=pytest.mark.soak), 1, 4])
@pytest.mark.parametrize("problem", [{"notion": "ldp"}, {"task": "histogram"}, {"task": "histogram", "notion": "ldp"}])
def test_a_program_over_posteriors_that_is_stopped_leaves_a_valid_bracket(problem, left):
    """Simplex went on past the time limit, for as long again; a solver that stopped at it was an error."""
    found, full = of_thirty.__wrapped__(solver=Faulty("time limit", left), **problem), of_thirty(**problem)
    assert found.status is optdp.Status.TIME_LIMIT and found.verify()
    assert found.gap > full.gap and found.lower_bound <= full.value and full.lower_bound <= found.value


def test_a_width_of_nothing_is_no_division_by_it(recwarn):
    p = np.array([1.0, 1e-300, 1e-300])
    found = levels(ConeHistogramRelaxed(p, np.e, (10**300, 1, 1)), 1e-6)
    assert np.isfinite(found.posteriors).all() and not recwarn


@pytest.mark.parametrize("eps", [0.5, 2.0, 4.0])
def test_of_a_uniform_prior_the_split_is_proven_without_a_program(eps, monkeypatch):
    """The chord leaves a gap; its prices, looked at at all vertices, leave none. 1,000 categories took minutes."""
    monkeypatch.setattr(_HighsSession, "solve", None)
    uniform = optdp.solve_lip(np.full(200, 1 / 200), eps, task="histogram")
    assert uniform.gap < 1e-9 and uniform.verify()

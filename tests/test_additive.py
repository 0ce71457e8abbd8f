"""The optimal additive noise: brackets, certificates, exact privacy, and what theory says of special cases."""

from __future__ import annotations

import bisect
import copy
import itertools
import json
import math
import pickle
import time
from dataclasses import replace
from fractions import Fraction
from unittest import mock

import numpy as np
import pytest
import sympy as sp
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import optdp
from optdp import mechanisms
from optdp.audit.tlap import forms as tlap
from optdp.certificates.additive import AdditiveCertificate, Multiplier, geng_viswanath, lattice_costs
from optdp.certificates.base import Certificate, Refusal
from optdp.certificates.staircase import StaircaseCertificate
from optdp.closed_forms import additive as forms
from optdp.design.additive.approximate import private_finite
from optdp.design.additive.lattice import private_geometric
from optdp.exact import enclosures, polynomial, work
from optdp.exact.fields import FieldError
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.mechanisms.baselines import applicable
from optdp.mechanisms.baselines.noise import TruncatedLaplacian
from optdp.problem.losses import Power
from optdp.solution import Solution
from optdp.solvers import Highs, LinearResult, LinearSolver, LinearStatus, read
from optdp.status import Status

LINE = optdp.Line()


def additive(eps, delta=0.0, loss="abs", sensitivity=1.0, domain=LINE):
    """The problem that `solve_additive` solves."""
    privacy = optdp.ApproxDP(eps, delta, sensitivity)
    return optdp.Problem(privacy, domain, optdp.WorstCase(loss), optdp.Additive())


def paper_bound(*arguments):
    problem = additive(*arguments)
    return geng_viswanath(problem).bound(problem).value


GRID = [(e, d) for e in (0.1, 0.5, 1.0, 2.0) for d in (0.0, 1e-8, 1e-3, 0.3)]


@pytest.fixture(scope="module")
def solved():
    """Solutions of the grid, by (eps, delta, loss)."""
    return {(e, d, loss): optdp.solve_additive(e, d, loss, rtol=2e-3) for e, d in GRID for loss in ("abs", "squared")}


def test_the_grid_is_solved_and_verifies(solved):
    for key, solution in solved.items():
        assert solution.status is Status.OPTIMAL, key
        assert solution.gap <= 2e-3, key
        verification = solution.verify()
        assert verification, (key, str(verification))


def test_the_paper_example_is_closed():
    """eps = 1, delta = 0.01: the paper's own bounds are [0.530, 0.948]."""
    solution = optdp.solve_additive(1.0, 0.01)
    assert 0.906 <= solution.lower_bound <= solution.value <= 0.9075
    assert paper_bound(1.0, 0.01) == pytest.approx(0.5314, abs=2e-3)
    assert TruncatedLaplacian(1.0, 0.01).noise_loss() == pytest.approx(0.948, abs=1e-3)


def test_no_published_noise_is_better_and_the_paper_bound_is_below(solved):
    for (e, d, loss), solution in solved.items():
        law = solution.problem.loss
        for name, noise in applicable(solution.problem).items():
            assert solution.lower_bound <= noise.noise_loss(law) * (1 + 1e-9), (e, d, loss, name)
            if name not in ("staircase", "uniform noise"):
                assert solution.value <= noise.noise_loss(law) * (1 + 1e-6), (e, d, loss, name)
            assert solution.value <= noise.noise_loss(law) * (1 + solution.gap) + 1e-12, (e, d, loss, name)
        assert paper_bound(e, d, law) <= solution.value


def test_monotone_in_both_parameters(solved):
    """A weaker guarantee is never dearer: the certified bounds may not contradict that."""
    for (e, d, loss), strict in solved.items():
        for (e2, d2, loss2), weak in solved.items():
            if loss == loss2 and e2 >= e and d2 >= d:
                assert weak.lower_bound <= strict.value, ((e, d), (e2, d2), loss)


@pytest.mark.parametrize(("loss", "q"), [("abs", 1), ("squared", 2)])
@pytest.mark.parametrize("eps", [0.3, 1.0, 2.0])
def test_delta_zero_is_the_staircase(eps, loss, q):
    solution = optdp.solve_additive(eps, 0.0, loss, sensitivity=3.0)
    exact = solution.closed_form.subs(forms.eps, sp.Rational(*eps.as_integer_ratio())).evalf(
        40
    )  # eps as the float it is
    assert solution.lower_bound <= exact <= solution.value
    assert exact == pytest.approx(float(forms.staircase(q).subs(forms.eps, eps)) * 3**q)
    assert math.isinf(solution.mechanism.noise_radius())
    assert solution.mechanism.exact_delta(enclosures.exp_below(eps)) == 0


@pytest.mark.parametrize("delta", [0.0625, 0.25, 0.5, 0.7, 0.9])
def test_eps_zero_is_uniform_with_an_atom_for_large_delta(delta):
    """E|Z|: where 1/(2 delta) is an integer, and beyond 1/2 with an atom of 2 delta - 1 (at 1/2: of 0)."""
    solution = optdp.solve_additive(0.0, delta)
    exact = float(solution.closed_form.subs(forms.delta, delta))
    assert solution.lower_bound <= exact <= solution.value
    assert solution.verify()
    if delta > 0.5:
        assert solution.mechanism.atom_mass == pytest.approx(2 * delta - 1, abs=0.15)


@pytest.mark.parametrize(
    ("delta", "loss", "q"), [(0.3, "abs", 1), (0.4, "abs", 1), (0.1, "squared", 2), (0.5, "squared", 2)]
)
def test_uniform_noise_is_not_always_optimal_at_eps_zero(delta, loss, q):
    """The solver's noise, private exactly, beats the best uniform noise with an atom there: a counterexample with proof."""
    solution = optdp.solve_additive(0.0, delta, loss, rtol=2e-4)
    assert solution.verify()
    assert solution.value < float(forms.uniform(q, delta))
    assert solution.closed_form is None


def test_squared_and_general_powers():
    for q in (1.5, 3.0):
        solution = optdp.solve_additive(1.0, 0.05, Power(q), rtol=5e-3)
        assert solution.gap <= 5e-3 and solution.verify()
    assert optdp.solve_additive(1.0, 0.0, Power(1.5), rtol=1e-2).verify()


def test_a_users_convex_loss_agrees_with_its_power():
    own = optdp.solve_additive(1.0, 0.05, lambda d: d**2, rtol=5e-3)
    power = optdp.solve_additive(1.0, 0.05, "squared", rtol=1e-3)
    assert own.lower_bound <= power.value and power.lower_bound <= own.value
    verification = own.verify()
    assert own.gap <= 5e-3 and verification and "provided" in str(verification)
    insensitive = optdp.solve_additive(1.0, 0.05, lambda d: np.maximum(d - 0.5, 0.0), rtol=1e-2)
    assert insensitive.value < optdp.solve_additive(1.0, 0.05, "abs", rtol=1e-2).lower_bound


@pytest.mark.parametrize("sensitivity", [2.0**-10, 0.3, 7.0])
def test_scales_with_the_sensitivity(sensitivity):
    one = optdp.solve_additive(0.7, 0.02, "squared")
    other = optdp.solve_additive(0.7, 0.02, "squared", sensitivity=sensitivity)
    assert other.mechanism.weights == one.mechanism.weights
    assert other.value == pytest.approx(one.value * sensitivity**2, rel=1e-14)
    assert other.lower_bound == pytest.approx(one.lower_bound * sensitivity**2, rel=1e-14)


@pytest.mark.parametrize(("eps", "delta"), [(1.0, 0.01), (0.4, 0.0), (2.0, 1e-7), (0.0, 0.2)])
@pytest.mark.parametrize("sensitivity", [1, 3])
def test_discrete_noise_is_exact(eps, delta, sensitivity):
    """On the integers the program is finite: both bounds meet, and integer noise is never below the continuous optimum."""
    whole = optdp.solve_additive(eps, delta, "abs", sensitivity=sensitivity, discrete=True)
    assert whole.gap <= 1e-6
    assert whole.verify()
    line = optdp.solve_additive(eps, delta, "abs", sensitivity=sensitivity)
    assert whole.value >= line.lower_bound * (1 - 1e-6) - 1e-9 or whole.mechanism.n == sensitivity
    for noise in applicable(whole.problem).values():
        assert whole.lower_bound <= noise.noise_loss("abs") * (1 + 1e-9)
    outputs = whole.mechanism.randomize(np.arange(50), rng=1)
    assert (outputs == np.round(outputs)).all()


def test_geometric_noise_is_optimal_for_counting():
    """Delta = 1, delta = 0, integers: the discrete Laplace (geometric) mechanism is optimal, 1/sinh(eps)."""
    for eps in (0.5, 1.0, 2.0):
        solution = optdp.solve_additive(eps, 0.0, "abs", discrete=True)
        assert solution.value == pytest.approx(1 / math.sinh(eps), rel=1e-9)
        assert solution.lower_bound == pytest.approx(1 / math.sinh(eps), rel=1e-9)


def test_rows_as_needed_agree_with_all_rows():
    for eps, delta, loss in ((1.0, 0.01, "abs"), (0.5, 0.2, "squared"), (3.0, 1e-4, "abs")):
        few = optdp.solve_additive(eps, delta, loss, n=8, rtol=1e-9)
        plain = optdp.solve_additive(eps, delta, loss, n=8, rtol=1e-9, every_shift=True, method="simplex")
        assert few.lower_bound == pytest.approx(plain.lower_bound, rel=2e-5)
        assert few.value == pytest.approx(plain.value, rel=2e-5)


def test_interior_points_and_simplex_agree():
    a = optdp.solve_additive(1.0, 0.05, n=12, method="simplex")
    b = optdp.solve_additive(1.0, 0.05, n=12, method="ipm")
    assert a.lower_bound <= b.value and b.lower_bound <= a.value
    assert a.lower_bound == pytest.approx(b.lower_bound, rel=1e-4)


# --- privacy, exactly -------------------------------------------------------------------------------------------


def test_privacy_holds_at_shifts_that_are_not_lattice_points(solved):
    rng = np.random.default_rng(0)
    for (e, d, _), solution in solved.items():
        ratio = enclosures.exp_below(e)
        shifts = [Fraction(float(u)) for u in rng.random(5)] + [Fraction(1, 3), Fraction(1), Fraction(1, 10**9)]
        for shift in shifts:
            assert solution.mechanism.hockey_stick(shift, ratio) <= Fraction(d), (e, d, shift)


def brute_force_divergence(mechanism, shift, ratio):
    """int (f - ratio f(. + shift))_+ by cutting the line at every breakpoint of both densities."""
    h = mechanism.step
    cells = {}
    for a, w in enumerate(mechanism.weights):
        for i in {a, -a}:
            cells[i] = Fraction(w, mechanism.total) / h
    edges = [(i - Fraction(1, 2)) * h for i in range(-len(mechanism.weights) + 1, len(mechanism.weights) + 1)]
    cuts = sorted({*edges, *(x - shift for x in edges)})

    def density(x):
        return cells.get(math.floor(x / h + Fraction(1, 2)), Fraction(0))

    total = Fraction(mechanism.atom, mechanism.total)
    for low, high in itertools.pairwise(cuts):
        middle = (low + high) / 2
        total += max(density(middle) - ratio * density(middle + shift), Fraction(0)) * (high - low)
    return total


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    weights=st.lists(st.integers(0, 50), min_size=1, max_size=9).filter(lambda w: sum(w) > 0),
    atom=st.integers(0, 20),
    n=st.integers(1, 4),
    shift=st.fractions(min_value=Fraction(1, 100), max_value=2),
    ratio=st.fractions(min_value=1, max_value=5),
)
def test_divergence_against_brute_force(weights, atom, n, shift, ratio):
    mechanism = AdditiveMechanism(LINE, 1.5, n, tuple(weights), atom)
    assert mechanism.hockey_stick(shift, ratio) == brute_force_divergence(mechanism, shift, ratio)


@settings(max_examples=25, deadline=None)
@given(tail=st.lists(st.integers(1, 40), min_size=3, max_size=3), size=st.integers(1, 6), k=st.integers(1, 3),
       ratio=st.fractions(min_value=1, max_value=4))  # fmt: skip
def test_divergence_with_a_tail_against_a_long_cut_off(tail, size, k, ratio):
    """A geometric tail, summed in closed form, against its first 60 periods written out."""
    decay = 2**61  # b = 1/2
    weights = tuple(range(size * 7, 0, -7))
    noise = AdditiveMechanism(LINE, 1.0, 3, weights, 0, tuple(tail), decay)
    long = [w * 2**60 for w in weights]
    for period in range(60):
        long += [t * 2 ** (59 - period) for t in tail]
    exact = noise.hockey_stick(Fraction(k, 3), ratio)
    cells = {i: Fraction(w, noise.total * 2**60) for a, w in enumerate(long) for i in {a, -a}}
    direct = sum(max(p - ratio * cells.get(i + k, Fraction(0)), Fraction(0)) for i, p in cells.items())
    assert abs(exact - direct) < Fraction(1, 2**45)


def test_profile_is_a_profile(solved):
    noise = solved[1.0, 0.3, "abs"].mechanism
    values = [noise.delta(e) for e in (0.0, 0.25, 0.5, 1.0, 2.0)]
    assert values == sorted(values, reverse=True)
    assert noise.delta(1.0) <= 0.3
    assert noise.eps_at(0.3) <= 1.0 + 1e-9
    assert noise.delta(noise.eps_at(0.4)) <= 0.4
    with pytest.raises(ValueError, match="ambiguous"):
        noise.privacy()
    assert solved[1.0, 0.0, "abs"].mechanism.privacy() <= 1.0 + 1e-9


def test_a_spoilt_mechanism_fails_verification():
    solution = optdp.solve_additive(1.0, 0.05)
    weights = list(solution.mechanism.weights)
    weights[0] += sum(weights) // 5
    worse = replace(solution.mechanism, weights=tuple(weights))
    broken = replace(solution, mechanism=worse)
    assert any(check.name == "privacy" for check in broken.verify().failures)
    wider = replace(solution, problem=additive(1.0, 0.05, "abs", 2.0))
    assert any(check.name == "sensitivity" for check in wider.verify().failures)
    assert not replace(solution, value=solution.value * (1 - 1e-9)).verify()


# --- the certificate --------------------------------------------------------------------------------------------


def test_a_claim_above_the_proof_fails():
    solution = optdp.solve_additive(1.0, 0.05)
    certificate, problem = solution.certificate, solution.problem
    assert certificate.bound(problem).value == solution.lower_bound
    raised = replace(solution, lower_bound=math.nextafter(solution.lower_bound, 2))
    assert [check.name for check in raised.verify().failures] == ["lower bound"]
    m = certificate.multipliers[0]
    too_large = replace(m, values=(*m.values[:-1], m.weight * 2)) if m.values else replace(m, rest=m.weight * 2)
    for wrong in (too_large, replace(m, shift=certificate.n + 1), replace(m, weight=math.inf), replace(m, rest=-1.0)):
        with pytest.raises(Refusal):
            replace(certificate, multipliers=(wrong,)).bound(problem)
    with pytest.raises(Refusal, match="distinct"):
        replace(certificate, multipliers=(m, m)).bound(problem)


def test_a_changed_problem_changes_the_proof():
    """What is proven is proven about the problem that is asked about: never above what its own solution attains."""
    given = optdp.solve_additive(1.0, 0.05, rtol=0.02)
    for other in (
        optdp.solve_additive(1.4, 0.05, rtol=0.02),
        optdp.solve_additive(0.6, 0.05, rtol=0.02), optdp.solve_additive(1.0, 0.2, rtol=0.02),
        optdp.solve_additive(1.0, 0.0), optdp.solve_additive(1.0, 0.05, sensitivity=0.25, rtol=0.02),
        optdp.solve_additive(1.0, 0.05, "squared", rtol=0.02),
        optdp.solve_additive(1.0, 0.05, Power(3.0), rtol=0.02), optdp.solve_additive(1.0, 0.05, np.square, rtol=0.1),
    ):  # fmt: skip
        assert given.certificate.bound(other.problem).value <= other.value
        spliced = replace(other, certificate=given.certificate)
        proven = given.certificate.bound(other.problem).value
        assert bool(spliced.verify()) == (other.lower_bound <= proven)
    staircase = optdp.solve_additive(1.0, 0.0)
    assert isinstance(staircase.certificate, StaircaseCertificate)
    for problem in (additive(1.0, 1e-9), additive(1.0, 0.0, "abs", 1.0, optdp.Integers())):
        with pytest.raises(Refusal):
            staircase.certificate.bound(problem)
    other = optdp.solve_additive(1.0, 0.0, Power(1.5))
    assert staircase.lower_bound == staircase.certificate.bound(other.problem).value <= other.value
    for problem in (additive(1.01), additive(1.0, 0.0, "abs", 0.99)):
        with pytest.raises(Refusal, match="too high"):
            staircase.certificate.bound(problem)
    assert staircase.certificate.bound(additive(0.9)).value == staircase.lower_bound


@pytest.mark.parametrize(
    "problem",
    [
        optdp.Problem(optdp.LDP(1.0), LINE, "abs", optdp.Additive()),
        optdp.Problem(optdp.ApproxDP(1.0, 0.05), LINE, "abs"),
        optdp.Problem(optdp.ApproxDP(1.0, 0.05), optdp.Interval(0, 1), "abs", optdp.Additive()),
        optdp.Problem(optdp.ApproxDP(1.0, 0.05, 1.0), optdp.Integers(), "abs", optdp.Additive()),
        optdp.Problem(optdp.ApproxDP(1.0, 0.05), LINE, optdp.Threshold(0.0), optdp.Additive()),
        optdp.Problem(optdp.ApproxDP(1.0, 0.05), LINE, optdp.Pinball(0.3), optdp.Additive()),
    ],
    ids=str,
)
def test_certificates_refuse_other_kinds_of_problems(problem):
    for certificate in (optdp.solve_additive(1.0, 0.05, n=4).certificate, StaircaseCertificate(1e-6)):
        with pytest.raises(Refusal):
            certificate.bound(problem)


def test_what_is_no_dual_point_is_refused():
    good, problem = Multiplier(1, 1.0, 0, (0.5,), 0.25), additive(1.0, 0.05)
    assert AdditiveCertificate(2, "nodes", (good,)).bound(problem).value >= 0
    for change in (
        {"shift": 0}, {"shift": 3}, {"values": (-0.5,)}, {"values": (0.5, 1.5)}, {"rest": -0.25}, {"rest": 1.5},
        {"weight": math.inf}, {"weight": math.nan}, {"values": (math.nan,)}, {"eps": -1.0}, {"eps": 501.0},
    ):  # fmt: skip
        with pytest.raises(Refusal, match=r"shifts must be|is not between 0 and|eps must be"):
            AdditiveCertificate(2, "nodes", (replace(good, **change),)).bound(problem)
    with pytest.raises(Refusal, match="must be distinct"):
        AdditiveCertificate(2, "nodes", (good, good)).bound(problem)
    with pytest.raises(Refusal, match="must name its eps"):
        AdditiveCertificate(2, "nodes", (good,)).bound(replace(problem, privacy=optdp.GDP(1)))


def test_a_multiplier_counts_where_it_is_and_with_the_delta_of_its_eps():
    problem, one = additive(1.0, 0.05), Multiplier(1, 1000.0, -40, (1000.0,), 0.0)
    # At distance 39 it costs e of itself, and far beyond what is stored nothing: the least bracket is there.
    least = 39 - 1000 * math.e / 2 - 1000 * 0.05
    assert float(AdditiveCertificate(1, "nodes", (one,)).exact_bound(problem)) == pytest.approx(least, rel=1e-12)
    # Of bins two touch 0: what one multiplier adds there is shared.
    near = AdditiveCertificate(1, "bins", (Multiplier(1, 0.2, 0, (0.2,), 0.2),)).exact_bound(problem)
    assert float(near) == pytest.approx(0.1 - 0.2 * 0.05, rel=1e-12)
    for eps in (0.5, 2.0):
        named = AdditiveCertificate(1, "nodes", (replace(one, eps=eps),)).exact_bound(problem)
        own = replace(problem, privacy=optdp.ApproxDP(eps, problem.privacy.delta_at(eps)))
        assert named == AdditiveCertificate(1, "nodes", (one,)).exact_bound(own)


def test_lattices_on_which_rounding_may_cost_something_are_refused():
    dented = optdp.CustomLoss(np.sqrt, name="dented")
    for n, rounding, loss, domain, sensitivity, told in (
        (2, "nodes", Power(1.5), optdp.Integers(), 3.0, "must divide"),
        (4, "nodes", "abs", optdp.Integers(), 3.0, "must be at most"), (2, "bins", "abs", optdp.Integers(), 3.0, "1 for bins"),
        (1, "nodes", dented, optdp.Integers(), 2.0, "be convex"), (1, "nodes", dented, LINE, 2.0, "be convex"),
    ):  # fmt: skip
        problem = additive(1.0, 0.05, loss, sensitivity, domain)
        with pytest.raises(Refusal, match=told):
            AdditiveCertificate(n, rounding, (Multiplier(1, 1.0, 0, (0.5,), 0.25),)).bound(problem)


def test_other_statements_about_the_same_noise_are_proven_too():
    """The loss is the same at every input, and the optimal noise is symmetric."""
    solution = optdp.solve_additive(1.0, 0.05, n=6)
    for changed in (
        replace(solution.problem, objective=optdp.At("abs", 3.5)),
        replace(solution.problem, objective=optdp.Average("abs", ([0.0, 2.0], [0.5, 0.5]))),
        replace(solution.problem, constraints=(optdp.Unbiased(),)),
    ):
        assert replace(solution, problem=changed).verify()


@settings(max_examples=60, deadline=None)
@given(
    eps=st.floats(0.1, 2.0), delta=st.floats(0.01, 0.5), n=st.integers(1, 5), q=st.sampled_from([1.0, 1.5, 2.0]),
    data=st.data(),
)  # fmt: skip
def test_any_multipliers_give_a_valid_bound(eps, delta, n, q, data):
    """Weak duality: whatever the multipliers, the bound is below the loss of a noise that is private."""
    points = []
    for s in range(1, n + 1):
        weight = data.draw(st.floats(0, 2))
        shares = data.draw(st.lists(st.floats(0, 1), max_size=6))
        values = tuple(min(weight, weight * v) for v in shares)
        points.append(
            Multiplier(
                s,
                weight,
                data.draw(st.integers(-4, 3)),
                values,
                weight * data.draw(st.floats(0, 1)),
                data.draw(st.sampled_from([None, eps, eps / 2, 2 * eps])),
            )
        )
    bound = AdditiveCertificate(n, "nodes", tuple(points)).bound(additive(eps, delta, Power(q)))
    assert bound.value <= TruncatedLaplacian(eps, delta).noise_loss(Power(q)) * (1 + 1e-12)


@settings(max_examples=50, deadline=None)
@given(q=st.floats(1.0, 4.0), n=st.integers(1, 12))
def test_lattice_costs_lie_below_the_loss(q, n):
    """The broken line through the lattice costs is nowhere above L, up to its last point."""
    last = 2 * n + 2
    costs = [float(Fraction(int(c), 2**110)) for c in lattice_costs(Power(q), 1.0, n, last)]
    x = np.linspace(0, last / n, 12 * last + 1)
    assert (np.interp(x * n, np.arange(last + 1), costs) <= x**q + 1e-12 * (1 + x**q)).all()


@pytest.mark.parametrize("n", [1, 2, 7])
def test_costs_of_a_polynomial_are_those_of_its_power(n):
    """Chords of x^2 sag by h^2/4: no more is taken off where it is given by its coefficients, in one piece or in two."""
    plain = lattice_costs(Power(2), 1.0, n, 5 * n).tolist()
    assert plain == lattice_costs(optdp.Pieces((0,), ((0, 0, 1),)), 1.0, n, 5 * n).tolist()
    assert plain == lattice_costs(optdp.Pieces((0, 2), ((0, 0, 1), (0, 0, 1))), 1.0, n, 5 * n).tolist()


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize(("sensitivity", "n"), [(3, 2), (5, 2), (5, 4), (7, 3), (8, 7), (12, 5)])
def test_lattice_costs_that_no_integers_hit_are_worth_their_loss_on_average(sensitivity, n, q):
    """E B(x + U) <= |x|^q at the integers x, U uniform within 1/2, B the broken line of costs; |x| loses nothing at 0."""
    costs = lattice_costs(Power(q), float(sensitivity), n, 6 * n, discrete=True)
    cost, step = [Fraction(int(c), 2**110) * sensitivity**q for c in costs], Fraction(sensitivity, n)

    def line(y):
        a = min(math.floor(abs(y) / step), 6 * n - 1)
        return cost[a] + (cost[a + 1] - cost[a]) * (abs(y) / step - a)

    for x in range(4 * sensitivity):
        ends = [x - Fraction(1, 2), *(k * step for k in range(6 * n) if abs(k * step - x) < 0.5), x + Fraction(1, 2)]
        mean = sum((b - a) * (line(a) + line(b)) / 2 for a, b in itertools.pairwise(ends))
        assert mean <= x**q
        assert x or q == 2 or mean > -Fraction(1, 2**100)


@settings(max_examples=60, deadline=None)
@given(eps=st.floats(0.01, 4.0), delta=st.floats(1e-9, 0.6), q=st.sampled_from([1, 2]))
def test_the_papers_dual_point_has_the_papers_value(eps, delta, q):
    """Lemma 2 as a point of the same dual: feasible in exact arithmetic, value 2 sum a b^j j^q, rest of the mass at floor(N)."""
    e = math.exp(eps)
    a, b, mass, total = (delta + (e - 1) / 2) / e, 1 / e, 0.5, 0.0
    for j in range(10**6):
        share = min(mass, a * b**j)
        total += 2 * share * j**q
        mass -= share
        if mass <= 0:
            break
    assert paper_bound(eps, delta, Power(q), 2.0) == pytest.approx(total * 2**q, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize("n", [2, 5])
def test_an_integer_n_gives_theorems_4_and_5(n, q):
    """delta chosen so that a (1 - b^n)/(1 - b) = 1/2: the theorem's formula, by sympy."""
    eps = 0.7
    b = math.exp(-eps)
    delta = math.exp(eps) * (1 - b) / (2 * (1 - b**n)) - (math.exp(eps) - 1) / 2
    names = {"a": (delta + (math.exp(eps) - 1) / 2) / math.exp(eps), "b": b, "n": n}
    printed = tlap.lower_bound_printed(q)
    theorem = float(printed.subs({symbol: names[symbol.name] for symbol in printed.free_symbols}))
    assert paper_bound(eps, delta, Power(q)) == pytest.approx(theorem, rel=1e-9)


def test_truncated_laplacian_formula():
    for q in (1, 2):
        for eps, delta in ((0.1, 1e-6), (1.0, 0.01), (4.0, 0.3)):
            moment = tlap.in_eps_delta(tlap.moment(q)) * 2**q
            exact = float(moment.evalf(30, subs={tlap.eps: eps, tlap.delta: delta}))
            assert TruncatedLaplacian(eps, delta, 2.0).noise_loss(Power(q)) == pytest.approx(exact, rel=1e-12)


# --- the mechanism ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("eps", "delta", "discrete"), [(1.0, 0.02, False), (1.5, 0.0, False), (0.0, 0.8, False), (1.0, 0.0, True)]
)
def test_samples_follow_the_distribution(eps, delta, discrete):
    noise = optdp.solve_additive(eps, delta, sensitivity=2, discrete=discrete, rtol=1e-2).mechanism
    size = 200_000
    z = noise.randomize(np.zeros(size), rng=3)
    levels = np.array([0.02, 0.2, 0.5, 0.77, 0.99])
    points = noise.quantile(levels)
    for point in points:
        share = float(np.mean(z <= point + 1e-9))
        assert share == pytest.approx(float(noise.cdf(point + 1e-9)), abs=5 * 0.5 / math.sqrt(size))
    assert np.mean(np.abs(z)) == pytest.approx(noise.noise_loss("abs"), rel=0.02)
    assert np.mean(z**2) == pytest.approx(float(noise.variance()), rel=0.04)
    assert float(np.mean(z == 0)) == pytest.approx(float(noise.noise_probability(0.0)), abs=0.005)


@pytest.mark.parametrize(("eps", "delta"), [(1.0, 0.02), (0.5, 0.0), (0.0, 0.75), (3.0, 1e-6)])
def test_cdf_quantile_density_agree(eps, delta):
    noise = optdp.solve_additive(eps, delta, sensitivity=1.7, rtol=1e-2).mechanism
    levels = np.array([1e-6, 0.003, 0.1, 0.3, 0.6, 0.9, 0.999])
    z = noise.quantile(levels)
    assert (np.diff(z) >= 0).all()
    at_zero = noise.noise_probability(0.0) / 2
    inside = np.abs(levels - 0.5) > at_zero
    np.testing.assert_allclose(noise.cdf(z)[inside], levels[inside], atol=1e-12)
    x = np.linspace(-4, 4, 200_001)
    mass = noise.noise_density(x)[:-1].sum() * (x[1] - x[0]) + noise.atom_mass
    assert mass == pytest.approx(float(noise.cdf(4.0) - noise.cdf(-4.0)), abs=1e-3)
    low, high = noise.confidence_interval(0.9)
    assert low == -high
    covered = float(noise.cdf(high) - noise.cdf(low)) + (noise.atom_mass if high == 0 else 0.0)
    assert covered == pytest.approx(0.9, abs=1e-9) or (noise.atom_mass > 0 and covered > 0.9)


def test_outputs_lie_on_a_grid_of_exact_integers():
    noise = optdp.solve_additive(1.0, 0.1, sensitivity=0.3, rtol=1e-2).mechanism
    g, m = noise._grid()
    y = noise.randomize(np.array([0.1, -7.3, 1e9, 1e17, -1e300, 1e305]), rng=0)
    assert (np.floor(y[:4] / g) == y[:4] / g).all()
    assert y[4] == -1e300 and y[5] == 1e305
    assert m * g >= noise.step and m >= 2**40


def test_round_trips():
    for arguments in ({"delta": 0.02}, {"delta": 0.0}, {"delta": 0.02, "discrete": True, "sensitivity": 2},
                      {"delta": "1/50", "eps": optdp.log(3)}):  # fmt: skip
        solution = optdp.solve_additive(**({"eps": 1.0, "rtol": 1e-2} | arguments))
        again = Solution.from_dict(json.loads(json.dumps(solution.to_dict())))
        assert again == solution
        assert pickle.loads(pickle.dumps(solution)) == copy.deepcopy(solution) == solution
        assert again.verify()


def _broken(data, path, value):
    spoilt = json.loads(json.dumps(data))
    place = spoilt
    for key in path[:-1]:
        place = place[key]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return spoilt


@pytest.mark.parametrize("value", [KeyError, None, "x", [], {}, -1, 10**40, True])
@pytest.mark.parametrize(
    "path",
    [
        ("mechanism", "domain"), ("mechanism", "sensitivity"), ("mechanism", "n"), ("mechanism", "weights"),
        ("mechanism", "atom"), ("mechanism", "tail"), ("mechanism", "decay"), ("certificate", "n"), ("certificate", "rounding"),
        ("certificate", "multipliers"), ("certificate", "multipliers", 0, "shift"), ("certificate", "multipliers", 0, "weight"),
        ("certificate", "multipliers", 0, "first"), ("certificate", "multipliers", 0, "values"),
        ("certificate", "multipliers", 0, "rest"),
    ],
    ids=str,
)  # fmt: skip
def test_a_spoilt_file_is_refused_in_one_sentence_or_does_not_verify(path, value):
    data = SPOILT.setdefault("data", optdp.solve_additive(1.0, 0.05, n=4).to_dict())
    spoilt = _broken(data, path, value)
    try:
        found = Solution.from_dict(json.loads(json.dumps(spoilt)))
    except FieldError as error:
        assert ("\n" not in str(error) and path[-1] in str(error)) or path[0] in str(error)
    else:
        assert spoilt == data or value in ([], 10**40) or not found.verify()
        found.verify()


SPOILT: dict = {}


def test_a_file_cannot_ask_for_an_endless_proof(monkeypatch):
    """Multipliers that go on for ever cost as much as one; those that are written out are limited."""
    found = optdp.solve_additive(1.0, 0.05, n=4)
    data = found.certificate.to_dict()
    data["n"] = 100_000
    data["multipliers"] = [{"shift": s, "weight": 1.0, "first": 0, "values": [], "rest": 1.0} for s in range(1, 10_000)]
    endless = Certificate.from_dict(data)
    with work.limited(10.0):
        assert endless.bound(found.problem).value <= found.value
    monkeypatch.setattr("optdp.certificates.additive.MOST", 3)
    with pytest.raises(FieldError, match="more than"):
        Certificate.from_dict(found.certificate.to_dict())


def test_guarantees():
    """Noise that needs no delta states its exact ratio, other noise a point of its profile; `satisfies` knows all of it."""
    pure = optdp.solve_additive(0.5, 0.0, sensitivity=2.0).mechanism
    own = pure.guarantee()
    assert own.delta == 0 and own.sensitivity == 2.0 and 0.4999 < float(own.eps) <= 0.5
    assert pure.exact_delta(own.eps.argument) == 0 < pure.exact_delta(own.eps.argument * (1 - Fraction(1, 2**40)))
    assert own.eps.argument <= enclosures.exp_below(0.5) and pure.privacy() <= 0.5
    assert pure.satisfies(optdp.ApproxDP(0.5, 0.0, 2.0)) and pure.satisfies(optdp.ApproxDP(0.5, 0.0, 0.3))
    assert (
        pure.satisfies(optdp.ApproxDP(0.499, 0.0, 2.0)) is False
        and pure.satisfies(optdp.ApproxDP(0.5, 0.0, 2.1)) is None
    )

    noise = optdp.solve_additive("1/2", "1/50", rtol=1e-3).mechanism
    own = noise.guarantee()
    assert own.eps == Fraction(1, 2) and own.delta == noise.exact_delta(
        enclosures.exp_below(Fraction(1, 2))
    ) <= Fraction(1, 50)
    for eps, reach in ((0.5, 1.0), (0.5, 0.4), (0.1, 1.0), (1.5, 0.77), (0.5, 1.9)):
        ratio = enclosures.exp_below(eps)
        step = Fraction(reach) / 64
        seen = max(noise.hockey_stick(k * step, ratio) for k in range(1, 65))
        exact = noise.exact_delta(ratio, reach)
        assert (
            seen <= exact * (1 + Fraction(1, 2**39)) <= seen + Fraction(1, 10)
        )  # on the grid cells are up to 2^-40 wider
        assert noise.satisfies(optdp.ApproxDP(eps, exact, reach))
        assert noise.satisfies(optdp.ApproxDP(eps, exact * (1 - Fraction(1, 10**6)), reach)) is False
    assert noise.satisfies(optdp.LDP(5.0)) is None
    disjoint = AdditiveMechanism(LINE, 1.0, 1, (1,))
    assert disjoint.guarantee() is None and disjoint.satisfies(optdp.ApproxDP(1.0, 0.999)) is False


def test_losses_known_through_their_integrals():
    """Huber and polynomial pieces: the same numbers as powers where they are powers; kinks at cells' ends by hand."""
    noise = optdp.solve_additive(1.0, 0.3, n=5).mechanism
    for q, row in ((1, (0, 1)), (2, (0, 0, 1))):
        pieces = optdp.Pieces((0,), (row,))
        assert noise.enclose_loss(pieces) == pytest.approx(noise.enclose_loss(Power(q)), rel=1e-15)
    assert noise.enclose_loss(optdp.Huber(50.0))[1] == pytest.approx(noise.noise_loss("squared") / 2, rel=1e-14)
    whole = AdditiveMechanism(optdp.Integers(), 2.0, 2, (5, 3, 1))
    low, high = whole.enclose_loss(optdp.Huber(1.0))
    assert low <= 6 / 13 <= high and high - low < 1e-12
    unbounded = optdp.solve_additive(1.0, 0.0).mechanism
    line, huber = optdp.Pieces((0,), ((0, 1),)), optdp.Huber(1.0)
    assert unbounded.noise_loss(line) == pytest.approx(unbounded.noise_loss("abs"), rel=1e-14)
    assert unbounded.noise_loss("abs") - 0.5 < unbounded.noise_loss(huber) < unbounded.noise_loss("abs")


@st.composite
def losses_in_pieces(draw):
    """Nondecreasing pieces, with jumps or without, some breaks where cells meet or almost there, some far out."""
    places = st.one_of(
        st.builds(
            lambda k, off: Fraction(k, 8) + Fraction(off, 2**39),
            st.integers(1, 60),
            st.sampled_from([0, 0, 1, -1, 16, -16]),
        ),
        st.fractions(Fraction(1, 100), 40, max_denominator=10**4),
    )
    breaks = [Fraction(0), *sorted(draw(st.sets(places, max_size=4)))]
    rows, level = [], Fraction(0)
    for start, end in itertools.zip_longest(breaks, breaks[1:]):
        rise = draw(st.lists(st.integers(0, 3), min_size=4, max_size=4))  # about the break, all derivatives >= 0
        rise[0] += level
        rows.append(tuple(polynomial.moved(rise, -start)))
        level = sum(c * (end - start) ** k for k, c in enumerate(rise)) if end else level
    return optdp.Pieces(breaks, rows)


@st.composite
def noises(draw):
    """Weights in any order, in bins or not, with an atom and a tail or without, on the line or the integers."""
    discrete, n = draw(st.sampled_from([False, False, True])), draw(st.integers(1, 4))
    weights = tuple(draw(st.lists(st.integers(0, 9), min_size=1, max_size=15)))
    tail = tuple(draw(st.lists(st.integers(0, 9), min_size=n, max_size=n))) if draw(st.booleans()) else ()
    decay = draw(st.sampled_from([0, 2**58, 2**60, 3 * 2**60]))
    atom, bins = (0, False) if discrete else (draw(st.integers(0, 5)), draw(st.booleans()))
    domain, sensitivity = (optdp.Integers(), n) if discrete else (LINE, draw(st.sampled_from([1.0, 0.3, 7.0])))
    assume(atom + sum(weights) + sum(tail))
    return AdditiveMechanism(domain, sensitivity, n, weights, atom, tail, decay, bins=bins)


def check_cell_by_cell(noise, loss, sent):
    """What is told against the plain sum over cells, each moved inwards and outwards, exactly."""
    h, b = noise.step, Fraction(noise.decay, 2**62)
    share = Fraction(1 if sent and not noise.discrete else 0, 2**40)

    def between(low, high):
        """The integral of the loss from `low` to `high`."""
        ends = [low, *(x for x in loss.breaks if low < x < high), high]
        rows = (loss.coefficients[bisect.bisect_right(loss.breaks, x) - 1] for x in ends)
        parts = zip(rows, itertools.pairwise(ends), strict=False)
        return sum(c * (y ** (k + 1) - x ** (k + 1)) / (k + 1) for row, (x, y) in parts for k, c in enumerate(row))

    def cost(a):
        if noise.discrete:
            return [loss.exact(Fraction(a))] * 2
        middle = a + Fraction(noise.bins, 2)
        ends = [(middle - Fraction(1, 2)) * h if middle else Fraction(0), (middle + Fraction(1, 2)) * h]
        moves = [side * (a + 4) * h * share for side in (-1, 1)]
        return [between(*(max(end + move, Fraction(0)) for end in ends)) / (ends[1] - ends[0]) for move in moves]

    periods = (200 if b > Fraction(1, 2) else 40) if noise.tail else 0
    masses = [2 * w for w in noise.weights]
    masses[0] //= 1 if noise.bins else 2
    masses += [2 * t * (1 - b) * b**k for k in range(periods) for t in noise.tail]
    exact = [noise.atom * loss.exact(x) for x in (Fraction(0), 3 * share * h)]
    for a, mass in enumerate(masses):
        if mass:
            exact = [total + mass * value for total, value in zip(exact, cost(a), strict=True)]
    least, most = (float(total / noise.total) for total in exact)
    low, high = noise.enclose_loss(loss, sent=sent)
    near = 1e-6 * (most - least)  # radii of balls have few digits
    assert least - 2 * math.ulp(least) - near <= low <= least + math.ulp(least)
    assert most - math.ulp(most) <= high <= most + 2 * math.ulp(most) + near
    # Where no cell is looked at alone, those around a break together have a wider bracket.
    with mock.patch.object(mechanisms.additive, "FEW", 0):
        wide = noise.enclose_loss(loss, sent=sent)
    assert wide[0] <= low and high <= wide[1]


@settings(max_examples=settings.default.max_examples // 2)
@given(noises(), losses_in_pieces(), st.booleans())
def test_losses_in_pieces_cell_by_cell(noise, loss, sent):
    """Sums of powers of the cells' numbers are as good as the cells one by one."""
    check_cell_by_cell(noise, loss, sent)


@pytest.mark.parametrize("bins", [False, True])
def test_jumps_where_cells_meet(bins):
    """Also where only what is sent may be on the other side of the jump."""
    noise = AdditiveMechanism(LINE, 1.0, 1, (3, 2, 4, 1, 2, 5), bins=bins)
    for a, off in itertools.product((0, 2, 4), range(-24, 25, 3)):
        place = a + Fraction(1 + bins, 2) + Fraction(off, 2**41)
        check_cell_by_cell(noise, optdp.Pieces((0, place), ((0,), (1,))), True)


# --- the program ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [{"delta": 0.05}, {"delta": 0.0}, {"delta": 0.3, "eps": 0.0}, {"delta": 0.01, "discrete": True, "sensitivity": 3},
     {"delta": 0.02, "n": 6, "method": "structured"}],
    ids=str,
)  # fmt: skip
def test_the_model_written_and_read_again_has_the_same_optimum(arguments, tmp_path):
    solution = optdp.solve_additive(**({"eps": 1.0, "rtol": 2e-3} | arguments))
    model, unit = solution.program.model, arguments.get("sensitivity", 1)
    for ending in ("mps", "lp"):
        solution.program.write(tmp_path / f"model.{ending}")
        assert read(tmp_path / f"model.{ending}").solve(Highs()).objective == pytest.approx(
            solution.program.objective, rel=1e-6
        )
    found = model.solve()
    dual = float(found.dual("mass")[0] + found.dual("budget").sum())
    assert dual == pytest.approx(found.objective, rel=1e-7)
    if not isinstance(solution.certificate, StaircaseCertificate):  # the certificate sums up the budgets' duals
        assert dual * unit == pytest.approx(solution.lower_bound, rel=1e-4)
        lam = {m.shift: m.weight for m in solution.certificate.multipliers}
        budget = arguments["delta"] * sum(lam.values())
        assert -float(found.dual("budget").sum()) == pytest.approx(budget, rel=0.02, abs=1e-6)
    assert found.value("mass").size + 1 + found.value("slack").size == model.cost.size
    assert pickle.loads(pickle.dumps(model)).rows.shape == model.rows.shape


class _Scipy(LinearSolver):
    """scipy's own entry point."""

    name = "scipy linprog"

    def solve(self, program, *, time_limit=math.inf):
        from scipy.optimize import linprog

        same = np.isfinite(program.row_lower)
        found = linprog(
            program.cost, A_ub=program.rows[~same], b_ub=program.row_upper[~same], A_eq=program.rows[same],
            b_eq=program.row_upper[same], bounds=np.stack([program.lower, program.upper], axis=1), method="highs",
        )  # fmt: skip
        if found.status != 0:
            return LinearResult(LinearStatus.FAILED, message=found.message)
        dual = np.empty(same.size)
        dual[same], dual[~same] = found.eqlin.marginals, found.ineqlin.marginals
        return LinearResult(LinearStatus.OPTIMAL, found.fun, found.x, dual, np.zeros(found.x.size), program=program)


@pytest.mark.parametrize(
    "solver", [_Scipy(), Highs(method="ipm", threads=2), Highs(method="simplex")], ids=lambda s: s.name
)
def test_any_solver_of_linear_programs(solver):
    base = optdp.solve_additive(1.0, 0.05, n=6)
    other = optdp.solve_additive(1.0, 0.05, n=6, solver=solver)
    assert solver.name in other.program.solver and other.verify()
    assert other.value == pytest.approx(base.value, rel=1e-5) and other.lower_bound == pytest.approx(
        base.lower_bound, rel=1e-5
    )
    with pytest.raises(ValueError, match="method"):
        optdp.solve_additive(1.0, 0.05, n=6, solver=solver, method="ipm")
    with pytest.raises(TypeError, match="solver"):
        optdp.solve_additive(1.0, 0.05, solver="highs")


def test_exact_parameters_stay_exact():
    solution = optdp.solve_additive(optdp.log(3), "0.01", rtol=1e-2)
    assert "(log(3), 1/100)-DP" in solution.problem.statement()
    assert solution.verify()
    assert solution.mechanism.exact_delta(Fraction(3)) <= Fraction(1, 100)
    steps = []
    optdp.solve_additive(1.0, 0.05, rtol=1e-3, progress=steps.append)
    assert steps[-1].stage == "done" and any("lattice points" in step.stage for step in steps)


def test_mending_makes_any_masses_private():
    rng = np.random.default_rng(5)
    for _ in range(5):
        noise = private_finite(optdp.ApproxDP(0.8, 0.03), LINE, 3, rng.random(12))
        assert noise.exact_delta(enclosures.exp_below(0.8)) <= Fraction(0.03)
        tail = private_geometric(optdp.ApproxDP(0.8), LINE, 3, rng.random(9))
        assert tail.exact_delta(enclosures.exp_below(0.8)) == 0


@pytest.mark.parametrize(
    ("arguments", "error", "name"),
    [
        ({"eps": 0.0, "delta": 0.0}, ValueError, "delta"), ({"eps": -1.0}, ValueError, "eps"),
        ({"eps": math.nan}, ValueError, "eps"), ({"eps": 1.0, "delta": 1.0}, ValueError, "delta"),
        ({"eps": 1.0, "delta": -0.1}, ValueError, "delta"), ({"eps": [1]}, TypeError, "eps"),
        ({"eps": 1.0, "loss": optdp.Pinball(0.3)}, ValueError, "loss"), ({"eps": 1.0, "loss": "huber"}, ValueError, "loss"),
        ({"eps": 1.0, "delta": 0.1, "loss": np.sqrt}, ValueError, "loss"), ({"eps": 1.0, "loss": np.square}, ValueError, "loss"),
        ({"eps": 1.0, "sensitivity": 0.0}, ValueError, "sensitivity"), ({"eps": 1.0, "rtol": 0.0}, ValueError, "rtol"),
        ({"eps": 1.0, "sensitivity": 1.5, "discrete": True}, ValueError, "sensitivity"),
        ({"eps": 1.0, "n": 0}, ValueError, "n"), ({"eps": 1.0, "method": "magic"}, ValueError, "method"),
        ({"eps": 1e-9, "delta": 1e-12}, ValueError, "delta"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(arguments, error, name):
    with pytest.raises(error, match=name):
        optdp.solve_additive(**arguments)


def test_stopping_early_gives_a_valid_wider_bracket():
    solution = optdp.solve_additive(2.0, 0.05, rtol=1e-5, time_limit=0.3)
    assert solution.status in (Status.TIME_LIMIT, Status.GAP)
    assert solution.gap > 1e-5
    assert solution.verify()


@pytest.mark.parametrize("loss", ["abs", "squared"])
@pytest.mark.parametrize("eps", [0.001, 0.05, 0.5, 2.0, pytest.param(6.0, marks=pytest.mark.soak), 10.0, 14.0])
def test_without_delta_the_bracket_closes_on_the_staircase(eps, loss):
    """Its closed form, by sympy from the density; the certificate is a bathtub on one period, valid on the continuum."""
    from optdp.closed_forms import additive as forms

    solution = optdp.solve_additive(eps, 0.0, loss, sensitivity=3.0)
    closed = float(solution.closed_form.subs(forms.eps, eps).evalf(30))
    assert solution.verify()
    assert solution.gap <= 1e-6
    assert solution.lower_bound * (1 - 1e-12) <= closed <= solution.value * (1 + 1e-12)
    assert solution.certificate.bound(solution.problem).value == pytest.approx(closed, rel=1e-12)
    with pytest.raises(Refusal, match="too high"):
        replace(solution.certificate, threshold=closed * (1 + 1e-9)).bound(solution.problem)
    assert optdp.Solution.from_dict(solution.to_dict()).verify()


# --- large eps: most of the noise in a narrow peak -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("eps", "delta", "loss"),
    [(8.0, 0.1, "abs"), (8.0, 1e-6, "squared"), pytest.param(12.0, 0.5, "abs", marks=pytest.mark.soak)],
)
def test_a_narrow_peak(eps, delta, loss):
    """The staircase with an atom of delta is within 1e-3 of the best, which is proven: (1 - delta) times the staircase's loss."""
    found = optdp.solve_additive(eps, delta, loss)
    pure = optdp.solve_additive(eps, 0.0, loss)
    assert found.gap <= 1e-3 and found.verify(), str(found.verify())
    assert found.value <= (1 - delta) * pure.value * (1 + 1e-6)
    assert found.lower_bound <= pure.value
    assert optdp.Solution.from_dict(found.to_dict()).verify()


def test_bounds_of_a_narrow_peak_agree_with_all_rows():
    """Where a lattice can still hold all rows: a bound for the same optimum, not above the noise found there nor far below it."""
    from optdp.design.additive import approximate, narrow

    problem = optdp.Problem(optdp.ApproxDP(4.0, 0.1), optdp.Line(), "abs", optdp.Additive())
    task = approximate._Task(problem, time.perf_counter() + 60, "auto", None)
    proven = narrow.certificate(problem, task.costs, 30, task.deadline).bound(problem).value
    whole = optdp.solve_additive(4.0, 0.1)
    assert whole.value * 0.97 <= proven <= whole.value

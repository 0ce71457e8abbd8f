"""`solve_kernel` on an interval and a circle: brackets, certificates, exact mechanisms."""

import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import optdp
from optdp.certificates.base import Certificate, Refusal
from optdp.certificates.kernel import KernelCertificate, certify
from optdp.exact import enclosures
from optdp.exact.fields import Fields
from optdp.exact.rounding import TOTAL, Table, private_weights
from optdp.mechanisms import baselines
from optdp.mechanisms.kernel import KernelMechanism
from optdp.problem.losses import Power
from optdp.solvers import LinearStatus
from optdp.solvers import kernel_lp as lp
from optdp.solvers.kernel_interior import solve_interior


@pytest.fixture(scope="module")
def solved():
    """Solutions by (eps, loss, unbiased), each solved once."""
    cache = {}

    def get(eps, loss="abs", unbiased=False, **options):
        key = (eps, loss, unbiased, tuple(sorted(options.items())))
        if key not in cache:
            domain = (-1, 1) if unbiased else (0, 1)
            cache[key] = optdp.solve_kernel(eps, loss, domain=domain, unbiased=unbiased, **options)
        return cache[key]

    return get


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_bracket_closes_and_verifies(solved, eps, loss):
    solution = solved(eps, loss)
    assert solution.status is optdp.Status.OPTIMAL
    assert 0 <= solution.gap <= 1e-3
    assert solution.verify(), str(solution.verify())


def test_abs_at_eps_1_is_where_the_dense_program_puts_it(solved):
    solution = solved(1.0, rtol=1e-4)
    assert solution.gap <= 1e-4
    assert solution.lower_bound <= 0.31617 <= solution.value
    assert solution.value < 0.84 * optdp.solve_piecewise(1).value  # 16 % below the best common floor


@pytest.mark.parametrize(
    ("eps", "loss"), [(0.5, "abs"), (1.0, "abs"), (2.0, "abs"), (1.0, "squared"), (2.0, "squared")]
)
def test_never_above_the_published_mechanisms_nor_the_best_piecewise_one(solved, eps, loss):
    solution = solved(eps, loss)
    assert solution.value <= optdp.solve_piecewise(eps, loss=loss).value
    others = baselines.applicable(solution.problem)
    assert len(others) >= 5
    for name, mechanism in others.items():
        assert solution.value <= mechanism.worst_case_loss(loss), name


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0, 1.5, 1.76])
def test_squared_optimum_is_the_bayes_risk_of_a_fair_coin_up_to_ln_3_plus_2_root_2(solved, eps):
    solution = solved(eps, "squared", rtol=1e-6)
    assert solution.lower_bound <= math.exp(eps) / (1 + math.exp(eps)) ** 2 <= solution.value
    assert solution.gap < 1e-6


def test_squared_formula_is_below_the_bracket_beyond_its_range(solved):
    solution = solved(2.0, "squared")
    assert math.exp(2) / (1 + math.exp(2)) ** 2 < solution.lower_bound


def constant_variance(eps):
    return 1 / math.tanh(eps / 2) / math.tanh(math.tanh(eps / 2)) - 1


@pytest.mark.parametrize("eps", [0.1, 0.25, 0.5, 0.7])
def test_unbiased_optimum_is_the_equaliser_for_small_eps(solved, eps):
    solution = solved(eps, None, True)
    assert solution.gap <= 1e-3
    assert solution.lower_bound <= constant_variance(eps) <= solution.value


def test_equaliser_is_above_the_bracket_at_eps_1(solved):
    assert solved(1.0, None, True).value < constant_variance(1.0)


def duchi(eps):
    """Duchi, Jordan, Wainwright (JASA 2018): outputs +-(E + 1)/(E - 1), worst variance at x = 0."""
    return 1 / math.tanh(eps / 2) ** 2


def piecewise_mechanism(eps):
    """PM (Wang et al., ICDE 2019, Lemma 1): Var(x) = x^2/(s - 1) + (s + 3)/(3 (s - 1)^2) with s = e^(eps/2), worst at
    x = 1.
    """
    s = math.exp(eps / 2)
    return 4 * s / (3 * (s - 1) ** 2)


def hybrid(eps):
    """HM (Wang et al., ICDE 2019, Equation 10)."""
    e, s = math.exp(eps), math.exp(eps / 2)
    if eps > 0.61:
        return (s + 3) / (3 * s * (s - 1)) + (e + 1) ** 2 / (s * (e - 1) ** 2)
    return duchi(eps)


def best_ptt(eps):
    """I-PTT (mass 1 imposed): k = (E + eta - 1)/(E - 1), a = k/(eta - 1), Var(1) minimised over eta > 1."""
    e, eta = math.exp(eps), np.linspace(1.001, 30, 200_000)
    k = (e + eta - 1) / (e - 1)
    return float((k - 1 + k / (3 * (eta - 1) ** 2) * (eta**3 / (e - 1) + 1)).min())


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0, 2.0, 3.0])
def test_unbiased_is_below_the_published_unbiased_mechanisms(solved, eps):
    solution = solved(eps, None, True, rtol=5e-3)
    assert solution.verify(), str(solution.verify())
    for published in (duchi, piecewise_mechanism, hybrid, best_ptt):
        assert solution.value < published(eps)


@pytest.mark.parametrize("eps", [0.1, 1.0, 2.0, 3.0])
def test_unbiased_is_below_every_published_unbiased_mechanism_of_the_package(solved, eps):
    value = solved(eps, None, True, rtol=5e-3).value
    others = baselines.applicable(solved(eps, None, True, rtol=5e-3).problem)
    assert {"Duchi", "PM", "HM", "PM-SUB"} <= set(others)
    for name, mechanism in others.items():
        assert value < mechanism.worst_case_loss("squared"), name
    assert value < optdp.solve_ptt(eps).lower_bound


def test_published_variances_are_those_of_their_sources():
    assert [round(f(1.0), 3) for f in (duchi, piecewise_mechanism, hybrid, best_ptt)] == [4.683, 5.224, 4.289, 5.066]


def test_unbiased_at_every_input_exactly_at_the_grid_and_to_rounding_in_between(solved):
    mechanism = solved(1.0, None, True).mechanism
    assert all(mechanism.exact_mean(i) == Fraction(x) for i, x in enumerate(mechanism.inputs))
    x = np.linspace(-1, 1, 100_001)
    assert np.abs(mechanism.mean(x) - x).max() < 1e-12
    assert mechanism.worst_case_loss("squared") <= solved(1.0, None, True).value * (1 + 1e-12)


def test_bounded_outputs_cost_more_and_stay_inside(solved):
    free = solved(1.0, None, True)
    tight = optdp.solve_kernel(1, unbiased=True, domain=(-1, 1), outputs=(-2.4, 2.4))
    assert tight.verify()
    assert tight.lower_bound > free.value
    assert -2.4 <= tight.mechanism.support()[0] < tight.mechanism.support()[1] <= 2.4
    wide = optdp.solve_kernel(1, unbiased=True, domain=(-1, 1), outputs=(-1e300, 1e6))
    assert wide.verify() and wide.gap <= 1e-3 and wide.value == pytest.approx(free.value, rel=1e-3)
    with pytest.raises(ValueError, match=r"beyond both ends, \[-2\.16"):
        optdp.solve_kernel(1, unbiased=True, domain=(-1, 1), outputs=(-1.1, 1.1))


@settings(max_examples=6)
@given(st.floats(-100, 100), st.floats(0.01, 100))
def test_moving_and_scaling_the_domain_scales_the_bracket(a, width):
    base = optdp.solve_kernel(1, level=3)
    moved = optdp.solve_kernel(1, level=3, domain=(a, a + width))
    scale = (a + width) - a
    assert moved.value == pytest.approx(base.value * scale, rel=1e-9)
    assert moved.lower_bound == pytest.approx(base.lower_bound * scale, rel=1e-9)
    assert moved.verify()


@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_value_falls_with_eps(solved, loss):
    epsilons = [0.1, 0.5, 1.0, 2.0]
    for small, large in pairwise(epsilons):
        assert solved(large, loss).value < solved(small, loss).lower_bound


def test_other_powers_have_proven_brackets_too():
    solution = optdp.solve_kernel(2, optdp.Power(1.5), rtol=5e-3)
    assert solution.gap <= 5e-3
    assert solution.verify()


# The linear programs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("eps", [0.5, 2.0])
def test_blocks_and_the_plain_linear_program_agree(eps, unbiased):
    knots = np.linspace(0, 1, 9)
    y = np.linspace(-2, 3, 51) if unbiased else np.linspace(0, 1, 17)
    grid = lp.Grid(math.exp(eps), 2.0 if unbiased else 1.0, knots, knots, unbiased)
    whole = lp.solve_dense(grid, y)
    half = lp.solve_blocks(grid, y[y <= 0.5])
    assert half.value == pytest.approx(whole.value, rel=1e-7)
    plain = lp.solve_blocks(replace(grid, symmetric=False), y, vertex=True)
    assert plain.value == pytest.approx(whole.value, rel=1e-7)


@pytest.mark.parametrize("unbiased", [False, True])
@pytest.mark.parametrize("eps", [0.5, 2.0])
@pytest.mark.parametrize("symmetric", [False, True])
def test_column_generation_agrees_with_the_plain_linear_program(eps, unbiased, symmetric):
    knots = np.linspace(0, 1, 9)
    grid = lp.Grid(math.exp(eps), 2.0 if unbiased else 1.0, knots, knots, unbiased, symmetric=symmetric)
    span = (-2.0, 3.0) if unbiased else (0.0, 1.0)
    y = np.linspace(*span, 51)
    found = lp.solve_columns(grid, y[y <= 0.5] if symmetric else y, span)
    assert found.dual.bound(float(found.dual.minima(span)[1].min())) == pytest.approx(found.value, rel=1e-8)
    whole = lp.solve_dense(grid, np.union1d(found.outputs, y))  # the plain program given the outputs that pricing found
    assert found.value == pytest.approx(whole.value, rel=1e-7)
    assert np.abs(found.rows.sum(axis=1) - 1).max() < 1e-8
    assert (found.rows <= math.exp(eps) * found.floors + 1e-8).all()
    assert (found.rows >= found.floors - 1e-8).all()


@pytest.mark.parametrize("backend", ["columns", "dense"])
@pytest.mark.parametrize("unbiased", [False, True])
def test_backends_give_the_same_bracket(backend, unbiased):
    options = {"domain": (-1, 1), "unbiased": True} if unbiased else {}
    reference = optdp.solve_kernel(1, level=3, rtol=1e-6, simplify=False, **options)
    other = optdp.solve_kernel(1, level=3, rtol=1e-6, simplify=False, backend=backend, **options)
    assert other.lower_bound == pytest.approx(reference.lower_bound, rel=1e-6)
    assert other.value == pytest.approx(reference.value, rel=2e-4)
    assert other.verify()


@pytest.mark.parametrize("q", [1.0, 2.0, 1.5])
def test_local_minima_of_the_reduced_cost_are_found_on_the_continuum(q):
    rng = np.random.default_rng(0)
    knots = np.linspace(0, 1, 9)
    grid = lp.Grid(3.0, q, knots, knots, symmetric=False)
    fine = np.linspace(0, 1, 200_001)
    for _ in range(10):
        dual = lp.Dual(grid, rng.random(9), 0.2 * rng.random(9), np.zeros(9))
        _, g = dual.minima((0.0, 1.0))
        assert g.min() <= dual.value(fine).min() + 1e-9


# The certificate ------------------------------------------------------------------------------------------------------


def interval(eps=1.0, loss="abs", domain=(0, 1), **constraints):
    kinds = {"outputs": lambda pair: optdp.Outputs(*pair), "unbiased": lambda _: optdp.Unbiased()}
    return optdp.Problem(optdp.LDP(eps), domain, loss, constraints=[kinds[k](v) for k, v in constraints.items()])


@pytest.mark.parametrize("q", [1.0, 2.0, 1.5])
def test_any_multipliers_give_a_valid_bound(q):
    """Weak duality at random points: the proven bound is below the value of a mechanism, whatever the multipliers."""
    rng = np.random.default_rng(1)
    best = optdp.solve_kernel(1, optdp.Power(q), rtol=1e-2)
    for _ in range(5):
        k = int(rng.integers(2, 7))
        x = np.sort(np.concatenate([[0, 1], rng.random(k)]))
        made = certify(best.problem, x, rng.random(x.size), 0.3 * rng.random(x.size))
        assert 0 <= made.bound(best.problem).value <= best.value


def test_multipliers_that_are_none_are_refused(solved):
    for solution in (solved(1.0), solved(1.0, "squared"), solved(1.0, None, True)):
        sound, problem = solution.certificate, solution.problem
        assert sound.bound(problem).value == solution.lower_bound
        assert not replace(solution, lower_bound=solution.lower_bound * (1 + 1e-9)).verify()
        for change in (
            {"weights": tuple(-w for w in sound.weights)},
            {"weights": sound.weights[1:]},
            {"weights": tuple(0.0 for _ in sound.weights)},
            {"masses": (*sound.masses, 0.0)},
            {"masses": (math.nan, *sound.masses[1:])},
            {"masses": (1e300, *sound.masses[1:])},
            {"inputs": (*sound.inputs[:-1], 1 + 2**-52)},
            {"inputs": (math.nan, *sound.inputs[1:])},
            {"means": (0.0,)},
        ):
            with pytest.raises(Refusal, match="kernel certificate proves nothing here"):
                replace(sound, **change).bound(problem)


def test_inputs_outside_the_domain_prove_nothing():
    """The forgery of inputs stretched to [-1.5, 2.5] with weights divided by the factor: 1.26 for an optimum of 0.316."""
    solution = optdp.solve_kernel(1)
    sound = solution.certificate
    forged = replace(
        sound, inputs=tuple(0.5 + 4 * (x - 0.5) for x in sound.inputs), weights=tuple(w / 4 for w in sound.weights)
    )
    spliced = replace(solution, certificate=forged, lower_bound=0.3)
    assert [check.name for check in spliced.verify().failures] == ["lower bound"]
    for wider in ({}, {"outputs": (-1.5, 2.5)}):
        with pytest.raises(Refusal, match=r"inputs in \[0, 1\]"):
            forged.bound(interval(**wider))
    data = solution.to_dict()
    data["certificate"]["inputs"] = list(forged.inputs)
    with pytest.raises(ValueError, match=r"certificate\.inputs\[0\] = -1\.5 is not allowed.*\[0, 1\]"):
        optdp.Solution.from_dict(data)


def test_a_changed_problem_is_proven_anew_or_refused(solved):
    """Every certificate against every problem: what it proves is below a value that the problem attains."""
    prior = ([0.0, 0.3, 1.0], [0.5, 0.25, 0.25])
    problems = [
        interval(), interval(0.5), interval(2.0), interval(1.0, "squared"), interval(1.0, Power(1.5)), interval(domain=(0, 2)),
        interval(domain=(-1, 1)), interval(outputs=(0.2, 0.8)), interval(outputs=(-3, 5)), interval(1.0, "squared", unbiased=0),
        interval(1.0, "squared", unbiased=0, domain=(0, 2)), interval(1.0, "squared", unbiased=0, outputs=(-1.2, 2.2)),
        optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.Average("abs", prior)),
        optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.Average("abs", (prior[0], prior[1][::-1]))),
        optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.Average("squared", prior)),
    ]  # fmt: skip
    solutions = [optdp.solve(problem, rtol=0.02) for problem in problems]
    others = [
        optdp.Problem(optdp.LDP(1.0), (0, 1), "abs", optdp.Piecewise(3)), optdp.solve_kernel(1, domain=optdp.Circle(1)).problem,
        optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.At("abs", 0.0)), optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.Average("abs")),
    ]  # fmt: skip
    proven = refused = 0
    for source, target in product(solutions, solutions):
        assert source.verify()
        try:
            bound = source.certificate.bound(target.problem).value
        except Refusal:
            refused += 1
            continue
        proven += 1
        assert bound <= target.value, (source.problem, target.problem)
        assert source is not target or bound == target.lower_bound
        spliced = replace(target, certificate=source.certificate)
        assert bool(spliced.verify()) == (target.lower_bound <= bound)
    assert proven > 60 and refused > 60
    for source in solutions:
        # All mechanisms: so the bound holds for three pieces too. A circle, one input and a continuous prior are other questions.
        try:
            assert source.certificate.bound(others[0]).value <= optdp.solve_piecewise(1).value
        except Refusal:
            assert source.problem.unbiased or isinstance(source.problem.objective, optdp.Average)
        for problem in others[1:]:
            with pytest.raises(Refusal):
                source.certificate.bound(problem)


def test_parts_of_another_system_do_not_verify(solved):
    """All kernels attain less than the best three pieces: neither certificate nor mechanism may change places."""
    kernel, pieces = solved(1.0), optdp.solve_piecewise(1)
    assert kernel.value < pieces.lower_bound
    mixed = replace(kernel, certificate=pieces.certificate, lower_bound=0.0)
    assert [check.name for check in mixed.verify().failures] == ["lower bound"]
    mixed = replace(pieces, mechanism=kernel.mechanism)
    assert [check.name for check in mixed.verify().failures] == ["family"]
    assert replace(kernel, mechanism=pieces.mechanism, value=pieces.value).verify()  # true: it is one of all mechanisms
    assert replace(
        pieces, certificate=kernel.certificate, lower_bound=kernel.lower_bound
    ).verify()  # true: fewer mechanisms


@settings(max_examples=10)
@given(st.floats(0.2, 3), st.integers(2, 5), st.sampled_from([1.0, 1.5, 2.0]), st.integers(0, 2**32 - 1))
def test_averages_are_bracketed_tightly_and_those_of_unbiased_mechanisms_validly(eps, count, q, seed):
    rng = np.random.default_rng(seed)
    points, chances = np.sort(rng.random(count)).tolist(), rng.dirichlet(np.ones(count)).tolist()
    average = optdp.Average(Power(q), optdp.Prior.of(chances, points))
    free = optdp.solve(optdp.Problem(optdp.LDP(eps), (0, 1), average))
    assert free.verify() and free.gap <= 1e-3
    if q == 2:
        fair = optdp.solve(replace(free.problem, constraints=(optdp.Unbiased(),)))
        assert fair.verify(), str(fair.verify())
        assert free.lower_bound <= fair.value
        assert fair.lower_bound <= optdp.solve_kernel(eps, unbiased=True, level=3).value
        assert free.certificate.bound(fair.problem).value == free.lower_bound


def test_outputs_beyond_the_domain_never_help(solved):
    """The same certificate proves the same bound where outputs may leave the domain, and less is never proven for less."""
    solution = solved(1.0)
    sound = solution.certificate
    for wider in ((0, 1), (-1, 1), (-1e300, 1e300), (0, 1 + 2**-52)):
        assert sound.bound(interval(outputs=wider)).value == solution.lower_bound
        assert sound.bound(interval(1.0, "squared", outputs=wider)).value <= solved(1.0, "squared").value
    assert sound.bound(interval(outputs=(0.25, 0.75))).value >= solution.lower_bound
    assert sound.bound(interval(outputs=(2, 3))).value >= solution.lower_bound
    wide = optdp.solve_kernel(1, outputs=(-1, 3))
    assert wide.problem.outputs == (-1, 3) and wide.verify()
    assert (wide.lower_bound, wide.value) == (solution.lower_bound, solution.value)
    assert "to [-1, 3]" in str(wide)


@settings(max_examples=20)
@given(
    st.floats(-10, 10), st.floats(0.01, 10), st.integers(2, 5), st.integers(0, 2**32 - 1), st.sampled_from([1, 2, 1.5])
)
def test_averages_are_exact_at_points_between_the_grid(a, width, count, seed, q):
    """Points and probabilities are the prior's own, exactly: the value against a sum over the mixed rows in rationals."""
    rng = np.random.default_rng(seed)
    mechanism = optdp.solve_kernel(1, level=3, domain=(a, a + width)).mechanism
    points = np.unique(a + ((a + width) - a) * rng.random(count)).clip(a, a + width).tolist()
    chances = rng.integers(1, 9, len(points)).tolist()
    prior = optdp.Prior(tuple(chances), tuple(points)) if len(points) > 1 else "uniform"
    if prior == "uniform":
        return
    low, high = mechanism.enclose(optdp.Average(Power(q), prior))
    total = Fraction(0)
    span = Fraction(a + width) - Fraction(a)
    for point, p in zip(points, prior.exact, strict=True):
        at = (Fraction(point) - Fraction(a)) / span
        i = min(int(at * 8), 7)
        for row, share in ((i, 1 - (at * 8 - i)), (i + 1, at * 8 - i)):
            for w, y in zip(mechanism.table.weights[row].tolist(), mechanism.outputs, strict=True):
                distance = abs(Fraction(y) - at) * span
                loss = distance ** int(q) if q != 1.5 else Fraction(float(distance) ** 1.5)
                total += p * share * Fraction(w, TOTAL) * loss
    assert low <= high <= low * (1 + 1e-15)
    assert Fraction(low) * Fraction(1 - 1e-12) <= total <= Fraction(high) * Fraction(1 + 1e-12)
    if q != 1.5:
        assert Fraction(low) <= total <= Fraction(high)


def test_certified_minimum_is_the_minimum_of_g(solved):
    """The exact bound agrees with a brute-force minimum of g over a fine grid of outputs."""
    for solution, q in ((solved(1.0), 1), (solved(2.0, "squared"), 2)):
        c = solution.certificate
        x, lam, nu = np.array(c.inputs), np.array(c.weights), np.array(c.masses)
        y = np.linspace(0, 1, 20_001)
        r = lam * np.abs(y[:, None] - x) ** q - nu
        g = r.sum(1) + math.expm1(solution.problem.eps) * np.minimum(r, 0).sum(1)
        brute = (nu.sum() + min(g.min(), 0)) / lam.sum()
        proven = c.bound(solution.problem).value
        assert proven <= brute + 1e-12
        assert proven == pytest.approx(brute, rel=1e-5)


def test_a_free_range_of_outputs_must_really_be_closed_off(solved):
    solution = solved(1.0, None, True)
    certificate = solution.certificate
    assert certificate.reach is not None
    for reach in ((0.4, 0.6), None, (1.0, 0.0), (math.nan, 3.0)):
        with pytest.raises(Refusal):
            replace(certificate, reach=reach).bound(solution.problem)


@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_e_to_the_eps_is_rounded_so_that_the_bound_stays_below(solved, monkeypatch, loss):
    """Too large an E costs tightness, too small a one the proof: with multipliers that rest on it, E must come from above."""
    solution = solved(1.0, loss)
    greedy = replace(solution.certificate, masses=tuple(1.05 * v for v in solution.certificate.masses))
    exact = greedy.bound(solution.problem).value
    assert 0 < exact < solution.lower_bound
    above = enclosures.exp_above
    monkeypatch.setattr(enclosures, "exp_above", lambda eps, bits=128: above(eps, bits) * Fraction(1001, 1000))
    assert greedy.bound(solution.problem).value < exact
    monkeypatch.setattr(enclosures, "exp_above", above)
    monkeypatch.setattr(enclosures, "exp_below", lambda eps, bits=128: Fraction(1))
    assert greedy.bound(solution.problem).value == exact


def test_a_proof_takes_bounded_work(solved):
    """Thousands of inputs and multipliers that prove nothing are bounded; too many, and absurd epsilons, are refused at once."""
    rng = np.random.default_rng(0)
    made = KernelCertificate(tuple(np.sort(rng.random(300)).tolist()), tuple(rng.random(300)), tuple(rng.random(300)))
    assert made.bound(interval(30.0, "squared")).value >= 0
    many = (0.5,) * 5000
    with pytest.raises(Refusal, match="1 to 2048 inputs"):
        KernelCertificate(many, many, many).bound(interval())
    for eps in (31.0, 1e308, optdp.log(10**200)):
        with pytest.raises(Refusal, match="at most 30"):
            solved(1.0).certificate.bound(interval(eps))


# The mechanism --------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(st.integers(2, 6), st.integers(2, 8), st.floats(0.05, 5), st.integers(0, 2**32 - 1))
def test_rounding_is_exactly_private_and_sums_to_one(k, m, eps, seed):
    rng = np.random.default_rng(seed)
    ratio = Fraction(math.exp(eps) * (1 - 1e-12))
    floors = rng.random(m) + 0.01
    rows = floors * np.where(rng.random((k, m)) < 0.5, 1.0, float(ratio) * (1 - 1e-7))
    scale = rows.sum(axis=1).max()  # rows of mass at most 1: lift what is missing evenly towards the cap
    rows, floors = rows / scale, floors / scale
    room = floors * float(ratio) * (1 - 1e-7) - rows
    need = 1 - rows.sum(axis=1)
    if (room.sum(axis=1) < need + 1e-9).any():
        return
    rows = rows + room * (need / room.sum(axis=1))[:, None]
    table = Table(private_weights(rows, floors, ratio))
    assert table.exact_ratio() <= ratio
    assert all(sum(row) == TOTAL for row in table.weights.tolist())
    assert np.abs(table.rows - rows).max() < 1e-6


def brute_worst(mechanism, loss):
    x = np.union1d(np.linspace(mechanism.domain.lower, mechanism.domain.upper, 20_001), mechanism._kinks())
    return float(mechanism.expected_loss(x, loss).max())


@pytest.mark.parametrize("loss", ["abs", "squared", Power(1.5), Power(3)])
def test_enclosed_worst_case_is_that_of_a_fine_grid(solved, loss):
    for solution in (solved(1.0), solved(2.0, "squared")):
        low, high = solution.mechanism.enclose(optdp.WorstCase(loss))
        brute = brute_worst(solution.mechanism, loss)
        assert low <= high <= low * (1 + 2e-7)
        assert brute <= high * (1 + 1e-12)
        assert brute == pytest.approx(high, rel=1e-6)


@pytest.mark.parametrize("q", [1, 2, 1.5])
def test_random_tables_have_the_worst_case_that_is_claimed(q):
    rng = np.random.default_rng(5)
    for _ in range(5):
        k, m = rng.integers(2, 6), rng.integers(2, 7)
        weights = rng.dirichlet(np.ones(m), size=k)
        whole = np.floor(weights * 2**62).astype(np.int64)
        whole[:, 0] += [2**62 - sum(row) for row in whole.tolist()]
        inputs = (0.0, *np.sort(rng.random(k - 2)).tolist(), 1.0)
        mechanism = KernelMechanism(optdp.Interval(0, 1), inputs, tuple(np.sort(rng.random(m)).tolist()), Table(whole))
        low, high = mechanism.enclose(optdp.WorstCase(Power(q)))
        brute = brute_worst(mechanism, Power(q))
        assert brute <= high * (1 + 1e-12)
        assert brute >= low * (1 - 1e-5)


def test_sampling_follows_the_probabilities_at_grid_points_and_between(solved):
    mechanism = solved(1.0).mechanism
    for x in (0.0, 0.3, 0.71, 1.0):
        drawn = mechanism.randomize(np.full(200_000, x), 11)
        names, counts = np.unique(drawn, return_counts=True)
        expected = mechanism.probability(names, x)
        assert expected.sum() == pytest.approx(1, abs=1e-12)
        assert chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-4


def test_a_table_draws_from_the_one_alias_table():
    rng = np.random.default_rng(3)
    for width in (1, 2, 3, 5, 8, 33):
        weights = np.array([rng.multinomial(1000, rng.dirichlet(np.ones(width))) for _ in range(3)], dtype=object) * (
            2**62 // 1000
        )
        weights[:, 0] += 2**62 - weights.sum(axis=1)
        alias = Table(weights.astype(np.int64))._alias
        assert alias.single
        capacity = 2 ** (62 - alias.bits)
        for i in range(3):
            total = [0] * 2**alias.bits
            for cell in range(2**alias.bits):
                kept = int(alias.high[i * 2**alias.bits + cell]) * 2**62 + int(alias.low[i * 2**alias.bits + cell])
                total[cell] += kept
                total[int(alias.other[i * 2**alias.bits + cell])] += capacity - kept
            assert total[:width] == weights[i].tolist()
            assert not any(total[width:])


def test_a_mechanism_says_what_it_guarantees(solved):
    mechanism = solved(1.0).mechanism
    ratio = mechanism.table.exact_ratio()
    assert mechanism.guarantee() == optdp.LDP(optdp.log(ratio))
    assert mechanism.satisfies(optdp.LDP(1.0)) and mechanism.satisfies(optdp.LDP(0.9)) is False
    assert mechanism.satisfies(optdp.ApproxDP(1.0, sensitivity=0.1))
    reveals = KernelMechanism(optdp.Interval(), (0.0, 1.0), (0.0, 1.0), Table(np.array([[TOTAL, 0], [0, TOTAL]])))
    assert reveals.guarantee() is None and "no eps-LDP" in repr(reveals)
    assert not any(check.passed for check in reveals.check_privacy(optdp.LDP(30.0)) if check.name == "privacy")
    with pytest.raises(ValueError, match="guarantee"):
        reveals.privacy()


@pytest.mark.parametrize("domain", [(0.1, 0.7), (1e16, 1e16 + 4), (-3e-9, 7.7e5)])
def test_outputs_never_leave_the_domain_by_rounding(domain):
    solution = optdp.solve_kernel(1, domain=domain, level=3)
    assert solution.verify(), str(solution.verify())
    low, high = solution.mechanism.support()
    assert domain[0] <= low < high <= domain[1]


def test_a_file_is_read_field_by_field(solved):
    data = json.loads(json.dumps(solved(1.0).mechanism.to_dict()))
    row = data["weights"][0]
    for change, words in (
        ({"inputs": [0.0, 2.0]}, r"mechanism\.inputs\[1\] = 2\.0"),
        ({"inputs": data["inputs"][::-1]}, "increase from 0 to 1"),
        ({"outputs": [math.inf] * 3}, r"mechanism\.outputs\[0\]"),
        ({"outputs": "all"}, "mechanism.outputs"),
        ({"weights": [row]}, "mechanism.weights has 1 entries"),
        ({"weights": [row, row[1:]]}, r"mechanism\.weights\.1"),
        ({"weights": [row, [*row[1:], 0.5]]}, r"mechanism\.weights\.1"),
        ({"weights": [row, [*row[1:], -1]]}, r"mechanism\.weights\.1"),
        ({"weights": [row, [*row[1:], 2**70]]}, r"mechanism\.weights\.1"),
        ({"weights": [[*row[1:], 0]] * 17}, r"sum to 2\^62"),
        ({"weights": [[0] * 19_000] * 4000}, "at most"),
        ({"weights": 3}, "mechanism.weights"),
        ({"prior": None}, "unknown field 'prior'"),
        ({"domain": optdp.Circle(1).to_dict()}, "kernel mechanism needs an interval"),
    ):
        with pytest.raises(ValueError, match=words):
            optdp.Mechanism.from_dict({**data, **change})
    del data["outputs"]
    with pytest.raises(ValueError, match=r"mechanism\.outputs is missing"):
        optdp.Mechanism.from_dict(data)


def test_means_and_losses_agree_with_sampling(solved):
    mechanism = solved(2.0, "squared").mechanism
    x = np.full(400_000, 0.37)
    drawn = mechanism.randomize(x, 2)
    assert drawn.mean() == pytest.approx(float(mechanism.mean(0.37)), abs=4e-3)
    assert np.square(drawn - 0.37).mean() == pytest.approx(float(mechanism.expected_loss(0.37, "squared")), rel=2e-2)
    assert mechanism.privacy() == pytest.approx(2, abs=1e-6)
    assert mechanism.privacy() <= 2


def test_tampering_is_noticed(solved):
    solution = solved(1.0)
    data = solution.mechanism.to_dict()
    weights = [list(row) for row in data["weights"]]
    low = min(range(len(weights[0])), key=lambda j: weights[0][j])
    moved = weights[0][low] // 2
    weights[0][low] -= moved
    weights[0][(low + 1) % len(weights[0])] += moved
    worse = optdp.Mechanism.from_dict(data | {"weights": weights})
    assert not replace(solution, mechanism=worse).verify()
    biased = solved(1.0, None, True)
    data = biased.mechanism.to_dict()
    weights = [list(row) for row in data["weights"]]
    weights[3][0] += 1
    weights[3][1] -= 1
    broken = replace(biased, mechanism=optdp.Mechanism.from_dict({**data, "weights": weights}))
    assert "unbiased" in [check.name for check in broken.verify().failures]
    assert not replace(solution, value=solution.value * (1 - 1e-9)).verify()


def test_solutions_survive_a_file(solved, tmp_path):
    for name, solution in (("abs", solved(1.0)), ("unbiased", solved(1.0, None, True))):
        solution.save(tmp_path / name)
        loaded = optdp.Solution.load(tmp_path / name)
        assert loaded.verify()
        assert json.dumps(loaded.to_dict()) == json.dumps(solution.to_dict())
        assert loaded.mechanism == solution.mechanism
        x = np.linspace(*((0, 1) if name == "abs" else (-1, 1)), 100)
        assert (loaded.mechanism.randomize(x, 1) == solution.mechanism.randomize(x, 1)).all()


def test_simplified_mechanisms_use_fewer_outputs(solved):
    plain = optdp.solve_kernel(1, simplify=False)
    assert len(solved(1.0).mechanism.outputs) < len(plain.mechanism.outputs)
    assert solved(1.0).gap <= 1e-3


# Priors, circles, errors ----------------------------------------------------------------------------------------------


def test_a_prior_on_two_points_has_the_bayes_risk_of_randomised_response():
    """Two equally likely inputs: the posterior odds are at most E, so the squared error is at least that of a coin E
    : 1.
    """
    for eps in (0.5, 1.0, 3.0):
        e = math.exp(eps)
        solution = optdp.solve_kernel(eps, "squared", prior=([0.0, 1.0], [0.5, 0.5]))
        assert solution.verify()
        assert solution.value == pytest.approx(e / (1 + e) ** 2, rel=1e-6)
        assert solution.gap < 1e-4


def test_an_average_is_below_the_worst_case():
    points = [0.1, 0.4, 0.9]
    average = optdp.solve_kernel(1, prior=(points, [0.2, 0.5, 0.3]))
    assert average.verify() and average.gap < 1e-6
    assert optdp.solve(optdp.Problem(optdp.LDP(1), (0, 1), optdp.Average("abs", optdp.Prior.of(dict(zip(points, [0.2, 0.5, 0.3],
                       strict=True)))))).value == average.value  # fmt: skip
    assert average.value < optdp.solve_kernel(1).value
    losses = average.mechanism.expected_loss(np.array(points), "abs")
    assert float(losses @ [0.2, 0.5, 0.3]) == pytest.approx(average.value, rel=1e-12)


@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_on_a_circle_the_common_floor_is_optimal(loss):
    circle = optdp.Circle(2 * math.pi)
    solution = optdp.solve_kernel(1, loss, domain=circle)
    assert solution.value == optdp.solve_piecewise(1, 3, loss, domain=circle).value
    assert solution.verify()
    assert solution.gap < 1e-9


def test_rotation_symmetry_argument_against_a_linear_program_on_a_discrete_circle():
    """All kernels on n points of a circle: the optimum is that of a common floor, sum_d L(d) f(d) with f in {c, E c}."""
    from scipy.optimize import linprog

    n, e = 12, math.e
    distance = np.minimum(np.arange(n), n - np.arange(n)) / n
    free = optdp.solve_kernel(
        1, distance[np.abs(np.subtract.outer(np.arange(n), np.arange(n)))], domain=optdp.Alphabet(n)
    )
    ratio = np.vstack([np.eye(n)[i] - e * np.eye(n)[j] for i in range(n) for j in range(n) if i != j])
    common = linprog(distance, A_ub=ratio, b_ub=np.zeros(len(ratio)), A_eq=np.ones((1, n)), b_eq=[1]).fun
    assert free.lower_bound <= common * (1 + 1e-9)
    assert free.value == pytest.approx(common, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"eps": 0}, ValueError, "eps"),
        ({"eps": math.nan}, ValueError, "eps"),
        ({"eps": 1, "loss": "cubic"}, ValueError, "loss"),
        ({"eps": 1, "loss": optdp.Power(0.5)}, ValueError, "q >= 1"),
        ({"eps": 1, "loss": lambda d: d}, ValueError, "loss"),
        ({"eps": 1, "loss": "abs", "unbiased": True}, ValueError, "variance"),
        ({"eps": 1, "unbiased": 1}, TypeError, "unbiased"),
        ({"eps": 1, "unbiased": True, "domain": (-1, 1), "outputs": (-1, 1)}, ValueError, "outputs"),
        ({"eps": 1, "outputs": (2, 3)}, ValueError, "outputs"),
        ({"eps": 1, "outputs": 3}, TypeError, "outputs"),
        ({"eps": 1, "rtol": 0}, ValueError, "rtol"),
        ({"eps": 1, "time_limit": -1}, ValueError, "time_limit"),
        ({"eps": 1, "level": 99}, ValueError, "level"),
        ({"eps": 1, "backend": "magic"}, ValueError, "backend"),
        ({"eps": 1, "prior": [0.5, 0.5]}, TypeError, "prior"),
        ({"eps": 1, "prior": ([0, 1], [0.5, 0.6])}, ValueError, "prior"),
        ({"eps": 1, "prior": ([0, 1], [-0.5, 1.5])}, ValueError, "prior"),
        ({"eps": 1, "prior": ([0, 2], [0.5, 0.5])}, ValueError, "prior points"),
        ({"eps": 1, "prior": ([0, 1], [1.0, 0.0])}, ValueError, "prior"),
        ({"eps": 1, "prior": "uniform"}, ValueError, "prior"),
        ({"eps": 1, "domain": optdp.Circle(1), "unbiased": True}, ValueError, "unbiased = True .*Circle"),
        ({"eps": 1, "domain": optdp.Circle(1), "outputs": (0, 1)}, ValueError, r"outputs = \(0, 1\) .*Circle"),
        ({"eps": 1, "domain": optdp.Circle(1), "level": 4}, ValueError, "level = 4 .*Circle"),
    ],
)
def test_bad_input_is_named(arguments, error, words):
    with pytest.raises(error, match=words):
        optdp.solve_kernel(**arguments)


def test_a_solve_that_may_not_refine_still_returns_a_valid_bracket():
    solution = optdp.solve_kernel(4, rtol=1e-6, time_limit=0.5)
    assert solution.status in (optdp.Status.TIME_LIMIT, optdp.Status.GAP)
    assert solution.gap > 1e-6
    assert solution.verify()


def test_certificates_of_all_kinds_round_trip(solved):
    average = optdp.solve_kernel(1, prior=([0.1, 0.9], [0.5, 0.5]))
    for solution in (solved(1.0), solved(1.0, "squared"), solved(1.0, None, True), average):
        data = json.loads(json.dumps(solution.certificate.to_dict()))
        assert not {"eps", "loss", "width", "bound", "prior", "outputs"} & set(data)
        assert Certificate.read(Fields(data, "certificate")) == solution.certificate
    assert average.certificate.inputs == average.certificate.weights == ()


def test_solutions_are_pickled_and_models_are_built_when_asked_for(solved, tmp_path):
    for solution in (solved(1.0), solved(1.0, None, True), optdp.solve_kernel(1, prior=([0.1, 0.9], [0.5, 0.5]))):
        again = pickle.loads(pickle.dumps(solution))
        assert again == solution and again.verify()
        model = again.program.model
        assert model.blocks["mass"] == slice(0, len(again.certificate.masses))
        again.program.write(tmp_path / "model.mps")
        optimum = optdp.solvers.read(tmp_path / "model.mps").solve().objective
        assert optimum == pytest.approx(model.solve().objective, rel=1e-7)
        assert optimum * again.problem.domain.width**again.problem.loss.exponent == pytest.approx(again.value, rel=0.05)


def test_a_solver_object_solves_the_plain_programs():
    reference = optdp.solve_kernel(1, level=3, rtol=1e-6, simplify=False)
    problem = reference.problem
    found = optdp.solve(problem, 1e-6, solver=optdp.solvers.Highs(method="ipm"), level=3, simplify=False)
    assert found.verify() and found.program.solver == "HiGHS ipm"
    assert found.lower_bound == pytest.approx(reference.lower_bound, rel=1e-6)
    with pytest.raises(ValueError, match="solver is not allowed with method = 'columns'"):
        optdp.solve(problem, method="columns", solver=optdp.solvers.Highs())


def test_solve_says_what_it_would_need():
    for problem, words in (
        (optdp.Problem(optdp.LDP(1), (0, 1), optdp.Huber(0.1)), "loss = .*q >= 1"),
        (optdp.Problem(optdp.LDP(1), (0, 1), optdp.At("abs", 0)), "worst case or average"),
        (optdp.Problem(optdp.LDP(31), (0, 1), "abs"), r"eps in \(0, 30\]"),
        (interval(1.0, "abs", unbiased=0), "variance"),
        (interval(1.0, "squared", unbiased=0, outputs=(0, 1)), "beyond both ends"),
    ):
        with pytest.raises(ValueError, match=f"kernel: .*{words}"):
            optdp.solve(problem)


@pytest.mark.parametrize(
    ("eps", "power", "unbiased"), [(1.0, 1.0, False), (6.0, 1.0, False), (4.0, 2.0, False), (2.0, 2.0, True)]
)
@pytest.mark.parametrize("between", [1, 4])
def test_the_structured_interior_point_agrees_with_the_dense_program(eps, power, unbiased, between):
    x, y = np.linspace(0, 1, 9), np.linspace(-0.75, 1.75, 41) if unbiased else np.linspace(0, 1, 17)
    grid = lp.Grid(np.exp(eps), power, x, np.linspace(0, 1, 8 * between + 1), unbiased)
    dense = lp.solve_dense(grid, y)
    for symmetric in (True, False):
        found = solve_interior(replace(grid, symmetric=symmetric), y[y <= 0.5] if symmetric else y)
        assert found.value == pytest.approx(dense.value, rel=1e-7)
        # A feasible kernel, and prices that prove its value over these outputs.
        assert np.abs(found.rows.sum(axis=1) - 1).max() < 1e-7
        assert (found.rows >= found.floors * (1 - 1e-12)).all()
        assert (found.rows <= np.exp(eps) * found.floors * (1 + 1e-12)).all()
        assert found.dual.bound(float(found.dual.value(y).min())) == pytest.approx(dense.value, rel=1e-6)


def test_the_interior_point_says_when_time_is_up():
    grid = lp.Grid(np.e, 1.0, np.linspace(0, 1, 9), np.linspace(0, 1, 9))
    with pytest.raises(lp.SolverFailure) as failure:
        solve_interior(grid, np.linspace(0, 0.5, 5), time_limit=0.0)
    assert failure.value.status is LinearStatus.TIME_LIMIT


@pytest.mark.soak
@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_the_bracket_closes_at_large_epsilon(loss):
    found = optdp.solve_kernel(6, loss, time_limit=600)
    assert found.gap <= 1e-3 and found.verify()

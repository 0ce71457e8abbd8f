"""`solve_lip`: the optimum under local information privacy, its certificate, and the kernel that attains it."""

import dataclasses
import json
import math
import pickle
from fractions import Fraction
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import optdp
from optdp.closed_forms import lip as forms
from optdp.design import lip
from optdp.design.lip import posteriors as lp
from optdp.design.lip import pricing as pricing
from optdp.exact import enclosures
from optdp.exact.fields import FieldError
from optdp.exact.numbers import digits
from optdp.mechanisms.lip import UNIT, LIPMechanism
from optdp.problem.tasks import Aggregate
from optdp.solvers.conic import TIGHT, Clarabel, as_cvxpy
from optdp.solvers.lp import Highs, read

CASES = [(task, notion) for task in ("sum", "histogram") for notion in ("lip", "ldp")]


@st.composite
def priors(draw, most=8, least=2):
    """Priors of all shapes: flat, skewed by orders of magnitude, with ties."""
    d = draw(st.integers(least, most))
    kind = draw(st.sampled_from(["uniform", "random", "skewed", "ties"]))
    if kind == "uniform":
        return [1 / d] * d
    if kind == "ties":
        raw = draw(st.lists(st.sampled_from([1, 2, 5]), min_size=d, max_size=d))
    elif kind == "random":
        raw = draw(st.lists(st.floats(0.05, 1), min_size=d, max_size=d))
    else:
        raw = [10.0**-e for e in draw(st.lists(st.floats(0, 5), min_size=d, max_size=d))]
    return [r / sum(raw) for r in raw]


epsilons = st.floats(math.log(0.05), math.log(8)).map(math.exp)


# --- binary, closed forms


def test_the_papers_example_is_not_lip_and_its_value_is_not_attainable():
    # Context-aware LIP, Example 1 and Theorem 2 at prior (0.9, 0.1): 0.054038 claimed; 0.079138 is the optimum.
    best = optdp.solve_lip([0.9, 0.1], 1.0, task="survey")
    assert best.value == pytest.approx(0.079138, abs=5e-7)
    assert best.gap <= 1e-12
    assert best.verify()
    claimed = optdp.solve_lip([0.9, 0.1], 1.0, task="survey", notion="lip-lower")
    assert claimed.value == pytest.approx(0.054038, abs=5e-7)
    assert claimed.verify()
    refused = dataclasses.replace(claimed, problem=best.problem).verify()
    failure = refused.failures[0]
    assert failure.name == "privacy"
    assert "highest posterior/prior 6.689" in failure.detail
    assert "at category 1, output 1 > e^1" in failure.detail


def test_where_the_papers_form_holds_it_is_optimal():
    best = optdp.solve_lip([0.7, 0.3], 1.0, task="survey")
    assert best.value == pytest.approx(0.126089, abs=5e-7)
    assert best.value == pytest.approx(0.21 * (2 / math.e - 1 / math.e**2), rel=1e-12)


@given(p=st.floats(1e-6, 0.5), eps=epsilons, notion=st.sampled_from(lip.NOTIONS))
def test_binary_agrees_with_the_closed_form_and_with_enumeration(p, eps, notion):
    solution = optdp.solve_lip([1 - p, p], eps, task="survey", notion=notion)
    assert solution.verify()
    assert solution.gap <= 1e-9
    ratio = math.exp(eps)
    low, high = {
        "lip": (p / ratio, min(ratio * p, 1 - (1 - p) / ratio)),
        "lip-lower": (p / ratio, 1 - (1 - p) / ratio),
        "ldp": (p / (p + ratio * (1 - p)), ratio * p / (ratio * p + 1 - p)),
    }[notion]
    assert solution.value == pytest.approx(p * (1 - p) - (high - p) * (p - low), rel=1e-7, abs=1e-14)
    other = optdp.solve_lip([1 - p, p], eps, task="survey", notion=notion, backend="enumeration")
    assert other.value == pytest.approx(solution.value, rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(
    "p, eps", [(Fraction(1, 10), 1.0), (Fraction(3, 10), 1.0), (Fraction(1, 2), 0.3), (Fraction(1, 100), 5.0)]
)
@pytest.mark.parametrize("notion", lip.NOTIONS)
def test_closed_form_expression(p, eps, notion):
    solution = optdp.solve_lip([1 - p, p], eps, task="survey", notion=notion)
    (symbol,) = solution.closed_form.free_symbols
    symbolic = float(solution.closed_form.subs(symbol, eps).evalf(30))
    assert symbolic == pytest.approx(solution.value, rel=1e-11)
    counts = optdp.solve_lip([1 - p, p], eps, task="histogram", notion=notion)
    assert float(counts.closed_form.subs(symbol, eps).evalf(30)) == pytest.approx(counts.value, rel=1e-11)


def test_both_regimes_and_their_border_by_sympy():
    import sympy as sp

    eps, p = sp.Symbol("eps", positive=True), sp.Symbol("p", positive=True)
    ratio = sp.exp(eps)
    (rare, _), (common, _) = forms.binary_value(p).args
    assert sp.simplify(rare - (p * (1 - p) - p**2 * (ratio - 1) ** 2 / ratio)) == 0
    assert sp.simplify(common - p * (1 - p) * (2 / ratio - 1 / ratio**2)) == 0
    border = 1 / (1 + ratio)
    assert sp.simplify((rare - common).subs(p, border)) == 0
    assert sp.simplify(forms.simplex_is_lip(p).rhs - border) == 0
    # Below the border the upper bound costs something.
    assert sp.simplify(rare - common - p * (1 - 1 / ratio) ** 2 * (1 - (1 + ratio) * p)) == 0


@given(prior=priors(), eps=epsilons, task=st.sampled_from(["sum", "histogram"]))
def test_lower_only_optimum_is_the_papers_kernel(prior, eps, task):
    solution = optdp.solve_lip(prior, eps, task=task, notion="lip-lower")
    assert solution.verify()
    assert solution.gap <= 1e-9
    p, ratio = np.array(prior), math.exp(eps)
    kernel = np.tile(p[:, None] / ratio, (1, len(p))) + (1 - 1 / ratio) * np.eye(len(p))  # K(j|i), row j
    made = solution.mechanism.probabilities  # its rows may be called by other categories' names
    assert made[np.argsort(np.argmax(made, axis=1))] == pytest.approx(kernel, rel=1e-9, abs=1e-15)
    if task == "histogram" or len(p) == 2:
        assert sorted(solution.mechanism.labels) == list(solution.mechanism.categories)
    # It keeps the two-sided promise exactly where the smallest prior is at least 1/(1 + E), and is then optimal for it.
    border = 1 / (1 + ratio)
    if abs(min(prior) - border) > 1e-6 * border:
        keeps = all(
            c.passed for c in solution.mechanism.check_privacy(optdp.LIP(eps * (1 + 1e-12), solution.mechanism.prior))
        )
        assert keeps == (min(prior) >= border)
        two_sided = optdp.solve_lip(prior, eps, task=task)
        if keeps:
            assert two_sided.value == pytest.approx(solution.value, rel=1e-8)
        assert two_sided.value >= solution.value * (1 - 1e-8)


# --- enumeration, columns, cvxpy


@settings(max_examples=40)
@given(prior=priors(), eps=epsilons, case=st.sampled_from(CASES), seed=st.integers(0, 10**6))
def test_columns_equal_enumeration(prior, eps, case, seed):
    task, notion = case
    values = np.random.default_rng(seed).normal(size=len(prior)) if task == "sum" and seed % 2 else None
    every = optdp.solve_lip(prior, eps, task=task, notion=notion, values=values, backend="enumeration")
    some = optdp.solve_lip(prior, eps, task=task, notion=notion, values=values, backend="columns", rtol=1e-10)
    assert some.value == pytest.approx(every.value, rel=1e-9)
    for solution in (every, some):
        assert solution.verify()
        assert len(solution.mechanism.kernel) <= len(prior)
        assert solution.gap <= 1e-7


@pytest.mark.filterwarnings(
    "ignore:Solution may be inaccurate"
)  # at tolerances of 1e-12; the assertions say how accurate
@settings(max_examples=8)
@given(prior=priors(most=6), eps=epsilons, case=st.sampled_from([*CASES, ("sum", "lip-lower")]))
def test_cvxpy_model_agrees(prior, eps, case):
    task, notion = case
    ours = optdp.solve_lip(prior, eps, task=task, notion=notion)
    gain = as_cvxpy(ours.program.model).solve(solver="CLARABEL", **TIGHT)
    assert ours.program.model.solve().objective == pytest.approx(gain, abs=1e-9 * max(gain, 1))
    p = np.array(prior)
    x = np.arange(len(p)) - p @ np.arange(len(p))
    spread = float(p @ x**2) if task == "sum" else 1.0
    assert spread - gain == pytest.approx(ours.value, abs=1e-7 * spread)
    solved = optdp.solve_lip(prior, eps, task=task, notion=notion, backend="cvxpy")
    assert solved.value == pytest.approx(ours.value, abs=1e-7 * spread)
    assert solved.verify()


@settings(max_examples=30)
@given(prior=priors(), eps=epsilons, task=st.sampled_from(["sum", "histogram"]))
def test_lip_is_never_above_ldp_and_within_twice_eps(prior, eps, task):
    lip_, ldp = (optdp.solve_lip(prior, eps, task=task, notion=notion) for notion in ("lip", "ldp"))
    assert lip_.lower_bound <= ldp.value
    assert lip_.value <= ldp.value * (1 + 1e-9)
    assert lip_.mechanism.epsilon() <= eps
    assert lip_.mechanism.epsilon("ldp") <= 2 * eps  # eps-LIP implies 2 eps-LDP
    assert ldp.mechanism.epsilon("ldp") <= eps
    assert ldp.mechanism.epsilon("lip") <= eps  # eps-LDP implies eps-LIP
    twice = optdp.solve_lip(prior, 2 * eps, task=task, notion="ldp")
    assert twice.lower_bound <= lip_.value  # hence LDP at 2 eps can do whatever LIP does at eps


def _mutual_information(mechanism):
    joint = mechanism.probabilities * mechanism.prior.probabilities
    ratio = joint / (joint.sum(axis=1, keepdims=True) * mechanism.prior.probabilities)
    return float(np.sum(joint * np.log(ratio)))


@settings(max_examples=20)
@given(prior=priors(), eps=epsilons)
def test_lip_bounds_mutual_information(prior, eps):
    assert _mutual_information(optdp.solve_lip(prior, eps).mechanism) <= eps


@settings(max_examples=20)
@given(prior=priors(), eps=st.floats(0.1, 3), task=st.sampled_from(["sum", "histogram"]))
def test_error_falls_with_eps_and_no_random_mechanism_beats_the_bound(prior, eps, task):
    tight, loose = (optdp.solve_lip(prior, e, task=task) for e in (eps, 1.5 * eps))
    assert loose.lower_bound <= tight.value
    p, ratio = np.array(prior), math.exp(eps)
    rng = np.random.default_rng(0)
    # Random kernels, mixed with the constant one until they keep the promise.
    for _ in range(20):
        kernel = rng.dirichlet(np.full(3, 0.3), size=len(p)).T
        output = kernel @ p
        s = kernel / output[:, None]
        share = min(
            1.0,
            float(
                np.min(
                    np.where(
                        s > 1, (ratio - 1) / np.maximum(s - 1, 1e-300), (1 - 1 / ratio) / np.maximum(1 - s, 1e-300)
                    )
                )
            ),
        )
        posterior = p * (share * s + 1 - share)
        x = np.arange(len(p)) - p @ np.arange(len(p))
        error = (
            (p @ x**2 - output @ (posterior @ x) ** 2) if task == "sum" else 1 - output @ np.sum(posterior**2, axis=1)
        )
        assert error >= tight.lower_bound - 1e-12


@given(prior=priors(most=7), eps=epsilons)
def test_pricing_is_exact(prior, eps):
    # The greatest phi - nu.r over Q, against all vertices, at random prices.
    p, ratio = np.array(prior), math.exp(eps)
    x = np.arange(len(p)) - p @ np.arange(len(p))
    rng = np.random.default_rng(0)
    weights = optdp.Prior.of(prior).weights
    for kind, vertices in ((pricing.BoxSum, pricing.box_vertices), (pricing.ConeSum, pricing.cone_vertices)):
        pricer, rows = kind(p, x, ratio), vertices(p, ratio)
        for _ in range(5):
            nu = rng.normal(size=len(p)) + x**2 * rng.random()
            expected = float((pricer.gain(rows) - rows @ nu).max())
            found = pricer.price(nu, 1e-12)
            assert found.excess >= expected - 1e-9
            assert max(found.reduced.max(initial=-np.inf), 0.0) == pytest.approx(max(expected, 0.0), abs=1e-8)
    for kind, vertices in (
        (pricing.BoxHistogram, pricing.box_vertices),
        (pricing.ConeHistogram, pricing.cone_vertices),
    ):
        pricer, rows = kind(p, ratio, weights), vertices(p, ratio)
        nu = rng.normal(size=len(p)) / 10
        expected = float((pricer.gain(rows) - rows @ nu).max())
        found = pricer.price(nu, 1e-12)
        if kind is pricing.ConeHistogram:
            expected = max(expected, float(pricer.gain(p[None])[0] - p @ nu))  # the prior itself is visited too
            assert expected - 1e-12 <= found.excess <= max(1.1 * expected, expected + 1e-12) + 1e-12
            assert max(found.reduced.max(initial=-np.inf), 0.0) >= expected / 1.1 - 1e-12
        else:
            assert found.excess == pytest.approx(expected, abs=1e-9)


# --- certificates


@settings(max_examples=40)
@given(prior=priors(most=6), eps=epsilons, case=st.sampled_from(CASES), seed=st.integers(0, 10**6))
def test_any_dual_prices_give_a_valid_bound(prior, eps, case, seed):
    task, notion = case
    rng = np.random.default_rng(seed)
    best = optdp.solve_lip(prior, eps, task=task, notion=notion)
    certificate = best.certificate
    assume(certificate.nu)  # one-sided LIP may prove more: it has none
    nu = np.array(certificate.nu) + rng.normal(size=len(prior)) * rng.choice([1e-6, 1e-3, 1.0])
    shuffled = dataclasses.replace(certificate, nu=tuple(nu.tolist()))
    assert shuffled.bound(best.problem).value <= best.value
    coarse = dataclasses.replace(certificate, knots=certificate.knots[::3])
    assert coarse.bound(best.problem).value <= best.value


@pytest.mark.parametrize("task, notion", [*CASES, ("sum", "lip-lower"), ("histogram", "lip-lower")])
def test_a_bound_that_is_too_high_is_refused(task, notion):
    solution = optdp.solve_lip([0.5, 0.3, 0.15, 0.05], 1.0, task=task, notion=notion)
    assert solution.verify()
    raised = dataclasses.replace(solution, lower_bound=solution.value * (1 + 1e-9)).verify()
    assert {c.name for c in raised.failures} == {"lower bound", "bracket"}
    lower = dataclasses.replace(solution, value=solution.value * (1 - 1e-9))
    assert {c.name for c in lower.verify().failures} >= {"value"}


def test_chord_bound_is_the_closed_form():
    rng = np.random.default_rng(3)
    p = rng.dirichlet(np.ones(83))
    solution = optdp.solve_lip(p, 1.0, task="histogram")
    exact = np.array([float(q) for q in solution.mechanism.prior.exact])
    lo, hi = exact / math.e, exact * math.e
    assert solution.lower_bound == pytest.approx(1 - np.sum(exact**2 + (hi - exact) * (exact - lo)), rel=1e-12)
    assert solution.gap <= 1e-6
    assert solution.status is optdp.Status.OPTIMAL
    assert solution.verify()


# --- many categories


@pytest.mark.parametrize("shape", ["uniform", "zipf", "random"])
@pytest.mark.parametrize("task", ["sum", "histogram"])
def test_83_categories(shape, task):
    d = 83
    p = {
        "uniform": np.ones(d),
        "zipf": 1 / np.arange(1, d + 1),
        "random": np.random.default_rng(1).dirichlet(np.ones(d)),
    }[shape]
    solution = optdp.solve_lip(p / p.sum(), 1.0, task=task)
    assert solution.gap <= 1e-6
    assert len(solution.mechanism.kernel) <= d
    assert solution.verify()


def test_uniform_histogram_has_the_symmetric_value():
    # All vertices are permutations of one: k high, one between, the rest low.
    d, ratio = 20, math.e
    lo, hi = 1 / (d * ratio), ratio / d
    k = int((1 - d * lo) // (hi - lo))
    rest = 1 - d * lo - k * (hi - lo)
    error = 1 - (k * hi**2 + (lo + rest) ** 2 + (d - k - 1) * lo**2)
    assert optdp.solve_lip([1 / d] * d, 1.0, task="histogram").value == pytest.approx(error, rel=1e-12)


def test_a_time_limit_gives_a_valid_wider_bracket():
    p = np.random.default_rng(2).dirichlet(np.ones(120))
    solution = optdp.solve_lip(p, 1.0, time_limit=1e-3)
    assert solution.status is optdp.Status.TIME_LIMIT
    assert solution.gap > 1e-6
    assert solution.verify()
    full = optdp.solve_lip(p, 1.0)
    assert solution.lower_bound <= full.value and full.lower_bound <= solution.value


def test_prices_of_the_linear_program_are_those_of_highs():
    p = np.array([0.5, 0.3, 0.2])
    rows = pricing.box_vertices(p, math.e)
    gains = np.sum(rows**2, axis=1)
    found = lp.enumerate_all(p, math.e, rows, gains)
    assert np.all(rows @ found.nu >= gains - 1e-9)
    assert found.nu @ p == pytest.approx(found.objective, abs=1e-9)


# --- the kernel


@settings(max_examples=25)
@given(prior=priors(), eps=epsilons, case=st.sampled_from([*CASES, ("sum", "lip-lower")]))
def test_kernel_is_exact(prior, eps, case):
    task, notion = case
    mechanism = optdp.solve_lip(prior, eps, task=task, notion=notion).mechanism
    for i in range(len(prior)):
        assert sum(row[i] for row in mechanism.kernel) == UNIT
    assert sum(mechanism.exact_output) == 1
    # Bayes in rationals: the ratios that check_privacy tests.
    p = mechanism.prior.exact
    ratios = [
        Fraction(k, UNIT) / w for row, w in zip(mechanism.kernel, mechanism.exact_output, strict=True) for k in row
    ]
    for row, w in zip(mechanism.kernel, mechanism.exact_output, strict=True):
        assert sum(q * Fraction(k, UNIT) for q, k in zip(p, row, strict=True)) == w
    assert mechanism.posteriors.sum(axis=1) == pytest.approx(1, abs=1e-12)
    assert mechanism.output @ mechanism.posteriors == pytest.approx(np.array(prior), abs=1e-12)
    if notion == "lip":
        assert max(ratios) <= Fraction(math.exp(eps)) * (1 + Fraction(1, 10**14))
        assert max(max(ratios), 1 / min(ratios)) > Fraction(math.exp(eps)) * (1 - Fraction(1, 10**6))
        told = mechanism.check_privacy(mechanism.guarantee())[0].detail
        for end, what in ((min(ratios), "lowest"), (max(ratios), "highest")):  # where it is said to be attained it is
            places = [
                mechanism._pair(k % len(prior), k // len(prior)) for k, ratio in enumerate(ratios) if ratio == end
            ]
            assert any(f"{what} posterior/prior {digits(end)}{place} " in told for place in places)
    loaded = optdp.Mechanism.from_dict(json.loads(json.dumps(mechanism.to_dict())))
    assert loaded == mechanism


def test_solution_round_trip(tmp_path):
    for task, notion in [*CASES, ("sum", "lip-lower")]:
        solution = optdp.solve_lip({"a": 0.5, "b": 0.3, "c": 0.2, "z": 0.0}, 1.0, task=task, notion=notion,
                                   values={"a": 1, "b": 2.5, "c": -1} if task == "sum" else None)  # fmt: skip
        solution.save(tmp_path / "s.json")
        loaded = optdp.Solution.load(tmp_path / "s.json")
        assert loaded.verify()
        assert loaded.value == solution.value and loaded.mechanism == solution.mechanism
        assert (
            loaded.certificate == solution.certificate
            and loaded.problem == solution.problem
            and loaded.problem.statement() == solution.problem.statement()
        )


def test_errors_are_those_of_the_estimator():
    prior = np.array([0.4, 0.3, 0.2, 0.1])
    for task in ("sum", "histogram"):
        solution = optdp.solve_lip(prior, 1.0, task=task)
        m = solution.mechanism
        assert prior @ m.conditional_mse() == pytest.approx(solution.value, rel=1e-12)
        assert m.mse_under(prior) == pytest.approx(solution.value, rel=1e-12)
        assert np.abs(m.bias_under(prior)).max() <= 1e-12
        assert prior @ m.expected_loss([0, 1, 2, 3]) == pytest.approx(m.average_loss(), rel=1e-12)
        assert m.worst_case_loss() == m.expected_loss(m.worst_input())
        truth = np.arange(4.0) if task == "sum" else np.eye(4)
        error = m.variance(range(4)) + (
            np.square(m.mean(range(4)) - truth) if task == "sum" else np.square(m.mean(range(4)) - truth).sum(axis=1)
        )
        assert error == pytest.approx(m.expected_loss(range(4)), rel=1e-10)


@settings(max_examples=20)
@given(prior=priors(most=5), eps=epsilons, task=st.sampled_from(["sum", "histogram"]))
def test_mae_is_the_least_over_relabellings(prior, eps, task):
    mechanism = optdp.solve_lip(prior, eps, task=task, notion="lip-lower").mechanism
    every = [
        LIPMechanism(mechanism.prior, mechanism.kernel, mechanism.aggregate, labels).mae()
        for labels in permutations(mechanism.categories)
    ]
    assert mechanism.mae() == pytest.approx(min(every), rel=1e-12)
    # Outputs are distributed like inputs. Called like them, they differ by the value below, ...
    p = np.array(prior)
    x = np.arange(len(p))
    distance = np.abs(x[:, None] - x) if task == "sum" else 1 - np.eye(len(p))
    natural = p @ distance @ p / math.exp(eps)
    assert sorted(mechanism.output) == pytest.approx(sorted(p), rel=1e-9)
    # ... the least for two answers and for a histogram (Proposition 3), but not always for a sum of more.
    assert mechanism.mae() <= natural * (1 + 1e-9)
    if task == "histogram" or len(p) == 2:
        assert mechanism.mae() == pytest.approx(natural, rel=1e-9)


def test_proposition_3_fails_for_a_sum_at_small_eps():
    # Four categories with priors 2/7, 2/7, 1/7, 2/7: a label further from the ends is closer to everything.
    prior = [Fraction(2, 7), Fraction(2, 7), Fraction(1, 7), Fraction(2, 7)]
    best = optdp.solve_lip(prior, 0.08, notion="lip-lower").mechanism
    natural = LIPMechanism(best.prior, best.kernel, best.aggregate, tuple(row.index(max(row)) for row in best.kernel))
    assert best.mae() < natural.mae() - 1e-3


def test_sampling_follows_the_kernel():
    from scipy.stats import chisquare

    mechanism = optdp.solve_lip({"a": 0.5, "b": 0.3, "c": 0.2}, 1.0, task="histogram").mechanism
    x = np.array(["a", "b", "c"])[np.random.default_rng(0).integers(0, 3, 90_000)].reshape(300, 300)
    y = mechanism.randomize(x, rng=1)
    assert y.shape == x.shape
    for name in "abc":
        expected = mechanism.probability(list(mechanism.labels), name)
        counts = np.array([np.sum(y[x == name] == label) for label in mechanism.labels])
        assert counts.sum() == np.sum(x == name)
        assert chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-4
    assert mechanism.posterior(y).shape == (300, 300, 3)
    assert mechanism.estimator(y[:2]).shape == (2, 300, 3)
    with pytest.raises(
        ValueError, match=r"x \(entry 1\) is not allowed: x must be one of the categories 'a', 'b', 'c'$"
    ):
        mechanism.randomize(["a", "d"])


def test_a_wrong_prior():
    designed = optdp.solve_lip([0.9, 0.1], 1.0, task="survey").mechanism
    seen = designed.with_prior([0.8, 0.2])
    assert designed.epsilon() <= 1.0
    # The rarer the category really is, the more an output tells about it.
    assert seen.epsilon() < 1.0 < designed.with_prior([0.97, 0.03]).epsilon()
    cost = designed.mse_under([0.8, 0.2])
    assert cost > seen.mse() > optdp.solve_lip([0.8, 0.2], 1.0, task="survey").lower_bound
    assert float(designed.bias_under([0.8, 0.2])) < 0
    with pytest.raises(ValueError, match="2 is not a category"):
        designed.with_prior({0: 0.5, 2: 0.5})


# --- arguments


def test_zero_priors_are_left_out_and_said_so():
    solution = optdp.solve_lip([0.5, 0.0, 0.3, 0.2], 1.0, values=[1, 100, 2, 3])
    assert "where 1 has probability 0 and is left out" in solution.problem.statement()
    assert "1 more of prior 0 left out" in str(solution)
    assert solution.program.message.endswith(", where 1 has probability 0 and is left out")
    assert solution.mechanism.categories == (0, 2, 3)
    same = optdp.solve_lip([0.5, 0.3, 0.2], 1.0, values=[1, 2, 3])
    assert solution.value == same.value
    refusals = set()
    for wrong in ([0, 1], [0, 7], [3, 99]):  # which of them it was is private
        with pytest.raises(ValueError, match=r"x \(entry 1\) is not allowed") as refusal:
            solution.mechanism.randomize(wrong)
        refusals.add(str(refusal.value))
    assert len(refusals) == 1


@pytest.mark.parametrize(
    "prior, message",
    [
        ([0.5, 0.4], "sums to 0.9, which is not allowed"),
        ([0.5, 0.6], "sums to 1.1, which is not allowed"),
        ([0.5, 0.5 + 1e-8], "it must sum to 1"),
        ([1.2, -0.2], r"prior\[0\] = 1.2 is not allowed"),
        ([0.6, 0.6, -0.2], r"prior\[2\] = -0.2 is not allowed"),
        ([0.5, math.nan], r"prior\[1\] = nan is not allowed"),
        ([math.inf, 0.5], r"prior\[0\] = inf is not allowed"),
        ([1.0], "at least 2 categories"),
        ([1.0, 0.0], "at least 2 categories"),
        ([], "sums to 0"),
    ],
)
def test_wrong_priors_are_refused(prior, message):
    with pytest.raises(ValueError, match=message):
        optdp.solve_lip(prior, 1.0)


def test_categories_and_values_that_cannot_be_are_refused_by_name():
    with pytest.raises(TypeError, match="categories = 3 is not allowed"):
        optdp.solve_lip([0.5, 0.5], 1.0, categories=3)
    for wrong in ({"values": [1e308, 2]}, {"weight": 1e160}):  # their squares are no floats
        with pytest.raises(ValueError, match=r"the values must be at most 1e\+150 in size"):
            optdp.solve_lip([0.5, 0.5], 1.0, **wrong)
    assert optdp.solve_lip([0.5, 0.5], 1.0, values=[0, 1e150]).verify()
    for near in ({2**53: 0.25, 2**53 + 1: 0.25, 0.5: 0.5}, {0: 0.5, 2**53 + 1: 0.5}):  # rounded, two may have one value
        with pytest.raises(ValueError, match=r"values\[9007199254740993\] .* must be a float"):
            optdp.solve_lip(near, 1.0)
    twice = pd.Series([1, 2, 0], index=["b", "a", "a"])
    with pytest.raises(ValueError, match="values is not allowed: it has two entries for category 'a'"):
        optdp.solve_lip({"a": 0.5, "b": 0.5}, 1.0, values=twice)
    with pytest.raises(TypeError, match="categories is not allowed"):
        optdp.Prior.of([0.5, 0.5], [[1], [2]])
    with pytest.raises(TypeError, match=r"prior = .* is not allowed"):
        optdp.Prior.of(np.array(0.5))


@pytest.mark.parametrize("prior", [0.5, "0.5,0.5", None, [True, False], ["0.5", "0.5"], [0.5, None]])
def test_priors_of_the_wrong_type_are_refused(prior):
    with pytest.raises(TypeError, match="is not allowed"):
        optdp.solve_lip(prior, 1.0)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"values": [1, 2]}, "values has 2 entries"),
        ({"values": [1, 1, 1], "weight": 2.5}, r"values = 1.0 for every category"),
        ({"values": [1, 2, 3], "weight": 0.0}, r"weight = 0.0 is not allowed: it must keep the values apart"),
        ({"values": [1, math.nan, 2]}, r"values\[1\]"),
        ({"values": {0: 1.0, 1: 2.0}}, "no entry for category 2"),
        ({"task": "survey"}, "must have two"),
        ({"task": "histogram", "values": [1, 2, 3]}, "values is not allowed"),
        ({"task": "mean"}, "task = 'mean'"),
        ({"notion": "dp"}, "notion = 'dp'"),
        ({"backend": "gurobi"}, "backend = 'gurobi'"),
        ({"categories": ["a", "b"]}, "categories has 2 entries"),
        ({"categories": ["a", "a", "b"]}, "must be distinct"),
        ({"categories": ["a", "b", "c"]}, "values is missing"),
        ({"rtol": 0}, "rtol = 0"),
        ({"eps": 0}, "eps = 0"),
        ({"eps": -1.0}, "eps = -1.0"),
        ({"eps": math.nan}, "eps = nan"),
        ({"weight": math.inf}, "weight = inf"),
    ],
)
def test_other_arguments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        optdp.solve_lip([0.5, 0.3, 0.2], **{"eps": 1.0, **arguments})


def test_too_many_categories_for_enumeration():
    with pytest.raises(ValueError, match="enumerated up to 14"):
        optdp.solve_lip([1 / 20] * 20, 1.0, backend="enumeration")


def test_decimals_and_fractions_are_exact():
    assert optdp.Prior.of([Fraction(1, 3), Fraction(2, 3)]).exact == (Fraction(1, 3), Fraction(2, 3))
    floats = optdp.Prior.of([0.1] * 10)  # they sum to 1 only up to rounding
    assert sum(floats.exact) == 1
    assert floats.exact == (Fraction(1, 10),) * 10
    named = optdp.Prior.of({"x": 0.25, "y": 0.75})
    assert named.categories == ("x", "y")
    assert optdp.Prior.from_dict(json.loads(json.dumps(named.to_dict()))) == named


def test_weights_and_offsets():
    plain = optdp.solve_lip([0.5, 0.3, 0.2], 1.0)
    doubled = optdp.solve_lip([0.5, 0.3, 0.2], 1.0, weight=2.0)
    moved = optdp.solve_lip([0.5, 0.3, 0.2], 1.0, values=[1000.0, 1001.0, 1002.0])
    assert doubled.value == pytest.approx(4 * plain.value, rel=1e-12)
    assert moved.value == pytest.approx(plain.value, rel=1e-9)
    assert moved.verify()


def test_mechanisms_that_break_the_promise_cannot_be_built_as_private():
    with pytest.raises(ValueError, match=r"do not make a mechanism that is 1\.0-LIP"):
        LIPMechanism.private(
            optdp.LIP(1.0, [0.9, 0.1]), [0.9, 0.1], np.eye(2), [0.9, 0.1], Aggregate("sum", (0.0, 1.0))
        )


# --- the problem, and what the mechanism guarantees


def test_the_problem_says_what_is_solved():
    solution = optdp.solve_lip([0.9, 0.1], optdp.log(3), task="survey")
    prior = "the prior (0.9, 0.1), normalised"
    assert solution.problem.statement() == (
        f"the least mean square error of the best estimate of the user's value, one of (0, 1) by category, under {prior}, over "
        f"all log(3)-LIP mechanisms from {optdp.Alphabet(2)} to any outputs, with {prior}"
    )
    again = optdp.solve(solution.problem, 1e-6)
    assert again.value == solution.value and again.mechanism == solution.mechanism
    assert optdp.Problem.from_dict(json.loads(json.dumps(solution.problem.to_dict()))) == solution.problem
    assert pickle.loads(pickle.dumps(solution)) == solution
    for prior in ([0.9, 0.1], [1 / 3, 2 / 3], [0.5, 0.25, 0.25], {"a": 0.9, "b": 0.1}):
        others = [
            optdp.Prior.of(prior),
            optdp.Prior.of([0.9, 0.1, 0.0]),
            optdp.Prior.of([Fraction(9, 10), Fraction(1, 10)]),
        ]
        assert len({p.phrase() for p in others}) == 3  # what differs reads differently


def test_at_a_logarithm_the_ratio_is_attained_exactly():
    ratio, p = Fraction(3), Fraction(1, 8)
    solution = optdp.solve_lip([1 - p, p], optdp.log(3), task="survey")
    own = solution.mechanism.guarantee()
    assert isinstance(own, optdp.LIP) and own.prior == optdp.Prior.of([1 - p, p])
    assert ratio * (1 - Fraction(1, 2**50)) <= own.eps.argument <= ratio
    assert solution.mechanism.satisfies(optdp.LIP(optdp.log(3), own.prior))
    assert not solution.mechanism.satisfies(optdp.LIP(optdp.log(ratio - Fraction(1, 2**40)), own.prior))
    exact = p * (1 - p) - p**2 * (ratio - 1) ** 2 / ratio
    assert Fraction(solution.lower_bound) <= exact <= Fraction(solution.value)
    assert solution.gap <= 1e-14


@pytest.mark.parametrize("notion", lip.NOTIONS)
def test_guarantees_are_exact_and_imply_what_they_imply(notion):
    mechanism = optdp.solve_lip([0.5, 0.3, 0.2], 1.0, notion=notion).mechanism
    prior = mechanism.prior
    asked = {"lip": optdp.LIP(1.0, prior), "lip-lower": optdp.LIP(1.0, prior, True), "ldp": optdp.LDP(1.0)}
    assert mechanism.satisfies(asked[notion])
    assert mechanism.satisfies(optdp.LIP(1.0, prior, lower_only=True))  # the least that any of them asks
    assert mechanism.satisfies(mechanism.guarantee()) is True
    level = mechanism.guarantee().eps.argument
    smaller = optdp.log(level - Fraction(1, 2**100))
    assert mechanism.satisfies(optdp.LIP(smaller, prior)) is False
    assert mechanism.satisfies(optdp.LDP(optdp.log(mechanism.likelihood_ratio))) is True
    assert mechanism.satisfies(optdp.LDP(optdp.log(mechanism.likelihood_ratio - Fraction(1, 2**100)))) is False
    # LDP is LIP for every prior on the categories, and for none on others.
    skewed = optdp.Prior.of([0.98, 0.01, 0.01])
    assert mechanism.satisfies(optdp.LIP(optdp.log(mechanism.likelihood_ratio), skewed)) is True
    assert mechanism.satisfies(optdp.LIP(1.0, optdp.Prior.of({"a": 0.5, "b": 0.5}))) is False
    with pytest.raises(
        ValueError, match=r"privacy\(\) is the epsilon of an LDP mechanism, and here the guarantee is .*-LIP"
    ):
        mechanism.privacy()
    assert mechanism.epsilon() == pytest.approx(float(mechanism.guarantee().eps), rel=1e-15)


def test_a_mechanism_that_rules_a_category_out_guarantees_nothing():
    half = UNIT // 2
    made = LIPMechanism(optdp.Prior.of([0.5, 0.5]), ((UNIT, half), (0, half)), Aggregate("histogram"))
    assert made.guarantee() is None and made.epsilon() == made.epsilon("ldp") == math.inf
    assert made.satisfies(optdp.LDP(30.0)) is False and made.satisfies(optdp.ApproxDP(1.0, 0.5)) is None


def test_nothing_is_denied_that_the_mechanism_may_have():
    """Ternary randomised response: others with its ratio of e lack what it has."""
    third = round(UNIT / (math.e + 2))
    rows = tuple(tuple(UNIT - 2 * third if i == y else third for i in range(3)) for y in range(3))
    mechanism = LIPMechanism(optdp.Prior.of([0.5, 0.3, 0.2]), rows, Aggregate("histogram"))
    divergence = (math.e - 1) / (math.e + 2)  # sum p log(p/q), as log(p/q) is 1, -1 and 0
    assert divergence < 0.37 and optdp.KL(0.37).implied_by(optdp.LDP(1.0)) is False
    assert mechanism.satisfies(optdp.KL(0.37)) is None and mechanism.satisfies(optdp.KL(0.5))
    # A prior on two of the categories: what LDP implies for every prior it implies for this one.
    for prior in ({0: 0.5, 1: 0.5}, {0: 0.2, 1: 0.3, 2: 0.5}):
        assert mechanism.satisfies(optdp.LIP(1.1, optdp.Prior.of(prior))) is True
    assert mechanism.satisfies(optdp.LIP(0.9, optdp.Prior.of({0: 0.5, 1: 0.5}))) is None


def test_values_are_those_of_the_objective_whatever_the_curator_thinks():
    solution = optdp.solve_lip([0.5, 0.3, 0.2], 1.0)
    other = optdp.Prior.of([0.6, 0.3, 0.1])
    seen = solution.mechanism.with_prior(other).with_aggregate(Aggregate("sum", (5.0, 6.0, 9.0)))
    own = solution.problem.objective
    assert seen.enclose(own) == solution.mechanism.enclose(own)
    assert dataclasses.replace(solution, mechanism=seen).verify()
    exact = other.exact
    low, high = seen.enclose(optdp.BayesRisk(seen.aggregate, other))
    error = Fraction(0)
    for row in seen.kernel:
        joint = [p * Fraction(k, UNIT) for p, k in zip(exact, row, strict=True)]
        mean = sum(j * x for j, x in zip(joint, (5, 6, 9), strict=True)) / sum(joint)
        error += sum(j * (x - mean) ** 2 for j, x in zip(joint, (5, 6, 9), strict=True))
    assert low <= error <= high and high - low <= 1e-15
    with pytest.raises(ValueError, match="3 is not a category"):
        seen.enclose(optdp.BayesRisk(Aggregate("histogram"), optdp.Prior.of([0.25] * 4)))
    with pytest.raises(TypeError, match="no proven value"):
        seen.enclose(optdp.WorstCase("squared"))


# --- solvers and models


@pytest.mark.parametrize("suffix", ["mps", "lp"])
@pytest.mark.parametrize("case", [*CASES, ("sum", "lip-lower")])
def test_the_written_model_has_the_same_optimum(tmp_path, case, suffix):
    task, notion = case
    solution = optdp.solve_lip([0.4, 0.3, 0.2, 0.1], 1.0, task=task, notion=notion)
    path = tmp_path / f"model.{suffix}"
    solution.program.write(path)
    found = read(path).solve()
    x = np.arange(4) - 1.0
    spread = float(np.array([0.4, 0.3, 0.2, 0.1]) @ x**2) if task == "sum" else 1.0
    assert spread - found.objective == pytest.approx(solution.value, rel=1e-8)
    own = solution.program.model.solve()
    assert own.dual("prior").shape == (4,) and own.value("weights").sum() == pytest.approx(1)
    # The duals are P_i nu_i, and prove the value.
    assert own.dual("prior").sum() == pytest.approx(own.objective)


def test_the_model_of_many_categories_is_restricted_to_the_posteriors_found():
    p = np.random.default_rng(1).dirichlet(np.ones(30))
    solution = optdp.solve_lip(p, 1.0)
    assert solution.program.model.solve().objective == pytest.approx(solution.program.objective, rel=1e-9)
    with pytest.raises(ValueError, match="prior has 30 categories"):
        lip.build_model(p, 1.0, Aggregate("histogram"))


@pytest.mark.parametrize("solver", [Clarabel(), Highs(method="ipm", threads=2), Highs(crossover=False, method="ipm")])
def test_other_solvers_give_the_same_value(solver):
    p = np.random.default_rng(4).dirichlet(np.ones(20))
    for prior, task in ((p, "sum"), (p[:6] / p[:6].sum(), "histogram")):
        ours, theirs = (optdp.solve_lip(prior, 1.0, task=task, solver=s) for s in (None, solver))
        assert theirs.value == pytest.approx(ours.value, rel=2e-6)
        assert theirs.program.solver.startswith(solver.name)
        assert theirs.verify()
    with pytest.raises(ValueError, match="solver is not allowed with the method 'cvxpy'"):
        optdp.solve_lip([0.5, 0.3, 0.2], 1.0, backend="cvxpy", solver=solver)


def test_progress_is_told():
    steps = []
    optdp.solve_lip([0.5, 0.3, 0.2], 1.0, progress=steps.append)
    assert [s.stage for s in steps] == ["sum over 3 categories, lip", "certificate", "done"]
    assert steps[-1].lower <= steps[-1].value


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"privacy": optdp.LIP(1.0, [0.3, 0.7])}, "the prior of the guarantee must be the prior of the objective"),
        ({"privacy": optdp.LDP(31.0)}, r"LIP or LDP with eps in \[1e-15, 30\]"),
        ({"domain": optdp.Alphabet(3)}, "the domain must be the alphabet of the prior's categories"),
        (
            {"objective": optdp.BayesRisk(Aggregate("sum", (2.0, 2.0)), optdp.Prior.of([0.5, 0.5]))},
            "nothing to estimate",
        ),
        ({"family": optdp.Piecewise(3)}, "the family must be all mechanisms"),
        ({"constraints": (optdp.Unbiased(),)}, "there must be no constraints"),
    ],
)
def test_other_problems_are_refused_with_the_reason(change, reason):
    problem = optdp.solve_lip([0.5, 0.5], 1.0, notion="ldp").problem
    with pytest.raises(ValueError, match=f"lip: .*{reason}"):
        optdp.solve(dataclasses.replace(problem, **change))


# --- files


@pytest.mark.parametrize(
    "change, message",
    [
        ({"kernel": []}, "mechanism.kernel has 0 entries"),
        ({"kernel": [["1", "1"]]}, r"mechanism: kernel\[0\] has 2 entries"),
        ({"kernel": [["1", "1", -1]]}, r"mechanism.kernel\[0\]\[2\] = -1 is not allowed"),
        ({"kernel": [[str(2 * UNIT)] * 3]}, r"mechanism.kernel\[0\]\[0\].*2\^124"),
        ({"kernel": [[str(UNIT // 2)] * 3]}, "must sum to exactly 1"),
        ({"kernel": 5}, "must be a list"),
        ({"labels": [0, 0, 1]}, "each of 3 outputs needs its own"),
        ({"labels": [[], 1, 2]}, r"mechanism.labels\[0\]"),
        ({"aggregate": {"type": "aggregate", "kind": "sum", "values": [1.0]}}, "values has 1 entries"),
        ({"aggregate": {"type": "aggregate", "kind": "sum", "values": [1.0, math.inf, 2.0]}}, r"values\[1\]"),
        (
            {"prior": {"type": "prior", "weights": [1], "categories": [0], "left_out": [], "given": []}},
            "must be a list of 2",
        ),
        (
            {"prior": {"type": "prior", "weights": [1, 0], "categories": [0, 1], "left_out": [], "given": []}},
            r"weights\[1\] = 0",
        ),
        (
            {"prior": {"type": "prior", "weights": [1, 2], "categories": [0, 0], "left_out": [], "given": []}},
            "must be distinct",
        ),
        ({"unit": 1}, "unknown field 'unit'"),
    ],
)
def test_mechanism_files_are_checked_field_by_field(change, message):
    data = json.loads(json.dumps(optdp.solve_lip([0.5, 0.3, 0.2], 1.0).mechanism.to_dict()))
    with pytest.raises(FieldError, match=message):
        optdp.Mechanism.from_dict({**data, **change})


def test_a_bayes_risk_needs_a_task():
    with pytest.raises(TypeError, match="task = 'sum' is not allowed"):
        optdp.BayesRisk("sum", optdp.Prior.of([0.5, 0.5]))


def test_outputs_of_several_categories_are_those_of_one_or_the_other():
    mechanism = optdp.solve_lip([0.1, 0.2, 0.3, 0.4], 0.5, values=[0, 1, 2, 5]).mechanism
    own = [set(mechanism.support(x)) for x in mechanism.categories]
    assert set(mechanism.support(mechanism.categories)) == set().union(*own)
    assert set(mechanism.support(list(mechanism.categories[:2]))) == own[0] | own[1]
    assert mechanism.support() == mechanism.labels
    kernel = (UNIT, 0, 0), (0, UNIT // 2, 0), (0, UNIT // 2, UNIT)
    some = LIPMechanism(optdp.Prior.of([0.2, 0.3, 0.5]), kernel, Aggregate("histogram"), ("a", "b", "c"))
    assert [some.support(k) for k in some.categories] == [("a",), ("b", "c"), ("c",)]
    assert some.support([0, 2]) == ("a", "c") and some.support([1, 2]) == ("b", "c")


@pytest.mark.parametrize("eps", [12.0, 16.0, 20.0])
def test_rounding_errors_of_prices_are_not_multiplied_by_the_ratio(eps):
    """The bound for sums under LDP was 0 at eps = 20: e^eps times an error of 1e-16 is more than the optimum."""
    found = optdp.solve_lip(np.random.default_rng(1).dirichlet(np.ones(5)), eps, notion="ldp")
    assert found.verify() and found.gap <= 1e-6


@pytest.mark.parametrize("task", ["sum", "histogram"])
@pytest.mark.parametrize("notion", ["lip", "ldp"])
@pytest.mark.parametrize("d", [2, 5, 12])
def test_a_category_that_is_all_but_certain_leaves_a_bracket(d, task, notion):
    """Floats hold neither the others' probabilities nor what may be learned: the program had no solution, or prices no number."""
    rare = Fraction(1, 10**20)
    solution = optdp.solve_lip([1 - (d - 1) * rare, *[rare] * (d - 1)], 1.0, task=task, notion=notion)
    assert solution.gap <= 1e-6 and solution.verify()
    assert solution.mechanism.satisfies(solution.problem.privacy)


@pytest.mark.parametrize(
    ("prior", "eps", "arguments"),
    [
        ([0.2, 0.3, 0.5], 1e-15, {"notion": "lip-lower"}),
        ([0.2, 0.3, 0.5], 1e-15, {"task": "histogram", "backend": "columns"}),
        ([3.1e-06, 0.9991007, 0.0008962], 1e-6, {"task": "histogram", "notion": "ldp", "backend": "columns"}),
        ([0.95670621, 3e-09, 2.9e-05, 0.04326476], 1e-12, {"values": [0.0, 0.0, 1.0, 0.0]}),
    ],
)
def test_what_floats_do_not_hold_is_one_output(prior, eps, arguments):
    """Of so small an eps no posteriors in floats differ from the prior, or they differ by more: no mechanism could be made."""
    exact = [Fraction(p) / sum(map(Fraction, prior)) for p in prior]
    solution = optdp.solve_lip(exact, eps, **arguments)
    assert solution.gap <= 1e-6 and solution.verify()
    assert solution.mechanism.satisfies(solution.problem.privacy)


def test_a_loose_tolerance_does_not_send_the_prior():
    """A prior that is nearly certain is not all but certain, whatever gap would do."""
    prior, loose = [0.999, 0.001], optdp.solve_lip([0.999, 0.001], 1.0, rtol=0.5)
    assert loose.value == pytest.approx(optdp.solve_lip(prior, 1.0).value, rel=1e-9) and loose.gap <= 1e-9


@pytest.mark.parametrize("notion", ["lip", "ldp"])
def test_categories_of_one_value_are_one(notion):
    """With 30 categories of two values column generation proved nothing at eps = 30."""
    p = np.random.default_rng(1).dirichlet(np.ones(30))
    part = Fraction(float(p[0])) / sum(Fraction(float(v)) for v in p)
    solution = optdp.solve_lip(list(map(float, p)), 30.0, values=[1.0] + [0.0] * 29, notion=notion)
    merged = optdp.solve_lip([part, 1 - part], 30.0, values=[1.0, 0.0], notion=notion)
    assert solution.value == pytest.approx(merged.value, rel=1e-2) and solution.gap <= 1e-2
    assert solution.verify()


@pytest.mark.parametrize(
    ("weights", "eps", "values"),
    [((3, 1, 1, 3, 3), 2.0, (0, 1, 0, 0, 0)), ((2, 2, 2, 3, 1, 3), 0.1, (0, 1, 1, 0, 1, 0))],
)  # fmt: skip
def test_equal_values_prove_what_the_enumeration_proves(weights, eps, values):
    """Prices of the capacity that one category leaves another were not those of several: 44 % of the value were left open."""
    prior = [Fraction(w, sum(weights)) for w in weights]
    solution = optdp.solve_lip(prior, eps, values=list(map(float, values)))
    every = optdp.solve_lip(prior, eps, values=list(map(float, values)), backend="enumeration")
    assert solution.gap <= 1e-9 and solution.verify()
    assert solution.value == pytest.approx(every.value, rel=1e-9)


def test_no_bound_is_below_what_one_sided_lip_proves():
    p = list(np.random.default_rng(1).dirichlet(np.ones(30)))
    values = [10.0**i for i in range(30)]
    solution = optdp.solve_lip(p, 30.0, values=values, notion="ldp")
    assert solution.lower_bound >= optdp.solve_lip(p, 30.0, values=values, notion="lip-lower").lower_bound > 0
    assert solution.verify()


def test_guarantees_that_are_shown_are_rounded_up():
    """1.0000004 was shown as 1."""
    made = optdp.solve_lip([0.5, 0.3, 0.2], 1.0000004).mechanism
    assert "LIP eps = 1.00001, LDP eps = 2.00001" in repr(made)


@pytest.mark.parametrize("prior", [(0.5, 0.5), (0.2, 0.3, 0.5)])
def test_variances_of_nearly_certain_estimates_keep_their_digits(prior):
    """Against exact sums over the table: squares were subtracted from squares, which are 10^12 times as large."""
    for values in (None, [7.0 * i for i in range(len(prior))]):
        task = "sum" if values else "histogram"
        mechanism = optdp.solve_lip(list(prior), 28.0, task=task, values=values, notion="ldp").mechanism
        estimates = [[Fraction(v) for v in np.ravel(row).tolist()] for row in mechanism.estimates]
        for i, category in enumerate(mechanism.categories):
            chances = [Fraction(row[i], UNIT) for row in mechanism.kernel]
            means = [
                sum(p * v for p, v in zip(chances, column, strict=True)) for column in zip(*estimates, strict=True)
            ]
            true = sum(
                p * sum((v - m) ** 2 for v, m in zip(row, means, strict=True))
                for p, row in zip(chances, estimates, strict=True)
            )
            assert float(mechanism.variance(category)) == pytest.approx(float(true), rel=1e-9, abs=0)
            assert mechanism.variance([[category]]).shape == mechanism.mean([[category]]).shape[:2]


@pytest.mark.parametrize("eps", [20.0, 30.0])
@pytest.mark.parametrize("task", ["sum", "histogram"])
def test_two_categories_have_their_tolerance_at_large_eps(eps, task):
    found = optdp.solve_lip([0.5, 0.5], eps, task=task)
    assert found.gap <= 1e-6 and found.verify() and found.mechanism.satisfies(found.problem.privacy)


@pytest.mark.parametrize("notion", ["lip", "ldp"])
@pytest.mark.parametrize("task", ["histogram", "sum"])
def test_rare_categories_cost_nothing(task, notion):
    """Prices of categories of 1e-20 and less are below every solver's tolerance: gaps up to 1, or no answer at all."""
    for d, eps, rare, worst in [
        (4, 0.3, 1e-80, 1e-6),
        (6, 2.0, 1e-272, 1e-6),
        (6, 30.0, 1e-25, 5e-3),
        (9, 30.0, 1e-80, 5e-3),
    ]:
        weights = np.array([0.0] + [1.0 + 7 * i % 5 for i in range(1, d)])
        p = (weights / weights.sum()).tolist()
        values = None if task == "histogram" else [float(3 * i % d) for i in range(d)]
        without = optdp.solve_lip(p, eps, task=task, notion=notion, values=values)
        found = optdp.solve_lip([rare, *p[1:]], eps, task=task, notion=notion, values=values)
        assert found.gap <= worst and found.verify() and found.mechanism.satisfies(found.problem.privacy)
        assert found.lower_bound <= without.value * (1 + 1e-9) and without.lower_bound <= found.value * (1 + 1e-9)


def test_priors_over_many_orders_of_magnitude_have_a_bracket():
    """Where linear programs fail, more and more rare categories are answered as others, and at last all at random."""
    p = [3e-116, 4e-56, 3e-21, 5.6e-15, 4e-8, 4e-7, 0.02]
    p.append(1 - sum(p))
    for task, notion, worst in [("sum", "ldp", 1.0), ("histogram", "lip", 0.01), ("histogram", "ldp", 0.1)]:
        found = optdp.solve_lip(p, 30.0, task=task, notion=notion)
        assert found.verify() and found.gap <= worst and found.value < 1e-6


def test_probabilities_below_those_of_floats_are_refused():
    """They ended in divisions by 0."""
    for tiny in (Fraction(1, 2**1060), Fraction(1, 2**2000)):
        with pytest.raises(ValueError, match="a probability of at least 1e-300, or 0"):
            optdp.solve_lip([tiny, Fraction(1, 3), Fraction(2, 3) - tiny], 2.0)


def test_values_whose_squares_are_no_floats_are_refused():
    """The unit of the loss was 0, and prices were divided by it."""
    p = [0.7, 0.3 - 1e-20, 1e-20]
    with pytest.raises(ValueError, match="values must have a standard deviation of at least 1e-150 under the prior"):
        optdp.solve_lip(p, 1.0, notion="ldp", values=[0, 1e-165, 3e-168])
    found, other = (optdp.solve_lip(p, 1.0, notion="ldp", values=[0, v, 3e-3 * v]) for v in (2.0**-400, 1.0))
    assert (found.lower_bound, found.value) == (other.lower_bound * 2.0**-800, other.value * 2.0**-800)


def test_prices_of_rare_categories_are_floats_however_large_the_values():
    """Prices of what is too rare to count were infinite in the units of the loss."""
    rest, values = [1e-20, 1e-40, 1e-60], [1e145, -1e144, 1e143, -1e142]
    found = optdp.solve_lip([1 - sum(rest), *rest], 4.0, notion="ldp", values=values, backend="enumeration")
    assert found.verify() and found.lower_bound <= found.value


@pytest.mark.parametrize("backend", ["auto", "enumeration"])
def test_weights_of_rare_categories_are_not_below_0(backend):
    """A solver's -4e-11 is dropped, and was more than all that a category of 1e-11 has: no answer, or one 5 times too large."""
    p = [0.00666578, 2.2883e-11, 0.0949498, 0.05371397, 8.8425e-12, 0.23507418]
    p.append(1 - sum(p))
    found = optdp.solve_lip(p, 25.0, notion="ldp", values=[0, 1, 0, 0, 0, 0, 0], backend=backend)
    assert found.verify() and found.gap <= 1e-4 and found.value < p[1]
    p = [3.3e-52, 1.0, 7.6e-12, 6.6e-12, 1.8e-17, 1.9e-33]
    found = optdp.solve_lip(p, 25.0, values=[0.347, 0.868, 0.704, 0.509, 0.378, 0.974], backend=backend)
    assert found.verify() and found.gap <= 1e-3


@pytest.mark.parametrize("task", ["sum", "histogram"])
def test_errors_far_below_1_keep_their_digits(task):
    """They were enclosed to 1e-97 of the values' squares."""
    values = None if task == "histogram" else [0, 1, 0]
    found = optdp.solve_lip(
        [0.897, 1e-166, 0.103] if values else [1.0, 1e-166], 0.1, task=task, notion="ldp", values=values
    )
    assert 1e-166 * (1 - 1e-9) <= found.value <= 2e-166 * (1 + 1e-9)


@pytest.mark.parametrize("eps", [1e-15, 0.3, 5.0, 30.0, optdp.log(3)])
@pytest.mark.parametrize("rare", [0.3, 1e-10, 1e-20])
def test_one_sided_lip_has_its_closed_form_also_for_rare_categories(eps, rare):
    """Answers that were rarer than 2^-60 were dropped, and floats missed the rarest ones: gaps of 0.005 to 1."""
    best = optdp.solve_lip([0.2, 0.8 - rare, rare], eps, task="histogram", notion="lip-lower")
    assert best.verify() and best.gap <= 1e-12 + math.exp(float(eps)) * 2.0**-122 / rare
    drawn, own = (list(map(end, best.mechanism.kernel)) for end in (min, max))  # by another category, and by its own
    assert len({a - b for a, b in zip(own, drawn, strict=True)}) == 1
    assert 1 <= Fraction(sum(drawn), UNIT) * enclosures.exp_above(eps, 200) <= 1 + Fraction(1, 2**60)


def test_rare_categories_that_no_program_solves_are_answered_at_random():
    """SolverFailure: rows of categories of 1e-72 cannot be met."""
    best = optdp.solve_lip([3.2e-27, 1.0, 4.5e-72], 30.0, task="histogram")
    assert best.verify() and best.gap < 1e-3


def test_prices_beyond_what_solvers_take_for_infinite_are_in_no_box():
    """The process died in HiGHS."""
    p = [
        3.9952491566297614e-112, 6.527706113881054e-106, 1.0745152733131962e-131, 1.0592313076277635e-106,
        7.915540710330987e-133, 0.9999995617219968, 4.3827800323679234e-07, 4.956968720849339e-61, 2.174947166874488e-50
    ]  # fmt: skip
    values = [
        -1.4077828691677946e+38, -3.945699783909057e+58, -8.631697035714826e-34, -5.197379275662117e-37,
        8.051959988976722e+95, 2.085424500365236e-79, 1.6577844721070685e-42, 2.259335122145677e+37, -3.974097736952344e+34
    ]  # fmt: skip
    best = optdp.solve_lip(p, 0.01, values=values, backend="columns", time_limit=20.0)
    assert best.verify() and best.gap < 1e-3

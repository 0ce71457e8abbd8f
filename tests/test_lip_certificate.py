"""The certificate of prior-aware problems: exact against exact, each error term needed, refusals, and files."""

import dataclasses
import math
import time
from fractions import Fraction
from itertools import pairwise, product
from unittest import mock

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

import optdp
from optdp.certificates import lip
from optdp.certificates.base import Certificate, Refusal
from optdp.certificates.lip import VERTICES, LIPCertificate
from optdp.exact.fields import FieldError
from optdp.problem.problem import Problem
from optdp.problem.tasks import Aggregate

HISTOGRAM = Aggregate("histogram")
HALVES = optdp.Prior.of([0.5, 0.5])


def problem_of(prior, eps, task=HISTOGRAM, notion="lip"):
    """The problem of a prior and a task."""
    prior = optdp.Prior.of(prior)
    privacy = optdp.LDP(eps) if notion == "ldp" else optdp.LIP(eps, prior, lower_only=notion == "lip-lower")
    return Problem(privacy, optdp.Alphabet(prior.categories), optdp.BayesRisk(task, prior))


def ldp_dual(problem, nu, ratio, likelihoods):
    """V - nu.P - (phi - nu.r at the posteriors r of the given likelihoods): no proof with these prices may exceed it."""
    prior, values = problem.objective.prior.exact, problem.objective.task.values
    x = None
    if values is not None:  # centred as the certificate says
        centre = Fraction(float(sum(p * Fraction(v) for p, v in zip(prior, values, strict=True))))
        x = [Fraction(v) - centre for v in values]
    found = []
    for high in likelihoods:
        joint = [p * (ratio if h else 1) for p, h in zip(prior, high, strict=True)]
        r = [j / sum(joint) for j in joint]
        phi = sum(q * q for q in r) if x is None else sum(a * q for a, q in zip(x, r, strict=True)) ** 2
        found.append(phi - sum(Fraction(n) * q for n, q in zip(nu, r, strict=True)))
    second = Fraction(1) if x is None else sum(p * a * a for p, a in zip(prior, x, strict=True))
    return second - sum(Fraction(n) * p for n, p in zip(nu, prior, strict=True)) - max(found)


# --- e^eps must be rounded up: multipliers whose bound is known in closed form, to 400 bits


def lip_high(ratio):
    """The largest posterior of one of two equally likely categories."""
    return 1 - 1 / (2 * ratio)


EXACT = {
    # (problem's task, notion, certificate, the dual function at these prices as a function of E)
    "simplex": (HISTOGRAM, "lip-lower", ("simplex",), lambda e: (2 / e - 1 / e**2) / 2),
    "box vertices": (HISTOGRAM, "lip", ("vertices", (0.0, 0.0)), lambda e: 1 - lip_high(e) ** 2 - (1 - lip_high(e)) ** 2),
    "box chord": (HISTOGRAM, "lip", ("chord", (0.0, 0.0), ((0.0, 0.0),)), lambda e: 1 - 2 * lip_high(e) ** 2),
    "box knots": (
        Aggregate("sum", (-1.0, 1.0)), "lip", ("knots", (0.0, 0.0), ((0.0, 0.0),)),
        lambda e: 1 - (2 * lip_high(e) - 1) ** 2,
    ),
    "cone vertices": (
        HISTOGRAM, "ldp", ("vertices", (0.0, 0.0)), lambda e: 1 - (e**2 + 1) / (e + 1) ** 2
    ),
    "cone chord": (HISTOGRAM, "ldp", ("chord", (0.0, 0.0), ((1.0, 0.0),)), lambda e: 1 - e**2 / 2),
    "cone knots": (
        Aggregate("sum", (-0.5, 0.5)), "ldp", ("knots", (-0.75, -0.75), ((0.0, 0.0),)), lambda e: 1 - e * 3 / 4
    ),
}  # fmt: skip


@pytest.mark.parametrize("eps", [0.1, 0.0625, 0.21875])
@pytest.mark.parametrize("name", EXACT)
def test_the_irrational_ratio_is_rounded_to_the_safe_side(name, eps):
    task, notion, multipliers, dual = EXACT[name]
    proven = LIPCertificate(*multipliers).proven(problem_of(HALVES, eps, task, notion))
    with ctx.workprec(400):
        truth = dual(arb(eps).exp())
        short = truth - arb(fmpq(proven.numerator, proven.denominator))
        assert short >= 0  # no more than is true, ...
        assert short < arb(2) ** -110  # ... and all of it up to the rounding of e^eps
    assert proven > 0


@pytest.mark.parametrize("name", EXACT)
def test_a_logarithm_is_its_rational(name):
    task, notion, multipliers, dual = EXACT[name]
    proven = LIPCertificate(*multipliers).proven(problem_of(HALVES, optdp.log("1.25"), task, notion))
    assert 0 <= dual(Fraction(5, 4)) - proven < Fraction(1, 2**150)


# --- the error terms between knots: without them these multipliers "prove" what is false


def test_the_choice_between_knots_is_paid_for_in_a_sum():
    prior, nu = optdp.Prior.of([Fraction(3, 7), Fraction(3, 7), Fraction(1, 7)]), (0.277, -0.296, 1.091)
    problem = problem_of(prior, optdp.log(3), Aggregate("sum", (0.0, 1.0, 2.0)), "ldp")
    truth = ldp_dual(problem, nu, Fraction(3), product((False, True), repeat=3))
    assert 0 < truth < Fraction(27, 100)
    assert LIPCertificate("knots", nu, ((0.0, 0.0),)).proven(problem) <= truth
    assert LIPCertificate("knots", nu, tuple((k / 64, 0.0) for k in range(-64, 129))).proven(problem) <= truth


def test_the_choice_between_knots_is_paid_for_in_a_histogram():
    # One frequent category, 200 rare ones: half way between tau = 1/E and 1 none pays to be favoured, at 1/1.32 one does.
    prior = optdp.Prior.of([Fraction(800, 10_000)] + [Fraction(46, 10_000)] * 200)
    nu = (0.2881,) + (0.0166,) * 200
    problem = problem_of(prior, optdp.log(5), notion="ldp")
    truth = ldp_dual(problem, nu, Fraction(5), [(True,) + (False,) * 200])
    assert truth > Fraction(9, 10)
    assert LIPCertificate("chord", nu, ((0.1, 0.0),)).proven(problem) <= truth
    assert LIPCertificate("vertices", nu).proven(problem) <= truth


@pytest.mark.parametrize("kind", ["sum", "histogram"])
def test_no_prices_and_knots_prove_more_than_their_dual(kind):
    rng = np.random.default_rng(0)
    for _ in range(20):
        d, ratio = int(rng.integers(2, 5)), Fraction(int(rng.integers(2, 7)))
        weights = rng.integers(1, 9, d).tolist()
        prior = optdp.Prior.of([Fraction(w, sum(weights)) for w in weights])
        task = Aggregate("sum", tuple(range(d))) if kind == "sum" else HISTOGRAM
        problem = problem_of(prior, optdp.log(ratio), task, "ldp")
        x = np.arange(d) - float(prior.probabilities @ np.arange(d))
        nu = (x**2 / 2 if kind == "sum" else prior.probabilities) + rng.normal(size=d) * rng.choice([0.01, 0.1, 0.3])
        knots = tuple(zip(sorted(rng.uniform(-1, 1, 3).tolist()), rng.normal(size=3).tolist(), strict=True))
        truth = max(ldp_dual(problem, nu.tolist(), ratio, product((False, True), repeat=d)), 0)
        best = optdp.solve(problem).value
        methods = ["knots"] if kind == "sum" else ["chord", "vertices"]
        for method in methods:
            made = LIPCertificate(method, tuple(nu.tolist()), () if method == "vertices" else knots)
            assert made.proven(problem) <= min(truth, best)


def posteriors(prior, ratio):
    """The vertices of Q for LIP: all coordinates but one at a bound."""
    low, high = [p / ratio for p in prior], [min(p * ratio, Fraction(1)) for p in prior]
    for i, sides in product(range(len(prior)), product((0, 1), repeat=len(prior))):
        r = [(low, high)[s][k] for k, s in enumerate(sides)]
        r[i] = 1 - sum(r) + r[i]
        if low[i] <= r[i] <= high[i]:
            yield r


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=5), st.sampled_from([Fraction(11, 10), Fraction(2), Fraction(5)]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_under_lip_multipliers_prove_what_they_say(weights, ratio, seed):
    """From the definitions: the largest phi - nu.r over all vertices, and U at the knots."""
    rng, d = np.random.default_rng(seed), len(weights)
    prior = [Fraction(w, sum(weights)) for w in weights]
    values = tuple(float(v) for v in rng.integers(-4, 5, d) / 2)
    centre = Fraction(float(sum(p * Fraction(v) for p, v in zip(prior, values, strict=True))))
    x = [Fraction(v) - centre for v in values]
    near = np.array([float(v * v) for v in x]) if rng.integers(2) else 2 * np.array(prior, dtype=float)
    nu = (near * rng.uniform(0, 1) + rng.normal(size=d) * rng.choice([0.01, 0.1, 1.0])).tolist()
    price = sum(Fraction(n) * p for n, p in zip(nu, prior, strict=True))
    vertices = list(posteriors(prior, ratio))
    priced = [sum(Fraction(n) * q for n, q in zip(nu, r, strict=True)) for r in vertices]
    squares = [sum(q * q for q in r) for r in vertices]
    means = [sum(a * q for a, q in zip(x, r, strict=True)) for r in vertices]
    histogram = 1 - price - max(a - b for a, b in zip(squares, priced, strict=True))
    total = sum(p * a * a for p, a in zip(prior, x, strict=True)) - price
    total -= max(m * m - b for m, b in zip(means, priced, strict=True))
    problems = [problem_of(prior, optdp.log(ratio), task) for task in (HISTOGRAM, Aggregate("sum", values))]
    assert 0 <= max(histogram, 0) - LIPCertificate("vertices", tuple(nu)).proven(problems[0]) < Fraction(1, 2**140)
    # Rounded outward and tightened: no coordinate can be beyond what the others leave.
    lo = [
        max(p / ratio, 1 - sum(min(q * ratio, 1) for k, q in enumerate(prior) if k != i)) for i, p in enumerate(prior)
    ]
    hi = [min(p * ratio, 1 - sum(q / ratio for k, q in enumerate(prior) if k != i)) for i, p in enumerate(prior)]

    def above(slopes, level):
        return level + sum(max(a * (s - level), b * (s - level)) for a, b, s in zip(lo, hi, slopes, strict=True))

    level = Fraction(float(rng.normal() * rng.choice([0.01, 0.1, 1.0])))
    chord = above([a + b - Fraction(n) for a, b, n in zip(lo, hi, nu, strict=True)], level)
    chord = 1 - price - chord + sum(a * b for a, b in zip(lo, hi, strict=True))
    proven = LIPCertificate("chord", tuple(nu), ((0.0, float(level)),)).proven(problems[0])
    assert 0 <= max(chord, 0) - proven < Fraction(1, 2**140) and proven <= max(histogram, 0)
    t = np.sort(rng.uniform(-1, 1, rng.integers(1, 6)) * rng.choice([0.5, 2.0])).tolist()
    knots = tuple((a, float(rng.normal() * rng.choice([0.0, 0.01, 0.1, 1.0]))) for a in t)
    ends = (min(means), knots[0][1]), (max(means), knots[-1][1])
    pieces = [(min(ends[0][0], Fraction(t[0])), ends[0][1]), *knots, (max(ends[1][0], Fraction(t[-1])), ends[1][1])]
    tops = [
        (Fraction(a), above([2 * Fraction(a) * v - Fraction(n) for v, n in zip(x, nu, strict=True)], Fraction(b)))
        for a, b in pieces
    ]
    sigma = [u - a * a for a, u in tops]
    for (a, u), (b, v) in pairwise(tops):
        if a < b and a < (best := (v - u) / (b - a) / 2) < b:
            sigma.append(u + (v - u) * (best - a) / (b - a) - best * best)
    second = sum(p * a * a for p, a in zip(prior, x, strict=True))
    proven = LIPCertificate("knots", tuple(nu), knots).proven(problems[1])
    assert 0 <= max(second - price - max(sigma), 0) - proven < Fraction(1, 2**140) and proven <= max(total, 0)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=5), st.sampled_from([Fraction(11, 10), Fraction(2), Fraction(9)]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_under_ldp_knots_of_a_sum_bound_what_is_between_them(weights, ratio, seed):
    """The largest sum of P_i max(c_i, R c_i): few knots are above it, many near it."""
    rng, d = np.random.default_rng(seed), len(weights)
    prior = [Fraction(w, sum(weights)) for w in weights]
    values = tuple((rng.integers(-4, 5, d) / 2).tolist())
    centre = Fraction(float(sum(p * Fraction(v) for p, v in zip(prior, values, strict=True))))
    x = [Fraction(v) - centre for v in values]
    nu = [float(v * v) * rng.uniform(0.2, 1) + float(rng.normal() * rng.choice([0.01, 0.3])) for v in x]
    worst = Fraction(0)  # Z (phi - nu.r) over all sets of high categories
    for high in product((1, ratio), repeat=d):
        joint = [p * s for p, s in zip(prior, high, strict=True)]
        mean = sum(a * q for a, q in zip(x, joint, strict=True))
        worst = max(worst, mean * mean / sum(joint) - sum(Fraction(n) * q for n, q in zip(nu, joint, strict=True)))
    dual = sum(p * (a * a - Fraction(n)) for p, a, n in zip(prior, x, nu, strict=True)) - worst
    problem = problem_of(prior, optdp.log(ratio), Aggregate("sum", values), "ldp")
    for count in (*range(1, 12), 300):
        places = np.linspace(-4, 4, 302)[1:-1] if count == 300 else np.sort(rng.uniform(-2, 2, count))
        knots, short = tuple((t, 0.0) for t in places.tolist()), 1e-2 * float(ratio) if count == 300 else None
        proven = LIPCertificate("knots", tuple(nu), knots).proven(problem)
        if short is None:  # what a choice that is wrong somewhere between two knots costs, from the definition
            cuts, said = (
                [min(x), *(Fraction(t) for t, _ in knots if min(x) < Fraction(t) < max(x)), max(x)],
                Fraction(0),
            )
            for a, b in pairwise(cuts):
                c = [lambda t, v=v, n=n: 2 * t * v - t * t - Fraction(n) for v, n in zip(x, nu, strict=True)]
                high = [f((a + b) / 2) > 0 for f in c]
                joint = [p * ratio if h else p for p, h in zip(prior, high, strict=True)]
                t = min(max(sum(q * v for q, v in zip(joint, x, strict=True)) / sum(joint), a), b)
                wrong = [-min(f(a), f(b)) if h else f(min(max(v, a), b)) for f, h, v in zip(c, high, x, strict=True)]
                lost = sum(p * (ratio - 1) * max(w, 0) for p, w in zip(prior, wrong, strict=True))
                said = max(said, sum(q * f(t) for q, f in zip(joint, c, strict=True)) + lost)
            assert abs(max(dual + worst - said, 0) - proven) < Fraction(1, 2**120)
        assert proven <= max(dual, 0) and (short is None or proven >= dual - Fraction(short))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=5), st.sampled_from([Fraction(11, 10), Fraction(2), Fraction(9)]),
    st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_under_ldp_chords_of_a_histogram_are_above_every_posterior(weights, ratio, seed):
    """Levels and prices that are of use at some 1/Z and not at others; a fine division loses what chords lose alone."""
    rng, d = np.random.default_rng(seed), len(weights)
    prior = [Fraction(w, sum(weights)) for w in weights]
    problem, sets = problem_of(prior, optdp.log(ratio), notion="ldp"), list(product((False, True), repeat=d))
    for _ in range(4):
        nu = [2 * float(p) * rng.uniform(0.5, 1.5) + float(rng.normal() * rng.choice([1e-3, 0.1])) for p in prior]
        dual = ldp_dual(problem, nu, ratio, sets)
        t = np.sort(rng.uniform(1 / float(ratio), 1, rng.integers(1, 9))).tolist()
        knots = tuple((a, float(rng.normal() * rng.choice([1e-3, 0.1, 1.0]))) for a in t)
        assert LIPCertificate("chord", tuple(nu), knots).proven(problem) <= max(dual, 0)


@pytest.mark.parametrize("weights", [(7, 2, 1), (1, 2, 7), (3, 1), (1, 3), (4, 2, 1, 1)])
@pytest.mark.parametrize("kind", ["sum", "histogram"])
def test_no_prices_and_knots_prove_more_than_is_attained_under_lip(kind, weights):
    """Knots need not reach the ends of what posteriors can be: the last one on each side goes on to there."""
    rng, d = np.random.default_rng(1), len(weights)
    prior = optdp.Prior.of([Fraction(w, sum(weights)) for w in weights])
    problem = problem_of(prior, 1.0, Aggregate("sum", tuple(range(d))) if kind == "sum" else HISTOGRAM)
    best = optdp.solve(problem)
    for _ in range(100):
        shift, place = rng.choice([0.0, 5.0, -5.0]), rng.uniform(-1, 1)  # of all prices alike: nothing changes
        nu = np.array(best.certificate.nu) + rng.normal(size=d) * rng.choice([1e-3, 0.01, 0.1, 1.0]) + shift
        pair = [(float(place + k * rng.uniform(0, 1)), float(rng.normal() - shift)) for k in (0, 1)]
        for method in ["knots"] if kind == "sum" else ["chord", "vertices"]:
            knots = () if method == "vertices" else tuple(pair[: rng.integers(1, 3)])
            assert LIPCertificate(method, tuple(nu.tolist()), knots).proven(problem) <= best.value


# --- for which problems


def test_a_certificate_proves_for_the_problem_that_it_is_handed_or_refuses():
    prior = optdp.Prior.of([0.5, 0.3, 0.2])
    other = optdp.Prior.of([0.5, 0.25, 0.25])
    task = Aggregate("sum", (0.0, 1.0, 2.0))
    of_lip = optdp.solve(problem_of(prior, 1.0, task)).certificate
    easier = problem_of(prior, 2.0, task)
    assert of_lip.bound(easier).value <= optdp.solve(easier).value
    # LDP asks more than LIP: what is proven for the one-sided notion holds for all.
    for notion in ("lip", "lip-lower", "ldp"):
        problem = problem_of(prior, 1.0, task, notion)
        assert LIPCertificate("simplex").bound(problem).value <= optdp.solve(problem).lower_bound * (1 + 1e-12)
    alphabet = optdp.Alphabet(prior.categories)
    risk = optdp.BayesRisk(task, prior)
    refused = {
        "prior of the guarantee": Problem(optdp.LIP(1.0, other), alphabet, risk),
        "alphabet of the prior's categories": Problem(optdp.LDP(1.0), optdp.Alphabet(4), risk),
        "local differential or information privacy": Problem(optdp.ApproxDP(1.0, 0.1), alphabet, risk),
        "eps at most 30": Problem(optdp.LDP(Fraction(10) ** 300), alphabet, risk),
        "best estimate": Problem(optdp.LDP(1.0), optdp.Interval(0, 1), "abs"),
        "not for a histogram": problem_of(prior, 1.0),
        "method must be 'simplex'": problem_of(prior, 1.0, task, "lip-lower"),
        "3 prices for 2": problem_of([0.5, 0.5], 1.0, Aggregate("sum", (0.0, 1.0))),
    }
    for reason, problem in refused.items():
        with pytest.raises(Refusal, match=reason):
            of_lip.bound(problem)
    # A family with fewer mechanisms and constraints leave the bound true.
    fewer = Problem(optdp.LIP(1.0, prior), alphabet, risk, optdp.Piecewise(3), (optdp.Unbiased(),))
    assert of_lip.bound(fewer) == of_lip.bound(problem_of(prior, 1.0, task))


def test_an_exchanged_part_is_accepted_only_if_the_statement_is_true():
    solutions = [
        optdp.solve_lip(prior, eps, task=task, notion=notion)
        for prior in ([0.5, 0.3, 0.2], [0.6, 0.2, 0.2])
        for eps in (0.5, 1.0)
        for task in ("sum", "histogram")
        for notion in ("lip", "lip-lower", "ldp")
    ]
    accepted = 0
    for mine, theirs in product(solutions, repeat=2):
        for part in ("problem", "mechanism", "certificate"):
            made = dataclasses.replace(mine, **{part: getattr(theirs, part)})
            if made.verify():
                accepted += 1
                truth = theirs if part == "problem" else mine
                assert made.lower_bound <= truth.value and truth.lower_bound <= made.value
    assert accepted >= 3 * len(solutions)


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=8),
    st.sampled_from([Fraction(11, 10), Fraction(3, 2), Fraction(5), Fraction(1000)]),
    st.integers(0, 2**32 - 1),
)
def test_branch_and_bound_misses_no_set(weights, ratio, seed):
    """Prices of either sign, near the optimum and far from it: what is proven is the largest over all sets, or 0."""
    rng, prior = np.random.default_rng(seed), optdp.Prior.of([Fraction(w, sum(weights)) for w in weights])
    problem, sets = problem_of(prior, optdp.log(ratio), notion="ldp"), list(product((False, True), repeat=len(weights)))
    best = np.array(optdp.solve_lip(prior, optdp.log(ratio), task="histogram", notion="ldp").certificate.nu)
    for nu in (best, best + rng.normal(size=best.size) * 10.0 ** rng.integers(-6, 1), rng.normal(size=best.size) / 4):
        nu = tuple(nu.tolist())
        dual, above = (
            ldp_dual(problem, nu, ratio, sets),
            1 - sum(Fraction(n) * p for n, p in zip(nu, prior.exact, strict=True)),
        )
        assert 0 <= max(min(dual, above), 0) - LIPCertificate("vertices", nu).proven(problem) < Fraction(1, 2**140)


@pytest.mark.parametrize(
    "weights, ratio, nu",
    [
        ([5, 1, 2, 7], 5, (-0.97, -5.64, -2.27, 9.81)),
        ([6, 2, 3, 8], 5, (1.2, -0.96, -0.51, 2.45)),
        ([2, 7, 7, 3, 2], 5, (-0.87, 2.25, 1.77, -0.6, -0.16)),
        ([8, 7, 1, 6, 1], Fraction(3, 2), (13.15, -9.19, -2.97, 0.71, -0.67)),
        ([2, 8, 3, 8], 5, (-6.35, 19.38, -7.43, 3.48)),
        ([7, 1, 6, 8], Fraction(3, 2), (-0.55, 0.04, 0.12, 1.69)),
        ([3, 2, 8, 7], 5, (-3.65, 25.35, 4.21, -0.48)),
    ],
)
def test_two_categories_whose_prices_are_below_0_lift_each_other(weights, ratio, nu):
    """Sets that a bound without such pairs closes too early."""
    problem = problem_of([Fraction(w, sum(weights)) for w in weights], optdp.log(Fraction(ratio)), notion="ldp")
    dual = ldp_dual(problem, nu, Fraction(ratio), product((False, True), repeat=len(nu)))
    above = 1 - sum(Fraction(n) * p for n, p in zip(nu, problem.objective.prior.exact, strict=True))
    assert 0 <= max(min(dual, above), 0) - LIPCertificate("vertices", nu).proven(problem) < Fraction(1, 2**140)


def test_floats_that_hope_for_too_much_prove_nothing(monkeypatch):
    """Floats choose which sets to close; whether they may be is decided in integers."""
    rng, near = np.random.default_rng(3), lip._floats

    def hopeful(numbers, unit):
        found = near(numbers, unit)
        return rng.choice([1.02, 1.2, 2.0]) * found if (found <= 0).all() else found

    monkeypatch.setattr(lip, "_floats", hopeful)
    for _ in range(12):
        weights = rng.integers(rng.choice([1, 30]), 40, size=rng.integers(3, 9)).tolist()
        prior, ratio = (
            optdp.Prior.of([Fraction(w, sum(weights)) for w in weights]),
            Fraction(int(rng.integers(12, 90)), 10),
        )
        problem = problem_of(prior, optdp.log(ratio), notion="ldp")
        best = optdp.solve_lip(prior, optdp.log(ratio), task="histogram", notion="ldp").certificate.nu
        nu = tuple((np.array(best) + rng.normal(-1, 1, size=len(best)) * 10.0 ** rng.integers(-4, 1)).tolist())
        dual = ldp_dual(problem, nu, ratio, product((False, True), repeat=len(weights)))
        above = 1 - sum(Fraction(n) * p for n, p in zip(nu, prior.exact, strict=True))
        assert 0 <= max(min(dual, above), 0) - LIPCertificate("vertices", nu).proven(problem) < Fraction(1, 2**140)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.sampled_from([1.0, 1.1, 2.0, 5.0]))
def test_a_set_is_closed_only_if_no_more_categories_bring_it_above(seed, d, hope):
    """By all subsets of what is left, with floats that hope for too much about where the set begins."""
    rng, near, nb = np.random.default_rng(seed), lip._floats, 2 * lip.BITS
    counts = np.diff([0, *np.sort(rng.choice(39, d - 1, replace=False)) + 1, 40]).tolist()
    prior = optdp.Prior.of([Fraction(w, 40) for w in counts])
    proof = lip._Proof(
        LIPCertificate("vertices", (0.0,) * d), prior, HISTOGRAM, Fraction(int(rng.integers(12, 60)), 10)
    )
    base = 2 * prior.probabilities * rng.uniform(0.2, 1.2) + rng.normal(size=d) * rng.choice([1e-3, 0.05])
    v = np.array([int(Fraction(n) * 2**nb) for n in base.tolist()], dtype=object)

    def states(v):
        """(Z, sum (P s)^2, C) when none of the categories is high, and with each set of them."""
        chosen = [proof._chosen(np.array(high)) for high in product((False, True), repeat=d)]
        return [(int(s.sum()), int((s * s).sum()), int((s * v).sum())) for s in chosen]

    level = max(Fraction((q << nb) - z * c, z * z) for z, q, c in states(v))  # that of the largest is then about 0
    v = v + int(level * Fraction(rng.choice([0.9, 0.99, 0.999, 1.001, 1.01, 1.1]).item()))
    found, calls = states(v), []

    def hopeful(numbers, unit):
        calls.append(unit)
        return near(numbers, unit) * (hope if len(calls) == 1 else 1.0)

    with mock.patch.object(lip, "_floats", hopeful):
        (left,) = proof._not_closed(np.arange(d), v, nb, *(np.array([n], dtype=object) for n in found[0]))
    assert left or max((q << nb) - z * c for z, q, c in found) <= 0


# --- work is counted before it is done


def test_a_proof_that_would_stall_is_refused_at_once():
    began = time.perf_counter()
    for notion, d in (("lip", 40), ("ldp", 300)):
        weights = [2**20 + 37 * i * i for i in range(d)]  # no two alike: about 2^37 vertices of 40
        prior = optdp.Prior.of([Fraction(w, sum(weights)) for w in weights])
        with pytest.raises(Refusal, match=f"more than {VERTICES} vertices"):
            LIPCertificate("vertices", (0.001,) * d).bound(problem_of(prior, 1.0, notion=notion))
    prior = optdp.Prior.of([Fraction(1, 40)] * 40)
    many = tuple((float(k), 0.0) for k in range(250_000))
    with pytest.raises(Refusal, match="250000 knots and 40 categories"):
        LIPCertificate("knots", (0.01,) * 40, many).bound(problem_of(prior, 1.0, Aggregate("sum", tuple(range(40)))))
    assert time.perf_counter() - began < 20


def test_a_huge_uniform_histogram_has_few_vertices():
    prior = optdp.Prior.of([Fraction(1, 500)] * 500)
    bound = LIPCertificate("vertices", (0.0,) * 500).bound(problem_of(prior, optdp.log(2)))
    # A third of the categories at 2/500, the rest at 1/1000: 167 high ones would be too many, one lies between.
    high, low = Fraction(2, 500), Fraction(1, 1000)
    between = 1 - 166 * high - 333 * low
    assert bound.value == pytest.approx(float(1 - 166 * high**2 - between**2 - 333 * low**2), rel=1e-15)


# --- files


@pytest.mark.parametrize(
    "change, message",
    [
        ({"method": "guess"}, "certificate.method = 'guess' is not allowed"),
        ({"nu": [0.0, "1"]}, r"certificate.nu\[1\]"),
        ({"nu": [0.0, math.nan]}, r"certificate.nu\[1\]"),
        ({"nu": []}, "nu and knots are not allowed for the method 'knots'"),
        ({"knots": []}, "nu and knots are not allowed for the method 'knots'"),
        ({"knots": [[0.0, 1.0, 0.5]]}, r"knots\[0\] has 3 entries"),
        ({"knots": [[1.0, 0.0], [0.0, 0.0]]}, "increasing order"),
        ({"knots": [[math.inf, 0.0]]}, r"certificate.knots\[0\]\[0\]"),
        ({"knots": {"t": 1}}, "must be a list"),
        ({"method": "simplex"}, "not allowed for the method 'simplex'"),
        ({"bound": 1.0}, "unknown field 'bound'"),
    ],
)
def test_files_are_checked_field_by_field(change, message):
    data = LIPCertificate("knots", (0.0, 1.0), ((0.0, 0.5), (1.0, 0.5))).to_dict()
    assert Certificate.from_dict(data).to_dict() == data
    with pytest.raises(FieldError, match=message):
        Certificate.from_dict({**data, **change})


@pytest.mark.parametrize("weights", [(0.9, 0.1), (0.3, 0.3, 0.4), (0.7, 0.2, 0.1)])
def test_bounds_are_rounded_down(weights):
    solution = optdp.solve_lip(weights, 1.0, task="histogram")
    exact = solution.certificate.proven(solution.problem)
    found = Fraction(solution.certificate.bound(solution.problem).value)
    assert found < exact < found * (1 + Fraction(1, 2**51))

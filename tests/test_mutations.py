"""Directions of rounding: what would go unnoticed at 2^-60 is made large, and every mutation of a direction must show.

e^eps is enclosed to some 2^-55; a bound that is rounded to a float looks the same whichever end of the enclosure is taken. Here
the enclosure is widened to a share of 10^-4. A certificate must then prove less than before, and never more than is true; a
mechanism must be more private than before. With the two ends exchanged in one module (the mutation) both fail.
"""

import math
from contextlib import suppress
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

import optdp
from optdp.certificates.base import Refusal
from optdp.certificates.pair import PairCertificate
from optdp.certificates.plane import PlaneCertificate
from optdp.exact import enclosures
from optdp.mechanisms.additive import AdditiveMechanism
from tests.solutions import MAKE, often, solution

WIDTH = 1e-4
EXP = enclosures.exp


def wide(eps):
    """An enclosure of e^eps that is valid and poor."""
    return EXP(eps) * arb(1, WIDTH)


def widened():
    return mock.patch.object(enclosures, "exp", wide)


def coarse():
    """The last rounding, too: a 32nd part downwards or upwards instead of an ulp."""
    ends = {name: partial(lambda end, sign, x: end(x) + sign * abs(end(x)) / 32, getattr(enclosures, name), sign)
            for name, sign in (("round_down", -1), ("round_up", 1))}  # fmt: skip
    return mock.patch.multiple(enclosures, **ends)


def exchanged(module):
    """The mutation: in one module, e^eps from below where it should be from above, and the reverse."""
    ends = {"exp_above": enclosures.exp_below, "exp_below": enclosures.exp_above}
    mutant = SimpleNamespace(**{n: getattr(enclosures, n) for n in dir(enclosures) if not n.startswith("__")} | ends)
    return mock.patch(f"{module}.enclosures", mutant)


def bound(certificate, problem):
    try:
        return certificate.bound(problem).value
    except Refusal:
        return None


#: Certificates that take a rational end of the enclosure, a solution with a tight bracket, and whether a proof with the wrong
#: end shows as a bound above the value (it does where multipliers need no feasibility).
DUALS = {
    "optdp.certificates.finite": ["finite hamming", "finite ordered", "finite ordered prior", "finite hamming eps=2"],
    "optdp.certificates.additive": ["additive", "additive squared", "additive discrete", "additive power 1.5"],
    "optdp.certificates.spike": ["additive eps=14", "additive eps=20 integers", "additive eps=16 integers of 2"],
    "optdp.certificates.frequency": ["frequency sets", "frequency eps=2"],
    "optdp.certificates.plane": ["plane", "plane squared"],
    "optdp.certificates.lip": ["lip sum", "lip histogram", "lip lower", "lip ldp", "lip ldp histogram"],
}
CASES = [(module, name) for module, names in DUALS.items() for name in names]


@pytest.mark.parametrize(("module", "name"), CASES)
def test_duals_prove_less_with_a_wider_exponential(module, name):
    own = solution(name)
    before = bound(own.certificate, own.problem)
    with widened():
        after = bound(own.certificate, own.problem)
    assert after is None or after <= before <= own.value


def direction_is_right(module, name):
    """Whether the module uses the end of the enclosure that can only weaken the bound."""
    own = solution(name)
    before = bound(own.certificate, own.problem)
    with widened():
        after = bound(own.certificate, own.problem)
    return after is None or after < before


@pytest.mark.parametrize(("module", "name"), CASES)
def test_an_exchanged_end_is_noticed(module, name):
    """The check above passes on the code as it is and fails on its mutant: the survivors of earlier mutation runs are killed."""
    assert direction_is_right(module, name)
    with exchanged(module):
        assert not direction_is_right(module, name)


@pytest.mark.parametrize("name", ["kernel abs", "kernel outputs", "kernel eps=2"])
def test_the_proof_in_balls_takes_the_upper_end(name):
    """Where thresholds rest on e^eps (g falls below 0), a wider ball proves less; its lower end alone would prove more."""
    own = solution(name)
    certificate = own.certificate
    greedy = replace(
        certificate, point_reaches=tuple(t + 1e-3 for t in certificate.point_reaches),
        reaches=tuple(tuple(t + 1e-3 for t in row) for row in certificate.reaches),
    )  # fmt: skip
    before = bound(greedy, own.problem)
    with widened():
        after = bound(greedy, own.problem)
    with mock.patch.object(enclosures, "exp", lambda eps: EXP(eps) * (1 - WIDTH)):
        wrong = bound(greedy, own.problem)
    assert 0 < after < before < wrong and before < own.lower_bound


@pytest.mark.parametrize("name", often(n for n in MAKE if "log" not in n and "'0.1'" not in n))
def test_no_certificate_gains_from_a_poor_enclosure(name):
    """Every certificate, those in ball arithmetic too: with e^eps known to 10^-4 only, or rounded far down, it proves no more."""
    own = solution(name)
    with coarse():
        before = bound(own.certificate, own.problem)
        with widened():
            after = bound(own.certificate, own.problem)
    assert after is None or after <= before <= own.lower_bound


@pytest.mark.parametrize(
    "name", ["kernel abs", "finite hamming", "additive", "lip ldp", "piecewise abs", "ptt I", "composite A1B1"]
)
def test_mutants_of_all_certificates_are_below_the_truth_at_larger_eps(name):
    """A bound for eps is one for every smaller eps, and with the exact multipliers it falls with eps."""
    own = solution(name)
    values = []
    for shift in (0.0, 1e-9, 1e-6, 1e-3):
        privacy = replace(own.problem.privacy, eps=own.problem.privacy.eps + shift)
        values.append(bound(own.certificate, replace(own.problem, privacy=privacy)) or 0.0)
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]


# --- attained exactly, in rationals: e^eps = 3


def randomised_response():
    """Two letters, Hamming loss, e^eps = 3: the optimum is exactly 1/4."""
    return optdp.solve_kernel(optdp.log(3), [[0, 1], [1, 0]], domain=optdp.Alphabet(2))


def test_a_bound_that_is_attained_exactly():
    """The bound is 1/4 at log(3), and at the floats around it on the right side of the truth by one ulp at most."""
    own = randomised_response()
    assert own.verify() and own.lower_bound <= 0.25 <= own.value
    near = float(optdp.log(3))
    below, above = Fraction(enclosures.exp_below(near, 200)), Fraction(enclosures.exp_above(near, 200))
    for eps, growth in ((near, above), (optdp.log(3), Fraction(3))):
        problem = replace(own.problem, privacy=optdp.LDP(eps))
        assert Fraction(bound(own.certificate, problem)) <= 1 / (1 + (below if growth is above else growth))


# --- mechanisms: e^eps from below


MECHANISMS = {
    "optdp.mechanisms.piecewise": lambda: optdp.solve_piecewise(1.0),
    "kernel": lambda: optdp.solve_kernel(1.0, rtol=0.05),
    "optdp.mechanisms.composite": lambda: optdp.solve_composite(1.0),
    "optdp.design.additive.approximate": lambda: optdp.solve_additive(1.0, 0.1, rtol=0.05),
}

#: Where the floor of a mechanism is rounded, if not where it is defined.
ROUNDED_IN = {"kernel": "optdp.mechanisms.piecewise"}


def private(module):
    """Whether the mechanism that is made with a poor enclosure keeps eps = 1 when it is known well."""
    with widened():
        made = MECHANISMS[module]()
    return all(check.passed for check in made.mechanism.check_privacy(made.problem.privacy))


@pytest.mark.parametrize("module", list(MECHANISMS))
def test_mechanisms_take_the_lower_end(module):
    assert private(module)
    with exchanged(ROUNDED_IN.get(module, module)):
        try:
            kept = private(module)
        except (ValueError, ArithmeticError, RuntimeError, AssertionError):
            kept = False  # it does not even come about
        assert not kept


def told_within(noise, least, mu):
    """What is said about privacy near the least delta that `noise` has at eps = 1, and the least mu that LDP(1.0) implies."""
    for share in (1 - Fraction(1, 10**6), 1 + Fraction(1, 10**6)):
        pair, pairs = optdp.ApproxDP(1.0, least * share), optdp.Profile([(1.0, least * share), (3.0, 0.9)])
        yield from (noise.satisfies(pair), noise.satisfies(pairs), pairs.admits(noise.pair(2)))
        yield from (check.passed or None for notion in (pair, pairs) for check in noise.check_privacy(notion)[:1])
        yield optdp.GDP(mu * share).implied_by(optdp.LDP(1.0))
    lines = (
        ((optdp.log(3), 0.0), 0.5, (3 - math.exp(0.5)) / 4),
        ((1.0, 0.0), optdp.log("3/2"), (math.e - 1.5) / (math.e + 1)),
    )
    for pure, eps, delta in lines:  # in each one of two numbers is rounded
        yield None if optdp.Profile([pure]).delta_at(eps) >= delta * (1 - 1e-12) else True
    yield None if noise.delta(1.0) >= least and noise.guarantee().delta >= least else True


def test_with_a_poor_enclosure_privacy_is_neither_affirmed_nor_denied():
    noise = AdditiveMechanism(optdp.Line(), 1.0, 2, (50, 30, 20, 1), eps=1.0)
    least, mu = noise.exact_delta(enclosures.exp_below(1.0, 200)), 2 * float(ndtri(math.e / (1 + math.e)))
    with widened():
        assert set(told_within(noise, least, mu)) == {None}
        for module in ("optdp.problem.privacy", "optdp.mechanisms.additive"):
            with exchanged(module):
                assert set(told_within(noise, least, mu)) != {None}


# --- directions of all other roundings: with balls of few digits less is proven, or nothing


@pytest.mark.parametrize(
    ("name", "digits"),
    [(name, "optdp.certificates.divergence.BITS") for name in ("notion kl squared", "notion rdp", "notion rdp squared")]
    + [(name, "optdp.exact.enclosures.PRECISION") for name in (
        "notion gdp", "notion gdp squared", "notion gdp huber", "ptt I", "ptt II", "composite A1B1", "piecewise abs",
        "piecewise squared", "piecewise root", "piecewise threshold", "piecewise circle squared", "staircase eps=20",
        "additive wide integers delta=0", "additive power 1.5", "additive sensitivity 2")]
    + [(name, f"optdp.certificates.additive.{digits}") for name in ("additive squared", "notion gdp huber", "additive discrete")
       for digits in ("RATIO", "SCALE")]
    + [("notion gdp graded", "optdp.certificates.graded.RATIO"), ("notion rdp steep", "optdp.certificates.peak.BITS"),
       ("notion kl steep", "optdp.certificates.peak.BITS"),
       ("vector cube", "optdp.certificates.cube.PRECISION"),
       ("vector radial", "optdp.certificates.radial.PRECISION"), ("vector ball", "optdp.certificates.vector.PRECISION"),
       ("metric circle", "optdp.certificates.metric_circle.PRECISION")],
)  # fmt: skip
def test_coarse_balls_prove_less(name, digits):
    own = solution(name)
    before = bound(own.certificate, own.problem)
    with mock.patch(digits, 24):
        after = bound(own.certificate, own.problem)
    assert after is None or after < before


# --- numbers that no file could hold: a certificate that is made by hand refuses them, or proves nothing false


def places(value, path=()):
    """Where numbers are in a certificate; of tuples at both ends and in the middle."""
    if isinstance(value, float | int):
        yield path
    elif isinstance(value, tuple):
        for i in sorted({0, len(value) // 2, len(value) - 1} if value else ()):
            yield from places(value[i], (*path, i))
    elif is_dataclass(value):
        for part in fields(value):
            yield from places(getattr(value, part.name), (*path, part.name))


def put(value, path, change):
    """`value` with another number at a place."""
    if not path:
        return change(value)
    if isinstance(value, tuple):
        return (*value[: path[0]], put(value[path[0]], path[1:], change), *value[path[0] + 1 :])
    return replace(value, **{path[0]: put(getattr(value, path[0]), path[1:], change)})


@pytest.mark.parametrize(
    "name",
    ["notion kl", "notion rdp squared", "notion gdp graded", "notion gdp lattice", "additive squared", "finite ordered",
     "metric points", "metric line", "plane", "vector radial", "vector cube", "lip sum", "kernel unbiased"],
)  # fmt: skip
def test_numbers_made_by_hand_prove_nothing_false(name):
    own = solution(name)
    for path in places(own.certificate):
        for change in (
            lambda v: -v,
            lambda v: -1 - v,
            lambda v: 2 * v,
            lambda v: v * math.inf if type(v) is float else v,
        ):
            try:
                proven = put(own.certificate, path, change).bound(own.problem).value
            except (ValueError, TypeError):
                continue
            assert proven <= own.value, path


@pytest.mark.parametrize("name", ["plane", "vector cube", "additive squared"])
def test_rationals_made_by_hand_prove_the_same(name):
    """And what they must not be is refused in the same words as a float."""
    own = solution(name)
    for path in places(own.certificate):
        same = put(own.certificate, path, lambda v: Fraction(v) if type(v) is float else v)
        assert same.bound(own.problem).value == own.certificate.bound(own.problem).value, path
    for path in places(own.certificate):
        with suppress(Refusal):
            put(own.certificate, path, lambda v: Fraction(1, 3) if type(v) is float else v).bound(own.problem)


def test_points_made_by_hand_have_two_coordinates():
    square = optdp.Problem(optdp.LDP(1.0), optdp.Box((0, 0), (1, 1)), "abs")
    for points in (((0.5,),), ((0.5, 0.5, 0.5),), ((),), ((0.5, 0.7),), ((math.nan, 0.5),), ((0.5, math.nan),)):
        with pytest.raises(Refusal, match="two coordinates"):
            PlaneCertificate(points, (1.0,), (0.2,)).bound(square)


# --- multipliers near the least floats: rationals hold them, products of floats do not


TINY = (5e-324, 1e-320, 1e-310)
SLOPE = optdp.PairLoss(lambda x, y: 0.01 * np.abs(y - x), "slope", 0.01)
UNIT = optdp.Problem(optdp.LDP(0.1), (0, 1), SLOPE)


@pytest.mark.parametrize("weight", TINY)
def test_tiny_weights_prove_no_more_than_others(weight):
    """Only ratios of weights count: with all of them tiny the same is proven, and never more than a constant output loses."""
    for t in (1e-4, 1e-3, 0.4):
        pair, plain = (PairCertificate((0.0, 0.5, 1.0), (w,) * 3, (t,) * 3).bound(UNIT).value for w in (weight, 1.0))
        assert pair == plain <= 0.005
    square = optdp.Problem(optdp.LDP(1.0), optdp.Box((0, 0), (1, 1)), "abs")
    for t in (0.2, 100.0):
        plane, plain = (
            PlaneCertificate(((0.5, 0.5), (0.0, 0.0)), (w,) * 2, (t,) * 2).bound(square).value for w in (weight, 1.0)
        )
        assert plane == pytest.approx(plain, rel=1e-12) and plane <= 0.71
    assert PlaneCertificate(((0.5, 0.5), (0.0, 0.0)), (1.0, weight), (0.2, 100.0)).bound(square).value <= 0.71
    assert PairCertificate((0.0, 1.0), (1.0, weight), (0.0, 2.0**500)).bound(UNIT).value == 0


def test_tiny_priors_prove_no_more_than_a_constant_output_loses():
    loss = optdp.PairLoss(lambda x, y: 1e-300 * np.abs(y - x), "small", 1e-300)
    for high in (2**500, 2**1040, 2**1085):
        prior = optdp.Prior(weights=(high, 1), categories=(0.0, 1.0))
        problem = optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.Average(loss, prior))
        assert PairCertificate((0.0, 1.0), (), (0.0, 2.0**500)).bound(problem).value <= Fraction(1e-300) / high


magnitudes = st.one_of(st.floats(-323, 150).map(lambda e: 10.0**e), st.sampled_from([0.0, *TINY, 1.0]))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0, 1), magnitudes, magnitudes, st.floats(0, 1)), min_size=1, max_size=4, unique_by=lambda r: r[0]
    ),
    st.floats(-318, 140), st.sampled_from([0.1, 5.0, 30.0]), st.booleans(), st.sampled_from([None, "uniform", "points"]),
)  # fmt: skip
def test_no_multipliers_of_any_size_prove_more_than_a_constant_output_loses(rows, power, eps, near, prior):
    """Weights, thresholds and losses of all magnitudes, thresholds also near the loss."""
    scale = 10.0**power
    points, weights, thresholds, shares = zip(*sorted(rows), strict=True)
    if near:
        thresholds = tuple(scale * share for share in shares)
    loss = optdp.PairLoss(lambda x, y: scale * np.abs(y - x), "loss", scale)
    asked, most = {None: (None, 1 / 2), "uniform": ("uniform", 1 / 4), "points": (([0.0, 1.0], [0.5, 0.5]), 1 / 2)}[
        prior
    ]
    objective = optdp.WorstCase(loss) if asked is None else optdp.Average(loss, asked)
    problem = optdp.Problem(optdp.LDP(eps), (0, 1), objective)
    certificate = PairCertificate(points, () if prior else weights, thresholds, 9 if prior == "uniform" else 0)
    with mock.patch("optdp.certificates.pair.PAIRS", 2**16), np.errstate(over="ignore"):
        try:
            proven = certificate.bound(problem).value
        except Refusal:
            return
    assert proven <= scale * most * (1 + 1e-9)

"""Losses in polynomial pieces: below and above the values, close to them, and nondecreasing wherever the loss is."""

import math
from fractions import Fraction

import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import example, given, settings

import optdp
from optdp.exact import polynomial
from optdp.exact.sweep import horner
from optdp.mechanisms.kernel import KernelMechanism

FUNCTIONS = {
    "exponential": (lambda d: np.expm1(3 * d), "convex"),
    "hinge": (lambda d: np.maximum(d - 0.3, 0.0) ** 2, "convex"),
    "kink": (lambda d: np.abs(d - 0.41) + d, "convex"),
    "root": (np.sqrt, "concave"),
    "logarithm": (lambda d: np.log1p(10 * d), "concave"),
    "jumps": (lambda d: d + 0.2 * (d > 0.123) + 0.5 * (d >= 0.7), None),
    "constant": (lambda d: 0 * d + 1.0, None),
    "wave": (lambda d: d + np.sin(40 * d) / 41, None),
}


def rises(branches):
    """Whether pieces are proven nondecreasing in |u| up to 1, jumps included."""
    knots = [k for k in branches.knots if k > 0]
    rows = branches.rows[len(branches.rows) - len(knots) - 1 :]
    ends = [Fraction(0), *knots, Fraction(1)]
    slopes = ([k * a for k, a in enumerate(row)][1:] or [Fraction(0)] for row in rows)
    inside = all(polynomial.nonnegative(s, a, b) for s, a, b in zip(slopes, ends, ends[1:], strict=False) if a < b)
    return inside and all(horner(p, k) <= horner(q, k) for k, p, q in zip(knots, rows, rows[1:], strict=False))


@given(
    st.floats(0.01, 100),
    st.fractions(Fraction(1, 1000), 1000, max_denominator=1000),
    st.fractions(0, 1, max_denominator=10**4),
)
@example(1.5, Fraction(1), Fraction(1))
@example(0.01, Fraction(1), Fraction(0))
@settings(max_examples=8, deadline=None)
def test_powers_lie_between_their_pieces(q, unit, u):
    power = optdp.Power(q)
    below, above = (power.branches(unit, side) for side in (True, False))
    assert below.even and above.even and rises(below) and rises(above)
    with ctx.workprec(300):
        exact = (
            arb(str(u.numerator)) / arb(str(u.denominator)) * arb(str(unit.numerator)) / arb(str(unit.denominator))
        ) ** arb(q)
        low, high = (arb(b(u).numerator) / arb(b(u).denominator) for b in (below, above))
        assert not low > exact and not high < exact
        if u > Fraction(1, 2):
            assert high - low <= 4e-6 * above(Fraction(1))


@pytest.mark.parametrize("declared", [True, pytest.param(False, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_users_function_lies_between_few_pieces(name, declared):
    function, shape = FUNCTIONS[name]
    loss = optdp.CustomLoss(function, 2.0, shape if declared else None)
    stretched = lambda d: float(function(np.array([d]))[0])  # noqa: E731
    below, above = (loss.branches(Fraction(2), side) for side in (True, False))
    assert rises(below) and rises(above) and max(len(below.rows), len(above.rows)) <= 96
    rng = np.random.default_rng(1)
    points = np.concatenate(
        [[0.0, 1.0], rng.random(150), 10.0 ** -rng.uniform(1, 8, 50), loss.reach * np.arange(9) / 16]
    )
    top, gaps = stretched(2.0), []
    for u in np.clip(points, 0, 1):
        low, high, value = float(below(Fraction(u))), float(above(Fraction(u))), stretched(2 * u)
        assert low <= value * (1 + 1e-15) and (value <= high * (1 + 1e-15) or u in map(float, above.knots))
        gaps.append(high - low)
    assert np.median(gaps) <= 2e-4 * top or name == "constant"


@pytest.mark.parametrize(
    ("function", "q"),
    [(lambda d: d * d + d, 1.0), (np.sqrt, 0.5), (lambda d: np.minimum(d, 0.1), 1.0)],
    ids=["sum", "root", "capped"],
)
@pytest.mark.parametrize("eps", [0.5, 20.0])
def test_pieces_of_a_users_function_are_close_where_the_windows_of_an_epsilon_are(function, q, eps):
    """They were as far from it everywhere as at the largest distance, so that little was proven at large eps."""
    loss = optdp.CustomLoss(function, 1.0)
    below, above = (loss.branches(Fraction(1), side, eps) for side in (True, False))
    assert rises(below) and rises(above)
    for u in (math.exp(-eps / (1 + q)) / 2, 0.04, 0.5):
        value = float(function(u))
        low, high = float(below(Fraction(u))), float(above(Fraction(u)))
        assert low <= value * (1 + 1e-14) and value <= high * (1 + 1e-14) and high - low <= 2e-4 * value


def test_pieces_tell_where_a_kink_is():
    """The meshes follow it: told 1e-4 beside its place, mechanisms lost 4e-4 more than they must, however long it took."""
    loss = optdp.CustomLoss(lambda d: np.maximum(d - 0.1, 0), 1.0, "convex")
    assert min(abs(float(k) - 0.1) for k in loss.branches(Fraction(1), True, 2.0).knots) < 5e-5


@pytest.mark.parametrize("eps", [0.01, 0.5])
def test_pieces_rise_where_the_next_one_begins_below_the_least_value(eps):
    """What such a piece lacked of its neighbour was more than it rises at all, and less that share it fell."""
    loss = optdp.CustomLoss(lambda d: d**22 + 5e-6 * (d >= 0.574), 1.0)
    assert all(rises(loss.branches(Fraction(1), side, eps)) for side in (True, False))


@pytest.mark.parametrize(("reach", "most"), [(1e200, 1.0), (1e-200, 1.0), (1.0, 1e150)])
def test_a_users_function_may_have_any_units(reach, most):
    """The middle of two distances of 1e155 was infinite, so that there was one piece for all; warnings are errors here."""
    loss = optdp.CustomLoss(lambda d: most * (d >= reach / 8), reach)
    below, above = (loss.branches(Fraction(reach), side, 8.0) for side in (True, False))
    before, after = (Fraction(1, 8) + sign * Fraction(1, 2**19) for sign in (-1, 1))
    assert below(before) <= 0 <= above(before) < most / 1e9 and most * 0.999 < below(after)


def test_stretches_where_nothing_changes_are_one_piece():
    """A step was found by halving, and each half was a piece."""
    for below in (True, False):
        pieces = optdp.CustomLoss(lambda d: (d > 0.2) * 1.0, 1.0).branches(Fraction(1), below)
        assert pieces.flat and len(pieces.rows) == 3  # at most a step to each side


@pytest.mark.parametrize("at", [1 / 3, pytest.param(1.0, marks=pytest.mark.soak)])
def test_jumps_of_a_users_function_are_between_two_floats(at):
    for function in (lambda d: d + (d >= at), lambda d: d + (d > math.nextafter(at, 0.0))):
        below, above = (optdp.CustomLoss(function, 1.0).branches(Fraction(1), side) for side in (True, False))
        assert Fraction(at) in below.knots and below.upper and Fraction(math.nextafter(at, 0.0)) in above.knots
        assert 1 <= below(Fraction(at)) <= 1 + Fraction(at) and above(Fraction(math.nextafter(at, 0.0))) < Fraction(
            11, 10
        )


def test_a_function_has_no_pieces_beyond_where_it_was_sampled():
    loss = optdp.CustomLoss(np.sqrt, 1.0, "concave")
    assert loss.branches(Fraction(1), True) is not None
    assert loss.branches(Fraction(2), True) is None
    assert optdp.CustomLoss(np.sqrt).branches(Fraction(1), True) is None


@pytest.mark.parametrize("q", [1.5, 0.7])
def test_losses_far_outside_the_domain_are_enclosed(q):
    edges = np.array([-3.0, -1.0, 0.5, 2.0, 5.0])
    mechanism = KernelMechanism.private(1.0, [1, 2, 2, 1], edges[:-1], edges[1:], 0.3)
    low, high = mechanism.enclose(optdp.WorstCase(optdp.Power(q)))
    x = np.linspace(0, 1, 2001)
    numeric = float(mechanism.expected_loss(x, optdp.Power(q)).max())
    assert low <= high and numeric <= high * (1 + 1e-9) and high <= numeric * (1 + 1e-4)


@pytest.mark.parametrize("q", [0.1, 0.5, 1.5, 4.5, 33.5])
@pytest.mark.parametrize("eps", [1.0, 30.0])
def test_pieces_are_close_where_the_windows_of_an_epsilon_are(eps, q):
    """They ended at 2^-24, beside which windows are narrow at large eps, or where large powers are next to nothing already:
    nothing was proven there.
    """
    below, above = (optdp.Power(q).branches(Fraction(1), side, eps) for side in (True, False))
    assert rises(below) and rises(above)
    u = Fraction(math.exp(-eps / (1 + q)) / 2)
    assert 1 <= above(u) / below(u) <= 1 + 5e-6


def test_what_rounding_to_cells_adds_to_a_concave_loss_is_that_of_losses_in_the_window():
    """At large eps the window is few cells: that of losses anywhere was 20 % of the value."""
    mechanism = KernelMechanism.private(30.0, [1.0], [0.0], [1.0], 2.0**-24)
    x, law = np.concatenate([np.geomspace(1e-12, 0.5, 500), np.linspace(0, 1, 501)]), optdp.Power(0.8)
    low, high = mechanism.enclose(optdp.WorstCase(law))
    assert low <= float(mechanism.expected_loss(x, law).max()) <= high <= low * (1 + 1e-5)


def test_the_root_is_that_of_forty_digits():
    below = optdp.Power(0.5).branches(Fraction(1), True)
    for u in (Fraction(1, 3), Fraction(1, 10**5), Fraction(999, 1000)):
        gap = (
            mpmath.sqrt(mpmath.mpf(u.numerator) / u.denominator) - mpmath.mpf(below(u).numerator) / below(u).denominator
        )
        assert 0 <= gap <= 3e-6 * math.sqrt(u)


@pytest.mark.parametrize(
    "loss",
    [optdp.Power(1.5), optdp.Huber(0.1), optdp.Pinball(0.25), optdp.CustomLoss(lambda d: np.expm1(3 * d), shape="convex")],
    ids=lambda loss: loss.name,
)  # fmt: skip
def test_kernels_for_other_losses_are_bracketed(loss):
    solution = optdp.solve_kernel(1.0, loss)
    assert solution.gap <= 1e-3 and solution.verify()
    assert solution.certificate.bound(solution.problem).assumptions == solution.problem.loss.assumptions
    x = np.linspace(0, 1, 101)
    if loss.form == "distance":
        assert solution.mechanism.expected_loss(x, loss).max() <= solution.value * (1 + 1e-9)


def test_pieces_of_large_losses_give_no_warning():
    assert optdp.CustomLoss(lambda d: 1e200 * d, 1.0).branches(Fraction(1), True) is not None

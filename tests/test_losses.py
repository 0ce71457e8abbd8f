"""Losses: values, integrals and enclosures against quadrature to 40 digits; declared properties against the values."""

import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import hypothesis.strategies as st
import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import assume, example, given

import optdp
from optdp.exact import enclosures
from optdp.problem.losses import DistanceLoss, Loss, MatrixLoss, as_loss

mpmath.mp.dps = 40


def rationals(low, high, most=1000):
    return st.fractions(low, high, max_denominator=most)


@st.composite
def nondecreasing_pieces(draw):
    """Random nondecreasing piecewise polynomials: each piece an increasing polynomial of (d - b), above the one before."""
    breaks = [Fraction(0), *sorted(draw(st.sets(rationals(Fraction(1, 50), 3, 50), max_size=3)))]
    rows, level = [], draw(rationals(0, 1, 20))
    for i, b in enumerate(breaks):
        slopes = draw(st.lists(rationals(0, 2, 20), min_size=1, max_size=3))
        level += draw(st.sampled_from([Fraction(0), Fraction(0), Fraction(1, 3)])) if i else 0
        row = [level]
        for k, a in enumerate(slopes, 1):  # add a (d - b)^k
            row += [Fraction(0)] * (k + 1 - len(row))
            for j in range(k + 1):
                row[j] += a * math.comb(k, j) * (-b) ** (k - j)
        rows.append(tuple(row))
        if i + 1 < len(breaks):
            step = breaks[i + 1] - b
            level += sum(a * step**k for k, a in enumerate(slopes, 1))
    return optdp.Pieces(tuple(breaks), tuple(rows))


DISTANCE = st.one_of(
    st.floats(0.01, 20).map(optdp.Power),
    st.sampled_from([optdp.Power(1), optdp.Power(2), optdp.Power(0.5), optdp.Power(100)]),
    st.floats(1e-3, 10).map(optdp.Huber),
    st.floats(0, 3).map(optdp.Threshold),
    nondecreasing_pieces(),
)


def value(loss, d):
    """L(d) to 40 digits, written again from the definitions."""
    d = mpmath.mpf(d)
    match loss.tag:
        case "power":
            return d ** mpmath.mpf(loss.exponent)
        case "huber":
            c = mpmath.mpf(loss.corner)
            return d**2 / 2 if d <= c else c * (d - c / 2)
        case "threshold":
            return mpmath.mpf(1 if d > mpmath.mpf(loss.limit) else 0)
    row = next(r for b, r in reversed(list(zip(loss.breaks, loss.coefficients, strict=True))) if mp(b) <= d)
    return mpmath.polyval([mp(a) for a in reversed(row)], d)


def mp(f):
    if isinstance(f, mpmath.mpf):
        return f
    f = Fraction(f)
    return mpmath.mpf(f.numerator) / f.denominator


def corners(loss):
    if loss.tag == "pieces":
        return [mp(b) for b in loss.breaks[1:]]
    return [mp(getattr(loss, name)) for name in ("corner", "limit") if hasattr(loss, name)]


def integral(loss, d, of=lambda v: v):
    """int_0^d of(L), cut at the corners (and at 0, where powers are not smooth: there exactly)."""
    if loss.tag == "power" and of(mpmath.mpf(7)) == 7:
        q = mpmath.mpf(loss.exponent)
        return mp(d) ** (q + 1) / (q + 1)
    cuts = [mpmath.mpf(0), *(c for c in sorted(corners(loss)) if 0 < c < mp(d)), mp(d)]
    nudge = mpmath.mpf(10) ** -38
    return sum(
        mpmath.quad(lambda s: of(value(loss, s)), [a + nudge * (b - a), b - nudge * (b - a)])
        for a, b in pairwise(cuts) if b > a
    )  # fmt: skip


def within(ball, true):
    slack = mpmath.mpf(10) ** -25
    with ctx.workprec(enclosures.PRECISION):
        low, high = mp(enclosures.lower(ball)), mp(enclosures.upper(ball))
    room = slack * (1 + abs(true))
    return low - room <= true <= high + room and high - low <= room


@given(DISTANCE, rationals(Fraction(1, 100), 5))
def test_integrals_and_means_are_enclosed(loss, reach):
    with ctx.workprec(enclosures.PRECISION):
        true = integral(loss, reach)
        assert within(loss.integral_ball(reach), true)
        assert within(loss.integral_ball(enclosures.ball(reach)), true)
        assert within(loss.mean_ball(reach) * enclosures.ball(reach), true)
    assert float(loss.integral(float(reach))) == pytest.approx(float(true), rel=1e-9, abs=1e-12)
    assert float(loss(float(reach))) == pytest.approx(float(value(loss, float(reach))), rel=1e-9, abs=1e-12)


@given(DISTANCE, rationals(Fraction(1, 100), 5), st.floats(0, 1))
@example(optdp.Pieces((0,), ((5,),)), Fraction(1), 1.0)
@example(optdp.Pieces((0, 1), ((0,), (1, 1))), Fraction(2), 0.2)
@example(optdp.Threshold(0.0), Fraction(1), 0.5)
@example(optdp.Threshold(0.25), Fraction(1, 8), 0.5)
def test_deficit_is_bounded_from_above_and_tightly(loss, reach, share):
    """int_0^reach (t - L)_+, for thresholds between L(0) and L(reach) and a little outside."""
    low, high = float(loss(0.0)), float(loss(float(reach)))
    assume(high < 1e200)
    t = low + share * (high - low) * 1.1
    with ctx.workprec(enclosures.PRECISION):
        found = loss.deficit_above(t, reach)
    cut = crossing(loss, t, reach)
    true = mpmath.mpf(t) * cut - integral(loss, cut)
    with ctx.workprec(enclosures.PRECISION):
        above = mp(enclosures.upper(found))
    assert above >= true - mpmath.mpf(10) ** -25 * (1 + abs(true))
    if t > low or low == 0:
        assert above <= true + mpmath.mpf(10) ** -20 * (1 + abs(true))


def crossing(loss, t, reach):
    """The largest d <= reach with L(d) <= t, by bisection."""
    low, high = mpmath.mpf(0), mp(reach)
    if value(loss, high) <= t:
        return high
    for _ in range(150):
        middle = (low + high) / 2
        low, high = (middle, high) if value(loss, middle) <= t else (low, middle)
    return low


@given(DISTANCE, st.floats(0, 1))
def test_crossings_are_enclosed(loss, share):
    assume(loss.tag != "threshold")
    t = float(loss(0.0)) + share * float(loss(2.0) - loss(0.0))
    assume(t < 1e100 and (share > 0.01 or t == 0) and mp(t) >= value(loss, 0))  # floats round below L(0) too
    with ctx.workprec(enclosures.PRECISION):
        ball = loss.crossing(enclosures.ball(t))
    if not ball.is_finite():
        assert value(loss, 10**9) <= t
        return
    with ctx.workprec(enclosures.PRECISION):
        low, high = mp(enclosures.lower(ball)), mp(enclosures.upper(ball))
    assert value(loss, max(low * (1 - mpmath.mpf(10) ** -20), 0)) <= t * (1 + mpmath.mpf(10) ** -20)
    assert value(loss, high * (1 + mpmath.mpf(10) ** -15) + mpmath.mpf(10) ** -30) >= t * (1 - mpmath.mpf(10) ** -20)


@given(DISTANCE)
def test_monotone_and_convex_are_true_of_the_values(loss):
    d = np.linspace(0, 2.99714253, 400)  # hits no break
    values = np.array([float(value(loss, x)) for x in d])
    assert loss.monotone and (np.diff(values) >= -1e-9 * abs(values[-1])).all()
    if loss.convex:
        assert (np.diff(values, 2) >= -1e-9 * (1 + abs(values[-1]))).all()
    np.testing.assert_allclose(loss(d), values, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(loss.of(0.5, d), loss(np.abs(d - 0.5)))


def test_convexity_is_known_where_it_holds():
    assert [optdp.Power(q).convex for q in (0.99, 1, 1.5, 2)] == [False, True, True, True]
    assert optdp.Huber(0.3).convex and not optdp.Threshold(0.3).convex
    assert optdp.Pieces((0, 1), ((0, 0, 1), (-1, 2))).convex
    assert not optdp.Pieces((0, 1), ((0, 2), (1, 1))).convex  # a slope that falls
    assert not optdp.Pieces((0, 1), ((0, 1), (2, 1))).convex  # a jump
    assert not optdp.Pieces((0, 1), ((0, 3, -1), (2,))).convex  # concave


@given(DISTANCE)
def test_losses_are_values(loss):
    assert pickle.loads(pickle.dumps(loss)) == loss and hash(loss) == hash(pickle.loads(pickle.dumps(loss)))
    again = Loss.from_dict(json.loads(json.dumps(loss.to_dict())))
    assert again == loss and hash(again) == hash(loss) and again.phrase == loss.phrase and repr(again) == repr(loss)
    assert as_loss(loss) == loss and loss.form == "distance" and loss.assumptions == ""
    assert isinstance(loss.latex(), str) and isinstance(loss.name, str)


def test_distinct_losses_have_distinct_phrases():
    found = [optdp.Power(1), optdp.Power(2), optdp.Power(1 + 2**-52), optdp.Huber(1), optdp.Huber(0.1), optdp.Threshold(0.1),
             optdp.Threshold(0.1 + 1e-16), optdp.Pieces((0,), ((0, 1),)), optdp.Pieces((0,), ((0, "1/3"),)), optdp.Pinball(0.3),
             MatrixLoss(((0, 1), (1, 0))), MatrixLoss(((0, 1), (1, 0.5)))]  # fmt: skip
    assert len({loss.phrase for loss in found}) == len({*found}) == len(found)


# --- refusals

NO_PIECES = {
    "decreasing": ((0,), ((1, -1),)),
    "decreasing in the end": ((0,), ((0, 2, -1),)),
    "decreasing between": ((0, 1, 2), ((0, 1), (1,), ("1/2",))),
    "a dip inside": ((0, 2), ((0, 1, -1), (5,))),
    "negative at 0": ((0,), ((-1, 1),)),
    "no break at 0": ((1,), ((0, 1),)),
    "breaks out of order": ((0, 2, 1), ((0,), (1,), (2,))),
    "equal breaks": ((0, 1, 1), ((0,), (1,), (2,))),
    "no breaks": ((), ()),
    "too few rows": ((0, 1), ((0, 1),)),
    "too many rows": ((0,), ((0, 1), (0, 1))),
    "a row of 33": ((0,), ((0,) * 32 + (1,),)),
}


@pytest.mark.parametrize("case", NO_PIECES)
def test_pieces_refuse(case):
    with pytest.raises(ValueError, match="allowed"):
        optdp.Pieces(*NO_PIECES[case])


@pytest.mark.parametrize("bad", [math.nan, math.inf, "x", None, True, 1j])
def test_pieces_refuse_what_is_no_number(bad):
    with pytest.raises((ValueError, TypeError), match="allowed"):
        optdp.Pieces((0,), ((0, bad),))


@pytest.mark.parametrize("given", [(3, ((0,), (1,))), ((0, 1), (0, 1)), ((0, 1), 5), ("01", ((0,), (1,)))])
def test_pieces_refuse_what_is_no_list_by_name(given):
    with pytest.raises(TypeError, match=r"(breaks|coefficients)( = .*)? is not allowed: .* must be a list of"):
        optdp.Pieces(*given)


def test_pieces_accept_double_roots_of_the_slope():
    """The slope (d - 1/2)^2 touches zero inside; a slope that dips to -1e-9 is refused."""
    half = Fraction(1, 2)
    cubic = (0, half**2, -half, Fraction(1, 3))  # d/4 - d^2/2 + d^3/3, slope (d - 1/2)^2
    assert float(optdp.Pieces((0, 1), (cubic, (1,)))(0.5)) == pytest.approx(1 / 24)
    lowered = (0, half**2 - Fraction(1, 10**9), -half, Fraction(1, 3))
    with pytest.raises(ValueError, match="nondecreasing"):
        optdp.Pieces((0, 1), (lowered, (1,)))


@pytest.mark.parametrize(
    ("make", "names"),
    [(lambda: optdp.Power(0), "exponent"), (lambda: optdp.Power(101), "exponent"), (lambda: optdp.Power("1"), "exponent"),
     (lambda: optdp.Huber(0), "corner"), (lambda: optdp.Huber(math.nan), "corner"), (lambda: optdp.Threshold(-0.1), "limit"),
     (lambda: as_loss("threshold:1"), r"use optdp\.Threshold\(1\)"),
     (lambda: optdp.Pinball(0), "tau"), (lambda: optdp.Pinball(1), "tau"), (lambda: as_loss("l3"), "loss"),
     (lambda: as_loss(3.0), "loss"), (lambda: MatrixLoss(((0, -1), (1, 0))), "loss"), (lambda: MatrixLoss(((0, 1),)), "loss"),
     (lambda: MatrixLoss(((0, math.nan), (1, 0))), "loss"), (lambda: as_loss([[0, 1], [1]]), "loss")],
)  # fmt: skip
def test_refusals_name_the_argument(make, names):
    with pytest.raises((TypeError, ValueError), match=names):
        make()


# --- users' functions


def huber(d):
    return np.where(d <= 0.25, d * d / 2, 0.25 * (d - 0.125))


@pytest.mark.parametrize("shape", [None, "convex"])
def test_a_users_function_is_bracketed(shape):
    mine, exact = optdp.CustomLoss(huber, 1.0, shape), optdp.Huber(0.25)
    for d in (0.1, 0.25, 0.7, 1.0):
        low, high = mine.integral_bracket(d)
        assert low <= exact.integral(d) <= high and high - low <= (1e-6 if shape is None else 1e-11)
        with ctx.workprec(enclosures.PRECISION):
            assert mine.integral_ball(Fraction(d)).overlaps(exact.integral_ball(Fraction(d)))
            t = float(exact(d))
            assert enclosures.upper(mine.deficit_above(t, Fraction(1))) >= enclosures.lower(
                exact.deficit_above(t, Fraction(1))
            )
    assert "sampled" in mine.assumptions and mine.convex is (shape == "convex")


@pytest.mark.parametrize("level", [0.1, 0.7, 0.9])
def test_the_bracket_of_a_constant_holds_it(level):
    """A million equal terms are rounded the same way, one after the other: sums were off by 10,000 times what was allowed for."""
    mine = optdp.CustomLoss(lambda d: 0 * d + level, 1.0)
    for d in (1e-9, 0.3, 1.0):
        low, high = mine.integral_bracket(d)
        assert low <= level * d <= high and high - low <= 1e-14


@pytest.mark.parametrize(
    ("function", "said"),
    [(lambda d: -d, ">= 0"), (lambda d: 1 - d, "nondecreasing"), (lambda d: 1 / d, "finite"), (lambda d: d + 0j, "real"),
     (lambda d: np.sqrt(d), "convex"),
     (lambda d: 1 - 1e-9 * d, "nondecreasing"), (lambda d: d - 0.01 * d * d, "convex")],  # not seen between neighbours
)  # fmt: skip
def test_a_users_function_is_checked(function, said):
    with np.errstate(all="ignore"), pytest.raises((ValueError, TypeError), match=said):
        optdp.CustomLoss(function, 1.0, "convex" if said == "convex" else None)


def test_a_users_function_makes_a_problem_session_only():
    problem = optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.CustomLoss(huber, shape="convex"), optdp.Piecewise(3))
    assert "the user's function L = custom" in problem.statement() or "custom" in problem.statement()
    with pytest.raises(TypeError, match="cannot be saved"):
        problem.to_dict()
    pair = optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.PairLoss(lambda x, y: (y - x) ** 2, name="mine"))
    assert "mine" in pair.statement()
    with pytest.raises(TypeError, match="cannot be saved"):
        pair.to_dict()
    with pytest.raises(ValueError, match=">= 0"):
        optdp.PairLoss(lambda x, y: y - x).of(1.0, 0.0)


def test_pinball():
    loss = optdp.Pinball(0.25)
    np.testing.assert_allclose(loss.of(0.5, np.array([0.0, 0.5, 1.0])), [0.375, 0.0, 0.125])
    assert loss.form == "difference" and not loss.monotone
    assert Loss.from_dict(loss.to_dict()) == loss


def test_a_constant_loss_is_bracketed():
    """Every mechanism loses exactly 5: the bracket closes."""
    solution = optdp.solve_piecewise(1.0, 3, optdp.Pieces((0,), ((5,),)))
    assert solution.verify() and solution.lower_bound > 4.999999 and solution.value < 5.000001


@pytest.mark.parametrize(
    "loss",
    [optdp.Huber(0.2), optdp.Threshold(0.3), optdp.Power(0.5), optdp.Pieces((0, "1/2"), ((0, 1), ("-1/2", 2))),
     optdp.Pieces((0, "1/4"), (("1/10",), (1, 1)))],
)  # fmt: skip
def test_solving_with_each_loss_brackets_the_optimum(loss):
    """Against the one-dimensional program V(w) on a grid of window widths."""
    solution = optdp.solve_piecewise(1.0, 3, loss)
    w = np.concatenate([np.linspace(1e-4, 1, 20001), [0.25, 0.3]])
    growth = math.e - 1
    grid = (loss.integral(1.0) + growth * loss.integral(w)) / (1 + growth * w)
    assert solution.verify() and solution.gap <= 1e-9
    assert solution.lower_bound <= grid.min() + 1e-12 and solution.value >= grid.min() - 1e-6


def test_a_loss_of_ones_own_needs_no_other_file():
    class Root(DistanceLoss):
        tag = ""

        def __call__(self, distance):
            return np.sqrt(distance)

        def integral(self, distance):
            return np.power(distance, 1.5) / 1.5

        def integral_ball(self, distance):
            d = distance if isinstance(distance, arb) else enclosures.ball(distance)
            return d * d.sqrt() * 2 / 3

        def crossing(self, level):
            return level**2

    mine, known = optdp.solve_piecewise(1.0, 3, Root()), optdp.solve_piecewise(1.0, 3, optdp.Power(0.5))
    assert mine.verify() and mine.value == pytest.approx(known.value, rel=1e-9)


# --- functions of users: what they give, and to what they are given


def norm(x, y):
    return np.linalg.norm(y - x)


def test_functions_that_collapse_arrays_are_called_pair_by_pair():
    """A norm makes one number of an array: the loss is that of each pair; a constant in one argument is spread over it."""
    x, y = np.linspace(0, 1, 5)[:, None], np.linspace(0, 2, 7)
    for function in (norm, lambda x, y: np.abs(y - x).max(), lambda x, y: abs(y - x) if y > x else x - y):
        np.testing.assert_array_equal(optdp.PairLoss(function).of(x, y), np.abs(y - x))
    np.testing.assert_array_equal(optdp.PairLoss(lambda x, y: np.abs(3 * y - 1)).of(x, y)[2], np.abs(3 * y - 1))
    assert (optdp.PairLoss(lambda x, y: Fraction(1, 4)).of(x, y) == 0.25).all()
    d = np.linspace(0, 1, 9)
    np.testing.assert_array_equal(optdp.CustomLoss(norm.__get__(0.0))(d), d)  # one argument: y alone
    small = optdp.solve_kernel(1.0, optdp.PairLoss(norm), domain=optdp.Alphabet([0, 1, 3]))
    known = optdp.solve_kernel(1.0, [[0, 1, 3], [1, 0, 2], [3, 2, 0]], domain=optdp.Alphabet([0, 1, 3]))
    assert small.value == known.value


def test_values_that_depend_on_the_rest_of_the_array_are_refused():
    x, y = np.linspace(0, 1, 5)[:, None], np.linspace(1, 2, 7)
    with pytest.raises(ValueError, match=r"'scaled' is not allowed: its value at .* alone"):
        optdp.PairLoss(lambda x, y: np.abs(y - x) / np.max(y), "scaled").of(x, y)
    with pytest.raises(ValueError, match="alone"):
        optdp.CustomLoss(lambda d: d / d.max(), 1.0)
    with pytest.raises(ValueError, match="activation = 'turned' is not allowed"):

        def turned(u):
            return np.sort(1 - np.abs(u))

        optdp.solve_composite(1.0, turned)


@pytest.mark.parametrize(
    ("function", "error", "words"),
    [
        (lambda x, y: (y - x) * 1j, TypeError, "real numbers, not complex"),
        (lambda x, y: "1.5", TypeError, "real numbers, not <U3"),
        (lambda x, y: None, TypeError, "real numbers, not NoneType"), (lambda x, y: np.zeros(3), TypeError, "not ndarray"),
        (lambda x, y: x + np.nan * y, ValueError, "input 0.0 and the output 0.0 it is nan"),
        (lambda x, y: 10**400, ValueError, "at most 1.8e308"),
        (lambda x, y: y - x, ValueError, "input 0.25 and the output 0.0 it is -0.25"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_users_values_is_said(function, error, words):
    with pytest.raises(error, match=f"loss = 'mine' is not allowed.*{words}"):
        optdp.PairLoss(function, "mine").of(np.linspace(0, 1, 5)[:, None], np.linspace(0, 2, 7))


@pytest.mark.parametrize("make", [lambda n: optdp.PairLoss(norm, n), lambda n: optdp.CustomLoss(np.sqrt, name=n)])
def test_names_are_one_line(make):
    """A name stands in statements: a second line could pass for a check of its own."""
    for name, error in ((3, TypeError), (None, TypeError), ("", ValueError), ("f\nok   lower bound: 7", ValueError)):
        with pytest.raises(error, match="name"):
            make(name)


def test_true_constants_are_believed_beside_rounding():
    """What a loss is computed from may be much larger than its values, near a root, or far from 0."""
    for function, rates, ends in (
        (lambda x, y: np.abs(np.sin(20 * y)) + 0 * x, (0.0, 20.0), (0.0, 1.0)),
        (lambda x, y: np.abs((y - 1e6) - (x - 1e6)) / 7, (1 / 7, 1 / 7), (1e6, 1e6 + 1)),
        (lambda x, y: np.abs(y * 0.1 - x * 0.1) * 10, (1.0, 1.0), (1e9, 1e9 + 1)),
        (lambda x, y: 1e-318 * np.abs(y - x), 1e-318, (0.0, 1.0)),
    ):
        for middle in (ends[0], np.pi / 20 + ends[0]):
            points = np.unique(np.clip(middle + np.array([-2, -1, 0, 1, 2, 3]) * 2.0**-50 * max(middle, 1), *ends))
            optdp.PairLoss(function, "true", rates).table(points, points)
    with pytest.raises(ValueError, match=r"between the outputs 0\.5 and 0\.5000000001 "):
        false = optdp.PairLoss(lambda x, y: np.abs(y - x), "false", (1.0, 0.5))
        false.table(np.array([0.0]), np.array([0.5, 0.5000000001]))


def test_integrals_that_underflow_are_refused():
    """Sums of products below all floats are 0: a loss of 0 that is none."""
    for ends, function in (
        ((0, 1e-300), lambda d: d),
        ((0, 1), lambda d: 1e-320 * d),
        ((0, 1e-200), lambda d: 1e-120 * d),
    ):
        with pytest.raises(ValueError, match="larger units"):
            optdp.solve_piecewise(1.0, 3, function, domain=ends)
    assert optdp.solve_piecewise(1.0, 3, lambda d: 0 * d).value == 0


def test_a_false_constant_fails_verification_and_does_not_end_it():
    found = optdp.solve_kernel(1.0, optdp.PairLoss(lambda x, y: np.abs(y - x), "mine", 1.0), rtol=0.1)
    assert "provided that the loss changes by at most 1 (|x - x'| + |y - y'|)" in str(found) and found.verify()
    false = optdp.WorstCase(optdp.PairLoss(found.problem.loss.function, "mine", (1.0, 0.5)))
    told = replace(found, problem=replace(found.problem, objective=false)).verify()
    assert not told and {"value", "lower bound"} >= {check.name for check in told.failures}


def test_losses_of_two_arguments_are_pointed_to_pairs():
    with pytest.raises(TypeError, match=r"a function of the distance alone; optdp\.PairLoss takes one"):
        optdp.solve_kernel(1.0, lambda x, y: abs(x - y))
    assert optdp.solve_piecewise(1.0, loss=lambda d, power=2: d**power).gap < 1e-4

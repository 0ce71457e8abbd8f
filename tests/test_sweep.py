"""Integrals of piecewise polynomials between moving limits: against quadrature, and their least and largest values."""

from bisect import bisect_right
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, arb_poly, ctx, fmpq
from hypothesis import given, settings
from hypothesis import strategies as st

import optdp
from optdp.exact import sweep
from optdp.exact.sweep import Branches, Cell, Sweep, exact

NODES, WEIGHTS = np.polynomial.legendre.leggauss(8)


@pytest.fixture(autouse=True)
def precision():
    with ctx.workprec(sweep.BITS):
        yield


small = st.integers(-16, 16).map(lambda n: Fraction(n, 8))


@st.composite
def branches(draw):
    """Up to four pieces of degree at most 3, not continuous."""
    knots = tuple(sorted(draw(st.sets(small, max_size=3))))
    rows = [tuple(draw(st.lists(small, min_size=1, max_size=4))) for _ in range(len(knots) + 1)]
    return Branches(knots, tuple(rows))


@st.composite
def cells(draw):
    """Cells of [0, 1] with nondecreasing places, jumps between them, and polynomial weights."""
    cuts = sorted(draw(st.sets(st.integers(1, 63), max_size=4)))
    edges = [fmpq(c, 64) for c in (0, *cuts, 64)]
    steps = draw(st.lists(st.integers(0, 12), min_size=2 * len(edges), max_size=2 * len(edges)))
    place, out = fmpq(-1), []
    for k, (a, b) in enumerate(pairwise(edges)):
        low = place + fmpq(steps[2 * k], 16)
        place = high = low + fmpq(steps[2 * k + 1], 16)
        slope = (high - low) / (b - a)
        weight, subtract = (tuple(map(exact, draw(st.lists(small, min_size=size, max_size=3)))) for size in (1, 0))
        out.append(Cell(a, b, (low - slope * a, slope), weight, subtract))
    return out


def real(q):
    return int(q.p) / int(q.q)


def quadrature(parts, law, sign, v, a, b):
    """int_a^b w(t) L(u) - z(t) dt in floats: Gauss between the ends of cells and the crossings of knots."""
    total = 0.0
    for cell in parts:
        low, high = max(real(cell.start), a), min(real(cell.end), b)
        if low >= high:
            continue
        p0, p1 = map(real, cell.place)
        turns = [(v + sign * float(k) - p0) / p1 for k in law.knots] if p1 else []
        cuts = [low, *sorted(t for t in turns if low < t < high), high]
        for start, end in pairwise(cuts):
            t = (start + end) / 2 + (end - start) / 2 * NODES
            middle = sign * (p0 + p1 * (start + end) / 2 - v)
            row = law.rows[bisect_right([float(k) for k in law.knots], middle)]
            u = sign * (p0 + p1 * t - v)
            w, z, value = (np.polynomial.polynomial.polyval(t, [*map(float, c), 0.0])
                           for c in (map(real, cell.weight), map(real, cell.subtract), [0.0]))  # fmt: skip
            value = np.polynomial.polynomial.polyval(u, [float(c) for c in row])
            total += float(WEIGHTS @ (w * value - z)) * (end - start) / 2
    return total


def at(polynomial, s):
    return float(polynomial(arb(s)).mid())


@settings(max_examples=60)
@given(cells(), branches(), st.sampled_from([1, -1]), st.integers(0, 64), st.integers(0, 64), st.integers(-64, 64))
def test_integrals_between_fixed_limits_are_those_of_quadrature(parts, law, sign, start, end, v):
    over = Sweep(parts, law, sign)
    limits = []
    for t in (fmpq(start, 64), fmpq(end, 64)):
        limits.append(over.at(max(k for k, c in enumerate(parts) if c.start <= t and (t > c.start or not k)), t))
    # Where a crossing passes a limit or the end of a cell, the polynomial changes.
    stops = [*over.lows, *over.highs, *(parts[limit.cell].at(limit.middle) for limit in limits)]
    marks = [q - o for q in stops for o in over.offsets]
    low, high = next(piece for piece in sweep.pieces(marks, fmpq(-4), fmpq(4)) if piece[0] <= fmpq(v, 16) <= piece[1])
    found = over.integral(sweep.line(low, high), *limits, over.crossings(low, high))
    for s in (0.1, 0.5, 0.9):
        expected = quadrature(parts, law, sign, real(low) + s * real(high - low), start / 64, end / 64)
        assert at(found, s) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=60)
@given(cells(), branches(), st.sampled_from([1, -1]), st.integers(-32, 32), st.integers(1, 32))
def test_integrals_between_moving_limits_are_those_of_quadrature(parts, law, sign, v, reach):
    """From where the place is v - c to where it is v + c: the form that windows have in a dual."""
    over, c = Sweep(parts, law, sign), fmpq(reach, 32)
    marks = [q - o for q in (*over.lows, *over.highs) for o in (*over.offsets, c, -c)]
    low, high = next(piece for piece in sweep.pieces(marks, fmpq(-4), fmpq(4)) if piece[0] <= fmpq(v, 16) <= piece[1])
    a, b = (over.where(low + d, high + d, over.lows, over.highs) for d in (-c, c))
    found = over.integral(sweep.line(low, high), a, b, over.crossings(low, high))
    for s in (0.1, 0.5, 0.9):
        y = real(low) + s * real(high - low)
        ends = []
        for target in (y - real(c), y + real(c)):
            t = 0.0
            for cell, p, q in zip(parts, map(real, over.lows), map(real, over.highs), strict=True):
                if target > p:
                    share = 1.0 if target >= q else (target - p) / (q - p)
                    t = real(cell.start) + share * real(cell.end - cell.start)
            ends.append(t)
        expected = quadrature(parts, law, sign, y, *ends)
        assert at(found, s) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=100)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=7))
def test_least_and_most_bound_a_polynomial_on_the_unit_interval(coefficients):
    """Never above the least value (below the largest one), and close to it, or proven nonnegative."""
    polynomial = arb_poly([arb(c) for c in coefficients])
    s = np.linspace(0, 1, 4001)
    values = np.polynomial.polynomial.polyval(s, coefficients)
    low, high = sweep.least(polynomial, arb(1e-9)), sweep.most(polynomial, arb(1e-9))
    assert low <= arb(values.min() + 1e-12) and high >= arb(values.max() - 1e-12)
    assert float(low.mid()) >= min(values.min(), 0.0) - 1e-5
    assert float(high.mid()) <= values.max() + 1e-5
    assert sweep.most(polynomial, arb(1e-9), arb(1e6)) == 1e6


LOSSES = [optdp.Power(1), optdp.Power(2), optdp.Power(3), optdp.Power(1.5), optdp.Power(2.7), optdp.Huber(0.2),
          optdp.Threshold(0.25), optdp.Pinball(0.3), optdp.Pieces((0, "1/2"), ((0, 1), ("-1/2", 2)))]  # fmt: skip


@pytest.mark.parametrize("law", LOSSES, ids=str)
@settings(max_examples=40)
@given(u=st.fractions(-1, 1, max_denominator=10**6), unit=st.fractions("1/50", 50, max_denominator=100))
def test_pieces_of_a_loss_lie_on_the_side_that_is_asked_for(law, u, unit):
    below, above = (law.branches(unit, side)(u) for side in (True, False))
    value = float(law.of(0.0, float(u * unit)))
    scale = float(max(law.of(0.0, float(unit)), law.of(float(unit), 0.0)))
    if u in (0, *law.branches(unit, True).knots):  # a jump: the lesser value counts
        assert float(below) <= value + 1e-12 * scale
        return
    assert float(below) <= value + 1e-12 * scale and value <= float(above) + 1e-12 * scale
    assert float(above - below) <= 2e-3 * scale
    if law.slopes[0] == -law.slopes[1]:
        assert law.branches(unit, True).even


@pytest.mark.parametrize("law", LOSSES, ids=str)
@settings(max_examples=40)
@given(reach=st.fractions("1/50", 4, max_denominator=60), unit=st.fractions("1/50", 50, max_denominator=100))
def test_the_largest_value_is_taken_where_it_is_also_before_the_last_knots(law, reach, unit):
    """The outer pieces were read at any reach: Huber's line lies below 0 there, and what was attained, and proven, with it."""
    pieces = law.branches(unit, False)
    if isinstance(law, optdp.Power) and law.exponent != int(law.exponent):
        reach = min(reach, Fraction(1))  # as far as its pieces were asked for
    top, places = pieces.top(reach), [reach * Fraction(k, 64) for k in range(-64, 65)]
    assert all(pieces(u) <= top for u in places)
    ends = [float(law.of(0.0, float(sign * reach * unit))) for sign in (-1, 1)]
    jump = any(abs(float(reach) - abs(float(k))) < 1e-9 for k in pieces.knots)
    assert jump or float(top) <= max(ends) * (1 + 2e-3) + 1e-12


@pytest.mark.parametrize("law", LOSSES, ids=str)
@settings(max_examples=30)
@given(t=st.floats(0, 1), u=st.floats(-1, 1))
def test_sublevel_sets_are_the_intervals_that_slopes_say(law, t, u):
    """L(u) <= L(b t) for u in [a t, b t], and >= elsewhere."""
    a, b = map(float, law.slopes)
    edge, value = float(law.of(0.0, b * t)), float(law.of(0.0, u))
    if a * t * (1 + 1e-9) < u < b * t * (1 - 1e-9):
        assert value <= edge + 1e-12
    elif not a * t * (1 - 1e-9) <= u <= b * t * (1 + 1e-9):
        assert value >= edge - 1e-12


def test_a_loss_that_differs_at_one_point_only_has_no_pieces():
    """1[Y != x] is 1 in pieces, but 0 at atoms: under a prior of points it is far below 1."""
    assert optdp.Threshold(0.0).branches(Fraction(1), True) is None


@pytest.mark.parametrize("q", [1.1, 1.5, 2.5])
def test_pieces_below_a_loss_do_not_decrease_with_the_distance(q):
    """Else r = L - nu is positive inside of a window, where the certificate takes it for the least of r and 0."""
    law = optdp.Power(q).branches(Fraction(1), True)
    for k, knot in enumerate(law.knots):
        if knot > 0:
            assert sweep.horner(law.rows[k], knot) <= sweep.horner(law.rows[k + 1], knot)

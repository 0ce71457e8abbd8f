"""Integrals of piecewise polynomials between moving limits: against plain ones in rationals; least and largest values."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb, arb_poly, ctx, fmpq, fmpq_poly
from hypothesis import given, settings
from hypothesis import strategies as st

import optdp
from optdp.exact import sweep
from optdp.exact.polynomial import exact, moved, nonnegative, positive, proven_everywhere
from optdp.exact.sweep import Branches, Cell, Limit, Path, Sweep


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
        weight, subtract = (draw(st.lists(small, min_size=size, max_size=3)) for size in (1, 0))
        out.append(Cell(a, b, low, high, *(arb_poly([arb(exact(c)) for c in row]) for row in (weight, subtract))))
    return out


def plain(parts, law, sign, v, a, b):
    """int_a^b w(t) L(u) - z(t) dt for one v in rationals, between the ends of cells and the crossings of knots."""
    total = fmpq(0)
    for c in parts:
        length = c.end - c.start
        low, high = ((min(max(t, c.start), c.end) - c.start) / length for t in (a, b))
        u = fmpq_poly([sign * (c.low - v), sign * (c.high - c.low)])
        w, z = (fmpq_poly([x.fmpq() for x in row.coeffs()]) for row in (c.weight, c.subtract))
        turns = [(exact(k) - u[0]) / u[1] for k in law.knots if u[1]]
        for s0, s1 in pairwise([low, *sorted(s for s in turns if low < s < high), high] if low < high else []):
            middle = u((s0 + s1) / 2)
            row = law.rows[sum(exact(k) < middle for k in law.knots)]
            primitive = (w * fmpq_poly([exact(x) for x in row])(u) - z).integral()
            total += length * (primitive(s1) - primitive(s0))
    return total


def agree(over, sign, law, a, b, low, high):
    """Whether polynomials in v between low and high are the plain integrals from a to b, and over all cells."""
    middle = (low + high) / 2
    found, whole = over.between(a, b, middle), over.whole()
    for v in ((7 * low + high) / 8, middle, (low + 7 * high) / 8):
        ends = [c.start + s * (c.end - c.start) for c, s in ((over.cells[k], s) for k, s in (a(v), b(v)))]
        for polynomial, limits in ((found, ends), (whole, (fmpq(0), fmpq(1)))):
            value = polynomial(arb(v))
            assert value.overlaps(arb(plain(over.cells, law, sign, v, *limits))) and value.rad() < 1e-60


def piece(marks, v):
    """The piece between marks that v lies in."""
    return next(piece for piece in sweep.pieces(marks, fmpq(-4), fmpq(4)) if piece[0] <= v <= piece[1])


@settings(max_examples=60)
@given(cells(), branches(), st.sampled_from([1, -1]), st.integers(0, 64), st.integers(0, 64), st.integers(-64, 64))
def test_integrals_between_fixed_limits_are_plain_ones(parts, law, sign, start, end, v):
    over, limits = Sweep(parts, law, sign), []
    for t in (fmpq(start, 64), fmpq(end, 64)):
        k = max(k for k, c in enumerate(parts) if c.start <= t and (t > c.start or not k))
        limits.append(Limit(k, (t - parts[k].start) / (parts[k].end - parts[k].start)))
    # Where a crossing passes a limit or the end of a cell, the polynomial changes.
    stops = [q for c in parts for q in (c.low, c.high)]
    stops += [c.low + limit.place * (c.high - c.low) for c, limit in ((parts[limit.cell], limit) for limit in limits)]
    low, high = piece([q - o for q in stops for o in over.offsets], fmpq(v, 16))
    over.seek(low)
    if start <= end:
        agree(over, sign, law, *limits, low, high)
    else:
        assert over.between(*limits, low).length() == 0


@settings(max_examples=60)
@given(cells(), branches(), st.sampled_from([1, -1]), st.integers(-32, 32), st.integers(1, 32))
def test_integrals_between_moving_limits_are_plain_ones(parts, law, sign, v, reach):
    """From where the place is v - c to where it is v + c, on one piece after the other: the form that windows have in a dual."""
    over, c = Sweep(parts, law, sign), fmpq(reach, 32)
    places = [q for cell in parts for q in (cell.low, cell.high)]
    marks = [q - o for q in places for o in (*over.offsets, c, -c)]
    a, b = (Path([cell.low - d for cell in parts], [cell.high - d for cell in parts]) for d in (-c, c))
    first, last = piece(marks, fmpq(v, 16)), piece(marks, fmpq(v, 16) + fmpq(1, 4))
    for low, high in sweep.pieces(marks, first[0], last[1]):
        for path in (a, b, over):
            path.seek(low)
        agree(over, sign, law, a.limit, b.limit, low, high)


@settings(max_examples=20)
@given(cells(), st.integers(-16, 16), st.integers(1, 7), st.integers(1, 8))
def test_limits_may_move_while_the_variable_is_a_curve(parts, v, start, length):
    """For losses in one piece: v(s) = v + s - s^2/2, and limits that move in the first cell."""
    law = Branches((), ((Fraction(1), Fraction(-2), Fraction(3)),))
    over, curve = Sweep(parts, law, 1), fmpq_poly([fmpq(v, 8), 1, fmpq(-1, 2)])
    a, b = Limit(0, fmpq(0), fmpq(start, 8)), Limit(0, fmpq(start, 8), fmpq(length, 8) * fmpq(8 - start, 8))
    found = over.between(a, b, fmpq(1, 2), arb_poly(curve))
    for s in (fmpq(1, 8), fmpq(1, 2), fmpq(7, 8)):
        ends = [parts[0].start + limit(s)[1] * (parts[0].end - parts[0].start) for limit in (a, b)]
        value = found(arb(s))
        assert value.overlaps(arb(plain(parts, law, 1, curve(s), *ends))) and value.rad() < 1e-60


@pytest.mark.parametrize("weight", [[1, 0.5], [1, 0.5, 0.25]])
def test_a_wrong_moment_or_factor_is_noticed(weight):
    """Every number that polynomials are made of counts: with any one changed they are no longer the plain integrals.

    Linear weights are integrated by parts, others from their moments.
    """
    one = arb_poly([arb(w) for w in weight])
    law = Branches((Fraction(0),), ((Fraction(1), Fraction(-2)), (Fraction(1), Fraction(3))))
    parts = [Cell(fmpq(k, 3), fmpq(k + 1, 3), fmpq(k), fmpq(k + 1), one, one) for k in (0, 1, 2)]
    low, high = fmpq(17, 8), fmpq(9, 4)
    changes = [("moment", k, n) for k in (1, 2) for n in range(3)] + [
        ("term", b, j) for b in range(3) for j in range(2)
    ]
    for kind, first, second in [("nothing", 0, 0), *changes]:
        over = Sweep(parts, law, 1)
        a, b = (Path([c.low - d for c in parts], [c.high - d for c in parts]) for d in (fmpq(-1, 4), fmpq(3, 4)))
        if kind == "moment":
            over._moments[first][second] += arb(2) ** -100
        elif kind == "term":
            over.terms[first][second] = [
                (power, factor + arb(2) ** -100) for power, factor in over.terms[first][second]
            ]
        for path in (a, b, over):
            path.seek(low)
        if kind == "nothing":
            agree(over, 1, law, a.limit, b.limit, low, high)
        else:
            with pytest.raises(AssertionError):
                agree(over, 1, law, a.limit, b.limit, low, high)


@given(st.lists(st.fractions(-2, 2, max_denominator=9), max_size=12), st.booleans())
def test_points_are_sorted_exactly_though_floats_are_compared(points, near):
    """Those that are equal as floats, and those that are none, too."""
    rationals = [exact(p) + k * near * fmpq(1, 2**200) for k, p in enumerate(points)]
    for more in ([], [fmpq(10**400)]):
        assert sweep.ordered(rationals + more) == sorted(rationals + more)
    found = sweep.pieces(rationals, fmpq(-1), fmpq(1))
    assert [p for p, _ in found[1:]] == sorted({p for p in rationals if -1 < p < 1})
    assert found[0][0] == -1 and found[-1][1] == 1 and all(a < b for a, b in found)


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


def test_what_bounds_a_polynomial_is_no_value_of_it():
    """Where the search ends, what is proven counts, not what was found: however wide the tolerance, or the balls, are."""
    for place in (0.3, 0.5, 0.7, 0.9):
        for tolerance in (1.0, 0.1, 0.0):
            dip = arb_poly([arb(place) ** 2, -2 * arb(place), 1]) ** 2 - arb(2) ** -5  # -2^-5 at the place
            low, high = sweep.least(dip, arb(tolerance)), sweep.most(-dip, arb(tolerance))
            assert low.lower() <= -(2.0**-5) and high.upper() >= 2.0**-5
    ridge = arb_poly([arb(0.5), 0, -1]) ** 2 + arb(1)  # 1 at the root of 1/2, which no cut meets
    assert not sweep.least(ridge - 2, arb(0)) > -1 and not sweep.most(2 - ridge, arb(0)) < 1
    vague = arb(1, 0.5)
    for known in (arb(1), arb(1.4), None):
        assert sweep.most(arb_poly([vague]), arb(0), known).upper() >= 1.5
        assert sweep.least(arb_poly([vague - 2]), arb(0), known).lower() <= -1.5


@pytest.mark.parametrize("place", [0.0, 0.1, 0.3, 0.5, 0.8, 1.0])
def test_positivity_is_proven_or_refused(place):
    """On both halves; neither for balls that reach 0, nor because a search has ended."""
    square = arb_poly([arb(place) ** 2, -2 * arb(place), 1])
    assert positive(square + arb(2) ** -40) and not positive(square) and not positive(square - arb(2) ** -40)
    assert not positive(square + arb(0.1, 0.1)) and not positive(arb_poly([arb(0, 1)]))
    assert not proven_everywhere([square], lambda piece: False, lambda ends: False)


@pytest.mark.parametrize("place", [Fraction(1, 4), Fraction(1, 3), Fraction(3, 4), Fraction(6, 7)])
@pytest.mark.parametrize("depth", [Fraction(1, 100), Fraction(1, 2**60), Fraction(1, 2**200)])
def test_a_dip_below_0_is_never_proven_away(place, depth):
    """(d - place)^2 -+ depth on an interval of the line, and from a place on for ever."""
    dips, stays = ((place**2 + sign * depth, -2 * place, Fraction(1)) for sign in (-1, 1))
    for end in (Fraction(1), Fraction(9, 10)):
        assert not nonnegative(dips, Fraction(0), end)
        assert nonnegative(stays, Fraction(0), end) or depth < Fraction(1, 2**80)
    assert not nonnegative(dips, Fraction(0), None) and nonnegative(dips, place + 1, None)


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


@st.composite
def rising(draw):
    """A loss that does not fall on the way from 0 to either side: one of the package, or any one, each side by itself."""
    if draw(st.booleans()):
        own = [law for law in LOSSES if law.exponent in (None, 1, 2, 3)]  # others in pieces next to them, up to 1
        pieces = draw(st.sampled_from([*own, optdp.Pinball(0.7)])).branches(
            draw(st.sampled_from([1, Fraction(5, 2)])), False
        )
        return Branches(pieces.knots, pieces.rows, draw(st.booleans()))
    sides, some = [], st.integers(0, 6).map(lambda n: Fraction(n, 4))
    for _ in range(2):
        breaks = [Fraction(0), *sorted(draw(st.sets(st.integers(1, 20), max_size=2)).union())]
        rows, height = [], draw(some)
        for a, b in pairwise([*map(Fraction, (k / 8 for k in breaks)), Fraction(3)]):
            row = [height, draw(some), draw(some), draw(some)]
            height = sweep.horner(row, b - a) + draw(some)
            rows.append(tuple(moved(row, -a)))
        sides.append(([Fraction(k) / 8 for k in breaks], rows))
    (left, before), (right, after) = sides
    before = [tuple(-a if k % 2 else a for k, a in enumerate(row)) for row in reversed(before)]
    return Branches((*(-k for k in reversed(left[1:])), *right), (*before, *after), draw(st.booleans()))


GRID = [Fraction(k, 16) for k in range(-48, 49)]


@settings(max_examples=200)
@given(rising(), st.integers(1, 32).map(lambda k: Fraction(k, 16)))
def test_the_largest_value_and_slope_up_to_a_distance_are_not_exceeded(law, reach):
    near = [u for u in GRID if abs(u) <= reach]
    assert all(law(u) <= law.top(reach) for u in near)
    inside = [u for u in near if u not in law.knots]
    rises = [abs(sum(k * a * u ** (k - 1) for k, a in enumerate(law.row(u)) if k)) for u in inside]
    assert max(rises) <= law.slope(reach)


@settings(max_examples=200)
@given(rising(), st.integers(1, 24).map(lambda k: Fraction(k, 16)))
def test_a_loss_is_widened_to_both_sides(law, by):
    above, below, n = law.widened(by), law.widened(-by), int(16 * by)
    values = [law(Fraction(k, 16)) for k in range(-64 - n, 65 + n)]
    for k in range(129):
        near, u = values[k : k + 2 * n + 1], Fraction(k - 64, 16)
        assert below(u) <= min(near) and max(near) <= above(u)


@settings(max_examples=60)
@given(rising())
def test_a_capped_loss_stays_at_its_values_at_the_ends(law):
    law = law.stretched(Fraction(1, 3))  # knots within [-1, 1]
    assert all(law.capped(u) == law(min(max(u, Fraction(-1)), Fraction(1))) for u in GRID)


@settings(max_examples=200)
@given(st.one_of(rising(), branches()), st.integers(1, 7).map(lambda k: Fraction(k, 8)))
def test_what_is_said_of_a_loss_holds_everywhere(law, share):
    row = law.rows[-1]
    mirrored = tuple(-a if k % 2 else a for k, a in enumerate(row))
    same = tuple(a * ((share - 1) / share) ** k for k, a in enumerate(row))
    for pieces in (
        law,
        Branches((), (row,)),
        *(Branches((Fraction(-1), k), (mirrored, law.rows[0][:1], row)) for k in (share, Fraction(1), Fraction(2))),
        *(
            Branches((Fraction(0), k), (left, row, law.rows[0]))
            for k in (share, Fraction(1))
            for left in (mirrored, same)
        ),
        *(
            Branches((k - 1, Fraction(0), k), (left, left, row, row))
            for k in (share, Fraction(1, 2))
            for left in (row, same)
        ),
    ):
        if pieces.even:
            assert all(pieces(u) == pieces(-u) for u in GRID)
        for part in (share, -share, share + 1):
            if pieces.divided(part):
                assert 0 < part < 1 and all(pieces(-part * d) == pieces((1 - part) * d) for d in GRID if d > 0)
        if pieces.power is not None:
            assert all(pieces(u) == pieces.power[0] * u ** pieces.power[1] for u in GRID)
    assert Branches((Fraction(0),), (same, row)).divided(share)


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

"""Integrals of piecewise polynomials between moving limits, as exact polynomials (in balls) piece by piece.

Kernels lead to functions of the form

    g(v) = int w(t) L(u) - z(t) dt   with   u = y - x,

where one of y and x is the variable v and the other moves linearly with t, L consists of polynomial pieces, and the
limits of the integral are linear in v. Between breakpoints that can be listed, g is a polynomial: it is assembled from
running sums over whole cells and a few pieces of cells, and bounded from below by Bernstein coefficients.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from flint import arb, arb_poly, fmpq

from optdp.exact import work
from optdp.exact.polynomial import bernstein, halves

#: Bits of the balls, at least: functions of size 1 are told from 0 at 1e-50, after cancellations by e^30 squared.
BITS = 320
#: Halvings of one polynomial's interval in a row, and in all, after which what is proven by then counts.
DEPTH, HALVINGS = 48, 512


@dataclass(frozen=True)
class Branches:
    """L(u) in polynomial pieces: `rows[k]` (a_0, a_1, ...) holds between `knots[k - 1]` and `knots[k]`, the outer ones beyond."""

    knots: tuple[Fraction, ...]
    rows: tuple[tuple[Fraction, ...], ...]

    def row(self, u: Fraction) -> tuple[Fraction, ...]:
        """The piece at u; at a knot the lesser of the two neighbours."""
        at = bisect_right(self.knots, u)
        if at and self.knots[at - 1] == u:
            return min(self.rows[at - 1 : at + 1], key=lambda row: horner(row, u))
        return self.rows[at]

    def stretched(self, by: Fraction) -> Branches:
        """The pieces of u -> L(u / by)."""
        rows = tuple(tuple(a / by**k for k, a in enumerate(row)) for row in self.rows)
        return Branches(tuple(k * by for k in self.knots), rows)

    @property
    def capped(self) -> Branches:
        """The pieces on [-1, 1], and beyond the values at these ends."""
        ends = [(horner(self.rows[0], Fraction(-1)),), (horner(self.rows[-1], Fraction(1)),)]
        return Branches((Fraction(-1), *self.knots, Fraction(1)), (ends[0], *self.rows, ends[1]))

    @cached_property
    def even(self) -> bool:
        """Whether L(u) = L(-u)."""
        mirrored = tuple(tuple(-a if k % 2 else a for k, a in enumerate(row)) for row in reversed(self.rows))
        return mirrored == self.rows and all(a == -b for a, b in zip(self.knots, reversed(self.knots), strict=True))

    @cached_property
    def jumps(self) -> bool:
        """Whether two neighbouring pieces differ where they meet."""
        return any(horner(a, k) != horner(b, k) for k, (a, b) in zip(self.knots, pairwise(self.rows), strict=True))

    @cached_property
    def flat(self) -> bool:
        """Whether every piece is a constant."""
        return not any(any(row[1:]) for row in self.rows)

    @cached_property
    def bits(self) -> int:
        """Bits of the balls: short pieces near 0 have coefficients that cancel to what is many orders smaller."""
        largest = max(abs(a) for row in self.rows for a in row)
        return BITS + max(0, largest.numerator.bit_length() - largest.denominator.bit_length())

    def __call__(self, u: Fraction) -> Fraction:
        return horner(self.row(u), u)

    # For losses that do not fall on the way from 0 to both sides:

    def top(self, reach: Fraction) -> Fraction:
        """The largest value up to `reach` from 0, before which the outer pieces need not begin."""
        ends = [(u, bisect_left(self.knots, u), bisect_right(self.knots, u)) for u in (-reach, reach)]
        return max(horner(row, u) for u, low, high in ends for row in self.rows[low : high + 1])

    def slope(self, reach: Fraction) -> Fraction:
        """No derivative up to `reach` from 0 is larger."""
        ends = [-reach, *(max(min(k, reach), -reach) for k in self.knots), reach]
        far = [max(map(abs, pair)) for pair in pairwise(ends)]
        return max(
            sum((k * abs(a) * end ** (k - 1) for k, a in enumerate(row) if k), Fraction(0))
            for row, end in zip(self.rows, far, strict=True)
        )

    @property
    def power(self) -> tuple[Fraction, int] | None:
        """(c, q) if it is c u^q."""
        held = [k for k, a in enumerate(self.rows[0]) if a]
        return (self.rows[0][held[0]], held[0]) if len(self.rows) == 1 and len(held) == 1 and held[0] else None

    def divided(self, share: Fraction) -> bool:
        """Whether L(-share d) = L((1 - share) d) for all d >= 0."""
        left, right = bisect_left(self.knots, 0), bisect_right(self.knots, 0)
        near = [[a * (-share) ** k for k, a in enumerate(row)] for row in reversed(self.rows[: left + 1])]
        far = [[a * (1 - share) ** k for k, a in enumerate(row)] for row in self.rows[right:]]
        knots = [k * (share - 1) for k in reversed(self.knots[:left])], [k * share for k in self.knots[right:]]
        return 0 < share < 1 and near == far and knots[0] == knots[1]

    def widened(self, by: Fraction) -> Branches:
        """Not below L anywhere up to `by` from u; for `by` < 0: not above L anywhere up to -`by` from u."""
        left, right = bisect_left(self.knots, 0), bisect_right(self.knots, 0)
        low, high = [k + by for k in self.knots[:left]], [k - by for k in self.knots[right:]]
        before, after = (
            [_moved(row, -by) for row in self.rows[: left + 1]],
            [_moved(row, by) for row in self.rows[right:]],
        )
        if by < 0:
            least = min(horner(self.rows[left], Fraction(0)), horner(self.rows[right], Fraction(0)))
            return Branches((*low, by, -by, *high), (*before, (least,), *after))
        while low and low[-1] >= 0:
            low.pop(), before.pop()
        while high and high[0] <= 0:
            high, after = high[1:], after[1:]
        more = abs(after[0][0] - before[-1][0])  # between -by and by the other side counts
        return Branches((*low, Fraction(0), *high), tuple((row[0] + more, *row[1:]) for row in (*before, *after)))


def _moved(row: Sequence[Fraction], by: Fraction) -> tuple[Fraction, ...]:
    """The coefficients of sum_k row[k] (u + by)^k."""
    work.count(len(row) ** 2 * work.rational(work.words(row) + len(row) * work.words([by])))
    out = list(row)
    for i in range(len(out) - 1):
        for k in range(len(out) - 2, i - 1, -1):
            out[k] += by * out[k + 1]
    return tuple(out)


def exact(number: float | Fraction) -> fmpq:
    """The number as a rational of FLINT, whose arithmetic is many times faster than that of `fractions`."""
    return fmpq(*number.as_integer_ratio())


def horner(row: Sequence[Fraction], u: Fraction) -> Fraction:
    """sum_k row[k] u^k."""
    total = Fraction(0)
    for a in reversed(row):
        total = total * u + a
    return total


@dataclass(frozen=True)
class Cell:
    """`start` <= t <= `end`; there u = sign (place[0] + place[1] t - v), weighted by w(t), and z(t) is subtracted."""

    start: fmpq
    end: fmpq
    place: tuple[fmpq, fmpq]
    weight: tuple[fmpq, ...]
    subtract: tuple[fmpq, ...] = ()

    def at(self, t: fmpq) -> fmpq:
        """place[0] + place[1] t."""
        return self.place[0] + self.place[1] * t


@dataclass(frozen=True)
class Limit:
    """A limit of an integral: in cell `cell`, from `start` at s = 0 to `end` at s = 1."""

    cell: int
    start: fmpq
    end: fmpq
    #: Where it is at s = 1/2.
    middle: fmpq = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "middle", (self.start + self.end) / 2)

    @property
    def poly(self) -> arb_poly:
        """As a polynomial in s."""
        return line(self.start, self.end)

    def along(self, v0: fmpq, v1: fmpq) -> tuple[fmpq, fmpq]:
        """(t0, t1): it is t0 + t1 v while v goes from v0 to v1."""
        if self.start == self.end:
            return self.start, fmpq(0)
        slope = (self.end - self.start) / (v1 - v0)
        return self.start - slope * v0, slope


class Sweep:
    """Cells in increasing order, with places that do not decrease, and the pieces of L.

    `sign`: +1 where t gives the output (u = place(t) - v), -1 where it gives the input (u = v - place(t)).
    The variable on a piece [v0, v1] is s = (v - v0)/(v1 - v0).
    `size`: words of the numbers in cells, for counted work.
    """

    def __init__(self, cells: Sequence[Cell], branches: Branches, sign: int, size: float = 1.0) -> None:
        degree, weight = max(map(len, branches.rows)), max(len(c.weight) for c in cells)
        part, knots = 4 + weight * (2 + (degree + weight) ** 2 / 20), len(branches.knots)
        #: Microseconds for the knots between two limits that move, the whole integral, and that between the limits.
        self.each = (knots + 2) * (10 + 4 * work.flint(size + work.words(branches.knots))) + 3 * part
        sums = (knots + 1) * (5 + 2 * part) if len(cells) > 1 else 0
        sums += 4 * knots * part  # where a knot enters a cell, and leaves it
        work.count(len(cells) * (6 * work.flint(size) + degree + weight + sums))
        self.cells, self.sign = cells, sign
        self.starts = [c.start for c in cells]
        self.lows, self.highs = [c.at(c.start) for c in cells], [c.at(c.end) for c in cells]
        # In the order of increasing t.
        self.offsets = [sign * exact(k) for k in branches.knots][::sign]
        #: L on each branch, its integral, the integral of that, ...
        self._repeated = []
        for row in branches.rows[::sign]:
            repeated = [arb_poly([arb(exact(a)) for a in row])]
            for _ in range(weight):
                repeated.append(repeated[-1].integral())
            self._repeated.append(repeated)
        self._known: dict[tuple[int, ...], arb_poly] = {}
        self._turns: dict[tuple[int, int, int], arb_poly] = {}

    @cached_property
    def _weights(self) -> list[tuple[list[arb_poly], arb_poly]]:
        """For each cell the factors of L's integrals in a primitive of w L, by parts, and the integral of z."""
        out = []
        for c in self.cells:
            w, slope = arb_poly([arb(a) for a in c.weight]), self.sign * c.place[1]
            factors = [w.integral()] if slope == 0 else []
            while slope != 0 and w.coeffs():
                w = w * arb(1 / slope)
                factors.append(w)
                w = -w.derivative()
            out.append((factors, arb_poly([arb(a) for a in c.subtract]).integral()))
        return out

    def _primitive(self, cell: int, branch: int, t: arb_poly, u: arb_poly) -> arb_poly:
        """A primitive of the integrand where t is this polynomial in s, and so is u."""
        factors, subtracted = self._weights[cell]
        first = int(self.cells[cell].place[1] != 0)
        total = -subtracted(t)
        for factor, integral in zip(factors, self._repeated[branch][first:], strict=False):
            total += factor(t) * integral(u)
        return total

    def _moving(self, cell: int, branch: int, t0: fmpq, t1: fmpq) -> arb_poly:
        """The primitive at t0 + t1 v, as a polynomial in v itself."""
        p0, p1 = self.cells[cell].place
        return self._primitive(
            cell, branch, _line(t0, t1), _line(self.sign * (p0 + p1 * t0), self.sign * (p1 * t1 - 1))
        )

    def _part(self, cell: int, branch: int, t0: fmpq, t1: fmpq) -> arb_poly:
        """The integral from the start of a cell to t0 + t1 v; up to a fixed place it has the degree of L."""
        start = self._known.get((branch, cell))
        if start is None:
            start = self._known[branch, cell] = self._moving(cell, branch, self.starts[cell], _ZERO)
        found = self._moving(cell, branch, t0, t1) - start
        return found if t1 else arb_poly(found.coeffs()[: max(self._repeated[branch][0].length(), 1)])

    @cached_property
    def _sums(self) -> list[list[arb_poly]]:
        """For each branch the running sums over whole cells, as polynomials in v itself."""
        out = []
        for branch in range(len(self._repeated)):
            sums = [arb_poly([])]
            for k, c in enumerate(self.cells):
                sums.append(sums[-1] + self._part(k, branch, c.end, _ZERO))
            out.append(sums)
        return out

    def at(self, cell: int, t: fmpq) -> Limit:
        """A limit that does not move."""
        return Limit(cell, t, t)

    @property
    def first(self) -> Limit:
        return self.at(0, self.starts[0])

    @property
    def last(self) -> Limit:
        return self.at(len(self.cells) - 1, self.cells[-1].end)

    def crossings(self, v0: fmpq, v1: fmpq) -> list[Limit]:
        """Where u passes the knots of L, if v goes from `v0` to `v1`."""
        return [self.where(v0 + o, v1 + o, self.lows, self.highs) for o in self.offsets]

    def _upto(self, branch: int, cell: int, t: tuple[fmpq, fmpq]) -> arb_poly:
        """The integral of one branch from the first cell to t[0] + t[1] v in `cell`, as a polynomial in v itself."""
        start, slope = t  # rationals are slow to hash
        key = branch, cell, int(start.p), int(start.q), int(slope.p), int(slope.q)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._sums[branch][cell] + self._part(cell, branch, *t)
        return found

    def _turn(self, knot: int, at: Limit) -> arb_poly:
        """What the integral gains where it changes its branch at a knot, as a polynomial in v itself."""
        fixed = at.start == at.end
        key = knot, at.cell, fixed and (-1 if at.start == self.starts[at.cell] else 1)
        found = self._turns.get(key)
        if found is None:
            t = at.start, fmpq(0)
            if not fixed:
                c = self.cells[at.cell]
                slope = (c.end - c.start) / (self.highs[at.cell] - self.lows[at.cell])
                t = c.start + (self.offsets[knot] - self.lows[at.cell]) * slope, slope
            found = self._turns[key] = self._upto(knot, at.cell, t) - self._upto(knot + 1, at.cell, t)
        return found

    def where(self, y0: fmpq, y1: fmpq, lows: Sequence[fmpq], highs: Sequence[fmpq]) -> Limit:
        """Where a nondecreasing function that goes from `lows[k]` to `highs[k]` over cell k reaches y, y going from y0 to y1."""
        middle = (y0 + y1) / 2
        k = bisect_right(lows, middle) - 1
        if k < 0:
            return self.first
        c = self.cells[k]
        if middle >= highs[k]:  # in a jump between two cells, or beyond the last
            return self.at(k, c.end)
        slope = (c.end - c.start) / (highs[k] - lows[k])
        return Limit(k, c.start + (y0 - lows[k]) * slope, c.start + (y1 - lows[k]) * slope)

    def integral(
        self, v: arb_poly, a: Limit, b: Limit, crossings: Sequence[Limit], span: tuple[fmpq, fmpq] | None = None
    ) -> arb_poly:
        """int_a^b of the integrand, a polynomial in s, for the variable v(s); `span`: its ends, where it is a line."""
        if b.middle <= a.middle:
            return arb_poly([])
        middles = [c.middle for c in crossings]
        first = bisect_right(middles, a.middle)
        last = max(first, bisect_left(middles, b.middle))
        turns = arb_poly([])
        for knot in range(first, last):
            turns += self._turn(knot, crossings[knot])
        if span is None:  # v is no line: limits are polynomials in s
            whole = (self._sums[last][b.cell] - self._sums[first][a.cell] + turns)(v)
            for sign, limit, branch in ((1, b, last), (-1, a, first)):
                p0, p1 = map(arb, self.cells[limit.cell].place)
                for side, t in ((sign, limit.poly), (-sign, arb_poly([arb(self.starts[limit.cell])]))):
                    whole += side * self._primitive(limit.cell, branch, t, (p1 * t + p0 - v) * self.sign)
            return whole
        high, low = (self._upto(k, limit.cell, limit.along(*span)) for k, limit in ((last, b), (first, a)))
        return (high - low + turns)(v)


def integration(terms: int, degree: int) -> float:
    """Microseconds for the integral over part of a cell of `terms` powers of t, whose coefficients have `degree` powers of v."""
    return 2 + terms + terms**2 / 4 + terms**2 * degree / 50


def search(terms: int) -> float:
    """Microseconds for the Bernstein coefficients of a polynomial with so many coefficients, or for halving its interval."""
    return 10 + terms**2 / 5


_ZERO = fmpq(0)


def _line(a: fmpq, b: fmpq) -> arb_poly:
    """a + b v, in fewer terms where b is 0."""
    return arb_poly([arb(a), arb(b)]) if b else arb_poly([arb(a)])


def line(start: fmpq, end: fmpq) -> arb_poly:
    """What goes linearly from `start` at s = 0 to `end` at s = 1."""
    return arb_poly([arb(start), arb(end - start)])


def pieces(points: Iterable[fmpq], low: fmpq, high: fmpq) -> list[tuple[fmpq, fmpq]]:
    """The intervals between the points inside [low, high]."""
    return list(pairwise(sorted({low, high, *(p for p in points if low < p < high)})))


def least(polynomial: arb_poly, tolerance: arb, known: arb | None = None) -> arb:
    """A lower bound of a polynomial on [0, 1], as a ball whose lower end counts.

    Bisected until it is nonnegative, or within `tolerance` of the least value at an end, or after many halvings.
    `known`: a value that is reached elsewhere: what is proven to be no lower, within `tolerance`, is not bisected further.
    """
    work.count(search(len(polynomial)))
    stack, low, left = [(bernstein(polynomial.coeffs() or [arb(0)]), 0)], None, HALVINGS
    floor = arb(0) if known is None else known.min(arb(0))
    while stack:
        piece, depth = stack.pop()
        bottom = piece[0]
        for c in piece[1:]:
            bottom = bottom.min(c)
        floor = floor.min(piece[0]).min(piece[-1])
        if bottom >= floor - tolerance or depth >= DEPTH or left == 0 or bottom >= 0:
            low = bottom if low is None else low.min(bottom)
            continue
        left -= 1
        work.count(search(len(piece)))
        stack += [(half, depth + 1) for half in halves(piece)]
    assert low is not None
    return low


def most(polynomial: arb_poly, tolerance: arb, known: arb | None = None) -> arb:
    """An upper bound of a polynomial on [0, 1], as a ball whose upper end counts, within `tolerance` of a value.

    `known`: a value that has been reached elsewhere: what is proven not to exceed it is not bisected further.
    """
    work.count(search(len(polynomial)))
    stack, high, left = [(bernstein(polynomial.coeffs() or [arb(0)]), 0)], known, HALVINGS
    while stack:
        piece, depth = stack.pop()
        top = piece[0]
        for c in piece[1:]:
            top = top.max(c)
        if high is not None and top <= high:
            continue
        if depth >= DEPTH or left == 0 or top <= piece[0].max(piece[-1]) + tolerance:
            high = top if high is None else high.max(top)
            continue
        left -= 1
        work.count(search(len(piece)))
        stack += [(half, depth + 1) for half in halves(piece)]
    assert high is not None
    return high

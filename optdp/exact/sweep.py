"""Integrals of piecewise polynomials between moving limits, as exact polynomials (in balls) piece by piece.

Kernels lead to functions of the form

    g(v) = int w L(u) - z dt   with   u = y - x,

where one of y and x is the variable v and the other moves linearly with t, L consists of polynomial pieces, and the
limits of the integral are linear in v. Between breakpoints that can be listed, g is a polynomial: it is assembled from
running sums over whole cells and a few pieces of cells, and bounded from below by Bernstein coefficients.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from flint import arb, arb_poly, fmpq

from optdp.exact import work
from optdp.exact.polynomial import bernstein, exact, halves, moved

#: Bits of the balls, at least: functions of size 1 are told from 0 at 1e-50, after cancellations by e^30 squared.
BITS = 320
#: Cuts of one polynomial's interval in a row, and in all, after which what is proven by then counts.
DEPTH, CUTS = 48, 512
#: Least and largest values are found to this share of the polynomial's size.
FINE = 2.0**-80
ZERO, _NONE, _ONE, _NOTHING, NEVER, NARROW = fmpq(0), arb(0), arb(1), arb_poly(), fmpq(2**4096), fmpq(1, 2**40)

Terms = list[list[list[tuple[int, arb]]]]


@dataclass(frozen=True)
class Branches:
    """L(u) in polynomial pieces: `rows[k]` (a_0, a_1, ...) holds between `knots[k - 1]` and `knots[k]`, the outer ones beyond.

    At a knot it is the lesser of the two neighbours, or if `upper` the greater.
    """

    knots: tuple[Fraction, ...]
    rows: tuple[tuple[Fraction, ...], ...]
    upper: bool = False

    def row(self, u: Fraction) -> tuple[Fraction, ...]:
        """The piece at u."""
        at = bisect_right(self.knots, u)
        if at and self.knots[at - 1] == u:
            return (max if self.upper else min)(self.rows[at - 1 : at + 1], key=lambda row: horner(row, u))
        return self.rows[at]

    def stretched(self, by: Fraction) -> Branches:
        """The pieces of u -> L(u / by)."""
        if by == 1:
            return self
        rows = tuple(tuple(a / by**k for k, a in enumerate(row)) for row in self.rows)
        return Branches(tuple(k * by for k in self.knots), rows, self.upper)

    @property
    def capped(self) -> Branches:
        """The pieces on [-1, 1], and beyond the values at these ends."""
        ends = [(horner(self.rows[0], Fraction(-1)),), (horner(self.rows[-1], Fraction(1)),)]
        return Branches((Fraction(-1), *self.knots, Fraction(1)), (ends[0], *self.rows, ends[1]), self.upper)

    @cached_property
    def even(self) -> bool:
        """Whether L(u) = L(-u)."""
        mirrored = tuple(tuple(-a if k % 2 and a else a for k, a in enumerate(row)) for row in reversed(self.rows))
        return mirrored == self.rows and all(a == -b for a, b in zip(self.knots, reversed(self.knots), strict=True))

    @cached_property
    def jumps(self) -> bool:
        """Whether two neighbouring pieces differ where they meet."""
        return any(horner(a, k) != horner(b, k) for k, (a, b) in zip(self.knots, pairwise(self.rows), strict=True))

    @property
    def drops(self) -> bool:
        """Whether it may be less at a knot than on both sides of it."""
        return self.jumps and not self.upper

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
            sum((k * abs(a) * end ** (k - 1) if k > 1 else abs(a) for k, a in enumerate(row) if k and a), Fraction(0))
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
        near = [[a and a * (-share) ** k for k, a in enumerate(row)] for row in reversed(self.rows[: left + 1])]
        far = [[a and a * (1 - share) ** k for k, a in enumerate(row)] for row in self.rows[right:]]
        knots = [k * (share - 1) for k in reversed(self.knots[:left])], [k * share for k in self.knots[right:]]
        return 0 < share < 1 and near == far and knots[0] == knots[1]

    def widened(self, by: Fraction) -> Branches:
        """Not below L anywhere up to `by` from u; for `by` < 0: not above L anywhere up to -`by` from u."""
        left, right = bisect_left(self.knots, 0), bisect_right(self.knots, 0)
        low, high = [k + by for k in self.knots[:left]], [k - by for k in self.knots[right:]]
        before, after = (
            [tuple(moved(row, -by)) for row in self.rows[: left + 1]],
            [tuple(moved(row, by)) for row in self.rows[right:]],
        )
        if by < 0:
            least = min(horner(self.rows[left], Fraction(0)), horner(self.rows[right], Fraction(0)))
            return Branches((*low, by, -by, *high), (*before, (least,), *after))
        while low and low[-1] >= 0:
            low.pop(), before.pop()
        while high and high[0] <= 0:
            high, after = high[1:], after[1:]
        more = abs(after[0][0] - before[-1][0])  # between -by and by the other side counts
        rows = tuple((row[0] + more, *row[1:]) for row in (*before, *after))
        return Branches((*low, Fraction(0), *high), rows, self.upper)


def horner(row: Sequence[Fraction], u: Fraction) -> Fraction:
    """sum_k row[k] u^k."""
    total = Fraction(0)
    for a in reversed(row):
        total = total * u + a if total else a
    return total


class Cell(NamedTuple):
    """From t = `start` to `end`, s = 0 to 1: u = sign (place - v), the place going from `low` to `high`; weights w(s), z(s)."""

    start: fmpq
    end: fmpq
    low: fmpq
    high: fmpq
    weight: arb_poly
    subtract: arb_poly


class Limit:
    """A limit of an integral: in cell `cell` at the share s = `place` + `slope` times the variable."""

    __slots__ = ("cell", "known", "place", "slope")

    def __init__(self, cell: int, place: fmpq, slope: fmpq = ZERO) -> None:
        self.cell, self.place, self.slope = cell, place, slope
        #: The integral of each branch up to here.
        self.known: dict[int, arb_poly] = {}

    def __call__(self, v: fmpq) -> tuple[int, fmpq]:
        """Where it is: pairs are in the order of t."""
        return self.cell, self.place + self.slope * v


class Path:
    """A limit that goes through cell k while v goes from `lows[k]` to `highs[k]`, and stays in between."""

    def __init__(self, lows: Sequence[fmpq], highs: Sequence[fmpq]) -> None:
        self._lows, self._highs = lows, highs
        #: The limit until v reaches a number.
        self.limit, self.until = Limit(0, ZERO), lows[0]

    def seek(self, v: fmpq) -> None:
        """Go on to a piece that begins at v, not before the last one."""
        if v < self.until:
            return
        lows, highs = self._lows, self._highs
        k = bisect_right(lows, v) - 1
        if v < highs[k]:
            slope = 1 / (highs[k] - lows[k])
            self.limit, self.until = Limit(k, -lows[k] * slope, slope), highs[k]
        else:  # in a jump between two cells, or beyond the last
            self.limit, self.until = Limit(k, fmpq(1)), lows[k + 1] if k + 1 < len(lows) else NEVER


class Sweep:
    """Cells in increasing order, with places that do not decrease, and the pieces of L.

    `sign`: +1 where t gives the output (u = place - v), -1 where it gives the input (u = v - place).
    `size`: words of the numbers in cells, for counted work. `terms`: those of another sweep with the same pieces and sign.

    Integrals over a piece of v between breakpoints are polynomials in v itself, whose parts many pieces share. By powers of v

        int w a (place - v)^i dt = a sum_j binom(i, j) (-v)^j int w place^(i - j) dt,

    where the integrals on the right up to a limit are known for each cell. Where w is linear, what is added in a cell is
    integrated by parts instead: primitives of a are polynomials in the place less v.
    """

    def __init__(
        self, cells: Sequence[Cell], branches: Branches, sign: int, size: float = 1.0, terms: Terms | None = None
    ) -> None:
        degree, weight = max(map(len, branches.rows)), max(c.weight.length() for c in cells)
        number, knots = work.flint(size + work.words(branches.knots)), len(branches.knots)
        #: Microseconds for the integral of one branch up to the share of one cell (`_parts`); and `each` for the whole integral
        #: and that between two limits that move, on one piece, where those are known.
        self.part = (3 + 0.6 * degree**2 + 0.02 * degree**3) * (11 + weight) / 12
        # A knot enters each cell, and leaves it.
        sums = (2 + degree + degree**2 / 7) * (7 + weight) / 8
        work.count(len(cells) * ((2 + knots) * number + sums) + (2 * knots + 1) * (4 + degree**2 / 5))
        self.cells = cells
        # In the order of increasing t.
        self.offsets = [sign * exact(k) for k in branches.knots][::sign]
        #: Where u passes the knots of L, and the integral over all cells.
        self.paths = [Path([c.low - o for c in cells], [c.high - o for c in cells]) for o in self.offsets]
        #: What paths turn, from place `knots` on, and before these the sums of two, of four, ...: at 1 that of all. Few change
        #: from piece to piece; those of `_stale` paths are still to be.
        self._turns, self._stale = [_NOTHING] * max(2 * knots, 2), set(range(knots))
        self._known: dict[tuple[int, int], list[arb_poly]] = {}
        self._start: dict[tuple[int, int], arb_poly] = {}
        self._end = Limit(len(cells) - 1, fmpq(1))
        self.until = min((path.until for path in self.paths), default=NEVER)
        self.terms = _terms(branches, sign) if terms is None else terms
        #: Whether primitives do: weights are linear, and no digits are lost in quotients by the square of a change of place.
        self.plain = not any(c.weight.length() > 2 or 0 < c.high - c.low < NARROW for c in cells)
        ends = 30 + degree**2 / 2 if self.plain else 3 * (knots + 2) + 2 * self.part
        self.each = (knots + 2) + 2 * (2 + math.log2(knots + 1)) * number + ends + (degree + weight) ** 2 / 20

    @cached_property
    def _moments(self) -> list[list[arb_poly]]:
        """Up to the share s of each cell the integrals of w, of w times the place, its square, ..., and at last of z."""
        moments, sums = [], [arb(0)] * (len(self.terms[0]) + 1)
        for c in self.cells:
            place, length, row = line(c.low, c.high), arb(c.end - c.start), []
            power = c.weight * length
            for total in sums[:-1]:
                row.append(power.integral() + total)
                power = power * place
            row.append(c.subtract.integral() * length + sums[-1])
            moments.append(row)
            sums = [moment(_ONE) for moment in row]
        return moments

    @property
    def totals(self) -> list[arb]:
        """The whole integrals of w, of w times the place, ..., and at last of z."""
        return [moment(_ONE) for moment in self._moments[-1]]

    def _parts(self, branch: int, cell: int) -> list[arb_poly]:
        """The integral of a branch up to the share s of a cell: what each power of v is multiplied by, for the highest first."""
        found = self._known.get((branch, cell))
        if found is None:
            work.count(self.part)
            *moments, z = self._moments[cell]
            found = self._known[branch, cell] = []
            for terms in self.terms[branch]:
                part = _NOTHING
                for power, factor in terms:
                    part += moments[power] * factor
                found.append(part)
            if branch <= len(self.offsets):
                found[-1] -= z
        return found

    @cached_property
    def _laws(self) -> list[tuple[arb_poly, arb_poly, arb_poly]]:
        """Each branch as a polynomial in the place less v, its primitive, and that one's."""
        laws = []
        for *_, terms in self.terms:
            row = [_NONE] * len(self.terms[0])
            for power, factor in terms:
                row[power] = factor
            laws.append((law := arb_poly(row), first := law.integral(), first.integral()))
        return laws

    def _primitive(self, branch: int, c: Cell, s: arb_poly, place: arb_poly) -> arb_poly:
        """A primitive of the integrand at the share s of a cell where the place less v is `place`: by parts."""
        (law, first, second), length, width = self._laws[branch], c.end - c.start, c.high - c.low
        if width:
            found = first(place) * c.weight(s) * arb(length / width)
            if c.weight.length() > 1:
                found -= second(place) * (c.weight[1] * arb(length / (width * width)))
        else:
            found = law(place) * c.weight.integral()(s) * arb(length)
        if branch <= len(self.offsets) and c.subtract.length():
            found -= c.subtract.integral()(s) * arb(length)
        return found

    def _before(self, branch: int, cell: int) -> arb_poly:
        """The integral of a branch up to a cell, less what its primitive is where the cell begins."""
        found = self._start.get((branch, cell))
        if found is None:
            work.count(self.part)
            c, (*moments, z) = self.cells[cell], (moment[0] for moment in self._moments[cell])
            sums = [sum((moments[power] * factor for power, factor in terms), _NONE) for terms in self.terms[branch]]
            found = arb_poly(sums[::-1]) - self._primitive(branch, c, _NOTHING, arb_poly([arb(c.low), -1]))
            if branch <= len(self.offsets):
                found -= z
            self._start[branch, cell] = found
        return found

    def _upto(self, branch: int, limit: Limit, v: arb_poly | None = None) -> arb_poly:
        """The integral of a branch up to a limit."""
        found = limit.known.get(branch)
        if found is None:
            s = arb_poly([arb(limit.place), arb(limit.slope)])
            if self.plain:
                c, found = self.cells[limit.cell], self._before(branch, limit.cell)
                low, rise = c.low + (c.high - c.low) * limit.place, (c.high - c.low) * limit.slope
                if v is None:
                    found = found + self._primitive(branch, c, s, arb_poly([arb(low), arb(rise - 1)]))
                else:
                    found = found(v) + self._primitive(branch, c, s, arb_poly([arb(low), arb(rise)]) - v)
            else:
                first, *parts = self._parts(branch, limit.cell)
                found = first(s)
                for part in parts:  # Horner
                    found = (found.left_shift(1) if v is None else found * v) + part(s)
            limit.known[branch] = found
        return found

    def seek(self, v: fmpq) -> None:
        """Go on to a piece that begins at v, not before the last one."""
        if v >= self.until:
            for k, path in enumerate(self.paths):
                if v >= path.until:
                    path.seek(v)
                    self._stale.add(k)
            self.until = min((path.until for path in self.paths), default=NEVER)

    def _turned(self) -> list[arb_poly]:
        """`_turns` as they are on this piece."""
        turns, knots, above = self._turns, len(self.paths), set()
        for k in self._stale:
            turns[knots + k] = self._upto(knots + 1 + k, self.paths[k].limit)
            i = (knots + k) // 2
            while i and i not in above:
                above.add(i)
                i //= 2
        self._stale.clear()
        for i in sorted(above, reverse=True):
            turns[i] = turns[2 * i] + turns[2 * i + 1]
        return turns

    def whole(self) -> arb_poly:
        """The integral over all cells."""
        return self._upto(len(self.paths), self._end) + self._turned()[1]

    def between(self, a: Limit, b: Limit, at: fmpq, v: arb_poly | None = None) -> arb_poly:
        """int_a^b of the integrand, for a piece with the value `at` of the variable inside.

        `v`: a polynomial in what the limits move with, if it is not the variable itself, for losses in one piece.
        """
        low, high, knots = a(at), b(at), len(self.offsets)
        if high <= low:
            return arb_poly()
        first = bisect_right(self.paths, low, key=lambda path: path.limit(at))
        last = max(first, bisect_left(self.paths, high, key=lambda path: path.limit(at)))
        total = self._upto(last, b, v) - self._upto(first, a, v)
        if first == last:
            return total
        turns, first, last = self._turned(), first + knots, last + knots
        while first < last:
            if first % 2:
                total, first = total + turns[first], first + 1
            if last % 2:
                total, last = total + turns[last - 1], last - 1
            first, last = first // 2, last // 2
        return total


def _terms(branches: Branches, sign: int) -> Terms:
    """Of each branch in the order of increasing t, and then of what is lost from one to the next, for each power of v from the
    highest on: (the power of the place, a factor), ...
    """
    degree, rows = max(map(len, branches.rows)), []
    for row in branches.rows[::sign]:
        rows.append([arb(exact(a)) * sign**i for i, a in enumerate(row)] + [arb(0)] * (degree - len(row)))
    rows += [[a - b for a, b in zip(*pair, strict=True)] for pair in pairwise(rows)]
    return [
        [
            [(i - j, row[i] * ((-1) ** j * math.comb(i, j))) for i in range(j, degree) if row[i] != 0]
            for j in reversed(range(degree))
        ]
        for row in rows
    ]


def integration(terms: int, degree: int) -> float:
    """Microseconds for the integral over part of a cell of `terms` powers of t, whose coefficients have `degree` powers of v."""
    return 2 + terms + terms**2 / 4 + terms**2 * degree / 50


def search(terms: int) -> float:
    """Microseconds for the Bernstein coefficients of a polynomial with so many coefficients, or for halving its interval."""
    return 10 + terms**2 / 5


def line(start: fmpq, end: fmpq) -> arb_poly:
    """What goes linearly from `start` at s = 0 to `end` at s = 1."""
    return arb_poly([arb(start), arb(end - start)])


def pieces(points: Iterable[fmpq], low: fmpq, high: fmpq) -> list[tuple[fmpq, fmpq]]:
    """The intervals between the points inside [low, high]."""
    inside = ordered([p for p in points if low < p < high])
    return [(a, b) for a, b in pairwise([low, *inside, high]) if a != b]


def ordered(points: list[fmpq]) -> list[fmpq]:
    """The points in increasing order: nearly always that of their floats, which are faster to compare."""
    try:
        found = sorted(points, key=float)
    except OverflowError:
        return sorted(points)
    return found if all(a <= b for a, b in pairwise(found)) else sorted(found)


def least(polynomial: arb_poly, tolerance: arb, known: arb | None = None) -> arb:
    """A lower bound of a polynomial on [0, 1], as a ball whose lower end counts.

    Cut until it is nonnegative, or within `tolerance` of the least value at an end, or after many cuts.
    `known`: a value that is reached elsewhere: what is proven to be no lower, within `tolerance`, is not cut further.
    """
    work.count(search(len(polynomial)))
    stack, low, left = [(bernstein(polynomial.coeffs() or [arb(0)]), 0)], None, CUTS
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
        stack += [(part, depth + 1) for part in halves(piece, _turn(piece, depth))]
    assert low is not None
    return low


def most(polynomial: arb_poly, tolerance: arb, known: arb | None = None) -> arb:
    """An upper bound of a polynomial on [0, 1], as a ball whose upper end counts, within `tolerance` of a value.

    `known`: a value that has been reached elsewhere: what is proven not to exceed it is not cut further.
    """
    work.count(search(len(polynomial)))
    stack, high, left = [(bernstein(polynomial.coeffs() or [arb(0)]), 0)], known, CUTS
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
        stack += [(part, depth + 1) for part in halves(piece, _turn(piece, depth))]
    assert high is not None
    return high


def _turn(piece: Sequence[arb], depth: int) -> arb | None:
    """At every other depth about where a parabola with the slopes at both ends turns: cuts converge to a turn quadratically."""
    if depth % 2 or len(piece) < 3:
        return None
    start, end = (float((b - a).mid()) for a, b in (piece[:2], piece[-2:]))
    return arb(min(max(start / (start - end), 2.0**-20), 1 - 2.0**-20)) if -math.inf < start * end < 0 else None

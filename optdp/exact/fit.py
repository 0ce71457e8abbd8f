"""Piecewise polynomials below and above a nondecreasing function of a distance, close to it.

All are nondecreasing themselves, jumps included: the set where such a function is at most a level is an interval, as it is for
the function that it stands for. So a piece may lie lower (or higher) than it must, but never so that the next one falls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from heapq import heappop, heappush

import numpy as np
from flint import arb, ctx, fmpq_mat

from optdp.exact import enclosures, polynomial
from optdp.exact.sweep import exact, horner

Rows = list[list[Fraction]]

#: Degree of the pieces of powers, and their relative error.
DEGREE, CLOSE = 12, Fraction(2, 10**6)
#: Ratios of the ends of a piece of a power, the widest first.
RATIOS = tuple(1 + Fraction(15, 2**k) for k in range(12))
#: Degrees and the largest number of pieces of sampled functions; the error at which they are not halved any more, and how many
#: times that a polynomial may be moved.
DEGREES, PIECES, FINE, FAR = (8, 4, 1), 24, 5e-7, 50


@lru_cache(256)
def power(q: float, nearest: float) -> tuple[list[Fraction], Rows, Rows]:
    """(breaks, below, above): d^q for 0 <= d <= 1 in pieces from each of the breaks on, which are the same up to scale.

    Below `nearest` one piece will do.
    """
    with ctx.workprec(enclosures.PRECISION):
        for ratio in RATIOS:
            found = _unit_piece(q, ratio)
            if found is not None:
                break
        else:
            raise ValueError(f"exponent = {q!r} is not allowed: no polynomials are close to this power")
        row, error = found
        steps = max(1, math.ceil(-math.log(nearest) / math.log(ratio)))
        breaks, below, above = [Fraction(0)], [], []
        for k in range(steps, 0, -1):
            start = ratio**-k
            scale = _cut(enclosures.ball(start) ** enclosures.ball(q), 120)
            scaled = [scale * c / start**j for j, c in enumerate(row)]
            if k == steps:  # the first piece: integer powers, the least above q and the largest below it
                least = math.ceil(q) if q <= DEGREE else 0
                below.append([*[Fraction(0)] * least, scale / start**least * (1 - error) if least else Fraction(0)])
                most = min(math.floor(q), DEGREE)
                above.append([*[Fraction(0)] * most, scale / start**most * (1 + error)])
            breaks.append(start)
            below.append([c * (1 - error) for c in scaled])
            above.append([c * (1 + error) for c in scaled])
    return breaks, below, above


def _unit_piece(q: float, ratio: Fraction) -> tuple[list[Fraction], Fraction] | None:
    """A nondecreasing polynomial on [1, ratio] and a bound of its relative distance from t^q; 1 at 1, and a little less
    than ratio^q at the other end, so that pieces that are rounded still rise from one to the next.
    """
    b, exponent = ratio - 1, enclosures.ball(q)
    nodes = [
        Fraction(round((1 - math.cos(math.pi * i / DEGREE)) / 2 * 2**40), 2**40) * b + 1 for i in range(DEGREE + 1)
    ]
    values = [_cut(enclosures.ball(t) ** exponent, 130) for t in nodes]
    values[-1] *= 1 - Fraction(1, 2**80)
    row = _interpolated(nodes, values)
    row = [Fraction(round(c * 2**160), 2**160) for c in row]
    row[0] += 1 - sum(row)
    if not polynomial.nonnegative(polynomial.slope(row), Fraction(1), ratio):
        return None
    worst, count, order = arb(0), 64, 12
    for i in range(count):  # the difference as a Taylor polynomial around the middle of each part
        low, middle, half = 1 + b * i / count, 1 + b * (2 * i + 1) / (2 * count), b / (2 * count)
        m, h, own = enclosures.ball(middle), enclosures.ball(half), polynomial.moved(row, middle)
        total, term = arb(0), m**exponent
        for j in range(order):
            total += abs((enclosures.ball(own[j]) if j < len(own) else arb(0)) - term) * h**j
            term = term * (exponent - j) / (j + 1) / m
        ends = [(enclosures.ball(e) / m) ** (exponent - order) for e in (middle - half, middle + half)]
        total += abs(term) * ends[0].max(ends[1]) * h**order
        worst = worst.max(total / enclosures.ball(low) ** exponent)
    error = enclosures.upper(worst)
    return (row, Fraction(math.ceil(error * 2**60), 2**60)) if error <= CLOSE else None


def _cut(value: arb, bits: int) -> Fraction:
    """The number to so many significant bits."""
    middle = enclosures._fraction(value.mid())
    shift = bits - (middle.numerator.bit_length() - middle.denominator.bit_length())
    return Fraction(round(middle * Fraction(2) ** shift)) / Fraction(2) ** shift


def _interpolated(points: Sequence[Fraction], values: Sequence[Fraction]) -> list[Fraction]:
    """The polynomial through the points, exactly."""
    size = len(points)
    powers = fmpq_mat(size, size, [exact(point) ** k for point in points for k in range(size)])
    found = powers.solve(fmpq_mat(size, 1, list(map(exact, values)))).entries()
    return [Fraction(int(c.p), int(c.q)) for c in found]


def sampled(
    grid: np.ndarray, values: np.ndarray, slack: np.ndarray, noise: float, *, below: bool
) -> tuple[list[Fraction], Rows]:
    """(breaks, rows) of pieces below (or above) a nondecreasing function with `values` at the even `grid`, that starts at 0.

    **Arguments:** `slack`: for each cell how far the function may lie below (above) the chord; `noise`: how far any value
    may be off. The function is at least (most) its value at the start (end) of a cell, too.
    """
    cells, sign = grid.size - 1, -1.0 if below else 1.0
    fine = FINE * float(values[-1] - values[0])
    done: list[tuple[int, int, np.ndarray | None]] = []
    row: np.ndarray | None
    heap: list[tuple[float, int, int, np.ndarray]] = []

    def enter(a: int, b: int) -> None:
        row, error = _fit(values, a, b)
        if error <= fine:
            done.append((a, b, row))
        else:
            heappush(heap, (-min(error, float(values[b] - values[a])), a, b, row))

    enter(0, cells)
    while heap and len(heap) + len(done) < PIECES and -heap[0][0] > fine:
        _, a, b, row = heappop(heap)
        if b == a + 1:
            done.append((a, b, None))
            continue
        enter(a, (a + b) // 2)
        enter((a + b) // 2, b)
    done += [(a, b, row) for _, a, b, row in heap]
    done.sort(key=lambda piece: piece[0])
    breaks = [Fraction(float(grid[a])) for a, *_ in done]
    rows: Rows = []
    shifts: list[Fraction] = []
    for a, b, row in done:
        level = float(values[a] if below else values[b])
        shift = math.inf if row is None else _needed(values, slack, noise, a, b, row, sign)
        if row is None or shift >= min(float(values[b] - values[a]), FAR * fine):  # others would move as far
            rows.append([Fraction(level)])
            shifts.append(Fraction(noise))
        else:
            start, step = Fraction(float(grid[a])), Fraction(float(grid[b])) - Fraction(float(grid[a]))
            local = [Fraction(c) / step**k for k, c in enumerate(row.tolist())]
            rows.append(polynomial.moved(local, -start))
            shifts.append(Fraction(shift))
    ends = [*breaks[1:], Fraction(float(grid[-1]))]
    order = range(len(rows) - 1, -1, -1) if below else range(len(rows))
    last: Fraction | None = None  # the value that the neighbour begins (ends) with
    for i in order:
        inner, outer = horner(rows[i], breaks[i]), horner(rows[i], ends[i])
        if below:
            rows[i][0] -= shifts[i] if last is None else max(shifts[i], outer - last)
            last = horner(rows[i], breaks[i])
        else:
            rows[i][0] += shifts[i] if last is None else max(shifts[i], last - inner)
            last = horner(rows[i], ends[i])
    return breaks, rows


def _fit(values: np.ndarray, a: int, b: int) -> tuple[np.ndarray, float]:
    """A nondecreasing polynomial in the share of the piece, and about how far it is from the values."""
    best: tuple[np.ndarray, float] | None = None
    look = np.unique(np.linspace(a, b, 513).astype(int))
    share = (look - a) / (b - a)
    for degree in DEGREES:
        if b - a < 4 * degree and degree > 1:
            continue
        place = np.round((1 - np.cos(np.pi * np.arange(degree + 1) / degree)) / 2 * (b - a)).astype(int)
        points = [Fraction(int(k), b - a) for k in place]
        row = np.array([float(c) for c in _interpolated(points, [Fraction(float(values[a + k])) for k in place])])
        rises = polynomial.slope([Fraction(c) for c in row.tolist()])
        if degree > 1 and not polynomial.nonnegative(rises, Fraction(0), Fraction(1)):
            continue
        error = float(np.abs(np.polynomial.polynomial.polyval(share, row) - values[look]).max())
        if best is None or error < best[1]:
            best = row, error
    assert best is not None
    return best


def _needed(values: np.ndarray, slack: np.ndarray, noise: float, a: int, b: int, row: np.ndarray, sign: float) -> float:
    """How far the polynomial must move down (sign -1) or up (+1) to be on its side of the function."""
    share = np.arange(b - a + 1) / (b - a)
    over = sign * (values[a : b + 1] - np.polynomial.polynomial.polyval(share, row))
    size = np.abs(row)
    degrees = np.arange(row.size)
    # Between the values it is at most h^2/8 max|p''| from its chord; then roundings, of the shares too.
    bend = float(size @ (degrees * (degrees - 1))) / (8 * (b - a) ** 2)
    rounding = 2.0**-46 * float(size.sum()) + 2.0**-50 * (values.size / (b - a)) * float(size @ degrees)
    return float((np.maximum(over[:-1], over[1:]) + slack[a:b]).max()) + bend + rounding + noise

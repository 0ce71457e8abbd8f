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
from itertools import pairwise

import numpy as np
from flint import arb, ctx, fmpq_mat

from optdp.exact import enclosures, polynomial
from optdp.exact.polynomial import exact, fraction
from optdp.exact.sweep import horner

Rows = list[list[Fraction]]
#: Of cells a to b of a grid: the polynomial in the share of the piece, and about how far it is from the values.
Fits = dict[tuple[int, int], tuple[np.ndarray, float]]

#: Degree of the pieces of powers, and their relative error.
DEGREE, CLOSE = 12, Fraction(2, 10**6)
#: Ratios of the ends of a piece of a power, the widest first.
RATIOS = tuple(1 + Fraction(15, 2**k) for k in range(12))
#: Degrees and the largest number of pieces of sampled functions; the error at which they are not divided any more, as a share
#: of what matters, and how many times that a polynomial may be moved; the ratio of the ends of a piece that begins next to 0; how
#: many times as far as it must be a place may be moved for the sake of others.
DEGREES, PIECES, FINE, FAR, NEAR, ROOM = (12, 6, 3, 1), 40, 5e-7, 50, 16, 4


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
    worst, count, order = arb(0), 64, len(row)  # no term of the polynomial is left out
    for i in range(count):  # the difference as a Taylor polynomial around the middle of each part
        low, middle, half = 1 + b * i / count, 1 + b * (2 * i + 1) / (2 * count), b / (2 * count)
        m, h, own = enclosures.ball(middle), enclosures.ball(half), polynomial.moved(row, middle)
        total, term = arb(0), m**exponent
        for j in range(order):
            total += abs(enclosures.ball(own[j]) - term) * h**j
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
    return [*map(fraction, found)]


def sampled(
    grid: np.ndarray, values: np.ndarray, slack: np.ndarray, noise: float, eps: float, known: Fits, *, below: bool
) -> tuple[list[Fraction], Rows]:
    """(breaks, rows) of pieces below (or above) a nondecreasing function with `values` at the `grid`, that starts at 0.

    **Arguments:** `slack`: for each cell how far the function may lie below (above) the chord; `noise`: how far any value
    may be off. The function is at least (most) its value at the start (end) of a cell, too. Pieces are finer where the
    windows of mechanisms for `eps` end, of which the integral of the function is about e^-eps of all. `known`: polynomials
    that were found for these values, which are the same on either side and for every `eps`; new ones are added.
    """
    rises = values - values[0]
    least = math.exp(-eps) * float(grid[-1] * rises[-1])
    with np.errstate(divide="ignore", invalid="ignore"):
        matters = np.fmax(rises, least / grid)  # an error of that size costs as much as all
    lowest = float(matters.min())
    done: list[tuple[int, int, np.ndarray | None]] = []
    heap: list[tuple[float, int, int, np.ndarray | None]] = []

    def enter(a: int, b: int) -> None:
        row: np.ndarray | None
        if (a, b) not in known:
            known[a, b] = _fit(grid, values, a, b)
        row, error = known[a, b]
        most = float(values[b] - values[a])
        # Others would move as far as a bad fit: the least (greatest) value of the piece stands for it then.
        if error > FAR * FINE * max(rises[b], lowest):
            row, error = None, most
        # The whole piece moves as far as its worst place must: that costs most where little is lost. What must be is no reason.
        t = _look(grid, a, b)[1:]
        more = np.maximum(float(slack[a:b].max()) - ROOM * slack[t - 1], 0.0)
        by = np.minimum(error + more, most)
        cost = float(np.max(by * (1 - grid[a] / grid[t]) / np.maximum(matters[t], 1e-300)))
        # The programs' meshes follow kinks and jumps: pieces around these tell where they are.
        if cost <= (FINE if a == 0 or (row is not None and row.size > 2) else FINE / 1000):
            done.append((a, b, row))
        else:
            heappush(heap, (-cost, a, b, row))

    # Neighbouring floats are there where the function jumps. Where it is steep at 0 what is next to it is a piece by itself:
    # atoms may be where inputs are.
    jumps = np.flatnonzero(np.nextafter(grid[:-1], grid[-1]) == grid[1:])
    first = int(rises[1] * (grid[-1] / grid[1]) > NEAR * rises[-1])
    for a, b in pairwise(sorted({0, first, *jumps.tolist(), *(jumps + 1).tolist(), grid.size - 1})):
        enter(a, b)
    while heap and len(heap) + len(done) < PIECES + first + jumps.size:
        _, a, b, _ = heappop(heap)
        if b == a + 1:
            done.append((a, b, None))
            continue
        middle = math.sqrt(grid[a]) * math.sqrt(grid[b]) if a else float(grid[b]) / NEAR
        cut = min(max(int(np.searchsorted(grid, middle)), a + 1), b - 1)
        enter(a, cut)
        enter(cut, b)
    done += [(a, b, row) for _, a, b, row in heap]
    done.sort(key=lambda piece: piece[0])
    breaks = [Fraction(float(grid[a])) for a, *_ in done]
    ends = [*breaks[1:], Fraction(float(grid[-1]))]
    bottom = Fraction(float(values[0]))
    rows: Rows = []
    last: Fraction | None = None  # the value that the neighbour begins (ends) with
    for (a, b, fitted), start, end in list(zip(done, breaks, ends, strict=True))[:: -1 if below else 1]:
        piece, move, share = [Fraction(float(values[a if below else b]))], Fraction(noise), math.inf
        if fitted is not None:
            by, of = _needed(grid, values, slack, noise, a, b, fitted, below)
            if by < float(values[b] - values[a]):
                local = [Fraction(c) / (end - start) ** k for k, c in enumerate(fitted.tolist())]
                piece, move, share = polynomial.moved(local, -start), Fraction(by), of
        inner, outer = horner(piece, start), horner(piece, end)
        if last is not None:
            move = max(move, outer - last if below else last - inner)
        if below and share < 1:
            # A share of what it rises above the least value will do too, so that little is lost next to 0. (More than all of it,
            # where the neighbour begins below the least value, would leave a piece that falls.)
            part = Fraction(share) if last is None else max(Fraction(share), (outer - last) / (outer - bottom))
            part = Fraction(math.ceil(part * 2**60), 2**60)
            if part <= 1 and part * (inner - bottom) < move:
                piece, move = [(1 - part) * c for c in piece], -part * bottom
        piece[0] += -move if below else move
        last = horner(piece, start if below else end)
        rows.append(piece)
    rows = rows[:: -1 if below else 1]
    if below and grid.size - 2 in jumps:  # at the end itself it is known, too
        breaks, rows = [*breaks, Fraction(float(grid[-1]))], [*rows, [Fraction(float(values[-1])) - Fraction(noise)]]
    # Of stretches where nothing changes one is enough.
    new = [i for i, row in enumerate(rows) if not i or row != rows[i - 1]]
    return [breaks[i] for i in new], [rows[i] for i in new]


def _look(grid: np.ndarray, a: int, b: int) -> np.ndarray:
    """Places of the grid from a to b, evenly by number and by distance."""
    even = np.searchsorted(grid, np.linspace(grid[a], grid[b], 257)[1:-1])
    return np.unique(np.concatenate([np.linspace(a, b, 257).astype(int), even]))


def _fit(grid: np.ndarray, values: np.ndarray, a: int, b: int) -> tuple[np.ndarray, float]:
    """A nondecreasing polynomial in the share of the piece, and about how far it is from the values."""
    best: tuple[np.ndarray, float] | None = None
    first, width = float(grid[a]), float(grid[b] - grid[a])
    look = _look(grid, a, b)
    share = (grid[look] - first) / width
    for degree in DEGREES:
        place = np.searchsorted(grid, first + width * (1 - np.cos(np.pi * np.arange(degree + 1) / degree)) / 2)
        place[0], place[-1] = a, b
        if degree > 1 and np.diff(place).min() < 2:
            continue
        points = [Fraction(round((float(grid[k]) - first) / width * 2**40), 2**40) for k in place]
        row = np.array([float(c) for c in _interpolated(points, [Fraction(float(values[k])) for k in place])])
        rises = polynomial.slope([Fraction(c) for c in row.tolist()])
        if degree > 1 and not polynomial.nonnegative(rises, Fraction(0), Fraction(1)):
            continue
        error = float(np.abs(np.polynomial.polynomial.polyval(share, row) - values[look]).max())
        if best is None or error < best[1]:
            best = row, error
    assert best is not None
    return best


def _needed(
    grid: np.ndarray, values: np.ndarray, slack: np.ndarray, noise: float, a: int, b: int, row: np.ndarray, below: bool
) -> tuple[float, float]:
    """How far the polynomial must move down (or up) to be on its side of the function, and by which share of what it rises
    above the least value.
    """
    share = (grid[a : b + 1] - grid[a]) / (grid[b] - grid[a])
    fitted = np.polynomial.polynomial.polyval(share, row)
    over = fitted - values[a : b + 1] if below else values[a : b + 1] - fitted
    size, k, h = np.abs(row), np.arange(row.size), np.diff(share)
    # Between the values it is at most h^2/8 max|p''| from its chord; then roundings, of the shares too.
    second = np.abs(np.polynomial.polynomial.polyval(share, (row * k * (k - 1))[2:] if row.size > 2 else [0.0]))
    third = float(size @ (k * (k - 1) * (k - 2)))
    bend = h**2 / 8 * (np.maximum(second[:-1], second[1:]) * (1 + 2.0**-40) + third * (h + 2.0**-46))
    rounding = 2.0**-46 * float(size.sum()) + 2.0**-50 * float(size @ k)
    needed = np.maximum(over[:-1], over[1:]) + slack[a:b] + bend + (rounding + noise)
    rises = fitted[:-1] - values[0] - rounding  # and more up to the cell's end
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        part = np.where(rises > 0, needed / rises, np.inf)
    return float(needed.max()), float(part.max())

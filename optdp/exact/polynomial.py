"""Positivity of polynomials on [0, 1], proven in ball arithmetic by Bernstein coefficients and bisection.

On any interval a polynomial lies between the least and the largest of its Bernstein coefficients there; bisection
(de Casteljau) makes these converge to its values quadratically. A double root that a threshold just misses by delta is
therefore passed after about log2(1/sqrt(delta)) bisections.
"""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from flint import arb, arb_poly, fmpq

from optdp.exact import work

#: Pieces of [0, 1] after which a proof is given up (a refused proof is never wrong, only unhelpful).
PIECES = 5000


def exact(number: float | Fraction) -> fmpq:
    """The number as a rational of FLINT, whose arithmetic is many times faster than that of `fractions`."""
    return fmpq(*number.as_integer_ratio())


def fraction(number: fmpq) -> Fraction:
    """The same number as one of `fractions`."""
    return Fraction(int(number.p), int(number.q))


def bernstein(power: Sequence[Any]) -> list[Any]:
    """Bernstein coefficients on [0, 1] of a polynomial with these coefficients: balls or rationals."""
    n = len(power) - 1
    row = [c / math.comb(n, i) for i, c in enumerate(power)]
    for start in range(1, n + 1):  # sum_i comb(j, i) row[i] for each j
        for j in range(n, start - 1, -1):
            row[j] = row[j] + row[j - 1]
    return row


def halves(coefficients: Sequence[Any], at: arb | None = None) -> tuple[list[Any], list[Any]]:
    """Bernstein coefficients on the left and on the right half of the interval, or of where it is cut `at` another place."""
    rest = None if at is None else 1 - at
    left, right, row = [coefficients[0]], [coefficients[-1]], list(coefficients)
    while len(row) > 1:
        row = [(a + b) / 2 if at is None else a * rest + b * at for a, b in pairwise(row)]
        left.append(row[0])
        right.append(row[-1])
    return left, right[::-1]


def proven_everywhere(
    polynomials: Sequence[arb_poly], holds: Callable[[Sequence[Sequence[arb]]], bool],
    fails: Callable[[Sequence[arb]], bool],
) -> bool:  # fmt: skip
    """Whether [0, 1] can be cut into pieces on each of which `holds` is true of the Bernstein coefficients of `polynomials`.

    **Arguments:** `holds(coefficients)`: a sufficient condition on one piece; `fails(values)`: whether the values at a
    point disprove the statement, which ends the search early.
    """
    stack = [[bernstein(p.coeffs()) for p in polynomials]]
    each = 0.5 * sum(len(c) ** 2 for c in stack[0])
    work.count(each)
    for _ in range(PIECES):
        if not stack:
            return True
        piece = stack.pop()
        work.count(each)
        if holds(piece):
            continue
        if fails([c[0] for c in piece]) or fails([c[-1] for c in piece]):
            return False
        pairs = [halves(c) for c in piece]
        stack.append([right for _, right in pairs])
        stack.append([left for left, _ in pairs])
    return False


def positive(polynomial: arb_poly) -> bool:
    """Whether the polynomial is proven positive on the whole of [0, 1]."""
    return proven_everywhere([polynomial], lambda piece: all(c > 0 for c in piece[0]), lambda ends: bool(ends[0] <= 0))


def moved(row: Sequence[Fraction], by: Fraction) -> list[Fraction]:
    """The coefficients of p(d + by), by repeated synthetic division, of the polynomial p with the coefficients `row`."""
    out, step = [*map(exact, row)], exact(by)
    work.count(len(row) ** 2 * work.rational(work.words(row) / 2 + len(row) * work.words([by]) / 4))
    for i in range(len(out) - 1):
        for k in range(len(out) - 2, i - 1, -1):
            out[k] += step * out[k + 1]
    return [*map(fraction, out)]


def slope(row: Sequence[Fraction]) -> list[Fraction]:
    """The coefficients of the derivative."""
    return [k * a for k, a in enumerate(row)][1:] or [Fraction(0)]


def primitive(row: Sequence[Fraction]) -> tuple[Fraction, ...]:
    """The coefficients of the integral from 0."""
    return Fraction(0), *(a / (k + 1) for k, a in enumerate(row))


def nonnegative(coefficients: Sequence[Fraction], low: Fraction, high: Fraction | None) -> bool:
    """Whether sum_k c_k d^k is proven >= 0 on [low, high], in exact rationals; `high` None: on [low, infinity).

    Without an end it is enough (not necessary) that all derivatives at `low` are >= 0.
    """
    n = len(coefficients)
    shifted = moved(coefficients, low)
    if high is None:
        return all(c >= 0 for c in shifted)
    work.count(n * work.rational(work.words(shifted) + n * work.words([low, high])))
    scaled = [c * (high - low) ** k for k, c in enumerate(shifted)]
    work.count(n * n * work.rational(work.words(scaled) / 2))
    stack = [(bernstein(scaled), 0)]
    while stack:
        piece, depth = stack.pop()
        if all(c >= 0 for c in piece):
            continue
        work.count(n * n * work.rational(work.words(piece) / 2))
        if piece[0] < 0 or piece[-1] < 0 or depth > 40:
            return False
        stack += [(half, depth + 1) for half in halves(piece)]
    return True

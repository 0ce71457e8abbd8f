"""Rational arithmetic for the claims of LIP: with a rational likelihood ratio E every quantity is a fraction.

A mechanism is its joint distribution, `joint[y][i]` = P(X = i, Y = y). Nothing here rounds, and nothing solves a program.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

Joint = list[list[Fraction]]
Gain = Callable[[Sequence[Fraction]], Fraction]


def published(prior: Sequence[Fraction], ratio: Fraction) -> Joint:
    """The published kernel: output j has probability P_j/E for input i != j, the rest goes to the input itself."""
    return [
        [p * q / ratio + (p * (1 - 1 / ratio) if i == j else 0) for i, p in enumerate(prior)]
        for j, q in enumerate(prior)
    ]


def grouped(prior: Sequence[Fraction], groups: Sequence[Sequence[int]], ratio: Fraction) -> Joint:
    """The published kernel on groups of categories: it is eps-LIP if each group has prior probability >= 1/(1+E)."""
    joint = []
    for group in groups:
        share = sum((prior[i] for i in group), Fraction(0)) / ratio
        joint.append([p * (share + (1 - 1 / ratio if i in group else 0)) for i, p in enumerate(prior)])
    return joint


def response(prior: Sequence[Fraction], ratio: Fraction) -> Joint:
    """d-ary randomised response."""
    d = len(prior)
    return [[p * (ratio if i == j else 1) / (ratio + d - 1) for i, p in enumerate(prior)] for j in range(d)]


def from_posteriors(weights: Sequence[Fraction], posteriors: Sequence[Sequence[Fraction]]) -> Joint:
    """The joint distribution with these output probabilities and posteriors."""
    return [[w * r for r in row] for w, row in zip(weights, posteriors, strict=True)]


def prior_of(joint: Joint) -> list[Fraction]:
    """The distribution of the input."""
    return [sum(column, Fraction(0)) for column in zip(*joint, strict=True)]


def ratios(joint: Joint) -> list[list[Fraction]]:
    """posterior / prior for each output and input."""
    prior = prior_of(joint)
    return [[mass / (sum(row) * p) for mass, p in zip(row, prior, strict=True)] for row in joint if any(row)]


def lip(joint: Joint) -> Fraction:
    """e^eps for the least eps with which the mechanism is eps-LIP."""
    flat = [s for row in ratios(joint) for s in row]
    if not min(flat):
        raise ValueError("joint is not allowed: an output rules a category out, so that no eps bounds what it tells")
    return max(*flat, 1 / min(flat))


def ldp(joint: Joint) -> Fraction:
    """e^eps for the least eps with which the mechanism is eps-LDP."""
    return max(max(row) / min(row) for row in ratios(joint))


def square_of_mean(values: Sequence[Fraction]) -> Gain:
    """phi(r) = (sum x_i r_i)^2."""
    return lambda r: sum((x * q for x, q in zip(values, r, strict=True)), Fraction(0)) ** 2


def sum_of_squares(r: Sequence[Fraction]) -> Fraction:
    """phi(r) = sum r_i^2."""
    return sum((q * q for q in r), Fraction(0))


def mean_gain(joint: Joint, gain: Gain) -> Fraction:
    """E phi(posterior)."""
    total = Fraction(0)
    for row in joint:
        mass = sum(row, Fraction(0))
        if mass:
            total += mass * gain([m / mass for m in row])
    return total


def sum_error(joint: Joint, values: Sequence[Fraction]) -> Fraction:
    """Var(X) - Var(E[X|Y]): the mean square error of the best estimator."""
    second = sum((p * x * x for p, x in zip(prior_of(joint), values, strict=True)), Fraction(0))
    return second - mean_gain(joint, square_of_mean(values))


def histogram_error(joint: Joint) -> Fraction:
    """1 - E sum posterior^2."""
    return 1 - mean_gain(joint, sum_of_squares)


def vertices(prior: Sequence[Fraction], ratio: Fraction) -> list[list[Fraction]]:
    """The extreme posteriors that eps-LIP allows: all coordinates but one at a bound P/E or E P."""
    found = set()
    d = len(prior)
    for free in range(d):
        for high in itertools.product((False, True), repeat=d - 1):
            choice = iter(high)
            row = [Fraction(0) if i == free else p * ratio if next(choice) else p / ratio for i, p in enumerate(prior)]
            row[free] = 1 - sum(row, Fraction(0))
            if prior[free] / ratio <= row[free] <= prior[free] * ratio:
                found.add(tuple(row))
    return [list(row) for row in sorted(found)]


def dual_bound(prior: Sequence[Fraction], ratio: Fraction, gain: Gain, prices: Sequence[Fraction]) -> Fraction | None:
    """prices.P, if prices.r >= phi(r) at every extreme posterior (phi convex): then no mechanism gains more. Else None."""
    for r in vertices(prior, ratio):
        if sum(n * q for n, q in zip(prices, r, strict=True)) < gain(r):
            return None
    return sum((n * p for n, p in zip(prices, prior, strict=True)), Fraction(0))


def fewer_outputs(joint: Joint, gain: Gain) -> Joint:
    """At most d outputs with posteriors among those of `joint`, the same prior, and E phi no smaller.

    While there are more outputs than categories their posteriors are linearly dependent, sum z_y r_y = 0. As posteriors
    sum to 1, z has both signs: move the weights along the direction in which E phi does not fall, until one is 0.
    """
    rows = [row for row in joint if any(row)]
    while len(rows) > len(rows[0]):
        weights = [sum(row, Fraction(0)) for row in rows]
        posteriors = [[m / w for m in row] for row, w in zip(rows, weights, strict=True)]
        z = _dependence(posteriors)
        if sum(c * gain(r) for c, r in zip(z, posteriors, strict=True)) < 0:
            z = [-c for c in z]
        step = min(w / -c for w, c in zip(weights, z, strict=True) if c < 0)
        moved = [w + step * c for w, c in zip(weights, z, strict=True)]
        rows = [[w * q for q in r] for w, r in zip(moved, posteriors, strict=True) if w]
    return rows


def _dependence(rows: Sequence[Sequence[Fraction]]) -> list[Fraction]:
    """z != 0 with sum z_y rows[y] = 0, for more rows than columns: elimination that remembers what it combined."""
    n = len(rows)
    work = [list(row) + [Fraction(int(k == y)) for k in range(n)] for y, row in enumerate(rows)]
    columns = len(rows[0])
    done = 0
    for c in range(columns):
        pivot = next((k for k in range(done, n) if work[k][c]), None)
        if pivot is None:
            continue
        work[done], work[pivot] = work[pivot], work[done]
        for k in range(done + 1, n):
            factor = work[k][c] / work[done][c]
            work[k] = [a - factor * b for a, b in zip(work[k], work[done], strict=True)]
        done += 1
    return work[done][columns:]


def binomial(users: int, p: Fraction) -> list[Fraction]:
    """The distribution of a sum of independent bits."""
    return [math.comb(users, s) * p**s * (1 - p) ** (users - s) for s in range(users + 1)]


def databases(users: int, p: Fraction) -> dict[tuple[int, ...], Fraction]:
    """The probability of each database of independent bits."""
    return {bits: p ** sum(bits) * (1 - p) ** (users - sum(bits)) for bits in itertools.product((0, 1), repeat=users)}


def tail_revealed_as_one(users: int, low: Fraction, high: Fraction) -> Fraction:
    """Error of publishing the sum of fair bits if its share lies in [low, high], and else one symbol for all the rest."""
    law = binomial(users, Fraction(1, 2))
    inside = [low * users <= s <= high * users for s in range(users + 1)]
    rest: list[Any] = [(s, q) for s, (q, keep) in enumerate(zip(law, inside, strict=True)) if not keep]
    mass = sum(q for _, q in rest)
    mean = sum(q * s for s, q in rest) / mass if mass else Fraction(0)
    return sum((q * (s - mean) ** 2 for s, q in rest), Fraction(0))

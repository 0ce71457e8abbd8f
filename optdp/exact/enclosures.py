"""Ball arithmetic at the edges: rationals in, proven inequalities and outward-rounded floats out.

A float is an exact dyadic rational, and so is every epsilon that a user passes. What is irrational (e^eps, powers,
logarithms) is enclosed by Arb balls (python-flint); an inequality counts only when the whole ball satisfies it.
"""

from __future__ import annotations

import math
from fractions import Fraction

from flint import arb, ctx, fmpq

#: Working precision in bits: floats carry 53, so that about 140 guard bits absorb cancellation.
PRECISION = 192


def ball(number: Fraction | float | int) -> arb:
    """The Arb ball of an exact rational (a float is one). Exact for floats, else at the working precision."""
    if isinstance(number, Fraction):
        return arb(fmpq(number.numerator, number.denominator))
    return arb(number)


def exp(eps: float) -> arb:
    """An enclosure of e^eps for the exact value of the float `eps`."""
    return ball(eps).exp()


def at_most_exp(ratio: Fraction, eps: float) -> bool:
    """Whether `ratio` <= e^eps, proven. (Equality happens only at eps = 0, ratio = 1.)"""
    if eps == 0:
        return ratio <= 1
    with ctx.workprec(PRECISION):
        return bool(ball(ratio) < exp(eps))


def exp_below(eps: float, bits: int = 128) -> Fraction:
    """A rational R <= e^eps with e^eps - R < 2^-(bits-1) e^eps: the ratio that an exactly private mechanism may use."""
    with ctx.workprec(bits + 8):
        enclosure = exp(eps)
    return max(Fraction(1), _fraction(enclosure.lower()))


def exp_above(eps: float, bits: int = 128) -> Fraction:
    """A rational R >= e^eps with R - e^eps < 2^-(bits-1) e^eps."""
    with ctx.workprec(bits + 8):
        enclosure = exp(eps)
    return _fraction(enclosure.upper())


def _fraction(point: arb) -> Fraction:
    """The exact value of a ball of radius 0."""
    rational = point.fmpq()
    return Fraction(int(rational.p), int(rational.q))


def lower(enclosure: arb) -> Fraction:
    """An exact rational below everything in the ball."""
    return _fraction(enclosure.lower())


def upper(enclosure: arb) -> Fraction:
    """An exact rational above everything in the ball."""
    return _fraction(enclosure.upper())


def round_down(number: Fraction | arb) -> float:
    """The largest float that is not above `number` (for a ball: not above its lower end)."""
    exact = number if isinstance(number, Fraction) else lower(number)
    nearest = float(exact)
    return nearest if Fraction(nearest) <= exact else math.nextafter(nearest, -math.inf)


def round_up(number: Fraction | arb) -> float:
    """The smallest float that is not below `number` (for a ball: not below its upper end)."""
    exact = number if isinstance(number, Fraction) else upper(number)
    nearest = float(exact)
    return nearest if Fraction(nearest) >= exact else math.nextafter(nearest, math.inf)


def log_above(ratio: Fraction) -> float:
    """The smallest float that is provably not below log(ratio): the epsilon that a likelihood ratio stands for."""
    if ratio == 1:
        return 0.0
    with ctx.workprec(PRECISION):
        return round_up(ball(ratio).log())

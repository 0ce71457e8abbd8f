"""Ball arithmetic at the edges: rationals in, proven inequalities and outward-rounded floats out.

A float is an exact dyadic rational, and so is every epsilon that a user passes. What is irrational (e^eps, powers,
logarithms) is enclosed by Arb balls (python-flint); an inequality counts only when the whole ball satisfies it.
"""

import math
from fractions import Fraction

from flint import arb, ctx, fmpq

from optdp.exact.numbers import BITS, Log, Number, above

#: Working precision in bits: floats carry 53, so that about 140 guard bits absorb cancellation.
PRECISION = 192
#: Rationals next to balls have numerators and denominators of about so many bits at most: e^-10^18 is written as 0, or 2^-FAR.
FAR = 2**20
_LEAST, _MOST = arb(2) ** -FAR, arb(2) ** FAR
#: Where an end of a ball is compared with floats as it is, without a rational.
_ORDINARY = arb(2) ** -1000, arb(2) ** 1000
#: More than the roundings of a few floats may add up to where products are too small for floats: their errors are not relative.
TINY = 2.0**-1015


def precise(length: Fraction) -> int:
    """A working precision at which a length is exact: [-1e-320, 1] is longer than 1, and its bounds may lie on a float."""
    return PRECISION + length.numerator.bit_length()


def ball(number: Number) -> arb:
    """The Arb ball of an exact number (`optdp.exact.numbers`). Exact for floats, else at the working precision."""
    if isinstance(number, Log):
        return ball(number.argument).log()
    if isinstance(number, Fraction):
        return arb(fmpq(number.numerator, number.denominator))
    return arb(number)


def exp(eps: Number) -> arb:
    """An enclosure of e^eps for the exact value of `eps`."""
    return ball(eps.argument) if isinstance(eps, Log) else ball(eps).exp()


def at_most_exp(ratio: Fraction, eps: Number) -> bool:
    """Whether `ratio` <= e^eps, proven. (Equality happens only where e^eps is rational: eps = 0 or a logarithm.)"""
    if isinstance(eps, Log):
        return ratio <= eps.argument
    if ratio <= 1 or eps == 0:  # at 1e-320 a ball around e^eps would hold 1
        return ratio <= 1 and eps >= 0
    with ctx.workprec(PRECISION):
        return bool(ball(ratio) < exp(eps))


def at_most(a: Number, b: Number) -> bool | None:
    """Whether a <= b: decided in rationals, or by balls of growing precision; None where they cannot tell them apart."""
    if not isinstance(a, Log) and not isinstance(b, Log):
        return Fraction(a) <= Fraction(b)
    if isinstance(a, Log) and isinstance(b, Log):
        return a.argument <= b.argument
    for bits in (PRECISION, 4 * PRECISION, 16 * PRECISION):
        with ctx.workprec(bits):
            difference = ball(b) - ball(a)
        if difference >= 0:
            return True
        if difference < 0:
            return False
    return None


def exp_below(eps: Number, bits: int = 56) -> Fraction:
    """A rational R <= e^eps with e^eps - R < 2^-(bits-1) e^eps: the ratio that an exactly private mechanism may use."""
    if isinstance(eps, Log):
        return max(Fraction(1), eps.argument)
    with ctx.workprec(bits + 8):  # the ends too: outside they would be rounded to 53 bits
        return max(Fraction(1), lower(exp(eps)))


def exp_above(eps: Number, bits: int = 56) -> Fraction:
    """A rational R >= e^eps with R - e^eps < 2^-(bits-1) e^eps."""
    if isinstance(eps, Log):
        return eps.argument
    with ctx.workprec(bits + 8):
        return upper(exp(eps))


def _fraction(point: arb, up: bool = False) -> Fraction:
    """A number, or next to it, above (`up`) or below, what has at most FAR bits on either side of the point."""
    size = abs(point)
    if point != 0 and size < _LEAST:
        return Fraction((1 if up else -1) if (point > 0) is up else 0, 2**FAR)
    if size > _MOST and point.is_finite():
        if (point > 0) is up:
            raise OverflowError(f"a number is larger than 2^{FAR}")
        return Fraction(-(2**FAR) if up else 2**FAR)
    rational = point.fmpq()
    return Fraction(int(rational.p), int(rational.q))


def lower(enclosure: arb) -> Fraction:
    """An exact rational below everything in the ball."""
    return _fraction(enclosure.lower(), False)


def upper(enclosure: arb) -> Fraction:
    """An exact rational above everything in the ball."""
    return _fraction(enclosure.upper(), True)


def round_down(number: Fraction | arb) -> float:
    """The largest float that is not above `number` (for a ball: not above its lower end)."""
    if isinstance(number, arb) and _ORDINARY[0] < abs(end := number.lower()) < _ORDINARY[1]:
        near = float(end)
        return near if end >= near else math.nextafter(near, -math.inf)
    exact = number if isinstance(number, Fraction) else lower(number)
    near = nearest(exact)
    return near if near <= exact else math.nextafter(near, -math.inf)


def round_up(number: Fraction | arb) -> float:
    """The smallest float that is not below `number` (for a ball: not below its upper end)."""
    if isinstance(number, arb) and _ORDINARY[0] < abs(end := number.upper()) < _ORDINARY[1]:
        near = float(end)
        return near if end <= near else math.nextafter(near, math.inf)
    exact = number if isinstance(number, Fraction) else upper(number)
    near = nearest(exact)
    return near if near >= exact else math.nextafter(near, math.inf)


def nearest(exact: Fraction) -> float:
    """The nearest float; infinite beyond the largest."""
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def log_above(ratio: Fraction) -> float:
    """The smallest float that is provably not below log(ratio): the epsilon that a likelihood ratio stands for."""
    if ratio == 1:
        return 0.0
    with ctx.workprec(PRECISION):
        return round_up(ball(ratio).log())


def log_of(ratio: Fraction) -> Log:
    """The epsilon that a likelihood ratio >= 1 stands for: exactly, or rounded up to as many digits as numbers may have."""
    top, bottom = ratio.as_integer_ratio()
    if max(top, bottom).bit_length() <= BITS:
        return Log(ratio)
    places = max(BITS // 2 - top.bit_length() + bottom.bit_length(), 0)
    return Log(Fraction(-(-(top << places) // bottom), 1 << places))


def rounded_up(number: Number, digits: int = 4) -> str:
    """A number that is promised or spent, rounded up to so many digits; a float that has no more of them as it is written.

    >>> rounded_up(1.00004), rounded_up(0.1), rounded_up(Fraction(1, 3)), rounded_up(Log(Fraction(3)))
    ('1.001', '0.1', '0.3334', '1.099')
    """
    exact = number if isinstance(number, float | Log) else Fraction(number)
    value = (
        log_above(exact.argument) if isinstance(exact, Log) else exact if isinstance(exact, float) else round_up(exact)
    )
    short = f"{value:.{digits}g}"
    kept = float(short) == value and (not isinstance(exact, Fraction) or Fraction(short) >= exact)
    return short if kept else above(value, digits)

"""Exact numbers: floats, rationals, and logarithms of rationals, each standing for one exact real number.

A float means the dyadic rational that it is and is written by `repr`; a `Fraction` (or a decimal string such as "0.1") is
written p/q; `log(Fraction(3))` is the natural logarithm of 3, so that e^eps = 3 exactly when it is an epsilon.
"""

import decimal
import hashlib
import json
import math
import numbers
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

#: Numerators and denominators of rationals may have this many bits: what a file may ask the exact checks to carry.
BITS = 4096
#: Rationals stay where floats reach.
LARGEST = 2**1000


@dataclass(frozen=True)
class Log:
    """The natural logarithm of a rational `argument` > 0, exactly. Build it with `optdp.log`."""

    argument: Fraction

    def __float__(self) -> float:
        top, bottom = self.argument.numerator, self.argument.denominator
        if bottom < 2 * top and top < 2 * bottom:
            return math.log1p((top - bottom) / bottom)
        far = abs(top.bit_length() - bottom.bit_length()) > 1000
        return math.log(top) - math.log(bottom) if far else math.log(top / bottom)

    def __repr__(self) -> str:
        return f"log({self.argument})"


Number = float | int | Fraction | Log


def log(argument: object) -> Log:
    """The natural logarithm of a rational number, kept exact.

    **Arguments:** `argument`: an int, Fraction, decimal string ("0.1", "3/7") or float (its dyadic rational), > 0.

    **Raises** TypeError or ValueError if it is none of these.

        >>> import optdp
        >>> optdp.LDP(optdp.log(3))
        LDP(eps=log(3))
    """
    value = rational(argument, "argument")
    if value <= 0:
        raise ValueError(f"argument = {argument!r} is not allowed: argument must be > 0")
    return Log(value)


def rational(value: object, name: str) -> Fraction:
    """`value` as an exact rational: an int, Fraction, float, or a string "p/q" or decimal. **Raises** as `number` does."""
    found = number(value, name)
    if isinstance(found, Log):
        raise TypeError(f"{name} = {found!r} is not allowed: {name} must be a rational number")
    return Fraction(found)


def number(value: object, name: str) -> Number:
    """`value` as an exact number: a float (an int becomes one), a Fraction (a Decimal or a string such as "1/2" or "0.001" is
    read as one) or a `Log` ("log(p/q)").

    **Raises** TypeError for anything else (bool is no number), ValueError for NaN, infinity, a malformed or oversized one.
    """
    allowed = f"{name} must be a finite float, a Fraction, a string such as '1/2' or '0.001', or optdp.log(Fraction)"
    found: Number
    if isinstance(value, Log):
        found = value
    elif isinstance(value, str):
        found = _parse(value, f"{name} = {value[:60]!r} is not allowed: {allowed}")
    elif isinstance(value, decimal.Decimal):
        if not value.is_finite() or abs(value.adjusted()) > BITS:
            raise ValueError(f"{name} = {value!r} is not allowed: {allowed}")
        found = Fraction(value)
    elif isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} = {value!r} is not allowed: {allowed}")
    elif isinstance(value, numbers.Integral):
        whole = int(value)
        found = float(whole) if abs(whole) <= 2**53 else Fraction(whole)  # 1 and 1.0 are written alike
    elif isinstance(value, numbers.Rational):
        found = Fraction(int(value.numerator), int(value.denominator))
    else:
        found = float(value)
        if not math.isfinite(found):
            raise ValueError(f"{name} = {value!r} is not allowed: {allowed}")
        return found
    exact = found.argument if isinstance(found, Log) else Fraction(found)
    if not isinstance(found, Log) and abs(exact) >= LARGEST:
        raise ValueError(f"{name} is not allowed: {name} must be below 2^1000 in size")
    if max(abs(exact.numerator).bit_length(), exact.denominator.bit_length()) > BITS:
        raise ValueError(f"{name} is not allowed: numerator and denominator may have {BITS} bits each")
    return found


def _parse(text: str, refusal: str) -> Number:
    inner = text[4:-1] if text.startswith("log(") and text.endswith(")") else text
    digits = inner.replace("/", "", 1).replace(".", "", 1).lstrip("+-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= BITS):
        raise ValueError(refusal)
    try:
        value = Fraction(inner)
    except (ValueError, ZeroDivisionError):
        raise ValueError(refusal) from None
    if inner is text:
        return value
    if value <= 0:
        raise ValueError(refusal)
    return Log(value)


def show(value: Number) -> str:
    """How a number is written in statements: floats by `repr`, rationals p/q, logarithms log(p/q)."""
    return str(value) if isinstance(value, Fraction) else repr(value)


def exp_of(eps: Number) -> str:
    """e^eps as it is written in statements: "e^1.0", "e^(1/2)", and "3" where eps is log(3)."""
    if isinstance(eps, Log):
        return str(eps.argument)
    return f"e^({eps})" if isinstance(eps, Fraction) and eps.denominator != 1 else f"e^{show(eps)}"


def plain(value: float | int) -> str:
    """A float by `repr`, an integral one without the point: for ends of domains, of which only the value matters."""
    return str(int(value)) if float(value).is_integer() and abs(value) < 2**53 else repr(float(value))


def span(low: float, high: float) -> str:
    """An interval, with six digits of the larger end, and of the width.

    >>> span(-1 / 3, 1.0), span(1e9, 1e9 + 1 / 3), span(-math.inf, math.inf)
    ('[-0.333333, 1]', '[1000000000, 1000000000.33333]', '[-inf, inf]')
    """
    share = max(abs(low), abs(high)) / ((high - low) or 1.0)  # nan where both are beyond all floats
    digits = 6 + int(math.log10(share if share > 1 else 1.0))
    return f"[{low:.{digits}g}, {high:.{digits}g}]"


def below(value: float, digits: int) -> str:
    """`value` rounded down to so many significant digits: what is printed of a lower bound is still one.

    >>> below(674.9999999996, 9), above(0.1234567890125, 12), below(0.5, 3)
    ('674.999999', '0.123456789013', '0.5')
    """
    return _rounded(value, digits, decimal.ROUND_FLOOR)


def above(value: float, digits: int) -> str:
    """`value` rounded up to so many significant digits (at most 15): what is printed of an upper bound is still one."""
    return _rounded(value, digits, decimal.ROUND_CEILING)


def _rounded(value: float, digits: int, rounding: str) -> str:
    cut = decimal.Context(prec=digits, rounding=rounding).create_decimal_from_float(float(value))
    return f"{float(cut):.{digits}g}"


def digits(exact: Fraction) -> str:
    """A number >= 0 by its first 17 digits, and dots where there are more: a rounded one may be beyond what it is at most.

    >>> digits(Fraction(3)), digits(Fraction(2, 3))
    ('3', '0.66666666666666666...')
    """
    with decimal.localcontext(
        prec=17, rounding=decimal.ROUND_FLOOR, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN
    ) as context:
        context.clear_flags()  # those of the thread are copied
        cut = decimal.Decimal(exact.numerator) / exact.denominator
        return f"{cut:g}" + ("..." if context.flags[decimal.Inexact] else "")


def digest(content: object) -> str:
    """What stands in statements for content that is too long: a part of the sha256 of its bytes, or of its JSON form."""
    raw = content if isinstance(content, bytes) else json.dumps(content).encode()
    return f"with sha256 {hashlib.sha256(raw).hexdigest()[:16]}"


def latex(value: Number) -> str:
    """The number in LaTeX."""
    if isinstance(value, Log):
        return rf"\log {latex(value.argument)}"
    if isinstance(value, Fraction) and value.denominator != 1:
        return rf"\tfrac{{{value.numerator}}}{{{value.denominator}}}"
    text = plain(value) if isinstance(value, float | int) else str(value)
    mantissa, _, exponent = text.partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else text


def prose(text: str) -> str:
    r"""A statement inside LaTeX's \text: powers of e become mathematics, special characters are escaped."""
    parts = re.split(r"(\be\^(?:log)?\([\w/]+\)|\be\^[\w./]*\w)", text)
    for i, part in enumerate(parts):
        if i % 2:
            power = part[3:-1] if part[2] == "(" else part[2:]
            parts[i] = f"$e^{{{power}}}$"
        else:
            escaped = re.sub(r"([#%&_{}$])", r"\\\1", part.replace("\\", r"\textbackslash "))
            parts[i] = re.sub(r"([|<>]=?)", r"$\1$", escaped.replace("^", r"\^{}"))  # dashes and the like in text
    return "".join(parts)


def counted(n: int, what: str) -> str:
    """1 round, 2 rounds."""
    return f"{n} {what}{'s' * (n != 1)}"


def encode(value: Number) -> float | int | str:
    """JSON form: floats and ints as they are, the rest as the string that `number` reads."""
    return value if isinstance(value, float | int) else show(value)


def next_float(q: Fraction) -> float:
    """The least float that is larger; infinite if none is."""
    try:
        near = float(q)
    except OverflowError:
        return math.inf if q > 0 else -sys.float_info.max
    return near if Fraction(near) > q else math.nextafter(near, math.inf)


def border(holds: Callable[[float], bool], low: float, high: float, width: float = 0.0) -> tuple[float, float]:
    """(a place where `holds`, one where it does not), at most `width` apart, or neighbouring floats: by bisection.

    **Arguments:** `low`: where it holds; `high`: where it does not.
    """
    while high - low > width and low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high

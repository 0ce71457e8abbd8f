"""Checks of what users pass in. Every error names the argument, the value and what is allowed."""

import math
import numbers
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact.numbers import Log, Number, number

#: e^30 is 10^13: a larger epsilon promises nothing, and the probabilities that carry it sink below double precision.
MAX_EPS = 30.0
#: Below this, floats of an epsilon lose digits and then are 0.
FAINTEST_EPS = 1e-300
#: Characters of a name.
LABEL = 200


def real(
    name: str, value: object, *, low: float = -math.inf, high: float = math.inf, open_low: bool = False,
    open_high: bool = False,
) -> float:  # fmt: skip
    """`value` as a float, if it is a finite real number between `low` and `high`.

    **Raises** TypeError if it is not a real number (bool and str are not), ValueError if it is NaN,
    infinite or out of range.
    """
    if type(value) is float and low < value < high:  # at once: files have lists of many
        return value + 0.0
    allowed = f"{name} must be a finite number"
    if not (math.isinf(low) and math.isinf(high)):
        left = "(" if open_low or math.isinf(low) else "["
        right = ")" if open_high or math.isinf(high) else "]"
        allowed = f"{name} must be a number in {left}{low:g}, {high:g}{right}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} = {value!r} is not allowed: {allowed}")
    try:
        number = float(value) + 0.0  # 0.0 for -0.0
    except OverflowError:  # an integer or a fraction beyond all floats
        raise ValueError(f"{name} is not allowed: {allowed}") from None
    too_low = number <= low if open_low else number < low
    too_high = number >= high if open_high else number > high
    if not math.isfinite(number) or too_low or too_high:
        raise ValueError(f"{name} = {value!r} is not allowed: {allowed}")
    return number


def integer(name: str, value: object, *, low: int, high: int | None = None) -> int:
    """`value` as an int, if it is an integer between `low` and `high`.

    **Raises** TypeError if it is not an integer (2.0 and True are not), ValueError if out of range.
    """
    if type(value) is int and low <= value and (high is None or value <= high):
        return value
    allowed = f"{name} must be an integer >= {low}" + ("" if high is None else f" and <= {high}")
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise TypeError(f"{name} = {value!r} is not allowed: {allowed}")
    number = int(value)
    if number < low or (high is not None and number > high):
        shown = (
            f" = {value!r}" if number.bit_length() <= 1000 else ""
        )  # Python refuses to print those of many thousands
        raise ValueError(f"{name}{shown} is not allowed: {allowed}")
    return number


def exact(name: str, value: object, *, low: float = 0.0, **limits: Any) -> Number:
    """`value` as an exact number (`optdp.exact.numbers`) that is not negative, if its float keeps the limits, as in `real`."""
    found = number(value, name)
    real(name, float(found), low=low, **limits)
    if (found.argument < 1) if isinstance(found, Log) else found < 0:  # its float may be 0
        raise ValueError(f"{name} = {found!r} is not allowed: {name} must be >= 0")
    return found


def epsilon(value: object, *, zero: bool = False, name: str = "eps") -> float:
    """A privacy parameter epsilon in (0, 30], or [0, 30] if `zero` is allowed, as a float."""
    return real(name, value, low=0.0, high=MAX_EPS, open_low=not zero)


def exact_epsilon(value: object, *, zero: bool = False, least: float = 0.0, name: str = "eps") -> Number:
    """A privacy parameter in (0, 30] (or [0, 30], [least, 30]) as an exact number: a float, Fraction, decimal string or
    `optdp.log`.
    """
    found = exact(name, value, low=least, high=MAX_EPS, open_low=not (zero or least))
    exactly_zero = found.argument == 1 if isinstance(found, Log) else found == 0
    if float(found) < FAINTEST_EPS and not (zero and exactly_zero):  # its float may be 0, or that of a negative number
        raise ValueError(f"{name} is not allowed: above 0 it must be at least {FAINTEST_EPS:g}")
    return found


def choice(name: str, value: object, allowed: tuple[str, ...], *others: str) -> str:
    """`value`, if it is one of the strings `allowed`. **Raises** TypeError or ValueError otherwise, which name `others` too:
    what the caller takes beside them.
    """
    if isinstance(value, str) and value in allowed:
        return value
    kind = ValueError if isinstance(value, str) else TypeError
    words = [*map(repr, dict.fromkeys(allowed)), *others]
    one = f"one of {', '.join(words)}" if len(words) != 1 else words[0]
    raise kind(f"{name} = {value!r} is not allowed: {name} must be {one}")


def label(name: str, value: object) -> str:
    """`value`, if it is one line of printable characters: what is shown beside proven sentences must not look like one.

    **Raises** TypeError if it is no string, ValueError otherwise.
    """
    allowed = f"{name} must be one line of 1 to {LABEL} printable characters"
    if not isinstance(value, str):
        raise TypeError(f"{name} = {value!r} is not allowed: {allowed}")
    if not 0 < len(value) <= LABEL or not value.isprintable():
        raise ValueError(f"{name} = {value[:LABEL]!r} is not allowed: {allowed}")
    return value


def listed(name: str, value: Any, entries: str = "numbers") -> list[Any]:
    """`value` as a list. **Raises** TypeError if it is a text, or nothing that has entries."""
    with suppress(TypeError):
        if not isinstance(value, str | bytes):
            return list(value)
    shown = f" = {value!r}" if value is None or isinstance(value, int | float) else ""
    raise TypeError(f"{name}{shown} is not allowed: {name} must be a list of {entries}")


def reals(values: ArrayLike, name: str) -> np.ndarray:
    """An array of floats. **Raises** TypeError if they are not real numbers, ValueError if one is beyond all floats."""
    try:
        if getattr(values, "dtype", float) in (complex, np.complex64):  # numpy warns, and goes on without half of them
            raise TypeError
        return np.asarray(values, dtype=float)
    except OverflowError:
        raise ValueError(f"{name} is not allowed: {name} must be numbers within the range of floats") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} is not allowed: {name} must be real numbers, in an array of one shape") from None


def unmasked(x: ArrayLike, name: str = "x") -> ArrayLike:
    """`x`, if no entry of it is masked: what a mask hides would be answered, and shown, as if it were data."""
    if isinstance(x, list | tuple):  # its entries
        hidden = np.array([isinstance(row, np.ma.MaskedArray) and np.ma.is_masked(row) for row in x])
    else:
        hidden = np.ma.getmaskarray(x).reshape(-1) if isinstance(x, np.ma.MaskedArray) else np.zeros(0, dtype=bool)
    if hidden.any():
        raise ValueError(
            f"{name} (entry {int(np.argmax(hidden))}) is masked, which is not allowed: leave it out, as with {name}.compressed()"
        )
    return x


def array(x: ArrayLike, name: str = "x") -> np.ndarray:
    """`x` as an array. **Raises** TypeError where its rows have several lengths, ValueError where an entry is masked."""
    given = unmasked(x, name)
    try:
        return np.asarray(given)
    except ValueError:
        raise TypeError(f"{name} is not allowed: {name} must be an array of one shape") from None

"""Work is counted, not timed: each proof says how much is to be done before it does it, and stops where a limit is passed.

The unit is the microsecond of a common processor, roughly: what a few operations on Python integers take. Counts are functions of
sizes alone, so that a file is accepted or refused alike on every machine.

    >>> with limited(10.0):
    ...     count(3e6)
    >>> with limited(1.0, "s.json"):  # doctest: +ELLIPSIS
    ...     count(3e6)
    Traceback (most recent call last):
    optdp.exact.work.Overwork: s.json asks for more work than is allowed: at least 3 seconds of a common processor, where the ...
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

#: Seconds of a common processor that checking a file may take if nothing else is said.
LIMIT = 10.0


class Overwork(RuntimeError):
    """What is asked for takes more work than the limit allows; the message says how to raise it."""


@dataclass
class _Meter:
    seconds: float
    subject: str
    outer: _Meter | None
    done: float = 0.0

    def add(self, microseconds: float) -> None:
        if self.outer is not None:
            self.outer.add(microseconds)
        self.done += microseconds
        if self.done > self.seconds * 1e6:
            needed = math.ceil(min(self.done / 1e6, 1e300))
            raise Overwork(
                f"{self.subject} asks for more work than is allowed: at least {needed:.6g} seconds of a common processor, "
                f"where the limit is {self.seconds:.6g}; it goes on with a larger one (limit=, on the command line --limit)"
            )


_meter: ContextVar[_Meter | None] = ContextVar("meter", default=None)


@contextmanager
def limited(seconds: float, subject: str = "this proof") -> Iterator[_Meter]:
    """Inside, `count` stops what takes more than so many seconds in all; within another `limited`, its limit holds too.

    **Returns** what counts the work, in microseconds (`done`).

    **Arguments:** `subject`: what the message is about.

    **Raises** ValueError if `seconds` is no number > 0; `Overwork` where the limit is passed.
    """
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not seconds > 0:
        raise ValueError(f"limit = {seconds!r} is not allowed: limit must be a number of seconds > 0")
    meter = _Meter(seconds, subject, _meter.get())
    token = _meter.set(meter)
    try:
        yield meter
    finally:
        _meter.reset(token)


def count(microseconds: float) -> None:
    """Say how much work comes next. **Raises** `Overwork` if that is more than is left."""
    meter = _meter.get()
    if meter is not None:
        meter.add(microseconds)


def words(numbers: Iterable[object]) -> float:
    """About how many 64-bit words one of the numbers has when all are written over a common denominator; 1 for none."""
    low, high = 0, 0
    for value in numbers:
        if isinstance(value, float):
            if value and math.isfinite(value):
                exponent = math.frexp(value)[1]
                low, high = min(low, exponent - 53), max(high, exponent)
        elif isinstance(value, int):
            high = max(high, value.bit_length())
        else:
            top, bottom = getattr(value, "numerator", 1), getattr(value, "denominator", 1)
            low, high = min(low, -bottom.bit_length()), max(high, top.bit_length())
    return 1 + (high - low) / 64


def product(first: float, second: float = 1.0) -> float:
    """Microseconds for a product of two integers of so many words."""
    return 0.15 + 0.003 * first * second


def rational(size: float) -> float:
    """Microseconds for an operation on two fractions of so many words: mostly for the common divisor."""
    return 2 + 0.4 * size + 0.015 * size * size


def flint(size: float) -> float:
    """The same for rationals of FLINT."""
    return 0.5 + 0.3 * size + 0.003 * size * size

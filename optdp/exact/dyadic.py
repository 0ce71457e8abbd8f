"""Arrays of floats as integers over one power of two: exact sums and products without a fraction for each entry."""

from __future__ import annotations

import numpy as np


def integers(values: np.ndarray) -> tuple[np.ndarray, int]:
    """(numerators, bits): finite floats as Python integers over 2^bits, in an array of objects of the same shape.

    >>> integers(np.array([0.5, 3.0]))
    (array([1, 6], dtype=object), 1)
    """
    mantissa, exponent = np.frexp(np.asarray(values, dtype=float))
    whole = (mantissa * 2.0**53).astype(np.int64)
    odd = whole & -whole  # the lowest bit that is set
    spare = np.where(whole == 0, 0, np.frexp(odd.astype(float))[1] - 1)
    power = np.where(whole == 0, 0, exponent - 53 + spare)
    bits = max(0, -int(power.min(initial=0)))
    return (whole >> spare).astype(object) << (power + bits).astype(object), bits

"""Caps of a sphere, many at a time: floats with a proven relative error.

Let t be a coordinate of a uniform direction in R^dim and s = (1 - h)/2 the depth of a cap {t >= h}, a = (dim - 1)/2. As
(1 - t)/2 has a beta law,

    T = E[t; t >= h] = K (4 s (1 - s))^a,      W = P(t >= h) = T sum_k c_k s^k,      E(t - h)_+ = T sum_k e_k s^(k + 1),
    c_0 = 1,  c_(k+1) = c_k (2 a + k)/(a + 1 + k),      e_k = c_k (k + 2)/(a + 1 + k),

with positive terms only. Up to s = 1/2 the series converge fast; for h < 0, W(h) = 1 - W(-h) and E(t - h)_+ = -h + E(t + h)_+.
All is additions, multiplications, divisions and square roots of floats, which are rounded correctly: alike everywhere.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from flint import arb, ctx

#: Half the distance of 1 to the next float: what each operation may be wrong by.
UNIT = 2.0**-53
#: What may be added to all results where something underflowed.
TINY = 2.0**-900
#: Most dimensions; what is left out of a series is less than this share of it.
DIMS, LEFT = 10_000, 2.0**-52


@lru_cache(maxsize=64)
def _series(dim: int) -> tuple[float, np.ndarray, np.ndarray]:
    """(K, c, e), each the nearest float to what it is, or one next to that."""
    with ctx.workprec(128):
        a = (arb(dim) - 1) / 2
        constant = ((arb(dim) / 2).lgamma() - a.lgamma()).exp() / (arb.pi().sqrt() * (dim - 1))
        top, first, second = arb(1), [], []
        for k in range(DIMS):
            first.append(float(top.mid()))
            second.append(float((top * (k + 2) / (a + 1 + k)).mid()))
            top = top * (dim - 1 + k) / (a + 1 + k)
            if k > 60 and first[-1] * 2.0**-k < LEFT**2:
                break
        return float(constant.mid()), np.array(first), np.array(second)


def _terms(dim: int, depth: float) -> int:
    """How many terms leave out less than the share LEFT of a series, up to this depth of at most 1/2."""
    if not depth > 0:
        return 1
    part = _series(dim)[1]
    k = np.arange(part.size)
    # Of both series: e_k/e_0 is at most c_k (k + 2)/2, and so much less is each term at least than the one before.
    term = part * depth**k * (k + 2) / 2
    ratio = depth * np.maximum(1.0, (dim - 1 + k) / ((dim + 1) / 2 + k)) * (k + 3) / (k + 2)
    enough = np.flatnonzero((ratio < 0.999) & (term < LEFT / 2 * (1 - ratio)))
    return int(enough[0]) + 1


def caps(dim: int, small: np.ndarray, deep: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """(W, T, E(t - h)_+, their relative error) of caps with |h| = 1 - 2 `small`, `small` in [0, 1/2], and h < 0 where `deep`.

    But for `TINY`, which is to be allowed for besides.
    """
    count = _terms(dim, float(small.max(initial=0.0)))
    constant, first, second = _series(dim)
    rest = 4 * small * (1 - small)
    moment = constant * (np.sqrt(rest) if dim % 2 == 0 else 1.0) * _power(rest, (dim - 1) // 2)
    share, over = np.full_like(small, first[count - 1]), np.full_like(small, second[count - 1])
    for k in range(count - 2, -1, -1):
        share *= small
        share += first[k]
        over *= small
        over += second[k]
    share *= moment
    over *= moment * small
    share[deep] = 1 - share[deep]
    over[deep] += 1 - 2 * small[deep]
    # K and a term: 2 each; 2 for each step; powers double errors as often as there are factors.
    return share, moment, over, UNIT * (2 * count + 8 * dim + 64)


def _power(base: np.ndarray, exponent: int) -> np.ndarray:
    """base^exponent by squaring."""
    found = np.ones_like(base)
    while exponent:
        if exponent % 2:
            found = found * base
        base, exponent = base * base, exponent // 2
    return found

"""Sign vectors of k of the d coordinates of a cube: how much they tell, enclosed by balls.

For v uniform on {-1, 1}^d and u = (1, ..., 1, 0, ..., 0)/sqrt(k), k <u, v>^2 = (2 N - k)^2 for N binomial with k and 1/2. The
sign vectors with at least `least` agreements have

    share   W = P(N >= least)              = I(1/2; least, k - least + 1),
    moment  M = E[2 N - k; N >= least]     = least C(k, least)/2^k.

A sign vector that is e^eps times as probable where it agrees that much has E[2 N - k] = (E - 1) M/(1 + (E - 1) W), and
a = E[2 N - k]/sqrt(k) is its mean along the input per unit of length.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from flint import arb

from optdp.exact import Number, enclosures

#: All numbers of coordinates up to here are tried, and a grid of larger ones.
EVERY = 300


def share(k: int, least: int) -> arb:
    """W, for 1 <= least <= k; 1 for least <= 0 and 0 beyond k."""
    if not 1 <= least <= k:
        return arb(1 if least < 1 else 0)
    return (arb(1) / 2).beta_lower(arb(least), arb(k - least + 1), regularized=True)


def moment(k: int, least: int) -> arb:
    """M."""
    choose = (arb(k + 1)).lgamma() - arb(least + 1).lgamma() - arb(k - least + 1).lgamma()
    return least * (choose - k * arb(2).log()).exp()


def gain(eps: Number, k: int, least: int) -> arb:
    """a."""
    ratio = enclosures.exp(eps) - 1
    return ratio * moment(k, least) / (1 + ratio * share(k, least)) / arb(k).sqrt()


def threshold(eps: float, k: int) -> tuple[float, int]:
    """(a, least) for the best `least`, in floats."""
    from scipy.special import gammaln
    from scipy.stats import binom

    # a is unimodal in `least`; no more than 60 standard deviations are of use.
    first = k // 2 + 1
    least = np.arange(first, min(k, first + math.ceil(30 * math.sqrt(k))) + 1)
    tail = binom.sf(least - 1, k, 0.5)
    moments = least * np.exp(gammaln(k + 1) - gammaln(least + 1) - gammaln(k - least + 1) - k * math.log(2))
    ratio = math.expm1(eps)
    found = ratio * moments / (1 + ratio * tail) / math.sqrt(k)
    best = int(np.argmax(found))
    return float(found[best]), int(least[best])


@lru_cache(maxsize=1024)
def best_signs(eps: float, d: int) -> tuple[int, int]:
    """(k, least) with the largest a: all k up to 300, and for larger ones a grid that is refined around its best."""
    trial = {k: threshold(eps, k) for k in range(1, min(d, EVERY) + 1)}
    if d > EVERY:
        grid = np.unique(np.geomspace(EVERY, d, 60).astype(int)).tolist()
        trial |= {k: threshold(eps, k) for k in grid}
        for _ in range(8):
            ordered = sorted(trial)
            place = ordered.index(max(trial, key=lambda k: trial[k][0]))
            low, high = ordered[max(place - 1, 0)], ordered[min(place + 1, len(ordered) - 1)]
            trial |= {k: threshold(eps, k) for k in np.unique(np.linspace(low, high, 16).astype(int)).tolist()}
    # Of several that are alike up to rounding, the one with the fewest coordinates.
    top = max(a for a, _ in trial.values())
    k = min(k for k, (a, _) in trial.items() if a >= top * (1 - 1e-12))
    return k, trial[k][1]

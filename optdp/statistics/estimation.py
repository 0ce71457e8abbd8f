"""Point estimates: the histogram and the mean. `optdp.estimate` adds their uncertainty, and says what is not identified."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optdp.exact import require
from optdp.mechanisms.base import Mechanism
from optdp.statistics.channel import Channel, mixed
from optdp.statistics.estimate import estimate
from optdp.statistics.likelihood import maximise
from optdp.statistics.result import NotIdentified

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


def estimate_histogram(
    mechanism: Mechanism, outputs: ArrayLike, bins: int = 32, *, smooth: bool = False
) -> np.ndarray:  # fmt: skip
    """The most likely distribution of the inputs over `bins` equal bins of the domain.

    **Arguments:** `outputs`: what the mechanism gave, any shape; `smooth`: blur each step of expectation maximisation with
    (1, 2, 1)/4, which suits many bins and a smooth distribution, instead of going to the maximum.

    **Returns** probabilities, shape (bins,), sum 1.

    **Source:** for `smooth` Li et al., "Estimating numerical distributions under local differential privacy", SIGMOD 2020,
    Algorithm 1 (EMS).
    """
    bins = require.integer("bins", bins, low=2)
    channel = Channel.of(mechanism, outputs)
    counts = channel.counts(outputs)
    matrix = mixed(channel, np.linspace(mechanism.domain.lower, mechanism.domain.upper, bins + 1))
    if not smooth:
        return maximise(matrix, counts)
    share, last = np.full(bins, 1 / bins), -np.inf
    seen = counts > 0
    rows, numbers = matrix[seen], counts[seen]
    for _ in range(10_000):
        share = share * (rows.T @ (numbers / (rows @ share)))
        padded = np.concatenate((share[:1], share, share[-1:]))
        share = (padded[:-2] + 2 * padded[1:-1] + padded[2:]) / 4
        share /= share.sum()
        likelihood = float(numbers @ np.log(rows @ share))
        if abs(likelihood - last) <= 1e-3:  # the log-likelihood itself: no test could see the difference
            break
        last = likelihood
    return share


def estimate_mean(mechanism: Mechanism, outputs: ArrayLike, bins: int = 64) -> float:
    """The inputs' mean: that of `optdp.estimate`, or, where the outputs do not determine it, of the most likely histogram.

    **Arguments:** as for `estimate_histogram`. **Returns** one number in the domain.
    """
    try:
        return float(estimate(mechanism, outputs).value)
    except NotIdentified:
        edges = np.linspace(mechanism.domain.lower, mechanism.domain.upper, bins + 1)
        return float(estimate_histogram(mechanism, outputs, bins) @ (edges[:-1] + edges[1:]) / 2)

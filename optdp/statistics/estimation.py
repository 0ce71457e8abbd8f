"""What a curator learns from private outputs: the distribution of the inputs, and their mean."""

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import require
from optdp.mechanisms.base import Mechanism


def transition_matrix(mechanism: Mechanism, bins: int, *, points: int = 16) -> np.ndarray:
    """P(output in bin o | input in bin i), shape (bins, bins), columns summing to 1.

    Bins divide the domain and the outputs' range equally; inputs are averaged over `points` per bin, the density over
    `points` per output bin, atoms at the ends belong to the first and last bin.
    """
    low, high = mechanism.support()
    edges = np.linspace(low, high, bins + 1)
    offsets = (np.arange(points) + 0.5) / points
    inputs = np.linspace(mechanism.domain.lower, mechanism.domain.upper, bins + 1)
    x = (inputs[:-1, None] + offsets * np.diff(inputs)[:, None]).ravel()
    y = (edges[:-1, None] + offsets * np.diff(edges)[:, None]).ravel()
    density = mechanism.density(y[:, None], x[None, :])
    matrix: np.ndarray = density.reshape(bins, points, bins, points).mean(axis=(1, 3)) * (high - low) / bins
    for row, end in ((0, low), (-1, high)):
        matrix[row] += mechanism.probability(end, x).reshape(bins, points).mean(axis=1)
    return matrix / matrix.sum(axis=0)


def estimate_histogram(
    mechanism: Mechanism, outputs: ArrayLike, bins: int = 32, *, smooth: bool = False, iterations: int = 2000,
    rtol: float = 1e-7,
) -> np.ndarray:  # fmt: skip
    """The inputs' distribution over `bins` equal bins of the domain, estimated from private outputs.

    **Arguments:** `outputs`: what the mechanism gave, any shape; `smooth`: blur each step with (1, 2, 1)/4, which
    suits many bins and a smooth distribution; `iterations`, `rtol`: stop when the log-likelihood gains less than `rtol` of
    itself.

    **Returns** probabilities, shape (bins,), sum 1.

    **Source:** expectation maximisation, with smoothing (EMS) on request, as in Li et al., SIGMOD 2020, Algorithm 1.
    """
    bins = require.integer("bins", bins, low=2)
    low, high = mechanism.support()
    values = np.asarray(outputs, dtype=float).ravel()
    if values.size == 0 or not np.all((values >= low) & (values <= high)):
        raise ValueError(f"outputs are not allowed: there must be at least one, all in [{low:g}, {high:g}]")
    counts, _ = np.histogram(values, bins=bins, range=(low, high))
    matrix = transition_matrix(mechanism, bins)
    share = np.full(bins, 1 / bins)
    last = -np.inf
    for _ in range(require.integer("iterations", iterations, low=1)):
        share = share * (matrix.T @ (counts / (matrix @ share)))
        if smooth:
            padded = np.concatenate((share[:1], share, share[-1:]))
            share = (padded[:-2] + 2 * share + padded[2:]) / 4
        share /= share.sum()
        likelihood = float(counts @ np.log(matrix @ share))
        if abs(likelihood - last) <= rtol * abs(likelihood):
            break
        last = likelihood
    return share


def estimate_mean(mechanism: Mechanism, outputs: ArrayLike, bins: int = 64) -> float:
    """The inputs' mean, from the estimated histogram (bins at their centres).

    **Arguments:** as for `estimate_histogram`. **Returns** one number in the domain.
    """
    share = estimate_histogram(mechanism, outputs, bins)
    edges = np.linspace(mechanism.domain.lower, mechanism.domain.upper, bins + 1)
    return float(share @ (edges[:-1] + edges[1:]) / 2)

"""The posterior of a population's probabilities, given outputs and a Dirichlet prior."""

from __future__ import annotations

import numpy as np

#: Draws that are kept, and draws before them that are not; the seed is fixed, so that results are a function of their arguments.
DRAWS, WARM = 4000, 1000
METHOD = "posterior mean and central credible interval, 4000 draws of a Gibbs sampler"
ASSUMPTIONS = "their probabilities have the given Dirichlet prior"


def posterior(matrix: np.ndarray, counts: np.ndarray, pseudo: np.ndarray) -> np.ndarray:
    """Draws of the inputs' probabilities, shape (draws, inputs).

    Given the probabilities, the inputs behind the outputs of each cell are multinomial; given the inputs' numbers, the
    probabilities are Dirichlet with the prior's pseudo-counts added.
    """
    if matrix.shape[1] > 1000:
        raise ValueError(f"prior is not allowed with {matrix.shape[1]} categories or bins: there may be at most 1000")
    rng = np.random.default_rng(0)
    seen = counts > 0
    rows, numbers = matrix[seen], counts[seen].astype(np.int64)
    shares, out = pseudo / pseudo.sum(), np.empty((DRAWS, matrix.shape[1]))
    for k in range(-WARM, DRAWS):
        joint = rows * shares
        behind = rng.multinomial(numbers, joint / joint.sum(axis=1, keepdims=True)).sum(axis=0)
        shares = np.maximum(rng.gamma(pseudo + behind), 1e-300)
        shares /= shares.sum()
        if k >= 0:
            out[k] = shares
    return out


def summary(draws: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """(mean, deviation, intervals, a band): the band's ends are quantiles of one level and hold `level` of the draws."""
    mean, deviation = draws.mean(axis=0), draws.std(axis=0)
    tail = (1 - level) / 2
    interval = list(np.quantile(draws, [tail, 1 - tail], axis=0))
    ranks = np.argsort(np.argsort(draws, axis=0), axis=0) / (len(draws) - 1)
    depth = np.minimum(ranks, 1 - ranks).min(axis=1)  # of the least central coordinate of each draw
    cut = float(np.quantile(depth, 1 - level))
    return mean, deviation, interval, list(np.quantile(draws, [cut, 1 - cut], axis=0))

"""Maximum likelihood for a mixture: probabilities pi of d inputs from counts of outputs with the distribution K pi.

The log-likelihood l(pi) = sum_o N_o log (K pi)_o is concave, so that its gradient bounds what is missing: with n = sum_o N_o,

    max l - l(pi)  <=  n (max_k (1/n) sum_o N_o K_ok/(K pi)_o - 1).
"""

from __future__ import annotations

import numpy as np

#: Log-likelihood that may be missing: a change of the distribution that no test could see.
SLACK = 1e-6
#: Newton steps with more inputs, and outputs, than this take longer than they save.
NEWTON = 300


def shortfall(matrix: np.ndarray, counts: np.ndarray, shares: np.ndarray) -> float:
    """An upper bound on max l - l(shares)."""
    return float((matrix.T @ (counts / (matrix @ shares))).max() - counts.sum())


def maximise(matrix: np.ndarray, counts: np.ndarray, steps: int = 100_000) -> np.ndarray:
    """The probabilities of the inputs with the largest likelihood, up to `SLACK` by the bound above.

    **Arguments:** `matrix`: P(output o | input k), shape (outputs, inputs), columns summing to 1; `counts`: N_o >= 0, not all 0.

    **Source:** Newton steps by least squares with nonnegative solutions: Wang, "On fast computation of the non-parametric
    maximum likelihood estimate of a mixing distribution", J. R. Stat. Soc. B 69(2), 2007; for many inputs expectation
    maximisation with the extrapolation of Varadhan and Roland, Scand. J. Stat. 35(2), 2008.

    **Raises** ValueError if an output that occurs is impossible, RuntimeError if the bound is not reached.
    """
    seen = counts > 0
    rows, weights = matrix[seen], counts[seen].astype(float)
    if not rows.any(axis=1).all():
        raise ValueError("outputs are not allowed: there are some that this mechanism never sends")
    shares = np.full(matrix.shape[1], 1 / matrix.shape[1])
    tolerance = SLACK + 1e-14 * weights.sum()
    for step in range(steps):
        ratios = weights / (rows @ shares)
        gradient = rows.T @ ratios
        if gradient.max() - weights.sum() <= tolerance:
            return shares
        small = min(rows.shape) <= NEWTON
        move = _newton if small and step < 1000 else _exchange if small and step % 2 else _leap
        shares = move(rows, weights, shares)
    raise RuntimeError(f"the likelihood was not maximised in {steps} steps")


def _value(rows: np.ndarray, weights: np.ndarray, shares: np.ndarray) -> float:
    predicted = rows @ shares
    return float(weights @ np.log(predicted)) if (predicted > 0).all() else -np.inf


def _newton(rows: np.ndarray, weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The maximum of the quadratic model over the simplex: taken if it halves what may be missing, else a line search to it."""
    from scipy.optimize import nnls

    total, ratios = weights.sum(), weights / (rows @ shares)
    scale = np.sqrt(weights / total)
    scores = rows / (rows @ shares)[:, None] * scale[:, None]
    heavy = 1e3  # of the equation that the shares sum to 1; they are divided by their sum afterwards
    try:
        aim, _ = nnls(
            np.vstack([scores, np.full(shares.size, heavy)]), np.append(2 * scale, heavy), maxiter=30 * shares.size
        )
        aim /= aim.sum()
    except (RuntimeError, ZeroDivisionError):
        return _em(rows, weights, shares)
    gradient = rows.T @ ratios
    predicted = rows @ aim
    if (predicted > 0).all() and (rows.T @ (weights / predicted)).max() - total < 0.5 * (gradient.max() - total):
        return np.asarray(aim)
    value, slope, length = _value(rows, weights, shares), float(gradient @ (aim - shares)), 1.0
    for _ in range(20):
        trial = shares + length * (aim - shares)
        if _value(rows, weights, trial) >= value + 0.3 * length * slope > value:
            return np.asarray(trial / trial.sum())
        length /= 2
    return _em(rows, weights, shares)


def _em(rows: np.ndarray, weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
    found = shares * (rows.T @ (weights / (rows @ shares)))
    return np.asarray(found / found.sum())


def _leap(rows: np.ndarray, weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """Two steps of EM and an extrapolation along them, if it gains."""
    one = _em(rows, weights, shares)
    two = _em(rows, weights, one)
    first, second = one - shares, two - 2 * one + shares
    bend = np.linalg.norm(second)
    if bend == 0:
        return two
    length = max(1.0, float(np.linalg.norm(first) / bend))
    far = shares + 2 * length * first + length**2 * second
    if (far < 0).any() or not far.sum() > 0:
        far = np.maximum(far, two / 100)
    far = _em(rows, weights, far / far.sum())
    return far if _value(rows, weights, far) >= _value(rows, weights, two) else two


def _exchange(rows: np.ndarray, weights: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """The best move of probability between two inputs, to the one where the likelihood rises most: where it is flat, and few
    inputs are to be left, the other steps creep.
    """
    gradient, held = rows.T @ (weights / (rows @ shares)), np.flatnonzero(shares)
    to, away = int(np.argmax(gradient)), held[np.argmin(gradient[held])]
    change, predicted, low, high = rows[:, to] - rows[:, away], rows @ shares, 0.0, float(shares[away])
    for _ in range(60):
        middle = (low + high) / 2
        with np.errstate(divide="ignore"):  # an output that would be impossible: it falls there
            rises = weights @ (change / (predicted + middle * change)) > 0
        low, high = (middle, high) if rises else (low, middle)
    moved = shares.copy()
    moved[to] += high
    moved[away] = max(moved[away] - high, 0.0)
    return moved

"""Masses whose shifts are close in KL or Renyi divergence, as a conic program in cvxpy, solved by Clarabel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optdp.solvers.conic import solved

#: (index of x, factor) of one side of a pair of masses.
Side = tuple[np.ndarray, np.ndarray]


def solve(
    price: np.ndarray, weight: np.ndarray, pairs: Sequence[tuple[Side, Side]], alpha: float | None, bound: float
) -> tuple[np.ndarray, np.ndarray, float, Any] | None:
    """min price x subject to weight x = 1, x >= 0 and, for each of `pairs`, a divergence of p = factor x[index] from q.

    The divergence is sum p log(p/q) <= bound where `alpha` is None, else sum p^alpha q^(1 - alpha) <= e^((alpha - 1) bound),
    by the power cones p <= z^(1/alpha) (e^bound q)^(1 - 1/alpha) with sum z <= 1.

    **Returns** (x, multipliers of the divergences, least value, the cvxpy problem); None where the solver has no point.
    """
    import cvxpy as cp

    x = cp.Variable(price.size, nonneg=True)
    budgets, cones = [], []
    for sides in pairs:
        p, q = (cp.multiply(factor, x[index]) for index, factor in sides)
        if alpha is None:
            budgets.append(cp.sum(cp.rel_entr(p, q)) <= bound)
            continue
        z = cp.Variable(p.size)
        budgets.append(cp.sum(z) <= 1)
        cones.append(cp.constraints.PowCone3D(z, math.exp(bound) * q, p, 1 / alpha))
    model = cp.Problem(cp.Minimize(price @ x), [weight @ x == 1, *budgets, *cones])
    if solved(model) not in ("optimal", "optimal_inaccurate"):
        return None
    parts = [x.value, model.value, *(budget.dual_value for budget in budgets)]
    if any(part is None or not np.isfinite(part).all() for part in parts):
        return None
    unit = 1.0 if alpha is None else math.exp((alpha - 1) * bound)
    duals = np.array([max(float(np.sum(budget.dual_value)), 0.0) for budget in budgets]) / unit
    return np.maximum(np.asarray(x.value), 1e-12), duals, float(model.value), model

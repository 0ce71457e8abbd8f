"""The plain program of frequency oracles over all sets of categories, in cvxpy, as a reader would write it down."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import cvxpy as cp


def set_program(ratio: float, d: int) -> cp.Problem:
    """Minimise t over masses theta_S >= 0 of all 2^d sets S and vectors u_S = theta_S v_S in R^d:

    the message S has the probability theta_S k_i, k_i = `ratio` for i in S and 1 else, under the category i, and stands for v_S;

        sum_S theta_S k_i = 1,   sum_S k_i u_S = e_i,   sum_S k_i |u_S|^2/theta_S - 1 <= t      for every i.

    The variables are called `theta`, `u` and `t`.
    """
    import cvxpy as cp

    height = 1 + (ratio - 1) * np.array(list(product([0, 1], repeat=d)), dtype=float)
    theta = cp.Variable(len(height), nonneg=True, name="theta")
    u, t = cp.Variable((len(height), d), name="u"), cp.Variable(name="t")
    energy = cp.hstack([cp.quad_over_lin(u[s], theta[s]) for s in range(len(height))])
    limits = [height.T @ theta == 1, height.T @ u == np.eye(d), height.T @ energy - 1 <= t]
    return cp.Problem(cp.Minimize(t), limits)

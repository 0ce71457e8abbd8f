"""Interior points for lattice programs with many hockey-stick rows: one dense matrix of the size of the support per step.

The program is, over x >= 0 (masses, and the atom as the last entry),

    min c.x   with   g.x = 1,   a_r.x = u_r - v_r,   sum_(r in s) w_r u_r + k x_last + z_s = 1,   u, v, z >= 0,

with a row r for each pair of a shift s and a lattice index. There are tens of thousands of rows and a few hundred masses. In the
Newton system of a primal-dual method (Mehrotra's predictor and corrector) each row's u_r, v_r and its multiplier can be
eliminated by hand, then each budget's, and what is left is a positive definite matrix in x alone, bordered by the mass row:
a general solver does not see that. What comes out is a hint, like any solver's answer: the certificate and the mechanism are
made from it in exact arithmetic.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Point:
    """A primal-dual point: x, the mass multiplier t, row multipliers y <= 0, budget multipliers e <= 0."""

    x: np.ndarray
    t: float
    y: np.ndarray
    e: np.ndarray
    iterations: int
    error: float


def solve(
    c: np.ndarray, g: np.ndarray, a: Any, group: np.ndarray, w: np.ndarray, k: float, *, tolerance: float = 1e-9,
    deadline: float = np.inf, limit: int = 150,
) -> Point | None:  # fmt: skip
    """Solve the program above; None if no point good to 1e-4 was reached.

    **Arguments:** `c`, `g`: costs and mass row; `a`: the rows, a scipy CSR matrix; `group`: the budget of each row; `w`: its
    weight there; `k`: weight of the last entry of x in every budget; `tolerance`: relative, of residuals and gap.
    """
    from scipy.linalg import cho_factor, cho_solve
    from scipy.sparse import csr_matrix

    rows, size = a.shape
    groups = int(group.max()) + 1
    price = max(float(np.abs(c).max() / g.max()), 1e-300)
    c = c / price
    at = a.T.tocsr()
    total = np.arange(rows)

    def by_group(values: np.ndarray) -> np.ndarray:
        return np.bincount(group, weights=values, minlength=groups)

    x = np.full(size, 1 / g.sum())
    start = a @ x
    spread = 0.1 * float(np.abs(start).mean()) + 1e-8
    u, v = np.maximum(start, 0) + spread, np.maximum(-start, 0) + spread
    z = np.full(groups, 0.1)
    t, e = float(c @ x), np.full(groups, -0.1 * float(c @ x))
    y = 0.5 * w * e[group]
    sx = np.maximum(c - g * t - at @ y, 0) + 0.1 * float(np.abs(c).mean())
    su, sv, sz = -y.copy(), -y.copy(), -e.copy()
    count = size + 2 * rows + groups
    best: Point | None = None
    for iteration in range(limit):
        mass = 1.0 - g @ x
        row = u - v - a @ x
        budget = 1.0 - by_group(w * u) - k * x[-1] - z
        dual_x = c - g * t - at @ y - sx
        dual_x[-1] -= k * e.sum()
        dual_u, dual_v, dual_z = y - w * e[group] - su, -y - sv, -e - sz
        gap = x @ sx + u @ su + v @ sv + z @ sz
        mu = gap / count
        value = abs(c @ x)
        error = max(abs(mass), float(np.abs(row).max(initial=0)) / (1 + float(u.max(initial=0))), float(np.abs(budget).max()),
                    float(np.abs(dual_x / (c + g * abs(t) + 1e-12)).max()), gap / (value + 1e-300))  # fmt: skip
        if not np.isfinite(error):
            break
        if best is None or error < best.error:
            best = Point(x.copy(), t * price, y * price, e * price, iteration, float(error))
        if error < tolerance or time.perf_counter() > deadline or (iteration > 40 and error > 1e3 * best.error):
            break
        qx, qu, qv, qz = x / sx, u / su, v / sv, z / sz
        inner = 1 / (qu + qv)
        share = inner * qu * w
        h = (at @ csr_matrix((inner, (total, total)), shape=(rows, rows)) @ a).toarray()
        b = (at @ csr_matrix((share, (total, group)), shape=(rows, groups))).toarray()
        b[-1] += k
        d = by_group(w * share * qv) + qz
        h += (b / d) @ b.T
        h[np.arange(size), np.arange(size)] += 1 / qx
        scale = 1 / np.sqrt(h.diagonal())
        try:
            factor = cho_factor(h * scale * scale[:, None] + 1e-15 * np.eye(size), lower=True, overwrite_a=True, check_finite=False)
        except np.linalg.LinAlgError:
            break

        def inverse(r: np.ndarray, factor: Any = factor, scale: np.ndarray = scale) -> np.ndarray:
            return scale * cho_solve(factor, scale * r, check_finite=False)

        border = inverse(g)

        def step(cx: np.ndarray, cu: np.ndarray, cv: np.ndarray, cz: np.ndarray) -> tuple[Any, ...]:
            """The Newton direction for these complementarity targets x s = ..."""
            hx, hu, hv, hz = dual_x - cx / x, dual_u - cu / u, dual_v - cv / v, dual_z - cz / z
            rho = row - qu * hu + qv * hv
            r1 = -hx + at @ (inner * rho)
            r3 = budget + by_group(w * qu * (inner * rho + hu)) + qz * hz
            r = r1 + b @ (r3 / d)
            base = inverse(r)
            dt = (mass - g @ base) / (g @ border)
            dx = base + dt * border
            de = (r3 - b.T @ dx) / d
            dy = inner * (rho - a @ dx + qu * w * de[group])
            du = qu * (w * de[group] - dy - hu)
            dv = qv * (dy - hv)
            dz = qz * (de - hz)
            return (dx, du, dv, dz), (dt, dy, de), ((cx - sx * dx) / x, (cu - su * du) / u, (cv - sv * dv) / v, (cz - sz * dz) / z)

        def length(values: Any, moves: Any) -> float:
            most = 1e300
            for value, move in zip(values, moves, strict=True):
                down = move < 0
                if down.any():
                    most = min(most, float((value[down] / -move[down]).min()))
            return most

        primal, slack = (x, u, v, z), (sx, su, sv, sz)
        moves, _, slips = step(-x * sx, -u * su, -v * sv, -z * sz)
        ahead, behind = min(1.0, length(primal, moves)), min(1.0, length(slack, slips))
        after = sum(float((p + ahead * m) @ (s + behind * n)) for p, m, s, n in zip(primal, moves, slack, slips, strict=True))
        centre = (after / gap) ** 3 * mu
        targets = [centre - p * s - m * n for p, s, m, n in zip(primal, slack, moves, slips, strict=True)]
        moves, (dt, dy, de), slips = step(*targets)
        ahead, behind = min(1.0, 0.995 * length(primal, moves)), min(1.0, 0.995 * length(slack, slips))
        x, u, v, z = (p + ahead * m for p, m in zip(primal, moves, strict=True))
        sx, su, sv, sz = (s + behind * n for s, n in zip(slack, slips, strict=True))
        t, y, e = t + behind * dt, y + behind * dy, e + behind * de
    return best if best is not None and best.error < 1e-4 else None

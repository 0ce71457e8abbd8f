"""Symmetric masses on a lattice whose shifts are close in KL or Renyi divergence: a primal-dual method in relative steps.

Minimise cost p over p_0, p_1, ... > 0 with weight p = 1 and F_s(p)/limit <= 1 for each shift s. The F_s are sums of
f(p_i, p_(i+s)) over the lattice; f is convex and homogeneous of degree 1, so that in relative steps v = dp/p the
Hessian of sum_s lam_s F_s is the Laplacian of the graph that joins i and i + s: nonnegative definite, and graded like
the masses, which a Cholesky factorisation with scaled diagonal resolves however small they are. Renyi moments are
kept as exponents: ratios to their limits never overflow. Beyond the last mass they fall by a constant factor each
sensitivity.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from optdp.solvers.interior import reach

#: Newton steps; no logarithm of a mass changes by more than this in one.
STEPS, FAR = 200, 2.0
#: How much steps are damped far from the optimum.
DAMPED = 0.1
#: What is added to a diagonal of ones, for its rounding errors.
RIDGE = 1e-15
#: Masses below this do not hold up the others.
RARE = 1e-12
#: A moment that is nothing beside its limit: its logarithm is finite, and so are slacks.
NOTHING = 1e-300
#: Newton steps of `polished`, at most and without a gain; which share of what holds a point joins it to another there.
POLISH, IDLE, JOINED = 40, 5, 1e-4


@dataclass(frozen=True)
class Point:
    """Masses, multipliers of F_s/limit <= 1, what a unit of mass costs at the optimum (`level`), and the error."""

    p: np.ndarray
    multipliers: np.ndarray
    level: float
    value: float
    error: float
    steps: int


@dataclass(frozen=True)
class _Newton:
    """The factorised Newton system at a point."""

    lam: np.ndarray
    z: np.ndarray
    over: np.ndarray
    d: np.ndarray
    defect: np.ndarray
    share: np.ndarray
    factor: Any
    unit: np.ndarray

    def inverse(self, r: np.ndarray) -> np.ndarray:
        """The solution of the system in the relative steps alone."""
        from scipy.linalg import cho_solve

        found: np.ndarray = self.unit * cho_solve(self.factor, self.unit * r, check_finite=False)
        return found

    @cached_property
    def border(self) -> np.ndarray:
        """What the multiplier of the mass moves."""
        return self.inverse(self.share)

    def step(self, target: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        """Moves of log p, lam, z and the level towards products lam z of `target`."""
        stretch, e = self.lam / self.z, -self.over - target / self.lam
        base = self.inverse(-self.defect + self.d.T @ (stretch * e))
        dt = float((1 - self.share.sum() - self.share @ base) / (self.share @ self.border))
        v = base + dt * self.border
        moved = self.d @ v
        return v, stretch * (moved - e), -self.over - self.z - moved, dt


class Cells:
    """The program of masses that are spread over cells.

    **Arguments:** `cost`, `weight`: of the masses; `alpha`: the order, None for KL; `bound`: of the divergence; `pairs`: for each
    shift arrays (i, j, log u, log v) such that its F_s is the sum of f(u p_i, v p_j) and f(v p_j, u p_i).
    """

    def __init__(
        self, cost: np.ndarray, weight: np.ndarray, alpha: float | None, bound: float, pairs: Sequence[tuple[np.ndarray, ...]]
    ) -> None:  # fmt: skip
        self.cost, self.weight, self.alpha, self.bound = cost, weight, alpha, bound
        #: Logarithms of Renyi moments are between minus this and 0 where it is small: in units of it they are of order 1.
        self.unit = 1.0 if alpha is None else min(1.0, (alpha - 1) * bound)
        self.size, self.count = cost.size, len(pairs)
        self.first, self.second, self.one, self.two = (np.concatenate(part) for part in zip(*pairs, strict=True))
        self.row = np.repeat(np.arange(self.count), [pair[0].size for pair in pairs])
        # A pair (i, j) and its mirror image are one term in each direction.
        self.flat = self.first * self.size + self.second

    def terms(self, u: np.ndarray) -> tuple[np.ndarray, ...]:
        """For the logarithms u of masses: (f/limit of both directions, its derivatives by log p and log q, the stiffness)."""
        a, b = u[self.first] + self.one, u[self.second] + self.two
        p, q, gap = np.exp(a), np.exp(b), a - b
        if self.alpha is None:
            r = self.bound
            return (p - q) * gap / r, (p * (gap + 1) - q) / r, (q * (1 - gap) - p) / r, (p + q) / r
        m = self.alpha - 1
        out = np.exp(np.minimum(a + m * (gap - self.bound), 300.0))
        back = np.exp(np.minimum(b - m * (gap + self.bound), 300.0))
        stiff = self.alpha * m * (out + back)
        return out + back, self.alpha * out - m * back, self.alpha * back - m * out, stiff

    def sums(self, values: np.ndarray) -> np.ndarray:
        """For each shift."""
        return np.bincount(self.row, weights=values, minlength=self.count)

    def excess(self, u: np.ndarray) -> np.ndarray:
        """F_s/limit - 1 for KL, its logarithm in units for Renyi moments: at most 0 where the bound is kept."""
        f = self.sums(self.terms(u)[0])
        return f - 1 if self.alpha is None else np.log(np.maximum(f, NOTHING)) / self.unit

    def derivatives(self, by_p: np.ndarray, by_q: np.ndarray) -> np.ndarray:
        """(shift, mass): derivatives of the F_s by log masses."""
        size, count = self.size, self.count
        return (
            np.bincount(self.row * size + self.first, weights=by_p, minlength=count * size)
            + np.bincount(self.row * size + self.second, weights=by_q, minlength=count * size)
        ).reshape(count, size)  # fmt: skip

    def laplacian(self, stiff: np.ndarray) -> np.ndarray:
        """The graph's Laplacian with these weights of the pairs."""
        size = self.size
        joined = np.bincount(self.flat, weights=stiff, minlength=size * size).reshape(size, size)
        joined = joined + joined.T
        joined[np.diag_indices(size)] = 0.0
        out: np.ndarray = -joined
        out[np.diag_indices(size)] = joined.sum(axis=1)
        return out

    @np.errstate(over="ignore", invalid="ignore")  # what is not finite is no factor, and no point
    def solve(self, u: np.ndarray, tolerance: float, deadline: float) -> Point | None:
        """From the logarithms of masses that keep the bounds; None where no point is good to 1e-3.

        **Arguments:** `tolerance`: relative, of the gap and of what brackets differ by.
        """
        u = u - math.log(float(self.weight @ np.exp(u)))
        z = np.maximum(-self.excess(u), 1e-3)
        value = float(self.cost @ np.exp(u))
        lam = 0.1 * value / self.count / z
        level, best = math.nan, None
        for step in range(STEPS):
            p = np.exp(u)
            worth, by_p, by_q, stiff = self.terms(u)
            f, d = self.sums(worth), self.derivatives(by_p, by_q)
            over, bent, curved = f - 1, lam, np.zeros_like(lam)
            if self.alpha is not None:  # in logarithms
                f = np.maximum(f, NOTHING)
                c = self.unit
                over, d, bent, curved = np.log(f) / c, d / (c * f[:, None]), lam / (c * f), lam * c
            value, share, gap = float(self.cost @ p), self.weight * p, float(lam @ z)
            if not (value > 0 and gap > 0):  # errors that cost hardly count
                break
            gradient = self.cost * p + lam @ d
            level = float(gradient.sum() / share.sum()) if step == 0 else level
            defect = gradient - level * share
            error = max(gap / value, float(over.max()), float(np.abs(defect).sum()) / value, abs(share.sum() - 1))
            if np.isfinite(error) and (best is None or error < best.error):
                best = Point(p, lam / self.unit, level, value, error, step)
            if error < tolerance or time.perf_counter() > deadline:
                break
            stretch = np.maximum(lam / z - curved, 0.1 * lam / z)
            matrix = self.laplacian(bent[self.row] * stiff) + d.T @ (stretch[:, None] * d)
            # Far from the optimum pairs may hold hardly any mass together: steps are damped there.
            matrix[np.diag_indices(self.size)] += DAMPED * min(1.0, error) * value * share
            try:
                newton = _Newton(lam, z, over, d, defect, share, *_factorised(matrix))
            except LinAlgError:
                break
            v, dlam, dz, dt = newton.step(np.zeros_like(lam))
            ahead = min(1.0, reach(lam, dlam), reach(z, dz), FAR / max(float(np.abs(v[share > RARE]).max()), 1e-300))
            after = float((lam + ahead * dlam) @ (z + ahead * dz))
            centre = max((max(after, 0.0) / gap) ** 3, 1e-4) * gap / lam.size if ahead > 0.1 else gap / lam.size
            v, dlam, dz, dt = newton.step(centre - (dlam * dz if ahead > 0.3 else 0.0))
            near = FAR / max(float(np.abs(v[share > RARE]).max()), 1e-300)
            far = min(1.0, near, 0.95 * reach(lam, dlam), 0.95 * reach(z, dz))
            v = np.clip(v, -FAR / far, FAR / far)
            before = float(np.maximum(over + z, 0.0).max())
            while far > 1e-6 and float((self.excess(u + far * v) + z + far * dz).max()) > before + 0.5:
                far /= 2
            u, lam, z, level = u + far * v, lam + far * dlam, z + far * dz, level + far * dt
        return best if best is not None and best.error < 1e-3 else None


class Program(Cells):
    """The program of one lattice.

    **Arguments:** `cost`, `weight`: of the masses, their tails included; `n`: points per sensitivity; `fall`: of the tail;
    `shifts`: those that are compared; `cut`: whether there is nothing beyond the last mass; `bins`: whether i and -1 - i are at
    the same distance, instead of i and -i.
    """

    def __init__(
        self, cost: np.ndarray, weight: np.ndarray, n: int, fall: float, alpha: float | None, bound: float, shifts: np.ndarray,
        *, cut: bool = False, bins: bool = False,
    ) -> None:  # fmt: skip
        self.n, size, pairs = n, cost.size, []
        for s in shifts:
            # Pairs from i to i + s and, by symmetry, back: i from where it is the lower of the two in distance, both directions.
            # The pair from -s/2 to s/2 is its own mirror image, and counts by half.
            i = np.arange(-((s + bins) // 2), size - s * cut)
            inside = cut | (i < size - n)  # further out, pairs repeat: a period of them, times 1/(1 - fall)
            times = np.where(inside, 0.0, -math.log1p(-fall)) - math.log(2) * (2 * i + s + bins == 0)
            here, there = np.where(i < 0, -i - bins, i), i + s
            beyond = np.maximum(-((size - 1 - there) // n), 0)
            pairs.append((here, there - beyond * n, times, times + beyond * math.log(fall)))
        super().__init__(cost, weight, alpha, bound, pairs)
        #: Where the pair is in a matrix of bands: pairs are at most n places apart.
        self.band = np.abs(self.first - self.second) * size + np.minimum(self.first, self.second)

    def banded(self, stiff: np.ndarray) -> np.ndarray:
        """The same, its diagonal and the n below it as rows: (n + 1, mass)."""
        size = self.size
        out: np.ndarray = -np.bincount(self.band, weights=stiff, minlength=(self.n + 1) * size).reshape(-1, size)
        out[0] = 0.0
        for k in range(1, self.n + 1):
            out[0, : size - k] -= out[k, : size - k]
            out[0, k:] -= out[k, : size - k]
        return out

    def brackets(self, u: np.ndarray, lam: np.ndarray) -> np.ndarray:
        """What a unit of mass costs at each point, with multipliers of the divergences."""
        _, by_p, by_q, _ = self.terms(u)
        found: np.ndarray = (self.cost + (lam @ self.derivatives(by_p, by_q)) / np.exp(u)) / self.weight
        return found

    def polished(self, u: np.ndarray, lam: np.ndarray, fixed: bool = False) -> np.ndarray:
        """Logarithms of masses nearer to where, for given multipliers, a unit of mass costs the same everywhere.

        Where hardly anything joins two sets of points each has a cost of its own: what a unit costs depends on ratios alone.
        `fixed`: the ratio of the last mass to that a sensitivity before stays, and it may cost anything.
        """
        from scipy.linalg import cho_solve_banded

        best, spare, idle, home = (math.inf, u), 0.0, 0, np.zeros(self.size, dtype=np.int64)
        last, before = self.size - 1, self.size - 1 - self.n
        for step in range(POLISH):
            u = u - math.log(float(self.weight @ np.exp(u)))
            p = np.exp(u)
            _, by_p, by_q, stiff = self.terms(u)
            share = self.weight * p
            matrix = self.banded(lam[self.row] * stiff)
            if step == 0:
                home = _parts(matrix)
                first = np.array([np.flatnonzero(home == k)[0] for k in range(home.max() + 1)])
            gradient = self.cost * p + lam @ self.derivatives(by_p, by_q)
            gradient[last] -= spare * share[last]
            whole = np.bincount(home, share)
            level = np.bincount(home, gradient) / whole
            defect = gradient - level[home] * share
            error = float(np.abs(defect / share).max()) / float(level.max())
            idle = 0 if error < best[0] / 2 else idle + 1
            if error < best[0]:
                best = error, u
            if error < 1e-10 or idle == IDLE or not math.isfinite(error):
                break
            matrix[0, first] *= 2  # one point of each part stays, and nothing flows there
            try:
                factor, unit = _factorised_bands(matrix)
            except LinAlgError:
                break
            v = -unit * cho_solve_banded(factor, unit * defect, check_finite=False)
            if fixed:
                bump = np.where(home == home[last], share * (share[last] / whole[home[last]]), 0.0)
                bump[last] -= share[last]
                bent = -unit * cho_solve_banded(factor, unit * bump, check_finite=False)
                more = -(v[last] - v[before]) / (bent[last] - bent[before])
                v += more * bent
            ahead = min(1.0, 1 / max(float(np.abs(v).max()), 1e-300))
            u = u + v * ahead
            if fixed:
                spare += more * ahead
        return best[1]


def _parts(bands: np.ndarray) -> np.ndarray:
    """The parts of a graph that hardly anything joins: the number of each point's. `bands`: of its Laplacian."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    size, strong = bands.shape[1], bands[0]
    joined = [np.flatnonzero(-row[: size - k] > JOINED * np.minimum(strong[k:], strong[: size - k])) for k, row in
              enumerate(bands[1:], 1)]  # fmt: skip
    first, second = np.concatenate(joined), np.concatenate([at + k for k, at in enumerate(joined, 1)])
    found: np.ndarray = connected_components(
        coo_array((np.ones(first.size), (first, second)), shape=(size, size)), directed=False
    )[1]
    return found


def _factorised_bands(bands: np.ndarray) -> tuple[Any, np.ndarray]:
    """(a Cholesky factor of the matrix scaled to the diagonal 1, the scale), from the diagonal and what is below it.

    **Raises** LinAlgError where it is not positive definite in floats.
    """
    from scipy.linalg import cholesky_banded

    size, unit = bands.shape[1], _unit(bands[0])
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = np.array(
            [np.pad(row[: size - k] * unit[k:] * unit[: size - k], (0, k)) for k, row in enumerate(bands)]
        )
    if not np.isfinite(scaled).all():
        raise LinAlgError("the matrix is not positive definite")
    return (cholesky_banded(scaled, lower=True, check_finite=False), True), unit


def _unit(diagonal: np.ndarray) -> np.ndarray:
    """What scales a matrix to the diagonal 1. **Raises** LinAlgError where this is not positive and finite."""
    if not (np.isfinite(diagonal) & (diagonal > 0)).all():
        raise LinAlgError("the matrix is not positive definite")
    found: np.ndarray = 1 / np.sqrt(diagonal)
    return found


def _factorised(matrix: np.ndarray) -> tuple[Any, np.ndarray]:
    """(a Cholesky factor of the matrix scaled to the diagonal 1 + `RIDGE`, the scale); the matrix is lost.

    **Raises** LinAlgError where it is not positive definite in floats.
    """
    from scipy.linalg import cho_factor

    unit = _unit(matrix.diagonal())
    with np.errstate(over="ignore", invalid="ignore"):
        matrix *= unit[:, None] * unit
    if not np.isfinite(matrix).all():
        raise LinAlgError("the matrix is not positive definite")
    matrix[np.diag_indices(unit.size)] += RIDGE
    return cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False), unit

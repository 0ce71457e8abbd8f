"""Kernels between finite sets whose columns are Lipschitz in the logarithm: an interior-point method for their structure.

Minimise sum_xy C_xy K_xy, C = prior times loss, or the largest sum_y L_xy K_xy, over rows of K that are distributions and
inequalities K_iy <= E_ij K_jy. For each output y these are a cone of n numbers, and the outputs meet in the row sums alone: each
Newton step factors one n x n matrix for each output and adds up their inverses, n^4 operations, where a sparse program of
all n^2 unknowns knows nothing of this.

Starting from the uniform kernel everything is feasible from the first step on. Few inequalities are tight, and
redundant ones bend the central path: they are added as the solution violates them, from those of the near pairs on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optdp.solvers.interior import reach

#: Iterations of the interior-point method, and rounds of adding inequalities.
ITERATIONS, ROUNDS = 150, 12
#: So many iterations without a closer bracket end it: rounding has been reached.
IDLE = 8
#: Up to so many inputs all inequalities are there from the start.
SMALL = 40
#: Pairs with another place almost between them (a detour of this share, or of more) are left to be added when they are violated.
DETOUR = 0.02
#: Two rounds have at most so many inequalities, few enough for a certificate to hold their multipliers; with more than these the
#: kernel comes closer to private, which is what later rounds are for.
FIRST, FEW = 900_000, 2
#: The gap of the first round, which only tells what is violated, and how much smaller it is from round to round.
ROUGH, SHARPER = 1e-2, 8.0
#: Inequalities with log E above this say next to nothing, and what they say the rounding sees to.
FAR = 40.0
#: Violations below this share of a column's largest entry are left to the rounding.
SLIGHT = 1e-10


@dataclass(frozen=True)
class Columns:
    """A kernel and a dual point in floats, to be checked like any solver's answer.

    `kernel`: (inputs, outputs); `weights`: multipliers of the losses; `rows`: (output, i, j) of inequalities
    K_i <= E_ij K_j, one to a column, and `flows` their multipliers; `value`, `bound`: what both promise, for the
    inequalities that were there; `iterations` in all, of the `rounds`; `stopped`: whether the clock ended it.
    """

    kernel: np.ndarray
    weights: np.ndarray
    rows: np.ndarray
    flows: np.ndarray
    value: float
    bound: float
    iterations: int
    rounds: int
    stopped: bool


def solve_columns(
    losses: np.ndarray, growth: np.ndarray, prior: np.ndarray | None, *, tolerance: float = 1e-9,
    left: Callable[[], float] = lambda: math.inf, good: Callable[[Columns], bool] = lambda found: False,
    pairs: np.ndarray | None = None,
) -> Columns:  # fmt: skip
    """The best kernel for losses >= 0 (inputs, outputs), at the worst input or on average over a `prior`.

    **Arguments:** `growth`: log E_ij > 0 for i != j, a metric; `tolerance`: the relative gap at which to stop; `left`:
    the seconds that are left; `good`: whether what a round found will do; `pairs`: the
    (i, j) whose inequalities imply all others (None: all).
    """
    n, m = losses.shape
    known = ~np.eye(n, dtype=bool) if pairs is None else pairs
    known &= growth < FAR
    near = _near(growth, FIRST // m) & known if n > SMALL else known
    whole = bool((near == known).all())  # all inequalities are there from the start
    rows = _everywhere(near, m)
    total, rough = 0, ROUGH
    for count in range(1, ROUNDS + 1):
        last = rough <= tolerance
        found = _interior(losses, growth, prior, rows, tolerance if whole else max(rough, tolerance), left)
        rough /= SHARPER
        total += found.iterations
        found = Columns(**{**vars(found), "iterations": total, "rounds": count})
        if whole or found.stopped or (count > 1 and good(found)):
            break
        new = _violated(found.kernel, np.where(known, growth, np.inf))
        if not new.shape[1] and last:
            break
        keep = found.flows > 1e-9 * found.flows.max()  # what is not tight does not come back soon
        kept = rows[:, keep | near[rows[1], rows[2]]]
        if count == FEW:
            near = _near(growth, n * n) & known
            new = np.concatenate([new, _everywhere(near, m)], axis=1)
        rows = np.unique(np.concatenate([kept, new], axis=1), axis=1)
    return found


def _everywhere(pairs: np.ndarray, m: int) -> np.ndarray:
    """(output, i, j) of these pairs at all outputs."""
    i, j = np.nonzero(pairs)
    return np.stack([np.repeat(np.arange(m), i.size), np.tile(i, m), np.tile(j, m)])


def _near(growth: np.ndarray, most: int) -> np.ndarray:
    """Pairs without another place almost between them, the `most` with the longest detours."""
    far = growth.copy()
    np.fill_diagonal(far, np.inf)
    detour = np.full(growth.shape, np.inf)
    for z in range(len(growth)):
        np.minimum(detour, far[:, z, None] + far[None, z], out=detour)
    detour /= np.where(np.isfinite(far), far, 1.0)
    np.fill_diagonal(detour, 0.0)
    if most < detour.size:
        return detour > max(1 + DETOUR, float(np.partition(detour, -most - 1, axis=None)[-most - 1]))
    return detour > 1 + DETOUR


def _violated(kernel: np.ndarray, growth: np.ndarray) -> np.ndarray:
    """For each output and input the inequality that is violated most, if one is."""
    shrink = np.exp(-growth)
    found = []
    for y, column in enumerate(kernel.T):
        allowed = shrink * column[:, None]  # what K_i asks of K_j
        high = np.argmax(allowed, axis=0)
        over = allowed[high, np.arange(column.size)] - column
        low = np.flatnonzero((over > SLIGHT * column.max()) & (growth[high, np.arange(column.size)] < FAR))
        found.append(np.stack([np.full(low.size, y), high[low], low]))
    return np.concatenate(found, axis=1)


@np.errstate(over="ignore", divide="ignore", invalid="ignore")  # moves that are not finite end it
def _interior(
    losses: np.ndarray, growth: np.ndarray, prior: np.ndarray | None, rows: np.ndarray, tolerance: float,
    left: Callable[[], float],
) -> Columns:  # fmt: skip
    """Mehrotra's predictor and corrector, from a point that is feasible for both programs.

    Unknowns k (outputs, inputs); slacks w = r k_j - k_i / r of the inequalities, r = sqrt(E), with multipliers u, and k >= 0
    with multipliers z; for the worst case t - sum_y L k = s >= 0 with multipliers lam.
    """
    from scipy.linalg import lapack

    (n, m), worst = losses.shape, prior is None
    scale = float(losses.max()) or 1.0
    loss = losses.T / scale
    at, i, j = rows
    first, second = at * n + i, at * n + j
    root = np.exp(growth[i, j] / 2)
    mirror, square, apart = 1 / root, (root**2, root**-2), np.expm1(growth[i, j])
    inner = at * n * n + np.minimum(i, j) * n + np.maximum(i, j)

    def slack(k: np.ndarray) -> np.ndarray:
        flat = k.reshape(-1)
        return np.asarray(root * flat[second] - mirror * flat[first])

    def spread(v: np.ndarray) -> np.ndarray:
        return np.asarray(
            np.bincount(second, root * v, m * n) - np.bincount(first, mirror * v, m * n)
        ).reshape(m, n)  # fmt: skip

    k = np.full((m, n), 1 / m)
    w = slack(k)
    lam = np.full(n, 1 / n)
    cost = loss * (lam if prior is None else prior)
    mu = float(cost.mean()) / m or 1e-3 / m
    u = mu / w
    g = spread(u)
    nu = np.full(n, -float((g + mu / k).max()))
    z = cost - nu - g
    t = float(loss.mean(axis=0).max()) * 1.2 + 0.1
    s = t - loss.mean(axis=0)

    def newton(
        k: np.ndarray, w: np.ndarray, s: np.ndarray, u: np.ndarray, z: np.ndarray, lam: np.ndarray,
        rests: tuple[np.ndarray, ...], gap: float, mean: float,
    ) -> tuple[tuple[np.ndarray, ...], float, float] | None:  # fmt: skip
        """Moves of k, w, s, u, z, lam, nu and t, and how far to go with the first three and with the others; None: no factors."""
        dual, mass, slip, height = rests
        d = u / w
        diagonal = np.bincount(first, d * square[1], m * n) + np.bincount(second, d * square[0], m * n)
        lower = np.bincount(inner, d, m * n * n).reshape(m, n, n)
        factors = np.empty((m, n, n))
        blocks = [np.zeros((n, n)) for _ in range(3)]
        for y in range(m):
            matrix = -lower[y].T  # in Fortran's order: entries of pairs in the lower triangle
            heavy = diagonal[y * n : (y + 1) * n] + z[y] / k[y]
            for more in (0.0, 1e-14, 1e-12, 1e-10):  # where rounding has made it indefinite
                matrix[np.diag_indices(n)] = heavy * (1 + more)
                factor, info = lapack.dpotrf(matrix, lower=1)
                if info == 0:
                    break
            if info != 0:
                return None
            factors[y] = factor.T
            inverse, _ = lapack.dpotri(factor, lower=1)
            blocks[0] += inverse
            if worst:
                inverse = np.tril(inverse) + np.tril(inverse, -1).T
                blocks[1] += inverse * loss[y]
                blocks[2] += inverse * loss[y] * loss[y][:, None]
        system = np.tril(blocks[0]) + np.tril(blocks[0], -1).T
        if worst:
            sums, system = system, np.zeros((2 * n + 1, 2 * n + 1))
            system[:n, :n], system[:n, n:-1], system[n:-1, :n] = sums, -blocks[1], blocks[1].T
            system[n:-1, n:-1] = -(blocks[2] + np.diag(s / lam))
            system[n:-1, -1], system[-1, n:-1] = -1.0, 1.0

        def solved(h: np.ndarray) -> np.ndarray:
            return np.array([lapack.dpotrs(f.T, b, lower=1)[0] for f, b in zip(factors, h, strict=True)])

        def direction(on_w: np.ndarray, on_k: np.ndarray, on_s: np.ndarray) -> tuple[np.ndarray, ...]:
            """The moves for these changes of the products of values and multipliers."""
            x = solved(spread((on_w - u * slip) / w) - dual + on_k / k)
            if worst:
                hidden = height - on_s / lam - (loss * x).sum(axis=0)
                found = np.linalg.solve(system, np.concatenate([mass - x.sum(axis=0), hidden, [1 - lam.sum()]]))
                dnu, dlam, dt = found[:n], found[n:-1], found[-1:]
                dk = x + solved(dnu - loss * dlam)
                ds = (on_s - s * dlam) / lam
            else:
                dnu = np.linalg.solve(system, mass - x.sum(axis=0))
                dk, dlam, dt, ds = x + solved(np.tile(dnu, (m, 1))), np.zeros(n), np.zeros(1), np.zeros(n)
            dw = slack(dk) + slip
            return dk, dw, ds, (on_w - u * dw) / w, (on_k - z * dk) / k, dlam, dnu, dt

        def steps(moves: tuple[np.ndarray, ...], share: float) -> tuple[float, float]:
            far = [share * reach(value, move) for value, move in zip((k, w, s, u, z, lam), moves, strict=False)]
            return min(1.0, *far[:3]), min(1.0, *far[3:])

        moves = direction(-u * w, -z * k, -lam * s)
        ahead, behind = steps(moves, 1.0)
        dk, dw, ds, du, dz, dlam = moves[:6]
        after = float((u + behind * du) @ (w + ahead * dw)) + float(((z + behind * dz) * (k + ahead * dk)).sum())
        after += float((lam + behind * dlam) @ (s + ahead * ds)) if worst else 0.0
        centre = (after / gap) ** 3 * mean
        moves = direction(centre - u * w - dw * du, centre - z * k - dz * dk, centre - lam * s - dlam * ds)
        return (moves, *steps(moves, 0.99))

    # The best kernel and the best multipliers so far need not be of one iteration.
    kernel, multipliers, least, most = k, (lam, u, z, nu), math.inf, -math.inf
    stopped, iteration, since = False, 0, 0
    for iteration in range(ITERATIONS):
        cost = loss * (lam if prior is None else prior)
        rests = cost - nu - spread(u) - z, 1 - k.sum(axis=0), slack(k) - w, t - (loss * k).sum(axis=0) - s
        gap = float(u @ w) + float((z * k).sum()) + (float(lam @ s) if worst else 0.0)
        mean = gap / (u.size + z.size + (n if worst else 0))
        value = t if worst else float((cost * k).sum())
        bound = float(nu.sum()) + float((rests[0] + z).min(axis=0).sum())
        # Rows whose masses differ cannot be private where places are so near: what this share of all mass is away from it costs.
        strain = float(np.abs(rests[1]).max() + np.max(np.abs(rests[1][i] - rests[1][j]) / apart, initial=0.0))
        if value + strain < least:
            kernel, least, since = k, value + strain, iteration
        if bound > most:
            multipliers, most, since = (lam, u, z, nu), bound, iteration
        near = max(gap, value - bound) <= tolerance * abs(value)
        if near or not np.isfinite(gap) or iteration - since > IDLE:
            break
        stopped = left() <= 0
        try:
            found = None if stopped else newton(k, w, s, u, z, lam, rests, gap, mean)
        except np.linalg.LinAlgError:  # rounding has made the system singular: the best point so far it is
            found = None
        if found is None:
            break
        (dk, dw, ds, du, dz, dlam, dnu, dt), ahead, behind = found
        if not np.isfinite(dk).all() or max(ahead, behind) < 1e-8:
            break
        k, w, u, z, nu = k + ahead * dk, w + ahead * dw, u + behind * du, z + behind * dz, nu + behind * dnu
        if worst:
            s, t, lam = s + ahead * ds, t + ahead * float(dt[0]), lam + behind * dlam
    lam, u, z, nu = multipliers
    # Rounding has left the dual equations with small rests: the least relative change of multipliers that removes them.
    rest = loss * (lam if prior is None else prior) - nu - spread(u) - z
    diagonal = np.bincount(first, (u * mirror) ** 2, m * n) + np.bincount(second, (u * root) ** 2, m * n)
    lower = np.bincount(inner, u * u, m * n * n).reshape(m, n, n)
    shift = np.zeros((m, n))
    for y in range(m):
        matrix = -lower[y].T
        matrix[np.diag_indices(n)] = diagonal[y * n : (y + 1) * n] + z[y] ** 2
        factor, info = lapack.dpotrf(matrix, lower=1, overwrite_a=1)
        if info == 0:
            shift[y] = lapack.dpotrs(factor, rest[y], lower=1)[0]
    moved = u + u * u * slack(shift)
    if (moved >= 0).all():
        u = moved
    flows = u * mirror * scale  # of K_i <= E K_j, without the scaling of its rows
    weights = lam if prior is None else prior
    return Columns(np.maximum(kernel, 0.0).T, weights, rows, flows, least * scale, most * scale, iteration, 1, stopped)

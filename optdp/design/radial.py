"""The best unbiased mechanism on the unit ball: a floor on radii, to any gap where the sphere's optimum is not close enough.

`optdp.solvers.radial` finds the floor and a dual point for finitely many radii and norms. Its floor is a mechanism for the whole
ball (`optdp.mechanisms.radial`): best rows for as few norms as keep the error within a share of the largest. Its multipliers,
moved in common until no output of any radius is worth more than it costs, are a bound (`optdp.certificates.radial`).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optdp.certificates.base import Certificate
from optdp.certificates.radial import NORMS, RadialCertificate
from optdp.design.registry import Run
from optdp.exact.numbers import counted
from optdp.exact.rounding import TOTAL
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.radial import ROWS, RadialMechanism
from optdp.problem.problem import Problem
from optdp.solution import Solution
from optdp.solvers import layers
from optdp.solvers.lp import LinearProgram
from optdp.solvers.radial import Caps, RadialFloor, _cap, solve_radial

#: Radii and norms of the first mesh: so many for each favoured ball, at least and at most. Both are added where they are missing.
RADII, RADII_EACH, LEAST_NORMS, NORMS_EACH = (60, 160), 6.0, (24, 96), 5.0
#: Where favoured balls are smaller than this (in the plane, and in more dimensions), the floor is one of layers
#: (`optdp.solvers.layers`): spheres, and norms of the bound, for each width of a ball (in the plane more: caps are less smooth
#: there); the share of R^2 that is left to the proof of the bound; the share that mixing rows adds, and the most rows.
SMALL, LAYERED, PLANE, LEFT, MIXED, MOST_ROWS = (0.07, 0.05), (12, 16), (20, 20), 2e-5, 6e-5, 100_000
#: Least coins of a sphere: spheres with fewer are left out.
LEAST = 1
#: Shares of the value: what mixing neighbouring rows may add, and what is left to the proof of the bound.
MIXING, MARGIN = 1.5e-4, 2e-5
#: What is left of E - 1, for floats; radii on which the bound is made feasible; best rows to choose from, and the share of the
#: error by which they may miss their norms.
SAFE, FINE, CURVE, CLOSE = 1e-9, 4096, 2000, 1e-5


def design(
    run: Run, best: tuple[float, float], made: Mechanism, proof: Certificate, length: float
) -> Solution:  # fmt: skip
    """A solution at least as good as the bracket `best` of a mechanism and a certificate; `length`: of the sphere's outputs."""
    problem, dim = run.problem, run.problem.domain.dim
    (lower, value), eps = best, float(problem.eps)  # type: ignore[arg-type]
    found: Any
    if layers.width(eps, dim) < SMALL[dim > 2]:
        found, dual, other = layered(run)
        columns, radii, length = f"{found.knots.size + 1}: the floor at knots, and the error", found.spheres.radii, 1.0
    else:
        scale = float(np.clip(layers.limit(dim)[0] * math.exp(-2 * eps / (dim + 2)), lower, value))
        found, dual, other = on_radii(run, length, scale)
        columns, radii = f"{found.radii.size + 1}: floors of radii, and the error", found.radii
    bound = dual.bound(problem).value if dual else 0.0
    if dual is not None and bound > lower:
        lower, proof = bound, dual
    attained = other.enclose(problem.objective)[1] if other else math.inf
    if other is not None and attained < value and other.check_privacy(problem.privacy)[0].passed:
        value, made = attained, other
    return run.solution(
        made, proof, columns, f"{found.cuts + 1}: total mass, cuts", "HiGHS (cutting planes)", (lower, value),
        objective=found.bound, message=f"{radii.size} radii, {counted(found.rounds, 'round')} of cuts", stopped=run.left() <= 0,
        build=build_model, arguments=(eps, dim, length),
    )  # fmt: skip


def on_radii(
    run: Run, length: float, scale: float
) -> tuple[RadialFloor, RadialCertificate, RadialMechanism | None]:  # fmt: skip
    """A floor on radii, with what it proves and attains; `scale`: about the square of the error that is due to the sphere."""
    domain: Any = run.problem.domain
    reach = math.sqrt(scale)
    radii = int(np.clip(RADII_EACH * (1.15 * length) / reach, *RADII))
    norms = int(np.clip(NORMS_EACH / reach, *LEAST_NORMS))
    found = solve_radial(
        float(run.problem.eps), domain.dim, length, scale, radii=radii, norms=norms, tolerance=min(run.rtol / 10, 1e-4),  # type: ignore[arg-type]
        tell=lambda low, high: run.progress("a floor on radii", low, high), left=run.left,
    )  # fmt: skip
    return found, certify(run.problem, found), mechanism(run.problem, found)


def layered(run: Run) -> tuple[layers.Layers, RadialCertificate | None, RadialMechanism | None]:
    """A floor of layers, for outputs that are close to their inputs, with what it proves and attains."""
    domain: Any = run.problem.domain
    spheres, each = PLANE if domain.dim == 2 else LAYERED
    found = layers.Layers(float(run.problem.eps), domain.dim, spheres)  # type: ignore[arg-type]
    found.run(run.rtol / 100, lambda low, high: run.progress("a floor of layers", low, high), run.left)
    norms, weights, centers, reaches = found.dual(each, run.left)
    dual, used = None, weights > 0
    if used.any():
        reaches = reaches * math.sqrt(1 - LEFT)
        rows = (v[used].tolist() for v in (norms, weights, 2 * centers, reaches**2 - centers**2))
        dual = RadialCertificate(*map(tuple, rows))
    gap = max(math.sqrt(4 * MIXED * found.value), 1 / MOST_ROWS) if math.isfinite(found.value) else 1.0
    floor = found.hats @ found.best
    floor = np.where(floor * TOTAL < LEAST, 0.0, np.rint(floor * TOTAL) / TOTAL)
    centers, reaches, means, _ = found.balls(floor, np.append(np.arange(gap / 2, 1, gap), 1 + gap / 100))
    apart = np.diff(np.maximum.accumulate(np.append(0.0, means))) > 0.01 * gap
    centers, reaches, kept = centers[apart], reaches[apart], floor > 0
    radii, coins = found.spheres.radii[kept], floor[kept] * TOTAL
    return found, dual, _of_rows(domain, radii, coins, 2 * centers, reaches**2 - centers**2)


def _of_rows(domain: Any, radii: Any, coins: Any, slopes: Any, levels: Any) -> RadialMechanism | None:
    """The mechanism of rows; None where floats cannot find it."""
    try:
        return RadialMechanism.of_rows(
            domain, radii.tolist(), [int(c) for c in coins.tolist()], slopes.tolist(), levels.tolist()
        )
    except ValueError:
        return None


def mechanism(problem: Problem, found: RadialFloor) -> RadialMechanism | None:
    """The mechanism of a floor: best rows for as few norms as serve. None where floats cannot find them, or there is no floor."""
    if not math.isfinite(found.value):
        return None
    domain: Any = problem.domain
    # A floor counts for E times its mass where it is favoured: where E is large, next to nothing is enough near 0.
    kept = math.exp(float(problem.eps)) * found.floor > 1e-9 * found.floor.max()  # type: ignore[arg-type]
    radii, coins = found.radii[kept], np.maximum(1, np.rint(found.floor[kept] * TOTAL))
    floor = coins / TOTAL
    caps = Caps(domain.dim, math.expm1(float(problem.eps)) * (1 - SAFE), radii)  # type: ignore[arg-type]
    slopes, levels, means, squares = caps.curve(floor, np.linspace(0, 1, CURVE + 1)[1:], CLOSE * found.value)
    inside = np.flatnonzero((means < 1) & (np.diff(np.maximum.accumulate(np.append(0.0, means))) > 1e-9))
    slopes, levels, means, squares = (v[inside] for v in (slopes, levels, means, squares))
    low, high = float(slopes.max(initial=1e-3)), 1e9
    for _ in range(60):
        middle = math.sqrt(low * high)
        if caps.rows(floor, np.array([middle]))[1][0] < 1 + 1e-9:
            low = middle
        else:
            high = middle
    last = caps.rows(floor, np.array([high]))
    slopes, levels, means, squares = (
        np.concatenate([v, w]) for v, w in zip((slopes, levels, means, squares), (np.array([high]), *last), strict=True)
    )
    places = spread(means, squares)
    return _of_rows(domain, radii, coins, slopes[places], levels[places])


def spread(means: np.ndarray, squares: np.ndarray) -> list[int]:
    """Few of these rows, with the last one, that mixed for the norms in between are within a share of the worst."""
    worst = max(float((squares - means**2)[:-1].max(initial=0.0)), float(squares[-1]) - 1)
    for goal in worst * (1 + MIXING * 2.0 ** np.arange(40)):
        at = int(np.flatnonzero(squares <= max(goal, squares[0]))[-1]) if squares[0] <= goal else 0
        places = [at]
        while at < means.size - 1:
            rest = slice(at + 1, None)
            rise = (squares[rest] - squares[at]) / (means[rest] - means[at])
            point = np.clip(rise / 2, means[at], np.minimum(means[rest], 1.0))
            error = squares[at] + rise * (point - means[at]) - point**2
            at += 1 + int(np.flatnonzero(np.append(error[0], error)[1:] <= goal)[-1:].max(initial=0))
            places.append(at)
        if len(places) <= ROWS:
            break
    return places


def certify(problem: Problem, found: RadialFloor) -> RadialCertificate:
    """The dual point, its levels lowered in common until no radius of a fine mesh has a negative price, and a little more."""
    domain: Any = problem.domain
    order = np.argsort(-found.weights, kind="stable")[:NORMS]
    norms, weights, slopes, levels = (
        v[np.sort(order)] for v in (found.norms, found.weights, found.slopes, found.levels)
    )
    if not weights.size:
        return RadialCertificate((0.0,), (1.0,), (0.0,), (0.0,))
    weights = weights / weights.sum()
    end = float((slopes / 2 + np.sqrt(np.maximum(slopes**2 / 4 + levels, 0))).max())
    caps = Caps(domain.dim, math.expm1(float(problem.eps)), np.linspace(0, end, FINE + 1)[1:])  # type: ignore[arg-type]
    for _ in range(20):
        prices, factors = caps.prices(slopes, levels)
        step = float((-(weights @ prices) / (weights @ factors)).max())
        levels = levels - step
        if abs(step) <= 1e-9 * found.value:
            break
    levels = levels - MARGIN * min(found.value, 2.0**40)
    return RadialCertificate(*(tuple(v.tolist()) for v in (norms, weights, slopes, levels)))


def build_model(eps: float, dim: int, length: float) -> LinearProgram:
    """The plain linear program on a small mesh."""
    return plain_program(eps, dim, length * np.linspace(0, 1.3, 27)[1:], np.linspace(0, 1, 7), 24)


def plain_program(eps: float, dim: int, radii: np.ndarray, norms: np.ndarray, slices: int) -> LinearProgram:
    """The plain linear program: outputs on some radii, in slices of equal probability by their direction along the input.

    Variables are the floor of each radius, the probabilities of all slices for all norms, and the largest error. In the middle of
    a slice is the mean direction: rows are mechanisms, so that more slices have lower optima.
    """
    from scipy.sparse import csr_matrix, eye, hstack, kron, vstack
    from scipy.special import betaincinv

    shares = np.arange(1, slices // 2) / slices
    heights = np.sqrt(1 - betaincinv((dim - 1) / 2, 0.5, 2 * shares))
    moments = _cap(dim, np.concatenate([[1.0], heights, [0.0], -heights[::-1], [-1.0]]))[1]
    along = np.diff(moments) * slices
    k, n, cells = radii.size, norms.size, radii.size * slices
    length, mean = np.repeat(radii**2, slices), np.outer(radii, along).ravel()
    spread_, rows = kron(eye(k), np.full((slices, 1), 1 / slices)), eye(n)
    none = csr_matrix((n, k))
    above = hstack([-kron(np.ones((n, 1)), spread_), eye(n * cells), csr_matrix((n * cells, 1))])
    below = hstack([-math.exp(eps) * kron(np.ones((n, 1)), spread_), eye(n * cells), csr_matrix((n * cells, 1))])
    mass = hstack([none, kron(rows, np.ones((1, cells))), csr_matrix((n, 1))])
    means = hstack([none, kron(rows, mean[None]), csr_matrix((n, 1))])
    error = hstack([none, kron(rows, length[None]), csr_matrix(-np.ones((n, 1)))])
    low = np.concatenate([np.zeros(n * cells), np.full(n * cells, -np.inf), np.ones(n), norms, np.full(n, -np.inf)])
    high = np.concatenate([np.full(n * cells, np.inf), np.zeros(n * cells), np.ones(n), norms, norms**2])
    cost = np.zeros(k + n * cells + 1)
    cost[-1] = 1.0
    lower = np.append(np.zeros(cost.size - 1), -np.inf)
    return LinearProgram(cost, vstack([above, below, mass, means, error]), low, high, lower, name="ball")

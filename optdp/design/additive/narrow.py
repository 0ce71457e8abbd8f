"""Lower bounds for additive noise at large eps, where all but delta of the optimal noise lies within a narrow peak.

The staircase's first step is about e^(-eps/2) wide for |x| and e^(-eps/3) for x^2, in sensitivities, and a lattice that resolves
it has too many pairs (shift, point) for `optdp.design.additive.program`. The multipliers mu_(s, i) that matter are those
of points i under the peak, for all shifts s, and for the shift of one sensitivity also the chain of all further points. They vary
smoothly with s but for the longest and the shortest shifts. So they are written in B-splines of s, which are nonnegative and add
up to 1: with coefficients between 0 and those of lam_s they are multipliers, on however fine a lattice. This linear program
has a few thousand columns; what it finds is written out on the lattice and proven there as always.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from optdp.certificates.additive import AdditiveCertificate, Multiplier
from optdp.problem.problem import Problem
from optdp.solvers.lp import Highs, LinearProgram

#: Lattices are not finer than this many points per sensitivity; a peak of so many integers is not made coarser.
FINEST, NATIVE = 12_000, 8
#: Far from the peak's images shifts are represented by so many knots; the chain's points by so many.
MIDDLE, CHAIN = 24, 40
#: Multipliers are drawn in by these shares, for what the solver leaves open in rows whose costs are large.
SHARES = (0.0, 1e-8, 1e-7, 1e-6, 1e-5)
#: Rows that are left out at first are added while one is broken by more than this share of the value; rounds.
ROUGH, ROUNDS = 1e-4, 8
#: Between the peak's images all rows are there from the start on lattices up to this, and so many on finer ones.
FULL, ROWS = 6000, 600


def peak(eps: float, q: int) -> float:
    """About how wide the first step of the staircase is, in sensitivities, for |x| and x^2."""
    return math.exp(-eps / 2) if q == 1 else (math.exp(-eps) / 2) ** (1 / 3)


def _splines(knots: np.ndarray, at: np.ndarray, degree: int) -> Any:
    """A matrix (places, splines): nonnegative, with rows that add up to 1."""
    from scipy.interpolate import BSpline

    knots = np.unique(np.rint(knots)).astype(float)
    ends = np.concatenate([[knots[0]] * degree, knots, [knots[-1]] * degree])
    return BSpline.design_matrix(at.astype(float), ends, degree).tocsr()


def certificate(problem: Problem, costs: Any, n: int, deadline: float) -> AdditiveCertificate | None:
    """Multipliers on a lattice of n points per sensitivity; None where it is too coarse or the solver fails.

    **Arguments:** `problem`: with a loss |x| or x^2; `costs(n, last)`: those of lattice points, in floats;
    `deadline`: on the clock of `time.perf_counter`, after which the solver is stopped.
    """
    from scipy.sparse import coo_matrix, csr_matrix, diags, hstack, vstack

    privacy: Any = problem.privacy
    eps, delta, q = float(privacy.eps), float(privacy.delta), int(problem.objective.loss.exponent)
    ratio, width = math.exp(eps), peak(eps, q)
    m = max(1, round(n * width))
    if n < 4 * m + 2:
        return None
    # Shifts: every one near the longest, where the multipliers have kinks, and fewer elsewhere.
    least, dense, ends = max(1, m // 2), max(1, m // 16), n - 2 * m
    shifts = np.arange(least, n + 1)
    along = _splines(
        np.concatenate([np.arange(least, 1.5 * m, dense), np.linspace(1.5 * m, ends, MIDDLE), np.arange(ends, n + 1)]),
        shifts, q,
    )  # fmt: skip
    # Points under the peak, and the chain beyond it.
    reach = math.ceil(1.1 * m) + 1
    points = np.arange(-reach, reach + 1)
    top = n + 2 * m
    chain = np.arange(reach + 1, top + 1)
    further = _splines(
        np.concatenate([np.linspace(reach + 1, ends, CHAIN // 2), np.linspace(ends, top, CHAIN)]), chain, 1
    )
    last = top + n
    k, j, c = along.shape[1], points.size, further.shape[1]

    def fold(shift: np.ndarray, point: np.ndarray, value: np.ndarray, column: np.ndarray, columns: int) -> Any:
        places = (np.abs(point), 1.0), (np.abs(point + shift), -ratio)
        shape = (last + 1, columns)
        return sum(coo_matrix((f * value, (at, column)), shape=shape).tocsr() for at, f in places)

    one, three = along.tocoo(), further.tocoo()
    place, point = (x.ravel() for x in np.meshgrid(np.arange(one.nnz), points, indexing="ij"))
    body = fold(shifts[one.row[place]], point, one.data[place], one.col[place] * j + point + reach, k * j)
    matrix = hstack([body, fold(np.full(three.nnz, n), chain[three.row], three.data, three.col, c)]).tocsr()
    # In units of the value: tau w - (folded multipliers) <= costs w; multipliers <= lam; tau - delta sum lam is to be large.
    height = width**q
    unit, price = height / n, costs(n, last)
    weight = np.where(np.arange(last + 1) == 0, 1.0, 2.0)
    inner = max(ends - reach - 1, 3 * m)
    # Between the peak's images and beyond the last one brackets vary smoothly.
    sparse = dense if n <= FULL else max(dense, n // ROWS)
    used = np.unique(np.concatenate([
        np.arange(3 * m), np.arange(3 * m, inner, sparse), np.arange(inner, n + 3 * m), np.arange(n + 3 * m, last + 1, sparse),
    ]))  # fmt: skip
    rows = hstack([-matrix * (unit / height), csr_matrix((last + 1, k)), csr_matrix(weight[:, None])]).tocsr()
    limit = weight * price / height
    norm = np.maximum(np.abs(rows).max(axis=1).toarray().ravel(), limit)
    owner, columns = np.concatenate([np.repeat(np.arange(k), j), np.full(c, k - 1)]), k * j + c
    order = np.arange(columns)
    within = hstack([
        diags(np.ones(columns)), coo_matrix((-np.ones(columns), (order, owner)), shape=(columns, k)), csr_matrix((columns, 1))
    ])  # fmt: skip
    cost = np.concatenate([np.zeros(columns), delta * np.asarray(along.sum(axis=0)).ravel() * unit / height, [-1.0]])
    for _ in range(ROUNDS):
        program = LinearProgram(
            cost, vstack([(diags(1 / norm) @ rows)[used], within]).tocsr(), np.full(used.size + columns, -np.inf),
            np.concatenate([(limit / norm)[used], np.zeros(columns)]), name="additive",
        )  # fmt: skip
        session, left = Highs(tolerance=1e-9, crossover=False).session(program), deadline - time.perf_counter()
        found = session.solve(time_limit=max(left, 0.1), method="ipm")
        if not found.usable:
            return None
        broken = np.flatnonzero(rows @ found.x > limit + ROUGH + 1e-6 * norm)
        if not broken.size:
            break
        used = np.union1d(used, broken)
    x = np.maximum(found.x, 0.0) * unit
    weights = along @ x[columns : columns + k]
    values = np.minimum(along @ x[: k * j].reshape(k, j), weights[:, None])
    # The last spline along the shifts belongs to the shift n alone there: the chain is under its lam.
    tail = np.minimum(further @ x[k * j : columns], weights[-1])
    best: tuple[float, AdditiveCertificate] | None = None
    for share in SHARES:
        made = []
        for s, lam, row in zip(shifts, (1 - share) * weights, (1 - share) * values, strict=True):
            entries = np.concatenate([row, (1 - share) * tail]) if s == n else row
            kept = np.flatnonzero(entries > 1e-10 * lam)
            if lam > 0 and kept.size:
                entries = np.minimum(entries[kept[0] : kept[-1] + 1], lam)
                made.append(Multiplier(int(s), float(lam), int(kept[0]) - reach, tuple(entries.tolist()), 0.0))
        tried = AdditiveCertificate(n, "nodes", tuple(made))
        proven = tried.bound(problem).value
        if best is None or proven > best[0]:
            best = proven, tried
    return best[1] if best else None

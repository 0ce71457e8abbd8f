"""Brackets against optima that are found in another way: dense linear programs on grids, quadrature, search in two dimensions.

    python -m tests.soak_brackets --count 500

A grid of inputs and outputs with all rounding errors on one side gives a bound: fewer inputs and constraints make a program
easier, fewer outputs harder. Missed is a bracket that such a bound, or an optimum found by quadrature, lies outside of.
"""

from __future__ import annotations

import argparse
import math
import time
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
from scipy.integrate import quad
from scipy.optimize import linprog, minimize_scalar
from scipy.sparse import csr_matrix, hstack, identity, vstack

import optdp
from tests import checkers

#: What the two checkers said of the solutions.
COMPARED: Counter[str] = Counter()
#: What solvers and quadrature are trusted with, relatively.
TRUST = 1e-6


def random_loss(rng, *, pinball=False):
    """(the loss, a plain function of the difference y - x)."""
    q, c, tau = float(rng.uniform(0.6, 3)), float(rng.uniform(0.05, 0.8)), float(rng.uniform(0.2, 0.8))
    kinds = [
        ("abs", np.abs), ("squared", np.square), (optdp.Power(q), lambda d: np.abs(d) ** q),
        (optdp.Huber(c), lambda d: np.where(np.abs(d) <= c, d * d / 2, c * (np.abs(d) - c / 2))),
        (optdp.Threshold(c), lambda d: (np.abs(d) > c) * 1.0),
    ]  # fmt: skip
    if pinball:
        kinds = [*kinds[:2], kinds[3], (optdp.Pinball(tau), lambda d: np.where(d > 0, tau * d, (tau - 1) * d))]
    return kinds[int(rng.integers(len(kinds)))]


def random_eps(rng, most=8.0):
    """Mostly moderate."""
    return float(np.exp(rng.uniform(math.log(0.02), math.log(most))))


def piecewise(rng):
    """The optimum over windows by numerical minimisation, the loss by quadrature."""
    (loss, law), eps, width = random_loss(rng), random_eps(rng, 20), float(10 ** rng.uniform(-3, 3))
    circle = rng.random() < 0.4
    reach = width / 2 if circle else width
    growth = math.expm1(eps)
    knots = [c for c in (getattr(loss, "corner", None), getattr(loss, "limit", None)) if c is not None]

    def inner(d):
        cuts = [0.0, *sorted(k for k in knots if 0 < k < d), d]
        return sum(quad(lambda t: float(law(t)), a, b, epsabs=0, epsrel=1e-11)[0] for a, b in pairwise(cuts))

    total = inner(reach)

    def value(log_w):
        w = math.exp(log_w)
        return (total + growth * inner(w * reach)) / (reach * (1 + growth * w))

    grid = np.linspace(-eps - 3, 0, 60)
    at = int(np.argmin([value(v) for v in grid]))
    best = minimize_scalar(
        value, bounds=(grid[max(at - 1, 0)], grid[min(at + 1, 59)]), method="bounded", options={"xatol": 1e-9}
    )
    found = optdp.solve_piecewise(eps, 3, loss, domain=optdp.Circle(width) if circle else (0.0, width))
    truth = min(float(best.fun), value(0.0), *(value(math.log(k / reach)) for k in knots if k < reach))
    return found, truth * (1 - TRUST), truth * (1 + TRUST), f"eps = {eps}, {loss}, width {width}, circle {circle}"


def dense(eps, losses, prior=None, means=None):
    """The optimum of the plain program over a matrix of losses (inputs, outputs), by scipy's solver."""
    d, m = losses.shape
    each, floor = (
        identity(d * m),
        csr_matrix((np.ones(d * m), (np.arange(d * m), np.tile(np.arange(m), d))), shape=(d * m, m)),
    )
    mass = hstack([csr_matrix(np.kron(np.eye(d), np.ones(m))), csr_matrix((d, m + 1))])
    ratios = vstack(
        [hstack([each, -math.exp(eps) * floor, csr_matrix((d * m, 1))]), hstack([-each, floor, csr_matrix((d * m, 1))])]
    )
    below, limit = [ratios], [np.zeros(2 * d * m)]
    cost = np.zeros(d * m + m + 1)
    if prior is None:
        cost[-1] = 1.0
        rows = np.kron(np.eye(d), np.ones(m)) * losses.ravel()
        below.append(hstack([csr_matrix(rows), csr_matrix((d, m)), -np.ones((d, 1))]))
        limit.append(np.zeros(d))
    else:
        cost[: d * m] = (prior[:, None] * losses).ravel()
    equal, right = [mass], [np.ones(d)]
    if means is not None:
        equal.append(
            hstack([csr_matrix(np.kron(np.eye(d), np.ones(m)) * np.tile(means[0], d)), csr_matrix((d, m + 1))])
        )
        right.append(means[1])
    found = linprog(
        cost, A_ub=vstack(below), b_ub=np.concatenate(limit), A_eq=vstack(equal), b_eq=np.concatenate(right), method="highs"
    )  # fmt: skip
    assert found.status == 0, found.message
    return float(found.fun)


def kernel(rng):
    """A grid of inputs and outputs.

    Where every output stands for a cell with the least loss in it, a lower bound on the optimum. With the middles of the cells as
    outputs, and inputs read as the nearest one of the grid, so that the loss is at most the largest over a cell, an upper one.
    """
    (loss, law), eps = random_loss(rng, pinball=True), random_eps(rng, 5)
    d, m = int(rng.integers(4, 10)), int(rng.integers(12, 30))
    x, edges = np.linspace(0, 1, d), np.linspace(0, 1, m + 1)
    near = np.clip(x[:, None], edges[:-1], edges[1:])  # losses of y - x fall towards x from both sides
    lower = dense(eps, law(near - x[:, None]))
    y, half = (edges[:-1] + edges[1:]) / 2, 0.5 / (d - 1)
    cells = np.clip(np.stack([x - half, x + half]), 0, 1)
    upper = dense(eps, np.maximum(law(y - cells[0][:, None]), law(y - cells[1][:, None])))
    found = optdp.solve_kernel(eps, loss, rtol=0.02, time_limit=20.0)
    return found, lower * (1 - TRUST), upper * (1 + TRUST), f"eps = {eps}, {loss}, {d} inputs, {m} outputs"


def unbiased(rng):
    """Any outputs are allowed to a mechanism: those of a grid give an upper bound for the inputs of the grid alone, so that only
    the bracket's lower end is compared, with the optimum for two inputs less the cell's own variance.
    """
    eps = random_eps(rng, 4)
    reach = 1 + 2.5 / math.tanh(eps / 2)
    y, x = np.linspace(0.5 - reach, 0.5 + reach, 81), np.linspace(0, 1, 5)
    # Splitting an output between its two neighbours on the grid keeps means and adds at most h^2/4.
    value = dense(eps, np.square(y - x[:, None]), means=(y, x))
    found = optdp.solve_kernel(eps, unbiased=True, rtol=0.02, time_limit=20.0)
    return found, (value - (y[1] - y[0]) ** 2 / 4) * (1 - TRUST), math.inf, f"eps = {eps}"


def finite(rng):
    """The plain program itself."""
    eps, d, m = random_eps(rng), int(rng.integers(2, 9)), int(rng.integers(2, 9))
    losses = np.round(rng.random((d, m)) * (rng.random((d, m)) < 0.8), 3) + np.eye(d, m) * 0
    losses[0, 0] += 1e-3
    prior = rng.dirichlet(np.ones(d)) if rng.random() < 0.5 else None
    exact = None if prior is None else [float(p) for p in prior]
    truth = dense(eps, losses, prior)
    found = optdp.solve_kernel(eps, losses, domain=optdp.Alphabet(d), prior=exact, rtol=1e-6)
    slack = TRUST * losses.max()
    return found, truth - slack, truth + slack, f"eps = {eps}, {d} x {m}, prior {prior is not None}"


def additive_lattice(eps, delta, n, losses):
    """The optimum over noise on a lattice of n points per sensitivity with these losses at 0, 1, 2, ... and none beyond."""
    size = losses.size
    points = np.arange(-size + 1, size)
    index = np.abs(points)
    count, line = size, np.zeros(size)
    np.add.at(line, index, 1.0)
    equal = [line]
    shifts = range(1, n + 1)
    reach = np.arange(-size + 1 - n, size)
    rows, slack_of = [], []
    for s in shifts:
        for i in reach:
            a, b = abs(i), abs(i + s)
            if a >= size:
                continue
            row = np.zeros(count)
            row[a] += 1.0
            if b < size:
                row[b] -= math.exp(eps)
            rows.append(row)
            slack_of.append(s - 1)
    table = csr_matrix(np.array(rows))
    k = len(rows)
    if delta > 0:
        budget = csr_matrix((np.ones(k), (slack_of, np.arange(k))), shape=(n, k))
        upper = vstack([hstack([table, -identity(k)]), hstack([csr_matrix((n, count)), budget])])
        limit = np.concatenate([np.zeros(k), np.full(n, delta)])
        cost = np.concatenate([line * losses, np.zeros(k)])
        equal = csr_matrix(np.concatenate([line, np.zeros(k)])[None])
    else:
        upper, limit, cost, equal = table, np.zeros(k), line * losses, csr_matrix(line[None])
    found = linprog(cost, A_ub=upper, b_ub=limit, A_eq=equal, b_eq=[1.0], method="highs")
    assert found.status == 0, found.message
    return float(found.fun)


def additive(rng):
    """A lattice of n points: its noise spread over cells is noise on the line, so that it bounds the optimum from above."""
    eps, delta = random_eps(rng, 3), float(10 ** rng.uniform(-2, -0.3))
    name, law = (("abs", np.abs), ("squared", np.square))[int(rng.integers(2))]
    n = int(rng.integers(1, 5))
    radius = math.log1p(math.expm1(eps) / (2 * delta)) / eps + 2
    a = np.arange(math.ceil(radius * n) + 2)
    if rng.random() < 0.4:  # on the integers the program is exact, up to where it is cut
        truth = additive_lattice(eps, delta, n, law(a * 1.0))
        found = optdp.solve_additive(eps, delta, name, sensitivity=float(n), discrete=True, rtol=1e-4)
        return found, 0.0, truth * (1 + TRUST), f"integers, eps = {eps}, delta = {delta}, {name}, n = {n}"
    spread = np.array([quad(lambda t: float(law(t)), (k - 0.5) / n, (k + 0.5) / n)[0] * n for k in a])
    upper = additive_lattice(eps, delta, n, spread)
    found = optdp.solve_additive(eps, delta, name, rtol=0.01, time_limit=20.0)
    return found, 0.0, upper * (1 + TRUST), f"eps = {eps}, delta = {delta}, {name}, n = {n}"


def staircase(rng):
    """delta = 0: the staircase of Geng and Viswanath, minimised over its step by quadrature."""
    eps, name = random_eps(rng, 25), ("abs", "squared")[int(rng.integers(2))]
    q, b = {"abs": 1, "squared": 2}[name], math.exp(-eps)
    k = np.arange(math.ceil(50 / eps) + 2)

    def value(log_g):
        g = math.exp(log_g)
        top = (1 - b) / (2 * (g + b * (1 - g)))
        first, second = ((k + g) ** (q + 1) - k ** (q + 1.0)), ((k + 1.0) ** (q + 1) - (k + g) ** (q + 1))
        return 2 * top * float(b**k @ (first + b * second)) / (q + 1)

    grid = np.linspace(-eps - 2, 0, 80)
    at = int(np.argmin([value(v) for v in grid]))
    best = minimize_scalar(
        value, bounds=(grid[max(at - 1, 0)], grid[min(at + 1, 79)]), method="bounded", options={"xatol": 1e-10}
    )
    found = optdp.solve_additive(eps, 0, name, rtol=1e-3, time_limit=20.0)
    return found, float(best.fun) * (1 - TRUST), float(best.fun) * (1 + TRUST), f"eps = {eps}, {name}"


def ptt(rng):
    """The variance at the worst input, minimised over eta on a grid and by search."""
    from optdp.design.ptt import variance_at

    eps, kind = random_eps(rng, 10), ("I", "II")[int(rng.integers(2))]

    def value(t):
        return float(max(variance_at(eps, 1 + math.exp(t), x, kind) for x in (0.0, 1.0)))

    grid = np.linspace(-12, 12, 200)
    at = int(np.argmin([value(v) for v in grid]))
    best = minimize_scalar(
        value, bounds=(grid[max(at - 1, 0)], grid[min(at + 1, 199)]), method="bounded", options={"xatol": 1e-10}
    )
    found = optdp.solve_ptt(eps, kind)
    return found, float(best.fun) * (1 - TRUST), float(best.fun) * (1 + TRUST), f"eps = {eps}, {kind}"


def information(rng):
    """All extreme posteriors in one program, by scipy's solver, from the definitions of the notions."""
    d, eps = int(rng.integers(2, 6)), random_eps(rng, 4)
    weights = rng.integers(1, 20, d)
    p = weights / weights.sum()
    notion, task = ("lip", "lip-lower", "ldp")[int(rng.integers(3))], ("sum", "histogram")[int(rng.integers(2))]
    e = math.exp(eps)
    values = np.arange(d, dtype=float)
    corners = []
    for bits in range(2**d):
        high = np.array([(bits >> i) & 1 for i in range(d)], dtype=bool)
        if notion == "ldp":
            r = p * np.where(high, e, 1.0)
            corners.append(r / r.sum())
        elif notion == "lip":  # all but one category at a bound, the other takes what is left
            for free in range(d):
                r = p * np.where(high, e, 1 / e)
                r[free] = 0
                r[free] = 1 - r.sum()
                if p[free] / e - 1e-12 <= r[free] <= p[free] * e + 1e-12:
                    corners.append(r)
    if notion == "lip-lower":
        corners = [p / e + (1 - 1 / e) * row for row in np.eye(d)]
    rows = np.array(corners)
    left = values**2 @ p - (values @ p) ** 2 if task == "sum" else 1 - p @ p
    gain = (rows @ values) ** 2 - (values @ p) ** 2 if task == "sum" else np.sum(rows**2, axis=1) - p @ p
    best = linprog(-gain, A_eq=rows.T, b_eq=p, method="highs")
    truth = left + float(best.fun)
    options = {"values": values.tolist()} if task == "sum" else {}
    exact = [Fraction(w, int(weights.sum())) for w in weights.tolist()]
    found = optdp.solve_lip(exact, eps, task=task, notion=notion, rtol=1e-6, **options)
    return found, truth - TRUST * left, truth + TRUST * left, f"eps = {eps}, prior {weights}, {notion}, {task}"


def frequency(rng):
    """Sets of one size: their errors by the definition, over all sizes."""
    eps, d = random_eps(rng, 8), int(rng.integers(2, 40))
    e = math.exp(eps)

    def error(w):
        own = e * w / (e * w + d - w)  # P(the category is in the set)
        other = own * (w - 1) / (d - 1) + (1 - own) * w / (d - 1)
        return (own * (1 - own) + (d - 1) * other * (1 - other)) / (own - other) ** 2

    truth = min(error(w) for w in range(1, d))
    found = optdp.solve_frequency(eps, d, message="set")
    return found, truth * (1 - TRUST), truth * (1 + TRUST), f"eps = {eps}, {d} categories"


#: With how many of each ten.
KINDS = [piecewise, finite, staircase, ptt, information, frequency, kernel, additive, unbiased, piecewise]


def judged(kind, number):
    """("held" or "missed", what)."""
    rng = np.random.default_rng([KINDS.index(kind), number])
    found, low, high, told = kind(rng)
    verified = bool(found.verify(60.0))
    both = checkers.compared(found, verified)
    COMPARED[both] += 1
    held = verified and both != checkers.DISAGREE and found.lower_bound <= high and found.value >= low
    return (
        "held" if held else "missed"
    ), f"{kind.__name__} {number} ({both}): [{found.lower_bound}, {found.value}] beside [{low}, {high}]: {told}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    began, count, missed = time.process_time(), Counter(), 0
    for number in range(args.first, args.first + args.count):
        kind = KINDS[number % len(KINDS)]
        verdict, what = judged(kind, number)
        count[kind.__name__] += 1
        if verdict == "missed":
            missed += 1
            print(f"MISSED {what}", flush=True)
    parts = ", ".join(f"{name} {n}" for name, n in sorted(count.items()))
    print(
        f"{sum(count.values())} brackets beside independent optima ({parts}): missed {missed} "
        f"({time.process_time() - began:.0f} s of CPU)"
    )
    print(checkers.summary(COMPARED))
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())

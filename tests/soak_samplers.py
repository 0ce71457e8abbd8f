"""What mechanisms send, counted against their law: every mechanism, at eps from 1e-6 to 30, on domains of all sizes.

    python -m tests.soak_samplers --count 20000

Each cell is a mechanism, an eps, a domain and an input. Counts of outputs in classes of known probability are tested by
Pearson's statistic; all p-values of a run are held to one familywise level by Bonferroni's bound. Before that: every output on
an interval is finite and in the support, which is all that is looked at where floats are too coarse for classes.
"""

from __future__ import annotations

import argparse
import itertools
import math
import time
from collections import Counter

import numpy as np

import optdp
from optdp.mechanisms.composite import CompositeMechanism
from optdp.mechanisms.frequency import AffineOracle, SubsetOracle
from optdp.mechanisms.gaussian import LatticeGaussian
from optdp.mechanisms.kernel import KernelMechanism
from optdp.mechanisms.piecewise import PiecewiseMechanism
from optdp.mechanisms.staircase import LatticeStaircase
from optdp.problem.shapes import ACTIVATIONS

EPS = (1e-6, 0.01, 1.0, 10.0, 30.0)
NANOSECONDS = (1_700_000_000 * 10**9, 1_700_086_400 * 10**9)
DOMAINS = {
    "(0, 1)": (0.0, 1.0),
    "(1e15, 1e15 + 1)": (1e15, 1e15 + 1),
    "nanoseconds": NANOSECONDS,
    "(-1e300, 1e300)": (-1e300, 1e300),
}
#: The chance that a run of sound samplers is called wrong.
LEVEL = 1e-6
#: Classes expect at least this many outputs; smaller ones are merged.
EXPECTED = 10


#: Bins of a density are as many lattice steps wide at least that their ends do not matter.
FINE = 10_000


def intervals(eps, ends):
    """(name, mechanism) on an interval."""
    width = min(max(1 / (1 + math.exp(eps / 2)), 2.0**-40), 0.4)
    for placement in ("centred", "linear"):
        yield f"piecewise {placement}", PiecewiseMechanism.private(eps, width, ends, placement)
    yield "window", CompositeMechanism.private(eps, width, ends)
    yield "curved window", CompositeMechanism.private(eps, width, ends, ACTIVATIONS["A2"])
    yield "kernel", KernelMechanism.private(eps, [0.3, 0.4, 0.3], [0.0, 0.25, 0.75], [0.0, 0.75, 1.0], 0.2, ends)


def everywhere(eps):
    """(name, mechanism, input) elsewhere."""
    yield "circle", PiecewiseMechanism.private(eps, 0.25, optdp.Circle(2.0)), 0.5
    yield "kernel prior", optdp.solve_kernel(eps, rtol=0.5, prior=([0.0, 0.5, 1.0], [0.25, 0.25, 0.5])).mechanism, 0.5
    yield "kernel unbiased", optdp.solve_kernel(eps, rtol=0.5, unbiased=True, time_limit=10.0).mechanism, 0.3
    yield "frequency sets", SubsetOracle.private(eps, optdp.OneHot(6), 2), 4
    yield "frequency pair", optdp.solve_frequency(eps, 12, message="pair").mechanism, 7
    yield "finite", optdp.solve_kernel(eps, np.ones((4, 4)) - np.eye(4), domain=optdp.Alphabet(4)).mechanism, 2
    for notion in ("lip", "lip-lower", "ldp"):
        yield f"information privacy ({notion})", optdp.solve_lip([0.5, 0.3, 0.2], eps, notion=notion).mechanism, 1
    if eps <= 8:
        yield "Gaussian", LatticeGaussian(optdp.Line(), 2.5, eps), 1e-3
    if eps >= 0.05:
        yield "staircase", LatticeStaircase.private(eps, 2.5), 0.25
        yield "staircase with atom", LatticeStaircase.private(eps, delta=0.1), 1e3
        yield "truncated staircase", LatticeStaircase.truncated(eps, 0.01), -3.0
    for name, delta, discrete in (
        ("additive", 0.0, False),
        ("additive delta", 0.1, False),
        ("additive integers", 0.1, True),
    ):
        if delta or eps >= 0.01:
            yield name, optdp.solve_additive(eps, delta, rtol=0.1, time_limit=5.0, discrete=discrete).mechanism, 7.0


def p_value(counts, chances):
    """Of Pearson's statistic, with small classes merged; 0 where something came that cannot come."""
    from scipy.stats import chi2

    counts, chances = np.asarray(counts, dtype=float), np.asarray(chances, dtype=float)
    assert abs(chances.sum() - 1) < 1e-6, f"the chances add up to {chances.sum()}"
    if counts[chances <= 0].any():
        return 0.0
    order = np.argsort(chances)
    wanted, seen = (chances[order] * counts.sum()).tolist(), counts[order].tolist()
    while len(wanted) > 1 and wanted[0] < EXPECTED:  # the smallest go together
        small, some = wanted.pop(0), seen.pop(0)
        wanted[0], seen[0] = wanted[0] + small, seen[0] + some
    if len(wanted) < 2:
        return 1.0
    statistic = sum((a - b) ** 2 / b for a, b in zip(seen, wanted, strict=True))
    return float(chi2.sf(statistic, len(wanted) - 1))


def of_lattice(mechanism, x, y):
    """A piecewise mechanism's outputs by their place on the lattice, in exact integers."""
    inputs, lattice = mechanism.on_lattice(np.array([x]))
    first, n, count = (
        int(mechanism._first(lattice.index(inputs), lattice)[0]),
        mechanism._numbers(lattice),
        lattice.count,
    )
    window = {(first + n * k // 6) % count for k in range(7)}
    cuts = sorted({0, count, *window, *(count * k // 8 for k in range(9))})
    mass = float(mechanism.exact_floor_mass)
    chances, wrapped = [], isinstance(mechanism.domain, optdp.Circle)
    for a, b in itertools.pairwise(cuts):
        over = sum(max(min(b, first + n + k) - max(a, first + k), 0) for k in ((-count, 0, count) if wrapped else (0,)))
        chances.append(mass * ((b - a) / count) + (1 - mass) * (over / n))
    if np.asarray(y).dtype.kind == "i":
        index = np.asarray(y) // int(lattice.step) - lattice.first
    else:
        index = np.rint(np.asarray(y) / float(lattice.step)).astype(np.int64) - lattice.first
    where = np.searchsorted(np.array(cuts), index, side="right") - 1
    return np.bincount(where, minlength=len(chances)), chances


def of_density(mechanism, x, y):
    """A density's outputs in bins between its steps, and its atoms; None where floats are too coarse for bins."""
    low, high = mechanism.support(x)
    if low == high:  # one output for all
        return [(y == low).sum(), (y != low).sum()], [1.0, 0.0]
    if isinstance(mechanism, KernelMechanism):
        inner = np.concatenate([*mechanism._ends, *(np.atleast_1d(v) for v in mechanism.favoured(np.array(x)))])
    else:
        middle, half = float(mechanism._centre(np.array(x))), mechanism._halfwidth
        inner = middle + half * np.linspace(-1, 1, 7)
    edges = np.unique(np.clip(np.concatenate([inner, low + (high - low) * np.linspace(0, 1, 9)]), low, high))
    if np.diff(edges).min() < FINE * np.spacing(max(abs(low), abs(high))):
        gap = np.append(True, np.diff(edges) >= FINE * np.spacing(max(abs(low), abs(high))))
        if gap.sum() < 3 or isinstance(mechanism, CompositeMechanism):
            return None
        edges = edges[gap]
    atoms = mechanism.atoms()
    points = edges[:-1, None] + np.diff(edges)[:, None] * ((np.arange(400) + 0.5) / 400)
    chances = mechanism.density(points, x).mean(axis=1) * np.diff(edges)
    chances = np.append(chances, [float(mechanism.probability(a, x)) for a in atoms])
    stuck = np.isin(y, atoms)
    inside = np.clip(np.searchsorted(edges, y[~stuck], side="right") - 1, 0, edges.size - 2)
    return np.append(np.bincount(inside, minlength=edges.size - 1), [(y == a).sum() for a in atoms]), chances


def of_noise(mechanism, x, y):
    """Noise in bins between its quantiles, and what stays at 0."""
    noise = y - x
    if mechanism.discrete:
        edges = np.unique(mechanism.quantile(np.linspace(0.02, 0.98, 25))) + 0.5
    else:  # beside 0 there may be an atom, and sums are rounded there
        edges = np.unique(mechanism.quantile(np.linspace(0.02, 0.98, 25)))
        fine = 64 * np.spacing(abs(x) + np.abs(edges).max())
        edges = edges[np.abs(edges) > fine]
        edges = (
            np.unique(np.concatenate([edges, [-2 * fine, 2 * fine]]))
            if fine < np.abs(edges).min(initial=np.inf) / 4
            else edges
        )
    chances = np.diff(np.concatenate([[0.0], mechanism.cdf(edges), [1.0]]))
    return np.bincount(np.searchsorted(edges, noise, side="left"), minlength=edges.size + 1), chances


def of_symbols(mechanism, x, y):
    """Each output by itself."""
    seen = Counter(map(tuple, y.reshape(y.shape[0], -1).tolist())) if y.ndim > 1 else Counter(y.tolist())
    outputs = mechanism.outputs if hasattr(mechanism, "outputs") else mechanism.atoms()
    outputs = [tuple(v) if np.ndim(v) else v for v in outputs]
    chances = [float(mechanism.probability(v, x)) for v in outputs]
    return [seen.pop(v, 0) for v in outputs] + [sum(seen.values())], [*chances, 0.0]


def classes(mechanism, x, y):
    """(counts, chances) or None."""
    if isinstance(mechanism, PiecewiseMechanism):
        return of_lattice(mechanism, x, y)
    if isinstance(mechanism, CompositeMechanism | KernelMechanism):
        return of_density(mechanism, x, np.asarray(y, dtype=float))
    if isinstance(mechanism, SubsetOracle):
        q = mechanism.universe
        pairs = isinstance(mechanism, AffineOracle)
        every = itertools.product(range(1, q), range(q)) if pairs else itertools.combinations(range(q), mechanism.size)
        sets, seen = np.array(list(every)), Counter(map(tuple, (y if pairs else np.sort(y, axis=1)).tolist()))
        return [seen[tuple(row)] for row in sets.tolist()], mechanism.probability(sets, x)
    return of_noise(mechanism, x, y) if mechanism.adds_noise else of_symbols(mechanism, x, y)


def cells():
    """(name, eps, domain, mechanism, input) of the whole run."""
    for eps in EPS:
        for domain, ends in DOMAINS.items():
            low, high = ends
            inputs = (
                [low, high, low + (high - low) // 3]
                if domain == "nanoseconds"
                else [low, high, low / 2 + high / 2 + 0.1 * (high / 2 - low / 2)]
            )
            for name, mechanism in intervals(eps, tuple(map(float, ends))):
                for x in inputs:
                    yield name, eps, domain, mechanism, x
        for name, mechanism, x in everywhere(eps):
            yield name, eps, str(mechanism.domain)[:30], mechanism, x


def tested(mechanism, x, count, rng):
    """The p-value of a cell; None where only finiteness and the support were looked at; -1 where these are broken."""
    batch = np.full(count, x, dtype=np.int64 if isinstance(x, int) else None)
    try:
        y = np.asarray(mechanism.randomize(batch, rng))
    except ValueError as refused:  # answers that 64-bit integers cannot hold
        assert "beyond 64-bit integers" in str(refused) and isinstance(x, int)
        return None
    if isinstance(mechanism.domain, optdp.Interval | optdp.Circle):
        low, high = mechanism.support(x) if isinstance(mechanism.domain, optdp.Interval) else (0.0, 2.0)
        if not np.isfinite(y.astype(float)).all() or (y.astype(float) < low).any() or (y.astype(float) > high).any():
            return -1.0
    made = classes(mechanism, x, y)
    return None if made is None else p_value(*made)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=200_000)
    parser.add_argument("--every", type=int, default=1, help="one cell in how many")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    print(summary(args.count, args.every, args.seed)[1])
    return 0 if summary.sound else 1


def summary(count, every=1, seed=0):
    """(whether everything is sound, what to print)."""
    rng, began = np.random.default_rng(seed), time.process_time()
    values, looked, broken = {}, 0, []
    for k, (name, eps, domain, mechanism, x) in enumerate(cells()):
        if k % every != seed % every:
            continue
        label = f"{name}, eps = {eps:g}, {domain}, x = {x!r}"
        try:
            p = tested(mechanism, x, count, rng)
        except Exception as error:
            raise AssertionError(label) from error
        if p is None:
            looked += 1
        elif p < 0:
            broken.append(label)
        else:
            values[label] = p
    level = LEVEL / max(len(values), 1)
    low = {label: p for label, p in values.items() if p < level}
    least = min(values, key=values.get, default="")
    summary.sound = not low and not broken
    told = (
        f"{len(values)} cells tested with {count} outputs each (familywise level {LEVEL:g}, least p-value "
        f"{values.get(least, 1):.3g}: {least}), {looked} where floats or integers are too coarse "
        f"looked at for range alone; "
        f"rejected: {len(low)}; out of range or not finite: {len(broken)} ({time.process_time() - began:.0f} s of CPU)"
    )
    return summary.sound, "\n".join(
        [told, *(f"REJECTED {v:.3g} {k}" for k, v in low.items()), *(f"BROKEN {v}" for v in broken)]
    )


if __name__ == "__main__":
    raise SystemExit(main())

"""The dual program: a prior and thresholds, given the windows of a good floor.

For favoured outputs that are fixed for each input, g (see `optdp.certificates.kernel`) is linear in the prior: hats and atoms
over the inputs, and rows g(y) >= 0 at outputs that are added where g is negative. Windows a little narrower and wider stand
beside the floor's own (as further layers), and where the floor has a gap, so that an end of the window may lie anywhere in
it, several places of it do (as atoms). A ray is an atom whose window has one end at infinity. A last common shrinking of all
windows lifts g above 0 between the rows.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import numpy as np

from optdp.certificates.kernel import KernelCertificate
from optdp.design.kernel.floor import GAUSS, Cost, Floor, hat_masses, hats
from optdp.design.kernel.master import Cuts, at_least, minima, usual
from optdp.design.kernel.task import Fold, Task, between, grid
from optdp.solvers.dense import Dense
from optdp.solvers.lp import LinearProgram, LinearStatus

log = logging.getLogger("optdp")

#: Widths of windows, as shares of the floor's own.
LAYERS = (1.0, 0.97, 1.03)
#: Rounds of rows, and how far below 0 g may be at the outputs looked at.
ROUNDS, CLOSE = 40, 1e-12
#: Rows that are looked at first for each column, where g was least; where that is not known every so many.
FIRST, SPARSE = 3, 4
#: Atoms of less than this share of the largest unknown are what interior points leave of none.
LEFT = 1e-8
#: The tolerance of programs that are but to tell which windows are good.
ROUGH = 1e-5
#: Columns are scaled to size 1, but for those that are smaller by this factor than the largest one.
FAINT = 1e-13
#: Ends of windows that move by less than this share of the middle stand still in proofs, which integrate over inputs between such
#: ends: powers of slopes as large as these lose all digits.
STILL = 2.0**-16
#: Sets of outputs that are looked at, each finer where g was negative.
LOOKS = 8
#: How many jumps have windows that end just before and just beyond them; by which share of its distance.
BESIDE, JUST = 4, 2.0**-26


@dataclass(frozen=True)
class Dual:
    """A prior in floats, by the unknowns of a program, that promises `value`.

    `g`: at the `outputs`; `shrink`: the share by which thresholds must fall for g >= 0 everywhere.
    """

    program: PriorProgram
    columns: np.ndarray
    value: float
    outputs: np.ndarray
    g: np.ndarray
    shrink: float = 0.0

    @cached_property
    def loss(self) -> float:
        """What it promises less for each share by which thresholds fall."""
        return float(self.program.gains(shrinking=True) @ self.columns)

    @property
    def worth(self) -> float:
        """What is proven, or a little less."""
        return self.value - 2 * self.shrink * self.loss if self.shrink < 0.5 else -np.inf

    @property
    def densities(self) -> list[np.ndarray]:
        """Of each layer, at the nodes of the mesh."""
        n, fold = self.program.fold.count, self.program.fold
        return [fold.full(self.columns[i * n : (i + 1) * n]) for i in range(len(self.program.layers))]

    @property
    def weights(self) -> np.ndarray:
        """Of the atoms."""
        return self.columns[self.program.fold.count * len(self.program.layers) :]


class PriorProgram:
    """The program for a task, a mesh of inputs, layers of windows on it, and atoms."""

    def __init__(self, task: Task, mesh: np.ndarray, layers: list[tuple[np.ndarray, np.ndarray]], atoms: Cuts) -> None:
        self.task, self.mesh, self.layers, self.atoms = task, mesh, layers, atoms
        self.fold = Fold(mesh.size, task.symmetric)
        self.more = len(_levels(task))  # of the layers, that are not near the floor's windows

    def _terms(self, low: np.ndarray, high: np.ndarray, nu: bool) -> tuple[np.ndarray, ...]:
        """Integrals of hats in the part of g that does not depend on which outputs are favoured.

        For the square those of 1, a + b and a b; else that of -nu, which the loss's own integral is added to; with `nu` that of
        what r rises by.
        """
        task, cost, x = self.task, self.task.cost, self.mesh

        def integrand(k: Any, t: np.ndarray) -> np.ndarray:
            a, b = np.interp(t, x, low), np.interp(t, x, high)
            if nu:
                value = self._size(t, a, b)
            elif cost.square:
                value = np.where(k == 0, 1.0, np.where(k == 1, a + b, a * b))
            else:
                value = -cost.nu(t, a, b)
            return value * task.density(t) + 0.0 * k

        return tuple(hats(np.zeros(3 if cost.square and not nu else 1), x, integrand, ()))

    def _near(self, outputs: np.ndarray, low: np.ndarray, high: np.ndarray, nu: bool = False) -> Any:
        """(start, end, integrand, knots): the inputs that favour each output, and what to integrate over them."""
        task, cost, x = self.task, self.task.cost, self.mesh

        def excess(k: Any, t: np.ndarray) -> np.ndarray:
            a, b = np.interp(t, x, low), np.interp(t, x, high)
            value = self._size(t, a, b) if nu else cost.excess(t, outputs[k], a, b)
            return value * task.density(t)

        start = np.interp(outputs, high, x, left=x[0], right=x[-1])
        end = np.interp(outputs, low, x, left=x[0], right=x[-1])
        return start, np.maximum(start, end), excess, () if nu else self.knots

    @property
    def knots(self) -> tuple[float, ...]:
        """Those of the loss, seen from an output."""
        return tuple(-k for k in self.task.cost.cuts)

    def table(self, outputs: np.ndarray, *, nu: bool = False) -> np.ndarray:
        """(outputs, columns): the coefficients of the prior in g; with `nu` those in g's growth when all thresholds shrink."""
        task, cost, x, parts = self.task, self.task.cost, self.mesh, []
        far = np.zeros(1)
        if not cost.square and not nu:

            def loss(k: Any, t: np.ndarray) -> np.ndarray:
                return cost.of(outputs[k] - t) * task.density(t)

            far = hats(outputs, x, loss, self.knots)
        for low, high in self.layers:
            terms = self._terms(low, high, nu)
            if len(terms) > 1:
                whole = np.outer(outputs**2, terms[0]) - np.outer(outputs, terms[1]) + terms[2]
            else:
                whole = far + terms[0]
            start, end, excess, knots = self._near(outputs, low, high, nu)
            parts.append(self.fold.rows(whole + task.growth * hats(outputs, x, excess, knots, start, end)))
        return np.hstack([*parts, sum(self._atom_rows(outputs, self.atoms, nu))])

    def values(self, outputs: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """g at the outputs."""
        task, cost, mesh, n = self.task, self.task.cost, self.mesh, self.fold.count
        if task.has_density:
            return np.asarray(self.table(outputs) @ columns)
        weights = columns[n * len(self.layers) :]
        on = np.flatnonzero(weights)
        out: Any = sum(rows @ weights[on] for rows in self._atom_rows(outputs, self.atoms.take(on)))
        for i, (low, high) in enumerate(self.layers):
            prior = Floor.of_hats(mesh, self.fold.full(columns[i * n : (i + 1) * n]), np.zeros(mesh.size))
            if not prior.total:
                continue
            heights = np.append(prior.left, prior.right[-1:])
            terms = [float(t @ heights) for t in self._terms(low, high, False)]
            if len(terms) > 1:
                out += outputs * (outputs * terms[0] - terms[1]) + terms[2]
            else:
                out += prior.far(outputs, cost, mirrored=True) + terms[0]
            out += task.growth * prior.within(outputs, *self._near(outputs, low, high))
        return np.asarray(out)

    def _size(self, x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """What r rises by, per share by which a window's threshold shrinks."""
        size = np.minimum(((b - a) / 2) ** 2, 1.0) if self.task.cost.square else self.task.cost.nu(x, a, b)
        return np.where(np.isinf(b - a), 0.0, size + 0 * x)  # rays stay as they are

    def _atom_rows(self, outputs: np.ndarray, atoms: Cuts, nu: bool = False) -> Iterator[np.ndarray]:
        """The atoms' coefficients, and those of their mirror images."""
        for c in (atoms, Cuts(1 - atoms.x, 1 - atoms.b, 1 - atoms.a))[: 1 + self.task.symmetric]:
            r = _excess(self.task.cost, c.x, outputs[:, None], c.a, c.b)
            if nu:
                yield self._size(c.x, c.a, c.b) * np.where(r < 0, 1 + self.task.growth, 1.0)
            else:
                yield r + self.task.growth * np.minimum(r, 0.0)

    def gains(self, *, shrinking: bool = False) -> np.ndarray:
        """int nu of each column; `shrinking`: what it loses for each share by which its thresholds fall."""
        task, x, c, steps, parts = self.task, self.mesh, self.atoms, np.diff(self.mesh), []
        threshold = self._size if shrinking else task.cost.nu
        for low, high in self.layers:
            out = np.zeros(x.size)
            for g, w in GAUSS:
                t, a, b = (v[:-1] * (1 - g) + v[1:] * g for v in (x, low, high))
                value = threshold(t, a, b) * steps * w * task.density(t)
                out[:-1] += value * (1 - g)
                out[1:] += value * g
            parts.append(self.fold.rows(out[None])[0])
        nu = -_excess(task.cost, c.x, c.x, c.a, c.b) if task.cost.tilted and not shrinking else threshold(c.x, c.a, c.b)
        return np.concatenate([*parts, nu * (2.0 if task.symmetric else 1.0)])

    def limits(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows (table, lower, upper) of the prior's mass: 1 in all, or what the problem's prior gives each input."""
        n, k, count = self.fold.count, len(self.layers), self.atoms.x.size
        if self.task.has_density:
            table = np.hstack([*(np.eye(n) for _ in range(k)), np.zeros((n, count))])
            return table, np.full(n, float(self.task.in_steps) * (1 - 1e-12)), np.full(n, 1 - 1e-12)
        if self.task.prior is not None:
            points, chances = self.task.prior
            own = (self.atoms.x == points[:, None]) & np.isfinite(self.atoms.b - self.atoms.a)
            table = np.hstack([np.zeros((points.size, n * k)), own.astype(float)])
            return table, np.zeros(points.size), chances * (1 - 1e-12)
        mass = self.fold.rows(hat_masses(self.mesh)[None])[0]
        atoms = np.where(np.isinf(self.atoms.b - self.atoms.a), 0.0, 2.0 if self.task.symmetric else 1.0)
        return np.concatenate([np.tile(mass, k), atoms])[None], np.ones(1), np.ones(1)

    def solve(
        self,
        outputs: np.ndarray,
        before: Dual | None,
        *,
        close: float = np.inf,
        worth: float = 0.0,
        sought: float = np.inf,
        rough: bool = False,
        lacking: bool = False,
    ) -> Dual | None:
        """The best prior with g >= 0 at `outputs`.

        **Arguments:** `before`: one for windows much like these; `close`: priors of at least the value `worth` are to need no
        more shrinking: outputs are added where g is least, until what is proven is `sought`; `rough`: interior points may end
        early.

        **Returns** None if there is none.
        """
        small, gains = min(self.task.scale, 1.0), self.gains()
        table = self.table(outputs) * small
        head, low, high = self.limits()
        # Columns of size 1: solvers drop entries that are small, and hats of narrow cells are; not where hardly any density is.
        size = np.abs(table).max(axis=0)
        size = 1 / np.maximum(size, FAINT * size.max())
        # Windows that are all too wide have no prior: g may then lack something, at the price of floors of mass 1, the largest.
        width = int(lacking)
        program = LinearProgram(
            np.append(gains * size, [-1 / small] * width) * self.task.scale, np.pad(head * size, ((0, 0), (0, width))),
            low, high, maximise=True, name="optdp-kernel-prior",
        )  # fmt: skip
        solver, left = usual(self.task), self.task.left
        if rough and isinstance(solver, Dense):
            solver = replace(solver, tolerance=ROUGH)
        session = solver.session(program)
        on = np.zeros(outputs.size, dtype=bool)
        whole = isinstance(session.solver, Dense)  # which takes all rows at once
        new = np.arange(0, outputs.size, 1 if whole else SPARSE)
        if before is not None and not whole:
            order = np.argsort(np.interp(outputs, before.outputs, before.g), kind="stable")
            new = np.sort(order[: FIRST * gains.size])
        if np.isinf(self.atoms.a).any():  # rays are unbounded without rows at both ends
            new = np.union1d(new, [0, outputs.size - 1])
        best: Dual | None = None
        rounds = looks = 0
        while True:
            on[new] = True
            at_least(session, np.hstack([table[new] * size, np.ones((new.size, width))]), np.zeros(new.size))
            result = session.solve(time_limit=left())
            if result.status is not LinearStatus.OPTIMAL:
                result = session.solve(time_limit=left(), method="ipm")
            if not result.usable:
                if lacking or best is not None or not left():
                    return best
                return self.solve(outputs, before, close=close, worth=worth, sought=sought, lacking=True)
            rounds += 1
            x, lack = np.maximum(result.x[: size.size], 0.0), float(result.x[size.size :].sum())
            if whole:
                atoms = x[self.fold.count * len(self.layers) :]
                atoms[atoms < LEFT * x.max(initial=0.0)] = 0.0
            x = x * size
            if self.task.prior is not None:  # solvers give a point more than its chance, by their tolerance
                x *= 1 - head.T @ np.maximum(1 - high / np.maximum(head @ x, 1e-300), 0.0)
            g = table @ x + lack
            new = np.flatnonzero((g < -CLOSE) & ~on & minima(g, 2))
            if new.size and rounds < ROUNDS:
                if not left():
                    return best
                continue
            dual = Dual(self, x, float(gains @ x), outputs, table @ x)
            lowest = self.lowest(dual)
            dual = replace(dual, shrink=self.lifted(x, lowest))
            log.debug("value %.9g shrink %.2g, %d rows %d columns", dual.value, dual.shrink, *table.shape)
            if best is None or dual.worth > best.worth:
                best = dual
            looks += 1
            g = self.values(lowest, x)
            more = np.setdiff1d(lowest[(g < 0) & minima(g, 2)] if whole else lowest[g < 0], outputs)
            near = dual.shrink <= close and (rough or dual.worth >= worth)
            enough = near or lack > CLOSE or dual.value < worth
            enough = enough or dual.value - 4 * dual.shrink * dual.loss >= sought  # proofs shrink by a little more
            # Of points roundings are left, and more with each look.
            enough = enough or (self.task.places.size > 0 and more.size > outputs.size)
            if enough or looks == LOOKS or not more.size or not left():
                return best
            rounds, known = 0, outputs.size
            outputs, first = np.unique(np.append(outputs, more), return_index=True)
            table = np.vstack([table, self.table(more) * small])[first]
            on = np.append(on, np.zeros(more.size, dtype=bool))[first]
            new = np.flatnonzero(first >= known)

    def lowest(self, dual: Dual) -> np.ndarray:
        """Outputs at which g may be least: it bends where a window in use ends."""
        outputs = dual.outputs
        ends = [end for layer, d in zip(self.layers, dual.densities, strict=True) if d.any() for end in layer]
        used = self.atoms.take(np.flatnonzero(dual.weights))
        ends += [used.a, used.b, *(used.x + knot for knot in self.task.cost.knots)]
        bends = np.concatenate([outputs, *ends, *((1 - end for end in ends) if self.task.symmetric else ())])
        fine = between(np.unique(bends[(bends >= outputs[0]) & (bends <= outputs[-1])]), 2)
        return dips(fine, self.values(fine, dual.columns), everywhere=self.task.places.size > 0)

    def mixed(self, dual: Dual) -> PriorProgram:
        """With the mean window at each node, no worse than the mixture (g is concave in thresholds), and the atoms in use."""
        count = len(self.layers) - self.more
        if not count:
            return self
        weights = np.array(dual.densities[:count]) + 1e-300
        low, high = (weights[:, None] * self.layers[:count]).sum(axis=0) / weights.sum(axis=0)
        layers = _layers(self.task, self.mesh, low, high, (1.0,)) + self.layers[count:]
        return PriorProgram(self.task, self.mesh, layers, self.atoms.take(np.flatnonzero(dual.weights)))

    def lifted(self, x: np.ndarray, outputs: np.ndarray) -> float:
        """The share by which thresholds must shrink for g >= 0 at the outputs, with these columns."""
        g = self.values(outputs, x)
        outputs, g = outputs[g < 0], g[g < 0]
        if self.task.in_steps:
            n = self.fold.count
            rate = self.table(outputs)[:, -n:] @ x.reshape(-1, n).sum(axis=0) - g
        else:
            rate = self.table(outputs, nu=True) @ x
        with np.errstate(over="ignore"):
            return float(np.max(-g / np.maximum(rate, 1e-300), initial=0.0))


def _excess(cost: Cost, x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """r(x, y) of atoms: -nu(x) at y = x, for squares. One end at infinity means a ray, whose weight is its slope."""
    if not cost.tilted:
        return cost.excess(x, y, a, b)
    return np.where(np.isinf(a), 1.0, y - a) * np.where(np.isinf(b), -1.0, y - b)


def layers_of(floor: Floor, mesh: np.ndarray, task: Task) -> tuple[list[tuple[np.ndarray, np.ndarray]], Cuts]:
    """Windows at the nodes of a mesh: the floor's own, narrower and wider ones; where they are not unique, atoms with others."""
    cost, growth = task.cost, task.growth
    low, high = floor.ends(mesh, cost, growth)
    if task.symmetric:  # exactly: x -> 1 - x swaps the ends
        k = mesh.size // 2
        low[-k:], high[-k:] = 1 - high[:k][::-1], 1 - low[:k][::-1]
        if mesh.size % 2:
            low[k], high[k] = (low[k] + 1 - high[k]) / 2, (high[k] + 1 - low[k]) / 2
    layers = [] if task.in_steps else _layers(task, mesh, low, high, LAYERS)
    for level in _levels(task):
        layers.append((mesh + cost.slopes[0] * level, mesh + cost.slopes[1] * level))
    inputs = mesh[mesh <= task.half]
    width = floor.window(growth)
    near = 2e-3 * min(width, floor.total)
    starts = floor.starts(inputs, cost, growth)
    far = floor.y[-1] - floor.y[0]
    found: list[tuple[float, float, float]] = []
    for x, start in zip(inputs.tolist(), starts.tolist(), strict=True):
        options = []
        for mass in (start, start + width):
            p, q = (float(v) for v in floor.quantile(np.array([mass - near, mass + near])))
            if mass - near <= 0:
                options.append([q - f * far for f in (0.25, 1.0, 10.0, 1000.0)] + [q] if cost.tilted else [p, q])
            elif mass + near >= floor.total:
                options.append([p] + [p + f * far for f in (0.25, 1.0, 10.0, 1000.0)] if cost.tilted else [p, q])
            elif q - p > 1e-2 * task.width:
                options.append(list(np.linspace(p, q, 7 if q - p > 0.2 * task.width else 3)))
            else:
                options.append([(p + q) / 2])
        if cost.tilted:
            if len(options[0]) * len(options[1]) > 1:
                found += [(x, a, b) for a, b in product(*options)]
            continue
        # Windows of one family: the reach lies between the least and the largest.
        (a, b) = cost.slopes
        least = max(max((options[0][-1] - x) / a, 0.0), 0.0), max((options[1][0] - x) / b, 0.0)
        most = max((options[0][0] - x) / a, 0.0), max((options[1][-1] - x) / b, 0.0)
        t0, t1 = max(least), min(most)
        if t1 - t0 > 1e-3 * task.width:
            found += [(x, x + a * t, x + b * t) for t in np.linspace(t0, t1, 7)]
    if cost.tilted and (task.prior is not None or task.problem.outputs is not None):
        # Rays: the windows of the ends of the domain, whatever their weights.
        for x, mass in ((0.0, width), (1.0, floor.total - width))[: 2 - task.symmetric]:
            p, q = floor.quantile(np.array([mass - near, mass + near])).tolist()
            found += [(x, b if x else -np.inf, np.inf if x else b) for b in np.linspace(p, q, 7).tolist()]
    table = np.array(found).reshape(-1, 3)
    return layers, Cuts(table[:, 0], table[:, 1], table[:, 2])


def _shrunk(reach: np.ndarray, share: float) -> np.ndarray:
    """Narrower by this share, but windows wider than the domain by no more of their thresholds than one like it."""
    return np.asarray(reach * (1 - share / np.maximum(reach, 1.0) ** 2))


def _levels(task: Task) -> list[float]:
    """Reaches between two jumps of the loss in steps, which all mean the same threshold; under a density none, too, in the end.
    Of another loss those just before and beyond each jump: a threshold in between is a mixture of both.
    """
    if not task.cost.flat:
        return [jump * (1 + side) / task.cost.slopes[1] for jump in task.cost.jumps[:BESIDE] for side in (-JUST, JUST)]
    found = [min((a + b) / 2, 1.5 * a) / task.cost.slopes[1] for a, b in pairwise([*task.cost.jumps, 1.5][:6])]
    return [*found[:4], 0.0] if task.in_steps else found


def _layers(
    task: Task, mesh: np.ndarray, low: np.ndarray, high: np.ndarray, shares: tuple[float, ...]
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Windows with these shares of the given ones' widths."""
    middle, slopes = (grid((low + high) / 2), (-1.0, 1.0)) if task.cost.tilted else (mesh, task.cost.slopes)
    reaches = [steady(mesh, f * (high - middle) / slopes[1], middle, slopes, even=task.symmetric) for f in shares]
    return [(middle + slopes[0] * t, middle + slopes[1] * t) for t in reaches]


def certificate(dual: Dual, shrink: float) -> KernelCertificate:
    """The dual with all windows narrower by this share, rounded to floats that the certificate can be checked with.

    Of losses that jump, under a density: with this share of all of them narrowed to nothing, the last layer.
    """
    program, task, cost, densities = dual.program, dual.program.task, dual.program.task.cost, dual.densities
    mesh, atoms, weights, layers = program.mesh, program.atoms, dual.weights, program.layers
    if task.jumps:
        densities = [*((1 - shrink) * d for d in densities), shrink * sum(densities, np.zeros(mesh.size))]
        layers, shrink = [*layers, (mesh, mesh)], 0.0
    slope = cost.slopes[1]
    jumps = np.array([] if cost.flat or task.prior is not None else cost.jumps[:BESIDE]) / slope
    for k, jump in zip(range(len(layers) - 2 * jumps.size, len(layers), 2), jumps, strict=True):
        # Between the two layers beside a jump thresholds fall by a mixture.
        below, beyond = cost.of(slope * jump * np.array([1 - JUST, 1 + JUST]))
        moved = min(shrink * beyond / (beyond - below), 1.0) * densities[k + 1]
        densities[k : k + 2] = densities[k] + moved, densities[k + 1] - moved

    def narrower(new: np.ndarray, reach: np.ndarray) -> np.ndarray:
        """But not across jumps."""
        for least in jumps * (1 + JUST / 2):
            new = np.where(reach > least, np.maximum(new, least), new)
        return new

    keep = [k for k, d in enumerate(densities) if d.max(initial=0.0) > 0]
    reaches, centres = [], []
    for k in keep:
        low, high = layers[k]
        if cost.tilted:
            centre = np.maximum.accumulate((low + high) / 2)  # but for roundings it increases
            centre = grid((centre + 1 - centre[::-1]) / 2 if task.symmetric else centre)
            reach = _shrunk((high - low) / 2, shrink)
            unit = 2.0 ** (np.ceil(np.log2(max(float(np.abs([centre, reach]).max()), 1.0))) - 52)  # sums are exact
            centre, reach = (np.round(v / unit) * unit for v in (centre, reach))
            reaches.append(steady(mesh, reach, centre, (-1.0, 1.0), even=task.symmetric, slack=0.0, still=STILL))
            centres.append(tuple(centre.tolist()))
        else:
            reach = (high - mesh) / slope
            reach = narrower(reach * (1 - shrink), reach)
            reaches.append(steady(mesh, reach, mesh, cost.slopes, even=task.symmetric))
    far, rays = np.isinf(atoms.b - atoms.a), []
    for sign, bends in ((-1.0, atoms.b), (1.0, atoms.a)):  # the sum of those at one end is one that is no worse
        slopes = weights * (far & np.isfinite(bends))
        if slopes.any():
            rays.append((sign * float(slopes.sum()), float(slopes @ np.where(slopes > 0, bends, 0.0) / slopes.sum())))
            rays += [(-slope, 1 - bend) for slope, bend in rays if task.symmetric]
    use = np.flatnonzero((weights > 0) & ~far)
    atoms, weights = atoms.take(use), weights[use]
    x, far = grid(atoms.x) if task.symmetric else atoms.x, np.round((atoms.a + atoms.b) * 2.0**39) / 2.0**40
    reach = np.maximum((atoms.b - atoms.a) / 2 if cost.tilted else (atoms.b - x) / slope, 0.0)
    reach = narrower(_shrunk(reach, shrink), reach)
    if task.symmetric:
        x, far, weights, reach = np.append(x, 1 - x), np.append(far, 1 - far), np.tile(weights, 2), np.tile(reach, 2)
    far = far if cost.tilted else np.empty(0)
    return KernelCertificate(
        tuple(mesh.tolist()) if keep else (), tuple(tuple(densities[k].tolist()) for k in keep),
        tuple(tuple(r.tolist()) for r in reaches), tuple(centres),
        tuple(x.tolist()), tuple(weights.tolist()), tuple(reach.tolist()), tuple(far.tolist()), tuple(rays),
    )  # fmt: skip


def dips(points: np.ndarray, g: np.ndarray, *, everywhere: bool = False) -> np.ndarray:
    """Where g, known at the points, may be least: local minima, and vertices of parabolas through them and their neighbours.

    `everywhere`: also other vertices at which g would be negative: where its formula changes no minimum may be seen beside one.
    """
    a, b, c = points[:-2], points[1:-1], points[2:]
    left, right = np.diff(g)[:-1] / (b - a), np.diff(g)[1:] / (c - b)
    bend = np.maximum(right - left, 1e-300)
    with np.errstate(over="ignore"):
        vertices = np.clip((a + b) / 2 - left * (c - a) / (2 * bend), a, c)
    low = use = (g[1:-1] <= g[:-2]) & (g[1:-1] <= g[2:])
    if everywhere:
        use = low | (g[:-2] + (vertices - a) * (left + (vertices - b) * (right - left) / (c - a)) < 0)
    return np.unique(np.concatenate([points[g < 0], points[[0, -1]], b[low], vertices[use]]))


def two_atoms(task: Task) -> KernelCertificate:
    """A fair coin on the ends of the domain: a bound without a program, and nearly the optimum for small eps."""
    cost, safe = task.cost, 1 - 1e-9
    if not cost.tilted:
        y = np.linspace(0.0, 1.0, 513)
        near, far = np.sort([cost.of(y), cost.of(y - 1)], axis=0)
        level = float(np.min(((1 + task.growth) * near + far) / (2 + task.growth))) * safe
        low = float(cost.reaches(np.array(level))[0])
        return KernelCertificate(points=(0.0, 1.0), weights=(0.5, 0.5), point_reaches=(low * safe,) * 2)
    # Favoured outputs between 1/2 + s/f and 1/2 + s f, for f + 1/f = 2 coth(eps/2), and their mirror image: g has a double root.
    half = max((1 + 2 / task.growth) * safe, 1.0)
    f, s = half + np.sqrt(half * half - 1), half / 2
    # Every s will do, and the best one need not be met well: one for which both ends are numbers that floats can tell apart.
    unit = 2.0 ** (np.floor(np.log2(s * half + 1)) - 51)
    near = max(np.round(s / f / unit), 1.0) * unit
    middle = float(np.round(near * f * half / unit) * unit)
    return KernelCertificate(
        points=(0.0, 1.0), weights=(0.5, 0.5), point_reaches=(float(middle - near),) * 2,
        point_centres=(0.5 - middle, 0.5 + middle),
    )  # fmt: skip


def steady(
    mesh: np.ndarray, reach: np.ndarray, middle: np.ndarray, slopes: tuple[float, float], *, even: bool = False,
    slack: float = 2.0**-40, still: float = 0.0,
) -> np.ndarray:  # fmt: skip
    """The reaches, changed by roundings where the ends of windows would decrease in exact arithmetic.

    **Arguments:** `even`: whether x -> 1 - x leaves all as it is; `slack`: by which share of the middle's step both ends move at
    least; one that moves by less than the share `still` moves by no more than that.
    """
    out, count = np.maximum(reach, 0.0), mesh.size
    for i in range(1, (count + 1) // 2 if even else count):
        # middle + slope * reach must not decrease, for both slopes.
        step = (middle[i] - middle[i - 1]) * (1 - slack)
        least, most = out[i - 1] - step / slopes[1], out[i - 1] - step / slopes[0]
        near = still * step
        out[i] = least if out[i] <= least + near else most if out[i] >= most - near else out[i]
    out = np.maximum(out, 0.0)
    return np.concatenate([out[: count // 2], out[: (count + 1) // 2][::-1]]) if even else out

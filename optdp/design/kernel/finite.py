"""Averages over finitely many inputs, means free: finite programs, with outputs added where they have a price.

Of all outputs with one set of inputs that favour them a single number is best: some optimal floor has at most as many atoms as
there are inputs. For outputs at finitely many places the program is that of a finite alphabet (`optdp.solvers.floors`), and its
multipliers are thresholds nu for which g (see `optdp.certificates.kernel`) is >= 0 at these. Where else g is negative an output
is added.

**Jumps.** Where the loss jumps, at a difference b, the place that matters is x + b itself if the loss takes the lesser value
there, and else what is just below it and just above: pairs (p, k) for p + k iota, iota infinitesimal. There losses are exact: in
floats others may touch than in real numbers. And a mechanism has the numbers next to it that can be sent, so that there are two
programs. A threshold that the loss jumps over is a mixture of the two next to it, which gives the same g.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from optdp.certificates.kernel import KernelCertificate
from optdp.design.finite_kernel import plain, plain_program
from optdp.design.kernel.master import FINE, minima
from optdp.design.kernel.prior import dips
from optdp.design.kernel.task import Task, between
from optdp.design.registry import Run
from optdp.exact.lattice import Lattice
from optdp.exact.sweep import Branches, horner
from optdp.mechanisms.kernel import KernelMechanism
from optdp.problem.problem import Problem
from optdp.solvers.floors import solve_floors
from optdp.solvers.lp import Highs, LinearProgram

#: Programs at most; how near (as a share of the tolerance) theirs and the last one's bounds come to the optimum.
LEVELS, CLOSE = 40, 0.05
#: Programs in a row that bring value and bound nearer to each other by less than this share, after which there are no more.
IDLE, LITTLE = 3, 0.01
#: Losses of outputs next to an input are small entries, that scaling makes smaller; for larger eps programs need it.
LARGE, SCALED = 20.0, Highs(tolerance=1e-9, options=(("small_matrix_value", 1e-12),))
#: Even outputs to begin with.
EVEN = 33
#: Outputs are added for the program's thresholds, and for those this share of the way to them from the best ones.
TOWARDS = (1.0, 0.3)
#: Differences this near to a jump are compared with it exactly.
NEAR = 2.0**-40
#: At most so many jumps of inputs are looked at, the largest.
JUMPS = 8192
#: Shares by which thresholds fall until the proof holds: floats err, and powers are proven from pieces below them.
LESS = (1e-12, 1e-9, 1e-6, 1e-5, 1e-4, 1e-3)

#: p + k iota.
Point = tuple[Fraction, int]


def solve(task: Task, run: Run) -> Iterator[tuple[KernelMechanism, np.ndarray, float, Program]]:
    """Mechanisms, and thresholds that prove more and more."""
    sent, proven = Program(task, True), Program(task, False)
    yield from sent.solve(run)
    if proven.jumps or sent.pieces is None or proven.x.size < sent.x.size:
        yield from proven.solve(run)


def build_model(problem: Problem, outputs: tuple[float, ...]) -> LinearProgram:
    """The plain linear program for the last outputs (shares of the domain), in the problem's own units."""
    task = Task(problem)
    program = Program(task, True)
    program.points, program.losses = [], program.losses[:, :0]
    program._add((Fraction(y), 0) for y in outputs)
    return plain_program(program.losses * task.cost.unit, task.eps, program.chances)


class Program:
    """The program of a task; `sent`: whether outputs are numbers that can be sent."""

    def __init__(self, task: Task, sent: bool) -> None:
        law, objective, domain = task.problem.loss, task.problem.objective, task.problem.domain
        prior: Any = objective.prior
        self.task, self.sent = task, sent
        pieces, above = (law.branches(domain.exact_width, below, task.eps) for below in (True, False))
        assert pieces is not None and above is not None
        if sent and task.cost.jumps:  # of a user's loss these are known to be at one of two floats
            pieces = above
        #: The loss in pieces: that of proofs, which lie below it, or None where it is not in pieces itself.
        self.pieces = None if sent and pieces != above else pieces
        #: Differences at which the loss jumps.
        self.jumps: list[Fraction] = []
        if self.pieces is not None:
            pairs = zip(pieces.knots, pairwise(pieces.rows), strict=True)
            jumps = sorted((-abs(horner(p, k) - horner(q, k)), k) for k, (p, q) in pairs)
            self.jumps = [k for size, k in jumps[: JUMPS // len(prior.categories)] if size]
        self.of = task.cost.of if pieces == above or sent else _evaluated(pieces, task.cost.unit)
        inputs = sorted((task.share(x), float(c)) for x, c in zip(prior.categories, prior.exact, strict=True) if c)
        if not sent:  # of inputs that are the same float proofs have one
            apart: dict[float, tuple[Fraction, float]] = {}
            for x, chance in inputs:
                apart[float(x)] = x, min(chance, apart.get(float(x), (x, chance))[1])
            inputs = list(apart.values())
        self.inputs = [x for x, _ in inputs]
        self.x, self.chances = np.array([float(x) for x in self.inputs]), np.array([c for _, c in inputs])
        width, lower = domain.exact_width, Fraction(domain.lower)
        #: The ends of outputs, and what those that can be sent are multiples of.
        self.low, self.high = (lower + width * Fraction(end) for end in task.span)
        self.step = Lattice.between(self.low, self.high).step
        points: set[Point] = {(Fraction(end), 0) for end in task.span}
        for q, b in {(x + b, b) for x in self.inputs for b in self.jumps}:
            if sent:  # what is next to it and within the jump
                exact = (lower + width * q) / self.step
                near = math.floor(exact) if b > 0 else math.ceil(exact)
                near -= (pieces.upper and near == exact) * (1 if b > 0 else -1)
                points.add(((near * self.step - lower) / width, 0))
            else:
                points.update((q, k) for k in ((-1, 1) if pieces.upper else (0,)))
        kinks = np.add.outer(self.x, [0.0, *task.cost.knots] if not self.jumps else [0.0]).ravel()
        even = np.linspace(*task.span, 2 if task.cost.flat else EVEN)
        points.update((Fraction(y), 0) for y in [*kinks.tolist(), *even.tolist()])
        #: What the program found, in floats.
        self.value: float | None = None
        self.points: list[Point] = []
        self.losses = np.empty((self.x.size, 0))
        self._add(points)

    def _add(self, points: Iterable[Point]) -> None:
        """More outputs: those within limits, and that can be sent."""
        width, lower = self.task.problem.domain.exact_width, Fraction(self.task.problem.domain.lower)
        found = {point for point in points if self.low <= lower + width * point[0] <= self.high}
        if self.sent and self.jumps:
            first, last = math.ceil(self.low / self.step), math.floor(self.high / self.step)
            numbers = {min(max(round((lower + width * p) / self.step), first), last) for p, _ in found}
            found = {((k * self.step - lower) / width, 0) for k in numbers}
        new = sorted(found - set(self.points))
        self.losses = np.hstack([self.losses, self._losses(np.array([float(p) for p, _ in new]), new)])
        self.points += new

    @property
    def y(self) -> np.ndarray:
        """The outputs."""
        return np.array([float(p) for p, _ in self.points])

    def _losses(self, y: np.ndarray, points: Sequence[Point] = ()) -> np.ndarray:
        """Of inputs at outputs (`points`: exactly)."""
        cost, pieces, u = self.task.cost, self.pieces, y - self.x[:, None]
        out = self.of(u)
        for jump in self.jumps:
            for i, j in np.argwhere(np.abs(u - float(jump)) < NEAR).tolist():
                assert pieces is not None
                (p, k), (knots, rows) = points[j] if points else (Fraction(y[j]), 0), (pieces.knots, pieces.rows)
                off = p - self.inputs[i]
                row = rows[(bisect_right if k > 0 else bisect_left)(knots, off)] if k else pieces.row(off)
                out[i, j] = float(horner(row, off)) / cost.unit
        return np.asarray(out)

    def solve(self, run: Run) -> Iterator[tuple[KernelMechanism, np.ndarray, float, Program]]:
        """Add outputs until none has a price that matters."""
        best, worth, start, idle = np.zeros(self.x.size), 0.0, None, 0
        chances, eps, close = self.chances / self.chances.sum(), self.task.eps, CLOSE / 2 * run.rtol
        lp = SCALED if eps > LARGE else FINE
        for _ in range(LEVELS):
            if run.solver is not None:
                found = plain(run, self.losses, chances)
            else:
                found = solve_floors(self.losses, eps, chances, tolerance=close, left=run.left, start=start, solver=lp)
            before, self.value = (self.value or np.inf) - worth, found.value * float(self.chances.sum())
            wanted = np.maximum(found.masses / found.weights, 0.0)
            more: set[float] = set()
            for share in TOWARDS:
                nu = best + share * (wanted - best)
                lack, low = self._lowest(nu)
                more.update(low.tolist())
                if (1 - lack) * (self.chances @ nu) > worth:
                    worth, best = (1 - lack) * float(self.chances @ nu), (1 - lack) * nu
            yield self._mechanism(found.floors), best, worth, self
            idle = idle + 1 if self.value - worth > (1 - LITTLE) * before else 0
            if worth >= self.value * (1 - CLOSE * run.rtol) or not more or idle == IDLE or not run.left():
                break
            self._add((Fraction(y), 0) for y in more)
            start = np.append(found.floors, np.zeros(len(self.points) - found.floors.size))

    def _windows(self, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Reaches whose thresholds are just below and above these; (n, 2) arrays of reaches and shares."""
        cost = self.task.cost
        low, high = cost.reaches(nu, self.of)
        # Floats err, and proofs take the lesser threshold at a jump.
        low, high = low * (1 - 2.0**-50), high * (1 + 2.0**-50)
        least, most = (self.of(cost.slopes[1] * t) for t in (low, high))
        share = np.clip((nu - least) / np.maximum(most - least, 1e-300), 0.0, 1.0) * (most - least > NEAR)
        return np.array([low, high]), np.array([1 - share, share])

    def _lowest(self, nu: np.ndarray) -> tuple[float, np.ndarray]:
        """The share by which thresholds must fall for g >= 0, and outputs at which it is less and lowest."""
        cost, y = self.task.cost, self.y
        share, g = self._lack(self.losses, nu)
        if cost.flat:
            return share, np.empty(0)
        reach = self._windows(nu)[0][0]
        ends = np.concatenate([y, self.x + cost.slopes[0] * reach, self.x + cost.slopes[1] * reach])
        y = between(np.unique(np.clip(ends, *self.task.span)), 2)
        y = np.union1d(y, dips(y, self._lack(self._losses(y), nu)[1], everywhere=True))
        more, g = self._lack(self._losses(y), nu)
        low = y[(g < 0) & minima(g)]
        return max(share, more), np.setdiff1d(low, self.y)

    def _lack(self, losses: np.ndarray, nu: np.ndarray) -> tuple[float, np.ndarray]:
        """The same at outputs with these losses, and g there: without any thresholds it is the loss of a constant."""
        r = losses - nu[:, None]
        g = self.chances @ (r + self.task.growth * np.minimum(r, 0.0))
        lack = np.maximum(-g, 0.0)
        return float((lack / np.maximum(self.chances @ losses + lack, 1e-300)).max()), g

    def certificate(self, nu: np.ndarray) -> KernelCertificate:
        """The proof with these thresholds."""
        reaches, shares = self._windows(nu)
        weights = (shares * self.chances * (1 - 1e-12)).ravel()
        use = weights > 0
        points, reach = np.tile(self.x, 2)[use], reaches.ravel()[use]
        return KernelCertificate(
            points=tuple(points.tolist()), weights=tuple(weights[use].tolist()), point_reaches=tuple(reach.tolist())
        )

    def _mechanism(self, floors: np.ndarray) -> KernelMechanism:
        """The floor's."""
        on = np.flatnonzero(floors)
        on = on[np.argsort(self.y[on], kind="stable")]
        y = self.y[on]
        return self.task.mechanism(y, y, floors[on])


def _evaluated(pieces: Branches, unit: float) -> Callable[[np.ndarray], np.ndarray]:
    """The pieces in floats, each around its end that is nearer to 0: elsewhere the terms of short ones cancel."""
    knots, table = np.array(pieces.knots, dtype=float), []
    for a, b, row in zip((Fraction(-1), *pieces.knots), (*pieces.knots, Fraction(1)), pieces.rows, strict=True):
        centre, rest = min(max(a, Fraction(0)), b), list(row)
        for k in range(len(rest)):  # Horner's division, again and again
            for i in range(len(rest) - 2, k - 1, -1):
                rest[i] += centre * rest[i + 1]
        table.append((float(centre), [float(a / Fraction(unit)) for a in reversed(rest)]))

    def of(u: np.ndarray) -> np.ndarray:
        piece, out = np.searchsorted(knots, u, side="right"), np.zeros(np.shape(u))
        for k in np.unique(piece).tolist():
            out[piece == k] = np.polyval(table[k][1], u[piece == k] - table[k][0])
        return out

    return of

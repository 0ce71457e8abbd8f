"""The dual for an average under a density: the prior is given, and only the thresholds are unknown.

The floors that are best on average are often a few atoms, so that most inputs may end their window anywhere in a gap, and which
place proves most is a question in itself. In the reaches t of the inputs of a mesh the bound

    F(t) = int nu(x; t) P(dx) - max_y max(-g(y; t), 0)

(see `optdp.certificates.kernel`; a floor has mass at most 1) is concave in the thresholds nu: a mixture of several reaches at
an input proves no more than their mean threshold. So each step solves a linear program for shares of the reaches t, t + d,
t - d, ..., and goes on from their means, which are at least as good; d shrinks where small steps are taken. Every F is a
bound, however good.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optdp.design.kernel.floor import Floor
from optdp.design.kernel.master import Cuts, sparse, unlimited
from optdp.design.kernel.prior import Dual, PriorProgram, dips
from optdp.design.kernel.task import Task
from optdp.solvers.lp import Highs, LinearProgram, LinearSolver, LinearStatus

#: Programs for one mesh; the changes of reaches in a program, as shares of the largest; and the first of these, in windows.
STEPS, SHARES, RANGE = 12, (1.0, 0.15), 0.5
#: Reaches that are tried first, in those of the best piecewise mechanism.
FIRST = (1.0, 3.0, 10.0)
#: How often thresholds are lifted.
LIFTS = 3
#: Rounds of rows, and how far below 0 (as a share of F) g may be at the outputs looked at.
ROUNDS, CLOSE = 12, 1e-6
#: Constants whose losses are looked at, and reaches between which thresholds are interpolated.
CONSTANTS, LEVELS = 65, 257


def solve(
    task: Task, floor: Floor | None, mesh: np.ndarray, marks: np.ndarray, rtol: float, start: np.ndarray | None,
    solver: LinearSolver | None = None, left: Callable[[], float] = unlimited,
) -> Dual:  # fmt: skip
    """The best thresholds on the mesh: from those of the floor, or (better) from reaches that are known already, on; without a
    floor ones that are good.

    g is looked at between the `marks` and the ends of windows.
    """
    a, b = task.cost.slopes
    starts = [np.full(mesh.size, f * task.width / (b - a)) for f in FIRST]
    if floor is not None:
        starts = [(floor.ends(mesh, task.cost, task.growth)[1] - mesh) / b]
    starts += [] if start is None else [start]

    def point(reaches: np.ndarray) -> _Point:
        made = _Point(task, mesh, _steady(mesh, reaches, a, b), marks)
        for k in range(LIFTS):
            if made.lack <= rtol / 50:
                break
            lifted = _Point(task, mesh, _steady(mesh, made.lifted(newton=k % 2 == 0), a, b), marks)
            made = max(made, lifted, key=lambda p: p.value)
        return made

    best = max((point(t) for t in starts), key=lambda p: p.value)
    change = RANGE * task.width
    for _ in range(STEPS if floor is not None else 0):
        reaches = best.mixed(change, solver, left)
        if reaches is None:
            break
        new = point(reaches)
        moved = float(np.quantile(np.abs(new.reaches - best.reaches), 0.9))
        small = new.value - best.value <= rtol / 20 * abs(best.value)
        if new.value > best.value:
            best = new
        if small and change < 1e-2 * RANGE * task.width:
            break
        change *= 0.5 if moved > SHARES[1] * change and not small else SHARES[1]
    duals = [best.dual()]
    if not task.cost.jumps:
        duals.append(_Point(task, mesh, _steady(mesh, best.lowered(best.lack), a, b), marks).dual())
    return max(duals, key=lambda d: d.worth)


class _Point:
    """Reaches with g and F."""

    def __init__(self, task: Task, mesh: np.ndarray, reaches: np.ndarray, marks: np.ndarray) -> None:
        self.task, self.mesh, self.reaches = task, mesh, reaches
        low, high = task.span
        ends = self._ends(reaches)
        bends = np.unique(np.clip(np.concatenate([marks, mesh, *ends]), low, high))
        bends = bends[np.append(True, np.diff(bends) > 1e-9)]
        self.outputs = np.unique(
            np.concatenate([bends, *(bends[:-1] + np.diff(bends) * f for f in (0.17, 0.33, 0.5, 0.67, 0.83))])
        )
        self.program = program = PriorProgram(task, mesh, [ends], Cuts())
        self.g = program.table(self.outputs) @ np.ones(mesh.size)
        # Programs leave g as low as it can be wherever nobody looks: between these outputs, too.
        more = np.setdiff1d(dips(self.outputs, self.g), self.outputs)
        outputs = np.append(self.outputs, more)
        order = np.argsort(outputs)
        self.outputs, self.g = outputs[order], np.append(self.g, program.table(more) @ np.ones(mesh.size))[order]
        #: By how much thresholds must fall for g >= 0 at each output: without any it is the loss of a constant.
        some = np.linspace(low, high, CONSTANTS)
        losses = PriorProgram(task, mesh, [(mesh, mesh)], Cuts()).table(some) @ np.ones(mesh.size)
        self.lacks = np.maximum(-self.g, 0.0) / (np.interp(self.outputs, some, losses) + np.maximum(-self.g, 0.0))
        self.lack = float(self.lacks.max())
        self.value = float(program.gains().sum()) * (1 - self.lack)

    def _ends(self, reaches: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        a, b = self.task.cost.slopes
        return self.mesh + a * reaches, self.mesh + b * reaches

    def lifted(self, *, newton: bool) -> np.ndarray:
        """The reaches with thresholds that are less by what lacks at outputs that inputs on neighbouring cells favour.

        By as much as if no input favoured the output, or by a step of Newton's, which is less.
        """
        (low, high), t, lacks = self._ends(self.reaches), self.reaches, self.lacks.copy()
        under = np.flatnonzero(lacks if newton and not self.task.cost.jumps else 0 * lacks)
        rates = self.program.table(self.outputs[under], nu=True) @ np.ones(t.size)
        lacks[under] = np.minimum(lacks[under], -self.g[under] / rates)
        first = np.searchsorted(self.outputs, np.append(low[:1], low[:-1]))
        last = np.searchsorted(self.outputs, np.append(high[1:], high[-1:]), side="right")
        lacks = np.array([lacks[i:j].max(initial=0.0) for i, j in zip(first, last, strict=True)])
        return self.lowered(lacks)

    def lowered(self, shares: np.ndarray | float) -> np.ndarray:
        """The reaches with thresholds that are less by these shares."""
        t = self.reaches
        return self._reaching((1 - shares) * self._nu(t), np.linspace(0.0, 1.0, LEVELS)[:, None] ** 2 * t)

    def dual(self) -> Dual:
        """For proofs: narrower windows jump over what is between where the loss jumps."""
        shrink = 0.0 if self.task.cost.jumps else self.lack
        return Dual(self.program, np.ones(self.mesh.size), self.value, self.outputs, self.g, shrink)

    def _nu(self, reaches: np.ndarray) -> np.ndarray:
        return np.asarray(self.task.cost.of(self.task.cost.slopes[1] * reaches))

    def _reaching(self, wanted: np.ndarray, options: np.ndarray) -> np.ndarray:
        """The reaches with these thresholds, between the options of each input."""
        nu = self._nu(options)
        return np.array([np.interp(wanted[i], nu[:, i], options[:, i]) for i in range(wanted.size)])

    def mixed(self, change: float, solver: LinearSolver | None, left: Callable[[], float]) -> np.ndarray | None:
        """The reaches of the mean thresholds of the best shares."""
        n, (a, b) = self.mesh.size, self.task.cost.slopes
        options = np.array(
            [np.maximum(self.reaches + f * change, 0.0) for f in sorted((0.0, *SHARES, *(-f for f in SHARES)))]
        )
        program = PriorProgram(self.task, self.mesh, [self._ends(t) for t in options], Cuts())
        table, count = program.table(self.outputs), options.shape[0]
        eye, steps = np.eye(n), np.diff(self.mesh)
        means = np.hstack([eye * t for t in options])
        zero = np.zeros((2 * n - 1, 1))
        rows = np.hstack([np.vstack([np.hstack([eye] * count), np.diff(means, axis=0)]), zero])
        scale = self.task.scale
        sheet = LinearProgram(
            np.append(program.gains(), -1.0) * scale, rows,
            np.concatenate([np.ones(n), -steps / b]), np.concatenate([np.ones(n), -steps / a]), maximise=True,
            name="optdp-kernel-thresholds",
        )  # fmt: skip
        session = (solver or Highs()).session(sheet)
        padded = np.concatenate([[np.inf], self.g, [np.inf]])
        new = np.flatnonzero((self.g <= padded[:-2]) & (self.g <= padded[2:]))
        on = np.zeros(self.outputs.size, dtype=bool)
        for _ in range(ROUNDS):
            on[new] = True
            cuts = np.hstack([table[new], np.ones((new.size, 1))]) * scale
            session.add_rows(sparse(cuts), np.zeros(new.size), np.full(new.size, np.inf))
            result = session.solve(time_limit=left())
            if not result.usable or result.status is not LinearStatus.OPTIMAL:
                return None
            g = table @ result.x[:-1] + result.x[-1]
            padded = np.concatenate([[np.inf], g, [np.inf]])
            new = np.flatnonzero((g < -CLOSE * self.value) & ~on & (g <= padded[:-2]) & (g <= padded[2:]))
            if not new.size:
                break
            if not left():
                return None
        shares = np.maximum(result.x[:-1].reshape(count, n), 0.0)
        return self._reaching((shares * self._nu(options)).sum(axis=0) / shares.sum(axis=0), options)


def _steady(mesh: np.ndarray, reaches: np.ndarray, a: float, b: float) -> np.ndarray:
    """The reaches, changed so that ends of windows do not decrease."""
    out = np.maximum(reaches, 0.0)
    for i in range(1, mesh.size):
        step = (mesh[i] - mesh[i - 1]) * (1 - 1e-9)
        out[i] = min(max(out[i], out[i - 1] - step / b), out[i - 1] - step / a)
    return np.maximum(out, 0.0)

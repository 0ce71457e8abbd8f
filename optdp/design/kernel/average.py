"""The dual for an average under a density: the prior is given, and only the thresholds are unknown.

The floors that are best on average are often a few atoms, so that most inputs may end their window anywhere in a gap, and which
place proves most is a question in itself. In the reaches t of the inputs of a mesh the bound

    F(t) = int nu(x; t) P(dx) - max_y max(-g(y; t), 0)

(see `optdp.certificates.kernel`; a floor has mass at most 1) is concave in the thresholds nu: a mixture of several reaches at
an input proves no more than their mean threshold. So each step solves a linear program for shares of the reaches t, t + d,
t - d, ..., and goes on from their means, which are at least as good; d shrinks where small steps are taken. Every F is a
bound, however good.

Where the loss jumps, a threshold may lie in the jump, so that only a mixture of two reaches has it: then the best shares are
themselves the proof, and each step starts from the reaches of their mean thresholds.
"""

from __future__ import annotations

import numpy as np

from optdp.certificates.kernel import LAYERS
from optdp.design.kernel.floor import Floor
from optdp.design.kernel.master import Cuts, at_least, minima
from optdp.design.kernel.prior import STILL, Dual, PriorProgram, dips, steady
from optdp.design.kernel.task import Task
from optdp.solvers.lp import Highs, LinearProgram, LinearStatus

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
#: A loss that is 0 in floats.
NOTHING = 1e-290
#: The least reach beyond a jump, as its share.
BEYOND = 2.0**-20
#: The share of the prior that is left out, as sums of shares are rounded.
SPARE = 1e-12
#: What is below a jump in floats, too, as a share.
BELOW = 1 - 2.0**-30


def solve(
    task: Task, floor: Floor | None, mesh: np.ndarray, marks: np.ndarray, rtol: float, start: np.ndarray | None,
    goal: float = np.inf,
) -> tuple[Dual, np.ndarray]:  # fmt: skip
    """The best thresholds on the mesh, and their reaches: from those of the floor, or (better) from reaches that are known
    already, on; without a floor ones that are good.

    g is looked at between the `marks` and the ends of windows. Where the loss jumps, what proves `goal` is good enough.
    """
    a, b = task.cost.slopes
    starts = [np.full(mesh.size, f * task.width / (b - a)) for f in FIRST]
    if floor is not None:
        starts = [(floor.ends(mesh, task.cost, task.growth)[1] - mesh) / b]
    starts += [] if start is None else [start]

    # Constants with their losses.
    some = np.linspace(*task.span, CONSTANTS)
    constants = some, PriorProgram(task, mesh, [(mesh, mesh)], Cuts()).table(some) @ np.ones(mesh.size)

    def at(reaches: np.ndarray, mixture: Mixture | None = None) -> _Point:
        return _Point(task, mesh, reaches, marks, constants, mixture)

    def point(reaches: np.ndarray) -> _Point:
        made = at(reaches)
        for k in range(LIFTS):
            if made.lack <= rtol / 50:
                break
            made = max(made, at(made.lifted(newton=k % 2 == 0)), key=lambda p: p.value)
        return made

    best = max((point(t) for t in starts), key=lambda p: p.value)
    change = RANGE * task.width
    for _ in range(STEPS if floor is not None else 0):
        found = best.mixed(change)
        if found is None:
            break
        reaches, mixture = found
        new = point(reaches) if mixture is None else at(reaches, mixture)
        moved = float(np.quantile(np.abs(new.reaches - best.reaches), 0.9))
        small = new.value - best.value <= rtol / 20 * abs(best.value)
        if new.value > best.value:
            best = new
        if (small and change < 1e-2 * RANGE * task.width) or best.value >= goal:
            break
        change *= 0.5 if moved > SHARES[1] * change and not small else SHARES[1]
    best = max(best, at(best.lowered(best.lack)), key=lambda p: p.dual().worth)
    return best.dual(), best.reaches


#: Nodes, rows of reaches at these, and their shares of the prior.
Mixture = tuple[np.ndarray, np.ndarray, np.ndarray]


class _Point:
    """Reaches with g and F; or a mixture of reaches, (nodes, rows, shares), with those of its mean thresholds."""

    def __init__(
        self, task: Task, mesh: np.ndarray, reaches: np.ndarray, marks: np.ndarray,
        constants: tuple[np.ndarray, np.ndarray], mixture: Mixture | None = None,
    ) -> None:  # fmt: skip
        # Ends of windows increase by more than proofs lose all digits with.
        self.reaches = reaches = steady(mesh, reaches, mesh, task.cost.slopes, slack=STILL)
        self.task, self.mesh = task, mesh
        nodes, rows, shares = mixture or (*self._crossed(reaches[None]), None)
        low, high = task.span
        #: Shares of the prior, for each layer.
        self.columns = np.ones(nodes.size) if shares is None else shares.ravel()
        if task.jumps:
            self.columns = (1 - SPARE) * self.columns
        layers = [self._ends(t, nodes) for t in rows]
        bends = np.unique(np.clip(np.concatenate([marks, nodes, *(end for ends in layers for end in ends)]), low, high))
        bends = bends[np.append(True, np.diff(bends) > 1e-9)]
        inner = (bends[:-1] + np.diff(bends) * f for f in (0.17, 0.33, 0.5, 0.67, 0.83))
        self.outputs = np.unique(np.concatenate([bends, *inner]))
        self.program = program = PriorProgram(task, nodes, layers, Cuts())
        self.g = program.table(self.outputs) @ self.columns
        # Programs leave g as low as it can be wherever nobody looks: between these outputs, too.
        more = np.setdiff1d(dips(self.outputs, self.g), self.outputs)
        outputs = np.append(self.outputs, more)
        order = np.argsort(outputs)
        self.outputs, self.g = outputs[order], np.append(self.g, program.table(more) @ self.columns)[order]
        #: By how much thresholds must fall for g >= 0 at each output: without any it is the loss of a constant.
        under = np.maximum(-self.g, 0.0)
        self.lacks = under / np.maximum(np.interp(self.outputs, *constants) + under, NOTHING)
        self.lack = float(self.lacks.max())
        self.value = float(program.gains() @ self.columns) * (1 - self.lack)

    def _crossed(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The mesh and rows of reaches on it, with nodes where they cross jumps, too: integrals over cells do not see these."""
        x, new = self.mesh, [self.mesh]
        for jump in self.jumps:
            side = np.where(rows <= jump * BELOW, -1, np.where(rows < jump * (1 + BEYOND), 0, 1))
            k, i = np.nonzero(side[:, :-1] * side[:, 1:] < 0)
            before, after = rows[k, i], rows[k, i + 1]
            new.append(x[i] + (jump - before) / (after - before) * (x[i + 1] - x[i]))
        if len(new) == 1:
            return x, rows
        nodes = np.unique(np.concatenate(new))
        out = np.array([np.interp(nodes, x, row) for row in rows])
        fresh = ~np.isin(nodes, x)
        for jump in self.jumps:
            out[:, fresh] = np.where(np.abs(out[:, fresh] / jump - 1) < 1e-9, jump * BELOW, out[:, fresh])
        return nodes, out

    @property
    def jumps(self) -> list[float]:
        """Reaches at which the loss jumps."""
        return [jump / self.task.cost.slopes[1] for jump in self.task.cost.jumps]

    def _ends(self, reaches: np.ndarray, nodes: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        (a, b), x = self.task.cost.slopes, self.mesh if nodes is None else nodes
        return x + a * reaches, x + b * reaches

    def lifted(self, *, newton: bool) -> np.ndarray:
        """The reaches with thresholds that are less by what lacks at outputs that inputs on neighbouring cells favour.

        By as much as if no input favoured the output, or by a step of Newton's, which is less.
        """
        (low, high), lacks = self._ends(self.reaches), self.lacks.copy()
        under = np.flatnonzero(lacks if newton and not self.task.cost.jumps else 0 * lacks)
        rates = self.program.table(self.outputs[under], nu=True) @ self.columns
        lacks[under] = np.minimum(lacks[under], -self.g[under] / np.maximum(rates, NOTHING))
        first = np.searchsorted(self.outputs, np.append(low[:1], low[:-1]))
        last = np.searchsorted(self.outputs, np.append(high[1:], high[-1:]), side="right")
        lacks = np.array([lacks[i:j].max(initial=0.0) for i, j in zip(first, last, strict=True)])
        return self.lowered(lacks)

    def lowered(self, shares: np.ndarray | float) -> np.ndarray:
        """The reaches with thresholds that are less by these shares."""
        t = self.reaches
        return self._reaching((1 - shares) * self._nu(t), np.linspace(0.0, 1.0, LEVELS)[:, None] ** 2 * t)

    def dual(self) -> Dual:
        return Dual(self.program, self.columns, self.value, self.outputs, self.g, self.lack)

    def _nu(self, reaches: np.ndarray) -> np.ndarray:
        return np.asarray(self.task.cost.of(self.task.cost.slopes[1] * reaches))

    def _with_jumps(self, options: np.ndarray) -> np.ndarray:
        """The options of each input and both reaches at each jump."""
        more = [np.full(options.shape[1], t * f) for t in self.jumps for f in (BELOW, 1 + BEYOND)]
        return np.vstack([options, *more])

    def _reaching(self, wanted: np.ndarray, options: np.ndarray) -> np.ndarray:
        """The reaches with these thresholds, between the options of each input."""
        options = np.sort(self._with_jumps(options), axis=0)
        nu = self._nu(options)
        return np.array([np.interp(wanted[i], nu[:, i], options[:, i]) for i in range(wanted.size)])

    def mixed(self, change: float) -> tuple[np.ndarray, Mixture | None] | None:
        """The reaches of the mean thresholds of the best shares; and these, where the loss jumps."""
        changes = np.array(sorted((0.0, *SHARES, *(-f for f in SHARES)))) * change
        options = np.maximum(self.reaches + changes[:, None], 0.0)
        for t in self.jumps:
            options = np.where((options >= t * BELOW) & (options < t * (1 + BEYOND)), t * BELOW, options)
        nodes, options = self._crossed(self._with_jumps(options))
        shares = self._shares(nodes, options)
        if self.jumps and shares is not None and options.shape[0] >= LAYERS:  # one more may be added
            options = options[np.sort(np.argsort(-shares.sum(axis=1), kind="stable")[: LAYERS - 1])]
            shares = self._shares(nodes, options)
        if shares is None:
            return None
        old = np.searchsorted(nodes, self.mesh)
        reaches = self._reaching((shares * self._nu(options)).sum(axis=0)[old], options[:, old])
        return reaches, (nodes, options, shares) if self.jumps else None

    def _shares(self, nodes: np.ndarray, options: np.ndarray) -> np.ndarray | None:
        """The best shares of the options."""
        n, (a, b) = nodes.size, self.task.cost.slopes
        program = PriorProgram(self.task, nodes, [self._ends(t, nodes) for t in options], Cuts())
        table, count = program.table(self.outputs), options.shape[0]
        eye, steps = np.eye(n), np.diff(nodes)
        means = np.hstack([eye * t for t in options])
        zero = np.zeros((2 * n - 1, 1))
        rows = np.hstack([np.vstack([np.hstack([eye] * count), np.diff(means, axis=0)]), zero])
        scale = self.task.scale
        sheet = LinearProgram(
            np.append(program.gains(), -1.0) * scale, rows,
            np.concatenate([np.ones(n), -steps / b]), np.concatenate([np.ones(n), -steps / a]), maximise=True,
            name="optdp-kernel-thresholds",
        )  # fmt: skip
        session, left = (self.task.solver or Highs()).session(sheet), self.task.left
        new = np.flatnonzero(minima(self.g))
        on = np.zeros(self.outputs.size, dtype=bool)
        for _ in range(ROUNDS):
            on[new] = True
            at_least(session, np.hstack([table[new], np.ones((new.size, 1))]) * scale, np.zeros(new.size))
            result = session.solve(time_limit=left())
            if not result.usable or result.status is not LinearStatus.OPTIMAL:
                return None
            g = table @ result.x[:-1] + result.x[-1]
            new = np.flatnonzero((g < -CLOSE * self.value) & ~on & minima(g))
            if not new.size:
                break
            if not left():
                return None
        shares = np.maximum(result.x[:-1].reshape(count, n), 0.0)
        return np.asarray(shares / shares.sum(axis=0))

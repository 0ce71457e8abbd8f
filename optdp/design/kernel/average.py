"""The dual for an average under a density: the prior is given, and only the thresholds are unknown.

The floors that are best on average are often a few atoms, so that most inputs may end their window anywhere in a gap, and which place
proves most is a question in itself. In the reaches t of the inputs of a mesh the bound

    F(t) = int nu(x; t) P(dx) - max_y max(-g(y; t), 0)

(see `optdp.certificates.kernel`; a floor has mass at most 1) has derivatives in closed form. It is maximised by linear
programs in the changes of t, within a range that is widened where F rises and narrowed where it does not. From concave
problems in nu such steps end at the best thresholds that are linear on the mesh; every F is a bound, however good.
"""

from __future__ import annotations

import numpy as np

from optdp.design.kernel.floor import Floor, hats
from optdp.design.kernel.master import Cuts
from optdp.design.kernel.prior import Dual, PriorProgram
from optdp.design.kernel.task import Task
from optdp.solvers.lp import Highs, LinearProgram, LinearSolver, LinearStatus

#: Programs for one mesh; the first range, in windows; and what a step must gain at least.
STEPS, RANGE = 24, 0.5


def solve(
    task: Task, floor: Floor, mesh: np.ndarray, marks: np.ndarray, rtol: float, start: np.ndarray | None,
    solver: LinearSolver | None = None, left: float = np.inf,
) -> tuple[PriorProgram, Dual]:  # fmt: skip
    """The best thresholds on the mesh: from those of the floor, or (better) from reaches that are known already, on.

    g is looked at between the `marks` and the ends of windows.
    """
    a, b = task.cost.slopes
    _, high = floor.ends(mesh, task.cost, task.growth)
    starts = [_steady(mesh, (high - mesh) / b, a, b)] + ([] if start is None else [start])
    found = [_Point(task, mesh, t, marks) for t in starts]
    best = max(found, key=lambda p: p.value)
    reach = RANGE * max(task.width, 0.05)
    for _ in range(STEPS):
        step = best.step(reach, solver, left)
        if step is None:
            break
        change, promised = step
        if promised - best.value <= rtol / 50 * abs(best.value):
            break
        new = _Point(task, mesh, np.maximum(best.reaches + change, 0.0), marks)
        gained = new.value - best.value
        if gained >= 0.5 * (promised - best.value):
            reach *= 2
        elif gained < 0.1 * (promised - best.value):
            reach /= 3
        if gained > 0:
            best = new
    layers = [(mesh + a * best.reaches, mesh + b * best.reaches)]
    ones = np.ones(mesh.size)
    dual = Dual(best.value, mesh, layers, [ones], Cuts(), np.empty(0), best.outputs, best.g)
    return PriorProgram(task, mesh, layers, Cuts()), dual


class _Point:
    """Reaches with g, F and their derivatives."""

    def __init__(self, task: Task, mesh: np.ndarray, reaches: np.ndarray, marks: np.ndarray) -> None:
        self.task, self.mesh, self.reaches, self.marks = task, mesh, reaches, marks
        (a, b), (low, high) = task.cost.slopes, task.span
        self.ends = mesh + a * reaches, mesh + b * reaches
        bends = np.unique(np.clip(np.concatenate([marks, mesh, *self.ends]), low, high))
        bends = bends[np.append(True, np.diff(bends) > 1e-9)]
        self.outputs = outputs = np.unique(np.concatenate([bends[:-1] + np.diff(bends) * f for f in (0, 0.3, 0.7)] + [bends[-1:]]))
        program = PriorProgram(task, mesh, [self.ends], Cuts())
        self.gain = float(program.gains().sum())
        self.g = program.table(outputs) @ np.ones(mesh.size)
        self.value = self.gain - max(0.0, float(-self.g.min()))

    def _rate(self, t: np.ndarray) -> np.ndarray:
        """dnu/dt times the prior's density."""
        cost, b = self.task.cost, self.task.cost.slopes[1]
        reach = np.interp(t, self.mesh, self.reaches)
        h = 1e-6 * self.task.width
        low = np.maximum(reach - h, 0.0)
        return np.asarray((cost.of(b * (reach + h)) - cost.of(b * low)) / (reach + h - low) * self.task.density(t))

    def step(self, reach: float, solver: LinearSolver | None, left: float) -> tuple[np.ndarray, float] | None:
        """The best change by at most `reach` each, and F if everything were linear."""
        x, n, (a, b) = self.mesh, self.mesh.size, self.task.cost.slopes

        def rate(_: object, t: np.ndarray) -> np.ndarray:
            return self._rate(t)

        rise = hats(np.zeros(1), x, rate, ())[0]
        low, high = self.ends
        start = np.interp(self.outputs, high, x, left=x[0], right=x[-1])
        end = np.interp(self.outputs, low, x, left=x[0], right=x[-1])
        fall = rise + self.task.growth * hats(self.outputs, x, rate, (), start, np.maximum(start, end))
        near = self.g - reach * fall.sum(axis=1) <= 0
        padded = np.concatenate([[np.inf], self.g, [np.inf]])
        low_points = (self.g <= padded[:-2]) & (self.g <= padded[2:])
        near &= low_points | (np.arange(near.size) % 3 == 0)
        steps, t = np.diff(x), self.reaches
        slopes = np.zeros((n - 1, n + 1))
        i = np.arange(n - 1)
        slopes[i, i], slopes[i, i + 1] = -1.0, 1.0
        cuts = np.hstack([-fall[near], np.ones((int(near.sum()), 1))])
        program = LinearProgram(
            np.append(rise, -1.0) * self.task.scale, np.vstack([slopes, cuts]),
            np.concatenate([-steps / b * (1 - 1e-9) - np.diff(t), -self.g[near]]),
            np.concatenate([steps / -a * (1 - 1e-9) - np.diff(t), np.full(int(near.sum()), np.inf)]),
            np.append(np.maximum(-reach, -t), 0.0), np.append(np.full(n, reach), np.inf), maximise=True, name="optdp-kernel-thresholds",
        )  # fmt: skip
        result = program.solve(solver or Highs(), time_limit=left)
        if not result.usable or result.status is not LinearStatus.OPTIMAL:
            return None
        return np.asarray(result.x[:n]), self.gain + float(result.objective) / self.task.scale


def _steady(mesh: np.ndarray, reaches: np.ndarray, a: float, b: float) -> np.ndarray:
    """The reaches, changed so that ends of windows do not decrease."""
    out = np.maximum(reaches, 0.0)
    for i in range(1, mesh.size):
        step = (mesh[i] - mesh[i - 1]) * (1 - 1e-9)
        out[i] = min(max(out[i], out[i - 1] - step / b), out[i - 1] - step / a)
    return np.maximum(out, 0.0)

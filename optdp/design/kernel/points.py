"""The dual for an average over finitely many inputs: the prior is given, and only the multipliers are unknown.

With r = L - nu - mu (y - x) the function g of `optdp.certificates.kernel` is concave in the multipliers: the least of
functions that are linear in them, one for each set of inputs that favour y. So the best multipliers are those of a linear
program whose rows are added at the outputs where g is least, with the inputs that favour them there.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from optdp.design.kernel.master import FINE, Cuts, at_least, minima
from optdp.design.kernel.prior import Dual, PriorProgram
from optdp.design.kernel.task import Task, between
from optdp.solvers.lp import LinearProgram

#: Rounds of rows; how near (as a share of the tolerance) bound and program shall come; by what share its values differ at least.
ROUNDS, CLOSE, LITTLE = 100, 0.02, 1e-9
#: Rows are added at the program's point, and this share of the way to it from the best one: there they are deeper.
SHARES = (1.0, 0.3)
#: Multipliers are at most so many times their sizes.
LARGE = 1e5
#: The share by which rays are less than solvers say, whose tolerances else cost thresholds more.
LESS = 1e-7


def solve(task: Task, start: Cuts, outputs: np.ndarray, rtol: float) -> tuple[Dual, bool]:
    """The best windows of the prior's points and the best rays, from the windows `start` on.

    And whether none prove more than a little more.

    The unknowns are nu and mu of each point, and of each ray r = slope y - level at 0, level - slope y at 1 both numbers.
    """
    assert task.prior is not None
    (x, chances), unit, growth = task.prior, 1 / task.scale, task.growth
    n, chances, signs = x.size, chances * (1 - 1e-12), np.array([1.0, -1.0])
    size = np.concatenate([np.full(n, unit), np.full(n, np.sqrt(unit)), np.full(4, unit)])
    low, high = outputs[[0, -1]]  # rays bend between these
    bends = np.hstack([np.zeros((4, 2 * n)), np.kron(np.eye(2), [[-low, 1.0], [high, -1.0]])])
    session = (task.solver or FINE).session(
        LinearProgram(
            np.concatenate([chances, np.zeros(n), [0.0, 1.0, 1.0, -1.0]]) * size / unit, bends, np.zeros(4),
            np.full(4, np.inf), np.append(np.full(2 * n, -LARGE), [0.0, -LARGE] * 2), np.full(size.size, LARGE),
            maximise=True, name="optdp-kernel-thresholds",
        )
    )  # fmt: skip

    def found(z: np.ndarray) -> tuple[Dual, np.ndarray]:
        """The windows and rays, and the multipliers with windows that shrink."""
        nu, mu, (slope, level) = z[:n], z[n : 2 * n], z[2 * n :].reshape(2, 2).T
        reach = np.sqrt(np.maximum(nu + mu * mu / 4, 0.0))
        bend = np.where(slope > 0, level / np.where(slope > 0, slope, 1.0), np.array([0.0, 1.0]))
        rays = Cuts(np.array([0.0, 1.0]), np.array([-np.inf, bend[1]]), np.array([bend[0], np.inf]))
        program = PriorProgram(task, np.array([0.0, 1.0]), [], Cuts(x, x + mu / 2 - reach, x + mu / 2 + reach) + rays)
        weights = np.append(chances, slope * (1 - LESS))
        dual = Dual(program, weights, float(program.gains() @ weights), outputs, 0 * outputs)
        y = program.lowest(dual)
        dual = replace(dual, outputs=y, g=program.values(y, weights), shrink=program.lifted(weights, y))
        return dual, np.concatenate([(reach * max(1 - dual.shrink, 0.0)) ** 2 - mu * mu / 4, z[n:]])

    def add(z: np.ndarray, y: np.ndarray) -> None:
        nu, mu, (slope, level) = z[:n], z[n : 2 * n], z[2 * n :].reshape(2, 2).T
        off, beyond = y[:, None] - x, signs * (slope * y[:, None] - level)
        near = np.where(off * off - nu - mu * off < 0, 1 + growth, 1.0) * chances
        far = np.where(beyond < 0, 1 + growth, 1.0) * signs
        pairs = np.stack([far * y[:, None], -far], axis=2).reshape(y.size, 4)
        table = np.hstack([-near, -near * off, pairs]) * size
        scale = 1 / np.abs(table).max(axis=1)
        least = -(near * off * off).sum(axis=1) * scale
        at_least(session, table * scale[:, None], least)

    z = np.concatenate([(start.b - x) * (x - start.a), start.a + start.b - 2 * x, np.zeros(4)])
    best, at = found(z)
    add(z, best.outputs)
    top, inside = np.inf, False
    for _ in range(ROUNDS):
        result = session.solve(time_limit=task.left())
        if not result.usable:
            break
        before, top = top, result.objective * unit
        inside = float(np.abs(result.x).max()) < LARGE / 2
        for share in SHARES:
            z = at + share * (result.x * size - at)
            new, fallen = found(z)
            add(z, new.outputs[minima(new.g) & (new.g < 0)])
            if new.worth > best.worth:
                best, at = new, fallen
        if best.worth >= top * (1 - CLOSE * rtol) or top >= before * (1 - LITTLE) or not task.left():
            break
    y = between(best.outputs, 1)
    best = replace(best, outputs=y, g=best.program.values(y, best.columns))
    return best, inside and best.worth >= top * (1 - rtol / 8)

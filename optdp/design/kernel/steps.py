"""A loss that is one value up to a distance t and another beyond: the best mechanism is a cover, and the proof a packing.

With n atoms whose windows [y - t, y + t] cover the domain, each input favours one of which it is in the window, and misses with
probability (n - 1)/(E + n - 1). With n inputs further than 2 t apart no output is near two of them, so that nothing misses less.
The least cover and the largest packing of an interval have the same size, ceil(width/(2 t)).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from optdp.certificates.kernel import ATOMS, KernelCertificate
from optdp.design.kernel.task import Task
from optdp.exact.lattice import Lattice
from optdp.exact.numbers import next_float
from optdp.mechanisms.kernel import KernelMechanism
from optdp.mechanisms.piecewise import CELLS


def packing(task: Task) -> KernelCertificate:
    """Floats further than 2 t apart, each with a mixture of the two thresholds by which g is 0 at outputs near one of them."""
    step, points = task.cost.step, [0.0]
    assert step is not None
    while 2 * len(points) < ATOMS and (x := next_float(Fraction(points[-1]) + 2 * step)) <= 1:
        points.append(x)
    n, t = len(points), float(step)
    share = (n - 1) / (task.growth + n) * (1 - 2.0**-50)
    weights = [(1 - share) / n] * n + [share / n] * n
    return KernelCertificate(
        points=(*points, *points), weights=tuple(weights), point_reaches=tuple([t / 2] * n + [2 * t] * n)
    )


def covers(task: Task, count: int) -> list[KernelMechanism]:
    """Covers: `count` even ones, and as few numbers that can be sent as have every float of the domain in a window.

    Where windows only just meet the float between two atoms belongs to the lower one: `share` is a rounding below 1/2.
    """
    domain, width, lower = task.problem.domain, task.problem.domain.exact_width, Fraction(task.problem.domain.lower)
    eps = task.problem.eps
    assert task.cost.step is not None and eps is not None
    low, high = (lower + width * Fraction(end) for end in task.span)
    step, reach, x, outputs = Lattice.between(low, high).step, task.cost.step * width, lower, list[Fraction]()
    while x <= domain.upper and 2 * len(outputs) < ATOMS:
        y = math.floor(min(x + reach, high) / step) * step
        if y < max(low, x - reach):
            break
        outputs.append(y)
        x = Fraction(next_float(y + reach))
    even = [min(max(lower + width * Fraction(2 * k + 1, 2 * count), low), high) for k in range(count)]
    found = []
    for cover in (even, outputs) if x > domain.upper else (even,):
        exact = [(y - lower) / width for y in cover]
        y = np.array([float(q) for q in exact])
        if y[0] > exact[0]:  # what is sent lies between the first and the last
            y[0] = math.nextafter(y[0], -math.inf)
        if y[-1] < exact[-1]:
            y[-1] = math.nextafter(y[-1], math.inf)
        window = (CELLS // y.size + 1) / CELLS
        for share in (0.5, 0.5 - 2.0**-53):
            made = KernelMechanism.private(eps, np.ones(y.size), y, y, window, domain, "ends", share)
            found.append(made)
    return found

"""Worst cases of losses in steps of the distance: finite programs.

**One step.** The loss is one value up to a distance t and another beyond: the best mechanism is a cover, and the
proof is a packing. With n atoms whose windows [y - t, y + t] cover the domain, each input favours one of which it is in the
window, and misses with probability (n - 1)/(E + n - 1). With n inputs further than 2 t apart no output is near two of them,
so that nothing misses less. The least cover and the largest packing of an interval have the same size, ceil(width/(2 t)).

**Several steps b.** Let P be the points that steps up and down, without leaving the domain, lead to from its ends
(and from limits of outputs). If they are finitely many, they are all the outputs that are needed, and one input in each cell
between two neighbours all the inputs. For steps map cells onto each other, or out of the domain. Take a place in one cell of
each class that they form, and what they make of it in the others, where a mechanism has no atoms (it has countably many, the
same for all inputs). Let all inputs of a cell use the row of its place, and move each output to the end of its cell that is
on its side of the place. It was within b of another cell's place if and only if it now is of all inputs of that cell. So the
guarantee is kept, outputs are in P, and no input loses more than a place did.

What is at a step exactly counts here as within it. Where the loss counts from b on, all this holds for the steps b (1 -
iota), iota infinitesimal: points are pairs (p, k) for p + k iota, in lexicographic order. An input between two that are
infinitesimally near is the number p itself.

**The program** is the dense one: for all inputs x and values nu of the loss, with a floor m,

    V(x) >= nu + sum_y m(y) (r + (E - 1) min(r, 0)),   r = L(x, y) - nu.

(1/E <= m(all) <= 1 need not be asked for: a lighter floor pays for the rest as for an output that is far from everything, and
of a heavier one that share which has mass 1 costs less already, as nu takes the loss's least value.)
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np

from optdp.certificates.kernel import ATOMS, KernelCertificate
from optdp.design.kernel.task import Task, short
from optdp.mechanisms.kernel import KernelMechanism
from optdp.mechanisms.piecewise import CELLS
from optdp.solvers.lp import Highs, LinearProgram

#: At most so many points of P, and numbers in a program. Floats that are rationals of at most this denominator but for a share
#: NEAR are taken for these.
POINTS, ENTRIES, DENOMINATOR, NEAR = 640, 2**24, 1000, 2.0**-42
#: e^eps beyond which inputs meet no output that they do not favour, but for a share that floats do not see.
LARGE = 1e8
#: Its smallest entries are e^-eps times differences of losses.
HIGHS = Highs(tolerance=1e-10, options=(("small_matrix_value", 1e-12), ("presolve", "off")))
#: p + k iota.
Point = tuple[Fraction, Fraction]
#: Steps, and the side of them.
Program = tuple[tuple[Fraction, ...], int]


def packing(task: Task) -> KernelCertificate:
    """Inputs at least 2 t apart, each with a mixture of the two thresholds by which g is 0 at outputs near one of them."""
    step, domain = task.cost.step, task.problem.domain
    assert step is not None
    points, x = [Fraction(0)], Fraction(domain.lower)
    while 2 * len(points) < ATOMS and (end := x + 2 * step * domain.exact_width) <= domain.upper:
        # No output is near both of two that are exactly so far apart, unless the loss has its lesser value there.
        x = task.read(end, beyond=task.cost.drops or task.read(end) != end)
        if x > domain.upper:
            break
        points.append(task.share(x))
    n, t = len(points), float(step)
    share = (n - 1) / (task.growth + n) * (1 - 2.0**-50)
    weights = [(1 - share) / n] * n + [share / n] * n
    return KernelCertificate(
        points=tuple(map(short, points)) * 2, weights=tuple(weights), point_reaches=tuple([t / 2] * n + [2 * t] * n)
    )


def covers(task: Task, count: int) -> list[KernelMechanism]:
    """Covers: `count` even ones, and as few numbers that can be sent as have every float of the domain in a window."""
    domain, step = task.problem.domain, task.cost.step
    assert step is not None
    low, high = map(task.point, task.span)
    reach, x, greedy = step * domain.exact_width, Fraction(domain.lower), list[tuple[float, Fraction]]()
    while x <= domain.upper and 2 * len(greedy) < ATOMS:
        most = min(x + reach, high)
        least = task.read(most)
        share = float(task.share(least if least <= most else -task.read(-least, beyond=True)))
        y = task.read(task.point(share))
        if y > most:
            share = math.nextafter(share, -math.inf)
            y = task.read(task.point(share))
        if y < max(low, x - reach):
            break
        greedy.append((share, y))
        x = task.read(y + reach, beyond=True)
    places = [min(max(task.point(Fraction(2 * k + 1, 2 * count)), low), high) for k in range(count)]
    even = [(float(task.share(y)), y) for y in places]
    found = []
    for cover in (even, greedy) if x > domain.upper else (even,):
        shares = [share for share, _ in cover]
        if task.point(shares[0]) > cover[0][1]:  # what is sent lies between the first and the last
            shares[0] = math.nextafter(shares[0], -math.inf)
        if task.point(shares[-1]) < cover[-1][1]:
            shares[-1] = math.nextafter(shares[-1], math.inf)
        found.append(task.mechanism(np.array(shares), np.array(shares), window=(CELLS // len(shares) + 1) / CELLS))
    return found


def stairs(task: Task) -> Iterator[tuple[KernelMechanism, KernelCertificate, bool]]:
    """Mechanisms and proofs of finite programs: for the loss as it is, and for steps that floats tell from these at both sides.
    Of a user's loss steps are known but for a cell: the proof is for those below it, and mechanisms also for those above it.

    With each: whether it is whole, so that a wider bracket is for other numbers than floats to close.
    """
    below, above = _steps(task, True), _steps(task, False)
    if below is None or above is None:
        return
    (jumps, _), levels = above
    short = tuple(b if abs(b - k) <= NEAR * k else k for k in jumps for b in [k.limit_denominator(DENOMINATOR)])
    sure = len(jumps) == len(below[0][0]) and all(b - a <= NEAR * b for a, b in zip(jumps, below[0][0], strict=True))
    for program in dict.fromkeys([below, above, ((short, -1), levels), ((short, 1), levels)]):
        ladder = _Ladder(task, np.array(program[1]), *program[0])
        if found := ladder.solve() if ladder.closed or program in (below, above) else None:
            yield ladder.mechanism(found[0]), ladder.certificate(found[1], program == below), ladder.closed and sure


def _steps(task: Task, below: bool) -> tuple[Program, tuple[float, ...]] | None:
    """The steps of the loss, or of what lies below or above it, and its values between them; None if there are none."""
    pieces = task.problem.loss.branches(task.problem.domain.exact_width, below, task.eps)
    assert pieces is not None
    sides = [(k, *rows) for k, *rows in zip(pieces.knots, pieces.rows, pieces.rows[1:], strict=False) if 0 < k <= 1]
    sides = [(k, low, high) for k, low, high in sides if low != high and (k < 1 or pieces.upper)]
    if not sides:
        return None
    levels = [float(sides[0][1][0]), *(float(high[0]) for *_, high in sides)]
    exact = tuple(k for k, *_ in sides)
    return (exact, -1 if pieces.upper else 0), tuple(v / task.cost.unit for v in levels)


class _Ladder:
    """The finite program for steps b (1 + side iota)."""

    def __init__(self, task: Task, levels: np.ndarray, jumps: Sequence[Fraction], side: int) -> None:
        self.task, self.jumps, self.levels, self.closed = task, jumps, levels, True
        spans = [Fraction(end) for end in (0, 1, *task.span)]
        whole = math.lcm(*(number.denominator for number in (*spans, *jumps)))  # in such parts all points are integers
        ends, breaks = [(int(end * whole), 0) for end in spans], [int(b * whole) for b in jumps]
        steps = [(s * b, s * side * b) for b in breaks for s in (-1, 1)]

        points, queue, most = set(ends), list(dict.fromkeys(ends)), min(POINTS, math.isqrt(ENTRIES // levels.size))
        for point in ((p + b, k + c) for p, k in queue for b, c in steps):  # the queue grows
            if ends[0] <= point <= ends[1] and point not in points:
                if len(points) >= most:
                    self.closed = False
                    break
                points.add(point)
                queue.append(point)
        cells = list(pairwise(sorted(points)))
        outputs = sorted(point for point in points if ends[2] <= point <= ends[3])

        def exact(point: tuple[int, int]) -> tuple[Fraction, Fraction]:
            return Fraction(point[0], whole), Fraction(point[1], whole)

        #: What each input's place is between.
        self.cells = [(exact(p), exact(q)) for p, q in cells]
        #: Outputs.
        self.points = [*map(exact, outputs)]
        #: How many steps are between each input and each output.
        self.table = np.zeros((len(cells), len(outputs)), dtype=np.int64)
        places = np.arange(len(outputs))
        for row, (start, end) in zip(self.table, cells, strict=True):
            for b in breaks:
                far = bisect_right(outputs, (start[0] + b, start[1] + side * b))
                near = bisect_left(outputs, (end[0] - b, end[1] - side * b))
                row += (places < near) | (places >= far)
        #: What stands for iota.
        gap = Fraction(min((q - p for (p, _), (q, _) in cells if p < q), default=whole), whole)
        self.iota = Fraction(2) ** (math.floor(math.log2(gap)) - 4)

    def solve(self) -> tuple[np.ndarray, np.ndarray] | None:
        """(the floor's masses, multipliers of the values nu for each cell); None if there is no solution.

        By the dual, with multipliers of nu > 0 in units of 1/E: what E multiplies is then 1, and the rest may go if E is large.
        """
        growth, nu, n = self.task.growth, self.levels - self.levels[0], len(self.cells)
        r = nu[self.table] - nu[:, None, None]
        small = 1 / (1 + growth) if growth < LARGE else 0.0
        unit = np.where(nu > 0, small, 1.0)[:, None, None]
        rows = np.where(r < 0, r, unit * r).reshape(-1, r.shape[2])
        count = np.repeat(nu, n)
        mass = np.where(count > 0, small, 1.0)
        program = LinearProgram(
            count, np.vstack([mass, rows.T]), np.append(1.0, np.zeros(r.shape[2])),
            np.append(1.0, np.full(r.shape[2], np.inf)), maximise=True, name="optdp-kernel-steps",
        )  # fmt: skip
        found = program.solve(self.task.solver or HIGHS, time_limit=self.task.left())
        masses = np.maximum(-found.row_dual[1:], 0.0) / (1 + growth)
        if not (found.usable and masses.any()):  # without masses more outputs than these would be needed
            return None
        weights = (np.maximum(found.x, 0.0) * np.where(count > 0, 1 / (1 + growth), 1.0)).reshape(nu.size, n)
        return masses, weights

    def mechanism(self, masses: np.ndarray) -> KernelMechanism:
        """The floor's mechanism."""
        on = np.flatnonzero(masses)
        y = np.clip([float(p + k * self.iota) for p, k in (self.points[i] for i in on)], *self.task.span)
        return self.task.mechanism(y, y, masses[on])

    def certificate(self, multipliers: np.ndarray, exact: bool) -> KernelCertificate:
        """The prior: inputs at the points themselves between two that are infinitesimally near, if all is `exact`."""
        reaches = np.convolve([0.0, *map(float, self.jumps), 2.0], [0.5, 0.5], "valid").tolist()
        middles = [((p + q) / 2 + (0 if exact else (i + j) / 2 * self.iota)) for (p, i), (q, j) in self.cells]
        x = list(map(short, middles))
        multipliers = multipliers / multipliers.sum()
        level, cell = np.nonzero(multipliers)
        return KernelCertificate(
            points=tuple(x[c] for c in cell), weights=tuple(multipliers[level, cell].tolist()),
            point_reaches=tuple(reaches[k] for k in level),
        )  # fmt: skip

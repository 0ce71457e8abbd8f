"""Kernel mechanisms: finitely many outputs, probabilities that move linearly between the inputs of a grid."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import accumulate, pairwise
from operator import mul
from typing import Annotated, Any

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from optdp.exact import enclosures, require
from optdp.exact.check import Check
from optdp.exact.fields import Within
from optdp.exact.numbers import Number
from optdp.exact.rounding import COLUMNS, ROWS, TOTAL, Table, coprime_triple, private_weights
from optdp.exact.sampling import Seed, as_rng
from optdp.mechanisms.finite import TableMechanism
from optdp.problem.domains import DomainLike, Interval, as_interval
from optdp.problem.losses import Loss, LossLike
from optdp.problem.objectives import Average, Objective, WorstCase
from optdp.problem.priors import Prior

#: Outputs of unbiased mechanisms are multiples of this share of the domain (exact means need integers).
UNIT = 2.0**-16

#: The enclosure of a worst case for other powers ends after this many terms, each a power of a ball.
TERMS = 2**22


@dataclass(frozen=True, repr=False)
class KernelMechanism(TableMechanism):
    """At the input `inputs[i]` the output `outputs[j]` with probability `weights[i][j] / 2^62`; mixed linearly in between.

    **Arguments:**

    - `domain`: an interval. Inputs and outputs are written as shares of it: 0 is the lower end, 1 the upper.
    - `inputs`: the grid, increasing floats from 0 to 1.
    - `outputs`: increasing floats, inside [0, 1] or not.
    - `table`: integer weights >= 0, every row with sum 2^62.

    Use `KernelMechanism.private(eps, ...)` to build one from a solver's probabilities.

    **Exactness.** The distribution at a grid input is a row of exact dyadic rationals, drawn with integers alone (an alias
    table); in between, a coin of 53 bits chooses the row of one of the two neighbours, with the input's place between them
    read as a float. Any coin mixes rows of the table, so that every likelihood ratio is at most the table's own, exactly.
    Values and means are those of the linear mixture with outputs at their exact shares; what is sent is the nearest float.
    """

    domain: Interval
    inputs: Annotated[tuple[float, ...], Within(0.0, 1.0, 2, ROWS)]
    outputs: Annotated[tuple[float, ...], Within(least=1, most=COLUMNS)]
    table: Table = field(metadata={"saved": "weights"})
    _names: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        domain = as_interval(self.domain, "a kernel mechanism")
        object.__setattr__(self, "domain", domain)
        x, y = np.array(self.inputs, dtype=float), np.array(self.outputs, dtype=float)
        if x.size < 2 or x[0] != 0 or x[-1] != 1 or not (np.diff(x) > 0).all():
            raise ValueError(f"inputs = {self.inputs!r} is not allowed: the grid must increase from 0 to 1")
        if not np.isfinite(y).all() or (np.diff(y) <= 0).any() or self.table.weights.shape != (x.size, y.size):
            raise ValueError(
                f"outputs = {self.outputs!r} is not allowed: they must increase, one for each column of the weights"
            )
        # Rounded once from the exact place: no output in the domain leaves it.
        low, width = Fraction(domain.lower), domain.exact_width
        object.__setattr__(self, "_names", np.array([float(low + width * Fraction(v)) for v in y.tolist()]))

    @classmethod
    def private(
        cls,
        eps: Number,
        inputs: ArrayLike,
        outputs: ArrayLike,
        rows: ArrayLike,
        floors: ArrayLike,
        domain: DomainLike = (0.0, 1.0),
        unbiased: bool = False,
    ) -> KernelMechanism:
        """The exactly eps-LDP mechanism nearest to a solver's probabilities.

        **Arguments:** `rows`: P(outputs[j] | inputs[i]); `floors`: with floors[j] <= rows[i, j] <= (1 - SLACK) e^eps
        floors[j], up to a solver's tolerance; `unbiased`: whether means are repaired to be exactly the inputs: outputs are
        then rounded to multiples of 2^-16.

        **Raises** ValueError if the rows are too far from private or unbiased to be repaired.
        """
        ratio, area = enclosures.exp_below(require.exact_epsilon(eps)), as_interval(domain, "a kernel mechanism")
        x, y = tuple(np.asarray(inputs, dtype=float).tolist()), np.asarray(outputs, dtype=float)
        rows, floors = np.asarray(rows, dtype=float), np.asarray(floors, dtype=float)
        if not unbiased:
            return cls(area, x, tuple(y.tolist()), Table(private_weights(rows, floors, ratio)))
        units, rows, floors, triple = _whole(y, rows, floors)
        means = [Fraction(v) / Fraction(UNIT) for v in x]
        table = Table(private_weights(rows, floors, ratio, units, means, triple))
        return cls(area, x, tuple((units * UNIT).tolist()), table)

    # Sampling and probabilities ---------------------------------------------------------------------------------

    def _place(self, x: Any) -> tuple[np.ndarray, np.ndarray]:
        """Index of the neighbour below, and the probability of taking the one above."""
        share = np.clip((self.domain.check(x) - self.domain.lower) / self.domain.width, 0.0, 1.0)
        grid = np.array(self.inputs)
        steps = np.diff(grid)
        below = np.clip(np.searchsorted(grid, share, side="right") - 1, 0, grid.size - 2)
        return below, np.clip((share - grid[below]) / steps[below], 0.0, 1.0)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        rng = as_rng(rng)
        below, above = self._place(x)
        upper = rng.random(below.shape) < above  # a multiple of 2^-53 each: a coin of 53 bits
        return np.asarray(self._names[self.table.draw(below + upper, rng)])

    def _rows(self, x: Any) -> np.ndarray:
        """P(outputs | x), with one more axis than x."""
        below, above = self._place(x)
        rows = self.table.rows
        return np.asarray(rows[below] * (1 - above)[..., None] + rows[below + 1] * above[..., None])

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        outputs, inputs = np.broadcast_arrays(np.asarray(y, dtype=float), self.domain.check(x))
        place = np.clip(np.searchsorted(self._names, outputs), 0, self._names.size - 1)
        hit = self._names[place] == outputs
        return np.where(hit, np.take_along_axis(self._rows(inputs), place[..., None], axis=-1)[..., 0], 0.0)

    def atoms(self) -> np.ndarray:
        return self._names

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        return float(self._names[0]), float(self._names[-1])

    def exact_support(self) -> tuple[Fraction, Fraction]:
        low, width = Fraction(self.domain.lower), self.domain.exact_width
        return low + width * Fraction(self.outputs[0]), low + width * Fraction(self.outputs[-1])

    def mean(self, x: ArrayLike) -> np.ndarray:
        return np.asarray(self._rows(x) @ self._names)

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        inputs, law = self.domain.check(x), self._loss(loss)
        return np.asarray(np.einsum("...j,...j->...", self._rows(inputs), law.of(inputs[..., None], self._names)))

    # Exact statements -------------------------------------------------------------------------------------------

    def exact_mean(self, i: int) -> Fraction:
        """E[Y | inputs[i]] as an exact share of the domain."""
        return _total(self.table.weights[i].tolist(), [Fraction(y) for y in self.outputs])

    def check_unbiased(self) -> Check:
        """Whether every mean is its input: exactly at the grid, and therefore in between, where rows are mixed linearly."""
        worst = max(abs(self.exact_mean(i) - Fraction(x)) for i, x in enumerate(self.inputs))
        return Check(
            "unbiased", worst == 0, f"E[Y|x] - x is at most {float(worst):g} widths in exact rationals, for every x"
        )

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(low, high) proven to contain the worst-case expected loss over all inputs, or the average one under a prior.

        With t the place between two grid inputs, the expected loss is (1 - t) A(x) + t B(x), where A and B are the
        losses at x of the two fixed rows. For "abs" both are linear between outputs, for "squared" quadratic with the
        same leading term, so that the loss is a quadratic polynomial in x on each piece, maximised exactly in
        rationals. For other powers, A and B are convex and lie below their chords on cells, which are bisected until
        the bound is within 1e-7; the powers are balls.

        **Raises** TypeError for a loss that is not a power with exponent >= 1, and for a continuous prior.
        """
        if not isinstance(objective, WorstCase | Average) or (objective.loss.exponent or 0) < 1:
            return super().enclose(objective)
        law = objective.loss
        if isinstance(objective, WorstCase):
            low, high = {1.0: _worst_abs, 2.0: _worst_squared}.get(law.exponent, _worst_power)(self, law)
        elif isinstance(objective.prior, str):  # "uniform"
            return super().enclose(objective)
        else:
            low, high = _average(self, objective.prior, law)
        with ctx.workprec(enclosures.PRECISION):
            scale = enclosures.ball(self.domain.exact_width) ** enclosures.ball(law.exponent)
            ends = enclosures.ball(low) * scale, enclosures.ball(high) * scale
            return enclosures.round_down(ends[0]), enclosures.round_up(ends[1])

    def worst_input(self, loss: LossLike = "abs") -> float:
        law = self._loss(loss)
        cuts = np.unique(np.concatenate([self.inputs, [y for y in self.outputs if 0 < y < 1]]))
        points = self.domain.lower + self.domain.width * np.unique(
            np.concatenate([np.linspace(a, b, 33) for a, b in pairwise(cuts)])
        )
        points = np.clip(points, self.domain.lower, self.domain.upper)
        return float(points[int(np.argmax(self.expected_loss(points, law)))])

    def _kinks(self) -> list[float]:
        inner = [y for y in self.outputs if 0 < y < 1]
        return [self.domain.lower + self.domain.width * s for s in sorted({*self.inputs, *inner})]

    def __repr__(self) -> str:
        low, high = self.support()
        return (
            f"KernelMechanism on {self.domain}: {len(self.outputs)} outputs in [{low:.6g}, {high:.6g}], "
            f"{len(self.inputs)} rows mixed linearly; {self._tail()}"
        )


def two_point(eps: Number, domain: DomainLike = (0.0, 1.0)) -> KernelMechanism:
    """Outputs at the shares 1/(1 + E) and E/(1 + E), the upper one with probability linear in x between the same two numbers.

    The best of all eps-LDP mechanisms for the worst-case squared error if eps <= ln(3 + 2 sqrt 2), with the value
    width^2 E/(1 + E)^2. E enters through the largest multiple of 2^-62 that keeps the guarantee exactly.
    """
    share = 1 / (1 + enclosures.exp_below(require.exact_epsilon(eps)))
    low = -(-share.numerator * TOTAL // share.denominator)
    weights = np.array([[TOTAL - low, low], [low, TOTAL - low]], dtype=np.int64)
    area = as_interval(domain, "a kernel mechanism")
    return KernelMechanism(area, (0.0, 1.0), (low / TOTAL, 1 - low / TOTAL), Table(weights))


def _whole(
    y: np.ndarray, rows: np.ndarray, floors: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int, int]]:
    """Outputs as integer multiples of UNIT, merged where they coincide, and three through which every mean can be reached.

    If all their differences share a divisor, a small part of the heaviest output moves by one unit.
    """
    units, place = np.unique(np.round(y / UNIT).astype(np.int64), return_inverse=True)
    merged = np.zeros((rows.shape[0], units.size))
    np.add.at(merged.T, place, rows.T)
    low = np.bincount(place, weights=floors)
    try:
        return units, merged, low, coprime_triple(units.tolist(), low)
    except ValueError:
        j, part = int(np.argmax(low)), 2.0**-11
    units = np.insert(units, j + 1, units[j] + 1)
    merged, low = np.insert(merged, j + 1, part * merged[:, j], axis=1), np.insert(low, j + 1, part * low[j])
    merged[:, j], low[j] = (1 - part) * merged[:, j], (1 - part) * low[j]
    others = low.copy()
    others[[j, j + 1]] = 0
    return units, merged, low, (j, j + 1, int(np.argmax(others)))


def _peak(a: tuple[Fraction, Fraction], b: tuple[Fraction, Fraction], t: tuple[Fraction, Fraction]) -> Fraction:
    """The maximum over s in [0, 1] of (1 - T) A + T B: T, A and B go linearly from their first to their second entry."""
    da, db, dt = a[1] - a[0], b[1] - b[0], t[1] - t[0]
    c0 = (1 - t[0]) * a[0] + t[0] * b[0]
    c1 = (1 - t[0]) * da + t[0] * db + dt * (b[0] - a[0])
    return _top(c0, c1, dt * (db - da))


def _top(c0: Fraction, c1: Fraction, c2: Fraction) -> Fraction:
    """The maximum over s in [0, 1] of c0 + c1 s + c2 s^2."""
    if c2 < 0 < c1 < -2 * c2:
        return c0 - c1 * c1 / (4 * c2)
    return max(c0, c0 + c1 + c2)


def _worst_abs(mechanism: KernelMechanism, law: Loss) -> tuple[Fraction, Fraction]:
    y = [Fraction(v) for v in mechanism.outputs]
    x = [Fraction(v) for v in mechanism.inputs]
    best = Fraction(0)
    unit = max(v.denominator for v in y)  # a power of two
    whole = [int(v * unit) for v in y]
    heads: list[tuple[list[int], list[int]]] = []
    for row in mechanism.table.weights.tolist():  # running sums of mass and of moment, in units
        mass = list(accumulate(row, initial=0))
        moment = list(accumulate((w * v for w, v in zip(row, whole, strict=True)), initial=0))
        heads.append((mass, moment))

    def loss(i: int, j: int, at: Fraction) -> Fraction:
        """Row i's expected |y - at|, with j outputs below."""
        mass, moment = heads[i]
        return ((2 * mass[j] - mass[-1]) * at + Fraction(moment[-1] - 2 * moment[j], unit)) / TOTAL

    j = sum(v <= 0 for v in y)
    for i, (left, right) in enumerate(pairwise(x)):
        at = left
        while at < right:
            to = y[j] if j < len(y) and y[j] < right else right
            best = max(
                best,
                _peak(
                    (loss(i, j, at), loss(i, j, to)),
                    (loss(i + 1, j, at), loss(i + 1, j, to)),
                    ((at - left) / (right - left), (to - left) / (right - left)),
                ),
            )
            at = to
            while j < len(y) and y[j] <= at:
                j += 1
    return best, best


def _worst_squared(mechanism: KernelMechanism, law: Loss) -> tuple[Fraction, Fraction]:
    y = [Fraction(v) for v in mechanism.outputs]
    x = [Fraction(v) for v in mechanism.inputs]
    unit = max(v.denominator for v in y)  # a power of two
    whole = [int(v * unit) for v in y]
    squares = [v * v for v in whole]
    rows = mechanism.table.weights.tolist()
    first = [Fraction(sum(map(mul, row, whole)), unit * TOTAL) for row in rows]
    second = [Fraction(sum(map(mul, row, squares)), unit**2 * TOTAL) for row in rows]
    best = Fraction(0)
    for i in range(len(x) - 1):
        # x = x_i + h t: second moment and mean are linear in t.
        h, m, s = x[i + 1] - x[i], first[i + 1] - first[i], second[i + 1] - second[i]
        c0 = second[i] - 2 * x[i] * first[i] + x[i] ** 2
        c1 = s - 2 * x[i] * m - 2 * h * first[i] + 2 * x[i] * h
        c2 = h * h - 2 * h * m
        best = max(best, _top(c0, c1, c2))
    return best, best


def _worst_power(mechanism: KernelMechanism, law: Loss) -> tuple[Fraction, Fraction]:
    x = np.array(mechanism.inputs)
    pieces = [(i, a, b) for i in range(x.size - 1) for a, b in _quarters(x[i], x[i + 1])]
    known: dict[tuple[int, float], tuple[Fraction, Fraction]] = {}

    def bracket(i: int, at: float) -> tuple[Fraction, Fraction]:
        if (i, at) not in known:
            known[i, at] = _row_loss(mechanism, i, at, law)
        return known[i, at]

    low = rest = Fraction(0)
    for _ in range(24):
        bounds = []
        for i, a, b in pieces:
            left, step = Fraction(float(x[i])), Fraction(float(x[i + 1])) - Fraction(float(x[i]))
            t = (Fraction(a) - left) / step, (Fraction(b) - left) / step
            (a0, a1), (b0, b1) = ((bracket(r, a), bracket(r, b)) for r in (i, i + 1))
            bounds.append(_peak((a0[1], a1[1]), (b0[1], b1[1]), t))
            low = max(low, (1 - t[0]) * a0[0] + t[0] * b0[0], (1 - t[1]) * a1[0] + t[1] * b1[0])
        limit = low * Fraction(1 + 1e-7)  # pieces dropped now or earlier stay below it: low only grows
        open_ = [(piece, bound) for piece, bound in zip(pieces, bounds, strict=True) if bound > limit]
        rest = max((bound for _, bound in open_), default=limit)
        if not open_ or len(known) * len(mechanism.outputs) > TERMS:
            break
        pieces = [half for (i, a, b), _ in open_ for half in ((i, a, (a + b) / 2), (i, (a + b) / 2, b))]
    return low, max(rest, low * Fraction(1 + 1e-7))


def _quarters(a: float, b: float) -> list[tuple[float, float]]:
    cuts = np.linspace(a, b, 5)
    return list(zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True))


def _total(weights: list[int], values: list[Fraction]) -> Fraction:
    """The mean of `values` under a row of the table."""
    return sum((w * v for w, v in zip(weights, values, strict=True)), Fraction(0)) / TOTAL


def _row_loss(mechanism: KernelMechanism, i: int, at: Fraction | float, law: Loss) -> tuple[Fraction, Fraction]:
    """Row i's expected loss at the share `at`, enclosed (exactly for "abs" and "squared")."""
    row, gaps = mechanism.table.weights[i].tolist(), [abs(Fraction(y) - Fraction(at)) for y in mechanism.outputs]
    if law.exponent in (1.0, 2.0):
        exact = _total(row, [d ** int(law.exponent) for d in gaps])
        return exact, exact
    with ctx.workprec(96):
        q, total = enclosures.ball(law.exponent), arb(0)  # type: ignore[arg-type]
        for w, d in zip(row, gaps, strict=True):
            if d and w:
                total += w * enclosures.ball(d) ** q
        total /= TOTAL
        return enclosures.lower(total), enclosures.upper(total)


def _average(mechanism: KernelMechanism, prior: Prior, law: Loss) -> tuple[Fraction, Fraction]:
    """The expected loss at the prior's exact points, each a grid input or between two, averaged."""
    if len(prior) * len(mechanism.outputs) > TERMS:
        raise ValueError(
            f"prior is not allowed: {len(prior)} points and {len(mechanism.outputs)} outputs are too many to add up"
        )
    mechanism.domain.check(list(prior.categories), "prior points")
    grid, low, high = [Fraction(x) for x in mechanism.inputs], Fraction(0), Fraction(0)
    for point, p in zip(prior.categories, prior.exact, strict=True):
        at = (Fraction(point) - Fraction(mechanism.domain.lower)) / mechanism.domain.exact_width
        i = min(bisect_right(grid, at), len(grid) - 1) - 1
        t = (at - grid[i]) / (grid[i + 1] - grid[i])
        for row, share in ((i, p * (1 - t)), (i + 1, p * t)):
            if share:
                a, b = _row_loss(mechanism, row, at, law)
                low, high = low + share * a, high + share * b
    return low, high

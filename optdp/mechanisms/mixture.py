"""Local privacy on an interval from a table: distributions at some inputs, and mixtures of the two nearest in between.

All rows lie between one floor and a multiple of it, and so do their mixtures: the likelihood ratios are the table's. The mixture
is drawn exactly, with a coin of probability s = (x - x_i) / (x_(i+1) - x_i) for the rational number x.

**The value** for a loss L(x, y) that changes by at most a |x - x'| with its input. Where A and B are the expected losses of
the two rows at the centre c of a cell of inputs, that at an input x of the cell is at most (1 - s) A + s B + a |x - c|. Cells are
halved where the largest loss can still lie.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import Seed, Within, as_rng, enclosures, work
from optdp.exact.rounding import COLUMNS, ROWS, Table
from optdp.exact.sampling import LIMB, tossed
from optdp.mechanisms.finite import TableMechanism
from optdp.problem import Average, Interval, LossLike, Objective, Prior, WorstCase, places

#: Cells are halved until what is left is this share of the value, or so many losses have been computed.
CLOSE, PAIRS = 2.0**-13, 2**27
#: Losses that are computed at once.
BLOCK = 2**16
#: A cell takes as long as so many losses, beside its own.
CELL = 64
#: About how many cells the mean under a density is taken over.
CELLS = 2**16
#: Shares of the way between two points are computed within this.
ROUNDING = 2.0**-50


@dataclass(frozen=True, repr=False)
class MixtureMechanism(TableMechanism):
    """At the i-th of some points of an interval the j-th output with probability `weights[i][j] / 2^62`, and in between the
    mixture of the two nearest distributions by the distance from both; beyond the first and the last point, theirs.

    **Arguments:** `domain`: an `optdp.Interval`; `points`: increasing inputs; `outputs`: increasing numbers; `table`: the
    weights, a row for each point, a column for each output.
    """

    domain: Interval
    points: Annotated[tuple[float, ...], Within(least=1, most=ROWS)]
    outputs: Annotated[tuple[float, ...], Within(least=1, most=COLUMNS)]
    table: Table = field(metadata={"saved": "weights"})

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("points", "outputs"):
            if (np.diff(getattr(self, name)) <= 0).any():
                raise ValueError(f"{name} are not allowed: they must be increasing numbers")
        self.domain.check(self.points, "points")
        if self.table.weights.shape != (len(self.points), len(self.outputs)):
            raise ValueError("weights are not allowed: there must be a row for each point, a column for each output")

    def _place(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(the point below, the next one, the latter's share) for each input."""
        low = self._below(x)
        high = np.minimum(low + 1, len(self.points) - 1)
        return low, high, self._shares_at(x, low)

    def _below(self, x: np.ndarray) -> np.ndarray:
        """The point below an input. A cell that has no point inside is placed by its left end: floats may round its centre to the
        right one.
        """
        return np.clip(np.searchsorted(self.points, x, side="right") - 1, 0, max(len(self.points) - 2, 0))

    def _shares_at(self, x: np.ndarray, low: np.ndarray) -> np.ndarray:
        """The share of the next point at an input between this point and that one, or at one of them."""
        points, high = np.array(self.points), np.minimum(low + 1, len(self.points) - 1)
        step = np.where(high > low, points[high] - points[low], 1.0)
        return np.asarray(np.clip((x - points[low]) / step, 0.0, 1.0) * (high > low))

    def shares(self, x: np.ndarray) -> np.ndarray:
        """The share of the point above in the mixture."""
        return self._place(x)[2]

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, source = np.asarray(self.domain.check(x), dtype=float), as_rng(rng)
        low, high, share = self._place(inputs.reshape(-1))
        toss = source.integers(0, LIMB, size=low.size)
        rows = np.where((toss / LIMB < share) | (share == 1), high, low)  # a toss next to 2^62 is 1 as a float
        # Where floats do not decide, rationals do.
        for k in np.flatnonzero(np.abs(toss / LIMB - share) <= ROUNDING).tolist():
            value, a, b = (Fraction(v) for v in (inputs.flat[k], self.points[low[k]], self.points[high[k]]))
            if a < value < b:
                rows[k] = high[k] if tossed(int(toss[k]), (value - a) / (b - a), source) else low[k]
        return np.asarray(self.atoms()[self.table.draw(rows, source)].reshape(inputs.shape))

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        low, high, share = self._place(np.asarray(self.domain.check(x), dtype=float))
        column, rows = places(self.outputs, y), self.table.rows
        safe = np.maximum(column, 0)
        return np.where(column >= 0, (1 - share) * rows[low, safe] + share * rows[high, safe], 0.0)

    def atoms(self) -> np.ndarray:
        return np.array(self.outputs)

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        """The least and the largest output."""
        return self.outputs[0], self.outputs[-1]

    def mean(self, x: ArrayLike) -> np.ndarray:
        inputs = np.asarray(self.domain.check(x), dtype=float)
        return inputs + self._bias(inputs)

    def _bias(self, inputs: np.ndarray) -> np.ndarray:
        low, high, share = self._place(inputs)
        means = self.table.rows @ (self.atoms() - self.domain.lower)
        return np.asarray((1 - share) * means[low] + share * means[high] - (inputs - self.domain.lower))

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        law, inputs = self._loss(loss), np.asarray(self.domain.check(x), dtype=float)
        outputs, rows, step = self.atoms(), self.table.rows, max(1, BLOCK // len(self.outputs))
        found = np.empty(inputs.size)
        for start in range(0, inputs.size, step):
            some = inputs.reshape(-1)[start : start + step]
            low, high, share = self._place(some)
            losses = law.of(some[:, None], outputs)
            both = [np.einsum("ij,ij->i", losses, rows[part]) for part in (low, high)]
            found[start : start + step] = (1 - share) * both[0] + share * both[1]
        return found.reshape(inputs.shape)

    def _kinks(self) -> list[float]:
        return sorted({*self.points, *self.outputs})

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(what is attained, what is not exceeded), provided that the loss changes as little as it declares."""
        if not isinstance(objective, WorstCase | Average) or objective.loss.rates is None:
            return super().enclose(objective)
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(objective, WorstCase):
                low, high = self._largest(objective.loss)
            elif isinstance(objective.prior, Prior):
                low, high = self._mean_at(objective.loss, objective.prior)
            else:
                low, high = self._mean(objective)
        if not np.isfinite(high):
            raise self._overflow(objective.loss)
        # Sums of products of numbers >= 0: every rounding is relative, but for those that `sides` makes up for.
        slack = Fraction((len(self.outputs) + 64) * 2.0**-50)
        below = Fraction(low) - slack * Fraction(high) - Fraction(2 * len(self.outputs) * enclosures.TINY)
        return max(0.0, enclosures.round_down(below)), enclosures.round_up(Fraction(high) * (1 + slack))

    def sides(self, loss: Any, x: np.ndarray, below: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The expected losses at increasing inputs under the rows of the points `below` (if not given, those that are) and above.

        They are not too small even where products are below all floats, but 0 where all losses are.
        """
        step, found = max(1, BLOCK // len(self.outputs)), []
        lows = self._below(x) if below is None else below
        outputs, rows = self.atoms(), self.table.rows
        work.count(0.01 * x.size * (len(self.outputs) + CELL))
        for start in range(0, x.size, step):
            some, low = x[start : start + step], lows[start : start + step]
            losses = loss.table(some, outputs)
            lost = losses.any(axis=1) * (len(self.outputs) * enclosures.TINY)
            both_rows = low, np.minimum(low + 1, len(self.points) - 1)
            found.append([np.einsum("ij,ij->i", losses, rows[part]) + lost for part in both_rows])
        both = np.concatenate(found, axis=1) if found else np.zeros((2, 0))
        if not np.isfinite(both).all():
            raise self._overflow(loss)
        return both[0], both[1]

    def _overflow(self, loss: Any) -> ValueError:
        return ValueError(f"loss = {loss.name!r} is not allowed on {self.domain}: it overflows; use smaller units")

    def _edges(self, cells: int) -> np.ndarray:
        """The points, the ends of the domain, and about so many more inputs spread evenly between them."""
        grid = np.linspace(self.domain.lower, self.domain.upper, cells + 1)
        ends = [self.domain.lower, self.domain.upper]
        inside = grid[(grid > ends[0]) & (grid < ends[1])]
        return np.unique(np.concatenate([ends, self.points, inside]))

    def _largest(self, loss: Any) -> tuple[float, float]:
        """The largest expected loss."""
        edges = self._edges(4 * len(self.points))
        left, right = edges[:-1], edges[1:]
        attained, closed, done = 0.0, 0.0, 0
        while left.size:
            centre = left / 2 + right / 2
            low = self._below(left)
            first, second = self.sides(loss, centre, low)
            done += centre.size * (len(self.outputs) + CELL)
            share = self._shares_at(centre, low)
            attained = max(attained, float(((1 - share) * first + share * second).max()))
            reach = np.maximum(centre - left, right - centre) * (1 + 2.0**-50)
            # Which end of the cell is worse for the mixture; shares are within a rounding of what they are.
            ends = [self._shares_at(side, low) for side in (left, right)]
            mixed = np.maximum(*((1 - s) * first + s * second for s in ends))
            top = mixed + 2 * ROUNDING * np.maximum(first, second) + _wide(loss, reach)
            open_ = (top > attained * (1 + CLOSE)) & (left < centre) & (centre < right)
            if done + 2 * int(open_.sum()) * (len(self.outputs) + CELL) > PAIRS:
                open_[:] = False
            closed = max(closed, float(top[~open_].max(initial=0.0)))
            left, right = (np.stack(pair, axis=1)[open_].reshape(-1) for pair in ((left, centre), (centre, right)))
        return attained, max(attained, closed)

    def _mean_at(self, loss: Any, prior: Prior) -> tuple[float, float]:
        """The mean under a prior of points."""
        points = np.array(prior.categories, dtype=float)
        order = np.argsort(points)
        first, second = self.sides(loss, points[order])
        share = self._place(points[order])[2]
        found = ((1 - share) * first + share * second) @ np.array(prior.probabilities)[order]
        error = (2 * ROUNDING + points.size * 2.0**-52) * float(np.maximum(first, second).max(initial=0.0))
        return float(found) - error, float(found) + error

    def _mean(self, objective: Average) -> tuple[float, float]:
        """The mean under a density: its cells with the centre's losses, and what these may differ by."""
        domain = self.domain
        edges = self._edges(CELLS)
        centre = edges[:-1] / 2 + edges[1:] / 2
        low = self._below(edges[:-1])
        high = np.minimum(low + 1, len(self.points) - 1)
        first, second = self.sides(objective.loss, centre, low)

        def shares(x: np.ndarray) -> np.ndarray:
            return np.asarray(np.clip((x - domain.lower) / domain.width, 0.0, 1.0))

        mass, apart, mean = objective.cells(domain, shares(edges), shares(centre))
        # The mixture is linear in the cell: its mean is that at the mean input.
        points = shares(np.array(self.points))
        step = points[high] - points[low]
        known = step > 0  # else of one point, or of two that are too near for floats
        step = np.where(known, step, 1.0)
        part = np.clip((mean - points[low] * mass) / step, 0.0, mass) * known
        found = float((first * (mass - part) + second * part).sum())
        # Masses are within 2^-51, and shares of inputs within 2^-51: in each cell. A part is one of the mass.
        wrong = np.where(
            known, np.minimum(mass + 2.0**-50, 2.0**-48 / step), np.where(high > low, mass + 2.0**-50, 0.0)
        )
        error = centre.size * 2.0**-48 * float(np.maximum(first, second).max())
        error += float((wrong * np.abs(second - first)).sum()) * (1 + 2.0**-20)
        wide = float(_wide(objective.loss, domain.width * apart * (1 + 2.0**-40))) + error
        return found - wide, found + wide

    def __repr__(self) -> str:
        size = f"{len(self.points)} points, {len(self.outputs)} outputs"
        return f"MixtureMechanism on {self.domain}: {size}; {self._tail()}"


def _wide(loss: Any, reach: Any) -> Any:
    """By how much the loss changes at most for inputs that are so far apart; not too small."""
    return loss.rates[0] * reach + (enclosures.TINY if loss.rates[0] else 0.0)

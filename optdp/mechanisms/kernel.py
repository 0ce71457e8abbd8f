"""Kernel mechanisms: a floor that varies over the outputs, and a window of fixed floor mass that follows the input."""

from __future__ import annotations

import functools
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Annotated, Any, Literal

import numpy as np
from flint import arb, arb_poly, ctx, fmpq
from numpy.typing import ArrayLike

from optdp.exact import enclosures, require, sweep, work
from optdp.exact.check import Check
from optdp.exact.enclosures import ball
from optdp.exact.fields import Within
from optdp.exact.numbers import Number
from optdp.exact.sampling import Seed, as_rng, coin
from optdp.exact.sweep import Branches, Cell, Limit, Sweep, exact
from optdp.mechanisms.piecewise import CELLS, COINS, CellWindow, least_floor
from optdp.problem.domains import DomainLike, Interval, as_interval
from optdp.problem.losses import LossLike
from optdp.problem.objectives import Average, Objective, WorstCase
from optdp.problem.priors import Prior
from optdp.problem.privacy import LDP, Privacy

#: Most pieces of a floor.
PIECES = 2**15
#: Bits of the table that leads from a cell to its piece.
GUIDE = 14

Rule = Literal["ends", "mean"]


@dataclass(frozen=True, repr=False)
class KernelMechanism(CellWindow):
    """A piecewise mechanism seen through a nondecreasing map Q of [0, 1] to the outputs.

    With probability `floor_mass` the output is Q(U), U uniform; else Q(U) for U uniform over a window [a, a + w] that the
    input places. So the floor is any measure on the outputs (Q its quantile function), and the likelihood ratios are those of
    a piecewise mechanism with a window of the same width, wherever the window is: every mechanism whose rows are the best
    for their floor has this form.

    **Arguments:**

    - `domain`: an interval. Outputs are written as shares of it: 0 is the lower end, 1 the upper; they may lie beyond.
    - `cells`: the pieces of Q in 2^-50, positive integers with sum 2^50.
    - `lows`, `highs`: Q rises linearly from `lows[k]` to `highs[k]` over piece k (an atom, if they are equal).
    - `width_cells`: the window's width w in 2^-50; `floor_coins`: the floor's mass in 2^-124.
    - `rule`: where the window of an input x starts. "ends": so that x divides the distance of the window's ends as `share` says,
      x = (1 - share) Q(a) + share Q(a + w); "mean": so that the mean of the output is x.
    - `share`: in [0, 1]; 1/2 is best for losses of the distance, tau for `Pinball(tau)`.

    Use `KernelMechanism.private(eps, ...)` to build one from real numbers.

    **Exactness.** Masses and ratios are exact rationals; `randomize` draws a cell of 2^-50 with integers alone and names it by Q
    at its middle. Values and means are those of the distribution on the continuum, from which outputs differ by less than half
    a cell of their piece; inputs are read to 2^-50 of the floor's mass.
    """

    domain: Interval
    cells: Annotated[tuple[int, ...], Within(1, CELLS, 1, PIECES)]
    lows: Annotated[tuple[float, ...], Within(least=1, most=PIECES)]
    highs: Annotated[tuple[float, ...], Within(least=1, most=PIECES)]
    width_cells: Annotated[int, Within(1, CELLS)]
    floor_coins: Annotated[int, Within(1, COINS)]
    rule: Rule = "ends"
    share: Annotated[float, Within(0.0, 1.0)] = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", as_interval(self.domain, "a kernel mechanism"))
        for name in ("cells", "lows", "highs"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        low, high = np.array(self.lows, dtype=float), np.array(self.highs, dtype=float)
        if not len(self.cells) == low.size == high.size or sum(self.cells) != CELLS or min(self.cells, default=0) < 1:
            raise ValueError(
                "cells are not allowed: they must be positive, sum to 2^50, and have one of `lows` and `highs` each"
            )
        if not np.isfinite([low, high]).all() or (low > high).any() or (high[:-1] > low[1:]).any():
            raise ValueError("lows and highs are not allowed: Q must not decrease")
        require.integer("width_cells", self.width_cells, low=1, high=CELLS)
        require.integer("floor_coins", self.floor_coins, low=1, high=COINS)
        require.choice("rule", self.rule, ("ends", "mean"))
        require.real("share", self.share, low=0.0, high=1.0)

    @classmethod
    def private(
        cls, eps: Number, masses: ArrayLike, lows: ArrayLike, highs: ArrayLike, window: float,
        domain: DomainLike = (0.0, 1.0), rule: Rule = "ends", share: float = 0.5,
    ) -> KernelMechanism:  # fmt: skip
        """The eps-LDP mechanism with this floor (`masses` of its pieces, up to a factor), a window with the share `window` of it,
        and the least mass under the floor.
        """
        share_of = np.asarray(masses, dtype=float)
        running = np.cumsum(share_of)
        ends = np.round(running / running[-1] * CELLS).astype(np.int64)
        if np.array_equal(share_of, share_of[::-1]):  # and so are the cells
            count = ends.size // 2
            ends[ends.size - 1 - count : -1] = CELLS - ends[:count][::-1]
        cells = np.diff(ends, prepend=0)
        keep = cells > 0
        width = min(max(round(Fraction(window) * CELLS), 1), CELLS)
        return cls(
            as_interval(domain, "a kernel mechanism"), tuple(cells[keep].tolist()),
            tuple(np.asarray(lows, dtype=float)[keep].tolist()), tuple(np.asarray(highs, dtype=float)[keep].tolist()),
            width, least_floor(eps, width), rule, share,
        )  # fmt: skip

    # Sampling and probabilities ---------------------------------------------------------------------------------

    @cached_property
    def _edges(self) -> np.ndarray:
        """Where pieces start, in cells, and 2^50."""
        return np.array([0, *accumulate(self.cells)], dtype=np.int64)

    @cached_property
    def _guide(self) -> np.ndarray:
        """The piece of the first cell of each of 2^GUIDE equal groups."""
        return np.searchsorted(self._edges, np.arange(2**GUIDE) * (CELLS >> GUIDE), side="right") - 1

    def _piece(self, cell: np.ndarray) -> np.ndarray:
        """The piece of each cell: the guide's, and a few steps on where its group has several."""
        piece = self._guide[cell >> (50 - GUIDE)]
        late = np.flatnonzero(cell >= self._edges[1:][piece])
        while late.size:
            piece[late] += 1
            late = late[cell[late] >= self._edges[1:][piece[late]]]
        return piece

    @cached_property
    def _line(self) -> tuple[np.ndarray, np.ndarray]:
        """(offset, slope): a cell's output is offset + slope (cell + 1/2) on its piece, in units of the domain."""
        low = self.domain.lower + self.domain.width * np.array(self.lows)
        slope = self.domain.width * (np.array(self.highs) - self.lows) / np.array(self.cells)
        return low, slope

    def _quantile(self, cell: np.ndarray) -> np.ndarray:
        flat = cell.reshape(-1)
        piece = self._piece(flat)
        low, slope = self._line
        return np.asarray(low[piece] + slope[piece] * ((flat - self._edges[piece]) + 0.5)).reshape(cell.shape)

    @cached_property
    def _windows(self) -> list[tuple[int, int, fmpq, fmpq, fmpq, fmpq]]:
        """(a, a', Q(a), Q(a'), Q(a + w), Q(a' + w)) in cells and exact shares: between a and a' both ends move linearly."""
        work.count(len(self.cells) * (10 + 40 * work.flint(self._words + 1)))
        edges = self._edges.tolist()
        last = CELLS - self.width_cells
        marks = {0, last, *edges, *(e - self.width_cells for e in edges)}
        starts = sorted(a for a in marks if 0 <= a <= last)
        out = []
        for a, b in pairwise(starts):
            i, j = bisect_right(edges, a) - 1, bisect_right(edges, a + self.width_cells) - 1
            out.append(
                (
                    a,
                    b,
                    self._at(i, a),
                    self._at(i, b),
                    self._at(j, a + self.width_cells),
                    self._at(j, b + self.width_cells),
                )
            )
        if not out:  # the window is everything
            out.append((0, 0, exact(self.lows[0]), exact(self.lows[0]), exact(self.highs[-1]), exact(self.highs[-1])))
        return out

    def _at(self, piece: int, cell: int) -> fmpq:
        """Q on a piece, or at its ends, in exact shares."""
        low, high = exact(self.lows[piece]), exact(self.highs[piece])
        return low + (high - low) * fmpq(cell - int(self._edges[piece]), self.cells[piece])

    @cached_property
    def _words(self) -> float:
        """Words of the outputs, for counted work."""
        return work.words((*self.lows, *self.highs))

    @cached_property
    def _targets(self) -> list[tuple[fmpq, fmpq]]:
        """The inputs, as shares, whose windows start at the two ends of each of `_windows`."""
        work.count(len(self._windows) * 8 * work.flint(self._words + 3))
        if self.rule == "ends":
            s = exact(self.share)
            return [((1 - s) * qa + s * ra, (1 - s) * qb + s * rb) for _, _, qa, qb, ra, rb in self._windows]
        found = []
        at = self._mean_from(0)
        for a, b, qa, qb, ra, rb in self._windows:
            end = at + self._growth * fmpq(b - a, CELLS) * (ra - qa + rb - qb) / 2
            found.append((at, end))
            at = end
        return found

    @property
    def _growth(self) -> fmpq:
        """(1 - M)/w: the density of the window beyond the floor's, per unit of floor."""
        return exact((1 - self.exact_floor_mass) / self.exact_window)

    def _mean_from(self, start: int) -> fmpq:
        """E[Y] with the window at the first cell (`start` = 0), in exact shares."""
        mass = exact(self.exact_floor_mass)
        twice = [exact(a) + exact(b) for a, b in zip(self.lows, self.highs, strict=True)]
        whole = sum((m * c for m, c in zip(twice, self.cells, strict=True)), fmpq(0)) / (2 * CELLS)
        near, left = fmpq(0), self.width_cells
        for k, count in enumerate(self.cells):
            part = min(count, left)
            near += part * (exact(self.lows[k]) + self._at(k, int(self._edges[k]) + part)) / 2
            left -= part
            if not left:
                break
        return mass * whole + (1 - mass) * near / self.width_cells

    @cached_property
    def _map(self) -> tuple[np.ndarray, ...]:
        """For floats: inputs x and starts a at both ends of each stretch, and how fast the mean moves there."""
        x = np.array([[_float(p), _float(q)] for p, q in self._targets])
        a = np.array([w[:2] for w in self._windows], dtype=float)
        rate = np.array([[_float(ra - qa), _float(rb - qb)] for _, _, qa, qb, ra, rb in self._windows])
        return x[:, 0], x[:, 1], a[:, 0], a[:, 1], rate[:, 0], rate[:, 1]

    def _first_cell(self, inputs: np.ndarray) -> np.ndarray:
        """The first cell of each input's window."""
        x = (inputs - self.domain.lower) / self.domain.width
        left, right, start, end, r0, r1 = self._map
        k = np.clip(np.searchsorted(left, x, side="right") - 1, 0, left.size - 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (x - left[k]) / (right[k] - left[k])
            if self.rule == "mean":  # r0 t + (r1 - r0) t^2/2 is the share t of (r0 + r1)/2
                c = t * (r0[k] + r1[k]) / 2
                t = 2 * c / (r0[k] + np.sqrt(np.maximum(r0[k] ** 2 + 2 * (r1[k] - r0[k]) * c, 0.0)))
        t = np.clip(np.nan_to_num(t, nan=0.0), 0.0, 1.0)
        cell = start[k] + t * (end[k] - start[k])
        return np.clip(cell.astype(np.int64), 0, CELLS - self.width_cells)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs = self.domain.check(x)
        rng = as_rng(rng)
        cell = rng.integers(0, CELLS, size=inputs.shape)
        within = ~coin(self.floor_coins, COINS, inputs.shape, rng)
        near = self._first_cell(inputs) + rng.integers(0, self.width_cells, size=inputs.shape)
        return self._quantile(np.where(within, near, cell))

    @cached_property
    def _ends(self) -> tuple[np.ndarray, np.ndarray]:
        width = self.domain.width
        return self.domain.lower + width * np.array(self.lows), self.domain.lower + width * np.array(self.highs)

    def density(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        outputs, inputs = np.broadcast_arrays(np.asarray(y, dtype=float), self.domain.check(x))
        low, high = self._ends
        k = np.clip(np.searchsorted(low, outputs, side="right") - 1, 0, low.size - 1)
        span = high[k] - low[k]
        inside = (outputs >= low[k]) & (outputs <= high[k]) & (span > 0)
        with np.errstate(divide="ignore", invalid="ignore"):
            place = self._edges[k] + np.array(self.cells)[k] * ((outputs - low[k]) / span)
            floor = self.floor_mass * np.array(self.cells)[k] / CELLS / span
        first = self._first_cell(inputs)
        near = (place >= first) & (place <= first + self.width_cells)
        return np.where(inside, floor * np.where(near, float(self.exact_ratio), 1.0), 0.0)

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        outputs, inputs = np.broadcast_arrays(np.asarray(y, dtype=float), self.domain.check(x))
        first, total = self._first_cell(inputs), np.zeros(outputs.shape)
        low, high = self._ends
        for k in np.flatnonzero(low == high):
            over = np.minimum(self._edges[k + 1], first + self.width_cells) - np.maximum(self._edges[k], first)
            share = self._mix(self.cells[k] / CELLS, np.maximum(over, 0) / self.width_cells)
            total = total + np.where(outputs == low[k], share, 0.0)
        return np.asarray(total)

    def atoms(self) -> np.ndarray:
        low, high = self._ends
        return np.unique(low[low == high])

    def tables(self) -> dict[str, Any]:
        """What `randomize` computes with for floats: integers, and floats that are rounded once."""
        found = {"edges": self._edges[:-1].tolist(), "places": self._places, "sent": self._sent}
        if self.rule == "mean":
            grids = [self._grid(b - a) for a, b, *_ in self._windows]
            return found | {"starts": [a for a, *_ in self._windows], "grids": grids}
        return found | {"slopes": self._line[1].tolist(), "stretches": [part.tolist() for part in self._map[:4]]}

    def floor(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(masses, lows, highs): the pieces of the floor with their outputs; masses sum to `floor_mass`."""
        return self.floor_mass * np.array(self.cells) / CELLS, *self._ends

    def favoured(self, x: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """The ends of each input's window: the least and the largest output that it favours."""
        first = self._first_cell(self.domain.check(x))
        return self._quantile(first), self._quantile(first + (self.width_cells - 1))

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        return float(self._ends[0][0]), float(self._ends[1][-1])

    def exact_support(self) -> tuple[Fraction, Fraction]:
        low, width = Fraction(self.domain.lower), self.domain.exact_width
        return low + width * Fraction(self.lows[0]), low + width * Fraction(self.highs[-1])

    def mean(self, x: ArrayLike) -> np.ndarray:
        inputs = self.domain.check(x)
        low, high = self._ends
        middle, cells = (low + high) / 2, np.array(self.cells)
        before = np.concatenate([[0.0], np.cumsum(middle * cells)])

        def moment(cell: np.ndarray) -> np.ndarray:
            k = np.clip(np.searchsorted(self._edges, cell, side="right") - 1, 0, cells.size - 1)
            t = cell - self._edges[k]
            return np.asarray(before[k] + t * (low[k] + (high[k] - low[k]) * t / cells[k] / 2))

        first = self._first_cell(inputs)
        near = (moment(first + self.width_cells) - moment(first)) / self.width_cells
        return np.asarray(self._mix(before[-1] / CELLS, near))

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        inputs, law = self.domain.check(x), self._loss(loss)
        if law.form != "distance":
            return super().expected_loss(inputs, law)
        (low, high), cells, out = self._ends, np.array(self.cells), []
        for part in np.array_split(inputs.reshape(-1), inputs.size * cells.size // 2**20 + 1):
            first, at = self._first_cell(part)[:, None], part[:, None]
            # The share of each piece under the window, and between which outputs it lies there.
            a = np.clip(first - self._edges[:-1], 0, cells)
            b = np.clip(first + self.width_cells - self._edges[:-1], 0, cells)
            slope = (high - low) / cells
            near = _between(law, low + slope * a, low + slope * b, at) * (b - a) / self.width_cells
            far = _between(law, low + 0 * at, high + 0 * at, at) * cells / CELLS
            out.append(self._mix(far.sum(axis=1), near.sum(axis=1)))
        return np.concatenate(out).reshape(inputs.shape)

    # Exact statements -------------------------------------------------------------------------------------------

    @property
    def exact_ratio(self) -> Fraction:
        """The largest likelihood ratio, exactly: window over floor."""
        return self._exact_ratio

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        """Exact tests: the mass is 1, and likelihood ratios keep the guarantee."""
        if not isinstance(privacy, LDP):
            return super().check_privacy(privacy)
        total = sum(self.cells)
        return [
            privacy.check(self.exact_ratio),
            Check("mass", total == CELLS, f"the floor's pieces sum to {total} of 2^50"),
        ]

    def check_unbiased(self) -> Check:
        """Whether E[Y|x] = x for all x: by the rule, if windows reach far enough, which is decided in exact rationals."""
        if self.rule != "mean":
            return Check("unbiased", False, "windows are placed by their ends")
        low, high = self._targets[0][0], self._targets[-1][1]
        return Check(
            "unbiased", low <= 0 and high >= 1,
            f"every mean in the domain is reached: they go from share {_float(low):.9g} to {_float(high):.9g}",
        )  # fmt: skip

    def _sweep(self, branches: Branches) -> Sweep:
        edges = [fmpq(int(e), CELLS) for e in self._edges]
        cells = []
        for k, (a, b) in enumerate(pairwise(edges)):
            low, high = exact(self.lows[k]), exact(self.highs[k])
            slope = (high - low) / (b - a)
            cells.append(Cell(a, b, (low - slope * a, slope), (fmpq(1),)))
        return Sweep(cells, branches, 1, 3 * self._words + 1)

    def _stretches(self) -> Iterator[tuple[fmpq, fmpq, int, int]]:
        """Inputs from x to x' (shares) whose windows start from a to a' (cells), linearly or by their means, over [0, 1]."""
        before = (fmpq(0), 0)
        for (x0, x1), (a, b, *_) in zip(self._targets, self._windows, strict=True):
            if x0 > before[0]:
                yield before[0], x0, a, a  # Q jumps here: the window stays
            yield x0, x1, a, b
            before = max(x1, before[0]), b
        if before[0] < 1:
            yield before[0], fmpq(1), before[1], before[1]

    @cached_property
    def _symmetric(self) -> bool:
        """Whether inputs x and 1 - x have outputs Y and 1 - Y, exactly."""
        even = self.rule == "mean" or self.share == 0.5
        pairs = zip(self.lows, reversed(self.highs), strict=True)
        return even and self.cells == self.cells[::-1] and all(exact(a) + exact(b) == 1 for a, b in pairs)

    def _losses(self, branches: Branches, top: fmpq) -> Iterator[tuple[fmpq, fmpq, arb_poly, arb_poly]]:
        """(x, x', x(s), J(s)): the expected loss on stretches of inputs that cover [0, top], polynomials in s from 0 to 1."""
        over, mass, growth = self._sweep(branches), arb(exact(self.exact_floor_mass)), arb(self._growth)
        number = work.flint(2 * self._words + work.words(branches.knots))
        work.count(2 * len(self.cells) * len(over.offsets) * 8 * number)
        marks = sorted({q - o for q in (*over.lows, *over.highs) for o in over.offsets})
        between = 0 if self.rule == "mean" else bisect_left(marks, top) - bisect_right(marks, fmpq(0))
        work.count((len(self._windows) + between) * (over.each + 20 * number))
        for x0, x1, a, b in self._stretches():
            if x1 <= 0 or x0 >= top or x0 == x1:
                continue
            curved = self.rule == "mean" and a != b
            if curved:
                cuts = [(fmpq(0), fmpq(1))]
            else:
                inner = marks[bisect_right(marks, max(x0, fmpq(0))) : bisect_right(marks, min(x1, top))]
                cuts = [((p - x0) / (x1 - x0), (q - x0) / (x1 - x0))
                        for p, q in sweep.pieces(inner, max(x0, fmpq(0)), min(x1, top))]  # fmt: skip
            for s0, s1 in cuts:
                t0, t1 = (a + (b - a) * s0) / CELLS, (a + (b - a) * s1) / CELLS
                if curved:
                    v, crossings, span = self._mean_curve(x0, a), list[Limit](), None
                else:
                    p, q = x0 + (x1 - x0) * s0, x0 + (x1 - x0) * s1
                    v, crossings, span = sweep.line(p, q), over.crossings(p, q), (p, q)
                lows, highs = over.starts, [*over.starts[1:], fmpq(1)]
                left, right = (over.where(t0 + w, t1 + w, lows, highs) for w in (fmpq(0), exact(self.exact_window)))
                far = over.integral(v, over.first, over.last, crossings, span)
                near = over.integral(v, left, right, crossings, span)
                loss = far * mass + near * growth
                if curved:  # the part of it within [0, top]
                    p, q = max(x0, fmpq(0)), min(x1, top)
                    a0, a1 = _place(x0, x1, v, p), _place(x0, x1, v, q)
                    if (p, q) != (x0, x1):
                        within = arb_poly([a0, a1 - a0])
                        v, loss = v(within), loss(within)
                yield p, q, v, loss

    def _mean_curve(self, x0: fmpq, a: int) -> arb_poly:
        """The mean of the output while the window's start goes on from a to the next mark, a quadratic polynomial in s."""
        _, b, qa, qb, ra, rb = self._windows[bisect_left(self._windows, a, key=lambda window: window[0])]
        scale = self._growth * fmpq(b - a, CELLS)
        return arb_poly([arb(x0), arb(scale * (ra - qa)), arb(scale * (rb - qb - ra + qa) / 2)])

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(low, high) proven to contain the worst-case expected loss over all inputs, or the average one under a prior.

        Along a stretch of inputs the expected loss is a polynomial in the place (unbiased: in the window's start), with
        coefficients in balls; the largest value is found by Bernstein coefficients. A loss that is not piecewise polynomial is
        replaced by pieces above it and below it.
        """
        if not isinstance(objective, WorstCase | Average):
            return super().enclose(objective)
        law, unit = objective.loss, self.domain.exact_width
        far = Fraction(2 ** max(0, math.ceil(max(self.highs[-1], 1 - self.lows[0])).bit_length()))
        if self.lows[0] >= 0 and self.highs[-1] <= 1:
            far = Fraction(1)
        below, above = law.branches(unit * far, True), law.branches(unit * far, False)
        if below is None or above is None or (self.rule == "mean" and (below.knots or above.knots)):
            return super().enclose(objective)
        ends = [below] if below == above else [below, above]
        with ctx.workprec(max(e.bits for e in ends)):
            found = [self._value(objective, e.stretched(far)) for e in ends]
            return enclosures.round_down(found[0]), enclosures.round_up(found[-1])

    def _jumps(self, branches: Branches) -> dict[fmpq, arb]:
        """Where the loss jumps at atoms: by how much the expected loss at single inputs may exceed its limits there."""
        found: dict[fmpq, arb] = {}
        pairs = zip(branches.knots, branches.rows, branches.rows[1:], strict=False)
        heights = [abs(sweep.horner(a, k) - sweep.horner(b, k)) for k, a, b in pairs]
        if not any(heights):
            return found
        most = ball(self.exact_ratio * self.exact_floor_mass / CELLS)
        for low, high, cells in zip(self.lows, self.highs, self.cells, strict=True):
            for knot, height in zip(branches.knots, heights, strict=True):
                x = exact(low) - exact(knot)
                if low == high and height and 0 <= x <= 1:
                    found[x] = found.get(x, arb(0)) + (most * cells).min(arb(1)) * ball(height)
        return found

    def _value(self, objective: WorstCase | Average, branches: Branches) -> arb:
        half = isinstance(objective, WorstCase) and self._symmetric and branches.even
        stretches = list(self._losses(branches, fmpq(1, 2) if half else fmpq(1)))
        if isinstance(objective, Average):
            if isinstance(objective.prior, Prior):
                low, width = Fraction(self.domain.lower), self.domain.exact_width
                points = [
                    (exact((Fraction(p) - low) / width), c)
                    for p, c in zip(objective.prior.categories, objective.prior.exact, strict=True)
                ]
                work.count(len(points) * (20 + 0.2 * len(stretches)))
                jumps = self._jumps(branches)
                return sum((ball(c) * (_evaluate(stretches, x) + jumps.get(x, arb(0))) for x, c in points), arb(0))
            total = arb(0)
            prior = [
                (exact(a), exact(b), arb_poly([ball(c) for c in row])) for a, b, row in objective.density(self.domain)
            ]
            terms = max(len(row) for *_, row in prior) + max((len(loss) for *_, loss in stretches), default=0)
            pairs = len(stretches) + len(prior)  # that overlap
            terms *= 2 if self.rule == "mean" else 1
            work.count(len(stretches) * len(prior) + 0.4 * pairs * sweep.integration(terms, terms))
            for p, q, v, loss in stretches:
                for start, end, row in prior:
                    low, high = max(p, start), min(q, end)
                    if low < high:
                        primitive = (row(v) * loss * v.derivative()).integral()
                        total += primitive(_place(p, q, v, high)) - primitive(_place(p, q, v, low))
            return total
        best: arb | None = None
        for _, _, _, loss in sorted(stretches, key=lambda piece: -float(piece[3](arb(0.5)).mid())):
            top = sweep.most(loss, abs(loss(arb(0.5))) * 2.0**-40, best)
            best = top if best is None else best.max(top)
        assert best is not None
        for x, more in self._jumps(branches).items():
            sides = [loss(_place(p, q, v, x)) for p, q, v, loss in stretches if p <= x <= q]
            best = best.max(functools.reduce(arb.max, sides) + more) if sides else best
        return best

    def worst_input(self, loss: LossLike = "abs") -> float:
        law = self._loss(loss)
        inner = np.unique(np.clip(np.concatenate(self._map[:2]), 0.0, 1.0))
        cuts = np.unique(np.concatenate([[0.0, 1.0], inner]))
        points = np.unique(np.concatenate([cuts, (cuts[:-1] + cuts[1:]) / 2]))
        points = np.clip(self.domain.lower + self.domain.width * points, self.domain.lower, self.domain.upper)
        return float(points[int(np.argmax(self.expected_loss(points, law)))])

    def __repr__(self) -> str:
        low, high = self.support()
        return (
            f"KernelMechanism on {self.domain}: {len(self.cells)} pieces of floor in [{low:.6g}, {high:.6g}], window with the "
            f"share {float(self.exact_window):.6g} of it; eps = {self.privacy():.6g}"
        )


def _float(q: fmpq) -> float:
    return float(Fraction(int(q.p), int(q.q)))


def _between(law: Any, low: np.ndarray, high: np.ndarray, x: np.ndarray) -> np.ndarray:
    """The mean of L(|y - x|) over y in [low, high]."""

    def primitive(d: np.ndarray) -> np.ndarray:
        return np.asarray(np.sign(d) * law.integral(np.abs(d)))

    span = high - low
    flat = span <= 1e-9 * (np.abs(low - x) + np.abs(high - x))
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = (primitive(high - x) - primitive(low - x)) / span
    return np.where(flat, law(np.abs((low + high) / 2 - x)), mean)


def _evaluate(stretches: list[tuple[fmpq, fmpq, arb_poly, arb_poly]], x: fmpq) -> arb:
    """The expected loss at x, from the stretch that contains it."""
    p, q, v, loss = next(piece for piece in stretches if piece[0] <= x <= piece[1])
    return loss(_place(p, q, v, x))


def _place(p: fmpq, q: fmpq, v: arb_poly, x: fmpq) -> arb:
    """Where the curve v, which goes from p at s = 0 to q at s = 1 and increases, reaches x."""
    if v.degree() <= 1 or x in (p, q):
        return arb((x - p) / (q - p))
    a, b, c = v[2], v[1], v[0] - arb(x)  # a s^2 + b s + c = 0
    return -2 * c / (b + (b * b - 4 * a * c).max(arb(0)).sqrt())


def two_point(eps: Number, domain: DomainLike = (0.0, 1.0)) -> KernelMechanism:
    """Outputs at the shares 1/(1 + E) and E/(1 + E), the upper one with probability linear in x between the same two numbers.

    The best of all eps-LDP mechanisms for the worst-case squared error if eps <= ln(3 + 2 sqrt 2), with the value
    width^2 E/(1 + E)^2: two atoms of the floor, and a window of half of it.
    """
    share = float(1 / (1 + enclosures.exp_below(require.exact_epsilon(eps))))
    return KernelMechanism.private(eps, [1.0, 1.0], [share, 1 - share], [share, 1 - share], 0.5, domain)

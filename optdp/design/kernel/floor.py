"""Floors in floats: measures with piecewise linear densities and atoms, their windows, losses, and integrals of hats.

Everything here is in shares of the domain and in units of the loss that make values about 1 or less.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from optdp.exact.sweep import Branches, horner
from optdp.problem.problem import Problem

#: At most so many knots of the loss are looked at in integrals.
KNOTS = 8
#: Up to here E - 1 times the roundings of masses and moments are little beside a loss.
GROWN = 1e4
#: Beside a jump.
SIDE = 1e-11
#: Bends of fitted pieces that are closer to 0 than this are one at 0.
STEEP = 1e-3
#: Integrals are cut at knots of fitted pieces that are this share of their distance apart.
CLOSE = 0.02
#: Halvings in which the reach of a threshold is found.
HALVINGS = 60
#: Steps in which windows are placed, at most; the share of their mass that they may lack.
ROOTS, LACK = 60, 1e-7
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
#: Gauss points and weights on [0, 1]: exact for polynomials up to degree 7.
GAUSS = tuple(zip((_NODES + 1) / 2, _WEIGHTS / 2, strict=True))

#: Rounds in which more inputs are looked at around peaks of the loss that are this share of it below the highest.
PEAKS, NEAR = 4, 0.01

Integrand = Callable[[Any, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Cost:
    """The loss as the programs see it.

    `of(u)`: L at the difference u = y - x, in shares of the domain, in units of `unit`; `slopes`: see `Loss.slopes`;
    `tilted`: means are multipliers too (unbiased mechanisms, the variance); `square`: L is the difference's square, so that
    its excess over a threshold is (y - a) (y - b); `knots`: differences at which L is not smooth;
    `jumps`: the positive ones at which it jumps; `step`: where it does if it is one value up to there and another beyond;
    `flat`: whether it is constant between its knots; `lines`: the slopes of L below and above 0 if those are all;
    `share`: where inputs divide their windows;
    `cuts`: the knots, and other differences at which integrals are cut; `drops`: whether it is the lesser value at jumps.
    """

    of: Callable[[np.ndarray], np.ndarray]
    slopes: tuple[float, float]
    tilted: bool
    square: bool
    knots: tuple[float, ...]
    unit: float
    jumps: tuple[float, ...] = ()
    step: Fraction | None = None
    flat: bool = False
    lines: tuple[float, float] | None = None
    share: float = 0.5
    convex: bool = True
    cuts: tuple[float, ...] = ()
    drops: bool = False

    @classmethod
    def of_problem(cls, problem: Problem, stretch: float = 1.0) -> Cost:
        """The cost of a problem on an interval; `stretch`: of a loss that jumps, that of differences so many times as large.

        (Losses outside `accepts` are not looked at.)
        """
        law, width, eps = problem.loss, float(problem.domain.width), float(problem.eps)  # type: ignore[arg-type]
        tilted = problem.unbiased
        unit = float(max(law.of(0.0, width), law.of(width, 0.0))) or 1.0

        def of(u: np.ndarray) -> np.ndarray:
            with np.errstate(over="ignore"):  # beyond the domain
                return np.asarray(law.of(0.0, width * np.asarray(u)) / unit)

        pieces = law.branches(problem.domain.exact_width, True, eps)
        bends = {} if pieces is None else _bends(pieces)
        knots = tuple(bends)
        # Huber's loss bends smoothly where its formula changes: integrals do not.
        cuts = knots if pieces is None or len(pieces.knots) > KNOTS else tuple(map(float, pieces.knots))
        if pieces is not None and pieces != law.branches(problem.domain.exact_width, False, eps):
            # Fitted pieces are short where the function is steep, and have bends of their own next to 0.
            if not law.convex:
                knots = tuple(sorted({0.0, *(k for k in knots if abs(k) > STEEP)}))
            smooth = (law.exponent or 0.0) >= 2  # but at 0
            near = sorted((float(k) for k in pieces.knots if not smooth and abs(k) < 1), key=abs)
            places = {0.0, *knots}
            for k in near:  # many are next to a bend or a jump, of which one place is enough
                if all(abs(k - place) > CLOSE * abs(k) for place in places):
                    places.add(k)
            cuts = tuple(sorted(places))
        a, b = law.slopes
        rises = tuple(k for k, rise in bends.items() if k in knots and 0 < k < 1 and rise > 1e-3 * unit)
        flat = pieces is not None and pieces.flat
        one = flat and pieces.even and len(pieces.knots) == 2
        square = law.exponent == 2
        lines = None
        if pieces is not None and pieces.knots == (0,) and not any(any(row[:1] + row[2:]) for row in pieces.rows):
            low, high = -float(of(np.array(-1.0))), float(of(np.array(1.0)))
            lines = low, high

            def of(u: np.ndarray) -> np.ndarray:
                return np.maximum(low * np.asarray(u), high * np.asarray(u))

        share = float(-a / (b - a))  # exactly the loss's own where that is a float
        step = pieces.knots[1] if one else None
        if rises and stretch != 1:
            knots, cuts, rises = (tuple(k / stretch for k in marks) for marks in (knots, cuts, rises))

            def of(u: np.ndarray) -> np.ndarray:
                return np.asarray(law.of(0.0, width * np.clip(stretch * np.asarray(u), -1.0, 1.0)) / unit)

        return cls(
            of, (float(a), float(b)), tilted, square, knots, unit, rises, step, flat, lines, share, law.convex, cuts,
            pieces is not None and pieces.drops,
        )  # fmt: skip

    def nu(self, x: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """The threshold of an input x whose favoured outputs lie between a and b."""
        if self.square:
            return np.asarray((x - a) * (b - x))
        return self.of((b - x) * (1 - 2.0**-48) if self.jumps else b - x)  # a window that ends at a jump is before it

    def reaches(
        self, nu: np.ndarray, of: Callable[[np.ndarray], np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Reaches whose thresholds are just below and above these; `of`: for another form of the loss."""
        low, high = np.zeros(nu.shape), np.full(nu.shape, 1 / min(-self.slopes[0], self.slopes[1]))
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            under = (of or self.of)(self.slopes[1] * middle) <= nu
            low, high = np.where(under, middle, low), np.where(under, high, middle)
        return low, high

    def excess(self, x: np.ndarray, y: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """r(x, y): negative between a and b."""
        return np.asarray((y - a) * (y - b) if self.square else self.of(y - x) - self.nu(x, a, b))


def _bends(pieces: Branches) -> dict[float, Fraction]:
    """Where the loss jumps or has a kink, at most KNOTS, and by how much it rises: at other knots only its formula changes."""
    found = []
    for knot, left, right in zip(pieces.knots, pieces.rows, pieces.rows[1:], strict=False):
        rise = horner(right, knot) - horner(left, knot)
        slopes = [horner([k * a for k, a in enumerate(row)][1:], knot) for row in (left, right)]
        found.append((float(abs(rise) + abs(slopes[1] - slopes[0])), float(knot), rise))
    scale = 1e-3 * (max(float(pieces(Fraction(1))), float(pieces(Fraction(-1)))) or 1.0)
    # The largest jump too: where a function is steep beside it, its pieces have larger kinks.
    largest = {*sorted(found, reverse=True)[:KNOTS], *sorted(found, key=lambda one: abs(one[2]))[-2:]}
    return dict(sorted((knot, rise) for size, knot, rise in largest if size > scale))


def hat_masses(mesh: np.ndarray) -> np.ndarray:
    """The integral of each hat function."""
    steps, out = np.diff(mesh), np.zeros(mesh.size)
    out[:-1] += steps / 2
    out[1:] += steps / 2
    return out


def _segments(points: np.ndarray, mesh: np.ndarray, low: np.ndarray, high: np.ndarray, knots: tuple[float, ...]) -> Any:
    """(k, cell, start, end): the parts of [low[k], high[k]] on single cells, cut where points[k] + knot lies inside."""
    low, high = np.clip(low, mesh[0], mesh[-1]), np.clip(high, mesh[0], mesh[-1])
    first = np.clip(np.searchsorted(mesh, low, side="right") - 1, 0, mesh.size - 2)
    last = np.clip(np.searchsorted(mesh, high, side="left") - 1, 0, mesh.size - 2)
    count = np.where(high > low, np.maximum(last - first + 1, 0), 0)
    k = np.repeat(np.arange(points.size), count)
    cell = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count) + first[k]
    return _cut(points, knots, k, cell, np.maximum(mesh[cell], low[k]), np.minimum(mesh[cell + 1], high[k]))


def _cut(points: np.ndarray, knots: tuple[float, ...], k: np.ndarray, cell: np.ndarray, start: Any, end: Any) -> Any:
    """Parts of cells, cut where points[k] + knot lies inside."""
    for knot in knots:
        at = points[k] + knot
        inside = (at > start) & (at < end)
        if not inside.any():
            continue
        k, cell = np.append(k, k[inside]), np.append(cell, cell[inside])
        start, end = np.append(start, at[inside]), np.append(np.where(inside, at, end), end[inside])
    return k, cell, start, end


def _kinked(points: np.ndarray, mesh: np.ndarray, knots: tuple[float, ...]) -> Any:
    """Cells with a knot inside: (as whole cells to take out, cut at their knots to put in)."""
    at = points[:, None] + np.array(knots)
    cell = np.clip(np.searchsorted(mesh, at) - 1, 0, mesh.size - 2)
    inside = (at > mesh[cell]) & (at < mesh[cell + 1])
    k, place = np.nonzero(inside)
    pairs = np.unique(np.column_stack([k, cell[k, place]]), axis=0)
    k, cell = pairs[:, 0], pairs[:, 1]
    whole = k, cell, mesh[cell], mesh[cell + 1]
    return whole, _cut(points, knots, *whole)


def hats(
    points: np.ndarray, mesh: np.ndarray, integrand: Integrand, knots: tuple[float, ...],
    low: np.ndarray | None = None, high: np.ndarray | None = None,
) -> np.ndarray:  # fmt: skip
    """(points, nodes): the integrals of the hat functions times integrand(k, t), over the mesh or over [low[k], high[k]]."""
    size, out = mesh.size, np.zeros((points.size, mesh.size))
    steps = np.diff(mesh)

    def add(parts: Any, sign: float) -> None:
        k, cell, start, end = parts
        left, right, span = np.zeros(k.size), np.zeros(k.size), end - start
        for g, w in GAUSS:
            t = start + span * g
            value = integrand(k, t) * span * (w * sign)
            share = (t - mesh[cell]) / steps[cell]
            left += value * (1 - share)
            right += value * share
        flat = out.reshape(-1)
        flat += np.bincount(k * size + cell, left, flat.size) + np.bincount(k * size + cell + 1, right, flat.size)

    if low is not None and high is not None:
        add(_segments(points, mesh, low, high, knots), 1.0)
        return out
    every = np.arange(points.size)[:, None]
    for g, w in GAUSS:
        value = integrand(every, (mesh[:-1] + steps * g)[None, :]) * (steps * w)
        out[:, :-1] += value * (1 - g)
        out[:, 1:] += value * g
    if knots:
        whole, cut = _kinked(points, mesh, knots)
        add(whole, -1.0)
        add(cut, 1.0)
    return out


@dataclass(frozen=True)
class Floor:
    """A measure: on cell i of the mesh `y` a density that is linear from `left[i]` to `right[i]`, and `atoms` at its nodes."""

    y: np.ndarray
    left: np.ndarray
    right: np.ndarray
    atoms: np.ndarray

    @classmethod
    def of_hats(cls, y: np.ndarray, heights: np.ndarray, atoms: np.ndarray) -> Floor:
        """From the density's values at the nodes."""
        heights, atoms = np.maximum(heights, 0.0), np.maximum(atoms, 0.0)
        return cls(y, heights[:-1], heights[1:], atoms)

    @cached_property
    def steps(self) -> np.ndarray:
        """Widths of cells."""
        return np.diff(self.y)

    @cached_property
    def masses(self) -> np.ndarray:
        """Masses of cells."""
        return np.asarray((self.left + self.right) / 2 * self.steps)

    @cached_property
    def before(self) -> np.ndarray:
        """The mass below each node, its atom left out."""
        return np.concatenate([[0.0], np.cumsum(self.masses + self.atoms[:-1])])

    @cached_property
    def upto(self) -> np.ndarray:
        """The mass up to each node, with its atom."""
        return np.asarray(self.before + self.atoms)

    @property
    def total(self) -> float:
        """The mass."""
        return float(self.before[-1] + self.atoms[-1])

    def cdf(self, y: np.ndarray, *, closed: bool) -> np.ndarray:
        """The mass of outputs <= y (`closed`) or < y."""
        i = np.clip(np.searchsorted(self.y, y, side="right") - 1, 0, self.y.size - 2)
        u = np.clip(y - self.y[i], 0.0, self.steps[i])
        inner = self.left[i] * u + (self.right[i] - self.left[i]) * u * u / (2 * self.steps[i])
        at = np.searchsorted(self.y, y, side="right" if closed else "left")
        return np.where(y < self.y[0], 0.0, np.concatenate([[0.0], np.cumsum(self.masses)])[i] + inner) + np.concatenate(
            [[0.0], np.cumsum(self.atoms)]
        )[at]  # fmt: skip

    def _place(self, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(node, cell, offset): within the atom of `node` (offset < 0 there: none), or at `offset` in `cell`."""
        i = np.clip(np.searchsorted(self.upto, mass), 0, self.y.size - 1)
        j = np.clip(i - 1, 0, self.steps.size - 1)
        rest = np.maximum(mass - self.upto[j], 0.0)
        slope = (self.right[j] - self.left[j]) / self.steps[j]
        root = self.left[j] + np.sqrt(np.maximum(self.left[j] ** 2 + 2 * slope * rest, 0.0))
        offset = np.minimum(2 * rest / np.maximum(root, 1e-300), self.steps[j])
        return np.where(mass >= self.before[i], i, -1), j, offset

    def quantile(self, mass: np.ndarray) -> np.ndarray:
        """The output below which there is this much mass."""
        node, cell, offset = self._place(np.clip(mass, 0.0, self.total))
        return np.where(node >= 0, self.y[node], self.y[cell] + offset)

    def moment(self, mass: np.ndarray) -> np.ndarray:
        """int y dm over the lowest outputs with this much mass."""
        mass = np.clip(mass, 0.0, self.total)
        node, cell, u = self._place(mass)
        y, left = self.y[cell], self.left[cell]
        slope = (self.right[cell] - left) / self.steps[cell]
        inner = y * (left * u + slope * u * u / 2) + left * u * u / 2 + slope * u**3 / 3
        atom = self._moments[0][node] + (mass - self.before[node]) * self.y[node]
        return np.where(node >= 0, atom, self._moments[1][cell] + inner)

    @cached_property
    def _moments(self) -> tuple[np.ndarray, np.ndarray]:
        """int y dm below each node, and up to it."""
        y, h = self.y, self.steps
        cells = h * (self.left * (2 * y[:-1] + y[1:]) + self.right * (y[:-1] + 2 * y[1:])) / 6
        below = np.concatenate([[0.0], np.cumsum(cells + (self.atoms * y)[:-1])])
        return below, below + self.atoms * y

    # Windows: the favoured outputs of inputs ----------------------------------------------------------------------

    def window(self, growth: float) -> float:
        """The mass of a window: rows have mass 1."""
        return max(1.0 - self.total, 0.0) / growth

    def starts(self, x: np.ndarray, cost: Cost, growth: float, lack: float = 0.0) -> np.ndarray:
        """The mass below the window of each input; `lack`: of windows that lack this share of their mass."""
        width, s, whole = self.window(growth) * (1 - lack), cost.share, self._moments[1][-1]

        def over(a: np.ndarray, x: np.ndarray) -> np.ndarray:
            if cost.tilted:
                return np.asarray(whole + growth * (self.moment(a + width) - self.moment(a)) - x)
            return (1 - s) * self.quantile(a) + s * self.quantile(a + width) - x

        # Between two marks both ends move smoothly: false position, halved where an end stays, and bisection now and then.
        marks, fine = self.marks(width), LACK / 64 * width
        marks = np.unique(np.clip(np.append(marks - fine, marks + fine), 0.0, marks[-1]))
        if marks.size == 1:  # the window is everything
            return np.zeros(x.shape)
        sides = over(marks, np.zeros(1))
        k = np.clip(np.searchsorted(sides, x), 1, marks.size - 1)
        low, high, under, above = marks[k - 1], marks[k], sides[k - 1] - x, sides[k] - x
        out = np.where(under < 0, high, low)
        left = np.flatnonzero((under < 0) & (above > 0) & (high - low > 2 * fine))
        low, high, under, above, at = (v[left] for v in (low, high, under, above, x))
        for step in range(ROOTS):
            if not left.size:
                break
            a = (low + high) / 2 if step % 3 == 2 else low + (high - low) * (under / (under - above))
            f = over(a, at)
            up, out[left] = f >= 0, a
            under, above = np.where(up, under / 2, f), np.where(up, f, above / 2)
            low, high = np.where(up, low, a), np.where(up, a, high)
            on = (np.abs(f) > 1e-13 * np.abs(at)) & (high - low > 2 * fine)
            left, low, high, under, above, at = (v[on] for v in (left, low, high, under, above, at))
        return out

    def marks(self, width: float) -> np.ndarray:
        """Where windows start (the mass below them) that begin or end at a node; the first and the last."""
        room = max(self.total - width, 0.0)
        found = np.concatenate([self.before, self.upto])
        found = np.unique(np.concatenate([found, found - width, [0.0, room]]))
        return np.asarray(found[(found >= 0) & (found <= room)])

    def ends(self, x: np.ndarray, cost: Cost, growth: float) -> tuple[np.ndarray, np.ndarray]:
        """The outputs between which the favoured ones of each input lie."""
        width = self.window(growth)
        if cost.tilted:
            a = self.starts(x, cost, growth)
            return self.quantile(a), self.quantile(a + width)
        # By the loss's levels also in a gap of the floor, where nothing ends: the least that hold the mass but for a rounding.
        a, fine = self.starts(x, cost, growth, LACK), LACK / 4 * width
        (p, q), high = cost.slopes, self.quantile(a + (1 - LACK) * width - fine)
        reach = np.maximum(np.maximum((self.quantile(a + fine) - x) / p, (high - x) / q), 0.0)
        # Masses below a window do not tell windows of less than a billionth of all: those that hold too much are searched.
        inside = self.cdf(x + q * reach, closed=False) - self.cdf(x + p * reach, closed=True)
        wide = np.flatnonzero(inside > width + max(LACK * width, 4e-16 * self.total))
        least, most = np.zeros(wide.size), reach[wide]
        for _ in range(HALVINGS if wide.size else 0):
            middle = (least + most) / 2
            below, above = x[wide] + p * middle, x[wide] + q * middle
            enough = self.cdf(above, closed=True) - self.cdf(below, closed=False) >= (1 - LACK) * width
            least, most = np.where(enough, least, middle), np.where(enough, middle, most)
        reach[wide] = most
        return x + p * reach, x + q * reach

    def lowest_mean(self, growth: float, *, highest: bool = False) -> float:
        """The least (or largest) mean of an output."""
        a = self.total - self.window(growth) if highest else 0.0
        ends = self.moment(np.array([a, a + self.window(growth)]))
        return float(self._moments[1][-1] + growth * (ends[1] - ends[0]))

    @cached_property
    def powers(self) -> tuple[float, float, float]:
        """int y^k dm for k = 0, 1, 2."""
        squares = float(self.atoms @ self.y**2)
        for g, w in GAUSS:
            squares += float(
                (self.y[:-1] + self.steps * g) ** 2 @ (self.steps * w * (self.left * (1 - g) + self.right * g))
            )
        return self.total, float(self._moments[1][-1]), squares

    def far(self, x: np.ndarray, cost: Cost, *, mirrored: bool = False) -> np.ndarray:
        """int L(y - x) m(dy) for each x; `mirrored`: of L(x - y)."""
        sign = -1.0 if mirrored else 1.0
        if cost.lines is not None:
            below, above = cost.lines[:: -1 if mirrored else 1]
            mass = self.cdf(x, closed=True)
            first = self.moment(mass)
            rest = self._moments[1][-1] - first - x * (self.total - mass)
            return np.asarray(sign * (below * (first - x * mass) + above * rest))
        out, y = np.zeros(x.size), self.y
        for part in np.array_split(np.arange(x.size), x.size * y.size // 2**20 + 1):
            for g, w in GAUSS:
                weight = self.steps * w * (self.left * (1 - g) + self.right * g)
                out[part] += cost.of(sign * ((y[:-1] + self.steps * g)[None] - x[part, None])) @ weight
        if cost.cuts:
            whole, cut = _kinked(x, y, tuple(sign * k for k in cost.cuts))
            for parts, add in ((cut, 1.0), (whole, -1.0)):
                out += add * self._along(parts, x.size, lambda k, t: cost.of(sign * (t - x[k])))
        on = np.flatnonzero(self.atoms)
        return np.asarray(out + cost.of(sign * (y[on][None] - x[:, None])) @ self.atoms[on])

    def within(
        self, x: np.ndarray, a: np.ndarray, b: np.ndarray, integrand: Integrand, knots: tuple[float, ...]
    ) -> np.ndarray:
        """int from a[k] to b[k] of integrand(k, y) dm for each k, atoms left out; not smooth at x[k] + knots."""
        return self._along(_segments(x, self.y, a, b, knots), x.size, integrand)

    def _along(self, parts: Any, size: int, integrand: Integrand) -> np.ndarray:
        """For each k the integral of integrand(k, y) over its parts of cells."""
        k, cell, start, end = parts
        total, span = np.zeros(k.size), end - start
        for g, w in GAUSS:
            t = start + span * g
            share = (t - self.y[cell]) / self.steps[cell]
            total += integrand(k, t) * span * w * (self.left[cell] * (1 - share) + self.right[cell] * share)
        return np.bincount(k, total, size)

    def values(
        self, x: np.ndarray, a: np.ndarray, b: np.ndarray, cost: Cost, growth: float, most: float = np.inf
    ) -> np.ndarray:
        """The expected loss of each input if it favours outputs between a and b: its least one, for the ends of its window.

        What is far away is a smooth function of the input: with more than `most` inputs it is interpolated (from above, if the
        loss is convex). For losses of two lines all is exact; with more than `most` inputs it is taken from masses and moments,
        where these are not rounded by more than `growth` may multiply.
        """

        def excess(k: Any, t: np.ndarray) -> np.ndarray:
            return cost.excess(x[k], t, a[k], b[k])

        out = cost.nu(x, a, b)
        if cost.square:
            mass, first, second = self.powers
            out = out + second - (a + b) * first + a * b * mass
        elif x.size <= most or cost.lines is not None:
            out = out + self.far(x, cost) - out * self.total
        else:
            some = np.unique(np.append(np.arange(0, x.size, int(x.size // most) + 1), x.size - 1))
            out = out + np.interp(x, x[some], self.far(x[some], cost)) - out * self.total
        if cost.lines is not None and x.size > most and growth < GROWN:
            return np.asarray(out + growth * self._between_lines(x, a, b, cost))
        near = self.within(x, a, b, excess, cost.cuts)
        on = np.flatnonzero(self.atoms)
        at = excess(np.arange(x.size)[:, None], self.y[on][None])
        return np.asarray(out + growth * (near + np.minimum(at, 0.0) @ self.atoms[on]))

    def _between_lines(self, x: np.ndarray, a: np.ndarray, b: np.ndarray, cost: Cost) -> np.ndarray:
        """int (L(y - x) - nu) m(dy) from a to b for a loss of two lines: from masses and moments up to a, x and b alone."""
        assert cost.lines is not None
        middle = np.clip(x, a, b)
        masses = self.cdf(np.array([a, middle, b]), closed=True)
        masses[0] = self.cdf(a, closed=False)
        below, above = cost.lines
        mass, moment = np.diff(masses, axis=0), np.diff(self.moment(masses), axis=0)
        first, second = moment - x * mass
        return np.asarray(below * first + above * second - cost.nu(x, a, b) * mass.sum(axis=0))

    def samples(
        self, cost: Cost, growth: float, inner: int, high: float = 1.0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inputs (increasing) between which the least loss is smooth, `inner` more in each stretch, and the ends of windows."""
        width, s = self.window(growth), cost.share
        marks = self.marks(width)
        room = marks[-1]
        marks = np.union1d(marks, room / 2)
        fine, steps = 1e-12 * self.total, np.diff(marks)
        between = [marks[:-1] + steps * (i / (inner + 1)) for i in range(1, inner + 1)]
        mass = np.unique(np.clip(np.concatenate([marks - fine, marks + fine, *between]), 0.0, room))
        a, b = self.quantile(mass), self.quantile(mass + width)
        if cost.tilted:
            x = self._moments[1][-1] + growth * (self.moment(mass + width) - self.moment(mass))
            extra = [np.array([0.0, high])]
        else:
            x = (1 - s) * a + s * b
            # Gaps of the floor, in which windows end anywhere, and inputs beyond the first and last window's.
            jumps = np.flatnonzero((np.diff(mass) <= 4 * fine) & (np.diff(x) > 1e-9))
            shares = np.arange(1, inner + 1)[:, None] / (inner + 1)
            extra = [np.ravel(x[jumps] + shares * (x[jumps + 1] - x[jumps]))]
            extra += [np.linspace(0.0, x[0], inner + 2), np.linspace(x[-1], high, inner + 2)]
            extra += [self.y - k for k in cost.knots if k]
            if cost.jumps:  # at both sides of where an atom is at a jump
                extra += [np.add.outer(self.y[self.atoms > 0] - k, [-SIDE, SIDE]).ravel() for k in cost.knots if k]
            if not cost.convex:  # lowest at an atom, where the loss has its kink, and highest between two
                at = np.concatenate([[0.0], self.y[self.atoms > 0], [high]])
                extra += [at[:-1] + np.diff(at) * i / (inner + 1) for i in range(1, inner + 1)]
                extra += [at - k for k in (*cost.cuts, 0.0)]
        more = np.unique(np.concatenate(extra))
        more = more[(more >= 0) & (more <= high)]
        first, last = self.ends(more, cost, growth)
        x, a, b = np.append(x, more), np.append(a, first), np.append(b, last)
        order = np.argsort(x, kind="stable")
        order = order[(x[order] >= 0) & (x[order] <= high)]
        order = order[np.append(True, np.diff(x[order]) > 1e-12)]
        return x[order], a[order], b[order]

    def worst(
        self, cost: Cost, growth: float, inner: int, high: float = 1.0, most: float = np.inf
    ) -> tuple[np.ndarray, ...]:
        """Inputs (increasing), the ends of their windows, and their losses: those of `samples`, and more around peaks."""
        x, a, b = self.samples(cost, growth, inner, high=high)
        table = np.array([x, a, b, self.values(x, a, b, cost, growth, most)])
        for _ in range(0 if cost.convex else PEAKS):  # where the loss is concave they are sharp
            losses = table[3]
            top = 1 + np.flatnonzero((losses[1:-1] >= losses[:-2]) & (losses[1:-1] >= losses[2:]))
            top = top[losses[top] > losses.max() * (1 - NEAR)]
            x = np.unique(np.concatenate([table[0, top - 1] + table[0, top], table[0, top] + table[0, top + 1]]) / 2)
            a, b = self.ends(x, cost, growth)
            table = np.hstack([table, [x, a, b, self.values(x, a, b, cost, growth, most)]])
            table = table[:, np.argsort(table[0], kind="stable")]
        return tuple(table)

    def pieces(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(masses, lows, highs) of constant pieces: each cell in so many parts of the same width, and the atoms."""
        cell = np.repeat(np.arange(counts.size), counts)
        part = np.arange(cell.size) - np.repeat(np.cumsum(counts) - counts, counts)
        low, high = part / counts[cell], (part + 1) / counts[cell]
        change = (self.right - self.left)[cell]
        mass = self.steps[cell] * (high - low) * (self.left[cell] + change * (low + high) / 2)
        start, end, steps = self.y[cell], self.y[cell + 1], self.steps[cell]
        lows, highs = start + steps * low, np.where(part + 1 == counts[cell], end, start + steps * high)
        mass, lows, highs = np.append(mass, self.atoms), np.append(lows, self.y), np.append(highs, self.y)
        order = np.lexsort((highs, lows))
        order = order[mass[order] > 1e-12 / counts.max() * self.total]
        return mass[order], lows[order], highs[order]


def of_pieces(masses: np.ndarray, lows: np.ndarray, highs: np.ndarray) -> Floor:
    """The floor with these constant pieces."""
    y = np.unique(np.concatenate([lows, highs, highs[-1:] + 1e-3]))  # an empty cell beyond: there is one at least
    density, atoms = np.zeros(y.size - 1), np.zeros(y.size)
    flat = lows == highs
    np.add.at(atoms, np.searchsorted(y, lows[flat]), masses[flat])
    density[np.searchsorted(y, lows[~flat])] = masses[~flat] / (highs - lows)[~flat]
    return Floor(y, density, density, atoms)

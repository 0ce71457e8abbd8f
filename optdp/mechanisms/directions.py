"""Random vectors r (t v/|v| + sqrt(1 - t^2) w) on a grid, exactly: w uniform on the unit vectors orthogonal to v, t in a cap.

The law is one of real numbers, and it is sampled exactly from integers: a uniform real number is an integer and further bits
that are drawn when they are needed. Each coordinate is rounded at random to a neighbouring multiple of the grid's step, with
the odds that keep its mean, so that the output is a function of the real vector and of independent bits: as private as the real
vector, and with the same mean. Floats serve to find the integers. Where the error bound of a computation leaves one of them
undecided, the vector is computed again from the same bits, in long doubles and then in balls of growing precision.

The error bounds take for granted that numpy's log, log1p and tan are accurate to 4 units in the last place or so, and
`_trust` tests that before the first sample is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from flint import arb, ctx

from optdp.exact import enclosures
from optdp.exact.sampling import BITS, LIMB, Alias

#: Coordinates that are computed at a time.
BLOCK = 2**18
#: Words that are further refined: near 0, and near 2^64.
LOW, HIGH = np.uint64(2**54), np.uint64(2**64 - 2**50)
#: Balls of at most this many bits decide everything, but for a chance of 2^-3000; those that are tried one after the other.
DEEPEST = 4096
PRECISIONS = (192, 384, 768, 1536, 3072)


@dataclass(frozen=True)
class Digits:
    """A uniform number in [0, 1) of which `bits` digits are known: it lies in [word, word + 1]/2^bits."""

    word: int
    bits: int

    def more(self, rng: np.random.Generator, bits: int) -> Digits:
        """The same with at least so many digits."""
        known = self
        while known.bits < bits:
            known = Digits((known.word << BITS) + int(rng.integers(0, LIMB)), known.bits + BITS)
        return known

    def ball(self) -> arb:
        """An enclosure."""
        return arb(self.word).union(arb(self.word + 1)) * arb(2) ** -self.bits


def below(digits: Digits, bar: Callable[[], arb], rng: np.random.Generator) -> bool:
    """Whether the uniform number with these first digits is below the number that `bar` encloses at the working precision."""
    for bits in PRECISIONS:
        digits = digits.more(rng, bits)
        with ctx.workprec(bits + 64):
            place, end = digits.ball(), bar()
            if place < end or place >= end:
                return bool(place < end)
    raise RuntimeError("a random number could not be told from a threshold")


class Heights:
    """t with the density (1 - t^2)^((d - 3)/2), d >= 2, on [g, 1] and on [-1, g]: exact, by rejection.

    In tau = tan(angle/2), t = (1 - tau^2)/(1 + tau^2), the density is tau^(d - 2)/(1 + tau^2)^(d - 1): it has one mode. Cells on
    which it varies by a few percent are drawn from integers in proportion to an upper bound, and a point in a cell is accepted
    at once where the toss is under the lower bound, else by balls. The side [-1, g] is the other one reflected.
    """

    def __init__(self, dim: int, height: float) -> None:
        self.dim, self.height = dim, height
        self._sides = [self._cells(height), self._cells(-height)]
        rows = [weights for weights, *_ in self._sides]
        width = max(map(len, rows))
        self._alias = Alias([row + [0] * (width - len(row)) for row in rows], LIMB)
        self._edges = np.array([np.resize(edges, width + 1) for _, edges, _, _ in self._sides])
        self._sure = np.array([sure + [0] * (width - len(sure)) for _, _, sure, _ in self._sides])

    def _log_density(self, tau: arb) -> arb:
        return (self.dim - 2) * tau.log() - (self.dim - 1) * (1 + tau * tau).log()

    def _density(self, tau: arb, factor: arb) -> arb:
        """Times a factor for which it is at most 1, nearly."""
        power = 1 / (1 + tau * tau) if self.dim == 2 else self._log_density(tau).exp()
        return power * factor

    def _cells(self, height: float) -> tuple[list[int], np.ndarray, list[int], tuple[arb, arb]]:
        """(weights, edges, sure acceptances of 2^62, (scale, factor of the density)): scale * density * width <= weight."""
        dim = self.dim
        with ctx.workprec(128):
            end = ((1 - arb(height)) / (1 + arb(height))).sqrt()
            last, mode = enclosures.round_up(end), math.sqrt((dim - 2) / dim)
            top = min(mode, last)

            def log_density(tau: Any) -> Any:
                with np.errstate(divide="ignore"):
                    power = 0.0 if dim == 2 else (dim - 2) * np.log(tau)
                return power - (dim - 1) * np.log1p(np.square(tau))

            def level(low: float, high: float, peak: float) -> np.ndarray:
                """Where the density is e^(-k/32) of its peak, between an end `low` where it is less and the peak."""
                goals = log_density(peak) - np.arange(1, 40 * 32) / 32
                a, b = np.full(goals.size, low), np.full(goals.size, high)
                for _ in range(60):
                    middle = (a + b) / 2
                    left = log_density(middle) < goals
                    a, b = np.where(left, middle, a), np.where(left, b, middle)
                return (a + b) / 2

            points = [np.array([0.0, top, last])]
            if top > 0:
                points.append(level(0.0, top, top))
            if last > mode:
                right = level(last, top, top) if log_density(last) < log_density(top) else np.empty(0)
                points.append(right)
            edges = np.unique(np.clip(np.concatenate(points), 0.0, last))
            edges[-1] = last
            factor = (1 / self._density(arb(top), arb(1))).mid() if top > 0 else arb(1)
            values = [self._density(arb(e), factor) if e > 0 or dim == 2 else arb(0) for e in edges.tolist()]
            best = self._density(((arb(dim) - 2) / dim).sqrt(), factor) if dim > 2 else factor
            widths = np.diff(edges).tolist()
            sups, infs = [], []
            for i, (low, high) in enumerate(pairwise(values)):
                inside = edges[i] <= mode * (1 + 1e-12) and edges[i + 1] >= mode * (1 - 1e-12)
                sups.append(best.max(low).max(high) if inside else low.max(high))
                infs.append(low.min(high))
            total = sum((s * w for s, w in zip(sups, map(arb, widths), strict=True)), arb(0))
            scale = (arb(LIMB - 2 * len(widths)) / total * (1 - arb(2) ** -80)).lower().mid()
            weights = [math.ceil(enclosures.upper(scale * s * w)) for s, w in zip(sups, map(arb, widths), strict=True)]
            sure = [
                max(0, math.floor(enclosures.lower(scale * s * arb(w) / weight * LIMB)))
                for s, w, weight in zip(infs, widths, weights, strict=True)
            ]
            sure[-1] = 0  # the last cell reaches a little beyond the cap's edge
            spare = LIMB - sum(weights)
            assert spare >= 0
            j = int(np.argmax(np.array(weights, dtype=float)))
            sure[j] = sure[j] * weights[j] // (weights[j] + spare)
            weights[j] += spare
        return weights, edges, sure, (scale, factor)

    def draw(self, side: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, dict[int, Digits]]:
        """(cells, 64-bit places in them, what more is known of some places) for each entry of `side`: 0 for the cap."""
        cells, places = np.zeros(side.size, np.int64), np.zeros(side.size, np.uint64)
        known: dict[int, Digits] = {}
        left = np.arange(side.size)
        while left.size:
            row = side[left]
            cell = self._alias.draw(row, rng)
            place = rng.integers(0, 2**64, size=left.size, dtype=np.uint64)
            toss = rng.integers(0, LIMB, size=left.size)
            good = toss < self._sure[row, cell]
            for k in np.flatnonzero(~good).tolist():
                digits = self._decide(int(row[k]), int(cell[k]), int(place[k]), int(toss[k]), rng)
                if digits is not None:
                    good[k] = True
                    if digits.bits > 64:
                        known[int(left[k])] = digits
            cells[left[good]], places[left[good]] = cell[good], place[good]
            left = left[~good]
        return cells, places, known

    def _decide(self, side: int, cell: int, place: int, toss: int, rng: np.random.Generator) -> Digits | None:
        """Whether a point is accepted: the digits of its place, or None."""
        weights, edges, _, (scale, factor) = self._sides[side]
        where, chance = Digits(place, 64), Digits(toss, BITS)
        bits = 128
        while bits <= DEEPEST:
            with ctx.workprec(bits):
                low, width = arb(float(edges[cell])), arb(float(edges[cell + 1])) - arb(float(edges[cell]))
                tau = low + width * where.ball()
                bar = scale * self._density(tau, factor) * width / weights[cell]
                beyond = self._beyond(side, tau)
                if beyond is True or chance.ball() >= bar:
                    return None
                if beyond is False and chance.ball() < bar:
                    return where
            bits *= 2
            where, chance = where.more(rng, bits), chance.more(rng, bits)
        raise RuntimeError("a random number could not be told from a threshold")

    def _beyond(self, side: int, tau: arb) -> bool | None:
        """Whether tau is beyond the cap's edge: tau^2 > (1 - g)/(1 + g)."""
        height = arb(self.height if side == 0 else -self.height)
        excess = tau * tau * (1 + height) - (1 - height)
        return True if excess > 0 else False if excess <= 0 else None

    def draw_above(
        self, least: np.ndarray, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, dict[int, Digits]]:
        """(sides, and as `draw`) for t >= `least`, by rejection: those >= 0 must be at least the table's height, which is 0 for
        others.
        """
        sides, cells = np.zeros((2, least.size), np.int64)
        places = np.zeros(least.size, np.uint64)
        known: dict[int, Digits] = {}
        size = np.abs(least)
        edges = np.sqrt((1 - size) / (1 + size))
        left = np.arange(least.size)
        while left.size:
            free = least[left] < 0
            side = np.where(free, rng.integers(0, 2, size=left.size), 0)
            cell, place, deep = self.draw(side, rng)
            tau, edge = self.tau(side, cell, place, np.float64), edges[left]
            good = np.where(free, (side == 0) | (tau >= edge), tau <= edge)
            for k in np.flatnonzero((np.abs(tau - edge) <= edge * 2.0**-40 + 2.0**-63) & (side == free)).tolist():
                start = deep.get(k, Digits(int(place[k]), 64))
                deep[k], below = self._below(int(side[k]), int(cell[k]), start, float(size[left[k]]), rng)
                good[k] = below != free[k]
            done = left[good]
            sides[done], cells[done], places[done] = side[good], cell[good], place[good]
            known.update({int(left[k]): digits for k, digits in deep.items() if good[k] and digits.bits > 64})
            left = left[~good]
        return sides, cells, places, known

    def _below(
        self, side: int, cell: int, digits: Digits, height: float, rng: np.random.Generator
    ) -> tuple[Digits, bool]:
        """(the digits of a place, whether its tau is below the edge of a cap of this height)."""
        edges = self._sides[side][1]
        for bits in PRECISIONS:
            digits = digits.more(rng, bits)
            with ctx.workprec(bits + 32):
                low, high = arb(float(edges[cell])), arb(float(edges[cell + 1]))
                tau = low + (high - low) * digits.ball()
                excess = tau * tau * (1 + arb(height)) - (1 - arb(height))
                if excess > 0 or excess < 0:
                    return digits, bool(excess < 0)
        raise RuntimeError("a random number could not be told from a threshold")

    def tau(self, side: np.ndarray, cells: np.ndarray, places: np.ndarray, dtype: Any) -> np.ndarray:
        """The points as floats."""
        low, high = self._edges[side, cells].astype(dtype), self._edges[side, cells + 1].astype(dtype)
        found: np.ndarray = low + (high - low) * (places.astype(dtype) * dtype(2.0**-64))
        return found


@lru_cache(maxsize=64)
def heights(dim: int, height: float) -> Heights:
    """The tables, made once."""
    return Heights(dim, height)


@cache
def _trust() -> None:
    """Compare numpy's functions with balls at random points. **Raises** RuntimeError where they are too far off."""
    rng = np.random.default_rng(20)
    x = np.concatenate([rng.random(500), np.ldexp(1 + rng.random(500), 0 - rng.integers(2, 65, 500))])
    words = rng.integers(0, 2**64, 500, dtype=np.uint64)
    words = np.append(
        words, words[:, None] % np.uint64(2**20) - np.uint64(2**19) + np.uint64(2**61) * np.arange(8, dtype=np.uint64)
    )
    for dtype, bits in ((np.float64, 49), (np.longdouble, 49 if _SHORT else 58)):
        points = x.astype(dtype)
        cosines, sines = _turned(words, dtype)
        with ctx.workprec(192):
            numbers, turns = [arb(p) for p in x.tolist()], [arb(w) * arb(2) ** -63 for w in words.tolist()]
            for name, found, true in (
                ("log", np.log(points), [p.log() for p in numbers]),
                ("log1p", np.log1p(0 - points), [(1 - p).log() for p in numbers]),
                ("tan", cosines, [p.cos_pi() for p in turns]),
                ("tan", sines, [p.sin_pi() for p in turns]),
            ):
                for y, exact in zip(found, true, strict=True):
                    high = float(y)
                    error = abs(arb(high) + arb(float(y - dtype(high))) - exact)
                    if not error <= arb(2) ** -bits * (1 if name == "tan" else abs(exact)):
                        raise RuntimeError(f"numpy's {name} is not accurate enough on this machine to sample with")


#: Whether long doubles are doubles.
_SHORT = np.finfo(np.longdouble).nmant < 63


@dataclass
class Bits:
    """The random bits of some vectors: `side`, cell and place of t; radii and angles of pairs; rounding."""

    side: np.ndarray
    cells: np.ndarray
    places: np.ndarray
    known: dict[int, Digits]
    radii: np.ndarray
    deep: tuple[np.ndarray, np.ndarray, np.ndarray]
    angles: np.ndarray
    tosses: np.ndarray

    @classmethod
    def draw(
        cls, side: np.ndarray, dim: int, table: Heights | None, rng: np.random.Generator, least: np.ndarray | None = None
    ) -> Bits:  # fmt: skip
        """For vectors with t in the cap (side 0) or not (1), or with t >= `least`; `table`: None for d = 1."""
        pairs = (dim + 1) // 2 if dim > 1 else 0
        if table is not None and least is not None:
            side, cells, places, known = table.draw_above(least, rng)
        elif table is None:
            cells, places, known = np.zeros(side.size, np.int64), np.zeros(side.size, np.uint64), {}
        else:
            cells, places, known = table.draw(side, rng)
        words = rng.integers(0, 2**64, size=(2, side.size, pairs), dtype=np.uint64)
        row, column = np.nonzero((words[0] < LOW) | (words[0] >= HIGH))
        more = rng.integers(0, 2**64, size=row.size, dtype=np.uint64)
        tosses = rng.integers(0, 2**32, size=(side.size, dim), dtype=np.uint32)
        return cls(side, cells, places, known, words[0], (row, column, more), words[1], tosses)

    def row(self, i: int) -> Bits:
        """Those of one vector."""
        row, column, more = self.deep
        mine = row == i
        known = {0: self.known[i]} if i in self.known else {}
        one = slice(i, i + 1)
        return Bits(
            self.side[one], self.cells[one], self.places[one], known, self.radii[one],
            (row[mine] * 0, column[mine], more[mine]), self.angles[one], self.tosses[one],
        )  # fmt: skip


def multiples(
    v: np.ndarray, side: np.ndarray, height: float, scale: Any, step: float, rng: np.random.Generator
) -> np.ndarray:
    """Integers k, a row for each row of v: step * k has the mean E[t | side] * scale * v/|v|.

    **Arguments:** `v`: float64 rows, none of them 0; `side`: 0 where t >= `height`, 1 elsewhere; `scale`: a function that
    encloses r at the working precision; `step`: a power of two.
    """
    return _multiples(v, side, None, heights(v.shape[1], height) if v.shape[1] > 1 else None, scale, step, rng)


def above(
    v: np.ndarray, least: np.ndarray, scales: np.ndarray, step: float, rng: np.random.Generator
) -> np.ndarray:  # fmt: skip
    """Integers k, a row for each row of v: step * k has the mean E[t | t >= `least`] * `scales` * v/|v|; at least two dimensions.

    **Arguments:** `v`: float64 rows, none of them 0; `least`: in [-1, 1); `scales`: floats > 0; `step`: a power of two.
    """
    out = np.empty(v.shape)
    low = np.array([_anchor(v.shape[1], h) if h > 0 else 0.0 for h in np.unique(least).tolist()])
    low = low[np.unique(least, return_inverse=True)[1].reshape(-1)]
    for height in np.unique(low).tolist():
        rows = np.flatnonzero(low == height)
        table, sides = heights(v.shape[1], height), np.zeros(rows.size, np.int64)
        out[rows] = _multiples(v[rows], sides, least[rows], table, scales[rows], step, rng)
    return out


@lru_cache(maxsize=2**16)
def _anchor(dim: int, height: float) -> float:
    """One of few heights, in [0, `height`]: t is above it about four times as often, or half of the time."""
    from scipy.special import betainc, betaincinv

    share = betainc((dim - 1) / 2, 0.5, (1 - height) * (1 + height))
    rest = betaincinv((dim - 1) / 2, 0.5, 4.0 ** -math.floor(-math.log(max(share, 1e-300)) / math.log(4)))
    found = math.sqrt(max(0.0, 1 - float(rest)))
    return found if found < height else 0.0 if share > 0.1 else height


def _multiples(
    v: np.ndarray, side: np.ndarray, least: np.ndarray | None, table: Heights | None, scale: Any, step: float,
    rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """As `multiples` (`least`: None), or as `above`, where `table` has a height that is at most each `least` > 0."""
    _trust()
    count, dim = v.shape
    exponent = np.frexp(np.abs(v).max(axis=1, initial=0.0))[1]
    if (exponent < -100).any():  # squares of tiny numbers lose their digits; the direction alone matters
        v = np.ldexp(v, np.where(exponent < -100, -exponent, 0)[:, None])
    out = np.empty((count, dim))
    rows = max(1, BLOCK // dim)
    for i in range(0, count, rows):
        part, some = v[i : i + rows], slice(i, i + rows)
        bits = Bits.draw(side[some], dim, table, rng, None if least is None else least[some])
        factor = scale if callable(scale) else scale[some]
        found, open_ = _floats(part, bits, table, factor, step, np.float64, out[some])
        for k in np.flatnonzero(open_).tolist():
            own = factor if callable(factor) else factor[k : k + 1]
            found[k] = _one(part[k : k + 1], bits.row(k), table, own, step, rng)
    return out


def _one(v: np.ndarray, bits: Bits, table: Heights | None, scale: Any, step: float, rng: Any) -> np.ndarray:
    """One vector that doubles left undecided."""
    if not _SHORT:
        found, open_ = _floats(v, bits, table, scale, step, np.longdouble)
        if not open_.any():
            return found[0]
    return _balls(v[0], bits, table, scale, step, rng)


def _floats(
    v: np.ndarray, bits: Bits, table: Heights | None, scale: Any, step: float, dtype: Any, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """(integers, written to `out` if it is given; whether a row of them is undecided).

    Let u be 2^-45 for doubles, 2^-54 for long doubles, whose elementary functions and roundings err by less than u/16. Then a
    coordinate of the normal vector g errs by R u/4 + u/8, R the radius of its pair (u/8 for radii near 0, whose share of error is
    larger), |g|^2 by |g|^2 u/2, <g, v> by |g| |v| u/2, the part of g orthogonal to v, which is |g|/q long, by a share of q^2 u/2,
    and a coordinate of the result by what `error` says. Where the digits of a place next to 0, or of a
    radius, do not tell it as closely, the row is undecided.
    """
    u = 2.0**-45 if dtype is np.float64 else 2.0**-54
    if callable(scale):
        with ctx.workprec(128):
            factor_ball = scale() / arb(step)
            high = float(factor_ball.mid())
            factor = dtype(high) + dtype(float((factor_ball - arb(high)).mid()))
    else:
        factor = scale[:, None].astype(dtype) / dtype(step)
    x = v.astype(dtype, copy=False)
    length = np.sqrt(_dot(x, x))[:, None]
    sign = np.where(bits.side[:, None] == 0, dtype(1), dtype(-1))
    if table is not None:
        tau = table.tau(bits.side, bits.cells, bits.places, dtype)[:, None]
        square = tau * tau
        t, s = sign * (1 - square) / (1 + square), 2 * tau / (1 + square)
        g, radii, energy, inner = _normal(bits, x, dtype)
        energy, inner = energy[:, None], inner[:, None] / length
        rest = energy - inner * inner
        bad = rest <= energy * 2.0**-20
        rest = np.where(bad, energy, rest)
        root = np.sqrt(rest)
        across = factor * s / root
        along = (factor * t - across * inner) / length
        # Doubles serve for the error, which is then enlarged for their rounding.
        size = np.sqrt(energy / rest).astype(float) ** 2 * u * 1.001
        round_ = size * across.astype(float)
        slope = size * (across * np.sqrt(energy) + factor * np.abs(t)).astype(float) / length.astype(float)
        least = np.asarray(factor, dtype=float) * u * (s / root).astype(float)
    out, undecided = np.empty(v.shape) if out is None else out, np.zeros(len(v), dtype=bool)
    pairs = bits.radii.shape[1]
    # (coordinates, their pairs)
    parts = [(block, block) for block in _blocks(len(v), v.shape[1])] if table is None else [
        (slice(first + block.start, min(first + block.stop, v.shape[1])), block)
        for first in (0, pairs) for block in _blocks(len(v), pairs)
    ]  # fmt: skip
    for part, block in parts:
        if table is None:
            lift, error = factor * (sign * x[:, part] / length), np.full(1, float(factor) * u)
        else:
            lift = g[:, part] * across
            lift += along * x[:, part]
            error = round_ * radii[:, block][:, : part.stop - part.start]
            error += slope * np.abs(v[:, part])
            error += least
        lift += bits.tosses[:, part] * dtype(2.0**-32)
        floor = np.floor(lift)
        out[:, part] = floor
        lift -= floor
        # The toss is up to 2^-32 more; adding it rounds by less than the error.
        undecided |= ((lift < error) | (lift + error >= 1 - 2.0**-32)).any(axis=1)
    if table is not None:
        undecided |= bad[:, 0] | np.isin(np.arange(len(v)), list(bits.known))
        undecided |= (bits.cells == 0) & (bits.places < np.uint64(16 / u))
        row, _, more = bits.deep
        undecided[row[(more == 0) | (~more == 0)]] = True
    return out, undecided


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Inner products of rows: numpy adds pairwise along the last axis, in blocks of 128, so that roundings do not pile up.

    It does so where products lie row by row in memory, whatever the order of `a` and `b`; else it adds one column after another.
    """
    return np.asarray(np.multiply(a, b, order="C").sum(axis=1))


def _blocks(count: int, width: int) -> list[slice]:
    """Columns that are computed at a time, so that what is made on the way stays in the cache."""
    wide = max(1, 2**14 // count)
    return [slice(i, min(i + wide, width)) for i in range(0, width, wide)]


def _normal(bits: Bits, x: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(standard normal vectors g by Box and Muller's method, the radii of pairs as floats of 24 bits, |g|^2, <g, x>).

    Coordinates j and j + pairs have one radius.
    """
    (count, pairs), dim = bits.radii.shape, x.shape[1]
    g, radii = np.empty((count, dim), dtype), np.empty((count, pairs), np.float32)
    row, column, more = bits.deep
    order = np.argsort(column, kind="stable")
    row, column, more = row[order], column[order], more[order]
    blocks = _blocks(count, pairs)
    energy, inner = np.zeros((2, count, 2 * len(blocks)), dtype)
    for j, block in enumerate(blocks):
        first, last = np.searchsorted(column, [block.start, block.stop])
        deep = row[first:last], column[first:last] - block.start, more[first:last]
        size = _radii(bits.radii[:, block], deep, dtype)
        radii[:, block] = size
        for k, part in enumerate(_turned(bits.angles[:, block], dtype)):
            here = slice(k * pairs + block.start, min(k * pairs + block.stop, dim))
            part *= size
            part = part[:, : here.stop - here.start]  # the last of an odd number has no partner
            g[:, here] = part
            energy[:, 2 * j + k], inner[:, 2 * j + k] = _dot(part, part), _dot(part, x[:, here])
    return g, radii, energy.sum(axis=1), inner.sum(axis=1)


def _turned(words: np.ndarray, dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """(cos, sin) of 2 pi word/2^64: half a turn forth or back, and an angle of at most a quarter, from half of its tangent.

    Of numpy's functions the tangent is fast where the cosine and the sine are not.
    """
    twice = words << np.uint64(1)
    t = twice.view(np.int64).astype(dtype)  # the remainder of half turns, of 2^64
    t *= (dtype(math.pi) + dtype(1.2246467991473532e-16)) * dtype(2.0**-65)  # pi is fl(pi) and the rest of it
    np.tan(t, out=t)
    twice ^= words
    twice >>= np.uint64(63)  # 1 where half a turn was taken off
    sign = twice.astype(dtype)
    sign *= dtype(-2)
    sign += dtype(1)
    square = t * t
    cosine = 1 - square
    square += dtype(1)
    sign /= square
    cosine *= sign
    t *= dtype(2)
    t *= sign
    return cosine, t


def _radii(words: np.ndarray, deep: tuple[np.ndarray, np.ndarray, np.ndarray], dtype: Any) -> np.ndarray:
    """sqrt(-2 log x) for x = (word + 1/2)/2^64, with 64 bits more of the words that are nearly 0 or 2^64."""
    row, column, more = deep
    x = words.astype(dtype)
    x += dtype(0.5)
    x *= dtype(2.0**-64)
    if row.size:
        coarse, fine = words[row, column], (more.astype(dtype) + dtype(0.5)) * dtype(2.0**-128)
        x[row, column] = coarse.astype(dtype) * dtype(2.0**-64) + fine
    np.log(x, out=x)
    near = words > np.uint64(2**64 - 2**58)
    if near.any():  # the logarithm of numbers near 1, from the complement
        rest = (~words[near]).astype(dtype) + dtype(0.5)
        x[near] = np.log1p(-rest * dtype(2.0**-64))
    if row.size:
        high = words[row, column] >= HIGH
        place, tail = (row[high], column[high]), (~more[high]).astype(dtype) + dtype(0.5)
        x[place] = np.log1p(-((~words[place]).astype(dtype) * dtype(2.0**-64) + tail * dtype(2.0**-128)))
    x *= dtype(-2)
    return np.sqrt(x, out=x)


def _balls(v: np.ndarray, bits: Bits, table: Heights | None, scale: Any, step: float, rng: Any) -> np.ndarray:
    """One vector in balls, from as many digits as it takes."""
    _, column, more = bits.deep
    finer = dict(zip(column.tolist(), more.tolist(), strict=True))
    radii = [Digits(w, 64) for w in bits.radii[0].tolist()]
    radii = [Digits((d.word << 64) + finer[j], 128) if j in finer else d for j, d in enumerate(radii)]
    angles = [Digits(w, 64) for w in bits.angles[0].tolist()]
    tosses = [Digits(w, 32) for w in bits.tosses[0].tolist()]
    place = bits.known.get(0, Digits(int(bits.places[0]), 64))
    side = int(bits.side[0])
    for precision in PRECISIONS:
        place = place.more(rng, precision)
        radii, angles, tosses = ([d.more(rng, precision) for d in part] for part in (radii, angles, tosses))
        with ctx.workprec(precision + 32):
            factor = scale() if callable(scale) else arb(float(scale[0]))
            found = _ball_row(v, side, table, bits, place, radii, angles, tosses, factor / arb(step))
        if found is not None:
            return np.array(found)
    raise RuntimeError("a random number could not be told from a threshold")


def _ball_row(
    v: np.ndarray, side: int, table: Heights | None, bits: Bits, place: Digits, radii: list[Digits],
    angles: list[Digits], tosses: list[Digits], factor: arb,
) -> list[float] | None:  # fmt: skip
    x = [arb(c) for c in v.tolist()]
    length = sum((c * c for c in x), arb(0)).sqrt()
    sign = 1 if side == 0 else -1
    if table is None:
        z = [sign * factor * c / length for c in x]
    else:
        edges = table._sides[side][1]
        low, high = arb(float(edges[int(bits.cells[0])])), arb(float(edges[int(bits.cells[0]) + 1]))
        tau = low + (high - low) * place.ball()
        square = tau * tau
        t, s = sign * (1 - square) / (1 + square), 2 * tau / (1 + square)
        size = [(-2 * d.ball().log()).sqrt() for d in radii]
        turns = [2 * d.ball() for d in angles]
        g = [r * a.cos_pi() for r, a in zip(size, turns, strict=True)]
        g += [r * a.sin_pi() for r, a in zip(size, turns, strict=True)]
        g = g[: len(x)]
        inner = sum((a * b for a, b in zip(g, x, strict=True)), arb(0)) / length
        root = (sum((a * a for a in g), arb(0)) - inner * inner).sqrt()
        across = factor * s / root
        along = (factor * t - across * inner) / length
        z = [across * a + along * b for a, b in zip(g, x, strict=True)]
    found = []
    for a, toss in zip(z, tosses, strict=True):
        k = (a + toss.ball()).floor().unique_fmpz()
        if k is None:
            return None
        found.append(float(int(k)))
    return found

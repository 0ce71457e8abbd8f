"""The best floor of an unbiased mechanism on the unit ball where outputs are close to their inputs: eps large, dim small.

The floor is smooth inside the ball, and varies within a few widths of the favoured balls next to its boundary: knots are a share
of that width apart there, and further and further apart below. Between knots the floor's density is linear, on spheres so close
together that caps see no difference. Rows are balls |y - c x/|x|| <= R as in `optdp.solvers.radial`; all is computed from R
and r - c, which keep their digits where R is tiny. A cut is

    E|Y - x|^2 >= R^2 - (c - rho)^2 + sum_r m_r ( r^2 + c^2 - R^2 - (E - 1) 2 c r E[(t - h)_+] ),

with the caps' height h, 1 - h = (R^2 - (r - c)^2)/(2 c r). Balls that are best for the floor are then given to inputs on as many
norms as make their caps overlap well, and the best weights of these norms are a linear program once more.

For E -> infinity a floor of E^(-2/(dim + 2)) mu has windows of the volume 1/(E m), so that the error at x is
E^(-2/(dim + 2)) ( int mu |y - x|^2 dy + dim/(dim + 2) (V mu(x))^(-2/dim) ), V the volume of the unit ball. Where it is the
same for all x, V mu(x) = (dim/((dim + 2)(A - M |x|^2)))^(dim/2) with the mass M: `limit` takes the best such A. All scales
come from there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from optdp.closed_forms.caps import caps
from optdp.solvers.lp import Highs, LinearProgram, Session, hats

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

#: What is left of E - 1 for floats, and for the heights of caps where R is tiny.
SAFE, ROUNDED = 1e-8, 1e-12
#: Rows that are looked at together.
BLOCK = 512
#: In widths: how deep the fine layer is, how far beyond the boundary outputs may lie. Norms for each width, and knots: in the
#: plane, and in more dimensions, where the floor comes closer to one on few spheres.
DEEP, BEYOND, NORMS, KNOTS = 12.0, 3.0, 16, (8, 16)
#: By how much steps between knots, and between norms, grow below the layer, and the largest one.
GROWTH, SLOWER, LARGEST = 1.12, 1.05, 0.08
#: Around 0, where spheres are as round as balls, there are so many times more of them, up to so many widths.
DENSER, AROUND = 4, 2.5
#: Most rounds; so many in a row without progress end it.
ROUNDS, IDLE = 40, 6
#: How often norms are added; the share of the error by which it may be larger between norms.
REFINEMENTS, BETWEEN = 4, 1e-4
#: Rounds of the program of the multipliers; by how much prices may fall short; knots for each width; radii below the layer.
PRICING, SHORT, WEIGHTS, INNER = 12, 1e-6, 8, 8000
#: Twice as many knots above this width: there prior and floor are on few spheres.
WIDE = 0.05
#: In widths, the centers next to 0.
LEAST = 1e-4
#: By how much, as a share of R, balls are moved at a time.
TRUST = (0.0, 0.01, 0.01, 0.005, 0.005)


def limit(dim: int) -> tuple[float, float, float]:
    """(the error, A, M) for E -> infinity, times E^(2/(dim + 2))."""
    from scipy.optimize import minimize_scalar

    nodes, weights = np.polynomial.legendre.leggauss(400)
    r = (nodes + 1) / 2
    weights = weights / 2 * dim * r ** (dim - 1)

    def of(log: float) -> tuple[float, float, float]:
        a = 1 + math.exp(log)  # A/M
        density = weights * (dim / ((dim + 2) * (a - r * r))) ** (dim / 2)
        mass = float(density.sum()) ** (2 / (dim + 2))
        return mass * a + mass ** (-dim / 2) * float(density @ r**2), mass * a, mass

    return of(float(minimize_scalar(lambda log: of(log)[0], bounds=(-6, 6), method="bounded").x))


def width(eps: float, dim: int) -> float:
    """That of the favoured balls of unit vectors, for large E."""
    _, a, mass = limit(dim)
    return math.sqrt((dim + 2) / dim * math.exp(-2 * eps / (dim + 2)) * (a - mass))


@dataclass(frozen=True)
class Spheres:
    """Radii, increasing, in R^dim; `more` is E - 1. Rows are balls with the centers c and the radii R."""

    dim: int
    more: float
    radii: np.ndarray

    def band(self, c: np.ndarray, R: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(places of the spheres that the balls meet, which of them are meant): as many for each ball."""
        first = np.searchsorted(self.radii, c - R)
        size = int((np.searchsorted(self.radii, c + R) - first).max()) + 1
        places = first[:, None] + np.arange(size)
        return np.minimum(places, self.radii.size - 1), places < self.radii.size

    def caps(self, c: np.ndarray, R: np.ndarray, band: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, ...]:
        """(r, W, T, f, E[2 c r (t - h)_+]) along the band."""
        r, c = self.radii[band[0]], c[:, None]
        rest, size = np.where(band[1], R[:, None] ** 2 - (r - c) ** 2, 0.0), 2 * c * r
        depth = np.clip(rest / (2 * size), 0.0, 1.0)
        small = np.minimum(depth, 1 - depth)
        share, moment, over, _ = caps(self.dim, small, depth > 0.5)
        with np.errstate(invalid="ignore", divide="ignore"):
            dense = np.where(small > 0, (self.dim - 1) * moment / (4 * small * (1 - small)), 0.0)
        return r, share, moment, dense, np.where(depth < 1, size * over, rest - size)

    def rows(self, floor: np.ndarray, c: np.ndarray, guess: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(R, mean along the input, E|Y - mean|^2) of the rows with the centers c, increasing for speed, and mass 1."""
        if c.size > BLOCK:
            parts = [self.rows(floor, c[k : k + BLOCK], guess[k : k + BLOCK]) for k in range(0, c.size, BLOCK)]
            R, mean, variance = (np.concatenate(v) for v in zip(*parts, strict=True))
            return R, mean, variance
        mass = float(floor.sum())
        rest, high = 1 - mass, 1.2 * guess
        for _ in range(80):
            band = self.band(c, high)
            low = self.more * (self.caps(c, high, band)[1] * floor[band[0]]).sum(axis=1) < rest
            if not low.any():
                break
            high = np.where(low, 1.4 * high, high)
        part, R, low, before = floor[band[0]], high.copy(), np.zeros(c.size), np.full(c.size, np.inf)
        left = np.arange(c.size)
        for _ in range(80):  # of those that are left
            near = band[0][left], band[1][left]
            r, share, _, dense, _ = self.caps(c[left], R[left], near)
            held = self.more * (share * part[left]).sum(axis=1)
            excess, now = held - rest, R[left]
            low[left], high[left] = np.where(excess < 0, now, low[left]), np.where(excess >= 0, now, high[left])
            # Newton's step in logarithms, where it stays inside and the last one was a good one.
            with np.errstate(all="ignore"):
                slope = self.more * (dense * part[left] / r).sum(axis=1) * now * now / c[left] / held
                step = now * np.exp(np.log(rest / held) / slope)
            good = (step > low[left]) & (step < high[left]) & (np.abs(excess) < before[left] / 2)
            before[left] = np.abs(excess)
            R[left] = np.where(np.abs(excess) < 1e-11, now, np.where(good, step, (low[left] + high[left]) / 2))
            left = left[(np.abs(excess) >= 1e-11) & (high[left] - low[left] > 1e-14 * high[left])]
            if not left.size:
                break
        r, share, moment, _, _ = self.caps(c, R, band)
        excess = self.more * (share * part).sum(axis=1) - rest
        if excess.min() < -1e-10:  # around 0 whole spheres come in at once: rather too many
            R = np.where(excess < -1e-10, high, R)
            r, share, moment, _, _ = self.caps(c, R, band)
        part, away = self.more * part, r - c[:, None]
        mean = c * rest + (part * (away * share - r * (share - moment))).sum(axis=1)
        around = (part * (away**2 * share + 2 * c[:, None] * r * (share - moment))).sum(axis=1)
        return R, mean, around + float(floor @ self.radii**2) + c * c * mass - (mean - c) ** 2

    def gains(self, c: np.ndarray, R: np.ndarray) -> tuple[csr_matrix, csr_matrix, csr_matrix]:
        """(E - 1) E[2 c r (t - h)_+], and by how much it rises with R^2, and with c where R stays (rows, radii)."""
        from scipy.sparse import csr_matrix, vstack

        if c.size > BLOCK:
            parts = [self.gains(c[k : k + BLOCK], R[k : k + BLOCK]) for k in range(0, c.size, BLOCK)]
            first, second, third = (csr_matrix(vstack(v)) for v in zip(*parts, strict=True))
            return first, second, third
        band = self.band(c, R)
        r, share, moment, _, gain = self.caps(c, R, band)
        met = gain > 0
        places = np.broadcast_to(np.arange(c.size)[:, None], gain.shape)[met], band[0][met]
        along = 2 * ((r - c[:, None]) * share - r * (share - moment))
        first, second, third = (
            csr_matrix((self.more * v[met], places), shape=(c.size, self.radii.size)) for v in (gain, share, along)
        )
        return first, second, third


def _graded(start: float, stop: float, step: float, width: float, growth: float, largest: float) -> np.ndarray:
    """Points from `start` down to `stop`: `step` apart within the layer of `DEEP` widths, below it further and further."""
    points = [start]
    while points[-1] > stop:
        if points[-1] < 1 - DEEP * width:
            step = min(step * growth, largest)
        points.append(points[-1] - step)
    return np.array([p for p in points[::-1] if p > stop + step / 2])


class Layers:
    """The program for one problem; `fine`: spheres for each width."""

    def __init__(self, eps: float, dim: int, fine: int) -> None:
        from scipy.sparse import csr_matrix, diags

        self.dim, self.least = dim, math.exp(-eps)
        value, self.a, self.mass = limit(dim)
        self.scale = math.exp(-2 * eps / (dim + 2))
        self.unit = value * self.scale
        self.width = w = float(self.widths(np.ones(1))[0])
        top = 1 + BEYOND * w
        self.knots = np.concatenate([[0.0], _graded(top, 0.0, w / KNOTS[dim > 2], w, GROWTH, LARGEST)])
        radii = self.steps(top, fine)
        density = (dim / ((dim + 2) * (self.a - self.mass * np.minimum(radii, 1) ** 2))) ** (dim / 2)
        scale = density * self.scale * dim * radii ** (dim - 1) * np.gradient(radii)
        self.hats = csr_matrix(diags(scale) @ hats(radii, self.knots))
        self.spheres = Spheres(dim, math.expm1(eps) * (1 - max(SAFE, ROUNDED / w**2)), radii)
        norms = _graded(1.0, 0.0, w / NORMS, w, SLOWER, LARGEST / 2)
        self.norms = np.unique(
            np.concatenate([norms, norms[:1] / 2, [LEAST * w], 1 - w / NORMS * 2.0 ** -np.arange(1, 5)])
        )
        ends = np.concatenate([[-0.5], np.linspace(0, 3, 25)[1:], np.geomspace(3.5, 300, 25)])
        self.centers = np.unique(np.concatenate([self.norms[:-1], 1 + w * ends]))
        self.best = self.floor = np.where(self.knots <= 1 + 1.5 * w, 1.0, 1e-3)
        self.value, self.bound, self.rounds, self.cuts = math.inf, 0.0, 0, 0

    def widths(self, norms: np.ndarray) -> np.ndarray:
        """Of the favoured balls in the limit."""
        inside = np.clip(norms, 0.0, 1.0) ** 2
        return np.asarray(np.sqrt((self.dim + 2) / self.dim * self.scale * (self.a - self.mass * inside)))

    def steps(self, top: float, count: int) -> np.ndarray:
        """Points from `top` down to 0, so many for each width."""
        points = [top]
        while points[-1] > 0:
            near = DENSER if points[-1] < AROUND * self.width else 1
            points.append(points[-1] - float(self.widths(np.array(points[-1]))) / (count * near))
        return np.array([p for p in points[::-1] if p > 0.1 * self.width / count])

    def row(self, floor: np.ndarray, centers: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(R, mean, variance)."""
        return self.spheres.rows(floor, centers, np.maximum(self.widths(centers), centers - 1))

    def curve(self, floor: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(c, R, mean, variance) of rows with means next to the norms."""
        known = np.array([self.centers, *self.row(floor, self.centers)])
        for _ in range(4):
            means = np.maximum.accumulate(known[2])
            new = np.setdiff1d(np.interp(self.norms[self.norms < means[-1]], means, known[0]), known[0])
            if not new.size:
                break
            known = np.hstack([known, [new, *self.row(floor, new)]])
            known = known[:, np.argsort(known[0], kind="stable")]
            chosen = self.nearest(known[2])
            if np.abs(known[2, chosen] - self.norms)[self.norms < means[-1]].max(initial=0.0) < 0.01 * self.width:
                break
        c, R, mean, variance = known[:, self.nearest(known[2])]
        return c, R, mean, variance

    def nearest(self, means: np.ndarray) -> np.ndarray:
        """The places of the means that are next to the norms."""
        means = np.maximum.accumulate(means)
        at = np.clip(np.searchsorted(means, self.norms), 1, means.size - 1)
        return np.asarray(at - (self.norms - means[at - 1] < means[at] - self.norms))

    def run(
        self, tolerance: float, tell: Callable[[float, float], None], left: Callable[[], float] = lambda: math.inf
    ) -> None:
        """Cutting planes until the bracket is closed, for more and more norms: those between which the error is too large."""
        from scipy.sparse import csr_matrix

        one, square = (
            np.asarray(self.hats.T @ v).ravel() for v in (np.ones(self.hats.shape[0]), self.spheres.radii**2)
        )
        first = csr_matrix(np.concatenate([[0.0], one / self.scale])[None])
        cost = np.concatenate([[1.0], np.zeros(one.size)])
        bounds = np.array([self.least / self.scale]), np.array([1 / self.scale])
        session = Highs().session(LinearProgram(cost, first, *bounds, name="layers"))
        for _ in range(REFINEMENTS):
            self.cut(session, one, square, tolerance, tell, left)
            gaps = np.diff(self.norms)
            between = (self.norms[:-1, None] + gaps[:, None] * np.array([0.25, 0.5, 0.75])).ravel()
            between = between[np.repeat(gaps > self.width / NORMS / 2, 3)]
            variance = self.balls(self.hats @ self.best, between)[3]
            new = between[variance > self.value * (1 + BETWEEN)]
            if not new.size or left() <= 0:
                break
            self.norms, self.value = np.union1d(self.norms, new), math.inf

    def cut(
        self, session: Session, one: np.ndarray, square: np.ndarray, tolerance: float,
        tell: Callable[[float, float], None], left: Callable[[], float],
    ) -> None:  # fmt: skip
        """Cuts for these norms."""
        from scipy.sparse import csr_matrix

        idle = rounds = 0
        while rounds < ROUNDS and idle < IDLE:
            before = self.value - self.bound
            for point in [self.floor] if self.rounds == 0 else [self.floor, (self.floor + self.best) / 2]:
                floor = self.hats @ point
                c, R, mean, variance = self.curve(floor)
                errors = variance + 2 * c * (self.norms - mean) - (self.norms**2 - mean**2)
                if mean.max() > 1 - 0.01 * self.width and errors.max() < self.value:
                    self.value, self.best = float(errors.max()), point
                prices = square + np.outer(c * c - R * R, one) - (self.spheres.gains(c, R)[0] @ self.hats).toarray()
                prices /= self.unit
                worth, size = (R * R - (c - self.norms) ** 2) / self.unit, np.maximum(1.0, np.abs(prices).max(axis=1))
                rows = np.hstack([np.ones((c.size, 1)), -prices]) / size[:, None]
                session.add_rows(csr_matrix(rows), worth / size, np.full(c.size, np.inf))
                self.cuts += c.size
            found = session.solve()
            rounds, self.rounds = rounds + 1, self.rounds + 1
            if not found.usable or found.x.size != one.size + 1:
                break
            self.floor, self.bound = np.maximum(found.x[1:], 0.0), max(self.bound, float(found.x[0]) * self.unit)
            idle = idle + 1 if self.value - self.bound > 0.99 * before else 0
            tell(self.bound, self.value)
            if self.value - self.bound <= tolerance * self.value or left() <= 0:
                break

    def balls(self, floor: np.ndarray, means: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(c, R, mean, variance) of a floor's rows with very nearly these means, which increase."""
        c, _, mean, _ = self.curve(floor)
        mean, first = np.unique(mean, return_index=True)
        c = means + np.interp(means, mean, c[first] - mean)
        for turn in range(4):
            c = np.maximum(c, LEAST * self.width)
            found = self.row(floor, c)
            if turn < 3:
                order = np.argsort(c, kind="stable")
                mean = np.maximum.accumulate(found[1][order])
                c = c - (found[1] - means) if turn < 2 else np.interp(means, mean, c[order])
        return c, *found

    def dual(
        self, each: int, left: Callable[[], float] = lambda: math.inf
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(norms, weights, c, R): so many norms for each width, and the best multipliers that are found for them."""
        from scipy.sparse import csr_matrix, diags, hstack

        w, dim = self.width, self.dim
        norms = self.steps(1.0, each)
        c, R, mean, _ = self.balls(self.hats @ self.best, norms)
        norms, c, R = (v[np.abs(mean - norms) < 0.1 * w] for v in (norms, c, R))
        knots = np.concatenate([[0.0], _graded(1.0, 0.0, w / (WEIGHTS * (1 + (w > WIDE))), w, GROWTH, LARGEST)])
        like = norms ** (dim - 1) * np.gradient(norms) * (norms**2 + 0.5) / self.widths(norms) ** (dim + 2)
        last = csr_matrix(([1.0], ([norms.size - 1], [0])), shape=(norms.size, 1))
        parts = csr_matrix(hstack([diags(like) @ hats(norms, knots), last]))
        sizes = np.asarray(parts.sum(axis=0)).ravel()
        parts = csr_matrix(parts[:, sizes > 0] @ diags(1 / sizes[sizes > 0]))
        top, best, found = float((c + R).max()), 0.0, (norms, np.zeros(norms.size), c, R)
        fine = np.concatenate([np.geomspace(1e-4, 0.1, 100)[:-1] * w, np.arange(0.1 * w, 1.01 * top, w / 60)])
        for smaller in (0.0, 1e-3, 3e-3, 1e-2, 3e-2):  # until there are weights for which no price is negative
            weights, *_ = self.weigh(knots, parts, norms, c, R * math.sqrt(1 - smaller), 0.0)
            if weights.sum() > 0:
                R = R * math.sqrt(1 - smaller)
                break
        for trust in TRUST:
            weights, c, R = self.weigh(knots, parts, norms, c, R, trust)
            if not weights.sum() > 0:
                break
            weights, reach = weights / weights.sum(), R
            for _ in range(6):  # a common factor for all R makes up for radii that were not looked at
                gained = weights @ Spheres(dim, self.spheres.more, fine).gains(c, reach)[0]
                worst = float((gained / (fine**2 + weights @ (c * c - reach * reach))).max())
                if worst < 1 + 1e-7:
                    break
                reach = reach * worst ** (-1 / (dim + 2))
            value = float(weights @ (reach**2 - (c - norms) ** 2))
            if value > best:
                best, found = value, (norms, weights, c, reach)
            if left() <= 0:
                break
        return found

    def weigh(
        self, knots: np.ndarray, parts: csr_matrix, norms: np.ndarray, c: np.ndarray, R: np.ndarray, trust: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(weights, c, R): the best combination of `parts`, and R^2 and c moved by at most the share `trust` of R^2 and R.

        g is concave in weights times multipliers: what is moved is moved along tangents.
        """
        from scipy.sparse import csr_matrix, diags, hstack, identity, vstack

        w, top, count = self.width, float((c + R).max()), parts.shape[1]
        inner = np.linspace(3 * w, max(3 * w, 1 - DEEP * w), min(INNER, 2 + int(31 / w)))[1:-1]
        rest = np.concatenate([
            np.geomspace(1e-4, 0.1, 9)[:-1] * w, np.arange(0.1, 3, 1 / 31) * w,
            np.interp(np.arange(0, knots.size, 0.25), np.arange(knots.size), knots), np.arange(1 - DEEP * w, top, w / 31),
        ])  # fmt: skip
        radii, first = np.unique(np.append(rest, inner), return_index=True)
        radii, first = radii[radii > 0], first[radii > 0]
        gains, wider, moved = Spheres(self.dim, self.spheres.more, radii).gains(c, R)

        def priced(everywhere: np.ndarray, gains: csr_matrix) -> np.ndarray:
            return np.asarray(parts.T @ everywhere) - (gains.T @ parts).toarray()

        prices = np.outer(radii**2, np.ones(count)) + priced(c * c - R * R, gains)
        scale = 1 / np.abs(prices).max(axis=1, keepdims=True)
        worth = [R * R - (c - norms) ** 2]
        if trust:
            shares = diags(R * R), diags(R)
            prices = np.hstack([prices, priced(-R * R, shares[0] @ wider), priced(2 * c * R, shares[1] @ moved)])
            worth += [R * R, -2 * R * (c - norms)]
        prices, cost = prices * scale, -np.concatenate([parts.T @ v for v in worth]) / self.unit
        one = np.concatenate([np.ones(count), np.zeros(cost.size - count)])
        some = np.concatenate([np.flatnonzero(first < rest.size)[::2], np.flatnonzero(first >= rest.size)[::16]])
        rows, limits = [csr_matrix(np.vstack([one, prices[some]]))], np.zeros(some.size)
        if trust:
            same, none = identity(count), csr_matrix((count, count))
            rows += [hstack([trust * same, s * a, s * b]) for s in (1, -1) for a, b in ((same, none), (none, same))]
            limits = np.zeros(some.size + 4 * count)
        free = np.where(one > 0, 0.0, -np.inf)
        ends = np.append(1.0, limits), np.append(1.0, np.full(limits.size, np.inf))
        session = Highs().session(LinearProgram(cost, vstack(rows), *ends, free, name="multipliers"))
        point = np.zeros(cost.size)
        for _ in range(PRICING):
            result = session.solve()
            if not result.usable or result.x.size != cost.size:
                break
            point = result.x
            short = -(prices @ point)
            peak = np.flatnonzero((short > SHORT) & (short >= np.roll(short, 1)) & (short >= np.roll(short, -1)))
            if not peak.size:
                break
            peak = peak[np.argsort(-short[peak], kind="stable")[:200]]
            session.add_rows(csr_matrix(prices[peak]), np.zeros(peak.size), np.full(peak.size, np.inf))
        weights = parts @ np.maximum(point[:count], 0.0)
        if trust:
            with np.errstate(invalid="ignore", divide="ignore"):
                moves = np.nan_to_num(np.array([parts @ v for v in np.split(point[count:], 2)]) / weights)
            grown, along = np.clip(moves, -trust, trust)
            c, R = np.maximum(c + along * R, LEAST * w), R * np.sqrt(1 + grown)
        return np.asarray(weights), c, R

"""The best floor of an unbiased mechanism on the unit ball: a convex program in one number for each radius, by cutting planes.

By averaging over rotations the floor m depends on the radius of the output alone, and inputs matter by their norm rho. Given m
the best row of an input x multiplies the floor by E on a ball of outputs around c x/|x|, |y - c x/|x|| <= R, which is a cap of
every sphere of outputs. Its multipliers are mu = 2 c (of the mean) and nu = R^2 - c^2 (of the mass), and every such pair
gives a cut

    E|Y|^2 - rho^2 >= nu + mu rho - rho^2 + sum_r m_r g(r; mu, nu)        (g: see `optdp.certificates.radial`).

For each c the mass determines R, and then the mean and E|Y|^2: the best rows are a curve, found without a search for
multipliers. Cuts are added along it at the master's floor and half way to the best one so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from optdp.solvers.lp import Highs, LinearProgram

#: Rounds after which a program stops short of its tolerance (5 to 50 are usual), and all of them; so many in a row without
#: progress end one.
ROUNDS, ALL_ROUNDS, IDLE = 60, 150, 6
#: How often radii and norms are added; how many radii at a time; on how many radii the dual point is evaluated.
REFINEMENTS, NEW, FINE = 24, 64, 2048
#: In units of the tolerance of each program: the gap for all radii and norms that ends it.
ENOUGH = 4.0
#: Rounds in which the rows of given norms are searched, to within this share of the error.
SEARCH, ALIKE = 12, 1e-5
#: Norms that are looked at between two norms of the program.
BETWEEN = 6
#: Floors are evaluated by rows that reach this close to the mean 1.
NEAR = 1e-4


@dataclass(frozen=True)
class Caps:
    """Floors on some radii in R^dim, dim >= 2; `more` is E - 1. All in floats."""

    dim: int
    more: float
    radii: np.ndarray

    def shares(self, slopes: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(W, T, f) of the cap that each pair of multipliers favours, on each radius (pairs, radii)."""
        r, mu, nu = self.radii, slopes[:, None], levels[:, None]
        return _cap(self.dim, (r * r - nu) / (mu * r))

    def prices(self, slopes: np.ndarray, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(g, its loss for each unit of the level) (pairs, radii)."""
        share, moment, _ = self.shares(slopes, levels)
        factor = 1 + self.more * share
        reduced = self.radii**2 - levels[:, None]
        return reduced * factor - self.more * slopes[:, None] * self.radii * moment, factor

    def rows(
        self, floor: np.ndarray, slopes: np.ndarray, rounds: int = 80
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(nu, mean along the input, E|Y|^2) of the rows with the slopes mu and mass 1."""
        used = floor > 0
        some, m = Caps(self.dim, self.more, self.radii[used]), floor[used]
        r, rest, c = some.radii, 1 - float(floor.sum()), slopes / 2
        low, high = np.maximum(0.0, c - r.max()), c + r.max()
        radius, before = (low + high) / 2, np.full(c.shape, np.inf)
        for _ in range(rounds):
            share, _, dense = some.shares(slopes, radius**2 - c**2)
            mass = self.more * (share @ m) - rest
            low, high = np.where(mass < 0, radius, low), np.where(mass >= 0, radius, high)
            if np.abs(mass).max() < 1e-12 or (high - low <= 1e-15 * high).all():
                break
            with np.errstate(all="ignore"):  # Newton's step where it stays inside and the last one was a good one
                step = radius - mass / (self.more * (dense @ (m / r)) * radius / c)
            good = (step > low) & (step < high) & (np.abs(mass) < before / 2)
            radius, before = np.where(good, step, (low + high) / 2), np.abs(mass)
        levels = radius**2 - c**2
        share, moment, _ = some.shares(slopes, levels)
        square = floor @ self.radii**2 + self.more * (share @ (m * r * r))
        return levels, self.more * (moment @ (m * r)), square

    def reach(self, floor: np.ndarray) -> tuple[float, float]:
        """(the largest mean of a row, the height of the half-space that it favours)."""
        low, high = -float(self.radii.max()), float(self.radii.max())
        rest, used = 1 - float(floor.sum()), floor > 0
        for _ in range(60):
            middle = (low + high) / 2
            if self.more * float(floor[used] @ _share(self.dim, middle / self.radii[used])) > rest:
                low = middle
            else:
                high = middle
        height = (low + high) / 2
        return height + float(floor @ self.far(height)), height

    def far(self, height: float | np.ndarray) -> np.ndarray:
        """What a unit of floor adds to a bound `height` + ... on the mean of every row, for each radius."""
        share, moment, _ = _cap(self.dim, height / self.radii)
        return np.asarray(self.more * (self.radii * moment - height * share) - height)

    def curve(
        self, floor: np.ndarray, norms: np.ndarray, close: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(mu, nu, mean, E|Y|^2) of best rows next to the norms (increasing, > 0), if floats find them.

        As close that E|Y|^2, which is convex in the mean, is known for the norm to within `close` by its tangent there.
        The least slope already has a mean > 0: smaller ones come from rows for x and -x, with the same E|Y|^2.
        """
        size = 2 * min(float(self.radii.max()), 2.0)
        slopes = size * np.concatenate(
            [np.geomspace(1e-4, 0.05, 6), np.linspace(0.08, 1.5, 24), np.geomspace(2, 1e4, 24)]
        )
        known = np.array([slopes, *self.rows(floor, slopes)])
        missed = np.arange(norms.size)
        for turn in range(SEARCH):
            means = np.maximum.accumulate(known[2])
            at = np.searchsorted(means, norms[missed])
            inside = (at > 0) & (at < means.size)
            missed, at = missed[inside], at[inside]
            low, high = known[0, at - 1], known[0, at]
            away = np.minimum(means[at] - norms[missed], norms[missed] - means[at - 1])
            far = (away * (high - low) > close) | (turn < 2)
            missed, low, high = (v[far & (high - low > 1e-13 * high)] for v in (missed, low, high))
            if not missed.size:
                break
            # What interpolates, and every third time the middle, as the mean may rise steeply.
            slopes = np.unique((low + high) / 2 if turn % 3 == 2 else np.interp(norms[missed], means, known[0]))
            known = np.hstack([known, [slopes, *self.rows(floor, slopes)]])
            known = known[:, np.unique(known[0], return_index=True)[1]]
        means = np.maximum.accumulate(known[2])
        at = np.clip(np.searchsorted(means, norms), 1, means.size - 1)
        slopes, levels, means, squares = known[:, at - (norms - means[at - 1] < means[at] - norms)]
        return slopes, levels, means, squares


def attained(slopes: np.ndarray, means: np.ndarray, squares: np.ndarray, norms: np.ndarray) -> np.ndarray:
    """About E|Y|^2 of the best rows for these norms, from best rows next to them.

    It is convex in the norm, with the slopes mu: between the tangents and the chord the cubic with these slopes is taken.
    """
    means, first = np.unique(means, return_index=True)
    slopes, squares = slopes[first], squares[first]
    if means.size == 1:
        return squares[0] + np.maximum(norms - means[0], 0) * slopes[0]
    at = np.clip(np.searchsorted(means, norms, side="right") - 1, 0, means.size - 2)
    width, t = means[at + 1] - means[at], norms - means[at]
    rise = (squares[at + 1] - squares[at]) / width
    s = np.clip(t / width, 0, 1)
    chord = squares[at] + rise * width * s
    cubic = chord + width * s * (1 - s) * ((slopes[at] - rise) * (1 - s) - (slopes[at + 1] - rise) * s)
    tangents = np.maximum(squares[at] + slopes[at] * t, squares[at + 1] + slopes[at + 1] * (t - width))
    inside = np.clip(cubic, np.minimum(tangents, chord), chord)
    return np.where(norms < means[0], squares[0], np.where(norms > means[-1], tangents, inside))


def _share(dim: int, height: np.ndarray) -> np.ndarray:
    """Of the directions, those above a height: the first number of `_cap` alone."""
    from scipy.special import betainc

    height = np.clip(height, -1.0, 1.0)
    size = np.abs(height)
    if dim == 2:
        share = np.arccos(size) / math.pi
    elif dim == 3:
        share = (1 - size) / 2
    else:
        share = betainc((dim - 1) / 2, 0.5, (1 - size) * (1 + size)) / 2
    return np.where(height < 0, 1 - share, share)


def _cap(dim: int, height: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from scipy.special import gammaln

    size = np.abs(np.clip(height, -1.0, 1.0))
    rest = (1 - size) * (1 + size)
    with np.errstate(divide="ignore", under="ignore"):
        constant = gammaln(dim / 2) - gammaln((dim - 1) / 2) - math.log(math.pi) / 2
        moment = np.exp(constant + (dim - 1) / 2 * np.log(rest)) / (dim - 1)
        dense = np.where(rest > 0, (dim - 1) * moment / np.maximum(rest, 1e-300), 0.0)
    return _share(dim, height), moment, dense


@dataclass(frozen=True)
class RadialFloor:
    """A floor and a dual point, in floats: to be checked like any solver's answer.

    `radii`, `floor`; `norms`, `weights`, `slopes`, `levels`: of the dual; `value`: about the largest error;
    `bound`: about what the dual point proves for all radii.
    """

    radii: np.ndarray
    floor: np.ndarray
    norms: np.ndarray
    weights: np.ndarray
    slopes: np.ndarray
    levels: np.ndarray
    value: float
    bound: float
    rounds: int
    cuts: int


def start_floor(eps: float, dim: int, length: float, count: int) -> tuple[Caps, np.ndarray]:
    """Radii up to some multiple of the sphere's `length`, and an even floor with room for means of more than 1."""
    more, best, masses = math.expm1(eps), (-math.inf, 0.0), np.exp(np.linspace(-eps, 0, 60))[1:-1]
    for top in (1.15, 1.3, 1.6, 2.0, 3.0):
        caps = Caps(dim, more, np.linspace(0, top * length, count + 1)[1:])
        # `reach` of all masses at once, to half as many digits of the height, in which the mean is least where it is sought.
        low, high = np.full(masses.size, -top * length), np.full(masses.size, top * length)
        for _ in range(30):
            middle = (low + high) / 2
            above = more * masses * _share(dim, middle[:, None] / caps.radii).mean(axis=1) > 1 - masses
            low, high = np.where(above, middle, low), np.where(above, high, middle)
        height = (low + high) / 2
        means = height + masses * caps.far(height[:, None]).mean(axis=1)
        best = max(best, (float(means.max()), float(masses[means.argmax()])))
        if best[0] > 1.05:
            break
    return caps, np.full(count, best[1] / count)


def solve_radial(
    eps: float, dim: int, length: float, error: float, *, radii: int, norms: int, tolerance: float = 1e-4,
    tell: Callable[[float, float], None] = lambda bound, value: None, left: Callable[[], float] = lambda: math.inf,
) -> RadialFloor:  # fmt: skip
    """The best floor on so many radii, and on those that turn out to be missing, for so many norms of inputs.

    **Arguments:** `length`: the radius of the sphere's optimal mechanism; `error`: what is attained by other means;
    `tolerance`: the relative gap at which each program is left, and all of them at some multiple of it; `tell`: told each
    bracket; `left`: how many more seconds there are. How long it goes on is counted in rounds: the clock only stops it.
    """
    caps, floor = start_floor(eps, dim, length, radii)
    places = np.linspace(0, 1, norms + 1)  # 0 too: its value is that of the least mean of a row
    near = np.array([1 / 4, *(norms - 2.0 ** -np.arange(1, 5))]) / norms
    master = _Master(caps, np.unique(np.concatenate([places, near])), error, floor, math.exp(-eps))
    low, high, dual, best = 0.0, math.inf, master.dual, (caps.radii, floor)
    for _ in range(REFINEMENTS):
        master.run(tolerance, tell, left)
        (bound, new), (value, places) = master.missing(tolerance / 4), master.between(tolerance)
        if bound > low:
            low, dual = bound, master.dual
        if value < high:
            high, best = value, (master.caps.radii, master.best)
        tell(low, high)
        done = high - low <= ENOUGH * tolerance * high or not new.size + places.size
        if done or master.rounds >= ALL_ROUNDS or left() <= 0:
            break
        master.extend(new, places)
    order = np.argsort(best[0])
    radii_, floor = (part[order] for part in best)
    cuts = sum(cut.size for cut in master.cuts)
    return RadialFloor(radii_, floor, *dual, high, low, master.rounds, cuts)


class _Master:
    """The program over the cuts found so far: floors are in units of `sizes`, errors in units of `unit`."""

    def __init__(self, caps: Caps, places: np.ndarray, unit: float, floor: np.ndarray, least: float) -> None:
        self.caps, self.places, self.unit, self.mass = caps, places, unit, float(floor.sum())
        self.sizes = self.size(caps.radii)
        self.close = ALIKE * unit
        self.floor = self.inner = self.best = floor
        self.value, self.bound, self.rounds = math.inf, 0.0, 0
        self.cuts: list[_Cut] = []
        self.dual = (np.zeros(0),) * 4
        count = floor.size
        first = np.concatenate([[0.0], self.sizes / self.mass])[None]
        cost = np.concatenate([[1.0], np.zeros(count)])
        self.session = Highs().session(
            LinearProgram(cost, first, np.array([least]) / self.mass, np.ones(1) / self.mass, name="radial floor")
        )

    def size(self, radii: np.ndarray) -> np.ndarray:
        """The mass at which a ball of the error's size around an output of this radius is full, or all of the floor's."""
        share = _cap(self.caps.dim, 1 - self.unit / (2 * radii**2))[0]
        return self.mass / np.maximum(1.0, self.mass * self.caps.more * share)

    def run(self, tolerance: float, tell: Callable[[float, float], None], left: Callable[[], float]) -> None:
        """Add cuts until the bracket of these radii is closed."""
        idle = rounds = 0
        self.bound = 0.0  # more radii have a smaller optimum
        while rounds < ROUNDS and self.rounds < ALL_ROUNDS and idle < IDLE:
            before = self.value - self.bound
            points = [self.floor] if self.rounds == 0 else [self.floor, (self.floor + self.inner) / 2]
            for point in points:
                if not self.cut(point) and len(points) < 3:
                    points.append(0.2 * self.floor + 0.8 * self.inner)
            found = self.session.solve()
            if not found.usable or found.x.size <= 1:
                break
            self.floor = np.maximum(found.x[1:], 0.0) * self.sizes
            if float(found.x[0]) * self.unit > self.bound:
                self.bound, self.dual = float(found.x[0]) * self.unit, self.merged(np.maximum(found.row_dual[1:], 0.0))
            rounds, self.rounds = rounds + 1, self.rounds + 1
            idle = idle + 1 if self.value - self.bound > 0.99 * before else 0
            tell(self.bound, self.value)
            if self.value - self.bound <= tolerance * self.value < math.inf or left() <= 0:
                break

    def cut(self, point: np.ndarray) -> bool:
        """Cuts at a floor; whether its rows reach all means."""
        caps, places = self.caps, self.places
        most, height = caps.reach(point)
        if not most > 1 + 1e-7:
            self.add(_Cut(np.zeros(0), np.zeros(0), np.zeros(0), np.ones(1), height), np.array([1 + 1e-6 - height]))
            return False
        slopes, levels, means, squares = caps.curve(point, places, self.close)
        errors = attained(slopes, means, squares, places) - places**2
        if means.max() > 1 - NEAR and errors.max() < self.value:
            self.value = float(errors.max())
            self.inner = self.best = point
        cut = _Cut(places, slopes, levels, np.ones(places.size))
        scale = np.maximum(self.unit, np.abs(self.sizes * cut.prices(caps)).max(axis=1))
        self.add(replace(cut, scale=scale), levels + slopes * places - places**2)
        return True

    def add(self, cut: _Cut, worth: np.ndarray) -> None:
        """New rows."""
        from scipy.sparse import csr_matrix

        head = np.full((cut.size, 1), self.unit if cut.places.size else 0.0)
        body = np.hstack([head, -self.sizes * cut.prices(self.caps)]) / cut.scale[:, None]
        self.session.add_rows(csr_matrix(body), worth / cut.scale, np.full(cut.size, np.inf))
        self.cuts.append(cut)

    def merged(self, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(norms, weights, slopes, levels): the cuts of a norm in one, with their mean multipliers, as g is concave in these."""
        ends = np.cumsum([cut.size for cut in self.cuts])[:-1]
        total, slopes, levels = (np.zeros(self.places.size) for _ in range(3))
        for cut, share in zip(self.cuts, np.split(shares, ends), strict=True):
            if cut.places.size:
                at, weights = np.searchsorted(self.places, cut.places), share / cut.scale
                for sums, part in ((total, 1.0), (slopes, cut.slopes), (levels, cut.levels)):
                    sums[at] += weights * part
        used = total > 1e-9 * max(float(total.sum()), 1e-300)
        return self.places[used], total[used], slopes[used] / total[used], levels[used] / total[used]

    def missing(self, tolerance: float) -> tuple[float, np.ndarray]:
        """(about the bound that the dual point proves for all radii, the radii at which it is violated most)."""
        _, weights, slopes, levels = self.dual
        if not weights.size:
            return 0.0, np.zeros(0)
        end = float((slopes / 2 + np.sqrt(np.maximum(slopes**2 / 4 + levels, 0))).max())
        fine = replace(self.caps, radii=np.linspace(0, end, FINE + 1)[1:])
        prices, factors = (weights @ part for part in fine.prices(slopes, levels))
        short = np.concatenate([[0.0], -prices / factors, [0.0]])  # by how much levels are too high
        peak = (short[1:-1] > short[:-2]) & (short[1:-1] >= short[2:]) & (short[1:-1] > tolerance * self.bound)
        chosen = np.flatnonzero(peak)
        chosen = chosen[np.argsort(-short[1:-1][chosen], kind="stable")[:NEW]]
        return self.bound - float(short.max()), fine.radii[chosen]

    def between(self, tolerance: float) -> tuple[float, np.ndarray]:
        """(about the largest error of the best floor for all norms, those in between at which it is too large)."""
        if not math.isfinite(self.value):
            return self.value, np.zeros(0)
        shares = np.linspace(0, 1, BETWEEN + 1)[:-1]
        gaps = np.diff(self.places)
        fine = np.append((self.places[:-1, None] + gaps[:, None] * shares).ravel(), 1.0)
        slopes, _, means, squares = self.caps.curve(self.best, fine, self.close)
        errors = attained(slopes, means, squares, fine) - fine**2
        blocks = errors[:-1].reshape(gaps.size, BETWEEN)
        high = blocks.max(axis=1) > self.value * (1 + tolerance)
        new = fine[:-1].reshape(gaps.size, BETWEEN)[np.arange(gaps.size), np.argmax(blocks, axis=1)][high]
        return max(self.value, float(errors.max())), np.setdiff1d(new, self.places)

    def extend(self, radii: np.ndarray, norms: np.ndarray) -> None:
        """Add radii and norms."""
        from scipy.sparse import csc_matrix

        new, sizes = replace(self.caps, radii=radii), self.size(radii)
        parts = [-sizes * cut.prices(new) / cut.scale[:, None] for cut in self.cuts]
        columns = np.concatenate([sizes[None] / self.mass, *parts])
        self.session.add_columns(np.zeros(radii.size), csc_matrix(columns))
        self.caps = replace(self.caps, radii=np.concatenate([self.caps.radii, radii]))
        self.sizes = np.concatenate([self.sizes, sizes])
        none = np.zeros(radii.size)
        self.floor, self.inner, self.best = (np.concatenate([v, none]) for v in (self.floor, self.inner, self.best))
        if norms.size:
            self.places, self.value = np.union1d(self.places, norms), math.inf


@dataclass(frozen=True)
class _Cut:
    """Rows for all norms with their multipliers, each divided by its scale; or without norms, what a half-space allows."""

    places: np.ndarray
    slopes: np.ndarray
    levels: np.ndarray
    scale: np.ndarray
    height: float = 0.0

    @property
    def size(self) -> int:
        return self.scale.size

    def prices(self, caps: Caps) -> np.ndarray:
        """g, or less what a unit of floor adds to the largest mean (rows, radii)."""
        return caps.prices(self.slopes, self.levels)[0] if self.places.size else -caps.far(self.height)[None]

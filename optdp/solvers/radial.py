"""The best floor of an unbiased mechanism on the unit ball: a convex program in one number for each radius, by cutting planes.

By averaging over rotations the floor m depends on the radius of the output alone, and inputs matter by their norm rho. Given m the
best row of an input x multiplies the floor by E on a ball of outputs around c x/|x|, |y - c x/|x|| <= R, which is a cap of every
sphere of outputs. Its multipliers are mu = 2 c (of the mean) and nu = R^2 - c^2 (of the mass), and every pair of multipliers
gives a cut

    E|Y|^2 - rho^2 >= nu + mu rho - rho^2 + sum_r m_r g(r; mu, nu)        (g: see `optdp.certificates.radial`).

For each c the mass determines R, and then the mean and E|Y|^2: the best rows are a curve, found without a search for
multipliers. Cuts are added along it at the master's floor and half way to the best one so far.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optdp.solvers.lp import Highs, LinearProgram

#: Rounds after which the method stops short of its tolerance (5 to 50 are usual); so many in a row without progress end it.
ROUNDS, IDLE = 150, 12


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

    def rows(self, floor: np.ndarray, slopes: np.ndarray, rounds: int = 60) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(nu, mean along the input, E|Y|^2) of the rows with the slopes mu and mass 1."""
        used = floor > 0
        some, m = Caps(self.dim, self.more, self.radii[used]), floor[used]
        r, rest, c = some.radii, 1 - float(floor.sum()), slopes / 2
        low, high = np.maximum(0.0, c - r.max()), c + r.max()
        radius = (low + high) / 2
        for k in range(rounds):
            share, _, dense = some.shares(slopes, radius**2 - c**2)
            mass = self.more * (share @ m) - rest
            low, high = np.where(mass < 0, radius, low), np.where(mass >= 0, radius, high)
            if np.abs(mass).max() < 1e-12 or (high - low <= 1e-15 * high).all():
                break
            with np.errstate(all="ignore"):  # Newton's step where it stays inside, and a bisection now and then
                step = radius - mass / (self.more * (dense @ (m / r)) * radius / c)
            inside = (step > low) & (step < high) & (k % 4 != 3)
            radius = np.where(inside, step, (low + high) / 2)
        levels = radius**2 - c**2
        share, moment, _ = some.shares(slopes, levels)
        square = floor @ self.radii**2 + self.more * (share @ (m * r * r))
        return levels, self.more * (moment @ (m * r)), square

    def reach(self, floor: np.ndarray) -> tuple[float, float]:
        """(the largest mean of a row, the height of the half-space that it favours)."""
        low, high = -float(self.radii.max()), float(self.radii.max())
        rest = 1 - float(floor.sum())
        for _ in range(60):
            middle = (low + high) / 2
            if self.more * float(floor @ _cap(self.dim, middle / self.radii)[0]) > rest:
                low = middle
            else:
                high = middle
        height = (low + high) / 2
        return height + float(floor @ self.far(height)), height

    def far(self, height: float) -> np.ndarray:
        """What a unit of floor adds to a bound `height` + ... on the mean of every row, for each radius."""
        share, moment, _ = _cap(self.dim, height / self.radii)
        return np.asarray(self.more * (self.radii * moment - height * share) - height)

    def curve(self, floor: np.ndarray, norms: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(mu, nu, mean, E|Y|^2) of best rows whose means are about these norms, increasing and > 0."""
        size = 2 * min(float(self.radii.max()), 2.0)
        slopes = size * np.concatenate([np.geomspace(1e-4, 0.05, 6), np.linspace(0.08, 1.5, 24), np.geomspace(2, 1e4, 24)])
        means = np.maximum.accumulate(self.rows(floor, slopes, 24)[1])
        start = slopes[0] * min(1.0, norms[0] / means[0]) / 2
        slopes = np.interp(norms, np.concatenate([[0.0], means]), np.concatenate([[start], slopes]))
        return slopes, *self.rows(floor, slopes)


def _cap(dim: int, height: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    from scipy.special import betainc, gammaln

    height = np.clip(height, -1.0, 1.0)
    size = np.abs(height)
    rest = (1 - size) * (1 + size)
    if dim == 2:
        share = np.arccos(size) / math.pi
    elif dim == 3:
        share = (1 - size) / 2
    else:
        share = betainc((dim - 1) / 2, 0.5, rest) / 2
    with np.errstate(divide="ignore", under="ignore"):
        constant = gammaln(dim / 2) - gammaln((dim - 1) / 2) - math.log(math.pi) / 2
        moment = np.exp(constant + (dim - 1) / 2 * np.log(rest)) / (dim - 1)
        dense = np.where(rest > 0, (dim - 1) * moment / np.maximum(rest, 1e-300), 0.0)
    return np.where(height < 0, 1 - share, share), moment, dense


@dataclass(frozen=True)
class RadialFloor:
    """A floor and a dual point, in floats: to be checked like any solver's answer.

    `radii`, `floor`; `norms`, `weights`, `slopes`, `levels`: of the dual; `value`: the largest error at the norms of the
    program; `bound`: the master's value; `stopped`: whether `left` ended it.
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
    stopped: bool


def start_floor(eps: float, dim: int, length: float, count: int) -> tuple[Caps, np.ndarray]:
    """Radii up to some multiple of the sphere's `length`, and an even floor with room for means of more than 1."""
    more, best = math.expm1(eps), (-math.inf, 0.0)
    for top in (1.15, 1.3, 1.6, 2.0, 3.0):
        caps = Caps(dim, more, np.linspace(0, top * length, count + 1)[1:])
        for mass in np.exp(np.linspace(-eps, 0, 60))[1:-1].tolist():
            best = max(best, (caps.reach(np.full(count, mass / count))[0], mass))
        if best[0] > 1.05:
            break
    return caps, np.full(count, best[1] / count)


def solve_radial(
    eps: float, dim: int, length: float, *, radii: int, norms: int, tolerance: float = 1e-4,
    left: Callable[[], float] = lambda: math.inf, tell: Callable[[float, float], None] = lambda bound, value: None,
) -> RadialFloor:  # fmt: skip
    """The best floor on so many radii, for so many norms of inputs.

    **Arguments:** `length`: the radius of the sphere's optimal mechanism; `tolerance`: the relative gap at which to stop; `left`:
    the seconds that are left; `tell`: told each bracket.
    """
    from scipy.sparse import csr_matrix

    caps, inner = start_floor(eps, dim, length, radii)
    places, unit, mass = np.linspace(0, 1, norms + 1)[1:], length**2, float(inner.sum())
    places = np.concatenate([[places[0] / 4], places])
    first = LinearProgram(
        np.concatenate([[1.0], np.zeros(radii)]), csr_matrix(np.concatenate([[0.0], np.full(radii, mass)])[None]),
        np.array([math.exp(-eps)]), np.ones(1), name="radial floor",
    )  # fmt: skip
    session = Highs().session(first)
    at: list[np.ndarray] = []
    floor, value, bound, best = inner, math.inf, 0.0, inner
    dual = np.zeros((0, 4)), np.zeros(0)
    rounds, idle, stopped = 0, 0, False
    while not value <= bound + tolerance * min(value, 2.0**1000) and rounds < ROUNDS and idle < IDLE:
        before, stopped = value - bound, left() <= 0
        if stopped and math.isfinite(value):
            break
        points = [floor] if rounds == 0 else [floor, (floor + inner) / 2]
        for point in points:
            most, height = caps.reach(point)
            if not most > 1 + 1e-7:  # no row has the mean 1: a cut without the error
                session.add_rows(
                    csr_matrix(np.concatenate([[0.0], mass * caps.far(height)])[None]), [1 + 1e-6 - height], [np.inf]
                )
                at.append(np.full((1, 4), np.nan))
                if len(points) < 3:
                    points.append(0.2 * floor + 0.8 * inner)
                continue
            slopes, levels, means, squares = caps.curve(point, places)
            errors = squares - means**2
            errors[-1] = float(np.interp(1.0, means, squares)) - 1 if means[-1] > 1 else errors[-1]
            if errors.max() < value:
                value, best = float(errors.max()), point
                inner = point
            body = np.hstack([np.full((places.size, 1), unit), -mass * caps.prices(slopes, levels)[0]])
            scale = np.maximum(unit, np.abs(body).max(axis=1))
            worth = levels + slopes * places - places**2
            session.add_rows(csr_matrix(body / scale[:, None]), worth / scale, np.full(places.size, np.inf))
            at.append(np.stack([places, slopes, levels, unit / scale], axis=1))
        found = session.solve(time_limit=max(left(), 1.0))
        if not found.usable or found.x.size <= 1:
            break
        floor = np.maximum(found.x[1:], 0.0) * mass
        total = float(found.x[0]) * unit
        if total > bound:
            bound, dual = total, (np.concatenate(at), np.maximum(found.row_dual[1:], 0.0))
        rounds, idle = rounds + 1, idle + 1 if value - bound > 0.99 * before else 0
        tell(bound, value)
    return RadialFloor(
        caps.radii, best, *_merged(places, *dual), value, bound, rounds, sum(map(len, at)), stopped
    )  # fmt: skip


def _merged(
    places: np.ndarray, cuts: np.ndarray, shares: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """(norms, weights, slopes, levels): the cuts of one norm in one, with their mean multipliers, as g is concave in these."""
    kept = np.isfinite(cuts[:, 0]) & (shares > 0) if len(cuts) else np.zeros(0, dtype=bool)
    cuts, shares = cuts[kept], shares[kept]
    weights = shares * cuts[:, 3]
    which = np.searchsorted(places, cuts[:, 0])
    total, slopes, levels = (np.bincount(which, weights * v, places.size) for v in (1.0, cuts[:, 1], cuts[:, 2]))
    used = total > 1e-9 * max(float(total.sum()), 1e-300)
    return places[used], total[used], slopes[used] / total[used], levels[used] / total[used]

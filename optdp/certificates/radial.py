"""A bound for unbiased mechanisms on the unit ball: finitely many norms of inputs, with weights and two multipliers each.

Let x be uniform on the sphere of radius rho_i with the weight w_i, and L_i(y) = |y|^2 - mu_i <y, x/|x|> - nu_i. A mechanism
with mean x, floor m and rows K between m and E m has

    sum w_i E|Y - x|^2 = sum w_i (nu_i + mu_i rho_i - rho_i^2) + sum w_i E[int L_i K]
                      >= sum w_i (nu_i + mu_i rho_i - rho_i^2) + int g(|y|) m(dy),
    g(r) = sum w_i E[L_i + (E - 1) min(L_i, 0)]                       for |y| = r,

where the mean is over t = <y, x>/(|y| |x|), a coordinate of a uniform direction. As m has mass at most 1, g >= -c proves c less
than the sum. With c_i = mu_i/2 and R_i^2 = nu_i + c_i^2, -L_i = R_i^2 - (r - c_i)^2 - 2 c_i r (1 - t), and

    g(r) = P r^2 - N - (E - 1) sum w_i psi_i(r),      psi_i(r) = E(-L_i)_+,      P = sum w_i,      N = sum w_i nu_i.

**All radii.** For each t, (-L_i)_+ is the larger one of 0 and of a parabola with the second derivative -2. So between two radii
psi_i + W r^2 is convex, W the largest share of the outputs of one radius that row i favours, and between a and b

    g >= min(g(a), g(b)) - (P + (E - 1) sum w_i W_i) (b - a)^2/4.

Cells are halved until that suffices. Beyond the last c_i + R_i no output is favoured, and g rises. All is computed in floats
whose errors are bounded (`optdp.closed_forms.caps`): what is left to g is much larger than these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import numpy as np
from flint import ctx

from optdp.certificates.base import Bound, Certificate
from optdp.closed_forms.caps import DIMS, TINY, UNIT, caps
from optdp.exact import enclosures, require, work
from optdp.exact.fields import Within
from optdp.problem.domains import Ball, Box
from optdp.problem.objectives import WorstCase
from optdp.problem.privacy import LDP

if TYPE_CHECKING:
    from optdp.problem.problem import Problem

#: Bits of the enclosures; most norms; how many pairs of a radius and a norm may be looked at, and at a time.
PRECISION, NORMS, PAIRS, BLOCK = 128, 2**15, 50_000_000, 2**18
#: The largest number, and the least slope, and share of the largest weight, that is not 0.
LARGEST, LEAST = 2.0**60, 2.0**-60
#: Radii between which g is looked at first; the narrowest cell, as a share of the last radius.
CELLS, NARROWEST = 64, 2.0**-45
#: Microseconds of a row at a radius.
COST = 0.15
#: g may be negative by this share of the bound.
CLOSE = 2.0**-16

Numbers = Annotated[tuple[float, ...], Within(-LARGEST, LARGEST, 1, NORMS)]


@dataclass(frozen=True)
class RadialCertificate(Certificate):
    """Norms of inputs with weights >= 0, multipliers of the mean `slopes` (mu >= 0) and of the mass `levels` (nu).

    **Proves** bounds for the worst case of |Y - x|^2 over unbiased mechanisms on the unit ball, and on the cube around it.
    """

    tag = "radial"
    norms: Annotated[tuple[float, ...], Within(0.0, 1.0, 1, NORMS)]
    weights: Annotated[tuple[float, ...], Within(0.0, LARGEST, 1, NORMS)]
    slopes: Annotated[tuple[float, ...], Within(0.0, LARGEST, 1, NORMS)]
    levels: Numbers

    def bound(self, problem: Problem) -> Bound:
        privacy, domain, objective = problem.privacy, problem.domain, problem.objective
        if not isinstance(privacy, LDP) or not enclosures.at_most(privacy.eps, require.MAX_EPS):
            self._refuse("it is for local differential privacy with eps at most 30")
        known = isinstance(domain, Ball) or (isinstance(domain, Box) and domain.is_cube)
        if not known or not 2 <= (domain.dimension or 0) <= DIMS or not problem.unbiased:
            self._refuse(
                f"it is for unbiased mechanisms on a ball or cube of two dimensions or more, and at most {DIMS}"
            )
        if not isinstance(objective, WorstCase) or objective.loss.exponent != 2:
            self._refuse("it is for the worst case of the squared error")
        if not len(self.norms) == len(self.weights) == len(self.slopes) == len(self.levels):
            self._refuse("each norm must have a weight, a slope and a level")
        if any(0 < v < LEAST for v in self.slopes):
            self._refuse(f"slopes must be 0 or at least {LEAST:g}")
        # A common factor of the weights changes nothing, and any of them may be 0: so floats have room for what is left.
        power = -math.frexp(max(self.weights))[1]
        weights = (math.ldexp(w, power) for w in self.weights)
        kept = [row for row in zip(self.norms, weights, self.slopes, self.levels, strict=True) if row[1] >= LEAST]
        total = sum((Fraction(w) for _, w, _, _ in kept), Fraction(0))
        if not total:
            self._refuse("a worst case needs a prior with positive mass")
        worth = sum(
            (Fraction(w) * (Fraction(nu) + Fraction(mu) * Fraction(x) - Fraction(x) ** 2) for x, w, mu, nu in kept),
            Fraction(0),
        )
        if worth <= 0:
            return Bound(0.0, "radial dual")
        with ctx.workprec(PRECISION):
            short = _Prices(problem, [row[1:] for row in kept]).shortfall(float(worth) * CLOSE)
            value = (enclosures.ball(worth) - enclosures.ball(short)) / enclosures.ball(total)
            found = max(0.0, enclosures.round_down(value)) if value.is_finite() else 0.0
        return Bound(found, f"radial dual, {len(kept)} norms of inputs, all outputs, floats with bounded errors")


class _Prices:
    """g for rows (w, mu, nu) with w > 0."""

    def __init__(self, problem: Problem, rows: list[tuple[float, float, float]]) -> None:
        self.dim: int = problem.domain.dimension
        work.count(10.0 * len(rows))
        with ctx.workprec(PRECISION):
            self.more = enclosures.round_up(enclosures.exp(problem.eps) - 1)  # type: ignore[arg-type]
        self.mass = float(sum(Fraction(w) for w, _, _ in rows))
        self.level = float(sum(Fraction(w) * Fraction(nu) for w, _, nu in rows))
        favours = [(w, mu / 2, float(Fraction(nu) + Fraction(mu / 2) ** 2)) for w, mu, nu in rows]
        w, c, square = np.array([row for row in favours if row[2] > 0]).reshape(-1, 3).T
        reach, wider = np.sqrt(square), 2.0**-45
        start = (c - reach) - wider * (c + reach)
        order = np.argsort(start, kind="stable")
        self.w, self.c, self.square = w[order], c[order], square[order]
        #: Between these radii, and perhaps nowhere, a row favours outputs; rows before some place end before this one.
        self.first = start[order]
        self.last = np.maximum.accumulate(((c + reach) + wider * (c + reach))[order])
        with np.errstate(divide="ignore", over="ignore"):
            x = np.minimum(square / c**2, 1.0)
        depth = np.minimum(
            x / (1 + np.sqrt(1 - x)) / 2 * (1 + 2.0**-30), 0.5
        )  # of the largest cap, on the radius sqrt(-nu)
        share, _, _, error = caps(self.dim, depth, np.zeros(depth.size, dtype=bool))
        most = w * np.where(x < 1 - 2.0**-40, share * (1 + error) + TINY, 1.0)
        self.most = np.concatenate([[0.0], np.cumsum(most[order])])

    def near(self, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(the first row, the end of those) that may favour outputs between two radii."""
        start, end = np.searchsorted(self.last, low), np.searchsorted(self.first, high, side="right")
        return start, np.maximum(start, end)

    def at(self, r: np.ndarray) -> np.ndarray:
        """Lower bounds on g at these radii, increasing or not, that are wrong by about 2^-40 of the sums at most."""
        start, end = self.near(r, r)
        ends = np.cumsum(end - start)
        gains = np.zeros(r.size)
        low = 0
        while low < r.size:  # so many radii that there is room for their pairs
            high = max(low + 1, int(np.searchsorted(ends, (ends[low - 1] if low else 0) + BLOCK)))
            gains[low:high] = self._gains(r[low:high], start[low:high], end[low:high])
            low = high
        square = self.mass * r * r
        return np.asarray((square - self.level) - gains - 16 * UNIT * (square + abs(self.level) + gains) - TINY)

    def _gains(self, r: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """Upper bounds on (E - 1) sum w psi over these rows."""
        count = end - start
        place = np.repeat(np.arange(r.size), count)
        before = np.cumsum(count) - count
        row = np.arange(place.size) - before[place] + start[place]
        radius, c, square = r[place], self.c[row], self.square[row]
        away = radius - c
        rest = (square - away * away) + 2.0**-49 * square + TINY
        met = rest > 0
        row, place, rest = row[met], place[met], rest[met]
        sphere = 2 * c[met] * radius[met] * (1 - 4 * UNIT)
        with np.errstate(divide="ignore", over="ignore"):
            depth = rest / (2 * sphere) * (1 + 4 * UNIT)
        whole = depth >= 1
        depth = np.where(whole, 0.5, depth)
        over, error = caps(self.dim, np.minimum(depth, 1 - depth), depth > 0.5)[2:]
        part = self.w[row] * np.where(whole, rest - sphere, sphere * over + TINY)
        total = np.bincount(place, weights=part, minlength=r.size)
        return np.asarray(total * (self.more * (1 + error + UNIT * (int(count.max(initial=0)) + 16))))

    def shortfall(self, close: float) -> float:
        """c >= 0 with g >= -c, proven: within about `close` of the least such number, if there is work enough."""
        end = float(self.last[-1]) if self.last.size else 0.0
        edges = np.linspace(0.0, end, CELLS + 1)
        low, high, found, pairs = edges[:-1], edges[1:], 0.0, 0.0
        values = self.at(edges)
        first, second, least = values[:-1], values[1:], min(0.0, float(values.min()))
        while low.size:
            bound = np.minimum(first, second) - self._sag(low, high)
            done = (bound >= least - close) | ~(high - low > end * NARROWEST)
            start, stop = self.near(low, high)
            ahead = float(((stop - start) + 1)[~done].sum())
            if pairs + ahead > PAIRS:
                return max(0.0, -min(found, float(bound.min())))
            pairs += ahead
            work.count(5 * low.size + COST * ahead)
            found = min(found, float(bound[done].min(initial=0.0)))
            low, high, first, second = (v[~done] for v in (low, high, first, second))
            middle = (low + high) / 2
            values = self.at(middle)
            least = min(least, float(values.min(initial=0.0)))
            low, high = np.concatenate([low, middle]), np.concatenate([middle, high])
            first, second = np.concatenate([first, values]), np.concatenate([values, second])
        return max(0.0, -found)

    def _sag(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """By how much g may be below both of its values at the ends of a cell."""
        start, end = self.near(low, high)
        bent = self.mass + self.more * ((self.most[end] - self.most[start]) + UNIT * self.most.size * self.most[-1])
        return np.asarray(bent * (high - low) ** 2 / 4 * (1 + UNIT * (self.most.size + 16)))

"""A bound for unbiased mechanisms on the unit ball: finitely many norms of inputs, with weights and two multipliers each.

Let x be uniform on the sphere of radius rho_i with the weight w_i, and L_i(y) = |y|^2 - mu_i <y, x/|x|> - nu_i. A mechanism
with mean x, floor m and rows K between m and E m has

    sum w_i E|Y - x|^2 = sum w_i (nu_i + mu_i rho_i - rho_i^2) + sum w_i E[int L_i K]
                      >= sum w_i (nu_i + mu_i rho_i - rho_i^2) + int g(|y|) m(dy),
    g(r) = sum w_i E[L_i + (E - 1) min(L_i, 0)]                       for |y| = r,

where the mean is over t = <y, x>/(|y| |x|), a coordinate of a uniform direction. As m has mass at most 1, g >= -c proves c less
than the sum. L_i < 0 is the cap t > (r^2 - nu_i)/(mu_i r) =: h, so that with its share W(h) and its moment T(h)

    g_i  = (r^2 - nu_i)(1 + (E - 1) W) - (E - 1) mu_i r T,          g_i' = 2 r (1 + (E - 1) W) - (E - 1) mu_i T,
    g_i'' = 2 (1 + (E - 1) W) - (E - 1) f(h) (r^2 + nu_i)^2/(mu_i r^3)        (f: the density of t).

**All radii.** On a cell g is at least what Taylor's formula says at the middle, with a lower bound on g''; in the plane, where f
has poles, the range of g_i' serves instead. Cells are halved until that suffices. Beyond mu_i/2 + sqrt(mu_i^2/4 + nu_i) no
output is favoured, and g rises.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated

from flint import arb, ctx

from optdp.certificates.base import Bound, Certificate
from optdp.closed_forms.vector import any_cap, cap_density
from optdp.exact import enclosures, require, work
from optdp.exact.fields import Within
from optdp.problem.domains import Ball
from optdp.problem.objectives import WorstCase
from optdp.problem.privacy import LDP

if TYPE_CHECKING:
    from optdp.problem.problem import Problem

#: Bits of the enclosures; most norms; how many pairs of a cell and a norm may be looked at; the largest multiplier.
PRECISION, NORMS, PAIRS, LARGEST = 128, 512, 500_000, 2.0**60
#: g may be negative by this share of the bound.
CLOSE = 2.0**-13

Numbers = Annotated[tuple[float, ...], Within(-LARGEST, LARGEST, 1, NORMS)]


@dataclass(frozen=True)
class RadialCertificate(Certificate):
    """Norms of inputs with weights >= 0, multipliers of the mean `slopes` (mu >= 0) and of the mass `levels` (nu).

    **Proves** bounds for the worst case of |Y - x|^2 over unbiased mechanisms on the unit ball.
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
        if not isinstance(domain, Ball) or domain.dim < 2 or not problem.unbiased:
            self._refuse("it is for unbiased mechanisms on a ball of two dimensions or more")
        if not isinstance(objective, WorstCase) or objective.loss.exponent != 2:
            self._refuse("it is for the worst case of the squared error")
        if not 1 <= len(self.norms) == len(self.weights) == len(self.slopes) == len(self.levels) <= NORMS:
            self._refuse(f"there must be at most {NORMS} norms, each with a weight, a slope and a level")
        positive = (*self.norms, *self.weights, *self.slopes)
        if not all(0 <= v <= LARGEST for v in positive) or not all(abs(v) <= LARGEST for v in self.levels):
            self._refuse(f"numbers must lie between 0 and {LARGEST:g}, levels between {-LARGEST:g} and {LARGEST:g}")
        if max(self.norms) > 1:
            self._refuse("norms must be at most 1")
        kept = [row for row in zip(self.norms, self.weights, self.slopes, self.levels, strict=True) if row[1]]
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
            value = (enclosures.ball(worth) - short) / enclosures.ball(total)
            found = max(0.0, enclosures.round_down(value)) if value.is_finite() else 0.0
        return Bound(found, f"radial dual, {len(kept)} norms of inputs, all outputs, ball arithmetic")


class _Prices:
    """g for rows (w, mu, nu), at the working precision."""

    def __init__(self, problem: Problem, rows: list[tuple[float, float, float]]) -> None:
        self.dim: int = problem.domain.dim
        self.more = enclosures.exp(problem.eps) - 1  # type: ignore[arg-type]
        self.rows = [(arb(w), arb(mu), arb(nu)) for w, mu, nu in rows]
        #: Microseconds of a row on a cell.
        self.cost = 16.0 if self.dim <= 3 else 80.0 + 2 * min(self.dim, 100) if self.dim <= 200 else 800.0

    def shortfall(self, close: float) -> arb:
        """c >= 0 with g >= -c, proven: within about `close` of the least such number, if there is work enough."""
        end = arb(0)
        for _, mu, nu in self.rows:
            square = mu * mu / 4 + nu
            if not square <= 0:
                end = end.max((mu / 2 + square.max(arb(0)).sqrt()).upper())
        # Beyond `end` g rises: its last value is that of the last cell.
        parts = 64
        edges = [(end * k / parts).mid() for k in range(parts)] + [end.upper()]
        stack = list(pairwise(edges))
        found, least, pairs, slack = arb(0), arb(0), 0, arb(close)
        while stack:
            low, high = stack.pop()
            work.count(self.cost * len(self.rows))
            pairs += len(self.rows)
            value, bound = self._cell(low, high)
            if value is not None and value < least:
                least = value.upper()
            if bound >= least - slack or pairs > PAIRS or not high - low > end * arb(2) ** -50:
                found = found.min(bound.lower())
                continue
            middle = ((low + high) / 2).mid()
            stack += [(low, middle), (middle, high)]
        return (-found).max(arb(0))

    def _cell(self, low: arb, high: arb) -> tuple[arb | None, arb]:
        """(g in the middle, if it is found there; a lower bound on g between two radii)."""
        middle = ((low + high) / 2).mid()
        reach = ((high - middle).max(middle - low)).upper()
        value = slope = curved = lost = arb(0)
        for w, mu, nu in self.rows:
            if high * high + mu * high <= nu:  # every output is favoured
                factor = 1 + self.more
                part = (middle * middle - nu) * factor, 2 * middle * factor, 2 * factor, arb(0)
            elif self._outside(low, high, mu, nu):
                part = middle * middle - nu, 2 * middle, arb(2), arb(0)
            else:
                part = self._partly(low, middle, high, reach, mu, nu)
            value, slope = value + w * part[0], slope + w * part[1]
            curved, lost = curved + w * part[2], lost + w * part[3]
        tilt = abs(slope) * reach
        bound = value - tilt + (curved * reach * reach / 2).min(arb(0))
        if curved > 0:
            bound = bound.max((value - slope * slope / (2 * curved)).lower())
        bound -= lost
        if not bound.is_finite():
            bound = arb(-(2.0**1000))
        return (value if value.is_finite() else None), bound

    @staticmethod
    def _outside(low: arb, high: arb, mu: arb, nu: arb) -> bool:
        """Whether r^2 - mu r >= nu on the cell: at its point next to mu/2."""
        near = (mu / 2).max(low).min(high)
        return bool(near * near - mu * near >= nu)

    def _partly(self, low: arb, middle: arb, high: arb, reach: arb, mu: arb, nu: arb) -> tuple[arb, arb, arb, arb]:
        """(g_i, g_i', a lower bound on g_i'', what else is lost): of the last two, one is 0."""
        more, square = self.more, middle * middle
        if not mu > 0 or not low > 0:
            # g_i' lies between -(E - 1) mu and 2 r E, and g_i between phi(L) at t = 1 and, by Jensen, at t = 0.
            ends = [level + more * level.min(arb(0)) for level in (square - nu - mu * middle, square - nu)]
            least = ends[0] + mu * middle
            return least.union(ends[1]), arb(0), arb(0), (2 * high * (1 + more) + more * mu) * reach
        share, moment = any_cap(self.dim, (square - nu) / (mu * middle))
        factor = 1 + more * share
        value, slope = (square - nu) * factor - more * mu * middle * moment, 2 * middle * factor - more * mu * moment
        ends = [(r - nu / r) / mu for r in (low, high)]
        first, last = ends[0].min(ends[1]), ends[0].max(ends[1])
        if not nu >= 0:  # (r - nu/r)/mu has a minimum
            first = first.min(2 * (-nu).max(arb(0)).sqrt() / mu)
        inner = arb(0) if not first > 0 and not last < 0 else abs(first).min(abs(last))
        if self.dim == 2 and not (first > -1 and last < 1):  # f has poles: the range of g_i' instead
            (most, at_first), (least_share, at_last) = any_cap(2, first), any_cap(2, last)
            top = any_cap(2, inner)[1]
            highest = 2 * high * (1 + more * most) - more * mu * at_first.min(at_last).max(arb(0))
            lowest = 2 * low * (1 + more * least_share) - more * mu * top
            return value, slope, arb(0), (highest - slope).max(slope - lowest) * reach
        dense = cap_density(self.dim, abs(first).max(abs(last)) if self.dim == 2 else inner)
        narrow = (share - dense * (last - (square - nu) / (mu * middle))).max(arb(0))
        steep = [(r * r + nu) ** 2 / (mu * r**3) for r in (low, high)]
        # (r^2 + nu)^2/r^3 has no maximum inside: where it is stationary r^2 = 3 nu (a minimum) or it is 0.
        return value, slope, 2 + more * (2 * narrow - dense * steep[0].max(steep[1])), arb(0)

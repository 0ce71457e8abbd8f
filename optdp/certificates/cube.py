"""Why no unbiased eps-LDP mechanism for the vectors of a cube has a smaller error: moments of random signs.

Let v be uniform on the vertices {-1, 1}^d. As on the sphere (`optdp.certificates.vector`), if a bounds the mean of <u, v> under
any density over v with k <= e^eps k', for every unit vector u, then the average error over the vertices is at least d^2/a^2 - d.
And a is such a bound if for every unit vector u and X = <u, v>

    (e^eps - 1) E[(X - a)_+]  <=  a,        where E[(X - a)_+] = E[(|X| - a)_+]/2.

X is a sum of independent signs with sum u_i^2 = 1. Whatever u, E[X^2] = 1, E[X^4] = 3 - 2 sum u_i^4 <= 3 - 2/d, and
E[cosh(s X)] = prod cosh(s u_i) <= cosh(s/sqrt(d))^d, because log cosh(sqrt(z)) is concave in z. So for multipliers b >= 0 and any
constants c_0, c_2 with

    q(x) = c_0 + c_2 x^2 + b_4 x^4 + sum_j b_j cosh(s_j x)/cosh(s_j/sqrt(d))^d  >=  (x - a)_+/2       on [0, sqrt(d)]

E[(X - a)_+] <= c_0 + c_2 + b_4 (3 - 2/d) + sum_j b_j. The inequality is proven on cells by Taylor's formula in ball arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from flint import arb, ctx

from optdp.certificates.base import Bound, Certificate
from optdp.exact import enclosures, require, work
from optdp.exact.fields import Within
from optdp.problem.domains import Box
from optdp.problem.objectives import WorstCase
from optdp.problem.privacy import LDP

if TYPE_CHECKING:
    from optdp.problem.problem import Problem

#: Bits of the enclosures, and how many cells may be looked at.
PRECISION, CELLS = 128, 100_000


@dataclass(frozen=True)
class CubeCertificate(Certificate):
    """a, and the multipliers of 1, X^2, X^4 and of hyperbolic cosines with the given slopes.

    **Proves** bounds for the worst case of |Y - x|^2 over unbiased mechanisms on the cube [-1, 1]^d.
    """

    tag = "cube"
    gain: Annotated[float, Within(0.0, 1e9)]
    constant: Annotated[float, Within()]
    square: Annotated[float, Within()]
    fourth: Annotated[float, Within(0.0)]
    slopes: Annotated[tuple[float, ...], Within(0.0, 64.0, most=32)]
    weights: Annotated[tuple[float, ...], Within(0.0, most=32)]

    def bound(self, problem: Problem) -> Bound:
        privacy, domain, objective = problem.privacy, problem.domain, problem.objective
        if not isinstance(privacy, LDP) or not enclosures.at_most(privacy.eps, require.MAX_EPS):
            self._refuse("it is for local differential privacy with eps at most 30")
        if not isinstance(domain, Box) or not domain.is_cube or not problem.unbiased:
            self._refuse("it is for unbiased mechanisms on the cube [-1, 1]^d")
        if not isinstance(objective, WorstCase) or objective.loss.exponent != 2:
            self._refuse("it is for the worst case of the squared error")
        if len(self.slopes) != len(self.weights) or not self.gain > 0:
            self._refuse("there must be one multiplier for each inequality, and a gain > 0")
        d = domain.dimension
        with ctx.workprec(PRECISION):
            total = arb(self.constant) + arb(self.square) + arb(self.fourth) * (3 - 2 / arb(d))
            total += sum(map(arb, self.weights), arb(0))
            gain = arb(self.gain)
            if not (enclosures.exp(privacy.eps) - 1) * total <= gain:
                self._refuse("the multipliers do not add up to the gain")
            self._check(d)
            value = arb(d) * d / (gain * gain) - d
            return Bound(max(0.0, enclosures.round_down(value)), "dual with moments of signs, ball arithmetic")

    def _check(self, d: int) -> None:
        """q(x) >= (x - a)_+/2 on [0, sqrt(d)], by cells that are halved until Taylor's formula decides."""
        root = arb(d).sqrt()
        scaled = [
            (arb(s), arb(b) * (-d * (arb(s) / root).cosh().log()).exp())
            for s, b in zip(self.slopes, self.weights, strict=True)
        ]
        gain, end = arb(self.gain), root.upper()
        middle = gain if gain <= end else end
        stack = [(arb(0), middle, False), (middle, end, True)]
        seen = 0
        while stack:
            low, high, beyond = stack.pop()
            if not high > low:
                continue
            seen += 1
            work.count(8 + 6 * len(scaled))
            if seen > CELLS:
                self._refuse("the multipliers are too tight to be checked")
            point, value, least = self._cell(low, high, beyond, scaled)
            if least >= 0:
                continue
            if value < 0 or not (high - low) > arb(2) ** -60:
                self._refuse("the multipliers give no upper bound of what they must bound")
            stack += [(low, point, beyond), (point, high, beyond)]

    def _cell(self, low: arb, high: arb, beyond: bool, scaled: list[tuple[arb, arb]]) -> tuple[arb, arb, arb]:
        """(a point in the middle of a cell, q(x) - (x - a)_+/2 there, a lower bound on it all over the cell).

        The cell lies on one side of a: above it if `beyond`.
        """
        point = ((low + high) / 2).mid()
        reach = (high - point).max(point - low)  # the middle was rounded: one half is the longer one
        value, slope = self._line(point, scaled)
        if beyond:
            value, slope = value - (point - arb(self.gain)) / 2, slope - arb(1) / 2
        curved = 2 * arb(self.square) + 12 * arb(self.fourth) * low * low
        curved += sum((b * s * s * (s * low).cosh() for s, b in scaled), arb(0))  # the least q'' on the cell
        # q(x) >= value + slope h + curved h^2/2 for |h| <= reach: at its vertex, or at an end.
        least = value - abs(slope) * reach + (curved * reach * reach / 2).min(arb(0))
        if curved > 0:
            least = least.max(value - slope * slope / (2 * curved))
        return point, value, least

    def _line(self, x: arb, scaled: list[tuple[arb, arb]]) -> tuple[arb, arb]:
        """(q, q') at a point."""
        value = arb(self.constant) + arb(self.square) * x * x + arb(self.fourth) * x**4
        slope = 2 * arb(self.square) * x + 4 * arb(self.fourth) * x**3
        for s, b in scaled:
            value += b * (s * x).cosh()
            slope += b * s * (s * x).sinh()
        return value, slope

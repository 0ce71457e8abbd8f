"""Why no unbiased eps-LDP mechanism for unit vectors has a smaller error: a dual with one number.

Let an output y have the density k_v(y) under the input v, for v uniform on the sphere. Unbiased means E<Y, v> = 1, so that for
every multiplier c the average error is

    E|Y|^2 - 1  >=  2 c - 1 + E[|Y|^2 - 2 c <Y, v>]  >=  2 c - 1 - c^2 a^2,

where the second step minimises over the length of y, and a bounds the mean of <y/|y|, v> under any density over v with
k <= e^eps k'. At c = 1/a^2 that is 1/a^2 - 1. That a is such a bound is one inequality of the incomplete beta function
(`optdp.closed_forms.vector.beaten`), decided in ball arithmetic. The ball and the cube [-1, 1]^d contain the sphere, on which the
worst case is at least the average.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flint import arb, ctx

from optdp.certificates.base import Bound, Threshold
from optdp.closed_forms.vector import PRECISION, beaten
from optdp.exact import enclosures, require
from optdp.problem.domains import Ball, Box, Sphere
from optdp.problem.objectives import Average, WorstCase
from optdp.problem.privacy import LDP

if TYPE_CHECKING:
    from optdp.problem.problem import Problem


@dataclass(frozen=True)
class SphereCertificate(Threshold):
    """A number t such that 1/sqrt(1 + t) is proven to bound the mean of an output direction along the input.

    **Proves** bounds for the worst case (on a sphere also the average under the uniform prior) of |Y - x|^2, over unbiased
    mechanisms on unit vectors, on the unit ball and on the cube.
    """

    tag = "sphere"

    def bound(self, problem: Problem) -> Bound:
        privacy, domain, objective = problem.privacy, problem.domain, problem.objective
        if not isinstance(privacy, LDP) or not enclosures.at_most(privacy.eps, require.MAX_EPS):
            self._refuse("it is for local differential privacy with eps at most 30")
        cube = isinstance(domain, Box) and domain.is_cube
        if not (isinstance(domain, Sphere | Ball) or cube) or not problem.unbiased:
            self._refuse("it is for unbiased mechanisms on a sphere, a ball or the cube [-1, 1]^d")
        averaged = isinstance(domain, Sphere) and isinstance(objective, Average) and objective.prior == "uniform"
        if not (averaged or isinstance(objective, WorstCase)) or objective.loss.exponent != 2:
            self._refuse("it is for the worst case, or on a sphere the uniform average, of the squared error")
        self._check(problem)
        return Bound(self.threshold, "dual with one number, ball arithmetic")

    def holds(self, problem: Problem) -> bool:
        with ctx.workprec(PRECISION):
            gained = 1 / (1 + arb(self.threshold)).sqrt()
            return beaten(problem.eps, problem.domain.dimension, gained)  # type: ignore[arg-type]


def certify(problem: Problem, estimate: float) -> SphereCertificate:
    """The bound `estimate`, lowered until it is proven."""
    return SphereCertificate.lowered(problem, estimate)[0]

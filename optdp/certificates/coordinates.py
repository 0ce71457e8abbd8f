"""Why no unbiased eps-LDP mechanism for the vectors of a cube does better than one for numbers in every coordinate.

A kernel certificate (`optdp.certificates.kernel`) proves by a prior on [-1, 1] that no unbiased eps-LDP mechanism for numbers
has an average squared error under that prior, hence no worst-case error, below b. Draw the coordinates of x independently from
that prior. For each coordinate, a mechanism for vectors together with the draw of the others is an unbiased eps-LDP mechanism for
numbers, so that the average of |Y - x|^2 is at least d b. For d = 1 nothing is lost, and the unit ball is the same interval.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from optdp.certificates.base import Bound, Certificate
from optdp.certificates.kernel import KernelCertificate
from optdp.exact import enclosures
from optdp.problem.domains import Ball, Box, Interval
from optdp.problem.objectives import WorstCase
from optdp.problem.privacy import LDP
from optdp.problem.problem import Problem as OneNumber

if TYPE_CHECKING:
    from optdp.problem.problem import Problem


@dataclass(frozen=True)
class CoordinatesCertificate(Certificate):
    """A certificate of the kernel problem on [-1, 1], for each coordinate.

    **Proves** bounds for the worst case of |Y - x|^2 over unbiased mechanisms on the cube [-1, 1]^d, and on the ball in one
    dimension.
    """

    tag = "coordinates"
    each: KernelCertificate

    def bound(self, problem: Problem) -> Bound:
        privacy, domain, objective = problem.privacy, problem.domain, problem.objective
        line = isinstance(domain, Ball) and domain.dim == 1
        if not isinstance(privacy, LDP) or not (line or (isinstance(domain, Box) and domain.is_cube)):
            self._refuse("it is for local differential privacy on the cube [-1, 1]^d, or the ball in one dimension")
        if not isinstance(objective, WorstCase) or objective.loss.exponent != 2 or not problem.unbiased:
            self._refuse("it is for the worst case of the squared error of unbiased mechanisms")
        proven = self.each.bound(OneNumber(privacy, Interval(-1.0, 1.0), objective, constraints=problem.constraints))
        whole: Any = Fraction(proven.value) * (domain.dimension or 1)
        return Bound(enclosures.round_down(whole), f"{proven.method}; the sum over coordinates", proven.assumptions)

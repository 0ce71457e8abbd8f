"""Two pieces on an interval: why the uniform density cannot be beaten.

Let all inputs share one density f (two heights in a fixed order and mass 1 leave no other choice), say nonincreasing. At
the far input b the loss as a function of the output, L(b - y), is nonincreasing too, so by Chebyshev's sum inequality

    int f(y) L(b - y) dy  >=  int f  *  (1/D) int_0^D L  =  I(D)/D,

what the uniform density attains at both ends. (A nondecreasing f: the same at the other end.)
"""

from dataclasses import dataclass

from flint import ctx

from optdp.certificates.base import Bound, Certificate
from optdp.exact import enclosures
from optdp.problem import LDP, Interval, Piecewise, Problem, WorstCase


@dataclass(frozen=True)
class ConstantCertificate(Certificate):
    """No multipliers: the mean loss over the domain, seen from an end, bounds every two-piece mechanism on an interval."""

    tag = "constant"

    def bound(self, problem: Problem) -> Bound:
        family, objective, domain = problem.family, problem.objective, problem.domain
        if not (isinstance(family, Piecewise) and family.m == 2 and isinstance(domain, Interval)):
            self._refuse("it is for two pieces on an interval")
        if not isinstance(problem.privacy, LDP):
            self._refuse("it is for eps-LDP, as the mechanisms are")
        if not isinstance(objective, WorstCase) or not objective.loss.monotone:
            self._refuse("it is for the worst case of a loss that is nondecreasing in the distance")
        if problem.outputs != (domain.lower, domain.upper):
            self._refuse("it is for outputs in the domain")
        reach = domain.exact_reach
        with ctx.workprec(enclosures.precise(reach)):
            value = enclosures.round_down(objective.loss.mean_ball(reach))
        return Bound(max(value, 0.0), "Chebyshev's sum inequality, ball arithmetic", objective.loss.assumptions)

"""Why nothing with metric privacy on a circle is narrower than the density that falls exponentially with the arc.

The mean over all rotations of the circle of a mechanism turned back is private too, has the same loss for all inputs, and that
is the mean of the losses of the mechanism, at most the largest. So let K(.|x) be one distribution turned by x. Its density k
then has a logarithm with slopes of at most eps, and so has the mean of k and its mirror image. On an arc from 0 to b, b half the
circle, k(t) e^(eps t) does not fall: a loss that does not fall with the arc is at least that of the density c e^(-eps t),

    int_0^b L(t) e^(-eps t) dt / int_0^b e^(-eps t) dt,

in closed form for t and t^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from flint import arb, ctx

from optdp.certificates.base import Bound, Threshold
from optdp.exact import enclosures
from optdp.problem.domains import Circle
from optdp.problem.metrics import Apart, MetricLDP
from optdp.problem.objectives import Average, WorstCase

if TYPE_CHECKING:
    from optdp.problem.problem import Problem

#: Bits: differences cancel where eps is small.
PRECISION = 512


@dataclass(frozen=True)
class MetricCircleCertificate(Threshold):
    """A number t that is at most the loss of the density that falls exponentially with the arc.

    **Proves** bounds for the worst case, and the average under the uniform prior, of arcs and their squares over mechanisms with
    metric privacy on a circle.
    """

    tag = "metric-circle"

    def bound(self, problem: Problem) -> Bound:
        privacy, domain, objective = problem.privacy, problem.domain, problem.objective
        known = isinstance(privacy, MetricLDP) and isinstance(privacy.metric, Apart) and isinstance(domain, Circle)
        if not known or not 1e-12 <= float(privacy.eps) * domain.period <= 1e3:  # type: ignore[attr-defined]
            self._refuse("it is for metric privacy on a circle, with eps times the period between 1e-12 and 1000")
        averaged = isinstance(objective, Average) and objective.prior == "uniform"
        if not (averaged or isinstance(objective, WorstCase)) or objective.loss.exponent not in (1, 2):
            self._refuse("it is for the worst case, or the uniform average, of the arc or its square")
        self._check(problem)
        return Bound(self.threshold, "closed form (exponential density), ball arithmetic")

    def holds(self, problem: Problem) -> bool:
        with ctx.workprec(PRECISION):
            return bool(arb(self.threshold) <= least_loss(problem))


def least_loss(problem: Problem) -> arb:
    """The optimum, at the working precision."""
    eps = enclosures.ball(problem.privacy.eps)  # type: ignore[attr-defined]
    half = enclosures.ball(problem.domain.exact_width) / 2
    odds = 1 / ((eps * half).exp() - 1)
    if problem.loss.exponent == 1:
        return 1 / eps - half * odds
    return 2 / eps**2 - (half**2 + 2 * half / eps) * odds


def certify(problem: Problem) -> MetricCircleCertificate:
    """The optimum, rounded down until it is proven."""
    with ctx.workprec(PRECISION):
        estimate = enclosures.round_down(least_loss(problem))
    return MetricCircleCertificate.lowered(problem, max(0.0, estimate))[0]

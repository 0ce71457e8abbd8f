"""The best mechanism with metric privacy on a circle, d = the shorter arc: a density that falls exponentially with the arc.

That nothing is better is proven in `optdp.certificates.metric_circle`, in closed form. The mechanism
(`optdp.mechanisms.metric_line`) has outputs on a grid, falls by 1 + eps h from step to step, and is as good but for a share of
about eps h: steps are halved until that is less than what is asked for.
"""

from __future__ import annotations

from typing import Any

from optdp.certificates.metric_circle import certify
from optdp.design.registry import Run, register
from optdp.mechanisms.metric_line import STEPS, MetricCircleMechanism
from optdp.problem import AllMechanisms, Apart, Circle, MetricLDP, Problem, WorstCase
from optdp.solution import Solution
from optdp.solvers.threads import one_thread

#: eps times the period is at most this, and at least 1e-6.
MOST = 60.0
#: Steps of half a circle to begin with.
FIRST = 64


def accepts(problem: Problem) -> str | None:
    """All mechanisms on a circle, the worst case of the arc or its square."""
    privacy, domain, asked = problem.privacy, problem.domain, problem.objective
    if not isinstance(privacy, MetricLDP) or not isinstance(privacy.metric, Apart) or not isinstance(domain, Circle):
        return "privacy must be MetricLDP with metric 'abs' and the domain a circle"
    if not isinstance(problem.family, AllMechanisms) or problem.constraints:
        return "the family must be all mechanisms, without constraints"
    if not isinstance(asked, WorstCase) or asked.loss.exponent not in (1, 2):
        return f"objective = {asked} is not allowed: it must be a worst case, and the loss 'abs' or 'squared'"
    turn = float(privacy.eps) * domain.period
    if not 1e-6 <= turn <= MOST:
        return f"eps is not allowed: eps times the period must be in [1e-6, {MOST:g}], and is {turn:g}"
    return None


@one_thread()
def design(run: Run) -> Solution:
    """See `optdp.solve_kernel`."""
    problem: Any = run.problem
    proof, steps = certify(problem), FIRST
    while True:
        mechanism = MetricCircleMechanism.private(problem.privacy.eps, problem.domain, steps)
        value = mechanism.enclose(problem.objective)[1]
        run.progress(f"{2 * steps} steps", proof.threshold, value)
        if value - proof.threshold <= run.rtol * value or steps >= STEPS:
            break
        steps *= 2
    return run.solution(mechanism, proof, "none", "none", "closed form", message=f"{2 * steps} outputs")


register(
    "metric circle",
    (f"MetricLDP with metric 'abs', eps * period <= {MOST:g}", "Circle", "WorstCase of abs or squared", "AllMechanisms", ""),
    accepts, design, solvers=False,
)  # fmt: skip

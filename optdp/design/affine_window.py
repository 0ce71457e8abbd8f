"""From a class of bump mechanisms to a Solution: what `solve_ptt` and `solve_composite` share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from optdp.certificates.affine_window import BumpClass, certify, optimum
from optdp.mechanisms.composite import CompositeMechanism
from optdp.problem.privacy import LDP
from optdp.solution import Program, Solution, Status

#: The gap at which a solution counts as optimal.
RTOL = 1e-9


def conclude(
    problem: BumpClass,
    mechanism: CompositeMechanism,
    program: Program,
    spec: Mapping[str, Any],
    status: Status = Status.OPTIMAL,
) -> Solution:
    """The bracket: what the mechanism attains, and the certified minimum of its class."""
    certificate = certify(problem, optimum(problem)[2])
    value = mechanism.enclose_value(problem.loss)[1]
    lower = min(certificate.bound, value)
    if status is Status.OPTIMAL and value - lower > RTOL * value:
        status = Status.GAP
    return Solution(value, lower, mechanism, certificate, program, LDP(problem.eps), problem.loss, status, spec)

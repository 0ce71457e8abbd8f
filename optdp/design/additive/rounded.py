"""Additive noise on the integers where the sensitivity is large: noise of the line, rounded to an integer at random.

A lattice program has the integers for its points, and as many rows as there are pairs of them within a sensitivity. Where
that is too much, noise of the line is as good but for what its rounding costs (`optdp.mechanisms.rounded`), and the bound of the
line holds but for what spreading an integer over a unit costs (`optdp.certificates.rounded`): shares of about 1/D^2 of a loss
that bends slowly, of 1/D of one that jumps or has kinks, D the sensitivity. More of one that is met at the first integer.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from flint import ctx

from optdp.certificates.base import Certificate, Refusal
from optdp.certificates.quantile import QuantileCertificate
from optdp.certificates.rounded import RoundedCertificate, rarest
from optdp.design.additive.lattice import Bracket
from optdp.design.additive.pairs import nothing
from optdp.design.registry import Run
from optdp.exact import enclosures
from optdp.mechanisms.peak import PeakNoise
from optdp.mechanisms.rounded import WIDEST, RoundedNoise
from optdp.problem.domains import Integers, Line
from optdp.problem.objectives import Quantile
from optdp.problem.problem import Problem
from optdp.problem.rounding import known, on_line
from optdp.solution import Solution

#: How many integers below the line's error bar one is looked for of which more is proven.
LOWER = 4
#: The share of the gap that the line may take.
SHARE = 0.8
#: Up to this sensitivity integers may be points of a lattice where rounding costs more than is asked for.
FEW = 256
#: Where noise may be 0 so often, quantiles may be small that are not 0.
OFTEN = 0.75


def fits(problem: Problem) -> bool:
    """Whether noise may be rounded, and what that costs is known."""
    objective, width = problem.objective, problem.privacy.sensitivity  # type: ignore[attr-defined]
    within = isinstance(problem.domain, Integers) and 1 <= width <= WIDEST
    return within and (isinstance(objective, Quantile) or known(objective.loss.whole))


def narrow(problem: Problem) -> bool:
    """Whether integers are few and most of the loss is met at the first, or a quantile may be 0: what counts is P(X = 0)."""
    objective, width = problem.objective, problem.privacy.sensitivity  # type: ignore[attr-defined]
    if width > FEW:
        return False
    if isinstance(objective, Quantile):
        with ctx.workprec(enclosures.PRECISION):
            rare, level = rarest(problem.privacy), Fraction(objective.level)
        return level <= rare or (rare >= OFTEN and level <= (1 + rare) / 2)
    zero, one, far = (float(objective.loss.whole(d)) for d in (0.0, 1.0, width))
    return one - zero > (far - zero) / 2


def beside(first: Solution, second: Solution) -> Solution:
    """The better of both sides of the two; what is told of the program is about the noise."""
    own, other = (Bracket(s.mechanism, s.value, s.certificate, s.lower_bound) for s in (first, second))
    both = own.better(other)
    noise = first if both.mechanism is first.mechanism else second
    return replace(noise, value=both.value, lower_bound=both.lower, certificate=both.certificate)


def solution(run: Run, design: Callable[[Run], Solution]) -> Solution:
    """Both sides from the line, where `design` solves the same problem."""
    objective: Any = run.problem.objective
    quantile = isinstance(objective, Quantile)
    asked = objective if quantile else replace(objective, loss=on_line(objective.loss.whole))
    line = replace(run.problem, domain=Line(), objective=asked)
    part = replace(run, problem=line, rtol=max(SHARE * run.rtol, 1e-8), time_limit=max(run.left(), 0.1))
    found = design(replace(part, began=time.perf_counter(), progress=run.progress.part("on the line")))
    if isinstance(found.mechanism, PeakNoise):
        raise ValueError("noise with a peak on a lattice of big integers is not rounded")
    noise = RoundedNoise(Integers(), found.mechanism)
    value = noise.enclose(objective)[1]
    proof: Certificate = nothing(run.problem)
    lower = 0.0
    for made in _error_bars(found.certificate) if quantile else [RoundedCertificate(found.certificate)]:
        with contextlib.suppress(Refusal):
            proof, lower = made, made.bound(run.problem).value
            break
    told = replace(
        found.program, constraints=f"{found.program.constraints}; on the line, rounded to integers", seconds=run.seconds,
        rtol=run.rtol, stopped=found.program.stopped or run.seconds > run.time_limit,
    )  # fmt: skip
    return Solution(run.problem, value, lower, noise, proof, told)


def _error_bars(certificate: Any) -> list[Certificate]:
    """Proofs that errors above integers are too probable, the largest first."""
    if not isinstance(certificate, QuantileCertificate) or not certificate.limit:
        return []
    most = math.floor(certificate.limit)
    proof = RoundedCertificate(certificate.proof)
    # Above 0 is above 1/2: a limit of 0 says that nothing is proven.
    return [QuantileCertificate(float(t or 0.5), proof) for t in range(most, max(most - LOWER, -1), -1)]

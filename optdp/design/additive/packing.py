"""Noise whose error bar is a small part of the sensitivity: a peak on a plateau, beside the bound of disjoint translates.

Where much is allowed, most of the mass may lie within t, much less than the sensitivity, and of the rest the notion asks for
little: on each translate of [-t, t] the least that is admitted (`optdp.certificates.packing`). So the noise is on the
lattice with one point for each translate, t the end of the cell at 0, and its masses are equal on cells that are as wide as many
of these: `optdp.design.additive.curve` on a mesh. A lattice of ordinary noise would have to be as fine as t.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from optdp.certificates.additive import not_noise
from optdp.certificates.packing import PackingCertificate, apart
from optdp.certificates.quantile import QuantileCertificate
from optdp.design.additive import approximate, curve, divergence, rounded
from optdp.design.additive.lattice import Bracket
from optdp.design.additive.pairs import LATE
from optdp.design.registry import Run, register
from optdp.exact import enclosures, require
from optdp.exact.numbers import border
from optdp.mechanisms.additive import LENGTH
from optdp.problem.domains import Line
from optdp.problem.losses import Threshold
from optdp.problem.objectives import WorstCase
from optdp.problem.privacy import GDP, ApproxDP, Profile
from optdp.problem.problem import Problem
from optdp.solution import Program, Solution

#: Fewer translates than this are points of ordinary lattices; noise is not written out on finer lattices than the other.
FEW, FINEST = 8, 2**16
#: Noise to start from falls by such a share of what the bound allows.
RATES = tuple(1.0 - k / 16 for k in range(15))
#: Cells of the mesh in a sensitivity; lattices that are tried; how near their programs come to their optima; by what share the
#: level that is proven to be too high is below the one that is asked for.
CELLS, TRIED, NEAR, BELOW = 24, 5, 1e-4, 2.0**-40
#: The least exponent of 2 of what is looked for; how exactly the level that is proven for a threshold is.
SMALLEST, NARROW = -1000.0, 1e-9


def _least(privacy: Any, share: Fraction) -> float:
    """About the largest number that is proven to be less than what a neighbour has of a share; 0 where there is none."""
    least: float = 2.0 ** border(lambda e: apart(privacy, share, Fraction(2.0**e)), SMALLEST, math.log2(share))[0]
    return least if least > 2.0**SMALLEST else 0.0


def bound(problem: Problem) -> tuple[QuantileCertificate, int] | None:
    """For a quantile: the best certificate, and how many translates there is no room for; None where they are few."""
    privacy: Any = problem.privacy
    asked = problem.objective.level
    most = enclosures.round_up(1 - Fraction(asked))  # a float above 1 - level is what must be proven
    above = most if Fraction(most) > 1 - Fraction(asked) else math.nextafter(most, 2.0)
    proof = _proof(privacy, min(asked * (1 - BELOW), 1 - above)) if above < 1 else None
    if proof is None or not proof.translate:
        return None
    count = math.floor(((1 - Fraction(proof.level)) / 2 - Fraction(proof.rest)) / Fraction(proof.translate)) + 2
    return None if count < FEW else (QuantileCertificate(_inside(privacy, count), proof), count)


def _inside(privacy: Any, count: int) -> float:
    """The largest float t of which so many lengths 2t are less than a sensitivity."""
    edge = Fraction(privacy.sensitivity) / (2 * count)
    limit = enclosures.round_down(edge)
    return math.nextafter(limit, 0.0) if Fraction(limit) == edge else limit


def _proof(privacy: Any, level: float) -> PackingCertificate:
    a = Fraction(level)  # (1 + a)/2 is no float
    return PackingCertificate(level, _least(privacy, a), _least(privacy, (1 + a) / 2))


def bracket(run: Run, known: Bracket) -> tuple[Bracket, dict[Fraction, bool]]:
    """For a quantile, the better of what is known and of this noise and its bound, and error bars, in sensitivities, with
    whether noise has them or none can; nothing new where the error bar is no small part of the sensitivity.
    """
    problem, level = run.problem, run.problem.objective.level
    if (proven := bound(problem)) is None:
        return known, {}
    certificate, count = proven
    proof: Any = certificate.proof
    best, decided = known.proven(certificate, problem), {Fraction(1, 2 * count): False}
    n = min(count - 1, FINEST)
    for _ in range(TRIED):
        _tell(run, n, *((best.lower, best.value) if math.isfinite(best.value) else ()))
        found = _noise(run, n, proof)
        if found is None:
            break
        mechanism, missed, program = found
        value = mechanism.enclose(problem.objective)[1]
        if value < best.value:
            best = replace(best, mechanism=mechanism, value=value, program=program)
        if missed <= 1 - level:
            decided[Fraction(1, 2 * n)] = True
            break
        if best.gap <= run.rtol or not run.left():
            break
        # What does not fit, by the inequality of the bound with what this noise needs besides.
        rest = missed / 2 - (n - 1) * _least(problem.privacy, Fraction(1 - missed))
        n = min(n - 1, max(math.floor(1 + ((1 - level) / 2 - rest) / proof.translate), n // 2))
        if n < FEW:
            break
    return best, decided


def _tell(run: Run, n: int, *bracket: float) -> None:
    run.progress(f"a peak of 1/{n} of the sensitivity, on a plateau", *bracket)


def _count(problem: Problem) -> int:
    """How many whole lengths 2t are in less than a sensitivity, where t is the loss's only step; 0 for all other problems."""
    objective: Any = problem.objective
    if not isinstance(objective, WorstCase) or not isinstance(problem.domain, Line) or not_noise(problem):
        return 0
    loss: Any = objective.loss
    if not loss.steps or len(loss.polynomials[0]) != 2:
        return 0
    return math.ceil(Fraction(problem.privacy.sensitivity) / (2 * loss.polynomials[0][1])) - 1  # type: ignore[attr-defined]


def accepts(problem: Problem) -> str | None:
    """The probability of errors above a small part of the sensitivity."""
    if _count(problem) < FEW:
        return "the objective must be WorstCase(Threshold(t)) with t a small part of the sensitivity, on the real line"
    return _other(problem) if isinstance(_other(problem), str) else None


def _other(problem: Problem) -> Any:
    """The design that solves it on lattices, or why there is none."""
    reasons = {module: module.accepts(problem) for module in (approximate, curve, divergence)}
    return next((module for module, reason in reasons.items() if reason is None), reasons[approximate])


def design(run: Run, *, n: int | None = None, every_shift: bool = False, gaussian: bool = True) -> Solution:
    """See `optdp.solve_additive`."""
    problem, other = run.problem, _other(run.problem)
    own: dict[str, Any] = (
        {"every_shift": every_shift} if other is approximate else {"gaussian": gaussian} if other is curve else {}
    )
    if n is not None or every_shift or run.method != "auto":
        return other.design(run, n=n, **own)
    single = isinstance(problem.privacy, ApproxDP)  # in closed form, where delta is small
    if not single:  # as the other does, which may not be asked
        require.real("rtol", run.rtol, low=1e-8 if other is curve else 1e-5, high=1.0)
    first: Solution | None = None
    if single:
        first = other.design(replace(run, time_limit=run.time_limit / 2), **own)
        if first.gap <= run.rtol:
            return first
    proof = _for_threshold(problem)
    lower, found = 0.0, None
    if proof is not None:
        lower, n = proof.bound(problem).value, _count(problem) + 1
        _tell(run, n, *((lower, first.value) if first else ()))
        found = _noise(run, n, proof)
    if found is not None:
        mechanism, _, program = found
        value = mechanism.enclose(problem.objective)[1]
        made = Solution(problem, value, min(lower, value), mechanism, proof, program)  # type: ignore[arg-type]
        first = made if first is None else rounded.beside(made, first)
    tried = single and proof is not None
    if first is None or not (first.gap <= run.rtol or tried or run.seconds > run.time_limit):
        seconds = max(run.time_limit, run.seconds + LATE * run.time_limit)
        try:
            rest = other.design(replace(run, time_limit=seconds), **own)
            first = rest if first is None else rounded.beside(first, rest)
        except ValueError:  # lattices that are too fine, or find nothing in the time that is left
            if first is None:
                raise
    if proof is not None and lower > first.lower_bound:
        first = replace(first, lower_bound=min(lower, first.value), certificate=proof)
    late = run.seconds > run.time_limit
    return replace(first, program=replace(first.program, seconds=run.seconds, stopped=late))


def _for_threshold(problem: Problem) -> PackingCertificate | None:
    """The certificate with the least level that so many translates contradict; None where hardly any is contradicted."""
    privacy, count = problem.privacy, _count(problem)
    level = border(lambda a: not _proof(privacy, a).full(count), 2.0**-30, 1.0 - 2.0**-30, NARROW)[1]
    found = _proof(privacy, level)
    return found if found.full(count) else None


def _noise(run: Run, n: int, proof: PackingCertificate) -> tuple[Any, float, Program] | None:
    """Noise with much of its mass within the cell at 0, its probability of errors beyond, and its program; None where the notion
    is no `curve`, or nothing was found.
    """
    problem: Any = run.problem
    if not isinstance(problem.privacy, ApproxDP | Profile | GDP) or n > FINEST or not proof.translate:
        return None
    deadline, steep = run.began + run.time_limit, math.log(proof.level / proof.translate)
    limit = _inside(problem.privacy, n)
    task = curve.Task(replace(problem, objective=WorstCase(Threshold(limit))), deadline, run.solver)
    step = max(1, n // CELLS)
    size = n + math.ceil(task.radius * n / step) * step  # few distances between nodes
    if size >= LENGTH:
        return None
    inside = [*range(0, 2 * n, step), *range(0, size, 2 * step), 1, n - 1, n, n + 1, size - n, size]
    nodes = np.unique(inside) + 1  # T_k is the probability of what lies beyond k - 1/2
    program = task.program(n, size + 1, curve.SLACK, nodes)
    program.deadline = deadline
    ends = np.concatenate([0.5 - nodes, nodes - 0.5])
    shifts = np.unique(np.abs(ends[:, None] - ends)).astype(int)
    shifts = shifts[(shifts >= 1) & (shifts <= n)]
    few = (shifts % step == 0) | (np.arange(shifts.size) % 8 == 0)
    program.compare([part for part in (shifts[few], shifts[~few]) if part.size])
    spare = task.core(program)[np.append(nodes - 1, -1)]
    for rate in RATES:
        stairs = _stairs(n, rate * steep, nodes)
        if program.cost(stairs) < program.cost(spare) and not program.broken(stairs, curve.BROKEN):
            spare = stairs
    program.solve(spare, curve.BROKEN, NEAR)
    found = program.inner
    for part in (0.0, *curve.MIXED):
        program.inner = (1 - part) * found + part * spare
        with contextlib.suppress(
            ValueError
        ):  # where the solver answers that hardly anything is beyond t, nothing is left of it
            mechanism = task.mechanism(program)
            if mechanism.admitted(task.privacy):
                missed = mechanism.enclose_loss(task.loss, sent=True)[1]
                return mechanism, missed, curve.told(task, program, run)
    return None


def _stairs(n: int, rate: float, nodes: np.ndarray) -> np.ndarray:
    """Tail probabilities at the nodes, and the atom 0, of noise whose masses fall by e^rate behind the one at 0, and behind each
    sensitivity.
    """
    cell = 1 / (math.exp(rate) + 2 * n / -math.expm1(-rate))
    periods, rest = np.divmod(nodes - 1, n)
    behind = np.exp(-rate * periods) * (n / -math.expm1(-rate) - rest)
    return np.append(cell * behind, 0.0)


register(
    "additive threshold",
    ("ApproxDP, Profile, Curve, GDP, KL, RDP", "Line", "WorstCase(Threshold(t)), t a small part of the sensitivity", "Additive",
     "Unbiased"),
    accepts, design, approximate.METHODS,
)  # fmt: skip

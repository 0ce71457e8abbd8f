"""Noise whose error bar is a small part of the sensitivity: a peak on a plateau, beside the bound of disjoint translates.

Where much is allowed, most of the mass may lie within t, much less than the sensitivity, and of the rest the notion asks for
little: on each translate of [-t, t] the least that is admitted (`optdp.certificates.packing`). So the noise is on the
lattice with one point for each translate, t the end of the cell at 0, and its masses are equal on cells that are as wide as many
of these: `optdp.design.additive.curve` on a mesh. A lattice of ordinary noise would have to be as fine as t.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from optdp.certificates.packing import PackingCertificate, apart
from optdp.certificates.quantile import QuantileCertificate
from optdp.design.additive import curve
from optdp.design.additive.lattice import Bracket
from optdp.design.registry import Run
from optdp.exact.numbers import border
from optdp.problem.losses import Threshold
from optdp.problem.objectives import WorstCase
from optdp.problem.privacy import GDP, ApproxDP, Profile
from optdp.problem.problem import Problem
from optdp.solution import Program

#: Fewer translates than this are points of ordinary lattices; noise is not written out on finer lattices than the other.
FEW, FINEST = 8, 2**16
#: Noise to start from falls by such a share of what the bound allows.
RATES = tuple(1.0 - k / 16 for k in range(15))
#: Cells of the mesh in a sensitivity; lattices that are tried; how near their programs come to their optima; by what share the
#: level that is proven to be too high is below the one that is asked for.
CELLS, TRIED, NEAR, BELOW = 24, 5, 1e-4, 2.0**-40


def _least(privacy: Any, share: float) -> float:
    """The largest power of 2 (with a fraction as its exponent) that is proven to be less than what a neighbour has of a share."""
    return float(2.0 ** border(lambda e: apart(privacy, Fraction(share), Fraction(2.0**e)), -1070.0, math.log2(share))[0])


def bound(problem: Problem) -> tuple[QuantileCertificate, int] | None:
    """The best certificate of this kind, and how many translates there is no room for; None where they are few."""
    privacy: Any = problem.privacy
    level = problem.objective.level * (1 - BELOW)  # type: ignore[attr-defined]
    translate, rest = _least(privacy, level), _least(privacy, (1 + level) / 2)
    count = math.floor((Fraction(1 - level) / 2 - Fraction(rest)) / Fraction(translate)) + 2
    if count < FEW:
        return None
    limit = math.nextafter(privacy.sensitivity / (2 * count), 0.0)
    return QuantileCertificate(limit, PackingCertificate(level, translate, rest)), count


def bracket(run: Run, known: Bracket) -> tuple[Bracket, dict[Fraction, bool]]:
    """The better of what is known and of this noise and its bound, and error bars, in sensitivities, with whether noise has
    them or none can; nothing new where the error bar is no small part of the sensitivity.
    """
    problem, privacy, level = run.problem, run.problem.privacy, run.problem.objective.level  # type: ignore[attr-defined]
    if (proven := bound(problem)) is None:
        return known, {}
    certificate, count = proven
    best, decided = known.proven(certificate, problem), {Fraction(1, 2 * count): False}
    if not isinstance(privacy, ApproxDP | Profile | GDP):
        return best, decided
    n, deadline = min(count - 1, FINEST), run.began + run.time_limit
    steep = math.log(level / certificate.proof.translate)  # type: ignore[attr-defined]
    for _ in range(TRIED):
        run.progress(f"a peak of 1/{n} of the sensitivity, on a plateau", best.lower, best.value)
        found = _noise(run, n, steep, deadline)
        if found is None:
            break
        mechanism, missed, program = found
        value = mechanism.enclose(problem.objective)[1]
        if value < best.value:
            best = replace(best, mechanism=mechanism, value=value, program=program)
        if missed <= 1 - level:
            decided[Fraction(1, 2 * n)] = True
            break
        if best.gap <= run.rtol or time.perf_counter() > deadline:
            break
        # What does not fit, by the inequality of the bound with what this noise needs besides.
        rest = missed / 2 - (n - 1) * _least(privacy, 1 - missed)
        fits = 1 + ((1 - level) / 2 - rest) / certificate.proof.translate  # type: ignore[attr-defined]
        n = min(n - 1, max(math.floor(fits), n // 2))
        if n < FEW:
            break
    return best, decided


def _noise(run: Run, n: int, steep: float, deadline: float) -> tuple[Any, float, Program] | None:
    """Noise with much of its mass within the cell at 0, its probability of errors beyond, and its program."""
    problem: Any = run.problem
    limit = math.nextafter(problem.privacy.sensitivity / (2 * n), 0.0)
    task = curve.Task(replace(problem, objective=WorstCase(Threshold(limit))), deadline, run.solver)
    step = max(1, n // CELLS)
    size = n + math.ceil(task.radius * n / step) * step  # few distances between nodes
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
    for part in curve.MIXED:
        mechanism = task.mechanism(program)
        if mechanism.admitted(task.privacy):
            missed = mechanism.enclose_loss(task.loss, sent=True)[1]
            return mechanism, missed, curve.told(task, program, run)
        program.inner = (1 - part) * found + part * spare
    return None


def _stairs(n: int, rate: float, nodes: np.ndarray) -> np.ndarray:
    """Tail probabilities at the nodes, and the atom 0, of noise whose masses fall by e^rate behind the one at 0, and behind each
    sensitivity.
    """
    cell = 1 / (math.exp(rate) + 2 * n / -math.expm1(-rate))
    periods, rest = np.divmod(nodes - 1, n)
    behind = np.exp(-rate * periods) * (n / -math.expm1(-rate) - rest)
    return np.append(cell * behind, 0.0)

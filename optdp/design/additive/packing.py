"""Noise whose error bar is a small part of the sensitivity: a peak on a plateau, beside the bound of disjoint translates.

Where much is allowed, most of the mass may lie within t, much less than the sensitivity, and of the rest the notion asks for
little: on each translate of [-t, t] the least that is admitted (`optdp.certificates.packing`). So the noise is on the
lattice with one point for each translate, t the end of the cell at 0, and its masses are equal on cells that are as wide as many
of these: `optdp.design.additive.curve` on a mesh, or, under KL and Renyi privacy, Newton's method (`optdp.solvers.noise`). A
lattice of ordinary noise would have to be as fine as t.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from optdp.certificates.additive import not_noise
from optdp.certificates.packing import PackingCertificate, apart, exchanges
from optdp.certificates.quantile import QuantileCertificate
from optdp.design.additive import approximate, curve, divergence, rounded
from optdp.design.additive.lattice import Bracket
from optdp.design.additive.pairs import LATE
from optdp.design.registry import Run, register
from optdp.exact import enclosures, require
from optdp.exact.numbers import border
from optdp.mechanisms.additive import LENGTH
from optdp.problem.domains import Integers
from optdp.problem.losses import Threshold
from optdp.problem.objectives import WorstCase
from optdp.problem.privacy import KL, RDP, ApproxDP, Curve
from optdp.problem.problem import Problem
from optdp.solution import Program, Solution
from optdp.solvers import noise

#: Fewer translates than this are points of ordinary lattices; noise is not written out on finer lattices than the other.
FEW, FINEST = 8, 2**16
#: The largest sensitivity at which integers are points of a lattice.
CROWDED = divergence.CROWDED
#: Noise to start from falls by such a share of what the bound allows.
RATES = tuple(1.0 - k / 16 for k in range(15))
#: The same under KL and Renyi privacy, where Newton's method may not find back from far within a bound of large order.
FINER = tuple(1.0 - k / 64 for k in range(60))
#: Under KL and Renyi privacy: numbers of cells in a sensitivity, of the largest of which that is taken which suits best, and in
#: how many sensitivities tails are written out at least, and by how much the logarithms of their masses fall there at least;
#: programs with more masses are not tried.
ROUGH, SUITED, PERIODS, FAINT, LARGEST = range(4, 25), 12, 3, 20.0, 2000
#: Cells of the mesh in a sensitivity; lattices that are tried; how near their programs come to their optima; by what share the
#: level that is proven to be too high is below the one that is asked for.
CELLS, TRIED, NEAR, BELOW = 24, 12, 1e-4, 2.0**-40
#: The least exponent of 2 of what is looked for; how exactly the level that is proven for a threshold is.
SMALLEST, NARROW = -1000.0, 1e-9


def _least(moves: Any, privacy: Any, share: Fraction) -> float:
    """About the largest number that is proven to be less than what is kept of a share; 0 where there is none."""
    least: float = 2.0 ** border(lambda e: moves(privacy, share, Fraction(2.0**e)), SMALLEST, math.log2(share))[0]
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
    return PackingCertificate(level, _least(exchanges, privacy, a), _least(apart, privacy, (1 + a) / 2))


def bracket(run: Run, known: Bracket) -> tuple[Bracket, dict[Fraction, bool]]:
    """For a quantile, the better of what is known and of this noise and its bound, and error bars, in sensitivities, with
    whether noise has them or none can; nothing new where the error bar is no small part of the sensitivity.
    """
    problem, level = run.problem, run.problem.objective.level
    if (proven := bound(problem)) is None:
        return known, {}
    certificate, count = proven
    proof: Any = certificate.proof
    best, n, kept, full = known.proven(certificate, problem), min(count - 1, FINEST), 0, count
    tried: set[int] = set()
    for _ in range(TRIED):
        _tell(run, n, *((best.lower, best.value) if math.isfinite(best.value) else ()))
        found = _noise(run, n, proof)
        if found is None:
            break
        mechanism, missed, program, n = found
        value = mechanism.enclose(problem.objective)[1]
        if value < best.value:
            best = replace(best, mechanism=mechanism, value=value, program=program)
        if missed >= 1:
            break
        if missed <= 1 - level:
            kept = max(kept, n)
            following = (kept + full) // 2
        else:
            full = min(full, n)
            # What does not fit, by the inequality of the bound with what this noise needs besides.
            rest = missed / 2 - (n - 1) * _least(exchanges, problem.privacy, Fraction(1 - missed))
            fits = math.floor(1 + ((1 - level) / 2 - rest) / proof.translate)
            following = min(max(fits, kept + (full - kept) // 4), full - 1)
        if n in tried:  # not all numbers of points are those of a lattice
            following = min(following, n - max(1, n // 16))
        tried.add(n)
        if best.gap <= run.rtol or not run.left() or following <= max(kept, FEW) or full - kept < kept * NEAR:
            break
        n = following
    return best, {Fraction(1, 2 * count): False} | ({Fraction(1, 2 * kept): True} if kept else {})


def _tell(run: Run, n: int, *bracket: float) -> None:
    run.progress(f"a peak of 1/{n} of the sensitivity, on a plateau", *bracket)


def _count(problem: Problem) -> int:
    """How many whole lengths 2t are in less than a sensitivity, where t is the loss's only step; 0 for all other problems, and
    where integers are points of a lattice.
    """
    objective, privacy = problem.objective, problem.privacy
    if not isinstance(objective, WorstCase) or not_noise(problem):
        return 0
    loss: Any = objective.loss
    whole = isinstance(problem.domain, Integers)
    if not loss.steps or len(loss.polynomials[0]) != 2 or (whole and not rounded.fits(problem)):
        return 0
    width = Fraction(privacy.sensitivity)  # type: ignore[attr-defined]
    t = loss.polynomials[0][1] + (Fraction(1, 2) if whole else 0)
    return 0 if whole and width <= CROWDED else math.ceil(width / (2 * t)) - 1


def accepts(problem: Problem) -> str | None:
    """The probability of errors above a small part of the sensitivity."""
    if _count(problem) < FEW:
        return "the objective must be WorstCase(Threshold(t)) with t a small part of the sensitivity"
    return _other(problem) if isinstance(_other(problem), str) else None


def _other(problem: Problem) -> Any:
    """The design that solves it on lattices, or why there is none."""
    reasons = {module: module.accepts(problem) for module in (approximate, curve, divergence)}
    return next((module for module, reason in reasons.items() if reason is None), reasons[approximate])


def design(run: Run, *, n: int | None = None, every_shift: bool = False, gaussian: bool = True) -> Solution:
    """See `optdp.solve_additive`."""
    problem, other = run.problem, _other(run.problem)
    own: dict[str, Any] = {"gaussian": gaussian} if other is curve else {}
    if other is approximate:
        own = {"every_shift": every_shift}
    else:
        require.choice("method", run.method, ("auto",))
        if every_shift:
            raise TypeError("every_shift is not allowed under this notion: it is an option for (eps, delta)")
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
    if isinstance(problem.domain, Integers):
        made = rounded.solution(run, design)
        return made if first is None else rounded.beside(made, first)
    proof = _for_threshold(problem)
    lower, found = 0.0, None
    if proof is not None:
        lower, n = proof.bound(problem).value, _count(problem) + 1
        _tell(run, n, *((lower, first.value) if first else ()))
        found = _noise(run, n, proof)
    elif isinstance(problem.privacy, KL | RDP) and _count(problem) < FINEST:  # lattices may have a bound, but no peak
        found = _smooth(run, _count(problem) + 1)
    if found is not None:
        mechanism, _, program, _ = found
        value = mechanism.enclose(problem.objective)[1]
    if found is not None and proof is not None:
        made = Solution(problem, value, lower, mechanism, proof, program)
        first = made if first is None else rounded.beside(made, first)
    tried = single and proof is not None
    if first is None or not (first.gap <= run.rtol or tried or run.seconds > run.time_limit):
        # What it is refused with is the limit as it was asked for.
        extra = max(run.seconds - (1 - LATE) * run.time_limit, 0.0)
        try:
            rest = other.design(replace(run, began=run.began + extra), **own)
            first = rest if first is None else rounded.beside(first, rest)
        except ValueError:  # lattices that are too fine, or find nothing in the time that is left
            if first is None:
                raise
    if found is not None and value < first.value:
        first = replace(first, mechanism=mechanism, value=value, program=program)
    if proof is not None and lower > first.lower_bound:
        first = replace(first, lower_bound=lower, certificate=proof)
    late = run.seconds > run.time_limit
    return replace(first, program=replace(first.program, seconds=run.seconds, stopped=late))


def _for_threshold(problem: Problem) -> PackingCertificate | None:
    """The certificate with the least level that so many translates contradict; None where hardly any is contradicted."""
    from scipy.optimize import brentq

    privacy, count = problem.privacy, _count(problem)

    def excess(level: float) -> float:
        proof = _proof(privacy, level)
        return float(
            min((count - 1) * Fraction(proof.translate) + Fraction(proof.rest) - (1 - Fraction(level)) / 2, Fraction(1))
        )

    low, high = 2.0**-30, 1 - 2.0**-30
    if excess(high) <= 0:
        return None
    level = low if excess(low) > 0 else brentq(excess, low, high, xtol=NARROW)
    every = (_proof(privacy, min(level + 2**k * NARROW, high)) for k in range(30))
    return next((proof for proof in every if proof.full(count)), None)


def _noise(run: Run, n: int, proof: PackingCertificate) -> tuple[Any, float, Program, int] | None:
    """Noise with much of its mass within the cell at 0, its probability of errors beyond, its program, and on a lattice of how
    many points it is, n or a few more; None where nothing was found.
    """
    problem: Any = run.problem
    if n > FINEST or not proof.translate or isinstance(problem.privacy, Curve):
        return None
    if isinstance(problem.privacy, KL | RDP):
        return _smooth(run, n)
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
    program.compare_ends(nodes, step)
    spare = task.core(program)[np.append(nodes - 1, -1)]
    for rate in RATES:
        stairs = _stairs(n, rate * steep, nodes)
        if program.cost(stairs) < program.cost(spare) and not program.broken(stairs, curve.BROKEN):
            spare = stairs
    program.solve(spare, curve.BROKEN, NEAR)
    found = program.inner
    for part in (0.0, *curve.MIXED):
        program.inner = (1 - part) * found + part * spare
        with contextlib.suppress(ValueError):  # hardly anything is said to be beyond t: nothing is left of that
            mechanism = task.mechanism(program)
            if mechanism.admitted(task.privacy):
                missed = mechanism.enclose_loss(task.loss, sent=True)[1]
                return mechanism, missed, curve.told(task, program, run), n
    return None


def _stairs(n: int, rate: float, nodes: np.ndarray) -> np.ndarray:
    """Tail probabilities at the nodes, and the atom 0, of noise whose masses fall by e^rate behind the one at 0, and behind each
    sensitivity.
    """
    cell = 1 / (math.exp(rate) + 2 * n / -math.expm1(-rate))
    periods, rest = np.divmod(nodes - 1, n)
    behind = np.exp(-rate * periods) * (n / -math.expm1(-rate) - rest)
    return np.append(cell * behind, 0.0)


def _smooth(run: Run, n: int) -> tuple[Any, float, Program, int] | None:
    """The same under KL and Renyi privacy, by Newton's method: masses are equal on cells but for the point at 0.

    Of cells with an odd number m = 2h + 1 of points, shifts by multiples of m less h, and more h, and by one point are all
    that are compared: between them divergences are linear.
    """
    problem: Any = run.problem
    privacy = problem.privacy
    radius = divergence.Task(replace(problem, objective=WorstCase(Threshold(_inside(privacy, n))))).radius
    rough = [c for c in ROUGH if 3 * c <= max(n, 3 * FEW) and radius * c <= LARGEST]
    if not rough:
        return None
    made = [(c, max(2 * math.ceil((n / c - 1) / 2) + 1, 3)) for c in rough]
    count, m = min(made[-SUITED:], key=lambda pair: pair[0] * pair[1])
    n, h = count * m, m // 2
    limit = _inside(privacy, n)
    task = divergence.Task(replace(problem, objective=WorstCase(Threshold(limit))))
    last = math.ceil(task.radius * count)
    # Of the cell j the mass is that of a variable (0: the point at 0, 1: the rest of its cell, 2: the next cell, ...), or in the
    # tail a share of it.
    cells = np.arange(last + max(PERIODS, math.ceil(FAINT / task.steep)) * count + 1)
    periods = np.maximum(-((last - cells) // count), 0)
    index, fall = cells - periods * count + 1, -task.steep * periods
    each = fall - np.log(np.where(cells == 0, m - 1, m))
    lowest = -np.concatenate([cells[:0:-1], -cells])
    half = math.log(0.5)  # a pair and its mirror image count twice

    def pairs(shift: int) -> tuple[np.ndarray, ...]:
        whole = round(shift / m)
        over = shift - whole * m
        left, right, times = [], [], []
        for cell, share in ((whole, m - abs(over)), (whole + (1 if over > 0 else -1), abs(over))):
            near = np.abs(lowest + cell) < cells.size
            left.append(lowest[near])
            right.append(lowest[near] + cell)
            times.append(share - ((left[-1] == 0) & (cell == whole)) - ((right[-1] == 0) & (cell == whole)) + 0.0)
        many = np.concatenate(times)
        i, j = (np.abs(np.concatenate(part))[many > 0] for part in (left, right))
        logs = np.log(many[many > 0]) + half
        first, second = np.append(index[i], [0, index[whole]]), np.append(index[j], [index[whole], 0])
        one, two = (
            np.append(each[i] + logs, [half, each[whole] + half]),
            np.append(each[j] + logs, [each[whole] + half, half]),
        )
        return first, second, one, two

    shifts = sorted({s for k in range(count + 1) for s in (k * m - h, k * m, k * m + h, 1) if 1 <= s <= n})
    weight = np.zeros(last + 2)
    np.add.at(weight, index[1:], 2 * np.exp(fall[1:]))
    weight[:2] = 1.0
    cost = np.where(np.arange(last + 2) > 0, weight, 0.0)
    for kept_back in divergence.SHARES:
        program = noise.Cells(cost, weight, task.alpha, task.bound * (1 - kept_back), [pairs(s) for s in shifts])
        for rate in FINER:  # what falls behind the point and each sensitivity
            u = np.log(np.append([1.0, m - 1.0], np.full(last, float(m))))
            u[1:] -= rate * 2 * task.bound * (1 + (np.arange(last + 1) - 0.5).clip(0) // count)
            u -= math.log(float(weight @ np.exp(u)))
            if program.excess(u).max() < 0:
                break
        found = program.solve(u, divergence.EXACT, run.began + run.time_limit)
        if found is None:
            return None
        p = np.concatenate([found.p[:1], np.full(h, found.p[1] / (m - 1)), np.repeat(found.p[2:] / m, m)])
        mechanism = task.mechanism(p, math.exp(-task.steep), n)
        if mechanism.admitted(privacy):
            told = Program(
                f"{last + 2} masses of cells and of the point at 0, on a lattice of {n} points per sensitivity; the model is "
                "that of 2 points per sensitivity",
                f"divergences at {len(shifts)} shifts", f"Newton's method (optdp), {found.steps} steps", run.seconds, run.rtol,
                objective=found.value, build=divergence.model, arguments=(task.problem, 2),
            )  # fmt: skip
            return mechanism, mechanism.enclose_loss(task.loss, sent=True)[1], told, n
    return None


register(
    "additive threshold",
    ("ApproxDP, Profile, Curve, GDP, KL, RDP", "Line, Integers", "WorstCase(Threshold(t)), t a small part of the sensitivity",
     "Additive", "Unbiased"),
    accepts, design, approximate.METHODS,
)  # fmt: skip

"""Additive noise whose error bars are shortest: the least quantile of |X|, by the least probabilities of errors above t.

**Quasi-linear.** V(t), the least P(|X| > t) of all noise with the guarantee, is one of the programs for `optdp.Threshold(t)`; it
does not rise in t, and the least level-quantile is where it passes 1 - level. A bound on V(t) above 1 - level proves that no
noise has a quantile up to t (`optdp.certificates.quantile`); noise with P(|X| > t) <= 1 - level has one of at most t.

**Exact lattices.** Rounding X to the nearest point of a lattice h = Delta/n keeps the guarantee, and |X| > t where t is the end
of a cell, t = (a + 1/2) h, just if |i| > a; masses spread evenly over the cells keep it too. So V(t) is the value of the lattice
program at t = (2a + 1)/(2n) Delta, with no error that falls with n, and a coarse lattice serves where such a fraction is near. On
the integers n = Delta, t = a + 1/2, and there is nothing in between.

**Search.** From the fractions at n = 1 on, bisection by the smallest n with one near where log V, linear between what is known,
passes log(1 - level).
"""

from __future__ import annotations

import contextlib
import math
import time
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from optdp.certificates.additive import on_integers
from optdp.certificates.base import Refusal
from optdp.certificates.period import PeriodCertificate, error_bar
from optdp.certificates.quantile import QuantileCertificate
from optdp.certificates.staircase import StaircaseCertificate
from optdp.design.additive import approximate, curve, divergence, packing, rounded
from optdp.design.additive.lattice import Bracket, pairs_of
from optdp.design.additive.pairs import by_one, from_single, nothing, under_curve
from optdp.design.registry import Run, register
from optdp.exact import enclosures, require, show
from optdp.mechanisms.staircase import PERIOD, noise_of
from optdp.problem.domains import Integers
from optdp.problem.losses import Threshold
from optdp.problem.objectives import Quantile, WorstCase
from optdp.problem.privacy import GDP, KL, RDP, ApproxDP, Curve, Profile
from optdp.problem.problem import Problem
from optdp.solution import Solution

#: Lattices with more points per sensitivity are not tried, by design, for quantiles of at least a sensitivity, and in proportion
#: below it, up to LIMIT.
FINEST = {"approximate": 64, "curve": 24, "divergence": 32}
LIMIT = 256
#: The largest sensitivity at which integers are points of a lattice: noise is rounded to more of them. Under GDP also the most
#: pairs of integers within a sensitivity of each other, about, over mu, where quantiles are of some integers.
CROWDED, PAIRS, SOME = 32, 64, 4
#: Probabilities are tried for so many distances at most, and solved to gaps so many times that of the quantile: they fall faster.
PROBES, STEEPER = 60, 3.0
#: By which shares less than the error bar a distance is for which more is proven, one after the other.
LESS = (1e-11, 1e-9, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
#: The designs of the probabilities.
DESIGNS = (approximate, curve, divergence)


def _inner(problem: Problem, limit: float) -> Problem:
    return replace(problem, objective=WorstCase(Threshold(limit)))


def _design(problem: Problem) -> Any:
    return next(d for d in DESIGNS if d.accepts(problem) is None)


def _refused(problem: Problem) -> str | None:
    """Why none of the designs solves it: what the one says that knows the notion."""
    reasons = [design.accepts(problem) for design in DESIGNS]
    return None if None in reasons else next((r for r in reasons if "privacy must be" not in str(r)), reasons[0])


@dataclass
class _Search:
    """What is known of V, and the best of both sides so far. Distances are in sensitivities."""

    run: Run
    level: float
    width: float
    integers: bool
    #: The only lattice, 0 if there is a choice.
    fixed: int
    best: Bracket
    #: (distance, log V) with V proven above 1 - level, and attained at most it.
    low: tuple[Fraction, float] | None = None
    high: tuple[Fraction, float] | None = None
    tried: set[Fraction] = field(default_factory=set)
    #: Where V is too small for its program.
    ceiling: Fraction | None = None
    failure: str = ""

    def probe(self, at: Fraction, n: int | None) -> None:
        """Solve for V there, on lattices of n points per sensitivity, or as the design does."""
        run, self.tried = self.run, self.tried | {at}
        edge = at * Fraction(self.width)
        limit = enclosures.round_down(edge)
        if n and not self.integers and Fraction(limit) == edge:  # noise may have an atom at the end of a cell
            limit = math.nextafter(limit, 0.0)
        problem = _inner(run.problem, limit)
        rtol, left = min(STEEPER * run.rtol, 0.1), max(run.left(), 0.1)
        told = f"P(|X| > {limit:.6g})" + (f", {n} lattice points per sensitivity" if n else "")
        progress = run.progress.part(told, self.best.lower, self.best.value)
        now, most = time.perf_counter(), 1 - Fraction(self.level)
        one = replace(
            run, problem=problem, rtol=rtol, time_limit=left, began=now, progress=progress, target=float(most)
        )
        try:
            found = _design(problem).design(one, n=None if self.integers else n)
        except ValueError as error:
            self.failure = str(error)
            if self.high is None and (self.low is None or at > self.low[0]):
                self.ceiling = at
            return
        middle = math.log(max((found.lower_bound + found.value) / 2, 1e-300))
        value = found.mechanism.enclose(run.problem.objective)[1]
        if value < self.best.value:
            self.best = replace(self.best, mechanism=found.mechanism, value=value, program=found.program)
        if Fraction(found.value) <= most and (self.high is None or at < self.high[0]):
            self.high = at, middle
        elif Fraction(found.lower_bound) > most and (self.low is None or at > self.low[0]):
            self.low, certificate = (at, middle), QuantileCertificate(limit, found.certificate)
            self.best = replace(self.best, certificate=certificate, lower=certificate.bound(run.problem).value)
        run.progress.part(told, self.best.lower, self.best.value)("found")

    def pack(self) -> None:
        """Begin with error bars that are a small part of the sensitivity, if they are."""
        self.best, decided = packing.bracket(self.run, self.best)
        for at, attained in decided.items():
            self.tried |= {at}
            known = at, math.log1p(-self.level)
            self.low, self.high = (self.low, known) if attained else (known, self.high)

    def next(self, finest: int) -> tuple[Fraction, int] | None:
        """The distance to be tried next, and the lattice."""
        low = Fraction(0) if self.low is None else self.low[0]
        high = self.high[0] if self.high else None
        if high is None:
            start = Fraction(_guess(self.run.problem.privacy, self.level)) if self.low is None else 3 * low / 2 + 1
            if self.ceiling is not None:
                return self._fraction(low, self.ceiling, (low + self.ceiling) / 2, finest)
            return self._fraction(max(low, start / 2), 2 * start + 3, start, finest)
        if self.low is None or self.high is None:
            return self._fraction(high / 16, high / 2, high / 4, finest) or self._fraction(low, high, high / 2, finest)
        aim, wide = math.log1p(-self.level), float(high - low)
        (a, first), (b, last) = self.low, self.high
        share = min(max((first - aim) / (first - last), 0.0), 1.0) if first > last else 0.5
        guess = float(a) + share * wide

        def worth(found: tuple[Fraction, int]) -> float:
            """By how much the bracket is shorter then, if the estimate is right, over about what it costs."""
            at, n = float(found[0]), found[1]
            return (at - float(a) if at < guess else float(b) - at) / n**2

        lattices = [self.fixed] if self.fixed else range(1, finest + 1)
        every = [
            found for n in lattices for ends in ((low, min(Fraction(guess), high)), (max(Fraction(guess), low), high))
            if (found := self._fraction(*ends, Fraction(guess), n, n))
        ]  # fmt: skip
        return max(every, key=worth, default=None)

    def _fraction(
        self, low: Fraction, high: Fraction, at: Fraction, finest: int, coarsest: int = 1
    ) -> tuple[Fraction, int] | None:
        """(2a + 1)/(2n) between two distances with the smallest n, the nearest to a third one."""
        for n in [self.fixed] if self.fixed else range(coarsest, finest + 1):
            first = max(math.ceil(low * n - Fraction(1, 2)), 0)
            last = math.floor(high * n - Fraction(1, 2))
            here = round(at * n - Fraction(1, 2))
            near = sorted({min(max(a, first), last) for a in range(here - 2, here + 3)}, key=lambda a: abs(a - here))
            for a in near if first <= last else ():
                place = Fraction(2 * a + 1, 2 * n)
                if low < place < high and place not in self.tried:
                    return place, n
        return None


def _guess(privacy: Any, level: float) -> float:
    """About how large the quantile of usual noise is, in sensitivities."""
    from scipy.special import ndtri

    pairs, rate = pairs_of(privacy), -math.log1p(-level)
    if not pairs:  # that of the Gaussian which spends as much
        alpha = float(getattr(privacy, "alpha", 1))
        mu = float(privacy.mu) if isinstance(privacy, GDP) else math.sqrt(2 * float(privacy.bound) / alpha)
        return -float(ndtri((1 - level) / 2)) / mu
    slow = [rate / float(e) if float(e) > 0 else math.inf for e, _ in pairs]
    even = [level / (2 * float(d)) if float(d) > 0 else math.inf for _, d in pairs]
    return max(map(min, slow, even))


def accepts(problem: Problem) -> str | None:
    """A quantile of additive noise, wherever probabilities are solved."""
    if not isinstance(problem.objective, Quantile):
        return "the objective must be a quantile"
    width = float(getattr(problem.privacy, "sensitivity", 1.0))
    return _refused(_inner(problem, width))


def design(run: Run, *, n: int | None = None) -> Solution:
    """See `optdp.solve_additive`."""
    least_rtol = 1e-5 if isinstance(run.problem.privacy, KL | RDP) else 1e-8  # as for its probabilities
    require.real("rtol", run.rtol, low=least_rtol, high=1.0)
    if n is not None:
        n = require.integer("n", n, low=1, high=10_000)
    problem, privacy = run.problem, run.problem.privacy
    level, integers = problem.objective.level, isinstance(problem.domain, Integers)
    if integers and n is not None:
        raise ValueError(f"n = {n} is not allowed on the integers, where the lattice is theirs")
    least = min((Fraction(d) for _, d in pairs_of(privacy)), default=Fraction(0))
    if not integers and Fraction(level) <= least:
        why = f"noise that is 0 with probability delta = {show(float(least))} has the quantile 0"
        raise ValueError(f"level = {show(level)} is not allowed: {why}; it must be above delta")
    if found := by_one(run, lambda part: design(part, n=n)):
        return found
    width: float = privacy.sensitivity  # type: ignore[attr-defined]
    slow = isinstance(privacy, GDP) and width**2 > PAIRS * float(privacy.mu) and width * _guess(privacy, level) > SOME
    crowded = integers and (width > CROWDED or slow)
    if crowded and Fraction(level) > least and rounded.fits(problem):
        zero = _at_zero(run) if rounded.narrow(problem) else None
        if zero is not None and zero.gap <= run.rtol:
            return zero
        found = rounded.solution(run, design)
        return found if zero is None else rounded.beside(found, zero)
    return _on_lattices(run, n)


def _at_zero(run: Run) -> Solution | None:
    """On integers, by the probability of any error at all: noise whose quantile may be 0, or a proof that it is not."""
    problem: Any = run.problem
    inner, most, whole = _inner(problem, 0.5), 1 - problem.objective.level, int(problem.privacy.sensitivity)
    half, found = (run.seconds + run.time_limit) / 2, None
    # No more of the probability is asked than whether it is above or below, and nothing of rounding.
    for rtol in (1.0, 0.1, run.rtol):
        try:
            found = _design(inner).design(replace(run, problem=inner, rtol=rtol, time_limit=half), n=whole)
        except ValueError:
            break
        if found.value <= most or found.lower_bound > most or run.seconds > half:
            break
    if found is None:
        return None
    value, proof, lower = found.mechanism.enclose(run.problem.objective)[1], nothing(run.problem), 0.0
    with contextlib.suppress(Refusal):
        certificate = QuantileCertificate(0.5, found.certificate)
        lower, proof = certificate.bound(run.problem).value, certificate
    late = found.program.stopped or run.seconds > run.time_limit
    told = replace(found.program, seconds=run.seconds, rtol=run.rtol, stopped=late)
    return Solution(run.problem, value, lower, found.mechanism, proof, told)


def _on_lattices(run: Run, n: int | None) -> Solution:
    problem, privacy = run.problem, run.problem.privacy
    level, integers = problem.objective.level, isinstance(problem.domain, Integers)
    least = min((Fraction(d) for _, d in pairs_of(privacy)), default=Fraction(0))
    if isinstance(privacy, Curve):
        return under_curve(run, lambda part: design(part, n=n))
    fixed = int(privacy.sensitivity) if integers else n or 0  # type: ignore[attr-defined]
    unknown = Bracket(None, math.inf, nothing(problem), 0.0)
    search = _Search(run, level, privacy.sensitivity, integers, fixed, unknown)  # type: ignore[attr-defined]
    if n is None and isinstance(privacy, ApproxDP):
        search.best = _one_period(run, unknown)
    if n is None and len(pairs_of(privacy)) > 1 and isinstance(privacy, Profile) and least > 0:
        search.best = from_single(run, design)
    if n is None and not integers and not search.best.gap <= run.rtol:
        search.pack()
    if n is None and isinstance(privacy, GDP) and not integers and not search.tried:
        half = math.floor(2 * _guess(privacy, level))
        for halves in range(max(half, 1), half + 2):
            search.probe(Fraction(halves, 2), None)
    most = FINEST[_design(_inner(problem, privacy.sensitivity)).__name__.rsplit(".", 1)[1]]  # type: ignore[attr-defined]
    for _ in range(PROBES):
        small = min(float(search.high[0]) if search.high else 1.0, 1.0)
        if search.best.gap <= run.rtol or run.seconds > run.time_limit:
            break
        found = search.next(min(math.ceil(most / max(small, 1 / most)), LIMIT) if n is None else n)
        if found is None:
            break
        search.probe(*found)
    best = search.best
    if best.mechanism is None:
        why = f"; of the first probabilities that it needs: {search.failure}" if search.failure else ""
        raise ValueError(
            f"level = {show(level)} is not allowed: no noise was found within the time limit or the arithmetic{why}"
        )
    told = (
        f"; the probability of errors above {len(search.tried)} distances, one after the other" if search.tried else ""
    )
    program = replace(
        best.program, seconds=run.seconds, rtol=run.rtol, stopped=run.seconds > run.time_limit,
        constraints=best.program.constraints + told,
    )  # fmt: skip
    return Solution(problem, best.value, best.lower, best.mechanism, best.certificate, program)


register(
    "additive quantile",
    ("ApproxDP, Profile, Curve, GDP, KL, RDP", "Line, Integers", "Quantile", "Additive", "Unbiased"),
    accepts, design,
)  # fmt: skip


def _one_period(run: Run, best: Bracket) -> Bracket:
    """On the line, where delta is 0 or so little that it is of no use: the staircase whose first step ends at the error bar.

    Its probability there, and a little before, is the optimum of `optdp.certificates.period`.
    """
    problem, level = run.problem, float(run.problem.objective.level)
    privacy: Any = problem.privacy
    eps, delta = float(privacy.eps), float(privacy.delta)
    if delta > run.rtol or isinstance(problem.domain, Integers) or eps < approximate.SUMMED:
        return best
    bar = error_bar(eps, (level - delta) / (1 - delta))
    share = bar - math.floor(bar) + 1.5 * 2.0**-PERIOD  # not a point short of it
    for noise in noise_of(problem, min(share, 1.0)):
        value = noise.enclose(problem.objective)[1]
        if value < best.value:
            program = approximate.closed_form(_inner(problem, value), run)
            best = replace(best, mechanism=noise, value=value, program=program)
    for less in LESS:
        limit = bar * (1 - less) * privacy.sensitivity
        inner = _inner(problem, limit)
        with contextlib.suppress(Refusal):
            proof = PeriodCertificate.best(inner) if delta else StaircaseCertificate.best(inner)
            certificate = QuantileCertificate(limit, proof)
            return replace(best, certificate=certificate, lower=certificate.bound(problem).value)
    return best


def accepts_change(problem: Problem) -> str | None:
    """The probability of any error at all, on the integers: there P(X != 0) is P(|X| > 1/2)."""
    same = on_integers(problem)
    return "the objective must be WorstCase(Threshold(0)) on the integers" if same is problem else _refused(same)


def design_change(run: Run, *, n: int | None = None, gaussian: bool = True) -> Solution:
    """See `optdp.solve_additive`; `gaussian`: under Gaussian DP, whether the Gaussian may come back."""
    inner = replace(run, problem=on_integers(run.problem))
    own: dict[str, Any] = {"gaussian": gaussian} if isinstance(run.problem.privacy, GDP) else {}
    try:
        found: Solution = _design(inner.problem).design(inner, n=n, **own)
    except ValueError as error:  # it is said of the loss that was asked for
        raise ValueError(str(error).replace(inner.problem.loss.name, run.problem.loss.name)) from None
    return replace(found, problem=run.problem)


register(
    "additive change",
    ("ApproxDP, Profile, Curve, GDP, KL, RDP", "Integers", "WorstCase(Threshold(0))", "Additive", "Unbiased"),
    accepts_change, design_change,
)  # fmt: skip

"""The optimal additive noise under KL or Renyi differential privacy: a smooth convex program on a lattice.

Minimise sum c_i p_i over symmetric masses p on hZ, h = Delta/n, with sum_i f(p_i, p_(i+s)) <= limit for s = 1..n:
relative entropies for KL(r), moments p^alpha q^(1-alpha) with limit e^((alpha-1) r) for RDP(alpha, r).
`optdp.solvers.noise` solves it by Newton's method in the logarithms of the masses, where nothing overflows and tails
keep their digits; `plain` is the same program in cvxpy (`optdp.solvers.divergence`), for comparison. Beyond the last
variables masses fall by a constant factor each sensitivity, because bounded noise has infinite divergence. The lower
bound is `optdp.certificates.divergence`: its reference is the solution as far as it goes. The mechanism is tested
exactly, and the bound drawn in until it passes.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from optdp.certificates.base import Certificate, Refusal
from optdp.certificates.divergence import DivergenceCertificate
from optdp.design.additive import lattice, narrow, peak, rounded
from optdp.design.additive.lattice import JUMPY, Bracket, LatticeTask, as_weights
from optdp.design.additive.pairs import nothing
from optdp.design.additive.rounded import FEW
from optdp.design.registry import Run, register
from optdp.exact import require, work
from optdp.exact.numbers import Number, border
from optdp.exact.sampling import LIMB
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.mechanisms.baselines import calibrated
from optdp.mechanisms.baselines.noise import staircase_stair
from optdp.mechanisms.gaussian import LatticeGaussian
from optdp.mechanisms.rounded import RoundedNoise
from optdp.mechanisms.staircase import LatticeStaircase
from optdp.problem.domains import Integers, Line
from optdp.problem.privacy import KL, RDP
from optdp.problem.problem import Problem
from optdp.solution import Solution
from optdp.solvers import divergence, noise

#: Lattices with more masses are not tried.
VARIABLES = 1500
#: Refinement goes on to a gap of AIM times rtol.
AIM = 0.8
#: How far variables reach: in standard deviations of the Gaussian that spends as much, and in sensitivities times the bound.
REACH, RATIOS = 6.0, 16.0
#: How much farther they reach for Renyi divergences below this bound, where there are not too many.
WIDER, GENTLE = 1.3, 3.0
#: Shares of that for a loss on the integers that is constant far out, one after the other.
NEARER = (1.0, 0.55, 0.39)
#: The logarithm of how rare outcomes are whose likelihood ratios matter, for Renyi divergences.
RARE = 15.0
#: What is kept back of the bound, one after the other; how exactly the program is solved.
SHARES, EXACT = (1e-7, 1e-5, 1e-3), 1e-8
#: The largest bound of Renyi divergences for which lattices are tried: on the line beside `peak`, and on the integers.
STEEPEST, WHOLE = 16.0, 40.0
#: How much longer the certificate's reference is than the program's noise, for Renyi divergences and for KL.
FURTHER = (2.0, 3.0)
#: For a loss that is constant far out: how often the tail's fall is found anew, below which mass the certificate's reference is
#: no more the noise, and by how much the logarithms of its masses fall from there.
TAILS, RAREST, FARTHEST = 4, 1e-10, 400.0
#: How much less than the program's value a reference proves before another one is tried.
ENOUGH = 1e-4
#: Renyi divergences of orders up to this are bounded as the KL divergence; how often the share is doubled that is kept back.
NEAR, DOUBLED = 1.001, 9
#: The largest sensitivity at which integers are points of a lattice: noise is rounded to more of them.
CROWDED = 128
#: Lattices that may fail; the share of what a kink takes from costs that it may take on the next one.
FAILURES, LOWER = 3, 0.1
#: Lattices of up to BESIDE points are looked at for steps that are at the ends of no cells, and LATTICES of them are tried.
BESIDE, LATTICES = 128, 2
#: The share of the usual limit that both sides of a lattice may take to be checked, with all that is tried for them.
PROOF = 0.9
#: How often the reference and what lies beyond it are fitted to each other, and when that is enough; how many points it has at
#: least where few are known. The noise is followed to where units of its mass cost this share more or less than at the optimum.
ROUNDS, SETTLED, LONG, UNEVEN = 6, 1e-7, 800, 0.03
#: What is said of Gaussian and staircase noise.
KNOWN = (
    "noise of a known family: no better noise was found on a lattice, as where chances are below about 1e-10, losses too small "
    "or too large for floats, noise is too wide, its peak too narrow, or time too short"
)
#: How much longer the reference is, and how many more rounds there are, where the first proves this share less than the program.
LONGER, SHORT = 4, 0.005
#: Newton's steps for the ratio of two masses: about 1 where noise is wide.
NEWTON = 8
#: The smallest multipliers, up to this share of the value in all, are left out of the certificate.
SMALL = 1e-5


class Task(LatticeTask):
    """A problem in the numbers that the search works with."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        privacy = self.privacy
        self.alpha = None if isinstance(privacy, KL) else float(privacy.alpha)
        self.bound = float(privacy.bound)
        #: 1 for losses that rise as |x|, 2 as x^2: what says how narrow a peak is.
        self.order = 1 if (self.loss.exponent or 1) < 2 else 2
        #: The standard deviation of the Gaussian that spends as much, in sensitivities.
        self.scale = math.sqrt((self.alpha or 1.0) / (2 * self.bound))
        #: About the logarithm of the largest likelihood ratio that the noise has, per sensitivity, and how far it reaches.
        self.steep = REACH / self.scale
        self.radius = REACH * self.scale + 1
        if self.alpha is not None:
            self.steep = max(self.bound, min(self.steep, self.bound + RARE / (self.alpha - 1)))
            self.radius = min(self.radius, RATIOS / self.bound + 1)
        self.radius += self.beyond

    def aligned(self, points: int) -> int:
        """Points per sensitivity near `points` that suit the jumps."""
        fits = lattice.coarsest(self.jumps) if self.loss.steps else None
        if self.bent(points):
            return min(range(points, points + points // 3 + 2), key=self.sag)
        return fits or (lattice.aligned(points, self.jumps, self.loss.steps) if self.jumps else points)

    def bent(self, n: int) -> bool:
        """Whether kinks between lattice points of n per sensitivity lower all costs before them by more than matters: of a loss
        that is constant up to there by anything, of others to below 0 as far as a standard deviation.
        """
        if self.loss.polynomials is None or len(self.loss.polynomials[0]) == 1 or self.jumps:
            return False
        return self.flat or self._kinked(n)[: math.ceil(n * self.scale) + 1][-1] < 0

    def _kinked(self, n: int) -> np.ndarray:
        """Costs up to behind the last kink that noise reaches."""
        last = self.loss.polynomials[0][1 if self.flat else -1] / Fraction(self.width)
        return self.costs(n, math.ceil(n * min(float(last), self.radius)) + 1)

    def sag(self, n: int) -> float:
        """By how much, at 0."""
        return float(self.loss(0.0)) - float(self._kinked(n)[0])

    def finer(self, points: int) -> int:
        """More points per sensitivity, for a lattice on which there is no solution."""
        more = range(points + 1, int(VARIABLES / 2 / (self.radius + 1)) + 1) if self.bent(points) else range(0)
        most = LOWER * self.sag(points) if more else 0.0
        return next((n for n in more if self.sag(n) <= most), math.ceil(1.3 * points))

    def weight(self, n: int, size: int) -> np.ndarray:
        """How many points are at each distance."""
        return np.where(np.arange(size) > 0, 2.0, 1.0 + self.bins(n))

    def data(self, n: int, size: int, fall: float) -> tuple[np.ndarray, np.ndarray]:
        """(cost, weight) of the masses, with those of the tail beyond them."""
        periods = math.ceil(40 / -math.log(fall)) + 1
        costs, weight = self.costs(n, size + periods * n), self.weight(n, size)
        price = weight * costs[:size]
        price[-n:] = 2 * fall ** np.arange(periods) @ costs[size - n : size + (periods - 1) * n].reshape(periods, n)
        weight[-n:] /= 1 - fall
        return price, weight

    def starts(self, program: noise.Program, deadline: float) -> list[np.ndarray]:
        """Logarithms of masses that keep the bound with some room, the best first: Gaussians with exponential tails, as narrow
        as may be, and staircases. None where there is no time for it.
        """
        x = np.arange(program.size) / program.n

        def shape(deviation: float, slope: float) -> np.ndarray:
            inner, knee = x / deviation, slope * deviation
            u = -np.where(inner < knee, inner**2 / 2, knee * (inner - knee / 2))
            return u - math.log(float(program.weight @ np.exp(u)))

        made, near = [], 0.98
        if self.alpha is not None:
            near = max(near, 1 - 0.5 / ((self.alpha - 1) * self.bound))
        for slope in (0.98 * self.steep, near * self.bound):
            # Wide ones break it, too: they fall steeply where variables end.
            widths = self.scale * np.geomspace(1e-3, 10, 40)
            room = np.full(widths.size, np.inf)
            for k, width in enumerate(widths):
                if time.perf_counter() > deadline:
                    return []
                room[k] = program.excess(shape(width, slope)).max()
            first = max(int(np.argmax(room < -0.1)) if room.min() < -0.1 else int(np.argmin(room)), 1)
            low, high = widths[first - 1], widths[first]
            for _ in range(12):
                middle = math.sqrt(low * high)
                low, high = (low, middle) if program.excess(shape(middle, slope)).max() < -0.1 else (middle, high)
            made.append(shape(high, slope))
        for rate in (0.9, near):  # staircases, which keep rate times the bound whatever the order
            share = 1 / (1 + math.exp(rate * self.bound / (self.loss.exponent or 1) / 1.5))
            for width in (0.5, 1.0, 2.0):
                u = -rate * self.bound * np.ceil(x - min(width * share, 0.5) - 1e-9)
                made.append(u - math.log(float(program.weight @ np.exp(u))))
        kept = [u for u in made if program.excess(u).max() < 0] or made
        return sorted(kept, key=lambda u: float(program.cost @ np.exp(u)))

    def solve(self, n: int, size: int, deadline: float, share: float) -> _Point | None:
        """The program with masses p_0..p_(size-1), for the bound times 1 - share."""
        steep, made = self.steep, None
        for _ in range(TAILS if self.beyond else 1):
            fall = math.exp(-steep)
            price, weight = self.data(n, size, fall)
            limit, shifts = self.bound * (1 - share), np.arange(1, n + 1)
            program = noise.Program(price, weight, n, fall, self.alpha, limit, shifts, bins=self.bins(n))
            found = None
            for start in self.starts(program, deadline):
                found = program.solve(start, EXACT, deadline)
                if found is not None or time.perf_counter() > deadline:
                    break
            if found is None:
                break
            made = _Point(found.p, fall, found.multipliers, found.level, found.value, n, found.steps, self.problem)
            if not self.beyond:
                break
            steep, last = self.decay(found.multipliers, found.level), steep
            if abs(steep - last) < 1e-6:
                break
        return made

    def fall(self, multipliers: np.ndarray, level: float, cost: float, steps: np.ndarray) -> float:
        """The logarithm x of the ratio of masses a sensitivity apart with which a unit costs the level far out, where its loss is
        `cost`, if masses s places apart have ratios of steps[s - 1] x.
        """
        a, r, used = self.alpha, self.bound, multipliers > 0  # what is not may be infinite beyond the root
        multipliers, steps = multipliers[used], steps[used]

        def spare(x: float) -> float:
            logs = x * steps
            with np.errstate(over="ignore"):  # far beyond the root
                if a is None:
                    return 2 * (cost - level) + float(multipliers @ (2 - 2 * np.cosh(logs))) / r
                powers = (np.exp((a - 1) * (y - r)) * (a - (a - 1) * np.exp(y)) for y in (logs, -logs))
                return 2 * (cost - level) + float(multipliers @ sum(powers))

        low, high = 0.0, 1.0
        while spare(high) > 0 and high < 512:
            low, high = high, 2 * high
        return border(lambda at: spare(at) > 0, low, high)[0]

    def steepest(self, multipliers: np.ndarray, level: float, cost: float) -> float:
        """That of the largest ratio which the certificate takes: masses less than a sensitivity apart are as if equal."""
        return self.fall(multipliers, level, cost, np.arange(multipliers.size) + 1.0 == multipliers.size)

    def decay(self, multipliers: np.ndarray, level: float) -> float:
        """That of noise that is geometric where the loss is constant."""
        return self.fall(multipliers, level, self.top, np.arange(1, multipliers.size + 1) / multipliers.size)

    @property
    def top(self) -> float:
        """What the loss is far out."""
        return float(self.loss.polynomials[1][-1][0])

    def plain(self, n: int, size: int, fall: float) -> tuple[np.ndarray, np.ndarray, float, Any] | None:
        """The same program in cvxpy: (masses, multipliers of the divergences, least value, the cvxpy problem)."""
        price, weight = self.data(n, size, fall)
        # Variables are masses over about what they are, so that the solver sees numbers of order 1.
        reach = np.arange(size) / n
        unit = np.exp(-np.minimum(reach**2 / (2 * self.scale**2), 30.0))
        unit = np.maximum(np.maximum(unit, np.exp(-reach / (0.25 * self.scale + 0.25))), 1e-9) / (weight @ unit)
        pairs = []
        for shift in range(1, n + 1):
            first, second = ((k, factor * unit[k]) for k, factor in self._sides(n, size, shift, fall, self.bins(n)))
            pairs.append((first, second))
        found = divergence.solve(price * unit, weight * unit, pairs, self.alpha, self.bound)
        return None if found is None else (found[0] * unit, *found[1:])

    @staticmethod
    def _sides(n: int, size: int, s: int, fall: float, bins: bool) -> list[tuple[np.ndarray, np.ndarray]]:
        """(index, factor) of p_i and p_(i+s) in the variables: pairs within a tail by their first period, times 1/(1 - fall)."""
        i = np.arange(-size + 1 - bins - s, size)
        times = np.where((i >= size - n) | (i + s <= n - size - bins), 1 / (1 - fall), 1.0)
        sides = []
        for place in (lattice.distance(k, bins) for k in (i, i + s)):
            beyond = np.maximum(-((size - 1 - place) // n), 0)
            sides.append((place - beyond * n, times * fall ** beyond.astype(float)))
        return sides

    def mechanism(self, p: np.ndarray, fall: float, n: int) -> AdditiveMechanism:
        """The masses, continued by this fall, as exact noise, not yet tested."""
        whole = np.concatenate([p[:-n], p[-n:] / (1 - fall)])
        weights = [max(w, 1) for w in as_weights(whole, float(self.weight(n, whole.size) @ whole))]
        domain: Any = self.problem.domain
        return AdditiveMechanism(
            domain, self.width, n, tuple(weights[:-n]), 0, tuple(weights[-n:]), int(fall * LIMB), notion=self.privacy,
            bins=self.bins(n),
        )  # fmt: skip

    def certificate(self, found: _Point) -> tuple[DivergenceCertificate, float]:
        """The multipliers, with the better of the references, and what they prove."""
        n = found.n
        multipliers, order = found.multipliers.copy(), np.argsort(found.multipliers)
        little = np.cumsum(multipliers[order]) < SMALL * found.value
        multipliers[order[little]] = 0.0
        multipliers[-1] = max(multipliers[-1], SMALL * found.value)
        used, best = np.union1d([1], np.flatnonzero(multipliers) + 1), None
        unit = self.width ** (self.loss.exponent or 0)
        for times in (0, 1) if self.beyond else (1, LONGER):
            if times == LONGER and best is not None and best[1] >= (1 - SHORT) * found.value * unit:
                break
            w, fall = (
                self._followed(found, multipliers, used, times) if times else self._settled(found, multipliers, used)
            )
            level = 0.0 if fall else found.level
            made = DivergenceCertificate(
                n, tuple(multipliers.tolist()), tuple(w.tolist()), level, self.rounding(n), fall
            )
            proven = self._proves(made)
            if best is None or proven > best[1]:
                best = made, proven
            if proven >= (1 - ENOUGH) * found.value * unit:
                break
        assert best is not None
        return best

    def _settled(self, found: _Point, multipliers: np.ndarray, used: np.ndarray) -> tuple[np.ndarray, float]:
        """The noise, and geometric where it is rare, made even: (reference, fall). Where the loss is constant, ratios need some
        way to settle.
        """
        n, steep = found.n, self.decay(multipliers, found.level)
        rare = int((found.p > RAREST).argmin()) or found.p.size
        kept = min(max(rare, math.ceil(n * self.beyond) + 2 * n), found.p.size)
        more = np.arange(max(min(LONG, kept + int(n * FARTHEST / steep)) - kept, 0))
        u = np.log(found.p[:kept])
        u, fall = np.append(u, u[kept - n + more % n] - steep * (1 + more // n)), math.exp(-steep)
        price, weight = self.data(n, u.size, fall)
        program = noise.Program(price, weight, n, fall, self.alpha, self.bound, used, bins=self.bins(n))
        return np.exp(program.polished(u, multipliers[used - 1])), fall

    def _followed(
        self, found: _Point, multipliers: np.ndarray, used: np.ndarray, times: int
    ) -> tuple[np.ndarray, float]:
        """The noise as far as a unit of its mass costs about the same, and further what makes it do so: (reference, 0)."""
        n, level = found.n, found.level

        def program(w: np.ndarray) -> noise.Program:
            weight = self.weight(n, w.size)
            cost = weight * self.costs(n, w.size - 1)
            ratio = math.log(w[-1 - n] / w[-1])
            cost[-n:] += self._outer(multipliers, ratio, self.costs(n, w.size + n - 1)[-n:], level)
            return noise.Program(cost, weight, n, 0.5, self.alpha, self.bound, used, cut=True, bins=self.bins(n))

        lam, size = multipliers[used - 1], found.p.size - 2 * n
        uneven = np.abs(program(found.p).brackets(np.log(found.p), lam) - level)[:size] > UNEVEN * level
        w = self._longer(found, max(int(np.argmax(uneven)) if uneven.any() else size, n + 1), max(size, n + 1), times)
        for _ in range(ROUNDS * times):
            before, u, last = w, program(w).polished(np.log(w), lam), -math.inf
            most = self._ends(multipliers, level, self.costs(n, w.size + n - 1)[-n - 1 :])
            if u[-1 - n] - u[-1] > most - 1e-9:  # the proof takes no larger ratio there
                u[-1] = u[-1 - n] - most + 1e-9
                made = program(np.exp(u))
                u = made.polished(u, lam, fixed=True)
                last = made.brackets(u, lam)[-1]
            w = np.exp(u)
            if last >= level or np.abs(w / before - 1).max() < SETTLED:
                break
        return w, 0.0

    def _outer(self, multipliers: np.ndarray, ratio: float, costs: np.ndarray, level: float) -> np.ndarray:
        """What pairs that reach beyond the reference add to its last n brackets, as in the certificate, where its last ratio has
        the logarithm `ratio`, and `costs` are those of the n points that follow.
        """
        r, lam = self.bound, float(multipliers[-1])
        worth = 2 * (costs - level) / lam
        if self.alpha is None:
            worth = worth + (2 - math.exp(-ratio)) / r
            return lam * (np.log(np.maximum(worth * r, 1.0)) + 1 - math.exp(-ratio)) / r
        a = self.alpha
        inward = -(a - 1) * math.exp(-a * ratio - (a - 1) * r)
        worth = worth + a * (math.exp((a - 1) * (ratio - r)) + math.exp(-(a - 1) * (ratio + r))) + inward
        worth = worth + 2 * math.exp(-(a - 1) * r) * float(multipliers[:-1].sum()) / lam
        logs = (np.log(np.maximum(worth, 1e-300) / (a - 1)) + (a - 1) * r) / a
        return lam * (a * np.exp((a - 1) * (logs - r)) + inward)

    def _ends(self, multipliers: np.ndarray, level: float, costs: np.ndarray) -> float:
        """The logarithm of the largest last ratio with which the last bracket is the level, and that the certificate takes:
        `costs` are those of the last point and of the n that follow it.
        """
        r, lam, a = self.bound, float(multipliers[-1]), self.alpha

        def spare(x: float) -> float:
            if a is None:
                own = (1 - x - math.exp(x)) / r
            else:
                own = a * math.exp(-(a - 1) * (x + r)) - (a - 1) * math.exp(a * x - (a - 1) * r)
                own += 2 * math.exp(-(a - 1) * r) * float(multipliers[:-1].sum()) / lam
            return 2 * float(costs[0] - level) + float(self._outer(multipliers, x, costs[-1:], level)[0]) + lam * own

        most = self.steepest(multipliers, level, float(costs[1]))
        return most if spare(most) >= 0 else border(lambda at: spare(at) > 0, 0.0, most)[0]

    def _longer(self, found: _Point, kept: int, size: int, times: int) -> np.ndarray:
        """The first masses, continued to some times `size` (and `times` as far) by those with equal brackets for the multiplier
        of shift n alone.

        With R_a = p_a/p_(a+n) that is 2 (c_(a+n) - level) + lam (B(R_a) + A(1/R_a) + A(R_(a+n)) + B(1/R_(a+n))) = 0, a
        recursion from far out inwards, where A and B are those of the certificate.
        """
        n, lam = found.n, float(found.multipliers[-1])
        last = times * max(math.ceil(FURTHER[self.alpha is None] * size), min(4 * size, LONG))
        end = 2 * last
        costs = self.costs(n, end + n)
        a, r, worth = self.alpha, self.bound, 2 * (costs - found.level) / lam
        if a is not None:  # pairs of other shifts, as if their masses were equal
            worth += 2 * math.exp(-(a - 1) * r) * float(found.multipliers[:-1].sum()) / lam
        logs = np.full(end + n, self.steepest(found.multipliers, found.level, float(costs[-1])))
        for high in range(end, kept - n, -n):
            low = max(high - n, kept - n)
            cost, later, here = worth[low + n : high + n], logs[low + n : high + n], np.zeros(high - low)
            for _ in range(NEWTON):  # in the logarithms, which do not overflow
                if a is None:
                    rest = np.maximum(cost * r + later - here + 2 - np.exp(-later), 1.0)
                    there, slope = np.log(rest), 1 / rest
                else:
                    own = a * np.exp((a - 1) * (-here - r))
                    rest = cost + a * np.exp((a - 1) * (later - r)) + own - (a - 1) * np.exp(-a * later - (a - 1) * r)
                    rest = np.maximum(rest, 1e-300)
                    there = np.maximum((np.log(rest / (a - 1)) + (a - 1) * r) / a, 0.0)
                    slope = (a - 1) / a * own / rest
                before, here = here, here + (there - here) / (1 + slope)
                if np.array_equal(before, here):
                    break
            logs[low:high] = here
        w = np.concatenate([np.log(found.p[:kept]), np.zeros(last - kept)])
        for low in range(kept, last, n):
            high = min(low + n, last)
            w[low:high] = w[low - n : high - n] - logs[low - n : high - n]
        return np.exp(w[w > -650])

    def _proves(self, certificate: DivergenceCertificate) -> float:
        try:
            return certificate.bound(self.problem).value
        except Refusal:
            return -1.0


@dataclass(frozen=True)
class _Point:
    """Masses p_0..p_K, the fall of what follows, the shifts' multipliers, what a unit of mass costs, the value, the steps, and
    which problem's they are.
    """

    p: np.ndarray
    fall: float
    multipliers: np.ndarray
    level: float
    value: float
    n: int
    steps: int
    problem: Problem


def _checked(task: Task, n: int, deadline: float) -> tuple[Bracket | None, float, float]:
    """(None where the proofs would take more than is allowed: what nobody could check is of no use, how many times as many
    points may be checked, how many times as many are found in the time that is left).
    """
    limit, began = PROOF * work.LIMIT, time.perf_counter()
    with contextlib.suppress(work.Overwork), work.limited(limit) as meter:
        made = _bracket(task, n, deadline)
        now = time.perf_counter()
        return made, math.sqrt(limit * 1e6 / max(meter.done, 1.0)), math.sqrt(max(deadline - now, 0.0) / (now - began))
    return None, 1.0, math.inf


def _bracket(task: Task, n: int, deadline: float) -> Bracket | None:
    if n * (task.radius + 1) > VARIABLES:
        return None
    size = math.ceil(n * task.radius) + n
    if task.alpha is not None and task.bound < GENTLE:
        size = min(math.ceil(WIDER * n * task.radius) + n, VARIABLES)
    for share in SHARES:
        # Of a loss that is constant far out, the steep tail of far variables may leave no point to begin at.
        for part in NEARER if task.integers and task.beyond else (1.0,):
            found = task.solve(n, max(math.ceil(part * size), 2 * n + 1), deadline, share)
            if found is not None or time.perf_counter() > deadline:
                break
        if found is None:
            return None
        mechanism = task.mechanism(found.p, found.fall, n)
        if mechanism.admitted(task.privacy):
            value = mechanism.enclose_loss(task.loss, sent=True)[1]
            certificate, proven = task.certificate(found)
            return Bracket(mechanism, value, certificate, max(proven, 0.0), found)
    return None


def accepts(problem: Problem) -> str | None:
    """Additive noise on the line or the integers under KL or Renyi differential privacy."""
    if reason := lattice.refused(problem, KL | RDP, "KL or RDP"):
        return reason
    whole = isinstance(problem.privacy, RDP) and isinstance(problem.domain, Integers)
    most = WHOLE if whole else peak.TO
    if float(problem.privacy.bound) > most:  # type: ignore[attr-defined]
        return f"the bound of {problem.privacy.tag.upper()} must be at most {most:g}: there is hardly any noise then"
    return None


def design(run: Run, *, n: int | None = None, peaks: bool = True) -> Solution:
    """See `optdp.solve_additive`. `peaks`: whether `PeakNoise`, which is not rounded to integers, is wanted."""
    rtol = require.real("rtol", run.rtol, low=1e-5, high=1.0)
    if n is not None:
        n = require.integer("n", n, low=1, high=1000)
    lattice.sized(run.problem)
    try:
        found = _designed(run, rtol, n, peaks)
    except ValueError:  # there is no program that has a solution
        if n is None and (known := _known(run)):
            return known
        raise
    known = _known(run, found.program.stopped) if n is None and found.gap > rtol else None
    return rounded.beside(found, known) if known else found


_smooth = partial(design, peaks=False)


def _designed(run: Run, rtol: float, n: int | None, peaks: bool) -> Solution:
    """From lattices, of the line where integers are many."""
    problem = run.problem
    width: float = problem.privacy.sensitivity  # type: ignore[attr-defined]
    peaked = (isinstance(problem.privacy, RDP) or width <= FEW) and float(problem.privacy.bound) >= peak.FROM  # type: ignore[attr-defined]
    if n is None and width > CROWDED and not peaked and rounded.fits(problem):
        with contextlib.suppress(ValueError):  # the program below says why
            half = replace(run, time_limit=(run.seconds + run.time_limit) / 2)
            found = rounded.solution(half if rounded.narrow(problem) else run, _smooth)
            if found.gap > rtol and width <= FEW and run.left() > 0:  # rounding may cost more than that
                with contextlib.suppress(ValueError):
                    return rounded.beside(_on_lattices(run, rtol, n), found)
            return found
    try:
        return _on_lattices(run, rtol, n, peaks)
    except ValueError:  # the lattice of the integers cannot be as coarse as wide noise needs
        if n is None and width > 1 and rounded.fits(problem):
            with contextlib.suppress(ValueError):
                return rounded.solution(run, _smooth)
        raise


def _known(run: Run, stopped: bool = False) -> Solution | None:
    """Gaussian or staircase noise that keeps the bound, and its exact value; for a power also what a peak proves.

    **Arguments:** `stopped`: whether there was no time for lattices.
    """
    problem: Any = run.problem
    line, width = Line(), problem.privacy.sensitivity
    noises: list[Callable[[], Any]] = []
    proof: Certificate = nothing(problem)
    lower = 0.0
    if problem.objective.loss.exponent is not None:
        with contextlib.suppress(ValueError):  # a wide peak
            proof, lower = peak.proof(problem)
    if (normal := calibrated.gaussian(replace(problem, domain=line))) is not None:
        noises.append(lambda: LatticeGaussian(line, width, normal.mu))
    if (pure := calibrated.pure(problem.privacy)) is not None:
        share = staircase_stair(float(pure.eps), "squared" if (problem.objective.loss.exponent or 1) >= 2 else "abs")
        noises.append(lambda: LatticeStaircase.private(pure.eps, width, share=share))
    best = Bracket(None, math.inf, proof, lower)
    for made in noises:
        # Too wide, or too narrow, or no value is known.
        with contextlib.suppress(TypeError, ValueError, ArithmeticError):
            noise = RoundedNoise(Integers(), made()) if isinstance(problem.domain, Integers) else made()
            if noise.satisfies(problem.privacy) and (value := noise.enclose(problem.objective)[1]) < best.value:
                best = replace(best, mechanism=noise, value=value)
    if best.mechanism is None:
        return None
    return run.solution(
        best.mechanism, best.certificate, "none", "none", "closed form, no solver", (best.lower, best.value), message=KNOWN,
        stopped=stopped or run.seconds > run.time_limit,
    )  # fmt: skip


def _on_lattices(run: Run, rtol: float, n: int | None, peaks: bool = True) -> Solution:
    problem, deadline = run.problem, run.began + run.time_limit
    if isinstance(problem.privacy, RDP) and float(problem.privacy.alpha) < NEAR:
        with contextlib.suppress(ValueError):  # the program below says why
            return _near_kl(run, n, peaks)
    task = Task(problem)
    fixed = n is not None or task.integers
    power = not task.integers and task.loss.exponent is not None
    steep = peak.bracket(problem) if power and task.bound >= peak.FROM else None
    if peaks and steep is not None and (task.bound > STEEPEST or (steep.gap <= rtol and not fixed)):
        return _solution(run, steep)
    resolved = narrow.peak(task.bound, task.order) * VARIABLES >= 2 * task.radius  # a step wide on the finest lattice
    if steep is not None and not peaks and task.bound > STEEPEST and not resolved:
        raise ValueError("noise with so narrow a peak is on no lattice that can be rounded")
    points = n or (int(task.width) if task.integers else max(1, math.ceil(3 / task.scale)))
    peaked = task.bound >= (1 if task.alpha is not None else 6) and not task.flat
    if peaked and not fixed:  # the peak is resolved from the start
        width = narrow.peak(task.bound, task.order)
        points = max(points, min(math.ceil(1.5 / width), int(VARIABLES / 2 / (task.radius + 1))))
    points = points if fixed else task.aligned(points)
    best: Bracket | None = None
    near, failed, stopped = None if fixed else lattice.moved_in(problem), 0, False
    if near is not None and (made := _bracket(Task(near[0]), near[1], deadline)) is not None:
        value = made.mechanism.enclose_loss(task.loss, sent=True)[1]
        best = replace(made, value=value, lower=0.0)  # what is proven is about the other loss
    while True:
        run.progress(f"{points} lattice points per sensitivity", *((best.lower, best.value) if best else ()))
        found, room, soon = None, math.inf, math.inf
        with contextlib.suppress(OverflowError):  # costs far out, of high powers
            found, room, soon = (
                (_bracket(task, points, deadline), 1.0, 1.0) if fixed else _checked(task, points, deadline)
            )
        if found is None:  # another lattice may do
            failed += 1
            if fixed or failed > FAILURES or time.perf_counter() > deadline:
                break
            kept = best and not (points * (task.radius + 1) <= VARIABLES / 2 and task.bent(points))
            points = math.ceil(0.85 * points) if kept or room == 1 else task.finer(points)
            continue
        before, best = best, found.better(best)
        if before is not None and before.value < found.value:  # what is told is about the noise
            best = replace(best, program=before.program)
        hopeless = before is not None and before.lower <= 0 and best.lower <= 0 and near is None
        if fixed or best.gap <= rtol or hopeless or time.perf_counter() > deadline:
            break
        last, most = points, int(min(4 * points, VARIABLES / (task.radius + 1), room * points))
        most = min(most, JUMPY) if task.loss.steps else most
        wanted = min(max(math.ceil(points * math.sqrt(found.gap / (AIM * rtol))), points + 1), most)
        points = task.aligned(min(wanted, max(math.floor(soon * last), 1)))
        if points <= last or (task.loss.steps and last >= JUMPY):
            stopped = last < task.aligned(wanted) and not (task.loss.steps and last >= JUMPY)
            break
    if best is not None and near is None and task.loss.steps and not fixed:
        best = _at_steps(run, task, best)
    if best is None and steep is not None and peaks:
        return _solution(run, steep)
    if best is None and time.perf_counter() > deadline:
        raise ValueError(
            f"time_limit = {run.time_limit:g} is not allowed for {problem.privacy.adjective} noise with loss = "
            f"{problem.objective.loss.name!r}: there is no noise yet on {points} points per sensitivity; raise it"
        )
    # On a lattice that is too coarse for the peak nothing may be proven: what the peak proves holds beside it.
    whole = steep.better(best) if best and steep and (best.lower <= 0 or not fixed) else best
    if whole is not None and best is not None and not peaks:
        whole = replace(whole, mechanism=best.mechanism, value=best.value)
    if best is None or whole is None or whole.lower <= 0:
        told = f"{problem.privacy.adjective} is not allowed with loss = {problem.loss.name!r}: "
        if task.radius + 1 > VARIABLES:
            told += f"noise that reaches {task.radius:.0f} sensitivities far is too wide for a lattice; raise the bound"
            raise ValueError(told)
        raise ValueError(
            f"{told}the program on {points} points per sensitivity has no usable solution (it may have none where losses are "
            "too small or too large for floats, such as a chance below about 1e-10 or a high power); raise or lower the bound, "
            "or change the loss or the sensitivity"
        )
    return _solution(run, replace(whole, program=best.program), stopped)


def _at_steps(run: Run, task: Task, best: Bracket) -> Bracket:
    """Where steps are at the ends of no cells: the lattices as well on which they are the nearest before such ends, in
    sensitivities, of which that on the way to a gap had no choice.
    """
    off: dict[float, int] = {}
    for n in range(1, min(BESIDE, int(VARIABLES / 2 / (task.radius + 1))) + 1):
        end = Fraction(0 if task.bins(n) else 1, 2)
        off.setdefault(float(lattice.beyond(n, task.jumps, end)) / n, n)
    for _, points in sorted(off.items())[:LATTICES]:
        if best.gap <= run.rtol or run.left() <= 0:
            break
        run.progress(f"{points} lattice points per sensitivity", best.lower, best.value)
        found, _, _ = _checked(task, points, run.began + run.time_limit)
        if found is not None:
            told = found.program if found.value < best.value else best.program
            best = replace(found.better(best), program=told)
    return best


def _solution(run: Run, best: Bracket, stopped: bool = False) -> Solution:
    """What is found, and what is told of the program: on a lattice, or of the peak alone.

    `stopped`: whether there was no time for a finer lattice.
    """
    point: _Point | None = best.program
    if point is None:
        size = f"{len(best.mechanism.ends)} steps of a peak on a plateau; the model is that of 2 points per sensitivity"
        rows, solver = "the divergence of the worst pair", "closed form, no solver"
    else:
        size = f"{point.p.size} masses on a lattice of {point.n} points per sensitivity, with geometric tails"
        rows = f"divergences at shifts 1..{point.n}"
        solver = f"Newton's method (optdp), {point.steps} steps on the last lattice"
    return run.solution(
        best.mechanism, best.certificate, size, rows, solver, (best.lower, best.value),
        stopped=stopped or run.seconds > run.time_limit, objective=point.value if point else None, build=model,
        arguments=(point.problem, point.n) if point else (run.problem, 2),
    )  # fmt: skip


def _near_kl(run: Run, n: int | None, peaks: bool) -> Solution:
    """An order near 1: the bound is that for the KL divergence, which is no larger, and the noise has a little less of that.

    **Raises** ValueError where nothing is found.
    """
    privacy: Any = run.problem.privacy

    def solved(bound: Number) -> Solution:
        other = replace(run.problem, privacy=KL(bound, privacy.sensitivity))
        # Half of the time that is left, so that there is some for what follows.
        part = replace(run, problem=other, rtol=max(run.rtol / 3, 1e-5), time_limit=(run.seconds + run.time_limit) / 2)
        part = replace(part, progress=run.progress.part(f"under {other.privacy.adjective}"))
        return _on_lattices(part, part.rtol, n, peaks)  # not from the line: both sides are changed below

    certificate = solved(privacy.bound).certificate
    if isinstance(certificate, DivergenceCertificate):
        certificate = replace(certificate, kl=True)
    for k in range(DOUBLED):
        found = solved(float(privacy.bound) * (1 - min(2**k * (float(privacy.alpha) - 1), 0.5)))
        noise: Any = found.mechanism
        noise = replace(noise, notion=privacy)
        if noise.admitted(privacy):
            lower = certificate.bound(run.problem).value
            late = found.program.stopped or run.seconds > run.time_limit
            told = replace(found.program, seconds=run.seconds, rtol=run.rtol, stopped=late)
            return Solution(run.problem, found.value, lower, noise, certificate, told)
        if time.perf_counter() > run.began + run.time_limit:
            break
    raise ValueError(f"no {privacy.adjective} noise is near enough to that for the KL divergence")


def model(problem: Problem, n: int) -> Any:
    """The program in cvxpy, solved."""
    task = Task(problem)
    found = task.plain(n, math.ceil(n * task.radius) + n, math.exp(-task.steep))
    return None if found is None else found[3]


register(
    "additive divergence",
    (f"KL, RDP with bound <= {peak.TO:g}", "Line, Integers",
     "WorstCase(a power or piecewise polynomial)", "Additive", "Unbiased"),
    accepts, design,
)  # fmt: skip

"""The optimal additive noise under KL or Renyi differential privacy: a conic program on a lattice.

Minimise sum c_i p_i over symmetric masses p on hZ, h = Delta/n, with sum_i f(p_i, p_(i+s)) <= limit for s = 1..n: relative
entropies for KL(r), power cones p <= z^(1/alpha) q^(1 - 1/alpha) with sum z <= e^((alpha-1) r) for RDP(alpha, r), by cvxpy and
Clarabel. Beyond the last variables masses fall by a constant factor each sensitivity, because bounded noise has infinite
divergence. The lower bound is `optdp.certificates.divergence`: its reference is the solver's noise as far as its masses are
reliable, and falls geometrically from there. The mechanism is tested exactly, and the bound drawn in until it passes.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optdp.certificates.additive import SCALE, lattice_costs, not_noise
from optdp.certificates.base import Refusal
from optdp.certificates.divergence import DivergenceCertificate
from optdp.design.additive import as_weights
from optdp.design.registry import Run, register
from optdp.exact import require
from optdp.exact.sampling import LIMB
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.problem.constraints import Unbiased
from optdp.problem.domains import Integers
from optdp.problem.objectives import WorstCase
from optdp.problem.privacy import KL, RDP
from optdp.problem.problem import Problem
from optdp.solution import Program, Solution
from optdp.solvers import divergence

#: Lattices with more variables, or more cones, are not tried.
VARIABLES, CONES = 2000, 40_000
#: Refinement goes on to a gap of AIM times rtol.
AIM = 0.8
#: How far variables reach, in standard deviations of the Gaussian that spends as much; what is kept back of the bound at first.
REACH, SHARE = 5.0, 1e-6
#: How much longer the certificate's reference is than the program's noise.
FURTHER = 2.0


@dataclass(frozen=True)
class _Point:
    """Masses p_0..p_K, the fall of what follows, and the multipliers of the shifts."""

    p: np.ndarray
    fall: float
    multipliers: np.ndarray
    value: float
    model: Any


class _Task:
    def __init__(self, problem: Problem) -> None:
        privacy: Any = problem.privacy
        self.problem, self.privacy = problem, privacy
        self.loss, self.width, self.discrete = (
            problem.objective.loss,
            privacy.sensitivity,
            isinstance(problem.domain, Integers),
        )
        self.alpha = None if isinstance(privacy, KL) else float(privacy.alpha)
        self.bound = float(privacy.bound)
        #: The standard deviation of the Gaussian that spends as much, in sensitivities.
        self.scale = math.sqrt((self.alpha or 1.0) / (2 * self.bound))
        self.limit = self.bound if self.alpha is None else math.exp((self.alpha - 1) * self.bound)

    def costs(self, n: int, last: int) -> np.ndarray:
        """Costs of lattice points in floats."""
        return np.array([float(c) for c in lattice_costs(self.loss, self.width, n, last, self.discrete)]) / 2.0**SCALE

    def solve(self, n: int, size: int, fall: float, share: float) -> _Point | None:
        """The conic program with variables p_0..p_(size-1), for the bound times 1 - share."""
        periods = math.ceil(40 / -math.log(fall)) + 1
        costs = self.costs(n, size + periods * n)
        weight = np.where(np.arange(size) == 0, 1.0, 2.0)
        price = weight * costs[:size]
        powers = fall ** np.arange(periods)
        price[-n:] = 2 * powers @ costs[size - n : size + (periods - 1) * n].reshape(periods, n)
        weight[-n:] /= 1 - fall
        # Variables are masses over about what they are, so that the solver sees numbers of order 1.
        reach = np.arange(size) / n
        unit = np.maximum(
            np.exp(-np.minimum(reach**2 / (2 * self.scale**2), 30.0)), np.exp(-reach / (0.25 * self.scale + 0.25))
        )
        unit = np.maximum(unit, 1e-9) / (weight @ unit)
        pairs = []
        for shift in range(1, n + 1):
            first, second = ((k, factor * unit[k]) for k, factor in self._sides(n, size, shift, fall))
            pairs.append((first, second))
        found = divergence.solve(price * unit, weight * unit, pairs, self.alpha, self.bound * (1 - share))
        if found is None:
            return None
        x, multipliers, value, model = found
        return _Point(x * unit, fall, multipliers, value, model)

    @staticmethod
    def _sides(n: int, size: int, s: int, fall: float) -> list[tuple[np.ndarray, np.ndarray]]:
        """(index, factor) of p_i and p_(i+s) in the variables: pairs within a tail by their first period, times 1/(1 - fall)."""
        i = np.arange(-size + 1 - s, size)
        times = np.where((i >= size - n) | (i + s <= n - size), 1 / (1 - fall), 1.0)
        sides = []
        for place in (np.abs(i), np.abs(i + s)):
            beyond = np.maximum(-((size - 1 - place) // n), 0)
            sides.append((place - beyond * n, times * fall ** beyond.astype(float)))
        return sides

    def tail(self, found: _Point, n: int) -> float:
        """The fall of the tail at which its reduced cost just beyond the variables vanishes."""
        size = found.p.size
        room = float(self.costs(n, size)[-1]) - found.value - self.limit * float(found.multipliers.sum())
        shares = np.arange(1, n + 1) / n

        def reduced(log_ratio: float) -> float:
            u = log_ratio * shares
            if self.alpha is None:
                both = 2 - 2 * np.cosh(u)
            else:
                a = self.alpha
                both = 2 * a * np.cosh((a - 1) * u) - 2 * (a - 1) * np.cosh(a * u)
            return room + float(found.multipliers @ both) / 2

        low, high = 1e-3, 1e-3
        while reduced(high) > 0 and high < 60 / (self.alpha or 1):
            low, high = high, 1.5 * high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if reduced(middle) > 0 else (low, middle)
        return math.exp(-low)

    def mechanism(self, found: _Point, n: int) -> AdditiveMechanism:
        """The masses as exact noise, not yet tested."""
        p, fall = found.p, found.fall
        whole = np.concatenate([p[:-n], p[-n:] / (1 - fall)])
        weights = [max(w, 1) for w in as_weights(whole, float(whole[0] + 2 * whole[1:].sum()))]
        domain: Any = self.problem.domain
        return AdditiveMechanism(
            domain, self.width, n, tuple(weights[:-n]), 0, tuple(weights[-n:]), int(fall * LIMB), notion=self.privacy
        )  # fmt: skip

    def certificate(self, found: _Point, n: int) -> DivergenceCertificate:
        """The multipliers, with the reference that proves most among some that follow the solver's noise to some depth."""
        found = replace(found, multipliers=np.maximum(found.multipliers, [0.0] * (n - 1) + [1e-9]))
        longer = self._longer(found, n)
        found = replace(longer, p=self._polished(longer, n))
        level = self.level(found)
        tried = [max(round(found.p.size * share), n + 1) for share in (1.0, 0.95, 0.8)]
        made = [
            DivergenceCertificate(n, tuple(found.multipliers.tolist()), tuple(found.p[:kept].tolist()), level)
            for kept in tried
        ]
        return max(made, key=self._proves)

    def _longer(self, found: _Point, n: int) -> _Point:
        """The noise with a longer tail, whose ratios grow as costs do: where brackets would be equal at large ratios."""
        last = found.p.size + math.ceil(FURTHER * found.p.size)
        costs, p = self.costs(n, last + n), list(found.p[: -n // 2])
        lam, level = float(found.multipliers[-1]), self.level(found)
        least = p[-n - 1] / p[-1]
        while len(p) < last and p[-1] > 1e-200:
            worth = 2 * (costs[len(p)] - level) / lam + 2
            ratio = worth if self.alpha is None else max(worth / (self.alpha - 1), 1.0) ** (1 / self.alpha)
            least = max(least, ratio)
            p.append(p[-n] / least)
        return replace(found, p=np.array(p), fall=p[-1] / p[-n - 1])

    def level(self, found: _Point) -> float:
        """What brackets are worth at the optimum."""
        return found.value + self.limit * float(found.multipliers.sum())

    def _polished(self, found: _Point, n: int) -> np.ndarray:
        """The masses after some steps of Newton's method towards equal brackets for these multipliers.

        In the logarithms of the masses the Hessian of sum_s lam_s F_s is the Laplacian of a graph that joins i and i + s.
        """
        size, w = found.p.size, found.p.copy()
        periods = math.ceil(40 / -math.log(found.fall)) + 1
        costs = self.costs(n, size + periods * n)
        price = np.where(np.arange(size) == 0, 1.0, 2.0) * costs[:size]
        weight = np.where(np.arange(size) == 0, 1.0, 2.0)
        price[-n:] = (
            2 * found.fall ** np.arange(periods) @ costs[size - n : size + (periods - 1) * n].reshape(periods, n)
        )
        weight[-n:] /= 1 - found.fall
        for _ in range(30):
            gradient, laplacian = price * w, np.zeros((size, size))
            for s, lam in enumerate(found.multipliers, 1):
                (first, p), (second, q) = ((k, u * w[k]) for k, u in self._sides(n, size, s, found.fall))
                if self.alpha is None:
                    a, b, stiff = p * (np.log(p / q) + 1), -p, p
                else:
                    moment = p * (p / q) ** (self.alpha - 1)
                    a, b, stiff = self.alpha * moment, (1 - self.alpha) * moment, self.alpha * (self.alpha - 1) * moment
                np.add.at(gradient, first, lam * a)
                np.add.at(gradient, second, lam * b)
                for k, m, sign in ((first, first, 1), (second, second, 1), (first, second, -1), (second, first, -1)):
                    np.add.at(laplacian, (k, m), sign * lam * stiff)
            share = weight * w
            residual = gradient - share * gradient.sum() / share.sum()
            scale = 1 / np.sqrt(np.maximum(laplacian.diagonal(), 1e-300))
            step = scale * np.linalg.lstsq(scale[:, None] * laplacian * scale, -scale * residual, rcond=1e-14)[0]
            if not np.isfinite(step).all():
                return found.p
            w *= np.exp(np.clip(step, -1, 1))
            if np.abs(step).max() < 1e-12:
                break
        return w / (weight @ w)

    def _proves(self, certificate: DivergenceCertificate) -> float:
        try:
            return certificate.bound(self.problem).value
        except Refusal:
            return -1.0


@dataclass(frozen=True)
class _Bracket:
    mechanism: AdditiveMechanism
    value: float
    certificate: DivergenceCertificate
    lower: float
    point: _Point
    n: int

    @property
    def gap(self) -> float:
        return (self.value - self.lower) / self.value


def _bracket(task: _Task, n: int, deadline: float) -> _Bracket | None:
    size = math.ceil(n * (REACH * task.scale + 1)) + n
    if size > VARIABLES or n * size * 2 > CONES:
        return None
    fall, best = math.exp(-REACH / task.scale), None
    lower: tuple[float, DivergenceCertificate] | None = None
    share = SHARE
    for attempt in range(8):
        found = task.solve(n, size, fall, share)
        if found is None:
            break
        certificate = task.certificate(found, n)
        proven = max(task._proves(certificate), 0.0)
        if lower is None or proven > lower[0]:
            lower = proven, certificate
        mechanism = task.mechanism(found, n)
        if mechanism.admitted(task.privacy):
            value = mechanism.enclose_loss(task.loss, sent=True)[1]
            if best is None or value < best.value:
                best = _Bracket(mechanism, value, certificate, proven, found, n)
        else:
            share *= 10
        settled = attempt >= 2 and best is not None
        if settled or time.perf_counter() > deadline:
            break
        fall = task.tail(found, n)
    if best is None or lower is None:
        return None
    return replace(best, certificate=lower[1], lower=min(lower[0], best.value))


def accepts(problem: Problem) -> str | None:
    """Additive noise on the line or the integers under KL or Renyi differential privacy."""
    if reason := not_noise(problem):
        return reason
    if not isinstance(problem.privacy, KL | RDP):
        return "the privacy must be KL or RDP"
    if isinstance(problem.privacy, RDP) and (float(problem.privacy.alpha) - 1) * float(problem.privacy.bound) > 100:
        return "(alpha - 1) bound must be at most 100: beyond, moments of the likelihood ratio exceed what solvers can hold"
    if not isinstance(problem.objective, WorstCase):
        return "the objective must be a worst case"
    if problem.objective.loss.exponent is None or not problem.objective.loss.convex:
        return "the loss must be a power q >= 1: noise is unbounded"
    others = [c for c in problem.constraints if not isinstance(c, Unbiased)]
    return "constraints must be empty, or Unbiased() (the noise is symmetric)" if others else None


def design(run: Run, *, n: int | None = None) -> Solution:
    """See `optdp.solve_additive`."""
    rtol = require.real("rtol", run.rtol, low=1e-5, high=1.0)
    if n is not None:
        n = require.integer("n", n, low=1, high=1000)
    problem, deadline = run.problem, run.began + run.time_limit
    task = _Task(problem)
    fixed = n is not None or task.discrete
    points = n or (int(task.width) if task.discrete else max(2, math.ceil(2 / task.scale)))
    best: _Bracket | None = None
    while True:
        run.progress(f"{points} lattice points per sensitivity", *((best.lower, best.value) if best else ()))
        found = _bracket(task, points, deadline)
        if found is None:
            break
        if best is None or found.gap < best.gap:
            best = found
        if fixed or best.gap <= rtol or time.perf_counter() > deadline:
            break
        points = min(max(math.ceil(points * math.sqrt(found.gap / (AIM * rtol))), points + 1), 3 * points)
    if best is None or task._proves(best.certificate) < 0:
        raise ValueError(
            f"{problem.privacy.adjective} is not allowed: the conic program on {points} points per sensitivity has no usable "
            "solution; raise the bound, or scale the data to another sensitivity"
        )
    told = Program(
        f"{best.point.p.size} masses on a lattice of {best.n} points per sensitivity, with geometric tails",
        f"divergences at shifts 1..{best.n}", "cvxpy, Clarabel", run.seconds, run.rtol, best.point.value,
        stopped=run.seconds > run.time_limit, build=_model, arguments=(best.point.model,),
    )  # fmt: skip
    return Solution(problem, best.value, best.lower, best.mechanism, best.certificate, told)


def _model(model: Any) -> Any:
    return model


register(
    "additive divergence",
    ("KL, RDP with (alpha - 1) bound <= 100", "Line, Integers", "WorstCase(Power(q >= 1))", "Additive", "Unbiased"),
    accepts, design,
)  # fmt: skip

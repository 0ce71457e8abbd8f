"""The lattice program of additive noise under several pairs (eps, delta), all of it written out at once.

Masses p_a at distance a on a lattice of n points per sensitivity and, for each pair and each shift s = 1..n, slacks
u_i >= p_|i| - e^eps p_|i+s| with q + sum_i u_i <= delta: that of `optdp.design.additive.program`, as often as there are pairs.
Where the loss is constant far out very many sets are nearly the worst, and cuts for them, one after the other, take hundreds of
rounds (`optdp.design.additive.curve`); interior points take about thirty steps for all of it.

**One of the pairs** often decides: the optimum under it alone is a bound, and its noise may keep the others; noise for the least
eps and the least delta keeps them all (`from_single`).

**The relaxation** (`short`) leaves out all rows of points within the last sensitivity for pairs with eps > 0: noise may be
anything beyond, where the loss is constant, and multipliers are 0 there. The program for noise has all rows, and masses end.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from optdp.certificates.additive import AdditiveCertificate, Multiplier
from optdp.certificates.base import Refusal
from optdp.certificates.quantile import QuantileCertificate
from optdp.certificates.rounded import RoundedCertificate
from optdp.design.additive.lattice import Bracket, distance
from optdp.design.registry import Run
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.problem.objectives import Quantile
from optdp.problem.privacy import ApproxDP, Profile
from optdp.problem.problem import Problem
from optdp.solution import Solution
from optdp.solvers.lp import Highs, LinearProgram, LinearSolver, SolverFailure, stacked

#: Programs with more rows are not written out.
MOST_ROWS = 60_000
#: So many pairs are tried alone, in a share of the time.
MOST_PAIRS, TIME = 4, 0.4
#: Deltas below this share of a curve's largest are not resolved: what is tried, one after the other.
FAINT = (1e-6, 1e-5, 1e-4, 1e-3)
#: The share of the time limit that more is spent where there is no noise yet.
LATE = 0.1
#: Up to so many sensitivities from 0 masses may rise outwards: further out no rows are for that.
RISING = 3
#: By how much of the cost at the sensitivity an atom at 0 is preferred to a cell there, which costs the same on the lattice.
TIE = 1e-7


def by_one(run: Run, design: Callable[[Run], Solution]) -> Solution | None:
    """The solution for the pair of a `Profile` that implies all others, if one does: its design is the faster one."""
    privacy: Any = run.problem.privacy
    pairs = privacy.pairs if isinstance(privacy, Profile) else ()
    single = [ApproxDP(eps, delta, privacy.sensitivity) for eps, delta in pairs]
    for alone in single:
        if all(other.implied_by(alone) for other in single):
            found = design(replace(run, problem=replace(run.problem, privacy=alone)))
            problem = replace(found.problem, privacy=privacy)
            return replace(found, problem=problem, certificate=for_all(found.certificate, alone.eps))
    return None


def from_single(run: Run, design: Callable[[Run], Solution]) -> Bracket:
    """What is known from designs for one pair (eps, delta) each, until that is enough."""
    problem, began = run.problem, time.perf_counter()
    privacy: Any = problem.privacy
    pairs = privacy.pairs
    implied = pairs[0][0], min((d for _, d in pairs), key=float)
    best = Bracket(None, math.inf, nothing(problem), 0.0)
    for eps, delta in dict.fromkeys([pairs[0], implied, *pairs[1:MOST_PAIRS]]):
        left = TIME * run.time_limit - (time.perf_counter() - began)
        if best.gap <= run.rtol or left <= 0:
            break
        if float(eps) == float(delta) == 0:  # the least of both hides everything
            continue
        single = replace(problem, privacy=ApproxDP(eps, delta, privacy.sensitivity))
        progress = run.progress.part(f"{single.privacy.adjective} alone", best.lower, best.value)
        try:
            found = design(replace(run, problem=single, time_limit=left, began=time.perf_counter(), progress=progress))
        except (ValueError, SolverFailure):  # no noise was found, or it is given in closed form for one pair alone
            continue
        noise: Any = found.mechanism
        if isinstance(noise, AdditiveMechanism):
            noise = replace(noise, notion=privacy)
        keeps = (eps, delta) == implied or (isinstance(noise, AdditiveMechanism) and noise.admitted(privacy))
        if keeps and found.value < best.value:
            rows = f"{found.program.constraints}; under {single.privacy.adjective} alone"
            told = replace(found.program, constraints=rows, rtol=run.rtol, objective=None)
            kind = f"noise for {single.privacy.adjective}, which is {privacy.adjective}"
            best = replace(best, mechanism=noise, value=found.value, program=told, kind=kind)
        if (eps, delta) in pairs:
            with contextlib.suppress(Refusal):
                best = best.proven(for_all(found.certificate, eps), problem)
    return best


def for_all(certificate: Any, eps: Any) -> Any:
    """A proof for one pair as one for several: each multiplier says which pair it is about."""
    if isinstance(certificate, QuantileCertificate | RoundedCertificate):
        return replace(certificate, proof=for_all(certificate.proof, eps))
    if isinstance(certificate, AdditiveCertificate):
        return replace(certificate, multipliers=tuple(replace(m, eps=eps) for m in certificate.multipliers))
    return certificate


def under_curve(run: Run, design: Callable[[Run], Solution]) -> Solution:
    """Noise for the pairs that keep every such curve, and the bound of the pairs on it."""
    problem = run.problem
    curve: Any = problem.privacy

    def solved(pairs: Sequence[tuple[Any, Any]], seconds: float, told: str) -> Solution:
        profile = replace(problem, privacy=Profile(tuple(pairs), curve.sensitivity))
        part = replace(run, problem=profile, rtol=0.5 * run.rtol, time_limit=max(seconds, 0.1))
        return design(replace(part, began=time.perf_counter(), progress=run.progress.part(told)))

    def kept(least: float) -> Solution | None:
        """With pure privacy where hardly any delta is left."""
        clear = [(e, d) for e, d in curve.pairs if float(d) > least]
        end = [(e, 0.0) for e, _ in curve.pairs[len(clear) : len(clear) + 1]]
        with contextlib.suppress(ValueError):  # fewer digits may be needed
            return solved([*clear, *end], max(run.left(), LATE * run.time_limit) / 2, "noise for every such curve")
        return None

    faint = (share * max(float(d) for _, d in curve.pairs) for share in FAINT)
    noise, least = next(((found, least) for least in faint if (found := kept(least))), (None, 0.0))
    if noise is None:
        raise ValueError(
            f"{curve.adjective} is not allowed: no noise was found for it; take other points, or more of them"
        )
    points = [(e, d) for e, d in curve.points if least < float(d) < 1 or (d == 0 < float(e))]
    lower, certificate = 0.0, nothing(problem)
    with contextlib.suppress(ValueError, Refusal):  # there are deltas so large that no more is known
        beyond = solved(points or [curve.points[0]], run.left(), "a bound by the points")
        proof: Any = beyond.certificate
        lower, certificate = proof.bound(problem).value, proof
    mechanism = noise.mechanism
    if isinstance(mechanism, AdditiveMechanism):  # other noise guarantees one pair, which implies the curve
        mechanism = replace(mechanism, notion=curve)
    told = f"{noise.program.constraints}; for the bound the points themselves"
    program = replace(noise.program, rtol=run.rtol, constraints=told)
    return Solution(problem, noise.value, lower, mechanism, certificate, program)


def nothing(problem: Problem) -> AdditiveCertificate | QuantileCertificate:
    """The certificate that proves no more than 0."""
    empty = AdditiveCertificate(1, "nodes", ())
    return QuantileCertificate(0.0, empty) if isinstance(problem.objective, Quantile) else empty


class WrittenOut:
    """The program and its solution.

    **Arguments:** `pairs`: (eps, delta > 0); `n`: points per sensitivity; `costs`: c_0..c_K of as many masses; `atom`: whether a
    mass at 0 may stay there; `bins`: whether cells lie between the points, as of `AdditiveMechanism`; `short`: the relaxation.
    """

    def __init__(
        self, pairs: Sequence[tuple[Any, Any]], n: int, costs: np.ndarray, *, atom: bool, bins: bool, short: bool,
        solver: LinearSolver | None,
    ) -> None:  # fmt: skip
        from scipy.sparse import csr_matrix

        self.n, self.costs, self.bins, self.short = n, costs, bins, short
        self.size = size = costs.size
        self.solver = solver or Highs(tolerance=1e-9, crossover=False, options=(("presolve", "off"),))
        self.method = None if solver else "ipm"
        eps, delta = min(float(e) for e, _ in pairs), min(float(d) for _, d in pairs)
        index = np.arange(size)
        # Columns and rows are scaled by Laplace noise down to delta: the solver's tolerances are relative.
        self.scale = scale = np.maximum(-math.expm1(-max(eps, delta) / n) * np.exp(-eps * index / n), delta / n)
        weight = np.where(index > 0, 2.0, 1.0 + bins) * scale
        #: (eps, delta, shift, the i of its rows, its first row); the budget's row follows them.
        self.blocks: list[tuple[Any, Any, int, np.ndarray, int]] = []
        entries, first, columns = [(np.zeros(size + 1), np.arange(size + 1), np.append(weight, 1.0))], 1, size + 1
        for e, d in pairs:
            free = n * self._free(e)
            for s in range(1, n + 1):
                # Masses that are the larger the further out they are near the centre, if anywhere.
                i = np.arange(-min(RISING * n + s, size - bins), size)
                here, there = distance(i, self.bins), distance(i + s, self.bins)
                keep = (2 * i != -s - bins) & (np.maximum(here, there - n) < size - free)
                i, here, there = i[keep], here[keep], there[keep]
                row, slack, own = first + np.arange(i.size), columns + np.arange(i.size), scale[here]
                inside = there < size
                budget = np.full(i.size + 1, first + i.size)
                entries += [
                    (row, here, np.ones(i.size)),
                    (row[inside], there[inside], -math.exp(float(e)) * scale[there[inside]] / own[inside]),
                    (row, slack, -np.ones(i.size)),
                    (budget, np.append(slack, size), np.append(own, 1.0) / float(d)),
                ]
                self.blocks.append((e, d, s, i, first))
                first, columns = first + i.size + 1, columns + i.size
        places, where, value = (np.concatenate(part) for part in zip(*entries, strict=True))
        matrix = csr_matrix((value, (places, where)), shape=(first, columns))
        low, high = np.full(first, -np.inf), np.zeros(first)
        low[0] = high[0] = 1.0
        high[[start + i.size for *_, i, start in self.blocks]] = 1.0
        price, upper = np.zeros(columns), np.full(columns, np.inf)
        price[:size], price[size] = costs * weight, costs[0] - TIE * float(costs[min(n, size - 1)]) * atom
        upper[size] = np.inf if atom else 0.0
        self.magnify = 2.0 ** -(math.frexp(float(price.max(initial=1e-300)))[1] - 0)
        self.model = LinearProgram(price * self.magnify, matrix, low, high, upper=upper, name="additive")
        self.model.variables = stacked([("mass", size), ("atom", 1), ("slack", columns - size - 1)])
        self.primal, self.dual, self.objective = np.zeros(columns), np.zeros(first), math.nan

    def _free(self, eps: Any) -> bool:
        """Whether nothing is asked of what lies beyond: at eps = 0 half-lines compare no more than what is within."""
        return self.short and float(eps) > 0

    def solve(self, time_limit: float) -> bool:
        """Whether the solver had an answer."""
        found = self.solver.session(self.model).solve(time_limit=max(time_limit, 0.1), method=self.method)
        if found.usable:
            self.primal, self.dual = found.x, found.row_dual / self.magnify
            self.objective = found.objective / self.magnify
        return found.usable

    @property
    def told(self) -> tuple[str, str, str]:
        """Variables, rows, and how it was solved, in words."""
        where = f"on a lattice of {self.n} points per sensitivity"
        return f"{self.size} masses {where}", f"{self.model.rows.shape[0]} rows", "all rows at once"

    def masses(self) -> tuple[np.ndarray, float]:
        """(p_0, p_1, ..., the atom), not yet private to the last digit."""
        return np.maximum(self.primal[: self.size], 0.0) * self.scale, max(float(self.primal[self.size]), 0.0)

    def multipliers(self) -> list[Multiplier]:
        """The dual: one multiplier for each shift and pair, constant beyond the masses (0 of the relaxation)."""
        out = []
        for e, d, s, i, first in self.blocks:
            dual = np.maximum(-self.dual[first : first + i.size + 1], 0.0)
            weight = float(dual[-1]) / float(d)
            if weight <= 0:
                continue
            dense = np.zeros(int(i[-1]) + 1 - int(i[0]))
            dense[i - i[0]] = np.minimum(dual[:-1] / self.scale[distance(i, self.bins)], weight)
            dense[dense < 1e-13 * weight] = 0.0
            out.append(Multiplier(s, weight, int(i[0]), tuple(dense.tolist()), 0.0 if self._free(e) else weight, e))
        return out

"""The optimal additive noise under a whole privacy profile: several pairs (eps, delta) at once, or Gaussian DP.

**The program.** Noise with masses p_i on a lattice h = Delta/n is private if for each shift s = 1..n the power curve of (p, p
shifted by s) lies under the notion's curve F: P(S) <= F(P(S + s)) for every set S of lattice points. F is concave (a polygon for
pairs, Phi(Phi^-1(.) + mu) for mu-GDP), so that this is P(S) <= e^eps P(S + s) + delta(eps) for all S, s and eps: a linear
program with very many rows. In the tail probabilities T_k = P(X >= k) as variables, a set that is a union of few intervals makes
a row with few entries; half-lines are the most frequent ones.

**Rows as needed.** Given p, the sets that break F most are level sets of the likelihood ratio, found by sorting; each is cut off
by the tangent of F there. The sandwich between the lattice and the line, the certificate and the mechanism are those of
`optdp.design.additive.program`: the rows' duals are its multipliers, one for each set.

**A spike.** At a large mu half of the mass is within a tiny part of the sensitivity. There noise is on a lattice many times as
fine, with masses that are equal on cells which grow with the distance from 0: few variables; between neighbouring ends of cells
the two masses that a shift compares are constant, and distances between ends are the only shifts that matter. The bound is
that of `optdp.design.additive.graded`.

**The Gaussian** itself is near the optimum at a small mu, nearer than a lattice of a few points; it is what comes back where it
is better than the noise found (`optdp.mechanisms.gaussian`). Half-lines alone prove it nearly optimal for x^2 and mu <= 1, and
for |x| at a very small mu (`optdp.certificates.half_lines`).

**Tails.** Gaussian DP needs noise without end. Beyond the last variables masses fall by a constant factor each sensitivity, the
largest likelihood ratio that F allows at the power of `RARE`: an inner approximation of F, a chord from 0.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from optdp.certificates.additive import AdditiveCertificate, Multiplier
from optdp.certificates.base import Refusal
from optdp.certificates.half_lines import HalfLinesCertificate
from optdp.design.additive import approximate, lattice, rounded
from optdp.design.additive.approximate import MAX_POINTS, private_finite
from optdp.design.additive.graded import DULL, Mesh, Relaxation, broken_sets, magnified, peaks, spaced
from optdp.design.additive.lattice import Bracket, LatticeTask, as_weights, cut_off, pairs_of, private_geometric
from optdp.design.additive.pairs import LATE, MOST_ROWS, WrittenOut, by_one, from_single, under_curve
from optdp.design.registry import Run, register
from optdp.exact import require, work
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.mechanisms.baselines.noise import truncated_radius
from optdp.mechanisms.gaussian import LatticeGaussian
from optdp.mechanisms.rounded import RoundedGaussian
from optdp.problem.domains import Integers, Line
from optdp.problem.objectives import WorstCase
from optdp.problem.privacy import GDP, ApproxDP, Curve, Profile
from optdp.problem.problem import Problem
from optdp.solution import Program, Solution
from optdp.solvers.lp import Highs, LinearProgram, LinearSolver, SolverFailure, hats

#: Levels below this are allowed a constant likelihood ratio, that of the curve there; `_rare` where mu is large.
RARE = 1e-6
#: Rows that are added in a round, at most, and for one shift; rounds.
MOST, EACH, ROUNDS = 1500, 6, 300
#: Cuts that have cost nothing for more rounds than this may be dropped.
IDLE = 4
#: By what share a bound must be above what it is compared with, to be so when it is proven.
DECIDED = 1e-5
#: How far from private noise to the relaxation's optimum cuts are looked for.
STEP = 0.5
#: What counts as breaking the curve; the share of the parameters that noise is for to start from,
#: and the share of the least delta that such noise is cut off for.
BROKEN, CORE, SPARED = 1e-8, 0.97, 0.4
#: The mu from which meshes are sooner fine enough than lattices.
STEEP = 2.5
#: Cells that shrink towards 0 are used where the one at 0 costs more than this share by its width.
SPIKE = 0.03
#: Meshes of such cells for the noise and for the bound: cells far from 0 over mu, and how fast they grow; at most FINE of the
#: smallest in one of the largest, the fewer where nobody could check more. Within a distance that costs less than the share CHEAP
#: nodes are fewer.
MESHES: tuple[tuple[int, float, Mesh], ...] = (
    (4, 0.5, Mesh(0.5)), (4, 0.25, Mesh(0.25)), (6, 0.125, Mesh(0.125)), (6, 0.125, Mesh(0.125, 2, narrow=True)),
)  # fmt: skip
FINE, LOW, BOUND, CHEAP = (4096, 256), (64, 256), 4, 0.03
#: By how much the curve is drawn in for such noise, and how much dearer noise with room to spare, mixed in, may make it where
#: rare masses, raised to what the tail's ratio asks for, cost more; the share of the usual limit that checking it may take.
SLACK, RAISED, PROOF = 3e-6, (1e-3, 1e-2), 0.85
#: The slope of the cost of noise beyond where a loss is constant, as a share of its probability there.
EVEN = 1e-4
#: Lattices of more points are not tried for a loss that jumps; how many are for where it does.
JUMPY, LATTICES = 16, 4
#: The share of the time for noise where the bound is another program; shares of noise with room to spare that are mixed in where
#: what is not solved breaks the curve by its rounding.
NOISE, MIXED = 0.6, (1e-6, 1e-4, 0.01, 0.03, 0.1, 0.3, 1.0)
#: The largest sensitivity at which integers are points of a lattice: noise is rounded to more of them.
CROWDED = 48
#: More pairs of a shift and a point are not looked at where noise is known already.
MOST_PAIRS = 2_000_000
#: How near a lattice's objectives come, as a share of rtol; the tolerance of noise that is for another loss.
SOLVED, BORROWED = 0.05, 0.01


def _rare(mu: float) -> float:
    """A level so low that the Gaussian's power there is small too, or that what lies within it costs little: the plateau of the
    optimum for |x| holds about b = (2 ndtr(-mu/sqrt(2)))^(1/2) and costs as much; a level x takes x/b of the sensitivity.
    """
    from scipy.special import ndtr

    return float(min(RARE, max(1e-9, ndtr(-1.2 - mu)), 4e-3 * ndtr(-mu / math.sqrt(2))))


class _Gaussian:
    """The largest power that is allowed at each level, in floats, drawn in by a share `slack` for what is rounded later: by how
    much a power exceeds it, relatively, and (eps, delta) of its tangent at a level. `ratio`: the largest likelihood ratio that is
    allowed at levels below `rare`; inf: outcomes of one neighbour alone are allowed.
    """

    def __init__(self, mu: float, slack: float) -> None:
        from scipy.special import ndtr, ndtri

        self.mu, self.phi, self.quantile = mu * (1 - slack), ndtr, ndtri
        self.rare = _rare(mu)
        self.ratio = float(ndtr(ndtri(self.rare) + self.mu)) / self.rare

    def excess(self, power: np.ndarray, level: np.ndarray) -> np.ndarray:
        rare, level = level < self.rare, np.maximum(level, 1e-300)
        with np.errstate(divide="ignore", invalid="ignore"):
            smooth = (self.quantile(np.minimum(power, 1.0)) - self.quantile(level)) / self.mu - 1
        return np.nan_to_num(
            np.where(rare, power / (self.ratio * level) - 1, smooth), nan=-1.0, posinf=1e9, neginf=-1.0
        )

    def tangent(self, level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        rare = level < self.rare
        at = self.quantile(np.clip(level, self.rare, 1 - self.rare))
        eps = np.where(rare, math.log(self.ratio), np.maximum(-self.mu * at - self.mu**2 / 2, 0.0))
        far = eps / self.mu
        delta = self.phi(self.mu / 2 - far) - np.exp(eps) * self.phi(-self.mu / 2 - far)
        return eps, np.where(rare, 0.0, np.maximum(delta, 0.0))


class _Polygon:
    """The same of pairs (eps, delta)."""

    def __init__(self, pairs: Sequence[tuple[Any, Any]], slack: float) -> None:
        eps, delta = (np.array([float(x) for x in column]) for column in zip(*pairs, strict=True))
        # The largest eps last: where a delta is 0, its ratio holds everywhere.
        self.eps, self.delta = np.where(delta > 0, eps, eps * (1 - slack)), delta * (1 - slack)
        self.rare = min(RARE, 1e-6 * float(delta[delta > 0].min(initial=1.0)))
        self.ratio = math.exp(self.eps[delta == 0].min()) if (delta == 0).any() else math.inf

    def excess(self, power: np.ndarray, level: np.ndarray) -> np.ndarray:
        allowed = np.exp(self.eps) * level[..., None] + self.delta
        over = (power[..., None] - allowed) / np.where(self.delta > 0, self.delta, np.maximum(allowed, 1e-300))
        return over.max(axis=-1)

    def tangent(self, level: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        best = (np.exp(self.eps) * level[..., None] + self.delta).argmin(axis=-1)
        return self.eps[best], self.delta[best]


@dataclass(frozen=True)
class Cut:
    """P(S) - e^eps P(S + shift) <= delta for a union S of intervals: `ends` are where it begins, ends, begins, ..."""

    ends: tuple[int, ...]
    shift: int
    eps: float
    delta: float

    def finer(self, times: float) -> Cut:
        """About the same set on a lattice so many times as fine: what begins at k has all mass beyond k - 1/2."""
        ends = tuple(round(times * (e - 0.5) + 0.5) for e in self.ends)
        return replace(self, ends=ends, shift=round(times * self.shift))

    @property
    def key(self) -> tuple[tuple[int, ...], int, int]:
        """Cuts with the same key are hardly different."""
        return self.ends, self.shift, round(1e7 * self.eps)


class TailProgram:
    """The lattice program in tail probabilities, as a live linear program that grows by cuts.

    **Arguments:** `curve`; `n`: points per sensitivity; `costs`: c_0, c_1, ..., as far as they are known; `size`: T_1..T_size are
    variables, the last n continued geometrically if the curve has a largest `ratio`; `atom`: whether a mass at 0 may stay there;
    `nodes`: only these T_k are variables (1 and `size` among them), and masses are equal in between; `free`: nothing is asked of
    what lies beyond `size`: a relaxation, for costs that are constant there; `even`: costs alone do not make the tail light;
    `bins`: k is the cell between k and k + 1 points, so that T_(-k) = 1 - T_k, where else T_(1-k) = 1 - q - T_k.
    """

    def __init__(
        self, curve: _Gaussian | _Polygon, n: int, costs: np.ndarray, size: int, reference: np.ndarray, *, atom: bool,
        solver: LinearSolver, nodes: np.ndarray | None = None, free: bool = False, even: bool = False, bins: bool = False,
    ) -> None:  # fmt: skip
        #: T_k and T_(mirror - k) are probabilities of sets that are images of each other's complements.
        self.free, self.bins, self.mirror = free, bins, 1 - bins
        self.curve, self.n, self.size, self.costs, self.atom = curve, n, size, costs, atom
        self.nodes = at = np.arange(1, size + 1) if nodes is None else nodes
        self.join = None if nodes is None else hats(np.arange(1, size + 1), nodes)
        self.fall = 0.0 if free else 1 / curve.ratio
        #: Levels above this are looked at: far out, where the curve is a chord, ordinary tails are below it.
        self.known = (0.9 if even else 3.0) * curve.rare if self.fall else 0.0
        #: Where the last half-line begins that is looked at.
        self.last = size - n if self.fall or free else size
        rises = 2 * np.diff(costs)
        self.constant = float(costs[0])
        price = rises[:size].copy()
        if self.fall:
            periods = (rises.size - size) // n
            later = rises[size : size + periods * n].reshape(periods, n)
            price[-n:] += self.fall ** np.arange(1, periods + 1) @ later
        least = 1.0 if free else max(1e-3 * curve.rare, 1e-10)  # much may lie far out where nothing is asked of it
        self.scale = np.append(np.maximum(reference[at - 1], least), 1.0)
        # A cost of p_0 = 1 - q - 2 T_1 that vanishes in the bracket makes the atom the better of two equals.
        tie = 1e-7 * float(costs[min(n, size)]) if atom else 0.0
        price[0] -= 2 * tie
        if self.join is not None:
            price = self.join.T @ price
        self.magnify = magnified(costs, n)
        cost = np.append(price, -tie) * self.scale * self.magnify
        self.cuts: list[Cut] = []
        self.rounds = 0
        self.deadline, self.target = math.inf, math.nan
        # p_k >= 0, and the atom's column is fixed at 0 where it is not allowed.
        follow = np.append(at[1:], size + 1)
        shape = [((1, 2.0),), *(((j, 1.0), (k, -1.0)) for k, j in zip(at.tolist(), follow.tolist(), strict=True))]
        # Within the tail's period masses must not rise: all before would be raised to the last.
        if self.fall and (even or nodes is not None):
            ends = np.append(at[at >= size - n], size + 1)
            density = (1 / np.diff(ends)).tolist()
            places = zip(pairwise(density), ends.tolist(), ends[1:].tolist(), ends[2:].tolist(), strict=False)
            shape += [((j, -u), (k, u + v), (m, -v)) for (u, v), j, k, m in places]
        self.base = len(shape)
        rows, _, high = self._rows(
            [(terms, 1.0 if k == 0 else 0.0) for k, terms in enumerate(shape)], stuck=[1.0] + [0.0] * (self.base - 1)
        )
        upper = np.append(np.full(at.size, np.inf), np.inf if atom else 0.0)
        if self.fall and even:  # the tail's ratio is allowed at levels as low as that alone
            upper[:-1][at > size - n] = curve.rare * curve.ratio / 2 / self.scale[:-1][at > size - n]
        self.solver = solver
        self.plain = LinearProgram(cost, rows, np.full(self.base, -np.inf), high, upper=upper, name="additive")
        self.session = solver.session(replace(self.plain))
        if nodes is None:
            self.compare([np.arange(1, n + 1)])
        self.norms, self.age = np.zeros(0), np.zeros(0, dtype=int)
        self.seen: set[tuple[tuple[int, ...], int, int]] = set()
        self.values, self.dual = np.zeros(at.size + 1), np.zeros(self.base)
        self.objective = math.nan

    def _rows(
        self, rows: Sequence[tuple[Sequence[tuple[int, float]], float]], stuck: Sequence[float]
    ) -> tuple[Any, np.ndarray, np.ndarray]:
        """(sparse matrix, norms, limits) of sum_j v_j T_(k_j) + stuck q <= limit, with what mirror images say and the tail."""
        from scipy.sparse import csr_matrix

        count = [len(terms) for terms, _ in rows]
        where = np.repeat(np.arange(len(rows)), count)
        index = np.array([k for terms, _ in rows for k, _ in terms])
        value = np.array([v for terms, _ in rows for _, v in terms])
        limit, atom = np.array([x for _, x in rows]), np.array(stuck, dtype=float)
        if self.bins:  # T_0 = 1/2
            np.add.at(limit, where[index == 0], -value[index == 0] / 2)
            where, index, value = (x[index != 0] for x in (where, index, value))
        left = index <= 0
        np.add.at(limit, where[left], -value[left])
        np.add.at(atom, where[left], -value[left])
        index, value = np.where(left, self.mirror - index, index), np.where(left, -value, value)
        beyond = np.maximum(-((self.size - index) // self.n), 0)
        value = np.where(beyond > 0, value * self.fall ** beyond.astype(float), value)
        index = index - beyond * self.n
        from scipy.sparse import diags, hstack

        matrix = csr_matrix((value, (where, index - 1)), shape=(len(rows), self.size))
        if self.join is not None:
            matrix = matrix @ self.join
        matrix = (matrix @ diags(self.scale[:-1])).tocsr()
        norm = np.maximum(np.abs(matrix).max(axis=1).toarray().ravel(), 1e-300)
        return hstack([diags(1 / norm) @ matrix, csr_matrix((atom / norm)[:, None])]).tocsr(), norm, limit / norm

    def add(self, cuts: Sequence[Cut]) -> None:
        """Add cuts as rows."""
        if not cuts:
            return
        rows = []
        for cut in cuts:
            ratio = math.exp(cut.eps)
            signs = [(-1.0) ** j for j in range(len(cut.ends))]
            terms = [(e, v) for e, v in zip(cut.ends, signs, strict=True)]
            terms += [(e + cut.shift, -ratio * v) for e, v in zip(cut.ends, signs, strict=True)]
            rows.append((terms, cut.delta))
        matrix, norm, limit = self._rows(rows, [float(self.atom)] * len(cuts))
        self.session.add_rows(matrix, np.full(len(cuts), -np.inf), limit)
        self.cuts += cuts
        self.seen |= {cut.key for cut in cuts}
        self.norms, self.age = np.append(self.norms, norm), np.append(self.age, np.zeros(len(cuts), dtype=int))

    def tidy(self) -> None:
        """Drop cuts that have not mattered for some rounds, once they are many: they are found again if they do."""
        idle = self.dual[self.base :] * self.magnify > -1e-8
        self.age = np.where(idle, self.age + 1, 0)
        keep = self.age <= IDLE
        if keep.sum() > len(self.cuts) / 3 or len(self.cuts) < MOST:
            return
        kept, ages = [cut for cut, k in zip(self.cuts, keep, strict=True) if k], self.age[keep]
        self.session, self.cuts, self.seen = self.solver.session(replace(self.plain)), [], set()
        self.norms, self.age = np.zeros(0), np.zeros(0, dtype=int)
        self.add(kept)
        self.age = ages

    def line(self, values: np.ndarray) -> tuple[np.ndarray, int, float]:
        """(T_k for k = mirror - m..m, m, atom), the tail written out for two more periods."""
        tails, q = values[:-1] if self.join is None else self.join @ values[:-1], float(values[-1])
        far = [tails, *(tails[-self.n :] * self.fall**j for j in (1, 2))]
        right = np.concatenate(far) if self.fall else np.append(tails, np.zeros(2 * self.n))
        return np.concatenate([(1 - q - right)[::-1], np.full(int(self.bins), 0.5), right]), right.size, q

    def broken(self, values: np.ndarray, tolerance: float) -> list[Cut]:
        """Cuts for the sets with which these tail probabilities break the curve by more than `tolerance`, the worst first."""
        line, m, q = self.line(values)
        found: list[tuple[float, Cut]] = []
        for shifts, at in self.groups:
            here, there = line[at + m - self.mirror], line[at + shifts + m - self.mirror]
            half = (at >= -(shifts // 2) - 1) & (at <= self.last)
            excess = np.full(half.shape, -1.0)
            excess[half] = self.curve.excess(here[half] + q, there[half])
            found += [
                (over, Cut((int(at[k, i]),), int(shifts[k, 0]), eps, delta))
                for k, i, over, eps, delta in peaks(self.curve, excess, there, tolerance, EACH)
            ]
            here, there = np.maximum(-np.diff(here), 0.0), np.maximum(-np.diff(there), 0.0)
            ignored = here + there <= 1e-3 * self.curve.rare / self.n * np.diff(at)
            if self.free:  # T_size is all that lies beyond
                ignored |= ((at < self.mirror - self.size) | (at + shifts >= self.size))[:, :-1]
            for k, chosen, over, eps, delta in broken_sets(
                self.curve, here, there, ignored, self.known, tolerance, EACH, q
            ):
                ends = np.flatnonzero(np.diff(chosen.astype(np.int8), prepend=0, append=0))
                found.append((over, Cut(tuple(at[k, ends].tolist()), int(shifts[k, 0]), eps, delta)))
            if any(cut.key not in self.seen for _, cut in found):
                break
        found.sort(key=lambda item: -item[0])
        return [cut for _, cut in found[:MOST]]

    def compare(self, groups: Sequence[np.ndarray]) -> None:
        """Look for sets at these shifts, at those of later groups if the earlier ones give nothing.

        Masses are equal between nodes: pairs of masses are, between the nodes and what is shifted to them.
        """
        last = self.nodes[self.nodes > self.size - self.n]
        right = np.concatenate([self.nodes, last + self.n, last + 2 * self.n])
        ends = np.concatenate([self.mirror - right[::-1], np.zeros(int(self.bins), dtype=int), right])
        self.groups: list[tuple[np.ndarray, np.ndarray]] = []
        for shifts in groups:
            places = [np.union1d(ends, ends - s) for s in shifts]
            places = [at[(at >= ends[0]) & (at <= ends[-1] - s)] for at, s in zip(places, shifts, strict=True)]
            table = np.full((len(places), max(at.size for at in places)), ends[-1])
            for row, at, s in zip(table, places, shifts, strict=True):
                row[: at.size], row[at.size :] = at, ends[-1] - s
            self.groups.append((shifts[:, None], table))

    def compare_ends(self, nodes: np.ndarray, step: int) -> None:
        """Look for sets at the distances between ends of cells, first at multiples of `step` and at some others."""
        ends = np.concatenate([0.5 - nodes, nodes - 0.5])
        apart = np.unique(np.abs(ends[:, None] - ends)).astype(int)
        apart = apart[(apart >= 1) & (apart <= self.n)]
        few = (apart % step == 0) | (np.arange(apart.size) % 8 == 0)
        self.compare([part for part in (apart[few], apart[~few]) if part.size])

    def solve(self, inner: np.ndarray, tolerance: float, rtol: float) -> bool:
        """Narrow the objective down between relaxations and private noise; False if time ran out or the solver failed.

        **Arguments:** `inner`: tail probabilities (and the atom) that keep the curve: cuts are looked for halfway between the
        relaxation's optimum and them, which are deeper there; what breaks nothing is the next `inner`. `tolerance`: what counts
        as breaking; `rtol`: how near both objectives must come, relatively, if they are not both above `target`.
        """
        self.inner = inner
        for _ in range(ROUNDS):
            found = self.session.solve(time_limit=max(self.deadline - time.perf_counter(), 0.1))
            self.rounds += 1
            if not found.usable:
                return False
            self.values = np.maximum(found.x, 0.0) * self.scale
            self.dual, self.objective = found.row_dual / self.magnify, found.objective / self.magnify
            fresh: list[Cut] = []
            for share in (STEP, STEP, STEP, 1.0):
                tried = share * self.values + (1 - share) * self.inner
                # What is there already holds up to the solver's own tolerance.
                fresh = [cut for cut in self.broken(tried, tolerance) if cut.key not in self.seen]
                if fresh:
                    break
                self.inner = tried
            value, lower = self.cost(self.inner), self.objective + self.constant
            if not fresh or value - lower <= rtol * value:
                return True
            if lower > self.target * (1 + DECIDED):
                return True
            if time.perf_counter() > self.deadline:
                return False
            self.tidy()
            self.add(fresh)
        return False

    def cost(self, values: np.ndarray) -> float:
        """Of noise with these tail probabilities."""
        return float(self.plain.cost / self.scale / self.magnify @ values) + self.constant

    @property
    def model(self) -> LinearProgram:
        return self.session.program

    @property
    def told(self) -> tuple[str, str, str]:
        """Variables, rows, and how it was solved, in words."""
        where = f"on a lattice of {self.n} points per sensitivity"
        return (
            f"{self.size} tail probabilities {where}",
            f"{len(self.cuts)} cuts",
            f"{self.rounds} rounds on the last lattice",
        )

    def masses(self) -> tuple[np.ndarray, float]:
        """(p_0, p_1, ..., atom) of the private noise."""
        line, m, q = self.line(self.inner)
        start = m - self.mirror  # of T_0
        masses = np.maximum(line[start : start + self.size + 1] - line[start + 1 : start + self.size + 2], 0.0)
        if self.join is not None:  # exactly equal ones are merged when the noise is tested
            masses[1:] = np.repeat(masses[self.nodes], np.diff(np.append(self.nodes, self.size + 1)))
        return masses, q

    def spread(self) -> np.ndarray:
        """The private noise on a lattice twice as fine: its masses spread over the cells, then smoothed to the finer points."""
        line, m, q = self.line(self.inner)
        masses = np.zeros(2 * (line.size - 1) + 1)
        masses[1::2] = np.maximum(line[:-1] - line[1:], 0.0)  # the middle one is that of 0
        fine = np.convolve(masses, (0.25, 0.5, 0.25))[1:-1]
        middle = 2 * m - 1  # of `fine`: its index 1 + 2 (m - 1)
        tails = fine[::-1].cumsum()[::-1]
        return np.append(tails[middle + 1 : middle + 1 + 2 * self.size], q)

    def active(self) -> list[tuple[float, Cut]]:
        """(multiplier, cut) of the rows that hold with equality and cost something."""
        count = min(self.dual.size - self.base, len(self.cuts))
        dual = np.maximum(-self.dual[self.base : self.base + count], 0.0) / self.norms[:count]
        most = float(dual.max(initial=0.0))
        return [(float(v), cut) for v, cut in zip(dual, self.cuts, strict=False) if v > 1e-13 * most]


def _multipliers(program: TailProgram, exact: dict[float, Any]) -> list[Multiplier]:
    """The dual as multipliers: one for each shift and eps, where sets add up; and a geometric tail's own."""
    groups: dict[tuple[int, float], list[tuple[float, Cut]]] = {}
    for value, cut in program.active():
        groups.setdefault((cut.shift, cut.eps), []).append((value, cut))
    out = []
    for (shift, eps), members in groups.items():
        first = min(cut.ends[0] for _, cut in members)
        steps = np.zeros(max(cut.ends[-1] for _, cut in members) - first + 1)
        for value, cut in members:
            for j, end in enumerate(cut.ends):
                steps[end - first] += value if j % 2 == 0 else -value
        values = np.maximum(np.cumsum(steps), 0.0)
        weight = math.nextafter(max(sum(value for value, _ in members), float(values.max())), math.inf)
        rest = float(values[-1]) if any(len(cut.ends) % 2 for _, cut in members) else 0.0
        out.append(Multiplier(shift, weight, first, tuple(values[:-1].tolist()), rest, exact.get(eps, eps)))
    if program.fall:
        out = _shortened(program, out)
        out += _tail_multiplier(program, out, exact)
    return out


def _charged(
    program: TailProgram, end: int, multipliers: list[Multiplier], inner: int
) -> tuple[np.ndarray, list[np.ndarray]]:  # fmt: skip
    """(what multipliers leave of the costs of `end` points, less the least of it per point up to `inner`; they written out)."""
    weights = np.where(np.arange(end) > 0, 2.0, 1.0 + program.bins)
    slack, written = weights * program.costs[:end], []
    for m in multipliers:
        mu = np.concatenate([m.values, np.full(max(end + m.shift - m.end, 0), m.rest)])
        place = np.arange(m.first, m.first + mu.size)
        for to, factor in ((place, 1.0), (place + m.shift, -math.exp(float(m.eps)))):  # type: ignore[arg-type]
            at = lattice.distance(to, program.bins)
            np.add.at(slack, at[at < end], factor * mu[at < end])
        written.append(mu)
    return slack - float((slack / weights)[:inner].min()) * weights, written


def _shortened(program: TailProgram, multipliers: list[Multiplier]) -> list[Multiplier]:
    """Without what shifts beyond the variables, where it is not needed: far out the costs alone pay for a point.

    The program has no mass of its own there but the tail's, so that its dual may charge these points more than they can pay.
    """
    n, size = program.n, program.size
    slack, written = _charged(program, size + n, multipliers, size - n)
    rows = [(m, mu, math.exp(float(m.eps))) for m, mu in zip(multipliers, written, strict=True)]  # type: ignore[arg-type]
    for target in range(size + n - 1, size, -1):
        for m, mu, ratio in sorted(rows, key=lambda row: -row[2]):
            source = target - m.shift
            j = source - m.first
            if slack[target] >= 0:
                break
            if m.rest or not 0 <= j < mu.size or source <= 0 or slack[source] <= 0:
                continue
            less = min(float(mu[j]), float(slack[source]), -float(slack[target]) / ratio)
            mu[j] -= less
            slack[source] -= less
            slack[target] += ratio * less
    return [
        m if m.rest else replace(m, values=tuple(np.maximum(mu[: len(m.values)], 0.0).tolist())) for m, mu, _ in rows
    ]


def _tail_multiplier(program: TailProgram, multipliers: list[Multiplier], exact: dict[float, Any]) -> list[Multiplier]:
    """For shift n, at the tail's ratio: as much as the costs further out can pay for, from the far end inwards."""
    n, start, end = program.n, program.size - program.n, program.costs.size
    slack, _ = _charged(program, end, multipliers, start)
    ratio = 1 / program.fall
    most = max(0.0, float(slack[-1]) / (ratio - 1))
    if slack[start:].min() >= 0 or not most:
        return []
    tail = np.full(end + n, most)
    for high in range(end - n, start, -n):
        low = max(high - n, start)
        ahead = slice(low + n, high + n)
        tail[low:high] = np.clip((slack[ahead] + tail[ahead]) / ratio, 0.0, most)
    values = tail[start:end]
    eps = exact.get(math.log(ratio), math.log(ratio))
    if any(m.shift == n and m.eps == eps for m in multipliers):  # one for each place: a larger ratio is another one
        eps = math.nextafter(float(eps) * (1 + 1e-15), math.inf)
    return [Multiplier(n, float(values.max()), start, tuple(values.tolist()), most, eps)]


class Task(LatticeTask):
    """A problem in the numbers that the search works with."""

    def __init__(
        self, problem: Problem, deadline: float, solver: LinearSolver | None, target: float = math.nan
    ) -> None:
        super().__init__(problem)
        self.deadline, self.target, self.written, privacy = deadline, target, solver, self.privacy
        self.solver = solver or Highs(tolerance=1e-9, options=(("small_matrix_value", 1e-12),))
        #: For meshes: what it says is tested, and much sooner there.
        rough = ("small_matrix_value", 1e-12), ("presolve", "off")
        self.quick = solver or Highs(tolerance=1e-7, options=rough)
        #: For bounds on meshes: rows are scaled as they come, and scaled again some solves take a hundred times as long.
        self.scaled = solver or Highs(tolerance=1e-7, options=(*rough, ("simplex_scale_strategy", 0)))
        self.gaussian, self.pairs = isinstance(privacy, GDP), pairs_of(privacy)
        self.atoms = not self.gaussian and all(delta > 0 for _, delta in self.pairs) and not self.integers
        if self.gaussian:
            from scipy.special import ndtri

            self.radius = -float(ndtri(_rare(float(privacy.mu)))) / float(privacy.mu) + 1
        else:  # what the noise of `core` needs
            least = min(float(d) for _, d in self.pairs if d > 0) if any(d > 0 for _, d in self.pairs) else 1.0
            self.rate = lattice.falling(self.pairs)
            low = CORE * self.rate
            steep = min((float(e) for e, d in self.pairs if d == 0), default=0.0)
            cut = truncated_radius(low, SPARED * least) + 1
            self.radius = cut if not steep else min(cut, 40 / max(low, 1e-9)) + 12 / steep if least < 1 else 30 / steep
        self.radius += self.beyond
        fits = lattice.coarsest(self.jumps) if self.jumps and self.loss.steps and not self.integers else None
        #: Points per sensitivity of a lattice that has the value of the line; 0 where there is none of few points.
        self.fits = fits if fits and (fits <= JUMPY or self.whole(fits)) else 0

    def whole(self, n: int) -> bool:
        """Whether the program on a lattice of n points is written out."""
        few = 0 < len(self.pairs) * n * (self.radius + 2) * n < MOST_ROWS
        return few and self.beyond > 0 and all(delta > 0 for _, delta in self.pairs)

    def bins(self, n: int) -> bool:
        return n == self.fits and super().bins(n)

    def curve(self, slack: float) -> _Gaussian | _Polygon:
        """The notion's curve, drawn in."""
        return _Gaussian(float(self.privacy.mu), slack) if self.gaussian else _Polygon(self.pairs, slack)

    def reference(self, n: int, size: int) -> np.ndarray:
        """About what the tail probabilities are."""
        k = np.arange(1, size + 1) - 0.5
        if self.gaussian:
            from scipy.special import ndtr

            found: np.ndarray = ndtr(-float(self.privacy.mu) * k / n)
            return found
        eps = self.rate
        return np.maximum(np.exp(-eps * k / n) / 2, max(1e-9, 0.1 * min(float(d) for _, d in self.pairs)))

    def spent(self, found: Bracket, n: int) -> float:
        """What the cell at 0 costs by its width on a lattice of n points (Gaussian DP and a convex loss or a power; else 0)."""
        if not self.gaussian or self.integers or not (self.loss.convex or self.loss.exponent):
            return 0.0
        half = 0.5 * self.width / n
        return float(found.mechanism.masses[0] * self.loss.integral(half) / half)

    def smallest(self, found: Bracket, cells: int, rtol: float, most: int = FINE[0]) -> int:
        """So many of the smallest cells in one of `cells` per sensitivity, for what the width of the one at 0 costs."""
        rest, fine = found.value - self.spent(found, found.mechanism.n), 16
        while fine < most and self.spent(found, cells * fine) > rtol / 3.5 * rest:
            fine *= 2
        return fine

    def program(
        self, n: int, size: int, slack: float, nodes: np.ndarray | None = None, free: bool = False
    ) -> TailProgram:
        """The program on a lattice of n points per sensitivity, without cuts."""
        curve = self.curve(slack)
        periods = 2 if math.isinf(curve.ratio) else math.ceil(40 / math.log(curve.ratio)) + 2
        costs, reference = self.costs(n, size + periods * n), self.reference(n, size)
        if self.beyond and not free:  # noise may be anything there: let it be near
            costs = costs + EVEN * float(reference[min(math.ceil(self.beyond * n), size - 1)]) / n * np.arange(
                costs.size
            )
        bins = self.bins(n)
        return TailProgram(
            curve, n, costs, size, reference, atom=self.atoms and not bins, solver=self.solver if nodes is None else self.quick,
            nodes=nodes, free=free, even=self.gaussian and bool(self.beyond), bins=bins,
        )  # fmt: skip

    def start(self, program: TailProgram) -> list[Cut]:
        """Tangents at the half-lines' own levels under the reference, for shift n."""
        n, curve = program.n, program.curve
        starts = np.arange(-(n // 2), program.size - n)
        if isinstance(curve, _Polygon):
            pairs = zip(curve.eps, curve.delta, strict=True)
            return [Cut((int(k),), n, float(e), float(d)) for e, d in pairs for k in starts]
        tails = self.reference(n, program.size + 2 * n)
        levels = np.where(starts + n >= 1, tails[np.maximum(starts + n, 1) - 1], 1 - tails[np.maximum(-starts - n, 0)])
        eps, delta = curve.tangent(np.minimum(levels, 0.5))
        return [Cut((int(k),), n, float(e), float(d)) for k, e, d in zip(starts, eps, delta, strict=True)]

    def core(self, program: TailProgram) -> np.ndarray:
        """Tail probabilities of noise that keeps the notion with room to spare, and the atom 0."""
        n, k = program.n, np.arange(1, program.size + 1) - program.mirror / 2
        if self.gaussian:
            from scipy.special import ndtr

            tails: np.ndarray = ndtr(-CORE * float(self.privacy.mu) * k / n)
            rare, start = int(np.flatnonzero(tails > 1.1 * program.curve.rare)[-1]), program.size + program.bins
            line = np.concatenate([1 - tails[::-1], np.full(int(program.bins), 0.5), tails])
            fall = tails[rare] / line[start + rare - n]
            for i in range(rare + 1, program.size):
                tails[i] = line[start + i] = line[start + i - n] * fall
            return np.append(tails, 0.0)
        eps, least = CORE * self.rate, min((float(d) for _, d in self.pairs if d > 0), default=1.0)
        masses, place = np.zeros(program.size + 1), np.arange(program.size + 1 + n * bool(program.fall))
        if program.fall:  # slowly down to where the other pairs' deltas leave room, then as fast as the tail falls
            steep = -math.log(program.fall)
            far = min(truncated_radius(eps, SPARED * least), program.size / n - 1) if least < 1 else 0.0
            kept = np.exp(-min(eps, steep) * np.minimum(place / n, far) - steep * np.maximum(place / n - far, 0.0))
            masses = np.append(kept[: program.size + 1], kept[program.size + 1 :].sum() / (1 - program.fall))
        else:
            kept = cut_off(np.exp(-eps * place / n), max(1e-9, CORE / 2 * least), n, program.bins)
            masses[: kept.size] = kept
        masses /= 2 * masses.sum() - program.mirror * masses[0]
        return np.append(masses[::-1].cumsum()[::-1][1 : program.size + 1], 0.0)

    def known(self, noise: bool) -> Bracket:
        """What is known without a lattice: under Gaussian DP the bound of half-lines, and (`noise`) the Gaussian; integers it is
        rounded to where that is best, at sensitivity 1.
        """
        lower, mechanism, value = 0.0, None, math.inf
        proof: AdditiveCertificate | HalfLinesCertificate = AdditiveCertificate(1, "nodes", ())
        with contextlib.suppress(Refusal):
            lower, proof = HalfLinesCertificate().bound(self.problem).value, HalfLinesCertificate()
        if noise and self.gaussian and (not self.integers or self.width == 1):
            with contextlib.suppress(ValueError):  # floats or its lattice are too coarse
                line = LatticeGaussian(Line(), self.width, self.privacy.mu)
                mechanism = RoundedGaussian(Integers(), line) if self.integers else line
                value = mechanism.enclose(self.problem.objective)[1]
        return Bracket(mechanism, value, proof, min(lower, value))

    def mechanism(self, program: TailProgram) -> AdditiveMechanism:
        """The masses as exact noise, not yet tested."""
        p, atom = program.masses()
        domain: Any = self.problem.domain
        if program.fall:
            pure = ApproxDP(math.log(1 / program.fall), 0.0, self.width)
            return replace(private_geometric(pure, domain, program.n, p, program.bins), notion=self.privacy)
        total = atom + (1 + program.bins) * p[0] + 2 * p[1:].sum()
        used = np.trim_zeros(np.where(p > 1e-16, p, 0.0), "b")
        weights, (stuck,) = as_weights(used, total), as_weights(np.array([atom]), total)
        eps = self.pairs[0][0]
        return AdditiveMechanism(
            domain, self.width, program.n, tuple(weights), stuck, eps=eps, notion=self.privacy, bins=program.bins
        )


def _bracket(task: Task, n: int, coarse: TailProgram | None, share: float) -> Bracket | None:
    """Both sides on one lattice; None if no noise there was proven to keep the notion."""
    tolerance, slack, radius = BROKEN, 5 * BROKEN, task.radius
    cuts = [cut.finer(2) for _, cut in coarse.active()] if coarse else []
    for last in (False,) * 4 + (True,):
        size = 2 * coarse.size if coarse else math.ceil(radius * n) + n
        program, now = task.program(n, size, slack), time.perf_counter()
        program.deadline, program.target = now + (NOISE if task.beyond else 1.0) * (task.deadline - now), task.target
        program.add([*task.start(program), *cuts])
        solved = program.solve(coarse.spread() if coarse else task.core(program), tolerance, share)
        if coarse and not program.values.any():
            return None
        exact = {float(e): e for e, _ in task.pairs}
        polygon = program.curve if isinstance(program.curve, _Polygon) else None
        shrunk = dict(zip(polygon.eps.tolist(), (e for e, _ in task.pairs), strict=True)) if polygon else {}
        multipliers = _multipliers(program, exact | shrunk) if program.values.any() else []
        steep = sum(math.expm1(float(m.eps)) * m.rest for m in multipliers) / 2  # type: ignore[arg-type, misc]
        ends = not program.fall and not task.beyond and radius < 40 * task.radius + 40
        level = program.objective + sum(value * cut.delta for value, cut in program.active())  # that of the mass
        if ends and solved and program.costs[-1] < level + steep:
            # Too short a support: multipliers beyond it would not be feasible.
            radius, coarse = 1.3 * size / n + 0.5, None
            continue
        if task.beyond:
            relaxed = task.program(n, size, 0.0, free=True)
            relaxed.deadline, relaxed.target = task.deadline, task.target
            near = [cut for _, cut in program.active() if cut.ends[0] > -size and cut.ends[-1] + cut.shift < size]
            relaxed.add([*task.start(relaxed), *near])
            relaxed.solve(program.inner, tolerance, share)
            multipliers = _multipliers(relaxed, exact)
        certificate = AdditiveCertificate(n, task.rounding(n), tuple(multipliers))
        mechanism, inner = task.mechanism(program), program.inner
        kept = mechanism.admitted(task.privacy)
        parts = () if kept or (solved and not last) else MIXED
        for part in parts:
            if part < 1 and time.perf_counter() > task.deadline + LATE * (task.deadline - now):
                continue
            program.inner = (1 - part) * inner + part * task.core(program)
            mechanism = task.mechanism(program)
            if kept := mechanism.admitted(task.privacy):
                break
        if kept:
            value = mechanism.enclose_loss(task.loss, sent=True)[1]
            lower = min(certificate.bound(task.problem).value, value)
            return Bracket(mechanism, value, certificate, lower, program, solved)
        if not solved:
            return None
        slack, coarse, cuts = 10 * slack, None, [cut for _, cut in program.active()]
    return None


def _written_out(task: Task, n: int, share: float) -> Bracket | None:
    """Both sides on one lattice for a loss that is constant far out, by programs that have all rows."""
    size = math.ceil(task.radius * n) + n
    costs, bins = task.costs(n, size - 1), task.bins(n)
    made = []
    for short in (True, False):
        program = WrittenOut(
            task.pairs, n, costs, atom=task.atoms and not bins, bins=bins, short=short, solver=task.written
        )
        if not program.solve(task.deadline - time.perf_counter()):
            return None
        made.append((program, AdditiveCertificate(n, task.rounding(n), tuple(program.multipliers()))))
    (_, relaxed), (program, own) = made
    domain: Any = task.problem.domain
    try:
        mechanism = private_finite(task.privacy, domain, n, *program.masses(), bins)
    except ArithmeticError:
        return None
    value = mechanism.enclose_loss(task.loss, sent=True)[1]
    lower = min(own.bound(task.problem).value, value)
    best = Bracket(mechanism, value, own, lower, program).proven(relaxed, task.problem)
    # Interior points end short of the optimum where masses are as small as a delta is beside a large eps.
    return replace(best, solved=best.lower > (1 - share) * made[0][0].objective)


def _refined(
    task: Task, best: Bracket, first: Bracket, cells: int, fine: int, growth: float, inner: float, rtol: float
) -> tuple[Bracket, bool]:
    """Noise on a mesh that is fine near 0, where most of the mass is, and near the sensitivity; whether a finer one could do."""
    start, coarse = first.program, best.program
    n = cells * fine
    near = spaced(fine, growth, inner * n, 2 * growth)
    size = math.ceil(start.size / start.n * cells) * fine
    edge = [x for x in spaced(fine, 2 * growth) if x >= fine >> DULL]
    wide = [*range(n + n // 4, 2 * n, 2 * fine), *range(2 * n, size, 4 * fine)]
    flat = [*range((near[-1] // fine + 1) * fine, n + n // 4, fine), *wide, size - n, size]
    inside = [0, *near, *flat, *(n - x for x in edge), *(n + x for x in edge)]
    nodes = np.unique(inside) + 1  # T_k is the probability of what lies beyond k - 1/2
    program = task.program(n, size + 1, SLACK, nodes)
    program.deadline = (time.perf_counter() + task.deadline) / 2
    program.compare_ends(nodes[nodes <= 2 * n + fine], fine)
    r = n / coarse.n
    program.add([cut.finer(r) for _, cut in coarse.active()])
    # The old noise is a point of the new program where its cells are kept; else it is drawn out until it keeps the curve.
    line, m, _ = coarse.line(coarse.inner)
    for wider in (0.0, *(2.0**j for j in range(-14, 0))):
        places = (nodes - 0.5) / (r * (1 + wider)) + 0.5
        before = np.append(np.interp(places, np.arange(-m + 1, m + 1), line), 0.0)
        if not program.broken(before, BROKEN):
            break
    program.solve(before, BROKEN, rtol / 16)
    if time.perf_counter() > task.deadline:  # what is far from private takes long to be made so
        return best, False
    best, found = replace(best, program=program), program.inner
    spare = task.core(program)[np.append(nodes - 1, -1)]
    for dearer in (0.0, *RAISED):
        part = dearer * min(program.cost(found) / program.cost(spare), 1.0)
        program.inner = (1 - part) * found + part * spare
        mechanism = task.mechanism(program)
        value = mechanism.enclose_loss(task.loss, sent=True)[1]
        if value >= best.value:
            break
        try:
            with work.limited(PROOF * work.LIMIT):
                kept = mechanism.admitted(task.privacy)
        except work.Overwork:  # what nobody could check is of no use
            return best, False
        if kept:
            return replace(best, mechanism=mechanism, value=value), True
    return best, True


def _peaked(run: Run, task: Task, best: Bracket, rtol: float) -> Bracket:
    """Meshes that are finer and finer."""
    first, inner, noisy = best, 0.0, True
    relaxed: Relaxation | None = None
    mu, seen = float(task.privacy.mu), (0, 0.0)
    kernels = math.ceil(BOUND * mu)
    fine = min(max(task.smallest(first, kernels, rtol) // 8, LOW[0]), LOW[1])
    for factor, growth, mesh in MESHES:
        if noisy and seen != (factor, growth):
            cells, seen = math.ceil(factor * mu), (factor, growth)
            run.progress(f"noise on a mesh of {cells} cells per sensitivity, finer near 0", best.lower, best.value)
            for smallest in dict.fromkeys(task.smallest(first, cells, rtol, most) for most in FINE):
                best, noisy = _refined(task, best, first, cells, smallest, growth, inner, rtol)
                if noisy or best.mechanism is not first.mechanism or time.perf_counter() > task.deadline:
                    break
            if best.gap <= rtol or time.perf_counter() > task.deadline:
                break
        coarse = relaxed
        relaxed = Relaxation(task.curve(0.0), kernels, fine, mesh, inner, task.radius, task.costs, task.scaled)
        told = f"a bound on a mesh of {relaxed.nodes.size} points, {len(relaxed.kernels)} kernels of shifts"
        run.progress(told, best.lower, best.value)
        if coarse:
            relaxed.follow(coarse)
        certificate = relaxed.solve(_rounded(best.mechanism, relaxed.n, relaxed.end), rtol / 16, task.deadline)
        best = best.proven(certificate, task.problem)
        if best.gap <= rtol or time.perf_counter() > task.deadline:
            break
        inner = _cheap(best.mechanism, task.loss)
    return best


def _cheap(noise: AdditiveMechanism, loss: Any) -> float:
    """A distance, in sensitivities, within which the share CHEAP of the loss is."""
    at = np.arange(noise.masses.size) / noise.n
    spent = np.cumsum(noise.masses * loss(at * noise.sensitivity))
    return float(at[np.searchsorted(spent, CHEAP * spent[-1])])


def _rounded(noise: AdditiveMechanism, n: int, end: int) -> np.ndarray:
    """Probabilities of the distances 0, ..., end of the noise rounded to the nearest point of a lattice."""
    p = np.concatenate([noise.masses, np.zeros(max(math.ceil(end / n * noise.n) + noise.n - noise.masses.size, 1))])
    line = np.concatenate([[0.0], np.cumsum(np.concatenate([p[:0:-1], p]))])
    edges = (np.arange(line.size) - p.size + 0.5) / noise.n
    q = np.diff(np.interp((np.arange(-end, end + 2) - 0.5) / n, edges, line))
    found = q[end:] + np.append(0.0, q[:end][::-1])
    return found / found.sum()


def accepts(problem: Problem) -> str | None:
    """Additive noise on the line or the integers under Gaussian DP or several pairs (eps, delta)."""
    return lattice.refused(problem, GDP | Profile | Curve, "GDP, Profile or Curve")


def design(run: Run, *, n: int | None = None, gaussian: bool = True) -> Solution:
    """See `optdp.solve_additive`; `gaussian`: whether the Gaussian may come back."""
    rtol = require.real("rtol", run.rtol, low=1e-8, high=1.0)
    if n is not None:
        n = require.integer("n", n, low=1, high=10_000)
    problem = run.problem
    lattice.sized(problem)
    privacy: Any = problem.privacy
    if found := by_one(run, lambda part: approximate.design(part, n=n)):
        return found
    if isinstance(privacy, Curve):
        return under_curve(run, lambda part: design(part, n=n))
    if n is None and privacy.sensitivity > CROWDED and rounded.fits(problem):
        narrow = rounded.narrow(problem)
        part = replace(run, time_limit=(run.seconds + run.time_limit) / 2) if narrow else run
        found = rounded.solution(part, lambda part: design(part, gaussian=gaussian))
        if narrow and found.gap > rtol:
            with contextlib.suppress(ValueError):
                return rounded.beside(_on_lattices(run, rtol, n, gaussian), found)
        return found
    if n is None and rounded.fits(problem):  # lattices of integers cannot be as coarse as wide noise needs
        try:
            return _on_lattices(run, rtol, n, gaussian)
        except ValueError:
            with contextlib.suppress(ValueError):
                return rounded.solution(run, lambda part: design(part, gaussian=gaussian))
            raise
    return _on_lattices(run, rtol, n, gaussian)


def _on_lattices(run: Run, rtol: float, n: int | None, gaussian: bool) -> Solution:
    problem = run.problem
    privacy: Any = problem.privacy
    task = Task(problem, run.began + run.time_limit, run.solver, run.target)
    fixed = n is not None or task.integers
    points = n or (int(task.width) if task.integers else math.ceil(4 * float(privacy.mu)) if task.gaussian else 6)
    best: Bracket | None = None
    coarse: TailProgram | None = None
    known = task.known(gaussian and n is None)
    slow = points > approximate.LATTICE if task.integers else n is None and not task.loss.convex
    if slow and len(task.pairs) > 1 and any(delta > 0 for _, delta in task.pairs):
        known = from_single(run, approximate.design).better(known)
    whole = known
    for size in [] if known.gap <= rtol else [points] if fixed else _sizes(task, points):
        if size * (task.radius + 2) > MAX_POINTS or (known.mechanism and size**2 * (task.radius + 2) > MOST_PAIRS):
            break
        run.progress(f"{size} lattice points per sensitivity", *((best.lower, best.value) if best else ()))
        found = None
        with contextlib.suppress(OverflowError):  # costs far out, of high powers
            if task.whole(size):
                found = _written_out(task, size, SOLVED * rtol)
            if found is None or not found.solved:
                halved = isinstance(coarse, TailProgram) and 2 * coarse.n == size and not task.bins(size)
                cut = _bracket(task, size, coarse if halved else None, SOLVED * rtol)
                found = cut.better(found) if cut else found
        if found is None and not task.jumps:
            break
        if found is not None:
            meshed = task.gaussian and float(privacy.mu) >= STEEP
            peaked = task.spent(found, size) > max(SPIKE, rtol / 4) * found.value
            if meshed and best is None and not fixed and found.gap > rtol and peaked:
                best = _peaked(run, task, found, rtol)
                whole = best.better(known)
                break
            coarse, best = found.program, found.better(best)
            whole = best.better(known)
        if time.perf_counter() > task.deadline or whole.gap <= rtol or whole.lower > task.target:
            break
    if task.loss.exponent is None and not fixed and not whole.gap <= rtol and math.isnan(task.target):
        whole = _borrowed(run, gaussian, whole)
    if whole.mechanism is None or math.isinf(whole.value):
        raise ValueError(
            f"{problem.privacy.adjective} is not allowed: no noise was found within {MAX_POINTS} lattice points and the time "
            "limit; raise the privacy parameters, the time limit, or scale the data to a smaller sensitivity"
        )
    made = Program("none", "none", "closed form, no solver", run.seconds, run.rtol)
    if isinstance(whole.program, Program):
        made = whole.program
    elif best is not None:
        made = told(task, best.program, run)
    closed = isinstance(whole.mechanism, LatticeGaussian | RoundedGaussian)
    message = "the noise is the Gaussian's" if closed else whole.kind
    made = replace(made, message=message, stopped=run.seconds > run.time_limit)
    return Solution(problem, whole.value, whole.lower, whole.mechanism, whole.certificate, made)


def told(task: Task, program: Any, run: Run) -> Program:
    """What is kept of a lattice program."""
    variables, rows, rounds = program.told
    found_by = f"powers of tests at all shifts under the curve of {task.privacy.adjective}"
    return Program(
        variables, f"{found_by}: {rows}", f"{task.solver.name}, {rounds}", run.seconds, run.rtol, program.objective,
        build=_model, arguments=(program.model,),
    )  # fmt: skip


def _sizes(task: Task, points: int) -> Iterator[int]:
    """Points per sensitivity, one lattice after the other: about twice as many each time; for a loss that jumps also those at
    which it does so nearly at a lattice point (a step function: at the end of a cell). A lattice with cells that end at all
    steps is enough: beside it, where it has many points, one that takes less time.
    """
    if task.fits:
        yield from [lattice.aligned(2, task.jumps, task.loss.steps)] * (task.fits > 3)
        yield task.fits
        return
    if not task.jumps:
        while points < 2000:
            yield points
            points *= 2
        return
    off, tried = Fraction(task.loss.steps, 2), [lattice.aligned(points, task.jumps, task.loss.steps)]
    while tried[-1] < JUMPY:
        yield tried[-1]
        tried.append(lattice.aligned(2 * tried[-1], task.jumps, task.loss.steps))
    yield tried[-1]
    apart = {n: max((off - b * n) % 1 for b in task.jumps) / n for n in range(2, JUMPY + 1)}
    yield from [n for n in sorted(apart, key=apart.__getitem__) if n not in tried][:LATTICES]


def _borrowed(run: Run, gaussian: bool, best: Bracket) -> Bracket:
    """Noise that is good for steps moved in a little, or for powers, where the lattices of a loss that is none are too coarse."""
    near = lattice.moved_in(run.problem)
    powers = [replace(run.problem, objective=WorstCase(power)) for power in ("squared", "abs")]
    for other in powers if near is None else [near, *powers]:
        left = max(run.left(), LATE * run.time_limit if other is near or math.isinf(best.value) else 0.0)
        if left and best.gap > run.rtol:
            loss: Any = other.objective.loss
            progress = run.progress.part(f"noise for {loss}", best.lower, best.value)
            known = replace(run, problem=other, time_limit=left, began=time.perf_counter(), progress=progress)
            with contextlib.suppress(ValueError, SolverFailure):
                made = design(replace(known, rtol=max(run.rtol, BORROWED)), gaussian=gaussian)
                value = made.mechanism.enclose(run.problem.objective)[1]
                if value < best.value:
                    kind = f"noise for {loss}, which is better than what was found for this loss"
                    told = replace(made.program, rtol=run.rtol, objective=None, seconds=run.seconds)
                    lower = min(best.lower, value)
                    best = replace(best, mechanism=made.mechanism, value=value, lower=lower, program=told, kind=kind)
    return best


def _model(program: LinearProgram) -> LinearProgram:
    return program


register(
    "additive curve",
    ("GDP, Profile, Curve", "Line, Integers",
     "WorstCase(a power or piecewise polynomial; with delta > 0 everywhere also a convex function)",
     "Additive", "Unbiased"),
    accepts, design,
)  # fmt: skip

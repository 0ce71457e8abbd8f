"""The program of noise under a whole privacy profile, in its tail probabilities: rows are cut off as they are needed.

**The program.** Noise with masses p_i on a lattice h = Delta/n is private if for each shift s = 1..n the power curve of (p, p
shifted by s) lies under the notion's curve F: P(S) <= F(P(S + s)) for every set S of lattice points. F is concave (a polygon for
pairs, Phi(Phi^-1(.) + mu) for mu-GDP), so that this is P(S) <= e^eps P(S + s) + delta(eps) for all S, s and eps: a linear
program with very many rows. In the tail probabilities T_k = P(X >= k) as variables, a set that is a union of few intervals makes
a row with few entries; half-lines are the most frequent ones.

**Rows as needed.** Given p, the sets that break F most are level sets of the likelihood ratio, found by sorting; each is cut off
by the tangent of F there.

**Tails.** Gaussian DP needs noise without end. Beyond the last variables masses fall by a constant factor each sensitivity, the
largest likelihood ratio that F allows at the power of `RARE`: an inner approximation of F, a chord from 0.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from optdp.certificates.additive import Multiplier
from optdp.design.additive import lattice
from optdp.design.additive.graded import broken_sets, magnified, peaks
from optdp.exact.numbers import counted
from optdp.solvers.lp import LinearProgram, LinearSolver, hats

#: Levels below this are allowed a constant likelihood ratio, that of the curve there; `rare_level` where mu is large.
RARE = 1e-6
#: Rows that are added in a round, at most, and for one shift; rounds.
MOST, EACH, ROUNDS = 1500, 6, 300
#: Cuts that have cost nothing for more rounds than this may be dropped.
IDLE = 4
#: By what share a bound must be above what it is compared with, to be so when it is proven.
DECIDED = 1e-5
#: How far from private noise to the relaxation's optimum cuts are looked for.
STEP = 0.5


def rare_level(mu: float) -> float:
    """A level so low that the Gaussian's power there is small too, or that what lies within it costs little: the plateau of the
    optimum for |x| holds about b = (2 ndtr(-mu/sqrt(2)))^(1/2) and costs as much; a level x takes x/b of the sensitivity.
    """
    from scipy.special import ndtr

    return float(min(RARE, max(1e-9, ndtr(-1.2 - mu)), 4e-3 * ndtr(-mu / math.sqrt(2))))


class GaussianCurve:
    """The largest power that is allowed at each level, in floats, drawn in by a share `slack` for what is rounded later: by how
    much a power exceeds it, relatively, and (eps, delta) of its tangent at a level. `ratio`: the largest likelihood ratio that is
    allowed at levels below `rare`; inf: outcomes of one neighbour alone are allowed.
    """

    def __init__(self, mu: float, slack: float) -> None:
        from scipy.special import ndtr, ndtri

        self.mu, self.phi, self.quantile = mu * (1 - slack), ndtr, ndtri
        self.rare = rare_level(mu)
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


class PolygonCurve:
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
        self, curve: GaussianCurve | PolygonCurve, n: int, costs: np.ndarray, size: int, reference: np.ndarray, *, atom: bool,
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
            # What is shifted beyond what is looked at (of a relaxation: beyond T_size) is in a set as a whole, or not at all.
            last = np.argmax(at + shifts >= self.size, axis=1) if self.free else np.full(len(at), at.shape[1] - 1)
            whole = np.arange(at.shape[1]) == last[:, None]
            here, there = (np.where(whole, v, np.maximum(-np.diff(v, append=0.0), 0.0)) for v in (here, there))
            ignored = here + there <= 1e-3 * self.curve.rare / self.n * np.diff(at, append=at[:, -1:])
            ignored |= np.arange(at.shape[1]) > last[:, None]
            if self.free:
                ignored |= at < self.mirror - self.size
            for k, chosen, over, eps, delta in broken_sets(
                self.curve, here, there, ignored, self.known, tolerance, EACH, q
            ):
                ends = np.flatnonzero(np.diff(chosen.astype(np.int8), prepend=0, append=0))
                ends = ends[ends <= last[k]]
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
            counted(len(self.cuts), "cut"),
            f"{counted(self.rounds, 'round')} on the last lattice",
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


def multipliers_of(program: TailProgram, exact: dict[float, Any]) -> list[Multiplier]:
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
        out += _tail_multiplier(program, out, exact)
    return out


def _charged(program: TailProgram, end: int, multipliers: list[Multiplier], inner: int) -> np.ndarray:
    """What multipliers leave of the costs of `end` points, less the least of it per point up to `inner`."""
    weights = np.where(np.arange(end) > 0, 2.0, 1.0 + program.bins)
    slack = weights * program.costs[:end]
    for m in multipliers:
        mu = np.concatenate([m.values, np.full(max(end + m.shift - m.end, 0), m.rest)])
        place = np.arange(m.first, m.first + mu.size)
        for to, factor in ((place, 1.0), (place + m.shift, -math.exp(float(m.eps)))):  # type: ignore[arg-type]
            at = lattice.distance(to, program.bins)
            np.add.at(slack, at[at < end], factor * mu[at < end])
    return np.asarray(slack - float((slack / weights)[:inner].min()) * weights)


def _tail_multiplier(program: TailProgram, multipliers: list[Multiplier], exact: dict[float, Any]) -> list[Multiplier]:
    """For shift n, at the tail's ratio: as much as the costs further out can pay for, from the far end inwards."""
    n, start, end = program.n, program.size - program.n, program.costs.size
    slack = _charged(program, end, multipliers, start)
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

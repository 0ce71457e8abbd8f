"""The optimal additive noise under (eps, delta)-differential privacy (truncated-Laplacian paper).

**The program.** Over the laws of a noise X, minimise E L(X) subject to P(X in S) <= E P(X + d in S) + delta for all sets S and
all |d| <= Delta (E = e^eps): an infinite linear program with a hockey-stick divergence at every shift.

**On a lattice** h = Delta/n it is a finite one: masses p_a at distance a h (symmetry is without loss of generality), and
for s = 1..n slacks u_(s,i) >= p_|i| - E p_|i+s| with q + sum_i u_(s,i) <= delta. Its dual proves a lower bound for the continuum
(`optdp.certificates.additive`, steps 1 and 2); its solution, spread evenly over cells of width h, is a density that is
private at every real shift (`optdp.mechanisms.additive`). The two sides differ by the cost of that spreading (p_0 h/4 for
|x|, h^2/3 at most for x^2): O(h^2).

**The atom q** is a mass at exactly 0 that the density does not spread. On the lattice it changes nothing (merged into p_0 it
is still feasible, at the same cost); off the lattice it stays at 0 for free. That it costs q at every shift is exact: for
almost every d the atoms of X miss those of X + d. It is used for large delta only.

**Rows as needed.** Most slacks are zero: a pair (s, i) enters with its row when the current p has p_|i| > E p_|i+s| while the
budget of its shift is exceeded. Left-out pairs are a relaxation, so every round's dual proves a bound.

**The support is cut without loss.** With p = 0 beyond K, the multipliers beyond it can be constant, and the dual is feasible
for the infinite program as soon as c_(K+1) >= t + (E - 1) sum lam / 2, which is checked (and K enlarged otherwise).

**delta = 0** (and delta too small to matter): beyond K the masses are continued geometrically, p_(i+n) = p_i/E, which costs
nothing once L(Kh) >= t: the staircase. The dual is continued by the matching recursion until it no longer matters.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from optdp.certificates.additive import SCALE, AdditiveCertificate, Multiplier, geng_viswanath, lattice_costs
from optdp.certificates.staircase import StaircaseCertificate
from optdp.exact import enclosures, require
from optdp.mechanisms.additive import LIMB, AdditiveMechanism
from optdp.problem.domains import AdditiveLine
from optdp.problem.losses import CustomLoss, Loss, Power, as_loss
from optdp.problem.privacy import ApproxDP
from optdp.solution import Program, Solution, Status

#: Rows up to which HiGHS's simplex method (with warm starts) is used; interior points beyond.
SIMPLEX_ROWS = 1500
#: The structured method is used for supports up to this.
LARGEST = 30_000
#: Lattices with more points, or programs with more rows, are not tried.
MAX_POINTS = 60_000
MAX_ROWS = 120_000
#: Where it costs little (n^2 times the radius below CHEAP), refinement goes on to a gap of AIM times rtol.
AIM = 0.1
CHEAP = 10_000
#: A delta below this counts as 0 in the lattice program (not in what is promised and proven).
TINY = 1e-12
#: Weights of the mechanism are whole numbers that add up to about 2^BITS.
BITS = 120


class LatticeProgram:
    """The lattice program as a live HiGHS model that grows by pairs (s, i).

    **Arguments:** `eps`, `delta`; `n`: points per sensitivity; `costs`: c_0..c_K; `geometric`: the last n
    masses are continued geometrically (`costs` then reach far beyond, and K is `points`) and shift n has no slacks; `atom`:
    whether a mass at 0 may stay there. For delta = 0 there are no slacks at all.

    Columns and rows are scaled by a reference noise (Laplace down to delta), so that the solver's tolerances are relative.
    """

    def __init__(
        self, eps: float, delta: float, n: int, costs: np.ndarray, *, points: int | None = None, geometric: bool = False,
        atom: bool = False, method: str = "auto",
    ) -> None:  # fmt: skip
        import highspy

        self.eps, self.delta, self.n, self.geometric = eps, delta, n, geometric
        self.ratio = math.exp(eps)
        self.size = costs.size if points is None else points
        self.method = method
        index = np.arange(self.size)
        multiplicity = np.where(index == 0, 1.0, 2.0)
        price = costs[: self.size].copy()
        if geometric:  # the last n columns stand for whole tails, p_r (1 + b + b^2 + ...)
            b = math.exp(-eps)
            rest = costs[self.size - n :]
            periods = rest.size // n
            powers = b ** np.arange(periods)
            price[-n:] = powers @ rest[: periods * n].reshape(periods, n)
            multiplicity[-n:] *= 1 / -math.expm1(-eps)
            price[-n:] /= 1 / -math.expm1(-eps)
        decay = np.exp(-eps * index / n) * (-math.expm1(-max(eps, delta) / n))
        self.scale = np.maximum(decay, delta / n)
        self.multiplicity, self.price = multiplicity, price
        self.inf = highspy.kHighsInf
        self.highs = highspy.Highs()
        for option, value in (("output_flag", False), ("threads", 1), ("run_crossover", "off"),
                              ("primal_feasibility_tolerance", 1e-9), ("dual_feasibility_tolerance", 1e-9),
                              ("ipm_optimality_tolerance", 1e-9)):  # fmt: skip
            self.highs.setOptionValue(option, value)
        columns = self.size + 1  # the last one is the atom
        top = np.full(columns, self.inf)
        top[-1] = self.inf if atom else 0.0
        # A cost of p_0 that vanishes in the bracket, but makes the atom the better of two equals.
        tie = np.zeros(self.size)
        if atom:
            tie[0] = 1e-7 * float(costs[min(n, self.size - 1)])
        self.cost = (price * multiplicity + tie) * self.scale
        self.used = method
        # Far out, multipliers are divided by the small scale of their rows: ask the solver for more digits there.
        self.magnify = 2.0 ** (20 - math.frexp(float(self.cost.max()))[1]) if geometric else 1.0
        self.highs.addCols(columns, np.append(self.cost, 0.0) * self.magnify, np.zeros(columns), top, 0, [], [], [])
        self.highs.addRow(1.0, 1.0, columns, np.arange(columns, dtype=np.int32),
                          np.append(multiplicity * self.scale, 1.0))  # fmt: skip
        self.columns, self.rows = columns, 1
        self.budget: dict[int, int] = {}
        self.pairs: dict[int, np.ndarray] = {}
        self._shift_of_row: list[np.ndarray] = [np.zeros(1, dtype=np.int64)]
        self._index_of_row: list[np.ndarray] = [np.zeros(1, dtype=np.int64)]
        self.rounds = 0
        #: Primal and dual values of the last round that the solver finished.
        self.primal = np.zeros(0)
        self.dual = np.zeros(0)

    def _row_range(self) -> int:
        """Indices stay below this: with a geometric tail, rows within it would repeat for ever."""
        return self.size - self.n if self.geometric else self.size

    def has_slack(self, shift: Any) -> Any:
        """Which shifts may break their promise up to delta."""
        return np.asarray(shift < self.n) & (self.delta > 0) if self.geometric else np.asarray(shift > 0)

    def add(self, pairs: dict[int, np.ndarray]) -> int:
        """Add rows (and slacks) for the pairs (shift, indices) that are not there yet; returns how many."""
        fresh = {}
        for s, indices in pairs.items():
            wanted = np.asarray(indices, dtype=np.int64)
            wanted = wanted[(np.abs(wanted) < self._row_range()) & (np.abs(wanted) != np.abs(wanted + s))]
            old = self.pairs.get(s, np.zeros(0, dtype=np.int64))
            new = np.setdiff1d(wanted, old)
            if new.size:
                fresh[s] = new
                self.pairs[s] = np.union1d(old, new)
        if not fresh:
            return 0
        if self.delta > 0:
            for s in fresh:
                if s not in self.budget and self.has_slack(s):
                    self.highs.addRow(
                        -self.inf, 1.0, 1, np.array([self.size], dtype=np.int32), np.array([1 / self.delta])
                    )
                    self.budget[s] = self.rows
                    self._note(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))
        shift = np.concatenate([np.full(v.size, s) for s, v in fresh.items()])
        index = np.concatenate(list(fresh.values()))
        self._append(shift, index)
        return int(shift.size)

    def _note(self, shift: np.ndarray, index: np.ndarray) -> None:
        self._shift_of_row.append(shift)
        self._index_of_row.append(index)
        self.rows += shift.size

    def _append(self, shift: np.ndarray, index: np.ndarray) -> None:
        count = shift.size
        here, there = np.abs(index), np.abs(index + shift)
        weight = self.scale[here]
        within = there < self.size
        target = np.where(within, there, 0)
        if self.geometric:  # masses in the last n columns are those of the first period of the tail
            factor = np.where(within, 1.0, 0.0)
            beyond = ~within
            target = np.where(beyond, there - self.n, target)
            factor = np.where(beyond, 1 / self.ratio, factor)
            within = np.ones(count, dtype=bool)
        else:
            factor = np.ones(count)
        entries = np.stack(
            [np.ones(count), -self.ratio * factor * self.scale[target] / weight, -np.ones(count)], axis=1
        )
        columns = np.stack([here, target, self.columns + np.arange(count)], axis=1)
        slack = self.has_slack(shift)
        columns[slack, 2] = self.columns + np.arange(int(slack.sum()))
        keep = np.stack([np.ones(count, dtype=bool), within, slack], axis=1)
        more = int(slack.sum())
        if more:
            rows = np.array([self.budget[int(s)] for s in shift[slack]], dtype=np.int32)
            self.highs.addCols(more, np.zeros(more), np.zeros(more), np.full(more, self.inf), more,
                               np.arange(more, dtype=np.int32), rows, weight[slack] / self.delta)  # fmt: skip
            self.columns += more
        lengths = keep.sum(axis=1)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]]).astype(np.int32)
        self.highs.addRows(count, np.full(count, -self.inf), np.zeros(count), int(lengths.sum()), starts,
                           columns[keep].astype(np.int32), entries[keep])  # fmt: skip
        self._note(shift, index)

    def run(self, time_limit: float) -> bool:
        """Solve; True if the solver has an answer."""
        import highspy

        method = self.method
        if method == "auto":
            plain = self.geometric or self.size > LARGEST
            method = "simplex" if self.rows <= SIMPLEX_ROWS else "ipm" if plain else "structured"
        self.rounds += 1
        self.used = method
        if method == "structured" and not self.geometric and self._run_structured(time_limit):
            return True
        self.highs.setOptionValue("solver", "simplex" if method == "simplex" else "ipm")
        self.highs.setOptionValue("time_limit", self.highs.getRunTime() + max(time_limit, 0.1))
        self.highs.run()
        solution = self.highs.getSolution()
        # Interior points may end just short of the tolerance ("unknown"): what they found is checked and mended anyway.
        good = (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kUnknown)
        if self.highs.getModelStatus() not in good or not (solution.value_valid and solution.dual_valid):
            return False
        self.primal = np.array(solution.col_value)
        self.dual = np.array(solution.row_dual) / self.magnify
        return True

    def _run_structured(self, time_limit: float) -> bool:
        from scipy.sparse import csr_matrix

        from optdp.solvers import hockeystick

        shift, index = np.concatenate(self._shift_of_row), np.concatenate(self._index_of_row)
        pair = np.flatnonzero(shift > 0)
        here, there = np.abs(index[pair]), np.abs(index[pair] + shift[pair])
        within = there < self.size
        factor = -self.ratio * self.scale[np.where(within, there, 0)] / self.scale[here]
        row = np.arange(pair.size)
        a = csr_matrix(
            (np.concatenate([np.ones(pair.size), factor[within]]),
             (np.concatenate([row, row[within]]), np.concatenate([here, there[within]]))), shape=(pair.size, self.size + 1),
        )  # fmt: skip
        budgets, group = np.unique([self.budget[int(s)] for s in shift[pair]], return_inverse=True)
        mass = np.append(self.multiplicity * self.scale, 1.0)
        found = hockeystick.solve(
            np.append(self.cost, 0.0), mass, a, group, self.scale[here] / self.delta, 1 / self.delta,
            deadline=time.perf_counter() + time_limit,
        )  # fmt: skip
        if found is None:
            return False
        self.primal = found.x
        self.dual = np.zeros(self.rows)
        self.dual[0], self.dual[pair], self.dual[budgets] = found.t, found.y, found.e
        return True

    def model(self) -> Any:
        """The HiGHS model."""
        return self.highs

    def masses(self) -> tuple[np.ndarray, float]:
        """(p_0.., atom), nonnegative, as the solver has them."""
        values = self.primal[: self.size + 1]
        return np.maximum(values[:-1], 0.0) * self.scale, max(float(values[-1]), 0.0)

    def violated(self, tolerance: float) -> dict[int, np.ndarray]:
        """Pairs that are not in the program and where p breaks a promise by more than `tolerance` (relative to delta)."""
        p, atom = self.masses()
        pad = np.zeros(self.n)
        if self.geometric:
            pad = p[-self.n :] / self.ratio
        line = np.concatenate([pad[::-1], p[:0:-1], p, pad])
        out = {}
        reach = self.size - 1 + self.n
        for s in range(1, self.n + 1):
            excess = line[:-s] - self.ratio * line[s:]
            if not self.has_slack(s):
                bad = np.flatnonzero(excess > tolerance * line[:-s]) - reach
            elif atom + np.maximum(excess, 0.0).sum() > self.delta * (1 + tolerance):
                bad = np.flatnonzero(excess > 1e-10 * self.delta / self.n) - reach
            else:
                continue
            bad = bad[np.abs(bad) < self._row_range()]
            bad = np.setdiff1d(bad, self.pairs.get(s, np.zeros(0, dtype=np.int64)))
            if bad.size:
                out[s] = bad
        return out

    def solve(self, tolerance: float, deadline: float) -> bool:
        """Solve and add violated pairs until there are none; False if time or rows ran out first."""
        for _ in range(100):
            if not self.run(deadline - time.perf_counter()):
                return False
            fresh = self.violated(tolerance)
            if not fresh:
                return True
            if self.rows + sum(v.size for v in fresh.values()) > MAX_ROWS or time.perf_counter() > deadline:
                return False
            self.add(fresh)
        return False

    def active(self) -> np.ndarray:
        """Mask over (shift, index + size): pairs that hold with equality or cost something, in the last solution."""
        _, mu, lam = self.duals()
        mask = np.zeros((self.n + 1, 2 * self.size + 1), dtype=bool)
        for s, (index, values) in mu.items():
            mask[s, index[values > 1e-7 * max(lam.get(s, 0.0), 1e-9)] + self.size] = True
        return mask

    def duals(self) -> tuple[float, dict[int, tuple[np.ndarray, np.ndarray]], dict[int, float]]:
        """(t, {s: (indices, mu)}, {s: lam}) as the solver has them."""
        duals = self.dual
        shift, index = (np.concatenate(x)[: duals.size] for x in (self._shift_of_row, self._index_of_row))
        lam = {s: max(0.0, -float(duals[row])) / self.delta for s, row in self.budget.items() if row < duals.size}
        mu = {}
        for s in self.pairs:
            rows = np.flatnonzero(shift == s)
            rows = rows[np.argsort(index[rows])]
            if not rows.size:
                continue
            mu[s] = (index[rows], np.maximum(-duals[rows], 0.0) / self.scale[np.abs(index[rows])])
        return float(duals[0]), mu, lam


def multipliers_of(program: LatticeProgram, costs: np.ndarray) -> list[Multiplier]:
    """The dual of a lattice program, continued over the infinite support.

    A finite support is continued by the constants lam_s. A geometric tail is continued by the recursion that its columns'
    reduced costs ask for, mu_(j-n) = (mu_j + 2(c_j - t))/E for shift n (0 for the others), started at the far end of `costs`
    with the constant 2(c_end - t)/(E - 1) that can be kept from there on.
    """
    t, mu, lam = program.duals()
    n, start, end = program.n, program._row_range(), costs.size
    tail = np.zeros(0)
    if program.geometric:
        rate = 2 * (costs - t)
        last = max(0.0, float(rate[-1]) / math.expm1(program.eps))
        tail = np.full(end, last)
        for high in range(end - n, start, -n):  # a period at a time, inwards from the last one
            low = max(high - n, start)
            ahead = slice(low + n, high + n)
            tail[low:high] = np.clip((tail[ahead] + rate[ahead]) / program.ratio, 0.0, last)
        tail = tail[start:]
    out = []
    for s, (index, values) in mu.items():
        weight = lam.get(s, 0.0)
        if not program.has_slack(s):  # what it costs is delta times this
            weight = max(float(values.max()), float(tail.max(initial=0.0)) if s == n else 0.0)
        if weight <= 0:
            continue
        dense = np.zeros(start - int(index[0]))
        dense[index - int(index[0])] = np.minimum(values, weight)
        dense[dense < 1e-13 * weight] = 0.0
        rest = weight
        if program.geometric:
            dense, rest = (np.concatenate([dense, tail]), float(tail[-1])) if s == n else (dense, 0.0)
        used, ends = np.flatnonzero(dense), np.flatnonzero(dense != rest)
        first = int(used[0]) if used.size else dense.size
        keep = max(int(ends[-1]) + 1 if ends.size else 0, first)
        out.append(Multiplier(s, weight, int(index[0]) + first, tuple(dense[first:keep].tolist()), rest))
    return out


@dataclass(frozen=True)
class _Bracket:
    """One lattice's answer."""

    mechanism: AdditiveMechanism
    certificate: AdditiveCertificate | StaircaseCertificate
    value: float
    solved: bool
    program: LatticeProgram | None
    kind: str

    @property
    def gap(self) -> float:
        return (self.value - self.certificate.bound) / self.value if self.value else 0.0


def _floats(costs: np.ndarray) -> np.ndarray:
    return np.array([float(Fraction(int(c), 2**SCALE)) for c in costs])


def truncated_radius(eps: float, delta: float) -> float:
    """Where the truncated Laplacian ends, in sensitivities: log(1 + (E - 1)/(2 delta))/eps (1/(2 delta) for eps = 0)."""
    return math.log1p(math.expm1(eps) / (2 * delta)) / eps if eps > 0 else 1 / (2 * delta)


def _refined_pairs(coarse: LatticeProgram, n: int, size: int) -> dict[int, np.ndarray]:
    """Pairs near those that were active on a coarser lattice, and all of shift n from a little left of the centre on."""
    mask = coarse.active()
    grown = mask.copy()
    for ds in (-1, 0, 1):
        for di in (-1, 0, 1):
            grown |= np.roll(np.roll(mask, ds, axis=0), di, axis=1)
    scale = coarse.n / n
    index = np.arange(-size, size)
    column = np.clip(np.round(index * scale).astype(int), -coarse.size, coarse.size) + coarse.size
    pairs = {s: index[grown[round(s * scale), column]] for s in range(1, n + 1)}
    pairs[n] = np.arange(-n, size)
    return pairs


def _initial_pairs(n: int, size: int, wide: bool) -> dict[int, np.ndarray]:
    """Pairs likely to matter: the longer shifts (all of them on a small lattice), from a little left of the centre on."""
    first = 1 if wide else max(1, (11 * n) // 20)
    return {s: np.arange(-(s + n) // 2, size) for s in range(first, n + 1)}


def _whole(p: np.ndarray, total: float) -> list[int]:
    """p/total in units of 2^-BITS, rounded to whole numbers."""
    scaled = np.ldexp(p / total, 60)
    return [int(v) << (BITS - 60) if v >= 2.0**52 else int(float(v) * 2.0 ** (BITS - 60)) for v in scaled]


def _reference(eps: float, delta: float, n: int) -> np.ndarray:
    """Lattice noise that is (eps, delta)-private with room to spare: a truncated Laplacian for half of delta."""
    rate = eps * (1 - 1e-9) / n
    count = int((truncated_radius(eps, delta / 2) + 2) * n) + 2
    p = np.exp(-rate * np.arange(count))
    total = 2 * np.cumsum(p) - 1
    edge = np.cumsum(p) - np.concatenate([np.zeros(n), np.cumsum(p)[:-n]])  # mass of the last n
    fits = np.flatnonzero(edge <= 0.49 * delta * total)
    keep = int(fits[fits >= min(n, count - 1)][0]) + 1 if (fits >= min(n, count - 1)).any() else count
    return p[:keep]


def private_finite(
    eps: float, delta: float, line: AdditiveLine, n: int, p: np.ndarray, atom: float = 0.0
) -> AdditiveMechanism:
    """Noise close to the masses p_0, p_1, .. (and an atom) that is (eps, delta)-private exactly.

    The masses become whole numbers; where the exact divergence exceeds delta, they are mixed with a reference noise that
    is private for half of delta, just enough (divergences are convex).
    """
    ratio, limit = enclosures.exp_below(eps), Fraction(delta)
    total = atom + p[0] + 2 * p[1:].sum()
    used = np.flatnonzero(p > 1e-15 * delta * total / p.size)
    p = p[: int(used[-1]) + 1] if used.size else p[:1]
    atom = atom if atom > 1e-6 * delta * total else 0.0
    reference = _reference(eps, delta, n)
    size = max(p.size, reference.size)
    wide = np.zeros(size)
    wide[: reference.size] = reference / (2 * reference.sum() - reference[0])
    share = 0.0
    for _ in range(40):
        if share >= 1:
            mixed, stuck = wide, 0.0
        elif share == 0:
            mixed, stuck = p / total, atom / total
        else:
            mixed, stuck = share * wide, (1 - share) * atom / total
            mixed[: p.size] += (1 - share) * p / total
        noise = AdditiveMechanism(line, n, tuple(_whole(mixed, 1.0)), _whole(np.array([stuck]), 1.0)[0])
        excess = noise.exact_delta(ratio) - limit
        if excess <= 0:
            return noise
        if share >= 1:
            break
        needed = float(excess / (excess + limit / 2))
        share = min(1.0, share + max(needed, 2.0**-50) * 1.01) if share < 0.5 else 1.0
    raise ArithmeticError(
        f"no exactly private noise was found for eps = {eps:g}, delta = {delta:g} on a lattice of {n} points"
    )


def private_geometric(eps: float, line: AdditiveLine, n: int, p: np.ndarray) -> AdditiveMechanism:
    """Noise close to the masses p_0, p_1, .., continued by p_(i+n) = p_i/E, that is (eps, 0)-private exactly.

    Every mass is raised, from the centre outwards, to at least 1/R of those up to n places further in, R <= E rational.
    """
    ratio = enclosures.exp_below(eps)
    top, bottom = ratio.numerator, ratio.denominator
    decay = -(-LIMB * bottom // top)
    # Masses in the tail sink to E^-K: keep their relative precision.
    whole = [max(1, v) for v in _whole(p, float(p[0] + 2 * p[1:-n].sum() + 2 * p[-n:].sum() / -math.expm1(-eps)))]
    for _ in range(4):
        changed = False
        for a in range(len(whole)):
            window = whole[max(a - n, 0) : a + n + 1]
            least = -(-max(window) * bottom // top)
            if whole[a] < least:
                whole[a], changed = least, True
        if not changed:
            break
    block = whole[-n:]
    for r in range(n - 2, -1, -1):  # across the period the tail must not rise
        block[r] = max(block[r], block[r + 1])
    tail = [-(-w * LIMB // (LIMB - decay)) for w in block]
    least = -(-tail[0] * bottom // top)
    tail = [max(t, least) for t in tail]
    return AdditiveMechanism(line, n, tuple(whole[:-n]), 0, tuple(tail), decay)


def _continued(p: np.ndarray, eps: float, n: int, periods: int) -> np.ndarray:
    """Masses with a geometric tail, `periods` further periods of it written out."""
    tail = (p[-n:] * np.exp(-eps * np.arange(1, periods + 1))[:, None]).ravel()
    return np.concatenate([p, tail])


def _cut(p: np.ndarray, delta: float, n: int) -> np.ndarray:
    """Masses cut off as early as delta allows: the last n of what is left have a share of at most delta."""
    sums = np.cumsum(p)
    edge = sums - np.concatenate([np.zeros(n), sums[:-n]])
    fits = np.flatnonzero(edge[n:] <= delta * (1 - 1e-12) * (2 * sums[n:] - p[0])) + n
    return p[: int(fits[0]) + 1] if fits.size else p


def _solve_geometric(
    privacy: ApproxDP, loss: Power, line: AdditiveLine, n: int, deadline: float, method: str
) -> _Bracket | None:
    """delta = 0, or so small that the noise is the staircase cut off where delta allows."""
    eps, delta = privacy.eps, privacy.delta
    start = n * (math.ceil(math.gamma(loss.exponent + 1) ** (1 / loss.exponent) / eps) + 1)
    reach = 36 / eps if delta == 0 else min(36 / eps, truncated_radius(eps, delta) + 4 / eps)
    far = start + n * (math.ceil(reach) + 2)
    costs = _floats(lattice_costs(loss, line.sensitivity, n, far - 1, line.discrete))
    budget = delta if delta > TINY else 0.0  # below, slacks are not worth their scale
    program = LatticeProgram(eps, budget, n, costs, points=start + n, geometric=True, method=method)
    program.add({n: np.arange(-(n // 2), start)})
    program.add({s: np.arange(-s, n) for s in range(1, n)} if n <= 24 else {s: np.array([-s, 0]) for s in range(1, n)})
    solved = program.solve(1e-9 if delta == 0 else 1e-5, deadline)
    if not program.primal.size:
        return None
    p, _ = program.masses()
    certificate = AdditiveCertificate.of(
        eps, delta, line.sensitivity, loss, n, multipliers_of(program, costs), discrete=line.discrete
    )
    mechanism = private_geometric(eps, line, n, p)
    value = mechanism.enclose_value(loss)[1]
    if delta > 0:
        written = _continued(p, eps, n, int(truncated_radius(eps, delta)) + 4)
        try:
            cut = private_finite(eps, delta, line, n, _cut(written, delta, n))
        except ArithmeticError:  # delta is below the resolution of the weights: the tail stays
            cut = mechanism
        if cut.enclose_value(loss)[1] <= value:
            mechanism, value = cut, cut.enclose_value(loss)[1]
    return _Bracket(mechanism, certificate, value, solved, program, "geometric tail")


def _solve_with_slack(
    privacy: ApproxDP, loss: Loss, line: AdditiveLine, n: int, deadline: float, method: str, every_shift: bool,
    coarse: LatticeProgram | None, tolerance: float,
) -> _Bracket | None:  # fmt: skip
    """delta > 0. `coarse`: the program of a coarser lattice, for its rows and support."""
    eps, delta = privacy.eps, privacy.delta
    plain = truncated_radius(eps, delta)
    radius = plain * 1.02 + 0.25 if coarse is None else (coarse.size + 1) / coarse.n
    while True:
        size = math.ceil(radius * n) + 1
        law = as_loss(loss, line.sensitivity * (radius + 4)) if isinstance(loss, CustomLoss) else loss
        costs = _floats(lattice_costs(law, line.sensitivity, n, size, line.discrete))
        program = LatticeProgram(eps, delta, n, costs, points=size, atom=not line.discrete, method=method)
        if every_shift:
            pairs = {s: np.arange(-size - s, size) for s in range(1, n + 1)}
        elif coarse is not None and coarse.n >= 12:
            pairs = _refined_pairs(coarse, n, size)
        else:
            pairs = _initial_pairs(n, size, n <= 6 or size <= 2 * n)
        program.add(pairs)
        solved = program.solve(tolerance, deadline)
        if not program.primal.size:
            return None
        t, _, lam = program.duals()
        needed = t + math.expm1(eps) * sum(lam.values()) / 2
        if not solved or costs[-1] >= needed * (1 - 0.02 * tolerance) or radius > 4 * plain + 40:
            break
        radius = radius * 1.15 + 0.25
    certificate = AdditiveCertificate.of(
        eps, delta, line.sensitivity, law, n, multipliers_of(program, costs), discrete=line.discrete
    )
    p, atom = program.masses()
    mechanism = private_finite(eps, delta, line, n, p, atom)
    return _Bracket(mechanism, certificate, mechanism.enclose_value(law)[1], solved, program, "finite support")


def solve_additive(
    eps: float,
    delta: float = 0.0,
    loss: Any = "abs",
    *,
    sensitivity: float = 1.0,
    rtol: float = 1e-3,
    discrete: bool = False,
    n: int | None = None,
    time_limit: float = 60.0,
    method: str = "auto",
    every_shift: bool = False,
) -> Solution:
    """The best additive noise under (eps, delta)-differential privacy, between two certified bounds.

    **Arguments:**

    - `eps`, `delta`: the promise: eps in [0, 30], delta in [0, 1), not both 0.
    - `loss`: "abs" ("l1"), "squared" ("l2"), `optdp.Power(q)` with q >= 1, or a convex function of the distance (delta > 0
      only: without it noise is unbounded, and a function is known through samples on a bounded range).
    - `sensitivity`: how far apart the true values of neighbouring data sets can be.
    - `rtol`: the relative gap to reach, by refining the lattice.
    - `discrete`: noise on the integers, for whole-number data and sensitivity; nothing is refined then, the program is exact.
    - `n`: lattice points per sensitivity, in place of refinement up to `rtol`.
    - `time_limit`: seconds; the best bracket found so far is returned.
    - `method`: "simplex" (HiGHS, warm-started), "ipm" (HiGHS), "structured" (`optdp.solvers.hockeystick`, for many rows) or
      "auto"; `every_shift`: all rows from the start (the plain program, for comparison).

    **Returns** a `Solution`: `value` is the expected loss of the noise in `mechanism`, `lower_bound` what no noise with this
    promise can beat.

    **Raises** TypeError or ValueError naming the argument.

    **Source:** Geng, Ding, Guo, Kumar, "Privacy and utility tradeoff in approximate differential privacy" (truncated
    Laplacian), whose two bounds this replaces by the optimum.
    """
    privacy = ApproxDP(eps, delta, sensitivity)
    line = AdditiveLine(privacy.sensitivity, bool(discrete))
    rtol = require.real("rtol", rtol, low=1e-12, high=1.0)
    require.choice("method", method, ("auto", "simplex", "ipm", "structured"))
    time_limit = require.real("time_limit", time_limit, low=0.0, open_low=True)
    law = _convex_loss(loss, privacy, line)
    if n is not None:
        n = require.integer("n", n, low=1, high=10_000)
    began = time.perf_counter()
    best = _refine(privacy, law, line, rtol, n, began + time_limit, method, every_shift)
    value, lower = best.value, min(best.certificate.bound, best.value)
    gap = (value - lower) / value if value else 0.0
    seconds = time.perf_counter() - began
    status = Status.OPTIMAL if gap <= rtol else Status.TIME_LIMIT if seconds > time_limit else Status.GAP
    program = _description(best, privacy, law, line, seconds)
    spec = {
        "problem": "additive", "eps": privacy.eps, "delta": privacy.delta, "loss": law.name, "sensitivity": line.sensitivity,
        "discrete": line.discrete, "n": best.mechanism.n,
    }  # fmt: skip
    return Solution(value, lower, best.mechanism, best.certificate, program, privacy, best.certificate.loss, status, spec,
                    _closed_form(privacy, law, line))  # fmt: skip


def _description(best: _Bracket, privacy: ApproxDP, law: Loss, line: AdditiveLine, seconds: float) -> Program:
    name = f"additive noise, eps = {privacy.eps:g}, delta = {privacy.delta:g}, loss {law}, on {line}"
    lattice = best.program
    if lattice is None:
        return Program(name, "none", "none", "closed form, no solver", seconds)
    solver = {"structured": "structured interior points (optdp)", "ipm": "HiGHS interior points"}.get(
        lattice.used, "HiGHS simplex"
    )
    return Program(
        name=name,
        variables=f"{lattice.size} masses on a lattice of {lattice.n} points per sensitivity"
        + ("" if line.discrete else ", an atom")
        + f"; {lattice.columns} columns with the slacks",
        constraints=f"mass 1, hockey-stick divergences at shifts 1..{lattice.n}: {lattice.rows} rows generated; {best.kind}",
        solver=f"{solver}, {lattice.rounds} rounds on the last lattice",
        seconds=seconds,
        objective=float(lattice.cost @ (lattice.primal[: lattice.size])),
        build=lattice.model,
    )


def _convex_loss(loss: Any, privacy: ApproxDP, line: AdditiveLine) -> Loss:
    reach = line.sensitivity * (truncated_radius(privacy.eps, privacy.delta) + 4) if privacy.delta > 0 else 1.0
    law = as_loss(loss, reach)
    if isinstance(law, CustomLoss):
        if privacy.delta == 0:
            raise ValueError(
                f"loss = {law.name!r} is not allowed with delta = 0: the noise is unbounded then, and a function is known "
                "through samples on a bounded range; use delta > 0, or optdp.Power(q)"
            )
        return CustomLoss(law.function, reach, "convex", law.name)  # refuses a function that is not convex
    if law.exponent < 1:
        raise ValueError(f"loss = {law} is not allowed: additive noise needs a convex loss, optdp.Power(q) with q >= 1")
    return law


def _refine(
    privacy: ApproxDP, law: Loss, line: AdditiveLine, rtol: float, n: int | None, deadline: float, method: str, every_shift: bool
) -> _Bracket:  # fmt: skip
    """Brackets on finer and finer lattices until the gap is at most rtol."""
    fixed = n is not None or line.discrete
    points = n or (int(line.sensitivity) if line.discrete else 4 if _radius(privacy) < 400 else 1)
    small = privacy.delta == 0
    if not small and not line.discrete and privacy.eps > 0 and isinstance(law, Power):
        small = privacy.delta < TINY or (_radius(privacy) > 6 and _share(privacy, law.exponent) < 0.02 * rtol)
    best: _Bracket | None = None
    coarse: LatticeProgram | None = None
    if fixed and points >= 24 and not small and not every_shift:  # where the support ends is found on a coarser lattice
        rough = _solve_with_slack(privacy, law, AdditiveLine(line.sensitivity), 12, deadline, method, False, None, 1e-5)
        coarse = rough.program if rough else None
    while points * 2 * (_radius(privacy) + 2) <= MAX_POINTS and (small or points**2 * _radius(privacy) < 2 * MAX_ROWS):
        found: _Bracket | None
        if small and isinstance(law, Power):
            found = _solve_geometric(privacy, law, line, points, deadline, method)
            coarse = None
        else:
            found = _solve_with_slack(
                privacy, law, line, points, deadline, method, every_shift, coarse, min(1e-4, 0.02 * rtol)
            )
            coarse = found.program if found else None
        if found is None:
            break
        if small and privacy.delta > 0 and best is not None and found.gap > 0.9 * best.gap:
            small = False  # what delta saves is not negligible after all
        best = found if best is None else _better(best, found)
        if fixed or best.gap <= AIM * rtol or time.perf_counter() > deadline or not found.solved:
            break
        wanted, needed = (math.ceil(points * math.sqrt(found.gap / (aim * rtol))) for aim in (0.9 * AIM, 0.85))
        reach = _radius(privacy) + 1
        cheap = int(math.sqrt(CHEAP / (min(reach, 10) if small else reach)))
        if best.gap <= rtol and cheap <= points:
            break
        goal = min(wanted, max(cheap, needed if best.gap > rtol else 0))
        points = min(max(goal, points + 1), 6 * points)
        if points > 400:
            break
    if best is None:
        best = _closed_form_bracket(privacy, law, line)
    if best.gap > rtol:  # where the lattice's bound is poor, the closed-form one may be better
        closed = geng_viswanath(privacy.eps, privacy.delta, line.sensitivity, law, discrete=line.discrete)
        if closed.bound > best.certificate.bound:
            best = replace(best, certificate=closed)
    if privacy.eps > 0 and not line.discrete and isinstance(law, Power) and law.exponent in (1, 2) and n is None:
        best = _with_staircase(best, privacy, law, line)
    return best


def _with_staircase(best: _Bracket, privacy: ApproxDP, law: Power, line: AdditiveLine) -> _Bracket:
    """The bracket with the staircase, which is private for every delta, and for delta = 0 with its own certificate.

    At large eps its first step is finer than any lattice of the program. It is matched by cells whose width divides both
    the step and the sensitivity, up to 1e-6 or so.
    """
    certificate = StaircaseCertificate.best(privacy.eps, law, line.sensitivity)
    step = certificate.first_step()
    cells = np.arange(1, 2001 if step < 2e-3 else 500)
    halves = np.maximum(np.rint(step * cells - 0.5), 0.0)
    misses = np.abs((halves + 0.5) / cells - step)
    n, miss = int(cells[int(np.argmin(misses))]), float(misses.min())
    if miss < 0.1 * step:
        k = max(round(step * n - 0.5), 0)
        steps = np.concatenate([np.ones(k + 1), np.full(n, math.exp(-privacy.eps))])
        mechanism = private_geometric(privacy.eps, line, n, steps)
        value = mechanism.enclose_value(law)[1]
        if value < best.value:
            best = replace(best, mechanism=mechanism, value=value)
    if privacy.delta == 0 and certificate.bound > best.certificate.bound:
        best = replace(best, certificate=certificate)
    return best


def _better(old: _Bracket, new: _Bracket) -> _Bracket:
    """The better of both sides: the mechanism of one lattice and the certificate of another may go together."""
    attained = new if new.value <= old.value else old
    proven = new if new.certificate.bound >= old.certificate.bound else old
    return replace(attained, certificate=proven.certificate)


def _radius(privacy: ApproxDP) -> float:
    return truncated_radius(privacy.eps, privacy.delta) if privacy.delta > 0 else 40 / privacy.eps


def _share(privacy: ApproxDP, q: float) -> float:
    """The share of E|Z|^q that delta saves, about: that of the truncated Laplacian, for which u = (E - 1)/(2 delta)."""
    u = math.expm1(privacy.eps) / (2 * privacy.delta)
    x = math.log1p(u)
    return (x + x**q / math.gamma(q + 1) * (q > 1)) / u


def _closed_form_bracket(privacy: ApproxDP, law: Loss, line: AdditiveLine) -> _Bracket:
    """Where a lattice would be too large: truncated Laplacian (delta = 0: geometric) noise and the closed-form dual."""
    eps, delta = privacy.eps, privacy.delta
    n = int(line.sensitivity) if line.discrete else 1
    radius = _radius(privacy)
    if 2 * n * (radius + 2) > 4 * MAX_POINTS:
        raise ValueError(
            f"eps = {eps:g}, delta = {delta:g} is not allowed: the noise would reach over {radius * n:.3g} lattice points, "
            f"and at most {2 * MAX_POINTS} are supported; raise eps or delta"
            + (", or scale the data to a smaller sensitivity" if n > 1 else "")
        )
    certificate = geng_viswanath(eps, delta, line.sensitivity, law, discrete=line.discrete)
    if delta > 0:
        mechanism = private_finite(
            eps, delta, line, n, _cut(np.exp(-eps / n * np.arange(math.ceil(radius * n) + 3 * n)), delta, n)
        )
    else:
        mechanism = private_geometric(eps, line, n, np.exp(-eps / n * np.arange(2 * n)))
    return _Bracket(mechanism, certificate, mechanism.enclose_value(law)[1], True, None, "closed form")


def _closed_form(privacy: ApproxDP, law: Loss, line: AdditiveLine) -> Callable[[], Any] | None:
    from optdp.closed_forms import additive as forms

    if (
        line.discrete
        or not isinstance(law, Power)
        or law.exponent not in (1, 2)
        or (privacy.eps > 0 and privacy.delta > 0)
    ):
        return None
    if privacy.delta == 0:
        return lambda: forms.staircase(int(law.exponent), line.sensitivity)
    if law.exponent != 1 or (privacy.delta < 0.5 and (1 / (2 * Fraction(privacy.delta))).denominator != 1):
        return None  # uniform noise is not optimal there
    return lambda: forms.uniform(int(law.exponent), sensitivity=line.sensitivity)

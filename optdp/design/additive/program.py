"""The lattice program of additive noise under (eps, delta)-differential privacy (truncated-Laplacian paper).

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
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from optdp.certificates.additive import Multiplier
from optdp.design.additive.lattice import distance
from optdp.solvers.lp import Highs, LinearProgram, LinearSolver, Session, stacked

#: Rows up to which HiGHS's simplex method (with warm starts) is used; interior points beyond.
SIMPLEX_ROWS = 1500
#: Programs are scaled, and hardly any of their rows or columns are superfluous: presolving takes longer than it saves.
PLAIN = (("presolve", "off"),)
#: The structured method is used for supports up to this.
LARGEST = 30_000
#: Programs with more rows are not tried.
MAX_ROWS = 120_000


def build_model(
    eps: float, delta: float, n: int, costs: np.ndarray, size: int, geometric: bool, atom: bool, pairs: dict[int, np.ndarray],
    bins: bool = False,
) -> LinearProgram:  # fmt: skip
    """The lattice program with the rows of `pairs` (see `LatticeProgram`) as a `LinearProgram` with named parts.

    Variables "mass": p_a over the scale r_a of a reference noise, for a lattice point at distance a; "atom"; "slack": u_(s,i)
    over r_|i|. Rows "mass": p adds up to 1 (dual t, the lattice's bound is t - sum of the budgets' duals); "budget": for each
    shift s with slacks, (q + sum_i u_(s,i))/delta <= 1 (dual -delta lam_s); "privacy": u_(s,i) >= p_|i| - E p_|i+s| over r_|i|
    (dual -mu_(s,i) r_|i|).
    """
    program = LatticeProgram(eps, delta, n, costs, points=size, geometric=geometric, atom=atom, bins=bins)
    budgets, rows = sum(bool(program.has_slack(s)) for s in pairs), program.add(pairs)
    model = program.linear
    model.cost = model.cost / program.magnify
    model.name = "additive"
    model.blocks = stacked([("mass", 1), ("budget", budgets), ("privacy", rows)])
    model.variables = stacked([("mass", size), ("atom", 1), ("slack", model.cost.size - size - 1)])
    return model


class LatticeProgram:
    """The lattice program as a live linear program that grows by pairs (s, i).

    **Arguments:** `eps`, `delta`; `n`: points per sensitivity; `costs`: c_0..c_K; `geometric`: the last n
    masses are continued geometrically (`costs` then reach far beyond, and K is `points`) and shift n has no slacks, or (`loose`)
    none in the tail, over which `costs` are constant; `atom`: whether a mass at 0 may stay there; `bins`: whether cells lie
    between the multiples of h, as of `AdditiveMechanism`, so that a and -1 - a are at the same distance; `method`: see
    `solve_additive`; `solver`: a `LinearSolver` in place of HiGHS. For delta = 0 there are no slacks at all.

    Columns and rows are scaled by a reference noise (Laplace down to delta), so that the solver's tolerances are relative.
    """

    def __init__(
        self, eps: float, delta: float, n: int, costs: np.ndarray, *, points: int | None = None, geometric: bool = False,
        atom: bool = False, short: bool = False, bins: bool = False, loose: bool = False, method: str = "auto",
        solver: LinearSolver | None = None,
    ) -> None:  # fmt: skip
        self.eps, self.delta, self.n, self.geometric, self.atom, self.bins = eps, delta, n, geometric, atom, bins
        self.ratio = math.exp(eps)
        self.size, self.costs = costs.size if points is None else points, costs
        self.method, self.solver = method, solver
        #: Indices of rows stay below this: with a geometric tail, rows within it would repeat for ever.
        self.reach = self.size - n if geometric or short else self.size
        self.short, self.loose = short, loose
        index = np.arange(self.size)
        self.multiplicity = multiplicity = np.where(index > 0, 2.0, 1.0 + bins)
        price = costs[: self.size].copy()
        if geometric:  # the last n columns stand for whole tails, p_r (1 + b + b^2 + ...)
            rest, series = costs[self.size - n :], 1 / -math.expm1(-eps)
            periods = rest.size // n
            if not loose:
                price[-n:] = math.exp(-eps) ** np.arange(periods) @ rest[: periods * n].reshape(periods, n) / series
            multiplicity[-n:] *= series
        decay = np.exp(-eps * index / n) * (-math.expm1(-max(eps, delta) / n))
        self.scale = np.maximum(decay, max(delta / n, 1e-300))  # no quotient of them is 0/0
        top = np.append(np.full(self.size, np.inf), np.inf if atom else 0.0)  # the last column is the atom
        self.cost = self.aim = price * multiplicity * self.scale
        #: The costs of masses that are spread over their cells (that of the atom is 0), where that is to be told apart.
        self.spread: np.ndarray | None = None
        self.used = method
        # Far out, multipliers are divided by the small scale of their rows: ask the solver for more digits there.
        # Costs in a user's units may be of any size.
        size = math.frexp(float(self.cost.max()))[1]
        self.magnify = 2.0 ** (20 - size) if geometric else 2.0**-size if abs(size) > 40 else 1.0
        row, one = np.append(multiplicity * self.scale, 1.0)[None, :], np.ones(1)
        linear = LinearProgram(np.append(self.cost, 0.0) * self.magnify, row, one, one, upper=top)
        #: Grows as plain data until a solver of linear programs is asked.
        self.session = Session(Highs(), linear)
        self.budget: dict[int, int] = {}
        self.pairs: dict[int, np.ndarray] = {}
        #: (shift, index) of each row; 0 for mass and budgets.
        self.where = np.zeros((2, 1), dtype=np.int64)
        self.rounds, self.objective = 0, math.nan
        #: Primal and dual values of the last round that the solver finished.
        self.primal, self.dual = np.zeros(self.size + 1), np.zeros(0)

    @property
    def arguments(self) -> tuple[Any, ...]:
        """What `build_model` makes the program as it stands from."""
        return self.eps, self.delta, self.n, self.costs, self.size, self.geometric, self.atom, self.pairs, self.bins

    @property
    def linear(self) -> LinearProgram:
        return self.session.program

    @property
    def rows(self) -> int:
        return int(self.session.size[0])

    def has_slack(self, shift: int | np.ndarray) -> np.ndarray:
        """Which shifts may exceed e^eps by a budget of delta."""
        return np.asarray(shift < self.n if self.geometric and not self.loose else shift > 0) & (self.delta > 0)

    def add(self, pairs: dict[int, np.ndarray]) -> int:
        """Add rows (and slacks) for the pairs (shift, indices) that are not there yet; returns how many."""
        fresh = {s: new for s, indices in pairs.items() if (new := self._missing(s, indices)).size}
        if not fresh:
            return 0
        for s, new in fresh.items():
            self.pairs[s] = np.sort(np.concatenate([self.pairs[s], new])) if s in self.pairs else new
        budgets = [s for s in fresh if s not in self.budget and self.has_slack(s)]
        if budgets:
            k, before = len(budgets), self.rows
            self._grow(np.full((k, 1), self.size), np.full((k, 1), 1 / self.delta), 1.0, np.zeros((2, k)))
            self.budget |= {s: before + i for i, s in enumerate(budgets)}
        shift = np.concatenate([np.full(v.size, s) for s, v in fresh.items()])
        self._append(shift, np.concatenate(list(fresh.values())))
        return int(shift.size)

    def _missing(self, shift: int, indices: np.ndarray) -> np.ndarray:
        """Those of the increasing indices that make a row with this shift and are not there yet."""
        inner, apart = distance(indices, self.bins) < self.reach, 2 * indices != -shift - self.bins
        wanted, there = indices[inner & apart], self.pairs.get(shift)
        if there is None:
            return wanted
        return wanted[there.take(np.searchsorted(there, wanted), mode="clip") != wanted]

    def _grow(self, columns: np.ndarray, entries: np.ndarray, top: float, where: np.ndarray) -> None:
        """Add rows, a few places in each: those without an entry are left out."""
        from scipy.sparse import csr_matrix

        there = entries != 0
        starts = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
        rows = csr_matrix((entries[there], columns[there], starts), shape=(len(entries), self.session.size[1]))
        self.session.add_rows(rows, np.full(len(entries), -np.inf), np.full(len(entries), top))
        self.where = np.hstack([self.where, where.astype(np.int64)])

    def _append(self, shift: np.ndarray, index: np.ndarray) -> None:
        from scipy.sparse import csc_matrix

        here, there = distance(index, self.bins), distance(index + shift, self.bins)
        weight = self.scale[here]
        within = there < self.size
        if self.geometric:  # masses in the last n columns are those of the first period of the tail
            target, factor = np.where(within, there, there - self.n), np.where(within, self.ratio, 1.0)
        else:
            target, factor = np.where(within, there, 0), np.where(within, self.ratio, 0.0)
        slack = self.has_slack(shift)
        first, more = self.session.size[1], int(slack.sum())
        if more:
            rows = np.array([self.budget[int(s)] for s in shift[slack]])
            columns = csc_matrix((weight[slack] / self.delta, rows, np.arange(more + 1)), shape=(self.rows, more))
            self.session.add_columns(np.zeros(more), columns)
        places = np.stack([here, target, first + np.cumsum(slack) - 1], axis=1)
        entries = np.stack([np.ones(here.size), -factor * self.scale[target] / weight, -slack.astype(float)], axis=1)
        self._grow(places, entries, 0.0, np.stack([shift, index]))

    def run(self, time_limit: float) -> bool:
        """Solve; True if the solver has an answer."""
        method = self.method
        if method == "auto" and self.solver is None:
            plain = self.geometric or self.size > LARGEST
            method = "simplex" if self.rows <= SIMPLEX_ROWS else "ipm" if plain else "structured"
        self.rounds += 1
        self.used = method
        cost = self.aim * self.magnify
        self.session.change(slice(self.size), cost=cost)
        if method == "structured" and not self.geometric and self._run_structured(time_limit):
            return True
        if type(self.session) is Session:  # what there is so far goes to the solver as a whole
            self.session = (self.solver or Highs(tolerance=1e-9, crossover=False, options=PLAIN)).session(self.linear)
        named = None if self.solver is not None else "simplex" if method == "simplex" else "ipm"
        found = self.session.solve(time_limit=max(time_limit, 0.1), method=named)
        # Interior points may end just short of the tolerance: what they found is checked and mended anyway.
        if found.usable:
            self.primal, self.dual = found.x, found.row_dual / self.magnify
        return found.usable

    def _run_structured(self, time_limit: float) -> bool:
        from optdp.solvers import hockeystick

        shift, index = self.where
        pair = np.flatnonzero(shift > 0)
        budgets, group = np.unique([self.budget[int(s)] for s in shift[pair]], return_inverse=True)
        rows, masses = self.linear.rows, slice(0, self.size + 1)
        found = hockeystick.solve(
            self.linear.cost[masses], rows[0, masses].toarray()[0], rows[pair][:, masses], group,
            self.scale[distance(index[pair], self.bins)] / self.delta, 1 / self.delta, deadline=time.perf_counter() + time_limit,
        )  # fmt: skip
        if found is None:
            return False
        self.primal = found.x
        self.dual = np.zeros(self.rows)
        self.dual[0], self.dual[pair], self.dual[budgets] = found.t, found.y, found.e
        self.dual /= self.magnify
        return True

    def masses(self) -> tuple[np.ndarray, float]:
        """(p_0.., atom), nonnegative, as the solver has them."""
        values = self.primal[: self.size + 1]
        return np.maximum(values[:-1], 0.0) * self.scale, max(float(values[-1]), 0.0)

    def noise(self) -> tuple[np.ndarray, float] | None:
        """The masses and the atom, which is as large as may be; None for a solver that answers anything."""
        p, atom = self.masses()
        if not 0 < p.sum() + atom < math.inf:
            return None
        return self.stuck(p, atom) if self.atom else (np.append(p[0] + atom, p[1:]), 0.0)

    def stuck(self, p: np.ndarray, atom: float) -> tuple[np.ndarray, float]:
        """The same with as much of p_0 in the atom as privacy allows: to the program they cost the same, off the lattice not."""

        line = np.concatenate([np.zeros(self.n), p[:0:-1], [0.0], p[1:], np.zeros(self.n)])
        near = line[self.n + p.size : 2 * self.n + p.size]  # p_1, ..., p_n
        shifts = range(1, self.n + 1)
        rest = np.array([np.maximum(line[:-s] - self.ratio * line[s:], 0.0).sum() for s in shifts]) - near

        def spent(more: float) -> float:
            top = p[0] - more
            own = np.maximum(top - self.ratio * near, 0.0) + np.maximum(near - self.ratio * top, 0.0)
            return float(atom + more + (rest + own).max())

        limit, low, high = max(spent(0.0), self.delta) * (1 + 1e-13), 0.0, float(p[0])
        for _ in range(20):
            middle = (low + high) / 2
            low, high = (middle, high) if spent(middle) <= limit else (low, middle)
        return np.append(p[0] - low, p[1:]), atom + low

    def violated(self, tolerance: float) -> dict[int, np.ndarray]:
        """Pairs not in the program where p exceeds what privacy allows by more than `tolerance` (relative to delta)."""
        p, atom = self.masses()
        pad = p[-self.n :] / self.ratio if self.geometric else np.zeros(self.n)
        left = p[::-1][: self.size - 1 + self.bins]
        line = np.concatenate([pad[::-1], left, p, pad])
        out, reach = {}, left.size + self.n
        for s in range(1, self.n + 1):
            excess = line[:-s] - self.ratio * line[s:]
            if not self.has_slack(s):
                bad = np.flatnonzero(excess > tolerance * line[:-s]) - reach
            elif atom + np.maximum(excess, 0.0).sum() > self.delta * (1 + tolerance):
                bad = np.flatnonzero(excess > 1e-10 * self.delta / self.n) - reach
            else:
                continue
            if (new := self._missing(s, bad)).size:
                out[s] = new
        return out

    def solve(self, tolerance: float, deadline: float) -> bool:
        """Solve and add violated pairs until there are none; False if time or rows ran out first.

        On the lattice a mass at 0 may be an atom or not. The simplex method goes on from there to the masses that are best when
        they are spread; the multipliers stay those of the lattice.
        """
        solved = self._settle(tolerance, deadline)
        self.objective = float(self.cost @ self.primal[: self.size]) if self.primal.any() else math.nan
        if solved and self.spread is not None and self.used not in ("ipm", "structured"):
            primal, dual, self.aim = self.primal, self.dual, self.spread
            self.primal = self.primal if self._settle(tolerance, deadline) else primal
            self.dual, self.aim = dual, self.cost
        return solved

    def _settle(self, tolerance: float, deadline: float) -> bool:
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
        shift, index = self.where[:, : duals.size]
        lam = {s: max(0.0, -float(duals[row])) / self.delta for s, row in self.budget.items() if row < duals.size}
        mu = {}
        for s in self.pairs:
            rows = np.flatnonzero(shift == s)
            rows = rows[np.argsort(index[rows])]
            if rows.size:
                mu[s] = (index[rows], np.maximum(-duals[rows], 0.0) / self.scale[distance(index[rows], self.bins)])
        return float(duals[0]), mu, lam


def multipliers_of(program: LatticeProgram, costs: np.ndarray) -> list[Multiplier]:
    """The dual of a lattice program, continued over the infinite support.

    A finite support is continued by the constants lam_s. A geometric tail is continued by the recursion that its columns'
    reduced costs ask for, mu_(j-n) = (mu_j + 2(c_j - t))/E for shift n (0 for the others), started at the far end of `costs`
    with the constant 2(c_end - t)/(E - 1) that can be kept from there on. It goes on inwards as far as no other shift reaches:
    there the solver's values are those of rows scaled by e^(-eps) each sensitivity, and have few digits.
    """
    t, mu, lam = program.duals()
    n, start, end = program.n, program.reach, costs.size
    tail = np.zeros(0)
    if program.geometric:
        rate = 2 * (costs - t)
        others = [int(index.max()) + s for s, (index, _) in mu.items() if s != n]
        start = min(start, max(max(others, default=0) + 1 - n, 1))
        last = max(0.0, float(rate[-1]) / math.expm1(program.eps))
        tail = np.full(end, last)
        for high in range(end - n, start, -n):  # a period at a time, inwards from the last one
            low = max(high - n, start)
            ahead = slice(low + n, high + n)
            # (np.clip takes several times as long for so few numbers.)
            tail[low:high] = np.minimum(np.maximum((tail[ahead] + rate[ahead]) / program.ratio, 0.0), last)
        tail = tail[start:]
    out = []
    for s, (index, values) in mu.items():
        weight = lam.get(s, 0.0)
        if not program.has_slack(s) or program.loose:  # what it costs is delta times this
            weight = max(weight, float(values.max()), float(tail.max(initial=0.0)) if s == n else 0.0)
        if weight <= 0:
            continue
        if program.geometric and s == n:
            index, values = index[index < start], values[index < start]
        dense = np.zeros(max(start, int(index[-1]) + 1) - int(index[0]))
        dense[index - int(index[0])] = np.minimum(values, weight)
        dense[dense < 1e-13 * weight] = 0.0
        rest = weight
        if program.geometric:
            dense, rest = (np.concatenate([dense, tail]), float(tail[-1])) if s == n else (dense, 0.0)
        elif program.short:
            rest = 0.0
        used, ends = np.flatnonzero(dense), np.flatnonzero(dense != rest)
        first = int(used[0]) if used.size else dense.size
        keep = max(int(ends[-1]) + 1 if ends.size else 0, first)
        out.append(Multiplier(s, weight, int(index[0]) + first, tuple(dense[first:keep].tolist()), rest))
    return out

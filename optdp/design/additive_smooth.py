"""The lattice program of Gaussian DP as a smooth convex program: few variables, one concave inequality for each set.

For mu-GDP the curve of `optdp.design.additive_curve` is F(b) = Phi(Phi^-1(b) + mu), and P(S) <= F(P(S + s)) is a smooth convex
inequality in the tail probabilities T_k: one of them does what many tangents do in the linear program. With sets that are half-lines,
or unions of few intervals, each has few entries. A logarithmic barrier and Newton's method follow the central path from noise that
keeps a smaller mu; the sets that the result breaks join the program, and the path is taken up again. The barrier's multipliers are
those of the tangents at the solution, that is the cuts of the linear program.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from optdp.design.additive_curve import MAGNIFY, Cut, TailProgram
from optdp.solvers import interior

#: Steps of Newton's method.
STEPS = 600
#: The gaps with which sets are looked for, one after the other.
GAPS = (0.1, 0.03, 0.03, 0.01, 0.01, 0.01, 0.003, 0.003, 1e-3)
DEBUG = False
#: Multipliers below this share of the largest prove nothing.
SMALL = 1e-9
#: Rounds of looking for sets.
ROUNDS = 40


class SmoothProgram:
    """The program of `plain`, a `TailProgram` for Gaussian DP, with inequalities in place of cuts.

    **Arguments:** `plain`; `mu`: of the curve; `start`: tail probabilities that keep the curve with room to spare.
    """

    def __init__(self, plain: TailProgram, mu: float, start: np.ndarray, deadline: float) -> None:
        from scipy.sparse import csr_matrix
        from scipy.special import ndtr, ndtri

        self.plain, self.mu, self.deadline = plain, mu, deadline
        self.phi, self.quantile = ndtr, ndtri
        self.size, self.n = plain.size, plain.n
        self.price = plain.plain.cost[: self.size]  # magnified, of scaled variables
        self.scale = plain.scale[: self.size]
        self.core = start[: self.size] / self.scale
        self.x = self.core.copy()
        #: (ends, shift) of the rows.
        self.sets: list[tuple[tuple[int, ...], int]] = []
        self.seen: set[tuple[tuple[int, ...], int]] = set()
        self.power, self.level = (csr_matrix((0, self.size)), csr_matrix((0, self.size)))
        self.power0, self.level0 = np.zeros(0), np.zeros(0)
        terms = [[(1, -2.0)], *([(k, 1.0), (k + 1, -1.0)] for k in range(1, self.size + 1))]
        self.mass, self.mass0 = self._linear(terms)
        self.mass0[0] += 1.0
        self.steps = 0

    def _linear(self, rows: list[list[tuple[int, float]]]) -> tuple[Any, np.ndarray]:
        """(matrix, constants) of sum_j v_j T_(k_j), with T_(1-k) = 1 - T_k and the geometric tail."""
        from scipy.sparse import csr_matrix

        count = [len(terms) for terms in rows]
        where = np.repeat(np.arange(len(rows)), count)
        index = np.array([k for terms in rows for k, _ in terms])
        value = np.array([v for terms in rows for _, v in terms])
        constant, left = np.zeros(len(rows)), index <= 0
        np.add.at(constant, where[left], value[left])
        index, value = np.where(left, 1 - index, index), np.where(left, -value, value)
        beyond = np.maximum(-((self.size - index) // self.n), 0)
        value = value * self.plain.fall ** beyond.astype(float)
        index = index - beyond * self.n
        return csr_matrix((value * self.scale[index - 1], (where, index - 1)), shape=(len(rows), self.size)), constant

    def add(self, sets: list[tuple[tuple[int, ...], int]]) -> None:
        """Add an inequality for each (ends of a union of intervals, shift)."""
        from scipy.sparse import vstack

        edge = self.size - self.n  # beyond, sets go on for ever: there is hardly any mass
        endless = [(e[:-1] if len(e) % 2 == 0 and e[-1] > edge else e, s) for e, s in sets if e[0] > -edge]
        fresh = [s for s in dict.fromkeys(endless) if s not in self.seen and max(s[0]) <= edge]
        if not fresh:
            return
        signed = [[(e, (-1.0) ** j) for j, e in enumerate(ends)] for ends, _ in fresh]
        power, power0 = self._linear(signed)
        level, level0 = self._linear([[(e + s, v) for e, v in terms] for terms, (_, s) in zip(signed, fresh, strict=True)])
        self.power, self.power0 = vstack([self.power, power]).tocsr(), np.append(self.power0, power0)
        self.level, self.level0 = vstack([self.level, level]).tocsr(), np.append(self.level0, level0)
        self.sets += fresh
        self.seen |= set(fresh)

    def _at(self, x: np.ndarray) -> None:
        """Values and derivatives of the inequalities at a point."""
        b = np.maximum(self.level @ x + self.level0, 1e-300)
        a = self.power @ x + self.power0
        z = self.quantile(np.minimum(b, 1.0))
        # Near 1 the difference of the complements has more digits.
        self.room = np.where(a > 0.5, (1 - a) - self.phi(-(z + self.mu)), self.phi(z + self.mu) - a)
        self.slope = np.exp(-self.mu * z - self.mu**2 / 2)
        self.bend = self.mu * self.slope * math.sqrt(2 * math.pi) * np.exp(z * z / 2)
        self.b, self.z = b, z
        self.masses = self.mass @ x + self.mass0

    def _advance(self) -> None:
        """One predictor and corrector of the primal-dual method."""
        from scipy.linalg import cho_factor, cho_solve
        from scipy.sparse import diags

        jacobian = diags(self.slope) @ self.level - self.power
        s, y, w = self.s, self.y, self.w
        hessian = jacobian.T @ (diags(y / s) @ jacobian) + self.level.T @ (diags(y * self.bend) @ self.level)
        hessian = (hessian + self.mass.T @ (diags(w / self.masses) @ self.mass)).toarray()
        unit = 1 / np.sqrt(hessian.diagonal())
        hessian *= unit[:, None] * unit
        hessian[np.diag_indices(self.size)] += 1e-14
        factor = cho_factor(hessian, check_finite=False, overwrite_a=True)
        dual = self.price - jacobian.T @ y - self.mass.T @ w
        behind = self.room - s

        def direction(targets: Any) -> tuple[Any, np.ndarray, Any]:
            """Moves of (masses, slacks), of x, and of their multipliers for these changes of the products."""
            first, second = targets
            right = -dual + jacobian.T @ ((second - y * behind) / s) + self.mass.T @ (first / self.masses)
            dx = unit * cho_solve(factor, unit * right, check_finite=False)
            ds, dm = jacobian @ dx + behind, self.mass @ dx
            return (dm, ds), dx, ((first - w * dm) / self.masses, (second - y * ds) / s)

        primal, slack, ahead, _, dx = interior.advance((self.masses, s), (w, y), direction, 0.98)
        self.x = self.x + ahead * dx
        self.s, (self.w, self.y) = primal[1], slack
        self._at(self.x)
        self.steps += 1

    @property
    def gap(self) -> float:
        """Products of values and multipliers, relative to the objective."""
        products, _ = interior.complementarity((self.masses, self.s), (self.w, self.y))
        return products / self.total

    @property
    def off(self) -> float:
        """What inequalities are broken by times their multipliers, and the duals' defect, relative to the objective."""
        defect = self.price - (self.level.T @ (self.y * self.slope) - self.power.T @ self.y) - self.mass.T @ self.w
        broken = float(np.maximum(self.s - self.room, 0.0) @ self.y)
        return max(broken, float(np.abs(defect) @ self.x)) / self.total

    @property
    def total(self) -> float:
        """The objective, magnified."""
        return float(self.price @ self.x) + self.plain.constant * MAGNIFY

    def _restart(self, gap: float, shares: tuple[float, ...]) -> None:
        """From the nearest point towards the core that keeps all inequalities with some room."""
        past = self.x
        for share in shares:
            self.x = (1 - share) * past + share * self.core
            self._at(self.x)
            if min(self.room.min(), self.masses.min()) > 0:
                break
        level = gap * self.total / (self.masses.size + self.room.size)
        self.s, self.y, self.w = self.room.copy(), level / self.room, level / self.masses

    def _settle(self, gap: float) -> bool:
        """Go on until the gap and what breaks the inequalities are small."""
        while self.gap > gap or self.off > gap:
            if time.perf_counter() > self.deadline or self.steps > STEPS or not np.isfinite(self.x).all():
                return False
            self._advance()
        return True

    def solve(self, broken: Any, tolerance: float, rtol: float) -> bool:
        """Solve up to a gap of `rtol`, with all sets that matter; `inner` is noise that breaks none by more than `tolerance`.

        **Arguments:** `broken(values, tolerance)`: cuts for sets that break the curve.
        """
        self._at(self.x)
        if min(self.room.min(), self.masses.min()) <= 0:
            return False
        self._restart(1.0, (0.0,))
        try:
            for gap in GAPS:
                if not self._settle(gap):
                    return False
                cuts = broken(self._values(self.x), max(tolerance, 0.3 * gap))
                fresh = [(cut.ends, cut.shift) for cut in cuts if (cut.ends, cut.shift) not in self.seen]
                if DEBUG: print("round", self.steps, gap, len(fresh), self.total / MAGNIFY)
                if fresh and gap != GAPS[-1]:
                    self.add(fresh)
                    self._restart(max(gap, 1e-2), (0.05, 0.1, 0.2, 0.4, 0.7, 1.0))
        except np.linalg.LinAlgError:
            return False
        return self._mended(broken, tolerance, 1.0)

    def _values(self, x: np.ndarray) -> np.ndarray:
        return np.append(x * self.scale, 0.0)

    def _mended(self, broken: Any, tolerance: float, rtol: float) -> bool:
        """Set `inner` to the noise nearest to x, on the way to the core, that breaks nothing; False if it costs more than rtol."""
        rise = float(self.price @ (self.core - self.x)) / self.total
        low, high = 0.0, 1.0
        if not broken(self._values(self.x), tolerance):
            high = 0.0
        while high - low > 0.05 * high and (high - low) * rise > 0.1 * rtol:
            middle = math.sqrt(max(low, 1e-3 * high) * high)
            x = self.x + middle * (self.core - self.x)
            low, high = (middle, high) if broken(self._values(x), tolerance) else (low, middle)
        if high * rise > rtol:
            return False
        self.inner = self.x + high * (self.core - self.x)
        return True

    def hand_over(self) -> None:
        """The solution as that of the linear program: its noise, and the tangents with their multipliers."""
        worth = self.y / MAGNIFY
        kept = np.flatnonzero(worth > SMALL * worth.max())
        eps, delta = self.plain.curve.tangent(self.b[kept])
        cuts = [Cut(*self.sets[i], float(e), float(d)) for i, e, d in zip(kept, eps, delta, strict=True)]
        self.plain.inner = self.plain.values = self._values(self.inner)
        self.plain.objective = float(self.price @ self.x) / MAGNIFY
        self.plain.rounds = self.steps
        self.plain.found = list(zip(worth[kept].tolist(), cuts, strict=True))


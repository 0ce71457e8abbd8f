"""The best floor of a kernel between finite sets: a convex program in one number for each output, by cutting planes.

Given the floor m_y = min_x K(y|x), the best row of each input x is a bathtub: E m_y for the outputs of the least losses, m_y
for the others, and one output in between, so that the mass is 1. The best floor minimises over 1/E <= m(all) <= 1 the largest
J_x(m), or their mean under a prior, where

    J_x(m) = min { sum_y L_xy K_y : m <= K <= E m, sum_y K_y = 1 }
           = max over nu of nu + sum_y [(L_xy - nu) - (E - 1) (nu - L_xy)_+] m_y,

and the best nu is the loss of the output in between. So a point m gives a cut for each input, and the program over the cuts
found so far, in a variable for each output instead of each pair, bounds the optimum from below. Cuts are added at its solution
and half way to the best floor so far. They end after a few rounds, at a vertex: few outputs are used.

Everything is in v = E m, and values in units of a value that is attained: then the program is well scaled for every E.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optdp.solvers.lp import Highs, LinearProgram

#: Rounds after which the method stops short of the tolerance asked for (5 to 25 are usual).
ROUNDS = 200

#: Simplex iterations per column after which a solve counts as stalled (a few are usual): interior point then, once.
STALL = 20

#: So many rounds in a row without a closer bracket end it: the solver's tolerances have been reached.
IDLE = 6

#: In the worst case a round adds the cuts of so many inputs, those with the largest losses: a share of them, and at least a few.
CUTS, FEWEST = 0.1, 20


#: Outputs that are sought among first for what an input favours.
FAVOURED = 128


@dataclass(frozen=True)
class Floors:
    """A floor and a dual point, in floats: to be checked like any solver's answer.

    `floors`: m; `weights`, `masses`: multipliers of the losses and the masses, one for each input; `value`: the largest (mean)
    J_x(m); `bound`: what the multipliers promise; `cuts`: how many there were; `stopped`: whether `stop` ended it.
    """

    floors: np.ndarray
    weights: np.ndarray
    masses: np.ndarray
    value: float
    bound: float
    rounds: int
    cuts: int
    stopped: bool


@dataclass(frozen=True)
class Bathtubs:
    """J and its cuts, for losses (inputs, outputs) at most 1; floors are given as v = E m, by their coefficients in a basis: the
    columns of `basis` (outputs, coefficients), dense or sparse and >= 0 with sum 1; None for one coefficient for each output.
    """

    loss: np.ndarray
    eps: float
    prior: np.ndarray | None
    order: np.ndarray
    sorted: np.ndarray
    basis: Any = None

    @classmethod
    def of(cls, loss: np.ndarray, eps: float, prior: np.ndarray | None, basis: Any = None) -> Bathtubs:
        """Sort the losses of each input."""
        order = np.argsort(loss, axis=1, kind="stable")
        return cls(loss, eps, prior, order, np.take_along_axis(loss, order, axis=1), basis)

    def folded(self, columns: np.ndarray) -> np.ndarray:
        """What a row, or each row, of numbers for the outputs is for the coefficients."""
        return columns if self.basis is None else np.asarray(columns @ self.basis)

    def spread(self, v: np.ndarray) -> np.ndarray:
        """The v of each output."""
        return v if self.basis is None else np.asarray(self.basis @ v)

    @property
    def low(self) -> float:
        """1/E, and the difference to 1 is `high`: what an output has of v when it is not favoured, and what more when it is."""
        return math.exp(-self.eps)

    @property
    def high(self) -> float:
        """1 - 1/E."""
        return -math.expm1(-self.eps)

    def scaled(self, v: np.ndarray) -> np.ndarray:
        """A multiple of v that leaves room for rows of mass 1: 1 <= sum v <= E; an even floor for one without mass."""
        total = float(v.sum())
        if not total > 0:
            return np.full(v.shape, 1 / v.size)
        return np.asarray(v * (min(max(total, 1.0), 1 / self.low) / total))

    def rows(self, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(J, the best nu) for each input."""
        v = self.spread(v)
        rest, few = 1 - self.low * float(v.sum()), FAVOURED
        while True:  # what is favoured are the nearest few
            order, losses = self.order[:, :few], self.sorted[:, :few]
            extra = self.high * v[order]
            total = np.cumsum(extra, axis=1)
            if few >= v.size or total[:, -1].min() >= rest:
                break
            few *= 8
        before = total - extra
        last = np.maximum((before < rest).sum(axis=1) - 1, 0)
        filled = np.einsum("xy,xy->x", np.clip(rest - before, 0.0, extra), losses)
        return self.low * (self.loss @ v) + filled, np.take_along_axis(losses, last[:, None], axis=1)[:, 0]

    def overall(self, rows: np.ndarray) -> float:
        """The largest or the mean."""
        return float(rows.max() if self.prior is None else self.prior @ rows)

    def slopes(self, inputs: np.ndarray, nu: np.ndarray) -> np.ndarray:
        """The coefficients of v in the cuts (inputs, outputs)."""
        reduced = self.loss[inputs] - nu[:, None]
        return self.folded(self.low * reduced + self.high * np.minimum(reduced, 0.0))

    def repaired(self, weights: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Masses less a multiple of the weights such that no output has a negative price: they sum to a lower bound."""
        kept = np.flatnonzero((weights != 0) | (masses != 0))
        some, whole, masses = self.loss[kept], masses, masses[kept]
        weights = weights[kept]
        for _ in range(30):
            reduced = weights[:, None] * some - masses[:, None]
            favoured = reduced < 0
            prices = self.low * reduced.sum(axis=0) + self.high * np.where(favoured, reduced, 0.0).sum(axis=0)
            slopes = self.low * float(weights.sum()) + self.high * (weights @ favoured)
            prices, slopes = self.folded(prices), self.folded(slopes)
            # The prices are concave in the multiple: Newton's steps come from below and do not go too far.
            step = float((-prices / slopes).max())
            masses = masses - step * weights
            if abs(step) <= 2.0**-52 * abs(float(masses.sum())):
                break
        whole = whole.copy()
        whole[kept] = masses
        return whole


def solve_floors(
    loss: np.ndarray, eps: float, prior: np.ndarray | None = None, *, tolerance: float = 1e-9, basis: Any = None,
    left: Callable[[], float] = lambda: math.inf, tell: Callable[[float, float], None] = lambda bound, value: None,
    start: np.ndarray | None = None, solver: Highs | None = None,
) -> Floors:  # fmt: skip
    """The best floor for losses >= 0 (inputs, outputs), at the worst input or on average over a `prior` without zeros.

    **Arguments:** `tolerance`: the relative gap at which to stop; `basis`: see `Bathtubs`, for the best floor with nonnegative
    coefficients (the images of an output under symmetries of the problem have one together); `left`: the seconds that are left;
    `tell`: told each bracket; `start`: a floor near the best one, whose cuts for all inputs come first; `solver`: with other
    tolerances than usual.
    """
    from scipy.sparse import csr_matrix

    scale, d, worst = float(loss.max()) or 1.0, len(loss), prior is None
    outputs = loss.shape[1] if basis is None else basis.shape[1]
    tubs = Bathtubs.of(loss / scale, eps, prior, basis)
    # Nobody needs to do worse than with one output for all.
    constant = tubs.folded(tubs.loss)
    constant = constant.max(axis=0) if prior is None else prior @ constant
    best, value = np.eye(1, outputs, int(np.argmin(constant)))[0] / tubs.low, float(constant.min())
    weights, masses, bound = np.full(d, 1 / d) if prior is None else prior, np.zeros(d), 0.0
    v = tubs.scaled(np.full(outputs, math.exp(eps / 2) / outputs) if start is None else start / tubs.low)
    inner, unit = v, min(value, tubs.overall(tubs.rows(v)[0])) or 1.0

    losses = 1 if prior is None else d  # one variable for the largest loss, or one for each input
    mass = csr_matrix(np.concatenate([np.zeros(losses), np.ones(outputs)]))
    cost = np.concatenate([np.ones(1) if prior is None else prior, np.zeros(outputs)])
    first = LinearProgram(cost, mass, np.ones(1), np.array([1 / tubs.low]), name="floors")
    session = replace(solver or Highs(), iterations=STALL * (losses + outputs)).session(first)
    inputs, thresholds = np.zeros(0, dtype=np.int64), np.zeros(0)
    count, rounds, idle, stopped = max(FEWEST, math.ceil(CUTS * d)), 0, 0, False
    while value - bound > tolerance * value and rounds < ROUNDS and idle < IDLE:
        before = value - bound
        stopped = left() <= 0
        if stopped:
            break
        for point in [v] if rounds == 0 else [v, (v + inner) / 2]:
            rows, nu = tubs.rows(point)
            if tubs.overall(rows) < value:
                best, value = point, tubs.overall(rows)
                inner = point
            some = worst and (rounds > 0 or start is None)
            chosen = np.argsort(-rows, kind="stable")[:count] if some else np.arange(d)
            heads = np.zeros((chosen.size, losses))
            heads[np.arange(chosen.size), 0 if worst else chosen] = 1.0
            body = np.hstack([heads, -tubs.slopes(chosen, nu[chosen]) / unit])
            session.add_rows(csr_matrix(body), nu[chosen] / unit, np.full(chosen.size, np.inf))
            inputs, thresholds = np.concatenate([inputs, chosen]), np.concatenate([thresholds, nu[chosen]])
        found = session.solve(time_limit=left())
        if not found.usable and left() > 0:
            found = session.solve(time_limit=left(), method="ipm")
        if not found.usable or found.x.size <= losses or found.row_dual.size <= inputs.size:  # no dual, or no solution
            stopped = left() <= 0
            break
        v = tubs.scaled(np.maximum(found.x[losses:], 0.0))
        shares = np.maximum(found.row_dual[1:], 0.0)
        lam = np.bincount(inputs, shares, d) if prior is None else prior
        if lam.any():
            lam, nu = lam / lam.sum(), np.bincount(inputs, shares * thresholds, d) / lam.sum()
            nu = tubs.repaired(lam, nu)
            if float(nu.sum()) > bound:
                weights, masses, bound = lam, nu, float(nu.sum())
        # Until the inputs that matter have cuts nothing is bounded at all.
        rounds, idle = rounds + 1, idle + 1 if bound > 0 and value - bound > 0.99 * before else 0
        tell(bound * scale, value * scale)
    best, value = _trimmed(tubs, best, value, tolerance)
    return Floors(
        tubs.spread(best * tubs.low),
        weights,
        masses * scale,
        value * scale,
        bound * scale,
        rounds,
        inputs.size,
        stopped,
    )


def _trimmed(tubs: Bathtubs, best: np.ndarray, value: float, tolerance: float) -> tuple[np.ndarray, float]:
    """Without as many of the least entries as change the value by less than the tolerance."""
    kept, attained = best, value
    for share in 10.0 ** np.arange(-12, 0):
        fewer = tubs.scaled(np.where(best > share * best.max(), best, 0.0))
        after = tubs.overall(tubs.rows(fewer)[0])
        if after > value * (1 + tolerance / 2):
            break
        kept, attained = fewer, after
    return kept, attained

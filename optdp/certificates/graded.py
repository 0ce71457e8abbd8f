"""The dual of the optimal-noise problem on a mesh that is fine near 0, where a peak holds most of the mass: few multipliers.

**The claim** is that of `optdp.certificates.additive`: P(X in S) <= E P(X + d in S) + delta for all S and |d| <= Delta = 1, at
each eps that the problem's notion implies a delta for; then E L(X) >= bound. Tests are functions here, and shifts are averaged.

1. *Functions.* For 0 <= phi <= 1, E phi(X) <= E E phi(X + d) + delta: phi is a mixture of indicators of the sets {phi > u}. By
   symmetry of X, d may have either sign.
2. *Averages.* So it is for d averaged over shifts in [0, 1]. With weights w - |u| at the shifts c + u, |u| < w, over w^2, the
   average T phi(x) of phi(x - c - u) is smooth where phi is not: a narrow peak is compared with what lies around every place that
   it could be shifted to, which a single lattice as fine as the peak would need very many multipliers to say.
3. *Duality.* With multipliers lam_j >= 0 of tests (phi_j, kernel j, eps_j), for every symmetric X

       E L(X) >= E[ L(X) + sum_j lam_j (phi_j(X) - E_j T_j phi_j(X)) ] - sum_j lam_j delta_j  >=  t - sum_j lam_j delta_j

   where t is the least value of the bracket, made even. All phi_j are piecewise linear between the nodes of one mesh in the
   lattice Z/n, and shifts are in Z/n: the bracket is L plus a function that is linear between lattice points. With the broken
   line of the costs c_a below L, as there, t is the least value at lattice points; in integers, rounded down.
4. *Far out* phi_j is constant beyond the outermost nodes, T_j phi_j one sensitivity further, and costs do not fall.

Tests with one kernel add up before anything is averaged: the proof takes time in proportion to the lattice points and kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Annotated, Any

import numpy as np

from optdp.certificates.additive import MAX_EPS, POINTS, RATIO, SCALE, lattice_costs, not_noise, scaled
from optdp.certificates.base import Bound, Certificate
from optdp.exact import FieldError, Fields, Number, Within, enclosures, work
from optdp.problem import Line, Problem


@dataclass(frozen=True)
class Test:
    """A multiplier `weight` for a function, a kernel of shifts and a point of the profile.

    `centre`, `width`: the shifts (centre + u)/n, |u| < width, with weights width - |u|; `ends`: nodes (counted from the leftmost
    one) at which the function goes from 0 to 1, from 1 to 0, ...: it is 1 at the nodes from ends[0] on, and so on.
    """

    centre: Annotated[int, Within(0, POINTS)]
    width: Annotated[int, Within(1, POINTS)]
    ends: Annotated[tuple[int, ...], Within(0, 2 * POINTS, 1)]
    eps: Number
    weight: Annotated[float, Within(0.0)]

    __test__ = False  # no test of pytest's


@dataclass(frozen=True)
class GradedCertificate(Certificate):
    """A dual point on a mesh.

    **Arguments:** `n`: lattice points per sensitivity; `nodes`: 0 and the other lattice points >= 0 of the mesh, which is
    symmetric; `tests`: the multipliers, in units in which the sensitivity is 1 and the loss L(sensitivity x), over sensitivity^q
    for a power.
    """

    tag = "graded"
    n: Annotated[int, Within(1, POINTS)]
    nodes: Annotated[tuple[int, ...], Within(0, POINTS, 2, POINTS)]
    tests: Annotated[tuple[Test, ...], Within(most=POINTS)]

    def bound(self, problem: Problem) -> Bound:
        if reason := not_noise(problem):
            self._refuse(reason)
        if not isinstance(problem.domain, Line):
            self._refuse("the domain must be a Line")
        loss = problem.objective.loss
        if not (loss.convex or loss.exponent):  # powers below 1 are above the broken line, too
            self._refuse(f"the loss {loss.name} is not known to be convex or a power")
        if reason := self._malformed():
            self._refuse(reason)
        try:
            exact = self.exact_bound(problem)
        except (ValueError, TypeError, OverflowError) as error:  # what a user's function gives
            self._refuse(str(error))
        value = scaled(problem, exact)
        where = f"a mesh in a lattice of {self.n} points per sensitivity"
        return Bound(max(0.0, value), f"linear programming dual on {where}, exact rationals", loss.assumptions)

    def _malformed(self) -> str:
        """Why this is not a dual point of the stated form."""
        steps = np.diff(self.nodes)
        if self.nodes[0] != 0 or min(steps) < 1:
            return "nodes must start at 0 and rise"
        for test in self.tests:
            if test.width < 1 or test.centre - test.width < -1 or test.centre + test.width > self.n + 1:
                return "shifts must be between 0 and the sensitivity"
            if not 0 <= test.weight < np.inf or not 0 <= float(test.eps) <= MAX_EPS:
                return f"weights must be finite and >= 0, eps in [0, {MAX_EPS:g}]"
            rising = all(a < b for a, b in zip(test.ends, test.ends[1:], strict=False))
            if not test.ends or not rising or min(test.ends) < 0 or max(test.ends) >= 2 * len(self.nodes):
                return "ends must be rising numbers of nodes"
        return ""

    def exact_bound(self, problem: Problem) -> Fraction:
        """t - sum lam delta for sensitivity 1 as an exact rational (a lower bound on it where L is irrational)."""
        privacy: Any = problem.privacy
        every = {test.eps for test in self.tests}
        kernels = {(test.centre, test.width) for test in self.tests}
        last = self.nodes[-1] + self.n + 1
        smooth = problem.objective.loss.exponent in (1, 2)
        size = 2 * len(self.nodes) - 1
        words = 3 + work.words(test.weight for test in self.tests) + max(map(float, every), default=0.0) / 40
        work.count((3 if smooth else 60) * last + (1 + words / 12) * last * (1 + len(kernels)))
        work.count((20 + 0.1 * size) * len(self.tests) + 3 * sum(len(test.ends) for test in self.tests))
        ratios = {eps: ceil(enclosures.exp_above(eps) * 2**RATIO) for eps in every}
        deltas = {eps: privacy.delta_at(eps) for eps in every}
        if None in deltas.values():
            self._refuse(f"{privacy.adjective} implies no (eps, delta)-privacy that is known here")
        own = np.zeros(size, dtype=object)
        shifted = {kernel: np.zeros(size, dtype=object) for kernel in kernels}
        budget = Fraction(0)
        for test in self.tests:
            top, bottom = test.weight.as_integer_ratio()
            weight = (top << SCALE) // bottom
            budget += weight * deltas[test.eps]
            for low, high in zip(test.ends[::2], [*test.ends[1::2], size], strict=False):
                own[low:high] += weight << RATIO
                shifted[test.centre, test.width][low:high] += weight * ratios[test.eps]
        line = self._between(own, -last, last)
        for (centre, width), values in shifted.items():
            line = line - self._averaged(values, centre, width, last)
        costs = lattice_costs(problem.objective.loss, privacy.sensitivity, self.n, last)
        # The bracket made even: at a = 0 once, else the mean of both sides.
        even = (line[last:] + line[last::-1]) // 2 + (costs << RATIO)
        value: Fraction = (int(even.min() >> RATIO) - budget) / 2**SCALE
        return value

    def _between(self, values: np.ndarray, first: int, last: int) -> np.ndarray:
        """The piecewise linear function with these values at the nodes, at first..last, rounded down."""
        nodes = np.array([*(-k for k in self.nodes[:0:-1]), *self.nodes])
        at = np.arange(first, last + 1)
        left = np.clip(np.searchsorted(nodes, at, side="right") - 1, 0, nodes.size - 2)
        low, high = nodes[left], nodes[left + 1]
        share = np.clip(at, nodes[0], nodes[-1]) - low
        found: np.ndarray = (values[left] * (high - low - share) + values[left + 1] * share) // (high - low)
        return found

    def _averaged(self, values: np.ndarray, centre: int, width: int, last: int) -> np.ndarray:
        """The average of that function over a kernel of shifts, at -last..last, rounded up."""
        around = -self._between(-values, -last - centre - width + 1, last - centre + width - 1)
        for _ in range(2 if width > 1 else 0):  # weights width - |u| are two boxes of that width
            sums = np.concatenate([np.zeros(1, dtype=object), np.cumsum(around)])
            around = sums[width:] - sums[:-width]
        found: np.ndarray = -(-around // width**2)
        return found

    @classmethod
    def _read(cls, fields: Fields) -> GradedCertificate:
        made = fields.into(cls)
        if reason := made._malformed():
            raise FieldError(f"{fields.where}.tests are not allowed: {reason}")
        return made

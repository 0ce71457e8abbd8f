"""eps = 0: the tails of noise fall by at most delta per sensitivity, in closed form for every delta.

Let X be symmetric with P(X in S) <= P(X + d in S) + delta for all |d| <= Delta. Then P(X >= 0) >= 1/2 and
P(X >= j Delta) >= P(X >= (j - 1) Delta) - delta, so that P(|X| >= j Delta) >= 1 - 2 j delta as long as this is positive, and

    E L(|X|) >= sum_(j = 1..J) (1 - 2 j delta) [L(j Delta) - L((j - 1) Delta)],    J = floor(1/(2 delta)),

for every L that does not decrease: exact for all laws, those on the integers included. For |x| it is about Delta/(4 delta),
for x^2 Delta^2/(12 delta^2): what uniform noise attains, up to shares of 2 delta and 3 delta.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optdp.certificates.additive import by_pairs, not_additive
from optdp.certificates.base import Bound, Certificate
from optdp.exact import enclosures
from optdp.problem import Problem


@dataclass(frozen=True)
class TailsCertificate(Certificate):
    """The sum above: there is nothing to choose."""

    tag = "tails"

    def bound(self, problem: Problem) -> Bound:
        return by_pairs(problem, self._bound)

    def _bound(self, problem: Problem) -> Bound:
        privacy: Any = problem.privacy
        if reason := not_additive(problem):
            self._refuse(reason)
        q = problem.objective.loss.exponent
        if q not in (1.0, 2.0):
            self._refuse("it is for the losses abs and squared")
        if not enclosures.at_most(privacy.eps, 0):
            self._refuse("it is for eps = 0")
        delta = Fraction(privacy.delta)  # above 0: no noise keeps (0, 0)
        j = math.floor(1 / (2 * delta))
        # sums over 1..J of the rises of j^q, and of j times them
        plain, risen = (j, j * (j + 1) // 2) if q == 1 else (j * j, j * (j + 1) * (4 * j - 1) // 6)
        value = (plain - 2 * delta * risen) * Fraction(privacy.sensitivity) ** int(q)
        return Bound(enclosures.round_down(value), "the tails fall by at most delta per sensitivity, exact rationals")

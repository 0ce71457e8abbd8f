"""A lower bound on a quantile of |Y - x| from one on a probability.

If for every mechanism of a problem P(|Y - x| > t) > 1 - level at some input x, then P(|Y - x| <= t) < level there: the worst-case
level-quantile of |Y - x| is above t. The probability is the worst-case expectation of `optdp.Threshold(t)`, which is linear in
the mechanism: a certificate of that problem is all that is needed. On the integers |Y - x| is one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Annotated

from optdp.certificates.base import Bound, Certificate
from optdp.exact import Within, enclosures, show
from optdp.problem import Additive, Integers, Problem, Quantile, WorstCase
from optdp.problem.losses import Threshold


@dataclass(frozen=True)
class QuantileCertificate(Certificate):
    """A distance and a proof that errors above it are too probable.

    **Arguments:** `limit`: t, or 0 where nothing is proven; `proof`: a certificate for the same problem with the worst-case
    expectation of `optdp.Threshold(t)` as its objective.
    """

    tag = "quantile"
    limit: Annotated[float, Within(0.0)]
    proof: Certificate

    def bound(self, problem: Problem) -> Bound:
        objective = problem.objective
        if not isinstance(objective, Quantile):
            self._refuse("the objective must be a quantile of the error")
        if self.limit == 0:
            return Bound(0.0, "no error is negative")
        found = self.proof.bound(replace(problem, objective=WorstCase(Threshold(self.limit))))
        most = 1 - Fraction(objective.level)
        if not Fraction(found.value) > most:
            told = f"P(|Y - x| > {show(self.limit)}) >= {show(found.value)} is not above 1 - {show(objective.level)}"
            self._refuse(told)
        whole = isinstance(problem.domain, Integers) and isinstance(problem.family, Additive)
        value = enclosures.round_down(Fraction(math.floor(self.limit) + 1)) if whole else self.limit
        return Bound(value, f"errors above {show(self.limit)} are too probable: {found.method}", found.assumptions)

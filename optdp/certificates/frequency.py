"""Why no unbiased eps-LDP mechanism for one-hot vectors has a smaller error: a dual with one number.

Let a message y have the probabilities k_1, ..., k_d under the d categories and stand for the vector v, and let s = sum_i k_i.
Unbiased means sum_y v_j k_i(y) = 1 if i = j, else 0. The worst error is at least the average one, (1/d) sum_y s |v|^2 - 1. With
multipliers A/d for the equations with i = j and (1 - A)/d^2 for all of them,

    (1/d) sum_y s |v|^2  >=  2 A + 2 (1 - A)/d + sum_y min_v [ s |v|^2/d - 2 sum_j v_j (A k_j/d + (1 - A) s/d^2) ]
                          =  2 A + 2 (1 - A)/d - A^2 sum_y (sum_j k_j^2)/(d s) - (1 - A^2)/d,

where sum_y s = d. A message of an eps-LDP mechanism has max k <= E min k. There (sum_j k_j^2)/s^2 is quasiconvex (a norm over a
linear form), so that it is largest where every k is either the least or E times the least: at most rho, the maximum of
(w E^2 + d - w)/(w E + d - w)^2 over integers w. Hence, for every A >= 0,

    worst error  >=  2 A (1 - 1/d) + 1/d - A^2 (rho - 1/d) - 1.

rho grows with E, so that a rational above e^eps proves it exactly.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

from optdp.certificates.base import Bound, Certificate
from optdp.closed_forms.frequency import best_size, concentration
from optdp.exact import enclosures, require
from optdp.exact.fields import Within
from optdp.problem.domains import OneHot
from optdp.problem.objectives import Average, WorstCase
from optdp.problem.privacy import LDP

if TYPE_CHECKING:
    from optdp.problem.problem import Problem

#: The multiplier is at most this large.
LARGEST = 2.0**200


@dataclass(frozen=True)
class FrequencyCertificate(Certificate):
    """The multiplier A of the equations E[Y_i | x = e_i] = 1.

    **Proves** bounds for the worst case and the average under the uniform prior of |Y - x|^2, over unbiased mechanisms.
    """

    tag = "frequency"
    multiplier: Annotated[float, Within(0.0, LARGEST)]

    def bound(self, problem: Problem) -> Bound:
        privacy, domain, objective = problem.privacy, problem.domain, problem.objective
        if not isinstance(privacy, LDP) or not enclosures.at_most(privacy.eps, require.MAX_EPS):
            self._refuse("it is for local differential privacy with eps at most 30")
        if not isinstance(domain, OneHot) or not problem.unbiased:
            self._refuse("it is for unbiased mechanisms on one-hot vectors")
        averaged = isinstance(objective, Average) and objective.prior == "uniform"
        if not (averaged or isinstance(objective, WorstCase)) or objective.loss.exponent != 2:
            self._refuse("it is for the worst case or the uniform average of the squared error")
        d, ratio, a = domain.d, enclosures.exp_above(privacy.eps, 200), Fraction(self.multiplier)
        rho = concentration(ratio, d, best_size(ratio, d))
        value = 2 * a * (1 - Fraction(1, d)) + Fraction(1, d) - a * a * (rho - Fraction(1, d)) - 1
        return Bound(max(0.0, enclosures.round_down(value)), "dual with one multiplier, exact rationals")


def certify(problem: Problem) -> FrequencyCertificate:
    """The best multiplier, (1 - 1/d)/(rho - 1/d), as a float."""
    d, ratio = problem.domain.d, enclosures.exp_above(problem.privacy.eps, 200)  # type: ignore[attr-defined]
    rho = concentration(ratio, d, best_size(ratio, d))
    return FrequencyCertificate(float((1 - Fraction(1, d)) / (rho - Fraction(1, d))))

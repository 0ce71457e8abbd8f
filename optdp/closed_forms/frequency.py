"""The least error of unbiased frequency oracles in closed form, and the size of the sets that attain it.

A message that w of the d categories send with e^eps times the probability of the others has the concentration

    rho(w) = (sum_i K_i^2)/(sum_i K_i)^2 = (w E^2 + d - w)/(w E + d - w)^2,        E = e^eps,

largest at the floor or the ceiling of d/(E + 1) (at least 1), and the least worst-case E|Y - e_i|^2 is

    (1 - 1/d)^2/(rho - 1/d) - (1 - 1/d)                                   (`optdp.certificates.frequency`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from optdp.exact.enclosures import exp_below
from optdp.exact.require import MAX_EPS
from optdp.problem import LDP, OneHot, Problem, WorstCase

if TYPE_CHECKING:
    from sympy import Expr


def concentration(ratio: Fraction, d: int, size: int) -> Fraction:
    """rho(w) for the ratio E of the probabilities."""
    return (size * ratio**2 + d - size) / (size * ratio + d - size) ** 2


def best_size(ratio: Fraction, d: int) -> int:
    """The w in [1, d - 1] with the largest rho: rho rises up to d/(E + 1) and falls from there."""
    middle = int(d / (ratio + 1))
    return max({min(max(w, 1), d - 1) for w in (middle, middle + 1)}, key=lambda w: concentration(ratio, d, w))


def optimal_value(d: int, size: int) -> Expr:
    """The error with sets of this size, as an expression in `eps`; the optimum where no other size is better."""
    import sympy as sp  # here: the certificate uses the functions above, and needs no sympy

    eps = sp.Symbol("eps", positive=True)
    ratio, share = sp.exp(eps), 1 - sp.Rational(1, d)
    rho = (size * ratio**2 + d - size) / (size * ratio + d - size) ** 2
    return share**2 / (rho - sp.Rational(1, d)) - share


def optimum(problem: Problem) -> Expr | None:
    """The closed form for all unbiased mechanisms on one-hot vectors, with the best size at the problem's eps."""
    privacy, domain = problem.privacy, problem.domain
    if not isinstance(privacy, LDP) or not isinstance(domain, OneHot) or not isinstance(problem.objective, WorstCase):
        return None
    if problem.loss.exponent != 2 or not problem.unbiased or not 0 < float(privacy.eps) <= MAX_EPS:
        return None
    return optimal_value(domain.d, best_size(exp_below(privacy.eps), domain.d))

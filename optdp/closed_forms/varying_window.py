"""The least worst-case variance of unbiased LDP mechanisms for a number: `optdp.mechanisms.varying_window` attains it.

On [-1, 1], with E = e^eps and tau = tanh(eps/2): coth(eps/2) coth(tau) - 1 as long as 2 tanh(tau) + tau <= 1, which is
eps <= 0.712285; then (E (E + 2) z - (E - 2))/(E - 1) with z = 1/(E - (E + 1) log(1 + 2/E)/2), as long as
(E + 1) log(1 + 2/E) >= E - 2, which is eps <= 1.393027. Beyond, the latter is still a lower bound. Claims OPTT-20x and OPTT-20y
check both proofs symbolically. From there to eps = 2.016032: `split_variance`, claim D-OPTT-11.

**Dual of the window alone.** With Lam = 1/sinh(tau)^2 the weights are a density on [-1, 1] and an atom at each end,

    lam(x) = sinh(tau) / (2 tau (1 + x^2 sinh(tau)^2)^(3/2))   of mass M = tanh(tau)/tau,   a = (1 - M)/2 at x = 1 and
    at x = -1,

reduced costs r(x, y) = lam(x) (y^2 - 2 x y - Lam) inside and r(+-1, y) = a y^2 -+ m y - n at the ends. For y > 0 put
theta = (y^2 - Lam)/(2y): inputs x > theta are favoured, and dividing by 2y,

    g(y)/(2y) = M theta - (E - 1) Phi(theta) + (E + 1)(a Lam - n)/(2y) + (E + 1) a theta - (E - 1) m/2,   Phi(theta) =
    int_theta^1 lam(x) (x - theta) dx.

This vanishes for all theta in [-1, 1] iff Phi'' = lam is the density above and Phi(1) = Phi'(1) = 0, Phi'(-1) = -M,
which fixes a, m and n (`tests/test_window.py` derives them). Outside that range g is a convex quadratic that leaves it
with slope 0, or, once r(1, y) > 0 between the two branches, a quadratic growing from g(0) = Lam (1 - (E - 1) M). So the dual is
feasible iff (E - 1) M <= 1, which is the first limit; beyond it an output at 0 pays. By symmetry y < 0 is the same.
"""

from fractions import Fraction
from typing import Any

import sympy as sp

from optdp.problem import LDP, AllMechanisms, Interval, Problem, WorstCase

eps = sp.Symbol("eps", positive=True)

#: Up to this eps the window alone is optimal, up to that one the window with atoms (both rounded down).
WINDOW_LIMIT = 0.712285
LIMIT = 1.393027
#: From just above `LIMIT` to this eps (rounded down) `split_variance` is the optimum.
SPLIT_LIMIT = 2.016032


def share() -> sp.Expr:
    """z: on [-1, 1] the window serves the inputs with |x| <= z."""
    e = sp.exp(eps)
    return 1 / (e - (e + 1) * sp.log(1 + 2 / e) / 2)


def window_variance(width: Fraction | int = 2) -> sp.Expr:
    """The variance of the window alone at every input of an interval of this width, for every eps."""
    return sp.Rational(width) ** 2 / 4 * (sp.coth(eps / 2) * sp.coth(sp.tanh(eps / 2)) - 1)


def atoms_variance(width: Fraction | int = 2) -> sp.Expr:
    """The variance of the window with atoms: optimal between the two limits, a lower bound for every eps above the first."""
    e = sp.exp(eps)
    return sp.Rational(width) ** 2 / 4 * (e * (e + 2) * share() - (e - 2)) / (e - 1)


def split_parameter(e: Any, log: Any) -> Any:
    """The right-hand side R of log(t) + E t/4 = R, with E = `e` and log(1 + 2/E) = `log`."""
    return ((e + 1) * (e + 4) * log + 8) / (4 * (e + 2))


def split_value(e: Any, t: Any) -> Any:
    """The variance on [-1, 1] for E = `e` and the root t."""
    return (e * (e + 2) * t**2 + 4 * e * t + 8) / ((e - 1) * (4 + 2 * e * t - e * t**2))


def split_variance(width: Fraction | int = 2) -> sp.Expr:
    """The variance of the window with outputs around 0, optimal between `LIMIT` and `SPLIT_LIMIT`.

    On [-1, 1] it is (E (E + 2) t^2 + 4 E t + 8)/((E - 1)(4 + 2 E t - E t^2)), where log(t) + E t/4 = R, R = ((E + 1)(E + 4)
    log(1 + 2/E) + 8)/(4 (E + 2)), so that t = (4/E) W((E/4) e^R) with Lambert's W.
    """
    e = sp.exp(eps)
    t = 4 / e * sp.LambertW(e / 4 * sp.exp(split_parameter(e, sp.log(1 + 2 / e))))
    return sp.Rational(width) ** 2 / 4 * split_value(e, t)


def optimum(problem: Problem) -> sp.Expr | None:
    """The least worst-case variance over all unbiased eps-LDP mechanisms on an interval, where a mechanism attains it."""
    domain, objective = problem.domain, problem.objective
    if not isinstance(problem.privacy, LDP) or not isinstance(domain, Interval) or not isinstance(objective, WorstCase):
        return None
    alone = len(problem.constraints) == 1 and problem.unbiased and isinstance(problem.family, AllMechanisms)
    at = float(problem.privacy.eps)
    if not alone or objective.loss.exponent != 2.0 or not 0 < at <= SPLIT_LIMIT:
        return None
    if any(0 < at - limit <= 1e-6 for limit in (WINDOW_LIMIT, LIMIT)):
        return None  # the limits themselves lie within 1e-6
    form = window_variance if at <= WINDOW_LIMIT else atoms_variance if at <= LIMIT else split_variance
    return form(domain.exact_width)

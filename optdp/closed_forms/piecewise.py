"""The optimal piecewise mechanism in closed form (OGPM), derived by sympy from the stationarity condition.

With u = 1/w the reciprocal of the window's share, the optimum for L = d^q solves u^(q+1) - (q+1) u - q (e^eps - 1) = 0
on u >= 1 (`optdp.design.piecewise`) and is (reach/u)^q. q = 1 is the paper's mechanism, of height e^(eps/2); for q = 2
the paper leaves a number to the solver, and the cubic has the closed form given here.
"""

from fractions import Fraction
from functools import cache

import sympy as sp

from optdp.problem import LDP, AllMechanisms, Average, Circle, Interval, Piecewise, Problem, WorstCase

eps = sp.Symbol("eps", positive=True)


@cache
def window_share(q: int) -> sp.Expr:
    """The window's share of the domain, as an expression in `eps`, for q = 1 or 2. Valid for every eps > 0.

    q = 1: 1/(e^(eps/2) + 1). q = 2: 1/(2 cosh(acosh(e^eps - 1)/3)), where acosh is imaginary for eps < ln 2 and its
    hyperbolic cosine a cosine. **Raises** ValueError for other q, where the trinomial has no simple root.
    """
    if q == 1:
        u, s = sp.symbols("u s", positive=True)  # s: e^(eps/2)
        root = next(r for r in sp.solve(u**2 - 2 * u - (s**2 - 1), u) if r.subs(s, 2) > 1)
        return sp.simplify(1 / root).subs(s, sp.exp(eps / 2))
    if q == 2:
        # u = 2 cosh(a) turns u^3 - 3 u into 2 cosh(3 a).
        return 1 / (2 * sp.cosh(sp.acosh(sp.exp(eps) - 1) / 3))
    raise ValueError(f"q = {q!r} is not allowed: q must be 1 or 2")


def trinomial(q: int, u: sp.Expr) -> sp.Expr:
    """u^(q+1) - (q+1) u - q (e^eps - 1), zero at the optimum: derived from V'(w) = 0."""
    w, x = sp.symbols("w x", positive=True)
    growth = sp.exp(eps) - 1
    loss = sp.integrate(x**q, (x, 0, 1)) + growth * sp.integrate(x**q, (x, 0, w))
    slope = sp.numer(sp.together(sp.diff(loss / (1 + growth * w), w)))
    return -sp.expand(sp.simplify(slope.subs(w, 1 / u) * u ** (q + 1) / growth))


def optimal_value(q: int, reach: Fraction | int = 1) -> sp.Expr:
    """The least worst-case E[d^q] over all mechanisms with heights shared by all inputs, as an expression in `eps`.

    `reach`: width of the interval or half the period of the circle, exactly.
    """
    return sp.Rational(reach) ** q * window_share(q) ** q


def optimal_height(q: int, width: Fraction | int = 1) -> sp.Expr:
    """The density inside the window, per unit of a domain of the given width: E/(width (1 + (E - 1) w))."""
    return sp.exp(eps) / (sp.Rational(width) * (1 + (sp.exp(eps) - 1) * window_share(q)))


def uniform_value(q: int, reach: Fraction | int = 1) -> sp.Expr:
    """What the uniform density loses at an end of the interval (the two-piece optimum) or anywhere on a circle."""
    return sp.Rational(reach) ** q / (q + 1)


def optimum(problem: Problem) -> sp.Expr | None:
    """The closed form of a problem's optimum, where the best three-piece mechanism attains it."""
    domain, family, loss = problem.domain, problem.family, problem.objective.loss
    circle = isinstance(domain, Circle)
    averaged = circle and isinstance(problem.objective, Average) and problem.objective.prior == "uniform"
    if not (isinstance(problem.objective, WorstCase) or averaged) or loss.exponent not in (1.0, 2.0):
        return None
    if not isinstance(problem.privacy, LDP) or not isinstance(domain, Interval | Circle) or problem.constraints:
        return None
    if isinstance(family, Piecewise) or (circle and isinstance(family, AllMechanisms)):
        few = isinstance(family, Piecewise) and family.m == 2 and not circle
        return (uniform_value if few else optimal_value)(int(loss.exponent), domain.exact_reach)
    return None

"""The optimal kernel for the squared loss in closed form, with the dual point that proves it optimal.

**Squared loss on [0, 1].** Value E/(1 + E)^2, for eps <= ln(3 + 2 sqrt 2). Dual: weights 1/2 at the inputs 0 and 1
and nothing else (a fair coin), masses nu = E/(2 (1 + E)^2) each: then g(y) >= 0 with equality at y = 1/(1 + E) and
E/(1 + E). This bound holds for every eps. It is attained by two outputs, at those points, the upper one with
probability linear in x from 1/(1 + E) to E/(1 + E), as long as the error at x = 1/2 does not exceed that at the ends.
"""

import math
from fractions import Fraction
from functools import cache

import sympy as sp

from optdp.exact.enclosures import at_most
from optdp.problem import LDP, AllMechanisms, Interval, Problem, WorstCase

eps = sp.Symbol("eps", positive=True)


def squared_value(width: Fraction | int = 1) -> sp.Expr:
    """The least worst-case squared error on an interval of this width, valid for eps <= `squared_limit()`."""
    return sp.Rational(width) ** 2 * sp.exp(eps) / (1 + sp.exp(eps)) ** 2


@cache
def squared_limit() -> sp.Expr:
    """The largest eps for which `squared_value` is the optimum: where the error at 1/2 overtakes that at the ends."""
    x, e = sp.Symbol("x", real=True), sp.Symbol("E", positive=True)
    error = two_point_error(x, e)
    return sp.log(max(sp.solve(sp.numer(sp.together(error.subs(x, sp.Rational(1, 2)) - error.subs(x, 0))), e)))


def two_point_error(x: sp.Expr, e: sp.Expr) -> sp.Expr:
    """E[(Y - x)^2] of the two outputs 1/(1 + E), E/(1 + E), the upper one with probability (1 + (E - 1) x)/(1 + E)."""
    low, high, up = 1 / (1 + e), e / (1 + e), (1 + (e - 1) * x) / (1 + e)
    return sp.expand(up * (high - x) ** 2 + (1 - up) * (low - x) ** 2)


def coin_dual(y: sp.Expr, e: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """The fair coin's dual: (bound, r at the input 0, r at the input 1) for an output y."""
    nu = e / (2 * (1 + e) ** 2)
    return 2 * nu, y**2 / 2 - nu, (1 - y) ** 2 / 2 - nu


def optimum(problem: Problem) -> sp.Expr | None:
    """The closed form of a problem's optimum, where one is proven: all mechanisms, worst-case squared error."""
    privacy, domain = problem.privacy, problem.domain
    asked = isinstance(problem.family, AllMechanisms) and isinstance(problem.objective, WorstCase)
    if not asked or not isinstance(privacy, LDP) or not isinstance(domain, Interval) or problem.loss.exponent != 2:
        return None
    if any(c.tag != "outputs" for c in problem.constraints) or not at_most(privacy.eps, 2.0):
        return None
    assert problem.outputs is not None
    free = problem.outputs[0] <= domain.lower and domain.upper <= problem.outputs[1]
    below = float(privacy.eps) < math.log(3 + 2 * math.sqrt(2)) - 1e-9
    return squared_value(domain.exact_width) if free and below else None

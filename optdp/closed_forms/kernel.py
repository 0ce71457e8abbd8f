"""The optimal kernel for the squared and the absolute loss in closed form, with the dual points that prove it optimal.

**Squared loss on [0, 1].** Value E/(1 + E)^2, for eps <= ln(3 + 2 sqrt 2). Dual: weights 1/2 at the inputs 0 and 1
and nothing else (a fair coin), masses nu = E/(2 (1 + E)^2) each: then g(y) >= 0 with equality at y = 1/(1 + E) and
E/(1 + E). This bound holds for every eps. It is attained by two outputs, at those points, the upper one with
probability linear in x from 1/(1 + E) to E/(1 + E), as long as the error at x = 1/2 does not exceed that at the ends.
Beyond: `optdp.closed_forms.squared_window`.

**Absolute loss on [0, 1].** Value (2 E^3 + 5 E^2 - 4 E + 1)/(4 E^2 (3 E - 1)), for eps <= log(E*) = 0.641439..., E* the root of
3 E^3 - 7 E^2 + 3 E = 1. Five outputs: 0 and 1, 1/2, and y = (2 E - 1)/(2 (3 E - 1)) and 1 - y (`abs_floor`). Dual: seven inputs,
0, 1/4, nu, 1/2 and their mirror images (`abs_prior`). Claim D-OGPM-8 checks both.
"""

import math
from fractions import Fraction
from functools import cache
from typing import Any

import sympy as sp

from optdp.problem import LDP, AllMechanisms, Interval, Problem, WorstCase

eps = sp.Symbol("eps", positive=True)

#: `abs_limit()`, rounded down.
_ABS_LIMIT = 0.641439


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


def abs_value(width: Fraction | int = 1) -> sp.Expr:
    """The least worst-case absolute error on an interval of this width for eps <= `abs_limit()`; attained for every eps."""
    e = sp.exp(eps)
    return sp.Rational(width) * (2 * e**3 + 5 * e**2 - 4 * e + 1) / (4 * e**2 * (3 * e - 1))


@cache
def abs_limit() -> sp.Expr:
    """The largest eps for which `abs_value` is the optimum: where the threshold nu of the input 0 falls to 3/8."""
    e = sp.Symbol("E", positive=True)
    nu = abs_prior(e)[0][2]
    return sp.log(max(sp.real_roots(sp.numer(sp.together(nu - sp.Rational(3, 8))), e)))


def abs_floor(e: Any) -> list[tuple[Any, Any]]:
    """The five outputs on [0, 1] with the floor at each, as rational functions of E = `e`."""
    side, middle = (e - 1) ** 2 / (2 * e**3), (e - 1) / (2 * e**3)
    y = (2 * e - 1) / (2 * (3 * e - 1))
    return [(0 * e, 1 / (2 * e)), (y, side), ((1 + 0 * e) / 2, middle), (1 - y, side), (1 + 0 * e, 1 / (2 * e))]


def abs_prior(e: Any) -> list[tuple[Any, Any, Any]]:
    """The prior on [0, 1/2] (the other half is its mirror image): inputs x, masses, and thresholds of |y - x|."""
    common = 2 * e**2 * (3 * e - 1)
    end, quarter = (e**3 + 3 * e**2 - 3 * e + 1) / common, (e - 1) ** 3 / common
    nu = (4 * e**2 - 3 * e + 1) / (2 * (e**3 + 3 * e**2 - 3 * e + 1))
    half, one = (1 + 0 * e) / 2, (1 + 0 * e) / 4
    return [
        (0 * e, end, nu),
        (one, quarter, one),
        (nu, (e - 1) * end / (2 * e), nu),
        (half, (e - 1) * quarter / (2 * e), half),
    ]


def optimum(problem: Problem) -> sp.Expr | None:
    """The closed form of a problem's optimum, where one is proven: all mechanisms, worst-case absolute or squared error."""
    power, at = problem.loss.exponent, of_kernels(problem)
    if at is None or power not in (1.0, 2.0):
        return None
    limit, value = (_ABS_LIMIT, abs_value) if power == 1 else (math.log(3 + 2 * math.sqrt(2)), squared_value)
    return value(problem.domain.exact_width) if at < limit - 1e-9 else None


def of_kernels(problem: Problem) -> float | None:
    """eps, if the least worst case over all eps-LDP mechanisms on an interval is asked for, with outputs anywhere in it."""
    domain, outputs = problem.domain, problem.outputs
    asked = isinstance(problem.family, AllMechanisms) and isinstance(problem.objective, WorstCase)
    if not asked or not isinstance(problem.privacy, LDP) or not isinstance(domain, Interval):
        return None
    if any(c.tag != "outputs" for c in problem.constraints) or outputs is None:
        return None
    return float(problem.privacy.eps) if outputs[0] <= domain.lower and domain.upper <= outputs[1] else None

"""Two optimal kernels in closed form, with the dual points that prove them optimal.

**Squared loss on [0, 1].** Value E/(1 + E)^2, for eps <= ln(3 + 2 sqrt 2). Dual: weights 1/2 at the inputs 0 and 1
and nothing else (a fair coin), masses nu = E/(2 (1 + E)^2) each: then g(y) >= 0 with equality at y = 1/(1 + E) and
E/(1 + E). This bound holds for every eps. It is attained by two outputs, at those points, the upper one with
probability linear in x from 1/(1 + E) to E/(1 + E), as long as the error at x = 1/2 does not exceed that at the ends.

**Unbiased, worst-case variance on [-1, 1].** With tau = tanh(eps/2), value V = coth(eps/2) coth(tau) - 1, the
variance at every x, for every eps up to the root eps* = 0.7122... of tanh(tanh(eps/2)) = 1/(e^eps + 1). Mechanism:
`optdp.mechanisms.EqualiserMechanism`. Dual: with Lam = 1/sinh(tau)^2 the weights are a density on [-1, 1] and an atom
at each end,

    lam(x) = sinh(tau) / (2 tau (1 + x^2 sinh(tau)^2)^(3/2))   of mass M = tanh(tau)/tau,   a = (1 - M)/2 at x = 1 and
    at x = -1,

reduced costs r(x, y) = lam(x) (y^2 - 2 x y - Lam) inside and r(+-1, y) = a y^2 -+ m y - n at the ends. For y > 0 put
theta = (y^2 - Lam)/(2y): inputs x > theta are favoured, and dividing by 2y,

    g(y)/(2y) = M theta - (E - 1) Phi(theta) + (E + 1)(a Lam - n)/(2y) + (E + 1) a theta - (E - 1) m/2,   Phi(theta) =
    int_theta^1 lam(x) (x - theta) dx.

This vanishes for all theta in [-1, 1] iff Phi'' = lam is the density above and Phi(1) = Phi'(1) = 0, Phi'(-1) = -M,
which fixes a, m and n (`equaliser_dual`). Outside that range g is a convex quadratic that leaves it with slope 0, or,
once r(1, y) > 0 between the two branches, a quadratic growing from g(0) = Lam (1 - (E - 1) M). So the dual is
feasible iff (E - 1) M <= 1, which is eps <= eps*; beyond eps* an output at 0 pays, and the equaliser is not optimal
any more. By symmetry y < 0 is the same.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import sympy as sp

from optdp.exact.enclosures import at_most
from optdp.problem.domains import Interval
from optdp.problem.families import AllMechanisms
from optdp.problem.objectives import WorstCase
from optdp.problem.privacy import LDP
from optdp.problem.problem import Problem

eps = sp.Symbol("eps", positive=True)


def squared_value(width: Fraction | int = 1) -> sp.Expr:
    """The least worst-case squared error on an interval of this width, valid for eps <= `squared_limit()`."""
    return _rational(width) ** 2 * sp.exp(eps) / (1 + sp.exp(eps)) ** 2


@cache
def squared_limit() -> sp.Expr:
    """The largest eps for which `squared_value` is the optimum: where the error at 1/2 overtakes that at the ends."""
    x, e = sp.Symbol("x", real=True), sp.Symbol("E", positive=True)
    error = two_point_error(x, e)
    roots = sp.solve(sp.numer(sp.together(error.subs(x, sp.Rational(1, 2)) - error.subs(x, 0))), e)
    return sp.log(max(roots))


def two_point_error(x: sp.Expr, e: sp.Expr) -> sp.Expr:
    """E[(Y - x)^2] of the two outputs 1/(1 + E), E/(1 + E), the upper one with probability (1 + (E - 1) x)/(1 + E)."""
    low, high, up = 1 / (1 + e), e / (1 + e), (1 + (e - 1) * x) / (1 + e)
    return sp.expand(up * (high - x) ** 2 + (1 - up) * (low - x) ** 2)


def coin_dual(y: sp.Expr, e: sp.Expr) -> tuple[sp.Expr, sp.Expr, sp.Expr]:
    """The fair coin's dual: (bound, r at the input 0, r at the input 1) for an output y."""
    nu = e / (2 * (1 + e) ** 2)
    return 2 * nu, y**2 / 2 - nu, (1 - y) ** 2 / 2 - nu


def equaliser_value(width: Fraction | int = 2) -> sp.Expr:
    """The least worst-case variance of an unbiased mechanism on an interval of this width, for eps <= `equaliser_limit()`."""
    return (_rational(width) / 2) ** 2 * (sp.coth(eps / 2) * sp.coth(sp.tanh(eps / 2)) - 1)


def equaliser_limit() -> float:
    """eps* = 0.7122..., below which `equaliser_value` is the optimum."""
    return float(sp.nsolve(sp.tanh(sp.tanh(eps / 2)) - 1 / (sp.exp(eps) + 1), eps, 0.7, prec=30))


class EqualiserDual(NamedTuple):
    """The dual point: density of the weights at x, atom a at the ends, and m, n of the ends' reduced cost a y^2 -+ m y - n."""

    density: sp.Expr
    atom: sp.Expr
    tilt: sp.Expr
    level: sp.Expr


def equaliser_dual(x: sp.Expr, tau: sp.Expr, e: sp.Expr) -> EqualiserDual:
    """Derived from g = 0: two linear equations for a and (E + 1)(a Lam - n)/2, one for m.

    `tau` = tanh(eps/2) and `e` = e^eps may be symbols; only tau = (e - 1)/(e + 1) makes them a dual point.
    """
    a, b, m = sp.symbols("a b m")
    lam = 1 / sp.sinh(tau) ** 2
    root = sp.coth(tau)  # sqrt(1 + Lam)
    # (E - 1) Phi(theta) = (M + (E + 1) a) theta - (E - 1) m/2 + b (sqrt(theta^2 + Lam) - theta)/Lam with M = 1 - 2 a.
    mass = 1 - 2 * a
    at_one = mass + (e + 1) * a + b / lam * (1 / root - 1)  # (E - 1) Phi'(1) = 0
    at_minus_one = mass + (e + 1) * a - b / lam * (1 / root + 1) + (e - 1) * mass  # (E - 1) (Phi'(-1) + M) = 0
    end = mass + (e + 1) * a - (e - 1) * m / 2 + b * (root - 1) / lam  # (E - 1) Phi(1) = 0
    found = sp.solve([at_one, at_minus_one, end], [a, b, m], dict=True)[0]
    density = found[b] / ((e - 1) * (x**2 + lam) ** sp.Rational(3, 2))
    return EqualiserDual(density, found[a], found[m], found[a] * lam - 2 * found[b] / (e + 1))


def _rational(number: Fraction | int) -> sp.Rational:
    exact = Fraction(number)
    return sp.Rational(exact.numerator, exact.denominator)


def optimum(problem: Problem) -> sp.Expr | None:
    """The closed form of a problem's optimum, where one is proven: all mechanisms, worst-case squared error or variance."""
    privacy, domain = problem.privacy, problem.domain
    asked = isinstance(problem.family, AllMechanisms) and isinstance(problem.objective, WorstCase)
    if not asked or not isinstance(privacy, LDP) or not isinstance(domain, Interval) or problem.loss.exponent != 2:
        return None
    if any(c.tag not in ("unbiased", "outputs") for c in problem.constraints) or not at_most(privacy.eps, 2.0):
        return None
    value = float(privacy.eps)
    if problem.unbiased:
        below = math.tanh(math.tanh(value / 2)) * (math.exp(value) + 1) < 1 - 1e-9
        return equaliser_value(domain.exact_width) if problem.outputs is None and below else None
    assert problem.outputs is not None
    free = problem.outputs[0] <= domain.lower and domain.upper <= problem.outputs[1]
    return squared_value(domain.exact_width) if free and value < math.log(3 + 2 * math.sqrt(2)) - 1e-9 else None

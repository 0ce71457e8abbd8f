"""Closed forms around the optimal additive noise, as sympy expressions in `eps`, `delta` and the sensitivity."""

from fractions import Fraction
from functools import cache

import sympy as sp

from optdp.problem import Additive, ApproxDP, At, Average, Line, Problem, Unbiased, WorstCase

eps, delta = sp.symbols("eps delta", positive=True)


@cache
def staircase_stair(q: int) -> sp.Expr:
    """Where in each step of one sensitivity the optimal density drops (delta = 0), for E|Z|^q, q = 1 or 2: derived here.

    **Source:** Geng and Viswanath, "The optimal noise-adding mechanism in differential privacy".
    """
    g, b, moment = _staircase_moment(q)
    if q == 1:
        root = next(r for r in sp.solve(sp.numer(sp.together(sp.diff(moment, g))), g) if 0 < r.subs(b, 0.3) < 1)
        return sp.simplify(root).subs(b, sp.exp(-eps))
    # The numerator of the derivative is b - 2 b^2 + ... : a cubic in g + b/(1 - b) without linear and square terms.
    d = sp.Symbol("d", positive=True)
    cubic = sp.Poly(sp.expand(sp.numer(sp.together(sp.diff(moment, g))).subs(g, (d - b) / (1 - b)) * (1 - b) ** 3), d)
    cube = sp.factor(sp.simplify(-cubic.coeff_monomial(1) / cubic.coeff_monomial(d**3)))
    if any(sp.simplify(cubic.coeff_monomial(d**k)) != 0 for k in (1, 2)):
        raise ArithmeticError("the stair's equation is not a pure cubic")
    return ((sp.cbrt(cube) - b) / (1 - b)).subs(b, sp.exp(-eps))


def _staircase_moment(q: int) -> tuple[sp.Symbol, sp.Symbol, sp.Expr]:
    """(gamma, b, E|Z|^q for sensitivity 1 of the staircase with stair gamma and ratio b), summed symbolically."""
    if q not in (1, 2):
        raise ValueError(f"q = {q!r} is not allowed: q must be 1 or 2")
    g, b, k = sp.symbols("g b k", positive=True)
    x = sp.Symbol("x", positive=True)
    top = (1 - b) / (2 * (g + b * (1 - g)))
    step = sp.expand(sp.integrate(x**q, (x, k, k + g)) + b * sp.integrate(x**q, (x, k + g, k + 1)))
    # sum_k b^k k^j for j = 0, 1, 2
    sums = {0: 1 / (1 - b), 1: b / (1 - b) ** 2, 2: b * (1 + b) / (1 - b) ** 3}
    total = sum(sp.Poly(step, k).coeff_monomial(k**j) * sums[j] for j in range(q + 1))
    return g, b, sp.simplify(2 * top * total)


@cache
def _staircase_unit(q: int) -> sp.Expr:
    g, b, moment = _staircase_moment(q)
    value = moment.subs(g, staircase_stair(q).subs(sp.exp(-eps), b))
    if q == 1:
        s = sp.Symbol("s", positive=True)  # e^(eps/2)
        return sp.simplify(sp.simplify(value.subs(b, s**-2))).subs(s, sp.exp(eps / 2))
    return value.subs(b, sp.exp(-eps))


def staircase(q: int, sensitivity: float | Fraction = 1) -> sp.Expr:
    """The least E|Z|^q under eps-differential privacy (delta = 0), q = 1 or 2, valid for every eps > 0."""
    return _staircase_unit(q) * sp.Rational(sensitivity) ** q


def uniform(q: int, delta_value: float | Fraction | sp.Expr = delta, sensitivity: float | Fraction = 1) -> sp.Expr:
    """The least E|Z|^q of uniform noise with an atom at 0 under (0, delta)-differential privacy, q = 1 or 2.

    Mass a at 0 and 1 - a spread over a width W: the divergence at shift d is a + (1 - a) d/W <= delta, so that
    W = (1 - a) Delta/(delta - a) and E|Z|^q = (1 - a) (W/2)^q/(q + 1). It is least at a = 0 until delta = q/(q + 1).

    Over *all* noise this is the optimum for q = 1 where 1/(2 delta) is an integer and for delta >= 1/2, as far as brackets of
    `solve_additive` tell; elsewhere, and for q = 2, they prove that other noise is better.
    """
    if q not in (1, 2):
        raise ValueError(f"q = {q!r} is not allowed: q must be 1 or 2")
    level = delta_value if isinstance(delta_value, sp.Expr) else sp.Rational(delta_value)
    width = sp.Rational(sensitivity)
    a, e = sp.symbols("a e", positive=True)
    spread = (1 - a) * ((1 - a) / (e - a) / 2) ** q / (q + 1)
    atom = next(r for r in sp.solve(sp.numer(sp.together(sp.diff(spread, a))), a) if r.subs(e, 0.9) < 0.9)
    plain, atomic = spread.subs(a, 0).subs(e, level), sp.simplify(spread.subs(a, atom)).subs(e, level)
    return sp.Piecewise((plain, level <= next(iter(sp.solve(atom, e)))), (atomic, True)) * width**q


def optimum(problem: Problem) -> sp.Expr | None:
    """The closed form of a problem's optimum: the staircase for delta = 0, uniform noise for eps = 0 where that is best."""
    privacy, objective = problem.privacy, problem.objective
    additive = isinstance(problem.domain, Line) and isinstance(problem.family, Additive)
    if not isinstance(privacy, ApproxDP) or not additive or not isinstance(objective, WorstCase | Average | At):
        return None
    if not all(isinstance(c, Unbiased) for c in problem.constraints):
        return None
    if objective.loss.exponent not in (1, 2) or (privacy.eps != 0 and privacy.delta != 0):
        return None
    q, level = int(objective.loss.exponent), Fraction(privacy.delta)  # type: ignore[arg-type]
    if level == 0:
        return staircase(q, privacy.sensitivity)
    if q == 1 and (level >= Fraction(1, 2) or (1 / (2 * level)).denominator == 1):
        return uniform(q, sensitivity=privacy.sensitivity)
    return None

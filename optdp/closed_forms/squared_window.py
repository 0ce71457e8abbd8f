r"""The least worst-case squared error on [0, 1] beyond eps = ln(3 + 2 sqrt 2): windows that split around the middle.

With L(w) = log(w)/2, 1 <= w <= 1 + 2/E, e = (E - w)/(2 (E + 1)) and f = e/w, outputs lie at distances between f and e from the
middle, with the floor 1/(2 (E - 1) |y - 1/2|) there (log-uniform), atoms at the ends of both intervals, and perhaps an atom beta
at 1/2. Up to |x - 1/2| = h = (e - f)/2 the favoured outputs move with x, the error is the same at every x and the mean is x;
outside, the whole half on the side of x is favoured. The prior that proves optimality has atoms at 0 and 1, and a density on
[1/2 - h, 1/2 + h] in elementary functions. Its bound `bound` holds for every w in [1, 1 + 2/E] and E > 2:

- from ln(3 + 2 sqrt 2) to `limit_one` = 2.114011... the best w makes it the optimum, without an output at 1/2 (`value`);
- from there to `limit_two` = 2.722331... w = 1 + 2/E does, with outputs at 1/2, 1/E <= y <= 2/(E + 2) and 1 - y: `windows_value`.

Proofs: claim D-OGPM-7 (`optdp.audit.ogpm.squared`).
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy as sp
from flint import arb, ctx

from optdp.closed_forms.kernel import of_kernels
from optdp.exact import Number, enclosures
from optdp.exact.enclosures import PRECISION, ball
from optdp.problem import Problem

eps = sp.Symbol("eps", positive=True)

#: Between these eps (rounded inwards) `windows_value` is the optimum.
LIMIT_ONE, LIMIT_TWO = 2.114012, 2.722331


def threshold(e: Any, w: Any) -> Any:
    """nu_0: the end inputs favour outputs up to the square root of this."""
    far = (e - w) / (2 * (e + 1))
    return (1 + 4 * (far**2 - (e - 1) / (e + 1) * far + (w - 1) ** 2 * far**2 / (w * (e - w)))) / 4


def bound(e: Any, w: Any, log: Any) -> Any:
    """The prior's bound for E = `e` and the parameter w; `log` is log(w). For sympy expressions and balls alike."""
    far = (e - w) / (2 * (e + 1))
    end = (e - w) / ((w + 1) * (e - 1))  # the prior's mass at 0, and at 1
    return 2 * end * threshold(e, w) + log / 2 * (e + 1) / (e - 1) * far**2 / w


def slope(e: Any, w: Any, log: Any) -> Any:
    """-(error at 0 minus error at 1/2) (E - 1)^2 of the mechanism without an output at 1/2: of the sign of d bound/dw."""
    far = (e - w) / (2 * (e + 1))
    near, mass = far / w, 1 / (e + 1)
    atom = (mass - log / (2 * (e - 1))) / 2
    ends = mass / 2 + (e - 1) * (atom * (far**2 + near**2 - far - near) + mass / 4)
    spread = (far**2 - near**2) / 4 - (far - near) / 2
    middle = (e - 1) * 2 * atom * near**2 + (far * near - near**2) / 2
    return (middle - ends - spread) * (e - 1) ** 2


def windows_value(width: Fraction | int = 1) -> sp.Expr:
    """The optimum between the two limits; a lower bound for every eps > ln 2.

    (E - 2)/((E - 1)(E + 2)) (1 + (E + 1)(E - 2) log(1 + 2/E)/(8 E)).
    """
    e = sp.exp(eps)
    one = 1 + (e + 1) * (e - 2) * sp.log(1 + 2 / e) / (8 * e)
    return sp.Rational(width) ** 2 * (e - 2) / ((e - 1) * (e + 2)) * one


def value(at: Number) -> arb:
    """The optimum on [0, 1] for ln(3 + 2 sqrt 2) <= eps <= `limit_one`, enclosed. **Raises** ValueError for other eps.

    >>> value(2.0).str(12, radius=False)
    '0.106882995369'
    """
    with ctx.workprec(PRECISION):
        e = enclosures.exp(at)
        low, high = Fraction(1), 1 + 2 / enclosures.upper(e)
        if not (slope(e, ball(low), arb(0)) > 0 > slope(e, ball(high), ball(high).log())):
            raise ValueError(f"eps = {at!r} is not allowed: it must lie between ln(3 + 2 sqrt 2) and 2.114011")
        for _ in range(PRECISION // 2):
            middle = (low + high) / 2
            low, high = (middle, high) if slope(e, ball(middle), ball(middle).log()) > 0 else (low, middle)
        if not slope(e, ball(high), ball(high).log()) <= 0:
            raise ArithmeticError(f"no change of sign at {high}")
        w = ball(low).union(ball(high))
        return bound(e, w, w.log())


def without_middle(e: Any, log: Any) -> Any:
    """Positive from `limit_one` on, where an output at 1/2 pays; `log` is log(1 + 2/E)."""
    return e**2 - 7 * e + 2 - (e - 2) * (e + 1) * log


def with_middle(e: Any, log: Any) -> Any:
    """Positive up to `limit_two`, where the error between the ends and the middle overtakes."""
    return 2 * (e - 2) * (e + 1) * log - e**2 + 12 * e - 4


def optimum(problem: Problem) -> sp.Expr | None:
    """The least worst-case squared error over all eps-LDP mechanisms on an interval, between the two limits."""
    at = of_kernels(problem)
    if at is None or problem.loss.exponent != 2.0 or not LIMIT_ONE <= at <= LIMIT_TWO:
        return None
    return windows_value(problem.domain.exact_width)

"""The checks of D-OGPM-8: the least worst-case |y - x| for small eps, by identities between rational functions of E = e^eps.

Which input favours which output, and which outputs a row raises, is the same for every eps of the range: it depends only on
the order 0 <= 1 - 2 nu <= 1/4 <= y < nu <= 1/2, so that absolute values are resolved at one E and hold at all.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import sympy as sp

from optdp.closed_forms import kernel as forms

#: An E of the range, at which comparisons are read off.
SAMPLE = Fraction(3, 2)


def _at(f: Any) -> Fraction:
    """The value of a rational function at the sample."""
    number = sp.Rational(f.as_expr().subs(sp.Symbol("E"), sp.Rational(SAMPLE)))
    return Fraction(int(number.p), int(number.q))


def _distance(a: Any, b: Any) -> Any:
    """|a - b|, its sign as at the sample."""
    return a - b if _at(a - b) >= 0 else b - a


def order() -> bool:
    """0 <= 1 - 2 nu <= 1/4 < y < 1/3 < nu <= 1/2 for 1 < E <= E*, the root of 3 E^3 - 7 E^2 + 3 E - 1."""
    e = sp.Symbol("E")
    nu, y = forms.abs_prior(e)[0][2], forms.abs_floor(e)[1][0]
    cubic = 3 * e**3 - 7 * e**2 + 3 * e - 1
    scale = 8 * (e**3 + 3 * e**2 - 3 * e + 1)  # positive for E >= 1
    return (
        sp.cancel((nu - sp.Rational(3, 8)) * scale + cubic) == 0
        and sp.cancel((sp.Rational(1, 2) - nu) * scale - 4 * e**2 * (e - 1)) == 0
        and sp.cancel(y - sp.Rational(1, 4) - (e - 1) / (4 * (3 * e - 1))) == 0
        and sp.cancel(sp.Rational(1, 3) - y - 1 / (6 * (3 * e - 1))) == 0
        and sp.Poly(cubic, e).count_roots(1, None) == 1
        and cubic.subs(e, 1) < 0
        and sp.cancel(scale.subs(e, e + 1) / 8 - (e**3 + 6 * e**2 + 6 * e + 2)) == 0
    )


def dual() -> dict[str, bool]:
    """The reduced cost is linear between its kinks 0, 1 - 2 nu, 1/4, nu, 1/2: zero at all but 1 - 2 nu, positive there."""
    _, e = sp.field("E", sp.QQ)
    half = forms.abs_prior(e)
    prior = half + [(1 - x, mass, nu) for x, mass, nu in half]
    nu = half[0][2]

    def cost(y: Any) -> Any:
        total = 0 * e
        for x, mass, reach in prior:
            r = _distance(y, x) - reach
            total += mass * (e * r if _at(r) < 0 else r)
        return total

    kinks = {p for x, _, reach in prior for p in (x - reach, x, x + reach)}
    inside = {p for p in kinks if 0 <= _at(p) <= Fraction(1, 2)}
    return {
        "mass 1": sum(mass for _, mass, _ in prior) == 1,
        "kinks": inside == {0 * e, 1 - 2 * nu, (1 + 0 * e) / 4, nu, (1 + 0 * e) / 2},
        "zeros": all(cost(y) == 0 for y in inside - {1 - 2 * nu}),
        "positive between": cost(1 - 2 * nu) == 2 * e * half[1][1] * (2 * nu - sp.QQ(3, 4))
        and _nonnegative(half[1][1]),
        "bound": sum(mass * reach for _, mass, reach in prior) == _value(e),
    }


def primal() -> dict[str, bool]:
    """Three rows, each with an error that is convex in x, equal to the value at both ends of where it is used."""
    _, e = sp.field("E", sp.QQ)
    outputs = forms.abs_floor(e)
    y, side = outputs[1]
    end, middle = outputs[0][1], outputs[2][1]
    room = (1 - sum(m for _, m in outputs)) / (e - 1)
    quarter, half, turn = (1 + 0 * e) / 4, (1 + 0 * e) / 2, (1 - y) / 2
    rows = [  # inputs from, to, and the raised masses of the outputs 0, y, 1/2, 1 - y, 1
        (0 * e, quarter, [end, side, 0 * e, 0 * e, 0 * e]),
        (quarter, turn, [room - side - middle, side, middle, 0 * e, 0 * e]),
        (turn, half, [room - 2 * side - middle, side, middle, side, 0 * e]),
    ]

    def error(row: list[Any], x: Any) -> Any:
        return sum((m + (e - 1) * u) * _distance(p, x) for (p, m), u in zip(outputs, row, strict=True))

    limits = [(m, u) for _, _, row in rows for (_, m), u in zip(outputs, row, strict=True)]
    return {
        "mass 1": all(sum(row) == room for _, _, row in rows),
        "between the floor and E times it": all(_nonnegative(u) and _nonnegative(m - u) for m, u in limits),
        "errors": all(error(row, x) == _value(e) for start, stop, row in rows for x in (start, stop)),
        "the rows meet": rows[0][1] == rows[1][0]
        and rows[1][1] == rows[2][0]
        and rows[2][1] == half
        and rows[0][0] == 0,
    }


def _nonnegative(f: Any) -> bool:
    """Whether a rational function of E is >= 0 on (1, 2], beyond the range: positive at the sample, without zeros and poles."""
    e = sp.Symbol("E")
    factors = [sp.Poly(part.as_expr(), e) for part in (f.numer, f.denom)]
    for i, factor in enumerate(factors):
        while not factor.is_zero and factor.eval(1) == 0:
            factors[i] = factor = factor.quo(sp.Poly(e - 1, e))
    return bool(f == 0) or (_at(f) > 0 and all(factor.count_roots(1, 2) == 0 for factor in factors))


def _value(e: Any) -> Any:
    """The value in the field, from the printed expression."""
    printed = forms.abs_value().subs(sp.exp(forms.eps), sp.Symbol("E"))
    return e.field.from_expr(sp.cancel(printed))

"""The six composites A1-A3 x B1-B2 (composite DP, seed 004) by sympy, from their densities as its Eqs. (26)-(31) define them.

Areas, L, a, C_max and the variance follow by integration and by solving the conditions. B1 and B2 are treated alike: the base is
y - (y - t) x^4/L^4, and B1 is t = y.
"""

from __future__ import annotations

from functools import cache

import sympy as sp

from optdp import _checks

k, m, y, t, L, E, delta = sp.symbols("k m y t L E Delta", positive=True)
a, x, C_p = sp.symbols("a x C_p", real=True)

ACTIVATIONS = ("A1", "A2", "A3")
BASES = ("B1", "B2")


def activation(name: str) -> list[tuple[sp.Expr, sp.Expr, sp.Expr]]:
    """H as (lower end, upper end, expression in x), zero elsewhere: Eqs. (16), (18), (20)."""
    _checks.choice("activation", name, ACTIVATIONS)
    if name == "A1":
        return [(a, a + m, k)]
    if name == "A2":
        return [(a, a + m, k * sp.sin(sp.pi / m * (x - a)))]
    return [(a, a + m / 2, 2 * k / m * x - 2 * a * k / m), (a + m / 2, a + m, -2 * k / m * x + 2 * (a + m) * k / m)]


def base(name: str) -> sp.Expr:
    """G on [-L, L]: Eqs. (22), (24)."""
    return y if _checks.choice("base", name, BASES) == "B1" else y - (y - t) / L**4 * x**4


def moment(of: str, power: int) -> sp.Expr:
    """The integral of x^power H or x^power G."""
    if of in BASES:
        return sp.factor(sp.integrate(sp.expand(x**power * base(of)), (x, -L, L)))
    z = sp.Symbol("z", real=True)  # from the left end of the activation: sympy integrates shifted sines badly
    total = sum(sp.integrate(sp.expand((z + a) ** power * sp.simplify(f.subs(x, z + a))), (z, low - a, high - a))
                for low, high, f in activation(of))  # fmt: skip
    return sp.simplify(total)


@cache
def derive(activation: str, base: str) -> dict[str, sp.Expr]:
    """Everything the composite needs, in (k, m, y, t): areas S1 and S2, L, a(C_p), C_max, and the variance at C_p.

    `L`: from mass 1, S1 + S2 = 1. `a`: from the mean being C_p. `C_max`: the largest C_p for which [a, a + m] lies in [-L, L].
    `variance`: (int P x^2 - C_p^2)/C^2 with C = 2 C_max/Delta, in L too (short) and with the bump's place eliminated.
    """
    s1, s2 = moment(activation, 0), moment(base, 0)
    place = sp.solve(sp.Eq(moment(activation, 1) + moment(base, 1), C_p), a)[0]
    half = sp.solve(sp.Eq(s1 + s2, 1), L)[0]
    top = sp.solve(sp.Eq(place + m, L), C_p)[0]
    second = moment(activation, 2).subs(a, place) + moment(base, 2) - C_p**2
    return {
        "S1": s1,
        "S2": s2,
        "L": sp.simplify(half),
        "a": sp.simplify(place),
        "C_max": sp.simplify(top),
        "variance": sp.simplify(second / (2 * top / delta) ** 2),
    }


def variance(activation: str, base: str) -> sp.Expr:
    """The variance at C_p in (k, m, y, t, C_p, Delta), with L eliminated."""
    found = derive(activation, base)
    return found["variance"].subs(L, found["L"])


def shares(activation: str) -> tuple[sp.Expr, sp.Expr]:
    """(fill, spread) of the activation: mean height over peak, and the second moment of its density on [-1, 1]."""
    centred = {a: -m / 2}
    area = moment(activation, 0)
    fill = sp.simplify(area / (k * m))
    spread = sp.simplify(moment(activation, 2).subs(centred) / area / (m / 2) ** 2)
    return fill, spread


def printed() -> dict[str, sp.Expr]:
    """The seed's areas: Eqs. (17), (19), (21c), (23), (25)."""
    return {
        "A1": k * m,
        "A2": 2 * k * m / sp.pi,
        "A3": k * m / 2,
        "B1": 2 * y * L,
        "B2": 2 * L * (t - y) / 5 + 2 * L * y,
    }


def no_gain_from_b2(activation: str) -> dict[str, sp.Expr]:
    """The proof that B2 never beats B1, as expressions that are positive for 0 < e <= 1, s, w > 0 (see certificates.bump).

    `slope`: d log s/de - (1/e - 1/(4 + e)), for s ~ (E e - 1)/(4 + e); `margin`: 1/e - 1/(4 + e) - d log mu/de.
    """
    e = sp.Symbol("e", positive=True)
    scaled = base("B2").subs({y: 1, t: e, L: 1})
    level = sp.integrate(scaled, (x, -1, 1)) / 2
    spread = sp.integrate(sp.expand(scaled * x**2), (x, -1, 1)) / 2 / level
    odds = (E * e - 1) / level
    return {
        "slope": sp.factor(sp.diff(sp.log(odds), e) - (1 / e - 1 / (4 + e))),
        "margin": sp.factor(1 / e - 1 / (4 + e) - sp.diff(sp.log(spread), e)),
    }

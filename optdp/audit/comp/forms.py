"""The six composites A1-A3 x B1-B2 (composite DP) by sympy, from their densities as its Eqs. (26)-(31) define them.

Areas, L, a, C_max and the variance follow by integration and by solving the conditions. B1 and B2 are treated alike: the base is
y - (y - t) x^4/L^4, and B1 is t = y.
"""

from __future__ import annotations

from functools import cache

import sympy as sp

from optdp.exact import require

k, m, y, t, L, E, delta = sp.symbols("k m y t L E Delta", positive=True)
a, x, C_p = sp.symbols("a x C_p", real=True)

ACTIVATIONS = ("A1", "A2", "A3")
BASES = ("B1", "B2")


def activation(name: str) -> list[tuple[sp.Expr, sp.Expr, sp.Expr]]:
    """H as (lower end, upper end, expression in x), zero elsewhere: Eqs. (16), (18), (20)."""
    require.choice("activation", name, ACTIVATIONS)
    if name == "A1":
        return [(a, a + m, k)]
    if name == "A2":
        return [(a, a + m, k * sp.sin(sp.pi / m * (x - a)))]
    return [(a, a + m / 2, 2 * k / m * x - 2 * a * k / m), (a + m / 2, a + m, -2 * k / m * x + 2 * (a + m) * k / m)]


def base(name: str) -> sp.Expr:
    """G on [-L, L]: Eqs. (22), (24)."""
    return y if require.choice("base", name, BASES) == "B1" else y - (y - t) / L**4 * x**4


@cache
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
    `variance`: (int P x^2 - C_p^2)/C^2 with C = 2 C_max/Delta, in L too (short) and with the activation's place eliminated.
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
    """The paper's areas: Eqs. (17), (19), (21c), (23), (25)."""
    return {
        "A1": k * m,
        "A2": 2 * k * m / sp.pi,
        "A3": k * m / 2,
        "B1": 2 * y * L,
        "B2": 2 * L * (t - y) / 5 + 2 * L * y,
    }


def no_gain_from_b2(activation: str) -> dict[str, sp.Expr]:
    """The proof that B2 never beats B1, as expressions that are positive for 0 < e <= 1, s, w > 0 (`affine_window`).

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


# -- as published -----------------------------------------------------------------------------------------------------------
# The paper's Tables I (variances) and IV (constraints) are images. What they hold is taken from the code that the authors
# released with the paper (project CompositeDP, modules Constraints and Evaluation), written here in our own arrangement.


def released(activation: str, base: str) -> dict[str, sp.Expr]:
    """L, a(C_p), C_max, S1, S2 and the second moment about C_p (variance times C^2), as the authors' released code has them."""
    require.choice("activation", activation, ACTIVATIONS)
    require.choice("base", base, BASES)
    km, pi = k * m, sp.pi
    area = {"A1": km, "A2": 2 * km / pi, "A3": km / 2}[activation]
    room = {"A1": 1 - km, "A2": (pi - 2 * km) / pi, "A3": (2 - km) / 2}[activation]
    return {
        "L": room / (2 * y) if base == "B1" else 5 * room / (2 * (t + 4 * y)),
        "a": ({"A1": 2, "A2": pi, "A3": 4}[activation] * C_p - km * m) / (2 * km),
        "C_max": km * (2 * L - m) / {"A1": 2, "A2": pi, "A3": 4}[activation],
        "S1": area,
        "S2": 2 * L * y if base == "B1" else 2 * L * (t - y) / 5 + 2 * L * y,
        "second": {
            "A1": km * (a**2 + a * m + m**2 / 3),
            "A2": km * ((a**2 + (a + m) ** 2) / pi - 4 * m**2 / pi**3),
            "A3": km * (a**2 / 2 + a * m / 2 + 7 * m**2 / 48),
        }[activation]
        + (2 * L**3 * y / 3 if base == "B1" else 2 * L**3 * t / 7 + 8 * L**3 * y / 21)
        - C_p**2,
    }


#: Laplace (scale Delta/eps) and Gaussian (Eq. 5) noise for sensitivity Delta.
LAPLACE = 2 * delta**2 / sp.log(E) ** 2
deviation = sp.Symbol("delta", positive=True)  # the delta of (eps, delta)
GAUSSIAN = 2 * sp.log(sp.Rational(5, 4) / deviation) * delta**2 / sp.log(E) ** 2

# -- without scale ----------------------------------------------------------------------------------------------------------
#: w = m/(2L), the window's share of the range; u = S1/S2 = 1/H1, the odds; v and mu, the second moments of the densities of
#: activation and base on [-1, 1]; X = C_p/C_max.
w, u, v, mu = sp.symbols("w u v mu", positive=True)
X = sp.Symbol("X", real=True)

#: The variance in units of (Delta/2)^2.
REDUCED = X**2 / u + (1 + u) * (mu + u * v * w**2) / (u**2 * (1 - w) ** 2)


@cache
def scale_free(above: str, under: str) -> tuple[sp.Expr, dict[sp.Symbol, sp.Expr]]:
    """The variance that the densities give, in units of (Delta/2)^2 and in (w, u, X, e = t/y), and the v and mu of the shapes."""
    edge = sp.Symbol("e", positive=True)
    fill, spread = shares(above)
    scaled = base(under).subs({y: 1, t: edge, L: 1})
    level = sp.integrate(scaled, (x, -1, 1)) / 2
    second = sp.integrate(sp.expand(scaled * x**2), (x, -1, 1)) / (2 * level)
    found = derive(above, under)
    height = u / (1 + u) / (2 * w * fill)  # for L = 1
    low = 1 / (1 + u) / (2 * level)
    at = {k: height, m: 2 * w, y: low, t: edge * low, L: 1, delta: 2}
    top = found["C_max"].subs(at)
    return found["variance"].subs(C_p, X * top).subs(at), {v: spread, mu: second}


#: Where the variance at C_p = 0 is stationary in w for a constant base, u = s w: a quadratic in s, and in w a quartic whose
#: coefficients change sign once, so that there is exactly one root w > 0; it lies below 1/2.
s = sp.Symbol("s", positive=True)
STATIONARY = 2 * v * w**4 * s**2 + (w * (3 * w - 1) / 3 + v * w**3 * (1 + w)) * s - sp.Rational(2, 3) * (1 - 2 * w)


def optimal_slope() -> sp.Expr:
    """s = c (e^eps - 1), c the activation's fill, as a function of the best window share w in (0, 1/2).

    The positive root of `STATIONARY`: the optimum in closed form. With `REDUCED` at u = s w, eps = ln(1 + s/c) and the least
    variance (Delta/2)^2 REDUCED are a curve in w.
    """
    quadratic = sp.Poly(STATIONARY, s)
    first, second, last = quadratic.all_coeffs()
    return 2 * -last / (second + sp.sqrt(second**2 - 4 * first * last))

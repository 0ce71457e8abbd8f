"""I-PTT and II-PTT (OPTT) by sympy, from their densities: nothing here is typed in but the density itself.

The density is a floor p/E on [-(k + a), k + a] and, on [kx - a, kx + a], p for type I or a triangle from p/E up to p for type II.
Mass, mean and second moment are integrals of these pieces; the constants follow by solving for them. `printed` holds the
paper's own formulas, to be compared.
"""

from __future__ import annotations

from functools import cache

import sympy as sp

from optdp.exact import require

E = sp.Symbol("E", positive=True)  # e^eps, above 1
k, a, p, eta = sp.symbols("k a p eta", positive=True)
x, y = sp.symbols("x y", real=True)
eps = sp.Symbol("eps", positive=True)

KINDS = ("I", "II")


def pieces(kind: str) -> list[tuple[sp.Expr, sp.Expr, sp.Expr]]:
    """The density as (lower end, upper end, expression in y), in the parameters k, a, p."""
    require.choice("kind", kind, KINDS)
    floor, reach = p / E, k + a
    left, right = k * x - a, k * x + a
    outside = [(-reach, left, floor), (right, reach, floor)]
    if kind == "I":
        return [*outside, (left, right, p)]
    rise = (p - floor) / a
    return [*outside, (left, k * x, floor + rise * (y - left)), (k * x, right, floor + rise * (right - y))]


@cache
def moment(kind: str, power: int) -> sp.Expr:
    """The integral of y^power times the density."""
    return sp.simplify(sum(sp.integrate(sp.expand(y**power * f), (y, low, high)) for low, high, f in pieces(kind)))


@cache
def constants(kind: str) -> dict[str, sp.Expr]:
    """What unbiasedness and mass 1 leave: p and q (probability of the window) in (k, a); k and a in eta = (k + a)/a."""
    height = sp.solve(sp.Eq(moment(kind, 1), x), p)[0]
    window = sum(sp.integrate(sp.expand(f), (y, low, high)) for low, high, f in pieces(kind)[2:])
    mass = sp.simplify(moment(kind, 0).subs(p, height))
    half = sp.solve(sp.Eq(mass.subs(k, (eta - 1) * a), 1), a)[0]
    return {
        "p": sp.simplify(height),
        "q": sp.simplify(window.subs(p, height)),
        "mass": mass,
        "a": sp.simplify(half),
        "k": sp.simplify((eta - 1) * half),
    }


@cache
def variance(kind: str, *, mass: bool = True) -> sp.Expr:
    """Var(x): in (k, a) with unbiasedness alone, or in eta with mass 1 too."""
    found = sp.simplify(moment(kind, 2).subs(p, constants(kind)["p"]) - x**2)
    if not mass:
        return found
    c = constants(kind)
    return sp.simplify(found.subs({k: c["k"], a: c["a"]}))


@cache
def stationary(kind: str) -> sp.Poly:
    """The polynomial in eta (of degree 4) that vanishes where d Var(x)/d eta = 0; one root is above 1."""
    slope = sp.numer(sp.together(sp.diff(variance(kind), eta)))
    factors = [f for f, _ in sp.factor_list(slope)[1] if f.has(eta) and f not in (eta - 1, eta)]
    return sp.Poly(max(factors, key=lambda f: sp.degree(f, eta)), eta)


@cache
def parametric(kind: str) -> sp.Expr:
    """E as a function of the optimal eta (and x): the stationarity condition is quadratic in E - 1, with one positive root.

    With `variance` this is the optimum in closed form, as a curve eta -> (eps, Var).
    """
    roots = sp.solve(stationary(kind).as_expr(), E)
    point = {eta: sp.Rational(5, 2), x: 0}
    return next(root for root in roots if sp.N(root.subs(point)) > 1)


@cache
def small_eps_limit(kind: str) -> sp.Expr:
    """lim eps^2 times the least variance, for eps to 0 (the same for every x): the minimum over eta of the leading term."""
    leading = sp.limit(sp.simplify((E - 1) ** 2 * variance(kind)), E, 1)
    at = [r for r in sp.solve(sp.diff(leading, eta), eta) if r > 1]
    return sp.simplify(min(leading.subs(eta, r) for r in at))


def printed(kind: str) -> dict[str, sp.Expr]:
    """The paper's formulas: Theorem 2 and Eq. (15) for type I; Theorem 6 and Eq. (C.4), with B = k + a, for II."""
    require.choice("kind", kind, KINDS)
    ratio = (k + a) / a
    if kind == "I":
        return {
            "p": E / (2 * a * k * (E - 1)),
            "q": E / (k * (E - 1)),
            "variance": (k - 1) * x**2 + a / (3 * (ratio - 1)) * (ratio**3 / (E - 1) + 1),
        }
    reach = k + a
    return {
        "p": E / (a * k * (E - 1)),
        "q": (E + 1) / (k * (E - 1)),
        "variance": (k - 1) * x**2 + 2 * reach**3 / (3 * a * (reach - a) * (E - 1)) + a**2 / (6 * (reach - a)),
    }


def piecewise_mechanism() -> dict[str, sp.Expr]:
    """PM (Wang et al., ICDE 2019) as the I-PTT with eta = s + 1, s = e^(eps/2): k = s/(s - 1), a = 1/(s - 1), and Var(x)."""
    s = sp.Symbol("s", positive=True)
    at = {eta: s + 1, E: s**2}
    c = constants("I")
    return {
        "k": sp.factor(c["k"].subs(at)),
        "a": sp.factor(c["a"].subs(at)),
        "variance": sp.factor(variance("I").subs(at)),
        "worst": sp.factor(variance("I").subs(at).subs(x, 1)),
    }

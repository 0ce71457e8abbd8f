"""The printed formulas of OPTT beside what sympy derives from the definitions, and the closed forms found here.

`FORMULAS` holds every formula of the paper that the audit touches: as printed, and derived by another route. The density and
its constants are those of `optdp.audit.optt.ptt`; t = 1/(e^eps - 1) makes every variance a polynomial in t and eta.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import sympy as sp

from optdp.audit.claim import is_zero
from optdp.audit.optt import ptt
from optdp.closed_forms import varying_window

E, k, a, eta, x, eps = ptt.E, ptt.k, ptt.a, ptt.eta, ptt.x, ptt.eps

t = sp.Symbol("t", positive=True)  # 1/(e^eps - 1)
q = sp.Symbol("q", positive=True)  # probability of the window
s = sp.Symbol("s", positive=True)  # e^(eps/2)
tau = sp.Symbol("tau", positive=True)  # tanh(eps/2)

#: E in terms of t.
RATIO = 1 + 1 / t


@dataclass(frozen=True)
class Formula:
    """A printed formula: where, for which parameters it is meant, as printed, and how sympy derives it."""

    source: str
    valid: str
    printed: sp.Expr
    derive: Callable[[], sp.Expr]

    def agrees(self, factor: sp.Expr | int = 1) -> bool:
        """Whether `factor` times the printed formula equals the derived one, identically."""
        return is_zero(factor * self.printed - self.derive())


@cache
def variance_in_t(position: int) -> sp.Expr:
    """Var(x) of the I-PTT of mass 1 at |x| = `position`, in t and eta: (eta x^2) t + (1 + eta t)(eta^3 t + 1)/(3 (eta - 1)^2)."""
    return sp.factor(ptt.variance("I").subs({E: RATIO, x: position}))


def duchi_in_t(position: int) -> sp.Expr:
    """Duchi's variance in t: (1 + 2 t)^2 - x^2."""
    return (1 + 2 * t) ** 2 - position**2


def _duchi() -> sp.Expr:
    """From the two outputs +-C: C = (E + 1)/(E - 1), P(C) = 1/2 + x/(2 C)."""
    c = (E + 1) / (E - 1)
    high = sp.Rational(1, 2) + x / (2 * c)
    return high * c**2 + (1 - high) * c**2 - (high * c - (1 - high) * c) ** 2


def _laplace() -> sp.Expr:
    z = sp.Symbol("z", positive=True)
    return 2 * sp.integrate(z**2 * eps / 4 * sp.exp(-eps * z / 2), (z, 0, sp.oo))


def _pm(name: str) -> sp.Expr:
    at = {eta: s + 1, E: s**2}
    return sp.simplify(ptt.constants("I")[name].subs({k: ptt.constants("I")["k"], a: ptt.constants("I")["a"]}).subs(at))


def _free_in_eta() -> sp.Expr:
    """Variance of unbiased "I-PTT" without mass 1, in k and eta."""
    return sp.simplify(ptt.variance("I", mass=False).subs(a, k / (eta - 1)))


def _example(name: str) -> sp.Expr:
    c = ptt.constants("I")
    return sp.simplify(c[name].subs({k: c["k"], a: c["a"]}).subs(eta, sp.Rational(19, 10)))


def _least(expression: sp.Expr, near: float) -> sp.Expr:
    """Minimum over eta > 1 of a rational function whose stationary point near `near` is a root of a polynomial."""
    slope = sp.numer(sp.together(sp.diff(expression, eta)))
    roots = [r for r in sp.Poly(slope, eta).real_roots() if r > 1 and abs(float(r) - near) < 0.1]
    return expression.subs(eta, roots[0])


_ratio = eta**3 / (3 * (eta - 1) ** 2)
_one = 1 / (3 * (eta - 1) ** 2)

FORMULAS: dict[str, Formula] = {
    "Eq. 4": Formula("Lemma 1", "eps > 0", 8 / eps**2, _laplace),
    "Eq. 5": Formula("Lemma 2", "E > 1, |x| <= 1", ((E + 1) / (E - 1)) ** 2 - x**2, _duchi),
    "Eq. 10 p": Formula("Theorem 2", "E > 1, mass 1", ptt.printed("I")["p"], lambda: ptt.constants("I")["p"]),
    "Eq. 10 q": Formula("Theorem 2", "E > 1, mass 1", ptt.printed("I")["q"], lambda: ptt.constants("I")["q"]),
    "Eq. 15": Formula("Theorem 3", "unbiased", ptt.printed("I")["variance"], lambda: ptt.variance("I", mass=False)),
    "Eq. 17 k": Formula("PM", "s > 1", 2 * s / (s - 1), lambda: ptt.piecewise_mechanism()["k"].subs(*_same_s())),
    "Eq. 17 a": Formula("PM", "s > 1", 2 / (s - 1), lambda: ptt.piecewise_mechanism()["a"].subs(*_same_s())),
    "Eq. 18": Formula("PM", "s > 1", (s**2 - s) / (2 * (s + 1)), lambda: _pm("p")),
    "Eq. A.1": Formula(
        "Appendix A",
        "unbiased",
        (k - 1) * x**2 + k / (3 * (eta - 1) ** 2) * (eta**3 / (E - 1) + 1),
        _free_in_eta,
    ),
    "Eq. A.2": Formula(
        "Appendix A",
        "unbiased, mass forgotten",
        k / (3 * (E - 1) * (eta - 1) ** 3) * (eta**3 - 3 * eta**2 - 2 * (E - 1)),
        lambda: sp.diff(_free_in_eta(), eta),
    ),
    "Eq. 21 p": Formula("Theorem 6", "E > 1, mass 1", ptt.printed("II")["p"], lambda: ptt.constants("II")["p"]),
    "Eq. 21 q": Formula("Theorem 6", "E > 1, mass 1", ptt.printed("II")["q"], lambda: ptt.constants("II")["q"]),
    "Eq. 22": Formula(
        "Theorem 6",
        "unbiased",
        (k - 1) * x**2 + a * a / (6 * k) * (4 * ((k + a) / a) ** 3 / (E - 1) + 1),
        lambda: ptt.variance("II", mass=False),
    ),
    "Eq. C.4": Formula(
        "Appendix C", "unbiased", ptt.printed("II")["variance"], lambda: ptt.variance("II", mass=False)
    ),
    "Eq. D.1": Formula(
        "Appendix D",
        "equal k and a",
        a * a / (6 * k) * (2 * ((k + a) / a) ** 3 / (E - 1) - 1),
        lambda: ptt.variance("II", mass=False) - ptt.variance("I", mass=False),
    ),
    "Eq. 26": Formula(
        "proof of Theorem 9",
        "k = (eta - 1) a",
        -4 * t**2
        - (4 - a * eta**3 / (3 * (eta - 1))) * t
        + a / (3 * (eta - 1))
        + (eta - 1) * a
        - 2,
        lambda: ptt.variance("I", mass=False).subs({x: 1, k: (eta - 1) * a, E: RATIO}) - duchi_in_t(0),
    ),
    "Eq. 27": Formula(
        "proof of Theorem 9",
        "a at its infimum, q = 1",
        (_ratio - 4) * t**2 + _one - 1 + (_ratio + _one - 3) * t,
        lambda: FORMULAS["Eq. 26"].printed.subs(a, (1 + t) / (eta - 1)),
    ),
    "Eq. 31 p": Formula(
        "proof of Theorem 9",
        "eta = 19/10",
        sp.Rational(9, 20) * E * (E - 1) / (E + sp.Rational(9, 10)) ** 2,
        lambda: _example("p"),
    ),
    "Eq. 31 q": Formula(
        "proof of Theorem 9", "eta = 19/10", E / (E + sp.Rational(9, 10)), lambda: _example("q")
    ),
    "Eq. 31 a": Formula(
        "proof of Theorem 9",
        "eta = 19/10",
        sp.Rational(10, 9) * (E + sp.Rational(9, 10)) / (E - 1),
        lambda: ptt.constants("I")["a"].subs(eta, sp.Rational(19, 10)),
    ),
    "Eq. E.3": Formula(
        "proof of Theorem 8",
        "k = (eta - 1) a",
        -4 * t**2 - (4 - a * eta**3 / (3 * (eta - 1))) * t + a / (3 * (eta - 1)) + (eta - 1) * a - 1,
        lambda: ptt.variance("I", mass=False).subs({x: 1, k: (eta - 1) * a, E: RATIO}) - duchi_in_t(1),
    ),
    "Eq. 36": Formula(
        "proof of Theorem 10",
        "eta > 1",
        1 / (E - 1) + E * eta**3 / (3 * (E - 1) ** 2 * (eta - 1) ** 2) + E / (3 * (E - 1) * (eta - 1) ** 2),
        lambda: ptt.variance("I", mass=False).subs({x: 1, k: (eta - 1) * a}).subs(a, E / ((E - 1) * (eta - 1))),
    ),
    "Eq. 41 theta1": Formula(
        "proof of Theorem 10",
        "eta > 1",
        sp.Rational(9, 4),
        lambda: _least(_ratio, 3.0),
    ),
}  # fmt: skip


def _same_s() -> tuple[sp.Symbol, sp.Symbol]:
    """The symbol of `ptt.piecewise_mechanism` and ours: both e^(eps/2)."""
    return sp.Symbol("s", positive=True), s


def theta_two(v: sp.Expr) -> sp.Expr:
    """theta_2 of Eq. (41) as printed, in v = eta - 1 at the minimum: 1 + ((1 + v)^3 + 1)/(3 v^2)."""
    return 1 + ((1 + v) ** 3 + 1) / (3 * v**2)


#: The v that Eq. (41) puts into theta_2, printed with cube roots: the real root of v^3 - 3 v - 4.
THETA_TWO_AT = sp.root(2 + sp.sqrt(3), 3) + sp.root(2 - sp.sqrt(3), 3)


def optimal_ratio() -> sp.Expr:
    """E as a function of v = eta - 1 at the I-PTT with the least worst-case variance: v (v^2 - 1 + sqrt(v^4 - v^2 + 1)).

    Derived from dVar(1)/d eta = 0, which is quadratic in E. Valid for v > 1; increasing there, E = 1 at v = 1. `variance_in_t(1)`
    at t = 1/(E - 1) is then the optimum: a curve in closed form.
    """
    v = sp.Symbol("v", positive=True)
    slope = sp.numer(sp.together(sp.diff(ptt.variance("I").subs(x, 1), eta).subs(eta, 1 + v)))
    factors = [f for f, _ in sp.factor_list(slope)[1] if f.has(E) and sp.degree(f, v) == 4]
    roots = sp.solve(factors[0], E)
    return sp.simplify(next(r for r in roots if r.subs(v, 2) > 1))


def duchi_threshold() -> sp.Expr:
    """The eps above which, and only above which, some I-PTT has a smaller worst-case variance than Duchi: about 1.183102.

    With r the root above 1 of r^4 = 4 r + 1, e^eps = (r^2 + 3)/(r^2 - 1); then t = (r^2 - 1)/4 solves
    16 t^4 + 16 t^3 + 4 t^2 = 4 t + 1.
    """
    r = (sp.sqrt(2) + sp.sqrt(4 * sp.sqrt(2) - 2)) / 2
    return sp.log((r**2 + 3) / (r**2 - 1))


def algorithm_two(k: sp.Expr, a: sp.Expr, q: sp.Expr) -> dict[str, sp.Expr]:
    """What Algorithm 2 does for given k, a and q: `slope` (its mean is slope times x) and `ratio` (window over rest)."""
    inside, outside = q / (2 * a), (1 - q) / (2 * k)
    y = sp.Symbol("y", real=True)
    mean = (
        sp.integrate(inside * y, (y, k * x - a, k * x + a))
        + sp.integrate(outside * y, (y, -k - a, k * x - a))
        + sp.integrate(outside * y, (y, k * x + a, k + a))
    )
    return {"slope": sp.simplify(mean / x), "ratio": sp.simplify(inside / outside)}


def free_window() -> dict[str, sp.Expr]:
    """The unbiased piecewise mechanism whose window [x - r(x), x + r(x)] has varying length for every eps > 0.

    With tau = tanh(eps/2): outputs have |y| in [coth tau - 1, coth tau + 1], the floor density there is 1/(2 (E - 1)|y|), E times
    as much in the window, and r(x) = sqrt(x^2 + 1/sinh(tau)^2). Returned, derived by integration: `mass`, `mean`, `variance`.
    """
    shift = sp.Symbol("b", positive=True)  # e^tau
    coth, lam = (shift**2 + 1) / (shift**2 - 1), 4 * shift**2 / (shift**2 - 1) ** 2
    low, high = coth - 1, coth + 1
    right = sp.Symbol("Y", positive=True)  # x + r; the window is [-lam/Y, Y] without the gap (-low, low)
    y = sp.Symbol("y", positive=True)
    growth = sp.Symbol("g", positive=True)  # E - 1
    floor = 1 / (2 * growth * y)
    centre = (right - lam / right) / 2  # x

    def total(weight: Callable[[sp.Expr], sp.Expr]) -> sp.Expr:
        both = sp.integrate(sp.expand((weight(y) + weight(-y)) * floor), (y, low, high))
        above = sp.integrate(sp.expand(weight(y) * floor), (y, low, right))
        below = sp.integrate(sp.expand(weight(-y) * floor), (y, low, lam / right))
        return both + growth * (above + below)

    logs = sp.expand(total(lambda z: sp.Integer(1)))
    parts = [logs.coeff(growth, -1), logs.coeff(growth, 0)]
    at_rest, raised = (sp.log(sp.factor(sp.exp(2 * part).rewrite(sp.Pow))) / 2 for part in parts)
    mass = sp.simplify((at_rest / growth + raised).subs(shift, sp.exp(tau)))
    mean = sp.simplify(total(lambda z: z) - centre)
    spread = sp.simplify(total(lambda z: z**2) - centre**2)
    return {"mass": mass, "mean": mean, "variance": spread, "growth": growth, "shift": shift}


def free_window_variance() -> sp.Expr:
    """Var at every x of `free_window`: coth(eps/2) coth(tanh(eps/2)) - 1."""
    return varying_window.window_variance()


@cache
def free_window_dual() -> dict[str, sp.Expr]:
    """The dual point that proves `free_window` optimal among all unbiased eps-LDP mechanisms, for small eps, in closed form.

    With tau = tanh(eps/2), T = tanh(tau), lam = 1/T^2 - 1: the weights are w(x) = (lam/(2 tau)) (x^2 + lam)^(-3/2) on (-1, 1), of
    mass M = T/tau, and atoms `w1` at x = +-1; the multipliers of mass 1 and of the mean are lam w and 2 x w inside, and atoms `a`
    and +-`b` at x = +-1. Bounding a mechanism's worst variance by its w-average and each output y by its reduced cost,

        cost(y) = int [G_y + (E - 1) min(G_y, 0)](dx),  G_y = w y^2 - beta y - alpha,

    the bound is `value`, if cost >= 0. In rational functions of tau and T: `support` is the cost for y in [coth tau - 1,
    coth tau + 1]; `above` and `below` what is left of it outside, less a nonnegative multiple of a square; `at_zero` the cost at
    y = 0, the least where the atom's part is positive; `low` and `high` the atom's part at the ends of the support, to be <= 0.
    """
    big = sp.Symbol("T", positive=True)
    y = sp.Symbol("y", positive=True)
    lam, ratio, inner = 1 / big**2 - 1, (1 + tau) / (1 - tau), big / tau
    w1, a_end, b_end, scale = (1 - inner) / 2, -lam * (1 + inner) / 2, lam * inner, 1 / (2 * tau)
    atom = w1 * y**2 - b_end * y - a_end  # at x = 1; at x = -1 with the other sign of b
    ends = (ratio + 1) * (w1 * y**2 - a_end) - (ratio - 1) * b_end * y  # E times the atom at 1, once that at -1
    theta, root = (y**2 - lam) / (2 * y), (y**2 + lam) / (2 * y)  # root = sqrt(theta^2 + lam)
    below = scale * (theta / root + big)  # int_(-1)^theta w
    first = scale * lam * (big - 1 / root)  # int_(-1)^theta x w, and 0 up to 1
    window = 2 * y * (theta * below - first) + 2 * y * ratio * (theta * (inner - below) + first)
    low, high = 1 / big - 1, 1 / big + 1
    return {
        "M": inner,
        "w1": w1,
        "a": a_end,
        "b": b_end,
        "scale": scale,
        "value": sp.simplify(lam * inner + 2 * scale * lam * (tau - big) + 2 * a_end + 2 * b_end - 2 * w1),
        "support": sp.simplify(window + ends),
        "above": sp.simplify(inner * (y**2 - lam) + ends - (inner + (ratio + 1) * w1) * (y - high) ** 2),
        "below": sp.simplify(ratio * inner * (y**2 - lam) + ends - (ratio * inner + (ratio + 1) * w1) * (y - low) ** 2),
        "at_zero": sp.factor(-ratio * inner * lam - 2 * a_end),
        "low": sp.factor(atom.subs(y, low)),
        "high": sp.factor(atom.subs(y, high)),
        "T": big,
    }


def free_window_integrals() -> list[sp.Expr]:
    """The three integrals behind `free_window_dual`, as differences that vanish: primitives of w, x w and x^2 w, up to scale."""
    u = sp.Symbol("u", real=True)
    lam = sp.Symbol("lam", positive=True)
    root = sp.sqrt(u**2 + lam)
    weight = lam / root**3
    pairs = ((u / root, 1), (-lam / root, u), (lam * (sp.asinh(u / sp.sqrt(lam)) - u / root), u**2))
    return [sp.simplify(sp.diff(primitive, u) - power * weight) for primitive, power in pairs]


@cache
def free_window_beyond() -> dict[str, sp.Expr]:
    """The optimal unbiased eps-LDP mechanism once an output at 0 pays, with its dual point: primal and dual meet.

    With sigma = log(1 + 2/E)/2 and z = 1/(E - (E + 1) sigma): outputs 0 and |y| in [E z, (E + 2) z], lam = E (E + 2) z^2.
    Floors: density 1/(2 (E - 1)|y|) and atoms m0 at +-E z, m1 at +-(E + 2) z, z0 at 0. For 0 <= x <= z the window [x - r,
    x + r], r = sqrt(x^2 + lam), is high (the atoms at +-E z and at 0 are, those at +-(E + 2) z are not). From z to 1 all of the
    bulk above 0 is high, and with u = x - z the atom at 0 falls by u^2/lam, that at -E z by
    (u - (E + 2) z u^2/lam)/(2 (E + 1) z), and that at (E + 2) z rises by both. Negative inputs by symmetry. The dual has the
    weights (c/2) lam (x^2 + lam)^(-3/2) on (-z, z), c = (E + 1)/(E - 1), and atoms at +-1.

    Returned, in rational functions of E, z, y and x (sigma being (E - 1/z)/(E + 1)): `value`; `mass` and `variance` for |x| <= z;
    `mass_out`, `mean_out`, `variance_out` for z <= x <= 1; `left`: what the atoms have left to give at x = 1; `m0` and
    `slope`: to be nonnegative; `bound` and the rest as in `free_window_dual`, `w1` to be nonnegative.
    """
    z, y = sp.symbols("z y", positive=True)
    sigma, c, half = (E - 1 / z) / (E + 1), (E + 1) / (E - 1), (E + 1) * z
    lam, low, high = z**2 * E * (E + 2), z * E, z * (E + 2)
    fall = (1 - z) ** 2 / lam
    z0 = fall / (E - 1)
    m0 = (1 - z - high * fall) / (2 * half * (E - 1))
    m1 = (1 - z + low * fall) / (2 * half * (E - 1))
    atoms = 2 * E * m0 * low**2 + 2 * m1 * high**2
    floor = (high**2 - low**2) / (2 * (E - 1))
    bulk = c * sigma  # log(high/low) = 2 sigma: mass of floor and window, at every x
    u = x - z
    zero = u**2 / lam
    lower = (u - high * zero) / (2 * half)
    upper = lower + zero
    inner, w1 = 1 / (E - 1), (E - 2) / (2 * (E - 1))
    a_end, b_end, scale = -E * lam / (2 * (E - 1)), z * E * (E + 2) / (E - 1), c / 2
    theta, root = (y**2 - lam) / (2 * y), (y**2 + lam) / (2 * y)
    below = scale * (theta / root + z / half)
    first = scale * lam * (1 / half - 1 / root)
    window = 2 * y * (theta * below - first) + 2 * y * E * (theta * (inner - below) + first)
    ends = (E + 1) * (w1 * y**2 - a_end) - (E - 1) * b_end * y
    atom = w1 * y**2 - b_end * y - a_end
    return {
        "value": (E * (E + 2) * z - (E - 2)) / (E - 1),
        "mass": sp.simplify(bulk + 2 * m1 + 2 * E * m0 + E * z0),
        "variance": sp.simplify(floor + (lam - low**2) / 2 + atoms),  # (Y^2 + Y'^2)/4 = x^2 + lam/2 leaves the window's part
        "mass_out": sp.simplify(bulk + 2 * m1 + upper + 2 * E * m0 - lower + E * z0 - zero),
        "mean_out": sp.simplify((high - low) / 2 + upper * high + lower * low),
        "variance_out": sp.simplify(
            floor + (high**2 - low**2) / 4 + atoms + upper * high**2 - lower * low**2 - x**2
        ),
        "left": sp.Matrix(
            [sp.simplify((E - 1) * m - f.subs(x, 1)) for m, f in ((m1, upper), (m0, lower), (z0, zero))]
        ),
        "m0": sp.factor(m0),
        "slope": sp.factor(sp.diff(lower, x).subs(x, 1)),
        "bound": sp.simplify(
            lam * inner + 2 * scale * lam * (sigma - z / half) + 2 * a_end + 2 * b_end - 2 * w1
        ),
        "w1": w1,
        "support": sp.simplify(window + ends),
        "above": sp.simplify(inner * (y**2 - lam) + ends - (inner + (E + 1) * w1) * (y - high) ** 2),
        "below": sp.simplify(E * inner * (y**2 - lam) + ends - (E * inner + (E + 1) * w1) * (y - low) ** 2),
        "at_zero": sp.simplify(-E * inner * lam - 2 * a_end),
        "low": sp.factor(atom.subs(y, low)),
        "high": sp.factor(atom.subs(y, high)),
        "z": z,
    }  # fmt: skip


def free_window_beyond_share() -> sp.Expr:
    """z of `free_window_beyond`, in E: 1/(E - (E + 1) log(1 + 2/E)/2)."""
    return 1 / (E - (E + 1) * sp.log(1 + 2 / E) / 2)


def optimal_variance() -> sp.Piecewise:
    """The least worst-case variance of all unbiased eps-LDP mechanisms on [-1, 1], in `eps`, for eps <= 1.393027.

    Up to eps = 0.712285 that of `free_window`, then that of `free_window_beyond`, which stays a lower bound for every larger eps.
    """
    alone = 2 * sp.tanh(sp.tanh(eps / 2)) + sp.tanh(eps / 2) <= 1
    return sp.Piecewise((varying_window.window_variance(), alone), (varying_window.atoms_variance(), True))

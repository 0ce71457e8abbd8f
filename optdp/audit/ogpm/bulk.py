"""The checks of the limit for large eps (`optdp.closed_forms.bulk`, proofs in `docs/kernel-limit.md`).

Each function decides one step of the proof: identities by sympy, inequalities over a whole range of eps by ball
arithmetic. A rate is an inequality in s = e^(-eps/2) or e^(-eps/3) on (0, s0] that is an equality at s = 0: it is written as a
polynomial, its factor s is divided out, and what is left is covered by balls.
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb, arb_poly, ctx

from optdp.audit.claim import is_zero
from optdp.audit.ranges import positive
from optdp.closed_forms import bulk
from optdp.exact import enclosures
from optdp.exact.enclosures import PRECISION

#: From here on the rates are proven. For the absolute error: c_1 (1 - s) <= e^(eps/2) V <= c_1 with s = e^(-eps/2).
ABS_FROM = Fraction(5)
#: For the squared error, s = e^(-eps/3): c_2 (1 - BELOW s^2) <= e^(2 eps/3) V <= c_2 (1 + ABOVE s), unbiased (1 + UNBIASED s).
SQUARED_FROM = Fraction(8)
BELOW, ABOVE, UNBIASED = Fraction(5, 4), Fraction(7, 5), Fraction(2)


def abs_identities() -> bool:
    """The prior's density, the slack N = v'(P) and the bound's identity integral of 2 g lambda = v - P v'."""
    import sympy as sp

    p, end = sp.symbols("p P", positive=True)
    top = 1 / (2 * sp.sqrt(sp.pi) * sp.erf(end))
    g, t = top * sp.exp(-(p**2)), top * sp.sqrt(sp.pi) * sp.erf(p)
    edge, value = g.subs(p, end), g.subs(p, end) + end / 2

    def along(f: sp.Expr) -> sp.Expr:
        return sp.diff(f, p) / sp.diff(t, p)

    b = 4 * edge * (g + t * p)
    slack = sp.diff(value, end)
    total = (g * along(b) + p * b).subs(p, end)  # half of [g B' - g' B] at the ends: twice the integral of g B''
    zeros = [
        along(g) + p,
        along(along(b)) - b / (2 * g**2),
        along(b).subs(p, end) - 1,
        t.subs(p, end) - sp.Rational(1, 2),
        slack - (sp.Rational(1, 2) - 4 * edge * value),
        total - (value - end * slack),
    ]
    # v' = 0 is the quadratic 8 e^2 + 4 P e = 1 in e = g(1/2): its root gives the equation for P and c_1.
    root = (sp.sqrt(end**2 + 2) - end) / 4
    zeros += [sp.expand(8 * root**2 + 4 * end * root - 1), root + end / 2 - (end + sp.sqrt(end**2 + 2)) / 4]
    zeros.append(sp.simplify(1 / (2 * root) - (end + sp.sqrt(end**2 + 2))))
    return all(is_zero(z) for z in zeros)


def abs_rate() -> tuple[bool, dict[str, float]]:
    """c_1 (1 - s) <= e^(eps/2) V <= c_1 for eps >= ABS_FROM, with the numbers that decide it."""
    with ctx.workprec(PRECISION):
        s = (-arb(ABS_FROM.numerator) / ABS_FROM.denominator / 2).exp()
        start, stop = bulk.bulk_parameter(1), arb(83) / 100
        slack, delta = bulk.abs_slack(stop)
        # P runs over [P*, stop] while delta runs over [0, s]; kappa over that range, by pieces.
        pieces = 64
        width = (stop - start) / pieces
        kappa = arb(0)
        for i in range(pieces):
            kappa = kappa.max(bulk.abs_curvature((start + i * width).union(start + (i + 1) * width), arb(0).union(s)))
        rises = positive(lambda p: _bend(p), 0.5, 1.0).proven  # v'' > 0, so that v >= c_1 and N rises on [P*, stop]
        reached = delta > s and slack > 0 and 2 * s * stop < 1
        below = bool(reached and kappa * s**2 < 2 and kappa * s / 2 < 1 - stop + stop * s and kappa / 2 > stop)
        # Above: a/(2 s) <= (2 - sqrt 2)/2 + P s against c_1 (P - s + a), a >= (2 - sqrt 2) s.
        p, c, atom = start, bulk.bulk_constant(1), 2 - arb(2).sqrt()
        meets = bulk.bulk_equation(1, p).contains(0) and ((p + (p * p + 2).sqrt()) / 4).overlaps(c)
        above = bool(c * (p - s + atom * s) > atom / 2 + p * s and p < 1 and 2 * s < p)
        numbers = {"curvature kappa at most": float(kappa.upper()), "P at most": float(stop),
                   "coefficient of -e^(-eps/2), at least": float((c * p - atom / 2).lower()),
                   "coefficient of -e^(-eps/2), at most": float((c * p).upper())}  # fmt: skip
    return bool(meets) and rises and below and above, numbers


def _bend(p: arb) -> arb:
    """v''(P)/(2 g(1/2)) = 16 e^2 + 12 P e + 2 P^2 - 1 with e = g(1/2)."""
    e = (-p * p).exp() / (2 * arb.pi().sqrt() * p.erf())
    return 16 * e**2 + 12 * p * e + 2 * p**2 - 1


def squared_identities() -> bool:
    """Pairs of inputs at z and -z, the equation for Theta as v' = 0 and as equality of prior and mechanism in the limit."""
    import sympy as sp

    psi, gamma, a, u, shift = sp.symbols("psi gamma a u sigma", positive=True)
    c = sp.cos(gamma)
    pair = sum((sp.sin(psi + k * gamma) ** 2 + shift) * sp.cos(psi + k * gamma) for k in (1, -1)) * c / sp.cos(psi)
    y = sp.sin(psi) / c  # sin(psi) = (y/r) cos(gamma)
    stated = 2 * shift * c**2 + 2 * c**2 * sp.sin(gamma) ** 2 + 2 * y**2 * c**4 * (4 * c**2 - 3)
    zeros = [sp.expand(sp.expand_trig(pair - stated) * sp.cos(psi)).subs(sp.sin(psi) ** 2, 1 - sp.cos(psi) ** 2)]
    # The mechanism: squares of the distances at u and -u.
    sides = (sp.sin(a + u) - sp.sin(a)) ** 2 + (sp.sin(a - u) - sp.sin(a)) ** 2
    across = 2 * sp.sin(a) ** 2 * (1 - sp.cos(u)) ** 2 + 2 * sp.cos(a) ** 2 * sp.sin(u) ** 2
    zeros.append(sp.expand_trig(sides - across))
    # The constant: v' = 0, and the prior's slack and bound at sigma = 3 Theta cot(Theta) - 1, scale 1/(4 Theta).
    theta = sp.Symbol("theta", positive=True)
    sin, cos, tan = sp.sin(theta), sp.cos(theta), sp.sin(theta) / sp.cos(theta)
    value = (3 * theta - sin * cos) / (8 * (3 * theta) ** sp.Rational(1, 3) * sin**2)
    equation = 9 * theta * tan + sin**2 - 18 * theta**2
    logslope = sp.diff(value, theta) / value
    zeros.append(logslope * 3 * theta * (3 * theta - sin * cos) - equation / tan)
    best, half = 3 * theta / tan - 1, (theta - sin * cos) / 2
    scale = 2 * ((1 + best) * tan - theta)
    zeros.append(scale - 4 * theta)
    slack = ((1 + best) * (tan - theta) - half) * 2 / (4 * theta) - best
    zeros.append(slack - equation / (4 * theta * tan))
    bound = 2 / (4 * theta) * (half + best * theta) * (3 * theta) ** sp.Rational(2, 3) / (4 * sin**2)
    zeros.append(bound - value + equation * (3 * theta) ** sp.Rational(2, 3) / (48 * theta * sin**2 * tan))
    return all(is_zero(z) for z in zeros)


def squared_rate_below() -> tuple[bool, dict[str, float]]:
    """e^(2 eps/3) V >= c_2 (1 - BELOW s^2) for eps >= SQUARED_FROM."""
    with ctx.workprec(PRECISION):
        theta, c = bulk.bulk_parameter(2), bulk.bulk_constant(2)
        tan, half = theta.tan(), (theta - theta.sin() * theta.cos()) / 2
        best = 3 * theta * theta.cot() - 1  # sigma in the limit; V >= N at sigma = best - y
        need = (3 * theta) ** (arb(2) / 3) / 5 + 4 * theta.sin() ** 2 * c  # y over (E - 1)^(-2/3)
        small = (arb(SQUARED_FROM.numerator) / SQUARED_FROM.denominator).exp()
        small = (small - 1) ** (-arb(2) / 3)
        y = need * small
        rises = theta / (half + best * theta) > tan / (3 * (tan - theta))  # N rises with sigma on [0, best]
        falls = theta * (tan - theta) > tan * half  # the slack falls at least as fast as sigma rises
        cost = need * (theta / (half + (best - y) * theta) - tan / (6 * theta))
        below = arb(BELOW.numerator) / BELOW.denominator
        least = 1 - below * small  # (E - 1)^(-2/3) (1 - cost (E - 1)^(-2/3)) >= E^(-2/3) (1 - BELOW E^(-2/3))
        numbers = {"coefficient of -e^(-2 eps/3), at most": float(cost.upper())}
        limit = (half + best * theta) * (3 * theta) ** (arb(2) / 3) / (8 * theta * theta.sin() ** 2)  # of the prior's N
        meets = bulk.bulk_equation(2, theta).contains(0) and limit.overlaps(c)
        return bool(meets and rises and falls and y < best and least > 0 and _shrinks(cost, below, small)), numbers


def _shrinks(cost: arb, below: arb, small: arb) -> bool:
    """Whether u (1 - cost u) >= v (1 - below v) for u = (E - 1)^(-2/3), v = E^(-2/3): u >= v, and u (1 - cost u) rises in u."""
    return bool(cost <= below and 2 * cost * small < 1)


def squared_rate_above() -> bool:
    """e^(2 eps/3) V <= c_2 (1 + ABOVE s) for eps >= SQUARED_FROM, by windows l = s L and atoms s (L - B), polynomials in s."""
    with ctx.workprec(PRECISION):
        theta, c = bulk.bulk_parameter(2), bulk.bulk_constant(2)
        first, share = (24 * theta) ** (arb(1) / 3), arb(4) ** (-arb(1) / 3)
        s = arb_poly([0, 1])
        window = first * (1 + arb(7) / 20 * s + arb(8) / 5 * s**2)
        inner = share * window * (1 - arb(29) / 10 * s + 7 * s**2)
        atom = window - inner
        mass = 1 - s**3  # (E - 1)/E
        bent = window**3 * _arb(Fraction(1, 12)) - s**2 * window**5 * _arb(Fraction(1, 320))
        wide = mass * bent - 2 * theta - 2 * s * atom
        ends = window**3 * _arb(Fraction(1, 4)) - inner**3 * (1 + theta.tan() * s * inner) ** 2
        quarter = 1 / (4 * theta.sin() ** 2)  # r^2
        middle = quarter * (theta - theta.sin() * theta.cos() + mass * window**3 * _arb(Fraction(1, 12)))
        allowed = c * (1 + _arb(ABOVE) * s) * (mass * window + 2 * s**2 * (theta + s * atom))
        proven = all(_nonnegative(f, _last()) for f in (wide, ends, allowed - middle - s * atom * _arb(Fraction(1, 2))))
        widest = _last() * window(_last())
        return proven and bool(_last() * 3 < 1 and widest < theta and 2 * theta + widest < arb.pi())


def unbiased_rate() -> bool:
    """The unbiased mechanism's e^(2 eps/3) Var <= c_2 (1 + UNBIASED s) for eps >= SQUARED_FROM.

    With (E - 1)(tan w - w) = Theta, w^3/3 <= tan w - w gives s >= k w for k = (3 Theta)^(-1/3) (1 - w^3/(9 Theta)), which is
    at most (3 Theta + w^3)^(-1/3). Up to w = 9/10, w cot w >= 1 - w^2/3 - w^4/40.
    """
    with ctx.workprec(PRECISION):
        theta, c = bulk.bulk_parameter(2), bulk.bulk_constant(2)
        w = arb_poly([0, 1])
        k = (3 * theta) ** (-arb(1) / 3) * (1 - w**3 * (1 / (9 * theta)))
        rest = (2 * theta).sin() / (6 * theta) * (1 - w**2 * _arb(Fraction(1, 3)) - w**4 * _arb(Fraction(1, 40)))
        sine = theta.sin() * (1 - w**2 * _arb(Fraction(1, 2))) - theta.cos() * w  # <= sin(Theta - w)
        allowed = 8 * c * k**2 * (1 + _arb(UNBIASED) * w * k) * (1 - w**2) * sine**2
        widest = arb(1) / 8
        reached = 1 + theta / (widest.tan() - widest) < (_arb(SQUARED_FROM)).exp()
        return bool(reached) and _nonnegative(allowed - 1 + rest, widest)


def _nonnegative(polynomial: arb_poly, last: arb) -> bool:
    """Whether a polynomial that is 0 at 0 (an identity in Theta, checked by `squared_identities`) is positive on (0, last]."""
    coefficients = polynomial.coeffs()
    cover = positive(arb_poly(coefficients[1:]), 0.0, enclosures.round_up(last), precision=PRECISION)
    return bool(coefficients[0].contains(0)) and cover.proven


def _arb(number: Fraction) -> arb:
    return arb(number.numerator) / number.denominator


def _last() -> arb:
    """The largest s, at eps = SQUARED_FROM."""
    return (-_arb(SQUARED_FROM) / 3).exp()


def equaliser_identities() -> bool:
    """The unbiased mechanism: mean x and the stated variance at every x."""
    import sympy as sp

    w, u, e, r, a = sp.symbols("w u e r a", positive=True)  # e = E - 1, the window is [a - w, a + w]
    tan = sp.sin(w) / sp.cos(w)
    spread = e * (tan - w)
    rate = 1 / (2 * e * w + 2 * spread)  # of the uniform floor in p, so that the mass is 1
    mean = e * rate * sp.integrate(r * sp.sin(u), (u, a - w, a + w))
    square = sp.integrate(sp.sin(u) ** 2, (u, -u, u))  # over [-u, u]
    floor = square.subs(u, spread)
    window = e * w - e * (sp.sin(2 * a + 2 * w) - sp.sin(2 * a - 2 * w)) / 4
    primitive = sp.diff(u / 2 - sp.sin(2 * u) / 4, u) - sp.sin(u) ** 2
    variance = rate * r**2 * (floor + window) - mean**2
    stated = r**2 / 2 * (sp.sin(w) ** 2 - sp.sin(2 * spread) / tan / (2 * e))
    zeros = [primitive, mean - r * sp.cos(w) * sp.sin(a), variance - stated]
    return all(is_zero(sp.expand_trig(sp.expand(z))) for z in zeros)

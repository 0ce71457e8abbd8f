"""The checks of D-OGPM-7: the least worst-case squared error from eps = ln(3 + 2 sqrt 2) to 2.722331.

Inputs and outputs are measured from the middle: x = 1/2 + t, and a left output y = 1/2 - eta. With lam = e^2/w the prior has mass
a at both ends and the density D0 k (1 + k^2 s^2)^(-3/2), k^2 = 1/lam, on [-h, h]; an input s there has the threshold s^2 + lam.
"""

from __future__ import annotations

from typing import Any

import sympy as sp
from flint import arb, ctx

from optdp.audit.claim import is_zero
from optdp.audit.ranges import positive
from optdp.closed_forms import squared_window as forms
from optdp.exact.enclosures import PRECISION

#: E = e^eps, w, log(w): a symbol of its own, so that all identities are between rational functions.
E, W, LOG = sp.symbols("E w l", positive=True)
QUARTER = sp.Rational(1, 4)


def _shape() -> dict[str, sp.Expr]:
    far = (E - W) / (2 * (E + 1))
    return {"far": far, "near": far / W, "lam": far**2 / W, "h": far * (W - 1) / (2 * W), "end": (E - W) / ((W + 1) * (E - 1)),
            "inside": (W - 1) * (E + 1) / ((W + 1) * (E - 1)), "nu": forms.threshold(E, W)}  # fmt: skip


def dual_identities() -> dict[str, bool]:
    """The reduced cost of an output vanishes on the floor's support, and what the bound is."""
    s = _shape()
    a, b, lam, nu = s["end"], s["inside"], s["lam"], s["nu"]
    scale = (E + 1) / (2 * (E - 1))
    # Parametrise t = sqrt(lam) (v - 1/v)/2, v in [1/sqrt w, sqrt w]: then eta = sqrt(lam)/v, exactly.
    v, root = sp.symbols("v root", positive=True)  # root^2 = lam
    t, xi = root * (v - 1 / v) / 2, root * (v + 1 / v) / 2
    below = scale * t / xi  # mass of the prior between 0 and t
    first = scale * lam / xi  # a/2 minus the first moment up to t
    eta = xi - t
    cost = a * ((E + 1) * (QUARTER + eta**2) - (E - 1) * eta - (E + 1) * nu) + b * (eta**2 - lam)
    cost += (E - 1) * ((b / 2 + below) * (eta**2 - lam) + 2 * eta * (a / 2 - first))
    dt = sp.diff(t, v)
    density = scale * lam / xi**3

    def zero(f: sp.Expr) -> bool:
        return is_zero(f.subs(root, s["far"] / sp.sqrt(W)))

    middle = 2 * a * (QUARTER - nu) - E * b * lam
    pays = (E + 2 - E * W) * s["far"] ** 2 / (W * (W + 1))
    return {
        "prior of mass 1": is_zero(2 * a + b - 1),
        "density": zero(sp.diff(below, v) / dt - density) and zero(sp.diff(first, v) / dt + t * density),
        "ends of the density": all(zero(f.subs(v, sp.sqrt(W)) - end) for f, end in ((below, b / 2), (first, a / 2), (t, s["h"]))),
        "outputs": zero(eta - root / v) and zero(root / sp.sqrt(W) - s["near"]) and zero(root * sp.sqrt(W) - s["far"]),
        "reduced cost 0 on the support": zero(cost),
        "bound": zero(2 * a * nu + scale * lam * LOG - forms.bound(E, W, LOG)) and zero(density * xi**2 * dt - scale * lam / v),
        "thresholds at w = 1 + 2/E": sp.cancel(nu.subs(W, 1 + 2 / E) - 1 / (E + 2)) == 0
        and sp.cancel(s["near"].subs(W, 1 + 2 / E) - (E - 2) / (2 * (E + 2))) == 0,
        "an output at 1/2 pays beyond w = 1 + 2/E only": is_zero(middle - pays),
    }  # fmt: skip


def _mechanism(e: Any, w: Any, log: Any, beta: Any) -> dict[str, Any]:
    """Errors of the mechanism with an atom beta at 1/2: at 1/2, and as a function of t where a half is favoured."""
    far = (e - w) / (2 * (e + 1))
    near = far / w
    half, density = (1 - beta) / (e + 1), log / (2 * (e - 1))  # masses of one half and of its density
    inner = (half - beta - density) / 2
    outer = inner + beta
    floor = 2 * (outer * far**2 + inner * near**2) + (far**2 - near**2) / (2 * (e - 1))

    def one_half(t: Any) -> Any:
        favoured = outer * (t + far) ** 2 + inner * (t + near) ** 2 + t**2 * density
        return floor + (2 * half + beta) * t**2 + (e - 1) * favoured + t * (far - near) + (far**2 - near**2) / 4

    return {
        "middle": floor + 2 * (e - 1) * inner * near**2 + (far * near - near**2) / 2,
        "half": one_half,
        "with": lambda t: (
            one_half(t) + (e - 1) * beta * (t**2 - (t + far) ** 2)
        ),  # beta of the outer atom for that at 1/2
        "inner": inner,
        "far": far,
        "h": (far - near) / 2,
        "end": (e - w) / ((w + 1) * (e - 1)),
    }


def primal_identities() -> dict[str, bool]:
    """The mechanism's errors at the ends, at +-h and in between agree with the bound, in both ranges."""
    _, e, w, log = sp.field("E,w,l", sp.QQ)
    best, half = 1 + 2 / e, sp.QQ(-1, 2)
    bound, plain = forms.bound(e, w, log), _mechanism(e, w, log, 0 * e)
    gap = (plain["middle"] - plain["half"](half)) * (e - 1) ** 2
    # With the atom: the errors are affine in beta, and beta makes those at 0 and 1/2 agree.
    one, none = (_mechanism(e, best, log, b + 0 * e) for b in (1, 0))
    off, change = (none["middle"] - none["half"](half)), (one["middle"] - one["half"](half))
    beta = off / (off - change)
    m = _mechanism(e, best, log, beta)
    value = (e - 2) / ((e - 1) * (e + 2)) * (1 + (e + 1) * (e - 2) * log / (8 * e))
    stated = (e**2 + e + 2) * forms.without_middle(e, log) / (e * (e - 2) ** 2 * (e - 1) * (e + 2))
    least = log * (e - 2) * (e + 1) * (e + 2) ** 2 + 2 * e**3 + 22 * e**2 + 16 * e - 8
    long = sp.log(1 + 2 / E)
    printed = forms.windows_value().subs(sp.exp(forms.eps), E)
    mix = (
        2 * plain["end"] * gap / (e - 1) ** 2
    )  # the prior's mean of the errors is the bound: 2 a at the ends, the rest inside
    first = (e - 1) ** 2 * (e**2 - 6 * e + 1) / (4 * (e + 1) ** 2)
    last = (e - 1) ** 2 * (e**2 + e + 2) * forms.without_middle(e, log) / (4 * e**2 * (e + 2) ** 2)
    zeros = {
        "slope of the bound": gap - forms.slope(e, w, log),
        "best w": bound.diff(w) + bound.diff(log) / w - 2 * (e + 1) / ((e - 1) ** 3 * (w + 1) ** 2) * gap,
        "slope at w = 1": forms.slope(e, 1 + 0 * e, 0 * e) - first,
        "slope at w = 1 + 2/E": forms.slope(e, best, log) - last,
        "value where the slope is 0": plain["middle"] - bound - mix,
        "error at h, one half": plain["half"](-plain["h"]) - plain["middle"],
        "error at h, with 1/2": m["with"](-m["h"]) - m["middle"],
        "value with outputs at 1/2": m["middle"] - value,
        "its bound": forms.bound(e, best, log) - value,
        "beta": beta - stated,
        "inner atom": m["inner"] - least / (4 * e * (e - 2) ** 2 * (e - 1) * (e + 1)),
        "errors where the halves change": m["half"](-m["far"] / 2) - value + forms.with_middle(e, log) / (16 * e**2),
    }
    as_printed = is_zero(printed - value.as_expr().subs({"E": E, "l": long}))
    return {name: zero == 0 for name, zero in zeros.items()} | {"value as printed": as_printed}


def ranges() -> dict[str, bool]:
    """Where an output at 1/2 pays, where the mechanism with it stops, atoms and thresholds, by balls over the whole ranges."""

    def long(eps: arb) -> arb:
        return (1 + 2 * (-eps).exp()).log()

    def thresholds(eps: arb) -> arb:
        """nu_0 - (1/2 - f)^2 and 1/4 - nu_0, both positive, for all w in [1, 1 + 2/E] by eighths."""
        e, least = eps.exp(), arb("inf")
        for part in range(8):
            w = 1 + 2 * (arb(part) / 8).union(arb(part + 1) / 8) / e
            near = (e - w) / (2 * w * (e + 1))
            nu = forms.threshold(e, w)
            least = least.min(nu - (arb(1) / 2 - near) ** 2).min(arb(1) / 4 - nu)
        return least

    with ctx.workprec(PRECISION):
        start = 1.7627471740390859  # below ln(3 + 2 sqrt 2)
        begins = bool(arb(start) < (3 + 2 * arb(2).sqrt()).log())
    return {
        "the first range begins at ln(3 + 2 sqrt 2)": begins,
        "no output at 1/2": positive(
            lambda x: -forms.without_middle(x.exp(), long(x)), start, forms.LIMIT_ONE - 2e-6
        ).proven,
        "an output at 1/2": positive(
            lambda x: forms.without_middle(x.exp(), long(x)), forms.LIMIT_ONE, forms.LIMIT_TWO
        ).proven,
        "errors up to the second limit": positive(
            lambda x: forms.with_middle(x.exp(), long(x)), start, forms.LIMIT_TWO
        ).proven,
        "and no further": positive(lambda x: -forms.with_middle(x.exp(), long(x)), forms.LIMIT_TWO + 2e-6, 4.0).proven,
        "thresholds": positive(thresholds, start, forms.LIMIT_TWO).proven,
        "atoms": positive(lambda x: 2 * (x.exp() - 1) - (x.exp() + 1) * long(x), start, forms.LIMIT_ONE).proven,
    }

"""The checks of D-OPTT-11: the least variance of unbiased mechanisms on [-1, 1] from eps = 1.393028 on.

With r = sqrt(E), u = r/2, v = t u and g = 1/(2u - v + 1/v), by symmetry for inputs and outputs above 0:

- the prior has the density of `varying_window` on [0, z], of mass M = 1/(E - 1) on [-z, z]; nothing up to x2 = g (u + 1/u); on
  [x2, 1], where x = g (2u - o + 1/o) with o from u down to v, the mass 2 K o/((E - 1)(1 + o^2)^2) do, K = (E + 4)/2; the atom
  a at 1. An input of [x2, 1] favours the outputs from y = 2g (u - o) to Y = 2g (u + 1/o), 1 those within R of c;
- the floor has the density 1/(2 (E - 1) y) on [p1, q1], 1/(2 (E - 1)(2 g u - y)) on [0, y0], the mass at y again at Y, and atoms
  alpha at p1, beta at 0 and alpha + beta + the mass of [0, y0] at q1 = 2 x2;
- for x from z to x2 the outputs -p1, [-y0, 0) and 0 give way to q1, one after the other.
"""

from __future__ import annotations

from typing import Any

import sympy as sp
from flint import arb, ctx

from optdp.audit.ranges import positive
from optdp.closed_forms import varying_window as forms
from optdp.exact.enclosures import PRECISION


def _shape(r: Any, v: Any, log: Any, ratio: Any) -> dict[str, Any]:
    """Everything as rational functions of r = sqrt(E), v, log(1 + 2/E) and log(u/v); for fields and balls alike."""
    e, u = r * r, r / 2
    g, k = 1 / (r - v + 1 / v), (e + 4) / 2
    first, last = e / 2, k * v**2 / (1 + v**2)  # 1 + (E - 1) (mass of the prior in [x, 1]) at x2 and below 1
    x2, y0, q2 = g * (u + 1 / u), 2 * g * (u - v), 2 * g * (u + 1 / v)
    q1 = 2 * x2
    p1 = q1 * e / (e + 2)
    z, lam, inner = (q1 - p1) / 2, q1 * p1, 1 / (e - 1)
    atom, outer, centre = (last - 1) / (e - 1), (first - last) / (e - 1), q2 * last / (last - 1)

    def part(o: Any) -> Any:
        return (u * o - (u**2 - 1) / 2) / (1 + o**2)

    products = 8 * k * g**2 / (e - 1) * (part(u) - part(v))  # of the ends of the windows over [x2, 1]
    moment = y0 * (k - last) / (e - 1)
    zero = 2 * products - lam * inner * e  # makes the reduced cost 0 at y = 0: 2 a (R^2 - c^2)
    level = inner * (q1**2 - lam) + (e + 1) * (q1**2 * (outer + atom) + products - zero / 2)
    level -= 2 * (e - 1) * q1 * (moment + atom * centre)
    logs = (e + 1) / 2 * lam * log + 4 * k * g**2 * ratio
    bound = logs / (e - 1) + 2 * atom * (2 * centre - 1) + zero
    # The floor on [0, y0]: mass, first and second moments; and the second moment of what balances it.
    pole, double = 2 * g * u, 2 * (e - 1)
    mass, first_moment = ratio / double, (pole * ratio - y0) / double
    second = (pole**2 * ratio - 2 * pole * y0 + (pole**2 - (2 * g * v) ** 2) / 2) / double
    top = 4 * g**2 / double * (u**2 * ratio + 2 * u * (1 / v - 1 / u) + (1 / v**2 - 1 / u**2) / 2)
    mean = (x2 - z) / (e - 1) - (
        mass * q1 + first_moment
    )  # what the atoms must give between z and x2: mean, second moment
    square = (x2**2 - z**2) / (e - 1) - (mass * q1**2 - second)
    alpha = (square - q1 * mean) / (q1**2 - p1**2 - q1 * (p1 + q1))
    beta = (mean - alpha * (p1 + q1)) / q1
    inside = log / double
    floor = 2 * (alpha + inside + alpha + mass + beta + mass) + beta + 2 * mass
    room = (1 - floor) / (e - 1) - (2 * alpha + inside + beta + 2 * mass)  # 0 if the rows have mass 1
    variance = 2 * (alpha * p1**2 + (q1**2 - p1**2) / (2 * double) + (alpha + mass + beta) * q1**2 + top) + 2 * second
    variance += (e - 1) * (2 * alpha * p1**2 + 2 * second) + (lam - p1**2) / 2
    return {"u": u, "g": g, "k": k, "first": first, "last": last, "x2": x2, "y0": y0, "q1": q1, "q2": q2, "p1": p1, "z": z,
            "lam": lam, "inner": inner, "atom": atom, "outer": outer, "centre": centre, "zero": zero, "level": level,
            "bound": bound, "alpha": alpha, "beta": beta, "room": room, "variance": variance, "e": e}  # fmt: skip


def identities() -> dict[str, bool]:
    """Reduced costs, masses, and that the mechanism closes and meets the bound where the bound is stationary in v."""
    _, r, v, log, ratio, o = sp.field("r,v,l,m,o", sp.QQ)
    s = _shape(r, v, log, ratio)
    e, u, g, k = s["e"], s["u"], s["g"], s["k"]
    x, y, top = g * (2 * u - o + 1 / o), 2 * g * (u - o), 2 * g * (u + 1 / o)
    below, weight = k / (1 + o**2), k * o**2 / (1 + o**2)  # 1 + (E - 1) (prior that favours y, and that favours Y)
    rate = 2 * k * o / (1 + o**2) ** 2
    # The middle, with theta = sqrt(lam) (o - 1/o)/2, y = sqrt(lam) o: in units of sqrt(lam).
    half = (e + 1) / (o**2 + 1)
    slope = s["bound"].diff(v) - s["bound"].diff(ratio) / v  # log(u/v) falls with v
    equation = (e + 1) * (e + 4) * log + 4 * (e + 2) * ratio - 2 * r * v * (e + 2) + 8
    factor = v * (e + 4) * (v**2 + 1) / ((e - 1) * (e + 2) * (r * v - v**2 + 1) ** 3)
    settled = (2 * r * v * (e + 2) - 8 - (e + 1) * (e + 4) * log) / (4 * (e + 2))  # log(u/v) where the slope is 0
    t = 2 * v / r
    zeros = {
        "prior of mass 1": s["inner"] + 2 * s["outer"] + 2 * s["atom"] - 1,
        "weights": below.diff(o) + rate,
        "weights meet": 1 + (e - 1) * s["inner"] + s["first"] - k,
        "slope on [0, y0]": (y * below).diff(o) + x * rate,
        "slope on [q1, q2]": (top * weight).diff(o) - x * rate,
        "slope at q2": s["q2"] * s["last"] - (s["last"] - 1) * s["centre"],
        "slope on [p1, q1]": (o * half).diff(o) - (o - 1 / o) / 2 * half.diff(o),
        "windows": x - y - g * (o + 1 / o) + (top - x) - g * (o + 1 / o),
        "mass of the middle": (e + 1) * (2 / e) / (2 + 2 / e) - (e - 1) * s["inner"],
        "weight at q1": (e + 1) / (2 + 2 / e) - s["first"],
        "level": s["level"],
        "floor on [0, y0]": x.diff(o) * (2 * g * o) - y.diff(o) * (top - y) / 2,
        "slope in v": slope - factor * equation,
        "the rows close": s["room"] * 2 * v * (e - 1) * (e + 4) ** 2 * (v**2 + 1)
        + (e + 2) * (r * v - v**2 + 1) ** 3 * slope,
        "variance": (s["variance"] - s["bound"]) * 2 * (v**2 + 1) + v * (r * v - v**2 + 1) * slope,
    }
    printed = forms.split_value(e, t)
    value = s["bound"] - s["bound"].diff(ratio) * (ratio - settled)
    zeros["value"] = value - printed
    zeros["equation"] = equation - 4 * (e + 2) * (forms.split_parameter(e, log) - e * t / 4 + ratio)
    return {name: zero == 0 for name, zero in zeros.items()}


def root(x: arb) -> arb:
    """t(eps), by Lambert's W."""
    e = x.exp()
    return 4 / e * (e / 4 * forms.split_parameter(e, (1 + 2 / e).log()).exp()).lambertw()


def signs(x: arb) -> dict[str, arb]:
    """What has to be positive, as functions of eps."""
    e, t = x.exp(), root(x)
    r = e.sqrt()
    v = t * r / 2
    s = _shape(r, v, (1 + 2 / e).log(), -t.log())
    radius = (s["centre"] ** 2 + s["zero"] / (2 * s["atom"])).sqrt()
    near = s["centre"] - radius
    return {"below 1": 1 - t, "atom": s["atom"], "near": near - s["y0"], "inner": s["p1"] - near,
            "far": s["centre"] + radius - s["q2"], "alpha": s["alpha"], "beta": s["beta"]}  # fmt: skip


def ranges() -> dict[str, bool]:
    """All signs from just above the second limit to the third, by balls; t < 1 beyond the second limit."""
    names = ("atom", "near", "inner", "far", "alpha", "beta")

    def least(x: arb) -> arb:
        found = signs(x)
        value = found[names[0]]
        for name in names[1:]:
            value = value.min(found[name])
        return value

    with ctx.workprec(PRECISION):
        ends = bool(signs(arb(forms.SPLIT_LIMIT + 1e-6))["beta"] < 0)
    return {
        "no further": ends,
        "t < 1": positive(lambda x: signs(x)["below 1"], forms.LIMIT + 1e-6, forms.SPLIT_LIMIT).proven,
        "signs": positive(least, forms.LIMIT + 1e-6, forms.SPLIT_LIMIT).proven,
    }

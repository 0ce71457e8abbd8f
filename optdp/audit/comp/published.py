"""Published variances of unbiased LDP mechanisms on [-1, 1], as sympy expressions in `eps` and `x`, each with its source.

Tests compare each with the moments of the mechanism's own distribution.
"""

from __future__ import annotations

import sympy as sp

eps = sp.Symbol("eps", positive=True)
x = sp.Symbol("x", real=True)

_E, _s, _c = sp.exp(eps), sp.exp(eps / 2), sp.exp(eps / 3)

#: Laplace of scale 2/eps (Dwork et al., 2006).
LAPLACE = 8 / eps**2

#: Duchi, Jordan and Wainwright (JASA 2018); Wang et al. (ICDE 2019), Eq. (4).
DUCHI = ((_E + 1) / (_E - 1)) ** 2 - x**2

#: PM: Wang et al. (ICDE 2019), Lemma 1.
PM = x**2 / (_s - 1) + (_s + 3) / (3 * (_s - 1) ** 2)

#: HM: Wang et al. (ICDE 2019), Eq. (8): its worst case, for eps > 0.61 and below.
HM_WORST_HIGH = (_s + 3) / (3 * _s * (_s - 1)) + (_E + 1) ** 2 / (_s * (_E - 1) ** 2)
HM_WORST_LOW = ((_E + 1) / (_E - 1)) ** 2

#: PM with parameter t (Zhao et al., IEEE IoT Journal 2020); PM-SUB is t = e^(eps/3), PM is t = e^(eps/2).
t = sp.Symbol("t", positive=True)
PM_T = (t + 1) * x**2 / (_E - 1) + (t + _E) * ((t + 1) ** 3 + _E - 1) / (3 * t**2 * (_E - 1) ** 2)
PM_SUB = PM_T.subs(t, _c)

#: Three-Outputs (Zhao et al., 2020): the variance with P(0 | 0) = a, and the a that they derive, by ranges of eps.
a = sp.Symbol("a", nonnegative=True)
THREE_OUTPUTS = (_E + 1) ** 2 / ((_E - 1) ** 2 * (1 - a / _E) ** 2) * (1 - a + a * (1 - 1 / _E) * sp.Abs(x)) - x**2
_d0 = _E**4 + 14 * _E**3 + 50 * _E**2 - 2 * _E + 25
_d1 = -2 * _E**6 - 42 * _E**5 - 270 * _E**4 - 404 * _E**3 - 918 * _E**2 + 30 * _E - 250
_angle = sp.pi / 3 + sp.acos(-_d1 / (2 * _d0 ** sp.Rational(3, 2))) / 3
THREE_OUTPUTS_ZERO = sp.Piecewise(
    (0, eps < sp.log(2)),
    ((_E**2 + 4 * _E + 5 - 2 * sp.sqrt(_d0) * sp.cos(_angle)) / 6, eps <= sp.log(sp.Rational(553, 100))),
    (_E / (_E + 2), True),
)

#: Discrete Laplace with e^(-eps/n) per step of 2/n, at lattice points (Ghosh, Roughgarden and Sundararajan, 2012).
n = sp.Symbol("n", positive=True)
_q = sp.exp(-eps / n)
DISCRETE_LAPLACE = (2 / n) ** 2 * 2 * _q / (1 - _q) ** 2

#: Gaussian with the classical calibration for sensitivity 2 (composite paper, Eq. 5).
delta = sp.Symbol("delta", positive=True)
GAUSSIAN = 8 * sp.log(sp.Rational(5, 4) / delta) / eps**2

#: Central Piecewise Mechanism (Yamamoto et al.) with m steps and parameter b, for sensitivity 2/(m + 1).
b = sp.Symbol("b", positive=True)


def central_piecewise(m: int) -> dict[str, sp.Expr]:
    """Density q at the top, slope X of the centre, range D = X + Y_1 and the variances at the inputs 0 and 1, as published."""
    top, step = sp.exp(eps / b), sp.Rational(2, m + 1)
    z = _E**m
    q = (
        top
        / (2 * (top + 1) ** 2 * (_E - 1))
        * ((_E - 1) * (_E * z - 1) - step * _E / top * (m * _E * z - (m + 1) * z + 1))
    )
    slope = _E * z / (2 * q * (top + 1))
    half = [
        top / (2 * q * (top + 1)) * (1 + step * _E / top * ((m + 1 - j) * z - (z - 1) / (_E - 1)))
        for j in range(1, m + 2)
    ]
    reach = slope + half[0]
    weights = [_E ** (j - m - 1) for j in range(1, m + 2)]
    at_zero = (
        sp.Rational(2, 3)
        * q
        * ((_E - 1) / _E * sum(h**3 * w for h, w in zip(half, weights, strict=True)) + reach**3 / _E ** (m + 1))
    )
    moved = 2 * q * slope**2 * (_E - 1) / _E * sum(h * w for h, w in zip(half, weights, strict=True)) - 1
    return {"q": q, "X": slope, "D": reach, "variance at 0": at_zero, "variance at 1": at_zero + moved}

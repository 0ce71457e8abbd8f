"""The variance of an unbiased mechanism that is a base plus a window which follows the input: one variable is left.

Inputs are x in [-1, 1]. With probability pi the output comes from the base on the range [r - B, r + B] (shape g, spread mu,
level l, least height d), otherwise it is the window's centre plus a U with U from the activation (shape h, fill c, spread v).
Write w = a/B for the window's share of the range.

- *Unbiased* iff the centre is r + k (x - r) with (1 - pi) k = 1.
- *Within the range* (beyond which the base has no density that could hide a window) iff B >= k (1 + |r|) + a; at fixed w
  everything below grows with B, so B = k (1 + |r|)/(1 - w).
- *The rule*: (1 - pi)/pi <= s w, where, with E = e^eps, s = (E d - 1) c/l if the largest densities of both parts together are
  at most E times the base's least ("uniform": composite paper, Definition 3.3), and s = (E - 1) d c/l if the window's largest
  density is at most E - 1 times the base's least ("pointwise"). Both imply eps-LDP, and they agree for a constant base.
  Neither is implied by it: windows that cover most of the range overlap, and a triangle could then be higher. At fixed w the
  variance decreases in s, so that the rule holds with equality.

Hence pi = 1/(1 + s w), k = 1 + 1/(s w), and with

    A = 1/(s w),    Q = (1 + s w)(mu + s v w^3) / (s^2 w^2 (1 - w)^2)

the variance at x is V(w, r) = A (x - r)^2 + Q (1 + |r|)^2. Its worst case over x is least at r = 0, of value A + Q. At a given
x >= 0 it is least at r = max(0, (A x - Q)/(A + Q)), of value A Q (1 + x)^2/(A + Q) if A x > Q, else A x^2 + Q; the former
is a lower bound in both cases. Either way one rational function of w in (0, 1) is left, whose stationary points are the roots
of a polynomial. I-PTT and A1B1 have c = 1, v = 1/3; II-PTT and A3B1 c = 1/2, v = 1/6; A2B1 c = 2/pi, v = 1 - 8/pi^2.

**B2 never beats B1.** For g = 1 - (1 - e) u^4 (e in (0, 1) its value at the ends), up to constants s ~ (E e - 1)/(4 + e)
(or e/(4 + e), by the pointwise rule) and mu = (5/21)(4 + 3 e)/(4 + e). A is a constant over s, Q a sum of terms that decrease in
s, one of them times mu; that one decreases in e because d log s/de >= 1/e - 1/(4 + e) = 4/(e (4 + e)) exceeds d log mu/de =
8/((4 + 3 e)(4 + e)). So at every (w, r) V decreases as e grows to 1, where B2 is B1: the same infimum, not attained by B2.

**Any density between a floor and E times it.** Let the density lie between a constant floor f and E f on any interval
[r - B, r + B], in whatever way it depends on x (this includes windows below the floor). For each x, the density with mass 1 and
mean x that has the least second moment is E f on an interval and f elsewhere (bathtub with two constraints), of the same length
for every x: a rectangular window, which fits into the range iff x can be the mean at all. So the optimum is that of c = 1,
v = 1/3, for every eps.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from flint import arb, arb_poly, ctx

from optdp.exact import Log, Number, enclosures, polynomial
from optdp.problem import Rule, Shape


def slope(eps: Number, activation: Shape, base: Shape, rule: Rule = "uniform") -> arb:
    """s: the largest odds of the window against the base, per unit of the window's share, at the working precision.

    Not positive where the base varies by a factor of e^eps or more, so that no window can stand above it ("uniform").
    """
    growth = enclosures.ball(eps.argument - 1) if isinstance(eps, Log) else enclosures.ball(eps).expm1()
    dip = enclosures.ball(base.least)
    room = (growth + 1) * dip - 1 if base.least != 1 and rule == "uniform" else growth * dip
    return room * activation.level() / base.level()


def parts(s: arb, activation: Shape, base: Shape) -> tuple[arb_poly, arb_poly, arb_poly]:
    """Polynomials a, q, d in w with A = a/d and Q = q/d."""
    w = arb_poly([0, 1])
    q = (1 + s * w) * (base.spread() + s * activation.spread() * w**3)
    return s * w * (1 - w) ** 2, q, s**2 * w**2 * (1 - w) ** 2


def best_window(
    eps: Number, activation: Shape, base: Shape, rule: Rule = "uniform", position: Fraction | None = None,
    shifts: bool = False,
) -> tuple[float, float, float]:  # fmt: skip
    """(w, r, V): the window's share, the middle of the range and the variance for inputs in [-1, 1], to double precision.

    **Arguments:** `rule`: see the module; `position`: the input x in [0, 1] of which the variance is minimised, None for the
    worst case; `shifts`: whether the range may be off centre (r = 0 otherwise).

    **Raises** ValueError if the base varies by a factor of e^eps or more.

    An estimate: a certificate (`optdp.certificates.affine_window`) turns V into a bound.

        >>> from optdp.problem.shapes import Rectangle
        >>> w, r, variance = best_window(1.0, Rectangle(), Rectangle())
        >>> round(1 / w, 5), r, round(variance, 5)                    # I-PTT: eta and the worst-case variance
        (2.28876, 0.0, 5.06568)
    """
    with ctx.workprec(enclosures.PRECISION):
        s = slope(eps, activation, base, rule)
        if not s > 0:
            why = f"it varies by a factor {1 / float(base.least):g} >= e^eps, which leaves no room for an activation"
            raise ValueError(f"base = {str(base)!r} is not allowed at this eps: {why}")
        a, n, d = parts(s, activation, base)
        x = enclosures.ball(Fraction(1) if position is None else position)
        w, rise = arb_poly([0, 1]), n.derivative()
        conditions = [rise * w * (1 - w) - 2 * n * (1 - 2 * w) - x**2 * s * w * (1 - w) ** 3]
        moving = shifts and position is not None and not polynomial.positive(n - a * x)
        if moving:
            conditions.append(n**2 + s * (2 * w * (1 - w) * (1 - 2 * w) * n - w**2 * (1 - w) ** 2 * rise))
            conditions.append(n - s * w * (1 - w) ** 2 * x)

        def variance(w: arb) -> tuple[arb, arb]:
            rise, still = a(w) / d(w), n(w) / d(w)
            if moving and rise * x > still:
                return rise * still * (1 + x) ** 2 / (rise + still), (rise * x - still) / (rise + still)
            return rise * x**2 + still, arb(0)

        grid = [1 / (1 + 2 ** enclosures.ball(Fraction(30 - j, 4))) for j in range(-30, 151)]
        share = min((root for c in conditions for root in _roots(c, grid)), key=lambda root: float(variance(root)[0]))
        value, shift = variance(enclosures.ball(float(share)))
        return float(share), float(shift), float(value)


def _roots(condition: arb_poly, grid: Sequence[arb]) -> list[arb]:
    """Midpoints of the brackets of 2^-80 relative width in which the polynomial changes sign between points of the grid."""
    found = []
    for (a, start), (b, end) in pairwise((point, bool(condition(point) > 0)) for point in grid):
        if start == end:
            continue
        for _ in range(80):
            middle = ((a + b) / 2).mid()
            a, b = (middle, b) if bool(condition(middle) > 0) == start else (a, middle)
        found.append(((a + b) / 2).mid())
    return found

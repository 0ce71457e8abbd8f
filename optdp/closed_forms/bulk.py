r"""The least worst-case loss E|Y - x|^q over all eps-LDP mechanisms on [0, 1] for large eps: V(eps) ~ c_q e^(-q eps/(q+1)).

The constants c_1 and c_2, and bounds on V(eps) from both sides at every eps, whose ratio tends to 1. `docs/kernel-limit.md`
has the statements and proofs; here they are functions that return enclosures (Arb balls). On the centred interval
[-1/2, 1/2], with an output Y = Q(p) for a smooth increasing Q and p from an interval:

    q = 1:   Q(p) = sqrt(pi) g0 erf(p),   |p| <= P,       g0 = 1/(2 sqrt(pi) erf(P))
    q = 2:   Q(p) = r sin(p),             |p| <= Theta,   r = 1/(2 sin(Theta))

the *mechanism* draws p uniformly from the whole interval with probability F and from a window of constant length around
Q^-1(x) else: windows of the outputs, Q of that, are wide where Q' is large. The *prior* that proves the lower bound has a
density in elementary functions of the same Q. Both depend on one number, P or Theta, and the two meet as eps grows where

    q = 1:   sqrt(pi) erf(P) exp(P^2) = P + sqrt(P^2 + 2),    c_1 = (P + sqrt(P^2 + 2))/4
    q = 2:   9 Theta tan(Theta) + sin(Theta)^2 = 18 Theta^2,
             c_2 = (3 Theta - sin(Theta) cos(Theta))/(8 (3 Theta)^(1/3) sin(Theta)^2).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

from flint import arb, ctx

from optdp.exact import Number, enclosures
from optdp.exact.enclosures import PRECISION, ball

#: Parameters of bounds are dyadic rationals with so many bits after the point: any choice gives a valid bound.
BITS = 120


class Bracket(NamedTuple):
    """Proven bounds of V(eps), as balls: `lower.lower()` is below the optimum, `upper.upper()` above it."""

    lower: arb
    upper: arb


def bulk_equation(q: int, p: Any) -> Any:
    """The equation for P (q = 1) or Theta (q = 2): negative below its root, positive above. **Raises** ValueError for other q."""
    _supported(q)
    if q == 1:
        return arb.pi().sqrt() * p.erf() * (p * p).exp() - p - (p * p + 2).sqrt()
    return 9 * p * p.tan() + p.sin() ** 2 - 18 * p * p


def bulk_parameter(q: int) -> arb:
    """P for q = 1, Theta for q = 2: the root in (1/2, 3/2), enclosed by a change of sign.

    >>> bulk_parameter(1).str(12, radius=False), bulk_parameter(2).str(12, radius=False)
    ('0.784116602538', '1.14619924394')
    """
    with ctx.workprec(PRECISION):
        low = _largest(lambda p: bulk_equation(q, ball(p)) < 0, Fraction(1, 2), Fraction(3, 2))
        high = low + Fraction(1, 2 ** (BITS - 4))
        if not (bulk_equation(q, ball(low)) < 0 < bulk_equation(q, ball(high))):
            raise ArithmeticError(f"no change of sign between {low} and {high}")
        return ball(low).union(ball(high))


def bulk_constant(q: int) -> arb:
    """The limit c_q of e^(q eps/(q+1)) V(eps) as eps -> infinity on [0, 1], for E|Y - x| (q = 1) and E(Y - x)^2 (q = 2).

    On an interval of width b - a it is (b - a)^q c_q. For unbiased mechanisms and the squared loss the limit is the same.

    >>> bulk_constant(1).str(12, radius=False), bulk_constant(2).str(12, radius=False)
    ('0.600290734140', '0.305536380127')
    """
    with ctx.workprec(PRECISION):
        return bulk_value(q, bulk_parameter(q))


def bulk_value(q: int, p: Any) -> Any:
    """What the floor with the parameter P or Theta costs in the limit: c_q is its least value."""
    _supported(q)
    if q == 1:
        return _edge(p) + p / 2
    return (3 * p - p.sin() * p.cos()) / (8 * (3 * p) ** (arb(1) / 3) * p.sin() ** 2)


def bulk_bracket(q: int, eps: Number) -> Bracket:
    """Bounds on the least worst-case E|Y - x|^q over all eps-LDP mechanisms on [0, 1]; the upper one is attained.

    Their ratio is 1 + O(e^(-eps/2)) for q = 1 and 1 + O(e^(-eps/3)) for q = 2: useful from eps = 6 on.

    >>> low, high = bulk_bracket(1, 20)
    >>> float((high - low)/low) < 3e-5
    True
    """
    _supported(q)
    with ctx.workprec(PRECISION):
        excess = enclosures.exp(eps) - 1
        if not excess > 0:
            raise ValueError(f"eps = {eps!r} is not allowed: it must be positive")
        if q == 1:
            return Bracket(_abs_lower(excess), abs_upper(excess, ball(_middle(bulk_parameter(1)))))
        theta = ball(_middle(bulk_parameter(2)))
        return Bracket(_squared_lower(excess, theta), squared_upper(excess, theta))


def unbiased_upper(eps: Number) -> arb:
    """The variance of an explicit unbiased eps-LDP mechanism on [0, 1], the same at every x (`equaliser_variance`).

    The window is chosen by ternary search. Bounded below by `bulk_bracket(2, eps).lower`, as every mechanism is.
    """
    with ctx.workprec(PRECISION):
        excess = enclosures.exp(eps) - 1
        high = _largest(lambda w: equaliser_spread(excess, ball(w)) < arb.pi() / 2, Fraction(0), Fraction(3, 2))
        low = _largest(lambda w: equaliser_spread(excess, ball(w)) < ball(w), Fraction(0), high)
        for _ in range(80):
            one, two = (2 * low + high) / 3, (low + 2 * high) / 3
            one, two = (Fraction(int(t * 2**BITS), 2**BITS) for t in (one, two))
            if equaliser_variance(excess, ball(one)) < equaliser_variance(excess, ball(two)):
                high = two
            else:
                low = one
        return equaliser_variance(excess, ball(high))


# -- absolute error: every function in balls, `excess` = e^eps - 1 -------------------------------------------------------


def _top(p: Any) -> Any:
    """g(0) = 1/(2 sqrt(pi) erf(P))."""
    return 1 / (2 * arb.pi().sqrt() * p.erf())


def _edge(p: Any) -> Any:
    """g at the ends of the interval, g(0) exp(-P^2)."""
    return _top(p) * (-p * p).exp()


def abs_slack(p: Any) -> tuple[Any, Any]:
    """(N, delta) of the prior with the parameter P: it proves V >= N wherever `abs_feasible`."""
    edge, value = _edge(p), bulk_value(1, p)
    bound = arb(1) / 2 - 4 * edge * value
    return bound, bound / (edge * (1 + 4 * p * value))


def abs_curvature(p: Any, delta: Any) -> Any:
    """kappa: windows of the prior's inputs are off their linearisation by a factor of at most 1 + kappa delta^2."""
    top, edge, value = _top(p), _edge(p), bulk_value(1, p)
    most = 4 * edge * value + 2 * delta * top
    bend = p + value / edge * top + p + most / (2 * edge) + p**2 * most / (top * (1 - 2 * delta * p))
    return bend / (6 * edge)


def abs_feasible(excess: Any, p: Any) -> bool:
    """Whether the prior with the parameter P proves V >= N at this e^eps - 1."""
    _, delta = abs_slack(p)
    fits = 2 * delta * p < 1 and excess * delta**2 * (1 + abs_curvature(p, delta) * delta**2) <= 1
    return bool(delta > 0 and fits)


def _abs_lower(excess: arb) -> arb:
    start = Fraction(int(enclosures.upper(bulk_parameter(1)) * 2**BITS) + 2, 2**BITS)
    if not abs_feasible(excess, ball(start)):
        return arb(0)
    return abs_slack(ball(_largest(lambda p: abs_feasible(excess, ball(p)), start, Fraction(3, 2))))[0]


def abs_upper(excess: Any, p: Any) -> Any:
    """The worst-case loss, at most, of the mechanism with atoms at the ends: window length l, atoms of length l - b in p."""
    window = 2 / (excess + 1).sqrt()
    inner = window / arb(2).sqrt()
    inner = inner * (-p * inner).exp()
    atom = window - inner
    if not (2 * p * p - 1 < 1 and window < p):  # the window fits; (E - 1) l^2 exp((2 P^2 - 1) l^2/4) <= 4
        return arb(1) / 2
    return (2 * bulk_value(1, p) + atom) / (excess * window + 2 * (p + atom))


# -- squared error -----------------------------------------------------------------------------------------------------


def squared_prior(excess: Any, theta: Any, shift: Any) -> tuple[Any, Any]:
    """(N, slack) of the prior (x^2 + shift r^2)/(r^2 - x^2)^(3/2): it proves V >= N where the slack is >= 0."""
    tan, half = theta.tan(), (theta - theta.sin() * theta.cos()) / 2
    scale = 1 / (2 * ((1 + shift) * tan - theta))
    reach = (3 / (4 * scale * excess)) ** (arb(1) / 3)
    spread = 2 * scale * ((1 + shift) * (tan - theta) - half)  # the prior's variance over r^2
    bound = 2 * scale * reach**2 * (half + shift * theta)  # N over r^2
    slack = spread - bound - shift - reach**2 / 5
    fits = theta + reach.atan() < arb.pi() / 2
    return bound / (4 * theta.sin() ** 2), slack if fits else arb(-1)


def _squared_lower(excess: arb, theta: arb) -> arb:
    def good(shift: Fraction) -> bool:
        return bool(squared_prior(excess, theta, ball(shift))[1] >= 0)

    if not good(Fraction(0)):
        return arb(0)
    return squared_prior(excess, theta, ball(_largest(good, Fraction(0), Fraction(1))))[0]


def squared_fits(excess: Any, theta: Any, window: Any, inner: Any) -> bool:
    """Whether the mechanism with this window and atoms of length window - inner has its worst inputs in the middle."""
    atom = window - inner
    wide = excess * (window**3 / 12 - window**5 / 320) >= 2 * (theta + atom)
    ends = inner**3 * (1 + inner * theta.tan()) ** 2 <= window**3 / 4
    return bool(wide and ends and atom >= 0 and window < theta and 2 * theta + atom < arb.pi())


def squared_cost(excess: Any, theta: Any, window: Any, inner: Any) -> Any:
    """Its worst-case loss, at most, where `squared_fits`."""
    middle = (theta - theta.sin() * theta.cos() + excess * window**3 / 12) / (4 * theta.sin() ** 2)
    return (middle + (window - inner) / 2) / (excess * window + 2 * (theta + window - inner))


def squared_upper(excess: arb, theta: arb) -> arb:
    """The worst-case loss, at most, of the mechanism with atoms at the ends."""

    def inner(window: Fraction) -> Fraction:
        most = ball(window) ** 3 / 4
        return _largest(lambda b: ball(b) ** 3 * (1 + ball(b) * theta.tan()) ** 2 <= most, Fraction(0), window)

    def short(window: Fraction) -> bool:
        return not squared_fits(excess, theta, ball(window), ball(inner(window)))

    window = _largest(short, Fraction(0), Fraction(1)) + Fraction(1, 2 ** (BITS - 4))
    if short(window):
        return arb(1) / 4
    return squared_cost(excess, theta, ball(window), ball(inner(window)))


def equaliser_spread(excess: Any, half: Any) -> Any:
    """Theta = (E - 1)(tan w - w): p is uniform on [-Theta, Theta] in the unbiased mechanism with windows [p - w, p + w]."""
    return excess * (half.tan() - half)


def equaliser_variance(excess: Any, half: Any) -> Any:
    """Its variance at every x of [0, 1], as long as w < Theta < pi/2; elsewhere there is none (infinity).

    (sin(w)^2 - cot(w) sin(2 Theta)/(2 (E - 1)))/(8 cos(w)^2 sin(Theta - w)^2).
    """
    spread = equaliser_spread(excess, half)
    if not (half < spread and spread < arb.pi() / 2):
        return arb("inf")
    rest = half.cot() * (2 * spread).sin() / (2 * excess)
    return (half.sin() ** 2 - rest) / (8 * half.cos() ** 2 * (spread - half).sin() ** 2)


# -- searches ----------------------------------------------------------------------------------------------------------


def _supported(q: int) -> None:
    if q not in (1, 2):
        raise ValueError(f"q = {q!r} is not allowed: q must be 1 or 2")


def _largest(holds: Callable[[Fraction], bool], low: Fraction, high: Fraction) -> Fraction:
    """A dyadic point of [low, high] up to which `holds` by bisection: true at the answer (given that it is at `low`)."""
    while high - low > Fraction(1, 2 ** (BITS - 4)):
        middle = Fraction(int((low + high) * 2 ** (BITS - 1)), 2**BITS)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _middle(enclosure: arb) -> Fraction:
    """A dyadic rational near the middle of a ball."""
    return Fraction(int(enclosures.lower(enclosure) * 2**BITS), 2**BITS)

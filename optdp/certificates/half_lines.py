r"""Gaussian DP: half-lines alone prove that no noise is much better than the Gaussian at a small mu.

Let X be symmetric and mu-GDP for neighbours up to 1 apart, Q = 1 - Phi, and P(X > x) = Q(g(x)). Half-lines give
g(x + 1) <= g(x) + mu, and symmetry g(-x) = -g(x) for almost all x, so that for 0 < x < 1/2 and a = g(x), 0 <= a <= mu/2,

    P(X > j + x) >= Q(j mu + a),        P(X > j + 1 - x) >= Q((j + 1) mu - a),        j = 0, 1, 2, ...

Summed up, E X^2 >= 4 int_0^(1/2) F(x, a) dx for an F that is convex in a: it lies above its tangent at a = mu x, where the
integral is the Gaussian's 1/mu^2, and E|X| is least at a = mu/2. Hence

    E X^2 >= (1 - 4 sum_(m >= 1) e^(-2 pi^2 m^2/mu^2))/mu^2,
    E|X| >= 2 sum_(j >= 0) Q((j + 1/2) mu) >= (1 - mu^2/8) sqrt(2/pi)/mu.

*Any loss.* m shifts take {X >= -t} to {X > t} if 2t <= m: 1 - b/2 <= F^m(b/2) for b = P(|X| > t), F(y) = Phi(Phi^-1(y) + mu),
so that b >= 2 Q(m mu/2), what the Gaussian attains where 2t = m. (No point has a mass, else uncountably many would.) Hence

    E L(|X|) = L(0) + int_0^oo P(|X| > t) dL(t)  >=  L(0) + sum_(m >= 1) 2 Q(m mu/2) (L(m/2) - L((m-1)/2))

for a nondecreasing L, and so it is with any rising sequence of m in place of 1, 2, .... On the integers with sensitivity D
m shifts take {X >= 1 - k} to {X >= k} if 2k - 1 <= m D: floor((m D + 1)/2) takes the place of m/2. With D = 1 that is what the
rounded Gaussian attains for every loss, for |x| the sum over j above.

The steps are decided by program in the discoveries D-TLAP-7 to D-TLAP-9 (`optdp.audit.tlap.discoveries`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import Any

from flint import arb, ctx, fmpq

from optdp.certificates.additive import not_noise, on_integers
from optdp.certificates.base import Bound, Certificate
from optdp.exact import enclosures, work
from optdp.exact.numbers import Number
from optdp.problem import GDP, DistanceLoss, Integers, Problem
from optdp.problem.privacy import gauss_tail

#: Terms of the series that are added one by one; terms of the sum over m, at most, and how far out, in standard deviations.
TERMS, MOST, FAR = 60, 8000, 40


def variance_share(mu: Number) -> arb:
    """1 - 4 sum_(m >= 1) e^(-2 pi^2 m^2/mu^2): the share of the Gaussian's variance 1/mu^2 below which no noise gets."""
    with ctx.workprec(enclosures.PRECISION):
        q = (-2 * arb.pi() ** 2 / enclosures.ball(mu) ** 2).exp()
        rest = q ** (TERMS**2) / (1 - q)  # exponents grow by more than 1
        return 1 - 4 * (sum((q ** (m * m) for m in range(1, TERMS)), arb(0)) + rest * arb(0.5, 0.5))


@dataclass(frozen=True)
class HalfLinesCertificate(Certificate):
    """The bounds above, for powers and piecewise polynomials: there is nothing to choose."""

    tag = "half-lines"

    def bound(self, problem: Problem) -> Bound:
        problem = on_integers(problem)
        privacy = problem.privacy
        if reason := not_noise(problem):
            self._refuse(reason)
        if not isinstance(privacy, GDP):
            self._refuse("it is for Gaussian DP")
        loss: Any = problem.objective.loss
        if loss.assumptions:
            self._refuse("the loss must be a power or piecewise polynomial")
        with ctx.workprec(enclosures.PRECISION):
            mu, width = enclosures.ball(privacy.mu), enclosures.ball(privacy.sensitivity)
            found = [_any_loss(loss, privacy.sensitivity, isinstance(problem.domain, Integers), privacy.mu)]
            if loss.exponent == 1:
                found.append((1 - mu**2 / 8) * (2 / arb.pi()).sqrt() * width / mu)
                found.append(width * _any_loss(loss, 1.0, True, privacy.mu))
            elif loss.exponent == 2:
                found.append(variance_share(privacy.mu) * (width / mu) ** 2)
            value = max(0.0, *map(enclosures.round_down, found))
            return Bound(value, "half-lines under Gaussian DP, ball arithmetic")


def _any_loss(loss: Any, sensitivity: float, discrete: bool, mu: Number) -> arb:
    """The sum over m, of `MOST` terms at most and those at which the loss jumps."""
    width = Fraction(sensitivity)
    half = fmpq(width.numerator, 2 * width.denominator)
    exponent = None if loss.exponent is None else enclosures.ball(loss.exponent)

    def at(m: int) -> arb:
        """L there; where it jumps, on the line the value beyond."""
        x = fmpq((m * half + fmpq(1, 2)).floor()) if discrete else m * half
        if exponent is not None:
            return arb(x) ** exponent if x else arb(0)
        place = Fraction(int(x.p), int(x.q))
        return enclosures.ball(loss.exact(place) if discrete else DistanceLoss.exact(loss, place))

    last = ceil(2 * FAR / Fraction(float(enclosures.ball(mu).mid())))
    if loss.bounded:
        last = min(last, ceil((2 * loss.polynomials[0][-1] + 1) / width))
    steps = sorted({*range(0, last + 1, -(-last // MOST)), *_jumps(loss, width, discrete)})
    work.count(30 * len(steps))
    values = [at(m) for m in steps]
    tails = _tails(mu, tuple(steps[1:]), ctx.prec)
    return values[0] + sum((t * (b - a) for t, a, b in zip(tails, values, values[1:], strict=False)), arb(0))


@lru_cache(maxsize=8)
def _tails(mu: Number, steps: tuple[int, ...], bits: int) -> list[arb]:
    """2 Q(m mu/2) at a precision of `bits`: a design asks for what its proof asks for, and |x| twice."""
    with ctx.workprec(bits):
        apart = enclosures.ball(mu)
        return [2 * gauss_tail(m * apart / 2) for m in steps]


def _jumps(loss: Any, width: Fraction, discrete: bool) -> set[int]:
    """The first m at which the loss counts as beyond each of its breaks."""
    breaks = loss.polynomials[0][1:] if loss.exponent is None else ()
    if not discrete:
        return {ceil(2 * b / width) for b in breaks}
    return {ceil((2 * k - 1) / width) for b in breaks for k in {ceil(b), floor(b) + 1}}

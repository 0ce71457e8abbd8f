r"""Gaussian DP: half-lines alone prove that no noise is much better than the Gaussian at a small mu.

Let X be symmetric and mu-GDP for neighbours up to 1 apart, Q = 1 - Phi, and P(X > x) = Q(g(x)). Half-lines give
g(x + 1) <= g(x) + mu, and symmetry g(-x) = -g(x) for almost all x, so that for 0 < x < 1/2 and a = g(x), 0 <= a <= mu/2,

    P(X > j + x) >= Q(j mu + a),        P(X > j + 1 - x) >= Q((j + 1) mu - a),        j = 0, 1, 2, ...

Summed up, E X^2 >= 4 int_0^(1/2) F(x, a) dx for an F that is convex in a: it lies above its tangent at a = mu x, where the
integral is the Gaussian's 1/mu^2, and E|X| is least at a = mu/2. Hence

    E X^2 >= (1 - 4 sum_(m >= 1) e^(-2 pi^2 m^2/mu^2))/mu^2,        E|X| >= (1 - mu^2/8) sqrt(2/pi)/mu.

The steps are decided by program in the discoveries D-TLAP-7 and D-TLAP-8 (`optdp.audit.tlap.discoveries`).
"""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb, ctx

from optdp.certificates.additive import not_noise
from optdp.certificates.base import Bound, Certificate
from optdp.exact import enclosures
from optdp.exact.numbers import Number
from optdp.problem import GDP, Problem

#: Terms of the series that are added one by one.
TERMS = 60


def variance_share(mu: Number) -> arb:
    """1 - 4 sum_(m >= 1) e^(-2 pi^2 m^2/mu^2): the share of the Gaussian's variance 1/mu^2 below which no noise gets."""
    with ctx.workprec(enclosures.PRECISION):
        q = (-2 * arb.pi() ** 2 / enclosures.ball(mu) ** 2).exp()
        rest = q ** (TERMS**2) / (1 - q)  # exponents grow by more than 1
        return 1 - 4 * (sum((q ** (m * m) for m in range(1, TERMS)), arb(0)) + rest * arb(0.5, 0.5))


@dataclass(frozen=True)
class HalfLinesCertificate(Certificate):
    """The bounds above, for |x| and x^2: there is nothing to choose."""

    tag = "half-lines"

    def bound(self, problem: Problem) -> Bound:
        privacy = problem.privacy
        if reason := not_noise(problem):
            self._refuse(reason)
        if not isinstance(privacy, GDP):
            self._refuse("it is for Gaussian DP")
        loss = problem.objective.loss
        if loss.exponent not in (1.0, 2.0):
            self._refuse("it is for the losses abs and squared")
        with ctx.workprec(enclosures.PRECISION):
            mu, width = enclosures.ball(privacy.mu), enclosures.ball(privacy.sensitivity)
            if loss.exponent == 1:
                value = (1 - mu**2 / 8) * (2 / arb.pi()).sqrt() * width / mu
            else:
                value = variance_share(privacy.mu) * (width / mu) ** 2
            return Bound(max(0.0, enclosures.round_down(value)), "half-lines under Gaussian DP, ball arithmetic")

r"""Additive noise under a large bound on its Renyi or KL divergence: lower bounds in closed form, from one number or two.

Let X be noise with E_a(X, X + d) <= e^((a-1) r) for all |d| <= Delta = 1, where E_a(P, Q) = int p^a q^(1-a) is the moment of
order a > 1. At large r nearly all of the optimal noise lies within a peak that is far narrower than any lattice could show, and
the rest is spread over one sensitivity on either side. X may be taken to be symmetric: moments are convex. For every s >= 0,

    p^a q^(1-a) >= a rho^(a-1) p - (a-1) rho^a q   with   rho = e^r s(x),   so that

    1 >= E a s(X)^(a-1) - (a-1) e^r E s(X + d)^a,                                             (shift d)

a variational form that needs no density. Take s even and 0 beyond c, and multipliers lam(d) >= 0 on [d0, 1], d0 > 2c, that add up
to Lam:

    E|X|^q >= E[ |X|^q + Lam a s(X)^(a-1) - (a-1) e^r/2 int lam(d) (s(X + d)^a + s(X - d)^a) dd ] - Lam >= v - Lam,

if the bracket is v or more everywhere. Under the peak, where the integral is 0, that is so for s^(a-1) = (v - |x|^q)/(a Lam),
with c^q = v. Beyond it, with S = int s^a, the even law of T on [-c, c] with the density s^a/S, and

    lam(d) = 2 (d^q - v - e)/((a-1) e^r S),      e >= E|x + T|^q - |x|^q  for 3c <= x <= 1 + c,

the integral is at most E|x + T|^q - v - e <= |x|^q - v, if lam(d) >= 0 wherever d >= d0 - 2c: what of the integral is cut off at
d0 is not negative. (It is 0 for x < 3c.) So e = c^2/2 max L'' over [2c, 1 + 2c] will do, L = |x|^q: it is 0 for q = 1. With

    I = int_d0^1 (d^q - v - e) dd,    J = int (v - |x|^q)_+^(a/(a-1)) dx = (2/q) v^(a/(a-1) + 1/q) Beta(1/q, 1 + a/(a-1)),

S = (a Lam)^(-a/(a-1)) J, and Lam = 2 I/((a-1) e^r S) has the solution

    Lam = ( (a-1) e^r J / (2 I a^(a/(a-1))) )^(a-1).

So any v with 4c < 1 and I > 0 proves v - Lam. It is best near Lam = v/(a + (a-1)/q), and tight as r grows: the noise with the
density of the peak proportional to s, and constant beyond, costs as much but for a share of about v.

**KL divergence.** p log(p/q) >= p (1 + log rho) - rho q, so that with rho = e^r s(x), s > 0 everywhere,

    0 >= 1 + E log s(X) - e^r E s(X + d).                                                     (shift d)

Take s = f exp((v - |x|^q)/Lam) up to c and f beyond. Then |x|^q + Lam (1 + log s) is v + Lam (1 + log f) under the peak, of the
integral e^r Lam f comes from f, and the rest is as above with s - f for s^a and e^r for (a-1) e^r: at most |x|^q - v beyond the
peak if lam(d) = 2 (d^q - v - e)/(e^r S), S = int (s - f) = f G, G = int_-c^c (exp((v - |x|^q)/Lam) - 1) dx. So

    E|X|^q >= v + Lam (1 + log f) - e^r Lam f,      f = 2 I/(e^r Lam G),

for any v and Lam. At the best Lam this is about (1 + 1/q) Lam - Lam exp(r + 1/q - v/Lam) while the peak is narrow, so that v is
best several Lam beyond (r + 1/q) Lam; where it is a Lam less than that, nothing is proven. A Renyi divergence is no less
than that for KL.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from flint import arb, ctx

from optdp.certificates.additive import not_noise
from optdp.certificates.base import Bound, Certificate, Refusal
from optdp.exact import Within, enclosures
from optdp.exact.numbers import border
from optdp.problem import KL, RDP, Line, Problem

#: Working precision in bits: moments are raised to the power of the order.
BITS = 256


@dataclass(frozen=True)
class _Level(Certificate):
    """`level`: v for sensitivity 1, between 0 and 1. Subclasses say for which notions, and what v proves."""

    _notions: ClassVar[Any]
    _told: ClassVar[str]
    level: Annotated[float, Within(0.0, 1.0, open_low=True, open_high=True)]

    def bound(self, problem: Problem) -> Bound:
        privacy: Any = problem.privacy
        if reason := not_noise(problem):
            self._refuse(reason)
        if not isinstance(privacy, self._notions) or not isinstance(problem.domain, Line):
            self._refuse(f"it is for {self._told} differential privacy on the real line")
        loss = problem.objective.loss
        if loss.exponent is None or not loss.convex:
            self._refuse("the loss must be a power, of degree at least 1")
        with ctx.workprec(BITS):
            q = enclosures.ball(loss.exponent)
            value = self._proven(privacy, q) * enclosures.ball(privacy.sensitivity) ** q
            found = enclosures.round_down(value) if value.is_finite() else 0.0
        return Bound(
            max(0.0, found), f"variational form of the {self._told} divergence under a narrow peak, ball arithmetic"
        )

    def _proven(self, privacy: Any, q: arb) -> arb:
        """For sensitivity 1, at the working precision."""
        raise NotImplementedError

    def _beyond(self, q: arb) -> arb:
        """I. Refused where the peak is too wide."""
        v = arb(self.level)
        c = v ** (1 / q)
        bend = q * (q - 1) * ((2 * c) ** (q - 2)).max((1 + 2 * c) ** (q - 2))
        level = v + c * c / 2 * bend
        first = 2 * c + (2 * c).max(level ** (1 / q))
        if not first < 1:
            self._refuse(f"a peak of the level {self.level:g} is too wide")
        found: arb = (1 - first ** (q + 1)) / (q + 1) - level * (1 - first)
        if not found > 0:
            self._refuse(f"a peak of the level {self.level:g} leaves nothing beyond it")
        return found


@dataclass(frozen=True)
class PeakCertificate(_Level):
    """v, which bounds E|X|^q from below when Lam is taken off: see the module.

    **Arguments:** `level`: v for sensitivity 1, between 0 and 1.
    """

    tag = "peak"
    _notions, _told = RDP, "Renyi"

    def _proven(self, privacy: RDP, q: arb) -> arb:
        return arb(self.level) - self._multipliers(privacy, q)

    def _multipliers(self, privacy: RDP, q: arb) -> arb:
        """Lam, at the working precision. Refused where the peak is too wide."""
        v, a = arb(self.level), enclosures.ball(privacy.alpha)
        conjugate = a / (a - 1)
        log_beta = (1 / q).lgamma() + (1 + conjugate).lgamma() - (1 / q + 1 + conjugate).lgamma()
        log_area = (2 / q).log() + (conjugate + 1 / q) * v.log() + log_beta
        beyond = self._beyond(q)
        log_ratio = (a - 1).log() + enclosures.ball(privacy.bound) + log_area - (2 * beyond).log() - conjugate * a.log()
        return ((a - 1) * log_ratio).exp()

    @classmethod
    def best(cls, problem: Problem) -> PeakCertificate:
        """The certificate that proves most, up to floats."""
        privacy: Any = problem.privacy
        a, q = float(privacy.alpha), float(problem.objective.loss.exponent)
        share = 1 / (a + (a - 1) / q)

        def small(logarithm: float) -> bool:
            """Whether Lam < share v: their ratio grows with v."""
            with ctx.workprec(BITS):
                try:
                    spent = cls(math.exp(logarithm))._multipliers(privacy, arb(q))
                except ValueError:  # too wide
                    return False
                return bool(spent < arb(share) * arb(logarithm).exp())

        return cls(math.exp(border(small, -700.0, 0.0)[0]))


@dataclass(frozen=True)
class KLPeakCertificate(_Level):
    """v and Lam, which bound E|X|^q under a KL divergence, and so under Renyi divergences: see the module.

    **Arguments:** `level`: v for sensitivity 1, between 0 and 1; `weight`: Lam, between 0 and 1.
    """

    tag = "KL peak"
    _notions, _told = (KL, RDP), "KL"
    weight: Annotated[float, Within(0.0, 1.0, open_low=True, open_high=True)]

    def _proven(self, privacy: KL | RDP, q: arb) -> arb:
        v, lam, beyond = arb(self.level), arb(self.weight), 2 * self._beyond(q)
        under = lam ** (1 / q) / q * (v / lam).gamma_lower(1 / q)
        area = 2 * ((v / lam).exp() * under - v ** (1 / q))
        if not area > 0:
            self._refuse(f"a peak of the level {self.level:g} has too little under it to be told")
        log_f = (beyond / (lam * area)).log() - enclosures.ball(privacy.bound)
        return v + lam * (1 + log_f) - beyond / area

    @classmethod
    def best(cls, problem: Problem) -> KLPeakCertificate:
        """The certificate that proves most, up to floats."""
        privacy: Any = problem.privacy
        q = float(problem.objective.loss.exponent)
        # Where the peak is narrow and v far above Lam.
        area = math.log(2) + math.lgamma(1 + 1 / q)
        start = (math.log(2 / (q + 1)) - float(privacy.bound) - area - 1 / q) / (1 + 1 / q)

        def made(at: Any) -> KLPeakCertificate:
            lam = math.exp(float(at[0]))
            return cls(math.exp(float(at[1])) * lam, lam)

        def less(at: Any) -> float:
            with ctx.workprec(BITS):
                try:
                    return -float(made(at)._proven(privacy, arb(q))) / math.exp(start)
                except ValueError:  # too wide
                    return math.inf

        from scipy.optimize import minimize

        first = [start, math.log(10.0)]
        while math.isinf(less(first)) and first[1] > 0:
            first[1] -= 0.2
        if math.isinf(less(first)):
            raise Refusal("no peak is narrow enough for a proof")
        found = minimize(less, first, method="Nelder-Mead", options={"xatol": 1e-5, "fatol": 1e-9})
        return made(found.x)

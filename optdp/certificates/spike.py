"""Large eps, any delta: why no additive noise is much better than the staircase with a mass of delta at 0.

Let the sensitivity be 1 and L = |x|^q, q = 1 or 2, with t = w^q. In the dual (`optdp.certificates.additive`) on the continuum the
shift s has the multipliers lam(s) k(x) with one profile for all shifts,

    k(x) = (1 - |x/w|^q)+,    lam(s) = (2 e^-eps/K) (L(s) - t - v) for s in [S, 1], else 0,    S = 31 w/10,

where K is the integral of k and v makes int k(x) L(y - x) dx = K (L(y) + v) for |y| >= w: K = w, v = 0 for |x|, and K = 4w/3,
v = w^2/5 for x^2. Symmetric noise X has, with Lam = int lam,

    E L >= E [L(X) + Lam k(X) - e^eps (lam * k)(X)] - delta Lam >= inf over y >= 0 of B(y) - delta Lam,
    B(y) = L(y) + Lam k(y) - (e^eps/2) [(lam * k)(y) + (lam * k)(-y)].

If Lam >= t, all multipliers may be scaled so that Lam = t, and then B >= t everywhere, so that (1 - delta) t is a lower bound:

- y < w: lam * k is 0 here and at -y, since S > 2w; L + t k = t.
- y >= w: lam * k vanishes at -y, and (lam * k)(y) <= (2 e^-eps/K) int k(x) (L(y - x) - t - v) dx = 2 e^-eps (L(y) - t).
  What the left side leaves out are shifts s > 1, which would count as positive, and s < S. Of these, those below 1.1 w may count
  as negative, where L(s) < t + v; they occur for y < 2.1 w only, and there the left side is 0 (y + w <= S) and the right side
  is not negative. For y >= 2.1 w none of them occur.

Both losses are within O(w) of what the staircase attains: w is about e^(-eps/2) and (e^-eps/2)^(1/3).

**On the integers** let the sensitivity be n and w in integers, not itself one in general; X, x, y and s are integers, and sums
take the place of integrals. With m the largest integer below w, k(x) > 0 where |x| <= m; K = sum k(x), and v = 0 for |x|,
v = sum k(x) x^2/K for x^2. Shifts are S, ..., n with S = 3m + 1 + ceil(m/2), and again B >= t if Lam = t:

- y <= m: lam * k is 0 at y and at -y, since S > 2m; L + t k = t.
- y > m, so that y >= w: lam * k vanishes at -y. Where no shift of S, ..., n is within m of y it vanishes at y as well, and
  B(y) = L(y) >= t. Where one is, (lam * k)(y) is at most the sum over all x of 2 e^-eps k(x) (L(y - x) - t - v)/K, which is
  2 e^-eps (L(y) - t): all y - x are at least r = S - 2m, and L(r) >= t + v, so that nothing that is left out is negative. For
  |x| that is r > m, w <= m + 1 and v = 0; for x^2, r^2 >= (3m/2 + 1)^2 >= (m + 1)^2 + m^2 >= w^2 + v.

Where w <= 1, m = 0 and the one test is {0}: t is then 2 e^-eps sum L(s)/(1 + 2n e^-eps) at best, what is attained but for a
share of O(e^-eps).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from optdp.certificates.additive import by_pairs, not_additive
from optdp.certificates.base import Bound, Certificate, Refusal
from optdp.exact import Within, enclosures, show
from optdp.exact.numbers import border
from optdp.problem import Integers, Problem

#: Why it proves nothing for a loss.
OTHER = "it is for the losses abs and squared"


@dataclass(frozen=True)
class SpikeCertificate(Certificate):
    """How far the spike at 0 reaches, in sensitivities: (1 - delta) times the loss there is a lower bound where Lam >= t."""

    tag = "spike"
    width: Annotated[float, Within(0.0, 0.25)]

    def bound(self, problem: Problem) -> Bound:
        return by_pairs(problem, self._bound)

    def _bound(self, problem: Problem) -> Bound:
        privacy: Any = problem.privacy
        if reason := not_additive(problem):
            self._refuse(reason)
        if problem.objective.loss.exponent not in (1.0, 2.0):
            self._refuse(OTHER)
        if self.width and not self.holds(problem):
            self._refuse(f"the width {show(self.width)} is too large for this problem")
        q = int(problem.objective.loss.exponent)
        exact = (1 - Fraction(privacy.delta)) * (Fraction(self.width) * Fraction(privacy.sensitivity)) ** q
        where = "integers" if isinstance(problem.domain, Integers) else "continuum"
        return Bound(enclosures.round_down(exact), f"a dual of the {where} with one profile, exact rationals")

    def holds(self, problem: Problem) -> bool:
        """Whether Lam >= t, exactly."""
        privacy: Any = problem.privacy
        w, fall, q = Fraction(self.width), 1 / enclosures.exp_above(privacy.eps), int(problem.objective.loss.exponent)
        if not w:
            return True
        if isinstance(problem.domain, Integers):
            shares, area, t = _sums(w * int(privacy.sensitivity), int(privacy.sensitivity), q)
            return 2 * fall * shares >= area * t
        start = w * 31 / 10  # below 1, as widths are at most 1/4
        if q == 1:
            shares, area, t = ((1 - w) ** 2 - (start - w) ** 2) / 2, w, w
        else:
            shares, area, t = (1 - start**3) / 3 - w * w * 6 / 5 * (1 - start), w * 4 / 3, w * w
        return 2 * fall * shares >= area * t

    @classmethod
    def best(cls, problem: Problem) -> SpikeCertificate:
        """The certificate with the largest width that can be proven, by bisection.

        **Raises** Refusal for other losses than abs and squared.
        """
        if problem.objective.loss.exponent not in (1.0, 2.0):
            raise Refusal(OTHER)
        return cls(border(lambda width: cls(width).holds(problem), 0.0, 0.25)[0])


def _sums(w: Fraction, n: int, q: int) -> tuple[Fraction, Fraction, Fraction]:
    """(the sum of L(s) - t - v over the shifts, K, t) on the integers."""
    m = math.ceil(w) - 1

    def powers(r: int, last: int) -> int:
        """1^r + ... + last^r."""
        squares = last * (last + 1) * (2 * last + 1)
        return {1: last * (last + 1) // 2, 2: squares // 6, 4: squares * (3 * last * last + 3 * last - 1) // 30}[r]

    area, t = 1 + 2 * (m - powers(q, m) / w**q), w**q
    v = 2 * (powers(2, m) - powers(4, m) / w**2) / area if q == 2 else Fraction(0)
    start = 3 * m + 1 + (m + 1) // 2
    if start > n:
        return Fraction(0), area, t
    return powers(q, n) - powers(q, start - 1) - (n - start + 1) * (t + v), area, t

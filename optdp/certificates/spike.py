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

**On the integers** X + U with U uniform in [-1/2, 1/2] keeps the guarantee at every real shift, and costs at most 1/4 more for
|x|, 1/12 more for x^2.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any

from optdp.certificates.additive import by_pairs, not_additive, spreading
from optdp.certificates.base import Bound, Certificate
from optdp.exact import Within, enclosures, show
from optdp.problem import Problem


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
            self._refuse("it is for the losses abs and squared")
        if not 0 <= self.width <= 0.25:
            self._refuse("the width must be between 0 and 1/4")
        if self.width and not self.holds(problem):
            self._refuse(f"the width {show(self.width)} is too large for this problem")
        q = int(problem.objective.loss.exponent)
        exact = (1 - Fraction(privacy.delta)) * (Fraction(self.width) * Fraction(privacy.sensitivity)) ** q
        value = enclosures.round_down(exact - spreading(problem))
        return Bound(max(0.0, value), "a dual of the continuum with one profile, exact rationals")

    def holds(self, problem: Problem) -> bool:
        """Whether Lam >= t, exactly."""
        privacy: Any = problem.privacy
        w, fall = Fraction(self.width), 1 / enclosures.exp_above(privacy.eps)
        start = w * 31 / 10
        if start > 1 or not w:
            return not w
        if problem.objective.loss.exponent == 1:
            shares, area, t = ((1 - w) ** 2 - (start - w) ** 2) / 2, w, w
        else:
            shares, area, t = (1 - start**3) / 3 - w * w * 6 / 5 * (1 - start), w * 4 / 3, w * w
        return 2 * fall * shares >= area * t

    @classmethod
    def best(cls, problem: Problem) -> SpikeCertificate:
        """The certificate with the largest width that can be proven, by bisection."""
        low, high = 0.0, 0.25
        while low < (middle := (low + high) / 2) < high:
            low, high = (middle, high) if cls(middle).holds(problem) else (low, middle)
        return cls(low)

"""delta = 0, on the continuum: why no additive noise beats the staircase, by the bathtub dual of one period.

Let the sensitivity be 1, f the density of the noise folded onto [0, oo), b = e^-eps. Privacy says f(x) <= f(x')/b for
|x - x'| <= 1. Hence f(x + k) = b^k f(x) + (what exceeds it, r_j >= 0 from step j on), and for every t, with

    G(x) = sum_k b^k (L(x + k) - t),    E L - t = int_0^1 f G  +  sum_{j >= 1} int_0^1 r_j(x) G(x + j) dx.

G grows with x. If G(1) >= 0, the second part is >= 0; and f lies between c and c/b on [0, 1), so that the first is at least
c [int G_+ - int G_-/b], over [0, 1]. So t is a lower bound on E L for every eps-private noise if

    G(1) >= 0    and    int_0^1 G_+  >=  e^eps int_0^1 G_-.                                   (*)

The second implies the first: if G(1) < 0, then G_+ is 0 on [0, 1]. The staircase (Geng and Viswanath, 2014) attains it. For
L = |x| and x^2, sum_k b^k (x + k)^q is elementary.

For any other loss that does not fall (*) is decided by `optdp.certificates.period`.

**On the integers** with sensitivity M the same holds for masses at r + k M with sums over r = 0..M - 1 in place of the
integrals. The mass at distance 0 counts once, all others twice: for r = 0 it is 2 G(0) - (L(0) - t) in place of 2 G(r).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from flint import arb, ctx

from optdp.certificates.additive import by_pairs, not_additive, on_integers
from optdp.certificates.base import Bound, Threshold
from optdp.certificates.period import Period, not_summed
from optdp.exact import enclosures
from optdp.exact.numbers import border
from optdp.problem import Integers, Line, Problem


@dataclass(frozen=True)
class StaircaseCertificate(Threshold):
    """A threshold, in units of the loss: where (*) holds for a problem with delta = 0, its optimum is at least that."""

    tag = "staircase"
    area: ClassVar[type] = Line

    def bound(self, problem: Problem) -> Bound:
        return by_pairs(on_integers(problem), self._bound)

    def _bound(self, problem: Problem) -> Bound:
        privacy: Any = problem.privacy
        if reason := not_additive(problem):
            self._refuse(reason)
        if privacy.delta != 0 or not isinstance(problem.domain, self.area):
            self._refuse(f"it is for delta = 0 on {'the real line' if self.area is Line else 'the integers'}")
        if problem.objective.loss.exponent not in (1.0, 2.0) and (reason := not_summed(problem)):
            self._refuse(f"it is for the losses abs and squared; of others, {reason}")
        self._check(problem)
        return Bound(self.threshold, "bathtub dual of one period, ball arithmetic")

    @classmethod
    def best(cls, problem: Problem) -> StaircaseCertificate:
        """The certificate with the largest threshold that can be proven, by bisection."""
        privacy: Any = problem.privacy
        loss = problem.objective.loss
        if loss.exponent not in (1.0, 2.0):
            return cls(Period(problem).proven())
        low, high = 0.0, privacy.sensitivity**loss.exponent
        while cls(high).holds(problem):
            low, high = high, 2 * high
        return cls(border(lambda threshold: cls(threshold).holds(problem), low, high)[0])

    def first_step(self, problem: Problem) -> float:
        """Where G changes sign, in sensitivities: at the optimum, where the staircase's first step ends."""
        if problem.objective.loss.exponent not in (1.0, 2.0):
            return Period(problem).first_step(self.threshold)
        with ctx.workprec(enclosures.PRECISION):
            return float(self._root(*self._terms(problem)).mid())

    def _terms(self, problem: Problem) -> tuple[arb, arb, int]:
        """(b, the threshold for sensitivity 1, q) in balls."""
        privacy: Any = problem.privacy
        q = int(problem.objective.loss.exponent)
        unit = enclosures.ball(privacy.sensitivity) ** q
        return 1 / enclosures.exp(privacy.eps), enclosures.ball(self.threshold) / unit, q

    @staticmethod
    def _root(b: arb, t: arb, q: int) -> arb:
        """Where (1 - b) G = 0; below 0 if G > 0 on the whole of [0, 1]."""
        odds = b / (1 - b)
        if q == 1:
            return t - odds
        square = t - b / (1 - b) ** 2
        return square.sqrt() - odds if square > 0 else arb(-1)

    def holds(self, problem: Problem) -> bool:
        if problem.objective.loss.exponent not in (1.0, 2.0):
            return Period(problem).weight(self.threshold) is not None
        with ctx.workprec(enclosures.PRECISION):
            b, t, q = self._terms(problem)
            odds = b / (1 - b)
            flat = odds if q == 1 else b * (1 + b) / (1 - b) ** 2  # (1 - b) sum_k b^k k^q

            def integral(x: arb) -> arb:
                """(1 - b) int_0^x G."""
                rise = x**2 / 2 if q == 1 else x**3 / 3 + x**2 * odds
                return rise + x * (flat - t)

            root = self._root(b, t, q)
            deficit = arb(0) if root < 0 else -integral(root)
            return bool(integral(arb(1)) - (1 / b - 1) * deficit >= 0)


@dataclass(frozen=True)
class IntegerStaircaseCertificate(StaircaseCertificate):
    """The same on the integers."""

    tag = "integer-staircase"
    area: ClassVar[type] = Integers

    def holds(self, problem: Problem) -> bool:
        if problem.objective.loss.exponent not in (1.0, 2.0):
            return super().holds(problem)
        with ctx.workprec(enclosures.PRECISION):
            return self._holds(*self._terms(problem), int(problem.privacy.sensitivity))  # type: ignore[attr-defined]

    def _holds(self, b: arb, t: arb, q: int, m: int) -> bool:
        """For sums over r = 0..m - 1, in units in which m is 1: (1 - b) G(r/m) is negative up to some r."""
        odds = b / (1 - b)
        flat = odds if q == 1 else b * (1 + b) / (1 - b) ** 2

        def term(r: int) -> arb:
            x = arb(r) / m
            return (x if q == 1 else x**2 + 2 * x * odds) + flat - t

        def total(r: int) -> arb:
            """The sum of `term` over 1..r."""
            plain, square = arb(r * (r + 1) // 2) / m, arb(r * (r + 1) * (2 * r + 1) // 6) / m**2
            return (plain if q == 1 else square + 2 * odds * plain) + r * (flat - t)

        if not term(m) >= 0:  # above it, and where e^eps is too near 1 for balls, the root is no number
            return False
        root = self._root(b, t, q) * m
        last = min(max(int(float(root.mid())), 0), m - 1)
        low, high = max(last - 1, 0), min(last + 1, m - 1)
        if not ((low == 0 or term(low) <= 0) and (high == m - 1 or term(high + 1) >= 0)):
            return False
        first = 2 * term(0) + (1 - b) * t  # of the mass at 0
        # Negative terms count e^eps times. The sum is least where the split is right: it is tried at all that are near.
        starts, every = (first, first / b), total(m - 1)
        return all(
            bool(start + 2 * (every - total(r)) + 2 * total(r) / b >= 0)
            for r in range(low, high + 1)
            for start in starts
        )

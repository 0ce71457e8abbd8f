"""Any loss, at delta = 0 or little more: the dual of one period, which the staircase attains, by its integrals.

**delta = 0.** Let the sensitivity be 1, b = e^-eps, L a loss of the distance that does not fall, G(x) = sum_k b^k (L(x + k) - t).
`optdp.certificates.staircase` shows that t is a lower bound where

    int_0^1 G_+  >=  e^eps int_0^1 G_-.                                                       (*)

Let F(x) = int_0^x G, which is convex: (*) is F(1) + (e^eps - 1) min F >= 0. F is a sum of integrals of L, of which those from
some k on may be left out: they are >= 0, and (*) is monotone in G. Secants of F at two places between which its minimum lies say
how far below its values there it may be.

**delta > 0** (`PeriodCertificate`). Let L be bounded by c: for any other loss min(L, c) is less. In the dual of
`optdp.certificates.additive`, on the continuum, a test mu <= lam at a shift s in (0, 1] adds mu(x) - e^eps mu(x - s) to L(x) and
costs delta lam; noise may be taken to be symmetric, so that of all that is added the mean over x and -x counts. Let (*) hold, G
be negative up to g and rho = e^eps int G_-/int G_+ <= 1, both integrals over [0, 1]. Two kinds of tests,

- at the shift 1, mu(x) = 2 b G(x + 1) for x >= 0: from L - t they make G on [0, 1), and 0 from 1 on;
- of the points x in [-g, g] against y in (g, 1), at the shift y - x where that is at most 1: rho b G(y) k(x)/int_0^1 G_-, where
  k(x) is G_-(|x|), but 0 for x < y - 1 and twice as much for x > 1 - y. As k(x) + k(-x) = 2 G_-(|x|), they add G_-(x) in the
  mean, and take away rho G_+(y),

leave at least t everywhere. A test of the first kind is at most 2 b (c - t)/(1 - b). Those of the second are at most
2 rho b G_-(0) sup G_+/(2 int G_-) with G_+ at s + g (or 1), and twice that for s > 1 - 2 g. So all of them weigh at most

    G_-(0) (1 + 3 g G_+(1)/int G_+) + 2 b (c - t)/(1 - b),   G_-(0) <= t/(1 - b),   G_+(1) <= (F(1 + h) - F(1))/h,

and t less delta times this is a lower bound.

**On the integers** noise X is as good as X + U on the line, U uniform on [-1/2, 1/2], for the loss L of the nearest integer: it
is as private, for all shifts, and rounded noise of the line is noise on the integers. So both problems have the same optimum,
and all of the above is about integers, too; integrals of that loss are sums of L.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
from flint import arb, ctx, fmpq

from optdp.certificates.additive import by_pairs, not_additive, on_integers
from optdp.certificates.base import Bound, Certificate, Refusal
from optdp.exact import Within, enclosures, work
from optdp.exact.numbers import border
from optdp.exact.polynomial import exact
from optdp.problem import Integers, Line, Problem

#: Bits that sums of integrals are taken in; how near the minimum is enclosed, in bits, one after the other.
PRECISE, NEAR = 320, (80, 44, 36, 28, 20)
#: G at the end of a period is taken to be its mean over 2^-STEP more.
STEP = 100
#: Terms are left out from e^-LEFT_OUT on.
LEFT_OUT = 45.0
#: The most periods that are summed, and the least place of a minimum; by which shares a threshold in floats is lowered.
PERIODS, LEAST, SHORT = 6000, 2.0**-100, tuple(10.0**-k for k in range(14, 4, -1))
#: The most integers whose losses are added in floats.
TABLE = 8_000_000
#: Between integers.
HALF = fmpq(1, 2)
#: Where a loss is cut off, in sensitivities: what is tried.
CAPS = (1, 2, 3, 5, 8, 13, 21, 34)


def not_summed(problem: Problem) -> str:
    """Why sums over periods are not for this loss and domain, or an empty string."""
    loss = problem.objective.loss
    if not isinstance(problem.domain, Line | Integers):
        return "it is for the real line and the integers"
    return "it is for powers and pieces of the distance" if loss.form != "distance" or loss.assumptions else ""


def error_bar(eps: float, level: float) -> float:
    """The least t, in sensitivities, with P(|X| <= t) >= level for the noise X that is best for it at delta = 0.

    Of the staircase whose first step ends at t - k, k whole, P(|X| > t) is b^(k + 1)/(b + (t - k)(1 - b)): the optimum for
    `Threshold(t)`.
    """
    b, k = math.exp(-eps), math.floor(-math.log1p(-level) / eps)
    return k + min(max(b * math.expm1(-k * eps - math.log1p(-level)) / -math.expm1(-eps), 0.0), 1.0)


class _Nearest:
    """The loss of the integer that is nearest to a distance, and its integrals: sums of powers of integers, by zeta functions."""

    def __init__(self, loss: Any) -> None:
        self.loss = loss.whole
        self.growth = self.loss.growth
        self._known: dict[int, arb] = {}
        self._values: dict[tuple[int, int], arb] = {}
        self._tables: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def __call__(self, distance: np.ndarray) -> np.ndarray:
        return np.asarray(self.loss(np.ceil(np.asarray(distance) - 0.5)))

    def table(self, last: int) -> tuple[np.ndarray, np.ndarray]:
        """Places and the integrals up to there, between which they are linear, in floats."""
        if last not in self._tables:
            places, sums = np.arange(last + 2) - 0.5, np.zeros(last + 2)
            places[0], found = 0.0, self.loss(np.arange(last + 1.0))
            np.cumsum(found[1:], out=sums[2:])
            sums[1:] += found[0] / 2
            self._tables[last] = places, sums
        return self._tables[last]

    def integral_ball(self, distance: arb) -> arb:
        ends = (max(end, Fraction(0)) for end in (enclosures.lower(distance), enclosures.upper(distance)))
        values = [self._integral(exact(end)) for end in dict.fromkeys(ends)]
        return values[0].union(values[-1])

    def crossing(self, level: arb) -> arb:
        """Between integers, unless `level` is about the loss of one."""
        known = self.loss.crossing(level)
        if not known.is_finite():
            return known
        low, high = (self._edge(math.floor(end), level) for end in (enclosures.lower(known), enclosures.upper(known)))
        return low.union(high)

    def _edge(self, n: int, level: arb) -> arb:
        """Where n is no longer the nearest integer; of n - 1, where the loss jumps at n and is above `level` there already."""
        if self.loss.right_continuous and self.loss.exact(Fraction(n)) > enclosures.upper(level):
            n -= 1
        return enclosures.ball(max(n + Fraction(1, 2), Fraction(0)))

    def _integral(self, distance: fmpq) -> arb:
        beyond = distance - HALF
        last = int(beyond.ceil())
        if last == 0:
            return self._value(0) * arb(distance)
        return self._value(0) / 2 + self._sum(last - 1) + self._value(last) * arb(beyond - last + 1)

    def _value(self, n: int) -> arb:
        key = n, ctx.prec
        if key not in self._values:
            plain = self.loss.polynomials is None
            self._values[key] = (
                arb(n) ** enclosures.ball(self.loss.exponent)
                if plain
                else enclosures.ball(self.loss.exact(Fraction(n)))
            )
        return self._values[key]

    def _sum(self, n: int) -> arb:
        """L(1) + ... + L(n), at the precision of the first call."""
        if n not in self._known:
            self._known[n] = self._added(n)
        return self._known[n]

    def _added(self, n: int) -> arb:
        if self.loss.polynomials is None:
            return _powers(self.loss.exponent, n)
        breaks, rows = self.loss.polynomials
        # Of the integers up to n those before each break, or at it, where the loss jumps after it.
        before = [math.ceil(b) - 1 if self.loss.right_continuous else math.floor(b) for b in breaks[1:]]
        ends = [0, *(min(max(k, 0), n) for k in before), n]
        return sum(
            (
                enclosures.ball(a) * (_powers(k, end) - _powers(k, start))
                for row, start, end in zip(rows, ends[:-1], ends[1:], strict=True)
                for k, a in enumerate(row)
                if a and end > start
            ),
            arb(0),
        )


def _powers(q: float, n: int) -> arb:
    """1^q + ... + n^q = zeta(-q) - zeta(-q, n + 1)."""
    s = -enclosures.ball(q)
    return s.zeta() - s.zeta(arb(n + 1))


class Period:
    """F for a problem on the line or the integers with some eps > 0, in units in which the sensitivity is 1.

    **Arguments:** `problem`; `cap`: in place of the loss L, min(L, cap); `like`: the same with another cap, whose sums are used.

    **Raises** Refusal where eps is so small that sums are too long.
    """

    def __init__(self, problem: Problem, cap: float = math.inf, like: Period | None = None) -> None:
        privacy: Any = problem.privacy
        loss: Any = problem.objective.loss
        self.whole = isinstance(problem.domain, Integers)
        self.loss: Any = like.loss if like else _Nearest(loss) if self.whole else loss
        self.exact, self.width, self.cap = privacy.eps, privacy.sensitivity, cap
        self.eps = float(privacy.eps)
        growth = 0.0 if math.isfinite(cap) else self.loss.growth[1]
        #: So many periods matter.
        self.count = PERIODS + 1
        if self.eps * PERIODS > LEFT_OUT:
            self.count = math.ceil((LEFT_OUT + 2 * growth * math.log1p(growth + LEFT_OUT / self.eps)) / self.eps) + 2
        if self.count > PERIODS:
            raise Refusal(f"eps = {self.eps:g} is so small that sums over all periods are too long")
        work.count(0.2 * self.count)
        with ctx.workprec(PRECISE):
            self.edge = self.loss.crossing(enclosures.ball(cap)) if math.isfinite(cap) else arb("inf")
        self._edge = float(self.edge.mid()) if self.edge.is_finite() else math.inf
        self._weights = np.exp(-self.eps * np.arange(self.count))
        self._table: tuple[np.ndarray, np.ndarray] | None = None
        self._weighed: dict[float, arb | None] = {}
        k = np.arange(self.count)
        #: At x in every period: searches for other thresholds ask at the same places first.
        self._losses = lru_cache(256)(lambda x: np.minimum(self.loss((x + k) * self.width), cap))

    # --- in floats

    def _integral(self, distance: np.ndarray) -> np.ndarray:
        beyond = np.maximum(distance - self._edge, 0.0)
        found = self._sums(distance - beyond) if self.whole else self.loss.integral(distance - beyond)
        return np.asarray(found + (self.cap * beyond if math.isfinite(self._edge) else 0.0))

    def _sums(self, distance: np.ndarray) -> np.ndarray:
        if self._table is None:
            last = int((self.count + 1) * self.width) + 1
            if last > TABLE:
                raise Refusal(f"eps = {self.eps:g} is too small for integers with a sensitivity of {self.width:g}")
            self._table = self.loss.table(last)
        return np.asarray(np.interp(distance, *self._table))

    def threshold(self) -> float:
        """About the largest that (*) holds for: the loss of the staircase whose first step ends where G is 0."""
        k, b = np.arange(self.count), self._weights[1]
        starts = self._integral(k * self.width)
        every = float(self._weights @ (self._integral((k + 1) * self.width) - starts))

        def loss(step: float) -> float:
            near = float(self._weights @ (self._integral((k + step) * self.width) - starts))
            return float((near * (1 - b) + b * every) / (step * (1 - b) + b) * (1 - b) / self.width)

        low, high = 0.0, max(loss(0.0), loss(1.0))
        for _ in range(200):
            if not low < (middle := (low + high) / 2) < high:
                break
            low, high = (middle, high) if loss(self.first_step(middle)) >= middle else (low, middle)
        return low

    def first_step(self, threshold: float) -> float:
        """About where G changes sign; 0 or 1 where it does not."""

        def level(x: float) -> float:
            return float(self._weights @ (self._losses(x) - threshold))

        low, high = 0.0, 1.0
        if level(high) < 0:
            return 1.0
        for _ in range(200):
            middle = math.sqrt(low * high) if low else high * 2.0**-8
            if not low < middle < high:
                break
            low, high = (middle, high) if level(middle) < 0 else (low, middle)
        return low

    # --- in balls

    def weight(self, threshold: float) -> arb | None:
        """What the tests weigh, for min(L, cap) and sensitivity 1; None where (*) is not certain."""
        if threshold not in self._weighed:
            self._weighed[threshold] = self._weigh(threshold)
        return self._weighed[threshold]

    def proven(self) -> float:
        """A threshold near the largest for which (*) is certain."""
        near = self.threshold()
        for share in SHORT:
            if self.weight(tried := near * (1 - share)) is not None:
                return tried
        return border(lambda tried: self.weight(tried) is not None, 0.0, near, SHORT[-1] * near)[0]

    def _weigh(self, threshold: float) -> arb | None:
        near, each = self.first_step(threshold), 30 if self.whole else 5  # microseconds of an integral
        work.count(each * self.count)
        with ctx.workprec(PRECISE):
            width, b, t = enclosures.ball(self.width), 1 / enclosures.exp(self.exact), enclosures.ball(threshold)
            shares = [b**k for k in range(self.count)]
            starts = [self._enclosed(width * k) for k in range(self.count)]

            def total(x: arb) -> arb:
                """At most F(x); convex."""
                work.count(each * self.count)
                parts = (
                    share * (self._enclosed(width * (x + k)) - start)
                    for k, (share, start) in enumerate(zip(shares, starts, strict=True))
                )
                return sum(parts, arb(0)) / width - t * x / (1 - b)

            every, place = total(arb(1)), enclosures.ball(max(near, LEAST))
            for bits in NEAR:
                h = place * arb(2) ** -bits
                left, right = place - 2 * h, place + 2 * h
                here = total(left)
                if not (right >= 1 or total(right) >= total(right - h)):
                    continue
                # Before `left` F falls, or by less than if L were 0 there; between both it is above its tangent.
                before = here if total(left + h) <= here else -t * left / (1 - b)
                least = before.min(here + 4 * h * ((here - total(left - h)) / h).min(arb(0)))
                if every + (1 / b - 1) * least >= 0:
                    if not math.isfinite(self.cap):
                        return arb("inf")
                    most, h = enclosures.ball(self.cap), arb(2) ** -STEP
                    last = (total(1 + h) - every) / h + most * b**self.count / (1 - b)
                    return t / (1 - b) * (1 + 3 * right * last / (every - here)) + 2 * b * (most - t) / (1 - b)
            return None

    def _enclosed(self, distance: arb) -> arb:
        """The integral of min(L, cap) from 0 to a distance."""
        if not self.edge.is_finite():
            return self.loss.integral_ball(distance)
        beyond = (distance - self.edge).max(arb(0))
        return self.loss.integral_ball(distance.min(self.edge)) + enclosures.ball(self.cap) * beyond


@dataclass(frozen=True)
class PeriodCertificate(Certificate):
    """A threshold t and a cap c, in units of the loss: t less delta times what the tests weigh, where (*) holds for min(L, c)."""

    tag = "period"
    threshold: Annotated[float, Within(0.0)]
    cap: Annotated[float, Within(0.0)]

    def bound(self, problem: Problem) -> Bound:
        return by_pairs(on_integers(problem), self._bound)

    def _bound(self, problem: Problem, period: Period | None = None) -> Bound:
        privacy: Any = problem.privacy
        if reason := not_additive(problem) or not_summed(problem):
            self._refuse(reason)
        if float(privacy.eps) <= 0 or not 0 < self.threshold < self.cap:
            self._refuse("it is for eps > 0, and a threshold above 0 and below the cap")
        weight = (period or Period(problem, self.cap)).weight(self.threshold)
        if weight is None:
            self._refuse(f"the threshold {self.threshold:g} is not proven for this problem")
        with ctx.workprec(PRECISE):
            found = enclosures.ball(self.threshold) - enclosures.ball(privacy.delta) * weight
            return Bound(
                max(enclosures.round_down(found), 0.0), "bathtub dual of one period less delta, ball arithmetic"
            )

    @classmethod
    def best(cls, problem: Problem) -> PeriodCertificate:
        """The certificate whose cap is the best of some.

        **Raises** Refusal where there is none.
        """
        privacy: Any = problem.privacy
        between = 0.5 * isinstance(problem.domain, Integers)
        caps = dict.fromkeys(float(problem.objective.loss(n * privacy.sensitivity + between)) for n in CAPS)
        best, most, period = None, -1.0, None
        for cap in [c for c in caps if 0 < c < math.inf]:
            period = Period(problem, cap, period)
            made = cls(period.proven(), cap)
            if 0 < made.threshold < cap and (value := made._bound(problem, period).value) > most:
                best, most = made, value
        if best is None:
            raise Refusal("no threshold is proven")
        return best

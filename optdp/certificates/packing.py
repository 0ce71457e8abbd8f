r"""Translates of a narrow interval: why the error bars of noise cannot be as short as one likes.

Let X be symmetric noise for a sensitivity of 1, and A = [-t, t] with K >= 1 whole lengths 2t in less than one sensitivity.

A *translate* A + d with 2t < d <= 1 is disjoint from A, and what X and X + d have of A and of A + d is exchanged: P(A), c and c,
P(A) for c = P(X in A + d), by symmetry. If the notion does not admit the distributions (a, phi, 1 - a - phi) and (phi, a, 1 - a -
phi), phi < a, then c > phi wherever P(A) >= a: for c <= phi these two come from those of X and X + d by a random map that treats
both sets alike. It keeps them apart by a share (a - phi)/(P(A) - c) <= 1, and with that may bring any probability from (P(A) +
c)(a - phi)/(P(A) - c) <= a + phi to 1 to the first two outcomes. (One order is enough: to exchange the two outcomes exchanges the
distributions.) Of a *half-line* S likewise: if it does not admit (b, 1 - b) and (psi, 1 - psi), psi < b, in one order or the
other, P(S + 1) > psi wherever P(S) >= b.

If P(A) >= a, the K - 1 translates A + d for d a little above 2t, 4t, ..., 2(K - 1)t are disjoint, and all of them lie beyond t
and below 1 - t; what lies from there on is {X >= -t} + 1, and P(X >= -t) = (1 + P(A))/2. So beyond t there is a probability of

    (1 - a)/2  >=  (1 - P(A))/2  >=  (K - 1) phi(a) + psi((1 + a)/2).

Numbers that contradict this prove P(|X| > t) > 1 - a. (Symmetric noise is no worse: the mixture with its mirror image has the
guarantee, and the same probability.) It is nearly tight where noise may be a peak on a plateau: the share a on A, the least
that is allowed on every translate of it, and hardly anything beyond one sensitivity (`optdp.design.additive.packing`).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Annotated, Any

from optdp.certificates.additive import not_noise
from optdp.certificates.base import Bound, Certificate
from optdp.exact import Within, enclosures
from optdp.exact.pairs import Pair
from optdp.problem import Line, Problem


@dataclass(frozen=True)
class PackingCertificate(Certificate):
    """What has a lower bound on the probability of errors above t, the only step of the loss.

    **Arguments:** `level`: a; `translate`: phi(a); `rest`: psi((1 + a)/2).

    **Proves** bounds for noise on the line under every notion that compares neighbouring outputs.
    """

    tag = "packing"
    level: Annotated[float, Within(0.0, 1.0)]
    translate: Annotated[float, Within(0.0, 1.0)]
    rest: Annotated[float, Within(0.0, 1.0)]

    def bound(self, problem: Problem) -> Bound:
        if reason := not_noise(problem):
            self._refuse(reason)
        privacy: Any = problem.privacy
        loss: Any = problem.objective.loss
        if not isinstance(problem.domain, Line) or not loss.steps or len(loss.polynomials[0]) != 2:
            self._refuse("it is for a loss with one step on the real line")
        (_, t), ((low, *_), (high, *_)) = loss.polynomials
        count = ceil(Fraction(privacy.sensitivity) / (2 * t)) - 1
        if count < 1:  # {X >= -t} + 1 is not beyond t then
            self._refuse("the step is at half a sensitivity or more")
        a = Fraction(self.level)
        for moves, share, kept in ((exchanges, a, self.translate), (apart, (1 + a) / 2, self.rest)):
            if kept and not moves(privacy, share, Fraction(kept)):
                self._refuse(f"it is not proven that what is moved keeps {kept:g} of {float(share):g}")
        if not self.full(count):
            self._refuse("there is room for all translates")
        value = enclosures.round_down(low + (high - low) * (1 - a))
        return Bound(value, "disjoint translates of an interval, exact rationals and ball arithmetic")

    def full(self, count: int) -> bool:
        """Whether K = `count` >= 1 contradicts the inequality."""
        needed = (count - 1) * Fraction(self.translate) + Fraction(self.rest)
        return (1 - Fraction(self.level)) / 2 < needed


def exchanges(privacy: Any, share: Fraction, least: Fraction) -> bool:
    """Whether it is proven that a translate has more than `least` where the interval has at least `share`."""
    total = share.denominator * least.denominator
    p, q = int(share * total), int(least * total)
    rest = total - p - q
    return q < p and rest >= 0 and privacy.admits(Pair((p, q, rest), (q, p, rest), total)) is False


def apart(privacy: Any, share: Fraction, least: Fraction) -> bool:
    """Whether it is proven that what has the probability `share` has more than `least` for a neighbour."""
    total = share.denominator * least.denominator
    p, q = int(share * total), int(least * total)
    here, there = (p, total - p), (q, total - q)
    return q < p and any(privacy.admits(Pair(*pair, total)) is False for pair in ((here, there), (there, here)))

"""Two distributions on finitely many outcomes, in exact integers: what divergences of neighbouring outputs are computed from.

Outcomes with the same likelihood ratio may be merged without changing any divergence, so that an infinite geometric tail, whose
periods repeat the same ratios, is finitely many outcomes too.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, cmp_to_key
from typing import TYPE_CHECKING

import numpy as np
from flint import arb, ctx

from optdp.exact import enclosures, work

if TYPE_CHECKING:
    from optdp.exact.numbers import Number


def _smaller_ratio(a: tuple[int, int], b: tuple[int, int]) -> int:
    return (a[1] * b[0] > b[1] * a[0]) - (a[1] * b[0] < b[1] * a[0])


@dataclass(frozen=True)
class Pair:
    """P and Q over the same outcomes: P(k) = p[k]/total, Q(k) = q[k]/total, integers >= 0 that add up to `total` each."""

    p: Sequence[int]
    q: Sequence[int]
    total: int

    def hockey_stick(self, ratio: Fraction) -> Fraction:
        """sum_k (P(k) - ratio Q(k))_+, exactly.

        >>> Pair((3, 1), (1, 3), 4).hockey_stick(Fraction(2))
        Fraction(1, 4)
        """
        top, bottom = ratio.numerator, ratio.denominator
        work.count(len(self.p) * (1 + 2 * work.product(self._words, work.words([ratio]))))
        excess = np.array(self.p, dtype=object) * bottom - np.array(self.q, dtype=object) * top
        return Fraction(int(np.where(excess > 0, excess, 0).sum()), self.total * bottom)

    @property
    def _words(self) -> float:
        return work.words([self.total])

    @cached_property
    def _ordered(self) -> list[tuple[int, int]]:
        """The outcomes, those of one likelihood ratio merged, with the largest ratio first; without those that nobody has."""
        step = work.product(self._words, self._words)
        work.count(len(self.p) * (1.5 + 4 * step))
        pairs = [(int(a), int(b)) for a, b in zip(self.p, self.q, strict=True) if a or b]
        # Floats bring them into order but for ratios that are nearly equal.
        pairs.sort(key=lambda pq: -(pq[0] / pq[1]) if pq[1] else -float("inf"))
        moves = len(pairs) // 8  # a few that are out of order are put right one by one
        for i in range(1, len(pairs)):
            while i and _smaller_ratio(pairs[i - 1], pairs[i]) > 0 and moves >= 0:
                pairs[i - 1], pairs[i] = pairs[i], pairs[i - 1]
                i, moves = i - 1, moves - 1
        if moves < 0:
            work.count(len(pairs) * (0.5 + step) * math.log2(len(pairs) + 1))
            pairs.sort(key=cmp_to_key(_smaller_ratio))
        merged: list[tuple[int, int]] = []
        for a, b in pairs:
            if merged and a * merged[-1][1] == merged[-1][0] * b:
                a, b = a + merged[-1][0], b + merged.pop()[1]
            merged.append((a, b))
        return merged

    def powers(self) -> Iterator[tuple[int, int]]:
        """The vertices (P(S), Q(S)), times `total`, of the power curve: the best tests S = {P > ratio Q} for every ratio.

        >>> list(Pair((3, 1), (1, 3), 4).powers())
        [(0, 0), (3, 1), (4, 4)]
        """
        alpha = beta = 0
        yield 0, 0
        for a, b in self._ordered:
            alpha, beta = alpha + a, beta + b
            yield alpha, beta

    @cached_property
    def _ratios(self) -> tuple[list[tuple[int, int]], bool]:
        """(outcomes of both distributions, whether P has outcomes that Q lacks)."""
        both = [(int(a), int(b)) for a, b in zip(self.p, self.q, strict=True) if a and b]
        return both, any(a and not b for a, b in zip(self.p, self.q, strict=True))

    def kl(self, bits: int = enclosures.PRECISION) -> arb:
        """An enclosure of sum_k P(k) log(P(k)/Q(k)), at a precision of `bits`; infinity where P has what Q lacks."""
        both, singular = self._ratios
        if singular:
            return arb("inf")
        work.count(bits / 40 * len(both))
        with ctx.workprec(bits):
            return sum((arb(a) * (arb(a) / b).log() for a, b in both), arb(0)) / self.total

    def moment(self, alpha: Number, bits: int = enclosures.PRECISION) -> arb:
        """An enclosure of sum_k P(k)^alpha Q(k)^(1 - alpha), alpha > 1: e^((alpha - 1) times the Renyi divergence)."""
        both, singular = self._ratios
        if singular:
            return arb("inf")
        work.count(bits / 40 * len(both))
        with ctx.workprec(bits):
            order = enclosures.ball(alpha) - 1
            return sum((arb(a) * (arb(a) / b) ** order for a, b in both), arb(0)) / self.total

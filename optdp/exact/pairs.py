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
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from flint import arb, ctx

from optdp.exact import enclosures, work

if TYPE_CHECKING:
    from optdp.exact.numbers import Number


#: Ratios of floats that differ by a smaller share are compared exactly.
TIE = 2.0**-48


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
    def shares(self) -> tuple[np.ndarray, np.ndarray]:
        """P(k) and Q(k) as the nearest floats, in an order that is exactly that of P(k)/Q(k), the largest ratio first.

        Outcomes that nobody has are left out.
        """
        p, q = self._floats
        return p[self._order], q[self._order]

    @property
    def normal(self) -> bool:
        """Whether no share is so small that floats have fewer digits there."""
        return self.total.bit_length() < 960

    @cached_property
    def _floats(self) -> tuple[np.ndarray, np.ndarray]:
        p, q = ((np.array(v, dtype=object) / self.total).astype(float) for v in (self.p, self.q))
        return p, q

    @cached_property
    def _order(self) -> list[int]:
        step = work.product(self._words, self._words)
        work.count(10 + len(self.p) * (0.8 + 0.1 * step))
        p, q = self._floats
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.nan_to_num(p / q, nan=0.0, posinf=np.inf)
        order = np.argsort(-ratio, kind="stable")
        nobody = [k for k in np.flatnonzero((p == 0) & (q == 0)).tolist() if not (self.p[k] or self.q[k])]
        order = order[~np.isin(order, nobody)] if nobody else order
        found: list[int] = order.tolist()
        # Floats bring them into order but for ratios that are nearly equal.
        near = (ratio[order[1:]] >= ratio[order[:-1]] * (1 - TIE)) | (not self.normal)
        ties = np.flatnonzero(near).tolist()
        work.count(len(ties) * (0.5 + 2 * step))
        wrong = [i for i in ties if self._smaller(found[i], found[i + 1]) > 0]
        if wrong:
            work.count(len(found) * (0.5 + step) * math.log2(len(found) + 1))
            apart = np.flatnonzero(~near) + 1  # where the next ratio is surely smaller
            for i in np.unique(np.searchsorted(apart, np.array(wrong), side="right")).tolist():
                low, high = (int(apart[i - 1]) if i else 0), (int(apart[i]) if i < apart.size else len(found))
                found[low:high] = sorted(found[low:high], key=cmp_to_key(self._smaller))
        return found

    def _smaller(self, j: int, k: int) -> int:
        first, second = int(self.p[k]) * int(self.q[j]), int(self.q[k]) * int(self.p[j])
        return (first > second) - (first < second)

    def corners(self, places: Sequence[int]) -> list[tuple[int, int]]:
        """(P(S), Q(S)), times `total`, for the sets S of the outcomes up to these places in the order of `shares`."""
        if not places:
            return []
        work.count(0.5 * len(self._order))
        sums = [list(accumulate(int(v[k]) for k in self._order)) for v in (self.p, self.q)]
        return [(sums[0][i], sums[1][i]) for i in places]

    @cached_property
    def _ordered(self) -> list[tuple[int, int]]:
        """The outcomes, those of one likelihood ratio merged, with the largest ratio first; without those that nobody has."""
        work.count(len(self.p) * (1 + 2 * work.product(self._words, self._words)))
        merged: list[tuple[int, int]] = []
        for k in self._order:
            a, b = int(self.p[k]), int(self.q[k])
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
    def _ratios(self) -> tuple[list[int], list[int], bool]:
        """(outcomes of both distributions in one and in the other, whether P has outcomes that Q lacks)."""
        both = [(int(a), int(b)) for a, b in zip(self.p, self.q, strict=True) if a and b]
        singular = any(a and not b for a, b in zip(self.p, self.q, strict=True))
        return [a for a, _ in both], [b for _, b in both], singular

    def kl(self, bits: int = enclosures.PRECISION) -> arb:
        """An enclosure of sum_k P(k) log(P(k)/Q(k)), at a precision of `bits`; infinity where P has what Q lacks."""
        p, q, singular = self._ratios
        if singular:
            return arb("inf")
        work.count(bits / 40 * len(p))
        with ctx.workprec(bits):
            return sum((x * (x / b).log() for x, b in zip(map(arb, p), q, strict=True)), arb(0)) / self.total

    def moment(self, alpha: Number, bits: int = enclosures.PRECISION) -> arb:
        """An enclosure of sum_k P(k)^alpha Q(k)^(1 - alpha), alpha > 1: e^((alpha - 1) times the Renyi divergence)."""
        p, q, singular = self._ratios
        if singular:
            return arb("inf")
        work.count(bits / 40 * len(p))
        with ctx.workprec(bits):
            order = enclosures.ball(alpha) - 1
            return sum((x * (x / b) ** order for x, b in zip(map(arb, p), q, strict=True)), arb(0)) / self.total

"""Losses of integers and of numbers: what changes when an integer is spread over a unit, or a number is rounded to an integer.

Let U be uniform on [-1/2, 1/2], and let R be z rounded at random to one of the integers next to it, E R = z. For a loss L of the
distance (`DistanceLoss`), let C be its continuous part, what is left without its jumps, and mu the measure C''.

- An integer k >= 1 costs E C(k + U) = C(k) + int w(t - k) mu(dt) when it is spread, w(t) = (1/2 - |t|)_+^2/2: at most 1/24 of
  the largest C'' on pieces beyond 1/2 and 1/8 of the kinks within a unit more. At k = 0 it is 2 int_0^(1/2) C. A jump of L is met
  by k exactly where k + U is beyond the half-integer before the first integer that meets it, and there B has it instead of L.
- The loss of R is the line between the values at the integers next to z: over L(z) by at most 1/8 of the largest C'' on the unit
  between them. On units with a kink or a jump, and on the first CHORDS, L is replaced by this line.
- Of a power d^q C'' = q (q - 1) d^(q - 2). For q < 2 its largest value is that at 1/2, or 0 for q <= 1; a chord from 0 to 1 is
  over d^q by at most 1/4, or below it by at most 1. For q > 2 it grows with the distance, and by Jensen's and Minkowski's
  inequalities E (D + h)^(q - 2) <= ((E D^q)^(1/q) + h)^(q - 2), with h = 1/2 or 1.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise

from flint import arb

from optdp.exact import enclosures, work
from optdp.exact.polynomial import bernstein, moved, primitive, slope
from optdp.exact.sweep import horner
from optdp.problem.losses import DistanceLoss, Pieces, Threshold

HALF = Fraction(1, 2)
#: Steps at integers up to this have half-integers among floats.
EVEN = 2.0**51
#: So many units may have chords for their curvature.
CHORDS = 64


@dataclass(frozen=True)
class _Parts:
    """C in pieces, and the jumps as (first integer that meets it, height)."""

    breaks: Sequence[Fraction]
    rows: Sequence[Sequence[Fraction]]
    jumps: Sequence[tuple[int, Fraction]]

    @cached_property
    def curvature(self) -> Sequence[tuple[Fraction, Fraction]]:
        """The least and the largest C'' on each piece, 0 included."""
        found = []
        for row, start, end in zip(self.rows, self.breaks, (*self.breaks[1:], None), strict=True):
            bend = moved(slope(slope(row)), start)
            if end is None:
                if any(bend[1:]):
                    raise ValueError("a loss whose slope grows faster than the distance has no bound on its curvature")
                bend = bend[:1]
            else:
                bend = bernstein([c * (end - start) ** k for k, c in enumerate(bend)])
            found.append((min(Fraction(0), *bend), max(Fraction(0), *bend)))
        return found

    def most(self, smooth: int, sharp: int, start: Fraction) -> Fraction:
        """1/`smooth` of the largest rise of the slope per length, and 1/`sharp` of that at kinks within a unit, from `start` on.

        Short pieces count as kinks where that is less: sharp bends that are smoothed.
        """
        ends = [*self.breaks[1:], None]
        bends = [high for _, high in self.curvature]
        kinks = [Fraction(0)] + [
            max(horner(slope(after), b) - horner(slope(before), b), Fraction(0)) if b >= start else Fraction(0)
            for b, (before, after) in zip(self.breaks[1:], pairwise(self.rows), strict=True)
        ]
        found = []
        for short in (Fraction(0), Fraction(sharp, smooth)):
            level, sums, places = Fraction(0), [Fraction(0)], []
            for bend, kink, low, high in zip(bends, kinks, self.breaks, ends, strict=True):
                if high is not None and high - low < short:
                    kink += (high - low) * bend if high > start else 0
                elif high is None or high > start:
                    level = max(level, bend)
                places.append(low)
                sums.append(sums[-1] + kink)
            # What lies within a unit begins within that and the length of a short piece.
            near = (sums[bisect.bisect_right(places, b + 1 + short)] - sums[k] for k, b in enumerate(places))
            found.append(level / smooth + max(near) / sharp)
        return min(found)

    def with_jumps(self) -> DistanceLoss:
        """C and the jumps at half-integers."""
        at_half = sorted((k - HALF, height) for k, height in self.jumps)
        rows: list[list[Fraction]] = []
        kept: list[Fraction] = []
        level, met = Fraction(0), 0
        for at in sorted({*self.breaks, *(at for at, _ in at_half)}):
            while met < len(at_half) and at_half[met][0] <= at:
                level, met = level + at_half[met][1], met + 1
            row = list(self.rows[bisect.bisect_right(self.breaks, at) - 1])
            row[0] += level
            if not rows or row != rows[-1]:  # where there was a jump alone nothing is left
                rows.append(row)
                kept.append(at)
        return Pieces(kept, rows)

    def integral(self, end: Fraction) -> Fraction:
        """The integral of C from 0 to `end`."""
        total = Fraction(0)
        for row, start, stop in zip(self.rows, self.breaks, (*self.breaks[1:], None), strict=True):
            if start < end:
                whole = primitive(row)
                total += horner(whole, end if stop is None else min(stop, end)) - horner(whole, start)
        return total


def _parts(loss: DistanceLoss) -> _Parts | None:
    """None for losses that are not piecewise polynomial."""
    if loss.polynomials is None:
        return None
    breaks, rows = loss.polynomials
    still, jumps, passed = [list(rows[0])], [], Fraction(0)
    for b, (before, after) in zip(breaks[1:], pairwise(rows), strict=True):
        long = work.words([passed])  # in the end its denominator is that of all together
        work.count(4 * (work.rational(0) + long * (0.4 + 0.02 * work.words([*before, *after, b]))))
        height = horner(after, b) - horner(before, b)
        passed += height
        still.append([after[0] - passed, *after[1:]])
        if height:
            jumps.append((math.ceil(b) if loss.right_continuous else math.floor(b) + 1, height))
    return _Parts(breaks, still, jumps)


def known(loss: DistanceLoss) -> bool:
    """Whether what spreading and rounding change is bounded."""
    try:
        both = on_line(loss), ramped(loss)
        return bool(spread(loss, 1.0, Fraction(1)) >= 0 and rounded(loss, 1.0)[0] >= 0 and both)
    except ValueError:
        return False


def on_line(loss: DistanceLoss) -> DistanceLoss:
    """B: what it costs to spread an integer X, E B(|X + U|), is little more than E L(|X|); `spread` says how much."""
    parts = _parts(loss)
    if parts is None or not parts.jumps:
        return loss
    (first, height), *others = parts.jumps
    if loss.steps and not others and height == 1 and not loss.exact(Fraction(0)) and first < EVEN:
        return Threshold(first - 0.5)
    return parts.with_jumps()


def ramped(loss: DistanceLoss) -> DistanceLoss:
    """What the loss of a number costs that is rounded to an integer, but for what `rounded` says: the loss, with its chord
    on each unit within which it bends sharply or jumps, and on the first ones that are curved.
    """
    parts = _parts(loss)
    if parts is None:
        return loss
    units = {math.floor(b) for b in parts.breaks if b.denominator > 1} | {k - 1 for k, _ in parts.jumps}
    for row, start, end in zip(parts.rows, parts.breaks, (*parts.breaks[1:], Fraction(CHORDS)), strict=True):
        if any(row[2:]):
            units |= set(range(math.floor(start), min(math.ceil(end), CHORDS)))
    if not units:
        return loss
    places: list[Fraction] = []
    rows: list[list[Fraction]] = []
    for at in sorted({*parts.breaks, *(Fraction(k + more) for k in units for more in (0, 1))}):
        unit = math.floor(at)
        if unit not in units:
            row = list(loss.polynomials[1][bisect.bisect_right(parts.breaks, at) - 1])  # type: ignore[index]
        elif at == unit:
            start, end = loss.exact(Fraction(unit)), loss.exact(Fraction(unit + 1))
            row = [start - unit * (end - start), end - start]
        else:
            continue
        if not rows or row != rows[-1]:
            places.append(at)
            rows.append(row)
    return Pieces(places, rows)


def spread(loss: DistanceLoss, value: float, rare: Fraction) -> arb:
    """E L(|X|) is at least `value` less this, for integers X with P(X = 0) <= rare and E B(|X + U|) >= `value`.

    (Of powers above 2 it grows with E L(|X|): what is below `value` alone is asked for.)

    **Raises** ValueError where that is not bounded.
    """
    parts, q = _parts(loss), loss.exponent
    if parts is not None:
        most = enclosures.ball(parts.most(24, 8, HALF))
        zero = enclosures.ball(2 * parts.integral(HALF) - parts.rows[0][0])
    elif q is not None:
        power, half = enclosures.ball(q), enclosures.ball(HALF)
        most = (power * (power - 1) / 24).max(arb(0))
        if q <= 2:
            most *= half ** (power - 2)
        else:
            most *= (enclosures.ball(value) ** (1 / power) + half) ** (power - 2)
        zero = half**power / (power + 1)
    else:
        raise ValueError(f"of the loss {loss.name} nothing is known between integers")
    return most + (zero - most).max(arb(0)) * enclosures.ball(rare)


def rounded(loss: DistanceLoss, value: float) -> tuple[arb, arb]:
    """(less, more): E L(|R|) of a number Z that is rounded lies so much below or above that of `ramped`, which is `value`.

    **Raises** ValueError where that is not bounded.
    """
    parts, q = _parts(ramped(loss)), loss.exponent
    if parts is not None:  # without kinks but at integers
        bends = parts.curvature
        return enclosures.ball(-min(low for low, _ in bends) / 8), enclosures.ball(max(high for _, high in bends) / 8)
    if q is None:
        raise ValueError(f"of the loss {loss.name} nothing is known between integers")
    if q <= 1:
        return arb(int(q < 1)), arb(0)
    power = enclosures.ball(q)
    grown = (enclosures.ball(value) ** (1 / power) + 1) ** (power - 2) if q > 2 else arb(1)
    return arb(0), enclosures.ball(Fraction(1, 4)) if q <= 2 else power * (power - 1) / 8 * grown

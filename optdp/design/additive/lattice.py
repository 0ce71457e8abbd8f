"""What the designs of additive noise share: losses on lattices, brackets, and noise whose weights are integers.

Noise on a lattice of n points per sensitivity has masses in cells around its points, or ("bins") between them: for a step
function the coarsest lattice with cells that end at its jumps has the value of the line.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from optdp.certificates.additive import SCALE, lattice_costs, not_noise
from optdp.exact import enclosures
from optdp.exact.sampling import LIMB
from optdp.exact.sweep import horner
from optdp.mechanisms.additive import TOTAL, AdditiveMechanism, largest_around
from optdp.problem.constraints import Unbiased
from optdp.problem.domains import Integers, Line
from optdp.problem.losses import DistanceLoss, Pieces
from optdp.problem.objectives import WorstCase
from optdp.problem.privacy import GDP, ApproxDP, Curve, Privacy, Profile
from optdp.problem.problem import Problem

#: Cells that end at all steps of a step function are looked for on lattices up to this many points; as "at" a step counts what is
#: behind it by less than this share of a cell.
JUMPY, HARDLY = 48, Fraction(1, 10**9)
#: On lattices of up to COARSE points, where noise is found in a moment, steps may be moved in by less than this share of a cell.
COARSE, NEARLY = 4, Fraction(1, 50)
#: From so many points on costs of convex piecewise polynomials are found in floats.
MANY = 10_000
#: Weights of the mechanism are integers that add up to about 2^BITS.
BITS = 120


def pairs_of(privacy: Privacy) -> tuple[tuple[Any, Any], ...]:
    """The pairs (eps, delta) that a notion consists of; none for others."""
    if isinstance(privacy, ApproxDP):
        return ((privacy.eps, privacy.delta),)
    return privacy.pairs if isinstance(privacy, Profile | Curve) else ()


def falling(pairs: Sequence[tuple[Any, Any]]) -> float:
    """A rate at which noise may fall, by each pair alone; at eps = 0 at the cost of 0.4 of its delta."""
    return min(float(e) if float(e) > 0 else 2 * math.atanh(0.4 * float(d)) for e, d in pairs)


def rate(privacy: Any) -> float:
    """About the rate at which noise falls, per sensitivity."""
    if pairs := pairs_of(privacy):
        return falling(pairs)
    if isinstance(privacy, GDP):
        return float(privacy.mu)
    return math.sqrt(2 * float(privacy.bound) / float(getattr(privacy, "alpha", 1)))


def refused(problem: Problem, notions: Any, names: str) -> str | None:
    """Why a problem is not the worst case of a loss of additive noise under one of these notions."""
    if reason := not_noise(problem):
        return reason
    if not isinstance(problem.privacy, notions):
        return f"the privacy must be {names}"
    if not isinstance(problem.objective, WorstCase):
        return "the objective must be a worst case"
    loss, pairs = problem.objective.loss, pairs_of(problem.privacy)
    if loss.steps and len({row[0] for row in loss.polynomials[1]}) == 1:
        return "the loss must change with the distance: all noise has this one"
    if loss.assumptions and not (pairs and all(delta > 0 for _, delta in pairs)):
        return "under this notion noise is unbounded, and a function is known on a bounded range only (optdp.Pieces everywhere)"
    if loss.assumptions and not loss.convex:
        return "a function must be declared convex: optdp.CustomLoss(function, shape='convex')"
    others = [c for c in problem.constraints if not isinstance(c, Unbiased)]
    return "constraints must be empty, or Unbiased() (the noise is symmetric)" if others else None


@dataclass(frozen=True)
class Bracket:
    """Noise and its loss, and a certificate and what it proves; `program`: what they are from; `loss`: a user's function,
    checked as far as it was asked for.
    """

    mechanism: Any
    value: float
    certificate: Any
    lower: float
    program: Any = None
    solved: bool = True
    kind: str = ""
    loss: Any = None

    @property
    def gap(self) -> float:
        return (self.value - self.lower) / self.value if self.value else 0.0

    def better(self, other: Bracket | None) -> Bracket:
        """The better of both sides of this and an older bracket: noise of one lattice and a proof of another may go together."""
        if other is None:
            return self
        attained = self if self.value <= other.value else other
        proven = self if self.lower >= other.lower else other
        return replace(proven, mechanism=attained.mechanism, value=attained.value, loss=self.loss)

    def proven(self, certificate: Any, problem: Problem) -> Bracket:
        """With this certificate, if it proves more."""
        lower = certificate.bound(problem).value
        return replace(self, certificate=certificate, lower=lower) if lower > self.lower else self


class LatticeTask:
    """A problem in the numbers that a search on lattices works with."""

    def __init__(self, problem: Problem) -> None:
        privacy: Any = problem.privacy
        self.problem, self.privacy, self.loss = problem, privacy, problem.objective.loss
        self.width = privacy.sensitivity
        self.integers = isinstance(problem.domain, Integers)
        #: Where the loss jumps, and from where on it is constant (0 if it is not), in sensitivities.
        self.jumps = jumps_of(self.loss, self.width)
        self.beyond = float(self.loss.polynomials[0][-1] / Fraction(self.width)) if self.loss.bounded else 0.0
        #: Whether the loss is constant near 0: there is no peak then.
        self.flat = self.loss.polynomials is not None and not any(self.loss.polynomials[1][0][1:])
        #: Whether that is until it jumps, and more by it than soon after: noise is heaped up before a jump, and a cell around it
        #: would lose all of that.
        self.heaped = self.flat and bool(self.jumps) and not self.integers and self._jumpy()

    def _jumpy(self) -> bool:
        """Whether the loss jumps by at least half of what it rises after its last jump, as far as noise falls by about 1/e."""
        last, jumped = Fraction(self.width) * self.jumps[-1], self.loss.polynomials[1][0][0]
        after = float(DistanceLoss.exact(self.loss, last))
        further = float(self.loss(float(last) + float(self.width) / rate(self.privacy)))
        return 2 * (after - float(jumped)) >= further - after

    def bins(self, n: int) -> bool:
        """Whether cells begin where the loss jumps, and are not around these places."""
        return self.heaped and in_bins(n, self.jumps)

    def rounding(self, n: int) -> Literal["nodes", "bins"]:
        """The same as certificates say it."""
        return "bins" if self.bins(n) else "nodes"

    def costs(self, n: int, last: int) -> np.ndarray:
        """c_0, ..., c_last of a lattice, in floats."""
        if self.loss.exponent is not None and not self.integers:
            return _power_costs(self.loss.exponent, n, last)
        if self.loss.polynomials is not None and self.loss.convex and not self.integers and last > MANY:
            return _piece_costs(self.loss, self.width, n, last)
        exact = lattice_costs(self.loss, self.width, n, last, self.integers, self.rounding(n))
        return np.array([c / 2**SCALE for c in exact.tolist()])


def _power_costs(q: float, n: int, last: int) -> np.ndarray:
    """What `lattice_costs` says of powers on the line, to the precision of floats: meshes have up to a million points."""
    at = np.arange(last + 2) / n
    with np.errstate(over="ignore"):
        costs: np.ndarray = at**q
    if math.isinf(costs[-1]):
        raise OverflowError("costs far out are no floats")
    if q > 1:  # a chord is furthest above where L' is its slope
        slope = np.diff(costs) * n
        peak = np.clip((slope / q) ** (1 / (q - 1)), at[:-1], at[1:])
        sags = np.maximum(costs[:-1] + slope * (peak - at[:-1]) - peak**q, 0.0)
        costs[:-1] -= np.maximum(sags, np.append(0.0, sags[:-1]))
    return np.minimum.accumulate(costs[-2::-1])[::-1]


def _piece_costs(loss: Any, width: float, n: int, last: int) -> np.ndarray:
    """The same for convex piecewise polynomials; on a part of a cell L'' is taken as no larger than at its ends."""
    breaks, rows = loss.polynomials
    edges, at = np.array([float(b) for b in breaks]), np.arange(last + 2) * (width / n)
    ends = np.union1d(at, edges[edges < at[-1]])
    with np.errstate(over="ignore"):
        values: np.ndarray = np.asarray(loss(ends), dtype=float)
    if math.isinf(values[-1]):
        raise OverflowError("costs far out are no floats")
    low, high = ends[:-1], ends[1:]
    piece, cell = (np.searchsorted(places, low, side="right") - 1 for places in (edges, at))
    bend = np.zeros(low.size)
    for k in np.unique(piece).tolist():
        second = [float(j * (j - 1) * c) for j, c in enumerate(rows[k])][:1:-1]
        part = piece == k
        bend[part] = np.maximum(np.polyval(second, low[part]), np.polyval(second, high[part]))
    costs = values[np.searchsorted(ends, at)]
    slope, start = np.diff(costs)[cell] * (n / width), costs[cell]
    above = [start + slope * (x - at[cell]) - v for x, v in ((low, values[:-1]), (high, values[1:]))]
    sags = np.zeros(last + 1)
    np.maximum.at(sags, cell, np.maximum(*above) + (high - low) ** 2 / 8 * np.maximum(bend, 0.0))
    costs = costs[:-1] - np.maximum(sags, np.append(0.0, sags[:-1]))
    return np.minimum.accumulate(costs[::-1])[::-1]


def jumps_of(loss: Any, width: float) -> list[Fraction]:
    """Where the loss jumps, in sensitivities (of many places the first three, but all steps of a step function)."""
    if loss.polynomials is None:
        return []
    kinks = zip(loss.polynomials[0][1:], pairwise(loss.polynomials[1]), strict=True)
    found = [b / Fraction(width) for b, (r, s) in kinks if horner(r, b) != horner(s, b)]
    return found if loss.steps else found[:3]


def beyond(n: int, jumps: list[Fraction], end: Fraction) -> Fraction:
    """How far behind a jump its cell ends, in cells, one of which ends at `end`: all but one of it where a float is a little
    larger than its digits.
    """
    return max(((end - b * n) % 1 for b in jumps), default=Fraction(0))


def distance(index: np.ndarray, bins: bool) -> np.ndarray:
    """How many cells from 0 these cells are, around lattice points or between them (`bins`)."""
    return np.where(index < 0, -index - bins, index)


def in_bins(n: int, jumps: list[Fraction]) -> bool:
    """Whether cells between the points of a lattice end nearer behind the jumps than those around the points."""
    return beyond(n, jumps, Fraction(0)) < beyond(n, jumps, Fraction(1, 2))


def coarsest(jumps: list[Fraction]) -> int | None:
    """The fewest points per sensitivity with cells, around the points or between them, that end at all steps of a step function
    (or hardly beyond): more are no better. None where more than JUMPY would be needed.
    """
    fits = (n for n in range(1, JUMPY + 1) if beyond(n, jumps, Fraction(0 if in_bins(n, jumps) else 1, 2)) < HARDLY)
    return next(fits, None)


def moved_in(problem: Problem, most: int = 0) -> tuple[Problem, int] | None:
    """(the problem with steps at ends of cells before them, where noise is found sooner and is no worse for the given one, how
    many points per sensitivity that lattice has).

    **Arguments:** `most`: the points per sensitivity of the lattices among which the nearest such ends are; 0: ends that steps
    are a little beyond, as floats are that are more than their digits: of the noise hardly any is between.

    **Returns** None where there are no such steps.
    """
    loss, width = problem.objective.loss, Fraction(problem.privacy.sensitivity)  # type: ignore[attr-defined]
    if not loss.steps or isinstance(problem.domain, Integers):
        return None
    (first, *breaks), rows = loss.polynomials
    best: tuple[Fraction, list[Fraction], int] | None = None

    def made(moved: list[Fraction], n: int) -> tuple[Problem, int]:
        return replace(problem, objective=WorstCase(Pieces((first, *moved), rows))), n

    for n in range(1, (most or JUMPY) + 1):
        half = Fraction(0 if most else 1, 2)  # off is by how much steps are beyond the last end, or the nearest
        for end in (Fraction(1, 2), Fraction(0)):
            off = [(half - beyond(n, [b / width], end)) % 1 - half for b in breaks]
            moved = [b - width * max(x, Fraction(0)) / n for b, x in zip(breaks, off, strict=True)]
            if not all(a < b for a, b in pairwise([Fraction(0), *moved])) or max(off) <= 0:
                continue
            if not most and max(map(abs, off)) < (NEARLY if n <= COARSE else HARDLY):
                return made(moved, n)
            if most and (best is None or max(off) / n < best[0]):
                best = max(off) / n, moved, n
    return made(*best[1:]) if best else None


def aligned(points: int, jumps: list[Fraction], steps: bool, bins: bool = False) -> int:
    """Points per sensitivity near `points`, with one of them where the loss jumps, if there are such; for a step function with
    the end of a cell there, or as little beyond as there is (`bins`: also of cells between points).
    """
    ends = [Fraction(steps, 2), *[Fraction(0)] * bins]
    off = {n: min(beyond(n, jumps, end) for end in ends) for n in range(points, points + points // 3 + 2)}
    best = min(off, key=lambda n: off[n])
    return best if steps or off[best] < 1e-9 else points


def as_weights(p: np.ndarray, total: float) -> list[int]:
    """p/total in units of 2^-BITS, rounded to integers."""
    scaled = np.ldexp(p / total, 60)
    return [int(v) << (BITS - 60) if v >= 2.0**52 else int(float(v) * 2.0 ** (BITS - 60)) for v in scaled]


def private_geometric(
    privacy: ApproxDP, domain: Line | Integers, n: int, p: np.ndarray, bins: bool = False
) -> AdditiveMechanism:
    """Noise close to the masses p_0, p_1, .., continued by p_(i+n) = p_i/E, that is (eps, 0)-private exactly.

    Every mass is raised, from the centre outwards, to at least 1/R of those up to n places further in, R <= E rational.
    """
    ratio = enclosures.exp_below(privacy.eps)
    top, bottom = ratio.numerator, ratio.denominator
    decay = -(-LIMB * bottom // top)
    while True:
        # Masses in the tail sink to E^-K: keep their relative precision.
        total = float((1 + bins) * p[0] + 2 * p[1:-n].sum() + 2 * p[-n:].sum() / -math.expm1(-float(privacy.eps)))
        masses = [max(1, v) for v in as_weights(p, total)]
        for _ in range(4 + len(masses) // n):
            changed = False
            raised: deque[tuple[int, int]] = deque()  # may be too much for those up to n places further out; falling
            for a, (v, most) in enumerate(zip(masses, largest_around(masses, n), strict=True)):
                if raised:
                    most = max(most, raised[0][1])
                    if raised[0][0] == a - n:
                        raised.popleft()
                if (v - (v >> 20)) * top > most * bottom:
                    continue
                least = -(-most * bottom // top)
                if v < least:
                    masses[a], changed = least, True
                    while raised and raised[-1][1] <= least:
                        raised.pop()
                    raised.append((a, least))
            for r in range(len(masses) - 2, len(masses) - n - 1, -1):  # across the period the tail must not rise
                if masses[r] < masses[r + 1]:
                    masses[r], changed = masses[r + 1], True
            if not changed:
                break
        tail = [-(-w * LIMB // (LIMB - decay)) for w in masses[-n:]]
        least = -(-tail[0] * bottom // top)
        tail = [max(t, least) for t in tail]
        if 2 * (sum(masses[:-n]) + sum(tail)) < TOTAL:
            break
        p = np.array(masses, dtype=float) / float(
            max(masses)
        )  # raised by so much that they no longer fit: anew from there
    weights = tuple(masses[:-n])
    return AdditiveMechanism(domain, privacy.sensitivity, n, weights, 0, tuple(tail), decay, privacy.eps, bins=bins)


def sized(problem: Problem) -> None:
    """**Raises** ValueError where the loss of noise as large as the sensitivity is out of the range of floats."""
    loss, privacy = problem.objective.loss, problem.privacy
    width: float = privacy.sensitivity  # type: ignore[attr-defined]
    if loss.exponent is not None and not abs(loss.exponent * math.log10(width)) <= 300:
        told = "the loss at the sensitivity must be between 1e-300 and 1e300"
        raise ValueError(f"loss = {loss.name!r}, sensitivity = {width:g} is not allowed: {told}")


def cut_off(p: np.ndarray, delta: float, n: int, bins: bool = False) -> np.ndarray:
    """Masses cut off as early as delta allows: the last n of what is left have a share of at most delta."""
    sums = np.cumsum(p)
    edge = sums - np.concatenate([np.zeros(n), sums[:-n]])
    fits = np.flatnonzero(edge[n:] <= delta * (1 - 1e-12) * (2 * sums[n:] - (not bins) * p[0])) + n
    return p[: int(fits[0]) + 1] if fits.size else p

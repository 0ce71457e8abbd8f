"""The dual of the optimal-noise problem: multipliers that prove a lower bound for every (eps, delta)-private noise.

**The claim.** Let X be noise with, at every shift |d| <= Delta, hockey-stick divergence at most delta: for all sets S,
P(X in S) <= E P(X + d in S) + delta, E = e^eps. Let L be symmetric and nondecreasing in |x|. Then E L(X) >= bound. Units:
Delta = 1.
A notion that implies delta(eps) at every eps (a profile, Gaussian DP) has this for each eps that a multiplier names.

1. *Symmetry.* Replacing X by X or -X with a fair coin keeps both the guarantee (divergences are convex) and the loss.
2. *Rounding.* Round X at random to one of its two neighbours in the lattice hZ, h = 1/n, without bias. This commutes
   with shifts by multiples of h, so it is post-processing: the masses p_i at ih satisfy, for s = 1..n,

       sum_i (p_i - E p_(i+s))_+  <=  delta.                                                     (privacy at shift sh)

   A cost c_i on the lattice satisfies sum_i p_i c_i <= E L(X) if the broken line through the points (ih, c_i) lies
   nowhere above L. For L = |x| that is c_i = L(ih) itself; for L = x^2, c_i = L(ih) - h^2/4; in general L(ih) less the
   larger sag of L under its chords on the two sides, and a jump of L within a cell is moved to its outer end. (A step
   function L: X goes to its nearest lattice point, ties towards 0, and c_i = L(|ih| - h/2), the limit from above: nothing is
   lost where a cell ends at a jump. "bins" in place of "nodes": X goes to the bin (kh, (k+1)h] that it falls in, on either side
   of 0 (0 itself with a fair coin), and c_k = L(kh), on the line again the limit from above: the discretisation of Geng and
   Viswanath for n = 1. A step function whose jumps are multiples of h loses nothing by it.)
   *Steps a little beyond* the end of a cell, as floats are that are more than their digits: with L' the same with a step at b in
   place of b + w, E L(X) >= E L'(X) - rise P(b <= |X| <= b + w), and each of the two intervals has k disjoint shifts by at most
   Delta, k < 1/w, one of which has a probability of at most 1/k: the interval's is at most E/k + delta, for every eps, and 1/2.
   *Ties* do not commute with shifts, and need not: let I be a finite set of cells with union S, D the atoms of X, countably
   many, and d slightly less than sh with D and D - d disjoint. Then T = S less D - d has all of the mass of S, and T + d no atom:
   P(X in S) = P(X in T) <= E P(X in T + d) + delta <= E mu(S + d) + delta with mu the law without its atoms, and
   mu(S + d) -> mu(S + sh) <= sum_(i in I) p_(i+s) as d -> sh, whichever cells the ends belong to.
3. *Duality.* For multipliers 0 <= mu_(s,i) <= lam_s and p symmetric, with a = |i| and m_a = 1 for a = 0, else 2,

       sum_i c_i p_i >= sum_i c_i p_i + sum_s lam_s [sum_i (p_i - E p_(i+s))_+ - delta]
                     >= sum_a p_a [m_a c_a + sum_(s, |i| = a) mu_(s,i) - E sum_(s, |i+s| = a) mu_(s,i)]  -  delta sum_s lam_s
                     >= t - delta sum_s lam_s,      t = min_a [...] / m_a.

   There is no feasibility to check: t is *computed* as that minimum, in exact rationals with E replaced by a rational
   above it. Multipliers from a solver that are slightly off cost tightness, never validity.
4. *The infinite support.* For each s, mu_(s,i) = 0 below the stored entries and a constant r_s <= lam_s above them. Beyond
   the last index J that a stored entry reaches the bracket is therefore 2 c_a - (E - 1) sum_s r_s with c_a nondecreasing (the
   broken line is continued horizontally, which stays below L): it is least at a = J + 1, which is included in the minimum.

On the integers noise and shifts are integers. With n the sensitivity step 2 is void; where n divides it, it is as above.
For any other n, X + U with U uniform in [-1/2, 1/2] is noise on the line that keeps the guarantee (a real shift is a mixture of
the two integers around it), and costs that satisfy E B(x + U) <= L(x) at the integers x, B the broken line, do as well: for x^2
those of step 2 less 1/(12 Delta^2), for |x| those of step 2 but c_0 = -1/(4 Delta - n): only there |x + U| costs more than |x|.
E L(X) is the loss at every input alike: the bound holds for the worst case, for any average, and at any one input.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Annotated, Any, Literal

import numpy as np
from flint import arb, ctx, fmpq

from optdp.certificates.base import Bound, Certificate, Refusal
from optdp.exact import OPTIONAL, FieldError, Fields, Number, Within, enclosures, plain, polynomial, work
from optdp.exact.polynomial import exact
from optdp.exact.sweep import horner
from optdp.problem import (
    Additive,
    ApproxDP,
    At,
    Average,
    Curve,
    DistanceLoss,
    Divergence,
    Integers,
    Line,
    Problem,
    Profile,
    WorstCase,
)
from optdp.problem.losses import Pieces

#: Costs and multipliers are rounded to multiples of 2^-SCALE (costs downwards), e^eps up to a multiple of 2^-RATIO.
SCALE = 110
RATIO = 80
#: Samples of a user's function in each cell of the lattice.
PARTS = 16
#: Multipliers may name points of the profile up to this eps.
MAX_EPS = 500.0
#: What a file may ask of the proof: lattice points per sensitivity, their indices, and multipliers in all.
POINTS = 100_000
MOST = 8_000_000


@dataclass(frozen=True)
class Multiplier:
    """mu for one shift: 0 for i < first, `values[i - first]`, then `rest` for ever; `weight` is lam_s >= all of them.

    `eps`: where on the privacy profile, None for the problem's own eps; delta is what the problem's notion implies there.
    """

    shift: Annotated[int, Within(1, POINTS)]
    weight: Annotated[float, Within(0.0)]
    first: Annotated[int, Within(-2 * POINTS, 2 * POINTS)]
    values: Annotated[tuple[float, ...], Within(0.0, most=4 * POINTS)]
    rest: Annotated[float, Within(0.0)]
    eps: Number | None = field(default=None, metadata=OPTIONAL)

    @property
    def end(self) -> int:
        """The first index at which mu has become constant."""
        return self.first + len(self.values)


def not_additive(problem: Problem) -> str:
    """Why a problem is not about the expectation E L(|X|) of additive noise X under (eps, delta)-privacy, or an empty string."""
    return not_noise(problem) if isinstance(problem.privacy, ApproxDP) else "the privacy must be ApproxDP"


def by_pairs(problem: Problem, bound: Callable[[Problem], Bound]) -> Bound:
    """The best of what (eps, delta)-privacy alone proves, for each pair that a `Profile` or the points of a `Curve` ask for."""
    privacy: Any = problem.privacy
    if not isinstance(privacy, Profile | Curve):
        return bound(problem)
    found, reason = [], "no pair is of use"
    for eps, delta in privacy.pairs if isinstance(privacy, Profile) else privacy.points:
        try:
            found.append(bound(replace(problem, privacy=ApproxDP(eps, delta, privacy.sensitivity))))
        except ValueError as refusal:  # delta = 1, or a proof that is for other pairs
            reason = str(refusal)
    if not found:
        raise Refusal(reason)
    return max(found, key=lambda one: one.value)


def on_integers(problem: Problem) -> Problem:
    """The same problem, on the integers with a loss that is the same there (`DistanceLoss.whole`)."""
    objective: Any = problem.objective
    if not isinstance(problem.domain, Integers) or not isinstance(objective, WorstCase | Average | At):
        return problem
    loss = objective.loss
    same = loss.form != "distance" or loss.whole is loss
    return problem if same else replace(problem, objective=replace(objective, loss=loss.whole))


def not_noise(problem: Problem) -> str:
    """Why a problem is not about the expectation E L(|X|) of additive noise X, or an empty string."""
    privacy, objective = problem.privacy, problem.objective
    if not isinstance(privacy, ApproxDP | Divergence):
        return "the privacy must be ApproxDP, Profile, Curve, GDP, RDP or KL"
    if not isinstance(problem.domain, Line | Integers) or not isinstance(problem.family, Additive):
        return "the family must be Additive() on the real line or the integers"
    if isinstance(problem.domain, Integers) and privacy.sensitivity != int(privacy.sensitivity):
        return "sensitivity must be an integer on the integers"
    if not isinstance(objective, WorstCase | Average | At) or objective.loss.form != "distance":
        return "the objective must be the expectation of a loss of the distance"
    loss = objective.loss
    if loss.polynomials is None and loss.whole is not loss:
        told = "P(X != 0) is at least 1 - delta under (eps, delta), which is attained for eps > 0, and 1 under GDP, KL, RDP"
        return f"the limit must be above 0: on the line {told}"
    if loss.exponent is None and loss.polynomials is None and not loss.assumptions:
        return "the loss must be a power, piecewise polynomial, or (for bounded noise) a convex optdp.CustomLoss"
    return ""


@dataclass(frozen=True)
class AdditiveCertificate(Certificate):
    """A dual point for the lattice of step sensitivity/n.

    **Arguments:** `n`: lattice points per sensitivity; `rounding`: "nodes" or "bins" (step 2 above); `multipliers`: the dual
    point, in units in which the sensitivity is 1 and the loss L(sensitivity x), over sensitivity^q for a power; `moved`: steps up
    to this share of the sensitivity beyond the end of a cell are moved to it (on the line).
    """

    tag = "additive"
    n: Annotated[int, Within(1, POINTS)]
    rounding: Literal["nodes", "bins"]
    multipliers: Annotated[tuple[Multiplier, ...], Within(most=POINTS)]
    moved: Annotated[float, Within(0.0, 1.0)] = field(default=0.0, metadata=OPTIONAL)

    def bound(self, problem: Problem) -> Bound:
        problem = on_integers(problem)
        if reason := not_noise(problem):
            self._refuse(reason)
        loss, discrete = problem.objective.loss, isinstance(problem.domain, Integers)
        width = problem.privacy.sensitivity  # type: ignore[attr-defined]
        exactly = discrete and (self.rounding == "bins" or self.n == width)
        if loss.assumptions and not loss.convex and not exactly:
            self._refuse(f"the loss {loss.name} is not known to be convex, and rounding to the lattice needs convexity")
        if discrete and (self.n > width if self.rounding == "nodes" else self.n != 1):
            self._refuse(f"on the integers n = {self.n} must be at most the sensitivity {plain(width)} (1 for bins)")
        if discrete and self.rounding == "nodes" and width % self.n and loss.exponent not in (1, 2):
            self._refuse(f"on the integers n = {self.n} must divide the sensitivity for losses but abs and squared")
        if reason := self._malformed():
            self._refuse(reason)
        try:
            exact = self.exact_bound(problem)
        except (ValueError, TypeError, OverflowError) as error:  # what a user's function gives
            self._refuse(str(error))
        value = scaled(problem, exact)
        where = "the integers" if exactly else f"a lattice of {self.n} points per sensitivity"
        return Bound(max(0.0, value), f"linear programming dual on {where}, exact rationals", loss.assumptions)

    def _malformed(self) -> str:
        """Why this is not a dual point of the stated form."""
        shifts = [m.shift for m in self.multipliers]
        named = [m.eps for m in self.multipliers if m.eps is not None]
        places = {(m.shift, m.eps) for m in self.multipliers}
        if len(places) != len(shifts) or any(not 1 <= s <= self.n for s in shifts):
            return f"shifts must be distinct at each eps, and in 1..{self.n}"
        if any(not 0 <= float(eps) <= MAX_EPS for eps in named):
            return f"eps must be in [0, {MAX_EPS:g}]"
        for m in self.multipliers:
            if not (min(*m.values, m.rest, 0.0) >= 0 and max(*m.values, m.rest, 0.0) <= m.weight < np.inf):
                return f"a multiplier of shift {m.shift} is not between 0 and its weight {float(m.weight):g}"
        if sum(len(m.values) for m in self.multipliers) > MOST:
            return f"it has more than {MOST} multipliers"
        return ""

    @property
    def _last(self) -> int:
        """J + 1, beyond which the bracket of step 4 only grows."""
        return max([self.n, *(max(m.end + self.n, -m.first) for m in self.multipliers)]) + 1

    def exact_bound(self, problem: Problem) -> Fraction:
        """t - sum lam delta for sensitivity 1 as an exact rational (a lower bound on it where L is irrational)."""
        privacy: Any = problem.privacy
        last, discrete = self._last, isinstance(problem.domain, Integers)
        points: list[Any] = [getattr(privacy, "eps", None) if m.eps is None else m.eps for m in self.multipliers]
        every = set(points)
        if None in every:
            self._refuse(f"for {privacy.adjective} noise each multiplier must name its eps")
        values = sum(len(m.values) for m in self.multipliers) + 2 * last
        smooth = problem.objective.loss.exponent in (1, 2)
        work.count((3 if smooth else 60) * last + 3 * values + 10 * len(self.multipliers) + 10 * len(every))
        ratios = {eps: math.ceil(enclosures.exp_above(eps, 2 * RATIO) * 2**RATIO) for eps in every}
        deltas = {eps: privacy.delta_at(eps) for eps in every}
        if None in deltas.values():
            self._refuse(f"{privacy.adjective} implies no (eps, delta)-privacy that is known here")
        loss, budget = problem.objective.loss, Fraction(0)
        if self.moved and loss.steps and not discrete:
            loss, budget = self._moved_in(loss, privacy, every)
        costs = lattice_costs(loss, privacy.sensitivity, self.n, last, discrete, self.rounding)
        folded = self._weights(last) * (costs << RATIO)
        rises = np.zeros(2 * last + 1, dtype=object)  # of what goes on without end, at -last..last
        for m, eps in zip(self.multipliers, points, strict=True):
            stream = _integers(m.values)
            weight, rest = _integers([m.weight, m.rest])
            budget += int(weight) * deltas[eps]
            if rest:
                rises[m.end + last] += rest << RATIO
                rises[m.end + m.shift + last] -= rest * ratios[eps]
            self._fold(folded, m.first, stream << RATIO)
            self._fold(folded, m.first + m.shift, stream * -ratios[eps])
        self._fold(folded, -last, np.cumsum(rises))
        floor = folded // (self._weights(last) << RATIO)
        value: Fraction = (int(floor.min()) - budget) / 2**SCALE
        return value

    def _moved_in(self, loss: DistanceLoss, privacy: Any, every: set[Any]) -> tuple[DistanceLoss, Fraction]:
        """(the loss with steps at the ends of cells before them, by how much more it may cost, in units of 2^-SCALE)."""
        (first, *breaks), rows = loss.polynomials  # type: ignore[misc]
        half, unit = Fraction(self.rounding == "nodes", 2), Fraction(privacy.sensitivity) / self.n
        off = [(b / unit - half) % 1 / self.n for b in breaks]
        off = [w if w <= self.moved else Fraction(0) for w in off]
        places = [b - w * self.n * unit for b, w in zip(breaks, off, strict=True)]
        if not any(off) or not all(a < b for a, b in pairwise([first, *places])):
            return loss, Fraction(0)
        translates = max(math.ceil(1 / max(off)) - 1, 1)
        known = [(e, privacy.delta_at(e)) for e in every | set(range(1, 31))]
        share = min([Fraction(1, 2), *(enclosures.exp_above(e) / translates + d for e, d in known if d is not None)])
        rises = sum(b[0] - a[0] for (a, b), w in zip(pairwise(rows), off, strict=True) if w)
        return Pieces((first, *places), rows), 2 * share * rises * 2**SCALE

    def _weights(self, last: int) -> np.ndarray:
        """m_a for a = 0..last: how many lattice points lie at distance a."""
        m = np.full(last + 1, 2, dtype=object)
        m[0] = 1 if self.rounding == "nodes" else 2
        return m

    def _fold(self, folded: np.ndarray, first: int, stream: np.ndarray) -> None:
        """Add `stream`, at the lattice points first, first + 1, ..., to `folded`, which is indexed by distance."""
        below = min(max(-first, 0), stream.size)  # entries at negative lattice points, at falling distances
        if below:
            low = -first - (self.rounding == "bins") - below + 1  # bins: k and -1 - k are at the same distance
            folded[low : low + below] += stream[:below][::-1]
        start = first + below
        count = max(min(stream.size - below, folded.size - start), 0)
        folded[start : start + count] += stream[below : below + count]

    @classmethod
    def _read(cls, fields: Fields) -> AdditiveCertificate:
        made = fields.into(cls)
        if reason := made._malformed():
            raise FieldError(f"{fields.where}.multipliers are not allowed: {reason}")
        return made


def _integers(values: Iterable[float | Fraction | fmpq]) -> np.ndarray:
    """floor(v 2^SCALE), exactly: any numbers are a dual point, these are as good as the floats that they come from."""
    ratios = ((v.p, v.q) if isinstance(v, fmpq) else v.as_integer_ratio() for v in values)
    return np.array([int((top << SCALE) // bottom) for top, bottom in ratios], dtype=object)


def _sunk(costs: Iterable[float | Fraction | fmpq]) -> np.ndarray:
    """Costs in integers, nondecreasing and not above the given ones: the broken line only sinks."""
    return np.minimum.accumulate(_integers(costs)[::-1])[::-1]


def lattice_costs(
    loss: DistanceLoss, sensitivity: float, n: int, last: int, discrete: bool = False, rounding: str = "nodes"
) -> np.ndarray:
    """floor(c_a 2^SCALE) for a = 0..last, sensitivity 1: costs on the lattice under which rounding is not dearer than L."""
    sagging = rounding == "nodes" and not (discrete and n == sensitivity)
    spread = discrete and rounding == "nodes" and sensitivity % n != 0
    if loss.polynomials is not None:
        return _polynomial_costs(loss, Fraction(sensitivity) / n, last, sagging, discrete)
    if loss.exponent is None:
        return _sampled_costs(loss, sensitivity, n, last, sagging)
    index = np.arange(last + 1, dtype=object)
    if loss.exponent == 1:
        plainly = (index << SCALE) // n
        if spread:
            plainly[0] = -math.ceil(2**SCALE / (4 * Fraction(sensitivity) - n))
        return plainly
    if loss.exponent == 2:
        less = math.ceil(2**SCALE / (12 * Fraction(sensitivity) ** 2)) if spread else 0
        return ((4 * index * index - int(sagging)) << SCALE) // (4 * n * n) - less
    with ctx.workprec(enclosures.PRECISION + 64):
        q, h = enclosures.ball(loss.exponent), 1 / arb(n)
        values = [(a * h) ** q if a else arb(0) for a in range(last + 2)]
        sags = [arb(0)] * (last + 2)
        if sagging and loss.convex:  # a concave one lies above its chords
            for a in range(last + 1):  # chord minus L on [ah, (a+1)h] is largest where L' is the chord's slope
                slope = (values[a + 1] - values[a]) / h
                peak = (slope / q) ** (1 / (q - 1))
                sags[a] = values[a] + slope * (peak - a * h) - peak**q
        high = [enclosures.upper(s) for s in sags]
        costs = [enclosures.lower(values[a]) - max(high[a], high[max(a - 1, 0)], Fraction(0)) for a in range(last + 1)]
    return _sunk(costs)


def scaled(problem: Problem, exact: Fraction | arb) -> float:
    """At most what a bound for sensitivity 1 says of the problem: powers scale, other losses are already at their own unit."""
    with ctx.workprec(enclosures.PRECISION):
        exponent = problem.objective.loss.exponent
        sensitivity = enclosures.ball(problem.privacy.sensitivity)  # type: ignore[attr-defined]
        unit = arb(1) if exponent is None else sensitivity ** enclosures.ball(exponent)
        return enclosures.round_down(enclosures.ball(exact) * unit)


def _polynomial_costs(loss: DistanceLoss, step: Fraction, last: int, sagging: bool, discrete: bool) -> np.ndarray:
    """The same for piecewise polynomials, exactly: on a part of width w chords sag by at most w^2/8 times the largest L''."""
    assert loss.polynomials is not None
    breaks, rows = loss.polynomials
    degree = max(map(len, rows))
    size = work.words(c for row in rows for c in row) + degree * work.words([*breaks, last * step, step]) / 2
    work.count((last + 1) * (9 + 6 * degree + (degree**2 / 4 if sagging and degree > 3 else 0)) * work.rational(size))
    half = Fraction(sagging, 2)  # a step function's X goes to the nearest lattice point
    if not sagging or loss.steps:
        value = loss.exact if discrete else functools.partial(DistanceLoss.exact, loss)  # the limit from above
        starts: Sequence[int] = range(last + 1)
        if loss.steps:  # the first points at a step and beyond it: between them nothing changes
            first = (b / step + half for b in breaks[1:])
            met = {a for at in first for a in (math.ceil(at), math.floor(at) + 1) if a <= last}
            starts = sorted({0, *met})
        costs = _sunk(value(max(a - half, Fraction(0)) * step) for a in starts)
        return np.repeat(costs, np.diff([*starts, last + 1]))
    values, sags, piece = [exact(loss.exact(Fraction(0)))], [fmpq(0)], 0
    h, ends, pieces = exact(step), [exact(b) for b in breaks], [[exact(c) for c in row] for row in rows]
    for a in range(last + 1):
        start, end = a * h, (a + 1) * h
        while piece + 1 < len(ends) and ends[piece + 1] <= start:
            piece += 1
        parts = [(start, piece)]  # where each begins, and of which piece it is
        while piece + 1 < len(ends) and ends[piece + 1] < end:
            piece += 1
            parts.append((ends[piece], piece))
        if any(horner(pieces[k], b) != horner(pieces[k - 1], b) for b, k in parts[1:]):
            values.append(values[-1])
            sags.append(fmpq(0))
            continue
        values.append(horner(pieces[piece], end))
        if len(parts) == 1 and len(pieces[piece]) < 3:  # it is its own chord
            sags.append(fmpq(0))
            continue
        slope = (values[-1] - values[-2]) / h
        sag = fmpq(0)
        for (low, k), (high, _) in pairwise([*parts, (end, piece)]):
            above = (values[-2] + slope * (d - start) - horner(pieces[k], d) for d in (low, high))
            sag = max(sag, max(above) + (high - low) ** 2 / 8 * max(_curved(pieces[k], low, high), fmpq(0)))
        sags.append(sag)
    return _sunk(v - max(left, right) for v, (left, right) in zip(values, pairwise(sags), strict=False))


def _curved(row: Sequence[fmpq], low: fmpq, high: fmpq) -> fmpq:
    """At least the second derivative of a polynomial on [low, high]."""
    bend = [k * (k - 1) * c for k, c in enumerate(row)][2:]
    if len(bend) < 2:
        return bend[0] if bend else fmpq(0)
    width = high - low
    shifted = [
        sum((math.comb(j, i) * c * low ** (j - i) for j, c in enumerate(bend) if j >= i), fmpq(0)) * width**i
        for i in range(len(bend))
    ]
    return max(polynomial.bernstein(shifted))


def _sampled_costs(loss: DistanceLoss, sensitivity: float, n: int, last: int, sagging: bool) -> np.ndarray:
    """The same from values of a convex function at `PARTS` points per cell: sags by secants of neighbouring parts."""
    if not sagging:  # at or below the lattice, which floats may miss
        costs = loss(np.array([enclosures.round_down(Fraction(sensitivity) * a / n) for a in range(last + 1)]))
    else:
        grid = np.arange((last + 2) * PARTS + 1) * (sensitivity / (n * PARTS))
        values = loss(grid)
        # Roundings of values, and of the places where they are taken, times the slope: in each cell as far as its sags ask.
        far = np.arange(2, last + 3) * PARTS
        with np.errstate(invalid="ignore", over="ignore"):
            bend = np.diff(values)
            noise = 64 * np.finfo(float).eps * (np.abs(values[far]) + far * np.maximum(bend[far - 1], 0.0))
        known = np.isfinite(values).all()
        if not known or min(bend.min(), np.diff(bend).min()) < -noise[-1] / 2:
            told = f"the loss {loss.name} is not finite, nondecreasing and convex"
            raise ValueError(f"{told} up to distance {grid[-1]:g}")
        bend = np.concatenate([[-bend[0]], bend, [bend[-1]]])
        before, after = np.diff(bend)[:-1], np.diff(bend)[1:]
        total = before + after
        sag = np.where(total > 0, np.maximum(before, 0) * np.maximum(after, 0) / np.where(total > 0, total, 1.0), 0.0)
        cells = values[:-1].reshape(-1, PARTS)
        ends = values[::PARTS]
        chord = ends[:-1, None] + (ends[1:] - ends[:-1])[:, None] * (np.arange(PARTS) / PARTS)
        depth = np.maximum((chord - cells).max(axis=1) + sag.reshape(-1, PARTS).max(axis=1), 0.0)
        costs = ends[: last + 1] - np.maximum(depth[: last + 1], np.concatenate([[0.0], depth[:last]]))
        costs -= noise
    return _sunk(map(float, costs))


def geng_viswanath(problem: Problem) -> AdditiveCertificate:
    """The closed-form dual point behind Lemma 2 and Theorems 4 and 5 of the truncated-Laplacian paper, for a problem.

    One shift (Delta itself), bins of one sensitivity. With T_j = P(X beyond j Delta), T_0 = 1/2, privacy on the sets
    {X > j Delta} says T_(j+1) >= (T_j - delta)/E; the loss is at least 2 sum_j T_j (L(j Delta) - L((j-1) Delta)). The bound
    takes the chain with equality as long as T_j stays positive, which is the paper's

        2 sum_(j < N) a b^j L(j Delta),   a = (delta + (E - 1)/2)/E,  b = 1/E,

    with the paper's N where it is an integer, and what is left of the mass 1/2 placed at floor(N) otherwise. In the dual: the
    multiplier of the j-th link of the chain is y_j = b G_(j+1), with G_j = 2 sum_(k >= j) b^(k-j) (L(k) - L(k-1)) over the links
    in use, and mu_i = y_0 + ... + y_i.

    **Arguments:** `problem`: an `optdp.Problem` about additive noise. **Raises** ValueError for another one.
    """
    if reason := not_additive(problem):
        raise ValueError(f"problem is not allowed: {reason}")
    privacy: Any = problem.privacy
    loss = problem.objective.loss
    eps, delta = float(privacy.eps), float(privacy.delta)
    e = float(enclosures.exp_above(privacy.eps))
    mass, links = 0.5, 0
    while (mass := (mass - delta) / e) > 0 and links < POINTS and (delta > 0 or links < 40 / eps):
        links += 1
    if loss.steps and isinstance(problem.domain, Line):
        costs = lattice_costs(loss, privacy.sensitivity, 1, links, rounding="bins").astype(float) / 2.0**SCALE
    else:
        costs = loss(np.arange(links + 1) * (privacy.sensitivity if loss.exponent is None else 1.0))
    rises = np.diff(costs)
    growth, y = 0.0, np.zeros(links)
    for j in range(links, 0, -1):  # y_(j-1) = b G_j
        growth = 2 * float(rises[j - 1]) + growth / e
        y[j - 1] = growth / e
    mu = np.cumsum(y)
    weight = float(mu[-1]) if links else 0.0
    return AdditiveCertificate(1, "bins", (Multiplier(1, weight, 0, tuple(float(v) for v in mu), weight),))

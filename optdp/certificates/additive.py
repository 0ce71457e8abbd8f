"""The dual of the optimal-noise problem: multipliers that prove a lower bound for every (eps, delta)-private noise.

**The claim.** Let X be noise with, at every shift |d| <= Delta, hockey-stick divergence at most delta: for all sets S,
P(X in S) <= E P(X + d in S) + delta, E = e^eps. Let L be convex and symmetric. Then E L(X) >= bound. Units: Delta = 1.

1. *Symmetry.* Replacing X by X or -X with a fair coin keeps both the promise (divergences are convex) and the loss.
2. *Rounding.* Round X at random to one of its two neighbours in the lattice hZ, h = 1/n, without bias. This commutes
   with shifts by multiples of h, so it is post-processing: the masses p_i at ih satisfy, for s = 1..n,

       sum_i (p_i - E p_(i+s))_+  <=  delta.                                                     (privacy at shift sh)

   A cost c_i on the lattice satisfies sum_i p_i c_i <= E L(X) if the broken line through the points (ih, c_i) lies
   nowhere above L. For L = |x| that is c_i = L(ih) itself; for L = x^2, c_i = L(ih) - h^2/4; in general L(ih) less the
   larger sag of L under its chords on the two sides. ("bins" in place of "nodes": X goes to the bin (kh, (k+1)h] that it
   falls in, on either side of 0, and c_k = L(kh): the discretisation of Geng and Viswanath.)
3. *Duality.* For multipliers 0 <= mu_(s,i) <= lam_s and p symmetric, with a = |i| and m_a = 1 for a = 0, else 2,

       sum_i c_i p_i >= sum_i c_i p_i + sum_s lam_s [sum_i (p_i - E p_(i+s))_+ - delta]
                     >= sum_a p_a [m_a c_a + sum_(s, |i| = a) mu_(s,i) - E sum_(s, |i+s| = a) mu_(s,i)]  -  delta sum_s lam_s
                     >= t - delta sum_s lam_s,      t = min_a [...] / m_a.

   There is no feasibility to check: t is *computed* as that minimum, in exact rationals with E replaced by a rational
   above it. Multipliers from a solver that are slightly off cost tightness, never validity.
4. *The infinite support.* For each s, mu_(s,i) = 0 below the stored entries and a constant r_s <= lam_s above them. Beyond
   the last index J that a stored entry reaches the bracket is therefore 2 c_a - (E - 1) sum_s r_s with c_a nondecreasing (the
   broken line is continued horizontally, which stays below L): it is least at a = J + 1, which is included in the minimum.

With `discrete`, noise and shifts are whole numbers, n is the sensitivity, and step 2 is void.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx

from optdp.exact import enclosures, require
from optdp.exact.check import Check
from optdp.problem.losses import CustomLoss, Loss, Power, loss_from_dict

#: Costs and multipliers are rounded to multiples of 2^-SCALE (costs downwards), e^eps up to a multiple of 2^-RATIO.
SCALE = 110
RATIO = 80


@dataclass(frozen=True)
class Multiplier:
    """mu for one shift: 0 for i < first, `values[i - first]`, then `rest` for ever; `weight` is lam_s >= all of them."""

    shift: int
    weight: float
    first: int
    values: tuple[float, ...]
    rest: float

    @property
    def end(self) -> int:
        """The first index at which mu has become constant."""
        return self.first + len(self.values)


@dataclass(frozen=True)
class AdditiveCertificate:
    """A dual point for the lattice of step sensitivity/n, and the bound that it proves for all additive noise.

    **Arguments:** `eps`, `delta`, `sensitivity`: the promise; `loss`: convex; `n`: lattice points per sensitivity;
    `multipliers`: the dual point, in units in which the sensitivity is 1 and the loss L(sensitivity x), over sensitivity^q
    for a power; `bound`: what is claimed; `discrete`; `rounding`: "nodes" or "bins" (step 2 above).
    """

    eps: float
    delta: float
    sensitivity: float
    loss: Loss
    n: int
    multipliers: tuple[Multiplier, ...]
    bound: float
    discrete: bool = False
    rounding: str = "nodes"

    @classmethod
    def of(
        cls, eps: float, delta: float, sensitivity: float, loss: Loss, n: int, multipliers: Sequence[Multiplier],
        *, discrete: bool = False, rounding: str = "nodes",
    ) -> AdditiveCertificate:  # fmt: skip
        """The certificate with the largest float bound that these multipliers prove."""
        bare = cls(eps, delta, sensitivity, loss, n, tuple(multipliers), 0.0, discrete, rounding)
        return cls(
            eps, delta, sensitivity, loss, n, bare.multipliers, bare._round(bare.exact_bound()), discrete, rounding
        )

    @property
    def assumptions(self) -> str:
        """What the proof takes on trust, or an empty string."""
        if isinstance(self.loss, Power):
            return ""
        return "the loss is convex between the points at which it was sampled"

    def concerns(self, privacy: Any, mechanism: Any) -> bool:
        """Whether the proof is about this promise and this mechanism's problem."""
        promise = (self.eps, self.delta, self.sensitivity) == (privacy.eps, privacy.delta, privacy.sensitivity)
        line = mechanism.domain
        return bool(promise and (self.sensitivity, self.discrete) == (line.sensitivity, line.discrete))

    def check(self) -> Check:
        """Compute the bound again from the multipliers, in exact arithmetic, and compare with the claim."""
        valid = self._refusal()
        if valid:
            return Check("lower bound", False, valid)
        proven = self._round(self.exact_bound())
        how = "exact rationals" if isinstance(self.loss, Power) else f"provided that {self.assumptions}"
        where = "the integers" if self.discrete else f"the line, by a lattice of {self.n} points per sensitivity"
        return Check(
            "lower bound",
            self.bound <= proven,
            f"all ({self.eps:g}, {self.delta:g})-private noise on {where} loses at least {proven:.17g} >= "
            f"{self.bound:.17g} ({how})",
        )

    def _refusal(self) -> str:
        """Why this is not a dual point of the stated form, or an empty string."""
        if isinstance(self.loss, Power) and self.loss.exponent < 1 and not self.discrete:
            return f"the loss {self.loss} is not convex, and rounding to the lattice needs convexity"
        if self.discrete and self.n != (self.sensitivity if self.rounding == "nodes" else 1):
            return f"on the integers n = {self.n} must be the sensitivity {self.sensitivity:g} (1 for bins)"
        shifts = [m.shift for m in self.multipliers]
        if len(set(shifts)) != len(shifts) or any(not 1 <= s <= self.n for s in shifts):
            return f"shifts must be distinct and in 1..{self.n}"
        for m in self.multipliers:
            if any(not 0 <= v <= m.weight for v in (*m.values, m.rest, 0.0)) or not np.isfinite(m.weight):
                return f"a multiplier of shift {m.shift} is not between 0 and its weight {m.weight:g}"
        return ""

    def _round(self, value: Fraction) -> float:
        """The largest float not above the bound, in units of the loss."""
        if isinstance(self.loss, CustomLoss):
            return enclosures.round_down(value)
        with ctx.workprec(enclosures.PRECISION):
            unit = enclosures.ball(self.sensitivity) ** enclosures.ball(self.loss.exponent)
            return max(0.0, enclosures.round_down(enclosures.ball(value) * unit))

    def exact_bound(self) -> Fraction:
        """t - delta sum lam for sensitivity 1 as an exact rational (a lower bound on it where L is irrational)."""
        last = max([self.n, *(max(m.end + self.n, -m.first) for m in self.multipliers)]) + 1  # J + 1
        ratio = _ceil(enclosures.exp_above(self.eps) * 2**RATIO)
        folded = self._weights(last) * (lattice_costs(self.loss, self.sensitivity, self.n, last, self.discrete, self.rounding)
                                        << RATIO)  # fmt: skip
        budget = 0
        for m in self.multipliers:
            mu = _integers(m.values)
            weight, rest = _integers([m.weight, m.rest])
            budget += weight
            stream = np.concatenate([mu, np.full(max(last + 1 - m.end, 0), rest, dtype=object)])
            self._fold(folded, m.first, stream << RATIO)
            self._fold(folded, m.first + m.shift, stream * -ratio)
        floor = folded // (self._weights(last) << RATIO)
        return Fraction(int(floor.min()), 2**SCALE) - Fraction(self.delta) * Fraction(int(budget), 2**SCALE)

    def _weights(self, last: int) -> np.ndarray:
        """m_a for a = 0..last: how many lattice points lie at distance a."""
        m = np.full(last + 1, 2, dtype=object)
        if self.rounding == "nodes":
            m[0] = 1
        return m

    def _fold(self, folded: np.ndarray, first: int, stream: np.ndarray) -> None:
        """Add `stream`, at the lattice points first, first + 1, ..., to `folded`, which is indexed by distance."""
        last = folded.size - 1
        shift = 1 if self.rounding == "bins" else 0  # bins: k and -1 - k are at the same distance
        below = min(max(-first, 0), stream.size)  # entries at negative lattice points
        if below:
            distance = -first - shift  # of the first entry, then falling
            part = stream[:below][::-1]
            low = distance - below + 1
            folded[low : low + below] += part
        rest = stream[below:]
        start = first + below
        if start <= last:
            count = min(rest.size, last + 1 - start)
            folded[start : start + count] += rest[:count]

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact."""
        return {
            "type": "additive",
            "eps": self.eps,
            "delta": self.delta,
            "sensitivity": self.sensitivity,
            "loss": self.loss.to_dict(),
            "n": self.n,
            "multipliers": [[m.shift, m.weight, m.first, list(m.values), m.rest] for m in self.multipliers],
            "bound": self.bound,
            "discrete": self.discrete,
            "rounding": self.rounding,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AdditiveCertificate:
        """The inverse of `to_dict`."""
        require.choice("rounding", data["rounding"], ("nodes", "bins"))
        multipliers = tuple(Multiplier(s, w, i, tuple(values), rest) for s, w, i, values, rest in data["multipliers"])
        return cls(
            data["eps"], data["delta"], data["sensitivity"], loss_from_dict(data["loss"]), data["n"], multipliers,
            data["bound"], data["discrete"], data["rounding"],
        )  # fmt: skip


def _ceil(number: Fraction) -> int:
    return -(-number.numerator // number.denominator)


def _integers(values: Sequence[float]) -> np.ndarray:
    """floor(v 2^SCALE), exactly: any numbers are a dual point, these are as good as the floats that they come from."""
    out = np.empty(len(values), dtype=object)
    for k, v in enumerate(values):
        top, bottom = v.as_integer_ratio()
        out[k] = (top << SCALE) // bottom
    return out


def lattice_costs(
    loss: Loss, sensitivity: float, n: int, last: int, discrete: bool = False, rounding: str = "nodes"
) -> np.ndarray:
    """floor(c_a 2^SCALE) for a = 0..last, sensitivity 1: costs on the lattice under which rounding is not dearer than L."""
    if isinstance(loss, CustomLoss):
        return _sampled_costs(loss, sensitivity, n, last, discrete, rounding)
    index = np.arange(last + 1, dtype=object)
    if loss.exponent == 1:
        return (index << SCALE) // n
    if loss.exponent == 2:
        sag = 0 if discrete or rounding == "bins" else 1
        return ((4 * index * index - sag) << SCALE) // (4 * n * n)
    with ctx.workprec(enclosures.PRECISION + 64):
        q, h = enclosures.ball(loss.exponent), 1 / arb(n)
        values = [(a * h) ** q if a else arb(0) for a in range(last + 2)]
        sags = [arb(0)] * (last + 2)
        if not discrete and rounding == "nodes":
            for a in range(last + 1):  # chord minus L on [ah, (a+1)h] is largest where L' is the chord's slope
                slope = (values[a + 1] - values[a]) / h
                peak = (slope / q) ** (1 / (q - 1))
                sags[a] = values[a] + slope * (peak - a * h) - peak**q
        high = [enclosures.upper(s) for s in sags]
        costs = [enclosures.lower(values[a]) - max(high[a], high[max(a - 1, 0)], Fraction(0)) for a in range(last + 1)]
    out = np.array([(c.numerator << SCALE) // c.denominator for c in costs], dtype=object)
    return np.minimum.accumulate(out[::-1])[::-1]  # nondecreasing, and not above: the broken line only sinks


def _sampled_costs(
    loss: CustomLoss, sensitivity: float, n: int, last: int, discrete: bool, rounding: str
) -> np.ndarray:
    """The same from values of a convex function at `PARTS` points per cell: sags by secants of neighbouring parts."""
    parts = 16
    if discrete or rounding == "bins":
        costs = loss(np.arange(last + 1) * (sensitivity / n))
    else:
        grid = np.arange((last + 2) * parts + 1) * (sensitivity / (n * parts))
        values = loss(grid)
        bend = np.diff(values)
        bend = np.concatenate([[-bend[0]], bend, [bend[-1]]])
        before, after = np.diff(bend)[:-1], np.diff(bend)[1:]
        total = before + after
        sag = np.where(total > 0, np.maximum(before, 0) * np.maximum(after, 0) / np.where(total > 0, total, 1.0), 0.0)
        cells = values[:-1].reshape(-1, parts)
        ends = values[::parts]
        chord = ends[:-1, None] + (ends[1:] - ends[:-1])[:, None] * (np.arange(parts) / parts)
        depth = (chord - cells).max(axis=1) + sag.reshape(-1, parts).max(axis=1)
        depth = np.maximum(depth, 0.0)
        costs = ends[: last + 1] - np.maximum(depth[: last + 1], np.concatenate([[0.0], depth[:last]]))
        costs = costs - 64 * np.finfo(float).eps * np.abs(ends[: last + 1])
    out = _integers([float(c) for c in costs])
    return np.minimum.accumulate(out[::-1])[::-1]


def geng_viswanath(
    eps: float, delta: float, sensitivity: float, loss: Loss, *, discrete: bool = False
) -> AdditiveCertificate:
    """The closed-form dual point behind Lemma 2 and Theorems 4 and 5 of the truncated-Laplacian paper.

    One shift (Delta itself), bins of one sensitivity. With T_j = P(X beyond j Delta), T_0 = 1/2, privacy on the sets
    {X > j Delta} says T_(j+1) >= (T_j - delta)/E; the loss is at least 2 sum_j T_j (L(j Delta) - L((j-1) Delta)). The bound
    takes the chain with equality as long as T_j stays positive, which is the paper's

        2 sum_(j < N) a b^j L(j Delta),   a = (delta + (E - 1)/2)/E,  b = 1/E,

    with the paper's N where it is whole, and what is left of the mass 1/2 placed at floor(N) otherwise. In the dual: the
    multiplier of the j-th link of the chain is y_j = b G_(j+1), with G_j = 2 sum_(k >= j) b^(k-j) (L(k) - L(k-1)) over the links
    in use, and mu_i = y_0 + ... + y_i.
    """
    e = float(enclosures.exp_above(eps))
    mass, links = 0.5, 0
    while (mass := (mass - delta) / e) > 0 and links < 10**6 and (delta > 0 or links < 40 / eps):
        links += 1
    unit = sensitivity if isinstance(loss, CustomLoss) else 1.0
    rises = np.diff(loss(np.arange(links + 1) * unit))
    growth, y = 0.0, np.zeros(links)
    for j in range(links, 0, -1):  # y_(j-1) = b G_j
        growth = 2 * float(rises[j - 1]) + growth / e
        y[j - 1] = growth / e
    mu = np.cumsum(y)
    weight = float(mu[-1]) if links else 0.0
    point = Multiplier(1, weight, 0, tuple(float(v) for v in mu), weight)
    return AdditiveCertificate.of(eps, delta, sensitivity, loss, 1, [point], discrete=discrete, rounding="bins")

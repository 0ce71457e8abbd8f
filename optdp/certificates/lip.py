"""The dual of prior-aware mechanism design: one number for each category proves a lower bound on the error.

Whatever the mechanism, its posteriors r average to the prior P, and all lie in the set Q that the promise allows. With
phi(r) = (sum (x_i - c) r_i)^2 for a sum, sum r_i^2 for a histogram, its error is V - E phi(r). So if

    phi(r) <= nu.r + sigma   for every r in Q,                                                   (*)

then E phi(r) <= nu.P + sigma and the error is at least V - nu.P - sigma: any nu proves something, and the solver's dual
prices prove the optimum. What is checked here, in whole numbers, is (*). The irrational e^eps is replaced by a
rational R >= e^eps, and by 1/R below, which makes Q larger and the bound safe.

- Promise "lip", Q = {P/R <= r <= min(R P, 1), sum r = 1}. *Sum*: phi(r) = max_t 2 t x.r - t^2 and, for a fixed t and any
  number l, (2 t x - nu).r <= U(t, l) = l + sum_i max over r_i in [lo_i, hi_i] of (2 t x_i - nu_i - l) r_i.
  U is convex in (t, l) together. So with knots (t_k, l_k), on [t_k, t_{k+1}] it is below the chord of its values at
  the knots, and sigma is the largest of chord - t^2.
- *Histogram, chord*: r_i^2 <= (lo_i + hi_i) r_i - lo_i hi_i, then the same U for the linear function that this leaves.
- *Histogram, vertices*: phi - nu.r is convex, so its maximum is at a vertex: all coordinates but one at a bound. Where
  categories with equal priors leave few essentially different vertices, all of them are visited.
- Promise "lip-lower": Q is a simplex, its vertices are one for each category, all visited.
- Promise "ldp": r_i = P_i s_i / sum P s with s_i in [1, R]. *Sum*: with c_i(t) = 2 t x_i - t^2 - nu_i, sigma is the largest of
  sum_i P_i max(c_i(t), R c_i(t)), bounded between knots by a parabola. *Histogram*: phi - nu.r is convex along rays, so
  vertices s_i in {1, R} again; or, for many categories, the chord relaxation, bounded between knots.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from optdp.exact import enclosures, require
from optdp.exact.check import Check
from optdp.problem.priors import Prior
from optdp.problem.privacy import LDP
from optdp.problem.tasks import Aggregate

#: Bounds of Q and duals are multiples of 2^-BITS.
BITS = 160
ONE = 1 << BITS

METHODS = ("knots", "chord", "vertices", "simplex")


@dataclass(frozen=True)
class LIPCertificate:
    """Dual prices `nu` (and the knots of the proof) for which V - nu.P - sigma >= `bound`.

    **Arguments:** `notion`: "lip", "lip-lower" or "ldp"; `method`: how (*) is proven, see the module; `nu`: a float for
    each category (empty for "simplex", whose dual is the affine function through the vertices); `knots`: pairs (t, l), for
    "knots" and for an LDP histogram's "chord"; `bound`: what is claimed.
    """

    eps: float
    prior: Prior
    loss: Aggregate
    notion: str
    method: str
    nu: tuple[float, ...]
    knots: tuple[tuple[float, float], ...]
    bound: float

    @classmethod
    def of(
        cls, eps: float, prior: Prior, loss: Aggregate, notion: str, method: str,
        nu: Sequence[float] = (), knots: Sequence[tuple[float, float]] = (),
    ) -> LIPCertificate:  # fmt: skip
        """The certificate with the largest float bound that these duals prove."""
        prices, points = tuple(float(n) for n in nu), tuple((float(t), float(v)) for t, v in knots)
        trial = cls(eps, prior, loss, notion, method, prices, points, 0.0)
        return cls(eps, prior, loss, notion, method, prices, points, enclosures.round_down(trial._proven()))

    def concerns(self, privacy: Any, mechanism: Any) -> bool:
        """Whether the proof is about this promise and this mechanism's problem."""
        notion = "ldp" if isinstance(privacy, LDP) else "lip-lower" if privacy.lower_only else "lip"
        return bool(self.eps == privacy.eps and self.notion == notion and self.prior == mechanism.prior)

    def check(self) -> Check:
        """Go through (*) again in whole numbers and compare."""
        proven = self._proven()
        return Check(
            "lower bound",
            Fraction(self.bound) <= proven,
            f"every {self.notion} mechanism with eps = {self.eps:g} and this prior has mean square error at least "
            f"{self.bound:.17g} (dual prices, {self.method}, exact rationals)",
        )

    def _proven(self) -> Fraction:
        """The exact lower bound that these duals prove (0 needs no proof)."""
        require.choice("method", self.method, METHODS)
        require.choice("notion", self.notion, ("lip", "lip-lower", "ldp"))
        if self.method == "simplex":
            return max(self._simplex(), Fraction(0))
        if self.method not in (("knots",) if self.loss.kind == "sum" else ("chord", "vertices")):
            raise ValueError(f"method = {self.method!r} is not allowed for a {self.loss.kind}")
        if not self.knots and self.method != "vertices":
            raise ValueError("knots must not be empty")
        if len(self.nu) != len(self.prior):
            raise ValueError(f"nu has {len(self.nu)} entries, which is not allowed: it needs one for each category")
        if self.notion == "lip":
            excess = {"knots": self._box_knots, "chord": self._box_chord, "vertices": self._box_vertices}[self.method]()
        elif self.notion == "ldp":
            excess = {"knots": self._cone_knots, "chord": self._cone_chord, "vertices": self._cone_vertices}[
                self.method
            ]()
        else:
            raise ValueError("method must be 'simplex' for notion 'lip-lower'")
        mean = sum((p * Fraction(n) for p, n in zip(self.prior.exact, self.nu, strict=True)), Fraction(0))
        return max(self._second_moment - mean - excess, Fraction(0))

    @cached_property
    def _values(self) -> list[Fraction]:
        """The values minus c, the float next to their prior mean."""
        exact = [Fraction(v) for v in self.loss.values or ()]
        centre = Fraction(float(sum((p * v for p, v in zip(self.prior.exact, exact, strict=True)), Fraction(0))))
        return [v - centre for v in exact]

    @property
    def _second_moment(self) -> Fraction:
        """V: the prior's mean of (x - c)^2, or 1."""
        if self.loss.values is None:
            return Fraction(1)
        return sum((p * v * v for p, v in zip(self.prior.exact, self._values, strict=True)), Fraction(0))

    def _simplex(self) -> Fraction:
        # Vertices v_j = P/E + (1 - 1/E) e_j with weights P_j: phi <= its affine interpolation, whose mean is E phi(v).
        # The error (1 - (1 - 1/E)^2) Var increases with 1/E: a rational R >= E makes it a lower bound.
        inverse = 1 / enclosures.exp_above(self.eps)
        if self.loss.values is None:
            spread = 1 - sum((p * p for p in self.prior.exact), Fraction(0))
        else:
            mean = sum((p * v for p, v in zip(self.prior.exact, self._values, strict=True)), Fraction(0))
            spread = self._second_moment - mean * mean
        return (2 * inverse - inverse * inverse) * spread

    # --- whole numbers for Q

    @cached_property
    def _box(self) -> tuple[np.ndarray, np.ndarray]:
        """lo and hi of Q in multiples of 2^-BITS, rounded outward, then tightened by sum r = 1."""
        ratio = enclosures.exp_above(self.eps)
        low = [math.floor(p / ratio * ONE) for p in self.prior.exact]
        high = [math.ceil(p * ratio * ONE) for p in self.prior.exact]
        below, above = sum(low), sum(high)
        lo = [max(a, ONE - (above - b)) for a, b in zip(low, high, strict=True)]
        hi = [min(b, ONE - (below - a)) for a, b in zip(low, high, strict=True)]
        return np.array(lo, dtype=object), np.array(hi, dtype=object)

    def _scaled(self, numbers: Sequence[Fraction]) -> tuple[np.ndarray, int]:
        """Numerators over a common power of two 2^b, and b."""
        bits = max(n.denominator.bit_length() - 1 for n in numbers)
        return np.array([n.numerator << (bits - n.denominator.bit_length() + 1) for n in numbers], dtype=object), bits

    # --- promise "lip"

    def _box_knots(self) -> Fraction:
        x, xb = self._scaled(self._values)
        nu, nb = self._scaled([Fraction(n) for n in self.nu])
        lo, hi = self._box
        ends = -self._furthest([-v for v in self._values]), self._furthest(self._values)  # t = x.r lies between
        first, last = self.knots[0], self.knots[-1]
        points = [(min(Fraction(first[0]), ends[0]), Fraction(first[1]))]
        points += [(Fraction(t), Fraction(v)) for t, v in self.knots]
        points.append((max(Fraction(last[0]), ends[1]), Fraction(last[1])))
        (t, tb), (level, lb) = self._scaled([p[0] for p in points]), self._scaled([p[1] for p in points])
        scale = max(xb + tb, nb, lb)
        nu, level = nu << (scale - nb), level << (scale - lb)
        tops = []
        for tk, lk in zip(t.tolist(), level.tolist(), strict=True):
            c = ((2 * tk * x) << (scale - xb - tb)) - nu - lk
            total = (lk << BITS) + int(np.sum(np.where(c > 0, hi, lo) * c))
            tops.append(Fraction(total, 1 << (scale + BITS)))
        worst = None
        for (a, _), (b, _), u, v in zip(points[:-1], points[1:], tops[:-1], tops[1:], strict=True):
            if a > b:
                raise ValueError("knots must be in increasing order")
            slope = (v - u) / (b - a) if b > a else Fraction(0)
            top = min(max(slope / 2, a), b)  # where chord - t^2 is largest
            here = u + slope * (top - a) - top * top
            worst = here if worst is None else max(worst, here)
        if worst is None:
            raise ValueError("knots must not be empty")
        return worst

    def _furthest(self, x: Sequence[Fraction]) -> Fraction:
        """The largest x.r over Q: fill up from lo to hi in order of x."""
        lo, hi = (bound.tolist() for bound in self._box)
        room, total = ONE - sum(lo), sum((v * a for v, a in zip(x, lo, strict=True)), Fraction(0))
        for i in sorted(range(len(x)), key=lambda i: x[i], reverse=True):
            part = min(room, hi[i] - lo[i])
            room, total = room - part, total + x[i] * part
        return total / ONE

    def _box_chord(self) -> Fraction:
        lo, hi = self._box
        nu = [Fraction(n) for n in self.nu]
        c = [Fraction(int(a + b), ONE) - n for a, b, n in zip(lo, hi, nu, strict=True)]
        level = Fraction(self.knots[0][1])
        total = level
        for a, b, slope in zip(lo.tolist(), hi.tolist(), c, strict=True):
            total += max(Fraction(a, ONE) * (slope - level), Fraction(b, ONE) * (slope - level))
            total -= Fraction(a * b, ONE * ONE)
        return total

    def _groups(self) -> list[list[int]]:
        """Positions with equal priors, the most probable first, each group in order of increasing nu."""
        by_weight: dict[int, list[int]] = {}
        for i, weight in enumerate(self.prior.weights):
            by_weight.setdefault(weight, []).append(i)
        return [sorted(by_weight[weight], key=lambda i: self.nu[i]) for weight in sorted(by_weight, reverse=True)]

    def _box_vertices(self) -> Fraction:
        """The largest phi - nu.r over vertices: visit every set of high categories that leaves 0 <= rest <= a width.

        Within a group of equal priors bounds are equal, so that the least nu are the ones to be high and the next one
        takes the rest.
        """
        lo, hi = self._box
        groups = self._groups()
        nu, nb = self._scaled([Fraction(n) for n in self.nu])
        largest = max((hi - lo).tolist())
        beyond = sum((hi - lo).tolist())
        # Values in multiples of 2^-(2 BITS + nb); for each group how many are high.
        rest = np.array([ONE - int(lo.sum())], dtype=object)
        value = np.array([(sum(a * a for a in lo.tolist()) << nb) - (int((lo * nu).sum()) << BITS)], dtype=object)
        counts: list[np.ndarray] = []
        for group in groups:
            g, n = group[0], len(group)
            width, square = int(hi[g] - lo[g]), int(hi[g] ** 2 - lo[g] ** 2)
            beyond -= n * width
            prices = np.concatenate(([0], np.cumsum(nu[group]))).astype(object)
            worth = [((k * square) << nb) - ((int(prices[k]) * width) << BITS) for k in range(n + 1)]
            parts = []
            for k in range(n + 1):
                left = rest - k * width
                parts.append(np.flatnonzero((left >= 0) & (left <= beyond + largest)))
            rest = np.concatenate([rest[part] - k * width for k, part in enumerate(parts)])
            value = np.concatenate([value[part] + worth[k] for k, part in enumerate(parts)])
            counts = [np.concatenate([count[part] for part in parts]) for count in counts]
            counts.append(np.concatenate([np.full(part.size, k) for k, part in enumerate(parts)]))
        best = None
        for group, count in zip(groups, counts, strict=True):
            g = group[0]
            fits = np.flatnonzero((rest <= hi[g] - lo[g]) & (count < len(group)))  # one of the group takes the rest
            if fits.size:
                left = rest[fits]
                gain = ((left * (left + 2 * int(lo[g]))) << nb) - ((left * nu[np.array(group)[count[fits]]]) << BITS)
                here = max((value[fits] + gain).tolist())
                best = here if best is None else max(best, here)
        if best is None:
            raise ValueError("no posterior keeps the promise: the certificate's data are inconsistent")
        return Fraction(best, 1 << (2 * BITS + nb))

    # --- promise "ldp"

    def _cone_knots(self) -> Fraction:
        """The largest of sum P_i max(c_i, R c_i) over t, c_i = 2 t x_i - t^2 - nu_i, bounded by a parabola between knots."""
        ratio = math.ceil(enclosures.exp_above(self.eps) * ONE)
        ends = min(self._values), max(self._values)
        cuts = [ends[0], *(Fraction(t) for t, _ in self.knots if ends[0] < Fraction(t) < ends[1]), ends[1]]
        if any(a > b for a, b in pairwise(cuts)):
            raise ValueError("knots must be in increasing order")
        x, xb = self._scaled(self._values)
        t, tb = self._scaled(cuts)
        nu, nb = self._scaled([Fraction(n) for n in self.nu])
        half = max(xb, tb, -(-nb // 2))  # values and knots in multiples of 2^-half, c and nu of 2^-(2 half)
        x, t, nu = x << (half - xb), t << (half - tb), nu << (2 * half - nb)
        weight = np.array(self.prior.weights, dtype=object)
        worst = Fraction(0)
        for a, b in pairwise(t.tolist()):
            at_a, at_b = 2 * a * x - a * a - nu, 2 * b * x - b * b - nu
            high = 4 * (a + b) * x - (a + b) ** 2 - 4 * nu > 0  # half way
            s = weight * np.where(high, np.full(high.shape, ratio, dtype=object), ONE)
            mass, moment, price = int(s.sum()), int((s * x).sum()), int((s * nu).sum())
            # The wrong choice costs (R - 1)|c|. c is concave in t: least at an end, largest at x or the end next to it.
            top = np.minimum(np.maximum(x, a), b)
            missed = np.where(high, -np.minimum(at_a, at_b), 2 * top * x - top * top - nu)
            slack = int((weight * (ratio - ONE) * np.maximum(missed, 0)).sum())
            best = min(max(Fraction(moment, mass), Fraction(a)), Fraction(b))
            worst = max(worst, 2 * best * moment - best * best * mass - price + slack)
        return worst / (self.prior.total * ONE << (2 * half))

    def _cone_chord(self) -> Fraction:
        """For tau in [tau_k, tau_{k+1}] = 1/sum(P s) and r in tau [P, R P], sum r = 1: see `_parabola`, with u = r / tau.

        r_i^2 <= (1 + R) tau P_i r_i - R tau^2 P_i^2 and any level l give phi - nu.r <= l + tau sum_i max over u_i in
        [P_i, R P_i] of c_i u_i - R tau^2 sum P^2 with c_i = (1 + R) tau P_i - nu_i - l, linear in tau.
        """
        ratio = Fraction(math.ceil(enclosures.exp_above(self.eps) * ONE), ONE)
        p, nu = self.prior.exact, [Fraction(n) for n in self.nu]
        square = sum((q * q for q in p), Fraction(0))
        cuts = [(1 / ratio, Fraction(self.knots[0][1]))]
        cuts += [(Fraction(t), Fraction(v)) for t, v in self.knots if 1 / ratio < Fraction(t) < 1]
        cuts.append((Fraction(1), cuts[-1][1]))
        worst = None
        for (a, level), (b, _) in pairwise(cuts):
            if a > b:
                raise ValueError("knots must be in increasing order")
            linear = curve = slack = Fraction(0)  # tau * linear + tau^2 * curve
            middle = (a + b) / 2
            for q, n in zip(p, nu, strict=True):
                c = (1 + ratio) * middle * q - n - level
                s = q * ratio if c > 0 else q
                linear, curve = linear - s * (n + level), curve + s * (1 + ratio) * q
                ca, cb = (1 + ratio) * a * q - n - level, (1 + ratio) * b * q - n - level
                slack += b * q * (ratio - 1) * (max(-min(ca, cb), Fraction(0)) if c > 0 else max(ca, cb, Fraction(0)))
            curve -= ratio * square
            tops = [a, b]
            if curve < 0 and a < -linear / (2 * curve) < b:
                tops.append(-linear / (2 * curve))
            here = level + slack + max(tau * linear + tau * tau * curve for tau in tops)
            worst = here if worst is None else max(worst, here)
        if worst is None:
            raise ValueError("knots must not be empty")
        return worst

    def _cone_vertices(self) -> Fraction:
        """phi - nu.r at every s in {1, R}^d, for groups of equal priors at every number of high ones."""
        ratio = math.ceil(enclosures.exp_above(self.eps) * ONE)
        weights, total = self.prior.weights, self.prior.total
        groups = self._groups()
        nu, nb = self._scaled([Fraction(n) for n in self.nu])
        weight = np.array(weights, dtype=object)
        # u_i = weight_i s_i in multiples of 2^-BITS: Z = sum u, squares = sum u^2, cost = sum nu u.
        size = np.array([total << BITS], dtype=object)
        square = np.array([sum(w * w for w in weights) << (2 * BITS)], dtype=object)
        cost = np.array([int((weight * nu).sum()) << BITS], dtype=object)
        for group in groups:
            w = weights[group[0]]
            count = np.arange(len(group) + 1).astype(object)
            prices = np.concatenate(([0], np.cumsum(nu[group])))
            size = np.add.outer(size, count * (w * (ratio - ONE))).ravel()
            square = np.add.outer(square, count * (w * w * (ratio * ratio - ONE * ONE))).ravel()
            cost = np.add.outer(cost, prices * (w * (ratio - ONE))).ravel()
        # Largest of square / size^2 - cost / (size 2^nb): a common denominator would be long, rounding up is enough.
        top = ((square << nb) - cost * size) << 64
        found = [-((-n) // (z * z)) for n, z in zip(top.tolist(), size.tolist(), strict=True)]
        return Fraction(max(found), 1 << (nb + 64))

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact."""
        return {
            "type": "lip",
            "eps": self.eps,
            "prior": self.prior.to_dict(),
            "loss": self.loss.to_dict(),
            "notion": self.notion,
            "method": self.method,
            "nu": list(self.nu),
            "knots": [list(knot) for knot in self.knots],
            "bound": self.bound,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LIPCertificate:
        """The inverse of `to_dict`."""
        return cls(
            data["eps"], Prior.from_dict(data["prior"]), Aggregate.from_dict(data["loss"]), data["notion"], data["method"],
            tuple(data["nu"]), tuple((t, v) for t, v in data["knots"]), data["bound"],
        )  # fmt: skip

"""The dual of prior-aware mechanism design: one number for each category proves a lower bound on the error.

Whatever the mechanism, its posteriors r average to the prior P, and all lie in the set Q that the guarantee allows. With
phi(r) = (sum (x_i - c) r_i)^2 for a sum, sum r_i^2 for a histogram, its error is V - E phi(r). So if

    phi(r) <= nu.r + sigma   for every r in Q,                                                   (*)

then E phi(r) <= nu.P + sigma and the error is at least V - nu.P - sigma: any nu proves something, and the solver's dual
prices prove the optimum. What is checked here, in integers, is (*). The irrational e^eps is replaced by a
rational R >= e^eps, and by 1/R below, which makes Q larger and the bound safe.

- LIP, Q = {P/R <= r <= min(R P, 1), sum r = 1}. *Sum*: phi(r) = max_t 2 t x.r - t^2 and, for a fixed t and any
  number l, (2 t x - nu).r <= U(t, l) = l + sum_i max over r_i in [lo_i, hi_i] of (2 t x_i - nu_i - l) r_i.
  U is convex in (t, l) together. So with knots (t_k, l_k), on [t_k, t_{k+1}] it is below the chord of its values at
  the knots, and sigma is the largest of chord - t^2.
- *Histogram, chord*: r_i^2 <= (lo_i + hi_i) r_i - lo_i hi_i, then the same U for the linear function that this leaves.
- *Histogram, vertices*: phi - nu.r is convex, so its maximum is at a vertex: all coordinates but one at a bound. Where
  categories with equal priors leave few essentially different vertices, all of them are visited.
- One-sided LIP: Q is a simplex with one vertex for each category. It contains the other sets, so that its bound holds for all.
- LDP: r_i = P_i s_i / sum P s with s_i in [1, R]. *Sum*: with c_i(t) = 2 t x_i - t^2 - nu_i, sigma is the largest of
  sum_i P_i max(c_i(t), R c_i(t)), bounded between knots by a parabola. *Histogram*: phi - nu.r is convex along rays, so
  vertices s_i in {1, R} again, by branch and bound; or, where too many matter, for each 1/sum P s chords as above,
  bounded between knots.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from optdp.certificates.base import Bound, Certificate
from optdp.exact import enclosures, require, work
from optdp.problem import LDP, LIP, Aggregate, Alphabet, BayesRisk, Prior, Problem

#: Bounds of Q are multiples of 2^-BITS.
BITS = 160
ONE = 1 << BITS

#: A proof visits at most so many sets of categories at a time, and STEPS in all (or knots times categories).
VERTICES = 2**18
STEPS = 2**23
#: Branch and bound looks at so many pairs of a set and a category that is not yet decided.
PAIRS = 2**24
#: So many pairs of a knot and a category are held at a time.
BLOCK = 2**16
#: Halvings in search of the best t of a set.
HALVINGS = 14

Method = Literal["knots", "chord", "vertices", "simplex"]


@dataclass(frozen=True)
class LIPCertificate(Certificate):
    """Dual prices and the knots of the proof that phi(r) <= nu.r + sigma.

    **Arguments:** `method`: how (*) is proven, see the module; `nu`: a float for each category (none for "simplex", whose dual
    is the affine function through the vertices); `knots`: pairs (t, l) with increasing t, for "knots" and "chord".

    **Proves** bounds on the `BayesRisk` of all mechanisms with LDP, or with LIP for the prior of the objective.
    """

    tag = "lip"
    method: Method
    nu: tuple[float, ...] = ()
    knots: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        require.choice("method", self.method, get_args(Method))
        nu = tuple(require.real("nu", n) for n in self.nu)
        knots = tuple((require.real("knots", t), require.real("knots", v)) for t, v in self.knots)
        if any(a > b for (a, _), (b, _) in pairwise(knots)):
            raise ValueError("knots are not allowed: they must be in increasing order")
        if bool(nu) == (self.method == "simplex") or bool(knots) != (self.method in ("knots", "chord")):
            raise ValueError(f"nu and knots are not allowed for the method {self.method!r}: it needs others")
        object.__setattr__(self, "nu", nu)
        object.__setattr__(self, "knots", knots)

    def bound(self, problem: Problem) -> Bound:
        return Bound(enclosures.round_down(self.proven(problem)), f"dual prices, {self.method}, exact rationals")

    def proven(self, problem: Problem) -> Fraction:
        """The exact lower bound that these multipliers prove, not yet rounded. **Raises** `Refusal`."""
        privacy, objective, domain = problem.privacy, problem.objective, problem.domain
        if not isinstance(objective, BayesRisk):
            self._refuse("it is for the mean square error of the best estimate")
        if not isinstance(privacy, LDP | LIP) or not enclosures.at_most(privacy.eps, require.MAX_EPS):
            self._refuse("it is for local differential or information privacy with eps at most 30")
        prior, task = objective.prior, objective.task
        if not isinstance(domain, Alphabet) or domain.symbols != prior.categories:
            self._refuse("the domain must be the alphabet of the prior's categories")
        if isinstance(privacy, LIP) and privacy.prior != prior:
            self._refuse("the prior of the guarantee must be the prior of the objective")
        own, size = work.words([prior.total]), work.words(task.values or ())
        work.count(len(prior) * (3 * work.rational(own + size) + 2 * work.rational(own + 2 * size + 3)))
        proof = _Proof(self, prior, task, enclosures.exp_above(privacy.eps, BITS))
        if self.method == "simplex":
            return max(proof.simplex(), Fraction(0))
        if isinstance(privacy, LIP) and privacy.lower_only:
            self._refuse("for one-sided LIP the method must be 'simplex'")
        if self.method not in (("knots",) if task.kind == "sum" else ("chord", "vertices")):
            self._refuse(f"the method {self.method!r} is not for a {task.kind}")
        if len(self.nu) != len(prior):
            self._refuse(f"there are {len(self.nu)} prices for {len(prior)} categories")
        size = work.words([*(task.values or ()), 1.0]) + work.words([*(t for t, _ in self.knots), 1.0])
        long = 2 * max(size, work.words([*self.nu, *(v for _, v in self.knots)]))
        each = 3 + 3 * work.product(long, 3) + 2 * work.product(size, size)
        work.count((len(self.knots) + 2) * (len(prior) * each + 8 * work.rational(long + 3)))
        if len(self.knots) * len(prior) > STEPS:
            self._refuse(f"{len(self.knots)} knots and {len(prior)} categories are more than {STEPS} steps")
        excess = getattr(proof, f"{'cone' if isinstance(privacy, LDP) else 'box'}_{self.method}")()
        proven: Fraction = proof.second_moment - proof._mean(Fraction(n) for n in self.nu) - excess
        return max(proven, Fraction(0))

    def _visits(self, vertices: int, steps: int) -> None:
        """Refuse a proof that would take too long, before it does."""
        work.count(vertices * (4 + 4 * work.product(6 + work.words(self.nu), 3 + work.words(self.nu))))
        if vertices > VERTICES or steps > STEPS:
            self._refuse(f"there are more than {VERTICES} vertices to visit")


@dataclass(frozen=True)
class _Proof:
    """The multipliers of a certificate, put to a problem: sigma by each method, with a rational `ratio` >= e^eps."""

    multipliers: LIPCertificate
    prior: Prior
    task: Aggregate
    ratio: Fraction

    @cached_property
    def values(self) -> list[Fraction]:
        """The values minus c, the float next to their prior mean."""
        exact = [Fraction(v) for v in self.task.values or ()]
        centre = Fraction(float(self._mean(exact)))
        return [v - centre for v in exact]

    def _mean(self, of: Iterable[Fraction]) -> Fraction:
        return sum((w * v for w, v in zip(self.prior.weights, of, strict=True)), Fraction(0)) / self.prior.total

    @cached_property
    def second_moment(self) -> Fraction:
        """V: the prior's mean of (x - c)^2, or 1."""
        return Fraction(1) if self.task.values is None else self._mean(v * v for v in self.values)

    @cached_property
    def nu(self) -> tuple[np.ndarray, int]:
        """The prices, scaled."""
        return _scaled([Fraction(n) for n in self.multipliers.nu])

    def simplex(self) -> Fraction:
        """The bound for one-sided LIP."""
        # Vertices v_j = P/E + (1 - 1/E) e_j with weights P_j: phi <= its affine interpolation, whose mean is E phi(v).
        # The error (1 - (1 - 1/E)^2) Var increases with 1/E: a rational R >= E makes it a lower bound.
        inverse = 1 / self.ratio
        square = self._mean(self.prior.exact) if self.task.values is None else self._mean(self.values) ** 2
        return (2 * inverse - inverse * inverse) * (self.second_moment - square)

    @cached_property
    def box(self) -> tuple[np.ndarray, np.ndarray]:
        """lo and hi of Q in multiples of 2^-BITS, rounded outward, then tightened by sum r = 1."""
        (n, d), total = self.ratio.as_integer_ratio(), self.prior.total
        low = [w * d * ONE // (n * total) for w in self.prior.weights]
        high = [-(-w * n * ONE // (d * total)) for w in self.prior.weights]
        below, above = sum(low), sum(high)
        lo = [max(a, ONE - (above - b)) for a, b in zip(low, high, strict=True)]
        hi = [min(b, ONE - (below - a)) for a, b in zip(low, high, strict=True)]
        return np.array(lo, dtype=object), np.array(hi, dtype=object)

    def box_knots(self) -> Fraction:
        """The largest of (chord of U between knots) - t^2."""
        (x, xb), (nu, nb), (lo, hi) = _scaled(self.values), self.nu, self.box
        first, last = (
            Fraction(end, ONE << xb) for end in (-self._furthest(-x), self._furthest(x))
        )  # t = x.r lies between
        points = [(Fraction(t), Fraction(v)) for t, v in self.multipliers.knots]
        points = [(min(points[0][0], first), points[0][1]), *points, (max(points[-1][0], last), points[-1][1])]
        (t, tb), (level, lb) = _scaled([p[0] for p in points]), _scaled([p[1] for p in points])
        scale = max(xb + tb, nb, lb, 2 * tb - BITS)
        nu, level, square = nu << (scale - nb), level << (scale - lb), scale + BITS - 2 * tb
        tops = []  # like all that follows in multiples of 2^-(scale + BITS), t in those of 2^-tb
        for part in np.array_split(np.arange(t.size), t.size * x.size // BLOCK + 1):
            c = (np.multiply.outer(2 * t[part], x) << (scale - xb - tb)) - nu - level[part, None]
            tops += ((level[part] << BITS) + np.sum(np.where(c > 0, hi, lo) * c, axis=1)).tolist()
        found = list(zip(t.tolist(), tops, strict=True))
        worst, unit = max(u - (a * a << square) for a, u in found), 1
        for (a, u), (b, v) in pairwise(found):
            gap, rise = b - a, v - u
            if 2 * a * gap << square < rise < 2 * b * gap << square:  # chord - t^2 is largest inside, at half the slope
                below = 4 * gap * gap << square
                above = u * below - (4 * a * gap * rise << square) + rise * rise
                worst, unit = (above, below) if above * unit > worst * below else (worst, unit)
        return Fraction(worst, unit << (scale + BITS))

    def _furthest(self, x: np.ndarray) -> int:
        """The largest x.r over Q, times ONE: fill up from lo to hi in order of x."""
        lo, hi = (bound.tolist() for bound in self.box)
        room, total = ONE - sum(lo), int(np.sum(x * self.box[0]))
        for i in np.argsort(-x, kind="stable").tolist():
            part = min(room, hi[i] - lo[i])
            room, total = room - part, total + x[i] * part
        return total

    def box_chord(self) -> Fraction:
        """U for the linear function that the chords of r_i^2 leave."""
        level = Fraction(self.multipliers.knots[0][1])
        total = level
        for a, b, n in zip(*(bound.tolist() for bound in self.box), self.multipliers.nu, strict=True):
            slope = Fraction(a + b, ONE) - Fraction(n) - level
            total += max(a * slope, b * slope) / ONE - Fraction(a * b, ONE * ONE)
        return total

    def _groups(self) -> list[list[int]]:
        """Positions with equal priors, the most probable first, each group in order of increasing nu."""
        by_weight: dict[int, list[int]] = {}
        for i, weight in enumerate(self.prior.weights):
            by_weight.setdefault(weight, []).append(i)
        price = self.multipliers.nu
        return [sorted(by_weight[weight], key=lambda i: price[i]) for weight in sorted(by_weight, reverse=True)]

    def box_vertices(self) -> Fraction:
        """The largest phi - nu.r over vertices: visit every set of high categories that leaves 0 <= rest <= a width.

        Within a group of equal priors bounds are equal, so that the least nu are the ones to be high and the next one
        takes the rest.
        """
        (nu, nb), (lo, hi), groups = self.nu, self.box, self._groups()
        largest, beyond, steps = max((hi - lo).tolist()), sum((hi - lo).tolist()), 0
        # Values in multiples of 2^-(2 BITS + nb); `trail`: for each group, which set each one grew from by how many.
        rest = np.array([ONE - int(lo.sum())], dtype=object)
        value = np.array([(sum(a * a for a in lo.tolist()) << nb) - (int((lo * nu).sum()) << BITS)], dtype=object)
        trail: list[tuple[np.ndarray, np.ndarray]] = []
        for group in groups:
            g, n = group[0], len(group)
            width, square = int(hi[g] - lo[g]), int(hi[g] ** 2 - lo[g] ** 2)
            beyond -= n * width
            # As many of the group as leave 0 <= rest <= what the later ones can take and a width.
            most = np.minimum(rest // max(width, 1), n if width else 0)
            fewest = np.maximum(-((beyond + largest - rest) // max(width, 1)), 0)
            ways = np.maximum(most - fewest + 1, 0).astype(np.int64)
            steps += int(ways.sum()) + n
            self.multipliers._visits(int(ways.sum()), steps)
            parent = np.repeat(np.arange(rest.size), ways)
            count = np.arange(parent.size) - np.repeat(np.cumsum(ways) - ways, ways) + fewest[parent].astype(np.int64)
            prices = np.concatenate(([0], np.cumsum(nu[group]))).astype(object)
            worth = ((np.arange(n + 1).astype(object) * square) << nb) - ((prices * width) << BITS)
            rest, value = rest[parent] - count.astype(object) * width, value[parent] + worth[count]
            trail.append((parent, count))
        found, at = [], np.arange(rest.size)
        for group, (parent, count) in zip(reversed(groups), reversed(trail), strict=True):
            g, high = group[0], count[at]
            fits = np.flatnonzero((rest <= hi[g] - lo[g]) & (high < len(group)))  # one of the group takes the rest
            if fits.size:
                left = rest[fits]
                gain = ((left * (left + 2 * int(lo[g]))) << nb) - ((left * nu[np.array(group)[high[fits]]]) << BITS)
                found.append(max((value[fits] + gain).tolist()))
            at = parent[at]
        return Fraction(max(found), 1 << (2 * BITS + nb))

    @cached_property
    def factor(self) -> int:
        """The ratio in multiples of 2^-BITS, rounded up."""
        return math.ceil(self.ratio * ONE)

    @cached_property
    def weight(self) -> np.ndarray:
        return np.array(self.prior.weights, dtype=object)

    def _chosen(self, high: np.ndarray) -> np.ndarray:
        """P s in integers, where s is R for the `high` categories and 1 for the others."""
        return self.weight * np.where(high, np.full(high.shape, self.factor, dtype=object), ONE)

    def cone_knots(self) -> Fraction:
        """The largest of sum P_i max(c_i, R c_i) over t, c_i = 2 t x_i - t^2 - nu_i, bounded by a parabola between knots."""
        ratio, ends = self.factor, (min(self.values), max(self.values))
        cuts = [ends[0], *(Fraction(t) for t, _ in self.multipliers.knots if ends[0] < Fraction(t) < ends[1]), ends[1]]
        (x, xb), (t, tb), (nu, nb) = _scaled(self.values), _scaled(cuts), self.nu
        half = max(xb, tb, -(-nb // 2))  # values and knots in multiples of 2^-half, c and nu of 2^-(2 half)
        x, t, nu = x << (half - xb), t << (half - tb), nu << (2 * half - nb)
        weight, worst = self.weight, Fraction(0)
        for a, b in pairwise(t.tolist()):
            at_a, at_b = 2 * a * x - a * a - nu, 2 * b * x - b * b - nu
            high = 4 * (a + b) * x - (a + b) ** 2 - 4 * nu > 0  # half way
            s = self._chosen(high)
            mass, moment, price = int(s.sum()), int((s * x).sum()), int((s * nu).sum())
            # The wrong choice costs (R - 1)|c|. c is concave in t: least at an end, largest at x or the end next to it.
            top = np.minimum(np.maximum(x, a), b)
            missed = np.where(high, -np.minimum(at_a, at_b), 2 * top * x - top * top - nu)
            slack = int((weight * (ratio - ONE) * np.maximum(missed, 0)).sum())
            best = min(max(Fraction(moment, mass), Fraction(a)), Fraction(b))
            worst = max(worst, 2 * best * moment - best * best * mass - price + slack)
        return worst / (self.prior.total * ONE << (2 * half))

    def cone_chord(self) -> Fraction:
        """For tau in [tau_k, tau_{k+1}] = 1/sum(P s): a posterior lies between lo_i = tau P_i and hi_i = R tau P_i, and what the
        others leave, 1 - R tau (1 - P_i) <= r_i <= 1 - tau (1 - P_i). Chords of r_i^2 and any level l give

            phi - nu.r <= l + sum_i max over q in {lo_i, hi_i} of q^2 - (nu_i + l) q.

        Of the two bounds on either side one is taken for the whole interval: then they are linear in tau, the right side is
        convex in it, and its maximum is at an end.
        """
        ratio, knots, total = self.factor, self.multipliers.knots, self.prior.total
        inside = [(Fraction(t), Fraction(v)) for t, v in knots if ratio * Fraction(t) > ONE and t < 1]
        cuts = [(Fraction(ONE * ONE // ratio, ONE), Fraction(knots[0][1])), *inside]
        cuts.append((Fraction(1), cuts[-1][1]))
        (level, lb), (nu, nb) = _scaled([c[1] for c in cuts]), self.nu
        bits = max(nb, lb)
        own = work.words([total]) + work.words([t for t, _ in knots])
        work.count(
            2 * len(cuts) * len(self.prior) * (3 + 4 * work.product(own + 3, own) + 6 * work.product(6 + bits // 64, 6))
        )
        weight, found = self.weight, list[Fraction]()
        others = total - weight
        for (a, _), (b, _), lk in zip(cuts[:-1], cuts[1:], level.tolist()[:-1], strict=True):
            price = (nu << (bits - nb)) + (lk << (bits - lb))
            (na, da), (n, d) = (a.numerator, a.denominator), (b.numerator, b.denominator)
            wide = na * (weight * ratio + others * ONE) >= da * total * ONE
            narrow = n * (weight * ONE + others * ratio) <= d * total * ONE
            for top, unit in ((na, da), (n, d)):
                # In multiples of 2^-BITS, rounded outward: between the ends the line through them is outside too.
                low = np.where(narrow, unit * total * ONE - top * others * ratio, top * weight * ONE) // (unit * total)
                high = -(
                    -np.where(wide, unit * total * ONE - top * others * ONE, top * weight * ratio) // (unit * total)
                )
                worth = np.maximum((low << bits) * low - price * low * ONE, (high << bits) * high - price * high * ONE)
                found.append(Fraction(lk, 1 << lb) + Fraction(int(worth.sum()), ONE * ONE << bits))
        return max(found)

    def cone_vertices(self) -> Fraction:
        """The largest phi - nu.r over s in {1, R}^d, or 0 if it is below: branch and bound over the sets of high categories.

        With v = nu + sigma, Z = sum P s and C = sum v P s, a set is above sigma if Q = sum (P s)^2 - Z C > 0.
        """
        groups, (nu, nb), weight = self._groups(), self.nu, self.weight
        nb, v = nb + BITS + nb % 2, nu << BITS + nb % 2
        above, sigma, steps = self.factor - ONE, 0, 0
        later = np.concatenate([np.array(group) for group in groups])
        # Z, sum (P s)^2, C of each set, in units of 1 / total and of 2^-BITS, 2^-(2 BITS), 2^-(BITS + nb).
        size = np.array([self.prior.total << BITS], dtype=object)
        square = np.array([sum(w * w for w in self.prior.weights) << (2 * BITS)], dtype=object)
        cost = np.array([int((weight * v).sum()) << BITS], dtype=object)
        for group in groups:
            later, count = later[len(group) :], np.arange(len(group) + 1).astype(object)
            pairs = size.size * count.size * (later.size + 1)
            work.count(4 * pairs * work.product(2 * BITS / 64, nb / 64))
            steps += pairs
            self.multipliers._visits(size.size * count.size, STEPS * steps // PAIRS)
            w, prices = self.prior.weights[group[0]], np.concatenate(([0], np.cumsum(v[group])))
            size = np.add.outer(size, count * (w * above)).ravel()
            square = np.add.outer(square, count * (w * w * above * (self.factor + ONE))).ravel()
            cost = np.add.outer(cost, prices * (w * above)).ravel()
            rise = max(
                -(-q // (z * z)) for q, z in zip(((square << nb) - size * cost).tolist(), size.tolist(), strict=True)
            )
            if rise > 0:
                v, cost, sigma = v + rise, cost + rise * size, sigma + rise
            left = self._not_closed(later, v, nb, size, square, cost)
            size, square, cost = size[left], square[left], cost[left]
            if not size.size:
                break
        return Fraction(sigma, 1 << nb)

    def _not_closed(
        self, later: np.ndarray, v: np.ndarray, nb: int, size: np.ndarray, square: np.ndarray, cost: np.ndarray
    ) -> np.ndarray:
        """Which sets may be above sigma when some of `later` are made high too (see `cone_vertices` for units).

        To make j high adds a_j (b_j - C - v_j Z) to Q, where a = (R - 1) P and b_j = (R + 1) P_j - a_j v_j. Two of them together
        take a_i a_j (v_i + v_j) away, at least 2 u_i u_j with u_i = a_i y_i, y_i^2 <= v_i (0 if v_i < 0); unless v_i + v_j < 0,
        and then they add as much, half of which is counted in either b. So whichever set A is made high, and whatever t is,

            Q grows by at most sum over A of (what j adds) <= sum max(what j adds, 0),   and by at most
            sum over A of (what j adds + u_j^2) - (sum over A of u)^2 <= t^2 + sum max(what j adds + u_j^2 - 2 t u_j, 0).

        Floats choose t and which sets are tried; what closes one is proven in integers.
        """
        v, weight = v[later], self.weight[later]
        a = weight * (self.factor - ONE)
        b = (weight * (self.factor + ONE) << nb) - a * v
        odd = np.flatnonzero(v < -v.min(initial=0))
        for j in odd.tolist():
            b[j] += -(-sum(a[i] * max(-v[i] - v[j], 0) for i in odd.tolist() if i != j) // 2)
        u = a * np.array([math.isqrt(max(n, 0)) for n in v.tolist()], dtype=object)
        start, unit = (square << nb) - size * cost, self.prior.total << BITS
        begun, uf = _floats(start, unit * unit << nb), _floats(u, unit << nb // 2)
        below, above = np.zeros(size.size), np.full(size.size, uf.sum())
        with np.errstate(all="ignore"):  # what floats do not hold stays open
            adds = np.subtract.outer(-_floats(cost, unit << nb), -_floats(b, unit << nb))
            adds = _floats(a, unit) * (adds - np.outer(_floats(size, unit), _floats(v, 1 << nb)))
            for _ in range(HALVINGS):  # convex in t
                t = (below + above) / 2
                rises = t < (adds + uf**2 > 2 * t[:, None] * uf) @ uf
                below, above = np.where(rises, t, below), np.where(rises, above, t)
            simple = begun + np.maximum(adds, 0.0).sum(axis=1) < 0
            other = ~simple & (begun + t**2 + np.maximum(adds + uf**2 - 2 * t[:, None] * uf, 0.0).sum(axis=1) < 0)
        left = np.ones(size.size, dtype=bool)
        for tried, near, own in ((simple, np.zeros(size.size), 0 * u), (other, t, u)):
            at = np.flatnonzero(tried)
            t_at = np.array([int(math.ldexp(x, 60)) * unit << (nb // 2 - 60) for x in near[at].tolist()], dtype=object)
            more = a * (b - cost[at][:, None] - np.multiply.outer(size[at], v)) + own * (own - 2 * t_at[:, None])
            left[at] = start[at] + t_at * t_at + np.maximum(more, 0).sum(axis=1) > 0
        return left


def _floats(numbers: np.ndarray, unit: int) -> np.ndarray:
    """About numbers / unit; infinite or no number where floats end."""
    try:
        return np.array([n / unit for n in numbers.tolist()])
    except OverflowError:
        return np.full(numbers.shape, np.nan)


def _scaled(numbers: Sequence[Fraction]) -> tuple[np.ndarray, int]:
    """Numerators over a common power of two 2^b, and b."""
    bits = max(n.denominator.bit_length() - 1 for n in numbers)
    return np.array([n.numerator << (bits - n.denominator.bit_length() + 1) for n in numbers], dtype=object), bits

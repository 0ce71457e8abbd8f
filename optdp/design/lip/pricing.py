"""The pricing problems of `optdp.design.lip.posteriors`: maximise phi(r) - nu.r over the posteriors that a guarantee allows.

In floats: what is found here is proven by `optdp.certificates.lip`, which does not use it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

#: A column enters if its reduced cost is above this (in units of the prior variance).
ENTER = 1e-12

#: Largest number of sets of high categories (up to the order among equal priors) that are visited one by one; and of those
#: that are begun. The certificate visits some more.
VERTICES, BEGUN = 2**17, 2**22
#: Branch and bound ends after so many pairs of a set and a category that is not yet decided (the certificate's is allowed
#: more); halvings in search of its t.
EFFORT, HALVINGS = 2**23, 14
#: By how much the best set may be missed at first, and how that goes down.
COARSE, FINER = 0.1, 16.0
#: So many columns at most are taken from a pricing problem for histograms.
MOST = 400
#: The relaxed pricing problem is bounded no closer than this: the relaxation itself leaves more.
RELAXED = 1e-5


def box(p: np.ndarray, ratio: float) -> tuple[np.ndarray, np.ndarray]:
    """lo and hi for posteriors with p/ratio <= r <= ratio p and sum 1: each is attained."""
    low, high = p / ratio, np.minimum(ratio * p, 1.0)
    return np.maximum(low, 1 - (high.sum() - high)), np.minimum(high, 1 - (low.sum() - low))


def box_vertices(p: np.ndarray, ratio: float) -> np.ndarray:
    """All extreme points of {lo <= r <= hi, sum r = 1}: all coordinates but one at a bound."""
    lo, hi = box(p, ratio)
    d, width = p.size, hi - lo
    masks = (np.arange(2**d)[:, None] >> np.arange(d)) & 1
    rest = (1 - lo.sum()) - masks @ width
    found = []
    for f in range(d):
        fits = (masks[:, f] == 0) & (rest >= 0) & (rest <= width[f])
        rows = lo + masks[fits] * width
        rows[:, f] += rest[fits]
        found.append(rows)
    return np.vstack(found)


def cone_vertices(p: np.ndarray, ratio: float) -> np.ndarray:
    """All extreme rays of {r_i / p_i <= ratio r_j / p_j}, normalised: likelihoods 1 or ratio (Kairouz, Oh, Viswanath)."""
    masks = (np.arange(1, 2**p.size - 1)[:, None] >> np.arange(p.size)) & 1
    joint = p * (1 + (ratio - 1) * masks)
    return joint / joint.sum(axis=1, keepdims=True)


def _distinct(
    posteriors: np.ndarray, gains: np.ndarray, reduced: np.ndarray, p: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Only the rows that improve, each once."""
    keep = np.flatnonzero(reduced > ENTER)
    if keep.size > 1:
        rows = np.round(posteriors[keep] / p, 9)
        order = np.lexsort(rows.T[::-1])
        new = (rows[order[1:]] != rows[order[:-1]]).any(axis=1)
        keep = keep[order[np.append(True, new)]]
    return posteriors[keep], gains[keep], reduced[keep]


@dataclass(frozen=True)
class Priced:
    """The answer of a pricing problem: good columns, their reduced costs, and the largest phi - nu.r there is (estimated)."""

    posteriors: np.ndarray
    gains: np.ndarray
    reduced: np.ndarray
    excess: float
    knots: np.ndarray


class Pricer(ABC):
    """A set Q of posteriors and a gain phi."""

    probabilities: np.ndarray
    ratio: float

    @abstractmethod
    def gain(self, posteriors: np.ndarray) -> np.ndarray:
        """phi of each row."""

    @abstractmethod
    def price(self, nu: np.ndarray, tol: float) -> Priced:
        """Maximise phi(r) - nu.r over Q, to within tol."""


@dataclass(frozen=True)
class Sum(Pricer):
    """A sum: phi(r) = (x.r)^2 with `values` x of prior mean about 0 and prior variance about 1."""

    probabilities: np.ndarray
    values: np.ndarray
    ratio: float

    def gain(self, posteriors: np.ndarray) -> np.ndarray:
        return np.square(posteriors @ self.values)

    def merged(self, groups: np.ndarray) -> Sum:
        """The problem in which the categories of each group are one, with their mean value."""
        p = np.bincount(groups, self.probabilities)
        return type(self)(p, np.bincount(groups, self.probabilities * self.values) / p, self.ratio)


@dataclass(frozen=True)
class BoxSum(Sum):
    """LIP. h(t) = max over Q of (2 t x - nu).r is convex and piecewise linear; the answer is max h(t) - t^2.

    For one t the maximum is a fractional knapsack: fill up from lo to hi in order of 2 t x_i - nu_i. Between two
    values of t, h lies between its tangents and its chord: where the chord leaves room, a knapsack at the point where
    the tangents meet either closes the interval or splits it.
    """

    @cached_property
    def _bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Those that the guarantee asks, not narrower as `box` has them: with what the others leave in floats, column generation
        ends further from the optimum at large eps.
        """
        return self.probabilities / self.ratio, np.minimum(self.ratio * self.probabilities, 1.0)

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """The smallest and largest x.r over Q."""
        _, means, _, _ = self._knapsack(np.zeros(self.values.size), np.array([-1.0, 1.0]))
        return float(means[0]), float(means[1])

    def _knapsack(self, nu: np.ndarray, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(h, x.r, the price at which the knapsack is full, r) for each t."""
        lo, hi = self._bounds
        slope = 2 * t[:, None] * self.values - nu
        order = np.argsort(-slope, axis=1, kind="stable")
        width = (hi - lo)[order]
        before = np.cumsum(width, axis=1) - width
        room = 1 - lo.sum()
        part = np.clip(room - before, 0.0, width)
        posteriors = np.empty_like(slope)
        np.put_along_axis(posteriors, order, part, axis=1)
        posteriors += lo
        last = np.maximum(np.sum(before < room, axis=1) - 1, 0)
        level = np.take_along_axis(slope, np.take_along_axis(order, last[:, None], 1), 1)[:, 0]
        return np.einsum("ki,ki->k", slope, posteriors), posteriors @ self.values, level, posteriors

    def price(self, nu: np.ndarray, tol: float) -> Priced:
        t = np.linspace(*self._ends, 33)
        h, means, level, rows = self._knapsack(nu, t)
        for _ in range(200):
            reduced = h - 2 * t * means + means**2  # phi - nu.r at the posteriors found
            gap = np.diff(t)
            chord = np.diff(h) / gap
            top = np.clip(chord / 2, t[:-1], t[1:])
            upper = h[:-1] + chord * (top - t[:-1]) - top**2
            wide = np.flatnonzero(upper > max(float(reduced.max()), 0.0) + tol)
            # Tangents (slopes 2 x.r) meet at `meet`; where they are the chord, h is linear and nothing is left.
            bend = 2 * (means[wide] - means[wide + 1])
            with np.errstate(divide="ignore", invalid="ignore"):
                meet = (h[wide + 1] - 2 * means[wide + 1] * t[wide + 1] - h[wide] + 2 * means[wide] * t[wide]) / bend
            inside = (meet > t[wide] + 1e-13 * gap[wide]) & (meet < t[wide + 1] - 1e-13 * gap[wide]) & (bend < 0)
            new = np.unique(np.concatenate([meet[inside], np.clip(means[wide], *self._ends)]))
            new = new[t[np.minimum(np.searchsorted(t, new), t.size - 1)] != new]  # not there yet
            if not inside.any() or not new.size:
                break
            more = self._knapsack(nu, new)
            order = np.argsort(np.concatenate([t, new]), kind="stable")
            t = np.concatenate([t, new])[order]
            pairs = zip((h, means, level, rows), more, strict=True)
            h, means, level, rows = (np.concatenate(pair)[order] for pair in pairs)
        excess = max(float(upper.max()), float(reduced.max()))
        return Priced(*_distinct(rows, means**2, reduced, self.probabilities), excess, np.column_stack([t, level]))


@dataclass(frozen=True)
class ConeSum(Sum):
    """LDP. With c_i(t) = 2 t x_i - t^2 - nu_i, input i is favoured iff c_i(t) > 0: at most 2 d changes as t runs."""

    def price(self, nu: np.ndarray, tol: float) -> Priced:
        # The cone's problem only tells whether phi - nu.r > 0 somewhere; raising nu until it is not gives the maximum
        # of the quotient (Dinkelbach).
        excess, found = 0.0, []
        for _ in range(50):
            rows, gains, cuts = self._favoured(nu + excess)
            reduced = gains - rows @ nu
            found.append((rows, gains, reduced))
            if float(reduced.max()) <= excess + 1e-14 * (1 + abs(excess)):
                break
            excess = float(reduced.max())
        every, gained, lowered = (np.concatenate(parts) for parts in zip(*found, strict=True))
        columns = _distinct(every, gained, lowered, self.probabilities)
        return Priced(*columns, excess, np.column_stack([cuts, np.zeros(cuts.size)]))

    def _favoured(self, nu: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(posteriors, their gains, the t between which each is the answer)."""
        p, x = self.probabilities, self.values
        spread = np.sqrt(np.maximum(x**2 - nu, 0.0))
        low, high = x.min(), x.max()
        cuts = np.unique(np.clip(np.concatenate([x - spread, x + spread, [low, high]]), low, high))
        middle = (cuts[:-1] + cuts[1:]) / 2
        joint = p * np.where(2 * middle[:, None] * x - middle[:, None] ** 2 - nu > 0, self.ratio, 1.0)
        rows = joint / joint.sum(axis=1, keepdims=True)
        return rows, self.gain(rows), cuts


def _by_weight(weights: tuple[int, ...]) -> list[list[int]]:
    """Positions with equal priors, the most probable first."""
    groups: dict[int, list[int]] = {}
    for i, weight in enumerate(weights):
        groups.setdefault(weight, []).append(i)
    return [groups[weight] for weight in sorted(groups, reverse=True)]


def count_sets(groups: list[list[int]], width: np.ndarray, room: float, rest_at_most: float) -> np.ndarray | None:
    """Every way to make some categories high that leaves 0 <= rest <= `rest_at_most`: how many of each group.

    None if there are more than `VERTICES`.
    """
    slack, begun = 1e-12, 0
    later = np.cumsum([len(group) * width[group[0]] for group in groups][::-1])[::-1]
    rest, steps = np.array([room]), list[tuple[np.ndarray, np.ndarray]]()
    for k, group in enumerate(groups):
        step = width[group[0]]
        beyond = later[k + 1] if k + 1 < len(groups) else 0.0
        fewest = np.clip(np.ceil((rest - beyond - rest_at_most) / step - slack), 0, len(group) + 1)
        ways = np.minimum(np.floor(rest / step + slack), len(group)) - fewest + 1
        fewest, ways = fewest.astype(np.int32), np.maximum(ways, 0).astype(np.int32)
        total = int(ways.sum())
        begun += total
        if total > VERTICES or begun > BEGUN:
            return None
        parent = np.repeat(np.arange(rest.size, dtype=np.int32), ways)
        chosen = np.arange(total) - np.repeat(np.cumsum(ways) - ways - fewest, ways)
        rest = rest[parent] - chosen * step
        steps.append((parent, chosen.astype(np.int16)))
    counts, at = np.empty((rest.size, len(groups)), dtype=np.int16, order="F"), np.arange(rest.size)
    for k, (parent, chosen) in reversed(list(enumerate(steps))):
        counts[:, k], at = chosen[at], parent[at]
    return counts


@dataclass(frozen=True)
class _Histogram(Pricer):
    """A histogram, phi(r) = sum r_i^2.

    `weights` are the exact priors, as integers: equal ones make a group. Within a group the categories with the
    least prices are the high ones.
    """

    probabilities: np.ndarray
    ratio: float
    weights: tuple[int, ...]

    def gain(self, posteriors: np.ndarray) -> np.ndarray:
        return np.sum(posteriors**2, axis=1)

    def _groups(self, nu: np.ndarray) -> list[np.ndarray]:
        """The groups, each in order of increasing price."""
        return [np.array(group)[np.argsort(nu[group], kind="stable")] for group in _by_weight(self.weights)]

    def _answer(self, rows: np.ndarray, nu: np.ndarray, excess: float) -> Priced:
        gains = self.gain(rows)
        return Priced(*_distinct(rows, gains, gains - rows @ nu, self.probabilities), excess, np.zeros((0, 2)))


@dataclass(frozen=True)
class BoxHistogram(_Histogram):
    """LIP: all coordinates at a bound but one, which takes what is left. Every vertex is visited, up to order within groups."""

    @cached_property
    def _counts(self) -> np.ndarray | None:
        """Every set that can be high, as counts, or None if they are too many."""
        lo, hi = box(self.probabilities, self.ratio)
        return count_sets(_by_weight(self.weights), hi - lo, float(1 - lo.sum()), float((hi - lo).max()))

    @property
    def visits_all(self) -> bool:
        """Whether the vertices are few enough to be visited."""
        return self._counts is not None

    def _total(self, groups: list[np.ndarray], term: np.ndarray) -> np.ndarray:
        """Sums of `term` over the high categories, for each set."""
        assert self._counts is not None
        total = np.zeros(len(self._counts))
        for group, count in zip(groups, self._counts.T, strict=True):
            total += np.concatenate(([0.0], np.cumsum(term[group])))[count]
        return total

    def _chosen(self, groups: list[np.ndarray], index: np.ndarray) -> np.ndarray:
        """Which categories are high, one row for each set asked for."""
        assert self._counts is not None
        high = np.zeros((index.size, self.probabilities.size), dtype=bool)
        for group, count in zip(groups, self._counts.T, strict=True):
            high[:, group] = np.arange(group.size) < count[index][:, None]
        return high

    def price(self, nu: np.ndarray, tol: float) -> Priced:
        lo, hi = box(self.probabilities, self.ratio)
        groups = self._groups(nu)
        left = 1 - lo.sum() - self._total(groups, hi - lo)
        worth = self._total(groups, hi**2 - lo**2 - nu * (hi - lo)) + float(np.sum(lo**2 - nu * lo))
        assert self._counts is not None
        rows, best = [], -np.inf
        for group, count in zip(groups, self._counts.T, strict=True):
            g = group[0]
            part = np.clip(left, 0.0, hi[g] - lo[g])
            price = np.append(nu[group], np.inf)[count]  # no member is left to take the rest
            total = worth + part * (part + 2 * lo[g]) - np.where(np.isinf(price), 0.0, price) * part
            total = np.where((abs(part - left) <= 1e-12) & (count < group.size), total, -np.inf)
            index = np.argsort(-total, kind="stable")[:40] if total.size <= 40 else np.argpartition(-total, 39)[:40]
            index = index[total[index] > -np.inf]
            if not index.size:
                continue
            best = max(best, float(total[index].max()))
            made = lo + (hi - lo) * self._chosen(groups, index)
            made[np.arange(len(made)), group[count[index]]] += part[index]
            rows.append(made)
        return self._answer(np.vstack(rows), nu, best)


@dataclass(frozen=True)
class ConeHistogramRelaxed(_Histogram):
    """LDP for many categories.

    With tau = 1/sum(P s) a posterior lies in the box of `bounds`, r_i^2 is at most its chord there, and what is left is a
    knapsack for each tau. Its solution has one fractional coordinate; rounding it either way gives the columns, the knapsack
    itself the excess: what the certificate proves on the intervals between the knots.
    """

    def bounds(self, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """lo and hi of the posteriors for each tau: [tau P, E tau P], and as much as the others leave."""
        p, ratio, t = self.probabilities, self.ratio, np.asarray(tau)[:, None]
        return np.maximum(t * p, 1 - ratio * t * (1 - p)), np.minimum(ratio * t * p, 1 - t * (1 - p))

    def _knapsack(self, nu: np.ndarray, tau: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(the price at which the knapsack is full, the order of the items, how many are full, the value) for each tau."""
        lo, hi = self.bounds(tau)
        slope, width = lo + hi - nu, hi - lo
        order = np.argsort(-slope, axis=1, kind="stable")
        room = 1 - lo.sum(axis=1, keepdims=True)
        full = np.sum(np.cumsum(np.take_along_axis(width, order, 1), axis=1) <= room, axis=1)
        at = np.minimum(full, nu.size - 1)[:, None]
        level = np.take_along_axis(slope, np.take_along_axis(order, at, 1), 1)
        value = level[:, 0] + np.sum(np.maximum(lo * (lo - nu - level), hi * (hi - nu - level)), axis=1)
        return level[:, 0], order, full, value

    def _between(self, nu: np.ndarray, tau: np.ndarray, level: np.ndarray) -> np.ndarray:
        """The certificate's bound on phi - nu.r for each interval between knots (see `cone_chord` there)."""
        p, ratio, cost = self.probabilities, self.ratio, nu + level[:-1, None]
        a, b = tau[:-1, None], tau[1:, None]
        wide, narrow = ratio * a * p >= 1 - a * (1 - p), b * p <= 1 - ratio * b * (1 - p)
        found = []
        for t in (a, b):
            lo = np.where(narrow, 1 - ratio * t * (1 - p), t * p)
            hi = np.where(wide, 1 - t * (1 - p), ratio * t * p)
            found.append(np.sum(np.maximum(lo * (lo - cost), hi * (hi - cost)), axis=1))
        return level[:-1] + np.maximum(*found)

    def price(self, nu: np.ndarray, tol: float) -> Priced:
        tau = self._levels()
        while True:  # halving ends: short intervals stay
            level, order, full, value = self._knapsack(nu, tau)
            upper = self._between(nu, tau, level)
            wide = np.flatnonzero(upper > max(float(value.max()), 0.0) + max(tol, RELAXED))
            wide = wide[np.diff(tau)[wide] > 1e-4 * tau[wide]]
            if not wide.size:
                break
            tau = np.union1d(tau, (tau[wide] + tau[wide + 1]) / 2)
        answer = self._answer(self._posteriors(self._rounded(order, full)), nu, float(upper.max()))
        return Priced(answer.posteriors, answer.gains, answer.reduced, answer.excess, np.column_stack([tau, level]))

    def _levels(self) -> np.ndarray:
        """Values of tau to begin with, from 1/E to 1."""
        return np.append(np.geomspace(1 / self.ratio, 1.0, 65)[:-1], 1.0)

    def _rounded(self, order: np.ndarray, full: np.ndarray) -> np.ndarray:
        """The sets of high categories next to the knapsacks' solutions."""
        rank = np.argsort(order, axis=1)
        return np.asarray(np.repeat(rank, 4, axis=0) < (full[:, None] + np.arange(-1, 3)).ravel()[:, None])

    def _posteriors(self, high: np.ndarray) -> np.ndarray:
        """With likelihood e^eps for the `high` categories, one row for each set."""
        joint = self.probabilities * (1 + (self.ratio - 1) * high)
        return np.asarray(joint / joint.sum(axis=1, keepdims=True))

    def peaks(self, nu: np.ndarray, tau: np.ndarray, count: int) -> np.ndarray:
        """Those of `tau` at which the knapsack has a local maximum, at most `count`, the largest ones."""
        value = self._knapsack(nu, tau)[3]
        wall = np.concatenate([[-np.inf], value, [-np.inf]])
        found = np.flatnonzero((value >= wall[:-2]) & (value >= wall[2:]))
        return np.asarray(tau[found[np.argsort(-value[found], kind="stable")[:count]]])


@dataclass(frozen=True)
class ConeHistogram(ConeHistogramRelaxed):
    """LDP: likelihoods 1 or e^eps, by branch and bound over the sets of high categories.

    phi - nu.r <= sigma says that Q = sum (P s)^2 - Z C <= 0, where v = nu + sigma, Z = sum P s and C = sum v P s. To make
    category j high adds a_j (p_j (E + 1) - a_j v_j - C - v_j Z) to Q, where a = (E - 1) P, and two of them together take
    a_i a_j (v_i + v_j) >= 2 u_i u_j away, where u_i = a_i y_i, y_i^2 = v_i; so that no set A of further ones adds more than

        sum over A of (what j adds + u_j^2) - (sum over A of u)^2 <= t^2 + sum max(what j adds + u_j^2 - 2 t u_j, 0),

    for every t, nor more than the sum of what they add where that is positive. (A pair with v_i + v_j < 0 may add that much.)
    With a large eps two common categories shut each other out, and few sets are left. Where too many are, the relaxation
    is asked.
    """

    def price(self, nu: np.ndarray, tol: float) -> Priced:
        high, slack, excess = self._rounded(*self._knapsack(nu, self._levels())[1:3]), COARSE, np.inf
        while True:  # the finer, the more sets; a tenth of what is found is fine enough
            rows = self._posteriors(high)
            best = float((self.gain(rows) - rows @ nu).max())
            found, bound = self._search(nu, best + slack, slack)
            high, excess = np.vstack([high, found]), min(excess, bound)
            if np.isinf(bound) or slack <= max(tol, best / 10):
                break
            slack = max(slack / FINER, tol)
        if np.isinf(bound) and (relaxed := super().price(nu, tol)).excess < excess:
            return relaxed
        rows = self._posteriors(high)
        kept = np.argsort(rows @ nu - self.gain(rows), kind="stable")[:MOST]
        return self._answer(rows[kept], nu, excess)

    def _search(self, nu: np.ndarray, sigma: float, slack: float) -> tuple[np.ndarray, float]:
        """(sets found above `sigma`, a number that no set is above), the latter infinite if the sets are too many.

        A set found above raises `sigma` to `slack` more than what it attains.
        """
        p, v, steps, found = self.probabilities, nu + sigma, 0, [np.zeros((0, nu.size), dtype=bool)]
        a, groups = (self.ratio - 1) * p, self._groups(nu)
        high, later = np.zeros((1, p.size), dtype=bool), np.concatenate(groups)
        size, square, cost = np.ones(1), np.array([p @ p]), np.array([p @ v])
        for group in groups:
            later, first, count = later[group.size :], int(group[0]), np.arange(group.size + 1)
            steps += size.size * count.size * (later.size + 1)
            if steps > EFFORT or size.size * count.size > VERTICES:
                return np.vstack(found), np.inf
            high = np.repeat(high, count.size, axis=0)
            high[:, group] = np.tile(np.arange(group.size) < count[:, None], (size.size, 1))
            size = np.add.outer(size, a[first] * count).ravel()
            square = np.add.outer(square, a[first] * p[first] * (self.ratio + 1) * count).ravel()
            cost = np.add.outer(cost, a[first] * np.append(0.0, np.cumsum(v[group]))).ravel()
            above = square / size**2 - cost / size
            if above.max() > 0:
                found.append(high[above > 0])
                rise = float(above.max()) + slack
                v, cost, sigma = v + rise, cost + rise * size, sigma + rise
            live = np.flatnonzero(self._reach(v, later, size, square, cost) > 0)
            if not live.size:
                break
            high, size, square, cost = high[live], size[live], square[live], cost[live]
        return np.vstack(found), sigma

    def _reach(
        self, v: np.ndarray, later: np.ndarray, size: np.ndarray, square: np.ndarray, cost: np.ndarray
    ) -> np.ndarray:
        """A number that Q is not above whichever categories of `later` are high too."""
        p, v = self.probabilities[later], v[later]
        a = (self.ratio - 1) * p
        u, adds = a * np.sqrt(np.maximum(v, 0.0)), (self.ratio + 1) * p - a * v
        odd = np.flatnonzero(v < -v.min(initial=0.0))  # pairs with v_i + v_j < 0: half of what they add to each
        pairs = np.maximum(-np.add.outer(v[odd], v[odd]), 0.0)
        adds[odd] += (pairs @ a[odd] - np.diag(pairs) * a[odd]) / 2
        adds = a * (adds - cost[:, None] - size[:, None] * v)
        start = square - size * cost
        reach = start + np.maximum(adds, 0.0).sum(axis=1)
        live = np.flatnonzero(reach > 0)
        start, adds, below, above = start[live], adds[live] + u**2, np.zeros(live.size), np.full(live.size, u.sum())
        for _ in range(HALVINGS):  # convex in t
            t = (below + above) / 2
            rest = adds - 2 * t[:, None] * u
            reach[live] = np.minimum(reach[live], start + t**2 + np.maximum(rest, 0.0).sum(axis=1))
            rises = t < (rest > 0) @ u
            below, above = np.where(rises, t, below), np.where(rises, above, t)
        return reach


def box_chord(p: np.ndarray, ratio: float) -> tuple[np.ndarray, float]:
    """The prices of the chord bound, and the level of its proof.

    r_i^2 <= (lo_i + hi_i) r_i - lo_i hi_i, as one linear function on sum r = 1.
    """
    lo, hi = box(p, ratio)
    level = float(np.sum(lo * hi))
    return lo + hi - level, level


def filling_posteriors(
    p: np.ndarray, ratio: float, rng: np.random.Generator, batches: int, nu: np.ndarray | None = None
) -> np.ndarray:
    """Extreme posteriors for LIP in which the coordinate that is at no bound is nearly at one.

    The chord bound is attained where every coordinate is at a bound. A category that fills all the room alone does so by
    itself. Of the others, draw high categories at random until little room is left; then one of the subset sums
    of a reserve, tabulated, fills it almost exactly. What remains goes to (or is taken from) the category where it
    costs least. With prices `nu`, categories that are cheap to have high come first, more or less strictly.
    """
    lo, hi = box(p, ratio)
    cheap = np.zeros(p.size) if nu is None else hi + lo - nu
    cheap = (cheap - cheap.mean()) / max(float(cheap.std()), 1e-300)
    width, d, room = hi - lo, p.size, 1 - lo.sum()
    alone = np.flatnonzero(width >= room * (1 - 1e-9))
    light = np.flatnonzero(width < room * (1 - 1e-9))
    single = np.tile(lo, (alone.size, 1))
    single[np.arange(alone.size), alone] = 1 - (lo.sum() - lo[alone])
    found = [single]
    if light.size < 2:
        return single
    reserve = min(13, light.size)
    masks = ((np.arange(2**reserve)[:, None] >> np.arange(reserve)) & 1).astype(bool)
    for _ in range(batches):
        kept = rng.permutation(light)[:reserve]
        others = np.setdiff1d(light, kept)
        sums = masks @ width[kept]
        order = np.argsort(sums)
        sums = sums[order]
        high = np.zeros((300, d), dtype=bool)
        if others.size:
            strictness = rng.choice([0.0, 0.5, 1.0, 2.0, 5.0], size=(300, 1)) if nu is not None else 0.0
            queue = others[np.argsort(-rng.gumbel(size=(300, others.size)) - strictness * cheap[others], axis=1)]
            spared = np.minimum(rng.random(300), rng.random(300)) * rng.choice([0.1, 1.0, 1.0], size=300)
            wanted = room - spared * min(float(sums[-1]), room)
            patient, open_ = rng.random(300) < 0.3, np.ones(300, dtype=bool)
            for column in queue.T:  # for all rows at once: until one does not fit, or (patient) whatever fits
                fits = open_ & (width[column] <= wanted)
                high[fits, column[fits]] = True
                wanted -= np.where(fits, width[column], 0.0)
                open_ &= fits | patient
        rest = room - high @ width
        fits = rest <= sums[-1]
        high, rest = high[fits], rest[fits]
        below = np.searchsorted(sums, rest, side="right") - 1
        for place, sign in ((below, 1.0), (np.minimum(below + 1, sums.size - 1), -1.0)):
            chosen = high.copy()
            chosen[:, kept] = masks[order[place]]
            left = sign * (rest - sums[place])
            able = (chosen if sign < 0 else ~chosen) & (width >= left[:, None])
            cost = np.where(able, left[:, None] * (width - left[:, None]), np.inf)
            f = np.argmin(cost, axis=1)
            valid = (left >= 0) & np.isfinite(cost[np.arange(f.size), f])
            rows = lo + width * chosen
            rows[np.arange(f.size), f] += sign * left
            found.append(rows[valid])
    return np.vstack(found)


def shuffled(posteriors: np.ndarray, weights: tuple[int, ...], rng: np.random.Generator, copies: int) -> np.ndarray:
    """Each posterior with its coordinates permuted at random within groups of equal priors, `copies` rows in all."""
    rows = posteriors[np.arange(copies) % len(posteriors)].copy() if len(posteriors) else np.zeros((0, len(weights)))
    for group in _by_weight(weights):
        if len(group) > 1:
            rows[:, group] = rng.permuted(rows[:, group], axis=1)
    return rows

"""Histograms over many categories: posteriors split into sets of high categories.

**LIP.** A posterior that is optimal for the chord bound (`optdp.certificates.lip`) has every coordinate at a bound lo_i or hi_i:
it is a set of high categories. So the prior is to be written as a mixture of sets of one total width, where category i is high
with probability phi_i = (P_i - lo_i)/(hi_i - lo_i). `split` does this exactly, a set at a time: as much of a set is taken out of
the prior as can be, and then one more category is always or never high in what is left. A set fills the total width up to
one category, which takes what remains: where there are many, next to nothing. There is no linear program at all.

**LDP.** A posterior is P s / Z with s_i in [1, E] and Z = sum P s. Given 1/Z = tau it lies in a box again, tau P <= r <= E tau P
and what the others leave. So there is a program over *levels* tau_k, in the probability w_k of a level and in joint
probabilities y_ik,

    max sum_ik (lo_ik + hi_ik) y_ik - lo_ik hi_ik w_k
    subject to  sum_k y_ik = P_i,   sum_i y_ik = w_k,   lo_ik w_k <= y_ik <= hi_ik w_k,

a kernel from categories to a few levels instead of a program over posteriors. Its prices are prices of that one, by which further
levels are found, and `split` turns each level into sets.
"""

from __future__ import annotations

import math
import time

import numpy as np

from optdp.design.lip.posteriors import Generated
from optdp.design.lip.pricing import ConeHistogramRelaxed, box, box_chord
from optdp.solvers.lp import Highs, LinearProgram, LinearStatus

#: A share this close to 0 or 1 is 0 or 1.
ROUNDING = 1e-12

#: A share of the prior below this is not split any further.
NOTHING = 1e-9

#: Levels that the program for LDP begins with, rounds of pricing, how many in a row may help little, levels that each may add.
LEVELS, ROUNDS, STALLED, MORE = 8, 10, 2, 3


def split(phi: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sets of one total width that mix to given probabilities.

    **Arguments:** `phi`: the probability that each category is high; `width`: > 0.

    **Returns** (weights, shares): shares[k, i] is 1 where i is high in the k-th set, 0 where it is not, and between for at most
    one i (for more of them in the last row alone, and then its weight is negligible); every row has the same sum of
    width * shares, and weights @ shares = phi. At most as many rows as categories.
    """
    phi, left, total = np.clip(phi, 0.0, 1.0), 1.0, float(phi @ width)
    weights, rows = [], []
    while True:
        always, free = phi >= 1 - ROUNDING, (phi > ROUNDING) & (phi < 1 - ROUNDING)
        where = np.flatnonzero(free)
        # First those that must soon be high, and of these the wide ones: the narrow ones fit into what remains.
        order = where[np.lexsort((-width[where], -np.round(phi[where], 9)))]
        share, rest = always.astype(float), total - float(width[always].sum())
        for i, size in zip(order.tolist(), width[order].tolist(), strict=True):
            if size <= rest * (1 + ROUNDING):  # one that fills the room alone does so, whatever rounding says
                share[i], rest = 1.0, max(rest - size, 0.0)
        out = where[share[where] == 0]
        fits = out[width[out] >= rest]
        if fits.size and rest > 0:
            last = fits[np.argmin(width[fits])]
            share[last] = rest / width[last]
        # What is left must stay between 0 and 1 everywhere.
        s, p = share[where], phi[where]
        with np.errstate(divide="ignore"):
            most = float(np.minimum(p / s, (1 - p) / (1 - s)).min(initial=1.0))
        if where.size <= 1 or most >= 1 - ROUNDING:
            weights.append(left)
            rows.append(phi if where.size <= 1 else share)
            return np.array(weights), np.array(rows)
        weights.append(left * most)
        rows.append(share)
        phi = np.clip((phi - most * share) / (1 - most), 0.0, 1.0)
        left *= 1 - most
        # Rounding errors of the total grow as less is left: they are given back.
        slack = phi * (1 - phi)
        phi = np.clip(phi + slack * (total - float(phi @ width)) / max(float(slack @ width), 1e-300), 0.0, 1.0)
        if left < NOTHING:
            return np.append(weights, left), np.vstack([*rows, phi])


def box_split(p: np.ndarray, ratio: float) -> Generated:
    """The mechanism for LIP that splits the prior, and the prices of the chord bound."""
    lo, hi = box(p, ratio)
    weights, shares = split((p - lo) / (hi - lo), hi - lo)
    posteriors, nu = lo + (hi - lo) * shares, box_chord(p, ratio)[0]
    attained = float(weights @ np.sum(posteriors**2, axis=1))
    return Generated(posteriors, weights, attained, nu, float(nu @ p), weights.size, 1, False)


def levels(pricer: ConeHistogramRelaxed, tol: float, deadline: float = math.inf) -> Generated:
    """A mechanism for LDP and a dual point, by the program over levels: until bound and value are within `tol`, or it stalls.

    No round goes on after `deadline`, on the clock of `time.perf_counter`. Without any there is the level in the middle alone.
    """
    from scipy.sparse import coo_matrix, hstack, identity, vstack

    p, ratio = pricer.probabilities, pricer.ratio
    d = p.size
    # In the middle is the optimum for equal priors.
    middle = np.array([(1 + ratio) / (2 * ratio)])
    lo, hi = pricer.bounds(middle)
    best, bound, before, rounds, stalled = (lo + hi).ravel(), np.inf, np.inf, 0, 0
    solved = middle, np.ones(1), 1 - lo / p
    tau = np.union1d(np.geomspace(1 / ratio, 1.0, LEVELS + 2)[1:-1], middle)
    while True:
        k, (lo, hi) = tau.size, pricer.bounds(tau)
        level, category = (place.ravel() for place in np.indices((k, d)))
        pair, every = np.arange(k * d), np.ones(k * d)
        # y = lo w + P v: each row is divided by its prior.
        masses = hstack([coo_matrix((lo / p).T), coo_matrix((every, (category, pair)))])
        sizes = hstack([coo_matrix(np.diag(lo.sum(axis=1) - 1)), coo_matrix((p[category], (level, pair)))])
        caps = hstack([coo_matrix((-((hi - lo) / p).ravel(), (pair, level))), identity(k * d)])
        program = LinearProgram(
            np.concatenate([np.sum(lo**2, axis=1), ((lo + hi) * p).ravel()]), vstack([masses, sizes, caps]),
            np.concatenate([np.ones(d), np.zeros(k), -np.inf * every]), np.concatenate([np.ones(d), np.zeros(k), 0 * every]),
            maximise=True, blocks={"mass": slice(0, d)},
        )  # fmt: skip
        found = program.solve(Highs("ipm"), time_limit=deadline - time.perf_counter())
        if found.status is LinearStatus.TIME_LIMIT:
            break
        nu = found.checked().dual("mass") / p
        solved, priced = (tau, found.x[:k], found.x[k:].reshape(k, d)), pricer.price(nu, tol)
        if float(nu @ p) + priced.excess < bound:
            best, bound = nu + priced.excess, float(nu @ p) + priced.excess
        rounds += 1
        gap = bound - found.objective
        stalled = stalled + 1 if gap > 0.9 * before else 0
        if gap <= tol or rounds >= ROUNDS or stalled >= STALLED or time.perf_counter() > deadline:
            break
        before = min(gap, before)
        tau = np.union1d(tau[found.x[:k] > ROUNDING], pricer.peaks(nu, priced.knots[:, 0], MORE))
    if rounds == 0:
        excess = pricer.price(best, tol).excess
        best, bound = best + excess, float(best @ p) + excess
    rows, weights = [], []
    for t, weight, v, low, high in zip(*solved, *pricer.bounds(solved[0]), strict=True):
        if weight <= ROUNDING:
            continue
        width = high - low  # 0 where a category is all but certain
        part, shares = split(np.divide(p * v, weight * width, out=np.zeros(d), where=width > 0), width)
        # A likelihood s between 1 and E is a mixture of the two, which gains more.
        favoured = np.clip(((low + width * shares) / (t * p) - 1) / (ratio - 1), 0.0, 1.0)
        odd = np.argmax(np.minimum(favoured, 1 - favoured), axis=1)
        inner = favoured[np.arange(odd.size), odd]
        for high_too, rate in ((0.0, 1 - inner), (1.0, inner)):
            chosen = np.round(favoured)
            chosen[np.arange(odd.size), odd] = high_too
            made = p * (1 + (ratio - 1) * chosen) * (weight * t * part * rate)[:, None]
            use = made.sum(axis=1) > ROUNDING
            weights.append(made[use].sum(axis=1))
            rows.append(made[use] / made[use].sum(axis=1, keepdims=True))
    posteriors, each = np.vstack(rows), np.concatenate(weights)
    return Generated(posteriors, each, float(each @ pricer.gain(posteriors)), best, bound, each.size, rounds, False)

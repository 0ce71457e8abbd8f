#!/usr/bin/env python3
"""A second opinion on a saved solution: `python checker.py solution.json`, with Python's standard library alone.

It shares no line with the rest of optdp, reads the format in docs/format.md, proves the bracket again in rational arithmetic,
and prints the statement that is then true. Exit status: 0 proven, 1 not proven, 2 not readable, not known here or too much work.
Known are absolute and squared errors of piecewise densities on intervals and circles, of kernels on intervals (worst case or
under points with a prior, also unbiased) and of additive (eps, delta) noise; finite alphabets; and information privacy or LDP.
"""

import argparse
import json
import math
import re
import sys
from bisect import bisect_left, bisect_right
from fractions import Fraction
from functools import cache
from itertools import accumulate, groupby, pairwise, product
from types import SimpleNamespace as Entry
from typing import Any

#: Significant bits of enclosures; steps of about a microsecond before a proof is given up; bytes that a file may have.
BITS, LIMIT, SIZE = 256, 10_000_000, 200_000_000
CELLS, COINS, LIMB, LEFT = 2**50, 2**124, 2**62, [LIMIT, 1]
ZERO, ONE, BEYOND = Fraction(0), Fraction(1), "is not known here (--help says what is)"
Pair = tuple[Fraction, Fraction]


class Answer(Exception):
    """Ends a proof: the exit status and what is printed."""


def must(condition: Any, what: str, status: int = 1) -> None:
    """Go on if the condition holds; otherwise something is not proven (1), or not readable or not known here (2)."""
    if not condition:
        raise Answer(status, f"{'no: not true or not proven' if status == 1 else 'cannot check'}: {what}")


def spend(steps: int) -> None:
    """Count what the sizes in a file ask for, before it is done: more where its numbers are long."""
    LEFT[0] -= steps * LEFT[1]
    must(LEFT[0] >= 0, "the proof takes more work than the limit, which --limit raises", 2)


def cut(q: Fraction, up: bool) -> Fraction:
    """A rational of about BITS bits next to q >= 0, not above it, or (`up`) not below."""
    unit = Fraction(2) ** (q.numerator.bit_length() - q.denominator.bit_length() - BITS)
    return (math.ceil(q / unit) if up else q // unit) * unit


def exp(x: Fraction, up: bool) -> Fraction:
    """Next to e^x for x >= 0, not above it, or (`up`) not below: its series, the last term again for those that follow."""
    n, d = x.as_integer_ratio()
    total = (unit := 1 << BITS + max(d.bit_length() - n.bit_length(), 0)) << up  # BITS bits of e^x - 1
    for k in range(int(2 * x) + BITS, 0, -1):
        total = unit + (total * n + up * (d * k - 1)) // (d * k)
    return Fraction(total, unit)


def root(q: Fraction) -> Fraction:
    """Not below the square root of q >= 0."""
    shift = BITS + q.denominator.bit_length()
    return Fraction(math.isqrt((q.numerator << 2 * shift) // q.denominator) + 1, 1 << shift)


#: Each line: a part of a file, its type, entries with their kinds ("*": a list of, "|": or this word), how statements write it.
#: Kinds are parts, RANGES (integers if their ends are), eps, any-eps, flag, text, label (text or number), any; that of x is x.
FORMAT = r"""
solution - optdp:head problem value:real lower_bound:real mechanism certificate program:any
head - format:whole version:text
problem problem privacy domain objective family constraints:*constraint
privacy ldp eps:any-eps -- {eps}-LDP
privacy approx eps delta:rational sensitivity:gap -- ({eps}, {delta})-DP (neighbours: at most {sensitivity} apart)
privacy lip eps prior lower_only:flag -- {eps}-LIP (one-sided: {lower_only}, with the prior {prior})
domain interval lower:real upper:real -- [{lower}, {upper}]
domain circle period:real start:real -- the circle of period {period} that starts at {start} (|.| is the shorter arc)
domain line,integers -- the {type}
domain alphabet symbols:*label -- the alphabet {symbols}
objective worst-case loss -- worst-case E{loss}
objective average loss prior:prior|uniform -- average E{loss} under the prior {prior}
objective bayes-risk task prior -- mean square error of the best estimate of {task}, under the prior {prior},
task aggregate kind:text values:*real|null
prior prior weights:*weight categories:*label left_out:*label given:*whole -- (weights {weights} of {categories})
loss power exponent -- |Y - x|^{exponent}
loss matrix rows:**real -- [L(x, Y) with L = {rows}, a column for each output]
family all
family additive -- that add noise which does not depend on the input
family piecewise m:pieces -- of {m} pieces with the same heights in the same order, none more than e^eps times another
constraint unbiased -- numbers whose mean is the input
constraint outputs low:real high:real -- [{low}, {high}]
mechanism PiecewiseMechanism domain width_cells:cells floor_coins:coins placement:text
mechanism FiniteMechanism domain outputs:*label weights:**whole
mechanism LIPMechanism prior kernel:**whole aggregate:task labels:*label
mechanism KernelMechanism domain cells:*cells lows:*real highs:*real width_cells:cells floor_coins:coins rule:text share
mechanism AdditiveMechanism domain sensitivity:gap n:size weights:*whole atom:whole tail:*whole decay:limb eps notion:privacy|null
mechanism RoundedNoise domain noise:mechanism
mechanism LatticeStaircase domain sensitivity:gap decay:fall first:cells cut:limb atom:limb
certificate bathtub,staircase,integer-staircase threshold:positive
certificate constant,tails
certificate period threshold:positive cap:positive
certificate spike width:share
certificate finite weights:*positive masses:*real
certificate additive n:shift rounding:text multipliers:*multiplier
certificate lip method:text nu:*real knots:**real
certificate kernel mesh:*share densities:**height reaches:**height centres:**place \
    points:*input weights:*height point_reaches:*height point_centres:*place rays:**place
multiplier - shift weight:positive first:index values:*positive rest:positive
"""
RANGES: dict[str, Any] = {
    "real": (-sys.float_info.max, sys.float_info.max), "positive": (0.0, sys.float_info.max), "gap": (1e-150, 1e150),
    "exponent": (0.01, 100.0), "share": (0.0, 1.0), "height": (0.0, 2.0**60), "place": (-(2.0**60), 2.0**60),
    "rational": (0.0, 2**4096),
    "input": (0.0, 1.0), "size": (1, 10**6), "pieces": (2, 10**6), "whole": (0, COINS), "cells": (1, CELLS), "coins": (1, COINS),
    "limb": (0, LIMB - 1), "weight": (1, 2**4096 - 1), "fall": (1, 2**80 - 1), "shift": (1, 10**5), "index": (-200_000, 200_000),
}  # fmt: skip
PARTS: dict[str, Any] = {}
for _head, _, _said in (line.partition(" -- ") for line in FORMAT.replace("\\\n", "").strip().splitlines()):
    _part, _types, *_entries = _head.split()
    _found = {e.split(":")[0]: e.split(":")[-1] for e in _entries}, _said
    PARTS.setdefault(_part, {}).update(dict.fromkeys(_types.split(","), _found))


def leaf(value: Any, kind: str) -> Any:
    """A number, exactly (some may be texts: integers, "p/q" and decimals), a text or a flag; None if it is none of this kind."""
    number, text = type(value) in (int, float) and abs(value) < 2**1024, value if isinstance(value, str) else ""
    if kind in ("flag", "text", "label"):
        ok, real = text[:50] == value and text.isprintable(), isinstance(value, int | float) and abs(value) < math.inf
        return value if {"flag": type(value) is bool, "text": ok, "label": real or text[:1000] == value}[kind] else None
    if kind in ("eps", "any-eps"):
        inner = re.fullmatch(r"log\((.*)\)", text)
        q, most = leaf(inner[1] if inner else value, "rational"), exp(ONE * 30, True) if inner else 30
        ok = q is not None and q >= bool(inner) and (kind != "eps" or q == 0 or ((inner or q >= 1e-300) and q <= most))
        must(inner or not ok or q <= 1000, f"an epsilon above 1000 {BEYOND}", 2)
        return Entry(low=q if inner else exp(q, False), high=q if inner else exp(q, True)) if ok else None
    (low, high), whole = RANGES[kind], type(value) is int or re.fullmatch("-?[0-9]{1,2600}", text)
    known = number or (
        kind in ("rational", "input") and re.fullmatch("[+-]?([0-9]+(/0*[1-9][0-9]*)?|[0-9]*[.][0-9]+)", text)
    )
    found = (int(value) if whole else None) if type(low) is int else Fraction(text or float(value)) if known else None
    LEFT[1] = max(LEFT[1], 1 + (bits := max(v.bit_length() for v in (found or 0).as_integer_ratio())) // 160)
    return found if found is not None and low <= found <= high and bits <= 4096 else None


def read(value: Any, kind: str) -> Any:
    """What the format says is there: an `Entry` for a part, with how it is said; a list, a number, a text or a flag."""
    kind, _, other = kind.partition("|")
    if kind == "any" or (other and value == (None if other == "null" else other)):
        return value
    if kind[0] == "*":
        must(isinstance(value, list) and len(value) <= 10**6, f"a list ({kind}) is none, or is too long", 2)
        spend(3 * len(value))
        return [read(entry, kind[1:]) for entry in value]
    if kind not in PARTS:
        found = leaf(value, kind)
        must(found is not None, f"an entry of the kind {kind} is none, or out of range", 2)
        return found
    must(isinstance(value, dict), f"a {kind} is not an object", 2)
    tag = "-" if "-" in PARTS[kind] else "mechanism" if kind == "mechanism" else "type"
    must(str(value.get(tag, tag)) in PARTS[kind], f"the {tag} of this {kind} {BEYOND}", 2)
    entries, said = PARTS[kind][str(value.get(tag, tag))]
    names = {*entries, tag} - {"-"}
    must(names - {"notion", "rays"} <= {*value} <= names, f"a {kind} of other entries than {sorted(names)} {BEYOND}", 2)
    parts = {name: read(value[name], inner) for name, inner in entries.items() if name in value}
    found = Entry(is_a=value.get(tag), **parts)
    if found.is_a == "alphabet":
        must(len(set(found.symbols)) == len(found.symbols) > 1, "symbols are distinct", 2)
    if kind == "prior":
        named, d = found.categories + found.left_out, len(found.weights)
        distinct = len(set(named)) == len(named) and len(found.categories) == d > 1 and min(found.weights) > 0
        places = len(found.given) in (0, d) and max([0, *found.given]) < len(named)
        must(distinct and places, "categories are distinct, weights positive", 2)
        found.exact = [Fraction(w, total) for total in [sum(found.weights)] for w in found.weights]
    plain = {k: float(v) if isinstance(v, Fraction) and v == float(v) else value[k] for k, v in parts.items()}
    words = {k: getattr(v, "said", None) or json.dumps(plain[k]).strip('"') for k, v in parts.items()}
    found.said = said.format(**words, type=found.is_a)
    if kind == "task":
        entry = "entry" if found.values is None else f"value (by category {words['values']})"
        found.said = f"each user's {entry} in a {found.kind}"
    return found


def dot(a: Any, b: Any) -> Fraction:
    """The sum of products."""
    return sum((v * w for v, w in zip(a, b, strict=True)), ZERO)


def highest(function: Any, low: Any, high: Any, marks: Any, cost: int = 400) -> Fraction:
    """Not below 0, nor a function of degree 4 between marks from low to high: Bernstein coefficients, on halves of halves."""
    marks = [low, *marks[bisect_right(marks, low) : bisect_left(marks, high)], high]
    spend(len(marks) * cost)
    function = cache(function)
    best, todo, left = max(ZERO, *map(function, marks)), list(pairwise(marks)), 4000
    while todo:
        (a, b), left = todo.pop(), left - 1
        spend(3 * cost)
        v = [function(a + (b - a) * k / 4) for k in range(5)]
        second, fourth = (dot((-13, 48, -36, 16, -3), row) / 12 for row in (v, v[::-1]))
        inner, best = max(second, dot((13, -64, 120, -64, 13), v) / 18, fourth), max(best, *v)
        if inner > best and (left < 0 or inner <= max(v[0], v[4]) + best / 2**70):
            best = inner
        elif inner > best:
            todo += [(a, (a + b) / 2), ((a + b) / 2, b)]
    return best


def over(s: Fraction, reach: Fraction, q: int, r: Fraction = ZERO) -> Fraction:
    """The integral of y^q - r from s to s + reach."""
    return ((s + reach) ** (q + 1) - s ** (q + 1)) / (q + 1) - r * reach


def bathtub(s: Fraction, r: Fraction, reach: Fraction, q: int, growth: Fraction) -> bool:
    """Whether y^q - r has, from s to s + reach, an integral of at least growth - 1 times what it has below 0."""
    below = r * (r if q == 1 else root(r)) * q / (q + 1) + over(ZERO, s, q, r) if r > s**q else ZERO
    return over(s, reach, q, r) >= (growth - 1) * below


def geometric_mean(row: list[Any], b: Fraction) -> Fraction:
    """E f(J) = f(0) + b/(1 - b) E [f(J + 1) - f(J)], P(J = k) = (1 - b) b^k; f(0), f(1), ... in a row fix the polynomial f."""
    return row[0] + b / (1 - b) * geometric_mean([v - u for u, v in pairwise(row)], b) if row else ZERO


def grid(low: Any, high: Any, most: int = 2**4096) -> Fraction:
    """The least power of two v from 2^-1074 on with both ends at most 2^53 v from 0, and at most `most` v apart."""
    steps = max(Fraction(max(-low, high), 2**53), Fraction(high - low, most)) * 2**1074
    return Fraction(2) ** (max(math.ceil(steps) - 1, 0).bit_length() - 1074)


def check_piecewise(p: Any, m: Any, c: Any) -> Pair:
    """A floor and a window, sent as multiples of v: numbers at distances up to 0, v, ..., what is off; 2^-100 more."""
    circle, shared, q, v = p.domain.is_a == "circle", p.family.is_a == "piecewise", p.q, grid(p.low, p.high)
    ours = m.is_a == "PiecewiseMechanism" and c.is_a != "kernel" and (shared or (circle and p.family.is_a == "all"))
    must(ours and not p.constraints, f"this mechanism or certificate here {BEYOND}", 2)
    must(p.objective.is_a == "worst-case" or (circle and p.objective.prior == "uniform"), "the worst case, or a circle")
    must(not shared or p.family.m >= (1 if p.share == 1 else 2 if circle else 3), "the number of pieces")
    must(m.placement in ("centred", "linear")[: 2 - circle], "a place for the window")
    first, last = math.ceil(p.low / v), math.floor(p.high / v)
    off = max(first * v - p.low, p.high - last * v, v / 2 * (m.placement == "linear"))
    off = max(p.width - (last - first + 1) * v, ZERO) + v if circle else off  # the seam, and half a step

    def sent(share: Fraction) -> Fraction:
        n = math.ceil(share * (last - first + 1))
        must(n > 256, f"a domain or window of few floats {BEYOND}", 2)
        half = n // 2 * circle
        return (over(off, (n - half) * v, q) + over(off + v, half * v, q)) / (n * v) * (1 + ONE / 2**100)

    value, reach = p.mass * sent(ONE) + (1 - p.mass) * sent(p.share), p.width / (1 + circle)
    if c.is_a == "constant" and shared and p.family.m == 2 and not circle:
        return value, over(ZERO, reach, q) / reach
    must(c.is_a == "bathtub" and bathtub(ZERO, c.threshold, reach, q, p.privacy.eps.high), "the threshold")
    return value, c.threshold


def check_finite(p: Any, m: Any, c: Any) -> Pair:
    """A table of probabilities; the dual of the linear program, output by output."""
    rows, eps, worst, lam = p.objective.loss.rows, p.privacy.eps, p.objective.is_a == "worst-case", c.weights
    size, columns = len(p.domain.symbols), len(rows[0])
    spend(30 * size * columns + 1000)
    must(p.privacy.is_a == "ldp" and p.family.is_a == "all" and not p.constraints, "LDP, all mechanisms, no constraint")
    must(m.is_a == "FiniteMechanism" and vars(m.domain).get("symbols") == p.domain.symbols, "a table for this alphabet")
    must(len(m.weights) == len(rows) == size > 1 and len(set(m.outputs)) == len(m.outputs) == columns, "a full table")
    must(all(len(row) == columns and sum(row) == LIMB for row in m.weights), "rows that sum to 1")
    must(all(max(column) <= min(column) * eps.low for column in zip(*m.weights, strict=True)), "the likelihood ratios")
    must(c.is_a == "finite" and (worst or not lam) and min(map(min, rows)) >= 0, "multipliers, and losses >= 0")
    if not worst:
        even, prior = dict.fromkeys(p.domain.symbols, Fraction(1, size)), p.objective.prior
        share = even if prior == "uniform" else dict(zip(prior.categories, prior.exact, strict=True))
        must(share.keys() <= set(p.domain.symbols), "a prior on the alphabet")
        lam = [share.get(symbol, ZERO) for symbol in p.domain.symbols]
    losses = [dot(w, v) / LIMB for w, v in zip(m.weights, rows, strict=True)]
    excess = [[a * v - b for a, v, b in zip(lam, column, c.masses, strict=True)] for column in zip(*rows, strict=True)]
    least = min([ZERO, *(sum(r) + (eps.high - 1) * sum(min(v, ZERO) for v in r) for r in excess)])
    return max(losses) if worst else dot(lam, losses), (sum(c.masses) + least) / sum(lam)


def check_additive(p: Any, m: Any, c: Any) -> Pair:
    """Noise on cells or on a lattice, or rounded to integers (squares: 1/4 more); a lattice dual, or one in closed form."""
    delta, growth, width, q = p.privacy.delta, p.privacy.eps.high, p.privacy.sensitivity, p.q
    line, rounded, own = p.domain.is_a == "line", m.is_a == "RoundedNoise", vars(m).get("noise", m)
    stated = p.objective.is_a, vars(own).get("notion") or p.privacy, set(p.limits) - (set() if line else {"unbiased"})
    must(stated == ("worst-case", p.privacy, set()), f"this objective, notion of noise or constraint {BEYOND}", 2)
    known = delta + growth > 1 and (not delta or 0 < float(min(delta, ONE)) < 1) and (line or width.denominator == 1)
    fine = not rounded or (own.domain.is_a == "line" != p.domain.is_a and own.sensitivity <= 2**36)
    must(known and fine and width <= own.sensitivity and m.domain == p.domain and p.family.is_a == "additive", "noise")
    value = Fraction(rounded * (q - 1), 4) + (cells_value if own.is_a == "AdditiveMechanism" else steps_value)(p, own)
    if c.is_a == "additive":
        return value, lattice_bound(p, c, line)
    if c.is_a == "tails" and growth == 1:  # P(|X| >= j width) >= 1 - 2 j delta
        j = int(1 / (2 * delta))
        return value, (j**q - delta * j * (j + 1) * (1 if q == 1 else Fraction(4 * j - 1, 3))) * width**q
    if c.is_a == "spike":  # the multipliers (1 - |x/w|^q)+ (s^q - less) of shifts s from 3.1 w on
        w, less, area = (c.width, c.width, c.width) if q == 1 else (c.width, c.width**2 * 6 / 5, c.width * 4 / 3)
        shares = over(w * 31 / 10, 1 - w * 31 / 10, q, less)
        if w and not line:  # of integers: m is the last one below w, shifts are from (7 m + 1)//2 + 1 on
            w, m = w * width, math.ceil(w * width) - 1
            near, far, out = (j * (j + 1) * (3 if q == 1 else 2 * j + 1) // 6 for j in (m, width, (7 * m + 1) // 2))
            area = 1 + 2 * (m - near / w**q)
            less = w**q + 2 * (q - 1) * near * (1 - (3 * m * m + 3 * m - 1) / (5 * w * w)) / area
            shares = far - out - (width - (7 * m + 1) // 2) * less
        must(c.width <= 0.25 and 2 * shares >= growth * area * w**q, "the width")
        return value, (1 - delta) * (c.width * width) ** q
    if c.is_a == "period":
        return value, period_bound(p, c, line)
    must(delta == 0 and c.is_a == ("staircase" if line else "integer-staircase"), "no delta, on this domain")
    u, t = 1 / (growth - 1), c.threshold / width**q  # of (x + J)^q, J geometric with the mean u
    level = t if q == 1 else t - u - u * u
    if line:
        must(bathtub(u, level, ONE, q, growth), "the threshold")
        return value, c.threshold
    rise = u**q - level, (1 if q == 1 else 2 * u) / width, (q - 1) / width**2  # (j/width + u)^q - level in 1, j, j^2
    split = bisect_left(range(1, int(width)), ZERO, key=lambda j: dot(rise, (1, j, j * j))) + 1  # below 0: |j| < split
    every, below = (dot(rise, (2 * k - 1, k * (k - 1), k * (k - 1) * (2 * k - 1) // 3)) for k in (int(width), split))
    zero = rise[0] + t / (1 + u)  # 0 is there once, and its further periods twice
    must((1 + u) ** q >= level and every + zero + (growth - 1) * (below + min(zero, -rise[0])) >= 0, "the threshold")
    return value, c.threshold


def lattice_bound(p: Any, c: Any, line: bool) -> Fraction:
    """t - delta sum lam, t the least cost of a lattice point in which the multipliers mu <= lam of all shifts are folded."""
    delta, width, q, n, one, bins = p.privacy.delta, p.privacy.sensitivity, p.q, c.n, 1 << 160, c.rounding == "bins"
    must((bins or c.rounding == "nodes") and (line or n <= (1 if bins else width)), "nodes or bins, of integers")
    must(len({m.shift for m in c.multipliers}) == len(c.multipliers), "distinct shifts")
    last = max([n, *(max(m.first + len(m.values) + n, -m.first) for m in c.multipliers)]) + 1
    spend(last + 2 * sum(last + abs(m.first) + len(m.values) for m in c.multipliers))
    factor, held = math.ceil(p.privacy.eps.high * one), [0] * (last + 1)
    for m in c.multipliers:
        must(max([m.rest, *m.values]) <= m.weight and m.shift <= n, "multipliers up to their weight, shifts up to n")
        rest, *values = (int(v * one) for v in (m.rest, *m.values))
        for i, v in enumerate(values + [rest] * (last + 1 - m.first - len(values)), m.first):
            for at, change in ((i, v * one), (i + m.shift, -v * factor)):
                a = at if at >= 0 else -1 - at if bins else -at
                if a <= last:
                    held[a] += change
    left = [Fraction(a, n) ** q + Fraction(v, (2 if a or bins else 1) * one * one) for a, v in enumerate(held)]
    between, apart = not bins and (line or n < width), not line and width % n > 0  # apart: a uniform number is added
    left[0] -= Fraction(2 - q) / (4 * width - n) if apart else 0
    sag = (Fraction(between, 4) / n**2 + apart / width**2 / 12) * (q - 1)  # of squares below their chords
    return (min(left) - sag - delta * sum(m.weight for m in c.multipliers)) * width**q


def period_bound(p: Any, c: Any, line: bool) -> Fraction:
    """t less delta times what the tests of the loss up to a cap weigh: G(x) sums b^k (L(x + k) - t), F is its integral."""
    low, high, width, q = p.privacy.eps.low, p.privacy.eps.high, p.privacy.sensitivity, p.q
    t, edge = c.threshold / width**q, c.cap / width**q
    edge = edge if q == 1 or not edge else edge / root(edge)
    last, periods = math.floor(edge * width), math.ceil(edge) + 1  # the last integer whose loss is not above the cap
    spend(periods * 5000)
    most = edge**q if line else c.cap / width**q
    must(low > 1 and 0 < t < most, "the threshold below the cap")

    def loss(z: Fraction) -> Fraction:
        n = math.floor(z * width + ONE / 2)  # the nearest integer
        return min(z, edge) ** q if line else most if n > last else Fraction(n) ** q / width**q

    def integral(z: Fraction) -> Fraction:
        if line:
            return over(ZERO, w := min(z, edge), q) + most * (z - w)
        n = min(math.floor(z * width + ONE / 2), last + 1)
        before = Fraction(n * (n - 1) * (3 if q == 1 else 2 * n - 1), 6) / width ** (q + 1)
        return before + (n**q / width**q if n <= last else most) * (z - (n - ONE / 2) / width)

    unit, shares = 2 ** (2 * BITS), [[ONE], [ONE]]  # powers of b, rounded down and up
    for _ in range(periods):
        shares[0].append(Fraction(shares[0][-1] * unit // high, unit))
        shares[1].append(Fraction(-(-shares[1][-1] * unit // low), unit))
    rests = [e / (e - 1) for e in (low, high)]  # 1/(1 - b): of what is taken away

    def total(values: Any, x: Fraction, up: bool) -> Fraction:
        """At most (`up`: at least) the sum of b^k values, the last for ever, less that of t x."""
        return dot(shares[up][:-1], values) + shares[up][-1] * rests[1 - up] * most * x - rests[up] * t * x

    def f(x: Fraction, up: bool = False) -> Fraction:
        return total([integral(k + x) - integral(Fraction(k)) for k in range(periods)], x, up)

    def g(x: Fraction, up: bool) -> Fraction:
        return total([loss(k + x) for k in range(periods)], ONE, up)

    left, right = ZERO, ONE
    for _ in range(160):  # G does not fall: where it changes its sign F is least
        middle = (left + right) / 2
        left, right = (left, middle) if g(middle, False) >= 0 else (middle, right)
    least = min(f(right) - max(g(right, True), ZERO) * (right - left) - max(g(left, True), ZERO) * left, ZERO)
    above = f(ONE) - f(right, True)
    must(f(ONE) + (high - 1) * least >= 0 < above, "the threshold")
    weight = t * rests[0] * (1 + 3 * right * max(g(ONE, True), ZERO) / above) + 2 * (most - t) * rests[0] / low
    return (t - p.privacy.delta * weight) * width**q


def steps_value(p: Any, m: Any) -> Fraction:
    """Noise g j with the weight w(j): 1 for |j| < first, b times as much for the next `period` points, ..., up to `cut`."""
    b, g = Fraction(m.decay, 2**80), Fraction(2) ** (math.frexp(m.sensitivity)[1] - 41)
    period, atom, last, edge = math.ceil(m.sensitivity / g), Fraction(m.atom, LIMB), m.cut or None, ZERO
    must(m.domain.is_a == "line" and m.first <= period and m.cut < 200 * period, "a first step and a near cut")
    must(2**-44 < b < Fraction(96, 100) and 1 / b <= p.privacy.eps.low, "the likelihood ratio")

    def moment(i: int, last: int | None) -> Fraction:
        """The sum of |j|^i w(j) over |j| <= last (None: over all)."""
        steps = i + 2 if last is None else max((last - m.first) // period + 1, 0)  # those that end before the cut
        sizes = [m.first + k * period for k in range(steps)] + [(last or 0) + 1]
        sums = [(2 * s - 1, s * (s - 1), (s - 1) * s * (2 * s - 1) // 3)[i] for s in sizes]
        shares = [*((1 - b) * b**k for k in range(steps)), b**steps]
        return geometric_mean(sums[:-1], b) if last is None else dot(shares, sums)

    total, start = moment(0, last), m.cut - period
    if last:
        must(total > moment(0, None) / 2**10, "a cut that leaves some of the noise")
        edge = (total - moment(0, start) if start >= 0 else total + moment(0, min(-start - 1, last))) / 2
    must(atom + (1 - atom) * edge / total <= p.privacy.delta, "the guarantee at every shift")
    return (1 - atom) * moment(p.q, last) / total * g**p.q + (g * (atom + (1 - atom) / total) if p.q == 1 else g * g)


def cells_value(p: Any, m: Any) -> Fraction:
    """Noise with a weight for each cell, and a tail that falls by b = `decay` from one period of n cells to the next."""
    size, n, tail, b, h = len(m.weights), m.n, len(m.tail), Fraction(m.decay, LIMB), m.sensitivity / m.n
    total, line, q = m.atom + 2 * sum(m.weights) - sum(m.weights[:1]) + 2 * sum(m.tail), m.domain.is_a == "line", p.q
    must(tail in (0, n) and m.weights and 0 < total < COINS and (line or (n == m.sensitivity and not m.atom)), "masses")
    spend((size + 3 * tail) * 20 + n * (2 * size + n + 2 * tail))
    unit, (top, bottom) = LIMB**4, p.privacy.eps.low.as_integer_ratio()
    w = [weight * unit for weight in m.weights] + [0] * (not tail) * (size + n + 2)
    w += [t * (LIMB - m.decay) * m.decay**k * LIMB ** (3 - k) for k in range(4) for t in m.tail]

    def divergence(k: int) -> Fraction:
        """The sum over all i of (w_|i| - E w_|i + k|)+, E below e^eps: far out it is b times what it was n cells before."""
        row = [max(bottom * w[abs(i)] - top * w[abs(i + k)], 0) for i in range(1 - size - k - tail, size + tail)]
        return (sum(row) + sum(row[:tail] + row[::-1][:tail]) * b / (1 - b)) / (bottom * unit)

    g, near = Fraction(2) ** (math.frexp(h)[1] - 41) if line else ONE, p.privacy.sensitivity  # inputs: multiples of g
    reach = Fraction(math.ceil(near / g), math.ceil(h / g)) if near < m.sensitivity else ONE * n
    lost = [divergence(k) for k in range(math.ceil(reach) + 1)]
    lost[-1] -= (math.ceil(reach) - reach) * (lost[-1] - lost[-2])  # between the shifts of cells it is linear
    must(max(lost) + m.atom <= p.privacy.delta * total, "the guarantee at every shift")
    inside = Fraction(m.weights[0], 4) if q == 1 else Fraction(total - m.atom, 12)  # of places within their cells
    value = line * inside + sum(2 * v * a**q for a, v in enumerate(m.weights))
    value += sum(2 * t * geometric_mean([(a + k * n) ** q for k in range(3)], b) for a, t in enumerate(m.tail, size))
    value, power = value / total * h**q, q if line else 1
    share = Fraction(line, 2**40)  # what is sent is at most share (|z| + 3h) from the density's z
    return ((root(value) if power == 2 else value) * (1 + share) + 3 * h * share) ** power


def check_lip(p: Any, m: Any, c: Any) -> Pair:
    """A kernel on categories with a prior; for dual prices nu of the posteriors r a sigma with phi(r) <= nu.r + sigma."""
    privacy, task, prior, e, nu, knots = p.privacy, p.objective.task, p.objective.prior, p.privacy.eps, c.nu, c.knots
    ldp, d, x, w = privacy.is_a == "ldp", len(prior.weights), task.values or [], prior.exact
    own, one_sided = (prior, False) if ldp else (privacy.prior, privacy.lower_only)
    must(p.family.is_a == "all" and not p.constraints and c.is_a == "lip", "all mechanisms, no constraint, dual prices")
    must(p.domain.symbols == prior.categories == own.categories == m.prior.categories, "the prior's categories")
    must((own.weights, own.left_out) == (prior.weights, prior.left_out), "one prior")
    must(len(set(m.labels)) == len(m.labels) == len(m.kernel) and all(map(any, m.kernel)), "a name for each output")
    must(all(sum(column) == COINS for column in zip(*m.kernel, strict=True)), "probabilities that sum to 1")
    must({f"{a.kind}{a.values and len(a.values)}" for a in (task, m.aggregate)} <= {f"sum{d}", "histogramNone"}, "task")
    spend(20 * d * (len(m.kernel) + (5 if ldp else 1) * len(knots) + 2 * len(set(x)) + 4))
    centre = Fraction(float(dot(w, x))) if x else ZERO
    x = [v - centre for v in x]  # the format measures values from the float next to their mean
    square, value = [v * v for v in x] or [ONE] * d, ZERO
    for row in m.kernel:
        joint = [a * k for a, k in zip(w, row, strict=True)]
        below, above = (max(row), min(row)) if ldp else (sum(joint), sum(joint))
        must(below <= min(row) * e.low and (one_sided or max(row) <= above * e.low), "no posterior far off")
        value += cut((dot(joint, square) - (dot(joint, x) ** 2 if x else dot(joint, joint)) / sum(joint)) / COINS, True)
    if c.method == "simplex" and not nu and not knots:
        return value, (2 / e.high - 1 / e.high**2) * (dot(w, square) - (dot(w, x) ** 2 if x else dot(w, w)))
    must(not one_sided and c.method in (("knots",) if x else ("chord", "vertices")) and len(nu) == d, "prices for this")
    ordered = all(len(k) == 2 for k in knots) and all(a[0] <= b[0] for a, b in pairwise(knots))
    must(bool(knots) == (c.method != "vertices") and ordered, "pairs as knots, in order")
    more, less = e.high - 1, 1 - 1 / e.high  # what the others leave, as sum r = 1
    ends = [(max(v / e.high, v * e.high - more), min(v * e.high, v / e.high + less)) for v in w]
    if c.method == "vertices":
        sigma = cone_vertices(prior.weights, e.high, nu) if ldp else vertices_bound(ends, prior.weights, nu)
    elif c.method == "knots":
        sigma = cone_knots(w, e.high, x, nu, knots) if ldp else knots_bound(ends, x, nu, knots)
    else:
        sigma = cone_chord(w, e.high, nu, knots) if ldp else box_bound(ends, nu, knots[0][1])
    return value, dot(w, square) - dot(w, nu) - sigma


def box_bound(ends: list[Pair], nu: list[Fraction], level: Fraction, square: int = 1) -> Fraction:
    """Of square r.r - nu.r: r^2 lies below its chord, what is linear is largest at an end; any level does, as sum r = 1."""
    return level + sum(max(r * (square * r - n - level) for r in both) for both, n in zip(ends, nu, strict=True))


def knots_bound(ends: list[Pair], x: list[Fraction], nu: list[Fraction], knots: list[Any]) -> Fraction:
    """(x.r)^2 = max_t 2 t x.r - t^2; U = l + max over r of (2 t x - nu - l).r is convex in (t, l): below its chords."""
    reach = [s * min(box_bound(ends, [-s * v for v in x], s * level, 0) for level in set(x)) for s in (-1, 1)]  # of x.r
    knots = [(min(knots[0][0], reach[0]), knots[0][1]), *knots, (max(knots[-1][0], reach[1]), knots[-1][1])]
    tops = [(t, box_bound(ends, [n - 2 * t * v for v, n in zip(x, nu, strict=True)], level, 0)) for t, level in knots]
    found = []
    for (a, u), (b, v) in pairwise(tops):
        slope = (v - u) / (b - a) if b > a else ZERO
        t = min(max(slope / 2, a), b)
        found.append(u + slope * (t - a) - t * t)
    return max(found)


def cone_knots(w: Any, e: Fraction, x: list[Fraction], nu: list[Fraction], knots: list[Any]) -> Fraction:
    """The largest over t of sum w max(c, e c), c = 2 t x - t^2 - nu: one choice between two knots, and what it misses."""
    found = [ZERO]
    for a, b in pairwise([min(x), *(t for t, _ in knots if min(x) < t < max(x)), max(x)]):
        s, missed = [], ZERO
        for v, n, weight in zip(x, nu, w, strict=True):
            start, middle, end, top = (2 * t * v - t * t - n for t in (a, (a + b) / 2, b, min(max(v, a), b)))
            s.append(weight * (e if middle > 0 else 1))
            missed += weight * (e - 1) * max(-min(start, end) if middle > 0 else top, ZERO)
        t = min(max(dot(s, x) / sum(s), a), b)
        found.append(2 * t * dot(s, x) - t * t * sum(s) - dot(s, nu) + missed)
    return max(found)


def cone_chord(w: Any, e: Fraction, nu: list[Fraction], knots: list[Any]) -> Fraction:
    """r lies between t w and e t w for a t in [1/e, 1], and is what the others leave; `box_bound` is convex in t."""
    found = []
    for (a, level), (b, _) in pairwise([(1 / e, knots[0][1]), *(k for k in knots if 1 / e < k[0] < 1), (ONE, ZERO)]):
        for t in (a, b):
            low = [1 - e * t * (1 - v) if b * (v + e * (1 - v)) <= 1 else t * v for v in w]
            high = [1 - t * (1 - v) if a * (e * v + 1 - v) >= 1 else e * t * v for v in w]
            found.append(box_bound(list(zip(low, high, strict=True)), nu, level))
    return max(found)


def vertices_bound(ends: list[Pair], weights: list[int], nu: list[Fraction]) -> Fraction:
    """r.r - nu.r is convex: largest where all r but one, which takes the rest, are at a bound."""
    order, found = sorted(range(len(nu)), key=lambda i: (weights[i], nu[i])), []
    groups = [list(group) for _, group in groupby(order, key=lambda i: weights[i])]  # of which cheap ones are high
    spend(20 * len(nu) * math.prod(len(group) + 1 for group in groups))
    for counts in product(*(range(len(group) + 1) for group in groups)):
        high = {i for group, k in zip(groups, counts, strict=True) for i in group[:k]}
        r = [both[i in high] for i, both in enumerate(ends)]
        rest, value, free = 1 - sum(r), dot(r, r) - dot(nu, r), [i for i in range(len(nu)) if i not in high]
        found += [value + rest * (rest + 2 * r[i] - nu[i]) for i in free if 0 <= rest <= ends[i][1] - ends[i][0]]
    return max(found)


def cone_vertices(weights: list[int], e: Fraction, nu: list[Fraction]) -> Fraction:
    """0 or, if above, the largest of r.r - nu.r, r = w s / z: each s is 1 or e there. Sets of high ones grow, heavy ones first.

    r.r - nu.r > sigma where gain = sum (w s)^2 - z (c + sigma z) > 0, c = sum nu w s. A high one adds a (b - c - v z), where
    v = nu + sigma, and two take a a' (v + v') >= 2 u u' away, u = a sqrt(v) (or add as much, if v + v' < 0: half to either b).
    So, by any t, more of them add at most t^2 + sum max(a (b - c - v z) + u^2 - 2 t u, 0), or what is above 0 without t and u.
    """
    bits = max(n.denominator.bit_length() for n in nu) + 128
    (above, below), bits = e.as_integer_ratio(), bits + bits % 2
    order = sorted(range(len(nu)), key=lambda i: (-weights[i], nu[i]))
    w, price = [weights[i] for i in order], [int(nu[i] * 2**bits) for i in order]
    after = [
        next((j for j in range(i, len(w)) if w[j] < w[i]), len(w)) for i in range(len(w))
    ]  # in whose place a cheap one is
    sigma, unit, (squares, prices) = 0, below * sum(w), (int(dot(w, w)), int(dot(w, price)))
    stack = [(0, unit, below**2 * squares, below * prices)]

    @cache
    def further(start: int, sigma: int) -> list[Any]:
        v, a = [n + sigma for n in price[start:]], [n * (above - below) for n in w[start:]]
        b = [(n * (above + below) << bits) - y * x for n, x, y in zip(w[start:], v, a, strict=True)]
        odd = [i for i, x in enumerate(v) if x < -min(v)]
        for i in odd:
            b[i] += sum(a[j] * max(-v[i] - v[j], 0) for j in odd if j != i) // 2 + 1
        return list(zip(a, b, v, [y * math.isqrt(max(x, 0)) for x, y in zip(v, a, strict=True)], strict=True))

    while stack:
        i, z, square, c = stack.pop()
        spend(5 * (len(w) - i) + 5)
        sigma = max(sigma, -((c * z - (square << bits)) // z**2))
        gain, c_now = (square << bits) - z * (c + sigma * z), c + sigma * z
        adds = [(a * (b - c_now - v * z), u) for a, b, v, u in further(i, sigma)]
        if gain + sum(x for x, _ in adds if x > 0) <= 0:
            continue
        near, (low, high) = [((x + u * u) / (unit**2 << bits), u / (unit << bits // 2)) for x, u in adds], (0.0, 0.0)
        high = sum(u for _, u in near)
        for _ in range(12):
            t = (low + high) / 2
            low, high = (t, high) if t < sum(u for x, u in near if x > 2 * t * u) else (low, t)
        best = int(t * 2**60) * unit << bits // 2 - 60
        if gain + best**2 + sum(max(x + u * (u - 2 * best), 0) for x, u in adds) > 0:
            more = w[i] * (above - below)
            stack += [
                (after[i], z, square, c),
                (i + 1, z + more, square + more * w[i] * (above + below), c + more * price[i]),
            ]
    return Fraction(sigma, 2**bits)


class Curve:
    """Places z with a weight w, a curve c and a reach t, linear between the rows (z, w, c, t) at both ends of each piece."""

    def __init__(self, q: int, pieces: list[Any]) -> None:
        self.q, self.pieces, self.upto = q, pieces, cache(self.integrals)
        spend(300 * len(pieces))
        self.starts = [start[0] for start, _ in pieces]
        self.passed = {sign: [start[2] + sign * start[3] for start, _ in pieces] for sign in (-1, 0, 1)}
        parts = [self.part(i, end[0]) for i, (_, end) in enumerate(pieces)]
        self.sums = [[ZERO, *accumulate(column)] for column in zip(*parts, strict=True)]

    def at(self, i: int, z: Any) -> list[Fraction]:
        """The row at a place of the i-th piece."""
        start, end = self.pieces[i]
        share = Fraction(z - start[0]) / (end[0] - start[0])
        return [u + (v - u) * share for u, v in zip(start, end, strict=True)]

    def part(self, i: int, z: Fraction) -> list[Fraction]:
        """Integrals from the i-th piece's start to z: Simpson's rule is exact for cubic polynomials."""
        start, end, found = self.pieces[i][0], self.at(i, z), []
        share = (z - start[0]) / Fraction(6)
        for x, w, c, t in (start, [(u + v) / 2 for u, v in zip(start, end, strict=True)], end):
            found.append((w, wc := w * c, wc * c, w * (t if self.q == 1 else t * t), w * (x - c) ** 2))
        return [(u + 4 * v + w) * share for u, v, w in zip(*found, strict=True)]

    def piece(self, z: Any) -> int:
        """The piece on which a place lies."""
        return max(bisect_right(self.starts, z) - 1, 0)

    def ends(self, a: int, b: int) -> list[Fraction]:
        """The curve at both ends of what lies on one of its pieces."""
        return [self.at(self.piece(Fraction(a + b, 2)), z)[2] for z in (a, b)]

    def integrals(self, z: Fraction) -> list[Fraction]:
        """Integrals up to z."""
        i = self.piece(z)
        return [total[i] + v for total, v in zip(self.sums, self.part(i, z), strict=True)]

    def where(self, y: Fraction, sign: int) -> Fraction:
        """The place where c + sign t, which does not fall, passes y."""
        i = max(bisect_right(self.passed[sign], y) - 1, 0)
        (a, _, c, t), (b, _, d, u) = self.pieces[i]
        low, high = c + sign * t, d + sign * u
        return a + (b - a) * (min(max((y - low) / (high - low), ZERO), ONE) if low < high else Fraction(y > low))

    def excess(self, y: Fraction, z: Fraction) -> Fraction:
        """The integral of w (|y - c|^q - t^q) up to z."""
        mass, first, second, level, _ = self.upto(z)
        if self.q == 2:
            return y * y * mass - 2 * y * first + second - level
        u, v, *_ = self.upto(min(z, self.where(y, 0)))
        return 2 * (y * u - v) - (y * mass - first) - level


def check_kernel(p: Any, m: Any, c: Any) -> Pair:
    """A floor with the quantile function Q, and windows of n cells that start in cell a: what they send, and the kernel dual."""
    n, exact, weight = m.width_cells, m.rule == "mean", (1 - p.mass) / m.width_cells
    path = [end for both in zip(m.lows, m.highs, strict=True) for end in both]
    must(len(m.cells) == len(m.lows) and sum(m.cells) == CELLS and path == sorted(path), "cells, and a nondecreasing Q")
    low, high, (a, b) = p.low + p.width * path[0], p.low + p.width * path[-1], p.outputs or (p.low, p.high)
    step, fine = grid(low, high, 2**40 if exact else 2**4096), grid(p.low, p.high)
    first, last = sorted((math.ceil(low / step), math.floor(high / step)))
    must(m.share == 0.5 and (not exact or fine <= 1), f"this rule {BEYOND}", 2)
    must((a < b and a <= first * step and last * step <= b) or ("unbiased" in p.limits and not p.outputs), "outputs")
    must(p.q == 2 if exact else m.rule == "ends" and "unbiased" not in p.limits, "exact means, for squared errors")
    if exact:
        path = [(min(max(round((p.low + p.width * e) / step), first), last) * step - p.low) / p.width for e in path]
    rows = list(zip(pairwise([0, *accumulate(m.cells)]), zip(path[::2], path[1::2], strict=True), strict=True))
    curve = Curve(p.q, [((a, ONE, u, ZERO), (b, ONE, v, ZERO)) for (a, b), (u, v) in rows])
    starts = sorted({a for edges, _ in rows for e in edges for a in (e, e - n) if 0 <= a <= CELLS - n})

    def mix(integral: Any, a: Fraction) -> Fraction:
        """The mean of something, from its integral up to any cell, where the window starts in a."""
        return p.mass * integral(CELLS) / CELLS + weight * (integral(a + n) - integral(a))

    windows = [(a, b, *curve.ends(a, b), *curve.ends(a + n, b + n)) for a, b in pairwise(starts)]
    steep = weight * max((v - u) / (b - a) for (a, b), (u, v) in rows)
    law = Entry(curve=curve, path=path, mix=mix, n=n, windows=windows, weight=weight, steep=steep, step=step, fine=fine)
    return (mean_value if exact else ends_value)(p, law), kernel_bound(p, c)


def ends_value(p: Any, law: Any) -> Fraction:
    """Where the middle of Q at both ends of the window is the input: the mean loss along inputs, widened by all roundings."""
    low, high = law.path[0], law.path[-1]
    rows = [((a, ONE, (qa + ra) / 2, ZERO), (b, ONE, (qb + rb) / 2, ZERO)) for a, b, qa, qb, ra, rb in law.windows]
    starts, middles = Curve(p.q, rows), [row[2] for piece in rows for row in piece] or [low, high]
    moved = Fraction(max(math.ceil(max(map(abs, middles))), 1), 2**49) + p.rounded * law.fine / p.width / 2
    blur = law.step / p.width + (high - low) / 2**52 + moved
    if same := low == high and not p.rounded and not (p.low + p.width * low) % law.step:  # one number, sent as it is
        moved = ZERO

    def expected(x: Fraction) -> Fraction:
        return law.mix(lambda z: law.curve.excess(x, z), starts.where(x, 0) if rows else ZERO)

    marks = sorted({*middles, *law.path})
    value = ZERO + sum(w * highest(expected, a, b, marks) for a, b, w in p.near(moved))
    if same:
        return value * p.width**p.q
    if p.q == 1:
        return (value + blur + 2 * law.steep) * p.width
    return ((root(value) + blur) ** 2 + 4 * law.steep * (max(high, 1 - low, ONE) + blur)) * p.width**2


def mean_value(p: Any, law: Any) -> Fraction:
    """Where the mean is the input: the largest variance along the starts of windows, and what all roundings add to it."""

    def mean(a: Fraction, power: int = 1) -> Fraction:
        return law.mix(lambda z: law.curve.upto(z)[power], a)

    low, high, added, marks = ZERO, ONE * (CELLS - law.n), ZERO, sorted({ONE * c for w in law.windows for c in w[:2]})
    must(mean(low) <= 0 and mean(high) >= 1, "means that reach both ends of the domain")
    for a, b, qa, qb, ra, rb in law.windows:  # those starts that are tossed between are at most so far apart
        apart = min(2 ** max(min(law.n.bit_length() - 23, (b - a).bit_length() - 13), 0), b - a)
        added = max(added, law.weight * apart**2 * max(ra - qa, rb - qb) * (qb - qa + rb - ra) / (b - a) / 8)
    off = max(law.fine / 2, math.ceil(p.low / law.fine) * law.fine - p.low, p.high - p.high // law.fine * law.fine)
    value = bool(p.points) * 2 * off / p.width * max(law.path[-1], 1 - law.path[0])  # points are rounded
    for *goals, w in p.near(ZERO):
        reach = [[low, high], [low, high]]  # starts below and above that with the first mean, and with the last
        spend(300 * BITS)
        for goal, ends in BITS // 2 * list(zip(goals, reach, strict=True)):
            ends[mean(sum(ends, ZERO) / 2) > goal] = sum(ends, ZERO) / 2
        value += w * highest(lambda a: mean(a, 2) - mean(a) ** 2, reach[0][0], reach[1][1], marks)
    return (value + added) * p.width**2 + law.step**2 / 4 + off**2


def kernel_bound(p: Any, c: Any) -> Fraction:
    """What the certificate proves for every mechanism on the interval: int g dm >= 0 for the floor m, g as below."""
    must(c.is_a == "kernel" and p.domain.is_a == "interval", "multipliers for an interval")
    q, worst, x, points, rays = p.q, p.objective.is_a == "worst-case", c.mesh, c.points, vars(c).get("rays", [])
    tilted, growth = c.centres + c.point_centres + rays, p.privacy.eps.high
    must(not tilted or ("unbiased" in p.limits and q == 2 and len(rays) <= 8), "centres for unbiased mechanisms alone")
    must(len(c.densities) <= 8 and len(points) <= 4096 >= len(x) and x == sorted(set(x)), "few layers, a mesh in order")
    if not worst:
        places = {Fraction(float(v)): (v, chance) for v, chance in p.points}
        shares = groupby(sorted(zip(points, c.weights, strict=True)), key=lambda pair: pair[0])
        kept = all(v in places and sum(w for _, w in pairs) <= places[v][1] for v, pairs in shares)
        must(not c.densities and kept, "points of the prior alone, with its weights at most")
        points = [places[v][0] for v in points]
    centres, middles = (c.centres, c.point_centres) if tilted else ([x] * len(c.densities), points)
    atoms = [atom for atom in zip(c.weights, c.point_reaches, middles, points, strict=True) if atom[0]]
    layers, marks = [], {ZERO, *(b for _, b in rays), *(v for _, t, c, _ in atoms for v in (c - t, c, c + t))}
    for lam, centre, t in zip(c.densities, centres, c.reaches, strict=True):
        ends = [[a + sign * b for a, b in zip(centre, t, strict=True)] for sign in (-1, 0, 1)]
        layers.append(Curve(q, list(pairwise(zip(x, lam, centre, t, strict=True)))))
        must(layers[-1].pieces and all(row == sorted(row) for row in ends), "favoured outputs that move upwards")
        marks |= {v for row in ends for v in row}
    mass, first, _, nu, off = (sum(curve.sums[i][-1] for curve in layers) + ZERO for i in range(5))
    value = nu - off + sum(w * (t**q - (v - c) ** 2) for w, t, c, v in atoms) + sum(s * ((s > 0) - b) for s, b in rays)
    prior, mean = mass + sum(w for w, *_ in atoms), first + sum(w * c for w, _, c, _ in atoms)

    def g(y: Fraction) -> Fraction:
        """-g(y): the integral of r(x, y) over all inputs, and e^eps - 1 times as much of it over those that favour y."""
        r = [w * (abs(y - c) ** q - t**q) for w, t, c, _ in atoms] + [s * (b - y) for s, b in rays]
        whole, near = sum(r, ZERO), sum(min(v, ZERO) for v in r)
        for curve in layers:
            whole += curve.excess(y, x[-1])
            near += curve.excess(y, curve.where(y, -1)) - curve.excess(y, curve.where(y, 1))
        return -(whole + (growth - 1) * near)

    low, high = ((v - p.low) / p.width for v in p.outputs or (p.low, p.high))
    low, high = (low, high) if tilted else (min(max(v, ZERO), ONE) for v in (low, high))
    if tilted and not p.outputs:  # beyond the marks g is a parabola, with a vertex:
        marks |= {(mean + sum(s * growth ** ((s > 0) == up) for s, _ in rays) / 2) / prior for up in (0, 1)}
        low, high = min(marks), max(marks)
    lost = highest(g, low, max(high, low + ONE / 2**80), sorted(marks), 100 + 20 * len(atoms) + 1500 * len(layers))
    return (value - lost) / (prior if worst else 1) * p.width**q


def prove(raw: bytes) -> str:
    """The statement that the bytes of a file prove."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        must(len({name for name, _ in pairs}) == len(pairs), "an entry is named twice", 2)
        return dict(pairs)

    spend(len(raw) // 10)
    s = read(json.loads(raw[:SIZE], object_pairs_hook=once, parse_constant=Fraction), "solution")
    p, m, c, d, kind = s.problem, s.mechanism, s.certificate, s.problem.domain, s.problem.domain.is_a
    loss, prior = (vars(p.objective).get(name) for name in ("loss", "prior"))
    p.limits = {constraint.is_a: constraint for constraint in p.constraints}
    outputs, interval = p.limits.get("outputs"), kind == "interval" and p.family.is_a == "all"
    must(s.optdp.format == 2 and len(p.limits) == len(p.constraints), "the format must be 2, constraints distinct", 2)
    must((kind == "alphabet") == (loss is None or loss.is_a == "matrix"), "an objective for this domain")
    must(c.is_a in ("bathtub", "constant", "finite") or p.privacy.eps.low <= exp(ONE * 30, True), "eps up to 30")
    routine = check_finite if loss else check_lip
    if kind != "alphabet":
        must(loss.exponent in (1, 2) and not (interval and prior == "uniform"), f"this loss or prior {BEYOND}", 2)
        p.q, p.points, p.rounded, routine = int(loss.exponent), [], False, check_additive
        if kind in ("interval", "circle"):
            routine = check_kernel if interval and m.is_a == "KernelMechanism" else check_piecewise
            p.low, p.width = (d.lower, d.upper - d.lower) if kind == "interval" else (d.start, d.period)
            p.high, p.outputs = Fraction(float(p.low + p.width)), (outputs.low, outputs.high) if outputs else None
            must(p.low < p.high and 2.0**-1000 < p.width < 2**1024, "the ends of the domain must be in order", 2)
            p.mass, p.share = Fraction(m.floor_coins, COINS), Fraction(m.width_cells, CELLS)
            must(p.privacy.is_a == "ldp" and m.domain == d, "LDP, and a mechanism on the problem's domain")
            must(p.share == 1 or 1 - p.mass <= (p.privacy.eps.low - 1) * p.mass * p.share, "the likelihood ratio")
            p.near = lambda r: [(max(x - r, ZERO), min(x + r, ONE), w) for x, w in p.points] or [(ZERO, ONE, ONE)]
        if interval and prior:
            must(all(type(v) is not str and p.low <= v <= p.high for v in prior.categories), "a prior on the domain")
            p.rounded = any(Fraction(float(v)) != v for v in prior.categories)
            p.points = list(zip([(Fraction(v) - p.low) / p.width for v in prior.categories], prior.exact, strict=True))
    value, bound = routine(p, m, c)
    must(value <= s.value, "the mechanism attains the value")
    must(0 <= s.lower_bound <= min(s.value, max(bound, ZERO)), "the optimum is at least the lower bound")
    end = ", in ".join(k.said for k in p.constraints) or ("any outputs" if kind == "alphabet" else "itself")
    said = f"the least {p.objective.said} over all {p.privacy.said} mechanisms from {d.said} to {end} {p.family.said}"
    return f"{said.strip()}\n     is at least {float(s.lower_bound)!r} and at most {float(s.value)!r}, attained"


def check(raw: bytes, limit: int = LIMIT) -> tuple[int, str]:
    """(exit status, what is printed) for the bytes of a file."""
    LEFT[:] = limit, 1
    try:
        return 0, f"yes: {prove(raw)}"
    except Answer as answer:
        return answer.args[0], answer.args[1]
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError, RecursionError) as error:
        return 2, f"cannot check: malformed ({type(error).__name__})"


def main() -> int:
    """The command line."""
    command = argparse.ArgumentParser(description=__doc__)
    command.add_argument("file")
    command.add_argument("--limit", type=float, default=LIMIT / 1e6, help="millions of steps (default: 10)")
    arguments = command.parse_args()
    try:
        with open(arguments.file, "rb") as stream:
            status, said = check(stream.read(SIZE + 1), int(arguments.limit * 1e6))
    except (OSError, OverflowError, ValueError) as error:
        status, said = 2, f"cannot check: {error}"
    print(said, file=sys.stderr if status == 2 else sys.stdout)
    return status


if __name__ == "__main__":
    sys.exit(main())

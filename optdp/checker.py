#!/usr/bin/env python3
"""A second opinion on a saved solution: `python checker.py solution.json`, with Python's standard library alone.

This file shares no line with the rest of optdp. It reads the format in docs/format.md, proves the bracket again in rational
arithmetic, and prints the statement that is then true. What it does not know (see there) it says to be not known here. Exit
status: 0 proven, 1 not proven, 2 not readable, not known here, or more work than the limit (`--limit` millions of steps).
"""

import argparse
import json
import math
import re
import sys
from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import accumulate, pairwise
from types import SimpleNamespace as Entry
from typing import Any

#: Significant bits of enclosures; steps of about a microsecond before a proof is given up; bytes that a file may have.
BITS, LIMIT, SIZE = 256, 10_000_000, 200_000_000
CELLS, COINS, LIMB, LEFT = 2**50, 2**124, 2**62, [LIMIT]
ZERO, ONE = Fraction(0), Fraction(1)


class Answer(Exception):
    """Ends a proof: the exit status and what is printed."""


def must(condition: Any, what: str, status: int = 1) -> None:
    """Go on if the condition holds; otherwise something is not proven (1), or not readable or not known here (2)."""
    if not condition:
        raise Answer(status, f"{'no: not true or not proven' if status == 1 else 'cannot check'}: {what}")


def spend(steps: int) -> None:
    """Count what the sizes in a file ask for, before it is done."""
    LEFT[0] -= steps
    must(LEFT[0] >= 0, "the proof takes more work than the limit, which --limit raises", 2)


# --- enclosures: rationals of about BITS bits next to irrational numbers, not above them, or (`up`) not below


def cut(q: Fraction, up: bool) -> Fraction:
    """A rational of about BITS bits next to q; q itself where it is short."""
    if (size := q.numerator.bit_length() + q.denominator.bit_length()) <= BITS:
        return q
    unit = Fraction(2) ** (2 * q.numerator.bit_length() - size - BITS)
    return (math.ceil(q / unit) if up else q // unit) * unit


def exp(x: Fraction, up: bool) -> Fraction:
    """e^x for x >= 0, halved until it is small: terms of the series, `up` with more than what they leave, and squares."""
    halvings, total, term = int(x).bit_length() + 8, ONE, ONE
    for k in range(1, 32):
        term = cut(term * x / 2**halvings / k, up)
        total += term * (1 + (up and k == 31))
    for _ in range(halvings):
        total = cut(total * total, up)
    return total


def power(base: Fraction, q: Fraction, up: bool) -> Fraction:
    """base^q for base >= 0, q > 0: by square roots for the binary digits of q behind the point."""
    whole, rest = divmod(q, 1)
    total, places = cut(base**whole, up) if base else ZERO, BITS if base else 0
    while rest and places:
        shift, places = BITS + base.denominator.bit_length(), places - 1
        base = cut(Fraction(math.isqrt((base.numerator << 2 * shift) // base.denominator) + up, 1 << shift), up)
        digit, rest = divmod(2 * rest, 1)
        total = cut(total * base**digit, up)
    return total if not rest else cut(total * (max(base, ONE) if up else min(base, ONE)), up)


# --- what a file holds

#: Each line: a part of a file, its type, its entries and their kinds ("*": a list of, "|": or this word; "ideal" may be absent),
#: and how statements write it. Kinds are parts, RANGES (the types of the ends are those of the numbers), eps, flag, text,
#: label (a text or a number) and any.
FORMAT = r"""
solution - optdp:head problem:problem value:real lower_bound:real mechanism:mechanism certificate:certificate program:any
head - format:whole version:text
problem problem privacy:privacy domain:domain objective:objective family:family constraints:*constraint
privacy ldp eps:eps ideal:flag -- {eps}-LDP
privacy approx eps:eps delta:rational sensitivity:scale ideal:flag -- ({eps}, {delta})-DP
privacy lip eps:eps prior:prior lower_only:flag ideal:flag -- {eps}-LIP
domain interval lower:real upper:real -- [{lower}, {upper}]
domain circle period:real start:real -- the circle of period {period} written from {start}
domain line -- the real line
domain integers -- the integers
domain alphabet symbols:*label -- the alphabet {{{symbols}}}
objective worst-case loss:loss -- worst-case E{loss}
objective average loss:loss prior:prior|uniform -- average E{loss} under {prior}
objective at loss:loss x:real -- E{loss} at x = {x}
objective bayes-risk task:task prior:prior -- mean square error of the best estimate of {task}, under {prior},
task aggregate kind:text values:*real|null
prior prior weights:*whole categories:*label left_out:*text given:*whole -- the prior
loss power exponent:exponent -- |Y - x|^{exponent}
loss huber corner:scale -- [H(|Y - x|) with the Huber function of corner {corner}]
loss threshold limit:positive -- [1[|Y - x| > {limit}]]
loss matrix rows:**real -- [L(x, Y) with L = [{rows}]]
loss pieces breaks:*rational coefficients:**rational
family all
family additive -- that add noise which does not depend on the input
family piecewise m:pieces -- whose density at every input consists of {m} pieces with the same heights in the same order
constraint unbiased
constraint outputs low:real high:real -- [{low}, {high}]
mechanism PiecewiseMechanism domain:domain width_cells:cells floor_coins:coins placement:text
mechanism FiniteMechanism domain:domain outputs:*label weights:**whole
mechanism LIPMechanism prior:prior kernel:**whole aggregate:task labels:*label
mechanism KernelMechanism domain:domain cells:*cells lows:*real highs:*real width_cells:cells floor_coins:coins \
    rule:text share:share
mechanism AdditiveMechanism domain:domain sensitivity:scale n:count weights:*whole atom:whole tail:*whole decay:limb \
    eps:eps
mechanism LatticeStaircase domain:domain sensitivity:scale decay:fall first:cells cut:limb atom:limb
certificate bathtub threshold:positive
certificate constant
certificate staircase threshold:positive
certificate finite weights:*positive masses:*real
certificate additive n:shift rounding:text multipliers:*multiplier
certificate lip method:text nu:*real knots:**real
certificate kernel mesh:*share densities:**height reaches:**height centres:**place \
    points:*share weights:*height point_reaches:*height point_centres:*place
multiplier - shift:shift weight:positive first:index values:*positive rest:positive
"""
RANGES: dict[str, Any] = {
    "real": (-1.7e308, 1.7e308), "positive": (0.0, 1.7e308), "scale": (1e-150, 1e150), "exponent": (0.01, 100.0),
    "share": (0.0, 1.0), "height": (0.0, 2.0**60), "place": (-(2.0**60), 2.0**60), "count": (1, 10**6),
    "pieces": (2, 10**6), "whole": (0, COINS), "cells": (1, CELLS), "coins": (1, COINS), "limb": (0, LIMB - 1),
    "fall": (1, 2**80 - 1), "shift": (1, 10**5), "index": (-200_000, 200_000), "rational": (-ONE * 2**1000, ONE * 2**1000),
}  # fmt: skip
TEXTS = {int: "-?[0-9]{1,2600}", Fraction: "[+-]?([0-9]+(/0*[1-9][0-9]*)?|[0-9]*[.][0-9]+)", float: "(?!)"}
PARTS: dict[str, Any] = {}
for _head, _, _said in (line.partition(" -- ") for line in FORMAT.replace("\\\n", "").strip().splitlines()):
    _part, _type, *_entries = _head.split()
    PARTS.setdefault(_part, {})[_type] = dict(entry.split(":") for entry in _entries), _said


def leaf(value: Any, kind: str) -> Any:
    """A number, text or flag; None if it is none of this kind. Exact numbers are floats, "p/q" or decimal texts."""
    number, text = type(value) in (int, float) and abs(value) <= 1.7e308, value if isinstance(value, str) else ""
    if kind in ("flag", "text", "label"):
        return value if isinstance(value, bool if kind == "flag" else str) or (number and kind == "label") else None
    if kind == "eps":
        inner = re.fullmatch(r"log\((.*)\)", text)
        q = leaf(inner[1] if inner else value, "rational")
        if q is None or not (q >= 1 if inner else 0 <= q <= 1000):
            return None
        low, high = (q, q) if inner else (exp(q, False), exp(q, True))
        shown = f"log({q})" if inner else text or repr(float(value))
        return Entry(low=low, high=high, said=shown, factor=str(q) if inner else f"e^{shown}")
    low, high = RANGES[kind]
    known = type(value) is int or (number and type(low) is not int) or re.fullmatch(TEXTS[type(low)], text)
    found = type(low)(value) if known else None
    return found if found is not None and low <= found <= high else None


def read(value: Any, kind: str) -> Any:
    """What the format says is there: an `Entry` for a part, with how it is said; a list, a number, a text or a flag."""
    kind, _, other = kind.partition("|")
    if kind == "any" or (other and value == (None if other == "null" else other)):
        return value
    if kind[0] == "*":
        must(isinstance(value, list) and len(value) <= 10**6, f"a list ({kind}) is none, or is too long", 2)
        return [read(entry, kind[1:]) for entry in value]
    if kind not in PARTS:
        found = leaf(value, kind)
        must(found is not None, f"an entry of the kind {kind} is none, or out of range", 2)
        return found
    must(isinstance(value, dict), f"a {kind} is not an object", 2)
    tag = "-" if "-" in PARTS[kind] else "mechanism" if kind == "mechanism" else "type"
    entries, said = PARTS[kind].get(str(value.get(tag, tag)), (None, ""))
    must(entries is not None, f"a {kind} is of a {tag} that is not known here", 2)
    names = {*entries, tag} - {"-"}
    must(names >= set(value) >= names - {"ideal"}, f"a {kind} has the entries {sorted(names)} and no others", 2)
    found = Entry(is_a=value.get(tag), ideal=False)
    vars(found).update({name: read(value[name], inner) for name, inner in entries.items() if name in value})
    if kind == "prior":
        named, weights = found.categories + found.left_out, found.weights
        good = len(set(named)) == len(named) and len(found.categories) == len(weights) > 1 and min(weights) > 0
        good = good and len(found.given) in (0, len(weights)) and all(i < len(named) for i in found.given)
        must(good, "a prior has distinct categories, with positive weights", 2)
        found.exact = [Fraction(w, sum(weights)) for w in weights]
    found.said = phrase(found, said)
    return found


def spoken(value: Any) -> str:
    """An entry in a statement: integral floats without the point, long lists by their first entries."""
    if isinstance(value, list):
        between = "; " if value and isinstance(value[0], list) else ", "
        return between.join(map(spoken, value[:16])) + (f", ... ({len(value)} in all)" if len(value) > 16 else "")
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(getattr(value, "said", value))


def phrase(part: Any, line: str) -> str:
    """How statements write a part: its line of FORMAT, with what depends on the entries."""
    words = {name: spoken(value) for name, value in vars(part).items()}
    if part.is_a == "power" and part.exponent in (1, 2):
        return "|Y - x|" if part.exponent == 1 else "(Y - x)^2"
    if part.is_a == "pieces":
        sums = [" + ".join(f"{a}" + f" d^{k}" * (k > 0) for k, a in enumerate(row) if a) for row in part.coefficients]
        told = [f"{row or 0} from d = {start}" for row, start in zip(sums, part.breaks, strict=True)]
        return f"[L(|Y - x|), L(d) = {'; '.join(told)}]"
    if part.is_a == "alphabet":
        words["symbols"] = spoken([s if str(s).isidentifier() else ascii(s) for s in part.symbols])
    if part.is_a == "approx" and part.delta == float(part.delta):
        words["delta"] = repr(float(part.delta))
    if part.is_a == "prior":
        shown = spoken(part.exact) if sum(part.weights) < 10**12 else f"{spoken(part.weights)} over their sum"
        plain = part.categories == list(range(len(part.weights)))
        names = "" if plain else f" of {spoken([ascii(c) for c in part.categories])}"
        left = f", where {spoken([ascii(c) for c in part.left_out])} is left out" if part.left_out else ""
        return f"the prior ({shown}){names}{left}"
    if part.is_a == "aggregate":
        many = f"the user's value, one of ({words['values']}) by category"
        return many if part.values is not None else "each user's entry in a histogram"
    return line.format(**words | ({"prior": "the uniform prior"} if words.get("prior") == "uniform" else {}))


def statement(p: Any) -> str:
    """What the optimum of the problem is of, in one sentence."""
    privacy, family, end, clause = p.privacy, p.family.said, "itself", ""
    adjective = "unbiased " * ("unbiased" in p.limits) + "one-sided " * getattr(privacy, "lower_only", False)
    if privacy.is_a == "approx":
        clause = f", where neighbours are inputs at most {privacy.sensitivity!r} apart"
    if privacy.is_a == "lip":
        clause = " (asked: posterior >= e^-eps prior)" * privacy.lower_only + f", with {privacy.prior.said}"
    if p.domain.is_a == "alphabet":
        end = "any outputs" if p.objective.is_a == "bayes-risk" else f"{len(p.objective.loss.rows[0])} outputs"
    elif p.domain.is_a == "interval":
        end = "the real line" if "unbiased" in p.limits else p.domain.said
    if "outputs" in p.limits and p.limits["outputs"].said != p.domain.said:
        end = p.limits["outputs"].said
    if p.family.is_a == "piecewise":
        family += f", none more than {privacy.eps.factor} times another"
    who = f"{adjective}{privacy.said} mechanisms from {p.domain.said} to {end}{family and ' ' + family}{clause}"
    return f"the least {p.objective.said} over all {who}{', in real arithmetic' if privacy.ideal else ''}"


def load(raw: bytes) -> Any:
    """A solution from the bytes of its file, and what follows from its entries."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        must(len({name for name, _ in pairs}) == len(pairs), "an entry is named twice", 2)
        return dict(pairs)

    try:
        s = read(json.loads(raw[:SIZE], object_pairs_hook=once, parse_constant=Fraction), "solution")
    except (ValueError, RecursionError) as error:
        raise Answer(2, f"cannot check: it is not JSON: {str(error)[:100]}") from None
    p, d = s.problem, s.problem.domain
    p.limits = {constraint.is_a: constraint for constraint in p.constraints}
    limit, distinct = p.limits.get("outputs", Entry(low=0, high=1)), len(p.limits) == len(p.constraints)
    must(s.optdp.format == 2 and distinct and limit.low < limit.high, "the format must be 2, constraints distinct", 2)
    if d.is_a in ("interval", "circle"):
        p.low, p.high = (d.lower, d.upper) if d.is_a == "interval" else (d.start, d.start + d.period)
        p.width = Fraction(p.high) - Fraction(p.low) if d.is_a == "interval" else Fraction(d.period)
        must(p.low < p.high < math.inf and 2.0**-1000 < p.width < 2**1024, "the ends of the domain must be in order", 2)
    return s


# --- what the proofs share: each gives a number not below what the mechanism attains, and one not above the optimum


def fractions(row: Any) -> list[Fraction]:
    """Numbers, exactly."""
    return [Fraction(v) for v in row]


def dot(a: Any, b: Any) -> Fraction:
    """The sum of products."""
    return sum((v * w for v, w in zip(a, b, strict=True)), ZERO)


def horner(row: Any, d: Fraction) -> Fraction:
    """The polynomial with these coefficients."""
    total = ZERO
    for a in reversed(row):
        total = total * d + a
    return total


def bernstein(values: list[Fraction]) -> list[Fraction]:
    """Bernstein coefficients of the polynomial with these values at 0, 1/n, ..., 1: Newton's differences multiplied out."""
    n, rows = len(values) - 1, [values]
    while len(rows[-1]) > 1:
        rows.append([b - a for a, b in pairwise(rows[-1])])
    found = [rows[n][0]]
    for j in reversed(range(n)):  # times (n t - j)/(j + 1), and the j-th difference more
        size, wide = len(found), [ZERO, *found, ZERO]
        steps = [i * (n - j) * wide[i] - (size - i) * j * wide[i + 1] for i in range(size + 1)]
        found = [rows[j][0] + step / (size * (j + 1)) for step in steps]
    return found


def highest(function: Any, marks: list[Any], best: Any = None, degree: int = 4, cost: int = 400) -> Fraction:
    """Not below a continuous function that is a polynomial between marks, nor below `best`: Bernstein coefficients, halved."""
    spend(degree * len(marks) * cost)
    first, left = function(marks[0]), 4000
    for a, b in pairwise(marks):
        values = [first, *(function(a + (b - a) * k / degree) for k in range(1, degree + 1))]
        first, fine = values[-1], max(map(abs, values)) / 2**70
        best, todo = max(values if best is None else [best, *values]), [bernstein(values)]
        while todo:
            row = todo.pop()
            if max(row) <= best:
                continue
            left -= 1
            if left < 0 or max(row) <= max(row[0], row[-1]) + fine:
                best = max(row)
                continue
            spend(200)
            triangle = [row]
            while len(triangle[-1]) > 1:
                triangle.append([(u + v) / 2 for u, v in pairwise(triangle[-1])])
            todo += [[r[0] for r in triangle], [r[-1] for r in reversed(triangle)]]
    return first if best is None else best


def crossing(holds: Any, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """Two numbers next to each other, between which what holds at `low` ceases to hold."""
    for _ in range(BITS):
        middle = (low + high) / 2
        low, high = (middle if (kept := holds(middle)) else low), (high if kept else middle)
    return low, high


def geometric_mean(function: Any, degree: int, b: Fraction) -> Fraction:
    """E f(J) of a polynomial, P(J = k) = (1 - b) b^k: its differences at 0 times E binomial(J, i) = (b/(1 - b))^i."""
    row, total = [function(k) for k in range(degree + 1)], ZERO
    for i in range(degree + 1):
        total += row[0] * (b / (1 - b)) ** i
        row = [v - u for u, v in pairwise(row)]
    return total


def grid(low: Any, high: Any, most: int = 2**4096) -> Fraction:
    """The least power of two v from 2^-1074 on with both ends at most 2^53 v from 0, and at most `most` v apart."""
    v = Fraction(2) ** -1074
    while max(abs(low), abs(high)) > v * 2**53 or high - low > v * most:
        v *= 2
    return v


def floor_and_window(p: Any, m: Any) -> tuple[Fraction, Fraction]:
    """The probability of the floor and the window's share of cells, once the likelihood ratio is within e^eps."""
    mass, share = Fraction(m.floor_coins, COINS), Fraction(m.width_cells, CELLS)
    must(p.privacy.is_a == "ldp" and m.domain == p.domain, "LDP, and a mechanism on the problem's domain")
    must((1 if share == 1 else 1 + (1 - mass) / (mass * share)) <= p.privacy.eps.low, "the likelihood ratio")
    return mass, share


# --- densities of pieces on intervals and circles


class Loss:
    """A loss that does not fall with the distance d: d^q, or polynomials on pieces."""

    def __init__(self, loss: Any, reach: Fraction) -> None:
        must(loss.is_a in ("power", "huber", "threshold", "pieces"), "a loss of the distance")
        self.q = Fraction(loss.exponent) if loss.is_a == "power" else None
        self.parts: list[Any] = []  # (start, polynomial, its integral from distance 0 on)
        starts, rows, total = [ZERO], [[ONE]], ZERO
        if loss.is_a == "huber":
            corner = Fraction(loss.corner)
            starts, rows = [ZERO, corner], [[ZERO, ZERO, ONE / 2], [-corner * corner / 2, corner]]
        elif loss.is_a == "threshold" and loss.limit:
            starts, rows = [ZERO, Fraction(loss.limit)], [[ZERO], [ONE]]
        elif loss.is_a == "pieces":
            starts, rows = loss.breaks, [row or [ZERO] for row in loss.coefficients]
        must(len(rows) == len(starts) <= 1000 and max(map(len, rows)) <= 32 and starts[0] == 0, "a row for each piece")
        last = rows[0][0]  # L before each start; far beyond the domain it does not matter what it does
        for row, start, end in zip(rows, starts, [*starts[1:], max(starts[-1], reach) + 3 * reach], strict=True):
            slope = [k * a for k, a in enumerate(row)][1:] or [ZERO]
            rises = highest(lambda d, slope=slope: -horner(slope, d), [start, end], ZERO, len(row), 20) == 0
            must(start < end and 0 <= last <= horner(row, start) and rises, "a loss >= 0 that does not fall")
            primitive = [ZERO, *(a / (k + 1) for k, a in enumerate(row))]
            primitive[0], last = total - horner(primitive, start), horner(row, end)
            self.parts.append((start, row, primitive))
            total = horner(primitive, end)

    def piece(self, d: Fraction, which: int) -> Fraction:
        """The value (1) or the integral from 0 (2) of exact pieces."""
        return horner(next(part[which] for part in reversed(self.parts) if part[0] <= d), d)

    def integral(self, d: Fraction, up: bool) -> Fraction:
        """From 0 to d; 0 below 0."""
        if self.q is None or d <= 0:
            return self.piece(d, 2) if d > 0 else ZERO
        return power(d, self.q + 1, up) / (self.q + 1)

    def deficit(self, t: Fraction, reach: Fraction) -> Fraction:
        """Not below the integral of (t - L)_+ from 0 to reach."""
        if self.q is not None:
            low, high = (min(power(t, 1 / self.q, up), reach) for up in (False, True))
        elif self.piece(reach, 1) <= t or t < self.piece(ZERO, 1):
            low = high = reach if self.piece(reach, 1) <= t else ZERO
        else:
            low, high = crossing(lambda d: self.piece(d, 1) <= t, ZERO, reach)
        return t * high - self.integral(low, False)


def numbers_value(p: Any, loss: Loss, linear: bool, width: Fraction) -> Fraction:
    """Not below the mean loss, at the worst input, of the numbers that a window sends: multiples of a power of two v, all floats.

    From one number to the next L rises: the mean over distances v (k to k + 1) is not below L(v k). An input on the lattice has
    its n numbers at distances up to 0, v, ..., (n - 1) v; one between two numbers, or beyond the last, is further from them.
    """
    v = grid(p.low, p.high)
    first, last = math.ceil(Fraction(p.low) / v), math.floor(Fraction(p.high) / v)
    n = math.ceil(width * (last - first + 1))

    def over(a: Fraction, b: Fraction) -> Fraction:
        return loss.integral(b, True) - loss.integral(a, False)

    if p.domain.is_a == "circle":
        off, half = max(p.width - (last - first + 1) * v, ZERO) + v, n // 2  # the seam, and half a step
        return (over(off, (n - half) * v + off) + (over(v + off, (half + 1) * v + off) if half else 0)) / (n * v)
    off = max(first * v - Fraction(p.low), Fraction(p.high) - last * v, v / 2 * linear)
    total, beside = over(off, n * v + off), 2 * over(2 * v, 3 * v)
    if loss.integral((n - 2) * v, False) - loss.integral((n - 3) * v, True) < beside:
        total += beside
    if n <= 256:
        total = min(total, sum((2 * over(k * v - v / 2 + off, k * v + off) for k in range(1, n + 1)), ZERO))
    return total / (n * v)


def check_piecewise(p: Any, m: Any, c: Any) -> tuple[Fraction, Fraction]:
    """A floor and a window whose heights all inputs share; the bathtub inequality seen from the worst input."""
    circle, shared = p.domain.is_a == "circle", p.family.is_a == "piecewise"
    must(m.is_a == "PiecewiseMechanism" and m.placement in ("centred", "linear")[: 2 - circle], "a density of pieces")
    spend(20_000)
    mass, width = floor_and_window(p, m)
    averaged = circle and p.objective.is_a == "average" and p.objective.prior == "uniform"
    must(p.objective.is_a == "worst-case" or averaged, "the worst case (on a circle, or the average) is asked for")
    wide = [(k.low, k.high) for k in p.constraints if k.is_a == "outputs" and k.low <= p.low and p.high <= k.high]
    must(len(wide) == len(p.constraints), "no constraint but wide outputs")
    pieces = 1 if width == 1 else 2 if circle else 3
    must(p.family.is_a == "all" or (shared and 2 <= p.family.m >= pieces), "the number of pieces")
    loss, reach = Loss(p.objective.loss, p.width), p.width / 2 if circle else p.width
    far, near = (numbers_value(p, loss, m.placement == "linear", share) for share in (ONE, width))
    value, t = mass * far + (1 - mass) * near, Fraction(getattr(c, "threshold", 0))
    if c.is_a == "kernel":
        return value, kernel_bound(p, c)
    must(wide in ([], [(p.low, p.high)]), "no constraint")
    if c.is_a == "constant":
        must(shared and p.family.m == 2 and not circle, "two pieces on an interval")
        return value, loss.integral(reach, False) / reach
    must(c.is_a == "bathtub" and (shared or circle), "heights that inputs share (on a circle: any mechanism)")
    surplus = loss.integral(reach, False) - t * reach
    must(surplus >= (p.privacy.eps.high - 1) * loss.deficit(t, reach), "the threshold")
    return value, t


# --- finite alphabets


def check_finite(p: Any, m: Any, c: Any) -> tuple[Fraction, Fraction]:
    """A table of probabilities; the dual of the linear program, output by output."""
    rows, eps, worst = p.objective.loss.rows, p.privacy.eps, p.objective.is_a == "worst-case"
    count, columns = len(p.domain.symbols), len(rows[0])
    spend(30 * count * columns + 1000)
    must(p.privacy.is_a == "ldp" and p.family.is_a == "all" and not p.constraints, "LDP, all mechanisms, no constraint")
    must(worst or p.objective.is_a == "average", "the worst case or an average is asked for")
    must(m.is_a == "FiniteMechanism" and m.domain == p.domain, "a table for this alphabet")
    must(len(set(m.outputs)) == len(m.outputs) == columns, "a name for each output")
    must(len(m.weights) == len(rows) == count > 1, "a row for each symbol")
    must(all(len(row) == columns and sum(row) == LIMB for row in m.weights), "rows that sum to 1")
    must(all(max(column) <= min(column) * eps.low for column in zip(*m.weights, strict=True)), "the likelihood ratios")
    must(all(len(row) == columns and min(row) >= 0 for row in rows), "a matrix of losses >= 0")
    must(c.is_a == "finite" and (worst or not c.weights), "multipliers, without weights where a prior gives them")
    lam, nu, exact = fractions(c.weights), fractions(c.masses), [fractions(row) for row in rows]
    if not worst:
        prior, uniform = p.objective.prior, p.objective.prior == "uniform"
        share = dict.fromkeys(p.domain.symbols, Fraction(uniform, count))
        share |= {} if uniform else dict(zip(prior.categories, prior.exact, strict=True))
        must(len(share) == count, "a prior on the alphabet")
        lam = list(share.values())
    losses = [dot(w, v) / LIMB for w, v in zip(m.weights, exact, strict=True)]
    must(len(lam) == len(nu) == count and sum(lam) > 0, "a multiplier for each symbol")
    excess = [[a * v - b for a, v, b in zip(lam, column, nu, strict=True)] for column in zip(*exact, strict=True)]
    least = min([ZERO, *(sum(r) + (eps.high - 1) * sum(min(v, ZERO) for v in r) for r in excess)])
    return max(losses) if worst else dot(lam, losses), (sum(nu) + least) / sum(lam)


# --- additive noise


def check_additive(p: Any, m: Any, c: Any) -> tuple[Fraction, Fraction]:
    """Noise on cells or on a lattice; the dual of the lattice program, or for delta = 0 the staircase's."""
    privacy, loss, discrete = p.privacy, p.objective.loss, p.domain.is_a == "integers"
    must(privacy.is_a == "approx" and loss.is_a == "power", "(eps, delta)-privacy, a power of the distance")
    must(m.is_a in ("AdditiveMechanism", "LatticeStaircase"), "additive noise")
    q, width = Fraction(loss.exponent), Fraction(privacy.sensitivity)
    must(p.family.is_a == "additive" and not set(p.limits) - {"unbiased"}, "additive noise, which is unbiased")
    must(0 <= privacy.delta < 1 < privacy.delta + privacy.eps.high, "a guarantee that noise can have")
    must(m.domain == p.domain and width <= m.sensitivity, "noise on this domain for neighbours this far apart")
    must(not discrete or width.denominator == 1, "an integer as sensitivity on the integers")
    value = (cells_value if m.is_a == "AdditiveMechanism" else staircase_value)(m, q, privacy, discrete)
    if c.is_a == "staircase":
        must(privacy.delta == 0 and not discrete and q in (1, 2), "delta = 0 on the line, abs or squared")
        must(staircase_proves(privacy.eps.high, Fraction(c.threshold) / width ** int(q), int(q)), "the threshold")
        return value, Fraction(c.threshold)
    must(c.is_a == "additive" and c.rounding in ("nodes", "bins"), "multipliers on a lattice")
    must(discrete or q >= 1, "a convex loss, where noise is rounded to the lattice")
    must(not discrete or c.n == (width if c.rounding == "nodes" else 1), "the integers as the lattice")
    return value, lattice_bound(c, q, discrete, privacy) * power(width, q, False)


def staircase_value(m: Any, q: Fraction, privacy: Any, discrete: bool) -> Fraction:
    """The noise g j with the weight w(j): 1 for |j| < first, b times as much for the next `period` points, and so on up to `cut`.

    So w(j) is (1 - b) times the sum of the b^k with |j| < first + k period. A shift by a period raises no weight more than
    1/b times, and moves at most the last period before the cut beyond it.
    """
    b, g = Fraction(m.decay, 2**80), Fraction(2) ** (math.frexp(m.sensitivity)[1] - 41)
    period, atom, last, edge = math.ceil(Fraction(m.sensitivity) / g), Fraction(m.atom, LIMB), m.cut or None, ZERO
    must(not discrete and q in (1, 2), "the mean of |z| or z^2 on the line")
    must(m.first <= period and m.cut < 200 * period, "a first step, and a cut, that are not too far away")
    must(2**-44 < b < Fraction(96, 100) and 1 / b <= privacy.eps.low, "the likelihood ratio")
    spend(20_000)

    def moment(i: int, last: int | None) -> Fraction:
        """The sum of j^i w(j) over 0 <= j <= last (None: over all)."""

        def below(j: int) -> Fraction:
            return Fraction((j, j * (j - 1) // 2, (j - 1) * j * (2 * j - 1) // 6)[i])

        if last is None:
            return geometric_mean(lambda k: below(m.first + k * period), i + 1, b)
        steps = range(max((last - m.first) // period + 1, 0))  # those that end before the cut
        return sum(((1 - b) * b**k * below(m.first + k * period) for k in steps), b ** len(steps) * below(last + 1))

    total = 2 * moment(0, last) - 1
    if last:
        must(moment(0, last) > moment(0, None) / 2**10, "a cut that leaves some of the noise")
        start = last - period
        edge = moment(0, last) - (moment(0, start) if start >= 0 else 1 - moment(0, min(-start - 1, last)))
    must(atom + (1 - atom) * edge / total <= privacy.delta, "the guarantee at every shift")
    rounded = g * (atom + (1 - atom) / total) if q == 1 else g * g  # of the input, to the lattice
    return (1 - atom) * 2 * moment(int(q), last) / total * g ** int(q) + rounded


def cells_value(m: Any, q: Fraction, privacy: Any, discrete: bool) -> Fraction:
    """Noise with a weight for each cell, and a tail that falls by b = `decay` from one period of n cells to the next."""
    size, n, b, h = len(m.weights), m.n, Fraction(m.decay, LIMB), Fraction(m.sensitivity) / m.n
    total, cells = m.atom + 2 * sum(m.weights) - sum(m.weights[:1]) + 2 * sum(m.tail), Fraction(privacy.sensitivity) / h
    must(len(m.tail) in (0, n) and m.weights and 0 < total < COINS, "a distribution")
    must(not discrete or (n == m.sensitivity and not m.atom), "integers as cells")
    last = min(int(cells), max(2 * size, n))
    spend((size + 3 * len(m.tail)) * (20 if q in (1, 2) else 2000) + last * (2 * size + last + 2 * len(m.tail)))
    p, unit = [w * LIMB**4 for w in m.weights], LIMB**4
    p += [t * (LIMB - m.decay) * m.decay**k * LIMB ** (3 - k) for k in range(4) for t in m.tail] + [0] * (
        size + last + 2
    )

    def divergence(k: int) -> Fraction:
        """The sum over all integers i of (p_|i| - E p_|i + k|)+, at a rational E below e^eps; k <= n where there is a tail."""
        top, bottom = privacy.eps.low.as_integer_ratio()

        def part(low: int, high: int) -> Fraction:
            return Fraction(
                sum(max(bottom * p[abs(i)] - top * p[abs(i + k)], 0) for i in range(low, high)), bottom * unit
            )

        if not m.tail:
            return part(-size - k, size)
        # From `size` on, and below -size - k, what follows is b times what was n cells before.
        return part(-size - k + 1, size) + (part(size, size + n) + part(-size - k - n + 1, -size - k + 1)) / (1 - b)

    worst = max((divergence(k) for k in range(1, last + 1)), default=ZERO)
    if last < cells and not discrete:  # linear in the shift from one cell to the next
        on = min(cells - last, ONE)
        worst = max(worst, (1 - on) * (divergence(last) if last else 0) + on * divergence(last + 1))
    must(worst + m.atom <= privacy.delta * total, "the guarantee at every shift")

    def cell(a: int) -> Fraction:
        """Not below the mean of |z/h|^q in the cell at distance a h."""
        if discrete:
            return power(ONE * a, q, True)
        inner = power(a - ONE / 2, q + 1, False) if a else -power(ONE / 2, q + 1, True)
        return (power(a + ONE / 2, q + 1, True) - inner) / (q + 1)

    value, periods, ratio = sum(((1 + (a > 0)) * w * cell(a) for a, w in enumerate(m.weights)), ZERO), 8, ZERO
    while m.tail and q not in (1, 2):  # from one period to the next |z|^q b^k falls at least by `ratio`
        edge = ONE * size + n + periods * n
        spend(2000 * periods * n)
        ratio = b * power((edge + n) / edge, q, True)
        if ratio < (1 + b) / 2 and power(edge, q, True) * b**periods < Fraction(1, 10**25):
            break
        periods *= 2
    for a, t in enumerate(m.tail, size):
        if q in (1, 2):
            value += 2 * t * geometric_mean(lambda k, a=a: cell(a + k * n), int(q), b)
        else:
            near = sum((cut(b**k * cell(a + k * n), True) for k in range(periods)), ZERO)
            value += 2 * t * (1 - b) * (near + b**periods * power(edge + 1, q, True) / (1 - ratio))
    value, share = value / total * power(h, q, True), Fraction(not discrete, 2**40)
    if q < 1:  # what is sent is at most that share of |z| + 3h from the density's z
        return value + (value + power(3 * h, q, True)) * power(share, q, True)
    return power(power(value, 1 / q, True) * (1 + share) + 3 * h * share, q, True) if share else value


def staircase_proves(growth: Fraction, t: Fraction, q: int) -> bool:
    """Whether t is a lower bound at sensitivity 1, E = growth: the bathtub inequality of one period, times 1 - b, b = 1/E.

    (1 - b) G(x), the mean of (x + J)^q - t for a geometric J, rises with x: it is negative up to one place.
    """
    row = [geometric_mean(lambda k, i=i: math.comb(q, i) * ONE * k ** (q - i), q - i, 1 / growth) for i in range(q + 1)]
    row[0] -= t
    total = [ZERO, *(a / (k + 1) for k, a in enumerate(row))]
    low, high = crossing(lambda x: horner(row, x) <= 0, ZERO, ONE) if row[0] < 0 else (ZERO, ZERO)
    under = -horner(total, low) - horner(row, low) * (high - low)
    return horner(row, ONE) >= 0 and horner(total, ONE) >= (growth - 1) * under


def lattice_bound(c: Any, q: Fraction, discrete: bool, privacy: Any) -> Fraction:
    """t - delta sum lam, with t the least of what the multipliers leave at each distance: 0 <= mu <= lam is all they need."""
    bins, n, one, budget = c.rounding == "bins", c.n, 1 << 160, 0
    must(len({m.shift for m in c.multipliers}) == len(c.multipliers), "distinct shifts")
    last = max([n, *(max(m.first + len(m.values) + n, -m.first) for m in c.multipliers)]) + 1
    spend(last * (1 if q in (1, 2) else 3000) + 2 * sum(last + abs(m.first) + len(m.values) for m in c.multipliers))
    growth, held = math.ceil(privacy.eps.high * one), [0] * (last + 1)
    for m in c.multipliers:
        must(max([m.rest, *m.values]) <= m.weight and m.shift <= n, "multipliers up to their weight, shifts up to n")
        weight, rest, *values = (int(Fraction(v) * one) for v in (m.weight, m.rest, *m.values))
        budget += weight + 1
        for i, v in enumerate(values + [rest] * (last + 1 - m.first - len(values)), m.first):
            for at, change in ((i, v * one), (i + m.shift, -v * growth)):
                a = at if at >= 0 else -1 - at if bins else -at
                if a <= last:
                    held[a] += change
    costs = lattice_costs(q, n, last, not discrete and not bins)
    points = [2 if a or bins else 1 for a in range(last + 1)]
    least = min(cost + Fraction(v, k * one * one) for cost, v, k in zip(costs, held, points, strict=True))
    return least - privacy.delta * Fraction(budget, one)


def lattice_costs(q: Fraction, n: int, last: int, sagging: bool) -> list[Fraction]:
    """Costs at a/n whose broken line lies nowhere above |x|^q: less the larger sag of the two chords beside each point."""
    if q in (1, 2):
        return [Fraction(a, n) if q == 1 else Fraction(4 * a * a - sagging, 4 * n * n) for a in range(last + 1)]
    low, high = ([power(Fraction(a, n), q, up) for a in range(last + 2)] for up in (False, True))
    sags = [ZERO] * (last + 2)
    for a in range((last + 1) * sagging):  # the chord minus the power is largest where the power has the chord's slope
        slope, at = (high[a + 1] - low[a]) * n, Fraction(a, n)
        peak = power(slope / q, 1 / (q - 1), True)
        rise = q * power(peak, q - 1, True) - slope  # of |x|^q less the chord: almost 0; convexity bounds the rest
        tangent = power(peak, q, False) - slope * (peak - at) - rise * max(peak - at, ZERO)
        sags[a + 1] = max(high[a] - tangent, ZERO)
    costs = [low[a] - max(sags[a], sags[a + 1]) for a in range(last + 1)]
    return list(accumulate(reversed(costs), min))[::-1]  # nondecreasing: the broken line only sinks


# --- information privacy


def check_lip(p: Any, m: Any, c: Any) -> tuple[Fraction, Fraction]:
    """A kernel on categories with a prior; for dual prices nu of the posteriors r a sigma with phi(r) <= nu.r + sigma."""
    privacy, task, prior, e = p.privacy, p.objective.task, p.objective.prior, p.privacy.eps
    ldp, both = privacy.is_a == "ldp", not getattr(privacy, "lower_only", False)
    must(privacy.is_a in ("ldp", "lip") and p.family.is_a == "all" and not p.constraints, "LDP or LIP, all mechanisms")
    d, own, x = len(prior.weights), prior if ldp else privacy.prior, fractions(task.values or [])
    must(m.is_a == "LIPMechanism" and c.is_a == "lip", "a kernel on categories, and dual prices")
    must(p.domain.symbols == prior.categories == own.categories == m.prior.categories, "the prior's categories")
    must((own.weights, own.left_out) == (prior.weights, prior.left_out), "one prior")
    spend(20 * d * len(m.kernel))
    must(all(len(row) == d and any(row) for row in m.kernel), "the kernel's shape")
    must(len(set(m.labels)) == len(m.labels) == len(m.kernel), "a name for each output")
    must(all(sum(column) == COINS for column in zip(*m.kernel, strict=True)), "probabilities that sum to 1")
    must({task.kind, m.aggregate.kind} <= {"sum", "histogram"}, "a sum or a histogram")
    must(len(x) == (d if task.kind == "sum" else 0), "a value for each category")
    centre = Fraction(float(dot(prior.exact, x))) if x else ZERO
    x = [v - centre for v in x]  # the format measures values from the float next to their mean
    value = second = dot(prior.exact, [v * v for v in x]) if x else ONE
    for row in m.kernel:
        joint = [w * k for w, k in zip(prior.exact, row, strict=True)]
        below, above = (max(row), min(row)) if ldp else (sum(joint), sum(joint))
        must(below <= min(row) * e.low, "no posterior (or probability) far below")
        must(max(row) <= above * e.low or not both, "no posterior far above")
        value -= cut((dot(joint, x) ** 2 if x else dot(joint, joint)) / COINS / sum(joint), False)
    if c.method == "simplex":
        must(not c.nu and not c.knots, "no prices")
        square = dot(prior.exact, x) ** 2 if x else dot(prior.exact, prior.exact)
        return value, (2 / e.high - 1 / e.high**2) * (second - square)
    must(both, "one-sided privacy, which the simplex proves")
    must(c.method in (("knots",) if x else ("chord", "vertices")) and len(c.nu) == d, "prices for the task")
    must(bool(c.knots) == (c.method != "vertices") and all(len(k) == 2 for k in c.knots), "pairs as knots")
    must(c.knots == sorted(c.knots, key=lambda knot: knot[0]), "knots in order")
    spend(60 * (len(c.knots) + 4) * d)
    nu, knots = fractions(c.nu), [fractions(knot) for knot in c.knots]
    # LIP: P/E <= r <= E P, tightened by sum r = 1. LDP: r = tau P s with 1 <= s <= E and tau = 1/sum P s.
    low, high = [cut(w / e.high, False) for w in prior.exact], [cut(w * e.high, True) for w in prior.exact]
    more, less = sum(high) - 1, 1 - sum(low)
    ends = [(max(a, b - more), min(b, a + less)) for a, b in zip(low, high, strict=True)]
    low, high = [a for a, _ in ends], [b for _, b in ends]
    if c.method == "vertices":
        sigma = vertices(prior, nu, e.high if ldp else None, low, high)
    elif c.method == "chord":
        sigma = cone_chord(prior.exact, nu, e.high, knots) if ldp else corners(low, high, nu, knots[0][1])
    else:
        sigma = cone_knots(prior.exact, x, nu, e.high, knots) if ldp else box_knots(low, high, x, nu, knots)
    return value, second - dot(prior.exact, nu) - sigma


def corners(low: list[Fraction], high: list[Fraction], nu: list[Fraction], level: Fraction) -> Fraction:
    """Each r^2 lies below its chord, and what is linear is largest at an end; the level is free, as sum r = 1."""
    return level + sum(max(r * (r - n - level) for r in ends) for *ends, n in zip(low, high, nu, strict=True))


def cone_chord(p: list[Fraction], nu: list[Fraction], e: Fraction, knots: list[Any]) -> Fraction:
    """For tau in [a, b], r is between tau P and E tau P, or what the others leave; convex in tau: largest at a or b."""
    inside = [(t, level) for t, level in knots if e * t > 1 and t < 1]
    found, cuts = [], [(cut(1 / e, False), knots[0][1]), *inside, (ONE, ZERO)]
    for (a, level), (b, _) in pairwise(cuts):
        for t in (a, b):
            low = [1 - e * t * (1 - w) if b * (w + e * (1 - w)) <= 1 else t * w for w in p]
            high = [1 - t * (1 - w) if a * (w * e + 1 - w) >= 1 else e * t * w for w in p]
            found.append(corners(low, high, nu, level))
    return max(found)


def cone_knots(p: list[Fraction], x: list[Fraction], nu: list[Fraction], e: Fraction, knots: list[Any]) -> Fraction:
    """The largest over t of sum P max(c, E c), c = 2 t x - t^2 - nu: one choice between two knots, and what it misses."""
    found, cuts = [ZERO], [min(x), *(t for t, _ in knots if min(x) < t < max(x)), max(x)]
    for a, b in pairwise(cuts):
        parabola, missed = [ZERO] * 3, ZERO
        for w, v, n in zip(p, x, nu, strict=True):
            c = (-n, 2 * v, -ONE)
            chosen = horner(c, (a + b) / 2) > 0
            parabola = [u + w * (e if chosen else 1) * k for u, k in zip(parabola, c, strict=True)]
            wrong = -min(horner(c, a), horner(c, b)) if chosen else horner(c, min(max(v, a), b))
            missed += w * (e - 1) * max(wrong, ZERO)
        found.append(horner(parabola, min(max(-parabola[1] / (2 * parabola[2]), a), b)) + missed)
    return max(found)


def box_knots(
    low: list[Fraction], high: list[Fraction], x: list[Fraction], nu: list[Fraction], knots: list[Any]
) -> Fraction:
    """(x.r)^2 = max_t 2 t x.r - t^2; U = l + max over r of (2 t x - nu - l).r is convex in (t, l): below its chords."""
    ends, tops, found = [], [], []
    for sign in (-1, 1):  # the largest x.r and -x.r: fill up in order
        room, total = 1 - sum(low), dot(x, low)
        for v, a, b in sorted(zip(x, low, high, strict=True), key=lambda row: -sign * row[0]):
            part = min(room, b - a)
            room, total = room - part, total + v * part
        ends.append(total)
    knots = [(min(knots[0][0], ends[0]), knots[0][1]), *knots, (max(knots[-1][0], ends[1]), knots[-1][1])]
    for t, level in knots:
        rows = zip((2 * t * v - n - level for v, n in zip(x, nu, strict=True)), low, high, strict=True)
        tops.append(level + sum(max(slope * a, slope * b) for slope, a, b in rows))
    for (a, u), (b, v) in pairwise(zip((t for t, _ in knots), tops, strict=True)):
        slope = (v - u) / (b - a) if b > a else ZERO
        t = min(max(slope / 2, a), b)
        found.append(u + slope * (t - a) - t * t)
    return max(found)


def vertices(prior: Any, nu: list[Fraction], e: Any, low: list[Fraction], high: list[Fraction]) -> Fraction:
    """r.r - nu.r is convex: largest at a vertex, all but one at a bound (LDP: with s in {1, E}, as it is convex along rays).

    Of the categories of one weight those of low price are high: how many of each group is all that matters.
    """
    alike: dict[int, list[int]] = {}
    for i in sorted(range(len(nu)), key=lambda i: nu[i]):
        alike.setdefault(prior.weights[i], []).append(i)
    if e:
        low, high = prior.exact, [e * w for w in prior.exact]
    widest, later, found = max(b - a for a, b in zip(low, high, strict=True)), sum(high) - sum(low), []
    states: list[Any] = [(sum(low), dot(low, low), dot(nu, low), ())]
    for _, group in sorted(alike.items(), reverse=True):
        a, b = low[group[0]], high[group[0]]
        prices, later = [ZERO, *accumulate(nu[i] * (b - a) for i in group)], later - len(group) * (b - a)
        spend(20 * len(states) * len(prices))
        states = [
            (mass + k * (b - a), square + k * (b * b - a * a), cost + price, (*counts, group[k:][:1]))
            for mass, square, cost, counts in states
            for k, price in enumerate(prices)
            if e or 1 - widest - later <= mass + k * (b - a) <= 1
        ]
    for mass, square, cost, free in states:
        if e:
            found.append(cut((square - cost * mass) / (mass * mass), True))
        for i in (i for group in free for i in group if not e and 1 - mass <= high[i] - low[i]):
            found.append(square - cost + (1 - mass) * (1 - mass + 2 * low[i] - nu[i]))
    must(found, "a vertex")
    return max(found)


# --- kernels on intervals, in shares of the domain


class Curve:
    """A density w and a curve c, linear between nodes (a row holds both its ends on each piece): integrals up to any place."""

    def __init__(self, nodes: list[Any], rows: list[list[Any]], integrand: Any) -> None:
        self.nodes, self.rows, self.integrand = nodes, rows, integrand
        spend(300 * len(nodes))
        parts = [self.part(i, b) for i, b in enumerate(nodes[1:])]
        self.sums = [[ZERO, *accumulate(column)] for column in zip(*parts, strict=True)]

    def at(self, i: int, z: Fraction) -> list[Fraction]:
        """The rows at a place of the i-th piece."""
        share = Fraction(z - self.nodes[i]) / (self.nodes[i + 1] - self.nodes[i])
        return [row[i][0] + (row[i][1] - row[i][0]) * share for row in self.rows]

    def part(self, i: int, z: Fraction) -> list[Fraction]:
        """Integrals from the i-th node to z: Simpson's rule is exact for cubic polynomials."""
        a = self.nodes[i]
        ends = [self.integrand(t, *self.at(i, t)) for t in (a, Fraction(a + z) / 2, z)]
        return [(u + 4 * v + w) * (z - a) / 6 for u, v, w in zip(*ends, strict=True)]

    def upto(self, z: Fraction) -> list[Fraction]:
        """Integrals up to z."""
        i = min(max(bisect_right(self.nodes, z) - 1, 0), len(self.nodes) - 2)
        return [total[i] + v for total, v in zip(self.sums, self.part(i, z), strict=True)]

    def where(self, row: list[Any], y: Fraction) -> Fraction:
        """The place where a row that does not fall passes y."""
        i = max(bisect_right(row, y, key=lambda ends: ends[0]) - 1, 0)
        a, b = row[i]
        share = min(max((y - a) / (b - a), ZERO), ONE) if a < b else Fraction(y > a)
        return self.nodes[i] + (self.nodes[i + 1] - self.nodes[i]) * share

    def distances(self, q: int, y: Fraction, places: Any) -> list[Fraction]:
        """The integrals of w |y - c|^q, less the fourth of those of `upto`, up to each place."""
        sums = [self.upto(z) for z in places]
        if q == 2:
            return [y * y * mass - 2 * y * first + second - level for mass, first, second, level, *_ in sums]
        turn = self.where(self.rows[1], y)
        mass, first, *_ = self.upto(turn)
        found = [(y * u - v, level) for u, v, _, level, *_ in sums]
        over = 2 * (y * mass - first)
        return [(v if z <= turn else over - v) - level for z, (v, level) in zip(places, found, strict=True)]


def check_kernel(p: Any, m: Any, c: Any) -> tuple[Fraction, Fraction]:
    """A floor with the quantile function Q, and windows of n cells that start in cell a: what they send, and the kernel dual."""
    if m.is_a == "PiecewiseMechanism":
        return check_piecewise(p, m, c)
    must(m.is_a == "KernelMechanism" and m.rule in ("ends", "mean"), "a kernel on the interval")
    (mass, _), n, exact = floor_and_window(p, m), m.width_cells, m.rule == "mean"
    path, lower = [end for both in zip(m.lows, m.highs, strict=True) for end in both], Fraction(p.low)
    must(len(m.cells) == len(m.lows) and sum(m.cells) == CELLS and path == sorted(path), "cells, and a nondecreasing Q")
    low, high = lower + p.width * Fraction(path[0]), lower + p.width * Fraction(path[-1])
    step, fine = grid(low, high, 2**40 if exact else 2**4096), grid(p.low, p.high)
    first, last = sorted((math.ceil(low / step), math.floor(high / step)))
    known = m.share == 0.5 and (not exact or (fine <= 1 and p.objective.is_a == "worst-case"))
    must(known, "this share, average or lattice is not known here", 2)
    limits = [(k.low, k.high) for k in p.constraints if k.is_a == "outputs"]
    for a, b in limits or [(p.low, p.high)][: "unbiased" not in p.limits]:
        must(a <= first * step and last * step <= b, "outputs within the limits")
    must((exact and p.q == 2) or (not exact and "unbiased" not in p.limits), "exact means, for squared errors")
    ends = [(Fraction(a), Fraction(b)) for a, b in zip(m.lows, m.highs, strict=True)]
    if exact:
        lattice = [[min(max(round((lower + p.width * e) / step), first), last) for e in both] for both in ends]
        ends = [((a * step - lower) / p.width, (b * step - lower) / p.width) for a, b in lattice]
    edges = [0, *accumulate(m.cells)]
    curve = Curve(edges, [[(ONE, ONE)] * len(ends), ends], lambda _, w, v: (w, v, v * v, ZERO))
    starts = sorted({a for e in edges for a in (e, e - n) if 0 <= a <= CELLS - n})

    def beside(c: int, right: bool) -> Fraction:
        """Q next to a cell's start, on its right or left."""
        return curve.at(
            (min(bisect_right(edges, c), len(ends)) if right else max(bisect_left(edges, c), 1)) - 1, ONE * c
        )[1]

    both = [(a, b, a + n, b + n) for a, b in pairwise(starts)]
    windows = [(a, b, beside(a, True), beside(b, False), beside(u, True), beside(v, False)) for a, b, u, v in both]
    law = Entry(curve=curve, ends=ends, mass=mass, n=n, windows=windows, step=step, fine=fine)
    law.mix = lambda whole, after, before: mass * whole / CELLS + (1 - mass) * (after - before) / n
    law.slope = max((b - a) / c for (a, b), c in zip(ends, m.cells, strict=True))
    return mean_value(p, law) if exact else ends_value(p, law), kernel_bound(p, c)


def ends_value(p: Any, law: Any) -> Fraction:
    """Where the middle of Q at both ends of the window is the input: the mean loss along inputs, widened by all roundings."""
    ends, objective = law.ends, p.objective
    rows: list[Any] = [((qa + ra) / 2, (qb + rb) / 2, a, b) for a, b, qa, qb, ra, rb in law.windows]
    rows = rows or [(ends[0][0], ends[-1][1], 0, 0)]
    far = max(math.ceil(max(abs(rows[0][0]), abs(rows[-1][1]))), 1)
    blur = law.step / p.width + (ends[-1][1] - ends[0][0]) / 2**52 + Fraction(far, 2**49)

    def expected(x: Fraction) -> Fraction:
        x0, x1, a0, a1 = rows[max(bisect_right(rows, x, key=lambda row: row[0]) - 1, 0)]
        a = a0 + (a1 - a0) * (min(max((x - x0) / (x1 - x0), ZERO), ONE) if x1 > x0 else Fraction(x > x0))
        return law.mix(*law.curve.distances(p.q, x, (Fraction(CELLS), a + law.n, a)))

    marks, value = {x for row in rows for x in row[:2]} | {e for both in ends for e in both}, ZERO
    spans = [(ZERO, ONE, ONE)]
    if objective.is_a == "average":
        points = [(Fraction(point) - Fraction(p.low)) / p.width for point in objective.prior.categories]
        must(all(0 <= x <= 1 for x in points), "a prior on the domain")
        both = zip(points, objective.prior.exact, strict=True)
        spans = [(max(x - blur, ZERO), min(x + blur, ONE), chance) for x, chance in both]
    for a, b, chance in spans:
        value += chance * highest(expected, sorted({a, b, *(x for x in marks if a < x < b)}))
    if p.q == 1:
        return (value + blur + 2 * (1 - law.mass) / law.n * law.slope) * p.width
    reach = max(ends[-1][1], 1 - ends[0][0])
    far = 2 ** math.ceil(reach).bit_length() if reach > 1 else 1
    added = 4 * (1 - law.mass) / law.n * law.slope * (far + blur)
    return ((power(value, ONE / 2, True) + blur) ** 2 + added) * p.width**2


def mean_value(p: Any, law: Any) -> Fraction:
    """Where the mean is the input: the largest variance along the starts of windows, and what all roundings add to it."""
    must(law.windows, "windows that move")

    def moments(a: Fraction) -> list[Fraction]:
        sums = [law.curve.upto(c)[1:3] for c in (Fraction(CELLS), a + law.n, a)]
        return [law.mix(*column) for column in zip(*sums, strict=True)]

    def spread(a: Fraction) -> Fraction:
        mean, square = moments(a)
        return square - mean * mean

    low, high = Fraction(law.windows[0][0]), Fraction(law.windows[-1][1])
    must(moments(low)[0] <= 0 and moments(high)[0] >= 1, "means that reach both ends of the domain")
    start, end = (crossing(lambda a, goal=goal: moments(a)[0] <= goal, low, high)[goal] for goal in (0, 1))
    inner = {ONE * c for window in law.windows for c in window[:2] if start < c < end}
    value, added = highest(spread, sorted({start, end, *inner})), ZERO
    for a, b, qa, qb, ra, rb in law.windows:
        apart = min(
            2 ** max(min(law.n.bit_length() - 23, (b - a).bit_length() - 13), 0), b - a
        )  # of starts tossed between
        added = max(
            added, (1 - law.mass) / law.n * apart**2 * max(ra - qa, rb - qb) * (qb - qa + rb - ra) / (b - a) / 4
        )
    lower, upper, fine = Fraction(p.low), Fraction(p.high), law.fine
    off = max(fine / 2, math.ceil(lower / fine) * fine - lower, upper - math.floor(upper / fine) * fine)
    return (value + added) * p.width**2 + law.step**2 / 4 + off**2


def kernel_bound(p: Any, c: Any) -> Fraction:
    """What the certificate proves for every mechanism on the interval: int g dm >= 0 for the floor m, g as below."""
    must(c.is_a == "kernel" and p.domain.is_a == "interval", "multipliers for an interval")
    q, objective, tilted = p.q, p.objective, bool(c.centres or c.point_centres)
    must(p.privacy.is_a == "ldp" and objective.is_a in ("worst-case", "average"), "LDP, the worst case or an average")
    must(not tilted or ("unbiased" in p.limits and q == 2), "centres for unbiased mechanisms alone")
    must(len(c.densities) == len(c.reaches) <= 8 and len(c.centres) == len(c.densities) * tilted, "complete layers")
    must(all(len(row) == len(c.mesh) >= 2 for row in (*c.densities, *c.reaches, *c.centres)), "a number at each node")
    must(len(c.points) == len(c.weights) == len(c.point_reaches) <= 4096 >= len(c.mesh), "complete atoms")
    must(len(c.point_centres) == len(c.points) * tilted, "complete centres")
    must(all(a < b for a, b in pairwise(c.mesh)), "a mesh in order")
    points, weights, reaches = fractions(c.points), fractions(c.weights), fractions(c.point_reaches)
    if objective.is_a == "average":
        must(objective.prior != "uniform", "an average under a density is not known here", 2)
        shares = [(Fraction(v) - Fraction(p.low)) / p.width for v in objective.prior.categories]
        places = {float(v): (v, chance) for v, chance in zip(shares, objective.prior.exact, strict=True)}
        must(not c.densities and all(v in places for v in c.points), "points of the prior alone")
        for name, (_, chance) in places.items():
            must(dot(weights, [v == name for v in c.points]) <= chance, "the prior's probabilities")
        points = [places[v][0] for v in c.points]
    middles, x = fractions(c.point_centres) or points, fractions(c.mesh)
    atoms = [atom for atom in zip(weights, reaches, middles, points, strict=True) if atom[0]]
    layers: list[Any] = []  # each a density and the ends of the outputs that inputs favour
    for rows in zip(c.densities, c.centres or [c.mesh] * len(c.densities), c.reaches, strict=True):
        lam, centre, t = map(fractions, rows)
        ends = [list(pairwise(a + sign * b for a, b in zip(centre, t, strict=True))) for sign in (-1, 1)]
        must(all(a <= b for row in ends for a, b in row), "favoured outputs that move upwards")
        if any(lam):
            pairs = [list(pairwise(row)) for row in (lam, centre, t)]
            layers.append(
                (Curve(x, pairs, lambda x, w, c, t: (w, w * c, w * c * c, w * t**q, w * (x - c) ** 2)), *ends)
            )
    sums = [sum(curve.sums[i][-1] for curve, *_ in layers) + ZERO for i in range(5)]
    value = sum((w * (t**q - (x - c) ** 2) for w, t, c, x in atoms), sums[3] - sums[4])
    prior, mean = sums[0] + sum(w for w, *_ in atoms), sums[1] + sum(w * c for w, _, c, _ in atoms)
    must(prior > 0 or objective.is_a == "average", "a prior with positive mass")
    growth = cut(p.privacy.eps.high, True) - 1

    def g(y: Fraction) -> Fraction:
        """-g(y): the integral of r(x, y) over all inputs, and e^eps - 1 times as much of it over those that favour y."""
        r = [w * (abs(y - c) ** q - t**q) for w, t, c, _ in atoms]
        whole, near = sum(r, ZERO), sum(min(v, ZERO) for v in r)
        for curve, lower, upper in layers:
            ends = [x[-1], curve.where(lower, y), curve.where(upper, y)]
            whole_here, low_end, high_end = curve.distances(q, y, ends)
            whole, near = whole + whole_here, near + low_end - high_end
        return -(whole + growth * near)

    marks = {v for _, t, c, _ in atoms for v in (c - t, c, c + t)}
    marks |= {v for curve, *ends in layers for row in (*ends, curve.rows[1]) for pair in row for v in pair}
    low, high, limit = ZERO, ONE, p.limits.get("outputs")
    if limit:
        low, high = ((Fraction(v) - Fraction(p.low)) / p.width for v in (limit.low, limit.high))
    first, last = (min(marks), max(marks)) if tilted else (ZERO, ONE)
    if not tilted or (
        g(first) <= 0 >= g(last) and prior * first <= mean <= prior * last
    ):  # nothing is better further away
        low, high = (min(max(v, first), last) for v in ((low, high) if limit or not tilted else (first, last)))
    else:
        must(limit, "outputs far away")
    inner = sorted({low, max(high, low + ONE / 2**80), *(v for v in marks if low < v < high)})
    worst = highest(g, inner, ZERO, cost=100 + 20 * len(atoms) + 1500 * len(layers))
    return (value - worst) / (prior if objective.is_a == "worst-case" else 1) * p.width**q


# --- the answer


def prove(raw: bytes) -> str:
    """The statement that the bytes of a file prove."""
    s = load(raw)
    p, loss = s.problem, getattr(s.problem.objective, "loss", Entry(is_a="", exponent=0))
    kind, interval = p.domain.is_a, p.domain.is_a == "interval" and p.family.is_a == "all"
    must((kind == "alphabet") == (loss.is_a in ("", "matrix")), "an objective for this domain")
    p.q = int(loss.exponent) if loss.is_a == "power" and loss.exponent in (1, 2) else 0
    dense = interval and getattr(p.objective, "prior", None) == "uniform"
    known = (p.q and not dense) or (not interval and s.certificate.is_a != "kernel")
    must(known, "kernels with this loss, or for a prior with a density, are not known here", 2)
    small = s.certificate.is_a in ("bathtub", "constant", "finite") or p.privacy.eps.low <= exp(ONE * 30, True)
    must(small, "eps up to 30")
    routine = check_kernel if interval else check_piecewise
    if kind in ("alphabet", "line", "integers"):
        routine = check_additive if kind != "alphabet" else check_finite if loss.is_a else check_lip
    value, bound = routine(p, s.mechanism, s.certificate)
    must(value <= s.value, f"the mechanism attains value = {s.value!r}")
    must(0 <= s.lower_bound <= s.value, f"lower_bound = {s.lower_bound!r} <= value = {s.value!r}")
    must(s.lower_bound <= max(bound, ZERO), f"the optimum is at least lower_bound = {s.lower_bound!r}")
    return f"{statement(p)}\n     is at least {s.lower_bound!r} and at most {s.value!r}, which the mechanism attains"


def check(raw: bytes, limit: int = LIMIT) -> tuple[int, str]:
    """(exit status, what is printed) for the bytes of a file."""
    LEFT[0] = limit
    try:
        return 0, f"yes: {prove(raw)}"
    except Answer as answer:
        return answer.args[0], answer.args[1]
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError) as error:
        return 2, f"cannot check: malformed ({type(error).__name__})"


def main() -> int:
    """The command line."""
    command = argparse.ArgumentParser(
        description="Check a saved solution of optdp: exit status 0 proven, 1 not, 2 neither."
    )
    command.add_argument("file")
    command.add_argument(
        "--limit", type=float, default=LIMIT / 1e6, help="millions of steps (default: 10, some seconds)"
    )
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

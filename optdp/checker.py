#!/usr/bin/env python3
"""A second opinion on a saved solution: `python checker.py solution.json`, with Python's standard library alone.

This file shares no line with the rest of optdp and needs none of it. It reads the format in docs/format.md, proves the bracket
again in rational arithmetic, and prints the statement that is then true. e^eps, powers and logarithms are enclosed between
rationals by their series. It knows piecewise densities, kernels on finite alphabets and on intervals (abs and squared errors,
unbiased or not, worst cases and averages under finitely many points), additive noise, and information privacy. Affine windows,
composites, frequencies, averages under densities, and kernels with other losses are not known here.

Exit status: 0 proven, 1 not proven, 2 not readable, not known here, or more work than the limit (`--limit`).
"""

# fmt: off
import argparse
import json
import math
import sys
from bisect import bisect_left, bisect_right
from fractions import Fraction
from itertools import accumulate, pairwise
from types import SimpleNamespace as Entry
from typing import Any

#: Significant bits of enclosures; steps of about a microsecond before a proof is given up; bytes that a file may have.
BITS, LIMIT, SIZE = 256, 10_000_000, 200_000_000
CELLS, COINS, ROW, LIMB = 2**50, 2**124, 2**62, 2**62
ZERO = Fraction(0)
Pair = tuple[Fraction, Fraction]

class CannotCheck(Exception):
    """Not a solution in the format, one of a kind that is not known here, or one that takes too long."""

class NotProven(Exception):
    """Something is not true, or not proven."""

class Work:
    """Steps that are left: what the sizes in a file ask for is counted before it is done."""

    left = LIMIT

    @classmethod
    def spend(cls, steps: int) -> None:
        cls.left -= steps
        if cls.left < 0:
            raise CannotCheck("the proof takes more work than the limit, which --limit raises")

# --- enclosures: rationals of about BITS bits next to irrational numbers, not above them, or (`up`) not below

def cut(q: Fraction, up: bool) -> Fraction:
    """A rational of about BITS bits next to q; q itself where it is short."""
    if (size := q.numerator.bit_length() + q.denominator.bit_length()) <= BITS:
        return q
    unit = Fraction(2) ** (2 * q.numerator.bit_length() - size - BITS)
    return (math.ceil(q / unit) if up else q // unit) * unit

def exp(x: Fraction, up: bool) -> Fraction:
    """e^x: the series after halving x, in fixed-point integers."""
    if x < 0:
        return cut(1 / exp(-x, not up), up)
    if x > 200_000:
        raise CannotCheck("an exponential is too large")
    halvings, k = int(x).bit_length() + 8, 1
    one = 1 << (BITS + 2 * halvings + 64)
    r = x.numerator * one // (x.denominator << halvings) + up
    total = term = one
    while term > 1:
        term = term * r // (one * k) + up
        total, k = total + term, k + 1
    total += 4 * up  # all that is left, each term being less than half of the one before
    for _ in range(halvings):
        total = total * total // one + up
    return cut(Fraction(total, one), up)

def log(x: Fraction, up: bool) -> Fraction:
    """ln x = k ln 2 + ln m with ln m = 2 artanh((m - 1)/(m + 1)): the series of artanh in fixed-point integers."""
    k, one, total, error = x.numerator.bit_length() - x.denominator.bit_length(), 1 << (BITS + 64), 0, 0
    m = x / Fraction(2) ** k
    for factor, z in ((k, Fraction(1, 3)), (1, (m - 1) / (m + 1))):
        power, j = math.floor(z * one), 1
        square = power * power // one
        while abs(power) > 1:
            total += 2 * factor * (power // j)
            power, j = power * square // one, j + 2
        error += 8 * j * (abs(factor) + 1)  # a few units for each term
    return Fraction(total + (error if up else -error), one)

def power(base: Fraction, q: Fraction, up: bool) -> Fraction:
    """base^q for base >= 0, q > 0."""
    if base <= 0 or (q.denominator == 1 and q <= 128):
        return cut(max(base, ZERO) ** math.ceil(q), up)
    return exp(q * log(base, up), up)

# --- reading: every entry by its name and kind

class Epsilon:
    """eps >= 0, a rational q or ln q, with rationals `low` <= e^eps <= `high`; how statements write eps and e^eps."""

    def __init__(self, value: Any, q: Fraction, logarithm: bool) -> None:
        self.low, self.high = (q, q) if logarithm else (exp(q, False), exp(q, True)) if q else (q + 1, q + 1)
        self.shown = f"log({q})" if logarithm else str(q) if isinstance(value, str) else repr(float(value))
        self.factor = str(q) if logarithm else f"e^{self.shown}"

def simple(value: Any, kind: str, where: str) -> Any:
    """A number, text or flag. An exact number is a float (it means its dyadic rational), "p/q" or a decimal text."""
    is_text, number = isinstance(value, str), type(value) in (int, float) and abs(value) <= 1.7e308
    if kind == "whole" and is_text and len(value) < 3000 and value.isascii() and value.removeprefix("-").isdigit():
        value = int(value)
    logarithm = kind == "eps" and is_text and value.startswith("log(") and value.endswith(")")
    digits = value[4:-1] if logarithm else value
    try:
        if kind == "real" and number:
            return float(value)
        if kind == "whole" and type(value) is int and abs(value) < 2**4096:
            return value
        if kind == "word" and is_text and len(value) <= 50 and value.isprintable():
            return value
        if (kind == "flag" and isinstance(value, bool)) or (kind == "label" and (number or (is_text and len(value) <= 1000))):
            return value
        figures = digits.replace("/", "", 1).replace(".", "", 1).lstrip("+-") if is_text else ""
        if kind in ("rational", "eps") and (number or (figures.isascii() and figures.isdigit() and len(figures) <= 4096)):
            q = Fraction(digits)
            size = max(abs(q.numerator), q.denominator) < 2**4096 and abs(q) < 2**1000
            if size and (kind == "rational" or logarithm <= q <= (2**1000 if logarithm else 1000)):
                return q if kind == "rational" else Epsilon(value, q, logarithm)
    except (ValueError, ZeroDivisionError, OverflowError):
        pass
    raise CannotCheck(f"{where} is not allowed: it must be {ALLOWED[kind]}")

ALLOWED = {"real": "a finite number", "whole": "an integer, or its digits as a text", "flag": "true or false",
           "word": "a short text", "label": "a text or a finite number", "rational": 'a number, "p/q" or a decimal text',
           "eps": 'a number, "p/q", a decimal text or "log(p/q)", eps being from 0 to 1000'}
#: Kinds of entries: (the name that says which, what belongs to each); None: known elsewhere, its entries are not read.
KINDS: dict[str, tuple[str, dict[str, str | None]]] = {
    "prior": ("type", {"prior": "weights:*whole categories:*label left_out:*label given:*whole"}),
    "task": ("type", {"aggregate": "kind:word values:*real|null"}),
    "domain": ("type", {"interval": "lower:real upper:real", "circle": "period:real start:real", "line": "", "integers": "",
                        "alphabet": "symbols:*label"}),
    "privacy": ("type", {"ldp": "eps:eps ideal?:flag", "approx": "eps:eps delta:rational sensitivity:real ideal?:flag",
                         "lip": "eps:eps prior:prior lower_only:flag ideal?:flag"}),
    "loss": ("type", {"power": "exponent:real", "huber": "corner:real", "threshold": "limit:real", "matrix": "rows:**real",
                      "pieces": "breaks:*rational coefficients:**rational", "pinball": None}),
    "objective": ("type", {"worst-case": "loss:loss", "average": "loss:loss prior:prior|uniform", "at": "loss:loss x:real",
                           "bayes-risk": "task:task prior:prior"}),
    "family": ("type", {"all": "", "piecewise": "m:whole", "additive": "", "affine-window": None, "composite": None}),
    "constraint": ("type", {"unbiased": "", "outputs": "low:real high:real"}),
    "problem": ("type", {"problem": "privacy:privacy domain:domain objective:objective family:family constraints:*constraint"}),
    "mechanism": ("mechanism", {
        "PiecewiseMechanism": "domain:domain width_cells:whole floor_coins:whole placement:word",
        "FiniteMechanism": "domain:domain outputs:*label weights:**whole",
        "AdditiveMechanism": "domain:domain sensitivity:real n:whole weights:*whole atom:whole tail:*whole decay:whole eps:eps",
        "LIPMechanism": "prior:prior kernel:**whole aggregate:task labels:*label",
        "KernelMechanism": "domain:domain cells:*whole lows:*real highs:*real width_cells:whole floor_coins:whole rule:word "
                           "share:real",
        "CompositeMechanism": None, "VaryingWindow": None}),
    "certificate": ("type", {
        "bathtub": "threshold:real", "constant": "", "staircase": "threshold:real", "finite": "weights:*real masses:*real",
        "additive": "n:whole rounding:word multipliers:*multiplier", "lip": "method:word nu:*real knots:**real",
        "kernel": "mesh:*real densities:**real reaches:**real centres:**real points:*real weights:*real point_reaches:*real "
                  "point_centres:*real", "affine-window": None, "composite": None}),
    "multiplier": ("", {"": "shift:whole weight:real first:whole values:*real rest:real"}),
    "head": ("", {"": "format:whole version:word"}),
    "solution": ("", {"": "optdp:head problem:problem value:real lower_bound:real mechanism:mechanism "
                          "certificate:certificate program:any"}),
}

def read(value: Any, kind: str, where: str) -> Any:
    """An entry of a kind: "*": a list of such; "|": or the word (null) behind it. Ranges are looked at where they matter."""
    kind, _, other = kind.partition("|")
    if other and value == (None if other == "null" else other):
        return value
    if kind[0] == "*" and isinstance(value, list) and len(value) <= 1_000_000:
        return [read(entry, kind[1:], f"{where}[{i}]") for i, entry in enumerate(value)]
    if kind[0] == "*":
        raise CannotCheck(f"{where} is not allowed: it must be a list of at most a million entries")
    if kind not in KINDS:
        return value if kind == "any" else simple(value, kind, where)
    tag, variants = KINDS[kind]
    which = value.get(tag, "") if isinstance(value, dict) else None
    if not isinstance(which, str) or which not in variants:
        one = f", its {tag} one of {', '.join(variants)}" if tag else ""
        if tag and which:
            raise CannotCheck(f"{where} has a {tag} that is not known here: it must be an object of the kind {kind}{one}")
        raise CannotCheck(f"{where} is not allowed: it must be an object of the kind {kind}{one}")
    if (entries := variants[which]) is None:
        return Entry(is_a=which)
    asked: dict[str, str] = dict(item.split(":", 1) for item in entries.split())
    names, needed = [name.removesuffix("?") for name in asked], {name for name in asked if name[-1] != "?"}
    if not needed | {tag} - {""} <= set(value) <= {*names, tag} - {""}:
        raise CannotCheck(f"{where} is not allowed: its entries must be {', '.join(asked)} and no others")
    found = Entry(is_a=which, **dict.fromkeys(names))
    for name, inner in zip(names, asked.values(), strict=True):
        if name in value:
            setattr(found, name, read(value[name], inner, f"{where}.{name}"))
    if which == "prior":
        names, found.total, count = found.categories + found.left_out, sum(found.weights), len(found.weights)
        good = len(set(names)) == len(names) and len(found.categories) == count > 1 and min(found.weights) > 0
        if not good or len(found.given) not in (0, count) or any(not 0 <= place < len(names) for place in found.given):
            raise CannotCheck(f"{where} is not allowed: it must be distinct categories with a positive weight each")
        found.exact = [Fraction(w, found.total) for w in found.weights]
    return found

def load(raw: bytes) -> Any:
    """A solution from the bytes of its file."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in found}) < len(found):
            raise CannotCheck("an entry is named twice")
        return dict(found)

    try:
        data = json.loads(raw, object_pairs_hook=pairs, parse_constant=Fraction) if len(raw) <= SIZE else None
        s = read(data, "solution", "solution")
    except (ValueError, RecursionError, MemoryError) as error:
        raise CannotCheck(f"it is not JSON: {str(error)[:100]}") from None
    d, given = s.problem.domain, [c.is_a for c in s.problem.constraints]
    symbols = getattr(d, "symbols", [])
    if d.is_a == "circle":
        d.lower, d.upper, d.width = d.start, d.start + d.period, Fraction(d.period)
    elif d.is_a == "interval":
        d.width = Fraction(d.upper) - Fraction(d.lower)
    bounded = d.is_a not in ("circle", "interval") or (d.lower < d.upper < math.inf and 2.0**-1000 < d.width < 2**1024)
    if s.optdp.format != 2 or len(set(given)) < len(given) or len(set(symbols)) < len(symbols):
        raise CannotCheck("format must be 2; constraints of one kind, and symbols, must be distinct")
    if not bounded or any(not c.low < c.high for c in s.problem.constraints if c.is_a == "outputs"):
        raise CannotCheck("ends of intervals must be in order")
    return s

# --- the statement

def plain(value: float) -> str:
    """An integral float without the point."""
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)

def listed(values: Any, between: str = ", ") -> str:
    """All of a list, or its first entries and how many there are."""
    return between.join(map(str, values[:16])) + (f", ... ({len(values)} in all)" if len(values) > 16 else "")

def prior_said(p: Any) -> str:
    """A prior in a statement."""
    if p == "uniform":
        return "the uniform prior"
    shown = listed(p.exact) if p.total < 10**12 else f"{listed(p.weights)} over their sum"
    names = "" if p.categories == list(range(len(p.weights))) else f" of {listed([ascii(c) for c in p.categories])}"
    left = f", where {listed([ascii(c) for c in p.left_out])} is left out" if p.left_out else ""
    return f"the prior ({shown}){names}{left}"

def loss_said(loss: Any) -> str:
    """L(x, Y) in a statement."""
    if loss.is_a == "power":
        return {1: "|Y - x|", 2: "(Y - x)^2"}.get(loss.exponent, f"|Y - x|^{plain(loss.exponent)}")
    if loss.is_a in ("huber", "threshold"):
        at = plain(loss.corner if loss.is_a == "huber" else loss.limit)
        return f"H(|Y - x|) with the Huber function of corner {at}" if loss.is_a == "huber" else f"1[|Y - x| > {at}]"
    if loss.is_a == "matrix":
        return f"L(x, Y) with L = [{listed([listed([plain(v) for v in row]) for row in loss.rows], '; ')}]"
    sums = [" + ".join(f"{a}" + f" d^{k}" * (k > 0) for k, a in enumerate(row) if a) or "0" for row in loss.coefficients]
    return "L(|Y - x|), L(d) = " + "; ".join(f"{row} from d = {start}" for row, start in zip(sums, loss.breaks, strict=True))

def statement(problem: Any) -> str:
    """What the optimum of the problem is of, in one sentence."""
    privacy, objective, family, d = problem.privacy, problem.objective, problem.family, problem.domain
    if objective.is_a == "bayes-risk":
        values = objective.task.values
        of = "each user's entry in a histogram"
        if values is not None:
            of = f"the user's value, one of ({listed([plain(v) for v in values])}) by category"
        least = f"mean square error of the best estimate of {of}, under {prior_said(objective.prior)},"
    else:
        inner = loss_said(objective.loss)
        least = f"E{inner}" if inner[0] in "|([" else f"E[{inner}]"
        if objective.is_a == "at":
            least += f" at x = {plain(objective.x)}"
        else:
            least = f"{objective.is_a} {least}"
        if objective.is_a == "average":
            least += f" under {prior_said(objective.prior)}"
    adjective, clause = f"{privacy.eps.shown}-{privacy.is_a.upper()}", ""
    if privacy.is_a == "approx":
        delta = float(privacy.delta)
        adjective = f"({privacy.eps.shown}, {repr(delta) if delta == privacy.delta else privacy.delta})-DP"
        clause = f", where neighbours are inputs at most {privacy.sensitivity!r} apart"
    if privacy.is_a == "lip":
        adjective = "one-sided " * privacy.lower_only + adjective
        clause = " (asked: posterior >= e^-eps prior)" * privacy.lower_only + f", with {prior_said(privacy.prior)}"
    start = {"line": "the real line", "integers": "the integers"}.get(d.is_a, "")
    if d.is_a == "alphabet":
        start = f"the alphabet {{{listed([s if str(s).isidentifier() else ascii(s) for s in d.symbols])}}}"
        end = "any outputs" if objective.is_a == "bayes-risk" else f"{len(objective.loss.rows[0])} outputs"
    elif d.is_a == "circle":
        start, end = f"the circle of period {plain(d.period)} written from {plain(d.start)}", "itself"
    else:
        start = start or f"[{plain(d.lower)}, {plain(d.upper)}]"
        end = start if d.is_a == "interval" else "itself"
        for limit in problem.constraints:
            if limit.is_a == "outputs":
                end = f"[{plain(limit.low)}, {plain(limit.high)}]"
        if end == start and any(c.is_a == "unbiased" for c in problem.constraints):
            end = "the real line"
    which = " that add noise which does not depend on the input" * (family.is_a == "additive")
    if family.is_a == "piecewise":
        which = f" whose density at every input consists of {family.m} pieces with the same heights in the same order"
        which += f", none more than {privacy.eps.factor} times another"
    adjective = "unbiased " * any(c.is_a == "unbiased" for c in problem.constraints) + adjective
    ideal = ", in real arithmetic" if privacy.ideal else ""
    return f"the least {least} over all {adjective} mechanisms from {start} to {end}{which}{clause}{ideal}"

# --- the proofs: each gives a number not below what the mechanism attains, and one not above the optimum

def must(condition: Any, what: str) -> None:
    """End the proof here unless the condition holds."""
    if not condition:
        raise NotProven(f"not true or not proven: {what}")

def value_at(row: Any, d: Fraction) -> Fraction:
    """The polynomial with these coefficients."""
    return sum((a * d**k for k, a in enumerate(row)), ZERO)

def never_negative(row: list[Fraction], start: Fraction, end: Fraction | None) -> bool:
    """Whether a polynomial is proven >= 0: its Bernstein coefficients are, on pieces (without an end: its derivatives)."""
    n = len(row) - 1
    moved = [sum(math.comb(k, j) * row[k] * start ** (k - j) for k in range(j, n + 1)) for j in range(n + 1)]
    if end is None:
        return min(moved) >= 0
    scaled = [a * (end - start) ** j / math.comb(n, j) for j, a in enumerate(moved)]
    todo = [([sum((math.comb(i, j) * scaled[j] for j in range(i + 1)), ZERO) for i in range(n + 1)], 40)]
    while todo:
        control, depth = todo.pop()
        Work.spend(100 * (n + 1) ** 2)
        if min(control) < 0:
            if min(control[0], control[-1]) < 0 or not depth:
                return False
            triangle = [control]
            while len(triangle[-1]) > 1:
                triangle.append([(a + b) / 2 for a, b in pairwise(triangle[-1])])
            todo += [([r[0] for r in triangle], depth - 1), ([r[-1] for r in reversed(triangle)], depth - 1)]
    return True

class Distance:
    """A loss that is nondecreasing in the distance, d^q or polynomials on pieces: its integral from 0, and its levels."""

    def __init__(self, loss: Any) -> None:
        known = {"power": "exponent", "huber": "corner", "threshold": "limit"}
        at = Fraction(getattr(loss, known[loss.is_a])) if loss.is_a in known else ZERO
        low, high = {"power": (0.01, 100.0), "huber": (1e-150, 1e150), "pieces": (0.0, 0.0)}.get(loss.is_a, (0.0, math.inf))
        must(loss.is_a in (*known, "pieces") and low <= at <= high, "a nondecreasing loss of the distance")
        self.q, self.parts, total = at if loss.is_a == "power" else None, list[Any](), ZERO
        starts, rows = getattr(loss, "breaks", [ZERO, at]), getattr(loss, "coefficients", [])
        if loss.is_a == "huber":
            rows = [[ZERO, ZERO, Fraction(1, 2)], [-at * at / 2, at]]
        elif loss.is_a == "threshold":
            starts, rows = ([ZERO, at], [[ZERO], [ZERO + 1]]) if at else ([ZERO], [[ZERO + 1]])
        if self.q is not None:
            return
        rows, ends = [row or [ZERO] for row in rows], [*starts[1:], None]
        must(len(rows) == len(starts) <= 1000 and max(map(len, rows)) <= 32, "a row for each piece")
        must(starts[0] == 0 <= rows[0][0] and all(a < b for a, b in pairwise(starts)), "a loss >= 0, pieces in order")
        for i, (row, start, end) in enumerate(zip(rows, starts, ends, strict=True)):
            must(not i or value_at(row, start) >= value_at(rows[i - 1], start), "a loss that does not fall")
            must(never_negative([k * a for k, a in enumerate(row)][1:] or [ZERO], start, end), "a loss that does not fall")
            primitive = [ZERO, *(a / (k + 1) for k, a in enumerate(row))]
            primitive[0] = total - value_at(primitive, start)
            self.parts.append((start, row, primitive))
            total = value_at(primitive, end or start)

    def piece(self, d: Fraction, which: int) -> Fraction:
        """The value (1) or the integral from 0 (2) in exact pieces."""
        return value_at(next(part[which] for part in reversed(self.parts) if part[0] <= d), d)

    def integral(self, d: Fraction, up: bool) -> Fraction:
        return self.piece(d, 2) if self.q is None else power(d, self.q + 1, up) / (self.q + 1)

    def crossing(self, t: Fraction, reach: Fraction, up: bool) -> Fraction:
        """The largest d <= reach with L(d) <= t; 0 if there is none."""
        if self.q is not None:
            return min(power(t, 1 / self.q, up), reach)
        if self.piece(reach, 1) <= t or t < self.piece(ZERO, 1):
            return reach if self.piece(reach, 1) <= t else ZERO
        low, high = ZERO, reach
        for _ in range(BITS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.piece(middle, 1) <= t else (low, middle)
        return high if up else low

def numbers_value(loss: Distance, d: Any, placement: str, width: Fraction) -> Fraction:
    """Not below the mean loss, at the worst input, of the numbers that a window sends: multiples of a power of two v, all floats.

    From one number to the next L rises: the mean over distances v (k to k + 1) is not below L(v k). An input on the lattice has
    its n numbers at distances up to 0, v, ..., (n - 1) v; one between two numbers, or beyond the last, is further from them.
    """
    v = Fraction(2) ** -1074
    while max(abs(d.lower), abs(d.upper)) > v * 2**53:
        v *= 2
    first, last = math.ceil(Fraction(d.lower) / v), math.floor(Fraction(d.upper) / v)
    count = last - first + 1
    n = math.ceil(width * count)

    def over(a: Fraction, b: Fraction) -> Fraction:
        return loss.integral(max(b, ZERO), True) - loss.integral(max(a, ZERO), False)

    if d.is_a == "circle":
        off, half = max(d.width - count * v, ZERO) + v, n // 2  # the seam, and half a step
        total = over(off, (n - half) * v + off) + (over(v + off, (half + 1) * v + off) if half else ZERO)
        return total / (n * v)
    off = max(first * v - Fraction(d.lower), Fraction(d.upper) - last * v, v / 2 * (placement == "linear"))
    total, beside = over(off, n * v + off), 2 * over(2 * v, 3 * v)
    if loss.integral(max((n - 2) * v, ZERO), False) - loss.integral(max((n - 3) * v, ZERO), True) < beside:
        total += beside
    if n <= 256:
        total = min(total, sum((2 * over(k * v - v / 2 + off, k * v + off) for k in range(1, n + 1)), ZERO))
    return total / (n * v)

def check_piecewise(s: Any) -> Pair:
    """A floor and a window whose heights all inputs share; the bathtub inequality seen from the worst input."""
    p, m, c = s.problem, s.mechanism, s.certificate
    d, eps, circle = p.domain, p.privacy.eps, p.domain.is_a == "circle"
    Work.spend(20_000)
    must(p.privacy.is_a == "ldp" and m.is_a == "PiecewiseMechanism", "LDP, and a density of pieces")
    must(all(getattr(d, k) == v for k, v in vars(m.domain).items()), "a mechanism on the problem's domain")
    must(m.placement == "centred" or (m.placement == "linear" and not circle), "how the window is placed")
    averaged = circle and p.objective.is_a == "average" and p.objective.prior == "uniform"
    must(p.objective.is_a == "worst-case" or averaged, "the worst case (on a circle, or the average) is asked for")
    for k in p.constraints:
        wide = k.is_a == "outputs" and k.low <= d.lower and d.upper <= k.high
        must(wide and (c.is_a == "kernel" or (k.low == d.lower and k.high == d.upper)), "no constraint but wide outputs")
    must(0 < m.width_cells <= CELLS and 0 < m.floor_coins <= COINS, "the parameters' range")
    mass, width, full = Fraction(m.floor_coins, COINS), Fraction(m.width_cells, CELLS), m.width_cells == CELLS
    pieces = 1 if full else 2 if circle else 3
    must(p.family.is_a == "all" or (p.family.is_a == "piecewise" and 2 <= p.family.m >= pieces), "the number of pieces")
    must((1 if full else 1 + (1 - mass) / (mass * width)) <= eps.low, "the likelihood ratio")
    loss, reach = Distance(p.objective.loss), d.width / 2 if circle else d.width
    far, near = (numbers_value(loss, d, m.placement, share) for share in (1 + ZERO, width))
    value = mass * far + (1 - mass) * near
    if c.is_a == "constant":
        must(p.family.is_a == "piecewise" and p.family.m == 2 and not circle, "two pieces on an interval")
        return value, loss.integral(reach, False) / reach
    if c.is_a == "kernel":
        return value, kernel_bound(s)
    shared = p.family.is_a == "piecewise" or circle
    must(c.is_a == "bathtub" and c.threshold >= 0 and shared, "heights that inputs share (on a circle: any mechanism)")
    t = Fraction(c.threshold)
    under = t * loss.crossing(t, reach, True) - loss.integral(loss.crossing(t, reach, False), False) if t > 0 else ZERO
    must(loss.integral(reach, False) - t * reach >= (eps.high - 1) * under, "the threshold")
    return value, t

def check_finite(s: Any) -> Pair:
    """A table of probabilities; the dual of the linear program, output by output."""
    p, m, c, rows = s.problem, s.mechanism, s.certificate, s.problem.objective.loss.rows
    count, columns = len(p.domain.symbols), len(rows[0])
    Work.spend(30 * count * columns + 1000)
    must(p.privacy.is_a == "ldp" and p.family.is_a == "all" and not p.constraints, "LDP, all mechanisms, no constraint")
    must(p.objective.is_a in ("worst-case", "average"), "the worst case or an average is asked for")
    must(m.is_a == "FiniteMechanism" and m.domain == p.domain, "a table for this alphabet")
    must(len(set(m.outputs)) == len(m.outputs) == columns and len(m.weights) == count == len(rows), "the table's size")
    must(all(len(row) == columns and min(row) >= 0 and sum(row) == ROW for row in m.weights), "rows that sum to 1")
    ends = [(min(column), max(column)) for column in zip(*m.weights, strict=True)]
    must(all(high <= low * p.privacy.eps.low for low, high in ends), "the likelihood ratios")
    must(min(map(min, rows)) >= 0, "a loss >= 0")
    exact = [[Fraction(v) for v in row] for row in rows]
    losses = [sum((w * v for w, v in zip(*both, strict=True)), ZERO) / ROW for both in zip(m.weights, exact, strict=True)]
    must(c.is_a == "finite" and len(c.masses) == count, "a multiplier for each symbol")
    lam, nu = [Fraction(w) for w in c.weights], [Fraction(v) for v in c.masses]
    if p.objective.is_a == "average":
        must(not lam, "no weights, which the prior gives")
        share = dict.fromkeys(p.domain.symbols, ZERO if p.objective.prior != "uniform" else Fraction(1, count))
        if p.objective.prior != "uniform":
            share.update(zip(p.objective.prior.categories, p.objective.prior.exact, strict=True))
        must(len(share) == count, "a prior on the alphabet")
        lam = [share[symbol] for symbol in p.domain.symbols]
    must(len(lam) == count and min(lam) >= 0 < sum(lam), "weights >= 0")
    worst = p.objective.is_a == "worst-case"
    value = max(losses) if worst else sum((w * v for w, v in zip(lam, losses, strict=True)), ZERO)
    least = ZERO
    for column in zip(*exact, strict=True):
        excess = [a * v - b for a, v, b in zip(lam, column, nu, strict=True)]
        least = min(least, sum(excess, ZERO) + (p.privacy.eps.high - 1) * sum(e for e in excess if e < 0))
    return value, (sum(nu, ZERO) + least) / sum(lam)

def divergence(m: Any, k: int, growth: Fraction, p: list[int]) -> Fraction:
    """sum over all integers i of (p_|i| - E p_|i+k|)+ (in the units of p), for 0 < k, and k <= n where there is a tail."""
    size, top, bottom = len(m.weights), growth.numerator, growth.denominator

    def part(low: int, high: int) -> int:
        return sum(max(bottom * p[abs(i)] - top * p[abs(i + k)], 0) for i in range(low, high))

    if not m.tail:
        return Fraction(part(-size - k, size), bottom)
    # From `size` on, and below -size - k, what follows is b times what was n cells before.
    ends = part(size, size + m.n) + part(-size - k - m.n + 1, -size - k + 1)
    return Fraction(part(-size - k + 1, size), bottom) + Fraction(ends, bottom) / (1 - Fraction(m.decay, LIMB))

def noise_is_private(m: Any, privacy: Any, total: int) -> bool:
    """Whether no shift up to the sensitivity exceeds delta, at a rational below e^eps."""
    size, n, growth, unit = len(m.weights), m.n, privacy.eps.low, LIMB**4
    cells = Fraction(privacy.sensitivity) * n / Fraction(m.sensitivity)
    last = min(int(cells), max(2 * size, n))
    Work.spend(2 * (size + n) * min(n, 10**6) // 10)
    p = [w * unit for w in m.weights]
    for k in range(4):
        p += [t * (LIMB - m.decay) * m.decay**k * LIMB ** (3 - k) for t in m.tail]
    if m.tail and m.decay and not m.atom and min(*m.weights, *m.tail) > 0:  # if delta = 0, the ratios over n cells decide
        line = p[n:0:-1] + p[: size + 3 * n]
        pairs = ((max(line[i - n : i + n + 1]), line[i]) for i in range(n, size + 3 * n))
        if all(a * growth.denominator <= b * growth.numerator for a, b in pairs):
            return True
    p += [0] * (size + last + 2)
    Work.spend(last * 2 * (2 * size + last + 2 * len(m.tail)))
    found = {k: divergence(m, k, growth, p) for k in range(1, last + 1)} | {0: ZERO}
    worst = max(found.values())
    if last < cells and m.domain.is_a == "line":  # linear in the shift from one cell to the next
        on = min(cells - last, 1 + ZERO)
        worst = max(worst, (1 - on) * found[last] + on * divergence(m, last + 1, growth, p))
    return worst / unit + m.atom <= privacy.delta * total

def noise_value(m: Any, q: Fraction, total: int) -> Fraction:
    """Not below E|Z|^q, where Z is spread evenly in its cell (on the integers: at it)."""
    h, b, n, discrete = Fraction(m.sensitivity) / m.n, Fraction(m.decay, LIMB), m.n, m.domain.is_a == "integers"
    Work.spend((len(m.weights) + len(m.tail)) * (5 if q in (1, 2) else 2000))
    if q in (1, 2):
        body = Fraction(sum(w * a ** int(q) for a, w in enumerate(m.weights)))
        first, second = n * b / (1 - b), n * n * b * (1 + b) / (1 - b) ** 2  # moments of n times a geometric number
        body += sum(t * (a + first if q == 1 else a * a + 2 * a * first + second) for a, t in enumerate(m.tail, len(m.weights)))
        within = 0 if discrete else Fraction(m.weights[0], 4) if q == 1 else Fraction(total - m.atom, 12)
        return (2 * body + within) * h ** int(q) / total

    def cell(a: int) -> Fraction:
        if discrete:
            return power(Fraction(a), q, True)
        inner = power((a - Fraction(1, 2)) * h, q + 1, False) if a else -power(h / 2, q + 1, True)
        return (power((a + Fraction(1, 2)) * h, q + 1, True) - inner) / ((q + 1) * h)

    out = sum((w * (2 if a else 1) * cell(a) for a, w in enumerate(m.weights)), ZERO)
    periods, ratio = 8, Fraction(1)
    while m.tail:  # from one period to the next |z|^q b^k falls at least by `ratio`
        edge = len(m.weights) + n + periods * n
        ratio = b * power(Fraction(edge + n, edge), q, True)
        Work.spend(2000 * periods * n)
        if ratio < (1 + b) / 2 and power(Fraction(edge), q, True) * b**periods < Fraction(1, 10**25):
            for a, t in enumerate(m.tail, len(m.weights)):
                out += 2 * t * (1 - b) * sum((cut(b**k * cell(a + k * n), True) for k in range(periods)), ZERO)
            out += 2 * sum(m.tail) * (1 - b) * b**periods * power(h * (edge + 1), q, True) / (1 - ratio)
            break
        periods *= 2
    return out / total

def check_additive(s: Any) -> Pair:
    """Noise on cells; the dual of the lattice program, or for delta = 0 the staircase's."""
    p, m, c, privacy, loss = s.problem, s.mechanism, s.certificate, s.problem.privacy, s.problem.objective.loss
    must(privacy.is_a == "approx" and p.family.is_a == "additive", "(eps, delta)-privacy and additive noise are asked for")
    must(p.objective.is_a in ("worst-case", "average", "at") and loss.is_a == "power", "the mean of a power of the distance")
    must(all(k.is_a == "unbiased" for k in p.constraints), "no constraint but unbiasedness, which symmetric noise keeps")
    must(m.is_a == "AdditiveMechanism" and m.domain == p.domain, "noise on this domain")
    discrete, q, wide = p.domain.is_a == "integers", Distance(loss).q, m.sensitivity
    assert q is not None
    must(0 <= privacy.delta < 1 < privacy.delta + privacy.eps.high, "a guarantee that noise can have")
    must(privacy.eps.low <= exp(Fraction(30), True), "eps up to 30")
    must(m.weights and min(m.atom, m.decay, *m.weights, *m.tail) >= 0 and m.decay < LIMB and m.n > 0, "weights >= 0")
    total = m.atom + m.weights[0] + 2 * sum(m.weights[1:]) + 2 * sum(m.tail)
    must(len(m.tail) in (0, m.n) and 0 < total < COINS and (not discrete or (m.n == wide and not m.atom)), "a distribution")
    must(1e-150 <= privacy.sensitivity <= wide <= 1e150, "noise for neighbours this far apart")
    must(not discrete or privacy.sensitivity == int(privacy.sensitivity), "an integer as sensitivity on the integers")
    must(noise_is_private(m, privacy, total), "the guarantee at every shift")
    value, unit, h = noise_value(m, q, total), power(Fraction(privacy.sensitivity), q, False), Fraction(wide) / m.n
    share = Fraction(1, 2**40)  # what is sent is at most that share of |z| + 3h from the density's z
    if not discrete and q < 1:
        value += (value + power(3 * h, q, True)) * power(share, q, True)
    elif not discrete:
        value = power(power(value, 1 / q, True) * (1 + share) + 3 * h * share, q, True)
    if c.is_a == "staircase":
        must(privacy.delta == 0 and not discrete and q in (1, 2) and c.threshold >= 0, "delta = 0 on the line, abs or squared")
        must(c.threshold == 0 or staircase(privacy.eps.high, Fraction(c.threshold) / unit, int(q)), "the threshold")
        return value, Fraction(c.threshold)
    must(c.is_a == "additive" and (discrete or q >= 1), "multipliers on a lattice, and on the line a convex loss")
    must(not discrete or c.n == (privacy.sensitivity if c.rounding == "nodes" else 1), "the integers as the lattice")
    return value, lattice(c, q, discrete, privacy) * unit

def staircase(growth: Fraction, t: Fraction, q: int) -> bool:
    """Whether t is a lower bound at sensitivity 1, E = growth: the bathtub inequality of one period, times 1 - b, b = 1/E."""
    b = 1 / growth
    odds = b / (1 - b)
    flat = odds if q == 1 else b * (1 + b) / (1 - b) ** 2
    ends = [t - odds] * 2  # where the sign changes
    if q == 2:
        ends = [power(max(t - b / (1 - b) ** 2, ZERO), Fraction(1, 2), up) - odds for up in (False, True)]
    low, high = (max(end, ZERO) for end in ends)
    rise = [x**2 / 2 if q == 1 else x**3 / 3 + x**2 * odds for x in (Fraction(1), low)]
    under = max(x * (t - flat) for x in (low, high)) - rise[1]
    return 1 + 2 * odds * (q == 2) + flat - t >= 0 and rise[0] + flat - t >= (growth - 1) * under

def lattice(c: Any, q: Fraction, discrete: bool, privacy: Any) -> Fraction:
    """t - delta sum lam, with t the least of what the multipliers leave at each distance: 0 <= mu <= lam is all they need."""
    bins, n, one, budget = c.rounding == "bins", c.n, 1 << 160, 0
    must(c.rounding in ("nodes", "bins") and 1 <= n <= 10**5, "how the noise is rounded to the lattice")
    last = max([n, *(max(m.first + len(m.values) + n, -m.first) for m in c.multipliers)]) + 1
    Work.spend(last * (1 if q in (1, 2) else 3000) + 2 * sum(len(m.values) + last + abs(m.first) for m in c.multipliers))
    must(len({m.shift for m in c.multipliers}) == len(c.multipliers), "distinct shifts")
    growth, held = math.ceil(privacy.eps.high * one), [0] * (last + 1)
    for m in c.multipliers:
        bounded = min([m.rest, *m.values]) >= 0 and max([m.rest, *m.values]) <= m.weight
        must(bounded and 1 <= m.shift <= n, "multipliers up to their weight, shifts up to n")
        weight, rest, *values = (int(Fraction(v) * one) for v in (m.weight, m.rest, *m.values))
        budget += weight
        for i, v in enumerate(values + [rest] * max(last + 1 - m.first - len(values), 0), m.first):
            for at, change in ((i, v * one), (i + m.shift, -v * growth)):
                a = at if at >= 0 else -1 - at if bins else -at
                if a <= last:
                    held[a] += change
    costs = lattice_costs(q, n, last, not discrete and not bins)
    points = [1 if a == 0 and not bins else 2 for a in range(last + 1)]
    least = min(cost + Fraction(h, k * one * one) for cost, h, k in zip(costs, held, points, strict=True))
    return least - privacy.delta * Fraction(budget + len(c.multipliers), one)

def lattice_costs(q: Fraction, n: int, last: int, sagging: bool) -> list[Fraction]:
    """Costs at a/n whose broken line lies nowhere above |x|^q: less the larger sag of the two chords beside each point."""
    if q in (1, 2):
        return [Fraction(a, n) if q == 1 else Fraction(4 * a * a - sagging, 4 * n * n) for a in range(last + 1)]
    low, high = ([power(Fraction(a, n), q, up) for a in range(last + 2)] for up in (False, True))
    sags = [ZERO] * (last + 2)
    for a in range((last + 1) * sagging):  # the chord minus the power is largest where the power has the chord's slope
        slope, at = (high[a + 1] - low[a]) * n, Fraction(a, n)
        peak = power(slope / q, 1 / (q - 1), True)
        rise = q * power(peak, q - 1, True) - slope  # of |x|^q less the chord there: almost 0, and convexity bounds the rest
        tangent = power(peak, q, False) - slope * (peak - at) - rise * max(peak - at, ZERO)
        sags[a + 1] = max(high[a] - tangent, ZERO)
    costs = [low[a] - max(sags[a], sags[a + 1]) for a in range(last + 1)]
    return list(accumulate(reversed(costs), min))[::-1]  # nondecreasing: the broken line only sinks

def check_lip(s: Any) -> Pair:
    """A kernel on categories with a prior; dual prices of the posteriors."""
    p, m, c, privacy = s.problem, s.mechanism, s.certificate, s.problem.privacy
    task, prior = p.objective.task, p.objective.prior
    d, e, weights = len(prior.weights), privacy.eps, prior.weights
    must(privacy.is_a in ("ldp", "lip") and p.family.is_a == "all" and not p.constraints, "LDP or LIP, all mechanisms")
    must(m.is_a == "LIPMechanism" and c.is_a == "lip", "a kernel on categories, and dual prices")
    must(p.domain.symbols == prior.categories == m.prior.categories, "the categories of the prior as inputs")
    Work.spend(20 * d * len(m.kernel))
    must(all(len(row) == d and min(row) >= 0 and any(row) for row in m.kernel), "the kernel's shape")
    must(len(set(m.labels)) == len(m.labels) == len(m.kernel), "a name for each output")
    must(all(sum(column) == COINS for column in zip(*m.kernel, strict=True)), "probabilities that sum to 1")
    if privacy.is_a == "lip":
        own = privacy.prior
        must((own.weights, own.categories, own.left_out) == (weights, prior.categories, prior.left_out), "one prior")
    for row in m.kernel:
        mean = Fraction(sum(w * k for w, k in zip(weights, row, strict=True)), prior.total)
        below, above = (mean, mean) if privacy.is_a == "lip" else (max(row), min(row))
        must(below <= min(row) * e.low, "no posterior (or probability) far below")
        must((privacy.is_a == "lip" and privacy.lower_only) or max(row) <= above * e.low, "no posterior far above")
    must(e.high <= exp(Fraction(30), True), "eps up to 30")
    fits = task.values is None if task.kind == "histogram" else task.values and len(task.values) == d
    must(fits and task.kind in ("sum", "histogram"), "a value for each category (a histogram has none)")
    x = [Fraction(v) for v in task.values or ()]
    mean = sum((w * v for w, v in zip(prior.exact, x, strict=False)), ZERO)
    x = [v - Fraction(float(mean)) for v in x]  # the format measures values from the float next to their mean
    second = sum((w * v * v for w, v in zip(prior.exact, x, strict=True)), ZERO) if x else Fraction(1)
    value = second
    for row in m.kernel:
        joint = [w * k for w, k in zip(weights, row, strict=True)]
        square = sum((j * v for j, v in zip(joint, x, strict=True)), ZERO) ** 2 if x else sum(j * j for j in joint)
        value -= cut(Fraction(square) / (prior.total * COINS * sum(joint)), False)
    excess = Prices(prior, x, e.high, [Fraction(v) for v in c.nu], [tuple(map(Fraction, knot)) for knot in c.knots])
    if c.method == "simplex":
        must(not c.nu and not c.knots, "no prices")
        moved = sum((w * v for w, v in zip(prior.exact, x, strict=False)), ZERO)
        spread = second - moved * moved if x else 1 - sum(w * w for w in prior.exact)
        return value, (2 / e.high - 1 / e.high**2) * spread
    must(privacy.is_a == "ldp" or not privacy.lower_only, "one-sided privacy, which the simplex proves")
    must(c.method in (("knots",) if x else ("chord", "vertices")) and len(c.nu) == d, "a method and prices for the task")
    must(bool(c.knots) == (c.method != "vertices") and all(len(k) == 2 for k in c.knots), "pairs as knots")
    must(all(a[0] <= b[0] for a, b in pairwise(c.knots)), "knots in order")
    sigma = getattr(excess, ("cone_" if privacy.is_a == "ldp" else "box_") + c.method)()
    return value, second - sum((w * v for w, v in zip(prior.exact, excess.nu, strict=True)), ZERO) - sigma

class Prices:
    """Numbers sigma with phi(r) <= nu.r + sigma for all posteriors r that the guarantee allows: (x.r)^2 or r.r as phi(r)."""

    def __init__(self, prior: Any, x: list[Fraction], e: Fraction, nu: list[Fraction], knots: list[Any]) -> None:
        self.p, self.x, self.e, self.nu, self.knots = prior.exact, x, e, nu, knots
        by: dict[int, list[int]] = {}
        for i in sorted(range(len(nu)), key=lambda i: nu[i]):
            by.setdefault(prior.weights[i], []).append(i)
        self.groups = [by[w] for w in sorted(by, reverse=True)]  # categories of one weight, those of low price first
        Work.spend(30 * (len(knots) + 4) * len(prior.exact))
        # LIP: P/E <= r <= E P, tightened by sum r = 1
        low, high = [cut(w / e, False) for w in self.p], [cut(w * e, True) for w in self.p]
        most, least = sum(high) - 1, 1 - sum(low)
        self.low = [max(a, b - most) for a, b in zip(low, high, strict=True)]
        self.high = [min(b, a + least) for a, b in zip(low, high, strict=True)]

    def linear(self, slopes: list[Fraction]) -> Fraction:
        """Not below slopes.r."""
        both = zip(slopes, self.low, self.high, strict=True)
        return sum((v * (high if v > 0 else low) for v, low, high in both), ZERO)

    def farthest(self, sign: int) -> Fraction:
        """The largest sign x.r: fill up in order."""
        room, total = 1 - sum(self.low), ZERO
        for v, low, high in sorted(zip(self.x, self.low, self.high, strict=True), key=lambda e: -sign * e[0]):
            part = min(room, high - low)
            room, total = room - part, total + sign * v * (low + part)
        return total

    def box_knots(self) -> Fraction:
        """(x.r)^2 = max_t 2 t x.r - t^2; l + max over r of (2 t x - nu - l).r is convex in (t, l): below its chords."""
        first, last = self.knots[0], self.knots[-1]
        points = [(min(first[0], -self.farthest(-1)), first[1]), *self.knots, (max(last[0], self.farthest(1)), last[1])]
        tops = [k + self.linear([2 * t * v - n - k for v, n in zip(self.x, self.nu, strict=True)]) for t, k in points]
        found = []
        for ((a, _), u), ((b, _), v) in pairwise(zip(points, tops, strict=True)):
            slope = (v - u) / (b - a) if b > a else ZERO
            t = min(max(slope / 2, a), b)
            found.append(u + slope * (t - a) - t * t)
        return max(found)

    def box_chord(self) -> Fraction:
        """r^2 <= (a + b) r - a b between a and b."""
        k = self.knots[0][1]
        slopes = [a + b - n - k for a, b, n in zip(self.low, self.high, self.nu, strict=True)]
        return k + self.linear(slopes) - sum(a * b for a, b in zip(self.low, self.high, strict=True))

    def box_vertices(self) -> Fraction:
        """A convex function is largest at a vertex: all but one at a bound; of one weight those of low price are high."""
        widths = [self.high[g[0]] - self.low[g[0]] for g in self.groups]
        start = sum((a * a - n * a for a, n in zip(self.low, self.nu, strict=True)), ZERO)
        states: list[tuple[Fraction, Fraction, tuple[int, ...]]] = [(1 - sum(self.low, ZERO), start, ())]
        later = sum((w * len(g) for w, g in zip(widths, self.groups, strict=True)), max(widths))
        for group, width in zip(self.groups, widths, strict=True):
            later, states, before = later - width * len(group), [], states
            for rest, worth, counts in before:
                Work.spend(40 * (len(group) + 1))
                for count in range(len(group) + 1):
                    if 0 <= rest <= later:
                        states.append((rest, worth, (*counts, count)))
                    if count < len(group):
                        i = group[count]
                        rest, worth = rest - width, worth + width * (self.high[i] + self.low[i] - self.nu[i])
        found = []
        for rest, worth, counts in states:
            for group, width, count in zip(self.groups, widths, counts, strict=True):
                if count < len(group) and rest <= width:
                    i = group[count]
                    found.append(worth + rest * (rest + 2 * self.low[i] - self.nu[i]))
        must(found, "a vertex")
        return max(found)

    def cone(self, cuts: list[Fraction], terms: Any) -> Fraction:
        """LDP: the largest over t in the cuts of sum P max(c_i, E c_i) + (what `terms` says), c_i and it quadratic in t.

        `terms(a, b)`: for each i the coefficients of c_i and a bound on max c_i and on max -c_i over [a, b]; then (k0, k1, k2).
        """
        found = []
        for a, b in pairwise(cuts):
            each, k = terms(a, b)
            for w, (c, top, fall) in zip(self.p, each, strict=True):
                high = value_at(c, (a + b) / 2) > 0
                k = [u + w * (self.e if high else 1) * v for u, v in zip(k, c, strict=True)]
                k[0] += w * (self.e - 1) * max(fall if high else top, ZERO)  # the other choice is better by that at most
            t = min(max(-k[1] / (2 * k[2]), a), b) if k[2] < 0 else a
            found.append(max(value_at(k, u) for u in (a, b, t)))
        return max(found)

    def cone_knots(self) -> Fraction:
        """r = P s / sum P s with 1 <= s <= E: sigma is the largest over t of sum P max(c, E c), c = 2 t x - t^2 - nu."""

        def terms(a: Fraction, b: Fraction) -> Any:
            each = []
            for v, n in zip(self.x, self.nu, strict=True):
                c = (-n, 2 * v, Fraction(-1))
                each.append((c, value_at(c, min(max(v, a), b)), -min(value_at(c, a), value_at(c, b))))
            return each, [ZERO] * 3

        ends = min(self.x), max(self.x)
        return max(self.cone([ends[0], *(t for t, _ in self.knots if ends[0] < t < ends[1]), ends[1]], terms), ZERO)

    def cone_chord(self) -> Fraction:
        """With r = tau u, tau = 1/sum P s: r^2 <= (1 + E) tau P r - E tau^2 P^2, on [tau_k, tau_(k+1)] with the level l_k."""
        inside = [(t, k) for t, k in self.knots if self.e * t > 1 and t < 1]
        levels = [(cut(1 / self.e, False), self.knots[0][1]), *inside]
        cuts, square = [*(t for t, _ in levels), Fraction(1)], self.e * sum(w * w for w in self.p)

        def terms(a: Fraction, b: Fraction) -> Any:
            level, each = next(k for t, k in reversed(levels) if t == a), []
            for w, n in zip(self.p, self.nu, strict=True):
                c = (ZERO, -n - level, (1 + self.e) * w)  # tau times a linear function
                ends = [value_at(c[1:], t) for t in (a, b)]
                each.append((c, b * max(*ends, ZERO), -b * min(*ends, ZERO)))
            return each, [level, ZERO, -square]

        return self.cone(cuts, terms)

    def cone_vertices(self) -> Fraction:
        """phi - nu.r is convex along rays: largest at s in {1, E}^d; of one weight those of low price are high."""
        states, e = [(ZERO, ZERO, ZERO)], self.e
        for group in self.groups:
            w, options, price = self.p[group[0]], [], sum((self.nu[i] for i in group), ZERO)
            for count in range(len(group) + 1):
                options.append((w * (len(group) + count * (e - 1)), w * w * (len(group) + count * (e * e - 1)), w * price))
                price += self.nu[group[count]] * (e - 1) if count < len(group) else 0
            Work.spend(10 * len(states) * len(options))
            states = [(a + x, b + y, c + z) for a, b, c in states for x, y, z in options]
        return max(cut((square - price * mass) / (mass * mass), True) for mass, square, price in states)

# --- kernels on intervals: floors seen through their quantile function Q, in shares of the domain

def highest(function: Any, marks: list[Fraction], best: Fraction | None = None) -> Fraction:
    """Not below a function that is continuous, and of degree 4 at most between marks: by Bernstein coefficients, halved."""
    first, left = function(marks[0]), 4000
    for a, b in pairwise(marks):
        f = [first, *(function(a + (b - a) * k / 4) for k in (1, 2, 3)), function(b)]
        first, fine = f[4], max(map(abs, f)) / 2**70
        one, two, three = (
            sum(w * v for w, v in zip(row, f, strict=True)) / 36
            for row in ((-39, 144, -108, 48, -9), (26, -128, 240, -128, 26), (-9, 48, -108, 144, -39))
        )
        best = max(f) if best is None else max(best, *f)
        todo = [[f[0], one, two, three, f[4]]]
        while todo:
            row = todo.pop()
            if max(row) <= best:
                continue
            left -= 1
            Work.spend(200)
            if not left or max(row) <= max(row[0], row[-1]) + fine:
                best = max(row)
                continue
            triangle = [row]
            while len(triangle[-1]) > 1:
                triangle.append([(u + v) / 2 for u, v in pairwise(triangle[-1])])
            todo += [[r[0] for r in triangle], [r[-1] for r in reversed(triangle)]]
    assert best is not None
    return best

class Quantiles:
    """Q on `cells`, from `low` to `high` on each piece: integrals of Q and its square over cells, and of |Q - x|."""

    def __init__(self, cells: list[int], ends: list[tuple[Fraction, Fraction]]) -> None:
        self.cells, self.ends, self.edges = cells, ends, [0, *accumulate(cells)]
        whole = [[c * (a + b) / 2, c * (a * a + a * b + b * b) / 3] for c, (a, b) in zip(cells, ends, strict=True)]
        self.sums = [[ZERO, *accumulate(column)] for column in zip(*whole, strict=True)]

    def upto(self, c: Fraction) -> tuple[Fraction, Fraction]:
        """The integrals over the cells before c."""
        Work.spend(60)
        k = min(bisect_right(self.edges, c), len(self.cells)) - 1
        part, (a, b) = c - self.edges[k], self.ends[k]
        b = a + (b - a) * part / self.cells[k]
        return self.sums[0][k] + part * (a + b) / 2, self.sums[1][k] + part * (a * a + a * b + b * b) / 3

    def around(self, c: int, above: bool) -> Fraction:
        """Q beside a cell's start."""
        k = min(bisect_right(self.edges, c), len(self.cells)) - 1 if above else max(bisect_left(self.edges, c), 1) - 1
        a, b = self.ends[k]
        return a + (b - a) * (c - self.edges[k]) / self.cells[k]

    def below(self, x: Fraction) -> Fraction:
        """The cells where Q is below x."""
        k = max(bisect_right(self.ends, x, key=lambda ends: ends[0]) - 1, 0)
        a, b = self.ends[k]
        share = min(max((x - a) / (b - a), ZERO), ZERO + 1) if a < b else Fraction(x > a)
        return self.edges[k] + self.cells[k] * share

    def distance(self, x: Fraction, c: Fraction, under: Fraction, there: Fraction) -> Fraction:
        """The integral of |Q - x| over the cells before c; Q is below x before `under`, where the integral of Q is `there`."""
        here = self.upto(c)[0]
        return x * c - here if c <= under else x * (2 * under - c) - 2 * there + here

def check_kernel(s: Any) -> Pair:
    """What the mechanism attains at the numbers it sends, and what the certificate proves."""
    p, m, d = s.problem, s.mechanism, s.problem.domain
    if m.is_a == "PiecewiseMechanism":
        return check_piecewise(s)
    loss, objective, width = p.objective.loss, p.objective, d.width
    worst, exact = objective.is_a == "worst-case", m.is_a == "KernelMechanism" and m.rule == "mean"
    must(m.is_a == "KernelMechanism" and p.privacy.is_a == "ldp" and vars(m.domain).items() <= vars(d).items(), "LDP")
    must(worst or objective.is_a == "average", "the worst case or an average is asked for")
    must(len(m.cells) == len(m.lows) == len(m.highs) and min(m.cells, default=0) > 0 == sum(m.cells) - CELLS, "cells")
    must(0 < m.width_cells <= CELLS and 0 < m.floor_coins <= COINS and m.rule in ("ends", "mean"), "the parameters' range")
    path = [end for both in zip(m.lows, m.highs, strict=True) for end in both]
    must(all(a <= b for a, b in pairwise(path)) and 0 <= m.share <= 1, "a nondecreasing Q")
    mass, n = Fraction(m.floor_coins, COINS), m.width_cells
    must((1 if n == CELLS else 1 + (1 - mass) * CELLS / (mass * n)) <= p.privacy.eps.low, "the likelihood ratio")
    step, fine = Fraction(2) ** -1074, Fraction(2) ** -1074
    low, high = (Fraction(d.lower) + width * Fraction(end) for end in (path[0], path[-1]))
    while max(abs(low), abs(high)) > step * 2**53 or (exact and high - low > step * 2**40):
        step *= 2
    while max(abs(d.lower), abs(d.upper)) > fine * 2**53:
        fine *= 2
    if loss.is_a != "power" or loss.exponent not in (1, 2) or m.share != 0.5 or (exact and (fine > 1 or not worst)):
        raise CannotCheck("this loss, share or average, or means on so coarse a lattice, are not known here")
    if not worst and objective.prior == "uniform":
        raise CannotCheck("an average under a density is not known here")
    first, last = sorted((math.ceil(low / step), math.floor(high / step)))
    limits = [(c.low, c.high) for c in p.constraints if c.is_a == "outputs"]
    unbiased = any(c.is_a == "unbiased" for c in p.constraints)
    for a, b in limits or [(d.lower, d.upper)][unbiased:]:
        must(a <= first * step and last * step <= b, "outputs within the limits")
    ends = [(Fraction(a), Fraction(b)) for a, b in zip(m.lows, m.highs, strict=True)]
    if exact:
        lattice = [[min(max(round((d.lower + width * e) / step), first), last) for e in both] for both in ends]
        ends = [((a * step - Fraction(d.lower)) / width, (b * step - Fraction(d.lower)) / width) for a, b in lattice]
    Work.spend(100 * len(ends))
    q, slope = Quantiles(m.cells, ends), max((b - a) / c for (a, b), c in zip(ends, m.cells, strict=True))
    starts = sorted({a for e in q.edges for a in (e, e - n) if 0 <= a <= CELLS - n})
    windows = [(a, b, q.around(a, True), q.around(b, False), q.around(a + n, True), q.around(b + n, False))
               for a, b in pairwise(starts)]
    must(exact or not unbiased, "exact means")
    if exact:
        must(loss.exponent == 2 and windows, "the variance")
        value = variance(q, mass, n, windows)
        added = max((1 - mass) / n * min(g, b - a) ** 2 * max(ra - qa, rb - qb) * (qb - qa + rb - ra) / (b - a) / 4
                    for a, b, qa, qb, ra, rb in windows
                    for g in [2 ** max(min(n.bit_length() - 23, (b - a).bit_length() - 13), 0)])
        off = max(fine / 2, math.ceil(Fraction(d.lower) / fine) * fine - Fraction(d.lower),
                  Fraction(d.upper) - math.floor(Fraction(d.upper) / fine) * fine)
        return (value + added) * width**2 + step**2 / 4 + off**2, kernel_bound(s)
    rows: list[Any] = [((qa + ra) / 2, (qb + rb) / 2, a, b) for a, b, qa, qb, ra, rb in windows]
    rows = rows or [(ends[0][0], ends[-1][1], 0, 0)]
    far = max(math.ceil(max(abs(rows[0][0]), abs(rows[-1][1]))), 1)
    blur = (step + (high - low) / 2**52) / width + Fraction(far, 2**49)
    unit = Fraction(2) ** (blur.numerator.bit_length() - blur.denominator.bit_length() - 32)
    blur = math.ceil(blur / unit) * unit

    def expected(x: Fraction) -> Fraction:
        k = max(bisect_right(rows, x, key=lambda row: row[0]) - 1, 0)
        x0, x1, a0, a1 = rows[k]
        a = a0 + (a1 - a0) * (min(max((x - x0) / (x1 - x0), ZERO), 1) if x1 > x0 else Fraction(x > x0))
        if loss.exponent == 1:
            under = q.below(x)
            there = q.upto(under)[0]
            whole, after, before = (q.distance(x, c, under, there) for c in (Fraction(CELLS), a + n, a))
        else:
            whole, after, before = (j - 2 * x * i + x * x * c for c in (Fraction(CELLS), a + n, a) for i, j in [q.upto(c)])
        return mass * whole / CELLS + (1 - mass) * (after - before) / n

    marks = {x for row in rows for x in row[:2]} | {e for both in ends for e in both}

    def largest(a: Fraction, b: Fraction) -> Fraction:
        return highest(expected, sorted({a, b, *(x for x in marks if a < x < b)}))

    if worst:
        value = largest(ZERO, ZERO + 1)
    else:
        value = ZERO
        for point, chance in zip(objective.prior.categories, objective.prior.exact, strict=True):
            x = (Fraction(point) - Fraction(d.lower)) / width
            must(0 <= x <= 1, "a prior on the domain")
            value += chance * largest(max(x - blur, ZERO), min(x + blur, ZERO + 1))
    reach = max(path[-1], 1 - path[0])
    far = 1 if path[0] >= 0 and path[-1] <= 1 else 2 ** max(0, math.ceil(reach)).bit_length()
    if loss.exponent == 1:
        return (value + blur + 2 * (1 - mass) / n * slope) * width, kernel_bound(s)
    value = (power(value, Fraction(1, 2), True) + blur) ** 2 + 4 * (1 - mass) / n * slope * (far + blur)
    return value * width**2, kernel_bound(s)

def variance(q: Quantiles, mass: Fraction, n: int, windows: list[Any]) -> Fraction:
    """The largest variance where every input is the mean: along the starts of windows."""

    def moments(a: Fraction) -> Any:
        sums = (q.upto(c) for c in (Fraction(CELLS), a + n, a))
        return [mass * whole / CELLS + (1 - mass) * (after - before) / n for whole, after, before in zip(*sums, strict=True)]

    def spread(a: Fraction) -> Fraction:
        mean, square = moments(a)
        return square - mean * mean

    low, high = Fraction(windows[0][0]), Fraction(windows[-1][1])
    must(moments(low)[0] <= 0 and moments(high)[0] >= 1, "means that reach both ends of the domain")
    ends = []
    for goal, side in ((0, 0), (1, 1)):
        a, b = low, high
        for _ in range(160):
            middle = (a + b) / 2
            a, b = (middle, b) if moments(middle)[0] <= goal else (a, middle)
        ends.append((a, b)[side])
    inner = {Fraction(c) for window in windows for c in window[:2] if ends[0] < c < ends[1]}
    return highest(spread, sorted({*ends, *inner}))

class Layer:
    """A density over inputs, linear between nodes, with thresholds: those of y favour it where |y - centre| < reach."""

    def __init__(self, x: list[Fraction], rows: list[list[Fraction]], q: int) -> None:
        self.q, self.x, self.rows, (_, reach, centre) = q, x, rows, rows
        self.low, self.high = ([c + sign * t for c, t in zip(centre, reach, strict=True)] for sign in (-1, 1))
        must(all(a <= b for ends in (self.low, self.high) for a, b in pairwise(ends)), "favoured outputs that move upwards")
        parts = [self.part(i, b) for i, b in enumerate(x[1:])]
        self.sums = [[ZERO, *accumulate(column)] for column in zip(*parts, strict=True)]

    def part(self, i: int, z: Fraction) -> list[Fraction]:
        """From node i to z: the integrals of the density times 1, the centre, its square, the reach^q, (x - centre)^2."""
        Work.spend(200)
        a, found = self.x[i], [ZERO] * 5
        for at, weight in ((a, 1), ((a + z) / 2, 4), (z, 1)):  # Simpson's rule is exact for cubic polynomials
            share = (at - a) / (self.x[i + 1] - a)
            w, t, c = (row[i] + (row[i + 1] - row[i]) * share for row in self.rows)
            values: list[Any] = [1, c, c * c, t**self.q, (at - c) ** 2]
            found = [old + w * weight * v for old, v in zip(found, values, strict=True)]
        return [v * (z - a) / 6 for v in found]

    def upto(self, z: Fraction) -> list[Fraction]:
        i = min(max(bisect_right(self.x, z) - 1, 0), len(self.x) - 2)
        return [s[i] + v for s, v in zip(self.sums, self.part(i, min(max(z, self.x[0]), self.x[-1])), strict=True)]

    def where(self, ends: list[Fraction], y: Fraction) -> Fraction:
        """The input whose window ends at y."""
        i = min(max(bisect_right(ends, y) - 1, 0), len(ends) - 2)
        share = (y - ends[i]) / (ends[i + 1] - ends[i]) if ends[i] < ends[i + 1] else Fraction(y > ends[i])
        return self.x[i] + (self.x[i + 1] - self.x[i]) * min(max(share, ZERO), ZERO + 1)

    def at(self, y: Fraction) -> Pair:
        """The integral of r(x, y) over all inputs, and over those that favour y."""
        split = self.upto(y) if self.q == 1 else []

        def total(z: Fraction) -> Fraction:
            mass, first, second, level, _ = self.upto(z)
            if self.q == 2:
                return y * y * mass - 2 * y * first + second - level
            return (y * mass - first if z <= y else 2 * (y * split[0] - split[1]) - y * mass + first) - level

        return total(self.x[-1]), total(self.where(self.low, y)) - total(self.where(self.high, y))

def kernel_bound(s: Any) -> Fraction:
    """What the certificate proves for every mechanism on the interval: int g dm >= 0 for the floor m, g as below."""
    p, c, d, eps = s.problem, s.certificate, s.problem.domain, s.problem.privacy.eps
    loss, objective = p.objective.loss, p.objective
    if loss.is_a != "power" or loss.exponent not in (1, 2):
        raise CannotCheck("a kernel certificate for this loss is not known here")
    q = int(loss.exponent)
    must(c.is_a == "kernel" and d.is_a == "interval" and p.privacy.is_a == "ldp", "multipliers for kernels on an interval")
    must(eps.low <= exp(Fraction(30), True) and objective.is_a in ("worst-case", "average"), "eps up to 30")
    tilted, x = bool(c.centres or c.point_centres), list(map(Fraction, c.mesh))
    unbiased = any(k.is_a == "unbiased" for k in p.constraints)
    must(not tilted or (unbiased and q == 2), "centres for unbiased mechanisms alone")
    must(len(c.densities) == len(c.reaches) <= 8 and len(c.centres) == len(c.densities) * tilted, "complete layers")
    must(all(len(row) == len(x) >= 2 for row in (*c.densities, *c.reaches, *c.centres)), "a number at each node")
    must(len(c.points) == len(c.weights) == len(c.point_reaches) <= 4096 >= len(x), "complete atoms")
    must(len(c.point_centres) == len(c.points) * tilted, "complete centres")
    must(all(a < b for a, b in pairwise(x)) and all(0 <= v <= 1 for v in (*x, *c.points)), "inputs in the domain")
    tables = [v for row in (*c.densities, *c.reaches, c.weights, c.point_reaches) for v in row]
    centres = [abs(v) for row in (*c.centres, c.point_centres) for v in row]
    must(min(tables, default=0) >= 0 and max([0, *tables, *centres]) <= 2.0**60, "the multipliers' range")
    points, weights, total = list(map(Fraction, c.points)), list(map(Fraction, c.weights)), ZERO + 1
    if objective.is_a == "average":
        if objective.prior == "uniform":
            raise CannotCheck("an average under a density is not known here")
        shares = [(Fraction(v) - Fraction(d.lower)) / d.width for v in objective.prior.categories]
        places = {float(v): (v, chance) for v, chance in zip(shares, objective.prior.exact, strict=True)}
        must(not c.densities and all(v in places for v in c.points), "points of the prior alone")
        for name, (_, chance) in places.items():
            must(sum(w for v, w in zip(c.points, weights, strict=True) if v == name) <= chance, "the prior's probabilities")
        points = [places[v][0] for v in c.points]
    reaches, middles = list(map(Fraction, c.point_reaches)), list(map(Fraction, c.point_centres)) or points
    layers = [Layer(x, [list(map(Fraction, row)) for row in rows], q)
              for rows in zip(c.densities, c.reaches, c.centres or [c.mesh] * len(c.densities), strict=True) if any(rows[0])]
    atoms = [a for a in zip(weights, reaches, middles, points, strict=True) if a[0]]
    value = sum((w * (t**q - (at - m) ** 2) for w, t, m, at in atoms), ZERO)
    for layer in layers:
        value += layer.sums[3][-1] - layer.sums[4][-1]
    if objective.is_a == "worst-case":
        total = sum(weights, ZERO) + sum((layer.sums[0][-1] for layer in layers), ZERO)
        must(total > 0, "a prior with positive mass")
    growth = cut(eps.high, True) - 1

    def g(y: Fraction) -> Fraction:
        Work.spend(100 + 20 * len(atoms))
        r = [w * (abs(y - m) ** q - t**q) for w, t, m, _ in atoms]
        both = [layer.at(y) for layer in layers]
        return -(sum(r) + sum(a for a, _ in both) + growth * (sum(v for v in r if v < 0) + sum((b for _, b in both), ZERO)))

    marks = {v for _, t, m, _ in atoms for v in (m - t, m, m + t)}
    marks |= {v for layer in layers for ends in (layer.low, layer.high, layer.rows[2]) for v in ends}
    low, high = ZERO, ZERO + 1
    limits = [[(Fraction(v) - Fraction(d.lower)) / d.width for v in (k.low, k.high)]
              for k in p.constraints if k.is_a == "outputs"]
    if limits:
        low, high = limits[0]
    if not tilted:
        low, high = (min(max(v, ZERO), ZERO + 1) for v in (low, high))
    else:
        first, last = min(marks), max(marks)
        mass = sum((w for w, *_ in atoms), ZERO) + sum((layer.sums[0][-1] for layer in layers), ZERO)
        mean = sum((w * m for w, _, m, _ in atoms), ZERO) + sum((layer.sums[1][-1] for layer in layers), ZERO)
        closed = g(first) <= 0 >= g(last) and mass * first <= mean <= mass * last
        must(closed or (limits and unbiased), "outputs far away")
        if closed and not limits:
            low, high = first, last
        elif closed:
            low, high = min(max(low, first), last), max(min(high, last), first)
    inner = sorted({low, high, *(v for v in marks if low < v < high)})
    return (value - highest(g, inner if len(inner) > 1 else [low, low + Fraction(1, 2**80)], ZERO)) / total * d.width**q

# --- what is said

def prove(s: Any) -> Pair:
    """By the kind of the problem."""
    p, kind = s.problem, s.problem.domain.is_a
    risk = p.objective.is_a == "bayes-risk"
    loss = "" if risk else p.objective.loss.is_a
    if p.family.is_a in ("affine-window", "composite") or loss == "pinball":
        raise CannotCheck("a problem of this family, or with this loss, is not known here")
    must((kind == "alphabet") == (risk or loss == "matrix"), "an objective for this domain")
    if risk:
        return check_lip(s)
    if kind == "alphabet":
        rows = p.objective.loss.rows
        must(len(rows) > 1 and rows[0] and all(len(row) == len(rows[0]) for row in rows), "a matrix as loss")
        return check_finite(s)
    if kind in ("line", "integers"):
        return check_additive(s)
    return check_kernel(s) if kind == "interval" and p.family.is_a == "all" else check_piecewise(s)

def check(raw: bytes, limit: int = LIMIT) -> tuple[int, str]:
    """(exit status, what is printed) for the bytes of a file."""
    Work.left = limit
    try:
        s = load(raw)
        must(0 <= s.lower_bound <= s.value, f"lower_bound = {s.lower_bound!r} <= value = {s.value!r}")
        value, bound = prove(s)
        must(value <= s.value, f"the mechanism attains value = {s.value!r}")
        must(Fraction(s.lower_bound) <= max(bound, ZERO), f"the optimum is at least lower_bound = {s.lower_bound!r}")
    except NotProven as error:
        return 1, f"no: {error}"
    except (CannotCheck, ArithmeticError, LookupError, TypeError, ValueError, AttributeError, MemoryError) as error:
        known = isinstance(error, CannotCheck)
        return 2, f"cannot check: {error if known else f'malformed ({type(error).__name__})'}"
    bracket = f"is at least {s.lower_bound!r} and at most {s.value!r}, which the mechanism attains"
    return 0, f"yes: {statement(s.problem)}\n     {bracket}"

def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Check a saved solution of optdp: exit status 0 proven, 1 not, 2 neither.")
    parser.add_argument("file")
    parser.add_argument("--limit", type=float, default=LIMIT / 1e6, help="millions of steps (default: 10, some seconds)")
    arguments = parser.parse_args()
    try:
        with open(arguments.file, "rb") as stream:
            status, said = check(stream.read(SIZE + 1), int(arguments.limit * 1e6))
    except (OSError, OverflowError, ValueError) as error:
        status, said = 2, f"cannot check: {error}"
    print(said, file=sys.stderr if status == 2 else sys.stdout)
    return status

if __name__ == "__main__":
    sys.exit(main())

"""Answers made private where they are given: one file that needs Python alone.

`optdp client --plan plan.json --language python` writes this file with a plan in it. `randomize(record)` makes the private record
by the integer algorithm of the library, with random bits from the operating system; `STATEMENT` tells the person asked what this
protects. What does not fit the plan is `Refused`, by column and reason, and no message ever holds a value.

**Bits.** Everything is drawn from 32-bit words. A uniform integer below n takes as many bits b as n - 1 has: the top b
of one word, or the top b - 32 of one and the whole next one below them; what is n or more is drawn again, and n = 1 takes no
word. A coin compares 62 bits with the leading half of its 124-bit probability, and 62 more with the rest on a tie.
"""

from __future__ import annotations

import datetime
import decimal
import json
import math
import numbers
import os
import re
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from functools import partial
from itertools import accumulate
from typing import Any

PLAN: dict[str, Any] = {}

#: What the plan promises, in words for the person asked; which plan it is; the names of its columns.
STATEMENT: str = PLAN.get("statement", "")
DIGEST: str = PLAN.get("digest", "")
COLUMNS: tuple[str, ...] = tuple(column["name"] for column in PLAN.get("columns", ()))

#: Kernels are drawn from so many cells; tosses have 62 bits.
_CELLS, _LIMB = 2**50, 2**62
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
#: What may stand around numbers and flags: other languages have other lists of spaces.
SPACE = " \t\r\n"
DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})([T ].*)?")
BEYOND, GONE = "it is out of range", "it is missing"
NO_NUMBER = "it is not a number (a missing entry is left empty)"
_WORDS = {"true": 1, "yes": 1, "1": 1, "false": 0, "no": 0, "0": 0}


class Refused(ValueError):
    """A record that the plan does not allow, or an answer beyond what it promised; the message holds no value."""


# --- random integers


_FIRST = struct.Struct("<16I").unpack


def _words(source: Callable[[int], bytes] = os.urandom) -> Iterator[int]:
    """32-bit words, little-endian; nothing is kept from one record to the next, so that a forked process draws its own."""
    size = 128
    yield from _FIRST(source(64))
    while True:
        yield from struct.unpack(f"<{size // 4}I", source(size))
        size = min(2 * size, 4096)


def _below(largest: int, words: Iterator[int]) -> int:
    """A uniform integer from 0 to `largest` < 2^64."""
    bits = largest.bit_length()
    if bits <= 32:
        shift = 32 - bits
        while bits:
            if (drawn := next(words) >> shift) <= largest:
                return drawn
        return 0
    shift = 64 - bits
    while True:
        if (drawn := next(words) >> shift << 32 | next(words)) <= largest:
            return drawn


def _coin(cuts: list[int] | None, words: Iterator[int]) -> bool:
    """True with the probability whose two halves of 62 bits are `cuts`; always for None."""
    if cuts is None:
        return True
    toss = _toss(words)
    if toss != cuts[0] or not cuts[1]:
        return toss < cuts[0]
    return _toss(words) < cuts[1]


def _toss(words: Iterator[int]) -> int:
    """62 bits."""
    return next(words) >> 2 << 32 | next(words)


# --- mechanisms: (their data, the input, words) -> what is sent


def _piecewise(m: dict[str, Any], x: float, words: Iterator[int]) -> float:
    """Uniform over the numbers of a lattice, or over those of a window around the input."""
    first, last = m["first"], m["last"]
    at = min(max(round(x / m["step"]), first), last)
    far = first + _below(last - first, words)
    floor = _coin(m["floor"], words)
    final = last - m["window"]
    if m["slope"] is None:
        start = min(max(at - (m["window"] + 1) // 2, first), final)
    else:
        near = int((at - first) * m["slope"])
        start = min(max(first + near, max(at - m["window"], first)), min(at, final))
    near = start + _below(m["window"], words)
    return float((far if floor else near) * m["step"])


def _over(a: float, b: float) -> float:
    """a/b, also where b = 0."""
    return a / b if b else a * math.inf


def _ends(m: dict[str, Any], x: float, words: Iterator[int]) -> float:
    """A cell of the floor, or of a window whose ends the input divides, and the number of the lattice that it stands for."""
    cell = _below(_CELLS - 1, words)
    floor = _coin(m["floor"], words)
    share = (x - m["lower"]) / m["width"]
    left, right, start, end = m["map"]
    k = max(bisect_right(left, share) - 1, 0)
    t = _over(share - left[k], right[k] - left[k])
    t = min(max(t, 0.0), 1.0) if t == t else 0.0
    near = min(max(int(start[k] + t * (end[k] - start[k])), 0), _CELLS - 1 - m["window"])
    near += _below(m["window"], words)
    if not floor:
        cell = near
    piece = bisect_right(m["edges"], cell) - 1
    place = m["starts"][piece] + round(m["slopes"][piece] * (2 * (cell - m["edges"][piece]) + 1))
    return float(min(max(place, m["first"]), m["last"]) * m["step"])


def _mean(m: dict[str, Any], x: float, words: Iterator[int]) -> float:
    """A cell of the floor, or of a window that makes the input the mean, and a number of the lattice next to it.

    Where the window starts, and which of two numbers is sent, are coins with exact chances; floats toss them where they are sure.
    """
    cell = _below(_CELLS - 1, words)
    floor = _coin(m["floor"], words)
    at = min(max(round(x / m["read"]), m["first"]), m["last"])
    near = _start(m, at, _toss(words), words) + _below(m["window"], words)
    if not floor:
        cell = near
    toss = _toss(words)
    piece = bisect_right(m["edges"], cell) - 1
    edge, low, rise, whole, slope = m["pieces"][piece]
    middle = 2 * (cell - edge) + 1
    moved = slope * middle + toss / _LIMB
    if abs(moved - round(moved)) < (moved + 1) * 2**-49:
        down, rest = divmod(rise * middle, whole)
        return float((low + down + _tossed(_LIMB - 1 - toss, rest, whole, words)) * m["step"])
    return float((low + math.floor(moved)) * m["step"])


def _tossed(toss: int, top: int, bottom: int, words: Iterator[int]) -> bool:
    """Whether a uniform number with these 62 leading bits is below top/bottom; a tie is tossed on."""
    while True:
        cut, top = divmod(top * _LIMB, bottom)
        if toss != cut or not top:
            return toss < cut
        toss = _toss(words)


def _start(m: dict[str, Any], at: int, toss: int, words: Iterator[int]) -> int:
    """The first cell of a window: one of the two nodes around the input, such that the mean is the input."""
    mean = at / m["scale"]
    k = bisect_right(m["means"], mean) - 1
    if k >= 0:
        start, left, rate, bend, length, grid, size = m["stretches"][k]
        beyond = mean - left
        root = rate + math.sqrt(max(rate * rate + 4 * bend * beyond, 0.0))
        low = min(math.floor(min(_over(2 * beyond, root), length) / grid) * grid if root else 0, length)
        high = min(low + grid, length)
        step = (high - low) * (rate + bend * (low + high))
        if step > 0:
            chance, drawn = (beyond - low * (rate + bend * low)) / step, toss / _LIMB
            margin = (abs(mean) + size) * 2**-44 / step + 2**-45
            if abs(drawn - chance) > margin and margin < chance < 1 - margin:
                return int(start + (high if drawn < chance else low))
    return _exact_start(m, at, toss, words)


def _exact_start(m: dict[str, Any], at: int, toss: int, words: Iterator[int]) -> int:
    """The same in integers."""
    mean = at * m["unit"]

    def reached(start: int) -> bool:
        top, bottom = _exact_mean(m, start)
        return top <= mean * bottom

    k = bisect_left(m["starts"], True, key=lambda start: not reached(start)) - 1
    if k < 0:
        return int(m["starts"][0])
    start, grid, length = m["starts"][k], m["grids"][k], m["lengths"][k]
    top, bottom = _exact_mean(m, start)
    if top == mean * bottom:
        return int(start)
    nodes = range(0, length, grid)
    low = nodes[bisect_left(nodes, True, key=lambda node: not reached(start + node)) - 1] if length else 0
    high = min(low + grid, length)
    (a, b), (c, d) = _exact_mean(m, start + low), _exact_mean(m, start + high)
    top, bottom = (mean * b - a) * d, c * b - a * d
    up = bottom > 0 and _tossed(toss, min(top, bottom), bottom, words)
    return int(start + (high if up else low))


def _exact_mean(m: dict[str, Any], start: int) -> tuple[int, int]:
    """The mean of what is sent with the window at a cell, times `unit`, as a fraction."""
    (a, b), (c, d) = _under(m, start), _under(m, start + m["window"] + 1)
    bottom = b * d
    return m["far"] * bottom + m["near"] * (c * b - a * d), bottom


def _under(m: dict[str, Any], cell: int) -> tuple[int, int]:
    """Twice the sum over all cells before this one of what they stand for, as a fraction."""
    piece = bisect_right(m["edges"], cell) - 1
    low, rise, count = m["lows"][piece], m["highs"][piece] - m["lows"][piece], m["cells"][piece]
    within = cell - m["edges"][piece]
    return m["sums"][piece] * count + within * (2 * low * count + rise * within), count


def _ready_mean(m: dict[str, Any]) -> None:
    """What `_mean` looks up: sums in integers, and on each stretch of starts how the mean moves, in floats."""
    m["cells"] = [b - a for a, b in zip(m["edges"], [*m["edges"][1:], _CELLS], strict=True)]
    pieces = zip(m["lows"], m["highs"], m["cells"], strict=True)
    m["sums"] = [0, *accumulate((low + high) * count for low, high, count in pieces)]
    last, coins, width = _CELLS - 1 - m["window"], int(m["coins"]), m["window"] + 1
    m["lengths"] = [b - a for a, b in zip(m["starts"], [*m["starts"][1:], last], strict=True)]
    m["scale"] = int(m["step"] / m["read"])
    # The mean is coins/2^124 times the floor's, which is sums[-1]/(2 cells), and the rest times the window's.
    m["far"] = coins * width * m["sums"].pop() * m["scale"]
    m["near"] = (2**124 - coins) * _CELLS * m["scale"]
    m["unit"] = 2 * 2**124 * _CELLS * width
    spans = zip(m["edges"], m["lows"], m["highs"], m["cells"], strict=True)
    m["pieces"] = [(edge, low, high - low, 2 * n, (high - low) / (2 * n)) for edge, low, high, n in spans]
    m["means"], m["stretches"] = [], []
    for start, length, grid in zip(m["starts"], m["lengths"], m["grids"], strict=True):
        top, bottom = _exact_mean(m, start)
        i, j = (bisect_right(m["edges"], cell) - 1 for cell in (start, start + width))
        first, final = (_apart(m, i, j, start + moved, start + moved + width) for moved in (0, length))
        speed = (2**124 - coins) / (2**124 * width)
        left, rate = top / (bottom * m["unit"] * m["scale"]), speed * (first[0] / first[1])
        change = final[0] * first[1] - first[0] * final[1]
        bend = speed * (change / (first[1] * final[1])) / (2 * length) if length else 0.0
        m["means"].append(left)
        m["stretches"].append((start, left, rate, bend, length, grid, abs(left) + (rate + abs(bend) * length) * length))


def _apart(m: dict[str, Any], i: int, j: int, low: int, high: int) -> tuple[int, int]:
    """How far apart the ends of a window are, from a cell in piece i to one in piece j, as a fraction."""
    (a, n), (b, k) = ((m["lows"][p] * m["cells"][p] + (m["highs"][p] - m["lows"][p]) * (cell - m["edges"][p]), m["cells"][p])
                      for p, cell in ((i, low), (j, high)))  # fmt: skip
    return b * n - a * k, n * k


def _set(m: dict[str, Any], x: int, words: Iterator[int]) -> list[int]:
    """A set of categories with the own one in it or not, the others uniform (Floyd's algorithm); sorted."""
    size, universe, own = m["size"], m["universe"], _coin(m["own"], words)
    if size == 1:
        other = _below(universe - 2, words)
        return [x if own else other + (other >= x)]
    chosen: set[int] = set()
    for k in range(int(own), size):
        top = universe - 1 - size + k
        drawn = _below(top, words)
        chosen.add(top if drawn in chosen else drawn)
    if x in chosen:  # the own category is renamed to the last one, which was not drawn
        chosen.add(universe - 1)
    (chosen.add if own else chosen.discard)(x)
    return sorted(chosen)


def _affine(m: dict[str, Any], x: int, words: Iterator[int]) -> list[int]:
    """Two integers a, b that stand for the set of all c with a c + b mod q below the size."""
    q, size, own = m["universe"], m["size"], _coin(m["own"], words)
    slope = 1 + _below(q - 2, words)
    inside = _below(size - 1, words)
    outside = size + _below(q - size - 1, words)
    return [slope, ((inside if own else outside) - slope * x) % q]


_DRAW: dict[str, Callable[..., Any]] = {
    "piecewise": _piecewise,
    "ends": _ends,
    "mean": _mean,
    "set": _set,
    "affine": _affine,
}


# --- entries


def _number(column: dict[str, Any], value: Any) -> float:
    if type(value) is not float and type(value) is not int:
        if missing(value):
            raise Refused(GONE)
        if isinstance(value, str):
            text = value.strip(SPACE)
            if not NUMBER.fullmatch(text):
                raise Refused(NO_NUMBER)
            value = float(text)
        elif isinstance(value, bool) or not isinstance(value, numbers.Real | decimal.Decimal):
            raise Refused(NO_NUMBER)
        elif hasattr(value, "dtype"):  # numpy compares numbers of 32 bits in 32 bits
            value = float(value)
    if value != value:
        raise Refused(GONE)
    lower, upper = column["lower"], column["upper"]
    if not lower <= value <= upper:
        if not column["clip"]:
            raise Refused(BEYOND)
        value = min(max(value, lower), upper)
    value = float(value) + 0.0  # -0 is 0
    if column["whole"] and not value.is_integer():
        raise Refused("it is not an integer")
    return value


def _date(column: dict[str, Any], value: Any) -> float:
    if missing(value):
        raise Refused(GONE)
    try:
        if not isinstance(value, datetime.date):
            value = datetime.date.fromisoformat(DAY.fullmatch(str(value)).group(1))  # type: ignore[union-attr]
    except (TypeError, AttributeError, ValueError):
        raise Refused("it is not a date: it must be written 2026-01-31") from None
    return _number(column, value.toordinal() - column["first"])


def missing(value: Any) -> bool:
    """Whether an entry is None, NaN, NaT, pandas.NA or an empty text; nothing else is missing."""
    if value is None or isinstance(value, str):
        return not value
    try:
        return bool(value != value)
    except decimal.InvalidOperation:  # a NaN that signals
        return True
    except TypeError:  # pandas.NA: comparisons with it have no truth value
        return type(value).__name__ == "NAType"
    except ValueError:  # an array
        return False


def lookup(names: Sequence[Any], texts: Sequence[str]) -> dict[str, dict[Any, int]]:
    """Where categories stand: `places`, by themselves and as texts; `numbers`, by the number that a text is, -1 for several."""
    found: dict[float, int] = {}
    for i, text in enumerate(texts):
        if NUMBER.fullmatch(text):
            found[float(text)] = -1 if float(text) in found else i
    return {"places": {name: i for pair in (names, texts) for i, name in enumerate(pair)}, "numbers": found}


def category(column: dict[str, Any], value: Any) -> int:
    """The place of an entry: of the category that it is, or is written like, or that is the same number.

    Tables make numbers of texts, and files texts of numbers: 1 and 1.0 are the text "1" if no other category is this number,
    "1.0" is the number 1. Truth values are the numbers 0 and 1 and no texts. **Raises** Refused.
    """
    is_text, places = isinstance(value, str), column["places"]
    if is_text and column["flag"]:
        value = _WORDS.get(value.strip(SPACE).lower(), value)
    try:
        found = places.get(value)
    except TypeError:  # a list, an array
        found = None
    if found is not None:
        return int(found)
    if missing(value):
        if column["missing"] is None:
            raise Refused(GONE)
        return int(column["missing"])
    number = isinstance(value, numbers.Number) and not isinstance(value, bool)
    exact = isinstance(value, numbers.Rational)  # the text of a large one may have too many digits
    text = value.strip(SPACE) if is_text else str(value) if number and not (exact and abs(value) >= 2**53) else ""
    if NUMBER.fullmatch(text) and abs(float(text)) < 2**53:
        found = (places if is_text else column["numbers"]).get(float(text))
    if found == -1:
        raise Refused("it is a number that several values are written like: it must be a text")
    if found is None and column["other"] is None:
        raise Refused("it is none of the values of the plan")
    if found is None and not (is_text or number):
        raise Refused("it is neither a text nor a number")
    return int(column["other"] if found is None else found)


_READ: dict[str, Callable[..., Any]] = {"number": _number, "date": _date, "category": category}


def reader(column: dict[str, Any]) -> Callable[[Any], Any]:
    """What reads an entry of a column, which it gives what is looked up often. **Raises** Refused."""
    if column["type"] == "category":
        column["texts"] = column["texts"] or [str(v) for v in column["values"]]
        column |= lookup(column["values"], column["texts"])
    if column["type"] == "date":
        column["first"] = datetime.date.fromisoformat(column["first"]).toordinal()
    return partial(_READ[column["type"]], column)


def _ready(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan with what is looked up often."""
    for column in plan.get("columns", ()):
        column["read"] = reader(column)
        m = column["mechanism"]
        for name in {"floor", "own"} & set(m):
            m[name] = _words_of(m[name])
        if "window" in m:
            m["window"] = m["window"][0] << 32 | m["window"][1]
        if m["kind"] == "mean":
            _ready_mean(m)
    for unit in plan.get("units", ()):
        unit["true"] = _words_of(unit.get("true"))
        unit["names"] = [plan["columns"][j]["name"] for j in unit["columns"]]
    return plan


def _words_of(cuts: list[int] | None) -> list[int] | None:
    return cuts and [cuts[0] << 32 | cuts[1], cuts[2] << 32 | cuts[3]]


_PLAN = _ready(PLAN)
_KEY = f"optdp:{DIGEST}"


def _inputs(record: Mapping[str, Any]) -> list[Any]:
    """What the mechanisms read, or `Refused`."""
    if not isinstance(record, Mapping):
        raise Refused("the record must have named fields")
    for name in record:
        if name not in COLUMNS:
            raise Refused(f"the record has a field that the plan does not know; it is for {', '.join(COLUMNS)} alone")
    found = []
    for column in _PLAN["columns"]:
        try:
            found.append(column["read"](record.get(column["name"])))
        except Refused as why:
            raise Refused(f"{column['name']}: {why}") from None
    return found


def _draw(column: dict[str, Any], x: Any, words: Iterator[int]) -> Any:
    m = column["mechanism"]
    drawn = _DRAW[m["kind"]](m, x, words)
    if not isinstance(drawn, list):
        return drawn
    return column["texts"][drawn[0]] if m["kind"] == "set" and m["size"] == 1 else " ".join(map(str, drawn))


def _draw_unit(unit: dict[str, Any], inputs: list[Any], words: Iterator[int]) -> list[Any]:
    """The private entries of columns that are reported together: of one, or all true, or all uniform."""
    columns, places = _PLAN["columns"], unit["columns"]
    if len(places) == 1:
        return [_draw(columns[places[0]], inputs[places[0]], words)]
    true, sent = _coin(unit["true"], words), []
    for j in places:
        other = _below(columns[j]["mechanism"]["universe"] - 1, words)
        sent.append(columns[j]["texts"][inputs[j] if true else other])
    return sent


def _chosen(words: Iterator[int]) -> list[bool]:
    """Which units are reported: a uniform set of as many as the plan says."""
    k, left, out = len(_PLAN["units"]), _PLAN["reported"], []
    if k == 1:
        return [True]
    for j in range(k):
        out.append(_below(k - j - 1, words) < left)
        left -= out[-1]
    return out


def randomize(record: Mapping[str, Any], storage: MutableMapping[str, str] | None = None) -> dict[str, Any]:
    """The private record: numbers, texts, and None for what is not reported.

    **Arguments:** `record`: an entry for each of `COLUMNS`; `storage`: texts by name that stay with this person on this device. A
    plan that is answered once refuses a second answer there (without storage the caller sees to it); a memoised one needs it,
    and gives the same private entry as long as, and whenever, the true one is the same.

    **Raises** Refused; TypeError where storage is needed.
    """
    return _answer(record, storage, _words())


def replay(
    record: Mapping[str, Any], source: Callable[[int], bytes], storage: MutableMapping[str, str] | None = None
) -> dict[str, Any]:
    """For tests: the same with the bytes of `source`, which protect nobody."""
    return _answer(record, storage, _words(source))


def _answer(
    record: Mapping[str, Any], storage: MutableMapping[str, str] | None, words: Iterator[int]
) -> dict[str, Any]:
    inputs = _inputs(record)
    memoised = _PLAN["repeat"] == "memoised"
    if storage is None:
        if memoised:
            raise TypeError("storage is missing: this plan keeps its answers there")
        chosen = _chosen(words)
        return _placed([_draw_unit(unit, inputs, words) for unit in _PLAN["units"]], chosen)
    state = _state(storage)
    if state and not memoised:
        raise Refused("this plan is answered once, and has been: answered(storage) is what was sent")
    chosen = state["chosen"] if state else _chosen(words)
    state, drawn = state or {"chosen": chosen, "kept": [{} for _ in chosen]}, []
    for unit, kept, asked in zip(_PLAN["units"], state["kept"], chosen, strict=True):
        key = repr([inputs[j] for j in unit["columns"]]) if memoised else ""
        drawn.append(kept[key] if key in kept else _draw_unit(unit, inputs, words))
        if asked:
            kept[key] = drawn[-1]
    state["last"] = _placed(drawn, chosen)
    storage[_KEY] = json.dumps(state)  # first kept, then sent
    return dict(state["last"])


def _placed(drawn: list[list[Any]], chosen: list[bool]) -> dict[str, Any]:
    """The private record, in the order of the columns."""
    out: dict[str, Any] = dict.fromkeys(COLUMNS)
    for unit, sent, asked in zip(_PLAN["units"], drawn, chosen):  # noqa: B905
        if asked:
            out.update(zip(unit["names"], sent))  # noqa: B905  (twice as fast)
    return out


def _state(storage: MutableMapping[str, str]) -> Any:
    text = storage.get(_KEY)
    return None if text is None else json.loads(text)


def answered(storage: MutableMapping[str, str]) -> dict[str, Any] | None:
    """The private record that was last made for this storage, to be sent again if it was lost; None if there is none."""
    state = _state(storage)
    return state and state["last"]


def spent(storage: MutableMapping[str, str]) -> float:
    """The epsilon that all answers from this storage have together: that of each different entry that was answered."""
    state = _state(storage)
    if state is None:
        return 0.0
    return float(sum(len(kept) * unit["eps"] for unit, kept in zip(_PLAN["units"], state["kept"], strict=True)))


def line(record: Mapping[str, Any], storage: MutableMapping[str, str] | None = None) -> str:
    """The private record as a line of JSON with the plan's digest, as `optdp collect` reads it."""
    return json.dumps({"optdp": DIGEST, **randomize(record, storage)})

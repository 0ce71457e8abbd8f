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
import json
import math
import numbers
import os
import re
import struct
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any

PLAN: dict[str, Any] = {}

#: What the plan promises, in words for the person asked; which plan it is; the names of its columns.
STATEMENT: str = PLAN.get("statement", "")
DIGEST: str = PLAN.get("digest", "")
COLUMNS: tuple[str, ...] = tuple(column["name"] for column in PLAN.get("columns", ()))

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})([T ].*)?")
_WORDS = {"true": 1, "yes": 1, "1": 1, "false": 0, "no": 0, "0": 0}


class Refused(ValueError):
    """A record that the plan does not allow, or an answer beyond what it promised; the message holds no value."""


# --- random integers


def _words(source: Callable[[int], bytes] = os.urandom) -> Iterator[int]:
    """32-bit words, little-endian; nothing is kept from one record to the next, so that a forked process draws its own."""
    size = 64
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
    toss = next(words) >> 2 << 32 | next(words)
    if toss != cuts[0] or not cuts[1]:
        return toss < cuts[0]
    return (next(words) >> 2 << 32 | next(words)) < cuts[1]


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


def _kernel(m: dict[str, Any], x: float, words: Iterator[int]) -> float:
    """A uniform cell of the floor, or of a window that the input places, and the output that the cell stands for."""
    cell = _below(2**50 - 1, words)
    floor = _coin(m["floor"], words)
    share = (x - m["lower"]) / m["width"]
    left, right, start, end, fast, slow = m["map"]
    k = max(bisect_right(left, share) - 1, 0)
    t = _over(share - left[k], right[k] - left[k])
    if m["mean"]:
        c, r, s = t * (fast[k] + slow[k]) / 2, fast[k], slow[k]
        inner = r * r + 2 * (s - r) * c
        t = _over(2 * c, r + math.sqrt(max(inner, 0.0)))
    t = min(max(t, 0.0), 1.0) if t == t else 0.0
    near = min(max(int(start[k] + t * (end[k] - start[k])), 0), 2**50 - 1 - m["window"])
    near += _below(m["window"], words)
    if not floor:
        cell = near
    piece = bisect_right(m["edges"], cell) - 1
    return float(m["low"][piece] + m["slope"][piece] * ((cell - m["edges"][piece]) + 0.5))


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


_DRAW: dict[str, Callable[..., Any]] = {"piecewise": _piecewise, "kernel": _kernel, "set": _set, "affine": _affine}


# --- entries


def _number(column: dict[str, Any], value: Any) -> float:
    if type(value) is not float and type(value) is not int:
        if value is None or value == "":
            raise Refused("it is missing")
        if isinstance(value, str):
            text = value.strip()
            if not _NUMBER.fullmatch(text):
                raise Refused("it is not a number")
            value = float(text)
        elif isinstance(value, bool) or not isinstance(value, numbers.Real):
            raise Refused("it is not a number")
    if value != value:
        raise Refused("it is missing")
    lower, upper = column["lower"], column["upper"]
    if not lower <= value <= upper:
        if not column["clip"]:
            raise Refused("it is out of range")
        value = min(max(value, lower), upper)
    value = float(value) + 0.0  # -0 is 0
    if column["whole"] and not value.is_integer():
        raise Refused("it is not an integer")
    return value


def _date(column: dict[str, Any], value: Any) -> float:
    if value is None or value == "":
        raise Refused("it is missing")
    try:
        if not isinstance(value, datetime.date):
            value = datetime.date.fromisoformat(_DAY.fullmatch(value).group(1))  # type: ignore[union-attr]
    except (TypeError, AttributeError, ValueError):
        raise Refused("it is not a date: it must be written 2026-01-31") from None
    return _number(column, value.toordinal() - column["first"])


def _category(column: dict[str, Any], value: Any) -> int:
    if column["flag"] and isinstance(value, str):
        value = _WORDS.get(value.strip().lower(), value)
    places = column["places"]
    try:
        found = places.get(value)
        if found is None and isinstance(value, str):
            found = column["as_text"].get(value)
        missing = value is None or value == "" or bool(value != value)
    except (TypeError, ValueError):  # a list, an array
        found, missing = None, False
    if found is not None:
        return int(found)
    if missing and column["missing"] is None:
        raise Refused("it is missing")
    if not missing and column["other"] is None:
        raise Refused("it is none of the values of the plan")
    return int(column["missing"] if missing else column["other"])


_READ: dict[str, Callable[..., Any]] = {"number": _number, "date": _date, "category": _category}


def _ready(plan: dict[str, Any]) -> dict[str, Any]:
    """The plan with what is looked up often."""
    for column in plan.get("columns", ()):
        if column["type"] == "category":
            column["texts"] = column["texts"] or [str(v) for v in column["values"]]
            column["places"] = {v: i for i, v in enumerate(column["values"])}
            column["as_text"] = {t: i for i, t in enumerate(column["texts"])}
        if column["type"] == "date":
            column["first"] = datetime.date.fromisoformat(column["first"]).toordinal()
        m = column["mechanism"]
        for name in {"floor", "own"} & set(m):
            m[name] = m[name] and [m[name][0] << 32 | m[name][1], m[name][2] << 32 | m[name][3]]
        if m["kind"] in ("piecewise", "kernel"):
            m["window"] = m["window"][0] << 32 | m["window"][1]
    return plan


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
            found.append(_READ[column["type"]](column, record.get(column["name"])))
        except Refused as why:
            raise Refused(f"{column['name']}: {why}") from None
    return found


def _draw(column: dict[str, Any], x: Any, words: Iterator[int]) -> Any:
    m = column["mechanism"]
    drawn = _DRAW[m["kind"]](m, x, words)
    if not isinstance(drawn, list):
        return drawn
    return column["texts"][drawn[0]] if m["kind"] == "set" and m["size"] == 1 else " ".join(map(str, drawn))


def _chosen(words: Iterator[int]) -> list[bool]:
    """Which columns are reported: a uniform set of as many as the plan says."""
    k, left, out = len(COLUMNS), _PLAN["reported"], []
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
    columns, memoised = _PLAN["columns"], _PLAN["repeat"] == "memoised"
    if storage is None:
        if memoised:
            raise TypeError("storage is missing: this plan keeps its answers there")
        chosen = _chosen(words)
        drawn = [_draw(column, x, words) for column, x in zip(columns, inputs, strict=True)]
        return {name: y if c else None for name, y, c in zip(COLUMNS, drawn, chosen, strict=True)}
    state = _state(storage)
    if state and not memoised:
        raise Refused("this plan is answered once, and has been: answered(storage) is what was sent")
    chosen = state["chosen"] if state else _chosen(words)
    state = state or {"chosen": chosen, "kept": {name: {} for name in COLUMNS}}
    out = {}
    for column, x, asked in zip(columns, inputs, chosen, strict=True):
        kept, key = state["kept"][column["name"]], repr(x) if memoised else ""
        y = kept[key] if key in kept else _draw(column, x, words)
        if asked:
            kept[key] = y
        out[column["name"]] = y if asked else None
    state["last"] = out
    storage[_KEY] = json.dumps(state)  # first kept, then sent
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
    return float(sum(len(state["kept"][column["name"]]) * column["eps"] for column in _PLAN["columns"]))


def line(record: Mapping[str, Any], storage: MutableMapping[str, str] | None = None) -> str:
    """The private record as a line of JSON with the plan's digest, as `optdp collect` reads it."""
    return json.dumps({"optdp": DIGEST, **randomize(record, storage)})

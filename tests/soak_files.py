"""Mutated files by the hundred thousand: none is believed that is wrong, none ends in a traceback or takes longer than it may.

    python -m tests.soak_files --count 100000 --jobs 2

Solutions of every problem in `tests.solutions` are saved, and their JSON is damaged: one field, many fields, the bytes. What is
changed is chosen from the tree alone, whatever the format. Many forgeries are helped: the same number is changed wherever it
stands, mass is moved within a row, parts are exchanged with other solutions, and the claims are set to just what the forged
parts prove.

An accepted file says that the optimum of its problem lies in a bracket. It is wrong if that contradicts what is known of this
problem: the bracket of its own, untampered solution, what untampered mechanisms attain and untampered certificates prove for it.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import random
import re
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import optdp
from optdp.certificates.base import Refusal
from optdp.exact.fields import FieldError, Fields
from optdp.exact.work import Overwork
from tests import checkers
from tests.solutions import MAKE, solution

#: Seconds of this process that a file may take: what the default limit counts as 10, on a machine that is not the fastest.
SLOW = 30.0
#: Files longer than this are made into small ones first: lists are what is long in them.
LONG = 100_000

NUMBERS: list[Any] = [
    0, 1, -1, 2, 0.5, 1e-9, 1e-300, 5e-324, 1e6, 1e18, 1e150, 1e300, 1.7e308, 2**53 + 1, 2**62, 2**124, 10**25, 10**400,
    "1/3", "log(3)", "-1/7", "0.1", "1e9", "1e999999999", "1/0", "log(0)", "9" * 1000, "1/" + "9" * 1000, "9" * 5000,
    "log(" + "9" * 1000 + ")",
]  # fmt: skip
OTHERS: list[Any] = [
    None, True, False, "", "x", "\u0000", "\ud800", "e" * 20_000, [], {}, [[]], [1], ["a", None], {"type": "x"},
]  # fmt: skip
TOKENS = [
    b"NaN", b"Infinity", b"1e400", b"-0", b"1E5", b"[", b"{", b'"', b",", b"null", b"\\u0000", b"9" * 5000, b"\xff",
    b"\xef\xbb\xbf",
]  # fmt: skip


# --- trees


def paths(data: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places below `data`."""
    found = []
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        found.append((*path, key))
        found += paths(value, (*path, key))
    return found


def at(data: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        data = data[key]
    return data


def put(data: Any, path: tuple[Any, ...], value: Any) -> None:
    at(data, path[:-1])[path[-1]] = value


def numeric(value: Any) -> bool:
    """Whether a leaf is a number, or an integer written as text."""
    return (isinstance(value, int | float) and not isinstance(value, bool)) or (
        isinstance(value, str) and value.lstrip("-").isdigit() and value.isascii() and len(value) < 4000
    )


def other(value: Any, rng: random.Random) -> Any:
    """Another number in the form of the given one, near or far."""
    if not numeric(value):
        return rng.choice(NUMBERS)
    old = int(value) if isinstance(value, str) else value
    factor = rng.choice([0.5, 0.9, 0.99, 1 - 1e-9, 1 + 1e-9, 1.01, 1.1, 1.3, 2, 4, -1])
    match rng.randrange(4):
        case 0:
            return rng.choice(NUMBERS)
        case 1 if isinstance(old, int):
            new: Any = old + rng.choice([-1, 1, 2, 7, -7])
        case 1:
            new = old + rng.choice([-1, -0.01, 0.01, 1])
        case _ if isinstance(old, int):
            new = old * int(factor * 2**30) >> 30
        case _:
            new = old * factor
    return str(new) if isinstance(value, str) else new


# --- forgeries: each changes the tree in place


def one_number(data: Any, rng: random.Random, _: Any) -> None:
    chosen = [p for p in paths(data) if numeric(at(data, p))]
    for path in rng.sample(chosen, min(len(chosen), rng.choice([1, 1, 1, 2, 5]))):
        put(data, path, other(at(data, path), rng))


def claims(data: Any, rng: random.Random, _: Any) -> None:
    """The claims alone: what the file says of itself."""
    for name in ("lower_bound", "value"):
        if name in data and rng.random() < 0.7:
            data[name] = other(data[name], rng)


def everywhere(data: Any, rng: random.Random, _: Any) -> None:
    """One number, wherever it stands: epsilon, an end of the domain, a probability."""
    found = Counter(repr(at(data, p)) for p in paths(data) if numeric(at(data, p)))
    often = [text for text, times in found.items() if times > 1] or list(found)
    text = rng.choice(often)
    chosen = [p for p in paths(data) if numeric(at(data, p)) and repr(at(data, p)) == text]
    new = other(at(data, chosen[0]), rng)
    for path in chosen:
        put(data, path, new)


def by_name(data: Any, rng: random.Random, _: Any) -> None:
    """All fields of one name."""
    names = sorted({p[-1] for p in paths(data) if isinstance(p[-1], str) and numeric(at(data, p))})
    name, seed = rng.choice(names), rng.random()
    for path in paths(data):
        if path[-1] == name and numeric(at(data, path)):
            put(data, path, other(at(data, path), random.Random(seed)))


def whole_list(data: Any, rng: random.Random, _: Any) -> None:
    """A list by a factor, turned round, sorted, shorter, longer."""
    lists = [p for p in paths(data) if isinstance(at(data, p), list) and at(data, p)]
    if not lists:
        claims(data, rng, _)
        return
    path = rng.choice(lists)
    value = at(data, path)
    match rng.randrange(8):
        case 0 | 1:
            factor = rng.choice([0.25, 0.5, 0.9, 1.1, 2.0, 4.0, -1.0])
            new = [
                v * factor if isinstance(v, float) else v * int(4 * factor) // 4 if type(v) is int else v for v in value
            ]
        case 2:
            new = value[::-1]
        case 3:
            new = sorted(value, key=repr)
        case 4:
            new = value[: rng.randrange(len(value))]
        case 5:
            new = value + value[rng.randrange(len(value)) :]
        case 6:
            new = rng.sample(value, len(value))
        case _:
            new = value * rng.choice([2, 3, 1 + 2000 // len(value)])
    put(data, path, new)


def moved(data: Any, rng: random.Random, _: Any) -> None:
    """Mass is moved within lists of integers, whose sums stay."""
    lists = [p for p in paths(data) if isinstance(v := at(data, p), list) and len(v) > 1 and all(numeric(e) for e in v)]
    lists = [p for p in lists if all(not isinstance(e, float) for e in at(data, p))]
    if not lists:
        one_number(data, rng, _)
        return
    for path in rng.sample(lists, min(len(lists), rng.choice([1, 1, 3]))):
        value = at(data, path)
        i, j = rng.sample(range(len(value)), 2)
        step = int(value[i]) >> rng.choice([0, 1, 4, 20, 50])
        for k, change in ((i, -step), (j, step)):
            new = int(value[k]) + change
            value[k] = str(new) if isinstance(value[k], str) else new


def grafted(data: Any, rng: random.Random, source: Any) -> None:
    """Parts of another solution, in the same place."""
    common = [p for p in paths(source) if len(p) <= 3 and p[0] != "program"]
    for path in rng.sample(common, rng.choice([1, 1, 2, 3])):
        try:
            put(data, path, copy.deepcopy(at(source, path)))
        except (KeyError, IndexError, TypeError):
            continue


def misplaced(data: Any, rng: random.Random, _: Any) -> None:
    """Values of other kinds, fields that are missing or that nobody asked for, parts in the place of others."""
    places = paths(data)
    path = rng.choice(places)
    parent = at(data, path[:-1])
    match rng.randrange(5):
        case 0:
            del parent[path[-1]]
        case 1 if isinstance(parent, dict):
            parent["surprise"] = rng.choice(OTHERS)
        case 2:
            put(data, path, copy.deepcopy(at(data, rng.choice(places))))
        case 3:
            put(data, path, rng.choice(NUMBERS))
        case _:
            put(data, path, rng.choice(OTHERS))


def several(data: Any, rng: random.Random, source: Any) -> None:
    for _ in range(rng.choice([2, 3])):
        rng.choice(FORGERIES[:-1])(data, rng, source)


FORGERIES = [
    one_number,
    one_number,
    claims,
    everywhere,
    everywhere,
    by_name,
    whole_list,
    moved,
    grafted,
    misplaced,
    several,
]


def bytewise(raw: bytearray, rng: random.Random) -> None:
    """Bytes changed, cut, doubled, put in, swapped; the rest cut off."""
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        i = rng.randrange(len(raw))
        match rng.randrange(7):
            case 0:
                raw[i] = rng.randrange(256)
            case 1:
                del raw[i : i + rng.randrange(1, 30)]
            case 2:
                raw[i:i] = raw[i : i + rng.randrange(1, 30)]
            case 3:
                raw[i:i] = rng.choice(TOKENS)
            case 4:
                digits = [k for k, c in enumerate(raw) if 48 <= c <= 57] or [i]
                raw[rng.choice(digits)] = rng.choice(b"0123456789")
            case 5:
                j = rng.randrange(len(raw))
                raw[i], raw[j] = raw[j], raw[i]
            case 6:
                del raw[i:]
        if not raw:
            raw[:] = b" "


def helped(data: Any) -> bool:
    """Set the claims to what the forged parts prove and attain, which is what helps a forger most. Whether that can be done."""
    try:
        made = optdp.Solution.read(Fields(copy.deepcopy(data), "forged"))
        with optdp.exact.work.limited(10.0):
            data["lower_bound"] = max(0.0, made.certificate.bound(made.problem).value)
            data["value"] = made.mechanism.enclose(made.problem.objective)[1]
    except Exception:
        return False
    return True


# --- what is true


@cache
def known(problem: Any, solve: bool) -> tuple[float, float]:
    """(lower bound, value) known of a problem: those of its own solution (`solve`: which is made), else by parts of others."""
    pool = list(map(solution, MAKE))
    own = [s for s in pool if s.problem == problem]
    if solve and not own:
        with contextlib.suppress(ValueError, TypeError, RuntimeError, ArithmeticError, AssertionError):
            own = [optdp.solve(problem, rtol=0.05, time_limit=3.0)]
    if own:
        return max(s.lower_bound for s in own), min(s.value for s in own)
    low, high = 0.0, float("inf")
    for other in pool:
        if any(
            type(getattr(other.problem, n)) is not type(getattr(problem, n)) for n in ("domain", "privacy", "objective")
        ):
            continue
        with contextlib.suppress(Refusal):
            low = max(low, other.certificate.bound(problem).value)
        with contextlib.suppress(TypeError, ValueError):
            if all(check.passed for check in other.mechanism.feasible(problem)):
                high = min(high, other.mechanism.enclose(problem.objective)[1])
    return low, high


@dataclass
class Tally:
    """What became of the files."""

    counts: Counter[str] = field(default_factory=Counter)
    slowest: float = 0.0
    problems: list[str] = field(default_factory=list)

    def add(self, other: Tally) -> None:
        self.counts += other.counts
        self.slowest = max(self.slowest, other.slowest)
        self.problems += other.problems

    def wrong(self, kind: str, told: str) -> None:
        self.counts[kind] += 1
        if len(self.problems) < 20:
            self.problems.append(f"{kind}: {told}")


BAD = ("wrong accepted", "uncaught", "unclear", "over the limit", checkers.DISAGREE)
#: Steps of the second checker for most files; every twentieth may take what it takes by default.
QUICK, FULL = 300_000, 20


def is_clear(text: str, name: str) -> bool:
    """One sentence that names the file, without the words of the interpreter."""
    inner = r"Error|NoneType|unhashable|has no attribute|index out|unsupported operand|zip\(\)|argument '|codec|sys\."
    return text.startswith(name) and "\n" not in text and len(text) < 1000 and not re.search(inner, text)


def judge(raw: bytes, path: Path, tally: Tally, label: str, solve: bool) -> None:
    """What `optdp verify` does with these bytes, and whether the second checker says the same."""
    path.write_bytes(raw)
    began = time.process_time()
    first: bool | None = False
    try:
        made = optdp.Solution.load(path)
        verification = made.verify()
        told = f"{made.problem.statement()} {made.mechanism!r} {verification}"
        told.encode()
    except (FieldError, Overwork) as error:
        # Nothing rests on how a solution was found, and the second checker does not read it.
        first = None if isinstance(error, Overwork) or f"{path.name}.program" in str(error) else False
        clear = is_clear(str(error), path.name) or (isinstance(error, Overwork) and is_clear(str(error), "this proof"))
        tally.counts["refused" if isinstance(error, FieldError) else "more work than allowed"] += 1
        if not clear:
            tally.wrong("unclear", f"{label}: {str(error)[:300]}")
    except Exception as error:
        first = None
        tally.wrong("uncaught", f"{label}: {type(error).__name__}: {str(error)[:300]}")
    else:
        first = bool(verification)
        tally.counts["accepted" if verification else "not verified"] += 1
        if verification:
            low, high = known(made.problem, solve)
            both = low > 0 and high < float("inf")
            tally.counts["accepted, judged on both sides" if both else "accepted, judged on one side"] += 1
            if made.lower_bound > high or made.value < low or not made.lower_bound <= made.value:
                tally.wrong(
                    "wrong accepted", f"{label}: [{made.lower_bound}, {made.value}] where [{low}, {high}] is known"
                )
        elif not all(check.detail for check in verification.checks):
            tally.wrong("unclear", f"{label}: a check without a reason")
    seconds = time.process_time() - began
    tally.slowest = max(tally.slowest, seconds)
    if seconds > SLOW:
        tally.wrong("over the limit", f"{label}: {seconds:.1f} s")
    if first is not None:
        options = {} if tally.counts["files"] % FULL == 0 else {"limit": QUICK}
        verdict = checkers.compared(raw, first, **options)
        if verdict == checkers.DISAGREE:
            tally.wrong(verdict, f"{label}: the first says {first}")
        else:
            tally.counts[verdict] += 1


@cache
def originals() -> dict[str, Any]:
    """The JSON form of every solution that is not too long to be damaged often."""
    forms = {name: json.loads(json.dumps(solution(name).to_dict())) for name in MAKE}
    return {name: data for name, data in forms.items() if len(json.dumps(data)) < LONG}


def soak(count: int, seed: int, keep: Path | None = None, *, solve: bool = False) -> Tally:
    """Damage and judge so many files; `solve`: changed problems are also solved, to judge them by their own brackets."""
    rng, tally, forms = random.Random(seed), Tally(), originals()
    names = list(forms)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "file.json")
        for turn in range(count):
            name = names[turn % len(names)]
            data = copy.deepcopy(forms[name])
            forge = rng.choice(FORGERIES)
            if rng.random() < 0.15:
                raw = bytearray(json.dumps(data).encode())
                bytewise(raw, rng)
                label = f"{seed}/{turn} {name}, bytes"
                tally.counts["of bytes"] += 1
            else:
                forge(data, rng, forms[rng.choice(names)])
                help_it = rng.random() < 0.5 and isinstance(data, dict) and helped(data)
                label = f"{seed}/{turn} {name}, {forge.__name__}{', helped' * help_it}"
                tally.counts["of several fields" if forge not in (one_number, misplaced) else "of single fields"] += 1
                tally.counts["helped by claims that are proven"] += help_it
                raw = bytearray(json.dumps(data).encode())
            before = sum(tally.counts[kind] for kind in BAD)
            judge(bytes(raw), path, tally, label, solve)
            tally.counts["files"] += 1
            if keep is not None and sum(tally.counts[kind] for kind in BAD) > before:
                (keep / f"{seed}-{turn}.json").write_bytes(raw)
    return tally


def _part(arguments: tuple[int, int, Path | None]) -> Tally:
    return soak(*arguments, solve=True)


def main() -> int:
    """Run the soak in parts of 1000 files, and print what became of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="a folder for the files that were handled wrongly")
    args = parser.parse_args()
    if args.keep is not None:
        args.keep.mkdir(parents=True, exist_ok=True)
    began, total = time.perf_counter(), Tally()
    parts = [(min(1000, args.count - first), args.seed + first, args.keep) for first in range(0, args.count, 1000)]
    with ProcessPoolExecutor(args.jobs) as pool:
        for tally in pool.map(_part, parts):
            total.add(tally)
            bad = ", ".join(f"{kind} {total.counts[kind]}" for kind in BAD)
            print(
                f"{total.counts['files']} files, {total.counts['accepted']} accepted: {bad}",
                file=sys.stderr,
                flush=True,
            )
    print(f"{len(originals())} solutions, {total.counts['files']} files, {time.perf_counter() - began:.0f} s")
    print(f"  {checkers.summary(total.counts)}")
    for kind in sorted(set(total.counts) - {"files", *BAD}):
        print(f"  {kind:34} {total.counts[kind]:7}")
    print(f"  {'slowest file, seconds of a core':34} {total.slowest:7.2f}")
    for kind in BAD:
        print(f"  {kind:34} {total.counts[kind]:7}")
    for told in total.problems[:40]:
        print(f"    {told}")
    return 1 if any(total.counts[kind] for kind in BAD) else 0


if __name__ == "__main__":
    raise SystemExit(main())

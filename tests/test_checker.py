"""The second checker: the same verdict as `verify()` on every solution and on every forgery of one."""

import ast
import json
import math
import random
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optdp
from optdp import checker
from optdp.certificates.additive import AdditiveCertificate, Multiplier
from optdp.certificates.base import Refusal
from optdp.certificates.kernel import KernelCertificate
from optdp.certificates.lip import LIPCertificate, _Proof
from optdp.certificates.period import Period, PeriodCertificate
from optdp.certificates.spike import SpikeCertificate
from optdp.certificates.staircase import IntegerStaircaseCertificate, StaircaseCertificate
from optdp.certificates.tails import TailsCertificate
from optdp.exact import work
from optdp.exact.fields import FieldError
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.mechanisms.rounded import RoundedNoise
from optdp.mechanisms.staircase import LatticeStaircase
from optdp.problem import Aggregate
from tests.counting import counted
from tests.solutions import MAKE, solution

#: Solutions of the kinds of problems that the checker knows, and those whose loss or guarantee it does not (docs/format.md).
KINDS = ("piecewise", "circle", "kernel", "finite", "additive", "staircase", "lip")
OTHER_LOSSES = ("piecewise huber", "piecewise threshold", "piecewise pieces", "piecewise root", "additive power 1.5")
KNOWN = [n for n in MAKE if n.startswith(KINDS) and n not in OTHER_LOSSES]
PARTS = ("problem", "mechanism", "certificate")
#: Their proofs take a second.
SLOW = (
    "additive delta=0",
    "kernel abs",
    "kernel eps=2",
    "kernel log(3)",
    "kernel un",
    "kernel wide",
    "kernel [0, 2]",
    "lip ldp chord",
    "lip ldp sets",
)


@cache
def text(name):
    return json.dumps(solution(name).to_dict())


def form(name):
    return json.loads(text(name))


def checked(data):
    """(status, what is said) of the second checker."""
    status, said = checker.check(json.dumps(data).encode())
    assert status in (0, 1, 2) and said.startswith(("yes: ", "no: ", "cannot check: ")[status]) and "\n\n" not in said
    return status, said


def verified(data):
    """What the first one says: True, False, or None where it does not read the file."""
    try:
        return bool(optdp.Solution.from_dict(data).verify())
    except FieldError:
        return None


def agree(data, counts=None):
    """Whether the two say the same: proven or not, or one of them does not say."""
    status, said = checked(data)
    if "not known here" in said or "--limit raises" in said:
        return True
    try:
        first = verified(data)
    except work.Overwork:
        return True
    if counts is not None:
        counts[status] = counts.get(status, 0) + 1
    return (status == 0) == (first is True)


@pytest.fixture
def remembered(monkeypatch):
    """Its proofs about the same parts are run once: what is claimed is compared with them anew."""

    def once(routine):
        def call(*parts):
            key = routine, checker.BITS, *(repr({k: v for k, v in vars(part).items() if k != "near"}) for part in parts)
            if key not in PROOFS:
                try:
                    PROOFS[key] = routine(*parts), None
                except checker.Answer as answer:
                    PROOFS[key] = None, answer.args
            found, refused = PROOFS[key]
            if refused:
                raise checker.Answer(*refused)
            return found

        return call

    for name in ("check_additive", "check_kernel", "check_lip", "kernel_bound"):
        monkeypatch.setattr(checker, name, once(getattr(checker, name)))


PROOFS = {}


# --- forgeries


def numbers(data, path=()):
    """Paths of all numbers, also those written as texts, that are part of what is claimed."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        if path == () and key in ("program", "optdp"):
            continue
        digits = isinstance(value, str) and value.removeprefix("-").isdigit()
        if isinstance(value, dict | list):
            yield from numbers(value, (*path, key))
        elif digits or (isinstance(value, int | float) and not isinstance(value, bool)):
            yield (*path, key)


def put(data, path, value):
    for key in path[:-1]:
        data = data[key]
    data[path[-1]] = value


def at(data, path):
    for key in path:
        data = data[key]
    return data


def changed(value, rng):
    """The number, a little or much different."""
    old = int(value) if isinstance(value, str) else value
    near = [old * 1.01, old * 0.99, old * (1 + 1e-9), old + 0.01, old + 1, old - 1]
    new = rng.choice([*near, old * 2, old * 0.5, -old, 0, 1, 1e-300, 1e6])
    return str(int(new)) if isinstance(value, str) else int(new) if isinstance(value, int) else float(new)


def spliced(own, other):
    """One solution with one part of another, claiming what helps it most."""
    for part in PARTS:
        data = form(own)
        data[part] = form(other)[part]
        yield data
        try:
            made = optdp.Solution.from_dict(data)
            bound = made.certificate.bound(made.problem).value
            value = made.mechanism.enclose(made.problem.objective)[1]
        except (Refusal, FieldError, TypeError, ValueError):
            continue
        if math.isfinite(value):
            yield data | {"lower_bound": max(bound, 0.0), "value": max(value, 0.0)}


def improved(name):
    """Bounds one ulp too good, and numbers that are none."""
    own, data = solution(name), form(name)
    bound = own.certificate.bound(own.problem).value
    high = own.mechanism.enclose(own.problem.objective)[1]
    more = math.nextafter(bound, math.inf)
    yield data | {"lower_bound": more, "value": max(more, own.value)}
    yield data | {"value": math.nextafter(high, -math.inf), "lower_bound": 0.0}
    yield data | ({"value": high, "lower_bound": bound} if high >= bound else {})
    yield data | {"lower_bound": -1.0}
    yield data | {"value": "1"}
    yield data | {"value": 1e400}


def edited(name):
    """Entries taken away, doubled in kind, made of another type."""
    for part in (*PARTS, "optdp"):
        for key in form(name)[part]:
            for value in (None, [], {}, "text", True, -1, 1e308, 10**400):
                data = form(name)
                data[part][key] = value
                yield data
            data = form(name)
            del data[part][key]
            yield data
        yield form(name) | {part: form(name)[part] | {"more": 1}}
        yield {k: v for k, v in form(name).items() if k != part}


def mutated(name, rng, count):
    """One number or a few changed, in a part or all over, or one list by one factor."""
    paths = list(numbers(form(name)))
    for turn in range(count):
        data = form(name)
        own = [p for p in paths if p[0] == "certificate"] if turn % 2 else paths
        for path in rng.sample(own or paths, min(len(own or paths), rng.choice([1, 1, 1, 2, 5]))):
            put(data, path, changed(at(data, path), rng))
        if turn % 3 == 0:  # what is then proven is claimed
            try:
                made = optdp.Solution.from_dict(data)
                data["lower_bound"] = max(made.certificate.bound(made.problem).value, 0.0)
            except (Refusal, FieldError):
                pass
        yield data


LONG_LOG = "log(" + "9" * 1000 + ")"
AT_THREE = {"type": "at", "loss": {"type": "power", "exponent": 1.0}, "x": 3.0}
#: What other tests forge, and more: a solution, and what is put where.
FORGERIES = [
    ("piecewise abs", {"certificate": {"type": "constant"}, "lower_bound": 0.5}),
    ("piecewise abs", {"certificate.threshold": 0.45, "lower_bound": 0.45, "value": 0.45}),
    ("piecewise abs", {"lower_bound": 0.4}), ("piecewise abs", {"value": 0.5}), ("piecewise abs", {"status": "optimal"}),
    ("piecewise abs", {"problem.privacy.eps": 0.1}), ("piecewise abs", {"problem.privacy.eps": 0.9999999}),
    ("piecewise abs", {"problem.privacy.eps": 1e308}), ("piecewise abs", {"problem.privacy.eps": LONG_LOG}),
    ("piecewise abs", {"problem.privacy.eps": "log(3)"}), ("piecewise abs", {"problem.privacy.ideal": True}),
    ("piecewise abs", {"problem.domain": {"type": "interval", "lower": 0.0, "upper": 2.0}}),
    ("piecewise abs", {"problem.objective.loss.exponent": 2.0}), ("piecewise abs", {"problem.family": {"type": "all"}}),
    ("piecewise abs", {"problem.constraints": [{"type": "outputs", "low": 0.0, "high": 1.0}]}),
    ("piecewise abs", {"problem.constraints": [{"type": "outputs", "low": -1.0, "high": 2.0}]}),
    ("piecewise m=2", {"problem.privacy": {"type": "approx", "eps": 1.0, "delta": 0.1, "sensitivity": 2.0}}),
    ("piecewise m=2", {"problem.privacy": {"type": "gdp", "mu": 1.0, "sensitivity": 2.0}}),
    ("piecewise m=2", {"problem.family.m": 3}), ("piecewise circle", {"problem.family": {"type": "all"}}),
    ("piecewise circle", {"problem.family.m": 1}), ("finite hamming", {"mechanism.weights.0.0": 0}),
    ("piecewise circle squared", {"problem.family": {"type": "additive"}}),
    ("piecewise m=2", {"mechanism.placement": "linear", "value": math.nextafter(0.5, 1)}),
    ("piecewise m=2", {"problem.privacy.eps": 2**62}), ("piecewise m=2", {"problem.privacy.eps": "log(" + "9" * 400 + ")"}),
    ("piecewise m=2", {"problem.privacy.eps": "1/" + "9" * 2000}), ("piecewise m=2", {"problem.privacy.eps": "log(0)"}),
    ("finite hamming", {"problem.constraints": [{"type": "unbiased"}]}), ("lip sum", {"mechanism.labels": [0, 0, 1]}),
    ("lip sum", {"problem.privacy.lower_only": True}), ("lip lower", {"problem.privacy.lower_only": False}),
    ("additive", {"problem.privacy.delta": 0.0}), ("additive", {"problem.privacy.sensitivity": 0.5}),
    ("additive", {"problem.privacy.sensitivity": 1.5}), ("additive delta=0", {"problem.privacy.sensitivity": 0.3}),
    ("additive", {"problem.constraints": [{"type": "unbiased"}]}), ("additive", {"problem.objective": AT_THREE}),
    *(("additive", {f"certificate.multipliers.0.{entry}": 9, "lower_bound": 0.0}) for entry in ("shift", "rest", "values.0")),
    ("additive", {"mechanism.atom": str(2**115), "value": 2.0}),
    ("lip sum", {"mechanism.aggregate.values": [0.0, 1.0, 2.0, 2.0]}), ("finite hamming", {"mechanism.outputs.1": "e" * 2000}),
    ("additive wide integers delta=0", {"mechanism.noise.eps": "1/" + "9" * 999}),
    ("kernel abs", {"problem.constraints": [{"type": "unbiased"}]}), ("kernel abs", {"certificate.densities.0.3": 0.0}),
    ("kernel abs", {"problem.constraints": [{"type": "outputs", "low": 0.3, "high": 1.0}]}), ("kernel abs", {"value": 0.3162}),
    ("kernel abs", {"mechanism.share": 0.499}), ("kernel abs", {"mechanism.rule": "mean"}),
    ("kernel abs", {"lower_bound": 0.3168}),
    ("kernel squared", {"certificate.point_reaches.0": 0.3}), ("kernel squared", {"certificate.weights.1": 0.6}),
    ("kernel unbiased", {"problem.constraints": []}), ("kernel unbiased", {"mechanism.rule": "ends"}),
    ("kernel unbiased", {"certificate.centres.0.4": 0.25}), ("kernel unbiased", {"certificate.point_centres.2": -0.4}),
    ("kernel unbiased", {"certificate.rays": [[0.0, 0.5]]}), ("kernel unbiased", {"certificate.rays": [[0.1, 0.5]]}),
    *(("kernel unbiased prior", {"certificate.rays": rays})
      for rays in ([], [[1.0]], [[1.0, 0.0, 0.0]], [[0.5, 0.5], [-0.5, 0.5]], [[0.0, 0.0]] * 9, 5, [0.5, 0.5], [["a", 1]])),
    ("kernel unbiased prior", {"certificate.rays.0.0": 1.0}), ("kernel unbiased prior", {"certificate.rays.0.1": 0.9}),
    ("kernel unbiased prior", {"certificate.point_centres": []}), ("kernel unbiased prior", {"certificate.weights.0": 0.9}),
    ("kernel unbiased prior", {"problem.constraints": []}), ("kernel unbiased prior", {"mechanism.rule": "ends"}),
    ("kernel prior", {"certificate.rays": [[0.0, 0.5]]}), ("kernel prior", {"certificate.rays": []}),
    ("kernel unbiased", {"mechanism.lows.0": -1.3}), ("kernel prior", {"certificate.weights.0": 0.3}),
    ("lip ldp histogram", {"problem.objective.prior.weights.1": 10**400, "mechanism.prior.weights.1": 10**400, "value": 1e-96}),
    ("lip sum", {"problem.constraints": [{"type": "unbiased"}]}), ("lip sum", {"mechanism.labels": [0, 1, 2, 3]}),
    *(("lip sum", {f"{place}.0": 7}) for place in
      ("problem.domain.symbols", "problem.privacy.prior.categories", "mechanism.prior.categories")),
    ("lip sum", {"problem.privacy.prior.weights.0": 7}), ("lip sum", {"problem.privacy.prior.left_out": ["x"]}),
    ("lip sum", {"certificate.method": "chord", "lower_bound": 0.0}), ("lip sum", {"mechanism.kernel.0.0": "1"}),
    ("lip sum", {"certificate.method": "vertices", "certificate.knots": [], "lower_bound": 0.0}),
    *(("lip sum", {"mechanism.kernel.0.0": str(17355682714328321621872961748561491332 + more), "problem.privacy.eps": 1.01,
                   "value": 0.4, "lower_bound": 0.0}) for more in (-1, 0, 1)),
    ("lip sum", {"lower_bound": 0.1}), ("kernel prior", {"value": 0.3}),
    ("finite hamming", {"lower_bound": 0.1, "value": 0.5}), ("kernel prior", {"certificate.points.1": 0.49}),
    ("kernel prior", {"problem.objective.prior": "uniform"}), ("lip ldp", {"problem.privacy.eps": 0.9}),
    ("lip sum", {"problem.privacy.prior.categories.0": False}), ("kernel prior", {"problem.objective.prior.categories.2": True}),
    ("lip ldp", {"lower_bound": 0.3}), ("lip ldp", {"certificate.nu.1": 0.3}),
    ("lip ldp histogram", {"certificate.nu.0": 0.7}), ("additive eps=14", {"certificate.width": 9.3e-4}),
    ("additive eps=14", {"problem.privacy.eps": 14.1}), ("additive eps=14", {"problem.privacy.delta": 0.499}),
    ("additive period", {"certificate.threshold": 0.00338}), ("additive period", {"certificate.cap": 0.5}),
    ("additive period", {"problem.privacy.delta": 1e-4}), ("additive period", {"certificate.cap": 0.003}),
    ("additive period integers", {"certificate.threshold": 0.09487}), ("additive period", {"certificate.type": "staircase"}),
    ("additive period integers", {"certificate.cap": 20.0}), ("additive period integers", {"problem.domain": {"type": "line"}}),
    ("additive eps=14", {"problem.domain": {"type": "integers"}}), ("additive eps=20 integers", {"certificate.width": 0.25}),
    ("additive eps=0, delta=1e-9", {"problem.privacy.eps": 1e-9}), ("additive eps=0, delta=1e-9", {"mechanism.notion": None}),
    ("additive eps=0, delta=1e-9", {"problem.privacy.sensitivity": 1.0000001}),
    ("additive eps=0, delta=1e-9", {"problem.privacy.sensitivity": 0.9999999, "lower_bound": 0.0}),
    ("additive wide integers", {"mechanism.noise.domain": {"type": "integers"}}),
    ("additive wide integers", {"mechanism.domain": {"type": "line"}, "problem.domain": {"type": "line"}}),
    ("additive wide integers", {"mechanism.noise.sensitivity": 999_999.0}),
    ("additive wide integers", {"problem.privacy.sensitivity": 999_999.0, "lower_bound": 0.0}),
    ("additive wide integers", {"problem.privacy.sensitivity": 999_999.5}),
    ("additive wide integers delta=0", {"problem.privacy.delta": 1e-9}),
    ("additive wide integers delta=0", {"certificate.threshold": 18321.79}),
    ("additive wide integers delta=0", {"certificate.type": "staircase"}),
    *(("finite hamming", {"problem.domain.symbols.0": name, "mechanism.domain.symbols.0": name}) for name in (1, 1.0, True)),
    ("finite ordered", {"problem.domain.symbols.0": False}), ("finite hamming", {"mechanism.outputs.1": 10**400}),
    ("finite hamming", {"mechanism.outputs.1": 1.75e308}), ("lip ldp", {"mechanism.labels": [0, 1, 0, 1]}),
    ("lip ldp histogram", {"problem.objective.task.values": []}), ("lip ldp histogram", {"mechanism.aggregate.values": []}),
    ("piecewise m=2", {"problem.privacy.eps": 5e-324}), ("piecewise m=2", {"problem.privacy.eps": 1.75e308}),
    ("piecewise m=2", {"problem.domain.lower": -1e-320, "mechanism.domain.lower": -1e-320}),  # 0.5 is still a bound
    ("piecewise abs", {"problem.domain.lower": -1e-300, "mechanism.domain.lower": -1e-300, "problem.privacy.eps": 1e-300,
                       "mechanism.width_cells": 2**50, "certificate.threshold": 0.5, "lower_bound": 0.5, "value": 0.51}),
    ("additive delta=0 squared", {"mechanism.eps": 31.0}), ("lip sum", {"problem.privacy.eps": "log(10686474581525)"}),
    ("lip ldp", {"optdp.version": "x" * 51}), ("lip ldp", {"optdp.version": "0.2\n"}), ("kernel prior", {"optdp.version": ""}),
    ("lip ldp", {"problem.objective.prior.left_out": [7, "x"], "mechanism.prior.left_out": [7, "x"]}),
    ("lip ldp", {"problem.objective.prior.left_out": [0], "mechanism.prior.left_out": [0]}),
    ("additive integers of 7", {"problem.privacy.delta": "1/" + "9" * 1000}),
    ("staircase eps=20", {"certificate.type": "integer-staircase"}), ("lip ldp chord", {"certificate.nu.0": 0.3}),
    ("lip sum", {"problem.family": {"type": "additive"}}), ("finite ordered", {"problem.family": {"type": "additive"}}),
]  # fmt: skip


def forged():
    """The forgeries of the other tests, one by one."""
    for name, edits in FORGERIES:
        data = form(name)
        for path, value in edits.items():
            put(data, [int(key) if key.isdigit() else key for key in path.split(".")], value)
        yield data


# --- agreement


@pytest.mark.parametrize("name", KNOWN)
def test_it_proves_the_solutions_and_says_all_of_the_problem(name, remembered):
    """Every number and every text of the problem is in the sentence, and every part that changes what it means."""
    status, said = checked(form(name))
    assert status == 0, said
    own, problem = solution(name), form(name)["problem"]
    assert f"is at least {own.lower_bound!r} and at most {own.value!r}" in said
    for path in numbers(problem):
        assert "given" in path or str(at(problem, path)) in said, path
    assert str(problem["privacy"]["eps"]) in said
    words = {
        "unbiased": "mean is the input",
        "piecewise": "same heights",
        "additive": "add noise",
        "average": "average",
    }
    kinds = {problem["family"]["type"], problem["objective"]["type"], *(c["type"] for c in problem["constraints"])}
    for kind, word in words.items():
        assert (word in said) == (kind in kinds)


@pytest.mark.parametrize("task", ["sum", "histogram"])
def test_it_says_of_whom_an_estimate_is(task):
    """Before, the error was that of "the sum of the categories' values", a constant, or of "the categories' values null"."""
    _, said = checked(optdp.solve_lip([0.5, 0.3, 0.2], 1.0, task=task).to_dict())
    entry = {"sum": "value (by category [0.0, 1.0, 2.0]) in a sum", "histogram": "entry in a histogram"}[task]
    assert f"the best estimate of each user's {entry}, under the prior" in said and "null" not in said


def test_it_says_what_it_does_not_know():
    for name in MAKE:
        if name not in KNOWN:
            status, said = checked(form(name))
            assert status == 2 and "is not known here" in said
    for part in (
        "absolute and squared errors",
        "piecewise densities",
        "kernels",
        "additive",
        "finite alphabets",
        "information",
    ):
        assert part in checker.__doc__


def test_the_kinds_of_problems_that_it_knows_are_all_there():
    """Of each kind more than one is known, and what is not has a loss or a guarantee that the format does not list."""
    for kind in (
        "piecewise",
        "circle",
        "kernel",
        "kernel unbiased",
        "kernel unbiased prior",
        "kernel prior",
        "finite",
        "additive",
        "staircase",
        "lip",
    ):
        assert any(name.startswith(kind) for name in KNOWN)
    certificates = {(form(n)["certificate"]["type"], form(n)["certificate"].get("method")) for n in KNOWN}
    assert {
        ("lip", "knots"),
        ("lip", "vertices"),
        ("lip", "simplex"),
        ("lip", "chord"),
        ("kernel", None),
        ("staircase", None),
        ("spike", None),
        ("tails", None),
        ("integer-staircase", None),
    } <= certificates
    assert {form(n)["mechanism"]["mechanism"] for n in KNOWN} >= {
        "RoundedNoise",
        "LatticeStaircase",
        "AdditiveMechanism",
    }
    for name in OTHER_LOSSES:
        loss = form(name)["problem"]["objective"]["loss"]
        assert loss["type"] != "power" or loss["exponent"] not in (1.0, 2.0)
    assert {"lip ldp", "lip ldp histogram"} <= set(KNOWN)


def test_it_agrees_on_forgeries_one_by_one(remembered):
    counts = {}
    for data in forged():
        assert agree(data, counts), data["problem"]
    assert counts[0] > 3 and counts[1] > 10 and counts[2] > 1


@pytest.mark.parametrize("name", ["finite hamming", "finite ordered", "finite ordered prior"])
def test_one_row_or_one_column_of_a_table_is_enough_to_refuse_it(name):
    """Each row must sum to 1 and each column keep the ratio: those next to a wrong one do not make up for it."""
    table = [[int(w) for w in row] for row in form(name)["mechanism"]["weights"]]
    most, counts = math.exp(form(name)["problem"]["privacy"]["eps"]) * (1 + 1e-12), [0, 0]
    for i, j in product(range(len(table)), repeat=2):
        for k, taken in ((k, taken) for k in range(len(table[0])) if k != j for taken in (0, 2**40)):
            data, rows = form(name), [list(row) for row in table]
            rows[i][j], rows[i][k] = rows[i][j] + 2**40, rows[i][k] - taken
            data["mechanism"]["weights"] = rows
            kept = [max(column) <= min(column) * most for column in zip(*rows, strict=True)]
            alone = data | {"value": 2 * data["value"], "lower_bound": 0.0}
            if taken and sum(kept) == len(kept) - 1 and rows[i][k] >= 0:
                counts[1] += 1
                assert checked(alone) == (1, "no: not true or not proven: the likelihood ratios")
            elif not taken:
                counts[0] += 1
                assert checked(alone) == (1, "no: not true or not proven: rows that sum to 1")
    assert min(counts) > 1


def test_the_largest_variance_is_that_over_all_inputs():
    """Outputs are stretched on one side, so that the variance at one end of the inputs is not the largest."""
    data = form("kernel unbiased") | {"lower_bound": 0.0}
    for row in (data["mechanism"]["lows"], data["mechanism"]["highs"]):
        row[:] = [v + 0.25 * max(v - 0.5, 0.0) - 0.1 for v in row]
    made = optdp.Solution.from_dict(data | {"value": 100.0})
    high = made.mechanism.enclose(made.problem.objective)[1]
    assert [checked(data | {"value": value})[0] for value in (high * (1 + 1e-9), high * (1 - 1e-4))] == [0, 1]


def kernels_that_keep_all_but_one():
    """Solutions that claim far less than they could, each with one thing that does not hold."""
    for name in ("kernel prior", "kernel unbiased", "kernel abs"):
        for more in (1, -1):
            data = form(name)
            data["mechanism"]["cells"][0] += more
            yield data
        data = form(name)
        lows, highs = data["mechanism"]["lows"], data["mechanism"]["highs"]
        for k in [k for k, (low, high) in enumerate(zip(lows, highs, strict=True)) if low < high][:1]:
            lows[k], highs[k] = highs[k], lows[k]
            yield data
    for name, by in (("kernel unbiased", 0.3), ("kernel unbiased", -0.3), ("kernel abs", 0.3), ("kernel abs", -0.3)):
        data = form(name)  # means that do not reach an end, outputs beyond one
        for row in (data["mechanism"]["lows"], data["mechanism"]["highs"]):
            row[:] = [v + by for v in row]
        yield data
    for first, last in ((0.26, 0.75), (0.25, 0.74)):
        data = form("kernel outputs")
        data["problem"]["constraints"] = [{"type": "outputs", "low": first, "high": last}]
        yield data
    data = form("kernel unbiased")
    data["mechanism"]["rule"] = "ends"
    yield data
    data = form("kernel unbiased")
    data["problem"]["constraints"].append({"type": "outputs", "low": 0.0, "high": 1.0})
    yield data
    yield form("kernel squared") | {"certificate": form("kernel unbiased")["certificate"]}
    twice, spread, proof = form("kernel prior"), form("kernel prior"), form("kernel abs")["certificate"]
    for entry in ("points", "weights", "point_reaches"):
        twice["certificate"][entry] *= 2
    spread["certificate"].update({entry: proof[entry] for entry in ("mesh", "densities", "reaches")})
    yield from (twice, spread)
    for node in (
        0,
        -1,
        len(proof["mesh"]) // 2,
    ):  # one end of the favoured outputs moves downwards, the other one, both
        data = form("kernel abs")
        data["certificate"]["reaches"][0][node] += 0.3
        yield data


def test_each_condition_on_a_kernel_is_needed():
    for data in kernels_that_keep_all_but_one():
        data.update(lower_bound=0.0, value=10.0)
        assert checked(data)[0] == 1, data["problem"]


@pytest.mark.parametrize("limits", [None, (-1.5, 2.5)])
@pytest.mark.parametrize("slope", [0.3, 1.25, 1.35])
def test_it_finds_the_same_bound_for_rays(slope, limits):
    """Of large slopes g is least beyond all marks, or where outputs end."""
    own = solution("kernel unbiased prior")
    problem = own.problem
    if limits is not None:
        problem = replace(problem, constraints=(*problem.constraints, optdp.Outputs(*limits)))
    proof = KernelCertificate(points=(0.25, 0.5), weights=(0.25, 0.75), point_reaches=(0.0, 0.0), point_centres=(0.25, 0.5),
                              rays=((-slope, 0.2), (0.8 * slope, 0.7)))  # fmt: skip
    bound = proof.bound(problem).value
    assert 0.05 < bound < own.value and (slope < 1 or bound < 0.99 * 0.44 * slope)
    for claim in (bound, bound * (1 + 1e-12)):
        data = replace(own, problem=problem, certificate=proof, lower_bound=claim).to_dict()
        assert checked(data)[0] == int(claim > bound)


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from([(1.0, 3, "nodes"), (2.5, 4, "nodes"), (1.0, 2, "bins"), (4.0, 4, None), (4.0, 2, None), (7.0, 3, None),
                     (5.0, 4, None), (6.0, 1, "whole bins")]),
    st.sampled_from(["abs", "squared"]), st.sampled_from([0.0, 0.25, 1.5]), st.floats(0.01, 0.3),
    st.lists(st.tuples(st.floats(0, 1), st.integers(-9, 5), st.lists(st.floats(0, 1), max_size=5), st.floats(0, 1)), min_size=1),
)  # fmt: skip
def test_it_finds_the_same_bound_for_any_multipliers_of_noise(lattice, loss, eps, delta, rows):
    """On the line and on integers, where cells divide the sensitivity and where they do not."""
    width, n, kind = lattice
    multipliers = tuple(
        Multiplier(s, weight, first, tuple(weight * v for v in shares), weight * rest)
        for s, (weight, first, shares, rest) in zip(range(1, n + 1), rows, strict=False)
    )
    proof = AdditiveCertificate(n, "bins" if kind and "bins" in kind else "nodes", multipliers)
    line = kind in ("nodes", "bins")
    problem = optdp.Problem(
        optdp.ApproxDP(eps, delta, width), optdp.Line() if line else optdp.Integers(), loss, optdp.Additive()
    )
    checker.LEFT[:] = checker.LIMIT, 1
    p, c = checker.read(problem.to_dict(), "problem"), checker.read(proof.to_dict(), "certificate")
    p.q = int(p.objective.loss.exponent)
    ours = proof.exact_bound(problem) * int(2 * width) ** p.q / 2**p.q
    assert abs(checker.lattice_bound(p, c, line) - ours) < 2.0**-60


@settings(max_examples=12, deadline=None)
@given(
    st.floats(0.3, 25.0), st.sampled_from([1e-9, 1e-5, 1e-3]), st.sampled_from(["abs", "squared"]),
    st.sampled_from([(1.0, True), (0.3, True), (7.0, False), (50.0, False), (1.0, False)]), st.floats(1.0, 30.0),
)  # fmt: skip
def test_it_finds_the_same_bound_of_one_period(eps, delta, loss, domain, cap):
    width, line = domain
    problem = optdp.Problem(
        optdp.ApproxDP(eps, delta, width), optdp.Line() if line else optdp.Integers(), loss, optdp.Additive()
    )
    cap *= float(problem.objective.loss(width))
    proof = PeriodCertificate(Period(problem, cap).proven() * (1 - 1e-9), cap)
    checker.LEFT[:] = checker.LIMIT, 1
    p, q = checker.read(problem.to_dict(), "problem"), int(problem.objective.loss.exponent)
    p.q = q
    if not 0 < proof.threshold < cap:
        return
    found = checker.period_bound(p, checker.read(proof.to_dict(), "certificate"), line)
    assert max(float(found), 0.0) == pytest.approx(proof.bound(problem).value, rel=1e-4 if delta > 1e-5 else 1e-6)
    with pytest.raises(checker.Answer):
        checker.period_bound(
            p, checker.read(replace(proof, threshold=proof.threshold * (1 + 1e-6)).to_dict(), "certificate"), line
        )


@pytest.mark.parametrize("q", [1, 2])
@pytest.mark.parametrize(
    ("proof", "eps", "delta", "width"),
    [("tails", 0.0, 0.01, 1.0), ("tails", 0.0, 0.3, 0.5), ("spike", 14.0, 0.5, 0.3), ("spike whole", 12.0, 1e-6, 20.0),
     ("spike whole", 12.0, 0.1, 600.0), ("staircase", 0.7, 0.0, 0.3), ("staircase", 8.0, 0.0, 1.0),
     ("staircase whole", 0.7, 0.0, 7.0), ("staircase whole", 8.0, 0.0, 600.0)],
)  # fmt: skip
def test_it_finds_the_same_bound_in_closed_form(proof, eps, delta, width, q):
    """For both losses, on the line and on integers: all of it, and no more."""
    kind, whole = proof.split()[0], "whole" in proof
    problem = optdp.Problem(
        optdp.ApproxDP(eps, delta, width), optdp.Integers() if whole else optdp.Line(), optdp.Power(q), optdp.Additive()
    )
    certificate = {
        "tails": TailsCertificate,
        "spike": lambda: SpikeCertificate.best(problem),
        "staircase": lambda: (IntegerStaircaseCertificate if whole else StaircaseCertificate).best(problem),
    }[kind]()
    uniform = AdditiveMechanism(optdp.Line(), 1.0, 1, (1,) * 51, 0, (), 0, 0.0)  # (0, 1/101)-private
    wide = LatticeStaircase.private(eps, width) if eps else uniform
    p = checker.read(problem.to_dict(), "problem")
    p.q, p.limits = q, {}
    m = checker.read((RoundedNoise(optdp.Integers(), wide) if whole else wide).to_dict(), "mechanism")

    def bound(certificate):
        checker.LEFT[:] = checker.LIMIT, 1
        return checker.check_additive(p, m, checker.read(certificate.to_dict(), "certificate"))[1]

    assert float(bound(certificate)) == pytest.approx(certificate.bound(problem).value, rel=1e-15) != 0
    if kind == "tails":  # is for eps = 0
        p.privacy = checker.read(optdp.ApproxDP(1e-3, delta, width).to_dict(), "privacy")
        with pytest.raises(checker.Answer):
            bound(certificate)
    for name in ("width", "threshold"):
        if hasattr(certificate, name):
            more = replace(certificate, **{name: getattr(certificate, name) * (1 + 1e-13)})
            with pytest.raises(checker.Answer):
                bound(more)


@settings(max_examples=40, deadline=None)
@given(
    st.floats(0.06, 20.0), st.floats(0.001, 1.0), st.one_of(st.just(0.0), st.floats(0.05, 0.9), st.floats(0.9, 12.0)),
    st.integers(0, 2**61), st.sampled_from([1.0, 0.3]), st.sampled_from([1, 2]),
)  # fmt: skip
def test_it_finds_the_same_guarantee_of_staircases(eps, share, end, atom, sensitivity, q):
    """Also of those that are cut off within the first sensitivity: the least delta to a hair, and what is attained."""
    whole = LatticeStaircase.private(eps, sensitivity, share=share)
    try:
        own = replace(whole, cut=int(end * whole.period), atom=atom)
    except ValueError:  # hardly anything is left
        return
    m, ratio = checker.read(own.to_dict() | {"mechanism": "LatticeStaircase"}, "mechanism"), 1 / own.fall
    for delta in (own.least_delta, own.least_delta * (1 - Fraction(1, 2**60))):
        p = SimpleNamespace(privacy=SimpleNamespace(eps=SimpleNamespace(low=ratio), delta=delta), q=q)
        try:
            value = checker.steps_value(p, m)
        except checker.Answer:
            assert 0 < delta < own.least_delta
        else:
            assert delta in (0, own.least_delta)
            assert float(value) == pytest.approx(own.enclose(optdp.WorstCase(optdp.Power(q)))[1], rel=1e-9)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.soak) if n.startswith(SLOW) and n != "kernel abs" else n for n in KNOWN]
)
def test_it_agrees_on_bounds_that_are_too_good(name, remembered):
    for data in improved(name):
        assert agree(data), (data["lower_bound"], data["value"])


def agrees_on_splices(count):
    rng, counts = random.Random(0), {}
    for _ in range(count):
        own, other = rng.choice(KNOWN), rng.choice(list(MAKE) if rng.random() < 0.2 else KNOWN)
        for data in spliced(own, other):
            assert agree(data, counts), (own, other)
    return counts


def agrees_on_changed_numbers(count):
    rng, counts = random.Random(1), {}
    for name in KNOWN:
        for data in mutated(
            name, rng, count // 6 if name.startswith((*SLOW, "additive eps=16 integers sq")) else count
        ):
            assert agree(data, counts), name
    return counts


def test_it_agrees_on_splices(remembered):
    counts = agrees_on_splices(40)
    assert counts[0] > 5 and counts[1] > 50


def test_it_agrees_on_changed_numbers(remembered):
    counts = agrees_on_changed_numbers(3)
    assert counts[0] > 10 and counts[1] > 50


@pytest.mark.soak
def test_it_agrees_on_many_more(capsys):
    with capsys.disabled():
        print("\nsecond checker:", agrees_on_splices(4000), agrees_on_changed_numbers(150))


def test_it_agrees_on_entries_of_other_types():
    for name in ("piecewise circle", "finite ordered prior", "additive discrete", "lip lower histogram"):
        for data in edited(name):
            assert agree(data), name


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"not json", b"\xff\xfe\x00", b"[]", b"5", b"null", b"{}", b'{"a": 1, "a": 2}', b'{"a": NaN}', b"[" * 100_000,
        b'{"a":' * 100_000, b'{"optdp": ' + b"9" * 6000 + b"}",
    ],
)  # fmt: skip
def test_bytes_that_are_no_solution(raw):
    status, said = checker.check(raw)
    assert status == 2 and said.startswith("cannot check: ") and len(said) < 400


@pytest.mark.parametrize("count", [60, pytest.param(1500, marks=pytest.mark.soak)])
def test_bytes_changed_at_random(count):
    """Any byte: an answer, and yes only where the first checker says so."""
    rng, short = random.Random(2), [n for n in KNOWN if len(text(n)) < 5000]
    for _ in range(count):
        raw = bytearray(text(rng.choice(short)).encode())
        for _ in range(rng.choice([1, 1, 3])):
            raw[rng.randrange(len(raw))] = rng.choice(b'0123456789.-e"[]{},:abn \x00\xff')
        status, _ = checker.check(bytes(raw))
        if status == 0:
            assert verified(json.loads(raw)) in (True, None)


def test_work_is_limited_before_it_is_done():
    data = form("additive delta=0")
    status, said = checker.check(json.dumps(data).encode(), 10_000)
    assert status == 2 and "--limit raises" in said
    data["mechanism"]["weights"] += ["0"] * 50_000
    count, (status, said) = counted(lambda: checked(data))
    assert status == 2 and "--limit raises" in said and count < 50 * 50_000  # what reading the entries takes


def test_long_numbers_and_lists_are_counted():
    """A number of many bits makes all that is done with it dearer; what is read is counted, too."""
    data = form("finite ordered")
    checker.check(json.dumps(data).encode())
    plain = checker.LEFT[0]
    data["certificate"]["masses"][0] = 1e-300
    checker.check(json.dumps(data).encode())
    assert checker.LIMIT - checker.LEFT[0] > 3 * (checker.LIMIT - plain)
    data["certificate"]["masses"] = [0] * 900_000
    status, said = checker.check(json.dumps(data).encode(), 500_000)
    assert status == 2 and "--limit raises" in said


# --- standing alone


def test_it_is_one_file_of_the_standard_library():
    tree = ast.parse(Path(checker.__file__).read_text(encoding="utf-8"))
    names = [a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names]
    names += [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names


def test_it_shares_no_line_with_the_rest():
    own = Path(checker.__file__)

    def lines(path):
        return {line.strip() for line in path.read_text(encoding="utf-8").splitlines()}

    others = set.union(*(lines(path) for path in own.parent.rglob("*.py") if path != own))
    plain = (
        "import ",
        "from ",
        "def ",
        "class ",
        "return ",
        "if ",
        "else:",
        "try:",
        "raise ",
        "for ",
        "except ",
        "assert ",
    )
    shared = [line for line in lines(own) & others if len(line) > 30 and not line.startswith(plain)]
    assert not shared, shared


def test_it_runs_where_nothing_is_installed(tmp_path):
    """Copied alone, by a Python that sees no packages: 0, 1 and 2."""
    alone = tmp_path / "alone.py"
    alone.write_text(Path(checker.__file__).read_text(encoding="utf-8"), encoding="utf-8")
    good, bad, none = (tmp_path / name for name in ("good.json", "bad.json", "none.json"))
    solution("piecewise abs").save(good)
    bad.write_text(json.dumps(form("piecewise abs") | {"lower_bound": 0.4, "value": 0.4}))
    for path, status, said in ((good, 0, "yes: the least worst-case"), (bad, 1, "no: "), (none, 2, "cannot check: ")):
        run = subprocess.run([sys.executable, "-I", "-S", alone, path], capture_output=True, text=True, cwd=tmp_path)
        assert run.returncode == status and (run.stdout + run.stderr).startswith(said), run
        assert "Traceback" not in run.stderr


def _with_prior(name, size):
    """A solution under points with a prior, and the prior of so many points in its place."""
    data = json.loads(text(name))
    rng = random.Random(size)
    points = sorted(rng.random() for _ in range(size))
    prior = {"type": "prior", "weights": [1] * size, "categories": points, "left_out": [], "given": []}
    data["problem"]["objective"]["prior"] = prior
    return data, points


@pytest.mark.parametrize(("case", "size"), [("read alone", 500), ("one name often", 64)])
def test_the_time_for_a_long_prior_grows_as_it_does(case, size, monkeypatch):
    """Sums over the prior were done once for every weight, and once for every name: minutes for files of 200 kB."""
    added = []

    def count_and_sum(terms, *start):
        added.append(len(terms := list(terms)))
        return sum(terms, *start)

    def work_of(size):
        data, points = _with_prior("kernel prior", size)
        if case == "read alone":
            data["mechanism"] = {}
        else:
            data["certificate"].update(points=[points[0]] * size, weights=[0.0] * size, point_reaches=[0.1] * size)
        added.clear()
        count, (status, _) = counted(lambda: checker.check(json.dumps(data).encode()))
        assert status
        return count + sum(added)

    monkeypatch.setattr(checker, "sum", count_and_sum, raising=False)
    assert work_of(4 * size) < 5 * work_of(size)


@pytest.mark.parametrize("bits", [6, pytest.param(16, marks=pytest.mark.soak)])
@pytest.mark.parametrize("name", [n for n in KNOWN if not n.startswith((*SLOW, "additive eps=16 integers"))])
def test_coarse_enclosures_prove_no_more(name, bits, monkeypatch):
    """Powers of e, roots and quotients in few bits: each is on the side that makes a proof harder, none on the other."""
    own, data = solution(name), form(name)
    bound, high = own.certificate.bound(own.problem).value, own.mechanism.enclose(own.problem.objective)[1]
    eps, sure = own.problem.privacy.eps, {"lower_bound": 0.0, "value": 2 * high}
    assert checked(data | sure)[0] == 0
    monkeypatch.setattr(checker, "BITS", bits)
    for more in (1 + 1e-4, 1 + 1e-3):
        assert checked(data | {"lower_bound": more * bound, "value": 2 * high})[0] == 1
        assert checked(data | {"lower_bound": 0.0, "value": high / more})[0] == 1
        less = json.loads(json.dumps(data | sure))
        less["problem"]["privacy"]["eps"] = float(eps) / more
        if verified(less) is False:
            assert checked(less)[0] == 1


def test_errors_of_posteriors_are_rounded_up(monkeypatch):
    """Where e^eps is rational nothing else is rounded, so that few bits are not refused for the privacy."""
    own = optdp.solve_lip([0.5, 0.3, 0.2], optdp.log(3))
    monkeypatch.setattr(checker, "BITS", 8)
    for more in (1e-6, 1e-4):
        assert checked(own.to_dict() | {"lower_bound": 0.0, "value": own.value / (1 + more)})[0] == 1
    assert checked(own.to_dict() | {"value": own.value * 1.02})[0] == 0


number = st.integers(-8, 8).map(lambda k: Fraction(k, 4))


@settings(max_examples=20, deadline=None)
@given(
    st.data(),
    st.lists(st.integers(1, 5), min_size=2, max_size=4),
    st.sampled_from([Fraction(3, 2), Fraction(2), Fraction(5)]),
)
def test_prices_of_posteriors_bound_every_vertex(data, weights, e):
    """What is convex is largest at a vertex: of the box with sum 1 under LIP, of the cone under LDP; all of them are tried."""
    checker.LEFT[:], d = [checker.LIMIT, 1], len(weights)
    w = [Fraction(v, sum(weights)) for v in weights]
    x, nu = (data.draw(st.lists(number, min_size=d, max_size=d)) for _ in range(2))
    places = sorted(data.draw(st.lists(number, min_size=1, max_size=3)))
    knots = [(t, data.draw(number)) for t in places]
    ends = [(max(v / e, v * e - e + 1), min(v * e, v / e + 1 - 1 / e)) for v in w]
    corners = [[both[k] for both, k in zip(ends, row, strict=True)] for row in product((0, 1), repeat=d)]
    fixed = [[*r[:i], 1 - sum(r) + r[i], *r[i + 1 :]] for r in corners for i in range(d)]
    boxed = [r for r in fixed if all(low <= v <= high for v, (low, high) in zip(r, ends, strict=True))]
    rays = [[v * (e if k else 1) for v, k in zip(w, row, strict=True)] for row in product((0, 1), repeat=d)]
    coned = [[v / sum(r) for v in r] for r in rays]

    def most(points, square):
        return max(square(r) - checker.dot(nu, r) for r in points)

    def norm(r):
        return checker.dot(r, r)

    def mean(r):
        return checker.dot(x, r) ** 2 / sum(r)

    if boxed:
        assert (
            checker.vertices_bound(ends, weights, nu) == most(boxed, norm) <= checker.box_bound(ends, nu, knots[0][1])
        )
        assert most(boxed, mean) <= checker.knots_bound(ends, x, nu, knots)
    assert 0 <= checker.cone_vertices(weights, e, nu) - max(most(coned, norm), 0) < 2**-100
    shares = [(t, level) for t, (_, level) in zip((1 / e, (1 + 1 / e) / 2, 1), knots, strict=False)]
    assert most(coned, norm) <= checker.cone_chord(w, e, nu, shares)
    for some in ([], knots, [(Fraction(k, 64), 0) for k in range(-128, 129)]):
        assert most(rays, mean) <= checker.cone_knots(w, e, x, nu, some)
    assert checker.cone_knots(w, e, x, nu, some) <= max(most(rays, mean), 0) + Fraction(1, 4)


@pytest.mark.parametrize(
    ("weights", "e", "x", "nu", "knot"),
    [((4, 4), 20, (-3, 3), (5.5, 10), -3), ((3, 3), 20, (3, -3), (5.5, 7), -3),
     ((2, 3, 3), 20, (0, 2, -2), (-1.5, -5.5, 9.5), -1), ((2, 2), 5, (-1, 1), (-6.5, -0.5), 0),
     ((1, 2, 2), 9, (0, 3, -3), (-2.5, 8.5, -4), 0), ((1, 1), 2, (-1, 1), (8, 8), 0)],
)  # fmt: skip
def test_what_one_choice_between_two_knots_misses_is_added(weights, e, x, nu, knot):
    """Each part of it is needed here, in both checkers; at the last prices, which are high, no less than 0 is lost."""
    proof = _Proof(
        LIPCertificate("knots", nu, ((knot, 0),)), optdp.Prior(weights, range(len(x))), Aggregate("sum", x), e
    )
    w, prices = proof.prior.exact, list(map(Fraction, nu))
    rays = [[v * s for v, s in zip(w, row, strict=True)] for row in product((1, e), repeat=len(w))]
    most = max(0, *(checker.dot(x, r) ** 2 / sum(r) - checker.dot(prices, r) for r in rays))
    assert most <= checker.cone_knots(w, e, x, prices, [(knot, 0)]) and most <= proof.cone_knots()


@pytest.mark.parametrize(
    ("weights", "e", "nu"),
    [((3, 1, 1, 5, 10), 3, (-3, 3, 2.75, 0, 3)), ((10, 5, 5, 5, 1, 3), 3, (6, -5, -2, -1, 15, 15)),
     ((1, 1, 2, 10, 5, 2), 5, (0.0625, 0.875, 0.625, 0, -0.5, -0.8125)), ((5, 2, 10, 1, 1), 10, (8, 11, -16, 12, 1))],
)  # fmt: skip
def test_sets_that_low_prices_make_worth_more_are_not_closed(weights, e, nu):
    """Where two prices are below 0 together, what both add is more than what each adds by itself."""
    proof = _Proof(
        LIPCertificate("vertices", nu), optdp.Prior(weights, range(len(nu))), Aggregate("histogram"), Fraction(e)
    )
    rays = [[v * s for v, s in zip(proof.prior.exact, row, strict=True)] for row in product((1, e), repeat=len(nu))]
    posteriors = [[v / sum(r) for v in r] for r in rays]
    prices, hair = list(map(Fraction, nu)), Fraction(1, 2**100)
    most = max(0, *(checker.dot(r, r) - checker.dot(prices, r) for r in posteriors))
    assert most <= checker.cone_vertices(list(weights), Fraction(e), prices) < most + hair
    assert most <= proof.cone_vertices() < most + hair


def test_it_reads_inputs_that_are_exact_numbers():
    """As docs/format.md says of the points of a prior; it took floats alone."""
    data = form("kernel prior")
    points = data["certificate"]["points"]
    data["certificate"]["points"] = [str(Fraction(x)) for x in points]
    assert checked(data)[0] == checked(form("kernel prior"))[0] == 0 and verified(data)
    for bad in ("3/2", "-1/2", "1/0", "log(2)"):
        data["certificate"]["points"][0] = bad
        assert checked(data)[0] == 2 and not verified(data)

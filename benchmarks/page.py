"""docs/benchmarks.md: every program beside its plain formulation and beside other libraries, growth of cost, and quality.

    make bench                                             # installs what is compared, runs every part, writes the page
    python benchmarks/page.py --parts kernel piecewise     # these parts anew; the page takes the others as they were
    python benchmarks/page.py --resume                     # the parts that are missing
    python benchmarks/page.py --quick                      # small sizes: does everything run?
    python benchmarks/page.py --peers .venv/peers/bin/python    # the Python that has benchmarks/requirements.txt

Every part leaves its tables, with the machine and the versions that made them, in benchmarks/results/<part>.json, and the page is
written from these files: nothing on it is typed. Seconds are CPU seconds of one thread (the command sets OMP_NUM_THREADS=1 for
itself); ratios are of one part, hence of one run.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import math
import os
import platform
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

os.environ |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}

import additive
import commands
import lip
import notions as promises
import numpy as np
import peers
import releases
import surveys

import optdp
from optdp import files
from optdp.report.atlas import CHARTS, certify
from optdp.report.report import Column, Report

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "benchmarks" / "results", ROOT / "docs" / "benchmarks.md"
#: What is said of parts that were not run again.
EARLIER = ", as this page was before:"

#: A way to solve an instance: its name, the package beyond optdp that it needs, and the call. The first one is optdp's.
Way = tuple[str, str, Callable[[], Any]]


def timed(call: Callable[[], Any], spend: float = 0.3) -> tuple[Any, float]:
    """Result and CPU seconds of a call: the least of several if it is short, of two at least below 2 s."""
    best, spent, result, count = math.inf, 0.0, None, 0
    while spent < spend or (count < 2 and best < 2.0):
        began = time.process_time()
        result = call()
        seconds = time.process_time() - began
        best, spent, count = min(best, seconds), spent + max(seconds, 1e-3), count + 1
    return result, best


def objective(found: Any) -> float:
    """What a way says is the optimum: the solver's own objective, else the value of its mechanism."""
    if isinstance(found, optdp.Solution):
        told = found.program.objective
        return found.value if told is None else float(told)
    return float(found)


def beside(title: str, about: str, instances: list[tuple[str, list[Way]]]) -> Report:
    """Every way of every instance, over the first way, which is certified."""
    rows: list[dict[str, Any]] = []
    for label, ways in instances:
        best = base = math.nan
        for name, package, call in ways:
            row: dict[str, Any] = {"instance": label, "way": name}
            rows.append(row)
            if package and importlib.util.find_spec(package) is None:
                row["note"] = "not installed"
                continue
            try:
                found, seconds = timed(call)
            except Exception as error:  # a solver that fails is shown as such
                row["note"] = f"{type(error).__name__}: {error}".splitlines()[0][:80]
                continue
            if name == ways[0][0]:
                best, base = found.value, seconds
                row |= {
                    "value": found.value,
                    "gap": found.gap,
                    "note": "verified" if found.verify() else "NOT VERIFIED",
                }
            else:
                told = objective(found)
                row |= {"value": told, "off": told / best - 1, "note": stopped(found)}
            row |= {"ms": 1e3 * seconds, "ratio": seconds / base}
    columns = [
        Column("instance", "instance"), Column("way", "way"), Column("value", "optimum found", ".9g"),
        Column("gap", "certified gap", ".0e"), Column("off", "off", "+.0e"), Column("ms", "CPU ms", ".3g"),
        Column("ratio", "time / optdp", ".3g"), Column("note", "note"),
    ]  # fmt: skip
    return Report(title, columns, rows, [about, "off: the optimum found over optdp's attained value, minus 1."])


def stopped(found: Any) -> str:
    """The solver's own gap where it was stopped before it closed it."""
    program = getattr(found, "program", None)
    if program is None or program.bound is None or program.objective is None:
        return ""
    gap = 1 - program.bound / program.objective if program.objective else 0.0
    return f"stopped at its gap of {gap:.1%}" if gap > 1e-3 else ""


def piecewise(quick: bool) -> Iterator[Report]:
    """The nonlinear program of m pieces."""
    for backend, package in (("slsqp", "scipy"), ("scip", "pyscipopt"), ("gurobi", "gurobipy"), ("ipopt", "casadi")):
        if importlib.util.find_spec(package):  # loads libraries
            optdp.solve_piecewise(1.0, 2, backend=backend, time_limit=0.2, starts=1)
    limit, cases = (0.5, [("abs", 2)]) if quick else (4.0, [(q, m) for q in ("abs", "squared") for m in (3, 4, 6)])
    some = []
    for q, m in cases:
        call = partial(optdp.solve_piecewise, 1.0, m, q)
        some.append((f"{q}, m = {m}", [
            ("optdp", "", call), ("SLSQP, 8 starts", "", partial(call, backend="slsqp", starts=8)),
            ("SCIP", "pyscipopt", partial(call, backend="scip", time_limit=limit)),
            ("Gurobi, restricted licence", "gurobipy", partial(call, backend="gurobi", time_limit=limit)),
            ("Ipopt, 8 starts", "casadi", partial(call, backend="ipopt", starts=8)),
        ]))  # fmt: skip
    yield beside("Piecewise mechanisms on an interval, eps = 1",
                 f"Plain: the program in widths and heights; SCIP and Gurobi stop after {limit:g} s.", some)  # fmt: skip


def windows(quick: bool) -> Iterator[Report]:
    """Unbiased windows and composites."""
    limit = 0.5 if quick else 4.0
    levels = (1.0,) if quick else (0.5, 1.0, 2.0)
    some: list[tuple[str, list[Way]]] = []
    for eps in levels:
        call = partial(optdp.solve_ptt, eps)
        some.append((f"I-PTT, eps = {eps:g}", [
            ("optdp", "", call), ("SCIP", "pyscipopt", partial(call, backend="scip", time_limit=limit)),
        ]))  # fmt: skip
    for pair in ("A1B1", "A2B2"):
        call = partial(optdp.solve_composite, 1.0, pair[:2], pair[2:])
        some.append((f"composite {pair}, eps = 1", [
            ("optdp", "", call), ("the paper's Algorithm 1 (grids)", "", partial(call, backend="grid")),
        ]))  # fmt: skip
    yield beside("Unbiased windows and composites",
                 f"Plain: the nonlinear program by SCIP, stopped after {limit:g} s, and the published search.", some)  # fmt: skip


def noise(quick: bool) -> Iterator[Report]:
    """The lattice program of additive noise."""
    optdp.solve_additive(1.0, 0.1, n=4)
    some: list[tuple[str, list[Way]]] = []
    for eps, delta, n in [(1.0, 1e-2, 8)] if quick else [(1.0, 1e-2, 16), (0.1, 1e-6, 8), (2.0, 1e-2, 40)]:
        call = partial(optdp.solve_additive, eps, delta, n=n, rtol=1e-6, time_limit=120.0)
        size = math.ceil((additive.truncated_radius(eps, delta) * 1.02 + 0.25) * n) + 1
        some.append((f"eps = {eps:g}, delta = {delta:g}, n = {n}", [
            ("optdp", "", call), ("HiGHS simplex, every shift", "", partial(call, every_shift=True, method="simplex")),
            ("HiGHS interior point, every shift", "", partial(call, every_shift=True, method="ipm")),
            ("cvxpy (HiGHS)", "", partial(additive.cvxpy_bound, eps, delta, n, size)),
        ]))  # fmt: skip
    yield beside("Additive noise on a lattice of n points per sensitivity, E|Z|",
                 "Plain: a hockey-stick constraint for each shift from the start. cvxpy cuts the support.", some)  # fmt: skip


def notions(quick: bool) -> Iterator[Report]:
    """Additive noise under the other promises, and for several releases."""
    optdp.solve_additive(1.0, 0.1, n=4)
    for name, rtol in promises.RTOL.items():
        if not quick or name in ("kl", "profiles"):
            limit = 600.0 if name == "gdp-closer" else 60.0
            yield promises.report(name, list(promises.TABLES[name](rtol, limit)), rtol)
    yield releases.both(*promises.TOTAL, [1] if quick else list(promises.RELEASES), 0.02)


def kernel(quick: bool) -> Iterator[Report]:
    """All mechanisms: on an interval, on alphabets, between places."""
    optdp.solve_kernel(1.0, rtol=0.2)
    optdp.solve_kernel(1.0, 1 - np.eye(3), domain=optdp.Alphabet(3), backend="dense")
    some: list[tuple[str, list[Way]]] = []
    for q in ("abs",) if quick else ("abs", "squared"):
        grids = [
            (f"HiGHS, grid of {n} inputs and outputs", "", partial(grid, q, n))
            for n in ((6,) if quick else (11, 21, 41))
        ]
        some.append(
            (f"[0, 1], {q}, eps = 1, gap 1e-3", [("optdp", "", partial(optdp.solve_kernel, 1.0, q, rtol=1e-3)), *grids])
        )
    for d in (5,) if quick else (10, 20, 40):
        prior, _, loss = peers.alphabet(d, 1.0)
        for kind, given in (("worst case", None), ("average", prior)):
            call = partial(optdp.solve_kernel, 1.0, loss, domain=optdp.Alphabet(d), prior=given)
            some.append((f"{d} ordered symbols, {kind}, eps = 1", [
                ("optdp", "", call), ("HiGHS, every pair of inputs", "", partial(call, backend="dense")),
            ]))  # fmt: skip
    for n in (4,) if quick else (9, 16, 25):
        call = placed(n, 2.0)
        some.append((f"{n} places, average distance, eps = 2", [
            ("optdp", "", call), ("HiGHS, every pair of inputs", "", partial(call, backend="dense")),
        ]))  # fmt: skip
    yield beside("All mechanisms: an interval, alphabets, places",
                 "Plain: the linear program with d^2 (d - 1) privacy constraints. On an interval a grid is neither an upper "
                 "nor a lower bound.", some)  # fmt: skip


def grid(loss: str, n: int) -> float:
    """The plain linear program on equally spaced inputs and outputs of [0, 1], eps = 1."""
    x = np.linspace(0, 1, n)
    far = abs(x[:, None] - x) ** {"abs": 1, "squared": 2}[loss]
    return float(optdp.solve_kernel(1.0, far, domain=optdp.Alphabet(n), backend="dense").value)


def placed(n: int, eps: float) -> Callable[..., optdp.Solution]:
    """Points of the unit square under metric privacy: the problem of `peers.places`."""
    prior, points = peers.places(n, eps)[0], np.random.default_rng(n).random((n, 2)).tolist()
    return partial(optdp.solve_kernel, eps, domain=optdp.Alphabet(n), metric=optdp.Points(points), prior=prior)


def categories(quick: bool) -> Iterator[Report]:
    """Priors, and unbiased frequencies."""
    for backend in ("columns", "enumeration", "cvxpy"):
        optdp.solve_lip([0.5, 0.3, 0.2], 1.0, backend=backend)
    some: list[tuple[str, list[Way]]] = []
    for task in ("sum", "histogram"):
        for d in (4,) if quick else (4, 8, 12):
            call = partial(optdp.solve_lip, lip.prior("random", d), 1.0, task=task, rtol=1e-9)
            some.append((f"local information privacy, {task}, d = {d}", [
                ("optdp", "", partial(call, backend="columns")),
                ("every extreme point (HiGHS)", "", partial(attained, partial(call, backend="enumeration"))),
                ("cvxpy", "", partial(attained, partial(call, backend="cvxpy"))),
            ]))  # fmt: skip
    for d in (4,) if quick else (4, 8, 10):
        call = partial(optdp.solve_frequency, 1.0, d)
        some.append((f"unbiased frequencies, d = {d}", [
            ("optdp", "", call), ("cvxpy, all 2^d sets", "", partial(call, backend="plain")),
        ]))  # fmt: skip
    yield beside("Categories, eps = 1", "Plain: the program over all extreme points, or over all sets.", some)


def attained(call: Callable[[], optdp.Solution]) -> float:
    """The value of a solution whose program has another objective."""
    return call().value


def growth(quick: bool) -> Iterator[Report]:
    """Seconds against size, for every program."""
    loss = {d: peers.alphabet(d, 1.0)[2] for d in (10, 30, 100, 300)}
    series: list[tuple[str, str, list[Any], Callable[[Any], Any]]] = [
        ("solve_piecewise", "pieces m", [3, 9, 27, 81], lambda m: optdp.solve_piecewise(1.0, m)),
        ("solve_kernel, |y - x| on [0, 1]", "1 / gap", [100, 1000, 10_000], lambda k: optdp.solve_kernel(1.0, rtol=1 / k)),
        ("solve_kernel, |y - x|, gap 1e-3", "eps", [1, 2, 4, 8, 16], lambda e: optdp.solve_kernel(float(e), rtol=1e-3)),
        ("solve_kernel, ordered symbols", "symbols d", [10, 30, 100, 300],
         lambda d: optdp.solve_kernel(1.0, loss[d], domain=optdp.Alphabet(d))),
        ("solve_kernel, places, eps = 2", "places n", [9, 16, 36, 64], lambda n: placed(n, 2.0)()),
        ("solve_additive, delta = 1e-6", "1 / eps", [1, 4, 16], lambda k: optdp.solve_additive(1 / k, 1e-6)),
        ("solve_additive, (1, 0.01)", "1 / gap", [100, 1000, 10_000], lambda k: optdp.solve_additive(1.0, 0.01, rtol=1 / k)),
        ("solve_lip, sum", "categories d", [10, 40, 160], lambda d: optdp.solve_lip(lip.prior("zipf", d), 1.0, rtol=1e-3)),
        ("solve_lip, histogram", "categories d", [10, 40, 160],
         lambda d: optdp.solve_lip(lip.prior("zipf", d), 1.0, task="histogram", rtol=1e-3)),
        ("solve_frequency", "categories d", [10, 1000, 100_000], lambda d: optdp.solve_frequency(1.0, d)),
        ("solve_vector, sphere", "dimension", [10, 1000, 100_000], lambda d: optdp.solve_vector(1.0, d)),
        ("solve_vector, ball", "dimension", [10, 100, 1000], lambda d: optdp.solve_vector(1.0, d, inputs="ball", rtol=0.01)),
        ("solve_vector, cube", "dimension", [10, 100, 1000], lambda d: optdp.solve_vector(1.0, d, norm="linf", rtol=0.01)),
    ]  # fmt: skip
    rows: list[dict[str, Any]] = []
    for name, axis, sizes, call in series:
        before = None
        for size in sizes[:2] if quick else sizes:
            found, seconds = timed(partial(call, size))
            check, checking = timed(found.verify, 0.0001)
            power = before and math.log(seconds / before[1]) / math.log(size / before[0])
            rows.append({"name": name, "axis": axis, "size": size, "gap": found.gap, "verified": bool(check),
                         "ms": 1e3 * seconds, "check": 1e3 * checking, "power": power})  # fmt: skip
            before = (size, seconds)
    columns = [
        Column("name", "program"), Column("axis", "size"), Column("size", "of", "g"), Column("gap", "certified gap", ".0e"),
        Column("ms", "solve, CPU ms", ".3g"), Column("power", "time ~ size^", ".1f"), Column("verified", "verified"),
        Column("check", "verify, CPU ms", ".3g"),
    ]  # fmt: skip
    yield Report(
        "Seconds against size", columns, rows, ["time ~ size^: the exponent between a row and the one above it."]
    )
    yield sampling(10_000 if quick else 1_000_000)


def sampling(count: int) -> Report:
    """Answers per second, with the random bits that are used in earnest."""
    rng, drawn = np.random.default_rng(0), np.random.default_rng(1).random(count)
    base = timed(lambda: rng.laplace(size=count))[1]
    vectors = drawn[: count // 100 * 100].reshape(-1, 100)
    vectors = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    made: list[tuple[str, Any, np.ndarray]] = [
        ("piecewise, eps = 1", optdp.solve_piecewise(1.0).mechanism, drawn),
        ("all mechanisms (kernel), eps = 1", optdp.solve_kernel(1.0).mechanism, drawn),
        ("unbiased kernel, eps = 1", optdp.solve_kernel(1.0, unbiased=True, domain=(-1, 1)).mechanism, drawn),
        ("I-PTT, eps = 1", optdp.solve_ptt(1.0).mechanism, drawn),
        ("additive, (1, 0.01)", optdp.solve_additive(1.0, 0.01).mechanism, drawn),
        ("additive, (0.1, 1e-6)", optdp.solve_additive(0.1, 1e-6).mechanism, drawn),
        ("10 categories, eps = 1", optdp.solve_frequency(1.0, 10).mechanism, (10 * drawn).astype(int)),
        ("1024 categories (two integers)", optdp.solve_frequency(1.0, 1024).mechanism, (1024 * drawn).astype(int)),
        ("prior of 83 categories", optdp.solve_lip(lip.prior("zipf", 83), 1.0).mechanism, (83 * drawn).astype(int)),
        ("unit vectors, d = 100, eps = 1: coordinates", optdp.solve_vector(1.0, 100).mechanism, vectors),
    ]
    rows = [{"name": "numpy's Laplace floats (PCG64, not cryptographic)", "rate": count / base / 1e6, "ratio": 1.0}]
    for name, mechanism, x in made:
        mechanism.randomize(x[:100])
        seconds = timed(partial(mechanism.randomize, x))[1]
        rows.append({"name": name, "rate": x.size / seconds / 1e6, "ratio": seconds / x.size * count / base})
    columns = [
        Column("name", "mechanism"),
        Column("rate", "million answers / s", ".3g"),
        Column("ratio", "time / numpy", ".3g"),
    ]
    return Report("Answers per second", columns, rows,
                  [f"{count} answers at once; random integers from AES-128, what is sent is exactly private."])  # fmt: skip


def quality(quick: bool) -> Iterator[Report]:
    """Every published mechanism over the certified optimum."""
    groups: dict[str, list[str]] = {}
    for name, chart in CHARTS.items():
        groups.setdefault(chart.group, []).append(name)
    for group, names in list(groups.items())[: 1 if quick else None]:
        rows: list[dict[str, Any]] = []
        brackets, levels = [], {}
        for name in names[: 1 if quick else None]:
            chart, row = CHARTS[name], {}
            wanted = [e for e in chart.grid if e in (0.5, 1.0, 2.0, 4.0)] or list(chart.grid)[::2]
            for level in wanted[:1] if quick else wanted:
                # Lattices do not close what is left of that one in an hour.
                point = certify(name, level, chart.make(level), chart.rtol if name == "gdp-above" else 1e-3)
                where = f"{chart.variant}, {chart.axis} = {level:g}"
                brackets.append((point.gap if point.verified else math.inf, where))
                levels[f"{chart.axis} = {level:g}"] = None
                for rival in point.rivals:
                    row.setdefault(rival.name, {})[f"{chart.axis} = {level:g}"] = rival.value / point.value
            rows += [{"problem": chart.variant, "mechanism": known} | ratios for known, ratios in row.items()]
        if not rows:
            continue
        order = sorted(levels, key=lambda text: (text.split(" = ")[0], float(text.split(" = ")[1])))
        columns = [
            Column("problem", "problem"),
            Column("mechanism", "published mechanism"),
            *(Column(t, t, ".4f") for t in order),
        ]
        wide = [f"{where}: {gap:.1e}" for gap, where in brackets if 1e-3 < gap < math.inf]
        notes = [
            f"Certified gaps of the optima: at most {max(gap for gap, _ in brackets if gap <= 1e-3):.1e}"
            + (
                f", but wider at {'; '.join(wide)}: there the table is against the best mechanism known."
                if wide
                else "."
            )
        ]
        notes += [f"NOT CERTIFIED: {where}." for gap, where in brackets if gap == math.inf]
        if any(isinstance(ratio, float) and ratio < 1 for row in rows for ratio in row.values()):
            notes.append("Below 1: outside the family that the optimum is taken over, or within the certified gap.")
        yield Report(f"{group}: error over the optimum", columns, rows, notes)


def libraries(quick: bool) -> Iterator[Report]:
    """Other libraries from the package registry, in their own Python."""
    told = theirs(quick)
    yield installed(told)
    frequencies = told.get("frequencies", {})
    yield surveys.frequencies(frequencies if "error" not in frequencies else {})
    yield programs_of_qif(told.get("qif"), told["versions"])
    yield noise_of_opendp(told.get("opendp"), told["versions"], 10_000 if quick else peers.ANSWERS)
    yield accountants(told, quick)


def theirs(quick: bool) -> dict[str, Any]:
    """What benchmarks/peers.py found."""
    python = OPTIONS.peers
    if not python or not Path(python).exists():
        return {"versions": {package: None for needed, _ in peers.PARTS.values() for package in needed}}
    words = [python, str(Path(__file__).with_name("peers.py"))] + (["--part", "qif", "opendp"] if quick else [])
    done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def installed(told: dict[str, Any]) -> Report:
    """What is compared, and what could not be."""
    uses = {
        "qif": "linear programs of finite mechanisms", "opendp": "additive noise, randomised response",
        "pfl": "accountants", "pure-ldp": "frequencies", "multi-freq-ldpy": "frequencies", "dp-accounting": "accountants",
    }  # fmt: skip
    rows = [
        {"package": p, "version": told["versions"].get(p) or "not installed", "for": use} for p, use in uses.items()
    ]
    has = told.get("pfl", {}).get("PrivUnit")
    if has is not None:
        text = (
            "has PrivUnit"
            if has
            else "has no PrivUnit in any of its files; the mechanism of that name in the tables is optdp's own"
        )
        rows.append({"package": "pfl: PrivUnit", "version": told["versions"]["pfl"], "for": text})
    for part, found in told.items():
        if isinstance(found, dict) and "error" in found:
            rows.append({"package": part, "version": "failed", "for": found["error"]})
    columns = [Column("package", "package"), Column("version", "version"), Column("for", "compared here")]
    return Report("Other libraries", columns, rows)


def programs_of_qif(told: Any, versions: dict[str, Any]) -> Report:
    """The same linear programs by qif."""
    rows = []
    for k, (kind, make, size, eps) in enumerate(peers.LINEAR):
        prior, _, loss = make(size, eps)
        call = placed(size, eps) if kind == "metric" else partial(
            optdp.solve_kernel, eps, loss, domain=optdp.Alphabet(size), prior=prior)  # fmt: skip
        call()
        found, seconds = timed(call)
        row = {"problem": f"{kind}, {size} symbols, eps = {eps:g}", "value": found.value, "lower": found.lower_bound,
               "ms": 1e3 * seconds}  # fmt: skip
        if isinstance(told, list):
            row |= {"qif": told[k][0], "theirs": 1e3 * told[k][1], "ratio": told[k][1] / seconds}
        rows.append(row)
    columns = [
        Column("problem", "problem"), Column("lower", "proven bound", ".9g", "down"), Column("value", "optdp", ".9g", "up"),
        Column("qif", "qif", ".9g"), Column("ms", "optdp, CPU ms", ".3g"), Column("theirs", "qif, CPU ms", ".3g"),
        Column("ratio", "qif / optdp", ".3g"),
    ]  # fmt: skip
    notes = ["Average loss under a prior. qif returns floats; optdp's values are those of exactly private mechanisms."]
    return Report("Finite mechanisms beside qif", columns, rows, notes + missing("qif", told, versions))


def noise_of_opendp(told: Any, versions: dict[str, Any], count: int) -> Report:
    """Error and speed of noise."""
    x = np.full(count, 0.5)
    cases = [
        ("Laplace", "real numbers, (1, 0)", optdp.solve_additive(1.0), x),
        ("discrete Laplace", "integers, (1, 0)", optdp.solve_additive(1.0, discrete=True), np.full(count, 5)),
        ("Gaussian", "real numbers, (1, 0.01)", optdp.solve_additive(1.0, 0.01), x),
    ]  # fmt: skip
    rows: list[dict[str, Any]] = []
    for name, task, best, inputs in cases:
        best.mechanism.randomize(inputs[:100])
        seconds = timed(partial(best.mechanism.randomize, inputs))[1]
        row = {"task": task, "optimum": best.value, "rate": count / seconds, "name": name}
        if isinstance(told, dict) and name in told:
            mean, error, speed = told[name]
            row |= {
                "error": mean,
                "deviation": error,
                "ratio": mean / best.value,
                "theirs": speed,
                "faster": count / seconds / speed,
            }
        rows.append(row)
    name, d = "randomised response, 10 categories", 10
    best = optdp.solve_kernel(1.0, 1 - np.eye(d), domain=optdp.Alphabet(d))
    inputs = np.full(count, 3)
    best.mechanism.randomize(inputs[:100])
    seconds = timed(partial(best.mechanism.randomize, inputs))[1]
    row = {"task": "10 categories, 1", "optimum": best.value, "rate": count / seconds, "name": name}
    if isinstance(told, dict) and name in told:
        mean, error, speed = told[name]
        row |= {
            "error": mean,
            "deviation": error,
            "ratio": mean / best.value,
            "theirs": speed,
            "faster": count / seconds / speed,
        }
    rows.append(row)
    columns = [
        Column("task", "task, (eps, delta)"), Column("optimum", "optimal E|Z| or P(error)", ".5g", "up"),
        Column("name", "OpenDP's mechanism"), Column("error", "its measured error", ".4f"), Column("deviation", "+-", ".4f"),
        Column("ratio", "/ optimum", ".3f"), Column("rate", "optdp, answers/s", ".3g"),
        Column("theirs", "OpenDP, answers/s", ".3g"), Column("faster", "speed / OpenDP's", ".3g"),
    ]  # fmt: skip
    notes = ["Sensitivity 1. The Gaussian has the least standard deviation for its (eps, delta). Both libraries draw "
             "cryptographic bits; OpenDP is called once with all inputs, for randomised response once for each."]  # fmt: skip
    return Report("Noise beside OpenDP", columns, rows, notes + missing("opendp", told, versions))


def accountants(told: dict[str, Any], quick: bool) -> Report:
    """The noise of k releases under one budget."""
    eps, delta = peers.BUDGET
    rows: list[dict[str, Any]] = []
    counts = peers.RELEASES[:1] if quick else peers.RELEASES
    own = {k: timed(partial(optdp.solve_additive, eps, delta, "squared", releases=k, rtol=1e-2)) for k in counts}
    for k, (found, seconds) in own.items():
        rows.append(
            {
                "k": k,
                "name": "optdp solve_additive(releases=k)",
                "sd": math.sqrt(found.value),
                "ratio": 1.0,
                "s": seconds,
            }
        )
        for part in ("dp-accounting", "pfl"):
            for name, found_there in told.get(part, {}).items():
                if isinstance(found_there, list):
                    each = found_there[peers.RELEASES.index(k)]
                    row = {"k": k, "name": name}
                    if len(each) == 2:
                        row |= {"sd": each[0], "ratio": each[0] / math.sqrt(found.value), "s": each[1]}
                    else:
                        row["note"] = each[0]
                    rows.append(row)
    columns = [
        Column("k", "releases"), Column("name", "noise of each, accounted by"), Column("sd", "standard deviation", ".5g"),
        Column("ratio", "/ optdp", ".4f"), Column("s", "CPU s", ".2f"), Column("note", "note"),
    ]  # fmt: skip
    notes = [
        f"Total budget ({eps:g}, {delta:g}), sensitivity 1; the others calibrate Gaussian noise, optdp its own noise."
    ]
    return Report("Several releases beside accountants", columns, rows,
                  notes + [n for p in ("dp-accounting", "pfl") for n in missing(p, told.get(p), told["versions"])])  # fmt: skip


def missing(name: str, told: Any, versions: dict[str, Any]) -> list[str]:
    """A note where nothing was found."""
    if isinstance(told, dict) and "error" in told:
        return [f"{name} failed: {told['error']}"]
    return [] if told else [f"{name}: {'not run' if versions.get(name) else 'not installed'}."]


def commands_part(quick: bool) -> Iterator[Report]:
    """Times of the README's commands and of the notebooks."""
    yield commands.readme(() if OPTIONS.tests else ("demo", "test") if quick else ("test",))
    yield commands.notebooks(["ogpm"] if quick else None)


#: Part -> (heading, introduction, what runs it).
PARTS: dict[str, tuple[str, str, Callable[[bool], Iterator[Report]]]] = {
    "piecewise": ("Piecewise mechanisms", "", piecewise), "windows": ("Windows and composites", "", windows),
    "additive": ("Additive noise", "", noise),
    "notions": ("Additive noise under other promises",
                "/Gaussian: the value over the loss of the Gaussian that spends the same budget.", notions),
    "kernel": ("All mechanisms", "", kernel),
    "categories": ("Categories", "", categories),
    "peers": ("Beside other libraries", "Each runs in a Python of its own on the same data, with the same guarantee and task.",
              libraries),
    "growth": ("How cost grows", "", growth),
    "quality": ("Published mechanisms beside the certified optimum",
                "The error of each published mechanism of the registry, in the sense of the problem, over the value that the "
                "optimal mechanism attains. A dash: it does not exist there. Names: [glossary](glossary.md).", quality),
    "commands": ("Commands and notebooks", "", commands_part),
}  # fmt: skip
OPTIONS = argparse.Namespace(peers=None, tests=False)


def machine() -> dict[str, Any]:
    """What runs here."""
    packages = ("numpy", "scipy", "highspy", "cvxpy", "pyomo", "pyscipopt", "gurobipy", "casadi", "python-flint")
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        cpu = platform.processor() or platform.machine()

    def known(package: str) -> str:
        try:
            return version(package)
        except PackageNotFoundError:
            return "not installed"

    return {"processor": f"{cpu}, {os.cpu_count()} cores", "system": f"{platform.system()} {platform.machine()}",
            "Python": platform.python_version(), "optdp": optdp.__version__} | {p: known(p) for p in packages}  # fmt: skip


def run(name: str, quick: bool) -> None:
    """Run one part and keep what it found."""
    began, children = time.process_time(), os.times()
    reports = []
    for report in PARTS[name][2](quick):
        print(report, end="\n\n", flush=True)
        reports.append(report)
    now = os.times()
    spent = time.process_time() - began + now[2] + now[3] - children[2] - children[3]
    told = [
        {"title": r.title, "columns": [asdict(c) for c in r.columns], "rows": list(r.rows), "notes": list(r.notes)}
        for r in reports
    ]
    data = {"machine": machine(), "seconds": spent, "quick": quick, "reports": told}
    RESULTS.mkdir(exist_ok=True)
    files.write_text(RESULTS / f"{name}.json", json.dumps(data, indent=1, default=float) + "\n")
    print(f"{name}: {spent:.0f} CPU s\n", flush=True)


def page(before: str = "") -> str:
    """The page from what the parts left. Parts that left nothing stay as they are on the page `before`."""
    found = re.split(r"^## (.+)\n", before, flags=re.MULTILINE)
    old = {heading: body.strip() for heading, body in zip(found[1::2], found[2::2], strict=True)}
    kept = {name: json.loads(path.read_text()) for name in PARTS if (path := RESULTS / f"{name}.json").exists()}
    machines = list({json.dumps(data["machine"]): data["machine"] for data in kept.values()}.values())
    lines = [
        "# Benchmarks", "",
        "Written by `make bench` (`benchmarks/page.py`) from what it measured: no number on this page is typed. Times are CPU",
        "seconds of one thread, after a call that loads libraries; a ratio compares two times of the same run. Longer tables:",
        "[piecewise](benchmark-piecewise.md), [additive](benchmark-additive.md), [surveys](benchmark-statistics.md).", "",
        "## Where it ran", "",
    ]  # fmt: skip
    for each in machines:
        parts = [n for n, data in kept.items() if data["machine"] == each]
        if len(machines) > 1:
            lines += [f"Parts {', '.join(parts)}:", ""]
        lines += ["| what | version |", "| --- | --- |", *(f"| {what} | {text} |" for what, text in each.items()), ""]
    seconds = ", ".join(f"{name} {data['seconds']:.0f} s" for name, data in kept.items())
    lines += [f"CPU time of the parts: {seconds}.", ""]
    if rough := [name for name, data in kept.items() if data["quick"]]:
        lines += [f"Run at small sizes, to see that they run: {', '.join(rough)}.", ""]
    if stays := [name for name, part in PARTS.items() if name not in kept and part[0] in old]:
        lines += [f"Parts {', '.join(stays)}{EARLIER}", "", old["Where it ran"].rpartition(EARLIER)[2].strip(), ""]
    for name, (heading, about, _) in PARTS.items():
        if name in stays:
            lines += [f"## {heading}", "", old[heading], ""]
            continue
        lines += [f"## {heading}", ""] + ([about, ""] if about else [])
        if name not in kept:
            lines += [f"Not run (`python benchmarks/page.py --parts {name}`).", ""]
            continue
        for data in kept[name]["reports"]:
            report = Report(data["title"], [Column(**c) for c in data["columns"]], data["rows"], data["notes"])
            lines += [report.to_markdown().rstrip(), ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> None:
    """Run the parts and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--parts", nargs="*", metavar="PART", default=[], help=f"of {', '.join(PARTS)}; also with commas"
    )
    parser.add_argument("--resume", action="store_true", help="leave out what benchmarks/results/ has")
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--page", action="store_true", help="run nothing: write the page from what there is")
    parser.add_argument("--peers", metavar="PYTHON", help="the Python of benchmarks/requirements.txt")
    parser.add_argument("--tests", action="store_true", help="part commands: time `make test`, too")
    parser.add_argument("--out", type=Path, default=PAGE, help="the page (default docs/benchmarks.md)")
    parser.parse_args(namespace=OPTIONS)
    wanted = [name for text in OPTIONS.parts for name in text.split(",")] or list(PARTS)
    if unknown := set(wanted) - set(PARTS):
        parser.error(f"--parts {', '.join(sorted(unknown))} is not allowed: the parts are {', '.join(PARTS)}")
    for name in [] if OPTIONS.page else wanted:
        if not (OPTIONS.resume and (RESULTS / f"{name}.json").exists()):
            run(name, OPTIONS.quick)
    files.write_text(OPTIONS.out, page(OPTIONS.out.read_text(encoding="utf-8") if OPTIONS.out.exists() else ""))
    print(f"{OPTIONS.out} written")


if __name__ == "__main__":
    main()

"""CPU time of the public calls in this checkout beside another one, in one run: no release may be slower than the one before.

    git worktree add ../before v0.1.0
    python benchmarks/versions.py --other ../before                      # everything
    python benchmarks/versions.py --other ../before --only piecewise lip # some groups
    python benchmarks/versions.py --list                                 # the groups and their calls

Each group of calls runs in processes of its own, one for each version, which take turns: other, this, other, this. A process
first loads libraries by a call that is not counted; then the time of a call is the least of its repetitions over all turns. A
call passes if it takes at most 1.1 times as long as the other version's, or at most 1 ms more; the exit status is 1 if one does
not. A call that the other version does not have, or that fails, is shown as such.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

#: What passes: a ratio, or seconds more.
RATIO, MORE = 1.1, 1e-3
LOSSES, PAIRS = ("abs", "squared"), ("A1B1", "A2B1", "A3B1", "A1B2", "A2B2", "A3B2")

#: Executed by both versions. The names of these calls are those of 0.1.0, which later versions keep.
SETUP = """
import numpy as np
import optdp
def prior(kind, d):
    raw = {"uniform": np.ones(d), "zipf": 1 / np.arange(1, d + 1), "random": np.random.default_rng(0).dirichlet(np.ones(d))}[kind]
    return raw / raw.sum()
def clamped_laplace(eps):
    try:
        from optdp.mechanisms.baselines import clamped_laplace
        return clamped_laplace(eps)
    except ImportError:
        from optdp.mechanisms.baselines import get
        return get("clamped Laplace").build(optdp.Problem(optdp.LDP(eps), (0, 1), "abs"))
def spread(domain):
    return np.clip(domain.lower + (domain.upper - domain.lower) * drawn, domain.lower, domain.upper)
drawn, rng = np.random.default_rng(0).random(1_000_000), np.random.default_rng(0)
"""
#: Group -> (a call that loads libraries, [(what is shown, setup, call)]).
Calls = list[tuple[str, str, str]]


def plain(*calls: str) -> Calls:
    """Calls without a setup, shown as they stand."""
    return [(call.replace("optdp.", ""), "", call) for call in calls]


def sampled(name: str, make: str, inputs: str = "drawn") -> Calls:
    """A million answers of a mechanism, with a generator and with the bits that are used in earnest."""
    begin = f"mechanism = {make}\nx = {inputs}"
    return [
        (f"randomize, {name}, {bits}", begin, f"mechanism.randomize(x, {rng})")
        for bits, rng in (("Generator", "rng"), ("default bits", "None"))
    ]


def groups() -> dict[str, tuple[str, Calls]]:
    """Every group of calls."""
    piecewise = [
        f"optdp.solve_piecewise({e}, {m}, {q!r}, backend={{}})"
        for q in LOSSES
        for e in (0.5, 1.0, 2.0, 4.0)
        for m in range(2, 10)
    ]
    kernel = [f"{q!r}" for q in LOSSES] + ["unbiased=True, domain=(-1, 1)"]
    additive = [
        f"optdp.solve_additive({e}, {d}, {q!r})"
        for e in (0.05, 0.1, 0.5, 1.0, 2.0, 4.0)
        for d in (0.0, 1e-8, 1e-5, 1e-2, 0.1, 0.3)
        for q in LOSSES
    ]
    ways = ["", ", every_shift=True, method='structured'", ", every_shift=True, method='simplex'"]
    cases = ((1.0, 1e-2, 16), (0.1, 1e-2, 16), (0.1, 1e-6, 8), (1.0, 1e-2, 32), (2.0, 1e-2, 40))
    lattice = [f"optdp.solve_additive({e}, {d}, n={n}, rtol=1e-6{w})" for e, d, n in cases for w in ways]
    small = [
        f"optdp.solve_lip(prior('random', {d}), 1.0, task={t!r}, backend={b!r}, rtol=1e-10)"
        for t in ("sum", "histogram")
        for d in (2, 4, 6, 8, 10, 12)
        for b in ("columns", "enumeration", "cvxpy")
    ]
    large = [
        f"optdp.solve_lip(prior({k!r}, 83), {e}, task={t!r})"
        for t in ("sum", "histogram")
        for k in ("uniform", "random", "zipf")
        for e in (0.5, 1.0, 2.0, 4.0)
    ]
    users = [
        "optdp.lip_simulate([0.9, 0.1], 1.0, 1_000_000, task='survey', "
        "schemes=('lip', 'ldp', 'randomised response', 'central'), rounds=1)",
        "optdp.lip_simulate(prior('random', 83), 1.0, 1_000_000, task='histogram', "
        "schemes=('lip', 'randomised response', 'oue'), rounds=1)",
    ]
    solved = {
        "piecewise": "optdp.solve_piecewise(1.0)", "ptt I": "optdp.solve_ptt(1.0)", "additive": "optdp.solve_additive(1.0, 0.01)",
        "composite": "optdp.solve_composite(1.0)", "lip": "optdp.solve_lip(prior('random', 10), 1.0)",
        "kernel": "optdp.solve_kernel(1.0, rtol=0.01)",
    }  # fmt: skip
    middle = "spread(mechanism.domain)"
    samplers = [
        *(call for e in (0.1, 1.0, 4.0) for call in sampled(f"piecewise, eps = {e}", f"optdp.solve_piecewise({e}).mechanism")),
        *(
            call
            for e, d in ((1.0, 1e-2), (1.0, 0.0), (0.1, 1e-6))
            for call in sampled(f"additive, eps = {e}, delta = {d}", f"optdp.solve_additive({e}, {d}).mechanism")
        ),
        *(
            call
            for e in (0.5, 1.0, 4.0)
            for call in sampled(f"kernel, eps = {e}", f"optdp.solve_kernel({e}, rtol=0.01).mechanism")
        ),
        *(
            call
            for p in PAIRS
            for call in sampled(f"composite {p}", f"optdp.solve_composite(1.0, {p[:2]!r}, {p[2:]!r}).mechanism", middle)
        ),
        *(call for k in ("I", "II") for call in sampled(f"{k}-PTT", f"optdp.solve_ptt(1.0, {k!r}).mechanism", "2 * drawn - 1")),
        *sampled("lip, 83 categories", "optdp.solve_lip(prior('random', 83), 1.0).mechanism", "(83 * drawn).astype(int)"),
        *sampled("clamped Laplace", "clamped_laplace(1.0)"),
    ]  # fmt: skip
    return {
        "piecewise": ("optdp.solve_piecewise(1.0)", plain(*(call.format("'auto'") for call in piecewise))),
        "slsqp": (
            "optdp.solve_piecewise(1.0, 2, backend='slsqp')",
            plain(*(call.format("'slsqp', starts=8") for call in piecewise)),
        ),
        "ptt": (
            "optdp.solve_ptt(1.0)",
            plain(*(f"optdp.solve_ptt({e}, {k!r})" for e in (0.01, 0.1, 0.5, 1.0, 2.0, 5.0) for k in ("I", "II"))),
        ),
        "composite": (
            "optdp.solve_composite(1.0)",
            plain(
                *(
                    f"optdp.solve_composite({e}, {p[:2]!r}, {p[2:]!r}{way})"
                    for e in (0.2, 0.5, 1.0, 2.0, 3.0)
                    for p in PAIRS
                    for way in ("", ", backend='grid'")
                )
            ),
        ),
        "additive": ("optdp.solve_additive(1.0, 0.1, n=4)", plain(*additive)),
        "lattice": ("optdp.solve_additive(1.0, 0.1, n=4)", plain(*lattice)),
        "kernel": (
            "optdp.solve_kernel(1.0, rtol=0.2)",
            plain(*(f"optdp.solve_kernel({e}, {q}, rtol=1e-3)" for q in kernel for e in (0.1, 0.5, 1.0, 2.0, 3.0, 4.0))),
        ),
        "lip": ("[optdp.solve_lip([0.5, 0.3, 0.2], 1.0, backend=b) for b in ('columns', 'enumeration', 'cvxpy')]", plain(*small)),
        "categories": ("optdp.solve_lip([0.5, 0.3, 0.2], 1.0)", plain(*large)),
        "users": ("optdp.lip_simulate([0.9, 0.1], 1.0, 100, task='survey', rounds=1)", plain(*users)),
        "verify": (
            "optdp.solve_piecewise(1.0).verify()",
            [(f"verify, {name}", f"solution = {call}", "solution.verify()") for name, call in solved.items()],
        ),
        "sampling": ("optdp.solve_piecewise(1.0).mechanism.randomize(drawn, rng)", samplers),
    }  # fmt: skip


def child(group: str, budget: float) -> None:
    """Time the calls of a group here; a line of JSON for each: its seconds, or what went wrong."""
    warm, calls = groups()[group]
    common: dict[str, Any] = {}
    exec(SETUP, common)
    exec(warm, common)
    for name, setup, call in calls:
        names = dict(common)
        try:
            exec(setup, names)
            code, best, spent, count = compile(call, name, "eval"), float("inf"), 0.0, 0
            while (count < 2 and spent < 1.0) or (spent < budget and count < 50):
                began = time.process_time()
                eval(code, names)
                seconds = time.process_time() - began
                best, spent, count = min(best, seconds), spent + seconds, count + 1
            told: Any = best
        except Exception as error:  # shown in the table
            told = f"{type(error).__name__}: {error}".splitlines()[0][:80]
        print(json.dumps([name, told]), flush=True)


def measured(checkout: Path, group: str, budget: float) -> dict[str, Any]:
    """Call -> seconds or an error, by the package of a checkout in a process of its own."""
    alone = {"PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    words = [sys.executable, __file__, "--child", group, "--budget", str(budget)]
    done = subprocess.run(words, env=os.environ | alone, cwd=checkout, capture_output=True, text=True)
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"status {done.returncode}"])[-1]
        raise RuntimeError(f"group {group} in {checkout}: {last}")
    return dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))


def verdict(other: Any, ours: Any) -> str:
    """What a row of the table says."""
    if isinstance(ours, str):
        return "fails here"
    if isinstance(other, str):
        return "not in the other version"
    if ours <= other:
        return "faster"
    return "within 10 % or 1 ms" if ours <= RATIO * other or ours <= other + MORE else "slower"


def least(turns: list[dict[str, Any]], call: str) -> Any:
    """The least time of a call over all turns, or its error."""
    return min((turn[call] for turn in turns), key=lambda t: (isinstance(t, str), t))


def main() -> None:
    """Run the groups in turn and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", type=Path, metavar="CHECKOUT", help="folder of the other version")
    parser.add_argument("--only", nargs="+", choices=tuple(groups()), help="these groups")
    parser.add_argument("--turns", type=int, default=2, help="processes for each version and group")
    parser.add_argument(
        "--budget", type=float, default=0.3, help="CPU seconds of the repetitions of one call in one turn"
    )
    parser.add_argument("--list", action="store_true", help="print the groups and their calls")
    parser.add_argument("--out", help="also save the table (.md, .csv, .json, .html)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.child, args.budget)
        return
    if args.list:
        for group, (_, calls) in groups().items():
            print(f"{group}:", *(f"  {name}" for name, _, _ in calls), sep="\n")
        return
    if args.other is None or not (args.other / "optdp").is_dir():
        parser.error("--other must be the folder of a checkout of optdp")
    here, rows = Path(__file__).resolve().parent.parent, []
    for group in args.only or groups():
        turns: dict[Path, list[dict[str, Any]]] = {args.other.resolve(): [], here: []}
        for _ in range(args.turns):
            for checkout, told in turns.items():
                told.append(measured(checkout, group, args.budget))
        for call, _, _ in groups()[group][1]:
            other, ours = (least(told, call) for told in turns.values())
            timed = not isinstance(other, str) and not isinstance(ours, str)
            row = {
                "group": group, "call": call, "other": None if isinstance(other, str) else 1e3 * other,
                "ours": None if isinstance(ours, str) else 1e3 * ours, "ratio": ours / other if timed else None,
                "verdict": verdict(other, ours), "error": next((t for t in (ours, other) if isinstance(t, str)), ""),
            }  # fmt: skip
            rows.append(row)
            print(
                f"{row['verdict']:24s} {row['other'] or 0:12.3f} {row['ours'] or 0:12.3f} ms  {call} {row['error']}",
                flush=True,
            )
    # The table comes last, so that a child of an older version imports nothing of it.
    from optdp.report.report import Column, Report

    columns = [
        Column("call", "call"), Column("other", "other, ms", ".3f"), Column("ours", "this, ms", ".3f"),
        Column("ratio", "this / other", ".2f"), Column("verdict", "verdict"),
    ]  # fmt: skip
    counts = {
        text: sum(row["verdict"] == text for row in rows) for text in dict.fromkeys(row["verdict"] for row in rows)
    }
    notes = ["; ".join(f"{count} {text}" for text, count in counts.items()) + f"; {len(rows)} calls."]
    notes += [f"{row['call']}: {row['error']}" for row in rows if row["error"]]
    report = Report(f"CPU time beside {args.other.name}", columns, rows, notes)
    print(f"\n{report}")
    if args.out:
        report.save(args.out)
    sys.exit(any(row["verdict"] in ("slower", "fails here") for row in rows))


if __name__ == "__main__":
    main()

"""The lattice program of additive noise: rows as needed against all shifts, in HiGHS as shipped and in cvxpy, in one run.

    python benchmarks/additive.py                     # the table: same lattice, same bound, four ways
    python benchmarks/additive.py --grid              # gap and time over the grid of (eps, delta) at a tolerance: on the line,
                                                      # for eps = 0, and on the integers (or --grid with the names of some)
    python benchmarks/additive.py --sampling          # samples per second beside numpy's own generators

CPU seconds (process time) of one call; every call ends with the exact certificate and the exactly private mechanism, except
"cvxpy", which solves the same model (HiGHS through its own interface) and stops there. `/auto`: time over that of "auto".
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import optdp
from optdp.mechanisms.baselines.noise import truncated_radius
from optdp.report.report import Column, Report

#: What --grid can be asked for; sensitivities on the integers, and those for eps = 0.
GRIDS = ("line", "zero", "integers")
WIDTHS, ZERO_WIDTHS = (1, 2, 3, 4, 10, 100, 1000, 10**4, 10**6), (1, 10)
#: (eps, delta, points per sensitivity) of the table.
CASES = ((1.0, 1e-2, 16), (0.1, 1e-2, 16), (0.1, 1e-6, 8), (1.0, 1e-2, 32), (2.0, 1e-2, 40), (4.0, 1e-2, 48))


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Result and CPU seconds of one call."""
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


def cvxpy_bound(eps: float, delta: float, n: int, size: int) -> float:
    """The plain program as one would write it in cvxpy: one hockey-stick constraint per shift, E|Z|, the lattice's optimum."""
    import cvxpy as cp
    from scipy.sparse import coo_matrix

    p = cp.Variable(size, nonneg=True)  # masses at 0, h, 2h, ...: symmetric
    line = np.arange(-size - n + 1, size + n)
    spread = coo_matrix(
        (np.ones(2 * size - 1), (np.arange(n, n + 2 * size - 1), np.abs(np.arange(-size + 1, size)))),
        shape=(line.size, size),
    ).tocsr()
    constraints = [p[0] + 2 * cp.sum(p[1:]) == 1]
    ratio = math.exp(eps)
    for s in range(1, n + 1):
        constraints.append(cp.sum(cp.pos((spread[:-s] - ratio * spread[s:]) @ p)) <= delta)
    problem = cp.Problem(cp.Minimize(2 * (np.arange(size) / n) @ p), constraints)
    return float(problem.solve(solver=cp.HIGHS))


def table(cases: list[tuple[float, float, int]], with_cvxpy: bool) -> Report:
    """The same bound four ways."""
    rows: list[dict[str, Any]] = []
    optdp.solve_additive(1.0, 0.1, n=4)  # loads libraries
    for eps, delta, n in cases:
        base = 0.0
        ways: dict[str, dict[str, Any]] = {
            "auto": {}, "structured, all shifts": {"every_shift": True, "method": "structured"},
            "HiGHS simplex, all shifts": {"every_shift": True, "method": "simplex"},
            "HiGHS interior, all shifts": {"every_shift": True, "method": "ipm"},
        }  # fmt: skip
        for way, options in ways.items():
            solution, seconds = timed(lambda o=options, e=eps, d=delta, k=n: optdp.solve_additive(
                e, d, n=k, rtol=1e-6, time_limit=120, **o))  # fmt: skip
            base = base or seconds
            rows.append({"eps": eps, "delta": delta, "n": n, "way": way, "lower": solution.lower_bound, "gap": solution.gap,
                         "rows": solution.program.model.rows.shape[0], "seconds": seconds, "ratio": seconds / base})  # fmt: skip
            print(rows[-1], flush=True)
        if with_cvxpy:
            size = math.ceil((truncated_radius(eps, delta) * 1.02 + 0.25) * n) + 1
            value, seconds = timed(lambda e=eps, d=delta, k=n, m=size: cvxpy_bound(e, d, k, m))
            rows.append({"eps": eps, "delta": delta, "n": n, "way": "cvxpy (HiGHS)", "lower": value, "gap": None,
                         "rows": n * (2 * size + n), "seconds": seconds, "ratio": seconds / base})  # fmt: skip
            print(rows[-1], flush=True)
    columns = [Column("eps", "eps", "g"), Column("delta", "delta", "g"), Column("n", "n", "d"), Column("way", "way"),
               Column("lower", "bound", ".7f"), Column("rows", "rows", "d"), Column("seconds", "CPU s", ".3f"),
               Column("ratio", "/auto", ".1f")]  # fmt: skip
    return Report("E|Z| on one lattice: rows as needed against all shifts", columns, rows,
                  ["cvxpy: the solver's value, on a support that may be short; the others: certified bounds."])  # fmt: skip


def grid_table(rtol: float, eps: list[float], delta: list[float], widths: list[int] | None = None) -> Report:
    """Gap and CPU time over the grid: on the line at sensitivity 1, or on the integers at the sensitivities `widths`."""
    rows: list[dict[str, Any]] = []
    refused: list[str] = []
    calls = [(w, e, d, q) for w in widths or [1] for e in eps for d in delta for q in ("abs", "squared")]
    for width, e, d, loss in calls:
        own = {"discrete": True, "sensitivity": width} if widths else {}
        name = f"({f'{width}, ' if widths else ''}{e:g}, {d:g}, {loss})"
        try:
            solution, seconds = timed(
                lambda e=e, d=d, q=loss, o=own: optdp.solve_additive(e, d, q, rtol=rtol, time_limit=600, **o)
            )
        except ValueError as error:
            refused.append(f"{name}: {error}")
            print(refused[-1], flush=True)
            continue
        check, verify_seconds = timed(solution.verify)
        rows.append({"sensitivity": width, "eps": e, "delta": d, "loss": loss, "name": name,
                     "n": getattr(solution.certificate, "n", None), "lower": solution.lower_bound,
                     "value": solution.value, "gap": solution.gap, "reached": bool(solution.gap <= rtol),
                     "verified": bool(check), "seconds": seconds, "verify": verify_seconds})  # fmt: skip
        print(rows[-1], flush=True)
    columns = [Column("sensitivity", "sensitivity", "d")] if widths else []
    columns += [Column("eps", "eps", "g"), Column("delta", "delta", "g"), Column("loss", "loss"), Column("n", "n", "d"),
                Column("lower", "lower bound", ".9g", "down"), Column("value", "value", ".9g", "up"), Column("gap", "gap", ".1e"),
                Column("reached", "reached"), Column("verified", "verified"), Column("seconds", "CPU s", ".2f"),
                Column("verify", "verify s", ".2f")]  # fmt: skip
    worst = max(r["seconds"] for r in rows)
    missed = [r["name"] for r in rows if not (r["reached"] and r["verified"])]
    notes = [f"Not reached or not verified: {', '.join(missed) or 'none'}. Slowest: {worst:.2f} CPU s."]
    notes += [f"Refused: {'; '.join(refused)}."] if refused else []
    where = "on the integers" if widths else "on the line"
    return Report(f"solve_additive {where} at rtol = {rtol:g}", columns, rows, notes)


def sampling_table(size: int = 2_000_000) -> Report:
    """Millions of samples per second on one core."""
    rng = np.random.default_rng(0)
    x = rng.random(size)
    rows = [{"what": "numpy laplace", "rate": size / timed(lambda: rng.laplace(size=size))[1] / 1e6}]
    for eps, delta in ((1.0, 1e-2), (1.0, 0.0), (0.1, 1e-6)):
        noise = optdp.solve_additive(eps, delta).mechanism
        noise.randomize(x[:10], rng)
        rows.append({"what": f"optimal noise, eps = {eps:g}, delta = {delta:g}",
                     "rate": size / timed(lambda m=noise: m.randomize(x, rng))[1] / 1e6})  # fmt: skip
    return Report("Sampling", [Column("what", "what"), Column("rate", "million/s", ".1f")], rows)


def main() -> None:
    """Parse the options and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--case", nargs=3, action="append", metavar=("EPS", "DELTA", "N"), help="a row of the table (repeatable)"
    )
    parser.add_argument("--no-cvxpy", action="store_true", help="leave cvxpy out")
    parser.add_argument("--grid", nargs="*", choices=GRIDS, help="gap and time over grids (default: all of them)")
    parser.add_argument("--rtol", type=float, default=1e-3, help="tolerance of --grid")
    parser.add_argument(
        "--eps", type=float, nargs="+", default=[0.01, 0.1, 1.0, 4.0, 8.0, 16.0], help="epsilons of --grid"
    )
    parser.add_argument(
        "--delta", type=float, nargs="+", default=[1e-12, 1e-9, 1e-6, 1e-3, 0.1, 0.5], help="deltas of --grid"
    )
    parser.add_argument(
        "--sensitivity", type=int, nargs="+", default=list(WIDTHS), help="sensitivities of the integers in --grid"
    )
    parser.add_argument("--sampling", action="store_true", help="samples per second only")
    parser.add_argument("--out", help="save the table (.md, .csv, .json, .html); of several each with its number")
    args = parser.parse_args()
    cases = [(float(e), float(d), int(n)) for e, d, n in args.case] if args.case else list(CASES)
    if args.grid is not None:
        grids = args.grid or GRIDS
        reports = [grid_table(args.rtol, args.eps, args.delta)] if "line" in grids else []
        if "zero" in grids:
            reports += [grid_table(args.rtol, [0.0], args.delta, widths) for widths in (None, list(ZERO_WIDTHS))]
        if "integers" in grids:
            reports.append(grid_table(args.rtol, args.eps, args.delta, args.sensitivity))
    else:
        reports = [sampling_table() if args.sampling else table(cases, not args.no_cvxpy)]
    for i, report in enumerate(reports):
        print()
        print(report)
        if args.out:
            stem, dot, kind = args.out.rpartition(".")
            report.save(args.out if len(reports) == 1 else f"{stem}-{i + 1}{dot}{kind}")


if __name__ == "__main__":
    main()

"""Value, bound and time of every backend on the piecewise program, in one run.

    python benchmarks/piecewise.py                       # the whole table: 2 losses x 4 epsilons x m = 2..9 (about 15 minutes)
    python benchmarks/piecewise.py --eps 1 --pieces 3 4  # a part of it
    python benchmarks/piecewise.py --sampling            # samples per second beside numpy's own generators

Times are wall seconds of the second of two calls (the first one loads libraries) except for SCIP and Gurobi, which run
once. `objective` and `bound` are what the solver itself says; `/auto` is its time over that of backend "auto".
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import optdp
from optdp.report.report import Column, Report


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Result and wall seconds of one call."""
    began = time.perf_counter()
    result = call()
    return result, time.perf_counter() - began


def solve(eps: float, m: int, loss: str, backend: str, time_limit: float) -> tuple[optdp.Solution, float]:
    """One solution and its time."""

    def call() -> optdp.Solution:
        return optdp.solve_piecewise(eps, m, loss, backend=backend, time_limit=time_limit, starts=8)

    if backend in ("auto", "slsqp"):
        call()
    if backend == "auto":  # microseconds: take the best of many
        return min((timed(call) for _ in range(50)), key=lambda pair: pair[1])
    return timed(call)


def backends_table(args: argparse.Namespace) -> Report:
    """The table of backends."""
    packages = {"scip": "pyscipopt", "gurobi": "gurobipy", "ipopt": "casadi"}
    backends = [b for b in args.backends if b not in packages or importlib.util.find_spec(packages[b])]
    rows: list[dict[str, Any]] = []
    for loss in args.loss:
        for eps in args.eps:
            for m in args.pieces:
                reference = 0.0
                for backend in ["auto", *(b for b in backends if b != "auto")]:
                    solution, seconds = solve(eps, m, loss, backend, args.time_limit)
                    reference = seconds if backend == "auto" else reference
                    rows.append(
                        {
                            "loss": loss,
                            "eps": eps,
                            "m": m,
                            "backend": backend,
                            "value": solution.value,
                            "lower": solution.lower_bound,
                            "gap": solution.gap,
                            "objective": solution.program.objective,
                            "bound": solution.program.bound,
                            "ms": seconds * 1e3,
                            "ratio": seconds / reference,
                        }
                    )
                    print(
                        f"{loss:8s} eps={eps:<4g} m={m} {backend:7s} {seconds * 1e3:12.3f} ms  gap {solution.gap:.1e}",
                        flush=True,
                    )
    columns = [
        Column("loss", "loss"),
        Column("eps", "eps", "g"),
        Column("m", "m", "d"),
        Column("backend", "backend"),
        Column("value", "value", ".10f"),
        Column("lower", "certified bound", ".10f"),
        Column("gap", "gap", ".1e"),
        Column("objective", "solver's objective", ".8f"),
        Column("bound", "solver's bound", ".8f"),
        Column("ms", "ms", ".3f"),
        Column("ratio", "/auto", ".0f"),
    ]
    return Report("solve_piecewise: backends", columns, rows, [f"SCIP and Gurobi stop after {args.time_limit:g} s."])


def sampling_table(size: int = 4_000_000) -> Report:
    """Millions of samples per second on one core."""
    rng = np.random.default_rng(0)
    x = rng.random(size)
    rows = [{"what": "numpy uniform floats", "rate": size / timed(lambda: rng.random(size))[1] / 1e6}]
    rows.append({"what": "numpy laplace", "rate": size / timed(lambda: rng.laplace(size=size))[1] / 1e6})
    for eps in (0.1, 1.0, 4.0):
        mechanism = optdp.solve_piecewise(eps, 3, "abs").mechanism
        seconds = min(timed(lambda m=mechanism: m.randomize(x, rng))[1] for _ in range(3))
        rows.append({"what": f"optimal piecewise, eps = {eps:g}", "rate": size / seconds / 1e6})
    return Report("Sampling", [Column("what", "what"), Column("rate", "million/s", ".1f")], rows)


def main() -> None:
    """Parse the options and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eps", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0])
    parser.add_argument("--pieces", type=int, nargs="+", default=list(range(2, 10)))
    parser.add_argument("--loss", nargs="+", default=["abs", "squared"])
    parser.add_argument("--backends", nargs="+", default=["auto", "slsqp", "scip", "gurobi"])
    parser.add_argument("--time-limit", type=float, default=5.0, help="seconds for scip and gurobi")
    parser.add_argument("--out", help="save the table (.md, .csv, .json, .html)")
    parser.add_argument("--sampling", action="store_true", help="samples per second only")
    args = parser.parse_args()
    report = sampling_table() if args.sampling else backends_table(args)
    print()
    print(report)
    if args.out:
        report.save(args.out)


if __name__ == "__main__":
    main()

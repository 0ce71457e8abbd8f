"""The kernel program: brackets and times of `solve_kernel`, its ways to solve one grid program, and samples per second.

    python benchmarks/kernel.py                   # brackets over epsilon and loss (several minutes)
    python benchmarks/kernel.py --eps 1 --rtol 1e-4
    python benchmarks/kernel.py --grid            # one linear program: blocks, columns, dense, in one run
    python benchmarks/kernel.py --sampling        # samples per second beside numpy's own choice

Seconds are CPU seconds of this process, single-threaded; ratios are within one run.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import optdp
from optdp.report.report import Column, Report
from optdp.solvers import kernel_lp as lp


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Result and CPU seconds of one call."""
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


def brackets(args: argparse.Namespace) -> Report:
    """Bracket, gap and time for every problem asked for."""
    optdp.solve_kernel(1, level=3)  # load libraries
    rows: list[dict[str, Any]] = []
    for loss in args.loss:
        for eps in args.eps:
            unbiased = loss == "unbiased"
            options = {"unbiased": True, "domain": (-1, 1)} if unbiased else {"loss": loss}

            def call(eps: float = eps, options: dict[str, Any] = options) -> optdp.Solution:
                return optdp.solve_kernel(eps, rtol=args.rtol, time_limit=args.time_limit, **options)

            solution, seconds = timed(call)
            verification, checking = timed(solution.verify)
            rows.append(
                {
                    "loss": loss,
                    "eps": eps,
                    "lower": solution.lower_bound,
                    "value": solution.value,
                    "gap": solution.gap,
                    "status": solution.status.name,
                    "inputs": len(solution.certificate.inputs),
                    "outputs": len(solution.mechanism.outputs),
                    "seconds": seconds,
                    "verified": bool(verification),
                    "checking": checking,
                }
            )
    columns = [
        Column("loss", "loss"),
        Column("eps", "eps", "g"),
        Column("lower", "lower bound", ".7g"),
        Column("value", "value", ".7g"),
        Column("gap", "gap", ".1e"),
        Column("status", "status"),
        Column("inputs", "inputs"),
        Column("outputs", "outputs"),
        Column("seconds", "seconds", ".3g"),
        Column("verified", "verified"),
        Column("checking", "verify s", ".2g"),
    ]
    return Report(f"solve_kernel, rtol = {args.rtol:g}", columns, rows)


def grids(args: argparse.Namespace) -> Report:
    """One linear program on a grid of inputs and outputs: the structured ways and the plain one."""
    rows: list[dict[str, Any]] = []
    for eps in args.eps:
        for k, m in args.size:
            grid = lp.Grid(math.exp(eps), 1.0, np.linspace(0, 1, k), np.linspace(0, 1, k))
            y = np.linspace(0, 1, m)
            half = y[y <= 0.5 + 1e-12]
            dense, slow = timed(lambda grid=grid, y=y: lp.solve_dense(grid, y))
            for name, call in (
                ("blocks", lambda grid=grid, half=half: lp.solve_blocks(grid, half)),
                ("blocks, vertex", lambda grid=grid, half=half: lp.solve_blocks(grid, half, vertex=True)),
                ("columns", lambda grid=grid, half=half: lp.solve_columns(grid, half)),
            ):
                found, seconds = timed(call)
                rows.append(
                    {
                        "eps": eps,
                        "size": f"{k} x {m}",
                        "how": name,
                        "value": found.value,
                        "off": found.value / dense.value - 1,
                        "seconds": seconds,
                        "faster": slow / seconds,
                    }
                )
            rows.append(
                {
                    "eps": eps,
                    "size": f"{k} x {m}",
                    "how": "dense",
                    "value": dense.value,
                    "off": 0.0,
                    "seconds": slow,
                    "faster": 1.0,
                }
            )
    columns = [
        Column("eps", "eps", "g"),
        Column("size", "inputs x outputs"),
        Column("how", "how"),
        Column("value", "value", ".9g"),
        Column("off", "off", ".1e"),
        Column("seconds", "seconds", ".3g"),
        Column("faster", "dense / this", ".3g"),
    ]
    return Report("One grid program, |y - x| on [0, 1]", columns, rows)


def sampling(args: argparse.Namespace) -> Report:
    """Samples per second."""
    rows: list[dict[str, Any]] = []
    for eps in args.eps:
        mechanism = optdp.solve_kernel(eps, rtol=1e-2).mechanism
        x = np.random.default_rng(0).random(1_000_000)
        row = mechanism.table.rows[0] / mechanism.table.rows[0].sum()
        mechanism.randomize(x[:10], 0)
        seconds = min(timed(lambda m=mechanism, x=x: m.randomize(x, 1))[1] for _ in range(5))
        rng = np.random.default_rng(1)
        plain = min(timed(lambda row=row, rng=rng: rng.choice(row.size, 1_000_000, p=row))[1] for _ in range(5))
        rows.append(
            {
                "eps": eps,
                "outputs": len(mechanism.outputs),
                "rows": len(mechanism.inputs),
                "rate": 1 / seconds,
                "choice": plain / seconds,
            }
        )
    columns = [
        Column("eps", "eps", "g"),
        Column("outputs", "outputs"),
        Column("rows", "rows"),
        Column("rate", "million samples/s", ".3g"),
        Column("choice", "/ numpy choice from one row", ".3g"),
    ]
    return Report("Sampling a kernel mechanism", columns, rows)


def main() -> None:
    """Parse the arguments and print one table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eps", type=float, nargs="+", default=[0.1, 0.5, 1.0, 2.0, 3.0, 4.0])
    parser.add_argument(
        "--loss", nargs="+", default=["abs", "squared", "unbiased"], choices=["abs", "squared", "unbiased"]
    )
    parser.add_argument("--rtol", type=float, default=1e-3)
    parser.add_argument("--time-limit", type=float, default=60.0)
    parser.add_argument("--grid", action="store_true", help="time one grid program instead")
    parser.add_argument(
        "--size",
        type=lambda text: tuple(map(int, text.split("x"))),
        nargs="+",
        default=[(11, 41), (21, 81), (21, 201)],
        metavar="KxM",
    )
    parser.add_argument("--sampling", action="store_true", help="time the sampler instead")
    args = parser.parse_args()
    print((grids if args.grid else sampling if args.sampling else brackets)(args).to_text())


if __name__ == "__main__":
    main()

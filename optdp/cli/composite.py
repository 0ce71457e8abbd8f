"""`optdp solve composite` and `optdp evaluate`."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optdp.cli import options

if TYPE_CHECKING:
    from optdp.cli import Commands

QUERIES = ("mean", "variance", "maximum", "minimum", "mode", "count")


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.solve.add_parser("composite", help="the best composite mechanism for a bounded query (DP)")
    options.add_eps(parser)
    parser.add_argument("--activation", choices=("A1", "A2", "A3"), default="A1", help="default A1")
    parser.add_argument("--base", choices=("B1", "B2"), default="B1", help="default B1")
    parser.add_argument("--objective", choices=("center", "worst"), default="center", help="default center")
    parser.add_argument(
        "--rule", choices=("uniform", "pointwise"), default="uniform", help="default uniform, the paper's"
    )
    parser.add_argument("--sensitivity", type=float, default=1.0, help="length of the interval of queries (default 1)")
    parser.add_argument("--lower", type=float, default=0.0, help="lowest output (default 0)")
    parser.add_argument(
        "--inputs", type=float, nargs=2, metavar=("A", "B"), help="range of the queries, instead of both"
    )
    parser.add_argument(
        "--backend", choices=("auto", "grid", "target", "scip"), default="auto", help="grid and target: the paper's own"
    )
    parser.add_argument("--target", type=float, help="variance at which backend target stops")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for scip (default 60)")
    options.add_solution_output(parser)
    parser.set_defaults(run=_solve)

    parser = commands.top.add_parser(
        "evaluate",
        help="statistics of a real column under each mechanism",
        description="Errors of mean, variance, extremes, mode and count of one column under each mechanism, over a range of "
        "epsilon. Columns: DATA:COLUMN of public data (anes96, randhie, modechoice; needs statsmodels), or a CSV file.",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", metavar="DATA:COLUMN", help="e.g. anes96:age")
    source.add_argument("--csv", metavar="FILE", help="a CSV file with a header; needs --column and --range")
    parser.add_argument("--column", help="column of the CSV file")
    parser.add_argument(
        "--range", type=float, nargs=2, metavar=("A", "B"), help="range of its values, known without looking"
    )
    parser.add_argument(
        "--query", nargs="+", choices=QUERIES, default=["maximum", "count"], help="default maximum count"
    )
    parser.add_argument("--eps", type=float, nargs="+", default=[0.5, 1.0, 2.0], help="epsilons (default 0.5 1 2)")
    parser.add_argument("--mechanism", nargs="+", help="names (default: all)")
    parser.add_argument(
        "--protocol", choices=("local", "range", "interval"), default="interval", help="default interval, the paper's"
    )
    parser.add_argument("--repeats", type=int, default=1000, help="answers for each (default 1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws (default 0)")
    options.add_report_output(parser)
    parser.set_defaults(run=_evaluate)


def _solve(args: argparse.Namespace) -> int:
    from optdp.design.composite import solve_composite

    solution = solve_composite(
        args.eps, args.activation, args.base, sensitivity=args.sensitivity, lower=args.lower, objective=args.objective,
        inputs=None if args.inputs is None else tuple(args.inputs), rule=args.rule, backend=args.backend, target=args.target,
        time_limit=args.time_limit,
    )  # fmt: skip
    return options.show_solution(solution, args)


def _evaluate(args: argparse.Namespace) -> int:
    from optdp.report.evaluate import MECHANISMS, evaluate, load_column

    if args.data:
        data, _, column = args.data.partition(":")
        values, bounds = load_column(data, column)
        name = args.data
    else:
        if not args.column or not args.range:
            raise ValueError("--csv needs --column and --range")
        values, bounds, name = _read(args.csv, args.column), tuple(args.range), args.column
    report = evaluate(
        values, bounds, queries=args.query, eps=args.eps, mechanisms=args.mechanism or tuple(MECHANISMS),
        protocol=args.protocol, repeats=args.repeats, seed=args.seed, name=name,
    )  # fmt: skip
    return options.show_report(report, args)


def _read(path: str, column: str) -> np.ndarray:
    with Path(path).open(encoding="utf-8-sig", newline="") as stream:
        reader = csv.DictReader(stream)
        if column not in (reader.fieldnames or []):
            raise ValueError(f"column = {column!r} is not allowed: {path} has {', '.join(reader.fieldnames or [])}")
        found = []
        for number, row in enumerate(reader, 1):
            try:
                found.append(float(row[column]))
            except (TypeError, ValueError):
                raise ValueError(f"row {number}: {column} is not a number") from None
    return np.array(found)

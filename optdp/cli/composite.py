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
    options.option(parser, "--activation", "A1", "constant, half a sine, triangle", choices=("A1", "A2", "A3"))
    options.option(parser, "--base", "B1", "constant, quartic", choices=("B1", "B2"))
    options.option(parser, "--objective", "center", "where the variance is least", choices=("center", "worst"))
    options.option(parser, "--rule", "uniform", "how ratios are bounded", choices=("uniform", "pointwise"))
    options.option(parser, "--sensitivity", 1.0, "length of the interval of queries")
    options.option(parser, "--lower", 0.0, "lowest output")
    options.option(
        parser, "--inputs", None, "range of the queries, instead of both", type=float, nargs=2, metavar=("A", "B")
    )
    options.option(parser, "--backend", "auto", "grid, target: the paper's", choices=("auto", "grid", "target", "scip"))
    options.option(parser, "--target", None, "variance at which backend target stops", type=float)
    options.option(parser, "--time-limit", 60.0, "seconds for scip")
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
    options.option(parser, "--column", None, "column of the CSV file")
    text = "range of its values, known without looking"
    options.option(parser, "--range", None, text, type=float, nargs=2, metavar=("A", "B"))
    options.option(parser, "--query", ["maximum", "count"], "statistics", type=str, nargs="+", choices=QUERIES)
    options.option(parser, "--eps", [0.5, 1.0, 2.0], "epsilons", type=float, nargs="+")
    options.option(parser, "--mechanism", None, "names (default: all)", nargs="+")
    options.option(parser, "--protocol", "interval", "interval: the paper's", choices=("local", "range", "interval"))
    options.option(parser, "--repeats", 1000, "answers for each")
    options.option(parser, "--seed", 0, "seed of the draws")
    options.add_report_output(parser)
    parser.set_defaults(run=_evaluate)


def _solve(args: argparse.Namespace) -> int:
    from optdp.design.composite import solve_composite

    solution = solve_composite(
        args.eps, args.activation, args.base, sensitivity=args.sensitivity, lower=args.lower, objective=args.objective,
        inputs=None if args.inputs is None else tuple(args.inputs), rule=args.rule, backend=args.backend, target=args.target,
        time_limit=args.time_limit, progress=True,
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

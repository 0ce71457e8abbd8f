"""`optdp evaluate`: statistics of a real column under each mechanism."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import numpy as np

from optdp.cli import options, table

if TYPE_CHECKING:
    from optdp.cli import Commands

QUERIES = ("mean", "variance", "maximum", "minimum", "mode", "count")


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = options.report_command(
        commands.top,
        "evaluate",
        "statistics of a real column under each mechanism",
        _evaluate,
        description="Errors of mean, variance, extremes, mode and count of one column under each mechanism, over a range of "
        "epsilon. Columns: DATA:COLUMN of public data (anes96, randhie, modechoice; needs statsmodels), or a CSV file.",
    )
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", metavar="DATA:COLUMN", help="e.g. anes96:age")
    source.add_argument("--csv", metavar="FILE", help="a CSV file with a header; needs --column and --range")
    options.option(parser, "--column", None, "column of the CSV file")
    text = "range of its values, known without looking"
    options.option(parser, "--range", None, text, type=options.parse_float, nargs=2, metavar=("A", "B"))
    text = "statistics"
    options.option(parser, "--query", ["maximum", "count"], text, type=str, nargs="+", choices=QUERIES, dest="queries")
    options.option(parser, "--eps", [0.5, 1.0, 2.0], "epsilons", type=options.parse_float, nargs="+")
    options.option(parser, "--mechanism", None, "names (default: all)", nargs="+", dest="mechanisms")
    options.option(parser, "--protocol", "interval", "interval: the paper's", choices=("local", "range", "interval"))
    options.option(parser, "--repeats", 1000, "answers for each")
    options.option(parser, "--seed", 0, "seed of the draws")


def _evaluate(args: argparse.Namespace) -> int:
    from optdp.report.evaluate import evaluate, load_column

    if args.data:
        data, _, column = args.data.partition(":")
        values, bounds = load_column(data, column)
    elif not args.column or not args.range:
        raise ValueError("--csv needs --column and --range")
    else:
        values, bounds = _read(args.csv, args.column), tuple(args.range)
    name = args.data or args.column
    return options.show_report(options.call(evaluate, args, values=values, bounds=bounds, name=name), args)


def _read(path: str, column: str) -> np.ndarray:
    found: list[float] = []
    with table.reading(path) as rows:
        place = rows.column(column)
        for number, row in enumerate(rows.rows(), 1):
            value = table.real(row[place])
            if value is None or not np.isfinite(value):
                raise ValueError(f"row {number}: {column} is not a number")
            found.append(value)
    return np.array(found)

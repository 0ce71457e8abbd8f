"""`optdp evaluate`: statistics of a column under each mechanism; `optdp randomize`: a column of a CSV file made private."""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import optdp
from optdp import files
from optdp.cli import Commands, options, survey
from optdp.cli.options import option

if TYPE_CHECKING:
    from optdp.exact.sampling import Seed
    from optdp.mechanisms.base import Mechanism
    from optdp.report.report import Report

#: Rows randomised at a time: large enough for numpy, small enough for any memory.
CHUNK = 65_536
QUERIES = ("mean", "variance", "maximum", "minimum", "mode", "count")


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    text = "statistics of a real column under each mechanism"
    described = (
        "Errors of mean, variance, extremes, mode and count of one column under each mechanism, over a range of "
        "epsilon. Columns: DATA:COLUMN of public data (anes96, randhie, modechoice; needs statsmodels), or a CSV file."
    )
    parser = options.report_command(commands.top, "evaluate", text, _evaluate, described)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", metavar="DATA:COLUMN", help="e.g. anes96:age")
    source.add_argument("--csv", metavar="FILE", help="a CSV file with a header; needs --column and --range")
    option(parser, "--column", None, "column of the CSV file")
    text = "range of its values, known without looking"
    option(parser, "--range", None, text, type=float, nargs=2, metavar=("A", "B"))
    text = "statistics"
    option(parser, "--query", ["maximum", "count"], text, type=str, nargs="+", choices=QUERIES, dest="queries")
    option(parser, "--eps", [0.5, 1.0, 2.0], "epsilons", type=float, nargs="+")
    option(parser, "--mechanism", None, "names (default: all)", nargs="+", dest="mechanisms")
    option(parser, "--protocol", "interval", "interval: the paper's", choices=("local", "range", "interval"))
    option(parser, "--repeats", 1000, "answers for each")
    option(parser, "--seed", 0, "seed of the draws")

    described = (
        "Replace every value of one numeric column by an eps-LDP output; other columns pass "
        "unchanged, and may identify people. Files of any size are streamed; the output is written atomically."
    )
    text = "make one numeric column of a CSV file private"
    parser = commands.top.add_parser("randomize", help=text, description=described)
    option(parser, "--plan", None, "what `optdp plan` wrote: all columns of the table instead of one", metavar="FILE")
    text = "privacy parameter, at most 30: 0.5, or exactly 1/2 or log(3)"
    parser.add_argument("--eps", type=options.parse_number, help=text)
    parser.add_argument("--column", help="name of the column in the header")
    parser.add_argument("--lower", type=float, help="lower end of the range, known without looking")
    parser.add_argument("--upper", type=float, help="upper end of the range")
    options.add_loss(parser)
    text = "optimal, kernel, unbiased kernel, or a published one that is sampled exactly: 'moved PM', PM, ..."
    option(parser, "--mechanism", "optimal", text)
    text = "instead: the mechanism that `optdp recommend` has first for it"
    option(parser, "--goal", None, text, choices=("mean", "quantile", "distribution", "answers"))
    text = "of the optimal window: centred, or linear, which serves averages"
    option(parser, "--placement", "centred", text, choices=("centred", "linear"))
    option(parser, "--clip", False, "move values outside the range to its nearest end, instead of refusing")
    option(parser, "--delimiter", ",", "field separator")
    option(parser, "--only", False, "write the private column alone")
    option(parser, "--seed", None, "for tests only: who knows the seed can undo the privacy", type=int)
    text = "write the mechanism as JSON, for whoever analyses the output"
    option(parser, "--save-mechanism", None, text, metavar="FILE")
    parser.add_argument("input", help="CSV file with a header, or - for standard input")
    parser.add_argument("output", help="CSV file to write")
    parser.set_defaults(run=_run)


def _evaluate(args: argparse.Namespace) -> Report:
    from optdp.report.evaluate import evaluate, load_column

    if args.data:
        data, _, column = args.data.partition(":")
        values, bounds = load_column(data, column)
    elif not args.column or not args.range:
        raise ValueError("--csv needs --column and --range")
    else:
        values, bounds = _read(args.csv, args.column), tuple(args.range)
    name = args.data or args.column
    return options.call(evaluate, args, values=values, bounds=bounds, name=name)


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


def _run(args: argparse.Namespace) -> int:
    from optdp.exact.sampling import as_rng

    asked = [name for name in ("eps", "column", "lower", "upper") if getattr(args, name) is not None]
    if args.plan is not None:
        if asked:
            raise ValueError(f"--{asked[0]} is not allowed with --plan, which says it")
        return survey.randomize(args)
    for name in ("eps", "column", "lower", "upper"):
        if name not in asked:
            raise ValueError(f"--{name} is missing (or --plan, for a whole table)")
    if len(args.delimiter) != 1:
        raise ValueError(f"delimiter = {args.delimiter!r} is not allowed: delimiter must be one character")
    if args.save_mechanism is not None and args.save_mechanism in (args.input, args.output):
        raise ValueError("--save-mechanism is not allowed to name the input or the output")
    mechanism = _mechanism(args)
    with ExitStack() as stack:
        if args.save_mechanism:  # opened first: a path that cannot be written is refused before anything is done
            stream = stack.enter_context(files.replacing(args.save_mechanism))
            stream.write(json.dumps(mechanism.to_dict(), indent=2) + "\n")
        rows = options.call(
            randomize_csv, args, source=args.input, target=args.output, mechanism=mechanism, rng=as_rng(args.seed),
            progress=sys.stderr.isatty(),
        )  # fmt: skip
    print(f"{rows} values of {args.column!r} made private: {mechanism!r}", file=sys.stderr)
    return 0


def _mechanism(args: argparse.Namespace) -> Mechanism:
    """The best piecewise mechanism, or the published one of that name, if its samples are private as they are sent."""
    from optdp.mechanisms import baselines

    problem = optdp.Problem(optdp.LDP(args.eps), (args.lower, args.upper), args.loss, optdp.Piecewise(3))
    if args.goal is not None:
        found = optdp.recommend(problem.domain, args.eps, args.goal, progress=True)
        told = f"{found.statement}: {found.best.error:.4g}"
        print(f"recommended for the goal {args.goal!r}: {found.best.name}; {told}", file=sys.stderr)
        return found.mechanism
    if args.mechanism in ("kernel", "unbiased kernel"):
        unbiased = args.mechanism == "unbiased kernel"
        loss = None if unbiased else args.loss
        kernel: Mechanism = optdp.solve_kernel(args.eps, loss, domain=problem.domain, unbiased=unbiased).mechanism
        return kernel
    if args.mechanism == "optimal" and args.placement == "linear":
        linear: Mechanism = optdp.solve_piecewise(
            args.eps, 3, args.loss, domain=problem.domain, placement="linear"
        ).mechanism
        return linear
    if args.mechanism == "optimal":
        best: Mechanism = optdp.solve(problem).mechanism
        return best
    made = baselines.baselines("interval", "ldp")
    known = made[args.mechanism].make(problem) if args.mechanism in made else None
    given = f"mechanism = {args.mechanism!r}"
    if known is None:
        raise ValueError(
            f"{given} is not allowed: it must be optimal, kernel, unbiased kernel or one of {', '.join(made)}"
        )
    if not known.satisfies(problem.privacy):
        raise ValueError(f"{given} is not allowed: what it sends is not proven to be private: {known.guarantee()}")
    return known


def randomize_csv(
    source: str | Path, target: str | Path, mechanism: Mechanism, column: str,
    *, clip: bool = False, delimiter: str = ",", only: bool = False, rng: Seed = None, progress: bool = False,
) -> int:  # fmt: skip
    """Copy a CSV file with one column randomised. **Returns** the number of rows.

    **Raises** ValueError naming the row (1 is the first after the header) for a value that is missing, not a number, or
    outside the domain unless `clip`; for a header without the column, or with it twice. Then `target` is not written.
    """
    from tqdm import tqdm

    with ExitStack() as stack:
        stream: Any = sys.stdin
        if str(source) != "-":
            stream = stack.enter_context(Path(source).open(encoding="utf-8-sig", newline=""))
        sink = stack.enter_context(files.replacing(target, newline=""))
        reader = csv.reader(stream, delimiter=delimiter)
        header = next(reader, None)
        if header is None:
            raise ValueError(f"{source} is empty: it must start with a header")
        if header.count(column) != 1:
            found = "no" if column not in header else "more than one"
            raise ValueError(  # not the header itself: a file without one begins with private values
                f"column = {column!r} is not allowed: {source} has {found} such column among the {len(header)} of its header"
            )
        place = header.index(column)
        writer = csv.writer(sink, delimiter=delimiter, lineterminator="\n")
        writer.writerow([column] if only else header)
        done = 0
        with tqdm(total=None, unit=" rows", disable=not progress, leave=False) as bar:
            for chunk in _chunks(reader):
                values = _column(chunk, place, len(header), done, mechanism, column, clip)
                private = map(repr, mechanism.randomize(values, rng).tolist())
                if only:
                    writer.writerows([text] for text in private)
                else:
                    for row, text in zip(chunk, private, strict=True):
                        row[place] = text
                    writer.writerows(chunk)
                done += len(chunk)
                bar.update(len(chunk))
    return done


def _chunks(reader: Iterator[list[str]]) -> Iterator[list[list[str]]]:
    chunk: list[list[str]] = []
    done = 0
    try:
        for row in reader:
            if row:  # csv gives an empty list for a blank line
                chunk.append(row)
            if len(chunk) == CHUNK:
                yield chunk
                done, chunk = done + len(chunk), []
    except csv.Error as error:
        raise ValueError(f"row {done + len(chunk) + 1} cannot be read: {error}") from None
    if chunk:
        yield chunk


def _column(
    chunk: list[list[str]], place: int, fields: int, done: int, mechanism: Mechanism, column: str, clip: bool
) -> np.ndarray:
    values = np.empty(len(chunk))
    low, high = mechanism.domain.lower, mechanism.domain.upper
    allowed = f"every row must have a number in {mechanism.domain}"
    for k, row in enumerate(chunk):  # messages name the row, never a value: it is private
        if len(row) != fields:
            raise ValueError(f"row {done + k + 1} has {len(row)} fields where the header has {fields}")
        try:
            values[k] = number = float(row[place])
        except ValueError:
            number = math.nan
        if math.isnan(number):
            text = row[place].strip().lower()
            what = "is missing" if text in ("", "nan") else "is not a number"
            raise ValueError(f"row {done + k + 1}: {column} {what}; {allowed}")
        if not clip and not low <= number <= high:
            raise ValueError(f"row {done + k + 1}: {column} is out of range; {allowed}: widen it, or use --clip")
    return np.clip(values, low, high)

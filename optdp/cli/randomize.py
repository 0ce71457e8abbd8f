"""`optdp randomize`: one column of a CSV file made private, row by row, in constant memory."""

from __future__ import annotations

import argparse
import csv
import json
import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import optdp
from optdp import files
from optdp.cli import options, survey

if TYPE_CHECKING:
    from optdp.cli import Commands
    from optdp.exact.sampling import Seed
    from optdp.mechanisms.base import Mechanism

#: Rows randomised at a time: large enough for numpy, small enough for any memory.
CHUNK = 65_536


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.top.add_parser(
        "randomize",
        help="make one numeric column of a CSV file private",
        description="Replace every value of one numeric column by an eps-LDP output; other columns pass "
        "unchanged, and may identify people. Files of any size are streamed; the output is written atomically.",
    )
    parser.add_argument(
        "--plan", metavar="FILE", help="what `optdp plan` wrote: all columns of the table instead of one"
    )
    text = "privacy parameter, at most 30: 0.5, or exactly 1/2 or log(3)"
    parser.add_argument("--eps", type=options.parse_number, help=text)
    parser.add_argument("--column", help="name of the column in the header")
    parser.add_argument("--lower", type=float, help="lower end of the range, known without looking")
    parser.add_argument("--upper", type=float, help="upper end of the range")
    options.add_loss(parser)
    options.option(
        parser,
        "--mechanism",
        "optimal",
        "optimal, kernel, unbiased kernel, or a published one that is sampled exactly: PM, ...",
    )
    text = "instead: the mechanism that `optdp recommend` has first for it"
    options.option(parser, "--goal", None, text, choices=("mean", "quantile", "distribution", "answers"))
    options.option(
        parser,
        "--placement",
        "centred",
        "of the optimal window: centred, or linear, which serves averages",
        choices=("centred", "linear"),
    )
    options.option(parser, "--clip", False, "move values outside the range to its nearest end, instead of refusing")
    options.option(parser, "--delimiter", ",", "field separator")
    options.option(parser, "--only", False, "write the private column alone")
    options.option(parser, "--seed", None, "for tests only: who knows the seed can undo the privacy", type=int)
    options.option(
        parser, "--save-mechanism", None, "write the mechanism as JSON, for whoever analyses the output", metavar="FILE"
    )
    parser.add_argument("input", help="CSV file with a header, or - for standard input")
    parser.add_argument("output", help="CSV file to write")
    parser.set_defaults(run=_run)


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
        made = optdp.recommend(problem.domain, args.eps, args.goal, progress=True)
        told = f"{made.statement}: {made.best.error:.4g}"
        print(f"recommended for the goal {args.goal!r}: {made.best.name}; {told}", file=sys.stderr)
        return made.mechanism
    if args.mechanism in ("kernel", "unbiased kernel"):
        unbiased = args.mechanism == "unbiased kernel"
        kernel: Mechanism = optdp.solve_kernel(
            args.eps, None if unbiased else args.loss, domain=problem.domain, unbiased=unbiased
        ).mechanism
        return kernel
    if args.mechanism == "optimal" and args.placement == "linear":
        return optdp.solve_piecewise(args.eps, 3, args.loss, domain=problem.domain, placement="linear").mechanism
    if args.mechanism == "optimal":
        best: Mechanism = optdp.solve(problem).mechanism
        return best
    published = baselines.baselines("interval", "ldp")
    known = published[args.mechanism].make(problem) if args.mechanism in published else None
    if known is None:
        raise ValueError(
            f"mechanism = {args.mechanism!r} is not allowed: it must be optimal, kernel, unbiased kernel or one "
            f"of {', '.join(published)}"
        )
    if not known.satisfies(problem.privacy):
        raise ValueError(
            f"mechanism = {args.mechanism!r} is not allowed: what it sends is not proven to be private: {known.guarantee()}"
        )
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

    with _reading(source) as stream, files.replacing(target, newline="") as sink:
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


def _reading(source: str | Path) -> Any:
    """The file, or standard input for "-"."""
    return nullcontext(sys.stdin) if str(source) == "-" else Path(source).open(encoding="utf-8-sig", newline="")


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

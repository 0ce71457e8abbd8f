"""`optdp randomize`: one column of a CSV file made private, row by row, in constant memory."""

from __future__ import annotations

import argparse
import csv
import math
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp import files

if TYPE_CHECKING:
    from optdp.cli import Commands
    from optdp.mechanisms.base import Mechanism

#: Rows randomised at a time: large enough for numpy, small enough for any memory.
CHUNK = 65_536


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.top.add_parser(
        "randomize",
        help="make one numeric column of a CSV file private",
        description="Replace every value of one numeric column by an eps-LDP output; other columns pass unchanged (mind what "
        "they tell). Files of any size are streamed; OUT appears whole or not at all.",
    )
    parser.add_argument("--eps", type=float, required=True, help="privacy parameter of each value, in (0, 30]")
    parser.add_argument("--column", required=True, help="name of the column in the header")
    parser.add_argument(
        "--lower", type=float, required=True, help="lower end of the values' range, known without looking"
    )
    parser.add_argument("--upper", type=float, required=True, help="upper end of the values' range")
    parser.add_argument("--loss", choices=("abs", "squared"), default="abs", help="what to keep small (default abs)")
    parser.add_argument(
        "--mechanism", choices=("optimal", "PM", "SW", "PTT"), default="optimal", help="default optimal"
    )
    parser.add_argument(
        "--clip", action="store_true", help="move values outside the range to its nearest end, instead of refusing"
    )
    parser.add_argument("--delimiter", default=",", help="field separator (default ,)")
    parser.add_argument("--only", action="store_true", help="write the private column alone")
    parser.add_argument("--seed", type=int, help="for tests only: who knows the seed can undo the privacy")
    parser.add_argument(
        "--save-mechanism", metavar="FILE", help="write the mechanism as JSON, for whoever analyses the output"
    )
    parser.add_argument("input", help="CSV file with a header, or - for standard input")
    parser.add_argument("output", help="CSV file to write")
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> int:
    from optdp.design.piecewise import solve_piecewise
    from optdp.mechanisms import BASELINES

    domain = (args.lower, args.upper)
    solution = solve_piecewise(args.eps, 3, args.loss, domain=domain)
    mechanism = solution.mechanism if args.mechanism == "optimal" else BASELINES[args.mechanism](args.eps, domain)
    if len(args.delimiter) != 1:
        raise ValueError(f"delimiter = {args.delimiter!r} is not allowed: delimiter must be one character")
    rows = randomize_csv(
        args.input, args.output, mechanism, args.column, clip=args.clip, delimiter=args.delimiter, only=args.only,
        rng=np.random.default_rng(args.seed), progress=sys.stderr.isatty(),
    )  # fmt: skip
    if args.save_mechanism:
        mechanism.save(args.save_mechanism)
    print(f"{rows} values of {args.column!r} made private: {mechanism!r}", file=sys.stderr)
    return 0


def randomize_csv(
    source: str | Path, target: str | Path, mechanism: Mechanism, column: str,
    *, clip: bool = False, delimiter: str = ",", only: bool = False, rng: Any = None, progress: bool = False,
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
            problem = "no" if column not in header else "more than one"
            raise ValueError(
                f"column = {column!r} is not allowed: {source} has {problem} such column; it has {', '.join(header)}"
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
    for row in reader:
        if row:  # csv gives an empty list for a blank line
            chunk.append(row)
        if len(chunk) == CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _column(
    chunk: list[list[str]], place: int, fields: int, done: int, mechanism: Mechanism, column: str, clip: bool
) -> np.ndarray:
    values = np.empty(len(chunk))
    low, high = mechanism.domain.lower, mechanism.domain.upper
    for k, row in enumerate(chunk):
        if len(row) != fields:
            raise ValueError(f"row {done + k + 1} has {len(row)} fields where the header has {fields}")
        try:
            values[k] = number = float(row[place])
        except ValueError:
            number = math.nan
        if math.isnan(number):
            text = row[place].strip()
            what = "is missing" if not text or text.lower() == "nan" else f"is {text!r}, which is not a number"
            raise ValueError(f"row {done + k + 1}: {column} {what}; every row must have a number in {mechanism.domain}")
        if not clip and not low <= number <= high:
            raise ValueError(
                f"row {done + k + 1}: {column} = {row[place].strip()} is outside {mechanism.domain}; widen the range, or --clip"
            )
    return np.clip(values, low, high)

"""`optdp evaluate`: statistics of a column under each mechanism; `optdp randomize`: a column of a CSV file made private."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import optdp
from optdp import files
from optdp.cli import Commands, options, survey
from optdp.cli.options import option
from optdp.exact import table
from optdp.mechanisms import baselines

if TYPE_CHECKING:
    from optdp.exact.sampling import Seed
    from optdp.mechanisms.base import Mechanism
    from optdp.report.report import Report
    from optdp.statistics.recommend import Recommendation

#: Rows randomised at a time: large enough for numpy, small enough for any memory.
CHUNK = 16_384
#: The same in bytes of the file.
BYTES = 2**22
#: What must be said of one column, and what may be.
NEEDED = ("eps", "column", "lower", "upper")
ALONE = (
    "goal", "mechanism", "loss", "placement", "clip", "keep", "only", "delimiter", "multiline", "in_place", "save_mechanism",
)  # fmt: skip
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
    option(parser, "--range", None, text, type=options.parse_float, nargs=2, metavar=("A", "B"))
    text = "statistics"
    option(parser, "--query", ["maximum", "count"], text, type=str, nargs="+", choices=QUERIES, dest="queries")
    option(parser, "--eps", [0.5, 1.0, 2.0], "epsilons", type=options.parse_float, nargs="+")
    option(parser, "--mechanism", None, "names (default: all)", nargs="+", dest="mechanisms")
    option(parser, "--protocol", "interval", "interval: the paper's", choices=("local", "range", "interval"))
    option(parser, "--repeats", 1000, "answers for each")
    option(parser, "--seed", 0, "seed of the draws")

    parser = commands.top.add_parser(
        "randomize",
        help="make a table private as a plan says, or one numeric column of a CSV file",
        description="With --plan: make all columns of a table private. Else: replace every value of one numeric column by an "
        "eps-LDP output. Other columns are copied in clear only if --keep lists them. Files of any size are streamed; outputs "
        "appear whole and together, or not at all. CSV is read strictly: UTF-8, one line for each row, quotes balanced, no blank "
        "lines. A number is a sign, digits with a point, an exponent (12, -0.5, 6.02e23) and nothing else.",
    )
    option(parser, "--plan", None, "what `optdp plan` wrote: all columns of the table instead of one", metavar="FILE")
    options.add_eps(parser, required=False)
    text = "name of the column in the header; one column at a time"
    parser.add_argument("--column", action=options.Once, help=text)
    text = "lower end of the range, known without looking"
    parser.add_argument("--lower", type=options.parse_float, action=options.Once, help=text)
    parser.add_argument("--upper", type=options.parse_float, action=options.Once, help="upper end of the range")
    text = "what is wanted of the private column: takes the mechanism that `optdp recommend` has first (default: mean)"
    option(parser, "--goal", None, text, choices=("mean", "quantile", "distribution", "answers"))
    text = "instead: optimal, kernel, unbiased kernel, or a published one that is sampled exactly: 'moved PM', PM, ..."
    option(parser, "--mechanism", None, text)
    text = "of the optimal mechanism, or of the kernel: abs (default), squared, power:Q, huber:C, threshold:T"
    option(parser, "--loss", None, text, type=options.parse_loss)
    text = "of its window: centred (default), or linear, which serves averages"
    option(parser, "--placement", None, text, choices=("centred", "linear"))
    option(parser, "--clip", False, "move values outside the range to its nearest end, instead of refusing")
    text = "a column to copy in clear, or several: id,town; may be repeated"
    option(parser, "--keep", None, text, action="append", metavar="NAME")
    option(parser, "--only", False, "leave out columns that --keep does not list, instead of refusing them")
    option(parser, "--delimiter", ",", "field separator")
    option(parser, "--multiline", False, "allow line breaks in quoted fields: a missing quote may then hide rows")
    option(parser, "--in-place", False, "allow the output to be the input, which it replaces")
    option(
        parser, "--seed", None, "for tests only: who knows the seed can undo the privacy", type=options.parse_integer
    )
    option(
        parser, "--save-mechanism", None, "write the mechanism as JSON, for whoever analyses the output", metavar="FILE"
    )
    parser.add_argument("input", help="CSV file with a header, or - for standard input")
    parser.add_argument("output", help="CSV file to write, or - for standard output")
    parser.set_defaults(run=_run)


def _evaluate(args: argparse.Namespace) -> Report:
    from optdp.report.evaluate import evaluate, load_column

    if args.data:
        for name in ("column", "range"):
            if getattr(args, name) is not None:
                raise ValueError(
                    f"--{name} is not allowed with --data, which names a column and knows its range: it is for --csv"
                )
        data, _, column = args.data.partition(":")
        values, bounds = load_column(data, column)
    elif not args.column or not args.range:
        raise ValueError("--csv needs --column and --range")
    else:
        values, bounds = _read(args.csv, args.column), tuple(args.range)
    name = args.data or args.column
    return options.call(evaluate, args, values=values, bounds=bounds, name=name)


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


def _run(args: argparse.Namespace) -> int:
    from optdp.exact.sampling import as_rng

    if args.seed is not None and args.seed < 0:
        raise ValueError(f"--seed {args.seed} is not allowed: it must be at least 0")
    if args.plan is not None:
        for name in (*NEEDED, *ALONE):
            if getattr(args, name) not in (None, False, ","):
                given = name.replace("_", "-")
                raise ValueError(f"--{given} is not allowed with --plan: it is for one column of a CSV file")
        return survey.randomize(args)
    for name in NEEDED:
        if getattr(args, name) is None:
            raise ValueError(f"--{name} is missing (or --plan, for a whole table)")
    table.separator(args.delimiter)
    if args.save_mechanism is not None and files.same(args.input, args.save_mechanism):
        raise ValueError("--save-mechanism is not allowed to name the input")
    if Path(args.input).is_file():  # what is wrong with the header is said before the mechanism is computed
        with table.reading(args.input, args.delimiter, multiline=args.multiline) as rows:
            _columns(rows, rows.column(args.column), args.keep or (), args.only)
    found = _mechanism(args)
    mechanism = found.mechanism if isinstance(found, optdp.Recommendation) else found
    with files.together():
        if args.save_mechanism:
            files.write_text(args.save_mechanism, json.dumps(mechanism.to_dict(), indent=2) + "\n")
        count = options.call(
            randomize_csv, args, source=args.input, target=args.output, mechanism=mechanism, rng=as_rng(args.seed),
            progress=sys.stderr.isatty(),
        )  # fmt: skip
    told = f"{count} values of {args.column!r} made private: {mechanism!r}"
    if isinstance(found, optdp.Recommendation) and found.goal != "answers" and count:
        # How many there are is seen in the output.
        from optdp.statistics.recommend import unit_error

        asked = "1 person" if count == 1 else f"{count} people"
        error = unit_error(mechanism, found.goal, mechanism.domain, n=count) / math.sqrt(count)
        told += f"; {found.statement.replace(f'{found.n} people', asked)}: {error:.4g}"
    print(told, file=sys.stderr)
    return 0


def _mechanism(args: argparse.Namespace) -> Mechanism | Recommendation:
    """The recommended mechanism for the goal, or the one that is named, if its samples are private as they are sent."""
    given = [name for name in ("mechanism", "placement", "loss") if getattr(args, name) is not None]
    if args.goal is not None or not given:
        if given:
            raise ValueError(f"--{given[0]} is not allowed with --goal, for which the mechanism is computed")
        return _recommended(args)
    loss = "abs" if args.loss is None else args.loss
    problem = optdp.Problem(optdp.LDP(args.eps), (args.lower, args.upper), loss, optdp.Piecewise(3))
    found: Mechanism
    name = args.mechanism or "optimal"
    if args.placement is not None and name != "optimal":
        raise ValueError("--placement is not allowed here: it is for --mechanism optimal")
    if args.loss is not None and name not in ("optimal", "kernel"):
        raise ValueError(f"--loss is not allowed with --mechanism {name!r}: it is for optimal and kernel")
    area: Any = {"domain": problem.domain}
    if name in ("kernel", "unbiased kernel"):
        unbiased = name == "unbiased kernel"
        found = optdp.solve_kernel(args.eps, None if unbiased else loss, unbiased=unbiased, **area).mechanism
        return found
    if name == "optimal":
        found = optdp.solve_piecewise(args.eps, 3, loss, placement=args.placement or "centred", **area).mechanism
        return found
    made = baselines.baselines("interval", "ldp")
    known = made[name].make(problem) if name in made else None
    if known is None:
        raise ValueError(
            f"mechanism = {name!r} is not allowed: it must be optimal, kernel, unbiased kernel or one of {', '.join(made)}"
        )
    if not known.satisfies(problem.privacy):
        raise ValueError(
            f"mechanism = {name!r} is not allowed: what it sends is not proven to be private: {known.guarantee()}"
        )
    return known


def _recommended(args: argparse.Namespace) -> Recommendation:
    """What `optdp recommend` says; which is its first and why on stderr."""
    goal = args.goal or "mean"
    found = optdp.recommend((args.lower, args.upper), args.eps, goal, progress=sys.stderr.isatty() or None)
    best, second = found.best, next((row for row in found.rows if row.exact and row is not found.best), None)
    bound = ""
    if found.bound is not None:
        whose = "any mechanism" if goal == "answers" else "any mechanism's unbiased estimate"
        bound = f", {best.error / found.bound:.3f} times the least that {whose} can have"
    other = "" if second is None else f"; next {second.name}, {second.error:.4g}"
    low, high = (float(end) for end in best.mechanism.support())
    print(
        f"Mechanism: {best.name}, recommended for the goal {goal!r}: {found.statement}: {best.error:.4g}{bound}{other}. It sends "
        f"numbers from {low:.6g} to {high:.6g}. Others: --goal, or --mechanism, --loss and --placement.",
        file=sys.stderr,
    )  # fmt: skip
    return found


def randomize_csv(
    source: str | Path, target: str | Path, mechanism: Mechanism, column: str,
    *, keep: Sequence[str] = (), only: bool = False, clip: bool = False, delimiter: str = ",", multiline: bool = False,
    in_place: bool = False, rng: Seed = None, progress: bool = False,
) -> int:  # fmt: skip
    """Copy a CSV file with one column randomised. **Returns** the number of rows.

    **Arguments:** `source`, `target`: paths, or "-" for the standard streams; `keep`: columns that are copied in clear; `only`:
    the other columns are left out (else there must be none); `multiline`: fields may hold line breaks; `in_place`: the target
    may be the source. What a row and a number are: `optdp.exact.table`.

    **Raises** ValueError naming the row (1 is the first after the header) for a value that is missing, not a number, or
    outside the domain unless `clip`; for a header without the column or with columns that nobody named. Then nothing is written.
    """
    from tqdm import tqdm

    delimiter = table.separator(delimiter)
    if files.same(source, target) and not in_place:
        raise ValueError("output is not allowed to be the input, which would be lost: give another name, or --in-place")
    hint = " (--multiline allows line breaks)"
    reading = table.reading(source, delimiter, multiline=multiline, hint=hint)
    with reading as found, files.replacing(target, newline="") as sink:
        place = found.column(column)
        places = _columns(found, place, keep, only)
        sink.write(table.written([found.header[p] for p in places], delimiter))
        done, seen = 0, 0
        with tqdm(total=table.size(source), unit="B", unit_scale=True, disable=not progress, leave=False) as bar:
            for chunk in _chunks(found):
                values = _values(chunk, place, done, mechanism, column, clip)
                private = mechanism.randomize(values, rng).tolist()
                for row, number in zip(chunk, private, strict=True):
                    row[place] = repr(number)
                    sink.write(table.written([row[p] for p in places], delimiter))
                done += len(chunk)
                bar.update(found.read - seen)
                seen = found.read
    return done


def _columns(found: table.Table, place: int, keep: Sequence[str], only: bool) -> list[int]:
    """The places of the columns to write: the private one and those to keep; every other must be named or left out."""
    kept = set()
    for text in keep:
        names = [text] if text in found.header else [name.strip() for name in text.split(",")]
        kept |= {found.column(name, "--keep") for name in names}
    if place in kept:
        raise ValueError("--keep is not allowed to name the column that is made private")
    rest = [p + 1 for p in range(len(found.header)) if p != place and p not in kept]
    if rest and not only:  # by number: without a header, names are private values
        shown = ", ".join(map(str, rest[:9])) + (", ..." if len(rest) > 9 else "")
        raise ValueError(
            f"{found.name} has other columns (number {shown} of {len(found.header)}), which are copied only where they are "
            "named: --keep NAME copies one in clear, --only leaves them out"
        )
    return sorted(kept | {place})


def _chunks(found: table.Table) -> Iterator[list[list[str]]]:
    """Rows in parts that fit any memory."""
    chunk: list[list[str]] = []
    start = found.read
    for row in found.rows():
        chunk.append(row)
        if len(chunk) == CHUNK or found.read - start > BYTES:
            yield chunk
            chunk, start = [], found.read
    if chunk:
        yield chunk


def _values(chunk: list[list[str]], place: int, done: int, mechanism: Mechanism, column: str, clip: bool) -> np.ndarray:
    values = np.empty(len(chunk))
    low, high = mechanism.domain.lower, mechanism.domain.upper
    allowed = f"every row must have a number in {mechanism.domain}"
    for k, row in enumerate(chunk):  # messages name the row, never a value: it is private
        number = table.real(row[place])
        if number is None:
            what = "is missing" if row[place].strip().lower() in ("", "nan", "na", "null") else "is not a number"
            raise ValueError(f"row {done + k + 1}: {column} {what}; {allowed}, such as 12, -0.5 or 6.02e23")
        if not clip and not low <= number <= high:
            raise ValueError(f"row {done + k + 1}: {column} is out of range; {allowed}: widen it, or use --clip")
        values[k] = number
    return np.clip(values, low, high)

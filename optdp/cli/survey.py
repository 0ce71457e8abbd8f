"""`optdp plan`, `client`, `collect`, `estimate`, `recommend`: a table from its schema to answers with error bars."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optdp
from optdp import files
from optdp.cli import options
from optdp.cli.options import option

if TYPE_CHECKING:
    from optdp.cli import Commands
    from optdp.statistics.result import Estimate

GOALS = ("mean", "quantile", "distribution", "frequencies", "answers")
#: Those of numbers.
NUMBERS = tuple(goal for goal in GOALS if goal != "frequencies")
#: Columns on the command line: kind -> form.
KINDS = {"number": "NAME:LOWER:UPPER[:UNIT]", "integer": "NAME:LOWER:UPPER[:UNIT]", "date": "NAME:FIRST:LAST",
         "category": "NAME:VALUE,VALUE,...", "flag": "NAME"}  # fmt: skip
#: What else is said of columns by name: option -> (field of the column, its value, help, which columns have it).
CHANGES = {
    "clip": ("outside", "clip", "a number or date: entries out of range are moved to its nearest end, instead of being refused",
             "numbers and dates"),
    "missing": ("missing", "category",
                "a category or flag: missing entries have a category of their own, instead of being refused",
                "categories and flags"),
    "other": ("other", "category", "the same for entries that are none of the values", "categories and flags"),
}  # fmt: skip


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    _plan(commands)
    _client(commands)
    _collect(commands)
    _estimate(commands)
    parser = commands.top.add_parser(
        "recommend", help="mechanisms ranked by the error of the estimate", description="Ranks the certified optima and the "
        "published mechanisms by the error that the estimate will have for a goal; see `optdp.recommend`.",
    )  # fmt: skip
    parser.add_argument(
        "--eps", type=options.parse_number, help="privacy parameter; left out: one that gives --error with --n"
    )
    option(parser, "--goal", None, "what is wanted (default mean; frequencies of --categories)", choices=GOALS)
    option(parser, "--lower", None, "lower end of the numbers (default 0)", type=options.parse_float)
    option(parser, "--upper", None, "upper end of the numbers (default 1)", type=options.parse_float)
    option(
        parser, "--categories", None, "the number of categories instead, for frequencies", type=options.parse_integer
    )
    option(parser, "--n", None, "the number of people", type=options.parse_integer)
    option(parser, "--error", None, "the wanted error", type=options.parse_float)
    option(parser, "--prior", None, "uniform: averages instead of the worst case", choices=("uniform",))
    parser.set_defaults(run=_recommend)


def _recommend(args: argparse.Namespace) -> int:
    ends = [end for end in ("lower", "upper") if getattr(args, end) is not None]
    if ends and args.categories is not None:
        raise ValueError(f"--{ends[0]} is not allowed with --categories: it is for numbers")
    numbers = (0.0 if args.lower is None else args.lower, 1.0 if args.upper is None else args.upper)
    domain: Any = numbers if args.categories is None else optdp.OneHot(args.categories)
    goal = args.goal or ("mean" if args.categories is None else "frequencies")
    print(optdp.recommend(domain, args.eps, goal, n=args.n, error=args.error, prior=args.prior, progress=True))
    return 0


def _plan(commands: Commands) -> None:
    parser = commands.top.add_parser(
        "plan",
        help="how to make a table of several columns private",
        description="Chooses mechanisms and shares of one epsilon for the columns of a table by the computed errors of the "
        "estimates. The plan is written as JSON for `optdp randomize --plan` and `optdp estimate --plan`.",
    )
    options.add_eps(parser, required=False)
    text = "in place of --eps, with --n: the wanted error of all columns in their units, or NAME:ERROR of one; may be repeated"
    option(parser, "--error", [], text, type=str, action="append", metavar="[NAME:]ERROR")
    text = (
        'JSON: {"age": {"type": "number", "lower": 0, "upper": 120, "outside": "clip"}, ...} with the arguments of optdp.Number; '
        'other types are integer, date, category ("values", "missing", "other") and flag; what is left out is as in Python'
    )
    option(parser, "--schema", None, text, metavar="FILE")
    for kind, form in KINDS.items():
        text = f"{'an' if kind == 'integer' else 'a'} {kind} column; may be repeated"
        more: dict[str, Any] = {"action": "append", "metavar": form, "dest": "columns"}  # which keep their order
        option(parser, f"--{kind}", [], text, type=lambda given, kind=kind: (kind, given), **more)
    for name, (_, _, text, _) in CHANGES.items():
        option(
            parser,
            f"--{name}",
            [],
            f"{text}; or several: x,y; may be repeated",
            type=str,
            action="append",
            metavar="NAME",
        )
    text = f"what is wanted of numbers: {', '.join(NUMBERS)} (default mean); of one column NAME:GOAL, may be repeated"
    option(parser, "--goal", [], text, type=str, action="append", metavar="[NAME:]GOAL")
    option(parser, "--n", None, "the number of people, for the predicted errors", type=options.parse_integer)
    text = "split the budget, sample the columns, or answer categories together"
    option(parser, "--strategy", "auto", text, choices=("auto", "split", "sample", "joint"))
    text = "a column that matters more; may be repeated"
    option(parser, "--weight", [], text, type=str, action="append", metavar="NAME:W")
    text = "who is asked again: refused, or answered the same for the same entry"
    option(parser, "--repeat", "once", text, choices=("once", "memoised"))
    parser.add_argument("--out", required=True, metavar="FILE", help="where the plan is written")
    parser.set_defaults(run=_make_plan)


def _make_plan(args: argparse.Namespace) -> int:
    from optdp.exact.fields import Fields, load
    from optdp.statistics.schema import Column

    _others(args.out, args.schema)
    schema: dict[str, Any] = {}
    if args.schema:

        def columns(fields: Fields) -> dict[str, Any]:
            return {name: Column.read(Fields(entry, f"{args.schema}.{name}")) for name, entry in fields.data.items()}

        schema = load(args.schema, columns)
    number, whole = options.parse_float, options.parse_end
    made: dict[str, Callable[..., Any]] = {
        "number": lambda lower, upper, unit="": optdp.Number(number(lower), number(upper), unit),
        "integer": lambda lower, upper, unit="": optdp.Integer(whole(lower), whole(upper), unit),
        "date": optdp.Date, "category": lambda values: optdp.Category([v.strip() for v in values.split(",")]), "flag": optdp.Flag,
    }  # fmt: skip
    for kind, text in args.columns:
        name, *parts = text.split(":", 1 if kind == "category" else -1)  # in whose values it may be
        if name in schema:
            raise ValueError(f"--{kind} {text!r} is not allowed: there is a column {name!r} already")
        try:
            schema[name] = made[kind](*parts)
        except TypeError:
            raise ValueError(f"--{kind} {text!r} is not allowed: see `optdp plan --help` for its form") from None
        except ValueError as error:
            raise ValueError(f"--{kind} {text!r} is not allowed: {error}") from None
    if not schema:
        raise ValueError(
            "columns are missing: --number, --integer, --date, --category, --flag or --schema says what there is"
        )
    for asked, (field, value, _, whose) in CHANGES.items():
        for name in (n for text in getattr(args, asked) for n in ([text] if text in schema else text.split(","))):
            if name not in schema:
                raise ValueError(f"--{asked} {name!r} is not allowed: there is no such column")
            if not hasattr(schema[name], field):
                raise ValueError(f"--{asked} {name!r} is not allowed: it is for {whose}")
            schema[name] = dataclasses.replace(schema[name], **{field: value})
    errors = _by_name("error", args.error)
    everywhere = errors.pop("", None)
    wanted = errors if everywhere is None else dict.fromkeys(schema, everywhere) | errors
    given = {"weights": _by_name("weight", args.weight) or None, "error": wanted or None}
    plan = options.call(optdp.plan, args, schema=schema, goal=_goals(args.goal, schema), progress=True, **given)
    plan.save(args.out)
    print(plan.summary(), file=options.beside(args.out))
    return 0


def _by_name(option: str, given: list[str]) -> dict[str, float]:
    """Numbers from texts NAME:NUMBER."""
    found: dict[str, float] = {}
    for text in given:
        name, _, number = text.rpartition(":")
        if name in found:
            raise ValueError(
                f"--{option} {text!r} is not allowed: there is one {f'of {name!r}' if name else 'of all'} already"
            )
        try:
            found[name] = options.parse_float(number)
        except ValueError as why:
            raise ValueError(f"--{option} {text!r} is not allowed: {why}") from None
    return found


def _goals(given: list[str], schema: dict[str, Any]) -> dict[str, str]:
    """The goal of each number, from texts GOAL or NAME:GOAL."""
    found: dict[str, str] = {}
    for text in given:
        name, _, goal = text.rpartition(":")
        if goal not in NUMBERS:
            raise ValueError(
                f"--goal {text!r} is not allowed: it must be one of {', '.join(NUMBERS)}, or NAME: and one of them"
            )
        if name in found:
            raise ValueError(
                f"--goal {text!r} is not allowed: there is a goal {f'of {name!r}' if name else 'of all'} already"
            )
        found[name] = goal
    everywhere = found.pop("", "mean")
    return {name: everywhere for name, column in schema.items() if not isinstance(column, optdp.Category)} | found


def randomize(args: argparse.Namespace) -> int:
    """`optdp randomize --plan`: all columns of a CSV or Parquet file."""
    plan = optdp.Plan.load(args.plan)
    rows = plan.randomize(args.input, args.seed, target=args.output, progress=sys.stderr.isatty())
    print(f"{rows} rows made private: {plan!r}", file=sys.stderr)
    return 0


def _others(output: str | None, *inputs: str | None) -> None:
    """**Raises** ValueError for an output that is an input: private answers, or the plan that they need, would be lost."""
    for name in inputs:
        if output is not None and name is not None and files.same(name, output):
            raise ValueError(f"{output} is not allowed: it is an input, which would be lost")


def _client(commands: Commands) -> None:
    parser = commands.top.add_parser(
        "client",
        help="a plan as one file that randomises where the answers are given",
        description="Writes one file without dependencies that makes records private as the plan says: a JavaScript module for "
        "browsers and Node, or Python with its standard library. With --vectors: lines of JSON with records, random words and "
        "what must be drawn from them, to test a client of one's own.",
    )
    parser.add_argument("--plan", required=True, metavar="FILE", help="what `optdp plan` wrote")
    option(parser, "--language", "js", "of the client", choices=("js", "python"))
    option(parser, "--vectors", None, "test vectors for these records (a CSV file) instead", metavar="FILE")
    parser.add_argument("--out", required=True, metavar="FILE", help="the file to write")
    parser.set_defaults(run=_write_client)


def _write_client(args: argparse.Namespace) -> int:
    from optdp.statistics import client, tables

    _others(args.out, args.plan, args.vectors)
    plan = optdp.Plan.load(args.plan)
    if args.vectors is not None:
        columns = tables.read_file(args.vectors)
        records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        lines = [json.dumps(vector) for vector in client.vectors(plan, records)]
        files.write_text(args.out, "\n".join(lines) + "\n")
        print(f"{args.out}: {len(lines)} test vectors of plan {plan.digest[:16]}", file=sys.stderr)
        return 0
    text = client.source(plan, args.language)
    files.write_text(args.out, text)
    print(
        f"{args.out}: {len(text.encode()) / 1000:.1f} kB, plan {plan.digest[:16]}, {plan.repeat}\n{plan.statement()}",
        file=sys.stderr,
    )
    return 0


def _collect(commands: Commands) -> None:
    parser = commands.top.add_parser(
        "collect",
        help="gather the private records that clients sent",
        description="Reads private records from many files, refuses and counts those that the plan cannot have made, and writes "
        "the others to a folder for `optdp estimate --plan`. Called again, it reads only what is new.",
    )
    parser.add_argument("--plan", required=True, metavar="FILE", help="the plan of the clients")
    parser.add_argument("--out", required=True, metavar="FOLDER", help="where the records are gathered")
    option(parser, "--parts", "csv", "what they are written as", choices=("csv", "parquet"))
    options.add_workers(parser)
    parser.add_argument("input", nargs="+", help="files of JSON lines (.jsonl), .csv or .parquet")
    parser.set_defaults(run=_gather)


def _gather(args: argparse.Namespace) -> int:
    plan = optdp.Plan.load(args.plan)
    with options.workers(args) as pool:
        print(optdp.collect(plan, args.input, args.out, parts=args.parts, executor=pool))
    return 0


def _estimate(commands: Commands) -> None:
    parser = commands.top.add_parser(
        "estimate",
        help="what a private table says, with error bars",
        description="Estimates from the columns of a private file, with confidence intervals: all that a plan is for, or one "
        "column with a saved mechanism. What the outputs do not determine is refused with the reason.",
    )
    option(parser, "--plan", None, "the plan with which the file was made private", metavar="FILE")
    option(
        parser, "--mechanism", None, "or the mechanism that `optdp randomize --save-mechanism` wrote", metavar="FILE"
    )
    option(parser, "--column", None, "the column, with --mechanism; a column of the plan for --what")
    option(parser, "--what", None, "mean, quantile, cdf, histogram, frequencies")
    option(parser, "--q", None, "the level of the quantile", type=options.parse_float)
    option(parser, "--bins", None, "the number of bins", type=options.parse_integer)
    option(
        parser, "--whole", False, "all inputs are integers, and bins hold these (of Integer and Date a plan knows it)"
    )
    option(parser, "--level", 0.95, "of the intervals")
    option(parser, "--pair", None, "the table of two categories of a plan", nargs=2, metavar=("A", "B"))
    option(parser, "--multiline", False, "with --mechanism: allow line breaks in quoted fields")
    option(parser, "--json", False, "print JSON; numbers that are not finite are null")
    option(parser, "--html", None, "write a page with figures", metavar="FILE")
    parser.add_argument("input", help="the private file, .csv or .parquet, or the folder of `optdp collect`")
    parser.set_defaults(run=_answer)


def _answer(args: argparse.Namespace) -> int:
    from optdp.statistics.answers import told

    _others(args.html, args.input, args.plan, args.mechanism)
    found, refused, title = _answers(args)
    if not found:
        raise ValueError("; ".join(refused.values()))
    if args.html:
        files.write_text(args.html, _page(found, refused, title, args.input))
    if args.json:
        answers = {name: answer.to_dict() for name, answer in found.items()}
        whole = _finite(answers | {name: {"refused": why} for name, why in refused.items()})
        lines = [json.dumps(whole, indent=2, default=str)]
    else:
        lines = [told(found, refused, title)]
    print("\n".join(lines), file=options.beside(args.html))
    return 0


def _finite(data: Any) -> Any:
    """What JSON can hold: null for numbers that are not finite, such as the standard error of a single output."""
    if isinstance(data, dict):
        return {name: _finite(value) for name, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return None if isinstance(data, float) and not math.isfinite(data) else data


def _answers(args: argparse.Namespace) -> tuple[dict[str, Estimate], dict[str, str], Callable[[str], str]]:
    """(estimates by column, why there is none of others, how a column is called in words)."""
    from optdp.statistics import tables

    extra = {name: getattr(args, name) for name in ("q", "bins") if getattr(args, name) is not None}
    extra |= {"whole": True} if args.whole else {}
    if (args.plan is None) == (args.mechanism is None):
        raise ValueError("--plan or --mechanism is needed, and only one of them is allowed")
    if args.pair and (args.mechanism or args.column or args.what or extra):
        raise ValueError(
            "--pair is not allowed with --mechanism, --column, --what, --q, --bins or --whole: it is about a plan alone"
        )
    if args.multiline and args.mechanism is None:
        raise ValueError("--multiline is not allowed with --plan, whose private tables have no line breaks")
    if args.what == "quantile" and args.q is None:
        raise ValueError("--q is missing: which quantile? It must be a level in (0, 1), of the median 0.5")
    if args.mechanism is not None:
        if args.column is None:
            raise ValueError("--column is missing: which column did the mechanism make private?")
        mechanism = optdp.Mechanism.load(args.mechanism)
        table = tables.read_file(args.input, multiline=args.multiline)
        if args.column not in table:
            raise ValueError(f"column = {args.column!r} is not allowed: {Path(args.input).name} has no such column")
        values = _outputs(mechanism, table[args.column], args.column)
        what = args.what or "mean"
        return {args.column: optdp.estimate(mechanism, values, what, level=args.level, **extra)}, {}, str
    answers = optdp.Plan.load(args.plan).estimate(args.input, level=args.level)
    if args.pair:
        return {" x ".join(args.pair): answers.pair(*args.pair)}, {}, str
    if args.column is None and args.what:
        raise ValueError("--column is missing: --what is about one column")
    if extra and not args.what:
        raise ValueError(f"--{next(iter(extra))} is not allowed without --what")
    if args.column is None:
        return *answers.every(), answers.title
    if args.column not in answers.plan.names:
        raise ValueError(f"column = {args.column!r} is not allowed: the plan is for {', '.join(map(repr, answers))}")
    found = answers.about(args.column, args.what, **extra) if args.what else answers[args.column]
    return {args.column: found}, {}, answers.title


def _outputs(mechanism: optdp.Mechanism, values: Any, name: str) -> Any:
    """A column of a file as outputs: numbers, or symbols, by how they are written or as the number that they are."""
    import numpy as np

    from optdp.statistics import portable, tables

    symbols = isinstance(mechanism.domain, optdp.Alphabet)
    if not symbols and values.dtype != object:
        return values
    form: dict[str, Any] = {"type": "number", "lower": -math.inf, "upper": math.inf, "clip": False, "whole": False}
    sent: list[Any] = mechanism.atoms().tolist() if symbols else []
    if symbols:
        if len(set(map(str, sent))) < len(sent):
            told = "the mechanism has two outputs that are written alike, which a file does not tell apart"
            raise ValueError(f"column = {name!r} is not allowed: {told}")
        form = {"type": "category", "flag": False, "values": sent, "texts": [], "missing": None, "other": None}
    read, found = portable.reader(form), np.empty(len(values), dtype=object)
    for row, value in enumerate(values.tolist()):
        try:
            found[row] = sent[read(value)] if symbols else read(value)
        except portable.Refused as why:
            told = str(why).replace("values of the plan", "mechanism's outputs")
            raise tables.Refused(name, row + 1, told) from None
    return found if symbols else found.astype(float)


def _page(found: dict[str, Estimate], refused: dict[str, str], title: Callable[[str], str], source: str) -> str:
    """A self-contained page: a figure with error bars and a table for each answer."""
    from html import escape

    from optdp.report.plots import figure_of, svg
    from optdp.report.report import html_page

    parts = [f"<h1>{escape(source)}</h1>"]
    for name, answer in found.items():
        frame, picture = answer.to_frame(), svg(figure_of(answer.plot()))
        parts.append(
            f"<h2>{escape(title(name))}</h2>{picture}{frame.to_html(border=0)}"
            f"<p>{escape(answer.method)}. Assumes: {escape(answer.assumptions)}. n = {answer.n}.</p>"
        )
    parts += [f"<h2>{escape(title(name))}</h2><p>No estimate: {escape(why)}.</p>" for name, why in refused.items()]
    return html_page(source, "\n".join(parts))

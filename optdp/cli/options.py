"""Options that commands share, how a command calls the function behind it, and what it does with a solution or a report."""

from __future__ import annotations

import argparse
import importlib
import inspect
import io
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeVar

import optdp
from optdp import files
from optdp.exact import table

if TYPE_CHECKING:
    from optdp.cli import Commands, Subparsers
    from optdp.exact.numbers import Number
    from optdp.problem.losses import LossLike
    from optdp.problem.objectives import Objective
    from optdp.report.report import Report
    from optdp.solution import Program, Solution

Result = TypeVar("Result")
Options = argparse.ArgumentParser | argparse._ArgumentGroup


class Once(argparse.Action):
    """An option that may be given once: of two, the first would be forgotten without a word."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        given = namespace.__dict__.setdefault("_given", set())
        if self.dest in given:
            raise argparse.ArgumentError(self, "it is given twice, which is not allowed")
        given.add(self.dest)
        setattr(namespace, self.dest, values)


_SPACES = "; several are separated by spaces, and decimals begin with a point"


def parse_number(text: str) -> Number:
    """An exact number: "0.5" and "1e-6" are floats, "1/2" is a rational, "log(3)" the logarithm of one."""
    from optdp.exact.numbers import number

    try:
        return number(text, "number") if "/" in text or text.startswith("log") else parse_float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number: use 0.5, 1/2 or log(3){_SPACES * (',' in text)}"
        ) from None


def parse_float(text: str) -> float:
    """A float in the grammar of `optdp.exact.table`; "nan" and "inf" too, which are then refused by their argument."""
    found = float(text) if text.lower().lstrip("+-") in ("nan", "inf", "infinity") else table.real(text)
    if found is None:
        raise NotANumber(f"{text[:60]!r} is not a number: use 0.5 or 1e-6{_SPACES * (',' in text)}")
    return found


def parse_integer(text: str) -> int:
    """An integer: a sign and the digits 0 to 9."""
    if re.fullmatch(r"[+-]?[0-9]{1,1000}", text) is None:
        raise NotANumber(f"{text[:60]!r} is not an integer: use 12")
    return int(text)


def parse_end(text: str) -> float | int:
    """An end of a range of integers: one beyond 2^53 with all of its digits, so that those that floats have not are refused."""
    return int(text) if re.fullmatch(r"[+-]?[0-9]{1,300}", text) else parse_float(text)


class NotANumber(ValueError, argparse.ArgumentTypeError):
    """A text on the command line that is no number."""


def parse_loss(text: str) -> LossLike:
    """ "abs", "squared" (or "l1", "l2"), "power:Q", "huber:C", "threshold:T" or "pinball:TAU"."""
    from optdp.problem import losses

    made = {"power": losses.Power, "huber": losses.Huber, "threshold": losses.Threshold, "pinball": losses.Pinball}
    found: LossLike | None = _parameter(text, made)
    if found is None and text not in ("abs", "squared", "l1", "l2"):
        known = "abs, squared, power:Q, huber:C, threshold:T or pinball:TAU"
        raise argparse.ArgumentTypeError(f"{text!r} is not a loss: use {known}")
    return text if found is None else found


def parse_error(text: str) -> LossLike | Objective:
    """A loss, or "quantile:LEVEL"."""
    from optdp.problem.objectives import Quantile

    found: Objective | None = _parameter(text, {"quantile": Quantile})
    return parse_loss(text) if found is None else found


def _parameter(text: str, made: Mapping[str, Callable[[float], Any]]) -> Any:
    """What KIND:NUMBER makes; None for a text of another form."""
    kind, colon, number = text.partition(":")
    if not colon or kind not in made:
        return None
    try:
        return made[kind](parse_float(number))
    except (ValueError, TypeError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def option(parser: Options, name: str, default: object, text: str, **more: Any) -> None:
    """An option of the type of its default, which its help tells (False or True: a flag that says the opposite, as `dest`)."""
    if isinstance(default, bool):
        parser.add_argument(name, action="store_false" if default else "store_true", help=text, **more)
        return
    written = " ".join(map(str, default)) if isinstance(default, list | tuple) else default
    shown = "" if default is None or written == "" else f" (default {written})"
    kind = str if default is None else type(default)
    more.setdefault("type", {float: parse_float, int: parse_integer}.get(kind, kind))
    parser.add_argument(name, default=default, help=text + shown, **more)


def add_loss(parser: Options, text: str = "abs, squared, power:Q, huber:C, threshold:T") -> None:
    """`--loss`; `text` names those that the command can take."""
    option(parser, "--loss", "abs", text, type=parse_loss)


def add_eps(parser: Options, *default: float, required: bool = True) -> None:
    """`--eps`: one epsilon, not to be repeated, or (with defaults) several."""
    if default:
        option(parser, "--eps", list(default), "epsilons", type=parse_number, nargs="+")
    else:
        text = "privacy parameter, at most 30: 0.5, or exactly 1/2 or log(3)"
        parser.add_argument("--eps", type=parse_number, required=required, help=text, action=Once)


def add_time_limit(parser: Options, text: str = "seconds", default: float = 60.0) -> None:
    """`--time-limit`."""
    option(parser, "--time-limit", default, text)


def add_workers(parser: Options, jobs: int = 1) -> None:
    """`--jobs` and `--dask`, which `workers` reads."""
    option(parser, "--jobs", jobs, "processes")
    option(parser, "--dask", None, "the address of a dask scheduler instead", metavar="ADDRESS")


@contextmanager
def workers(args: argparse.Namespace) -> Iterator[Executor | None]:
    """The executor that `--jobs` and `--dask` ask for; None: this process."""
    if args.dask is not None:
        try:
            from distributed import Client
        except ImportError:
            raise RuntimeError("--dask needs the package distributed: pip install 'optdp[dask]'") from None
        with Client(args.dask) as client:
            yield client.get_executor()
    elif args.jobs < 1:
        raise ValueError(f"jobs = {args.jobs} is not allowed: it must be at least 1")
    elif args.jobs > 1:
        with ProcessPoolExecutor(args.jobs) as pool:
            yield pool
    else:
        yield None


def add_domain(parser: Options, *, circle: bool = True) -> None:
    """`--domain A B` and `--circle PERIOD`."""
    group = parser.add_mutually_exclusive_group()
    option(group, "--domain", (0.0, 1.0), "interval", type=parse_float, nargs=2, metavar=("A", "B"))
    if circle:
        option(group, "--circle", None, "a circle of this period instead", type=parse_float, metavar="PERIOD")


def call(function: Callable[..., Result], args: argparse.Namespace, **given: object) -> Result:
    """`function` with the options that are called like its parameters; `given` stands in place of options.

    Options without a value are left to the function's own defaults.
    """
    options = {name: tuple(value) if isinstance(value, list) else value for name, value in vars(args).items()}
    if "domain" in options:
        ends = args.domain or (0.0, 1.0)
        options["domain"] = optdp.Circle(args.circle) if options.get("circle") is not None else tuple(ends)
    options = {name: value for name, value in {**options, **given}.items() if value is not None}
    return function(**{name: options[name] for name in inspect.signature(function).parameters if name in options})


def solve_command(commands: Commands, problem: str, text: str, *, eps: bool = True) -> argparse.ArgumentParser:
    """`optdp solve PROBLEM`, which calls `optdp.solve_<problem>`, with the options that all of these commands have.

    **Arguments:** `eps`: whether `--eps` must be given.
    """
    parser = commands.solve.add_parser(problem, help=text)
    add_eps(parser, required=eps)
    group = parser.add_argument_group("output")
    option(group, "--json", False, "print the solution as JSON")
    option(group, "--out", None, "save the solution as JSON (read it with `optdp verify`)", metavar="FILE")
    option(group, "--plot", None, "draw the mechanism (.png, .svg or .pdf)", metavar="FILE")
    option(group, "--model", False, "also print the mathematical program that was solved")
    option(group, "--write", None, "write that program: .mps or .lp if it is linear, else .nl", metavar="FILE")
    parser.set_defaults(run=lambda args: show_solution(solve(args), args))
    return parser


def solve(args: argparse.Namespace, **given: object) -> Solution:
    """The solution that the options of a `solve_command` ask for; figures that cannot be written are refused before it."""
    for name in ("plot", "errors", "structure"):
        if getattr(args, name, None):
            from optdp.report.plots import can_save

            can_save(getattr(args, name))
    solution: Solution = call(getattr(optdp, f"solve_{args.problem}"), args, progress=True, **given)
    return solution


def beside(output: str | None) -> TextIO:
    """Where a command says what it did: not where its output goes, which another program reads (`--out - | optdp verify -`)."""
    return sys.stderr if output in ("-", "/dev/stdout") else sys.stdout


def show_solution(solution: Solution, args: argparse.Namespace, more: Callable[[], None] | None = None) -> int:
    """Print, save and plot a solution with its verification; `more` writes further files. **Returns** the exit status: 1 if a
    check fails.
    """
    verification = solution.verify()
    with files.together():  # before anything is printed: whoever reads the output may stop reading
        if args.out:
            solution.save(args.out)
        if args.write:
            solution.program.write(args.write)
        if args.plot:
            from optdp.report.plots import figure_of, save_figure

            save_figure(figure_of(solution.plot()), args.plot)
        if more is not None:
            more()
    told = beside(args.out)
    if args.json:
        computed = {"statement": solution.problem.statement(), "gap": solution.gap, "status": solution.status.name}
        print(json.dumps({**solution.to_dict(), **computed, "verified": verification.passed}, indent=2), file=told)
    else:
        print(solution, file=told)
        if solution.closed_form is not None:
            print(f"  closed form: {solution.closed_form}", file=told)
        print(verification, file=told)
    if args.model:
        print(_text_of(solution.program), file=sys.stderr if args.json else told)
    return 0 if verification else 1


def _text_of(program: Program) -> str:
    """The model as people read it: Pyomo's listing, the LP format of a linear program, or what cvxpy prints."""
    model = program.model
    if hasattr(model, "pprint"):
        stream = io.StringIO()
        model.pprint(stream)
        return stream.getvalue()
    if not hasattr(model, "write"):
        return str(model)
    with tempfile.TemporaryDirectory() as folder:
        program.write(Path(folder, "model.lp"))
        return Path(folder, "model.lp").read_text()


def report_command(
    where: Subparsers, name: str, text: str, build: Callable[[argparse.Namespace], Report] | None = None,
    description: str | None = None, *, figure: bool = True,
) -> argparse.ArgumentParser:  # fmt: skip
    """A command with `--json`, `--markdown`, `--html` and `--plot` that shows a report: by default that of the problem `name`.

    **Arguments:** `build`: what makes the report; `figure`: whether it can have one.
    """
    parser = where.add_parser(name, help=text, description=description)
    group = parser.add_argument_group("output")
    option(group, "--json", False, "print JSON")
    option(group, "--markdown", False, "print Markdown")
    option(group, "--html", None, "write a self-contained page", metavar="FILE")
    if figure:
        option(group, "--plot", None, "write the figure (.png, .svg or .pdf)", metavar="FILE")
    parser.set_defaults(run=lambda args: _report(build or _gap_report, args))
    return parser


def _report(build: Callable[[argparse.Namespace], Report], args: argparse.Namespace) -> int:
    """Make and show a report; files that cannot be written as asked are refused before it."""
    if getattr(args, "plot", None):
        from optdp.report.plots import can_save

        can_save(args.plot)
        if args.command == "report" and args.problem == "vector" and len(args.dim) > 1:
            raise ValueError("--plot is not allowed with several --dim: the figure is over epsilon, of one dimension")
    if args.html and Path(args.html).suffix.lower() != ".html":
        raise ValueError(f"--html {args.html} is not allowed: a page is written as .html")
    return show_report(build(args), args)


def _gap_report(args: argparse.Namespace) -> Report:
    return call(importlib.import_module(f"optdp.report.{args.problem}").gap_report, args)


def show_report(report: Report, args: argparse.Namespace) -> int:
    """Print and write a report as asked."""
    with files.together():
        for path in (args.html, getattr(args, "plot", None)):
            if path:
                report.save(path)
    print(report.to_json() if args.json else report.to_markdown() if args.markdown else report.to_text())
    return 0

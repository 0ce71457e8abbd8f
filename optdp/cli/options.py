"""Options that commands share, and what they do with a solution or a report."""

from __future__ import annotations

import argparse
import io
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optdp.exact.numbers import Number
    from optdp.report.report import Report
    from optdp.solution import Program, Solution


def parse_number(text: str) -> Number:
    """A number of the closed grammar: "0.5" and "1e-6" are floats, "1/2" is a rational, "log(3)" the logarithm of one."""
    from optdp.exact.numbers import number

    try:
        return number(text, "number") if "/" in text or text.startswith("log") else float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number: use 0.5, 1/2 or log(3)") from None


def parse_loss(text: str) -> Any:
    """ "abs", "squared" (or "l1", "l2"), "power:Q", "huber:C", "threshold:T" or "pinball:TAU"."""
    from optdp.problem import losses

    kind, colon, parameter = text.partition(":")
    made = {"power": losses.Power, "huber": losses.Huber, "threshold": losses.Threshold, "pinball": losses.Pinball}
    if colon and kind in made:
        try:
            return made[kind](float(parameter))
        except (ValueError, TypeError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    if text not in ("abs", "squared", "l1", "l2"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a loss: use abs, squared, power:Q, huber:C, threshold:T or pinball:TAU"
        )
    return text


def option(parser: Any, name: str, default: Any, text: str, **more: Any) -> None:
    """An option of the type of its default (True or False: a flag), which its help tells."""
    if default is False:
        parser.add_argument(name, action="store_true", help=text)
        return
    shown = "" if default is None else f" (default {' '.join(map(str, default)) if 'nargs' in more else default})"
    more.setdefault("type", str if default is None else type(default))
    parser.add_argument(name, default=default, help=text + shown, **more)


def add_loss(parser: Any) -> None:
    """`--loss`."""
    option(parser, "--loss", "abs", "abs, squared, power:Q, huber:C, threshold:T, pinball:TAU", type=parse_loss)


def add_eps(parser: Any, *default: float) -> None:
    """`--eps`: one epsilon, or (with defaults) several."""
    if default:
        option(parser, "--eps", list(default), "epsilons", type=parse_number, nargs="+")
    else:
        text = "privacy parameter, at most 30: 0.5, or exactly 1/2 or log(3)"
        parser.add_argument("--eps", type=parse_number, required=True, help=text)


def add_domain(parser: Any, *, circle: bool = True) -> None:
    """`--domain A B` and `--circle PERIOD`."""
    group = parser.add_mutually_exclusive_group()
    option(group, "--domain", (0.0, 1.0), "interval", type=float, nargs=2, metavar=("A", "B"))
    if circle:
        option(group, "--circle", None, "a circle of this period instead", type=float, metavar="PERIOD")


def domain_of(args: argparse.Namespace) -> Any:
    """The domain that `add_domain`'s options name."""
    from optdp.problem.domains import Circle

    period = getattr(args, "circle", None)
    return tuple(args.domain) if period is None else Circle(period)


def add_solution_output(parser: Any) -> None:
    """`--json`, `--out`, `--plot`, `--model`, `--write`."""
    option(parser, "--json", False, "print the solution as JSON")
    option(parser, "--out", None, "save the solution as JSON (read it with `optdp verify`)", metavar="FILE")
    option(parser, "--plot", None, "draw the mechanism (.png, .svg or .pdf)", metavar="FILE")
    option(parser, "--model", False, "also print the mathematical program that was solved")
    option(parser, "--write", None, "write that program: .mps or .lp if it is linear, else .nl", metavar="FILE")


def show_solution(solution: Solution, args: argparse.Namespace) -> int:
    """Print, save and plot a solution with its verification. **Returns** the exit status: 1 if a check fails."""
    verification = solution.verify()
    if args.json:
        computed = {"statement": solution.problem.statement(), "gap": solution.gap, "status": solution.status.name}
        print(json.dumps({**solution.to_dict(), **computed, "verified": verification.passed}, indent=2))
    else:
        print(solution)
        if solution.closed_form is not None:
            print(f"  closed form: {solution.closed_form}")
        print(verification)
    if args.model:
        print(_text_of(solution.program), file=sys.stderr if args.json else sys.stdout)
    if args.write:
        solution.program.write(args.write)
    if args.out:
        solution.save(args.out)
    if args.plot:
        from optdp.report.plots import save_figure

        save_figure(solution.plot().figure, args.plot)
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


def add_report_output(parser: Any) -> None:
    """`--json`, `--markdown`, `--html`, `--plot`."""
    option(parser, "--json", False, "print JSON")
    option(parser, "--markdown", False, "print Markdown")
    option(parser, "--html", None, "write a self-contained page", metavar="FILE")
    option(parser, "--plot", None, "write the figure (.png, .svg or .pdf)", metavar="FILE")


def show_report(report: Report, args: argparse.Namespace) -> int:
    """Print and write a report as asked."""
    print(report.to_json() if args.json else report.to_markdown() if args.markdown else report.to_text())
    for path in (args.html, args.plot):
        if path:
            report.save(path)
    return 0

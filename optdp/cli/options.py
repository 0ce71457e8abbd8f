"""Options that commands share, and what they do with a solution or a report."""

from __future__ import annotations

import argparse
import json
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optdp.exact.numbers import Number
    from optdp.report.report import Report
    from optdp.solution import Solution


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


def add_loss(parser: Any) -> None:
    """`--loss`."""
    parser.add_argument(
        "--loss",
        type=parse_loss,
        default="abs",
        help="abs (default), squared, power:Q, huber:C, threshold:T, pinball:TAU",
    )


def add_eps(parser: Any) -> None:
    """`--eps`."""
    parser.add_argument(
        "--eps", type=parse_number, required=True, help="privacy parameter in (0, 30]: 0.5, or exactly 1/2 or log(3)"
    )


def add_domain(parser: Any, *, circle: bool = True) -> None:
    """`--domain A B` and `--circle PERIOD`."""
    group = parser.add_mutually_exclusive_group()
    group.add_argument(
        "--domain", type=float, nargs=2, default=(0.0, 1.0), metavar=("A", "B"), help="interval (default 0 1)"
    )
    if circle:
        group.add_argument(
            "--circle", type=float, metavar="PERIOD", help="a circle of this period instead of an interval"
        )


def domain_of(args: argparse.Namespace) -> Any:
    """The domain that `add_domain`'s options name."""
    from optdp.problem.domains import Circle

    period = getattr(args, "circle", None)
    return tuple(args.domain) if period is None else Circle(period)


def add_solution_output(parser: Any) -> None:
    """`--json`, `--out`, `--plot`, `--model`, `--write`."""
    parser.add_argument("--json", action="store_true", help="print the solution as JSON")
    parser.add_argument("--out", metavar="FILE", help="save the solution as JSON (read it with `optdp verify`)")
    parser.add_argument("--plot", metavar="FILE", help="draw the mechanism (.png, .svg or .pdf)")
    parser.add_argument("--model", action="store_true", help="also print the mathematical program that was solved")
    parser.add_argument(
        "--write", metavar="FILE", help="write that program: .mps or .lp if it is linear, .nl if it is not"
    )


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
        model, stream = solution.program.model, sys.stderr if args.json else sys.stdout
        model.pprint(stream) if hasattr(model, "pprint") else print(model, file=stream)
    if args.write:
        solution.program.write(args.write)
    if args.out:
        solution.save(args.out)
    if args.plot:
        from optdp.report.plots import save_figure

        save_figure(solution.plot().figure, args.plot)
    return 0 if verification else 1


def add_report_output(parser: Any) -> None:
    """`--json`, `--markdown`, `--html`, `--plot`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--markdown", action="store_true", help="print Markdown")
    parser.add_argument("--html", metavar="FILE", help="write a self-contained page")
    parser.add_argument("--plot", metavar="FILE", help="write the figure (.png, .svg or .pdf)")


def show_report(report: Report, args: argparse.Namespace) -> int:
    """Print and write a report as asked."""
    print(report.to_json() if args.json else report.to_markdown() if args.markdown else report.to_text())
    for path in (args.html, args.plot):
        if path:
            report.save(path)
    return 0

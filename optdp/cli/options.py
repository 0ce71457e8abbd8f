"""Options that commands share, and what they do with a solution or a report."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from optdp.report.report import Report
    from optdp.solution import Solution


def parse_loss(text: str) -> Any:
    """ "abs", "squared" (or "l1", "l2"), or "power:Q"."""
    from optdp.problem.losses import Power

    if text.startswith("power:"):
        try:
            return Power(float(text.removeprefix("power:")))
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None
    if text not in ("abs", "squared", "l1", "l2"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a loss: use abs, squared or power:Q")
    return text


def add_loss(parser: Any) -> None:
    """`--loss`."""
    parser.add_argument("--loss", type=parse_loss, default="abs", help="abs, squared or power:Q (default abs)")


def add_eps(parser: Any) -> None:
    """`--eps`."""
    parser.add_argument("--eps", type=float, required=True, help="privacy parameter epsilon, in (0, 30]")


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
    """`--json`, `--out`, `--plot`."""
    parser.add_argument("--json", action="store_true", help="print the solution as JSON")
    parser.add_argument("--out", metavar="FILE", help="save the solution as JSON (read it with `optdp verify`)")
    parser.add_argument("--plot", metavar="FILE", help="draw the mechanism (.png, .svg or .pdf)")


def show_solution(solution: Solution, args: argparse.Namespace) -> int:
    """Print, save and plot a solution with its verification. **Returns** the exit status: 1 if a check fails."""
    verification = solution.verify()
    if args.json:
        print(json.dumps({**solution.to_dict(), "verified": verification.passed}, indent=2))
    else:
        print(solution)
        if solution.closed_form is not None:
            print(f"  closed form: {solution.closed_form}")
        print(verification)
    if args.out:
        solution.save(args.out)
    if args.plot:
        from optdp.report.plots import save_figure

        save_figure(solution.mechanism.plot().figure, args.plot)
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

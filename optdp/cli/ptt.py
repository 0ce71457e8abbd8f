"""`optdp solve ptt` and `optdp report unbiased`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from optdp.cli import options

if TYPE_CHECKING:
    from optdp.cli import Commands


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.solve.add_parser("ptt", help="the best unbiased piecewise transformation on [-1, 1] (LDP)")
    options.add_eps(parser)
    options.option(parser, "--kind", "I", "rectangle, triangle, any density", choices=("I", "II", "free"))
    options.option(parser, "--objective", "worst", "worst, or an input in [-1, 1]", type=_objective)
    options.option(parser, "--backend", "auto", "solver", choices=("auto", "scip", "lp"))
    options.option(parser, "--time-limit", 60.0, "seconds for scip")
    options.add_solution_output(parser)
    parser.set_defaults(run=_solve)

    text = "optima of the unbiased families, published mechanisms, the bound"
    parser = commands.report.add_parser("unbiased", help=text)
    options.add_eps(parser, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0)
    options.option(parser, "--no-kernel", False, "leave out the bound over all unbiased mechanisms (slow)")
    options.option(parser, "--time-limit", 20.0, "seconds for that bound, each")
    options.add_report_output(parser)
    parser.set_defaults(run=_report)


def _objective(text: str) -> float | str:
    if text == "worst":
        return text
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an objective: use worst or a number in [-1, 1]") from None


def _solve(args: argparse.Namespace) -> int:
    from optdp.design.ptt import solve_ptt

    solution = solve_ptt(
        args.eps, args.kind, objective=args.objective, backend=args.backend, time_limit=args.time_limit, progress=True
    )
    return options.show_solution(solution, args)


def _report(args: argparse.Namespace) -> int:
    from optdp.report.gap import gap_report

    spec = {"problem": "unbiased", "eps": args.eps, "kernel": not args.no_kernel, "time_limit": args.time_limit}
    return options.show_report(gap_report(spec), args)

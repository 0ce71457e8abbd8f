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
    parser.add_argument(
        "--kind", choices=("I", "II", "free"), default="I", help="rectangle, triangle, any density (default I)"
    )
    parser.add_argument(
        "--objective", type=_objective, default="worst", help="worst, or an input in [-1, 1] (default worst)"
    )
    parser.add_argument("--backend", choices=("auto", "scip", "lp"), default="auto", help="solver (default auto)")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for scip (default 60)")
    options.add_solution_output(parser)
    parser.set_defaults(run=_solve)

    parser = commands.report.add_parser(
        "unbiased", help="optima of the unbiased families, published mechanisms, the bound"
    )
    parser.add_argument(
        "--eps", type=options.parse_number, nargs="+", default=[0.25, 0.5, 1.0, 2.0, 3.0, 4.0], help="epsilons"
    )
    parser.add_argument(
        "--no-kernel", action="store_true", help="leave out the bound over all unbiased mechanisms (slow)"
    )
    parser.add_argument("--time-limit", type=float, default=20.0, help="seconds for that bound, each (default 20)")
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
        args.eps, args.kind, objective=args.objective, backend=args.backend, time_limit=args.time_limit
    )
    return options.show_solution(solution, args)


def _report(args: argparse.Namespace) -> int:
    from optdp.report.gap import gap_report

    spec = {"problem": "unbiased", "eps": args.eps, "kernel": not args.no_kernel, "time_limit": args.time_limit}
    return options.show_report(gap_report(spec), args)

"""`optdp solve additive` and `optdp report additive`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from optdp.cli import options

if TYPE_CHECKING:
    from optdp.cli import Commands


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.solve.add_parser(
        "additive", help="the best additive noise under (eps, delta)-differential privacy"
    )
    parser.add_argument("--eps", type=options.parse_number, required=True, help="privacy parameter epsilon, in [0, 30]")
    parser.add_argument(
        "--delta", type=options.parse_number, default=0.0, help="privacy parameter delta, in [0, 1) (default 0)"
    )
    options.add_loss(parser)
    _add_problem(parser)
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds (default 60)")
    parser.add_argument(
        "--profile", action="store_true", help="also print delta at other epsilons, beside the baselines"
    )
    options.add_solution_output(parser)
    parser.set_defaults(run=_solve)

    parser = commands.report.add_parser(
        "additive", help="bounds, optimum and published noises over a grid of (eps, delta)"
    )
    parser.add_argument(
        "--eps", type=options.parse_number, nargs="+", default=[0.1, 0.5, 1.0, 2.0, 4.0], help="epsilons"
    )
    parser.add_argument("--delta", type=options.parse_number, nargs="+", default=[1e-6, 1e-4, 1e-2, 0.1], help="deltas")
    options.add_loss(parser)
    _add_problem(parser)
    options.add_report_output(parser)
    parser.set_defaults(run=_report)


def _add_problem(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--sensitivity", type=float, default=1.0, help="how far neighbouring values are apart (default 1)"
    )
    parser.add_argument("--discrete", action="store_true", help="noise on the integers (integer sensitivity)")
    parser.add_argument("--rtol", type=float, default=1e-3, help="relative gap to reach (default 0.001)")


def _solve(args: argparse.Namespace) -> int:
    from optdp.design.additive import solve_additive

    solution = solve_additive(
        args.eps, args.delta, args.loss, sensitivity=args.sensitivity, rtol=args.rtol, discrete=args.discrete,
        time_limit=args.time_limit,
    )  # fmt: skip
    status = options.show_solution(solution, args)
    if args.profile:
        from optdp.report.additive import profile_report

        print(f"\n{profile_report(solution)}")
    return status


def _report(args: argparse.Namespace) -> int:
    from optdp.report.gap import gap_report

    spec = {
        "problem": "additive", "eps": args.eps, "delta": args.delta, "loss": args.loss, "sensitivity": args.sensitivity,
        "discrete": args.discrete, "rtol": args.rtol,
    }  # fmt: skip
    return options.show_report(gap_report(spec), args)

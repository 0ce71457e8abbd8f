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
    options.add_eps(parser)
    options.option(parser, "--delta", 0.0, "privacy parameter delta, in [0, 1)", type=options.parse_number)
    options.add_loss(parser)
    _add_problem(parser)
    options.option(parser, "--time-limit", 60.0, "seconds")
    options.option(parser, "--profile", False, "also print delta at other epsilons, beside the baselines")
    options.add_solution_output(parser)
    parser.set_defaults(run=_solve)

    text = "bounds, optimum and published noises over a grid of (eps, delta)"
    parser = commands.report.add_parser("additive", help=text)
    options.add_eps(parser, 0.1, 0.5, 1.0, 2.0, 4.0)
    options.option(parser, "--delta", [1e-6, 1e-4, 1e-2, 0.1], "deltas", type=options.parse_number, nargs="+")
    options.add_loss(parser)
    _add_problem(parser)
    options.add_report_output(parser)
    parser.set_defaults(run=_report)


def _add_problem(parser: argparse.ArgumentParser) -> None:
    options.option(parser, "--sensitivity", 1.0, "how far neighbouring values are apart")
    options.option(parser, "--discrete", False, "noise on the integers (integer sensitivity)")
    options.option(parser, "--rtol", 1e-3, "relative gap to reach")


def _solve(args: argparse.Namespace) -> int:
    from optdp.design.additive import solve_additive

    solution = solve_additive(
        args.eps, args.delta, args.loss, sensitivity=args.sensitivity, rtol=args.rtol, discrete=args.discrete,
        time_limit=args.time_limit, progress=True,
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

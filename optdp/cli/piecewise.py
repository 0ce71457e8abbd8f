"""`optdp solve piecewise`, `optdp report piecewise`, `optdp compare`, `optdp hypothesis`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from optdp.cli import options

if TYPE_CHECKING:
    from optdp.cli import Commands


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.solve.add_parser("piecewise", help="the best m-piece mechanism for one bounded number (LDP)")
    options.add_eps(parser)
    parser.add_argument("--m", type=int, default=3, help="number of pieces (default 3)")
    options.add_loss(parser)
    options.add_domain(parser)
    parser.add_argument(
        "--backend", choices=("auto", "scip", "slsqp", "gurobi", "ipopt"), default="auto", help="solver (default auto)"
    )
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds for scip and gurobi (default 60)")
    options.add_solution_output(parser)
    parser.set_defaults(run=_solve)

    parser = commands.report.add_parser(
        "piecewise", help="the optimum and the published mechanisms over a range of epsilon"
    )
    parser.add_argument(
        "--eps",
        type=options.parse_number,
        nargs="+",
        default=[0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0],
        help="epsilons",
    )
    options.add_loss(parser)
    options.add_domain(parser)
    options.add_report_output(parser)
    parser.set_defaults(run=_report)

    parser = commands.top.add_parser(
        "compare", help="the optimal piecewise mechanism beside PM, SW, PTT, Laplace, staircase"
    )
    options.add_eps(parser)
    options.add_loss(parser)
    options.add_domain(parser)
    options.add_report_output(parser)
    parser.set_defaults(run=_compare)

    parser = commands.top.add_parser("hypothesis", help="prove, at random epsilons, that no m pieces beat three")
    parser.add_argument("--samples", type=int, default=10_000, help="how many epsilons (default 10000)")
    parser.add_argument(
        "--pieces", type=_pieces, default=range(3, 10), metavar="M or M-N", help="pieces asked about (default 3-9)"
    )
    options.add_loss(parser)
    options.add_domain(parser)
    parser.add_argument(
        "--eps-range", type=float, nargs=2, default=(0.01, 10.0), metavar=("LOW", "HIGH"), help="default 0.01 10"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws (default 0)")
    parser.add_argument(
        "--attack", type=int, default=0, metavar="N", help="at N epsilons, also try to beat the bound by local search"
    )
    options.add_report_output(parser)
    parser.set_defaults(run=_hypothesis)


def _pieces(text: str) -> range:
    try:
        first, _, last = text.partition("-")
        return range(int(first), int(last or first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of pieces: use 5 or 3-9") from None


def _solve(args: argparse.Namespace) -> int:
    from optdp.design.piecewise import solve_piecewise

    solution = solve_piecewise(
        args.eps, args.m, args.loss, domain=options.domain_of(args), backend=args.backend, time_limit=args.time_limit,
        progress=True,
    )  # fmt: skip
    return options.show_solution(solution, args)


def _report(args: argparse.Namespace) -> int:
    from optdp.report.gap import gap_report

    spec = {"problem": "piecewise", "eps": args.eps, "loss": args.loss, "domain": options.domain_of(args)}
    return options.show_report(gap_report(spec), args)


def _compare(args: argparse.Namespace) -> int:
    from optdp.report.compare import compare

    return options.show_report(compare(args.eps, args.loss, domain=options.domain_of(args)), args)


def _hypothesis(args: argparse.Namespace) -> int:
    from optdp.audit.ogpm.hypothesis import check_hypothesis

    found = check_hypothesis(
        args.samples, args.pieces, args.loss, domain=options.domain_of(args), eps_range=tuple(args.eps_range),
        seed=args.seed, attack=args.attack,
    )  # fmt: skip
    options.show_report(found.to_report(), args)
    return 0 if found.holds else 1

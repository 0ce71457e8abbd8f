"""`optdp solve piecewise`, `optdp report piecewise`, `optdp compare`, `optdp hypothesis`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from optdp.cli import options

if TYPE_CHECKING:
    from optdp.cli import Commands

EPS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.solve.add_parser("piecewise", help="the best m-piece mechanism for one bounded number (LDP)")
    options.add_eps(parser)
    options.option(parser, "--m", 3, "number of pieces")
    options.add_loss(parser)
    options.add_domain(parser)
    options.option(parser, "--backend", "auto", "solver", choices=("auto", "scip", "slsqp", "gurobi", "ipopt"))
    options.option(parser, "--time-limit", 60.0, "seconds for scip and gurobi")
    options.add_solution_output(parser)
    parser.set_defaults(run=_solve)

    for add, name, run, text in (
        (commands.report, "piecewise", _report, "the optimum and the published mechanisms over a range of epsilon"),
        (commands.top, "compare", _compare, "the optimal piecewise mechanism beside the published ones"),
    ):
        parser = add.add_parser(name, help=text)
        options.add_eps(parser, *(EPS if run is _report else ()))
        options.add_loss(parser)
        options.add_domain(parser)
        options.add_report_output(parser)
        parser.set_defaults(run=run)

    parser = commands.top.add_parser("hypothesis", help="prove, at random epsilons, that no m pieces beat three")
    options.option(parser, "--samples", 10_000, "how many epsilons")
    options.option(parser, "--pieces", "3-9", "pieces asked about", type=_pieces, metavar="M or M-N")
    options.add_loss(parser)
    options.add_domain(parser)
    options.option(parser, "--eps-range", (0.01, 10.0), "where", type=float, nargs=2, metavar=("LOW", "HIGH"))
    options.option(parser, "--seed", 0, "seed of the draws")
    options.option(parser, "--attack", 0, "at N epsilons, also try to beat the bound by local search", metavar="N")
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

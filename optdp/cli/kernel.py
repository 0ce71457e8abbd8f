"""`optdp solve kernel`, `optdp report kernel`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from optdp.cli import options

if TYPE_CHECKING:
    from optdp.cli import Commands


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.solve.add_parser("kernel", help="the best of all LDP mechanisms for one bounded number")
    options.add_eps(parser)
    _add_problem(parser)
    text = "range of the outputs (default: the domain, or free if unbiased)"
    options.option(parser, "--outputs", None, text, type=float, nargs=2, metavar=("LOW", "HIGH"))
    text = "points and probabilities: minimise the average loss, e.g. 0:0.5 1:0.5"
    options.option(parser, "--prior", None, text, nargs="+", metavar="X:P")
    options.option(parser, "--backend", "auto", "how linear programs are solved", choices=("auto", "columns", "dense"))
    options.option(
        parser, "--all-outputs", False, "keep all outputs of the linear program, not the fewest that will do"
    )
    options.option(
        parser, "--errors", None, "draw the loss at every input beside the published mechanisms", metavar="FILE"
    )
    options.add_solution_output(parser)
    parser.set_defaults(run=_solve)

    parser = commands.report.add_parser("kernel", help="the best kernels and the published mechanisms over epsilon")
    options.add_eps(parser, 0.25, 0.5, 1.0, 2.0, 3.0)
    _add_problem(parser, circle=False)
    options.add_report_output(parser)
    parser.set_defaults(run=_report)


def _add_problem(parser: Any, *, circle: bool = True) -> None:
    text = "abs, squared or power:Q, Q >= 1 (default abs; squared if unbiased)"
    options.option(parser, "--loss", None, text, type=options.parse_loss)
    options.add_domain(parser, circle=circle)
    parser.set_defaults(domain=None)
    options.option(parser, "--unbiased", False, "ask for E[Y|x] = x; the domain is then [-1, 1] unless given")
    options.option(parser, "--rtol", 1e-3, "relative gap to stop at")
    options.option(parser, "--time-limit", 60.0, "seconds after which no finer grid is begun")


def _domain(args: argparse.Namespace) -> Any:
    if args.domain is None:
        args.domain = (-1.0, 1.0) if args.unbiased else (0.0, 1.0)
    return options.domain_of(args)


def _prior(pairs: list[str] | None) -> Any:
    if pairs is None:
        return None
    if pairs == ["uniform"]:
        return "uniform"
    try:
        points, chances = zip(*(map(float, pair.split(":")) for pair in pairs), strict=True)
    except ValueError:
        raise ValueError(
            f"prior = {' '.join(pairs)} is not allowed: write it as X:P X:P ..., e.g. 0:0.5 1:0.5"
        ) from None
    return list(points), list(chances)


def _solve(args: argparse.Namespace) -> int:
    from optdp.design.kernel import solve_kernel

    solution = solve_kernel(
        args.eps,
        args.loss,
        domain=_domain(args),
        unbiased=args.unbiased,
        outputs=None if args.outputs is None else tuple(args.outputs),
        prior=_prior(args.prior),
        rtol=args.rtol,
        time_limit=args.time_limit,
        simplify=not args.all_outputs,
        backend=args.backend,
        progress=True,
    )
    status = options.show_solution(solution, args)
    if args.errors:
        from optdp.report.kernel import plot_errors
        from optdp.report.plots import save_figure

        save_figure(plot_errors(solution).figure, args.errors)
    return status


def _report(args: argparse.Namespace) -> int:
    from optdp.report.gap import gap_report

    spec = {
        "problem": "kernel",
        "eps": args.eps,
        "loss": args.loss,
        "domain": _domain(args),
        "unbiased": args.unbiased,
        "rtol": args.rtol,
        "time_limit": args.time_limit,
    }
    return options.show_report(gap_report(spec), args)

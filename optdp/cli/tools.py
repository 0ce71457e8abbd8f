"""`optdp verify`, `optdp problems`, `optdp report all` and `optdp demo`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from optdp.cli import Commands, options
from optdp.cli.options import option

HEADING = """# What is solved

Printed by `optdp problems --markdown`: one row for each design, in the order in which `optdp.solve` tries them. `optdp.solve`
takes any `optdp.Problem` whose parts fit one row; for other problems it raises an error with the reason of each design.
"""


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.top.add_parser("verify", help="check a saved solution again, without any solver")
    parser.add_argument("solution", help="file written by `optdp solve ... --out`, or - for standard input")
    text = "work that the proof may take, in seconds of a common processor; counted beforehand, not timed"
    option(parser, "--limit", 10.0, text, metavar="SECONDS")
    parser.set_defaults(run=_verify)

    parser = commands.top.add_parser("problems", help="the problems that are solved")
    option(parser, "--markdown", False, "print docs/solved.md")
    parser.set_defaults(run=_problems)

    parser = commands.report.add_parser("all", help="every problem's gap report on one self-contained page")
    parser.add_argument("--html", required=True, metavar="FILE", help="the page to write")
    parser.set_defaults(run=_all)

    parser = commands.top.add_parser(
        "demo", help="a tour: solve, prove, compare, and ask a real table private questions"
    )
    option(parser, "--out", "demo-output", "where the figure goes", metavar="FOLDER")
    option(parser, "--eps", 1.0, "privacy parameter", type=options.parse_number)
    option(parser, "--seed", 0, "seed of the demonstration")
    parser.set_defaults(run=_demo)


def _verify(args: argparse.Namespace) -> int:
    from optdp.exact import work
    from optdp.exact.numbers import above, below
    from optdp.solution import Solution

    name = "standard input" if args.solution == "-" else Path(args.solution).name
    with work.limited(args.limit, name):
        solution = Solution.load(args.solution, args.limit)
        verification = solution.verify(args.limit)
        # Nothing else of the file: the solver, its time and its tolerance are what somebody wrote there.
        told = [
            solution.problem.statement(),
            f"  optimum in [{below(solution.lower_bound, 12)}, {above(solution.value, 12)}], gap {solution.gap:.1e}",
            f"  {solution.mechanism!r}",
            str(verification),
            "verified" if verification else "NOT verified",
        ]
    print("\n".join(told))
    if not verification:
        print(f"optdp: error: {name} is not verified: {verification.failures[0].name}", file=sys.stderr)
    return 0 if verification else 2


def _problems(args: argparse.Namespace) -> int:
    from optdp.design.registry import table

    print(f"{HEADING}\n{table(markdown=True)}" if args.markdown else table())
    return 0


def _all(args: argparse.Namespace) -> int:
    from optdp import files
    from optdp.report.gap import gap_page

    files.write_text(args.html, gap_page())
    print(f"{args.html} written", file=options.beside(args.html))
    return 0


def _demo(args: argparse.Namespace) -> int:
    from optdp.cli.tour import run

    return run(args.out, eps=args.eps, seed=args.seed)

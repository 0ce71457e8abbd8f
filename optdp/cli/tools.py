"""`optdp verify`, `optdp report all` and `optdp demo`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from optdp.cli import Commands


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.top.add_parser("verify", help="check a saved solution again, without any solver")
    parser.add_argument("solution", help="file written by `optdp solve ... --out`")
    parser.set_defaults(run=_verify)

    parser = commands.report.add_parser("all", help="every problem's gap report on one self-contained page")
    parser.add_argument("--html", required=True, metavar="FILE", help="the page to write")
    parser.set_defaults(run=_all)

    parser = commands.top.add_parser("demo", help="a tour: solve, prove, compare, and privatise a real column")
    parser.add_argument(
        "--out", default="demo-output", metavar="FOLDER", help="where the figure goes (default demo-output)"
    )
    parser.add_argument("--eps", type=float, default=1.0, help="privacy parameter (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the demonstration (default 0)")
    parser.set_defaults(run=_demo)


def _verify(args: argparse.Namespace) -> int:
    from optdp.solution import Solution

    solution = Solution.load(args.solution)
    verification = solution.verify()
    print(solution)
    print(verification)
    print("verified" if verification else "NOT verified")
    return 0 if verification else 1


def _all(args: argparse.Namespace) -> int:
    from optdp import files
    from optdp.report.gap import gap_page

    files.write_text(args.html, gap_page())
    print(f"{args.html} written")
    return 0


def _demo(args: argparse.Namespace) -> int:
    from optdp.cli.tour import run

    return run(args.out, eps=args.eps, seed=args.seed)

"""`optdp verify`, `optdp problems`, `optdp report all` and `optdp demo`."""

from __future__ import annotations

import argparse
import importlib
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import optdp
from optdp.cli import Commands, options
from optdp.cli.options import option

if TYPE_CHECKING:
    from optdp.exact.fields import Fields
    from optdp.mechanisms.base import Mechanism
    from optdp.solution import Solution
    from optdp.statistics.plan import Plan

HEADING = """# What is solved

Printed by `optdp problems --markdown`: one row for each design, in the order in which `optdp.solve` tries them. `optdp.solve`
takes any `optdp.Problem` whose parts fit one row; for other problems it raises an error with the reason of each design.
"""


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.top.add_parser(
        "verify", help="check a saved solution, mechanism or plan again, without any solver",
        description="Proves again what a file says: both ends of a solution's bracket, the guarantee of a mechanism, or that of "
        "each column of a plan; and prints what was solved or planned.",
    )  # fmt: skip
    text = (
        "written by `optdp solve --out`, `optdp randomize --save-mechanism` or `optdp plan --out`; - for standard input"
    )
    parser.add_argument("file", help=text)
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
    parser.set_defaults(run=lambda args: importlib.import_module("optdp.cli.tour").run(args.out, args.eps, args.seed))


def _verify(args: argparse.Namespace) -> int:
    from optdp.exact import enclosures, work
    from optdp.exact.check import Verification
    from optdp.exact.fields import load
    from optdp.exact.numbers import above, below
    from optdp.mechanisms.base import Mechanism
    from optdp.solution import Solution
    from optdp.statistics.plan import Plan

    name = "standard input" if args.file == "-" else Path(args.file).name
    with work.limited(args.limit, name):
        found = load(args.file, _any, args.limit, "a solution, a mechanism or a plan")
        # Nothing else of the file: the solver, its time and its tolerance are what somebody wrote there.
        if isinstance(found, Solution):
            verification, told = found.verify(args.limit), [
                found.problem.statement(),
                f"  optimum in [{below(found.lower_bound, 12)}, {above(found.value, 12)}], gap {found.gap:.1e}",
                f"  {found.mechanism!r}",
            ]  # fmt: skip
        elif isinstance(found, Plan):
            told, checks = [repr(found), f"  {found.statement()}", f"  guarantee: {found.guarantee()}"], []
            for unit in found.units:  # each by what it proves, where the plan may allow more
                columns, ratio = ", ".join(part.name for part in unit), found.ratio([unit[0].name])
                own = optdp.LDP(enclosures.log_of(ratio))
                told.append(f"  {columns}: {own}")
                shown = unit[0].mechanism.check_privacy(own) if len(unit) == 1 else [own.check(ratio)]
                checks += [replace(check, name=f"{columns}, {check.name}") for check in shown]
            verification = Verification(checks)
        else:
            guarantee = found.guarantee()
            told = [repr(found), f"  guarantee: {guarantee}"]
            # Elsewhere a mechanism's guarantee is its own formula, which would be held against itself.
            formula = type(found).check_privacy is Mechanism.check_privacy
            verification = Verification([] if guarantee is None or formula else found.check_privacy(guarantee))
    print("\n".join([*told, str(verification), "verified" if verification else "NOT verified"]))
    if not verification:
        failed = verification.failures[0].name if verification.failures else "its guarantee has no exact check"
        print(f"optdp: error: {name} is not verified: {failed}", file=sys.stderr)
    return 0 if verification else 2


def _any(fields: Fields) -> Solution | Mechanism | Plan:
    """What a file holds."""
    from optdp.mechanisms.base import Mechanism
    from optdp.solution import Solution
    from optdp.statistics.plan import Plan

    if "plan" in fields.data:
        return Plan.read(fields)
    only = "mechanism" in fields.data and not {"certificate", "problem"} & fields.data.keys()
    return Mechanism.read(fields) if only else Solution.read(fields)


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

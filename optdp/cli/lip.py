"""`optdp solve lip`, `optdp report lip`, `optdp lip-simulate`, `optdp lip-flights`."""

from __future__ import annotations

import argparse
import csv
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from optdp.cli import options

if TYPE_CHECKING:
    from optdp.cli import Commands


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = commands.solve.add_parser("lip", help="the best mechanism for a category with a known prior (LIP)")
    _add_prior(parser)
    options.add_eps(parser)
    _add_task(parser)
    parser.add_argument(
        "--notion", choices=("lip", "lip-lower", "ldp"), default="lip",
        help="lip: two-sided (default); lip-lower: posterior >= e^-eps prior only; ldp: context-free guarantee",
    )  # fmt: skip
    parser.add_argument("--backend", choices=("auto", "enumeration", "columns", "cvxpy"), default="auto", help="method")
    parser.add_argument("--rtol", type=float, default=1e-6, help="gap at which to stop (default 1e-6)")
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds (default 60)")
    parser.add_argument("--kernel", action="store_true", help="also print the probabilities, posteriors and estimates")
    options.add_solution_output(parser)
    parser.set_defaults(run=_solve)

    parser = commands.report.add_parser("lip", help="error against epsilon: LIP, LDP with the prior, and without")
    _add_prior(parser, required=False)
    parser.add_argument(
        "--sizes", type=int, nargs="+", metavar="D", help="instead of a prior: D equally likely categories"
    )
    parser.add_argument("--eps", type=float, nargs="+", help="epsilons (default 0.25 to 5)")
    _add_task(parser)
    options.add_report_output(parser)
    parser.set_defaults(run=_report)

    parser = commands.top.add_parser("lip-simulate", help="simulate users with a prior and compare with theory")
    _add_prior(parser)
    parser.add_argument("--eps", type=float, nargs="+", required=True, help="one or more epsilons")
    parser.add_argument("--users", type=int, default=100_000, help="how many users (default 100000)")
    parser.add_argument("--rounds", type=int, default=20, help="how often to draw everything (default 20)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws (default 0)")
    parser.add_argument(
        "--schemes", nargs="+", metavar="NAME", default=None,
        help="lip, lip-lower, ldp, 'randomised response', oue (histogram), central (survey)",
    )  # fmt: skip
    _add_task(parser)
    options.add_report_output(parser)
    parser.set_defaults(run=_simulate)

    parser = commands.top.add_parser("lip-flights", help="a real prior: flights of one half-year, used on the next")
    parser.add_argument("--eps", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0], help="epsilons")
    parser.add_argument("--column", choices=("dest", "carrier", "origin"), default="dest", help="the private category")
    parser.add_argument("--until", default="2013-07-01", help="the prior is of flights before (default 2013-07-01)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the perturbation (default 0)")
    options.add_report_output(parser)
    parser.set_defaults(run=_flights)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers: use 0.1,0.9") from None


def _add_prior(parser: Any, *, required: bool = True) -> None:
    group = parser.add_mutually_exclusive_group(required=required)
    group.add_argument("--prior", type=_numbers, metavar="P,P,...", help="probabilities of the categories: 0.9,0.1")
    group.add_argument(
        "--prior-file", metavar="CSV",
        help="rows of category and probability, or category and count (--counts); a header is skipped",
    )  # fmt: skip
    parser.add_argument("--counts", action="store_true", help="the prior file has counts: divide them by their sum")


def _add_task(parser: Any) -> None:
    parser.add_argument(
        "--task", choices=("survey", "sum", "histogram"), default=None,
        help="what the curator computes (default: survey for two categories without values, else sum)",
    )  # fmt: skip
    parser.add_argument("--values", type=_numbers, metavar="X,X,...", help="what each category stands for in a sum")


def read_prior(path: str | Path, counts: bool) -> dict[str, Any]:
    """Categories and their probabilities from a CSV file. **Raises** ValueError naming the row that cannot be read."""
    found: dict[str, Any] = {}
    with open(path, newline="", encoding="utf-8-sig") as stream:
        for number, row in enumerate(csv.reader(stream), start=1):
            cells = [cell.strip() for cell in row]
            if not any(cells):
                continue
            if len(cells) != 2:
                raise ValueError(f"{path}, row {number}: {row!r} is not allowed: a row must be a category and a number")
            try:
                value = Fraction(cells[1])
            except (ValueError, ZeroDivisionError):
                if number == 1:
                    continue  # a header
                raise ValueError(f"{path}, row {number}: {cells[1]!r} is not a number") from None
            if cells[0] in found:
                raise ValueError(f"{path}, row {number}: category {cells[0]!r} occurs twice")
            found[cells[0]] = value
    if counts:
        total = sum(found.values())
        if any(v < 0 for v in found.values()) or not total:
            raise ValueError(f"{path}: counts must be >= 0 and not all 0")
        found = {name: value / total for name, value in found.items()}
    return found


def _prior_of(args: argparse.Namespace) -> Any:
    return args.prior if args.prior is not None else read_prior(args.prior_file, args.counts)


def _task_of(args: argparse.Namespace, prior: Any) -> dict[str, Any]:
    task = args.task or ("survey" if len(prior) == 2 and args.values is None else "sum")
    if task == "sum" and args.values is None and isinstance(prior, dict):
        try:
            values = [float(name) for name in prior]
        except ValueError:
            raise ValueError("--values is missing: a sum needs the number that each category stands for") from None
        return {"task": task, "values": values}
    return {"task": task, "values": args.values}


def _solve(args: argparse.Namespace) -> int:
    from optdp.design.lip import solve_lip

    prior = _prior_of(args)
    solution = solve_lip(
        prior, args.eps, **_task_of(args, prior), notion=args.notion, backend=args.backend, rtol=args.rtol,
        time_limit=args.time_limit, progress=True,
    )  # fmt: skip
    status = options.show_solution(solution, args)
    if not args.json:
        print(f"mean absolute error between input and output, best labels: {solution.mechanism.mae():.6g}")
        if args.kernel:
            print(kernel_report(solution.mechanism).to_text())
    return status


def kernel_report(mechanism: Any) -> Any:
    """K(y|x) for each category, one column for each output, with the output's probability and estimate."""
    from optdp.report.report import Column, Report

    k, labels = mechanism.probabilities, [str(label) for label in mechanism.labels]
    rows: list[dict[str, Any]] = [
        {"x": f"K( . |{name})", **{str(y): float(k[y, i]) for y in range(len(labels))}}
        for i, name in enumerate(mechanism.categories)
    ]
    rows.append({"x": "probability", **{str(y): float(w) for y, w in enumerate(mechanism.output)}})
    if mechanism.aggregate.values is not None:
        rows.append({"x": "estimate", **{str(y): float(v) for y, v in enumerate(mechanism.estimates)}})
    columns = [Column("x", "output"), *(Column(str(y), label) for y, label in enumerate(labels))]
    return Report("Kernel", columns, rows)


def _report(args: argparse.Namespace) -> int:
    from optdp.report import lip

    given, eps = args.prior is not None or args.prior_file is not None, args.eps or [1.0]
    if args.sizes:
        if len(eps) != 1 or args.task == "survey" or given:
            raise ValueError("--sizes goes with one --eps, --task sum or histogram, and no prior")
        return options.show_report(lip.size_report(eps[0], args.sizes, args.task or "sum"), args)
    if not given:
        raise ValueError("--prior, --prior-file or --sizes is missing")
    prior = _prior_of(args)
    return options.show_report(lip.gap_report(prior, args.eps or lip.EPS, **_task_of(args, prior)), args)


def _simulate(args: argparse.Namespace) -> int:
    from optdp.report.lip import simulation_report
    from optdp.statistics.simulation import lip_simulate

    prior = _prior_of(args)
    task = _task_of(args, prior)
    more = {"survey": ["central"], "histogram": ["oue"]}.get(task["task"], [])
    schemes = args.schemes or ["lip", "ldp", "randomised response", *more]
    found = lip_simulate(prior, args.eps, args.users, **task, schemes=schemes, rounds=args.rounds, seed=args.seed)
    return options.show_report(simulation_report(found), args)


def _flights(args: argparse.Namespace) -> int:
    from optdp.report.lip import real_prior_report

    return options.show_report(real_prior_report(args.eps, column=args.column, until=args.until, seed=args.seed), args)

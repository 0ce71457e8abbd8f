"""`optdp solve lip`, `optdp report lip`, `optdp lip-simulate`, `optdp lip-flights`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

import optdp
from optdp import files
from optdp.cli import Commands, options
from optdp.cli.options import option, report_command, solve_command
from optdp.exact import table

if TYPE_CHECKING:
    from optdp.mechanisms.lip import LIPMechanism
    from optdp.report.report import Report

#: Words that stand in place of a number, and are no header.
UNREAD = ("nan", "na", "null", "none", "inf", "infinity")


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    parser = solve_command(commands, "lip", "the best mechanism for a category with a known prior (LIP)")
    _add_problem(parser)
    text = "lip: two-sided; lip-lower: posterior >= e^-eps prior only; ldp: context-free guarantee"
    option(parser, "--notion", "lip", text, choices=("lip", "lip-lower", "ldp"))
    option(parser, "--backend", "auto", "method", choices=("auto", "enumeration", "columns", "cvxpy"))
    option(parser, "--rtol", 1e-6, "gap at which to stop")
    options.add_time_limit(parser)
    option(parser, "--kernel", False, "also print the probabilities, posteriors and estimates")
    parser.set_defaults(run=_solve)

    text = "error against epsilon: LIP, LDP with the prior, and without"
    parser = report_command(commands.report, "lip", text, _report)
    _add_problem(parser, required=False)
    text = "instead of a prior: D equally likely categories"
    option(parser, "--sizes", None, text, type=options.parse_integer, nargs="+", metavar="D")
    option(parser, "--eps", None, "epsilons (default 0.25 to 5)", type=options.parse_float, nargs="+")

    text = "simulate users with a prior and compare with theory"
    parser = report_command(commands.top, "lip-simulate", text, _simulate)
    _add_problem(parser)
    parser.add_argument("--eps", type=options.parse_float, nargs="+", required=True, help="one or more epsilons")
    option(parser, "--users", 100_000, "how many users")
    option(parser, "--rounds", 20, "how often to draw everything")
    option(parser, "--seed", 0, "seed of the draws")
    text = "lip, lip-lower, ldp, 'randomised response', oue (histogram), central (survey)"
    option(parser, "--schemes", None, text, nargs="+", metavar="NAME")

    text = "a real prior: flights of one half-year, used on the next"
    parser = report_command(commands.top, "lip-flights", text, _flights)
    option(parser, "--eps", [0.5, 1.0, 2.0, 4.0], "epsilons", type=options.parse_float, nargs="+")
    option(parser, "--column", "dest", "the private category", choices=("dest", "carrier", "origin"))
    option(parser, "--until", "2013-07-01", "the prior is of flights before")
    option(parser, "--seed", 0, "seed of the perturbation")


def _number(text: str) -> float:
    """A number; an integer as what is written, so that one which is no float is refused and not rounded."""
    number = options.parse_float(text)
    return int(text) if text.lstrip("+-").isdecimal() and abs(number) >= 2.0**53 else number


def _numbers(text: str) -> list[float]:
    try:
        return [_number(part) for part in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a list of numbers: use 0.1,0.9") from None


def _add_problem(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    group = parser.add_mutually_exclusive_group(required=required)
    option(group, "--prior", None, "probabilities of the categories: 0.9,0.1", type=_numbers, metavar="P,P,...")
    text = "rows of category and probability, or category and count (--counts); a header is skipped"
    option(group, "--prior-file", None, text, metavar="CSV")
    option(parser, "--counts", False, "the prior file has counts: divide them by their sum")
    text = "what the curator computes (default: survey for two categories without values, else sum)"
    option(parser, "--task", None, text, choices=("survey", "sum", "histogram"))
    option(parser, "--values", None, "what each category stands for in a sum", type=_numbers, metavar="X,X,...")


def read_prior(path: str | Path, counts: bool) -> dict[str, Any]:
    """Categories and their probabilities from a CSV file. **Raises** ValueError naming the row that cannot be read."""
    found: dict[str, Any] = {}
    name = "standard input" if str(path) == "-" else str(path)
    with files.reading(path) as stream:
        for number, row in enumerate(table.Records(stream, name).rows(), start=1):
            if len(row) != 2:
                raise ValueError(f"{name}, row {number} is not allowed: a row must be a category and a number")
            value = table.exact(row[1])
            if value is None:
                if number == 1 and _heads(row[1]):
                    continue
                raise ValueError(f"{name}, row {number} is not allowed: what follows the category is not a number")
            if row[0] in found:
                raise ValueError(f"{name}, row {number} is not allowed: its category occurs twice")
            found[row[0]] = value
    if counts:
        total = sum(found.values())
        if any(v < 0 for v in found.values()) or not total:
            raise ValueError(f"{path}: counts must be >= 0 and not all 0")
        found = {name: value / total for name, value in found.items()}
    return found


def _heads(text: str) -> bool:
    """Whether a text in place of a number is that of a header, and no number that cannot be read."""
    word = text.strip().lower()
    return any(map(str.isalpha, word)) and not any(map(str.isdigit, word)) and word not in UNREAD


def _problem(args: argparse.Namespace) -> dict[str, object]:
    """The prior, task and values that the options of `_add_problem` name."""
    prior = args.prior if args.prior is not None else read_prior(args.prior_file, args.counts)
    task = args.task or ("survey" if len(prior) == 2 and args.values is None else "sum")
    if task == "sum" and args.values is None and isinstance(prior, dict):
        try:
            return {"prior": prior, "task": task, "values": [_number(name) for name in prior]}
        except ValueError:
            raise ValueError("--values is missing: a sum needs the number that each category stands for") from None
    return {"prior": prior, "task": task, "values": args.values}


def _solve(args: argparse.Namespace) -> int:
    if args.kernel and args.json:
        raise ValueError("--kernel is not allowed with --json, which has the mechanism: it prints a table")
    solution = options.solve(args, **_problem(args))
    status, mechanism = options.show_solution(solution, args), solution.mechanism
    if args.json:
        return status
    beside, told = options.beside(args.out), ": not defined, there are more outputs than categories"
    if set(mechanism.labels) <= set(mechanism.categories):
        told = f", best labels: {mechanism.mae():.6g}"
    print(f"mean absolute error between input and output{told}", file=beside)
    if args.kernel:
        print(kernel_report(mechanism).to_text(), file=beside)
    return status


def kernel_report(mechanism: LIPMechanism) -> Report:
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
    return Report("Kernel", [Column("x", "output"), *(Column(str(y), label) for y, label in enumerate(labels))], rows)


def _report(args: argparse.Namespace) -> Report:
    from optdp.report import lip

    given = args.prior is not None or args.prior_file is not None
    if args.sizes:
        eps = args.eps or [1.0]
        if len(eps) != 1 or args.task == "survey" or given:
            raise ValueError("--sizes goes with one --eps, --task sum or histogram, and no prior")
        return options.call(lip.size_report, args, eps=eps[0])
    if not given:
        raise ValueError("--prior, --prior-file or --sizes is missing")
    return options.call(lip.gap_report, args, **_problem(args))


def _simulate(args: argparse.Namespace) -> Report:
    from optdp.report.lip import simulation_report

    problem = _problem(args)
    more = {"survey": ["central"], "histogram": ["oue"]}.get(str(problem["task"]), [])
    schemes = args.schemes or ["lip", "ldp", "randomised response", *more]
    return simulation_report(options.call(optdp.lip_simulate, args, schemes=schemes, **problem))


def _flights(args: argparse.Namespace) -> Report:
    from optdp.report.lip import real_prior_report

    return options.call(real_prior_report, args)

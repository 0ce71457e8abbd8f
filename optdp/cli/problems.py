"""`optdp solve PROBLEM` and `optdp report PROBLEM` (prior-aware mechanisms apart), `optdp compare`, `optdp hypothesis`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import optdp
from optdp.cli import Commands, options
from optdp.cli.options import option, report_command, solve_command
from optdp.problem.privacy import Privacy

if TYPE_CHECKING:
    from optdp.exact.numbers import Number

#: Notions by what the command line calls them.
NOTIONS: dict[str, Callable[..., Privacy]] = {"gdp": optdp.GDP, "kl": optdp.KL, "rdp": optdp.RDP}


def register(commands: Commands) -> None:
    """Add the commands of this module."""
    _piecewise(commands)
    _kernel(commands)
    _unbiased(commands)
    _additive(commands)
    _vector(commands)
    _frequency(commands)


def _piecewise(commands: Commands) -> None:
    parser = solve_command(commands, "piecewise", "the best m-piece mechanism for one bounded number (LDP)")
    option(parser, "--m", 3, "number of pieces")
    options.add_loss(parser)
    options.add_domain(parser)
    option(parser, "--backend", "auto", "solver", choices=("auto", "scip", "slsqp", "gurobi", "ipopt"))
    options.add_time_limit(parser, "seconds for scip and gurobi")

    text = "the optimum and the published mechanisms over a range of epsilon"
    parser = report_command(commands.report, "piecewise", text)
    options.add_eps(parser, 0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0)
    options.add_loss(parser)
    options.add_domain(parser)
    option(parser, "--no-kernel", True, "leave out the optimum over all mechanisms", dest="kernel")

    text = "the best piecewise mechanism and the published ones, over it and over the best of all"
    parser = report_command(
        commands.top, "compare", text, lambda args: options.call(optdp.compare, args, problem_or_eps=args.eps)
    )
    options.add_eps(parser)
    options.add_loss(parser, "abs, squared, power:Q, huber:C, threshold:T, pinball:TAU")
    options.add_domain(parser)

    text = "prove, at random epsilons, that no m pieces beat three"
    parser = report_command(commands.top, "hypothesis", text, figure=False)
    parser.set_defaults(run=_hypothesis)
    option(parser, "--samples", 10_000, "how many epsilons")
    option(parser, "--pieces", "3-9", "pieces asked about", type=_pieces, metavar="M or M-N")
    options.add_loss(parser)
    options.add_domain(parser)
    option(parser, "--eps-range", (0.01, 10.0), "where", type=options.parse_float, nargs=2, metavar=("LOW", "HIGH"))
    option(parser, "--seed", 0, "seed of the draws")
    option(parser, "--attack", 0, "at N epsilons, also try to beat the bound by local search", metavar="N")


def _pieces(text: str) -> range:
    try:
        first, _, last = text.partition("-")
        found = range(options.parse_integer(first), options.parse_integer(last or first) + 1)
        found[0]  # of 9-3 there is none
        return found
    except (IndexError, ValueError):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of pieces: use 5 or 3-9") from None


def _hypothesis(args: argparse.Namespace) -> int:
    found = options.call(optdp.check_hypothesis, args)
    options.show_report(found.to_report(), args)
    return 0 if found.holds else 1


def _kernel(commands: Commands) -> None:
    parser = solve_command(commands, "kernel", "the best of all LDP mechanisms for one bounded number or place")
    _kernel_problem(parser)
    text = "range of the outputs (default: the domain, or free if unbiased)"
    option(parser, "--outputs", None, text, type=options.parse_float, nargs=2, metavar=("LOW", "HIGH"))
    text = "points and probabilities: minimise the average loss, e.g. 0:0.5 1:0.5; with --metric uniform or a column of the file"
    option(parser, "--prior", None, text, nargs="+", metavar="X:P")
    text = (
        "distances for metric privacy, eps per unit of distance: a CSV file with names and latitude, longitude or x, y, or a "
        "square matrix; cities, the places that optdp brings; abs, the distance on the interval"
    )
    option(parser, "--metric", None, text, metavar="FILE")
    text = "inputs are places in the rectangle [A, B] x [C, D] instead"
    option(parser, "--box", None, text, type=options.parse_float, nargs=4, metavar=("A", "B", "C", "D"))
    option(parser, "--backend", "auto", "dense: the plain linear program on a small grid", choices=("auto", "dense"))
    text = "draw the loss at every input beside the published mechanisms"
    option(parser, "--errors", None, text, metavar="FILE")
    text = "draw the floor, the windows and the prior of the lower bound"
    option(parser, "--structure", None, text, metavar="FILE")
    parser.set_defaults(run=_solve_kernel)

    parser = report_command(commands.report, "kernel", "the best kernels and the published mechanisms over epsilon")
    options.add_eps(parser, 0.25, 0.5, 1.0, 2.0, 3.0)
    _kernel_problem(parser, circle=False)


def _kernel_problem(parser: argparse.ArgumentParser, *, circle: bool = True) -> None:
    text = "abs, squared, power:Q, huber:C, threshold:T, pinball:TAU (default abs; squared if unbiased)"
    option(parser, "--loss", None, text, type=options.parse_loss)
    options.add_domain(parser, circle=circle)
    parser.set_defaults(domain=None)
    option(parser, "--unbiased", False, "ask for E[Y|x] = x")
    option(parser, "--rtol", 1e-3, "relative gap to stop at")
    options.add_time_limit(parser, "seconds after which no finer program is begun")


def _prior(pairs: list[str] | None) -> tuple[list[float], list[float]] | str | None:
    if pairs is None or pairs == ["uniform"]:
        return "uniform" if pairs else None
    try:
        points, chances = zip(*(map(options.parse_float, pair.split(":")) for pair in pairs), strict=True)
    except ValueError:
        allowed = "write it as X:P X:P ..., e.g. 0:0.5 1:0.5"
        raise ValueError(f"prior = {' '.join(pairs)} is not allowed: {allowed}") from None
    return list(points), list(chances)


def _places(args: argparse.Namespace) -> dict[str, object]:
    """Domain, metric and prior of places."""
    from optdp.problem.metrics import cities, read_metric

    for name in ("domain", "circle", "outputs"):
        if getattr(args, name) is not None:
            raise ValueError(f"{name} is not allowed beside --metric {args.metric}: the inputs are its places")
    if args.metric == "cities":
        domain, metric, shares = cities()
        columns = {"population": [repr(share) for share in shares.tolist()]}
    else:
        domain, metric, columns = read_metric(args.metric)  # type: ignore[assignment]
    prior: object = None
    if args.prior is not None:
        wanted = args.prior[0]
        if len(args.prior) > 1 or (wanted != "uniform" and wanted not in columns):
            raise ValueError(
                f"prior = {' '.join(args.prior)} is not allowed: it must be uniform or a column of {args.metric}"
            )
        prior = "uniform"
        if wanted != "uniform":
            sizes = [options.parse_float(cell) for cell in columns[wanted]]
            if not sum(sizes) > 0 or min(sizes) < 0:
                raise ValueError(f"prior = {wanted} is not allowed: its numbers must be >= 0, not all 0")
            prior = [size / sum(sizes) for size in sizes]
    return {"domain": domain, "metric": metric, "prior": prior}


def _solve_kernel(args: argparse.Namespace) -> int:
    placed = args.metric not in (None, "abs")
    if (args.errors or args.structure) and args.metric is not None:
        raise ValueError("errors and structure are not allowed beside --metric: use --plot")
    given: dict[str, object] = _places(args) if placed else {"prior": _prior(args.prior)}
    if args.box is not None:
        for name in ("domain", "circle", "metric", "errors", "structure"):
            if getattr(args, name) is not None:
                raise ValueError(f"{name} is not allowed beside --box")
        given["domain"] = optdp.Box(args.box[::2], args.box[1::2])
    solution = options.solve(args, **given)

    def figures() -> None:
        from optdp.report.kernel import plot_errors, plot_structure
        from optdp.report.plots import figure_of, save_figure

        if args.errors:
            save_figure(figure_of(plot_errors(solution)), args.errors)
        if args.structure:
            save_figure(plot_structure(solution), args.structure)

    return options.show_solution(solution, args, figures if args.errors or args.structure else None)


def _unbiased(commands: Commands) -> None:
    parser = solve_command(commands, "ptt", "the best unbiased piecewise transformation on [-1, 1] (LDP)")
    option(parser, "--kind", "I", "rectangle, triangle, any density", choices=("I", "II", "free"))
    option(parser, "--objective", "worst", "worst, or an input in [-1, 1]", type=_objective)
    option(parser, "--backend", "auto", "solver", choices=("auto", "scip", "lp"))
    options.add_time_limit(parser, "seconds for scip")

    parser = solve_command(commands, "composite", "the best composite mechanism for a bounded query (DP)")
    option(parser, "--activation", "A1", "constant, half a sine, triangle", choices=("A1", "A2", "A3"))
    option(parser, "--base", "B1", "constant, quartic", choices=("B1", "B2"))
    option(parser, "--objective", "center", "where the variance is least", choices=("center", "worst"))
    option(parser, "--rule", "uniform", "how ratios are bounded", choices=("uniform", "pointwise"))
    option(parser, "--sensitivity", 1.0, "length of the interval of queries")
    option(parser, "--lower", 0.0, "lowest output")
    text = "range of the queries, instead of both"
    option(parser, "--inputs", None, text, type=options.parse_float, nargs=2, metavar=("A", "B"))
    option(parser, "--backend", "auto", "grid, target: the paper's", choices=("auto", "grid", "target", "scip"))
    option(parser, "--target", None, "variance at which backend target stops", type=options.parse_float)
    options.add_time_limit(parser, "seconds for scip")

    for name, text, first in (
        ("unbiased", "optima of the unbiased families, published mechanisms, the bound", 0.25),
        ("composite", "the best composites beside the published unbiased mechanisms", 0.2),
    ):
        parser = report_command(commands.report, name, text)
        options.add_eps(parser, first, 0.5, 1.0, 2.0, 3.0, 4.0)
        option(parser, "--no-kernel", True, "leave out the bound over all unbiased mechanisms (slow)", dest="kernel")
        options.add_time_limit(parser, "seconds for that bound, each", 20.0)
    option(parser, "--objective", "center", "where the variance is least", choices=("center", "worst"))


def _objective(text: str) -> float | str:
    if text == "worst":
        return text
    try:
        return options.parse_float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not an objective: use worst or a number in [-1, 1]") from None


def _additive(commands: Commands) -> None:
    text = "the best additive noise under (eps, delta)-differential privacy or another notion"
    parser = solve_command(commands, "additive", text, eps=False)
    option(parser, "--delta", 0.0, "privacy parameter delta, in [0, 1)", type=options.parse_number)
    _additive_problem(parser, error=True)
    options.add_time_limit(parser)
    option(parser, "--releases", 1, "share (eps, delta) among so many releases of the same noise")
    text = "how releases are accounted for"
    option(parser, "--accounting", "best", text, choices=("best", "basic", "gaussian", "numerical"))
    text = (
        "another notion in place of (eps, delta): gdp:MU, kl:BOUND, rdp:ALPHA:BOUND or profile:EPS:DELTA,EPS:DELTA,..."
    )
    group = parser.add_argument_group("other notions, in place of --eps and --delta").add_mutually_exclusive_group()
    for kind, what, form in (
        ("gdp", "Gaussian differential privacy", ("MU",)), ("kl", "Kullback-Leibler divergence at most BOUND", ("BOUND",)),
        ("rdp", "Renyi divergence of order ALPHA at most BOUND", ("ALPHA", "BOUND")),
    ):  # fmt: skip
        option(group, f"--{kind}", None, what, type=options.parse_number, nargs=len(form), metavar=form)
    option(group, "--notion", None, text, type=_notion)
    text = "several pairs at once, as a notion; without any: also print delta at other epsilons, beside the baselines"
    option(parser, "--profile", None, text, type=_pair, nargs="*", metavar="EPS:DELTA")
    parser.set_defaults(run=_solve_additive)

    text = "bounds, optimum and published noises over a grid of (eps, delta)"
    parser = report_command(commands.report, "additive", text)
    options.add_eps(parser, 0.1, 0.5, 1.0, 2.0, 4.0)
    option(parser, "--delta", [1e-6, 1e-4, 1e-2, 0.1], "deltas", type=options.parse_number, nargs="+")
    _additive_problem(parser)

    text = "optimum and published noises over the parameter of Gaussian DP, KL or Renyi DP"
    parser = report_command(commands.report, "notions", text)
    option(parser, "--notion", "gdp", "which", choices=("gdp", "kl", "rdp"))
    option(
        parser, "--at", None, "its parameters: mu, or bounds", type=options.parse_number, nargs="+", metavar="NUMBER"
    )
    option(parser, "--alpha", 2.0, "the order, for rdp", type=options.parse_number)
    _additive_problem(parser, loss="squared", rtol=0.05)

    text = "what each way of accounting leaves for one of several releases"
    parser = report_command(commands.report, "releases", text)
    options.add_eps(parser, required=False)
    parser.set_defaults(eps=1.0)
    option(parser, "--delta", 1e-6, "the total delta, > 0", type=options.parse_number)
    option(parser, "--releases", [1, 10, 100], "how many", type=options.parse_integer, nargs="+")
    _additive_problem(parser, loss="squared", rtol=0.02)


def _vector(commands: Commands) -> None:
    parser = solve_command(commands, "vector", "the best unbiased mechanism for unit vectors, a ball or a cube (LDP)")
    _vector_problem(parser)
    parser.add_argument("--dim", type=options.parse_integer, required=True, help="the dimension")

    parser = report_command(commands.report, "vector", "brackets and published mechanisms over dimensions and epsilons")
    options.add_eps(parser, 0.5, 1.0, 2.0, 4.0, 8.0)
    _vector_problem(parser)
    option(parser, "--dim", [100], "dimensions", type=options.parse_integer, nargs="+")


def _frequency(commands: Commands) -> None:
    parser = solve_command(
        commands, "frequency", "the best mechanism for one of d categories, for their frequencies (LDP)"
    )
    text = "how many, or their names: 1000 or red,green,blue"
    parser.add_argument("--categories", type=_categories, required=True, help=text)
    text = (
        "a set of categories (optimal), two integers (a certified factor above it), or what is shortest within --rtol"
    )
    option(parser, "--message", "auto", text, choices=("auto", "set", "pair"))
    text = "plain: the conic program over all 2^d sets, d at most 10"
    option(parser, "--backend", "auto", text, choices=("auto", "plain"))
    text = "the same as --backend plain"
    parser.add_argument("--plain", action="store_const", const="plain", dest="backend", help=text)
    option(parser, "--rtol", 1e-3, "relative gap to reach")


def _categories(text: str) -> int | list[str]:
    return [name.strip() for name in text.split(",")] if "," in text else options.parse_integer(text)


def _vector_problem(parser: argparse.ArgumentParser) -> None:
    option(parser, "--norm", "l2", "Euclidean, or linf: the cube [-1, 1]^d", choices=("l2", "linf"))
    option(parser, "--rtol", 1e-3, "relative gap to reach")
    text = "unit vectors, or all up to norm 1 (default: sphere for l2, ball for linf)"
    option(parser, "--inputs", None, text, choices=("sphere", "ball"))


def _notion(text: str) -> Privacy:
    kind, _, rest = text.partition(":")
    try:
        if kind == "profile":
            pairs = [tuple(options.parse_number(x) for x in pair.split(":")) for pair in rest.split(",")]
            return optdp.Profile(pairs)  # type: ignore[arg-type]
        return NOTIONS[kind](*map(options.parse_number, rest.split(":")))
    except (KeyError, TypeError, ValueError) as error:
        use = "use gdp:MU, kl:BOUND, rdp:ALPHA:BOUND or profile:EPS:DELTA,..."
        reason = use if isinstance(error, KeyError) else error
        raise argparse.ArgumentTypeError(f"{text!r} is not a notion: {reason}") from None


def _pair(text: str) -> tuple[Number, Number]:
    """EPS:DELTA."""
    eps, colon, delta = text.partition(":")
    if not colon:
        raise argparse.ArgumentTypeError(f"{text!r} is not a pair: write EPS:DELTA, e.g. 1:1e-6")
    return options.parse_number(eps), options.parse_number(delta)


def _additive_problem(
    parser: argparse.ArgumentParser, loss: str = "abs", rtol: float = 1e-3, *, error: bool = False
) -> None:
    if error:
        text = (
            "abs, squared, power:Q, huber:C, threshold:T, or quantile:LEVEL, how far error bars at a confidence reach"
        )
        option(parser, "--loss", loss, text, type=options.parse_error)
    else:
        option(parser, "--loss", loss, "abs, squared or power:Q, Q >= 1", type=options.parse_loss)
    option(parser, "--sensitivity", 1.0, "how far neighbouring values are apart")
    option(parser, "--discrete", False, "noise on the integers (integer sensitivity)")
    option(parser, "--rtol", rtol, "relative gap to reach")


def _asked_notion(args: argparse.Namespace) -> Privacy | None:
    """The notion that stands in place of (eps, delta)."""
    notions: list[Privacy] = [made(*getattr(args, kind)) for kind, made in NOTIONS.items() if getattr(args, kind)]
    notions += [args.notion] if args.notion is not None else []
    if args.profile:
        if notions:
            raise ValueError("--profile EPS:DELTA is not allowed beside another notion")
        return optdp.Profile(args.profile)
    return notions[0] if notions else None


def _solve_additive(args: argparse.Namespace) -> int:
    if args.profile == [] and args.json:
        raise ValueError("--profile without pairs is not allowed with --json: it prints a table")
    notion: Any = _asked_notion(args)
    if notion is None:
        if args.eps is None:
            raise ValueError("eps is missing: give --eps, or another notion such as --gdp MU")
        solution = options.solve(args)
    else:
        if args.eps is not None or args.delta != 0:
            raise ValueError("eps and delta are not allowed beside another notion: it has its own parameters")
        solution = options.solve(args, eps=replace(notion, sensitivity=args.sensitivity), delta=0.0, sensitivity=1.0)
    status = options.show_solution(solution, args)
    if args.releases > 1 and not args.json:
        from optdp.design.additive.releases import told

        print(told(solution, args.eps, args.delta, args.releases), file=options.beside(args.out))
    if args.profile == []:
        from optdp.report.additive import profile_report

        print(f"\n{profile_report(solution)}", file=options.beside(args.out))
    return status

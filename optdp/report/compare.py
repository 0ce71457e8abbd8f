"""`optdp.compare`: the optimum of a problem, the published mechanisms and a user's own, side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp.design import registry
from optdp.exact import require
from optdp.exact.numbers import Number, above, below
from optdp.mechanisms import baselines
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.noise import AdditiveNoise
from optdp.problem import (
    LDP,
    AllMechanisms,
    At,
    Average,
    LossLike,
    Objective,
    Piecewise,
    Privacy,
    Problem,
    Quantile,
    WorstCase,
)
from optdp.problem.density import Density
from optdp.problem.domains import Circle, DomainLike, Interval, as_domain
from optdp.report.plots import bars, figure_of, plot_losses, titled
from optdp.report.report import Column, Report
from optdp.solution import Solution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Mechanisms = Mechanism | Iterable[Mechanism] | Mapping[str, Mechanism] | None
#: A user's mechanisms: one, several, by name, or a function that builds them for a problem.
Own = Mechanisms | Callable[[Problem], Mechanisms]

NUMERICAL = (
    "numerical: computed in floating point; the other values are proven upper bounds, shown to the nearest digit."
)


#: What rows of reports hold beside the mechanisms by their names.
COLUMNS = {"optimum", "eps", "dim", "lower", "value", "gap", "verified", "seconds", "problem", "all lower", "all value", "of all",
           "A2", "A3", "I-PTT = A1", "II-PTT = A3", "paper"}  # fmt: skip

#: A bracket whose relative gap is larger is told beside the table.
WIDE = 1e-2


def compare(
    problem_or_eps: Problem | Solution | Number | str, loss: LossLike = "abs", *, domain: DomainLike = (0.0, 1.0),
    mechanisms: Own = None, rtol: float = 1e-3, time_limit: float = 60.0,
) -> Report:  # fmt: skip
    """The objective of a problem for every mechanism at hand: the optimum where a design solves it, all baselines, your own.

    **Arguments:**

    - `problem_or_eps`: an `optdp.Problem`; or a `Solution`, which is then the row "optimum"; or an epsilon, with `loss` and
      `domain` as in `optdp.solve_piecewise`, for the best piecewise mechanism and its rivals.
    - `mechanisms`: a `Mechanism` of your own, several, {name: mechanism}, or a function of the problem that gives these; on the
      problem's domain. It needs `randomize` and `density` or `probability`; what is then computed by quadrature is marked
      "numerical".
    - `rtol`, `time_limit`: of the solve.

    **Returns** a `Report`, the least objective first; its plot shows the expected loss at every input.

    **Raises** TypeError or ValueError naming a mechanism that is none, that is for another domain, or that has the name of
    another row.

        >>> import optdp
        >>> report = optdp.compare(1.0, "squared")
        >>> [row["mechanism"] for row in report.rows][:2]
        ['optimum', 'moved PTT']
    """
    best = problem_or_eps if isinstance(problem_or_eps, Solution) else None
    if isinstance(problem_or_eps, Problem | Solution):
        problem = problem_or_eps if isinstance(problem_or_eps, Problem) else problem_or_eps.problem
    else:
        problem = Problem(LDP(require.exact_epsilon(problem_or_eps)), as_domain(domain), WorstCase(loss), Piecewise(3))
    own, notes = named(mechanisms, problem), []
    shown = dict(baselines.applicable(problem)) | own
    design = next((design for design in registry.designs() if design.accepts(problem) is None), None)
    if best is None and design is not None:
        best = registry.solve(problem, rtol, time_limit, **design.least)
    if best is not None:
        shown = {"optimum": best.mechanism, **shown}
        wide = f', and at most {above(best.value, 9)}, which the row "optimum" attains' if best.gap > WIDE else ""
        notes.append(f"Proven: {problem.statement()} is at least {below(best.lower_bound, 9)}{wide}.")
    else:
        notes.append("No design solves this problem: there is no optimum to compare with.")
    rows = [_row(name, mechanism, problem) for name, mechanism in shown.items()]
    anyone = isinstance(problem.family, AllMechanisms)
    everyone = None if best is None or anyone else best_of_all(problem, rtol, time_limit)
    if best is not None:
        rows[0]["value"] = best.value
    for column, optimum in (("ratio", best), ("of all", everyone)):
        if optimum is not None:
            for row in rows:
                row[column] = row["value"] / optimum.value if optimum.value else None
    if everyone is not None:
        proven = f"at least {below(everyone.lower_bound, 9)}, and {above(everyone.value, 9)} is attained"
        notes.append(f"Best of all: {everyone.problem.statement()} is {proven}.")
    if best is not None and best.assumptions:
        notes.append(f"Bounds and values hold provided that {best.assumptions}.")
    rows.sort(key=lambda row: row["value"])
    if best is not None:  # a solution that was given, or what lies in the bracket
        kept = (row for row in rows if (row["numbers"], row["guarantee"], row["family"]) == ("proven", "yes", "yes"))
        less = [
            row["mechanism"] for row in kept if row["value"] < best.value and _keeps(shown[row["mechanism"]], problem)
        ]
        if less:
            notes.append(f'Less than the row "optimum", whose gap is at most {above(best.gap, 2)}: {", ".join(less)}.')
    if best is not None and not all(row["family"] == "yes" for row in rows):
        notes.append("in the family: the bound holds for these only; other mechanisms may go below it.")
    for name in shown:
        source = baselines.baselines()[name].source if name not in own and name != "optimum" else ""
        if found := source.partition("optdp, discovery ")[2]:
            notes.append(f"{name}: not published, but found here (discovery {found}).")
    if outside := [name for name, mechanism in own.items() if not _keeps(mechanism, problem)]:
        asked = "unbiased" if problem.unbiased else "within the range of outputs"
        notes.append(f"Not shown to be {asked}, so that the bound need not hold for them: {', '.join(outside)}.")
    if any(row["numbers"] == "numerical" for row in rows):
        notes.append(NUMERICAL)
    worst = isinstance(problem.objective, WorstCase) and isinstance(problem.domain, Interval)
    columns = [
        Column("mechanism", "mechanism"), Column("value", problem.objective.name),
        *([] if best is None else [Column("ratio", "/ optimum" if anyone else "/ best of family", ".4f")]),
        *([] if everyone is None else [Column("of all", "/ best of all", ".4f")]),
        *([Column("average", "uniform average"), Column("worst_input", "worst input", ".4g")] if worst else []),
        Column("numbers", "numbers"), Column("guarantee", problem.privacy.adjective),
        *([] if anyone else [Column("family", "in the family")]),
    ]  # fmt: skip
    title = problem.statement()[0].upper() + problem.statement()[1:]

    def figure() -> Figure:
        if isinstance(problem.domain, Interval):
            return figure_of(titled(plot_losses(shown, problem.loss), title))
        values = {row["mechanism"]: row["value"] for row in rows}
        return bars(values, problem.objective.name, title, first="optimum")

    return Report(title, columns, rows, notes, figure)


def _keeps(mechanism: Mechanism, problem: Problem) -> bool:
    """Whether a mechanism is shown to keep the problem's constraints, exactly or (where its mean has no proof) numerically."""
    for check in mechanism.feasible(problem):
        if check.name not in ("unbiased", "outputs") or check.passed:
            continue
        if check.name == "outputs" or not isinstance(problem.domain, Interval):
            return False
        x = np.linspace(problem.domain.lower, problem.domain.upper, 9)
        if not np.allclose(mechanism.mean(x), x, rtol=0, atol=1e-6 * problem.domain.width):
            return False
    return True


def best_of_all(problem: Problem, rtol: float, time_limit: float) -> Solution | None:
    """The optimum over all mechanisms in place of the problem's family; None where no design finds it, or it is the same."""
    wider = replace(problem, family=AllMechanisms())
    if isinstance(problem.domain, Circle) or all(design.accepts(wider) is not None for design in registry.designs()):
        return None
    return registry.solve(wider, rtol, time_limit)


def named(mechanisms: Own, problem: Problem) -> dict[str, Mechanism]:
    """A user's mechanisms by name (by default that of the class), each checked to be one for the problem's domain."""
    if callable(mechanisms) and not isinstance(mechanisms, type):  # a class is made from other arguments than a problem
        mechanisms = mechanisms(problem)
    if mechanisms is None:
        return {}
    if not isinstance(mechanisms, Mechanism | Iterable):
        allowed = "it must be a Mechanism, not its class, several, or a mapping from names to them"
        raise TypeError(f"mechanisms = {mechanisms!r} is not allowed: {allowed}")
    given: dict[str, Mechanism] = dict(mechanisms) if isinstance(mechanisms, Mapping) else {}
    taken = COLUMNS | baselines.baselines().keys()
    if not isinstance(mechanisms, Mapping):
        for mechanism in [mechanisms] if isinstance(mechanisms, Mechanism) else mechanisms:
            name = type(mechanism).__name__
            given[name if name not in taken | given.keys() else f"{name} ({len(given) + 1})"] = mechanism
    for name, mechanism in given.items():
        require.label("name of a mechanism", name)
        if name in taken:
            raise ValueError(
                f"mechanisms: {name!r} is the name of another row or column, which is not allowed: choose another"
            )
        if not isinstance(mechanism, Mechanism):
            must = "pass a mechanism, not its class" if isinstance(mechanism, type) else "subclass optdp.Mechanism"
            raise TypeError(f"mechanisms: {name} is no Mechanism, which is not allowed: {must}")
        if not hasattr(mechanism, "domain"):
            raise TypeError(
                f"mechanisms: {name} has no domain, which is not allowed: set it, as in self.domain = optdp.Interval(0, 1)"
            )
        if mechanism.domain != problem.domain:
            raise ValueError(f"mechanisms: {name} takes inputs from {mechanism.domain}, not from {problem.domain}")
    return given


def value_of(mechanism: Mechanism, objective: Objective) -> tuple[float, bool]:
    """The objective's value for a mechanism, and whether it is proven (then it is rounded up) or numerical."""
    with suppress(TypeError):
        return mechanism.enclose(objective)[1], True
    if isinstance(objective, At):
        return float(mechanism.expected_loss(objective.x, objective.loss)), False
    if isinstance(objective, Average):
        prior = objective.prior
        if prior == "uniform":
            return mechanism.average_loss(objective.loss), False
        if isinstance(prior, Density):
            low, high = float(prior.breaks[0]), float(prior.breaks[-1])
            x = low + (high - low) * (np.arange(4096) + 0.5) / 4096
            return float(np.average(mechanism.expected_loss(x, objective.loss), weights=prior(x))), False
        return float(mechanism.expected_loss(list(prior.categories), objective.loss) @ prior.probabilities), False
    if isinstance(objective, WorstCase):
        return mechanism.worst_case_loss(objective.loss), False
    if isinstance(objective, Quantile) and isinstance(mechanism, AdditiveNoise):  # which is symmetric
        return float(mechanism.quantile((1 + objective.level) / 2)), False
    raise TypeError(
        f"objective = {objective} is not allowed: {type(mechanism).__name__} has no value for it; define "
        "the method enclose(objective), which gives the two ends of an interval that holds it"
    )


def _row(name: str, mechanism: Mechanism, problem: Problem) -> dict[str, Any]:
    value, proven = value_of(mechanism, problem.objective)
    row: dict[str, Any] = {
        "mechanism": name, "value": value, "numbers": "proven" if proven else "numerical",
        "guarantee": guarantees(mechanism, problem),
        "family": "yes" if problem.family.contains(mechanism, problem.eps) else "no",
    }  # fmt: skip
    if isinstance(problem.objective, WorstCase) and isinstance(problem.domain, Interval):
        row["average"] = mechanism.average_loss(problem.loss)
        row["worst_input"] = float(mechanism.worst_input(problem.loss))
    return row


def guarantees(mechanism: Mechanism, problem: Problem) -> str:
    """Whether a mechanism has the problem's guarantee: "yes" (exactly), "in real arithmetic" (only), "no", "not known"."""
    own = mechanism.guarantee()
    if own is None:
        return "not claimed"
    if not isinstance(own, Privacy):
        allowed = "it must be a privacy notion such as optdp.LDP(1.0), or None"
        raise TypeError(f"guarantee() of {type(mechanism).__name__} gave {own!r}, which is not allowed: {allowed}")
    answer = mechanism.satisfies(problem.privacy)
    if answer is None and own.ideal and mechanism.satisfies(problem.privacy.in_real_arithmetic()):
        return "in real arithmetic"
    return {True: "yes", False: "no", None: "not known"}[answer]

"""`optdp.gap_report`: certified brackets, and the published mechanisms or your own beside them."""

from __future__ import annotations

import html
import importlib
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from optdp.design.sweep import sweep
from optdp.exact import Number, number, require
from optdp.mechanisms.base import Mechanism
from optdp.problem.problem import Problem
from optdp.report.compare import NUMERICAL, Own, named, value_of
from optdp.report.plots import curves, figure_of, titled
from optdp.report.report import Column, Report, html_page
from optdp.solution import Solution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Problems with a report of their own: `optdp.report.<name>.gap_report(**spec)`.
PROBLEMS = ("piecewise", "kernel", "unbiased", "composite", "additive", "notions", "releases", "lip", "vector")

#: The bracket of the best of all mechanisms.
ALL = Column("all lower", "all: bound", rounding="down"), Column("all value", "all: attained", rounding="up")

#: One number or several.
Levels = Number | str | Iterable[Number | str]


def gap_report(
    solutions_or_spec: Solution | Sequence[Solution] | Mapping[str, Any], *, mechanisms: Own = None
) -> Report:
    """A table of certified brackets, with the mechanisms of your own beside them.

    **Arguments:**

    - `solutions_or_spec`: one or more `Solution`s, or a mapping with "problem" (one of `optdp.report.gap.PROBLEMS`) and the
      keyword arguments of that problem's report, e.g. `{"problem": "piecewise", "eps": [0.5, 1, 2], "loss": "squared"}`: then
      the published mechanisms stand beside.
    - `mechanisms`: as in `optdp.compare`.

    **Returns** a `Report`: `.to_frame()`, `.to_markdown()`, `.to_html()`, `.plot()`.

        >>> import optdp
        >>> report = optdp.gap_report([optdp.solve_piecewise(eps) for eps in (0.5, 1.0)])
        >>> [row["verified"] for row in report.rows]
        [True, True]
    """
    if isinstance(solutions_or_spec, Mapping):
        spec = dict(solutions_or_spec)
        if "problem" not in spec:
            raise ValueError(
                f"solutions_or_spec has no 'problem', which must be there: one of {', '.join(map(repr, PROBLEMS))}"
            )
        name = require.choice("problem", spec.pop("problem"), PROBLEMS)
        build = importlib.import_module(f"optdp.report.{name}").gap_report
        known = list(inspect.signature(build).parameters)
        if strange := [key for key in spec if key not in known]:
            raise TypeError(f"{strange[0]!r} is not allowed with problem = {name!r}: it takes {', '.join(known)}")
        if mechanisms is not None:
            if "mechanisms" not in known:
                instead = "solve, and give gap_report the solutions"
                raise TypeError(f"mechanisms is not allowed with problem = {name!r}: {instead}")
            spec["mechanisms"] = mechanisms
        report: Report = build(**spec)
        return report
    solutions = listed(solutions_or_spec)
    if not solutions or not all(isinstance(s, Solution) for s in solutions):
        allowed = "it must be one or more Solutions, or a mapping with 'problem'"
        raise TypeError(f"solutions_or_spec = {solutions_or_spec!r} is not allowed: {allowed}")
    return table(
        solutions, "Certified brackets", lambda problem: named(mechanisms, problem), Column("problem", "problem")
    )


def listed(values: Any) -> list[Any]:
    """One thing or several."""
    return list(values) if isinstance(values, Iterable) and not isinstance(values, str | bytes) else [values]


def several(name: str, values: Levels) -> list[Number]:
    """One number or several of a grid, each of them exact. **Raises** TypeError or ValueError naming the argument."""
    many = listed(values)
    if not many:
        raise ValueError(f"{name} is not allowed to be empty: it must be one number or several")
    return [number(value, name) for value in many]


def values(mechanisms: Mapping[str, Mechanism], problem: Problem, proven: dict[str, bool]) -> dict[str, float]:
    """The problem's objective for each mechanism; `proven` is told for each name whether all of its numbers are proven."""
    found = {name: value_of(mechanism, problem.objective) for name, mechanism in mechanisms.items()}
    proven |= {name: proven.get(name, True) and known for name, (_, known) in found.items()}
    return {name: value for name, (value, _) in found.items()}


def table(
    solutions: Sequence[Solution], title: str, rivals: Callable[[Problem], dict[str, Mechanism]], *more: Column,
    note: str | None = None, everyone: Sequence[Solution] = (),
) -> Report:  # fmt: skip
    """The brackets of solutions, each rival's objective as a ratio to the value, and a figure over epsilon.

    **Arguments:** `rivals`: the mechanisms beside the optimum of a problem; `more`: further columns; `note`: what follows the
    statement of the first problem in the notes; `everyone`: for each solution the best of all mechanisms, for a family.
    """
    to = "best of family" if everyone else "value"
    rows: list[dict[str, Any]] = []
    proven: dict[str, bool] = {}
    for k, solution in enumerate(solutions):
        problem = solution.problem
        row: dict[str, Any] = {"eps": None if problem.eps is None else float(problem.eps), "lower": solution.lower_bound,
               "value": solution.value, "gap": solution.gap, "verified": bool(solution.verify()),
               "seconds": solution.program.seconds, "problem": problem.statement()}  # fmt: skip
        if everyone:
            best = everyone[k]
            row |= {"all lower": best.lower_bound, "all value": best.value, "of all": solution.value / best.value}
        for name, value in values(rivals(problem), problem, proven).items():
            row[name] = value / solution.value if solution.value else None
        rows.append(row)
    columns = [
        Column("eps", "eps", "g"), Column("lower", "lower bound", ".9g", "down"), Column("value", "value", ".9g", "up"),
        Column("gap", "gap", ".1e"),
        *([*ALL, Column("of all", "value / best of all", ".4f")] if everyone else []),
        *(Column(name, f"{name} / {to}", ".4f") for name in proven),
        Column("verified", "verified"), Column("seconds", "seconds", ".3g"), *more,
    ]  # fmt: skip
    first = solutions[0].problem
    notes = [] if note is None else [f"At eps = {first.eps}: {first.statement()} {note}"]
    if everyone:
        notes.append(
            f"all: {everyone[0].problem.statement()}, at the first eps, is between its bound and what is attained."
        )
    notes.append("gap = (value - lower bound) / value; verified: checked again without the solver.")
    trusted = dict.fromkeys(s.assumptions for s in (*solutions, *everyone) if s.assumptions)
    notes += [f"Bounds and values hold provided that {told}." for told in trusted]
    if not all(proven.values()):
        notes.append(NUMERICAL)
    ratios: dict[str, Any] = {name: [row.get(name) for row in rows] for name in proven}
    if everyone:
        ratios = {"best of all": [1 / row["of all"] for row in rows], **ratios}
    known = all(row["eps"] for row in rows)
    figure = ratio_figure(title, [row["eps"] for row in rows], ratios, to, f"{first.objective.name} / {to}")
    return Report(title, columns, rows, notes, figure if ratios and known else None)


def ratio_figure(
    title: str, x: Sequence[float], ratios: Mapping[str, Any], to: str, ylabel: str, xlabel: str = "epsilon"
) -> Callable[[], Figure]:
    """Objectives over epsilon or another number, divided by that of `to`, which is the line at 1."""

    def figure() -> Figure:
        axes = curves(x, {to: [1.0] * len(x), **ratios}, logs="xy", xlabel=xlabel, ylabel=ylabel)
        return figure_of(titled(axes, title))

    return figure


def gap_page(progress: bool | None = None) -> str:
    """One self-contained page with the gap report of every problem at its default grid (`optdp report all --html`)."""
    reports = sweep(_default_report, PROBLEMS, progress=progress, label="reports")
    found = list(zip(PROBLEMS, reports, strict=True))
    contents = "".join(f"<li><a href='#{name}'>{html.escape(report.title)}</a></li>" for name, report in found)
    sections = (f"<section id='{name}'>\n{report.to_html(page=False)}\n</section>" for name, report in found)
    return html_page(
        "optdp: gap reports",
        "<h1>Optimality gaps</h1>\n<p>For each problem: the certified bracket of the optimum and the published mechanisms "
        f"beside it. Lower bounds are proven, values attained.</p>\n<ul>{contents}</ul>\n" + "\n".join(sections),
    )


def _default_report(problem: str) -> Report:
    return gap_report({"problem": problem})

"""`optdp.gap_report`: certified brackets, and the published mechanisms or your own beside them."""

from __future__ import annotations

import html
import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from optdp.design.sweep import sweep
from optdp.exact import require
from optdp.mechanisms.base import Mechanism
from optdp.problem.problem import Problem
from optdp.report.compare import NUMERICAL, Own, named, value_of
from optdp.report.plots import line, log_ticks, new_axes, titled
from optdp.report.report import Column, Report, html_page
from optdp.solution import Solution

#: Problems with a report of their own: `optdp.report.<name>.gap_report(**spec)`.
PROBLEMS = ("piecewise", "kernel", "unbiased", "additive", "lip")

#: A user's mechanisms, or one function that builds them for a problem.
Rivals = Own | Callable[[Problem], Mechanism | Mapping[str, Mechanism]]


def gap_report(
    solutions_or_spec: Solution | Sequence[Solution] | Mapping[str, Any], *, mechanisms: Rivals = None
) -> Report:
    """A table of certified brackets, with the mechanisms of your own beside them.

    **Arguments:**

    - `solutions_or_spec`: one or more `Solution`s, or a mapping with "problem" (one of `optdp.report.gap.PROBLEMS`) and the
      keyword arguments of that problem's report, e.g. `{"problem": "piecewise", "eps": [0.5, 1, 2], "loss": "squared"}`: then
      the published mechanisms stand beside.
    - `mechanisms`: as in `optdp.compare`; or a function of the problem that gives the mechanism (or {name: mechanism}) for it.

    **Returns** a `Report`: `.to_frame()`, `.to_markdown()`, `.to_html()`, `.plot()`.

        >>> import optdp
        >>> report = optdp.gap_report([optdp.solve_piecewise(eps) for eps in (0.5, 1.0)])
        >>> [row["verified"] for row in report.rows]
        [True, True]
    """
    if isinstance(solutions_or_spec, Mapping):
        spec = dict(solutions_or_spec)
        name = require.choice("problem", spec.pop("problem", None), PROBLEMS)
        build = importlib.import_module(f"optdp.report.{name}").gap_report
        if mechanisms is not None:
            if "mechanisms" not in inspect.signature(build).parameters:
                raise TypeError(
                    f"mechanisms is not allowed with problem = {name!r}: solve, and give gap_report the solutions"
                )
            spec["mechanisms"] = mechanisms
        report: Report = build(**spec)
        return report
    solutions = [solutions_or_spec] if isinstance(solutions_or_spec, Solution) else list(solutions_or_spec)
    wrong = next((s for s in solutions if not isinstance(s, Solution)), None)
    if wrong is not None or not solutions:
        raise TypeError(
            f"solutions_or_spec = {wrong!r} is not allowed: it must be Solutions or a mapping with 'problem'"
        )
    return table(solutions, "Certified brackets", mechanisms, Column("problem", "problem"))


def table(solutions: Sequence[Solution], title: str, mechanisms: Rivals = None, *more: Column) -> Report:
    """The brackets of solutions, each mechanism's objective as a ratio to the value, and a figure over epsilon.

    **Arguments:** `mechanisms`: as in `gap_report`; `more`: further columns.
    """
    rows: list[dict[str, Any]] = []
    names: dict[str, bool] = {}  # name -> whether its numbers are proven
    for solution in solutions:
        problem = solution.problem
        row = {"eps": None if problem.eps is None else float(problem.eps), "lower": solution.lower_bound,
               "value": solution.value, "gap": solution.gap, "verified": bool(solution.verify()),
               "seconds": solution.program.seconds, "problem": problem.statement()}  # fmt: skip
        own: Any = mechanisms(problem) if callable(mechanisms) else mechanisms
        for name, mechanism in named(own, problem).items():
            value, proven = value_of(mechanism, problem.objective)
            row[name] = value / solution.value if solution.value else None
            names[name] = names.get(name, True) and proven
        rows.append(row)
    columns = [
        Column("eps", "eps", "g"), Column("lower", "lower bound", ".9g"), Column("value", "value", ".9g"),
        Column("gap", "gap", ".1e"), *(Column(name, f"{name} / value", ".4f") for name in names),
        Column("verified", "verified"), Column("seconds", "seconds", ".3g"), *more,
    ]  # fmt: skip
    notes = ["gap = (value - lower bound) / value; verified: checked again without the solver."]
    if not all(names.values()):
        notes.append(NUMERICAL)

    def figure() -> Any:
        axes = new_axes(size=(7.2, 4.4))
        x = [row["eps"] for row in rows]
        axes.axhline(1.0, label="value (its bracket is in the table)", **line(0))
        for k, name in enumerate(names, 1):
            axes.plot(x, [row.get(name) for row in rows], marker="o", ms=4, label=name, **line(k))
        axes.set(xlabel="epsilon", ylabel="objective / value", yscale="log")
        axes.yaxis.set_major_formatter("{x:g}")
        log_ticks(axes, x)
        axes.legend(frameon=False)
        return titled(axes, title).figure

    return Report(title, columns, rows, notes, figure if names and all(row["eps"] for row in rows) else None)


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

"""`optdp.gap_report`: how far from the optimum, for solutions at hand or for a whole grid of problems."""

from __future__ import annotations

import html
import importlib
from collections.abc import Mapping, Sequence
from typing import Any

from optdp.exact import require
from optdp.report.report import Column, Report
from optdp.solution import Solution

#: Problems with a report of their own: `optdp.report.<module>.gap_report(**spec)`.
PROBLEMS = {
    "piecewise": "piecewise",
    "kernel": "kernel",
    "unbiased": "unbiased",
    "additive": "additive",
    "lip": "lip",
}


def gap_report(solutions_or_spec: Solution | Sequence[Solution] | Mapping[str, Any]) -> Report:
    """A table of certified brackets.

    **Arguments:** `solutions_or_spec`: one or more `Solution`s, or a mapping with "problem" (one of
    `optdp.report.gap.PROBLEMS`) and the keyword arguments of that problem's report, e.g.
    `{"problem": "piecewise", "eps": [0.5, 1, 2], "loss": "squared"}`: then the published mechanisms stand beside.

    **Returns** a `Report`: `.to_frame()`, `.to_markdown()`, `.to_html()`, `.plot()`.
    """
    if isinstance(solutions_or_spec, Mapping):
        spec = dict(solutions_or_spec)
        problem = require.choice("problem", spec.pop("problem", None), tuple(PROBLEMS))
        module = importlib.import_module(f"optdp.report.{PROBLEMS[problem]}")
        report: Report = module.gap_report(**spec)
        return report
    solutions = [solutions_or_spec] if isinstance(solutions_or_spec, Solution) else list(solutions_or_spec)
    wrong = next((s for s in solutions if not isinstance(s, Solution)), None)
    if wrong is not None or not solutions:
        raise TypeError(
            f"solutions_or_spec = {wrong!r} is not allowed: it must be Solutions or a mapping with 'problem'"
        )
    rows = [
        {"program": s.program.name, "lower": s.lower_bound, "value": s.value, "gap": s.gap, "verified": bool(s.verify()),
         "seconds": s.program.seconds}
        for s in solutions
    ]  # fmt: skip
    columns = [
        Column("program", "program"),
        Column("lower", "lower bound", ".9g"),
        Column("value", "value", ".9g"),
        Column("gap", "gap", ".1e"),
        Column("verified", "verified"),
        Column("seconds", "seconds", ".3g"),
    ]
    return Report(
        "Certified brackets",
        columns,
        rows,
        ["gap = (value - lower bound) / value; verified: checked again without the solver."],
    )


def gap_page(progress: bool | None = None) -> str:
    """One self-contained page with the gap report of every problem at its default grid (`optdp report all --html`)."""
    from optdp.design.sweep import sweep
    from optdp.report.report import STYLE

    reports = sweep(_default_report, PROBLEMS, progress=progress, label="reports")
    contents = "".join(
        f"<li><a href='#{p}'>{html.escape(r.title)}</a></li>" for p, r in zip(PROBLEMS, reports, strict=True)
    )
    sections = "\n".join(
        f"<section id='{p}'>\n{r.to_html(page=False)}\n</section>" for p, r in zip(PROBLEMS, reports, strict=True)
    )
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>optdp: gap reports</title><style>{STYLE}"
        f"</style></head>\n<body>\n<h1>How far from the optimum?</h1>\n<p>For each problem: the certified bracket of the "
        f"optimum and the published mechanisms beside it. Lower bounds are proven, values attained.</p>\n<ul>{contents}</ul>"
        f"\n{sections}\n</body></html>\n"
    )


def _default_report(problem: str) -> Report:
    return gap_report({"problem": problem})

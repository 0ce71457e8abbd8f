"""The tour behind `optdp demo`: solve, prove, compare, and ask a table of people private questions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from optdp import check_hypothesis, compare, solve_piecewise
from optdp.exact.numbers import Number, show
from optdp.report.plots import new_axes, pyplot, save_figure
from optdp.report.report import Column, Report
from optdp.statistics import schema
from optdp.statistics.answers import Answers
from optdp.statistics.plan import Plan, plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: Fixed by the questionnaire and not by looking at the data.
SCHEMA: dict[str, schema.Column] = {
    "diseases": schema.Number(0, 60),
    "visits": schema.Integer(0, 20, unit="a year", outside="clip"),
    "health": schema.Category(("excellent", "good", "fair", "poor")),
    "deductible": schema.Flag(),
}


def people() -> tuple[str, dict[str, np.ndarray]]:
    """Four columns of 20,190 person-years in the RAND Health Insurance Experiment (public domain).

    Shipped by statsmodels (`statsmodels.datasets.randhie`), from Cameron and Trivedi, "Microeconometrics" (2005).

    **Returns** a description and the table; without statsmodels a generated one, and a description that says so.
    """
    names = np.array(["excellent", "good", "fair", "poor"])
    try:
        from statsmodels.datasets import randhie
    except ImportError:
        rng = np.random.default_rng(0)
        table = {
            "diseases": rng.beta(1.4, 6.0, 20_000) * 58.6, "visits": rng.geometric(0.26, 20_000) - 1,
            "health": rng.choice(names, 20_000, p=[0.55, 0.36, 0.075, 0.015]), "deductible": rng.random(20_000) < 0.26,
        }  # fmt: skip
        return "20,000 generated people (a real table comes with statsmodels: pip install 'optdp[data]')", table
    data = randhie.load_pandas().data
    grade = data["hlthg"] + 2 * data["hlthf"] + 3 * data["hlthp"]
    table = {
        "diseases": data["disea"].to_numpy(dtype=float), "visits": data["mdvis"].to_numpy(dtype=int),
        "health": names[grade.to_numpy(dtype=int)], "deductible": data["idp"].to_numpy(dtype=float) == 1,
    }  # fmt: skip
    return f"{len(data):,} person-years of the RAND Health Insurance Experiment", table


def truth(survey: Plan, table: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the estimates are about: means, and the frequencies of the categories."""
    found = {}
    for part in survey.parts:
        inputs, domain = part.column.encode(table[part.name], part.name), part.column.domain
        counts = np.bincount(inputs.astype(int), minlength=len(domain.labels)) if hasattr(domain, "labels") else None
        found[part.name] = np.array([inputs.mean()]) if counts is None else counts / inputs.size
    return found


def run(folder: str | Path, eps: Number = 1.0, seed: int = 0) -> int:
    """Print the tour and leave its figure in `folder`, if matplotlib is there. **Returns** 0 if everything verified, else 1."""
    print(f"1. The best piecewise mechanism for a number in [0, 1] under {show(eps)}-local differential privacy\n")
    best = solve_piecewise(eps, 3, "abs")
    verification = best.verify()
    print(best)
    print(f"  closed form: {best.closed_form}")
    print(verification)

    print("\n2. Could four to nine pieces do better? A proof at each of 1000 random epsilons\n")
    hypothesis = check_hypothesis(1000, range(4, 10), seed=seed)
    print(hypothesis)

    print("\n3. Beside the published mechanisms\n")
    print(compare(eps))

    print("\n4. A table of several columns made private, and what it still says\n")
    described, table = people()
    survey = plan(SCHEMA, eps, n=table["visits"].size)
    print(survey.summary())
    private = survey.randomize(table, seed)  # with a seed, so that the tour can be repeated; leave it out for people
    answers, true = survey.estimate(private), truth(survey, table)
    rows = []
    for name, found in answers.items():
        value, error = np.atleast_1d(found.value), np.atleast_1d(found.standard_error)
        (low, high), points = map(np.atleast_1d, found.interval), found.points or (found.what,)
        rows += [
            {"column": name, "point": str(point), "estimate": v, "error": e, "low": a, "high": b, "truth": t}
            for point, v, e, a, b, t in zip(points, value, error, low, high, true[name], strict=True)
        ]
    columns = [
        Column("column", "column"), Column("point", "of"), Column("estimate", "estimate", ".4g"),
        Column("error", "standard error", ".2g"), Column("low", "low", ".4g"), Column("high", "high", ".4g"),
        Column("truth", "truth", ".4g"),
    ]  # fmt: skip
    inside = sum(row["low"] <= row["truth"] <= row["high"] for row in rows)
    notes = [
        "Estimates and 95 % intervals come from the private table alone; the truth is printed beside them to compare.",
        f"{inside} of {len(rows)} intervals contain it.",
    ]
    print(f"\n{Report(f'{described}, eps = {show(eps)} for a whole row', columns, rows, notes)}")
    try:
        picture = Path(folder) / "private-table.png"
        figure = _figure(survey, answers, true)
        picture.parent.mkdir(parents=True, exist_ok=True)
        save_figure(figure, picture)
        print(f"\nFigure: {picture}")
    except RuntimeError as error:
        print(f"\nNo figure: {error}")
    return 0 if verification and hypothesis.holds else 1


def _figure(survey: Plan, answers: Answers, true: dict[str, np.ndarray]) -> Figure:
    """A panel for each column: estimates with their intervals, and the truth."""
    parts = survey.parts
    figure, panels = pyplot().subplots(1, len(parts), figsize=(3.1 * len(parts), 3.4), layout="constrained")
    for axes, part in zip(np.ravel(panels), parts, strict=True):
        found = answers[part.name]
        value, low, high = map(np.atleast_1d, (found.value, *found.interval))
        places = np.arange(value.size)
        new_axes(axes).bar(places, true[part.name], color="#dddddd", width=0.6, label="true")
        axes.errorbar(places, value, [value - low, high - value], fmt="o", capsize=4, label="from private answers")
        labels = [str(point) for point in found.points] or [f"mean {getattr(part.column, 'unit', '')}".rstrip()]
        axes.set_xticks(places, labels, rotation=30 if value.size > 2 else 0)
        axes.set(title=part.name, xlim=(-0.8, value.size - 0.2), ylim=(0, None))
    np.ravel(panels)[0].legend(fontsize=8, loc="lower center")
    figure.suptitle(f"Estimates with 95 % intervals; a whole row is {show(survey.eps)}-LDP", fontsize=9)
    return figure

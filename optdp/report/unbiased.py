"""The gap report of the unbiased families on [-1, 1]: certified optima, published mechanisms, the bound over all mechanisms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from optdp.design.registry import solve
from optdp.exact.numbers import below
from optdp.mechanisms.baselines import applicable
from optdp.problem import LDP, AffineWindow, AllMechanisms, Composite, Interval, Problem, Unbiased, WorstCase
from optdp.report.compare import NUMERICAL, Own, named
from optdp.report.gap import ALL, Levels, ratio_figure, several, values
from optdp.report.report import Column, Report

#: Families with a certified optimum, by heading. B2 has the infimum of B1.
FAMILIES = {"I-PTT = A1": AffineWindow("I"), "II-PTT = A3": AffineWindow("II"), "A2": Composite("A2", "B1")}


def gap_report(
    eps: Levels = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0), *, kernel: bool = True, rtol: float = 1e-2,
    time_limit: float = 20.0, mechanisms: Own = None,
) -> Report:  # fmt: skip
    """Worst-case variance on [-1, 1]: the optimum of each family, the published mechanisms, and what no unbiased mechanism beats.

    **Arguments:** `eps`: privacy parameters; `kernel`: whether to bracket the optimum over all unbiased eps-LDP mechanisms;
    `rtol`, `time_limit` (seconds for each epsilon): of that solve; `mechanisms`: as in `optdp.gap_report`.

    **Returns** a `Report`; the columns of families hold certified optima (their relative gaps are in the rows), those of
    mechanisms worst-case variances.
    """
    rows: list[dict[str, Any]] = []
    notes: list[str] = []
    proven: dict[str, bool] = {}
    for e in several("eps", eps):
        everyone = Problem(LDP(e), Interval(-1.0, 1.0), WorstCase("squared"), AllMechanisms(), (Unbiased(),))
        row: dict[str, Any] = {"eps": float(everyone.eps)}  # type: ignore[arg-type]
        told = []
        for name, family in FAMILIES.items():
            solution = solve(replace(everyone, family=family), 1e-9)
            row |= {name: solution.value, f"{name} gap": solution.gap, f"{name} lower": solution.lower_bound}
            told.append(f"{name}: {solution.problem.statement()} is at least {below(solution.lower_bound, 9)}.")
        row |= values(applicable(everyone) | named(mechanisms, everyone), everyone, proven)
        if kernel:
            best = solve(everyone, rtol, time_limit)
            row |= {"all lower": best.lower_bound, "all value": best.value}
            told.append(f"all: {everyone.statement()} is at least {below(best.lower_bound, 9)}.")
        notes = notes or told
        rows.append(row)
    columns = [Column("eps", "eps", "g"), *(ALL if kernel else ())]
    columns += [Column(name, f"{name}*") for name in FAMILIES] + [Column(name, name) for name in proven]
    gap = max(row[f"{name} gap"] for row in rows for name in FAMILIES)
    notes += [
        f"Columns with * are optima of their family, certified: largest relative gap {gap:.1e}. B2 has B1's infimum.",
        "Composite variances for a query of sensitivity 1 are a quarter of these.",
    ]
    if not all(proven.values()):
        notes.append(NUMERICAL)
    title = f"Unbiased mechanisms on {everyone.domain}: {everyone.objective.name}"
    first, *others = FAMILIES
    shown = {name: name for name in (*others, *proven)} | ({"all lower": "bound for all unbiased"} if kernel else {})
    ratios = {label: [row[name] / row[first] if name in row else None for row in rows] for name, label in shown.items()}
    figure = ratio_figure(
        title, [row["eps"] for row in rows], ratios, f"{first}, optimal", "worst-case variance / best I-PTT"
    )
    return Report(title, columns, rows, notes, figure)

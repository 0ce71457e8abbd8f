"""The gap report of bounded unbiased composites: the certified optima of the activations, and what else answers without bias."""

from __future__ import annotations

from typing import Any

from optdp.design.composite import solve_composite
from optdp.design.kernel import solve_kernel
from optdp.exact import require
from optdp.exact.numbers import below
from optdp.mechanisms.baselines import applicable
from optdp.report.compare import NUMERICAL, Own, named
from optdp.report.gap import ALL, Levels, ratio_figure, several, values
from optdp.report.report import Column, Report

ACTIVATIONS = ("A1", "A2", "A3")


def gap_report(
    eps: Levels = (0.2, 0.5, 1.0, 2.0, 3.0, 4.0), objective: str = "center", *, kernel: bool = True, rtol: float = 1e-2,
    time_limit: float = 20.0, mechanisms: Own = None,
) -> Report:  # fmt: skip
    """Variance of queries in [0, 1]: the best composite of each activation with B1, and the published unbiased mechanisms.

    **Arguments:** `eps`: one epsilon or several; `objective`: "center" or "worst", as in `optdp.solve_composite`; `kernel`:
    whether to bracket the optimum over all unbiased mechanisms too (for "worst"); `rtol`, `time_limit`: of that solve;
    `mechanisms`: as in `optdp.gap_report`.

    **Returns** a `Report`: certified optima with their bracket, the others as ratios to the best A1B1.
    """
    require.choice("objective", objective, ("center", "worst"))
    rows: list[dict[str, Any]] = []
    proven: dict[str, bool] = {}
    notes: list[str] = []
    for e in several("eps", eps):
        found = {a: solve_composite(e, a, "B1", inputs=(0.0, 1.0), objective=objective) for a in ACTIVATIONS}
        best = found["A1"]
        row: dict[str, Any] = {
            "eps": float(e), "lower": best.lower_bound, "value": best.value, "verified": bool(best.verify()),
            **{a: found[a].value / best.value for a in ACTIVATIONS[1:]},
        }  # fmt: skip
        beside = applicable(best.problem) | named(mechanisms, best.problem)
        row |= {name: v / best.value for name, v in values(beside, best.problem, proven).items()}
        if kernel and objective == "worst":
            everyone = solve_kernel(e, unbiased=True, domain=(0.0, 1.0), rtol=rtol, time_limit=time_limit)
            row |= {"all lower": everyone.lower_bound, "all value": everyone.value}
            row["of all"] = best.value / everyone.value
        notes = notes or [f"At eps = {e}: {best.problem.statement()} is at least {below(best.lower_bound, 9)}."]
        rows.append(row)
    columns = [
        Column("eps", "eps", "g"),
        Column("lower", "A1B1: bound", ".9g", "down"),
        Column("value", "A1B1", ".9g", "up"),
    ]
    if "of all" in rows[0]:
        columns += [*ALL, Column("of all", "A1B1 / best of all", ".4f")]
    others = [*ACTIVATIONS[1:], *proven]
    columns += [Column(name, f"{name}B1 / A1B1" if name in ACTIVATIONS else f"{name} / A1B1", ".4f") for name in others]
    columns.append(Column("verified", "verified"))
    notes.append(
        "A1B1, A2B1 and A3B1 are optima of their families, certified. B2 has the infimum of B1 and does not attain it."
    )
    if not all(proven.values()):
        notes.append(NUMERICAL)
    where = "in the middle" if objective == "center" else "at the worst query"
    title = f"Composites for queries in [0, 1]: variance {where}"
    ratios: dict[str, object] = {name: [row.get(name) for row in rows] for name in others}
    if "of all" in rows[0]:
        ratios = {"best of all": [1 / row["of all"] for row in rows], **ratios}
    x = [row["eps"] for row in rows]
    figure = ratio_figure(title, x, ratios, "A1B1, optimal", "variance / best A1B1")
    return Report(title, columns, rows, notes, figure)

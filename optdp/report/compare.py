"""The optimal piecewise mechanism beside the published ones: worst case and whole domain (OGPM's comparison, OGPM)."""

from __future__ import annotations

from typing import Any

from optdp.design.piecewise import solve_piecewise
from optdp.mechanisms import BASELINES, uniform
from optdp.problem.domains import Circle, as_domain
from optdp.problem.losses import as_loss
from optdp.report.plots import plot_losses
from optdp.report.report import Column, Report


def compare(eps: float, loss: Any = "abs", *, domain: Any = (0.0, 1.0)) -> Report:
    """Every mechanism for one bounded number at the same epsilon: worst-case and average expected loss.

    **Arguments:** as in `optdp.solve_piecewise`. On a circle only the uniform density is there to compare with.

    **Returns** a `Report`, best worst case first; its plot shows the expected loss at every input.
    """
    area = as_domain(domain)
    law = as_loss(loss, area.exact_reach)
    best = solve_piecewise(eps, 3, law, domain=area)
    names = {"uniform": uniform} if isinstance(area, Circle) else BASELINES
    mechanisms = {"optimal piecewise": best.mechanism, **{name: make(eps, area) for name, make in names.items()}}
    rows: list[dict[str, Any]] = [
        {
            "mechanism": name,
            "worst_case": mechanism.worst_case_loss(law),
            "ratio": mechanism.worst_case_loss(law) / best.value,
            "average": mechanism.average_loss(law),
            "worst_input": mechanism.worst_input(law),
            "eps": mechanism.privacy(),
        }
        for name, mechanism in mechanisms.items()
    ]
    rows.sort(key=lambda row: row["worst_case"])
    notes = [
        f"Lower bound for every mechanism with a floor shared by all inputs, any number of pieces: {best.lower_bound:.9g}.",
        "Worst case: the largest expected loss over all inputs; average: over inputs spread uniformly.",
    ]
    if rows[0]["mechanism"] != "optimal piecewise":
        notes.append(f"{rows[0]['mechanism']} goes below that bound: it is not piecewise (its output has atoms).")
    columns = [
        Column("mechanism", "mechanism"),
        Column("worst_case", "worst case"),
        Column("ratio", "/ optimal", ".4f"),
        Column("average", "average"),
        Column("worst_input", "worst input", ".4g"),
    ]
    title = f"Expected loss ({law}) on {area} under eps = {best.privacy.eps:g} local differential privacy"

    def figure() -> Any:
        axes = plot_losses(mechanisms, law)
        axes.set_title(title, fontsize=10)
        return axes.figure

    return Report(title, columns, rows, notes, figure)

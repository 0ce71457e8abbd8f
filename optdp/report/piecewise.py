"""The gap report of the piecewise mechanisms: the optimum and the published ones over a range of epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optdp.design.piecewise import solve_piecewise
from optdp.mechanisms import BASELINES
from optdp.problem.domains import Interval, as_domain
from optdp.problem.losses import as_loss
from optdp.report.plots import COLOURS, log_ticks, new_axes
from optdp.report.report import Column, Report


def gap_report(
    eps: Sequence[float] = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0), loss: Any = "abs", domain: Any = (0.0, 1.0)
) -> Report:
    """Worst-case loss of the optimum and of each baseline at every epsilon, the baselines as ratios to the optimum."""
    area = as_domain(domain)
    law = as_loss(loss, area.exact_reach)
    names = list(BASELINES) if isinstance(area, Interval) else ["uniform"]
    rows: list[dict[str, Any]] = []
    for e in np.atleast_1d(np.asarray(eps, dtype=float)):
        best = solve_piecewise(float(e), 3, law, domain=area)
        row = {"eps": best.privacy.eps, "lower": best.lower_bound, "value": best.value, "gap": best.gap}
        rows.append(row | {name: BASELINES[name](float(e), area).worst_case_loss(law) / best.value for name in names})
    columns = [Column("eps", "eps", "g"), Column("lower", "lower bound", ".9g"), Column("value", "optimum", ".9g"),
               Column("gap", "gap", ".1e")]  # fmt: skip
    columns += [Column(name, f"{name} / optimum", ".4f") for name in names]
    title = f"Piecewise mechanisms on {area}: worst-case expected loss ({law})"

    def figure() -> Any:
        axes = new_axes(size=(7.2, 4.4))
        x = [row["eps"] for row in rows]
        axes.axhline(1.0, color=COLOURS[0], lw=2.6, label="optimal piecewise (certified)")
        for colour, name in zip(COLOURS[1:], [n for n in names if n != "uniform"] or names, strict=False):
            axes.plot(x, [row[name] for row in rows], "o-", color=colour, ms=4, lw=1.3, label=name)
        axes.set(xlabel="epsilon", ylabel="worst-case loss / optimum", yscale="log", title=title)
        log_ticks(axes, x)
        axes.legend(frameon=False)
        return axes.figure

    notes = [
        "The bound holds for every number of pieces, heights shared by all inputs; mechanisms with atoms may go below it."
    ]
    return Report(title, columns, rows, notes, figure)

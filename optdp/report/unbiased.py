"""The gap report of the unbiased families on [-1, 1]: certified optima, published mechanisms, the bound."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from typing import Any

import numpy as np

from optdp.design.composite import solve_composite
from optdp.design.ptt import solve_ptt
from optdp.mechanisms.baselines.unbiased import UNBIASED
from optdp.report.plots import COLOURS, new_axes
from optdp.report.report import Column, Report

#: Families with a certified optimum: heading -> solve(eps) for inputs in [-1, 1], worst-case variance.
FAMILIES = {
    "I-PTT = A1": lambda eps: solve_ptt(eps, "I"),
    "II-PTT = A3": lambda eps: solve_ptt(eps, "II"),
    "A2": lambda eps: solve_composite(eps, "A2", "B1", inputs=(-1.0, 1.0), objective="worst"),
}


def gap_report(
    eps: Sequence[float] = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0),
    *,
    kernel: bool | None = None,
    rtol: float = 1e-2,
    time_limit: float = 20.0,
) -> Report:
    """Worst-case variance on [-1, 1]: the optimum of each family, the published mechanisms, and what no unbiased mechanism beats.

    **Arguments:** `eps`: privacy parameters; `kernel`: whether to bracket the optimum over all unbiased eps-LDP mechanisms with
    `optdp.solve_kernel` (default: where it is installed); `rtol`, `time_limit` (seconds for each epsilon): of that solve.

    **Returns** a `Report`; the columns of families hold certified optima (their relative gaps are in the rows), those of
    published mechanisms exact variances.
    """
    there = importlib.util.find_spec("optdp.design.kernel") is not None
    if kernel and not there:
        raise ValueError("kernel = True is not allowed: this installation has no solve_kernel")
    wanted = there if kernel is None else kernel
    grid = np.linspace(-1.0, 1.0, 2001)
    rows: list[dict[str, Any]] = []
    for e in (float(v) for v in np.atleast_1d(np.asarray(eps, dtype=float))):
        row: dict[str, Any] = {"eps": e}
        for name, solve in FAMILIES.items():
            solution = solve(e)
            row |= {name: solution.value, f"{name} gap": solution.gap, f"{name} lower": solution.lower_bound}
        row |= {name: float(np.max(make(e).variance(grid))) for name, make in UNBIASED.items()}
        row |= _all_unbiased(e, rtol, time_limit) if wanted else {"all lower": None, "all value": None}
        rows.append(row)
    columns = [Column("eps", "eps", "g")]
    if wanted:
        columns += [Column("all lower", "all: bound"), Column("all value", "all: attained")]
    columns += [Column(name, f"{name}*") for name in FAMILIES]
    columns += [Column(name, name) for name in UNBIASED]
    gap = max(row[f"{name} gap"] for row in rows for name in FAMILIES)
    notes = [
        f"Columns with * are optima of their family, certified: largest relative gap {gap:.1e}. B2 has B1's infimum.",
        "Composite variances for a query of sensitivity 1 are a quarter of these.",
    ]
    if wanted:
        notes.append("all: bracket of the optimum over every unbiased eps-LDP mechanism (optdp.solve_kernel).")

    def figure() -> Any:
        axes = new_axes(size=(7.2, 4.4))
        x = [row["eps"] for row in rows]
        best = [row["I-PTT = A1"] for row in rows]
        axes.axhline(1.0, color=COLOURS[0], lw=2.6, label="I-PTT = A1, optimal")
        names = [*list(FAMILIES)[1:], "PM", "PM-SUB", "Duchi", "HM", "Three-Outputs", "HM-TP", "Laplace"]
        for k, name in enumerate(names):
            ratio = [row[name] / b for row, b in zip(rows, best, strict=True)]
            style = {"color": COLOURS[1 + k % (len(COLOURS) - 1)], "ls": "-" if k < len(COLOURS) - 1 else "--"}
            axes.plot(x, ratio, marker="o", ms=4, lw=1.3, label=name, **style)
        if wanted:
            bound = [row["all lower"] / b for row, b in zip(rows, best, strict=True)]
            axes.plot(x, bound, "k:", lw=2, label="bound for all unbiased")
        axes.set(xlabel="epsilon", ylabel="worst-case variance / best I-PTT", yscale="log")
        axes.yaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_minor_formatter("{x:g}")
        axes.set_title("Unbiased mechanisms on [-1, 1]", fontsize=10)
        axes.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
        return axes.figure

    return Report("Unbiased eps-LDP mechanisms on [-1, 1]: worst-case variance", columns, rows, notes, figure)


def _all_unbiased(eps: float, rtol: float, time_limit: float) -> dict[str, Any]:
    """The bracket over all unbiased mechanisms."""
    from optdp.design.kernel import solve_kernel

    solution = solve_kernel(eps, "squared", domain=(-1.0, 1.0), unbiased=True, rtol=rtol, time_limit=time_limit)
    return {"all lower": solution.lower_bound, "all value": solution.value}

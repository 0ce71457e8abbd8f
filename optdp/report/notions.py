"""The gap report of additive noise under Gaussian DP, KL or Renyi DP: loss over the optimum against the privacy parameter."""

from __future__ import annotations

from typing import Any

from optdp.design.additive import solve_additive
from optdp.exact import Number, number, require
from optdp.mechanisms.baselines import baselines
from optdp.problem import GDP, KL, RDP, LossLike, Privacy
from optdp.report.additive import bracket, closed_loss
from optdp.report.gap import Levels, ratio_figure, several
from optdp.report.report import Column, Report

#: Notions with one parameter, and where they are reported by default: for "kl" what Gaussian noise of variance 4, 1 and 1/4
#: spends.
NOTIONS = ("gdp", "kl", "rdp")
AT: dict[str, tuple[float, ...]] = {"gdp": (0.5, 1.0, 2.0, 3.0), "kl": (0.125, 0.5, 2.0), "rdp": (1.0, 2.0, 4.0)}


def gap_report(
    notion: str = "gdp", at: Levels | None = None, loss: LossLike = "squared", *, alpha: Number | str = 2.0,
    sensitivity: float = 1.0, discrete: bool = False, rtol: float = 0.05,
) -> Report:  # fmt: skip
    """For every parameter of a notion: the certified bracket, and each published noise's loss over the optimum.

    **Arguments:** `notion`: "gdp", "kl" or "rdp"; `at`: its parameters (mu, or bounds), one or several; `alpha`: the order of
    "rdp"; the others as in `optdp.solve_additive`, with a loss in closed form.
    """
    law, kind = closed_loss(loss), require.choice("notion", notion, NOTIONS)
    names = list(baselines("integers" if discrete else "line", kind))
    rows: list[dict[str, Any]] = []
    for level in several("at", AT[kind] if at is None else at):
        best = solve_additive(_notion(kind, level, alpha, sensitivity), loss=law, discrete=discrete, rtol=rtol)
        rows.append({"at": float(level)} | bracket(best, names))
    told = {"gdp": "mu", "kl": "KL bound", "rdp": f"bound at order {float(number(alpha, 'alpha')):g}"}
    parameter = told[kind]
    columns = [
        Column("at", parameter, "g"), Column("lower", "lower bound", rounding="down"),
        Column("value", "optimum", rounding="up"), Column("gap", "gap", ".1e"),
        *(Column(f"{name} / optimum", f"{name} / optimum", ".4g") for name in names), Column("verified", "verified"),
    ]  # fmt: skip
    title = f"Additive noise on {best.problem.domain} under {kind.upper()}: {best.problem.objective.name}"
    notes = [
        f"In the last row: {best.problem.statement()}.",
        "optimum: the loss of a noise that is proven to keep the notion; lower bound: a dual point checked in exact "
        "arithmetic. A ratio below 1 is within the gap.",
        "Published noises are made to keep the same notion; their losses are computed in floating point.",
    ]
    if kind == "kl" and not discrete:
        notes.append("The optimum under KL is what the cactus mechanism approximates on a grid.")
    ratios = {"lower bound": [row["lower"] / row["value"] for row in rows]}
    ratios |= {name: [row[f"{name} / optimum"] for row in rows] for name in names}
    x = [row["at"] for row in rows]
    figure = ratio_figure(title, x, ratios, "optimum", "expected loss / optimum", xlabel=parameter)
    return Report(title, columns, rows, notes, figure if len(rows) > 1 else None)


def _notion(kind: str, level: Number, alpha: Number | str, sensitivity: float) -> Privacy:
    if kind == "rdp":
        return RDP(alpha, level, sensitivity)  # strings are read there
    return GDP(level, sensitivity) if kind == "gdp" else KL(level, sensitivity)

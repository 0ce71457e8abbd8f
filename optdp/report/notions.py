"""The gap report of additive noise under Gaussian DP, KL or Renyi DP: loss over the optimum against the privacy parameter."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from optdp.design.additive import solve_additive
from optdp.exact import Number, number, require
from optdp.mechanisms.baselines import applicable, baselines
from optdp.problem import GDP, KL, RDP, LossLike, Privacy, as_loss
from optdp.report.gap import Levels, several, values
from optdp.report.plots import curves, figure_of, titled
from optdp.report.report import Column, Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure

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
    law, kind = as_loss(loss), require.choice("notion", notion, NOTIONS)
    if law.exponent is None:
        raise TypeError(f"loss = {law.name!r} is not allowed here: the report needs abs, squared or optdp.Power(q)")
    names = list(baselines("integers" if discrete else "line", kind))
    rows: list[dict[str, Any]] = []
    proven: dict[str, bool] = {}
    levels = several("at", AT[kind] if at is None else at)
    if not levels:
        raise ValueError("at = () is not allowed: it must be one parameter or several")
    for level in levels:
        best = solve_additive(_notion(kind, level, alpha, sensitivity), loss=law, discrete=discrete, rtol=rtol)
        row: dict[str, Any] = {
            "at": float(level), "lower": best.lower_bound, "value": best.value, "gap": best.gap,
            "verified": bool(best.verify()), "problem": best.problem.statement(),
        }  # fmt: skip
        losses = values(applicable(best.problem), best.problem, proven)
        for name in names:
            row[name] = losses.get(name)
            row[f"{name} / optimum"] = losses[name] / best.value if name in losses else None
        rows.append(row)
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
    return Report(title, columns, rows, notes, _figure(rows, names, parameter, title) if len(rows) > 1 else None)


def _notion(kind: str, level: Number, alpha: Number | str, sensitivity: float) -> Privacy:
    if kind == "rdp":
        return RDP(alpha, level, sensitivity)  # type: ignore[arg-type]  # strings are read there
    return GDP(level, sensitivity) if kind == "gdp" else KL(level, sensitivity)


def _figure(rows: list[dict[str, Any]], names: list[str], parameter: str, title: str) -> Callable[[], Figure]:
    """Losses over the optimum; the line at 1 is the optimum, below it the lower bound."""

    def figure() -> Figure:
        x = [row["at"] for row in rows]
        shown: dict[str, object] = {"optimum": [1.0] * len(x), "lower bound": [r["lower"] / r["value"] for r in rows]}
        shown |= {name: [row[f"{name} / optimum"] for row in rows] for name in names}
        axes = curves(x, shown, logs="xy", xlabel=parameter, ylabel="expected loss / optimum")
        return figure_of(titled(axes, title))

    return figure

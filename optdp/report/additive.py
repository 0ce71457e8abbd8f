"""The gap report of additive noise: the paper's bounds, the certified ones, and the published noises over (eps, delta)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp.certificates.additive import geng_viswanath
from optdp.design.additive import solve_additive
from optdp.mechanisms.baselines import applicable, baselines
from optdp.mechanisms.staircase import LatticeStaircase
from optdp.problem import ApproxDP, Loss, LossLike, as_loss
from optdp.report.gap import Levels, several, values
from optdp.report.plots import curves, figure_of, pyplot, titled
from optdp.report.report import Column, Report
from optdp.solution import Solution

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: A default grid: where users calibrate noise.
EPS = (0.1, 0.5, 1.0, 2.0, 4.0)
DELTA = (1e-6, 1e-4, 1e-2, 0.1)


def gap_report(
    eps: Levels = EPS, delta: Levels = DELTA, loss: LossLike = "abs", *, sensitivity: float = 1.0,
    discrete: bool = False, rtol: float = 5e-3,
) -> Report:  # fmt: skip
    """For every (eps, delta): the paper's lower bound, the certified bracket, and each baseline's loss over the optimum.

    Its figure redraws the paper's Figures 2 (abs) and 3 (squared), the loss of the truncated Laplacian over that of the
    Gaussian, with the certified optimum and lower bound added.

    **Arguments:** `eps`, `delta`: one number or several; the others as in `optdp.solve_additive`, with a loss in closed form.
    """
    law = closed_loss(loss)
    names = list(baselines("integers" if discrete else "line", "approx"))
    rows: list[dict[str, Any]] = []
    for e in several("eps", eps):
        for d in several("delta", delta):
            best = solve_additive(e, d, law, sensitivity=sensitivity, discrete=discrete, rtol=rtol)
            paper = geng_viswanath(best.problem).bound(best.problem).value
            row = {"eps": float(e), "delta": float(d), "paper_lower": paper} | bracket(best, names)
            laplace = row.get("truncated Laplacian")
            row["paper_gap"] = None if laplace is None else (laplace - paper) / laplace
            rows.append(row)
    columns = [
        Column("eps", "eps", "g"), Column("delta", "delta", "g"), Column("paper_lower", "paper's lower bound, n rounded down"),
        Column("lower", "certified lower bound", rounding="down"), Column("value", "optimum", rounding="up"),
        Column("gap", "gap", ".1e"),
        *([] if discrete else [Column("paper_gap", "paper's gap", ".1%")]),
        *(Column(f"{name} / optimum", f"{name} / optimum", ".4g") for name in names),
        Column("verified", "verified"),
    ]  # fmt: skip
    title = f"Additive noise on {best.problem.domain}: {best.problem.objective.name}"
    notes = [
        f"In the last row: {best.problem.statement()}.",
        "optimum: the loss of a noise that is private exactly; certified lower bound: a dual point checked in exact arithmetic.",
        "paper's lower bound: the closed-form dual point of the truncated-Laplacian paper (rounding-safe); paper's gap: between "
        "it and the truncated Laplacian. A dash: the noise needs eps > 0 or delta > 0, or is not proven private there.",
        "A ratio below 1 (the staircase, where delta is negligible) is within the gap: the lower bound is below every noise.",
    ]
    return Report(title, columns, rows, notes, None if discrete else _figure(rows, title))


def closed_loss(loss: LossLike) -> Loss:
    """A loss in closed form. **Raises** TypeError for others."""
    law = as_loss(loss)
    if law.exponent is None:
        raise TypeError(f"loss = {law.name!r} is not allowed here: the report needs abs, squared or optdp.Power(q)")
    return law


def bracket(best: Solution, names: Iterable[str]) -> dict[str, Any]:
    """What a row says of an optimum, and of the published noises with these names: their losses, also over the optimum."""
    row: dict[str, Any] = {
        "lower": best.lower_bound, "value": best.value, "gap": best.gap, "verified": bool(best.verify()),
        "problem": best.problem.statement(),
    }  # fmt: skip
    losses = values(applicable(best.problem), best.problem, {})
    for name in names:
        row[name] = losses.get(name)
        row[f"{name} / optimum"] = losses[name] / best.value if name in losses else None
    return row


def _figure(rows: list[dict[str, Any]], title: str) -> Callable[[], Figure] | None:
    """Ratio to the Gaussian over eps, one panel a delta: the paper's figures with the optimum added."""
    compared = [row for row in rows if row["Gaussian"] is not None and row["truncated Laplacian"] is not None]
    deltas = sorted({row["delta"] for row in compared})
    if not deltas:
        return None

    def figure() -> Figure:
        columns = min(len(deltas), 2)
        lines = -(-len(deltas) // columns)
        size = (4.6 * columns + 0.6, 3.3 * lines + 0.6)
        page, grid = pyplot().subplots(lines, columns, figsize=size, layout="constrained", sharex=True, squeeze=False)
        panels = grid.ravel()
        keys = {"certified optimum": "value", "truncated Laplacian": "truncated Laplacian",
                "certified lower bound": "lower", "paper's lower bound": "paper_lower"}  # fmt: skip
        for axes, d in zip(panels, deltas, strict=False):
            chosen = [r for r in rows if r["delta"] == d and r["eps"] > 0]
            x = [r["eps"] for r in chosen]
            shown = {label: [r[key] / r["Gaussian"] for r in chosen] for label, key in keys.items()}
            curves(x, shown, ax=axes, logs="x", legend=None, title=f"delta = {d:g}", ylim=(0, None))
            axes.grid(alpha=0.25)
        for axes in panels[len(deltas) :]:
            axes.set_visible(False)
        page.supxlabel("epsilon")
        page.supylabel("expected loss / that of the Gaussian")
        panels[0].legend(frameon=False, fontsize=8)
        page.suptitle(title, fontsize=10)
        return page

    return figure


def profile_report(solution: Solution, eps: Sequence[float] | None = None) -> Report:
    """The privacy profile of the optimal noise and of the baselines with the same guarantee: delta at other eps.

    **Arguments:** `solution`: from `optdp.solve_additive`; `eps`: where (default: 0 to twice the largest that is guaranteed, or
    to 4).
    """
    privacy: Any = solution.problem.privacy
    told = [(privacy.eps, privacy.delta)] if isinstance(privacy, ApproxDP) else list(getattr(privacy, "pairs", ()))
    at, level = ([float(x) for x in column] for column in zip(*told, strict=True)) if told else ([], [])
    points = np.linspace(0.0, 2 * max([*at, 0.5] if at else [2.0]), 9) if eps is None else np.asarray(eps, dtype=float)
    noises: dict[str, Any] = {"optimal": solution.mechanism, **applicable(solution.problem)}
    rows = [{"eps": float(e), **{name: noise.delta(float(e)) for name, noise in noises.items()}} for e in points]
    columns = [Column("eps", "eps", ".4g"), *(Column(name, name, ".4g") for name in noises)]
    title = f"Privacy profiles: delta at other eps, calibrated to {privacy}"
    plain = [name for name, noise in noises.items() if isinstance(noise, LatticeStaircase)]
    notes = [] if "optimal" in plain else ["Optimal: exact hockey-stick divergences, rounded up."]
    if plain:
        notes.append(
            f"{' and '.join(plain)}: upper bounds that the guarantee implies, its delta from its eps on and more below it."
        )

    def figure() -> Figure:
        shown = {name: [row[name] or math.nan for row in rows] for name in noises}  # a logarithmic axis has no 0
        ylabel = (
            "delta (lines end where it is 0)" if any(row[name] == 0 for row in rows for name in noises) else "delta"
        )
        axes = curves(points.tolist(), shown, logs="y", marker=False, legend=None, xlabel="epsilon", ylabel=ylabel)
        if at:
            axes.plot(at, [delta or math.nan for delta in level], "ks", ms=5, label="the guarantee")
        axes.legend(frameon=False, fontsize=8)
        return figure_of(titled(axes, title))

    return Report(title, columns, rows, notes, figure)

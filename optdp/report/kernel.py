"""Pictures and tables of the kernel program: the heat map, the loss at every input, and the gap of the published
mechanisms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optdp.design.kernel import solve_kernel
from optdp.design.piecewise import solve_piecewise
from optdp.mechanisms import BASELINES, UNBIASED
from optdp.problem.domains import Circle, Interval, as_domain
from optdp.problem.losses import Power, as_loss
from optdp.report.plots import COLOURS, log_ticks, new_axes
from optdp.report.report import Column, Report
from optdp.solution import Solution


def plot_kernel(mechanism: Any, *, ax: Any = None) -> Any:
    """The kernel as a heat map: input across, outputs up, colour = P(output | input) per unit of y, on a logarithmic
    scale. Returns the axes.

    Every output is drawn as the strip of points nearest to it; its probability is spread over the strip.
    """
    from matplotlib.colors import LogNorm

    ax = new_axes(ax, size=(6.4, 4.8))
    x = np.linspace(mechanism.domain.lower, mechanism.domain.upper, 401)
    y = np.array(mechanism._names)
    middle = (y[1:] + y[:-1]) / 2
    first, last = (middle[0] - y[0], y[-1] - middle[-1]) if y.size > 1 else (0.5, 0.5)
    edges = np.concatenate([[y[0] - first], middle, [y[-1] + last]])
    density = mechanism._rows(x).T / np.diff(edges)[:, None]
    steps = np.concatenate([x[:1], (x[1:] + x[:-1]) / 2, x[-1:]])
    positive = density[density > 0]
    mesh = ax.pcolormesh(
        steps, edges, density, norm=LogNorm(positive.min(), positive.max()), cmap="viridis", rasterized=True
    )
    ax.plot(np.full(y.size, x[0]), y, "k.", ms=3, clip_on=False)
    ax.figure.colorbar(mesh, ax=ax, label="P(y | x) per unit of y")
    ax.set(xlabel="input x", ylabel="output y", xlim=(x[0], x[-1]))
    ax.set_title(f"Kernel with {y.size} outputs (eps = {mechanism.privacy():.3g})", fontsize=10)
    return ax


#: The published unbiased mechanisms that stand beside the best one.
BESIDE = ("Duchi", "PM", "HM", "Three-Outputs", "PM-SUB", "HM-TP", "Laplace")


def plot_errors(solution: Solution, *, ax: Any = None) -> Any:
    """Expected loss at every input: the best kernel against the published mechanisms, and the certified bound.
    Returns the axes.
    """
    area, law, eps = solution.mechanism.domain, solution.loss, solution.privacy.eps
    if not isinstance(area, Interval) or not isinstance(law, Power):
        raise ValueError(f"solution on {area} is not allowed: errors are drawn over an interval")
    ax = new_axes(ax, size=(7.2, 4.4))
    x = np.linspace(area.lower, area.upper, 801)
    curves: dict[str, np.ndarray] = {"best kernel": solution.mechanism.expected_loss(x, law)}
    if solution.spec["unbiased"]:
        curves |= {name: UNBIASED[name](eps, area).variance(x) for name in BESIDE}
    else:
        curves["OGPM (best common floor)"] = solve_piecewise(eps, 3, law, domain=area).mechanism.expected_loss(x, law)
        curves |= {name: make(eps, area).expected_loss(x, law) for name, make in BASELINES.items() if name != "uniform"}
    for k, (name, values) in enumerate(curves.items()):
        ax.plot(x, values, color=COLOURS[k % len(COLOURS)], lw=2.6 if k == 0 else 1.3, label=name)
    if solution.spec["prior"] is None:
        ax.axhline(solution.lower_bound, color="black", lw=0.8, ls=":", label="no mechanism has a lower maximum")
    top = min(max(float(v.max()) for v in curves.values()), 4 * solution.value)
    ax.set(
        xlabel="input x",
        ylabel="variance" if solution.spec["unbiased"] else f"expected loss ({law})",
        ylim=(0, 1.05 * top),
    )
    ax.set_title(f"Loss at every input, eps = {eps:g}", fontsize=10)
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax


def gap_report(
    eps: Sequence[float] = (0.25, 0.5, 1.0, 2.0, 3.0),
    loss: Any = None,
    domain: Any = None,
    unbiased: bool = False,
    rtol: float = 1e-3,
    time_limit: float = 60.0,
) -> Report:
    """Worst-case loss of the best kernel at every epsilon, and of the published mechanisms as ratios to it."""
    area = as_domain(domain if domain is not None else (-1.0, 1.0) if unbiased else (0.0, 1.0))
    if isinstance(area, Circle):
        raise ValueError(
            "domain = a Circle is not allowed: there the best kernel is the best piecewise mechanism, see that report"
        )
    law = as_loss(loss if loss is not None else "squared" if unbiased else "abs", area.exact_reach)
    rows: list[dict[str, Any]] = []
    names: list[str] = []
    for e in np.atleast_1d(np.asarray(eps, dtype=float)).tolist():
        best = solve_kernel(e, law, domain=area, unbiased=unbiased, rtol=rtol, time_limit=time_limit)
        row: dict[str, Any] = {
            "eps": e,
            "lower": best.lower_bound,
            "value": best.value,
            "gap": best.gap,
            "outputs": len(best.mechanism.outputs),
            "verified": bool(best.verify()),
            "seconds": best.program.seconds,
        }
        if unbiased:
            worst = {name: float(UNBIASED[name](e, area).worst_case_loss("squared")) for name in BESIDE}
        else:
            worst = {"OGPM": solve_piecewise(e, 3, law, domain=area).value}
            worst |= {name: make(e, area).worst_case_loss(law) for name, make in BASELINES.items() if name != "uniform"}
        names = list(worst)
        rows.append(row | {name: value / best.value for name, value in worst.items()})
    columns = [
        Column("eps", "eps", "g"),
        Column("lower", "lower bound", ".6g"),
        Column("value", "value", ".6g"),
        Column("gap", "gap", ".1e"),
        Column("outputs", "outputs"),
        Column("verified", "verified"),
        Column("seconds", "seconds", ".3g"),
    ]
    columns += [Column(name, f"{name} / value", ".4f") for name in names]
    kind, what = ("unbiased ", "variance") if unbiased else ("", f"expected loss ({law})")
    title = f"Best {kind}kernels on {area}: worst-case {what}"

    def figure() -> Any:
        axes = new_axes(size=(7.2, 4.4))
        x = [row["eps"] for row in rows]
        axes.axhline(1.0, color=COLOURS[0], lw=2.6, label="best kernel (certified)")
        for colour, name in zip(COLOURS[1:], names, strict=False):
            axes.plot(x, [row[name] for row in rows], "o-", color=colour, ms=4, lw=1.3, label=name)
        axes.set(xlabel="epsilon", ylabel="worst case / best kernel", yscale="log", title=title)
        log_ticks(axes, x)
        axes.legend(frameon=False)
        return axes.figure

    return Report(
        title,
        columns,
        rows,
        ["The bound holds for all eps-LDP mechanisms on the continuum of inputs and outputs."],
        figure,
    )

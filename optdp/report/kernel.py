"""Pictures and tables of the kernel program: the heat map, the loss at every input, and the gap of the published mechanisms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optdp.design.kernel import solve_kernel
from optdp.design.piecewise import solve_piecewise
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines import applicable
from optdp.mechanisms.finite import FiniteMechanism
from optdp.mechanisms.kernel import KernelMechanism
from optdp.problem.domains import DomainLike, Interval, as_interval
from optdp.problem.losses import LossLike
from optdp.problem.objectives import WorstCase
from optdp.problem.problem import Problem
from optdp.report.compare import Own, named
from optdp.report.gap import Levels, several, table
from optdp.report.plots import OUTSIDE, new_axes, plot_losses, titled
from optdp.report.report import Report
from optdp.solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


def plot_kernel(mechanism: KernelMechanism, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
    """The kernel as a heat map: input across, outputs up, colour = P(output | input) per unit of y, on a logarithmic scale.

    Every output is drawn as the strip of points nearest to it; its probability is spread over the strip. All inputs are shown,
    whatever `inputs` says. Returns the axes.
    """
    from matplotlib.colors import LogNorm

    ax = new_axes(ax, size=(6.4, 4.8))
    x, y = np.linspace(mechanism.domain.lower, mechanism.domain.upper, 401), mechanism.atoms()
    middle = (y[1:] + y[:-1]) / 2
    first, last = (middle[0] - y[0], y[-1] - middle[-1]) if y.size > 1 else (0.5, 0.5)
    edges = np.concatenate([[y[0] - first], middle, [y[-1] + last]])
    density = mechanism.probability(y[:, None], x) / np.diff(edges)[:, None]
    steps = np.concatenate([x[:1], (x[1:] + x[:-1]) / 2, x[-1:]])
    scale = LogNorm(density[density > 0].min(), density.max())
    mesh = ax.pcolormesh(steps, edges, density, norm=scale, cmap="viridis", rasterized=True)
    ax.plot(np.full(y.size, x[0]), y, "k.", ms=3, clip_on=False)
    ax.figure.colorbar(mesh, ax=ax, label="P(y | x) per unit of y")
    ax.set(xlabel="input x", ylabel="output y", xlim=(x[0], x[-1]))
    return titled(ax, repr(mechanism))


def plot_table(mechanism: FiniteMechanism, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
    """The table of probabilities of a kernel between finite sets, all inputs whatever `inputs` says. Returns the axes."""
    ax = new_axes(ax)
    image = ax.imshow(mechanism.table.rows, aspect="auto", cmap="viridis")
    ax.figure.colorbar(image, ax=ax, label="P(y | x)")
    ax.set_xticks(range(len(mechanism.outputs)), map(str, mechanism.outputs))
    ax.set_yticks(range(len(mechanism.domain)), map(str, mechanism.domain.symbols))
    ax.set(xlabel="output y", ylabel="input x")
    return titled(ax, repr(mechanism))


def _beside(problem: Problem) -> dict[str, Mechanism]:
    """The published mechanisms and, where outputs lie in the domain, the best one with a common floor."""
    if problem.unbiased:
        return applicable(problem)
    assert problem.eps is not None
    best = solve_piecewise(problem.eps, 3, problem.loss, domain=problem.domain)
    return {"best piecewise": best.mechanism, **applicable(problem)}


def plot_errors(solution: Solution, ax: Axes | None = None) -> Axes:
    """Expected loss at every input: the best kernel, the published mechanisms, and the certified bound. Returns the axes.

    **Raises** ValueError unless the problem is about an interval.
    """
    problem = solution.problem
    if not isinstance(problem.domain, Interval):
        raise ValueError(f"solution on {problem.domain} is not allowed: errors are drawn over an interval")
    ax = plot_losses({"best kernel": solution.mechanism, **_beside(problem)}, problem.loss, ax=ax)
    top = min(max(float(np.max(line.get_ydata())) for line in ax.lines), 4 * solution.value)
    if isinstance(problem.objective, WorstCase):
        ax.axhline(solution.lower_bound, color="black", lw=0.8, ls=":", label="lower bound of the maximum (proven)")
        ax.legend(frameon=False, **OUTSIDE)
    ax.set(ylabel="variance" if problem.unbiased else f"expected loss ({problem.loss})", ylim=(0, 1.05 * top))
    return titled(ax, problem.statement())


def gap_report(
    eps: Levels = (0.25, 0.5, 1.0, 2.0, 3.0), loss: LossLike | None = None, domain: DomainLike | None = None,
    unbiased: bool = False, rtol: float = 1e-3, time_limit: float = 60.0, *, mechanisms: Own = None,
) -> Report:  # fmt: skip
    """The bracket of the best kernel at every epsilon, and the worst-case loss of the published mechanisms as ratios to it.

    **Arguments:** `eps`: one epsilon or several; `loss`, `unbiased`, `rtol`, `time_limit`: as in `optdp.solve_kernel`;
    `domain`: an interval, by default [0, 1], or [-1, 1] if unbiased; `mechanisms`: as in `optdp.gap_report`.
    """
    area = as_interval(domain if domain is not None else (-1.0, 1.0) if unbiased else (0.0, 1.0), "this report")
    asked: Any = {"domain": area, "unbiased": unbiased, "rtol": rtol, "time_limit": time_limit}
    solutions = [solve_kernel(e, loss, **asked) for e in several("eps", eps)]
    title = f"All {'unbiased ' if unbiased else ''}mechanisms on {area}: {solutions[0].problem.objective.name}"
    note = "is at least the lower bound."
    return table(solutions, title, lambda problem: _beside(problem) | named(mechanisms, problem), note=note)

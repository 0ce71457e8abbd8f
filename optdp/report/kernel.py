"""Pictures and tables of the kernel program: heat map, floor, windows, prior, the loss at every input, published mechanisms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optdp.certificates.kernel import KernelCertificate
from optdp.design.kernel import solve_kernel
from optdp.design.piecewise import solve_piecewise
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines import applicable
from optdp.mechanisms.kernel import KernelMechanism
from optdp.problem import DomainLike, Interval, LossLike, Problem, WorstCase, as_interval
from optdp.report.compare import Own, named
from optdp.report.gap import Levels, several, table
from optdp.report.plots import COLOURS, OUTSIDE, new_axes, plain, plot_losses, pyplot, titled
from optdp.report.report import Report
from optdp.solution import Solution

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike


def plot_kernel(mechanism: KernelMechanism, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
    """The kernel as a heat map: input across, outputs up, colour = density of the output, on a logarithmic scale.

    Atoms are lines, as thick as they are probable. All inputs are shown, whatever `inputs` says. Returns the axes.
    """
    from matplotlib.collections import LineCollection
    from matplotlib.colors import LogNorm

    ax = new_axes(ax, size=(6.4, 4.8))
    x = np.linspace(mechanism.domain.lower, mechanism.domain.upper, 401)
    low, high = mechanism.support()
    _, starts, ends = mechanism.floor()
    edges = np.unique(np.concatenate([np.linspace(low, high, 401), starts, ends]))
    middle = (edges[1:] + edges[:-1]) / 2
    # What floors of the solver hold of a millionth or less would otherwise be as bright as all of the rest.
    density = np.ma.masked_less_equal(mechanism.density(middle[:, None], x), 1e-6 / (high - low) if high > low else 0.0)
    if density.count():
        steps = np.concatenate([x[:1], (x[1:] + x[:-1]) / 2, x[-1:]])
        scale = LogNorm(density.min(), density.max())
        mesh = ax.pcolormesh(steps, edges, density, norm=scale, cmap="viridis", rasterized=True)
        ax.figure.colorbar(mesh, ax=ax, label="density of y given x")
    for y in mechanism.atoms():
        p = mechanism.probability(y, x)
        points = np.column_stack([x, np.full(x.size, y)])
        segments = np.stack([points[:-1], points[1:]], axis=1)
        ax.add_collection(
            LineCollection(list(segments), linewidths=0.3 + 6 * (p[1:] + p[:-1]) / 2, color="black", capstyle="butt")
        )
    margin = 0.02 * (high - low) or 0.5
    ylabel = "output y" + " (black lines: atoms, as thick as probable)" * bool(mechanism.atoms().size)
    ax.set(xlabel="input x", ylabel=ylabel, xlim=(x[0], x[-1]), ylim=(low - margin, high + margin))
    return titled(ax, repr(mechanism))


def plot_floor(mechanism: KernelMechanism, ax: Axes | None = None) -> Axes:
    """The floor over the outputs: its density, logarithmic, and its atoms with their masses. Returns the axes."""
    ax = new_axes(ax)
    masses, low, high = mechanism.floor()
    flat = low == high
    if not flat.all():
        # One line through all pieces, interrupted where Q jumps.
        y, level = np.column_stack([low, high])[~flat], np.repeat((masses / (high - low + flat))[~flat], 2)
        jumps = 2 * np.flatnonzero(y[1:, 0] > y[:-1, 1]) + 2
        ax.plot(np.insert(y.reshape(-1), jumps, np.nan), np.insert(level, jumps, np.nan), color=COLOURS[0], lw=1.4)
        ax.set_yscale("log")
        if level.max() < 2 * level.min():  # else the ticks of a constant say nothing
            ax.set_ylim(level.min() / 3, level.max() * 3)
    _atoms(ax, low[flat], masses[flat])
    ax.set(xlabel="output y", ylabel="density of the floor")
    return ax


def plot_windows(mechanism: KernelMechanism, ax: Axes | None = None) -> Axes:
    """The favoured outputs of every input, between the two ends of its window. Returns the axes."""
    ax = new_axes(ax)
    x = np.linspace(mechanism.domain.lower, mechanism.domain.upper, 1001)
    low, high = mechanism.favoured(x)
    ax.fill_between(x, low, high, color=COLOURS[0], alpha=0.15, lw=0)
    ax.plot(x, np.column_stack([low, high]), color=COLOURS[0], lw=1.4)
    ax.plot(x, x, color="black", lw=0.6, ls=":")
    ax.set(xlabel="input x", ylabel="favoured outputs", xlim=(x[0], x[-1]))
    return ax


def plot_prior(solution: Solution, ax: Axes | None = None) -> Axes:
    """The prior of the lower bound: a density over the inputs, and atoms with their masses. Returns the axes.

    **Raises** ValueError unless the certificate is a prior of inputs on an interval.
    """
    proof, domain = solution.certificate, solution.problem.domain
    if not isinstance(proof, KernelCertificate):
        raise ValueError(f"solution on {domain} is not allowed: it has no prior of inputs on an interval")
    ax = new_axes(ax)
    x, points = (domain.lower + domain.width * np.array(v, dtype=float) for v in (proof.mesh, proof.points))
    density = np.array([np.zeros(x.size), *proof.densities]).sum(axis=0) / domain.width
    weights = np.array(proof.weights)
    ylabel = "density of the prior"
    if isinstance(solution.problem.objective, WorstCase):
        total = float(np.trapezoid(density, x) + weights.sum())
        density, weights = density / total, weights / total
    elif density.size:
        density, ylabel = density * domain.width, "share of the prior's density that is used"
    if density.size:
        ax.plot(x, density, color=COLOURS[0], lw=1.4)
        ax.fill_between(x, 0, density, color=COLOURS[0], alpha=0.15, lw=0)
    places, at = np.unique(points, return_inverse=True)
    _atoms(ax, places, np.bincount(at, weights, places.size))
    ax.set(xlabel="input x", ylabel=ylabel, xlim=(domain.lower, domain.upper), ylim=(0, None))
    return ax


def _atoms(ax: Axes, places: np.ndarray, masses: np.ndarray) -> None:
    """Atoms as stems with a scale of their own, on the right."""
    if not masses.size:
        return
    right = ax.twinx()
    right.vlines(places, 0, masses, color=COLOURS[1], lw=1.2, clip_on=False)
    right.plot(places, masses, "o", color=COLOURS[1], ms=4, clip_on=False)
    right.spines[["top"]].set_visible(False)
    right.set_ylabel("mass of atoms", color=COLOURS[1])
    right.set_ylim(bottom=0)


def plot_structure(solution: Solution) -> Figure:
    """Floor, windows and the prior of the lower bound side by side. Returns the figure.

    **Raises** ValueError unless the problem is about all mechanisms on an interval.
    """
    mechanism = solution.mechanism
    if not isinstance(mechanism, KernelMechanism):
        raise ValueError(f"solution on {solution.problem.domain} is not allowed: it has no floor of its own")
    figure, axes = pyplot().subplots(1, 3, figsize=(15.0, 4.2), layout="constrained")
    for ax, title in zip(axes, ("Floor", "Windows", "Prior of the bound"), strict=True):
        ax.set_title(title, fontsize=10)
    plot_floor(mechanism, new_axes(axes[0]))
    plot_windows(mechanism, new_axes(axes[1]))
    plot_prior(solution, new_axes(axes[2]))
    figure.suptitle(solution.problem.statement(), fontsize=9)
    return figure


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
    top = min(max(float(np.max(np.asarray(line.get_ydata()))) for line in ax.lines), 4 * solution.value)
    if isinstance(problem.objective, WorstCase):
        ax.axhline(solution.lower_bound, color="black", lw=0.8, ls=":", label="lower bound of the maximum (proven)")
        ax.legend(frameon=False, **OUTSIDE)
    ax.set(ylabel="variance" if problem.unbiased else plain(f"expected loss ({problem.loss})"), ylim=(0, 1.05 * top))
    return titled(ax, problem.statement())


def gap_report(
    eps: Levels = (0.25, 0.5, 1.0, 2.0, 3.0), loss: LossLike | None = None, domain: DomainLike = (0.0, 1.0),
    unbiased: bool = False, rtol: float = 1e-3, time_limit: float = 60.0, *, mechanisms: Own = None,
) -> Report:  # fmt: skip
    """The bracket of the best kernel at every epsilon, and the worst-case loss of the published mechanisms as ratios to it.

    **Arguments:** `eps`: one epsilon or several; `loss`, `unbiased`, `rtol`, `time_limit`: as in `optdp.solve_kernel`;
    `domain`: an interval; `mechanisms`: as in `optdp.gap_report`.
    """
    area = as_interval(domain, "this report")
    asked: Any = {"domain": area, "unbiased": unbiased, "rtol": rtol, "time_limit": time_limit}
    solutions = [solve_kernel(e, loss, **asked) for e in several("eps", eps)]
    title = f"All {'unbiased ' if unbiased else ''}mechanisms on {area}: {solutions[0].problem.objective.name}"
    note = "is at least the lower bound."
    return table(solutions, title, lambda problem: _beside(problem) | named(mechanisms, problem), note=note)

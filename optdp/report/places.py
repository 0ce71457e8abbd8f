"""Maps of mechanisms between places, and on rectangles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from optdp.design.kernel import solve_kernel
from optdp.exact.rounding import TOTAL
from optdp.mechanisms.baselines.plane import SidesMechanism
from optdp.mechanisms.metric import MetricMechanism
from optdp.mechanisms.plane import PlaneMechanism
from optdp.mechanisms.product import share_of
from optdp.problem.problem import Problem
from optdp.report.plots import COLOURS, OUTSIDE, new_axes, plain, plot_outline, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


def plot_map(mechanism: MetricMechanism, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
    """A map of the places: for a few inputs (crosses) the outputs as discs whose areas are their probabilities. Returns the axes.

    **Arguments:** `inputs`: which of the symbols; None: three that are far from each other. Without places on a map the table.
    """
    where = mechanism.metric.coordinates
    if where is None:
        return plot_outline(mechanism, ax)
    ax = new_axes(ax, size=(6.4, 5.2))
    if inputs is None:
        far = mechanism.metric.array
        chosen = [int(np.argmin(far.max(axis=1)))]
        while len(chosen) < min(3, len(far)):
            chosen.append(int(np.argmax(far[chosen].min(axis=0))))
    else:
        chosen = mechanism.domain.index(np.atleast_1d(inputs)).tolist()
    across, up = where.T
    ax.plot(across, up, ".", color="#999999", ms=3, zorder=1)
    for k, x in enumerate(chosen):
        colour, name = COLOURS[k % len(COLOURS)], plain(mechanism.domain.symbols[x])
        if mechanism.outputs == mechanism.domain.symbols:
            ax.scatter(
                across, up, s=900 * mechanism.table.rows[x], color=colour, alpha=0.45, lw=0, zorder=2, clip_on=False
            )
        ax.plot(across[x], up[x], "x", color=colour, ms=7, mew=2, label=name, zorder=3)
    earth = getattr(mechanism.metric, "kind", "") == "haversine"
    # Places (nearly) on a line have axes as high as others.
    ax.set_aspect(1 / np.cos(np.radians(up.mean())) if earth else "equal", adjustable="datalim")
    ax.set(xlabel="longitude" if earth else "first coordinate", ylabel="latitude" if earth else "second coordinate")
    ax.legend(frameon=False, title="input; areas:\nprobabilities\nof outputs", **OUTSIDE)
    return titled(ax, repr(mechanism))


def each_side(problem: Problem, rtol: float = 1e-3) -> SidesMechanism:
    """For a rectangle the optimal mechanisms of its two sides, each with half of epsilon: what one has without planar ones.

    **Arguments:** `problem`: one that `optdp.solve_kernel` takes on an `optdp.Box`; `rtol`: of the two solves.
    """
    half = share_of(problem.eps, 2)  # type: ignore[arg-type]
    parts = [solve_kernel(half, problem.loss, domain=side, rtol=rtol).mechanism for side in problem.domain.sides]
    return SidesMechanism(problem.domain, *parts)


def plot_plane(mechanism: PlaneMechanism, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
    """The floor as grey discs, whose areas are probabilities, and for a few inputs (crosses) what they favour. Returns the axes.

    **Arguments:** `inputs`: rows of two coordinates; None: three points of the rectangle.
    """
    low, high = np.array(mechanism.domain.lower), np.array(mechanism.domain.upper)
    across, up = (high - low) / max(high - low)
    # A legend beside it, a title above.
    ax = new_axes(ax, size=(2.0 + 4.4 * max(across, 0.4), 0.8 + 4.4 * max(up, 0.25)))
    shares = np.array([(0.1, 0.15), (0.5, 0.55), (0.85, 0.3)])
    chosen = low + (high - low) * shares if inputs is None else np.atleast_2d(np.asarray(inputs, dtype=float))
    across, up = mechanism.atoms().T
    floors = np.array(mechanism.floors) / TOTAL
    rows = mechanism.rows(chosen) - floors
    area = 3000 / max(float(floors.max()), float(rows.max()))
    area = min(area, 9000.0)
    discs: dict[str, Any] = {"lw": 0, "clip_on": False}
    ax.scatter(across, up, s=area * floors, color="#999999", alpha=0.6, zorder=1, **discs)
    for k, (x, row) in enumerate(zip(chosen, rows, strict=True)):
        colour = COLOURS[k % len(COLOURS)]
        ax.scatter(across, up, s=area * row, color=colour, alpha=0.35, zorder=2, **discs)
        ax.plot(*x, "x", color=colour, ms=8, mew=2, label=f"({x[0]:.3g}, {x[1]:.3g})", zorder=3)
    ax.plot(*np.array([low, (high[0], low[1]), high, (low[0], high[1]), low]).T, color="#999999", lw=0.8)
    ax.set_aspect("equal", adjustable="datalim")
    ax.set(xlabel="first coordinate", ylabel="second coordinate")
    ax.legend(frameon=False, title="input; areas:\nprobabilities\n(grey: of all inputs)", **OUTSIDE)
    return titled(ax, repr(mechanism))

"""Maps of mechanisms between places."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from optdp.mechanisms.metric import MetricMechanism
from optdp.report.kernel import plot_table
from optdp.report.plots import COLOURS, OUTSIDE, new_axes, titled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike


def plot_map(mechanism: MetricMechanism, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
    """A map of the places: for a few inputs (crosses) the outputs as discs whose areas are their probabilities. Returns the axes.

    **Arguments:** `inputs`: which of the symbols; None: three that are far from each other. Without places on a map the table.
    """
    where = mechanism.metric.coordinates
    if where is None:
        return plot_table(mechanism, ax=ax)
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
        colour, name = COLOURS[k % len(COLOURS)], str(mechanism.domain.symbols[x])
        if mechanism.outputs == mechanism.domain.symbols:
            ax.scatter(across, up, s=900 * mechanism.table.rows[x], color=colour, alpha=0.45, lw=0, zorder=2)
        ax.plot(across[x], up[x], "x", color=colour, ms=7, mew=2, label=name, zorder=3)
    earth = getattr(mechanism.metric, "kind", "") == "haversine"
    ax.set_aspect(1 / np.cos(np.radians(up.mean())) if earth else "equal")
    ax.set(xlabel="longitude" if earth else "", ylabel="latitude" if earth else "")
    ax.legend(frameon=False, title="input", **OUTSIDE)
    return titled(ax, repr(mechanism))

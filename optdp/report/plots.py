"""Figures: plain axes, direct labels, colours that survive grey printing and colour blindness."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from optdp.mechanisms.base import Mechanism

#: Okabe and Ito's palette, the optimum always first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999", "#000000")


def new_axes(ax: Any = None, *, size: tuple[float, float] = (6.4, 4.0)) -> Any:
    """`ax`, or the axes of a new figure, without the top and right frame."""
    if ax is None:
        import matplotlib.pyplot as plt

        _, ax = plt.subplots(figsize=size, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def log_ticks(ax: Any, x: Any) -> None:
    """A logarithmic epsilon axis with plain numbers at the values that were computed."""
    ax.set_xscale("log")
    ax.set_xticks(list(x), [f"{value:g}" for value in x])
    ax.set_xticks([], minor=True)


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure in the format of the file's ending, whole or not at all, and close it."""
    import matplotlib.pyplot as plt

    target = Path(path)
    handle, part = tempfile.mkstemp(prefix=f".{target.name}.", suffix=target.suffix, dir=target.parent)
    os.close(handle)
    try:
        figure.savefig(part, dpi=160)
        os.replace(part, target)
    finally:
        Path(part).unlink(missing_ok=True)
        plt.close(figure)


def plot_densities(mechanism: Mechanism, *, ax: Any = None, inputs: Any = None) -> Any:
    """The output density for a few inputs, atoms as dots at their probability. Returns the axes."""
    ax = new_axes(ax)
    low, high = mechanism.support()
    a, b = mechanism.domain.lower, mechanism.domain.upper
    if not np.isfinite([low, high]).all():  # unbounded noise: what is near the domain
        low, high = 3 * a - 2 * b, 3 * b - 2 * a
    places = mechanism.atoms() if hasattr(mechanism, "atoms") else np.array([low, high])
    chosen = np.atleast_1d([a, a + 0.3 * (b - a), a + 0.5 * (b - a)] if inputs is None else inputs)
    y = np.linspace(low, high, 4001)
    for colour, x in zip(COLOURS * (1 + len(chosen) // len(COLOURS)), chosen, strict=False):
        ax.plot(y, mechanism.density(y, x), color=colour, label=f"x = {x:g}", lw=1.6)
        atoms = mechanism.probability(places, x)
        ax.plot(places[atoms > 0], atoms[atoms > 0], "o", color=colour, ms=5)
    ax.set(xlabel="output y", ylabel="density given x", ylim=(0, None))
    ax.set_title(f"Output density at a few inputs (eps = {mechanism.privacy():.3g})")
    ax.legend(frameon=False)
    return ax


def plot_losses(mechanisms: Mapping[str, Mechanism], loss: Any = "abs", *, ax: Any = None) -> Any:
    """Expected loss as a function of the input, one line for each mechanism, the first one thick. Returns the axes."""
    ax = new_axes(ax, size=(7.2, 4.4))
    for k, (name, mechanism) in enumerate(mechanisms.items()):
        x = np.linspace(mechanism.domain.lower, mechanism.domain.upper, 401)
        ax.plot(
            x, mechanism.expected_loss(x, loss), color=COLOURS[k % len(COLOURS)], lw=2.6 if k == 0 else 1.3, label=name
        )
    ax.set(xlabel="input x", ylabel=f"expected loss ({loss})", ylim=(0, None))
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax

"""Figures: plain axes, direct labels, colours that survive grey printing and colour blindness."""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from optdp import files
from optdp.mechanisms.base import Mechanism
from optdp.problem.domains import Integers
from optdp.problem.privacy import LDP
from optdp.solution import Solution

#: Okabe and Ito's palette, the optimum always first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999", "#000000")


def pyplot() -> Any:
    """The module matplotlib.pyplot. **Raises** RuntimeError naming the extra if matplotlib is not installed."""
    try:
        import matplotlib.pyplot
    except ImportError:
        raise RuntimeError("figures need the package matplotlib: pip install 'optdp[plot]'") from None
    return matplotlib.pyplot


def new_axes(ax: Any = None, *, size: tuple[float, float] = (6.4, 4.0)) -> Any:
    """`ax`, or the axes of a new figure, without the top and right frame."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=size, layout="constrained")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def titled(ax: Any, title: str) -> Any:
    """The axes under a title of any length, wrapped to their width, in place of the one they have."""
    ax.set_title("")
    ax.set_title("\n".join(textwrap.wrap(title, int(11.5 * ax.figure.get_figwidth()))), fontsize=9, loc="left")
    return ax


def line(k: int) -> dict[str, Any]:
    """The style of the k-th curve: the first one thick, neighbours dashed in turn, so that none hides another."""
    return {"color": COLOURS[k % len(COLOURS)], "lw": 1.4 if k else 2.6, "ls": "--" if k and k % 2 == 0 else "-"}


def log_ticks(ax: Any, x: Any) -> None:
    """A logarithmic epsilon axis with plain numbers at the values that were computed."""
    ax.set_xscale("log")
    ax.set_xticks(list(x), [f"{value:g}" for value in x])
    ax.set_xticks([], minor=True)


def save_figure(figure: Any, path: str | Path) -> None:
    """Write a figure in the format of the file's ending, whole or not at all, and close it."""
    try:
        with files.replacing(path, "wb") as stream:
            figure.savefig(stream, format=Path(path).suffix.lstrip("."), dpi=160)
    finally:
        pyplot().close(figure)


#: How a mechanism is drawn: the name of its class, or of one that it descends from -> module and function.
MECHANISMS = {
    "AdditiveNoise": ("optdp.report.plots", "plot_noise"),
    "KernelMechanism": ("optdp.report.kernel", "plot_kernel"),
    "FiniteMechanism": ("optdp.report.kernel", "plot_table"),
    "LIPMechanism": ("optdp.report.lip", "plot_kernel"),
    "Mechanism": ("optdp.report.plots", "plot_densities"),
}


def draw(thing: Mechanism | Solution, ax: Any = None, inputs: Any = None) -> Any:
    """Draw a mechanism, or a solution's mechanism under the statement of its problem. Returns the matplotlib axes.

    **Arguments:** `ax`: axes to draw on (default: a new figure); `inputs`: for which inputs, where the drawing shows a few.

    **Raises** TypeError for anything else, RuntimeError if matplotlib is not installed.
    """
    if isinstance(thing, Solution):
        return titled(draw(thing.mechanism, ax, inputs), thing.problem.statement())
    for kind in type(thing).__mro__:
        if kind.__name__ in MECHANISMS:
            module, function = MECHANISMS[kind.__name__]
            chosen = {} if inputs is None else {"inputs": inputs}
            return getattr(importlib.import_module(module), function)(thing, ax=ax, **chosen)
    raise TypeError(f"a {type(thing).__name__} is not allowed here: only mechanisms and solutions can be drawn")


def plot_noise(mechanism: Any, *, ax: Any = None, inputs: Any = None) -> Any:
    """The density (or the probabilities) of additive noise, an atom as a dot. Returns the axes.

    **Arguments:** `mechanism`: an `AdditiveNoise`; `inputs`: draw the outputs for these inputs instead of the noise.
    """
    ax = new_axes(ax)
    discrete = isinstance(mechanism.domain, Integers)
    low, high = mechanism.confidence_interval(0.999)
    for x in np.atleast_1d(0.0 if inputs is None else inputs):
        if discrete:
            z = np.arange(np.floor(low), np.ceil(high) + 1)
            ax.vlines(x + z, 0, mechanism.noise_probability(z), lw=1.5)
            ax.plot(x + z, mechanism.noise_probability(z), ".", ms=5)
            continue
        z = np.linspace(low, high, 4001)
        ax.plot(x + z, mechanism.noise_density(z), lw=1.5)
        atom, top = float(mechanism.noise_probability(0.0)), float(mechanism.noise_density(0.0))
        if atom > 0:
            ax.plot([x], [top], "o", ms=6)
            ax.annotate(f"atom {atom:.3g}", (x, top), textcoords="offset points", xytext=(10, -4))
    ax.set(xlabel="noise" if inputs is None else "output", ylabel="probability" if discrete else "density")
    ax.set_title(_guarantee(mechanism), fontsize=10)
    ax.set_ylim(bottom=0)
    return ax


def plot_densities(mechanism: Mechanism, *, ax: Any = None, inputs: Any = None) -> Any:
    """The output density for a few inputs, atoms as dots at their probability. Returns the axes."""
    ax = new_axes(ax)
    low, high = mechanism.support()
    a, b = mechanism.domain.lower, mechanism.domain.upper
    if not np.isfinite([low, high]).all():  # unbounded noise: what is near the domain
        low, high = 3 * a - 2 * b, 3 * b - 2 * a
    places = np.union1d(mechanism.atoms(), [low, high])
    chosen = np.atleast_1d([a, a + 0.3 * (b - a), a + 0.5 * (b - a)] if inputs is None else inputs)
    y = np.linspace(low, high, 4001)
    for colour, x in zip(COLOURS * (1 + len(chosen) // len(COLOURS)), chosen, strict=False):
        ax.plot(y, mechanism.density(y, x), color=colour, label=f"x = {x:g}", lw=1.6)
        atoms = mechanism.probability(places, x)
        ax.plot(places[atoms > 0], atoms[atoms > 0], "o", color=colour, ms=5)
    ax.set(xlabel="output y", ylabel="density given x", ylim=(0, None))
    ax.set_title(_guarantee(mechanism), fontsize=10)
    ax.legend(frameon=False)
    return ax


def _guarantee(mechanism: Mechanism) -> str:
    """The title of a mechanism: its class, and what it guarantees, with a rounded epsilon."""
    own = mechanism.guarantee()
    what = "no guarantee claimed" if own is None else str(own)
    if isinstance(own, LDP):
        what = f"{float(own.eps):.4g}-LDP" + (" in real arithmetic" if own.ideal else "")
    return f"{type(mechanism).__name__}: {what}"


def plot_losses(mechanisms: Mapping[str, Mechanism], loss: Any = "abs", *, ax: Any = None) -> Any:
    """Expected loss as a function of the input, one line for each mechanism, the first one thick. Returns the axes."""
    ax = new_axes(ax, size=(7.2, 4.4))
    for k, (name, mechanism) in enumerate(mechanisms.items()):
        x = np.linspace(mechanism.domain.lower, mechanism.domain.upper, 401)
        ax.plot(x, mechanism.expected_loss(x, loss), label=name, **line(k))
    ax.set(xlabel="input x", ylabel=f"expected loss ({loss})", ylim=(0, None))
    ax.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return ax

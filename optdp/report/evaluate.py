"""Statistics of real columns under each mechanism, as the composite paper evaluates them (its Section 5): errors against epsilon.

**Three protocols**, because the paper's own one is not private for every query:

- "local": every record is randomised for itself and the mean or count is taken of what comes out. eps-LDP.
- "range": the query is answered once, by a mechanism for the whole range that the query can have. eps-DP for every query.
- "interval": as the paper does it: the mechanism is built for an interval as long as the query's sensitivity. Bounded mechanisms
  only take queries in that interval, which is put around the true answer. Where the range is longer than the sensitivity (mean,
  variance, count) the place of the interval gives the answer away: these figures compare noise, they are not a private release.
  For maximum, minimum and mode range and sensitivity are the same, and "interval" is "range".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp.design.composite import solve_composite
from optdp.exact import as_rng, require
from optdp.mechanisms import baselines
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines.noise import gaussian
from optdp.problem import LDP, DomainLike, Problem, as_interval
from optdp.report.plots import COLOURS, OUTSIDE, figure_of, new_axes, titled
from optdp.report.report import Column, Report

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import ArrayLike

QUERIES = ("mean", "variance", "maximum", "minimum", "mode", "count")
#: Protocol -> what a report says of it.
PROTOCOLS = {
    "local": "Every record is randomised for itself: eps-LDP.",
    "range": "One answer from a mechanism for the query's whole range: eps-DP.",
    "interval": "Intervals as long as the sensitivity around the true answer, as the composite paper evaluates: for mean, "
    "variance and count their place gives the answer away, so that this compares noise and is no private release.",
}

#: Public-domain data that statsmodels ships: columns with ranges known from their codebooks, not from the values.
DATASETS: dict[str, dict[str, tuple[float, float]]] = {
    "anes96": {"age": (18.0, 100.0), "income": (1.0, 24.0), "educ": (1.0, 7.0)},
    "randhie": {"mdvis": (0.0, 100.0), "disea": (0.0, 60.0)},
    "modechoice": {"invt": (0.0, 1500.0), "invc": (0.0, 200.0), "hinc": (0.0, 100.0)},
}


def _composite(activation: str, base: str, eps: float, domain: DomainLike) -> Mechanism:
    return solve_composite(eps, activation, base, inputs=domain).mechanism


def _baseline(name: str, eps: float, domain: DomainLike) -> Mechanism:
    return baselines.get(name).build(Problem(LDP(eps), domain, "squared"))


#: Name -> constructor(eps, domain): the six composites, baselines of the registry, and the paper's Gaussian with delta = 1e-5.
MECHANISMS: dict[str, Callable[[float, DomainLike], Mechanism]] = {
    **{a + b: partial(_composite, a, b) for b in ("B1", "B2") for a in ("A1", "A2", "A3")},
    **{name: partial(_baseline, name) for name in (
        "PM", "Duchi", "HM", "Three-Outputs", "HM-TP", "Laplace", "discrete Laplace on a lattice", "clamped Laplace",
        "clamped discrete Laplace")},
    "classical Gaussian": gaussian,
}  # fmt: skip

#: What is clamped to the query's range where the noise is for a shorter interval.
CLAMPED = {"clamped Laplace": "Laplace", "clamped discrete Laplace": "discrete Laplace on a lattice"}


@dataclass(frozen=True)
class Query:
    """A statistic of a column: its true answer, how much one record can change it, and the range that it can have."""

    name: str
    answer: float
    sensitivity: float
    range: tuple[float, float]


def load_column(data: str, column: str) -> tuple[np.ndarray, tuple[float, float]]:
    """A column of a data set in `DATASETS`, and its range. **Raises** RuntimeError without statsmodels."""
    require.choice("data", data, tuple(DATASETS))
    require.choice("column", column, tuple(DATASETS[data]))
    try:
        import statsmodels.datasets as shipped
    except ImportError as error:
        raise RuntimeError("the real data need statsmodels: pip install optdp[data]") from error
    frame = getattr(shipped, data).load_pandas().data
    return frame[column].to_numpy(dtype=float), DATASETS[data][column]


def query_of(name: str, values: np.ndarray, bounds: tuple[float, float]) -> Query:
    """A query with the sensitivity that replacing one record has (for a count: adding or removing one)."""
    require.choice("query", name, QUERIES)
    low, high = bounds
    width, n = high - low, values.size
    found, counts = np.unique(values, return_counts=True)
    answer, sensitivity, reach = {
        "mean": (values.mean(), width / n, bounds),
        "variance": (values.var(), width**2 / n * (1 - 1 / n), (0.0, width**2 / 4)),
        "maximum": (found[-1], width, bounds),
        "minimum": (found[0], width, bounds),
        "mode": (found[counts.argmax()], width, bounds),
        "count": (n, 1.0, (0.0, 2.0 * n)),
    }[name]
    return Query(name, float(answer), sensitivity, reach)


def answers(
    query: Query, values: np.ndarray, bounds: tuple[float, float], mechanism_name: str, eps: float,
    protocol: str, repeats: int, rng: np.random.Generator,
) -> tuple[np.ndarray, tuple[float, float]]:  # fmt: skip
    """`repeats` private answers to one query, and the range that they can have."""
    make = MECHANISMS[mechanism_name]
    if protocol == "local":
        if query.name not in ("mean", "count"):
            raise ValueError(f"query = {query.name!r} is not allowed with protocol 'local': it must be mean or count")
        # A count locally: each record of the 2 n that there could be says whether it is there.
        mean = query.name == "mean"
        records, area = (values, bounds) if mean else (np.repeat([1.0, 0.0], values.size), (0.0, 1.0))
        mechanism, scale = make(eps, area), 1.0 if mean else float(records.size)
        found = np.array([mechanism.randomize(records, rng).mean() for _ in range(repeats)])
        low, high = mechanism.support()
        return found * scale, (low * scale, high * scale)
    if protocol == "range" or query.sensitivity >= query.range[1] - query.range[0]:
        area = query.range
    else:
        area = (query.answer - query.sensitivity / 2, query.answer + query.sensitivity / 2)
    if mechanism_name in CLAMPED:  # noise for the sensitivity, clamped to what the query can be: no more is known
        mechanism = MECHANISMS[CLAMPED[mechanism_name]](eps, area)
        return np.clip(mechanism.randomize(np.full(repeats, query.answer), rng), *query.range), query.range
    mechanism = make(eps, area)
    return mechanism.randomize(np.full(repeats, query.answer), rng), mechanism.support()


def evaluate(
    values: ArrayLike, bounds: tuple[float, float], *, queries: Sequence[str] = QUERIES,
    eps: Sequence[float] = (0.2, 0.5, 1.0, 2.0, 3.0), mechanisms: Sequence[str] = tuple(MECHANISMS),
    protocol: str = "interval", repeats: int = 1000, seed: int = 0, name: str = "column",
) -> Report:  # fmt: skip
    """Relative and mean square errors of each query under each mechanism at each epsilon.

    **Arguments:**

    - `values`: a column of numbers; `bounds`: the pair (lowest, highest) that they can have, known without looking.
    - `queries`: of `optdp.report.evaluate.QUERIES`; `eps`: privacy parameters; `mechanisms`: names of `MECHANISMS`.
    - `protocol`: "local", "range" or "interval" (the paper's; see the module). "local" answers mean and count.
    - `repeats`: answers for each; `seed`: of the draws; `name`: of the column, for the title.

    **Returns** a `Report` with one row for each query, epsilon and mechanism: `re` (mean |answer - truth|), `mse`, `bias`,
    `accuracy_loss` (median of |answer - truth|/|truth|) with its quartiles, and the range of the answers. Its figure are box
    plots of the accuracy loss.

    **Raises** TypeError or ValueError naming the argument, e.g. a value outside `bounds`.
    """
    within = as_interval((bounds[0], bounds[1]))
    if np.size(values) == 0:
        raise ValueError("values = [] is not allowed: a column must have at least one record")
    column, area = within.check(np.asarray(values).reshape(-1), "values"), (within.lower, within.upper)
    require.choice("protocol", protocol, tuple(PROTOCOLS))
    repeats = require.integer("repeats", repeats, low=2)
    for mechanism in mechanisms:
        require.choice("mechanisms", mechanism, tuple(MECHANISMS))
    levels = [require.epsilon(float(e)) for e in np.atleast_1d(np.asarray(eps, dtype=float))]
    asked = [query_of(q, column, area) for q in queries]
    rng = as_rng(seed)
    rows: list[dict[str, Any]] = []
    boxes: dict[tuple[str, float, str], np.ndarray] = {}
    for query, e, label in product(asked, levels, mechanisms):
        found, (lowest, highest) = answers(query, column, area, label, e, protocol, repeats, rng)
        error = found - query.answer
        loss = np.abs(error / query.answer) if query.answer else np.full(error.shape, np.nan)
        lower, median, upper = np.quantile(loss, (0.25, 0.5, 0.75)).tolist()
        boxes[query.name, e, label] = loss
        row = {
            "query": query.name, "eps": e, "mechanism": label, "truth": query.answer, "sensitivity": query.sensitivity,
            "re": float(np.mean(np.abs(error))), "mse": float(np.mean(error**2)), "bias": float(error.mean()),
            "bias_error": float(error.std() / np.sqrt(repeats)), "accuracy_loss": median, "lower_quartile": lower,
            "upper_quartile": upper, "lowest": lowest, "highest": highest,
        }  # fmt: skip
        rows.append(row)
    columns = [
        Column("query", "query"), Column("eps", "eps", "g"), Column("mechanism", "mechanism"), Column("truth", "truth"),
        Column("re", "RE", ".4g"), Column("mse", "MSE", ".4g"), Column("bias", "bias", ".2g"),
        Column("accuracy_loss", "median AL", ".3g"), Column("lowest", "lowest", ".4g"), Column("highest", "highest", ".4g"),
    ]  # fmt: skip
    notes = [
        f"{repeats} answers each; RE = mean |answer - truth|, MSE = mean squared error, AL = |answer - truth|/|truth|.",
        PROTOCOLS[protocol],
    ]
    if "classical Gaussian" in mechanisms:
        notes.append("classical Gaussian: (eps, 1e-5), with the calibration that is proven for eps <= 1 only.")
    title = f"{name}: {column.size} records, protocol '{protocol}'"
    chosen = asked[-1].name

    def figure() -> Figure:
        return _boxes(boxes, chosen, levels, list(mechanisms), f"{title}: accuracy loss of the {chosen}")

    return Report(title, columns, rows, notes, figure)


def _boxes(
    boxes: dict[tuple[str, float, str], np.ndarray], query: str, levels: list[float], names: list[str], title: str
) -> Figure:
    axes = new_axes(size=(min(max(6.4, 0.9 * len(levels) * len(names) ** 0.6), 11.0), 4.2))
    width = 0.8 / len(names)
    for k, name in enumerate(names):
        places = [j + (k - (len(names) - 1) / 2) * width for j in range(len(levels))]
        look = {"facecolor": COLOURS[k % len(COLOURS)], "alpha": 0.75, "hatch": "//" * (k // len(COLOURS))}
        drawn = axes.boxplot(
            [boxes[query, e, name] for e in levels], positions=places, widths=0.8 * width, patch_artist=True, boxprops=look,
            showfliers=False, whis=(5, 95), medianprops={"color": "black"}, manage_ticks=False,
        )  # fmt: skip
        drawn["boxes"][0].set_label(name)
    axes.set_xticks(range(len(levels)), [f"{e:g}" for e in levels])
    axes.set(xlabel="epsilon", ylabel="accuracy loss (whiskers: 5 %, 95 %)", yscale="log")
    axes.legend(frameon=False, **OUTSIDE)
    return figure_of(titled(axes, title))

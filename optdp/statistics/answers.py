"""What the private table of an `optdp.Plan` says: an estimate for each column, and for pairs of categories."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp.exact import require
from optdp.mechanisms.frequency import COINS, FrequencyOracle, SubsetOracle
from optdp.problem import OneHot
from optdp.statistics import tables
from optdp.statistics.estimate import countable, estimate
from optdp.statistics.intervals import averaged, probabilities, project
from optdp.statistics.part import Part, received, truth
from optdp.statistics.recommend import GOALS
from optdp.statistics.result import POPULATION, Ask, Estimate, NotIdentified
from optdp.statistics.schema import Flag
from optdp.statistics.tally import Tally

if TYPE_CHECKING:
    import pandas as pd

#: What an estimate says for a goal.
WHAT = {goal: goal for goal in GOALS} | {"distribution": "histogram", "answers": "mean"}


def check_level(level: float) -> None:
    """**Raises** TypeError or ValueError for no number in (0, 1)."""
    require.real("level", level, low=0.0, high=1.0, open_low=True, open_high=True)


def outputs_of(parts: Sequence[Part], table: Any) -> dict[str, Any]:
    """What each column of a private table holds: see `received`."""
    found = tables.names(table)
    for part in parts:
        if part.name not in found:
            raise ValueError(f"the table has no column {part.name!r}, which is not allowed: the plan reports it")
    return {part.name: received(part, tables.column(table, part.name)) for part in parts}


def tallies_of(parts: Sequence[Part], table: Any) -> dict[str, Any]:
    """The same, as tallies."""
    found, tallies = outputs_of(parts, table), {}
    for part in parts:
        try:
            tallies[part.name] = None, Tally(part.mechanism).add(found[part.name][1])
        except ValueError as error:
            raise ValueError(f"column {part.name!r}: {error}") from None
    return tallies


def added(parts: Iterable[Any]) -> Any:
    """Their sum, of tallies too."""
    return reduce(operator.add, parts)


def _products(parts: list[Part], table: Any) -> tuple[int, np.ndarray, np.ndarray]:
    """(how many report both categories; sums of the products of their unbiased indicators, and of the squares of these)."""
    sent = [received(part, tables.column(table, part.name)) for part in parts]
    both, sides = sent[0][0] & sent[1][0], []
    for part, (there, outputs) in zip(parts, sent, strict=True):
        oracle: Any = part.mechanism
        sides.append(oracle.frequencies(oracle.supports(outputs[both[there]], np.arange(oracle.domain.d))))
    first, second = sides
    return len(first), first.T @ second, (first**2).T @ second**2


def _pairs(parts: list[Part], oracle: SubsetOracle, table: Any) -> Tally:
    """The pairs of values in two columns that are answered together."""
    (there, first), (same, second) = (received(part, tables.column(table, part.name)) for part in parts)
    if not np.array_equal(there, same):
        raise ValueError(f"columns {parts[0].name!r}, {parts[1].name!r}: this plan sends both or none")
    return Tally(oracle).add(first * parts[1].mechanism.domain.d + second)


def _pair_oracle(parts: list[Part]) -> SubsetOracle:
    """What two columns that are answered together are by themselves: a randomised response on the pairs of their values."""
    true, size = truth(tuple(parts)), math.prod(part.mechanism.domain.d for part in parts)
    return SubsetOracle(OneHot(size), 1, true + (COINS - true) // size)


def _second_moments(oracle: Any) -> np.ndarray:
    """E[Y_c^2 | x] of the unbiased indicators Y, for x = c and for others (of statistics that are not 0 or 1: on average)."""
    noise = np.array([float(rate * (1 - rate) / oracle.exact_gap**2) for rate in oracle.exact_rates])
    if not oracle.binary:
        noise[:] = float(oracle.exact_value) / oracle.domain.d
    return np.asarray(noise + np.array([1.0, 0.0]))


def told(found: Mapping[str, Estimate], refused: Mapping[str, str], title: Callable[[str], str]) -> str:
    """Estimates by column, and why there is none of others; a method or assumption of several columns is said once."""
    lines, ends = [], dict[str, list[str]]()
    for name, answer in found.items():
        *shown, method, assumes = str(answer).split("\n")
        lines += [shown[0] if answer.columns else f"{title(name)}: {shown[0]}", *shown[1:]]  # of a pair they are in it
        for end in (method, assumes):
            ends.setdefault(end, []).append(name)
    lines += [f"{title(name)}: no estimate: {why}" for name, why in refused.items()]
    every = len(found)
    return "\n".join(lines + [end if len(of) == every else f"{end} (of {', '.join(of)})" for end, of in ends.items()])


@dataclass(frozen=True, repr=False)
class Answers(tables.Printed, Mapping[str, Estimate]):
    """Estimates from a private table: a mapping from columns to `optdp.Estimate`, each made when it is asked for."""

    #: The `optdp.Plan`.
    plan: Any
    #: (which rows report the column, their outputs); or (None, a tally), where the table was looked at part by part.
    outputs: dict[str, tuple[Any, Any]]
    level: float
    #: The private table, for questions about pairs of columns.
    table: Any = None

    def __post_init__(self) -> None:
        check_level(self.level)

    def __getitem__(self, name: str) -> Estimate:
        part = self.plan[name]
        what = WHAT[part.goal]
        return self.about(name, what, **({"q": 0.5} if what == "quantile" else {}))

    def about(self, name: str, what: str, **options: Any) -> Estimate:
        """Another question about a column; arguments as in `optdp.estimate`, at the level of these answers if none is given.

        **Raises** KeyError for a name that is no column's; ValueError naming the column.
        """
        part, outputs = self.plan[name], self.outputs[name][1]
        if not (outputs.n if isinstance(outputs, Tally) else len(outputs)):
            raise ValueError(f"column {name!r} has no answers, which is not allowed: somebody must report it")
        try:
            if what in ("histogram", "cdf") and part.column.form().get("whole") and countable(part.column.domain):
                options = {"whole": True, **options}
            found = estimate(part.mechanism, outputs, what, **{"level": self.level, **options})
        except ValueError as error:
            kind = NotIdentified if isinstance(error, NotIdentified) else ValueError
            raise kind(f"column {name!r}: {error}") from None
        if isinstance(part.column, Flag):
            called = dict(zip(part.column.names, part.column.shown, strict=True))
            found = replace(found, points=tuple(called.get(point, point) for point in found.points))
        if getattr(part.column, "outside", "refuse") == "refuse":
            return found
        return replace(found, assumptions=f"{found.assumptions}; inputs beyond {part.column.domain} count as its ends")

    def every(self) -> tuple[dict[str, Estimate], dict[str, str]]:
        """(the estimates by column, why there is none of the other columns)."""
        found: dict[str, Estimate] = {}
        refused: dict[str, str] = {}
        for name in self:
            try:
                found[name] = self[name]
            except ValueError as error:
                refused[name] = str(error)
        return found, refused

    def __iter__(self) -> Iterator[str]:
        return iter(self.plan.names)

    def __len__(self) -> int:
        return len(self.plan.names)

    def pair(self, one: str, two: str) -> Estimate:
        """The table of two categories: probabilities of all pairs of their values, from the people who report both.

        The noises of two columns are independent, so that the products of their unbiased indicators are unbiased for the pairs;
        columns that are answered together have unbiased indicators of their pairs. The values are the nearest probabilities that
        sum to 1; the errors are those of the averages. **Raises** ValueError naming the columns.
        """
        for name in (one, two):
            if name not in self.plan.names:
                told = ", ".join(map(repr, self.plan.names))
                raise ValueError(f"{name!r} is not allowed: it must be a column of the plan: {told}")
        if isinstance(self.table, str | Path) and str(self.table) == "-":
            raise ValueError("pairs are not allowed of standard input, which was read already: give a file")
        parts = [self.plan[name] for name in (one, two)]
        refusal = (
            f"columns {one!r}, {two!r} are not allowed: they must be two categories that some people both report: "
            "of strategy 'split' all, of 'joint' those that are answered together"
        )
        if one == two or not all(isinstance(part.mechanism, FrequencyOracle) for part in parts):
            raise ValueError(refusal)
        labels = [part.column.shown for part in parts]
        points = tuple(f"{a}, {b}" for a in labels[0] for b in labels[1])
        if parts[0].group and parts[0].group == parts[1].group:
            oracle = _pair_oracle(parts)
            tally = added(tables.each(self.table, partial(_pairs, parts, oracle)))
            if not tally.n:
                raise ValueError(refusal)
            found = estimate(oracle, tally, "frequencies", level=self.level)
            return replace(
                found,
                what="pair",
                points=points,
                columns=(one, two),
                method=f"randomised response of the pairs: {found.method}",
            )
        n, sums, squares = map(added, zip(*tables.each(self.table, partial(_products, parts)), strict=True))
        if not n:
            raise ValueError(refusal)
        average = (sums / n).reshape(-1)
        error = np.sqrt(np.maximum((squares / n).reshape(-1) - average**2, 0.0) / n)
        value, share = project(average), np.clip(average, 0, 1)
        corners = np.outer(parts[0].mechanism.support(), parts[1].mechanism.support())  # those of pairs lie between
        span = float(corners.min()), float(corners.max())
        interval, band = probabilities(partial(averaged, share, error, n, span), value, self.level)
        # What the noise alone makes of this share of people with the pair: also where nothing or everything is counted.
        own, other = np.multiply(*(_second_moments(part.mechanism) for part in parts)) - (1.0, 0.0)
        least = np.sqrt((share * own + (1 - share) * other) / n) if n > 1 else np.inf
        error = np.maximum(error, least)
        method = (
            "averages of products of unbiased indicators; score and normal intervals, or those of bounded numbers; "
            "the values are the nearest probabilities that sum to 1"
        )
        told = POPULATION.format("distribution")
        return replace(
            Ask("pair", self.level).answer(n, method, told, value, error, interval, band, points), columns=(one, two)
        )

    def to_frame(self) -> pd.DataFrame:
        """A pandas table of all estimates, a row for each number; columns of which there is none are left out (`every`).

        **Raises** RuntimeError without pandas (`optdp[tables]`).
        """
        rows, index = [], []
        for name, found in self.every()[0].items():
            index += [(name, str(point)) for point in (found.points if np.ndim(found.value) else (found.what,))]
            numbers = map(np.ravel, (found.value, found.standard_error, *found.interval))
            rows += [(*row, found.n) for row in zip(*numbers, strict=True)]
        labels = ("value", "standard_error", "low", "high", "n")
        return tables.frame({label: [row[i] for row in rows] for i, label in enumerate(labels)}, index)

    def __repr__(self) -> str:
        return f"<Answers about {tables.few(self.plan.names)}; to_frame() shows them>"

    def __str__(self) -> str:
        return told(*self.every(), self.title)

    def title(self, name: str) -> str:
        """A column with what its numbers are."""
        scale = self.plan[name].column.scale
        return f"{name} ({scale})" if scale else name

"""The columns of an `optdp.Plan`: their mechanisms, also of some that are answered together, what is sent and how it is read."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Annotated, Any

import numpy as np

from optdp.exact import OPTIONAL, Log, Number, Within, enclosures
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.frequency import COINS, FrequencyOracle, SubsetOracle
from optdp.problem import LDP, OneHot
from optdp.statistics import tables
from optdp.statistics.portable import NUMBER, lookup
from optdp.statistics.recommend import BINS, GOALS, unit_error
from optdp.statistics.schema import Column

#: What a `reader` raises.
UNREAD = (KeyError, OverflowError, TypeError, ValueError)


@dataclass(frozen=True)
class Part:
    """What a plan does with one column: `column` of the schema, the goal, its `mechanism` and the epsilon of it, its `weight`,
    and `unit`: the predicted error of its estimate times the square root of the number of people who report it, or for "answers"
    that of one answer. Columns of one `group` > 0 are answered together: `eps` is that of all of them, and the mechanism what
    comes out for this one.
    """

    name: Annotated[str, Within(most=200)]
    column: Column
    goal: Annotated[str, Within(words=GOALS)]
    eps: Number
    mechanism: Mechanism
    unit: Annotated[float, Within(0.0)]
    weight: Annotated[float, Within(0.0)]
    group: Annotated[int, Within(0, 10_000)] = field(default=0, metadata=OPTIONAL)

    def errors(self, n: int, share: float) -> float:
        """The predicted error about n people of whom this share reports the column; of "answers": of one, sent or guessed."""
        if self.goal == "answers":
            return share * self.unit + (1 - share) * width_of(self) / 2
        return math.hypot(self.unit, math.sqrt(1 - share) * _spread(self)) / math.sqrt(n * share)


def _spread(part: Part) -> float:
    """The standard deviation of what one of evenly spread entries adds to the estimate: of probabilities on average."""
    domain = part.column.domain
    if isinstance(domain, OneHot) or part.goal == "distribution":
        d = domain.d if isinstance(domain, OneHot) else BINS
        return math.sqrt((1 - 1 / d) / d)
    return domain.width / (2 if part.goal == "quantile" else math.sqrt(12))


def width_of(part: Part) -> float:
    """What errors are measured by: probabilities are errors as they are."""
    domain = part.column.domain
    return 1.0 if isinstance(domain, OneHot) or part.goal == "distribution" else domain.width


def truth(unit: tuple[Part, ...]) -> int:
    """c 2^124 for columns that are answered together, from their mechanisms. **Raises** ValueError unless these agree."""
    found = set()
    for part in unit:
        oracle: Any = part.mechanism
        if not isinstance(part.mechanism, SubsetOracle) or oracle.message != () or oracle.universe != oracle.domain.d:
            raise ValueError(f"column {part.name!r} is not one of categories that can be answered together")
        d = oracle.domain.d
        found.add(Fraction(d * oracle.coins - COINS, d - 1))  # the mechanism's coins are c + (1 - c)/d
    (c,) = found if len(found) == 1 else (Fraction(-1),)
    if c.denominator != 1 or not 0 < c < COINS:
        raise ValueError(
            f"columns {', '.join(repr(part.name) for part in unit)} cannot be answered together as they are"
        )
    return int(c)


def unit_ratio(unit: tuple[Part, ...]) -> Fraction:
    """The largest likelihood ratio, exactly: that of the one mechanism, or 1 + D c/(1 - c) for columns answered together."""
    if len(unit) == 1:
        own: Any = unit[0].mechanism.guarantee()
        if not isinstance(own, LDP) or own.ideal or not isinstance(own.eps, Log):
            raise ValueError(f"column {unit[0].name!r}: its guarantee is not an exact ratio")
        ratio: Fraction = own.eps.argument
        return ratio
    c = truth(unit)  # which sees to it that they have one
    combinations = math.prod(getattr(part.mechanism, "universe") for part in unit)  # noqa: B009
    return 1 + Fraction(combinations * c, COINS - c)


def together(columns: Mapping[str, Column], eps: Number, weight: Mapping[str, float], group: int) -> list[Part]:
    """Parts of categories that are answered together with this eps: the largest c whose ratio is at most e^eps; none where it
    would be 0, for chances are multiples of 2^-124.
    """
    domains: list[Any] = [column.domain for column in columns.values()]
    gain = enclosures.exp_below(eps, 200) - 1
    share = gain / (gain + math.prod(domain.d for domain in domains))
    rest = COINS - share.numerator * COINS // share.denominator
    step = math.lcm(*(domain.d for domain in domains))  # then every column's own probabilities are multiples of 2^-124
    rest = -(-rest // step) * step
    if rest >= COINS:
        return []
    parts = []
    for (name, column), domain in zip(columns.items(), domains, strict=True):
        oracle = SubsetOracle(domain, 1, COINS - rest + rest // domain.d)
        unit = unit_error(oracle, "frequencies", domain)
        parts.append(Part(name, column, "frequencies", eps, oracle, unit, weight[name], group))
    return parts


def words_of(part: Part, inputs: np.ndarray) -> np.ndarray:
    """Inputs as the mechanism reads them: the names of categories."""
    domain = part.mechanism.domain
    if not isinstance(domain, OneHot) or not domain.names:
        return inputs
    names = np.empty(domain.d, dtype=object)
    names[:] = domain.names
    return names[inputs]


def kind_of(part: Part) -> type:
    """Of what a private column consists."""
    return object if isinstance(part.mechanism, FrequencyOracle) else float


def as_column(part: Part, private: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """A column with the outputs of who reports it: numbers with nan, or texts with None, for the others."""
    if not isinstance(part.mechanism, FrequencyOracle):
        numbers = np.full(chosen.size, math.nan)
        numbers[chosen] = private
        return numbers
    out = np.full(chosen.size, None, dtype=object)
    if part.mechanism.message == ():
        labels = part.mechanism.domain.labels
        out[chosen] = [str(labels[i]) for i in private.tolist()]
    else:
        out[chosen] = [" ".join(map(str, row)) for row in private.tolist()]
    return out


def received(part: Part, column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(which rows report the column, their outputs): the inverse of `as_column`."""
    if column.dtype.kind == "f" and not isinstance(part.mechanism, FrequencyOracle):
        there = ~np.isnan(column)
        return there, column[there]
    entries, read = column.tolist(), reader(part)
    there = ~tables.missing(entries)
    try:
        return there, as_outputs(part, [read(entries[row]) for row in np.flatnonzero(there).tolist()])
    except UNREAD:
        raise ValueError(f"column {part.name!r} holds entries that this plan does not send") from None


def as_outputs(part: Part, read: list[Any]) -> np.ndarray:
    """What a `reader` has read, as a mechanism gives it."""
    if not isinstance(part.mechanism, FrequencyOracle):
        return np.array(read, dtype=float)
    return np.array(read, dtype=np.int64).reshape(-1, *part.mechanism.message)


def reader(part: Part) -> Callable[[Any], Any]:
    """What makes the output of an entry of a private column, also of tables that made numbers of texts."""
    oracle: Any = part.mechanism
    own: Callable[[Any], Any] = _real
    if isinstance(oracle, FrequencyOracle):
        labels, size = oracle.domain.labels, math.prod(oracle.message)
        own = places(labels).__getitem__ if oracle.message == () else partial(_message, size)

    def read(entry: Any) -> Any:
        if type(entry) is not str and isinstance(entry, bool | np.bool_):
            raise TypeError("no bool is sent, and one would pass for 0 or 1")
        return own(entry)

    return read


def _real(entry: Any) -> float:
    if isinstance(entry, str) and not NUMBER.fullmatch(entry):
        raise ValueError("no number")
    return float(entry)


def _message(size: int, entry: Any) -> list[int]:
    text = entry if type(entry) is str else str(operator.index(whole(entry)))
    if not (text.isascii() and text.replace(" ", "").isdigit()):  # int() takes more for a number
        raise ValueError("no integers")
    message = list(map(int, text.split(" ")))
    if len(message) != size or max(message) >= 2**63:
        raise ValueError("no message")
    return message


def whole(entry: Any) -> Any:
    """1 for 1.0."""
    return int(entry) if isinstance(entry, float) and entry.is_integer() else entry


def places(labels: Iterable[Any]) -> dict[Any, int]:
    """Where categories stand, by text; and by number, for tables that read "1" as 1 or 1.0, where one category alone has it."""
    found = lookup((), list(map(str, labels)))
    return found["places"] | {number: i for number, i in found["numbers"].items() if i >= 0}

"""What the columns of a table are: numbers, integers, dates, categories, flags; written without looking at the data."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import numpy as np

from optdp.exact import Fields, Tagged, Within, require
from optdp.exact.fields import hints
from optdp.exact.table import one_line
from optdp.problem.domains import Interval, OneHot
from optdp.statistics import portable
from optdp.statistics.portable import DAY, NUMBER
from optdp.statistics.tables import Refused

Outside = Literal["refuse", "clip"]
Unknown = Literal["refuse", "category"]
#: Values of a category.
MOST = 100_000
#: What categories of their own are called.
MISSING, OTHER = "(missing)", "(other)"


class Column(Tagged, root=True):
    """A column of a schema: `domain`, and how entries become inputs."""

    domain: Interval | OneHot
    #: What an estimate of the column says by default.
    what: str = "mean"

    def encode(self, values: Any, name: str) -> np.ndarray:
        """The inputs of a mechanism on `domain`. **Raises** ValueError naming column and row, never a value."""
        raise NotImplementedError(f"{type(self).__name__} has no inputs")

    @classmethod
    def _read(cls, fields: Fields) -> Self:
        """What a schema leaves out has its default."""
        kinds, own = hints(cls), dataclasses.fields(cls)  # type: ignore[arg-type]
        asked = [f.name for f in own if f.name in fields.data or f.default is dataclasses.MISSING]
        return cls(**{name: fields.typed(name, kinds[name]) for name in asked})

    @property
    def scale(self) -> str:
        """What its numbers are, for those who read estimates."""
        return getattr(self, "unit", "")


def _refuse(bad: np.ndarray, name: str, why: str) -> None:
    if bad.any():
        raise Refused(name, int(np.flatnonzero(bad)[0]) + 1, why)


def missing(values: Any) -> np.ndarray:
    """Which entries are missing: see `portable.missing`."""
    return np.array([portable.missing(v) for v in values], dtype=bool)


def _objects(values: Any, name: str) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim != 1:
        raise ValueError(f"column {name!r} has shape {array.shape}, which is not allowed: it must be one-dimensional")
    return array


def _numbers(values: Any, name: str) -> np.ndarray:
    """Entries as floats, texts read as clients read them. **Raises** ValueError for what is missing or no number."""
    array = _objects(values, name)
    if array.dtype.kind in "iuf":
        found = array.astype(float)
    elif array.dtype.kind == "b":
        raise TypeError(
            f"column {name!r} holds true and false, which is not allowed: it must hold numbers; use optdp.Flag()"
        )
    else:
        _refuse(missing(array), name, "it is missing")
        found = np.empty(array.size)
        for i, value in enumerate(array.tolist()):
            text = value.strip(portable.SPACE) if isinstance(value, str) else "" if isinstance(value, bool) else "0"
            try:
                found[i] = float(value if NUMBER.fullmatch(text) else "nan")
            except OverflowError:  # an integer beyond floats
                found[i] = math.inf if value > 0 else -math.inf
            except (TypeError, ValueError):
                found[i] = math.nan
    _refuse(np.isnan(found), name, "it is missing or not a number")
    return found


def _day(text: str) -> datetime.date | None:
    """What clients take for a date; what follows its day is left out."""
    found = DAY.fullmatch(text)
    try:
        return found and datetime.date.fromisoformat(found[1])
    except ValueError:
        return None


@dataclass(frozen=True)
class Number(Column):
    """A number between `lower` and `upper`, ends that are known without looking at the data.

    **Arguments:** `lower`, `upper`; `unit`: how it is measured, for summaries; `outside`: "refuse" numbers out of the range, or
    "clip" them to its nearest end. Missing numbers are refused.
    """

    tag = "number"
    lower: float
    upper: float
    unit: Annotated[str, Within(most=40)] = ""
    outside: Outside = "refuse"

    def __post_init__(self) -> None:
        ends = Interval(self.lower, self.upper)
        object.__setattr__(self, "lower", ends.lower)
        object.__setattr__(self, "upper", ends.upper)
        if not isinstance(self.unit, str) or len(self.unit) > 40 or not (self.unit + ".").isprintable():
            raise TypeError(
                f"unit = {self.unit!r} is not allowed: it must be a text of at most 40 printable characters"
            )
        require.choice("outside", self.outside, ("refuse", "clip"))

    @property
    def domain(self) -> Interval:  # type: ignore[override]
        """The interval."""
        return Interval(self.lower, self.upper)

    def encode(self, values: Any, name: str) -> np.ndarray:
        found = _numbers(values, name)
        if self.outside == "refuse":
            _refuse((found < self.lower) | (found > self.upper), name, f"it is not in {self.domain}; widen it, or clip")
        return np.clip(found, self.lower, self.upper)


@dataclass(frozen=True)
class Integer(Number):
    """An integer from `lower` to `upper`, of which there must be one; arguments as for `Number`."""

    tag = "integer"

    def __post_init__(self) -> None:
        super().__post_init__()
        if math.ceil(self.lower) > self.upper:
            raise ValueError(
                f"lower = {self.lower!r}, upper = {self.upper!r} are not allowed: no integer is between them"
            )

    def encode(self, values: Any, name: str) -> np.ndarray:
        found = super().encode(values, name)
        _refuse(found != np.round(found), name, "it is not an integer")
        return found


@dataclass(frozen=True)
class Date(Column):
    """A day from `first` to `last`, written "2026-01-31"; entries are dates, datetimes, numpy datetimes or such texts.

    Inputs and estimates are days since the first. **Arguments:** `first`, `last`; `outside` as for `Number`.
    """

    tag, unit = "date", "days"
    first: str
    last: str
    outside: Outside = "refuse"

    def __post_init__(self) -> None:
        for name in ("first", "last"):
            given: Any = getattr(self, name)
            try:
                day = given if isinstance(given, datetime.date) else datetime.date.fromisoformat(given)
            except (TypeError, ValueError) as error:
                told = f"{name} = {given!r} is not allowed: it must be a date such as '2026-01-31'"
                raise type(error)(told) from None
            object.__setattr__(self, name, day.isoformat()[:10])
        if not self.first < self.last:
            raise ValueError(f"first = {self.first!r} is not allowed: it must be before last = {self.last!r}")
        require.choice("outside", self.outside, ("refuse", "clip"))

    @property
    def domain(self) -> Interval:  # type: ignore[override]
        """Days since the first."""
        return Interval(0, float((np.datetime64(self.last) - np.datetime64(self.first)).astype(int)))

    def encode(self, values: Any, name: str) -> np.ndarray:
        array = _objects(values, name)
        if array.dtype.kind != "M":
            _refuse(missing(array), name, "it is missing")
            days = [_day(str(v)) for v in array.tolist()]
            _refuse(
                np.array([day is None for day in days], dtype=bool),
                name,
                "it is not a date: it must be written 2026-01-31",
            )
            array = np.array(days, dtype="datetime64[D]")
        _refuse(np.isnat(array), name, "it is missing")
        found = (array.astype("datetime64[D]") - np.datetime64(self.first)).astype(float)
        reach = self.domain.upper
        if self.outside == "refuse":
            _refuse(
                (found < 0) | (found > reach), name, f"it is not from {self.first} to {self.last}; widen it, or clip"
            )
        return np.clip(found, 0.0, reach)

    @property
    def scale(self) -> str:
        return f"days since {self.first}"


def _values(given: Any) -> tuple[Any, ...]:
    """Categories as they are given. **Raises** TypeError, ValueError."""
    allowed = "each must be a text of one line that is not empty, or a finite number"
    if not isinstance(given, Iterable) or isinstance(given, Mapping):
        raise TypeError(
            f"values is a {type(given).__name__}, which is not allowed: it must be a list of texts or numbers"
        )
    found = tuple(v.item() if isinstance(v, np.generic) else v for v in given)
    if len(found) > MOST:
        raise ValueError(f"values are not allowed: there are {len(found)}, and may be {MOST} at most")
    for v in found:
        if not isinstance(v, str | int | float):
            raise TypeError(f"values with a {type(v).__name__} are not allowed: {allowed}")
        if (isinstance(v, float) and not math.isfinite(v)) or (isinstance(v, str) and not (v and one_line(v))):
            raise ValueError(f"values with {v!r} are not allowed: {allowed}")
    return found


@dataclass(frozen=True)
class Category(Column):
    """One of several values.

    **Arguments:** `values`: strings that are not empty, or numbers, that differ as texts too (not 1 and "1"), without line breaks
    and other control characters; `missing`, `other`: "refuse" entries that are missing, or none of the values, or make them a
    "category" of their own, which is as private as the others.

    An entry is the value that it is, or is written like, or that is the same number: 1 and 1.0 are the text "1" (tables make
    numbers of texts), and the text "1.0" is the number 1. A number that two texts may be ("1" and "01") is refused.
    """

    tag = "category"
    values: Annotated[tuple[Any, ...], Within(least=1, most=MOST)]
    missing: Unknown = "refuse"
    other: Unknown = "refuse"
    what = "frequencies"

    def __post_init__(self) -> None:
        for name in ("missing", "other"):
            require.choice(name, getattr(self, name), ("refuse", "category"))
        object.__setattr__(self, "values", _values(self.values))
        texts = [str(name) for name in self.names]
        text, count = Counter(texts).most_common(1)[0] if texts else ("", 0)
        if count > 1:
            raise ValueError(f"values are not allowed: two are written {text!r}, and they must differ as texts")
        if len(set(self.names)) < max(len(texts), 2):
            raise ValueError(
                "values are not allowed: there must be at least two, all different (1 and True are the same)"
            )

    @property
    def names(self) -> tuple[Any, ...]:
        """All categories."""
        return self.values + (MISSING,) * (self.missing == "category") + (OTHER,) * (self.other == "category")

    @property
    def domain(self) -> OneHot:  # type: ignore[override]
        """The one-hot vectors."""
        return OneHot(self.names)  # type: ignore[arg-type]

    def encode(self, values: Any, name: str) -> np.ndarray:
        array, found = _objects(values, name), []
        column: dict[str, Any] = {"flag": isinstance(self, Flag)}
        column |= portable.lookup(self.names, [str(v) for v in self.names])
        for kind, own in (("missing", MISSING), ("other", OTHER)):
            column[kind] = self.names.index(own) if getattr(self, kind) == "category" else None
        # as they are: a list of floats would have more digits than those of 32 bits, one of dates integers
        for row, value in enumerate(array if array.dtype.kind in "fmM" else array.tolist(), 1):
            try:
                found.append(portable.category(column, value))
            except portable.Refused as why:
                raise Refused(name, row, str(why)) from None
        return np.array(found, dtype=np.int64)


@dataclass(frozen=True)
class Flag(Category):
    """True or false (also written 1 and 0, yes and no). **Arguments:** `missing`, `other` as for `Category`."""

    tag = "flag"
    values: Annotated[tuple[Any, ...], Within(least=2, most=2)] = (False, True)

    def __post_init__(self) -> None:
        if tuple(map(bool, self.values)) != (False, True):
            raise ValueError("values are not allowed here: a flag is true or false")
        object.__setattr__(self, "values", (0, 1))
        super().__post_init__()

"""What the columns of a table are: numbers, integers, dates, categories, flags; written without looking at the data."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np

from optdp.exact import Fields, Tagged, Within, require
from optdp.exact.fields import FieldError, hints
from optdp.exact.table import one_line
from optdp.problem.domains import Interval, OneHot
from optdp.statistics import portable, tables
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

    def form(self) -> dict[str, Any]:
        """What clients know of it."""
        raise NotImplementedError(f"{type(self).__name__} has no inputs")

    def encode(self, values: Any, name: str) -> np.ndarray:
        """Inputs of a mechanism on `domain`, as clients read them. **Raises** ValueError naming column and row, never a value."""
        array = tables.column({name: values}, name)
        if array.ndim != 1:
            raise ValueError(
                f"column {name!r} has shape {array.shape}, which is not allowed: it must be one-dimensional"
            )
        known = self._at_once(array, name)
        if known is not None and not np.isnan(known).any():
            return known
        read, found = portable.reader(self.form()), []
        for row, entry in enumerate(_entries(array), 1):
            try:
                found.append(read(entry))
            except portable.Refused as why:
                raise Refused(name, row, self._told(str(why))) from None
        return np.array(found, dtype=np.int64 if isinstance(self.domain, OneHot) else float)

    def _told(self, why: str) -> str:
        """Why clients refuse an entry, and what can be done about it here."""
        if why == portable.BEYOND:
            return f"it is not {self._reach}; widen it, or clip (outside='clip')"
        numeric = isinstance(self.domain, Interval)
        return f"{why}; fill it in, or leave the row out" if numeric and why == portable.GONE else why

    @property
    def _reach(self) -> str:
        """Which entries are in range."""
        return f"in {self.domain}"

    def _at_once(self, array: np.ndarray, name: str) -> np.ndarray | None:
        """The inputs of an array of numbers or dates, nan where an entry is refused; None where each must be read by itself."""
        return None

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


def _entries(array: np.ndarray) -> Iterable[Any]:
    """What clients would be given: numbers with their own digits, dates without their time."""
    if array.dtype.kind == "f":  # a list has the digits of 64 bits
        return array
    if array.dtype.kind in "Mm":  # a list may hold integers
        array = array.astype("M8[D]" if array.dtype.kind == "M" else "m8[s]")
    return array.tolist()


def _within(found: np.ndarray, form: dict[str, Any]) -> np.ndarray:
    """Numbers that are in the range of a column or clipped to it, else nan."""
    inside = np.asarray(np.clip(found, form["lower"], form["upper"]))
    if not form["clip"]:
        inside[inside != found] = np.nan
    if form["whole"]:
        inside[inside != np.rint(inside)] = np.nan
    return inside


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
        for end in ("lower", "upper"):
            object.__setattr__(self, end, require.real(end, getattr(self, end)))
        if not self.lower < self.upper:
            raise ValueError(
                f"lower = {self.lower:g}, upper = {self.upper:g} is not allowed: lower must be below upper"
            )
        Interval(self.lower, self.upper)
        if not isinstance(self.unit, str) or len(self.unit) > 40 or not (self.unit + ".").isprintable():
            raise TypeError(
                f"unit = {self.unit!r} is not allowed: it must be a text of at most 40 printable characters"
            )
        require.choice("outside", self.outside, ("refuse", "clip"))

    @property
    def domain(self) -> Interval:  # type: ignore[override]
        """The interval."""
        return Interval(self.lower, self.upper)

    def form(self) -> dict[str, Any]:
        bounds = {"lower": self.lower, "upper": self.upper, "clip": self.outside == "clip"}
        return {"type": "number", **bounds, "whole": isinstance(self, Integer), "unit": self.unit}

    def _at_once(self, array: np.ndarray, name: str) -> np.ndarray | None:
        if array.dtype.kind == "b":
            raise TypeError(
                f"column {name!r} holds true and false, which is not allowed: it must hold numbers; use optdp.Flag()"
            )
        if (
            array.dtype.kind in "iu" and ((array > 2**53) | (array < -(2**53))).any()
        ):  # which floats may bring into the range
            return None
        return _within(array.astype(float), self.form()) if array.dtype.kind in "iuf" else None


def _float(name: str, value: Any) -> None:
    """**Raises** ValueError for an integer that is no float, and would be rounded: the range would be another one."""
    if isinstance(value, int | np.integer) and abs(int(value)) < 2**1023 and int(float(value)) != int(value):
        raise ValueError(f"{name} = {value} is not allowed: it must be a float, as all integers up to 2^53 are")


@dataclass(frozen=True)
class Integer(Number):
    """An integer from `lower` to `upper`, which are integers; other arguments as for `Number`."""

    tag = "integer"

    def __post_init__(self) -> None:
        for end in ("lower", "upper"):
            _float(end, getattr(self, end))
        super().__post_init__()
        for end in ("lower", "upper"):  # clipped to 2.5 an entry would be none of the integers
            if not float(getattr(self, end)).is_integer():
                raise ValueError(f"{end} = {getattr(self, end)!r} is not allowed: it must be an integer")

    @classmethod
    def _read(cls, fields: Fields) -> Self:
        for end in ("lower", "upper"):
            try:
                _float(end, fields.data.get(end))
            except ValueError as error:
                raise FieldError(f"{fields.where}.{error}") from None
        return super()._read(fields)


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

    def form(self) -> dict[str, Any]:
        bounds = {"lower": 0.0, "upper": self.domain.upper, "clip": self.outside == "clip"}
        return {"type": "date", "first": self.first, "last": self.last, **bounds, "whole": True}

    def _at_once(self, array: np.ndarray, name: str) -> np.ndarray | None:
        if array.dtype.kind != "M":
            return None
        days = (array.astype("M8[D]") - np.datetime64(self.first)).astype(float)
        days[np.isnat(array)] = np.nan
        return _within(days, self.form())

    @property
    def _reach(self) -> str:
        return f"from {self.first} to {self.last}"

    @property
    def scale(self) -> str:
        return f"days since {self.first}"


def _values(given: Any) -> tuple[Any, ...]:
    """Categories as they are given. **Raises** TypeError, ValueError."""
    allowed = "each must be a text of one line that is not empty, or a finite number"
    if not isinstance(given, Iterable) or isinstance(given, Mapping | str | bytes | bytearray | Set):
        why = ", not its letters" if isinstance(given, str) else ""  # and a set has another order in the next process
        raise TypeError(
            f"values is a {type(given).__name__}, which is not allowed: it must be a list of texts or numbers{why}"
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

    if TYPE_CHECKING:  # what may be given

        def __init__(self, values: Iterable[Any], missing: Unknown = "refuse", other: Unknown = "refuse") -> None: ...

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
        return OneHot(self.names)

    @property
    def shown(self) -> tuple[str, ...]:
        """What estimates call the categories."""
        return tuple(map(str, self.names))

    def form(self) -> dict[str, Any]:
        names = self.names
        own = {"missing": names.index(MISSING) if self.missing == "category" else None}
        own |= {"other": names.index(OTHER) if self.other == "category" else None}
        # a text is itself, and an integer its digits
        texts = [] if all(type(v) in (str, int) for v in names) else [str(v) for v in names]
        values = [int(v) if isinstance(v, bool) else v for v in names]
        return {"type": "category", "flag": isinstance(self, Flag), "values": values, "texts": texts, **own}


@dataclass(frozen=True)
class Flag(Category):
    """True or false (also written 1 and 0, yes and no). **Arguments:** `missing`, `other` as for `Category`."""

    tag = "flag"
    values: Annotated[tuple[Any, ...], Within(least=2, most=2)] = (False, True)

    def __post_init__(self) -> None:
        if tuple(map(bool, self.values)) != (False, True):
            raise ValueError(
                "values are not allowed here: a flag is true or false; missing and other are given by name"
            )
        object.__setattr__(self, "values", (0, 1))
        super().__post_init__()

    @property
    def shown(self) -> tuple[str, ...]:
        return "no", "yes", *super().shown[2:]

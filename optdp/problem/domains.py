"""Where the inputs live, and how far apart two points are."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optdp.exact import require


class _Line:
    """What an interval and a circle share: a lower end, a width, and a membership test."""

    lower: float

    @property
    def upper(self) -> float:
        raise TypeError("a domain is an Interval or a Circle")

    @property
    def exact_width(self) -> Fraction:
        """Length of the domain, exactly (a difference of floats need not be a float)."""
        return Fraction(self.upper) - Fraction(self.lower)

    @property
    def width(self) -> float:
        """Length of the domain."""
        return float(self.exact_width)

    def check(self, x: Any, name: str = "x") -> np.ndarray:
        """`x` as a float array of any shape, if every entry lies in the domain (both ends included).

        **Raises** TypeError if it is not numeric, ValueError naming the first entry that lies outside.
        """
        raw = np.asarray(x)
        if raw.dtype.kind not in "iuf":
            raise TypeError(f"{name} = {x!r} is not allowed: {name} must be real numbers in {self}")
        array = raw.astype(float, copy=False)
        with np.errstate(invalid="ignore"):
            outside = ~((array >= self.lower) & (array <= self.upper))
        if outside.any():
            where = int(np.flatnonzero(outside)[0])
            value = array.reshape(-1)[where].item()
            place = "" if array.ndim == 0 else f" (entry {where})"
            raise ValueError(f"{name} = {value!r}{place} is not allowed: {name} must lie in {self}")
        return array


@dataclass(frozen=True)
class Interval(_Line):
    """The closed interval [lower, upper], with distance |y - x|."""

    lower: float = 0.0
    upper: float = 1.0

    def __post_init__(self) -> None:
        lower = require.real("domain lower end", self.lower)
        upper = require.real("domain upper end", self.upper)
        if not lower < upper:
            raise ValueError(
                f"domain = ({lower!r}, {upper!r}) is not allowed: the lower end must be below the upper end"
            )
        if not np.isfinite(upper - lower) or upper - lower < 1e-300:
            raise ValueError(
                f"domain = ({lower!r}, {upper!r}) is not allowed: its width must be between 1e-300 and 1.8e308"
            )
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def exact_reach(self) -> Fraction:
        """The largest distance from the worst input: the width, seen from an end."""
        return self.exact_width

    def distance(self, x: Any, y: Any) -> np.ndarray:
        """|y - x|, elementwise."""
        return np.abs(np.subtract(y, x))

    def to_dict(self) -> dict[str, Any]:
        """JSON form; floats survive exactly."""
        return {"type": "interval", "lower": self.lower, "upper": self.upper}

    def __str__(self) -> str:
        return f"[{self.lower:g}, {self.upper:g}]"


@dataclass(frozen=True)
class Circle(_Line):
    """The circle of the given period, its points written in [start, start + period], with the shorter arc as distance.

    `optdp.Circle(2 * math.pi)` are angles in [0, 2 pi]; `start=-math.pi` writes them in [-pi, pi].
    """

    period: float
    start: float = 0.0

    def __post_init__(self) -> None:
        period = require.real("period", self.period, low=0.0, open_low=True)
        start = require.real("start", self.start)
        if not np.isfinite(start + period) or start + period <= start or period < 1e-300:
            raise ValueError(
                f"period = {period!r}, start = {start!r} is not allowed: start + period must be a larger, finite number"
            )
        object.__setattr__(self, "period", period)
        object.__setattr__(self, "start", start)

    @property
    def lower(self) -> float:  # type: ignore[override]
        """The point where the circle is cut for writing."""
        return self.start

    @property
    def upper(self) -> float:
        """`start + period`, the same point as `start`."""
        return self.start + self.period

    @property
    def exact_width(self) -> Fraction:
        return Fraction(self.period)

    @property
    def exact_reach(self) -> Fraction:
        """The largest distance between two points: half the period."""
        return Fraction(self.period) / 2

    def distance(self, x: Any, y: Any) -> np.ndarray:
        """Length of the shorter arc between x and y, elementwise."""
        arc = np.mod(np.abs(np.subtract(y, x)), self.period)
        return np.minimum(arc, self.period - arc)

    def to_dict(self) -> dict[str, Any]:
        """JSON form; floats survive exactly."""
        return {"type": "circle", "period": self.period, "start": self.start}

    def __str__(self) -> str:
        return f"the circle [{self.start:g}, {self.upper:g}]"


@dataclass(frozen=True)
class AdditiveLine(_Line):
    """The real line (or the integers), where the output is the input plus noise that does not depend on it.

    **Arguments:** `sensitivity`: how far apart the true values of neighbouring data sets can be; `discrete`: whether inputs
    and outputs are whole numbers.
    """

    sensitivity: float = 1.0
    discrete: bool = False

    def __post_init__(self) -> None:
        value = require.real("sensitivity", self.sensitivity, low=1e-150, high=1e150)
        if self.discrete and (value != int(value) or value > 2**31):
            raise ValueError(
                f"sensitivity = {value!r} is not allowed: for whole numbers it must be a whole number in [1, 2^31]"
            )
        object.__setattr__(self, "sensitivity", value)

    @property
    def lower(self) -> float:  # type: ignore[override]
        """The line has no end."""
        return -np.inf

    @property
    def upper(self) -> float:
        """The line has no end."""
        return np.inf

    def check(self, x: Any, name: str = "x") -> np.ndarray:
        """`x` as a float array, if every entry is finite (and whole, if discrete)."""
        array = super().check(x, name)
        bad = ~np.isfinite(array)
        if self.discrete:
            bad |= (array != np.round(array)) | (np.abs(array) > 2.0**53)
        if bad.any():
            value = array.reshape(-1)[int(np.flatnonzero(bad.reshape(-1))[0])].item()
            what = "whole numbers up to 2^53" if self.discrete else "finite numbers"
            raise ValueError(f"{name} = {value!r} is not allowed: {name} must be {what}")
        return array

    def to_dict(self) -> dict[str, Any]:
        """JSON form; floats survive exactly."""
        return {"type": "additive", "sensitivity": self.sensitivity, "discrete": self.discrete}

    def __str__(self) -> str:
        return f"{'Z' if self.discrete else 'R'}, sensitivity {self.sensitivity:g}"


@dataclass(frozen=True)
class Alphabet:
    """A finite set of inputs, written as their number d or as a list of distinct symbols (strings or numbers).

    **Arguments:** `symbols`: a whole number d >= 2, for the inputs 0..d-1, or the inputs themselves.
    """

    symbols: tuple[Any, ...]

    def __post_init__(self) -> None:
        symbols = self.symbols
        if isinstance(symbols, int) and not isinstance(symbols, bool):
            symbols = tuple(range(require.integer("symbols", symbols, low=2)))
        if not isinstance(symbols, tuple | list):
            raise TypeError(f"symbols = {symbols!r} is not allowed: symbols must be a whole number or a list")
        if (
            len(symbols) < 2
            or not all(isinstance(s, str | int | float) for s in symbols)
            or len(set(symbols)) < len(symbols)
        ):
            raise ValueError(
                f"symbols = {symbols!r} is not allowed: they must be at least 2 different strings or numbers"
            )
        object.__setattr__(self, "symbols", tuple(symbols))

    def __len__(self) -> int:
        return len(self.symbols)

    def index(self, x: Any, name: str = "x") -> np.ndarray:
        """The positions of the symbols `x`, in the shape of `x`. **Raises** ValueError naming the first that is none of them."""
        array = np.asarray(x)
        place = {symbol: i for i, symbol in enumerate(self.symbols)}
        entries = array.reshape(-1).tolist()
        for where, entry in enumerate(entries):
            if entry not in place:
                raise ValueError(
                    f"{name} = {entry!r} (entry {where}) is not allowed: {name} must be one of the symbols of {self}"
                )
        return np.array([place[entry] for entry in entries], dtype=np.int64).reshape(array.shape)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"type": "alphabet", "symbols": list(self.symbols)}

    def __str__(self) -> str:
        shown = ", ".join(map(str, self.symbols[:4])) + (", ..." if len(self) > 4 else "")
        return f"the alphabet {{{shown}}} of {len(self)} symbols"


def as_domain(domain: Any) -> Interval | Circle:
    """An `Interval` or `Circle` as it is, or a pair (lower, upper) as an `Interval`.

    **Raises** TypeError for anything else, ValueError for an empty or reversed interval.
    """
    if isinstance(domain, Interval | Circle):
        return domain
    if isinstance(domain, tuple | list) and len(domain) == 2:
        return Interval(*domain)
    raise TypeError(
        f"domain = {domain!r} is not allowed: domain must be a pair (lower, upper), an optdp.Interval or an optdp.Circle"
    )


def domain_from_dict(data: dict[str, Any]) -> Any:
    """The inverse of `to_dict`."""
    kind = require.choice("domain type", data.get("type"), ("interval", "circle", "alphabet"))
    if kind == "alphabet":
        return Alphabet(data["symbols"])
    if kind == "interval":
        return Interval(data["lower"], data["upper"])
    return Circle(data["period"], data["start"])

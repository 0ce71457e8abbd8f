"""What an estimate is, and how it is printed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp import hooks
from optdp.statistics.tables import Printed, frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

#: What is said of values and standard errors where intervals are without this if.
AS_IF = "as if inputs were spread evenly"
POPULATION = "the inputs are independent draws from one population, whose {} is estimated"


class NotIdentified(ValueError):
    """The outputs do not determine what is asked for, however many there are; the message says why."""


@dataclass(frozen=True, repr=False)
class Estimate(Printed):
    """An estimate from private outputs, with its uncertainty.

    - `value`: a float, or an array for several numbers; `standard_error`: of the same shape, that of the average behind the
      value if inputs are distributed as estimated (too small where few are seen to differ, for which the interval allows), inf
      for one output; of a quantile its root mean square distance from the two that it would be were the estimated distribution
      function larger and smaller by its standard error (in bins, as if inputs were spread evenly within each).
    - `interval`: (low, high), each of this shape: contains the truth with probability `level`, for each number by itself.
    - `band`: (low, high) that contain all numbers at once with probability `level`.
    - `points`: what each number belongs to: names of categories, (lower, upper) of bins, points of a distribution function.
    - `method`, `assumptions`: how it was computed, and what must hold for the interval to be right.
    - `what`, `level`, `n`: the question, the level, the number of outputs; `q`: of a quantile, which one;
      `columns`: of a pair, which two.
    - `unit_error`: the standard error that many outputs of the same population would have, times the square root of their number.
    """

    what: str
    value: Any
    standard_error: Any
    interval: tuple[Any, Any]
    band: tuple[Any, Any]
    level: float
    n: int
    method: str
    assumptions: str
    points: tuple[Any, ...] = ()
    unit_error: Any = field(default=math.nan)
    q: float | None = None
    columns: tuple[str, ...] = ()

    @property
    def asked(self) -> str:
        """The question in words."""
        if self.columns:
            return f"{self.what} {' x '.join(self.columns)}"
        return self.what if self.q is None else f"{self.q!r}-{self.what}"

    @property
    def labels(self) -> list[str]:
        """What each number is called, neighbours differently."""
        return _names(self.points) if np.ndim(self.value) else [self.asked]

    def to_frame(self) -> pd.DataFrame:
        """A pandas table with a row for each number. **Raises** RuntimeError without pandas (`optdp[tables]`)."""
        index = self.points if len(self.points) == np.size(self.value) else [self.asked]
        columns = {
            "value": self.value, "standard_error": self.standard_error, "low": self.interval[0], "high": self.interval[1],
            "band_low": self.band[0], "band_high": self.band[1],
        }  # fmt: skip
        return frame({name: np.ravel(numbers) for name, numbers in columns.items()}, index)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the numbers with their intervals, a line for each. Returns the matplotlib axes."""
        return hooks.plot(self, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        numbers = {k: _plain(getattr(self, k)) for k in ("value", "standard_error", "interval", "band")}
        told = {k: getattr(self, k) for k in ("what", "level", "n", "method", "assumptions")}
        if self.q is not None:
            told["q"] = self.q
        if self.columns:
            told["columns"] = list(self.columns)
        return told | numbers | {"points": [list(p) if isinstance(p, tuple) else p for p in self.points]}

    def __repr__(self) -> str:
        if np.ndim(self.value) == 0:
            value, low, high = _told(self.value, *self.interval)
            even = " (as if inputs were spread evenly in bins)" if AS_IF in self.method else ""
            return (
                f"<Estimate of the {self.asked}: {value} +- {self.standard_error:.2g}{even}, "
                f"{100 * self.level:.15g} % interval [{low}, {high}], n = {self.n}>"
            )
        return f"<Estimate of the {self.asked}: {np.size(self.value)} numbers, n = {self.n}; to_frame() shows them>"

    def __str__(self) -> str:
        lines = [repr(self)[1:-1].removesuffix("; to_frame() shows them")]
        if np.ndim(self.value):
            rows = [_told(*row, digits=4) for row in zip(self.value, *self.interval, strict=True)]
            lines += [f"  {p}: {v} in [{a}, {b}]" for p, (v, a, b) in list(zip(self.labels, rows, strict=True))[:40]]
            lines += [f"  ... {len(rows) - 40} more"] * (len(rows) > 40)
        return "\n".join([*lines, f"  method: {self.method}", f"  assumes: {self.assumptions}"])


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, tuple) else np.asarray(value).tolist()


def _told(value: float, low: float, high: float, digits: int = 6) -> tuple[str, str, str]:
    """A number and its interval, with `digits` of the largest and at least two of the width; ends are rounded outwards."""
    last = _last_digit((value, low, high), high - low, digits)
    ways = ROUND_HALF_EVEN, ROUND_FLOOR, ROUND_CEILING
    one, two, three = (_rounded(v, last, way) for v, way in zip((value, low, high), ways, strict=True))
    return one, two, three


def _last_digit(numbers: Any, width: float, digits: int) -> int:
    """The power of ten of the last digit that is shown of numbers that differ by this width."""
    largest = max((abs(v) for v in numbers if math.isfinite(v)), default=0.0)
    last = math.floor(math.log10(largest)) + 1 - digits if largest else 0
    return min(last, math.floor(math.log10(width)) - 1) if 0 < width < math.inf else last


def _rounded(number: float, last: int, way: str = ROUND_HALF_EVEN) -> str:
    """Up to the digit of this power of ten, without zeros at the end."""
    if not math.isfinite(number) or not number:
        return f"{number + 0.0:g}"
    exact = Decimal(repr(float(number)))
    if exact.adjusted() - last > 15:  # more than a float has
        return repr(float(number))
    exact = exact.quantize(Decimal(1).scaleb(last), way)
    return f"{float(exact) + 0.0:.{max(exact.adjusted() - last + 1, 1)}g}"


def _names(points: Any) -> list[str]:
    """How numbers, bins and symbols are shown: neighbours differently."""
    numbers = [p for p in points if isinstance(p, float)]
    step = 2 * float(np.diff(np.unique(numbers) / 2).min()) if len(set(numbers)) > 1 else 0.0
    last = min(_last_digit(numbers, step, 6), 0)
    return [_rounded(p, last) if isinstance(p, float) else name_of(p) for p in points]


def name_of(point: Any) -> str:
    """How a bin, a number or a symbol is shown."""
    if isinstance(point, tuple):
        last = min(_last_digit(point, point[1] - point[0], 6), 0)
        return f"[{_rounded(point[0], last)}, {_rounded(point[1], last)})"
    return f"{point:g}" if isinstance(point, float) else str(point)


@dataclass(frozen=True)
class Ask:
    """The question."""

    what: str
    level: float
    q: float | None = None
    prior: Any = None
    strength: float = 1.0

    def answer(
        self, n: int, method: str, assumptions: str, value: Any, error: Any, interval: Any, band: Any, points: Any = ()
    ) -> Estimate:
        one = np.ndim(value) == 0
        band = np.minimum(band[0], interval[0]), np.maximum(band[1], interval[1])  # both are approximate
        ends: list[Any] = [tuple(float(e) if one else np.asarray(e) for e in pair) for pair in (interval, band)]
        value, error = (float(value), float(error)) if one else (np.asarray(value), np.asarray(error))
        return Estimate(
            self.what, value, error, ends[0], ends[1], self.level, n, method, assumptions, tuple(points), error * math.sqrt(n),
            self.q,
        )  # fmt: skip

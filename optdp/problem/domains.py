"""Where inputs live: pure geometry. Neighbourhoods and sensitivities belong to the privacy notion."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import OPTIONAL, Tagged, Within, plain, prose, require
from optdp.exact.numbers import digest


class Domain(Tagged, root=True):
    """A set of inputs. To add one, subclass this as a frozen dataclass with `check` and a short `__str__`."""

    #: The dimension of the inputs where they are vectors, whose distances are Euclidean norms; None for numbers and symbols.
    dimension: int | None = None

    def check(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        """`x` as an array of members, in its shape. **Raises** TypeError or ValueError, without any value of `x`."""
        raise NotImplementedError(f"{type(self).__name__} has no membership test")

    def latex(self) -> str:
        """The set in LaTeX."""
        return rf"\text{{{prose(str(self))}}}"


class _Bounded(Domain):
    """What an interval and a circle share: a lower end, a width, and a membership test."""

    lower: float
    upper: float

    @cached_property
    def exact_width(self) -> Fraction:
        """Length of the domain, exactly (a difference of floats need not be a float)."""
        return Fraction(self.upper) - Fraction(self.lower)

    @cached_property
    def width(self) -> float:
        """Length of the domain."""
        return float(self.exact_width)

    def check(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        array = _real(x, name, self)
        with np.errstate(invalid="ignore"):
            good = (array >= self.lower) & (array <= self.upper)
        if not good.all():
            _inside(good, array, name, f"{name} must lie in {self}")
        return array

    def check_exactly(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        """As `check`, for guarantees that depend on distances: an entry that is no float is refused, not rounded."""
        array = self.check(x, name)
        _exact(x, array, name)
        return array

    def check_integers(self, x: np.ndarray, name: str = "x") -> np.ndarray:
        """An array of integers as 64-bit integers, compared with the ends exactly."""
        low, high = max(math.ceil(self.lower), -(2**63)), min(math.floor(self.upper), 2**63 - 1)
        also = " and, as integers, between -2^63 and 2^63 - 1" if self.upper >= 2**63 else ""
        _inside((x >= low) & (x <= high), x, name, f"{name} must lie in {self}{also}")
        return x.astype(np.int64)


def _real(x: ArrayLike, name: str, where: Domain) -> np.ndarray:
    raw = require.array(x, name)
    if raw.dtype.kind not in "iuf":
        raise TypeError(f"{name} is of type {raw.dtype}, which is not allowed: {name} must be real numbers in {where}")
    return raw.astype(float, copy=False)


def _exact(x: ArrayLike, array: np.ndarray, name: str) -> None:
    """Refuse entries of `x` that are other numbers as the floats of `array`: rounding would move neighbours apart."""
    raw, good = np.asarray(x), np.ones(array.shape, dtype=bool)
    large = np.flatnonzero(np.abs(array) >= 2.0**53).tolist()
    if large and isinstance(x, list | tuple) and raw.dtype == float:  # numpy rounds integers that stand beside floats
        raw = np.asarray(x, dtype=object)
    if raw.dtype.kind in "iuO":
        flat = good.reshape(-1)
        for i in large:
            flat[i] = not isinstance(raw.flat[i], int | np.integer) or int(raw.flat[i]) == int(array.flat[i])
    elif raw.dtype.itemsize > array.dtype.itemsize:
        good = raw == array
    _inside(good, array, name, f"{name} must be numbers that are floats, as every integer up to 2^53 is")


def listed(values: Any) -> list[Any] | None:
    """The entries of a list, tuple, range, one-dimensional array or pandas Series, as Python objects; None for anything else:
    a set has no order, and a string is one name.
    """
    if isinstance(values, list | tuple | range):
        return [value.item() if isinstance(value, np.generic) else value for value in values]
    if not hasattr(values, "__array__") or np.ndim(values) != 1:
        return None
    array = np.asarray(values)
    return list(array) if array.dtype.kind in "mM" else array.tolist()  # dates to the nanosecond would become integers


def matrix_of(rows: Any) -> np.ndarray | None:
    """A matrix of real numbers; None for anything else, such as rows of several lengths. **Raises** ValueError for masked
    entries, and for a pandas DataFrame whose rows or columns have names: they could be in another order than the inputs.
    """
    require.unmasked(rows, "matrix")
    named: list[Any] = [getattr(rows, axis) for axis in ("index", "columns") if hasattr(rows, "to_numpy")]
    if any(k.tolist() != list(range(len(k))) for k in named):
        allowed = (
            "rows and columns are read in their order, not by their names: give the numbers alone, as with to_numpy()"
        )
        raise ValueError(f"a table with names is not allowed: {allowed}")
    try:
        matrix = np.asarray(rows)
    except ValueError:
        return None
    return matrix if matrix.ndim == 2 and matrix.dtype.kind in "iuf" else None


def _inside(good: np.ndarray, array: np.ndarray, name: str, allowed: str) -> None:
    """Refuse the first entry that is not good, by its place: its value may be private."""
    if not good.all():
        place = "" if array.ndim == 0 else f" (entry {int(np.flatnonzero(~good.reshape(-1))[0])})"
        raise ValueError(f"{name}{place} is not allowed: {allowed}")


@dataclass(frozen=True)
class Interval(_Bounded):
    """The closed interval [lower, upper], with distance |y - x|. Ends are floats.

    >>> import optdp
    >>> print(optdp.Interval(0, 120))
    [0, 120]
    """

    tag = "interval"
    lower: float = 0.0
    upper: float = 1.0

    def __post_init__(self) -> None:
        lower = require.real("domain lower end", self.lower)
        upper = require.real("domain upper end", self.upper)
        given = f"domain = ({lower!r}, {upper!r})"
        if not lower < upper:
            raise ValueError(f"{given} is not allowed: the lower end must be below the upper end")
        if not np.isfinite(upper - lower) or upper - lower < 1e-300:
            raise ValueError(f"{given} is not allowed: its width must be between 1e-300 and 1.8e308")
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)

    @property
    def exact_reach(self) -> Fraction:
        """The largest distance from the worst input: the width, seen from an end."""
        return self.exact_width

    def distance(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        """|y - x|, elementwise."""
        return np.asarray(np.abs(np.subtract(y, x)))

    def latex(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return f"[{plain(self.lower)}, {plain(self.upper)}]"


@dataclass(frozen=True)
class Circle(_Bounded):
    """The circle of the given period, its points written in [start, start + period], with the shorter arc as distance.

    `optdp.Circle(2 * math.pi)` are angles in [0, 2 pi]; `start=-math.pi` writes them in [-pi, pi].
    """

    tag = "circle"
    period: Annotated[float, Within(1e-300)]
    start: Annotated[float, Within()] = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.start < self.start + self.period < math.inf:
            given = f"period = {self.period!r}, start = {self.start!r}"
            raise ValueError(f"{given} is not allowed: start + period must be a larger, finite number")

    @property
    def lower(self) -> float:  # type: ignore[override]
        return self.start

    @property
    def upper(self) -> float:  # type: ignore[override]
        return self.start + self.period

    @cached_property
    def exact_width(self) -> Fraction:
        return Fraction(self.period)

    @property
    def exact_reach(self) -> Fraction:
        """The largest distance between two points: half the period."""
        return Fraction(self.period) / 2

    def distance(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        """Length of the shorter arc between x and y, elementwise."""
        arc = np.mod(np.abs(np.subtract(y, x)), self.period)
        return np.asarray(np.minimum(arc, self.period - arc))

    def latex(self) -> str:
        return rf"\mathbb{{R}} / {plain(self.period)} \mathbb{{Z}}"

    def __str__(self) -> str:
        return f"the circle of period {plain(self.period)} that starts at {plain(self.start)} (|.| is the shorter arc)"


@dataclass(frozen=True)
class Line(Domain):
    """The real line."""

    tag = "line"
    lower = -np.inf
    upper = np.inf

    def check(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        array = _real(x, name, self)
        _inside(np.isfinite(array), array, name, f"{name} must be finite numbers")
        _exact(x, array, name)
        return array

    def latex(self) -> str:
        return r"\mathbb{R}"

    def __str__(self) -> str:
        return "the real line"


@dataclass(frozen=True)
class Integers(Domain):
    """The integers (inputs up to 2^53 in size, as integers or floats)."""

    tag = "integers"
    lower = -np.inf
    upper = np.inf

    def check(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        array = _real(x, name, self)
        with np.errstate(invalid="ignore"):
            good = (array == np.round(array)) & (np.abs(array) <= 2.0**53)
        _inside(good, array, name, f"{name} must be integers up to 2^53")
        _exact(x, array, name)
        return array

    def latex(self) -> str:
        return r"\mathbb{Z}"

    def __str__(self) -> str:
        return "the integers"


def symbol_array(x: ArrayLike, symbols: tuple[Any, ...]) -> np.ndarray:
    """`x` as an array; as objects where strings and numbers are mixed, among the symbols or in a list, or floats and integers
    that are none, or where a string ends in a null character: numpy would make strings, or floats, of all, or leave the null
    out, and one symbol of two.
    """
    mixed = len({isinstance(s, str) for s in symbols}) > 1
    array = np.asarray(x, dtype=object) if mixed else np.asarray(x)
    if array.dtype.kind in "fU" and isinstance(x, list | tuple | str):
        entries = np.asarray(x, dtype=object)
        if any(_changed(entry, array.dtype.kind) for entry in entries.flat):
            return entries
    return array


def _changed(entry: Any, kind: str) -> bool:
    """Whether numpy may make another symbol of an entry: in an array of strings, or else of floats."""
    if kind == "U":
        return not isinstance(entry, str) or entry.endswith("\0")
    return isinstance(entry, int | np.integer) and not -(2**53) <= int(entry) <= 2**53


#: Symbols that an alphabet may be asked for by their number.
MOST = 10**7


@dataclass(frozen=True)
class Alphabet(Domain):
    """A finite set of inputs, written as their number d or as a list of distinct symbols (strings or numbers).

    **Arguments:** `symbols`: an integer d >= 2, for the inputs 0..d-1, or the inputs themselves.
    """

    tag = "alphabet"
    symbols: Annotated[tuple[Any, ...], Within(least=2, most=100_000)]

    if TYPE_CHECKING:  # what may be given

        def __init__(self, symbols: int | Iterable[Any]) -> None: ...

    def __post_init__(self) -> None:
        symbols: Any = self.symbols
        if isinstance(symbols, int | np.integer) and not isinstance(symbols, bool):
            symbols = tuple(range(require.integer("symbols", symbols, low=2, high=MOST)))
        symbols = listed(require.unmasked(symbols, "symbols"))
        if symbols is None:
            raise TypeError(f"symbols = {self.symbols!r} is not allowed: symbols must be an integer or a list")
        readable = all(isinstance(s, str | int) or (isinstance(s, float) and math.isfinite(s)) for s in symbols)
        if len(symbols) < 2 or not readable or len(set(symbols)) < len(symbols):
            allowed = "they must be at least 2 different strings or numbers"
            raise ValueError(f"symbols = {symbols!r} is not allowed: {allowed}")
        object.__setattr__(self, "symbols", tuple(symbols))

    def __len__(self) -> int:
        return len(self.symbols)

    def check(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        self.index(x, name)
        return symbol_array(x, self.symbols)

    def index(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        """The positions of the symbols `x`, in the shape of `x`. **Raises** ValueError naming the first entry that is none."""
        entries = require.unmasked(x, name)
        place = {symbol: i for i, symbol in enumerate(self.symbols)}
        try:
            array = symbol_array(entries, self.symbols)
            found = np.array([place.get(entry, -1) for entry in array.reshape(-1).tolist()], dtype=np.int64)
        except (TypeError, ValueError):  # rows of several lengths, or entries such as a dict
            raise TypeError(f"{name} is not allowed: {name} must be symbols, in an array of one shape") from None
        _inside(found >= 0, array, name, f"{name} must be one of the symbols of {self}")
        return found.reshape(array.shape)

    def __str__(self) -> str:
        if len(self) > 3 and self.symbols == tuple(range(len(self))):
            return f"the alphabet {{0, ..., {len(self) - 1}}}"
        shown = ", ".join(map(_shown, self.symbols[:8]))
        if len(self) <= 8 and not any(isinstance(s, str) and len(s) > 40 for s in self.symbols):
            return f"the alphabet {{{shown}}}"
        return f"the alphabet {{{shown}{', ...' * (len(self) > 8)}}} of {len(self)} symbols {digest(self.symbols)}"


@dataclass(frozen=True)
class OneHot(Domain):
    """The d one-hot vectors e_0, ..., e_(d-1) in R^d: what is known of one of d categories when their frequencies are wanted.

    **Arguments:** `d`: the number of categories, an integer >= 2, or the list of their names (different strings or numbers).
    An input is written as the name of its category, or as its number 0, ..., d - 1 where there are no names. Names are no part
    of a problem: domains with the same d are equal.

        >>> OneHot(["red", "green", "blue"]).check(["blue", "red"])
        array([2, 0])
    """

    tag = "one-hot"
    d: Annotated[int, Within(2, 10**9)]
    names: Annotated[tuple[Any, ...], Within(most=100_000)] = field(
        default=(), compare=False, repr=False, metadata=OPTIONAL
    )

    if TYPE_CHECKING:  # what may be given

        def __init__(self, d: int | Iterable[Any], names: Iterable[Any] = ()) -> None: ...

    def __post_init__(self) -> None:
        given: Any = self.d
        names = listed(given)
        if names is not None:
            object.__setattr__(self, "names", tuple(names))
            object.__setattr__(self, "d", len(names))
        object.__setattr__(self, "d", require.integer("d", self.d, low=2, high=10**9))
        if self.names:
            Alphabet(self.names)  # refuses what is no list of different names
            object.__setattr__(self, "names", tuple(self.names))
            if len(self.names) != self.d:
                raise ValueError(f"names has {len(self.names)} entries, which is not allowed: there must be {self.d}")

    def __len__(self) -> int:
        return self.d

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """d."""
        return self.d

    @property
    def labels(self) -> tuple[Any, ...] | range:
        """How the categories are written, in their order."""
        return self.names or range(self.d)

    def check(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        """The numbers of the categories `x`, in its shape."""
        if self.names:
            return Alphabet(self.names).index(x, name)
        raw = require.array(x, name)
        if raw.dtype.kind not in "iu" and raw.size:
            raise TypeError(
                f"{name} is of type {raw.dtype}, which is not allowed: {name} must be integers below {self.d}"
            )
        _inside((raw >= 0) & (raw < self.d), raw, name, f"{name} must be integers from 0 to {self.d - 1}")
        return raw.astype(np.int64, copy=False)

    def latex(self) -> str:
        return rf"\{{e_0, \dots, e_{{{self.d - 1}}}\}}"

    def __str__(self) -> str:
        return f"the one-hot vectors of {self.d} categories"


class _Vectors(Domain):
    """What sets of vectors share: the last axis of an array of inputs runs over the coordinates."""

    def distance(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        """The Euclidean norm of y - x, over the last axis."""
        return np.asarray(np.linalg.norm(np.subtract(y, x, dtype=float), axis=-1))

    def as_read(self, x: ArrayLike) -> np.ndarray:
        """The vectors as which inputs count, in double precision. **Raises** as `check`."""
        return np.asarray(self.check(x), dtype=float)

    def _vectors(self, x: ArrayLike, name: str) -> np.ndarray:
        raw = require.array(x, name)
        array = raw if raw.dtype == np.float32 else _real(raw, name, self)
        if array.ndim == 0 or array.shape[-1] != self.dimension:
            allowed = f"its last axis must have length {self.dimension}"
            raise ValueError(f"{name} of shape {array.shape} is not allowed: {allowed}")
        return array


@dataclass(frozen=True)
class _Round(_Vectors):
    """What the sphere and the ball share."""

    dim: Annotated[int, Within(1, 10**9)]

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """dim."""
        return self.dim

    def check(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        array = self._vectors(x, name)
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.sqrt(np.einsum("...i,...i->...", array, array, dtype=float))
            good, allowed = self._among(norms)
        _inside(good, array[..., 0], name, f"{name} must have {allowed}")
        return array

    def _among(self, norms: np.ndarray) -> tuple[np.ndarray, str]:
        """(which norms are those of members, what members must have)."""
        raise NotImplementedError(f"{type(self).__name__} has no membership test")


@dataclass(frozen=True)
class Sphere(_Round):
    """The unit vectors of R^dim. An input counts by its direction: its norm may differ from 1 by up to `SLACK`, for rounding.

    >>> print(Sphere(3))
    the unit sphere in R^3
    """

    tag = "sphere"
    #: Of norms: unit vectors in single precision are this close to 1.
    SLACK: ClassVar[float] = 1e-5

    def _among(self, norms: np.ndarray) -> tuple[np.ndarray, str]:
        return np.abs(norms - 1) <= self.SLACK, "norm 1"

    def as_read(self, x: ArrayLike) -> np.ndarray:
        inputs = super().as_read(x)
        return np.asarray(inputs / np.linalg.norm(inputs, axis=-1, keepdims=True))

    def latex(self) -> str:
        return rf"\{{x \in \mathbb{{R}}^{{{self.dim}}} : \|x\|_2 = 1\}}"

    def __str__(self) -> str:
        return f"the unit sphere in R^{self.dim}"


@dataclass(frozen=True)
class Ball(_Round):
    """The vectors of R^dim with Euclidean norm at most 1 (up to `Sphere.SLACK` more is taken for 1, for rounding)."""

    tag = "ball"

    def _among(self, norms: np.ndarray) -> tuple[np.ndarray, str]:
        return norms <= 1 + Sphere.SLACK, "norm at most 1"

    def as_read(self, x: ArrayLike) -> np.ndarray:
        inputs = super().as_read(x)
        return np.asarray(inputs / np.maximum(np.linalg.norm(inputs, axis=-1, keepdims=True), 1.0))

    def latex(self) -> str:
        return rf"\{{x \in \mathbb{{R}}^{{{self.dim}}} : \|x\|_2 \le 1\}}"

    def __str__(self) -> str:
        return f"the unit ball in R^{self.dim}"


@dataclass(frozen=True)
class Box(_Vectors):
    """The vectors between two corners: the product of the intervals [lower_i, upper_i].

    **Arguments:** `lower`, `upper`: the corners, of one length, from 1 to 10^6. `Box.cube(dim)` is [-1, 1]^dim.

        >>> print(Box((0, 0), (4, 3)), "and", Box.cube(5))
        [0, 4] x [0, 3] and [-1, 1]^5
    """

    tag = "box"
    lower: Annotated[tuple[float, ...], Within(least=1)]
    upper: Annotated[tuple[float, ...], Within(least=1)]

    if TYPE_CHECKING:  # what may be given

        def __init__(self, lower: Iterable[float], upper: Iterable[float]) -> None: ...

    def __post_init__(self) -> None:
        for name in ("lower", "upper"):
            corner = np.asarray(require.unmasked(getattr(self, name), name))
            if corner.ndim != 1 or corner.dtype.kind not in "iuf" or not 1 <= corner.size <= 10**6:
                raise ValueError(f"{name} is not allowed: the {name} corner must be a list of 1 to 10^6 numbers")
            object.__setattr__(self, name, tuple((corner.astype(float) + 0.0).tolist()))
        if len(self.lower) != len(self.upper):
            given = f"lower has {len(self.lower)} entries and upper {len(self.upper)}"
            raise ValueError(f"{given}, which is not allowed: both corners must have the same length")
        for ends in set(zip(self.lower, self.upper, strict=True)):
            Interval(*ends)  # refuses what is no interval

    @classmethod
    def cube(cls, dim: int, lower: float = -1.0, upper: float = 1.0) -> Box:
        """[lower, upper]^dim."""
        require.integer("dim", dim, low=1, high=10**6)
        return cls((lower,) * dim, (upper,) * dim)

    @property
    def dimension(self) -> int:  # type: ignore[override]
        """The number of coordinates."""
        return len(self.lower)

    @property
    def sides(self) -> tuple[Interval, ...]:
        """The interval of each coordinate."""
        return tuple(Interval(*ends) for ends in zip(self.lower, self.upper, strict=True))

    @property
    def is_cube(self) -> bool:
        """Whether it is [-1, 1]^dim."""
        return set(self.lower) == {-1.0} and set(self.upper) == {1.0}

    def check(self, x: ArrayLike, name: str = "x") -> np.ndarray:
        array = self._vectors(x, name)
        with np.errstate(invalid="ignore"):
            good = ((array >= np.array(self.lower)) & (array <= np.array(self.upper))).all(axis=-1)
        _inside(np.asarray(good), array[..., 0], name, f"{name} must lie in {self}")
        return array

    def latex(self) -> str:
        return re.sub(r"\^(\d+)", r"^{\1}", str(self)).replace(" x ", r" \times ")

    def __str__(self) -> str:
        ends = set(zip(self.lower, self.upper, strict=True))
        if self.dimension <= 4 and (len(ends) > 1 or self.dimension == 1):
            return " x ".join(map(str, self.sides))
        if len(ends) == 1:
            return f"{Interval(*ends.pop())}^{self.dimension}"
        shown = " x ".join(str(Interval(*pair)) for pair in list(zip(self.lower, self.upper, strict=True))[:3])
        return f"the box {shown} x ... in R^{self.dimension} {digest([self.lower, self.upper])}"


def _shown(symbol: str | float) -> str:
    """A symbol in a statement: as it is if it is a number or a plain word, else quoted (digits too), and cut if it is long."""
    text = str(symbol)
    word = text.replace("_", "").replace("-", "").isalnum() and len(text) <= 40 and text[:1].isalpha()
    return text if word or not isinstance(symbol, str) else repr(text if len(text) <= 40 else text[:40] + "...")


#: What `as_domain` reads.
DomainLike = Domain | tuple[float, float] | list[float] | np.ndarray


def as_domain(domain: DomainLike, name: str = "domain", others: str = "an optdp.Circle") -> Interval | Circle:
    """An `Interval` or `Circle` as it is, or a pair (lower, upper) as an `Interval`. `others`: what errors say is allowed too.

    **Raises** TypeError for anything else, ValueError for an empty or reversed interval.
    """
    if isinstance(domain, Interval | Circle):
        return domain
    ends = listed(domain)
    if ends is not None and len(ends) == 2:
        try:
            return Interval(*ends)
        except (TypeError, ValueError) as error:
            raise type(error)(str(error).replace("domain", name)) from None
    allowed = f"{name} must be a pair (lower, upper), an optdp.Interval or {others}"
    raise TypeError(f"{name} = {domain!r} is not allowed: {allowed}")


def as_interval(domain: DomainLike, what: str = "this mechanism", name: str = "domain") -> Interval:
    """The same, but a `Circle` is refused. **Raises** ValueError saying that `what` needs an interval."""
    area = as_domain(domain, name)
    if isinstance(area, Circle):
        raise ValueError(f"{name} = a Circle is not allowed: {what} needs an interval")
    return area

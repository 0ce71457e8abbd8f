"""Reading saved values field by field: every entry is checked for its presence, type, range and length before it is used.

What is wrong is said in one sentence: the file, the field, what is allowed. `Tagged` gives frozen dataclasses their JSON form.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import Field, dataclass, is_dataclass
from dataclasses import fields as dataclass_fields
from difflib import get_close_matches
from fractions import Fraction
from functools import reduce
from numbers import Integral, Real
from operator import or_
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

from optdp import files
from optdp.exact import require, work
from optdp.exact.numbers import Log, Number, encode, number

Item = TypeVar("Item")

#: A list may have this many entries, a text (the name of a category) this many characters, a file this many bytes.
LONGEST = 1_000_000
TEXT = 10_000
LABEL = 1000
FILE = 200_000_000
#: A message lists this many allowed names.
SHOWN = 12


class FieldError(ValueError):
    """A saved value that is not what it must be; the message names the field and what is allowed."""


@dataclass(frozen=True)
class Within:
    """What a field `Annotated[type, Within(...)]` may hold: numbers in [low, high], `least` to `most` entries.

    `open_low`, `open_high`: whether the ends are left out; `kind`: the type as which the field is read from a file, if another;
    `words`: strings that may stand in its place there.
    """

    low: float = -math.inf
    high: float = math.inf
    least: int = 0
    most: int = LONGEST
    kind: Any = None
    words: tuple[str, ...] = ()
    open_low: bool = False
    open_high: bool = False


#: Floats in files are no larger.
MOST = sys.float_info.max
#: Metadata of a dataclass field that is written only where it differs from its default, and of one that is not written
#: (a string in place of False: the name by which it is).
OPTIONAL, UNSAVED = {"optional": True}, {"saved": False}


class Fields:
    """The entries of one JSON object; `where` names it in messages. `done()` refuses entries that nobody asked for.

    **Arguments:** `whole`: it is all of a file, which `where` names.
    """

    def __init__(self, data: object, where: str, whole: bool = False) -> None:
        if not isinstance(data, dict):
            raise FieldError(f"{where} is {_kind(data)}, which is not allowed: it must be an object with named fields")
        self.data, self.where, self._whole, self._asked = data, where, whole, set[str]()

    def _get(self, name: str) -> Any:
        self._asked.add(name)
        if name not in self.data:
            if self._whole:  # bad.json.optdp looks like the name of another file
                raise FieldError(f"{self.where} has no entry {name!r}, which it must have")
            raise FieldError(f"{self.where}.{name} is missing")
        return self.data[name]

    def _refuse(self, name: str, value: Any, allowed: str) -> FieldError:
        small = isinstance(value, int) and value.bit_length() < 200
        shown = repr(value) if small or value is None or isinstance(value, float) else _kind(value)
        return FieldError(f"{self.where}.{name} = {shown} is not allowed: it must be {allowed}")

    def has(self, name: str) -> bool:
        """Whether the field, which must be there, is not null."""
        return self._get(name) is not None

    def real(self, name: str, low: float = -math.inf, high: float = math.inf) -> float:
        """A finite float in [low, high]."""
        return self._real(name, self._get(name), low, high)

    def _real(self, name: str, value: Any, low: float, high: float) -> float:
        sound = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MOST
        if not sound or not low <= value <= high:
            bounds = "" if math.isinf(low) and math.isinf(high) else f" in [{low:g}, {high:g}]"
            raise self._refuse(name, value, "a finite number" + bounds)
        return float(value)

    def number(self, name: str) -> Number:
        """An exact number (`optdp.exact.numbers`)."""
        value = self._get(name)
        try:
            return number(value, f"{self.where}.{name}")
        except (TypeError, ValueError, OverflowError):
            raise self._refuse(name, value, 'a number, "p/q", a decimal string or "log(p/q)"') from None

    def rational(self, name: str) -> Fraction:
        """A rational number, written as a number, "p/q" or a decimal string."""
        value = self.number(name)
        if isinstance(value, Log):
            raise self._refuse(name, value, "a rational number")
        return Fraction(value)

    def integer(self, name: str, low: int, high: int) -> int:
        """An integer in [low, high], written as a JSON integer or as a decimal string."""
        return _integer(self._get(name), low, high, f"{self.where}.{name}")

    def flag(self, name: str) -> bool:
        """true or false."""
        value = self._get(name)
        if not isinstance(value, bool):
            raise self._refuse(name, value, "true or false")
        return value

    def text(self, name: str, most: int = TEXT) -> str:
        """One line of at most `most` characters, all printable: what is shown beside proven sentences must not look like one."""
        value = self._get(name)
        if not isinstance(value, str) or len(value) > most or not value.isprintable():
            raise self._refuse(name, value, f"one line of at most {most} printable characters")
        return value

    def choice(self, name: str, allowed: Sequence[str]) -> str:
        """One of the given strings."""
        value = self._get(name)
        if not isinstance(value, str) or value not in allowed:
            shown = repr(value) if isinstance(value, str) and len(value) < 60 else _kind(value)
            near = get_close_matches(value, allowed, 3) if isinstance(value, str) and len(value) < 60 else []
            names = list(allowed) if len(allowed) <= SHOWN else near or [*allowed[: SHOWN - 1], "..."]
            must = f"it must be one of {', '.join(map(repr, names))}"
            raise FieldError(f"{self.where}.{name} = {shown} is not allowed: {must}")
        return value

    def child(self, name: str) -> Fields:
        """A nested object."""
        return Fields(self._get(name), f"{self.where}.{name}")

    def entries(self, name: str, least: int = 0, most: int = LONGEST) -> list[Any]:
        """A list of `least` to `most` entries, not yet checked."""
        value = self._get(name)
        if not isinstance(value, list) or not least <= len(value) <= most:
            shown = f"{len(value)} entries" if isinstance(value, list) else _kind(value)
            must = f"it must be a list of {least} to {most} entries"
            raise FieldError(f"{self.where}.{name} has {shown}, which is not allowed: {must}")
        return value

    def reals(
        self, name: str, low: float = -math.inf, high: float = math.inf, *, least: int = 0, most: int = LONGEST
    ) -> tuple[float, ...]:
        """A list of finite floats in [low, high]."""
        values, bottom, top = self.entries(name, least, most), max(low, -MOST), min(high, MOST)
        if all(type(v) is float and bottom <= v <= top for v in values):  # names of entries are for errors
            return tuple(values)
        return tuple(self._real(f"{name}[{i}]", v, low, high) for i, v in enumerate(values))

    def integers(self, name: str, low: int, high: int, *, least: int = 0, most: int = LONGEST) -> tuple[int, ...]:
        """A list of integers in [low, high]."""
        values, where = self.entries(name, least, most), f"{self.where}.{name}"
        if all(type(v) is int and low <= v <= high for v in values):
            return tuple(values)
        return tuple(_integer(v, low, high, f"{where}[{i}]") for i, v in enumerate(values))

    def labels(self, name: str, *, least: int = 0, most: int = LONGEST) -> tuple[Any, ...]:
        """A list of strings and numbers."""
        values = self.entries(name, least, most)
        for i, value in enumerate(values):
            number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
            if not number and not (isinstance(value, str) and len(value) <= LABEL):
                raise self._refuse(f"{name}[{i}]", value, f"a text of at most {LABEL} characters or a finite number")
        return tuple(values)

    def into(self, made: type[Item]) -> Item:
        """A dataclass, whose fields are read by their types. **Raises** FieldError, and what its `__post_init__` raises."""
        kinds = hints(made)
        asked = [(f, name) for f, name in _saved(made) if name in self.data or not f.metadata.get("optional")]
        return made(**{f.name: self.typed(name, kinds[f.name]) for f, name in asked})

    def make(self, read: Callable[[Fields], Item]) -> Item:
        """What `read` makes of the entries, all of which it must ask for. **Raises** FieldError, whatever is wrong."""
        try:
            made = read(self)
        except FieldError:
            raise
        except (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, RecursionError) as error:
            raise FieldError(f"{self.where}: {brief(error)}") from None
        self.done()
        return made

    def typed(self, name: str, kind: Any, within: Within = Within()) -> Any:
        """An entry by its type: a number, bool, str, Literal, `Tagged`, None or one of these, or a tuple of them."""
        if get_origin(kind) is Annotated:
            kind, within = get_args(kind)[:2]
            kind = within.kind or kind
        if within.words and isinstance(self.data.get(name), str):
            return self.choice(name, within.words)
        parts = get_args(kind)
        if NoneType in parts:
            present = reduce(or_, (part for part in parts if part is not NoneType))
            return self.typed(name, Annotated[present, within]) if self.has(name) else None
        if get_origin(kind) is Literal:
            return self.choice(name, parts)
        if get_origin(kind) is tuple:
            return self._tuple(name, parts, within)
        if hasattr(kind, "to_list"):
            return kind.read(self, name)
        tagged = parts[0] if parts else kind  # of several with one root, the root finds the right one
        if hasattr(tagged, "read"):
            return tagged.read(self.child(name))
        if isinstance(kind, type) and is_dataclass(kind):
            child = self.child(name)
            made = child.into(kind)
            child.done()
            return made
        if kind is int:
            return self.integer(name, int(within.low), int(within.high))
        if kind is float:
            return self.real(name, within.low, within.high)
        if kind is str:
            return self.text(name, min(within.most, TEXT))
        simple: dict[Any, Callable[[str], Any]] = {bool: self.flag, Fraction: self.rational, Number: self.number}
        return simple[kind](name)

    def _tuple(self, name: str, parts: tuple[Any, ...], within: Within) -> tuple[Any, ...]:
        least, most = (within.least, within.most) if parts[-1] is Ellipsis else (len(parts), len(parts))
        if parts[0] is float:
            return self.reals(name, within.low, within.high, least=least, most=most)
        if parts[0] is int:
            return self.integers(name, int(within.low), int(within.high), least=least, most=most)
        if parts[0] is Any:
            return self.labels(name, least=least, most=most)
        entries = {f"{name}[{i}]": entry for i, entry in enumerate(self.entries(name, least, most))}
        inner = Fields(entries, self.where)
        return tuple(inner.typed(entry, parts[0], Within(within.low, within.high)) for entry in entries)

    def done(self) -> None:
        """Refuse what nobody asked for."""
        unknown = sorted(map(str, set(self.data) - self._asked))
        if unknown:
            raise FieldError(f"{self.where} has an unknown field {unknown[0][:60]!r}, which is not allowed")


_HINTS: dict[type[Any], dict[str, Any]] = {}


def hints(made: type[Any]) -> dict[str, Any]:
    """The annotations of a class, evaluated once: files hold many of a kind."""
    if made not in _HINTS:
        _HINTS[made] = get_type_hints(made, include_extras=True)
    return _HINTS[made]


def _integer(value: Any, low: int, high: int, where: str) -> int:
    if isinstance(value, str) and len(value) <= TEXT // 3 and value.isascii() and value.removeprefix("-").isdigit():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        shown = str(value) if isinstance(value, int) and value.bit_length() < 200 else _kind(value)
        raise FieldError(f"{where} = {shown} is not allowed: it must be an integer in [{_short(low)}, {_short(high)}]")
    return value


def brief(error: Exception) -> str:
    """What an error says, with the middle left out where it quotes much of a file: its end says what is allowed."""
    text = " ".join(str(error).split())
    return text if len(text) <= 500 else f"{text[:200]} ... {text[-250:]}"


def _short(value: int) -> str:
    bits = value.bit_length()
    if value <= 2**40:
        return str(value)
    return {1 << (bits - 1): f"2^{bits - 1}", (1 << bits) - 1: f"2^{bits} - 1"}.get(value, f"about 2^{bits}")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def enter(known: dict[str, type[Any]], name: str, made: type[Any], shown: str) -> None:
    """Enter a class by the name that saved files give it. **Raises** TypeError if another class has that name."""
    other = known.setdefault(name, made)
    if (other.__module__, other.__qualname__) != (made.__module__, made.__qualname__):
        raise TypeError(f"there is a {shown} in {other.__module__} already: saved files name it")
    known[name] = made


def sound(name: str, value: Any, kind: Any) -> Any:
    """The argument `value` of a field with the annotation `kind`, checked and in the one form in which it is kept.

    Numbers with limits are, and strings of a `Literal`; others stay as they are.
    """
    if get_origin(kind) is Literal:
        return require.choice(name, value, get_args(kind))
    if get_origin(kind) is not Annotated:
        return value
    kind, within = get_args(kind)[:2]
    if kind == Number or kind is float:
        read, ends = require.exact if kind == Number else require.real, (within.open_low, within.open_high)
        return read(name, value, low=within.low, high=within.high, open_low=ends[0], open_high=ends[1])
    return require.integer(name, value, low=int(within.low), high=int(within.high)) if kind is int else value


def whole(name: str, value: Any, kind: Any) -> Any:
    """As `sound`, and tuples of numbers are checked too, bools, and of which class other values are."""
    inner, within = get_args(kind)[:2] if get_origin(kind) is Annotated else (kind, Within())
    inner = within.kind or inner
    parts = get_args(inner)
    if get_origin(inner) is tuple and parts[0] in (int, float):
        return _several(name, value, parts[0], within)
    kinds = parts or (inner,)
    if all(hasattr(one, "read") or one in (NoneType, bool) for one in kinds) and not isinstance(value, kinds):
        names = " or ".join("None" if one is NoneType else one.__name__ for one in kinds)
        raise TypeError(f"{name} = {value!r} is not allowed: {name} must be of the type {names}")
    return sound(name, value, kind)


def _several(name: str, values: Any, kind: type, within: Within) -> tuple[Any, ...]:
    exact = kind is int
    bounds = f"{_short(int(within.low))}, {_short(int(within.high))}" if exact else f"{within.low:g}, {within.high:g}"
    entries = "integers" if exact else "finite numbers"
    told = f"{name} are not allowed: they must be {within.least} to {within.most} {entries} in [{bounds}]"
    given = tuple(values)
    types = set(map(type, given))
    if any(each is bool or not issubclass(each, Integral if exact else Real) for each in types):
        raise TypeError(told)
    made = given if types == {kind} else tuple(map(kind, given))
    if not within.least <= len(made) <= within.most or not (exact or all(map(math.isfinite, made))):
        raise ValueError(told)
    if made and not within.low <= min(made) <= max(made) <= within.high:
        raise ValueError(told)
    return made


def settle(made: Any, check: Callable[[str, Any, Any], Any]) -> None:
    """Check the fields of a new value by their annotations, each with `check`, and keep them in the form that it gives."""
    kinds: dict[str, Any] = {}
    with suppress(NameError):  # a class inside a function, whose annotations nobody else can read
        kinds = hints(type(made))
    for name, value in list(vars(made).items()):
        object.__setattr__(made, name, check(name, value, kinds.get(name)))


class Tagged:
    """A value with the JSON form {"type": tag, ...}: frozen dataclasses that a root class reads back by their tag.

    A root is declared with `class Privacy(Tagged, root=True)`; its subclasses set `tag`. Their fields are checked and read by
    their annotations (`sound`, `Fields.into`); one whose fields have other forms defines `__post_init__`, `to_dict` and `_read`.
    """

    tag: ClassVar[str] = ""
    _known: ClassVar[dict[str, type[Any]]]

    def __init_subclass__(cls, *, root: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if root:
            cls._known = {}
        if "tag" in cls.__dict__ and cls.tag:
            enter(cls._known, cls.tag, cls, repr(cls.tag))

    def __post_init__(self) -> None:
        settle(self, sound)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact."""
        return {"type": self.tag} | written(self)

    @classmethod
    def read(cls, fields: Fields) -> Self:
        """The value that `to_dict` wrote, of whichever subclass. **Raises** FieldError."""
        made: Self = fields.make(cls._known[fields.choice("type", tuple(sorted(cls._known)))]._read)
        return made

    @classmethod
    def _read(cls, fields: Fields) -> Self:
        return fields.into(cls)

    @classmethod
    def from_dict(cls, data: object) -> Self:
        """The inverse of `to_dict`."""
        return cls.read(Fields(data, cls.__name__.lower()))


def _saved(made: type[Any]) -> list[tuple[Field[Any], str]]:
    """The fields of a dataclass that are written, and by which names; none of another class."""
    own = dataclass_fields(made) if is_dataclass(made) else ()
    named = [(f, f.metadata.get("saved", f.name)) for f in own if f.init]
    return [(f, name) for f, name in named if name]


def written(value: object) -> dict[str, Any]:
    """The JSON form of a dataclass, exact: what `Fields.into` reads."""
    own = [(f, name, getattr(value, f.name)) for f, name in _saved(type(value))]
    return {name: _encode(v) for f, name, v in own if not f.metadata.get("optional") or v != f.default}


def _encode(value: Any) -> Any:
    if hasattr(value, "to_dict") or hasattr(value, "to_list"):
        return value.to_dict() if hasattr(value, "to_dict") else value.to_list()
    if is_dataclass(value) and not isinstance(value, Log):
        return written(value)
    if isinstance(value, Fraction | Log):
        return encode(value)
    if isinstance(value, tuple | list):
        return [_encode(v) for v in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TypeError(f"{type(value).__name__} has no JSON form")


def parse(text: str | bytes, where: str) -> Fields:
    """The JSON object in `text`, with no repeated names, NaN or infinity. **Raises** FieldError."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(found)
        if len(data) < len(found):
            raise FieldError(f"{where} names a field twice, which is not allowed")
        return data

    def constant(name: str) -> Any:
        raise FieldError(f"{where} contains {name}, which is not allowed: numbers must be finite")

    try:
        return Fields(json.loads(text, object_pairs_hook=pairs, parse_constant=constant), where, whole=True)
    except FieldError:
        raise
    except json.JSONDecodeError as error:
        raise FieldError(f"{where} is not JSON: {str(error)[:200]}") from None
    except UnicodeDecodeError:
        raise FieldError(f"{where} is not JSON: it is no text") from None
    except ValueError:
        raise FieldError(f"{where} has a number of more than 4300 digits, which is not allowed") from None
    except RecursionError:
        raise FieldError(f"{where} is not JSON that is allowed: its parts are nested too deep") from None
    except MemoryError:
        raise FieldError(f"{where} is not allowed: it takes more memory than there is") from None


#: What files hold, by the first field that they have of these.
HELD = {
    "plan": "a plan",
    "ledger": "a ledger",
    "certificate": "a solution",
    "mechanism": "a mechanism",
    "points": "an atlas",
}


def load(path: str | Path, read: Callable[[Fields], Item], limit: float = work.LIMIT, kind: str = "") -> Item:
    """What `read` makes of the JSON object in a file, or in standard input for "-".

    **Arguments:** `limit`: how much work that may take, in seconds of a common processor; `kind`: what it must hold, of `HELD`,
    or several of these in words.

    **Raises** OSError if it cannot be read, FieldError if it is not what it must be, TypeError if `path` is none, or `Overwork`.
    """
    files.sound(path)
    name = "standard input" if str(path) == "-" else Path(path).name
    with work.limited(limit, name):
        with files.reading(path) as stream:
            text = stream.read(FILE + 1)
        if len(text) > FILE:
            raise FieldError(f"{name} is longer than {FILE} bytes, which is not allowed")
        work.count(len(text) / 8 + text.count(b"[") + text.count(b"{"))
        try:
            fields = parse(text, name)
            if kind and (held := next((HELD[field] for field in HELD if field in fields.data), kind)) not in kind:
                raise FieldError(f"{name} holds {held}, which is not allowed: it must hold {kind}")
            return read(fields)
        except RecursionError:
            raise FieldError(f"{name} is not allowed: its parts are nested too deep") from None

"""`optdp client`: a plan as one small file that makes answers private where they are given, in a browser, a phone or a sensor.

`portable.py` and `portable.mjs` are the clients without a plan; here the plan's mechanisms become the numbers that they compute
with, in the order in which the library computes: the same random bits give the same outputs.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from optdp.exact import enclosures, require
from optdp.exact.lattice import Lattice
from optdp.exact.sampling import LIMB, Tape
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.frequency import AffineOracle, SubsetOracle
from optdp.mechanisms.kernel import KernelMechanism
from optdp.mechanisms.piecewise import COINS, PiecewiseMechanism
from optdp.statistics.part import Part, truth, unit_ratio
from optdp.statistics.plan import Plan
from optdp.statistics.tables import Refused

#: The file without a plan, and the line of it that the plan replaces.
TEMPLATES = {"python": ("portable.py", "PLAN: dict[str, Any] = {}\n"), "js": ("portable.mjs", "const PLAN = {};\n")}
#: The field of a line of JSON that says for which plan it was made.
STAMP = "optdp"
#: Integers beyond are no numbers of JavaScript.
EXACT = 2**53


def source(plan: Plan, language: str = "js") -> str:
    """The text of the client for a plan.

    **Arguments:** `language`: "js" (a module for browsers and Node) or "python" (the standard library alone).

    **Raises** ValueError naming the column that it cannot answer.
    """
    require.choice("language", language, tuple(TEMPLATES))
    name, line = TEMPLATES[language]
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    data = json.dumps(form(plan), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")
    made = f"PLAN: dict[str, Any] = json.loads({data!r})\n" if language == "python" else f"const PLAN = {data};\n"
    if text.count(line) != 1:
        raise RuntimeError(f"{name} has lost the line that holds the plan")
    return text.replace(line, made)


def form(plan: Plan) -> dict[str, Any]:
    """The plan as its clients read it. **Raises** ValueError naming the column that they cannot answer."""
    own = {"digest": plan.digest, "statement": plan.statement(), "repeat": plan.repeat, "reported": plan.reported}
    return own | {
        "columns": [_column(part) for part in plan.parts],
        "units": [_unit(plan, unit) for unit in plan.units],
    }


def _unit(plan: Plan, unit: tuple[Part, ...]) -> dict[str, Any]:
    """Columns that are reported together: their places, their guarantee, and if there are several the coin that says if all
    are true.
    """
    own = {"columns": [plan.parts.index(part) for part in unit], "eps": enclosures.log_above(unit_ratio(unit))}
    return own if len(unit) == 1 else own | {"true": _cuts(truth(unit))}


def _refuse(part: Part, why: str) -> ValueError:
    return ValueError(f"column {part.name!r} is not allowed in a client: {why}")


def _column(part: Part) -> dict[str, Any]:
    """How a column is read, and the numbers with which a client samples its mechanism."""
    column, name = part.column, part.name
    if name in (STAMP, "__proto__"):
        raise _refuse(part, "it needs another name")
    own = column.form()
    if any(isinstance(v, int) and abs(v) > EXACT for v in own.get("values", ())):
        raise _refuse(part, "its values must be texts, or numbers up to 2^53")
    known = _FORMS.get(type(part.mechanism))
    if known is None:
        raise _refuse(part, f"{type(part.mechanism).__name__} is not known there")
    return {"name": name, **own, "mechanism": known(part.mechanism)}


def _halves(number: int) -> list[int]:
    """An integer below 2^64 by its upper and lower 32 bits."""
    return list(divmod(number, 2**32))


def _cuts(coins: int) -> list[int] | None:
    """What 124 tossed bits are compared with; None for a coin that always falls on heads."""
    if coins >= COINS:
        return None
    high, low = divmod(coins * (LIMB * LIMB // COINS), LIMB)
    return [*_halves(high), *_halves(low)]


def _piecewise(m: PiecewiseMechanism) -> dict[str, Any]:
    lattice, numbers, slope = m.tables()
    own = {"kind": "piecewise", "step": float(lattice.step), "first": lattice.first, "last": lattice.last}
    own |= {"span": _halves(lattice.count - 1), "window": _halves(numbers - 1)}
    return own | {"slope": slope, "floor": _cuts(m.floor_coins)}


def _kernel(m: KernelMechanism) -> dict[str, Any]:
    made, sent = m.tables(), m.tables()["sent"]
    own = {"step": float(sent.step), "edges": made["edges"]}
    own |= {"window": _halves(m.width_cells - 1), "floor": _cuts(m.floor_coins)}
    if m.rule == "ends":
        own |= {"kind": "ends", "first": sent.first, "last": sent.last}
        own |= {"starts": made["starts"], "slopes": made["slopes"]}
        lower, width = made["unit"]
        return own | {"map": made["stretches"], "lower": lower, "width": width}
    read = Lattice.between(m.domain.lower, m.domain.upper)
    own |= {"kind": "mean", "read": float(read.step), "first": read.first, "last": read.last}
    lows, highs = map(list, zip(*made["places"], strict=True))
    own |= {"lows": lows, "highs": highs, "coins": str(m.floor_coins)}
    return own | {"starts": made["starts"], "grids": made["grids"]}


def _set(m: SubsetOracle) -> dict[str, Any]:
    return {"kind": "set", "size": m.size, "universe": m.universe, "own": _cuts(m.coins)}


#: Mechanism -> what a client computes with.
_FORMS: dict[type[Mechanism], Callable[[Any], dict[str, Any]]] = {
    PiecewiseMechanism: _piecewise,
    KernelMechanism: _kernel,
    SubsetOracle: _set,
    AffineOracle: lambda m: _set(m) | {"kind": "affine"},
}


def vectors(plan: Plan, records: Sequence[Mapping[str, Any]], label: str = "optdp") -> Iterator[dict[str, Any]]:
    """Test vectors: {"record", "words": the 32-bit words that were drawn, in hexadecimal, little-endian, "private"}.

    The private record is what the library draws from the words, which are the bytes of SHAKE-256 of label and number.
    """
    for number, record in enumerate(records):
        stream = _Stream(f"{label} {number}")
        row = {name: [value] for name, value in record.items()}
        try:
            drawn = plan.randomize(row, Tape(stream))
        except Refused as entry:
            raise Refused(entry.name, number + 1, entry.why) from None
        private = {name: _plain(drawn[name][0]) for name in plan.names}
        yield {"record": dict(record), "words": stream.data[: stream.used].hex(), "private": private}


def _plain(value: Any) -> Any:
    """An entry of a private table as JSON holds it."""
    return None if value is None or value != value else value if isinstance(value, str) else float(value)


class _Stream:
    """The bytes of SHAKE-256 of a text, as many as are asked for."""

    def __init__(self, label: str) -> None:
        self._hash, self.data, self.used = hashlib.shake_256(label.encode()), b"", 0

    def __call__(self, size: int) -> bytes:
        self.used += size
        if self.used > len(self.data):
            self.data = self._hash.digest(2 ** math.ceil(math.log2(max(self.used, 256))))
        return self.data[self.used - size : self.used]

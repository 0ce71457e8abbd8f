"""Integer tables: rows of integers with one sum, sampled exactly and tested exactly for privacy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import gcd

import numpy as np

from optdp.exact.check import Check
from optdp.exact.fields import FieldError, Fields
from optdp.exact.sampling import Alias

#: Every row sums to this: probabilities are multiples of 2^-62.
TOTAL = 2**62

#: A table read from a file has at most this many rows, columns and entries.
ROWS, COLUMNS, ENTRIES = 4096, 20_000, 2**22


@dataclass(frozen=True, eq=False)
class Table:
    """Distributions over the same outputs, one per row: `weights[i, j] / 2^62` is the probability of output j in row i."""

    weights: np.ndarray

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights)
        if weights.ndim != 2 or weights.dtype != np.int64 or not weights.size:
            raise TypeError("weights are not allowed: they must be a non-empty matrix of 64-bit integers")
        if weights.min() < 0 or any(sum(row) != TOTAL for row in weights.tolist()):
            raise ValueError("weights are not allowed: they must be >= 0 and sum to 2^62 in every row")
        object.__setattr__(self, "weights", weights)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Table) and np.array_equal(self.weights, other.weights)

    def __hash__(self) -> int:
        return hash(self.weights.tobytes())

    @property
    def rows(self) -> np.ndarray:
        """The probabilities, rounded to floats."""
        return np.asarray(self.weights / TOTAL)

    def exact_ratio(self) -> Fraction | None:
        """The largest likelihood ratio between two rows, exactly; None if infinite. Outputs that never occur do not count."""
        low, high = self.weights.min(axis=0).tolist(), self.weights.max(axis=0).tolist()
        if any(a == 0 < b for a, b in zip(low, high, strict=True)):
            return None
        return max(Fraction(b, a) for a, b in zip(low, high, strict=True) if b)

    def check_mass(self) -> Check:
        """Whether every row is a distribution."""
        sums = {sum(row) for row in self.weights.tolist()}
        return Check("mass", sums == {TOTAL}, f"all {len(self.weights)} rows sum to 1 in exact rationals")

    def draw(self, row: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """One output index for each entry of `row`, exactly with the table's probabilities (given ideal random integers)."""
        return self._alias.draw(row, rng)

    @cached_property
    def _alias(self) -> Alias:
        return Alias(self.weights.tolist(), TOTAL)

    def to_list(self) -> list[list[int]]:
        """JSON form, exact."""
        return list(self.weights.tolist())

    @classmethod
    def read(cls, fields: Fields, name: str = "weights") -> Table:
        """The inverse of `to_list`, from the field `name`. **Raises** FieldError, or ValueError if rows are no distributions."""
        where, rows = f"{fields.where}.{name}", fields.entries(name, 2, ROWS)
        columns = len(rows[0]) if isinstance(rows[0], list) else 0
        if len(rows) * columns > ENTRIES:
            raise FieldError(
                f"{where} has {len(rows)} rows of {columns} entries, which is not allowed: at most {ENTRIES} in all"
            )
        read = [
            Fields({str(i): row}, where).integers(str(i), 0, TOTAL, least=max(columns, 1), most=min(columns, COLUMNS))
            for i, row in enumerate(rows)
        ]
        return cls(np.array(read, dtype=np.int64))


#: A solver's rows keep this relative distance from the largest ratio, as room for rounding.
SLACK = 2.0**-23


def private_weights(
    rows: np.ndarray,
    floors: np.ndarray,
    ratio: Fraction,
    points: np.ndarray | None = None,
    means: list[Fraction] | None = None,
    triple: tuple[int, int, int] | None = None,
) -> np.ndarray:
    """Integer rows near `rows` whose sums are exactly 2^62 and whose ratios are exactly at most `ratio`.

    **Arguments:** `rows`: probabilities with floors[j] <= rows[i, j] <= (1 - SLACK) ratio floors[j], up to a solver's
    tolerance; `points`, `means`: integers z_j and exact targets; where given, sum_j weights[i, j] z_j = 2^62
    means[i] exactly.

    **Raises** ValueError if the rows are too far from feasible to be repaired.
    """
    low = [int(f) for f in np.floor(floors * (1 - SLACK / 4) * TOTAL)]
    high = [int(ratio * f) for f in low]
    result = np.zeros(rows.shape, dtype=np.int64)
    for i, row in enumerate(rows):
        middle = [min(max(int(w), a), b) for w, a, b in zip(np.round(row * TOTAL), low, high, strict=True)]
        if points is None or means is None or triple is None:
            _fill(middle, low, high)
        else:
            _balance(middle, low, high, [int(z) for z in points], means[i] * TOTAL, triple)
        result[i] = middle
    return result


def _fill(row: list[int], low: list[int], high: list[int]) -> None:
    """Change `row` within its bounds so that it sums to 2^62: each entry by the same share of its room."""
    rest = TOTAL - sum(row)
    room = [b - w if rest > 0 else w - a for w, a, b in zip(row, low, high, strict=True)]
    space = sum(room)
    if abs(rest) > space:
        raise ValueError("the rows cannot be repaired: their mass is too far from 1")
    sign = 1 if rest > 0 else -1
    for j, r in enumerate(room):
        step = r * abs(rest) // space if space else 0
        row[j] += sign * step
        room[j] -= step
    rest = TOTAL - sum(row)
    for j, r in enumerate(room):  # what the divisions left over, at most one unit each
        step = min(r, abs(rest))
        row[j] += sign * step
        rest -= sign * step
        if not rest:
            return


def _balance(
    row: list[int], low: list[int], high: list[int], z: list[int], moment: Fraction, triple: tuple[int, int, int]
) -> None:
    """Change `row` within its bounds so that it sums to 2^62 and its first moment is exactly `moment`.

    `triple`: three outputs (`coprime_triple`) that take what rounding leaves over.
    """
    if moment.denominator != 1:
        raise ValueError("the rows cannot be repaired: the mean is not an integer number of units")
    room = np.array([min(b - w, w - a) for w, a, b in zip(row, low, high, strict=True)], dtype=float)
    # Twice a step that is linear in z and proportional to the room, solved in floats, then the integers that remain.
    for _ in range(3):
        rest, tilt = TOTAL - sum(row), int(moment) - sum(w * v for w, v in zip(row, z, strict=True))
        centre = sum(z) / len(z)
        v = np.array(z, dtype=float) - centre
        system = np.array([[room.sum(), room @ v], [room @ v, room @ (v * v)]])
        step = room * (
            np.linalg.solve(system, [float(rest), float(tilt - rest * centre)]) @ np.array([np.ones_like(v), v])
        )
        for j, s in enumerate(step):
            row[j] += round(s)
    rest, tilt = TOTAL - sum(row), int(moment) - sum(w * v for w, v in zip(row, z, strict=True))
    p, q, r = triple
    a, b, c = z[q] - z[p], z[r] - z[p], tilt - rest * z[p]
    # a dq + b dr = c with gcd(a, b) = 1, then dp = rest - dq - dr.
    dr = c * pow(b, -1, abs(a)) % abs(a) if abs(a) > 1 else 0
    dq = (c - b * dr) // a
    turn = round(Fraction(dq, b))
    dq, dr = dq - turn * b, dr + turn * a
    row[q] += dq
    row[r] += dr
    row[p] += rest - dq - dr
    if any(not x <= w <= y for w, x, y in zip(row, low, high, strict=True)):
        raise ValueError("the rows cannot be repaired: their means are too far from the inputs")


def coprime_triple(z: list[int], room: Sequence[float] | np.ndarray) -> tuple[int, int, int]:
    """Three outputs with much room whose differences have no common divisor, so that every integer moment can be reached.

    **Raises** ValueError if there are none.
    """
    order = sorted(range(len(z)), key=lambda j: -float(room[j]))[:12]

    def quality(t: tuple[int, ...]) -> tuple[bool, float]:
        return gcd(z[t[1]] - z[t[0]], z[t[2]] - z[t[0]]) == 1, min(float(room[j]) for j in t)

    best = max(combinations(order, 3), key=quality, default=None)
    if best is None or gcd(z[best[1]] - z[best[0]], z[best[2]] - z[best[0]]) != 1:
        raise ValueError("the rows cannot be repaired: the differences of the outputs have a common divisor")
    return best

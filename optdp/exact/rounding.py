"""Integer tables: rows of integers with one sum, sampled exactly and tested exactly for privacy."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

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
        where, rows = f"{fields.where}.{name}", fields.entries(name, 1, ROWS)
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

"""A prior over categories, held exactly: whole-number weights, so that every probability is a rational."""

from __future__ import annotations

import hashlib
import json
import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from optdp.exact import require
from optdp.exact.fields import Fields, Tagged

#: How far from 1 the entries of a prior may sum: what decimals typed by hand and sums of floats leave.
TOLERANCE = Fraction(1, 10**9)


@dataclass(frozen=True)
class Prior(Tagged, root=True):
    """Probabilities of d >= 2 categories, all positive: category i has probability `weights[i] / sum(weights)`.

    **Arguments:**

    - `weights`: positive whole numbers.
    - `categories`: the name of each, distinct; by default 0, 1, ..., d - 1.
    - `left_out`: categories of probability zero, which nobody has and which are therefore no part of the problem.

    `Prior.of` builds one from probabilities.
    """

    tag = "prior"
    weights: tuple[int, ...]
    categories: tuple[Any, ...]
    left_out: tuple[Any, ...] = ()
    #: Where each category stood among the entries as given, those of probability zero included.
    given: tuple[int, ...] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        for i, weight in enumerate(self.weights):
            require.integer(f"weights[{i}]", weight, low=1)
        if len(self.weights) < 2:
            raise ValueError(
                f"prior = {dict(zip(self.categories, self.weights, strict=False))!r} is not allowed: a prior must "
                "have at least 2 categories of positive probability"
            )
        if len(self.categories) != len(self.weights):
            raise ValueError(
                f"categories has {len(self.categories)} entries, which is not allowed: there must be one for each of "
                f"the {len(self.weights)} categories"
            )
        if len(set(self.categories) | set(self.left_out)) != len(self.categories) + len(self.left_out):
            raise ValueError(f"categories = {self.categories!r} is not allowed: categories must be distinct")

    @classmethod
    def of(cls, prior: Any, categories: Any = None) -> Prior:
        """A prior from what a user has.

        **Arguments:** `prior`: a `Prior`, a mapping (dict, pandas Series) from categories to probabilities, or a
        sequence of probabilities: floats, whole numbers or Fractions, each read as the exact rational that it is. They
        must be >= 0 and sum to 1 up to 1e-9; the exact prior is then each entry over their exact sum. Entries that are
        exactly 0 are left out.

        **Raises** TypeError or ValueError naming the entry.
        """
        if isinstance(prior, Prior):
            if categories is not None and tuple(categories) != prior.categories:
                raise ValueError("categories must not be given again with a Prior, which has its own")
            return prior
        if isinstance(prior, Mapping) or hasattr(prior, "items"):
            if categories is not None:
                raise ValueError("categories must not be given with a mapping, whose keys are the categories")
            pairs = list(prior.items())
            categories, prior = [_plain(key) for key, _ in pairs], [value for _, value in pairs]
        if isinstance(prior, (str, bytes)) or not isinstance(prior, Iterable):
            raise TypeError(f"prior = {prior!r} is not allowed: prior must be a sequence of probabilities or a mapping")
        entries = list(prior)
        names = list(range(len(entries))) if categories is None else [_plain(name) for name in categories]
        if len(names) != len(entries):
            raise ValueError(
                f"categories has {len(names)} entries, which is not allowed: there must be one for each of the "
                f"{len(entries)} entries of prior"
            )
        exact = [_entry(i, value) for i, value in enumerate(entries)]
        total = sum(exact, Fraction(0))
        if abs(total - 1) > TOLERANCE:
            raise ValueError(f"prior sums to {float(total):.12g}, which is not allowed: it must sum to 1 (up to 1e-9)")
        scale = math.lcm(*(p.denominator for p in exact))
        weights = [p.numerator * (scale // p.denominator) for p in exact]
        kept = [i for i, weight in enumerate(weights) if weight]
        divisor = math.gcd(*weights)
        return cls(
            tuple(weights[i] // divisor for i in kept),
            tuple(names[i] for i in kept),
            tuple(names[i] for i, weight in enumerate(weights) if not weight),
            tuple(kept),
        )

    @cached_property
    def total(self) -> int:
        """The sum of the weights."""
        return sum(self.weights)

    @cached_property
    def exact(self) -> tuple[Fraction, ...]:
        """The probabilities as exact rationals; they sum to exactly 1."""
        return tuple(Fraction(weight, self.total) for weight in self.weights)

    @cached_property
    def probabilities(self) -> np.ndarray:
        """The probabilities as floats."""
        return np.array([weight / self.total for weight in self.weights])

    def __len__(self) -> int:
        return len(self.weights)

    @cached_property
    def _positions(self) -> dict[Any, int]:
        return {name: i for i, name in enumerate(self.categories)}

    @cached_property
    def _sorted_names(self) -> tuple[np.ndarray, np.ndarray]:
        names = np.array(self.categories)
        order = np.argsort(names, kind="stable")
        return names[order], order

    def positions(self, x: Any) -> np.ndarray:
        """The position (0 to d - 1) of each category in `x`, in its shape.

        **Raises** ValueError naming the first entry that is not a category, and why: unknown, or left out.
        """
        asked = np.asarray(x)
        if asked.dtype.kind in "iu" and self._counts_up:
            inside = (asked >= 0) & (asked < len(self))
            if inside.all():
                return asked.astype(np.int64)
            self._refuse(asked[~inside].flat[0])
        names, order = self._sorted_names
        if asked.dtype.kind == names.dtype.kind or (asked.dtype.kind in "iuf" and names.dtype.kind in "iuf"):
            found = np.minimum(np.searchsorted(names, asked), len(self) - 1)
            wrong = names[found] != asked
            if np.any(wrong):
                self._refuse(asked[wrong].flat[0] if asked.ndim else asked.item())
            return order[found]
        flat = [self._positions.get(_plain(name), -1) for name in asked.flat]
        if -1 in flat:
            self._refuse(asked.flat[flat.index(-1)])
        return np.array(flat, dtype=np.int64).reshape(asked.shape)

    @cached_property
    def _counts_up(self) -> bool:
        return self.categories == tuple(range(len(self)))

    def _refuse(self, name: Any) -> None:
        name = _plain(name)
        if name in self.left_out:
            raise ValueError(f"x = {name!r} is not allowed: this category has prior 0 and was left out")
        shown = ", ".join(map(repr, self.categories[:8])) + (", ..." if len(self) > 8 else "")
        raise ValueError(f"x = {name!r} is not allowed: x must be one of the categories {shown}")

    def phrase(self) -> str:
        """How statements name it: probabilities p/q up to 8 categories, beyond that a digest of all of them."""
        if len(self) <= 8 and self.total < 10**12:
            names = "" if self._counts_up else f" of {', '.join(map(str, self.categories))}"
            return f"the prior ({', '.join(map(str, self.exact))}){names}"
        content = json.dumps([list(map(str, self.weights)), list(map(str, self.categories))]).encode()
        return f"the prior of {len(self)} categories with sha256 {hashlib.sha256(content).hexdigest()[:16]}"

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact. Categories must be numbers or strings."""
        return {
            "type": self.tag,
            "weights": [str(weight) for weight in self.weights],
            "categories": list(self.categories),
            "left_out": list(self.left_out),
        }

    @classmethod
    def _read(cls, fields: Fields) -> Prior:
        weights = fields.integers("weights", 1, 1 << 4096, least=2, most=100_000)
        return cls(weights, fields.labels("categories"), fields.labels("left_out"))


def _plain(name: Any) -> Any:
    """A Python object from a numpy scalar."""
    return name.item() if isinstance(name, np.generic) else name


def _entry(i: int, value: Any) -> Fraction:
    value = _plain(value)
    require.real(f"prior[{i}]", value, low=0.0, high=1.0)
    return Fraction(value) if isinstance(value, (numbers.Rational, float)) else Fraction(float(value))

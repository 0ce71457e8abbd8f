"""A prior over categories, held exactly: integer weights, so that every probability is a rational."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping, Sized
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import require, work
from optdp.exact.fields import LONGEST, Tagged, Within
from optdp.exact.numbers import BITS, digest
from optdp.problem.domains import symbol_array

#: How far from 1 the entries of a prior may sum: what decimals typed by hand and sums of floats leave.
TOLERANCE = Fraction(1, 10**9)


class Distribution(Tagged, root=True):
    """How inputs are distributed: a `Prior` over categories or points, or an `optdp.Density` on an interval."""

    def phrase(self) -> str:
        """How statements name it, exactly."""
        raise NotImplementedError(f"{type(self).__name__} has no phrase")


@dataclass(frozen=True)
class Prior(Distribution):
    """Probabilities of d >= 2 categories, all positive: category i has probability `weights[i] / sum(weights)`.

    **Arguments:**

    - `weights`: positive integers of at most 4096 bits.
    - `categories`: the name of each, distinct; `Prior.of` calls them 0, 1, ..., d - 1 where none are given.
    - `left_out`: categories of probability zero, which nobody has and which are therefore no part of the problem.

    `Prior.of` builds one from probabilities.

        >>> import optdp
        >>> optdp.Prior.of([0.5, 0.25, 0.25, 0.0]).phrase()
        'the prior (1/2, 1/4, 1/4), where 3 has probability 0 and is left out'
    """

    tag = "prior"
    weights: Annotated[tuple[int, ...], Within(1, (1 << BITS) - 1, 2, 100_000)]
    categories: tuple[Any, ...]
    left_out: tuple[Any, ...] = ()
    #: Where each category stood among the entries as given, those of probability zero included.
    given: Annotated[tuple[int, ...], Within(0, LONGEST)] = field(default=(), compare=False, repr=False)

    def __post_init__(self) -> None:
        for i, weight in enumerate(self.weights):
            if require.integer(f"weights[{i}]", weight, low=1).bit_length() > BITS:
                raise ValueError(f"weights[{i}] is not allowed: the exact probabilities may have {BITS} bits")
        if len(self.weights) < 2:
            given = f"prior = {dict(zip(self.categories, self.weights, strict=False))!r}"
            raise ValueError(f"{given} is not allowed: a prior must have at least 2 categories of positive probability")
        entries = len(self.categories) + len(self.left_out)
        if len(self.given) not in (0, len(self.weights)) or not all(0 <= place < entries for place in self.given):
            raise ValueError("given is not allowed: it must have one place for each category, or none")
        if len(self.categories) != len(self.weights):
            raise _wrong_number(self.categories, f"{len(self.weights)} categories")
        try:
            different = len(set(self.categories) | set(self.left_out))
        except TypeError:  # a list, a dict
            told = "categories must be texts, numbers or other values that do not change"
            raise TypeError(f"categories is not allowed: {told}") from None
        if different != len(self.categories) + len(self.left_out):
            raise ValueError(f"categories = {self.categories!r} is not allowed: categories must be distinct")

    @classmethod
    def of(cls, prior: PriorLike, categories: Iterable[Any] | None = None) -> Prior:
        """A prior from what a user has.

        **Arguments:** `prior`: a `Prior`, a mapping (dict, pandas Series) from categories to probabilities, or a
        sequence of probabilities: floats, integers or Fractions, each read as the exact rational that it is. They
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
        if isinstance(prior, (str, bytes)) or not isinstance(prior, Iterable) or getattr(prior, "shape", None) == ():
            allowed = "prior must be a sequence of probabilities or a mapping from categories to them"
            raise TypeError(f"prior = {prior!r} is not allowed: {allowed}")
        if categories is not None and not isinstance(categories, Iterable):
            raise TypeError(f"categories = {categories!r} is not allowed: categories must be a list of names")
        entries = list(prior)
        names = list(range(len(entries))) if categories is None else [_plain(name) for name in categories]
        if len(names) != len(entries):
            raise _wrong_number(names, f"{len(entries)} entries of prior")
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
        work.count(len(self.weights) * work.rational(work.words([self.total])))
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

    def positions(self, x: ArrayLike) -> np.ndarray:
        """The position (0 to d - 1) of each category in `x`, in its shape.

        **Raises** ValueError naming the place of the first entry that is no category, TypeError for what cannot be one; its
        value may be private.
        """
        entries = require.unmasked(x)
        try:
            found = places(self.categories, entries)
        except (TypeError, ValueError):  # rows of several lengths, or entries such as a dict
            raise TypeError("x is not allowed: x must be categories, in an array of one shape") from None
        if (found < 0).any():
            place = f" (entry {int(np.flatnonzero(found < 0)[0])})" if found.ndim else ""
            allowed = f"x must be one of the categories {_some(self.categories)}{self.missing}"
            raise ValueError(f"x{place} is not allowed: {allowed}")
        return found

    @property
    def missing(self) -> str:
        """What statements add where categories have probability 0: ", where ... is left out"."""
        verb = "has probability 0 and is" if len(self.left_out) == 1 else "have probability 0 and are"
        return f", where {_some(self.left_out)} {verb} left out" if self.left_out else ""

    def phrase(self) -> str:
        """How statements name it, exactly: up to 8 categories by their probabilities, p/q or (where they were given as floats)
        floats, "normalised" where these do not sum to exactly 1; else by a digest of all of them.
        """
        counted = self.categories == tuple(range(len(self)))
        numbered = counted and all(isinstance(name, int) for name in self.categories)  # points 0.0, 1.0 are named
        names = "" if numbered else f" of {', '.join(map(repr, self.categories))}"
        if len(self) <= 8 and self.total < 10**12:
            return f"the prior ({', '.join(map(str, self.exact))}){names}{self.missing}"
        # Floats that were divided by their sum: integers over the power of two next to it.
        floats = [Fraction(weight, 1 << round(math.log2(self.total))) for weight in self.weights]
        near = abs(sum(floats, Fraction(0)) - 1) <= TOLERANCE
        if len(self) <= 8 and near and all(Fraction(float(p)) == p for p in floats):
            normalised = "" if sum(floats) == 1 else ", normalised"
            return f"the prior ({', '.join(repr(float(p)) for p in floats)}){normalised}{names}{self.missing}"
        content = [list(map(str, self.weights)), list(map(str, self.categories))]
        about = f", about ({', '.join(f'{p:.4g}' for p in self.probabilities)})," if len(self) <= 8 else ""
        return f"the prior of {len(self)} categories{about} {digest(content)}{self.missing}"


def _wrong_number(names: Sized, wanted: str) -> ValueError:
    told = f"categories has {len(names)} entries, which is not allowed"
    return ValueError(f"{told}: there must be one for each of the {wanted}")


def _plain(name: Any) -> Any:
    """A Python object from a numpy scalar."""
    return name.item() if isinstance(name, np.generic) else name


def _entry(i: int, value: Any) -> Fraction:
    value = _plain(value)
    require.real(f"prior[{i}]", value, low=0.0, high=1.0)
    if isinstance(value, numbers.Rational):  # a Fraction of numpy's integers keeps them, and they overflow
        return Fraction(int(value.numerator), int(value.denominator))
    return Fraction(float(value))


def _some(names: tuple[Any, ...]) -> str:
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")


def places(names: tuple[Any, ...], asked: ArrayLike) -> np.ndarray:
    """The place of each entry of `asked` among the distinct `names`, in its shape; -1 where it is none of them."""
    array = symbol_array(asked, names)
    if array.dtype.kind in "iu" and names == tuple(range(len(names))):
        return np.where((array >= 0) & (array < len(names)), array, -1).astype(np.int64)
    known = symbol_array(names, names)
    kinds = {array.dtype.kind, known.dtype.kind}
    if known.dtype.kind != "O" and (len(kinds) == 1 or (kinds <= set("iuf") and _floats(array) and _floats(known))):
        order = np.argsort(known, kind="stable")
        known = known[order]
        near = np.minimum(np.searchsorted(known, array), len(names) - 1)
        return np.where(known[near] == array, order[near], -1)
    table = {name: i for i, name in enumerate(names)}
    return np.array([table.get(_plain(name), -1) for name in array.flat], dtype=np.int64).reshape(array.shape)


def _floats(numbers: np.ndarray) -> bool:
    """Whether these are floats, or integers that numpy compares with floats without rounding them."""
    return numbers.dtype.kind == "f" or not ((numbers > 2**53) | (numbers < -(2**53))).any()


#: What `Prior.of` reads (a pandas Series is a mapping too).
PriorLike = Prior | Mapping[Any, Any] | Iterable[Any] | np.ndarray

"""A prior with a density on an interval: polynomial pieces with exact rational coefficients."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from flint import fmpq
from numpy.typing import ArrayLike

from optdp.exact import Number, Within, enclosures, polynomial, require, show, work
from optdp.exact.numbers import digest, latex, rational
from optdp.exact.polynomial import exact, fraction
from optdp.exact.sweep import horner
from optdp.problem.domains import Circle, Domain, DomainLike, Interval, as_domain
from optdp.problem.priors import Distribution

#: Most pieces, and most coefficients of one.
PIECES, TERMS = 1000, 64

Row = tuple[Fraction, ...]


@dataclass(frozen=True)
class Density(Distribution):
    """Inputs with the density sum_k a_k x^k between each two neighbours among `breaks`, and none elsewhere.

    **Arguments:**

    - `breaks`: b_0 < b_1 < ... < b_n, in the units of the inputs.
    - `coefficients`: for each of the n pieces [b_i, b_(i+1)] the coefficients (a_0, a_1, ...) of the powers of x.

    All are read as exact rationals: floats as what they are, "1/3" and "0.1" as what they say. `Density.uniform`, `beta`,
    `histogram` and `proportional` build one with a total mass of 1.

    **Raises** ValueError unless the density is proven nonnegative (by Bernstein coefficients: a zero in the middle of a piece may
    need a break there) and its mass is exactly 1.

        >>> import optdp
        >>> triangle = optdp.Density((0, 1), ((0, 2),))            # 2 x on [0, 1]
        >>> triangle.mass(0, "1/2"), optdp.Density.beta(2, 1) == triangle
        (Fraction(1, 4), True)
        >>> print(triangle.phrase())
        the prior with density 2 x on [0, 1]
    """

    tag = "density"
    breaks: Annotated[Row, Within(least=2, most=PIECES + 1)]
    coefficients: Annotated[tuple[Annotated[Row, Within(most=TERMS)], ...], Within(least=1, most=PIECES)]

    if TYPE_CHECKING:  # what may be given

        def __init__(self, breaks: Iterable[Number | str], coefficients: Iterable[Iterable[Number | str]]) -> None: ...

    def __post_init__(self) -> None:
        breaks, rows = _read(self.breaks, self.coefficients)
        object.__setattr__(self, "breaks", breaks)
        object.__setattr__(self, "coefficients", rows)
        for row, a, b in self.pieces:
            if not polynomial.nonnegative(row, a, b):
                where = f"the density is not proven to be >= 0 between {show(a)} and {show(b)}"
                raise ValueError(f"coefficients are not allowed: {where} (a zero inside needs a break there)")
        if (mass := _mass(breaks, rows)) != 1:
            raise ValueError(
                f"coefficients are not allowed: the mass is {show(mass)}, and must be exactly 1 "
                "(Density.proportional divides by it)"
            )

    @classmethod
    def proportional(cls, breaks: Sequence[Any], coefficients: Sequence[Sequence[Any]]) -> Density:
        """The density that is proportional to these polynomial pieces.

        >>> import optdp
        >>> optdp.Density.proportional((0, 10, 60), ((1,), (3,))).mass(0, 10)
        Fraction(1, 16)
        """
        knots, rows = _read(breaks, coefficients)
        mass = _mass(knots, rows)
        if mass <= 0:
            raise ValueError(f"coefficients are not allowed: the mass is {show(mass)}, and must be positive")
        return cls(knots, tuple(tuple(a / mass for a in row) for row in rows))

    @classmethod
    def uniform(cls, domain: DomainLike = (0.0, 1.0)) -> Density:
        """The same density everywhere in `domain`, a pair (lower, upper) or an `optdp.Interval`."""
        low, high = _ends(domain)
        return cls((low, high), ((1 / (high - low),),))

    @classmethod
    def beta(cls, a: int, b: int, domain: DomainLike = (0.0, 1.0)) -> Density:
        """The Beta(a, b) distribution, stretched over `domain`: proportional to x^(a - 1) (1 - x)^(b - 1) on [0, 1].

        **Arguments:** `a`, `b`: integers >= 1 with a + b <= 64; `domain`: a pair (lower, upper) or an `optdp.Interval`.
        """
        for name, value in (("a", a), ("b", b)):
            require.integer(name, value, low=1, high=TERMS)
        if a + b > TERMS:
            raise ValueError(f"a + b = {a + b} is not allowed: it must be at most {TERMS}")
        low, high = _ends(domain)
        share = [Fraction(0)] * (a - 1) + [Fraction((-1) ** k * math.comb(b - 1, k)) for k in range(b)]
        scale = Fraction(math.factorial(a + b - 1), math.factorial(a - 1) * math.factorial(b - 1)) / (high - low)
        row = _substituted([scale * c for c in share], -low / (high - low), 1 / (high - low))
        return cls((low, high), (tuple(row),))

    @classmethod
    def histogram(
        cls, data: ArrayLike, bins: int | Sequence[Any] = 10, domain: DomainLike | None = None, *, pseudocount: Any = 0
    ) -> Density:
        """Constant on each bin, in proportion to how many of the `data` lie in it.

        The data are used as they are: they must be public, or the counts made private before.

        **Arguments:** `data`: numbers; `bins`: how many equal bins, or their increasing edges; `domain`: a pair (lower, upper),
        the range of equal bins (None: from the least to the largest of the data); `pseudocount`: >= 0, added to the count of
        each bin.

        **Raises** TypeError or ValueError naming the argument; data outside the bins are refused, by the place of the first.

            >>> import optdp
            >>> optdp.Density.histogram([1, 1, 2, 6], bins=[0, 4, 8]).coefficients
            ((Fraction(3, 16),), (Fraction(1, 16),))
        """
        raw = np.asarray(data)
        if raw.dtype.kind not in "iuf" or raw.ndim != 1 or not raw.size:
            raise TypeError("data are not allowed: they must be a list of at least one number")
        values = raw.astype(float)
        if not np.isfinite(values).all():
            raise ValueError("data are not allowed: they must be finite")
        extra = rational(pseudocount, "pseudocount")
        if extra < 0:
            raise ValueError(f"pseudocount = {pseudocount!r} is not allowed: it must be >= 0")
        if isinstance(bins, int):
            count = require.integer("bins", bins, low=1, high=PIECES)
            low, high = _ends((float(values.min()), float(values.max())) if domain is None else domain)
            edges = [low + (high - low) * Fraction(k, count) for k in range(count + 1)]
        else:
            if domain is not None:
                raise ValueError("domain is not allowed with edges of bins: leave it out")
            edges = list(_read(bins, [(0,)] * (len(bins) - 1))[0])
        first, *inner = map(enclosures.round_up, edges[:-1])  # a float is below an edge iff it is below this
        outside = (values < first) | (values > enclosures.round_down(edges[-1]))
        if outside.any():
            where = f"data (entry {int(np.argmax(outside))})"
            raise ValueError(f"{where} are not allowed: they must lie between the first and the last edge")
        counts = np.bincount(np.searchsorted(inner, values, side="right"), minlength=len(edges) - 1).tolist()
        heights = [(extra + c) / (b - a) for c, (a, b) in zip(counts, pairwise(edges), strict=True)]
        return cls.proportional(edges, [(height,) for height in heights])

    @property
    def pieces(self) -> list[tuple[Row, Fraction, Fraction]]:
        """(coefficients, start, end) of each piece."""
        return [(row, a, b) for row, (a, b) in zip(self.coefficients, pairwise(self.breaks), strict=True)]

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """The density at `x`, elementwise, in floats."""
        x, (breaks, rows) = np.asarray(x, dtype=float), self._law
        k = np.clip(np.searchsorted(breaks, x, side="right") - 1, 0, rows.shape[1] - 1)
        t = np.clip((x - breaks[k]) / np.diff(breaks)[k], 0.0, 1.0)
        value, power = rows[0][k], np.ones(x.shape)
        for row in rows[1:]:
            power *= t
            value = value * (1 - t) + row[k] * power
        return np.asarray(np.where((x >= breaks[0]) & (x <= breaks[-1]), np.maximum(value, 0.0), 0.0))

    @cached_property
    def _law(self) -> tuple[np.ndarray, np.ndarray]:
        """(breaks, coefficients of t^k (1 - t)^(n - k) on each piece) in floats: between these nothing cancels."""
        terms = max(map(len, self.coefficients))
        shares = [[*_substituted(row, a, b - a), *[Fraction(0)] * (terms - len(row))] for row, a, b in self.pieces]
        rows = [[math.comb(terms - 1, k) * c for k, c in enumerate(polynomial.bernstein(row))] for row in shares]
        *breaks, end = self.breaks  # a float is below one of these iff it is below the float above it
        return np.array([*map(enclosures.round_up, breaks), enclosures.round_down(end)]), np.array(rows, dtype=float).T

    @cached_property
    def _below(self) -> list[list[fmpq]]:
        """On each piece the coefficients of the probability of a smaller input."""
        before = accumulate((_integral(row, a, b) for row, a, b in self.pieces), initial=Fraction(0))
        found = [polynomial.primitive(row) for row in self.coefficients]
        starts = [mass - horner(row, a) for mass, row, a in zip(before, found, self.breaks, strict=False)]
        return [[*map(exact, (start, *row[1:]))] for start, row in zip(starts, found, strict=True)]

    def _upto(self, at: Fraction) -> fmpq:
        k = bisect_right(self.breaks, at) - 1
        if k < 0 or k >= len(self.coefficients):
            return fmpq(int(k >= 0))
        total, u = fmpq(0), exact(at)
        for a in reversed(self._below[k]):
            total = total * u + a
        return total

    def cumulative(self, x: Any) -> Fraction:
        """The probability of an input that is at most `x`, exactly."""
        return fraction(self._upto(rational(x, "x")))

    def mass(self, low: Any, high: Any) -> Fraction:
        """The probability of an input between `low` and `high`, exactly."""
        return max(self.cumulative(high) - self.cumulative(low), Fraction(0))

    def masses(self, edges: Iterable[Any]) -> np.ndarray:
        """The probabilities of inputs between neighbours of these increasing edges, each rounded to a float."""
        below = [self._upto(rational(edge, "edges")) for edge in edges]
        return np.array([float(fraction(b - a)) for a, b in pairwise(below)])

    def on(self, domain: Domain) -> Density:
        """Itself, if it is a density on a part of this interval. **Raises** ValueError if not."""
        if not isinstance(domain, Interval):
            raise ValueError(f"prior is not allowed: a density needs an interval of inputs, not {domain}")
        if self.breaks[0] < Fraction(domain.lower) or self.breaks[-1] > Fraction(domain.upper):
            where = f"[{show(self.breaks[0])}, {show(self.breaks[-1])}]"
            raise ValueError(f"prior is not allowed: it has a density on {where}, which must lie in {domain}")
        return self

    def shares(self, domain: Interval) -> list[tuple[Fraction, Fraction, Row]]:
        """(start, end, coefficients) of each piece over shares of the domain: 0 is its lower end, 1 its upper, the mass is 1."""
        low, width = Fraction(domain.lower), domain.exact_width
        return [
            ((a - low) / width, (b - low) / width, tuple(width * c for c in _substituted(row, low, width)))
            for row, a, b in self.pieces
        ]

    def phrase(self) -> str:
        """How statements name it: its polynomials, or (where these are long) a digest of all of them."""
        text = "; ".join(f"{_spelled(row)} on [{show(a)}, {show(b)}]" for row, a, b in self.pieces)
        if len(text) <= 240:
            return f"the prior with density {text}"
        where = f"[{show(self.breaks[0])}, {show(self.breaks[-1])}]"
        content = [list(map(show, row)) for row in (self.breaks, *self.coefficients)]
        return f"the prior with a density in {len(self.coefficients)} polynomial pieces on {where} {digest(content)}"

    def latex(self) -> str:
        """The density as a function of x, in LaTeX."""
        lines = [
            rf"{_spelled(row, latex, 'x^{{{}}}')} & {latex(a)} \le x \le {latex(b)}" for row, a, b in self.pieces[:8]
        ]
        more = [r"\dots &"] if len(self.pieces) > 8 else []
        return r"\begin{cases} " + r" \\ ".join([*lines, *more]) + r" \end{cases}"


def _read(breaks: Sequence[Any], coefficients: Sequence[Sequence[Any]]) -> tuple[Row, tuple[Row, ...]]:
    """Both as exact rationals, of matching lengths, trailing zeros left out."""
    if any(isinstance(v, str) or not hasattr(v, "__len__") for v in (breaks, coefficients, *coefficients)):
        raise TypeError("breaks and coefficients are not allowed: they must be a list of numbers and a list of lists")
    knots = tuple(rational(b, "breaks") for b in breaks)
    rows = [[rational(a, "coefficients") for a in row] for row in coefficients]
    if not 2 <= len(knots) <= PIECES + 1 or any(a >= b for a, b in pairwise(knots)):
        raise ValueError(f"breaks are not allowed: they must be 2 to {PIECES + 1} increasing numbers")
    if len(rows) != len(knots) - 1 or max(map(len, rows)) > TERMS:
        allowed = f"there must be one row of at most {TERMS} for each two neighbours among breaks"
        raise ValueError(f"coefficients are not allowed: {allowed}")
    for row in rows:
        while row and not row[-1]:
            row.pop()
    return knots, tuple(tuple(row) or (Fraction(0),) for row in rows)


def _ends(domain: DomainLike) -> tuple[Fraction, Fraction]:
    area = as_domain(domain)
    if isinstance(area, Circle):
        raise ValueError("domain = a Circle is not allowed: a density needs an interval")
    return Fraction(area.lower), Fraction(area.upper)


def _integral(row: Row, a: Fraction, b: Fraction) -> Fraction:
    primitive = polynomial.primitive(row)
    return horner(primitive, b) - horner(primitive, a)


def _mass(breaks: Row, rows: Sequence[Row]) -> Fraction:
    return sum((_integral(row, a, b) for row, (a, b) in zip(rows, pairwise(breaks), strict=True)), Fraction(0))


def _substituted(row: Sequence[Fraction], start: Fraction, step: Fraction) -> list[Fraction]:
    """Coefficients in t of sum_k row[k] (start + step t)^k."""
    work.count(2 * len(row) * work.rational(work.words(row) + len(row) * work.words([start, step])))
    return [c * step**k for k, c in enumerate(polynomial.moved(row, start))]


def _spelled(row: Row, number: Callable[[Fraction], str] = show, power: str = "x^{}") -> str:
    """The polynomial in a statement, e.g. "12 x - 24 x^2"; in LaTeX by its words for a number and a power."""
    powers = ["", " x", *(f" {power.format(k)}" for k in range(2, len(row)))]
    terms = [("- " if c < 0 else "+ ") + number(abs(c)) + powers[k] for k, c in enumerate(row) if c]
    text = " ".join(terms)
    return "-" + text[2:] if text.startswith("-") else text[2:] or "0"

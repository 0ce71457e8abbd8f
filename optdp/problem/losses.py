"""Losses: functions of the distance |y - x|, of the difference y - x, or of the pair (x, y).

What is known of a loss lives here, its integrals and enclosures included: designs and certificates ask for properties
(`exponent`, `convex`, `monotone`, `integral_ball`, ...) and never for a type. To add a loss, subclass `Loss` or `DistanceLoss`
as a frozen dataclass with a `tag`; `docs/extending/loss.md` is a worked example.
"""

from __future__ import annotations

import bisect
import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import pairwise, zip_longest
from numbers import Real
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from flint import arb, ctx, fmpq
from numpy.typing import ArrayLike

from optdp.exact import Number, Tagged, Within, enclosures, fit, plain, polynomial, prose, require, show, work
from optdp.exact.enclosures import nearest
from optdp.exact.numbers import digest, rational
from optdp.exact.sweep import Branches, horner
from optdp.problem.domains import matrix_of

#: Breaks of a piecewise polynomial, and the coefficients on each piece.
Rows = tuple[tuple[Fraction, ...], tuple[tuple[Fraction, ...], ...]]

#: The epsilon that pieces of powers are for where none is given, and the share of a window's loss that is nothing.
USUAL, NOTHING = 10.0, 1e-6
#: For powers below 1: what the loss next to 0 may be, where it is one piece, and the least distance up to which it is.
SPECK, NEAREST = 1e-5, 1e-12


class Loss(Tagged, root=True):
    """L(x, y) >= 0: what the output y costs where the input was x.

    - `form`: "distance", "difference", "pair" or "matrix": what it is a function of.
    - `exponent`: q if L = |y - x|^q, else None. `convex`, `monotone`: in the distance.
    - `assumptions`: what is taken on trust of a user's function, or an empty string where everything is known exactly.
    """

    form: ClassVar[Literal["distance", "difference", "pair", "matrix"]] = "pair"
    exponent: float | None = None
    convex: bool = False
    monotone: bool = False
    assumptions: str = ""

    @property
    def name(self) -> str:
        """How it is called in tables and on the command line."""
        return self.tag

    @property
    def phrase(self) -> str:
        """L(x, Y) in a statement, e.g. "|Y - x|"."""
        return f"{self.name}(x, Y)"

    def latex(self) -> str:
        """L(x, Y) in LaTeX."""
        return rf"\text{{{prose(self.phrase)}}}"

    def of(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        """L(x, y), elementwise with broadcasting."""
        raise NotImplementedError(f"{type(self).__name__} gives no values")

    #: (a, b) with |L(x, y) - L(x', y')| <= a |x - x'| + b |y - y'|, where a loss of form "pair" has declared such numbers.
    rates: tuple[float, float] | None = None

    def among(self, symbols: Sequence[Any]) -> Loss:
        """The loss on a finite alphabet: a matrix, where it is one of the pair (input, output)."""
        return self

    #: Whether it is known through its values alone, which `at` gives.
    sampled: ClassVar[bool] = False

    def at(self, distance: Fraction) -> tuple[float, float]:
        """(low, high) around L(distance), of a loss that is known through its values."""
        raise NotImplementedError

    #: (a, b), a < 0 < b, where every set {u: L(u) <= level} of differences u = y - x is [a t, b t] for some t >= 0; else None.
    slopes: tuple[Fraction, Fraction] | None = None

    def branches(self, unit: Fraction, below: bool, eps: float = USUAL) -> Branches | None:
        """L(unit u) for |u| <= 1 in polynomial pieces with exact coefficients; None if that is not known.

        Where L is not piecewise polynomial: pieces that lie `below` it, or else above it; with `eps` of the mechanisms that they
        are for: the larger it is, the nearer to 0 differences matter.
        """
        return None

    def on(self, reach: Fraction | float) -> Loss:
        """The same loss, checked (where it is a user's function) up to distances `reach`."""
        return self

    def __str__(self) -> str:
        return self.name


class DistanceLoss(Loss):
    """A loss of the distance d >= 0: `loss(d)`, its integral from 0, and rigorous enclosures of both."""

    form = "distance"
    monotone = True
    slopes = (Fraction(-1), Fraction(1))

    def __call__(self, distance: ArrayLike) -> np.ndarray:
        """L(distance), elementwise."""
        raise NotImplementedError(f"{type(self).__name__} gives no values")

    def of(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        return self(np.abs(np.subtract(y, x)))

    #: Where L is piecewise polynomial: 0 = b_0 < b_1 < ..., and the coefficients on each [b_i, b_(i+1)), the last without end.
    polynomials: Rows | None = None
    #: Whether L counts from a jump on, and not only beyond it.
    right_continuous: ClassVar[bool] = False

    @property
    def whole(self) -> DistanceLoss:
        """The same loss at all distances that are integers; piecewise polynomial if it can be."""
        return self

    def exact(self, distance: Fraction) -> Fraction:
        """L(distance >= 0), of a piecewise polynomial."""
        assert self.polynomials is not None
        breaks, rows = self.polynomials
        return _horner(rows[bisect.bisect_right(breaks, distance) - 1], distance)

    @property
    def growth(self) -> tuple[Fraction, float]:
        """(C, q) with L(d) <= C max(1, d)^q, of a power, a piecewise polynomial or `Threshold(0)`."""
        if self.polynomials is None:
            return Fraction(1), self.exponent or 0.0
        rows = self.polynomials[1]
        return max(sum(map(abs, row), Fraction(0)) for row in rows), float(max(map(len, rows)) - 1)

    @property
    def bounded(self) -> bool:
        """Whether it is known to be constant from some distance on."""
        return self.polynomials is not None and not any(self.polynomials[1][-1][1:])

    @property
    def steps(self) -> bool:
        """Whether it is known to be constant between jumps."""
        return self.polynomials is not None and not any(any(row[1:]) for row in self.polynomials[1])

    def integral(self, distance: ArrayLike) -> np.ndarray:
        """The integral of L from 0 to distance >= 0, elementwise."""
        raise NotImplementedError(f"{type(self).__name__} gives no integrals: define the method integral(distance)")

    def mean(self, distance: ArrayLike) -> np.ndarray:
        """The mean of L over distances spread evenly over [0, distance], elementwise."""
        d = np.asarray(distance, dtype=float)
        found: np.ndarray = np.divide(self.integral(d), d, out=np.full(d.shape, float(self(0.0))), where=d > 0)
        return found

    def between(self, low: ArrayLike, high: ArrayLike) -> np.ndarray:
        """The mean of L(|z|) over z spread evenly over [low, high], elementwise."""
        a, b = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
        span = b - a
        half = a / 2, b / 2  # whose sums are floats
        flat = span / 2 <= 1e-9 * (np.abs(half[0]) + np.abs(half[1]))
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = b / span * self.mean(np.abs(b)) - a / span * self.mean(np.abs(a))
        return np.where(flat, self(np.abs(half[0] + half[1])), mean)

    def integral_ball(self, distance: Number | arb) -> arb:
        """An enclosure of the integral from 0 to `distance` (a number or a ball), at the working precision."""
        raise NotImplementedError(f"{type(self).__name__} has no enclosures: define the method integral_ball(distance)")

    def crossing(self, level: arb) -> arb:
        """An enclosure of the largest d with L(d) <= level, for level >= L(0); infinity if there is none larger."""
        raise NotImplementedError(f"{type(self).__name__} has no inverse: define the method crossing(level)")

    def deficit_above(self, threshold: float, reach: Fraction) -> arb:
        """A ball whose upper end is not below int_0^reach (threshold - L)_+, at the working precision."""
        t = enclosures.ball(threshold)
        if threshold <= float(self(0.0)):
            return arb(0) if threshold <= 0 else t * enclosures.ball(reach)
        d = self.crossing(t).min(enclosures.ball(reach))
        return t * d - self.integral_ball(d)

    def branches(self, unit: Fraction, below: bool, eps: float = USUAL) -> Branches | None:
        return None if self.polynomials is None else _mirrored(*self.polynomials, unit, self.right_continuous)

    def mean_ball(self, reach: Fraction) -> arb:
        """An enclosure of the mean of L over distances spread evenly over [0, reach]."""
        return self.integral_ball(enclosures.ball(reach)) / enclosures.ball(reach)


def _mirrored(
    breaks: Sequence[Fraction], rows: Sequence[Sequence[Fraction]], unit: Fraction, upper: bool = False
) -> Branches:
    """A loss of the distance unit |u|, given in pieces from each of the breaks (the first is 0) on."""
    for row in rows:
        work.count(3 * len(row) * work.rational(work.words(row) + len(row) * work.words([unit]) / 2))
    scaled = [tuple(a and a * unit**k for k, a in enumerate(row)) for row in rows]
    left = [tuple(-a if k % 2 else a for k, a in enumerate(row)) for row in scaled]
    knots = [b / unit for b in breaks]
    if left[0] == scaled[0]:  # even: one piece around 0
        knots, left = knots[1:], left[1:]
        return Branches((*(-k for k in reversed(knots)), *knots), (*reversed(left), *scaled), upper)
    return Branches((*(-k for k in reversed(knots[1:])), *knots), (*reversed(left), *scaled), upper)


@dataclass(frozen=True)
class Power(DistanceLoss):
    """L(d) = d^exponent for a distance d >= 0, `exponent` in [0.01, 100]. `Power(1)` is "abs", `Power(2)` "squared"."""

    tag = "power"
    exponent: Annotated[float, Within(0.01, 100.0)] = field()  # no default: not the None of other losses

    @property
    def convex(self) -> bool:  # type: ignore[override]
        return self.exponent >= 1

    @property
    def name(self) -> str:
        return {1.0: "abs", 2.0: "squared"}.get(self.exponent, f"power({plain(self.exponent)})")

    @property
    def phrase(self) -> str:
        return {1.0: "|Y - x|", 2.0: "(Y - x)^2"}.get(self.exponent, f"|Y - x|^{plain(self.exponent)}")

    def latex(self) -> str:
        return {1.0: "|Y - x|", 2.0: "(Y - x)^2"}.get(self.exponent, f"|Y - x|^{{{plain(self.exponent)}}}")

    def __call__(self, distance: ArrayLike) -> np.ndarray:
        return np.asarray(np.power(distance, self.exponent))

    def integral(self, distance: ArrayLike) -> np.ndarray:
        return np.asarray(np.power(distance, self.exponent + 1) / (self.exponent + 1))

    def mean(self, distance: ArrayLike) -> np.ndarray:
        return self(distance) / (self.exponent + 1)  # where the integral underflows too

    def integral_ball(self, distance: Number | arb) -> arb:
        q = enclosures.ball(self.exponent)
        return enclosures.ball(distance) ** (q + 1) / (q + 1)

    def branches(self, unit: Fraction, below: bool, eps: float = USUAL) -> Branches | None:
        if self.exponent == int(self.exponent) and self.exponent <= 32:
            return _mirrored([Fraction(0)], [[Fraction(0)] * int(self.exponent) + [Fraction(1)]], unit)
        # The best windows of an eps are about e^(-eps/(1 + q)) wide, half of it on each side of an input (which for large q is
        # all that counts), and of the loss within one that nearer to 0 is nothing.
        q = self.exponent
        near = NOTHING ** (1 / (1 + q))
        if q < 1:  # atoms are where inputs are: one loses all of what pieces above the loss are next to 0
            near = min(near, max(SPECK ** (1 / q), NEAREST))
        breaks, *sides = fit.power(q, near * math.exp(-eps / (1 + q)) / 2)
        with ctx.workprec(enclosures.PRECISION):
            whole = enclosures.ball(unit) ** enclosures.ball(self.exponent)
            scale = enclosures.lower(whole) if below else enclosures.upper(whole)
        return _mirrored(breaks, [[scale * a for a in row] for row in sides[not below]], Fraction(1))

    def crossing(self, level: arb) -> arb:
        return level ** (1 / enclosures.ball(self.exponent))

    def deficit_above(self, threshold: float, reach: Fraction) -> arb:
        if threshold <= 0:
            return arb(0)
        q, t = enclosures.ball(self.exponent), enclosures.ball(threshold)
        d = self.crossing(t)
        if d >= enclosures.ball(reach):
            return super().deficit_above(threshold, reach)
        return t * d * q / (q + 1)  # without the cancellation of t d - d t / (q + 1)

    def mean_ball(self, reach: Fraction) -> arb:
        q = enclosures.ball(self.exponent)
        return enclosures.ball(reach) ** q / (q + 1)


class _OneParameter(Loss):
    """A loss with one parameter, its first field: `words` are its phrase and its LaTeX, with {} where the parameter stands."""

    words: ClassVar[tuple[str, str]]

    @property
    def _parameter(self) -> str:
        return plain(next(iter(vars(self).values())))

    @property
    def name(self) -> str:
        return f"{self.tag}({self._parameter})"

    @property
    def phrase(self) -> str:
        return self.words[0].replace("{}", self._parameter)

    def latex(self) -> str:
        return self.words[1].replace("{}", self._parameter)


class _InPieces(DistanceLoss):
    """A loss in polynomial pieces, `_rows`: all numbers that are asked of it follow from these."""

    _rows: Rows

    @property
    def polynomials(self) -> Rows | None:  # type: ignore[override]
        return self._rows

    @property
    def _parts(self) -> Iterable[tuple[tuple[Fraction, ...], Fraction, Fraction | None]]:
        """(coefficients, start, end) of each piece."""
        breaks, rows = self._rows
        return zip(rows, breaks, (*breaks[1:], None), strict=True)

    @cached_property
    def _primitives(self) -> tuple[tuple[Fraction, ...], ...]:
        """Of each piece the primitive that continues the integral from 0."""
        rows, total = [], Fraction(0)
        for row, start, end in self._parts:
            primitive = polynomial.primitive(row)
            rows.append((total - _horner(primitive, start), *primitive[1:]))
            total = _horner(rows[-1], start if end is None else end)
        return tuple(rows)

    @cached_property
    def _floats(self) -> tuple[np.ndarray, ...]:
        """The breaks, and the coefficients of the pieces and of their primitives (one column for each piece), as floats."""
        tables = [
            self._rows[:1],
            *(zip_longest(*rows, fillvalue=Fraction(0)) for rows in (self._rows[1], self._primitives)),
        ]
        breaks, values, integrals = (np.array([list(map(nearest, row)) for row in table]) for table in tables)
        return breaks[0], values, integrals

    def __call__(self, distance: ArrayLike) -> np.ndarray:
        return self._values(distance, self._floats[1])

    def integral(self, distance: ArrayLike) -> np.ndarray:
        return self._values(distance, self._floats[2])

    def _values(self, distance: ArrayLike, columns: np.ndarray) -> np.ndarray:
        d = np.asarray(distance, dtype=float)
        place = np.searchsorted(self._floats[0][1:], d, side="right" if self.right_continuous else "left")
        *lower, found = columns.take(place, axis=1)
        for coefficients in reversed(lower):
            found = found * d + coefficients
        return np.asarray(found)

    def integral_ball(self, distance: Number | arb) -> arb:
        d = enclosures.ball(distance)
        ends = (max(end, Fraction(0)) for end in (enclosures.lower(d), enclosures.upper(d)))
        values = [enclosures.ball(self._at(end, self._primitives)) for end in dict.fromkeys(ends)]
        return values[0].union(values[-1])  # nondecreasing in d

    def exact(self, distance: Fraction) -> Fraction:
        return self._at(distance, self._rows[1])

    def _at(self, d: Fraction, rows: Sequence[Sequence[Fraction]]) -> Fraction:
        """The polynomial of the piece around d >= 0, at d."""
        find = bisect.bisect_right if self.right_continuous else bisect.bisect_left
        return _horner(rows[find(self._rows[0], d, 1) - 1], d)

    def crossing(self, level: arb) -> arb:
        """At a break, or by bisection between rationals: L is nondecreasing."""
        t = enclosures.upper(level)
        for row, low, end in self._parts:
            if _horner(row, low) > t:
                return enclosures.ball(low)
            high = 2 * low + 1 if end is None else end
            while end is None and high < 2**1100 and _horner(row, high) <= t:
                high *= 2
            if _horner(row, high) <= t:
                continue
            for _ in range(ctx.prec):
                middle = (low + high) / 2
                low, high = (middle, high) if _horner(row, middle) <= t else (low, middle)
            return enclosures.ball(low).union(enclosures.ball(high))
        return arb("inf")

    def deficit_above(self, threshold: float, reach: Fraction) -> arb:
        below = math.isfinite(threshold) and Fraction(threshold) <= self.exact(Fraction(0))
        return arb(0) if below else super().deficit_above(threshold, reach)


@dataclass(frozen=True)
class Huber(_OneParameter, _InPieces):
    """d^2/2 up to `corner` and corner (d - corner/2) beyond: squared for small errors, absolute for large ones."""

    tag = "huber"
    corner: Annotated[float, Within(1e-150, 1e150)]
    convex = True
    words = "H(|Y - x|) with the Huber function of corner {}", "H_{{}}(|Y - x|)"

    @cached_property
    def _rows(self) -> Rows:  # type: ignore[override]
        zero, c = Fraction(0), Fraction(self.corner)
        return (zero, c), ((zero, zero, Fraction(1, 2)), (-c * c / 2, c))

    def integral_ball(self, distance: Number | arb) -> arb:
        d, c = enclosures.ball(distance), enclosures.ball(self.corner)
        near, far = d.min(c), (d - c).max(arb(0))
        return near**3 / 6 + c * far * (c + far) / 2

    def crossing(self, level: arb) -> arb:
        c = enclosures.ball(self.corner)
        bend = c**2 / 2
        low, high = (2 * level.min(bend)).sqrt(), level.max(bend) / c + c / 2
        return low if level <= bend else high if level >= bend else low.union(high)


@dataclass(frozen=True)
class Threshold(_OneParameter, _InPieces):
    """1 where the distance exceeds `limit`, else 0: its expectation is the probability of an error above the limit."""

    tag = "threshold"
    limit: Annotated[float, Within(0.0)]
    words = "1[|Y - x| > {}]", r"\mathbf{1}[|Y - x| > {}]"

    @property
    def _rows(self) -> Rows:  # type: ignore[override]
        return (Fraction(0), Fraction(self.limit)), ((Fraction(0),), (Fraction(1),))

    @property
    def polynomials(self) -> Rows | None:  # type: ignore[override]
        return self._rows if self.limit else None  # 1 everywhere but at one point, where atoms may lie

    def integral_ball(self, distance: Number | arb) -> arb:
        return (enclosures.ball(distance) - enclosures.ball(self.limit)).max(arb(0))

    @property
    def whole(self) -> DistanceLoss:
        return self if self.limit else Threshold(0.5)


@dataclass(frozen=True)
class Pieces(_InPieces):
    """A nondecreasing loss of the distance in exact polynomial pieces.

    **Arguments:** `breaks`: 0 = b_0 < b_1 < ... < b_n; `coefficients`: for each of the n + 1 pieces [b_i, b_(i+1)), the last
    one without end, the coefficients (a_0, a_1, ...) of sum_k a_k d^k, all exact rationals (1/3 as "1/3").

    **Raises** ValueError unless it is proven nonnegative and nondecreasing (by Bernstein coefficients; on the last piece every
    derivative at b_n must be >= 0).

        >>> import optdp
        >>> optdp.Pieces((0, 1), ((0, 0, 1), (-1, 2)))(2.0)     # d^2 up to 1, 2 d - 1 beyond
        array(3.)
    """

    tag = "pieces"
    right_continuous = True
    breaks: Annotated[tuple[Fraction, ...], Within(most=1000)]
    coefficients: Annotated[tuple[Annotated[tuple[Fraction, ...], Within(most=32)], ...], Within(most=1000)]

    if TYPE_CHECKING:  # what may be given

        def __init__(self, breaks: Iterable[Number | str], coefficients: Iterable[Iterable[Number | str]]) -> None: ...

    def __post_init__(self) -> None:
        breaks = tuple(rational(b, "breaks") for b in require.listed("breaks", self.breaks))
        given = [
            require.listed("a row of coefficients", row)
            for row in require.listed("coefficients", self.coefficients, "lists")
        ]
        rows = tuple(tuple(rational(a, "coefficients") for a in row) or (Fraction(0),) for row in given)
        if not breaks or breaks[0] != 0 or any(a >= b for a, b in pairwise(breaks)):
            raise ValueError("breaks are not allowed: they must increase, the first being 0")
        if len(rows) != len(breaks) or max(map(len, rows)) > 32 or len(rows) > 1000:
            allowed = "there must be one row of at most 32 for each of at most 1000 breaks"
            raise ValueError(f"coefficients are not allowed: {allowed}")
        object.__setattr__(self, "breaks", breaks)
        object.__setattr__(self, "coefficients", rows)
        if rows[0][0] < 0:
            raise ValueError("coefficients are not allowed: the loss must be >= 0 at distance 0")
        for i, (row, start, end) in enumerate(self._parts):
            drops = i > 0 and _horner(row, start) < _horner(rows[i - 1], start)
            if drops or not polynomial.nonnegative(polynomial.slope(row), start, end):
                reason = f"the loss is not proven nondecreasing from distance {start} on"
                raise ValueError(f"coefficients are not allowed: {reason}")

    @property
    def _rows(self) -> Rows:  # type: ignore[override]
        return self.breaks, self.coefficients

    @property
    def convex(self) -> bool:  # type: ignore[override]
        """Whether slopes are proven nondecreasing, at the breaks too, and there are no jumps."""
        for i, (row, start, end) in enumerate(self._parts):
            last = self.coefficients[max(i - 1, 0)]
            jumps = _horner(row, start) != _horner(last, start)
            falls = _horner(polynomial.slope(row), start) < _horner(polynomial.slope(last), start)
            if jumps or falls or not polynomial.nonnegative(polynomial.slope(polynomial.slope(row)), start, end):
                return False
        return True

    @property
    def phrase(self) -> str:
        spelled = []
        for b, row in zip(self.breaks, self.coefficients, strict=True):
            terms = [f"{show(a)}" + (f" d^{k}" if k else "") for k, a in enumerate(row) if a]
            spelled.append(f"{' + '.join(terms) or '0'} from d = {show(b)}")
        return f"L(|Y - x|), L(d) = {'; '.join(spelled)}"


def _horner(row: Sequence[Fraction], d: Fraction) -> Fraction:
    words, coefficients = _prepared(tuple(row))
    work.count(2 * len(row) * work.rational(words + len(row) * work.words([d]) / 2))
    found: Any = horner(coefficients or (fmpq(0),), fmpq(d.numerator, d.denominator))
    return Fraction(int(found.p), int(found.q))


@lru_cache(maxsize=4096)
def _prepared(row: tuple[Fraction, ...]) -> tuple[float, tuple[fmpq, ...]]:
    """How many words its coefficients have, and these as rationals of FLINT."""
    return work.words(row), tuple(fmpq(a.numerator, a.denominator) for a in row)


@dataclass(frozen=True)
class Pinball(_OneParameter):
    """tau (y - x)+ + (1 - tau)(x - y)+, `tau` in (0, 1): outputs that aim at a quantile."""

    tag = "pinball"
    tau: Annotated[float, Within(0.0, 1.0, open_low=True, open_high=True)]
    form = "difference"
    convex = True
    words = "[{} (Y - x)+ + (1 - {})(x - Y)+]", r"\rho_{{}}(Y - x)"

    @property
    def slopes(self) -> tuple[Fraction, Fraction]:  # type: ignore[override]
        """Sublevel sets are intervals whose ends balance tau and 1 - tau."""
        tau = Fraction(self.tau)
        return -1 / (1 - tau), 1 / tau

    def branches(self, unit: Fraction, below: bool, eps: float = USUAL) -> Branches | None:
        tau = Fraction(self.tau)
        return Branches((Fraction(0),), ((Fraction(0), (tau - 1) * unit), (Fraction(0), tau * unit)))

    def of(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        d = np.subtract(y, x)
        return np.asarray(np.where(d >= 0, self.tau * d, (self.tau - 1) * d))


class _Session(Loss):
    """A loss known through a Python function: problems with one can be solved, verified and sampled, but not saved."""

    def to_dict(self) -> dict[str, Any]:
        """Refused: a Python function has no JSON form."""
        raise TypeError(
            f"loss = {self.name!r} cannot be saved: a Python function has no JSON form (optdp.Pieces has one, and so have "
            "abs, squared and the other built-in losses)"
        )


#: Symbols of an alphabet on which a loss of the pair is written as a matrix: at most 2 million entries.
SYMBOLS = 1414


@dataclass(frozen=True)
class PairLoss(_Session):
    """A user's own loss L(x, y) >= 0 of input and output: relative errors, asymmetric costs, and what else there is.

    **Arguments:** `function`: takes two arrays (inputs, outputs) that broadcast, and gives an array (a function of two floats is
    called pair by pair, slowly); `name`; `lipschitz`: a constant with |L(x, y) - L(x', y')| <= lipschitz (|x - x'| + |y - y'|)
    for all inputs x, x' and outputs y, y', or a pair (a, b) with a |x - x'| + b |y - y'| there. It is what lets
    `optdp.solve_kernel` conclude from the values at finitely many points; on an `optdp.Alphabet` of numbers the loss is a matrix,
    and none is needed.

    **Raises** TypeError or ValueError naming the argument. Where values contradict the constants they are refused with the place.

        >>> import optdp
        >>> relative = optdp.PairLoss(lambda x, y: abs(y - x) / (x + 1), name="relative", lipschitz=(2, 1))
        >>> print(optdp.Problem(optdp.LDP(1.0), (0, 1), relative).statement())  # doctest: +NORMALIZE_WHITESPACE
        the least worst-case E[L(x, Y) for the user's function L = relative (changes by at most 2 |x - x'| + |y - y'|)]
        over all 1.0-LDP mechanisms from [0, 1] to [0, 1]
    """

    function: Callable[[Any, Any], Any]
    name: str = "custom"
    lipschitz: float | tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not callable(self.function):
            allowed = "it must be a function of inputs and outputs"
            raise TypeError(f"function = {self.function!r} is not allowed: {allowed}")
        require.label("name", self.name)
        given = self.lipschitz
        if given is None:
            return
        if isinstance(given, list | tuple):
            if len(given) != 2:
                raise ValueError(
                    f"lipschitz = {given!r} is not allowed: it must be one number, or one for x and one for y"
                )
            rates = tuple(require.real("lipschitz", rate, low=0.0, high=1e150) for rate in given)
            object.__setattr__(self, "lipschitz", rates)
        else:
            object.__setattr__(self, "lipschitz", require.real("lipschitz", given, low=0.0, high=1e150))

    @property
    def rates(self) -> tuple[float, float] | None:  # type: ignore[override]
        """By how much the loss changes at most per unit of the input, and of the output."""
        if self.lipschitz is None or isinstance(self.lipschitz, tuple):
            return self.lipschitz
        return self.lipschitz, self.lipschitz

    @property
    def _change(self) -> str:
        """The largest change, in words."""
        a, b = self.rates or (0.0, 0.0)
        if a == b:
            return f"{plain(a)} (|x - x'| + |y - y'|)"
        return f"{'' if a == 1 else plain(a) + ' '}|x - x'| + {'' if b == 1 else plain(b) + ' '}|y - y'|"

    @property
    def assumptions(self) -> str:  # type: ignore[override]
        if self.rates is None:
            return "the loss is what its values at the points visited say"
        return f"the loss changes by at most {self._change}, and is what it was computed to be at the points visited"

    @property
    def phrase(self) -> str:
        known = "" if self.rates is None else f" (changes by at most {self._change})"
        return f"L(x, Y) for the user's function L = {self.name}{known}"

    def of(self, x: ArrayLike, y: ArrayLike) -> np.ndarray:
        inputs, outputs = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        values = evaluated(f"loss = {self.name!r}", self.function, inputs, outputs)
        if not (values >= 0).all():
            k = int(np.flatnonzero(~(values >= 0))[0])
            at = [float(v.flat[k]) for v in (*np.broadcast_arrays(inputs, outputs), values)]
            told = f"a loss must be a number >= 0, and for the input {at[0]!r} and the output {at[1]!r} it is {at[2]:g}"
            raise ValueError(f"loss = {self.name!r} is not allowed: {told}")
        return values

    def table(self, inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """L at all pairs (inputs, outputs) of two increasing lists of points.

        **Raises** ValueError where a value is infinite, or two neighbours differ by more than is declared.
        """
        values = self.of(inputs[:, None], outputs)
        if not np.isfinite(values).all():
            k = np.argwhere(~np.isfinite(values))[0].tolist()
            where = f"for the input {float(inputs[k[0]])!r} and the output {float(outputs[k[1]])!r}"
            raise ValueError(f"loss = {self.name!r} is not allowed: it is infinite {where}")
        # What is lost to rounding in the function's own arithmetic is no contradiction: in its values, and in what it computes
        # them from, as y - 32, or 20 y in |sin 20 y|, which is as large as points times rates.
        noise = 2.0**-36 * float(values.max()) + enclosures.TINY
        for points, rate in zip((inputs, outputs), self.rates or (), strict=False):
            noise += 2.0**-45 * rate * float(np.abs(points).max())
        for axis, (points, what) in enumerate(((inputs, "inputs"), (outputs, "outputs"))):
            if self.rates is None or points.size < 2:
                continue
            room = self.rates[axis] * np.diff(points) * (1 + 2.0**-36) + noise
            steps = np.abs(np.diff(values, axis=axis))
            wrong = steps > (room[:, None] if axis == 0 else room)
            if wrong.any():
                i, j = np.argwhere(wrong)[0].tolist()
                k = (i, j)[axis]
                raise ValueError(
                    f"lipschitz = {self.lipschitz!r} is not allowed for the loss {self.name!r}: between the {what} "
                    f"{float(points[k])!r} and {float(points[k + 1])!r} it changes by {float(steps[i, j]):.6g} "
                    + (f"for the output {float(outputs[j])!r}" if axis == 0 else f"for the input {float(inputs[i])!r}")
                )
        return values

    def among(self, symbols: Sequence[Any]) -> MatrixLoss:
        """The matrix of the loss on a finite alphabet of numbers, from which outputs come too.

        **Raises** ValueError if symbols are no numbers, or too many.
        """
        if any(isinstance(s, str) for s in symbols) or len(symbols) > SYMBOLS:
            allowed = f"its symbols must be at most {SYMBOLS} numbers (a matrix is taken for others)"
            raise ValueError(f"loss = {self.name!r} is not allowed on this alphabet: {allowed}")
        points = require.reals(list(symbols), "symbols")
        if points.tolist() != list(symbols):  # rounded, two may be one
            allowed = "its symbols must be floats, as all integers up to 2^53 are (a matrix is taken for others)"
            raise ValueError(f"loss = {self.name!r} is not allowed on this alphabet: {allowed}")
        order = np.argsort(points, kind="stable")
        matrix = np.empty((points.size, points.size))
        matrix[np.ix_(order, order)] = self.table(points[order], points[order])
        return MatrixLoss(matrix)  # type: ignore[arg-type]


#: Entries of an array of values that are computed again by themselves, and how far they may differ, as a share of the largest.
PROBES, SAME = 7, 1e-6


def evaluated(what: str, function: Callable[..., Any], *points: np.ndarray) -> np.ndarray:
    """A user's function of numbers, at arrays of them that broadcast: one by one where it does not take arrays, as in
    `if d > 0.1: ...`, or makes one number of them.

    **Arguments:** `what`: how errors begin, as "loss = 'mine'".

    **Raises** TypeError where its values are no real numbers, ValueError where they depend on the rest of the array.
    """
    full = np.broadcast_arrays(*points)
    found = whole = None
    with suppress(TypeError, ValueError):
        found = np.asarray(function(*points))
        whole = np.broadcast_to(found, full[0].shape)  # it may be constant in one of them
    if found is None or whole is None:
        return _floats(what, np.asarray(np.vectorize(function, otypes=[object])(*points)))
    values, same = _floats(what, whole), found.shape == whole.shape
    other = _differs(function, full, values, same)
    if other is None:
        return values
    if not same:  # the number for all was not that of each
        return _floats(what, np.asarray(np.vectorize(function, otypes=[object])(*points)))
    at = ", ".join(repr(float(v.flat[other])) for v in full)
    raise ValueError(f"{what} is not allowed: its value at ({at}) among others must be the one that it has there alone")


def _floats(what: str, found: np.ndarray) -> np.ndarray:
    """Values as floats."""
    wrong: Any = None if found.dtype.kind in "iufbO" else found.dtype
    if found.dtype.kind == "O":
        wrong = next((type(v).__name__ for v in found.flat if not isinstance(v, Real | np.bool_)), None)
    if wrong is not None:
        raise TypeError(f"{what} is not allowed: it must give real numbers, not {wrong}")
    try:
        return found.astype(float, copy=False)
    except OverflowError:
        raise ValueError(f"{what} is not allowed: its values must be at most 1.8e308") from None


def _differs(
    function: Callable[..., Any], points: Sequence[np.ndarray], values: np.ndarray, arrays: bool
) -> int | None:
    """The place of a value, among some that are tried, that is another one where the function is called with its point alone.

    `arrays`: whether it may be a function that takes arrays only.
    """
    if values.size < 2:
        return None
    scale = float(np.max(np.abs(values), where=np.isfinite(values), initial=0.0))
    for k in np.unique(np.linspace(0, values.size - 1, PROBES).astype(int)).tolist():
        try:
            with np.errstate(all="ignore"):  # the array's values have told
                alone = float(function(*(v.flat[k] for v in points)))
        except (TypeError, ValueError, IndexError, AttributeError):
            if arrays:
                continue
            return int(k)
        # In plain floats: programs ask thousands of times, of few points each.
        value = float(values.flat[k])
        close = math.isfinite(value) and abs(alone - value) <= SAME * scale + SAME * abs(value)
        if not (close or alone == value or (math.isnan(alone) and math.isnan(value))):
            return int(k)
    return None


Shape = Literal["convex", "concave"]

#: A user's loss is sampled on CELLS even cells, and nearer to 0 than OCTAVE / CELLS of its reach on OCTAVE cells between each
#: distance and half of it, until the last cells begin at 0: what a window costs at large epsilon is decided there.
#: Monotone sums leave a relative gap of about 1/CELLS.
CELLS, OCTAVE, OCTAVES = 2**20, 2**14, 24
#: Which of the samples are compared with their neighbours to see whether a function is of its shape.
STRIDES = 1, 2**6, 2**12
#: At most how many jumps are sought between samples, and how many times as steep as cells nearby a cell with one is.
JUMPS, STEEPER = 32, 64
#: Cells, losses and their products below this are refused: integrals of much smaller shares would not be accurate.
LEAST = 2.0**-900


@cache
def _sampled_at() -> np.ndarray:
    """The distances at which a user's loss is sampled, as shares of its reach: all are multiples of powers of two."""
    octaves = [np.arange(OCTAVE, 2 * OCTAVE) * 2.0**-k / CELLS for k in range(OCTAVES, 0, -1)]
    first = np.arange(OCTAVE) * 2.0**-OCTAVES / CELLS
    return np.concatenate([first, *octaves, np.arange(OCTAVE, CELLS + 1) / CELLS])


def _sums(terms: np.ndarray) -> np.ndarray:
    """0 and the sums of the first terms, which are >= 0, each to two roundings: what each addition loses is added up too."""
    sums = np.append(0.0, np.cumsum(terms))
    added = np.diff(sums)
    lost = (sums[:-1] - (sums[1:] - added)) + (terms - added)
    sums[1:] += np.cumsum(lost)
    return sums


@dataclass(frozen=True)
class CustomLoss(_Session, DistanceLoss):
    """A user's own nondecreasing loss of the distance, known through its values.

    **Arguments:**

    - `function`: takes an array of distances d >= 0 and gives an array of the same shape, finite, >= 0 and
      nondecreasing on [0, reach]. (A function of one float is vectorised, slowly.)
    - `reach`: the largest distance at which it will be asked; a `Problem` sets it from its domain.
    - `shape`: "convex" or "concave" if it is so, which makes brackets tighter by orders of magnitude.
    - `name`: how it is called in reports.

    All that is known of such a function is its values at 1.4 million distances, 2^-20 of the reach apart and nearer
    towards 0, and at the floats around up to 32 jumps, where every property above is checked. Its integrals are
    therefore bracketed from those values and from the declared properties alone; bounds that rest on it say so.

    **Raises** TypeError if `function` is not callable or does not give real numbers of the right shape; ValueError if
    its values are not finite, negative, decreasing, or not of the declared shape: with the distance where it fails.
    """

    function: Callable[[Any], Any]
    reach: float | None = None
    shape: Shape | None = None
    name: str = "custom"
    _grid: np.ndarray = field(init=False, repr=False, compare=False)
    _values: np.ndarray = field(init=False, repr=False, compare=False)
    _below: np.ndarray = field(init=False, repr=False, compare=False)
    _above: np.ndarray = field(init=False, repr=False, compare=False)
    _noise: float = field(init=False, repr=False, compare=False)
    sampled = True

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"loss = {self.function!r} is not allowed: a loss must be a function of the distance")
        require.label("name", self.name)
        with suppress(ValueError):  # of a function that does not tell its arguments
            try:
                inspect.signature(self.function).bind(0.0)
            except TypeError:
                allowed = "it must be a function of the distance alone; optdp.PairLoss takes one of input and output"
                raise TypeError(f"loss = {self.name!r} is not allowed: {allowed}") from None
        if self.shape is not None:
            require.choice("shape", self.shape, ("convex", "concave"))
        if self.reach is None:  # not bound to a problem yet
            return
        object.__setattr__(self, "reach", require.real("reach", self.reach, low=0.0, open_low=True))
        places = _sampled_at()
        if self.shape is not None:  # the middles of cells too
            places = np.append(np.ravel([places[:-1], (places[:-1] + places[1:]) / 2], "F"), 1.0)
        grid = places * self.reach
        values = self(grid)
        if self.shape is None:
            grid, values = self._at_jumps(grid, values)
        self._refuse(~np.isfinite(values), grid, values, "finite")
        self._refuse(values < 0, grid, values, ">= 0")
        cell = self.reach / CELLS
        if values[-1] > 0 and min(cell, values[-1], cell * values[-1]) < LEAST:
            raise ValueError(
                f"loss = {self.name!r} is not allowed: its integral underflows on [0, {self.reach:g}]; use larger units"
            )
        noise = 8 * np.finfo(float).eps * float(values[-1])
        if self.shape == "convex":
            # max(d - c, 0) just beyond c is small, and as inexact as d: times the steepest slope.
            noise += 8 * np.finfo(float).eps * float(values[-1] - values[-2]) / float(places[-1] - places[-2])
        raised = np.maximum.accumulate(values)
        self._refuse(values < raised - noise, grid, values, "nondecreasing in the distance")
        values = raised
        # Between the cells' ends monotone sums, or Hermite-Hadamard (midpoint and trapezoid) where the shape is known.
        if self.shape is None:
            ends, low, high = values, values[:-1], values[1:]
        else:
            for stride in STRIDES:  # what bends slowly is seen from afar alone
                some, width = slice(None, None, stride), np.diff(places[::stride])
                bend = np.diff(np.diff(values[some]) / width) * np.minimum(width[:-1], width[1:])
                bend *= 1 if self.shape == "convex" else -1
                wrong = np.concatenate(([False], bend < -4 * noise, [False]))
                self._refuse(wrong, grid[some], values[some], self.shape)
            grid, ends, middle = grid[::2], values[::2], values[1::2]
            trapezoid = (ends[:-1] + ends[1:]) / 2
            low, high = (middle, trapezoid) if self.shape == "convex" else (trapezoid, middle)
        object.__setattr__(self, "_grid", grid)
        object.__setattr__(self, "_values", ends)
        object.__setattr__(self, "_noise", 2 * noise)
        with np.errstate(over="ignore", invalid="ignore"):  # whether it overflows is asked where the domain is known
            below, above = (_sums(part * np.diff(grid)) for part in (low, high))
            object.__setattr__(self, "_below", below * (1 - 2.0**-50) - grid * noise)
            object.__setattr__(self, "_above", above * (1 + 2.0**-50) + grid * noise)
        if not np.isfinite(self._above).all():
            raise ValueError(
                f"loss = {self.name!r} is not allowed: its integral overflows on [0, {self.reach:g}]; use smaller units"
            )

    @property
    def convex(self) -> bool:  # type: ignore[override]
        return self.shape == "convex"

    @property
    def assumptions(self) -> str:  # type: ignore[override]
        shape = "" if self.shape is None else f" and {self.shape}"
        return f"the loss is nondecreasing{shape} between the points at which it was sampled"

    @property
    def phrase(self) -> str:
        shape = "" if self.shape is None else f", {self.shape}"
        return f"L(|Y - x|) for the user's function L = {self.name} (nondecreasing{shape})"

    def on(self, reach: Fraction | float) -> CustomLoss:
        far = enclosures.round_up(Fraction(reach))
        return self if self.reach == far else CustomLoss(self.function, far, self.shape, self.name)

    def _refuse(self, bad: np.ndarray, grid: np.ndarray, values: np.ndarray, what: str) -> None:
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"loss = {self.name!r} is not allowed: a loss must be {what} on [0, {self.reach:g}], and it is not "
                f"at distance {grid[at]:g}, where its value is {values[at]:g}"
            )

    def _at_jumps(self, grid: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """More samples: where it seems to jump the two neighbouring floats between which it does."""
        with np.errstate(over="ignore", invalid="ignore"):  # values that are not finite are refused where all are known
            rises = np.diff(values)
            around = np.pad(rises, 2)
            least = np.maximum(STEEPER * np.maximum(around[:-4], around[4:]), values[-1] / CELLS)
            at = np.flatnonzero((rises > least) & (grid[:-1] > 0))
            at = at[np.argsort(-rises[at], kind="stable")[:JUMPS]]
            ends = np.stack([grid[at], grid[at + 1]])
            known = np.stack([values[at], values[at + 1]])
            while ((ends[0] < (middle := (ends[0] + ends[1]) / 2)) & (middle < ends[1])).any():
                found, jump = self(middle), np.arange(at.size)
                side = (found - known[0] > known[1] - found).astype(int)
                ends[side, jump], known[side, jump] = middle, found
        more, first = np.unique(ends, return_index=True)
        place = np.searchsorted(grid, more)
        new = grid[place] != more
        return np.insert(grid, place[new], more[new]), np.insert(values, place[new], known.ravel()[first[new]])

    def __call__(self, distance: ArrayLike) -> np.ndarray:
        return evaluated(f"loss = {self.name!r}", self.function, np.asarray(distance, dtype=float))

    def at(self, distance: Fraction) -> tuple[float, float]:
        # Next to a jump the samples around say little, and where it is 0 they are only known up to roundings.
        near = np.minimum([enclosures.round_down(distance), enclosures.round_up(distance)], self._bound_reach)
        low, high = self(near).tolist()
        if not 0 <= low < math.inf or not high < math.inf:
            raise ValueError(f"loss = {self.name!r} is not allowed: a loss must be finite and >= 0")
        return (low, high) if low == high else (max(low - self._noise, 0.0), high + self._noise)

    def integral(self, distance: ArrayLike) -> np.ndarray:
        low, high = self.integral_bracket(distance)
        return np.asarray((low + high) / 2)

    def integral_bracket(self, distance: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) around the integral of L from 0 to distance, elementwise, from the sampled values; beyond `reach` of the
        value there, which nothing exceeds that is asked for.
        """
        whole = np.asarray(distance, dtype=float)
        d = np.clip(whole, 0.0, self._bound_reach)
        index = np.minimum(np.searchsorted(self._grid, d, side="right"), self._grid.size - 1) - 1
        rest, beyond, last = d - self._grid[index], np.maximum(whole - d, 0.0), float(self._values[-1])
        low = self._below[index] + rest * self._values[index] + beyond * (last - self._noise)
        return low, self._above[index] + rest * self._values[index + 1] + beyond * (last + self._noise)

    @property
    def _bound_reach(self) -> float:
        if self.reach is None:
            raise ValueError(f"loss = {self.name!r} has no reach yet: give it one, or put it into a Problem")
        return self.reach

    def branches(self, unit: Fraction, below: bool, eps: float = USUAL) -> Branches | None:
        if self.reach is None or unit > Fraction(self.reach):
            return None
        about = round(eps, 3)  # proofs and enclosures know it to other digits
        if about not in self._found:
            self._found[about] = self._sides(about)
        breaks, rows = self._found[about][not below]
        return _mirrored(breaks, rows, unit, below)  # every row holds at both of its ends

    @cached_property
    def _found(self) -> dict[float, list[tuple[list[Fraction], fit.Rows]]]:
        """What `_sides` found for each epsilon."""
        return {}

    @cached_property
    def _fits(self) -> fit.Fits:
        """Polynomials that were found on the way."""
        return {}

    def _sides(self, eps: float) -> list[tuple[list[Fraction], fit.Rows]]:
        """Pieces below and above. Between two samples a convex function lies on or under their chord, and over the lines through
        the neighbouring ones; a concave one the other way round; any other between the two values.
        """
        grid, values = self._grid, self._values
        steps, zero = np.diff(values), np.zeros(values.size - 1)
        if self.shape is None:
            slacks = [steps, steps]
        else:
            # The neighbour's slope over the cell; before the first the slope is 0, or anything.
            width = np.diff(grid)
            lines = np.append(0.0, steps[:-1] / width[:-1]) * width
            bends = np.abs(steps - lines)
            bends = np.minimum(bends, steps) + 4 * self._noise
            slacks = [bends, zero] if self.convex else [zero, bends]
        return [
            fit.sampled(grid, values, slack, self._noise, eps, self._fits, below=below)
            for slack, below in zip(slacks, (True, False), strict=True)
        ]

    def integral_ball(self, distance: Number | arb) -> arb:
        low, high = self.integral_bracket(float(distance))
        return arb(float(low) * (1 - 1e-14)).union(arb(float(high) * (1 + 1e-14)))

    def mean_ball(self, reach: Fraction) -> arb:
        return self.integral_ball(float(reach)) / enclosures.ball(reach)

    def deficit_above(self, threshold: float, reach: Fraction) -> arb:
        # L is nondecreasing: whole cells lie below the threshold up to end number k, then one cell is crossed.
        k = int(np.searchsorted(self._values, threshold, side="right")) - 1
        if k < 0:
            return arb(0)
        whole, last = float(self._grid[k]), k == self._grid.size - 1
        crossed = 0.0 if last else float(self._grid[k + 1] - self._grid[k]) * (threshold - float(self._values[k]))
        whole *= threshold
        return arb((whole - float(self._below[k]) + crossed) * (1 + 1e-14) + 1e-14 * whole)


@dataclass(frozen=True)
class MatrixLoss(Loss):
    """The loss of each output (column) for each input (row) of a finite alphabet.

    **Arguments:** `rows`: a matrix of finite numbers >= 0 with at least 2 rows.
    """

    tag = "matrix"
    rows: Annotated[tuple[tuple[float, ...], ...], Within(0.0, least=2, most=10_000)]
    form = "matrix"

    def __post_init__(self) -> None:
        matrix = matrix_of(self.rows)
        if matrix is None:
            allowed = "with an Alphabet it must be a matrix of numbers, a row for each input, a column for each output"
            raise TypeError(f"loss is not allowed: {allowed}")
        if len(matrix) < 2 or not matrix.size or not np.isfinite(matrix).all() or matrix.min() < 0:
            raise ValueError("loss is not allowed: its entries must be finite and >= 0, with at least 2 rows")
        object.__setattr__(self, "rows", tuple(tuple(row) for row in matrix.astype(float).tolist()))

    @property
    def name(self) -> str:
        return f"matrix {len(self.rows)} x {len(self.rows[0])}"

    @property
    def phrase(self) -> str:
        if len(self.rows) * len(self.rows[0]) <= 16:
            return f"L(x, Y) with L = [{'; '.join(', '.join(map(plain, row)) for row in self.rows)}]"
        return f"L(x, Y) with the {self.name} L {digest(self.array.astype('<f8').tobytes())}"

    @property
    def array(self) -> np.ndarray:
        """The matrix."""
        return np.array(self.rows)


Absolute = Power(1)
Squared = Power(2)

_NAMED: dict[str, DistanceLoss] = {"abs": Absolute, "l1": Absolute, "squared": Squared, "l2": Squared}

#: Losses with a parameter, as the command line writes them: "threshold:1".
_WRITTEN = {"power": "Power", "huber": "Huber", "threshold": "Threshold", "pinball": "Pinball"}

#: What `as_loss` reads.
LossLike = Loss | str | Callable[..., Any] | list[Any] | tuple[Any, ...] | np.ndarray


def as_loss(loss: LossLike, reach: Fraction | float | None = None) -> Any:
    """A loss from what a user wrote: "abs" ("l1"), "squared" ("l2"), a `Loss`, a matrix, or a function of the distance.

    **Arguments:** `reach`: the largest distance that can occur, up to which a user's function is checked; None: later.

    **Raises** TypeError or ValueError if it is none of these, or a function that is not a loss.
    """
    if isinstance(loss, str):
        kind, colon, parameter = loss.partition(":")
        if colon and kind in _WRITTEN:
            told = f"use optdp.{_WRITTEN[kind]}({parameter}); only the command line reads this text"
            raise ValueError(f"loss = {loss!r} is not allowed: {told}")
        return _NAMED[require.choice("loss", loss, tuple(_NAMED), "a Loss such as optdp.Power(q)", "a function")]
    if isinstance(loss, Loss):
        return loss if reach is None else loss.on(reach)
    if callable(loss) and not isinstance(loss, type):
        return CustomLoss(loss, None if reach is None else float(reach), name=getattr(loss, "__name__", "custom"))
    if isinstance(loss, list | tuple) or hasattr(loss, "__array__"):
        return MatrixLoss(require.unmasked(loss, "loss"))  # type: ignore[arg-type]
    raise TypeError(
        f"loss = {loss!r} is not allowed: loss must be 'abs', 'squared', a Loss such as optdp.Power(q), or a nondecreasing "
        "function of the distance"
    )

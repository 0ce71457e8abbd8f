"""Shapes of composite densities: the activation that follows the input, and the base that does not (COMP, Section 3.2).

All that a design needs of a shape are a few constants, on the standard support [-1, 1]:

- of an activation h with peak 1: its *fill* c = (1/2) int h, and its *spread* v, the second moment of the density h / int h;
- of a base g with peak 1: its *level* (1/2) int g, its *least* height inf g, and its spread likewise.

Named shapes give them as balls (pi is irrational), shapes made of steps as exact rationals. Each shape also samples itself
with integers: whole cells of a grid, so that privacy does not hang on rounding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Annotated, Any, ClassVar

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from optdp.exact import Alias, Fields, Within, enclosures, require, written
from optdp.exact.numbers import digest
from optdp.exact.sampling import LIMB, limbs
from optdp.problem.losses import evaluated

#: Steps in which a user's function is kept: its values at that many equally spaced midpoints are all that is known of it.
STEPS = 2**12
#: Heights of steps are integer multiples of the peak over 2^30.
LEVELS = 2**30
#: Floats decide on a toss that is this far from the height as they compute it, many times their error; balls on the others.
MARGIN = 2.0**-40
#: Fewer cells than this are tried one for one, as a client draws them.
FEW = 64


class Shape(ABC):
    """A symmetric, bounded, nonnegative function on [-1, 1] with peak 1."""

    name: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        """What is proven rests on constants that nobody could check in a class of somebody else; those of steps are computed."""
        if cls.__module__ != __name__:
            raise TypeError(f"{cls.__name__} is not allowed: a shape of your own is a function, which is kept as steps")

    @abstractmethod
    def height(self, u: ArrayLike) -> np.ndarray:
        """The function at positions u in [-1, 1], elementwise; 0 outside."""

    #: Both, where they are rational.
    exact_level: Fraction
    exact_spread: Fraction

    def level(self) -> arb:
        """(1/2) int h over [-1, 1]: the mean height, as a ball. For an activation: its fill c."""
        return enclosures.ball(self.exact_level)

    def spread(self) -> arb:
        """Second moment of the density h / int h, as a ball."""
        return enclosures.ball(self.exact_spread)

    def fit(self, cells: int) -> int:
        """The nearest number of cells >= 1 in which this shape can be sampled exactly."""
        return max(cells, 1)

    def draw(self, cells: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """`size` cells out of 0 .. cells - 1, with probabilities that follow the shape and are exactly symmetric.

        By rejection: a cell is accepted if an integer below 2^62 is below 2^62 h, where h is the exact height at its middle.
        """
        found, done, chance = np.empty(size, dtype=np.int64), 0, float(self.level())
        while done < size:
            left = size - done  # of many enough are tried at once, as a rule; those that are too many are forgotten
            kept = self._accepted(cells, left if left < FEW else int(left / chance + 4 * left**0.5), rng)[:left]
            found[done : done + kept.size] = kept
            done += kept.size
        return found

    def _accepted(self, cells: int, size: int, rng: np.random.Generator) -> np.ndarray:
        """Of so many uniform cells those that are accepted."""
        trial, toss = rng.integers(0, cells, size=size), limbs(size, rng)
        steps = np.abs(2 * trial + (1 - cells))
        excess = toss * (1 / LIMB)
        excess -= self.height(steps / cells)
        for i in np.flatnonzero(np.abs(excess) < MARGIN).tolist():
            excess[i] = -1.0 if self._accepts(int(toss[i]), Fraction(int(steps[i]), cells)) else 1.0
        accepted: np.ndarray = trial[excess < 0]
        return accepted

    def _accepts(self, toss: int, u: Fraction) -> bool:
        """Whether toss / 2^62 is not proven to reach the height at u: never too seldom, for level_below."""
        with ctx.workprec(enclosures.PRECISION):
            return not self.ball(u) <= enclosures.ball(Fraction(toss, LIMB))

    def ball(self, u: Fraction) -> arb:
        """The height at u in [-1, 1] as a ball, for shapes that are drawn by rejection."""
        raise NotImplementedError(f"{type(self).__name__} must define draw, or ball")

    #: inf h, exactly (0 for shapes that vanish at the ends).
    least: Fraction = Fraction(0)

    def dip(self) -> Fraction:
        """A rational not above the least height of the cells as drawn, relative to their peak."""
        return self.least

    def level_below(self) -> Fraction:
        """A rational not above the mean height of the cells as drawn, relative to their peak: what privacy rests on."""
        return enclosures.lower(self.level())

    def level_above(self) -> Fraction:
        """A rational not below the mean height of the cells as drawn, relative to their peak."""
        return enclosures.upper(self.level())

    def excess(self, cells: int) -> Fraction:
        """A rational not below the second moment of the middles of the cells as drawn, less `spread`.

        Drawn by rejection with |h'| <= 4, |h''| <= 12 and int h >= 1.2: by the midpoint rule on cells of width 2/n, where a cell
        is accepted at most 2^-61 too often.
        """
        return Fraction(16, cells**2) + Fraction(1, 2**58)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"shape": self.name} | written(self)

    @staticmethod
    def read(fields: Fields) -> Shape:
        """The inverse of `to_dict`, field by field."""
        kinds: dict[str, type[Shape]] = {kind.name: kind for kind in (Rectangle, Sine, Triangle, Quartic, Steps)}
        read = fields.into(kinds[fields.choice("shape", tuple(kinds))])
        fields.done()
        return read

    def phrase(self) -> str:
        """How statements name it: by its name, where that says all."""
        return self.name

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class Rectangle(Shape):
    """A1 (and, as a base, B1): constant."""

    name: ClassVar[str] = "A1"
    exact_level = least = Fraction(1)
    exact_spread = Fraction(1, 3)

    def height(self, u: ArrayLike) -> np.ndarray:
        return np.where(np.abs(u) <= 1, 1.0, 0.0)

    def excess(self, cells: int) -> Fraction:
        return Fraction(0)  # (n^2 - 1)/(3 n^2) against 1/3

    def draw(self, cells: int, size: int, rng: np.random.Generator) -> np.ndarray:
        return rng.integers(0, cells, size=size)


@dataclass(frozen=True)
class Sine(Shape):
    """A2: half a period of a sine, cos(pi u / 2). Drawn by rejection."""

    name: ClassVar[str] = "A2"

    def height(self, u: ArrayLike) -> np.ndarray:
        return np.where(np.abs(u) <= 1, np.cos(np.pi / 2 * np.asarray(u, dtype=float)), 0.0)

    def ball(self, u: Fraction) -> arb:
        return (arb.pi() * enclosures.ball(u) / 2).cos()

    def level(self) -> arb:
        return 2 / arb.pi()

    def spread(self) -> arb:
        return 1 - 8 / arb.pi() ** 2

    # `level_below`: the midpoint sum of a concave function is not below its integral; a cell is accepted at least as often as
    # its height.


@dataclass(frozen=True)
class Triangle(Shape):
    """A3: a symmetric triangle. A cell is the sum of two uniform integers, which is exact."""

    name: ClassVar[str] = "A3"
    exact_level, exact_spread = Fraction(1, 2), Fraction(1, 6)

    def height(self, u: ArrayLike) -> np.ndarray:
        return np.asarray(np.maximum(1.0 - np.abs(u), 0.0))

    def excess(self, cells: int) -> Fraction:
        return Fraction(1, 3 * cells)  # (n^2 + 2 n - 3)/(6 n^2) against 1/6

    def fit(self, cells: int) -> int:
        return max(cells - 1 + cells % 2, 1)  # odd: 2 n - 1 sums of two numbers below n

    def draw(self, cells: int, size: int, rng: np.random.Generator) -> np.ndarray:
        half = (cells + 1) // 2
        return rng.integers(0, half, size=size) + rng.integers(0, half, size=size)


@dataclass(frozen=True)
class Quartic(Shape):
    """B2: 1 - (1 - t) u^4, with t = `edge` in (0, 1] its value at the ends relative to the middle."""

    edge: Fraction = Fraction(1, 2)
    name: ClassVar[str] = "B2"

    def __post_init__(self) -> None:
        object.__setattr__(self, "edge", Fraction(require.real("edge", self.edge, low=0.0, high=1.0, open_low=True)))

    def height(self, u: ArrayLike) -> np.ndarray:
        edge, rest = float(self.edge), float(1 - self.edge)
        inside = np.abs(u) <= 1
        return np.where(inside, np.clip(edge + rest * (1 - np.asarray(u, dtype=float) ** 4), edge, 1.0), 0.0)

    def ball(self, u: Fraction) -> arb:
        return enclosures.ball(1 - (1 - self.edge) * u**4)

    @property
    def exact_level(self) -> Fraction:  # type: ignore[override]
        return 1 - (1 - self.edge) / 5

    @property
    def exact_spread(self) -> Fraction:  # type: ignore[override]
        rest = 1 - self.edge
        return (Fraction(1, 3) - rest / 7) / (1 - rest / 5)

    @property
    def least(self) -> Fraction:  # type: ignore[override]
        return self.edge

    def level_below(self) -> Fraction:
        return self.exact_level  # as for every concave function

    def level_above(self) -> Fraction:
        # The midpoint sum over n = 2^50 cells of a concave function exceeds its integral by O(n^-2), acceptance by 2^-62.
        return self.exact_level + Fraction(1, 2**48)

    def phrase(self) -> str:
        return f"B2 (quartic, its ends at {self.edge} of its middle)"


@dataclass(frozen=True)
class Steps(Shape):
    """A symmetric step function on equal steps, integer heights: what is kept of a user's own function.

    Everything about it is an exact rational; a cell is drawn from an alias table with integer weights.
    """

    heights: Annotated[tuple[int, ...], Within(0, LEVELS, 1, 2**16)]
    label: Annotated[str, Within(most=200)] = "steps"
    name: ClassVar[str] = "steps"

    def __post_init__(self) -> None:
        heights = tuple(require.integer("heights", h, low=0) for h in self.heights)
        if not heights or max(heights) == 0 or heights != heights[::-1] or max(heights) > LEVELS:
            allowed = "they must be symmetric integers in [0, 2^30], not all 0"
            raise ValueError(f"heights of {self.label!r} are not allowed: {allowed}")
        object.__setattr__(self, "heights", heights)

    @cached_property
    def _array(self) -> np.ndarray:
        return np.asarray(self.heights, dtype=float) / max(self.heights)

    @property
    def exact_level(self) -> Fraction:  # type: ignore[override]
        return Fraction(sum(self.heights), len(self.heights) * max(self.heights))

    @property
    def exact_spread(self) -> Fraction:  # type: ignore[override]
        n, total = len(self.heights), sum(self.heights)
        # Step j covers a width of 2/n around (2 j + 1 - n)/n, with second moment centre^2 + 1/(3 n^2).
        squares = sum(h * (2 * j + 1 - n) ** 2 for j, h in enumerate(self.heights))
        return Fraction(squares, total * n * n) + Fraction(1, 3 * n * n)

    def height(self, u: ArrayLike) -> np.ndarray:
        position, n = np.asarray(u, dtype=float), len(self.heights)
        index = np.clip(np.floor((position + 1) * n / 2), 0, n - 1).astype(int)
        return np.where(np.abs(position) <= 1, self._array[index], 0.0)

    def level_below(self) -> Fraction:
        return self.exact_level

    level_above = level_below

    @property
    def least(self) -> Fraction:  # type: ignore[override]
        return Fraction(min(self.heights), max(self.heights))

    def excess(self, cells: int) -> Fraction:
        return Fraction(0)  # spread evenly within a step, the middles of its cells lie nearer together than its points

    def fit(self, cells: int) -> int:
        n = len(self.heights)
        return max(round(cells / n), 1) * n

    @cached_property
    def _alias(self) -> Alias:
        return Alias([self.heights], sum(self.heights))

    def draw(self, cells: int, size: int, rng: np.random.Generator) -> np.ndarray:
        width = cells // len(self.heights)
        return self._alias.draw(np.zeros(size, dtype=np.int64), rng) * width + rng.integers(0, width, size=size)

    def phrase(self) -> str:
        # By its heights alone: the label is anybody's text.
        return f"of {len(self.heights)} steps {digest(self.heights)}"

    def __str__(self) -> str:
        return self.label


@lru_cache(maxsize=16)
def _sums(shape: Shape) -> tuple[np.ndarray, np.ndarray]:
    ends = np.linspace(-1, 1, 2**16 + 1)
    sums = np.append(0.0, np.cumsum(shape.height((ends[:-1] + ends[1:]) / 2)))
    return ends, sums / sums[-1]


def below(shape: Shape, u: ArrayLike) -> np.ndarray:
    """The share of a shape to the left of positions u, elementwise: sums of its heights at 2^16 places."""
    return np.asarray(np.interp(np.asarray(u), *_sums(shape)))


ACTIVATIONS: dict[str, Shape] = {"A1": Rectangle(), "A2": Sine(), "A3": Triangle()}
BASES = ("B1", "B2")

#: What `as_activation` and `as_base` read.
ShapeLike = Shape | str | Callable[[Any], Any]


def as_activation(activation: ShapeLike, support: tuple[float, float] = (-1.0, 1.0)) -> Shape:
    """An activation from what a user wrote: "A1", "A2", "A3", a `Shape`, or a function on `support`.

    **Raises** TypeError or ValueError with the reason if a function is not symmetric, negative, unbounded, zero, or
    zero on an outer part of the support that was declared.
    """
    if isinstance(activation, Shape):
        return activation
    if callable(activation):
        return _from_function("activation", activation, support)
    return ACTIVATIONS[require.choice("activation", activation, tuple(ACTIVATIONS), "a function")]


def as_base(base: ShapeLike, support: tuple[float, float] = (-1.0, 1.0)) -> Shape | str:
    """A base from what a user wrote: "B1" (the constant), "B2" (named: its edge is a design parameter), a `Shape` or a function.

    **Raises** TypeError or ValueError with the reason; a base must also be bounded away from 0.
    """
    if isinstance(base, Shape):
        shape = base
    elif callable(base):
        shape = _from_function("base", base, support)
    else:
        return Rectangle() if require.choice("base", base, BASES, "a function") == "B1" else "B2"
    if shape.least <= 0:
        raise ValueError(f"base = {str(shape)!r} is not allowed: a base must be positive on the whole support")
    return shape


def _from_function(role: str, function: Callable[[Any], Any], support: tuple[float, float]) -> Steps:
    """The step function with the values of `function` at the midpoints of 2^12 steps, if it is a shape at all."""
    name = getattr(function, "__name__", "custom")

    def refuse(why: str) -> ValueError:
        return ValueError(f"{role} = {name!r} is not allowed: {why}")

    if not isinstance(support, tuple | list) or len(support) != 2:
        raise TypeError(f"support = {support!r} is not allowed: support must be a pair (lower, upper)")
    a, b = (require.real("support", end) for end in support)
    if not a < b:
        raise ValueError(f"support = {support!r} is not allowed: its lower end must be below its upper end")

    def values(u: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return evaluated(f"{role} = {name!r}", function, (a + b) / 2 + (b - a) / 2 * u)

    def midpoints(n: int) -> np.ndarray:
        return (2 * np.arange(n) + 1 - n) / n

    def place(u: float) -> str:
        return f"{(a + b) / 2 + (b - a) / 2 * u:g}"

    grid, finer, middle = midpoints(STEPS), midpoints(STEPS * 64), np.array([0.0])
    coarse, fine, inner = values(grid), values(finer), values(middle)
    for u, v in ((grid, coarse), (finer, fine), (middle, inner)):
        bad = ~np.isfinite(v)
        if bad.any():
            raise refuse(f"it must be bounded, and at {place(u[bad][0])} its value is {v[bad][0]}")
        if (v < 0).any():
            raise refuse(f"it must be nonnegative, and at {place(u[v < 0][0])} its value is {v[v < 0][0]:g}")
    peak = float(coarse.max())
    if peak <= 0:
        raise refuse(f"it is 0 on the whole support [{a:g}, {b:g}]")
    highest = max(fine.max(), inner.max())
    if highest > 1.4 * peak:
        grows = f"its largest value grows from {peak:g} on {STEPS} points to {highest:g} on {STEPS * 64}"
        raise refuse(f"it must be bounded, and {grows}")
    skew = np.abs(coarse - coarse[::-1])
    if skew.max() > 1e-9 * peak:
        at = int(skew.argmax())
        raise refuse(
            f"it must be symmetric about the middle of its support [{a:g}, {b:g}], and at {place(grid[at])} and "
            f"{place(-grid[at])} its values are {coarse[at]:g} and {coarse[::-1][at]:g}"
        )
    mean = (coarse + coarse[::-1]) / 2 / peak
    heights = np.maximum(np.rint(mean * LEVELS).astype(np.int64), 0)
    if role == "activation" and heights[: STEPS // 64].max() == 0:
        inside = np.flatnonzero(heights)
        raise refuse(
            f"it is 0 on the outer part of its support [{a:g}, {b:g}]; declare the support it has, about "
            f"({place(grid[inside[0]])}, {place(grid[inside[-1]])})"
        )
    if role == "base" and heights.min() == 0:
        at = int(heights.argmin())
        raise refuse(f"a base must be positive on the whole support, and at {place(grid[at])} it is 0")
    return Steps(tuple(np.maximum(heights, heights[::-1]).tolist()), name)


def base_name(base: Shape | str) -> str:
    """ "B1" for a constant base, "B2" for the quartic ones, else its own name."""
    return "B1" if isinstance(base, Rectangle) else str(base)

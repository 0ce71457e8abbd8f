"""Bounded, unbiased mechanisms: a base that ignores the input, and a window whose centre moves linearly with it.

I-PTT, II-PTT, PM, PM-SUB (rectangular or triangular window, constant base) and the six composites A1-A3 x B1-B2 are all of
this form, and so is any pair of a user's own activation and base.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Annotated

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from optdp.exact import Check, Number, Seed, Within, as_rng, coin, enclosures, in_blocks, require, show
from optdp.exact.enclosures import nearest
from optdp.exact.lattice import Lattice, dither
from optdp.exact.numbers import span
from optdp.mechanisms.piecewise import CELLS, COINS, CellWindow
from optdp.problem import LDP, At, DomainLike, Interval, Objective, Privacy, Rule, WorstCase, as_interval
from optdp.problem.losses import DistanceLoss, LossLike
from optdp.problem.shapes import Rectangle, Shape, Steps, base_name, below

_RECTANGLE = Rectangle()


@dataclass(frozen=True, repr=False)
class CompositeMechanism(CellWindow):
    """With probability `floor_mass` an output from the base over the whole range, otherwise from a window that follows the input.

    **Arguments:**

    - `domain`: the inputs, an interval. Outputs live in a wider interval, `support()`, which follows from unbiasedness.
    - `activation`, `base`: shapes of the window and of the base (`optdp.problem.shapes`).
    - `width_cells`: width of the window in cells, `width_cells / 2^50` of the range.
    - `floor_coins`: the probability of the base times 2^124.
    - `first_cell`, `last_cell`: where the window starts for the lowest and for the highest input; by default it
      travels from one end of the range to the other.

    Use `CompositeMechanism.private(eps, width, ...)` to build one from real numbers.

    **Exactness.** All parameters are dyadic rationals; masses and likelihood ratios are bounded exactly, and `randomize` draws
    whole cells with integers. The range is the one for which the mean of the output is the input, in exact rationals. Inputs
    are read, and outputs sent, on lattices: multiples of a power of two that are floats (`optdp.exact.lattice`). The cell in
    which the window starts and the number that is sent for a cell are rounded at random such that their means are exact, so
    that E[Y | x] = x for the numbers that are sent, at every x of the lattice; what that adds to the variance, about a sixth of
    the squared step, is part of `enclose`, but not of `variance`. It is unbiased whatever its parameters: its mean square error
    is its variance.

        >>> CompositeMechanism.private(1.0, 0.4).support()
        (-4.091569611955528, 4.091569611955528)
    """

    domain: Interval
    width_cells: Annotated[int, Within(1, CELLS - 1)]
    floor_coins: Annotated[int, Within(1, COINS - 1)]
    activation: Shape = field(default_factory=Rectangle)
    base: Shape = field(default_factory=Rectangle)
    first_cell: Annotated[int, Within(0, CELLS)] = 0
    last_cell: Annotated[int, Within(0, CELLS)] = -1

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", as_interval(self.domain, "an unbiased mechanism"))
        if self.last_cell == -1:
            object.__setattr__(self, "last_cell", CELLS - self.width_cells)
        super().__post_init__()
        require.integer("last_cell", self.last_cell, low=self.first_cell + 1, high=CELLS - self.width_cells)
        if (fit := self.activation.fit(self.width_cells)) != self.width_cells:
            why = f"a {self.activation} activation is sampled exactly in {fit} cells"
            raise ValueError(f"width_cells = {self.width_cells!r} is not allowed: {why}")
        if self.base.fit(CELLS) != CELLS or self.base.dip() <= 0:
            allowed = "it must be positive on the whole range, and its number of steps a power of two"
            raise ValueError(f"base = {str(self.base)!r} is not allowed: {allowed}")
        if max(map(abs, self.exact_range)) > sys.float_info.max:
            told = "at this eps and width unbiased answers lie beyond all floats; use larger units or a narrower domain"
            raise ValueError(f"domain = {self.domain} is not allowed: {told}")

    @classmethod
    def private(
        cls, eps: Number, width: float | Fraction, domain: DomainLike = (-1.0, 1.0), activation: Shape = _RECTANGLE,
        base: Shape = _RECTANGLE, *, shift: float | Fraction = 0, rule: Rule = "uniform", floor_mass: float = 0.0,
    ) -> CompositeMechanism:  # fmt: skip
        """The eps-LDP mechanism whose window is a share `width` in (0, 1) of the range, with the least base.

        **Arguments:** `shift`: the middle of the range in units where the domain is [-1, 1], in [-1, 1]; `rule`: as in
        `optdp.Composite`; `floor_mass`: the mass of the base, if it is to be larger than the rule asks.

        The width is rounded to 2^-50, the mass of the base up to 2^-124, so that privacy holds exactly.
        """
        eps = require.exact_epsilon(eps)
        share = Fraction(require.real("width", width, low=0.0, high=1.0, open_low=True, open_high=True))
        r = Fraction(require.real("shift", shift, low=-1.0, high=1.0))
        cells = activation.fit(min(max(round(share * CELLS), 1), CELLS - 2**16))
        w = Fraction(cells, CELLS)
        ratio, dip = enclosures.exp_below(eps), base.dip()
        tiny = ValueError(f"eps = {show(eps)} is not allowed: the window would have a probability below 2^-124")
        if ratio == 1:
            raise tiny
        room = ratio * dip - 1 if rule == "uniform" else (ratio - 1) * dip
        if room <= 0:
            why = f"it varies by a factor {1 / float(dip):g} >= e^eps, which leaves no room for an activation"
            raise ValueError(f"base = {str(base)!r} is not allowed at eps = {show(eps)}: {why}")
        odds = room * activation.level_below() / base.level_above() * w
        mass = max(1 / (1 + odds), Fraction(require.real("floor_mass", floor_mass, low=0.0, high=1.0, open_high=True)))
        coins = math.ceil(mass * COINS)
        if coins >= COINS:
            raise tiny
        gap = round(abs(r) * (1 - w) / (1 + abs(r)) * CELLS)
        first, last = (0, CELLS - cells - gap) if r >= 0 else (gap, CELLS - cells)
        return cls(as_interval(domain), cells, coins, activation, base, first, last)

    @property
    def _line(self) -> tuple[Fraction, Fraction]:
        """(alpha, beta): the window's middle at input x in [-1, 1] is alpha + beta x, where the range is [-1, 1]."""
        travel = Fraction(self.last_cell - self.first_cell, CELLS)
        return Fraction(self.first_cell + self.last_cell + self.width_cells, CELLS) - 1, travel

    @property
    def _exact_half(self) -> Fraction:
        return self.domain.exact_width / 2

    @property
    def _exact_middle(self) -> Fraction:
        return (Fraction(self.domain.lower) + Fraction(self.domain.upper)) / 2

    @cached_property
    def exact_range(self) -> tuple[Fraction, Fraction]:
        """(lower, upper) ends of the outputs, exactly: the only range for which the mean of the output is the input."""
        alpha, beta = self._line
        reach = self._exact_half / ((1 - self.exact_floor_mass) * beta)
        middle = self._exact_middle - self._exact_half * alpha / beta
        return middle - reach, middle + reach

    @property
    def exact_ratio(self) -> Fraction:
        """A rational not below the largest likelihood ratio K(y|x)/K(y|x'): 1 + the window's peak over the base's least density.

        Where both shapes are rational it is that number itself.
        """
        mass = self.exact_floor_mass
        peak = (1 - mass) / (self.exact_window * self.activation.level_below())
        return 1 + peak * self.base.level_above() / (mass * self.base.dip())

    @property
    def shapes(self) -> tuple[Shape, Shape]:  # type: ignore[override]
        """(activation, base), by which families know their members."""
        return self.activation, self.base

    def keeps_rule(self, rule: str, eps: Number | None) -> bool:
        """Whether the rule of `optdp.Composite` holds, proven; without an epsilon it holds with some factor."""
        above = 1 / self.base.dip() - 1 if rule == "uniform" else 0  # the base's own peak over its least density
        return eps is None or enclosures.at_most_exp(self.exact_ratio + above, eps)

    @property
    def stretch(self) -> float:
        """k: how far the window's centre moves per unit of input."""
        return float(1 / (1 - self.exact_floor_mass))

    @property
    def eta(self) -> float:
        """Half the range over half the window: the paper's eta = (k + a)/a."""
        return float(1 / self.exact_window)

    def h1(self) -> float:
        """H1 rate (composite paper, Definition 4.2): area of the base over area of the activation."""
        return float(self.exact_floor_mass / (1 - self.exact_floor_mass))

    def h2(self, x: float | None = None, near: float = 0.25, far: float = 0.75, *, of: str = "base") -> float:
        """H2 rate (composite paper, Definition 4.3): the area next to the input over a larger one, on the longer side.

        **Arguments:** `x`: the input, by default the middle of the domain; `near`, `far`: the scales n1, n2; `of`: "base" (which
        gives the paper's Table II: 1/3 for every constant base) or "composite" (the whole density, as its definition reads).
        """
        from scipy.integrate import quad

        require.choice("of", of, ("base", "composite"))
        point = float(self.domain.check(float(self._exact_middle) if x is None else x))
        low, high = self.support()
        side = low if point >= (low + high) / 2 else high

        def area(scale: float) -> float:
            a, b = sorted((point, point + scale * (side - point)))
            if of == "composite":
                centre, half = float(self._centre(np.asarray(point))), self._halfwidth
                kinks = [c for c in (centre - half, centre, centre + half) if a < c < b]
                return float(quad(lambda y: float(self.density(y, point)), a, b, points=kinks or None, limit=200)[0])
            return float(quad(lambda y: float(self.base.height(2 * (y - low) / (high - low) - 1)), a, b, limit=200)[0])

        return area(near) / area(far)

    @property
    def _halfwidth(self) -> float:
        low, high = self.exact_range
        return nearest(self.exact_window * (high - low) / 2)

    @property
    def _reach(self) -> float:
        """Half the range."""
        low, high = self.exact_range
        return nearest((high - low) / 2)

    def _centre(self, x: np.ndarray) -> np.ndarray:
        return x + self._ahead(x)

    def _ahead(self, x: np.ndarray) -> np.ndarray:
        """How far the window's middle is above x: on the other side of x than the range's, by which means are the inputs."""
        return float(self.exact_floor_mass / (1 - self.exact_floor_mass)) * self._beyond(x)

    def _beyond(self, x: np.ndarray) -> np.ndarray:
        """How far x is above the range's middle, which may be no float; differences of floats near each other are exact."""
        alpha, beta = self._line
        near, far = x - self.domain.lower, self.domain.upper - x
        return near / 2 - far / 2 + nearest(self._exact_half * alpha / beta)

    def _offset(self, x: np.ndarray) -> np.ndarray:
        """The window's middle at input x, where the range is [-1, 1]."""
        alpha, beta = (float(v) for v in self._line)
        return alpha + beta * ((x - self.domain.lower) - (self.domain.upper - x)) / float(2 * self._exact_half)

    def _sent(self, whole: bool = False) -> Lattice:
        """The lattice of the outputs; the ends of the range are rounded outwards."""
        low, high = self.exact_range
        lattice = Lattice.between(low, high, whole)
        return replace(lattice, first=math.floor(low / lattice.step), last=math.ceil(high / lattice.step))

    @cached_property
    def _lines(self) -> list[tuple[Lattice, tuple[Fraction, Fraction], tuple[Fraction, Fraction]]]:
        """For floats and for integers: what is sent, and (offset, factor) of two lines: from what is read to the window's first
        cell, and from cells to what is sent.
        """
        slope, (low, high), found = (self.last_cell - self.first_cell) / self.domain.exact_width, self.exact_range, []
        for read in self._lattices:
            sent = self._sent(read.whole)
            start = self.first_cell + slope * (read.first * read.step - Fraction(self.domain.lower))
            unit = (high - low) / CELLS / sent.step
            found.append((sent, (start, slope * read.step), (low / sent.step + unit / 2, unit)))
        return found

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, lattice = self.on_lattice(x)
        if lattice.whole and max(map(abs, self.exact_range)) >= 2**62:
            told = (
                "at this eps and width unbiased answers lie beyond 64-bit integers; pass floats, or narrow the domain"
            )
            raise ValueError(f"x is not allowed to be integers: {told}")
        rng, (sent, starts, places) = as_rng(rng), self._lines[lattice.whole]

        def draw(part: np.ndarray) -> np.ndarray:
            from_base = coin(self.floor_coins, COINS, part.shape, rng)
            near, far = np.flatnonzero(~from_base), np.flatnonzero(from_base)
            cell = np.empty(part.shape, dtype=np.int64)
            start = dither(lattice.index(part[near]) - lattice.first, *starts, rng)
            start += self.activation.draw(self.width_cells, near.size, rng)
            cell[near] = start
            cell[far] = self.base.draw(CELLS, far.size, rng)
            return sent.sent(dither(cell, *places, rng))

        return in_blocks(draw, inputs)

    def density(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        inputs, outputs = self.domain.check(x), require.reals(y, "y")
        low, high = self.support()
        reach, half, above = self._reach, self._halfwidth, outputs - inputs
        far = self.base.height(np.clip((above + self._beyond(inputs)) / reach, -1.0, 1.0))
        near = self.activation.height((above - self._ahead(inputs)) / half)
        levels = 2 * reach * float(self.base.level()), 2 * half * float(self.activation.level())
        valid = (outputs >= low) & (outputs <= high)
        return np.where(valid, self._mix(far / levels[0], near / levels[1]), 0.0)

    def cumulative(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        inputs, outputs = self.domain.check(x), require.reals(y, "y")
        above = outputs - inputs
        far = below(self.base, (above + self._beyond(inputs)) / self._reach)
        return np.asarray(self._mix(far, below(self.activation, (above - self._ahead(inputs)) / self._halfwidth)))

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        sent = self._sent()
        return nearest(sent.first * sent.step), nearest(sent.last * sent.step)

    def mean(self, x: ArrayLike) -> np.ndarray:
        """The number that is read for x."""
        lattice = self._lattices[0]
        return lattice.sent(lattice.index(self.domain.check(x)))

    def variance(self, x: ArrayLike) -> np.ndarray:
        (low, high), mass, w = self.exact_range, self.exact_floor_mass, self.exact_window
        still = float(mass) * float(self.base.spread()) + float((1 - mass) * w * w) * float(self.activation.spread())
        moved = float(mass * (1 - mass)) * self._offset(self.domain.check(x)) ** 2
        with np.errstate(over="ignore"):
            return np.square(np.float64((high - low) / 2)) * (still + moved)

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        inputs, law = self.domain.check(x), self._loss(loss)
        if law.exponent == 2:
            return self.variance(inputs)
        if law.form != "distance" or not all(isinstance(shape, Rectangle | Steps) for shape in self.shapes):
            return super().expected_loss(inputs, law)
        far = mean_loss(self.base, -self._beyond(inputs), self._reach, law)
        near = mean_loss(self.activation, self._ahead(inputs), self._halfwidth, law)
        return self._mix(far, near)

    def worst_input(self, loss: LossLike = "squared") -> float:
        law = self._loss(loss)
        if law.exponent != 2:
            return float(super().worst_input(law))
        return self.domain.upper if self._line[0] >= 0 else self.domain.lower

    def enclose(self, objective: Objective) -> tuple[float, float]:
        if not isinstance(objective, WorstCase | At) or objective.loss.exponent != 2:
            return super().enclose(objective)
        lattice, v = Lattice.between(self.domain.lower, self.domain.upper), self._sent().step
        if isinstance(objective, At):
            read = int(lattice.index(np.asarray(objective.x))) * lattice.step
            off = abs(read - Fraction(objective.x))  # from an input to what is read
            least = most = self._moved(read)
        else:  # a parabola in x: largest at an end, which may be read as a number inside
            off = max(lattice.step / 2, lattice.slack(self.domain.lower, self.domain.upper))
            least = max(self._moved(k * lattice.step) for k in (lattice.first, lattice.last))
            most = max(self._moved(Fraction(end)) for end in (self.domain.lower, self.domain.upper))
        mass, w = self.exact_floor_mass, self.exact_window
        low, high = self.exact_range
        cell = (high - low) / CELLS
        with ctx.workprec(enclosures.PRECISION):

            def value(far: Fraction, near: Fraction, moved: Fraction) -> arb:
                """The variance of cells whose second moments are by so much above the shapes' own."""
                still = enclosures.ball(mass) * (self.base.spread() + enclosures.ball(far)).max(arb(0))
                still += enclosures.ball((1 - mass) * w * w) * (self.activation.spread() + enclosures.ball(near)).max(
                    arb(0)
                )
                return enclosures.ball((high - low) / 2) ** 2 * (still + enclosures.ball(mass * (1 - mass) * moved))

            above = value(self.base.excess(CELLS), self.activation.excess(self.width_cells), most)
            # Two roundings at random, which may add nothing, and the reading.
            above += enclosures.ball((1 - mass) * cell**2 / 4 + v**2 / 4 + off**2)
            below = value(-_lack(CELLS), -_lack(self.width_cells), least)
            return enclosures.round_down(below), enclosures.round_up(above)

    def _moved(self, x: Fraction) -> Fraction:
        """The square of where the window's middle is at input x, where the range is [-1, 1]."""
        alpha, beta = self._line
        return (alpha + beta * (x - self._exact_middle) / self._exact_half) ** 2

    def satisfies(self, privacy: Privacy) -> bool | None:
        """As for every mechanism, but False only for two rectangles: elsewhere `exact_ratio` may not be attained, because the
        window's peak need not meet the base's least density, nor an input whose window leaves that output out.
        """
        answer = super().satisfies(privacy)
        tight = isinstance(self.activation, Rectangle) and isinstance(self.base, Rectangle)
        return None if answer is False and not tight else answer

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        if not isinstance(privacy, LDP):
            return super().check_privacy(privacy)
        low, high = self.exact_range
        inside = 0 <= self.first_cell < self.last_cell <= CELLS - self.width_cells
        told = f"the window stays within the range [{float(low):.10g}, {float(high):.10g}] of the base"
        return [privacy.check(self.exact_ratio), Check("range", inside, told)]

    def check_unbiased(self) -> Check:
        """The mean at both ends of the domain, in exact rationals; it is affine between them."""
        (low, high), (alpha, beta), mass = self.exact_range, self._line, self.exact_floor_mass
        missed = []
        for x, sign in ((self.domain.lower, -1), (self.domain.upper, 1)):
            centre = (low + high) / 2 + (high - low) / 2 * (alpha + sign * beta)
            missed.append(mass * (low + high) / 2 + (1 - mass) * centre - Fraction(x))
        step = float(Lattice.between(self.domain.lower, self.domain.upper).step)
        told = (
            f"E[Y | x] - x at the ends of the domain is {missed[0]} and {missed[1]} (exact rationals, affine between), for the "
            f"numbers sent and every multiple x of {step!r}; other inputs are read as the nearest one"
        )
        return Check("unbiased", not any(missed), told)

    def __repr__(self) -> str:
        name = f"CompositeMechanism {self.activation}{base_name(self.base)} on {self.domain}"
        sizes = f"window {2 * self._halfwidth:.6g}, base mass {self.floor_mass:.6g}; eps = {self._told()}"
        return f"{name}: outputs in {span(*self.support())}, {sizes}"


def _lack(cells: int) -> Fraction:
    """A rational not below what the second moment of the middles of the cells as drawn is less than a shape's spread.

    Spread evenly in its cell a point has 1/(3 n^2) more; else the midpoint rule is as wrong to this side as `Shape.excess` says.
    """
    return Fraction(16, cells**2) + Fraction(1, 2**58)


def mean_loss(shape: Shape, centre: np.ndarray, half: float, law: DistanceLoss) -> np.ndarray:
    """E L(|centre + half U|) for U from the density of a rectangle or of steps."""
    heights = shape._array if isinstance(shape, Steps) else np.ones(1)
    ends = pairwise(centre + half * edge for edge in np.linspace(-1, 1, heights.size + 1))
    return sum(h * law.between(*pair) for h, pair in zip(heights, ends, strict=True)) / heights.sum()

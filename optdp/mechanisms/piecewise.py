"""Piecewise mechanisms: a uniform floor over the domain and a window of higher density that follows the input."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from optdp.exact import Check, Log, Number, Seed, Within, as_rng, coin, either, enclosures, in_blocks, require
from optdp.exact.lattice import Lattice
from optdp.mechanisms.base import Mechanism
from optdp.problem import LDP, Average, Circle, DomainLike, Interval, LossLike, Objective, Privacy, WorstCase, as_domain

#: Window widths are multiples of 2^-50 of the range of the outputs.
CELLS = 2**50
#: The mass under the floor is a multiple of 2^-124: a coin tossed with a 62-bit integer, and another one on a tie.
COINS = 2**124
#: Numbers of a domain that is so coarse that what rounding adds to its losses is more than digits.
FEW = 2**10

Placement = Literal["centred", "linear"]


def least_floor(eps: Number, cells: int) -> int:
    """The least floor mass, in coins, with which a window of so many cells has a likelihood ratio of at most e^eps."""
    # mass >= 1 / (1 + (E - 1) w) makes the ratio 1 + (1 - mass) / (mass w) at most E; a rational below E in its
    # place only raises the floor.
    mass = 1 / (1 + (enclosures.exp_below(eps) - 1) * Fraction(cells, CELLS))
    return min(math.ceil(mass * COINS), COINS)


class CellWindow(Mechanism):
    """What mechanisms share that draw from a floor with an exact coin, and else from a window of whole cells."""

    exact = True
    width_cells: int
    floor_coins: int

    @property
    def exact_window(self) -> Fraction:
        """Window width as an exact share of the range of the outputs."""
        return Fraction(self.width_cells, CELLS)

    @property
    def exact_floor_mass(self) -> Fraction:
        """Probability of ignoring the input, exactly; `floor_mass`: as a float."""
        return Fraction(self.floor_coins, COINS)

    @property
    def floor_mass(self) -> float:
        return float(self.exact_floor_mass)

    @property
    @abstractmethod
    def exact_ratio(self) -> Fraction:
        """A rational not below the largest likelihood ratio K(y|x) / K(y|x')."""

    @property
    def _exact_ratio(self) -> Fraction:
        """Window over floor, for a window that is uniform in the floor's own measure."""
        if self.width_cells == CELLS:
            return Fraction(1)
        return 1 + (1 - self.exact_floor_mass) / (self.exact_floor_mass * self.exact_window)

    def guarantee(self) -> LDP:
        return LDP(Log(self.exact_ratio))

    def on_lattice(self, x: ArrayLike) -> tuple[np.ndarray, Lattice]:
        """(the inputs, the lattice that they are read on).

        Integers on a domain so far from 0 that floats are coarser than they are read, and answered, as integers.
        """
        domain: Any = self.domain
        raw = require.array(x)
        if raw.dtype.kind not in "iu" or self._lattices[0].step <= 1:
            return domain.check(x), self._lattices[0]
        return domain.check_integers(raw), self._lattices[1]

    @cached_property
    def _lattices(self) -> tuple[Lattice, Lattice]:
        """Of floats, and of integers."""
        domain: Any = self.domain
        return Lattice.between(domain.lower, domain.upper), Lattice.between(domain.lower, domain.upper, whole=True)

    def _mix(self, far: Any, near: Any) -> Any:
        return self.floor_mass * far + (1 - self.floor_mass) * near


@dataclass(frozen=True, repr=False)
class PiecewiseMechanism(CellWindow):
    """With probability `floor_mass` an output uniform over the domain, otherwise uniform over a window near the input.

    The density is therefore `peak` inside the window and `floor` outside it: the three-piece mechanism of OGPM
    and, moved to the domain by an affine map, PM, SW and PTT.

    **Arguments:**

    - `domain`: inputs and outputs both live here.
    - `width_cells`: window width in cells, a whole number in [1, 2^50]; `width_cells / 2^50` of the domain.
    - `floor_coins`: the mass under the floor times 2^124, a whole number in [1, 2^124].
    - `placement`: "centred": the window is [x - w/2, x + w/2], pushed inside at the ends of an interval (OGPM);
      "linear": its position moves linearly with x, from one end to the other (PM, SW, PTT).

    Use `PiecewiseMechanism.private(eps, width, ...)` to build one from real numbers.

    **Exactness.** Outputs are uniform over the numbers of a lattice, in the domain and in the window: multiples of one power of
    two that are floats, each drawn with integers alone. Inputs are read as the nearest number of the lattice, which is as fine
    as floats are at the larger end of the domain (`optdp.exact.lattice`); on a domain whose floats are coarser than integers
    an array of integers is answered by integers. The window holds at least its share of the numbers, so that the likelihood
    ratio of what is sent is at most `exact_ratio`, and `enclose` is about the numbers that are sent.
    """

    domain: Interval | Circle
    width_cells: Annotated[int, Within(1, CELLS)]
    floor_coins: Annotated[int, Within(1, COINS)]
    placement: Placement = "centred"

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", as_domain(self.domain))
        super().__post_init__()
        if isinstance(self.domain, Circle) and self.placement != "centred":
            raise ValueError(f"placement = {self.placement!r} is not allowed: on a circle it must be 'centred'")

    @classmethod
    def private(
        cls, eps: Number, width: float | Fraction, domain: DomainLike = (0.0, 1.0), placement: Placement = "centred"
    ) -> PiecewiseMechanism:
        """The eps-LDP mechanism with a window of `width` (a fraction of the domain, in (0, 1]) and the least floor.

        The width is rounded to 2^-50, the floor up to 2^-124, so that the likelihood ratio is a rational at most e^eps:
        privacy holds exactly.
        """
        eps = require.exact_epsilon(eps)
        share = Fraction(require.real("width", width, low=0.0, high=1.0, open_low=True))
        cells = min(max(round(share * CELLS), 1), CELLS)
        return cls(as_domain(domain), cells, least_floor(eps, cells), placement)

    @property
    def exact_ratio(self) -> Fraction:
        """The largest likelihood ratio K(y|x) / K(y|x'), exactly: peak over floor."""
        return self._exact_ratio

    @property
    def window(self) -> float:
        """Window width, in units of the domain."""
        return float(self.exact_window * self.domain.exact_width)

    @property
    def floor(self) -> float:
        """Density outside the window, rounded up."""
        exact = Fraction(1) if self.width_cells == CELLS else self.exact_floor_mass
        return enclosures.round_up(exact / self.domain.exact_width)

    @property
    def peak(self) -> float:
        """Density inside the window, rounded down, so that peak / floor in floats keeps the promise too."""
        mass = self.exact_floor_mass
        return enclosures.round_down((mass + (1 - mass) / self.exact_window) / self.domain.exact_width)

    def _numbers(self, lattice: Lattice) -> int:
        """How many numbers of the lattice are in the window: no smaller a share than the window's."""
        return -(-self.width_cells * lattice.count // CELLS)

    def _slope(self, lattice: Lattice) -> float:
        """How many numbers a window that is placed linearly moves on when the input moves on by one."""
        return (lattice.count - self._numbers(lattice)) / max(lattice.count - 1, 1)

    def tables(self) -> tuple[Lattice, int, float | None]:
        """What `randomize` computes with: (lattice, numbers in the window, slope of its start; None where it is centred)."""
        lattice = Lattice.between(self.domain.lower, self.domain.upper)
        return lattice, self._numbers(lattice), self._slope(lattice) if self.placement == "linear" else None

    def _first(self, at: np.ndarray, lattice: Lattice) -> np.ndarray:
        """Position of the window's first number, from 0 on (on a circle possibly below), for inputs at these positions.

        It always holds the input.
        """
        near, last = np.asarray(at - lattice.first), lattice.count - self._numbers(lattice)
        if self.placement == "linear":
            start = np.asarray(near * self._slope(lattice)).astype(np.int64)
            np.maximum(start, np.maximum(near + 1 - self._numbers(lattice), 0), out=start)
            return np.minimum(start, np.minimum(near, last), out=start)
        near -= self._numbers(lattice) // 2
        return near if isinstance(self.domain, Circle) else np.minimum(np.maximum(near, 0, out=near), last, out=near)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, lattice = self.on_lattice(x)
        if lattice.count >= 2**63:
            told = "64-bit integers do not count those of the domain; pass floats, or narrow the domain"
            raise ValueError(f"x is not allowed to be integers: {told}")
        rng, window, around = as_rng(rng), self._numbers(lattice), isinstance(self.domain, Circle)

        def draw(part: np.ndarray) -> np.ndarray:
            place = rng.integers(0, lattice.count, size=part.shape)
            from_floor = coin(self.floor_coins, COINS, part.shape, rng)
            near = self._first(lattice.index(part), lattice)
            near += rng.integers(0, window, size=part.shape)
            sent = either(from_floor, place, near)
            if around:
                sent %= lattice.count
            sent += lattice.first
            return lattice.sent(sent)

        return in_blocks(draw, inputs)

    def _window_start(self, x: np.ndarray) -> np.ndarray:
        """How far the window starts above the domain's lower end: places themselves may be rounded by more than that."""
        near, span = x - self.domain.lower, self.domain.width
        if self.placement == "linear":
            return near * (1 - self.window / span)
        start = near - self.window / 2
        return start if isinstance(self.domain, Circle) else np.clip(start, 0.0, span - self.window)

    def density(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        inputs, outputs = self.domain.check(x), require.reals(y, "y")
        offset = outputs - self.domain.lower - self._window_start(inputs)
        if isinstance(self.domain, Circle):
            offset = np.mod(offset, self.domain.period)
        inside = (offset >= 0) & (offset <= self.window)
        valid = (outputs >= self.domain.lower) & (outputs <= self.domain.upper)
        return np.where(valid, np.where(inside, self.peak, self.floor), 0.0)

    def cumulative(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        span, start = self.domain.width, self._window_start(self.domain.check(x))
        outputs = np.clip(require.reals(y, "y") - self.domain.lower, 0.0, span)

        def below(at: Any) -> np.ndarray:
            """The share of the window below a place."""
            return np.clip((at - start) / self.window, 0.0, 1.0)

        turns = (-span, 0.0, span) if isinstance(self.domain, Circle) else (0.0,)
        near = sum((below(outputs + turn) - below(turn) for turn in turns), np.zeros(()))
        return np.asarray(self._mix(outputs / span, near))

    def mean(self, x: ArrayLike) -> np.ndarray:
        inputs = self.domain.check(x)
        if isinstance(self.domain, Circle):
            return inputs
        return inputs + self._bias(inputs)

    def _bias(self, inputs: np.ndarray) -> np.ndarray:
        near = inputs - self.domain.lower
        return np.asarray(self._mix(self.domain.width / 2 - near, self._window_start(inputs) + self.window / 2 - near))

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        inputs, law = self.domain.check(x), self._loss(loss)
        if law.form != "distance":
            return super().expected_loss(inputs, law)
        if isinstance(self.domain, Circle):
            half, reach = self.window / 2, self.domain.period / 2
            return np.full(inputs.shape, self._mix(law.mean(reach), law.mean(half)))
        low, high, span, window = inputs - self.domain.lower, self.domain.upper - inputs, self.domain.width, self.window
        before = np.clip(low - self._window_start(inputs), 0.0, window)  # the window contains the input
        after = window - before
        far = low / span * law.mean(low) + high / span * law.mean(
            high
        )  # integrals, and sums of products, may underflow
        return self._mix(far, before / window * law.mean(before) + after / window * law.mean(after))

    def worst_input(self, loss: LossLike = "abs") -> float:
        """The lower end of the domain, for every loss that grows with the distance: no input is farther from its outputs.

        The window contains the input, which cuts it into parts of lengths u and v. Its share of the loss is I(u) + I(v)
        with I(d) = int_0^d L, at most I(u + v) because I is convex with I(0) = 0; the same holds for the floor.
        """
        law = self._loss(loss)
        return self.domain.lower if law.monotone else float(super().worst_input(law))

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(low, high) proven to contain the worst-case expected loss (on a circle: the average one too), by balls.

        For the numbers that are sent. Of n numbers with distance v that hold the input, the distances from it are at most
        0, v, ..., (n - 1) v, if the input is on the lattice: their mean loss is at most I(n v)/(n v), I the integral of L,
        which is convex. `_mean` says what is added where it is not.
        """
        averaged = isinstance(objective, Average) and objective.prior == "uniform" and isinstance(self.domain, Circle)
        if not (isinstance(objective, WorstCase) or averaged) or not objective.loss.monotone:  # type: ignore[attr-defined]
            return super().enclose(objective)
        law, lattice = self._loss(objective.loss), Lattice.between(self.domain.lower, self.domain.upper)  # type: ignore[attr-defined]
        with ctx.workprec(enclosures.PRECISION):
            p = enclosures.ball(self.exact_floor_mass)
            value = p * self._mean(law, lattice, lattice.count)
            value += (1 - p) * self._mean(law, lattice, self._numbers(lattice))
            high = enclosures.round_up(value)
            if lattice.count < FEW:
                # What is added may be more than there is to lose: the loss of the largest distance is at most the mean of those
                # of somewhat larger ones.
                reach = Fraction(self.domain.exact_reach)
                ends = [law.integral_ball(enclosures.ball(d)) for d in (reach, reach * (1 + Fraction(1, 2**12)))]
                high = min(high, enclosures.round_up((ends[1] - ends[0]) / enclosures.ball(reach / 2**12)))
            if law.polynomials is not None and law.exact(self.domain.exact_reach) == 0:  # what is added lies beyond
                high = 0.0
            return min(max(enclosures.round_down(value), 0.0), high), high

    def _mean(self, law: Any, lattice: Lattice, n: int) -> arb:
        """An enclosure of the mean loss of n numbers of the lattice around the worst input."""
        v, domain = lattice.step, self.domain

        def integral(d: Fraction) -> Any:
            return law.integral_ball(enclosures.ball(d)) if d > 0 else arb(0)

        if isinstance(domain, Circle):
            # The seam, and an input between two numbers, each move all numbers on one side by this at most.
            off = max(domain.exact_width - lattice.count * v, Fraction(0)) + v
            half = n // 2
            above = integral((n - half) * v + off) - integral(off)
            above += integral((half + 1) * v + off) - integral(v + off) if half else 0
            below = integral((n - half - 1) * v - off) + integral((half - 1) * v - off)
        else:
            # An input beyond the last number is that much further from all. Between two numbers one is nearer; the others are
            # further by t < v: the sum grows by less than 2 t L(2v) and shrinks by t L((n - 2) v), times 1/v.
            off = lattice.slack(domain.lower, domain.upper)
            if self.placement == "linear":  # its window may end at the number next to an input inside the domain
                off = max(off, v / 2)
            above = integral(n * v + off) - integral(off)
            near = (integral(3 * v) - integral(2 * v)) * 2
            if not (integral((n - 2) * v) - integral((n - 3) * v)) >= near:
                above = above + near
            if n <= 256:  # every distance is at most half a step more than from the nearest number
                ends = ((k * v - v / 2 + off, k * v + off) for k in range(1, n + 1))
                above = above.min(sum(((integral(b) - integral(a)) * 2 for a, b in ends), arb(0)))
            below = integral((n - 1) * v)
        return below.union(above) / enclosures.ball(n * v)

    @property
    def pieces(self) -> int:  # type: ignore[override]
        """Floor, window, floor (on a circle: window and floor); one where the window is the whole domain."""
        return 1 if self.width_cells == CELLS else 2 if isinstance(self.domain, Circle) else 3

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        if not isinstance(privacy, LDP):
            return super().check_privacy(privacy)
        mass, window = self.exact_floor_mass, self.exact_window
        floor = mass if self.width_cells < CELLS else Fraction(1)
        total = floor * (1 - window) + (mass + (1 - mass) / window) * window
        inside = 0 < window <= 1 and 0 < mass <= 1
        told = f"the density integrates to {total} in exact rationals"
        return [privacy.check(self.exact_ratio), Check("mass", total == 1 and inside, told)]

    def _kinks(self) -> list[float]:
        if self.placement == "linear" or isinstance(self.domain, Circle):
            return []
        return [self.domain.lower + self.window / 2, self.domain.upper - self.window / 2]

    def __repr__(self) -> str:
        window = f"a {self.placement} window of width {self.window:.6g}, {self.floor:.6g} elsewhere"
        return f"PiecewiseMechanism on {self.domain}: density {self.peak:.6g} in {window}; eps = {self._told()}"

"""Piecewise mechanisms: a uniform floor over the domain and a window of higher density that follows the input."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal

import numpy as np
from flint import ctx
from numpy.typing import ArrayLike

from optdp.exact import Check, Log, Number, Seed, Within, as_rng, coin, enclosures, require
from optdp.mechanisms.base import Mechanism
from optdp.problem import LDP, Average, Circle, DomainLike, Interval, LossLike, Objective, Privacy, WorstCase, as_domain

#: Outputs are midpoints of 2^50 equal cells of the domain, so that sampling is integer arithmetic from end to end.
CELLS = 2**50
#: The mass under the floor is a multiple of 2^-124: a coin tossed with a 62-bit integer, and another one on a tie.
COINS = 2**124

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

    **Exactness.** Both parameters are exact dyadic rationals, so that masses and likelihood ratios are exact, and
    `randomize` draws exactly from this distribution with integers alone, then names the cell by its midpoint. Which
    floats come out does not depend on the input beyond the stated probabilities. Against the density on the continuum outputs
    are off by at most 2^-51 of the width, and inputs are read to the same precision.
    """

    domain: Interval | Circle
    width_cells: Annotated[int, Within(1, CELLS)]
    floor_coins: Annotated[int, Within(1, COINS)]
    placement: Placement = "centred"

    def __post_init__(self) -> None:
        object.__setattr__(self, "domain", as_domain(self.domain))
        require.integer("width_cells", self.width_cells, low=1, high=CELLS)
        require.integer("floor_coins", self.floor_coins, low=1, high=COINS)
        require.choice("placement", self.placement, ("centred", "linear"))
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

    def _first_cell(self, x: np.ndarray) -> np.ndarray:
        """Index of the first cell of the window (on a circle possibly negative)."""
        share = (x - self.domain.lower) / self.domain.width
        if self.placement == "linear":
            return np.minimum((share * (CELLS - self.width_cells)).astype(np.int64), CELLS - self.width_cells)
        first = (share * CELLS).astype(np.int64) - self.width_cells // 2
        return first if isinstance(self.domain, Circle) else np.clip(first, 0, CELLS - self.width_cells)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng = self.domain.check(x), as_rng(rng)
        cell = rng.integers(0, CELLS, size=inputs.shape)
        from_floor = coin(self.floor_coins, COINS, inputs.shape, rng)
        near = self._first_cell(inputs) + rng.integers(0, self.width_cells, size=inputs.shape)
        cell = np.where(from_floor, cell, near)
        if isinstance(self.domain, Circle):
            cell &= CELLS - 1  # modulo, CELLS being a power of two
        return self.domain.lower + (cell + 0.5) * (self.domain.width / CELLS)

    def _window_start(self, x: np.ndarray) -> np.ndarray:
        a, span = self.domain.lower, self.domain.width
        if self.placement == "linear":
            return a + (x - a) * (1 - self.window / span)
        start = x - self.window / 2
        return start if isinstance(self.domain, Circle) else np.clip(start, a, a + (span - self.window))

    def density(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        inputs, outputs = self.domain.check(x), np.asarray(y, dtype=float)
        offset = outputs - self._window_start(inputs)
        if isinstance(self.domain, Circle):
            offset = np.mod(offset, self.domain.period)
        inside = (offset >= 0) & (offset <= self.window)
        valid = (outputs >= self.domain.lower) & (outputs <= self.domain.upper)
        return np.where(valid, np.where(inside, self.peak, self.floor), 0.0)

    def mean(self, x: ArrayLike) -> np.ndarray:
        inputs = self.domain.check(x)
        if isinstance(self.domain, Circle):
            return inputs
        middle = (self.domain.lower + self.domain.upper) / 2
        return self._mix(middle, self._window_start(inputs) + self.window / 2)

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        inputs, law = self.domain.check(x), self._loss(loss)
        if law.form != "distance":
            return super().expected_loss(inputs, law)
        if isinstance(self.domain, Circle):
            half, reach = self.window / 2, self.domain.period / 2
            return np.full(inputs.shape, self._mix(law.integral(reach) / reach, law.integral(half) / half))
        everywhere = law.integral(inputs - self.domain.lower) + law.integral(self.domain.upper - inputs)
        before = inputs - self._window_start(inputs)  # >= 0: the window contains the input
        near = law.integral(np.maximum(before, 0)) + law.integral(np.maximum(self.window - before, 0))
        return self._mix(everywhere / self.domain.width, near / self.window)

    def worst_input(self, loss: LossLike = "abs") -> float:
        """The lower end of the domain, for every loss that grows with the distance: no input is farther from its outputs.

        The window contains the input, which cuts it into parts of lengths u and v. Its share of the loss is I(u) + I(v)
        with I(d) = int_0^d L, at most I(u + v) because I is convex with I(0) = 0; the same holds for the floor.
        """
        law = self._loss(loss)
        return self.domain.lower if law.monotone else float(super().worst_input(law))

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(low, high) proven to contain the worst-case expected loss (on a circle: the average one too), by balls.

        At the worst input distances are uniform over [0, reach] under the floor and over [0, w reach] in the window.
        """
        averaged = isinstance(objective, Average) and objective.prior == "uniform" and isinstance(self.domain, Circle)
        if not (isinstance(objective, WorstCase) or averaged) or not objective.loss.monotone:  # type: ignore[attr-defined]
            return super().enclose(objective)
        law = self._loss(objective.loss)  # type: ignore[attr-defined]
        mass, reach = self.exact_floor_mass, self.domain.exact_reach
        with ctx.workprec(enclosures.PRECISION):
            p = enclosures.ball(mass)
            value = p * law.mean_ball(reach) + (1 - p) * law.mean_ball(self.exact_window * reach)
            return enclosures.round_down(value), enclosures.round_up(value)

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
        return f"PiecewiseMechanism on {self.domain}: density {self.peak:.6g} in {window}; eps = {self.privacy():.6g}"

"""A bound for all mechanisms on an interval and a loss L(x, y) of the pair, from its values and from how little it changes.

For weights lam_i >= 0 of inputs x_i and thresholds t_i let r_i(y) = L(x_i, y) - t_i. As in `optdp.certificates.plane`, every
eps-LDP mechanism has

    sum_i lam_i E[L | x_i] >= sum_i lam_i t_i + min(0, min_y g(y)),      g(y) = sum_i lam_i phi(r_i(y)),
    phi(t) = t + (E - 1) min(t, 0).

**All outputs.** phi does not fall, and in a cell of outputs around c, of half the width h, L(x_i, y) >= max(0, L(x_i, c) - b h)
if L changes by at most b per unit of the output. Cells are halved where g is not proven to be >= 0.

**All inputs.** The worst case is at least the mean over the x_i. For a prior with a density its cells are the x_i, with their
masses: the mean of the rows of a cell's inputs is a row for its centre, and if L changes by at most a per unit of the input, that
is wrong by at most a times the mean distance from the centres.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from optdp.certificates.base import Bound, Certificate
from optdp.exact import Within, enclosures, require, work
from optdp.problem.domains import Interval
from optdp.problem.objectives import Average, WorstCase
from optdp.problem.priors import Prior
from optdp.problem.privacy import LDP

if TYPE_CHECKING:
    from optdp.problem.problem import Problem

#: Most points, and most cells of a prior's density; the largest weight and threshold.
POINTS, CELLS, LARGEST = 4096, 2**14, 2.0**500
#: Cells of outputs are halved until what is left is this share of the bound, or so many losses have been computed.
CLOSE, PAIRS = 2.0**-15, 2**26
#: Losses that are computed at once, and cells of outputs to begin with.
BLOCK, FIRST = 2**16, 256
#: A cell takes as long as so many losses, beside its own.
CELL = 64

Numbers = Annotated[tuple[float, ...], Within(0.0, LARGEST, most=POINTS)]


@dataclass(frozen=True)
class PairCertificate(Certificate):
    """Inputs with weights and thresholds that bound every mechanism on an interval with the guarantee eps-LDP.

    **Arguments:** `points`: increasing inputs; `weights`: one >= 0 for each, or none where the bound is about an average: then
    the weights are the problem's own prior; `thresholds`: one for each point, interpolated for inputs between them; `cells`: how
    many a prior's density is divided into, 0 for all others.

    **Proves** bounds for the worst case and for averages of losses that declare by how much they change.
    """

    tag = "pair"
    points: Annotated[tuple[float, ...], Within(least=1, most=POINTS)]
    weights: Numbers
    thresholds: Numbers
    cells: Annotated[int, Within(0, CELLS)] = 0

    def bound(self, problem: Problem) -> Bound:
        dual = Dual.of(self, problem)
        with np.errstate(over="ignore", invalid="ignore"):
            short = dual.shortfall(CLOSE * float(dual.worth))
        if not math.isfinite(short):
            self._refuse("it overflows for this loss")
        value = enclosures.round_down((dual.worth - Fraction(short)) / dual.total - dual.lost)
        size = f"{dual.inputs.size} inputs, all outputs, floats with error bounds"
        return Bound(max(0.0, value), f"pair dual, {size}", problem.loss.assumptions)

    def _check(self, problem: Problem) -> None:
        """**Raises** Refusal where the multipliers are not sound, or the problem is of another kind."""
        privacy, objective = problem.privacy, problem.objective
        if not isinstance(privacy, LDP) or not enclosures.at_most(privacy.eps, require.MAX_EPS):
            self._refuse("it is for local differential privacy with eps at most 30")
        if not isinstance(problem.domain, Interval) or problem.outputs is None:
            self._refuse("it is for intervals, and outputs between limits")
        if not isinstance(objective, WorstCase | Average) or objective.loss.rates is None:
            self._refuse("it is for the worst case or the average of a loss that declares by how much it changes")
        count = len(self.points)
        if count != len(self.thresholds):
            self._refuse("each of its points must have a threshold")
        low, high = problem.domain.lower, problem.domain.upper
        inside = all(low <= x <= high for x in self.points)
        if not inside or any(a >= b for a, b in zip(self.points, self.points[1:], strict=False)):
            self._refuse(f"its points must increase, and lie in {problem.domain}")
        if isinstance(objective, Average):
            if self.weights:
                self._refuse("it is for a worst case: for an average, the problem's own prior gives the weights")
            if (self.cells > 0) == isinstance(objective.prior, Prior):
                self._refuse(f"a prior with a density is divided into 1 to {CELLS} cells, one of points into none")
        elif len(self.weights) != count or not sum(self.weights) > 0:
            self._refuse("a worst case needs a weight for each point, not all of them 0")


@dataclass(frozen=True)
class Dual:
    """The dual of a certificate for a problem: sum_i lam_i t_i + min(0, g), over the sum of the weights.

    `inputs`, `weights`, `thresholds`: of each input. The weights lam_i are these floats, and of order 1: for a worst case in
    units in which they are, for an average at most the prior's, as losses are >= 0. `worth`: the exact sum of lam_i t_i;
    `total`: that of the weights, or 1 for an average; `lost`: what distances from the centres of cells cost; `more`: a float
    >= E - 1; `span`: the limits of outputs.
    """

    loss: Any
    inputs: np.ndarray
    weights: np.ndarray
    thresholds: np.ndarray
    worth: Fraction
    total: Fraction
    lost: Fraction
    more: float
    span: tuple[float, float]

    @classmethod
    def of(cls, certificate: PairCertificate, problem: Problem) -> Dual:
        """**Raises** Refusal."""
        certificate._check(problem)
        objective: Any = problem.objective
        points, thresholds = np.array(certificate.points), np.array(certificate.thresholds)
        lost = Fraction(0)
        if isinstance(objective, WorstCase):
            inputs, weights = points, of_order_one(certificate.weights)
        else:
            if isinstance(objective.prior, Prior):
                inputs = np.array(objective.prior.categories, dtype=float)
                place = np.argsort(inputs)
                inputs, exact = inputs[place], objective.prior.exact
                weights = np.array([enclosures.round_down(exact[i]) for i in place.tolist()])
            else:
                edges = np.linspace(problem.domain.lower, problem.domain.upper, certificate.cells + 1)
                inputs = edges[:-1] / 2 + edges[1:] / 2
                low, width = problem.domain.lower, problem.domain.width
                ends, centres = (np.clip((x - low) / width, 0.0, 1.0) for x in (edges, inputs))
                ends[0], ends[-1] = 0.0, 1.0
                masses, apart, _ = objective.cells(problem.domain, ends, centres)
                weights = np.maximum(masses - 2.0**-50, 0.0)  # masses are within 2^-51
                lost = Fraction(objective.loss.rates[0]) * problem.domain.exact_width * Fraction(apart)
            # Any thresholds will do, also where floats do not suffice for the line between two of them.
            thresholds = np.clip(np.nan_to_num(np.interp(inputs, points, thresholds)), 0.0, LARGEST)
        work.count(4.0 * inputs.size)
        lam = list(map(Fraction, weights.tolist()))
        worth = sum((w * Fraction(t) for w, t in zip(lam, thresholds.tolist(), strict=True)), Fraction(0))
        total = sum(lam, Fraction(0)) if isinstance(objective, WorstCase) else Fraction(1)
        more = enclosures.round_up(enclosures.exp_above(problem.eps) - 1)  # type: ignore[arg-type]
        return cls(objective.loss, inputs, weights, thresholds, worth, total, lost, more, problem.outputs)  # type: ignore[arg-type]

    @property
    def effort(self) -> int:
        """What a cell of outputs counts: its losses, and what cells take by themselves."""
        return self.inputs.size + CELL

    def lowered(self, by: float) -> Dual:
        """With all thresholds lowered."""
        return replace(self, thresholds=np.maximum(self.thresholds - by, 0.0))

    def prices(self, centres: np.ndarray, reach: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(a number that g does not fall below in each cell, how much faster g rises than thresholds fall)."""
        step, found = max(1, BLOCK // self.inputs.size), []
        work.count(0.03 * centres.size * self.effort)
        for start in range(0, centres.size, step):
            some = slice(start, start + step)
            drop = self.loss.rates[1] * reach[some]
            losses = self.loss.table(self.inputs, centres[some])
            size = losses + drop + self.thresholds[:, None]
            reduced = np.maximum(losses - drop, 0.0) - self.thresholds[:, None]
            # What is so small that its sign is not certain counts as negative: the error below is that of the steeper side.
            steep = np.where(reduced <= 2.0**-48 * size, 1 + self.more, 1.0)
            slope = self.weights @ steep
            # Relative to the terms; and where these, or what b h falls short, are too small for floats, absolute.
            error = (self.inputs.size + 64) * 2.0**-50 * (self.weights @ (steep * size))
            error += (self.inputs.size + 1 + self.more) * enclosures.TINY
            found.append([self.weights @ (steep * reduced) - error * (1 + 2.0**-20), slope])
        both = np.concatenate(found, axis=1)
        return np.where(np.isfinite(both[0]), both[0], -np.inf), both[1]

    def first(self) -> tuple[np.ndarray, np.ndarray]:
        """(lower, upper) ends of the cells to begin with."""
        edges = np.unique(np.linspace(*self.span, FIRST + 1))
        edges[0], edges[-1] = self.span
        return edges[:-1], edges[1:]

    def shortfall(self, close: float) -> float:
        """c >= 0 with g >= -c for all outputs, proven: within about `close` of the least such number."""
        left, right = self.first()
        proven, done = 0.0, 0
        while left.size:
            centre, reach = middles(left, right)
            done += centre.size * self.effort
            price = self.prices(centre, reach)[0]
            open_ = (price < -close) & (left < centre) & (centre < right)
            if done + 2 * int(open_.sum()) * self.effort > PAIRS:
                open_[:] = False
            proven = min(proven, float(price[~open_].min(initial=0.0)))
            left, right = halves(left, centre, right, open_)
        return -proven

    def excess(self, finest: float, pairs: int) -> float:
        """By how much all thresholds are too high for cells that are halved until they are as narrow as `finest`."""
        left, right = self.first()
        done = 0
        while True:
            centre, reach = middles(left, right)
            done += centre.size * self.effort
            bad = self.prices(centre, reach)[0] < 0
            splits = bad & (left < centre) & (centre < right)
            if not bad.any() or not float((right - left)[bad].max()) > finest:
                break
            if done + 2 * int(bad.sum()) * self.effort > pairs or not splits.all(where=bad):
                break
            left, right = halves(left, centre, right, bad)
        dual, shift = self, 0.0
        centre, reach = centre[bad], reach[bad]
        for _ in range(50):
            if not centre.size:
                break
            price, slope = dual.prices(centre, reach)
            bad = price < 0
            if not bad.any():
                break
            # g is concave in the shift: Newton's steps do not go too far.
            shift += max(float((-price[bad] / slope[bad]).max()), 2.0**-50 * float(self.thresholds.max()))
            dual, centre, reach = self.lowered(shift), centre[bad], reach[bad]
        return shift


def of_order_one(weights: tuple[float, ...]) -> np.ndarray:
    """Weights over the power of two above their sum: products with them are no smaller than the other factor says.

    Weights that are too small beside others are rounded: what is proven must be about these floats.
    """
    return np.asarray(np.ldexp(np.array(weights), -math.frexp(sum(weights))[1]))


def middles(left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(centres, the largest distance from them) of cells."""
    centre = left / 2 + right / 2
    return centre, np.maximum(centre - left, right - centre) * (1 + 2.0**-50)


def halves(left: np.ndarray, centre: np.ndarray, right: np.ndarray, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(lower, upper) ends of both halves of some cells, in their order."""
    pairs = (left, centre), (centre, right)
    lower, upper = (np.stack(pair, axis=1)[which].reshape(-1) for pair in pairs)
    return lower, upper


def certify(
    problem: Problem, certificate: PairCertificate, value: float, close: float, pairs: int = PAIRS // 2
) -> PairCertificate:
    """The certificate with its thresholds lowered until no output has a negative price.

    **Arguments:** `value`: about what the bound will be; `close`: the share of it that may be lost to the width of cells.
    """
    dual = Dual.of(certificate, problem)
    rate = dual.loss.rates[1]
    width = dual.span[1] - dual.span[0]
    finest = max(2 * close * value / rate, 2 * width * dual.effort / pairs) if rate else width
    shift = rate * finest / 2
    shift += dual.lowered(shift).excess(finest, pairs)
    return replace(certificate, thresholds=tuple(np.maximum(np.array(certificate.thresholds) - shift, 0.0).tolist()))

"""A bound for all mechanisms on a rectangle of the plane: finitely many inputs with weights and thresholds.

For weights lam_i >= 0 of inputs x_i, and thresholds nu_i, let r_i(y) = L(|y - x_i|) - nu_i. A mechanism with floor m and rows K
between m and E m has

    sum_i lam_i E[L | x_i] = sum_i lam_i nu_i + sum_i lam_i int r_i K >= sum_i lam_i nu_i + int g dm,
    g(y) = sum_i lam_i phi(r_i(y)),      phi(t) = t + (E - 1) min(t, 0),

and m has mass at most 1, so that g >= -c proves sum_i lam_i nu_i - c for the sum of the weights (c >= 0). Outputs beyond the
rectangle need not be asked for: its nearest point is nearer to every input.

**All outputs.** g is sum_i lam_i r_i(y), which is convex, and (E - 1) sum_i lam_i min(r_i(y), 0), to which only inputs near y
contribute. The first lies above its tangent plane at the centre of a cell. In the second L lies above its tangent plane, and
min(t, 0) above its chord between the least and the largest value of that plane: g is bounded by an affine function, whose least
value is at a corner. What this loses falls with the square of the cell's size; where the chords lose much cells are halved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated

import numpy as np

from optdp.certificates.base import Bound, Certificate
from optdp.certificates.pair import of_order_one
from optdp.exact import Within, enclosures, work
from optdp.problem.domains import Box
from optdp.problem.objectives import WorstCase
from optdp.problem.privacy import LDP

if TYPE_CHECKING:
    from optdp.problem.problem import Problem

#: Most inputs; the largest eps; the largest weight and threshold.
INPUTS, MOST, LARGEST = 4096, 12.0, 2.0**20
#: Cells along the longer half in which the convex part is above one tangent plane: at least, of few inputs at most, and about so
#: many pairs of a cell and an input in between.
CELLS, MANY, FAR = 48, 192, 2**22
#: Cells are halved until what is left is this share of the bound, or so many pairs of a cell and a near input have been computed.
CLOSE, PAIRS = 2.0**-15, 2**25
#: At most so many cells along the longer half of a grid of outputs.
FINE = 64
#: The share of the largest weight below which inputs are left out; how often thresholds are moved, for a grid and for good.
FAINT, STEPS, MOVES = 1e-9, 20, 4
#: Pairs that are computed at once.
BLOCK = 2**20
#: Coordinates in units of the longer side, their differences and norms: floats are within this of the exact numbers, and so are
#: losses and their slopes.
ROUNDING = 2.0**-46
#: By how much more than 0 tangent planes must be for an input to be left out, in parts of 1 plus its threshold.
FINELY = 2.0**-40

Pair = Annotated[tuple[float, ...], Within(0.0, 0.5, 2, 2)]
Numbers = Annotated[tuple[float, ...], Within(0.0, LARGEST, 1, INPUTS)]


@dataclass(frozen=True)
class PlaneCertificate(Certificate):
    """Inputs with weights and thresholds, each standing for its four mirror images, that bound every mechanism on a rectangle.

    **Arguments:** `points`: shares of the two sides in [0, 1/2]; `weights`: >= 0, of the four images together; `thresholds`: in
    units of the longer side, to the power of the loss.

    **Proves** bounds for the worst case of |Y - x| and |Y - x|^2, Euclidean, over mechanisms with the guarantee eps-LDP.
    """

    tag = "plane"
    points: Annotated[tuple[Pair, ...], Within(least=1, most=INPUTS)]
    weights: Numbers
    thresholds: Numbers

    def bound(self, problem: Problem) -> Bound:
        privacy, domain, objective = problem.privacy, problem.domain, problem.objective
        if not isinstance(privacy, LDP) or not enclosures.at_most(privacy.eps, MOST):
            self._refuse(f"it is for local differential privacy with eps at most {MOST:g}")
        if not isinstance(domain, Box) or domain.dimension != 2:
            self._refuse("it is for rectangles")
        if not isinstance(objective, WorstCase) or objective.loss.exponent not in (1, 2):
            self._refuse("it is for the worst case of |Y - x| or |Y - x|^2")
        if not len(self.points) == len(self.weights) == len(self.thresholds):
            self._refuse("each point must have a weight and a threshold")
        if not all(len(p) == 2 and all(0 <= v <= 0.5 for v in p) for p in self.points):
            self._refuse("points must have two coordinates between 0 and 1/2")
        if not sum(self.weights) > 0:
            self._refuse("a worst case needs a prior with positive mass")
        dual, power = Prices.of(self, problem), int(objective.loss.exponent)
        lam, thresholds = (list(map(Fraction, part.tolist())) for part in (dual.weights, dual.thresholds))
        total = sum(lam, Fraction(0))
        worth = sum((w * t for w, t in zip(lam, thresholds, strict=True)), Fraction(0))
        unit = max(side.exact_width for side in domain.sides)
        value = (worth - Fraction(dual.shortfall(CLOSE * float(worth)))) / total * unit**power
        size = f"{len(self.points)} inputs and their mirror images"
        return Bound(
            max(0.0, enclosures.round_down(value)), f"plane dual, {size}, all outputs, floats with error bounds"
        )


@dataclass(frozen=True)
class Prices:
    """g, in units of the longer side.

    `inputs`: all images, as coordinates; `weights`, `thresholds`: one for each of them, the weights in units in which their sum
    is about 1; `more`: a float >= E - 1.
    """

    inputs: np.ndarray
    weights: np.ndarray
    thresholds: np.ndarray
    more: float
    power: int
    sides: np.ndarray

    @classmethod
    def of(cls, certificate: PlaneCertificate, problem: Problem) -> Prices:
        """Those of a certificate."""
        widths = [side.exact_width for side in problem.domain.sides]
        sides = np.array([float(w / max(widths)) for w in widths])
        shares = images(np.array(certificate.points, dtype=float))
        copies = len(shares) // len(certificate.points)
        return cls(
            shares * sides, np.tile(of_order_one(certificate.weights) / copies, copies),
            np.tile(np.array(certificate.thresholds), copies),
            enclosures.round_up(enclosures.exp_above(problem.eps) - 1), int(problem.loss.exponent), sides,  # type: ignore[arg-type]
        )  # fmt: skip

    def shortfall(self, close: float) -> float:
        """c >= 0 with g >= -c on the rectangle, proven: within about `close` of the least such number."""
        # phi is at most E times as steep as t; a sum of n terms; cells that overlap or miss each other by a rounding. What
        # underflows is smaller by far: the weights sum to about 1.
        largest = 4.0 + float(self.thresholds.max())
        share = ROUNDING + largest * (len(self.inputs) + 64) * 2.0**-50
        slack = float(self.weights.sum()) * (1 + self.more) * share * (1 + 2.0**-20)
        return slack - self.least(close)[0]

    def least(self, close: float) -> tuple[float, np.ndarray]:
        """(g is not below this number <= 0 on the rectangle, but for rounding; about where it may be so low)."""
        cells = min(max(CELLS, math.isqrt(FAR // len(self.inputs))), MANY)
        counts = np.maximum(1, np.round(cells * self.sides)).astype(int)
        half = self.sides / counts / 4
        ways = [h * (2 * np.arange(k) + 1) for h, k in zip(half, counts, strict=True)]
        centres = np.stack(np.meshgrid(*ways, indexing="ij"), axis=-1).reshape(
            -1, 2
        )  # a quarter: the rest is its image
        n = len(self.inputs)
        work.count(0.03 * len(centres) * n)
        step = max(1, BLOCK // n)
        parts = [self._plane(centres[i : i + step], half) for i in range(0, len(centres), step)]
        planes, lengths, inputs = (np.concatenate(part) for part in zip(*parts, strict=True))
        first = np.concatenate([[0], np.cumsum(lengths)])
        cell, middles = np.arange(len(centres)), centres
        least, proven, where, done = 0.0, 0.0, centres[0], 0
        while len(cell):
            sizes = first[cell + 1] - first[cell]
            work.count(0.15 * float(sizes.sum()) + 0.1 * len(cell))
            done += int(sizes.sum())
            found = np.empty((len(cell), 2))
            for some in np.array_split(np.arange(len(cell)), int(sizes.sum()) // BLOCK + 1):
                which = np.repeat(first[cell[some]] - np.cumsum(sizes[some]) + sizes[some], sizes[some])
                pairs = inputs[which + np.arange(which.size)]
                affine = planes[cell[some]]
                affine[:, 0] += (affine[:, 1:] * (middles[some] - centres[cell[some]])).sum(axis=1)
                found[some] = self._cells(middles[some], half, affine, pairs, sizes[some])
            least = min(least, float(found[:, 0].min()))
            open_ = found[:, 1] < least - close
            across = half > half.max() / 2  # the other way cells of slivers are short enough
            parts = 2 ** int(across.sum())
            if done + parts * int(sizes[open_].sum()) > PAIRS:
                open_[:] = False
            if (low := float(found[~open_, 1].min(initial=0.0))) < proven:
                proven, where = low, middles[~open_][np.argmin(found[~open_, 1])]
            half = np.where(across, half / 2, half)
            shifts = (
                np.array([(a, b) for a in (-1, 1)[: 1 + across[0]] for b in (-1, 1)[: 1 + across[1]]]) * across * half
            )
            middles = (middles[open_][:, None] + shifts).reshape(-1, 2)
            cell = np.repeat(cell[open_], parts)
        return proven, where

    def slope(self, y: np.ndarray) -> float:
        """How fast g rises with the common distance of all thresholds from what they are, at an output."""
        far, *_ = self._tangents(y, self.inputs)
        return float((1 + self.more * (far < self.thresholds)) @ self.weights)

    def excess(self) -> float:
        """By how much all thresholds are too high for the outputs of a grid: a step of Newton's method, in floats."""
        cells = max(8, min(FINE, math.isqrt(4 * BLOCK // len(self.inputs))))
        ways = [np.linspace(0, side / 2, max(2, round(cells * side)) + 1) for side in self.sides]
        grid, found = np.stack(np.meshgrid(*ways, indexing="ij"), axis=-1).reshape(-1, 2), -math.inf
        for some in np.array_split(grid, len(grid) * len(self.inputs) // BLOCK + 1):
            reduced = self._tangents(some[:, None], self.inputs)[0] - self.thresholds
            prices = (reduced + self.more * np.minimum(reduced, 0.0)) @ self.weights
            slopes = (1 + self.more * (reduced < 0)) @ self.weights
            found = max(found, float((-prices / slopes).max()))
        return found

    def _tangents(self, y: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(L, its slope across, its slope up) at outputs y for inputs x."""
        with np.errstate(under="ignore"):
            across, up = y[..., 0] - x[..., 0], y[..., 1] - x[..., 1]
            far = np.sqrt(across * across + up * up)
            if self.power == 2:
                return far * far, 2 * across, 2 * up
            # Where squares underflow, shorter than a slope: what lies as near as that is lost in the slack.
            turned = np.maximum(far, 1e-100)
            return far, across / turned, up / turned

    def _plane(self, centres: np.ndarray, half: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of cells: (value and slopes of the convex part at the centre in each row; how many inputs' r may be negative there;
        these inputs, cell by cell).
        """
        far, across, up = self._tangents(centres[:, None], self.inputs)
        reduced = far - self.thresholds
        planes = np.stack([reduced @ self.weights, across @ self.weights, up @ self.weights], axis=1)
        near = reduced - (np.abs(across) * half[0] + np.abs(up) * half[1]) <= FINELY * (1 + self.thresholds)
        return planes, near.sum(axis=1), np.nonzero(near)[1].astype(np.int32)

    def _cells(
        self, centres: np.ndarray, half: np.ndarray, planes: np.ndarray, pairs: np.ndarray, sizes: np.ndarray
    ) -> np.ndarray:
        """(about g at the centre, a lower bound on the cell) in each row; `planes`: value and slopes of what is below the convex
        part, in each row; `pairs`: so many (`sizes`) near inputs of each cell, one cell after the other.
        """
        rows = np.repeat(np.arange(len(centres)), sizes)
        far, across, up = self._tangents(centres[rows], self.inputs[pairs])
        reduced, weights = far - self.thresholds[pairs], self.more * self.weights[pairs]
        reach = np.abs(across) * half[0] + np.abs(up) * half[1]
        low, high = np.minimum(reduced - reach, 0.0), np.minimum(reduced + reach, 0.0)
        # The chord of min(t, 0) over [reduced - reach, reduced + reach]: its slope, and its value in the middle.
        steep = np.where(reduced + reach <= 0, 1.0, (high - low) / np.maximum(2 * reach, 1e-300))
        terms = (np.minimum(reduced, 0.0), (low + high) / 2, steep * across, steep * up)
        at, middle, right, rise = (np.bincount(rows, weights * term, len(centres)) for term in terms)
        tilt = np.abs(planes[:, 1] + right) * half[0] + np.abs(planes[:, 2] + rise) * half[1]
        return np.stack([planes[:, 0] + at, planes[:, 0] + middle - tilt], axis=1)


def images(shares: np.ndarray) -> np.ndarray:
    """Rows of shares of two sides, and their mirror images: four times as many rows, image by image."""
    flips = [(a, b) for a in (False, True) for b in (False, True)]
    return np.concatenate([np.where(flip, 1 - shares, shares) for flip in flips])


def certify(problem: Problem, shares: np.ndarray, weights: np.ndarray, thresholds: np.ndarray) -> PlaneCertificate:
    """These thresholds, moved in common until no output has a negative price: nearly, and then until that costs least.

    **Arguments:** `shares`: inputs in the lower quarter; `weights`: >= 0, not all 0.
    """
    keep = weights > FAINT * weights.max()
    shares, weights, thresholds = shares[keep], weights[keep] / weights[keep].sum(), thresholds[keep]

    def made(thresholds: np.ndarray) -> PlaneCertificate:
        held = np.clip(thresholds, 0.0, LARGEST).tolist()
        return PlaneCertificate(tuple(map(tuple, shares.tolist())), tuple(weights.tolist()), tuple(held))

    for _ in range(STEPS):
        step = Prices.of(made(thresholds), problem).excess()
        thresholds = thresholds - step
        if abs(step) <= CLOSE / 16 * abs(float(weights @ thresholds)):
            break
    best, proven = made(thresholds), -math.inf
    for _ in range(MOVES):
        found = made(thresholds)
        dual = Prices.of(found, problem)
        worth = float(dual.weights @ dual.thresholds)
        low, where = dual.least(CLOSE * worth)
        if worth + low > proven:
            best, proven = found, worth + low
        if low > -4 * CLOSE * worth:
            break
        thresholds = thresholds + low / dual.slope(where)
    return best

"""A bound for all mechanisms on a rectangle of the plane: finitely many inputs with weights and thresholds.

For weights lam_i >= 0 of inputs x_i, and thresholds nu_i, let r_i(y) = L(|y - x_i|) - nu_i. A mechanism with floor m and rows K
between m and E m has

    sum_i lam_i E[L | x_i] = sum_i lam_i nu_i + sum_i lam_i int r_i K >= sum_i lam_i nu_i + int g dm,
    g(y) = sum_i lam_i phi(r_i(y)),      phi(t) = t + (E - 1) min(t, 0),

and m has mass at most 1, so that g >= -c proves sum_i lam_i nu_i - c for the sum of the weights (c >= 0). Outputs beyond the
rectangle need not be asked for: its nearest point is nearer to every input.

**All outputs.** phi is concave and increasing, and L convex in y. In a cell around a centre L lies above its tangent plane
there, and phi above its chord between the least and the largest value of that plane: g is bounded by an affine function, whose
least value is at a corner. What this loses falls with the square of the cell's size; cells are halved until it is small.
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
INPUTS, MOST, LARGEST = 1024, 12.0, 2.0**20
#: Cells are halved until what is left is this share of the bound, or so many pairs of cell and input have been computed.
CLOSE, PAIRS = 2.0**-15, 2**23
#: Cells along the longer half of a grid of outputs.
FINE = 64
#: Pairs that are computed at once.
BLOCK = 2**20
#: Coordinates in units of the longer side, their differences and norms: floats are within this of the exact numbers, and so are
#: losses and their slopes.
ROUNDING = 2.0**-46

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
        counts = np.maximum(1, np.round(16 * self.sides)).astype(int)
        half = self.sides / counts / 4
        ways = [h * (2 * np.arange(k) + 1) for h, k in zip(half, counts, strict=True)]
        centres = np.stack(np.meshgrid(*ways, indexing="ij"), axis=-1).reshape(
            -1, 2
        )  # a quarter: the rest is its image
        least, proven, done, n = 0.0, 0.0, 0, len(self.inputs)
        while len(centres):
            work.count(0.2 * len(centres) * n)
            done += len(centres) * n
            step = max(1, BLOCK // n)
            found = np.concatenate([self._cells(centres[i : i + step], half) for i in range(0, len(centres), step)])
            least = min(least, float(found[:, 0].min()))
            open_ = found[:, 1] < least - close
            if done + 4 * int(open_.sum()) * n > PAIRS:
                open_[:] = False
            proven = min(proven, float(found[~open_, 1].min(initial=0.0)))
            half = half / 2
            shifts = np.array([(a, b) for a in (-1, 1) for b in (-1, 1)]) * half
            centres = (centres[open_][:, None] + shifts).reshape(-1, 2)
        # phi is at most E times as steep as t; a sum of n terms; cells that overlap or miss each other by a rounding. What
        # underflows is smaller by far: the weights sum to about 1.
        largest = 4.0 + float(self.thresholds.max())
        share = ROUNDING + largest * (n + 64) * 2.0**-50
        slack = float(self.weights.sum()) * (1 + self.more) * share * (1 + 2.0**-20)
        return -proven + slack

    def excess(self, cells: int) -> float:
        """By how much all thresholds are too high for the outputs of a grid: a step of Newton's method, in floats."""
        ways = [np.linspace(0, side / 2, max(2, round(cells * side)) + 1) for side in self.sides]
        grid, found = np.stack(np.meshgrid(*ways, indexing="ij"), axis=-1).reshape(-1, 2), -math.inf
        for some in np.array_split(grid, len(grid) * len(self.inputs) // BLOCK + 1):
            far = np.sqrt(np.square(some[:, None] - self.inputs).sum(axis=2))
            reduced = far**self.power - self.thresholds
            prices = (reduced + self.more * np.minimum(reduced, 0.0)) @ self.weights
            slopes = (1 + self.more * (reduced < 0)) @ self.weights
            found = max(found, float((-prices / slopes).max()))
        return found

    def _cells(self, centres: np.ndarray, half: np.ndarray) -> np.ndarray:
        """(g at the centre, a lower bound on the cell) in each row."""
        with np.errstate(under="ignore"):
            across, up = (centres[:, None, k] - self.inputs[:, k] for k in (0, 1))
            far = np.sqrt(across * across + up * up)
            if self.power == 1:
                # Where squares underflow, shorter than a slope: what lies as near as that is lost in the slack.
                turned = np.maximum(far, 1e-100)
                across, up, reduced = across / turned, up / turned, far - self.thresholds
            else:
                across, up, reduced = 2 * across, 2 * up, far * far - self.thresholds
        reach = np.abs(across) * half[0] + np.abs(up) * half[1]
        low, high = reduced - reach, reduced + reach
        # The chord of phi from low to high: its slope, and its value in the middle.
        below, above = low + self.more * np.minimum(low, 0.0), high + self.more * np.minimum(high, 0.0)
        crossed = (low < 0) & (high > 0)
        steep = np.where(high <= 0, 1 + self.more, 1.0)
        steep = np.where(crossed, (above - below) / np.maximum(high - low, 1e-300), steep)
        middle = (below + above) / 2 @ self.weights
        tilt = np.abs((steep * across) @ self.weights) * half[0] + np.abs((steep * up) @ self.weights) * half[1]
        at = (reduced + self.more * np.minimum(reduced, 0.0)) @ self.weights
        return np.stack([at, middle - tilt], axis=1)


def images(shares: np.ndarray) -> np.ndarray:
    """Rows of shares of two sides, and their mirror images: four times as many rows, image by image."""
    flips = [(a, b) for a in (False, True) for b in (False, True)]
    return np.concatenate([np.where(flip, 1 - shares, shares) for flip in flips])


def certify(problem: Problem, shares: np.ndarray, weights: np.ndarray, masses: np.ndarray) -> PlaneCertificate:
    """Thresholds masses/weights, moved in common until no output of a fine grid has a negative price.

    **Arguments:** `shares`: inputs in the lower quarter; `weights`, `masses`: a solver's multipliers of their losses and masses.
    """
    keep = weights > 1e-9 * weights.max()
    shares, weights, thresholds = shares[keep], weights[keep] / weights[keep].sum(), masses[keep] / weights[keep]

    def made() -> PlaneCertificate:
        held = np.clip(thresholds, 0.0, LARGEST).tolist()
        return PlaneCertificate(tuple(map(tuple, shares.tolist())), tuple(weights.tolist()), tuple(held))

    for _ in range(20):
        step = Prices.of(made(), problem).excess(FINE)
        thresholds = thresholds - step
        if abs(step) <= 1e-12:
            break
    return made()

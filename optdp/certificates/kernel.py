"""The dual of the kernel program: multipliers that bound every eps-LDP mechanism, whatever its outputs.

Inputs x_1..x_k in the domain (shares of its width: 0 is the lower end, 1 the upper), multipliers lam_i >= 0 of the loss
at x_i, nu_i of its mass, and mu_i of its mean where the mechanism must be unbiased. Put

    r_i(y) = lam_i L(|y - x_i|) - nu_i - mu_i (y - x_i),      g(y) = sum_i r_i(y) + (E - 1) sum_i min(r_i(y), 0).

An eps-LDP kernel K has a floor m(dy) = inf_x K(dy|x) with m <= K(.|x) <= E m. Its loss at the x_i, weighted by lam, is

    sum_i lam_i int L K(dy|x_i)  =  sum_i nu_i + sum_i int r_i(y) K(dy|x_i)  >=  sum_i nu_i + int g dm,

because K(dy|x_i) is at least m where r_i >= 0 and at most E m where r_i < 0. As m has mass at most 1, the worst-case
loss is at least

    ( sum_i nu_i + min(0, inf_y g(y)) ) / sum_i lam_i                                                          (*)

in units of width^q for L = d^q. What has to be proven is a lower bound on g over all outputs. Cut their range at the
inputs into cells, and bisect these. On a cell with middle m each r_i is convex (q >= 1), so it lies above its tangent
T_i at m; sum T_i + (E - 1) sum min(T_i, 0) is concave, so its least value is at one of the two ends of the cell. For
q = 1 tangents are exact and the inputs are the only cuts needed. If outputs are unbounded, all r_i must be
nonnegative and pointing up at both ends of the range: by convexity, g >= 0 beyond it.

For q = 1 and q = 2 this is integer arithmetic from end to end (a float is a dyadic rational; e^eps enters through a
rational above it); for other powers it is ball arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx

from optdp.exact import enclosures
from optdp.exact.check import Check
from optdp.problem.losses import Power, loss_from_dict

#: Cells narrower than this share of the domain are not bisected further.
FINEST = 2.0**-44
#: Multipliers are rounded to multiples of this.
GRAIN = 2.0**-62


@dataclass(frozen=True)
class KernelCertificate:
    """Multipliers for which (*) bounds the worst-case loss of every eps-LDP mechanism from below.

    **Arguments:** `eps`; `loss`: a power with exponent >= 1; `width`: the exact width of the domain; `inputs`: the
    x_i as shares; `weights`: lam_i >= 0; `masses`: nu_i; `means`: mu_i, or None; `outputs`: the range of outputs as
    shares; `free`: whether outputs beyond that range are allowed too; `prior`: whether the weights are a prior that
    was given, so that (*) bounds the average loss under it; `bound`: what is claimed.
    """

    eps: float
    loss: Power
    width: Fraction
    inputs: tuple[float, ...]
    weights: tuple[float, ...]
    masses: tuple[float, ...]
    means: tuple[float, ...] | None
    outputs: tuple[float, float]
    free: bool
    prior: bool
    bound: float

    def concerns(self, privacy: Any, mechanism: Any) -> bool:
        """Whether the proof is about this promise and about all mechanisms of this one's kind."""
        if not (self.eps == privacy.eps and self.width == mechanism.domain.exact_width):
            return False
        if (self.means is not None) != mechanism.unbiased or self.prior != (mechanism.prior is not None):
            return False
        if self.prior and (self.inputs, self.weights) != (mechanism.inputs, mechanism.prior):
            return False
        return self.free or self.outputs[0] <= mechanism.outputs[0] <= mechanism.outputs[-1] <= self.outputs[1]

    def check(self) -> Check:
        """Prove (*) again from scratch and compare it with `bound`."""
        proven = self._proven()
        what = "average" if self.prior else "worst-case"
        where = (
            "the whole real line"
            if self.free
            else f"the shares [{self.outputs[0]:g}, {self.outputs[1]:g}] of the domain"
        )
        class_ = "unbiased " if self.means is not None else ""
        return Check(
            "lower bound",
            proven is not None and self.bound <= proven,
            f"no {class_}{self.eps:g}-LDP mechanism with outputs in {where} has {what} loss below "
            + (
                "anything: the multipliers prove nothing"
                if proven is None
                else f"{proven:.17g} ({len(self.inputs)} inputs, any outputs)"
            ),
        )

    def _proven(self) -> float | None:
        """The largest float that (*) is proven to reach, None if the multipliers are not feasible at all."""
        sizes = {len(self.inputs), len(self.weights), len(self.masses), len(self.means or self.inputs)}
        if len(sizes) != 1 or not self.inputs or min(self.weights) < 0 or self.loss.exponent < 1:
            return None
        total = sum(map(Fraction, self.weights))
        if total <= 0 or (self.prior and self.means is not None) or not self.outputs[0] < self.outputs[1]:
            return None
        dual = _Dual(
            self.eps,
            self.loss.exponent,
            np.array(self.inputs),
            np.array(self.weights),
            np.array(self.masses),
            None if self.means is None else np.array(self.means),
        )
        if self.free and not dual.points_up(self.outputs):
            return None
        least = dual.prove(dual.cells(self.outputs))
        share = (sum(map(Fraction, self.masses)) + min(Fraction(0), least)) / total
        with ctx.workprec(enclosures.PRECISION):
            scale = enclosures.ball(self.width) ** enclosures.ball(self.loss.exponent)
            return max(0.0, enclosures.round_down(enclosures.ball(share) * scale))

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact."""
        return {
            "type": "kernel",
            "eps": self.eps,
            "loss": self.loss.to_dict(),
            "width": [str(self.width.numerator), str(self.width.denominator)],
            "inputs": list(self.inputs),
            "weights": list(self.weights),
            "masses": list(self.masses),
            "means": None if self.means is None else list(self.means),
            "outputs": list(self.outputs),
            "free": self.free,
            "prior": self.prior,
            "bound": self.bound,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> KernelCertificate:
        """The inverse of `to_dict`."""
        return cls(
            data["eps"],
            loss_from_dict(data["loss"]),
            Fraction(int(data["width"][0]), int(data["width"][1])),
            tuple(data["inputs"]),
            tuple(data["weights"]),
            tuple(data["masses"]),
            None if data["means"] is None else tuple(data["means"]),
            (data["outputs"][0], data["outputs"][1]),
            data["free"],
            data["prior"],
            data["bound"],
        )


def certify(
    eps: float,
    loss: Power,
    width: Fraction,
    inputs: np.ndarray,
    weights: np.ndarray,
    masses: np.ndarray,
    means: np.ndarray | None,
    outputs: tuple[float, float] | None,
    prior: bool = False,
) -> KernelCertificate:
    """The certificate of the bound that these multipliers, rounded to multiples of 2^-62, are proven to give.

    `outputs` None means that any real number may be an output. Poor multipliers cost tightness, never validity.
    """
    means = None if means is None else _grain(means)
    lam = np.asarray(weights, dtype=float) if prior else np.maximum(_grain(weights), 0.0)
    free = outputs is None
    if free:  # every input needs a weight, or its mean's multiplier drags g down without end
        lam = _grain(lam + 1e-9 * lam.sum())
    nu = _grain(masses)
    span = outputs or _Dual(eps, loss.exponent, np.asarray(inputs, dtype=float), lam, nu, means).reach()
    draft = KernelCertificate(
        eps,
        loss,
        width,
        tuple(np.asarray(inputs, dtype=float).tolist()),
        tuple(lam.tolist()),
        tuple(nu.tolist()),
        None if means is None else tuple(means.tolist()),
        span,
        free,
        prior,
        0.0,
    )
    proven = draft._proven()
    return KernelCertificate(**{**draft.__dict__, "bound": 0.0 if proven is None else proven})


def _grain(values: np.ndarray) -> np.ndarray:
    return np.round(np.asarray(values, dtype=float) / GRAIN) * GRAIN


class _Dual:
    """r_i and g for given multipliers: in floats to find the cells, exactly to prove them."""

    def __init__(
        self, eps: float, q: float, x: np.ndarray, lam: np.ndarray, nu: np.ndarray, mu: np.ndarray | None
    ) -> None:
        self.eps, self.q, self.x, self.lam, self.nu = eps, q, x, lam, nu
        self.mu = np.zeros_like(x) if mu is None else mu
        self.growth = float(np.expm1(eps))

    def _fold(self, r: np.ndarray) -> np.ndarray:
        """sum r + (E - 1) sum min(r, 0) along the last axis."""
        return r.sum(-1) + self.growth * np.minimum(r, 0.0).sum(-1)

    def values(self, y: np.ndarray) -> np.ndarray:
        """r_i(y_j) as an array (outputs, inputs)."""
        d = y[:, None] - self.x
        return self.lam * np.abs(d) ** self.q - self.nu - self.mu * d

    def slopes(self, y: np.ndarray) -> np.ndarray:
        """r_i'(y_j) as an array (outputs, inputs)."""
        d = y[:, None] - self.x
        return self.lam * self.q * np.sign(d) * np.abs(d) ** (self.q - 1) - self.mu

    def _bounds(self, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """For each cell, the lesser of the tangents' g at its two ends (floats)."""
        middle = (left + right) / 2
        r, slope, half = self.values(middle), self.slopes(middle), ((right - left) / 2)[:, None]
        return np.minimum(self._fold(r - slope * half), self._fold(r + slope * half))

    def reach(self) -> tuple[float, float]:
        """A range beyond which all r_i are nonnegative (if doubling finds one)."""
        far = 1.0
        while far < 2.0**40 and not self.points_up((0.5 - far, 0.5 + far)):
            far *= 2
        return 0.5 - far, 0.5 + far

    def points_up(self, span: tuple[float, float]) -> bool:
        """Whether every r_i is >= 0 at both ends of `span` and does not decrease outwards: then g >= 0 beyond it.
        Exact for q = 2.
        """
        if self.q != 2:
            return False
        for end, side in zip(map(Fraction, span), (-1, 1), strict=True):
            for x, lam, nu, mu in zip(self.x, self.lam, self.nu, self.mu, strict=True):
                d = end - Fraction(float(x))
                weight, tilt = Fraction(float(lam)), Fraction(float(mu))
                if weight * d * d - Fraction(float(nu)) - tilt * d < 0 or side * (2 * weight * d - tilt) < 0:
                    return False
        return True

    def cells(self, span: tuple[float, float]) -> np.ndarray:
        """Ends of cells that cover `span`, fine enough that the tangents' bound is within 1e-13 of the least g."""
        inner = self.x[(self.x > span[0]) & (self.x < span[1])]
        cuts = np.unique(np.concatenate([[span[0], span[1]], inner]))
        if self.q == 1:
            return cuts
        scale = float(np.abs(self.nu).sum() + np.abs(self.mu).sum() + self.lam.sum())
        done: list[np.ndarray] = [cuts]
        left, right = cuts[:-1], cuts[1:]
        least = float(self._fold(self.values(cuts)).min())
        while left.size:
            bound = self._bounds(left, right)
            open_ = (bound < min(0.0, least) - 1e-13 * scale) & (right - left > FINEST)
            left, right = left[open_], right[open_]
            middle = (left + right) / 2
            done.append(middle)
            if middle.size:
                least = min(least, float(self._fold(self.values(middle)).min()))
            left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        return np.unique(np.concatenate(done))

    def prove(self, cuts: np.ndarray) -> Fraction:
        """An exact lower bound of g over [cuts[0], cuts[-1]], from the tangents on the cells between the cuts."""
        return self._prove_integers(cuts) if self.q in (1.0, 2.0) else self._prove_balls(cuts)

    def _prove_integers(self, cuts: np.ndarray) -> Fraction:
        # Twice the numerators of points over 2^s, so that middles are integers too; multipliers over 2^t.
        (points, x), s = _integers(cuts, self.x)
        (lam, nu, mu), t = _integers(self.lam, self.nu, self.mu)
        x, left, right = 2 * x, 2 * points[:-1, None], 2 * points[1:, None]
        middle, half, unit = (left + right) // 2, (right - left) // 2, 2 ** (s + 1)
        d = middle - x
        if self.q == 1:  # in units of 2^-(s + 1 + t)
            side = np.where(d >= 0, 1, -1).astype(object)
            r, slope = lam * np.abs(d) - nu * unit - mu * d, lam * side - mu
        else:  # in units of 2^-(2s + 2 + t)
            r, slope = lam * d * d - nu * unit**2 - mu * d * unit, 2 * lam * d - mu * unit
        tilt = slope * half
        growth = enclosures.exp_above(self.eps) - 1
        least = min(_least(r - tilt, growth), _least(r + tilt, growth))
        return least / (unit ** int(self.q) * 2**t)

    def _prove_balls(self, cuts: np.ndarray) -> Fraction:
        with ctx.workprec(enclosures.PRECISION):
            q, growth = enclosures.ball(self.q), enclosures.exp(self.eps) - 1
            x, lam, nu, mu = (
                np.array([arb(float(v)) for v in values], dtype=object)
                for values in (self.x, self.lam, self.nu, self.mu)
            )
            least: arb | None = None
            for a, b in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
                middle, half = (arb(a) + arb(b)) / 2, (arb(b) - arb(a)) / 2
                d = middle - x
                size = np.array([abs(v) ** (q - 1) for v in d], dtype=object)
                side = np.where(np.array([bool(v >= 0) for v in d]), 1, -1)
                r, slope = lam * size * np.abs(d) - nu - mu * d, lam * q * side * size - mu
                for ends in (r - slope * half, r + slope * half):
                    g = sum(ends, arb(0)) + growth * sum((v.min(arb(0)) for v in ends), arb(0))
                    least = g if least is None else least.min(g)
            assert least is not None
            return enclosures.lower(least)


def _integers(*arrays: np.ndarray) -> tuple[tuple[np.ndarray, ...], int]:
    """Object arrays of exact integers and s with value = integer / 2^s, the same s for all."""
    ratios = [[v.as_integer_ratio() for v in array.tolist()] for array in arrays]
    s = max(den.bit_length() - 1 for ratio in ratios for _, den in ratio)
    return tuple(np.array([num * (2**s // den) for num, den in ratio], dtype=object) for ratio in ratios), s


def _least(r: np.ndarray, growth: Fraction) -> Fraction:
    """The least over rows of sum r + growth * sum min(r, 0), exactly."""
    scaled = growth.denominator * r.sum(axis=1) + growth.numerator * np.minimum(r, 0).sum(axis=1)
    return Fraction(min(scaled), growth.denominator)

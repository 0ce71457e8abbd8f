"""The best unbiased mechanism for a number, in closed form: a window whose length varies with the input.

Its worst-case variance is the least of all unbiased eps-LDP mechanisms for eps <= 1.393027 (`optdp.closed_forms.varying_window`,
claims OPTT-20, OPTT-20x, OPTT-20y); it is the same at every input.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from optdp.closed_forms.varying_window import LIMIT
from optdp.exact import Seed, as_rng, require
from optdp.mechanisms.baselines.unbiased import Scaled
from optdp.problem import Interval, LossLike

Form = Literal["optimal", "window"]


@dataclass(frozen=True, repr=False)
class VaryingWindow(Scaled):
    """Unbiased, eps-LDP, and of the least worst-case variance: outputs log-uniform in size, likelier near the input.

    On [-1, 1], with E = e^eps: for |x| <= z the density is E/(2 (E - 1)|y|) in the window [x - r, x + r], r = sqrt(x^2 + lam),
    and 1/(2 (E - 1)|y|) elsewhere, for |y| between y0 and y1. Up to eps = 0.712285 z = 1 and that is all; beyond, z < 1, and
    atoms at 0, +-y0 and +-y1 serve the inputs with |x| > z. A sample is a float computed from uniform floats.

    **Arguments:** `eps`; `domain`: an interval, [-1, 1] by default; `form`: "optimal", for eps <= 1.393027, or "window": the
    window alone (z = 1) for every eps, whose variance is optimal up to eps = 0.712285.

        >>> from optdp.mechanisms.varying_window import VaryingWindow
        >>> VaryingWindow(0.5).variance([-1.0, 0.3]).round(4)
        array([16.0028, 16.0028])
    """

    eps: float
    domain: Interval = field(default_factory=lambda: Interval(-1.0, 1.0))
    form: Form = "optimal"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.form == "optimal":
            require.real("eps", self.eps, low=0.0, open_low=True, high=LIMIT)
        self._refuse_infinities(self._shape["y1"])

    @cached_property
    def _shape(self) -> dict[str, float]:
        """z, lam, y0, y1 and the floors `zero`, `low`, `high` of the atoms at 0, +-y0, +-y1, on [-1, 1]."""
        growth, tau = math.expm1(self.eps), math.tanh(self.eps / 2)
        e = growth + 1
        if self.form == "window" or 2 * math.tanh(tau) + tau <= 1:
            coth, lam = 1 / math.tanh(tau), 1 / math.sinh(tau) ** 2
            return {"z": 1.0, "lam": lam, "y0": lam / (coth + 1), "y1": coth + 1, "zero": 0.0, "low": 0.0, "high": 0.0}
        z = min(1 / (e - (e + 1) * math.log1p(2 / e) / 2), 1.0)
        lam, y0, y1 = z * z * e * (e + 2), z * e, z * (e + 2)
        fall = (1 - z) ** 2 / lam
        span = 2 * (e + 1) * z * growth
        zero, low, high = fall / growth, (1 - z - y1 * fall) / span, (1 - z + y0 * fall) / span
        return {"z": z, "lam": lam, "y0": y0, "y1": y1, "zero": zero, "low": low, "high": high}

    @property
    def _places(self) -> tuple[float, ...]:
        """Where the atoms are on [-1, 1], for inputs above 0."""
        y0, y1 = self._shape["y0"], self._shape["y1"]
        return 0.0, y0, -y0, y1, -y1

    def _row(self, u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(edges, masses) for |x| = u: where the window ends above and below 0; masses of the four bulk parts and five atoms.

        Bulk: above 0 in the window, above 0 beyond it, below 0 in the window, below 0 beyond. Atoms: as in `_places`.
        """
        s, growth = self._shape, math.expm1(self.eps)
        e, y0, y1 = growth + 1, s["y0"], s["y1"]
        r = np.sqrt(u * u + s["lam"])
        edges = np.clip(np.stack([r + u, s["lam"] / (r + u)]), y0, y1)
        inner, outer = np.log(edges / y0), np.log(y1 / edges)
        over = np.maximum(u - s["z"], 0.0)
        zero = over**2 / s["lam"]
        lower = (over - y1 * zero) / (2 * (e + 1) * s["z"])
        bulk = (part / (2 * growth) for part in (e * inner[0], outer[0], e * inner[1], outer[1]))
        atoms = e * s["zero"] - zero, e * s["low"], e * s["low"] - lower, s["high"] + lower + zero, s["high"]
        return edges, np.stack(np.broadcast_arrays(*bulk, *atoms))

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        u, rng = self._unit(x), as_rng(rng)
        edges, masses = self._row(np.abs(u))
        y0, y1 = self._shape["y0"], self._shape["y1"]
        toss = rng.random(u.shape) * masses.sum(axis=0)
        part = np.sum(toss >= np.cumsum(masses, axis=0)[:-1], axis=0)
        along = rng.random(u.shape)
        ends = ((y0, edges[0], 1), (edges[0], y1, 1), (y0, edges[1], -1), (edges[1], y1, -1))
        outputs = [sign * a * np.power(b / a, along) for a, b, sign in ends]
        out = np.choose(part, outputs + [np.full(u.shape, y) for y in self._places])
        return self._sent(np.where(u < 0, -out, out))

    def density(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        u, v = np.broadcast_arrays(self._unit(x), self._standard(require.reals(y, "y")))
        edges, _ = self._row(np.abs(u))
        side, size = np.where(u < 0, -v, v), np.abs(v)
        inside = size <= np.where(side > 0, edges[0], edges[1])
        held = (size >= self._shape["y0"]) & (size <= self._shape["y1"])
        height = np.where(inside, math.exp(self.eps), 1.0) / (2 * math.expm1(self.eps) * np.where(held, size, 1.0))
        return np.where(held, height, 0.0) / self._half

    def atoms(self) -> np.ndarray:
        """Outputs of positive probability: none up to eps = 0.712285, or without atoms."""
        return np.unique(
            self._sent(np.array(self._places if self._shape["high"] > 0 else []))
        )  # several may be one float

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        u, outputs = np.broadcast_arrays(self._unit(x), require.reals(y, "y"))
        total = np.zeros(u.shape)
        for place, mass in zip(self._places, self._row(np.abs(u))[1][4:], strict=True):
            at = self._sent(np.where(u < 0, -place, place))
            total = total + np.where(outputs == at, mass, 0.0)
        return total

    def support(self, x: ArrayLike | None = None) -> tuple[float, float]:
        low, high = self._sent(np.array([-1.0, 1.0]) * self._shape["y1"]).tolist()
        return low, high

    def _unit_variance(self, u: np.ndarray) -> np.ndarray:
        tau, growth = math.tanh(self.eps / 2), math.expm1(self.eps)
        if self._shape["high"] == 0:
            return np.full(u.shape, 1 / (tau * math.tanh(tau)) - 1)
        e = growth + 1
        return np.full(u.shape, (e * (e + 2) * self._shape["z"] - (e - 2)) / growth)

    def worst_input(self, loss: LossLike = "abs") -> float:
        law = self._loss(loss)
        return self.domain.lower if law.exponent == 2 else super().worst_input(law)

    def __repr__(self) -> str:
        variance = float(self.variance(self.domain.lower))
        return f"VaryingWindow on {self.domain}: unbiased, variance {variance:.6g} at every input; eps = {self._told()}"

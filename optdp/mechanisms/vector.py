"""Vectors by one coordinate: report one of d coordinates with a mechanism for numbers, scaled by d (OPTT, Algorithm 3)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdp import files
from optdp.exact import require
from optdp.exact.check import Check
from optdp.exact.fields import Fields, load
from optdp.exact.sampling import Seed, as_rng
from optdp.mechanisms.base import Mechanism
from optdp.problem.domains import Interval
from optdp.problem.privacy import Privacy


@dataclass(frozen=True)
class OneCoordinate:
    """An unbiased eps-LDP mechanism for vectors in a cube, from one for numbers in an interval around 0.

    A coordinate j is drawn uniformly, whatever the input; the output is 0 but for d times the randomised x_j. Given j it is
    as private as `mechanism`, and j itself tells nothing, so that the whole is eps-LDP with the full eps.

    **Arguments:** `mechanism`: unbiased, on an interval symmetric around 0 (for [-1, 1]^d: on [-1, 1]); `d`: the dimension.

        >>> from optdp.mechanisms.baselines.unbiased import duchi
        >>> OneCoordinate(duchi(1.0), 3).variance([0.0, 0.5, 1.0]).round(3)
        array([14.048, 13.798, 13.048])
    """

    mechanism: Mechanism
    d: int

    def __post_init__(self) -> None:
        require.integer("d", self.d, low=1)
        domain = self.mechanism.domain
        if not isinstance(domain, Interval) or domain.lower != -domain.upper:
            raise ValueError(f"mechanism on {domain} is not allowed: its domain must be an interval symmetric around 0")

    def check(self, x: ArrayLike) -> np.ndarray:
        """`x` as an array whose last axis has length d, all entries in the domain of the mechanism."""
        inputs = self.mechanism.domain.check(x)
        if inputs.ndim == 0 or inputs.shape[-1] != self.d:
            raise ValueError(f"x of shape {inputs.shape} is not allowed: its last axis must have length d = {self.d}")
        return inputs

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        """One private vector for each vector along the last axis of `x`."""
        inputs, rng = self.check(x), as_rng(rng)
        chosen = rng.integers(0, self.d, size=(*inputs.shape[:-1], 1))
        out = np.zeros(inputs.shape)
        private = self.d * self.mechanism.randomize(np.take_along_axis(inputs, chosen, axis=-1), rng)
        np.put_along_axis(out, chosen, private, axis=-1)
        return out

    def support(self) -> tuple[float, float]:
        """(lowest, highest) value that a coordinate of the output can take."""
        low, high = self.mechanism.support()
        return min(self.d * low, 0.0), max(self.d * high, 0.0)

    def mean(self, x: ArrayLike) -> np.ndarray:
        """E[Y | x] = x."""
        return np.asarray(self.mechanism.mean(self.check(x)))

    def variance(self, x: ArrayLike) -> np.ndarray:
        """Variance of each coordinate: d (V(x_j) + x_j^2) - x_j^2, where V is that of the mechanism for numbers."""
        inputs = self.check(x)
        return self.d * (self.mechanism.variance(inputs) + inputs**2) - inputs**2

    def guarantee(self) -> Privacy | None:
        """That of the mechanism for numbers: neighbouring vectors may differ in every coordinate."""
        return self.mechanism.guarantee()

    def privacy(self) -> float:
        """The smallest epsilon: that of the mechanism for numbers."""
        return self.mechanism.privacy()

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        """The exact tests of the mechanism for numbers."""
        return self.mechanism.check_privacy(privacy)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact."""
        return {"mechanism": "OneCoordinate", "part": self.mechanism.to_dict(), "d": self.d}

    @classmethod
    def from_dict(cls, data: Any) -> OneCoordinate:
        """The inverse of `to_dict`. **Raises** FieldError."""
        return cls._read(Fields(data, "mechanism"))

    @classmethod
    def _read(cls, fields: Fields) -> OneCoordinate:
        fields.choice("mechanism", ("OneCoordinate",))
        made = cls(Mechanism.read(fields.child("part")), fields.integer("d", 1, 10**9))
        fields.done()
        return made

    def save(self, path: str | Path) -> None:
        """Write the mechanism to a JSON file, whole or not at all."""
        files.write_text(path, json.dumps(self.to_dict(), indent=2) + "\n")

    @staticmethod
    def load(path: str | Path) -> OneCoordinate:
        """Read a mechanism that `save` wrote. **Raises** OSError or FieldError."""
        return load(path, OneCoordinate._read)

"""Vectors by one coordinate: report one of d coordinates with a mechanism for numbers, scaled by d (OPTT, Algorithm 3)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp import files
from optdp.exact import Check, Fields, Seed, Within, as_rng, require, written
from optdp.exact.fields import load
from optdp.mechanisms.base import Mechanism
from optdp.problem import Interval, Privacy


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

    mechanism: Mechanism = field(metadata={"saved": "part"})
    d: Annotated[int, Within(1, 10**9)]

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

    # Privacy is that of the mechanism for numbers: neighbouring vectors may differ in every coordinate.

    def guarantee(self) -> Privacy | None:
        return self.mechanism.guarantee()

    def privacy(self) -> float:
        return self.mechanism.privacy()

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        return self.mechanism.check_privacy(privacy)

    def to_dict(self) -> dict[str, Any]:
        return {"mechanism": "OneCoordinate"} | written(self)

    @classmethod
    def from_dict(cls, data: Any) -> OneCoordinate:
        """The inverse of `to_dict`. **Raises** FieldError."""
        return Fields(data, "mechanism").make(cls._read)

    @classmethod
    def _read(cls, fields: Fields) -> OneCoordinate:
        fields.choice("mechanism", ("OneCoordinate",))
        return fields.into(cls)

    def save(self, path: str | Path) -> None:
        """Write the mechanism to a JSON file, whole or not at all."""
        files.write_text(path, json.dumps(self.to_dict(), indent=2) + "\n")

    @staticmethod
    def load(path: str | Path) -> OneCoordinate:
        """Read a mechanism that `save` wrote. **Raises** OSError or FieldError."""
        return load(path, lambda fields: fields.make(OneCoordinate._read))

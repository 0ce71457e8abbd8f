"""Losses: nondecreasing functions of the distance between the input and the output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

import numpy as np

from optdp.exact import require


@dataclass(frozen=True)
class Power:
    """L(d) = d^exponent for a distance d >= 0, `exponent` in [0.01, 100]. `Power(1)` is "abs", `Power(2)` "squared"."""

    exponent: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "exponent", require.real("exponent", self.exponent, low=0.01, high=100.0))

    @property
    def name(self) -> str:
        """ "abs", "squared" or "power(q)"."""
        return {1.0: "abs", 2.0: "squared"}.get(self.exponent, f"power({self.exponent:g})")

    def __call__(self, distance: Any) -> np.ndarray:
        """L(distance), elementwise."""
        return np.power(distance, self.exponent)

    def integral(self, distance: Any) -> np.ndarray:
        """The integral of L from 0 to distance >= 0, elementwise."""
        return np.power(distance, self.exponent + 1) / (self.exponent + 1)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"type": "power", "exponent": self.exponent}

    def __str__(self) -> str:
        return self.name


Shape = Literal["convex", "concave"]

#: Cells on which a user's loss is sampled. Monotone sums leave a relative gap of about 1/CELLS.
CELLS = 2**20


@dataclass(frozen=True)
class CustomLoss:
    """A user's own nondecreasing loss, known through its values.

    **Arguments:**

    - `function`: takes an array of distances d >= 0 and gives an array of the same shape, finite, >= 0 and
      nondecreasing on [0, reach]. (A function of one float is vectorised, slowly.)
    - `reach`: the largest distance at which it will be asked; `solve_piecewise` sets it from the domain.
    - `shape`: "convex" or "concave" if it is so, which makes brackets tighter by orders of magnitude.
    - `name`: how it is called in reports.

    All that is known of such a function is its values at 2^20 + 1 equally spaced distances, where every property above
    is checked. Its integrals are therefore bracketed from those values and from the declared properties alone; bounds
    that rest on it say so.

    **Raises** TypeError if `function` is not callable or does not give real numbers of the right shape; ValueError if
    its values are not finite, negative, decreasing, or not of the declared shape: with the distance where it fails.
    """

    function: Callable[[Any], Any]
    reach: float
    shape: Shape | None = None
    name: str = "custom"
    _values: np.ndarray = field(init=False, repr=False, compare=False)
    _below: np.ndarray = field(init=False, repr=False, compare=False)
    _above: np.ndarray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise TypeError(f"loss = {self.function!r} is not allowed: a loss must be a function of the distance")
        object.__setattr__(self, "reach", require.real("reach", self.reach, low=0.0, open_low=True))
        if self.shape is not None:
            require.choice("shape", self.shape, ("convex", "concave"))
        grid = np.linspace(0.0, self.reach, 2 * CELLS + 1) if self.shape else np.linspace(0.0, self.reach, CELLS + 1)
        values = self(grid)
        self._refuse(~np.isfinite(values), grid, values, "finite")
        self._refuse(values < 0, grid, values, ">= 0")
        scale = float(values[-1])
        noise = 8 * np.finfo(float).eps * scale
        self._refuse(np.append(np.diff(values) < -noise, False), grid, values, "nondecreasing in the distance")
        values = np.maximum.accumulate(values)
        # Cumulative integrals from below and above at the cells' ends: monotone sums, or Hermite-Hadamard
        # (midpoint and trapezoid) where the shape is known. One ulp a term covers the rounding of the sums.
        if self.shape is None:
            ends, low, high = values, values[:-1], values[1:]
        else:
            bend = np.diff(values, 2) * (1 if self.shape == "convex" else -1)
            self._refuse(np.concatenate(([False], bend < -4 * noise, [False])), grid, values, self.shape)
            ends, middle = values[::2], values[1::2]
            trapezoid = (ends[:-1] + ends[1:]) / 2
            low, high = (middle, trapezoid) if self.shape == "convex" else (trapezoid, middle)
        cell = self.reach / CELLS
        slack = np.arange(CELLS + 1) * (cell * noise)
        object.__setattr__(self, "_values", ends)
        object.__setattr__(self, "_below", np.concatenate(([0.0], np.cumsum(low) * cell)) - slack)
        object.__setattr__(self, "_above", np.concatenate(([0.0], np.cumsum(high) * cell)) + slack)

    def _refuse(self, bad: np.ndarray, grid: np.ndarray, values: np.ndarray, what: str) -> None:
        if bad.any():
            at = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"loss = {self.name!r} is not allowed: a loss must be {what} on [0, {self.reach:g}], and it is not "
                f"at distance {grid[at]:g}, where its value is {values[at]:g}"
            )

    def __call__(self, distance: Any) -> np.ndarray:
        """L(distance), elementwise."""
        points = np.asarray(distance, dtype=float)
        try:
            values = np.asarray(self.function(points))
        except (TypeError, ValueError):  # a function of one float: `if d > 0.1: ...`
            values = np.vectorize(self.function, otypes=[float])(points)
        if values.shape != points.shape:
            values = np.vectorize(self.function, otypes=[float])(points)
        if values.dtype.kind not in "iufb":
            raise TypeError(f"loss = {self.name!r} is not allowed: a loss must give real numbers, not {values.dtype}")
        return values.astype(float, copy=False)

    def integral(self, distance: Any) -> np.ndarray:
        """The integral of L from 0 to distance, elementwise: the middle of the bracket."""
        low, high = self.integral_bracket(distance)
        return (low + high) / 2

    def integral_bracket(self, distance: Any) -> tuple[np.ndarray, np.ndarray]:
        """(low, high) around the integral of L from 0 to distance in [0, reach], elementwise, from the sampled values."""
        d = np.clip(np.asarray(distance, dtype=float), 0.0, self.reach)
        cell = self.reach / CELLS
        index = np.minimum((d / cell).astype(int), CELLS - 1)
        rest = np.maximum(d - index * cell, 0.0)
        return self._below[index] + rest * self._values[index], self._above[index] + rest * self._values[index + 1]

    def deficit_above(self, threshold: float) -> float:
        """A number not below the integral of (threshold - L)_+ over [0, reach]."""
        # L is nondecreasing: whole cells lie below the threshold up to end number k, then one cell is crossed.
        cell = self.reach / CELLS
        k = int(np.searchsorted(self._values, threshold, side="right")) - 1
        if k < 0:
            return 0.0
        crossed = 0.0 if k == CELLS else cell * (threshold - float(self._values[k]))
        return (threshold * k * cell - float(self._below[k]) + crossed) * (1 + 1e-15)

    def to_dict(self) -> dict[str, Any]:
        """Refused: a Python function has no JSON form."""
        raise TypeError(f"loss = {self.name!r} cannot be saved: only abs, squared and power losses have a JSON form")

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class MatrixLoss:
    """The loss of each output (column) for each input (row) of a finite alphabet.

    **Arguments:** `rows`: a matrix of finite numbers >= 0 with at least 2 rows.
    """

    rows: tuple[tuple[float, ...], ...]

    def __post_init__(self) -> None:
        matrix = np.asarray(self.rows)
        if matrix.ndim != 2 or matrix.dtype.kind not in "iuf":
            raise TypeError(
                "loss is not allowed: with an Alphabet it must be a matrix of numbers, "
                "a row for each input, a column for each output"
            )
        if len(matrix) < 2 or not matrix.size or not np.isfinite(matrix).all() or matrix.min() < 0:
            raise ValueError("loss is not allowed: its entries must be finite and >= 0, with at least 2 rows")
        object.__setattr__(self, "rows", tuple(tuple(row) for row in matrix.astype(float).tolist()))

    @property
    def name(self) -> str:
        """How it is called in reports."""
        return f"matrix {len(self.rows)} x {len(self.rows[0])}"

    @property
    def array(self) -> np.ndarray:
        """The matrix."""
        return np.array(self.rows)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"type": "matrix", "rows": [list(row) for row in self.rows]}

    def __str__(self) -> str:
        return self.name


Loss = Power | CustomLoss

Absolute = Power(1)
Squared = Power(2)

_NAMED = {"abs": Absolute, "l1": Absolute, "squared": Squared, "l2": Squared}


def as_loss(loss: Any, reach: Fraction | float = 1.0) -> Loss:
    """A loss from what a user wrote: "abs" ("l1"), "squared" ("l2"), a `Power`, or a function of the distance.

    **Arguments:** `reach`: the largest distance that can occur, up to which a user's function is checked.

    **Raises** TypeError or ValueError if it is none of these, or a function that is not a loss.
    """
    if isinstance(loss, str):
        return _NAMED[require.choice("loss", loss, tuple(_NAMED))]
    if isinstance(loss, Power):
        return loss
    if isinstance(loss, CustomLoss):
        return loss if loss.reach == float(reach) else CustomLoss(loss.function, float(reach), loss.shape, loss.name)
    if callable(loss):
        return CustomLoss(loss, float(reach), name=getattr(loss, "__name__", "custom"))
    raise TypeError(
        f"loss = {loss!r} is not allowed: loss must be 'abs', 'squared', optdp.Power(q), or a nondecreasing "
        "function of the distance"
    )


def loss_from_dict(data: dict[str, Any]) -> Any:
    """The inverse of `to_dict` of a `Power` or a `MatrixLoss`."""
    if require.choice("loss type", data.get("type"), ("power", "matrix")) == "matrix":
        return MatrixLoss(data["rows"])
    return Power(data["exponent"])

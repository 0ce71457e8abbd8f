"""Kernels between finite sets: a table of probabilities, one row for each symbol."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optdp.exact import enclosures
from optdp.exact.check import Check
from optdp.exact.rounding import Table
from optdp.mechanisms.base import Mechanism, as_rng
from optdp.problem.domains import Alphabet, domain_from_dict
from optdp.problem.losses import MatrixLoss
from optdp.problem.privacy import LDP


@dataclass(frozen=True, repr=False, eq=False)
class FiniteMechanism(Mechanism):
    """For the i-th symbol the j-th output with probability `weights[i][j] / 2^62`, drawn exactly with integers alone.

    **Arguments:** `domain`: an `optdp.Alphabet`; `outputs`: different strings or numbers; `table`: the weights;
    `prior`: the probabilities of the symbols, if the mechanism is meant for the average, or None for the worst case.

    Losses are matrices (inputs, outputs): `optdp.problem.losses.MatrixLoss` or anything that converts to one.
    """

    domain: Alphabet  # type: ignore[assignment]
    outputs: tuple[Any, ...]
    table: Table
    prior: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if len(set(self.outputs)) < len(self.outputs) or self.table.weights.shape != (
            len(self.domain),
            len(self.outputs),
        ):
            raise ValueError(
                f"outputs = {self.outputs!r} is not allowed: they must be different, one for each column of the weights"
            )
        if self.prior is not None and len(self.prior) != len(self.domain):
            raise ValueError(f"prior = {self.prior!r} is not allowed: it must have one entry for each symbol")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FiniteMechanism):
            return NotImplemented
        return self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.domain, self.outputs))

    def randomize(self, x: Any, rng: Any = None) -> np.ndarray:
        return np.array(self.outputs)[self.table.draw(self.domain.index(x), as_rng(rng))]

    def density(self, y: Any, x: Any) -> np.ndarray:
        return np.zeros(np.broadcast(np.asarray(y), np.asarray(x)).shape)

    def probability(self, y: Any, x: Any) -> np.ndarray:
        place = {symbol: j for j, symbol in enumerate(self.outputs)}
        outputs, inputs = np.broadcast_arrays(np.asarray(y), self.domain.index(x))
        column = np.array([place.get(entry, -1) for entry in outputs.reshape(-1).tolist()], dtype=np.int64).reshape(
            outputs.shape
        )
        return np.where(column >= 0, self.table.rows[inputs, np.maximum(column, 0)], 0.0)

    def support(self, x: Any = None) -> tuple[Any, Any]:
        """(least, largest) output."""
        return min(self.outputs), max(self.outputs)

    def mean(self, x: Any) -> np.ndarray:
        """E[Y | x] for numeric outputs."""
        return self.table.rows[self.domain.index(x)] @ np.array(self.outputs, dtype=float)

    def variance(self, x: Any) -> np.ndarray:
        """Var[Y | x] for numeric outputs."""
        values = np.array(self.outputs, dtype=float)
        return self.table.rows[self.domain.index(x)] @ values**2 - np.square(self.mean(x))

    def _matrix(self, loss: Any) -> MatrixLoss:
        law = loss if isinstance(loss, MatrixLoss) else MatrixLoss(loss)
        if np.shape(law.rows) != self.table.weights.shape:
            raise ValueError(
                f"loss is not allowed: it must be a matrix {self.table.weights.shape[0]} x {self.table.weights.shape[1]}"
            )
        return law

    def expected_loss(self, x: Any, loss: Any = None) -> np.ndarray:
        return np.einsum("ij,ij->i", self.table.rows, self._matrix(loss).array)[self.domain.index(x)]

    def worst_input(self, loss: Any = None) -> Any:
        """The symbol with the largest expected loss."""
        return self.domain.symbols[int(np.argmax(self.expected_loss(self.domain.symbols, loss)))]

    def average_loss(self, loss: Any = None) -> float:
        """The expected loss averaged over the prior, or over all symbols alike."""
        return float(np.average(self.expected_loss(self.domain.symbols, loss), weights=self.prior))

    def enclose_value(self, loss: Any) -> tuple[float, float]:
        """(low, high) around the worst-case expected loss, or the average under `prior`: one exact rational, rounded
        both ways.
        """
        losses = [
            sum((w * Fraction(v) for w, v in zip(row, values, strict=True)), Fraction(0)) / 2**62
            for row, values in zip(self.table.to_list(), self._matrix(loss).rows, strict=True)
        ]
        if self.prior is None:
            value = max(losses)
        else:
            weights = [Fraction(p) for p in self.prior]
            value = sum((p * v for p, v in zip(weights, losses, strict=True)), Fraction(0)) / sum(weights)
        return enclosures.round_down(value), enclosures.round_up(value)

    def check_privacy(self, privacy: LDP) -> list[Check]:
        """Exact tests: rows are distributions, and their ratios keep the promise."""
        ratio = self.table.exact_ratio()
        impossible = "an output is possible for one symbol and impossible for another"
        sums = {sum(row) for row in self.table.to_list()}
        return [
            privacy.check(ratio) if ratio is not None else Check("privacy", False, impossible),
            Check("mass", sums == {2**62}, f"all {len(self.domain)} rows sum to 1 in exact rationals"),
        ]

    def plot(self, ax: Any = None, inputs: Any = None) -> Any:
        """Draw the table of probabilities. Returns the matplotlib axes."""
        from optdp.report.plots import new_axes

        ax = new_axes(ax)
        image = ax.imshow(self.table.rows, aspect="auto", cmap="viridis")
        ax.figure.colorbar(image, ax=ax, label="P(y | x)")
        ax.set_xticks(range(len(self.outputs)), map(str, self.outputs))
        ax.set_yticks(range(len(self.domain)), map(str, self.domain.symbols))
        ax.set(xlabel="output y", ylabel="input x")
        return ax

    def privacy(self) -> float:
        ratio = self.table.exact_ratio()
        return np.inf if ratio is None else enclosures.log_above(ratio)

    def to_dict(self) -> dict[str, Any]:
        return {
            "mechanism": "FiniteMechanism",
            "domain": self.domain.to_dict(),
            "outputs": list(self.outputs),
            "weights": self.table.to_list(),
            "prior": None if self.prior is None else list(self.prior),
        }

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> FiniteMechanism:
        prior = None if data["prior"] is None else tuple(data["prior"])
        return cls(domain_from_dict(data["domain"]), tuple(data["outputs"]), Table.of(data["weights"]), prior)

    def __repr__(self) -> str:
        return f"FiniteMechanism on {self.domain}: {len(self.outputs)} outputs; eps = {self.privacy():.6g}"

"""Kernels between finite sets: a table of probabilities, one row for each symbol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import Check, Log, Seed, Within, as_rng, dyadic, enclosures, work
from optdp.exact.rounding import TOTAL, Table
from optdp.mechanisms.base import Mechanism
from optdp.problem import LDP, Alphabet, Apart, Loss, LossLike, MetricLDP, Privacy, as_loss, places, symbol_array
from optdp.problem.objectives import Average, Objective, WorstCase


class TableMechanism(Mechanism):
    """A mechanism whose distributions are the rows of an integer table, or mixtures of them: its ratios are the table's."""

    exact = True
    table: Table
    outputs: tuple[Any, ...]

    def guarantee(self) -> LDP | None:
        """LDP with the logarithm of the largest ratio; None where an output is possible for some inputs alone."""
        ratio = self.table.exact_ratio()
        return None if ratio is None else LDP(Log(ratio))

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        if not isinstance(privacy, LDP):
            return super().check_privacy(privacy)
        ratio = self.table.exact_ratio()
        impossible = "an output is possible for one input and impossible for another"
        kept = Check("privacy", False, impossible) if ratio is None else privacy.check(ratio)
        return [kept, self.table.check_mass()]

    def _tail(self) -> str:
        return "no eps-LDP" if self.table.exact_ratio() is None else f"eps = {self._told()}"


@dataclass(frozen=True, repr=False)
class FiniteMechanism(TableMechanism):
    """For the i-th symbol the j-th output with probability `weights[i][j] / 2^62`, drawn exactly with integers alone.

    **Arguments:** `domain`: an `optdp.Alphabet`; `outputs`: different strings or numbers; `table`: the weights.

    Losses are matrices (inputs, outputs): `optdp.problem.losses.MatrixLoss` or anything that converts to one.
    """

    domain: Alphabet
    outputs: Annotated[tuple[Any, ...], Within(least=1, most=20_000)]
    table: Table = field(metadata={"saved": "weights"})

    def __post_init__(self) -> None:
        super().__post_init__()
        shape = len(self.domain), len(self.outputs)
        if len(set(self.outputs)) < len(self.outputs) or self.table.weights.shape != shape:
            allowed = "they must be different, one for each column of the weights"
            raise ValueError(f"outputs = {self.outputs!r} is not allowed: {allowed}")

    @classmethod
    def of_floors(
        cls, domain: Alphabet, outputs: Sequence[Any], floors: np.ndarray, losses: np.ndarray, ratio: Fraction
    ) -> FiniteMechanism:
        """The best mechanism whose outputs have at least these probabilities, and at most `ratio` times as much.

        **Arguments:** `floors`: one number >= 0 for each output, not all 0; they are scaled if no row lies above them;
        `losses`: (inputs, outputs); `ratio`: >= 1.

        Each row has `ratio` times the floor (rounded down) at the outputs of its least losses, the floor at the others, and one
        output in between: integers from the start, so that the likelihood ratios are at most `ratio` without any repair.
        """
        low = integer_floors(floors, ratio)
        room = np.array([int(ratio * m) - m for m in low], dtype=object)
        base, rest = np.array(low, dtype=object), TOTAL - sum(low)
        weights = np.empty(losses.shape, dtype=np.int64)
        for row, order in zip(weights, np.argsort(losses, axis=1, kind="stable"), strict=True):
            before = np.cumsum(room[order]) - room[order]
            row[order] = base[order] + np.minimum(np.maximum(rest - before, 0), room[order])
        return cls(domain, tuple(outputs), Table(weights))

    def satisfies(self, privacy: Privacy) -> bool | None:
        """As for every mechanism, but metric privacy is decided from the rows: the least eps of a guarantee is rounded up."""
        apart = isinstance(privacy, MetricLDP) and not isinstance(privacy.metric, Apart)
        return (apart and privacy.check_rows(self.table.weights).passed) or super().satisfies(privacy)  # type: ignore[attr-defined]

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        if not isinstance(privacy, MetricLDP) or isinstance(privacy.metric, Apart):
            return super().check_privacy(privacy)
        return [privacy.check_rows(self.table.weights), self.table.check_mass()]

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        return self.atoms()[self.table.draw(self.domain.index(x), as_rng(rng))]

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        column, row = np.broadcast_arrays(places(self.outputs, y), self.domain.index(x))
        return np.where(column >= 0, self.table.rows[row, np.maximum(column, 0)], 0.0)

    def atoms(self) -> np.ndarray:
        return symbol_array(self.outputs, self.outputs)

    def mean(self, x: ArrayLike) -> np.ndarray:
        numbers = self._numbers()
        return np.asarray(numbers[0] + self.table.rows[self.domain.index(x)] @ (numbers - numbers[0]))

    def variance(self, x: ArrayLike) -> np.ndarray:
        numbers = self._numbers() - self._numbers()[0]  # squares far from 0 are rounded by more than they differ
        apart = numbers - (self.table.rows @ numbers)[:, None]
        return np.asarray(np.sum(self.table.rows * np.square(apart), axis=1)[self.domain.index(x)])

    def _numbers(self) -> np.ndarray:
        if any(isinstance(output, str) for output in self.outputs):
            raise TypeError("mean and variance are not allowed: outputs are names, no numbers")
        return np.array(self.outputs, dtype=float)

    def _loss(self, loss: Any) -> Loss:
        law: Loss = as_loss(loss)
        if law.form != "matrix" or law.array.shape != self.table.weights.shape:  # type: ignore[attr-defined]
            raise ValueError("loss is not allowed: it must be a matrix {} x {}".format(*self.table.weights.shape))
        return law

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        losses = np.einsum("ij,ij->i", self.table.rows, self._loss(loss).array)  # type: ignore[attr-defined]
        return np.asarray(losses[self.domain.index(x)])

    def enclose(self, objective: Objective) -> tuple[float, float]:
        if not isinstance(objective, WorstCase | Average) or objective.loss.form != "matrix":
            return super().enclose(objective)
        law: Any = self._loss(objective.loss)
        work.count(self.table.weights.size * (1 + 2 * work.product(1, max(map(work.words, law.rows)))))
        entries, bits = dyadic.integers(law.array)
        products = self.table.weights.astype(object) * entries
        losses = [Fraction(int(total), TOTAL << bits) for total in products.sum(axis=1)]
        if isinstance(objective, WorstCase):
            value = max(losses)
        elif isinstance(objective.prior, str):  # "uniform"
            value = sum(losses, Fraction(0)) / len(losses)
        else:
            place = self.domain.index(list(objective.prior.categories), "prior points").tolist()
            value = sum((p * losses[i] for i, p in zip(place, objective.prior.exact, strict=True)), Fraction(0))
        return enclosures.round_down(value), enclosures.round_up(value)

    def __repr__(self) -> str:
        return f"FiniteMechanism on {self.domain}: {len(self.outputs)} outputs; {self._tail()}"


def integer_floors(floors: np.ndarray, ratio: Fraction) -> list[int]:
    """Integers in proportion to `floors`, rounded up, whose sum is at most 2^62, and `ratio` times them at least 2^62.

    Rounded up, because what a favoured output lacks is as much as `ratio` units, and goes to an output with a larger loss.
    """
    numerators, _ = dyadic.integers(floors)
    total, unit = int(numerators.sum()), Fraction(len(floors), TOTAL)
    share = min(max(Fraction(float(floors.sum())), (1 + unit) / ratio), 1 - unit)
    low = [-(-int(m * share.numerator * TOTAL) // (total * share.denominator)) for m in numerators]
    if sum(int(ratio * m) for m in low) < TOTAL:  # a ratio next to 1: one distribution for all
        low = [int(m) * TOTAL // total for m in numerators]
        low[int(np.argmax(floors))] += TOTAL - sum(low)
    return low

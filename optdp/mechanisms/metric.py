"""Kernels between finite sets with metric privacy: a table of integers whose columns change slowly from place to place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, Self

import numpy as np

from optdp.exact import enclosures
from optdp.exact.rounding import TOTAL, Table
from optdp.mechanisms.finite import FiniteMechanism
from optdp.problem import Alphabet, Metric, MetricLDP

#: The design keeps this share of eps away from the limit, so that floats decide most of the exact test.
SHAVED = 1e-11
#: Symbols with eps d below this have one row: what rows lack could not agree as closely, and no loss changes by a larger share.
SAME = 1e-7


@dataclass(frozen=True, repr=False)
class MetricMechanism(FiniteMechanism):
    """A `FiniteMechanism` between places with distances.

    **Arguments:** as there, and `metric`: the distances between the symbols of the domain.
    """

    metric: Metric

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.metric) != len(self.domain):
            raise ValueError(f"metric is not allowed: it must have distances between {len(self.domain)} symbols")

    @classmethod
    def of_rows(
        cls, domain: Alphabet, outputs: Sequence[Any], rows: np.ndarray, privacy: MetricLDP, losses: np.ndarray | None = None
    ) -> Self:  # fmt: skip
        """The private mechanism next to the given probabilities.

        **Arguments:** `rows`: (inputs, outputs), about private; `losses`: rows whose largest tell which output takes the rest.

        Each column is lifted to the least one above it that keeps the guarantee, k_x = max_z k_z e^(-eps d(x, z)), and all are
        scaled by one factor; rounded down to integers, plus g units each where an output is sent at all, they keep it exactly, as
        a <= E b implies a + g <= E (b - 1 + g) for g >= E / (E - 1). What a row lacks goes to one output, the cheapest or that
        with the most room: these lacks nearly agree, and must keep the guarantee too, for which the factor is lowered until they
        do.
        """
        far = np.where(privacy.growth < SAME, 0.0, privacy.growth)
        if (far == 0).sum() > len(far):  # symbols that are hidden so well have one row
            for z in range(len(far)):
                far = np.minimum(far, far[:, z, None] + far[None, z])
        near = float(far[far > 0].min(initial=1.0))
        shrink = np.exp(far * (min(max(SHAVED, 4e-15 / near), 0.5) - 1))
        lifted = np.stack([(column * shrink).max(axis=1) for column in np.maximum(rows, 0.0).T], axis=1)
        lifted /= lifted.sum(axis=1).max()
        units = min(math.ceil(1 / -math.expm1(-near)) + 2, TOTAL // (4 * rows.shape[1]))
        costs = 1 - lifted.mean(axis=0) if losses is None else losses.max(axis=0)
        free = [(column[:, None] - np.exp(-far) * column)[far > 0].min(initial=1.0) for column in lifted.T]
        share = 2.0**-44 + 2.0 * units * rows.shape[1] / TOTAL
        for rest in cycle((int(np.argmin(costs)), int(np.argmax(free)))):
            share = min(share, 1.0)
            weights = np.floor(lifted * ((1 - share) * TOTAL)).astype(np.int64) + units * lifted.any(axis=0)
            if share == 1.0:
                weights[:] = 0
            weights[:, rest] += TOTAL - weights.sum(axis=1)
            if share == 1.0 or (weights.min() >= 0 and privacy.check_rows(weights[:, [rest]]).passed):
                break
            share *= 2
        return cls(domain, tuple(outputs), Table(weights), privacy.metric)

    def guarantee(self) -> Any:
        """Metric privacy with about the least eps per unit; None where an output is possible for some inputs alone."""
        weights = self.table.weights[:, self.table.weights.max(axis=0) > 0]
        if not weights.all():
            return None
        i, j = self.metric.pairs
        steps = np.zeros(i.size)
        for column in weights.T:  # differences of integers, as ratios may be next to 1
            low = np.minimum(column[i], column[j])
            steps = np.maximum(steps, np.log1p((np.maximum(column[i], column[j]) - low) / low))
        eps = float((steps / self.metric.array[i, j]).max())
        excess = 1e-14
        while True:  # floats guess it, the exact test confirms it
            found = MetricLDP(eps * (1 + excess), self.metric)
            if found.check_rows(self.table.weights).passed:
                return found
            excess *= 8

    def __repr__(self) -> str:
        own = self.guarantee()
        told = "no metric privacy" if own is None else f"eps = {enclosures.rounded_up(own.eps, 6)} per unit of distance"
        return f"MetricMechanism on {self.domain}: {len(self.outputs)} outputs; {told}"

"""What interior-point methods share: how far a step can go, and Mehrotra's predictor and corrector."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

Parts = Sequence[np.ndarray]
Rest = TypeVar("Rest")


def length(values: Parts, moves: Parts) -> float:
    """How far one can go before an entry reaches 0."""
    return min(reach(value, move) for value, move in zip(values, moves, strict=True))


def reach(value: np.ndarray, move: np.ndarray) -> float:
    """The same for one array."""
    with np.errstate(all="ignore"):
        steepest = float(np.fmin.reduce(move / value, axis=None, initial=0.0))
    return -1 / steepest if steepest < 0 else np.inf


def complementarity(primal: Parts, slack: Parts) -> tuple[float, float]:
    """The sum of the products of primal values and their slacks, and its mean."""
    gap = sum(float(x @ s) for x, s in zip(primal, slack, strict=True))
    return gap, gap / sum(x.size for x in primal)


def advance(
    primal: Parts, slack: Parts, direction: Callable[[Parts], tuple[Parts, Rest, Parts]], share: float
) -> tuple[Parts, Parts, float, float, Rest]:
    """One predictor and corrector.

    **Arguments:** `direction(targets)`: moves of the primal values, of everything else, and of the slacks, for these changes of
    the products of values and slacks; `share`: of the way to the boundary that is gone at most.

    **Returns** the new values and slacks, how far each went, and the corrector's moves of everything else.
    """
    gap, mean = complementarity(primal, slack)
    if not gap > 0:
        raise np.linalg.LinAlgError("the products of values and slacks underflow")
    moves, _, slips = direction([-x * s for x, s in zip(primal, slack, strict=True)])
    ahead, behind = min(1.0, length(primal, moves)), min(1.0, length(slack, slips))
    after, _ = complementarity(
        [x + ahead * m for x, m in zip(primal, moves, strict=True)], [s + behind * n for s, n in zip(slack, slips, strict=True)]
    )  # fmt: skip
    centre = min(1.0, (after / gap) ** 3) * mean
    moves, rest, slips = direction(
        [centre - x * s - m * n for x, s, m, n in zip(primal, slack, moves, slips, strict=True)]
    )
    ahead, behind = min(1.0, share * length(primal, moves)), min(1.0, share * length(slack, slips))
    new = [x + ahead * m for x, m in zip(primal, moves, strict=True)]
    return new, [s + behind * n for s, n in zip(slack, slips, strict=True)], ahead, behind, rest

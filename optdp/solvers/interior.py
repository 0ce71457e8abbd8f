"""What interior-point methods share: how far a step can go, and Mehrotra's predictor and corrector."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

Rest = TypeVar("Rest")


def reach(value: np.ndarray, move: np.ndarray) -> float:
    """How far one can go before an entry reaches 0."""
    with np.errstate(all="ignore"):
        steepest = float(np.fmin.reduce(move / value, axis=None, initial=0.0))
    return -1 / steepest if steepest < 0 else np.inf


def advance(
    primal: np.ndarray, slack: np.ndarray, direction: Callable[[np.ndarray], tuple[np.ndarray, Rest, np.ndarray]], share: float
) -> tuple[np.ndarray, np.ndarray, float, Rest]:  # fmt: skip
    """One predictor and corrector.

    **Arguments:** `direction(targets)`: moves of the primal values, of everything else, and of the slacks, for these changes of
    the products of values and slacks; `share`: of the way to the boundary that is gone at most.

    **Returns** the new values and slacks, how far the slacks went, and the corrector's moves of everything else.
    """
    products = primal * slack
    gap = float(products.sum())
    if not gap > 0:
        raise np.linalg.LinAlgError("the products of values and slacks underflow")
    moves, _, slips = direction(-products)
    ahead, behind = min(1.0, reach(primal, moves)), min(1.0, reach(slack, slips))
    after = gap + ahead * float(moves @ slack) + behind * float(primal @ slips) + ahead * behind * float(moves @ slips)
    centre = min(1.0, max(after / gap, 0.0) ** 3) * gap / primal.size
    moves *= slips
    moves, rest, slips = direction(centre - products - moves)
    ahead, behind = min(1.0, share * reach(primal, moves)), min(1.0, share * reach(slack, slips))
    return primal + ahead * moves, slack + behind * slips, behind, rest

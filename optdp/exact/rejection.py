"""Rejection: what is not accepted is drawn again."""

from collections.abc import Callable

import numpy as np


def accepted(trial: Callable[[int], tuple[np.ndarray, np.ndarray]], size: int) -> np.ndarray:
    """So many draws, for a `trial` that gives as many as it is asked for, and the places of those that are drawn again."""
    found, again = trial(size)
    while again.size:
        found[again], left = trial(again.size)
        again = again[left]
    return found

"""How a solve ended. Imports nothing of the package."""

from __future__ import annotations

import enum


class Status(enum.Enum):
    """How a solve ended. The bracket [lower_bound, value] is valid whatever it says."""

    OPTIMAL = "the certified gap is within the tolerance"
    GAP = "the tolerance was not reached: the bracket is valid but wider"
    TIME_LIMIT = "the time limit stopped the solver: the bracket is valid but wider; raise time_limit"

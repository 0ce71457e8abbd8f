"""What designs minimise that is not a loss of the distance: the variance of an unbiased output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optdp.exact import require


@dataclass(frozen=True)
class Variance:
    """What a design of unbiased mechanisms minimises: the variance of the output at one input, or at the worst one.

    **Arguments:** `at`: the input, or None for the largest variance over all inputs.
    """

    at: float | None = None

    def __post_init__(self) -> None:
        if self.at is not None:
            object.__setattr__(self, "at", require.real("at", self.at))

    @property
    def name(self) -> str:
        """How it is called in reports."""
        return "worst-case variance" if self.at is None else f"variance at {self.at:g}"

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"type": "variance", "at": self.at}

    def __str__(self) -> str:
        return self.name


def variance_from_dict(data: dict[str, Any]) -> Variance:
    """The inverse of `Variance.to_dict`."""
    require.choice("loss type", data.get("type"), ("variance",))
    return Variance(data["at"])

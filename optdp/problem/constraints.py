"""What a problem asks of a mechanism beside privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from optdp.exact import Check, Number, Tagged, plain, require


class Candidate(Protocol):
    """What families and constraints ask of a mechanism; `optdp.mechanisms.base.Mechanism` has it."""

    pieces: int | None
    shapes: tuple[Any, Any] | None
    adds_noise: bool

    def support(self) -> tuple[Any, Any]:
        """(lowest, highest) output."""

    def check_unbiased(self) -> Check:
        """Whether E[Y | x] = x for every input."""

    def keeps_rule(self, rule: str, eps: Number | None) -> bool:
        """Whether a composite density keeps "uniform" or "pointwise" (`optdp.problem.families.Windows`)."""


class Constraint(Tagged, root=True):
    """A set of mechanisms. `adjective` stands before, `clause` after "mechanisms" in statements."""

    adjective: str = ""
    clause: str = ""

    def check(self, mechanism: Candidate) -> Check:
        """Whether the mechanism keeps it, in exact arithmetic."""
        raise NotImplementedError(f"{type(self).__name__} has no check")


@dataclass(frozen=True)
class Unbiased(Constraint):
    """E[Y | x] = x for every input x; outputs may then lie anywhere on the real line."""

    tag = "unbiased"
    adjective = "unbiased "

    def check(self, mechanism: Candidate) -> Check:
        return mechanism.check_unbiased()


@dataclass(frozen=True)
class Outputs(Constraint):
    """Outputs lie in [low, high]."""

    tag = "outputs"
    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            object.__setattr__(self, name, require.real("outputs", getattr(self, name)))
        if not self.low < self.high:
            allowed = "outputs must be a pair (lowest, highest) with lowest < highest"
            raise ValueError(f"outputs = ({self.low!r}, {self.high!r}) is not allowed: {allowed}")

    def check(self, mechanism: Candidate) -> Check:
        low, high = mechanism.support()
        told = f"outputs lie in [{plain(low)}, {plain(high)}], within [{plain(self.low)}, {plain(self.high)}]"
        return Check("outputs", bool(self.low <= low and high <= self.high), told)

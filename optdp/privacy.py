"""Privacy notions: what is promised, and the exact test of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optdp import _checks
from optdp.certificates import enclosures
from optdp.certificates.check import Check


@dataclass(frozen=True)
class LDP:
    """eps-local differential privacy: K(y|x) <= e^eps K(y|x') for all inputs x, x' and outputs y.

    **Arguments:** `eps` in (0, 30].
    """

    eps: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", _checks.epsilon(self.eps))

    def check(self, ratio: Fraction) -> Check:
        """Whether the largest likelihood ratio K(y|x)/K(y|x'), given exactly, is at most e^eps."""
        return Check(
            "privacy",
            enclosures.at_most_exp(ratio, self.eps),
            f"largest likelihood ratio {float(ratio):.17g} (exact rational) <= e^{self.eps:g}",
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"type": "ldp", "eps": self.eps}


def privacy_from_dict(data: dict[str, Any]) -> LDP:
    """The inverse of `to_dict`."""
    _checks.choice("privacy type", data.get("type"), ("ldp",))
    return LDP(data["eps"])

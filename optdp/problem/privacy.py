"""Privacy notions: what is promised, and the exact test of it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optdp.exact import enclosures, require
from optdp.exact.check import Check


@dataclass(frozen=True)
class LDP:
    """eps-local differential privacy: K(y|x) <= e^eps K(y|x') for all inputs x, x' and outputs y.

    **Arguments:** `eps` in (0, 30].
    """

    eps: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", require.epsilon(self.eps))

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


@dataclass(frozen=True)
class LIP:
    """eps-local information privacy for a prior P: e^-eps <= P(x) / P(x|y) <= e^eps for all categories x and outputs y.

    What anyone knows of a user's category after the output differs from what the prior says by a factor of at most
    e^eps, in both directions. With `lower_only` only posterior >= e^-eps prior is asked for: no category may be ruled
    out, but one may be revealed. eps-LDP implies eps-LIP, which implies 2 eps-LDP.

    **Arguments:** `eps` in (0, 30]; `lower_only`.
    """

    eps: float
    lower_only: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", require.epsilon(self.eps))

    def check(self, lowest: Fraction, highest: Fraction, where: tuple[str, str] = ("", "")) -> Check:
        """Whether posterior / prior, which lies in [lowest, highest] exactly, keeps the promise.

        `where` says at which category and output the two ends are attained.
        """
        from_below = lowest > 0 and enclosures.at_most_exp(1 / lowest, self.eps)
        from_above = self.lower_only or enclosures.at_most_exp(highest, self.eps)
        sides = [
            f"lowest posterior/prior {float(lowest):.17g}{where[0]} {'>=' if from_below else '< '} e^-{self.eps:g}"
        ]
        if not self.lower_only:
            sides.append(
                f"highest posterior/prior {float(highest):.17g}{where[1]} {'<=' if from_above else '> '} e^{self.eps:g}"
            )
        return Check("privacy", from_below and from_above, ", ".join(sides) + " (exact rationals)")

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"type": "lip", "eps": self.eps, "lower_only": self.lower_only}


@dataclass(frozen=True)
class ApproxDP:
    """(eps, delta)-differential privacy: P(M(x) in S) <= e^eps P(M(x') in S) + delta whenever |x - x'| <= sensitivity.

    **Arguments:** `eps` in [0, 30] and `delta` in [0, 1), not both 0; `sensitivity` > 0.
    """

    eps: float
    delta: float = 0.0
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", require.epsilon(self.eps, zero=True))
        object.__setattr__(self, "delta", require.real("delta", self.delta, low=0.0, high=1.0, open_high=True))
        object.__setattr__(self, "sensitivity", require.real("sensitivity", self.sensitivity, low=1e-150, high=1e150))
        if self.eps == 0 and self.delta == 0:
            raise ValueError("eps = 0, delta = 0 is not allowed: no noise hides everything, so one of them must be > 0")

    def check(self, divergence: Fraction) -> Check:
        """Whether the largest hockey-stick divergence, bounded from above exactly, is at most delta."""
        return Check(
            "privacy",
            divergence <= Fraction(self.delta),
            f"hockey-stick divergence at e^{self.eps:g} over all shifts up to {self.sensitivity:g} is at most "
            f"{float(divergence):.17g} (exact rational) <= delta = {self.delta:g}",
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"type": "approx", "eps": self.eps, "delta": self.delta, "sensitivity": self.sensitivity}


def privacy_from_dict(data: dict[str, Any]) -> LDP | LIP | ApproxDP:
    """The inverse of `to_dict`."""
    kind = require.choice("privacy type", data.get("type"), ("ldp", "lip", "approx"))
    if kind == "lip":
        return LIP(data["eps"], data["lower_only"])
    if kind == "approx":
        return ApproxDP(data["eps"], data["delta"], data["sensitivity"])
    return LDP(data["eps"])

"""Two pieces on an interval: why the uniform density cannot be beaten.

Let all inputs share one density f (two heights in a fixed order and mass 1 leave no other choice), say nonincreasing. At
the far input b the loss as a function of the output, L(b - y), is nonincreasing too, so by Chebyshev's sum inequality

    int f(y) L(b - y) dy  >=  int f  *  (1/D) int_0^D L  =  I(D)/D,

what the uniform density attains at both ends. (A nondecreasing f: the same at the other end.)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optdp.exact import enclosures
from optdp.exact.check import Check
from optdp.problem.losses import CustomLoss, Loss, loss_from_dict


@dataclass(frozen=True)
class ConstantCertificate:
    """The mean loss over the domain, seen from an end, bounds every mechanism that ignores its input."""

    eps: float
    loss: Loss
    reach: Fraction
    bound: float

    @classmethod
    def of(cls, eps: float, loss: Loss, reach: Fraction) -> ConstantCertificate:
        """The certificate with the largest float bound."""
        return cls(eps, loss, reach, _mean_loss(loss, reach))

    def concerns(self, privacy: Any, mechanism: Any) -> bool:
        """Whether the proof is about this promise and this mechanism's problem."""
        return bool(self.eps == privacy.eps and self.reach == mechanism.domain.exact_reach)

    def check(self) -> Check:
        """Compute I(D)/D again, enclosed, and compare."""
        return Check(
            "lower bound",
            self.bound <= _mean_loss(self.loss, self.reach),
            f"a two-piece density cannot depend on the input and loses at least {self.bound:.17g} (Chebyshev)",
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact."""
        return {
            "type": "constant",
            "eps": self.eps,
            "loss": self.loss.to_dict(),
            "reach": [str(self.reach.numerator), str(self.reach.denominator)],
            "bound": self.bound,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ConstantCertificate:
        """The inverse of `to_dict`."""
        reach = Fraction(int(data["reach"][0]), int(data["reach"][1]))
        return cls(data["eps"], loss_from_dict(data["loss"]), reach, data["bound"])


def _mean_loss(loss: Loss, reach: Fraction) -> float:
    """The largest float not above I(D)/D."""
    if isinstance(loss, CustomLoss):
        return float(loss.integral_bracket(float(reach))[0]) / float(reach) * (1 - 1e-14)
    from flint import ctx

    with ctx.workprec(enclosures.PRECISION):
        q = enclosures.ball(loss.exponent)
        return enclosures.round_down(enclosures.ball(reach) ** q / (q + 1))

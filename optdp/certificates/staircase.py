"""delta = 0, on the continuum: why no additive noise beats the staircase, by the bathtub dual of one period.

Let the sensitivity be 1, f the density of the noise folded onto [0, oo), b = e^-eps. Privacy says f(x) <= f(x')/b for
|x - x'| <= 1. Hence f(x + k) = b^k f(x) + (what exceeds it, r_j >= 0 from step j on), and for every t, with

    G(x) = sum_k b^k (L(x + k) - t),    E L - t = int_0^1 f G  +  sum_{j >= 1} int_0^1 r_j(x) G(x + j) dx.

G grows with x. If G(1) >= 0, the second part is >= 0; and f lies between c and c/b on [0, 1), so that the first is at least
c [int G_+ - int G_-/b], over [0, 1]. So t is a lower bound on E L for every eps-private noise if

    G(1) >= 0    and    int_0^1 G_+  >=  e^eps int_0^1 G_-.                                   (*)

The staircase (Geng and Viswanath, 2014) attains it. For L = |x| and x^2, sum_k b^k (x + k)^q is elementary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from flint import arb, ctx

from optdp.exact import enclosures
from optdp.exact.check import Check
from optdp.problem.losses import Power, loss_from_dict


@dataclass(frozen=True)
class StaircaseCertificate:
    """A threshold for which (*) holds: E L is at least that for every additive noise that is eps-private (delta = 0).

    **Arguments:** `eps`; `loss`: `Power(1)` or `Power(2)`; `sensitivity`; `threshold`, in units of the loss.
    """

    eps: float
    loss: Power
    sensitivity: float
    threshold: float

    @property
    def bound(self) -> float:
        """The lower bound that this certificate proves, if `check()` passes."""
        return self.threshold

    @classmethod
    def best(cls, eps: float, loss: Power, sensitivity: float) -> StaircaseCertificate:
        """The certificate with the largest threshold that can be proven, by bisection."""
        low, high = 0.0, 2.0
        while cls(eps, loss, 1.0, high)._holds():
            low, high = high, 2 * high
        while low < (middle := (low + high) / 2) < high:
            low, high = (middle, high) if cls(eps, loss, 1.0, middle)._holds() else (low, middle)
        found = cls(eps, loss, sensitivity, low * sensitivity**loss.exponent)
        return found if found._holds() else cls(eps, loss, sensitivity, found.threshold * (1 - 1e-15))

    def concerns(self, privacy: Any, mechanism: Any) -> bool:
        """Whether the proof is about this promise and this mechanism's problem."""
        promise = (self.eps, 0.0, self.sensitivity) == (privacy.eps, privacy.delta, privacy.sensitivity)
        return bool(promise and self.sensitivity == mechanism.domain.sensitivity and not mechanism.domain.discrete)

    def check(self) -> Check:
        """Prove (*) again from scratch, in ball arithmetic."""
        return Check(
            "lower bound",
            self._holds(),
            f"every additive noise that is {self.eps:g}-private has E {self.loss} at least {self.threshold:.17g} "
            "(bathtub of one period, ball arithmetic)",
        )

    def first_step(self) -> float:
        """Where G changes sign, in sensitivities: at the optimum, where the staircase's first step ends."""
        with ctx.workprec(enclosures.PRECISION):
            return float(self._root(enclosures.ball(-self.eps).exp(), self._scaled()).mid())

    def _scaled(self) -> arb:
        return enclosures.ball(self.threshold) / enclosures.ball(self.sensitivity) ** enclosures.ball(
            self.loss.exponent
        )

    def _root(self, b: arb, t: arb) -> arb:
        """Where (1 - b) G = 0; below 0 if G > 0 on the whole of [0, 1]."""
        odds = b / (1 - b)
        if self.loss.exponent == 1:
            return t - odds
        square = t - b / (1 - b) ** 2
        return square.sqrt() - odds if square > 0 else arb(-1)

    def _holds(self) -> bool:
        if self.loss.exponent not in (1.0, 2.0):
            return False
        with ctx.workprec(enclosures.PRECISION):
            b, t = enclosures.ball(-self.eps).exp(), self._scaled()
            odds = b / (1 - b)
            flat = odds if self.loss.exponent == 1 else b * (1 + b) / (1 - b) ** 2  # (1 - b) sum_k b^k k^q

            def integral(x: arb) -> arb:
                """(1 - b) int_0^x G."""
                rise = x**2 / 2 if self.loss.exponent == 1 else x**3 / 3 + x**2 * odds
                return rise + x * (flat - t)

            above = 1 + (flat if self.loss.exponent == 1 else 2 * odds + flat) - t  # (1 - b) G(1)
            root = self._root(b, t)
            deficit = arb(0) if root < 0 else -integral(root)
            return bool(above >= 0) and bool(integral(arb(1)) - (1 / b - 1) * deficit >= 0)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact."""
        return {
            "type": "staircase",
            "eps": self.eps,
            "loss": self.loss.to_dict(),
            "sensitivity": self.sensitivity,
            "threshold": self.threshold,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> StaircaseCertificate:
        """The inverse of `to_dict`."""
        return cls(data["eps"], loss_from_dict(data["loss"]), data["sensitivity"], data["threshold"])

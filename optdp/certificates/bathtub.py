"""The bathtub dual: one number t that proves a lower bound for every mechanism with bounded likelihood ratios.

Let f be the density that a mechanism uses at the worst input (an end of an interval, any point of a circle), as a
function of the output, and let L be the loss, a nondecreasing function of the distance D. If all mechanisms in the
class satisfy f(y) <= E f(y') for all outputs y, y' (E = e^eps: heights shared by all inputs make this the LDP
constraint), then with c = inf f

    int f L  =  t + int f (L - t)  >=  t + c [ int (L - t)_+  -  E int (t - L)_+ ],

so that a threshold t with

    int (L - t)_+  >=  E int (t - L)_+                                                        (*)

is a lower bound: no number of pieces, no choice of heights goes below it. At the optimum (*) is an equality and t is
the optimal value itself. On an interval seen from an end, and on a circle seen from any point, distances are spread
uniformly over [0, reach], so that (*) is one inequality between one-dimensional integrals over [0, reach].
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from flint import ctx

from optdp.exact import enclosures
from optdp.exact.check import Check
from optdp.problem.losses import CustomLoss, Loss, Power, loss_from_dict


@dataclass(frozen=True)
class BathtubCertificate:
    """A threshold t for which (*) holds: every mechanism in the class has worst-case loss at least t.

    **Arguments:** `eps`; `loss`; `reach`: the exact range of distances at the worst input; `threshold`: t, in units
    of the loss.
    """

    eps: float
    loss: Loss
    reach: Fraction
    threshold: float

    @property
    def bound(self) -> float:
        """The lower bound that this certificate proves, if `check()` passes."""
        return self.threshold

    @property
    def assumptions(self) -> str:
        """What the proof takes on trust, or an empty string."""
        if isinstance(self.loss, Power):
            return ""
        shape = "" if self.loss.shape is None else f" and {self.loss.shape}"
        return f"the loss is nondecreasing{shape} between the points at which it was sampled"

    def concerns(self, privacy: Any, mechanism: Any) -> bool:
        """Whether the proof is about this promise and this mechanism's problem."""
        return bool(self.eps == privacy.eps and self.reach == mechanism.domain.exact_reach)

    def check(self) -> Check:
        """Prove (*) again from scratch: in ball arithmetic for power losses, from sampled values for a user's loss."""
        margin = self._margin()
        how = "ball arithmetic" if isinstance(self.loss, Power) else f"provided that {self.assumptions}"
        return Check(
            "lower bound",
            margin >= 0,
            f"every mechanism with likelihood ratios <= e^{self.eps:g} loses at least {self.threshold:.17g} ({how})",
        )

    def _margin(self) -> float:
        """A float not above int (L - t)_+ - E int (t - L)_+, so that >= 0 is a proof."""
        if isinstance(self.loss, CustomLoss):
            return _sampled_margin(self.loss, self.eps, self.reach, self.threshold)
        return _power_margin(self.loss, self.eps, self.reach, self.threshold)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact."""
        return {
            "type": "bathtub",
            "eps": self.eps,
            "loss": self.loss.to_dict(),
            "reach": [str(self.reach.numerator), str(self.reach.denominator)],
            "threshold": self.threshold,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BathtubCertificate:
        """The inverse of `to_dict`."""
        reach = Fraction(int(data["reach"][0]), int(data["reach"][1]))
        return cls(data["eps"], loss_from_dict(data["loss"]), reach, data["threshold"])


def _power_margin(loss: Power, eps: float, reach: Fraction, threshold: float) -> float:
    # int (L - t)_+ - E int (t - L)_+ = int L - t reach - (E - 1) int (t - L)_+, where (t - L)_+ lives on [0, d], L(d) = t.
    with ctx.workprec(enclosures.PRECISION):
        q, t, span = enclosures.ball(loss.exponent), enclosures.ball(threshold), enclosures.ball(reach)
        if threshold <= 0:
            return 0.0  # losses are nonnegative: t = 0 needs no proof
        d = t ** (1 / q)
        deficit = t * d - d * t / (q + 1)
        return enclosures.round_down(span ** (q + 1) / (q + 1) - t * span - (enclosures.exp(eps) - 1) * deficit)


def _sampled_margin(loss: CustomLoss, eps: float, reach: Fraction, threshold: float) -> float:
    total, _ = loss.integral_bracket(float(reach))
    spread = float(enclosures.exp_above(eps) - 1) * loss.deficit_above(threshold)
    level = threshold * float(reach)
    return (float(total) - level - spread) - 1e-14 * (abs(float(total)) + level + spread)


def certify(loss: Loss, eps: float, reach: Fraction, estimate: float) -> BathtubCertificate:
    """The certificate of the largest threshold near `estimate` that can be proven.

    Starts at the estimate of the optimum and lowers it, an ulp at first and doubling, until the proof goes through;
    a poor estimate costs tightness, never validity.
    """
    step = abs(estimate) * 2.0**-53
    proven = BathtubCertificate(eps, loss, reach, estimate)
    refused = None
    while proven.threshold > 0 and proven._margin() < 0:
        refused = proven.threshold
        proven = BathtubCertificate(eps, loss, reach, max(0.0, refused - step))
        step *= 2
    for _ in range(20):  # doubling overshoots: walk back up
        middle = proven.threshold if refused is None else (proven.threshold + refused) / 2
        if refused is None or not proven.threshold < middle < refused:
            break
        trial = BathtubCertificate(eps, loss, reach, middle)
        if trial._margin() >= 0:
            proven = trial
        else:
            refused = middle
    return proven

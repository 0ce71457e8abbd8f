"""The dual of the kernel program on a finite alphabet: the same inequality as `optdp.certificates.kernel`, output by
output.

With multipliers lam_i >= 0 of the losses and nu_i of the masses, r_ij = lam_i L_ij - nu_i, and g_j = sum_i r_ij + (E
- 1) sum_i min(r_ij, 0), every eps-LDP mechanism has worst-case loss (average loss, if lam is the prior) at least

    ( sum_i nu_i + min(0, min_j g_j) ) / sum_i lam_i.

All of it is rational but e^eps, which enters through a rational above it.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from optdp.exact import enclosures
from optdp.exact.check import Check
from optdp.problem.losses import MatrixLoss


@dataclass(frozen=True)
class FiniteCertificate:
    """Multipliers that bound every eps-LDP mechanism on a finite alphabet.

    **Arguments:** `eps`; `loss`; `weights`: lam_i; `masses`: nu_i; `prior`: whether the weights are a prior that was
    given; `bound`: what is claimed.
    """

    eps: float
    loss: MatrixLoss
    weights: tuple[float, ...]
    masses: tuple[float, ...]
    prior: bool
    bound: float

    @classmethod
    def of(cls, eps: float, loss: MatrixLoss, weights: Any, masses: Any, prior: bool) -> FiniteCertificate:
        """The certificate of the bound that these multipliers are proven to give. Poor ones cost tightness, never
        validity.
        """
        lam = np.asarray(weights, dtype=float) if prior else np.maximum(weights, 0.0)
        draft = cls(eps, loss, tuple(lam.tolist()), tuple(np.asarray(masses, dtype=float).tolist()), prior, 0.0)
        return cls(eps, loss, draft.weights, draft.masses, prior, draft._proven() or 0.0)

    def concerns(self, privacy: Any, mechanism: Any) -> bool:
        """Whether the proof is about this promise, this alphabet's size and this prior."""
        same = mechanism.prior is None if not self.prior else self.weights == mechanism.prior
        return bool(self.eps == privacy.eps and same and mechanism.table.weights.shape == np.shape(self.loss.rows))

    def check(self) -> Check:
        """Prove the inequality again and compare it with `bound`."""
        proven = self._proven()
        return Check(
            "lower bound",
            proven is not None and self.bound <= proven,
            f"no {self.eps:g}-LDP mechanism has {'average' if self.prior else 'worst-case'} loss below "
            + ("anything: the multipliers prove nothing" if proven is None else f"{proven:.17g} (exact rationals)"),
        )

    def _proven(self) -> float | None:
        if (
            not len(self.loss.rows) == len(self.weights) == len(self.masses)
            or min(self.weights) < 0
            or sum(self.weights) <= 0
        ):
            return None
        growth = enclosures.exp_above(self.eps) - 1
        lam, nu = [Fraction(v) for v in self.weights], [Fraction(v) for v in self.masses]
        least = Fraction(0)
        for column in zip(*self.loss.rows, strict=True):
            r = [a * Fraction(v) - n for a, v, n in zip(lam, column, nu, strict=True)]
            least = min(least, sum(r) + growth * sum(min(v, Fraction(0)) for v in r))
        return max(0.0, enclosures.round_down((sum(nu) + least) / sum(lam)))

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact."""
        return {
            "type": "finite",
            "eps": self.eps,
            "loss": self.loss.to_dict(),
            "weights": list(self.weights),
            "masses": list(self.masses),
            "prior": self.prior,
            "bound": self.bound,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FiniteCertificate:
        """The inverse of `to_dict`."""
        return cls(
            data["eps"],
            MatrixLoss(data["loss"]["rows"]),
            tuple(data["weights"]),
            tuple(data["masses"]),
            data["prior"],
            data["bound"],
        )

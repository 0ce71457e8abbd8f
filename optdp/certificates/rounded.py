"""A lower bound on noise on the integers from one on noise on the line.

**Proof.** Let X be integer noise that keeps a notion at all shifts of at most D, and let U be uniform on [-1/2, 1/2). X + U keeps
it on the line: for a shift d, X + U and X + d + U have parts beyond the integers that are alike in law, and given these, their
integers are those of X and of X + m, m next to d, |m| <= D. Hockey-stick, Kullback-Leibler and Renyi divergences of pairs which
are mixed alike are at most the largest of those of the parts. So X + U is noise of the same problem on the line: E B(|X + U|) is
at least what is proven there, and it exceeds E L(|X|) by little (`optdp.problem.rounding`).

**The chance of 0.** Under (eps, delta) each of the 2D integers next to 0 has a probability of at least (P(X = 0) - delta)/E:
P(X = 0) <= (E + 2 D delta)/(E + 2 D). Gaussian DP has such pairs, and a Kullback-Leibler divergence of at most r is a total
variation of at most (r/2)^(1/2) (Pinsker).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from flint import arb, ctx

from optdp.certificates.additive import not_noise, on_integers
from optdp.certificates.base import Bound, Certificate
from optdp.exact import enclosures
from optdp.problem import GDP, KL, RDP, ApproxDP, Curve, Integers, Line, Problem
from optdp.problem.privacy import gauss_tail
from optdp.problem.rounding import on_line, spread

#: The eps for which pairs of Gaussian DP are tried, in units of mu.
TRIED = (1, 2, 3, 4)


@dataclass(frozen=True)
class RoundedCertificate(Certificate):
    """A proof about noise on the line.

    **Arguments:** `proof`: a certificate for the problem on the `Line` with the loss `optdp.problem.rounding.on_line`.
    """

    tag = "rounded"
    proof: Certificate

    def bound(self, problem: Problem) -> Bound:
        problem = on_integers(problem)
        if reason := not_noise(problem):
            self._refuse(reason)
        if not isinstance(problem.domain, Integers):
            self._refuse("the domain must be the integers")
        objective, loss = problem.objective, problem.objective.loss
        try:
            line = replace(problem, domain=Line(), objective=replace(objective, loss=on_line(loss)))
            found = self.proof.bound(line)
            with ctx.workprec(enclosures.PRECISION):
                less = spread(loss, found.value, rarest(problem.privacy))
                value = max(0.0, enclosures.round_down(enclosures.ball(found.value) - less))
        except ValueError as error:  # a refusal, or a loss of which too little is known
            self._refuse(str(error))
        return Bound(value, f"integers spread over units: {found.method}", found.assumptions)


def rarest(privacy: Any) -> Fraction:
    """At most so probable is it that noise on the integers is 0."""
    given: list[tuple[arb, arb]] = []  # (E, delta)
    if isinstance(privacy, GDP):
        mu = enclosures.ball(privacy.mu)
        for share in TRIED:
            ratio = (share * mu).exp()
            given.append((ratio, gauss_tail(share - mu / 2) - ratio * gauss_tail(share + mu / 2)))
    elif isinstance(privacy, KL | RDP):  # of Renyi divergences, that of Kullback and Leibler is the least
        given = [(arb(1), (enclosures.ball(privacy.bound) / 2).sqrt())]
    elif isinstance(privacy, ApproxDP):
        given = [(enclosures.exp(privacy.eps), enclosures.ball(privacy.delta))]
    else:
        pairs = privacy.points if isinstance(privacy, Curve) else privacy.pairs
        given = [(enclosures.exp(e), enclosures.ball(d)) for e, d in pairs]
    around = 2 * enclosures.ball(privacy.sensitivity)
    return min(Fraction(1), *(enclosures.upper((ratio + around * delta) / (ratio + around)) for ratio, delta in given))

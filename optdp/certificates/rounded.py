"""A lower bound on noise on the integers from one on noise on the line.

**Proof.** Let X be integer noise that keeps a notion at all shifts of at most D, and let U be uniform on [-1/2, 1/2). X + U keeps
it on the line: for a shift d, X + U and X + d + U have parts beyond the integers that are alike in law, and given these, their
integers are those of X and of X + m, m next to d, |m| <= D. Hockey-stick, Kullback-Leibler and Renyi divergences of pairs which
are mixed alike are at most the largest of those of the parts. So X + U is noise of the same problem on the line: E B(|X + U|) is
at least what is proven there, and it exceeds E L(|X|) by little (`optdp.problem.rounding`).

**The chance of 0.** The 2D integers next to 0 are translates of it. If the notion does not admit that a and a 2D-th of what is
left, (1 - a)/(2D) < a, are exchanged, each of them has more than that part wherever P(X = 0) >= a
(`optdp.certificates.packing`), and all together more than 1: P(X = 0) < a. Under (eps, delta) that is what
P(X = 0) <= (E + 2 D delta)/(E + 2 D) says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from flint import ctx

from optdp.certificates.additive import not_noise, on_integers
from optdp.certificates.base import Bound, Certificate
from optdp.certificates.packing import exchanges
from optdp.exact import enclosures
from optdp.exact.numbers import border
from optdp.problem import Integers, Line, Problem
from optdp.problem.rounding import on_line, spread

#: So many times as probable as the integers next to it 0 is assumed to be, to find a number that is too large.
LARGEST = tuple(2.0**k for k in range(1, 200, 9))


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
    around = 2 * int(privacy.sensitivity)

    def proven(ratio: float) -> bool:
        """Whether 0 is less than `ratio` times as probable as the 2D integers next to it are on average."""
        share = Fraction(ratio) / (Fraction(ratio) + around)
        return ratio > 1 and exchanges(privacy, share, (1 - share) / around)

    most = next((x for x in LARGEST if proven(x)), math.inf)
    if math.isinf(most):
        return Fraction(1)
    ratio = Fraction(border(lambda x: not proven(x), 1.0, most)[1])
    return ratio / (ratio + around)

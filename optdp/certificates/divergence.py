"""Additive noise under a bound on its KL or Renyi divergence: a lower bound from convexity and homogeneity alone.

Let X be noise whose divergence from X + d is bounded for all |d| <= Delta = 1. As in steps 1 and 2 of
`optdp.certificates.additive`, its rounding to the lattice hZ, h = 1/n, is symmetric noise with masses p_i, costs at most E L(X)
under the costs c_i (ties have no probability: where all divergences are finite, an atom of X is one of X + d for every d, and
there are countably many), and has for s = 1..n

    F_s(p) = sum_i f(p_i, p_(i+s)) <= limit,

with f(p, q) = p log(p/q) and limit r for KL(r), and f(p, q) = p^alpha q^(1-alpha), limit e^((alpha-1) r) for RDP(alpha, r). f is
convex and homogeneous of degree 1, so that for every ratio rho > 0, and all p, q >= 0,

    f(p, q) >= A(rho) p + B(rho) q,      A = log rho + 1, B = -rho   (KL),      A = alpha rho^(alpha-1), B = -(alpha-1) rho^alpha.

Divided by the limit, which for Renyi divergences may be e^10000, all of this is of order 1: F_s(p)/limit <= 1, and A and B are
divided by the limit, too. With multipliers lam_s >= 0 and any ratio for each pair (i, i+s), the same at (-i, -i-s), a = |i|,

    E L(X) >= sum_a p_a [c_a + sum_s lam_s/2 (A's and B's of the four pairs that a is in)] - sum_s lam_s,

so that the least bracket minus sum_s lam_s is a lower bound. There is nothing to be feasible. Up to a distance K the ratios
are w_i/w_(i+s) for a reference noise w. A pair that reaches beyond K has the ratio 1, except those of shift n: sigma^-1 inwards,
where sigma = w_(K-n)/w_K, and outwards R_a, from a to a + n, which makes B(R_a) cost just what c_(a+n) exceeds `level` by,

    lam_n (-B(R_a)) = 2 (c_(a+n) - level) + C,

C being what all other pairs put on a point beyond K, counting A(sigma) for A(R_(a+n)). The bracket of a + n is then
level + lam_n (A(R_(a+n)) - A(sigma))/2, at least `level` if R >= sigma: R_a grows with a, and A with R. So the minimum is
that over a <= K, or `level`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
from flint import arb, ctx

from optdp.certificates.additive import SCALE, lattice_costs, not_noise, scaled
from optdp.certificates.base import Bound, Certificate
from optdp.exact import Within, enclosures, plain, work
from optdp.problem import KL, RDP, Integers, Problem

#: What a file may ask of the proof: points of the reference, and points times shifts.
POINTS, MOST = 20_000, 2_000_000
#: Working precision in bits.
BITS = 96


def supports(privacy: KL | RDP) -> Callable[[arb, arb], tuple[arb, arb]]:
    """(rho, log rho) -> (A, B), the linear function below f, over the limit: for the KL divergence or the notion's moment."""
    bound = enclosures.ball(privacy.bound)
    if isinstance(privacy, KL):
        return lambda rho, log: ((log + 1) / bound, -rho / bound)
    order = enclosures.ball(privacy.alpha)

    def linear(rho: arb, log: arb) -> tuple[arb, arb]:
        power = ((log - bound) * (order - 1)).exp()
        return order * power, (1 - order) * power * rho

    return linear


@dataclass(frozen=True)
class DivergenceCertificate(Certificate):
    """Multipliers of the shifts and a reference noise on a lattice of n points per sensitivity.

    **Arguments:** `multipliers`: lam_1..lam_n of F_s/limit, in units in which the sensitivity is 1 and the loss is
    L(sensitivity x), over sensitivity^q for a power; `reference`: w_0, w_1, ..., w_K > 0; `level`: see above.
    """

    tag = "divergence"
    n: Annotated[int, Within(1, 1000)]
    multipliers: Annotated[tuple[float, ...], Within(0.0, least=1, most=1000)]
    reference: Annotated[tuple[float, ...], Within(0.0, least=1, most=POINTS)]
    level: Annotated[float, Within(0.0)]

    def bound(self, problem: Problem) -> Bound:
        privacy: Any = problem.privacy
        if reason := not_noise(problem):
            self._refuse(reason)
        if not isinstance(privacy, KL | RDP):
            self._refuse("the privacy must be KL or RDP")
        loss, discrete = problem.objective.loss, isinstance(problem.domain, Integers)
        if loss.assumptions:
            self._refuse("the loss must be a power or piecewise polynomial: noise is unbounded")
        if discrete and self.n != privacy.sensitivity:
            self._refuse(f"on the integers n = {self.n} must be the sensitivity {plain(privacy.sensitivity)}")
        size, shifts = len(self.reference), sum(lam > 0 for lam in self.multipliers)
        if len(self.multipliers) != self.n or size <= self.n or (size + 3 * self.n) * shifts > MOST:
            told = f"there must be {self.n} multipliers, and between {self.n} and {POINTS} points of the reference"
            self._refuse(told)
        known = np.isfinite([*self.reference, *self.multipliers, self.level]).all()
        if not known or min(*self.reference, self.multipliers[-1]) <= 0:
            self._refuse("the reference and the last multiplier must be positive, and all numbers finite")
        with ctx.workprec(BITS):
            value = self._ball(problem)
            found = scaled(problem, value) if value.is_finite() else 0.0
        where = "the integers" if discrete else f"a lattice of {self.n} points per sensitivity"
        return Bound(max(0.0, found), f"convexity and homogeneity of the divergence on {where}, ball arithmetic")

    def _ball(self, problem: Problem) -> arb:
        """t - sum lam for sensitivity 1, at the working precision."""
        privacy: Any = problem.privacy
        n, edge = self.n, len(self.reference) - 1
        discrete = isinstance(problem.domain, Integers)
        work.count(60 * (edge + n) + 2.5 * (2 * edge + n) * sum(lam > 0 for lam in self.multipliers))
        exact = lattice_costs(problem.objective.loss, privacy.sensitivity, n, edge + n, discrete)
        costs = [arb(int(c)) / 2**SCALE for c in exact]
        w, level = [arb(x) for x in self.reference], arb(self.level)
        logs = [x.log() for x in w]  # few of them, of many pairs
        linear = supports(privacy)
        sigma = [*[arb(1)] * (n - 1), w[edge - n] / w[edge]]
        far = [(linear(x, x.log()), linear(1 / x, -x.log())) for x in sigma]  # of pairs beyond K: outwards, inwards
        put = sum(
            (lam * (a + b + c + d) for lam, ((a, b), (c, d)) in zip(self.multipliers[:-1], far[:-1], strict=True)),
            arb(0),
        )
        put += self.multipliers[-1] * (far[-1][0][0] + sum(far[-1][1], arb(0)))
        total = [arb(0)] * (edge + 1)  # lam_s times the A's and B's, at i and at -i
        for s, lam in enumerate(self.multipliers, 1):
            if lam <= 0:
                continue
            for a in range(-edge, edge + 1):  # the pair from |a| to |a + s|, of the points a and a + s
                there = abs(a + s)
                if there <= edge:
                    p, q = linear(w[abs(a)] / w[there], logs[abs(a)] - logs[there])
                    total[abs(a)] += lam * p * (2 if a == 0 else 1)
                    total[there] += lam * q * (2 if there == 0 else 1)
                    continue
                outward, inward = far[s - 1]
                own = outward[0]
                if s == n:
                    least = (2 * (costs[there] - level) + put) / lam
                    own = self._outer(least, privacy, sigma[-1])
                total[a] += lam * (own + inward[1]) * (2 if a == 0 else 1)
        brackets = [c + x / 2 for c, x in zip(costs, total, strict=False)]
        least = min([*map(enclosures.lower, brackets), enclosures.lower(level)])
        return enclosures.ball(least) - sum(map(arb, self.multipliers), arb(0))

    def _outer(self, worth: arb, privacy: KL | RDP, least: arb) -> arb:
        """A(R) for the ratio R with -B(R) = worth. Refused unless R is at least `least`."""
        bound = enclosures.ball(privacy.bound)
        if isinstance(privacy, KL):
            ratio = worth * bound
        else:
            order = enclosures.ball(privacy.alpha)
            ratio = ((worth / (order - 1)).max(arb(0)) * ((order - 1) * bound).exp()) ** (1 / order)
        if not ratio >= least:
            self._refuse("beyond the reference the costs do not exceed the level by enough")
        return supports(privacy)(ratio, ratio.log())[0]

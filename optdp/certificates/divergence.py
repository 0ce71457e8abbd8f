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

Where the reference goes on instead, w_(a+n) = `fall` w_a for a > K - n, the ratios of all pairs of a point a > K are those of the
pairs of a + n, and brackets grow as costs do: the minimum is that over a <= K + n, and no level is needed. That is for losses
that are constant far out.

Rounded to "bins", X goes to the one of (ah, (a+1)h) that it falls in, as in `optdp.certificates.additive`: the points a and
-1 - a are at the same distance, which no point has for itself, and all of the above holds. Nothing is lost by it where the loss
changes at multiples of h alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal

from flint import arb, ctx

from optdp.certificates.additive import SCALE, lattice_costs, not_noise, on_integers, scaled
from optdp.certificates.base import Bound, Certificate
from optdp.exact import OPTIONAL, Within, enclosures, plain, work
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
    L(sensitivity x), over sensitivity^q for a power; `reference`: w_0, w_1, ..., w_K > 0; `level`, `rounding`,
    `fall` (0: it does not go on): see above; `kl`: whether it is about the KL divergence, also where that of Renyi is bounded,
    which is no smaller.
    """

    tag = "divergence"
    n: Annotated[int, Within(1, 1000)]
    multipliers: Annotated[tuple[float, ...], Within(0.0, least=1, most=1000)]
    reference: Annotated[tuple[float, ...], Within(0.0, least=1, most=POINTS)]
    level: Annotated[float, Within(0.0)]
    rounding: Literal["nodes", "bins"] = field(default="nodes", metadata=OPTIONAL)
    fall: Annotated[float, Within(0.0, 1.0, open_high=True)] = field(default=0.0, metadata=OPTIONAL)
    kl: bool = field(default=False, metadata=OPTIONAL)

    def bound(self, problem: Problem) -> Bound:
        problem = on_integers(problem)
        privacy: Any = problem.privacy
        if reason := not_noise(problem):
            self._refuse(reason)
        if not isinstance(privacy, KL | RDP):
            self._refuse("the privacy must be KL or RDP")
        if self.kl and isinstance(privacy, RDP):
            problem = replace(problem, privacy=KL(privacy.bound, privacy.sensitivity))
            privacy = problem.privacy
        loss, discrete = problem.objective.loss, isinstance(problem.domain, Integers)
        if loss.assumptions:
            self._refuse("the loss must be a power or piecewise polynomial: noise is unbounded")
        if discrete and self.n != privacy.sensitivity:
            self._refuse(f"on the integers n = {self.n} must be the sensitivity {plain(privacy.sensitivity)}")
        if self.rounding not in ("nodes", *["bins"] * (not discrete)):
            self._refuse("the rounding must be to nodes, or on the line to bins")
        size, shifts = len(self.reference), sum(lam > 0 for lam in self.multipliers)
        if len(self.multipliers) != self.n or size <= self.n or (size + 5 * self.n) * shifts > MOST:
            told = f"there must be {self.n} multipliers, and between {self.n} and {POINTS} points of the reference"
            self._refuse(told)
        if min(*self.reference, self.multipliers[-1]) <= 0:
            self._refuse("the reference and the last multiplier must be positive")
        with ctx.workprec(BITS):
            value = self._ball(problem)
            found = scaled(problem, value) if value.is_finite() else 0.0
        where = "the integers" if discrete else f"a lattice of {self.n} points per sensitivity"
        return Bound(max(0.0, found), f"convexity and homogeneity of the divergence on {where}, ball arithmetic")

    def _ball(self, problem: Problem) -> arb:
        """t - sum lam for sensitivity 1, at the working precision."""
        privacy: Any = problem.privacy
        n, edge = self.n, len(self.reference) - 1 + 2 * self.n * (self.fall > 0)
        discrete = isinstance(problem.domain, Integers)
        work.count(60 * (edge + n) + 2.5 * (2 * edge + n) * sum(lam > 0 for lam in self.multipliers))
        exact = lattice_costs(problem.objective.loss, privacy.sensitivity, n, edge + n, discrete, self.rounding)
        costs = [arb(int(c)) / 2**SCALE for c in exact]
        w, level = [arb(x) for x in self.reference], arb(self.level)
        while len(w) <= edge:
            w.append(w[-n] * arb(self.fall))
        logs = [x.log() for x in w]  # few of them, of many pairs
        linear = supports(privacy)
        sigma = [*[arb(1)] * (n - 1), w[edge - n] / w[edge]]
        far = [(linear(x, x.log()), linear(1 / x, -x.log())) for x in sigma]  # of pairs beyond K: outwards, inwards
        put = sum(
            (lam * (a + b + c + d) for lam, ((a, b), (c, d)) in zip(self.multipliers[:-1], far[:-1], strict=True)),
            arb(0),
        )
        put += self.multipliers[-1] * (far[-1][0][0] + sum(far[-1][1], arb(0)))
        total = [arb(0)] * (edge + 1)  # lam_s times the A's and B's, at i and at its mirror image
        bins = self.rounding == "bins"
        for s, lam in enumerate(self.multipliers, 1):
            if lam <= 0:
                continue
            put_on = [arb(0)] * (edge + 1)
            for a in range(-edge - bins, edge + 1):  # the pair of the points a and a + s, and how far out they are
                here, there = a if a >= 0 else -a - bins, a + s if a + s >= 0 else -a - s - bins
                if there <= edge:
                    p, q = linear(w[here] / w[there], logs[here] - logs[there])
                    put_on[here] += p
                    put_on[there] += q
                elif not self.fall:  # where the reference goes on, what is beyond it is not asked for
                    outward, inward = far[s - 1]
                    own = outward[0]
                    if s == n:
                        least = (2 * (costs[there] - level) + put) / lam
                        own = self._outer(least, privacy, sigma[-1])
                    put_on[here] += own + inward[1]
            total = [x + lam * y for x, y in zip(total, put_on, strict=True)]
        if not bins:
            total[0] *= 2  # only one point is there
        brackets = [enclosures.lower(c + x / 2) for c, x in zip(costs, total, strict=False)]
        least = min(brackets[:-n]) if self.fall else min(*brackets, enclosures.lower(level))
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

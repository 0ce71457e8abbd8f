"""The optimum over all unbiased mechanisms made of a fixed base and a bump that follows the input: one variable is left.

Inputs are x in [-1, 1]. Outputs live in [-B, B]: with probability pi from the base density (shape g, spread mu), otherwise
Y = k x + a U with U from the activation's density (shape h, fill c, spread v). Write w = a/B for the window's share.

- *Unbiased* iff (1 - pi) k = 1. *Within the range* iff B >= k + a; at fixed w everything below grows with B, so B = k/(1 - w).
- *Private* iff peak of the bump over the floor is bounded: (1 - pi)/pi <= s w, where, with E = e^eps, level l and dip d of g,
  s = (E d - 1) c / l if the density's sup and inf over all outputs and inputs must keep the ratio E (composite paper,
  Definition 3.3), s = (E - 1) d c / l if the ratio is kept output by output (what LDP asks). They agree for a constant base.
  At fixed w the variance decreases in s, so the bound is met with equality.

Hence pi = 1/(1 + s w), k = 1 + 1/(s w), and the variance at x is one rational function of w in (0, 1),

    V(w) = x^2/(s w) + (1 + s w)(mu + s v w^3) / (s^2 w^2 (1 - w)^2),

so that t <= inf V iff the polynomial x^2 s w (1 - w)^2 + (1 + s w)(mu + s v w^3) - t s^2 w^2 (1 - w)^2 is >= 0 on [0, 1].
I-PTT and A1B1 have c = 1, v = 1/3; II-PTT and A3B1 c = 1/2, v = 1/6; A2B1 c = 2/pi, v = 1 - 8/pi^2.

**B2 never beats B1.** For g = 1 - (1 - e) u^4 (e in (0, 1) its value at the ends), up to constants s ~ (E e - 1)/(4 + e)
(or e/(4 + e), output by output) and mu = (5/21)(4 + 3 e)/(4 + e). V is a sum of terms that decrease in s, and one of them
times mu; that one decreases in e because d log s/de >= 1/e - 1/(4 + e) = 4/(e (4 + e)) exceeds d log mu/de =
8/((4 + 3 e)(4 + e)). So at every w V decreases as e grows to 1, where B2 is B1: the same infimum, not attained by B2.

**"free": any bump, any range.** Let the density lie between a constant floor f and E f on any interval [r - B, r + B], in
whatever way it depends on x. For each x, the density with mass 1 and mean x that has the least second moment is E f on an
interval and f elsewhere (bathtub with two constraints), of the same length for every x: a rectangular window, which fits into
the range iff x can be the mean at all. This leaves (w, r). With A = 1/(s w), Q = (1 + s w)(1 + s w^3)/(3 s^2 w^2 (1 - w)^2),
s = E - 1, the range must be wide enough for both ends, B = k(1 + |r|)/(1 - w), and

    V(w, r) = A (x - r)^2 + Q (1 + |r|)^2.

Its worst case over x is least at r = 0: kind "I". At a given x >= 0 it is least at r = max(0, (A x - Q)/(A + Q)), of value
A Q (1 + x)^2/(A + Q) if A x > Q, else A x^2 + Q: again one variable, and the former is a lower bound in both cases.
(Wherever it was tried the certified optimum has r = 0: a range that is not centred never paid.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from flint import arb, arb_poly, ctx

from optdp.exact import enclosures, polynomial
from optdp.exact.check import Check
from optdp.problem.domains import Interval, domain_from_dict
from optdp.problem.objectives import Variance, variance_from_dict
from optdp.problem.shapes import Rectangle, Shape, base_name, shape_from_dict

Rule = Literal["uniform", "pointwise"]


@dataclass(frozen=True)
class BumpClass:
    """A class of mechanisms and what is minimised over it.

    **Arguments:** `eps`; `activation`, `base`: shapes, base "B2" for all quartic bases; `domain`: the inputs; `loss`: the
    variance at one of them or at the worst; `rule`: how the likelihood ratio is bounded; `free`: any bump, any range.
    """

    eps: float
    activation: Shape
    base: Shape | str
    domain: Interval
    loss: Variance
    rule: Rule = "uniform"
    free: bool = False

    @property
    def half(self) -> Fraction:
        """Half the width of the domain: the unit in which inputs are in [-1, 1]."""
        return self.domain.exact_width / 2

    @property
    def position(self) -> Fraction:
        """The input of the objective in [-1, 1], without sign; 1 for the worst case."""
        if self.loss.at is None:
            return Fraction(1)
        middle = (Fraction(self.domain.lower) + Fraction(self.domain.upper)) / 2
        return abs((Fraction(self.loss.at) - middle) / self.half)

    @property
    def shifts(self) -> bool:
        """Whether moving the range can pay: only where any range is allowed and one input counts."""
        return self.free and self.loss.at is not None

    @property
    def standing(self) -> Shape:
        """The base itself; for "B2" the constant that its class approaches."""
        return Rectangle() if isinstance(self.base, str) else self.base

    def slope(self) -> arb:
        """s, at the working precision."""
        return slope(self.eps, self.activation, self.standing, self.rule)

    def parts(self) -> tuple[arb_poly, arb_poly, arb_poly]:
        """Polynomials a, q, d in w with A = a/d and Q = q/d: V = A x^2 + Q."""
        s, v, mu = self.slope(), self.activation.spread(), self.standing.spread()
        w = arb_poly([0, 1])
        a = s * w * (1 - w) ** 2
        q = (1 + s * w) * (mu + s * v * w**3)
        return a, q, s**2 * w**2 * (1 - w) ** 2

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact."""
        return {
            "eps": self.eps,
            "activation": self.activation.to_dict(),
            "base": self.base if isinstance(self.base, str) else self.base.to_dict(),
            "domain": self.domain.to_dict(),
            "loss": self.loss.to_dict(),
            "rule": self.rule,
            "free": self.free,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BumpClass:
        """The inverse of `to_dict`."""
        domain = domain_from_dict(data["domain"])
        if not isinstance(domain, Interval):
            raise ValueError("domain = a circle is not allowed: unbiased mechanisms live on an interval")
        base = data["base"] if isinstance(data["base"], str) else shape_from_dict(data["base"])
        return cls(data["eps"], shape_from_dict(data["activation"]), base, domain, variance_from_dict(data["loss"]),
                   data["rule"], data["free"])  # fmt: skip


def slope(eps: float, activation: Shape, base: Shape, rule: Rule) -> arb:
    """s: the largest odds of the bump against the base, per unit of the window's share."""
    growth = enclosures.ball(eps).expm1()
    dip = enclosures.ball(base.dip())
    room = (growth + 1) * dip - 1 if base.dip() != 1 and rule == "uniform" else growth * dip
    return room * activation.level() / base.level()


@dataclass(frozen=True)
class BumpCertificate:
    """A threshold that no mechanism of the class beats, proven by the positivity of a polynomial on [0, 1]."""

    problem: BumpClass
    threshold: float

    @property
    def bound(self) -> float:
        """The lower bound that this certificate proves, if `check()` passes."""
        return self.threshold

    @property
    def loss(self) -> Variance:
        """What is minimised."""
        return self.problem.loss

    def concerns(self, privacy: Any, mechanism: Any) -> bool:
        """Whether the proof is about this promise and this mechanism's problem."""
        return bool(self.problem.eps == privacy.eps and self.problem.domain == mechanism.domain)

    def check(self) -> Check:
        """Prove the polynomial positive again, from scratch."""
        problem = self.problem
        what = "any bump and output range" if problem.free else f"activation {problem.activation}"
        return Check(
            "lower bound",
            self._holds(),
            f"every unbiased mechanism with {what}, base {base_name(problem.base)} and likelihood ratio e^{problem.eps:g} "
            f"has {self.loss} at least {self.threshold:.17g} (Bernstein coefficients in ball arithmetic)",
        )

    def _holds(self) -> bool:
        if self.threshold <= 0:
            return True  # variances are not negative
        with ctx.workprec(enclosures.PRECISION):
            a, q, d = self.problem.parts()
            t = enclosures.ball(Fraction(self.threshold) / self.problem.half**2)
            x = enclosures.ball(self.problem.position)
            still = a * x**2 + q - t * d
            if not self.problem.shifts:
                return polynomial.positive(still)
            # Either the shifted optimum is above t (always a lower bound), or no shift pays and the still one is.
            shifted = a * q * (1 + x) ** 2 - t * d * (a + q)
            return polynomial.proven_everywhere([shifted, q - a * x, still], _free_holds, _free_fails)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact."""
        return {"type": "bump", "problem": self.problem.to_dict(), "threshold": self.threshold}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> BumpCertificate:
        """The inverse of `to_dict`."""
        return cls(BumpClass.from_dict(data["problem"]), data["threshold"])


def _free_holds(piece: Sequence[Sequence[arb]]) -> bool:
    shifted, stays, still = piece
    if all(bool(c > 0) for c in shifted):
        return True
    return all(bool(c >= 0) for c in stays) and all(bool(c > 0) for c in still)


def _free_fails(values: Sequence[arb]) -> bool:
    shifted, stays, still = values
    return bool(still < 0) or (bool(stays < 0) and bool(shifted < 0))


def certify(problem: BumpClass, estimate: float) -> BumpCertificate:
    """The certificate of the largest threshold near `estimate` that can be proven.

    Starts at the estimate and lowers it, an ulp at first and doubling, until the proof goes through.
    """
    step = abs(estimate) * 2.0**-53
    proven = BumpCertificate(problem, estimate)
    while not proven._holds():
        proven = BumpCertificate(problem, max(0.0, proven.threshold - step))
        step *= 2
    return proven


def optimum(problem: BumpClass) -> tuple[float, float, float]:
    """(w, r, V): window share, shift of the range and variance (in units of the domain) at the minimum, to double precision.

    Every stationary point of V in (0, 1) is a root of a polynomial in w (a quartic, of degree 8 where the range shifts);
    sign changes are bracketed on a grid of log-odds and bisected. An estimate: `certify` turns V into a bound.
    """
    with ctx.workprec(enclosures.PRECISION):
        s, v, mu = problem.slope(), problem.activation.spread(), problem.standing.spread()
        x = enclosures.ball(problem.position)
        w = arb_poly([0, 1])
        n = (1 + s * w) * (mu + s * v * w**3)
        rise = n.derivative()
        conditions = [rise * w * (1 - w) - 2 * n * (1 - 2 * w) - x**2 * s * w * (1 - w) ** 3]
        if problem.shifts:
            conditions.append(n**2 + s * (2 * w * (1 - w) * (1 - 2 * w) * n - w**2 * (1 - w) ** 2 * rise))
            conditions.append(n - s * w * (1 - w) ** 2 * x)
        grid = [1 / (1 + 2 ** enclosures.ball(Fraction(30 - j, 4))) for j in range(-30, 151)]
        candidates = [root for condition in conditions for root in _roots(condition, grid)]
        best = min((float(_variance(problem, root)[0]), float(root)) for root in candidates)
        value, shift = _variance(problem, enclosures.ball(best[1]))
        return best[1], float(shift), float(value * enclosures.ball(problem.half) ** 2)


def _roots(polynomial: arb_poly, grid: Sequence[arb]) -> list[arb]:
    """Midpoints of the brackets of 2^-80 relative width in which the polynomial changes sign between points of the grid."""
    found = []
    values = [polynomial(point) for point in grid]
    for a, b, at_a, at_b in zip(grid[:-1], grid[1:], values[:-1], values[1:], strict=True):
        if bool(at_a > 0) == bool(at_b > 0):
            continue
        for _ in range(80):
            middle = ((a + b) / 2).mid()
            a, b = (middle, b) if bool(polynomial(middle) > 0) == bool(at_a > 0) else (a, middle)
        found.append(((a + b) / 2).mid())
    return found


def _variance(problem: BumpClass, w: arb) -> tuple[arb, arb]:
    """(V, r): the variance on [-1, 1] at window share w, with the best shift r of the range where it may shift."""
    a, q, d = (p(w) for p in problem.parts())
    rise, still, x = a / d, q / d, enclosures.ball(problem.position)
    if problem.shifts and bool(rise * x > still):
        return rise * still * (1 + x) ** 2 / (rise + still), (rise * x - still) / (rise + still)
    return rise * x**2 + still, arb(0)

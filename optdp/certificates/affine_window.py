"""The least variance of an unbiased mechanism made of a base and a window that follows the input, or any density over a floor.

The variance at the worst input, or at a given one, is a rational function of one variable, the window's share w in (0, 1) of the
range (`optdp.closed_forms.affine_window` derives it): with polynomials a, q, d > 0 in w

    V(w) = (a x^2 + q)/d,  and where moving the range pays (a x > q)   V(w) = a q (1 + x)^2/((a + q) d).

So t is a lower bound iff one polynomial (two, where the range may move) is >= 0 on [0, 1], which Bernstein coefficients in
ball arithmetic prove.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from flint import arb, ctx

from optdp.certificates.base import Bound, Threshold
from optdp.closed_forms.affine_window import parts, slope
from optdp.exact import enclosures, polynomial, require
from optdp.problem import LDP, At, Interval, Problem, Windows, WorstCase


@dataclass(frozen=True)
class AffineWindowCertificate(Threshold):
    """A threshold t, in units where the domain is [-1, 1]: the variance of every mechanism of the family is at least t."""

    tag = "affine-window"

    def bound(self, problem: Problem) -> Bound:
        domain, objective = problem.domain, problem.objective
        if not isinstance(problem.family, Windows):
            self._refuse("it is for a window whose centre is affine in the input")
        if not isinstance(problem.privacy, LDP) or not 0 < float(problem.privacy.eps) <= require.MAX_EPS:
            self._refuse("it is for eps-LDP with eps in (0, 30]")
        if not isinstance(domain, Interval):
            self._refuse("it is for intervals")
        if not isinstance(objective, WorstCase | At) or objective.loss.exponent != 2:
            self._refuse("it is for the squared error at the worst input or at one input")
        if not problem.unbiased:
            self._refuse("it is for unbiased mechanisms")
        self._check(problem)
        return Bound(self.value(domain), "positivity of a polynomial, Bernstein coefficients in ball arithmetic")

    def value(self, domain: Interval) -> float:
        """The threshold in units of the domain, rounded down."""
        return enclosures.round_down(Fraction(max(self.threshold, 0.0)) * (domain.exact_width / 2) ** 2)

    def holds(self, problem: Problem) -> bool:
        family, eps, x = problem.family, problem.eps, position(problem)
        assert isinstance(family, Windows) and eps is not None
        base = family.standing
        with ctx.workprec(enclosures.PRECISION):
            s = slope(eps, family.activation, base, family.rule)
            if not s > 0:
                return False
            a, q, d = parts(s, family.activation, base)
            t, point = enclosures.ball(self.threshold), enclosures.ball(1 if x is None else abs(x))
            still, stays = a * point**2 + q - t * d, q - a * point
            if x is None or polynomial.positive(stays):
                return polynomial.positive(still)
            # Either the moved optimum is above t (always a lower bound), or no move pays and the still one is.
            moved = a * q * (1 + point) ** 2 - t * d * (a + q)
            return polynomial.proven_everywhere([moved, stays, still], _holds, _fails)


def position(problem: Problem) -> Fraction | None:
    """The objective's input where the domain is [-1, 1], exactly; None for the worst case."""
    domain, objective = problem.domain, problem.objective
    if not isinstance(objective, At):
        return None
    width: Fraction = domain.exact_width
    return (2 * Fraction(objective.x) - Fraction(domain.lower) - Fraction(domain.upper)) / width


def _holds(piece: Sequence[Sequence[arb]]) -> bool:
    moved, stays, still = piece
    return all(c > 0 for c in moved) or (all(c >= 0 for c in stays) and all(c > 0 for c in still))


def _fails(values: Sequence[arb]) -> bool:
    moved, stays, still = values
    return bool(still < 0) or (bool(stays < 0) and bool(moved < 0))


def certify(problem: Problem, estimate: float) -> AffineWindowCertificate:
    """The certificate of a threshold at most `estimate` (on [-1, 1]) that can be proven, as near to it as rounding lets it."""
    return AffineWindowCertificate.lowered(problem, estimate)[0]

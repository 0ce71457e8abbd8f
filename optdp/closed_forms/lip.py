"""Closed forms of prior-aware mechanisms, derived by sympy. The symbol is `eps`; E = e^eps.

Two inputs with prior (1 - p, p), p <= 1/2. A distribution of posteriors r (of the second input) with mean p on an interval
[low, high] has E r^2 <= p^2 + (high - p)(p - low), the chord of a convex function, attained by its two ends. So the
least mean square error is p - p^2 - (high - p)(p - low), where the interval is

- "lip": both p/E <= r <= E p and (1-p)/E <= 1 - r <= E (1-p);
- "lip-lower": p/E <= r and (1-p)/E <= 1 - r;
- "ldp": ends where the likelihoods are (E, 1) and (1, E).
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import TYPE_CHECKING, Any, TypeAlias

from optdp.problem import LDP, LIP, AllMechanisms, Alphabet, BayesRisk, Problem

if TYPE_CHECKING:
    from sympy import Expr

    Scalar: TypeAlias = Any  # a float, a Fraction, an expression or an array: whatever has arithmetic


def interval(p: Scalar, notion: str, ratio: Scalar) -> tuple[Scalar, ...]:
    """(low, high), or (low, high if E p is lower, high otherwise): the posterior of the rarer input, prior p <= 1/2."""
    if notion == "ldp":
        return p / (p + ratio * (1 - p)), ratio * p / (ratio * p + 1 - p)
    revealed = 1 - (1 - p) / ratio  # the other input's posterior is at its lower bound
    if notion == "lip-lower":
        return p / ratio, revealed
    # 1 - r <= E (1-p) is implied by r >= p/E for p <= 1/2: (E - 1) (E (1-p) - p) >= 0.
    return p / ratio, ratio * p, revealed


def binary_value(p: Scalar, notion: str = "lip") -> Expr:
    """The least mean square error for prior (1-p, p), p <= 1/2 (values 0 and 1; twice that for a histogram).

    For "lip" two regimes: with E p <= 1 - (1-p)/E, i.e. p <= 1/(1+E), the upper bound binds and the value is
    p (1-p) - p^2 (E-1)^2/E; beyond it the lower bounds alone bind, and it is p (1-p) (2/E - 1/E^2), the paper's form.
    """
    import sympy as sp

    eps, ratio = sp.Symbol("eps", positive=True), sp.Symbol("E", positive=True)
    p = sp.sympify(p)
    low, *highs = interval(p, notion, ratio)
    forms = [sp.factor(p - p**2 - (high - p) * (p - low)).subs(ratio, sp.exp(eps)) for high in highs]
    if len(forms) == 1:
        return forms[0]
    (border,) = sp.solve(sp.cancel((highs[0] - highs[1]) / (ratio - 1)), ratio)  # E = 1 is the other root
    return sp.Piecewise((forms[0], sp.exp(eps) <= border), (forms[1], True))


def simplex_value(prior: Iterable[Scalar], values: Iterable[Scalar] | None = None) -> Expr:
    """The least error for "lip-lower" (any number of categories): (2/E - 1/E^2) Var(X), or (1 - sum P^2) in Var's place.

    The kernel is K(j|i) = P_j/E for i != j and K(j|j) = 1 - (1-P_j)/E (Context-aware LIP, Theorem 3).
    """
    import sympy as sp

    inverse = sp.exp(-sp.Symbol("eps", positive=True))
    p = [sp.sympify(q) for q in prior]
    if values is None:
        spread = 1 - sum(q**2 for q in p)
    else:
        x = [sp.sympify(v) for v in values]
        mean = sum(q * v for q, v in zip(p, x, strict=True))
        spread = sum(q * v**2 for q, v in zip(p, x, strict=True)) - mean**2
    return sp.simplify(spread) * (2 * inverse - inverse**2)


def simplex_is_lip(least: Scalar) -> Expr:
    """The condition under which the kernel of `simplex_value` is two-sided LIP: its posterior for j itself, at most E P_j.

    P_j/E + 1 - 1/E <= E P_j, solved for the least prior: P_j >= 1/(1 + E) for all j (so at most 1 + E categories).
    """
    import sympy as sp

    ratio = sp.exp(sp.Symbol("eps", positive=True))
    p = sp.Symbol("p", positive=True)
    (bound,) = sp.solve(sp.Eq(p / ratio + 1 - 1 / ratio, ratio * p), p)
    return sp.Ge(least, sp.simplify(bound))


def unbiased_response(ratio: Scalar) -> Any:
    """Error of the unbiased count of one user by randomised response, which keeps the truth with probability E/(1+E)."""
    return ratio / (ratio - 1) ** 2


def unary_encoding(categories: Scalar, ratio: Scalar) -> Any:
    """Error of an unbiased histogram by optimised unary encoding (keep 1/2, lie 1/(1+E)) of one user's category."""
    return 4 * categories * ratio / (ratio - 1) ** 2 + 1


def optimum(problem: Problem) -> Expr | None:
    """The closed form of a problem's optimum: two categories, or one-sided LIP; else None.

    Probabilities and values are written as the short rationals that read as the same floats, where there are any.
    """
    privacy, objective = problem.privacy, problem.objective
    if not isinstance(objective, BayesRisk) or not isinstance(privacy, LDP | LIP) or problem.constraints:
        return None
    prior, values = objective.prior, objective.task.values
    same = isinstance(privacy, LDP) or privacy.prior == prior
    known = isinstance(problem.domain, Alphabet) and problem.domain.symbols == prior.categories
    if not (same and known and isinstance(problem.family, AllMechanisms)):
        return None
    p, x = [_readable(q) for q in prior.exact], None if values is None else [_readable(Fraction(v)) for v in values]
    if isinstance(privacy, LIP) and privacy.lower_only:
        return simplex_value(p, x)
    if len(p) != 2:
        return None
    return (2 if x is None else (x[1] - x[0]) ** 2) * binary_value(min(p), "ldp" if isinstance(privacy, LDP) else "lip")


def _readable(number: Fraction) -> Expr:
    """The sympy rational with a small denominator that reads as the same float, if there is one: 1/10 for 0.1."""
    import sympy as sp

    short = number.limit_denominator(10**6)
    return sp.Rational(short if float(short) == float(number) else number)

"""Closed forms that prior-aware mechanisms are compared by (Context-aware LIP): published ones and true ones.

Each function is plain arithmetic in `ratio` = e^eps and the prior, so that the same formula takes sympy symbols, Fractions
and balls. Errors are mean squares per user. `FORMS` lists them as sympy expressions with range and source. The optima
themselves are in `optdp.closed_forms.lip`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from optdp.closed_forms.lip import unary_encoding as unary_encoding
from optdp.closed_forms.lip import unbiased_response as unbiased_response


def published(variance: Any, ratio: Any) -> Any:
    """(2/E - 1/E^2) Var: the error of the published kernel K(j|i) = P_j/E, K(j|j) = 1 - (1-P_j)/E.

    For a histogram 1 - sum P^2 stands in Var's place.
    """
    return variance * (2 / ratio - 1 / ratio**2)


def published_level(least: Any, ratio: Any) -> Any:
    """e^eps' for which the published kernel is really eps'-LIP, if at least E: posterior / prior of the rarest category."""
    return 1 / ratio + (1 - 1 / ratio) / least


def rare(p: Any, ratio: Any) -> Any:
    """The least error of two categories, 0 and 1, with P(1) = p <= 1/(1+E) under eps-LIP."""
    return p * (1 - p) - p**2 * (ratio - 1) ** 2 / ratio


def ldp(p: Any, ratio: Any) -> Any:
    """The least error of two categories, 0 and 1, under eps-LDP: randomised response, estimated with the prior."""
    v = p * (1 - p)
    return v * ratio / (ratio + (ratio - 1) ** 2 * v)


def advantage(p: Any, ratio: Any) -> Any:
    """1 - (error of eps-LIP)/(error of eps-LDP), both optimal, for two categories and p <= 1/(1+E)."""
    c = (ratio - 1) ** 2 / ratio
    return c * p**2 * (c + (2 - p) / (1 - p))


def advantage_common(p: Any, ratio: Any) -> Any:
    """The same for 1/(1+E) <= p <= 1/2."""
    return 1 - (2 * ratio - 1) / ratio**2 * (1 + (ratio - 1) ** 2 / ratio * p * (1 - p))


def unbiased(keep: Any, lie: Any, share: Any) -> Any:
    """Error of the unbiased count for K(1|1) = keep, K(1|0) = lie when a share of the users holds 1."""
    return lie * (1 - lie) / (keep - lie) ** 2 + share * (1 - keep - lie) / (keep - lie)


def response_sum(categories: Any, ratio: Any) -> Any:
    """Error over Var(X) of d-ary randomised response for a sum, uniform prior, estimated with the prior."""
    return 1 - ((ratio - 1) / (ratio - 1 + categories)) ** 2


def response_histogram(categories: Any, ratio: Any) -> Any:
    """Error of d-ary randomised response for a histogram, uniform prior, estimated with the prior."""
    d = categories
    return (2 * ratio * (d - 1) + (d - 1) * (d - 2)) / (ratio + d - 1) ** 2


def even_sum_lip(categories: Any, ratio: Any) -> Any:
    """The least error under eps-LIP of a sum of d equally likely integers in a row: (d^2 (1 - tau^2 (E+2)/E) - 1)/12.

    tau = (E-1)/(E+1) = tanh(eps/2). A lower bound for every d and E, attained if 1 + E is an integer that divides d.
    """
    tau = (ratio - 1) / (ratio + 1)
    return (categories**2 * (1 - tau**2 * (ratio + 2) / ratio) - 1) / 12


def even_sum_ldp(categories: Any, ratio: Any) -> Any:
    """The same under eps-LDP: (d^2 (1 - (3/4) tau^2) - 1)/12, attained by two halves for even d, least for E <= 3 + 2 sqrt 3."""
    tau = (ratio - 1) / (ratio + 1)
    return (categories**2 * (4 - 3 * tau**2) - 4) / 48


def even_histogram_ldp(categories: Any, ratio: Any) -> Any:
    """1 - 1/d - (E-1)^2/(4 E d): what no eps-LDP histogram of d equally likely categories beats.

    Attained by outputs that raise d/(1+E) categories, if that is an integer. Under LIP the 4 goes: `rare_histogram`.
    """
    return 1 - 1 / categories - (ratio - 1) ** 2 / (4 * ratio * categories)


def rare_histogram(squares: Any, ratio: Any) -> Any:
    """1 - (E + 1/E - 1) sum P^2: `histogram_bound` if every P_j <= 1/(1+E)."""
    return 1 - (ratio + 1 / ratio - 1) * squares


def histogram_bound(prior: Sequence[Any], ratio: Any) -> Any:
    """1 - sum [P^2 + (h - P)(P - l)], a posterior lying in [l, h]: what no eps-LIP histogram beats, for numbers.

    l = max(P/E, 1 - E (1-P)), h = min(E P, 1 - (1-P)/E). It is `published` if min P >= 1/(1+E), `rare_histogram` if
    max P <= 1/(1+E), and the optimum for two categories.
    """
    low = [max(p / ratio, 1 - ratio * (1 - p)) for p in prior]
    high = [min(ratio * p, 1 - (1 - p) / ratio) for p in prior]
    return 1 - sum(p * p + (h - p) * (p - a) for p, a, h in zip(prior, low, high, strict=True))


def ldp_level(least: Any, ratio: Any) -> Any:
    """e^eps' for the least eps' with eps-LIP => eps'-LDP, if the rarest category has `least` >= 1/(1+E): 1 + (E-1)/least.

    At `least` = 1/(1+E) it is E^2, and for three categories or more it is E^2 below that.
    """
    return 1 + (ratio - 1) / least


def ldp_level_rare(p: Any, ratio: Any) -> Any:
    """The same for two categories and p <= 1/(1+E): E (1-p)/(1 - E p)."""
    return ratio * (1 - p) / (1 - ratio * p)


def lip_level(least: Any, ratio: Any) -> Any:
    """e^eps' for the least eps' with eps-LDP => eps'-LIP, the rarest category having prior `least`: E - (E-1) least."""
    return ratio - (ratio - 1) * least


def information(ratio: Any, eps: Any) -> Any:
    """The most mutual information (in nats) that eps-LIP allows: eps (E-1)/(E+1) = eps tanh(eps/2)."""
    return eps * (ratio - 1) / (ratio + 1)


@dataclass(frozen=True)
class Form:
    """A formula as a sympy expression in `eps`, `p` (the rarer input's or the rarest category's prior), `d`, `V`.

    `valid`: its range in words; `source`: where it is from ("published" formulas only hold in that range).
    """

    name: str
    expression: Any
    valid: str
    source: str


@cache
def forms() -> tuple[Form, ...]:
    """Every formula with its range and source."""
    import sympy as sp

    eps, p, d, variance = sp.symbols("eps p d V", positive=True)
    ratio = sp.exp(eps)
    common, scarce, every = "1/(1+E) <= p <= 1/2", "p <= 1/(1+E)", "every eps, every prior"
    listed: list[tuple[Callable[..., Any], tuple[Any, ...], str, str]] = [
        (published, (variance, ratio), "min P >= 1/(1+E)", "Theorems 2, 3 and 5"),
        (published_level, (p, ratio), "p <= 1/(1+E)", "derived from Theorem 3's kernel"),
        (rare, (p, ratio), scarce, "corrects Theorem 2"),
        (ldp, (p, ratio), "every eps, p <= 1/2", "Proposition 4"),
        (advantage, (p, ratio), scarce, "corrects Proposition 4's comparison"),
        (advantage_common, (p, ratio), common, "Proposition 4's comparison"),
        (unbiased_response, (ratio,), every, "Example 1, Section V"),
        (unary_encoding, (d, ratio), every, "Section V, histogram (exact; the usual formula drops the 1)"),
        (response_sum, (d, ratio), "uniform prior", "Section IV-B, LDP"),
        (response_histogram, (d, ratio), "uniform prior", "Section V, histogram, LDP"),
        (even_sum_lip, (d, ratio), "uniform prior on d values in a row; 1 + E divides d", "corrects Theorem 3"),
        (even_sum_ldp, (d, ratio), "uniform prior on an even number d of values; E <= 3 + 2 sqrt 3",
         "corrects Section IV-B, LDP"),
        (even_histogram_ldp, (d, ratio), "uniform prior; 1 + E divides d", "corrects Section V, histogram, LDP"),
        (rare_histogram, (variance, ratio), "max P <= 1/(1+E); V = sum P^2", "corrects Theorem 5"),
        (ldp_level, (p, ratio), "min P = p >= 1/(1+E)", "sharpens Theorem 1"),
        (ldp_level_rare, (p, ratio), "two categories, " + scarce, "sharpens Theorem 1"),
        (lip_level, (p, ratio), every, "sharpens Theorem 1"),
        (information, (ratio, eps), every, "sharpens Proposition 1"),
    ]  # fmt: skip
    return tuple(Form(f.__name__, f(*arguments), valid, source) for f, arguments, valid, source in listed)

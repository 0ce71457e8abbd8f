"""The truncated Laplacian and its published bounds (TLAP) as sympy expressions, derived from their definitions.

Sensitivity 1: for sensitivity D, E|X| is D times and E X^2 is D^2 times what stands here. Symbols: `eps` > 0 and `delta`, and
`u` = (e^eps - 1)/(2 delta) wherever it shortens things; `in_eps_delta` puts it back. The paper has 0 < delta < 1/2. The staircase
is in `optdp.closed_forms.additive`.
"""

from __future__ import annotations

from functools import cache

import sympy as sp

from optdp.closed_forms.additive import delta as delta
from optdp.closed_forms.additive import eps as eps

u, n = sp.symbols("u n", positive=True)

#: E = e^eps and the length of the support: A = log(1 + u)/eps.
E = sp.exp(eps)
RADIUS = sp.log(1 + u) / eps


def in_eps_delta(expression: sp.Expr) -> sp.Expr:
    """The same with u = (e^eps - 1)/(2 delta) written out."""
    return expression.subs(u, (E - 1) / (2 * delta))


def density(x: sp.Expr) -> sp.Expr:
    """The density at distance x <= A from 0 (Definition 3): eps (1 + u)/(2u) e^(-eps x), zero beyond A."""
    height = eps / (2 * (1 - sp.exp(-eps * RADIUS)))
    return sp.simplify(height) * sp.exp(-eps * x)


@cache
def moment(q: int) -> sp.Expr:
    """E|X|^q of the truncated Laplacian by integration, for an integer q >= 0, as an expression in `eps` and `u`."""
    x, end = sp.symbols("x end", positive=True)
    integral = sp.integrate(2 * density(x) * x**q, (x, 0, end))
    return sp.simplify(sp.expand(integral.subs(end, RADIUS)))


def amplitude() -> sp.Expr:
    """Theorem 2, the upper bound on E|X|: (1/eps)(1 - log(1 + u)/u). Valid for delta <= 1/2 (and as a value for every delta)."""
    return (1 - sp.log(1 + u) / u) / eps


def power() -> sp.Expr:
    """Theorem 3, the upper bound on E X^2: (2/eps^2)(1 - (log(1 + u)^2/2 + log(1 + u))/u)."""
    return 2 * (1 - (sp.log(1 + u) ** 2 / 2 + sp.log(1 + u)) / u) / eps**2


def hockey_stick(d: sp.Expr) -> sp.Expr:
    """int (f(x) - E f(x + d))_+ dx for 0 < d <= 1 and delta <= 1/2: delta (e^(eps d) - 1)/(e^eps - 1)."""
    return delta * (sp.exp(eps * d) - 1) / (E - 1)


def chain() -> tuple[sp.Expr, sp.Expr]:
    """(a, b): a b^j = T_j - T_(j+1) for tails T_j = P(X >= j) with T_0 = 1/2 and T_(j+1) = (T_j - delta)/E."""
    return (delta + (E - 1) / 2) / E, 1 / E


@cache
def lower_bound_printed(q: int) -> sp.Expr:
    """Theorems 4 (q = 1) and 5 (q = 2): 2 a sum_(j < n) b^j j^q, summed, as an expression in a, b and n (symbols)."""
    a, b = sp.symbols("a b", positive=True)
    m = sp.Symbol("m", positive=True)
    geometric = (1 - m) / (1 - b)  # sum_(j < n) b^j with m = b^n; b d/db raises the power of j by one, d m/d b = n m/b
    for _ in range(q):
        geometric = b * (sp.diff(geometric, b) + sp.diff(geometric, m) * n * m / b)
    return sp.factor(2 * a * geometric.subs(m, b**n))


@cache
def lower_bound(q: int) -> sp.Expr:
    """The same in `eps` and `u` alone: a (1 - b^n)/(1 - b) = 1/2 makes b^n = 1/(1 + u), n = A = log(1 + u)/eps.

    q = 1: 1/(E - 1) - log(1 + u)/(eps u). q = 2: (E + 1)/(E - 1)^2 - (n^2 + 2 n/(E - 1))/u.
    """
    a, b = sp.symbols("a b", positive=True)
    root = sp.Symbol("root", positive=True)  # E, as an algebraic symbol
    expression = lower_bound_printed(q).subs(b**n, 1 / (1 + u)).subs(a, (1 - b) * (1 + u) / (2 * u)).subs(b, 1 / root)
    return sp.expand(sp.simplify(expression)).subs(root, E).subs(n, RADIUS)


def cut_staircase_amplitude() -> sp.Expr:
    """E|X| of the staircase noise cut where delta allows, s/(E - 1) - n/u, if n = log(1 + u)/eps is an integer. Found here."""
    return sp.exp(eps / 2) / (E - 1) - RADIUS / u

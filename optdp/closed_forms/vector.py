"""The least error of unbiased mechanisms for unit vectors: caps of the sphere, enclosed by balls.

For u uniform on the sphere of R^d and a unit vector v let t = <u, v>. Its density is c (1 - t^2)^((d - 3)/2) with
c = Gamma(d/2)/(sqrt(pi) Gamma((d - 1)/2)), so that the cap {t >= g}, 0 <= g < 1, has

    share   W(g) = P(t >= g)      = I(1 - g^2; (d - 1)/2, 1/2)/2           (I: the regularised incomplete beta function),
    moment  T(g) = E[t; t >= g]   = c (1 - g^2)^((d - 1)/2)/(d - 1),

and for d = 1, where t = 1 or -1, W = T = 1/2. An output direction with density E on its cap and 1 elsewhere has the mean
a(g) = (E - 1) T/(1 + (E - 1) W) along v. It is largest where g = a(g), and the least worst-case E|Y - v|^2 is 1/a^2 - 1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from flint import arb, ctx

from optdp.exact import Number, enclosures
from optdp.exact.require import MAX_EPS
from optdp.problem import LDP, Problem, Sphere

if TYPE_CHECKING:
    from sympy import Expr

#: Bits: 1 - a is as small as e^-30, its square root is taken, and floats carry 53.
PRECISION = 320
#: Dimensions from which on small caps are expanded here.
LARGE = 200


def cap(dim: int, height: arb) -> tuple[arb, arb]:
    """(W, T) of the cap {t >= height}, for a height in [0, 1)."""
    if dim == 1:
        return arb(1) / 2, arb(1) / 2
    half, order, rest = arb(1) / 2, (arb(dim) - 1) / 2, 1 - height * height
    moment = (_log_density(dim) + order * rest.log()).exp() / (dim - 1)
    # W is about 2^-low. FLINT is slow where that is less than its precision tells apart from 0, and d is large.
    low = float((-order * rest.log() / arb(2).log()).upper()) if dim > LARGE and rest > 0 else 0.0
    if height * height * dim < half:  # from the complement: 1 - g^2 may not be told from 1
        share = half - half * (height * height).beta_lower(half, order, regularized=True)
    elif low > ctx.prec:
        share = _far(dim, height, rest) * moment / height
    elif low > 0 and not height.is_exact():  # which it is slow for, too
        share = cap(dim, height.lower().max(arb(0)))[0].union(cap(dim, height.upper())[0])
    else:
        with ctx.workprec(ctx.prec + int(2 * low)):
            share = half * (1 - height * height).beta_lower(order, half, regularized=True)
    return +share, moment


def _far(dim: int, height: arb, rest: arb) -> arb:
    """g W/T, by parts: J_k = int_g^1 (1 - t^2)^((d - 3)/2 + k) t^(-2k) dt is a closed form less (2k + 1)/(d - 1 + 2k) J_(k+1).

    So signs alternate, terms grow by (2k + 1)(1 - g^2)/((d + 1 + 2k) g^2), and what is left out is between 0 and its first term.
    """
    total, term, ratio, k = arb(0), arb(1), rest / (height * height), 0
    while True:
        total += term
        after = -term * ratio * (2 * k + 1) / (dim + 1 + 2 * k)
        if not abs(after) < abs(term) or abs(after) < arb(2) ** -ctx.prec:
            return total + after.union(arb(0))
        term, k = after, k + 1


def any_cap(dim: int, height: arb) -> tuple[arb, arb]:
    """(W, T) of {t >= height} for any height, in two or more dimensions."""
    size = abs(height)
    if size >= 1:
        return (arb(0) if height > 0 else arb(1)), arb(0)
    if not size < 1:  # a ball around 1: between nothing and the cap at its lower end
        share, moment = cap(dim, size.lower().max(arb(0)))
        share, moment = share.union(arb(0)), moment.union(arb(0))
    elif dim == 2:
        share, moment = size.acos() / arb.pi(), (1 - size * size).sqrt() / arb.pi()
    elif dim == 3:
        share, moment = (1 - size) / 2, (1 - size * size) / 4
    else:
        share, moment = cap(dim, size)
    if height >= 0:
        return share, moment
    return (1 - share if height <= 0 else share.union(1 - share)), moment


@lru_cache(maxsize=64)
def _log_constant(dim: int, bits: int) -> arb:
    with ctx.workprec(bits):
        return (arb(dim) / 2).lgamma() - ((arb(dim) - 1) / 2).lgamma() - arb.pi().log() / 2


def _log_density(dim: int) -> arb:
    """log c."""
    return _log_constant(dim, ctx.prec)


def second(dim: int, height: arb, inside: arb) -> arb:
    """E[t^2] where t is in the cap with probability `inside`: over the cap E[t^2; t >= g] = (W + g (d - 1) T)/d, by parts."""
    share, moment = cap(dim, height)
    part = (share + height * (dim - 1) * moment) / dim
    return inside * part / share + (1 - inside) * (arb(1) / dim - part) / (1 - share)


def gain(eps: Number, dim: int, height: arb) -> arb:
    """a(g)."""
    share, moment = cap(dim, height)
    ratio = enclosures.exp(eps) - 1
    return ratio * moment / (1 + ratio * share)


def best_height(eps: Number, dim: int) -> float:
    """The g with g = a(g), nearly. g -> a(g) is Newton's step for (E - 1) E[(t - g)_+] = g, convex in g: it rises to the root."""
    with ctx.workprec(PRECISION):
        height = gain(eps, dim, arb(0)).mid()
        for _ in range(200):
            better = gain(eps, dim, height).mid()
            if not better - height > better * arb(2) ** -60:
                break
            height = better
        return min(max(float(height), 0.0), 1 - 2.0**-53)


def beaten(eps: Number, dim: int, gained: arb) -> bool:
    """Whether it is proven that no eps-LDP output direction has a mean of more than `gained` along the input.

    A density k in [m, E m] has the mean int k t / int k <= g iff int k (t - g) <= 0, which is largest at k = E m where t > g
    and m elsewhere: iff (E - 1) E[(t - g)_+] <= E[g - t] = g.
    """
    share, moment = cap(dim, gained)
    return bool((enclosures.exp(eps) - 1) * (moment - gained * share) <= gained)


def optimum(problem: Problem) -> Expr | None:
    """For d = 1 and d = 3; other dimensions have no elementary form (the root of g = a(g))."""
    import sympy as sp

    domain, privacy = problem.domain, problem.privacy
    if not isinstance(domain, Sphere) or not isinstance(privacy, LDP) or domain.dim not in (1, 3):
        return None
    if problem.objective.tag != "worst-case" or problem.loss.exponent != 2 or not problem.unbiased:
        return None
    if not 0 < float(privacy.eps) <= MAX_EPS or problem.family.clause(problem.eps):
        return None
    half = sp.exp(sp.Symbol("eps", positive=True) / 2)
    if domain.dim == 1:
        return 4 * half**2 / (half**2 - 1) ** 2
    # d = 3: t is uniform, so that (E - 1)(1 - g)^2/4 = g, whose root in [0, 1) is (sqrt(E) - 1)/(sqrt(E) + 1).
    return (half + 1) ** 2 / (half - 1) ** 2 - 1

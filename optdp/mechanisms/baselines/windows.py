"""Published windows moved to the domain: same domain in, same domain out.

PM, SW and PTT are stated on [-1, 1] or [0, 1] with a wider output range. As in OGPM's comparison that range is mapped affinely
onto the domain, which leaves two numbers: the window's share of the range, and a placement that is linear in the input. All
three use the full likelihood ratio e^eps, and all three are biased. (The unbiased PM is `optdp.mechanisms.baselines.unbiased`'s.)
"""

import math

from optdp.closed_forms.affine_window import best_window
from optdp.exact import Number, require
from optdp.mechanisms.piecewise import CELLS, COINS, PiecewiseMechanism
from optdp.problem import DomainLike, Rectangle, as_domain, as_interval


def pm(eps: Number, domain: DomainLike = (0.0, 1.0)) -> PiecewiseMechanism:
    """The Piecewise Mechanism (Wang et al., ICDE 2019, Algorithm 2), moved to the domain: window share 1/(e^(eps/2) + 1)."""
    share = 1 / (math.exp(require.epsilon(float(eps)) / 2) + 1)
    return PiecewiseMechanism.private(eps, share, as_interval(domain), "linear")


def sw(eps: Number, domain: DomainLike = (0.0, 1.0)) -> PiecewiseMechanism:
    """The Square Wave mechanism (Li et al., SIGMOD 2020), moved to the domain.

    Its half-width is b = (eps E - E + 1)/(2E(E - 1 - eps)), its share 2b/(1 + 2b).
    """
    width = _square_wave_width(require.epsilon(float(eps)))
    return PiecewiseMechanism.private(eps, width / (1 + width), as_interval(domain), "linear")


def _square_wave_width(eps: float) -> float:
    """2b. Numerator and denominator are remainders of the exponential series, summed as such where eps is small."""
    if eps < 0.5:
        # eps E - E + 1 = sum_k (k - 1) eps^k / k!,   E - 1 - eps = sum_{k >= 2} eps^k / k!;   both over eps^2, which may be 0
        powers = [eps**k / math.factorial(k + 2) for k in range(22)]
        return sum((k + 1) * powers[k] for k in range(22)) / (math.exp(eps) * sum(powers))
    e = math.exp(eps)
    return (eps * e - e + 1) / (e * (e - 1 - eps))


def ptt(eps: Number, domain: DomainLike = (0.0, 1.0)) -> PiecewiseMechanism:
    """The piecewise transformation I-PTT (OPTT) of least worst-case variance, moved to the domain: share 1/eta."""
    return PiecewiseMechanism.private(eps, 1 / ptt_eta(eps), as_interval(domain), "linear")


def ptt_eta(eps: Number) -> float:
    """The ratio eta = (k + a)/a > 1 of I-PTT that minimises its worst-case variance, Var(1).

    A root above 1 of a quartic: see `optdp.closed_forms.affine_window`.
    """
    return 1 / best_window(require.exact_epsilon(eps), Rectangle(), Rectangle())[0]


def uniform(eps: Number, domain: DomainLike = (0.0, 1.0)) -> PiecewiseMechanism:
    """An output that ignores the input (and epsilon): what any mechanism must beat."""
    require.exact_epsilon(eps)
    return PiecewiseMechanism(as_domain(domain), CELLS, COINS)

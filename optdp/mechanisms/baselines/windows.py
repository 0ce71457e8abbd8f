"""The published mechanisms for one bounded number, on the same footing: same domain in, same domain out.

PM, SW and PTT are stated on [-1, 1] or [0, 1] with a wider output range. As in OGPM's comparison (OGPM) that range is
mapped affinely onto the domain, which leaves two numbers: the window's share of the range, and a placement that is
linear in the input. All three use the full likelihood ratio e^eps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optdp.certificates.affine_window import BumpClass, optimum
from optdp.exact import require
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines.clamped import ClampedLaplace, ClampedStaircase
from optdp.mechanisms.piecewise import CELLS, COINS, PiecewiseMechanism
from optdp.problem.domains import Circle, Interval, as_domain
from optdp.problem.objectives import Variance
from optdp.problem.shapes import Rectangle


def _interval(domain: Any) -> Interval:
    domain = as_domain(domain)
    if isinstance(domain, Circle):
        raise ValueError("domain = a Circle is not allowed: this baseline is defined on an interval")
    return domain


def pm(eps: float, domain: Any = (0.0, 1.0)) -> PiecewiseMechanism:
    """The Piecewise Mechanism (Wang et al., ICDE 2019, Algorithm 2): window share 1/(e^(eps/2) + 1)."""
    return PiecewiseMechanism.private(eps, 1 / (np.exp(require.epsilon(eps) / 2) + 1), _interval(domain), "linear")


def sw(eps: float, domain: Any = (0.0, 1.0)) -> PiecewiseMechanism:
    """The Square Wave mechanism (Li et al., SIGMOD 2020): half-width b = (eps E - E + 1)/(2E(E - 1 - eps)), share 2b/(1 + 2b)."""
    eps = require.epsilon(eps)
    return PiecewiseMechanism.private(
        eps, _square_wave_width(eps) / (1 + _square_wave_width(eps)), _interval(domain), "linear"
    )


def _square_wave_width(eps: float) -> float:
    """2b. Numerator and denominator are remainders of the exponential series, summed as such where eps is small."""
    if eps < 0.5:
        powers = [eps**k / float(np.prod(np.arange(1.0, k + 1))) for k in range(24)]
        # eps E - E + 1 = sum_k (k - 1) eps^k / k!,   E - 1 - eps = sum_{k >= 2} eps^k / k!
        return sum((k - 1) * powers[k] for k in range(2, 24)) / (np.exp(eps) * sum(powers[2:]))
    e = np.exp(eps)
    return float((eps * e - e + 1) / (e * (e - 1 - eps)))


def ptt(eps: float, domain: Any = (0.0, 1.0)) -> PiecewiseMechanism:
    """The piecewise transformation I-PTT (OPTT) with the least worst-case variance among those of mass 1: share 1/eta."""
    return PiecewiseMechanism.private(eps, 1 / ptt_eta(eps), _interval(domain), "linear")


def ptt_eta(eps: float) -> float:
    """The ratio eta = (k + a)/a > 1 of I-PTT that minimises its worst-case variance, Var(1).

    A root above 1 of a quartic: see `optdp.certificates.affine_window`.
    """
    unit = Interval(-1.0, 1.0)
    return 1 / optimum(BumpClass(require.epsilon(eps), Rectangle(), Rectangle(), unit, Variance()))[0]


def clamped_laplace(eps: float, domain: Any = (0.0, 1.0)) -> ClampedLaplace:
    """Laplace noise of scale width/eps, clamped to the domain."""
    return ClampedLaplace(eps, _interval(domain))


def clamped_staircase(eps: float, domain: Any = (0.0, 1.0)) -> ClampedStaircase:
    """Staircase noise for sensitivity = width (stairs optimal for |z|), clamped to the domain."""
    return ClampedStaircase(eps, _interval(domain))


def uniform(eps: float, domain: Any = (0.0, 1.0)) -> PiecewiseMechanism:
    """An output that ignores the input (and epsilon): what any mechanism must beat."""
    require.epsilon(eps)
    return PiecewiseMechanism(as_domain(domain), CELLS, COINS)


#: Name -> constructor(eps, domain), in the order of publication.
BASELINES: dict[str, Callable[..., Mechanism]] = {
    "Laplace + truncation": clamped_laplace,
    "staircase + truncation": clamped_staircase,
    "PM": pm,
    "SW": sw,
    "PTT": ptt,
    "uniform": uniform,
}

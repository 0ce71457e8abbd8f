"""Additive noise under a large bound r on its Renyi or KL divergence: a peak on a plateau, beside its closed-form bound.

As r grows, the optimal noise for |x|^q is C (c^q - |x|^q)_+^(1/(a-1)) under a peak of width c, about e^(-r/(q+1)) sensitivities,
for the KL divergence C exp(-|x|^q/Lam) down to the plateau, and constant on the rest of one sensitivity on either side:
`optdp.certificates.peak`. Here the peak is written in steps, whose heights are the best for their ends, the plateau is the least
that the divergence allows, and c is chosen by the noise's own value.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from optdp.certificates.peak import KLPeakCertificate, PeakCertificate
from optdp.design.additive.lattice import Bracket
from optdp.exact import enclosures
from optdp.mechanisms.peak import FALL, PeakNoise
from optdp.problem.privacy import KL
from optdp.problem.problem import Problem

#: Bounds for which this is tried, and up to which; steps of the peak; bits of its width, and of heights.
FROM, TO = 8.0, 300.0
STEPS, BITS, HEIGHT = 128, 44, 64
#: What the moment keeps back, one after the other.
SHARES = (1e-10, 1e-8, 1e-6, 1e-4)


def proof(problem: Problem) -> tuple[KLPeakCertificate | PeakCertificate, float]:
    """The certificate, and what it proves. **Raises** ValueError where the peak is not narrow enough."""
    kl = isinstance(problem.privacy, KL)
    certificate = (KLPeakCertificate if kl else PeakCertificate).best(problem)
    return certificate, certificate.bound(problem).value


def bracket(problem: Problem) -> Bracket | None:
    """Both sides; None where the peak is not narrow enough for a proof."""
    try:
        certificate, proven = proof(problem)
    except ValueError:
        return None
    for share in SHARES:
        try:
            noise = _noise(problem, share)
        except OverflowError:  # an order so near 1 that the shape of the peak has no floats
            return None
        if noise is not None and noise.admitted(problem.privacy):
            value = noise.enclose_loss(problem.objective.loss)[1]
            return Bracket(noise, value, certificate, proven)
    return None


def _shape(a: float, q: float) -> tuple[np.ndarray, np.ndarray]:
    """(ends of the steps, logarithms of their heights) of (1 - x^q)^(1/(a-1)) on [0, 1].

    Steps are of equal falls and of equal widths. The best height of a step is that of the mean of x^q over it.
    """
    fall = np.linspace(1.0, 0.0, STEPS // 2 + 1)[1:]
    ends = np.union1d((1 - fall ** min(a - 1, 8.0)) ** (1 / q), np.linspace(0, 1, STEPS // 2 + 1)[1:])
    ends = ends[np.append(np.diff(ends) > 1e-7, True)]
    power = np.append(0.0, ends ** (q + 1) / (q + 1))
    mean = np.diff(power) / np.diff(ends, prepend=0.0)
    return ends, np.log(np.maximum(1 - mean, 1e-300)) / (a - 1)


def _bell(r: float, q: float) -> tuple[np.ndarray, np.ndarray]:
    """The same of exp(-u), u = r x^q. Steps are of equal falls of its third root, as each costs its mass times du^2, and of u."""
    fall = np.linspace(1.0, math.exp(-r / 3), 3 * STEPS // 4 + 1)[1:-1]
    ends = np.union1d(-3 * np.log(fall) / r, np.linspace(0, 1, STEPS // 4 + 1)[1:]) ** (1 / q)
    power = np.append(0.0, ends ** (q + 1) / (q + 1))
    return ends, -r * np.diff(power) / np.diff(ends, prepend=0.0)


def _noise(problem: Problem, share: float) -> PeakNoise | None:
    """The noise whose divergence is the limit's share 1 - `share`, with the best width of the peak."""
    privacy: Any = problem.privacy
    kl = isinstance(privacy, KL)
    a, r, q = 1.0 if kl else float(privacy.alpha), float(privacy.bound), float(problem.objective.loss.exponent)
    ends, logs = _bell(r, q) if kl else _shape(a, q)
    widths = np.diff(ends, prepend=0.0)
    mean = np.diff(np.append(0.0, ends ** (q + 1) / (q + 1))) / widths  # of x^q
    fall = -r  # log b

    def heights(log_c: float) -> tuple[np.ndarray, float, float]:
        """(logarithms of densities under the peak, log h, the loss) for sensitivity 1."""
        c, level = math.exp(log_c), -700.0
        for _ in range(60):  # the mass under the peak depends on the plateau's
            beyond = math.exp(math.log(2) + level - math.log1p(-math.exp(fall)))
            if beyond >= 0.5:
                return logs, 0.0, math.inf
            own = logs - math.log(2 * c * float(widths @ np.exp(logs))) + math.log1p(-beyond)
            low = np.maximum(own, level)
            if kl:  # sum of mass log(density/h) over the peak, and beyond at the limit r
                wanted = (float(2 * c * widths * np.exp(low) @ low) - r * (1 - beyond - share)) / (1 - beyond)
            else:  # sum of mass (density/h)^(a-1) over the peak, and beyond at the limit e^((a-1) r)
                moment = _log_sum(np.log(2 * c * widths) + a * low)
                wanted = moment / (a - 1) - r - math.log1p(-beyond - share) / (a - 1)
            if abs(wanted - level) < 1e-13:
                break
            level = wanted
        cost = 2 * c ** (q + 1) * float((widths * np.exp(low)) @ mean)
        tail = 2 * math.exp(level) * ((1 + c) ** (q + 1) - c ** (q + 1)) / (q + 1)
        return low, level, cost + tail * (1 + 2.0 ** (q + 1) * math.exp(fall))

    # Of small orders the shape is that of an exponential.
    wide = 3 + math.log(r) if kl else 3 - min(math.log(a - 1), 0.0)
    low, high = -r / (q + 1) - 3.0, min(-r / (q + 1) + wide, -0.5)
    for _ in range(80):  # the loss is unimodal in log c
        one, two = low + 0.382 * (high - low), low + 0.618 * (high - low)
        low, high = (low, two) if heights(one)[2] < heights(two)[2] else (one, high)
    log_c = (low + high) / 2
    density, level, cost = heights(log_c)
    if not math.isfinite(cost):
        return None
    exponent = math.frexp(privacy.sensitivity)[1] + math.ceil(log_c / math.log(2))
    grid = BITS - exponent
    c = Fraction(math.exp(log_c)) * Fraction(privacy.sensitivity) * Fraction(2) ** grid
    integers = [int(Fraction(math.exp(x - level)) * 2**HEIGHT) for x in density]
    top = np.maximum.accumulate(np.array(integers, dtype=object)[::-1])[::-1]
    points = [max(int(Fraction(float(e)) * c), i) for i, e in enumerate(ends)]
    ratio = enclosures.exp_below(privacy.bound, 128)
    decay = -(-(2**FALL) * ratio.denominator // ratio.numerator)
    plateau = min(2**HEIGHT, int(top[-1]))
    return PeakNoise(
        problem.domain, privacy.sensitivity, grid, tuple(points), tuple(int(x) for x in top), plateau, decay, privacy
    )


def _log_sum(logs: np.ndarray) -> float:
    most = float(logs.max())
    return most + math.log(float(np.exp(logs - most).sum()))

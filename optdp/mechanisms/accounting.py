"""What several releases of the same additive noise guarantee together: Gaussian DP, and numerical composition.

**Gaussian DP.** k releases that are mu-GDP each are sqrt(k) mu-GDP, whatever the noise (Dong, Roth and Su 2022): by balls. Of the
Gaussian nothing better is true.

**Numerical composition.** The largest hockey-stick divergence H(eps) over all shifts is convex in e^eps, hence that of a pair of
distributions that dominates every shift. On a grid of eps it is interpolated linearly in e^eps, which is an upper bound, and the
privacy losses, then multiples of the grid's step, are convolved by fast Fourier transforms. Only the rounding of floats, for
which about 1e-12 is added, stands between this and a proof.

**Source:** Doroshenko, Ghazi, Kamath, Kumar, Manurangsi, "Connect the dots: tighter discrete approximations of privacy loss
distributions" (PoPETs 2022).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from flint import arb, ctx

from optdp.exact import Number, enclosures, require
from optdp.exact.numbers import border
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.mechanisms.gaussian import LatticeGaussian
from optdp.mechanisms.rounded import RoundedGaussian
from optdp.problem.privacy import GDP, ApproxDP, gauss_tail

#: What is added to a composed delta for the rounding of floats: once, and for the profile of each release.
ROUNDING, UNIT = 1e-12, 2.0**-52
#: The chance of sums of losses that are left out of the convolution, and counted as lost.
OUTSIDE = 1e-13
#: Losses beyond this count as lost.
FURTHEST = 60.0
#: By which share of what bounded noise keeps for ever delta may still fall where losses end.
LEFT = 1e-4
#: Points of the grid on either side of 0 at most.
MOST = 2**22


def gaussian_budget(eps: Number, delta: Number, releases: int = 1) -> float:
    """The largest mu, rounded down, for which `releases` releases under mu-GDP are (eps, delta)-private together.

    >>> round(gaussian_budget(1.0, 1e-6, 100), 4)
    0.0237
    """
    privacy = ApproxDP(eps, delta)
    releases = require.integer("releases", releases, low=1, high=10**6)
    if privacy.delta == 0:
        raise ValueError("delta = 0 is not allowed here: Gaussian DP allows a small delta at every eps")
    mu, _ = border(lambda mu: privacy.implied_by(GDP(mu)) is True, 0.0, 8.0)
    with ctx.workprec(enclosures.PRECISION):
        return enclosures.round_down(enclosures.ball(mu) / enclosures.ball(float(releases)).sqrt())


def profile(noise: Any, eps: np.ndarray) -> np.ndarray:
    """The largest hockey-stick divergence over all shifts at each eps >= 0, in floats."""
    if not isinstance(noise, AdditiveMechanism):
        return np.array([noise.delta(float(e)) for e in eps])
    worst = np.zeros(eps.size)
    for k in noise.deciding(noise.n):
        pair = noise.pair(k)
        p, q = (np.array([x / pair.total for x in part]) for part in (pair.p, pair.q))
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ratio = np.where(p > 0, np.log(p / q), -np.inf)  # a difference of logarithms would lose more
        order = np.argsort(ratio)
        first, at = np.unique(np.searchsorted(ratio[order], eps, side="right"), return_inverse=True)
        # Sums of integers: those of a million floats, rounded the same way each time, are off by far more than is added below.
        sums = (np.append(np.cumsum(np.array(part, dtype=object)[order][::-1])[::-1], 0) for part in (pair.p, pair.q))
        above, below = ((part[first] / pair.total).astype(float)[at] for part in sums)
        worst = np.maximum(worst, above - np.exp(eps) * below)
    return np.clip(worst, 0.0, 1.0)


def _affordable(count: float, step: float) -> None:
    if not count <= MOST:
        raise ValueError(
            f"step = {step:g} is not allowed: the grid would have more than {MOST} points; take fewer releases"
        )


def composed_delta(noise: Any, eps: float, releases: int, *, step: float | None = None) -> float:
    """delta at `eps` of `releases` independent releases, for neighbours whose every answer differs by at most the sensitivity.

    **Arguments:** `noise`: an `AdditiveMechanism`, or anything with `delta(eps)`; `step`: of the grid of privacy losses, which a
    `LatticeGaussian`, rounded or not, needs none of: its delta is that of Gaussians, rounded up.

    **Raises** ValueError where the grid would have too many points, or `step` is not above 0.

    >>> from optdp.mechanisms.baselines.noise import Gaussian
    >>> bool(abs(composed_delta(Gaussian(1.0, 1e-6), 1.0, 1) - 1e-6) < 1e-8)
    True
    """
    eps = min(require.real("eps", eps, low=0.0), 1e25)  # delta does not grow with eps; its power has an end
    releases = require.integer("releases", releases, low=1, high=10**6)
    if step is not None:
        step = require.real("step", step, low=0.0, open_low=True)
    if isinstance(noise, RoundedGaussian):
        noise = noise.noise
    if isinstance(noise, LatticeGaussian):
        with ctx.workprec(enclosures.PRECISION):
            mu, e = enclosures.ball(noise.mu) * arb(releases).sqrt(), enclosures.ball(eps)
            whole = gauss_tail(e / mu - mu / 2) - e.exp() * gauss_tail(e / mu + mu / 2)
            return min(1.0, enclosures.round_up(whole.max(arb(0))))
    from scipy.optimize import isotonic_regression

    # How far losses reach: to where a single release's delta falls no further (bounded noise keeps some for ever).
    furthest = FURTHEST if isinstance(noise, AdditiveMechanism) else require.MAX_EPS
    kept, reach = (1 + LEFT) * float(profile(noise, np.array([furthest]))[0]) + 1e-15 / releases, 0.05
    while reach < furthest and float(profile(noise, np.array([reach]))[0]) > kept:
        reach = min(1.3 * reach, furthest)
    step = min(reach / 2000, 0.05 / math.sqrt(releases) * reach / 10) if step is None else min(step, reach)
    _affordable(reach / step, step)
    # Profiles have kinks where the guarantee is, at eps or eps/releases: points of the grid lie just above.
    if eps >= step:
        unit = eps / releases if 4 * eps / releases >= step else eps
        step = unit / math.ceil(unit / step) * (1 + 1e-13)
    _affordable(reach / step, step)
    count = math.ceil(reach / step)
    grid = step * np.arange(count + 1)
    positive = np.minimum.accumulate(profile(noise, np.minimum(grid, furthest)))  # it does not grow beyond
    # H at -eps is 1 - e^-eps + e^-eps H(eps), by the symmetry of the noise.
    line = np.concatenate([(1 - np.exp(-grid) * (1 - positive))[:0:-1], positive])
    losses = step * np.arange(-count, count + 1)
    ratio = np.exp(losses)
    # Where what is known of H is not convex (roundings, or bounds of noise of one's own), it is below a line.
    width = np.diff(np.append(0.0, ratio))
    slope = isotonic_regression(np.diff(np.append(1.0, line)) / width, weights=width).x
    mass = np.maximum(np.diff(np.append(slope, 0.0)), 0.0) * ratio
    lost = max(float(line[-1]), 0.0)
    # Only losses up to where k releases come but for a chance of OUTSIDE matter: on a circle what goes further comes out below.
    half = max(0.0, *(_within(mass, sign * losses, releases) for sign in (1, -1)))
    _affordable(half / step / 4, step)
    size = 1 << math.ceil(math.log2(2 * half / step + 2 * count + 2))
    wrapped = np.zeros(size)
    np.add.at(wrapped, np.arange(-count, count + 1) % size, mass)
    total = np.maximum(np.fft.irfft(np.fft.rfft(wrapped) ** releases, size), 0.0)
    index = np.arange(size)
    reached = step * np.where(index < size // 2, index, index - size)
    beyond = reached > eps
    found = float(total[beyond] @ -np.expm1(eps - reached[beyond]))
    left_out = -math.expm1(releases * math.log1p(-lost)) if lost < 1 else 1.0  # 1 - lost may be 1 as a float
    return min(1.0, found + left_out + OUTSIDE + ROUNDING + releases * UNIT)


def _within(mass: np.ndarray, losses: np.ndarray, releases: int) -> float:
    """What the sum of so many losses exceeds with a chance of at most OUTSIDE: Chernoff's bound, at the best of some tilts."""
    reach = float(losses.max())
    if not mass.any():
        return 0.0
    tilts = 600 / reach * 2.0 ** -np.arange(40)
    powers = np.array([math.log(float(mass @ np.exp(tilt * losses))) for tilt in tilts])
    return min(releases * reach, float(((releases * powers - math.log(OUTSIDE)) / tilts).min()))

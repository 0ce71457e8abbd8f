"""Random kernel mechanisms and certificates, for tests of identities."""

from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

import optdp
from optdp.certificates.kernel import KernelCertificate
from optdp.mechanisms.kernel import KernelMechanism

EPS = st.floats(0.05, 8.0)
LOSSES = [optdp.Power(1), optdp.Power(2), optdp.Power(3), optdp.Huber(0.2), optdp.Threshold(0.3), optdp.Pinball(0.3),
          optdp.Pieces((0, "1/2"), ((0, 1), ("-1/2", 2)))]  # fmt: skip
DOMAINS = st.sampled_from([(0.0, 1.0), (-1.0, 1.0), (2.0, 5.0)])


@st.composite
def floors(draw):
    """(masses, lows, highs): up to six pieces, atoms and gaps among them."""
    count = draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    ends = np.sort(rng.random(2 * count)) if draw(st.booleans()) else np.linspace(0, 1, 2 * count)
    lows, highs = ends[::2], ends[1::2].copy()
    flat = rng.random(count) < 0.4
    highs[flat] = lows[flat]
    touching = rng.random(max(count - 1, 0)) < 0.3
    lows[1:][touching & ~flat[1:]] = highs[:-1][touching & ~flat[1:]]
    return rng.dirichlet(np.ones(count)), lows, highs


@st.composite
def mechanisms(draw, beyond=True, domain=None):
    """Windows placed by their ends; outputs may lie beyond the domain."""
    masses, lows, highs = draw(floors())
    scale = draw(st.sampled_from([1.0, 1.0, 1.7])) if beyond else 1.0
    lows, highs = (0.5 + (v - 0.5) * scale for v in (lows, highs))
    return KernelMechanism.private(
        draw(EPS), masses, lows, highs, draw(st.floats(0.01, 0.9)), draw(DOMAINS) if domain is None else domain,
        "ends", draw(st.sampled_from([0.5, 0.5, 0.3, 0.8, 0.0, 1.0])),
    )  # fmt: skip


@st.composite
def unbiased(draw, domain=None):
    """Windows placed by their means, which reach both ends of the domain."""
    masses, lows, highs = draw(floors())
    masses, lows = np.append(masses, 0.3), np.append(lows, 1.5)  # no single atom
    highs = np.append(highs, draw(st.sampled_from([1.5, 2.0])))
    eps, window = draw(EPS), draw(st.floats(0.01, 0.7))
    area = draw(DOMAINS) if domain is None else domain
    made = KernelMechanism.private(eps, masses, lows, highs, window, (0.0, 1.0), "mean")
    low, high = (float(edge.p) / float(edge.q) for edge in (made._targets[0][0], made._targets[-1][1]))
    lows, highs = (((v - low) / (high - low) - 0.5) * (1 + 1e-6) + 0.5 for v in (lows, highs))
    return KernelMechanism.private(eps, masses, lows, highs, window, area, "mean")


@st.composite
def certificates(draw, slopes=(-1.0, 1.0), tilted=False):
    """Any prior with a density in layers and atoms, and thresholds whose windows have increasing ends."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    layers, count = draw(st.integers(0, 2)), draw(st.integers(0, 3))
    mesh = np.unique(np.round(np.concatenate([[0, 1], rng.random(draw(st.integers(0, 4)))]), 6))
    if not layers and not count:
        count = 1
    densities, reaches, centres = [], [], []
    size = draw(st.sampled_from([0.1, 0.3, 0.8])) / max(-slopes[0], slopes[1])
    for _ in range(layers):
        densities.append(tuple(rng.random(mesh.size) * (rng.random(mesh.size) < 0.8)))
        reach = [size * rng.random()]
        middle = mesh * rng.uniform(0.2, 1) + 0.3 * rng.normal() if tilted else mesh
        for a, b in pairwise(middle):
            room = (b - a) * 0.999
            low, high = (1.0, 1.0) if tilted else (1 / slopes[1], -1 / slopes[0])
            reach.append(max(0.0, reach[-1] + rng.uniform(-room * low, room * high)))
        reaches.append(tuple(reach))
        centres.append(tuple(middle))
    x = np.round(rng.random(count), 6)
    return KernelCertificate(
        tuple(mesh.tolist()) if layers else (), tuple(densities), tuple(reaches), tuple(centres) if tilted else (),
        tuple(x.tolist()), tuple(rng.random(count)), tuple(size * rng.random(count) * (rng.random(count) < 0.8)),
        tuple(x + 0.3 * rng.normal(size=count)) if tilted else (),
        tuple((rng.normal(), rng.uniform(-0.5, 1.5)) for _ in range(draw(st.integers(0, 2)))) if tilted else (),
    )  # fmt: skip

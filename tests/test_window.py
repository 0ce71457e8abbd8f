"""VaryingWindow: its own distribution against mass, mean, variance and privacy; the optimum; the sampler; files."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optdp
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines.unbiased import UNBIASED
from optdp.mechanisms.varying_window import LARGEST_EPS, VaryingWindow

EPS = (0.05, 0.5, 0.7122, 0.7124, 1.0, 1.393)


def moments(mechanism: VaryingWindow, x: float) -> np.ndarray:
    """Mass, mean and second moment from density and probability alone: midpoints in log|y| on a fine grid, plus the atoms."""
    low, high = (mechanism._half * mechanism._shape[k] for k in ("y0", "y1"))
    edges = np.geomspace(low, high, 400_001)
    middle, width = np.sqrt(edges[1:] * edges[:-1]), np.diff(edges)
    total = np.zeros(3)
    for sign in (1, -1):
        f = mechanism.density(mechanism._middle + sign * middle, x) * width
        total += [np.sum(f * (mechanism._middle + sign * middle) ** n) for n in range(3)]
    atoms = mechanism.atoms()
    p = mechanism.probability(atoms, x)
    return total + [np.sum(p * atoms**n) for n in range(3)]


@pytest.mark.parametrize("eps", EPS)
@pytest.mark.parametrize("domain", [(-1.0, 1.0), (2.0, 5.0)])
def test_density_and_atoms_have_mass_one_the_mean_and_the_variance(eps, domain):
    mechanism = VaryingWindow(eps, optdp.Interval(*domain))
    for share in (0.0, 0.13, 0.5, 0.8, 1.0):
        x = domain[0] + share * (domain[1] - domain[0])
        mass, mean, second = moments(mechanism, x)
        assert mass == pytest.approx(1, rel=1e-4)
        assert mean - mass * x == pytest.approx(0, abs=2e-4 * mechanism.support()[1])
        assert second - 2 * x * mean + x * x * mass == pytest.approx(float(mechanism.variance(x)), rel=1e-4)
    assert np.ptp(mechanism.variance(np.linspace(*domain, 50))) == 0


@settings(deadline=None, max_examples=60)
@given(st.floats(0.01, LARGEST_EPS), st.floats(-1, 1), st.floats(-1, 1))
def test_likelihood_ratios_stay_below_e_to_the_eps(eps, x, other):
    mechanism = VaryingWindow(eps)
    y = np.linspace(*mechanism.support(), 2001)
    f, g = mechanism.density(y, x), mechanism.density(y, other)
    p, q = mechanism.probability(mechanism.atoms(), x), mechanism.probability(mechanism.atoms(), other)
    assert np.all(f <= math.exp(eps) * g * (1 + 1e-12))
    assert np.all(p <= math.exp(eps) * q * (1 + 1e-9) + 1e-13)


@settings(deadline=None)
@given(st.floats(0.01, LARGEST_EPS))
def test_no_published_unbiased_mechanism_and_no_ptt_is_as_good(eps):
    worst = VaryingWindow(eps).worst_case_loss("squared")
    assert worst < optdp.solve_ptt(eps).lower_bound
    for name in ("Duchi", "PM", "HM", "PM-SUB", "Three-Outputs"):
        assert worst < float(np.max(UNBIASED[name](eps).variance(np.linspace(-1, 1, 41)))), name


def test_variance_is_continuous_where_the_atoms_appear_and_falls_with_eps():
    eps = np.linspace(0.3, LARGEST_EPS, 400)
    values = np.array([float(VaryingWindow(float(e)).variance(0.2)) for e in eps])
    assert np.all(np.diff(values) < 0)
    threshold = 0.7122854309236591
    gap = [float(VaryingWindow(threshold + d).variance(0.0)) for d in (-1e-9, 1e-9)]
    assert gap[0] == pytest.approx(gap[1], rel=1e-7)


@pytest.mark.parametrize("eps", [0.5, 1.2])
def test_sampler_follows_the_distribution(eps):
    mechanism, n = VaryingWindow(eps), 200_000
    for x in (-1.0, 0.3, 0.95):
        y = mechanism.randomize(np.full(n, x), 7)
        sd = math.sqrt(float(mechanism.variance(x)))
        assert abs(y.mean() - x) < 5 * sd / math.sqrt(n)
        assert y.var() == pytest.approx(sd**2, rel=0.02)
        for atom, p in zip(mechanism.atoms(), mechanism.probability(mechanism.atoms(), x), strict=True):
            assert abs(np.mean(y == atom) - p) < 5 * math.sqrt(p / n) + 1e-9
        assert np.mean(np.abs(y - x)) == pytest.approx(float(mechanism.expected_loss(x, "abs")), rel=0.01)


def test_round_trip_and_bad_input():
    mechanism = VaryingWindow(0.9, optdp.Interval(0.0, 4.0))
    assert Mechanism.from_dict(mechanism.to_dict()) == mechanism
    assert mechanism.randomize(2.0, 1).shape == ()
    for eps in (0.0, 1.4):
        with pytest.raises(ValueError, match=f"eps = {eps}"):
            VaryingWindow(eps)
    with pytest.raises(ValueError, match="Circle"):
        VaryingWindow(0.5, optdp.Circle(1.0))

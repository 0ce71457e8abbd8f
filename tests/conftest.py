"""Shared strategies and settings."""

import math
import os

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings

import optdp

settings.register_profile(
    "ci", deadline=None, max_examples=60, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("soak", deadline=None, max_examples=2000, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def epsilons(low=1e-3, high=12.0):
    """Epsilons, evenly spread over the orders of magnitude."""
    return st.floats(math.log(low), math.log(high)).map(math.exp)


def losses():
    """abs, squared and other powers."""
    return st.one_of(st.sampled_from(["abs", "squared"]), st.floats(0.2, 6.0).map(optdp.Power))


def intervals():
    """Intervals of all sizes and places."""
    return st.builds(lambda a, w: (a, a + w), st.floats(-1e3, 1e3), st.floats(1e-2, 1e3))


def domains():
    """Intervals and circles."""
    circles = st.builds(optdp.Circle, st.floats(1e-2, 1e3), st.floats(-100, 100))
    return st.one_of(intervals(), circles)

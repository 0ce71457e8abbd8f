"""Shared strategies and settings."""

import gc
import importlib
import math
import os
import pkgutil
import sys

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings

import optdp


def pytest_collection_finish():
    """What is loaded by now stays: it would be searched for cycles again and again."""
    gc.freeze()


settings.register_profile(
    "ci", deadline=None, max_examples=40, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
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


@pytest.fixture(autouse=True)
def _figures_closed():
    """Figures that a test leaves open are not counted against the next."""
    yield
    if pyplot := sys.modules.get("matplotlib.pyplot"):
        pyplot.close("all")


@pytest.fixture
def taken_back():
    """The registers as they are once every module is loaded: the very dictionaries, which other modules hold too."""
    for module in pkgutil.walk_packages(optdp.__path__, "optdp."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    from optdp.audit import claim
    from optdp.certificates.base import Certificate
    from optdp.design import registry
    from optdp.mechanisms import baselines
    from optdp.problem import Loss

    families = [Loss._known, optdp.Privacy._known, Certificate._known, optdp.Mechanism._registry]
    books = [registry._DESIGNS, claim.CLAIMS, baselines._known, *families]
    before = [dict(book) for book in books]
    yield
    for book, content in zip(books, before, strict=True):
        book.clear()
        book.update(content)

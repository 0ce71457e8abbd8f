"""A small, fast solution of every kind of problem: made once for the tests that take solutions apart."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import optdp
from optdp.audit.audit import _run

KERNEL = {"rtol": 0.05}
HAMMING = [[0, 1, 1], [1, 0, 1], [1, 1, 0]]
ORDERED = [[0, 1, 2], [1, 0, 1], [2, 1, 0]]
PRIOR = [0.5, 0.3, 0.2]
HERE = (-1, 1)
SKEWED = ([0.0, 0.5, 1.0], [0.25, 0.25, 0.5])


def quartic(v):
    """A base that falls towards its ends."""
    return 1 - 0.5 * np.asarray(v) ** 4


def hat(v):
    """An activation with a flat top."""
    return np.minimum(1, 2 * (1 - np.abs(v)))


def three_letters(loss, privacy=1.0, prior=None):
    return optdp.solve_kernel(privacy, loss, domain=optdp.Alphabet(3), prior=prior)


def graded(privacy):
    """A coarse noise, which is checked soon, with the bound of a finer one."""
    coarse, fine = optdp.solve_additive(privacy, n=24), optdp.solve_additive(privacy, rtol=0.03).certificate
    return replace(coarse, certificate=fine, lower_bound=fine.bound(coarse.problem).value)


MAKE = {
    # piecewise
    "piecewise abs": lambda: optdp.solve_piecewise(1.0),
    "piecewise squared": lambda: optdp.solve_piecewise(1.0, 3, "squared"),
    "piecewise m=2": lambda: optdp.solve_piecewise(1.0, 2),
    "piecewise m=2 squared": lambda: optdp.solve_piecewise(1.0, 2, "squared"),
    "piecewise m=5": lambda: optdp.solve_piecewise(1.0, 5),
    "piecewise eps=0.1": lambda: optdp.solve_piecewise(0.1),
    "piecewise eps=2": lambda: optdp.solve_piecewise(2.0),
    "piecewise eps=log(3)": lambda: optdp.solve_piecewise(optdp.log(3)),
    "piecewise eps='0.1'": lambda: optdp.solve_piecewise("0.1"),
    "piecewise huber": lambda: optdp.solve_piecewise(1.0, 3, optdp.Huber(0.25)),
    "piecewise threshold": lambda: optdp.solve_piecewise(1.0, 3, optdp.Threshold(0.25)),
    "piecewise pieces": lambda: optdp.solve_piecewise(1.0, 3, optdp.Pieces((0, "1/2"), ((0, 1), ("-1/2", 2)))),
    "piecewise root": lambda: optdp.solve_piecewise(1.0, 3, optdp.Power(0.5)),
    "piecewise linear": lambda: optdp.solve_piecewise(1.0, placement="linear"),
    "piecewise [0, 2]": lambda: optdp.solve_piecewise(1.0, domain=(0, 2)),
    "piecewise circle": lambda: optdp.solve_piecewise(1.0, domain=optdp.Circle(1.0)),
    "piecewise circle squared": lambda: optdp.solve_piecewise(1.0, 3, "squared", domain=optdp.Circle(1.0)),
    "circle average": lambda: optdp.solve(
        optdp.Problem(optdp.LDP(1.0), optdp.Circle(1.0), optdp.Average("abs", "uniform"), optdp.AllMechanisms()), rtol=1e-3
    ),
    # affine windows
    "ptt I": lambda: optdp.solve_ptt(1.0, "I"),
    "ptt II": lambda: optdp.solve_ptt(1.0, "II"),
    "ptt free": lambda: optdp.solve_ptt(1.0, "free"),
    "ptt I eps=2": lambda: optdp.solve_ptt(2.0, "I"),
    "ptt II log(3)": lambda: optdp.solve_ptt(optdp.log(3), "II"),
    # composites
    **{
        f"composite {a}{b}": lambda a=a, b=b: optdp.solve_composite(1.0, a, b, inputs=HERE)
        for a in ("A1", "A2", "A3") for b in ("B1", "B2")
    },
    "composite A1B1 pointwise": lambda: optdp.solve_composite(1.0, "A1", "B1", rule="pointwise", inputs=HERE),
    "composite A1B2 pointwise": lambda: optdp.solve_composite(1.0, "A1", "B2", rule="pointwise", inputs=HERE),
    "composite own base": lambda: optdp.solve_composite(1.0, "A1", quartic, inputs=HERE),
    "composite own base pointwise": lambda: optdp.solve_composite(1.0, "A1", quartic, rule="pointwise", inputs=HERE),
    "composite own activation": lambda: optdp.solve_composite(1.0, hat, "B1", inputs=HERE),
    "composite A1B1 worst": lambda: optdp.solve_composite(1.0, objective="worst", inputs=HERE),
    "composite A3B1 worst": lambda: optdp.solve_composite(1.0, "A3", objective="worst", inputs=HERE),
    "composite own base worst": lambda: optdp.solve_composite(1.0, "A1", quartic, objective="worst", inputs=HERE),
    "composite placed by its outputs": lambda: optdp.solve_composite(1.0, "A2", lower=10.0),
    # additive noise
    "additive": lambda: optdp.solve_additive(1.0, 0.1, rtol=0.05),
    "additive squared": lambda: optdp.solve_additive(1.0, 0.1, "squared", rtol=0.05),
    "additive delta=0": lambda: optdp.solve_additive(1.0, rtol=0.05),
    "additive delta=0 squared": lambda: optdp.solve_additive(1.0, 0.0, "squared", rtol=0.05),
    "additive eps=0": lambda: optdp.solve_additive(0.0, 0.1, rtol=0.05),
    "additive discrete": lambda: optdp.solve_additive(1.0, 0.1, discrete=True, rtol=0.05),
    "additive discrete delta=0": lambda: optdp.solve_additive(1.0, discrete=True, rtol=0.05),
    "additive sensitivity 2": lambda: optdp.solve_additive(1.0, 0.1, sensitivity=2.0, rtol=0.05),
    "staircase eps=20": lambda: optdp.solve_additive(20.0),
    "additive eps=14": lambda: optdp.solve_additive(14.0, 0.5),
    "additive period": lambda: optdp.solve_additive(8.0, 1e-6, "squared"),
    "additive period integers": lambda: optdp.solve_additive(9.0, 1e-6, "squared", sensitivity=10, discrete=True),
    "additive eps=0, delta=1e-9": lambda: optdp.solve_additive(0.0, 1e-9),
    "additive eps=20 integers": lambda: optdp.solve_additive(16.0, 0.01, sensitivity=2**34, discrete=True, rtol=0.05),
    "additive eps=16 integers of 2": lambda: optdp.solve_additive(16.0, 0.5, sensitivity=2, discrete=True),
    "additive eps=16 integers squared": lambda: optdp.solve_additive(
        16.0, 1e-6, "squared", sensitivity=600, discrete=True, rtol=0.05
    ),
    "additive integers of 7": lambda: optdp.solve_additive(8.0, sensitivity=7, discrete=True),
    "additive integers, n apart": lambda: optdp.solve_additive(1.0, 0.1, sensitivity=10**5 + 3, discrete=True, rtol=0.05),
    "additive wide integers": lambda: optdp.solve_additive(1.0, 0.1, sensitivity=10**6, discrete=True, rtol=0.05),
    "additive wide integers delta=0": lambda: optdp.solve_additive(8.0, sensitivity=10**6, discrete=True),
    "notion profile": lambda: optdp.solve_additive(optdp.Profile([(0.5, 0.1), (1.0, 0.05)]), rtol=0.05),
    "notion profile delta=0": lambda: optdp.solve_additive(optdp.Profile([(0.5, 0.1), (2.0, 0.0)]), rtol=0.05),
    "notion gdp": lambda: optdp.solve_additive(optdp.GDP(1.0), rtol=0.05),
    "notion gdp squared": lambda: optdp.solve_additive(optdp.GDP(0.5), loss="squared", rtol=0.05),
    "notion gdp lattice": lambda: optdp.solve_additive(optdp.GDP(0.5), loss="squared", n=4),
    "notion gdp huber": lambda: optdp.solve_additive(optdp.GDP("1/3", 0.1), loss=optdp.Huber(0.2), rtol=0.05),
    "notion gdp discrete": lambda: optdp.solve_additive(optdp.GDP(1.0, 2.0), discrete=True, rtol=0.05),
    "notion gdp rounded": lambda: optdp.solve_additive(optdp.GDP("4/3"), loss="squared", discrete=True),
    "notion gdp graded": lambda: graded(optdp.GDP(3.4)),
    "notion kl": lambda: optdp.solve_additive(optdp.KL(0.5), rtol=0.05),
    "notion kl squared": lambda: optdp.solve_additive(optdp.KL(0.5), loss="squared", rtol=0.05),
    "notion rdp": lambda: optdp.solve_additive(optdp.RDP(4, 1.0), rtol=0.05),
    "notion rdp squared": lambda: optdp.solve_additive(optdp.RDP(16, 2.0), loss="squared", rtol=0.05),
    "notion curve": lambda: optdp.solve_additive(
        optdp.Curve([(k / 8, 0.38 * (1 - k / 32) ** 2) for k in range(33)]), rtol=0.05
    ),
    "notion rdp steep": lambda: optdp.solve_additive(optdp.RDP(16, 32.0)),
    "notion kl steep": lambda: optdp.solve_additive(optdp.KL(32.0)),
    "notion releases": lambda: optdp.solve_additive(1.0, 1e-5, releases=4, accounting="gaussian", rtol=0.05),
    "error quantile": lambda: optdp.solve_additive(1.0, 0.1, optdp.Quantile(0.9), rtol=0.05),
    "error quantile integers": lambda: optdp.solve_additive(optdp.KL(0.5, 2.0), loss=optdp.Quantile(0.9), discrete=True),
    "additive power 1.5": lambda: optdp.solve_additive(1.0, 0.1, optdp.Power(1.5), rtol=0.05),
    # kernels
    "kernel abs": lambda: optdp.solve_kernel(1.0, **KERNEL),
    "kernel squared": lambda: optdp.solve_kernel(1.0, "squared", **KERNEL),
    "kernel eps=2": lambda: optdp.solve_kernel(2.0, **KERNEL),
    "kernel log(3)": lambda: optdp.solve_kernel(optdp.log(3), **KERNEL),
    "kernel unbiased": lambda: optdp.solve_kernel(1.0, "squared", unbiased=True, **KERNEL),
    "kernel unbiased [-1, 1]": lambda: optdp.solve_kernel(1.0, "squared", unbiased=True, domain=HERE, **KERNEL),
    "kernel squared [-1, 1]": lambda: optdp.solve_kernel(1.0, "squared", domain=HERE, **KERNEL),
    "piecewise squared [-1, 1]": lambda: optdp.solve_piecewise(1.0, 3, "squared", domain=HERE),
    "kernel outputs": lambda: optdp.solve_kernel(1.0, outputs=(0.25, 0.75), **KERNEL),
    "kernel wide outputs": lambda: optdp.solve_kernel(1.0, outputs=(-0.5, 1.5), **KERNEL),
    "kernel prior": lambda: optdp.solve_kernel(1.0, prior=SKEWED, **KERNEL),
    "kernel squared prior": lambda: optdp.solve_kernel(1.0, "squared", prior=SKEWED, **KERNEL),
    "kernel unbiased prior": lambda: optdp.solve_kernel(1.0, unbiased=True, prior=([0.25, 0.5], [0.25, 0.75]), **KERNEL),
    "kernel [0, 2]": lambda: optdp.solve_kernel(1.0, domain=(0, 2), **KERNEL),
    "finite hamming": lambda: three_letters(HAMMING),
    "finite hamming eps=2": lambda: three_letters(HAMMING, 2.0),
    "finite ordered": lambda: three_letters(ORDERED),
    "finite ordered prior": lambda: three_letters(ORDERED, 1.0, PRIOR),
    "finite log(2)": lambda: three_letters(ORDERED, optdp.log(2)),
    # distances
    "metric points": lambda: optdp.solve_kernel(1.0, domain=optdp.Alphabet(3), metric=optdp.Points([(0, 0), (1, 0), (0, 2)])),
    "metric prior": lambda: optdp.solve_kernel(1.0, ORDERED, domain=optdp.Alphabet(3), metric=ORDERED, prior=PRIOR),
    "metric graph": lambda: optdp.solve_kernel(optdp.log(2), domain=optdp.Alphabet(3), metric=optdp.Graph([(0, 1), (1, 2)])),
    "metric circle": lambda: optdp.solve_kernel(1.0, domain=optdp.Circle(3.0, 1.0), metric="abs", rtol=0.05),
    "plane": lambda: optdp.solve_kernel(1.0, domain=optdp.Box((0, 0), (2, 1)), rtol=0.05),
    "plane squared": lambda: optdp.solve_kernel(1.0, "squared", domain=optdp.Box((0, 0), (1, 1)), rtol=0.05),
    "metric line": lambda: optdp.solve_kernel(1.0, metric="abs", rtol=0.05),
    # frequencies
    "frequency sets": lambda: optdp.solve_frequency(1.0, 10),
    "frequency sets of 12": lambda: optdp.solve_frequency(1.0, 12, message="set"),
    "frequency eps=2": lambda: optdp.solve_frequency(2.0, 10),
    "frequency pair": lambda: optdp.solve_frequency(1.0, 12, message="pair"),
    "frequency names": lambda: optdp.solve_frequency(optdp.log(2), ["a", "b", "c"]),
    # vectors
    "vector sphere": lambda: optdp.solve_vector(1.0, 4),
    "vector line": lambda: optdp.solve_vector(optdp.log(3), 1),
    "vector ball": lambda: optdp.solve_vector(2.0, 10, inputs="ball", rtol=0.01),
    "vector radial": lambda: optdp.solve_vector(4.0, 3, inputs="ball", rtol=0.01),
    "vector reversed": lambda: optdp.solve_vector(0.1, 2, inputs="ball", rtol=0.01),
    "vector ball of one": lambda: optdp.solve_vector(1.0, 1, inputs="ball", rtol=0.05),
    "vector cube": lambda: optdp.solve_vector(2.0, 100, norm="linf", rtol=0.06),
    # information privacy
    "lip sum": lambda: optdp.solve_lip(PRIOR, 1.0),
    "lip sum eps=0.5": lambda: optdp.solve_lip(PRIOR, 0.5),
    "lip sum values": lambda: optdp.solve_lip(PRIOR, 1.0, values=[0.0, 1.0, 5.0]),
    "lip sum other prior": lambda: optdp.solve_lip([0.2, 0.3, 0.5], 1.0),
    "lip histogram": lambda: optdp.solve_lip(PRIOR, 1.0, task="histogram"),
    "lip lower": lambda: optdp.solve_lip(PRIOR, 1.0, notion="lip-lower"),
    "lip lower histogram": lambda: optdp.solve_lip(PRIOR, 1.0, task="histogram", notion="lip-lower"),
    "lip ldp": lambda: optdp.solve_lip(PRIOR, 1.0, notion="ldp"),
    "lip ldp histogram": lambda: optdp.solve_lip(PRIOR, 1.0, task="histogram", notion="ldp"),
    "lip ldp chord": lambda: optdp.solve_lip([k / 300 for k in range(1, 25)], 2.0, task="histogram", notion="ldp", rtol=0.01),
    "lip ldp sets": lambda: optdp.solve_lip([k / 465 for k in range(1, 31)], 3.0, task="histogram", notion="ldp"),
}  # fmt: skip


#: Those whose proofs take about a second: tests that prove each of them many times leave these to `make soak`.
HEAVY = ("lip ldp chord", "lip ldp sets", "notion curve", "notion gdp graded", "vector radial")


def often(names=tuple(MAKE)):
    """Parameters of such a test."""
    return [pytest.param(name, marks=[pytest.mark.soak] * (name in HEAVY)) for name in names]


@cache
def audited(id):
    """A row of the audit, decided once."""
    return _run(id)


@cache
def solution(name):
    """One of them."""
    return MAKE[name]()


def solutions():
    """name -> solution, all of them."""
    return {name: solution(name) for name in MAKE}

"""Noise with the shortest error bars: quantiles of |X|, and the probabilities of errors above t that they rest on."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import csr_matrix
from scipy.special import ndtri

import optdp
from optdp.certificates.additive import AdditiveCertificate
from optdp.certificates.base import Bound, Certificate, Refusal
from optdp.certificates.half_lines import HalfLinesCertificate
from optdp.certificates.quantile import QuantileCertificate
from optdp.design.additive import curve
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.mechanisms.baselines import noise
from optdp.mechanisms.gaussian import LatticeGaussian

NOTIONS = [
    optdp.ApproxDP(1.0, 0.0), optdp.ApproxDP(1.0, 0.05), optdp.ApproxDP(0.0, 0.2), optdp.GDP(1.0), optdp.KL(0.5),
    optdp.RDP(4, 1), optdp.Profile([(0.5, 0.1), (1.5, 0.0)]),
]  # fmt: skip


def solved(privacy, loss, **options):
    given = (privacy.eps, privacy.delta) if isinstance(privacy, optdp.ApproxDP) else (privacy,)
    if isinstance(privacy, optdp.ApproxDP):
        options["sensitivity"] = privacy.sensitivity
    return optdp.solve_additive(*given, loss=loss, **options)


def at(n, a):
    """The loss of errors above the end of cell a of n per sensitivity (just below it: noise may have an atom there)."""
    return optdp.Threshold(math.nextafter((2 * a + 1) / (2 * n), 0.0))


@pytest.mark.parametrize("privacy", NOTIONS, ids=str)
def test_lattices_are_exact_at_the_ends_of_their_cells(privacy):
    """The end of cell a of n is that of cell 3 a + 1 of 3 n: both programs have the value of the line itself."""
    coarse, fine = solved(privacy, at(1, 1), n=1), solved(privacy, at(3, 4), n=3)
    for one, other in ((coarse, fine), (fine, coarse)):
        assert one.verify() and one.gap < 4e-3 and one.lower_bound <= other.value
    assert coarse.value == pytest.approx(fine.value, rel=2e-3)


def dense(eps, delta, width, limit, size):
    """The least P(|X| > limit) on the integers up to `size`: the whole program, without rows as needed."""
    index, ratio = np.arange(-size, size + 1), math.exp(eps)
    rows, columns, entries, bounds = [], [], [], []
    fold, count, row = np.abs(index), size + 1, 0
    for s in range(1, width + 1):
        first = count
        for i in range(-size - s, size + 1):
            here = [(abs(i), 1.0)] if abs(i) <= size else []
            here += [(abs(i + s), -ratio)] if abs(i + s) <= size else []
            for column, entry in [*here, (count, -1.0)]:
                rows.append(row), columns.append(column), entries.append(entry)
            bounds.append(0.0)
            count, row = count + 1, row + 1
        for column in range(first, count):
            rows.append(row), columns.append(column), entries.append(1.0)
        bounds.append(delta)
        row += 1
    weight = np.bincount(fold).astype(float)
    cost = np.zeros(count)
    cost[limit + 1 : size + 1] = weight[limit + 1 :]
    mass = np.append(weight, np.zeros(count - size - 1))[None]
    limits = csr_matrix((entries, (rows, columns)), shape=(row, count))
    return linprog(cost, limits, bounds, mass, [1.0], method="highs").fun


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
@pytest.mark.parametrize(("eps", "delta", "width"), [(1.0, 0.05, 2), (0.5, 0.02, 1), (2.0, 0.1, 3)])
def test_integers_agree_with_the_plain_program(eps, delta, width, level):
    found = optdp.solve_additive(eps, delta, optdp.Quantile(level), sensitivity=width, discrete=True)
    assert found.verify() and found.gap == 0
    k = int(found.value)
    assert dense(eps, delta, width, k, 12 * width + k) <= 1 - level
    assert k == 0 or dense(eps, delta, width, k - 1, 12 * width + k) > 1 - level


def test_quantiles_rise_with_the_level_and_fall_with_the_budget():
    @cache
    def value(eps, delta, level):
        return optdp.solve_additive(eps, delta, optdp.Quantile(level), rtol=0.05)

    levels = [value(1.0, 0.01, level) for level in (0.5, 0.95)]
    for budget in ([(0.5, 0.01), (1.0, 0.01)], [(1.0, 0.0), (1.0, 0.01)]):
        found = [value(*pair, 0.9) for pair in budget]
        assert all(worse.value >= better.lower_bound for worse, better in pairwise(found))
        assert found[0].lower_bound > found[-1].value
    assert all(a.value < b.lower_bound for a, b in pairwise(levels))
    assert all(s.gap <= 0.05 for s in levels)


@pytest.mark.parametrize("privacy", [optdp.ApproxDP(1.0, 0.01), optdp.KL(0.5)], ids=str)
def test_quantiles_scale_with_the_sensitivity(privacy):
    one, wide = (solved(replace(privacy, sensitivity=s), optdp.Quantile(0.9), rtol=0.02) for s in (1.0, 8.0))
    assert wide.value == pytest.approx(8 * one.value, rel=1e-9)
    assert wide.lower_bound == pytest.approx(8 * one.lower_bound, rel=1e-9)


@pytest.mark.parametrize("level", [0.6, 0.95])
def test_never_wider_than_published_noise(level):
    def half_width(mechanism):
        return mechanism.confidence_interval(level)[1]

    pure = optdp.solve_additive(1.0, loss=optdp.Quantile(level), rtol=0.01)
    approximate = optdp.solve_additive(1.0, 0.01, optdp.Quantile(level), rtol=0.01)
    rivals = [noise.Laplace(1.0), noise.Staircase(1.0)]
    assert all(pure.lower_bound <= half_width(rival) for rival in rivals)
    # log(1/(1 - level)) of Laplace noise: the optimum is at least as short, up to its own gap.
    assert pure.value * (1 - pure.gap) <= -math.log1p(-level)
    analytic = noise.Gaussian(1.0, 0.01)
    assert approximate.value < half_width(analytic)


def test_under_its_own_promise_the_gaussian_has_wider_error_bars():
    found = optdp.solve_additive(optdp.GDP(1.0), loss=optdp.Quantile(0.95), rtol=0.02)
    assert found.gap <= 0.02 and found.verify() and found.value < 0.98 * NormalDist().inv_cdf(0.975)


@pytest.mark.parametrize("discrete", [False, True])
def test_a_level_that_is_next_to_one(discrete):
    """The Gaussian's quantile at (1 + level)/2, which rounds to 1, is not infinite."""
    level = 1 - 2.0**-53
    found = optdp.solve_additive(optdp.GDP(1.0), loss=optdp.Quantile(level), discrete=discrete, time_limit=0.3)
    assert found.lower_bound <= -NormalDist().inv_cdf((1 - level) / 2) + 0.5 and found.verify()


def test_gaussian_dp_knows_error_bars_at_halves_of_a_sensitivity():
    """No noise has less than the Gaussian's P(|X| > k/2): from 0.96 to 1 nothing was proven; programs were solved at any mu."""
    found = optdp.solve_additive(optdp.GDP(1.5), loss=optdp.Quantile(0.9), rtol=0.1)
    assert found.gap <= 0.1 and found.lower_bound == pytest.approx(1, abs=1e-15)
    far = optdp.solve_additive(optdp.GDP(0.01), loss=optdp.Quantile(0.5), rtol=0.01)
    assert far.lower_bound == 67 and far.value == pytest.approx(67.449, abs=1e-3) and far.mechanism.exact
    assert far.verify()


@pytest.mark.parametrize("level", [1e-300, 1e-17, 1e-12, 0.3, 0.9, 1 - 2.0**-53])
@pytest.mark.parametrize("mu", ["1/3", 1.0, 8])
def test_the_error_bar_of_what_is_added_for_a_gaussian(mu, level):
    noise = LatticeGaussian(optdp.Line(), 3.0, mu)
    low, high = noise.enclose(optdp.Quantile(level))
    exact = -float(noise.sigma) * ndtri((1 - level) / 2)
    assert low <= exact * (1 + 1e-15) and exact * (1 - 1e-15) <= high and high - low <= 1e-13 * noise.sigma


@pytest.mark.parametrize("privacy", [optdp.KL(0.1, 3.0), optdp.RDP(4, 1, 3.0), optdp.GDP(1.0, 3.0)], ids=str)
def test_integers_are_exact_under_other_notions(privacy):
    found = solved(privacy, optdp.Quantile(0.95), discrete=True)
    assert found.verify() and found.gap == 0 and found.value == int(found.value)
    assert solved(privacy, optdp.Quantile(0.95), rtol=0.05).lower_bound <= found.value + 0.5


weights = st.lists(st.integers(1, 2**40), min_size=1, max_size=6)


@given(
    weights=weights, atom=st.integers(0, 2**40), decay=st.integers(0, 2**62 - 2**46), level=st.floats(0.001, 0.999_999)
)
@settings(max_examples=40, deadline=None)
def test_enclosures_hold_the_quantile(weights, atom, decay, level):
    for domain, stuck, tail in ((optdp.Line(), atom, ()), (optdp.Line(), 0, (5, 3)), (optdp.Integers(), 0, (3, 7))):
        made = AdditiveMechanism(domain, 2.0, 2, tuple(weights), stuck, tail, decay if tail else 0)
        low, high = made.enclose_quantile(level)
        sent = made.enclose(optdp.Quantile(level))
        assert sent[0] <= low <= high <= sent[1]
        inside = 2 * made.cdf(np.array([high, low * (1 - 1e-9) - 1e-12])) - 1
        if made.discrete:  # |Z| <= k
            assert low == high == int(high)
            inside = 1 - 2 * made.cdf(np.array([-high - 1, -low]))
        assert inside[0] >= level * (1 - 1e-9)
        assert low == 0 or inside[1] <= level * (1 + 1e-6)


def test_what_is_sent_keeps_to_the_error_bar():
    for options in ({}, {"discrete": True, "sensitivity": 3.0}):
        found = optdp.solve_additive(1.0, 0.01, optdp.Quantile(0.9), rtol=0.05, **options)
        errors = np.abs(found.mechanism.randomize(np.full(100_000, 7.0), 5) - 7.0)
        assert np.mean(errors <= found.value) >= 0.9 - 0.005
        assert np.mean(errors < found.lower_bound) <= 0.9 + 0.005


def test_the_statement_and_what_is_saved():
    found = optdp.solve_additive(1.0, 0.1, optdp.Quantile(0.9), rtol=0.1)
    assert found.problem.statement().startswith("the least worst-case 0.9-quantile of |Y - x| over all ")
    assert r"P(|Y - x| \le t" in found.problem.latex()
    read = optdp.Solution.from_dict(json.loads(json.dumps(found.to_dict())))
    assert read.problem == found.problem and read.verify()
    assert replace(read, value=read.value * (1 - 1e-6)).verify().failures
    assert replace(read, lower_bound=read.lower_bound * (1 + 1e-6)).verify().failures


def test_certificates_prove_what_they_say():
    found = optdp.solve_additive(1.0, 0.1, optdp.Quantile(0.9), rtol=0.1)
    certificate, problem = found.certificate, found.problem
    assert certificate.bound(problem).value == found.lower_bound == certificate.limit
    assert certificate.bound(replace(problem, objective=optdp.Quantile(0.95))).value == certificate.limit
    refused = [
        (certificate, replace(problem, objective=optdp.Quantile(0.5))),  # noise may be nearer half of the time
        (certificate, replace(problem, objective=optdp.WorstCase("abs"))),
        (certificate.proof, problem),
        (replace(certificate, limit=2 * certificate.limit), problem),
        (replace(certificate, proof=certificate), problem),
        (QuantileCertificate(0.1, AdditiveCertificate(1, "nodes", ())), problem),
    ]
    for one, other in refused:
        with pytest.raises(Refusal):
            one.bound(other)
    assert QuantileCertificate(0.0, AdditiveCertificate(1, "nodes", ())).bound(problem).value == 0


def test_a_probability_that_is_just_reached_proves_nothing():
    """P(|Y - x| > t) = 1/4 leaves the 3/4-quantile at t or below; anything more puts it above."""
    problem = optdp.Problem(optdp.ApproxDP(1.0, 0.1), optdp.Line(), optdp.Quantile(0.75), optdp.Additive())

    def proven(probability):
        class Known(Certificate):
            def bound(self, other):
                return Bound(probability, "known")

        return QuantileCertificate(0.5, Known()).bound(problem).value

    with pytest.raises(Refusal, match="is not above"):
        proven(0.25)
    assert proven(math.nextafter(0.25, 1)) == 0.5


@pytest.mark.parametrize(("limit", "least"), [(0.25, 1), (2.0, 3), (2.5, 3), (2.75, 3)])
def test_errors_of_integers_above_a_limit_are_at_least_the_next_integer(limit, least):
    """On the line they are only known to be above it."""

    class Known(Certificate):
        def bound(self, other):
            return Bound(0.5, "known")

    for domain, value in ((optdp.Integers(), least), (optdp.Line(), limit)):
        problem = optdp.Problem(optdp.ApproxDP(1.0, 0.1), domain, optdp.Quantile(0.75), optdp.Additive())
        assert QuantileCertificate(limit, Known()).bound(problem).value == value


def test_refusals():
    with pytest.raises(ValueError, match=r"level = 0\.1 is not allowed: noise that is 0 with probability delta = 0\.2"):
        optdp.solve_additive(1.0, 0.2, optdp.Quantile(0.1))
    with pytest.raises(
        ValueError, match=r"level = 0\.99999999 is not allowed: .* delta = 0\.999999991 "
    ):  # neither is 1
        optdp.solve_additive(1.0, 0.999999991, optdp.Quantile(0.99999999))
    assert optdp.solve_additive(1.0, 0.2, optdp.Quantile(0.1), discrete=True).value == 0
    for level in (0.0, 1.0, -1, math.nan):
        with pytest.raises(ValueError, match="level"):
            optdp.Quantile(level)
    with pytest.raises(ValueError, match=r"no design solves: the least worst-case 0\.9-quantile"):
        optdp.solve(optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.Quantile(0.9)))
    for privacy in (optdp.RDP(2.0, 1.0), optdp.KL(0.5)):  # the first probability was not solved, and the level blamed
        with pytest.raises(ValueError, match=r"^rtol = 1e-06 is not allowed: rtol must be a number in \[1e-05, 1\]"):
            optdp.solve_additive(privacy, loss=optdp.Quantile(0.9), rtol=1e-6)
    published = noise.Laplace(1.0)
    with pytest.raises(TypeError, match="no proven value"):
        published.enclose(optdp.Quantile(0.9))


def test_an_integer_that_is_no_float_is_rounded_down():
    """What is above 2^53 + 2 is at least 2^53 + 3, which the nearest float is above."""
    privacy, limit = optdp.GDP(1, 2.0**52), 2.0**53 + 2
    least = optdp.Problem(privacy, optdp.Integers(), optdp.WorstCase(optdp.Threshold(limit)), optdp.Additive())
    proof = HalfLinesCertificate()
    quantile = replace(least, objective=optdp.Quantile(1 - proof.bound(least).value / 2))
    assert QuantileCertificate(limit, proof).bound(quantile).value == limit


def test_published_noise_is_compared_by_its_own_quantile():
    problem = optdp.Problem(optdp.ApproxDP(1.0, 0.0), optdp.Line(), optdp.Quantile(0.95), optdp.Additive())
    rows = {row["mechanism"]: row for row in optdp.compare(problem).rows}
    assert rows["Laplace"]["value"] == pytest.approx(-math.log(0.05))
    assert rows["optimum"]["value"] <= min(row["value"] for row in rows.values())


def test_error_bars_of_few_integers_under_a_small_mu():
    """Rounded from the line where a program on the integers is slow: [3, 9] after twelve seconds."""
    found = optdp.solve_additive(optdp.GDP(0.5, 7.0), loss=optdp.Quantile(0.5), discrete=True, rtol=0.2, time_limit=60)
    assert found.gap <= 0.2 and found.verify()


def test_once_time_is_up_noise_with_room_to_spare_is_next(monkeypatch):
    """Of 100,000 masses, as of integers under a small mu, seven more attempts took half a minute past a limit of a second."""
    made = []

    def broken(noise, privacy):
        made.append(noise)
        return False

    monkeypatch.setattr(AdditiveMechanism, "admitted", broken)
    problem = optdp.Problem(optdp.GDP(0.1), optdp.Integers(), optdp.WorstCase(optdp.Threshold(0.5)), optdp.Additive())
    assert curve._bracket(curve.Task(problem, 0.0, None), 1, None, 0.1) is None
    assert len(made) == 5 + 1  # one for each slack, and one that nothing is left of but the room to spare

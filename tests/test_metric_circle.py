"""Metric privacy on a circle: the closed form, the plain program beside it, and the mechanism's numbers."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chisquare

import optdp
from optdp.certificates.base import Refusal
from optdp.mechanisms.metric_line import MetricCircleMechanism

CIRCLE = optdp.Circle(3.0, -1.0)


@pytest.fixture(scope="module")
def found():
    return optdp.solve_kernel(2.0, domain=CIRCLE, metric="abs", rtol=0.02)


@pytest.mark.parametrize(("loss", "power"), [("abs", 1), ("squared", 2)])
@pytest.mark.parametrize("eps", [1e-5, 0.5, 15.0])
def test_the_bound_is_the_loss_of_the_exponential_density(eps, loss, power):
    best = optdp.solve_kernel(eps, loss, domain=CIRCLE, metric="abs", rtol=0.01)
    mass = quad(lambda t: math.exp(-eps * t), 0, 1.5)[0]
    assert best.lower_bound == pytest.approx(quad(lambda t: t**power * math.exp(-eps * t), 0, 1.5)[0] / mass, rel=1e-9)
    assert best.gap <= 0.01 and best.verify()


def test_the_plain_program_on_a_cycle_lies_just_below():
    """Points of a grid as symbols: their optimum bounds the circle's from below, but for outputs in between."""
    n, eps = 18, 2.0
    cycle = optdp.Graph([(k, (k + 1) % n) for k in range(n)], [3.0 / n] * n)
    plain = optdp.solve_kernel(eps, domain=optdp.Alphabet(n), metric=cycle)
    best = optdp.solve_kernel(eps, domain=CIRCLE, metric="abs", rtol=1e-3)
    step = 3.0 / n
    wrapped = np.exp(-eps * np.minimum(np.arange(n), n - np.arange(n)) * step)
    assert plain.value == pytest.approx(
        wrapped @ np.minimum(np.arange(n), n - np.arange(n)) * step / wrapped.sum(), rel=1e-6
    )
    assert plain.lower_bound <= best.value
    assert best.value <= plain.value * 1.05


def test_the_bracket_is_proven_for_this_problem(found):
    assert found.verify(), str(found.verify())
    assert not replace(found, lower_bound=found.lower_bound * (1 + 1e-9)).verify()
    assert not replace(found, problem=replace(found.problem, privacy=optdp.MetricLDP(1.99, "abs"))).verify()
    for problem in (
        replace(found.problem, privacy=optdp.LDP(2.0)),
        replace(found.problem, domain=optdp.Interval(-1, 2)),
        replace(found.problem, objective=optdp.WorstCase(optdp.Power(1.5))),
        replace(found.problem, objective=optdp.At("abs", 0.5)),  # a constant output costs nothing there
        replace(found.problem, objective=optdp.Average("abs", ([0.0, 1.0], [0.9, 0.1]))),
    ):
        with pytest.raises(Refusal):
            found.certificate.bound(problem)
    uniform = replace(found.problem, objective=optdp.Average("abs", "uniform"))
    assert found.certificate.bound(uniform).value == found.lower_bound


def test_probabilities_are_lipschitz_along_the_shorter_arc(found):
    x, other = np.random.default_rng(3).uniform(-1, 2, (2, 200))
    x[0], other[0] = -1.0, 2.0  # the same place
    outputs = found.mechanism.atoms()
    first, second = (found.mechanism.probability(outputs, v[:, None]) for v in (x, other))
    change = np.abs(np.log(first) - np.log(second)).max(axis=1)
    assert (change <= 2 * CIRCLE.distance(x, other) + 1e-9).all()
    assert np.allclose(first.sum(axis=1), 1)


def test_no_input_loses_more_than_the_value(found):
    x = np.linspace(-1, 2, 701)
    losses = found.mechanism.expected_loss(x, "abs")
    outputs = found.mechanism.atoms()
    direct = found.mechanism.probability(outputs, x[:40, None]) * CIRCLE.distance(x[:40, None], outputs)
    assert np.allclose(direct.sum(axis=1), losses[:40])
    low, high = found.mechanism.enclose(found.problem.objective)
    assert low <= losses.max() * (1 + 1e-12) and losses.max() <= high == found.value
    assert found.mechanism.worst_case_loss("abs") == pytest.approx(losses.max(), rel=1e-3)


def test_samples_follow_the_mixture(found):
    x = 1.93
    drawn = found.mechanism.randomize(np.full(30_000, x), 5)
    outputs = found.mechanism.atoms()
    counts = np.searchsorted(outputs, drawn)
    assert (outputs[counts] == drawn).all()
    counts = np.bincount(counts, minlength=outputs.size)
    expected = found.mechanism.probability(outputs, x) * drawn.size
    big = expected > 10
    assert chisquare(counts[big], expected[big] * counts[big].sum() / expected[big].sum()).pvalue > 1e-4


def test_the_slope_is_the_guarantee():
    made = MetricCircleMechanism(optdp.Circle(2.0), (8, 7, 7))
    assert made.guarantee().eps == Fraction(2, 7)  # steps of 1/2
    assert made.check_privacy(optdp.MetricLDP("2/7", "abs"))[0].passed
    assert not made.check_privacy(optdp.MetricLDP("0.2857", "abs"))[0].passed
    assert made.probability([0.0, 0.5, 1.0, 1.5], 0.0) == pytest.approx(np.array([8, 7, 7, 7]) / 29)
    for weights in ((1,), (0, 1), (2**124, 1)):
        with pytest.raises(ValueError, match="weights"):
            MetricCircleMechanism(optdp.Circle(2.0), weights)


def test_what_is_not_solved_is_named():
    for options, words in (
        ({"loss": optdp.Power(1.5)}, "objective = worst-case power.* loss"),
        ({"prior": "uniform"}, "objective = average abs.* a worst case"),
        ({"eps": 100.0}, "eps"),
    ):
        with pytest.raises(ValueError, match=words):
            optdp.solve_kernel(**{"eps": 1.0, "domain": CIRCLE, "metric": "abs", **options})


@pytest.mark.parametrize("period", [4.0, 6.0, 16.0])
@pytest.mark.parametrize("weights", [(9, 5, 1), (1, 7, 2, 3), (1000, 1)])
@pytest.mark.parametrize("power", [1, 2])
def test_values_hold_for_every_float_of_a_circle_of_few(period, weights, power):
    """Beside the exact law of what is sent: outputs are the floats next to the points of the grid."""
    circle, width = optdp.Circle(period, 2.0**53), Fraction(period)
    mechanism, values = MetricCircleMechanism(circle, weights), []
    ring, n = [*weights, *weights[-2:0:-1]], 2 * len(weights) - 2
    for x in np.arange(0.0, period + 1, 2):
        low, share = divmod(Fraction(float(x)) * n / width, 1)
        value = Fraction(0)
        for k, y in enumerate(mechanism._outputs.tolist()):
            arc = abs(Fraction(y) - 2**53 - Fraction(float(x))) % width
            chance = (1 - share) * ring[(k - low) % n] + share * ring[(k - low - 1) % n]
            value += chance / sum(ring) * min(arc, width - arc) ** power
        values.append(value)
    name = ("abs", "squared")[power - 1]
    low, high = mechanism.enclose(optdp.WorstCase(name))
    assert low <= max(values) <= high
    inputs = 2.0**53 + np.arange(0.0, period + 1, 2)
    assert mechanism.expected_loss(inputs, name) == pytest.approx(np.array(values, dtype=float), rel=1e-12)
    assert mechanism.worst_case_loss(name) == pytest.approx(float(max(values)), rel=1e-12)
    sent = mechanism.probability(mechanism.atoms(), inputs[:, None])
    assert sent.sum(axis=1) == pytest.approx(1.0)
    apart = circle.distance(inputs[:, None], mechanism.atoms()) ** power
    assert (sent * apart).sum(axis=1) == pytest.approx(np.array(values, dtype=float), rel=1e-12)


def test_the_end_of_a_circle_that_is_rounded_up_is_the_input_that_it_is():
    """2^53 + 3 is written as 2^53 + 4, which is 1 after the start."""
    mechanism = MetricCircleMechanism(optdp.Circle(3.0, 2.0**53), (6, 3, 2, 1))
    # The outputs 0, 1/2, ..., 5/2 are written as 0, 0, 0, 2, 2, 2 after the start; the input is the point 1.
    assert mechanism.probability(2.0**53, 2.0**53 + 4) == pytest.approx((2 + 3 + 6) / 17)
    drawn = mechanism.randomize(np.full(20_000, 2.0**53 + 4), 1)
    assert np.mean(drawn == 2.0**53) == pytest.approx(11 / 17, abs=0.02)


def test_a_loss_that_is_none_of_the_arc_is_asked_for_on_the_whole_circle(found):
    """Outputs below an input cost more than those above it: the worst input is far from the start."""
    mechanism, loss, inputs = found.mechanism, optdp.Pinball(0.2), np.linspace(-1.0, 2.0, 61)
    expected = mechanism.expected_loss(inputs, loss)
    atoms = mechanism.atoms()
    alone = [mechanism.probability(atoms, x) @ loss.of(x, atoms) for x in inputs.tolist()]
    assert expected == pytest.approx(np.array(alone), rel=1e-12)
    assert mechanism.worst_case_loss(loss) >= max(alone) * (1 - 1e-12)
    assert mechanism.average_loss(loss) == pytest.approx(np.mean(alone[:-1] + alone[1:]), rel=0.02)


def test_the_guarantee_that_is_shown_is_rounded_up():
    """4/21 was shown as 0.190476, which is less."""
    assert "eps = 0.190477 per unit" in repr(MetricCircleMechanism(optdp.Circle(3.0), (8, 7, 7)))

"""Metric privacy on an interval: brackets that hold for all inputs and outputs."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

import optdp
from optdp.certificates.base import Refusal
from optdp.certificates.metric import MetricCertificate
from optdp.certificates.metric_line import MetricLineCertificate, on_grid
from optdp.design.metric.line import peaked_program
from optdp.exact.rounding import TOTAL, Table
from optdp.exact.sampling import tossed
from optdp.mechanisms.metric_line import MetricCircleMechanism, MetricLineMechanism
from optdp.solvers.lipschitz import solve_columns
from optdp.solvers.lp import Highs


@pytest.fixture(scope="module")
def found():
    return optdp.solve_kernel(2.0, domain=(-1, 1), metric="abs", rtol=0.1)


def test_the_bracket_is_proven_and_lies_above_local_privacy(found):
    assert found.verify(), str(found.verify())
    assert found.gap <= 0.1
    # eps-LDP with eps = 2 * 2 is implied: d is at most 2 there.
    assert found.value >= optdp.solve_kernel(4.0, domain=(-1, 1), rtol=0.01).lower_bound
    assert not replace(found, lower_bound=found.lower_bound * (1 + 1e-9)).verify()
    assert not replace(found, problem=replace(found.problem, privacy=optdp.MetricLDP(1.9, "abs"))).verify()


@pytest.mark.parametrize("width", [1.1, 1.3, 3.0, 3.7])
def test_what_chords_lose_is_subtracted_downwards(width):
    """The bound of the interval is that of the grid less (cell)^2 / 4, as a rational."""
    solution = optdp.solve_kernel(1.0, "squared", domain=(0, width), metric="abs", rtol=0.5)
    one, problem = solution.certificate, solution.problem
    multipliers = MetricCertificate(one.weights, one.outputs, one.highs, one.lows, one.flows)
    whole = multipliers.bound(on_grid(problem, one.cells)).value
    exactly = Fraction(whole) - (Fraction(width) / one.cells) ** 2 / 4
    assert 0 < exactly - Fraction(1, 2**48) <= Fraction(one.bound(problem).value) <= exactly


@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_brackets_of_several_grids_overlap(loss):
    """The optimum lies in each of them, whatever the units."""
    brackets = [
        optdp.solve_kernel(eps, loss, domain=domain, metric="abs", rtol=rtol)
        for eps, domain, rtol in ((3.0, (0, 1), 0.3), (3.0, (0, 1), 0.1), (1.5, (0, 2), 0.3))
    ]
    unit = 2 if loss == "abs" else 4
    lows = [s.lower_bound / k for s, k in zip(brackets, (1, 1, unit), strict=True)]
    highs = [s.value / k for s, k in zip(brackets, (1, 1, unit), strict=True)]
    assert max(lows) <= min(highs)


@pytest.mark.parametrize(
    ("eps", "loss", "gap"),
    [(2.0, "abs", 1e-3), (5.0, "squared", 0.02), pytest.param(20.0, "abs", 0.05, marks=pytest.mark.soak)],
)
def test_cells_with_a_row_of_their_own(eps, loss, gap):
    """Brackets close like the square of the cells' width, and the mechanism is better than Laplace noise that is clamped."""
    best, half = optdp.solve_kernel(eps, loss, domain=(0, 1), metric="abs", rtol=gap), eps / 2
    assert best.gap <= gap and best.verify(), str(best.verify())
    fall = math.exp(-half)
    assert best.value < ((1 - fall) / eps if loss == "abs" else 2 / eps**2 * (1 - fall * (1 + half)))
    made, x = best.mechanism, np.linspace(0, 1, 4097)
    rows = made.probability(made.atoms()[:, None], x)
    assert (np.abs(np.diff(np.log(rows[rows.max(axis=1) > 0]), axis=1)) <= eps / 4096 * (1 + 1e-9)).all()
    assert made.expected_loss(x, loss).max() <= best.value * (1 + 1e-9)


def test_a_chain_is_solved_at_once_and_half_of_an_interval_is_enough():
    """All inequalities of a chain are there from the start; what the middle maps onto each other is one variable."""
    problem = optdp.Problem(optdp.MetricLDP(2.0, "abs"), optdp.Interval(0, 1), optdp.WorstCase("abs"))
    grid = on_grid(problem, 48)
    chain = solve_columns(grid.loss.array, grid.privacy.growth, None, tolerance=1e-6, pairs=grid.privacy.direct)
    assert chain.rounds == 1 and chain.value - chain.bound <= 1e-6 * chain.value
    program, fold = peaked_program(2.0, 16, 1)
    assert fold.shape == (33 * 33, (33 * 33 + 1) // 2) and program.rows.shape[1] == fold.shape[1] + 1
    solved = program.solve(Highs(method="ipm", crossover=False))
    rows = (fold @ solved.x[:-1]).reshape(33, 33)
    assert rows.sum(axis=1) == pytest.approx(1)
    assert (rows[:17] == rows[16::-1, ::-1]).all() and (rows[17:] == rows[:16:-1, ::-1]).all()
    assert chain.bound * (1 - 1e-6) <= solved.objective <= 1.002 * chain.value


def test_log_probabilities_are_lipschitz_at_any_two_inputs(found):
    rng = np.random.default_rng(3)
    x, other = rng.uniform(-1, 1, (2, 300))
    outputs = found.mechanism.atoms()
    first, second = (found.mechanism.probability(outputs, v[:, None]) for v in (x, other))
    assert (np.abs(np.log(first) - np.log(second)).max(axis=1) <= 2 * np.abs(x - other) + 1e-9).all()
    assert np.allclose(first.sum(axis=1), 1)


def test_no_input_loses_more_than_the_value(found):
    x = np.linspace(-1, 1, 1001)
    losses = found.mechanism.expected_loss(x, "abs")
    assert losses.max() <= found.value * (1 + 1e-9)
    low, high = found.mechanism.enclose(found.problem.objective)
    assert low <= losses.max() * (1 + 1e-9) and high == found.value


def test_samples_follow_the_mixture(found):
    x = 0.3712
    drawn = found.mechanism.randomize(np.full(30_000, x), 5)
    outputs = found.mechanism.atoms()
    counts = (drawn[:, None] == outputs).sum(axis=0)
    expected = found.mechanism.probability(outputs, x) * counts.sum()
    big = expected > 10
    observed = np.append(counts[big], counts[~big].sum())
    wanted = np.append(expected[big], expected[~big].sum())
    assert chisquare(observed[wanted > 0], wanted[wanted > 0] / wanted.sum() * observed.sum()).pvalue > 1e-4


def test_the_coin_is_exact_at_a_tie():
    rng = np.random.default_rng(0)
    third = Fraction(1, 3)
    assert tossed(int(third * 2**62) - 1, third, rng) and not tossed(int(third * 2**62) + 1, third, rng)
    assert not tossed(2**61, Fraction(1, 2), rng)


def test_a_slope_between_a_logarithm_and_the_float_below_it_is_allowed():
    """It was compared with the float, and refused where `satisfies` said yes."""
    low = 2**60
    high = low + 1266613732830808727  # floor(2^60 log 3)
    table = Table(np.array([[low, TOTAL - low], [high, TOTAL - high]]))
    made = MetricLineMechanism(optdp.Interval(0, 1), (0.0, 1.0), table)
    privacy = optdp.MetricLDP(optdp.log(3), "abs")
    assert made.satisfies(privacy) is True and made.check_privacy(privacy)[0].passed
    assert not made.check_privacy(optdp.MetricLDP(1.0986122886681096, "abs"))[0].passed


def test_the_slope_is_the_guarantee():
    half = TOTAL // 2
    table = Table(np.array([[half, half], [half + half // 8, half - half // 8]]))
    made = MetricLineMechanism(optdp.Interval(0, 1), (0.0, 1.0), table)
    assert made.guarantee().eps == Fraction(1, 7)
    assert made.check_privacy(optdp.MetricLDP("1/7", "abs"))[0].passed
    assert not made.check_privacy(optdp.MetricLDP("0.1428", "abs"))[0].passed


def test_what_is_not_solved_is_named():
    for options, words in (
        ({"loss": optdp.Power(1.5)}, "objective = worst-case power"), ({"prior": "uniform"}, "objective = average abs"),
        ({"unbiased": True}, "constraints"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            optdp.solve_kernel(1.0, metric="abs", **options)
    with pytest.raises(ValueError, match="eps"):
        optdp.solve_kernel(100.0, metric="abs")


def test_the_certificate_refuses_other_problems(found):
    for problem in (
        replace(found.problem, privacy=optdp.LDP(2.0)),
        replace(found.problem, objective=optdp.WorstCase(optdp.Power(1.5))),
        replace(found.problem, constraints=(optdp.Outputs(-2, 2),)),
        replace(found.problem, constraints=(optdp.Unbiased(),)),
        replace(found.problem, domain=optdp.Circle(2.0, -1.0)),  # whose optimum is below the interval's bound
        replace(found.problem, objective=optdp.Average("abs", "uniform")),
    ):
        with pytest.raises(Refusal):
            found.certificate.bound(problem)


@pytest.mark.parametrize("cells", [3, 7])
@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_numbers_of_the_grid_are_rounded_to_the_safe_side(loss, cells):
    """The step is no float: losses are not above the exact ones, distances not below, and the bound not above the grid's less the
    dip of chords.
    """
    problem = optdp.Problem(optdp.MetricLDP(1.0, "abs"), (0, 0.7), optdp.WorstCase(loss))
    grid, power, step = on_grid(problem, cells), 1 if loss == "abs" else 2, Fraction(0.7) / cells
    away = [[abs(i - j) * step for i in range(cells + 1)] for j in range(cells + 1)]
    assert all(
        Fraction(a) <= d**power
        for row, far in zip(grid.loss.rows, away, strict=True)
        for a, d in zip(row, far, strict=True)
    )
    assert all(Fraction(d) >= step for d in grid.privacy.metric.lengths)
    inner = optdp.solve(grid)
    proof = inner.certificate
    own = (
        MetricLineCertificate(cells, proof.weights, proof.outputs, proof.highs, proof.lows, proof.flows)
        .bound(problem)
        .value
    )
    dip = step**2 / 4 if loss == "squared" else 0
    assert 0 < Fraction(own) <= Fraction(proof.bound(grid).value) - dip < Fraction(math.nextafter(own, 1))


@pytest.mark.parametrize("domain", [optdp.Interval(2.0**54, 2.0**54 + 16), optdp.Circle(32.0, 2.0**54)])
def test_integers_that_are_no_floats_are_refused(domain):
    """2^54 + 1 and 2^54 + 2 are 1 apart, and as floats 4: a promise about their distance would not hold for what is read."""
    table = Table(np.array([[3 * 2**60, 2**60], [2**60, 3 * 2**60]]))
    line = isinstance(domain, optdp.Interval)
    mechanism = MetricLineMechanism(domain, (0.0, 1.0), table) if line else MetricCircleMechanism(domain, (3, 2, 1))
    assert mechanism.randomize(np.array([2**54, 2**54 + 4]), 0).shape == (2,)
    with pytest.raises(ValueError, match=r"x \(entry 1\) is not allowed: x must be numbers that are floats"):
        mechanism.randomize(np.array([2**54, 2**54 + 1]), 0)


@pytest.mark.parametrize("power", [1, 2])
def test_the_lower_end_is_attained_at_a_float(power):
    """The loss at a point of the grid that lies between floats was said to be attained: 4.36, where all floats have 2.14."""
    lower, outputs = 2.0**53, tuple(2.0**53 + 2 * j for j in range(4))
    weights = np.full((4, 4), 2**62 // 32)
    weights[[0, 1, 2, 3], [1, 3, 1, 1]] += 2**62 - weights[0].sum()
    mechanism = MetricLineMechanism(optdp.Interval(lower, lower + 4), outputs, Table(weights))
    losses = []
    for step in (0, Fraction(3, 2), Fraction(3)):  # of the floats of the domain, in cells
        low = min(int(step), 2)
        row = weights[low].astype(object) * (low + 1 - step) + weights[low + 1].astype(object) * (step - low)
        x = Fraction(lower) + step * Fraction(4, 3)
        losses.append(sum(w * abs(Fraction(y) - x) ** power for w, y in zip(row, outputs, strict=True)) / 2**62)
    low, high = mechanism.enclose(optdp.WorstCase("abs" if power == 1 else "squared"))
    assert Fraction(low) <= max(losses) <= Fraction(high)
    assert low >= 0.5 * float(max(losses))


def test_an_interval_of_few_floats_has_as_many_outputs():
    """Places of the grid that are written as one float were refused, as outputs that the user had given twice."""
    found = optdp.solve_kernel(0.125, "squared", domain=(2.0**53, 2.0**53 + 4), metric="abs", rtol=0.5)
    assert found.mechanism.outputs == (2.0**53, 2.0**53 + 2, 2.0**53 + 4) and found.verify()
    assert found.value >= max(found.mechanism.expected_loss([2.0**53, 2.0**53 + 2, 2.0**53 + 4], "squared"))


@pytest.mark.parametrize("width", [1e-139, 1e40])
def test_brackets_are_the_same_in_every_unit(width):
    """Multipliers of losses above 2^100 were cut off, and the bound was next to nothing."""
    found = optdp.solve_kernel(0.5 / width, domain=(0, width), metric="abs", rtol=0.1)
    assert found.gap <= 0.1 and found.verify()


def test_widths_that_are_no_lengths_of_edges_are_named():
    with pytest.raises(ValueError, match=r"the width of \[0, 1e-200\] must be between 1e-140"):
        optdp.solve_kernel(1e200, domain=(0, 1e-200), metric="abs")


def test_a_loss_whose_integral_overflows_is_not_said_to_overflow_itself():
    """(1e130)^2 is a float."""
    with pytest.raises(ValueError, match="it or its integral overflows"):
        optdp.solve_kernel(1e-130, "squared", domain=(0, 1e130), metric="abs")

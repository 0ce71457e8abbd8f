"""Losses of input and output: brackets for the continuum from values and Lipschitz constants, and exact matrices on alphabets."""

import pickle
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import optdp
from optdp.certificates import pair
from optdp.certificates.base import Certificate, Refusal
from optdp.certificates.pair import CLOSE, Dual, PairCertificate
from optdp.design import pair_kernel
from optdp.exact import Fields
from optdp.exact.rounding import TOTAL, Table
from optdp.mechanisms import baselines
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.mixture import MixtureMechanism
from optdp.mechanisms.piecewise import PiecewiseMechanism
from tests.counting import of_fractions


def distance(x, y):
    return np.abs(y - x)


def relative(x, y):
    return np.abs(y - x) / (x + 0.1)


def tilted(x, y):
    return (1 + x) * np.abs(y - x)


def asymmetric(x, y):
    return np.where(y > x, 3.0, 1.0) * (y - x) ** 2


DISTANCE = optdp.PairLoss(distance, "distance", 1.0)
RELATIVE = optdp.PairLoss(relative, "relative", (110.0, 10.0))
TILTED = optdp.PairLoss(tilted, "tilted", 3.0)
ASYMMETRIC = optdp.PairLoss(asymmetric, "asymmetric", 6.0)
STEEPER = optdp.PairLoss(tilted, "tilted on [2, 5]", (10.0, 6.0))
SIDED = optdp.PairLoss(lambda x, y: np.where(y > x, 3.0, 1.0) * np.abs(y - x), "sided", 3.0)
TRIANGLE = optdp.Density((0, 1), ((0, 2),))


def disjoint(one, other):
    return one.lower_bound > other.value or other.lower_bound > one.value


@pytest.fixture(scope="module")
def found():
    return optdp.solve_kernel(2.0, RELATIVE, rtol=1e-2)


def test_the_bracket_is_proven_and_says_on_what_terms(found):
    assert found.gap <= 1e-2
    told = found.verify()
    assert told and "provided that the loss changes by at most 110 |x - x'| + 10 |y - y'|" in str(told)
    assert "the user's function L = relative" in found.problem.statement()
    assert not replace(found, lower_bound=found.value * (1 - 1e-4)).verify()
    assert not replace(found, value=found.lower_bound * (1 + 1e-4)).verify()
    assert not replace(found, problem=replace(found.problem, privacy=optdp.LDP(1.99))).verify()
    with pytest.raises(TypeError, match="cannot be saved"):
        found.to_dict()
    again = pickle.loads(pickle.dumps(found))
    assert again == found and again.verify()


@pytest.mark.parametrize("eps", [0.1, 1.0, 3.0])
def test_the_distance_has_the_intervals_optimum(eps):
    own, known = optdp.solve_kernel(eps, DISTANCE, rtol=1e-2), optdp.solve_kernel(eps, rtol=1e-3)
    assert own.gap <= 1e-2 and not disjoint(own, known)


def test_other_problems_of_the_interval():
    """Outputs within limits, priors of points, densities, other places and units."""
    for options in (
        {"outputs": (0.25, 0.75)}, {"outputs": (-0.5, 1.5)}, {"prior": ([0.1, 0.5, 0.9], [0.2, 0.5, 0.3])}, {"prior": "uniform"},
        {"domain": (-2, 3)},
    ):  # fmt: skip
        own, known = (optdp.solve_kernel(1.0, loss, rtol=3e-2, **options) for loss in (DISTANCE, "abs"))
        assert own.gap <= 3e-2 and not disjoint(own, known), options
        assert own.verify(), str(own.verify())
    squared = optdp.PairLoss(lambda x, y: (x - y) ** 2, "squared", 2.0)
    own, known = (optdp.solve_kernel(1.0, loss, rtol=1e-2) for loss in (squared, "squared"))
    assert own.gap <= 1e-2 and not disjoint(own, known)


def test_units_do_not_matter():
    """x and y in thousandths, and the loss with them."""
    small = optdp.solve_kernel(1.0, TILTED, rtol=1e-2)
    large = optdp.solve_kernel(
        1.0, optdp.PairLoss(lambda x, y: (1 + x / 1000) * np.abs(y - x), "t", 3.0), domain=(0, 1000), rtol=1e-2
    )
    assert large.lower_bound / 1000 <= small.value and small.lower_bound <= large.value / 1000


@pytest.mark.parametrize("loss", [RELATIVE, TILTED, ASYMMETRIC], ids=lambda loss: loss.name)
def test_optima_fall_with_eps_and_lie_below_what_is_published(loss):
    optima = [optdp.solve_kernel(eps, loss, rtol=2e-2) for eps in (0.3, 1.0, 2.0)]
    assert all(s.gap <= 2e-2 for s in optima)
    assert all(larger.lower_bound <= smaller.value for smaller, larger in pairwise(optima))
    solution = optima[1]
    some = np.linspace(0, 1, 9)  # the worst input loses at least as much
    window = PiecewiseMechanism.private(1.0, 0.3, (0, 1))
    noise = baselines.get("clamped Laplace").build(replace(solution.problem, objective=optdp.WorstCase("abs")))
    assert min(other.expected_loss(some, loss).max() for other in (window, noise)) >= solution.lower_bound
    losses = solution.mechanism.expected_loss(np.linspace(0, 1, 2001), loss)
    low, high = solution.mechanism.enclose(solution.problem.objective)
    assert losses.max() <= solution.value == high and low <= losses.max() * (1 + 2e-2)


def test_averages_are_below_worst_cases_and_agree_with_quadrature():
    found = optdp.solve_kernel(2.0, TILTED, rtol=5e-2)
    average = optdp.solve_kernel(2.0, TILTED, prior=TRIANGLE, rtol=5e-2)
    assert average.verify() and average.lower_bound <= found.value
    x = (np.arange(2000) + 0.5) / 2000
    numerical = np.mean(average.mechanism.expected_loss(x, TILTED) * 2 * x)
    low, high = average.mechanism.enclose(average.problem.objective)
    assert low <= numerical * (1 + 1e-4) and numerical <= high * (1 + 1e-4)
    other = found.mechanism.enclose(average.problem.objective)
    assert other[1] >= average.lower_bound


@pytest.mark.parametrize("prior", ["uniform", optdp.Density((2, 5), (("-4/9", "2/9"),))])
def test_cells_of_a_density_have_its_masses_and_pay_for_their_width(prior):
    """On [2, 5]: each input stands for its cell, whose mean distance from it costs as much as losses may change on the way."""
    problem = optdp.Problem(optdp.LDP(1.0), (2, 5), optdp.Average(TILTED, prior))
    dual = Dual.of(PairCertificate((2.0, 5.0), (), (0.0, 0.0), 7), problem)
    share = (np.arange(70_000) + 0.5) / 70_000
    mass, cell, x = (1.0 if prior == "uniform" else 2 * share) / share.size, (7 * share).astype(int), 2 + 3 * share
    assert dual.weights == pytest.approx(np.bincount(cell, np.broadcast_to(mass, share.shape)), rel=1e-6)
    assert float(dual.lost) == pytest.approx(TILTED.rates[0] * (mass * np.abs(x - dual.inputs[cell])).sum(), rel=1e-6)


def test_moments_of_cells_are_computed_by_flint():
    """Floats were compared to the ends of pieces as fractions, which was half of what enclosing an average took."""
    thirds = optdp.Density((0, "1/3", 1), ((1,), (1,)))
    edges = np.array([-0.5, 0.0, 0.25, np.nextafter(1 / 3, 0), 1 / 3, np.nextafter(1 / 3, 1), 0.5, 1.0, 1.5])
    objective, many = optdp.Average("abs", thirds), np.linspace(0, 1, 1001)
    assert objective._moments(optdp.Interval(0, 1), edges)[0].tolist() == np.clip(edges, 0, 1).tolist()
    count, _ = of_fractions(lambda: objective._moments(optdp.Interval(0, 1), many))
    assert count < many.size


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.floats(0.1, 3)), min_size=1, max_size=4), st.floats(0.05, 4),
    st.booleans(),
)  # fmt: skip
def test_a_loss_made_to_be_awkward(tents, eps, averaged):
    """Valleys anywhere: minima of Lipschitz cones. A finite relaxation's optimum lies below the bracket's upper end."""

    def loss(x, y):
        cones = [height * (np.abs(x - a) + np.abs(y - b)) for a, b, height in tents]
        return np.minimum.reduce([*cones, np.ones(np.broadcast_shapes(np.shape(x), np.shape(y)))])

    prior = ([0.0, 0.4, 1.0], [0.3, 0.3, 0.4]) if averaged else None
    own = optdp.PairLoss(loss, "cones", max(h for *_, h in tents))
    solution = optdp.solve_kernel(eps, own, prior=prior, rtol=5e-2)
    assert solution.verify(), str(solution.verify())
    grid = np.array([0.0, 0.4, 1.0]) if averaged else np.linspace(0, 1, 9)
    fewer = optdp.solve_kernel(
        eps, loss(grid[:, None], np.linspace(0, 1, 401)), domain=optdp.Alphabet(len(grid)),
        prior=None if prior is None else prior[1],
    )  # fmt: skip
    # The relaxation to a few inputs has at most the bracket's upper end; fewer outputs cost at most half a step.
    assert fewer.lower_bound <= solution.value + own.rates[1] / 800 + 1e-12
    x = np.random.default_rng(0).uniform(0, 1, 500)
    if not averaged:
        assert solution.mechanism.expected_loss(x, own).max() <= solution.value * (1 + 1e-12)
    ratios = solution.mechanism.probability(solution.mechanism.atoms(), x[:, None])
    assert ratios.max(axis=0).max() <= 1 and (ratios.max(axis=0) <= np.exp(eps) * ratios.min(axis=0) * (1 + 1e-9)).all()


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.floats(0.01, 1), st.floats(0, 2)), min_size=1, max_size=5, unique_by=lambda r: r[0]),
    st.floats(0.1, 6), st.sampled_from([DISTANCE, TILTED, ASYMMETRIC]),
)  # fmt: skip
def test_no_output_has_a_price_below_the_proven_one(rows, eps, loss):
    """Whatever the multipliers, from the definition: at random outputs, and where inputs are."""
    points, weights, thresholds = zip(*sorted(rows), strict=True)
    problem = optdp.Problem(optdp.LDP(eps), (0, 1), loss)
    dual = Dual.of(PairCertificate(points, weights, thresholds), problem)
    proven = -dual.shortfall(0.05) * sum(weights) / float(dual.total)
    y = np.concatenate([np.random.default_rng(1).uniform(0, 1, 300), points])
    r = loss.of(np.array(points)[:, None], y) - np.array(thresholds)[:, None]
    prices = np.array(weights) @ (r + np.expm1(eps) * np.minimum(r, 0))
    assert prices.min() >= proven - 1e-12 * np.exp(eps)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.tuples(st.floats(2, 5), st.floats(0.01, 1), st.floats(0, 3)), min_size=1, max_size=4, unique_by=lambda r: r[0]),
    st.floats(0.1, 4), st.sampled_from([DISTANCE, SIDED, STEEPER]),
    st.sampled_from([None, ([4.5, 2.0, 3.0], [0.2, 0.5, 0.3]), "uniform", optdp.Density((2, 5), (("-4/9", "2/9"),))]),
    st.sampled_from([None, (3.0, 4.5), (1.0, 3.5)]),
)  # fmt: skip
def test_the_bound_is_the_dual_of_its_multipliers(rows, eps, loss, prior, outputs):
    """From the definition, with outputs one by one: no more, and less by what cells may lose alone."""
    points, weights, thresholds = map(np.array, zip(*sorted(rows), strict=True))
    limits = () if outputs is None else (optdp.Outputs(*outputs),)
    problem = optdp.Problem(
        optdp.LDP(eps), (2, 5), loss if prior is None else optdp.Average(loss, prior), constraints=limits
    )
    cells = 6 if prior is not None and not isinstance(prior, tuple) else 0
    inputs, lam, lost = points, weights / weights.sum(), 0.0
    if isinstance(prior, tuple):
        inputs, lam = np.array(prior[0]), np.array(prior[1])
    elif prior is not None:
        x = 2 + 3 * (np.arange(6000) + 0.5) / 6000
        inputs, mass = 2 + (np.arange(6) + 0.5) / 2, np.full(6000, 1 / 6000) if prior == "uniform" else (x - 2) / 9000
        lam = mass.reshape(6, -1).sum(axis=1)
        lost = loss.rates[0] * float(mass @ np.abs(x - np.repeat(inputs, 1000)))
    t = np.interp(inputs, points, thresholds)
    y = np.linspace(*(outputs or (2.0, 5.0)), 1201)
    r = loss.of(inputs[:, None], y) - t[:, None]
    dual = lam @ t + min(0.0, float((lam @ (r + np.expm1(eps) * np.minimum(r, 0))).min())) - lost
    made = PairCertificate(tuple(points), () if prior is not None else tuple(weights), tuple(thresholds), cells)
    proven, rounding = made.bound(problem).value, 1e-9 * np.exp(eps)
    lost = CLOSE * float(lam @ t) + loss.rates[1] * np.exp(eps) * (y[1] - y[0]) / 2
    assert max(dual - lost, 0.0) - rounding <= proven <= max(dual, 0.0) + rounding


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 60),
    st.floats(0.01, 30),
    st.sampled_from([2.0**-1060, 2.0**-30, 1.0, 2.0**60, 2.0**400]),
    st.integers(0, 999),
)
def test_roundings_of_prices_are_paid_for(count, eps, unit, seed):
    """Losses whose prices cancel: no float is above the rational number that these floats define."""
    rng = np.random.default_rng(seed)
    points = np.sort(rng.choice(2**20, count, replace=False)) / 2**20
    own = optdp.PairLoss(lambda x, y: unit * np.abs(np.sin(1e3 * x)) + 0 * y, "wave", (1e3 * unit, 0.0))
    losses = own.of(points, 0.0)
    thresholds = losses * (1 + rng.choice([1e-3, 2.0**-50]) * rng.normal(size=count))
    dual = Dual.of(
        PairCertificate(tuple(points), tuple(rng.random(count) + 1e-3), tuple(thresholds)),
        optdp.Problem(optdp.LDP(eps), (0, 1), own),
    )
    r = [Fraction(loss) - Fraction(t) for loss, t in zip(losses.tolist(), dual.thresholds.tolist(), strict=True)]
    g = sum(Fraction(w) * (v + Fraction(dual.more) * min(v, 0)) for w, v in zip(dual.weights.tolist(), r, strict=True))
    for reach in (np.zeros(1), np.ones(1)):
        price = dual.prices(np.array([0.5]), reach)[0].item()
        assert Fraction(price) <= g
        size = float(dual.weights @ losses) * np.exp(eps)
        assert price >= float(g) - 1e-12 * size - 1e-290


@given(st.lists(st.floats(-1e16, 1e16), min_size=2, max_size=2, unique=True).map(sorted), st.booleans())
def test_cells_reach_from_their_middles_to_both_ends(ends, near):
    """Also where there are few floats between the ends, or none."""
    low, high = (ends[0], float(np.nextafter(ends[0], np.inf))) if near else ends
    (middle,), (reach,) = pair.middles(np.array([low]), np.array([high]))
    assert Fraction(reach) >= max(Fraction(middle) - Fraction(low), Fraction(high) - Fraction(middle))


def test_an_alphabet_of_numbers_is_a_matrix():
    numbers = (1, 2.5, 10, 4)
    loss = optdp.PairLoss(lambda x, y: np.abs(y - x) / x)
    own = optdp.solve_kernel(1.0, loss, domain=optdp.Alphabet(numbers))
    x = np.array(numbers, dtype=float)
    matrix = optdp.solve_kernel(1.0, loss.of(x[:, None], x), domain=optdp.Alphabet(numbers))
    assert own.problem == matrix.problem and own.value == matrix.value and own.verify()
    assert optdp.Solution.from_dict(own.to_dict()) == own
    assert own.mechanism.randomize([10, 4], 1).tolist() == matrix.mechanism.randomize([10, 4], 1).tolist()
    with pytest.raises(ValueError, match="numbers"):
        optdp.solve_kernel(1.0, loss, domain=optdp.Alphabet(["a", "b"]))
    with pytest.raises(ValueError, match="1414"):
        optdp.solve_kernel(1.0, loss, domain=optdp.Alphabet(2000))


def test_what_is_declared_is_held_against_the_values():
    for function, rates, words in (
        (distance, 0.99, "between the inputs"), (distance, (1.0, 0.5), "between the outputs"),
        (lambda x, y: 1.0 * (y > x), 5.0, "changes by 1"), (lambda x, y: y - x, 1.0, ">= 0"),
        (lambda x, y: np.where(y > 0.5, np.inf, 1.0), 1.0, "infinite"),
        (lambda x, y: np.where(y > 0.5, np.nan, 1.0), 1.0, ">= 0"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            optdp.solve_kernel(1.0, optdp.PairLoss(function, "mine", rates))
    honest = optdp.solve_kernel(1.0, optdp.PairLoss(lambda x, y: abs(x - y) if x > y else y - x, "floats", 1), rtol=0.5)
    assert honest.verify()
    assert optdp.solve_kernel(1.0, optdp.PairLoss(lambda x, y: 0.5, "constant", 0)).lower_bound == pytest.approx(0.5)
    nothing = optdp.solve_kernel(1.0, optdp.PairLoss(lambda x, y: 0.0, "nothing", 0))
    assert nothing.value == 0 == nothing.lower_bound and nothing.verify()


def test_what_is_not_solved_is_named():
    for options, words in (
        ({"loss": optdp.PairLoss(distance)}, "lipschitz"), ({"unbiased": True}, "unbiased"), ({"eps": 31.0}, "eps"),
        ({"backend": "dense"}, "method"), ({"solver": optdp.solvers.Highs()}, "solver"), ({"metric": "abs"}, "loss"),
        ({"domain": optdp.Circle(1.0)}, "distance"), ({"domain": (0, 1e200)}, "units"),
        ({"prior": (list(np.linspace(0, 1, 501)), [1 / 501] * 501)}, "prior"),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=words):
            optdp.solve_kernel(**{"eps": 1.0, "loss": DISTANCE, **options})
    for bad, error in (
        (-1, ValueError),
        (np.nan, ValueError),
        ("1", TypeError),
        ((1, 2, 3), ValueError),
        ((1, -2), ValueError),
    ):
        with pytest.raises(error, match="lipschitz"):
            optdp.PairLoss(distance, "bad", bad)
    with pytest.raises(TypeError, match="function"):
        optdp.PairLoss("abs")


def test_what_stops_early_is_a_bracket():
    for options in ({"time_limit": 1e-9}, {"eps": 12.0, "rtol": 0.99}):
        early = optdp.solve_kernel(**{"eps": 1.0, "loss": ASYMMETRIC, **options})
        assert early.verify() and 0 <= early.lower_bound <= early.value <= 1
        if "time_limit" in options:
            assert early.program.stopped and early.status is optdp.Status.TIME_LIMIT


def test_the_result_is_a_function_of_the_arguments(found):
    again = optdp.solve_kernel(2.0, RELATIVE, rtol=1e-2)
    assert (again.value, again.lower_bound) == (found.value, found.lower_bound)
    assert again.mechanism == found.mechanism and again.certificate == found.certificate
    program = found.program.model.solve()
    assert found.lower_bound <= program.objective * 1.01 and program.objective <= found.value * 1.01


def test_samples_follow_the_mixture(found):
    mechanism = found.mechanism
    points = np.array(mechanism.points)
    x = 0.3 * points[7] + 0.7 * points[8]
    drawn = mechanism.randomize(np.full(40_000, x), 5)
    expected = mechanism.probability(mechanism.atoms(), x) * 40_000
    rows = mechanism.table.rows
    np.testing.assert_allclose(expected / 40_000, 0.3 * rows[7] + 0.7 * rows[8], atol=1e-9)
    counts = (drawn[:, None] == mechanism.atoms()).sum(axis=0)
    big = expected > 10
    assert chisquare(counts[big], expected[big] * counts[big].sum() / expected[big].sum()).pvalue > 1e-4
    assert drawn.mean() == pytest.approx(float(mechanism.mean(x)), abs=0.02)
    assert mechanism.variance(x) == pytest.approx(drawn.var(), rel=0.05)
    assert np.isin(mechanism.randomize(points, 1), mechanism.outputs).all()


def test_mechanisms_and_certificates_are_saved_by_themselves(found, tmp_path):
    found.mechanism.save(tmp_path / "mixture.json")
    assert Mechanism.load(tmp_path / "mixture.json") == found.mechanism
    assert Certificate.read(Fields(found.certificate.to_dict(), "certificate")) == found.certificate
    half = TOTAL // 2
    table = Table(np.array([[half, half], [half // 2, half + half // 2]]))
    made = MixtureMechanism(optdp.Interval(0, 1), (0.25, 0.5), (0.0, 1.0), table)
    assert made.guarantee().eps.argument == 2 and made.satisfies(optdp.LDP(optdp.log(2)))
    assert made.probability(1.0, [0.0, 0.25, 0.375, 0.5, 1.0]).tolist() == [0.5, 0.5, 0.625, 0.75, 0.75]
    with pytest.raises(TypeError):
        made.enclose(optdp.WorstCase("abs"))
    for points, outputs in (
        ((0.5, 0.25), (0, 1)),
        ((0.25, 2.0), (0, 1)),
        ((0.25,), (0, 1)),
        ((0, 1), (1, 0)),
        ((0, 1), (0, np.inf)),
    ):
        with pytest.raises(ValueError):
            MixtureMechanism(optdp.Interval(0, 1), points, outputs, table)


def test_what_can_be_made_can_be_saved():
    """One point is a mechanism that ignores its input; a file has as many points as a mechanism may have."""
    one = MixtureMechanism(
        optdp.Interval(0, 1), (0.5,), (0.0, 1.0), Table(np.array([[TOTAL // 4, TOTAL - TOTAL // 4]]))
    )
    assert Mechanism.from_dict(one.to_dict()) == one and one.guarantee().eps.argument == 1
    rows = np.tile(one.table.weights, (5000, 1))
    with pytest.raises(ValueError, match="points"):
        MixtureMechanism(optdp.Interval(0, 1), tuple(np.linspace(0, 1, 5000).tolist()), (0.0, 1.0), Table(rows))


def test_averages_are_taken_within_the_domain():
    """Roundings lead no node of the quadrature out of it, where mechanisms refuse inputs."""
    rng, half = np.random.default_rng(0), TOTAL // 2
    loss = optdp.PairLoss(lambda x, y: np.abs(y - x) * 1e9, "share", 1e9)
    for _ in range(40):
        points = np.sort(rng.uniform(0, 1e-9, 3))
        table = Table(np.array([[half, TOTAL - half], [half // 2, TOTAL - half // 2], [half // 3, TOTAL - half // 3]]))
        made = MixtureMechanism(optdp.Interval(0, 1e-9), tuple(points.tolist()), (0.0, 1e-9), table)
        assert 0 < made.average_loss(loss) < 1


@pytest.mark.parametrize("width", [2.0**-k for k in range(12, 40, 3)])
def test_the_share_of_a_narrow_cell_is_enclosed(width):
    """Of a loss of the output alone, known in rationals: floats know a cell's mean input no better than the whole interval's."""
    loss = optdp.PairLoss(lambda x, y: y + 0 * x, "output", (0.0, 1.0))
    table = Table(np.array([[TOTAL - 1, 1], [1, TOTAL - 1]]))
    for p in np.random.default_rng(0).uniform(0.1, 0.9, 5):
        made = MixtureMechanism(optdp.Interval(0, 1), (p, q := p + width), (0.0, 1.0), table)
        truth = (1 - (Fraction(p) + Fraction(q)) / 2) * (1 - Fraction(2, TOTAL)) + Fraction(1, TOTAL)
        with mock.patch("optdp.mechanisms.mixture.CELLS", 4):
            low, high = made.enclose(optdp.Average(loss, "uniform"))
        assert low <= truth <= high and high - low < 2.0**-44 / width


def test_means_and_variances_are_those_of_the_law_wherever_the_domain_begins():
    rows = np.array([[TOTAL // 8, TOTAL - TOTAL // 8], [TOTAL // 2, TOTAL // 2]])
    made, x = MixtureMechanism(optdp.Interval(2, 5), (2.5, 4.0), (1.0, 7.0), Table(rows)), np.linspace(2, 5, 7)
    high = made.probability(7.0, x)
    assert made.mean(x) == pytest.approx(1 + 6 * high) and made.variance(x) == pytest.approx(36 * high * (1 - high))


@pytest.mark.parametrize("ends", [(0, 1), (2, 5), (-0.1, 0.2)])
def test_a_loss_that_is_least_at_the_centre_of_its_cell_is_enclosed(ends):
    """One cell, and a loss that changes as fast as it declares: the mean distance from the centre is the value."""
    centre = sum(ends) / 2
    loss = optdp.PairLoss(lambda x, y: np.abs(x - centre) + 0 * y, "from the centre", (1.0, 0.0))
    made = MixtureMechanism(optdp.Interval(*ends), ends, (0.0, 1.0), Table(np.full((2, 2), TOTAL // 2)))
    with mock.patch("optdp.mechanisms.mixture.CELLS", 1):
        low, high = made.enclose(optdp.Average(loss, "uniform"))
    truth = (Fraction(ends[1]) - Fraction(ends[0])) / 4
    assert low == 0 and truth <= Fraction(high) <= truth * (1 + Fraction(1, 2**36))


def test_the_certificate_refuses_what_it_cannot_prove(found):
    problem = found.problem
    for other in (
        optdp.Problem(optdp.LDP(2.0), (0, 1), "abs"), replace(problem, privacy=optdp.ApproxDP(2.0, 1e-3)),
        replace(problem, objective=optdp.WorstCase(optdp.PairLoss(relative))), replace(problem, constraints=(optdp.Unbiased(),)),
        replace(problem, objective=optdp.Average(RELATIVE, "uniform")), replace(problem, domain=(0.0, 0.5)),
    ):  # fmt: skip
        with pytest.raises(Refusal):
            found.certificate.bound(other)
    count = len(found.certificate.points)
    for wrong in (
        {"weights": (0.0,) * count}, {"weights": (1.0,)}, {"weights": (np.inf,) * count}, {"thresholds": (-1.0,) * count},
        {"thresholds": (np.nan,) * count}, {"points": found.certificate.points[::-1]},
    ):  # fmt: skip
        with pytest.raises(ValueError):
            replace(found.certificate, **wrong).bound(problem)
    assert replace(found.certificate, thresholds=(1e150,) * count).bound(problem).value == 0
    # Fewer mechanisms: the bound holds.
    assert found.certificate.bound(replace(problem, constraints=(optdp.Outputs(0, 1),))).value > 0
    assert found.certificate.bound(replace(problem, family=optdp.Piecewise(3))).value > 0


@settings(max_examples=30, deadline=None)
@given(
    st.data(),
    st.sampled_from([(1e15, 9), (1e15 + 0.125, 4), (-(2.0**53), 5), (0.0, 3)]),
    st.sampled_from([None, "uniform"]),
)
def test_values_hold_where_there_are_few_floats(data, place, prior):
    """Centres of cells are rounded, often to a point of the table: no input between loses more than what is enclosed."""
    start, count = place
    cells = mock.patch("optdp.mechanisms.mixture.CELLS", 2**8)
    floats = [start]
    while len(floats) < count:
        floats.append(np.nextafter(floats[-1], np.inf) if start else len(floats) / 2)
    points = sorted(data.draw(st.sets(st.sampled_from(floats), min_size=1)))
    weights = [data.draw(st.integers(1, TOTAL - 1)) for _ in points]
    if data.draw(st.booleans()):
        weights = [1 if w % 2 else TOTAL - 1 for w in weights]
    table, ends = Table(np.array([[w, TOTAL - w] for w in weights])), (floats[0], floats[-1])
    made = MixtureMechanism(optdp.Interval(*ends), tuple(points), ends, table)
    width = floats[-1] - floats[0]
    loss = optdp.PairLoss(lambda x, y: (y - floats[0]) / width + 0 * x, "share", (0.0, 1 / width))
    objective = optdp.WorstCase(loss) if prior is None else optdp.Average(loss, prior)
    with cells:
        low, high = made.enclose(optdp.Problem(optdp.LDP(30.0), ends, objective).objective)
    losses = [1 - Fraction(w, TOTAL) for w in weights]
    if prior is None:
        assert low <= max(losses) <= high
        return
    knots = [(p - floats[0]) / width for p in points]
    mean = float(losses[0]) * knots[0] + float(losses[-1]) * (1 - knots[-1])
    mean += sum((b - a) * float(u + v) / 2 for (a, b), (u, v) in zip(pairwise(knots), pairwise(losses), strict=True))
    assert low <= mean * (1 + 1e-12) + 1e-12 and mean <= high * (1 + 1e-12) + 1e-12


@pytest.mark.parametrize("seed", range(8))
def test_values_of_mixtures_are_enclosed_however_wide_the_cells(seed):
    """With little work cells stay wide: what is said of them is compared with mixtures on a grid, mixed by hand."""
    rng = np.random.default_rng(seed)
    points, outputs = np.sort(rng.uniform(-1, 2, seed % 4 + 1)), np.sort(rng.uniform(-1, 2, 3))
    weights = rng.integers(1, TOTAL // 3, (points.size, 3))
    weights[:, 2] = TOTAL - weights[:, 0] - weights[:, 1]
    made = MixtureMechanism(optdp.Interval(-1, 2), tuple(points.tolist()), tuple(outputs.tolist()), Table(weights))
    loss = optdp.PairLoss(lambda x, y: np.abs(np.sin(4 * x) - y), "wave", (4.0, 1.0))
    x = np.append(np.linspace(-1, 2, 6001), points)
    law = np.stack([np.interp(x, points, column / TOTAL) for column in weights.T])
    errors = (law * np.abs(np.sin(4 * x) - outputs[:, None])).sum(axis=0)
    mean = float((errors[:6000] + errors[1:6001]).mean() / 2)
    some, odds = [0, 2500, 6000], [0.25, 0.25, 0.5]
    for objective, true, wide in (
        (optdp.WorstCase(loss), errors.max(), 1.0), (optdp.Average(loss, "uniform"), mean, 1.0),
        (optdp.Average(loss, (x[some].tolist(), odds)), float(errors[some] @ odds), 1e-9),
    ):  # fmt: skip
        for cells, pairs in ((3, 1), (50, 10_000), (2**12, 2**27)):
            with mock.patch.multiple("optdp.mechanisms.mixture", CELLS=cells, PAIRS=pairs):
                low, high = made.enclose(objective)
            assert low <= true + 1e-5 and true - 1e-5 <= high and (cells < 2**12 or high - low < 0.01 * wide)


@mock.patch("optdp.mechanisms.mixture.CELLS", 2**8)
def test_values_hold_for_losses_near_the_least_and_the_largest_floats():
    """Products that are no floats are made up for, and sums that overflow are refused; no loss stays no loss."""
    half = TOTAL // 2
    made = MixtureMechanism(optdp.Interval(0, 1), (0.0, 1.0), (0.0, 1.0), Table(np.array([[half, half], [half, half]])))
    for prior in (None, "uniform", ([0.0, 1.0], [0.5, 0.5])):
        for size, ends in ((0.0, (0.0, 0.0)), (5e-324, (0.0, 1e-290)), (1e-200, (0.99e-200, 1.01e-200))):
            loss = optdp.PairLoss(lambda x, y, size=size: size + 0 * x * y, "constant", 0.0)
            low, high = made.enclose(optdp.WorstCase(loss) if prior is None else optdp.Average(loss, prior))
            assert ends[0] <= low <= size <= high <= ends[1]
        huge = optdp.PairLoss(lambda x, y: 1.7976931348623157e308 + 0 * x * y, "huge", 0.0)
        with pytest.raises(ValueError, match="smaller units"):
            made.enclose(optdp.WorstCase(huge) if prior is None else optdp.Average(huge, prior))
    rare = optdp.Prior(weights=(2**1085, 1), categories=(0.0, 1.0))
    loss = optdp.PairLoss(lambda x, y: 1e100 * x + 0 * y, "input", (1e100, 0.0))
    assert Fraction(made.enclose(optdp.Average(loss, rare))[1]) >= Fraction(1e100) / (2**1085 + 1)


def test_losses_that_vanish_or_are_too_large_end_in_a_bracket_or_a_sentence():
    """A density whose optimum is 0 between all points: programs stop where certificates have no more points."""
    few = partial(pair.certify, pairs=2**18)
    with (
        mock.patch.multiple(pair, POINTS=150, PAIRS=2**19), mock.patch.multiple(pair_kernel, PROVABLE=150, certify=few),
        mock.patch("optdp.mechanisms.mixture.CELLS", 2**10),
    ):  # fmt: skip
        found = optdp.solve_kernel(
            1.0, optdp.PairLoss(lambda x, y: np.abs(y - 0.3), "f", (0, 1)), prior="uniform", rtol=1e-2
        )
        assert found.verify() and found.value <= 1e-2
    with pytest.raises(ValueError, match="'large' is not allowed: its values must be at most"):
        optdp.solve_kernel(1.0, optdp.PairLoss(lambda x, y: 1e300 + np.abs(y - x), "large", 1.0))


def test_the_last_point_has_its_own_row():
    """Also where the toss is so near to 1 that it is 1 as a float."""

    class Highest(np.random.Generator):
        def integers(self, low, high=None, size=None, dtype=np.int64, endpoint=False):
            return np.full(() if size is None else size, high - 1, dtype=dtype)

    table = Table(np.array([[TOTAL, 0], [0, TOTAL]]))
    made = MixtureMechanism(optdp.Interval(0, 1), (0.0, 1.0), (0.0, 1.0), table)
    rng = Highest(np.random.PCG64(0))
    assert made.randomize([0.0, 1.0], rng).tolist() == [0.0, 1.0]


def test_a_program_that_is_stopped_before_it_bounds_anything_does_not_cost_the_last_one():
    """The gap was 1."""
    solve, calls = pair_kernel.solve_floors, []

    def stopped(*given, **options):
        calls.append(1)
        return solve(*given, **(options | {"left": lambda: float(len(calls) == 1)}))

    with mock.patch.object(pair_kernel, "solve_floors", stopped):
        found = optdp.solve_kernel(2.0, TILTED, rtol=1e-3)
    assert len(calls) == 2 and found.gap < 0.1 and found.program.stopped and found.verify()


@pytest.mark.parametrize("prior", [None, "uniform"])
def test_a_loss_of_0_needs_few_programs(prior):
    """For a density there were seven, which took 20 seconds whatever the limit."""
    nothing = optdp.PairLoss(lambda x, y: 0 * (x + y), "nothing", 0.0)
    with mock.patch.object(pair_kernel, "solve_floors", side_effect=pair_kernel.solve_floors) as solve:
        found = optdp.solve_kernel(1.0, nothing, prior=prior)
    assert found.value == found.lower_bound == 0 and solve.call_count <= 2

"""`solve_piecewise`: the optimum, its certificate, and the mechanism that attains it."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import kstest

import optdp
from optdp.certificates.base import Refusal
from optdp.certificates.bathtub import BathtubCertificate
from optdp.certificates.constant import ConstantCertificate
from optdp.design import piecewise
from optdp.exact import enclosures
from optdp.exact.sampling import coin
from optdp.mechanisms.piecewise import CELLS, COINS, PiecewiseMechanism
from optdp.problem import losses as losses_module
from tests.conftest import domains, epsilons, intervals, losses


@pytest.mark.parametrize("m", range(3, 10))
def test_abs_value_is_the_published_one_for_every_m(m):
    solution = optdp.solve_piecewise(1, m, "abs")
    assert solution.value == pytest.approx(1 / (math.exp(0.5) + 1), rel=1e-15)
    assert solution.gap <= 1e-9
    assert solution.verify()
    assert solution.mechanism.peak == pytest.approx(math.exp(0.5), rel=1e-12)


def test_squared_optimum_is_not_at_the_published_height():
    solution = optdp.solve_piecewise(1, 3, "squared")
    assert solution.value == pytest.approx(0.217298522, abs=1e-9)
    assert solution.mechanism.peak == pytest.approx(1.50933, abs=1e-5)
    assert piecewise.value_at_height(1, math.exp(0.5), "squared") > solution.value + 0.003


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0, 2.0, 4.0, 8.0])
@pytest.mark.parametrize("q", [1, 2, 3.5])
def test_brute_force_over_the_height_agrees_on_interval_and_circle(eps, q):
    """An independent route: adaptive quadrature of the density's definition, minimised over the height alone."""
    period = 2 * math.pi

    def on_interval(height):
        floor = height / math.exp(eps)
        width = (1 - floor) / (height - floor) if height > floor else 1.0
        near = quad(lambda y: y**q * height, 0, width)[0]
        return near + quad(lambda y: y**q * floor, width, 1)[0]

    def on_circle(height):
        floor = height / math.exp(eps)
        width = (1 - floor * period) / (height - floor)
        near = 2 * quad(lambda y: y**q * height, 0, width / 2)[0]
        return near + 2 * quad(lambda y: y**q * floor, width / 2, period / 2)[0]

    for objective, domain, unit in [(on_interval, (0, 1), 1), (on_circle, optdp.Circle(period), period)]:
        span = (1 / unit * (1 + 1e-9), math.exp(eps) / unit * (1 - 1e-9))
        coarse = np.geomspace(*span, 60)
        best = coarse[int(np.argmin([objective(h) for h in coarse]))]
        around = (max(best / 1.3, span[0]), min(best * 1.3, span[1]))
        found = minimize_scalar(objective, bounds=around, method="bounded", options={"xatol": 1e-11})
        solution = optdp.solve_piecewise(eps, 3, optdp.Power(q), domain=domain)
        assert solution.value == pytest.approx(found.fun, rel=1e-9)
        assert solution.mechanism.peak == pytest.approx(found.x, rel=1e-4)


@given(epsilons(), st.integers(2, 12), losses(), domains())
def test_every_solution_verifies_with_a_tiny_gap(eps, m, loss, domain):
    solution = optdp.solve_piecewise(eps, m, loss, domain=domain)
    assert solution.verify(), str(solution.verify())
    assert solution.gap <= 1e-9
    assert solution.status is optdp.Status.OPTIMAL


@given(epsilons(), losses(), domains(), st.floats(1e-6, 1.0))
def test_no_mechanism_in_the_class_beats_the_bound(eps, loss, domain, width):
    solution = optdp.solve_piecewise(eps, 3, loss, domain=domain)
    other = PiecewiseMechanism.private(eps, width, domain)
    assert other.enclose(solution.problem.objective)[1] >= solution.lower_bound


@given(epsilons(0.05, 6), losses(), st.data())
def test_random_densities_with_bounded_ratios_never_beat_the_bound(eps, loss, data):
    """The certificate is about every density between c and E c at the end of the domain, not about windows alone."""
    solution = optdp.solve_piecewise(eps, 3, loss)
    pieces = data.draw(st.integers(2, 30))
    logs = np.array(data.draw(st.lists(st.floats(0, eps), min_size=pieces, max_size=pieces)))
    edges = np.linspace(0, 1, pieces + 1)
    density = np.exp(logs)
    density /= density.mean()
    value = float(density @ np.diff(solution.problem.loss.integral(edges)))
    assert value >= solution.lower_bound * (1 - 1e-12)


@given(epsilons(), losses(), intervals(), st.floats(0, 1), st.sampled_from(["centred", "linear"]))
def test_density_integrates_to_one_and_ratios_keep_the_guarantee(eps, loss, domain, share, placement):
    mechanism = optdp.solve_piecewise(eps, 3, loss, domain=domain, placement=placement).mechanism
    low, high = mechanism.support()
    x = min(low + share * (high - low), high)
    start = mechanism.domain.lower + float(mechanism._window_start(np.asarray(x)))
    mass = mechanism.floor * (high - low - mechanism.window) + mechanism.peak * mechanism.window
    assert mass == pytest.approx(1, abs=1e-9)
    assert low - 1e-9 * (high - low) <= start <= x <= start + mechanism.window * (1 + 1e-9) + 1e-12 * abs(x)
    assert enclosures.at_most_exp(Fraction(mechanism.peak) / Fraction(mechanism.floor), eps)
    assert enclosures.at_most_exp(mechanism.exact_ratio, eps)
    assert eps * (1 - 1e-6) <= mechanism.privacy() <= eps
    y = np.linspace(low, high, 101)
    others = np.linspace(low, high, 37)
    table = mechanism.density(y[:, None], others[None, :])
    assert np.all(table.max(axis=1) <= math.exp(eps) * table.min(axis=1) * (1 + 1e-15))


@given(epsilons(0.1, 8), domains(), st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_samples_match_the_density(eps, domain, share, seed):
    mechanism = optdp.solve_piecewise(eps, 3, "abs", domain=domain).mechanism
    area = mechanism.domain
    x = min(area.lower + share * area.width, area.upper)
    sample = mechanism.randomize(np.full(4000, x), seed)
    start = mechanism.domain.lower + float(mechanism._window_start(np.asarray(x)))
    if isinstance(area, optdp.Circle):  # cut the circle at the window's start
        sample, origin, start = np.mod(sample - start, area.period), 0.0, 0.0
    else:
        origin = area.lower

    def cdf(y):
        inside = np.clip(y - start, 0, mechanism.window)
        return mechanism.floor_mass * (y - origin) / area.width + (1 - mechanism.floor_mass) * inside / mechanism.window

    assert kstest(sample, cdf).pvalue > 1e-7


@given(epsilons(0.05, 8), losses(), intervals(), st.sampled_from(["centred", "linear"]))
def test_the_worst_input_is_an_end_and_the_expected_loss_is_its_integral(eps, loss, domain, placement):
    mechanism = optdp.solve_piecewise(eps, 3, loss, domain=domain, placement=placement).mechanism
    x = np.linspace(*domain, 53)
    losses_ = mechanism.expected_loss(x, loss)
    assert losses_.max() <= mechanism.worst_case_loss(loss) * (1 + 1e-9)
    law = mechanism._loss(loss)
    for at in (x[0], x[17], x[-1]):
        start = domain[0] + mechanism._window_start(np.asarray(at))
        ends = np.clip([start, start + mechanism.window], *domain).tolist()
        cuts = sorted({domain[0], float(at), *ends, domain[1]})
        total = 0.0
        nodes, weights = np.polynomial.legendre.leggauss(200)
        for a, b in pairwise(cuts):
            y = (a + b) / 2 + (b - a) / 2 * nodes
            total += (b - a) / 2 * float(weights @ (law(np.abs(y - at)) * mechanism.density(y, at)))
        assert float(mechanism.expected_loss(at, loss)) == pytest.approx(total, rel=2e-4)


@given(epsilons(0.1, 6), intervals(), st.integers(0, 1000))
def test_mean_and_variance_are_those_of_the_samples(eps, domain, seed):
    mechanism = optdp.solve_piecewise(eps, 3, "abs", domain=domain).mechanism
    x = domain[0] + 0.3 * (domain[1] - domain[0])
    sample = mechanism.randomize(np.full(20_000, x), seed)
    error = math.sqrt(float(mechanism.variance(x)) / sample.size)
    assert float(mechanism.mean(x)) == pytest.approx(sample.mean(), abs=6 * error)
    # Six standard errors of the sample variance, from the mechanism's own fourth moment about the mean.
    shifted = float(mechanism.mean(x)) - sample
    fourth = math.sqrt(float(np.mean(shifted**4)) / sample.size)
    assert float(mechanism.variance(x)) == pytest.approx(float(np.mean(shifted**2)), abs=6 * fourth)


@given(epsilons(), losses(), domains())
def test_scaling_the_domain_scales_the_value(eps, loss, domain):
    """Exactly: the certificate in units of the domain is the certificate on the unit domain."""
    solution = optdp.solve_piecewise(eps, 3, loss, domain=domain)
    unit = optdp.solve_piecewise(eps, 3, loss)
    scale = float(solution.mechanism.domain.exact_reach) ** solution.problem.loss.exponent
    assert solution.value == pytest.approx(unit.value * scale, rel=1e-11)


@given(epsilons(1e-2, 10), losses())
def test_more_privacy_costs_more(eps, loss):
    assert optdp.solve_piecewise(eps, 3, loss).lower_bound > optdp.solve_piecewise(eps * 1.1, 3, loss).value


def test_two_pieces_on_an_interval_are_the_uniform_density_and_on_a_circle_the_optimum():
    two = optdp.solve_piecewise(1, 2, "squared", domain=(0, 3))
    assert two.value == pytest.approx(3.0) and two.verify()
    assert np.ptp(two.mechanism.density(np.linspace(0, 3, 7), 1.0)) == 0
    circle = optdp.Circle(2 * math.pi)
    assert (
        optdp.solve_piecewise(1, 2, "abs", domain=circle).value
        == optdp.solve_piecewise(1, 3, "abs", domain=circle).value
    )


def test_integer_sampling_is_exactly_the_stated_distribution():
    """On a toy mechanism of 4 window cells and a fair coin, every cell is reached, and only as often as it should be."""
    mechanism = PiecewiseMechanism(optdp.Interval(0, 1), CELLS // 4, COINS // 2)
    assert mechanism.exact_ratio == 5
    sample = mechanism.randomize(np.zeros(200_000), 1)
    inside = np.mean(sample < 0.25)
    assert inside == pytest.approx(0.5 + 0.5 / 4, abs=5 * math.sqrt(0.25 / 200_000))
    steps = sample * 2.0**53
    assert np.array_equal(steps, np.rint(steps))


def test_ties_of_the_coin_are_settled_by_its_second_half():
    class Rigged:
        """Tosses 3 first: a tie with the high half, which the low half decides for every second draw."""

        def __init__(self):
            self.rng, self.calls = np.random.default_rng(0), 0

        def integers(self, low, high, size=None):
            self.calls += 1
            return np.full(size, 3) if self.calls == 1 else self.rng.integers(low, high, size=size)

    heads = coin((3 << 62) + (1 << 61), COINS, (10_000,), Rigged())
    assert 0.47 < heads.mean() < 0.53


def change(data, **changes):
    """A saved solution with some of its entries replaced; `a__b` is entry b of entry a."""
    data = json.loads(json.dumps(data))
    for path, value in changes.items():
        *parents, last = path.split("__")
        where = data
        for name in parents:
            where = where[name]
        where[last] = value
    return data


def test_a_forged_solution_is_found_out():
    solution = optdp.solve_piecewise(1, 3, "abs")
    data = solution.to_dict()
    assert optdp.Solution.from_dict(data).verify()
    two = optdp.solve_piecewise(1, 2, "abs").to_dict()
    wide = optdp.solve_piecewise(1, 3, "abs", domain=(0, 2)).to_dict()
    forgeries = [
        ("value", change(data, value=solution.value * (1 - 1e-12))),
        ("lower bound", change(data, certificate__threshold=solution.lower_bound * (1 + 1e-12))),
        ("lower bound", change(data, lower_bound=solution.lower_bound * (1 + 1e-15))),
        ("bracket", change(data, lower_bound=solution.lower_bound * (1 + 1e-9))),
        ("privacy", change(data, problem__privacy__eps=1 - 1e-12)),
        # The problem of another solution: the same proof must then hold for that one.
        ("domain", change(data, problem=wide["problem"])),
        ("lower bound", change(data, certificate=two["certificate"], lower_bound=two["lower_bound"])),
        ("family", change(data, problem=two["problem"])),
        ("value", change(data, problem__objective__loss__exponent=0.5)),
        ("lower bound", change(data, problem__objective__loss__exponent=2.0)),
        ("lower bound", change(data, problem__family={"type": "all"})),
    ]
    for name, forged in forgeries:
        failures = optdp.Solution.from_dict(forged).verify().failures
        assert name in [check.name for check in failures], (name, failures)


def test_certificates_refuse_what_they_are_not_about():
    solution = optdp.solve_piecewise(1, 3, "abs")
    problem, bathtub = solution.problem, solution.certificate
    others = [
        replace(problem, family=optdp.AllMechanisms()),
        replace(problem, objective=optdp.Average("abs")),
        replace(problem, privacy=optdp.ApproxDP(1.0)),
        replace(problem, constraints=(optdp.Outputs(0.25, 0.75),)),
        optdp.Problem(optdp.LDP(1.0), optdp.Line(), "abs", optdp.Additive()),
    ]
    for other in others:
        for certificate in (bathtub, ConstantCertificate()):
            with pytest.raises(Refusal, match="proves nothing here"):
                certificate.bound(other)
    with pytest.raises(Refusal, match="two pieces"):
        ConstantCertificate().bound(problem)
    with pytest.raises(Refusal, match="eps-LDP"):
        ConstantCertificate().bound(replace(problem, family=optdp.Piecewise(2), privacy=optdp.ApproxDP(1.0, 0.1)))
    # Outputs near the middle are nearer to the ends: uniform ones there cost 13/48, and not the certificate's 1/3.
    two = optdp.Problem(optdp.LDP(1.0), (0, 1), "squared", optdp.Piecewise(2))
    assert ConstantCertificate().bound(two).value == pytest.approx(1 / 3)
    with pytest.raises(Refusal, match="outputs in the domain"):
        ConstantCertificate().bound(replace(two, constraints=(optdp.Outputs(0.25, 0.75),)))
    # On a circle the same number holds for all mechanisms, and for the average under the uniform prior.
    circle = optdp.solve_piecewise(1, 3, "abs", domain=optdp.Circle(1))
    for other in (optdp.AllMechanisms(), optdp.Piecewise(2)):
        assert circle.certificate.bound(replace(circle.problem, family=other)).value == circle.lower_bound
    known = optdp.Average("abs", ([0.0, 0.5], [0.5, 0.5]))  # of two places outputs may be these
    with pytest.raises(Refusal, match="worst case"):
        circle.certificate.bound(replace(circle.problem, objective=known))
    averaged = optdp.solve(replace(circle.problem, objective=optdp.Average("abs"), family=optdp.AllMechanisms()))
    assert averaged.value == circle.value
    assert averaged.verify()


def test_the_sentence_of_the_bound_is_the_problem():
    """What verify() says is proven names family, privacy, domain and objective, whatever the numbers are."""
    solution = optdp.solve_piecewise(optdp.log(3), 5, "squared", domain=(0, 60))
    assert solution.problem.statement() == (
        "the least worst-case E(Y - x)^2 over all log(3)-LDP mechanisms from [0, 60] to [0, 60] whose density at every input "
        "consists of 5 pieces with the same heights in the same order, none more than 3 times another"
    )
    bound = next(check for check in solution.verify().checks if check.name == "lower bound")
    assert bound.detail.startswith(solution.problem.statement() + " is at least ")
    assert solution.mechanism.exact_ratio <= 3
    assert solution.mechanism.satisfies(optdp.LDP(optdp.log(3)))
    assert solution.mechanism.satisfies(optdp.LDP(1.0)) is False


@pytest.mark.parametrize("eps", ["1/2", Fraction(1, 2), optdp.log("3/2"), 0.9999999])
def test_epsilons_are_exact_and_printed_as_they_are(eps, tmp_path):
    solution = optdp.solve_piecewise(eps, loss=optdp.Huber(0.2))
    shown = {"1/2": "1/2", 0.9999999: "0.9999999"}.get(eps, str(eps))
    assert f"over all {shown}-LDP" in str(solution)
    assert solution.verify()
    solution.save(tmp_path / "s.json")
    again = optdp.Solution.load(tmp_path / "s.json")
    assert again.problem == solution.problem
    assert again.verify()


@pytest.mark.parametrize(
    "loss", [optdp.Huber(0.25), optdp.Threshold(0.3), optdp.Pieces((0, 1), ((0, 0, 1), (-1, 2))), optdp.Power(0.5)]
)
@pytest.mark.parametrize("domain", [(0, 1), (-2, 3), optdp.Circle(3)])
def test_every_loss_of_the_distance_is_solved_and_agrees_with_quadrature(loss, domain):
    solution = optdp.solve_piecewise(1.0, 3, loss, domain=domain)
    assert solution.verify()
    assert solution.gap <= 1e-9
    mechanism, law = solution.mechanism, solution.problem.loss
    reach = float(mechanism.domain.exact_reach)
    share = mechanism.window / mechanism.domain.width
    cuts = sorted({0.0, *(c for c in (0.25, 0.3, 1.0, share * reach) if c < reach), reach})
    nodes, weights = np.polynomial.legendre.leggauss(60)

    def mean(upto):
        ends = [*[c for c in cuts if c < upto], upto]
        return (
            sum((b - a) / 2 * float(weights @ law((a + b) / 2 + (b - a) / 2 * nodes)) for a, b in pairwise(ends)) / upto
        )

    expected = mechanism.floor_mass * mean(reach) + (1 - mechanism.floor_mass) * mean(share * reach)
    assert solution.value == pytest.approx(expected, rel=1e-4)


def test_json_round_trip_is_exact(tmp_path):
    for domain in [(0.1, 0.7), optdp.Circle(2 * math.pi, -math.pi)]:
        solution = optdp.solve_piecewise(0.7, 5, optdp.Power(1.3), domain=domain)
        path = tmp_path / "solution.json"
        solution.save(path)
        again = optdp.Solution.load(path)
        assert again.mechanism == solution.mechanism
        assert again.problem == solution.problem
        assert (again.value, again.lower_bound, again.certificate, again.program) == (
            solution.value, solution.lower_bound, solution.certificate, solution.program,
        )  # fmt: skip
        assert again.verify() and json.loads(path.read_text()) == again.to_dict()
        x = np.linspace(solution.mechanism.domain.lower, solution.mechanism.domain.upper, 9)
        assert np.array_equal(again.mechanism.randomize(x, 3), solution.mechanism.randomize(x, 3))
        solution.mechanism.save(path)
        assert optdp.Mechanism.load(path) == solution.mechanism


def test_shapes_are_kept():
    mechanism = optdp.solve_piecewise(1, 3, "abs").mechanism
    for shape in [(), (3,), (2, 3), (0,)]:
        assert mechanism.randomize(np.full(shape, 0.5), 0).shape == shape
        assert mechanism.expected_loss(np.full(shape, 0.5)).shape == shape
        assert mechanism.density(np.full(shape, 0.5), 0.5).shape == shape


@pytest.mark.parametrize("shape", [None, "convex"])
def test_a_users_function_agrees_with_the_power_it_is(shape):
    loss = optdp.CustomLoss(lambda d: d**2, 1.0, shape)
    exact = optdp.solve_piecewise(1, 3, "squared")
    solution = optdp.solve_piecewise(1, 3, loss)
    assert solution.lower_bound <= exact.lower_bound and exact.value <= solution.value
    assert solution.gap <= (1e-9 if shape else 1e-5)
    assert solution.verify()
    assert "provided that the loss is nondecreasing" in str(solution.verify())
    with pytest.raises(TypeError, match="function"):
        solution.to_dict()


@settings(max_examples=6)
@given(epsilons(0.1, 6), st.floats(0.05, 0.9))
def test_a_step_loss_is_solved_to_its_bracket(eps, step):
    """For L = [d > step] the window of width `step` is optimal while it pays, and the value is c (1 - step)."""
    solution = optdp.solve_piecewise(eps, 3, lambda d: d > step)
    assert solution.verify()
    floor = 1 / (1 + math.expm1(eps) * step)
    assert solution.lower_bound <= floor * (1 - step) * (1 + 1e-5)
    assert solution.value >= floor * (1 - step) * (1 - 1e-5)
    # The step falls inside one of 2^20 cells, where the loss is known only to be between 0 and 1: that cell costs the
    # bound (E - 1) cell at most, and the value E cell, both relative to 1 - step or more.
    assert solution.gap <= 2 * math.exp(eps) / (1 - step) / losses_module.CELLS


def test_a_function_of_one_float_is_accepted():
    def capped(d):
        return d if d < 0.5 else 0.5

    assert optdp.solve_piecewise(1, 3, capped).gap < 1e-5


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (lambda d: 1 - d, "nondecreasing"),
        (lambda d: d - 0.5, ">= 0"),
        (lambda d: np.where(d > 0.5, np.nan, d), "finite"),
        (lambda d: np.sin(8 * d) + 1, "nondecreasing"),
        (optdp.CustomLoss(lambda d: d**2, 1.0), None),
    ],
)
def test_a_loss_that_is_none_is_refused_with_the_reason(loss, words):
    if words is None:
        assert optdp.solve_piecewise(1, 3, loss).verify()
    else:
        with pytest.raises(ValueError, match=words):
            optdp.solve_piecewise(1, 3, loss)
    with pytest.raises(ValueError, match="concave"):
        optdp.CustomLoss(lambda d: d**2, 1.0, "concave")


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"eps": 0}, ValueError, r"eps = 0.0 .*\(0, 30\]"),
        ({"eps": -1}, ValueError, "eps = -1"),
        ({"eps": math.nan}, ValueError, "eps = nan"),
        ({"eps": math.inf}, ValueError, "eps = inf"),
        ({"eps": "one"}, ValueError, "eps = 'one'"),
        ({"eps": None}, TypeError, "eps = None"),
        ({"eps": optdp.log(10**14)}, ValueError, "eps = 32"),
        ({"eps": True}, TypeError, "eps = True"),
        ({"eps": 1e4}, ValueError, "eps = 10000.0"),
        ({"m": 1}, ValueError, "m = 1 .*>= 2"),
        ({"m": 2.5}, TypeError, "m = 2.5 .*integer"),
        ({"m": True}, TypeError, "m = True"),
        ({"domain": (1, 1)}, ValueError, "domain"),
        ({"domain": (1, 0)}, ValueError, "domain"),
        ({"domain": (0, math.inf)}, ValueError, "domain upper end = inf"),
        ({"domain": (0, math.nan)}, ValueError, "domain upper end = nan"),
        ({"domain": 3}, TypeError, "domain = 3"),
        ({"domain": ("a", 1)}, TypeError, "domain lower end = 'a'"),
        ({"loss": "huber"}, ValueError, "loss = 'huber' .*'abs'"),
        ({"loss": 2}, TypeError, "loss = 2"),
        ({"backend": "cplex"}, ValueError, "backend = 'cplex' .*'scip'"),
        ({"backend": "slsqp", "starts": 0}, ValueError, "starts = 0"),
        ({"backend": "scip", "time_limit": 0}, ValueError, "time_limit = 0"),
        ({"backend": "scip", "loss": np.square}, ValueError, "algebraic form"),
        ({"rtol": 0}, ValueError, "rtol = 0"),
        ({"progress": 3}, TypeError, "progress = 3"),
        ({"placement": "left"}, ValueError, "placement = 'left'"),
        ({"placement": "linear", "domain": optdp.Circle(1)}, ValueError, "placement = 'linear'"),
    ],
)
def test_bad_input_names_the_argument_and_what_is_allowed(change, error, words):
    with pytest.raises(error, match=words):
        optdp.solve_piecewise(**({"eps": 1.0, "m": 3, "loss": "abs"} | change))


@pytest.mark.parametrize("period", [0, -1, math.nan, math.inf])
def test_a_circle_has_a_positive_period(period):
    with pytest.raises(ValueError, match="period"):
        optdp.Circle(period)


@pytest.mark.parametrize(
    ("x", "error"), [(-0.137, ValueError), (1.137, ValueError), (math.nan, ValueError), ("old", TypeError)]
)
def test_inputs_outside_the_domain_are_refused(x, error):
    mechanism = optdp.solve_piecewise(1, 3, "abs").mechanism
    for method in (mechanism.randomize, mechanism.expected_loss, mechanism.mean, mechanism.variance):
        with pytest.raises(error, match=r"x is .*not allowed: x must .*\[0, 1\]") as refused:
            method(x)
        assert str(x) not in str(refused.value)  # a private value is never printed
    with pytest.raises(ValueError, match=r"entry 2.*\[0, 1\]"):
        mechanism.randomize([0.1, 0.2, 3.0])


def test_certificate_thresholds_above_the_optimum_fail():
    for eps in (0.1, 1.0, 5.0):
        problem = optdp.Problem(optdp.LDP(eps), (0, 1), "abs", optdp.Piecewise(3))
        optimum = 1 / (math.exp(eps / 2) + 1)
        assert BathtubCertificate(optimum * (1 - 1e-15)).bound(problem).value == optimum * (1 - 1e-15)
        with pytest.raises(Refusal, match="too high"):
            BathtubCertificate(optimum * (1 + 1e-14)).bound(problem)


@pytest.mark.parametrize("domain", [optdp.Interval(2, 5), optdp.Interval(0, 0.25), optdp.Circle(3)], ids=str)
@pytest.mark.parametrize("loss", [optdp.Power(1), optdp.Power(2), optdp.Power(1.5), optdp.Huber(0.2)], ids=str)
def test_thresholds_are_proven_up_to_the_root_of_the_bathtub_equation(domain, loss):
    """In units of the domain, by quadrature: the mean loss above t is E times that below."""
    reach, eps = float(domain.exact_reach), 1.5

    def above(t):
        edge = brentq(lambda u: loss.of(0.0, u) - t, 0, reach)
        below = quad(lambda u: t - loss.of(0.0, u), 0, edge, points=[min(0.2, edge)])[0]
        return quad(lambda u: loss.of(0.0, u) - t, edge, reach, points=[max(0.2, edge)])[0] - math.exp(eps) * below

    problem = optdp.Problem(optdp.LDP(eps), domain, loss, optdp.Piecewise(3))
    root = brentq(above, 0, float(loss.of(0.0, reach)), xtol=1e-15, rtol=1e-14)
    assert BathtubCertificate(root * (1 - 1e-8)).bound(problem).value == root * (1 - 1e-8)
    with pytest.raises(Refusal, match="too high"):
        BathtubCertificate(root * (1 + 1e-8)).bound(problem)
    two = replace(problem, family=optdp.Piecewise(2))
    if isinstance(domain, optdp.Interval):
        mean = quad(lambda u: loss.of(0.0, u), 0, reach, points=[min(0.2, reach)])[0] / reach
        assert ConstantCertificate().bound(two).value == pytest.approx(mean, rel=1e-9)


def test_progress_is_told_and_logged(caplog):
    steps = []
    with caplog.at_level("INFO", logger="optdp"):
        solution = optdp.solve_piecewise(1.0, backend="slsqp", starts=2, progress=steps.append)
    assert [step.stage for step in steps] == ["slsqp: 3 pieces", "done"]
    assert (steps[-1].lower, steps[-1].value) == (solution.lower_bound, solution.value)
    assert "slsqp: 3 pieces" in caplog.text


def test_extreme_domains_and_losses_end_at_once():
    """Steps that underflow once made endless loops."""
    for domain, loss in [((0, 1e-299), optdp.Power(1.03)), ((0, 1e150), "abs"), ((-1e150, 1e150), optdp.Power(0.5))]:
        solution = optdp.solve_piecewise(1, 3, loss, domain=domain)
        assert solution.verify(), str(solution.verify())
    step = optdp.solve_piecewise(30, 3, optdp.Threshold(0.25), domain=(0, 1e300))  # it was "not a number"
    assert step.verify() and step.gap <= 1e-12


@pytest.mark.soak
@given(st.floats(1e-9, 30), losses(), domains())
def test_soak_every_solution_verifies_over_the_whole_range(eps, loss, domain):
    solution = optdp.solve_piecewise(eps, 3, loss, domain=domain)
    assert solution.verify() and solution.gap <= 1e-6


@pytest.mark.parametrize("loss", [optdp.Huber(0.3), optdp.Threshold(0.25), optdp.Pieces((0, 1), ((0, 0, 1), (-1, 2)))])
def test_losses_without_an_algebraic_form_have_a_linear_model(loss, tmp_path):
    """Step densities on 512 cells: never below the proven bound, and near it; the written file has the same optimum."""
    solution = optdp.solve_piecewise(1.0, loss=loss)
    found = solution.program.model.solve()
    assert (
        solution.lower_bound <= found.objective * (1 + 1e-12) <= solution.value * (1 + 1e-4)
    )  # the solver's sum is rounded
    solution.program.write(tmp_path / "grid.mps")
    assert optdp.solvers.read(tmp_path / "grid.mps").solve().objective == pytest.approx(found.objective, rel=1e-9)
    assert found.dual("mass").size == 1


@pytest.mark.parametrize("placement", ["centred", "linear"])
def test_losses_that_are_not_of_the_distance_are_integrated(placement):
    mechanism = PiecewiseMechanism.private(1.0, 0.4, (0, 2), placement)
    pair = optdp.PairLoss(lambda x, y: (1 + x) * np.abs(y - x))
    assert float(mechanism.expected_loss(0.7, pair)) == pytest.approx(1.7 * float(mechanism.expected_loss(0.7, "abs")))
    assert mechanism.worst_case_loss(pair) == pytest.approx(3 * mechanism.worst_case_loss("abs"))
    tilted = mechanism.expected_loss(0.7, optdp.Pinball(0.25)) + mechanism.expected_loss(0.7, optdp.Pinball(0.75))
    assert float(tilted) == pytest.approx(float(mechanism.expected_loss(0.7, "abs")))
    with pytest.raises(ValueError, match="a matrix is for mechanisms on an Alphabet"):
        mechanism.expected_loss(0.7, [[0, 1], [1, 0]])


def test_integers_that_64_bits_do_not_count_are_refused():
    """Those of a domain that is as wide as all of them; floats are answered there, and integers on half of it."""
    wide = PiecewiseMechanism.private(1.0, 0.3, (-(2.0**62), 2.0**62))
    with pytest.raises(ValueError, match="not allowed to be integers: 64-bit integers do not count"):
        wide.randomize([0], 1)
    assert wide.randomize([0.0], 1).dtype == float
    assert PiecewiseMechanism.private(1.0, 0.3, (0, 2.0**62)).randomize([0], 1).dtype == np.int64


@pytest.mark.parametrize("domain", [(2.0**53, 2.0**53 + 4), (1.0, 1 + 2.0**-50)])
def test_a_users_loss_counts_beyond_the_last_of_few_floats(domain):
    width = domain[1] - domain[0]
    problem = optdp.Problem(optdp.LDP(1e-9), domain, optdp.CustomLoss(lambda d: d / width, name="share"))
    solution = optdp.solve(problem)
    low, high = solution.mechanism.enclose(problem.objective)
    # Seen from both ends the mean loss of any output is 1/2: no mechanism that hardly knows its input does better.
    assert solution.value == high >= 0.5 - 1e-8 and low <= 0.5
    assert solution.verify().passed


@pytest.mark.parametrize(
    ("domain", "limit"), [(optdp.Circle(1.0), 0.5), (optdp.Circle(3.0, start=-7.0), 1.5), ((0.0, 1.0), 1.0)]
)
def test_a_loss_that_is_0_up_to_the_largest_distance_costs_nothing(domain, limit):
    """The value was 4.4e-16, for what rounding adds beyond: a gap of 1."""
    best = optdp.solve_piecewise(1.0, loss=optdp.Threshold(limit), domain=domain)
    assert best.lower_bound == best.value == best.gap == 0
    # From the largest distance on is not nowhere: opposite numbers are sent.
    assert optdp.solve_piecewise(1.0, loss=optdp.Pieces((0, limit), ((0,), (1,))), domain=domain).value > 0

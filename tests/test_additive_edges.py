"""Additive noise at the edges of what is allowed: faint and huge parameters end in a proof or in a sentence."""

import math
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import optdp
from optdp import Additive, ApproxDP, Integers, Line, Problem, WorstCase
from optdp.certificates.staircase import IntegerStaircaseCertificate, StaircaseCertificate
from optdp.certificates.tails import TailsCertificate
from optdp.design.additive import divergence
from optdp.design.additive.releases import budgets, solve_releases
from optdp.mechanisms.accounting import composed_delta, gaussian_budget
from optdp.mechanisms.additive import SLOWEST, AdditiveMechanism
from optdp.mechanisms.baselines.calibrated import GaussianNoise
from optdp.mechanisms.gaussian import LatticeGaussian
from optdp.mechanisms.rounded import RoundedNoise
from optdp.mechanisms.staircase import LatticeStaircase

TINY = Fraction(1, 10**400)


@pytest.mark.parametrize("eps", [optdp.log(1), Fraction(1, 10**330), TINY, -TINY, 5e-324], ids=range(5))
def test_an_eps_whose_float_is_zero_is_not_zero(eps):
    """With eps > 0 Laplace noise has a finite loss, however small a delta is: the bound for eps = 0 does not hold."""
    with pytest.raises(ValueError, match="eps"):
        ApproxDP(eps, 0)
    with pytest.raises(ValueError, match="eps"):
        optdp.solve_additive(eps, 0)


def test_a_delta_below_all_floats_is_refused():
    for delta in (TINY, -TINY, 1 - TINY):
        with pytest.raises(ValueError, match=r"^delta .*is not allowed"):
            ApproxDP(1.0, delta)
    assert ApproxDP(0, 5e-324).delta == 5e-324


def test_the_bound_of_tails_is_for_eps_exactly_zero():
    privacy = ApproxDP(0.0, 0.1)
    for eps, holds in ((0.0, True), (optdp.log(1), True), (Fraction(1, 10**330), False), (1e-300, False)):
        object.__setattr__(privacy, "eps", eps)  # as a notion that checks less would have it
        problem = Problem(privacy, Line(), WorstCase("abs"), Additive())
        if holds:
            assert TailsCertificate().bound(problem).value > 1.9
        else:
            with pytest.raises(ValueError, match="eps = 0"):
                TailsCertificate().bound(problem)


def test_a_file_with_an_eps_below_all_floats_is_refused(tmp_path):
    path = tmp_path / "solution.json"
    optdp.solve_additive(0, 0.1).save(path)
    text = path.read_text()
    assert '"eps": 0.0' in text and '"delta": 0.1' in text
    path.write_text(text.replace('"eps": 0.0', f'"eps": "1/{10**400}"').replace('"delta": 0.1', '"delta": 0.0'))
    with pytest.raises(ValueError, match="eps"):
        optdp.Solution.load(path)


@pytest.mark.parametrize("periods", [51, 60, 199])
def test_a_cut_after_many_periods_has_a_guarantee(periods):
    """Its exact delta has 80 bits for each period."""
    whole = LatticeStaircase.private(0.05)
    noise = replace(whole, cut=periods * whole.period + 12345)
    own = noise.guarantee()
    assert noise.least_delta <= own.delta <= noise.least_delta * (1 + Fraction(1, 2**200))
    assert noise.satisfies(own) and noise.satisfies(ApproxDP(0.05, math.nextafter(float(own.delta), 1)))
    assert noise.satisfies(optdp.GDP(1.0)) is None
    assert not all(check.passed for check in noise.check_privacy(optdp.GDP(1.0)))


def test_a_guarantee_below_all_floats_is_the_least_of_them():
    noise = LatticeStaircase.truncated(30, 5e-324)
    assert 0 < noise.least_delta <= noise.guarantee().delta <= Fraction(5e-324)
    assert noise.satisfies(ApproxDP(30, 5e-324))


@pytest.mark.parametrize("eps", [0.0, 1e-9, 1e-300])
def test_composition_at_a_faint_eps_takes_no_finer_grid(eps):
    """Once as many points as eps goes into the reach of the losses."""
    spent = composed_delta(GaussianNoise(0.2), eps, 4)
    assert spent == pytest.approx(float(optdp.GDP(0.4).delta_at(eps)), rel=1e-2)
    with pytest.raises(ValueError, match="step"):
        composed_delta(GaussianNoise(0.2), 1e-9, 4, step=1e-9)


def test_steps_and_an_eps_that_no_grid_has():
    """Steps divided by 0, or told of an eps that nobody gave; the power of an eps of 1e308 is beyond all numbers."""
    for step in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(ValueError, match=r"^step = \S+ is not allowed: step must be a number in \(0, inf\)"):
            composed_delta(GaussianNoise(0.2), 1.0, 4, step=step)
    with pytest.raises(TypeError, match=r"^step = 'fine' is not allowed"):
        composed_delta(GaussianNoise(0.2), 1.0, 4, step="fine")
    with pytest.raises(ValueError, match="more than 4194304 points"):  # as many as no float says
        composed_delta(GaussianNoise(0.2), 1.0, 4, step=1e-310)
    assert 0 < composed_delta(GaussianNoise(0.2), 1.0, 4, step=1e308) < 1
    exact = LatticeGaussian(Line(), 1.0, 0.2)
    assert composed_delta(GaussianNoise(0.2), 1e308, 4) < 2e-12 and composed_delta(exact, 1e308, 4) == 5e-324


def test_releases_at_a_faint_eps():
    found = optdp.solve_additive(1e-9, 0.1, releases=4, rtol=1e-2)
    assert found.verify() and composed_delta(found.mechanism, 1e-9, 4) <= 0.1


def test_ways_of_accounting_end_with_the_time():
    """Where nothing more may be tried, the way that a theorem keeps is left; a way that cannot be solved is left out."""
    tried = []

    def trial(privacy, rtol, gaussian=True):
        tried.append(privacy)
        if isinstance(privacy, ApproxDP):
            raise ValueError("no noise was found")
        return optdp.solve_additive(privacy, rtol=0.1)

    ways = budgets(1.0, 1e-3, 2, 1.0, "best", trial, deadline=0.0)
    assert not tried and ways["numerical"].mu == gaussian_budget(1.0, 1e-3, 2)
    found = solve_releases(1.0, 1e-3, 2, 1.0, "best", trial, 0.1, deadline=0.0)
    assert found.problem.privacy == optdp.GDP(gaussian_budget(1.0, 1e-3, 2)) and found.program.rtol == 0.1
    with pytest.raises(ValueError, match="no noise was found"):
        solve_releases(1.0, 1e-3, 2, 1.0, "basic", trial, 0.1)


def test_draws_beyond_64_bits_of_grid_points_do_not_wrap():
    class Far:
        def draw(self, size, rng):
            return np.full(size, 2**24)

    noise = AdditiveMechanism(Line(), 1.0, 1, (1,), 0, (2**60,), SLOWEST)
    vars(noise)["_periods"] = Far()  # what has a chance of e^-256
    for drawn in (noise.sample((1000,), np.random.default_rng(0)), noise.randomize(np.full(1000, 0.25), 0)):
        assert drawn.dtype == float and (np.abs(np.abs(drawn) - 2**24 - 1) <= 1).all() and drawn.std() > 2**23
    far = noise.randomize(np.array([2.0**70]), 0)
    assert far.dtype == float and abs(float(far[0]) - 2.0**70) <= 2**24 + 2
    rounded = RoundedNoise(Integers(), noise).randomize(np.zeros((20, 5)), 0)
    assert rounded.shape == (20, 5) and rounded.dtype == float and (np.abs(np.abs(rounded) - 2**24) <= 2).all()


def test_tails_that_hardly_fall_are_refused():
    """Their draws would not end."""
    with pytest.raises(ValueError, match="decay"):
        AdditiveMechanism(Line(), 1.0, 1, (1,), 0, (2**60,), 2**62 - 1)
    noise = AdditiveMechanism(Line(), 1.0, 1, (1,), 0, (2**60,), SLOWEST)
    drawn = np.abs(noise.sample((2000,), np.random.default_rng(1)))
    assert abs(drawn.mean() / noise.noise_loss("abs") - 1) < 5 / 2000**0.5


@pytest.mark.parametrize(
    "privacy",
    [optdp.Profile([(30, 0.1)]), optdp.Profile([(0, 1e-9)], 2.0), optdp.Profile([(optdp.log(3), 0.1), (2, 1e-3)]),
     optdp.Curve([(0, 0.1), (30, 0.1)], "falling")],
    ids=["spike", "tails", "log", "curve"],
)  # fmt: skip
def test_profiles_that_are_one_pair_are_solved_as_it(privacy, tmp_path):
    found = optdp.solve_additive(privacy)
    assert found.gap <= 1e-3 and found.verify() and found.problem.privacy == privacy
    found.save(tmp_path / "solution.json")
    assert optdp.Solution.load(tmp_path / "solution.json").verify()


@pytest.mark.parametrize("loss", ["abs", optdp.Power(0.7), optdp.Quantile(0.9)], ids=str)
@pytest.mark.parametrize("more", [[], [(4.5, 0.0), (5.0, 1e-6)]], ids=["alone", "implied"])
@pytest.mark.parametrize("discrete", [False, True], ids=["line", "integers"])
def test_pure_privacy_written_as_a_profile_has_the_staircase_and_its_proof(loss, more, discrete, tmp_path):
    """Before, gaps were 3e-3, 0.03 and 0.04 on the line after 15 s."""
    profile = optdp.Profile([(4.0, 0.0), *more], 2.0)
    found = optdp.solve_additive(profile, loss=loss, discrete=discrete)
    same = optdp.solve_additive(4.0, 0.0, loss, sensitivity=2.0, discrete=discrete)
    assert (found.value, found.lower_bound) == (same.value, same.lower_bound) and found.gap <= 1e-8
    assert found.problem.privacy == profile and found.mechanism.satisfies(profile) is True
    found.save(tmp_path / "solution.json")
    assert optdp.Solution.load(tmp_path / "solution.json").verify()
    with pytest.raises(ValueError, match="delta = 0"):  # pairs of which none is pure prove nothing by it
        other = replace(found.problem, privacy=optdp.Profile([(4.0, 1e-3), (4.5, 1e-4)], 2.0))
        pure = StaircaseCertificate(0.1) if not discrete else IntegerStaircaseCertificate(0.1)
        pure.bound(replace(other, objective=WorstCase("abs")))


def test_bounds_of_one_pair_hold_for_those_that_keep_more():
    """A profile's bound is the largest of its pairs'; a pair that the certificate is not for proves nothing."""
    wide = optdp.Profile([(0, 0.1), (1.0, 0.01)], 2.0)
    one = Problem(ApproxDP(0, 0.1, 2.0), Line(), WorstCase("abs"), Additive())
    assert TailsCertificate().bound(Problem(wide, Line(), WorstCase("abs"), Additive())) == TailsCertificate().bound(
        one
    )
    with pytest.raises(ValueError, match="eps = 0"):
        other = optdp.Profile([(0.5, 0.1), (1.0, 0.01)])
        TailsCertificate().bound(Problem(other, Line(), WorstCase("abs"), Additive()))


def test_losses_beyond_all_floats_are_refused_by_name():
    for loss, width in ((optdp.Power(100), 1e150), (optdp.Power(100), 1e-150), (optdp.Power(100), 900.0)):
        with pytest.raises(ValueError, match=r"^loss = 'power\(\d+\)', sensitivity = .* is not allowed"):
            optdp.solve_additive(0.01, 0.01, loss, sensitivity=width, n=1)
    for notion in (optdp.GDP(1.0, 1e150), optdp.RDP(2, 1.0, 1e150)):
        with pytest.raises(ValueError, match="sensitivity"):
            optdp.solve_additive(notion, loss=optdp.Power(3))


@pytest.mark.filterwarnings("error")
def test_a_users_loss_may_be_in_any_units():
    same = optdp.solve_additive(1, 0.01, lambda d: d, n=4)
    large = optdp.solve_additive(1, 0.01, lambda d: d, n=4, sensitivity=1e150)
    assert large.value == pytest.approx(1e150 * same.value) and large.lower_bound == pytest.approx(
        1e150 * same.lower_bound
    )
    with pytest.raises(ValueError, match=r"loss .*is not allowed"):
        optdp.solve_additive(1, 0.01, lambda d: d, sensitivity=1e-150)


def test_orders_next_to_one_have_the_bound_of_kullback_and_leibler():
    near, limit = (optdp.solve_additive(privacy, n=2) for privacy in (optdp.RDP(1 + 1e-15, 10), optdp.KL(10)))
    assert near.lower_bound == limit.lower_bound and near.value == pytest.approx(limit.value, rel=1e-9)
    assert near.verify() and near.mechanism.satisfies(optdp.RDP(1 + 1e-15, 10))


@pytest.mark.parametrize(
    ("eps", "width", "loss"),
    [(28, 1000, "abs"), (28, 1000, "squared"), (16, 4000, "abs"), (30, 9999, "squared"), (0.5, 65, "abs")],
)  # fmt: skip
def test_the_staircase_on_many_integers_attains_its_own_bound(eps, width, loss):
    """Where the first step covers few integers, noise of the line that is rounded would cost far more."""
    found = optdp.solve_additive(eps, 0, loss, sensitivity=width, discrete=True)
    assert found.gap < 1e-12 and found.verify()


@pytest.mark.parametrize(
    ("eps", "delta", "width", "value"), [(30, 0, 10**6, 0.306), (30, 0.1, 10**6, 0.2754), (20, 0.1, 10**6, 40.87)]
)
def test_rounded_noise_has_the_steps_of_the_line(eps, delta, width, value):
    assert optdp.solve_additive(eps, delta, sensitivity=width, discrete=True).value < value


def test_the_largest_likelihood_ratio_is_that_of_all_windows():
    rng = np.random.default_rng(0)
    for _ in range(50):
        n, size = (int(x) for x in rng.integers(1, 9, size=2))
        weights, tail = (tuple(int(x) for x in rng.integers(1, 50, size=k)) for k in (size, n))
        noise = AdditiveMechanism(Line(), 1.0, n, weights, 0, tail, int(rng.integers(1, 2**61)))
        b = Fraction(noise.decay, 2**62)
        p = [*map(Fraction, weights), *(t * (1 - b) * b**k for k in range(3) for t in tail)]
        line = [*p[:0:-1], *p]
        assert noise.exact_ratio == max(x / y for i, x in enumerate(line) for y in line[max(i - n, 0) : i + n + 1])


def test_sentences_name_what_is_wrong():
    with pytest.raises(ValueError, match=r"^n = 10000 is not allowed"):
        optdp.solve_additive(1, 0.01, n=10000)
    with pytest.raises(ValueError, match=r"^eps = 0, delta = 1e-150 is not allowed"):
        optdp.solve_additive(0, 1e-150)
    with pytest.raises(ValueError, match="no noise keeps"):
        optdp.Curve([(0, 0.1), (14, 0)])
    for least in (optdp.GDP(1e-320), optdp.KL(1e-320), optdp.RDP(2.0, 1e-320)):
        with pytest.raises(ValueError, match=r"is not allowed.*raise"):
            optdp.solve_additive(least)
    assert "atom 0.999999 at 0" in repr(LatticeStaircase.private(1.0, delta=1 - 1e-9))


def test_kl_noise_whose_errors_hardly_count_ends_without_a_division_by_zero():
    """The multipliers of an interior point method underflow where the limit is far out."""
    problem = optdp.Problem(optdp.KL(6.950779693764674, 2.0), optdp.Integers(), optdp.Threshold(4), optdp.Additive())
    task = divergence.Task(problem)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = task.solve(2, 5, math.inf, divergence.SHARES[0])
    assert found is None or found.value < 1e-13

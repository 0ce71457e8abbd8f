"""Any loss at delta = 0 or little more: the staircase and the dual of one period, beside lattices, sums and dense tests."""

import contextlib
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import optdp
from optdp.certificates import period as period_proof
from optdp.certificates.base import Refusal
from optdp.certificates.period import Period, PeriodCertificate, _Nearest, error_bar
from optdp.certificates.staircase import IntegerStaircaseCertificate, StaircaseCertificate
from optdp.design.additive import additive_noise
from optdp.exact import work
from optdp.mechanisms.staircase import LatticeStaircase

RAMP = optdp.Pieces((0, 1, 2), ((0,), (-1, 1), (1,)))
STEPS = optdp.Pieces((0, "1/3", "2/3", 3), (("1/5",), (1,), (1, 1), (9,)))
LOSSES = [
    optdp.Threshold(0.1), optdp.Threshold(2.56), optdp.Power(0.5), optdp.Power(0.05), optdp.Power(3.0), optdp.Huber(0.3), RAMP,
    STEPS,
]  # fmt: skip


def problem(eps, delta, loss, sensitivity=1.0):
    return additive_noise(optdp.ApproxDP(eps, delta, sensitivity), loss, False)


def staircase_loss(eps, loss, step):
    """Of staircases with these first steps, by their density; sensitivity 1."""
    k, b = np.arange(math.ceil(80 / eps) + 40), math.exp(-eps)
    integral = loss.integral
    near = integral(k + np.asarray(step)[..., None]) - integral(1.0 * k)
    whole = integral(k + 1.0) - integral(1.0 * k)
    mass = (step + b * (1 - step)) / (1 - b)
    return (near + b * (whole - near)) @ b**k / mass


# --- delta = 0


@pytest.mark.parametrize(
    "eps", [1.0, 9.0, 30.0, *(pytest.param(eps, marks=pytest.mark.soak) for eps in (0.3, 4.0, 16.0))]
)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_staircase_is_the_optimum_for_any_loss(eps, loss):
    """Before, gaps of 0.2 to 1 from eps = 7 on."""
    found = optdp.solve_additive(eps, loss=loss)
    few = loss.exponent is not None and loss.exponent < 1 and eps > 20  # a first step of few points of its lattice
    assert found.gap <= (0.1 if few else 2e-5) and found.verify(), str(found.verify())
    steps = np.concatenate([np.linspace(1e-9, 1, 400), np.geomspace(1e-14, 1, 400)])
    assert found.lower_bound <= staircase_loss(eps, loss, steps).min() * (1 + 1e-9)
    assert found.mechanism.satisfies(found.problem.privacy) is True
    again = optdp.Solution.from_dict(found.to_dict())
    assert again.verify() and again == found


@pytest.mark.parametrize("loss", [optdp.Power(1.0), optdp.Power(2.0)], ids=str)
@pytest.mark.parametrize("eps", [0.1, 1.0, 8.0, 25.0])
@pytest.mark.parametrize("sensitivity", [1.0, 0.3, 1e6])
def test_sums_agree_with_the_closed_form(loss, eps, sensitivity):
    asked = problem(eps, 0.0, loss, sensitivity)
    closed = StaircaseCertificate.best(asked)
    period = Period(asked)
    assert period.proven() == pytest.approx(closed.threshold, rel=1e-12)
    assert (
        period.weight(closed.threshold * (1 - 1e-9)) is not None
        and period.weight(closed.threshold * (1 + 1e-9)) is None
    )
    assert period.first_step(closed.threshold) == pytest.approx(closed.first_step(asked), rel=1e-5)


@settings(max_examples=40, deadline=None)
@given(
    eps=st.floats(0.4, 12.0), factor=st.floats(1e-3, 1e3), loss=st.sampled_from([optdp.Power(0.5), optdp.Power(3.0)])
)
def test_sums_scale_with_the_sensitivity(eps, factor, loss):
    one, other = (Period(problem(eps, 0.0, loss, width)).proven() for width in (1.0, factor))
    assert other == pytest.approx(one * factor**loss.exponent, rel=1e-9)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_more_than_the_optimum_is_not_proven(loss):
    asked = problem(2.0, 0.0, loss)
    best = StaircaseCertificate.best(asked).threshold
    for share in (1e-9, 1e-3, 0.5, 10.0):
        with pytest.raises(Refusal):
            StaircaseCertificate(best * (1 + share)).bound(asked)
    for share in (1e-9, 1e-3, 0.5, 1 - 1e-12, 1.0):
        assert StaircaseCertificate(best * (1 - share)).bound(asked).value == best * (1 - share)
    for other in (problem(2.0, 0.1, loss), problem(2.1, 0.0, loss), problem(2.0, 0.0, loss, 0.9)):
        with pytest.raises(Refusal):
            StaircaseCertificate(best).bound(other)


@pytest.mark.parametrize("loss", [optdp.Power(1.0), optdp.Power(2.0), optdp.Huber(0.3), optdp.Threshold(0.01)], ids=str)
@pytest.mark.parametrize("eps", [0.5, 2.0, 5.0])
def test_no_place_at_which_the_minimum_is_looked_for_proves_more_than_the_optimum(eps, loss, monkeypatch):
    """Floats say about where G changes sign: the proof holds wherever that is, before the minimum of F or beyond it."""
    period = Period(problem(eps, 0.0, loss))
    best = period.proven()
    at = period.first_step(best)
    for place in (1e-12, at / 100, at * 0.9, at * (1 - 1e-6), at * (1 + 1e-6), at * 1.1, (1 + at) / 2, 1.0):
        monkeypatch.setattr(Period, "first_step", lambda self, threshold, place=place: place)
        for share in (1e-9, 1e-3, 0.03, 0.3):
            assert period.weight(best * (1 + share)) is None


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("eps", [0.5, pytest.param(2.0, marks=pytest.mark.soak), 5.0])
def test_lattices_agree(eps, loss):
    """Two routes: brackets on a lattice, and the dual of one period."""
    lattice, closed = optdp.solve_additive(eps, loss=loss, n=24), optdp.solve_additive(eps, loss=loss)
    assert lattice.lower_bound <= closed.value * (1 + 1e-12) and closed.lower_bound <= lattice.value * (1 + 1e-12)


# --- delta > 0


@pytest.mark.parametrize("whole", [False, True])
def test_a_search_weighs_each_threshold_once(whole):
    """What was proven of a threshold was proven again for its bound: half of the work."""
    domain, width = (optdp.Integers(), 20.0) if whole else (optdp.Line(), 1.0)
    asked = optdp.Problem(optdp.ApproxDP(1.0, 0.01, width), domain, optdp.Huber(2.0), optdp.Additive())
    with work.limited(100.0) as searched:
        found = PeriodCertificate.best(asked)
    with work.limited(100.0) as proven:
        for cap in {float(asked.objective.loss(n * width + 0.5 * whole)) for n in period_proof.CAPS}:
            Period(asked, cap).proven()
    assert searched.done < 1.1 * proven.done and found.bound(asked).value > 0


@settings(max_examples=settings.default.max_examples // 10, deadline=None)
@given(
    eps=st.floats(0.4, 8.0), delta=st.floats(-7, -0.5).map(lambda x: 10.0**x), loss=st.sampled_from(LOSSES),
    n=st.sampled_from([4, 10, 12]),
)  # fmt: skip
def test_no_noise_of_a_lattice_is_below_the_bound(eps, delta, loss, n):
    """Where delta is large, too: the bound is poor there, but one."""
    try:
        bound = PeriodCertificate.best(problem(eps, delta, loss)).bound(problem(eps, delta, loss)).value
    except Refusal:
        return
    attained = optdp.solve_additive(eps, delta, loss, n=n, time_limit=2).value
    assert bound <= attained * (1 + 1e-12)


@pytest.mark.parametrize(("eps", "cap"), [(1.0, 0.8), pytest.param(2.5, 1.0, marks=pytest.mark.soak), (4.0, 2.0)])
@pytest.mark.parametrize("loss", [optdp.Power(1.0), optdp.Power(0.5), optdp.Power(3.0), RAMP], ids=str)
def test_the_tests_leave_the_threshold_everywhere(eps, cap, loss):
    """The proof of `optdp.certificates.period`, test by test on a fine mesh of points y: what they add, and what they weigh."""
    asked = problem(eps, 0.0, loss)
    period = Period(asked, cap)
    t = period.proven() * (1 - 1e-6)
    b, k, m = math.exp(-eps), np.arange(math.ceil(60 / eps) + 5), 1500
    capped = lambda d: np.minimum(loss(d), cap)  # noqa: E731

    def g(x):
        return (np.asarray(capped(np.abs(x)[..., None] + k)) - t) @ b**k

    x = (np.arange(m) + 0.5) / m  # the middles of cells of [0, 1)
    low, high = np.maximum(-g(x), 0.0), np.maximum(g(x), 0.0)
    edge = float(x[low > 0].max()) + 0.5 / m
    rho = low.sum() / b / high.sum()
    assert rho <= 1 + 5 / m
    # weights of the pairs (a point x in [-edge, edge], y in (edge, 1)); x runs over both signs
    both = np.concatenate([-x[::-1], x])
    profile = np.concatenate([low[::-1], low])
    pairs = rho * b * high[None, :] * profile[:, None] / low.sum()  # a density in x and y, times 1/m for each
    double = both[:, None] > 1 - x[None, :]
    pairs = np.where(both[:, None] < x[None, :] - 1, 0.0, pairs * (1 + double))
    added = pairs.sum(axis=1)
    added = (added[m:] + added[:m][::-1]) / 2  # the mean over x and -x
    taken = pairs.sum(axis=0) / b / 2
    left = capped(x) + b * g(x + 1) + added - taken
    assert left.min() >= t * (1 - 0.02)
    assert_allclose(left[x > edge + 2 / m], t + (1 - rho) * high[x > edge + 2 / m], rtol=0.02)
    far = np.linspace(1, 6, 200)  # beyond, where the shift of one sensitivity alone counts
    assert (capped(far) - g(far) + b * g(far + 1)).min() >= t * (1 - 1e-9)
    # what they weigh: the most of each shift, and that of the shift 1
    shift = np.arange(1, m)
    place = np.arange(-m, m)[:, None]
    target = place + shift[None, :]
    inside = (target >= 0) & (target < m)
    density = np.where(inside, pairs[np.arange(2 * m)[:, None], np.clip(target, 0, m - 1)], 0.0) * m
    heaviest = density.max(axis=0).sum() / m + 2 * b * float(g(far).max())
    assert heaviest <= float(period.weight(t)) * (1 + 0.02)
    told = t / (1 - b) * (1 + 3 * edge * float(g(np.ones(1))[0]) / high.mean()) + 2 * b * (cap - t) / (1 - b)
    assert float(period.weight(t)) == pytest.approx(told, rel=0.01)


@pytest.mark.parametrize("eps", [*(pytest.param(eps, marks=pytest.mark.soak) for eps in (2.0, 5.0)), 12.0])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_a_delta_that_is_of_no_use(eps, loss):
    """Before, half a minute for gaps of a percent, and more at large eps."""
    delta = 1e-9 if loss in (optdp.Threshold(2.56), RAMP, STEPS) else 1e-6
    found = optdp.solve_additive(eps, delta, loss)
    assert found.gap <= 1e-3 and found.verify(), str(found.verify())
    assert found.value <= optdp.solve_additive(eps, loss=loss).value
    assert optdp.Solution.from_dict(found.to_dict()).verify()


@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_narrow_peaks(loss):
    """Before, lattices that resolve the peak: gaps of 4e-4 and, after half a minute, 1.1e-3."""
    found = optdp.solve_additive(12.0, 1e-5, loss)
    assert found.gap <= 2e-5 and found.verify(), str(found.verify())


def test_narrow_peaks_of_wide_integers():
    """Sums over a period of 2^34 integers are too long: another certificate serves, where there was a refusal."""
    found = optdp.solve_additive(16.0, 0.01, sensitivity=2**34, discrete=True, rtol=0.05)
    assert found.gap <= 1e-3 and found.verify(), str(found.verify())


def test_what_the_certificate_is_not_for():
    asked = problem(3.0, 1e-6, optdp.Huber(0.3))
    best = PeriodCertificate.best(asked)
    assert best.bound(asked).value > 0
    with pytest.raises(Refusal, match="not proven"):
        replace(best, threshold=best.threshold * 1.001).bound(asked)
    with pytest.raises(Refusal, match="below the cap"):
        replace(best, cap=best.threshold / 2).bound(asked)
    with pytest.raises(Refusal, match="below the cap"):  # of a loss that is 0 so far, sums are 0/0
        PeriodCertificate(0.0, 1.0).bound(problem(1.0, 0.01, optdp.Threshold(1e6)))
    with pytest.raises(Refusal, match="eps > 0"):
        best.bound(problem(0.0, 1e-6, optdp.Huber(0.3)))
    with pytest.raises(Refusal, match="small"):
        best.bound(problem(1e-4, 1e-6, optdp.Huber(0.3)))
    custom = optdp.CustomLoss(lambda d: d**1.5, shape="convex")
    with pytest.raises(Refusal, match="powers and pieces"):
        best.bound(problem(3.0, 1e-6, custom))
    several = optdp.Profile([(3.0, 1e-6), (1.0, 0.1)])
    assert best.bound(additive_noise(several, optdp.Huber(0.3), False)).value == best.bound(asked).value
    with pytest.raises(Refusal):
        best.bound(additive_noise(optdp.GDP(1.0), optdp.Huber(0.3), False))


# --- quantiles


@pytest.mark.parametrize("eps", [1.0, 9.0, *(pytest.param(eps, marks=pytest.mark.soak) for eps in (0.5, 5.0, 16.0))])
@pytest.mark.parametrize("level", [0.3, 0.9, 0.9999, *(pytest.param(q, marks=pytest.mark.soak) for q in (0.5, 0.99))])
@pytest.mark.parametrize("delta", [0.0, 1e-7])
def test_error_bars(eps, level, delta):
    """Before, gaps of 1 from eps = 9 on, and bars thousands of times as long at 16."""
    found = optdp.solve_additive(eps, delta, optdp.Quantile(level), sensitivity=2.0)
    assert found.gap <= 1e-3 and found.verify(), str(found.verify())
    assert found.value == pytest.approx(2 * error_bar(eps, level), rel=2e-3)
    assert optdp.Solution.from_dict(found.to_dict()).verify()


@settings(max_examples=100, deadline=None)
@given(eps=st.floats(0.05, 20.0), level=st.floats(0.01, 1 - 1e-9))
def test_the_error_bar_is_where_the_optimal_probability_is_the_level(eps, level):
    bar = error_bar(eps, level)
    k, b = math.floor(bar), math.exp(-eps)
    assert b ** (k + 1) / (b + (bar - k) * (1 - b)) == pytest.approx(1 - level, rel=1e-6)
    if eps >= 0.4 and 1e-3 < bar - k < 1 - 1e-3:
        assert Period(problem(eps, 0.0, optdp.Threshold(bar))).threshold() == pytest.approx(1 - level, rel=1e-6)


# --- what staircase noise attains


@settings(max_examples=60, deadline=None)
@given(
    eps=st.floats(0.1, 25.0), share=st.floats(1e-6, 1.0), loss=st.sampled_from(LOSSES), width=st.sampled_from([1.0, 0.37, 3e4]),
    delta=st.sampled_from([0.0, 1e-5, 0.1]), cut=st.booleans(),
)  # fmt: skip
def test_enclosures_of_staircase_noise(eps, share, loss, width, delta, cut):
    """Beside the density of the law, integrated piece by piece."""
    if cut and delta:
        try:
            noise = LatticeStaircase.truncated(eps, delta, width, share=share)
        except ValueError:
            return
    else:
        noise = LatticeStaircase.private(eps, width, share=share, delta=delta)
    low, high = noise.enclose_loss(loss)
    ends, heights = noise._law.pieces()
    about = float(2 * heights @ np.diff(loss.integral(ends))) + noise.atom_mass * float(loss(0.0))
    assert low <= about * (1 + 1e-6) + 1e-12 and about <= high * (1 + 1e-6) + 1e-12
    points = share * 2**40
    still = noise.atom_mass * float(loss(2 * noise.step))
    assert high - low <= high * (1e-6 + 20 / points) + 1e-9 * float(loss(2 * width)) + still


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("level", [0.2, 0.5, 0.9, 0.999])
def test_quantiles_of_staircase_noise(cut, level):
    make = LatticeStaircase.truncated if cut else LatticeStaircase.private
    noise = make(1.5, delta=0.01, share=0.2)
    low, high = noise.enclose(optdp.Quantile(level))
    assert low <= float(noise.quantile((1 + level) / 2)) <= high and high - low < 1e-11
    far = np.abs(noise.randomize(np.zeros(200_000), 3))
    assert abs((far <= high).mean() - level) < 0.005


def test_values_of_staircase_noise_on_a_lattice_of_few_points():
    """All sums written out: a period of few points is not to be had, so that ends of steps are compared with the noise's law."""
    noise = LatticeStaircase.private(2.0, share=0.25)
    low, high = noise.enclose_loss(optdp.Threshold(0.25))
    b = float(noise.fall)
    inside = 0.25 / ((0.25 + b * 0.75) / (1 - b))
    assert low <= 1 - inside <= high and high - low < 1e-10
    assert noise.noise_loss(optdp.Power(50.0)) == pytest.approx(sum(noise.enclose_loss(optdp.Power(50.0))) / 2)
    with pytest.raises((TypeError, ValueError), match="loss"):
        noise.enclose_loss(optdp.CustomLoss(lambda d: d, shape="convex"))
    assert Fraction(noise.enclose_loss("abs")[0]) <= noise.moment(1) <= Fraction(noise.enclose_loss("abs")[1])


# --- the integers


@pytest.mark.parametrize(
    "loss", [optdp.Threshold(0.0), optdp.Threshold(37.0), optdp.Huber(20.0), optdp.Power(0.5), STEPS], ids=str
)
@pytest.mark.parametrize("eps", [*(pytest.param(eps, marks=pytest.mark.soak) for eps in (0.5, 2.0)), 8.0])
def test_many_integers(loss, eps):
    """Before, gaps of 0.4 to 1. The program of all integers says the same."""
    found = optdp.solve_additive(eps, loss=loss, sensitivity=70.0, discrete=True)
    assert found.gap <= 1e-9 and found.verify(), str(found.verify())
    plain = optdp.solve_additive(eps, loss=loss, sensitivity=70.0, discrete=True, n=70)
    assert plain.lower_bound <= found.value * (1 + 1e-12) and found.lower_bound <= plain.value * (1 + 1e-12)
    little = optdp.solve_additive(eps, 1e-7, loss, sensitivity=70.0, discrete=True)
    assert little.gap <= 1e-3 and little.verify() and little.value <= found.value * (1 + 1e-12)
    assert optdp.Solution.from_dict(little.to_dict()).verify()


@pytest.mark.parametrize("loss", [optdp.Power(1.0), optdp.Power(2.0)], ids=str)
@pytest.mark.parametrize("eps", [0.5, 3.0, 12.0])
def test_sums_over_integers_agree_with_the_closed_form(loss, eps):
    """|x| and x^2 on the integers, whose dual of one period is a closed form (`IntegerStaircaseCertificate`)."""
    asked = additive_noise(optdp.ApproxDP(eps, 0.0, 50.0), loss, True)
    assert Period(asked).proven() == pytest.approx(IntegerStaircaseCertificate.best(asked).threshold, rel=1e-11)


@settings(max_examples=60, deadline=None)
@given(
    distance=st.floats(0, 200),
    loss=st.sampled_from([*LOSSES, optdp.Power(0.01), optdp.Power(9.0), optdp.Threshold(0.0)]),
)
def test_integrals_of_the_loss_of_the_nearest_integer(distance, loss):
    """Summed up one by one."""
    nearest, whole = _Nearest(loss), loss.whole
    last = math.ceil(distance - 0.5)
    parts = [min(distance, 0.5) * float(whole(0.0)), *(float(whole(float(k))) for k in range(1, last))]
    parts += [(distance - last + 0.5) * float(whole(float(last)))] if last else []
    with ctx.workprec(320):
        found = nearest.integral_ball(arb(distance))
    assert float(found.mid()) == pytest.approx(sum(parts), rel=1e-9, abs=1e-12) and float(found.rad()) <= 1e-60 * (
        1 + sum(parts)
    )
    assert float(np.interp(distance, *nearest.table(201))) == pytest.approx(sum(parts), rel=1e-9, abs=1e-12)
    assert float(nearest(np.array(distance))) == float(whole(float(last)))


@pytest.mark.parametrize("eps", [2.0, 6.0, 12.0])
def test_few_integers_under_little_delta(eps):
    """Programs on few integers lose their multipliers where delta is small: gaps of 0.54 and 0.85."""
    found = optdp.solve_additive(eps, 1e-9, optdp.Huber(3.0), sensitivity=7.0, discrete=True)
    assert found.gap <= 1e-6 and found.verify()


@pytest.mark.parametrize(("eps", "width"), [(8.0, 40), (16.0, 8), (20.0, 3), (30.0, 2), (30.0, 64)])
@pytest.mark.parametrize("loss", [optdp.Power(0.5), optdp.Power(3), optdp.Huber(3), optdp.Threshold(1)], ids=str)
def test_few_integers_at_a_large_eps(loss, eps, width):
    """Programs lose e^-eps beside 1: P(X != 0) was 0.3 at eps = 20 on eight integers, where 4e-9 is enough."""
    found = optdp.solve_additive(eps, 0.0, loss, sensitivity=width, discrete=True)
    assert found.gap <= 1e-5 and found.verify()
    z, b = np.arange(40 * width), math.exp(-eps)
    weight = np.where(z == 0, 1.0, 2.0)  # of the staircases, whose first step ends at any integer
    cost = np.array(
        [float(loss.exact(Fraction(int(k)))) if loss.exponent is None else float(k) ** loss.exponent for k in z]
    )
    laws = (weight * b ** ((z - k + width - 1) // width) for k in range(min(width, 20)))
    assert found.value == pytest.approx(min(law @ cost / law.sum() for law in laws), rel=1e-5)


@pytest.mark.parametrize("loss", ["abs", "squared"])
@pytest.mark.parametrize("delta", [1e-300, 1e-10, 1e-6])
def test_neighbouring_integers_at_a_large_eps(loss, delta):
    """P(X = 1) >= (P(X = 0) - delta)/E on either side: of both sides one was proven."""
    found = optdp.solve_additive(30.0, delta, loss, discrete=True)
    assert found.value == pytest.approx(2 * math.exp(-30), rel=2e-6) and found.gap <= 1e-5 and found.verify()


def test_integers_that_noise_need_not_reach():
    """An error above 7 had a chance of 1e-18 where none is needed."""
    found = optdp.solve_additive(6.0, 0.1, optdp.Threshold(7), sensitivity=7.0, discrete=True)
    assert found.value == found.lower_bound == 0 and found.verify()


@pytest.mark.parametrize(
    "loss", [optdp.Pieces((0, 2, 3), ((0,), (1,), (1000,))), optdp.Pieces((0, 3), ((0,), (1,)))], ids=str
)
def test_a_loss_that_jumps_above_the_cap_at_an_integer(loss):
    """It was taken for min(loss, cap) there: a proof of 6.8e-4 where 7.7e-5 is attained, and of 1.3e-5 where 0 is."""
    with ctx.workprec(320):
        assert _Nearest(loss).crossing(arb(0.5)) == arb(loss.breaks[1].numerator) - 0.5
        assert _Nearest(optdp.Threshold(2)).crossing(arb(0.5)) == 2.5  # which counts only beyond its limit
        assert _Nearest(optdp.Pieces((0, 1), ((1,), (2,)))).crossing(arb(0.5)) == 0
    found = optdp.solve_additive(5.0, 0.001, loss, sensitivity=1, discrete=True)
    asked = found.problem
    for cap in (0.01, 0.5, 1.0, 10.0):
        with contextlib.suppress(Refusal):
            assert PeriodCertificate(Period(asked, cap).proven(), cap).bound(asked).value <= found.value * (1 + 1e-9)
    assert found.certificate.bound(asked).value <= found.value * (1 + 1e-12)


def test_sums_over_periods_count_their_work_for_each_pair():
    pairs = optdp.Profile([(0.5 + k / 1000, 0.01) for k in range(1000)])  # seconds, and minutes for eps = 0.01
    asked = replace(problem(0.5, 0.01, optdp.Power(1.5)), privacy=pairs)
    with pytest.raises(work.Overwork), work.limited(0.1):
        PeriodCertificate(0.5, 1.0).bound(asked)

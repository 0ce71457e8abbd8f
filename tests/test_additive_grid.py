"""Additive noise where lattices of equal cells are too large or too coarse: eps = 0, large eps, and wide integers."""

import dataclasses
import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import optdp
from optdp.certificates.base import Refusal
from optdp.certificates.spike import SpikeCertificate
from optdp.certificates.staircase import IntegerStaircaseCertificate, StaircaseCertificate
from optdp.certificates.tails import TailsCertificate
from optdp.exact import enclosures
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.mechanisms.rounded import RoundedNoise
from optdp.mechanisms.staircase import LatticeStaircase


def problem(eps, delta, loss, sensitivity=1.0, discrete=False):
    domain = optdp.Integers() if discrete else optdp.Line()
    return optdp.Problem(optdp.ApproxDP(eps, delta, sensitivity), domain, optdp.WorstCase(loss), optdp.Additive())


@pytest.mark.parametrize("loss", ["abs", "squared"])
@pytest.mark.parametrize(
    ("eps", "delta", "options"),
    [(0.0, 1e-12, {}), (25.0, 1e-9, {}), (30.0, 0.9, {}), (1.0, 0.0, {"sensitivity": 10**6, "discrete": True}),
     (0.1, 1e-3, {"sensitivity": 10**6, "discrete": True}), (8.0, 0.0, {"sensitivity": 100, "discrete": True}),
     (8.0, 1e-6, {"sensitivity": 7, "discrete": True}), (0.0, 1e-3, {"sensitivity": 10**4, "discrete": True})],
)  # fmt: skip
def test_extreme_calls_are_solved_and_proven_after_a_journey_through_a_file(eps, delta, loss, options):
    solution = optdp.solve_additive(eps, delta, loss, **options)
    assert solution.gap <= 1e-3
    again = optdp.Solution.from_dict(json.loads(json.dumps(solution.to_dict())))
    assert again.verify() and again.value == solution.value and again.lower_bound == solution.lower_bound


@settings(max_examples=20, deadline=None)
@given(st.floats(6.0, 12.0), st.sampled_from([0.0, 1e-6, 0.1, 0.5]), st.sampled_from(["abs", "squared"]))
def test_the_peaks_bound_is_below_what_staircases_attain(eps, delta, loss):
    asked = problem(eps, delta, loss)
    certificate = SpikeCertificate.best(asked)
    attained = LatticeStaircase.private(eps, delta=delta).enclose_loss(loss)[1]
    share = 3 * math.exp(-eps / (2 if loss == "abs" else 3))
    assert (1 - share) * attained <= certificate.bound(asked).value <= attained or loss == "squared"
    with pytest.raises(Refusal):
        SpikeCertificate(certificate.width * (1 + 1e-9)).bound(asked)


#: Points of the grid on the integers that need its own proof of the peak, its staircase, lattices of its divisors, or few slacks.
INTEGERS = [
    (2, 16.0, 1e-9, "abs"), (2, 16.0, 0.5, "squared"), (3, 16.0, 0.1, "abs"), (10, 16.0, 1e-6, "squared"),
    (100, 16.0, 0.5, "squared"), (1000, 16.0, 0.5, "abs"), (1000, 16.0, 1e-12, "squared"),
    (10**4, 16.0, 0.5, "abs"), (10**6, 16.0, 1e-6, "abs"), (10, 0.01, 1e-9, "abs"),
    (23, 16.0, 0.9, "abs"),
]  # fmt: skip
#: Others, which take longer.
MORE = [
    (1000, 8.0, 0.1, "abs"), (10, 0.01, 1e-9, "squared"),
    (1000, 8.0, 0.1, "squared"), (1000, 8.0, 0.5, "squared"), (1000, 4.0, 0.5, "abs"), (10**4, 4.0, 0.5, "abs"),
    (10**4, 16.0, 0.5, "squared"), (10**6, 16.0, 0.5, "squared"), (10**4, 8.0, 0.5, "squared"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("sensitivity", "eps", "delta", "loss"), [*INTEGERS, *(pytest.param(*x, marks=pytest.mark.soak) for x in MORE)]
)
def test_a_thousandth_is_reached_on_the_integers(sensitivity, eps, delta, loss):
    solution = optdp.solve_additive(eps, delta, loss, sensitivity=sensitivity, discrete=True, time_limit=600)
    assert solution.gap <= 1e-3 and solution.verify()


def test_the_atom_is_as_large_as_it_may_be():
    """Mass of p_0 that privacy lets stay at 0 costs nothing there, and h/4 spread over the cell."""
    solution = optdp.solve_additive(4.0, 0.5)
    assert solution.gap <= 1e-3 and solution.verify()


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 60), st.floats(1.0, 12.0), st.sampled_from([1, 2]), st.floats(0.05, 1.0))
@example(60, 4.0, 1, 1.0)
@example(60, 4.0, 2, 1.0)
def test_the_peaks_brackets_on_the_integers_from_their_definition(n, eps, q, share):
    """L + Lam k - (E/2) (lam * k) >= t at every integer, in exact rationals, at widths up to the largest."""
    asked = problem(eps, 0.1, "abs" if q == 1 else "squared", float(n), discrete=True)
    best = SpikeCertificate.best(asked).width
    w = Fraction(best * share) * n
    if not w:
        return
    assert SpikeCertificate(best * share).holds(asked)
    growth, t, m = enclosures.exp_above(eps), w**q, math.ceil(w) - 1
    k = {x: 1 - (abs(x) / w) ** q for x in range(-m, m + 1)}
    assert min(k.values()) > 0
    area = sum(k.values())
    v = sum(weight * x * x for x, weight in k.items()) / area if q == 2 else 0
    lam = {s: 2 / growth / area * (s**q - t - v) for s in range(3 * m + 1 + (m + 1) // 2, n + 1)}
    assert min(lam.values()) >= 0
    scale = t / sum(lam.values())
    assert scale <= 1
    for y in range(n + 2 * m + 3):
        received = sum(weight * (k.get(y - s, 0) + k.get(-y - s, 0)) for s, weight in lam.items())
        assert y**q + t * k.get(y, 0) - growth / 2 * scale * received >= t


@settings(max_examples=12, deadline=None)
@given(st.integers(1, 6), st.floats(4.0, 7.0), st.sampled_from([1e-3, 0.01, 0.3]), st.sampled_from([1, 2]))
def test_the_plain_program_on_few_integers_lies_between_the_peaks_bound_and_the_value(n, eps, delta, q):
    """Masses at 0, ..., 4n, all pairs of all shifts, in HiGHS."""
    size, growth = 4 * n + 1, math.exp(eps)
    pairs = [(s, i) for s in range(1, n + 1) for i in range(-size - s, size + 1)]
    rows, limits = [], []
    scale = np.where(np.arange(size) == 0, 1.0, math.exp(-eps))
    for j, (s, i) in enumerate(pairs):  # p_|i| - E p_|i + s| <= u
        row = np.zeros(size + len(pairs))
        for at, factor in ((abs(i), 1.0), (abs(i + s), -growth)):
            if at < size:
                row[at] += factor * scale[at]
        row[size + j] = -1.0
        rows.append(row)
        limits.append(0.0)
    for s in range(1, n + 1):
        rows.append(np.concatenate([np.zeros(size), [float(t == s) for t, _ in pairs]]))
        limits.append(delta)
    twice = np.where(np.arange(size) == 0, 1.0, 2.0) * scale
    cost = np.concatenate([twice * np.arange(size) ** q, np.zeros(len(pairs))])
    mass = np.concatenate([twice, np.zeros(len(pairs))])
    found = linprog(cost, np.array(rows), limits, mass[None, :], [1.0], method="highs")
    asked = problem(eps, delta, "abs" if q == 1 else "squared", float(n), discrete=True)
    certificate = SpikeCertificate.best(asked)
    value = optdp.solve_additive(eps, delta, asked.objective.loss, sensitivity=n, discrete=True).value
    assert found.status == 0
    assert certificate.bound(asked).value <= found.fun * (1 + 1e-5) and found.fun <= value * (1 + 1e-5)
    with pytest.raises(Refusal):
        SpikeCertificate(certificate.width * (1 + 1e-9)).bound(asked)


@pytest.mark.parametrize(("eps", "width", "q"), [(8.0, 0.01, 1), (12.0, 0.02, 2)])
def test_the_peaks_brackets_on_a_fine_grid(eps, width, q):
    """L + Lam k - (e^eps/2) (lam * k) >= t by quadrature, with lam as in the proof and Lam = t by scaling at most 1."""
    w, grid = width, np.linspace(0, 1.3, 2601)
    x = np.linspace(-w, w, 2001)
    k = 1 - np.abs(x / w) ** q
    area, v, t = (w, 0.0, w) if q == 1 else (4 * w / 3, w * w / 5, w * w)
    assert np.trapezoid(k, x) == pytest.approx(area, rel=1e-5)
    s = grid[:, None] - x
    lam = np.where((s >= 3.1 * w) & (s <= 1), 2 * math.exp(-eps) / area * (np.abs(s) ** q - t - v), 0.0)
    received = np.trapezoid(lam * k, x, axis=1)
    bracket = grid**q + t * np.maximum(1 - (grid / w) ** q, 0) - math.exp(eps) / 2 * received
    assert bracket.min() >= t * (1 - 1e-3)
    # And what `best` finds is the width at which Lam = t.
    w = SpikeCertificate.best(problem(eps, 0.1, "abs" if q == 1 else "squared")).width
    area, v, t = (w, 0.0, w) if q == 1 else (4 * w / 3, w * w / 5, w * w)
    s = np.linspace(3.1 * w, 1, 5001)
    assert 2 * math.exp(-eps) / area * np.trapezoid(s**q - t - v, s) == pytest.approx(t, rel=1e-6)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 400), st.sampled_from([1, 2]), st.integers(1, 50))
def test_the_tails_in_closed_form_are_the_sum(denominator, q, sensitivity):
    delta = Fraction(1, denominator + 1)
    asked = problem(0, delta, "abs" if q == 1 else "squared", float(sensitivity))
    rises = ((1 - 2 * j * delta) * (j**q - (j - 1) ** q) for j in range(1, math.floor(1 / (2 * delta)) + 1))
    exact = sum(rises, Fraction(0)) * sensitivity**q
    assert TailsCertificate().bound(asked).value == pytest.approx(float(exact), rel=1e-15)


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 40), st.floats(0.5, 6.0), st.sampled_from(["abs", "squared"]))
def test_on_the_integers_the_staircase_is_the_lattices_optimum(sensitivity, eps, loss):
    asked = problem(eps, 0.0, loss, float(sensitivity), discrete=True)
    bound = IntegerStaircaseCertificate.best(asked).bound(asked).value
    solution = optdp.solve_additive(eps, 0.0, loss, sensitivity=sensitivity, discrete=True)
    assert bound == pytest.approx(solution.value, rel=1e-9) and bound <= solution.value


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("loss", [optdp.Power(0.5), optdp.Power(1.5), optdp.Huber(1.0)], ids=str)
def test_the_best_spike_is_refused_for_other_losses(loss, discrete):
    """The exponent was cut to an integer: a KeyError below 1."""
    with pytest.raises(ValueError, match="abs and squared"):
        SpikeCertificate.best(problem(12.0, 1e-6, loss, discrete=discrete))


@pytest.mark.parametrize("loss", [optdp.Power(1.5), optdp.Huber(0.5), optdp.Threshold(0.5)])
@pytest.mark.parametrize(
    ("certificate", "eps", "delta"), [(SpikeCertificate(1e-6), 20.0, 0.1), (TailsCertificate(), 0.0, 0.1)]
)
def test_closed_forms_are_for_two_losses(certificate, eps, delta, loss):
    with pytest.raises(Refusal, match="abs and squared"):
        certificate.bound(problem(eps, delta, loss, 1.0))
    assert certificate.bound(problem(eps, delta, "abs", 1.0)).value > 0


def test_staircases_are_for_delta_0_and_their_own_domain():
    """Both optima are lower with a delta, and the integers' is lower than the line's."""
    line, whole = problem(1.0, 0.0, "abs"), problem(1.0, 0.0, "abs", discrete=True)
    own, other = StaircaseCertificate.best(line), IntegerStaircaseCertificate.best(whole)
    assert other.bound(whole).value < own.bound(line).value
    for certificate, asked, where in (
        (own, whole, "line"), (own, problem(1.0, 0.01, "abs"), "line"), (other, line, "integers"),
        (other, problem(1.0, 0.01, "abs", discrete=True), "integers"),
    ):  # fmt: skip
        with pytest.raises(Refusal, match=f"delta = 0 on the (real )?{where}"):
            certificate.bound(asked)


@pytest.mark.parametrize("discrete", [True, False])
@pytest.mark.parametrize(("eps", "threshold"), [(1e-300, 1.0), (1e-60, 1e-3), (1.0, 1.7e308), (1e-20, 1.7e308)])
def test_thresholds_of_staircases_beyond_what_numbers_hold_are_refused(eps, threshold, discrete):
    """Next to 1 no ball tells e^eps from it; the root of the largest thresholds is no float."""
    kind = IntegerStaircaseCertificate if discrete else StaircaseCertificate
    with pytest.raises(Refusal, match="too high"):
        kind(threshold).bound(problem(eps, 0.0, "abs", 5.0, discrete=discrete))


@pytest.mark.parametrize("loss", ["abs", "squared"])
@pytest.mark.parametrize("sensitivity", [30, 37])
def test_coarse_lattices_prove_less_than_the_integers_themselves(sensitivity, loss):
    """A certificate of n points per sensitivity, n a divisor or not, is below the optimum of the exact program."""
    exact = optdp.solve_additive(1.0, 0.05, loss, sensitivity=sensitivity, discrete=True)
    assert exact.gap < 1e-6
    for n in (5, 10, 13):
        coarse = optdp.solve_additive(1.0, 0.05, loss, n=n).certificate
        bound = coarse.bound(exact.problem).value
        assert 0.9 * exact.value < bound <= exact.value


def test_rounded_noise_has_the_law_that_it_tells():
    noise = RoundedNoise(optdp.Integers(), LatticeStaircase.private(1.0, 100.0))
    places = np.arange(-4000, 4001)
    law = noise.noise_probability(places)
    assert law.sum() == pytest.approx(1, abs=1e-9) and np.allclose(law, law[::-1])
    for loss, cost in (("abs", np.abs(places)), ("squared", places**2)):
        low, high = noise.enclose_loss(loss)
        assert low * (1 - 1e-6) <= law @ cost <= high * (1 + 1e-6)
    assert np.allclose(noise.cdf(places), np.cumsum(law), atol=1e-6)
    levels = np.array([0.001, 0.3, 0.5, 0.77, 0.999])
    found = noise.quantile(levels)
    assert (noise.cdf(found) >= levels).all() and (noise.cdf(found - 1) < levels).all()
    drawn = noise.randomize(np.full(200_000, 5), 1) - 5
    edges = np.array([-150, -60, -20, 0, 10, 80, 300])
    seen = np.array([(drawn <= z).mean() for z in edges])
    assert np.abs(seen - noise.cdf(edges)).max() < 5 * math.sqrt(0.25 / 200_000)
    # on the integers themselves divergences are at most those of the noise on the line
    ratio = math.e * (1 + 1e-9)
    for shift in (1, 50, 100):
        assert np.maximum(law[shift:] - ratio * law[:-shift], 0).sum() < 1e-6


def test_a_peak_that_is_narrower_than_an_integer_is_in_the_law_that_is_told():
    """P(Y = x) = 1 - E min(|Z|, 1), which the line's noise encloses; midpoints that were equally far apart missed 0.003."""
    line = AdditiveMechanism(optdp.Line(), 50.0, 51_200, (10**9,) * 8 + (10**6,) * 2000)
    noise = RoundedNoise(optdp.Integers(), line)
    moved = line.enclose_loss(optdp.Pieces((0, 1), ((0, 1), (1,))), sent=True)[1]
    assert noise.noise_probability(0) == pytest.approx(1 - moved, abs=3e-5)
    assert noise.cdf(0) == pytest.approx(1 - moved / 2, abs=3e-5)


@pytest.mark.parametrize("bins", [False, True])
def test_supports_hold_the_farthest_number_that_is_sent(bins):
    """Cells are rounded up to whole points of the grid and inputs down: |Y - x| may be a little more than |z|."""

    class Ends(np.random.Generator):
        left, last = 0, False

        def integers(self, low, high=None, size=None, dtype=np.int64, endpoint=False):
            drawn = self.left if high == 2 else high - 1 if self.last else low
            return np.full(() if size is None else size, drawn, dtype=dtype)

    noise, x, sent = AdditiveMechanism(optdp.Line(), 0.3, 1, (1,), bins=bins), 0.1, []
    for Ends.left, Ends.last in ((0, False), (0, True), (1, False), (1, True)):
        sent.append(float(noise.randomize(x, Ends(np.random.PCG64(0)))))
    low, high = noise.support(x)
    assert low <= min(sent) < x - noise.noise_radius() and max(sent) <= high <= low + 2 * noise.noise_radius() + 1e-12
    stairs = LatticeStaircase.truncated(1.0, 1e-3)
    x = stairs.step / 2  # rounded down to 0
    assert Fraction(stairs.support(x)[0]) <= -stairs.cut * Fraction(stairs.step) < x - Fraction(stairs.noise_radius())


def test_the_support_of_rounded_noise_holds_what_its_rounding_reaches():
    """Of cells that end at 1 the last point of the grid lies beyond, and is rounded to 2 once in 10^25 draws or so."""
    noise = RoundedNoise(optdp.Integers(), AdditiveMechanism(optdp.Line(), 2.0, 3, (1, 1)))
    g, m = noise.noise._grid()
    assert noise.noise.noise_radius() == 1 < (m + m // 2) * Fraction(g)
    assert noise.support(5) == (3.0, 7.0)
    even = RoundedNoise(optdp.Integers(), AdditiveMechanism(optdp.Line(), 2.0, 1, (1,)))
    assert even.support(5) == (4.0, 6.0)


def test_what_is_not_allowed_is_said():
    with pytest.raises(ValueError, match="on the integers"):
        optdp.solve_additive(1.0, 0.1, discrete=True, sensitivity=3, n=7)
    with pytest.raises(TypeError, match="noise"):
        RoundedNoise(optdp.Integers(), LatticeStaircase)
    with pytest.raises(ValueError, match="sensitivity"):
        RoundedNoise(optdp.Integers(), LatticeStaircase.private(1.0, 0.5))
    with pytest.raises(ValueError, match="raise delta"):
        optdp.solve_additive(0.0, 1e-12, sensitivity=10**6, discrete=True)
    with pytest.raises(ValueError, match="raise delta"):  # noise that reaches beyond all floats
        optdp.solve_additive(0.0, 1e-320, discrete=True)
    for wrong in (problem(1.0, 0.1, "abs"), replace(problem(0, 0.1, "abs"), objective=optdp.WorstCase(optdp.Power(3)))):
        with pytest.raises(Refusal):
            TailsCertificate().bound(wrong)


@pytest.mark.parametrize(("delta", "sensitivity"), [(1e-9, 0.3), (1e-13, 1.0), (1e-6, 1 / 3), (0.01, 0.7)])
def test_uniform_noise_keeps_delta_for_inputs_rounded_to_its_grid(delta, sensitivity):
    """Two inputs of the line at most a sensitivity apart are up to ceil(sensitivity/g) points of the grid apart, not one less."""
    found = optdp.solve_additive(0.0, delta, sensitivity=sensitivity)
    noise, (g, points) = found.mechanism, found.mechanism._grid()
    apart, cells = math.ceil(Fraction(sensitivity) / Fraction(g)), 2 * len(noise.weights) - 1
    assert found.verify() and Fraction(apart, points * cells) <= Fraction(delta) and found.gap < 1e-3
    narrow = dataclasses.replace(noise, sensitivity=noise.sensitivity * (1 - 1e-4), notion=None)
    assert narrow.satisfies(found.problem.privacy) is False

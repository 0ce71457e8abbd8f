"""Noise on the integers from noise on the line: what spreading and rounding cost, the bound, the mechanism, and the design."""

from __future__ import annotations

import dataclasses
import json
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri

import optdp
from optdp.certificates.additive import AdditiveCertificate
from optdp.certificates.base import Refusal
from optdp.certificates.quantile import QuantileCertificate
from optdp.certificates.rounded import RoundedCertificate, rarest
from optdp.certificates.tails import TailsCertificate
from optdp.design.additive import rounded as rounded_design
from optdp.exact import enclosures, work
from optdp.exact.sampling import LIMB
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.mechanisms.gaussian import LatticeGaussian
from optdp.mechanisms.rounded import RoundedNoise
from optdp.mechanisms.staircase import LatticeStaircase
from optdp.problem.losses import as_loss
from optdp.problem.rounding import known, on_line, ramped, rounded, spread
from tests.counting import of_fractions

LOSSES = [
    optdp.Power(0.5), optdp.Power(1), optdp.Power(1.5), optdp.Power(2), optdp.Power(3), optdp.Power(4.5), optdp.Huber(0.7),
    optdp.Huber(5.0), optdp.Threshold(0.5), optdp.Threshold(2), optdp.Threshold(3.7),
    optdp.Pieces((0, "1/3", 2, "7/2"), ((0, 0, 2), ("1/2", 1), (3,), (1, 1))),
    optdp.Pieces((0, "5/2", "13/4"), ((1,), (1, 0, 0, "1/5"), (9, 0, "1/2"))),
]  # fmt: skip


def masses(seed: int, count: int = 9) -> list[Fraction]:
    """Of 0, 1, ..., a random law."""
    weights = np.random.default_rng(seed).integers(0, 30, count) ** 2 + 1
    return [Fraction(int(w), int(weights.sum())) for w in weights]


def expected(loss, law):
    """E L(K) of a law on integers."""
    return sum((float(p) * float(loss(float(k))) for k, p in enumerate(law)), 0.0)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
@pytest.mark.parametrize("seed", range(4))
def test_what_spreading_an_integer_costs(loss, seed):
    """E B(|X + U|) by integrals of B, beside E L(|X|): at most the bound more, and half of it at least for smooth losses."""
    law, line = masses(seed), on_line(loss)
    ends = [max(k - 0.5, 0.0) for k in range(len(law) + 1)]
    parts = [float(b - a) for a, b in zip(line.integral(ends), line.integral(ends)[1:], strict=False)]
    parts[0] *= 2  # from -1/2 on
    spread_out = sum(float(p) * part for p, part in zip(law, parts, strict=True))
    with ctx.workprec(100):
        most = float(spread(loss, spread_out, law[0]))
    assert spread_out <= expected(loss, law) + most + 1e-12
    if loss.steps:  # a threshold is moved to where no integer is: nothing is lost
        assert most == 0 and spread_out == pytest.approx(expected(loss, law), abs=1e-12)


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_what_rounding_a_number_costs(loss):
    """The mean of L over the two integers next to z, weighted so that the mean stays, for laws on a fine grid."""
    rng, smooth = np.random.default_rng(5), ramped(loss)
    for _ in range(20):
        z = rng.random(40) * rng.choice([1.0, 4.0, 9.0])
        low, share = np.floor(z), z - np.floor(z)
        exact = float(((1 - share) * loss(low) + share * loss(low + 1)).mean())
        value = float(smooth(z).mean())
        with ctx.workprec(100):
            less, more = (float(v) for v in rounded(loss, value))
        assert value - less - 1e-12 <= exact <= value + more + 1e-12
        if loss.steps:
            assert less == more == 0


@given(st.lists(st.tuples(st.fractions(0, 6, max_denominator=9), st.integers(0, 5), st.integers(0, 3)), max_size=4))
@settings(max_examples=60, deadline=None)
def test_losses_in_pieces_are_what_integers_meet(given_pieces):
    """B on the half-integers, ramps on the integers: both agree with L where it has jumps alone, wherever these are."""
    breaks, height, rows = [Fraction(0)], Fraction(0), [(Fraction(0),)]
    for at, jump, _ in sorted(given_pieces):
        if at > breaks[-1]:
            height += jump
            breaks.append(at)
            rows.append((height,))
    loss = optdp.Pieces(breaks, rows)
    line, slanted = on_line(loss), ramped(loss)
    for k in range(9):
        met = loss.exact(Fraction(k))
        assert slanted.exact(Fraction(k)) == met
        for off in ("-49/100", "0", "49/100"):
            assert line.exact(abs(k + Fraction(off))) == met


def test_losses_of_which_too_little_is_known():
    assert known(optdp.Huber(1.0)) and known(optdp.Threshold(2)) and known(optdp.Power(7))
    assert not known(optdp.CustomLoss(lambda d: d, shape="convex"))
    assert not known(optdp.Pieces((0, 1), ((0,), (0, 0, 0, 1))))  # curved more and more


NOTIONS = [
    lambda d: optdp.ApproxDP(1.0, 0.05, d), lambda d: optdp.ApproxDP("1/2", 0, d), lambda d: optdp.GDP(1.0, d),
    lambda d: optdp.Profile([(1, "1/100"), ("1/2", "1/20")], d), lambda d: optdp.KL(0.5, d), lambda d: optdp.RDP(2, 0.5, d),
    lambda d: optdp.Curve([(0, 0.3), (1, 0.1)], sensitivity=d),
]  # fmt: skip


#: By loss and notion; others take long where all integers are points.
BOTH = [
    *((optdp.Power(1), k) for k in range(7)), *((optdp.Huber(2.0), k) for k in (0, 1, 2, 3, 5)),
    *((optdp.Threshold(3), k) for k in (0, 1, 4, 5)), (optdp.Power(0.5), 1),
]  # fmt: skip


@pytest.mark.parametrize(("loss", "notion"), BOTH, ids=str)
def test_brackets_agree_with_the_program_of_all_integers(loss, notion):
    """Two routes at a small sensitivity, where both are possible; the bound is a share below, the value a share above."""
    problem = optdp.Problem(NOTIONS[notion](4.0), optdp.Integers(), optdp.WorstCase(loss), optdp.Additive())
    whole = optdp.solve(problem, 1e-3, 5.0)
    line = optdp.Problem(problem.privacy, optdp.Line(), optdp.WorstCase(on_line(loss)), optdp.Additive())
    found = optdp.solve(line, 1e-2, 5.0)
    proven = RoundedCertificate(found.certificate).bound(problem).value
    assert 0.5 * whole.lower_bound <= proven <= whole.value * (1 + 1e-12)
    noise = RoundedNoise(optdp.Integers(), found.mechanism)
    low, high = noise.enclose(problem.objective)
    assert whole.lower_bound * (1 - 1e-12) <= high and low <= high and noise.satisfies(problem.privacy)
    x = noise.randomize(np.zeros(100_000), 0)
    assert (x == np.round(x)).all()
    costs = loss(np.abs(x))
    error = 5 * costs.std() / math.sqrt(x.size) + 1e-9
    assert low - error <= costs.mean() <= high + error


@pytest.mark.parametrize("privacy", [f(4.0) for f in NOTIONS], ids=str)
def test_the_chance_of_no_noise_is_bounded(privacy):
    """Whatever the noise is: here that with the largest chance of 0."""
    found = optdp.solve_additive(privacy, loss=optdp.Threshold(0), discrete=True, rtol=1e-2, time_limit=10)
    assert 1 - found.value <= float(rarest(privacy)) < 1


@pytest.mark.parametrize("mu", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("sensitivity", [1.0, 6.0, 2.0**36])
def test_the_chance_of_no_noise_from_its_definition(mu, sensitivity):
    """That with which 0 and one of 2D integers beside it, alike in what is left, are exchanged at the bound; rounded up."""
    around = 2 * int(sensitivity)
    exact = Fraction(3 + Fraction(around, 10)) / (3 + around)  # (E + 2 D delta)/(E + 2 D)
    found = rarest(optdp.ApproxDP(optdp.log(3), "1/10", sensitivity))
    assert exact <= found <= exact * (1 + Fraction(1, 2**49)) and found != exact
    assert rarest(optdp.Profile([("1/2", "9/10"), (optdp.log(3), "1/10")], sensitivity)) == found
    r, a = mu**2 / 8, 3
    spent = {  # by 0 with the probability p and its neighbour with q, over the bound
        optdp.GDP(mu, sensitivity): lambda p, q: (ndtri(p) - ndtri(q)) / mu,
        optdp.KL(r, sensitivity): lambda p, q: (p - q) * math.log(p / q) / r,
        optdp.RDP(a, r, sensitivity): lambda p, q: (
            (p**a * q ** (1 - a) + q**a * p ** (1 - a) - p - q) / math.expm1((a - 1) * r)
        ),
    }
    for privacy, share in spent.items():
        p = float(rarest(privacy))
        q = (1 - p) / around
        assert share(p, q) == pytest.approx(1, rel=1e-6), privacy


def test_what_spreading_costs_where_0_is_rare():
    """0.107 before, when Pinsker's inequality said how rare: the chord of d^q at 0 times that, less what is elsewhere."""
    privacy = optdp.RDP(1.307, 0.027, 1000)
    problem = optdp.Problem(privacy, optdp.Integers(), optdp.Power(0.05), optdp.Additive())
    line = optdp.solve(dataclasses.replace(problem, domain=optdp.Line()), 0.03)
    assert line.lower_bound - RoundedCertificate(line.certificate).bound(problem).value < 0.01


@pytest.mark.parametrize(("loss", "less"), [(optdp.Power(2), 1 / 12), (optdp.Power(1), (1 + 8 / 20) / 9 / 4)], ids=str)
def test_what_is_proven_on_integers_is_what_is_on_the_line_less_what_spreading_costs(loss, less):
    """Spread over a unit, squares cost 1/12 more, and distances a quarter of the chance of 0; never less than 0 is proven."""
    whole = optdp.Problem(optdp.ApproxDP(0, "1/20", 4.0), optdp.Integers(), loss, optdp.Additive())
    line = TailsCertificate().bound(dataclasses.replace(whole, domain=optdp.Line())).value
    assert RoundedCertificate(TailsCertificate()).bound(whole).value == pytest.approx(line - less, rel=1e-12)
    assert RoundedCertificate(AdditiveCertificate(1, "nodes", ())).bound(whole).value == 0


@pytest.mark.parametrize(
    ("privacy", "loss", "gap"),
    [
        (optdp.ApproxDP(1.0, 0.01, 1000.0), optdp.Huber(333.0), 1e-3),  # 0.30 before
        pytest.param(
            optdp.ApproxDP(1.0, 0.1, 3000.0), optdp.Huber(1000.0), 1e-3, marks=pytest.mark.soak
        ),  # 0.62 before
        (optdp.ApproxDP(1.0, 0.0, 100_003.0), optdp.Threshold(200_006), 1e-3),  # refused before
        (optdp.ApproxDP(1.0, 0.01, 100.0), optdp.Quantile(0.9), 1e-2),  # 1 after 30 seconds
        (optdp.GDP(1.0, 1e5), optdp.Power(2), 1e-3),  # refused before
        (optdp.KL(0.5, 1000.0), optdp.Power(1), 1e-3),  # refused before
        (optdp.RDP(2, 0.5, 1000.0), optdp.Quantile(0.9), 2e-2),  # refused before
        (optdp.Profile([(1, "1/100"), ("1/2", "1/20")], 1e5), optdp.Power(3), 1e-3),  # refused before
    ],
    ids=str,
)
def test_large_sensitivities(privacy, loss, gap):
    found = optdp.solve_additive(privacy, loss=loss, discrete=True, rtol=gap, time_limit=60)
    assert found.gap <= 1.2 * gap and found.verify() and isinstance(found.mechanism, RoundedNoise)
    assert "rounded to integers" in found.program.constraints
    again = optdp.Solution.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again == found and again.verify()
    drawn = np.abs(found.mechanism.randomize(np.full(40_000, 7), 3) - 7)
    if isinstance(loss, optdp.Quantile):
        assert np.mean(drawn <= found.value) == pytest.approx(loss.level, abs=0.02)
        assert np.mean(drawn <= 0.95 * found.lower_bound) < loss.level
    else:
        assert loss(drawn).mean() == pytest.approx(found.value, rel=0.1)


def test_quantiles_are_those_of_the_law():
    """Exactly: the least integer t with P(|Y - x| > t) <= 1 - level, by the distribution function in floats."""
    for noise in (LatticeStaircase.private(1.0, 20.0), LatticeGaussian(optdp.Line(), 20.0, 1.0)):
        whole = RoundedNoise(optdp.Integers(), noise)
        for level in (0.05, 0.5, 0.9, 0.999):
            low, high = whole.enclose(optdp.Quantile(level))
            assert low == high == whole.quantile((1 + level) / 2)
            assert (
                whole.enclose_loss(optdp.Threshold(high))[1]
                <= 1 - level
                < whole.enclose_loss(optdp.Threshold(low - 1))[0]
            )


def test_the_loss_of_rounded_noise_is_that_of_its_law():
    """Peaks of noise are narrower than a unit: a fractional part that is uniform there was 16 % off, and kinks cost a quarter of
    their slopes, however improbable what is near them was.
    """
    integers = np.arange(3000.0)
    for inner in (LatticeStaircase.private(6.0, 49.0), LatticeGaussian(optdp.Line(), 49.0, 3)):
        noise = RoundedNoise(optdp.Integers(), inner)
        law = noise.noise_probability(integers) * np.where(integers > 0, 2, 1)
        for loss in (optdp.Power(0.1), optdp.Power(3), optdp.Huber(3.0), optdp.Pieces((0, "50/3"), ((0,), (1, 3)))):
            value, (low, high) = noise.noise_loss(loss), noise.enclose_loss(loss)
            assert value == pytest.approx(law @ as_loss(loss)(integers), rel=1e-4), loss
            assert low <= value <= high and (loss.exponent or high <= value * (1 + 1e-9)), loss
    far = optdp.Pieces((0, "1301/10"), ((0,), ("-1301/10", 1)))
    assert RoundedNoise(optdp.Integers(), LatticeStaircase.private(20.0, 49.0)).enclose_loss(far)[1] < 1e-9


def test_the_law_of_rounded_noise_has_its_narrow_peaks():
    """Midpoints over parts of a unit missed where a staircase's first step ends: P(Z != 0) was half of what it is, an interval
    had less than the level that it was asked for, and a loss was below 0.
    """
    for eps, level in ((5.0, 0.9185), (20.0, 1 - 3e-5), (30.0, 1 - 2e-7)):
        noise = RoundedNoise(optdp.Integers(), LatticeStaircase.private(eps, 1.0))
        proven = noise.enclose_loss(optdp.Threshold(0))
        assert proven[0] <= 2 * noise.cdf(-1.0) <= proven[1] * (1 + 1e-6)
        assert 2 * noise.cdf(-1.0) == pytest.approx(1 - noise.noise_probability(0.0), rel=1e-6)
        assert noise.confidence_interval(level) == (-1.0, 1.0) and noise.enclose(optdp.Quantile(level)) == (1.0, 1.0)
        assert noise.noise_loss(optdp.Power(0.5)) == pytest.approx(proven[0], rel=0.02)
    sharp = RoundedNoise(
        optdp.Integers(), LatticeGaussian(optdp.Line(), 1.0, 8)
    )  # 0.25 % too few were beyond 0, 2 % beyond 1
    for limit in range(3):
        low, high = sharp.enclose_loss(optdp.Threshold(limit))
        assert low * (1 - 1e-9) <= 2 * sharp.cdf(-limit - 1.0) <= high * (1 + 1e-9)
    assert sharp.noise_loss(optdp.Power(0.5)) == pytest.approx(sharp.enclose_loss(optdp.Threshold(0))[0], rel=1e-4)
    cut = RoundedNoise(optdp.Integers(), LatticeStaircase.truncated(2.0, 0.01, 3.0, share=0.123))
    for limit in range(4):
        low, high = cut.enclose_loss(optdp.Threshold(limit))
        assert low * (1 - 1e-9) <= 2 * cut.cdf(-limit - 1.0) <= high * (1 + 1e-9)


def test_a_gaussian_is_rounded():
    noise = RoundedNoise(optdp.Integers(), LatticeGaussian(optdp.Line(), 12.0, "3/2"))
    assert noise.guarantee() == optdp.GDP("3/2", 12.0) and noise.satisfies(optdp.GDP(1.5, 12.0))
    drawn = noise.randomize(np.zeros(200_000), 1)
    low, high = noise.enclose_loss("squared")
    assert low <= 64 + 1 / 6 <= high and drawn.var() == pytest.approx(64 + 1 / 6, rel=0.02)
    assert abs(drawn.mean()) < 0.1
    places = np.arange(-20, 21)
    counts = (drawn[:, None] == places).mean(axis=0)
    assert np.abs(counts - noise.noise_probability(places)).max() < 6 * math.sqrt(0.05 / drawn.size)


def test_the_certificate_proves_nothing_else():
    privacy = optdp.ApproxDP(1.0, 0.01, 500.0)
    found = optdp.solve_additive(privacy, loss=optdp.Huber(100.0), discrete=True)
    assert isinstance(found.certificate, RoundedCertificate)
    line = optdp.Problem(privacy, optdp.Line(), optdp.WorstCase(optdp.Huber(100.0)), optdp.Additive())
    with pytest.raises(Refusal, match="the integers"):
        found.certificate.bound(line)
    whole = optdp.Problem(privacy, optdp.Integers(), optdp.WorstCase(optdp.Huber(100.0)), optdp.Additive())
    with pytest.raises(Refusal, match="the integers"):  # what is spread over units is on the line
        RoundedCertificate(found.certificate).bound(whole)
    with pytest.raises(Refusal, match="curvature"):
        curved = optdp.Pieces((0, 1), ((0,), (0, 0, 0, 1)))
        found.certificate.bound(optdp.Problem(privacy, optdp.Integers(), optdp.WorstCase(curved), optdp.Additive()))
    # Under weaker privacy it proves less, and never more than the noise there has.
    weaker = optdp.Problem(
        optdp.ApproxDP(2.0, 0.1, 500.0), optdp.Integers(), optdp.WorstCase(optdp.Huber(100.0)), optdp.Additive()
    )
    try:
        proven = found.certificate.bound(weaker).value
    except Refusal:
        proven = 0.0
    assert proven <= optdp.solve(weaker).value


def test_error_bars_that_are_too_short_are_not_proven():
    nothing = AdditiveCertificate(1, "nodes", ())
    assert rounded_design._error_bars(nothing) == rounded_design._error_bars(QuantileCertificate(0.0, nothing)) == []
    assert [c.limit for c in rounded_design._error_bars(QuantileCertificate(1.7, nothing))] == [1.0, 0.5]
    assert enclosures.round_up(rarest(optdp.ApproxDP(0, "1/2", 10.0))) == pytest.approx(11 / 21)


def test_the_last_digits_of_an_input_are_not_in_the_sum():
    """Noise far beyond 2^53, where floats are even: of odd inputs too the sums are rounded once, as those of even ones are."""
    far = AdditiveMechanism(optdp.Line(), 2.0**36, 1, (1,), 0, (LIMB,), LIMB - (LIMB >> 16))
    noise = RoundedNoise(optdp.Integers(), far)
    for x in (0.0, 1.0):
        sent = noise.randomize(np.full(20_000, x), 7)
        large = np.abs(sent[(np.abs(sent) > 2.0**53) & (np.abs(sent) < 2.0**54)])
        assert large.size > 1000 and (large % 4 == 2).any()  # was never so for x = 1
    for level in (0.9, 1 - 2.0**-53):  # the latter was refused
        low, high = noise.enclose(optdp.Quantile(level))
        inner = far.enclose_quantile(level, sent=True)
        assert inner[0] * (1 - 1e-15) - 1 <= low <= high <= inner[1] * (1 + 1e-15) + 1


def test_sharp_bends_that_are_smoothed_cost_what_kinks_cost():
    smooth, kink = optdp.Huber(1e-3), optdp.Pieces((0, 1), ((0,), (-1, 1)))
    soft = optdp.Pieces((0, "1/2", "501/1000"), ((0,), (125, -500, 500), (Fraction(-1001, 2000), 1)))
    with ctx.workprec(100):
        assert float(spread(smooth, 1.0, Fraction(0))) == 0  # it is a line from 1/2 on
        assert all(float(more) == 0 for loss in (smooth, soft, kink) for more in rounded(loss, 1.0))  # chords
        assert float(spread(soft, 1.0, Fraction(0))) == pytest.approx(float(spread(kink, 1.0, Fraction(0)))) == 1 / 8
    found = optdp.solve_additive(optdp.GDP(1.0, 64.0), loss=smooth, discrete=True, rtol=1e-2)
    assert found.gap <= 1e-2  # 0.95 before


def test_tables_of_losses_and_long_polynomials():
    """What a jump leaves is no break any more, and a long row is not made longer."""
    table = optdp.Pieces(range(1000), [(k,) for k in range(1000)])
    assert (
        known(table)
        and on_line(table).exact(Fraction(7, 2)) == 4
        and ramped(table).exact(Fraction(7, 2)) == Fraction(7, 2)
    )
    long = optdp.Pieces((0, 1, 2), ((0,) * 31 + (1,), (3,), (4,)))
    assert known(long) and len(on_line(long).polynomials[1][0]) == 32


def test_work_on_long_fractions_is_counted():
    """Jumps between slopes with other denominators each: their sums have all of them. (9 seconds where 1 is allowed.)"""
    slopes = [Fraction(k + 1, 10**900 + 2 * k + 1) for k in range(499)]
    rows = [(Fraction(k) - k * rise, rise) for k, rise in enumerate(slopes)]
    loss = optdp.Pieces(range(499), rows)
    problem = optdp.Problem(optdp.ApproxDP(1.0, 0.01, 100.0), optdp.Integers(), optdp.WorstCase(loss), optdp.Additive())

    def prove():
        with pytest.raises(work.Overwork), work.limited(0.2):
            RoundedCertificate(AdditiveCertificate(1, "nodes", ())).bound(problem)

    assert of_fractions(prove)[0] < 10_000  # of 440,000 that it would take


@pytest.mark.parametrize(
    ("privacy", "gap", "seconds"),
    [
        pytest.param(optdp.KL(0.5, 129.0), 1e-2, 60, marks=pytest.mark.soak),  # 2e-4 by all integers, 0.12 rounded
        pytest.param(optdp.GDP(1.0, 128.0), 0.1, 6, marks=pytest.mark.soak),  # 0.08 and 0.12
        pytest.param(
            optdp.Profile([(1, "1/100"), ("1/2", "1/20")], 49.0), 0.1, 6, marks=pytest.mark.soak
        ),  # 0.28 and 0.05
    ],
    ids=str,
)
def test_losses_that_are_met_at_the_first_integer(privacy, gap, seconds):
    """Noise that is rounded moves away from 0: both ways are gone, and the better of both sides is kept."""
    found = optdp.solve_additive(privacy, loss=optdp.Threshold(0), discrete=True, rtol=1e-3, time_limit=seconds)
    assert found.gap <= gap and found.verify()


@pytest.mark.parametrize(
    ("privacy", "level", "value"),
    [
        (optdp.ApproxDP(8.0, 0.01, 64.0), 0.9, 0.0),  # 1, and no bound
        pytest.param(optdp.ApproxDP(8.0, 0.01, 200.0), 0.9, 1.0, marks=pytest.mark.soak),
        (optdp.RDP(8, 20.0, 64.0), 0.9, 0.0),
        pytest.param(optdp.GDP(5.0, 64.0), 0.5, 0.0, marks=pytest.mark.soak),
    ],
    ids=str,
)
def test_error_bars_of_nearly_no_noise(privacy, level, value):
    """Whether no error is probable enough is asked of all integers: noise that is rounded is moved away from 0."""
    found = optdp.solve_additive(privacy, loss=optdp.Quantile(level), discrete=True, time_limit=12)
    assert found.lower_bound == found.value == value and found.verify()


@pytest.mark.parametrize("accounting", ["gaussian", "numerical"])
def test_changed_counts_of_several_releases(accounting):
    """It was a TypeError about an option that nobody gave."""
    found = optdp.solve_additive(
        1.0, 0.01, optdp.Threshold(0), sensitivity=4, discrete=True, releases=3, accounting=accounting, time_limit=2.0
    )
    assert found.verify() and 0 < found.lower_bound <= found.value < 0.99


def test_what_is_told_of_two_routes_is_about_the_noise_that_is_returned():
    problem = optdp.Problem(optdp.ApproxDP(1.0, 0.05, 4.0), optdp.Integers(), optdp.WorstCase("abs"), optdp.Additive())
    exact, rough = (optdp.solve(problem), optdp.solve_additive(1.0, 0.04, sensitivity=4, discrete=True))
    rough = dataclasses.replace(rough, problem=problem, program=dataclasses.replace(rough.program, constraints="rough"))
    for pair in ((exact, rough), (rough, exact)):
        found = rounded_design.beside(*pair)
        assert found.value == exact.value and found.mechanism is exact.mechanism and found.program is exact.program


def test_a_profile_of_one_pair_is_proven_as_that_pair_is():
    """The proof on the line inside the one on the integers left open which pair its multipliers are about: verify said no."""
    privacy = optdp.Profile([(0.001, 0.05)], 1000.0)
    found = optdp.solve(optdp.Problem(privacy, optdp.Integers(), optdp.Threshold(0), optdp.Additive()))
    assert found.gap < 1e-3 and isinstance(found.certificate, RoundedCertificate) and found.verify()

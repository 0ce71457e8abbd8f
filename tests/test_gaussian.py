"""Gaussian noise on a lattice: its law is computed where the lattice is coarse, its guarantee is the Gaussian's as it is sent."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr, ndtri

import optdp
from optdp.exact import enclosures
from optdp.mechanisms import gaussian
from optdp.mechanisms.accounting import composed_delta
from optdp.mechanisms.gaussian import LatticeGaussian
from optdp.mechanisms.rounded import RoundedGaussian, RoundedNoise

LINE = optdp.Line()
MUS = st.one_of(st.floats(1e-6, 8.0), st.fractions(Fraction(1, 1000), 8), st.just(optdp.log(3)))


def above(z):
    """E max(N - z, 0) for N of variance 1."""
    return (-(z**2) / 2).exp() / (2 * arb.pi()).sqrt() - z * (z / arb(2).sqrt()).erfc() / 2


def beyond(k, s):
    """P(K >= k) of N(0, s^2) rounded without bias: the mean of N - k + 1 cut off at 0 and 1."""
    with ctx.workprec(600):
        return s * (above(arb(k - 1) / s) - above(arb(k) / s))


def chances(noise, last):
    """P(K = k) for k = 0, ..., last, in floats."""
    with ctx.workprec(250):
        s = noise._steps()
        kept = [above(arb(k) / s) for k in range(-1, last + 2)]
        tails = [s * (low - high) for low, high in itertools.pairwise(kept)]
        return np.array([float(a - b) for a, b in itertools.pairwise(tails)])


def fits(places, law):
    """Whether |K| has the law (K = -k is as likely as k), by Pearson's statistic at 1e-6, rare ones together."""
    from scipy.stats import chisquare

    wanted = np.concatenate([law[:1], 2 * law[1:]]) * places.size
    seen = np.bincount(np.abs(places), minlength=wanted.size)[: wanted.size]
    frequent = wanted > 20
    wanted, seen = (
        np.append(v[frequent], rest - v[frequent].sum()) for v, rest in ((wanted, places.size), (seen, places.size))
    )
    if wanted[-1] < 5:
        wanted, seen = np.append(wanted[:-2], wanted[-2:].sum()), np.append(seen[:-2], seen[-2:].sum())
    return chisquare(seen, wanted * seen.sum() / wanted.sum()).pvalue > 1e-6


@pytest.fixture
def coarse(monkeypatch):
    """sigma is 4096 to 8192 steps, stretches are 64 to 128, and floats do not know where between two points N lies."""
    monkeypatch.setattr(gaussian, "FINE", 12)
    monkeypatch.setattr(gaussian, "DOUBT", 2.0**56)


@pytest.mark.parametrize(
    ("sensitivity", "mu"),
    [(1.0, 1.0), *(pytest.param(*given, marks=pytest.mark.soak) for given in ((0.7, "1/3"), (3.0, 2.5)))],
)
def test_draws_have_the_law_of_the_rounded_gaussian(coarse, sensitivity, mu):
    noise = LatticeGaussian(LINE, sensitivity, mu)
    places = noise._places(400_000, np.random.default_rng(5))
    width = 61  # not a divisor of a stretch
    law = chances(noise, 6 * 8192)
    inside = law[: law.size // width * width].reshape(-1, width).sum(axis=1)
    inside[0] -= law[0] / 2  # 0 has one sign
    rest = 0.5 - inside.sum()
    seen = np.bincount(np.minimum(np.abs(places) // width, inside.size), minlength=inside.size + 1)
    wanted = 2 * np.append(inside, rest) * places.size
    frequent = wanted > 20
    excess = np.square(seen - wanted)[frequent] / wanted[frequent]
    assert excess.sum() < frequent.sum() + 6 * math.sqrt(2 * frequent.sum())
    assert abs((places > 0).sum() - (places < 0).sum()) < 6 * math.sqrt(places.size)
    assert abs((places & 1).sum() - places.size / 2) < 3 * math.sqrt(places.size)


def test_what_is_decided_with_digits_has_the_same_law(monkeypatch):
    """With floats never trusted, and on a lattice so coarse that the place between two points matters."""
    monkeypatch.setattr(gaussian, "FINE", 4)
    monkeypatch.setattr(gaussian, "STRETCHES", 4)
    monkeypatch.setattr(gaussian, "LAST", 12)
    monkeypatch.setattr(gaussian, "FALL", Fraction(99, 100))
    monkeypatch.setattr(gaussian, "DOUBT", math.inf)
    noise = LatticeGaussian(LINE, 1.0, 1.0)
    assert noise._width == 4
    noise._sure[:] = 0
    places = noise._places(30_000, np.random.default_rng(6))
    assert fits(places, chances(noise, 100))


def test_a_place_between_two_points_is_settled_with_its_digits(monkeypatch):
    """One step as large as sigma: j = 0 is kept with the mean of e^(-v^2/2) over [0, 1], and rounded up with that of v then."""
    monkeypatch.setattr(LatticeGaussian, "_steps", lambda self: arb(1))
    noise, rng = LatticeGaussian(LINE, 1.0, 1.0), np.random.default_rng(8)
    bound, count = Fraction(2**gaussian.HEIGHT), 20_000
    tosses, coins = rng.integers(0, 2**62, size=count).tolist(), rng.integers(0, 2, size=count).tolist()
    drawn = [noise._settled(0, bound, toss, bool(up), rng) for toss, up in zip(tosses, coins, strict=True)]
    kept = np.array([up for keep, up in drawn if keep])
    chance = math.sqrt(2 * math.pi) * (ndtr(1) - 0.5)
    mean = (1 - math.exp(-0.5)) / chance
    assert abs(kept.size - chance * count) < 5 * math.sqrt(chance * (1 - chance) * count)
    assert abs(kept.mean() - mean) < 5 * math.sqrt(mean * (1 - mean) / kept.size)  # a fair coin is 10 deviations away


@given(st.floats(1e-3, 1e3), MUS, st.integers(0, 2**31))
@settings(max_examples=30, deadline=None)
def test_floats_are_nearer_than_what_they_may_decide(sensitivity, mu, seed):
    """To the density at both ends of the step, at random places of all stretches: by a factor of 16."""
    noise, rng = LatticeGaussian(LINE, sensitivity, mu), np.random.default_rng(seed)
    stretch = rng.integers(0, gaussian.LAST, size=40)
    place = stretch * noise._width + rng.integers(0, noise._width, size=40)
    found = noise._scales.take(stretch) * np.exp(-np.square((place + 0.5) / noise._deviation) / 2)
    with ctx.workprec(300):
        s = noise._steps()
        for c, j, one in zip(stretch.tolist(), place.tolist(), found.tolist(), strict=True):
            for end in (j, j + 1):
                exact = (-((end / s) ** 2) / 2).exp() * arb(2) ** (gaussian.HEIGHT + 62) / noise._bounds[c]
                assert abs(exact - one) <= gaussian.DOUBT / 16
    assert gaussian.DOUBT < 2.0**30  # and they do decide


def test_what_the_coarse_law_keeps_is_not_said_to_be_broken(monkeypatch):
    """sigma is 16 to 32 steps: the law itself keeps a little more than the Gaussian, and half-lines as sent say how much."""
    monkeypatch.setattr(gaussian, "FINE", 4)
    for mu in (0.5, 1.0, 2.0):
        noise = LatticeGaussian(LINE, 1.0, mu)
        m, s = noise._apart(1.0), noise._steps()
        with ctx.workprec(600):
            tails = {k: float(beyond(k, s)) for k in range(-60 - m, 60 + 5 * m)}
            quantile = {k: -ndtri(t) for k, t in tails.items() if 1e-12 < t < 1 - 1e-12}
        needed = max(q - quantile[k - m] for k, q in quantile.items() if k - m in quantile)
        assert needed < mu * (1 - 1e-6)
        assert noise.satisfies(optdp.GDP(needed * (1 + 1e-6))) is None and noise.satisfies(optdp.GDP(mu)) is True
        assert noise.satisfies(optdp.GDP(mu * (m - 1.01) / m)) is False
        for eps in (0.0, 0.5, 1.0):
            delta = max(tails[k - m] - math.exp(eps) * t for k, t in tails.items() if k - m in tails)
            assert noise.satisfies(optdp.ApproxDP(eps, delta * (1 + 1e-6))) is None
            assert delta * (1 + 1e-6) < noise.delta(eps)


def test_a_curve_is_broken_at_its_points_alone():
    """Its pairs imply it, and ask for more."""
    noise = LatticeGaussian(LINE, 1.0, 0.5)
    assert noise.delta(0.0) < 0.2
    assert noise.satisfies(optdp.Curve([(0, 0.5), (1, 0.2), (2, 0.2)], "convex")) is None
    assert noise.satisfies(optdp.Curve([(0, 0.19), (1, 0.05)], "convex")) is False


def test_the_guarantee_at_another_sensitivity_is_rounded_up():
    """Of a logarithm, and of a rational that has too many digits for a product."""
    for mu in (optdp.log(2), Fraction(2**4095 + 1, 2**4095 + 3)):
        noise = LatticeGaussian(LINE, 1.0, mu)
        half = math.nextafter(float(mu) / 2, 1.0)
        near = (math.nextafter(half, 0.0), half, math.nextafter(half, 1.0))
        with ctx.workprec(300):
            for x in near:
                enough = bool(enclosures.ball(mu) / 2 <= x)
                assert noise.satisfies(optdp.GDP(x, 0.5)) in ((True, None) if enough else (None, False))
        assert noise.satisfies(optdp.GDP(near[-1], 0.5)) is True


def test_stretches_that_are_short_beside_sigma_keep_their_digits():
    """A loss that is at most 1, of degree 31 on 2^-60 of sigma; a corner far below it; a power that is nearly constant."""
    wide = LatticeGaussian(LINE, 1e18, 0.5)
    low, high = wide.enclose_loss(optdp.Pieces([0, 1], [[0] * 31 + [1], [1]]))
    assert 1 - 1e-6 < low <= high <= 1 + 1e-9
    noise = LatticeGaussian(LINE, 1.0, 1.0)
    low, high = noise.enclose_loss(optdp.Huber(1e-150))
    assert low <= 1e-150 * math.sqrt(2 / math.pi) * (1 + 1e-12) and high <= low * (1 + 1e-12)
    low, high = noise.enclose_loss(optdp.Power(0.01))
    assert high - low < 1e-9 * high
    with pytest.raises(TypeError, match="Gaussian noise"):
        noise.enclose_loss(optdp.Threshold(0))


def test_the_tail_beyond_all_bounds_is_the_gaussians(monkeypatch):
    """Bounds of their own end at 2 standard deviations here: what follows is drawn stretch after stretch."""
    monkeypatch.setattr(gaussian, "LAST", 128)
    monkeypatch.setattr(gaussian, "FALL", Fraction(98, 100))
    noise = LatticeGaussian(LINE, 1.0, 1.0)
    far = np.abs(noise._places(60_000, np.random.default_rng(7)) * noise.step)
    edges = np.array([1.0, 1.5, 2.0, 2.25, 2.5, 3.0, 3.5])
    wanted = 2 * ndtr(-edges) * far.size
    seen = (far[:, None] > edges).sum(axis=0)
    assert (np.abs(seen - wanted) < 5 * np.sqrt(wanted) + 5).all()


@given(st.floats(1e-3, 1e3), MUS)
@settings(max_examples=40, deadline=None)
def test_bounds_are_above_the_density_and_sure_is_below_it(sensitivity, mu):
    noise = LatticeGaussian(LINE, sensitivity, mu)
    with ctx.workprec(300):
        s = noise._steps()
        assert s * (1 + arb(2) ** -20) >= 2**gaussian.FINE and s < 2 ** (gaussian.FINE + 1) * (1 + arb(2) ** -19)
        heights = [(-((c * noise._width / s) ** 2) / 2).exp() for c in range(gaussian.LAST + 3)]
        for c, bound in enumerate(noise._bounds):
            share = Fraction(bound, 2**gaussian.HEIGHT)
            assert heights[c] <= enclosures.ball(share) and (c == gaussian.LAST or share <= 1 + Fraction(1, 2**90))
        for c, sure in enumerate(noise._sure[:-1].tolist()):
            share = Fraction(sure, 2**62) * Fraction(noise._bounds[c], 2**gaussian.HEIGHT)
            assert enclosures.ball(share) <= heights[c + 1]
            assert enclosures.ball(share) >= heights[c + 1] * (1 - arb(2) ** -40)
        # Further out the density falls faster than the bounds do.
        assert heights[-1] <= heights[-2] * enclosures.ball(gaussian.FALL)
        assert noise._apart(sensitivity) * Fraction(noise.step) >= Fraction(sensitivity)


@pytest.mark.parametrize("seed", [None, 0])
def test_a_million_draws(seed):
    noise = LatticeGaussian(LINE, 1.0, 0.5)
    y = noise.randomize(np.zeros(1_000_000), seed)
    edges = 2 * np.linspace(-3, 3, 61)
    wanted = np.diff(np.concatenate([[0.0], ndtr(edges / 2), [1.0]])) * y.size
    seen = np.bincount(np.searchsorted(edges, y), minlength=62)
    assert (np.square(seen - wanted) / wanted).sum() < 62 + 6 * math.sqrt(124)
    places = np.rint(y / noise.step).astype(np.int64)
    assert (places * noise.step == y).all()
    for bit in range(3):
        assert abs(((places >> bit) & 1).mean() - 0.5) < 0.003


@given(st.floats(1e-2, 1e2), MUS, st.just(0.0) | st.floats(1e-300, 6), st.floats(0.001, 1), st.integers(-3, 3))
@settings(max_examples=60, deadline=None)
def test_the_law_that_is_sent_keeps_gaussian_dp(sensitivity, mu, eps, share, off):
    """In balls, at half-lines next to the best ones: below what the Gaussian's curve allows, and at the sensitivity hardly so."""
    noise = LatticeGaussian(LINE, sensitivity, mu)
    apart = noise._apart(sensitivity)
    shift = max(round(share * apart), 1)
    with ctx.workprec(600):
        s, e = noise._steps(), arb(eps)
        allowed = enclosures.ball(noise.guarantee().delta_at(eps))
        for m in (shift, apart):
            k = round(float(e * s * s / m)) + m // 2 + off
            found = beyond(k - m, s) - e.exp() * beyond(k, s)
            assert found <= allowed
        assert found >= allowed * (1 - arb(2) ** -30) - arb(2) ** -150
    assert noise.satisfies(noise.guarantee()) is True
    assert noise.satisfies(optdp.ApproxDP(eps, min(noise.delta(eps) * (1 + 1e-9), 1 - 1e-9), sensitivity)) is True


def test_what_half_lines_break_is_not_kept():
    noise = LatticeGaussian(LINE, 1.0, 1.2)
    delta = float(noise.guarantee().delta_at(1.0))
    near, little = optdp.ApproxDP(1.0, delta * (1 + 1e-12)), optdp.GDP(1e-9, 1e-150)
    for kept in (
        optdp.GDP(1.2),
        optdp.GDP(0.6, 0.5),
        optdp.GDP(2.4, 2.0),
        near,
        optdp.KL(0.7201),
        optdp.RDP(2, 1.4401),
        little,
    ):
        assert noise.satisfies(kept) is True
    several, wide = optdp.Profile([(1.0, 0.3), (2.0, 0.01)]), optdp.GDP(1.2, 1e150)
    for broken in (optdp.GDP(1.2 * (1 - 1e-12)), optdp.GDP(0.599, 0.5), optdp.GDP(2.39, 2.0), several, wide,
                   optdp.ApproxDP(1.0, delta * (1 - 1e-10)), optdp.ApproxDP(1e-6, 0.0), optdp.ApproxDP(30.0, 0.0)):  # fmt: skip
        assert noise.satisfies(broken) is False
    for unknown in (optdp.KL(0.7), optdp.RDP(2, 1.4), optdp.LDP(1.0), optdp.GDP(1e-16, 1e-150)):
        assert noise.satisfies(unknown) is None
    assert all(check.passed for check in noise.check_privacy(optdp.GDP(1.2)))
    assert not all(check.passed for check in noise.check_privacy(optdp.GDP(1.1)))
    assert noise.delta(1.0) == pytest.approx(delta, rel=1e-15)


@pytest.mark.parametrize("loss", ["abs", "squared", optdp.Power(1.5), optdp.Power(3), optdp.Power(0.5), optdp.Huber(0.7),
                                  optdp.Threshold(1.3), optdp.Pieces([0, 1, 2.5], [[0], ["-1/2", "1/2"], [0, 0, "1/4"]])],
                         ids=str)  # fmt: skip
@pytest.mark.parametrize("mu", [0.5, "7/3"])
def test_values_are_those_of_the_gaussian(loss, mu):
    noise = LatticeGaussian(LINE, 1.0, mu)
    law, sd = noise._loss(loss), 1 / float(Fraction(mu))
    cuts = [0.0, *(t for t in (0.7, 1.0, 1.3, 2.5) if t < 20 * sd), 20 * sd]
    parts = [
        quad(lambda z: float(law(z)) * float(noise.noise_density(z)), a, b, epsabs=0)
        for a, b in itertools.pairwise(cuts)
    ]
    whole = 2 * sum(part for part, _ in parts)
    low, high = noise.enclose_loss(loss)
    assert low <= whole * (1 + 1e-9) and whole <= high * (1 + 1e-9) and high - low <= 1e-6 * high
    assert low <= noise.noise_loss(loss) <= high
    assert noise.enclose(optdp.WorstCase(loss)) == (low, high)


def test_the_value_counts_the_lattice(coarse):
    """E L(|Y - x|) from the law of K, at inputs anywhere between two points."""
    noise = LatticeGaussian(LINE, 1.0, 4.0)
    law = chances(noise, 8 * 8192)
    k, g = np.arange(law.size), noise.step
    losses = [
        "abs",
        "squared",
        optdp.Power(1.5),
        optdp.Power(0.5),
        optdp.Huber(0.2),
        optdp.Pieces([0, 0.3], [["1/2", 0, 1], [1, 1]]),
    ]
    for name in losses:
        own = noise._loss(name)
        low, high = noise.enclose_loss(name)
        assert high <= low * (1 + (1e-6 if name in ("abs", "squared") else 1e-2))
        for u in (0.0, 0.3, 0.999):
            one = own(np.abs(k * g - u * g)) * law + np.where(k > 0, own(np.abs(-k * g - u * g)) * law, 0.0)
            assert low * (1 - 1e-12) <= one.sum() <= high * (1 + 1e-12)


def test_cdf_and_quantile_agree_and_intervals_cover():
    noise = LatticeGaussian(LINE, 2.0, 0.5)
    levels = np.array([1e-12, 0.01, 0.3, 0.5, 0.9, 1 - 1e-9])
    assert noise.cdf(noise.quantile(levels)) == pytest.approx(levels, rel=1e-9)
    assert noise.confidence_interval(0.95)[1] == pytest.approx(4 * 1.959963984540054)
    assert noise.variance() == pytest.approx(16.0) and noise.mean(3.0) == 3.0
    assert np.trapezoid(noise.noise_density(np.linspace(-40, 40, 4001)), dx=0.02) == pytest.approx(1.0)


def test_releases_of_it_compose_exactly():
    noise = LatticeGaussian(LINE, 1.0, 0.2)
    for eps in (0.0, 1e-300, 0.5, 1.0):
        assert composed_delta(noise, eps, 25) == pytest.approx(float(optdp.GDP(1.0).delta_at(eps)), rel=1e-14)
    assert 1 - 1e-9 < composed_delta(noise, 1.0, 10**6) <= 1.0 and composed_delta(noise, 30.0, 1) == noise.delta(30.0)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [((optdp.Integers(), 1.0, 1.0), "domain"), ((LINE, 0.0, 1.0), "sensitivity"), ((LINE, "x", 1.0), "sensitivity"),
     ((LINE, 1.0, 9.0), "mu"), ((LINE, 1.0, 1e-10), "mu"), ((LINE, 1.0, math.nan), "mu"),
     ((LINE, 1e150, 1e-8), "sensitivity/mu")],
)  # fmt: skip
def test_what_is_not_allowed(arguments, told):
    with pytest.raises((ValueError, TypeError), match=told):
        LatticeGaussian(*arguments)


def test_it_is_saved_and_drawn_alike(tmp_path):
    noise = LatticeGaussian(LINE, 0.1, optdp.log(2))
    noise.save(tmp_path / "noise.json")
    again = optdp.Mechanism.load(tmp_path / "noise.json")
    assert again == noise and "LatticeGaussian" in repr(noise)
    x = np.linspace(-5, 5, 50_000)
    assert (again.randomize(x, 3) == noise.randomize(x, 3)).all()
    assert noise.randomize(1e300, 0) == 1e300 and np.isfinite(noise.randomize(-1e-300, 0))


# --- rounded to the nearest integer


def whole(mu, sensitivity=1.0):
    return RoundedGaussian(optdp.Integers(), LatticeGaussian(LINE, sensitivity, mu))


LOSSES = ["abs", "squared", optdp.Power(0.4), optdp.Power(7), optdp.Threshold(0), optdp.Threshold(3.5), optdp.Huber(1.5),
          optdp.Pieces((0, 1, "5/2", 40), ((0,), (1, "1/3"), (0, 0, 1), (1700,)))]  # fmt: skip


@given(st.floats(0.011, 8.0), st.sampled_from(LOSSES))
@settings(max_examples=15, deadline=None)
def test_at_sensitivity_one_it_is_optimal_whatever_the_loss(mu, loss):
    found = optdp.solve_additive(optdp.GDP(mu), loss=loss, discrete=True)
    assert found.gap < 1e-12 and found.verify() and found.mechanism == whole(mu)
    k = np.arange(1, 10_000)
    law = optdp.problem.as_loss(loss)
    plain = float(law(0.0)) + np.diff(law(np.arange(10_000.0))) @ (2 * ndtr((0.5 - k) * mu))
    assert found.value == pytest.approx(plain, rel=1e-9)


@pytest.mark.parametrize("mu", [0.05, 1.0, 4.0])
def test_no_integer_program_finds_better_noise(mu):
    """Programs that know nothing of the Gaussian, and a probability that is too small for them."""
    for loss in ("squared", optdp.Threshold(1)):
        plain, found = (optdp.solve_additive(optdp.GDP(mu), loss=loss, discrete=True, n=n) for n in (1, None))
        assert plain.lower_bound <= found.value <= plain.value and not isinstance(plain.mechanism, RoundedGaussian)
    far = optdp.solve_additive(optdp.GDP(mu), loss=optdp.Threshold(5), discrete=True)
    assert far.gap < 1e-12 and far.value == pytest.approx(2 * ndtr(-5.5 * mu), rel=1e-9)
    bars = optdp.solve_additive(optdp.GDP(mu), loss=optdp.Quantile(0.95), discrete=True)
    assert bars.gap == 0 and bars.value == max(math.ceil(-ndtri(0.025) / mu - 0.5), 0)


def test_the_law_of_what_is_drawn_on_a_coarse_lattice(coarse):
    """That of the Gaussian rounded to integers, whatever the lattice: no place half-way between two integers has a mass."""
    noise = whole(0.25)
    tails = 2 * ndtr(-0.25 * (np.arange(60) + 0.5))  # P(|Y| > k), k = 0, 1, ...
    low, high = noise.enclose_loss("abs")
    assert low == pytest.approx(tails.sum(), rel=1e-12) and high - low < 1e-14
    mass = -np.diff(tails, prepend=1.0)
    drawn = noise.sample((200_000,), np.random.default_rng(5)).astype(int)
    assert fits(drawn, np.concatenate([mass[:1], mass[1:] / 2]))
    assert noise.noise_probability(np.arange(4)) == pytest.approx([mass[0], *(mass[1:4] / 2)], rel=1e-3)
    assert noise.quantile([0.3, 0.5, 0.999]) == pytest.approx([-2, 0, 12]) and noise.cdf(12) >= 0.999 > noise.cdf(11)


def test_what_lies_half_way_between_two_integers_goes_where_the_sum_does(monkeypatch):
    """Its side depended on the sign of the noise: shifts were a step too long, and mu by a share of 2^-43 or less too large."""
    monkeypatch.setattr(gaussian, "FINE", 6)
    noise = whole(1.0)
    assert noise._per == 64
    drawn = noise.sample((400_000,), np.random.default_rng(3))
    wanted = 2 * ndtr(0.5) - 1
    assert abs((drawn == 0).mean() - wanted) < 5 * math.sqrt(wanted * (1 - wanted) / drawn.size)


def test_what_the_rounded_gaussian_keeps():
    noise = whole(1.0)
    assert noise.guarantee() == optdp.GDP(1.0) and noise.satisfies(optdp.GDP(1.0)) is True
    assert noise.satisfies(optdp.GDP(1 - 1e-9)) is False and noise.satisfies(optdp.GDP(2.0, 2.0)) is True
    assert noise.satisfies(optdp.GDP(1.9, 2.0)) is False
    for eps in (
        0.1,
        0.5,
        0.9,
        2.5,
    ):  # the sets that are worst begin half-way between the Gaussian's and are a little better
        j = np.arange(-3, 6)
        exact = max(ndtr(1.5 - j) - math.exp(eps) * ndtr(0.5 - j))
        assert noise.satisfies(optdp.ApproxDP(eps, 1.001 * noise.delta(eps))) is True
        assert noise.satisfies(optdp.ApproxDP(eps, exact * (1 - 1e-9))) is False
        assert exact <= noise.delta(eps) and composed_delta(noise, eps, 1) == pytest.approx(noise.delta(eps))
    assert isinstance(noise, RoundedNoise) and "RoundedGaussian" in repr(noise)


def test_which_gaussians_are_rounded():
    with pytest.raises(ValueError, match="at most 100"):
        whole(0.009)
    with pytest.raises(ValueError, match="LatticeGaussian"):
        RoundedGaussian(optdp.Integers(), optdp.solve_additive(1.0, 0.1).mechanism)
    with pytest.raises(ValueError, match="custom"):
        whole(1.0).enclose_loss(optdp.CustomLoss(np.square, reach=9.0))
    assert optdp.solve_additive(optdp.GDP(0.009), discrete=True).gap < 1e-3

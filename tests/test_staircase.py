"""Staircase noise on a lattice: its law is listed where it is small, and its value is the best known one at every eps."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optdp
from optdp.audit.tlap.claims import cut_staircase
from optdp.exact import enclosures
from optdp.mechanisms import staircase
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.mechanisms.baselines.noise import Staircase, TruncatedLaplacian
from optdp.mechanisms.staircase import FALL, LatticeStaircase


def listed(noise, reach):
    """{j: probability} for |j| <= reach, from the definition of the weights; and what they lack of 1."""
    b, m = noise.fall, noise.period

    def weight(j):
        k, r = divmod(abs(j), m)
        return 0 if noise.cut and abs(j) > noise.cut else b ** (k + (r >= noise.first))

    total = sum(weight(j) for j in range(-noise.cut, noise.cut + 1)) if noise.cut else (
        2 * (noise.first + b * (m - noise.first)) / (1 - b) - 1
    )  # fmt: skip
    law = {j: weight(j) / Fraction(total) for j in range(-reach, reach + 1)}
    atom = Fraction(noise.atom, 2**62)
    law = {j: (1 - atom) * p for j, p in law.items()}
    law[0] += atom
    return law, 1 - sum(law.values())


@pytest.fixture
def coarse(monkeypatch):
    monkeypatch.setattr(staircase, "PERIOD", 3)


CASES = st.tuples(st.floats(0.3, 5), st.sampled_from([1.0, 0.7, 3.0]), st.floats(0.05, 0.95), st.sampled_from([0, 3, 9, 14, 40]),
                  st.sampled_from([0.0, 0.1]))  # fmt: skip


@given(CASES)
@settings(max_examples=settings.default.max_examples // 5, deadline=None)
def test_the_law_is_private_at_every_shift_and_its_moments_are_exact(case):
    eps, sensitivity, share, cut, delta = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(staircase, "PERIOD", 3)
        made = LatticeStaircase.private(eps, sensitivity, share=share, delta=delta)
        noise = LatticeStaircase(made.domain, sensitivity, made.decay, made.first, cut, made.atom)
        reach = noise.cut or 30 * noise.period
        law, rest = listed(noise, reach)
        assert rest == 0 if cut else 0 <= rest < Fraction(1, 10) ** (3 if eps > 0.3 else 1)
        for q in (1, 2):
            sums = sum(p * abs(j) ** q for j, p in law.items()) * Fraction(noise.step) ** q
            assert noise.moment(q) == sums if cut else sums <= noise.moment(q)
            low, high = noise.enclose_loss(optdp.Power(q))  # an input just below a point of the lattice loses most
            most = noise.moment(q) + (
                Fraction(noise.step) * law[0] if q == 1 and cut else Fraction(noise.step) ** 2 * (q - 1)
            )
            assert low <= noise.moment(q) and most <= high
        ratio, worst = 1 / noise.fall, Fraction(0)
        assert ratio <= enclosures.exp_above(eps)
        assert noise.period * Fraction(noise.step) >= Fraction(sensitivity)
        for s in range(1, noise.period + 1):
            inside = range(-reach, reach + 1 if cut else reach + 1 - s)
            worst = max(worst, sum(max(law[j] - ratio * law.get(j + s, 0), Fraction(0)) for j in inside))
        assert worst <= noise.least_delta <= worst + noise.least_delta * (0 if cut or not noise.atom else 1)
        p, places = np.array(list(law.values()), dtype=float), noise.step * np.array(list(law))
        for loss in (
            optdp.Power(1),
            optdp.Power(3),
            optdp.Threshold(0.3),
            optdp.Pieces((0, "1/3"), (("1/5",), (1, 2))),
        ):
            low, high = noise.enclose_loss(loss)
            for x in (0.0, noise.step / 3, noise.step * 0.99):
                found = float(p @ loss(np.abs(places - x)))
                assert found <= high * (1 + 1e-12) and (not cut or found >= low * (1 - 1e-12))


def test_draws_have_the_listed_law(coarse):
    for noise in (
        LatticeStaircase.private(1.0),
        LatticeStaircase.truncated(1.0, 0.2),
        LatticeStaircase.private(2.0, 1.3, delta=0.1),
    ):
        law, _ = listed(noise, noise.cut or 40 * noise.period)
        j, counts = np.unique(noise._places(40_000, np.random.default_rng(3)), return_counts=True)
        assert set(j.tolist()) <= set(law)
        for k, p in law.items():
            seen, wanted = int(counts[j == k].sum()), float(p) * 40_000
            assert abs(seen - wanted) <= 6 * math.sqrt(wanted + 1)


@pytest.mark.parametrize("eps", [0.05, 0.5, 2.0, 10.0, 20.0, 30.0])
def test_the_value_is_that_of_the_optimal_staircase_and_of_the_truncated_one(eps):
    noise = LatticeStaircase.private(eps)
    low, high = noise.enclose_loss("abs")
    assert low <= 1 / (2 * math.sinh(eps / 2)) * (1 + 1e-9) and high == pytest.approx(
        1 / (2 * math.sinh(eps / 2)), rel=1e-9
    )
    for delta in (1e-3, 0.1, 0.5):
        cut = LatticeStaircase.truncated(eps, delta)
        assert cut.least_delta <= Fraction(delta)
        assert cut.enclose_loss("abs")[1] == pytest.approx(float(cut_staircase(1, eps, delta).mid()), rel=1e-9)
        assert cut.enclose_loss("squared")[1] == pytest.approx(float(cut_staircase(2, eps, delta).mid()), rel=1e-9)
        assert cut.enclose_loss("abs")[1] < TruncatedLaplacian(eps, delta).noise_loss("abs")


@pytest.mark.parametrize(
    "noise",
    [
        LatticeStaircase.private(1.5, 2.0),
        LatticeStaircase.truncated(1.5, 0.1),
        LatticeStaircase.private(1.5, delta=0.2),
    ],
)
def test_density_cdf_and_quantile_agree(noise):
    levels = np.array([0.02, 0.3, 0.5001, 0.75, 0.95, 0.999])
    z = noise.quantile(levels)
    inside = z != 0
    assert noise.cdf(z[inside]) == pytest.approx(levels[inside], abs=1e-9)
    grid = np.linspace(0, float(z[-1]), 20_001)[1:]
    area = noise.noise_density((grid[1:] + grid[:-1]) / 2).sum() * (grid[1] - grid[0])
    assert area == pytest.approx(float(noise.cdf(grid[-1]) - noise.cdf(grid[0])), abs=1e-3)
    assert LatticeStaircase.from_dict(noise.to_dict()) == noise
    assert noise.noise_loss(optdp.Power(1.0)) == pytest.approx(float(noise.moment(1)))
    own = noise.guarantee()
    assert noise.satisfies(optdp.ApproxDP(2.0, own.delta, own.sensitivity)) is True
    less = noise.satisfies(optdp.ApproxDP(1.0, own.delta, own.sensitivity))
    assert less is (False if own.delta == 0 else None)  # with a delta it may have other pairs as well
    assert noise.satisfies(noise.guarantee()) and noise.confidence_interval(0.9)[1] > 0


@pytest.mark.parametrize(("eps", "loss"), [(16.0, "abs"), (20.0, "squared"), (30.0, "abs"), (30, "squared")])
def test_additive_noise_is_never_worse_than_the_staircases_at_large_eps(eps, loss):
    q = {"abs": 1, "squared": 2}[loss]
    for delta in (0.0, 0.1):
        found = optdp.solve_additive(eps, delta, loss, rtol=0.01, time_limit=2.0)
        known = Staircase(eps, steps=loss).noise_loss(loss)
        if delta:
            known = min(known, float(cut_staircase(q, eps, delta).mid()))
        assert found.value <= known * (1 + 1e-6) and found.verify()
        if not delta:
            assert found.gap < 1e-6


@pytest.mark.parametrize(
    "loss", [optdp.Threshold(1e8), optdp.Threshold(1e150), optdp.Pieces((0, 10**9), ((0,), (0, 1)))], ids=str
)
def test_a_loss_that_begins_far_out_is_hardly_met(loss):
    """Periods were added up until the sum was more than 0."""
    for noise in (LatticeStaircase.private(1.0), LatticeStaircase.private(0.2, 1e-3, delta=0.1)):
        low, high = noise.enclose_loss(loss)
        assert 0 <= low <= high < 1e-300 and noise.noise_loss(loss) < 1e-300


@pytest.mark.parametrize(
    "noise", [LatticeStaircase.private(1.0, delta=0.5), LatticeStaircase.private(30.0, share=0.0)], ids=str
)
def test_answers_that_are_exact_cost_what_no_error_costs(noise):
    """Of a loss of no error the enclosure's lower end had nothing, and `noise_loss` half of it or too much."""
    still = float(
        Fraction(noise.atom, 2**62) + (1 - Fraction(noise.atom, 2**62)) / Fraction(2 * noise._sums(0, noise.fall) - 1)
    )
    assert still > 0.2
    assert noise.noise_loss(optdp.Threshold(0)) == pytest.approx(1 - still, abs=1e-9)
    loss = optdp.Pieces((0, 1000), ((1,), (2,)))
    assert noise.enclose_loss(loss) == pytest.approx((1, 1)) and noise.noise_loss(loss) == pytest.approx(1)
    for third in ("1/3", "2/3"):  # one is above its float, one below it
        low, high = noise.enclose_loss(optdp.Pieces((0, 1000), ((third,), (1,))))
        assert Fraction(low) <= Fraction(third) <= Fraction(high)


@pytest.mark.parametrize("asked", [optdp.ApproxDP(1.0, 0.0), optdp.ApproxDP(1.0, 0.3), optdp.ApproxDP(21.0, 0.0, 2.0)])
def test_no_less_divergence_is_told_than_the_guarantee_implies(asked):
    """At e^1 the divergence of noise with ratios of e^20 is nearly 1, and at twice the distance nothing less than 1 is known."""
    noise = optdp.solve_additive(20.0).mechanism
    assert noise.check_privacy(optdp.ApproxDP(20.0))[0].passed
    told, *others = noise.check_privacy(asked)
    least = 1 if asked.sensitivity > 1 else (math.exp(20) - math.e) / (math.exp(20) + 1)
    found = float(told.detail.split("is at most ")[1].split()[0].replace("...", "9"))
    assert least <= found < least + 1e-12 and not told.passed and not all(c.passed for c in others)
    assert told.detail.endswith(f"not proven to be at most delta = {asked.delta}")


def test_refusals_name_the_argument():
    for made in (
        lambda: LatticeStaircase.private(0.01), lambda: LatticeStaircase.private(1.0, 1e300),
        lambda: LatticeStaircase.truncated(1.0, 0.0), lambda: LatticeStaircase.truncated(0.05, 1e-9),
        lambda: LatticeStaircase(optdp.Line(), 1.0, 2**FALL, 1), lambda: LatticeStaircase(optdp.Line(), 1.0, 1, 1),
        lambda: LatticeStaircase(optdp.Line(), 1.0, 2**78, 2**40, 1), lambda: LatticeStaircase(optdp.Integers(), 1.0, 1, 1),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match="allowed"):
            made()


@pytest.mark.parametrize("made", [LatticeStaircase.private, lambda eps: optdp.solve_additive(eps, 0.0, n=2).mechanism])
def test_nothing_is_beyond_infinity(made):
    """As for every distribution function: an interval may have no end."""
    noise = made(1.0)
    assert noise.cdf([-math.inf, -1e308, 0.0, 1e308, math.inf]).tolist() == [0, 0, noise.cdf(0.0), 1, 1]
    assert noise.noise_density([-math.inf, math.inf]).tolist() == [0, 0]


def test_a_delta_that_is_kept_by_a_hair_is_kept():
    """The masses of a damaged file, by 7e-20 within delta: e^9 had too few digits, and the second checker said yes."""
    step, less, more = (
        82029924550207874900999592304921,
        82029924550207802043790837180785,
        82029924550207947758208347429057,
    )
    tail = (step,) * 3 + (less,) + (step,) * 5 + (more,)
    noise = AdditiveMechanism(
        optdp.Integers(), 10.0, 10, (664613999533058068056192558208938509,), 0, tail, 569127268043404, 9.0
    )
    assert all(check.passed for check in noise.check_privacy(optdp.ApproxDP(9.0, 1e-6, 10.0)))
    assert not all(check.passed for check in noise.check_privacy(optdp.ApproxDP(9.0, 1e-6 - 1e-19, 10.0)))


@pytest.mark.parametrize(
    "noise",
    [
        LatticeStaircase.private(1.0),
        LatticeStaircase.private(2.0, delta=0.05),
        LatticeStaircase.truncated(1.0, 0.05),
        LatticeStaircase.truncated(0.5, 0.2, 3.0),
    ],
    ids=str,
)
def test_delta_below_the_guarantees_eps_is_what_it_implies(noise):
    """1 - (1 - delta)(1 + e^eps')/(1 + e^eps) of Kairouz, Oh and Viswanath: what the notion says, and above the profile of the
    density, on a grid of shifts; below e^-eps the other corner decides.
    """
    own, cells = noise.guarantee(), 500
    width, middles = noise.sensitivity / cells, (np.arange(-40 * cells, 40 * cells) + 0.5) / cells * noise.sensitivity
    p, atom = noise.noise_density(middles) * width, noise.atom_mass
    for eps in (-2.5, -1.0, -0.1, 0.0, 0.3, 0.5, 0.9, 1.0, 1.7, 2.0, 3.0):
        ratio = Fraction(math.exp(eps))
        found = float(noise.exact_delta(ratio))
        moved = [np.maximum(p - float(ratio) * np.roll(p, k), 0).sum() + atom for k in range(1, cells + 1, 7)]
        assert max(moved) <= found + 2e-3
        if eps >= 0:
            assert found == pytest.approx(float(own.delta_at(eps)), abs=1e-12)
            assert noise.delta(eps) >= found - 1e-12
    assert noise.exact_delta(Fraction(10**6)) == noise.least_delta and noise.exact_delta(Fraction(0)) == 1
    assert noise.exact_delta(Fraction(10**6), 2 * noise.sensitivity) == 1
    assert [noise.hockey_stick(0, r) for r in (Fraction(1, 4), Fraction(1), Fraction(3))] == [Fraction(3, 4), 0, 0]


def test_checks_and_answers_agree_below_the_guarantees_eps():
    noise = LatticeStaircase.private(1.0)
    for delta in (0.29, 0.288, 0.287, 0.1):  # 1 - (1 + e^(1/2))/(1 + e) = 0.28766...
        notion = optdp.ApproxDP(0.5, delta)
        kept = delta > 0.28767
        assert all(check.passed for check in noise.check_privacy(notion)) is kept
        assert noise.satisfies(notion) is (True if kept else None)
    assert all(check.passed for check in noise.check_privacy(noise.guarantee()))
    told = noise.check_privacy(optdp.ApproxDP(0.5, 0.29))[1].detail
    assert told.endswith("not proven to be at most e^0.5: more of delta is used")


def test_a_no_at_larger_distances_is_one_at_the_sensitivity():
    """Two steps of 14 are 28 at twice the distance; less than 14 is too little at any."""
    noise = optdp.solve_additive(14.0).mechanism
    assert isinstance(noise, LatticeStaircase)
    for eps, distance, told in (
        (28.01, 2.0, None),
        (29.0, 1.5, None),
        (13.9, 1.5, False),
        (13.9, 1.0, False),
        (14.0, 1.0, True),
    ):
        assert noise.satisfies(optdp.ApproxDP(eps, 0.0, distance)) is told


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_the_law_in_floats_has_a_first_step_of_one_point(share):
    """0 counted twice as much beside the points around it: of P(|Z| > 0.4) = 0.1024 the law knew 0.0560."""
    for noise in (LatticeStaircase.private(30.0, share=share), LatticeStaircase.truncated(30.0, 0.01, share=share)):
        for limit in (2.0**-38, 0.4, 0.75):
            low, high = noise.enclose_loss(optdp.Threshold(limit))
            assert low * (1 - 1e-6) <= 2 * noise.cdf(-limit) <= high * (1 + 1e-6)
        low, high = noise.enclose(optdp.Quantile(0.9))
        assert noise.confidence_interval(0.9)[1] == pytest.approx(high, rel=1e-6)


@pytest.mark.parametrize("loss", [optdp.Power(0.05), optdp.Huber(3.0)], ids=["root", "huber"])
@pytest.mark.parametrize("pairs", [[(0.46, 0.0064), (5.25, 0.00024)], [(1.0, 0.01), (2.0, 0.0)]])
def test_noise_for_a_profile_is_no_worse_than_staircases_for_its_least_pair(loss, pairs):
    """Found on no lattice in little time: the 0.05th power was 1.7036, and that of the staircase that is cut off is 1.6991."""
    solution = optdp.solve_additive(optdp.Profile(pairs, 32768.0), loss=loss, time_limit=0.05)
    (eps, _), (_, delta) = pairs
    for noise in staircase.noise_of(
        optdp.Problem(optdp.ApproxDP(eps, delta, 32768.0), optdp.Line(), "abs", optdp.Additive())
    ):
        assert solution.value <= noise.enclose(solution.problem.objective)[1]
    assert solution.lower_bound <= solution.value and solution.verify()


def test_a_profile_whose_least_pair_no_noise_keeps_has_lattices():
    """With eps = delta = 0 the staircase was refused, and with it the profile."""
    found = optdp.solve_additive(
        optdp.Profile([(0, 0.05), (1, 0)]), loss=optdp.Threshold(0.37), rtol=1e-5, time_limit=0.5
    )
    assert found.verify() and 0 < found.lower_bound <= found.value < 1

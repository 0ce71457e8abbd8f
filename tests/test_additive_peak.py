"""Renyi DP with large bounds: the peak's closed-form bound, its noise, and exact tests of both by other routes."""

from __future__ import annotations

import contextlib
import math
import warnings
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import optdp
from optdp.certificates.base import Refusal
from optdp.certificates.peak import KLPeakCertificate, PeakCertificate
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.peak import FALL, PeakNoise
from optdp.mechanisms.staircase import LatticeStaircase


def problem(notion, loss="abs"):
    return optdp.Problem(notion, optdp.Line(), optdp.WorstCase(loss), optdp.Additive())


@pytest.mark.parametrize(
    ("alpha", "bound"), [(16, 32.0), (64, 32.0), (64, 128.0), (2, 20.0), (1.3, 40.0), (10_000, 290.0)]
)
@pytest.mark.parametrize(
    ("loss", "rtol"), [("abs", 1e-3), ("squared", 5e-3), (optdp.Power(1.5), 1e-3), (optdp.Power(3), 2e-2)]
)
def test_steep_noise(alpha, bound, loss, rtol):
    """Brackets far beyond lattices; below the staircase of as large an eps, and nearer to it as the order grows."""
    solution = optdp.solve_additive(optdp.RDP(alpha, bound), loss=loss, rtol=rtol)
    assert solution.gap <= rtol and solution.verify(), str(solution.verify())
    again = optdp.Solution.from_dict(solution.to_dict())
    assert again.verify() and again.mechanism == solution.mechanism
    if bound <= 30 and loss in ("abs", "squared"):
        assert solution.lower_bound < optdp.solve_additive(bound, 0.0, loss).value
    if loss == "abs":  # by hand: w/(2 + 1/(a-1)) + e^-r K/w at the best w, for r so large that nothing else counts
        g = 1 / (alpha - 1)
        k = (1 + g) / 2 * ((1 + g) / (2 + g)) ** g
        assert solution.value == pytest.approx(
            2 * math.sqrt(k / (2 + g) * math.exp(-bound)), rel=3 * math.exp(-bound / 2) + 1e-4
        )


def test_sensitivities_scale():
    one, three = (optdp.solve_additive(optdp.RDP(5, 25.0, d), loss="squared") for d in (1.0, 3.0))
    assert three.value == pytest.approx(9 * one.value, rel=1e-6) and three.lower_bound == pytest.approx(
        9 * one.lower_bound
    )
    assert (
        three.mechanism.satisfies(optdp.RDP(5, 25.0)) is True
        and one.mechanism.satisfies(optdp.RDP(5, 25.0, 3.0)) is None
    )


@settings(max_examples=60, deadline=None)
@given(
    falls=st.lists(st.integers(0, 5), min_size=1, max_size=4), gaps=st.lists(st.integers(1, 3), min_size=4, max_size=4),
    plateau=st.integers(1, 4), decay=st.integers(1, 10), far=st.integers(1, 6), eps=st.floats(0, 3),
)  # fmt: skip
def test_the_pair_is_worse_than_every_shift(falls, gaps, plateau, decay, far, eps):
    """Against the law itself, written out on a small lattice: hockey-sticks and moments at every shift up to the period."""
    heights = tuple(plateau + sum(falls[i:]) for i in range(len(falls)))
    ends = tuple(int(x) - 1 for x in np.cumsum(gaps[: len(falls)]))
    b = Fraction(decay, 1024)
    noise = PeakNoise(optdp.Line(), float(far), 0, ends, heights, plateau, int(b * 2**FALL))
    period = noise.period

    def weight(j):
        j = abs(j)
        for end, height in zip(ends, heights, strict=True):
            if j <= end:
                return Fraction(height)
        return plateau * b ** ((j - ends[-1] - 1) // period)

    reach = ends[-1] + 5 * period  # beyond, less than b^5 is left
    law = {j: weight(j) for j in range(-reach - period, reach + period + 1)}
    total = sum(law.values())
    steps, beyond = noise._weights
    assert float(Fraction(steps[0], noise.total)) == pytest.approx(
        float(heights[0] * (2 * ends[0] + 1) / total), rel=1e-6
    )
    ratio = Fraction(math.exp(eps))
    allowed = noise.pair.hockey_stick(ratio) + Fraction(1, 10**6)
    moment = float(noise.pair.moment(3)) * (1 + 1e-6)
    for s in range(1, period + 1):
        both = [(law[j] / total, law[j + s] / total) for j in range(-reach, reach + 1)]
        assert sum(max(p - ratio * q, 0) for p, q in both) <= allowed
        assert float(sum(p**3 / q**2 for p, q in both)) <= moment
    assert sum(noise.pair.p) == sum(noise.pair.q) == noise.pair.total and beyond > 0


def test_draws():
    """Masses of the steps and of the plateau, by a chi-squared test; quantiles invert the distribution function."""
    noise = PeakNoise(optdp.Line(), 1.0, 20, (3, 1000, 50_000), (2**30, 2**22, 2**12), 2**10, 2 ** (FALL - 7))
    drawn = noise.sample((40_000,), np.random.default_rng(3))
    assert np.abs(drawn.mean()) < 5 * drawn.std() / 200
    edges = np.concatenate([[0.0], (np.array([3, 1000, 50_000]) + 0.5) / 2**20, [0.5, 1.0, np.inf]])
    seen, _ = np.histogram(np.abs(drawn), edges)
    expected = np.diff([2 * noise.cdf(e) - 1 if np.isfinite(e) else 1.0 for e in edges]) * drawn.size
    assert ((seen - expected) ** 2 / np.maximum(expected, 1)).sum() < 40
    levels = np.linspace(0.001, 0.999, 77)
    assert noise.cdf(noise.quantile(levels)) == pytest.approx(levels, abs=1e-9)
    low, high = noise.enclose_loss("abs")
    assert low <= high and np.abs(drawn).mean() == pytest.approx(high, abs=6 * drawn.std() / 200)
    private = noise.randomize(np.array([0.25, 1e6, -3.0]), rng=1)
    assert private.shape == (3,) and np.abs(private - [0.25, 1e6, -3.0]).max() < 3
    assert Mechanism.from_dict(noise.to_dict()) == noise and "peak" in repr(noise)


def test_what_the_noise_keeps():
    noise = optdp.solve_additive(optdp.RDP(8, 15.0)).mechanism
    assert noise.guarantee() == optdp.RDP(8, 15.0) and noise.satisfies(optdp.RDP(8, 14.9)) is None
    assert noise.delta(14.5) > 0 == noise.delta(15.5)
    assert all(noise.satisfies(optdp.ApproxDP(eps, noise.delta(eps) * (1 + 1e-9))) for eps in (14.5, 15.5))
    assert noise.satisfies(optdp.RDP(4, 15.0)) is True  # Renyi divergences grow with their order


@pytest.mark.parametrize(
    ("change", "named"),
    [({"ends": (5, 5)}, "ends"), ({"heights": (1, 2)}, "heights"), ({"decay": 2**FALL}, "decay"), ({"plateau": 0}, "plateau"),
     ({"heights": (4,)}, "ends"), ({"grid": 5000}, "grid"), ({"domain": optdp.Integers()}, "domain"), ({"notion": 3}, "notion")],
)  # fmt: skip
def test_wrong_fields_are_named(change, named):
    fields = {"domain": optdp.Line(), "sensitivity": 1.0, "grid": 4, "ends": (1, 5), "heights": (9, 3), "plateau": 2,
              "decay": 2**400}  # fmt: skip
    assert PeakNoise(**fields)
    with pytest.raises((TypeError, ValueError), match=named):
        PeakNoise(**(fields | change))


def test_a_level_proves_no_more_than_the_optimum():
    """At any level: the bound is below the noise's value, and best where `best` says."""
    notion = optdp.RDP(4, 18.0)
    for loss in ("abs", "squared"):
        asked = problem(notion, loss)
        best, value = PeakCertificate.best(asked), optdp.solve_additive(notion, loss=loss).value
        top = best.bound(asked).value
        assert 0.9 * value < top <= value
        for share in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0):
            assert PeakCertificate(best.level * share).bound(asked).value <= top * (1 + 1e-9)
        assert best.bound(problem(optdp.RDP(4, 19.0), loss)).value < top
        wide = best.bound(problem(optdp.RDP(4, 18.0, 3.0), loss)).value
        assert wide == pytest.approx(top * (3.0 if loss == "abs" else 9.0), rel=1e-12)
    for wrong in (problem(optdp.KL(1.0)), problem(optdp.GDP(1.0)), problem(optdp.RDP(4, 0.5))):
        with pytest.raises(Refusal):
            PeakCertificate(0.5).bound(wrong)
    # Its proof needs a convex power, whose derivatives it uses, and every real shift.
    whole = optdp.Problem(optdp.RDP(4, 18.0), optdp.Integers(), "abs", optdp.Additive())
    for wrong in (
        *(problem(notion, loss) for loss in (optdp.Power(0.5), optdp.Huber(0.5), optdp.Threshold(0.1))),
        whole,
    ):
        with pytest.raises(Refusal, match=r"degree at least 1|real line"):
            best.bound(wrong)


@pytest.mark.parametrize(("q", "level"), [(1.0, 0.1), (1.5, 0.05), (2.0, 0.03), (3.5, 1e-3)])
def test_the_multipliers_are_the_integrals_of_the_proof(q, level):
    """Lam by quadrature, with e from the largest L'' on a grid; at these levels e counts for much."""
    a, r, c = 3.0, 5.0, level ** (1 / q)
    e = c * c / 2 * max(q * (q - 1) * x ** (q - 2) for x in np.linspace(2 * c, 1 + 2 * c, 1001))
    start = 2 * c + max(2 * c, (level + e) ** (1 / q))
    spread = quad(lambda d: d**q - level - e, start, 1)[0]
    area = 2 * quad(lambda x: (level - x**q) ** (a / (a - 1)), 0, c)[0]
    expected = ((a - 1) * math.exp(r) * area / (2 * spread * a ** (a / (a - 1)))) ** (a - 1)
    assert float(PeakCertificate(level)._multipliers(optdp.RDP(a, r), arb(q))) == pytest.approx(expected, rel=1e-7)


def test_the_bound_holds_for_lattices_too():
    """Where lattices still resolve the peak, their noise is above the closed-form bound, their bound below the peak's."""
    notion = optdp.RDP(3, 9.0)
    lattice = optdp.solve_additive(notion, loss="squared", rtol=0.05)
    proven = PeakCertificate.best(lattice.problem).bound(lattice.problem).value
    from optdp.design.additive.peak import bracket

    assert proven <= lattice.value and lattice.lower_bound <= bracket(lattice.problem).value


def test_noise_with_a_peak_is_not_rounded():
    """The lattice of integers has no solution; noise of the line, which is tried next, was refused as if it had been passed.

    What is rounded is a staircase.
    """
    found = optdp.solve_additive(optdp.RDP(16.0, 30.0, 8.0), loss="squared", discrete=True)
    assert isinstance(found.mechanism.noise, LatticeStaircase) and found.verify()


@pytest.mark.parametrize("grid", [-60, 0, 490])
def test_values_hold_for_the_numbers_that_are_sent_on_a_coarse_lattice(grid):
    """Beside sums over all points, for inputs at either end of a step; what is left of the tail is below 2^-300."""
    g, b = Fraction(2) ** -grid, Fraction(1, 101)
    made = PeakNoise(optdp.Line(), float(3 * g), grid, (0, 2), (9, 4), 2, math.floor(b * 2**512))
    weights = {0: 9, 1: 4, 2: 4} | {3 + 3 * k + r: 2 * b**k for k in range(60) for r in range(3)}
    law = {sign * j: w for j, w in weights.items() for sign in (-1, 1)}
    for loss, power in (("abs", 1), ("squared", 2)):
        low, high = made.enclose(optdp.WorstCase(loss))
        for rest in (0, g * (1 - Fraction(1, 2**40))):
            value = sum(w * abs(g * j - rest) ** power for j, w in law.items()) / sum(law.values())
            assert low <= value * (1 + Fraction(1, 2**200)) and value <= high


@pytest.mark.parametrize("bound", [25.0, 60.0, 290.0])
@pytest.mark.parametrize(("q", "rtol"), [(1.0, 2e-4), (1.5, 1e-3), (2.0, 2e-3), (3.0, 2e-2)])
def test_steep_noise_for_the_kl_divergence(bound, q, rtol):
    """(1 + 1/q) Lam, log Lam = (log(2/(q+1)) - r - log(2 Gamma(1 + 1/q)) - 1/q)/(1 + 1/q), for r so large that no more counts."""
    notion = optdp.KL(bound)
    solution = optdp.solve_additive(notion, loss=optdp.Power(q), rtol=rtol)
    assert solution.gap <= rtol and solution.verify(), str(solution.verify())
    assert optdp.Solution.from_dict(solution.to_dict()) == solution
    assert solution.program.constraints == "the divergence of the worst pair"  # that for KL, not a Renyi divergence
    area = math.log(2) + math.lgamma(1 + 1 / q)
    lam = math.exp((math.log(2 / (q + 1)) - bound - area - 1 / q) / (1 + 1 / q))
    assert solution.value == pytest.approx((1 + 1 / q) * lam, rel=1.5 * rtol)
    # What has a Renyi divergence has that for KL.
    renyi = optdp.solve_additive(optdp.RDP(2, bound), loss=optdp.Power(q), rtol=0.1)
    assert solution.lower_bound < renyi.lower_bound and solution.certificate.bound(renyi.problem).value < renyi.value


@pytest.mark.parametrize(
    ("q", "share", "weight", "bound"),
    [
        (1.0, 12, 0.006, 8),
        (2.0, 15, 1e-3, 9),
        pytest.param(1.5, 9, 0.002, 8, marks=pytest.mark.soak),
        pytest.param(3.0, 11, 4e-4, 8, marks=pytest.mark.soak),
    ],
)
def test_the_bracket_under_the_kl_divergence_is_nowhere_below_what_is_proven(q, share, weight, bound):
    """|x|^q + Lam (1 + log s) - e^r/2 int lam(d) (s(x + d) + s(x - d)) dd by quadrature, from what s and lam are."""
    certificate = KLPeakCertificate(share * weight, weight)
    proven = certificate.bound(problem(optdp.KL(float(bound)), optdp.Power(q))).value
    v, lam, r = certificate.level, weight, float(bound)
    c = v ** (1 / q)
    e = c * c / 2 * max(q * (q - 1) * x ** (q - 2) for x in np.linspace(2 * c, 1 + 2 * c, 1001))
    start = 2 * c + max(2 * c, (v + e) ** (1 / q))
    assert 0 < start < 1
    grown = quad(lambda x: math.expm1((v - abs(x) ** q) / lam), -c, c, points=[0])[0]
    f = 2 * quad(lambda d: d**q - v - e, start, 1)[0] / (math.exp(r) * lam * grown)

    def s(x):
        return f * np.exp(np.maximum(v - np.abs(x) ** q, 0) / lam)

    d = np.linspace(start, 1, 200_001)
    shifts = 2 * (d**q - v - e) / (math.exp(r) * f * grown)
    assert (shifts >= 0).all() and np.trapezoid(shifts, d) == pytest.approx(lam, rel=1e-6)
    least = math.inf
    for x in np.concatenate([np.linspace(0, 2 * c, 60), np.linspace(2 * c, 1 + 2 * c, 120), [3.0]]):
        around = np.trapezoid(shifts * (s(x + d) + s(x - d)), d)
        least = min(least, x**q + lam * (1 + math.log(s(x))) - math.exp(r) / 2 * around)
    assert proven > 0 and least >= proven * (1 - 1e-5)
    assert least <= proven * (1 + 1e-5)  # under the peak


def test_no_level_and_weight_prove_more_than_the_optimum_under_the_kl_divergence():
    for notion, loss in ((optdp.KL(14.0), "abs"), (optdp.KL(20.0), "squared")):
        asked = problem(notion, loss)
        best, value = KLPeakCertificate.best(asked), optdp.solve_additive(notion, loss=loss, rtol=0.05).value
        top = best.bound(asked).value
        assert 0.8 * value < top <= value
        for share in (0.3, 0.9, 1.1, 3.0):
            for other in (0.3, 0.9, 1.0, 1.1, 3.0):
                with contextlib.suppress(Refusal):
                    made = KLPeakCertificate(best.level * share, best.weight * other)
                    assert made.bound(asked).value <= top * (1 + 1e-6)
    for wrong in (problem(optdp.GDP(1.0)), problem(optdp.KL(20.0), optdp.Huber(0.5))):
        with pytest.raises(Refusal, match=r"KL differential|degree at least 1"):
            best.bound(wrong)
    with pytest.raises(Refusal, match="too wide"):
        KLPeakCertificate(0.5, 0.1).bound(asked)
    with warnings.catch_warnings(), pytest.raises(Refusal, match="narrow enough"):
        warnings.simplefilter("error")  # of a search that begins where nothing is proven
        KLPeakCertificate.best(problem(optdp.KL(9.0), optdp.Power(8)))


@pytest.mark.parametrize(
    ("notion", "domain", "loss"),
    [
        (optdp.KL(12.0), optdp.Line(), "squared"),
        (optdp.KL(12.0, 1e4), optdp.Integers(), "squared"),
        pytest.param(optdp.KL(14.0, 1e4), optdp.Integers(), "squared", marks=pytest.mark.soak),
    ],
)  # fmt: skip
def test_large_bounds_that_were_refused(notion, domain, loss):
    """On lattices that resolve the peak; rounded to integers it is their noise, as the peak's own is on no lattice of floats."""
    solution = optdp.solve(optdp.Problem(notion, domain, optdp.WorstCase(loss), optdp.Additive()), rtol=0.4)
    assert solution.gap <= 0.4 and solution.verify()

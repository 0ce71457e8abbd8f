"""Profiles, Gaussian DP, KL and Renyi DP: what they say, what implies what, and exact tests of noise against quadrature."""

from __future__ import annotations

import dataclasses
import math
import pickle
import random
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.special import ndtr, ndtri

import optdp
from optdp.certificates import half_lines
from optdp.certificates.additive import SCALE, lattice_costs
from optdp.certificates.base import Refusal
from optdp.certificates.graded import GradedCertificate, Test
from optdp.certificates.half_lines import HalfLinesCertificate, variance_share
from optdp.design.additive import additive_noise, divergence
from optdp.design.additive import curve as curve_design
from optdp.design.additive import lattice as lattice_design
from optdp.design.additive.approximate import private_finite
from optdp.design.additive.graded import Mesh, Relaxation
from optdp.exact import enclosures
from optdp.exact.pairs import Pair
from optdp.mechanisms.additive import TOTAL, AdditiveMechanism, largest_around
from optdp.mechanisms.gaussian import LatticeGaussian
from optdp.mechanisms.staircase import LatticeStaircase
from optdp.problem.privacy import Privacy, mu_between
from optdp.solvers import Highs

NOTIONS = [
    optdp.Profile([(2.0, 1e-6), ("1/2", 0.01)]), optdp.GDP(1.0, 2.0), optdp.GDP("3/2"), optdp.RDP(2, "1/3"),
    optdp.KL(optdp.log(3)), optdp.ApproxDP(1.0, 0.1), optdp.KL(0.5).in_real_arithmetic(),
    optdp.Curve([(0, 0.3), (1, 0.1), (2, "1/100")]),
]  # fmt: skip


@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_notions_are_values(notion):
    assert Privacy.from_dict(notion.to_dict()) == notion
    assert pickle.loads(pickle.dumps(notion)) == notion and hash(notion) == hash(notion)
    assert notion.adjective in str(notion) and notion.latex()
    answer = notion.implied_by(notion)
    assert answer is True
    problem = optdp.Problem(notion, optdp.Line(), "abs", optdp.Additive())
    assert notion.adjective in problem.statement() and optdp.Problem.from_dict(problem.to_dict()) == problem


@pytest.mark.parametrize(
    ("make", "named"),
    [
        (lambda: optdp.GDP(0), "mu"), (lambda: optdp.GDP(9.0), "mu"), (lambda: optdp.GDP("x"), "mu"),
        (lambda: optdp.KL(-1), "bound"),
        (lambda: optdp.RDP(1, 1), "alpha"), (lambda: optdp.RDP(2, 0), "bound"), (lambda: optdp.Profile([]), "pairs"),
        (lambda: optdp.Profile([(1.0, 0.1), (1.0, 0.2)]), "pairs"), (lambda: optdp.Profile(3), "pairs"),
        (lambda: optdp.Profile([(1.0, 1.5)]), "delta"), (lambda: optdp.KL(1, 0.0), "sensitivity"),
        (lambda: optdp.Profile.under(3, [1]), "curve"),
        (lambda: optdp.ApproxDP(0.0, 0.0), "eps = 0, delta = 0"), (lambda: optdp.ApproxDP(optdp.log(1)), "eps = 0, delta = 0"),
    ],
)  # fmt: skip
def test_wrong_parameters_are_named(make, named):
    with pytest.raises((TypeError, ValueError), match=named):
        make()


def test_what_implies_what():
    """Against closed forms: randomised response is the worst of pure privacy, the Gaussian of Gaussian DP."""
    e = math.exp(1.0)
    for notion, worst in (
        (optdp.GDP, 2 * ndtri(e / (e + 1))),
        (optdp.KL, math.tanh(0.5)),
        (lambda r: optdp.RDP(3, r), math.log((e**3 + e**-2) / (e + 1)) / 2),
    ):
        for pure in (optdp.LDP(1.0), optdp.ApproxDP(1.0), optdp.Profile([(1.0, 0.0), (0.5, 0.4)])):
            assert notion(worst * (1 + 1e-9)).implied_by(pure) is True
        assert notion(worst * (1 - 1e-9)).implied_by(optdp.LDP(1.0)) is False
        assert notion(worst).implied_by(optdp.ApproxDP(1.0, 1e-9)) is False  # unbounded likelihood ratios
    assert optdp.KL("1/2").implied_by(optdp.GDP(1)) and not optdp.KL("0.499").implied_by(optdp.GDP(1))
    assert optdp.RDP(4, 2).implied_by(optdp.GDP(1)) and optdp.RDP(4, 1.99).implied_by(optdp.GDP(1)) is False
    for mu in (2, optdp.log(3), "1/2"):  # alpha mu^2/2, whether the numbers are rational or not
        gauss = optdp.GDP(mu)
        for alpha, notion in ((1, optdp.KL), (3, lambda r: optdp.RDP(3, r)), (2.5, lambda r: optdp.RDP(2.5, r))):
            spent = alpha * float(gauss.mu) ** 2 / 2
            assert (
                notion(spent * (1 + 1e-12)).implied_by(gauss) and notion(spent * (1 - 1e-12)).implied_by(gauss) is False
            )
    assert optdp.RDP(2, 1).implied_by(optdp.RDP(3, 1)) and optdp.RDP(3, 1).implied_by(optdp.RDP(2, 1)) is None
    assert optdp.KL("0.9").implied_by(optdp.RDP(2, 1)) is None  # their largest KL divergence is less than 1
    assert optdp.KL(1).implied_by(optdp.RDP(3, 1)) and optdp.GDP(1).implied_by(optdp.KL(0.1)) is None
    assert optdp.GDP(1).implied_by(optdp.GDP(1, 0.5)) is None  # its neighbours are nearer
    assert optdp.GDP(1).implied_by(optdp.GDP(1, 2.0)) is True
    assert optdp.GDP(1).implied_by(optdp.GDP(0.5).in_real_arithmetic()) is None
    for eps in (0.0, 0.3, 1.0, 4.0):
        delta = ndtr(0.6 - eps / 1.2) - math.exp(eps) * ndtr(-0.6 - eps / 1.2)
        assert optdp.GDP(1.2).delta_at(eps) == pytest.approx(delta, rel=1e-9)
        assert optdp.ApproxDP(eps, delta * (1 + 1e-9)).implied_by(optdp.GDP(1.2)) is True
        assert optdp.ApproxDP(eps, delta * (1 - 1e-9)).implied_by(optdp.GDP(1.2)) is False
        assert optdp.ApproxDP(eps, 0.99).implied_by(optdp.RDP(2, 0.1)) is True
        assert optdp.RDP(2, 1.44).delta_at(eps) >= delta  # of the Gaussian, too


def test_a_profile_implies_the_curve_below_its_tangents():
    """At eps' < eps one pair allows what the line to (P, Q) of randomised response with a share of delta allows."""
    one, two = optdp.ApproxDP(1.0, 0.05), optdp.Profile([(1.0, 0.05), (2.0, 0.001)])
    e = math.e
    assert one.delta_at(0.0) == pytest.approx((e - 1 + 0.1) / (e + 1), rel=1e-12)
    assert one.delta_at(3.0) == pytest.approx(0.05)
    assert two.delta_at(2.0) == pytest.approx(0.001) and two.delta_at(0.5) <= one.delta_at(0.5)
    assert one.implied_by(two) is True and two.implied_by(one) is False
    assert optdp.Profile([(1.0, 0.05)]).implied_by(one) is True and one.implied_by(optdp.Profile([(1.0, 0.05)])) is True


weights = st.lists(st.integers(0, 30), min_size=1, max_size=8).filter(lambda w: sum(w) > 0)


@settings(max_examples=40, deadline=None)
@given(p=weights, q=weights)
def test_pairs_against_floats(p, q):
    size = max(len(p), len(q))
    p, q = p + [0] * (size - len(p)), q + [0] * (size - len(q))
    total = sum(p) * sum(q)
    pair = Pair([v * sum(q) for v in p], [v * sum(p) for v in q], total)
    a, b = np.array(p) / sum(p), np.array(q) / sum(q)
    for ratio in (Fraction(1), Fraction(7, 3)):
        assert float(pair.hockey_stick(ratio)) == pytest.approx(np.maximum(a - float(ratio) * b, 0).sum(), abs=1e-12)
    powers = [(x / total, y / total) for x, y in pair.powers()]
    assert powers[-1] == (1.0, 1.0)
    slopes = [(c[0] - d[0]) / max(c[1] - d[1], 1e-300) for d, c in pairwise(powers)]
    assert all(x > y for x, y in pairwise(slopes))
    both = (a > 0) & (b > 0)
    if (b[a > 0] > 0).all():
        assert float(pair.kl()) == pytest.approx((a[both] * np.log(a[both] / b[both])).sum(), abs=1e-12)
        assert float(pair.moment(3)) == pytest.approx((a[both] ** 3 / b[both] ** 2).sum())
    else:
        assert not pair.kl().is_finite() and not pair.moment(2).is_finite()


@settings(max_examples=25, deadline=None)
@given(tail=st.lists(st.integers(1, 40), min_size=3, max_size=3), size=st.integers(1, 6), k=st.integers(1, 3))
def test_pairs_with_a_tail_against_a_long_cut_off(tail, size, k):
    noise = AdditiveMechanism(optdp.Line(), 1.0, 3, tuple(range(size * 7, 0, -7)), 0, tuple(tail), 2**61)
    pair = noise.pair(k)
    assert sum(pair.p) == sum(pair.q) == pair.total
    long = [w / noise.total for w in noise.weights]
    for period in range(200):
        long += [t / 2 ** (period + 1) / noise.total for t in noise.tail]
    line = np.array(long[:0:-1] + long)
    a, b = line[:-k], line[k:]
    assert float(pair.kl()) == pytest.approx((a * np.log(a / b)).sum(), rel=1e-9)
    assert float(pair.moment(2)) == pytest.approx((a**2 / b).sum(), rel=1e-9)
    assert float(pair.hockey_stick(Fraction(3, 2))) == pytest.approx(np.maximum(a - 1.5 * b, 0).sum(), rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(
    heights=st.lists(st.tuples(st.integers(1, 4), st.integers(1, 9)), min_size=1, max_size=4),
    tail=st.sampled_from([(), (5, 5, 5, 5), (6, 6, 2, 2)]),
    k=st.integers(1, 4),
)
def test_pairs_of_noise_with_equal_masses_are_short_and_the_same(heights, tail, k):
    weights = tuple(w for w, times in heights for _ in range(times))
    noise = AdditiveMechanism(optdp.Line(), 1.0, 4, weights, 0, tail, 2**61 if tail else 0)
    pair = noise.pair(k)
    assert sum(pair.p) == sum(pair.q) == pair.total
    assert len(pair.p) <= 4 * (len(heights) + 8) + 6
    half = [Fraction(w, noise.total) for w in weights]
    half += [Fraction(t, noise.total) / 2 ** (j + 1) for j in range(60 if tail else 0) for t in tail]
    line = [Fraction(0)] * k + half[:0:-1] + half + [Fraction(0)] * k
    for ratio in (Fraction(1), Fraction(7, 3)):
        plainly = sum(max(a - ratio * b, 0) for a, b in zip(line[k:], line[:-k], strict=True))
        assert float(pair.hockey_stick(ratio)) == pytest.approx(float(plainly), rel=1e-12, abs=1e-12)


def test_cells_that_shrink_towards_zero_beat_the_lattice_at_a_large_mu():
    """And so does their bound; eps and shifts at random by quadrature between all ends of cells, not from what was checked."""
    lattice = optdp.solve_additive(optdp.GDP(5.0), loss="squared", n=20)
    found = optdp.solve_additive(optdp.GDP(5.0), loss="squared", rtol=0.02)
    noise = found.mechanism
    assert found.value < 0.99 * lattice.value and found.lower_bound > 1.05 * lattice.lower_bound and found.gap < 0.02
    assert noise.n > 20 and noise.satisfies(optdp.GDP(5.0)) is True
    again = optdp.Solution.from_dict(found.to_dict())
    assert again.verify() and again.certificate == found.certificate
    rng = np.random.default_rng(5)
    b = noise.decay / 2**62
    tail = np.array([float(Fraction(t, noise.total)) for t in noise.tail]) * (1 - b)
    p = np.concatenate([noise.masses, tail, b * tail, b**2 * tail, np.zeros(noise.n)])
    density = np.concatenate([p[:0:-1], p]) * noise.n
    edges = (np.arange(density.size + 1) - p.size + 0.5) / noise.n
    for eps, shift in zip(rng.exponential(4.0, 1000), rng.uniform(0, 1, 1000), strict=True):
        at = np.sort(np.concatenate([edges, edges - shift]))
        middle = (at[1:] + at[:-1]) / 2
        f, g = (np.where((i >= 0) & (i < density.size), density[np.clip(i, 0, density.size - 1)], 0.0)
                for i in (np.floor((x - edges[0]) * noise.n).astype(int) for x in (middle, middle + shift)))  # fmt: skip
        delta = float(np.diff(at) @ np.maximum(f - math.exp(eps) * g, 0.0))
        allowed = ndtr(2.5 - eps / 5) - math.exp(eps) * ndtr(-2.5 - eps / 5)
        assert delta <= allowed * (1 + 1e-9) + 1e-9


def test_a_bound_that_starts_from_a_coarser_mesh_comes_nearer():
    lattice = optdp.solve_additive(optdp.GDP(3.0), n=12)
    task = curve_design.Task(lattice.problem, math.inf, None)
    bounds, coarse = [lattice.lower_bound], None
    for mesh in (Mesh(0.5), Mesh(0.25), Mesh(0.25, narrow=True)):
        relaxed = Relaxation(task.curve(0.0), 6, 16, mesh, 0.0, task.radius, task.costs, task.quick)
        if coarse:
            relaxed.follow(coarse)
        noise = curve_design._rounded(lattice.mechanism, relaxed.n, relaxed.end)
        bounds.append(relaxed.solve(noise, 1e-3, math.inf).bound(lattice.problem).value)
        coarse = relaxed
    assert bounds[2] > bounds[1] and bounds[3] > bounds[1] and max(bounds) <= lattice.value, bounds


def test_noise_on_a_mesh_that_starts_from_another_mesh_is_private():
    """Cells of 12 and of 18 per sensitivity have few ends in common: the old noise is no point of the new program."""
    task = curve_design.Task(optdp.Problem(optdp.GDP(3.0), optdp.Line(), "abs", optdp.Additive()), math.inf, None)
    best = first = curve_design._bracket(task, 12, None, 1e-3)
    for cells in (12, 18):
        best, _ = curve_design._refined(task, best, first, cells, task.smallest(first, cells, 0.03), 0.25, 0.0, 0.03)
        assert task.mechanism(best.program).admitted(task.privacy) is True, cells
    best.program.seen.clear()
    assert not best.program.broken(best.program.inner, curve_design.BROKEN)


@pytest.mark.parametrize("power", [pytest.param(0.2, marks=pytest.mark.soak), 0.5])
def test_noise_on_a_mesh_keeps_the_curve_for_concave_losses(power):
    """It did not: its tail was raised to the mass of one point at its end, and sets that a narrow peak is in were passed over."""
    task = curve_design.Task(
        optdp.Problem(optdp.GDP(3.0), optdp.Line(), optdp.Power(power), optdp.Additive()), math.inf, None
    )
    first = curve_design._bracket(task, 12, None, 1e-3)
    best, _ = curve_design._refined(task, first, first, 12, 128, 0.5, 0.0, 0.03)
    assert best.mechanism is not first.mechanism and best.mechanism.admitted(task.privacy) is True
    assert best.value < 0.85 * first.value


@pytest.mark.parametrize("size", [4, 20, 200])
def test_likelihood_ratios_that_floats_cannot_tell_apart_are_in_order(size):
    rng = np.random.default_rng(size)
    p, q = ([int(x) for x in 2**80 + rng.integers(1, 4, size).astype(object)] for _ in range(2))
    p[: size // 2] = [int(x) << 75 for x in rng.integers(1, 50, size // 2)]  # others are far apart
    ratios = [Fraction(a, b) for a, b in Pair(p, q, sum(p))._ordered]
    assert ratios == sorted({Fraction(a, b) for a, b in zip(p, q, strict=True)}, reverse=True)


@pytest.mark.parametrize(
    ("mu", "eps"), [(1.0, 0.5), (0.25, 3.0), (8.0, 40.0), (1e-30, 2e-30), (1e-60, 2e-60), (1e-3, 0.01)]
)
def test_the_gaussians_delta_is_rounded_up_by_less_than_floats_see(mu, eps):
    """At 150 digits, also where the two tails have a hundred bits in common."""
    with mpmath.workdps(150):
        m, e = mpmath.mpf(mu), mpmath.mpf(eps)
        exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        found = optdp.GDP(mu).delta_at(eps)
        assert 0 <= mpmath.mpf(found.numerator) / found.denominator - exact <= exact * mpmath.mpf(10) ** -17


@pytest.mark.parametrize("mu", [0.5, 0.75, 1.0, 1.25, 2.0, 2.5, 3.0])
def test_long_pairs_that_miss_a_mu_by_less_than_a_float_are_seen(mu):
    """Two outcomes, each in 512 pieces, with the power Phi(mu) at the level 1/2, and more or less by 2^-70; or hardly more."""
    total, pieces = 2**400, 512
    with mpmath.workdps(150):
        least = int(mpmath.floor(mpmath.ncdf(mu) * total / pieces)) * pieces
    even = [total // (2 * pieces)] * (2 * pieces)
    for more, answer in ((2**330, False), (-(2**330), True), (pieces, None)):
        power = (least + more) // pieces
        other = [power] * pieces + [total // pieces - power] * pieces
        for pair in (Pair(other, even, total), Pair(even, other[::-1], total)):
            assert optdp.GDP(mu).admits(pair) is answer
    assert optdp.GDP(mu).implied_by(optdp.GDP(1.01 * mu)) is False


def test_likelihood_ratios_of_shares_below_ordinary_floats_are_in_order():
    """As floats the shares of the first two have the ratios 2 and 1.6."""
    total = 2**1075
    found = Pair([3, 17, total - 20], [2, 10, total - 12], total)
    assert found._ordered == [(17, 10), (3, 2), (total - 20, total - 12)]


@pytest.mark.parametrize(("alpha", "bound", "eps"), [(2, 0.5, 1.0), (1.5, 0.125, 0.5), (30, 1.0, 2.5), (2, 5.0, 0.0)])
def test_the_delta_of_a_renyi_divergence_is_rounded_up_and_at_most_1(alpha, bound, eps):
    """Canonne, Kamath and Steinke: the largest mean of (1 - e^(eps - z))_+ for a given one of e^((alpha - 1) z), at one z."""
    with mpmath.workdps(150):
        a, r = mpmath.mpf(alpha), mpmath.mpf(bound)
        z = eps + mpmath.log(a / (a - 1))  # where the ratio of the two is largest
        exact = min(mpmath.mpf(1), (1 - mpmath.exp(eps - z)) * mpmath.exp((a - 1) * (r - z)))
        found = optdp.RDP(alpha, bound).delta_at(eps)
        assert 0 <= mpmath.mpf(found.numerator) / found.denominator - exact <= exact * mpmath.mpf(10) ** -17
    assert optdp.RDP(alpha, bound).implied_by(optdp.RDP(alpha + 1, 1.01 * bound)) is None


@pytest.mark.parametrize("scale", [1, 2**1000])
@pytest.mark.parametrize("mu", [0.1, 1.0, 5.0])
def test_the_least_mu_of_a_long_pair_is_that_of_its_worst_corner(mu, scale):
    """Corner by corner in balls; floats decide most corners of long pairs, but not where `scale` leaves them no digits."""
    rng = np.random.default_rng(round(10 * mu))
    at = np.sort(rng.uniform(mu - 6, 6, 300))
    p, q = (np.diff(ndtr(np.concatenate([[-np.inf], at - m, [np.inf]]))) for m in (mu, 0.0))
    p, q = ([int(x * 2**80) + 1 for x in v * rng.uniform(0.999, 1, v.size)] for v in (p, q))
    p[0] += max(sum(q) - sum(p), 0)
    q[-1] += max(sum(p) - sum(q), 0)
    pair = Pair([x * scale for x in p], [x * scale for x in q], sum(p) * scale)
    corners = [(a, b) for a, b in pair.powers() if 0 < a > b < pair.total]
    most = max(float(mu_between(a, b, pair.total)) for a, b in corners)
    assert optdp.GDP(most * (1 + 1e-12)).admits(pair) is True and optdp.GDP(most * (1 - 1e-12)).admits(pair) is False
    assert len(optdp.GDP(1.001 * most)._not_below_chords(pair)) <= (len(pair.p) if scale > 1 else 2)


@pytest.mark.parametrize(("mu", "loss"), [(0.004, "abs"), (0.01, "squared")])
def test_a_small_mu(mu, loss):
    """There the Gaussian is all but optimal, and a lattice as wide as the sensitivity is fine enough."""
    found = optdp.solve_additive(optdp.GDP(mu), loss=loss)
    gauss = mu**-2 if loss == "squared" else math.sqrt(2 / math.pi) / mu
    assert found.verify() and found.gap < (1e-15 if loss == "squared" else 5e-6)
    assert found.lower_bound <= gauss * (1 + 1e-12) and found.value <= gauss * (1 + 4e-16)
    lattice = optdp.solve_additive(optdp.GDP(mu), loss=loss, n=1)
    assert lattice.verify() and lattice.mechanism.n == 1 and lattice.value <= gauss * (1 + 5e-4)


def test_multipliers_without_end_are_the_same_written_out():
    """`rest` against values that go on beyond where the bracket only grows."""
    for found in (optdp.solve_additive(optdp.GDP(1.0), rtol=2e-2), optdp.solve_additive(1.0, 0.0, n=6)):
        own = found.certificate
        end = 40 * own.n
        long = tuple(
            dataclasses.replace(m, values=m.values + (m.rest,) * (end - m.end), rest=m.rest) for m in own.multipliers
        )
        assert any(m.rest for m in own.multipliers)
        written = dataclasses.replace(own, multipliers=long)
        assert written.bound(found.problem).value == own.bound(found.problem).value


def test_only_distances_between_ends_of_runs_decide():
    noise = AdditiveMechanism(
        optdp.Line(), 1.0, 12, (9, 9, 9, 4, 4, 4, 4, 1), 0, (3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 2, 2), 2**60
    )
    few, every = noise.deciding(12), range(1, 13)
    assert few[-1] == 12 and len(few) < 12
    for ratio in (Fraction(1), Fraction(3, 2), Fraction(5)):
        assert noise.exact_delta(ratio) == max(noise.pair(k).hockey_stick(ratio) for k in every)
    worst = max(optdp.exact.enclosures.upper(noise.pair(k).kl()) for k in every)
    assert noise.kl() == pytest.approx(float(worst), rel=1e-12)


def test_cuts_that_cost_something_are_not_idle_whatever_the_unit():
    """Multipliers of small losses were all idle, so that cuts were dropped and found again until the time was up."""
    program = object.__new__(curve_design.TailProgram)
    program.base, program.magnify, program.cuts = 1, 2.0**60, [None, None]
    program.dual, program.age = np.array([0.0, -1e-16, 0.0]), np.zeros(2, dtype=int)
    program.tidy()
    assert program.age.tolist() == [0, 1]


def test_one_shift_that_breaks_a_notion_is_enough(monkeypatch):
    """With all of them looked at what was not solved in time took many times the limit to be mixed with what is private."""
    noise = AdditiveMechanism(optdp.Integers(), 5.0, 5, (9, 2, 3, 1, 2, 1, 1, 1))
    asked, pair = [], AdditiveMechanism.pair
    monkeypatch.setattr(AdditiveMechanism, "pair", lambda self, k: asked.append(k) or pair(self, k))
    assert noise.admitted(optdp.GDP(0.1, 5.0)) is False and asked == [5] and len(noise.deciding(5)) == 5


def test_a_lattice_for_which_there_is_no_time_is_the_time_limit(monkeypatch):
    """The search says so, not that the tolerance was out of reach."""
    checked = divergence._checked
    monkeypatch.setattr(divergence, "_checked", lambda *asked: (*checked(*asked)[:2], 1.0))
    found = optdp.solve_additive(optdp.KL(0.7))
    assert found.gap > 1e-3 and found.status is optdp.Status.TIME_LIMIT


@settings(max_examples=60, deadline=None)
@given(
    falls=st.lists(st.integers(0, 5), min_size=1, max_size=9), n=st.integers(2, 6), bins=st.booleans(), tail=st.booleans(),
    discrete=st.booleans(),
)  # fmt: skip
def test_of_noise_that_falls_the_longest_shift_decides(falls, n, bins, tail, discrete):
    weights = [1 + v for v in np.cumsum(falls)[::-1].tolist()]
    weights = [16 * w for w in weights]
    domain, width = (optdp.Integers(), float(n)) if discrete else (optdp.Line(), 1.0)
    ends = tuple(16 - r % 2 - (r > n // 2) for r in range(n)) if tail else ()  # sums of what falls by 1/4 each period
    ends = tuple(sorted(ends, reverse=True))
    noise = AdditiveMechanism(
        domain, width, n, tuple(weights), 0, ends, 2**60 if tail else 0, bins=bins and not discrete
    )
    assert noise.deciding(n) == [n]
    for ratio in (Fraction(1), Fraction(9, 8), Fraction(2), Fraction(7)):
        every = [noise.pair(k).hockey_stick(ratio) for k in range(1, n + 1)]
        assert every == sorted(every) and noise.exact_delta(ratio) == every[-1]


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_the_bound_on_a_mesh_is_that_of_a_lattice_with_the_same_multipliers(data):
    """Written out shift by shift, from the definition, in fractions: the same or a little above what the certificate proves."""
    n, nodes = 6, (0, 1, 2, 4, 8)
    full = [-8, -4, -2, -1, 0, 1, 2, 4, 8]
    tests = []
    for _ in range(data.draw(st.integers(1, 4))):
        width = data.draw(st.integers(1, 3))
        centre = data.draw(st.integers(width - 1, n + 1 - width))
        ends = sorted(data.draw(st.sets(st.integers(0, 8), min_size=1, max_size=4)))
        tests.append(
            Test(
                centre,
                width,
                tuple(ends),
                data.draw(st.sampled_from([0.0, 0.5, 2.0])),
                data.draw(st.floats(0, 0.2) | st.floats(1, 3)),
            )
        )
    power = data.draw(st.sampled_from([1.0, 0.5]))
    problem = optdp.Problem(optdp.GDP(2.0), optdp.Line(), optdp.Power(power), optdp.Additive())

    def at_nodes(test, x):
        inside = [sum(e <= j for e in test.ends) % 2 for j in range(9)]
        return np.interp(x, full, inside)

    bracket = []
    for a in range(40):
        value = (a / n) ** power
        for t in tests:
            for x in (a, -a):
                kernel = [(t.width - abs(u), t.centre + u) for u in range(1 - t.width, t.width)]
                shifted = sum(w * at_nodes(t, x - s) for w, s in kernel) / t.width**2
                value += t.weight * (at_nodes(t, x) - math.exp(t.eps) * shifted) / 2
        bracket.append(value)
    plainly = min(bracket) - sum(t.weight * float(problem.privacy.delta_at(t.eps)) for t in tests)
    proven = float(GradedCertificate(n, nodes, tuple(tests)).exact_bound(problem))
    assert proven == pytest.approx(plainly, abs=1e-12)


def test_a_mesh_is_looked_at_as_far_as_its_functions_are_moved():
    """A function that is 1 from the outermost node on is still 0 there one sensitivity back: the least value is further out."""
    line = optdp.Problem(optdp.GDP(2.0), optdp.Line(), "abs", optdp.Additive())
    nodes, double, weight = (0, 1, 2, 4, 8), optdp.log(2), Fraction(7)
    far = GradedCertificate(8, nodes, (Test(8, 1, (8,), double, float(weight)),))
    delta = Fraction(line.privacy.delta_at(double))
    assert far.exact_bound(line) == Fraction(16, 8) + (weight - 2 * weight) / 2 - weight * delta
    peak = GradedCertificate(8, nodes, (Test(0, 1, (4, 5), double, 1 / 3),))  # not moved: 1 at 0 alone
    assert peak.exact_bound(line) == Fraction(1 / 3) * (1 - 2 - delta)


@given(st.lists(st.integers(-20, 20), min_size=9, max_size=9), st.integers(1, 3), st.integers(0, 6))
def test_what_is_compared_on_a_mesh_is_rounded_to_its_own_side(values, width, centre):
    """Functions downwards, their averages over shifts upwards: by less than 1 for the line, and for its mean."""
    made, nodes = GradedCertificate(6, (0, 1, 2, 4, 8), ()), [-8, -4, -2, -1, 0, 1, 2, 4, 8]

    def line(x):
        x = min(max(x, -8), 8)
        k = max(i for i in range(8) if nodes[i] <= x)
        low, high = nodes[k], nodes[k + 1]
        return Fraction(values[k] * (high - x) + values[k + 1] * (x - low), high - low)

    own = made._between(np.array(values, dtype=object), -15, 15)
    assert own.tolist() == [math.floor(line(x)) for x in range(-15, 16)]
    kernel = [(width - abs(u), centre + u) for u in range(1 - width, width)]
    for x, found in enumerate(made._averaged(np.array(values, dtype=object), centre, width, 15), -15):
        assert 0 <= found - sum(w * line(x - s) for w, s in kernel) / width**2 < 2


def test_the_certificate_on_a_mesh_refuses_what_it_cannot_prove():
    test = Test(6, 1, (4,), 0.5, 0.1)
    line = optdp.Problem(optdp.GDP(2.0), optdp.Line(), "abs", optdp.Additive())
    whole = optdp.Problem(optdp.GDP(2.0), optdp.Integers(), "abs", optdp.Additive())
    assert GradedCertificate(6, (0, 1, 8), (test,)).bound(line).value == 0.0
    for certificate, problem in (
        (GradedCertificate(6, (0, 1, 8), (test,)), whole),
        (GradedCertificate(6, (1, 8), (Test(6, 1, (2,), 0.5, 0.1),)), line),
        (GradedCertificate(6, (0, 8, 1), (test,)), line),
        (
            GradedCertificate(6, (0, 1, 8), (Test(6, 1, (-5, -4, 0, 3), 0.5, 0.1),)),
            line,
        ),  # slices that meet: 2 at some nodes
        (GradedCertificate(6, (0, 1, 8), (Test(6, 2, (4,), 0.5, 0.1),)), line),  # a shift beyond the sensitivity
        (GradedCertificate(6, (0, 1, 8), (Test(6, 1, (4, 3), 0.5, 0.1),)), line),
        (GradedCertificate(6, (0, 1, 8), (Test(6, 1, (4,), 0.5, -0.1),)), line),
    ):
        with pytest.raises(ValueError, match="proves nothing here"):
            certificate.bound(problem)


def test_noise_satisfies_what_it_keeps():
    pure = optdp.solve_additive(1.0, 0.0, n=6).mechanism
    for notion, least in ((optdp.GDP, pure.mu()), (optdp.KL, pure.kl()), (lambda r: optdp.RDP(4, r), pure.renyi(4))):
        assert pure.satisfies(notion(least)) is True
        assert pure.satisfies(notion(least * (1 - 1e-6))) is False
    approx = optdp.solve_additive(1.0, 0.1, n=4).mechanism
    assert approx.satisfies(optdp.GDP(5.0)) is False and approx.kl() == approx.mu() == approx.renyi(2) == math.inf
    pairs = [(eps, approx.delta(eps)) for eps in (0.0, 0.5, 1.0, 3.0)]
    assert approx.satisfies(optdp.Profile(pairs)) is True
    assert approx.satisfies(optdp.Profile([(e, d * (1 - 1e-9)) for e, d in pairs])) is False
    assert approx.satisfies(optdp.Profile(pairs, 0.3)) is True  # nearer neighbours, between lattice points


# --- designs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["abs", "squared"])
@pytest.mark.parametrize("mu", [0.25, 0.5, 1.0, 2.0])
def test_the_value_is_never_above_the_gaussian(mu, loss):
    """But for the lattice, a share of 2^-90, and the rounding of values up to floats."""
    solution = optdp.solve_additive(optdp.GDP(mu), loss=loss, rtol=1e-2)
    gauss = mu**-2 if loss == "squared" else math.sqrt(2 / math.pi) / mu
    assert solution.gap <= 1e-2 and solution.verify(), str(solution.verify())
    assert solution.lower_bound <= gauss and solution.value <= gauss * (1 + 4e-16)
    again = optdp.Solution.from_dict(solution.to_dict())
    assert again.verify() and again.mechanism == solution.mechanism


@pytest.mark.parametrize(("mu", "loss", "n"), [(0.5, "squared", 4), (1.0, "abs", 8), (2.0, "squared", 16)])
def test_gaussian_dp(mu, loss, n):
    """The bracket holds the optimum; privacy at random eps and shifts by another route."""
    solution = optdp.solve_additive(optdp.GDP(mu), loss=loss, n=n)
    gauss = mu**-2 if loss == "squared" else math.sqrt(2 / math.pi) / mu
    assert solution.gap <= 1e-2 and solution.verify(), str(solution.verify())
    assert solution.lower_bound <= gauss and solution.value <= gauss * (1 + 1e-2)
    again = optdp.Solution.from_dict(solution.to_dict())
    assert again.verify() and again.mechanism == solution.mechanism
    noise, rng = solution.mechanism, np.random.default_rng(0)
    for eps, shift in zip(rng.uniform(0, 3 * mu, 40), rng.uniform(0, 1, 40), strict=True):
        ratio = Fraction(math.exp(eps)) * (1 - Fraction(1, 2**50))
        assert (
            noise.hockey_stick(Fraction(float(shift)), max(ratio, Fraction(1)))
            <= optdp.GDP(mu).delta_at(float(eps)) + 2**-40
        )


@given(mu=st.floats(0.05, 8), loss=st.sampled_from(["abs", "squared"]), width=st.sampled_from([1.0, 0.3, 7.0]))
@settings(max_examples=5, deadline=None)
def test_half_lines_prove_no_more_than_is_attained(mu, loss, width):
    """Below every noise that keeps the notion, falling in mu, and for small mu next to the Gaussian."""
    line = optdp.Problem(optdp.GDP(mu, width), optdp.Line(), loss, optdp.Additive())
    bound = HalfLinesCertificate().bound(line).value
    q = 1 if loss == "abs" else 2
    gauss = (width / mu) ** q * (math.sqrt(2 / math.pi) if q == 1 else 1.0)
    assert 0 < bound <= gauss and (mu > 1 or bound >= gauss * (1 - (mu**2 / 20 if q == 1 else 1.1e-8) - 1e-15))
    assert HalfLinesCertificate().bound(dataclasses.replace(line, privacy=optdp.GDP(0.9 * mu, width))).value >= bound
    found = optdp.solve_additive(optdp.GDP(mu, width), loss=loss, n=max(1, math.ceil(2 * mu)), time_limit=5)
    assert bound <= found.lower_bound <= found.value and found.verify()


@pytest.mark.parametrize("mu", [0.3, 1.5, 8.0])
@pytest.mark.parametrize("limit", [0.5, 2.0, 2.2, 0.1])
def test_where_thresholds_are_multiples_of_half_the_sensitivity_the_gaussian_is_optimal(mu, limit):
    """P(|X| > t) >= 2 Q(m mu/2) for the least m >= 2t; such noise is what comes back, with a proof."""
    problem = optdp.Problem(optdp.GDP(mu, 2.0), optdp.Line(), optdp.Threshold(2 * limit), optdp.Additive())
    bound = HalfLinesCertificate().bound(problem).value
    assert bound == pytest.approx(2 * ndtr(-math.ceil(2 * limit) * mu / 2), rel=1e-10) and bound > 0
    if limit in (0.5, 2.0):
        found = optdp.solve(problem)
        assert found.gap < 1e-12 and found.verify() and found.mechanism.guarantee() == problem.privacy


@pytest.mark.parametrize("loss", ["abs", "squared", optdp.Huber(0.5), optdp.Threshold(2.0), optdp.Power(1.5)], ids=str)
def test_half_lines_on_the_integers_are_what_the_rounded_gaussian_attains(loss):
    for mu in (0.4, 2.0, 8.0):
        whole = optdp.Problem(optdp.GDP(mu), optdp.Integers(), loss, optdp.Additive())
        k = np.arange(1, 400)
        steps = np.diff(whole.objective.loss(np.arange(400.0)))
        assert HalfLinesCertificate().bound(whole).value == pytest.approx(steps @ (2 * ndtr((0.5 - k) * mu)), rel=1e-9)
        wide = HalfLinesCertificate().bound(dataclasses.replace(whole, privacy=optdp.GDP(mu, 5.0))).value
        assert wide <= optdp.solve_additive(optdp.GDP(mu, 5.0), loss=loss, discrete=True).value


@pytest.mark.parametrize("mu", [0.5, 2.0, 4.0, 6.0, 9.0, 20.0])
def test_the_share_of_the_variance_is_no_more_than_half_lines_prove(mu):
    """4 times the integral over (0, 1/2) of the least F(x, a), 0 <= a <= mu/2, as in the module; and the series itself."""
    m, j = np.arange(1, 60), np.arange(math.ceil(80 / mu) + 1.0)
    share = float(variance_share(mu))
    assert share == pytest.approx(1 - 4 * np.exp(-2 * (math.pi * m / mu) ** 2).sum(), rel=1e-13)
    x = ((np.arange(200) + 0.5) / 400)[:, None, None]
    a = (np.linspace(0, mu / 2, 61))[None, :, None]
    every = ((j + x) * ndtr(-(j * mu + a)) + (j + 1 - x) * ndtr(-((j + 1) * mu - a))).sum(axis=2)
    least = 4 * every.min(axis=1).mean() / 2
    assert share / mu**2 <= least * (1 + 1e-4)  # the grid's error


def test_tails_of_a_gaussian_are_computed_once(monkeypatch):
    """For a proof that is looked at again, and for the levels of the curves of all mu."""
    line = optdp.Problem(optdp.GDP(0.71), optdp.Line(), "abs", optdp.Additive())
    first = HalfLinesCertificate().bound(line)
    monkeypatch.setattr(half_lines, "gauss_tail", None)
    assert HalfLinesCertificate().bound(line) == first
    curves = [optdp.GDP(mu)._vertices for mu in (0.71, 1.3)]
    assert curves[0][0] is curves[1][0] and (curves[0][1] <= curves[1][1]).all()


@pytest.mark.parametrize("mu", [1e-5, 1e-3])
def test_half_lines_at_a_small_mu_are_next_to_the_gaussian(mu):
    """Also where not all terms are added: those at which the loss jumps are, and for |x| there is a closed form."""
    for width, discrete in ((7.0, False), (7.0, True)):
        line = optdp.Problem(
            optdp.GDP(mu, width), optdp.Integers() if discrete else optdp.Line(), "abs", optdp.Additive()
        )
        gauss = math.sqrt(2 / math.pi) * width / mu
        assert gauss * (1 - mu**2 / 8 - 1e-14) <= HalfLinesCertificate().bound(line).value <= gauss
        some = dataclasses.replace(line, objective=optdp.WorstCase(optdp.Power(1.5)))
        moment = (width / mu) ** 1.5 * 2**0.75 * math.gamma(1.25) / math.sqrt(math.pi)
        assert 0.98 * moment <= HalfLinesCertificate().bound(some).value <= moment
        steps = (300_001, 700_000)
        loss = optdp.Pieces((0, *steps), ((0,), (1,), (3,)))
        found = HalfLinesCertificate().bound(dataclasses.replace(line, objective=optdp.WorstCase(loss))).value
        shifts = [math.ceil((2 * k - discrete) / width) for k in steps]
        assert found == pytest.approx(
            2 * ndtr(-shifts[0] * mu / 2) + 4 * ndtr(-shifts[1] * mu / 2), rel=1e-9, abs=1e-300
        )


def test_half_lines_are_for_gaussian_dp():
    own = HalfLinesCertificate()
    line = optdp.Problem(optdp.GDP(1.0), optdp.Line(), "squared", optdp.Additive())
    assert optdp.solve(line).certificate == own == type(own).from_dict(own.to_dict())
    whole = dataclasses.replace(line, domain=optdp.Integers())
    assert own.bound(line).value <= own.bound(whole).value <= optdp.solve(whole).value
    for other in (optdp.KL(0.5), optdp.ApproxDP(1.0, 0.1), optdp.Profile([(1.0, 0.1)]), optdp.RDP(2, 1.0)):
        with pytest.raises(Refusal, match="Gaussian DP"):
            own.bound(dataclasses.replace(line, privacy=other))
    jump = optdp.Pieces((0, "1/2"), ((0,), (1,)))  # 1 where the distance is at least 1/2
    assert own.bound(dataclasses.replace(line, objective=optdp.WorstCase(jump))).value == pytest.approx(2 * ndtr(-0.5))
    with pytest.raises(Refusal, match="power"):
        own.bound(dataclasses.replace(line, objective=optdp.WorstCase(optdp.CustomLoss(np.square, reach=9.0))))
    with pytest.raises(Refusal, match="privacy"):
        own.bound(optdp.Problem(optdp.LDP(1.0), optdp.Interval(0, 1), "squared"))


@pytest.mark.parametrize(
    ("loss", "gauss"), [("squared", 1 / 36), pytest.param(optdp.Huber(0.5), 1 / 72, marks=pytest.mark.soak)], ids=str
)
def test_a_mu_beyond_five(loss, gauss):
    """The Gaussian costs ten times as much; rows that the solver cannot hold hid the sets that broke the curve."""
    found = optdp.solve_additive(optdp.GDP(6.0), loss=loss, rtol=0.02)
    assert found.verify() and found.gap < 0.02 and found.value < 0.1 * gauss


def test_the_gaussian_is_far_from_best_for_large_mu():
    """mu = 3: at least 10 % of the variance and 35 % of E|X| are to be gained, both proven."""
    squared = optdp.solve_additive(optdp.GDP(3.0), loss="squared", rtol=2e-2)
    absolute = optdp.solve_additive(optdp.GDP(3.0), loss="abs", rtol=0.1)
    assert squared.value < 0.9 / 9 and absolute.value < 0.65 * math.sqrt(2 / math.pi) / 3


def test_a_gdp_bound_is_for_its_mu():
    easy, hard = (optdp.solve_additive(optdp.GDP(mu), loss="squared", rtol=0.05) for mu in (1.2, 1.0))
    assert easy.certificate.bound(hard.problem).value <= hard.value
    assert hard.certificate.bound(easy.problem).value <= easy.value
    assert easy.mechanism.satisfies(optdp.GDP(1.0)) is False and hard.mechanism.satisfies(optdp.GDP(1.2)) is True


def test_profiles():
    """One pair is today's problem; several lie between the largest single optimum and a noise that keeps them all."""
    one = optdp.solve_additive(optdp.Profile([(1.0, 0.1)]), rtol=1e-2)
    same = optdp.solve_additive(1.0, 0.1, rtol=1e-2)
    assert (one.value, one.lower_bound) == (same.value, same.lower_bound) and one.verify()
    pairs = [(0.5, 0.1), (1.0, 0.05), (2.0, 0.001)]
    several = optdp.solve_additive(optdp.Profile(pairs), rtol=1e-2)
    assert several.gap <= 1e-2 and several.verify()
    assert all(optdp.solve_additive(e, d, rtol=1e-2).lower_bound <= several.value for e, d in pairs)
    assert several.lower_bound <= optdp.solve_additive(0.5, 0.001, rtol=1e-2).value
    pure = optdp.solve_additive(optdp.Profile([(0.5, 0.1), (2.0, 0.0)]), loss="squared", rtol=1e-2)
    assert pure.verify() and pure.mechanism.satisfies(optdp.ApproxDP(2.0))
    # HiGHS ends in an error here from its last basis.
    pairs = [(0.06783636764439045, 0.01714223920168487), (0.1356727352887809, 0.0057140797338949565),
             (0.2713454705775618, 0.0005714079733894956)]  # fmt: skip
    assert optdp.solve_additive(optdp.Profile(pairs, 3.0), loss=optdp.Power(4), discrete=True).gap < 1e-6


@pytest.mark.parametrize(
    ("pairs", "loss"),
    [  # before: gaps of 1, 0.4 and 0.003 after a minute
        ([(0.248, 5.09e-7), (0.106, 4.55e-5)], optdp.Threshold(0.662)),
        pytest.param([(0.325, 1.4e-9), (0.184, 5.8e-8)], optdp.Power(0.367), marks=pytest.mark.soak),
        pytest.param([(0.153, 1.08e-8), (0.0418, 1.07e-7)], optdp.Quantile(0.95), marks=pytest.mark.soak),
    ],
)
def test_where_one_pair_decides(pairs, loss):
    profile = optdp.Profile(pairs)
    found = optdp.solve_additive(profile, loss=loss)
    least = optdp.solve_additive(*min(pairs), loss)
    assert found.gap <= 1e-3 and found.verify() and profile.implied_by(found.mechanism.guarantee()) is True
    assert found.mechanism.satisfies(profile) is True and profile.adjective in found.problem.statement()
    assert found.value >= least.lower_bound and found.lower_bound >= least.lower_bound
    assert optdp.Solution.from_dict(found.to_dict()).verify()


@pytest.mark.parametrize("discrete", [False, pytest.param(True, marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("pairs", "loss", "n"),
    [
        ([(0.6, 0.0006), (0.45, 0.05)], optdp.Threshold(2.56), 4),
        pytest.param(
            [(1.5, 0.01), (0.7, 0.04), (0.0, 0.2)],
            optdp.Pieces((0, "5/2"), ((0, 1), ("5/2",))),
            3,
            marks=pytest.mark.soak,
        ),
        ([(3.0, 1e-4), (1.0, 0.02)], optdp.Pieces((0, 1, 2), ((0,), (-1, 1), (1,))), 5),
    ],
)
def test_all_rows_at_once_agree_with_cuts(pairs, loss, n, discrete, monkeypatch):
    how = {"discrete": True} if discrete else {"n": n}
    profile = optdp.Profile(pairs, 4.0 if discrete else 1.0)
    whole = optdp.solve_additive(profile, loss=loss, **how)
    monkeypatch.setattr(curve_design, "MOST_ROWS", 0)
    cuts = optdp.solve_additive(profile, loss=loss, time_limit=1.5, **how)
    assert "at once" in whole.program.solver and "at once" not in cuts.program.solver
    for one, other in ((whole, cuts), (cuts, whole)):
        assert one.verify() and one.lower_bound <= other.value * (1 + 1e-12)
    assert whole.gap <= cuts.gap + 1e-4


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(0.05, 1.0), min_size=1, max_size=9),
    st.floats(0.1, 2.0),
    st.floats(1e-6, 0.3),
    st.integers(1, 3),
    st.booleans(),
)
def test_noise_for_several_pairs_keeps_each(p, eps, delta, n, bins):
    """Also where its masses were private for none of them."""
    pairs = [(eps, delta), (eps / 2, min(3 * delta, 0.9)), (2 * eps, delta / 10)]
    noise = private_finite(optdp.Profile(pairs), optdp.Line(), n, np.array(p), 0.0 if bins else 0.1, bins)
    for e, d in pairs:
        assert noise.exact_delta(Fraction(enclosures.exp_below(e))) <= Fraction(d)
    assert noise.satisfies(optdp.Profile(pairs)) is True


def test_integers_and_sensitivities():
    whole = optdp.solve_additive(optdp.GDP(1.0, 3.0), loss="squared", discrete=True)
    assert whole.gap <= 1e-3 and whole.verify()
    outputs = whole.mechanism.randomize(np.arange(20), rng=1)
    assert (outputs == np.round(outputs)).all()


def test_kl():
    """The Gaussian of variance v spends 1/(2v): the optimum is below it, with a proof from convexity alone."""
    solution = optdp.solve_additive(optdp.KL(0.5), loss="squared", rtol=5e-2)
    assert solution.verify() and solution.lower_bound <= solution.value <= 1.05
    assert optdp.Solution.from_dict(solution.to_dict()).verify()
    assert (
        solution.certificate.bound(optdp.Problem(optdp.KL(0.6), optdp.Line(), "squared", optdp.Additive())).value
        < solution.value
    )
    assert solution.mechanism.satisfies(optdp.KL(0.49)) is False


def test_releases():
    from optdp.mechanisms.accounting import composed_delta, gaussian_budget

    one = optdp.solve_additive(1.0, 1e-6, "squared", releases=10, accounting="gaussian", rtol=1e-2)
    mu = gaussian_budget(1.0, 1e-6, 10)
    assert one.problem.privacy == optdp.GDP(mu) and one.verify()
    assert optdp.ApproxDP(1.0, 1e-6).implied_by(optdp.GDP(mu * math.sqrt(10))) is True
    for delta in (1e-71, 1e-300):  # at eps = 0 it is erf(mu/sqrt 8); two tails of 57 digits have all of them in common
        assert gaussian_budget(0.0, delta) == pytest.approx(delta * math.sqrt(2 * math.pi), rel=1e-9, abs=0)
    assert composed_delta(one.mechanism, 1.0, 10) <= 1e-6
    assert composed_delta(optdp.solve_additive(0.1, 0.0, n=2).mechanism, 1.0, 10) <= 2e-6  # basic composition
    for bad in ({"releases": 0}, {"releases": 2, "accounting": "none"}):
        with pytest.raises(ValueError, match=r"releases|accounting"):
            optdp.solve_additive(1.0, 1e-6, **bad)
    with pytest.raises(ValueError, match="accounting"):
        optdp.solve_additive(1.0, 0.0, releases=2, accounting="gaussian")
    with pytest.raises(TypeError, match="sensitivity"):
        optdp.solve_additive(optdp.GDP(1.0), sensitivity=2.0)


@pytest.mark.parametrize(
    ("notion", "loss", "n"),
    [(optdp.KL(0.5), "squared", 5), (optdp.KL(1.0), "abs", 4), (optdp.RDP(2, 1.0), "abs", 4), (optdp.RDP(4, 0.5), "squared", 3)],
)  # fmt: skip
def test_newton_agrees_with_cones(notion, loss, n):
    """The same program on the same lattice by cvxpy: two solvers, two ways of writing the divergence, one least value."""
    from optdp.design.additive.divergence import Task

    task = Task(optdp.Problem(notion, optdp.Line(), optdp.WorstCase(loss), optdp.Additive()))
    size = math.ceil(n * task.radius) + n
    own, plain = task.solve(n, size, math.inf, 0.0), task.plain(n, size, math.exp(-task.steep))
    assert plain is not None and own.value == pytest.approx(plain[2], rel=1e-4)
    # The multipliers add up to what the bound is worth: level - sum is the value, by homogeneity.
    assert own.level - own.multipliers.sum() == pytest.approx(own.value, rel=1e-6)


@pytest.mark.parametrize("loss", ["abs", pytest.param("squared", marks=pytest.mark.soak)])
@pytest.mark.parametrize(
    ("notions", "rtol"),
    [([optdp.KL(0.5 / v) for v in (0.25, 1.0, 4.0)], 5e-3),
     pytest.param([optdp.RDP(2, 1 / v) for v in (0.25, 1.0, 4.0)], 5e-3, marks=pytest.mark.soak),
     ([optdp.RDP(16, 8 / v) for v in (2.0, 4.0)], 5e-3),
     pytest.param([optdp.RDP(64, 32 / v) for v in (5.0, 16.0)], 2e-2, marks=pytest.mark.soak)],
)  # fmt: skip
def test_divergences_that_gaussians_spend(notions, rtol, loss):
    """The optimum is below the Gaussian's loss and grows with its variance; exponents (alpha - 1) bound up to 400 and more."""
    found = [optdp.solve_additive(notion, loss=loss, rtol=rtol) for notion in notions]
    assert all(s.gap <= rtol and s.verify() for s in found)
    assert all(a.value < b.lower_bound for a, b in pairwise(found))
    for s in found:
        privacy = s.problem.privacy
        variance = float(getattr(privacy, "alpha", 1)) / (2 * float(privacy.bound))
        gauss = variance if loss == "squared" else math.sqrt(2 * variance / math.pi)
        assert s.lower_bound < gauss and s.value < gauss * (1 + rtol)
        assert optdp.Solution.from_dict(s.to_dict()).verify()


@pytest.mark.parametrize(
    ("alpha", "bound"),
    [
        (8, 1.0),
        (32, 1.0),
        (64, 0.5),
        pytest.param(20, 0.1, marks=pytest.mark.soak),
        pytest.param(64, 0.1, marks=pytest.mark.soak),
        (10, 0.3),
    ],
)
def test_renyi_noise_of_high_orders_closes(alpha, bound):
    """Proofs follow finer lattices: brackets were up to a tenth wide, wider on finer lattices, or there was none."""
    found = optdp.solve_additive(optdp.RDP(alpha, bound), loss="squared")
    assert found.gap <= 1e-3 and found.verify()


@pytest.mark.parametrize(
    ("alpha", "bound"), [(1.01, 0.1), (1.1, 0.05), (1.5, 0.02), pytest.param(1.001, 1.0, marks=pytest.mark.soak)]
)
def test_renyi_noise_of_orders_near_one_closes(alpha, bound):
    """These were refused: logarithms of moments are within (alpha - 1) bound of 0 there."""
    near, last = optdp.RDP(alpha, bound), None
    found = optdp.solve_additive(near, loss="squared")
    assert found.gap <= 1e-3 and found.verify()
    # Divergences grow with their order, that of order 1 being the Kullback-Leibler divergence.
    for privacy in (optdp.KL(bound), near, optdp.RDP(2.0, bound)):
        made = found if privacy is near else optdp.solve_additive(privacy, loss="squared")
        assert last is None or made.value >= last.lower_bound
        last = made


@pytest.mark.parametrize("bound", [301.0, 2000.0, 1e4, 1e6])
@pytest.mark.parametrize("discrete", [False, True])
def test_bounds_that_leave_hardly_any_noise_are_refused_in_a_sentence(bound, discrete):
    """Where KL was large there was an OverflowError, or "math domain error"."""
    with pytest.raises(ValueError, match="the bound of KL must be at most 300: there is hardly any noise then"):
        optdp.solve_additive(optdp.KL(bound), discrete=discrete)


def test_what_the_peak_proves_holds_where_a_lattice_proves_nothing():
    """This was refused after 40 s: the lattice had a value and no bound, the peak's bracket beside it was not looked at."""
    found = optdp.solve_additive(optdp.RDP(32.0, 12.0), loss="squared", time_limit=1.0)
    assert found.gap <= 0.05 and found.verify()


def test_moments_that_are_nothing_beside_their_limit_have_finite_slacks():
    """Their logarithms were minus infinity, times multipliers of 0: numpy warned, and a start was lost."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = optdp.solve_additive(optdp.RDP(200.0, 6.0, 3), loss=optdp.Threshold(5.0), discrete=True)
    assert found.gap <= 1e-4 and found.verify()


def test_divergences_that_are_not_used_do_not_bend_tails():
    """Multipliers of 0, times what is infinite far beyond the root: numpy warned, and the root was looked for below that."""
    loss = optdp.Threshold(5.0)
    task = divergence.Task(optdp.Problem(optdp.RDP(200.0, 20.0), optdp.Line(), loss, optdp.Additive()))
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = [task.fall(np.array([v, 1e-9]), 0.5, 1.0, np.array([100.0, 1.0])) for v in (0.0, 1e-300)]
        alone = task.fall(np.array([1e-9]), 0.5, 1.0, np.array([1.0]))
    assert found[0] == alone > found[1]


def test_a_polished_reference_costs_the_same_everywhere():
    """Of shifts 2 and 4 alone even and odd points are apart, and each part has a cost of its own; a ratio that is given stays."""
    from optdp.solvers.noise import Program

    size, n = 24, 4
    weight = np.where(np.arange(size) == 0, 1.0, 2.0)
    cost = weight * 0.3 * (np.arange(size) / n) ** 2
    start = -0.8 * np.arange(size) / n
    for shifts, parts in ((np.array([1, 4]), 1), (np.array([2, 4]), 2)):
        program = Program(cost, weight, n, 0.5, 3.0, 1.0, shifts, cut=True)
        lam = np.array([0.05, 1.0])
        free = program.polished(start, lam)
        tied = free.copy()
        tied[-1] = tied[-1 - n] - 0.5 * (free[-1 - n] - free[-1])
        tied = program.polished(tied, lam, fixed=True)
        assert tied[-1 - n] - tied[-1] == pytest.approx(0.5 * (free[-1 - n] - free[-1]), rel=1e-12)
        for u, some in ((free, slice(None)), (tied, slice(-1))):
            brackets = program.brackets(u, lam)[some]
            for part in range(parts):
                same = brackets[part::parts]
                assert np.ptp(same) <= 1e-8 * abs(same[0])
        assert program.brackets(tied, lam)[-1] > program.brackets(tied, lam)[-1 - 2 * parts]


def test_steep_divergences():
    """Where the noise is a narrow peak; and what is refused."""
    steep = optdp.solve_additive(optdp.RDP(32, 8.0), loss="squared", rtol=2e-2)
    pure = optdp.solve_additive(8.0, 0.0, "squared").value
    assert steep.gap <= 2e-2 and steep.verify() and steep.lower_bound < pure  # 8-DP implies the notion
    with pytest.raises(ValueError, match="at most 300"):
        optdp.solve_additive(optdp.RDP(2, 301.0))


def test_a_divergence_bound_is_for_its_notion():
    """A certificate proves something for the notion that it is handed, never more than its optimum."""
    made = {
        p: optdp.solve_additive(p, rtol=0.03)
        for p in (optdp.KL(0.5), optdp.KL(0.7), optdp.RDP(3, 0.9), optdp.RDP(3, 1.2))
    }
    for one in made.values():
        for other in made.values():
            try:
                proven = one.certificate.bound(other.problem).value
            except ValueError:
                continue
            assert proven <= other.value


def test_curves():
    """Pairs that are kept imply every curve of the shape through the points; the bracket holds that of the true curve."""

    def gauss(eps):
        return float(ndtr(0.5 - eps) - math.exp(eps) * ndtr(-0.5 - eps))

    rng = np.random.default_rng(5)
    for shape in ("convex", "falling"):
        curve = optdp.Curve.of(gauss, np.linspace(0, 5, 30), shape=shape)
        assert Privacy.from_dict(curve.to_dict()) == curve and curve.implied_by(curve) is True
        kept = optdp.Profile(curve.pairs)
        for eps in rng.uniform(0, 5, 60):  # what the pairs imply is below the curve everywhere, and above it nowhere
            assert kept.delta_at(float(eps)) <= Fraction(gauss(eps)) + Fraction(1, 10**12)
            assert curve.delta_at(float(eps)) >= Fraction(gauss(eps)) - Fraction(1, 10**12)
        assert optdp.Profile([(1.0, gauss(1.0) * 1.01)]).implied_by(curve) in (True, None)
    convex = optdp.Curve.of(gauss, np.linspace(0, 5, 30))
    solution = optdp.solve_additive(convex, loss="squared", rtol=0.05)
    true = optdp.solve_additive(optdp.GDP(1.0), loss="squared", rtol=5e-3)
    assert solution.verify() and solution.gap <= 0.05, str(solution.verify())
    assert solution.lower_bound <= true.value and true.lower_bound <= solution.value
    assert solution.mechanism.satisfies(optdp.GDP(1.001)) is True
    assert optdp.Solution.from_dict(solution.to_dict()).verify() and "convex in e^eps" in solution.problem.statement()
    for bad, named in (
        (lambda: optdp.Curve([(0, 0.1)]), "points"), (lambda: optdp.Curve([(0, 0.1), (1, 0.2)]), "grow"),
        (lambda: optdp.Curve([(0, 0.3), (1, 0.29), (2, 0.1), (3, 0.01)]), "convex"), (lambda: optdp.Curve.of(3, [1]), "function"),
        (lambda: optdp.Curve([(0, 0.1), (1, 0.01)], "round"), "shape"), (lambda: optdp.Curve([(0, 0.1), (0, 0.01)]), "once"),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError), match=named):
            bad()


@settings(max_examples=30, deadline=None)
@given(
    steps=st.lists(st.floats(0.05, 2), min_size=2, max_size=6),
    weights=st.lists(st.floats(0.001, 1), min_size=3, max_size=3),
    rates=st.lists(st.floats(0.2, 4), min_size=3, max_size=3), at=st.floats(0, 8), first=st.sampled_from([0.0, 0.3, 2.0]),
)  # fmt: skip
def test_what_keeps_a_curve_is_below_every_one_of_its_shape(steps, weights, rates, at, first):
    """For mixtures of powers of e^eps, which are convex and fall in it, by their values at points."""
    total = sum(weights)

    def law(eps):
        return 0.9 * sum(w * math.exp(-r * eps) for w, r in zip(weights, rates, strict=True)) / total

    curve = optdp.Curve.of(law, np.append(first, first + np.cumsum(steps)))
    assert optdp.Profile(curve.pairs).delta_at(at) <= Fraction(law(at)) * (1 + Fraction(1, 10**9))


def test_what_keeps_a_curve_is_below_the_lowest_one_before_and_beyond_its_points():
    first, last = (1.0, 0.1), (2.0, 0.02)
    falling, convex = (optdp.Profile(optdp.Curve([first, last], shape).pairs) for shape in ("falling", "convex"))
    assert all(
        falling.delta_at(eps) <= Fraction(least) for eps, least in ((0.0, 0.1), (0.9, 0.1), (1.0, 0.02), (2.0, 0.0))
    )
    slope = (last[1] - first[1]) / (math.exp(2) - math.exp(1))
    end = math.log(math.exp(2) - last[1] / slope)
    for eps in (0.0, 0.5, 2.05, end * (1 - 1e-9)):
        assert float(convex.delta_at(eps)) <= first[1] + slope * (math.exp(eps) - math.exp(1)) + 1e-15
    assert convex.delta_at(end * (1 + 1e-9)) == 0
    gauss = optdp.GDP(1)
    for shape in ("falling", "convex"):  # between points through which its own curve goes it is above the lowest one
        assert optdp.Curve([(e, gauss.delta_at(e)) for e in (1.0, 2.0)], shape).implied_by(gauss) is None


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6, 7, 8])
@pytest.mark.parametrize("first", [0.0, 0.3])
def test_corners_of_a_convex_curve_are_the_largest_that_no_convex_curve_is_below(count, first):
    """At 60 digits: secants through two points on one side, and the next point's value; before the first point a chord."""
    steps = np.random.default_rng(count).random(count) + 0.1
    curve = optdp.Curve.of(lambda e: 0.5 * math.exp(-2 * e) + 0.1 * math.exp(-e), first + np.cumsum(steps) - steps[0])
    with mpmath.workdps(60):

        def number(x):
            return mpmath.mpf(Fraction(x).numerator) / Fraction(x).denominator

        points, corners = (
            [(mpmath.exp(number(e)), number(d)) for e, d in part] for part in (curve.points, curve.pairs)
        )
        secants = [(u, v, c, (d - c) / (v - u)) for (u, c), (v, d) in pairwise(points)]

        def least(r):
            beside = [c + slope * (r - u) for u, v, c, slope in secants if not u < r < v]
            return max([0, *beside, *(d for u, d in points if u >= r)])

        assert all(d <= least(r) + mpmath.mpf(10) ** -58 for r, d in corners)
        (u, _, c, slope), (r, d) = secants[-1], corners[-1]
        assert d == 0 <= c + slope * (r - u)
        assert corners[0][0] == 1 and (first == 0 or abs(corners[0][1] - least(1)) < 1e-14)
        for (u, c), (v, d) in pairwise(corners[first > 0 :]):
            assert all(abs(c + (d - c) * t - least(u + (v - u) * t)) < 1e-14 for t in (0.1, 0.5, 0.9, 1))


def test_corners_of_a_falling_curve_are_the_next_values():
    points = [("1/2", "3/10"), (1, "1/10"), (2, "1/50")]
    steps = (("1/2", "1/10"), (1, "1/50"), (2, 0))
    expected = tuple((Fraction(e), Fraction(d)) for e, d in steps)
    assert optdp.Curve(points, "falling").pairs == ((0, Fraction(3, 10)), *expected)
    assert optdp.Curve([(0, "3/10"), *points], "falling").pairs == ((0, Fraction(3, 10)), *expected)
    assert optdp.Curve([("1/4", 1), ("1/2", 1), *points[1:]], "falling").pairs == expected


def divergences(noise, ratio, last):
    """sum_i (p_i - ratio p_(i + k))_+ for k = 1..`last` from a line of cells, tails that fall by 1/64 cut off after 9 periods."""
    periods = range(9) if noise.tail else ()
    falls = [t * (1 - noise._b) * noise._b**k for k in periods for t in map(Fraction, noise.tail)]
    half = [Fraction(w) for w in noise.weights] + falls
    line, none = (half[::-1] if noise.bins else half[:0:-1]) + half, [0] * last
    for k in range(1, last + 1):
        pairs = zip([*none[:k], *line], [*line, *none[:k]], strict=True)  # shifts to either side are mirror images
        yield (sum(max(b - ratio * a, 0) for a, b in pairs) + noise.atom) / noise.total


def test_shifts_that_decide_leave_none_out_that_is_worse():
    rows = [(4, 1, 0, 2), (0, 8, 1, 1), (1, 5, 5), (5, 5, 0, 0)]
    for weights, bins, (tail, atom) in product(rows, (False, True), (((), 0), ((), 3), ((1, 2, 1), 0), ((2, 1, 1), 1))):
        noise = AdditiveMechanism(optdp.Line(), 3.0, 3, weights, atom, tail, 2**56 if tail else 0, bins=bins)
        for ratio in (Fraction(1), Fraction(3, 2)):
            found = list(divergences(noise, ratio, noise.n))
            assert float(noise.exact_delta(ratio)) == pytest.approx(float(max(found)), rel=1e-12)
            for k, one in enumerate(found, 1):
                both = noise.hockey_stick(k * noise.step, ratio), noise.pair(k).hockey_stick(ratio)
                assert [float(x) for x in both] == pytest.approx([float(one)] * 2, rel=1e-12)
            if not tail:  # neighbours farther apart than the sensitivity, and between cells
                far = list(divergences(noise, ratio, 2 * len(weights) + 2))
                for reach in (0.5, 4.0, 20.0):
                    worst = max(far[: int(reach)], default=far[0] / 2 + Fraction(noise.atom, noise.total) / 2)
                    assert float(noise.exact_delta(ratio, reach)) == pytest.approx(float(worst), rel=1e-9)


def test_neighbours_at_other_distances_are_told_what_is_theirs():
    line, even = optdp.Line(), AdditiveMechanism(optdp.Line(), 1.0, 2, (1, 1, 1, 1))
    least = even.exact_delta(enclosures.exp_below(1.0))  # 2 of 7 cells; 3 at 1.5, and all beyond 3.5
    for reach, delta in ((1.25, least), (1.5, least), (20.0, Fraction(4, 5))):
        assert even.satisfies(optdp.Profile([(1.0, delta), (2.0, 0.9)], reach)) is not True
    assert even.satisfies(optdp.Profile([(1.0, least), (2.0, 0.9)])) is True
    tailed = AdditiveMechanism(line, 1.0, 2, (9, 6), 0, (5, 3), 2**61)
    one, two = (max(float(mu_between(a, b, p.total) or 0) for a, b in p.powers()) for p in map(tailed.pair, (1, 2)))
    assert one * 1.01 < two <= tailed.mu() <= two * (1 + 1e-12)
    assert tailed.satisfies(optdp.GDP(1.01 * one, 0.75)) is not True  # between one cell and two
    assert tailed.satisfies(optdp.GDP(1.01 * one, 0.5)) is True and tailed.satisfies(optdp.GDP(8, 2.0)) is None


def test_the_largest_ratio_and_the_least_mu_are_on_the_safe_side():
    for bins, tail, atom in product((False, True), ((5, 3), (5, 0)), (0, 1)):
        noise = AdditiveMechanism(optdp.Line(), 1.0, 2, (9, 2, 6), atom, tail, 2**61, bins=bins)
        ratio = noise.exact_ratio
        assert (ratio is None) is bool(atom or not all(tail))
        if ratio is None:
            continue
        half = [Fraction(w) for w in (9, 2, 6)] + [t * Fraction(1, 2 ** (k + 1)) for k in range(4) for t in tail]
        line = (half[::-1] if bins else half[:0:-1]) + half
        assert ratio == max(max(line[max(i - 2, 0) : i + 3]) / w for i, w in enumerate(line[2:-2], 2))
        with ctx.workprec(enclosures.PRECISION):
            needed = [mu_between(a, b, p.total) for p in map(noise.pair, (1, 2)) for a, b in p.powers()]
            assert not any(one > noise.mu() for one in needed if one is not None)


def test_every_corner_needs_its_mu():
    """One that Q lacks needs an infinite one; one of large levels needs some, too."""
    assert optdp.GDP(8).admits(Pair((1, 999, 0), (0, 999, 1), 1000)) is False
    even = Pair((6, 4), (4, 6), 10)  # 2 Phi^-1(0.6) = 0.5067
    assert optdp.GDP(0.51).admits(even) is True and optdp.GDP(0.5).admits(even) is False


def test_the_mu_of_a_power_and_a_level():
    for alpha, beta in ((6, 4), (9, 7), (3, 1), (5, 2), (8, 5)):
        assert float(mu_between(alpha, beta, 10)) == pytest.approx(ndtri(alpha / 10) - ndtri(beta / 10), rel=1e-12)
    assert mu_between(4, 4, 10) is mu_between(0, 3, 10) is mu_between(7, 10, 10) is None  # any mu will do
    assert float(mu_between(4, 0, 10)) == float(mu_between(10, 3, 10)) == math.inf


def test_a_curve_says_its_shape():
    points = [(0, 0.3), (1, 0.1)]
    for shape in ("convex", "falling"):
        assert ("convex in e^eps" in str(optdp.Curve(points, shape))) is (shape == "convex")


def test_neither_guesses_in_floats_nor_wide_balls_admit_a_pair(monkeypatch):
    import scipy.special

    even, notion = Pair((6, 4), (4, 6), 10), optdp.GDP(0.5)
    with monkeypatch.context() as patch:
        patch.setattr(scipy.special, "ndtri", lambda level: ndtri(level) + 0.1)
        assert notion.admits(even) is False
    monkeypatch.setattr("optdp.problem.privacy.mu_between", lambda *_: arb(0.5, 0.1))
    assert notion.admits(even) is None


def test_no_pair_is_admitted_that_needs_e_to_be_larger():
    """The divergence of (3, 1)/4 from (1, 3)/4 is (3 - e)/4: of limits between those at the two ends of e nothing is known."""
    pair = Pair((3, 1), (1, 3), 4)
    least, most = ((3 - end(1.0)) / 4 for end in (enclosures.exp_above, enclosures.exp_below))
    tiny = Fraction(1, 2**250)
    for kind in (lambda delta: optdp.ApproxDP(1.0, delta), lambda delta: optdp.Profile([(0.5, 0.5), (1.0, delta)])):
        assert [kind(d).admits(pair) for d in (least - tiny, least, most)] == [False, None, True]


@pytest.mark.parametrize("divergence", [Fraction(1 / 3), Fraction(0.1), Fraction(2, 3), Fraction(1, 4)])
def test_what_is_told_of_a_divergence_is_not_below_it(divergence):
    """Seventeen digits of a float may be below the float: of 6004799503160661/2^54 the check said 0.33333333333333331."""
    check = optdp.ApproxDP(1.0, divergence).check(divergence)
    told = check.detail.split("is at most ")[1].split()[0]
    first, more = Fraction(told.removesuffix("...")), Fraction(1, 10**17) if told.endswith("...") else 0
    assert check.passed and first <= divergence <= first + more
    assert not optdp.ApproxDP(1.0, divergence - Fraction(1, 10**30)).check(divergence).passed


def test_deltas_are_rounded_up():
    for eps in (0.25, 1.0, 3.0):
        with ctx.workprec(2000):
            e, near, far = arb(eps), arb(eps) / 1.5 - arb(0.75), arb(eps) / 1.5 + arb(0.75)
            gauss = (near / arb(2).sqrt()).erfc() / 2 - e.exp() * (far / arb(2).sqrt()).erfc() / 2
            renyi = (2 * (arb(0.125) - e)).exp() * (arb(2) / 3) ** 2 / 3
            for found, delta in ((optdp.GDP(1.5), gauss), (optdp.RDP(3, 0.125), renyi)):
                assert delta < enclosures.ball(found.delta_at(eps)) < delta * (1 + arb(2) ** -50)


def test_the_corner_of_a_curve_is_rounded_down():
    """What is beyond a curve that may be straight and 0 from log(end) on does not keep it: log(end) lies below its float."""
    end, slope = Fraction(2**28 + 18), Fraction(1, 2**32)
    with ctx.workprec(enclosures.PRECISION):
        heights = [
            enclosures.upper(enclosures.ball(slope) * (enclosures.ball(end) - arb(e).exp())) for e in (16, 17, 18)
        ]
        log = enclosures.ball(end).log()
        above, rounded = Fraction(math.ceil(enclosures.upper(log) * 2**100), 2**100), Fraction(float(log))
    points = [*zip((16, 17, 18), heights, strict=True), (20, 0), (21, 0)]
    assert rounded > above
    far, near = enclosures.exp_below(rounded), enclosures.exp_below(18.0)
    share = heights[-1] / (far - near) * (1 - Fraction(1, 2**60))
    total = math.lcm(far.denominator * share.denominator)
    parts = [int(share * far * total), int(share * total)]
    pair = Pair((parts[0], total - parts[0]), (parts[1], total - parts[1]), total)
    assert optdp.Curve([*points, (above, 0)]).admits(pair) is False
    assert optdp.Curve(points).admits(pair) is not True


@pytest.mark.parametrize(
    ("pairs", "loss", "widest", "seconds"),
    [
        pytest.param(
            [(1.0, 1e-9), (0.0, 1e-3)], optdp.Threshold(0.5), 1e-3, 60, marks=pytest.mark.soak
        ),  # before: out of memory
        ([(2.0, 0.0), (1.15, 1e-4), (0.5, 0.004), (0.0, 0.01)], "abs", 1e-3, 60),  # before: no noise was found
        pytest.param(
            [(2.0, 0.0), (1.15, 1e-4), (0.5, 0.004), (0.0, 0.01)],
            optdp.Threshold(0.662),
            0.2,
            10,
            marks=pytest.mark.soak,
        ),
    ],
)
def test_wide_noise_for_pairs_that_differ_much(pairs, loss, widest, seconds):
    """Total variation decides how far noise reaches, and how it ends what is tiny or 0 at another eps."""
    found = optdp.solve_additive(optdp.Profile(pairs), loss=loss, time_limit=seconds)
    assert found.gap <= widest and found.verify() and found.mechanism.satisfies(optdp.Profile(pairs)) is True


@pytest.mark.parametrize(
    ("privacy", "loss"),
    [
        (optdp.Profile([(0.5, 0.01), (1.0, 0.003)]), optdp.Threshold(0.5)),
        (optdp.Profile([(0.5, 0.01), (1.0, 0.003)]), optdp.Quantile(0.9)),
        (optdp.Curve([(0.0, 0.3), (1.0, 0.1), (2.0, 0.02)]), optdp.Quantile(0.9)),
        (optdp.Profile([(0.5, 0.01), (1.0, 0.0)]), optdp.Pieces((0, 1), ((0, 1), (1,)))),
        (optdp.RDP(1 + 1e-7, 0.5), "abs"),
    ],
)
def test_progress_is_about_the_bracket_that_was_asked_for(privacy, loss):
    """Brackets of other problems on the way (of one pair, of a probability, of the points of a curve) are not told as its own."""
    steps = []
    found = optdp.solve_additive(privacy, loss=loss, rtol=0.02, time_limit=1.5, progress=steps.append)
    assert len(steps) > 1
    for step in steps:
        assert step.value is None or found.lower_bound <= step.value * (1 + 1e-12) < math.inf
        assert step.lower is None or step.lower <= found.value * (1 + 1e-12)


@pytest.mark.soak
def test_a_curve_has_the_bound_of_its_points_on_quantiles():
    """Before, all of the time went to noise that keeps every curve, and the bound was 0."""
    curve = optdp.Curve([(0.5, 0.01), (1.0, 0.003), (2.0, 1e-4)])
    found = optdp.solve_additive(curve, loss=optdp.Quantile(0.9), time_limit=15)
    points = optdp.solve_additive(optdp.Profile(curve.points), loss=optdp.Quantile(0.9))
    assert found.verify() and found.lower_bound >= 0.9 * points.lower_bound


def test_what_hides_everything_keeps_every_profile():
    """Of 0-LDP nothing was known."""
    for profile in (optdp.Profile([(1.0, 0.1)]), optdp.Profile([(0.0, 1e-9), (2.0, 0.0)])):
        assert profile.implied_by(optdp.LDP(0.0)) is True
    assert optdp.Profile([(1.0, 0.1)]).implied_by(optdp.LDP(1.1)) is True
    assert optdp.Profile([(1.0, 0.1)]).implied_by(optdp.LDP(2.0)) is None


def test_quantiles_that_no_program_finds_are_refused_by_the_level():
    """The loss that was named is one that nobody gave."""
    with pytest.raises(ValueError, match=r"^level = 0.95 is not allowed: no noise was found"):
        optdp.solve_additive(optdp.KL(50.0), loss=optdp.Quantile(0.95))


@pytest.mark.parametrize(
    ("privacy", "loss", "widest"),
    [(optdp.RDP(16, 0.01), "squared", 1e-5), (optdp.RDP(64, 0.05), "squared", 1e-4), (optdp.GDP(0.002), "squared", 1e-5)],
    ids=str,
)  # fmt: skip
def test_wide_noise_on_few_integers_has_what_the_line_proves(privacy, loss, widest):
    """Before, gaps of 0.12 and 0.83, and no noise at all: programs on the integers alone have no choice of a mesh."""
    found = optdp.solve_additive(privacy, loss=loss, discrete=True)
    line = optdp.solve_additive(privacy, loss=loss)
    assert found.gap <= widest and found.verify() and found.mechanism.satisfies(privacy) is True
    assert line.lower_bound <= found.value + 1 / 4  # integer noise spread over units is noise of the line
    assert optdp.Solution.from_dict(found.to_dict()).verify()


@pytest.mark.parametrize(
    ("privacy", "loss"),
    [(optdp.KL(1e-4), "abs"), (optdp.KL(1e-4), "squared"), (optdp.KL(1e-4), optdp.Power(0.5)), (optdp.RDP(2, 1e-3), "abs"),
     pytest.param(optdp.RDP(64, 1e-3), "squared", marks=pytest.mark.soak), (optdp.RDP(64, 1e-3), "abs")],
    ids=str,
)  # fmt: skip
def test_faint_divergences(privacy, loss):
    """Nothing was proven where masses a sensitivity apart are nearly equal: their ratios far out were not found."""
    found = optdp.solve_additive(privacy, loss=loss)
    assert found.gap <= 1e-3 and found.verify()
    if loss == "squared" and isinstance(privacy, optdp.KL):  # noise this wide is nearly Gaussian
        assert found.value == pytest.approx(1 / (2 * privacy.bound), rel=1e-3)


@pytest.mark.parametrize("discrete", [False, True])
def test_powers_that_no_float_holds_are_refused_in_words(discrete):
    """It was an OverflowError."""
    with pytest.raises(ValueError, match="too small or too large for floats"):
        optdp.solve_additive(optdp.KL(1e-5), loss=optdp.Power(100), discrete=discrete)


@pytest.mark.soak
def test_powers_that_floats_just_hold_have_the_noise_of_a_known_family():
    """It was an OverflowError, too."""
    found = optdp.solve_additive(optdp.RDP(2, 1e-3), loss=optdp.Power(100))
    assert found.status is optdp.Status.GAP and found.verify() and "too large for floats" in found.program.message


def test_losses_that_hardly_rise_need_a_long_reference():
    """What was proven was 2 % below the program's value, by more on finer lattices: the line's gap was 0.034, and is 0.003."""
    found = optdp.solve_additive(optdp.RDP(1.3073363, 0.02697375), loss=optdp.Power(0.05), n=8)
    assert found.verify() and found.lower_bound <= found.program.objective <= 1.002 * found.lower_bound


def test_noise_too_wide_for_a_lattice_is_the_gaussian():
    """It was refused. The Gaussian has mu^2/2 = bound, and E|Z| = (2/pi)^(1/2)/mu; with a number of points it is refused."""
    found = optdp.solve_additive(optdp.KL(1e-7))
    assert found.value == pytest.approx(math.sqrt(2 / math.pi / 2e-7)) and found.verify()
    assert found.lower_bound == 0 and found.status.name == "GAP" and "is too wide" in found.program.message
    with pytest.raises(ValueError, match="too wide for a lattice; raise the bound"):
        optdp.solve_additive(optdp.KL(1e-7), n=1)


@pytest.mark.parametrize("slope", [10**4, 10**5])
@pytest.mark.parametrize(("privacy", "value"), [(optdp.KL(0.469), 0.79), (optdp.RDP(3, 0.4), None)], ids=str)
def test_steep_kinks_between_lattice_points(privacy, value, slope):
    """On coarse lattices costs were below 0, as all before the kink lose what a chord over it is above the loss: refused."""
    loss = optdp.Pieces([0, "4.8"], [[0, 1], [Fraction(24, 5) * (1 - slope), slope]])
    found = optdp.solve_additive(privacy, loss=loss, rtol=0.02)
    assert found.gap <= 0.02 and found.verify() and found.lower_bound > 0
    assert value is None or found.value == pytest.approx(value, rel=0.02)


def test_peaks_that_no_lattice_shows_are_staircases():
    """These were refused, after all of the time. The staircase for eps = 30 costs about e^-15 sensitivities."""
    line = [optdp.Problem(privacy, optdp.Line(), optdp.WorstCase(loss), optdp.Additive()) for privacy, loss in (
        (optdp.RDP(86.1, 91.7), optdp.Pieces([0, "0.135", "0.737"], [[0, 1], ["0.135"], ["-1.339", 2]])),
        (optdp.RDP(3.5, 178.6, 0.5), optdp.Power(0.05)),
    )]  # fmt: skip
    for problem in line:
        found = optdp.solve(problem, time_limit=1e-3)
        assert isinstance(found.mechanism, LatticeStaircase) and found.verify()
        assert found.lower_bound == 0
        assert (
            0.5 < found.value / float(problem.objective.loss(0.5 * problem.privacy.sensitivity * math.exp(-15.0))) < 2
        )


@settings(max_examples=30, deadline=None)
@given(
    n=st.integers(1, 5), more=st.integers(0, 12), bins=st.booleans(), cut=st.booleans(), alpha=st.sampled_from([None, 3.0]),
    seed=st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_bands_are_those_of_the_whole_matrix(n, more, bins, cut, alpha, seed):
    """The graph's Laplacian, whose quadratic form is the sum of stiff (v_i - v_j)^2 over the pairs."""
    from optdp.solvers.noise import Program

    size, rng = 2 * n + more, np.random.default_rng(seed)
    program = Program(np.ones(size), np.ones(size), n, 0.5, alpha, 1.0, np.arange(1, n + 1), cut=cut, bins=bins)
    stiff, v = rng.random(program.first.size), rng.normal(size=size)
    bands, whole = program.banded(stiff), program.laplacian(stiff)
    assert all(np.allclose(np.diag(whole, -k), bands[k, : size - k]) for k in range(n + 1))
    assert not np.tril(whole, -n - 1).any()
    assert v @ whole @ v == pytest.approx(stiff @ (v[program.first] - v[program.second]) ** 2)


def test_profiles_from_eps_0_on_and_huber():
    """A pair at eps = 0 is the total variation; Huber's loss lies between what it is near 0 and far out."""
    flat = optdp.solve_additive(optdp.Profile([(0.0, 0.3), (1.0, 0.1)]), rtol=1e-2)
    assert flat.gap <= 1e-2 and flat.verify()
    assert (
        optdp.solve_additive(1.0, 0.1, rtol=1e-2).lower_bound
        <= flat.value
        <= optdp.solve_additive(0.0, 0.1).value * 1.01
    )
    pairs = optdp.Profile([(0.5, 0.1), (1.0, 0.05)])
    wide, narrow = (optdp.solve_additive(pairs, loss=optdp.Huber(c), rtol=1e-2) for c in (100.0, 0.001))
    squared, absolute = (optdp.solve_additive(pairs, loss=q, rtol=1e-2) for q in ("squared", "abs"))
    assert all(s.verify() for s in (wide, narrow))
    assert 2 * wide.lower_bound <= squared.value and squared.lower_bound <= 2 * wide.value
    assert narrow.lower_bound <= 0.001 * absolute.value and absolute.lower_bound <= 1000 * narrow.value + 0.001


def test_accounting_of_one_release():
    """The budget of one release through Gaussian DP costs more than the budget itself; a wrong name is refused."""
    plain = optdp.solve_additive(1.0, 1e-3, "squared", rtol=2e-2)
    gauss = optdp.solve_additive(1.0, 1e-3, "squared", rtol=2e-2, accounting="gaussian")
    assert isinstance(gauss.problem.privacy, optdp.GDP) and gauss.value >= plain.lower_bound
    with pytest.raises(ValueError, match="accounting"):
        optdp.solve_additive(1.0, 1e-3, accounting="none")


def test_no_bound_is_0_where_half_lines_prove_more():
    """Also where there was no time for a lattice of its own; a mu of which floats know no inverse is refused in a sentence."""
    short = optdp.solve_additive(optdp.GDP(0.05), loss=optdp.Threshold(0.7), time_limit=0.001)
    assert short.lower_bound > 0.96 and short.verify()
    with pytest.raises(ValueError, match="1e-308-GDP is not allowed"):
        optdp.solve_additive(optdp.GDP(1e-308))


def test_threads_may_share_noise():
    """Each asks for the divergence at a ratio of its own, and gets what it gets alone."""
    interval = sys.getswitchinterval()
    rng = random.Random(0)
    ratios = [Fraction(2718281828, 10**9), Fraction(2), Fraction(3), Fraction(10)]

    def asked(ratio: Fraction) -> list[Fraction]:
        return [noise.hockey_stick(Fraction(k, 20), ratio) for _ in range(10) for k in range(1, 21)]

    noise = AdditiveMechanism(optdp.Line(), 1.0, 20, tuple(rng.randrange(1, 2**60) for _ in range(400)), 0, eps=1.0)
    alone = [asked(ratio) for ratio in ratios]
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(ratios)) as pool:
            assert list(pool.map(asked, ratios)) == alone
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.parametrize("alpha, bound", [(10, 0.1), (5, 0.1), (3, 0.1), (10, 0.3)])
def test_small_bounds_of_high_orders_are_proven(alpha, bound):
    """Beyond the reference ratios must not fall back: no lattice had a proof (and the error came after 90 seconds)."""
    found, squares = (optdp.solve_additive(optdp.RDP(alpha, bound), loss=loss, n=4) for loss in ("abs", "squared"))
    assert found.verify() and found.gap <= 6e-3
    assert squares.verify() and squares.gap <= 0.02
    # The Gaussian that spends as much has the variance alpha/(2 bound), and mean distance sqrt(alpha/(pi bound)).
    assert squares.value <= alpha / (2 * bound) and found.value <= math.sqrt(alpha / (math.pi * bound))


@pytest.mark.parametrize("loss", [0, 0.5, 1, 2], ids=str)
def test_noise_on_integers_for_answers_that_are_to_be_exact(loss):
    """For a loss that is constant far out noise broke the curve by its tail, and none was found."""
    privacy = optdp.GDP(0.46, 2.0)
    found = optdp.solve_additive(privacy, loss=optdp.Threshold(loss), discrete=True)
    assert found.verify() and found.gap < 0.06 and found.mechanism.satisfies(privacy)
    drawn = found.mechanism.randomize(np.zeros(50_000), 1)
    assert np.mean(np.abs(drawn) > loss) == pytest.approx(found.value, abs=0.01)


@pytest.mark.parametrize("privacy", [optdp.KL(3.0), optdp.RDP(2, 1.0)], ids=str)
def test_a_loss_that_noise_hardly_meets_is_that_of_known_noise(privacy):
    """This ended in a division by 0, and then in a refusal."""
    found = optdp.solve_additive(privacy, loss=optdp.Threshold(300), discrete=True)
    assert 0 == found.lower_bound <= found.value < 1e-40 and found.verify()


@pytest.mark.parametrize("rising", [False, True])
@pytest.mark.parametrize(
    "privacy", [optdp.KL(0.3), optdp.GDP(1.2), optdp.RDP(2, 0.5), optdp.Profile(((0.5, 0.1), (0.2, 0.15)))], ids=str
)
def test_all_shifts_count_where_the_tail_is_nearer_than_the_sensitivity(privacy, rising):
    """Shifts of more than twice the weights before the tail were left out, and noise was accepted that hides nothing of them."""
    tail = tuple(range(90, 10, -10))
    noise = AdditiveMechanism(
        optdp.Line(), 1.0, 8, (90 + 10 * (not rising),), 0, tail[::-1] if rising else tail, 2**55, 0.5
    )
    assert noise.admitted(privacy) is False and noise.satisfies(privacy) is False
    assert dataclasses.replace(noise, notion=privacy).guarantee() != privacy
    enough = optdp.GDP(noise.mu())
    assert noise.admitted(enough) and noise.admitted(optdp.KL(noise.kl())) and noise.mu() > 1.2


def test_masses_are_raised_outwards_in_one_go(monkeypatch):
    """Each pass raised one mass after a step: on thousands of points noise of a long tail took half a minute beyond its limit."""
    passes = []

    def counted(values, reach):
        passes.append(reach)
        return largest_around(values, reach)

    monkeypatch.setattr(lattice_design, "largest_around", counted)
    privacy = optdp.ApproxDP(0.001, 0.0)
    for n in (1, 3):
        noise = lattice_design.private_geometric(privacy, optdp.Line(), n, np.repeat([1.0, 1e-9], [5, 3000]))
        assert noise.satisfies(privacy) and len(passes) <= 6
        passes.clear()


@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([0.01, 0.5, 3.0, 20.0]))
@settings(max_examples=25, deadline=None)
def test_raised_masses_are_the_least_that_keep_the_ratio(seed, bins, eps):
    """From the centre outwards each is what all within a sensitivity, as they are by then, ask for; in the tail none rises."""
    rng, ratio = np.random.default_rng(seed), enclosures.exp_below(eps)
    n, scale = int(rng.integers(1, 9)), 2.0 ** -rng.integers(1, 40, 40)
    p = rng.random(int(rng.integers(n + 1, 40)))
    p *= scale[: p.size]
    total = float((1 + bins) * p[0] + 2 * p[1:-n].sum() + 2 * p[-n:].sum() / -math.expm1(-eps))
    plain, before = [max(1, v) for v in lattice_design.as_weights(p, total)], None
    while plain != before:
        before = list(plain)
        for a in range(len(plain)):
            plain[a] = max(plain[a], math.ceil(max(plain[max(a - n, 0) : a + n + 1]) / ratio))
        for r in range(len(plain) - 2, len(plain) - n - 1, -1):
            plain[r] = max(plain[r], plain[r + 1])
    assume(2 * (sum(plain[:-n]) + sum(plain[-n:]) / (1 - 1 / ratio)) < 0.99 * TOTAL)  # else all are made smaller first
    noise = lattice_design.private_geometric(optdp.ApproxDP(eps), optdp.Line(), n, p, bins)
    assert noise.weights == tuple(plain[:-n])


@pytest.mark.parametrize("q", [0.3, 1.0, 1.01, 2.0, 2.7, 9.0])
def test_costs_in_floats_are_those_of_the_proof(q):
    for n, last in ((1, 6), (7, 90), (400, 900)):
        exact = [float(Fraction(int(c), 2**SCALE)) for c in lattice_costs(optdp.Power(q), 1.0, n, last)]
        near = lattice_design._power_costs(q, n, last)
        assert (
            near == pytest.approx(exact, rel=1e-12, abs=1e-15 * abs(exact[min(n, last)])) and (np.diff(near) >= 0).all()
        )
    with pytest.raises(OverflowError):
        lattice_design._power_costs(100.0, 1, 10_000)


@pytest.mark.parametrize(
    "loss",
    [
        optdp.Huber(0.3),
        optdp.Huber(1e-4),
        optdp.Pieces((0, "1/3", "1/2", 2), ((1,), ("2/3", 1), ("1/4", 1, "5/3"), ("11/12", 0, 0, 1))),
    ],
    ids=["wide", "narrow", "kinks"],
)
def test_costs_in_floats_of_pieces_are_those_of_the_proof(loss, monkeypatch):
    assert loss.convex
    for width, n, last in ((1.0, 1, 6), (0.7, 7, 90), (3.0, 400, 900)):
        exact = [float(Fraction(int(c), 2**SCALE)) for c in lattice_costs(loss, width, n, last)]
        near = lattice_design._piece_costs(loss, width, n, last)
        assert near == pytest.approx(exact, rel=1e-12, abs=1e-14 * (1 + abs(exact[min(n, last)])))
        assert (np.diff(near) >= 0).all()
    task = lattice_design.LatticeTask(additive_noise(optdp.GDP(4.0), loss, False))
    monkeypatch.setattr(lattice_design, "lattice_costs", None)
    assert task.costs(100_000, 600_000).size == 600_001  # exactly that would take a minute
    with pytest.raises(OverflowError):
        lattice_design._piece_costs(optdp.Pieces((0,), ((0, 0, 0, 1),)), 1e150, 1, 10)


@pytest.mark.parametrize("tail", [(), (4, 4, 3)])
@pytest.mark.parametrize("sent", [False, True])
def test_cells_of_the_same_weight_are_taken_together(tail, sent):
    """What they cost is the sum over all of them, and over all periods of the tail."""
    noise = AdditiveMechanism(
        optdp.Line(), 1.0, 3, (90, 90, 40, 7, 7, 6), 2 * (not sent), tail, 2**60 * bool(tail), 2.0
    )
    periods = [3 / 4 * 4.0**-k * np.array(tail) for k in range(30)]  # b = 2^60/2^62
    masses = np.concatenate([noise.weights, *periods]) * np.append(1.0, np.full(5 + 30 * len(tail), 2.0))
    for q in (0.3, 1.5, 3.4):
        ends = (np.arange(masses.size + 1) - 0.5) / 3
        ends[0] = 0.0
        means = np.diff(ends ** (q + 1) / (q + 1)) / np.diff(ends)
        low, high = noise.enclose_loss(optdp.Power(q), sent=sent)
        assert low <= high <= low * (1 + 1e-9) and masses @ means / (noise.atom + masses.sum()) == pytest.approx(
            low, rel=1e-9
        )


def written_out(pairs, n, costs, ended):
    """The least cost of noise on the integers -K..K (`ended`), or of a relaxation: there are no rows with what lies beyond."""
    last, table, columns = len(costs) - 2, [], len(costs)
    for eps, delta in pairs:
        for s in range(1, n + 1):
            ends = (-last - s, last) if ended else (-last, last - s)
            excess = []
            for i in range(ends[0], ends[1] + 1):
                row = {abs(i): 1.0} if abs(i) <= last else {}
                if abs(i + s) <= last:
                    row[abs(i + s)] = row.get(abs(i + s), 0.0) - math.exp(eps)
                if delta > 0:
                    row[columns] = -1.0
                    excess.append(columns)
                    columns += 1
                table.append((row, 0.0))
            table.append((dict.fromkeys(excess, 1.0), delta))
    rows = np.zeros((len(table), columns))
    for k, (row, _) in enumerate(table):
        rows[k, list(row)] = list(row.values())
    often = np.append(
        np.where(np.arange(last + 1) > 0, 2.0, 1.0), 0.0 if ended else 1.0
    )  # the last is all that lies beyond
    mass, cost = (np.pad(v, (0, columns - often.size)) for v in (often, often * costs))
    return linprog(cost, rows, [limit for _, limit in table], mass[None, :], [1.0]).fun


@pytest.mark.parametrize("loss", ["abs", optdp.Threshold(1), optdp.Pieces((0, 2), ((0, 1), (3,)))], ids=str)
@pytest.mark.parametrize(
    ("pairs", "n"),
    [
        ([(1.0, 0.1), (2.0, 0.01)], 3),
        ([(0.0, 0.3), (1.0, 0.0)], 1),
        ([(1.0, 0.05), (1.0 + 1e-9, 0.05 - 1e-9), (1.0 + 2e-9, 0.05 - 2e-9)], 2),
        ([(1.0, 0.02), (1.5, 0.1), (2.0, 0.02)], 1),
        ([(0.5, 0.2), (1.0, 0.1), (1.5, 0.05), (2.0, 0.02), (3.0, 0.004)], 2),
    ],
)
def test_noise_for_pairs_on_the_integers_is_that_of_a_plain_program(pairs, n, loss):
    found = optdp.solve_additive(optdp.Profile(pairs, float(n)), loss=loss, discrete=True, rtol=1e-4)
    costs = optdp.WorstCase(loss).loss(np.arange(20.0))
    assert found.verify() and found.value >= written_out(pairs, n, costs, False) * (1 - 1e-6)
    if all(delta > 0 for _, delta in pairs):
        assert found.lower_bound <= written_out(pairs, n, costs, True) * (1 + 1e-6)


@pytest.mark.parametrize(("mu", "gap"), [(1.0, 5e-3), (3.0, 1e-2)])
def test_the_tail_goes_on_as_the_program_says(mu, gap):
    """It began a point too early: noise whose masses do not fall evenly broke the curve, and was mixed with other noise."""
    found = optdp.solve_additive(optdp.GDP(mu), loss=optdp.Threshold(0.3), n=5, rtol=1e-2)
    assert found.gap <= gap and found.verify()  # 0.15 for both


@pytest.mark.parametrize(
    "privacy", [optdp.KL(0.5), pytest.param(optdp.ApproxDP(1.0, 0.1), marks=pytest.mark.soak)], ids=str
)
def test_noise_for_a_nearer_threshold_is_noise_for_a_farther_one(privacy):
    """Just beyond places that suit lattices: what is found there is no worse than at them."""
    near, far = (optdp.solve_additive(privacy, loss=optdp.Threshold(t), rtol=1e-2, time_limit=4) for t in (0.5, 0.502))
    assert far.value <= near.value * (1 + 1e-6) and far.lower_bound <= near.value  # 0.5366 and 0.5209 under KL
    assert far.verify()


@pytest.mark.parametrize(("mu", "limit"), [(4.0, 0.25), (6.0, 0.25), (4.0, 0.3)])
def test_thresholds_within_half_of_the_sensitivity_under_a_large_mu(mu, limit):
    """Relaxations were in units of what ordinary noise has far out, and the solver gave up: gaps of 0.16, 0.17 and 2.5e-3."""
    found = optdp.solve_additive(optdp.GDP(mu), loss=optdp.Threshold(limit), time_limit=30)
    assert found.gap <= 1e-3 and found.verify()
    half_lines = optdp.solve_additive(optdp.GDP(mu), loss=optdp.Threshold(0.5)).value
    assert found.lower_bound > half_lines


@pytest.mark.parametrize("mu", [2.5, pytest.param(3.0, marks=pytest.mark.soak)])
def test_concave_losses_under_a_large_mu(mu):
    """Half of the noise is within a small part of the sensitivity, where a concave loss is steep: meshes for both sides."""
    found = optdp.solve_additive(optdp.GDP(mu), loss=optdp.Power(0.5), rtol=0.1, time_limit=60)
    assert found.gap <= 0.1 and found.verify()  # 0.24 on lattices, and 0.62 at 3 after a minute


def test_where_the_gaussian_answers_no_solver_is_named():
    """The program was said to be solved by HiGHS, which was never asked."""
    problem = optdp.Problem(optdp.GDP(0.5), optdp.Line(), "squared", optdp.Additive())
    found = optdp.solve(problem, solver=Highs(method="ipm"))
    assert isinstance(found.mechanism, LatticeGaussian) and found.program.solver == "closed form, no solver"
    assert optdp.solve(problem, n=4, solver=Highs(method="ipm")).program.solver.startswith("HiGHS ipm")


@pytest.mark.parametrize("bound", [5e-4, 3e-4])
def test_wide_noise_under_kl_has_a_proof_on_the_integers(bound):
    """The reference was given up while it still became more even, and there was no noise at all below a bound of 6e-4."""
    solution = optdp.solve_additive(optdp.KL(bound), loss="abs", discrete=True)
    assert solution.gap <= 1e-3 and solution.verify()


@pytest.mark.parametrize("bound", [1e-3, 5e-4])
def test_wide_noise_for_answers_that_are_to_be_exact(bound):
    """No point was found to begin at, and the noise was refused as too rare for floats; its loss is near 1."""
    solution = optdp.solve_additive(optdp.RDP(2, bound), loss=optdp.Threshold(0), discrete=True, rtol=3e-3)
    assert solution.gap <= 3e-3 and solution.verify()

"""`solve_vector` on spheres, balls and cubes: certificates, exact samplers, and the published mechanisms."""

import json
import math
import pickle
import time
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise
from unittest import mock

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binom, binomtest, chi2, kstest

import optdp
from optdp.certificates import cube as cube_module
from optdp.certificates import radial as radial_module
from optdp.certificates.base import Refusal
from optdp.certificates.coordinates import CoordinatesCertificate
from optdp.certificates.cube import CubeCertificate
from optdp.certificates.radial import RadialCertificate, _Prices
from optdp.certificates.vector import SphereCertificate
from optdp.closed_forms import vector as formulas
from optdp.closed_forms.caps import TINY, caps
from optdp.closed_forms.cube import best_signs, gain, moment, share, threshold
from optdp.closed_forms.vector import any_cap
from optdp.design.cube import certify
from optdp.design.radial import plain_program
from optdp.exact import enclosures, work
from optdp.exact.sampling import as_rng
from optdp.mechanisms import baselines, directions
from optdp.mechanisms import product as product_module
from optdp.mechanisms.baselines.vector import SampledCoordinates, VectorLaplace, published_size
from optdp.mechanisms.cap import CapMechanism
from optdp.mechanisms.kernel import KernelMechanism
from optdp.mechanisms.lifted import LiftedMechanism
from optdp.mechanisms.product import ProductMechanism, composed, share_of
from optdp.mechanisms.radial import RadialMechanism
from optdp.mechanisms.scaled import ScaledMechanism
from optdp.mechanisms.signs import SignMechanism
from optdp.mechanisms.unbiased_vectors import COINS, coins_below, odds_above
from optdp.solvers import radial as radial_solver
from optdp.solvers.layers import Layers, Spheres, limit
from optdp.solvers.radial import Caps, attained, start_floor

from .conftest import epsilons

DIMS = (1, 2, 3, 10, 100, 1000, 10**5, 10**6)


def problem(eps, domain):
    return optdp.Problem(optdp.LDP(eps), domain, "squared", constraints=[optdp.Unbiased()])


# --- the sphere


@pytest.mark.parametrize("d", DIMS)
def test_the_sphere_is_solved_to_twelve_digits(d):
    for eps in (1e-6, 0.1, 1.0, 4.0, 10.0, 30.0):
        best = optdp.solve_vector(eps, d)
        assert best.gap < 1e-12 and best.verify(), (eps, d)


@pytest.mark.parametrize("shape", [{"inputs": "ball"}, {"norm": "linf"}], ids=str)
def test_the_least_eps_of_one_number(shape):
    """Below what the kernel of one number takes the ends of the interval decide: 4/eps^2 but for a share of eps^2."""
    for eps in (1e-20, 1e-12, 9e-7):
        best = optdp.solve_vector(eps, 1, **shape)
        assert best.gap <= 1e-4 and best.verify() and best.value == pytest.approx(4 / eps**2, rel=1e-4)


def test_small_dimensions_have_known_optima():
    """d = 1: Duchi's mechanism; d = 3: the closed form; d = 2: a linear program over densities on the circle."""
    for eps in (0.1, 1.0, 5.0):
        e = math.exp(eps)
        assert optdp.solve_vector(eps, 1).value == pytest.approx(((e + 1) / (e - 1)) ** 2 - 1, rel=1e-12)
        root = math.exp(eps / 2)
        assert optdp.solve_vector(eps, 3).value == pytest.approx(((root + 1) / (root - 1)) ** 2 - 1, rel=1e-12)
        for d in (1, 3):
            best = optdp.solve_vector(eps, d)
            form = best.closed_form
            assert float(form.subs(dict.fromkeys(form.free_symbols, eps))) == pytest.approx(best.value, rel=1e-12)


@pytest.mark.parametrize("eps", [0.5, 2.0, 4.0])
def test_the_circle_against_a_plain_linear_program(eps):
    """Inputs and output directions on n equal angles, outputs of one length, by rotation: max E<u, v> subject to the ratio."""
    from scipy.optimize import linprog

    n = 720
    cosine = np.cos(2 * np.pi * np.arange(n) / n)
    # k_j = density of the direction at angle j from the input, m its floor: m <= k <= E m, sum k = 1.
    eye = np.eye(n)
    rows = np.concatenate([np.hstack([-eye, np.ones((n, 1))]), np.hstack([eye, -math.exp(eps) * np.ones((n, 1))])])
    found = linprog(np.append(-cosine, 0), A_ub=rows, b_ub=np.zeros(2 * n), A_eq=[np.append(np.ones(n), 0)], b_eq=[1])
    value = 1 / found.fun**2 - 1
    assert optdp.solve_vector(eps, 2).value == pytest.approx(value, rel=1e-4)


@settings(max_examples=25)
@given(epsilons(1e-4, 29.9), st.integers(1, 10**6), st.floats(0.0, 0.99))
def test_no_cap_does_better_and_the_certificate_is_sharp(eps, d, height):
    best = optdp.solve_vector(eps, d)
    other = CapMechanism.private(eps, optdp.Sphere(d), height * min(1.0, 4 / math.sqrt(d)))
    assert other.enclose(optdp.WorstCase("squared"))[0] >= best.lower_bound * (1 - 1e-13)
    assert other.check_privacy(optdp.LDP(eps))[0].passed
    assert float(other.guarantee().eps) == pytest.approx(float(eps), rel=1e-6)
    with pytest.raises(Refusal):
        SphereCertificate(best.value * (1 + 1e-9)).bound(best.problem)


def test_caps_too_small_for_the_coins_are_refused():
    for eps, d in ((1.0, 62), (1.0, 52), (math.exp(-2.0), 65), (1.0, 10**6)):
        with pytest.raises(ValueError, match=r"height = .* is not allowed in dimension"):
            CapMechanism.private(eps, optdp.Sphere(d), 0.98)


def test_signs_too_rare_for_the_coins_are_refused():
    for k in (110, 200, 1000):
        with pytest.raises(ValueError, match=f"least = {k} of k = {k} signs is not allowed"):
            SignMechanism.private(1.0, optdp.Box.cube(k), k, k)
    made = SignMechanism.private(1.0, optdp.Box.cube(95), 95, 95)
    assert made.privacy() == pytest.approx(1.0, rel=1e-7)


@pytest.mark.parametrize("k", [7, 1000, 10**6])
def test_a_wrong_binomial_distribution_is_seen_before_the_first_draw(k, monkeypatch):
    from scipy import stats

    wrong = lambda n, k, p, cdf=stats.binom.cdf: cdf(n, k, p) * (1 + 1e-8)  # noqa: E731
    monkeypatch.setattr(stats.binom, "cdf", wrong)
    made = SignMechanism.private(4.0, optdp.Box.cube(k), k, k // 2 + 1)
    with pytest.raises(RuntimeError, match="binomial"):
        made.randomize(np.zeros(k), 1)


def test_caps_have_the_shares_and_moments_of_beta_variables():
    for d in (2, 3, 4, 17):
        for g in (0.0, 0.2, 0.7):
            w, t = formulas.cap(d, arb(g))
            law = beta((d - 1) / 2, (d - 1) / 2, loc=-1, scale=2)
            assert float(w) == pytest.approx(law.sf(g), rel=1e-9)
            assert float(t) == pytest.approx(law.expect(lambda x: x, lb=g, ub=1), rel=1e-6)


def test_small_caps_of_large_spheres_are_expanded_rightly_and_fast():
    """Beside FLINT's at a precision at which it tells them from 0, between two balls, and for balls of heights."""
    began = time.process_time()
    for d in (300, 10**4, 10**6):
        for z in (8.0, 9.5, 12.0, 13.5, 17.0, 30.0):
            height = arb(z / math.sqrt(d)) if z * z < d else arb(0.99)
            found = {}
            for bits in (128, 192, 640):
                with ctx.workprec(bits):
                    found[bits] = formulas.any_cap(d, height)
                    wide = formulas.any_cap(d, height + arb(0, 1e-20))
                    for one, other in zip(found[bits], wide, strict=True):
                        assert other.contains(one) or other.overlaps(one)
            for bits in (128, 192):
                for one, other in zip(found[bits], found[640], strict=True):
                    assert one.overlaps(other) and one.rel_accuracy_bits() > bits - 40
    assert time.process_time() - began < 5


# --- sampling


@pytest.mark.parametrize(("dim", "height"), [(2, 0.3), (3, 0.3), (8, 0.1), (8, 0.6)])
def test_cells_of_heights_have_more_than_their_points_and_are_sure_of_fewer(dim, height):
    """Of tau^(d - 2)/(1 + tau^2)^(d - 1), at both ends and in the middle of every cell, and at the mode."""
    table, mode = directions.Heights(dim, height), math.sqrt((dim - 2) / dim)
    for weights, edges, sure, (scale, factor) in table._sides:
        assert sum(weights) == directions.LIMB
        with ctx.workprec(128):
            for i, (low, high) in enumerate(pairwise(edges.tolist())):
                for tau in (low, (low + high) / 2, high, min(max(mode, low), high)):
                    wanted = (
                        scale
                        * factor
                        * (arb(high) - arb(low))
                        * arb(tau) ** (dim - 2)
                        / (1 + arb(tau) ** 2) ** (dim - 1)
                    )
                    assert bool(sure[i] * arb(weights[i]) / directions.LIMB <= wanted) and bool(wanted <= weights[i])


def test_a_row_is_undecided_where_its_error_or_more_of_its_toss_passes_an_integer():
    """In one dimension: 5 and a little, each with its error, and a toss of 32 digits, of which there may be 2^-32 more."""
    none, rows = np.zeros((3, 0), np.uint64), np.zeros(3, np.int64)
    deep, tosses = (rows[:0], rows[:0], none[0]), np.array([[0], [2**31], [2**32 - 1]], np.uint32)
    bits = directions.Bits(rows, rows, none.sum(axis=1), {}, none, deep, none, tosses)
    for shift, low, undecided in ((0.0, 5, [1, 0, 1]), (2.0**-33, 5, [0, 0, 1]), (-(2.0**-33), 4, [1, 0, 0])):
        factor = arb(5) + arb(shift)
        found, open_ = directions._floats(np.ones((3, 1)), bits, None, lambda f=factor: f, 1.0, np.float64)
        assert open_.tolist() == undecided and found[:, 0].tolist() == [low, 5, 5]


@pytest.mark.parametrize("d", [1, 2, 3, 5, 40])
def test_doubles_long_doubles_and_balls_agree(d):
    """The same bits give the same integers, except where the doubles say that they do not know."""
    rng = np.random.default_rng(d)
    height = 0.5 / math.sqrt(d)
    table = directions.heights(d, height) if d > 1 else None
    v = rng.standard_normal((60, d)) * rng.choice([1e-9, 1.0, 1e9], (60, 1))
    bits = directions.Bits.draw(rng.integers(0, 2, 60), d, table, rng)
    step = 2.0**-20
    scale = lambda: arb(7).sqrt()  # noqa: E731
    plain, open_ = directions._floats(v, bits, table, scale, step, np.float64)
    fine, still = directions._floats(v, bits, table, scale, step, np.longdouble)
    assert open_.sum() < 6 and (directions._SHORT or still.sum() == 0)
    for i in range(60):
        exact = directions._balls(v[i], bits.row(i), table, scale, step, rng)
        assert open_[i] or np.array_equal(plain[i], exact)
        assert still[i] or np.array_equal(fine[i], exact)


@pytest.mark.parametrize("d", [2**15, pytest.param(2**16 + 1, marks=pytest.mark.soak)])
def test_long_vectors_are_computed_in_parts_as_exactly(d):
    rng = np.random.default_rng(d)
    table, v = directions.heights(d, 0.5 / math.sqrt(d)), rng.standard_normal((2, d))
    bits = directions.Bits.draw(np.array([0, 1]), d, table, rng)
    scale = lambda: arb(d).sqrt()  # noqa: E731
    plain, open_ = directions._floats(v, bits, table, scale, 2.0**-4, np.float64)
    assert not open_.any()
    for i in range(2):
        assert np.array_equal(plain[i], directions._balls(v[i], bits.row(i), table, scale, 2.0**-4, rng))


def test_what_rests_on_digits_not_yet_drawn_is_undecided():
    """Next to the direction itself a place of 64 digits does not tell how far from it; nor do 128 digits of 0 tell a radius."""
    table, rng = directions.heights(2, 0.3), np.random.default_rng(0)
    v = np.tile([1.0, 0.0], (3, 1))
    for dtype in (np.float64, np.longdouble):
        bits = directions.Bits.draw(np.zeros(3, dtype=int), 2, table, rng)
        bits.cells[0], bits.places[0] = 0, 2**10
        bits.radii[1] = 0
        bits.deep = np.array([1]), np.array([0]), np.zeros(1, dtype=np.uint64)
        undecided = directions._floats(v, bits, table, lambda: arb(1), 2.0**-8, dtype)[1]
        assert undecided.tolist() == [True, True, False]


@pytest.mark.parametrize("order", ["C", "F"])
def test_roundings_of_inner_products_do_not_pile_up_however_rows_lie_in_memory(order):
    """Column by column numpy adds one number after the other, as of a table that was read so."""
    v = np.full((2, 2**15), 0.967 / math.sqrt(2**15), order=order)
    exact = 2**15 * Fraction(v[0, 0]) ** 2
    assert all(abs(Fraction(found) / exact - 1) < Fraction(1, 2**49) for found in directions._dot(v, v).tolist())


def test_error_bounds_hold():
    """With a coarse grid nothing is undecided, with a fine one all is; between, what is decided is right."""
    rng = np.random.default_rng(5)
    table = directions.heights(3, 0.2)
    v = rng.standard_normal((400, 3))
    bits = directions.Bits.draw(rng.integers(0, 2, 400), 3, table, rng)
    for power, share_ in ((10, (0.0, 0.01)), (40, (0.01, 0.9)), (50, (0.99, 1.0))):
        found, open_ = directions._floats(v, bits, table, lambda: arb(1), 2.0**-power, np.float64)
        assert share_[0] <= open_.mean() <= share_[1]
        for i in np.flatnonzero(~open_)[:100].tolist():
            exact = directions._balls(v[i], bits.row(i), table, lambda: arb(1), 2.0**-power, rng)
            assert np.array_equal(found[i], exact)


@pytest.mark.parametrize("d, eps", [(2, 1.0), (3, 6.0), (6, 0.1), (50, 8.0), (400, 25.0)])
def test_the_height_of_samples_has_its_law(d, eps):
    """t given the side has the truncated beta law, whichever way it is decided; the rest is uniform around the input."""
    mechanism = optdp.solve_vector(eps, d).mechanism
    table, rng, n = directions.heights(d, mechanism.height), np.random.default_rng(3), 4000
    law = beta((d - 1) / 2, (d - 1) / 2, loc=-1, scale=2)
    for side in (0, 1):
        cells, places, _ = table.draw(np.full(n, side), rng)
        tau = table.tau(np.full(n, side), cells, places, np.float64)
        t = (1 - tau**2) / (1 + tau**2) * (1 if side == 0 else -1)
        edge = law.sf(mechanism.height)
        uniform = law.sf(t) / edge if side == 0 else law.cdf(t) / (1 - edge)
        assert kstest(uniform, "uniform").pvalue > 1e-4
    x = rng.standard_normal(d)
    x /= np.linalg.norm(x)
    y = mechanism.randomize(np.tile(x, (n, 1)), rng)
    y /= np.linalg.norm(y, axis=1)[:, None]
    other = rng.standard_normal(d)
    other -= (other @ x) * x
    across = y - np.outer(y @ x, x)
    across /= np.linalg.norm(across, axis=1)[:, None]
    s = across @ other / np.linalg.norm(other)
    if d > 2:
        assert kstest(beta((d - 2) / 2, (d - 2) / 2, loc=-1, scale=2).cdf(s), "uniform").pvalue > 1e-4
    inside = int(((y @ x) >= mechanism.height).sum())
    assert binomtest(inside, n, mechanism.coins / 2**124).pvalue > 1e-5


def test_points_are_decided_by_balls_as_by_the_density():
    """The rare path alone: a cell's points are accepted with the probability that the density says."""
    table, rng = directions.heights(4, 0.3), np.random.default_rng(0)
    weights, edges, sure, (scale, factor) = table._sides[0]
    cell, n = len(weights) // 2, 3000
    kept = sum(
        table._decide(0, cell, int(rng.integers(0, 2**63)) * 2, int(rng.integers(0, 2**62)), rng) is not None
        for _ in range(n)
    )
    with ctx.workprec(128):
        heights_ = [
            table._density(arb(x), factor) for x in np.linspace(edges[cell], edges[cell + 1], 33)[1:-1].tolist()
        ]
        chance = float(sum(heights_, arb(0)) / 31 * scale * arb(float(edges[cell + 1] - edges[cell])) / weights[cell])
    assert binomtest(kept, n, min(chance, 1.0)).pvalue > 1e-4
    assert sure[-1] == 0 and sum(weights) == 2**62 and all(0 <= s <= 2**62 for s in sure)


@pytest.mark.parametrize("eps", [0.2, 5.0])
@pytest.mark.parametrize("d", [1, 2, 3, 30])
@pytest.mark.parametrize("kind", ["sphere", "ball"])
def test_samples_are_unbiased_and_have_the_stated_error(d, eps, kind):
    mechanism = CapMechanism.private(eps, optdp.Sphere(d) if kind == "sphere" else optdp.Ball(d))
    rng = np.random.default_rng(d)
    x = rng.standard_normal(d)
    x *= (1.0 if kind == "sphere" else 0.6) / np.linalg.norm(x)
    n = 40_000 // d + 4000
    y = mechanism.randomize(np.tile(x, (n, 1)), rng)
    assert np.abs((y.mean(axis=0) - x) / (y.std(axis=0) / math.sqrt(n) + 1e-9)).max() < 4.5
    error = ((y - x) ** 2).sum(axis=1)
    assert abs(error.mean() - mechanism.variance(x)) < 4.5 * error.std() / math.sqrt(n) + 1e-5 * error.mean() + 1e-9
    assert np.array_equal(y / mechanism.step, np.round(y / mechanism.step))
    low, high = mechanism.support()
    assert low <= y.min() and y.max() <= high


def test_shapes_types_and_refusals():
    mechanism = optdp.solve_vector(2.0, 4).mechanism
    x = np.zeros((2, 3, 4), dtype=np.float32)
    x[..., 1] = 1
    assert mechanism.randomize(x, 0).shape == (2, 3, 4)
    assert mechanism.randomize(x[:0], 0).shape == (0, 3, 4)
    assert np.array_equal(mechanism.randomize(x, 0), mechanism.randomize(x, 0))
    assert mechanism.randomize([0, 1, 0, 0]).dtype == float
    for wrong in (2 * x, x[..., :3], x * np.nan, 0 * x, 1.0):
        with pytest.raises(ValueError, match="not allowed"):
            mechanism.randomize(wrong)
    ball = CapMechanism.private(2.0, optdp.Ball(4))
    for point in (0 * x, x, x * 1e-300, x / 3):
        assert np.isfinite(ball.randomize(point, 0)).all()
    tiny = np.array([3e-160, 0.0, -4e-160, 0.0])  # whose squares lose their digits
    sharp = CapMechanism.private(20.0, optdp.Ball(4))
    y = sharp.randomize(np.tile(tiny, (400, 1)), 1)
    assert (np.abs(y @ np.array([0.6, 0, -0.8, 0])) >= 0.99 * sharp.height * np.linalg.norm(y, axis=1)).all()
    with pytest.raises(ValueError, match="norm at most 1"):
        ball.randomize(1.1 * x)
    with pytest.raises(ValueError, match="power of two"):
        CapMechanism(optdp.Sphere(3), 0.1, 2**123, 0.3)
    with pytest.raises(ValueError, match="prefer the cap"):
        CapMechanism(optdp.Sphere(3), 0.1, 2**100, 0.25)
    for wrong in (
        {"dim": 0},
        {"dim": 2, "norm": "l1"},
        {"dim": 2, "inputs": "x"},
        {"dim": 2, "norm": "linf", "inputs": "sphere"},
    ):
        with pytest.raises(ValueError, match="not allowed"):
            optdp.solve_vector(1.0, **wrong)
    with pytest.raises(TypeError):
        optdp.solve_vector(1.0, 2.5)


def test_the_sign_of_the_direction_in_the_ball_is_exact():
    """Near ties go to rationals: the digits that follow decide as often as they should."""
    rng = as_rng(4)
    row = np.array([0.6, 0.0])
    toss = math.floor((1 + Fraction(0.6)) * 2**61)
    kept = sum(CapMechanism._below_norm(toss, row, rng) for _ in range(2000))
    exact = Fraction(0.6) * 2**61 + 2**61 - toss
    assert binomtest(kept, 2000, float(exact)).pvalue > 1e-4
    assert CapMechanism._below_norm(0, row, rng) and not CapMechanism._below_norm(2**62 - 1, row, rng)


def test_the_sign_of_the_direction_is_exact_where_roundings_of_the_norm_pile_up():
    """Of rows that lie column by column in memory squares are added one after the other."""
    d = 98304
    rows = np.full((2, d), 0.97 / math.sqrt(d), order="F")
    guess = float(np.sqrt(np.einsum("ij,ij->i", rows, rows))[0])
    with ctx.workprec(128):
        norm = arb(rows[0, 0]) * arb(d).sqrt()
        toss = int(((1 + norm + (guess - norm) / 16) * 2**61).floor().unique_fmpz())  # between both, next to the norm

    class Tossed(np.random.Generator):
        def integers(self, low, high=None, size=None):
            return np.int64(0) if size is None else np.array([toss, 0])

    turned = CapMechanism.private(1.0, optdp.Ball(d))._turned(rows, Tossed(np.random.PCG64(0)))
    assert np.array_equal(turned[0], rows[0] if norm > guess else -rows[0]) and np.array_equal(turned[1], rows[1])


# --- the ball


@pytest.mark.parametrize(
    "d, eps", [(30, 0.1), (30, 1.0), pytest.param(30, 10.0, marks=pytest.mark.soak), (10**4, 0.1), (10**4, 10.0)]
)
def test_the_ball_lies_between_the_sphere_and_one_more(d, eps):
    sphere, ball = optdp.solve_vector(eps, d), optdp.solve_vector(eps, d, inputs="ball")
    assert ball.verify() and ball.gap <= 1e-3
    assert sphere.lower_bound <= ball.lower_bound * (1 + 1e-12)
    assert ball.value <= sphere.value + 1 + 1e-9 * sphere.value


def test_the_even_floor_that_a_search_starts_with_leaves_the_most_room(monkeypatch):
    """Of the masses that are tried, by `reach`; all of them are looked at together: it took 3,480 steps for each length."""
    counted = mock.Mock(side_effect=radial_solver._share)
    monkeypatch.setattr(radial_solver, "_share", counted)
    caps, floor = start_floor(2.0, 4, 1.5, 40)
    assert counted.call_count < 200
    means = {m: caps.reach(np.full(40, m / 40))[0] for m in np.exp(np.linspace(-2, 0, 60))[1:-1].tolist()}
    assert floor.sum() == pytest.approx(max(means, key=means.get)) and (floor == floor[0]).all()


@cache
def radial(eps, d):
    return optdp.solve_vector(eps, d, inputs="ball")


@pytest.mark.parametrize(
    "eps, d", [(1.0, 2), (4.0, 2), (4.0, 3), (4.0, 10), pytest.param(30.0, 15, marks=pytest.mark.soak)]
)
def test_a_floor_on_radii_closes_the_bracket(eps, d):
    """Beyond the closed forms on both sides; it can be saved, and no published mechanism has a smaller error."""
    best, domain = radial(eps, d), optdp.Ball(d)
    assert best.verify() and best.gap <= 1e-3 and isinstance(best.mechanism, RadialMechanism)
    assert best.lower_bound > optdp.solve_vector(eps, d).value
    closed = min(made.private(eps, domain).worst_case_loss() for made in (CapMechanism, LiftedMechanism))
    assert best.value < closed
    for other in baselines.applicable(best.problem).values():
        assert other.worst_case_loss("squared") >= best.lower_bound
    again = optdp.Solution.from_dict(json.loads(json.dumps(best.to_dict())))
    assert again.mechanism == best.mechanism and again.verify()
    assert pickle.loads(pickle.dumps(best)).mechanism == best.mechanism


@pytest.mark.parametrize(
    "domain, eps",
    [(optdp.Ball(2), 4.0), pytest.param(optdp.Ball(3), 18.0, marks=pytest.mark.soak), (optdp.Box.cube(2), 6.0)],
)
def test_a_time_limit_stops_the_search_for_floors(domain, eps):
    """What was found by then is proven, is no worse than the closed forms, and the status says why it is not better."""
    problem = optdp.Problem(optdp.LDP(eps), domain, "squared", constraints=[optdp.Unbiased()])
    found = optdp.solve(problem, time_limit=1e-9)
    assert found.status is optdp.Status.TIME_LIMIT and found.program.stopped and found.verify()
    if isinstance(domain, optdp.Ball):
        closed = (made.private(eps, domain).enclose(problem.objective)[1] for made in (CapMechanism, LiftedMechanism))
        assert found.value <= min(closed) and found.lower_bound >= optdp.solve_vector(eps, domain.dim).lower_bound
        assert found.program.message.endswith(", 1 round of cuts")


@pytest.mark.parametrize("d", [2, 3])
def test_a_floor_on_radii_against_a_plain_linear_program(d):
    """Densities by radius and slice of the direction, for some norms of inputs, without caps, multipliers or cuts."""
    best = radial(4.0, d)
    radii = np.unique(np.append(np.linspace(0, 1.4, 15)[1:], best.mechanism.radii))
    found = plain_program(4.0, d, radii, np.linspace(0, 1, 9), 16).solve().checked().objective
    assert best.lower_bound * (1 - 1e-3) <= found <= best.value * 1.005


@pytest.mark.parametrize("eps, d", [(1.0, 2), (4.0, 3), (10.0, 10)])
def test_values_between_best_rows(eps, d):
    """E|Y|^2 is convex in the norm, and rows have its slopes: values are under the chord, and next to the true ones."""
    caps, floor = start_floor(eps, d, math.sqrt(float(CapMechanism.private(eps, optdp.Ball(d)).square)), 40)

    def tangents(norms, close):
        slopes, _, means, squares = caps.curve(floor, norms, close)
        return slopes, means, squares, squares + slopes * (norms - means)

    norms = np.linspace(0.1, 1, 10)
    slopes, means, squares, near = tangents(norms, 1e-3)
    true = tangents(norms, 1e-8)[3]
    assert (near <= true + 1e-8).all() and (near >= true - 1e-3).all()
    norms = np.linspace(0.15, 0.95, 9)
    true = tangents(norms, 1e-8)[3]
    chord, found = np.interp(norms, means, squares), attained(slopes, means, squares, norms)
    assert (true <= chord + 1e-9).all() and (found <= chord + 1e-12).all()
    assert np.abs(found - true).max() <= 0.2 * np.abs(chord - true).max() + 1e-6


@pytest.mark.parametrize("d", [2, 3, 6])
def test_rows_and_prices_from_deviations_are_those_from_radii(d):
    """Tiny balls are computed from R and r - c, others from the heights of caps: where both have digits they agree."""
    more, radii = math.expm1(6.0), np.linspace(0, 1.4, 60)[1:]
    floor, c = np.full(59, 0.1 / 59), np.array([0.1, 0.4, 0.9, 1.3])
    plain, spheres = Caps(d, more, radii), Spheres(d, more, radii)
    levels, means, squares = plain.rows(floor, 2 * c)
    reach, mean, variance = spheres.rows(floor, c, np.full(4, 0.1))
    assert reach == pytest.approx(np.sqrt(levels + c * c), rel=1e-8) and mean == pytest.approx(means, rel=1e-8)
    assert variance == pytest.approx(squares - means**2, rel=1e-8)
    away = radii**2 + (c * c - reach**2)[:, None]
    assert away - spheres.gains(c, reach)[0].toarray() == pytest.approx(plain.prices(2 * c, levels)[0], abs=1e-8)


def test_balls_moved_along_tangents_stay_next_to_their_inputs():
    """The best multipliers of balls next to 0 pull their centers beyond it, where they would be those of another input."""
    layers = Layers(20.0, 4, 6)
    layers.run(1e-2, lambda low, high: None)
    norms, weights, c, reach = layers.dual(6)
    used, levels = weights > 0, (1 - 1e-4) * reach**2 - c**2
    dual = RadialCertificate(*(tuple(v[used].tolist()) for v in (norms, weights, 2 * c, levels)))
    assert c.min() > 0 and 0.998 * layers.bound <= dual.bound(problem(20.0, optdp.Ball(4))).value <= layers.value


def test_the_limit_in_the_plane():
    mass = np.linspace(0.2, 2, 100_001)
    closed = (2 * mass / (1 - np.exp(-2 * mass**2)) - 1 / (2 * mass)).min()
    assert limit(2)[0] == pytest.approx(closed, rel=1e-8)


@settings(max_examples=20)
@given(st.data())
def test_no_multipliers_prove_more_than_is_attained(data):
    """The found ones moved at random, and random ones."""
    best = radial(*data.draw(st.sampled_from([(1.0, 2), (4.0, 2), (4.0, 3), (4.0, 10)])))
    own = best.certificate
    size, number = len(own.norms), st.floats(-1, 1)
    shift, tilt = data.draw(number) * 10.0 ** -data.draw(st.integers(0, 8)), data.draw(number) * 0.1
    moved = replace(
        own, levels=tuple(v + shift * best.value for v in own.levels), slopes=tuple(v * (1 + tilt) for v in own.slopes)
    )
    thrown = RadialCertificate(
        *(tuple(data.draw(st.lists(st.floats(low, high), min_size=size, max_size=size)))
          for low, high in ((0, 1), (0, 1), (0, 4), (-2, 12)))
    )  # fmt: skip
    for certificate in (moved, thrown):
        try:
            assert certificate.bound(best.problem).value <= best.value
        except Refusal:
            assert not any(certificate.weights) or 0 < min(v for v in certificate.slopes if v) < 2.0**-60


def test_multipliers_worth_nothing_prove_nothing():
    assert RadialCertificate((1.0,), (1.0,), (0.0,), (-5.0,)).bound(problem(1.0, optdp.Ball(3))).value == 0.0


def test_a_radial_bound_is_for_its_problem_only():
    best = radial(4.0, 3)
    own = best.certificate
    for other in (optdp.Sphere(3), optdp.Ball(1), optdp.Box.cube(3, 0, 1)):
        with pytest.raises(Refusal, match="of two dimensions"):
            own.bound(problem(4.0, other))
    for eps, d in ((1.0, 3), (4.0, 2), (4.0, 10), (8.0, 3)):
        assert own.bound(problem(eps, optdp.Ball(d))).value <= optdp.solve_vector(eps, d, inputs="ball", rtol=0.5).value
    for wrong in (
        {"norms": (2.0, *own.norms[1:])}, {"weights": (-1.0, *own.weights[1:])}, {"slopes": own.slopes[1:]},
        {"levels": (math.inf, *own.levels[1:])}, {"weights": (0.0,) * len(own.weights)}, {"slopes": (1e-20, *own.slopes[1:])},
    ):  # fmt: skip
        with pytest.raises(ValueError):
            replace(own, **wrong).bound(best.problem)


@pytest.mark.parametrize("d", [pytest.param(2, marks=pytest.mark.soak), 3, pytest.param(4, marks=pytest.mark.soak), 10])
def test_prices_of_radii_by_quadrature(d):
    """What is proven of a cell is true at its points, and g is the mean over directions that it is said to be."""
    rows, more = [(0.3, 0.9, 0.5), (0.5, 1.7, -0.2), (0.2, 0.0, 0.4)], math.expm1(2.0)
    prices = _Prices(problem(2.0, optdp.Ball(d)), rows)

    def g(r):
        total = 0.0
        for w, mu, nu in rows:
            law = beta((d - 1) / 2, (d - 1) / 2, loc=-1, scale=2)  # of t
            edge = float(np.clip((r * r - nu) / (mu * max(r, 1e-12)), -1, 1)) if mu else (1.0 if r * r > nu else -1.0)
            mean = law.expect(lambda t, mu=mu, nu=nu: r * r - mu * r * t - nu, lb=edge, ub=1.0) if edge < 1 else 0.0
            total += w * (r * r - nu + more * min(mean, 0.0))
        return total

    for low, high in ((0.0, 0.1), (0.2, 0.25), (0.3, 0.6), (0.6, 0.65), (0.9, 1.0), (1.2, 1.6), (1.55, 1.8)):
        ends = np.array([low, high])
        values = prices.at(ends)
        points = [g(r) for r in np.linspace(low, high, 3)]
        assert values == pytest.approx([points[0], points[-1]], abs=1e-6)
        assert values.min() - prices._sag(ends[:1], ends[1:])[0] <= min(points) + 1e-7, (low, high)
    least = min(g(r) for r in np.linspace(0, 2, 51))
    assert -prices.shortfall(1e-3) == pytest.approx(least, abs=2e-3) and -prices.shortfall(1e-3) <= least + 1e-7


def exact_price(r, rows, more):
    """g(r) in three dimensions, exactly: t is uniform on [-1, 1], so that E(t - h)_+ = (1 - h)^2/4."""
    found, r = Fraction(0), Fraction(r)
    for w, mu, nu in rows:
        least, slope = r * r - Fraction(mu) * r - Fraction(nu), Fraction(mu) * r  # of L, at t = 1; its slope in -t
        if least >= 0:
            gain = Fraction(0)
        elif least + 2 * slope <= 0:
            gain = -least - slope
        else:
            gain = least**2 / (4 * slope)
        found += Fraction(w) * (r * r - Fraction(nu) - more * gain)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_prices_in_three_dimensions_are_below_the_exact_ones(seed, monkeypatch):
    """At points; on cells, however wide; and everywhere, however soon the halving of cells ends."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    mu = rng.uniform(0, 3, n) * (rng.random(n) < 0.9)
    nu = rng.uniform(-1.1, 1.0, n) * np.where(rng.random(n) < 0.5, mu**2 / 4, 1.0)
    rows = list(zip(rng.uniform(0.1, 1, n).tolist(), mu.tolist(), nu.tolist(), strict=True))
    prices = _Prices(problem(float(rng.uniform(0.1, 4)), optdp.Ball(3)), rows)
    more = Fraction(prices.more)
    radii = np.sort(np.append(rng.uniform(0, 3, 40), [0.0, 3.5]))
    found, true = prices.at(radii), [exact_price(r, rows, more) for r in radii.tolist()]
    assert all(Fraction(a) <= b for a, b in zip(found.tolist(), true, strict=True))
    assert found == pytest.approx([float(v) for v in true], abs=1e-10)
    with mock.patch.object(radial_module, "BLOCK", 2):
        parts = prices.at(radii)
    assert parts == pytest.approx(found, abs=1e-10) and all(
        Fraction(a) <= b for a, b in zip(parts.tolist(), true, strict=True)
    )
    for i, j in rng.integers(0, radii.size, (40, 2)).tolist():
        i, j = min(i, j), max(i, j)
        sag, inside = prices._sag(radii[[i]], radii[[j]])[0], radii[i : j + 1]
        assert min(found[i], found[j]) - sag <= min(true[i : j + 1])
        # Of t in [-1, 1] those with mu r t > r^2 - nu are favoured.
        bent = sum(
            w
            * (1 + prices.more * np.clip((m * inside + v - inside**2) / np.maximum(2 * m * inside, 1e-300), 0, 1).max())
            for w, m, v in rows
        )
        assert sag >= bent * (radii[j] - radii[i]) ** 2 / 4 * (1 - 1e-12)
    least = min(exact_price(r, rows, more) for r in np.linspace(0, 3.5, 701).tolist())
    assert -prices.shortfall(1e-6) == pytest.approx(min(0.0, float(least)), abs=1e-3)
    for cells, narrowest, pairs in (
        (1, 2.0**-45, 5e7),
        (2, 0.4, 5e7),
        (2, 2.0**-45, 20),
        (3, 2.0**-45, 200),
        (1, 2.0, 5e7),
    ):
        monkeypatch.setattr(radial_module, "CELLS", cells)
        monkeypatch.setattr(radial_module, "NARROWEST", narrowest)
        monkeypatch.setattr(radial_module, "PAIRS", pairs)
        for close in (1e-3, 1.0, 100.0):
            assert -prices.shortfall(close) <= least, (cells, narrowest, pairs, close)


@pytest.mark.parametrize(("mu", "nu"), [(0.9, 0.5), (1.7, -0.2), (4.0, -3.0), (4.0, -3.9), (0.4, -0.03)])
def test_the_largest_cap_that_a_row_favours(mu, nu):
    """In three dimensions a share h/2 of a sphere has 1 - t < h: the most over a grid of radii."""
    c, square = mu / 2, nu + mu * mu / 4
    r = np.linspace(max(c - math.sqrt(square), 1e-9), c + math.sqrt(square), 20_001)
    share = np.clip((square - (r - c) ** 2) / (4 * c * r), 0, 1).max()
    assert share <= _Prices(problem(1.0, optdp.Ball(3)), [(1.0, mu, nu)]).most[1] <= share * (1 + 1e-6)


@pytest.mark.parametrize("weight", [5e-324, 1e-322, 1e-300, 2.0**60])
def test_tiny_weights_prove_no_more(weight):
    """Products with weights next to the least float are rounded to nothing; a common factor changes nothing."""
    best = radial(4.0, 3)
    for mu, nu, norm in ((1.3, 0.45, 0.5), (1.0, 0.0, 0.5), (1.0, -0.2, 0.3)):
        bound = RadialCertificate((norm,), (weight,), (mu,), (nu,)).bound(best.problem).value
        assert bound <= best.lower_bound
        assert bound == RadialCertificate((norm,), (1.0,), (mu,), (nu,)).bound(best.problem).value
        assert bound == RadialCertificate((norm, 0.1), (weight, 0.0), (mu, 1.0), (nu, 0.0)).bound(best.problem).value
    own = best.certificate
    again = replace(own, weights=tuple(w * 2.0**-200 for w in own.weights)).bound(best.problem).value
    assert again == pytest.approx(own.bound(best.problem).value, rel=1e-12)


def test_no_row_that_favours_outputs_is_missed():
    """Wide rows begin where floats can hardly tell."""
    rng = np.random.default_rng(4)
    c, reach = 10.0 ** rng.uniform(-1, 9, (2, 60))
    level = np.where(rng.random(60) < 0.5, 0.0, reach**2 - c**2)
    prices = _Prices(
        problem(1.0, optdp.Ball(3)), [(1.0, 2 * a, b) for a, b in zip(c.tolist(), level.tolist(), strict=True)]
    )
    assert (np.diff(prices.first) >= 0).all() and (np.diff(prices.last) >= 0).all()  # what a search takes for granted
    own = np.concatenate([prices.first, prices.last])
    radii = np.sort(np.abs(np.concatenate([own, np.nextafter(own, -np.inf), np.nextafter(own, np.inf), prices.c])))
    start, end = prices.near(radii, radii)
    for r, low, high in zip(radii.tolist(), start, end, strict=True):
        for i in [*range(low), *range(high, prices.c.size)]:
            assert prices.square[i] * (1 + 2.0**-50) <= (Fraction(r) - Fraction(prices.c[i])) ** 2


def test_prices_are_below_the_true_ones():
    """In balls: of rows in many dimensions, whose caps have the largest errors, and of rows that favour nothing."""
    rng, d = np.random.default_rng(5), 10_000
    for _ in range(30):
        mu, nu = 1 + rng.random(), 0.3 * rng.random()
        r = math.sqrt(nu) * (1 + 0.01 * rng.random())
        found = _Prices(problem(1.0, optdp.Ball(d)), [(1.0, mu, nu)]).at(np.array([r]))[0]
        with ctx.workprec(256):
            height = (arb(r) ** 2 - arb(nu)) / (arb(mu) * arb(r))
            share, moment = any_cap(d, height)
            true = arb(r) ** 2 - nu - (arb(1).exp() - 1) * mu * arb(r) * (moment - height * share)
            assert found <= true and float(true - found) <= 1e-9
    rows = [(w, 0.0, -nu) for w, nu in zip(rng.random(30).tolist(), rng.random(30).tolist(), strict=True)]
    radii = rng.random(50)
    for r, found in zip(radii.tolist(), _Prices(problem(1.0, optdp.Ball(2)), rows).at(radii).tolist(), strict=True):
        true = sum(Fraction(w) * (Fraction(r) ** 2 - Fraction(nu)) for w, _, nu in rows)
        assert true * (1 - Fraction(1, 2**47)) <= Fraction(found) <= true
    for mu, r in zip(rng.uniform(1, 4, 30).tolist(), rng.uniform(1e-4, 2e-3, 30).tolist(), strict=True):
        prices = _Prices(problem(8.0, optdp.Ball(3)), [(1.0, mu, 1e-6)])  # R^2 - (r - c)^2 is all but nothing
        true = exact_price(r, [(1.0, mu, 1e-6)], Fraction(prices.more))
        assert true - Fraction(1e-10) <= Fraction(prices.at(np.array([r]))[0]) <= true
    for w in rng.random(10).tolist():  # equal rows that favour all outputs: roundings of their sum have the same sign
        prices = _Prices(problem(1.0, optdp.Ball(2)), [(w, 0.0, 1.0)] * 5000)
        true = 5000 * Fraction(w) * (1 + Fraction(prices.more)) * (Fraction(0.25) - 1)
        assert true * (1 + Fraction(1, 2**38)) <= Fraction(prices.at(np.array([0.5]))[0]) <= true


@pytest.mark.parametrize("d", [3, 1000])
def test_laws_of_rows_in_balls(d):
    """The ratio of densities, the means and the largest error are bounds for the numbers that are drawn from."""
    rng, domain, checked = np.random.default_rng(d), optdp.Ball(d), 0
    while checked < 15:
        radii = np.sort(3 * math.sqrt(d) * (1 + 0.01 * rng.random(6)))
        floors = rng.integers(1, 2**58, 6)
        heights = np.sort(rng.uniform(-0.5, 1.0, 4) / math.sqrt(d / 3))
        levels = radii[0] * (radii[0] - heights)
        try:
            made = RadialMechanism(domain, radii, floors.tolist(), (1.0,) * 4, levels, 2.0**-30)
        except ValueError:  # means that do not reach 1
            continue
        checked += 1
        (first, _, place), coins = made._rows, made._laws[0].tolist()
        ratio, means, squares = arb(0), [], []
        with ctx.workprec(256):
            for k in range(4):
                mean, square = (
                    arb(0),
                    sum((arb(r) ** 2 * m for r, m in zip(made.radii, made.floors, strict=True)), arb(0)),
                )
                for j in range(place[k], place[k + 1]):
                    r, floor = made.radii[first[k] + j - place[k]], made.floors[first[k] + j - place[k]]
                    if coins[j]:
                        share, moment = any_cap(d, arb(float(made._heights[j])))
                        ratio = ratio.max(1 + coins[j] / (share * floor))
                        mean += arb(r) * coins[j] * moment / share
                        square += arb(r) ** 2 * coins[j]
                means.append(mean / 2**62)
                squares.append(square / 2**62)
            assert sum(coins[place[0] : place[1]]) == 2**62 - sum(made.floors)
            assert ratio <= enclosures.ball(made._ratio) and float(enclosures.ball(made._ratio) / ratio) < 1 + 1e-9
            for true, found, wrong in zip(means, made._means.tolist(), made._wrong.tolist(), strict=True):
                assert abs(true - found) <= wrong
            low, high, at = made._worst
            k = max(i for i in range(4) if i == 0 or means[i] <= at)
            share = (arb(at) - means[k]) / (means[k + 1] - means[k])
            error = squares[0] if at == 0 else (1 - share) * squares[k] + share * squares[k + 1] - arb(at) ** 2
            assert error <= high and low <= error + 1e-9 * high
            assert all(s - m * m <= high for m, s in zip(means, squares, strict=True) if m <= 1) and squares[0] <= high


def test_terms_of_caps_are_counted():
    """Proofs in many dimensions take longer."""
    small = np.full(100_000, 0.5)
    with work.limited(0.05):
        caps(3, small, small < 0)
        with pytest.raises(work.Overwork):
            caps(10_000, small, small < 0)


@pytest.mark.parametrize("d", [2, 3, 4, 9, 30, 301, 10_000])
def test_caps_in_floats_are_within_their_error(d):
    rng = np.random.default_rng(d)
    small = np.concatenate([rng.random(40) / 2, 10.0 ** -rng.uniform(0.4, 15, 40), [0.0, 0.5]])
    for deep in (False, True):
        share, moment, over, error = caps(d, small, np.full(small.size, deep))
        with ctx.workprec(256):
            for s, *found in zip(small, share, moment, over, strict=True):
                height = (1 - 2 * arb(float(s))) * (-1 if deep else 1)
                w, t = any_cap(d, height)
                for value, true in zip(found, (w, t, t - height * w), strict=True):
                    assert abs(arb(float(value)) - true) <= abs(true) * error + TINY


@pytest.mark.parametrize("d", [2, 3, 7])
@pytest.mark.parametrize("least", [-1.0, -0.5, -0.01, 0.0, 0.3, 0.9, 0.9999])
def test_directions_above_a_height(d, least):
    """<u, v> given that it is at least `least`, and the part of u orthogonal to v."""
    n, rng = 4000, np.random.default_rng(7)
    v = rng.standard_normal(d)
    v /= np.linalg.norm(v)
    y = directions.above(np.tile(v, (n, 1)), np.full(n, least), np.full(n, 2.0), 2.0**-30, rng) * 2.0**-31
    t, law = y @ v, beta((d - 1) / 2, (d - 1) / 2, loc=-1, scale=2)
    assert t.min() >= least - 1e-8 and np.allclose((y * y).sum(axis=1), 1, atol=1e-8)
    above = law.sf(least)
    assert kstest(t, lambda z: np.clip(1 - law.sf(z) / above, 0, 1)).pvalue > 1e-4
    across = y - np.outer(t, v)
    spread = across.std(axis=0)
    assert np.abs(across.mean(axis=0) / np.maximum(spread, 1e-12) * math.sqrt(n)).max() < 4.5


def test_heights_next_to_a_draw_are_told_apart_exactly():
    table = directions.heights(3, 0.0)
    digits = directions.Digits(2**63, 64)
    edge = table._edges[0][3] + (table._edges[0][4] - table._edges[0][3]) / 2
    height = float((1 - edge**2) / (1 + edge**2))
    exact = Fraction(edge) ** 2 * (1 + Fraction(height)) - (1 - Fraction(height))
    assert table._below(0, 3, digits, height, as_rng(1))[1] == (exact < 0)
    assert table._below(0, 3, digits, height - 1e-9, as_rng(1))[1]


@pytest.mark.parametrize("eps, d", [(1.0, 2), (4.0, 3), pytest.param(4.0, 10, marks=pytest.mark.soak)])
def test_radial_samples(eps, d):
    mechanism, rng = radial(eps, d).mechanism, np.random.default_rng(1)
    first, second = mechanism._means[:2].tolist()
    for length, n in ((0.0, 10_000), (1e-170, 1000), (first / 2, 10_000), (second, 500), (1.0, 10_000)):
        x = rng.standard_normal(d)
        x *= length / np.linalg.norm(x)
        y = mechanism.randomize(np.tile(x, (n, 1)), rng)
        error = ((y - x) ** 2).sum(axis=1)
        assert abs(error.mean() - mechanism.variance(x)) < 4.5 * error.std() / math.sqrt(n)
        assert np.abs((y.mean(axis=0) - x) / (y.std(axis=0) / math.sqrt(n))).max() < 4.5
        assert (y / mechanism.step == np.rint(y / mechanism.step)).all() and abs(y).max() <= mechanism.support()[1]


def test_the_error_of_a_radial_mechanism_is_known_everywhere():
    mechanism, rng = radial(4.0, 3).mechanism, np.random.default_rng(2)
    x = rng.standard_normal((20_000, 3))
    x *= (rng.random(20_000) ** (1 / 3) / np.linalg.norm(x, axis=1))[:, None]
    errors = mechanism.variance(x)
    low, high = mechanism.enclose(optdp.WorstCase("squared"))
    worst = mechanism.worst_case_loss("squared")
    assert errors.max() <= worst * (1 + 1e-12) and low * (1 - 1e-12) <= worst <= high
    assert abs(errors.mean() - mechanism.average_loss("squared")) < 4.5 * errors.std() / math.sqrt(errors.size)
    coarse = replace(mechanism, step=0.5).enclose(optdp.WorstCase("squared"))
    assert coarse == pytest.approx((low, high + 3 * 0.5**2 / 4), rel=1e-9)
    assert mechanism.satisfies(optdp.LDP(4.0)) and not mechanism.check_privacy(optdp.LDP(4.0 - 1e-7))[0].passed
    assert 4 - 1e-7 < float(mechanism.guarantee().eps) <= 4


def test_the_largest_error_between_rows_that_are_far_apart():
    """E|Y|^2 is linear between the means of rows, and the error a parabola: its largest value over a grid of norms in [0, 1]."""
    rng, between, grid = np.random.default_rng(8), 0, np.linspace(0, 1, 20_001)
    for _ in range(400):
        radii = np.sort(rng.uniform(0.2, 3, 4))
        c, reach = np.sort(rng.uniform(0.1, 2.5, int(rng.integers(1, 6)))), rng.uniform(0.3, 1.5)
        floors = (rng.uniform(0.01, 0.1, 4) * 2**62).astype(np.int64).tolist()
        try:
            made = RadialMechanism(optdp.Ball(3), radii, floors, 2 * c, reach**2 - c**2, 2.0**-30)
        except ValueError:  # means that do not increase to 1 or more
            continue
        means, squares = made._means, made._squares
        errors = np.interp(grid, means, squares) - grid**2
        low, high, at = made._worst
        assert low <= errors.max() * (1 + 1e-6) and errors.max() <= high <= errors.max() + 1e-6
        assert high * (1 - 1e-9) <= low <= high and made.enclose(optdp.WorstCase("squared"))[1] >= high
        assert np.interp(at, means, squares) - at**2 == pytest.approx(high, rel=1e-9)
        between += means[0] < at < 1 and np.abs(means - at).min() > 1e-3
    assert between >= 5


def test_the_row_of_an_input_is_chosen_with_exact_odds():
    """Near ties go to balls, and so do norms next to a row's mean, on whichever side floats put them."""
    mechanism, rng = radial(4.0, 3).mechanism, as_rng(3)
    ends = mechanism._ends
    middle = (ends[2] + ends[3]) / 2
    row = np.array([middle, 0.0, 0.0])
    assert mechanism._place_exactly(row, 2, 0, rng) == 3 and mechanism._place_exactly(row, 2, 2**62 - 1, rng) == 2
    for place in (1, 2, 3):
        row = np.array([ends[place], 0.0, 0.0])
        assert {mechanism._place_exactly(row, low, 2**61, rng) for low in (place - 1, place)} == {place}
    toss = math.floor((middle - ends[2]) / (ends[3] - ends[2]) * 2**62)
    tosses = [toss + k for k in (-4000, 4000)]
    assert [mechanism._place_exactly(np.array([middle, 0.0, 0.0]), 2, t, rng) for t in tosses] == [3, 2]


@pytest.mark.parametrize("change, message", [
    ({"radii": (0.5, 0.5)}, "radii are not allowed"), ({"floors": (1, 2**62)}, "floors are not allowed"),
    ({"slopes": (0.0,)}, "radii are not allowed|slopes are not allowed"), ({"step": 0.3}, "power of two"),
    ({"step": 2.0**-60}, "outputs must be floats"), ({"domain": optdp.Ball(1)}, "domain"),
])  # fmt: skip
def test_radial_mechanisms_refuse(change, message):
    own = radial(4.0, 3).mechanism
    two = {"radii": own.radii[:2], "floors": own.floors[:2]} if {"radii", "floors"} & set(change) else {}
    with pytest.raises((TypeError, ValueError), match=message):
        replace(own, **(two | change))
    with pytest.raises(ValueError, match="means must increase"):
        replace(own, slopes=own.slopes[:1], levels=own.levels[:1])


@pytest.mark.parametrize("eps", [0.3, 2.0])
def test_in_one_dimension_the_ball_and_the_cube_are_the_interval(eps):
    line = optdp.solve_kernel(eps, "squared", unbiased=True, domain=(-1, 1), rtol=0.02)
    for norm in ("l2", "linf"):
        best = optdp.solve_vector(eps, 1, norm=norm, inputs="ball", rtol=0.02)
        assert best.verify() and best.gap <= 0.02
        assert (best.lower_bound, best.value) == pytest.approx((line.lower_bound, line.value), rel=1e-12)
    x = np.full((50, 1), 0.25)
    assert best.mechanism.randomize(x, 1).shape == (50, 1)


def test_the_spheres_bound_is_for_unbiased_vectors_on_it_and_around_it():
    best = optdp.solve_vector(1.0, 4)
    own, uniform = best.certificate, optdp.Average("squared", "uniform")
    for domain in (optdp.Ball(4), optdp.Box.cube(4)):
        assert own.bound(problem(1.0, domain)).value == best.lower_bound
    assert own.bound(replace(best.problem, objective=uniform)).value == best.lower_bound
    assert best.lower_bound > 1  # what a constant output, which is biased, costs
    for other in (
        replace(best.problem, constraints=()), problem(1.0, optdp.Box.cube(4, 0, 1)), problem(1.0, optdp.Box((-1, -1), (1, 0.5))),
        replace(problem(1.0, optdp.Ball(4)), objective=uniform), replace(problem(1.0, optdp.Box.cube(4)), objective=uniform),
        replace(best.problem, privacy=optdp.ApproxDP(1.0)), replace(best.problem, objective=optdp.WorstCase("abs")),
    ):  # fmt: skip
        with pytest.raises(Refusal):
            own.bound(other)


@pytest.mark.parametrize("d", [2, 3])
def test_bounds_for_vectors_say_nothing_of_other_notions_objectives_or_biased_mechanisms(d):
    """One guard of a certificate at a time fails, all others hold."""
    cube, ball, sphere = optdp.Box.cube(d), optdp.Ball(d), optdp.Sphere(d)
    sides, uniform = optdp.Box.cube(d, 0, 1), optdp.Average("squared", "uniform")
    for own, domains, foreign in (
        (CubeCertificate(0.5, 0.01, 0.25, 0.0, (), ()), (cube,), (ball, sphere, sides)),
        (RadialCertificate((1.0,), (1.0,), (12.0,), (-3.0,)), (cube, ball), (sphere, sides, optdp.Ball(1), optdp.Box.cube(1))),
        (SphereCertificate(0.5), (cube, ball, sphere), (sides, optdp.OneHot(3))),
    ):  # fmt: skip
        for domain in domains:
            right = problem(1.0, domain)
            assert own.bound(right).value > 0
            for wrong in (
                {"privacy": optdp.ApproxDP(1.0)}, {"privacy": optdp.LDP(30.5)}, {"constraints": ()},
                {"objective": optdp.WorstCase("abs")}, {"objective": optdp.Average("abs", "uniform")},
                *([{"objective": uniform}] if domain is not sphere else []),
            ):  # fmt: skip
                with pytest.raises(Refusal, match="it is for"):
                    own.bound(replace(right, **wrong))
        for domain in foreign:
            with pytest.raises(Refusal, match="it is for"):
                own.bound(problem(1.0, domain))


def test_bounds_add_up_over_coordinates_for_squares_on_the_cube_alone():
    """Distances do not add up: d times the bound for numbers is more than any mechanism for vectors need lose."""
    numbers = optdp.solve_kernel(1.0, domain=(-1, 1), rtol=0.05).certificate
    squares = optdp.solve_kernel(1.0, "squared", unbiased=True, domain=(-1, 1), rtol=0.05)
    each, cube = CoordinatesCertificate(squares.certificate), optdp.Box.cube(3)
    assert each.bound(problem(1.0, cube)).value == pytest.approx(3 * squares.lower_bound, rel=1e-15)
    for d in (3, 5, 7, 11, 100):  # a sum that no float holds is rounded down
        assert Fraction(each.bound(problem(1.0, optdp.Box.cube(d))).value) <= d * Fraction(squares.lower_bound)
    for other in (
        optdp.Problem(optdp.LDP(1.0), cube, "abs", constraints=[optdp.Unbiased()]), optdp.Problem(optdp.LDP(1.0), cube, "abs"),
        optdp.Problem(optdp.LDP(1.0), cube, "squared"), problem(1.0, optdp.Box.cube(3, 0, 1)), problem(1.0, optdp.Ball(3)),
        replace(problem(1.0, cube), objective=optdp.Average("squared", "uniform")),
        replace(problem(1.0, cube), privacy=optdp.ApproxDP(1.0)),
    ):  # fmt: skip
        for certificate in (CoordinatesCertificate(numbers), each):
            with pytest.raises(Refusal, match=r"cube|worst case"):
                certificate.bound(other)


@settings(max_examples=40)
@given(epsilons(1e-3, 29.9), st.integers(2, 10**5))
def test_lifted_to_one_dimension_more_the_error_is_the_same_for_all_inputs(eps, d):
    """With the best cap; and never below the sphere's optimum."""
    lifted = LiftedMechanism.private(eps, optdp.Ball(d))
    (zero, _), (one, _), _ = lifted._ends
    assert float(zero) == pytest.approx(float(one), rel=1e-6)
    low, high = lifted.enclose(optdp.WorstCase("squared"))
    assert low <= high <= low * (1 + 1e-6)
    assert high >= optdp.solve_vector(eps, d).lower_bound


@pytest.mark.parametrize("d, eps", [(2, 3.0), (5, 10.0)])
def test_lifted_samples(d, eps):
    mechanism, rng, n = LiftedMechanism.private(eps, optdp.Ball(d)), np.random.default_rng(0), 40_000
    for length in (0.0, 0.7, 1.0):
        x = rng.standard_normal(d)
        x *= length / np.linalg.norm(x)
        y = mechanism.randomize(np.tile(x, (n, 1)), rng)
        error = ((y - x) ** 2).sum(axis=1)
        assert abs(error.mean() - mechanism.variance(x)) < 4.5 * error.std() / math.sqrt(n)
        assert np.abs((y.mean(axis=0) - x) / (y.std(axis=0) / math.sqrt(n))).max() < 4.5


# --- the cube


@pytest.mark.parametrize("norm", ["l1", "l2"])
@pytest.mark.parametrize("domain", [optdp.Ball(2), optdp.Sphere(2)], ids=str)
def test_noise_for_vectors_is_private_for_the_longest_that_are_taken(domain, norm):
    """A norm that rounding has made larger than 1 is taken for 1: all inputs are as near as the scale asks."""

    class Still(np.random.Generator):
        def laplace(self, loc, scale, size):
            return np.zeros(size)

        def standard_normal(self, size):
            return np.ones(size)

        def gamma(self, shape, scale, size):
            return np.zeros(size)

    mechanism = VectorLaplace(1.0, domain, norm)
    ends = np.array([1.0, 1.0]) / math.sqrt(2) * (1 + 9e-6) * np.array([[1], [-1]])
    one, two = mechanism.randomize(ends, Still(np.random.PCG64(0)))
    assert np.linalg.norm(one - two, int(norm[1])) <= mechanism.scale * (1 + 1e-15)


def test_agreements_are_binomial():
    for k, least in ((1, 1), (5, 3), (8, 8), (60, 40)):
        n = np.arange(least, k + 1)
        assert float(share(k, least)) == pytest.approx(binom.sf(least - 1, k, 0.5), rel=1e-12)
        assert float(moment(k, least)) == pytest.approx(((2 * n - k) * binom.pmf(n, k, 0.5)).sum(), rel=1e-12)
    for eps in (0.5, 3.0, 9.0):
        k, least = best_signs(eps, 40)
        found = max((float(gain(eps, j, m)), -j) for j in range(1, 41) for m in range(1, j + 1))
        assert float(gain(eps, k, least)) == pytest.approx(found[0], rel=1e-12)
        assert threshold(eps, k)[0] == pytest.approx(found[0], rel=1e-9)


def test_products_of_many_coordinates_say_what_they_guarantee():
    """The exact ratio of 50 coordinates has more digits than numbers may have."""
    part = optdp.solve_kernel(0.1, "squared", unbiased=True, domain=(-1, 1), rtol=0.05).mechanism
    for d in (2, 50, 10**5):  # the power for so many would have 10^7 digits
        mechanism = ProductMechanism(optdp.Box.cube(d), part)
        whole = mechanism.guarantee()
        assert d * float(part.guarantee().eps) <= float(whole.eps) * (1 + 1e-15) <= d * 0.1 * (1 + 2e-15)
        assert all(check.passed for check in mechanism.check_privacy(whole))
        assert not mechanism.check_privacy(optdp.LDP(d * 0.099))[0].passed


@pytest.mark.parametrize("ratio", [Fraction(11, 10), Fraction(3), Fraction(10**6, 7)])
@pytest.mark.parametrize("share", [Fraction(1, 1024), Fraction(1, 4), Fraction(7, 8)])
def test_coins_of_a_part_are_the_most_that_the_ratio_allows(ratio, share):
    """In rationals: the density of the part is at most e^eps times the others', and would not be with another coin."""
    for bits in (40, 320):  # with few of them it is fewer coins, never more
        with ctx.workprec(bits):
            part = enclosures.ball(share)
            coins = coins_below(optdp.log(ratio), part, "", "")
            found = [odds_above(n, part) for n in (coins, COINS // 3, 1)]
        for n, above in zip((coins, COINS // 3, 1), found, strict=True):
            odds = Fraction(n, COINS - n) * (1 - share) / share
            true = max(odds, 1 / odds)
            assert true <= above <= true * (1 + Fraction(1, 2 ** (bits - 16)))
        assert Fraction(coins, COINS - coins) * (1 - share) / share <= ratio
    assert Fraction(coins + 1, COINS - coins - 1) * (1 - share) / share > ratio


def test_answers_together_have_the_sum_of_their_guarantees(monkeypatch):
    assert composed(optdp.LDP(0.1), 3).eps == 3 * Fraction(0.1)
    assert composed(optdp.LDP(optdp.log(Fraction(3))), 4).eps == optdp.log(Fraction(81))
    assert composed(None, 2) is None and composed(optdp.ApproxDP(1.0), 2) is None
    monkeypatch.setattr(product_module, "DIGITS", 4)
    for times in (2, 3, 7):  # 5^2 has more digits than are kept: rounded up, by little
        eps = Fraction(composed(optdp.LDP(optdp.log(Fraction(5, 3))), times).eps)
        with ctx.workprec(400):
            true = enclosures.ball(Fraction(5, 3)).log() * times
            assert true <= enclosures.ball(eps) <= true * (1 + arb(2) ** -200)
            part = share_of(optdp.log(Fraction(5, 3)), times)
            assert true / times / times * (1 - arb(2) ** -200) <= enclosures.ball(part) <= true / times / times
    assert share_of(0.1, 3) == Fraction(0.1) / 3


@pytest.mark.parametrize("bits", [40, 320])
def test_errors_of_rounded_outputs_are_enclosed_on_coarse_grids(bits, monkeypatch):
    """E|Y|^2 is r^2, and what rounding adds: between 0 and a quarter of the square of the grid in each coordinate sent."""
    for module in ("cap", "signs"):
        monkeypatch.setattr(f"optdp.mechanisms.{module}.PRECISION", bits)
    uniform, worst, coins = optdp.Average("squared", "uniform"), optdp.WorstCase("squared"), COINS // 5 * 4
    chance, near = Fraction(coins, COINS), 2.0 ** (16 - min(bits, 64))
    for height, step in ((Fraction(0), 1.0), (Fraction(1, 2), 0.25)):
        share, moment = (1 - height) / 2, (1 - height**2) / 4
        square = 1 / (chance * moment / share - (1 - chance) * moment / (1 - share)) ** 2
        added = 3 * Fraction(step) ** 2 / 4
        for domain, least, average in ((optdp.Ball(3), 0, Fraction(3, 5)), (optdp.Sphere(3), 1, 1)):
            made = CapMechanism(domain, float(height), coins, step)
            assert made.least <= square and square + added <= made._square[1]
            low, high = made.enclose(worst)
            assert low <= square - least and square - least + added <= high
            assert (low, high) == pytest.approx((square - least, square - least + added), rel=near)
            assert made.variance(made.worst_input()) == pytest.approx(high, rel=1e-12)
            given = np.array([[0.6, 0.0, 0.8], [0.6, 0.0, 0.0]][: 2 - least])
            true = [float(square + added) - size for size in (1.0, 0.36)[: 2 - least]]
            assert made.variance(given) == pytest.approx(true, rel=near)
            reach = math.sqrt(square) + step  # nowhere is a coordinate of r u larger than r
            assert -made.support()[0] == made.support()[1] and reach <= made.support()[1] <= reach + 3 * step
            assert made.average_loss() == pytest.approx(float(square + added - average), rel=near)
        assert made.enclose(uniform) == (low, high)
    made = SignMechanism(optdp.Box.cube(3), 2, 2, coins)
    r = 3 / (2 * chance - Fraction(2, 3) * (1 - chance))
    made.__dict__["_floats"] = (2.0, 3.0)  # as if no float lay between
    low, high = made.enclose(worst)
    assert 2 < r < 3 and low <= 2 * r * r <= 2 * (r * r + (r - 2) * (3 - r)) <= 2 * r * r + Fraction(2, 4) <= high
    assert (low, high) == pytest.approx((2 * r * r, 2 * r * r + Fraction(2, 4)), rel=near)
    assert made.average_loss() == pytest.approx(high - 1, rel=1e-12)
    assert made.support() == (-3.0, 3.0) and made.variance([0.5, 0.0, -1.0]) == pytest.approx(high - 1.25, rel=1e-12)
    for other in (uniform, optdp.WorstCase("abs")):
        with pytest.raises(TypeError, match="no proven value"):
            made.enclose(other)
    assert made.guarantee().eps.argument >= chance / (1 - chance) * 3


def test_errors_of_products_are_rounded_outwards():
    part = KernelMechanism.private(optdp.log(3), [1.0, 1.0], [0.25, 0.75], [0.25, 0.75], 0.5, (-1, 1))
    worst, ends = optdp.WorstCase("squared"), tuple(map(Fraction, part.enclose(optdp.WorstCase("squared"))))
    for d in range(2, 30):
        low, high = map(Fraction, ProductMechanism(optdp.Box.cube(d), part).enclose(worst))
        assert (
            low <= d * ends[0] <= low * (1 + Fraction(1, 2**52))
            and high * (1 - Fraction(1, 2**52)) <= d * ends[1] <= high
        )


def test_products_are_checked_as_a_whole():
    """Twice log(3) is log(9): a third and a ninth have no finite digits that could be lost between the two."""
    part = KernelMechanism.private(optdp.log(3), [1.0, 1.0], [0.25, 0.75], [0.25, 0.75], 0.5, (-1, 1))
    exact = replace(part, floor_coins=2**123)  # a window of half of the floor: the ratio is 3
    whole = ProductMechanism(optdp.Box.cube(2), exact)
    assert exact.exact_ratio == 3 and whole.guarantee() == optdp.LDP(optdp.log(9))
    for privacy, kept in ((optdp.LDP(optdp.log(9)), True), (optdp.LDP("2.1972"), False)):
        checks = whole.check_privacy(privacy)
        assert [check.name for check in checks] == ["privacy", "mass"]
        assert whole.satisfies(privacy) is checks[0].passed is kept and "guarantees log(9)-LDP" in checks[0].detail


def test_two_coordinates_from_where_they_are_better():
    """One coordinate up to e^eps = 1 + 2 sqrt(2), then two."""
    bar = math.log(1 + 2 * math.sqrt(2))
    assert best_signs(bar - 1e-6, 50)[0] == 1 and best_signs(bar + 1e-6, 50)[0] == 2


@pytest.mark.parametrize("eps", [0.1, 1.0])
@pytest.mark.parametrize("d", [2, 10, 1000])
def test_one_coordinate_at_a_time_is_proven_best_on_the_vertices_up_to_log_3(d, eps):
    best = cube(eps, d)
    assert best.verify() and best.mechanism.k == 1
    assert best.lower_bound == pytest.approx(best.value - d, rel=1e-4)


@pytest.mark.parametrize(
    "d, eps", [(3, 2.0), pytest.param(10, 8.0, marks=pytest.mark.soak), (100, 20.0), (1000, 4.0), (1000, 30.0)]
)
def test_brackets_of_the_cube(d, eps):
    best = cube(eps, d)
    assert best.verify() and 0 < best.lower_bound < best.value
    a = threshold(eps, best_signs(eps, d)[0])[0]
    assert best.lower_bound <= (d / a) ** 2 - d + 1e-9 and best.value <= (d / a) ** 2 * (1 + 1e-9)
    if isinstance(best.certificate, CubeCertificate):
        assert a <= best.certificate.gain < 1.12 * a
    for name, other in baselines.applicable(best.problem).items():
        assert other.worst_case_loss("squared") >= best.lower_bound, name


@pytest.mark.parametrize(
    "d, eps",
    [
        pytest.param(2, 5.0, marks=pytest.mark.soak),
        pytest.param(3, 8.0, marks=pytest.mark.soak),
        pytest.param(10, 30.0, marks=pytest.mark.soak),
        (100, 8.0),
    ],
)
def test_the_balls_in_and_around_a_cube(d, eps):
    """The unit ball bounds the cube from below, and the one of radius sqrt(d) from above, where both say more than vertices."""
    best, ball = optdp.solve_vector(eps, d, norm="linf"), optdp.solve_vector(eps, d, inputs="ball", rtol=1e-2)
    assert best.verify() and isinstance(best.mechanism, ScaledMechanism)
    assert best.lower_bound >= ball.lower_bound and best.value <= d * ball.value * (1 + 2e-5)
    assert best.value < SignMechanism.private(eps, optdp.Box.cube(d)).worst_case_loss()
    assert best.mechanism.guarantee() == ball.mechanism.guarantee()
    for proof in (ball.certificate, optdp.solve_vector(eps, d).certificate):
        assert 0 < proof.bound(best.problem).value <= best.value
        with pytest.raises(Refusal):
            proof.bound(problem(eps, optdp.Box.cube(d, 0, 1)))
    again = optdp.Solution.from_dict(json.loads(json.dumps(best.to_dict())))
    assert again.mechanism == best.mechanism and again.verify()


@cache
def cube(eps, d):
    """The solution of a cube."""
    return optdp.solve_vector(eps, d, norm="linf")


@pytest.mark.parametrize("n", [10_000, pytest.param(30_000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("d, eps", [pytest.param(2, 5.0, marks=pytest.mark.soak), (3, 4.0), (70, 6.0)])
def test_a_cube_in_a_ball_is_sampled_without_bias(d, eps, n):
    made, rng = cube(eps, d).mechanism, np.random.default_rng(3)
    assert isinstance(made, ScaledMechanism) and made.check_unbiased().passed
    for x in (np.ones(d), np.zeros(d), rng.uniform(-1, 1, d), made.worst_input()):
        y = made.randomize(np.tile(x, (n, 1)), rng)
        error = ((y - x) ** 2).sum(axis=1)
        assert np.abs((y.mean(axis=0) - x) / (y.std(axis=0) / math.sqrt(n))).max() < 4.5
        assert error.mean() - made.enclose(optdp.WorstCase("squared"))[1] < 4.5 * error.std() / math.sqrt(n)
        assert abs(error.mean() - made.variance(x)) < 4.5 * error.std() / math.sqrt(n)
    steps = y / (made.scale * (made.whole.whole if isinstance(made.whole, LiftedMechanism) else made.whole).step)
    assert (steps == np.rint(steps)).all()


@pytest.mark.parametrize("domain", [optdp.Sphere(1), optdp.Sphere(3), optdp.Ball(1), optdp.Ball(3)], ids=str)
def test_norms_that_count_as_1_have_the_mean_of_the_direction(domain):
    """What is stated is about the vector that is read, which is not quite the input."""
    best, d = optdp.solve(problem(3.0, domain)).mechanism, domain.dimension
    made = {"best": best, **baselines.applicable(problem(3.0, domain))}
    for norm in (1 + 9e-6, 1 + 1e-9) + ((1 - 9e-6,) if isinstance(domain, optdp.Sphere) else ()):
        x = np.full(d, norm / math.sqrt(d))
        for name, one in made.items():
            assert np.abs(one.mean(x) - 1 / math.sqrt(d)).max() < 1e-14, name
            sent = [one.randomize(np.tile(v, (100, 1)), 2) for v in (x, one.mean(x))]
            assert np.allclose(*sent, rtol=1e-12, atol=1e-12), name


def test_a_cube_in_a_ball_reads_multiples_of_a_power_of_two():
    made = cube(4.0, 3).mechanism
    assert isinstance(made, ScaledMechanism)
    assert made.mean([2.0**-52, -(2.0**-54), -1.0]).tolist() == [2.0**-52, 0.0, -1.0]


def test_a_cube_in_a_ball_that_is_none():
    whole, cube = CapMechanism.private(5.0, optdp.Ball(2)), optdp.Box.cube(2)
    for domain, ball, scale in (
        (optdp.Box((0, 0), (1, 1)), whole, 1.5), (cube, whole, 1.4), (cube, whole, 1.4142135623730954),
        (cube, CapMechanism.private(5.0, optdp.Ball(3)), 2.0), (cube, CapMechanism.private(5.0, optdp.Sphere(2)), 2.0),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="not allowed"):
            ScaledMechanism(domain, ball, scale)


def test_the_bound_of_the_cube_holds_for_every_direction():
    """E[(X - a)_+] by enumeration of the signs, for random, sparse and equal directions."""
    rng = np.random.default_rng(1)
    signs = np.array(np.meshgrid(*[[-1, 1]] * 8)).reshape(8, -1).T
    for eps in (1.0, 3.0, 6.0):
        certificate = certify(problem(eps, optdp.Box.cube(8)))[0]
        for _ in range(300):
            u = rng.standard_normal(8) * (rng.random(8) < rng.random())
            u = u if u.any() else np.eye(8)[0]
            u = np.round(u) if rng.random() < 0.5 and np.round(u).any() else u
            x = signs @ (u / np.linalg.norm(u))
            assert math.expm1(eps) * np.maximum(x - certificate.gain, 0).mean() <= certificate.gain


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 30), st.floats(0.05, 8.0), st.floats(-0.3, 0.5), st.floats(0, 0.05),
    st.lists(st.tuples(st.floats(0.1, 2.0), st.floats(0.001, 0.3)), max_size=3),
)  # fmt: skip
def test_the_inequalities_of_the_cube_are_decided_as_on_a_grid(d, gain, square, fourth, cosines):
    """The least constant for which q(x) >= (x - a)_+/2, and the largest eps for which all adds up to the gain."""
    x = np.linspace(0, math.sqrt(d), 20_001)
    rest = square * x**2 + fourth * x**4 + sum(b * np.cosh(s * x) / np.cosh(s / math.sqrt(d)) ** d for s, b in cosines)
    least = float((np.maximum(x - gain, 0) / 2 - rest).max())
    slopes, weights = zip(*cosines, strict=True) if cosines else ((), ())

    def bound(constant, eps):
        return (
            CubeCertificate(gain, constant, square, fourth, slopes, weights)
            .bound(problem(eps, optdp.Box.cube(d)))
            .value
        )

    total = least + 1e-4 + square + fourth * (3 - 2 / d) + sum(weights)
    most = math.log1p(gain / total) if total > 0 else math.inf
    with pytest.raises(Refusal):
        bound(least - 1e-4, 1e-3)
    if 1e-3 < most < 29:
        assert bound(least + 1e-4, most * (1 - 1e-9)) == pytest.approx(
            max(0.0, d**2 / gain**2 - d), rel=1e-12, abs=1e-9
        )
        with pytest.raises(Refusal, match="add up"):
            bound(least + 1e-4, most * (1 + 1e-9))


def test_cells_of_the_inequality_of_the_cube_are_bounded_from_below():
    """On wide cells, where a wrong sign or a term left out of Taylor's formula shows; at minima; where middles are rounded."""
    rng, tight = np.random.default_rng(6), 0

    def check(low, high, gain, square, fourth, scaled, constant=0.0):
        proof, beyond = CubeCertificate(gain, constant, square, fourth, (), ()), low >= gain
        _, value, least = proof._cell(arb(low), arb(high), beyond, [(arb(s), arb(b)) for s, b in scaled])
        x = np.linspace(low, high, 101)
        true = constant + square * x**2 + fourth * x**4 + sum(b * np.cosh(s * x) for s, b in scaled)
        true -= beyond * (x - gain) / 2
        assert float(least) <= true.min() + 1e-12 and float(value) == pytest.approx(true[50], abs=1e-12)
        return float(least) >= true.min() - 1e-3

    for _ in range(200):
        places, (square, constant), fourth = np.sort(rng.uniform(0, 3, 3)), rng.uniform(-1, 1, 2), float(rng.random())
        gain, low, high = (places if rng.random() < 0.5 else places[[2, 0, 1]]).tolist()
        scaled = list(zip(rng.uniform(0, 2, 2).tolist(), rng.uniform(0, 0.5, 2).tolist(), strict=True))
        check(
            low,
            high,
            gain,
            float(square),
            fourth * int(rng.integers(0, 2)),
            scaled[: rng.integers(0, 3)],
            float(constant),
        )
        middle, away = (
            float(rng.uniform(1, 3)),
            float(rng.uniform(-0.009, 0.009)),
        )  # x^4's minimum with -x^2, next to the middle
        tight += check(
            middle - 0.01, middle + 0.01, 9.0, 4 * fourth * middle * away - 2 * fourth * middle**2, fourth, []
        )
    assert tight > 150
    with ctx.workprec(4):  # 17/16 is rounded: to 1, or to 9/8
        least = CubeCertificate(9.0, 0.0, -1.0, 0.0, (), ())._cell(arb(1), arb(9) / 8, False, [])[2]
        assert not least > arb(-81 / 64)


@pytest.mark.parametrize("constant", [0.204, 0.205, 0.206])
def test_the_whole_interval_of_the_cube_is_checked_however_few_digits_its_end_has(constant, monkeypatch):
    """X may be sqrt(2) itself, where the inequality fails by little: (sqrt(2) - 1)/2 = 0.2071..."""
    monkeypatch.setattr(cube_module, "PRECISION", 8)
    with pytest.raises(Refusal, match="no upper bound"):
        CubeCertificate(1.0, constant, 0.0, 0.0, (), ()).bound(problem(0.5, optdp.Box.cube(2)))
    assert CubeCertificate(1.0, 0.25, 0.0, 0.0, (), ()).bound(problem(0.5, optdp.Box.cube(2))).value == 2.0


def test_forged_multipliers_are_refused():
    best = cube(3.0, 10)
    good = best.certificate
    parts = (good.gain, good.constant, good.square, good.fourth, good.slopes, good.weights)
    for i, wrong in ((0, good.gain * 0.9), (1, good.constant - 1e-3), (1, good.constant + 1.0), (3, 0.0)):
        with pytest.raises(Refusal):
            CubeCertificate(*parts[:i], wrong, *parts[i + 1 :]).bound(best.problem)
    with pytest.raises(ValueError, match="fourth must be a number in"):
        replace(good, fourth=-1.0)
    # A moment is bounded from above alone: less than nothing of it proves nothing.
    for change in ({"slopes": (1.0,), "weights": (-1e-6,)}, {"slopes": (1.0,), "weights": ()}, {"gain": 0.0}):
        with pytest.raises(ValueError, match=r"one multiplier for|weights are not allowed"):
            replace(good, **change).bound(best.problem)
    with pytest.raises(Refusal):
        CubeCertificate(math.sqrt(10) * (1 - 1e-9), 0.0, 0.0, 0.0, (), ()).bound(best.problem)
    for other in (
        problem(3.5, optdp.Box.cube(10)),
        problem(3.0, optdp.Sphere(10)),
        problem(3.0, optdp.Box.cube(10, 0, 1)),
    ):
        with pytest.raises(Refusal):
            good.bound(other)


@pytest.mark.parametrize("given", [(0, None), (6, None), (3, 0), (3, 4), ("a", 1), (2, 1.5)])
def test_signs_name_what_is_not_allowed(given):
    name = "least" if given[1] not in (None, 1) else "k"
    with pytest.raises((TypeError, ValueError), match=f"^{name} = "):
        SignMechanism.private(1.0, optdp.Box.cube(5), *given)


@pytest.mark.parametrize("d, k, least", [(1, 1, 1), (4, 1, 1), (4, 4, 3), (6, 3, 2)])
def test_sign_vectors_by_enumeration(d, k, least):
    """Probabilities of the outputs at vertices, their mean, and samples against them."""
    mechanism = SignMechanism.private(2.0, optdp.Box.cube(d), k, least)
    x = np.where(np.arange(d) % 2, 1.0, -1.0)
    n = 40_000
    y = mechanism.randomize(np.tile(x, (n, 1)), 1)
    used = np.abs(y) > 0
    assert (used.sum(axis=1) == k).all() and set(np.abs(y[used])) <= set(mechanism._floats)
    assert not np.signbit(y[~used]).any()  # a minus zero would tell the sign of an input that is not sent
    agree = ((y * x) > 0).sum(axis=1)
    inside, tail = mechanism.coins / 2**124, binom.sf(least - 1, k, 0.5)
    j = np.arange(k + 1)
    law = binom.pmf(j, k, 0.5) * np.where(j >= least, inside / tail, (1 - inside) / (1 - tail))
    counts = np.bincount(agree, minlength=k + 1)
    assert chi2.sf(((counts - n * law) ** 2 / (n * law)).sum(), k) > 1e-4
    _, patterns = np.unique(np.sign(y) * x, axis=0, return_counts=True)
    assert len(patterns) == math.comb(d, k) * 2**k
    assert np.abs(y.mean(axis=0) - x).max() < 4.5 * y.std(axis=0).max() / math.sqrt(n)
    assert float(np.square(y).sum(axis=1).mean()) == pytest.approx(float(mechanism._square[1]), rel=1e-9)
    assert mechanism.check_privacy(optdp.LDP(2.0))[0].passed
    assert optdp.Mechanism.from_dict(mechanism.to_dict()) == mechanism


@pytest.mark.parametrize("eps", [0.5, pytest.param(4.0, marks=pytest.mark.soak)])
def test_no_zero_has_a_sign(eps):
    """The optimum and every baseline on the cube: coordinates that are not sent look alike whatever the input is."""
    best = optdp.solve_vector(eps, 5, norm="linf")
    x = np.where(np.arange(5) % 2, 1.0, -1.0)
    for mechanism in (best.mechanism, *baselines.applicable(best.problem).values()):
        y = mechanism.randomize(np.tile(x, (500, 1)), 3)
        assert not np.signbit(y[y == 0]).any(), mechanism


def test_agreements_by_balls_have_the_same_law():
    mechanism, rng = SignMechanism.private(6.0, optdp.Box.cube(12), 12, 9), as_rng(2)
    for inside in (True, False):
        found = [
            mechanism._exactly(inside, directions.Digits(int(rng.integers(0, 2**62)), 62), rng) for _ in range(3000)
        ]
        j = np.arange(9, 13) if inside else np.arange(9)
        law = binom.pmf(j, 12, 0.5)
        law = 3000 * law / law.sum()
        counts = np.bincount(found, minlength=13)[j]
        few = law > 5
        assert counts.sum() == 3000
        assert chi2.sf(((counts - law) ** 2 / law)[few].sum(), few.sum() - 1) > 1e-4


def test_agreements_beyond_the_first_digits_of_a_toss_are_drawn():
    """A number of agreements that is never drawn has sign vectors that rule this input out, and no other one."""
    mechanism, rng = SignMechanism.private(1.0, optdp.Box.cube(70), 70, 35), np.random.default_rng(1)

    class Least:  # the 62 bits of each first toss are all 0
        def integers(self, low, high, size=None):
            return rng.integers(low, high) if size is None else np.zeros(size, dtype=np.int64)

    with ctx.workprec(128):
        part = share(70, 35) / 2**62  # of the law: all that these tosses stand for
        law = np.array([float(share(70, n) / part) for n in range(66, 71)])  # P(N >= n)
    assert law[-1] > 0.003  # all 70 agree in one of 200
    found = mechanism._agreements(1000, Least())
    for n, chance in zip(range(66, 71), law.tolist(), strict=True):
        if chance < 1:
            assert binomtest(int((found >= n).sum()), 1000, chance).pvalue > 1e-4


def test_rounding_to_vertices_is_exact():
    rng, n = np.random.default_rng(0), 50_000
    for x in (0.3, -0.999, 1.0, -1.0, 0.0, 2.0**-60):
        up = SignMechanism._vertices(np.full((n, 1), x), rng)
        assert set(np.unique(up)) <= {-1.0, 1.0}
        assert binomtest(int((up > 0).sum()), n, (1 + x) / 2).pvalue > 1e-5

    class Fixed:  # the first 53 bits are those of x
        def integers(self, low, high, size=None):
            return np.full(size, 2**52) if size is not None else int(rng.integers(low, high))

    tied = [SignMechanism._vertices(np.array([[2.0**-53]]), Fixed())[0, 0] > 0 for _ in range(2000)]
    assert binomtest(sum(tied), 2000, 0.5).pvalue > 1e-4


# --- baselines, estimates, command line


@pytest.mark.parametrize("eps", [0.5, pytest.param(8.0, marks=pytest.mark.soak)])
def test_no_baseline_is_below_the_bound(eps):
    for domain in (optdp.Sphere(2), optdp.Sphere(200), optdp.Ball(3), optdp.Box.cube(40)):
        best = optdp.solve(problem(eps, domain), rtol=0.02)
        for name, other in baselines.applicable(best.problem).items():
            assert other.worst_case_loss("squared") >= best.lower_bound * (1 - 1e-12), name


@pytest.mark.parametrize("domain", [optdp.Sphere(5), optdp.Ball(4), optdp.Box.cube(5)], ids=str)
def test_baselines_are_unbiased_and_have_the_stated_error(domain):
    rng, n = np.random.default_rng(6), 30_000
    for name, other in baselines.applicable(problem(6.0, domain)).items():
        x = np.asarray(other.worst_input("squared"))
        y = other.randomize(np.tile(x, (n, 1)), rng)
        error = ((y - x) ** 2).sum(axis=1)
        assert abs(error.mean() - other.worst_case_loss("squared")) < 4.5 * error.std() / math.sqrt(n) + 1e-9, name
        assert np.abs((y.mean(axis=0) - x) / (y.std(axis=0) / math.sqrt(n) + 1e-12)).max() < 4.5, name
        if isinstance(other, SampledCoordinates):
            assert ((y != 0).sum(axis=1) <= other.k).all()
            assert other.k == (1 if name.startswith("OPTT") else published_size(6.0, domain))


def test_supports_of_sampled_coordinates_are_rounded_as_what_is_sent():
    cube, part = optdp.Box.cube(23), baselines.unbiased.duchi(1.0)
    for k in range(1, 23):
        made = SampledCoordinates(cube, part, k)
        sent = made.randomize(np.zeros((20, 23)), 1)
        assert made.support() == (sent.min(), sent.max())


@pytest.mark.parametrize("domain", [optdp.Sphere(5), optdp.Ball(2), optdp.Box.cube(5)], ids=str)
def test_zeros_that_are_sent_have_no_sign(domain):
    """-0 beside 0 would tell the sign of a coordinate that is not sent."""
    best = optdp.solve(problem(1.0, domain), rtol=0.05 if isinstance(domain, optdp.Box) else 0.01).mechanism
    for name, made in {"best": best, **baselines.applicable(problem(1.0, domain))}.items():
        y = made.randomize(np.full((500, domain.dimension), -1 / math.sqrt(domain.dimension)), 1)
        assert not (np.signbit(y) & (y == 0)).any(), name


def test_mean_vectors_with_regions():
    """The region for the whole vector and the intervals of the coordinates cover as often as they say."""
    for best in (
        optdp.solve_vector(2.0, 6, inputs="ball", rtol=0.01),
        optdp.solve_vector(2.0, 6, norm="linf", rtol=0.2),
    ):
        rng = np.random.default_rng(8)
        inside, single, runs, n = 0, 0, 100, 500
        people = rng.standard_normal((n, 6)) * 0.1 + [0.3, -0.2, 0, 0, 0.1, 0]
        people /= np.maximum(1.0, np.linalg.norm(people, axis=1))[:, None]
        outputs = best.mechanism.randomize(np.tile(people, (runs, 1, 1)), rng)
        for y in outputs:
            found = optdp.estimate(best.mechanism, y)
            good = (found.interval[0] <= people.mean(axis=0)) & (people.mean(axis=0) <= found.interval[1])
            single += int(good.sum())
            inside += int(((found.band[0] <= people.mean(axis=0)) & (people.mean(axis=0) <= found.band[1])).all())
        assert inside >= 0.95 * runs - 4 * math.sqrt(runs * 0.05) and single >= 0.95 * 6 * runs - 4 * math.sqrt(
            6 * runs * 0.05
        )
    with pytest.raises(ValueError, match="6 as their last axis"):
        optdp.estimate(best.mechanism, outputs[..., :5])
    with pytest.raises(TypeError, match="'mean'"):
        optdp.estimate(best.mechanism, outputs, "histogram")


def test_reports_and_the_command_line(tmp_path, capsys):
    from optdp.cli import main

    report = optdp.gap_report({"problem": "vector", "eps": [1.0, 8.0], "dim": [2, 50]})
    assert len(report.rows) == 4 and all(row["verified"] and row["PrivUnit"] >= 1 for row in report.rows)
    assert [row["dim"] for row in report.rows] == [2, 2, 50, 50]
    out = str(tmp_path / "v.json")
    assert main(["solve", "vector", "--eps", "2", "--dim", "5", "--out", out, "--plot", str(tmp_path / "v.png")]) == 0
    assert "from the unit sphere in R^5 to R^5" in capsys.readouterr().out
    assert main(["verify", out]) == 0
    assert (
        main(["solve", "vector", "--eps", "2", "--dim", "5", "--norm", "linf", "--plot", str(tmp_path / "c.png")]) == 0
    )
    assert main(["report", "vector", "--eps", "1", "--dim", "3", "--norm", "linf", "--markdown"]) == 0
    assert "OPTT, 1 of d / value" in capsys.readouterr().out


class Answers(np.random.Generator):
    """A source whose single integers are `one`, and those in arrays `many`."""

    def __init__(self, one, many):
        super().__init__(np.random.PCG64(0))
        self.one, self.many = one, many

    def integers(self, low, high=None, size=None, dtype=np.int64, endpoint=False):
        return self.one if size in (None, ()) else np.full(size, self.many)


def test_a_place_whose_64_bits_hold_the_edge_of_a_cap_is_decided_by_more(monkeypatch):
    """Just above -1 a cap's edge is so near to the pole that one unit of the place is more than floats are wrong by."""
    table, least, place = directions.heights(2, 0.0), np.array([2.0**-53 - 1]), 771406097563
    for digits, kept in ((0, False), (2**62 - 1, True)):
        drawn = iter([place, 2**63])
        monkeypatch.setattr(
            table, "draw", lambda side, rng, d=drawn: (side * 0, np.array([next(d)], dtype=np.uint64), {})
        )
        _, _, places, known = table.draw_above(least, Answers(digits, 1))
        assert (places[0] == place) == kept == bool(known)


def test_vertices_keep_the_mean_of_numbers_next_to_0():
    """-2^-200 goes down with the probability (1 + 2^-200)/2: where the toss ends next to 0 all further bits decide."""
    for digits, vertex in ((2**62 - 1, -1), (0, 1)):
        assert SignMechanism._vertices(np.array([[-(2.0**-200)]]), Answers(digits, 2**52 - 1)).item() == vertex

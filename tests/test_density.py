"""Priors with a density: masses in exact rationals, averages against quadrature, brackets against priors of many points."""

import json
import pickle
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

import optdp
from optdp import Density
from optdp.exact.polynomial import moved, primitive
from optdp.exact.sweep import horner
from optdp.mechanisms.kernel import KernelMechanism
from optdp.report.compare import value_of
from tests.counting import of_fractions

SHAPE = Density.proportional((0, "1/4", "1/2", 1), ((1, 4), (2,), (4, -4)))


@st.composite
def densities(draw):
    """Random pieces on a random interval, each with nonnegative Bernstein coefficients."""
    low = draw(st.fractions(-5, 5, max_denominator=20))
    steps = draw(st.lists(st.fractions(Fraction(1, 10), 3, max_denominator=10), min_size=1, max_size=4))
    breaks = [low + sum(steps[:k], Fraction(0)) for k in range(len(steps) + 1)]
    rows = []
    for a, b in pairwise(breaks):
        ends = draw(st.tuples(*[st.fractions(0, 3, max_denominator=5)] * 2))
        slope = (ends[1] - ends[0]) / (b - a)
        rows.append((ends[0] - slope * a + Fraction(1, 7), slope))
    return Density.proportional(breaks, rows)


@given(densities())
@settings(max_examples=30)
def test_masses_add_up_to_one_and_shares_to_the_same(density):
    low, high = density.breaks[0], density.breaks[-1]
    middle = (2 * low + high) / 3
    assert density.mass(low, high) == density.mass(low - 1, high + 1) == 1
    assert density.mass(low, middle) + density.mass(middle, high) == 1
    domain = optdp.Interval(float(low) - 1, float(high) + 2)
    for (a, b, row), (given_row, p, q) in zip(density.shares(domain), density.pieces, strict=True):
        assert (a * domain.exact_width + Fraction(domain.lower), b * domain.exact_width + Fraction(domain.lower)) == (
            p,
            q,
        )
        at = (2 * p + q) / 3
        assert horner(row, (at - Fraction(domain.lower)) / domain.exact_width) == domain.exact_width * horner(
            given_row, at
        )
    around = np.array(density.breaks, dtype=float)  # and its neighbours: a break need not be a float
    ends = np.nextafter(around, [[-np.inf], [np.inf]]).ravel()
    points = np.concatenate([np.linspace(float(low), float(high), 30), around, ends])
    exact = [sum(horner(row, Fraction(x)) for row, a, b in density.pieces if a <= Fraction(x) < b) for x in points]
    exact = [
        horner(density.coefficients[-1], high) if x == high else value for x, value in zip(points, exact, strict=True)
    ]
    assert np.allclose(density(points), np.array(exact, dtype=float), rtol=1e-12)


def test_masses_and_moved_polynomials_are_computed_by_flint():
    """Arithmetic of `fractions` was half of what solving under a density took."""
    edges = [k / 512 for k in range(513)]
    work, found = of_fractions(lambda: SHAPE.masses([-1, *edges, 2]))
    assert work < 20 * len(edges) and (found[0], found[-1]) == (0, 0)
    laws = [next(primitive(row) for row, a, b in SHAPE.pieces if a <= u < b) for u in edges[:-1]]
    wanted = [
        horner(law, Fraction(v)) - horner(law, Fraction(u)) for law, (u, v) in zip(laws, pairwise(edges), strict=True)
    ]
    assert found[1:-1].tolist() == [float(mass) for mass in wanted]
    row = [Fraction(k, k + 1) for k in range(13)]
    work, there = of_fractions(lambda: moved(row, Fraction(1, 3)))
    assert work < 20 * len(row) and horner(there, Fraction(1, 7)) == horner(row, Fraction(1, 3) + Fraction(1, 7))


@given(densities())
@settings(max_examples=20)
def test_densities_survive_files_and_pickles(density):
    average = optdp.Average("abs", density)
    again = optdp.Average.from_dict(json.loads(json.dumps(average.to_dict())))
    assert again == average and again.prior.phrase() == density.phrase()
    assert pickle.loads(pickle.dumps(density)) == density


@pytest.mark.parametrize(("a", "b"), [(1, 1), (2, 3), (5, 1), (7, 7), (30, 34)])
def test_beta_is_that_of_scipy(a, b):
    density = Density.beta(a, b, (-1, 3))
    points = np.linspace(-0.99, 2.99, 50)
    assert density.mass(-1, 3) == 1
    assert np.allclose(density(points), beta.pdf((points + 1) / 4, a, b) / 4, rtol=1e-4, atol=1e-9)


def test_a_histogram_counts_exactly():
    data = [0.1, 0.1, 0.25, 0.3, 1.0]
    density = Density.histogram(data, bins=["0.1", 0.25, "0.3", 1])
    # 0.3 as a float is below 3/10, and 0.1 above 1/10.
    assert [density.mass(a, b) for a, b in pairwise(density.breaks)] == [Fraction(2, 5), Fraction(2, 5), Fraction(1, 5)]
    even = Density.histogram(np.arange(10), bins=3, pseudocount="1/2")
    assert even.breaks == (0, 3, 6, 9) and even.mass(0, 3) == Fraction(7, 23)
    with pytest.raises(ValueError, match="entry 1"):
        Density.histogram([0.5, 2.0], bins=2, domain=(0, 1))


def test_the_even_density_is_the_uniform_prior():
    problem = optdp.Problem(optdp.LDP(1.0), optdp.Interval(2, 5), optdp.Average("abs", Density.uniform((2, 5))))
    assert problem.objective.prior == "uniform"


def test_distinct_densities_have_distinct_phrases():
    shifted = [Density.uniform((k, k + 1)) for k in range(3)]
    many = [Density.histogram(np.arange(40) + k, bins=range(k, k + 41)) for k in range(2)]
    one = [SHAPE, Density.beta(2, 3), Density.beta(3, 2), *shifted, *many]
    assert len({d.phrase() for d in one}) == len({d.latex() for d in one[:6]}) + 2 == len(one)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Density((0, 1), ((2,),)), "mass"),
        (lambda: Density((0, 1), ((3, -4),)), "between 0 and 1"),
        (lambda: Density((1, 0), ((1,),)), "breaks"),
        (lambda: Density((0, 1), ((1,), (1,))), "coefficients"),
        (lambda: Density((0, float("nan")), ((1,),)), "breaks"),
        (lambda: Density.beta(0, 1), "a = 0"),
        (lambda: Density.beta(40, 40), "a \\+ b"),
        (lambda: Density.proportional((0, 1), ((0,),)), "positive"),
        (lambda: Density.histogram([1, 2], bins=0), "bins"),
        (lambda: optdp.Problem(optdp.LDP(1), optdp.Interval(0, 0.5), optdp.Average("abs", SHAPE)), "must lie in"),
        (lambda: optdp.Problem(optdp.LDP(1), optdp.Circle(1), optdp.Average("abs", SHAPE)), "needs an interval"),
    ],
)
def test_refusals(make, said):
    with pytest.raises(ValueError, match=said):
        make()


@pytest.mark.parametrize("rule", ["ends", "mean"])
@pytest.mark.parametrize("prior", [SHAPE, Density.beta(2, 3), Density.proportional(("1/3", "3/7"), ((1,),)), "uniform"])
def test_averages_are_those_of_quadrature_wherever_the_density_breaks(prior, rule):
    rng = np.random.default_rng(3)
    edges = np.linspace(-1.2, 2.2, 8) if rule == "mean" else np.sort(np.append(rng.uniform(0, 1, 6), [0.0, 1.0]))
    lows, highs = (edges[:-1], edges[1:]) if rule == "ends" else (edges, edges)
    mechanism = KernelMechanism.private(1.5, rng.uniform(0.5, 2, lows.size), lows, highs, 0.21, (0.0, 1.0), rule)
    low, high = mechanism.enclose(optdp.Average("squared", prior))
    x = (np.arange(200_000) + 0.5) / 200_000
    weights = np.ones(x.size) if prior == "uniform" else prior(x)
    numeric = float(mechanism.expected_loss(x, "squared") @ weights / weights.sum())
    assert low <= high == pytest.approx(numeric, rel=2e-5)
    assert high - low <= 1e-12


@pytest.mark.parametrize(("loss", "prior"), [("abs", "uniform"), ("squared", Density.beta(2, 3)), ("abs", SHAPE)])
def test_brackets_close(loss, prior):
    solution = optdp.solve_kernel(2.0, loss, prior=prior)
    assert solution.gap <= 1e-3 and solution.verify()
    assert (
        solution.lower_bound <= optdp.solve_piecewise(2.0, loss=loss).mechanism.average_loss(loss) or prior != "uniform"
    )


def test_brackets_meet_those_of_many_points():
    prior = Density.beta(2, 3)
    solution = optdp.solve_kernel(1.0, "abs", prior=prior)
    ends = [Fraction(k, 16) for k in range(17)]
    points = optdp.Prior.of(
        [prior.mass(a, b) for a, b in pairwise(ends)], [float(a + b) / 2 for a, b in pairwise(ends)]
    )
    near = optdp.solve_kernel(1.0, "abs", prior=points, rtol=1e-2)
    moved = 1 / 32  # no input is further from its point
    assert near.lower_bound <= solution.value + moved and solution.lower_bound <= near.value + moved


def test_a_bound_is_for_the_density_of_the_problem():
    solution = optdp.solve_kernel(1.0, "abs", prior=Density.beta(2, 3))
    other = optdp.Problem(optdp.LDP(1.0), optdp.Interval(0, 1), optdp.Average("abs", Density.beta(3, 2)))
    assert solution.certificate.bound(other).value <= solution.mechanism.enclose(other.objective)[1]
    assert value_of(solution.mechanism, other.objective)[1]
    worst = optdp.solve_kernel(1.0, "abs")
    assert solution.lower_bound <= worst.value


def test_comparisons_have_a_value_under_a_density():
    problem = optdp.Problem(optdp.LDP(1.0), optdp.Interval(0, 1), optdp.Average("abs", Density.beta(2, 3)))
    value, proven = value_of(optdp.solve_piecewise(1.0).mechanism, problem.objective)
    assert not proven and 0.1 < value < 0.3

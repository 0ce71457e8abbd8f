"""The closed forms of the kernel program: derived, proven by their dual points, attained by their mechanisms."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from scipy.integrate import quad
from scipy.stats import kstest

import optdp
from optdp.certificates.kernel import certify
from optdp.closed_forms import kernel as forms
from optdp.mechanisms import EqualiserMechanism, two_point
from optdp.problem.losses import Squared

E = sp.Symbol("E", positive=True)
TAU = sp.Symbol("tau", positive=True)
X = sp.Symbol("x", real=True)


def test_the_squared_form_holds_up_to_ln_3_plus_2_root_2():
    assert sp.simplify(sp.exp(forms.squared_limit()) - (3 + 2 * sp.sqrt(2))) == 0
    ends = forms.two_point_error(0, E)
    assert sp.simplify(ends - E / (1 + E) ** 2) == 0
    assert sp.simplify(forms.two_point_error(1, E) - ends) == 0
    # A quadratic, symmetric about 1/2: its maximum on [0, 1] is at the ends or in the middle.
    assert sp.degree(forms.two_point_error(X, E), X) == 2
    assert sp.simplify(forms.two_point_error(1 - X, E) - forms.two_point_error(X, E)) == 0


def test_the_fair_coin_is_a_dual_point_for_every_eps():
    y = sp.Symbol("y", real=True)
    bound, at_zero, at_one = forms.coin_dual(y, E)
    assert sp.simplify(bound - E / (1 + E) ** 2) == 0
    # g is the least of four quadratics, one for each favoured set: each is >= 0 for E >= 1, two with equality.
    for zero, one in [(E, 1), (1, E)]:
        g = zero * at_zero + one * at_one
        vertex = sp.solve(sp.diff(g, y), y)[0]
        assert sp.simplify(g.subs(y, vertex)) == 0
    both = E * (at_zero + at_one)
    lowest = sp.simplify(both.subs(y, sp.Rational(1, 2)) / E * 4 * (1 + E) ** 2)
    assert sp.simplify(lowest - (1 - E) ** 2) == 0


def test_the_equaliser_dual_satisfies_its_equations_identically():
    dual = forms.equaliser_dual(X, TAU, E)
    lam, mass = 1 / sp.sinh(TAU) ** 2, 1 - 2 * dual.atom
    # The density is Phi''; its antiderivative x/(lam sqrt(x^2 + lam)) gives its mass.
    anti = dual.density * (X**2 + lam) ** sp.Rational(3, 2) * X / (lam * sp.sqrt(X**2 + lam))
    assert sp.simplify(sp.diff(anti, X) - dual.density) == 0
    consistent = {E: (1 + TAU) / (1 - TAU)}  # tau = (E - 1)/(E + 1)
    inside = sp.simplify((anti.subs(X, 1) - anti.subs(X, -1)).subs(consistent).rewrite(sp.exp))
    for tau in (0.05, 0.2, 0.33):
        assert float(inside.subs(TAU, tau)) == pytest.approx(math.tanh(tau) / tau, rel=1e-12)
        assert float(mass.subs(consistent).subs(TAU, tau)) == pytest.approx(math.tanh(tau) / tau, rel=1e-12)


def numbers(eps):
    """(lam(x), a, m, n, Lam, tau) of the dual as floats."""
    tau, e = math.tanh(eps / 2), math.exp(eps)
    dual = forms.equaliser_dual(X, TAU, E)
    density = sp.lambdify(X, dual.density.subs({TAU: tau, E: e}))
    return density, *(float(v.subs({TAU: tau, E: e})) for v in dual[1:]), 1 / math.sinh(tau) ** 2, tau


def reduced_cost(eps, y):
    """g(y) of the dual by quadrature, independently of its derivation."""
    density, a, m, n, lam, _ = numbers(eps)

    def r(x):
        return density(x) * (y * y - 2 * x * y - lam)

    kink = (y * y - lam) / (2 * y) if y else math.inf
    points = [kink] if -1 < kink < 1 else None
    inner = quad(r, -1, 1)[0] + math.expm1(eps) * quad(lambda x: min(r(x), 0), -1, 1, points=points)[0]
    ends = a * y * y - m * y - n, a * y * y + m * y - n
    return inner + sum(ends) + math.expm1(eps) * sum(min(v, 0) for v in ends)


@pytest.mark.parametrize("eps", [0.1, 0.4, 0.7])
def test_the_equaliser_is_optimal_below_eps_star(eps):
    density, a, m, n, lam, tau = numbers(eps)
    value = float(forms.equaliser_value().subs(forms.eps, eps))
    bound = quad(lambda x: density(x) * (lam + x * x), -1, 1)[0] + 2 * (n + m - a)
    assert bound == pytest.approx(value, rel=1e-10)
    assert a >= 0
    c = 1 / math.tanh(tau)
    scale = reduced_cost(eps, c + 3)
    for y in np.linspace(c - 1, c + 1, 9):  # zero on the mechanism's whole support
        assert abs(reduced_cost(eps, y)) < 1e-9 * scale
    for y in [0, *np.linspace(0, c - 1, 12)[1:-1], *np.linspace(c + 1, c + 4, 6)[1:]]:
        assert reduced_cost(eps, y) > 0


def test_beyond_eps_star_an_output_at_zero_pays():
    limit = forms.equaliser_limit()
    assert math.tanh(math.tanh(limit / 2)) == pytest.approx(1 / (math.exp(limit) + 1), rel=1e-12)
    assert limit == pytest.approx(0.71228543, abs=1e-8)
    assert reduced_cost(limit - 0.01, 0.0) > 0 > reduced_cost(limit + 0.01, 0.0)


@pytest.mark.parametrize("eps", [0.2, 0.6])
def test_the_dual_on_a_grid_is_certified_exactly_and_converges_to_the_value(eps):
    """The closed-form multipliers, integrated over cells of a grid, through the exact check of the certificate."""
    density, a, m, n, lam, _ = numbers(eps)
    value = float(forms.equaliser_value().subs(forms.eps, eps))
    errors = []
    for k in (17, 33, 65):
        x = np.linspace(-1, 1, k)
        cell = np.full(k, 2 / (k - 1))
        cell[[0, -1]] /= 2
        weights = cell * density(x)
        weights[[0, -1]] += a
        masses = cell * density(x) * (x * x + lam)
        masses[[0, -1]] += m - a + n
        # r = lam(x) (y^2 - 2 x y - Lam) has no term in y - x beyond the loss's own; at the ends a y^2 -+ m y - n has one.
        means = np.zeros(k)
        means[-1], means[0] = m - 2 * a, -(m - 2 * a)
        share = certify(eps, Squared, Fraction(2), (x + 1) / 2, weights, masses / 4, means / 2, None)
        assert share.check().passed
        assert share.bound <= value
        errors.append((value - share.bound) / value)
    assert errors[-1] < 1e-3
    assert errors[1] < errors[0] / 2.5
    assert errors[2] < errors[1] / 2.5


@pytest.mark.parametrize("domain", [(0.0, 1.0), (-3.0, 5.0)])
@pytest.mark.parametrize("eps", [0.1, 1.0, 1.76])
def test_two_points_attain_the_squared_form_exactly(eps, domain):
    mechanism = two_point(eps, domain)
    width = Fraction(domain[1]) - Fraction(domain[0])
    value = float(forms.squared_value(width).subs(forms.eps, eps))
    low, high = mechanism.enclose_value("squared")
    assert low == pytest.approx(value, rel=1e-12)
    assert high == pytest.approx(value, rel=1e-12)
    assert all(check.passed for check in mechanism.check_privacy(optdp.LDP(eps)))
    assert mechanism.privacy() == pytest.approx(eps, rel=1e-12)


@pytest.mark.parametrize("eps", [0.1, 0.7, 1.0, 3.0])
def test_the_equaliser_mechanism_is_a_density_unbiased_and_of_constant_variance(eps):
    mechanism = EqualiserMechanism(eps)
    low, high = mechanism._ends
    for x in (-1.0, -0.4, 0.0, 0.7, 1.0):
        below, above = (float(v) for v in mechanism._window(np.array(x)))
        moments = []
        for q in range(3):
            total = 0.0
            for a, b in ((-high, -below), (-below, -low), (low, above), (above, high)):
                if b > a:
                    total += quad(lambda y, q=q, x=x: y**q * float(mechanism.density(y, x)), a, b, limit=200)[0]
            moments.append(total)
        assert moments[0] == pytest.approx(1, rel=1e-8)
        assert moments[1] == pytest.approx(x, abs=1e-7 * high)
        assert moments[2] - x * x == pytest.approx(float(mechanism.variance(x)), rel=1e-7)
        assert float(mechanism.expected_loss(x, optdp.Power(2.0))) == pytest.approx(float(mechanism.variance(x)))
    ratio = mechanism.density((low + high) / 2, 1.0) / mechanism.density((low + high) / 2, -1.0)
    assert ratio == pytest.approx(math.exp(eps), rel=1e-12)


def test_the_equaliser_is_sampled_from_its_density():
    mechanism = EqualiserMechanism(1.0, optdp.Interval(0, 4))
    x = 2.9
    low, high = mechanism.support()
    y = np.linspace(low, high, 400_001)
    law = np.cumsum(mechanism.density(y, x)) * (y[1] - y[0])
    drawn = mechanism.randomize(np.full(100_000, x), 4)
    assert kstest(drawn, lambda t: np.interp(t, y, law)).pvalue > 1e-4
    assert drawn.mean() == pytest.approx(x, abs=0.05)
    assert optdp.Mechanism.from_dict(mechanism.to_dict()) == mechanism


@pytest.mark.parametrize(("q", "x"), [(1.0, 0.3), (1.5, -0.8), (3.0, 1.0)])
def test_other_losses_of_the_equaliser_by_quadrature(q, x):
    mechanism = EqualiserMechanism(0.8)
    _, high = mechanism._ends
    cuts = np.linspace(-high, high, 400_001)
    middle = (cuts[1:] + cuts[:-1]) / 2
    brute = (mechanism.density(middle, x) * np.abs(middle - x) ** q).sum() * (cuts[1] - cuts[0])
    assert float(mechanism.expected_loss(x, optdp.Power(q))) == pytest.approx(brute, rel=1e-4)


def test_solutions_carry_the_closed_form_where_it_is_proven():
    assert optdp.solve_kernel(1, "squared", level=3).closed_form is not None
    assert optdp.solve_kernel(2, "squared", level=3).closed_form is None
    assert optdp.solve_kernel(1, level=3).closed_form is None
    small = optdp.solve_kernel(0.5, unbiased=True, domain=(0, 1), level=4)
    form = float(small.closed_form.subs(forms.eps, 0.5))
    assert small.lower_bound <= form <= small.value
    assert optdp.solve_kernel(0.72, unbiased=True, level=3).closed_form is None

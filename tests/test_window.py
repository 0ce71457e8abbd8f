"""VaryingWindow: its own distribution against mass, mean, variance and privacy; the optimum; the sampler; files."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import kstest

import optdp
from optdp.audit.optt import forms as optt
from optdp.certificates.kernel import KernelCertificate
from optdp.closed_forms import varying_window as forms
from optdp.exact.fields import FieldError
from optdp.mechanisms import baselines
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.varying_window import VaryingWindow

E = sp.Symbol("E", positive=True)
TAU = sp.Symbol("tau", positive=True)
X = sp.Symbol("x", real=True)
EPS = (0.05, 0.5, 0.7122, 0.7124, 1.0, 1.393)


def moments(mechanism: VaryingWindow, x: float) -> np.ndarray:
    """Mass, mean and second moment from density and probability alone: midpoints in log|y| on a fine grid, plus the atoms."""
    low, high = (mechanism._half * mechanism._shape[k] for k in ("y0", "y1"))
    edges = np.geomspace(low, high, 400_001)
    middle, width = np.sqrt(edges[1:] * edges[:-1]), np.diff(edges)
    total = np.zeros(3)
    for sign in (1, -1):
        f = mechanism.density(mechanism._middle + sign * middle, x) * width
        total += [np.sum(f * (mechanism._middle + sign * middle) ** n) for n in range(3)]
    atoms = mechanism.atoms()
    p = mechanism.probability(atoms, x)
    return total + [np.sum(p * atoms**n) for n in range(3)]


@pytest.mark.parametrize("eps", EPS)
@pytest.mark.parametrize("domain", [(-1.0, 1.0), (2.0, 5.0)])
def test_density_and_atoms_have_mass_one_the_mean_and_the_variance(eps, domain):
    mechanism = VaryingWindow(eps, optdp.Interval(*domain))
    for share in (0.0, 0.13, 0.8):
        x = domain[0] + share * (domain[1] - domain[0])
        mass, mean, second = moments(mechanism, x)
        assert mass == pytest.approx(1, rel=1e-4)
        assert mean - mass * x == pytest.approx(0, abs=2e-4 * mechanism.support()[1])
        assert second - 2 * x * mean + x * x * mass == pytest.approx(float(mechanism.variance(x)), rel=1e-4)
    assert np.ptp(mechanism.variance(np.linspace(*domain, 50))) == 0


@settings(deadline=None, max_examples=60)
@given(st.floats(0.01, forms.LIMIT), st.floats(-1, 1), st.floats(-1, 1))
def test_likelihood_ratios_stay_below_e_to_the_eps(eps, x, other):
    mechanism = VaryingWindow(eps)
    y = np.linspace(*mechanism.support(), 2001)
    f, g = mechanism.density(y, x), mechanism.density(y, other)
    p, q = mechanism.probability(mechanism.atoms(), x), mechanism.probability(mechanism.atoms(), other)
    assert np.all(f <= math.exp(eps) * g * (1 + 1e-12))
    assert np.all(p <= math.exp(eps) * q * (1 + 1e-9) + 1e-13)


@settings(deadline=None, max_examples=settings.default.max_examples // 2)
@given(st.floats(0.01, forms.LIMIT))
def test_no_published_unbiased_mechanism_and_no_ptt_is_as_good(eps):
    worst = VaryingWindow(eps).worst_case_loss("squared")
    assert worst < optdp.solve_ptt(eps).lower_bound
    problem = optdp.Problem(optdp.LDP(eps), (-1, 1), "squared", constraints=[optdp.Unbiased()])
    for name, mechanism in baselines.applicable(problem).items():
        assert worst < mechanism.worst_case_loss("squared"), name


def test_variance_is_continuous_where_the_atoms_appear_and_falls_with_eps():
    eps = np.linspace(0.3, forms.LIMIT, 400)
    values = np.array([float(VaryingWindow(float(e)).variance(0.2)) for e in eps])
    assert np.all(np.diff(values) < 0)
    threshold = 0.7122854309236591
    gap = [float(VaryingWindow(threshold + d).variance(0.0)) for d in (-1e-9, 1e-9)]
    assert gap[0] == pytest.approx(gap[1], rel=1e-7)


@pytest.mark.parametrize("eps", [0.5, 1.2])
def test_sampler_follows_the_distribution(eps):
    mechanism, n = VaryingWindow(eps), 200_000
    for x in (-1.0, 0.3, 0.95):
        y = mechanism.randomize(np.full(n, x), 7)
        sd = math.sqrt(float(mechanism.variance(x)))
        assert abs(y.mean() - x) < 5 * sd / math.sqrt(n)
        assert y.var() == pytest.approx(sd**2, rel=0.02)
        for atom, p in zip(mechanism.atoms(), mechanism.probability(mechanism.atoms(), x), strict=True):
            assert abs(np.mean(y == atom) - p) < 5 * math.sqrt(p / n) + 1e-9
        assert np.mean(np.abs(y - x)) == pytest.approx(float(mechanism.expected_loss(x, "abs")), rel=0.01)


def test_round_trip_and_bad_input():
    for mechanism in (VaryingWindow(0.9, optdp.Interval(0.0, 4.0)), VaryingWindow(3.0, form="window")):
        assert Mechanism.from_dict(mechanism.to_dict()) == mechanism
        assert mechanism.randomize(mechanism.domain.upper, 1).shape == ()
        assert mechanism.guarantee() == optdp.LDP(mechanism.eps).in_real_arithmetic()
        assert mechanism.satisfies(optdp.LDP(9.0)) is None and not mechanism.check_unbiased().passed
    for eps in (0.0, 1.4):
        with pytest.raises(ValueError, match=f"eps = {eps}"):
            VaryingWindow(eps)
    with pytest.raises(ValueError, match="Circle"):
        VaryingWindow(0.5, optdp.Circle(1.0))
    good = VaryingWindow(0.9).to_dict()
    circle = optdp.Circle(1.0).to_dict()
    for change in ({"eps": "x"}, {"eps": 31.0}, {"eps": 1.4}, {"form": "best"}, {"domain": circle}, {"more": 1}):
        with pytest.raises(FieldError, match=next(iter(change))):
            Mechanism.from_dict(good | change)


# The window alone, for every epsilon.


@pytest.mark.parametrize("eps", [0.1, 0.7, 1.0, 3.0])
def test_the_window_alone_is_a_density_unbiased_and_of_constant_variance(eps):
    mechanism = VaryingWindow(eps, form="window")
    low, high = mechanism._shape["y0"], mechanism._shape["y1"]
    assert mechanism.atoms().size == 0
    for x in (-1.0, -0.4, 0.0, 0.7, 1.0):
        above, below = (float(edge) for edge in mechanism._row(np.array(abs(x)))[0][:: 1 if x >= 0 else -1])
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
    variance = float(forms.window_variance().subs(forms.eps, eps))
    assert float(mechanism.variance(0.3)) == pytest.approx(variance, rel=1e-12)


def test_the_window_alone_is_sampled_from_its_density():
    mechanism = VaryingWindow(1.0, optdp.Interval(0, 4), "window")
    x = 2.9
    low, high = mechanism.support()
    y = np.linspace(low, high, 400_001)
    cumulative = np.cumsum(mechanism.density(y, x)) * (y[1] - y[0])
    drawn = mechanism.randomize(np.full(100_000, x), 4)
    assert kstest(drawn, lambda t: np.interp(t, y, cumulative)).pvalue > 1e-4
    assert drawn.mean() == pytest.approx(x, abs=0.05)


@pytest.mark.parametrize(("q", "x"), [(1.0, 0.3), (1.5, -0.8), (3.0, 1.0)])
def test_other_losses_of_the_window_by_quadrature(q, x):
    mechanism = VaryingWindow(0.8, form="window")
    high = mechanism.support()[1]
    cuts = np.linspace(-high, high, 400_001)
    middle = (cuts[1:] + cuts[:-1]) / 2
    brute = (mechanism.density(middle, x) * np.abs(middle - x) ** q).sum() * (cuts[1] - cuts[0])
    assert float(mechanism.expected_loss(x, optdp.Power(q))) == pytest.approx(brute, rel=1e-4)


@pytest.mark.parametrize("eps", [0.5, 1.2])
@pytest.mark.parametrize("x", [-0.9, 0.0, 0.35, 1.0])
def test_losses_agree_with_the_quadrature_that_knows_density_and_atoms_alone(eps, x):
    mechanism = VaryingWindow(eps, optdp.Interval(1.0, 5.0))
    at = 3.0 + 2 * x
    for loss in ("abs", "squared", optdp.Power(3.0), optdp.Power(1.5)):
        numerical = float(Mechanism.expected_loss(mechanism, at, loss))
        assert float(mechanism.expected_loss(at, loss)) == pytest.approx(numerical, rel=1e-8)
    tails = [float(mechanism.expected_loss(at, optdp.Threshold(t))) for t in (0.0, 3.0, 1e3)]
    drawn = np.abs(mechanism.randomize(np.full(200_000, at), 3) - at)
    same = float(mechanism.probability(at, at))  # an atom at the input
    assert tails == pytest.approx([1.0 - same, np.mean(drawn > 3.0), 0.0], abs=6e-3)
    assert float(Mechanism.mean(mechanism, at)) == pytest.approx(at, abs=1e-8)


# The closed form.


def test_the_closed_form_is_that_of_the_proofs_and_the_mechanism_attains_it():
    later = optt.free_window_beyond()
    proven = later["value"].subs(later["z"], optt.free_window_beyond_share())
    for eps in (0.72, 1.0, 1.39):
        value = float(forms.atoms_variance().subs(forms.eps, eps))
        assert float(proven.subs(optt.E, math.exp(eps))) == pytest.approx(value, rel=1e-12)
        assert float(VaryingWindow(eps).variance(0.9)) == pytest.approx(value, rel=1e-10)
        assert value < float(forms.window_variance().subs(forms.eps, eps))
        share = float(forms.share().subs(forms.eps, eps))
        assert VaryingWindow(eps)._shape["z"] == pytest.approx(share, rel=1e-12)
    for eps in (0.1, 0.7):
        value = float(forms.window_variance(3).subs(forms.eps, eps))
        assert float(VaryingWindow(eps, optdp.Interval(0, 3)).variance(0.9)) == pytest.approx(value, rel=1e-12)


def test_the_optimum_of_a_problem_is_given_where_it_is_proven_and_nowhere_else():
    def problem(eps, domain=(-1, 1), objective="squared", **kwargs):
        return optdp.Problem(optdp.LDP(eps), domain, objective, **{"constraints": [optdp.Unbiased()], **kwargs})

    for eps in (0.5, optdp.log(3), 1.39):
        found = float(forms.optimum(problem(eps, (0, 3))).subs(forms.eps, float(eps)))
        assert found == pytest.approx(
            VaryingWindow(float(eps), optdp.Interval(0, 3)).worst_case_loss("squared"), rel=1e-9
        )
    assert forms.optimum(problem(0.5)) == forms.window_variance()
    for other in (
        problem(2.0161), problem(1.3930275), problem(0.0), problem(0.5, objective="abs"), problem(0.5, constraints=()),
        problem(0.5, constraints=[optdp.Unbiased(), optdp.Outputs(-2, 2)]), problem(0.5, family=optdp.AffineWindow("I")),
        problem(0.5, objective=optdp.At("squared", 0.0)), problem(0.7122851),
    ):  # fmt: skip
        assert forms.optimum(other) is None


# The dual point of the window alone.


class WindowDual(NamedTuple):
    """The dual point: density of the weights at x, atom a at the ends, and m, n of the ends' reduced cost a y^2 -+ m y - n."""

    density: sp.Expr
    atom: sp.Expr
    tilt: sp.Expr
    level: sp.Expr


def window_dual(x: sp.Expr, tau: sp.Expr, e: sp.Expr) -> WindowDual:
    """Derived from g = 0: two linear equations for a and (E + 1)(a Lam - n)/2, one for m.

    `tau` = tanh(eps/2) and `e` = e^eps may be symbols; only tau = (e - 1)/(e + 1) makes them a dual point.
    """
    a, b, m = sp.symbols("a b m")
    lam = 1 / sp.sinh(tau) ** 2
    root = sp.coth(tau)  # sqrt(1 + Lam)
    # (E - 1) Phi(theta) = (M + (E + 1) a) theta - (E - 1) m/2 + b (sqrt(theta^2 + Lam) - theta)/Lam with M = 1 - 2 a.
    mass = 1 - 2 * a
    at_one = mass + (e + 1) * a + b / lam * (1 / root - 1)  # (E - 1) Phi'(1) = 0
    at_minus_one = mass + (e + 1) * a - b / lam * (1 / root + 1) + (e - 1) * mass  # (E - 1) (Phi'(-1) + M) = 0
    end = mass + (e + 1) * a - (e - 1) * m / 2 + b * (root - 1) / lam  # (E - 1) Phi(1) = 0
    found = sp.solve([at_one, at_minus_one, end], [a, b, m], dict=True)[0]
    density = found[b] / ((e - 1) * (x**2 + lam) ** sp.Rational(3, 2))
    return WindowDual(density, found[a], found[m], found[a] * lam - 2 * found[b] / (e + 1))


def test_the_dual_of_the_window_satisfies_its_equations_identically():
    dual = window_dual(X, TAU, E)
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
    dual = window_dual(X, TAU, E)
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


@pytest.mark.parametrize("eps", [0.1, pytest.param(0.4, marks=pytest.mark.soak), 0.7])
def test_the_window_alone_is_optimal_below_its_limit(eps):
    density, a, m, n, lam, tau = numbers(eps)
    value = float(forms.window_variance().subs(forms.eps, eps))
    bound = quad(lambda x: density(x) * (lam + x * x), -1, 1)[0] + 2 * (n + m - a)
    assert bound == pytest.approx(value, rel=1e-10)
    assert a >= 0
    c = 1 / math.tanh(tau)
    scale = reduced_cost(eps, c + 3)
    for y in np.linspace(c - 1, c + 1, 9):  # zero on the mechanism's whole support
        assert abs(reduced_cost(eps, y)) < 1e-9 * scale
    for y in [0, *np.linspace(0, c - 1, 12)[1:-1], *np.linspace(c + 1, c + 4, 6)[1:]]:
        assert reduced_cost(eps, y) > 0


def test_beyond_the_limit_an_output_at_zero_pays():
    limit = float(sp.nsolve(sp.tanh(sp.tanh(forms.eps / 2)) - 1 / (sp.exp(forms.eps) + 1), forms.eps, 0.7, prec=30))
    assert math.tanh(math.tanh(limit / 2)) == pytest.approx(1 / (math.exp(limit) + 1), rel=1e-12)
    assert limit == pytest.approx(0.71228543, abs=1e-8)
    assert reduced_cost(limit - 0.01, 0.0) > 0 > reduced_cost(limit + 0.01, 0.0)


@pytest.mark.parametrize("eps", [0.2, 0.6])
def test_the_dual_on_a_mesh_is_certified_exactly_and_converges_to_the_value(eps):
    """The closed-form multipliers, linear between the nodes of a mesh, through the exact check of the certificate."""
    density, a, m, n, lam, _ = numbers(eps)
    value = float(forms.window_variance().subs(forms.eps, eps))
    problem = optdp.Problem(optdp.LDP(eps), (-1, 1), "squared", constraints=[optdp.Unbiased()])
    errors = []
    # y^2 - 2 x y - Lam favours outputs at most sqrt(x^2 + Lam) from x; a y^2 -+ m y - n those around +-m/2a.
    centre = m / (2 * a)
    reach = math.sqrt(centre**2 + n / a)
    for k in (17, 33, 65):
        x = np.linspace(-1, 1, k)
        mesh = (x + 1) / 2
        made = KernelCertificate(
            tuple(mesh), (tuple(2 * density(x)),), (tuple(np.sqrt(x * x + lam) / 2),), (tuple(mesh),),
            (0.0, 1.0), (a, a), (reach / 2, reach / 2), ((1 - centre) / 2, (1 + centre) / 2),
        )  # fmt: skip
        bound = made.bound(problem).value
        assert bound <= value
        errors.append((value - bound) / value)
    assert errors[-1] < 1e-3
    assert errors[1] < errors[0] / 2.5
    assert errors[2] < errors[1] / 2.5


def test_the_epsilon_that_is_shown_is_rounded_up():
    """1.0000004 was shown as 1."""
    assert repr(VaryingWindow(1.0000004)).endswith("eps = 1.00001")

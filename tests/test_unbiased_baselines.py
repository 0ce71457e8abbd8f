"""Published unbiased mechanisms: their variance formulas against their own distributions, privacy on a grid, samplers."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import sympy as sp

import optdp
from optdp.audit.comp import published as forms
from optdp.exact.fields import FieldError
from optdp.mechanisms import baselines
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines import unbiased
from optdp.mechanisms.baselines.clamped import clamped_discrete_laplace, clamped_laplace
from optdp.mechanisms.baselines.noise import LatticeNoise, Staircase, discrete_laplace, gaussian, laplace
from optdp.mechanisms.baselines.plane import SidesMechanism
from optdp.mechanisms.baselines.unbiased import CentralPiecewise, Mixture, ThreeOutputs
from optdp.mechanisms.baselines.vector import SampledCoordinates
from optdp.mechanisms.composite import CompositeMechanism
from optdp.mechanisms.product import ProductMechanism
from optdp.mechanisms.varying_window import VaryingWindow
from optdp.problem.shapes import Quartic, Rectangle, Sine, Triangle


def _build(name, eps, domain=(-1.0, 1.0)):
    problem = optdp.Problem(optdp.LDP(eps), domain, "squared", constraints=[optdp.Unbiased()])
    return baselines.get(name).make(problem)


#: Name -> constructor(eps, domain): the unbiased baselines, and the composite paper's others.
UNBIASED = {name: partial(_build, name) for name in baselines.baselines("interval", "ldp", unbiased=True)}
OTHERS = {
    "Gaussian": gaussian,
    "clamped Laplace": clamped_laplace,
    "clamped discrete Laplace": clamped_discrete_laplace,
}

EPS = (0.3, 0.7, 1.0, 2.0, 5.0)
INPUTS = np.array([-1.0, -0.35, 0.0, 0.5, 1.0])


def _moments(mechanism: Mechanism, x: float, powers=(0, 1, 2)) -> list[float]:
    """Integrals of y^p against density and atoms, by a route that does not use the mechanism's own moments."""
    low, high = mechanism.support()
    spread = 60 / min(float(mechanism.guarantee().eps), 1.0)
    finite = math.isfinite(low)
    a, b = (low, high) if finite else (x - 2 * spread, x + 2 * spread)
    y = np.linspace(a, b, 2_000_001)
    if isinstance(mechanism, Staircase):  # its density jumps
        jumps = mechanism.sensitivity * np.add.outer(np.arange(200.0), [0.0, mechanism.gamma]).ravel()
        y = np.unique(np.concatenate([y, x + jumps, x - jumps]))
    middle, h = (y[:-1] + y[1:]) / 2, np.diff(y)
    density = mechanism.density(middle, x)
    atoms = mechanism.atoms()
    if isinstance(mechanism, LatticeNoise) and not mechanism.clamped:
        reach = int(60 * mechanism.steps / float(mechanism.noise.eps))
        atoms = mechanism.domain.lower + mechanism.step * np.arange(-reach, mechanism.steps + reach + 1)
    masses = mechanism.probability(atoms, x)
    return [float(np.sum(density * middle**p * h) + np.sum(masses * atoms**p)) for p in powers]


@pytest.mark.parametrize("name", list(UNBIASED))
def test_unbiased_and_of_the_variance_claimed(name):
    for eps in (0.7, 2.0):
        mechanism = UNBIASED[name](eps)
        for x in (-1.0, 0.35):
            mass, mean, second = _moments(mechanism, x)
            assert mass == pytest.approx(1, rel=1e-5)
            assert mean == pytest.approx(x, abs=1e-5 * max(1, 1 / eps))
            assert second - x**2 == pytest.approx(float(mechanism.variance(x)), rel=1e-4)
            assert float(mechanism.mean(x)) == pytest.approx(x, abs=1e-12)
            assert float(mechanism.expected_loss(x, "squared")) == pytest.approx(float(mechanism.variance(x)), rel=1e-9)


@pytest.mark.parametrize("name", ["clamped Laplace", "clamped discrete Laplace"])
def test_clamping_is_biased(name):
    mechanism = OTHERS[name](0.7, (-1.0, 1.0))
    for x in (-1.0, 0.3):
        mass, mean, second = _moments(mechanism, x)
        assert mass == pytest.approx(1, rel=1e-5)
        assert mean == pytest.approx(float(mechanism.mean(x)), abs=1e-5)
        assert second - mean**2 == pytest.approx(float(mechanism.variance(x)), rel=1e-4)
        assert abs(mean - x) > 0.05


@pytest.mark.parametrize(
    ("make", "formula"),
    [
        (laplace, forms.LAPLACE),
        (unbiased.duchi, forms.DUCHI),
        (unbiased.piecewise, forms.PM),
        (unbiased.pm_sub, forms.PM_SUB),
        (gaussian, forms.GAUSSIAN.subs(forms.delta, sp.Rational(1, 10**5))),
    ],
)
def test_published_variances(make, formula):
    printed = sp.lambdify((forms.eps, forms.x), formula)
    for eps in EPS if make is not gaussian else (0.3, 0.7, 1.0):
        for x in INPUTS:
            assert printed(eps, x) == pytest.approx(float(make(eps).variance(x)), rel=1e-10)


def test_published_variance_of_hm_is_its_worst_case():
    low, high = sp.lambdify(forms.eps, forms.HM_WORST_LOW), sp.lambdify(forms.eps, forms.HM_WORST_HIGH)
    for eps in (0.3, 0.6, 0.62, 1.0, 4.0):
        worst = float(np.max(unbiased.hybrid(eps).variance(np.linspace(-1, 1, 201))))
        assert worst == pytest.approx((low if eps <= 0.61 else high)(eps), rel=1e-10)


def test_three_outputs_has_the_published_zero_and_variance():
    zero = sp.lambdify(forms.eps, forms.THREE_OUTPUTS_ZERO, "math")
    variance = sp.lambdify((forms.eps, forms.a, forms.x), forms.THREE_OUTPUTS)
    for eps in (0.3, 0.69, 0.7, 1.0, 1.5, 1.7, 1.72, 4.0):
        mechanism = unbiased.three_outputs(eps)
        assert mechanism.zero == pytest.approx(float(zero(eps)), abs=1e-6)
        for x in INPUTS:
            assert float(mechanism.variance(x)) == pytest.approx(variance(eps, mechanism.zero, x), rel=1e-12)
        for other in (mechanism.zero * 0.9, mechanism.zero * 0.5):
            grid = np.linspace(-1, 1, 401)
            worse = ThreeOutputs(eps, optdp.Interval(-1.0, 1.0), other).variance(grid).max()
            assert worse >= mechanism.variance(grid).max() * (1 - 1e-9)


def test_discrete_laplace_has_the_published_variance_on_its_lattice():
    printed = sp.lambdify((forms.eps, forms.n), forms.DISCRETE_LAPLACE)
    for eps in EPS:
        for steps in (1, 10, 64):
            mechanism = discrete_laplace(eps, (-1.0, 1.0), steps)
            assert float(mechanism.variance(1.0)) == pytest.approx(printed(eps, steps), rel=1e-12)


def test_the_absolute_error_on_a_lattice_is_that_of_all_its_points():
    for steps in (1, 3):
        mechanism = discrete_laplace(1.0, (-1.0, 1.0), steps)
        y = -1.0 + mechanism.step * np.arange(-200, 200)
        for x in (-1.0, -0.37, 0.5):
            direct = float(mechanism.probability(y, x) @ np.abs(y - x))
            assert float(mechanism.expected_loss(x, "abs")) == pytest.approx(direct, rel=1e-12)
    for eps in (1e-3, 1e-5):  # millions of points count: about as for Laplace noise of scale 2/eps
        assert discrete_laplace(eps, (-1.0, 1.0)).worst_case_loss("abs") == pytest.approx(2 / eps, rel=1e-6)


@pytest.mark.parametrize("law", [optdp.Huber(0.5), optdp.Power(2.5), optdp.Threshold(1.5)], ids=str)
def test_other_losses_on_a_lattice_are_those_of_all_its_points(law):
    for eps, steps in ((1.0, 3), (1e-2, 100)):  # the second reaches beyond where points are grouped
        mechanism = discrete_laplace(eps, (-1.0, 1.0), steps)
        reach = int(60 * steps / eps)
        y = -1.0 + mechanism.step * np.arange(-reach, reach)
        for x in (-1.0, -0.37, 0.5):
            direct = float(mechanism.probability(y, x) @ law(np.abs(y - x)))
            assert float(mechanism.expected_loss(x, law)) == pytest.approx(direct, rel=1e-8)
        k = np.arange(-reach, reach + 1)
        direct = float(mechanism.noise.noise_probability(k) @ law(np.abs(k * 1.0)))
        assert mechanism.noise.noise_loss(law) == pytest.approx(direct, rel=1e-8)
    for eps in (1e-4, 1e-6):
        wide = laplace(eps, (-1.0, 1.0)).expected_loss(0.3, law)
        assert float(discrete_laplace(eps, (-1.0, 1.0)).expected_loss(0.3, law)) == pytest.approx(float(wide), rel=1e-6)


def _ratio(mechanism: Mechanism, pairs) -> float:
    """The largest likelihood ratio seen over outputs, densities and atoms, for the given pairs of inputs."""
    low, high = mechanism.support()
    y = np.linspace(max(low, -30.0), min(high, 30.0), 20_001)[1:-1]
    largest = 1.0
    for a, b in pairs:
        for f in (mechanism.density, mechanism.probability):
            where = y if f == mechanism.density else mechanism.atoms()
            top, bottom = f(where, a), f(where, b)
            positive = (top > 0) | (bottom > 0)
            if positive.any():
                with np.errstate(divide="ignore"):
                    largest = max(largest, float(np.max(top[positive] / bottom[positive])))
    return largest


@pytest.mark.parametrize("name", list(UNBIASED))
def test_private_on_a_grid_of_inputs_and_outputs(name):
    pairs = [(a, b) for a in np.linspace(-1, 1, 9) for b in np.linspace(-1, 1, 9)]
    for eps in (0.7, 2.0):
        mechanism = UNBIASED[name](eps)
        assert mechanism.privacy() <= eps * (1 + 1e-12)
        assert _ratio(mechanism, pairs) <= math.exp(eps) * (1 + 1e-9)


def test_central_piecewise():
    local = unbiased.central_piecewise(1.0)
    best = optdp.solve_ptt(1.0)
    grid = np.linspace(-1, 1, 101)
    assert local.variance(grid).max() == pytest.approx(best.value, rel=1e-8)  # with no steps it is the best I-PTT
    pm = CentralPiecewise(1.0, optdp.Interval(-1.0, 1.0), 0, 2.0)
    assert pm.variance(grid) == pytest.approx(unbiased.piecewise(1.0).variance(grid), rel=1e-12)
    for steps in (1, 3):
        central = unbiased.central_piecewise(1.0, steps=steps)
        for x in (-1.0, 0.3):
            mass, mean, second = _moments(central, x)
            assert (mass, mean) == (pytest.approx(1, rel=1e-5), pytest.approx(x, abs=1e-5))
            assert second - x**2 == pytest.approx(float(central.variance(x)), rel=1e-4)
        near = [
            (a, a + s * central.sensitivity) for a in np.linspace(-1, 1 - central.sensitivity, 9) for s in (0.5, 1.0)
        ]
        assert _ratio(central, near + [(b, a) for a, b in near]) <= math.e * (1 + 1e-9)
        assert _ratio(central, [(-1.0, 1.0)]) > math.e  # and not for inputs further apart
        assert central.variance(grid).max() < best.value


def test_central_piecewise_has_the_published_constants():
    for steps in (0, 1, 3):
        printed = forms.central_piecewise(steps)
        for eps in (0.5, 1.0, 3.0):
            best = unbiased.central_piecewise(eps, steps=steps)
            for b in (best.b, best.b * 0.97):
                mechanism = CentralPiecewise(eps, optdp.Interval(-1.0, 1.0), steps, b)
                at = {forms.eps: eps, forms.b: b}
                assert mechanism.support()[1] == pytest.approx(float(printed["D"].subs(at)), rel=1e-9)
                assert float(mechanism.density(0.0, 0.0)) == pytest.approx(float(printed["q"].subs(at)), rel=1e-9)
                for x in (0, 1):
                    value = float(printed[f"variance at {x}"].subs(at))
                    assert float(mechanism.variance(float(x))) == pytest.approx(value, rel=1e-9)
                assert mechanism.variance(1.0) >= best.variance(1.0) * (1 - 1e-9)
    with pytest.raises(ValueError, match="no width"):
        CentralPiecewise(1.0, optdp.Interval(-1.0, 1.0), 3, 5.0)


def test_order_of_the_families_at_one():
    grid = np.linspace(-1, 1, 201)
    worst = {name: float(make(1.0).variance(grid).max()) for name, make in UNBIASED.items()}
    assert worst["Duchi"] == pytest.approx(4.683, abs=1e-3) and worst["HM"] == pytest.approx(4.289, abs=1e-3)
    best = optdp.solve_ptt(1.0).value
    assert best < worst["PM-SUB"] < worst["PM"] and worst["Three-Outputs"] < worst["Duchi"] < best
    assert worst["HM"] < worst["HM-TP"] < worst["Three-Outputs"]  # HM-TP is not better than HM at eps = 1
    late = {name: float(make(3.0).variance(grid).max()) for name, make in UNBIASED.items()}
    assert late["HM-TP"] < late["HM"]


@pytest.mark.parametrize("name", [*UNBIASED, *OTHERS])
def test_samples_on_any_domain(name):
    make = (UNBIASED | OTHERS)[name]
    mechanism = make(0.9, (3.0, 7.0))
    low, high = mechanism.support()
    for x in (3.0, 4.1, 7.0):
        y = mechanism.randomize(np.full((200, 500), x), 11)
        assert y.shape == (200, 500)
        assert low <= y.min() and y.max() <= high
        deviation = math.sqrt(float(mechanism.variance(x)) / y.size)
        assert abs(y.mean() - float(mechanism.mean(x))) < 5 * deviation
        assert y.var() == pytest.approx(float(mechanism.variance(x)), rel=0.1)
        far = float(mechanism.expected_loss(x, "abs"))
        assert np.mean(np.abs(y - x)) == pytest.approx(far, rel=0.05)


@pytest.mark.parametrize("name", [*UNBIASED, *OTHERS])
def test_files_and_scale(name):
    make = (UNBIASED | OTHERS)[name]
    mechanism = make(0.9, (3.0, 7.0))
    again = Mechanism.from_dict(json.loads(json.dumps(mechanism.to_dict())))
    assert again == mechanism
    x = np.array([3.0, 4.4, 7.0])
    if name != "clamped Laplace":
        assert mechanism.variance(x) == pytest.approx(4 * make(0.9, (-1.0, 1.0)).variance((x - 5) / 2), rel=1e-9)
    with pytest.raises(ValueError, match="must lie"):
        mechanism.randomize(2.9)
    if name in UNBIASED:
        assert make(0.0) is None and make(31.0) is None
    else:
        with pytest.raises(ValueError, match="eps"):
            make(0.0)


def test_gaussian_says_where_its_formula_stops():
    """The classical calibration is proven for eps <= 1: beyond, it is no baseline, and its guarantee is computed."""

    def make(eps):
        problem = optdp.Problem(optdp.ApproxDP(eps, 1e-5, 2.0), (-1, 1), "squared", constraints=[optdp.Unbiased()])
        return baselines.get("classical Gaussian").make(problem)

    assert make(1.0) == gaussian(1.0) and make(1.01) is None
    assert gaussian(20.0).sigma < gaussian(2.0).sigma < gaussian(1.0).sigma
    assert gaussian(1.0).guarantee().delta < 1e-5 < gaussian(20.0).guarantee().delta


def test_every_mechanism_can_be_drawn():
    import matplotlib.pyplot as plt

    for make in (UNBIASED | OTHERS).values():
        axes = make(0.9, (3.0, 7.0)).plot()
        assert axes.lines
        plt.close(axes.figure)
    axes = unbiased.duchi(1.0).plot(inputs=[0.5])
    heights = np.concatenate([line.get_ydata() for line in axes.lines if line.get_marker() == "o"])
    assert heights.sum() == pytest.approx(1)
    plt.close(axes.figure)


@pytest.mark.parametrize("eps", [0.4, 1.0])
def test_a_mixture_is_as_private_as_its_least_private_part(eps):
    hm = unbiased.hybrid(eps)
    assert hm.guarantee() == optdp.LDP(eps).in_real_arithmetic()
    exact = Mixture((unbiased.piecewise(eps), unbiased.pm_sub(eps / 2)), (0.5, 0.5))
    assert exact.guarantee() == exact.parts[0].guarantee() and not exact.guarantee().ideal
    assert exact.check_unbiased().passed and not hm.check_unbiased().passed
    unused = Mixture((unbiased.piecewise(eps), unbiased.duchi(5.0)), (1.0, 0.0))
    assert unused.guarantee() == unused.parts[0].guarantee() and unused.support() == unused.parts[0].support()
    central = Mixture((unbiased.central_piecewise(eps, steps=2),), (1.0,))
    assert central.guarantee() is None
    with pytest.raises(ValueError, match="no guarantee is claimed"):
        central.privacy()
    with pytest.raises(ValueError, match="same interval"):
        Mixture((unbiased.duchi(eps), unbiased.duchi(eps, (0, 1))), (0.5, 0.5))


def test_the_central_mechanism_does_not_claim_local_privacy():
    """With eps = 1 and 3 steps its local log-ratio is 4: neighbours must be named (a quarter of the domain)."""
    central = unbiased.central_piecewise(1.0, steps=3)
    assert central.guarantee() == optdp.ApproxDP(1.0, 0.0, 0.5, ideal=True)
    assert central.satisfies(optdp.LDP(1.0)) is not True
    with pytest.raises(ValueError, match=r"inputs at most 0\.5 apart"):
        central.privacy()
    assert _ratio(central, [(-1.0, 1.0)]) == pytest.approx(math.exp(4.0), rel=1e-9)
    assert unbiased.central_piecewise(1.0).guarantee() == optdp.LDP(1.0, ideal=True)
    for width in (0.1, 1 / 3, 0.7):  # never more than the exact share of the domain
        mechanism = unbiased.central_piecewise(1.0, (0.0, width), 2)
        assert Fraction(mechanism.sensitivity) * 3 <= Fraction(width)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("Duchi", {"eps": -1.0}), ("Duchi", {"eps": True}), ("Duchi", {"zero": 2.0}), ("Duchi", {"domain": 3}),
        ("Duchi", {"domain": {"type": "circle", "period": 1.0, "start": 0.0}}), ("Duchi", {"more": 0}),
        ("Three-Outputs", {"zero": 0.9}), ("HM", {"weights": [0.5]}), ("HM", {"weights": [0.9, 0.2]}),
        ("HM", {"parts": []}), ("HM", {"parts": "x"}), ("HM", {"name": 1}), ("central", {"steps": -1}),
        ("central", {"steps": 0.5}), ("central", {"b": 50.0}), ("central", {"steps": 10**6}),
    ],
)  # fmt: skip
def test_files_are_checked_field_by_field(name, change):
    mechanism = unbiased.central_piecewise(1.0, steps=2) if name == "central" else UNBIASED[name](1.0)
    good = json.loads(json.dumps(mechanism.to_dict()))
    assert Mechanism.from_dict(good) == mechanism
    with pytest.raises(FieldError):
        Mechanism.from_dict(good | change)
    for field in good:
        with pytest.raises(FieldError, match=f"{field} is missing"):
            Mechanism.from_dict({k: v for k, v in good.items() if k != field})


def test_no_private_value_is_printed():
    for name in UNBIASED:
        with pytest.raises(ValueError, match="must lie in") as caught:
            UNBIASED[name](1.0).randomize([0.5, 7.123456])
        assert "7.123" not in str(caught.value)


@pytest.mark.parametrize("name", [*UNBIASED, "central"])
@pytest.mark.parametrize("x", [-1.0, 0.35])
def test_every_loss_agrees_with_the_quadrature_that_knows_density_and_probability_alone(name, x):
    mechanism = unbiased.central_piecewise(1.5, steps=2) if name == "central" else UNBIASED[name](1.5)
    if name == "discrete Laplace on a lattice":  # infinitely many atoms
        return
    for loss in ("abs", "squared", optdp.Power(1.5)):
        value = float(mechanism.expected_loss(x, loss))
        assert value == pytest.approx(float(Mechanism.expected_loss(mechanism, x, loss)), rel=1e-7)


def test_mixtures_nested_without_end_are_refused():
    data = unbiased.duchi(1.0).to_dict()
    for _ in range(3000):
        data = {"mechanism": "Mixture", "parts": [data], "weights": [1.0], "name": "deep"}
    with pytest.raises(FieldError, match="recursion"):
        Mechanism.from_dict(data)


@pytest.mark.parametrize("activation", [Rectangle(), Sine(), Triangle()])
@pytest.mark.parametrize("base", [Rectangle(), Quartic()])
@pytest.mark.parametrize("width", [0.2, 0.9])
def test_composites_deny_no_guarantee_that_they_have(activation, base, width):
    """Where the window's peak never meets the base's least density, the ratio that is proven is not attained."""
    made = CompositeMechanism.private(1.0, width, activation=activation, base=base, rule="pointwise")
    low, high = made.support()
    densities = made.density(np.linspace(low, high, 801)[1:-1, None], np.linspace(-1, 1, 101))
    true = float(np.log((densities.max(axis=1) / densities.min(axis=1)).max()))
    assert made.satisfies(optdp.LDP(1.0)) is True
    if true < 0.99:
        assert made.satisfies(optdp.LDP((1 + true) / 2)) is None
    assert made.satisfies(optdp.LDP(0.5)) is (False if activation == base == Rectangle() else None)


@pytest.mark.parametrize("activation, tight", [(Rectangle(), True), (Sine(), False)])
def test_several_together_deny_no_guarantee_that_they_may_have(activation, tight):
    """What a part does not know of itself nobody knows of several; of a mixture the other part hides what one shows."""
    part = CompositeMechanism.private(1.0, 0.4, activation=activation)
    cube = optdp.Box.cube(2)
    for made in (ProductMechanism(cube, part), SampledCoordinates(cube, part, 2), SidesMechanism(cube, part, part)):
        assert made.satisfies(optdp.LDP(2.0)) is True
        assert made.satisfies(optdp.LDP(1.9)) is (False if tight else None)
    assert Mixture((part,), (1.0,)).satisfies(optdp.LDP(0.9)) is (False if tight else None)


def test_a_mixture_is_not_known_to_lack_what_it_has():
    parts = CompositeMechanism.private(1.0, 0.4), CompositeMechanism.private(2.0, 0.3)
    made = Mixture(parts, (0.999, 0.001))
    low, high = made.support()
    densities = made.density(np.linspace(low, high, 801)[1:-1, None], np.linspace(-1, 1, 101))
    assert densities.max() < math.exp(1.1) * densities[densities > 0].min()
    assert made.satisfies(optdp.LDP(1.9)) is None and made.satisfies(optdp.LDP(2.0)) is True


def test_answers_beyond_all_floats_are_refused():
    """They were infinite, and a mechanism of infinite answers was told to be unbiased."""
    with pytest.raises(ValueError, match="beyond all floats"):
        CompositeMechanism.private(1e-12, 0.4, (-1e300, 1e300))
    made = CompositeMechanism.private(1e-6, 0.4, (-1e300, 1e300))
    assert np.isfinite(made.support()).all() and np.isfinite(made.randomize(np.full(100, 1e300), 0)).all()


def test_integers_that_are_no_floats_are_refused_where_distances_count():
    """2^60 + 127 and 2^60 + 129 are 2 apart; as floats they are 256 apart, which is more than the sensitivity."""
    domain = optdp.Interval(2.0**60, 2.0**60 + 1024)
    assert CentralPiecewise(1.0, domain, 9).sensitivity < 256
    with pytest.raises(ValueError, match="floats"):
        CentralPiecewise(1.0, domain, 9).randomize(np.array([2**60 + 127, 2**60 + 129]), 0)
    assert CentralPiecewise(1.0, domain).randomize(np.array([2**60 + 127, 2**60 + 129]), 0).shape == (2,)


@pytest.mark.parametrize(
    "domain", [(-1.0, 1.0), (1e15, 1e15 + 3), (2.0**52, 2.0**52 + 8), (-1e16, -1e16 + 10), (2.0**52, 2.0**52 + 1)]
)
@pytest.mark.parametrize("eps, zero", [(1.0, 0.0), (2.0, -1.0), (20.0, -1.0)])
def test_three_outputs_among_few_floats_have_the_stated_moments(domain, eps, zero):
    """Those of the floats that are sent, by exact sums: outputs are rounded, and the middle of the domain may be no float."""
    mechanism = ThreeOutputs(eps, optdp.Interval(*domain), zero)
    width, start = Fraction(domain[1]) - Fraction(domain[0]), Fraction(domain[0])
    for x in np.linspace(*domain, 5).tolist():
        places = [Fraction(y) for y in mechanism.atoms().tolist()]
        law = [Fraction(p) for p in mechanism.probability(mechanism.atoms(), x).tolist()]
        mean = sum(p * y for p, y in zip(law, places, strict=True)) / sum(law)
        variance = sum(p * (y - mean) ** 2 for p, y in zip(law, places, strict=True))
        assert float(sum(law)) == pytest.approx(1, abs=1e-12)
        assert float(mechanism._bias(np.array(x))) == pytest.approx(float(mean - Fraction(x)), abs=1e-12 * float(width))
        assert abs(Fraction(float(mechanism.mean(x))) - mean) <= Fraction(math.ulp(x)) + width / 10**12
        assert float(mechanism.variance(x)) == pytest.approx(float(variance), abs=1e-12 * float(width) ** 2)
        squared = float(variance + (mean - Fraction(x)) ** 2)
        assert float(mechanism.expected_loss(x, "squared")) == pytest.approx(squared, abs=1e-12 * float(width) ** 2)
    assert abs(mean - start) <= width + mechanism.reach * Fraction(math.ulp(domain[1]))


def test_the_middle_of_a_domain_need_be_no_float():
    """Inputs at its ends were taken for its middle, and for more than its end: the answers' mean was half a domain off."""
    domain = optdp.Interval(2.0**52, 2.0**52 + 1)
    for mechanism in (CentralPiecewise(1.0, domain), VaryingWindow(0.5, domain), ThreeOutputs(1.0, domain)):
        assert mechanism._unit([domain.lower, domain.upper]).tolist() == [-1.0, 1.0]
        assert np.unique(mechanism.atoms()).size == mechanism.atoms().size
        y = mechanism.randomize(np.repeat([domain.lower, domain.upper], 40_000), 1).reshape(2, -1) - domain.lower
        assert y.mean(axis=1) - [0, 1] == pytest.approx(
            mechanism._bias(np.array([domain.lower, domain.upper])), abs=0.1
        )


@pytest.mark.parametrize("make", [ThreeOutputs, VaryingWindow, CentralPiecewise])
def test_mechanisms_with_answers_beyond_all_floats_are_refused(make):
    with pytest.raises(ValueError, match=r"domain = .* is not allowed: at this eps .* beyond all floats"):
        make(0.1, optdp.Interval(0.0, 1e308))


def test_the_middle_of_a_domain_near_the_largest_float_is_one():
    assert ThreeOutputs(1.0, optdp.Interval(1e308, 1.2e308), 0.0).mean(1.1e308) == pytest.approx(1.1e308)

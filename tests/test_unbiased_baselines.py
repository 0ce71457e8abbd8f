"""Published unbiased mechanisms: their variance formulas against their own distributions, privacy on a grid, samplers."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import sympy as sp

import optdp
from optdp.closed_forms import unbiased as forms
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines.unbiased import (
    OTHERS,
    UNBIASED,
    CentralPiecewise,
    LocalDiscreteLaplace,
    LocalGaussian,
    ThreeOutputs,
)
from optdp.mechanisms.baselines import unbiased

EPS = (0.3, 0.7, 1.0, 2.0, 5.0)
INPUTS = np.array([-1.0, -0.35, 0.0, 0.5, 1.0])


def _moments(mechanism: Mechanism, x: float, powers=(0, 1, 2)) -> list[float]:
    """Integrals of y^p against density and atoms, by a route that does not use the mechanism's own moments."""
    low, high = mechanism.support()
    spread = 60 / min(mechanism.privacy(), 1.0)
    finite = math.isfinite(low)
    a, b = (low, high) if finite else (x - 2 * spread, x + 2 * spread)
    y = np.linspace(a, b, 2_000_001)
    middle, h = (y[:-1] + y[1:]) / 2, y[1] - y[0]
    density = mechanism.density(middle, x)
    if isinstance(mechanism, LocalDiscreteLaplace):
        reach = 0 if mechanism.truncated else int(60 * mechanism.steps / mechanism.eps)
        atoms = mechanism.domain.lower + mechanism.step * np.arange(-reach, mechanism.steps + reach + 1)
    elif hasattr(mechanism, "atoms"):
        atoms = mechanism.atoms()
    else:
        atoms = np.array([mechanism.domain.lower, mechanism.domain.upper])
    masses = mechanism.probability(atoms, x)
    return [float(np.sum(density * middle**p) * h + np.sum(masses * atoms**p)) for p in powers]


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


@pytest.mark.parametrize("name", ["truncated Laplace", "truncated discrete Laplace"])
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
        (unbiased.laplace, forms.LAPLACE),
        (unbiased.duchi, forms.DUCHI),
        (unbiased.piecewise, forms.PM),
        (unbiased.pm_sub, forms.PM_SUB),
        (unbiased.gaussian, forms.GAUSSIAN.subs(forms.delta, sp.Rational(1, 10**5))),
    ],
)
def test_published_variances(make, formula):
    printed = sp.lambdify((forms.eps, forms.x), formula)
    for eps in EPS if make is not unbiased.gaussian else (0.3, 0.7, 1.0):
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
            mechanism = LocalDiscreteLaplace(eps, optdp.Interval(-1.0, 1.0), steps)
            assert float(mechanism.variance(1.0)) == pytest.approx(printed(eps, steps), rel=1e-12)


def _ratio(mechanism: Mechanism, pairs) -> float:
    """The largest likelihood ratio seen over outputs, densities and atoms, for the given pairs of inputs."""
    low, high = mechanism.support()
    y = np.linspace(max(low, -30.0), min(high, 30.0), 20_001)[1:-1]
    largest = 1.0
    for a, b in pairs:
        for f in (mechanism.density, mechanism.probability):
            where = y if f == mechanism.density else (mechanism.atoms() if hasattr(mechanism, "atoms") else np.empty(0))
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
    if name != "truncated Laplace":
        assert mechanism.variance(x) == pytest.approx(4 * make(0.9, (-1.0, 1.0)).variance((x - 5) / 2), rel=1e-9)
    with pytest.raises(ValueError, match="must lie"):
        mechanism.randomize(2.9)
    with pytest.raises(ValueError, match="eps"):
        make(0.0)


def test_gaussian_says_where_its_formula_stops():
    with pytest.raises(ValueError, match="eps <= 1"):
        LocalGaussian(2.0)
    assert LocalGaussian(2.0, strict=False).scale < LocalGaussian(1.0).scale


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

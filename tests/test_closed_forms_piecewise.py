"""The closed forms, derived by sympy, against the solver; and a perturbation that the check must see."""

import pytest
import sympy as sp
from hypothesis import given

import optdp
from optdp.closed_forms import piecewise as forms
from tests.conftest import epsilons


@pytest.mark.parametrize("q", [1, 2, 3, 5])
def test_the_stationarity_condition_is_the_trinomial_of_the_solver(q):
    u = sp.Symbol("u", positive=True)
    assert sp.simplify(forms.trinomial(q, u) - (u ** (q + 1) - (q + 1) * u - q * (sp.exp(forms.eps) - 1))) == 0


def test_abs_closed_form_satisfies_it_identically():
    s = sp.Symbol("s", positive=True)
    u = 1 / forms.window_share(1)
    assert sp.simplify(forms.trinomial(1, u).subs(forms.eps, 2 * sp.log(s))) == 0


@given(epsilons(0.01, 12))
def test_squared_closed_form_satisfies_it_to_fifty_digits(eps):
    u = sp.Symbol("u", positive=True)
    exact = sp.Rational(*float(eps).as_integer_ratio())
    root = (1 / forms.window_share(2)).subs(forms.eps, exact).evalf(60)
    residual = forms.trinomial(2, u).subs({u: root, forms.eps: exact}).evalf(50)
    assert abs(residual) < 1e-45 * abs(root) ** 3


@pytest.mark.parametrize("loss", ["abs", "squared"])
@given(eps=epsilons(0.01, 10))
def test_closed_form_lies_in_the_certified_bracket(loss, eps):
    solution = optdp.solve_piecewise(eps, 4, loss, domain=(1, 3))
    value = solution.closed_form.subs(forms.eps, sp.Rational(*float(eps).as_integer_ratio())).evalf(40)
    value = complex(value).real
    assert solution.lower_bound * (1 - 1e-15) <= value <= solution.value * (1 + 1e-15)
    wrong = value * (1 + 1e-12)
    assert not solution.lower_bound * (1 - 1e-15) <= wrong <= solution.value * (1 + 1e-15)


@pytest.mark.parametrize("q", [1, 2])
def test_height_is_that_of_the_mechanism(q):
    for eps in (0.3, 1.0, 4.0):
        peak = optdp.solve_piecewise(eps, 3, optdp.Power(q), domain=(0, 2)).mechanism.peak
        height = complex(forms.optimal_height(q, 2).subs(forms.eps, eps).evalf()).real
        assert height == pytest.approx(peak, rel=1e-12)


def test_closed_forms_exist_only_where_known():
    assert optdp.solve_piecewise(1, 3, optdp.Power(1.5)).closed_form is None
    two = optdp.solve_piecewise(1, 2, "squared", domain=(0, 3))
    assert two.closed_form == 3
    with pytest.raises(ValueError, match="q = 3"):
        forms.window_share(3)

"""The closed forms of the kernel program: derived, proven by their dual points, attained by their mechanisms."""

import math
from fractions import Fraction

import pytest
import sympy as sp

import optdp
from optdp.closed_forms import kernel as forms
from optdp.mechanisms.kernel import two_point

E = sp.Symbol("E", positive=True)
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


@pytest.mark.parametrize("domain", [(0.0, 1.0), (-3.0, 5.0)])
@pytest.mark.parametrize("eps", [0.1, 1.0, 1.76])
def test_two_points_attain_the_squared_form_exactly(eps, domain):
    mechanism = two_point(eps, domain)
    width = Fraction(domain[1]) - Fraction(domain[0])
    value = float(forms.squared_value(width).subs(forms.eps, eps))
    low, high = mechanism.enclose(optdp.WorstCase("squared"))
    assert low == pytest.approx(value, rel=1e-12)
    assert high == pytest.approx(value, rel=1e-12)
    assert all(check.passed for check in mechanism.check_privacy(optdp.LDP(eps)))
    assert mechanism.privacy() == pytest.approx(eps, rel=1e-12)
    assert mechanism.satisfies(optdp.LDP(eps))


def test_with_an_exact_logarithm_the_form_is_rational_and_so_is_the_bound():
    solution = optdp.solve_kernel(optdp.log(3), "squared", rtol=1e-6)
    assert solution.lower_bound <= 3 / 16 <= solution.value and solution.gap < 1e-6
    assert two_point(optdp.log(3)).exact_ratio <= 3


def test_solutions_carry_the_closed_form_where_it_is_proven():
    for arguments, eps in (
        ((1, "squared"), 1.0),
        ((1, "squared", (-1, 2)), 1.0),
        ((optdp.log(3), "squared"), math.log(3)),
    ):
        solution = optdp.solve_kernel(*arguments[:2], outputs=(arguments[2:] or (None,))[0], rtol=0.02)
        form = float(solution.closed_form.subs(forms.eps, eps))
        assert solution.lower_bound <= form * (1 + 1e-15) and form <= solution.value * (1 + 1e-15)
    assert optdp.solve_kernel(2, "squared", rtol=0.05).closed_form is None
    assert optdp.solve_kernel(1, "squared", outputs=(0.25, 0.625), rtol=0.05).closed_form is None
    assert optdp.solve_kernel(1, "squared", prior=([0, 1], [0.5, 0.5])).closed_form is None
    assert optdp.solve_kernel(1, rtol=0.05).closed_form is None


@pytest.mark.parametrize("eps", [0.5, 0.72, 1.3])
def test_unbiased_solutions_have_the_closed_form_of_the_varying_window_in_their_bracket(eps):
    solution = optdp.solve_kernel(eps, unbiased=True, domain=(0, 1), rtol=0.02)
    assert solution.lower_bound <= float(solution.closed_form.subs(forms.eps, eps)) <= solution.value


@pytest.mark.parametrize("eps", [0.01, 0.3, 0.64, 0.9])
def test_five_outputs_attain_the_absolute_form(eps):
    """Rows raise the nearest outputs first; the largest error over the inputs is the value, and the floor leaves room."""
    e = math.exp(eps)
    outputs = forms.abs_floor(e)
    room = (1 - sum(m for _, m in outputs)) / (e - 1)
    errors = []
    for x in [i / 400 for i in range(401)]:
        left, error = room, sum(m * abs(y - x) for y, m in outputs)
        for y, m in sorted(outputs, key=lambda output: abs(output[0] - x)):
            raised = min(left, m)
            left, error = left - raised, error + (e - 1) * raised * abs(y - x)
        assert left < 1e-12
        errors.append(error)
    value = float(forms.abs_value().subs(forms.eps, eps))
    assert max(errors) == pytest.approx(value, rel=1e-12) and errors[0] == pytest.approx(value, rel=1e-12)
    assert value < (1 + e) / (4 * e)  # two outputs


def test_the_absolute_form_is_optimal_up_to_its_limit_and_no_further():
    limit = float(forms.abs_limit())
    assert forms.abs_limit() == max(sp.log(r) for r in sp.real_roots(3 * E**3 - 7 * E**2 + 3 * E - 1, E))
    assert 0 < limit - forms._ABS_LIMIT < 1e-6
    for eps in (0.1, 0.6):
        solution = optdp.solve_kernel(eps, rtol=1e-3)
        assert solution.lower_bound <= float(forms.abs_value().subs(forms.eps, eps)) <= solution.value * (1 + 1e-12)
    beyond = optdp.solve_kernel(0.9, rtol=1e-3)
    assert beyond.value < float(forms.abs_value().subs(forms.eps, 0.9))


def test_the_absolute_form_is_registered_where_it_is_proven():
    from optdp.closed_forms import optimum

    def found(eps, **options):
        return optimum(optdp.solve_kernel(eps, rtol=0.5, **options).problem)

    assert sp.simplify(found(0.6, domain=(-1, 2)) - 3 * forms.abs_value()) == 0
    assert found(0.65) is None and found(0.6, outputs=(0.1, 0.9)) is None
    assert optdp.discoveries("D-OGPM-8").settled

"""The squared loss beyond ln(3 + 2 sqrt 2): bound and mechanism by quadrature and by a linear program, and its registration."""

import math

import numpy as np
import pytest
import sympy as sp
from flint import arb

import optdp
from optdp.closed_forms import optimum
from optdp.closed_forms import squared_window as forms


def floor(eps, cells=400):
    """The mechanism's floor on [0, 1] as points and masses; the density in |y - 1/2| by Gauss nodes."""
    e = math.exp(eps)
    if eps < forms.LIMIT_ONE:
        low, high = 1.0, 1 + 2 / e
        for _ in range(60):
            w = (low + high) / 2
            low, high = (w, high) if forms.slope(e, w, math.log(w)) > 0 else (low, w)
        beta = 0.0
    else:
        w, long = 1 + 2 / e, math.log(1 + 2 / e)
        beta = (e**2 + e + 2) * forms.without_middle(e, long) / (e * (e - 2) ** 2 * (e - 1) * (e + 2))
    far = (e - w) / (2 * (e + 1))
    half, inside = (1 - beta) / (e + 1), math.log(w) / (2 * (e - 1))
    inner = (half - beta - inside) / 2
    nodes, weights = np.polynomial.legendre.leggauss(cells)
    eta = far * w ** ((nodes - 1) / 2)
    masses = weights / 2 * inside
    eta = np.concatenate([[far, far / w], eta])
    masses = np.concatenate([[inner + beta, inner], masses])
    return np.concatenate([0.5 - eta, [0.5], 0.5 + eta]), np.concatenate([masses, [beta], masses])


def least_errors(eps, points, masses, inputs):
    """For each input the least error of a row between the floor and E times it, the nearest outputs first."""
    e, out = math.exp(eps), []
    for x in inputs:
        cost = (points - x) ** 2
        order = np.argsort(cost, kind="stable")
        room = (1 - masses.sum()) / (e - 1)
        taken = np.clip(room - np.concatenate([[0], np.cumsum(masses[order])[:-1]]), 0, masses[order])
        assert taken.sum() == pytest.approx(room, rel=1e-12)
        out.append(cost @ masses + (e - 1) * cost[order] @ taken)
    return np.array(out)


@pytest.mark.parametrize("eps", [1.77, 1.9, 2.05, 2.114, 2.2, 2.5, 2.72])
def test_the_floor_attains_the_value_at_every_input(eps):
    value = float(forms.value(eps)) if eps < forms.LIMIT_ONE else float(forms.windows_value().subs(forms.eps, eps))
    errors = least_errors(eps, *floor(eps), np.linspace(0, 1, 401))
    assert errors.max() == pytest.approx(value, rel=1e-5) and errors[0] == pytest.approx(value, rel=1e-9)
    assert errors[200] == pytest.approx(value, rel=1e-5)


def test_beyond_the_second_limit_the_mechanism_is_worse_elsewhere_and_the_value_only_a_bound():
    errors = least_errors(2.8, *floor(2.8), np.linspace(0, 1, 401))
    assert errors.max() > float(forms.windows_value().subs(forms.eps, 2.8)) * 1.005


@pytest.mark.parametrize("eps", [1.9, 2.5])
def test_the_value_lies_in_the_solvers_bracket(eps):
    solution = optdp.solve_kernel(eps, "squared", rtol=2e-2)
    value = float(forms.value(eps)) if eps < 2 else float(forms.windows_value().subs(forms.eps, eps))
    assert solution.lower_bound <= value * (1 + 1e-12) and value <= solution.value * (1 + 1e-12)


def test_the_two_ranges_meet_and_begin_where_two_outputs_end():
    start = math.log(3 + 2 * math.sqrt(2)) + 1e-9
    assert float(forms.value(start)) == pytest.approx(0.125, rel=1e-8)
    assert float(forms.value(2.114011)) == pytest.approx(
        float(forms.windows_value().subs(forms.eps, 2.114011)), rel=1e-9
    )
    for eps in (1.7, 2.2):
        with pytest.raises(ValueError, match="is not allowed"):
            forms.value(eps)
    # No other parameter gives a better bound, and a better one than at w = 1, the fair coin's.
    e, best = math.exp(1.95), float(forms.value(1.95))
    assert all(forms.bound(e, w, math.log(w)) <= best + 1e-15 for w in np.linspace(1, 1 + 2 / e, 50))
    assert forms.bound(e, 1.0, 0.0) == pytest.approx(e / (1 + e) ** 2, rel=1e-14)


def test_it_is_registered_where_it_is_proven():
    def problem(eps, **options):
        return optdp.solve_kernel(eps, "squared", rtol=0.5, **options).problem

    for width in (1, 3):
        found = optimum(problem(2.3, domain=(0, width)))
        assert sp.simplify(found - width**2 * forms.windows_value()) == 0
    for eps in (1.9, 2.8):
        assert optimum(problem(eps)) is None
    assert optimum(problem(2.3, outputs=(0.1, 0.9))) is None
    assert optimum(optdp.solve_kernel(2.3, "abs", rtol=0.5).problem) is None


def test_the_discovery_is_decided_by_its_checks(monkeypatch):
    from optdp.audit.ogpm import squared as checks

    true = forms.bound
    monkeypatch.setattr(forms, "bound", lambda e, w, log: true(e, w, log) * (10**6 + 1) / 10**6)
    assert not all(checks.primal_identities().values()) and not all(checks.dual_identities().values())


def test_balls_enclose():
    assert forms.value(2.0).rad() < arb("1e-25")

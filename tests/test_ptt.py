"""solve_ptt: known optima, identities, certificates that can fail, samplers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
import sympy as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import optdp
from optdp.audit.optt import ptt as forms
from optdp.certificates.affine_window import AffineWindowCertificate, certify
from optdp.certificates.base import Refusal
from optdp.closed_forms.affine_window import best_window
from optdp.design.ptt import build_model, ptt_mechanism, shape_of, variance_at
from optdp.exact import enclosures, polynomial
from optdp.mechanisms.composite import CompositeMechanism
from optdp.mechanisms.piecewise import CELLS
from optdp.mechanisms.vector import OneCoordinate
from optdp.problem.constraints import Unbiased
from optdp.problem.shapes import Quartic, Rectangle, Steps, Triangle
from optdp.solution import Solution

WORST = optdp.WorstCase("squared")


def variance(mechanism, objective=WORST):
    """The proven upper end of the mean square error."""
    return mechanism.enclose(objective)[1]


def problem_of(eps, family, objective=WORST, domain=(-1.0, 1.0)):
    return optdp.Problem(optdp.LDP(eps), domain, objective, family, (Unbiased(),))


epsilons = st.floats(0.01, 30.0)
inputs = st.floats(-1.0, 1.0)


def test_worst_case_at_one_is_the_known_optimum_and_beats_pm():
    solution = optdp.solve_ptt(1.0)
    assert solution.value == pytest.approx(5.06568, abs=5e-6)
    assert solution.mechanism.eta == pytest.approx(2.28876, abs=5e-6)
    assert solution.gap <= 1e-9 and solution.verify()
    pm = 4 * math.exp(0.5) / (3 * math.expm1(0.5) ** 2)
    assert pm == pytest.approx(5.22360, abs=5e-6)
    assert solution.value < pm
    assert ptt_mechanism(1.0, math.exp(0.5) + 1).enclose(WORST)[0] == pytest.approx(pm, rel=1e-12)


@pytest.mark.parametrize(("kind", "limit"), [("I", 16 / 3), pytest.param("II", 64 / 3, marks=pytest.mark.soak)])
def test_small_eps_limit(kind, limit):
    assert forms.small_eps_limit(kind) == sp.nsimplify(limit)
    for eps in (1e-2, 1e-3):
        assert eps**2 * optdp.solve_ptt(eps, kind).value == pytest.approx(limit, rel=2 * eps)


@settings(deadline=None, max_examples=30)
@given(epsilons, st.sampled_from(["I", "II", "free"]), st.one_of(st.just("worst"), inputs))
def test_every_solution_is_tight_and_verifies(eps, kind, objective):
    solution = optdp.solve_ptt(eps, kind, objective=objective)
    assert 0 <= solution.gap <= 1e-9
    assert solution.status is optdp.Status.OPTIMAL
    assert solution.verify(), str(solution.verify())


@settings(deadline=None, max_examples=50)
@given(epsilons, inputs, st.floats(1.001, 50.0), st.sampled_from(["I", "II"]))
def test_no_member_of_the_family_is_below_the_bound(eps, x, eta, kind):
    solution = optdp.solve_ptt(eps, kind, objective=x)
    assert float(variance_at(eps, eta, x, kind)) >= solution.lower_bound * (1 - 1e-12)
    member = ptt_mechanism(eps, eta, kind)
    assert member.enclose(optdp.At("squared", x))[0] >= solution.lower_bound * (1 - 1e-9)


@settings(deadline=None, max_examples=25)
@given(epsilons, st.one_of(st.just("worst"), inputs))
def test_the_rectangle_is_the_best_window_and_no_range_off_centre_pays(eps, objective):
    """Kind "free" has its own certificate over any density and range: it confirms the value of kind "I"."""
    free, first = optdp.solve_ptt(eps, "free", objective=objective), optdp.solve_ptt(eps, "I", objective=objective)
    assert free.lower_bound == pytest.approx(first.value, rel=1e-12)
    second = optdp.solve_ptt(eps, "II", objective=objective)
    assert second.lower_bound > first.value


@pytest.mark.parametrize("objective", ["worst", 0.0, 0.7])
def test_free_as_a_linear_program_agrees(objective):
    solution = optdp.solve_ptt(1.5, "free", objective=objective, backend="lp", cells=60)
    assert solution.lower_bound <= solution.program.objective <= solution.lower_bound * 1.01
    assert solution.verify() and solution.gap < 1e-2


@pytest.mark.parametrize("kind", ["I", "II"])
def test_scip_on_the_plain_program_agrees(kind):
    solution = optdp.solve_ptt(1.0, kind, backend="scip")
    assert solution.program.objective == pytest.approx(optdp.solve_ptt(1.0, kind).value, rel=1e-4)
    assert solution.verify() and solution.gap < 1e-4


def test_model_has_the_mass_constraint_and_the_optimum_satisfies_it():
    model, best = build_model(1.0), optdp.solve_ptt(1.0).mechanism
    k, w, unit = best.stretch, float(best.exact_window), float(model.unit.value)
    model.k.value, model.a.value, model.reach.value = k / unit, k * w / (1 - w) / unit, k / (1 - w) / unit
    model.f.value = best.floor_mass / (2 * model.reach.value)
    model.window.value = (1 - best.floor_mass) * unit
    for constraint in (model.mass, model.mass_of_window, model.unbiased, model.range):
        assert float(constraint.body()) == pytest.approx(float(constraint.upper()), abs=1e-9)


def test_ratio_eta_is_a_root_of_the_stationary_polynomial():
    for kind in ("I", "II"):
        for eps, x in ((0.3, 1.0), (1.0, 0.0), (4.0, 0.4)):
            eta = optdp.solve_ptt(eps, kind, objective=x).mechanism.eta
            quartic = forms.stationary(kind).as_expr().subs({forms.E: math.exp(eps), forms.x: x})
            slope = sp.diff(quartic, forms.eta).subs(forms.eta, eta)
            assert abs(float(quartic.subs(forms.eta, eta) / slope)) < 1e-7 * eta
    assert 1 / best_window(1.0, Rectangle(), Rectangle())[0] == pytest.approx(
        optdp.solve_ptt(1.0).mechanism.eta, rel=1e-12
    )


def test_derived_constants_are_those_the_paper_prints_and_mass_is_what_it_forgets():
    for kind in forms.KINDS:
        printed, derived = forms.printed(kind), forms.constants(kind)
        assert sp.simplify(printed["p"] - derived["p"]) == 0
        assert sp.simplify(printed["q"] - derived["q"]) == 0
        assert sp.simplify(printed["variance"] - forms.variance(kind, mass=False)) == 0
        mass = derived["mass"].subs({forms.k: derived["k"], forms.a: derived["a"]})
        assert sp.simplify(mass - 1) == 0
    # Theorem 4's optimum, with q = 1/2 at eps = 1: its parameters do not have mass 1.
    ratio = math.e
    eta = float(max(sp.Poly(sp.Symbol("z") ** 3 - 3 * sp.Symbol("z") ** 2 - 2 * (ratio - 1)).nroots(), key=sp.re))
    k = ratio / (0.5 * (ratio - 1))
    mass = forms.constants("I")["mass"].subs({forms.k: k, forms.a: k / (eta - 1), forms.E: ratio})
    assert abs(float(mass) - 1) > 0.05


def test_symbolic_variance_is_the_one_the_solver_uses():
    for kind in forms.KINDS:
        expression = sp.lambdify((forms.E, forms.eta, forms.x), forms.variance(kind))
        for eps, eta, x in ((0.2, 2.0, 0.5), (1.0, 3.1, -1.0), (5.0, 7.0, 0.0)):
            assert expression(math.exp(eps), eta, x) == pytest.approx(float(variance_at(eps, eta, x, kind)), rel=1e-12)


def test_parametric_closed_form_passes_through_the_optimum():
    for kind in forms.KINDS:
        curve = forms.parametric(kind)
        for x in (0, 1):
            for eps in (0.5, 1.0, 3.0):
                solution = optdp.solve_ptt(eps, kind, objective=float(x))
                at = {forms.eta: solution.mechanism.eta, forms.x: x}
                assert float(curve.subs(at)) == pytest.approx(math.exp(eps), rel=1e-6)


def test_pm_has_half_of_what_the_paper_prints_for_k_and_a():
    s = sp.Symbol("s", positive=True)
    pm = forms.piecewise_mechanism()
    assert sp.simplify(pm["k"] - s / (s - 1)) == 0 and sp.simplify(pm["a"] - 1 / (s - 1)) == 0
    assert sp.simplify(pm["worst"] - 4 * s / (3 * (s - 1) ** 2)) == 0


def test_crossing_with_duchi():
    """No I-PTT beats Duchi's worst case at eps <= 1.183, the best one does from 1.184 on."""

    def duchi(eps):
        return 1 / math.tanh(eps / 2) ** 2

    assert optdp.solve_ptt(1.183).lower_bound > duchi(1.183)
    assert optdp.solve_ptt(1.184).value < duchi(1.184)
    assert float(variance_at(1.0, 1.9, 1.0)) > duchi(1.0)  # the eta = 19/10 of Theorem 9


def test_conjecture_two_holds_wherever_it_is_tried():
    for eps in np.geomspace(1e-3, 30, 40):
        assert optdp.solve_ptt(float(eps)).value < 8 / eps**2


def test_a_threshold_above_the_minimum_is_not_proven():
    for objective in (WORST, optdp.At("squared", 0.0), optdp.At("squared", 0.5), optdp.At("squared", -1.0)):
        for family in (optdp.AffineWindow("I"), optdp.AffineWindow("free"), optdp.Composite("A1", Quartic(0.5))):
            for eps in (1.0, 12.0):
                problem = problem_of(eps, family, objective)
                position = abs(Fraction(objective.x)) if isinstance(objective, optdp.At) else None
                least = best_window(eps, family.activation, family.base, "uniform", position, shifts=True)[2]
                assert certify(problem, least).bound(problem).value >= least * (1 - 1e-13)
                with pytest.raises(Refusal, match="too high"):
                    AffineWindowCertificate(least * (1 + 1e-13)).bound(problem)
                assert certify(problem, least * 1.5).bound(problem).value <= least * (1 + 1e-14)


def test_the_bound_for_windows_is_for_unbiased_ones_at_the_worst_or_one_input():
    """All of these can be had for less, or are about something else."""
    best = optdp.solve_ptt(1.0, "I")
    for change in (
        {"family": optdp.AllMechanisms()}, {"family": optdp.Piecewise(3)}, {"constraints": ()},
        {"objective": optdp.Average("squared", "uniform")}, {"objective": optdp.WorstCase("abs")},
        {"privacy": optdp.ApproxDP(1.0)}, {"domain": optdp.Circle(2.0)},
    ):  # fmt: skip
        with pytest.raises(Refusal):
            best.certificate.bound(replace(best.problem, **change))


def test_moving_the_range_pays_for_a_base_with_little_spread():
    """At an input near the end, for a quartic base at large eps: a bound over centred ranges alone would be wrong."""
    problem = problem_of(20.0, optdp.Composite("A1", Quartic(0.5)), optdp.At("squared", 0.9))
    for x in (0.9, -0.9):
        solution = optdp.solve(problem_of(20.0, problem.family, optdp.At("squared", x)))
        assert solution.verify() and solution.gap < 1e-12
        assert sum(solution.mechanism.support()) * x > 0.1  # moved towards x
        centred = best_window(20.0, Rectangle(), Quartic(0.5), "uniform", Fraction(0.9))[2]
        assert solution.value < centred * (1 - 1e-3)
        with pytest.raises(Refusal):
            AffineWindowCertificate(centred).bound(problem)


def test_a_threshold_follows_the_problem_it_is_handed():
    """One certificate in other problems: a scaled domain scales its bound, another class must be proven again or is refused."""
    first, second = optdp.solve_ptt(1.0), optdp.solve_ptt(1.0, "II")
    wide = problem_of(1.0, optdp.AffineWindow("II"), WORST, (10.0, 14.0))
    assert second.certificate.bound(wide).value == pytest.approx(4 * second.lower_bound, rel=1e-14)
    assert first.certificate.bound(second.problem).value == pytest.approx(first.lower_bound)  # true, if weak
    refused = {
        "another kind": first.problem,
        "another epsilon": problem_of(1.5, optdp.AffineWindow("II")),
        "one input": problem_of(1.0, optdp.AffineWindow("II"), optdp.At("squared", 0.5)),
        "another rule": problem_of(1.0, optdp.Composite("A1", Quartic(0.5), "pointwise")),
        "without the constraint": optdp.Problem(optdp.LDP(1.0), (-1, 1), WORST, optdp.AffineWindow("II")),
        "all mechanisms": problem_of(1.0, optdp.AllMechanisms()),
        "another loss": problem_of(1.0, optdp.AffineWindow("II"), optdp.WorstCase("abs")),
        "another notion": optdp.Problem(
            optdp.ApproxDP(1.0, 0.1), (-1, 1), WORST, optdp.AffineWindow("II"), (Unbiased(),)
        ),
        "an average": problem_of(1.0, optdp.AffineWindow("II"), optdp.Average("squared", "uniform")),
        "too large an epsilon": problem_of(1e308, optdp.AffineWindow("II")),
        "no privacy at all to lose": problem_of(0.0, optdp.AffineWindow("II")),
    }
    for problem in refused.values():
        with pytest.raises(Refusal):
            second.certificate.bound(problem)
        assert not replace(second, problem=problem).verify()


def test_a_solution_of_one_kind_with_the_certificate_of_another_does_not_verify():
    first, second = optdp.solve_ptt(1.0), optdp.solve_ptt(1.0, "II")
    spliced = replace(first, value=second.value, lower_bound=second.lower_bound, certificate=second.certificate)
    assert [check.name for check in spliced.verify().failures] == ["lower bound"]
    assert not replace(second, mechanism=first.mechanism).verify()


def test_membership_asks_for_shapes_and_for_the_rule():
    private = CompositeMechanism.private
    one, two = optdp.AffineWindow("I"), optdp.AffineWindow("II")
    rectangle, triangle = private(1.0, 0.4), private(1.0, 0.4, activation=Triangle())
    assert one.contains(rectangle, 1.0) and not two.contains(rectangle, 1.0)
    assert two.contains(triangle, 1.0) and not one.contains(triangle, 1.0)
    assert optdp.AffineWindow("free").contains(triangle, 1.0)
    assert not one.contains(rectangle, 0.99) and one.contains(private(0.99, 0.4), 1.0)
    assert one.contains(private(optdp.log(3), 0.4), optdp.log(3))
    assert optdp.Composite("A1", "B1", "pointwise").contains(rectangle, 1.0)
    bent = private(1.0, 0.4, base=Quartic(0.7), rule="pointwise")
    assert optdp.Composite("A1", "B2", "pointwise").contains(bent, 1.0)
    assert not optdp.Composite("A1", "B2", "uniform").contains(bent, 1.0)  # its sup over inf is above e
    assert optdp.Composite("A1", Quartic(0.7), "uniform").contains(private(1.0, 0.4, base=Quartic(0.7)), 1.0)
    assert not optdp.Composite("A1", Quartic(0.6), "pointwise").contains(bent, 1.0)
    assert not optdp.AffineWindow("free").contains(bent, 1.0)
    forged = private(1.0, 0.4, base=Steps((3, 4, 4, 3), "B2"), rule="pointwise")
    assert not optdp.Composite("A1", "B2", "pointwise").contains(forged, 1.0)
    assert not one.contains(optdp.solve_piecewise(1.0, domain=(-1, 1)).mechanism, 1.0)


def test_a_wide_triangle_that_only_ldp_bounds_is_below_the_certified_minimum():
    """Why the statement of kind II speaks of the triangle's peak: where windows overlap, LDP alone would allow a higher one."""
    eps, w = 0.1, 0.95
    slope = math.expm1(eps) / 2 * w / (2 * (1 - w))  # the peak that LDP allows there, times the fill
    mass = slope * w
    wide = 1 / mass + (1 + mass) * (1 / 3 + mass * w * w / 6) / (mass * (1 - w)) ** 2
    y, floor, peak = np.linspace(-1, 1, 20_001), 1 / (2 * (1 + mass)), mass / (1 + mass) / w

    def density(centre):
        return floor + peak * np.maximum(1 - np.abs(y - centre) / w, 0)

    ratio = density(1 - w) / density(w - 1)  # the ends are the worst pair
    assert max(ratio.max(), (1 / ratio).max()) <= math.exp(eps) * (1 + 1e-12)
    solution = optdp.solve_ptt(eps, "II")
    assert wide < 0.6 * solution.lower_bound
    assert "up to at most e^0.1 f" in solution.problem.statement()


def test_the_problem_on_another_interval_is_the_scaled_one():
    problem = problem_of("1/2", optdp.AffineWindow("II"), optdp.At("squared", 11.0), (10.0, 14.0))
    solution = optdp.solve(problem, rtol=1e-9)
    unit = optdp.solve_ptt("1/2", "II", objective=-0.5)
    assert solution.value == pytest.approx(4 * unit.value, rel=1e-14) and solution.verify()
    assert Solution.from_dict(json.loads(json.dumps(solution.to_dict()))).verify()
    plain = optdp.solve(problem_of(1.0, optdp.AffineWindow("I"), WORST, (10.0, 14.0)), method="scip", rtol=1e-4)
    assert plain.program.objective == pytest.approx(4 * optdp.solve_ptt(1.0).value, rel=1e-4) and plain.verify()


def test_logarithms_are_exact():
    solution = optdp.solve_ptt(optdp.log(3))
    assert solution.mechanism.exact_ratio <= 3 and solution.verify()
    assert solution.value == pytest.approx(optdp.solve_ptt(math.log(3)).value, rel=1e-14)
    assert "up to at most 3 f" in solution.problem.statement()


def test_what_is_not_solved_is_refused_with_the_reason():
    for problem, reason in (
        (problem_of(1.0, optdp.AffineWindow("I"), optdp.WorstCase("abs")), "squared"),
        (optdp.Problem(optdp.LDP(1.0), (-1, 1), WORST, optdp.AffineWindow("I")), "Unbiased"),
        (problem_of(31.0, optdp.AffineWindow("I")), r"\(0, 30\]"),
        (problem_of(1.0, optdp.AffineWindow("I"), WORST, (0.0, 1e101)), "width"),
    ):
        with pytest.raises(ValueError, match=rf"affine window: .*{reason}"):
            optdp.solve(problem)
    with pytest.raises(ValueError, match="method = 'grid' is not allowed for a AffineWindow"):
        optdp.solve(problem_of(1.0, optdp.AffineWindow("I")), method="grid")
    with pytest.raises(ValueError, match="solver is not allowed"):
        optdp.solve(problem_of(1.0, optdp.AffineWindow("I")), solver=optdp.solvers.Highs())


def test_positivity_of_polynomials():
    from flint import arb, arb_poly, ctx

    with ctx.workprec(enclosures.PRECISION):
        w = arb_poly([0, 1])
        assert polynomial.positive((3 * w - 1) ** 2 + arb(2) ** -100)
        assert not polynomial.positive((3 * w - 1) ** 2)
        assert not polynomial.positive((3 * w - 1) ** 2 - arb(2) ** -100)
        assert not polynomial.positive(w)


def test_tampering_is_found():
    solution = optdp.solve_ptt(1.0)
    data = solution.to_dict()
    for change in (
        lambda d: d.update(lower_bound=d["lower_bound"] * 1.001),
        lambda d: d["problem"]["family"].update(kind="II"),
        lambda d: d["problem"]["privacy"].update(eps=0.9),
        lambda d: d["certificate"].update(threshold=d["certificate"]["threshold"] * 1.001),
        lambda d: d["mechanism"].update(floor_coins=int(d["mechanism"]["floor_coins"]) - 2**100),
        lambda d: d.update(value=d["value"] * 0.999),
    ):
        broken = json.loads(json.dumps(data))
        change(broken)
        assert not Solution.from_dict(broken).verify()
    again = Solution.from_dict(json.loads(json.dumps(data)))
    assert again.verify() and again.mechanism == solution.mechanism


@settings(deadline=None, max_examples=30)
@given(epsilons, st.floats(0.001, 0.999), st.sampled_from(["I", "II"]), st.floats(-0.9, 0.9))
def test_mechanism_is_private_and_unbiased_exactly(eps, width, kind, shift):
    mechanism = CompositeMechanism.private(eps, width, (-1.0, 1.0), shape_of(kind), shift=shift)
    checks = [*mechanism.check_privacy(optdp.LDP(eps)), mechanism.check_unbiased()]
    assert all(c.passed for c in checks), checks
    assert mechanism.privacy() <= eps * (1 + 1e-12) + 1e-15
    if kind == "I":
        w, mass = mechanism.exact_window, mechanism.exact_floor_mass
        peak, floor = mass / 2 + (1 - mass) / (2 * w), mass / 2
        assert peak / floor == mechanism.exact_ratio
        assert enclosures.at_most_exp(peak / floor, eps)


@settings(deadline=None, max_examples=20)
@given(epsilons, st.floats(0.01, 0.99), inputs, st.sampled_from(["I", "II"]))
def test_density_has_the_moments_that_are_claimed(eps, width, x, kind):
    mechanism = CompositeMechanism.private(eps, width, (-1.0, 1.0), shape_of(kind))
    low, high = mechanism.support()
    half, centre = mechanism._halfwidth, float(mechanism._centre(np.asarray(x)))
    cuts = np.unique(np.clip([low, centre - half, centre, centre + half, high], low, high))
    nodes, weights = np.polynomial.legendre.leggauss(8)
    total = np.zeros(3)
    for a, b in pairwise(cuts):
        y = (a + b) / 2 + (b - a) / 2 * nodes
        total += (b - a) / 2 * np.array([np.sum(weights * y**p * mechanism.density(y, x)) for p in (0, 1, 2)])
    scale = high - low
    assert total[0] == pytest.approx(1, rel=1e-9)
    assert total[1] == pytest.approx(x, abs=1e-8 * scale)
    assert total[2] - x**2 == pytest.approx(float(mechanism.variance(x)), rel=1e-7)
    assert float(mechanism.expected_loss(x, "squared")) == pytest.approx(float(mechanism.variance(x)))


@pytest.mark.parametrize("kind", ["I", "II"])
def test_expected_losses_by_quadrature(kind):
    mechanism = optdp.solve_ptt(1.0, kind).mechanism
    for x in (-1.0, 0.3, 1.0):
        y = np.linspace(*mechanism.support(), 400_001)
        for loss in ("abs", optdp.Power(3), lambda d: np.minimum(d, 2.0)):
            law = mechanism._loss(loss)
            plain = np.trapezoid(law(np.abs(y - x)) * mechanism.density(y, x), y)
            assert float(mechanism.expected_loss(x, loss)) == pytest.approx(plain, rel=1e-3)


@pytest.mark.parametrize("kind", ["I", "II"])
def test_samples_follow_the_density(kind):
    mechanism = optdp.solve_ptt(1.0, kind).mechanism
    draws = mechanism.randomize(np.full(200_000, 0.4), 7)
    edges = np.linspace(*mechanism.support(), 41)
    counts, _ = np.histogram(draws, edges)
    assert counts.sum() == draws.size
    fine = np.linspace(edges[0], edges[-1], 400_001)
    cumulative = np.concatenate([[0], np.cumsum(mechanism.density(fine[:-1] / 2 + fine[1:] / 2, 0.4) * np.diff(fine))])
    expected = draws.size * np.diff(np.interp(edges, fine, cumulative))
    assert np.sum((counts - expected) ** 2 / expected) < 39 + 5 * math.sqrt(2 * 39)


def test_vectors_by_one_coordinate():
    inner = optdp.solve_ptt(1.0).mechanism
    mechanism = OneCoordinate(inner, 3)
    x = np.array([0.5, -1.0, 0.0])
    draws = mechanism.randomize(np.tile(x, (300_000, 1)), 1)
    assert (np.count_nonzero(draws, axis=1) <= 1).all()
    assert draws.min() >= mechanism.support()[0] and draws.max() <= mechanism.support()[1]
    error = np.sqrt(mechanism.variance(x) / len(draws))
    assert (np.abs(draws.mean(axis=0) - x) < 5 * error).all()
    assert draws.var(axis=0) == pytest.approx(mechanism.variance(x), rel=0.02)
    assert mechanism.privacy() == inner.privacy()
    assert OneCoordinate.from_dict(json.loads(json.dumps(mechanism.to_dict()))) == mechanism
    with pytest.raises(ValueError, match="3"):
        mechanism.randomize([0.1, 0.2])
    with pytest.raises(ValueError, match="symmetric"):
        OneCoordinate(CompositeMechanism.private(1.0, 0.4, (0.0, 1.0)), 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eps": 0.0}, "eps = 0.0"),
        ({"eps": float("nan")}, "eps = nan"),
        ({"eps": 31}, "eps = 31"),
        ({"eps": "one"}, "eps = 'one'"),
        ({"eps": 1.0, "kind": "III"}, "kind = 'III'"),
        ({"eps": 1.0, "objective": 1.5}, "objective = 1.5"),
        ({"eps": 1.0, "objective": "center"}, "objective = 'center'"),
        ({"eps": 1.0, "backend": "lp"}, "method = 'lp'"),
        ({"eps": 1.0, "backend": "cplex"}, "backend = 'cplex'"),
    ],
)
def test_bad_input_is_named(arguments, message):
    with pytest.raises((ValueError, TypeError), match=message.replace("(", r"\(")):
        optdp.solve_ptt(**arguments)


def test_bad_mechanisms_are_refused():
    with pytest.raises(ValueError, match="must lie"):
        optdp.solve_ptt(1.0).mechanism.randomize(1.5)
    with pytest.raises(ValueError, match="Circle"):
        CompositeMechanism(optdp.Circle(1.0), 5, 5)
    with pytest.raises(ValueError, match="last_cell"):
        CompositeMechanism(optdp.Interval(-1.0, 1.0), CELLS // 2, 5, last_cell=CELLS)
    with pytest.raises(ValueError, match="width_cells"):
        CompositeMechanism(optdp.Interval(-1.0, 1.0), 10, 5, Triangle())
    with pytest.raises(ValueError, match="eta"):
        ptt_mechanism(1.0, 1.0)
    for eps in (1e-40, 1e-300):
        with pytest.raises(ValueError, match=f"eps = {eps} is not allowed: the window would have a probability"):
            optdp.solve_ptt(eps)
    with pytest.raises(ValueError, match="power of two"):
        CompositeMechanism.private(1.0, 0.4, base=Steps((2, 3, 2)))
    assert optdp.solve_ptt(1e-12).verify()


def test_plain_and_scaled_domains_are_the_same_mechanism():
    unit = CompositeMechanism.private(1.0, 0.4)
    wide = CompositeMechanism.private(1.0, 0.4, (10.0, 14.0))
    assert variance(wide) == pytest.approx(4 * variance(unit), rel=1e-15)
    assert Fraction(wide.support()[0]) <= wide.exact_range[0]
    assert wide.randomize(np.array([10.5, 14.0]), 3) == pytest.approx(
        12 + 2 * unit.randomize(np.array([-0.75, 1.0]), 3)
    )

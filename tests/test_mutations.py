"""Directions of rounding: what would go unnoticed at 2^-60 is made large, and every mutation of a direction must show.

e^eps is enclosed to some 2^-55; a bound that is rounded to a float looks the same whichever end of the enclosure is taken. Here
the enclosure is widened to a share of 10^-4. A certificate must then prove less than before, and never more than is true; a
mechanism must be more private than before. With the two ends exchanged in one module (the mutation) both fail.
"""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from unittest import mock

import pytest
from flint import arb

import optdp
from optdp.certificates.base import Refusal
from optdp.exact import enclosures
from tests.solutions import MAKE, solution

WIDTH = 1e-4
EXP = enclosures.exp


def wide(eps):
    """An enclosure of e^eps that is valid and poor."""
    return EXP(eps) * arb(1, WIDTH)


def widened():
    return mock.patch.object(enclosures, "exp", wide)


def exchanged(module):
    """The mutation: in one module, e^eps from below where it should be from above, and the reverse."""
    ends = {"exp_above": enclosures.exp_below, "exp_below": enclosures.exp_above}
    mutant = SimpleNamespace(**{n: getattr(enclosures, n) for n in dir(enclosures) if not n.startswith("__")} | ends)
    return mock.patch(f"{module}.enclosures", mutant)


def bound(certificate, problem):
    try:
        return certificate.bound(problem).value
    except Refusal:
        return None


#: Certificates that take a rational end of the enclosure, a solution with a tight bracket, and whether a proof with the wrong
#: end shows as a bound above the value (it does where multipliers need no feasibility).
DUALS = {
    "optdp.certificates.finite": ["finite hamming", "finite ordered", "finite ordered prior", "finite hamming eps=2"],
    "optdp.certificates.additive": ["additive", "additive squared", "additive discrete", "additive power 1.5"],
    "optdp.certificates.lip": ["lip sum", "lip histogram", "lip lower", "lip ldp", "lip ldp histogram"],
}
CASES = [(module, name) for module, names in DUALS.items() for name in names]


@pytest.mark.parametrize(("module", "name"), CASES)
def test_duals_prove_less_with_a_wider_exponential(module, name):
    own = solution(name)
    before = bound(own.certificate, own.problem)
    with widened():
        after = bound(own.certificate, own.problem)
    assert after is None or after <= before <= own.value


def direction_is_right(module, name):
    """Whether the module uses the end of the enclosure that can only weaken the bound."""
    own = solution(name)
    before = bound(own.certificate, own.problem)
    with widened():
        after = bound(own.certificate, own.problem)
    return after is None or after < before


@pytest.mark.parametrize(("module", "name"), CASES)
def test_an_exchanged_end_is_noticed(module, name):
    """The check above passes on the code as it is and fails on its mutant: the survivors of earlier mutation runs are killed."""
    assert direction_is_right(module, name)
    with exchanged(module):
        assert not direction_is_right(module, name)


@pytest.mark.parametrize("name", ["kernel abs", "kernel outputs", "kernel eps=2"])
def test_the_proof_in_balls_takes_the_upper_end(name):
    """Where thresholds rest on e^eps (g falls below 0), a wider ball proves less; its lower end alone would prove more."""
    own = solution(name)
    certificate = own.certificate
    greedy = replace(
        certificate, point_reaches=tuple(t + 1e-3 for t in certificate.point_reaches),
        reaches=tuple(tuple(t + 1e-3 for t in row) for row in certificate.reaches),
    )  # fmt: skip
    before = bound(greedy, own.problem)
    with widened():
        after = bound(greedy, own.problem)
    with mock.patch.object(enclosures, "exp", lambda eps: EXP(eps) * (1 - WIDTH)):
        wrong = bound(greedy, own.problem)
    assert 0 < after < before < wrong and before < own.lower_bound


@pytest.mark.parametrize("name", [n for n in MAKE if "log" not in n and "'0.1'" not in n])
def test_no_certificate_gains_from_a_poor_enclosure(name):
    """Every certificate, those in ball arithmetic too: with e^eps known to 10^-4 only, it proves no more."""
    own = solution(name)
    before = bound(own.certificate, own.problem)
    with widened():
        after = bound(own.certificate, own.problem)
    assert after is None or after <= before


@pytest.mark.parametrize(
    "name", ["kernel abs", "finite hamming", "additive", "lip ldp", "piecewise abs", "ptt I", "composite A1B1"]
)
def test_mutants_of_all_certificates_are_below_the_truth_at_larger_eps(name):
    """A bound for eps is one for every smaller eps, and with the exact multipliers it falls with eps."""
    own = solution(name)
    values = []
    for shift in (0.0, 1e-9, 1e-6, 1e-3):
        privacy = replace(own.problem.privacy, eps=own.problem.privacy.eps + shift)
        values.append(bound(own.certificate, replace(own.problem, privacy=privacy)) or 0.0)
    assert values == sorted(values, reverse=True)
    assert values[0] > values[-1]


# --- attained exactly, in rationals: e^eps = 3


def randomised_response():
    """Two letters, Hamming loss, e^eps = 3: the optimum is exactly 1/4."""
    return optdp.solve_kernel(optdp.log(3), [[0, 1], [1, 0]], domain=optdp.Alphabet(2))


def test_a_bound_that_is_attained_exactly():
    """The bound is 1/4 at log(3), and at the floats around it on the right side of the truth by one ulp at most."""
    own = randomised_response()
    assert own.verify() and own.lower_bound <= 0.25 <= own.value
    near = float(optdp.log(3))
    below, above = Fraction(enclosures.exp_below(near, 200)), Fraction(enclosures.exp_above(near, 200))
    for eps, growth in ((near, above), (optdp.log(3), Fraction(3))):
        problem = replace(own.problem, privacy=optdp.LDP(eps))
        assert Fraction(bound(own.certificate, problem)) <= 1 / (1 + (below if growth is above else growth))


# --- mechanisms: e^eps from below


MECHANISMS = {
    "optdp.mechanisms.piecewise": lambda: optdp.solve_piecewise(1.0),
    "kernel": lambda: optdp.solve_kernel(1.0, rtol=0.05),
    "optdp.mechanisms.composite": lambda: optdp.solve_composite(1.0),
    "optdp.design.additive": lambda: optdp.solve_additive(1.0, 0.1, rtol=0.05),
}

#: Where the floor of a mechanism is rounded, if not where it is defined.
ROUNDED_IN = {"kernel": "optdp.mechanisms.piecewise"}


def private(module):
    """Whether the mechanism that is made with a poor enclosure keeps eps = 1 when it is known well."""
    with widened():
        made = MECHANISMS[module]()
    return all(check.passed for check in made.mechanism.check_privacy(made.problem.privacy))


@pytest.mark.parametrize("module", list(MECHANISMS))
def test_mechanisms_take_the_lower_end(module):
    assert private(module)
    with exchanged(ROUNDED_IN.get(module, module)):
        try:
            kept = private(module)
        except (ValueError, ArithmeticError, RuntimeError, AssertionError):
            kept = False  # it does not even come about
        assert not kept

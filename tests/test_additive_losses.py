"""Additive noise for losses that are neither |x| nor x^2: Huber, thresholds, polynomial pieces, concave powers."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq

import optdp
from optdp.certificates.additive import SCALE, AdditiveCertificate, lattice_costs
from optdp.certificates.base import Refusal
from optdp.design.additive import curve
from optdp.design.additive.lattice import Bracket, aligned
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.problem import DistanceLoss

#: Convex, concave, with jumps on and off any lattice, and neither.
LOSSES = [
    optdp.Huber(0.5), optdp.Threshold(1.0), optdp.Threshold(2.3), optdp.Power(0.5),
    optdp.Pieces((0, 1, 2), ((0, 0, 1), (1,), ("1/2", "1/4"))), optdp.Pieces((0, "1/3"), ((0, 0, 0, 1), ("1/3", "1/7"))),
]  # fmt: skip
APPROXIMATE = [optdp.ApproxDP(1.0, 0.0), optdp.ApproxDP(1.0, 0.01)]
OTHERS = [optdp.Profile([(0.5, 0.1), (1.5, 0.01)]), optdp.GDP(1.0), optdp.KL(0.5), optdp.RDP(4, 1)]


@pytest.mark.parametrize("width", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("n", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("loss", [*LOSSES, optdp.Pieces((0, 1), ((0, 0, 0, 1), (0, 0, 0, 0, 0, 1)))])
def test_the_broken_line_lies_below_the_loss(loss, n, width):
    """In every cell, at its ends, inside, and at the ends of pieces of the loss."""
    last = 6 * n
    costs = lattice_costs(loss, width, n, last)
    assert (np.diff(costs) >= 0).all()
    breaks = [] if loss.exponent else [b / Fraction(width) for b in loss.polynomials[0]]
    for at in [*(Fraction(k, 5 * n) for k in range(25 * n)), *(b for b in breaks if b < 5)]:
        a = int(at * n)
        if loss.exponent is None and loss.steps:  # to the nearest point, of two the inner one
            nearest = math.ceil(at * n - Fraction(1, 2))
            assert Fraction(int(costs[nearest]), 2**SCALE) <= loss.exact(at * Fraction(width))
            continue
        low, high = (Fraction(int(c), 2**SCALE) for c in costs[a : a + 2])
        line = low + (high - low) * (at * n - a)
        if loss.exponent is None:
            assert line <= loss.exact(at * Fraction(width))
        else:  # the square root, in units of the sensitivity's
            assert line <= 0 or line**2 <= at


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("n", [2, 3])
def test_costs_of_steps_are_looked_up_at_the_steps_alone(discrete, n, monkeypatch):
    """They are those at each point, and as many points as there are change nothing: error bars took twice as long."""
    loss = optdp.Pieces((0, 1, "7/3", 5), ((0,), (1,), (3,), (4,)))
    value = loss.exact if discrete else lambda d: DistanceLoss.exact(loss, d)
    half, step = Fraction(not (discrete and n == 3), 2), Fraction(3, n)
    plain = [int(value(max(a - half, Fraction(0)) * step) * 2**SCALE) for a in range(41)]
    assert lattice_costs(loss, 3.0, n, 40, discrete).tolist() == plain
    asked = []
    monkeypatch.setattr(type(loss), "_at", lambda self, d, rows: asked.append(d) or Fraction(1))
    monkeypatch.setattr(DistanceLoss, "exact", lambda self, d: asked.append(d) or Fraction(1))
    assert len(lattice_costs(loss, 3.0, n, 4000, discrete)) == 4001 and len(asked) <= 7


@pytest.mark.parametrize(
    "law",
    [np.square, np.expm1, lambda d: d**4, lambda d: np.maximum(d - 0.37, 0), lambda d: d + 5 * np.maximum(d - 1.01, 0),
     lambda d: np.maximum(d - 0.03, 0)],
)  # fmt: skip
def test_the_broken_line_lies_below_a_convex_loss_that_is_known_by_its_values(law):
    """Also within the parts of cells at whose ends it is asked, and around a kink: in the first part that of the mirror image."""
    loss = optdp.CustomLoss(law, reach=9.0)
    for n in (1, 3):
        costs = lattice_costs(loss, 1.0, n, 4 * n) / 2**SCALE
        x = np.linspace(0, 3, 5000)
        assert (np.interp(x * n, np.arange(4 * n + 1), costs.astype(float)) <= law(x) + 1e-12).all()


@pytest.mark.parametrize(
    "law",
    [np.sqrt, lambda d: np.maximum(1 - d, 0), lambda d: np.minimum(d, 2), lambda d: np.where(d > 2, np.inf, d),
     lambda d: np.where(d > 2, np.nan, d)],
    ids=["concave", "falling", "flat far out", "infinite", "undefined"],
)  # fmt: skip
def test_a_loss_whose_values_are_not_convex_has_no_costs_on_a_lattice(law):
    """Its chords may lie above it by more than its values say, wherever it is asked."""
    with pytest.raises(ValueError, match="not finite, nondecreasing and convex"):
        lattice_costs(optdp.CustomLoss(law), 1.0, 3, 12)


@pytest.mark.parametrize(("rounding", "n", "corner"), [("bins", 10, 0.3), ("nodes", 3000, 1.0)])
def test_costs_just_beyond_a_corner_are_not_above_the_loss(rounding, n, corner):
    """There a rounding of the place is a large share of the loss: costs were above it, or the loss was said not to be convex."""
    loss, last = optdp.CustomLoss(lambda d: np.maximum(d - corner, 0)), int(n * corner) + 30
    costs = lattice_costs(loss, 1.0, n, last, False, rounding)[: int(n * corner) + 2]
    assert all(Fraction(int(c), 2**SCALE) <= max(Fraction(a, n) - Fraction(corner), 0) for a, c in enumerate(costs))


def test_many_equal_terms_of_a_sampled_loss_are_summed_to_a_rounding():
    noise = AdditiveMechanism(optdp.Integers(), 1.0, 1, (3,) * 3000)
    low, high = map(Fraction, noise.enclose_loss(optdp.CustomLoss(lambda d: 0 * d + 0.7)))
    assert low <= Fraction(0.7) <= high <= low * (1 + Fraction(1, 2**48))


@pytest.mark.parametrize("loss", LOSSES, ids=str)
@pytest.mark.parametrize("decay", [0, 2**61])
def test_values_agree_with_quadrature(loss, decay):
    tail = (2**20, 2**18) if decay else ()
    noise = AdditiveMechanism(optdp.Line(), 0.75, 2, (2**22, 2**21), 2**19 if not decay else 0, tail, decay)
    edges = np.linspace(0, 40, 80_001)
    middle = (edges[1:] + edges[:-1]) / 2
    mass = np.diff(2 * noise.cdf(edges))
    low, high = noise.enclose_loss(loss, sent=True)
    expected = float(mass @ loss(middle))  # every loss here is 0 at 0
    assert low <= high <= low * (1 + 1e-6) and low == pytest.approx(expected, rel=2e-3)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_brackets_hold_and_verify(loss):
    for privacy in [*APPROXIMATE, *OTHERS]:
        own = (privacy.eps, privacy.delta) if isinstance(privacy, optdp.ApproxDP) else (privacy,)
        line = optdp.solve_additive(*own, loss=loss, rtol=0.1, n=4)
        assert line.verify() and line.lower_bound <= line.value, privacy
        laplace = optdp.Problem(privacy, optdp.Line(), loss, optdp.Additive())
        assert optdp.Solution.from_dict(line.to_dict()).problem == laplace
    pure = optdp.solve_additive(1.0, 0.0, loss=loss, n=6)
    grid = np.linspace(0, 60, 600_001)
    assert pure.lower_bound <= np.trapezoid(loss(grid) * np.exp(-grid), grid) * (1 + 1e-4)  # Laplace noise


@pytest.mark.parametrize("eps", [0.5, 1.0, 2.0])
def test_the_probability_of_an_error_above_one_sensitivity_under_pure_privacy(eps):
    """The staircase whose step is at the limit keeps 1/(1 + 1/(E - 1)) of its mass within: e^-eps is left."""
    found = optdp.solve_additive(eps, 0.0, loss=optdp.Threshold(1.0), rtol=0.02)
    assert found.lower_bound <= math.exp(-eps) <= found.value * (1 + 1e-9) and found.gap < 0.02


def least_tail(eps, delta, halves):
    """The least P(X > t), t = `halves`/2 sensitivities: privacy from tail to tail, from P(X > 0) = 1/2 or P(X > -1/2) on."""
    e = math.exp(eps)
    tail = (1 - delta) / (1 + e) if halves % 2 else 0.5
    for _ in range(halves // 2):
        tail = (tail - delta) / e
    return tail


@pytest.mark.parametrize(
    "eps, delta, sensitivity", [(1.0, 0.0, 1.0), (0.5, 0.01, 1.0), (1.0, 0.1, 3.0), (1.5, 1e-6, 0.1)]
)
@pytest.mark.parametrize("halves", [1, 2, 3, 4])
def test_thresholds_of_whole_and_half_sensitivities_are_solved_exactly(eps, delta, sensitivity, halves):
    """P(|X| > t) for 2t a multiple of the sensitivity: privacy from tail to tail leaves no more, and a staircase attains it.

    The lattice's cells end at the limit: their ends belong to the inner cells, which costs nothing (before: 1 to 8 %).
    """
    limit = Fraction(sensitivity) * halves / 2
    if Fraction(float(limit)) != limit:
        pytest.skip("the limit is not a float")
    least = max(2 * least_tail(eps, delta, halves), 0.0)
    found = optdp.solve_additive(eps, delta, optdp.Threshold(float(limit)), sensitivity=sensitivity)
    assert found.verify() and found.gap < 1e-5
    assert found.lower_bound <= least * (1 + 1e-12) and least <= found.value * (1 + 1e-12)
    assert found.certificate.bound(found.problem).value <= least * (1 + 1e-12)


@given(
    st.floats(0.2, 3), st.sampled_from([0.0, 1e-3, 0.1]), st.sampled_from([0.2, 0.25, 0.5, 0.75, 0.9, 1.0, 1.5, 1.7])
)
@settings(max_examples=25)
def test_no_noise_is_below_the_bound_of_a_threshold(eps, delta, limit):
    """The bound itself, before it is compared with the value, and noise that is made for other losses."""
    loss = optdp.Threshold(limit)
    found = optdp.solve_additive(eps, delta, loss, n=4)
    proven = found.certificate.bound(found.problem).value
    assert proven <= found.value * (1 + 1e-12)
    for other in ("abs", "squared", optdp.Threshold(limit + 0.25)):
        noise = optdp.solve_additive(eps, delta, other, n=3).mechanism
        if isinstance(noise, AdditiveMechanism):
            assert proven <= noise.enclose_loss(loss)[1] * (1 + 1e-12)


@pytest.mark.parametrize("limit", [1.0, 2.0, 3.0, 4.0])
def test_on_the_integers_ends_of_cells_are_not_for_free(limit):
    """Shifts are integers there: the bound of a coarse lattice is no larger than what noise attains (it would be, with ties)."""
    problem = optdp.solve_additive(1.0, 0.01, optdp.Threshold(limit), sensitivity=4, discrete=True)
    for n in (1, 2):
        line = optdp.solve_additive(1.0, 0.01, optdp.Threshold(limit), sensitivity=4, n=n)
        if (
            n > 1 and line.certificate.rounding == "bins"
        ):  # cells that hold one integer more on one side than on the other
            with pytest.raises(Refusal, match="1 for bins"):
                line.certificate.bound(problem.problem)
        else:
            assert line.certificate.bound(problem.problem).value <= problem.value * (1 + 1e-12)
    with_ties = lattice_costs(optdp.Threshold(limit), 4.0, 2, 8)
    without = lattice_costs(optdp.Threshold(limit), 4.0, 2, 8, discrete=True)
    assert (without <= with_ties).all() and (limit % 2 == 0 or (without < with_ties).any())


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize("loss", [optdp.Threshold(2.0), optdp.Huber(1.5), optdp.Power(0.5)], ids=str)
def test_integers_are_all_but_exact(delta, loss):
    found = optdp.solve_additive(1.0, delta, loss=loss, sensitivity=3, discrete=True)
    assert found.verify() and found.gap < 3e-3
    drawn = np.abs(found.mechanism.randomize(np.zeros(200_000), 5))
    assert float(np.mean(loss(drawn))) == pytest.approx(found.value, rel=0.02)


@pytest.mark.parametrize("privacy", OTHERS, ids=str)
def test_a_probability_under_other_notions(privacy):
    """2.3 is just below the end of a cell of 5 points per sensitivity: the bracket is that of the solver."""
    found = optdp.solve_additive(privacy, loss=optdp.Threshold(2.3), n=5)
    assert found.verify() and found.gap < 5e-3
    assert found.value <= optdp.solve_additive(privacy, loss=optdp.Threshold(1.0), n=2).value


def test_huber_lies_between_its_two_halves():
    """(c x - c^2/2)_+ <= H(x) <= min(x^2/2, c x)."""
    c = 0.5
    huber, absolute, squared = (
        optdp.solve_additive(1.0, 1e-3, loss=loss, rtol=1e-2) for loss in (optdp.Huber(c), "abs", "squared")
    )
    assert c * absolute.lower_bound - c * c / 2 <= huber.value and huber.lower_bound <= min(
        c * absolute.value, squared.value / 2
    )
    as_pieces = optdp.solve_additive(
        1.0, 1e-3, loss=optdp.Pieces((0, "1/2"), ((0, 0, "1/2"), ("-1/8", "1/2"))), rtol=1e-2
    )
    assert as_pieces.lower_bound == huber.lower_bound and as_pieces.value == pytest.approx(huber.value, rel=1e-12)


@pytest.mark.parametrize("limit", [pytest.param(1.3, marks=pytest.mark.soak), 2.2])
def test_thresholds_under_gaussian_privacy_are_no_worse_than_noise_for_squares(limit, tmp_path):
    """Where no lattice is fine enough for the threshold's own program (2.2: none had noise) other noise serves."""
    found = optdp.solve_additive(optdp.GDP(3.0), loss=optdp.Threshold(limit), rtol=0.02)
    other = optdp.solve_additive(optdp.GDP(3.0), loss="squared", rtol=0.02).mechanism
    assert found.verify() and found.value <= other.enclose(found.problem.objective)[1]
    assert found.status in (optdp.Status.GAP, optdp.Status.TIME_LIMIT) and found.mechanism.satisfies(optdp.GDP(3.0))
    found.save(tmp_path / "found.json")
    assert optdp.Solution.load(tmp_path / "found.json").verify()


@pytest.mark.parametrize(
    ("mu", "limit", "most"),
    [(3.0, 0.2, 1e-3), (2.0, 0.37, 0.01), *(pytest.param(1.0, at, 2e-4, marks=pytest.mark.soak) for at in (0.1, 0.55))],
)
def test_thresholds_between_the_ends_of_coarse_cells_under_gaussian_privacy(mu, limit, most):
    """Floats a little beyond the end of a cell (gaps of 0.015 to 0.04 came back), and a limit far from all (0.1)."""
    found = optdp.solve_additive(optdp.GDP(mu), loss=optdp.Threshold(limit), rtol=max(most, 1e-3))
    assert found.gap < most and found.verify()
    farther = optdp.solve_additive(optdp.GDP(mu), loss=optdp.Threshold(limit + 0.2), n=4)
    nearer = optdp.solve_additive(optdp.GDP(mu), loss=optdp.Threshold(0.9 * limit), n=4)
    assert farther.lower_bound <= found.value and found.lower_bound <= nearer.value


@pytest.mark.parametrize("moved", [1e-9, 0.3, 1.0])
@pytest.mark.parametrize("privacy", [optdp.GDP(2), optdp.Profile([(0.5, 0.01), (1, 1e-4)])])
def test_what_steps_cost_less_that_are_moved_in(privacy, moved):
    """A proof for steps at 1/4 and 3/4 holds for later ones, at the price of the most that noise may have in between."""

    def problem(*steps):
        loss = optdp.Pieces((0, *steps), ((0,), (1,), (3,)))
        return optdp.Problem(privacy, optdp.Line(), optdp.WorstCase(loss), optdp.Additive())

    exactly = optdp.solve(problem("1/4", "3/4"), rtol=1e-3)
    proof = replace(exactly.certificate, moved=moved)
    assert proof.bound(exactly.problem).value == pytest.approx(exactly.lower_bound, rel=1e-15)
    for off in (Fraction(1, 10**18), Fraction(1, 10**5), Fraction(1, 100), Fraction(1, 20)):
        later = problem(Fraction(1, 4) + off, Fraction(3, 4) + off / 2)
        found, less = proof.bound(later).value, replace(proof, moved=0.0).bound(later).value
        if off > moved:
            assert found == less
            continue
        # One of the disjoint shifts of an interval has at most the mean of their probabilities.
        shifts = math.ceil(1 / off) - 1
        shares = [math.exp(e) / shifts + float(privacy.delta_at(e)) for e in np.arange(0.0, 30.5, 0.5).tolist()]
        assert found <= max(exactly.lower_bound - 2 * 3 * min(shares), 0) + 1e-12
        assert found >= exactly.lower_bound - 2 * 3 * min(shares[2::2]) - 1e-12
        assert found <= exactly.mechanism.enclose(later.objective)[1]


def test_an_empty_proof_for_moved_steps_proves_nothing():
    """No notion need imply an (eps, delta) (min() of nothing was refused under KL)."""
    problem = optdp.Problem(optdp.KL(1), optdp.Line(), optdp.WorstCase(optdp.Threshold(0.4)), optdp.Additive())
    assert AdditiveCertificate(4, "nodes", (), moved=0.5).bound(problem).value == 0


def test_steps_in_other_units_have_the_same_noise(monkeypatch):
    """What is dear far out is so in the loss's own units (noise for rises of 1e-10 was 7 % dearer), as is what is too little
    to be told apart (only two lattices were tried)."""

    def loss(scale, *steps):
        return optdp.Pieces((0, *steps), ((0,), (scale,), (3 * scale,))[: len(steps) + 1])

    values = [
        optdp.solve_additive(optdp.GDP(2), loss=loss(scale, "3/16", "9/16"), n=8, rtol=1e-3).value / float(scale)
        for scale in (Fraction(1), Fraction(1, 10**10))
    ]
    assert values == pytest.approx([values[0]] * 2, rel=2e-3)
    asked: list[list[int]] = []
    monkeypatch.setattr(curve, "_bracket", lambda task, n, coarse, share: asked[-1].append(n))
    monkeypatch.setattr(curve, "_borrowed", lambda run, gaussian, best, *others: best)
    for scale in (Fraction(1), Fraction(1, 10**10)):
        asked.append([])
        optdp.solve_additive(optdp.GDP(2), loss=loss(scale, "0.37"))
    assert asked[0] == asked[1] and len(asked[0]) > 2


@pytest.mark.parametrize("nearer", [0.4, 0.6])
def test_what_is_told_of_noise_is_not_that_of_the_proof(nearer):
    """It came from the bracket with the larger bound."""
    other = Bracket("other", 1.0, None, 0.5, kind="noise for another loss")
    own = Bracket("own", 2.0, None, nearer)
    assert curve._whole(own, other).kind == other.kind
    assert curve._whole(replace(own, value=0.9), other).kind == ""


def test_a_large_renyi_bound_is_not_for_powers_alone():
    """The peak on a plateau is: other losses have lattices (a TypeError came back)."""
    found = optdp.solve_additive(optdp.RDP(2, 8), loss=optdp.Huber(0.5), rtol=0.3)
    assert found.verify() and 0 < found.lower_bound <= found.value < 0.02


def test_cells_end_at_a_jump_or_as_little_beyond_as_there_is():
    """0.9 as a float is a little more than 9/10, where cells of five points end: those of six end at 11/12."""
    assert aligned(4, [Fraction(9, 10)], True) == 5 and aligned(4, [Fraction(0.9)], True) == 6
    assert aligned(4, [Fraction(7, 10)], True) == aligned(4, [Fraction(0.7)], True) == 5
    assert aligned(4, [Fraction(1, 3)], False) == 6 and aligned(4, [Fraction(0.29)], False) == 4


def changed(privacy):
    """The least P(X != 0) on the integers with sensitivity 1: half-lines, and noise with one ratio of neighbours throughout."""
    if isinstance(privacy, optdp.ApproxDP):
        return 2 * (1 - float(privacy.delta)) / (1 + math.exp(privacy.eps))
    if isinstance(privacy, optdp.GDP):
        return math.erfc(privacy.mu / 2 / math.sqrt(2))
    ratio = brentq(lambda x: (math.exp(x) - 1) / (math.exp(x) + 1) * x - privacy.bound, 1e-9, 40.0)
    return 2 / (math.exp(ratio) + 1)


def test_a_refusal_names_the_loss_that_was_asked_for():
    """It named threshold(0.5), which is what the program is about."""
    with pytest.raises(ValueError, match="loss = 'threshold\\(0\\)'"):
        optdp.solve_additive(optdp.KL(1e-18), loss=optdp.Threshold(0), discrete=True)


@pytest.mark.parametrize(
    "privacy",
    [optdp.ApproxDP(1.0, 0.01), optdp.ApproxDP(2.0, 0), optdp.GDP(1.0), optdp.GDP(3.0), optdp.KL(0.5)],
    ids=str,
)
def test_the_chance_that_an_integer_is_changed(privacy):
    """This was refused: the loss is 1 everywhere but at one point, which on the line has no mass to speak of."""
    found = optdp.solve_additive(privacy, loss=optdp.Threshold(0), discrete=True)
    assert found.problem.objective.loss == optdp.Threshold(0) and found.verify() and found.gap < 1e-6
    assert found.lower_bound * (1 - 1e-12) <= changed(privacy) <= found.value * (1 + 1e-12)
    assert optdp.Solution.from_dict(json.loads(json.dumps(found.to_dict()))).verify()
    drawn = found.mechanism.randomize(np.zeros(100_000), 4)
    assert np.mean(drawn != 0) == pytest.approx(found.value, abs=0.01)
    assert found.mechanism.noise_loss(optdp.Threshold(0)) == pytest.approx(1 - float(found.mechanism.probability(0, 0)))


def test_the_chance_of_a_change_at_larger_sensitivities_and_on_the_line():
    other = optdp.solve_additive(1.0, 0.05, optdp.Threshold(0.5), sensitivity=4, discrete=True)
    found = optdp.solve_additive(1.0, 0.05, optdp.Threshold(0), sensitivity=4, discrete=True)
    assert (found.value, found.lower_bound) == (other.value, other.lower_bound)
    for privacy in (optdp.ApproxDP(1.0, 0.01), optdp.GDP(1.0), optdp.RDP(2, 1)):
        with pytest.raises(ValueError, match="limit must be above 0: on the line"):
            optdp.solve_additive(privacy, loss=optdp.Threshold(0))
    # The certificate is no proof of another problem.
    line = optdp.Problem(optdp.ApproxDP(1.0, 0.05, 4.0), optdp.Line(), optdp.Threshold(0), optdp.Additive())
    with pytest.raises(Refusal, match="limit must be above 0"):
        found.certificate.bound(line)


@pytest.mark.parametrize("privacy", [(1.0, 0.0), (1.0, 0.05), (0.0, 0.7)])
def test_noise_on_the_line_is_never_0_but_in_its_atom(privacy):
    """Any error at all: 1 without an atom, with a tail that has no end or without it."""
    noise = optdp.solve_additive(*privacy, rtol=0.05).mechanism
    exact = 1 - Fraction(noise.atom, noise.total)
    low, high = noise.enclose_loss(optdp.Threshold(0))
    assert low <= exact <= high <= low + 1e-12
    assert noise.enclose(optdp.WorstCase(optdp.Threshold(0)))[0] == pytest.approx(float(exact), rel=1e-8)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize(
    "loss", [optdp.Threshold(50), optdp.Pieces((0, 40), ((0,), (0, 1)))], ids=["threshold", "pieces"]
)
def test_noise_that_ends_where_errors_begin_to_cost(loss, discrete):
    """This was refused: losses that are 0 as far as noise reaches have nothing to minimise."""
    found = optdp.solve_additive(1.0, 0.1, loss, discrete=discrete)
    assert (found.lower_bound, found.value) == (0, 0) and found.verify() and found.gap == 0
    drawn = found.mechanism.randomize(np.zeros(10_000), 0)
    assert np.abs(drawn).max() < 40 and drawn.std() > 0.1
    assert found.program.model is not None and "closed form" in found.program.solver


@pytest.mark.parametrize("privacy", [optdp.ApproxDP(1.0, 0.0), optdp.GDP(1.0), optdp.KL(0.5)], ids=str)
@pytest.mark.parametrize("shape", [None, "convex"])
def test_a_shape_is_not_asked_for_where_it_would_not_help(privacy, shape):
    """Unbounded noise meets no function of the user's; first the advice was to declare it convex, after that it was this."""
    with pytest.raises(ValueError, match=r"is known on a bounded range only") as told:
        optdp.solve_additive(privacy, loss=optdp.CustomLoss(np.square, shape=shape))
    assert "declared convex" not in str(told.value)


def test_refusals_name_every_notion_of_additive_noise():
    """`Curve` was left out."""
    with pytest.raises(ValueError, match="must be ApproxDP, Profile, Curve, GDP, RDP or KL"):
        optdp.solve(optdp.Problem(optdp.LDP(1.0), optdp.Line(), "abs", optdp.Additive()))


@pytest.mark.parametrize("privacy", [*APPROXIMATE, *OTHERS], ids=str)
def test_a_loss_that_never_changes_is_refused(privacy):
    """Of no noise it says more than of another: under some notions this was nan, under others a program without an answer."""
    for loss in (optdp.Pieces((0,), ((1,),)), optdp.Pieces((0, 2), (("1/3",), ("1/3",)))):
        with pytest.raises(ValueError, match="the loss must change with the distance"):
            optdp.solve_additive(privacy, loss=loss)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("tail", [(), (3, 2)])
def test_a_loss_that_changes_in_every_cell_is_met_cell_by_cell(discrete, tail):
    """Between jumps there was no whole cell, and all beyond the 64th were as bad as the last or as good as the first."""
    area, n, h = optdp.Integers() if discrete else optdp.Line(), 2, 1 if discrete else Fraction(1, 2)
    noise = AdditiveMechanism(area, n * float(h), n, tuple(range(300, 0, -1)), tail=tail, decay=2**60 if tail else 0)
    breaks = range(400)
    loss = optdp.Pieces([b * h for b in breaks], [(b * b,) for b in breaks])
    b, size = Fraction(1, 4), len(noise.weights)
    masses = [w * (2 if a else 1) for a, w in enumerate(noise.weights)]
    masses += [2 * t * (1 - b) * b**k for k in range(50) for t in tail]
    # Jumps are in the middle of cells, whose halves are on either side.
    costs = [
        Fraction(a * a if discrete or not a else a * a + (a - 1) ** 2, 1 if discrete or not a else 2)
        for a in range(len(masses))
    ]
    exact = float(sum(m * c for m, c in zip(masses, costs, strict=True)) / noise.total)
    assert noise.enclose_loss(loss) == pytest.approx((exact, exact), rel=1e-14) and size == 300
    assert noise.enclose_loss(loss, sent=True) == pytest.approx((exact, exact), rel=1e-9)


@pytest.mark.parametrize("corner", [2.5, 2.49])
def test_a_convex_function_that_begins_just_within_reach_is_convex(corner):
    """It was refused: as a share of its values there the rounding of d - c is large."""
    loss = optdp.CustomLoss(lambda d: np.maximum(d - corner, 0), shape="convex")
    assert loss.on(corner + 0.00347)(corner + 1) == 1
    found = optdp.solve_additive(1.0, 0.1, loss, time_limit=0.3)
    assert found.value < 1e-8 and found.verify()


@pytest.mark.parametrize(
    ("eps", "delta", "loss", "gap"),
    [
        pytest.param(2.0, 0.1, optdp.Power(0.5), 5e-2, marks=pytest.mark.soak),  # 0.11, on the integers too
        (3.0, 0.1, optdp.Pieces((0, 1, 3), ((0, 1), (1,), (-2, 1))), 1e-2),  # 0.22 and 0.03
        pytest.param(0.5, 0.3, optdp.Power(0.1), 0.05, marks=pytest.mark.soak),  # 0.22 and 0.21
    ],
    ids=str,
)
def test_losses_that_grow_slowly_end_noise_too(eps, delta, loss, gap):
    """Where errors cost enough far out, the program whose noise ends has its own bound, and not that of a geometric tail."""
    line = optdp.solve_additive(eps, delta, loss, rtol=gap, time_limit=30)
    whole = optdp.solve_additive(eps, delta, loss, sensitivity=7.0, discrete=True)
    assert line.gap <= gap and line.verify()
    assert whole.gap <= 1e-9 and whole.verify()


def test_the_unit_of_a_loss_is_not_seen_by_the_solver():
    """The gap was 0.43: costs were magnified as they are at a sensitivity of 1."""
    plain, found = (
        optdp.solve_additive(optdp.GDP(1.5, width), loss=optdp.Huber(1.02 * width), time_limit=15)
        for width in (1.0, 1e3)
    )
    assert found.gap < 1e-3 and found.verify() and found.value == pytest.approx(1e6 * plain.value, rel=1e-3)


@pytest.mark.parametrize("loss", [optdp.Threshold(10), optdp.Threshold(20)], ids=str)
def test_integers_with_more_rows_than_programs_may_have_have_one_for_each_point(loss):
    """At a tiny delta no program was solved: the gap was 0.11, after no time at all."""
    found = optdp.solve(optdp.Problem(optdp.ApproxDP(0.148, 1e-12, 50), optdp.Integers(), loss, optdp.Additive()))
    assert found.verify() and found.gap < 1e-6


@pytest.mark.parametrize(
    ("notion", "most", "before"),
    [
        pytest.param(optdp.RDP(2, 5.0), 0.004, 0.8, marks=pytest.mark.soak),
        (optdp.KL(6.5), 0.004, 0.99),
        (optdp.GDP(3.0), 0.03, 0.08),
    ],
)
def test_a_loss_that_is_constant_up_to_a_jump_and_rises_beyond(notion, most, before):
    """Cells lie between lattice points, so that none has the jump inside: the gap was `before`; a threshold's is 0."""
    rising, flat = optdp.Pieces((0, 0.5), ((0,), (1, 1))), optdp.Pieces((0, 0.5), ((0,), (1,)))
    found = optdp.solve_additive(notion, loss=rising, rtol=most)
    least = optdp.solve_additive(notion, loss=flat)
    assert found.verify() and found.gap <= most < before
    assert 1.5 * least.lower_bound <= found.value  # the loss is at least 1.5 there
    assert found.mechanism.enclose_loss(flat)[1] >= least.lower_bound
    wide = optdp.solve_additive(optdp.GDP(0.3), loss=rising, rtol=0.05)  # what is beyond counts for more than the jump
    assert wide.certificate.rounding == "nodes" and found.certificate.rounding == "bins"

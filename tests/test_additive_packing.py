"""Error bars that are a small part of the sensitivity: the bound of disjoint translates, and noise that nearly attains it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri

import optdp
from optdp.certificates.base import Refusal
from optdp.certificates.packing import PackingCertificate, apart, exchanges
from optdp.certificates.quantile import QuantileCertificate
from optdp.design.additive import packing
from optdp.design.progress import Progress
from optdp.design.registry import Run
from optdp.mechanisms.additive import AdditiveMechanism
from tests.faults import Faulty

CURVE = optdp.Curve([(0, 0.8), (2, 0.5), (5, 0.1), (10, 0)])
NOTIONS = [
    optdp.ApproxDP(3.0), optdp.ApproxDP(3.0, 0.1), optdp.Profile([(2, 0.1), (4, 0.01)]), CURVE, optdp.GDP(3), optdp.KL(4),
    optdp.RDP(2, 6),
]  # fmt: skip


def of(privacy, loss):
    objective = loss if isinstance(loss, optdp.Quantile) else optdp.WorstCase(loss)
    return optdp.Problem(privacy, optdp.Line(), objective, optdp.Additive())


def at(privacy, t):
    return of(privacy, optdp.Threshold(t))


def best(privacy, t):
    """The best bound on P(|X| > t) that is found."""
    found = packing._for_threshold(at(privacy, t))
    return 0.0 if found is None else found.bound(at(privacy, t)).value


def least(eps, delta, share):
    """The least that a neighbour may have of a share under (eps, delta)."""
    e = math.exp(eps)
    return max((share - delta) / e, 1 - (1 - share) * e - delta, 0.0)


def contradicted(eps, delta, count):
    """The least level that so many translates contradict, in floats, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(60):
        a = (low + high) / 2
        fits = (1 - a) / 2 >= (count - 1) * least(eps, delta, a) + least(eps, delta, (1 + a) / 2)
        low, high = (a, high) if fits else (low, a)
    return high


def proof_of(eps, delta, level):
    return PackingCertificate(level, *(max(least(eps, delta, s) - 1e-14, 0.0) for s in (level, (1 + level) / 2)))


@pytest.mark.parametrize("width", [1.0, 3.0, 1e-150, 1e150])
@pytest.mark.parametrize(("eps", "delta"), [(1.0, 0.0), (3.0, 0.0), (2.0, 0.1), (0.0, 0.02)])
@pytest.mark.parametrize(
    ("part", "count"),
    [
        (1 / 16, 7),
        (math.nextafter(1 / 16, 0), 8),
        (math.nextafter(1 / 16, 1), 7),
        (0.01, 49),
        (0.2, 2),
        (0.3, 1),
        (0.49, 1),
    ],
)
def test_in_closed_form(eps, delta, width, part, count):
    """K whole lengths in *less* than a sensitivity: of a float t the 1/(2t) of which is an integer, one fewer."""
    problem = at(optdp.ApproxDP(eps, delta, width), part)
    if width != 1.0:
        t = part * width
        count = math.ceil(Fraction(width) / (2 * Fraction(t))) - 1
        problem = at(optdp.ApproxDP(eps, delta, width), t)
    level = contradicted(eps, delta, count)
    if level > 1 - 1e-9:
        return
    more = min(level + 1e-9, 1.0)
    assert proof_of(eps, delta, more).bound(problem).value == pytest.approx(1 - level, abs=2e-9)
    with pytest.raises(Refusal, match="room for all translates"):
        proof_of(eps, delta, level - 1e-9).bound(problem)


@pytest.mark.parametrize("privacy", NOTIONS, ids=lambda given: getattr(given, "tag", str(given)))
def test_what_is_moved_is_proven_and_the_most_that_is(privacy):
    """By hand: least shares of neighbours, from both sides."""
    for share in (0.2, 0.5, 0.9):
        found = packing._least(apart, privacy, Fraction(share))
        assert apart(privacy, Fraction(share), Fraction(found))
        if isinstance(privacy, optdp.ApproxDP):
            assert found == pytest.approx(least(float(privacy.eps), float(privacy.delta), share), rel=1e-9)
        if isinstance(privacy, optdp.GDP):
            assert found == pytest.approx(ndtr(ndtri(share) - 3), rel=1e-9)
        if isinstance(privacy, optdp.KL):
            pairs = [(share, found), (found, share)]
            kl = [p * math.log(p / q) + (1 - p) * math.log((1 - p) / (1 - q)) for p, q in pairs]
            assert max(kl) == pytest.approx(4, rel=1e-9)
        if isinstance(privacy, optdp.RDP):
            pairs = [(share, found), (found, share)]
            moments = [p**2 / q + (1 - p) ** 2 / (1 - q) for p, q in pairs]
            assert max(moments) == pytest.approx(math.exp(6), rel=1e-9)
        assert not apart(privacy, Fraction(share), Fraction(found * (1 + 1e-9)))


@pytest.mark.parametrize("privacy", NOTIONS, ids=lambda given: getattr(given, "tag", str(given)))
def test_what_is_exchanged_is_proven_and_the_most_that_is(privacy):
    """Of an interval and its translate, by hand: under KL and Renyi privacy more is kept than of two answers."""
    for a in (0.2, 0.3, 0.5):
        c = packing._least(exchanges, privacy, Fraction(a))
        assert exchanges(privacy, Fraction(a), Fraction(c)) and not exchanges(
            privacy, Fraction(a), Fraction(c * (1 + 1e-9))
        )
        if isinstance(privacy, optdp.ApproxDP):
            assert c == pytest.approx(least(float(privacy.eps), float(privacy.delta), a), rel=1e-9)
        if isinstance(privacy, optdp.GDP):
            assert c == pytest.approx(ndtr(ndtri(a) - 3), rel=1e-9)
        if isinstance(privacy, optdp.KL):
            assert (a - c) * math.log(a / c) == pytest.approx(4, rel=1e-9)
        if isinstance(privacy, optdp.RDP):
            assert a**2 / c + c**2 / a + 1 - a - c == pytest.approx(math.exp(6), rel=1e-9)
        assert c >= packing._least(apart, privacy, Fraction(a)) * (1 - 1e-9)
    assert not exchanges(privacy, Fraction(3, 4), Fraction(1, 3))  # there is no room for both
    assert not exchanges(privacy, Fraction(1, 4), Fraction(1, 3))


@given(st.sampled_from(NOTIONS), st.integers(1, 59), st.integers(0, 59), st.integers(1, 59), st.integers(0, 59))
def test_what_is_refused_of_less_is_refused_of_more(privacy, share, kept, more, less):
    """If (a, c) is not admitted, neither is what has more than a, and less than c."""
    a, c, wider, lower = (Fraction(k, 120) for k in (share, kept, share + more, kept - min(less, kept)))
    if exchanges(privacy, a, c) and wider + lower <= 1:
        assert exchanges(privacy, wider, lower)


@pytest.mark.parametrize("privacy", NOTIONS, ids=lambda given: getattr(given, "tag", str(given)))
def test_what_is_not_proven_is_refused(privacy):
    level = 0.999
    good = packing._proof(privacy, level)
    assert good.bound(at(privacy, 1e-3)).value == pytest.approx(1e-3, rel=1e-9)
    for name in ("translate", "rest"):
        with pytest.raises(Refusal, match="not proven that what is moved keeps"):
            replace(good, **{name: getattr(good, name) * (1 + 1e-9)}).bound(at(privacy, 1e-3))


def test_distances_of_half_a_sensitivity_or_more_are_refused():
    """Then {X >= -t} + 1 is not beyond t: P(|X| > 100) >= 1/2 was proven of every noise for eps = 1."""
    forged = PackingCertificate(0.5, 0.0, 0.27)
    for t in (0.5, 0.6, 1.0, 100.0, 1e300):
        with pytest.raises(Refusal, match="half a sensitivity"):
            forged.bound(at(optdp.ApproxDP(1.0), t))
    assert forged.bound(at(optdp.ApproxDP(1.0), math.nextafter(0.5, 0))).value == 0.5
    assert optdp.solve_additive(1.0, loss=optdp.Threshold(math.nextafter(0.5, 0))).value >= 0.5


@pytest.mark.parametrize("privacy", NOTIONS, ids=lambda given: getattr(given, "tag", str(given)))
@pytest.mark.parametrize("t", [5e-324, 0.4, 0.6, 1e300])
def test_hostile_certificates(privacy, t):
    """Whatever a file says, what is proven is what every noise has, or nothing."""
    numbers, most = (0.0, 5e-324, 0.3, 0.75, 1 - 2.0**-53, 1.0), best(privacy, t) if t < 0.5 else 0.0
    for level in numbers:
        for translate in numbers:
            for rest in numbers:
                proof = PackingCertificate(level, translate, rest)
                try:
                    value = proof.bound(at(privacy, t)).value
                except Refusal:
                    continue
                assert t < 0.5 and value == pytest.approx(1 - level) and translate <= level and rest <= (1 + level) / 2
                assert value <= most + 1e-6 or level < 2.0**-29


@pytest.mark.parametrize(("name", "value"), [("level", -0.1), ("translate", math.nan), ("rest", 1.5), ("level", "0.5")])
def test_certificates_with_other_numbers_are_refused(name, value):
    with pytest.raises((TypeError, ValueError), match=name):
        replace(PackingCertificate(0.5, 0.1, 0.2), **{name: value})


def test_other_problems_are_refused():
    proof = proof_of(1.0, 0.0, 0.6)
    assert proof.bound(at(optdp.ApproxDP(1.0), 0.01)).value > 0
    others = [
        of(optdp.ApproxDP(1.0), optdp.Power(1)), of(optdp.ApproxDP(1.0), optdp.Pieces((0, 1, 2), ((0,), (1,), (2,)))),
        of(optdp.ApproxDP(1.0), optdp.Pieces((0, 1), ((0,), (0, 1)))), of(optdp.ApproxDP(1.0), optdp.Quantile(0.5)),
        replace(at(optdp.ApproxDP(1.0), 0.01), domain=optdp.Integers()), of(optdp.ApproxDP(1.0), optdp.Threshold(0.0)),
        optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.Threshold(0.01)),
    ]  # fmt: skip
    for problem in others:
        with pytest.raises(Refusal):
            proof.bound(problem)


def test_steps_that_do_not_begin_at_0_and_count_at_the_jump():
    privacy, proof = optdp.ApproxDP(1.0, 0.0, 3.0), proof_of(1.0, 0.0, 0.5)
    share = proof.bound(at(privacy, 0.03)).value
    assert share == 0.5
    step = optdp.Pieces((0, Fraction(0.03)), ((2,), (10,)))
    assert proof.bound(of(privacy, step)).value == 2 + 8 * share
    flat = optdp.Pieces((0, Fraction(0.03)), ((2,), (2,)))
    assert proof.bound(of(privacy, flat)).value == 2
    found = optdp.solve(of(privacy, step), rtol=0.01)
    assert found.verify() and 2 + 8 * best(privacy, 0.03) <= found.value


def noises():
    """Symmetric noise with masses on a lattice of 16 to 24 points, with an atom or not, falling or not, on cells or between."""
    weights = st.lists(st.integers(0, 40) | st.integers(1000, 10**6), min_size=3, max_size=40)
    return st.builds(
        lambda n, peak, w, atom, bins: AdditiveMechanism(
            optdp.Line(), 1.0, n, (peak, *w, 1), atom, eps=1.0, bins=bins, notion=optdp.ApproxDP(1.0, 0.5)
        ),
        st.integers(16, 24), st.integers(1, 10**6), weights, st.sampled_from([0, 0, 10**5]), st.booleans(),
    )  # fmt: skip


def kept(noise):
    """Notions that this noise just keeps, rounded up: of shifts by whole cells those that decide."""
    total, pairs = 0.0, [noise.pair(k) for k in range(1, noise.n + 1)]
    for eps in (0.0, 1.0, 4.0):
        total = max(float(pair.hockey_stick(Fraction(math.exp(eps) * (1 - 1e-12)))) for pair in pairs)
        if 0 < total < 1 - 1e-9:
            yield optdp.ApproxDP(eps, min(total * (1 + 1e-9), 1 - 2.0**-53))


@settings(max_examples=12, deadline=None)
@given(noises(), st.integers(0, 2))
def test_no_noise_has_less_than_the_bound(noise, cell):
    """Neither beyond t nor, with the same proof, a shorter quantile."""
    for t in (math.nextafter((2 * cell + 1) / (2 * noise.n), 0), (cell + 1) / noise.n, 0.021):
        attained = noise.enclose_loss(optdp.Threshold(t), sent=True)[1]
        for privacy in kept(noise):
            assert noise.admitted(privacy)
            assert best(privacy, t) <= attained
            proven = packing.bound(of(privacy, optdp.Quantile(0.5)))
            if proven is not None:
                lower = proven[0].bound(of(privacy, optdp.Quantile(0.5))).value
                assert lower <= noise.enclose(optdp.Quantile(0.5))[1]


@pytest.mark.parametrize("privacy", [p for p in NOTIONS if p != CURVE], ids=lambda given: given.tag)
@pytest.mark.parametrize("n", [3, 8])
def test_optima_of_small_programs_are_no_less(privacy, n):
    """At ends of cells lattices are exact: noise of these programs is feasible, and as good as any."""
    t = math.nextafter(1 / (2 * n), 0)
    options = {"n": n, "rtol": 0.01, "time_limit": 1.0}
    found = optdp.solve(at(privacy, t), **options)
    assert best(privacy, t) <= found.value and found.verify()


def test_the_staircase_and_the_gaussian_have_no_less():
    for eps in (1.0, 3.0, 10.0):
        staircase = optdp.solve_additive(eps, loss=optdp.Threshold(1e-3))
        assert best(optdp.ApproxDP(eps), 1e-3) <= staircase.lower_bound * (1 + 1e-9)
    for mu in (1.0, 8.0):
        for t in (0.1, 1e-3):
            assert best(optdp.GDP(mu), t) <= 2 * ndtr(-mu * t)


@pytest.mark.parametrize("privacy", [optdp.ApproxDP(3.0, 0.1), optdp.GDP(3), optdp.KL(4)], ids=lambda given: given.tag)
def test_bounds_fall_with_the_distance(privacy):
    values = [best(privacy, t) for t in (1e-3, 0.03, 0.2)]
    assert values == sorted(values, reverse=True) and values[0] > values[2]


def test_bounds_fall_with_the_budget():
    for family in (
        [optdp.GDP(m) for m in (1, 8)], [optdp.KL(k) for k in (0.5, 4)], [optdp.RDP(2, r) for r in (0.5, 6)],
        [optdp.ApproxDP(2.0, d) for d in (0.0, 0.01, 0.3)], [optdp.ApproxDP(e, 0.1) for e in (0.0, 1.0, 9.0)],
    ):  # fmt: skip
        values = [best(privacy, 0.01) for privacy in family]
        assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("level", [1e-300, 1e-17, 1e-16, 1e-14, 1e-5, 0.3, 0.5, 0.9, 1 - 2.0**-53])
@pytest.mark.parametrize(
    "privacy",
    [optdp.GDP(8), optdp.ApproxDP(1.0), optdp.ApproxDP(30, 0.5, 1e-150), optdp.RDP(2, 6)],
    ids=lambda given: getattr(given, "tag", str(given)),
)
def test_what_is_proven_of_quantiles_is_proven(privacy, level):
    """A float above 1 - level must be proven: of levels below 1e-4 what was did not differ from it, and the solve was refused."""
    problem = of(privacy, optdp.Quantile(level))
    found = packing.bound(problem)
    if found is not None:
        certificate, count = found
        assert certificate.bound(problem).value == certificate.limit
        assert 2 * count * Fraction(certificate.limit) < Fraction(privacy.sensitivity)
    assert found is not None or level < 1e-15 or isinstance(privacy, optdp.ApproxDP) or level > 0.8


def test_halves_of_a_sensitivity_over_many_are_inside_whatever_is_rounded():
    for width in (1.0, 3.0, 1e-150):
        for count in (8, 10, 3**40, 10**60):
            t = packing._inside(optdp.GDP(1, width), count)
            assert math.ceil(Fraction(width) / (2 * Fraction(t))) - 1 >= count
            assert 2 * count * Fraction(math.nextafter(t, 1e300)) >= Fraction(width)


@pytest.mark.parametrize(
    ("privacy", "loss", "gap"),
    [pytest.param(optdp.GDP(3), optdp.Quantile(0.5), 0.03, marks=pytest.mark.soak),
     pytest.param(optdp.GDP(3, 1e150), optdp.Threshold(3e147), 0.03, marks=pytest.mark.soak),
     (optdp.ApproxDP(6, 0.1, 3.0), optdp.Quantile(0.5), 0.01)],
    ids=lambda given: getattr(given, 'tag', str(given)),
)  # fmt: skip
def test_a_peak_on_a_plateau_is_nearly_as_good_as_noise_can_be(privacy, loss, gap):
    found = optdp.solve(of(privacy, loss), rtol=gap)
    proof = found.certificate.proof if isinstance(found.certificate, QuantileCertificate) else found.certificate
    assert found.gap <= gap and isinstance(proof, PackingCertificate) and found.verify()
    again = optdp.Solution.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again == found and again.verify()


@pytest.mark.parametrize(
    "privacy",
    [optdp.ApproxDP(30, 0.5), optdp.ApproxDP(30, 0.5, 1e-150), optdp.Profile([(29, 0.5), (30, 0.4)])],
    ids=lambda given: getattr(given, "tag", str(given)),
)
def test_where_translates_prove_nothing_lattices_answer(privacy):
    """No level up to 1 - 2^-30 is contradicted: the solve was refused."""
    t = 0.06 * privacy.sensitivity
    assert packing._for_threshold(at(privacy, t)) is None
    found = optdp.solve(at(privacy, t), time_limit=0.3)
    assert found.verify() and found.lower_bound <= found.value <= 0.5


@pytest.mark.parametrize(("eps", "delta", "level"), [(1.0, 0.0, 1e-14), (30, 0.5, 0.9)])
def test_noise_that_cannot_be_written_is_left_to_lattices(eps, delta, level):
    """A million masses and more, or none: this was the error "weights are not allowed"."""
    found = optdp.solve_additive(eps, delta, optdp.Quantile(level), time_limit=0.3)
    assert found.verify() and 0 < found.lower_bound <= found.value


def test_what_is_found_is_not_lost_with_what_lattices_do_not_find(monkeypatch):
    def nothing(run, **options):
        raise ValueError("no noise was found")

    monkeypatch.setattr(packing.curve, "design", nothing)
    found = optdp.solve(at(optdp.GDP(3), 0.003), rtol=1e-3, time_limit=0.5)
    assert found.verify() and found.gap < 0.5
    with pytest.raises(ValueError, match="rtol = 1e-09 is not allowed"):
        optdp.solve(at(optdp.GDP(3), 0.003), rtol=1e-9, time_limit=0.5)


@pytest.mark.parametrize(
    "privacy", [optdp.GDP(3), optdp.ApproxDP(10, 0.1), optdp.KL(4)], ids=lambda given: getattr(given, "tag", str(given))
)
@pytest.mark.parametrize(
    "loss", [optdp.Quantile(0.5), optdp.Threshold(0.003)], ids=lambda given: getattr(given, "tag", str(given))
)
@pytest.mark.parametrize("fault", ["nan", pytest.param("noise 1e-03", marks=pytest.mark.soak)])
def test_solvers_that_fail(privacy, loss, fault):
    try:
        found = optdp.solve(of(privacy, loss), time_limit=0.1, solver=Faulty(fault))
    except (ValueError, optdp.solvers.lp.SolverFailure):
        return
    assert found.verify() and found.lower_bound <= found.value


def test_progress_has_no_infinite_brackets():
    steps = []
    for loss in (optdp.Quantile(0.5), optdp.Threshold(0.003)):
        optdp.solve(of(optdp.GDP(3), loss), rtol=0.05, time_limit=0.2, progress=steps.append)
    assert any("on a plateau" in step.stage for step in steps) and steps[-1].stage == "done"
    assert all(step.value is None or (np.isfinite(step.value) and step.lower <= step.value) for step in steps)


@pytest.mark.parametrize("notion", [optdp.RDP(2, 6), optdp.KL(3)], ids=str)
def test_masses_of_cells_are_nearly_as_good_as_masses_of_points(notion):
    """By Newton's method on cells of three points: within a tenth of the program of the lattice that has a mass at each point."""
    n = 36
    limit = math.nextafter(1 / (2 * n), 0)
    problem = optdp.Problem(notion, optdp.Line(), optdp.Threshold(limit), optdp.Additive())
    run = Run(problem, 1e-3, 60.0, "auto", None, Progress(None))
    mechanism, missed, told, points = packing._smooth(run, n)
    assert points == n and mechanism.satisfies(notion)
    assert missed == pytest.approx(told.objective, rel=1e-4)
    finest = optdp.solve_additive(notion, loss=optdp.Threshold(limit), n=n)
    assert finest.lower_bound <= missed <= 1.1 * finest.value


def test_tails_that_hardly_fall_are_written_out_further():
    """Over three sensitivities they fell to a tenth: what lay beyond was in no divergence, and all noise was refused."""
    problem = at(optdp.KL(0.01), math.nextafter(1 / 72, 0))
    mechanism, missed, told, _ = packing._smooth(Run(problem, 1e-3, 60.0, "auto", None, Progress(None)), 36)
    assert mechanism.satisfies(problem.privacy) and missed == pytest.approx(told.objective, rel=1e-6)


def test_large_orders_and_bounds_start_near_the_bound():
    """A start whose ratios were e^26, of e^30 that may be, was too far within: nothing was found, and P(|X| > 0.001) was 0.74."""
    problem = at(optdp.RDP(100, 30), 0.0049)
    mechanism, missed, told, _ = packing._smooth(Run(problem, 1e-3, 60.0, "auto", None, Progress(None)), 100)
    assert mechanism.satisfies(problem.privacy) and missed == pytest.approx(told.objective, rel=0.5) and missed < 1e-10


def test_where_translates_prove_nothing_a_peak_is_noise_all_the_same():
    """The noise of the lattice was all that was looked at: P(|X| > 0.01) was 0.7."""
    problem = at(optdp.RDP(100, 30), 0.01)
    assert packing._for_threshold(problem) is None
    found = optdp.solve(problem, time_limit=0.2)
    assert found.verify() and 0 < found.lower_bound <= found.value < 1e-9


@pytest.mark.parametrize("notion", [optdp.KL(1e-5), optdp.RDP(1000, 1e-3)], ids=str)
def test_noise_over_too_many_cells_is_not_tried(notion, monkeypatch):
    """The matrices of so many masses had gigabytes."""
    monkeypatch.setattr(packing.noise, "Cells", None)
    run = Run(at(notion, 1e-3), 1e-3, 60.0, "auto", None, Progress(None))
    assert packing._smooth(run, 500) is None


@pytest.mark.parametrize("privacy", [optdp.KL(4), optdp.RDP(2, 6)], ids=str)
def test_where_there_is_no_time_at_all_noise_of_a_known_family_comes_back(privacy):
    found = optdp.solve_additive(privacy, loss=optdp.Threshold(0.003), time_limit=1e-9)
    assert found.status is optdp.Status.TIME_LIMIT and "known family" in found.program.message
    assert found.verify() and 0.3 < found.lower_bound < found.value < 1 and found.mechanism.satisfies(privacy)


def test_many_integers_are_solved_on_the_line():
    found = optdp.solve_additive(optdp.GDP(4, 10**6), loss=optdp.Threshold(10_000), discrete=True, rtol=0.03)
    line = optdp.solve_additive(optdp.GDP(4), loss=optdp.Threshold(10_000.5e-6), rtol=0.03)
    assert found.gap < 0.03 and found.verify().passed
    assert found.lower_bound <= line.value * 1.001 and line.lower_bound <= found.value * 1.001


def test_options_of_pairs_are_refused_under_other_notions():
    with pytest.raises(ValueError, match="method"):
        optdp.solve_additive(optdp.GDP(3), loss=optdp.Threshold(0.003), method="ipm")
    with pytest.raises(TypeError, match="every_shift"):
        optdp.solve_additive(optdp.GDP(3), loss=optdp.Threshold(0.003), every_shift=True)


def test_a_threshold_at_the_end_of_a_cell_is_solved_on_its_lattice():
    """A peak on a plateau alone leaves half a percent there, which the lattice of 16 points does not."""
    for notion in (optdp.Profile([(1, 1e-3), (2, 1e-5)]), optdp.RDP(2, 1)):
        found = optdp.solve_additive(notion, loss=optdp.Threshold(1 / 32), rtol=3e-3)
        assert found.gap <= 3e-3 and found.verify().passed


@pytest.mark.parametrize("heights", [(0, 1), ("1/3", 1), ("1/3", "2/3")])
@pytest.mark.parametrize("level", [0.1, 0.2, 0.3, 1 / 3])
def test_the_bound_is_rounded_down(heights, level):
    """Many translates of a narrow interval: the bound is the loss at the level, a rational that is no float."""
    asked = at(optdp.ApproxDP(1.0), 1)
    loss = optdp.Pieces((0, "1/1000"), tuple((h,) for h in heights))
    low, high = map(Fraction, heights)
    found = PackingCertificate(level, level / 3, 0.0).bound(replace(asked, objective=optdp.WorstCase(loss))).value
    assert 0 <= low + (high - low) * (1 - Fraction(level)) - Fraction(found) < Fraction(1, 2**52)

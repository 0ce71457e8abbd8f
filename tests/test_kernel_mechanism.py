"""Kernel mechanisms: floors seen through Q, windows that follow the input; identities at random floors, samples, files."""

import json
import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import optdp
from optdp.exact import enclosures
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.kernel import KernelMechanism, two_point
from optdp.mechanisms.piecewise import CELLS, COINS
from tests.kernels import LOSSES, floors, mechanisms, unbiased

either = st.one_of(mechanisms(), unbiased())


def inputs(mechanism, count=7):
    return np.linspace(mechanism.domain.lower, mechanism.domain.upper, count)


def stops(mechanism, x):
    """The ends of pieces, and those of the window of x."""
    _, low, high = mechanism.floor()
    return np.unique(np.concatenate([low, high, *np.atleast_2d(mechanism.favoured(x))]))


def expectation(mechanism, x, function):
    """From density and probability alone: 3-point Gauss between the stops, exact for polynomials, and a sum over atoms."""
    atoms = mechanism.atoms()
    total = float(np.sum(mechanism.probability(atoms, x) * function(atoms)))
    nodes, weights = np.polynomial.legendre.leggauss(3)
    for a, b in pairwise(np.union1d(stops(mechanism, x), [x])):
        y = (a + b) / 2 + (b - a) / 2 * nodes
        total += float(weights @ (mechanism.density(y, x) * function(y))) * (b - a) / 2
    return total


# Guarantee and mass ---------------------------------------------------------------------------------------------------


@given(st.one_of(st.floats(1e-6, 30), st.sampled_from([Fraction(1, 3), optdp.log(3), optdp.log("10/3")])), floors(),
       st.floats(1e-9, 1.0))  # fmt: skip
def test_masses_and_ratios_are_exact_in_integers(eps, floor, window):
    """A cell has floor/2^50 of probability, and (1 - floor)/width more under the window: counted in integers."""
    mechanism = KernelMechanism.private(eps, *floor, window)
    assert sum(mechanism.cells) == CELLS
    far = mechanism.floor_coins * mechanism.width_cells  # all in units of 1/(2^174 width)
    near = far + (COINS - mechanism.floor_coins) * CELLS
    assert far * (CELLS - mechanism.width_cells) + near * mechanism.width_cells == COINS * CELLS * mechanism.width_cells
    ratio = Fraction(near, far) if mechanism.width_cells < CELLS else Fraction(1)
    assert mechanism.exact_ratio == ratio <= enclosures.exp_above(eps)
    assert all(check.passed for check in mechanism.check_privacy(optdp.LDP(eps)))
    if mechanism.width_cells < CELLS:  # and no more private than asked for
        slack = 1 - Fraction(2, mechanism.floor_coins)
        assert ratio >= (enclosures.exp_below(eps) - 1) * slack * Fraction(CELLS - 2**10, CELLS) + 1
        fewer = KernelMechanism(**(vars_of(mechanism) | {"floor_coins": mechanism.floor_coins * 999 // 1000}))
        assert not all(check.passed for check in fewer.check_privacy(optdp.LDP(eps)))


def vars_of(mechanism):
    return {name: getattr(mechanism, name) for name in mechanism.__dataclass_fields__}


@settings(max_examples=30)
@given(either)
def test_likelihoods_keep_the_ratio_wherever_windows_are(mechanism):
    ratio, x = float(mechanism.exact_ratio) * (1 + 1e-9), inputs(mechanism)
    low, high = mechanism.support()
    y = np.linspace(low, high, 101)[:, None]
    for table in (mechanism.density(y, x), mechanism.probability(mechanism.atoms()[:, None], x)):
        assert (table.max(axis=1, initial=0.0) <= ratio * table.min(axis=1, initial=np.inf) + 1e-300).all()


@settings(max_examples=30)
@given(either)
def test_mass_mean_and_losses_are_those_of_the_density(mechanism):
    for x in inputs(mechanism, 4):
        assert expectation(mechanism, x, np.ones_like) == pytest.approx(1, rel=1e-9)
        assert expectation(mechanism, x, lambda y: y) == pytest.approx(float(mechanism.mean(x)), rel=1e-6, abs=1e-6)
        for loss in ("abs", "squared"):
            law = optdp.Power(1) if loss == "abs" else optdp.Power(2)
            found = expectation(mechanism, x, lambda y, law=law, x=x: law(np.abs(y - x)))
            assert found == pytest.approx(float(mechanism.expected_loss(x, loss)), rel=1e-6)


@settings(max_examples=8)
@given(mechanisms())
def test_losses_agree_with_the_default_quadrature(mechanism):
    x = inputs(mechanism, 4)
    for law in (optdp.Power(1.5), optdp.Huber(0.2), optdp.Pinball(0.3)):
        default = Mechanism.expected_loss(mechanism, x, law)
        assert mechanism.expected_loss(x, law) == pytest.approx(default, rel=1e-6)
    assert Mechanism.mean(mechanism, x) == pytest.approx(mechanism.mean(x), rel=1e-6, abs=1e-6)


# Where windows are ----------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(mechanisms())
def test_inputs_divide_their_windows_by_the_share(mechanism):
    """x = (1 - share) Q(a) + share Q(a + w) where Q is continuous and the domain's ends leave room; windows never turn back."""
    x = inputs(mechanism, 401)
    low, high = mechanism.favoured(x)
    assert (np.diff(low) >= 0).all() and (np.diff(high) >= 0).all()
    at = (1 - mechanism.share) * low + mechanism.share * high
    first, last = at[0], at[-1]
    _, starts, ends = mechanism.floor()
    if (starts[1:] <= ends[:-1]).all() and (starts < ends).all():
        inside = (x >= first) & (x <= last)
        assert np.abs(at - np.clip(x, first, last))[inside].max(initial=0.0) <= 1e-6 * mechanism.domain.width
    # A window whose x is not where the share says cannot be moved towards it: Q jumps, or it is at an end.
    assert ((at[1:] >= at[:-1] - 1e-12) | (np.diff(x) > 0)).all()


@settings(max_examples=30)
@given(unbiased())
def test_unbiased_at_every_input(mechanism):
    x = inputs(mechanism, 201)
    low, high = mechanism.support()
    assert np.abs(mechanism.mean(x) - x).max() <= 1e-7 * (high - low)
    assert mechanism.check_unbiased().passed
    lower, upper = (np.array(v) * 0.9 + 0.05 for v in (mechanism.lows, mechanism.highs))
    narrow = KernelMechanism(**(vars_of(mechanism) | {"lows": tuple(lower), "highs": tuple(upper)}))
    assert not narrow.check_unbiased().passed
    assert not KernelMechanism(**(vars_of(mechanism) | {"rule": "ends"})).check_unbiased().passed


# Proven values --------------------------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(mechanisms(), st.sampled_from(LOSSES))
def test_enclosed_worst_case_is_that_of_a_fine_grid(mechanism, law):
    low, high = mechanism.enclose(optdp.WorstCase(law))
    assert low <= high
    if law.name[:4] != "thre":  # where windows' atoms pass the threshold the upper end counts them on both sides
        assert high <= low * (1 + 1e-9) + 1e-300
    turns = mechanism.domain.lower + mechanism.domain.width * np.concatenate(mechanism._map[:2])  # where windows jump
    places = np.concatenate([[x - 1e-9, x, x + 1e-9] for x in (*turns, *stops(mechanism, inputs(mechanism, 2)[0]))])
    x = np.concatenate([inputs(mechanism, 201), places])
    x = np.unique(np.clip(x, mechanism.domain.lower, mechanism.domain.upper))
    if law.form == "distance":
        brute = float(mechanism.expected_loss(x, law).max())
    else:
        brute = max(expectation(mechanism, v, lambda y, v=v: law.of(v, y)) for v in x[::16])
    assert brute <= high * (1 + 1e-7)
    if law.name[:4] in ("abs", "squa", "hube"):  # continuous losses
        assert brute >= low * (1 - 5e-3)
    if law.name[:4] in ("abs", "squa") and mechanism.share == 0.5:
        assert float(mechanism.expected_loss(mechanism.worst_input(law), law)) >= brute * (1 - 1e-2)


@settings(max_examples=40, deadline=None)
@given(mechanisms())
def test_no_output_of_a_window_is_farther_than_its_reach(made):
    """In shares of the domain, from inputs next to where windows begin and end, in gaps, and anywhere."""
    domain, marks = (
        made.domain,
        np.unique(np.concatenate([*made._map[:2], made.lows, made.highs, np.linspace(0, 1, 65)])),
    )
    beside = np.concatenate([marks, np.nextafter(marks, 0), np.nextafter(marks, 1), marks + 1e-9, marks - 1e-9])
    x = domain.lower + domain.width * np.clip(beside, 0, 1)
    x = np.clip(x, domain.lower, domain.upper)
    far = max(float(np.abs(end - x).max()) / domain.width for end in made.favoured(x))
    assert far <= float(made._window_reach + made._blur)


@settings(max_examples=4)
@given(mechanisms(beyond=False), st.sampled_from([1.5, 2.7]))
def test_powers_that_are_no_polynomials_are_enclosed_from_both_sides(mechanism, q):
    low, high = mechanism.enclose(optdp.WorstCase(optdp.Power(q)))
    brute = float(mechanism.expected_loss(inputs(mechanism, 401), optdp.Power(q)).max())
    assert brute <= high * (1 + 1e-6) and low <= high <= low * (1 + 1e-2)
    assert mechanism.share != 0.5 or brute >= low * (1 - 5e-3)  # elsewhere the loss jumps between the inputs looked at


@settings(max_examples=15)
@given(unbiased())
def test_the_enclosed_variance_is_that_of_a_fine_grid(mechanism):
    low, high = mechanism.enclose(optdp.WorstCase("squared"))
    brute = float(mechanism.expected_loss(inputs(mechanism, 801), "squared").max())
    assert low <= high <= low * (1 + 1e-9)
    assert low * (1 - 1e-3) <= brute <= high * (1 + 1e-7)


@settings(max_examples=15)
@given(either, st.integers(0, 2**32 - 1))
def test_averages_are_sums_over_the_prior_and_integrals_over_a_density(mechanism, seed):
    rng = np.random.default_rng(seed)
    points = np.unique(inputs(mechanism, 97)[rng.integers(0, 97, 4)])
    chances = rng.dirichlet(np.ones(points.size)) if points.size > 1 else np.ones(1)
    low, high = mechanism.enclose(optdp.Average("squared", (points.tolist(), chances.tolist())))
    expected = float(mechanism.expected_loss(points, "squared") @ chances)
    assert low <= high <= low * (1 + 1e-9)
    assert expected == pytest.approx(high, rel=1e-6)


@pytest.mark.parametrize("q", [1.1, 1.5, 2.0, 2.5])
def test_outputs_beyond_the_domain_are_enclosed_too(q):
    """Pieces that replace a power must hold as far as outputs lie."""
    far = KernelMechanism.private(1.0, [1.0, 1.0], [-1.0, 2.0], [-1.0, 2.0], 0.5)
    low, high = far.enclose(optdp.WorstCase(optdp.Power(q)))
    x = np.linspace(0, 1, 100_001)
    assert low * (1 - 1e-6) <= float(far.expected_loss(x, optdp.Power(q)).max()) <= high


@pytest.mark.parametrize("objective", [optdp.WorstCase, lambda law: optdp.Average(law, ([0.0, 1.0], [0.5, 0.5]))])
def test_atoms_at_a_jump_of_the_loss_count_with_its_value_there(objective):
    law = optdp.Pieces((0, "1/2"), ((0,), (1,)))
    middle = KernelMechanism.private(1.0, [1.0], [0.5], [0.5], 0.5)
    assert float(law(0.5)) == 1 and float(middle.expected_loss(0.0, law)) == 1
    assert middle.enclose(objective(law))[1] >= 1


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("eps", [optdp.log(2), optdp.log(3), optdp.log("10/3")])
def test_two_points_have_the_bayes_risk_of_a_fair_coin(eps, width):
    """E/(1 + E)^2 width^2, rational: enclosed by floats next to it."""
    e = Fraction(eps.argument)
    low, high = two_point(eps, (1, 1 + width)).enclose(optdp.WorstCase("squared"))
    value = e / (1 + e) ** 2 * width**2
    assert Fraction(low) <= value * (1 + Fraction(1, 2**48)) and value <= Fraction(high) * (1 + Fraction(1, 2**48))
    assert high <= low * (1 + 1e-12)


# Samples --------------------------------------------------------------------------------------------------------------


@settings(max_examples=12)
@given(either, st.floats(0, 1), st.integers(0, 2**32 - 1))
def test_samples_follow_density_and_probability(mechanism, share, seed):
    """Chi-square over the atoms and the stretches between stops."""
    x = mechanism.domain.lower + share * mechanism.domain.width
    drawn = mechanism.randomize(np.full(40_000, x), seed)
    low, high = mechanism.support()
    assert low <= drawn.min() and drawn.max() <= high
    atoms = mechanism.atoms()
    on = np.isin(drawn, atoms)
    edges = np.union1d(stops(mechanism, x), np.linspace(low, high, 8))
    middle, width = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    expected = np.append(mechanism.density(middle, x) * width, mechanism.probability(atoms, x))
    counts = np.append(np.histogram(drawn[~on], edges)[0], [np.sum(drawn == y) for y in atoms])
    assert expected.sum() == pytest.approx(1, rel=1e-6)
    keep = expected * drawn.size > 8
    counts = np.append(counts[keep], counts[~keep].sum())
    expected = np.append(expected[keep], expected[~keep].sum() + 1e-12)
    assert chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-6 or expected[-1] * 40_000 < 8


@settings(max_examples=6)
@given(unbiased(), st.floats(0, 1))
def test_samples_of_unbiased_mechanisms_have_the_mean_and_the_variance(mechanism, share):
    x = mechanism.domain.lower + share * mechanism.domain.width
    drawn = mechanism.randomize(np.full(100_000, x), 5)
    spread = float(mechanism.expected_loss(x, "squared"))
    assert abs(drawn.mean() - x) <= 6 * math.sqrt(spread / drawn.size)
    fourth = np.mean(np.square(np.square(drawn - x) - spread))
    assert abs(np.mean(np.square(drawn - x)) - spread) <= 6 * math.sqrt(fourth / drawn.size) + 1e-9 * spread


def test_inputs_keep_their_shape_and_seeds_repeat():
    mechanism = two_point(1.0)
    x = np.full((3, 4), 0.25)
    assert mechanism.randomize(x, 1).shape == (3, 4)
    assert (mechanism.randomize(x, 1) == mechanism.randomize(x, 1)).all()
    with pytest.raises(ValueError, match="must lie in"):
        mechanism.randomize([0.5, 1.5])


@pytest.mark.parametrize("domain", [(0.1, 0.7), (1e16, 1e16 + 4), (-3e-9, 7.7e5)])
def test_outputs_never_leave_the_domain_by_rounding(domain):
    solution = optdp.solve_kernel(1, domain=domain, rtol=0.05)
    assert solution.verify(), str(solution.verify())
    low, high = solution.mechanism.support()
    drawn = solution.mechanism.randomize(np.full(10_000, domain[1]), 1)
    assert domain[0] <= low <= drawn.min() <= drawn.max() <= high <= domain[1]


# Files ----------------------------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(either)
def test_a_file_gives_back_the_same_mechanism(mechanism):
    again = optdp.Mechanism.from_dict(json.loads(json.dumps(mechanism.to_dict())))
    assert again == mechanism
    x = inputs(mechanism, 50)
    assert (again.randomize(x, 1) == mechanism.randomize(x, 1)).all()


def test_a_file_is_read_field_by_field():
    data = json.loads(json.dumps(optdp.solve_kernel(1, rtol=0.05).mechanism.to_dict()))
    cells = data["cells"]
    for change, words in (
        ({"cells": cells[1:]}, "sum to 2\\^50"),
        ({"cells": [cells[0] + 1, *cells[1:]]}, "sum to 2\\^50"),
        ({"cells": [0, cells[0] + cells[1], *cells[2:]]}, r"mechanism\.cells\[0\]"),
        ({"cells": [0.5, *cells[1:]]}, r"mechanism\.cells\[0\]"),
        ({"cells": []}, "mechanism.cells"),
        ({"cells": 3}, "mechanism.cells"),
        ({"cells": [1] * 40_000}, "mechanism.cells"),
        ({"lows": data["lows"][1:]}, "one of `lows` and `highs` each"),
        ({"lows": data["lows"][::-1]}, "Q must not decrease"),
        ({"highs": [math.inf, *data["highs"][1:]]}, r"mechanism\.highs\[0\]"),
        ({"highs": [math.nan, *data["highs"][1:]]}, r"mechanism\.highs\[0\]"),
        ({"width_cells": 0}, "mechanism.width_cells"),
        ({"width_cells": 2**50 + 1}, "mechanism.width_cells"),
        ({"floor_coins": 0}, "mechanism.floor_coins"),
        ({"floor_coins": 2**124 + 1}, "mechanism.floor_coins"),
        ({"rule": "best"}, "rule"),
        ({"share": 1.5}, "mechanism.share"),
        ({"prior": None}, "unknown field 'prior'"),
        ({"domain": optdp.Circle(1).to_dict()}, "a kernel mechanism"),
    ):
        with pytest.raises(ValueError, match=words):
            optdp.Mechanism.from_dict({**data, **change})
    del data["lows"]
    with pytest.raises(ValueError, match=r"mechanism\.lows is missing"):
        optdp.Mechanism.from_dict(data)


def test_a_mechanism_says_what_it_guarantees():
    mechanism = optdp.solve_kernel(1, rtol=0.05).mechanism
    assert mechanism.guarantee() == optdp.LDP(optdp.log(mechanism.exact_ratio))
    assert mechanism.satisfies(optdp.LDP(1.0)) and mechanism.satisfies(optdp.LDP(0.9)) is False
    assert mechanism.satisfies(optdp.ApproxDP(1.0, sensitivity=0.1))
    assert 1 - 1e-9 < mechanism.privacy() <= 1 and "eps = 1" in repr(mechanism)
    same = KernelMechanism(**(vars_of(mechanism) | {"width_cells": CELLS}))
    assert same.exact_ratio == 1


def test_priors_with_inputs_outside_of_the_domain_are_refused():
    """Such a mechanism may stand in a file beside a problem with a larger domain: `verify` says so."""
    solution = optdp.solve_kernel(1.0, "squared", prior=([0.0, 0.3, 1.0], [0.2, 0.5, 0.3]), rtol=1e-2)
    narrow = replace(solution.mechanism, domain=optdp.Interval(0.01, 1.0))
    with pytest.raises(ValueError, match="prior is not allowed: it has inputs outside"):
        narrow.enclose(solution.problem.objective)
    checks = {check.name: check for check in replace(solution, mechanism=narrow).verify().checks}
    assert not checks["value"].passed and "outside" in str(checks["value"])


@pytest.mark.parametrize("prior", [optdp.Density((0, 2), (("1/2",),)), optdp.Density((5, 6), ((1,),))])
def test_densities_outside_of_the_domain_are_refused(prior):
    """They were averaged over the part inside alone: an error of 0 was said to be attained, and not to be exceeded."""
    for mechanism in (two_point(1.0), optdp.solve_kernel(1.0, unbiased=True).mechanism):
        with pytest.raises(
            ValueError, match=r"prior is not allowed: it has a density on .*, which must lie in \[0, 1\]"
        ):
            mechanism.enclose(optdp.Average("squared", prior))


@pytest.mark.parametrize(
    "masses, places, share, attained, worst",
    [([0.4, 0.6], [-3.0, 1.0], 0.75, 2.1696, 2.1696), ([0.45, 0.3, 0.25], [0.0, 4.0, 4.0], 0.25, 1.6841, 2.1462)],
)
def test_windows_of_one_input_alone_count(masses, places, share, attained, worst):
    """At an end of the domain many windows may be one input's: no others have them (its loss was left out of what is proven).

    The first one is taken.
    """
    noise = KernelMechanism.private(1.0, masses, places, places, 0.5, (0.0, 1.0), "ends", share)
    assert noise.expected_loss(np.array([0.0, 1.0])).max() == pytest.approx(attained, rel=1e-4)
    assert noise.enclose(optdp.WorstCase("abs"))[1] >= worst
    own = optdp.solve_kernel(1.0, loss="abs")
    problem = replace(own.problem, constraints=(optdp.Outputs(-3, 5),))
    assert not replace(own, problem=problem, mechanism=noise, value=worst - 0.01, lower_bound=0.0).verify()
    for end in (0.0, 1.0):
        low, high = noise.enclose(optdp.Average("abs", ([end, 0.3], [0.5, 0.5])))
        assert low - 1e-9 <= noise.expected_loss(np.array([end, 0.3])).mean() <= high + 1e-9


@settings(max_examples=12)
@given(st.integers(0, 10**6))
def test_no_input_loses_more_than_is_proven_where_outputs_lie_beyond_the_domain(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 6))
    places = np.sort(rng.choice([-3.0, -1.0, 0.0, 0.25, 0.5, 1.0, 2.0, 4.0], size=2 * size))
    lows, highs = places[::2], places[::2] if rng.random() < 0.6 else places[1::2]
    share, window = float(rng.choice([0, 0.25, 0.5, 0.75, 1])), float(rng.choice([0.1, 0.25, 0.3, 0.5, 0.9]))
    masses = rng.dirichlet(np.ones(size)) + 0.01
    noise = KernelMechanism.private(1.0, masses, lows, highs, window, (0.0, 1.0), "ends", share)
    x = np.array([0.0, *np.linspace(0, 1, 41), np.nextafter(0, 1), np.nextafter(1, 0), 1.0])
    for loss in ("abs", "squared", optdp.Pinball(0.3)):
        assert noise.expected_loss(x, loss).max() <= noise.enclose(optdp.WorstCase(loss))[1] * (1 + 1e-9) + 1e-12
        for end in (0.0, 1.0):
            low, high = noise.enclose(optdp.Average(loss, ([end, 0.3], [0.5, 0.5])))
            assert low - 1e-9 <= noise.expected_loss(np.array([end, 0.3]), loss).mean() <= high + 1e-9


def test_the_worst_input_is_where_the_enclosure_has_it():
    """A narrow peak between two inputs at which windows meet other pieces: ends and middles alone missed 3e-4."""
    mechanism, loss = optdp.solve_kernel("10.1", optdp.Power(3), domain=(0, 10), rtol=1e-2).mechanism, optdp.Power(3)
    low, high = mechanism.enclose(optdp.WorstCase(loss))
    assert low * (1 - 1e-5) <= mechanism.worst_case_loss(loss) <= high

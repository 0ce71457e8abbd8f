"""The lower bound of all mechanisms on an interval: its proof line by line, weak duality, and plain programs on grids."""

import math
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import block_diag, csr_matrix, eye, hstack, kron, vstack

import optdp
from optdp.certificates.base import Refusal
from optdp.certificates.kernel import KernelCertificate
from optdp.mechanisms.kernel import KernelMechanism
from tests.kernels import DOMAINS, LOSSES, certificates, mechanisms, unbiased

FINE = 4001


@st.composite
def proofs(draw, losses=tuple(LOSSES)):
    """(loss, certificate)"""
    law = draw(st.sampled_from(losses))
    return law, draw(certificates(tuple(map(float, law.slopes))))


def interval(eps=1.0, loss="abs", domain=(0, 1), **constraints):
    kinds = {"outputs": lambda pair: optdp.Outputs(*pair), "unbiased": lambda _: optdp.Unbiased()}
    return optdp.Problem(optdp.LDP(eps), domain, loss, constraints=[kinds[k](v) for k, v in constraints.items()])


def dual(certificate, problem, y, breaks=(), density=np.ones_like):
    """(prior's mass, int nu dlam, g at the shares y) by midpoints over the inputs; under a density, that of the shares."""
    law, width, growth = problem.loss, problem.domain.width, math.expm1(float(problem.eps))
    total, value, g = 0.0, 0.0, np.zeros(y.size)
    parts = []
    mesh = np.array(certificate.mesh)
    for k, row in enumerate(certificate.densities):
        edges = np.unique(np.concatenate([np.linspace(mesh[0], mesh[-1], FINE), mesh, breaks]))
        x, weight = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
        weight = weight * density(x)
        centre = np.interp(x, mesh, certificate.centres[k]) if certificate.centres else x
        parts.append((x, weight * np.interp(x, mesh, row), np.interp(x, mesh, certificate.reaches[k]), centre))
    points = np.array(certificate.points)
    centre = np.array(certificate.point_centres) if certificate.point_centres else points
    parts.append((points, np.array(certificate.weights), np.array(certificate.point_reaches), centre))
    tilted = bool(certificate.centres or certificate.point_centres)
    for x, weight, reach, middle in parts:
        if tilted:
            nu = (reach**2 - (x - middle) ** 2) * width**2
            r = ((y[:, None] - middle) ** 2 - reach**2) * width**2
        else:
            nu = law.of(0.0, width * float(law.slopes[1]) * reach)
            r = law.of(0.0, width * (y[:, None] - x)) - nu
        total, value = total + weight.sum(), value + float(weight @ nu)
        g += (r + growth * np.minimum(r, 0.0)) @ weight
    for slope, bend in certificate.rays:  # slope (bend - Y) has the mean slope (bend - x) at every input x
        r = slope * (bend - y) * width**2
        value -= min(slope * (bend - x) for x in (0.0, 1.0)) * width**2
        g += r + growth * np.minimum(r, 0.0)
    return total, value, g


def proven(certificate, problem):
    try:
        return certificate.bound(problem).value
    except Refusal:
        return None


# g, by quadrature -----------------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(proofs(), st.floats(0.02, 2.0), DOMAINS, st.floats(0, 1))
def test_g_is_that_of_quadrature_at_a_random_output(proof, eps, domain, share):
    """With one output y allowed the bound is (int nu + min(g(y), 0))/mass: so g can be read off at any place."""
    law, certificate = proof
    low, width = domain[0], domain[1] - domain[0]
    y = low + width * share
    problem = interval(eps, law, domain, outputs=(y, y + 1e-9))
    total, value, g = dual(certificate, problem, np.array([min((y - low) / width, 1.0)]))
    assert total > 0
    expected = (value + min(float(g[0]), 0.0)) / total
    scale = (abs(value) + abs(float(g[0]))) / total
    jumps = isinstance(law, optdp.Threshold)
    close = (2e-3 if jumps else 1e-5) * (scale + 1e-9)
    if jumps:  # g jumps at the ends of windows of atoms: the lesser value of the two sides counts
        assert certificate.bound(problem).value <= max(expected, 0.0) + close
    else:
        assert certificate.bound(problem).value == pytest.approx(max(expected, 0.0), abs=close)


@settings(max_examples=40)
@given(proofs(LOSSES[:4]), st.floats(0.02, 2.0), DOMAINS, st.floats(0, 1), st.sampled_from([0.25, 0.5, 0.7]))
def test_under_a_density_too(proof, eps, domain, share, kink):
    """The shares of a density that bends and jumps: its pieces are nodes of every layer."""
    law, certificate = proof
    low, width = domain[0], domain[1] - domain[0]
    y, bend = low + width * share, low + width * kink
    prior = optdp.Density.proportional((low, Fraction(bend), domain[1]), ((1, Fraction(1, 7)), (6, -1, Fraction(1, 7))))
    layers = max(len(certificate.densities), 1)
    shares = replace(
        certificate, mesh=certificate.mesh or (0.0, 1.0), points=(), weights=(), point_reaches=(),
        densities=scaled(certificate.densities, 1 / layers) or ((1.0, 0.5),), reaches=certificate.reaches or ((0.1, 0.2),),
    )  # fmt: skip
    problem = optdp.Problem(
        optdp.LDP(eps), domain, optdp.Average(law, prior), constraints=(optdp.Outputs(y, y + 1e-9),)
    )

    def density(x):
        pieces = [np.polynomial.Polynomial([float(c) for c in row]) for row in prior.coefficients]
        at = low + width * x
        return np.where(at < bend, pieces[0](at), pieces[1](at)) * width

    _, value, g = dual(shares, problem, np.array([min((y - low) / width, 1.0)]), [kink], density)
    expected, scale = value + min(float(g[0]), 0.0), abs(value) + abs(float(g[0]))
    assert shares.bound(problem).value == pytest.approx(max(expected, 0.0), abs=1e-5 * (scale + 1e-9))


@settings(max_examples=40)
@given(certificates(tilted=True), st.floats(0.02, 2.0), DOMAINS, st.floats(-0.5, 1.5))
def test_with_multipliers_of_the_means_too(certificate, eps, domain, share):
    width = domain[1] - domain[0]
    y = domain[0] + width * share
    problem = interval(eps, "squared", domain, unbiased=0, outputs=(y, y + 1e-9))
    total, value, g = dual(certificate, problem, np.array([(y - domain[0]) / width]))
    found = proven(certificate, problem)
    if found is not None:  # an empty prior is refused
        expected, scale = (value + min(float(g[0]), 0.0)) / total, (abs(value) + abs(float(g[0]))) / total
        assert found == pytest.approx(max(expected, 0.0), abs=1e-5 * (scale + 1e-9))


@settings(max_examples=15)
@given(proofs(LOSSES[:4]), st.floats(0.02, 4.0))
def test_the_bound_is_the_least_g_over_all_outputs(proof, eps):
    law, certificate = proof
    problem = interval(eps, law)
    total, value, g = dual(certificate, problem, np.linspace(0, 1, 601))
    brute = (value + min(float(g.min()), 0.0)) / total
    scale = (abs(value) + np.abs(g).max()) / total
    found = certificate.bound(problem).value
    assert found <= max(brute, 0.0) + 1e-6 * scale
    assert found >= brute - 2e-2 * scale


# Weak duality ---------------------------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(mechanisms(domain=(0.0, 1.0)), proofs())
def test_no_prior_proves_more_than_a_mechanism_attains(mechanism, proof):
    law, certificate = proof
    problem = interval(mechanism.privacy(), law)
    assert certificate.bound(problem).value <= mechanism.enclose(optdp.WorstCase(law))[1]


@settings(max_examples=40)
@given(unbiased(domain=(0.0, 1.0)), certificates(tilted=True))
def test_nor_with_multipliers_of_the_means(mechanism, certificate):
    low, high = mechanism.support()
    problem = interval(mechanism.privacy(), "squared", unbiased=0, outputs=(low - 1e-9, high + 1e-9))
    assert all(check.passed for check in mechanism.feasible(problem)), mechanism.feasible(problem)
    found = proven(certificate, problem)
    assert found is None or found <= mechanism.enclose(optdp.WorstCase("squared"))[1]


@settings(max_examples=40)
@given(unbiased(domain=(0.0, 1.0)), certificates(tilted=True))
def test_the_inequality_of_the_proof_holds_for_every_floor_and_is_sharp_for_its_own_rays(mechanism, certificate):
    masses, lows, highs = mechanism.floor()
    problem = interval(mechanism.privacy(), "squared", unbiased=0)
    shares = (np.arange(400) + 0.5) / 400

    def proven_for_the_floor(proof):
        _, value, g = dual(proof, problem, np.ravel(lows[:, None] + np.outer(highs - lows, shares)))
        g = g.reshape(masses.size, -1)
        return value + masses @ g.mean(axis=1), abs(value) + masses @ np.abs(g).mean(axis=1) + 1e-9

    atoms = replace(certificate, mesh=(), densities=(), reaches=(), centres=())
    found, scale = proven_for_the_floor(atoms)
    assert found <= np.dot(atoms.weights, mechanism.expected_loss(np.array(atoms.points), "squared")) + 1e-4 * scale
    for slope, x in ((-1.0, 0.0), (2.0, 1.0)):  # the ends of the domain have no other rows than those that favour most
        bends = np.concatenate([lows, highs, np.ravel(mechanism.favoured(np.array(x)))]).tolist()
        found, scales = zip(*(proven_for_the_floor(KernelCertificate(rays=((slope, b),))) for b in bends), strict=True)
        assert max(found) == pytest.approx(0.0, abs=1e-4 * max(scales))


@settings(max_examples=40)
@given(mechanisms(domain=(0.0, 1.0)), proofs(LOSSES[:4]), st.integers(0, 2**32 - 1))
def test_nor_on_average_under_a_prior(mechanism, proof, seed):
    """Points of the prior with shares of their probabilities."""
    law, certificate = proof
    rng = np.random.default_rng(seed)
    points = np.unique(np.append(certificate.points, rng.random(2)))
    objective = optdp.Average(law, (points.tolist(), rng.dirichlet(np.ones(points.size)).tolist()))
    problem = optdp.Problem(optdp.LDP(mechanism.privacy()), (0, 1), objective)
    chances = dict(zip(points.tolist(), map(float, objective.prior.exact), strict=True))
    weights = tuple(w * chances[x] * 0.999 for x, w in zip(certificate.points, certificate.weights, strict=True))
    atoms = replace(certificate, mesh=(), densities=(), reaches=(), weights=weights)
    assert atoms.bound(problem).value <= mechanism.enclose(objective)[1]


# The proof of a solution, perturbed -----------------------------------------------------------------------------------

SOLVED = {
    "abs": lambda: optdp.solve_kernel(1.0, rtol=5e-3),
    "squared": lambda: optdp.solve_kernel(2.5, "squared", rtol=5e-3),
    "pinball": lambda: optdp.solve_kernel(1.0, optdp.Pinball(0.8), rtol=5e-3),
    "huber": lambda: optdp.solve_kernel(2.0, optdp.Huber(0.2), rtol=2e-2),
    "unbiased": lambda: optdp.solve_kernel(1.0, unbiased=True, rtol=1e-3),
    "unbiased prior": lambda: optdp.solve_kernel(1.0, unbiased=True, prior=INNER),
}
#: A prior that gives the ends of the domain no weight.
INNER = ([0.2, 0.5, 0.9], [0.3, 0.4, 0.3])


@cache
def solved(name):
    return SOLVED[name]()


def scaled(row, factor, where=None):
    if row and isinstance(row[0], tuple):
        return tuple(scaled(part, factor, where) for part in row)
    return tuple(v * factor if where is None or k == where else v for k, v in enumerate(row))


@pytest.mark.parametrize("name", SOLVED)
def test_perturbed_multipliers_are_refused_or_prove_no_more_than_is_true(name):
    own = solved(name)
    assert own.verify() and own.certificate.bound(own.problem).value == own.lower_bound > 0
    assert not replace(own, lower_bound=own.lower_bound * (1 + 1e-9)).verify()
    rng, tried = np.random.default_rng(0), 0
    for field in (
        "densities",
        "reaches",
        "centres",
        "weights",
        "point_reaches",
        "point_centres",
        "rays",
        "mesh",
        "points",
    ):
        part = getattr(own.certificate, field)
        if not part:
            continue
        size = len(part[0]) if isinstance(part[0], tuple) else len(part)
        for where in (None, int(rng.integers(size))):
            for factor in (0.5, 1.02, 100.0):
                tried += 1
                try:
                    made = replace(own.certificate, **{field: scaled(part, factor, where)})
                except ValueError:  # beyond the domain
                    continue
                found = proven(made, own.problem)
                assert found is None or found <= own.value, (field, where, factor)
    assert tried >= 12


@pytest.mark.parametrize("name", SOLVED)
def test_thresholds_above_the_best_ones_prove_less(name):
    """Windows that are too wide: int nu rises, but g falls below 0 by more."""
    own, found = solved(name), []
    for more in (0.0, 1e-4, 1e-3, 1e-2, 0.1):
        wider = replace(
            own.certificate,
            reaches=tuple(tuple(t + more for t in row) for row in own.certificate.reaches),
            point_reaches=tuple(t + more for t in own.certificate.point_reaches),
        )
        found.append(proven(wider, own.problem))
    assert found == sorted(found, reverse=True) and found[-1] < found[1] < found[0]


def test_a_prior_may_have_any_mass_and_any_order():
    own = solved("abs")
    c = own.certificate
    for factor in (0.25, 4.0):
        other = replace(c, densities=scaled(c.densities, factor), weights=scaled(c.weights, factor))
        assert other.bound(own.problem).value == own.lower_bound
    order = np.random.default_rng(0).permutation(len(c.points))
    moved = {f: tuple(np.array(getattr(c, f))[order].tolist()) for f in ("points", "weights", "point_reaches")}
    assert replace(c, **moved).bound(own.problem).value == own.lower_bound


def test_a_changed_problem_is_proven_anew_or_refused():
    """Every certificate against every problem: what it proves is below a value that the problem attains."""
    prior = ([0.0, 0.3, 1.0], [0.5, 0.25, 0.25])
    problems = [
        interval(), interval(0.5), interval(1.0, "squared"), interval(1.0, optdp.Huber(0.2)), interval(domain=(0, 2)),
        interval(1.0, optdp.Pinball(0.8)), interval(outputs=(0.25, 0.75)), interval(1.0, "squared", unbiased=0),
        interval(1.0, "squared", unbiased=0, outputs=(-1.2, 2.2)),
        optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.Average("abs", prior)),
        optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.Average("squared", prior)),
    ]  # fmt: skip
    solutions = [optdp.solve(problem, rtol=0.5) for problem in problems]
    counted = {True: 0, False: 0}
    for source in solutions:
        assert source.verify()
        for target in solutions:
            bound = proven(source.certificate, target.problem)
            counted[bound is None] += 1
            assert bound is None or bound <= target.value, (source.problem, target.problem)
            assert source is not target or bound == target.lower_bound
            spliced = replace(target, certificate=source.certificate)
            assert bool(spliced.verify()) == (bound is not None and target.lower_bound <= bound)
    assert counted[False] > 50 and counted[True] > 20
    everything = solutions[0].certificate
    # All mechanisms: so the bound holds for three pieces too. A circle and one input are other questions.
    three = optdp.Problem(optdp.LDP(1.0), (0, 1), "abs", optdp.Piecewise(3))
    assert everything.bound(three).value <= optdp.solve_piecewise(1).value
    for other in (
        optdp.solve_kernel(1, domain=optdp.Circle(1)).problem,
        optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.At("abs", 0.0)),
        interval(1.0, optdp.Threshold(0.0)),
    ):
        with pytest.raises(Refusal):
            everything.bound(other)


def test_outputs_beyond_the_domain_never_help():
    """The same certificate proves the same bound where outputs may leave the domain, and no less where they are fewer."""
    own = solved("abs")
    for wider in ((0, 1), (-1, 1), (-1e300, 1e300), (0, 1 + 2**-52)):
        assert own.certificate.bound(interval(outputs=wider)).value == own.lower_bound
    for fewer in ((0.25, 0.75), (2, 3), (0.1, 0.2)):
        assert own.certificate.bound(interval(outputs=fewer)).value >= own.lower_bound
    wide = optdp.solve_kernel(1, outputs=(-1, 3), rtol=5e-3)
    assert wide.problem.outputs == (-1, 3) and wide.verify() and "to [-1, 3]" in str(wide)
    assert (wide.lower_bound, wide.value) == (own.lower_bound, own.value)


def test_without_multipliers_of_means_a_bound_is_that_of_all_mechanisms():
    """Unbiased ones, whose outputs have no limits, are some of them: all outputs of the domain are searched."""
    for reaches in ((0.5, 0.5), (0.3, 0.5), (0.5, 0.3)):
        c = KernelCertificate(points=(0.0, 1.0), weights=(0.5, 0.5), point_reaches=reaches)
        _, value, g = dual(c, interval(1.0, "squared"), np.linspace(0, 1, 4001))
        found = c.bound(interval(1.0, "squared", unbiased=0)).value
        assert found == c.bound(interval(1.0, "squared")).value == pytest.approx(value + g.min(), abs=1e-5)
        assert 0 < found < value


@pytest.mark.parametrize(("outputs", "unbiased"), [((0.2, 0.8), False), ((1 / 3, 0.9), False), ((-1, 2), True)])
def test_floors_stay_within_the_outputs_that_are_allowed(outputs, unbiased):
    assert optdp.solve_kernel(1.0, rtol=0.05, outputs=outputs, unbiased=unbiased).verify()


def test_a_free_range_of_outputs_must_really_be_closed_off():
    """One input alone: its variance can be 0 at any output far away in exchange for a multiplier of its mean."""
    problem = interval(1.0, "squared", unbiased=0)
    tilted = KernelCertificate(points=(0.5,), weights=(1.0,), point_reaches=(0.1,), point_centres=(0.5,))
    assert tilted.bound(problem).value == 0  # (y - 1/2)^2 - 1/100 favours nothing far away: a valid proof of nothing
    upper = replace(tilted, weights=(0.0,))
    with pytest.raises(Refusal, match="positive mass"):
        upper.bound(problem)
    own = solved("unbiased")
    assert own.certificate.bound(own.problem).value == own.lower_bound
    far = interval(1.0, "squared", unbiased=0, outputs=(-1e6, 1e6))
    assert own.certificate.bound(far).value == pytest.approx(own.lower_bound, rel=1e-6)


@pytest.mark.parametrize("name", ["abs", "squared", "unbiased"])
def test_multipliers_that_are_none_are_refused(name):
    own = solved(name)
    c = own.certificate
    for change in (
        {"weights": tuple(-w for w in c.weights)},
        {"weights": c.weights[1:]},
        {"points": (*c.points[:-1], 1 + 2**-52)},
        {"points": (math.nan, *c.points[1:])},
        {"point_reaches": (*c.point_reaches, 0.0)},
        {"point_reaches": (math.nan, *c.point_reaches[1:])},
        {"point_reaches": (1e300, *c.point_reaches[1:])},
        {"mesh": c.mesh[::-1]} if c.mesh else {"mesh": (0.5, 0.5)},
        {"mesh": (*c.mesh[:-1], 1.5)} if c.mesh else {"mesh": (0.0, 2.0)},
        {"densities": scaled(c.densities, -1.0)} if c.densities else {"densities": ((1.0,),)},
        {"densities": scaled(c.densities, math.nan)} if c.densities else {"reaches": ((0.0,),)},
        {"reaches": c.reaches[1:]} if c.reaches else {"densities": ((0.0, 1.0),)},
        {"centres": ((0.0,),)},
        {"point_centres": (0.0,) * (len(c.points) + 1)},
        {"densities": (), "reaches": (), "centres": (), "weights": tuple(0.0 for _ in c.weights)},
    ):
        with pytest.raises(ValueError, match=r"kernel certificate proves nothing here|are not allowed: they must be"):
            replace(c, **change).bound(own.problem)


def test_averages_give_no_input_more_than_the_prior_does():
    """Shares of a density above 1, a density beside points of a prior, points beside a density: none of it is the average."""
    even = optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.Average("abs", "uniform"))
    flat = KernelCertificate((0.0, 1.0), ((1.0, 1.0),), ((0.2, 0.2),))
    most = optdp.solve(even, rtol=0.01).value
    assert 0 < flat.bound(even).value < most
    two = replace(even, objective=optdp.Average("abs", ([0.0, 1.0], [0.5, 0.5])))
    ends = KernelCertificate(points=(0.0, 0.0, 1.0), weights=(0.25, 0.25, 0.5), point_reaches=(0.5, 0.5, 0.5))
    assert 0 < ends.bound(two).value < optdp.solve(two, rtol=0.01).value
    for weights in (
        (0.5, 0.25, 0.25),
        (0.25, 0.25, 0.75),
        (0.125, 0.125, 0.625),
    ):  # twice the same, and one end for the other
        with pytest.raises(Refusal, match="more than its probability"):
            replace(ends, weights=weights).bound(two)
    for change, problem in (
        ({"densities": ((1.0, 1.0 + 2**-40),)}, even), ({"densities": ((1.0, 1.0),) * 2, "reaches": flat.reaches * 2}, even),
        ({"points": (0.5,), "weights": (0.1,), "point_reaches": (0.1,)}, even), ({}, two),
        ({"points": (0.5,), "weights": (0.1,), "point_reaches": (0.1,), "densities": (), "reaches": ()}, two),
    ):  # fmt: skip
        with pytest.raises(Refusal, match="prior"):
            replace(flat, **change).bound(problem)


def test_what_is_not_symmetric_is_searched_on_both_halves():
    """A proof and its mirror image prove the same; a density that rises makes a proof that looks symmetric lopsided."""

    def layer(node):
        return KernelCertificate((0.0, node, 1.0), ((1.0, 0.0, 1.0),), ((0.25, 0.15, 0.25),))

    def atoms(weights, reaches):
        return KernelCertificate(points=(0.125, 0.875), weights=weights, point_reaches=reaches)

    for c, mirror in (
        (layer(0.25), layer(0.75)), (atoms((0.4, 0.6), (0.25, 0.25)), atoms((0.6, 0.4), (0.25, 0.25))),
        (atoms((0.5, 0.5), (0.2, 0.35)), atoms((0.5, 0.5), (0.35, 0.2))),
    ):  # fmt: skip
        assert 0 < c.bound(interval()).value == pytest.approx(mirror.bound(interval()).value, rel=1e-12)
    fair = atoms((0.5, 0.5), (0.1, 0.1))  # symmetric, for a loss that is not
    one, other = (fair.bound(interval(1.0, optdp.Pinball(tau))).value for tau in (0.3, 0.7))
    assert 0 < one == pytest.approx(other, rel=1e-12)
    rising = optdp.Problem(optdp.LDP(1.0), (0, 1), optdp.Average("abs", optdp.Density((0, 1), ((0, 2),))))
    flat = KernelCertificate((0.0, 1.0), ((1.0, 1.0),), ((0.2, 0.2),))
    assert 0 < flat.bound(rising).value < optdp.solve(rising, rtol=0.01).value


def test_reaches_and_centres_that_are_not_symmetric_are_searched_on_both_halves():
    """The same of a layer with an even density, whose thresholds alone are lopsided."""

    def layer(reaches):
        return KernelCertificate((0.0, 0.5, 1.0), ((1.0, 1.0, 1.0),), (reaches,)).bound(interval()).value

    def tilted(centres):
        c = KernelCertificate(
            (0.0, 0.5, 1.0), ((0.1, 0.1, 0.1),), ((1.5, 1.5, 1.5),), (centres,),
            points=(0.0, 1.0), weights=(0.5, 0.5), point_reaches=(1.8, 1.8), point_centres=(-1.5, 2.5),
        )  # fmt: skip
        for loss in ("abs", optdp.Power(4)):  # whose multipliers of means are others
            with pytest.raises(Refusal, match="multipliers of the means"):
                c.bound(interval(1.0, loss, unbiased=0, outputs=(-0.75, 1.75)))
        return c.bound(interval(1.0, "squared", unbiased=0, outputs=(-0.75, 1.75))).value

    for make, row, mirror in (
        (layer, (0.25, 0.15, 0.35), (0.35, 0.15, 0.25)), (tilted, (-1.0, 0.5, 1.0), (0.0, 0.5, 2.0)),
    ):  # fmt: skip
        assert 0 < make(row) == pytest.approx(make(mirror), rel=1e-12)


def test_outputs_that_are_not_symmetric_are_searched_on_both_halves():
    """A symmetric proof whose least g is at about 0.27 and 0.73."""
    c = KernelCertificate(points=(0.0, 1.0), weights=(0.5, 0.5), point_reaches=(0.5, 0.5))
    for low, high in ((0.0, 1.0), (0.0, 0.6), (0.4, 1.0), (0.45, 0.95), (0.3, 0.5)):
        _, value, g = dual(c, interval(1.0, "squared"), np.linspace(low, high, 4001))
        found = c.bound(interval(1.0, "squared", outputs=(low, high))).value
        assert 0 < found == pytest.approx(value + min(g.min(), 0.0), abs=1e-5) and found < value


def test_pieces_of_a_prior_hold_where_they_are():
    flat = KernelCertificate((0.0, 1.0), ((1.0, 1.0),), ((0.2, 0.2),))
    parts = [
        optdp.Density((0, 0.25, 1), ((2,), (Fraction(2, 3),))),
        optdp.Density((0, 0.75, 1), ((Fraction(2, 3),), (2,))),
    ]
    one, other = (flat.bound(replace(interval(), objective=optdp.Average("abs", part))).value for part in parts)
    assert 0 < one == pytest.approx(other, rel=1e-12)


def test_losses_that_are_no_pieces_are_replaced_by_pieces_below_them(monkeypatch):
    law, sides = optdp.Power(1.5), []
    branches = type(law).branches
    monkeypatch.setattr(type(law), "branches", lambda self, *a: sides.append(a[1]) or branches(self, *a))
    KernelCertificate(points=(0.5,), weights=(1.0,), point_reaches=(0.1,)).bound(interval(1.0, law))
    assert sides and set(sides) == {True}  # True: below


def test_where_one_loss_falls_and_another_rises_both_are_low():
    """At 1/2, which is as near as may be to both points, nobody loses anything."""
    prior = optdp.Average(optdp.Threshold(0.25), ([0.25, 0.75], [0.5, 0.5]))
    c = KernelCertificate(points=(0.25, 0.75), weights=(0.5, 0.5), point_reaches=(0.26, 0.26))
    assert c.bound(replace(interval(0.5), objective=prior)).value == 0


def test_polynomials_change_where_the_upper_end_of_a_window_turns():
    y = np.linspace(0, 1, 401)
    for loss, mesh, density, reach in (
        ("abs", (0.0, 0.911, 1.0), (0.57, 1.3, 1.39), (0.123, 0.221, 0.153)),
        (
            "squared",
            (0.0, 0.126, 0.224, 0.382, 1.0),
            (0.43, 1.72, 0.25, 0.59, 0.99),
            (0.359, 0.333, 0.284, 0.317, 0.333),
        ),
    ):
        c, problem = KernelCertificate(mesh, (density,), (reach,)), interval(1.0, loss)
        mass, value, g = dual(c, problem, y)
        assert 0 < c.bound(problem).value == pytest.approx((value + min(g.min(), 0.0)) / mass, rel=1e-3)


def test_one_output_is_searched_too():
    far = KernelCertificate(points=(0.0,), weights=(1.0,), point_reaches=(10.0,))
    assert far.bound(interval(outputs=(1.2, 1.5))).value <= 1.2


def test_rays_are_needed_signed_and_none_where_means_are_free():
    own = solved("unbiased prior")
    c, rays = own.certificate, own.certificate.rays
    assert own.gap <= 1e-3 and [np.sign(s) for s, _ in rays] == [-1, 1]
    for change in ((), rays[:1], rays[1:], tuple((-s, b) for s, b in rays), (*rays, rays[0]), (*rays, (-1e-3, 2.0))):
        found = proven(replace(c, rays=change), own.problem)
        assert found is None or found < 0.999 * own.lower_bound
    assert replace(c, rays=(*rays, (0.0, 5.0))).bound(own.problem).value == own.lower_bound
    halves = tuple((s / 2, b) for s, b in (*rays, *rays))
    assert replace(c, rays=halves).bound(own.problem).value == pytest.approx(own.lower_bound, rel=1e-12)
    for change in (((1.0,),), ((1.0, 0.5, 0.5),), ((math.nan, 0.5),), ((1.0, 1e300),), ((0.0, 0.0),) * 9):
        with pytest.raises(Refusal, match=r"multipliers must lie|at most 8 rays"):
            replace(c, rays=change).bound(own.problem)
    with pytest.raises(Refusal, match="multipliers of the means"):
        KernelCertificate(rays=rays).bound(solved("squared").problem)
    with pytest.raises(Refusal, match="centres must be given"):
        replace(c, point_centres=()).bound(own.problem)
    with pytest.raises(Refusal, match="does not close off"):
        KernelCertificate(rays=rays).bound(own.problem)
    assert "rays" not in solved("unbiased").certificate.to_dict()  # files of before
    assert KernelCertificate.from_dict(c.to_dict()) == c


def test_outputs_far_below_every_number_count():
    """Where g falls outwards it is searched as far as outputs may be, with all that the atoms add there."""
    own = solved("unbiased prior")
    rays = KernelCertificate(rays=((-1.0, 0.0), (1.0, 0.8)))  # from 0 to 1.2 their g is positive, and falls below
    for high, least in ((1.2, 0.0), (1.3, 1.3 - 0.5 * math.e)):
        near = replace(own.problem, constraints=(optdp.Unbiased(), optdp.Outputs(0.0, high)))
        assert rays.bound(near).value == pytest.approx(0.2 + least)
    for far in (1e6, 2.0**80, 1e300):
        below = replace(own.problem, constraints=(optdp.Unbiased(), optdp.Outputs(-far, 1.2)))
        assert rays.bound(below).value == 0
        problem = replace(own.problem, constraints=(optdp.Unbiased(), optdp.Outputs(-far, far)))
        assert own.certificate.bound(problem).value == pytest.approx(own.lower_bound, rel=1e-9)
        none = KernelCertificate(points=(0.2,), weights=(0.0,), point_reaches=(1.0,), point_centres=(0.0,))
        assert none.bound(problem).value == none.bound(own.problem).value == 0


def test_a_ray_at_one_end_is_no_symmetric_proof():
    """Then g(y) is not g(1 - y), and both halves of the outputs are searched."""
    fair = KernelCertificate(points=(0.0, 1.0), weights=(0.5, 0.5), point_reaches=(1.8, 1.8), point_centres=(-1.5, 2.5))
    problem, y = interval(1.0, "squared", unbiased=0, outputs=(-0.75, 1.75)), np.linspace(-0.75, 1.75, 4001)
    for rays in ((), ((-0.1, 0.4),), ((0.1, 0.6),), ((-0.1, 0.4), (0.1, 0.6))):
        c = replace(fair, rays=rays)
        _, value, g = dual(c, problem, y)
        assert c.bound(problem).value == pytest.approx(value + min(g.min(), 0.0), rel=1e-4) and g.min() > -0.9 * value


def test_windows_whose_ends_turn_back_are_refused():
    """Then the inputs that favour an output are no interval."""
    with pytest.raises(Refusal, match="must not decrease"):
        KernelCertificate((0.0, 0.1, 1.0), ((1.0, 1.0, 1.0),), ((0.0, 0.4, 0.4),)).bound(interval())
    with pytest.raises(Refusal, match="must not decrease"):
        KernelCertificate((0.0, 0.9, 1.0), ((1.0, 1.0, 1.0),), ((0.4, 0.4, 0.0),)).bound(interval())


def test_thresholds_of_inputs_without_density_are_of_no_use():
    """They need no breakpoints; but windows must not turn back there either."""
    mesh, density = (0.0, 0.2, 0.4, 0.5, 0.6, 0.7, 1.0), (1.0, 0.5, 0.0, 0.0, 0.0, 2.0, 0.0)
    found = [
        KernelCertificate(mesh, (density,), ((0.3, 0.3, 0.3, t, 0.3, 0.25, 0.2),)).bound(interval(outputs=(0.2, 0.9)))
        for t in (0.3, 0.21, 0.39)
    ]
    few = KernelCertificate(mesh[:3] + mesh[4:], (density[:3] + density[4:],), ((0.3, 0.3, 0.3, 0.3, 0.25, 0.2),))
    assert {bound.value for bound in found} == {few.bound(interval(outputs=(0.2, 0.9))).value}
    with pytest.raises(Refusal, match="must not decrease"):
        KernelCertificate(mesh, (density,), ((0.3, 0.3, 0.3, 0.5, 0.3, 0.25, 0.2),)).bound(interval())


@pytest.mark.parametrize("name", ["abs", "squared", "unbiased"])
def test_numbers_that_are_a_digit_better_than_what_is_proven_are_noticed(name):
    own = solved(name)
    assert own.verify()
    assert not replace(own, lower_bound=math.nextafter(own.certificate.bound(own.problem).value, 1)).verify()
    assert not replace(own, value=math.nextafter(own.mechanism.enclose(own.problem.objective)[1], 0)).verify()


@given(st.floats(-1.5, 2.5), st.booleans(), st.integers(-1, 1))
def test_floats_mirror_each_other_exactly_or_not_at_all(x, near, off):
    other = 1 - x if near else x
    for _ in range(abs(off)):
        other = math.nextafter(other, math.inf * off)
    twin = KernelCertificate(points=(0.25, 0.75), weights=(1, 1), point_reaches=(1, 1), point_centres=(x, other))
    assert twin._symmetric == (Fraction(x) + Fraction(other) == 1)


def test_a_proof_takes_bounded_work():
    """Thousands of atoms that prove nothing are bounded; too many, and absurd epsilons, are refused at once."""
    rng = np.random.default_rng(0)
    made = KernelCertificate(
        points=tuple(rng.random(300)), weights=tuple(rng.random(300)), point_reaches=tuple(rng.random(300))
    )
    assert made.bound(interval(30.0, "squared")).value >= 0
    many = (0.5,) * 5000
    with pytest.raises(ValueError, match="0 to 4096 finite numbers"):
        KernelCertificate(points=many, weights=many, point_reaches=many).bound(interval())
    for eps in (31.0, 1e308, optdp.log(10**200)):
        with pytest.raises(Refusal, match="at most 30"):
            solved("abs").certificate.bound(interval(eps))


# Plain programs on grids ----------------------------------------------------------------------------------------------


def dense(eps, law, n, m):
    """The best kernel from n inputs to m outputs: rows between floors and E floors."""
    x, y, growth = np.linspace(0, 1, n), np.linspace(0, 1, m), math.exp(eps)
    rows, floors = eye(n * m, format="csr"), kron(np.ones((n, 1)), eye(m, format="csr"), format="csr")
    loss = law.of(x[:, None], y[None])
    upper = vstack([
        hstack([-rows, floors, csr_matrix((n * m, 1))]),
        hstack([rows, -growth * floors, csr_matrix((n * m, 1))]),
        hstack([block_diag([csr_matrix(row) for row in loss]), csr_matrix((n, m)), -np.ones((n, 1))]),
    ])  # fmt: skip
    mass = hstack([kron(eye(n), np.ones((1, m))), csr_matrix((n, m + 1))])
    cost = np.append(np.zeros(n * m + m), 1.0)
    return linprog(cost, upper, np.zeros(upper.shape[0]), mass, np.ones(n), method="highs").fun


@pytest.mark.parametrize("law", [optdp.Power(1), optdp.Power(2), optdp.Pinball(0.8), optdp.Huber(0.2)], ids=str)
@pytest.mark.parametrize("eps", [0.5, 2.0, 4.0])
def test_brackets_agree_with_plain_programs_on_grids(eps, law):
    """Outputs moved to the grid, and inputs to the next one of the grid, change losses by at most the slope times half a step."""
    own = optdp.solve_kernel(eps, law, rtol=5e-3)
    n, m = 13, 25
    ends = np.array([-1.0, 1.0])  # where convex losses are steepest
    value, slope = dense(eps, law, n, m), float(np.max(law.of(0.0, ends) - law.of(0.0, 0.999 * ends))) * 1e3
    assert own.lower_bound - slope / (2 * (n - 1)) <= value <= own.value + slope / (2 * (m - 1))
    assert value == pytest.approx(own.value, rel=0.15 if eps == 4.0 else 0.03)


def test_the_value_falls_with_eps_and_scales_with_the_domain():
    for loss, power in (("abs", 1), ("squared", 2)):
        found = [optdp.solve_kernel(eps, loss, rtol=0.02) for eps in (0.1, 0.5, 1.0, 2.0)]
        for small, large in pairwise(found):
            assert large.value < small.lower_bound
        moved = optdp.solve_kernel(1.0, loss, rtol=0.02, domain=(3.0, 3.5))
        assert moved.value == pytest.approx(found[2].value / 2**power, rel=1e-9)
        assert moved.lower_bound == pytest.approx(found[2].lower_bound / 2**power, rel=1e-9)
        assert isinstance(moved.mechanism, KernelMechanism)


def test_at_a_jump_of_the_loss_the_lesser_value_counts():
    """Outputs within [1/4, 3/4] reach the ends of [0, 1] with Threshold(1/4) at their own ends alone, where windows close."""
    problem = optdp.Problem(optdp.LDP(optdp.log(3)), optdp.Interval(0, 1), optdp.WorstCase(optdp.Threshold(0.25)),
                            constraints=(optdp.Outputs(0.25, 0.75),))  # fmt: skip
    for first, second, reach in product([0.0, 0.125], [1.0, 0.875, 0.625], [0.1, 0.25, 0.44, 0.6]):
        found = KernelCertificate(points=(first, second), weights=(0.5, 0.5), point_reaches=(reach, reach))
        assert found.bound(problem).value <= 0.25
    both = KernelCertificate(points=(0.0, 1.0), weights=(0.5, 0.5), point_reaches=(0.44, 0.44))
    assert both.bound(replace(problem, constraints=(optdp.Outputs(0.3, 0.7),))).value == pytest.approx(1.0)


@pytest.mark.parametrize(("eps", "loss", "unbiased"), [(1.0, "abs", False), (4.0, "squared", False), (2.0, None, True)])
def test_what_is_symmetric_is_proven_on_one_half(eps, loss, unbiased):
    """Atoms and centres are numbers of which 1 - x is one, too: proofs of symmetric problems take half the time."""
    assert optdp.solve_kernel(eps, loss, unbiased=unbiased).certificate._symmetric

"""Noise on cells that lie between the points of the lattice, and the probability of a large error under KL and Renyi bounds."""

import json
import math
import time
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog
from scipy.sparse import csr_matrix

import optdp
from optdp.certificates.additive import SCALE, lattice_costs
from optdp.certificates.base import Refusal
from optdp.certificates.divergence import DivergenceCertificate
from optdp.design.additive import divergence
from optdp.design.progress import Progress
from optdp.design.registry import Run
from optdp.exact import work
from optdp.mechanisms.additive import AdditiveMechanism

LINE = optdp.Line()

noises = st.builds(
    lambda weights, tail, decay, atom: AdditiveMechanism(
        LINE, 1.5, 3, tuple(weights), 0 if tail else atom, tuple(tail), decay if tail else 0, bins=True
    ),
    st.lists(st.integers(1, 50), min_size=1, max_size=7),
    st.sampled_from([(), (4, 9, 2), (1, 1, 1)]),
    st.sampled_from([2**60, 2**61]),
    st.integers(0, 30),
)


def cells(noise: AdditiveMechanism) -> dict[int, Fraction]:
    """Masses of the cells (kh, (k+1)h), without the atom, far enough out."""
    b = Fraction(noise.decay, 2**62)
    right = [Fraction(w, noise.total) for w in noise.weights]
    right += [Fraction(t, noise.total) * (1 - b) * b**j for j in range(80 if noise.tail else 0) for t in noise.tail]
    return {k: p for a, p in enumerate(right) for k in (a, -1 - a)}


@settings(max_examples=30, deadline=None)
@given(noise=noises, shift=st.fractions(min_value=0, max_value=1), ratio=st.fractions(min_value=1, max_value=4))
def test_divergences_against_cells_written_out(noise, shift, ratio):
    p = cells(noise)
    assert abs(sum(p.values()) + Fraction(noise.atom, noise.total) - 1) < Fraction(1, 2**70)
    k, u = divmod(shift * noise.n, 1)
    direct = Fraction(noise.atom, noise.total) if shift else Fraction(0)
    # Each cell meets two: a share 1 - u of it the one k places on, the rest the next.
    for j, part in ((k, 1 - u), (k + 1, u)):
        if j:
            direct += part * sum(max(v - ratio * p.get(i + j, Fraction(0)), Fraction(0)) for i, v in p.items())
    assert abs(noise.hockey_stick(shift * Fraction(noise.sensitivity), ratio) - direct) < Fraction(1, 2**60)


@settings(max_examples=30, deadline=None)
@given(noise=noises)
def test_pairs_and_ratios_against_cells_written_out(noise):
    p = cells(noise)
    for k in range(1, noise.n + 1):
        pair = noise.pair(k)
        assert sum(pair.p) == sum(pair.q) == pair.total
        direct = sum(max(v - 2 * p.get(i + k, Fraction(0)), Fraction(0)) for i, v in p.items())
        found = Fraction(pair.hockey_stick(Fraction(2)))
        assert abs(found - direct - Fraction(noise.atom, noise.total)) < Fraction(1, 2**60)
    if noise.tail:
        inner = range(-40, 40)
        direct = max(p[i] / p[i + k] for i in inner for k in range(-noise.n, noise.n + 1))
        assert noise.exact_ratio == direct
    else:
        assert noise.exact_ratio is None


@settings(max_examples=12, deadline=None)
@given(noise=noises, bins=st.booleans(), reach=st.floats(0.1, 1.5), eps=st.floats(0.0, 3.0), alpha=st.floats(1.1, 6.0))
def test_cells_in_parts_are_the_same_noise(noise, bins, reach, eps, alpha):
    """Shifts in between the lattice's are among those of the finer one: what is said of both must agree."""
    noise = replace(noise, bins=bins)
    weights, tail = (tuple(v for v in part for _ in range(3)) for part in (noise.weights, noise.tail))
    weights = weights if bins else weights[1:]  # of a cell around 0 one part is in the middle, two on either side
    finer = replace(noise, n=3 * noise.n, atom=3 * noise.atom, weights=weights, tail=tail)
    ratio = Fraction(math.exp(eps))
    assert finer.exact_delta(ratio) == noise.exact_delta(ratio) and finer.exact_ratio == noise.exact_ratio
    assert noise.exact_delta(ratio, reach) >= finer.hockey_stick(Fraction(reach), ratio)
    assert finer.exact_delta(ratio, reach) == pytest.approx(noise.exact_delta(ratio, reach), abs=1e-11)
    for own, other in ((noise.mu(), finer.mu()), (noise.kl(), finer.kl()), (noise.renyi(alpha), finer.renyi(alpha))):
        assert own == pytest.approx(other, rel=1e-9)
    for loss in ("abs", "squared", optdp.Threshold(0.7), optdp.Power(1.5), optdp.Huber(0.6)):
        assert noise.enclose_loss(loss) == pytest.approx(finer.enclose_loss(loss), rel=1e-9)
    for level in (0.3, 0.9):
        assert noise.enclose_quantile(level) == pytest.approx(finer.enclose_quantile(level), rel=1e-9)
    if noise.tail:
        bounds = optdp.RDP(alpha, noise.renyi(alpha), 1.5), optdp.KL(noise.kl(), 1.5), optdp.GDP(noise.mu(), 1.5)
        for privacy in bounds:
            assert noise.admitted(privacy) and finer.admitted(privacy)
            assert noise.admitted(replace(privacy, sensitivity=reach))


@settings(max_examples=settings.default.max_examples // 4, deadline=None)
@given(noise=noises, level=st.floats(0.01, 0.99))
def test_the_distribution_and_its_losses(noise, level):
    h, p = float(noise.step), cells(noise)
    z = np.array([-2.2, -h, -0.3 * h, 0.4 * h, h, 1.7])
    below = [
        sum(float(v) * min(max(x / h - k, 0), 1) for k, v in p.items()) + noise.atom / noise.total * (x >= 0) for x in z
    ]
    assert noise.cdf(z) == pytest.approx(below, abs=1e-12)
    assert noise.noise_density(z + 1e-9)[2:4] == pytest.approx([float(p[-1]) / h, float(p[0]) / h])
    place = float(noise.quantile(level))
    assert noise.cdf(place) >= level - 1e-9 and (place == 0 or noise.cdf(place - 1e-9) <= level + 1e-9)
    low, high = noise.enclose_quantile(level)
    assert low <= high and 2 * float(noise.cdf(high)) - 1 >= level - 1e-9
    for loss, integral in (  # from 0 to x
        ("abs", lambda x: x**2 / 2), ("squared", lambda x: x**3 / 3), (optdp.Threshold(0.7), lambda x: max(x - 0.7, 0)),
        (optdp.Power(1.5), lambda x: x**2.5 / 2.5), (optdp.CustomLoss(np.sqrt), lambda x: x**1.5 / 1.5),
    ):  # fmt: skip
        if noise.tail and isinstance(loss, optdp.CustomLoss):
            continue
        direct = sum(
            float(v) * abs(integral(abs((k + 1) * h)) - integral(abs(k * h))) / h
            for k, v in p.items()
            if float(v) > 1e-14
        )
        found = noise.enclose_loss(loss)
        assert found[0] - 1e-7 <= direct <= found[1] + 1e-7
        assert noise.enclose_loss(loss, sent=True)[1] >= found[1] * (1 - 1e-12)


def test_what_is_drawn_has_these_cells():
    for tail, atom in (((), 6), ((3, 1), 0)):
        noise = AdditiveMechanism(LINE, 2.0, 2, (5, 1, 2), atom, tail, 2**61 if tail else 0, bins=True)
        drawn = noise.randomize(np.zeros(200_000), 3)
        assert np.mean(drawn == 0) == pytest.approx(noise.atom_mass, abs=0.005)
        counts, _ = np.histogram(drawn[drawn != 0], bins=np.arange(-4, 5))
        masses = cells(noise)
        expected = [float(masses[k]) if k in masses else 0.0 for k in range(-4, 4)]
        assert counts / 200_000 == pytest.approx(expected, abs=0.005)
        shares = np.mod(drawn[drawn != 0], 1.0)
        assert np.histogram(shares, bins=4, range=(0, 1))[0] / shares.size == pytest.approx(0.25, abs=0.005)


def test_files_hold_the_cells_place_and_old_files_are_read():
    noise = AdditiveMechanism(LINE, 1.0, 2, (5, 3), 0, (1, 1), 2**61, bins=True)
    read = optdp.Mechanism.from_dict(json.loads(json.dumps(noise.to_dict())))
    assert read == noise and read.bins
    plain = replace(noise, bins=False)
    assert "bins" not in plain.to_dict() and optdp.Mechanism.from_dict(plain.to_dict()) == plain != noise
    with pytest.raises(ValueError, match="bins = True is not allowed on the integers"):
        AdditiveMechanism(optdp.Integers(), 2.0, 2, (1, 2), bins=True)
    with pytest.raises(TypeError, match="bins = 1 is not allowed"):
        AdditiveMechanism(LINE, 2.0, 2, (1, 2), bins=1)


def best(privacy, limit):
    """The least P(|X| > limit) for limits of a half and of one sensitivity: masses of unit cells fall by one factor R throughout
    (all units outside cost the same), and the divergence at shift 1 is a sum of geometric series.
    """
    a, r, whole = getattr(privacy, "alpha", None), privacy.bound, limit == 1.0

    def spare(x):
        """How far below the bound the logarithm x of R is: masses go outwards with a share `out`, inwards with `back`."""
        R = math.exp(x)
        out, back = (0.5, 0.5 / R) if whole else (R / (R + 1), 1 / (R + 1))
        if a is None:
            return r - (out - back) * x
        return (a - 1) * r - math.log(out * R ** (a - 1) + back * R ** (1 - a) + (1 - out - back))

    R = math.exp(brentq(spare, 1e-9, 10.0, xtol=1e-15))
    return 1 / R if whole else 2 / (R + 1)


@pytest.mark.parametrize("limit", [0.5, 1.0])
@pytest.mark.parametrize(
    "privacy",
    [optdp.KL(0.1), optdp.KL(1), optdp.KL(3), optdp.RDP(1.5, 4), optdp.RDP(2, 0.1), optdp.RDP(64, 4)],
    ids=str,
)
def test_thresholds_of_half_and_one_sensitivity_have_closed_forms(privacy, limit):
    """At one sensitivity brackets had been 4 % to 100 % wide: cells around multiples of h end nowhere there."""
    found = optdp.solve_additive(privacy, loss=optdp.Threshold(limit), rtol=1e-5)
    assert found.gap <= 1e-5 and found.verify()
    value = best(privacy, limit)
    assert found.lower_bound <= value * (1 + 1e-9) and value <= found.value * (1 + 1e-9)
    assert found.mechanism.satisfies(privacy)
    assert optdp.Solution.from_dict(json.loads(json.dumps(found.to_dict()))).verify()


def least_error(pairs, cells, n, cost):
    """The least cost of 2 `cells` cells around 0, n of them in a sensitivity, under these pairs: the plain linear program."""
    size, rows, limits = 2 * cells, [], []
    slacks = [(s, eps, delta) for s in range(1, n + 1) for eps, delta in pairs]
    for block, (s, eps, delta) in enumerate(slacks):
        row = np.zeros((size, size * (1 + len(slacks))))
        row[:, :size] = np.eye(size) - math.exp(eps) * np.eye(size, k=s)
        row[:, size * (block + 1) : size * (block + 2)] = -np.eye(size)
        budget = np.zeros((1, row.shape[1]))
        budget[0, size * (block + 1) : size * (block + 2)] = 1
        rows += [row, budget]
        limits += [np.zeros(size), np.array([delta])]
    mirrored = np.hstack([np.eye(size) - np.eye(size)[::-1], np.zeros((size, size * len(slacks)))])
    mass = np.hstack([np.ones((1, size)), np.zeros((1, size * len(slacks)))])
    found = linprog(
        np.append(cost, np.zeros(size * len(slacks))), csr_matrix(np.vstack(rows)), np.concatenate(limits),
        csr_matrix(np.vstack([mirrored, mass])), np.append(np.zeros(size), 1.0),
    )  # fmt: skip
    return found.fun


TWO, THREE = [(1.0, 0.1), (2.0, 0.01)], [(1.5, 0.45), (3.0, 0.27), (6.0, 0.027)]


@pytest.mark.parametrize("pairs, steps", [(TWO, "1"), (THREE, "1"), (TWO, "2"), (TWO, "1/2 1"), (THREE, "1/2 1")])
def test_several_pairs_and_steps_at_ends_of_cells(pairs, steps):
    """Brackets were 15 % to 83 % wide after a minute: only cells around the lattice's points were tried."""
    steps = steps.split()
    n = len(steps)
    loss = optdp.Pieces((0, *steps), tuple((k,) for k in range(n + 1)))
    found = optdp.solve_additive(optdp.Profile(pairs), loss=loss)
    half = loss((np.arange(12 * n) + 0.5) / n)  # at the middles of cells
    value = least_error(pairs, 12 * n, n, np.concatenate([half[::-1], half]))
    assert found.gap <= 1e-5 and found.verify()
    assert found.lower_bound <= value * (1 + 1e-6) and value <= found.value * (1 + 1e-6)
    assert found.mechanism.bins and found.mechanism.satisfies(optdp.Profile(pairs))
    assert optdp.Solution.from_dict(json.loads(json.dumps(found.to_dict()))).verify()


@pytest.mark.parametrize(
    "privacy", [optdp.GDP(0.65), optdp.GDP(1.45), optdp.Profile([(1.0, 0.1), (2.0, 0.0)])], ids=str
)
def test_steps_of_a_third_close_where_noise_need_not_end(privacy):
    found = optdp.solve_additive(privacy, loss=optdp.Pieces((0, "1/3", "4/3"), ((0,), (1,), (2,))))
    assert found.gap <= 1e-3 and found.verify() and found.mechanism.bins


@pytest.mark.parametrize("privacy", [optdp.KL(0.4), optdp.RDP(2, 0.5), optdp.RDP(10, 0.3)], ids=str)
def test_step_functions_whose_steps_fit_a_lattice_close(privacy):
    values = []
    for limit in ("1/3", "1/2", "3/5", "1", "3/2", "2"):
        found = optdp.solve_additive(privacy, loss=optdp.Pieces((0, limit), ((0,), (1,))))
        assert found.gap <= 1e-3 and found.verify(), limit
        values.append(found.value)
    assert values == sorted(values, reverse=True)
    two = optdp.solve_additive(privacy, loss=optdp.Pieces((0, "1/2", 1), ((0,), ("1/2",), (1,))))
    assert two.gap <= 1e-3
    # The best for both at once is no better than the best for each.
    assert two.value >= (values[1] + values[3]) / 2 * (1 - 1e-3)


def test_the_program_in_cvxpy_is_the_same():
    found = optdp.solve_additive(optdp.KL(1.0), loss=optdp.Threshold(1.0))
    assert found.program.model.value == pytest.approx(found.value, rel=1e-4)


def test_a_scaled_problem_has_the_same_optimum():
    plain = optdp.solve_additive(optdp.KL(0.7), loss=optdp.Threshold(1.0))
    wide = optdp.solve_additive(optdp.KL(0.7, 4.0), loss=optdp.Threshold(4.0))
    assert wide.value == pytest.approx(plain.value, rel=1e-6) and wide.mechanism.bins


def test_limits_that_floats_put_just_beyond_the_end_of_a_cell_cost_no_more():
    """0.9 is more than three times 0.3 in floats, and 0.45 than 3/2 of it: values were up to 15 times those of exact numbers."""
    for limit, times in ((0.9, 3.0), (0.45, 1.5)):
        assert Fraction(limit) > Fraction(0.3) * Fraction(times)
        exact = optdp.solve_additive(optdp.KL(0.5), loss=optdp.Threshold(times))
        found = optdp.solve_additive(optdp.KL(0.5, 0.3), loss=optdp.Threshold(limit), rtol=0.6)
        assert found.value == pytest.approx(exact.value, rel=1e-5) and found.verify()
        assert 0 < found.lower_bound <= exact.value * (1 + 1e-9)
        assert found.program.model.value == pytest.approx(found.value, rel=1e-3)


def test_the_smallest_bounds_have_an_answer():
    """These ended with "no usable solution", or a gap of 0.6: the reference was cut where ratios had not settled."""
    for privacy in (optdp.RDP(2, 0.1), optdp.RDP(1.5, 0.1), optdp.RDP(2, 0.05)):
        found = optdp.solve_additive(privacy, loss=optdp.Threshold(0.5))
        assert found.gap <= 1e-5 and found.lower_bound <= best(privacy, 0.5) <= found.value


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 3),
    lam=st.lists(st.floats(0.001, 3.0), min_size=3, max_size=3),
    falls=st.lists(st.floats(0.05, 1.2), min_size=4, max_size=12),
    fall=st.one_of(st.just(0.0), st.floats(0.02, 0.95)),
    level=st.floats(0.01, 2.0),
    which=st.sampled_from([(1.0, "bins"), (1.0, "nodes"), (0.5, "nodes"), (0.5, "bins")]),
    order=st.sampled_from([None, 2.0, 7.0]),
)
def test_no_certificate_proves_more_than_the_optimum(n, lam, falls, fall, level, which, order):
    privacy = optdp.KL(0.5) if order is None else optdp.RDP(order, 0.5)
    limit, rounding = which
    problem = optdp.Problem(privacy, LINE, optdp.Threshold(limit), optdp.Additive())
    reference = tuple(np.cumprod([1.0, *falls]).tolist())
    made = DivergenceCertificate(n, tuple(lam[:n]), reference, level, rounding, fall)
    try:
        proven = made.bound(problem).value
    except Refusal:
        return
    assert proven <= best(privacy, limit) * (1 + 1e-9)


def written_out(made: DivergenceCertificate, privacy, costs):
    """(the least bracket up to K, or K + n, the least of all, the least R/sigma), pair by pair as the module says."""
    n, k, bins = made.n, len(made.reference) - 1, made.rounding == "bins"
    w = list(made.reference)
    while made.fall and len(w) < len(costs):
        w.append(w[-n] * made.fall)

    def support(rho):
        if isinstance(privacy, optdp.KL):
            return (math.log(rho) + 1) / privacy.bound, -rho / privacy.bound
        power = math.exp((privacy.alpha - 1) * (math.log(rho) - privacy.bound))
        return privacy.alpha * power, (1 - privacy.alpha) * power * rho

    def distance(i):
        return i if i >= 0 else -i - bins

    sigma, last, far = w[k - n] / w[k], made.multipliers[-1], len(costs) - 1
    others = sum(2 * lam * sum(support(1.0)) for lam in made.multipliers[:-1])
    others += last * (support(sigma)[0] + sum(support(1 / sigma)))

    def outwards(a):
        worth = (2 * (costs[a + n] - made.level) + others) / last  # -B(R), which grows with R
        found = lambda log: -support(math.exp(log))[1] - worth  # noqa: E731
        return math.exp(brentq(found, -60, 60, xtol=1e-14)) if worth > -support(math.exp(-60))[1] else 0.0

    put, steepest = [0.0] * len(costs), math.inf
    for s, lam in enumerate(made.multipliers, 1):
        for i in range(-far - bins, far - s + 1):
            here, there = distance(i), distance(i + s)
            if made.fall or max(here, there) <= k:
                rho = w[here] / w[there]
            elif s < n:
                rho = 1.0
            elif there < here:
                rho = 1 / sigma
            else:
                rho = outwards(here)
                steepest = min(steepest, rho / sigma)
                rho = rho or 1.0
            a, b = support(rho)
            put[here] += lam * a
            put[there] += lam * b
    put[0] *= 1 if bins else 2
    brackets = [c + p / 2 for c, p in zip(costs, put, strict=True)][: far - n + 1]
    return min(brackets[: k + 1 + n * (made.fall > 0)]), min(brackets), steepest


@settings(max_examples=300, deadline=None)
@given(
    n=st.integers(1, 3),
    lam=st.lists(st.floats(0.001, 3.0), min_size=3, max_size=3),
    falls=st.lists(st.floats(0.05, 1.2), min_size=4, max_size=8),
    tail=st.one_of(st.floats(0.02, 0.95), st.floats(0.0, 1.5).map(lambda level: -level)),
    loss=st.sampled_from([optdp.Threshold(1.0), optdp.Power(1), optdp.Power(2)]),
    rounding=st.sampled_from(["bins", "nodes"]),
    notion=st.sampled_from([optdp.KL(0.5), optdp.KL(2.0), optdp.RDP(2.0, 0.5), optdp.RDP(7.0, 0.5)]),
)
def test_the_divergence_bound_is_what_its_module_says_pair_by_pair(n, lam, falls, tail, loss, rounding, notion):
    """Also far beyond the reference, where the certificate does not look; refused where some R is below sigma."""
    reference = tuple(np.cumprod([1.0, *falls]).tolist())
    made = DivergenceCertificate(n, tuple(lam[:n]), reference, max(-tail, 0.0), rounding, max(tail, 0.0))
    costs = lattice_costs(loss, 1.0, n, len(reference) + 6 * n, rounding=rounding) / 2**SCALE
    near, every, steepest = written_out(made, notion, costs.astype(float).tolist())
    problem = optdp.Problem(notion, LINE, optdp.WorstCase(loss), optdp.Additive())
    try:
        with ctx.workprec(96):
            proven = float(made._ball(problem)) + sum(made.multipliers)
    except Refusal:
        assert steepest < 1 + 1e-9
        return
    assert steepest > 1 - 1e-9
    assert proven == pytest.approx(near if made.fall else min(near, made.level), rel=1e-9, abs=1e-9)
    assert every > proven - 1e-9 * (1 + abs(proven))


def test_what_is_no_reference_for_a_divergence_is_refused():
    """Pairs reach as far as shifts do: a reference of no more points than shifts has no ratio over one sensitivity."""
    good = DivergenceCertificate(2, (0.5, 0.5), (1.0, 0.5, 0.25), 0.0, fall=0.5)
    line = optdp.Problem(optdp.KL(0.5, 2.0), LINE, optdp.Threshold(2.0), optdp.Additive())
    whole = replace(line, domain=optdp.Integers())
    assert good.bound(line).value >= 0 and good.bound(whole).value >= 0
    for change, told in (
        ({"reference": (1.0, 0.5)}, "points of the reference"), ({"multipliers": (0.5,)}, "must be 2 multipliers"),
        ({"multipliers": (0.5,) * 3}, "must be 2 multipliers"), ({"multipliers": (0.5, 0.0)}, "must be positive"),
        ({"reference": (1.0, 0.0, 0.25)}, "must be positive"),
    ):  # fmt: skip
        with pytest.raises(Refusal, match=told):
            replace(good, **change).bound(line)
    for changed, problem, told in (
        (replace(good, rounding="bins"), whole, "rounding must be"),
        (good, replace(whole, privacy=optdp.KL(0.5, 3.0)), "must be the sensitivity 3"),
        (good, replace(line, privacy=optdp.GDP(1.0)), "KL or RDP"),
        (good, replace(line, objective=optdp.WorstCase(optdp.CustomLoss(np.square))), "power or piecewise"),
    ):
        with pytest.raises(Refusal, match=told):
            changed.bound(problem)


def test_the_best_certificate_is_that_of_the_closed_form_and_changes_of_it_prove_less():
    privacy = optdp.KL(0.5)
    problem = optdp.Problem(privacy, LINE, optdp.Threshold(1.0), optdp.Additive())
    value = best(privacy, 1.0)
    found = optdp.solve_additive(privacy, loss=optdp.Threshold(1.0), rtol=1e-5).certificate
    assert found.n == 1 and found.rounding == "bins" and found.fall == pytest.approx(value, rel=1e-4)
    assert found.bound(problem).value == pytest.approx(value, rel=1e-6)
    for wrong in (replace(found, fall=0.5), replace(found, rounding="nodes"), replace(found, multipliers=(1.0,))):
        assert wrong.bound(problem).value < value * (1 - 1e-3)
    whole = optdp.Problem(optdp.KL(0.5, 2.0), optdp.Integers(), optdp.Threshold(1.0), optdp.Additive())
    for wrong, reason in (({"fall": 1.0}, r"number in \[0, 1\)"), ({"fall": -0.1}, r"number in \[0, 1\)"),
                          ({"rounding": "cells"}, "one of 'nodes', 'bins'")):  # fmt: skip
        with pytest.raises(ValueError, match=reason):
            replace(found, **wrong)
    with pytest.raises(Refusal, match="rounding must be to nodes"):
        replace(found, n=2, multipliers=(0.1, 0.1)).bound(whole)


def step(limit):
    return optdp.Pieces((0, limit), ((0,), (1,)))


def brute(eps, delta, limit, n, reach):
    """The least mass beyond `limit` of symmetric masses on cells between 0, 1/n, ..., reach, with a slack for every pair."""
    size, e = n * reach, math.exp(eps)
    shifts, starts = range(1, n + 1), range(-size - n, size)
    columns, rows, entries, right = [], [], [], []
    for s in shifts:
        for i in starts:
            row, slack = len(right), size + (s - 1) * (size * 2 + n) + (i + size + n)
            for at, value in ((i, 1.0), (i + s, -e)):
                a = at if at >= 0 else -1 - at
                if a < size:
                    columns, rows, entries = [*columns, a], [*rows, row], [*entries, value]
            columns, rows, entries = [*columns, slack], [*rows, row], [*entries, -1.0]
            right.append(0.0)
    for s in shifts:
        first = size + (s - 1) * (size * 2 + n)
        columns += range(first, first + 2 * size + n)
        rows += [len(right)] * (2 * size + n)
        entries += [1.0] * (2 * size + n)
        right.append(delta)
    width = size + n * (2 * size + n)
    cost = np.where(np.arange(width) < size, 2.0 * (np.arange(width) >= round(limit * n)), 0.0)
    mass = np.where(np.arange(width) < size, 2.0, 0.0)[None, :]
    table = csr_matrix((entries, (rows, columns)), shape=(len(right), width))
    return linprog(cost, table, right, mass, [1.0], options={"primal_feasibility_tolerance": 1e-10}).fun


@pytest.mark.parametrize("eps, delta", [(1.0, 0.01), (1.5, 0.2), (2.0, 0.05)])
@pytest.mark.parametrize("limit", ["1/3", "2/5", "2/3", "1", "4/3"])
def test_limits_at_any_multiples_against_a_program_written_out_on_a_finer_lattice(eps, delta, limit):
    """Gaps were 1e-3 to 7e-3 (or 1) after a minute: no cell around a point of a lattice ends there."""
    found = optdp.solve_additive(eps, delta, step(limit))
    exact = Fraction(limit)
    direct = brute(eps, delta, float(exact), 2 * exact.denominator, 9)
    assert found.gap <= 1e-4 and found.verify() and found.mechanism.satisfies(optdp.ApproxDP(eps, delta))
    assert found.lower_bound <= direct + 1e-9 and found.value == pytest.approx(direct, rel=1e-4, abs=1e-9)


@pytest.mark.parametrize("eps", [0.3, 2.0])
@pytest.mark.parametrize("limit", ["1/5", "1/3", "2/3", "1"])
def test_limits_within_a_sensitivity_without_delta(eps, limit):
    """The staircase whose first step is the limit."""
    rest = 1 / math.expm1(eps)
    found = optdp.solve_additive(eps, 0, step(limit))
    assert found.lower_bound <= rest / (float(Fraction(limit)) + rest) <= found.value and found.gap < 1e-10


def test_the_geometric_tail_closes_what_a_support_that_ends_leaves():
    for eps, delta, limit in ((1.0, 0.01, "2/3"), (1e-3, 1e-5, "1/2"), (0.1, 1e-3, "4/3"), (1.0, 1e-6, "5/2")):
        found = optdp.solve_additive(eps, delta, step(limit), rtol=1e-9)
        assert found.gap <= 1e-9 and found.verify() and found.mechanism.tail
        read = optdp.Solution.from_dict(json.loads(json.dumps(found.to_dict())))
        assert read.verify()
    assert optdp.solve_additive(1.0, 0.01, step("2/3"), sensitivity=4.0).value > found.value


def test_noise_that_never_exceeds_the_limit_ends_before_it():
    """What is sent may lie just beyond the end of a cell: the chance had been 5e-13, and the gap 1."""
    for limit in (4 / 3, 1.5):
        found = optdp.solve_additive(1.5, 0.2, optdp.Threshold(limit))
        assert found.value == found.lower_bound == 0 and found.verify()
        assert not (np.abs(found.mechanism.randomize(np.zeros(100_000), 2)) > limit).any()


def test_steps_that_floats_put_next_to_ends_of_cells_under_a_pair():
    for limit, exact in ((0.4, "2/5"), (2 / 3, "2/3")):
        near, other = (
            optdp.solve_additive(2.0, 0.05, optdp.Threshold(limit), rtol=0.05),
            optdp.solve_additive(2.0, 0.05, step(exact)),
        )
        assert near.value == pytest.approx(other.value, rel=1e-9) and near.verify()
        assert near.lower_bound <= other.value * (1 + 1e-9)
    many = optdp.Pieces((0, "1/3", "2/3", "1", "4/3", "5/3"), ((0,), (1,), (2,), (3,), (4,), (5,)))
    assert optdp.solve_additive(1.0, 0.01, many).gap <= 1e-5  # all steps count, not the first three
    tiny = optdp.solve_additive(optdp.KL(1), loss=optdp.Threshold(1e-12), rtol=0.5)  # next to 0, which is no step
    assert tiny.value <= 1


def test_the_certificate_of_bins_under_a_pair_is_for_these_steps():
    problem = optdp.solve_additive(1.0, 0.01, step("2/3"))
    made = problem.certificate
    assert made.rounding == "bins" and made.n == 3
    assert replace(made, rounding="nodes").bound(problem.problem).value < problem.value * (1 - 1e-3)


@pytest.mark.parametrize(
    "privacy, loss",
    [
        (optdp.RDP(8, 10), "abs"),
        pytest.param(optdp.RDP(32, 12), "squared", marks=pytest.mark.soak),
        pytest.param(optdp.GDP(8), "abs", marks=pytest.mark.soak),
    ],
    ids=str,
)
def test_time_limits_are_looked_at_within_long_steps(privacy, loss):
    """These took 3, 5 and more than 300 seconds."""
    optdp.solve_additive(optdp.KL(1), rtol=0.1)  # what is imported counts for nothing
    began = time.perf_counter()
    found = optdp.solve_additive(privacy, loss=loss, time_limit=0.3)
    assert time.perf_counter() - began < 30 and found.program.stopped  # a loaded machine may take several times as long
    assert 0 < found.lower_bound <= found.value


def test_a_chance_that_is_too_small_for_floats_is_called_so():
    """It falls doubly exponentially: 2e-8 at 2.5 sensitivities, about 1e-15 at 3."""
    found = optdp.solve_additive(optdp.KL(1), loss=optdp.Threshold(2.5))
    assert found.gap < 1e-3 and found.value < 1e-7
    found = optdp.solve_additive(optdp.KL(1), loss=optdp.Threshold(3))
    assert found.lower_bound == 0 and found.verify() and "chances are below about 1e-10" in found.program.message
    assert found.value == pytest.approx(math.erfc(3), rel=1e-6)  # that of a Gaussian with mu^2 = 2


def test_orders_next_to_one_are_those_of_the_kl_divergence():
    """These were refused after a minute."""
    for privacy, loss, most in (
        (optdp.RDP(1.0001, 1), "abs", 1e-2),
        (optdp.RDP(1.0005, 0.3), optdp.Threshold(1), 2e-3),
    ):
        found = optdp.solve_additive(privacy, loss=loss, rtol=most)
        near = optdp.solve_additive(optdp.KL(privacy.bound), loss=loss, rtol=most)
        assert found.gap <= most and found.verify() and found.mechanism.satisfies(privacy)
        assert near.lower_bound <= found.value and found.lower_bound <= near.value
        assert optdp.Solution.from_dict(json.loads(json.dumps(found.to_dict()))).verify()
    with pytest.raises(Refusal, match="KL or RDP"):
        found.certificate.bound(replace(found.problem, privacy=optdp.GDP(1.0)))


@pytest.mark.parametrize(
    ("privacy", "loss"),
    [(optdp.RDP(1.5, 0.0857, 128), "squared"), (optdp.KL(3.3e-4, 100), optdp.Power(4)),
     (optdp.RDP(1.0001, 0.02, 100), "squared"), (optdp.RDP(1.0001, 0.02, 1000), "abs")],
)  # fmt: skip
def test_noise_that_is_too_wide_for_the_lattice_of_the_integers_is_that_of_the_line(privacy, loss):
    """They were refused; with orders next to 1, where noise is rounded, in the words of an error of Python."""
    found = optdp.solve(optdp.Problem(privacy, optdp.Integers(), loss, optdp.Additive()), time_limit=5)
    assert found.gap <= 1e-3 and found.verify() and type(found.mechanism).__name__ == "RoundedNoise"


def test_steps_at_no_ends_of_cells_have_lattices_of_their_own():
    """The gap was 0.42."""
    loss = optdp.Pieces((0, 0.637876, 2 * 0.637876), ((0,), (1,), (3,)))
    task = divergence.Task(optdp.Problem(optdp.KL(3.08), LINE, loss, optdp.Additive()))
    coarse = divergence._bracket(task, 8, math.inf)
    found = divergence._at_steps(Run(task.problem, 0.01, 60.0, "auto", None, Progress()), task, coarse)
    assert coarse.gap > 0.3 and found.gap < 0.01 and found.mechanism.n == 58


def test_losses_that_are_zero_until_a_kink_are_solved():
    """Between points the kink lowers costs below 0, where no lattice of a few points had a solution."""
    task = divergence.Task(
        optdp.Problem(optdp.KL(4.0), LINE, optdp.Pieces((0, 0.823), ((0,), (-0.823, 1))), optdp.Additive())
    )
    assert task.finer(21) == 34 and task.sag(34) < 0.1 * task.sag(21) and task.aligned(60) == 79
    assert optdp.solve(replace(task.problem, privacy=optdp.KL(3.0)), rtol=0.9).gap < 0.9


def test_what_nobody_could_check_is_not_made(monkeypatch):
    """Solutions at a large KL bound did not verify within the usual limit."""
    monkeypatch.setattr(work, "LIMIT", 0.2)
    found = optdp.solve(optdp.Problem(optdp.KL(3.0), optdp.Line(), "abs", optdp.Additive()), time_limit=5)
    assert found.verify(limit=0.2) and found.gap < 0.1

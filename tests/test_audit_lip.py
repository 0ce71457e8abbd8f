"""The claims of LIP: the verdicts, every witness recomputed exactly by another route, and checks that can fail."""

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optdp.audit.claim import CLAIMS, Finding, Verdict
from optdp.audit.lip import claims as lip
from optdp.audit.lip import discoveries as lip_discoveries
from optdp.audit.lip import exact as lip_exact
from optdp.audit.lip import forms
from optdp.closed_forms import lip as optima
from optdp.design.lip import solve_lip
from tests.solutions import audited

VERDICTS = {
    "LIP-1": Verdict.VERIFIED, "LIP-2": Verdict.VERIFIED, "LIP-3": Verdict.VERIFIED, "LIP-4": Verdict.VERIFIED,
    "LIP-5": Verdict.CONDITIONAL, "LIP-6": Verdict.CONDITIONAL, "LIP-7": Verdict.CONDITIONAL, "LIP-8": Verdict.CONDITIONAL,
    "LIP-8x": Verdict.CONDITIONAL, "LIP-9": Verdict.CONDITIONAL, "LIP-10": Verdict.VERIFIED, "LIP-11": Verdict.VERIFIED,
    "LIP-12": Verdict.CONDITIONAL, "LIP-13": Verdict.CONDITIONAL, "LIP-14": Verdict.REFUTED, "LIP-15": Verdict.VERIFIED,
    "LIP-16": Verdict.CONDITIONAL, "LIP-17": Verdict.VERIFIED, "LIP-17x": Verdict.CONDITIONAL, "LIP-18": Verdict.VERIFIED,
    "LIP-19": Verdict.CONDITIONAL,
    "LIP-20": Verdict.CONDITIONAL, "LIP-21": Verdict.VERIFIED, "LIP-22": Verdict.REFUTED, "LIP-23": Verdict.VERIFIED,
    "LIP-24": Verdict.REFUTED, "LIP-25": Verdict.REFUTED, "LIP-26": Verdict.REFUTED,
    "LIP-27": Verdict.CONDITIONAL, "LIP-28": Verdict.VERIFIED, "LIP-29": Verdict.VERIFIED, "LIP-30": Verdict.CONDITIONAL,
}  # fmt: skip

THIRD, HALF = Fraction(1, 3), Fraction(1, 2)
growth = st.fractions(min_value=Fraction(51, 50), max_value=20, max_denominator=50)
shares = st.fractions(min_value=Fraction(1, 100), max_value=HALF, max_denominator=100)
priors = st.lists(st.integers(1, 12), min_size=2, max_size=4).map(lambda w: [Fraction(k, sum(w)) for k in w])


def error(joint, values):
    """E (X - E[X|Y])^2, term by term: not by variances, as `lip_exact` has it."""
    total = Fraction(0)
    for row in joint:
        guess = sum(m * x for m, x in zip(row, values, strict=True)) / sum(row)
        total += sum(m * (x - guess) ** 2 for m, x in zip(row, values, strict=True))
    return total


def posterior_odds(kernel, prior):
    """The largest of posterior/prior and prior/posterior, by Bayes' rule from a kernel K[i][y]."""
    found = Fraction(1)
    for y in range(len(kernel[0])):
        mass = sum(p * row[y] for p, row in zip(prior, kernel, strict=True))
        found = max(found, *(row[y] / mass for row in kernel), *(mass / row[y] for row in kernel))
    return found


def published_kernel(prior, ratio):
    return [[1 - (1 - q) / ratio if i == j else q / ratio for j, q in enumerate(prior)] for i in range(len(prior))]


def joint_of(kernel, prior):
    return [[p * row[y] for p, row in zip(prior, kernel, strict=True)] for y in range(len(kernel[0]))]


def test_a_discovery_notices_a_claim_that_fails(monkeypatch):
    monkeypatch.setattr(lip, "implies_information", lambda: Finding.unsettled("it failed"))
    assert lip_discoveries.least_information().verdict is Verdict.UNSETTLED


def test_every_claim_of_the_paper_has_its_row():
    assert {c.id for c in CLAIMS.values() if c.paper == "LIP"} == set(VERDICTS)


# --- the notions


@given(priors, growth)
def test_sandwich_levels_are_those_of_all_extreme_posteriors(prior, ratio):
    """LIP-2, LIP-3: largest likelihood ratio over the vertices of LIP, largest posterior/prior over those of LDP."""
    least, d = min(prior), len(prior)
    level = max(
        max(a) / min(a)
        for a in ([q / p for q, p in zip(r, prior, strict=True)] for r in lip_exact.vertices(prior, ratio))
    )
    if least * (1 + ratio) >= 1:
        assert level == forms.ldp_level(least, ratio) <= ratio**2
    else:
        assert level == (ratio**2 if d > 2 else forms.ldp_level_rare(least, ratio))
    odds = Fraction(1)
    for high in itertools.product((Fraction(1), ratio), repeat=d):
        mass = sum(p * k for p, k in zip(prior, high, strict=True))
        odds = max(odds, *(k / mass for k in high), *(mass / k for k in high))
    assert odds == forms.lip_level(least, ratio) < ratio


@given(priors, growth, st.randoms(use_true_random=False))
def test_mechanisms_keep_the_sandwich_and_the_information_bound(prior, ratio, random):
    """LIP-1 to LIP-3 on random mechanisms: mixtures of extreme posteriors with the constant one."""
    corners = lip_exact.vertices(prior, ratio)
    drawn = [random.choice(corners) for _ in range(3)]
    weight = Fraction(1)
    for i, p in enumerate(prior):  # the rest must stay a posterior within the promise
        total = sum(r[i] for r in drawn)
        for bound in (p * ratio, p / ratio):
            # (p - w total) / (1 - 3 w) on the right side of the bound, for all weights up to w
            slope = total - 3 * bound
            if slope and (p - bound) / slope > 0:
                weight = min(weight, (p - bound) / slope)
    weight = min(weight, Fraction(1, 4))
    rest = [(p - weight * sum(r[i] for r in drawn)) / (1 - 3 * weight) for i, p in enumerate(prior)]
    joint = lip_exact.from_posteriors([weight] * 3 + [1 - 3 * weight], [*drawn, rest])
    assert lip_exact.prior_of(joint) == prior
    level = lip_exact.lip(joint)
    assert level <= ratio and level <= lip_exact.ldp(joint) <= level**2
    information = sum(float(m) * math.log(m / (sum(row) * p)) for row in joint for m, p in zip(row, prior, strict=True))
    assert information <= float(forms.information(ratio, math.log(ratio))) + 1e-12


def test_information_bound_is_attained():
    """LIP-1, E = 2: six categories, all pairs raised: posterior/prior 2 with probability 1/3 under the prior."""
    joint = lip.subsets_of_six(Fraction(2))
    assert lip_exact.lip(joint) == 2 and lip_exact.prior_of(joint) == [Fraction(1, 6)] * 6
    # I = (mass where the ratio is 2 - mass where it is 1/2) ln 2
    up = sum(m for row in joint for m in row if m / (sum(row) / 6) == 2)
    assert up - (1 - up) == forms.information(Fraction(2), 1) == THIRD


# --- Example 1 and two categories


def unbiased_variance(keep, lie, share):
    """Of (Y - q)/(p - q) for one user, by its two values."""
    total = Fraction(0)
    for truth, weight in ((1, share), (0, 1 - share)):
        chance = keep if truth else lie
        for y, q in ((1, chance), (0, 1 - chance)):
            total += weight * q * ((y - lie) / (keep - lie) - truth) ** 2
    return total


@given(growth, shares, st.fractions(0, 1, max_denominator=60), st.fractions(0, 1, max_denominator=60))
def test_randomised_response_is_the_best_unbiased_pair(ratio, share, keep, lie):
    """LIP-5, for any allowed pair, and for the published one by the factor of four."""
    best = unbiased_variance(ratio / (1 + ratio), 1 / (1 + ratio), share)
    assert best == forms.unbiased_response(ratio)
    assert unbiased_variance(HALF, 1 / (1 + ratio), share) == 4 * best + share
    if lie < keep <= ratio * lie and 1 - lie <= ratio * (1 - keep):
        assert unbiased_variance(keep, lie, share) >= best


@given(shares, growth)
def test_binary_optimum_and_its_kernel(p, ratio):
    """LIP-6, LIP-7, LIP-9: the published kernel breaks the promise exactly if p < 1/(1+E); the true optimum as a kernel."""
    prior = [1 - p, p]
    kernel = published_kernel(prior, ratio)
    assert error(joint_of(kernel, prior), [0, 1]) == forms.published(p * (1 - p), ratio)
    legal = p * (1 + ratio) >= 1
    assert (posterior_odds(kernel, prior) <= ratio) == legal
    if legal:
        return
    assert posterior_odds(kernel, prior) == forms.published_level(p, ratio)
    yes = (1 - ratio * p) / ((1 + ratio) * (1 - p))
    optimum = [[1 - yes, yes], [1 / (1 + ratio), ratio / (1 + ratio)]]
    assert posterior_odds(optimum, prior) <= ratio
    value = error(joint_of(optimum, prior), [0, 1])
    assert value == forms.rare(p, ratio) > forms.published(p * (1 - p), ratio)
    assert sum(q * row[1] for q, row in zip(prior, optimum, strict=True)) == 1 / (1 + ratio)


@given(shares, growth, st.lists(st.tuples(st.integers(0, 20), st.integers(1, 9)), min_size=2, max_size=6))
def test_no_legal_mechanism_for_a_bit_is_below_the_optimum(p, ratio, drawn):
    """LIP-7, LIP-8: random posteriors within the promise, completed to mean p."""
    low, high = p / ratio, min(ratio * p, 1 - (1 - p) / ratio)
    weights = [Fraction(w, 10 * len(drawn)) for _, w in drawn]
    posteriors = [low + (high - low) * Fraction(k, 20) for k, _ in drawn]
    rest = 1 - sum(weights)
    last = (p - sum(w * r for w, r in zip(weights, posteriors, strict=True))) / rest
    if not low <= last <= high:
        return
    joint = lip_exact.from_posteriors([*weights, rest], [[1 - r, r] for r in [*posteriors, last]])
    assert lip_exact.lip(joint) <= ratio
    common = p * (1 + ratio) >= 1
    assert error(joint, [0, 1]) >= (forms.published(p * (1 - p), ratio) if common else forms.rare(p, ratio))
    wrong = sum(min(row) for row in joint)
    least = 2 * p * (1 - p) / ratio if common else min(p, (1 + p - ratio * p) / (1 + ratio))
    assert wrong >= least


@given(shares, growth)
def test_absolute_error_of_the_two_optima(p, ratio):
    """LIP-8: P(X != Y) of the optimum, against always answering 0."""
    if p * (1 + ratio) >= 1:
        kernel = published_kernel([1 - p, p], ratio)
        assert (1 - p) * kernel[0][1] + p * kernel[1][0] == 2 * p * (1 - p) / ratio <= p
    else:
        yes = (1 - ratio * p) / ((1 + ratio) * (1 - p))
        wrong = (1 - p) * yes + p / (1 + ratio)
        assert wrong == (1 + p - ratio * p) / (1 + ratio) and (wrong <= p) == (2 * ratio * p >= 1)


@given(shares, growth)
def test_errors_and_advantage_of_a_bit(p, ratio):
    """LIP-10 to LIP-12, LIP-21, LIP-23: by kernels."""
    prior = [1 - p, p]
    response = [[ratio / (1 + ratio), 1 / (1 + ratio)], [1 / (1 + ratio), ratio / (1 + ratio)]]
    ldp = error(joint_of(response, prior), [0, 1])
    assert ldp == forms.ldp(p, ratio) < unbiased_variance(ratio / (1 + ratio), 1 / (1 + ratio), p)
    common = p * (1 + ratio) >= 1
    best = forms.published(p * (1 - p), ratio) if common else forms.rare(p, ratio)
    saved = forms.advantage_common(p, ratio) if common else forms.advantage(p, ratio)
    assert best < ldp and 1 - best / ldp == saved
    peak = forms.advantage(1 / (1 + ratio), ratio)
    assert saved <= peak == 1 - 2 * (2 * ratio - 1) * (ratio**2 + 1) / (ratio * (ratio + 1)) ** 2
    square = ratio**2  # LDP at twice the budget
    assert forms.ldp(p, square) <= best


def test_advantage_shrinks_for_rare_answers():
    """LIP-12's witness, from the kernels: E = 2."""
    ratio, p = Fraction(2), Fraction(1, 10)
    optimum = [[1 - Fraction(8, 27), Fraction(8, 27)], [THIRD, 2 * THIRD]]
    assert posterior_odds(optimum, [1 - p, p]) == 2
    lip_error = error(joint_of(optimum, [1 - p, p]), [0, 1])
    ldp_error = error(lip_exact.response([1 - p, p], ratio), [0, 1])
    fair = error(lip_exact.published([HALF, HALF], ratio), [0, 1]) / error(
        lip_exact.response([HALF, HALF], ratio), [0, 1]
    )
    assert lip_error == Fraction(17, 200) and 1 - fair == Fraction(5, 32)
    assert 1 - lip_error / ldp_error < Fraction(14, 1000) < 1 - fair


# --- many categories


@given(priors, growth)
def test_published_kernel_bounds_every_prior_from_below(prior, ratio):
    """LIP-13, LIP-16: its corners dominate every extreme posterior; it is legal exactly if min P >= 1/(1+E)."""
    d = len(prior)
    kernel = published_kernel(prior, ratio)
    joint = joint_of(kernel, prior)
    values = [Fraction(i * i) for i in range(d)]
    mean = sum(p * x for p, x in zip(prior, values, strict=True))
    variance = sum(p * (x - mean) ** 2 for p, x in zip(prior, values, strict=True))
    assert error(joint, values) == forms.published(variance, ratio)
    squares = sum(p * p for p in prior)
    assert lip_exact.histogram_error(joint) == forms.published(1 - squares, ratio)
    assert (posterior_odds(kernel, prior) <= ratio) == (min(prior) * (1 + ratio) >= 1)
    corners = [[p / ratio + (1 - 1 / ratio) * (i == j) for i, p in enumerate(prior)] for j in range(d)]
    for r in lip_exact.vertices(prior, ratio):
        share = [(q - p / ratio) / (1 - 1 / ratio) for q, p in zip(r, prior, strict=True)]
        assert min(share) >= 0 and sum(share) == 1
        for gain in (lip_exact.square_of_mean(values), lip_exact.sum_of_squares):
            assert gain(r) <= sum(a * gain(v) for a, v in zip(share, corners, strict=True))


def test_randomised_response_is_not_the_ldp_optimum():
    """LIP-14's witness as a kernel, and two halves of six values."""
    weight = Fraction(1, 6)
    kernel = [[weight * k for k in row] for row in ((1, 2, 1, 2), (1, 1, 2, 2), (2, 1, 2, 1))]
    assert all(sum(row) == 1 for row in kernel)
    assert all(max(column) == 2 * min(column) for column in zip(*kernel, strict=True))
    ours = error(joint_of(kernel, [THIRD] * 3), [-1, 0, 1])
    theirs = error(lip_exact.response([THIRD] * 3, Fraction(2)), [-1, 0, 1])
    assert (ours, theirs) == (Fraction(37, 60), Fraction(5, 8))
    sixth = [Fraction(1, 6)] * 6
    halves = error([[Fraction(k, 18) for k in row] for row in ((2, 2, 2, 1, 1, 1), (1, 1, 1, 2, 2, 2))], range(6))
    response = error(lip_exact.response(sixth, Fraction(2)), range(6))
    assert halves == Fraction(8, 3) < response == Fraction(35, 12) * forms.response_sum(6, Fraction(2))


@given(priors, st.lists(st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=1, max_size=8))
def test_outputs_can_be_merged_down_to_the_number_of_categories(prior, drawn):
    """LIP-15: any mechanism, whatever its promise, loses nothing."""
    d = len(prior)
    rows = [row[:d] for row in drawn if any(row[:d])]
    top = [1 + sum(row[i] for row in rows) for i in range(d)]
    kernel = [[Fraction(k, t) for k, t in zip(row, top, strict=True)] for row in rows] + [[Fraction(1, t) for t in top]]
    joint = [[p * k for p, k in zip(prior, row, strict=True)] for row in kernel]
    before = {tuple(m / sum(row) for m in row) for row in joint}
    for gain in (lip_exact.square_of_mean([Fraction(i) for i in range(d)]), lip_exact.sum_of_squares):
        fewer = lip_exact.fewer_outputs(joint, gain)
        assert len(fewer) <= d and lip_exact.prior_of(fewer) == prior
        assert {tuple(m / sum(row) for m in row) for row in fewer} <= before
        assert lip_exact.mean_gain(fewer, gain) >= lip_exact.mean_gain(joint, gain)


def test_two_outputs_can_be_optimal_for_three_categories():
    """LIP-15's witness: P = (2/3, 1/6, 1/6), E = 2; the bound from hi and lo of each coordinate."""
    kernel = [[Fraction(5, 6), Fraction(1, 6)], [THIRD, 2 * THIRD], [THIRD, 2 * THIRD]]
    prior = [2 * THIRD, Fraction(1, 6), Fraction(1, 6)]
    assert posterior_odds(kernel, prior) == 2
    attained = lip_exact.histogram_error(joint_of(kernel, prior))
    bound = 1
    for p in prior:
        low, high = p / 2, min(2 * p, 1 - (1 - p) / 2)
        bound -= p * p + (high - p) * (p - low)
    assert attained == bound == Fraction(5, 12)


def test_histogram_of_rare_categories():
    """LIP-16: six categories, E = 2, all pairs: attains the bound, which the published value undercuts."""
    kernel = [
        [Fraction(2 if i in pair else HALF, 15) for pair in itertools.combinations(range(6), 2)] for i in range(6)
    ]
    prior = [Fraction(1, 6)] * 6
    assert all(sum(row) == 1 for row in kernel) and posterior_odds(kernel, prior) == 2
    value = lip_exact.histogram_error(joint_of(kernel, prior))
    assert value == forms.rare_histogram(Fraction(1, 6), Fraction(2)) == Fraction(3, 4)
    assert lip_exact.histogram_error(lip_exact.published(prior, Fraction(2))) == Fraction(5, 8)
    # No extreme posterior has more than the chord's share, so that none of them, mixed, does better.
    for r in lip_exact.vertices(prior, Fraction(2)):
        assert sum(q * q for q in r) <= sum((Fraction(1, 12) + THIRD) * q - Fraction(1, 36) for q in r)


@given(priors, growth)
def test_histogram_bound_covers_all_regimes(prior, ratio):
    """LIP-16: every extreme posterior is below the chord; the published and the rare value are its special cases."""
    bound = forms.histogram_bound(prior, ratio)
    squares = sum(p * p for p in prior)
    if min(prior) * (1 + ratio) >= 1:
        assert bound == forms.published(1 - squares, ratio)
    if max(prior) * (1 + ratio) <= 1:
        assert bound == forms.rare_histogram(squares, ratio)
    if len(prior) == 2:
        p = min(prior)
        assert bound == 2 * (forms.published(p * (1 - p), ratio) if p * (1 + ratio) >= 1 else forms.rare(p, ratio))
    low = [max(p / ratio, 1 - ratio * (1 - p)) for p in prior]
    high = [min(ratio * p, 1 - (1 - p) / ratio) for p in prior]
    prices = [a + b - sum(x * y for x, y in zip(low, high, strict=True)) for a, b in zip(low, high, strict=True)]
    assert lip_exact.dual_bound(prior, ratio, lip_exact.sum_of_squares, prices) == 1 - bound


@given(priors, growth)
def test_lip_is_a_cap_on_what_is_left(prior, ratio):
    """LIP-13: r = P/E + (1 - 1/E) l is within the promise exactly if 0 <= l <= (1+E) P."""
    for r in lip_exact.vertices(prior, ratio):
        left = [(q - p / ratio) / (1 - 1 / ratio) for q, p in zip(r, prior, strict=True)]
        assert sum(left) == 1 and all(0 <= a <= (1 + ratio) * p for a, p in zip(left, prior, strict=True))
        assert any(a in (0, (1 + ratio) * p) for a, p in zip(left, prior, strict=True))


@given(st.lists(st.integers(1, 12), min_size=2, max_size=7), growth, st.integers(0, 5))
def test_published_kernel_on_groups(weights, ratio, cut):
    """LIP-13: legal if every group has prior probability 1/(1+E), and its error is the published one plus what groups hide."""
    prior = [Fraction(k, sum(weights)) for k in weights]
    cut = min(1 + cut, len(prior) - 1)
    groups = [range(cut), range(cut, len(prior))]
    joint = lip_exact.grouped(prior, groups, ratio)
    assert lip_exact.prior_of(joint) == prior
    legal = all(sum(prior[i] for i in group) * (1 + ratio) >= 1 for group in groups)
    assert (lip_exact.lip(joint) <= ratio) == legal
    values = [Fraction(i) for i in range(len(prior))]
    mean = sum(p * x for p, x in zip(prior, values, strict=True))
    variance = sum(p * (x - mean) ** 2 for p, x in zip(prior, values, strict=True))
    within = Fraction(0)
    for group in groups:
        mass = sum(prior[i] for i in group)
        centre = sum(prior[i] * values[i] for i in group) / mass
        within += sum(prior[i] * (values[i] - centre) ** 2 for i in group)
    assert error(joint, values) == forms.published(variance, ratio) + (1 - 1 / ratio) ** 2 * within


@pytest.mark.parametrize("ratio, d", [(2, 3), (2, 6), (2, 9), (3, 8), (4, 10), (5, 12)])
def test_even_sum_under_lip(ratio, d):
    """LIP-13: groups of neighbours attain the closed form, which is the certified optimum."""
    size = d // (1 + ratio)
    groups = [range(size * g, size * (g + 1)) for g in range(1 + ratio)]
    joint = lip_exact.grouped([Fraction(1, d)] * d, groups, Fraction(ratio))
    assert lip_exact.lip(joint) == ratio
    assert error(joint, range(d)) == forms.even_sum_lip(Fraction(d), Fraction(ratio))
    found = solve_lip([Fraction(1, d)] * d, math.log(ratio))
    assert found.lower_bound == pytest.approx(float(forms.even_sum_lip(Fraction(d), Fraction(ratio))), rel=1e-9)


@given(st.integers(2, 12), st.floats(0.1, 3))
def test_even_sum_under_lip_is_a_lower_bound(d, eps):
    assert solve_lip([Fraction(1, d)] * d, eps).value >= forms.even_sum_lip(d, math.exp(eps)) * (1 - 1e-9)


@pytest.mark.parametrize("ratio", [Fraction(11, 10), Fraction(2), Fraction(4), Fraction(32, 5)])
@pytest.mark.parametrize("d", [4, 6, 10])
def test_two_halves_are_optimal_by_all_outputs(ratio, d):
    """LIP-14: its dual prices against every set of raised categories, and two halves attain them."""
    tau = (ratio - 1) / (ratio + 1)
    values = [Fraction(2 * i + 1 - d, 2) for i in range(d)]
    half = tau * d / 4
    prices = [2 * tau * half * abs(x) - half**2 for x in values]
    assert sum(prices) / d == half**2
    for high in itertools.product((Fraction(1), ratio), repeat=d):
        moment = sum(s * x for s, x in zip(high, values, strict=True))
        assert moment**2 <= sum(high) * sum(s * g for s, g in zip(high, prices, strict=True))
    rows = [[ratio] * (d // 2) + [Fraction(1)] * (d // 2), [Fraction(1)] * (d // 2) + [ratio] * (d // 2)]
    joint = [[s / (d * (1 + ratio)) for s in row] for row in rows]
    assert error(joint, values) == forms.even_sum_ldp(Fraction(d), ratio) and lip_exact.ldp(joint) == ratio


@given(growth, st.integers(2, 40))
def test_even_histogram_under_ldp(ratio, d):
    """LIP-26: every number of raised categories, and the witness for six."""
    bound = 1 - forms.even_histogram_ldp(Fraction(d), ratio)
    for raised in range(d + 1):
        mass = raised * ratio + d - raised
        assert (raised * ratio**2 + d - raised) / mass**2 <= bound


def test_saving_of_six_categories():
    """LIP-26's witness, from kernels on all pairs: E = 2."""
    pairs = list(itertools.combinations(range(6), 2))
    prior = [Fraction(1, 6)] * 6
    ldp = lip_exact.histogram_error([[Fraction(2 if i in pair else 1, 120) for i in range(6)] for pair in pairs])
    joint = [[Fraction(4 if i in pair else 1, 180) for i in range(6)] for pair in pairs]
    assert lip_exact.prior_of(joint) == prior and lip_exact.lip(joint) == 2
    assert (lip_exact.histogram_error(joint), ldp) == (Fraction(3, 4), Fraction(13, 16))


# --- the server


def test_central_optimum_of_two_fair_bits():
    """LIP-19: 13/32 by primal and dual, whose check visits every extreme posterior, and inside the solver's bracket."""
    law, e = [Fraction(1, 4), HALF, Fraction(1, 4)], Fraction(2)
    posteriors = [
        [Fraction(1, 8), Fraction(3, 8), HALF],
        [HALF, Fraction(3, 8), Fraction(1, 8)],
        [Fraction(1, 8), Fraction(3, 4), Fraction(1, 8)],
    ]
    joint = lip_exact.from_posteriors([THIRD] * 3, posteriors)
    assert lip_exact.prior_of(joint) == law and lip_exact.lip(joint) == e
    assert (
        error(joint, [-1, 0, 1])
        == Fraction(13, 32)
        > 2 * error(lip_exact.published([HALF, HALF], e), [0, 1])
        == Fraction(3, 8)
    )
    for r in lip_exact.vertices(law, e):
        assert (r[2] - r[0]) ** 2 <= Fraction(9, 32) * (r[0] + r[2]) - Fraction(3, 32) * r[1]
    found = solve_lip(law, math.log(2))
    assert found.lower_bound == pytest.approx(13 / 32, rel=1e-9) == found.value


@pytest.mark.parametrize("eps", [0.3, 1.0, 2.0])
@pytest.mark.parametrize("users", [2, 5, 12])
def test_server_that_protects_the_database_is_no_better_than_the_users(users, eps):
    """LIP-19, fair bits: strictly worse while 2^-N < 1/(1+E)."""
    found = solve_lip(lip_exact.binomial(users, HALF), eps)
    local = users * forms.published(0.25, math.exp(eps))
    assert found.lower_bound > local * (1 + 1e-9) if 2.0**-users < 1 / (1 + math.exp(eps)) else found.value >= local


def test_server_that_protects_users_leaves_them_far_behind():
    """LIP-20, in whole numbers: 4^-100 times sums of binomials."""
    users = 100
    tail = sum(math.comb(users, s) * (s - 50) ** 2 for s in range(users + 1) if not 25 <= s <= 75)
    central = Fraction(tail, 2**users)
    assert central == lip_exact.tail_revealed_as_one(users, Fraction(1, 4), Fraction(3, 4))
    assert central * 100_000 < users * forms.published(Fraction(1, 4), Fraction(2)) == Fraction(75, 4)
    # Each user's posterior: s/N for a published sum, 1/2 for the tail, all within [1/4, 3/4] = [p/E, 1 - (1-p)/E].
    assert all(HALF / 2 <= Fraction(s, users) <= 1 - HALF / 2 for s in range(25, 76))


def test_a_server_that_protects_the_database_saves_much_on_rare_answers_and_nothing_on_common_ones():
    """LIP-20 by counting: none, one or more ones among 50 rare bits; posteriors by Bayes' rule from the kernel on groups."""
    users, p, ratio = 50, Fraction(1, 50), Fraction(9)
    law = [math.comb(users, s) * p**s * (1 - p) ** (users - s) for s in range(users + 1)]
    groups = [law[0], law[1], 1 - law[0] - law[1]]
    assert min(groups) * (1 + ratio) >= 1 > p * (1 + ratio)
    of = [min(s, 2) for s in range(users + 1)]
    kernel = [[groups[g] / ratio + (1 - 1 / ratio) * (g == of[s]) for g in range(3)] for s in range(users + 1)]
    assert posterior_odds(kernel, law) <= ratio
    central = error(joint_of(kernel, law), range(users + 1))
    local = users * (p * (1 - p) - p**2 * (ratio - 1) ** 2 / ratio)
    assert lip.rare_answers_on_a_server() == (users, p, ratio, local, central, posterior_odds(kernel, law))
    assert central < local * Fraction(2, 5) and 1 - central / local <= (1 - 1 / ratio) ** 2
    found = audited("LIP-20").finding
    assert "database" in found.condition and "Under neither" not in found.corrected
    for users in (2, 10):  # common answers: the certified least error of the server is above that of the users
        assert solve_lip(lip_exact.binomial(users, HALF), 1.0).lower_bound > users * forms.published(0.25, math.e)


def test_central_levels_by_enumeration():
    """LIP-17: the parity of two fair bits, from the four databases."""
    odd = [bits for bits in itertools.product((0, 1), repeat=2) if sum(bits) % 2]
    assert sum(bits[0] for bits in odd) / len(odd) == 0.5 and {sum(bits) for bits in odd} == {1}


# --- Section V


def test_half_the_budget_never_wins():
    """LIP-22's witness: three exact errors, and the kernel that breaks its promise."""
    p, s = Fraction(1, 10), Fraction(2)
    prior = [1 - p, p]
    claimed = error(joint_of(published_kernel(prior, s), prior), [0, 1])
    ldp = error(lip_exact.response(prior, s * s), [0, 1])
    yes = (1 - s * p) / ((1 + s) * (1 - p))
    optimum = [[1 - yes, yes], [1 / (1 + s), s / (1 + s)]]
    truth = error(joint_of(optimum, prior), [0, 1])
    assert (claimed, ldp, truth) == (Fraction(27, 400), Fraction(36, 481), Fraction(17, 200)) and claimed < ldp < truth
    assert posterior_odds(published_kernel(prior, s), prior) == Fraction(11, 2) > s
    assert lip_exact.ldp(joint_of(optimum, prior)) <= s * s


@pytest.mark.parametrize("task", ["sum", "histogram"])
@pytest.mark.parametrize("prior", [[0.1, 0.2, 0.7], [0.25] * 4, [0.02, 0.08, 0.3, 0.3, 0.3]])
def test_the_three_curves_are_in_order(prior, task):
    """LIP-21 on certified brackets."""
    for eps in (0.4, 1.0, 2.5):
        low, middle = solve_lip(prior, eps, task=task), solve_lip(prior, eps, task=task, notion="ldp")
        high = solve_lip(prior, eps / 2, task=task)
        assert low.lower_bound <= middle.value and middle.lower_bound <= high.value
        assert low.value <= middle.value * (1 + 1e-9) and middle.value <= high.value * (1 + 1e-9)


def test_four_values_leave_the_line():
    """LIP-24: E = 2, four equally likely values: 63/64 by primal and dual, above the published 15/16."""
    prior, e = [Fraction(1, 4)] * 4, Fraction(2)
    eighths = [(4, 2, 1, 1), (1, 1, 2, 4), (1, 4, 2, 1), (1, 2, 4, 1)]
    joint = lip_exact.from_posteriors(
        [THIRD, THIRD, THIRD / 2, THIRD / 2], [[Fraction(k, 8) for k in row] for row in eighths]
    )
    values = [Fraction(k, 2) for k in (-3, -1, 1, 3)]
    assert lip_exact.prior_of(joint) == prior and lip_exact.lip(joint) == e
    prices = [Fraction(49, 64), Fraction(-15, 64), Fraction(-15, 64), Fraction(49, 64)]
    explained = lip_exact.dual_bound(prior, e, lip_exact.square_of_mean(values), prices)
    assert error(joint, values) == Fraction(5, 4) - explained == Fraction(63, 64)
    assert forms.published(Fraction(5, 4), e) == Fraction(15, 16)


@given(growth, st.integers(2, 30))
def test_unary_encoding_by_its_estimator(ratio, d):
    """LIP-25: the exact error from each bit's two values; worse than ignoring all answers, and than randomised response."""
    keep, lie = HALF, 1 / (1 + ratio)
    one, zero = unbiased_variance(keep, lie, Fraction(1)), unbiased_variance(keep, lie, Fraction(0))
    exact = one + (d - 1) * zero
    assert exact == forms.unary_encoding(d, ratio) > 1
    response = (
        lip_exact.histogram_error(lip_exact.response([Fraction(1, d)] * d, ratio))
        if d <= 6
        else forms.response_histogram(d, ratio)
    )
    assert response == forms.response_histogram(d, ratio) < exact - 1


# --- the check can fail

USED_BY = {
    "published": "LIP-7", "published_level": "LIP-6", "rare": "LIP-7", "ldp": "LIP-10", "advantage": "LIP-11",
    "advantage_common": "LIP-12", "unbiased": "LIP-5", "unbiased_response": "LIP-23", "unary_encoding": "LIP-25",
    "response_sum": "LIP-14", "response_histogram": "LIP-25", "rare_histogram": "LIP-16", "ldp_level": "LIP-2",
    "ldp_level_rare": "LIP-2", "lip_level": "LIP-3", "information": "LIP-1",
    "even_sum_lip": "LIP-13", "even_sum_ldp": "LIP-14", "even_histogram_ldp": "LIP-26",
}  # fmt: skip


@pytest.mark.parametrize("name", USED_BY)
def test_a_perturbed_closed_form_is_noticed(monkeypatch, name):
    original = getattr(forms, name)
    monkeypatch.setattr(forms, name, lambda *arguments: original(*arguments) * (1 + Fraction(1, 10**6)))
    assert CLAIMS[USED_BY[name]].decide().verdict is Verdict.UNSETTLED


def test_a_perturbed_optimum_is_noticed(monkeypatch):
    original = optima.binary_value
    monkeypatch.setattr(optima, "binary_value", lambda *arguments: original(*arguments) * (1 + 1e-6))
    assert CLAIMS["LIP-7"].decide().verdict is Verdict.UNSETTLED


def test_every_closed_form_is_listed_and_perturbed():
    assert {f.name for f in forms.forms()} | {"unbiased"} == set(USED_BY)
    assert all(f.valid and f.source and f.expression.free_symbols for f in forms.forms())


@settings(max_examples=25)
@given(st.floats(0.05, 6), st.floats(0.01, 0.5))
def test_closed_forms_lie_in_the_certified_brackets(eps, p):
    ratio = math.exp(eps)
    common = p >= 1 / (1 + ratio)
    found = solve_lip([1 - p, p], eps, task="survey")
    value = forms.published(p * (1 - p), ratio) if common else forms.rare(p, ratio)
    assert found.lower_bound * (1 - 1e-9) <= value <= found.value * (1 + 1e-9)
    assert not found.lower_bound * (1 - 1e-9) <= value * (1 + 1e-6) <= found.value * (1 + 1e-9)
    ldp = solve_lip([1 - p, p], eps, task="survey", notion="ldp")
    assert ldp.lower_bound * (1 - 1e-9) <= forms.ldp(p, ratio) <= ldp.value * (1 + 1e-9)
    saved = 1 - found.value / ldp.value
    formula = forms.advantage_common(p, ratio) if common else forms.advantage(p, ratio)
    assert formula == pytest.approx(saved, abs=1e-8)


def test_dual_bounds_refuse_prices_that_are_too_low():
    law = [Fraction(1, 4), HALF, Fraction(1, 4)]
    gain = lip_exact.square_of_mean([Fraction(k) for k in (-1, 0, 1)])
    prices = [Fraction(9, 32), Fraction(-3, 32), Fraction(9, 32)]
    assert lip_exact.dual_bound(law, Fraction(2), gain, prices) == Fraction(3, 32)
    assert lip_exact.dual_bound(law, Fraction(2), gain, [n - Fraction(1, 10**9) for n in prices]) is None
    with pytest.raises(ValueError, match="rules a category out"):
        lip_exact.lip([[HALF, Fraction(0)], [Fraction(0), HALF]])

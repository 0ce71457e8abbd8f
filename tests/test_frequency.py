"""`solve_frequency` and the published frequency oracles: by enumeration of all messages, and against the plain program."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

import optdp
from optdp.certificates.base import Refusal
from optdp.certificates.frequency import FrequencyCertificate
from optdp.closed_forms.frequency import best_size, concentration
from optdp.mechanisms import baselines
from optdp.mechanisms.baselines.frequency import HadamardResponse
from optdp.mechanisms.frequency import COINS, AffineOracle, SubsetOracle, affine_tally

from .conftest import epsilons

EPS = (0.5, 1.0, 3.0)


def problem(eps, d):
    return optdp.Problem(optdp.LDP(eps), optdp.OneHot(d), "squared", constraints=[optdp.Unbiased()])


def oracles(eps, d):
    found = dict(baselines.applicable(problem(eps, d)))
    for size in {1, d // 2, d - 1}:
        found[f"sets of {size}"] = SubsetOracle.private(eps, optdp.OneHot(d), size)
        found[f"pair, {size}"] = AffineOracle.private(eps, optdp.OneHot(d), size)
    return found


def messages(oracle, d):
    """All messages there are."""
    kind = type(oracle).__name__
    if kind == "AffineOracle":
        q = oracle.universe
        return np.array(list(itertools.product(range(1, q), range(q))))
    if kind == "SubsetOracle":
        return np.array(list(itertools.combinations(range(d), oracle.size))) if oracle.size > 1 else np.arange(d)
    if kind == "UnaryEncoding":
        return np.array(list(itertools.product([0, 1], repeat=d)))
    if kind == "LocalHashing":
        q = oracle._prime
        return np.array(list(itertools.product(range(1, q), range(q), range(oracle.buckets))))
    return np.arange(oracle.blocks * oracle.size)


def test_an_eps_that_no_number_of_coins_has_is_refused():
    """A third is no multiple of 2^-124, and the nearest one is too far from it."""
    assert SubsetOracle.private(1e-36, optdp.OneHot(3), 1).satisfies(optdp.LDP(1e-36))
    assert SubsetOracle.private(1e-300, optdp.OneHot(4), 1).satisfies(optdp.LDP(1e-300))
    with pytest.raises(ValueError, match="eps = 1e-300 is not allowed"):
        SubsetOracle.private(1e-300, optdp.OneHot(3), 1)


@pytest.mark.parametrize("eps", EPS)
@pytest.mark.parametrize("d", [2, 3, 6, 9])
def test_oracles_by_enumeration(d, eps):
    """Probabilities sum to 1 and keep the ratio, the decoding is unbiased, and the error is the stated one."""
    bound = optdp.solve_frequency(eps, d).lower_bound
    for name, oracle in oracles(eps, d).items():
        every, x = messages(oracle, d), np.arange(d)
        table = np.stack([oracle.probability(every, np.full(len(every), i)) for i in x], axis=1)
        decoded = oracle.frequencies(oracle.supports(every, x))
        assert np.allclose(table.sum(axis=0), 1, atol=1e-12), name
        assert np.allclose(table.T @ decoded, np.eye(d), atol=1e-9), name
        error = table.T @ (decoded**2).sum(axis=1) - 1
        assert np.allclose(error, oracle.variance(x), rtol=1e-9), name
        assert float(oracle.exact_value) == pytest.approx(error.max(), rel=1e-9), name
        assert (table.max(axis=1) / table.min(axis=1)).max() == pytest.approx(float(oracle.exact_ratio), rel=1e-9), name
        assert oracle.satisfies(optdp.LDP(eps)) and oracle.check_unbiased().passed
        assert oracle.exact_value >= Fraction(bound), name
        low, high = oracle.support()
        assert low == pytest.approx(decoded.min()) and high == pytest.approx(decoded.max()), name


@pytest.mark.parametrize("d, blocks, size", [(4, 2, 4), (3, 1, 4), (9, 3, 4), (20, 5, 8)])
@pytest.mark.parametrize("share", [Fraction(1, 20), Fraction(1, 3), Fraction(9, 10)])
def test_categories_of_a_block_that_is_not_full_err_by_another_amount(d, blocks, size, share):
    """Hadamard response: averages and worst cases are those of the categories, also where the other half is preferred."""
    oracle = HadamardResponse(optdp.OneHot(d), blocks, size, int(share * 2**124))
    every, x = np.arange(blocks * size), np.arange(d)
    table = np.stack([oracle.probability(every, np.full(every.size, i)) for i in x])
    sent = oracle.frequencies(oracle.supports(every, x))
    errors = [float(table[i] @ ((sent - np.eye(d)[i]) ** 2).sum(axis=1)) for i in x]
    assert oracle.variance(x) == pytest.approx(errors, rel=1e-9)
    assert oracle.worst_case_loss() == pytest.approx(max(errors), rel=1e-9)
    assert oracle.average_loss() == pytest.approx(np.mean(errors), rel=1e-9)
    for objective, value in (
        (optdp.WorstCase("squared"), max(errors)),
        (optdp.Average("squared", "uniform"), np.mean(errors)),
    ):
        low, high = oracle.enclose(objective)
        assert low <= value * (1 + 1e-9) and value <= high * (1 + 1e-9)


@pytest.mark.parametrize("d", [2, 6])
def test_samples_have_the_stated_probabilities(d):
    count, tests = 20_000, []
    for oracle in oracles(1.0, d).values():
        every = messages(oracle, d)
        place = {tuple(np.atleast_1d(m).tolist()): k for k, m in enumerate(every)}
        for x in (0, d - 1):
            drawn, times = np.unique(
                oracle.randomize(np.full(count, x), 1).reshape(count, -1), axis=0, return_counts=True
            )
            seen = np.zeros(len(every))
            seen[[place[tuple(m)] for m in drawn.tolist()]] = times
            expected = count * oracle.probability(every, np.full(len(every), x))
            tests.append(chi2.sf(((seen - expected) ** 2 / expected).sum(), len(every) - 1))
    assert min(tests) > 0.001 / len(tests)


@pytest.mark.parametrize("d", [3, 9, 40])
def test_decoding_by_tallies_is_decoding_message_by_message(d):
    rng = np.random.default_rng(2)
    for name, oracle in oracles(1.0, d).items():
        sent = oracle.randomize(rng.integers(0, d, (30, 100)), rng)
        direct = oracle.frequencies(oracle.supports(oracle.check_messages(sent), np.arange(d)).mean(axis=0))
        assert np.allclose(oracle.decode(sent), direct, atol=1e-12), name
        some = [d - 1, 0, 1]
        assert np.allclose(oracle.decode(sent, some), direct[some], atol=1e-12), name
        halves = oracle.tally(sent[:10])[0] + oracle.tally(sent[10:])[0]
        assert np.allclose(halves, oracle.tally(sent)[0]), name
        if isinstance(oracle, AffineOracle):
            rows = oracle.check_messages(sent)
            by_slope = affine_tally(rows, np.arange(d), oracle.universe, oracle.size)
            assert np.array_equal(by_slope, oracle.supports(rows, np.arange(d)).sum(axis=0))
        with pytest.raises(ValueError, match="messages"):
            oracle.decode(sent.astype(int) + 10**6)
        assert optdp.Mechanism.from_dict(oracle.to_dict()) == oracle


@pytest.mark.parametrize("d", [2, 3, 4, 5])
@pytest.mark.parametrize("eps", [0.3, 1.0, 2.0])
def test_the_plain_program_over_all_sets_agrees(d, eps):
    plain, structured = optdp.solve_frequency(eps, d, backend="plain"), optdp.solve_frequency(eps, d)
    assert plain.program.objective == pytest.approx(structured.value, rel=1e-5)
    assert plain.value == structured.value and plain.program.model.is_dcp()


@settings(max_examples=200)
@given(epsilons(1e-3, 29.9), st.one_of(st.integers(2, 60), st.integers(2, 10**6)), st.sampled_from(["set", "pair"]))
def test_the_bracket_closes(eps, d, message):
    solution = optdp.solve_frequency(eps, d, message=message)
    assert solution.verify()
    assert solution.gap < (1e-12 if message == "set" else 1.5 * (solution.mechanism.universe / d - 1) + 1e-12)


@settings(max_examples=200)
@given(st.fractions(1, 10**6).filter(lambda r: r > 1), st.integers(2, 200))
def test_the_best_size_is_the_best_of_all(ratio, d):
    best = concentration(ratio, d, best_size(ratio, d))
    assert best == max(concentration(ratio, d, w) for w in range(1, d))


@settings(max_examples=300)
@given(st.integers(2, 8), st.floats(1.01, 50), st.integers(0, 2**32 - 1))
def test_no_message_is_more_concentrated_than_rho(d, ratio, seed):
    k = np.random.default_rng(seed).uniform(1, ratio, d)
    rho = concentration(Fraction(ratio), d, best_size(Fraction(ratio), d))
    assert (k**2).sum() / k.sum() ** 2 <= float(rho) * (1 + 1e-12)


@given(st.floats(0, 1e4), st.sampled_from(EPS), st.integers(2, 50))
def test_no_multiplier_proves_more_than_is_attained(multiplier, eps, d):
    value = optdp.solve_frequency(eps, d).value
    assert FrequencyCertificate(multiplier).bound(problem(eps, d)).value <= value


def test_the_certificate_refuses_other_problems():
    proof = optdp.solve_frequency(1.0, 5).certificate
    skewed = optdp.Average("squared", optdp.Prior((96, 1, 1, 1, 1), tuple(range(5))))
    for other in (
        optdp.Problem(optdp.LDP(1.0), optdp.OneHot(5), "squared"),
        optdp.Problem(optdp.LDP(1.0), optdp.OneHot(5), "abs", constraints=[optdp.Unbiased()]),
        optdp.Problem(optdp.LDP(1.0), (0, 1), "squared", constraints=[optdp.Unbiased()]),
        optdp.Problem(optdp.LDP(31), optdp.OneHot(5), "squared", constraints=[optdp.Unbiased()]),
        optdp.Problem(optdp.ApproxDP(1.0), optdp.OneHot(5), "squared", constraints=[optdp.Unbiased()]),
        optdp.Problem(optdp.LDP(1.0), optdp.OneHot(5), optdp.Average("abs", "uniform"), constraints=[optdp.Unbiased()]),
        optdp.Problem(optdp.LDP(1.0), optdp.OneHot(5), skewed, constraints=[optdp.Unbiased()]),
    ):
        with pytest.raises(Refusal):
            proof.bound(other)


@pytest.mark.parametrize("eps", [0.5, 1.0, 2.0, 4.0, 10.0])
@pytest.mark.parametrize("d", [2, 3, 10, 100, 1000, 10**6])
def test_closed_form_and_published_sizes(d, eps):
    solution = optdp.solve_frequency(eps, d, message="set")
    (symbol,) = solution.closed_form.free_symbols
    assert float(solution.closed_form.subs(symbol, eps).evalf(40)) == pytest.approx(solution.value, rel=1e-12)
    w = solution.mechanism.size
    assert w in (max(1, math.floor(d / (math.exp(eps) + 1))), math.ceil(d / (math.exp(eps) + 1)))


def test_names_statements_files(tmp_path):
    solution = optdp.solve_frequency("0.5", ["red", "green", "blue"])
    assert solution.problem.statement() == (
        "the least worst-case E|Y - x|^2 over all unbiased 1/2-LDP mechanisms from the one-hot vectors of 3 categories to R^3"
    )
    sent = solution.mechanism.randomize(["red", "blue", "red"], 1)
    assert sent.shape == (3,)
    assert solution.mechanism.decode(sent, ["blue"]).shape == (1,)
    solution.save(tmp_path / "s.json")
    again = optdp.Solution.load(tmp_path / "s.json")
    assert again.verify() and again.mechanism.domain.names == ("red", "green", "blue")
    with pytest.raises(ValueError, match="entry 0"):
        solution.mechanism.randomize(["x"])
    with pytest.raises(ValueError, match=r"d may be at most 10"):
        optdp.solve_frequency(1.0, 20, backend="plain")
    with pytest.raises(ValueError, match="message"):
        optdp.solve_frequency(1.0, 20, message="bits")
    with pytest.raises(TypeError):
        optdp.OneHot(3).check([0.5])
    with pytest.raises(ValueError, match="entry 1"):
        optdp.OneHot(3).check([0, 3])


def test_nobody_sends_nothing():
    for categories in (4, 1009, ["a", "b"]):
        assert len(optdp.solve_frequency(1.0, categories).mechanism.randomize([])) == 0


def test_the_row_optimum_is_least_or_what_is_less_is_told():
    """It was that of short messages, above subset selection by a share of up to rtol."""
    problem = optdp.solve_frequency(1.0, 1024).problem
    report = optdp.compare(problem)
    assert report.rows[0]["mechanism"] == "optimum" and "Less than" not in str(report)
    given = optdp.solve_frequency(1.0, 1024)
    told = str(optdp.compare(given)).rpartition('Less than the row "optimum", whose gap is at most ')[2].partition(": ")
    assert given.gap <= float(told[0]) < 1.1 * given.gap and told[2].startswith("SS.")


def test_the_command_line_solves_it(capsys):
    from optdp.cli import main

    assert main(["solve", "frequency", "--eps", "1", "--categories", "1000", "--message", "pair"]) == 0
    assert "AffineOracle for 1000" in capsys.readouterr().out
    assert main(["solve", "frequency", "--eps", "2", "--categories", "red,green,blue", "--plain"]) == 0
    assert "Clarabel" in capsys.readouterr().out


def test_an_integer_too_long_to_print_is_refused_by_name():
    with pytest.raises(ValueError, match=r"categories is not allowed: categories must be an integer >= 2 and <= 10+$"):
        optdp.solve_frequency(1.0, 10**5000)


ALONE = [
    SubsetOracle(optdp.OneHot(2), 1, COINS // 2),
    AffineOracle(optdp.OneHot(2), 1, COINS // 2),
    HadamardResponse(optdp.OneHot(3), 1, 4, COINS // 2),
]


@pytest.mark.parametrize("oracle", ALONE, ids=str)
@pytest.mark.parametrize("asked", ["enclose", "support", "decode", "estimate"])
def test_messages_that_tell_nothing_are_refused(oracle, asked):
    """It would be divided by 0: outputs were said to lie in (-inf, inf), estimates ended in an IndexError."""
    sent = oracle.randomize(np.zeros(9, dtype=int), 1)
    told = {
        "enclose": lambda: oracle.enclose(optdp.WorstCase("squared")), "support": oracle.support,
        "decode": lambda: oracle.decode(sent), "estimate": lambda: optdp.estimate(oracle, sent, what="frequencies"),
    }  # fmt: skip
    with pytest.raises(ValueError, match="coins are not allowed here: messages that do not depend on the category"):
        told[asked]()


@pytest.mark.parametrize(
    "oracle",
    [SubsetOracle(optdp.OneHot(3), 1, COINS // 8), HadamardResponse(optdp.OneHot(3), 1, 4, COINS // 8)],
    ids=str,
)
def test_messages_may_tell_by_leaving_the_own_category_out(oracle):
    """Intervals were [0.97, 0.99] and [0.001, 0.99] where everybody is of the first category, ends of supports swapped."""
    sent = oracle.randomize(np.zeros(4000, dtype=int), 1)
    low, high = oracle.support()
    assert oracle.check_unbiased() and low < 0 < 1 < high
    found = optdp.estimate(oracle, sent, what="frequencies")
    assert (
        np.all(found.interval[0] <= [1, 0, 0])
        and np.all(found.interval[1] >= [1, 0, 0])
        and np.all(found.standard_error > 0)
    )
    assert found.interval[1][1:].max() < 0.2


def test_what_tells_a_category_from_others_is_told_however_little_it_is():
    """ "0.5 if x = c and 0.5 if not" was the proof; standard errors were divided by a difference of floats that is 0."""
    oracle = SubsetOracle.private(1e-18, optdp.OneHot(2), 1)
    assert "a difference of 5e-19" in str(oracle.check_unbiased())
    assert np.isfinite(optdp.estimate(oracle, np.array([0, 1, 1]), what="frequencies").standard_error).all()


@pytest.mark.parametrize("d", [3, 5])
def test_probabilities_next_to_0_keep_their_digits(d):
    """The rest of a probability next to 1 was 1 less its float: off by 2e-4 at eps = 30, and 0 from eps = 37 on."""
    made = [baselines.frequency.rappor(60.0, optdp.OneHot(d)), baselines.frequency.local_hashing(60.0, optdp.OneHot(d))]
    for oracle in [*oracles(30.0, d).values(), *made]:
        table = np.stack([oracle.probability(messages(oracle, d), i) for i in range(d)])
        assert (table.max(axis=0) / table.min(axis=0)).max() == pytest.approx(float(oracle.exact_ratio), rel=1e-9)


def test_hadamard_response_takes_an_eps_whose_power_is_no_float():
    assert baselines.frequency.hadamard(800.0, optdp.OneHot(17)).satisfies(optdp.LDP(800.0))

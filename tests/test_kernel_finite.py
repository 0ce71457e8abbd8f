"""`solve_kernel` on finite alphabets, against brute force and the linear program over all sets of inputs."""

import itertools
import json
import math
import pickle
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.stats import chisquare

import optdp
from optdp.certificates.base import Refusal
from optdp.certificates.finite import FiniteCertificate
from optdp.exact import enclosures
from optdp.exact.rounding import TOTAL, Table
from optdp.mechanisms.finite import FiniteMechanism, integer_floors
from optdp.problem.priors import places


def extremal_program(eps, loss, prior=None):
    """All 2^d sets S, K(S|x) = w_S (E if x in S else 1); each set answers with the best output (Kairouz, Oh,
    Viswanath 2016).

    With a prior the best answer of a set is known; for the worst case every pair (set, answer) is a column.
    """
    d, m = loss.shape
    e = math.exp(eps)
    sets = np.array(list(itertools.product([0, 1], repeat=d)), dtype=float)
    height = 1 + (e - 1) * sets
    if prior is not None:
        cost = (height @ (prior[:, None] * loss)).min(axis=1)
        return linprog(cost, A_eq=height.T, b_eq=np.ones(d)).fun
    columns = np.repeat(height, m, axis=0)
    losses = columns * np.tile(loss.T, (len(sets), 1))
    return linprog(
        np.append(np.zeros(len(columns)), 1.0),
        A_ub=np.hstack([losses.T, -np.ones((d, 1))]),
        b_ub=np.zeros(d),
        A_eq=np.hstack([columns.T, np.zeros((d, 1))]),
        b_eq=np.ones(d),
        bounds=[(0, None)] * len(columns) + [(None, None)],
    ).fun


@settings(max_examples=25)
@given(st.integers(2, 8), st.integers(1, 6), st.floats(0.05, 5), st.integers(0, 2**32 - 1), st.booleans())
def test_bracket_contains_the_optimum_over_all_sets(d, m, eps, seed, average):
    rng = np.random.default_rng(seed)
    loss = rng.random((d, m))
    prior = rng.dirichlet(np.ones(d)) if average else None
    solution = optdp.solve_kernel(eps, loss, domain=optdp.Alphabet(d), prior=prior)
    reference = extremal_program(eps, loss, prior)
    assert solution.verify(), str(solution.verify())
    assert solution.lower_bound <= reference * (1 + 1e-8) + 1e-12
    assert solution.value >= reference * (1 - 1e-8) - 1e-12
    assert solution.value - solution.lower_bound <= 1e-6 * solution.value + 1e-9


@pytest.mark.parametrize("backend", ["auto", "dense"])
@pytest.mark.parametrize("average", [False, True])
def test_backends_agree(backend, average):
    rng = np.random.default_rng(7)
    loss = rng.random((6, 5))
    prior = np.full(6, 1 / 6) if average else None
    solution = optdp.solve_kernel(1.3, loss, domain=optdp.Alphabet(6), prior=prior, backend=backend)
    assert solution.value == pytest.approx(extremal_program(1.3, loss, prior), rel=1e-6)
    assert solution.verify()


@settings(max_examples=25)
@given(st.integers(2, 7), st.integers(1, 7), st.floats(1e-6, 8), st.integers(0, 2**32 - 1), st.booleans())
def test_the_floor_alone_and_the_plain_program_agree(d, m, eps, seed, average):
    rng = np.random.default_rng(seed)
    loss = rng.exponential(size=(d, m)) ** 2
    prior = rng.dirichlet(np.ones(d)) if average else None
    ways = [optdp.solve_kernel(eps, loss, domain=optdp.Alphabet(d), prior=prior, backend=b) for b in ("auto", "dense")]
    assert ways[0].value == pytest.approx(ways[1].value, rel=1e-7)
    assert ways[0].lower_bound == pytest.approx(ways[1].lower_bound, rel=1e-7)


@pytest.mark.parametrize("eps", [1e-15, 1e-6, 0.1, 1, 6, 12, 20, 30])
@pytest.mark.parametrize("average", [False, True])
def test_grids_are_certified_at_every_eps(eps, average):
    x = np.linspace(0, 1, 40)
    for loss in (abs(x[:, None] - x), (x[:, None] - x[::2]) ** 2):
        prior = "uniform" if average else None
        solution = optdp.solve_kernel(eps, loss, domain=optdp.Alphabet(40), prior=prior)
        assert solution.verify() and solution.gap < 1e-3


@settings(max_examples=40)
@given(st.integers(2, 9), st.integers(1, 9), st.floats(0, 30), st.integers(0, 2**32 - 1))
def test_any_floor_gives_a_private_mechanism_with_the_best_rows(d, m, eps, seed):
    """Whatever the floor: ratios and masses are exact, and outputs are full in the order of their losses, up to one."""
    rng = np.random.default_rng(seed)
    loss, floors = rng.random((d, m)), rng.random(m) * (rng.random(m) < 0.7) * 10.0 ** rng.integers(-9, 2)
    floors[0] += 1e-9
    ratio = enclosures.exp_below(eps)
    mechanism = FiniteMechanism.of_floors(optdp.Alphabet(d), range(m), floors, loss, ratio)
    assert mechanism.table.check_mass().passed and mechanism.table.exact_ratio() <= ratio
    low = integer_floors(floors, ratio)
    for row, cost in zip(mechanism.table.weights.tolist(), loss, strict=True):
        order = np.argsort(cost, kind="stable").tolist()
        state = [row[j] - low[j] for j in order]
        room = [int(ratio * low[j]) - low[j] for j in order]
        partial = [k for k, (extra, most) in enumerate(zip(state, room, strict=True)) if extra < most]
        first = partial[0] if partial else m
        assert state[:first] == room[:first] and not any(state[first + 1 :])


@pytest.mark.parametrize("d", [2, 3, 5, 10])
@pytest.mark.parametrize("eps", [0.3, 1.0, 3.0])
def test_randomised_response_is_optimal_for_zero_one_loss(d, eps):
    """Under a uniform prior the probability of a right answer is at most E/(d - 1 + E)."""
    e = math.exp(eps)
    solution = optdp.solve_kernel(eps, 1 - np.eye(d), domain=optdp.Alphabet(d), prior=np.full(d, 1 / d))
    assert solution.value == pytest.approx((d - 1) / (d - 1 + e), rel=1e-6)
    worst = optdp.solve_kernel(eps, 1 - np.eye(d), domain=optdp.Alphabet(d))
    assert worst.value == pytest.approx((d - 1) / (d - 1 + e), rel=1e-6)


def test_symbols_of_any_kind_are_sampled_and_saved(tmp_path):
    colours = optdp.Alphabet(["red", "green", "blue"])
    solution = optdp.solve_kernel(1, 1 - np.eye(3), domain=colours)
    mechanism = solution.mechanism
    drawn = mechanism.randomize(["red"] * 60_000, 3)
    names, counts = np.unique(drawn, return_counts=True)
    expected = mechanism.probability(names, "red")
    assert chisquare(counts, expected * counts.sum() / expected.sum()).pvalue > 1e-4
    assert mechanism.randomize([["red", "blue"]], 1).shape == (1, 2)
    solution.save(tmp_path / "s")
    loaded = optdp.Solution.load(tmp_path / "s")
    assert loaded.verify()
    assert loaded.mechanism == mechanism
    assert json.dumps(loaded.to_dict()) == json.dumps(solution.to_dict())
    with pytest.raises(ValueError, match=r"x \(entry 1\) is not allowed.*red, green, blue") as refused:
        mechanism.randomize(["red", "pink"])
    assert "pink" not in str(refused.value)  # it may be private


def test_a_forged_solution_is_found_out():
    solution = optdp.solve_kernel(1, 1 - np.eye(4), domain=optdp.Alphabet(4))
    assert solution.certificate.bound(solution.problem).value == solution.lower_bound
    assert not replace(solution, lower_bound=solution.lower_bound * (1 + 1e-9)).verify()
    assert not replace(solution, value=solution.value * (1 - 1e-9)).verify()
    assert not replace(solution, problem=replace(solution.problem, privacy=optdp.LDP(0.99))).verify()
    assert not replace(solution, problem=replace(solution.problem, privacy=optdp.LDP(1.01))).verify()
    sound = solution.certificate
    for weights, masses in (
        (tuple(-w for w in sound.weights), sound.masses),
        ((-1.0, 2.0, 2.0, 2.0), sound.masses),
        (sound.weights[1:], sound.masses),
        ((0.0,) * 4, sound.masses),
        ((math.nan, *sound.weights[1:]), sound.masses),
        (sound.weights, sound.masses[1:]),
        (sound.weights, (math.inf, *sound.masses[1:])),
        ((), sound.masses),
    ):
        with pytest.raises(ValueError):
            FiniteCertificate(weights, masses).bound(solution.problem)
    data = solution.to_dict()
    with pytest.raises(ValueError, match=r"certificate\.weights\[0\] = -1 is not allowed"):
        optdp.Solution.from_dict(data | {"certificate": sound.to_dict() | {"weights": [-1, 1, 1, 1]}})
    with pytest.raises(ValueError, match="certificate has an unknown field 'bound'"):
        optdp.Solution.from_dict(data | {"certificate": sound.to_dict() | {"bound": 0.5}})


@settings(max_examples=40)
@given(
    st.integers(2, 5), st.integers(1, 5), st.sampled_from([Fraction(11, 10), Fraction(3), Fraction(50)]),
    st.sampled_from(["worst", "uniform", "points"]), st.integers(0, 2**32 - 1),
)  # fmt: skip
def test_the_bound_is_the_dual_in_rationals(d, m, ratio, kind, seed):
    """From the definition, for multipliers of any size and sign."""
    rng = np.random.default_rng(seed)
    loss = rng.random((d, m)) * 2.0 ** rng.integers(-9, 9)
    names, order = [f"s{i}" for i in range(d)], rng.permutation(d)
    counts = rng.integers(1, 9, d).tolist()
    lam = [Fraction(n, sum(counts)) for n in counts]
    prior = dict(zip([names[i] for i in order], [lam[i] for i in order], strict=True))
    weights = ()
    if kind == "worst":
        weights = (rng.random(d) * 2.0 ** rng.integers(-9, 9)).tolist()
        lam = [Fraction(w) for w in weights]
    elif kind == "uniform":
        lam = [Fraction(1, d)] * d
    masses = (loss.mean(axis=1) * np.array(lam, dtype=float) * rng.uniform(0.3, 1) + 1e-3 * rng.normal(size=d)).tolist()
    objective = (
        optdp.WorstCase(loss) if kind == "worst" else optdp.Average(loss, "uniform" if kind == "uniform" else prior)
    )
    problem = optdp.Problem(optdp.LDP(optdp.log(ratio)), optdp.Alphabet(names), objective)
    r = [[w * Fraction(v) - Fraction(n) for v in row] for w, row, n in zip(lam, loss.tolist(), masses, strict=True)]
    g = [sum(v + (ratio - 1) * min(v, 0) for v in column) for column in zip(*r, strict=True)]
    dual = (sum(map(Fraction, masses)) + min(0, *g)) / sum(lam)
    proven = FiniteCertificate(tuple(weights), tuple(masses)).bound(problem).value
    assert proven <= max(dual, 0) and proven == pytest.approx(max(float(dual), 0.0), rel=1e-12, abs=1e-15)


def test_e_to_the_eps_is_rounded_so_that_the_bound_stays_below(monkeypatch):
    solution = optdp.solve_kernel(1, 1 - np.eye(4), domain=optdp.Alphabet(4))
    greedy = replace(solution.certificate, masses=tuple(1.05 * v for v in solution.certificate.masses))
    exact = greedy.bound(solution.problem).value
    assert 0 < exact < solution.lower_bound
    above = enclosures.exp_above
    monkeypatch.setattr(enclosures, "exp_above", lambda eps, bits=128: above(eps, bits) * Fraction(1001, 1000))
    assert greedy.bound(solution.problem).value < exact
    monkeypatch.setattr(enclosures, "exp_above", above)
    monkeypatch.setattr(enclosures, "exp_below", lambda eps, bits=128: Fraction(1))
    assert greedy.bound(solution.problem).value == exact


def test_a_changed_problem_is_proven_anew_or_refused():
    rng = np.random.default_rng(5)
    losses = [1 - np.eye(3), rng.random((3, 3)), 2 * rng.random((3, 4)), rng.random((4, 3))]
    problems = [
        optdp.Problem(optdp.LDP(eps), optdp.Alphabet(len(loss)), objective(loss, d))
        for loss in losses
        for eps in (0.5, 2.0)
        for d in [np.arange(1, len(loss) + 1) / sum(range(len(loss) + 1))]
        for objective in (
            lambda loss, d: optdp.WorstCase(loss),
            lambda loss, d: optdp.Average(loss),
            lambda loss, d: optdp.Average(loss, optdp.Prior.of(d)),
            lambda loss, d: optdp.Average(loss, optdp.Prior.of([0.5, 0.5, *[0.0] * (len(d) - 2)])),
        )
    ]
    solutions = [optdp.solve(problem) for problem in problems]
    proven = refused = 0
    for source, target in itertools.product(solutions, solutions):
        assert source.verify() and source.gap < 1e-5
        try:
            bound = source.certificate.bound(target.problem).value
        except Refusal:
            refused += 1
            continue
        proven += 1
        assert bound <= target.value
        assert source is not target or bound >= target.lower_bound
    assert proven > 300 and refused > 300
    interval = optdp.Problem(optdp.LDP(1), (0, 1), "abs")
    with pytest.raises(Refusal, match="matrix"):
        solutions[0].certificate.bound(interval)
    assert not replace(solutions[0], problem=interval).verify()


@pytest.mark.parametrize("prior", [None, [0.2, 0.3, 0.5]])
def test_the_model_is_a_linear_program_with_names_that_a_file_keeps(tmp_path, prior):
    loss = np.array([[0.0, 1.0, 0.3], [2.0, 0.0, 0.1], [1.0, 5.0, 0.7]])
    solution = pickle.loads(
        pickle.dumps(optdp.solve_kernel(1, loss, domain=optdp.Alphabet(["a", "b", "c"]), prior=prior))
    )
    model = solution.program.model
    assert list(model.blocks) == ["mass", *(["loss"] if prior is None else []), "most", "least"]
    found = model.solve()
    assert found.objective == pytest.approx(solution.value, rel=1e-6)
    assert found.value("kernel").reshape(3, 3).sum(axis=1) == pytest.approx(1)
    assert found.dual("mass").sum() == pytest.approx(solution.value, rel=1e-6)
    for name in ("model.mps", "model.lp"):
        solution.program.write(tmp_path / name)
        assert optdp.solvers.read(tmp_path / name).solve().objective == pytest.approx(solution.value, rel=1e-6)


def test_a_solver_of_ones_own_solves_it():
    class Scipy(optdp.solvers.LinearSolver):
        """scipy's own interface, as somebody else's solver."""

        name = "scipy"

        def solve(self, program, *, time_limit=math.inf):
            equal = program.row_lower == program.row_upper
            found = linprog(program.cost, program.rows[~equal], program.row_upper[~equal], program.rows[equal],
                            program.row_upper[equal], np.column_stack([program.lower, program.upper]))  # fmt: skip
            duals = np.zeros(equal.size)
            duals[equal], duals[~equal] = found.eqlin.marginals, found.ineqlin.marginals
            return optdp.solvers.LinearResult(
                optdp.solvers.LinearStatus.OPTIMAL, found.fun, found.x, duals, program=program
            )

    loss = 1 - np.eye(4)
    problem = optdp.solve_kernel(1, loss, domain=optdp.Alphabet(4)).problem
    found = optdp.solve(problem, solver=Scipy())
    assert found.verify() and found.gap < 1e-6 and found.program.solver == "scipy"
    with pytest.raises(ValueError, match="method = 'columns' is not allowed"):
        optdp.solve(problem, method="columns", solver=Scipy())


@pytest.mark.parametrize("prior", [None, "uniform"])
@pytest.mark.parametrize("backend", ["auto", "dense"])
def test_when_time_is_up_there_still_is_a_valid_bracket(backend, prior):
    loss = np.random.default_rng(0).random((30, 30))
    solution = optdp.solve_kernel(
        1, loss, domain=optdp.Alphabet(30), prior=prior, time_limit=1e-9, rtol=1e-9, backend=backend
    )
    assert solution.verify() and solution.status is optdp.Status.TIME_LIMIT
    assert solution.value <= loss.max() and solution.lower_bound >= 0


@pytest.mark.parametrize(
    ("loss", "options", "error", "words"),
    [
        (None, {}, TypeError, "matrix"),
        ("abs", {}, TypeError, "matrix"),
        (np.ones((2, 3)), {}, ValueError, "2 rows"),
        (-np.ones((3, 3)), {}, ValueError, ">= 0"),
        (np.full((3, 3), np.nan), {}, ValueError, "finite"),
        (np.eye(3), {"prior": [0.5, 0.5]}, ValueError, "prior"),
        (np.eye(3), {"prior": [0.5, 0.6, -0.1]}, ValueError, "prior"),
        (np.eye(3), {"prior": "flat"}, ValueError, "prior"),
        (np.eye(3), {"prior": 0.5}, TypeError, "prior"),
        (np.eye(3), {"prior": {"red": 0.5, "blue": 0.5}}, ValueError, "prior"),
        (np.eye(3), {"unbiased": True}, ValueError, "unbiased"),
        (np.eye(3), {"outputs": (0, 1)}, ValueError, "outputs"),
    ],
)
def test_bad_input_is_named(loss, options, error, words):
    with pytest.raises(error, match=words):
        optdp.solve_kernel(1, loss, domain=optdp.Alphabet(3), **options)


def test_a_table_of_weights_is_a_distribution_in_every_row():
    half, whole = TOTAL // 2, [TOTAL, 0]
    for rows in (
        [[half, half - 1]],
        [whole, [half, half + 1]],
        [[TOTAL + 1, -1]],
        [[-half, TOTAL + half]],
        [[TOTAL]] * 0,
    ):
        with pytest.raises((TypeError, ValueError), match="weights are not allowed"):
            Table(np.array(rows, dtype=np.int64))
    for weights in (np.array([[half, half]]) * 1.0, np.array([half, half])):
        with pytest.raises(TypeError, match="weights are not allowed"):
            Table(weights)
    even, odd = (np.array([[half, half, 0], row]) for row in ([half, half, 0], [half - 1, half + 1, 0]))
    assert Table(even) == Table(even.copy()) != Table(odd) and Table(even).exact_ratio() == 1
    assert Table(odd).exact_ratio() == Fraction(half, half - 1)
    assert Table(np.array([[half, half, 0], [half, 0, half]])).exact_ratio() is None
    assert Table(np.array([[TOTAL - 1, 1], whole])).exact_ratio() is None
    later = Table(odd)
    assert later.check_mass().passed
    odd[1, 0] += 1  # what it holds can be written to
    assert not later.check_mass().passed


def test_names_have_no_mean():
    mechanism = optdp.solve_kernel(1.0, np.ones((2, 2)) - np.eye(2), domain=optdp.Alphabet(["a", "b"])).mechanism
    for ask in (mechanism.mean, mechanism.variance):
        with pytest.raises(TypeError, match="names"):
            ask("a")


@pytest.mark.parametrize("symbols", [1, [1], ["a", "a"], 2.5, [[1], [2]]])
def test_bad_alphabets(symbols):
    with pytest.raises((TypeError, ValueError), match="symbols"):
        optdp.Alphabet(symbols)


def test_symbols_that_floats_do_not_tell_apart_are_different():
    near = 2**53 + 1
    problem = optdp.Problem(
        optdp.LDP(1.0),
        optdp.Alphabet([2**53, near, 0.5]),
        optdp.Average(1 - np.eye(3), {2**53: 0.9, near: 0.05, 0.5: 0.05}),
    )
    assert problem.domain.index([2**53, near, 0.5]).tolist() == [0, 1, 2]
    solution = optdp.solve(problem)  # the output 2^53 alone is wrong with probability 1/10
    assert solution.value <= 0.1000001 and solution.verify().passed
    proven = FiniteCertificate((), (0.014, 0.0, 0.012)).bound(problem)  # about 0.26 where two symbols were one
    assert proven.value <= 0.1


def test_a_number_is_not_the_string_that_writes_it():
    with pytest.raises(ValueError, match="entry 0"):
        optdp.Alphabet(["0", "1"]).index([0, "1"])
    with pytest.raises(ValueError, match="prior points"):
        optdp.Problem(optdp.LDP(1.0), optdp.Alphabet(["0", "1"]), optdp.Average(1 - np.eye(2), {0: 0.9, "0": 0.1}))


@pytest.mark.parametrize("two", [("a", "a\0"), (2**53, 2**53 + 1), (0, "0")])
def test_symbols_that_numpy_takes_for_one_are_two(two):
    near, far = two
    problem = optdp.Problem(
        optdp.LDP(1.0), optdp.Alphabet([near, far, 0.5]), optdp.WorstCase(1 - np.eye(3)), optdp.AllMechanisms()
    )
    assert problem.domain.index([near, far]).tolist() == [0, 1] and problem.domain.index(far) == 1
    asked = [np.int64(s) if isinstance(s, int) else s for s in (near, far)]
    assert problem.domain.index([*asked, np.float32(0.5)]).tolist() == [0, 1, 2]
    mechanism = optdp.solve(problem).mechanism
    assert mechanism.probability([near, far, 0.5], far).argmax() == 1
    sent = [near] * 30 + [far] * 60 + [0.5] * 30
    for outputs in (sent, optdp.Tally(mechanism).add(sent), optdp.Tally.each(mechanism, [sent])[0]):
        assert optdp.estimate(mechanism, outputs, "frequencies").value == pytest.approx([0.081, 0.838, 0.081], abs=0.2)
        assert optdp.estimate(mechanism, outputs, "frequencies").value.argmax() == 1


def test_a_prior_tells_strings_with_a_null_character_apart():
    problem = optdp.Problem(optdp.LDP(1.0), optdp.Alphabet(["a", "a\0"]), optdp.Average(1 - np.eye(2)))
    assert optdp.solve(problem).value == pytest.approx(1 / (1 + math.e))
    named = optdp.Average(1 - np.eye(2), optdp.Prior.of([0.5, 0.5], ["a", "a\0"]))
    assert optdp.solve(replace(problem, objective=named)).value == pytest.approx(1 / (1 + math.e))


def test_places_compare_integers_and_floats_exactly():
    assert places((2**53 + 1, 7), np.array([2.0**53, 7.0])).tolist() == [-1, 1]
    assert places((2.0**53, 0.5), np.array([2**53 + 1, 2**53])).tolist() == [-1, 0]
    assert places((2**62, 2**62 + 1, 2**63), np.array([2**62 + 1, 2**62])).tolist() == [1, 0]


def test_losses_are_not_taken_between_symbols_that_are_no_floats():
    near, loss = optdp.Alphabet([2**53, 2**53 + 1]), optdp.PairLoss(lambda x, y: abs(y - x))
    with pytest.raises(ValueError, match="symbols must be floats"):  # 0 for all where both are 2^53
        optdp.Problem(optdp.LDP(1.0), near, optdp.WorstCase(loss))


@pytest.mark.parametrize("large", [1e16, 1e100])
def test_a_loss_that_is_too_large_for_the_solver_has_no_bound_but_a_mechanism(large):
    problem = optdp.Problem(optdp.LDP(1.0), optdp.Alphabet(2), optdp.WorstCase([[0, large], [1, 0]]))
    solution = optdp.solve(problem)
    assert solution.value <= 1.0 and solution.lower_bound <= solution.value and solution.verify().passed


def test_matrices_and_symbols_that_are_masked_are_refused():
    mask = [[False, False], [True, False]]
    with pytest.raises(ValueError, match=r"loss .* masked"):
        optdp.WorstCase(np.ma.masked_array(1 - np.eye(2), mask)).on(optdp.Alphabet(2))
    with pytest.raises(ValueError, match="masked"):
        optdp.Distances(np.ma.masked_array(1 - np.eye(2), mask))
    with pytest.raises(ValueError, match=r"symbols .* masked"):
        optdp.Alphabet(np.ma.masked_array([1, 2, 3], [False, True, False]))


def test_names_of_rows_are_not_guessed_at_and_dates_are_no_integers():
    """Read by position, rows named c, b, a were the losses of a, b, c; pandas' own numbering is no name."""
    pandas = pytest.importorskip("pandas")
    rows, abc = [[0, 1, 2], [1, 0, 1], [9, 1, 0]], optdp.Alphabet(["a", "b", "c"])
    with pytest.raises(ValueError, match="names"):
        optdp.WorstCase(pandas.DataFrame(rows, index=list("cba"), columns=list("abc"))).on(abc)
    with pytest.raises(ValueError, match="names"):
        optdp.Distances(pandas.DataFrame(1 - np.eye(3), index=[2, 1, 0]))
    assert optdp.WorstCase(pandas.DataFrame(rows)).on(abc) == optdp.WorstCase(rows).on(abc)
    for unit in ("ns", "D"):
        days = np.array(["2020-01-01", "2020-01-02"], dtype=f"datetime64[{unit}]")
        for symbols in (days, pandas.Series(days), days - days[0]):
            with pytest.raises(ValueError, match="strings or numbers"):
                optdp.Alphabet(symbols)


@pytest.mark.parametrize("prior", [None, [0.25, 0.75]])
@pytest.mark.parametrize("unit", [2.0**-300, 2.0**300])
def test_losses_in_any_unit_have_the_same_gap(prior, unit):
    losses = unit * np.array([[0.0, 1.0, 0.25], [1.0, 0.0, 0.5]])
    found = optdp.solve_kernel(1.0, losses, domain=optdp.Alphabet(2), prior=prior)
    assert found.gap < 1e-9 and found.verify() and optdp.Solution.from_dict(found.to_dict()).verify()

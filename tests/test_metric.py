"""Metric privacy between finitely many places, against the plain linear program."""

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
from scipy.sparse import csr_matrix, eye, hstack, kron, vstack

import optdp
from optdp.certificates.base import Refusal
from optdp.certificates.metric import MetricCertificate
from optdp.cli import main
from optdp.exact.rounding import TOTAL, Table
from optdp.mechanisms import baselines
from optdp.mechanisms.finite import FiniteMechanism
from optdp.mechanisms.metric import MetricMechanism
from optdp.problem.metrics import MOST, Apart, between, cities, graph_of, read_metric


def plain(eps, far, loss, prior):
    """The linear program over all pairs, written anew."""
    n, m = loss.shape
    a, b = np.nonzero(~np.eye(n, dtype=bool))
    count = np.arange(a.size)
    entries = np.r_[np.ones(a.size), -np.exp(eps * far[a, b])]
    one = csr_matrix((entries, (np.r_[count, count], np.r_[a, b])), shape=(a.size, n))
    unequal, equal = kron(eye(m), one), hstack([eye(n)] * m)
    cost = None if prior is None else (prior[:, None] * loss).T.ravel()
    if prior is None:
        losses = hstack([csr_matrix(np.diag(loss[:, y])) for y in range(m)])
        unequal = vstack([
            hstack([unequal, csr_matrix((unequal.shape[0], 1))]), hstack([losses, csr_matrix(-np.ones((n, 1)))]),
        ])  # fmt: skip
        equal, cost = hstack([equal, csr_matrix((n, 1))]), np.r_[np.zeros(n * m), 1]
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    zeros, ones = np.zeros(unequal.shape[0]), np.ones(n)
    return linprog(cost, A_ub=unequal, b_ub=zeros, A_eq=equal, b_eq=ones, method="highs", options=tight).fun


SMALL = [(n, eps, kind) for n in (9, 14) for eps in (0.5, 2.0, 6.0) for kind in ("uniform", "skewed", "worst")]


@pytest.mark.parametrize(("n", "eps", "kind"), [*SMALL, (25, 2.0, "skewed")])
def test_small_cases_agree_with_the_plain_program(n, eps, kind):
    rng = np.random.default_rng(n)
    places = optdp.Points(rng.random((n, 2)).tolist())
    prior = {"uniform": np.full(n, 1 / n), "skewed": rng.dirichlet(np.full(n, 0.5)), "worst": None}[kind]
    found = optdp.solve_kernel(eps, domain=optdp.Alphabet(n), metric=places, prior=prior)
    exact = plain(eps, places.array, places.array, prior)
    assert found.verify(), str(found.verify())
    assert found.value == pytest.approx(exact, rel=1e-7)
    assert found.lower_bound == pytest.approx(exact, rel=1e-7)


@settings(max_examples=20)
@given(st.integers(2, 6), st.integers(1, 5), st.floats(1e-3, 12), st.integers(0, 2**32 - 1), st.booleans())
def test_brackets_contain_the_optimum_for_any_losses(n, m, eps, seed, average):
    rng = np.random.default_rng(seed)
    loss, points = rng.random((n, m)), rng.random((n, 3))
    prior = rng.dirichlet(np.ones(n)) if average else None
    metric = optdp.Points(points.tolist())
    found = optdp.solve_kernel(eps, loss, domain=optdp.Alphabet(n), metric=metric, prior=prior)
    exact = plain(eps, metric.array, loss, prior)
    assert found.verify(), str(found.verify())
    assert found.lower_bound <= exact * (1 + 1e-7) + 1e-9
    assert found.value >= exact * (1 - 1e-7) - 1e-9
    assert found.gap < 1e-6


@pytest.mark.parametrize("method", ["auto", "dense"])
@pytest.mark.parametrize(("n", "eps"), [(3, 23.0), (5, 11.62), (5, 17.5), (4, 0.75)])
def test_far_places_and_losses_with_zeros_end_with_a_bracket(n, eps, method):
    """Where the interior point has too few digits, and the plain program perhaps none."""
    where = optdp.Points([(float(i), 0.0) for i in range(n)])
    for loss in (where.array, (where.array > 1) * 1.0, (np.arange(n * n).reshape(n, n) % 3 > 0) * 1.0):
        found = optdp.solve_kernel(eps, loss, domain=optdp.Alphabet(n), metric=where, backend=method)
        assert found.verify()
        assert method == "dense" or found.value - found.lower_bound < 1e-8, (found.lower_bound, found.value)


def test_an_optimum_of_0_is_attained():
    """Outputs that are never sent have no unit either."""
    metric = optdp.Points([(0.0, 0.0), (1.0, 0.0), (0.0, 2.0)])
    found = optdp.solve_kernel(1.0, [[1, 0], [0, 0], [1, 0]], domain=optdp.Alphabet(3), metric=metric)
    assert found.value == found.lower_bound == 0 and found.verify()


@pytest.mark.parametrize(("n", "eps"), [(3, 20.0), (4, 17.5), (4, 23.0), (5, 27.0)])
def test_the_plain_program_is_solved_for_places_far_apart(n, eps):
    """HiGHS ended unbounded, or infeasible, at factors of e^30 beside 1."""
    where = optdp.Points([(float(i), 0.0) for i in range(n)])
    for loss in (where.array, (where.array > 1) * 1.0, (np.arange(n * n).reshape(n, n) % 3 > 0) * 1.0):
        found = optdp.solve_kernel(eps, loss, domain=optdp.Alphabet(n), metric=where, backend="dense")
        assert found.verify() and found.value - found.lower_bound < 1e-6


def test_what_rows_lack_goes_to_the_output_that_costs_those_with_probabilities_least():
    """The third output costs the last two nothing, and nobody else has a probability: it went where all lose least."""
    losses, prior = [[2, 0, 2], [2, 0, 2], [2, 1, 0], [2, 0.5, 0]], [0, 0, 0.5, 0.5]
    far = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    found = optdp.solve_kernel(0.001, losses, domain=optdp.Alphabet(4), metric=far, prior=prior)
    assert found.value == found.lower_bound == 0 and found.verify()


@pytest.mark.parametrize("method", ["auto", "dense"])
def test_edges_longer_than_a_path_between_their_ends_prove_nothing(method):
    """What follows from the path was priced by the edge: the gap was 0.18, and 1 for the plain program."""
    metric = optdp.Graph([(0, 1), (1, 2), (2, 3), (0, 3)], [0.14, 1.42, 0.61, 0.16])
    losses = np.square(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
    prior = np.array([0, 0.5, 0.5, 0])
    found = optdp.solve_kernel(4.0, losses, domain=optdp.Alphabet(4), metric=metric, prior=prior, backend=method)
    exact = plain(4.0, metric.array, losses, prior)
    assert found.value == pytest.approx(exact, rel=1e-7) and found.lower_bound == pytest.approx(exact, rel=1e-7)


@pytest.mark.parametrize("method", ["auto", "dense"])
@pytest.mark.parametrize("unit", [2.0**-900, 2.0**900])
def test_units_of_the_losses_do_not_matter(unit, method):
    """The plain program, which helps where places are near, took small losses for 0 and large ones for infinite."""
    metric, losses = optdp.Distances([[0, 1], [1, 0]]), unit * np.array([[0, 3.0, 1], [2, 1, 1]])
    found = optdp.solve_kernel(4e-9, losses, domain=optdp.Alphabet(2), metric=metric, prior=[0.3, 0.7], backend=method)
    assert found.gap < 1e-6 and found.verify()


@pytest.mark.parametrize("near", [2e-9, 3e-8, 5e-7])
def test_places_that_are_next_to_each_other_cost_next_to_nothing(near):
    metric = optdp.Points([(0.0, 0.0), (near, 0.0), (0.6, 0.8), (0.1, 1.5)])
    found = optdp.solve_kernel(2.0, domain=optdp.Alphabet(4), metric=metric)
    assert found.gap < 3e-4 and found.verify()


def test_equal_distances_are_local_privacy():
    loss = np.random.default_rng(1).random((5, 4))
    far = 1 - np.eye(5)
    local = optdp.solve_kernel(optdp.log(3), loss, domain=optdp.Alphabet(5))
    metric = optdp.solve_kernel(optdp.log(3), loss, domain=optdp.Alphabet(5), metric=far)
    assert metric.value == pytest.approx(local.value, rel=1e-7)
    assert metric.mechanism.table.exact_ratio() <= 3
    assert local.mechanism.check_privacy(optdp.MetricLDP(optdp.log(3), far))[0].passed
    assert not local.mechanism.check_privacy(optdp.MetricLDP(optdp.log("2.99"), far))[0].passed


def test_inequalities_as_needed_and_a_grid():
    """Beyond the size where all inequalities are there from the start; on a grid the greatest distances are sums of others."""
    side = [(i, j) for i in range(7) for j in range(7)]
    found = optdp.solve_kernel(0.7, domain=optdp.Alphabet(49), metric=optdp.Points(side), prior="uniform", rtol=1e-3)
    assert found.verify() and found.status is optdp.Status.OPTIMAL
    assert "rounds" in found.program.message
    dense = optdp.solve_kernel(
        0.7, domain=optdp.Alphabet(16), metric=optdp.Points(side[:16]), prior="uniform", backend="dense"
    )
    quick = optdp.solve_kernel(0.7, domain=optdp.Alphabet(16), metric=optdp.Points(side[:16]), prior="uniform")
    assert dense.value == pytest.approx(quick.value, rel=1e-7)


def test_graphs_matrices_and_paths():
    """A path of unit edges, its matrix, and a matrix with a detour that is shorter."""
    path = optdp.Graph([(0, 1), (1, 2), (2, 3)])
    far = np.abs(np.subtract.outer(range(4), range(4))).astype(float)
    longer = far.copy()
    longer[0, 3] = longer[3, 0] = 10.0
    values = [
        optdp.solve_kernel(1.0, "squared", domain=optdp.Alphabet(4), metric=metric, prior="uniform", rtol=1e-9).value
        for metric in (path, far, optdp.Points([[0.0], [1.0], [2.0], [3.0]]))
    ]
    assert values == pytest.approx([values[0]] * 3, rel=1e-8)
    loss = far**2
    found = optdp.solve_kernel(1.0, loss, domain=optdp.Alphabet(4), metric=longer, prior="uniform", rtol=1e-9)
    assert found.verify() and found.value == pytest.approx(values[0], rel=1e-8)
    letters = optdp.Alphabet(["a", "b", "c", "d"])
    assert graph_of([("b", "a"), ("b", "c", 1.0), ("c", "d")], letters) == path


@settings(max_examples=50)
@given(st.integers(2, 6), st.integers(1, 5), st.floats(1e-6, 20), st.integers(0, 2**32 - 1))
def test_any_rows_become_exactly_private(n, m, eps, seed):
    rng = np.random.default_rng(seed)
    metric = optdp.Points(rng.random((n, 2)).tolist())
    privacy = optdp.MetricLDP(eps, metric)
    rows = rng.dirichlet(np.full(m, 0.3), size=n)
    made = MetricMechanism.of_rows(optdp.Alphabet(n), range(m), rows, privacy)
    assert all(check.passed for check in made.check_privacy(privacy))
    own = made.guarantee()
    assert made.satisfies(privacy) and privacy.implied_by(own)
    if own.eps > 0:
        assert not optdp.MetricLDP(own.eps * (1 - 1e-9), metric).check_rows(made.table.weights).passed


def test_the_exact_test_sees_one_unit():
    """Ratios at the limit and one unit of 2^-62 beyond it."""
    far = [[0.0, 1.0], [1.0, 0.0]]
    privacy = optdp.MetricLDP(optdp.log(3), far)
    third = 2**60
    assert privacy.check_rows(np.array([[3 * third, third], [third, 3 * third]])).passed
    assert not privacy.check_rows(np.array([[3 * third + 1, third - 1], [third, 3 * third]])).passed
    assert not privacy.check_rows(np.array([[4 * third, 0], [third, 3 * third]])).passed
    irrational = optdp.MetricLDP(1.0, far)
    top = int(Fraction(math.e) * third)
    assert irrational.check_rows(np.array([[top, 4 * third - top], [third, 3 * third]])).passed
    assert not irrational.check_rows(np.array([[top + 2**10, 4 * third - top - 2**10], [third, 3 * third]])).passed


@pytest.mark.parametrize(
    ("argument", "distance", "ratio"), [(16, 0.5, "4"), (256, 0.25, "4"), ("9/4", 1.5, "27/8"), ("3/2", 3, "27/8")]
)
def test_ratios_at_the_limit_are_allowed_where_it_is_a_root(argument, distance, ratio):
    """e^(log(16)/2) = 4 is a ratio of integers: it was said not to be kept."""
    privacy, most = optdp.MetricLDP(optdp.log(argument), [[0, distance], [distance, 0]]), Fraction(ratio)
    low = most.denominator * 2**55
    high = int(low * most)
    for more in (0, 1):
        rows = np.array([[high + more, TOTAL - high - more], [low, TOTAL - low]])
        assert privacy.check_rows(rows).passed == (more == 0)


def test_outputs_for_some_symbols_alone_are_told_from_those_for_none():
    """What is never sent says nothing of its sender; what one symbol alone sends rules the other out."""
    symbols, metric, quarter = optdp.Alphabet(2), optdp.Distances([[0, 2], [2, 0]]), TOTAL // 4
    for rows, told in (
        ([[quarter, 3 * quarter, 0], [3 * quarter, quarter, 0]], math.log(3) / 2),
        ([[quarter, 3 * quarter, 0], [2 * quarter, quarter, quarter]], None),
    ):
        found = MetricMechanism(symbols, (0, 1, 2), Table(np.array(rows)), metric).guarantee()
        assert found is None if told is None else found.eps == pytest.approx(told, rel=1e-12)


def test_a_metric_of_fewer_symbols_proves_nothing_of_the_others():
    """The third row has the first two's rarest output for sure: a check of the first two alone would not see it."""
    half = TOTAL // 2
    rows = Table(np.array([[half, half, 0], [half, half, 0], [0, 0, TOTAL]]))
    mechanism = FiniteMechanism(optdp.Alphabet(3), ("a", "b", "c"), rows)
    for size in (2, 3, 4):
        privacy = optdp.MetricLDP(5.0, np.ones((size, size)) - np.eye(size))
        check = mechanism.check_privacy(privacy)[0]
        assert not check.passed and ("between" in check.detail) == (size != 3)


def test_factors_enclose():
    names, places, shares = cities(12)
    i, j, below, above = optdp.MetricLDP(0.003, places).factors
    expected = np.exp(0.003 * places.array[i, j])
    assert (
        (below <= above).all() and (below * (1 + 1e-13) >= expected).all() and (above * (1 - 1e-13) <= expected).all()
    )
    assert len(names) == 12 and shares.sum() == pytest.approx(1)
    assert optdp.MetricLDP(1000.0, places).factors[2].max() == MOST
    assert between([(0, 0)], [(0, 180)], "haversine")[0, 0] == pytest.approx(math.pi * 6371.0088)


def test_baselines_are_private_and_never_better():
    names, places, shares = cities(20)
    found = optdp.solve_kernel(0.003, domain=names, metric=places, prior=shares)
    beside = baselines.applicable(found.problem)
    assert set(beside) == {"exponential", "planar Laplace"}
    for mechanism in beside.values():
        assert all(check.passed for check in mechanism.feasible(found.problem))
        assert mechanism.enclose(found.problem.objective)[0] > found.lower_bound


def test_saved_and_loaded(tmp_path):
    names, places, shares = cities(6)
    found = optdp.solve_kernel(0.001, "squared", domain=names, metric=places, prior=shares)
    found.save(tmp_path / "s.json")
    loaded = optdp.Solution.load(tmp_path / "s.json")
    assert loaded.verify() and loaded.mechanism == found.mechanism and loaded.problem == found.problem
    assert json.dumps(loaded.to_dict()) == json.dumps(found.to_dict())
    assert pickle.loads(pickle.dumps(found)).verify()
    drawn = loaded.mechanism.randomize(["Paris" if "Paris" in names.symbols else names.symbols[0]] * 5, 1)
    assert set(drawn.tolist()) <= set(names.symbols)


def test_a_forged_solution_is_found_out():
    found = optdp.solve_kernel(2.0, domain=optdp.Alphabet(5), metric=optdp.Points([[0], [1], [2], [4], [7]]))
    assert found.certificate.bound(found.problem).value == found.lower_bound
    assert not replace(found, lower_bound=found.lower_bound * (1 + 1e-9)).verify()
    assert not replace(found, value=found.value * (1 - 1e-9)).verify()
    for eps in (1.99, 2.01):
        assert not replace(
            found, problem=replace(found.problem, privacy=optdp.MetricLDP(eps, found.problem.privacy.metric))
        ).verify()
    sound = found.certificate
    for change in (
        {"weights": ()}, {"weights": sound.weights[1:]}, {"weights": (-1.0, *sound.weights[1:])}, {"flows": sound.flows[1:]},
        {"highs": (7, *sound.highs[1:])}, {"lows": (7, *sound.lows[1:])}, {"lows": (-1, *sound.lows[1:])},
        {"outputs": (9, *sound.outputs[1:])},
        {"flows": (math.nan, *sound.flows[1:])}, {"flows": (-1.0, *sound.flows[1:])}, {"highs": sound.lows},
    ):  # fmt: skip
        with pytest.raises(ValueError):
            replace(sound, **change).bound(found.problem)
    local = optdp.solve_kernel(1.0, 1 - np.eye(5), domain=optdp.Alphabet(5))
    with pytest.raises(Refusal):
        sound.bound(local.problem)
    assert MetricCertificate((0.2,) * 5).bound(found.problem).value == 0.0
    # Factors beyond all floats bind nothing.
    far = optdp.Problem(
        optdp.MetricLDP(1.0, optdp.Points([[0], [1000]])), optdp.Alphabet(2), optdp.WorstCase([[0, 1], [1, 0]])
    )
    with pytest.raises(Refusal, match="does not have"):
        MetricCertificate((0.5, 0.5), (0,), (0,), (1,), (1.0,)).bound(far)


@pytest.mark.parametrize(
    ("metric", "error", "words"),
    [
        ([[0, 1], [2, 0]], ValueError, "symmetric"),
        ([[0, 0], [0, 0]], ValueError, "same place"),
        ([[0, 1, 1], [1, 0, 1]], TypeError, "square"),
        ([[0, math.inf], [math.inf, 0]], ValueError, "finite"),
        (3.0, TypeError, "matrix of distances"),
        ("haversine", ValueError, "'abs'"),
        ("abs", ValueError, "interval or a circle"),
        (1 - np.eye(3), ValueError, "3 symbols"),
    ],
)
def test_wrong_metrics_are_named(metric, error, words):
    with pytest.raises(error, match=words):
        optdp.solve_kernel(1.0, np.eye(2), domain=optdp.Alphabet(2), metric=metric)


def test_wrong_points_and_graphs_are_named():
    for places, kind, words in (
        ([(0, 0), (0, 0)], "euclidean", "same place"), ([(91, 0), (0, 0)], "haversine", "latitude"),
        ([(0, 0), (1, 1)], "manhattan", "kind"), ([(0, 0)], "euclidean", "2 to"),
        ([(0, math.nan), (1, 1)], "euclidean", "finite"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=words):
            optdp.Points(places, kind)
    for edges, lengths in (
        ([(0, 0)], ()),
        ([(0, 1), (1, 0)], ()),
        ([(0, 1), (2, 3)], ()),
        ([(0, 1)], (0.0,)),
        ([(0, 1)], (1.0, 1.0)),
    ):
        with pytest.raises(ValueError, match=r"edges|length"):
            optdp.Graph(edges, lengths)
    for edges, lengths, words in (
        (None, (), "edges = None is not allowed: edges must be a list of pairs of numbers of symbols"),
        (3, (), "edges = 3 is not allowed: edges must be a list of pairs of numbers of symbols"),
        ([(0, 1)], 2.0, r"lengths = 2\.0 is not allowed: lengths must be a list of numbers"),
        ([3], (), "edges is not allowed: each edge must be a pair"),
    ):
        with pytest.raises(TypeError, match=f"^{words}"):
            optdp.Graph(edges, lengths)
    with pytest.raises(ValueError, match="eps is not allowed"):
        optdp.solve_kernel(100.0, domain=optdp.Alphabet(2), metric=[[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="eps"):
        optdp.solve_kernel(0, domain=optdp.Alphabet(2), metric=[[0, 1], [1, 0]])


def test_implications():
    metric = optdp.Points([(0, 0), (1, 0), (0, 2)])
    asked = optdp.MetricLDP(1.0, metric)
    assert asked.implied_by(optdp.MetricLDP(0.9, metric)) and asked.implied_by(optdp.MetricLDP(1.1, metric)) is False
    assert asked.implied_by(optdp.LDP(0.999)) and asked.implied_by(optdp.LDP(1.001)) is None
    assert asked.implied_by(optdp.MetricLDP(0.5, optdp.Graph([(0, 1), (0, 2)]))) is None
    assert optdp.MetricLDP.from_dict(asked.to_dict()) == asked and hash(asked) == hash(optdp.MetricLDP(1.0, metric))
    assert optdp.MetricLDP(1.0, "abs").metric == Apart()


def test_the_command_line(capsys, tmp_path):
    file = tmp_path / "p.csv"
    file.write_text("# three places\nname,x,y,people\na,0,0,1\nb,1,0,2\nc,0,3,1\n")
    assert read_metric(file)[1] == optdp.Points([(0, 0), (1, 0), (0, 3)])
    made = ["solve", "kernel", "--eps", "1", "--metric", str(file)]
    assert main([*made, "--prior", "people", "--out", str(tmp_path / "s.json"), "--plot", str(tmp_path / "m.png")]) == 0
    assert "d-private" in capsys.readouterr().out
    assert optdp.Solution.load(tmp_path / "s.json").verify()
    file.write_text("name,a,b\na,0,2\nb,2,0\n")
    assert main(["solve", "kernel", "--eps", "1/2", "--metric", str(file), "--loss", "squared"]) == 0
    file.write_text("name,a,c\na,0,2\nb,2,0\n")
    assert main(["solve", "kernel", "--eps", "1", "--metric", str(file)]) == 2
    assert main([*made, "--domain", "0", "1"]) == 2


@pytest.mark.parametrize("distance", [1, 2])
def test_what_the_rows_keep_is_not_denied(distance):
    """At a logarithm the ratio may be attained; the guarantee, rounded up, is above it, and denied what it is rounded from."""
    high = 3**distance
    unit = TOTAL // (high + 1)
    rest = TOTAL - (high + 1) * unit
    table = Table(np.array([[high * unit, unit, rest], [unit, high * unit, rest]]))
    symbols, metric, outputs = optdp.Alphabet(["a", "b"]), optdp.Distances([[0, distance], [distance, 0]]), (0, 1, 2)
    for mechanism in (MetricMechanism(symbols, outputs, table, metric), FiniteMechanism(symbols, outputs, table)):
        assert mechanism.satisfies(optdp.MetricLDP(optdp.log(3), metric)) is True
        assert mechanism.satisfies(optdp.MetricLDP(1.098, metric)) is not True


def test_the_guarantee_that_is_shown_is_rounded_up():
    """log 3 = 1.0986122 was shown as 1.09861, which is less."""
    table = Table(np.array([[3 * 2**60, 2**60], [2**60, 3 * 2**60]]))
    made = MetricMechanism(optdp.Alphabet(2), (0, 1), table, optdp.Distances([[0, 1], [1, 0]]))
    assert "eps = 1.09862 per unit" in repr(made)

"""`solve_kernel` for losses in steps of the distance: finite programs, and what counts at a step."""

import json
import math
import sys
from bisect import bisect_right
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import optdp
from optdp.certificates.kernel import KernelCertificate
from optdp.design import registry
from optdp.design.kernel import steps
from optdp.design.kernel.search import Search
from optdp.design.kernel.task import Task
from optdp.design.registry import Run
from optdp.mechanisms.kernel import KernelMechanism
from optdp.mechanisms.piecewise import CELLS
from optdp.problem import losses
from optdp.solvers.lp import LinearStatus, SolverFailure
from optdp.statistics.collect import sends
from tests.counting import of_fractions

#: Two steps, the first at half of the second, the domain a multiple of both; two that have 1/24 in common.
HALVES = optdp.Pieces((0, "1/4", "1/2"), ((0,), ("1/2",), (1,)))
EIGHTHS = optdp.Pieces((0, "1/8", "1/3"), ((0,), ("1/4",), (1,)))


def dense(eps, loss, inputs, outputs, weights=None):
    """The least loss of any kernel from these inputs to these outputs, written down as it is defined."""
    table = np.array([[float(loss.exact(abs(x - y))) for y in outputs] for x in inputs])
    n, k = table.shape
    rows = [np.eye(k)[None] * np.where(np.arange(n) == i, 1, np.where(np.arange(n) == j, -math.exp(eps), 0))[:, None, None]
            for i in range(n) for j in range(n) if i != j]  # fmt: skip
    private = np.hstack(
        [np.vstack([row.transpose(1, 0, 2).reshape(k, n * k) for row in rows]), np.zeros((len(rows) * k, 1))]
    )
    mass = np.hstack([np.kron(np.eye(n), np.ones(k)), np.zeros((n, 1))])
    lost = np.hstack([np.kron(np.eye(n), np.ones((1, k))) * np.tile(table.ravel(), (n, 1)), np.full((n, 1), -1.0)])
    if weights is None:
        found = linprog(
            np.append(np.zeros(n * k), 1.0), np.vstack([private, lost]), np.zeros(len(private) + n), mass, np.ones(n)
        )
    else:
        cost = np.append((table * np.array(weights)[:, None]).ravel(), 0.0)
        found = linprog(cost, private, np.zeros(len(private)), mass, np.ones(n))
    return found.fun


@pytest.mark.parametrize("loss", [HALVES, EIGHTHS], ids=["halves", "eighths"])
@pytest.mark.parametrize("eps", [0.01, 0.5, 2.0, 6.0, 12.0, 20.0, 30.0])
def test_worst_cases_of_several_steps_are_solved_exactly(loss, eps):
    """Brackets were up to 0.43 wide after 40 s, and at eps = 2 the second had the bound 0."""
    solution = optdp.solve_kernel(eps, loss, rtol=1e-5)
    assert 0 <= solution.gap <= 1e-5
    assert solution.verify(), str(solution.verify())


@settings(max_examples=12)
@given(
    st.sampled_from([4, 5, 6]), st.integers(1, 2), st.integers(1, 2), st.sampled_from([0.3, 1.0, 3.0]),
    st.sampled_from([(0, 1), (-3, 17), (0, 100)]),
)  # fmt: skip
def test_steps_agree_with_the_dense_program(cells, first, more, eps, domain):
    """Inputs at multiples of the common measure and between; outputs just below and above: nothing else tells steps apart."""
    low, high = domain
    unit = Fraction(high - low, cells)
    loss = optdp.Pieces((0, first * unit, (first + more) * unit), ((0,), ("1/3",), (1,)))
    marks = [low + k * unit for k in range(cells + 1)]
    middles = [a + unit / 2 for a in marks[:-1]]
    outputs = [y for mark in marks for y in (mark - unit / 1000, mark + unit / 1000) if low <= y <= high]
    expected = dense(eps, loss, marks + middles, outputs)
    solution = optdp.solve_kernel(eps, loss, domain=domain, rtol=1e-5)
    assert solution.lower_bound - 1e-6 <= expected <= solution.value + 1e-6
    assert solution.gap <= 1e-5


@settings(max_examples=15)
@given(st.data())
def test_averages_over_points_agree_with_the_dense_program(data):
    """Thresholds hold at their limit, pieces from their break on: outputs at the limits, or a little within."""
    points = sorted(data.draw(st.sets(st.integers(0, 32), min_size=2, max_size=5)))
    shares = data.draw(st.lists(st.integers(1, 8), min_size=len(points), max_size=len(points)))
    weights = [Fraction(share, sum(shares)) for share in shares]
    step, eps = Fraction(data.draw(st.integers(1, 12)), 32), data.draw(st.sampled_from([0.5, 2.0, 5.0]))
    closed = data.draw(st.booleans())
    loss = optdp.Threshold(float(step)) if closed else optdp.Pieces((0, step, 2 * step), ((0,), ("1/4",), (1,)))
    inputs = [Fraction(point, 32) for point in points]
    off = Fraction(0) if closed else Fraction(1, 10**6)
    jumps = [step] if closed else [step, 2 * step]
    outputs = {y for x in inputs for b in jumps for y in (x - b + off, x + b - off) if 0 <= y <= 1} | {
        Fraction(0),
        Fraction(1),
    }
    shown = optdp.Pieces((0, step + Fraction(1, 10**9)), ((0,), (1,))) if closed else loss
    expected = dense(eps, shown, inputs, sorted(outputs), [float(w) for w in weights])
    solution = optdp.solve_kernel(eps, loss, prior=([float(x) for x in inputs], weights), rtol=1e-5)
    assert solution.lower_bound - 1e-7 <= expected <= solution.value + 1e-7
    assert solution.gap <= 1e-5 or expected < 1e-9


def test_averages_of_steps_over_many_points():
    """500 points take a second (30 to 50 seconds by cuts)."""
    rng = np.random.default_rng(1)
    points = np.unique(rng.random(300)).tolist()
    solution = optdp.solve_kernel(1.0, EIGHTHS, prior=(points, [1 / 300] * 300), rtol=1e-6)
    assert 0 <= solution.gap <= 1e-6
    assert solution.verify()


def test_a_step_that_counts_from_its_break_on_needs_one_output_more():
    """Four windows of open ends cannot cover an interval of four times their length; closed ones can."""
    at, beyond = (
        optdp.solve_kernel(1.0, loss) for loss in (optdp.Pieces((0, "1/8"), ((0,), (1,))), optdp.Threshold(0.125))
    )
    for solution, outputs in ((at, 5), (beyond, 4)):
        assert solution.gap <= 1e-9
        assert solution.value == pytest.approx((outputs - 1) / (math.e + outputs - 1), rel=1e-9)
    # So a proof for the one is none for the other.
    assert at.certificate.bound(beyond.problem).value < beyond.value * 0.9


def test_points_of_a_proof_may_be_exact_numbers(tmp_path):
    """With floats for twenty-fourths there is no proof: some are a little nearer than a step."""
    solution = optdp.solve_kernel(6.0, EIGHTHS)
    exact = [point for point in solution.certificate.points if isinstance(point, Fraction)]
    assert exact
    path = tmp_path / "steps.json"
    solution.save(path)
    again = optdp.Solution.load(path)
    assert again.certificate == solution.certificate
    assert again.verify()
    rounded = KernelCertificate.from_dict(
        solution.certificate.to_dict() | {"points": [float(p) for p in solution.certificate.points]}
    )
    assert rounded.bound(solution.problem).value < solution.lower_bound * 0.99
    for wrong in ("log(2)", "4/3", "-1/24", "1/0", "x"):
        solution.save(path)
        data = json.loads(path.read_text())
        data["certificate"]["points"][0] = wrong
        path.write_text(json.dumps(data))
        with pytest.raises(ValueError, match="points"):
            optdp.Solution.load(path).certificate.bound(solution.problem)


@pytest.mark.parametrize("loss", [HALVES, EIGHTHS], ids=["halves", "eighths"])
@pytest.mark.parametrize("eps", [0.5, 2.0, 6.0])
def test_random_proofs_for_steps_prove_no_more_than_is_attained(loss, eps):
    """Inputs at steps from each other, ties included."""
    best, rng = optdp.solve_kernel(eps, loss), np.random.default_rng(0)
    for _ in range(40):
        count = int(rng.integers(1, 12))
        at = tuple(Fraction(int(k), 24) for k in rng.integers(0, 25, count))
        weights, reaches = rng.dirichlet(np.ones(count)), rng.choice([0.05, 0.2, 0.4, 0.6, 0.9], count)
        proof = KernelCertificate(points=at, weights=tuple(weights.tolist()), point_reaches=tuple(reaches.tolist()))
        assert proof.bound(best.problem).value <= best.value


@pytest.mark.parametrize("eps", [0.5, 2.0, 6.0])
def test_floats_next_to_multiples_have_an_honest_bracket(eps):
    """0.3 is not three times 0.1: what is between them is for numbers closer together than floats."""
    floats = optdp.Pieces((0, 0.1, 0.3, 0.7), ((0,), ("1/2",), (1,), (3,)))
    exact = optdp.Pieces((0, "1/10", "3/10", "7/10"), ((0,), ("1/2",), (1,), (3,)))
    near, solution = optdp.solve_kernel(eps, floats), optdp.solve_kernel(eps, exact)
    assert solution.gap <= 1e-6
    assert near.value == pytest.approx(solution.value, rel=1e-6)
    assert 0 < near.gap < 0.5 or near.gap <= 1e-3
    assert near.verify()


def test_a_step_of_a_millionth_is_no_program():
    """Points are far too many: no output of those that the program had was of use, and the call raised."""
    solution = optdp.solve_kernel(1.0, optdp.Pieces((0, "1/1000000"), ((0,), (1,))), time_limit=5)
    assert 0.99 < solution.lower_bound <= solution.value <= 1


@pytest.mark.parametrize("points", [0, pytest.param(512, marks=pytest.mark.soak)])
def test_programs_of_many_steps_stay_small(points, monkeypatch):
    """Twenty breaks that have no common measure led to 5500 points and tables of 600 million numbers."""
    sizes, solve, most = [], steps._Ladder.solve, steps.ENTRIES

    def seen(ladder, *arguments):
        sizes.append(ladder.table.size * ladder.levels.size)
        return solve(ladder, *arguments) if sizes[-1] <= most else None

    monkeypatch.setattr(steps._Ladder, "solve", seen)
    assert most <= 2**24
    monkeypatch.setattr(steps, "ENTRIES", most := 2**20)
    rng = np.random.default_rng(0)
    breaks = (0, *np.sort(rng.random(19)).tolist())
    prior = (np.unique(rng.random(points)).tolist(), [Fraction(1, points)] * points) if points else None
    solution = optdp.solve_kernel(
        1.0, optdp.Pieces(breaks, [(Fraction(k, 20),) for k in range(20)]), prior=prior, time_limit=1
    )
    assert 0 <= solution.lower_bound <= solution.value < 1
    assert max(sizes, default=0) <= most


def test_many_steps_of_a_loss_are_decided_quickly():
    """Two minutes for a hundred when each was decided in fractions, for each input: here 8.6 million calls instead of 0.7."""
    loss = optdp.Pieces(tuple(Fraction(k, 40) for k in range(40)), tuple((Fraction(k, 40),) for k in range(40)))
    count, solution = of_fractions(lambda: optdp.solve_kernel(1.0, loss))
    assert solution.gap <= 1e-9
    assert count < 2e6


def test_points_of_a_program_are_integers():
    """In fractions 2.0 million calls found the steps between 639 cells and their outputs, half of what the solve took."""
    breaks = [Fraction(v) for v in np.sort(np.random.default_rng(0).random(19)).tolist()]
    loss = optdp.Pieces((0, *breaks), [(Fraction(k, 20),) for k in range(20)])
    task = Task(optdp.Problem(optdp.LDP(1.0), optdp.Interval(0, 1), optdp.WorstCase(loss), optdp.AllMechanisms()))
    count, found = of_fractions(lambda: steps._Ladder(task, np.arange(20) / 20, breaks, -1))
    assert count < 20 * len(found.cells)
    for k, j in ((0, 0), (100, 5), (len(found.cells) - 1, 1)):
        middles = [(p + q) / 2 for p, q in zip(*found.cells[k], strict=True)]
        off, beside = (a - b for a, b in zip(middles, found.points[j], strict=True))
        assert found.table[k, j] == sum((abs(off), beside if off > 0 else -beside) > (b, -b) for b in breaks)


STEPS = {
    "> 0.3": lambda d: d > 0.3, "> 0.125": lambda d: d > 0.125, ">= 0.125": lambda d: d >= 0.125,
    "two": lambda d: (d >= 0.125) + 1.0 * (d >= 0.25), "two >": lambda d: (d > 0.125) + 1.0 * (d > 0.25),
    "at the end": lambda d: np.floor(8 * d) / 8,
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_steps_of_a_users_loss_are_found_to_the_float(name, monkeypatch):
    """Known but for a cell of the samples, steps that tile the domain left gaps of 0.05 to 0.7, however long it took."""
    monkeypatch.setattr(losses, "CELLS", 2**12)
    monkeypatch.setattr(losses, "OCTAVE", 2**8)
    monkeypatch.setattr(losses, "_sampled_at", losses._sampled_at.__wrapped__)
    solution = optdp.solve_kernel(1.0, STEPS[name], outputs=(0.2, 0.8) if name == "> 0.3" else None, time_limit=5.0)
    assert solution.gap <= 1e-9 and solution.verify()


def test_steps_that_floats_do_not_hold_have_the_best_outputs_of_those_that_they_mean():
    mine = optdp.solve_kernel(2.0, lambda d: (d > 0.1) + 1.0 * (d > 0.3))
    meant = optdp.solve_kernel(2.0, optdp.Pieces((0, "1/10", "3/10"), ((0,), (1,), (2,))))
    assert meant.gap <= 1e-9 and mine.value <= meant.value * (1 + 1e-9) and mine.lower_bound <= meant.lower_bound
    assert mine.program.message == "floats are too far apart for the best outputs"


def test_a_search_that_is_stopped_between_its_two_priors_keeps_the_first(monkeypatch):
    dual, calls = Search._dual, []

    def once(search, *given):
        calls.append(given)
        if len(calls) > 1:
            monkeypatch.setattr(Run, "left", lambda run: 0.0)
            raise SolverFailure("stopped", LinearStatus.TIME_LIMIT)
        return dual(search, *given)

    monkeypatch.setattr(Search, "_dual", once)
    solution = optdp.solve_kernel(1.0, optdp.Pieces((0, "1/8"), ((0, 1), (1, 1))), rtol=1e-3, time_limit=30.0)
    assert len(calls) == 2 and solution.status is optdp.Status.TIME_LIMIT and solution.gap < 0.1
    assert solution.verify()


@pytest.mark.parametrize("loss", [optdp.Threshold(1.0), optdp.Threshold(3.0), optdp.Pieces((0, 2), ((0,), (0, 1)))])
@pytest.mark.parametrize("prior", [None, "uniform", ([0.0, 0.25, 1.0], [0.25, 0.25, 0.5])])
def test_a_loss_that_is_0_on_the_domain_has_the_optimum_0(loss, prior):
    """It was refused as one that may underflow."""
    best = optdp.solve_kernel(1.0, loss, prior=prior, outputs=(0.2, 0.8))
    assert best.lower_bound == best.value == best.gap == 0 and best.verify()
    with pytest.raises(ValueError, match="it underflows there"):
        optdp.solve_kernel(1.0, "squared", domain=(0, 1e-145))


@pytest.mark.parametrize("outputs", [(-1.0, 1e-12), (0.3, 0.3 + 1e-14), (1 - 1e-15, 2.0)])
def test_outputs_with_no_room_are_refused(outputs):
    """An IndexError."""
    with pytest.raises(ValueError, match=r"outputs .* must overlap"):
        optdp.solve_kernel(1.0, "abs", outputs=outputs)


@pytest.mark.parametrize(
    "domain", [(8.0, 9.0), (1.0, 1.7), (100.0, 101.0), (1e15, 1e15 + 4), (2.0**60, 2.0**60 + 2**10)]
)
@pytest.mark.parametrize("count", [1, 3, 100])
def test_no_proof_is_above_what_is_attained_for_the_inputs_that_there_are(domain, count):
    """With limits that just tile the domain, or are below what floats tell apart: the value was that of floats, and the proof
    that of all real numbers. The bound was cut to the value in silence, and `verify` failed.
    """
    tile = (domain[1] - domain[0]) / (2 * count)
    for limit in (tile, math.nextafter(tile, 0.0), math.nextafter(tile, 0.0) - math.ulp(tile)):
        found = optdp.solve_kernel(1.0, optdp.Threshold(limit), domain=domain, rtol=0.3)
        assert found.certificate.bound(found.problem).value == found.lower_bound <= found.value and found.verify()


@pytest.mark.parametrize("domain", [(-1.0, 1.0), (-5.0, 5.0), (-0.5, 1.5)])
@pytest.mark.parametrize("count", [2, 4, 8])
def test_steps_that_tile_a_domain_around_0_close(domain, count):
    """Windows meet where floats are finer than what is above the domain's lower end: neighbours were not told apart, and one more
    output was needed (at 2 of them 0.42 in place of 0.27).
    """
    limit = (domain[1] - domain[0]) / (2 * count)
    found = optdp.solve_kernel(1.0, optdp.Threshold(limit), domain=domain)
    assert found.gap <= 1e-12 and found.verify(), str(found)
    assert found.value == pytest.approx((count - 1) / (math.e + count - 1), abs=1e-12)
    mechanism, y = found.mechanism, found.mechanism.atoms()
    for middle in (
        domain[0] + 2 * k * limit for k in range(1, count)
    ):  # in rationals: |y - x| would be rounded to the limit
        for x in (math.nextafter(middle, -9.0), middle, math.nextafter(middle, 9.0)):
            lost = [abs(Fraction(at) - Fraction(x)) > Fraction(limit) for at in y.tolist()]
            assert np.dot(lost, mechanism.probability(y, x)) <= found.value * (1 + 1e-12)


@settings(max_examples=25)
@given(st.data())
def test_windows_of_atoms_are_those_that_rationals_say(data):
    """At floats around each change of windows: x lies between what divides the ends a little to the left, and to the right."""
    low = data.draw(st.sampled_from([0.0, -1.0, -0.3, 1e6, -1e-9]))
    width = data.draw(st.sampled_from([1.0, 0.7, 2.0, 3e-9, 1e6]))
    places = sorted(data.draw(st.lists(st.integers(0, 1000), min_size=2, max_size=6)))
    share = data.draw(st.sampled_from([0.5, 0.25, 0.0, 1.0]))
    at = [p / 1000 for p in places]
    window = data.draw(st.sampled_from([0.1, 0.3, 0.6]))
    made = KernelMechanism.private(1.0, [1.0] * len(at), at, at, window, (low, low + width), "ends", share)
    lower, last, edges = Fraction(made.domain.lower), CELLS - made.width_cells, made._edges.tolist()

    def divided(*cells):
        """What divides a window with ends in these cells."""
        a, b = (Fraction(made.lows[bisect_right(edges, cell) - 1]) for cell in cells)
        return lower + made.domain.exact_width * ((1 - Fraction(share)) * a + Fraction(share) * b)

    near = [float(divided(a, b)) for a in edges[:-1] for b in edges[:-1]]
    inputs = {
        x for middle in near for x in (math.nextafter(middle, -math.inf), middle, math.nextafter(middle, math.inf))
    }
    inputs = sorted(x for x in inputs | {low, low + width} if low <= x <= low + width)
    starts = made._first_cell(np.array(inputs)).tolist()
    for x, start in zip(inputs, starts, strict=True):
        end = start + made.width_cells
        assert start == 0 or divided(start - 1, end - 1) <= x
        assert start == last or x <= divided(start, end)


@pytest.mark.parametrize("limit", [1 / 6, 1 / 14, Fraction(1, 6)])
def test_atoms_are_floats_as_fine_as_they_are(limit):
    """All were multiples of 2^-53, also those below 1/2: 3 windows of 1/3 did not reach across [0, 1]."""
    found = optdp.solve_kernel(1.0, optdp.Threshold(limit))
    assert found.gap <= 1e-12 and found.verify()
    sent = found.mechanism.randomize(np.linspace(0.0, 1.0, 999), 1)
    assert set(sent.tolist()) <= set(found.mechanism.atoms().tolist()) and sends(found.mechanism, sent).all()
    assert found.mechanism.atoms()[0] * 2.0**53 % 1 > 0


@pytest.mark.parametrize("domain", [(0.0, sys.float_info.max), (sys.float_info.max / 2, sys.float_info.max)])
@pytest.mark.parametrize("parts", [1, 2, 4])
def test_domains_that_end_where_floats_do(domain, parts):
    """They ended in an OverflowError: there is no float beyond."""
    found = optdp.solve_kernel(1.0, optdp.Threshold((domain[1] - domain[0]) / parts), domain=domain)
    assert found.lower_bound <= found.value < 1 and found.verify()


@pytest.mark.parametrize(
    ("domain", "places"),
    [
        ((-1e-9, 3e-3), [0.1777695193968214]),
        ((-0.3, 0.7), [0.02877641232121797, 0.9438354916734439]),
        ((1.0, 1 + 2.0**-48), [0.3, 0.3 + 1e-9]),
    ],
)
def test_atoms_and_the_ends_of_what_is_sent_are_floats(domain, places):
    """The ends were numbers of a finer lattice that nobody sends, and of one atom alone this was one."""
    made = KernelMechanism.private(1.0, np.ones(len(places)), places, places, 0.6, domain)
    assert all(Fraction(float(k * made._sent.step)) == k * made._sent.step for k, _ in made._places)
    y = made.randomize(np.linspace(*domain, 2000), 1)
    assert made.exact_support() == (Fraction(y.min()), Fraction(y.max())) and set(y) == set(made.atoms())


@pytest.mark.parametrize("domain", [(-1.0, 1.0), (1e6, 1e6 + 1)])
def test_distribution_functions_of_atoms_jump_at_these(domain):
    """Above the lower end of the domain a float just below an atom was rounded to it."""
    made = KernelMechanism.private(1.0, [1.0, 2.0, 1.0], [0.2, 0.503, 0.9], [0.2, 0.503, 0.9], 0.4, domain)
    for y, before in zip(made.atoms(), (0, 1, 2), strict=True):
        below = made.probability(made.atoms()[:before], domain[0]).sum()
        assert made.cumulative(math.nextafter(y, -math.inf), domain[0]) == pytest.approx(below, abs=1e-14)
        assert made.cumulative(y, domain[0]) > below


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_solutions_up_to_the_largest_float_are_read_again(share):
    """Files had no number beyond 1.7e308, which they called not finite; means were infinite."""
    domain = share * sys.float_info.max, sys.float_info.max
    found = optdp.solve_kernel(1.0, optdp.Threshold((domain[1] - domain[0]) / 4), domain=domain)
    again = optdp.Solution.from_dict(json.loads(json.dumps(found.to_dict())))
    assert again.mechanism == found.mechanism and again.verify()
    y = found.mechanism.atoms()
    for x in domain:
        mean = float(np.sum(y * found.mechanism.probability(y, x)))
        assert found.mechanism.mean(x) == pytest.approx(mean, rel=1e-12)


@pytest.mark.filterwarnings("error")
def test_two_inputs_at_the_ends_of_all_floats_are_solved_without_warnings():
    most = sys.float_info.max
    found = optdp.solve_kernel(
        1.0, optdp.Threshold(most / 4), domain=(0.0, most), prior=optdp.Prior.of({0.0: 0.5, most: 0.5})
    )
    assert found.lower_bound == pytest.approx(1 / (1 + math.e)) and found.lower_bound <= found.value <= 0.5


def test_losses_of_distances_whose_sum_is_no_float():
    assert (
        optdp.Threshold(1.5e308).between(1.2e308, 1.2e308) == 0
        and optdp.Threshold(1.1e308).between(1.2e308, 1.2e308) == 1
    )


def test_a_bound_above_the_value_is_an_error_and_not_cut(monkeypatch):
    best = optdp.solve_kernel(1.0, "abs", rtol=1e-2)
    wrong = replace(registry._DESIGNS["kernel"], solve=lambda run: replace(best, lower_bound=2 * best.value))
    monkeypatch.setitem(registry._DESIGNS, "kernel", wrong)
    with pytest.raises(SolverFailure, match=r"is proven, and the mechanism attains 0.*: one of both is wrong"):
        optdp.solve(best.problem)

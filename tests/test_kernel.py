"""`solve_kernel` on an interval and a circle: brackets, closed forms, published mechanisms, priors, programs, errors."""

import json
import math
import os
import pickle
import subprocess
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import optdp
from optdp.certificates.base import Certificate
from optdp.design.finite_kernel import plain_program
from optdp.design.kernel import master, search
from optdp.design.kernel.floor import Cost, Floor
from optdp.design.kernel.search import Search, _finer, _levels
from optdp.design.kernel.task import Task
from optdp.design.registry import Run
from optdp.exact.fields import Fields
from optdp.mechanisms import baselines
from optdp.problem.losses import Power
from optdp.solvers import dense
from optdp.solvers.lp import SolverFailure


@pytest.fixture(scope="module")
def solved():
    """Solutions by (eps, loss, unbiased), each solved once."""
    cache = {}

    def get(eps, loss="abs", unbiased=False, **options):
        key = (eps, loss, unbiased, tuple(sorted(options.items())))
        if key not in cache:
            domain = (-1, 1) if unbiased else (0, 1)
            cache[key] = optdp.solve_kernel(eps, loss, domain=domain, unbiased=unbiased, **options)
        return cache[key]

    return get


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0, 2.0])
@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_bracket_closes_and_verifies(solved, eps, loss):
    solution = solved(eps, loss)
    assert solution.status is optdp.Status.OPTIMAL
    assert 0 <= solution.gap <= 1e-3
    assert solution.verify(), str(solution.verify())


def test_abs_at_eps_1_is_where_the_dense_program_puts_it(solved):
    solution = solved(1.0, rtol=1e-4)
    assert solution.gap <= 1e-4
    assert 0.31615 <= solution.lower_bound <= solution.value <= 0.3162
    assert solution.value < 0.84 * optdp.solve_piecewise(1).value  # 16 % below the best common floor


@pytest.mark.parametrize(
    ("eps", "loss"), [(0.5, "abs"), (1.0, "abs"), (2.0, "abs"), (1.0, "squared"), (2.0, "squared")]
)
def test_never_above_the_published_mechanisms_nor_the_best_piecewise_one(solved, eps, loss):
    solution = solved(eps, loss)
    assert solution.value <= optdp.solve_piecewise(eps, loss=loss).value
    others = baselines.applicable(solution.problem)
    assert len(others) >= 5
    for name, mechanism in others.items():
        assert solution.value <= mechanism.worst_case_loss(loss), name


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0, 1.5, 1.76])
def test_squared_optimum_is_the_bayes_risk_of_a_fair_coin_up_to_ln_3_plus_2_root_2(solved, eps):
    solution = solved(eps, "squared", rtol=1e-5)
    assert solution.lower_bound <= math.exp(eps) / (1 + math.exp(eps)) ** 2 <= solution.value
    assert solution.gap <= 1e-5


def test_squared_formula_is_below_the_bracket_beyond_its_range(solved):
    solution = solved(2.0, "squared")
    assert math.exp(2) / (1 + math.exp(2)) ** 2 < solution.lower_bound


def constant_variance(eps):
    return 1 / math.tanh(eps / 2) / math.tanh(math.tanh(eps / 2)) - 1


@pytest.mark.parametrize("eps", [0.1, 0.25, 0.5, 0.7])
def test_unbiased_optimum_is_the_equaliser_for_small_eps(solved, eps):
    solution = solved(eps, None, True)
    assert solution.gap <= 1e-3
    assert solution.lower_bound <= constant_variance(eps) <= solution.value


def test_equaliser_is_above_the_bracket_at_eps_1(solved):
    assert solved(1.0, None, True).value < constant_variance(1.0)


def duchi(eps):
    """Duchi, Jordan, Wainwright (JASA 2018): outputs +-(E + 1)/(E - 1), worst variance at x = 0."""
    return 1 / math.tanh(eps / 2) ** 2


def piecewise_mechanism(eps):
    """PM (Wang et al., ICDE 2019, Lemma 1): Var(x) = x^2/(s - 1) + (s + 3)/(3 (s - 1)^2) with s = e^(eps/2), worst at
    x = 1.
    """
    s = math.exp(eps / 2)
    return 4 * s / (3 * (s - 1) ** 2)


def hybrid(eps):
    """HM (Wang et al., ICDE 2019, Equation 10)."""
    e, s = math.exp(eps), math.exp(eps / 2)
    if eps > 0.61:
        return (s + 3) / (3 * s * (s - 1)) + (e + 1) ** 2 / (s * (e - 1) ** 2)
    return duchi(eps)


def best_ptt(eps):
    """I-PTT (mass 1 imposed): k = (E + eta - 1)/(E - 1), a = k/(eta - 1), Var(1) minimised over eta > 1."""
    e, eta = math.exp(eps), np.linspace(1.001, 30, 200_000)
    k = (e + eta - 1) / (e - 1)
    return float((k - 1 + k / (3 * (eta - 1) ** 2) * (eta**3 / (e - 1) + 1)).min())


@pytest.mark.parametrize("eps", [0.1, 0.5, 1.0, 2.0, 3.0])
def test_unbiased_is_below_the_published_unbiased_mechanisms(solved, eps):
    solution = solved(eps, None, True, rtol=1e-3)
    assert solution.verify(), str(solution.verify())
    for published in (duchi, piecewise_mechanism, hybrid, best_ptt):
        assert solution.value < published(eps)


def test_meshes_are_not_halved_beside_the_atom_of_the_prior():
    """The prior has an atom at each end of the domain, and nothing close to it, so that cells there need not be narrow."""
    meshes = []
    solution = optdp.solve_kernel(4.0, "squared", rtol=1e-4, progress=meshes.append)
    assert solution.gap <= 1e-4 and solution.verify()
    assert len([made for made in meshes if "outputs" in str(made)]) <= 3
    proof = solution.certificate
    heaviest = proof.points[proof.weights.index(max(proof.weights))]
    assert heaviest in (0.0, 1.0) and sum(x < 0.01 for x in proof.mesh) < len(proof.mesh) / 20


def test_no_program_is_solved_twice(monkeypatch):
    sizes, old = [], dense._solved
    monkeypatch.setattr(
        dense, "_solved", lambda program, *rest: sizes.append(program.rows.shape) or old(program, *rest)
    )
    optdp.solve_kernel(3.0, "abs", rtol=2e-4)
    assert len(sizes) > 10 and all(a != b for a, b in pairwise(sizes))


@pytest.mark.parametrize(
    ("eps", "options"),
    [(3.0, {}), (4.0, {"loss": "squared"}), pytest.param(4.0, {"unbiased": True}, marks=pytest.mark.soak)],
)
def test_finer_floors_need_atoms_only_next_to_those_that_there_were(monkeypatch, eps, options):
    """On the same mesh all atoms together make the program worth no less than a quarter of the tolerance."""
    found, rtol, solve = [], 1e-4, master.solve

    def both(task, y, cuts, share, before=None):
        one = solve(task, y, cuts, share, before)
        if before is not None:
            atoms = one.program.upper[one.program.variables["atom"]]
            found.append((one.value, solve(task, y, cuts, share).value, np.mean(atoms == 0)))
        return one

    monkeypatch.setattr(master, "solve", both)
    assert optdp.solve_kernel(eps, rtol=rtol, **options).gap <= rtol and found
    for some, every, left_out in found:
        assert every * (1 - rtol / 20) <= some <= every * (1 + rtol / 4) and left_out > 0.2


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=20, unique=True),
    st.lists(st.floats(0, 1), min_size=2, max_size=20, unique=True),
    st.integers(0, 2**20 - 1),
)
def test_nodes_near_atoms_are_within_a_cell_of_them(old, new, chosen):
    """Of those of another mesh, compared one by one."""
    old, new = np.unique(old), np.unique(new)
    on = (chosen >> np.arange(old.size)) & 1
    floor = Floor.of_hats(old, np.ones(old.size), on.astype(float))
    one = master.Master(1.0, floor, 1.0, master.Cuts(), None, 1)
    ends = np.concatenate([[-np.inf], old, [np.inf]])
    near = [any(ends[i] <= y <= ends[i + 2] for i in np.flatnonzero(on)) for y in new]
    assert one.atoms_near(new).tolist() == near


def test_programs_of_the_widest_scales_are_solved(monkeypatch):
    """Unbiased at eps = 30 with rtol = 4e-4 ended with a gap of 1: multipliers of programs worth 0 are roundings alone."""
    found, solve = [], master.solve

    def once(*asked):
        if found:
            raise SolverFailure("enough")
        found.append(solve(*asked))
        return found[0]

    monkeypatch.setattr(master, "solve", once)
    assert 6.3e-10 < optdp.solve_kernel(30.0, unbiased=True, rtol=4e-4).value < 1e-7
    assert found[0].attained < 1e-7


def test_programs_that_are_worth_nothing_yet_end_no_search(monkeypatch):
    """As one that was stopped may be."""
    old = master.solve
    monkeypatch.setattr(master, "solve", lambda *asked: replace(old(*asked), value=0.0))
    found = optdp.solve_kernel(3.0, "abs", rtol=2e-4)
    assert found.lower_bound <= found.value < 0.126 and found.verify()


@settings(max_examples=20)
@given(at=st.integers(4, 12))
def test_graded_meshes_are_fine_beyond_the_cells_that_lack_most(at):
    """On the way inwards from each end; what is nearer to the end stays as it is."""
    mesh, weights = np.linspace(0.0, 1.0, 201), np.full(200, 1e-9)
    weights[[at, 199 - at]] = weights[[at + 1, 198 - at]] = 1.0
    plain, graded = (_finer(mesh, weights, 0.02, grade=grade) for grade in (False, True))
    near, place = 0.9 * mesh[at], mesh[at + 2]
    beyond = [np.sum((made > place) & (made < 1.3 * place)) for made in (plain, graded)]
    assert set(mesh) <= set(graded) and beyond[1] > beyond[0]
    assert abs(np.sum(graded < 0.5) - np.sum(graded > 0.5)) <= 4  # up to roundings
    assert np.array_equal(graded[graded < near], mesh[mesh < near])


@settings(max_examples=20)
@given(at=st.floats(0.02, 0.4), narrow=st.floats(1e-9, 1e-5))
def test_graded_meshes_have_no_more_cells_than_others(at, narrow):
    """However many very narrow cells stand together."""
    mesh = np.unique(np.concatenate([np.linspace(0.0, 1.0, 51), at + narrow * np.arange(40)]))
    weights = np.random.default_rng(0).random(mesh.size - 1)
    for share in (0.02, 0.5):
        assert _finer(mesh, weights, share, grade=True).size <= 2.6 * mesh.size


@given(st.lists(st.lists(st.floats(0, 1e6), min_size=4, max_size=4), min_size=1, max_size=5), st.floats(0.05, 0.95))
def test_entries_cut_to_a_level_have_the_share_that_was_asked_for(rows, share):
    table = np.array(rows) + 1e-6
    left = np.minimum(table, _levels(table, np.full(len(rows), share))[:, None])
    assert left.sum(axis=1) == pytest.approx(share * table.sum(axis=1), rel=1e-9)


@pytest.mark.parametrize("prior", [None, "uniform"])
def test_means_at_small_epsilon_are_solved_as_precisely_as_can_be(prior):
    """Where tolerances are narrow, too: far outputs all but cancel."""
    objective = optdp.WorstCase("squared") if prior is None else optdp.Average("squared", prior)
    problem = optdp.Problem(optdp.LDP(0.5), optdp.Interval(0, 1), objective, constraints=(optdp.Unbiased(),))
    for fine in (False, True):
        solver = master.usual(Task(problem, fine=fine))
        assert getattr(solver, "behind", solver).tolerance == master.FINE.tolerance


def test_rare_inputs_of_a_prior_are_not_forgotten():
    """Nearly all of the prior are two atoms, and the bound is 4 % lower without the rest."""
    assert optdp.solve_kernel(6.15, Power(5), rtol=3e-4).gap <= 3e-4


def test_digits_do_not_depend_on_threads():
    code = (
        "import optdp; of = optdp.solve_kernel; made = of(2.0, 'squared', rtol=4e-4), of(2.0, 'abs', metric='abs', rtol=0.1); "
        "print([(s.lower_bound.hex(), s.value.hex()) for s in made])"
    )
    made = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=os.environ | dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), n),
            stdout=subprocess.PIPE, text=True,
        )
        for n in ("1", "2")
    ]  # fmt: skip
    printed = [one.communicate()[0] for one in made]
    assert printed[0] == printed[1] != ""


def test_a_solver_of_the_users_solves_narrow_tolerances_too():
    """The same bracket by vertices and by interior points, up to the tolerance."""
    plain, own = (
        optdp.solve_kernel(2.0, "abs", rtol=3e-4, solver=one) for one in (None, optdp.solvers.Highs("simplex"))
    )
    assert plain.program.solver.startswith("interior points") and own.program.solver.startswith("HiGHS simplex")
    assert max(plain.lower_bound, own.lower_bound) <= min(plain.value, own.value)
    assert plain.gap <= 3e-4 and own.gap <= 3e-4


@pytest.mark.parametrize("eps", [0.1, 1.0, 2.0, 3.0])
def test_unbiased_is_below_every_published_unbiased_mechanism_of_the_package(solved, eps):
    value = solved(eps, None, True, rtol=1e-3).value
    others = baselines.applicable(solved(eps, None, True, rtol=1e-3).problem)
    assert {"Duchi", "PM", "HM", "PM-SUB"} <= set(others)
    for name, mechanism in others.items():
        assert value < mechanism.worst_case_loss("squared"), name
    assert value < optdp.solve_ptt(eps).lower_bound


def test_published_variances_are_those_of_their_sources():
    assert [round(f(1.0), 3) for f in (duchi, piecewise_mechanism, hybrid, best_ptt)] == [4.683, 5.224, 4.289, 5.066]


def test_unbiased_at_every_input(solved):
    solution = solved(1.0, None, True)
    assert solution.mechanism.check_unbiased().passed
    x = np.linspace(-1, 1, 10_001)
    assert np.abs(solution.mechanism.mean(x) - x).max() < 1e-9
    assert solution.mechanism.worst_case_loss("squared") <= solution.value * (1 + 1e-9)


def test_bounded_outputs_cost_more_and_stay_inside(solved):
    free = solved(1.0, None, True)
    tight = optdp.solve_kernel(1, unbiased=True, domain=(-1, 1), outputs=(-2.4, 2.4))
    assert tight.verify()
    assert tight.lower_bound > free.value
    assert -2.4 <= tight.mechanism.support()[0] < tight.mechanism.support()[1] <= 2.4
    wide = optdp.solve_kernel(1, unbiased=True, domain=(-1, 1), outputs=(-1e300, 1e6))
    assert wide.verify() and wide.gap <= 1e-3 and wide.value == pytest.approx(free.value, rel=1e-3)
    with pytest.raises(ValueError, match=r"beyond both ends, \[-2\.16"):
        optdp.solve_kernel(1, unbiased=True, domain=(-1, 1), outputs=(-1.1, 1.1))


@pytest.mark.parametrize(
    "eps, times, gap", [(2.0, 1.001, 1e-3), (4.0, 1.05, 1e-3), (6.0, 4.0, 1e-3), (6.0, 1.05, 5e-3),
                         pytest.param(4.0, 1.5, 2e-3, marks=pytest.mark.soak)]
)  # fmt: skip
def test_unbiased_mechanisms_close_where_limits_bind(eps, times, gap):
    """Outputs just beyond what the means at the ends ask for: proofs have rays there, and what is sent reaches every mean.

    (Gaps were 2 to 97 %: inputs at the ends have no weight, and outputs at a limit cannot move outwards.)
    """
    reach = times / math.expm1(eps)
    found = optdp.solve_kernel(eps, unbiased=True, outputs=(-reach, 1 + reach))
    assert found.verify() and found.gap <= gap
    low, high = found.mechanism.support()
    assert -reach <= low and high <= 1 + reach
    x = np.linspace(0, 1, 1001)
    assert np.abs(found.mechanism.mean(x) - x).max() < 1e-9


def test_a_limit_just_above_the_least_leaves_two_outputs():
    """Where the means at the ends leave no choice the mechanism is Duchi's, and its variance the optimum."""
    eps, reach = 3.0, 1 / math.expm1(3.0) * (1 + 2e-6)
    found = optdp.solve_kernel(eps, unbiased=True, outputs=(-reach, 1 + reach))
    assert found.value == pytest.approx((0.5 + reach) ** 2, rel=1e-4) and found.gap <= 1e-3


@settings(max_examples=5)
@given(st.floats(-100, 100), st.floats(0.01, 100))
def test_moving_and_scaling_the_domain_scales_the_bracket(a, width):
    base = optdp.solve_kernel(1, rtol=0.02)
    moved = optdp.solve_kernel(1, rtol=0.02, domain=(a, a + width))
    scale = (a + width) - a
    assert (
        moved.lower_bound <= base.value * scale * (1 + 1e-12) and base.lower_bound * scale * (1 - 1e-12) <= moved.value
    )
    assert moved.verify() and moved.gap <= 0.02


@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_value_falls_with_eps(solved, loss):
    epsilons = [0.1, 0.5, 1.0, 2.0]
    for small, large in pairwise(epsilons):
        assert solved(large, loss).value < solved(small, loss).lower_bound


@pytest.mark.parametrize(
    "loss",
    [Power(3), optdp.Huber(0.1), optdp.Threshold(0.2), optdp.Pinball(0.8),
     optdp.Pieces((0, "1/2"), ((0, 1), ("-1/2", 2)))],
    ids=str,
)  # fmt: skip
def test_other_losses_have_proven_brackets_too(loss):
    solution = optdp.solve_kernel(2, loss, rtol=1e-2)
    assert solution.gap <= 1e-2 and solution.status is optdp.Status.OPTIMAL
    assert solution.verify(), str(solution.verify())
    if loss.form == "distance":
        assert solution.value <= optdp.solve_piecewise(2, loss=loss).value
    else:
        reverse = optdp.solve_kernel(2, optdp.Pinball(1 - loss.tau), rtol=1e-2)  # mirrored
        assert reverse.lower_bound <= solution.value and solution.lower_bound <= reverse.value


# Parts and files -----------------------------------------------------------------------------------------------------


def test_parts_of_another_system_do_not_verify(solved):
    """All kernels attain less than the best three pieces: neither certificate nor mechanism may change places."""
    kernel, pieces = solved(1.0), optdp.solve_piecewise(1)
    assert kernel.value < pieces.lower_bound
    mixed = replace(kernel, certificate=pieces.certificate, lower_bound=0.0)
    assert [check.name for check in mixed.verify().failures] == ["lower bound"]
    mixed = replace(pieces, mechanism=kernel.mechanism)
    assert [check.name for check in mixed.verify().failures] == ["family"]
    assert replace(kernel, mechanism=pieces.mechanism, value=pieces.value).verify()  # true: it is one of all mechanisms
    assert replace(
        pieces, certificate=kernel.certificate, lower_bound=kernel.lower_bound
    ).verify()  # true: fewer mechanisms


def test_tampering_is_noticed(solved):
    solution = solved(1.0)
    data = solution.mechanism.to_dict()
    cells = list(data["cells"])
    moved = cells[0] // 2
    cells[0] -= moved
    cells[len(cells) // 2] += moved
    worse = optdp.Mechanism.from_dict(data | {"cells": cells})
    assert not replace(solution, mechanism=worse).verify()
    less = optdp.Mechanism.from_dict(data | {"floor_coins": data["floor_coins"] - 2**80})
    assert "privacy" in [check.name for check in replace(solution, mechanism=less).verify().failures]
    biased = solved(1.0, None, True)
    data = biased.mechanism.to_dict()
    shrunk = {name: [0.5 + 0.9 * (v - 0.5) for v in data[name]] for name in ("lows", "highs")}
    for change in (shrunk, {"rule": "ends"}):
        broken = replace(biased, mechanism=optdp.Mechanism.from_dict(data | change))
        assert "unbiased" in [check.name for check in broken.verify().failures]
    assert not replace(solution, value=solution.value * (1 - 1e-9)).verify()


def test_solutions_survive_a_file(solved, tmp_path):
    for name, solution in (("abs", solved(1.0)), ("unbiased", solved(1.0, None, True))):
        solution.save(tmp_path / name)
        loaded = optdp.Solution.load(tmp_path / name)
        assert loaded.verify()
        assert json.dumps(loaded.to_dict()) == json.dumps(solution.to_dict())
        assert loaded.mechanism == solution.mechanism
        x = np.linspace(*((0, 1) if name == "abs" else (-1, 1)), 100)
        assert (loaded.mechanism.randomize(x, 1) == solution.mechanism.randomize(x, 1)).all()


@settings(max_examples=4)
@given(st.floats(0.2, 3), st.integers(2, 5), st.sampled_from([1.0, 2.0]), st.integers(0, 2**32 - 1))
def test_averages_and_those_of_unbiased_mechanisms_are_bracketed_validly(eps, count, q, seed):
    rng = np.random.default_rng(seed)
    points, chances = np.sort(rng.random(count)).tolist(), rng.dirichlet(np.ones(count)).tolist()
    average = optdp.Average(Power(q), optdp.Prior.of(chances, points))
    free = optdp.solve(optdp.Problem(optdp.LDP(eps), (0, 1), average), rtol=0.45)
    assert free.verify(), str(free.verify())
    if q == 2:
        fair = optdp.solve(replace(free.problem, constraints=(optdp.Unbiased(),)), rtol=0.45)
        assert fair.verify(), str(fair.verify())
        assert free.lower_bound <= fair.value
        assert fair.lower_bound <= optdp.solve_kernel(eps, unbiased=True, rtol=0.05).value
        assert free.certificate.bound(fair.problem).value == free.lower_bound


# Priors, circles, errors ----------------------------------------------------------------------------------------------


def test_a_prior_on_two_points_has_the_bayes_risk_of_randomised_response():
    """Two equally likely inputs: the posterior odds are at most E, so the squared error is at least that of a coin E
    : 1.
    """
    for eps in (0.5, 1.0, 3.0):
        e = math.exp(eps)
        solution = optdp.solve_kernel(eps, "squared", prior=([0.0, 1.0], [0.5, 0.5]))
        assert solution.verify()
        assert solution.lower_bound <= e / (1 + e) ** 2 * (1 + 1e-12) and e / (1 + e) ** 2 <= solution.value * (
            1 + 1e-12
        )
        assert solution.gap <= 1e-3


def test_an_average_is_below_the_worst_case():
    points = [0.1, 0.4, 0.9]
    average = optdp.solve_kernel(1, prior=(points, [0.2, 0.5, 0.3]))
    assert average.verify() and average.gap <= 1e-3
    assert optdp.solve(optdp.Problem(optdp.LDP(1), (0, 1), optdp.Average("abs", optdp.Prior.of(dict(zip(points, [0.2, 0.5, 0.3],
                       strict=True)))))).value == average.value  # fmt: skip
    assert average.value < optdp.solve_kernel(1).value
    losses = average.mechanism.expected_loss(np.array(points), "abs")
    assert float(losses @ [0.2, 0.5, 0.3]) == pytest.approx(average.value, rel=1e-12)


@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_on_a_circle_the_common_floor_is_optimal(loss):
    circle = optdp.Circle(2 * math.pi)
    solution = optdp.solve_kernel(1, loss, domain=circle)
    assert solution.value == optdp.solve_piecewise(1, 3, loss, domain=circle).value
    assert solution.verify()
    assert solution.gap < 1e-9


def test_rotation_symmetry_argument_against_a_linear_program_on_a_discrete_circle():
    """All kernels on n points of a circle: the optimum is that of a common floor, sum_d L(d) f(d) with f in {c, E c}."""
    from scipy.optimize import linprog

    n, e = 12, math.e
    distance = np.minimum(np.arange(n), n - np.arange(n)) / n
    free = optdp.solve_kernel(
        1, distance[np.abs(np.subtract.outer(np.arange(n), np.arange(n)))], domain=optdp.Alphabet(n)
    )
    ratio = np.vstack([np.eye(n)[i] - e * np.eye(n)[j] for i in range(n) for j in range(n) if i != j])
    common = linprog(distance, A_ub=ratio, b_ub=np.zeros(len(ratio)), A_eq=np.ones((1, n)), b_eq=[1]).fun
    assert free.lower_bound <= common * (1 + 1e-9)
    assert free.value == pytest.approx(common, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"eps": 0}, ValueError, "eps"),
        ({"eps": math.nan}, ValueError, "eps"),
        ({"eps": 1, "loss": "cubic"}, ValueError, "loss"),
        ({"eps": 1, "loss": [[0, 1], [1, 0]]}, ValueError, "loss"),
        ({"eps": 1, "loss": optdp.PairLoss(lambda x, y: abs(x - y))}, ValueError, "loss"),
        ({"eps": 1, "loss": optdp.Threshold(0)}, ValueError, "loss"),
        ({"eps": 31}, ValueError, "eps"),
        ({"eps": 1, "loss": "abs", "unbiased": True}, ValueError, "variance"),
        ({"eps": 1, "unbiased": 1}, TypeError, "unbiased"),
        ({"eps": 1, "unbiased": True, "domain": (-1, 1), "outputs": (-1, 1)}, ValueError, "outputs"),
        ({"eps": 1, "outputs": (2, 3)}, ValueError, "outputs"),
        ({"eps": 1, "outputs": 3}, TypeError, "outputs"),
        ({"eps": 1, "rtol": 0}, ValueError, "rtol"),
        ({"eps": 1, "time_limit": -1}, ValueError, "time_limit"),
        ({"eps": 1, "backend": "magic"}, ValueError, "backend"),
        ({"eps": 1, "prior": [0.5, 0.5]}, TypeError, "prior"),
        ({"eps": 1, "prior": ([0, 1], [0.5, 0.6])}, ValueError, "prior"),
        ({"eps": 1, "prior": ([0, 1], [-0.5, 1.5])}, ValueError, "prior"),
        ({"eps": 1, "prior": ([0, 2], [0.5, 0.5])}, ValueError, "prior points"),
        ({"eps": 1, "prior": ([0, 1], [1.0, 0.0])}, ValueError, "prior"),
        ({"eps": 1, "domain": optdp.Circle(1), "unbiased": True}, ValueError, "unbiased = True .*Circle"),
        ({"eps": 1, "domain": optdp.Circle(1), "outputs": (0, 1)}, ValueError, r"outputs = \(0, 1\) .*Circle"),
    ],
)
def test_bad_input_is_named(arguments, error, words):
    with pytest.raises(error, match=words):
        optdp.solve_kernel(**arguments)


def test_powers_that_are_no_polynomials_at_large_epsilon():
    """Integrals over narrow windows were not cut where the loss is steep, and windows might not be narrower: the gap was 0.32."""
    solution = optdp.solve_kernel(20, optdp.Power(0.5), rtol=0.05)
    assert solution.gap <= 0.05 and solution.verify()


@pytest.mark.parametrize(
    "eps, loss",
    [(1.0, optdp.Pieces((0, 0.3), ((0, 1), (1, 1)))),
     pytest.param(2.0, optdp.Pieces((0, 0.25, 0.6), ((0, 1), (1, 1), (2, 1))), marks=pytest.mark.soak),
     (0.5, lambda d: d**2 + 0.5 * (d > 0.2))],
)  # fmt: skip
def test_losses_that_jump_are_bracketed(eps, loss):
    """What only just met a jump in floats was beyond it in proofs, and thresholds lay in jumps: gaps of 0.05 to 0.4."""
    solution = optdp.solve_kernel(eps, loss, rtol=1e-2)
    assert solution.gap <= 1e-2 and solution.verify()


def test_a_solve_that_may_not_refine_still_returns_a_valid_bracket():
    solution = optdp.solve_kernel(4, rtol=1e-6, time_limit=1e-3)
    assert solution.status is optdp.Status.TIME_LIMIT
    assert solution.gap > 1e-6 and solution.value <= 0.5
    assert solution.verify()


@pytest.mark.parametrize("prior", [None, "uniform"])
def test_all_solves_of_a_program_share_the_time_limit(prior):
    """Each is given what those before it have left: a solver that takes nearly all it may every time cannot go on and on."""

    class Noting(optdp.solvers.LinearSolver):
        name = "noting"

        def __init__(self):
            self.limits = []

        def solve(self, program, *, time_limit=math.inf):
            self.limits.append(time_limit)
            return optdp.solvers.Highs().solve(program, time_limit=time_limit)

    solver = Noting()
    optdp.solve_kernel(3, prior=prior, rtol=0.02, time_limit=1e6, solver=solver)
    assert len(solver.limits) > 5
    assert all(later < before for before, later in pairwise(solver.limits))


@pytest.mark.parametrize("steps", [0, 1, 2, 6, 20])
@pytest.mark.parametrize(
    "eps, options",
    [
        (4, {"loss": "squared"}),
        (20, {}),
        (10, {"unbiased": True}),
        (4, {"prior": "uniform"}),
        (4, {"prior": ([0, 0.3, 1], [0.2, 0.3, 0.5])}),
    ],
)
def test_a_search_may_end_anywhere(monkeypatch, eps, options, steps):
    """Whenever the time is up there is a bracket that holds, and what was not finished is not taken for finished."""
    asked = []
    monkeypatch.setattr(Run, "left", lambda run: asked.append(1) or 100.0 * (len(asked) <= steps))
    solution = optdp.solve_kernel(eps, rtol=1e-5, **options)
    monkeypatch.undo()
    assert solution.verify() and 0 <= solution.lower_bound <= solution.value
    assert solution.status in (optdp.Status.TIME_LIMIT, optdp.Status.OPTIMAL)


def test_the_answer_is_a_function_of_the_arguments():
    """Work is counted: another time limit, or another run, gives the same digits."""
    one, two = optdp.solve_kernel(2, rtol=5e-3), optdp.solve_kernel(2, rtol=5e-3, time_limit=1e6)
    assert (one.value, one.lower_bound) == (two.value, two.lower_bound)
    assert one.mechanism == two.mechanism and one.certificate == two.certificate


def test_certificates_of_all_kinds_round_trip(solved):
    average = optdp.solve_kernel(1, prior=([0.1, 0.9], [0.5, 0.5]))
    for solution in (solved(1.0), solved(1.0, "squared"), solved(1.0, None, True), average):
        data = json.loads(json.dumps(solution.certificate.to_dict()))
        assert not {"eps", "loss", "width", "bound", "prior", "outputs"} & set(data)
        assert Certificate.read(Fields(data, "certificate")) == solution.certificate
    assert average.certificate.mesh == () and len(average.certificate.points) >= 1


def test_solutions_are_pickled_and_models_are_built_when_asked_for(solved, tmp_path):
    """The last master program: the floor's mass, and cuts; or for points that of all pairs. Its value lies near the bracket, and
    so does its file's.
    """
    points = optdp.solve_kernel(1, prior=([0.1, 0.9], [0.5, 0.5]))
    floor, pairs = (1, {"value", "density", "atom"}), (2, {"kernel", "floor"})
    for solution, (rows, names) in ((solved(1.0), floor), (solved(1.0, None, True), floor), (points, pairs)):
        again = pickle.loads(pickle.dumps(solution))
        assert again == solution and again.verify()
        model = again.program.model
        assert model.blocks["mass"] == slice(0, rows) and names <= set(model.variables)
        again.program.write(tmp_path / "model.mps")
        optimum = optdp.solvers.read(tmp_path / "model.mps").solve().objective
        assert optimum == pytest.approx(model.solve().objective, rel=1e-7)
        assert again.lower_bound * (1 - 2e-2) <= again.program.objective <= again.value * (1 + 1e-3)


@pytest.mark.parametrize("domain", [(0, 1), (-1, 3)])
def test_the_optimum_of_the_program_is_the_value(domain):
    solution = optdp.solve_kernel(1, "squared", rtol=0.01, domain=domain)
    assert solution.program.model.solve().objective == pytest.approx(solution.value, rel=0.01)


def test_a_solver_object_solves_the_programs():
    reference = optdp.solve_kernel(1, rtol=0.01)
    found = optdp.solve(reference.problem, 0.01, solver=optdp.solvers.Highs(method="ipm"))
    assert found.verify() and found.program.solver.startswith("HiGHS ipm")
    assert found.lower_bound <= reference.value and reference.lower_bound <= found.value and found.gap <= 0.01


def test_solve_says_what_it_would_need():
    for problem, words in (
        (optdp.Problem(optdp.LDP(1), (0, 1), optdp.Threshold(0)), "loss = .*polynomial pieces"),
        (
            optdp.Problem(optdp.LDP(1), (0, 1), optdp.Quantile(0.9)),
            "objective = 0.9-quantile .* a worst case or an average",
        ),
        (optdp.Problem(optdp.LDP(1), (0, 1), optdp.At("abs", 0)), "objective = abs at 0 .* a worst case or an average"),
        (optdp.Problem(optdp.LDP(31), (0, 1), "abs"), r"eps in \(0, 30\]"),
        (optdp.Problem(optdp.LDP(1), (0, 1), "abs", constraints=[optdp.Unbiased()]), "variance"),
        (
            optdp.Problem(optdp.LDP(1), (0, 1), "squared", constraints=[optdp.Unbiased(), optdp.Outputs(0, 1)]),
            "beyond both ends",
        ),
    ):
        with pytest.raises(ValueError, match=f"kernel: .*{words}"):
            optdp.solve(problem)


@pytest.mark.parametrize("eps", [1e-6, 1.3e-6, 1e-5, 1e-3])
def test_the_least_variance_at_small_epsilon(eps):
    """A fair coin on the ends proves 1/(4 sinh^2(eps/2)), which two outputs 1/eps away nearly attain."""
    found = optdp.solve_kernel(eps, unbiased=True, rtol=1e-4)
    assert found.lower_bound == pytest.approx(1 / (4 * math.sinh(eps / 2) ** 2), rel=1e-5)
    assert found.gap <= 1e-4 and found.verify()


@pytest.mark.parametrize("breaks", [2, 7, pytest.param(200, marks=pytest.mark.soak)])
def test_averages_under_densities_that_jump(breaks):
    """The bracket closes, and agrees with that of finitely many points in the middle of many cells of the same masses."""
    edges = [Fraction(k * k, (breaks + 1) ** 2) for k in range(breaks + 2)]
    density = optdp.Density.proportional(edges, [(1 + k % 2 * 3,) for k in range(breaks + 1)])
    found = optdp.solve_kernel(1.0, prior=density, rtol=5e-3)
    assert found.gap <= 5e-3 and found.verify()
    ends = np.linspace(0, 1, 101)
    masses = [density.mass(Fraction(a), Fraction(b)) for a, b in pairwise(ends.tolist())]
    points = optdp.solve_kernel(
        1.0, prior=(((ends[1:] + ends[:-1]) / 2).tolist(), [float(m) for m in masses]), rtol=5e-3
    )
    apart = 0.5 / 100  # |y - x| changes by at most that
    assert points.lower_bound - apart <= found.value and found.lower_bound <= points.value + apart


@pytest.mark.parametrize("loss", [pytest.param("abs", marks=pytest.mark.soak), "squared"])
@pytest.mark.parametrize(
    ("low", "high"),
    [
        pytest.param("0", "3/10", marks=pytest.mark.soak),
        pytest.param("21/100", "47/100", marks=pytest.mark.soak),
        ("3/5", "1"),
    ],
)
def test_averages_under_a_density_on_a_part_of_the_domain(loss, low, high):
    """The bracket closes, and agrees with that of the part alone as the whole domain, under the uniform density."""
    part = Fraction(low), Fraction(high)
    density = optdp.Density(part, ((1 / (part[1] - part[0]),),))
    found = optdp.solve_kernel(6.0, loss, prior=density)
    assert found.gap <= 1e-3 and found.verify()
    alone = optdp.solve_kernel(6.0, loss, domain=tuple(map(float, part)), prior="uniform")
    # Rows of inputs elsewhere may be those of the nearest end, and outputs elsewhere may move to it.
    assert found.lower_bound <= alone.value * (1 + 1e-12) and alone.lower_bound <= found.value * (1 + 1e-12)


def limits(eps, room):
    """Outputs that reach so many times as far beyond the domain as they must."""
    return -room / math.expm1(eps), 1 + room / math.expm1(eps)


@pytest.mark.parametrize(
    ("eps", "points", "chances", "outputs"),
    [
        (0.5, (0.3, 0.6), (0.5, 0.5), None), (0.3586, (0.186, 0.197), (0.68, 0.32), None),
        (0.5, np.linspace(0.05, 0.85, 8), (0.05, 0.1, 0.2, 0.1, 0.15, 0.1, 0.2, 0.1), limits(0.5, 1.6)),
        (1.0, (0.2, 0.5, 0.9), (0.3, 0.4, 0.3), None), (1.0, (0.0, 0.4, 0.7), (0.2, 0.5, 0.3), limits(1.0, 1.5)),
        (2.0, (0.5, 0.51), (0.5, 0.5), None), (6.0, (0.2, 0.5, 0.9), (0.3, 0.4, 0.3), limits(6.0, 4.0)),
        (6.0, (0.3, 0.6), (0.5, 0.5), None),
        (0.7, (0.0, 0.288), (0.9999, 1e-4), limits(0.7, 1.3)),  # the other end is reached for an input of no weight
        (3.2966, (0.089, 0.589, 0.808), (0.1, 0.1, 0.8), limits(3.2966, 1.07)),  # unbounded without rows at both ends
        (0.0139, (0.0, 1.0), (0.988, 0.012), None),  # means are reached to the program's tolerance
    ],
)  # fmt: skip
def test_unbiased_averages_where_the_ends_of_the_domain_have_no_weight(eps, points, chances, outputs):
    found = optdp.solve_kernel(eps, unbiased=True, prior=(list(points), list(chances)), outputs=outputs)
    assert found.gap <= 1e-3 and found.verify()


@pytest.mark.parametrize(
    ("eps", "density"),
    [
        (0.5, "uniform"), (0.5, optdp.Density((0.25, 0.5), ((4,),))),
        # Hardly any density at an end, and windows one end of which all but stands still.
        pytest.param(0.01, optdp.Density.beta(3, 1), marks=pytest.mark.soak),
        *(pytest.param(eps, optdp.Density.beta(2, 5), marks=pytest.mark.soak) for eps in (0.1, 1.0)),
        (0.2686, optdp.Density.beta(5, 8)),
    ],
    ids=["uniform", "a part", "0.01, Beta(3, 1)", "0.1, Beta(2, 5)", "1, Beta(2, 5)", "0.2686, Beta(5, 8)"],
)  # fmt: skip
def test_unbiased_averages_under_densities(eps, density):
    found = optdp.solve_kernel(eps, unbiased=True, prior=density)
    assert found.gap <= 1e-3 and found.verify()


def test_an_unbiased_average_under_a_density_that_is_stopped_at_once_has_a_bound():
    found = optdp.solve_kernel(10.0, unbiased=True, prior=optdp.Density.beta(1, 2), time_limit=1e-9)
    assert found.lower_bound > 1e-5 and found.verify()


def test_means_at_the_ends_of_the_domain_are_all_that_binds():
    """The plain program with means at many inputs without weight, at both ends alone, and at none of them."""
    points, chances, y = [0.3, 0.6], [0.5, 0.5], np.linspace(-1.5, 2.5, 81)

    def least(more):
        inputs = np.append(points, more)
        prior = np.append(chances, np.zeros(len(more)))
        return plain_program(np.square(y - inputs[:, None]), 1.0, prior, (y, inputs)).solve().checked().objective

    ends, own = least([0.0, 1.0]), optdp.solve_kernel(1.0, unbiased=True, prior=(points, chances))
    assert ends == pytest.approx(least(np.linspace(0, 1, 11)), rel=1e-6)
    assert own.lower_bound <= ends * (1 + 1e-6) and ends <= 1.01 * own.value and least([]) < 0.1 * ends
    dense = optdp.solve_kernel(1.0, unbiased=True, prior=(points, chances), backend="dense")
    assert dense.gap <= 0.02 and dense.verify() and len(dense.certificate.rays) == 2


@pytest.mark.soak
@pytest.mark.parametrize("eps", [1e-6, 0.01, 0.1, 0.5, 1, 2, 3, 4, 6, 8, 10, 12, 16, 20, 30])
@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_the_bracket_closes_at_every_epsilon(eps, loss):
    found = optdp.solve_kernel(eps, loss)
    assert found.gap <= 1e-3 and found.verify()


@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_binding_inputs_are_centred(loss):
    """docs/kernel-structure.md: where the prior has a density x is the median (mean) of its row; the floor is tied there."""
    eps = 8.0 if loss == "abs" else 4.0
    s = optdp.solve_kernel(eps, loss, rtol=1e-3)
    mechanism, proof = s.mechanism, s.certificate
    density = np.sum(proof.densities, axis=0)
    x = np.linspace(0.2, 0.8, 61)
    x = x[np.interp(x, proof.mesh, density) > 0.3 * np.median(density[density > 0])]
    assert x.size > 10
    low, high = mechanism.favoured(x)
    masses, lows, highs = mechanism.floor()
    wide = np.where(highs > lows, highs - lows, 1.0)

    def below(y):
        return np.where(highs > lows, np.clip((y[:, None] - lows) / wide, 0, 1), lows < y[:, None]) @ masses

    growth, length = np.expm1(eps), high - low
    if loss == "squared":
        assert np.median(np.abs(mechanism.mean(x) - x) / length) < 2e-3
        return
    lower = below(x) + growth * (below(x) - below(low))
    assert np.median(np.abs(lower - 0.5)) < 2e-3
    step = 0.25 * length  # densities as masses around a point
    left, middle, right = ((below(v + step) - below(v - step)) / (2 * step) for v in (low, x, high))
    ratio = middle * np.exp(eps) / (growth * 2 * left * right / (left + right))
    assert abs(np.median(ratio) - 1) < 0.02


@pytest.mark.parametrize(
    ("eps", "loss", "points", "chances"),
    [
        (5, "abs", (0.1, 0.5, 0.85), (0.2, 0.5, 0.3)),
        (8, "abs", (0.1, 0.5, 0.85), (0.2, 0.5, 0.3)),
        (12, optdp.Pinball(0.2), (0.03, 0.12, 0.38, 0.39, 0.62, 0.65, 0.67, 0.98), (0.125,) * 8),
    ],
)
def test_the_best_outputs_for_few_inputs_are_these_inputs(eps, loss, points, chances):
    solution = optdp.solve_kernel(eps, loss, prior=(points, chances))
    assert solution.gap <= 1e-6
    assert solution.verify()
    outputs = set(solution.mechanism.lows) | set(solution.mechanism.highs)
    assert {min(points, key=lambda x: abs(x - y)) for y in outputs} == set(points)
    assert max(min(abs(x - y) for x in points) for y in outputs) < 1e-12


@pytest.mark.parametrize("eps", [1e-6, 0.01, 0.012, 0.03])
@pytest.mark.parametrize("domain", [(0, 1), (-3, 50.7)])
def test_the_least_variance_at_tiny_epsilon_to_five_digits(eps, domain):
    solution = optdp.solve_kernel(eps, unbiased=True, domain=domain, rtol=1.1e-5)
    assert solution.gap <= 1.1e-5
    assert solution.verify()
    tau, half = math.tanh(eps / 2), (domain[1] - domain[0]) / 2
    optimum = half**2 * (1 / (tau * math.tanh(tau)) - 1)
    assert solution.lower_bound <= optimum * (1 + 1e-9)
    assert optimum * (1 - 1e-9) <= solution.value


@pytest.mark.parametrize(
    ("eps", "tau"), [(9, 0.01), *(pytest.param(*case, marks=pytest.mark.soak) for case in ((9, 0.99), (30, 0.2)))]
)
def test_far_quantiles_at_large_epsilon(eps, tau):
    """Windows that are all a little too wide have no prior; windows of few cells lose little where both ends lose alike."""
    solution = optdp.solve_kernel(eps, optdp.Pinball(tau))
    assert solution.gap <= 1e-3
    assert solution.verify()


@pytest.mark.parametrize(("limit", "upper"), [(0.1, 1.0), (0.25, 1.0), (0.3, 1.0), (10.0, 100.0), (5.0, 100.0)])
def test_thresholds_are_covers_and_packings(limit, upper):
    """n windows that cover the domain miss with probability (n - 1)/(e^eps + n - 1), at every float where two of them meet."""
    n = math.ceil(Fraction(upper) / (2 * Fraction(limit)))
    best = optdp.solve_kernel(1.0, optdp.Threshold(limit), domain=(0, upper), rtol=1e-9)
    assert best.lower_bound == pytest.approx((n - 1) / (math.e + n - 1), rel=1e-12) and best.verify()
    assert best.gap < 1e-12
    atoms = best.mechanism.atoms()
    meet = [float(Fraction(y) + side * Fraction(limit)) for y in atoms for side in (-1, 1)]
    near = np.array([x for m in meet for x in (np.nextafter(m, -1), m, np.nextafter(m, 2 * upper))] + [0.0, upper])
    near = near[(near >= 0) & (near <= upper)]
    far = np.array([[abs(Fraction(y) - Fraction(x)) > Fraction(limit) for y in atoms] for x in near.tolist()])
    missed = (best.mechanism.probability(atoms[None], near[:, None]) * far).sum(axis=1)
    assert missed.max() == pytest.approx(best.value, rel=1e-12)


@pytest.mark.parametrize("loss", ["abs", optdp.Pinball(0.8), optdp.Pinball(0.3)])
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_losses_of_two_lines_are_integrated_in_closed_form(loss, seed):
    problem = optdp.Problem(optdp.LDP(1), optdp.Interval(0, 1), optdp.WorstCase(loss), optdp.AllMechanisms())
    cost, rng = Task(problem).cost, np.random.default_rng(seed)
    y = np.sort(rng.uniform(-0.5, 1.5, 12))
    atoms = np.where(rng.random(12) < 0.4, rng.random(12), 0.0)
    floor = Floor(y, rng.random(11), rng.random(11), atoms)
    np.testing.assert_allclose(cost.of(y), problem.loss.of(0.0, y) / cost.unit, atol=1e-15)
    x = np.concatenate([rng.uniform(-1.0, 2.0, 20), y])
    for mirrored in (False, True):
        plain = floor.far(x, replace(cost, lines=None), mirrored=mirrored)
        np.testing.assert_allclose(floor.far(x, cost, mirrored=mirrored), plain, atol=1e-13)


@pytest.mark.parametrize(
    ("eps", "options"),
    [(2.0, {}), pytest.param(3.0, {"loss": "squared"}, marks=pytest.mark.soak), (4.0, {"unbiased": True})],
)
def test_no_input_loses_more_than_the_floor_is_said_to(monkeypatch, eps, options):
    """Between the inputs that a search looks at the loss is no larger, but for what it may be."""
    found, rtol, solve = [], 1e-4, master.solve
    monkeypatch.setattr(master, "solve", lambda task, *rest: found.append((task, solve(task, *rest))) or found[-1][1])
    optdp.solve_kernel(eps, rtol=rtol, **options)
    for task, one in found:
        x, a, b = one.floor.samples(task.cost, task.growth, 40, high=task.half)
        losses = one.floor.values(x, a, b, task.cost, task.growth)
        assert losses.max() <= one.value * (1 + 2 * master.ROOM * rtol / 20)


#: Steps between nodes, heights and atoms.
PARTS = st.integers(1, 12).flatmap(
    lambda n: st.tuples(*(st.lists(st.floats(0, 1), min_size=n + 1, max_size=n + 1),) * 3)
)


def _floor(parts, eps, share):
    """One with atoms and gaps whose mass is this share of the way from e^-eps to 1."""
    steps, heights, atoms = map(np.array, parts)
    y = np.concatenate([[0.0], np.cumsum(steps + 0.01)])[:-1]
    y = y / y[-1] if y.size > 1 else y
    whole = Floor.of_hats(y, np.where(heights < 0.3, 0.0, heights), np.where(atoms < 0.6, 0.0, atoms))
    assume(whole.total > 1e-3)
    mass = np.exp(-eps) + share * -np.expm1(-eps)
    return Floor(y, *(part * mass / whole.total for part in (whole.left, whole.right, whole.atoms)))


@given(PARTS, st.sampled_from(["abs", optdp.Pinball(0.2), optdp.Pinball(0.7)]), st.floats(0.05, 9), st.floats(0, 0.99))
def test_losses_of_two_lines_are_known_from_masses_and_moments(parts, loss, eps, share):
    """Of many inputs, as the sum over the cells of windows of few; what is far away was interpolated, and too high."""
    floor = _floor(parts, eps, share)
    cost, growth = Cost.of_problem(optdp.Problem(optdp.LDP(eps), (0, 1), loss)), np.expm1(eps)
    x, a, b = floor.samples(cost, growth, 4)
    assert floor.values(x, a, b, cost, growth, 1) == pytest.approx(floor.values(x, a, b, cost, growth), abs=1e-10)


@example(([0.5, 0.5], [1.0, 1.0], [0.0, 0.0]), "abs", 1.0, 0.3, 0.0)
@given(
    PARTS,
    st.sampled_from(["abs", "squared", optdp.Pinball(0.2)]),
    st.floats(0.05, 8),
    st.floats(0, 1),
    st.floats(0, 0.99),
)
def test_windows_are_the_least_that_hold_their_mass(parts, loss, eps, x, share):
    """Whatever atoms and gaps the floor has: mass at least the window's within the reach, and less within less."""
    floor = _floor(parts, eps, share)
    cost, growth, at = Cost.of_problem(optdp.Problem(optdp.LDP(eps), (0, 1), loss)), np.expm1(eps), np.array([x])
    (a,), (b,) = floor.ends(at, cost, growth)
    (p, q), width = cost.slopes, floor.window(growth)
    reach = (b - x) / q
    assert a == pytest.approx(x + p * reach, abs=1e-12)

    def held(t):
        ends = np.array([x + q * t]), np.array([x + p * t])
        return float((floor.cdf(ends[0], closed=True) - floor.cdf(ends[1], closed=False))[0])

    assert held(reach + 1e-9) >= width * (1 - 1e-6) - 1e-9
    assert reach < 1e-6 or held(reach - 1e-6) <= width * (1 + 1e-6)


@pytest.mark.parametrize("eps", [0.01, 0.1, 1.0, 1.7])
def test_two_outputs_are_tried_first(eps):
    """They are the best for the squared error at small eps: found without a program."""
    solution = optdp.solve_kernel(eps, "squared")
    share = np.exp(eps) / (1 + np.exp(eps)) ** 2
    assert solution.lower_bound <= share <= solution.value * (1 + 1e-15)
    assert solution.gap <= 1e-5 and len(solution.mechanism.cells) == 2
    assert solution.lower_bound * (1 - 1e-6) <= solution.program.model.solve().objective <= solution.value * (1 + 1e-6)


def test_a_wide_bracket_needs_a_small_certificate():
    """The first mesh is as fine as the gap that is asked for."""
    nodes = [len(optdp.solve_kernel(1.0, rtol=rtol).certificate.mesh) for rtol in (1e-1, 1e-2, 1e-3)]
    assert nodes[0] <= 9 and nodes == sorted(nodes)


@pytest.mark.parametrize("loss", [optdp.Threshold(0.07), optdp.Threshold(0.3), "abs"])
@pytest.mark.parametrize("own", ["abs", optdp.Pinball(0.2)])
def test_no_input_loses_much_more_than_the_worst_one(own, loss):
    """A loss that jumps does so where an output is at the distance of a jump, and may be highest just beside that input."""
    mechanism = optdp.solve_kernel(1.0, own).mechanism
    inputs = np.linspace(0, 1, 20001)
    assert mechanism.worst_case_loss(loss) >= mechanism.expected_loss(inputs, loss).max() * (1 - 1e-4)


def test_what_is_known_is_not_computed_again_once_time_is_up(monkeypatch):
    """A limit of 10 seconds took 40 where each enclosure of a floor takes 10 (powers at a large eps)."""
    kept = []
    monkeypatch.setattr(Search, "_keep_value", lambda search, found, most=0: kept.append(found))
    monkeypatch.setattr(Run, "left", lambda run: 100.0 * (not kept))
    bound = Search._keep_bound
    monkeypatch.setattr(Search, "_keep_bound", lambda search, *of: bound(search, *of) or (kept and kept.append(of)))
    solution = optdp.solve_kernel(2, "abs", rtol=0.01)
    assert len(kept) == 1 and solution.status is optdp.Status.TIME_LIMIT


def test_once_time_is_up_one_proof_that_is_nearly_as_good_will_do(monkeypatch):
    """Powers are proven from pieces below them, and five more proofs, hardly any higher, took twice as long as was asked for."""
    proofs, late, take, refine = [], [], Search._take, Search._refined

    def taken(search, made):
        proofs.extend(late)
        return take(search, made) * (1 - 5e-5)

    monkeypatch.setattr(Search, "_take", taken)
    monkeypatch.setattr(Search, "_refined", lambda search, *meshes: late.append(1) or refine(search, *meshes))
    monkeypatch.setattr(Run, "left", lambda run: 100.0 * (not late))
    found = optdp.solve_kernel(2, "abs", rtol=1e-5)
    assert found.status is optdp.Status.TIME_LIMIT and len(proofs) == 1 and found.gap < 0.01 and found.verify()


@pytest.mark.parametrize("attained", [-np.inf, np.inf])
def test_a_proof_that_fails_is_not_the_last_one_where_nothing_is_attained(monkeypatch, attained):
    """Once time is up any would do, also one that proves nothing, where no floor was known or none reached every mean."""
    proofs, late, bound = [], [], Search._keep_bound

    def kept(search, dual, *of):
        late.append(1)
        monkeypatch.setattr(Search, "_take", lambda search, made: proofs.append(made) or -np.inf)
        bound(search, dual, attained)

    monkeypatch.setattr(Search, "_keep_bound", kept)
    monkeypatch.setattr(Run, "left", lambda run: 100.0 * (not late))
    optdp.solve_kernel(2, "abs", rtol=1e-3)
    assert len(proofs) >= 3


@pytest.mark.parametrize(("name", "status"), [
    ("", optdp.Status.GAP), ("_keep_bound", optdp.Status.TIME_LIMIT), ("_keep_value", optdp.Status.GAP),
])  # fmt: skip
def test_time_that_is_up_at_the_finest_mesh_is_said_to_be(monkeypatch, name, status):
    """The finest mesh was said to have been reached, though pieces were fewer than there might have been; and where time is up
    only when nothing is left to be done, the limit was.
    """
    late, solve = [], master.solve
    monkeypatch.setattr(search, "FINEST", 1)
    monkeypatch.setattr(master, "solve", lambda task, y, cuts, rtol, *of: solve(task, y, cuts, rtol / 10, *of))
    if name:
        last = getattr(Search, name)
        monkeypatch.setattr(Search, name, lambda search, *of: late.append(1) or last(search, *of))
    monkeypatch.setattr(Run, "left", lambda run: 100.0 * (not late))
    found = optdp.solve_kernel(2, "abs", rtol=1e-6)
    assert bool(late) == bool(name) and found.status is status and found.gap > 1e-6
    assert ("time limit" in found.program.message) == (status is optdp.Status.TIME_LIMIT)


def test_more_time_is_not_asked_for_where_it_is_of_no_use(monkeypatch):
    """Time was said to have been short where the domain's floats are too far apart for what is asked."""
    fine, late, refine, bound = [], [], Search._refined, Search._keep_bound
    monkeypatch.setattr(Search, "_refined", lambda search, *of: fine.append(1) or refine(search, *of))
    monkeypatch.setattr(Search, "_keep_bound", lambda search, *of: late.extend(fine) or bound(search, *of))
    monkeypatch.setattr(Run, "left", lambda run: 100.0 * (not late))
    found = optdp.solve_kernel(1, "abs", domain=(1e6, 1e6 + 2**-20), rtol=1e-5)
    assert late and found.gap > 1e-5 and found.status is optdp.Status.GAP and "too far apart" in found.program.message


def test_pieces_are_no_more_than_can_be_proven_within_the_limit(monkeypatch):
    """A limit of 5 seconds was followed by 15 of proof, and what verifies the result was to be given more than it takes."""
    sizes = []
    monkeypatch.setattr(search, "FINEST", 1)
    monkeypatch.setattr(Run, "left", lambda run: 100.0)
    for second in (3000, 60):
        monkeypatch.setattr(search, "EXACT", second)
        found = optdp.solve_kernel(2, "abs", rtol=1e-6, time_limit=5)
        sizes.append(len(found.mechanism.lows))
        assert found.gap < 1e-3 and found.verify()
    assert sizes[1] <= 60 * (3 + 5) / 2 < sizes[0]


@pytest.mark.parametrize(("q", "eps"), [(0.45, 1.0), (0.5, 4.0), (0.7, 3.0), (0.9, 12.0)])
def test_powers_below_one_are_nothing_next_to_0(q, eps):
    """Where atoms are at inputs, all that pieces above them are there is lost: 1.4e-3 at 0 was, and gaps never below 3e-4."""
    above = optdp.Power(q).branches(Fraction(1), False, eps)
    assert above(Fraction(0)) <= 1.0001e-5 * np.exp(-eps * q / (1 + q))
    assert above(Fraction(0)) >= 0


@pytest.mark.soak
def test_a_power_below_one_is_solved_to_narrow_tolerances():
    """A gap of 3.7e-4 was what was left after any time. What is found verifies within the usual limit."""
    found = optdp.solve_kernel(3.0, optdp.Power(0.7), rtol=2e-4, time_limit=60)
    assert found.gap <= 2e-4 and found.verify()


@pytest.mark.parametrize("q", [0.5, 1.0, 1.5])
def test_windows_of_less_than_a_billionth_are_those_of_one_atom(q):
    """They reached over two more atoms, and losses were negative: averages from eps = 12 on had no better floor."""
    eps, y = 12.0, np.linspace(0, 1, 9)
    atoms = np.random.default_rng(1).random(9)
    floor = Floor(y, *np.zeros((2, 8)), atoms / atoms.sum() * (1 - 1.6e-6))
    x = np.concatenate([y[1:-1] + 2e-4, y[1:-1] - 3e-3])
    cost = Cost.of_problem(optdp.Problem(optdp.LDP(eps), (0, 1), optdp.Power(q)))
    a, b = floor.ends(x, cost, np.expm1(eps))
    np.testing.assert_allclose((b - a) / 2, np.repeat([2e-4, 3e-3], 7), atol=1e-9)
    assert floor.values(x, a, b, cost, np.expm1(eps)).min() >= 0


@pytest.mark.parametrize("q", [1.5, 2.5, 3.5])
def test_losses_of_a_floor_are_integrals_of_powers_in_narrow_windows_too(q):
    """A window of a cell's width around the kink of |u|^2.5 at 0: its integral was off by half a percent."""
    eps, growth = 20.0, math.expm1(20.0)
    cost = Cost.of_problem(optdp.Problem(optdp.LDP(eps), (0.0, 1.0), optdp.Power(q), optdp.AllMechanisms()))
    floor = Floor(np.linspace(0, 1, 65), *np.full((2, 64), 1 / (1 + growth / 100)), np.zeros(65))
    x = np.linspace(0.1, 0.5, 40)
    a, b = x - 0.005, x + 0.005
    near = 2 * 0.005 ** (q + 1) / (q + 1) - 0.01 * 0.005**q  # what a window saves, by its threshold
    whole = (x ** (q + 1) + (1 - x) ** (q + 1)) / (q + 1)
    threshold = 0.005**q * (1 - floor.total)
    expected = threshold + floor.total * whole + growth * floor.total * near
    np.testing.assert_allclose(floor.values(x, a, b, cost, growth), expected, rtol=1e-4)


@pytest.mark.parametrize(("power", "rtol"), [(100, 0.01), (40, 1e-3)])
def test_two_outputs_near_the_middle_are_nearly_the_best_for_high_powers(power, rtol):
    """Of these only some that are further apart were looked at: the gap was 0.12 and 0.007."""
    found = optdp.solve_kernel(1.0, optdp.Power(power), rtol=rtol)
    assert found.verify() and found.gap <= rtol


def test_proofs_for_losses_in_many_pieces_are_counted_as_they_are_done():
    """Work was counted for pieces that are never looked at, and twice for what is kept: twice the limit where it took a tenth.

    At eps = 10 proofs of such losses, which take 2 s, were refused by the usual limit.
    """
    assert optdp.solve_kernel(2.0, optdp.CustomLoss(lambda d: np.minimum(d / 0.7987, 1))).verify(limit=1.0)


def test_a_jump_counts_where_the_loss_is_steep_beside_it():
    """Its pieces have larger kinks than the jump is high: it was none of the places that programs know, which gave [0, 0.135]."""
    loss = optdp.CustomLoss(lambda d: np.where(d < 0.5, 0, 0.5 + 2 * np.sqrt(np.maximum(d - 0.5, 0))))
    solution = optdp.solve_kernel(1.0, loss, rtol=0.01)
    assert solution.gap <= 0.01 and solution.lower_bound >= 0.995 * 0.5 / (1 + math.e) and solution.verify()

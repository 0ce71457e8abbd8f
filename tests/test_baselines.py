"""The published mechanisms on one footing: their published figures, and what must hold of any mechanism."""

import math
from fractions import Fraction
from functools import partial
from itertools import pairwise, product

import matplotlib.pyplot as plt
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.stats import chisquare, kstest

import optdp
from optdp.exact.fields import FieldError
from optdp.mechanisms import baselines
from optdp.mechanisms.baselines import windows
from optdp.mechanisms.baselines.calibrated import laplace
from optdp.mechanisms.baselines.clamped import ClampedLaplace, ClampedStaircase
from optdp.mechanisms.baselines.noise import Gaussian, Laplace
from optdp.mechanisms.baselines.windows import pm, ptt, sw
from optdp.mechanisms.piecewise import PiecewiseMechanism
from tests.conftest import epsilons, intervals

#: Biased baselines whose outputs stay in the domain.
BOUNDED = ("clamped Laplace", "clamped staircase", "moved PM", "moved SW", "moved PTT", "uniform")


def build(name, eps, domain=(0.0, 1.0)):
    """A baseline by its name, for a local problem."""
    return baselines.get(name).build(optdp.Problem(optdp.LDP(eps), optdp.Interval(*domain), "abs"))


#: Worst-case errors on [0, 1] from the artifact of OGPM (arXiv 2505.15483): PM and SW moved to [0, 1] are exact, the
#: last column is what Gurobi found for the m-piece program.
PUBLISHED = {
    "abs": {
        1.0: (0.3783600902345697, 0.37754066879814535, 0.37754076607173465),
        2.0: (0.274497772491912, 0.26894142136999516, 0.26894142301939755),
        3.0: (0.1969824784285004, 0.1824255238063564, 0.18242552545553978),
        4.0: (0.14435355455526153, 0.1192029220221176, 0.11920292367086255),
        6.0: (0.08832168100484947, 0.0474258731775668, 0.047422904744157786),
        8.0: (0.0635071760453854, 0.01798620996209161, 0.017982240475602526),
    },
    "squared": {
        1.0: (0.22477402094725768, 0.22087152733041573, 0.21729866040823076),
        2.0: (0.15210272725048146, 0.13786679920900724, 0.13111450677207928),
        3.0: (0.1084888133651397, 0.08299455575946778, 0.07451658731436633),
        4.0: (0.0826347232612697, 0.049207198419779885, 0.04063565842506801),
        6.0: (0.055461005055441305, 0.017308100023625362, 0.011294678763624772),
        8.0: (0.041654299763854416, 0.00621107248656415, 0.003023330367039975),
    },
}
#: Gurobi's feasibility tolerance: its optima at eps = 6 and 8 lie below the proven bound by no more than this.
GUROBI = 1e-5


@pytest.mark.parametrize("loss", ["abs", "squared"])
@pytest.mark.parametrize("eps", [1.0, 2.0, 3.0, 4.0, 6.0, 8.0])
def test_published_worst_cases_are_reproduced(loss, eps):
    square_wave, piecewise, gurobi = PUBLISHED[loss][eps]
    assert sw(eps).worst_case_loss(loss) == pytest.approx(square_wave, abs=1e-6)
    assert pm(eps).worst_case_loss(loss) == pytest.approx(piecewise, abs=1e-6)
    assert optdp.solve_piecewise(eps, 3, loss).value == pytest.approx(gurobi, abs=GUROBI)


@given(epsilons(0.02, 10))
def test_pm_is_optimal_for_abs_and_strictly_worse_for_squared(eps):
    assert pm(eps).worst_case_loss("abs") == pytest.approx(optdp.solve_piecewise(eps, 3, "abs").value, rel=1e-12)
    assert pm(eps).worst_case_loss("squared") > optdp.solve_piecewise(eps, 3, "squared").value


@pytest.mark.parametrize("make", [pm, sw, ptt])
@given(eps=epsilons(0.02, 10), power=st.floats(0.3, 4))
def test_piecewise_baselines_never_beat_the_certified_bound(make, eps, power):
    loss = optdp.Power(power)
    assert make(eps).worst_case_loss(loss) >= optdp.solve_piecewise(eps, 3, loss).lower_bound * (1 - 1e-12)


@pytest.mark.parametrize("name", BOUNDED)
@given(eps=epsilons(0.05, 8), domain=intervals(), share=st.floats(0.0, 1.0), power=st.sampled_from([1, 2, 0.7, 3]))
def test_expected_loss_is_the_integral_of_the_density_plus_the_atoms(name, eps, domain, share, power):
    mechanism, law = build(name, eps, domain), optdp.Power(power)
    low, high = domain
    x = min(low + share * (high - low), high)
    cuts = [low, x, high]
    if isinstance(mechanism, ClampedStaircase):
        drop = mechanism.gamma * (high - low)
        cuts += [p for p in (x - drop, x + drop) if low < p < high]
    if isinstance(mechanism, PiecewiseMechanism):
        start = mechanism.domain.lower + float(mechanism._window_start(np.asarray(x)))
        cuts += [p for p in (start, start + mechanism.window) if low < p < high]
    cuts = sorted(set(cuts))
    total = sum(
        quad(lambda y: float(law(abs(y - x)) * mechanism.density(y, x)), a, b, limit=200)[0]
        for a, b in pairwise(cuts)
        if b - a > 1e-9 * (high - low)
    )
    mass = sum(
        quad(lambda y: float(mechanism.density(y, x)), a, b, limit=200)[0]
        for a, b in pairwise(cuts)
        if b - a > 1e-9 * (high - low)
    )
    for end in domain:
        atom = float(mechanism.probability(end, x))
        total += atom * float(law(abs(end - x)))
        mass += atom
    assert mass == pytest.approx(1, abs=1e-6)
    assert float(mechanism.expected_loss(x, law)) == pytest.approx(total, rel=1e-5, abs=1e-12)


@pytest.mark.parametrize("name", BOUNDED)
@given(eps=epsilons(0.05, 8), share=st.floats(0.0, 1.0), power=st.sampled_from([1, 2, 0.7, 3]))
def test_no_input_is_worse_than_the_worst_one_and_the_average_lies_below(name, eps, share, power):
    mechanism, loss = build(name, eps), optdp.Power(power)
    worst = mechanism.worst_case_loss(loss)
    assert float(mechanism.expected_loss(share, loss)) <= worst * (1 + 1e-9)
    average = quad(
        lambda x: float(mechanism.expected_loss(x, loss)), 0, 1, limit=400, points=mechanism._kinks() or None
    )[0]
    assert mechanism.average_loss(loss) == pytest.approx(average, rel=1e-6)
    assert average <= worst * (1 + 1e-9)


@given(epsilons(0.05, 8))
def test_the_staircase_shares_are_the_optimal_ones_of_its_paper(eps):
    """gamma minimises the unclamped noise's E|Z|, E Z^2 (Geng and Viswanath, 2014): by brute force on the series."""
    step = np.arange(int(60 / eps) + 40)
    decay = np.exp(-eps * step)

    def noise(gamma, q):
        top = -math.expm1(-eps) / (2 * (gamma + math.exp(-eps) * (1 - gamma)))

        def power(t):
            return t ** (q + 1) / (q + 1)

        high = power(step + gamma) - power(step)
        low = power(step + 1.0) - power(step + gamma)
        return 2 * top * float(decay @ (high + math.exp(-eps) * low))

    for steps, q in [("abs", 1), ("squared", 2)]:
        gamma = ClampedStaircase(eps, optdp.Interval(), steps).gamma
        assert 0 < gamma < 1
        best = noise(gamma, q)
        for other in (gamma * 0.97, gamma + 0.03 * (1 - gamma)):
            assert noise(other, q) >= best * (1 - 1e-12)
    closed = 1 / (2 * math.sinh(eps / 2))  # their Theorem: Delta e^(eps/2)/(e^eps - 1)
    assert noise(ClampedStaircase(eps).gamma, 1) == pytest.approx(closed, rel=1e-9)


@pytest.mark.parametrize("make", [ClampedLaplace, ClampedStaircase])
@given(eps=epsilons(0.1, 6), share=st.floats(0.05, 0.95), seed=st.integers(0, 10**6))
def test_clamped_samples_match_density_and_atoms(make, eps, share, seed):
    mechanism = make(eps, optdp.Interval(-1, 3))
    x = -1 + 4 * share
    sample = mechanism.randomize(np.full(4000, x), seed)
    for end in (-1.0, 3.0):
        mass = float(mechanism.probability(end, x))
        assert np.mean(sample == end) == pytest.approx(mass, abs=6 * math.sqrt(mass * (1 - mass) / 4000) + 1e-3)
    inner = sample[(sample > -1) & (sample < 3)]
    grid = np.linspace(-1, 3, 20_001)
    density = mechanism.density((grid[:-1] + grid[1:]) / 2, x)
    cdf = np.concatenate(([0.0], np.cumsum(density)))
    if inner.size > 50:
        assert kstest(inner, lambda y: np.interp(y, grid, cdf / cdf[-1])).pvalue > 1e-7


@given(epsilons(0.05, 8))
def test_ptt_eta_minimises_the_worst_variance_of_mass_one(eps):
    d = math.expm1(eps)

    def variance(
        eta,
    ):  # MATH of I-PTT: (k - 1) + a / (3 (eta - 1)) (eta^3 / D + 1) with k = (D + eta)/D, a = k/(eta - 1)
        k = (d + eta) / d
        return (k - 1) + k / (3 * (eta - 1) ** 2) * (eta**3 / d + 1)

    best = windows.ptt_eta(eps)
    assert best > 1
    assert all(variance(best) <= variance(1 + (best - 1) * f) * (1 + 1e-12) for f in (0.5, 0.9, 0.99, 1.01, 1.1, 2.0))


def test_published_i_ptt_optimum():
    assert windows.ptt_eta(1.0) == pytest.approx(2.28876, abs=1e-5)


@given(st.floats(0.3, 0.7))
def test_square_wave_width_is_one_function(eps):
    """The series used for small epsilon and the formula agree where they meet."""
    e = math.exp(eps)
    assert windows._square_wave_width(eps) == pytest.approx((eps * e - e + 1) / (e * (e - 1 - eps)), rel=1e-9)


@pytest.mark.parametrize("name", BOUNDED)
def test_every_baseline_round_trips_and_has_its_privacy(name, tmp_path):
    mechanism = build(name, 0.8, (-2, 5))
    mechanism.save(tmp_path / "m.json")
    again = optdp.Mechanism.load(tmp_path / "m.json")
    assert again == mechanism and repr(again) == repr(mechanism)
    assert mechanism.privacy() <= 0.8
    x = np.linspace(-2, 5, 11)
    assert np.array_equal(again.randomize(x, 5), mechanism.randomize(x, 5))
    grid = np.linspace(-2, 5, 301)[1:-1]
    table = mechanism.density(grid[:, None], x[None, :])
    atoms = mechanism.probability(np.array([[-2.0], [5.0]]), x[None, :])
    for row in [*table, *atoms[atoms.sum(axis=1) > 0]]:
        assert row.max() <= math.exp(0.8) * row.min() * (1 + 1e-9)


def test_baselines_are_defined_on_intervals_only():
    for make in (pm, sw, ptt, ClampedLaplace, ClampedStaircase):
        with pytest.raises(ValueError, match="Circle is not allowed"):
            make(1.0, optdp.Circle(1.0))
        with pytest.raises(ValueError, match="eps = 0"):
            make(0)


def test_an_unknown_or_broken_file_is_refused():
    with pytest.raises(FieldError, match="mechanism = 'X'"):
        optdp.Mechanism.from_dict({"mechanism": "X"})
    with pytest.raises(FieldError, match="noise is missing"):
        optdp.Mechanism.from_dict({"mechanism": "ClampedLaplace"})


PROBLEMS = {
    "unbiased": optdp.Problem(optdp.LDP(1.0), (-1, 1), "squared", constraints=[optdp.Unbiased()]),
    "bounded": optdp.Problem(optdp.LDP(optdp.log(3)), (0, 3), "abs"),
    "circle": optdp.Problem(optdp.LDP("1/10"), optdp.Circle(1.0), "abs"),
    "line": optdp.Problem(optdp.ApproxDP(0.5, 1e-5, 2.0), optdp.Line(), "squared"),
    "pure line": optdp.Problem(optdp.ApproxDP("5/2", 0, 2.0), optdp.Line(), "abs"),
    "integers": optdp.Problem(optdp.ApproxDP(optdp.log(2), "0.001", 2.0), optdp.Integers(), "abs"),
    "whole notion": optdp.Problem(optdp.RDP(4, 2.0), optdp.Integers(), "abs"),
    "far": optdp.Problem(optdp.ApproxDP(0.5, 1e-5, 2.0), (-1, 1), "squared", constraints=[optdp.Unbiased()]),
    "near": optdp.Problem(optdp.ApproxDP(0.5, 1e-5, 0.25), (-1, 1), "squared", constraints=[optdp.Unbiased()]),
    "categories": optdp.Problem(optdp.LDP(1.0), optdp.OneHot(10), "squared", constraints=[optdp.Unbiased()]),
    "sphere": optdp.Problem(optdp.LDP(6.0), optdp.Sphere(10), "squared", constraints=[optdp.Unbiased()]),
    "ball": optdp.Problem(optdp.LDP(optdp.log(3)), optdp.Ball(10), "squared", constraints=[optdp.Unbiased()]),
    "cube": optdp.Problem(optdp.LDP(8.0), optdp.Box.cube(10), "squared", constraints=[optdp.Unbiased()]),
    "rectangle": optdp.Problem(optdp.LDP(2.0), optdp.Box((0, 0), (1, 2)), "abs"),
    "rectangle squared": optdp.Problem(optdp.LDP(2.0), optdp.Box((0, 0), (1, 2)), "squared"),
}
UNIFORM = partial(optdp.Average, prior="uniform")
EXPECTED = {
    "unbiased": {"Laplace", "discrete Laplace on a lattice", "staircase", "Duchi", "PM", "HM", "PM-SUB", "PM-OPT",
                 "Three-Outputs", "HM-TP"},
    "bounded": {*BOUNDED, "clamped discrete Laplace"},
    "circle": {"uniform"},
    "line": {"Laplace", "staircase", "classical Gaussian", "uniform noise", "Gaussian", "truncated Laplacian",
             "truncated staircase"},
    "pure line": {"Laplace", "staircase"},
    "integers": {"discrete Laplace", "discrete Gaussian"},
    "whole notion": {"discrete Laplace", "discrete Gaussian", "rounded Gaussian"},
    "far": {"Laplace", "staircase", "classical Gaussian", "uniform noise", "Gaussian", "truncated Laplacian",
            "central piecewise"},
    "near": {"central piecewise"},
    "categories": {"k-RR", "RAPPOR", "OUE", "OLH", "HR", "SS"},
    "sphere": {"Duchi l2", "PrivUnit", "vector Laplace", "Euclidean Laplace"},
    "ball": {"Duchi l2", "PrivUnit", "vector Laplace", "Euclidean Laplace"},
    "cube": {"Duchi linf", "PM, k of d", "HM, k of d", "OPTT, 1 of d", "vector Laplace", "Euclidean Laplace"},
    "rectangle": {"clamped planar Laplace"},
    "rectangle squared": {"vector Laplace", "Euclidean Laplace", "clamped planar Laplace"},
}  # fmt: skip


@pytest.mark.parametrize("which", list(PROBLEMS))
def test_what_the_registry_builds_has_the_guarantee_the_domain_and_the_mean_that_the_problem_asks_for(which):
    problem = PROBLEMS[which]
    found = baselines.applicable(problem)
    assert set(found) == EXPECTED[which]
    for name, mechanism in found.items():
        assert mechanism.domain == problem.domain, name
        assert mechanism.satisfies(problem.privacy.in_real_arithmetic()) is True, name
        # Only integer samplers have the guarantee as it stands; what floats are sampled for says so.
        assert mechanism.satisfies(problem.privacy) is (True if mechanism.exact else None), name
        assert mechanism.guarantee().ideal is not mechanism.exact, name
        x = np.array([0.0, 1.0])
        if which.startswith("rectangle"):
            moved = np.abs(mechanism.mean([[0.0, 0.0]])).max()
            assert moved == 0 if baselines.get(name).unbiased else moved > 0.1
        elif problem.domain.tag in ("sphere", "ball", "box"):
            assert np.array_equal(mechanism.mean(np.eye(10)), np.eye(10))
        elif problem.domain.dimension is not None:
            assert np.array_equal(mechanism.mean([3, 1]), np.eye(10)[[3, 1]]) and mechanism.check_unbiased().passed
        elif baselines.get(name).unbiased:
            assert mechanism.mean(x) == pytest.approx(x, abs=1e-12)
        elif not isinstance(problem.domain, optdp.Circle):
            assert np.abs(mechanism.mean(x) - x).max() > 0.01, name
        if problem.outputs is not None:
            assert problem.outputs[0] <= mechanism.support()[0] <= mechanism.support()[1] <= problem.outputs[1]


@pytest.mark.parametrize("eps", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("d", [2, 4])
def test_duchi_linf_for_even_d_is_private_unbiased_and_better_than_with_ties_in_both_half_spaces(d, eps):
    """All laws written out: ties (inner product 0) belong to the preferred half-space, as published to both, with the scale B."""
    made = baselines.get("Duchi linf").build(
        optdp.Problem(optdp.LDP(eps), optdp.Box.cube(d), "squared", constraints=[optdp.Unbiased()])
    )
    signs = np.array(list(product((-1, 1), repeat=d)))
    preferred = signs @ signs.T >= 0
    chance, ties = Fraction(made.coins, 2**124), int(preferred[0].sum())
    near, far = chance / ties, (1 - chance) / (len(signs) - ties)
    assert near / far == pytest.approx(math.exp(eps), rel=1e-12)
    assert made.guarantee().eps.argument >= near / far and made.satisfies(optdp.LDP(eps))
    laws = np.where(preferred, float(near), float(far))
    scale = made.support()[1]
    assert scale * laws @ signs == pytest.approx(signs, abs=1e-12)
    published = (2 ** (d - 1) + math.comb(d, d // 2) / 2) / math.comb(d - 1, d // 2) / math.tanh(eps / 2)
    assert made.worst_case_loss("squared") == pytest.approx(d * scale**2) and scale < published
    drawn = np.sign(made.randomize(np.tile(signs[1], (20_000, 1)).astype(float), 1))
    counts = (drawn[:, None] == signs).all(axis=2).sum(axis=0)
    assert chisquare(counts, 20_000 * laws[1]).pvalue > 1e-6


@pytest.mark.parametrize("which", list(PROBLEMS))
def test_every_method_answers_or_refuses_in_a_sentence(which):
    """The questions that every mechanism is asked, also those that make no sense on its domain."""
    problem = PROBLEMS[which]
    for name, mechanism in baselines.applicable(problem).items():
        x = [np.ravel(mechanism.worst_input(problem.objective.loss))[0]] if which == "categories" else None
        if x is None:
            vector = problem.domain.tag in ("sphere", "ball", "box")
            x = [mechanism.worst_input("squared")] if vector else [0.0]
        y = mechanism.randomize(x, 1)
        asked = [
            *(partial(getattr(mechanism, told), *arguments, loss) for loss in ("abs", "squared") for told, arguments in (
                ("average_loss", ()), ("worst_case_loss", ()), ("worst_input", ()), ("expected_loss", (x,)))),
            *(partial(mechanism.enclose, kind(loss)) for kind in (optdp.WorstCase, UNIFORM) for loss in ("abs", "squared")),
            *(partial(getattr(mechanism, told), y, x) for told in ("density", "probability")),
            *(partial(getattr(mechanism, told), x) for told in ("mean", "variance", "support")),
            *(getattr(mechanism, told) for told in ("average_loss", "worst_case_loss", "atoms", "support", "plot", "to_dict",
                                                    "guarantee", "privacy", "check_unbiased", "__repr__")),
            partial(mechanism.feasible, problem),
        ]  # fmt: skip
        for call in asked:
            try:
                call()
            except (TypeError, ValueError) as error:
                assert any(word in str(error) for word in ("not allowed", "must", "privacy() is")), (name, call)
        plt.close("all")


@pytest.mark.parametrize(
    ("which", "name", "loss"),
    [
        *(("sphere", f"{kind} Laplace", "squared") for kind in ("vector", "Euclidean")),
        *(("cube", f"{kind}, {k} of d", "squared") for kind, k in (("PM", "k"), ("HM", "k"), ("OPTT", "1"))),
        ("rectangle", "clamped planar Laplace", "abs"), ("rectangle squared", "Euclidean Laplace", "squared"),
    ],
)  # fmt: skip
def test_average_losses_of_vectors_are_those_of_uniform_inputs(which, name, loss):
    problem, rng = PROBLEMS[which], np.random.default_rng(0)
    mechanism, many = baselines.applicable(problem)[name], 400 if which == "rectangle" else 20_000
    if which == "sphere":
        x = rng.standard_normal((many, 10))
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    else:
        x = rng.uniform(problem.domain.lower, problem.domain.upper, (many, problem.domain.dimension))
    losses = mechanism.expected_loss(x, loss)
    assert mechanism.average_loss(loss) == pytest.approx(losses.mean(), abs=4 * losses.std() / math.sqrt(many) + 1e-9)


def test_every_registered_baseline_is_built_for_some_problem_and_has_a_source():
    built = set().union(*EXPECTED.values(), {"exponential", "planar Laplace"})  # of places: tests/test_metric.py
    assert built == set(baselines.baselines())
    for known in baselines.baselines().values():
        assert len(known.source) > 20
        assert set(known.privacy) <= {"ldp", "approx", "metric-ldp", "profile", "gdp", "rdp", "kl"}


def test_no_two_baselines_are_the_same_mechanism():
    """Names stand for one mechanism: over all problems, no two have equal worst cases for abs and squared at once."""
    for problem in (
        PROBLEMS["unbiased"],
        PROBLEMS["bounded"],
        PROBLEMS["line"],
        PROBLEMS["integers"],
        PROBLEMS["categories"],
        PROBLEMS["sphere"],
        PROBLEMS["cube"],
    ):
        made = baselines.applicable(problem)
        losses = ("abs", "squared") if problem.domain.dimension is None else ("squared",)
        worst = {tuple(round(m.worst_case_loss(loss), 9) for loss in losses) for m in made.values()}
        assert len(worst) == len(made)


def test_the_staircase_takes_the_stairs_of_the_loss():
    problem = PROBLEMS["line"]
    other = optdp.Problem(problem.privacy, problem.domain, "abs")
    both = [baselines.get("staircase").make(p) for p in (problem, other)]
    for loss, better in (("squared", 0), ("abs", 1)):
        losses = [m.worst_case_loss(loss) for m in both]
        assert losses[better] < losses[1 - better]


def test_registering():
    known = baselines.get("Duchi")
    assert baselines.register(known) is known
    with pytest.raises(ValueError, match="another baseline of that name"):
        baselines.register(baselines.Baseline("Duchi", "elsewhere", ("ldp",), ("interval",), True, known.make))
    with pytest.raises(ValueError, match=r"Duchi is not allowed here: it is not for 1\.0-LDP on the circle"):
        known.build(optdp.Problem(optdp.LDP(1.0), optdp.Circle(1.0), "abs"))
    with pytest.raises(ValueError, match=r"it is not for 31\.0-LDP"):
        known.build(optdp.Problem(optdp.LDP(31.0), (0, 1), "abs"))
    with pytest.raises(ValueError, match="one of 'Laplace'"):
        baselines.get("PTT")
    assert set(baselines.baselines("circle")) == {"uniform"}
    assert "PM" not in baselines.baselines(unbiased=False)


@pytest.mark.parametrize("eps", [optdp.log(3), "1/3", 0.3])
def test_floats_are_built_below_an_exact_epsilon(eps):
    privacy = optdp.LDP(eps)
    below = baselines.float_below(privacy.eps)
    assert privacy.implied_by(optdp.LDP(below)) is True
    assert privacy.implied_by(optdp.LDP(math.nextafter(below, 9.0))) is False


@pytest.mark.parametrize("domain", [(0.0, 1e-160), (-1e150, 1e150)])
def test_noise_is_left_out_where_no_sensitivity_is_so_wide_or_narrow(domain):
    """A comparison of a problem that is solved was refused for a "sensitivity" that nobody had given."""
    known = baselines.applicable(optdp.Problem(optdp.LDP(1.0), optdp.Interval(*domain), "abs", optdp.AllMechanisms()))
    assert {"moved PM", "uniform", "clamped discrete Laplace"} <= set(known)
    assert not {"Laplace", "clamped Laplace", "staircase", "clamped staircase"} & set(known)


def test_a_no_is_about_the_mechanism():
    """And not about others with its guarantee, whose delta at another eps may be larger."""

    def ideal(eps, delta):
        return optdp.ApproxDP(eps, delta).in_real_arithmetic()

    plain, gauss = Laplace(1.0), Gaussian(1.0, 1e-5)
    assert plain.delta(0.5) < 0.25 and plain.satisfies(ideal(0.5, 0.25)) is None
    assert gauss.delta(2.0) < 1e-6 and gauss.satisfies(ideal(2.0, 1e-6)) is None
    assert plain.satisfies(ideal(0.9, 0)) is gauss.satisfies(ideal(1.0, 0.9e-5)) is False
    assert plain.satisfies(ideal(0.5, 0.5)) is gauss.satisfies(ideal(1.5, 1e-5)) is True
    noise = laplace(optdp.Profile([(0.5, 0.1), (1.0, 0.05)]))
    assert noise.delta(0.0) < 0.3 and noise.satisfies(optdp.Profile([(0.0, 0.3)]).in_real_arithmetic()) is None


def test_noise_that_reaches_where_a_users_loss_is_not_known_does_not_stand_beside_it():
    def names(privacy, loss):
        return baselines.applicable(optdp.Problem(privacy, optdp.Line(), optdp.WorstCase(loss), optdp.Additive()))

    few, pairs = optdp.ApproxDP(1.0, 0.01), optdp.Profile([(0.5, 0.1), (1.0, 0.05)])
    mine = optdp.CustomLoss(np.square, shape="convex")
    for privacy in (few, pairs):
        assert "truncated Laplacian" in names(privacy, mine) and "Laplace" not in names(privacy, mine)
    steep = optdp.CustomLoss(lambda d: np.where(d < 40, np.square(d), np.inf), shape="convex")
    assert "uniform noise" in names(few, mine) and "uniform noise" not in names(few, steep)
    assert "Laplace" in names(few, "squared")


def test_clamped_lattice_noise_gathers_what_lies_beyond_at_the_ends():
    problem = optdp.Problem(optdp.LDP(0.3), (-3.0, 50.0), "abs")
    noise = baselines.get("clamped discrete Laplace").make(problem)
    x = np.linspace(-3.0, 50.0, 7)
    found = noise.probability(noise.atoms()[:, None], x)
    place = (x + 3.0) / noise.step
    low = np.floor(place)
    below, above = (noise.noise.cdf(-low), noise.noise.cdf(-low - 1))  # of the two points to which x is rounded
    assert found.sum(axis=0) == pytest.approx(np.ones(7), abs=1e-12)
    assert found[0] == pytest.approx((low + 1 - place) * below + (place - low) * above, rel=1e-12)
    assert found[:, ::-1] == pytest.approx(found[::-1], rel=1e-9)

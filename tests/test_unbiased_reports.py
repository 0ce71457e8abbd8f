"""The gap report of the unbiased families, the evaluation on real columns, and their commands."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import optdp
from optdp.cli import main
from optdp.report.evaluate import DATASETS, MECHANISMS, evaluate, load_column, query_of


def test_gap_report_has_every_family_and_a_figure(tmp_path):
    report = optdp.gap_report({"problem": "unbiased", "eps": [0.5, 1.0], "kernel": False})
    one = report.rows[1]
    assert one["I-PTT = A1"] == pytest.approx(5.06568, abs=1e-5)
    assert one["A2"] == pytest.approx(4 * optdp.solve_composite(1.0, "A2", objective="worst").value, rel=1e-12)
    assert {"PM", "Duchi", "HM", "Laplace", "Three-Outputs", "PM-SUB", "HM-TP"} <= set(one)
    assert all(row[f"{name} gap"] <= 1e-9 for row in report.rows for name in ("I-PTT = A1", "II-PTT = A3", "A2"))
    assert "I-PTT" in report.to_text() and "I-PTT" in report.to_markdown()
    report.save(tmp_path / "gap.png")
    assert (tmp_path / "gap.png").stat().st_size > 10_000


def test_gap_report_with_the_bound_over_all_unbiased_mechanisms():
    report = optdp.gap_report({"problem": "unbiased", "eps": [1.0], "rtol": 0.05, "time_limit": 5.0})
    row = report.rows[0]
    assert row["all lower"] <= row["all value"] < row["HM"] < row["I-PTT = A1"]
    assert "over all unbiased 1.0-LDP mechanisms from [-1, 1] to the real line is at least" in report.to_text()


def test_gap_report_prints_statements_and_takes_a_mechanism_of_your_own():
    own = optdp.solve_ptt("1/2", "II").mechanism
    report = optdp.gap_report({"problem": "unbiased", "eps": ["1/2"], "kernel": False}, mechanisms={"mine": own})
    assert report.rows[0]["mine"] == pytest.approx(report.rows[0]["II-PTT = A3"], rel=1e-12)
    assert optdp.solve_ptt("1/2", "II").problem.statement() in report.to_text()


def test_queries_have_the_sensitivity_of_replacing_one_record():
    rng = np.random.default_rng(0)
    bounds = (0.0, 10.0)
    for _ in range(50):
        values = rng.choice([0.0, 1.0, 5.0, 10.0], size=7)
        other = values.copy()
        other[rng.integers(7)] = rng.choice([0.0, 2.0, 10.0])
        for name in ("mean", "variance", "maximum", "minimum", "mode"):
            a, b = query_of(name, values, bounds), query_of(name, other, bounds)
            assert abs(a.answer - b.answer) <= a.sensitivity * (1 + 1e-12)
            assert a.range[0] <= a.answer <= a.range[1]
    extreme = query_of("variance", np.array([0.0, 0.0, 0.0, 10.0]), bounds)
    assert extreme.answer - 0.0 <= extreme.sensitivity * (1 + 1e-12)
    assert query_of("count", np.ones(7), bounds).sensitivity == 1


def test_errors_are_those_that_the_mechanisms_promise():
    values = np.linspace(0.0, 10.0, 400)
    report = evaluate(values, (0.0, 10.0), queries=["maximum", "count"], eps=[1.0], repeats=20_000, protocol="interval",
                      mechanisms=["A1B1", "A2B1", "Laplace"])  # fmt: skip
    by = {(row["query"], row["mechanism"]): row for row in report.rows}
    assert by["count", "A1B1"]["mse"] == pytest.approx(0.91753, rel=0.03)  # the interval's middle, sensitivity 1
    assert by["count", "A2B1"]["mse"] == pytest.approx(1.78856, rel=0.03)
    assert by["count", "Laplace"]["mse"] == pytest.approx(2.0, rel=0.06)
    for row in report.rows:
        assert abs(row["bias"]) < 5 * row["bias_error"]
    top = MECHANISMS["A1B1"](1.0, (0.0, 10.0))
    assert by["maximum", "A1B1"]["mse"] == pytest.approx(float(top.variance(10.0)), rel=0.05)
    assert "gives the answer away" in report.to_text()


def test_protocols():
    values = np.linspace(0.0, 10.0, 500)
    local = evaluate(values, (0.0, 10.0), queries=["mean", "count"], eps=[1.0], mechanisms=["A1B1", "HM"], protocol="local",
                     repeats=50)  # fmt: skip
    for row in local.rows:
        assert abs(row["bias"]) < 5 * row["bias_error"]
    mean = next(r for r in local.rows if r["query"] == "mean" and r["mechanism"] == "A1B1")
    mechanism = MECHANISMS["A1B1"](1.0, (0.0, 10.0))
    assert mean["mse"] == pytest.approx(float(mechanism.variance(values).mean()) / values.size, rel=1.0)
    wide = evaluate(values, (0.0, 10.0), queries=["mean"], eps=[1.0], mechanisms=["A1B1"], protocol="range")
    assert wide.rows[0]["highest"] - wide.rows[0]["lowest"] > 10
    with pytest.raises(ValueError, match="protocol 'local'"):
        evaluate(values, (0.0, 10.0), queries=["mode"], protocol="local")
    with pytest.raises(ValueError, match=r"values \(entry \d+\) is not allowed"):
        evaluate(values, (0.0, 9.0))
    with pytest.raises(ValueError, match="at least one record"):
        evaluate([], (0.0, 9.0))
    with pytest.raises(ValueError, match=r"values \(entry 1\) is not allowed"):
        evaluate([1.0, np.nan], (0.0, 9.0))
    with pytest.raises(ValueError, match="mechanisms = 'A9B9'"):
        evaluate(values, (0.0, 10.0), mechanisms=["A9B9"])


@pytest.mark.parametrize("data", list(DATASETS))
def test_public_columns_lie_in_their_declared_ranges(data):
    for column in DATASETS[data]:
        values, (low, high) = load_column(data, column)
        assert values.size > 100 and low <= values.min() and values.max() <= high


def test_evaluation_of_a_real_column_with_every_mechanism(tmp_path):
    values, bounds = load_column("anes96", "age")
    report = evaluate(values, bounds, queries=["maximum", "mode", "count"], eps=[1.0], repeats=200, name="age")
    assert {row["mechanism"] for row in report.rows} == set(MECHANISMS)
    for row in report.rows:
        assert row["lowest"] < row["highest"]
    report.save(tmp_path / "boxes.png")
    assert (tmp_path / "boxes.png").stat().st_size > 10_000


def run(capsys, *arguments):
    status = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_commands(capsys, tmp_path):
    status, out, _ = run(capsys, "solve", "ptt", "--eps", 1, "--plot", tmp_path / "p.png", "--out", tmp_path / "p.json")
    assert status == 0 and "5.06568115215" in out and "FAIL" not in out
    assert (tmp_path / "p.png").stat().st_size > 10_000
    status, out, _ = run(capsys, "verify", tmp_path / "p.json")
    assert status == 0 and out.rstrip().endswith("verified")
    status, out, _ = run(capsys, "solve", "composite", "--eps", 1, "--activation", "A2", "--base", "B2", "--json")
    assert status == 0 and json.loads(out)["verified"]
    status, out, _ = run(capsys, "solve", "composite", "--eps", 0.5, "--backend", "grid", "--inputs", 2, 5)
    assert status == 0 and "Algorithm 1" in out
    for problem in ("ptt", "composite"):
        status, out, _ = run(capsys, "solve", problem, "--eps", 1, "--model")
        assert status == 0 and "mass" in out
    status, out, _ = run(capsys, "report", "unbiased", "--eps", 1, "log(3)", "--no-kernel", "--markdown")
    assert status == 0 and "5.06568" in out
    status, out, _ = run(capsys, "solve", "composite", "--eps", 1, "--base", "B2", "--rule", "pointwise")
    assert status == 0 and "at most (e^1.0 - 1) times" in out
    status, out, _ = run(capsys, "solve", "ptt", "--eps", "log(3)", "--write", tmp_path / "p.nl")
    assert status == 0 and "log(3)-LDP" in out and (tmp_path / "p.nl").read_text().startswith("g3")
    status, _, err = run(capsys, "solve", "ptt", "--eps", 1, "--objective", 2)
    assert status == 2 and "objective = 2.0" in err
    status, _, err = run(capsys, "solve", "composite", "--eps", 0.5, "--backend", "target", "--target", 1)
    assert status == 2 and "target = 1.0" in err


def test_evaluate_command(capsys, tmp_path):
    status, out, _ = run(capsys, "evaluate", "--data", "anes96:age", "--query", "maximum", "--eps", 1, "--mechanism", "A1B1",
                         "Laplace", "--repeats", 100, "--plot", tmp_path / "e.svg")  # fmt: skip
    assert status == 0 and "A1B1" in out and (tmp_path / "e.svg").exists()
    path = tmp_path / "data.csv"
    path.write_text("a,b\n1,2\n3,4\n5,6\n")
    status, out, _ = run(capsys, "evaluate", "--csv", path, "--column", "b", "--range", 0, 10, "--query", "mean",
                         "--eps", 1, "--protocol", "local", "--mechanism", "HM", "--repeats", 20, "--json")  # fmt: skip
    assert status == 0 and json.loads(out)["rows"][0]["truth"] == 4
    private = tmp_path / "private.csv"
    private.write_text("a,b\n1,2\n3,secret\n")
    for arguments, message in (
        (("--csv", path), "--column and --range"),
        (("--csv", path, "--column", "c", "--range", 0, 1), "column = 'c'"),
        (("--data", "anes96:foo"), "column = 'foo'"),
        (("--data", "iris:x"), "data = 'iris'"),
        (("--csv", private, "--column", "b", "--range", 0, 10), "row 2: b is not a number"),
    ):
        status, _, err = run(capsys, "evaluate", *arguments)
        assert status == 2 and message in err and "secret" not in err


NOTEBOOK = Path(__file__).parent.parent / "notebooks" / "unbiased_real_data.ipynb"


def test_the_notebook_is_stored_as_it_ran():
    cells = [cell for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert not any(output["output_type"] == "error" or output.get("name") == "stderr" for output in outputs)
    assert sum("image/png" in output.get("data", {}) for output in outputs) >= 1
    assert "FAIL" not in NOTEBOOK.read_text()

"""Tables, figures, files, sweeps and estimates."""

import json
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import optdp
from optdp import files
from optdp.design.sweep import sweep
from optdp.mechanisms import BASELINES, pm
from optdp.report.gap import gap_page
from optdp.report.report import Column, Report
from optdp.statistics import estimation


def test_a_report_says_the_same_in_every_form(tmp_path):
    report = optdp.compare(1.0, "squared")
    frame = report.to_frame()
    assert list(frame["mechanism"]) == [row["mechanism"] for row in report.rows]
    assert frame["worst_case"].is_monotonic_increasing
    assert json.loads(report.to_json())["rows"] == list(report.rows)
    for text in (report.to_text(), report.to_markdown(), report.to_html(), report._repr_html_()):
        assert "optimal piecewise" in text and "0.217299" in text
    for suffix in ("md", "html", "json", "csv", "txt", "png", "svg", "pdf"):
        report.save(tmp_path / f"r.{suffix}")
        assert (tmp_path / f"r.{suffix}").stat().st_size > 300
    with pytest.raises(ValueError, match=r"r\.doc"):
        report.save(tmp_path / "r.doc")


def test_cells_are_escaped_and_missing_values_are_dashes():
    report = Report("<t>", [Column("a", "a|b"), Column("b", "x")], [{"a": "<1|2>", "b": None}])
    assert "&lt;1|2&gt;" in report.to_html() and "<1\\|2>" in report.to_markdown()
    assert report.to_text().splitlines()[-1].split() == ["<1|2>", "-"]
    with pytest.raises(ValueError, match="no figure"):
        report.plot()


def test_gap_report_of_solutions_and_of_a_spec():
    solutions = [optdp.solve_piecewise(e, 3, "abs") for e in (0.5, 1.0)]
    report = optdp.gap_report(solutions)
    assert [row["value"] for row in report.rows] == [s.value for s in solutions] and all(
        r["verified"] for r in report.rows
    )
    assert optdp.gap_report(solutions[0]).rows[0] == report.rows[0]
    grid = optdp.gap_report({"problem": "piecewise", "eps": [1.0, 2.0], "loss": "squared"})
    assert all(row[name] >= 1 - 1e-12 for row in grid.rows for name in ("PM", "SW", "PTT", "uniform"))
    assert grid.plot() is not None
    with pytest.raises(TypeError, match="solutions_or_spec"):
        optdp.gap_report([1])
    with pytest.raises(ValueError, match="problem = 'x'"):
        optdp.gap_report({"problem": "x"})


@pytest.mark.parametrize("name", list(BASELINES))
def test_every_mechanism_draws_itself(name):
    axes = BASELINES[name](1.0, (0, 4)).plot(inputs=[0.0, 1.0])
    assert len(axes.get_lines()) >= 2 and axes.get_xlabel() == "output y"


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    path = tmp_path / "f.txt"
    with pytest.raises(RuntimeError), files.replacing(path) as stream:
        stream.write("half")
        raise RuntimeError
    assert not list(tmp_path.iterdir())
    files.write_text(path, "one")
    os.chmod(path, 0o640)
    files.write_text(path, "two")
    assert path.read_text() == "two" and path.stat().st_mode & 0o777 == 0o640


def test_sweep_keeps_the_order_and_raises_what_it_meets():
    assert sweep(str, range(5)) == ["0", "1", "2", "3", "4"]
    with pytest.raises(ZeroDivisionError):
        sweep(lambda x: 1 / x, [1, 0])


@pytest.mark.parametrize("name", list(BASELINES))
@given(eps=st.floats(0.2, 5), bins=st.integers(2, 20))
def test_transition_columns_are_distributions(name, eps, bins):
    matrix = estimation.transition_matrix(BASELINES[name](eps, (0, 3)), bins)
    assert np.allclose(matrix.sum(axis=0), 1) and matrix.min() >= 0


def test_estimates_come_close_to_the_truth():
    rng = np.random.default_rng(0)
    data = rng.beta(2, 6, 200_000)
    mechanism = pm(2.0)
    outputs = mechanism.randomize(data, 1)
    truth = np.histogram(data, 100, (0, 1))[0] / data.size
    share = optdp.estimate_histogram(mechanism, outputs, 100, smooth=True)
    assert share.sum() == pytest.approx(1) and np.abs(share - truth).sum() / 2 < 0.06
    assert optdp.estimate_mean(mechanism, outputs) == pytest.approx(data.mean(), abs=0.01)
    with pytest.raises(ValueError, match="outputs"):
        optdp.estimate_histogram(mechanism, [2.0])
    with pytest.raises(ValueError, match="outputs"):
        optdp.estimate_histogram(mechanism, [])


def test_every_problem_has_a_report_without_arguments():
    """`optdp report all` asks each problem for its default report."""
    import importlib
    import inspect

    from optdp.report.gap import PROBLEMS

    for name in PROBLEMS.values():
        report = importlib.import_module(f"optdp.report.{name}").gap_report
        assert all(p.default is not p.empty for p in inspect.signature(report).parameters.values()), name


@pytest.mark.soak
def test_the_page_of_all_reports():
    page = gap_page()
    assert page.count("<section") == page.count("<svg") and page.count("<table>") == page.count("<section")

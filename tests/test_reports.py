"""Tables, figures, files, sweeps and estimates."""

import json
import math
import os
import re
import sys
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optdp
from optdp import files
from optdp.design.sweep import sweep
from optdp.mechanisms import baselines
from optdp.mechanisms.cap import CapMechanism
from optdp.mechanisms.lifted import LiftedMechanism
from optdp.mechanisms.scaled import ScaledMechanism
from optdp.report import lip, plots, releases
from optdp.report.compare import guarantees
from optdp.report.gap import gap_page
from optdp.report.plots import draw, plot_losses
from optdp.report.report import Column, Report
from optdp.statistics.channel import Channel, mixed

PROBLEM = optdp.Problem(optdp.LDP(1.0), (0, 4), "abs", optdp.Piecewise(3))


class Rounding(optdp.Mechanism):
    """A user's own mechanism, with the two methods that one must write: keep 0 or 1 with probability 3/4."""

    def __init__(self, domain=(0.0, 1.0)):
        self.domain = optdp.Interval(*domain)

    def randomize(self, x, rng=None):
        x, rng = self.domain.check(x), np.random.default_rng(rng)
        near = rng.random(x.shape) < 0.75
        return np.where((x >= 0.5) == near, 1.0, 0.0)

    def probability(self, y, x):
        y, x = np.broadcast_arrays(np.asarray(y, dtype=float), self.domain.check(x))
        return np.where((y == 0) | (y == 1), np.where((x >= 0.5) == (y == 1), 0.75, 0.25), 0.0)


def test_a_report_says_the_same_in_every_form(tmp_path):
    report = optdp.compare(1.0, "squared")
    frame = report.to_frame()
    assert list(frame["mechanism"]) == [row["mechanism"] for row in report.rows]
    assert frame["value"].is_monotonic_increasing
    assert report.to_csv() == frame.to_csv(index=False)
    assert json.loads(report.to_json())["rows"] == list(report.rows)
    for text in (report.to_text(), report.to_markdown(), report.to_html(), report._repr_html_()):
        assert "optimum" in text and "0.217299" in text
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
    assert [row["problem"] for row in report.rows] == [s.problem.statement() for s in solutions]
    grid = optdp.gap_report({"problem": "piecewise", "eps": [1.0, optdp.log(3)], "loss": "squared"})
    assert all(row[name] >= 1 - 1e-12 for row in grid.rows for name in ("moved PM", "moved SW", "moved PTT", "uniform"))
    assert grid.plot() is not None
    with pytest.raises(TypeError, match="solutions_or_spec"):
        optdp.gap_report([1])
    with pytest.raises(ValueError, match="problem = 'x'"):
        optdp.gap_report({"problem": "x"})
    with pytest.raises(ValueError, match="solutions_or_spec has no 'problem', which must be there: one of 'piecewise'"):
        optdp.gap_report({"dim": b"1"})


def test_a_users_mechanism_stands_beside_the_optimum():
    report = optdp.compare(1.0, mechanisms=[Rounding(), Rounding()])
    rows = {row["mechanism"]: row for row in report.rows}
    assert rows["Rounding"]["value"] == pytest.approx(0.5)  # at x = 1/2: |y - x| = 1/2 whatever is sent
    assert rows["Rounding"]["value"] == rows["Rounding (2)"]["value"]
    assert (rows["Rounding"]["numbers"], rows["Rounding"]["guarantee"]) == ("numerical", "not claimed")
    assert rows["Rounding"]["family"] == "no" and rows["optimum"]["family"] == "yes"
    assert rows["optimum"]["numbers"] == "proven" and rows["optimum"]["guarantee"] == "yes"
    assert rows["clamped Laplace"]["guarantee"] == "in real arithmetic"
    assert rows["Rounding"]["average"] == pytest.approx(0.75 * 0.25 + 0.25 * 0.75, abs=1e-3)
    solution = optdp.solve_piecewise(1.0)
    gaps = optdp.gap_report(solution, mechanisms={"mine": Rounding()})
    assert gaps.rows[0]["mine"] == pytest.approx(0.5 / solution.value)
    grid = optdp.gap_report({"problem": "piecewise", "eps": [1, 2]}, mechanisms=lambda problem: {"mine": Rounding()})
    assert [row["mine"] * row["value"] for row in grid.rows] == pytest.approx([0.5, 0.5])
    with pytest.raises(ValueError, match="mine takes inputs from"):
        optdp.compare(PROBLEM, mechanisms={"mine": Rounding()})
    with pytest.raises(TypeError, match=r"mine is no Mechanism, .*subclass optdp.Mechanism"):
        optdp.compare(1.0, mechanisms={"mine": 3})
    with pytest.raises(TypeError, match="pass a mechanism, not its class"):
        optdp.compare(1.0, mechanisms=[Rounding])


@pytest.mark.parametrize(
    "objective", ["squared", optdp.At("abs", 1.0), optdp.Average("abs"), optdp.Average("abs", ([0, 4], [0.25, 0.75]))]
)
def test_comparisons_of_every_objective(objective):
    """Problems that no design solves are compared too, and say so; the bound is told with its whole statement."""
    problem = optdp.Problem(optdp.LDP(1.0), (0, 4), objective, optdp.Piecewise(3))
    report = optdp.compare(problem)
    assert report.title.lower() == problem.statement().lower()
    if objective == "squared":
        assert any(problem.statement() + " is at least" in note for note in report.notes)
        assert "every mechanism" not in report.to_text()
    else:
        assert "No design solves this problem" in report.notes[0]
    mechanism = baselines.get("uniform").make(problem)
    expected = {
        "at": float(mechanism.expected_loss(1.0)), "average": mechanism.average_loss(), "worst-case": 16 / 3,
    }[problem.objective.tag]  # fmt: skip
    if problem.objective.tag == "average" and problem.objective.prior != "uniform":
        expected = float(mechanism.expected_loss([0, 4]) @ [0.25, 0.75])
    assert next(r["value"] for r in report.rows if r["mechanism"] == "uniform") == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("name", list(baselines.applicable(PROBLEM)))
def test_every_mechanism_draws_itself(name):
    axes = baselines.get(name).make(PROBLEM).plot(inputs=[0.0, 1.0])
    assert len(axes.get_lines()) >= 2 and axes.get_xlabel() == "output y"


@pytest.mark.parametrize("start", [1e9, -3e5])
def test_inputs_that_are_near_are_told_apart(start):
    """Curves have colours and names of their own where inputs agree in three digits."""
    axes = optdp.solve_piecewise(1.0, domain=(start, start + 1)).mechanism.plot()
    assert len({line.get_color() for line in axes.get_lines()}) == 3
    assert [float(text.get_text()[4:]) - start for text in axes.get_legend().get_texts()] == pytest.approx(
        [0, 0.3, 0.5]
    )


def test_a_solution_is_drawn_under_its_statement():
    solution = optdp.solve_piecewise(1.0, domain=(0, 60))
    axes = solution.plot()
    assert axes.get_title(loc="left").replace("\n", " ") == solution.problem.statement()
    with pytest.raises(TypeError, match="only mechanisms, solutions and estimates"):
        draw(3)


def test_lengths_of_outputs_are_drawn_in_the_units_of_the_cube():
    mechanism = optdp.solve_vector(2.0, 3, norm="linf").mechanism
    for x, curve in zip([0.0, 0.5, 1.0], mechanism.plot().get_lines(), strict=True):
        drawn = np.linalg.norm(mechanism.randomize(np.full((20_000, 3), x), 1), axis=1)
        assert curve.get_label() == f"|x| = {x * math.sqrt(3):.3g}"
        radii, shares = curve.get_xdata()[1::2], curve.get_ydata()[1::2]  # the upper ends of steps
        for radius, share in zip((radii[:-1] + radii[1:]) / 2, shares, strict=False):
            assert np.mean(drawn <= radius) == pytest.approx(share, abs=0.02)
        assert np.mean(drawn <= 1.01 * radii[-1]) == 1


def test_what_a_drawing_of_vectors_is_about_is_told_below_it():
    lifted = LiftedMechanism.private(4.0, optdp.Ball(3))
    for thing in (lifted, ScaledMechanism.private(optdp.Box([-1.0] * 3, [1.0] * 3), lifted)):
        below = thing.plot().get_xlabel().replace("\n", " ")
        assert "unit vectors of R^4" in below and "without their last coordinate" in below
    cap = CapMechanism.private(2.0, optdp.Ball(4))
    assert "for inputs of norm 1" in cap.plot().get_xlabel()
    around = ScaledMechanism.private(optdp.Box([-1.0] * 4, [1.0] * 4), cap)  # of the cube: those of norm 2
    below = around.plot().get_xlabel().replace("\n", " ")
    assert f"of x/{around.scale:.4g}, before outputs are scaled; for inputs of norm 1" in below
    assert "norm 1" not in CapMechanism.private(2.0, optdp.Sphere(4)).plot().get_xlabel()


def test_a_level_line_is_not_cut_by_the_frame():
    axes = plot_losses({"noise": baselines.get("Laplace").build(optdp.Problem(optdp.LDP(1.0), (0, 1), "abs"))})
    assert axes.get_ylim()[1] > 1.04 * max(axes.get_lines()[0].get_ydata())


def test_what_is_missing_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    monkeypatch.setitem(sys.modules, "pandas", None)
    solution = optdp.solve_piecewise(1.0)
    with pytest.raises(RuntimeError, match=r"matplotlib: pip install 'optdp\[plot\]'"):
        solution.plot()
    report = optdp.gap_report(solution)
    with pytest.raises(RuntimeError, match=r"pandas: pip install 'optdp\[tables\]'"):
        report.to_frame()
    assert "lower" in report.to_csv()


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
    with files.replacing(path, "wb") as stream:
        stream.write(b"three")
    assert path.read_bytes() == b"three" and path.stat().st_mode & 0o777 == 0o640


def test_sweep_keeps_the_order_and_raises_what_it_meets():
    assert sweep(str, range(5)) == ["0", "1", "2", "3", "4"]
    with pytest.raises(ZeroDivisionError):
        sweep(lambda x: 1 / x, [1, 0])


@pytest.mark.parametrize("name", list(baselines.applicable(PROBLEM)))
@settings(max_examples=settings.default.max_examples // 2)
@given(eps=st.floats(0.2, 5), bins=st.integers(2, 20))
def test_transition_columns_are_distributions(name, eps, bins):
    problem = optdp.Problem(optdp.LDP(eps), (0, 3), "abs", optdp.Piecewise(3))
    matrix = mixed(Channel.of(baselines.get(name).make(problem)), np.linspace(0, 3, bins + 1))
    assert np.allclose(matrix.sum(axis=0), 1) and matrix.min() >= 0


def test_estimates_come_close_to_the_truth():
    rng = np.random.default_rng(0)
    data = rng.beta(2, 6, 200_000)
    problem = optdp.Problem(optdp.LDP(2.0), (0, 1), "abs", optdp.Piecewise(3))
    mechanism = baselines.get("moved PM").make(problem)
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

    for name in PROBLEMS:
        report = importlib.import_module(f"optdp.report.{name}").gap_report
        assert all(p.default is not p.empty for p in inspect.signature(report).parameters.values()), name


@pytest.mark.soak
def test_the_page_of_all_reports():
    page = gap_page()
    assert page.count("<section") == page.count("<svg") and page.count("<table>") == page.count("<section")


def test_reprs_are_one_line():
    """A notebook stores the repr of what a cell shows beside its table."""
    report = optdp.compare(1.0, "squared")
    assert repr(report) == f"<Report '{report.title}': {len(report.rows)} rows x {len(report.columns)} columns>"
    solution = optdp.solve_piecewise(1.0)
    assert repr(solution.verify()) == "<Verification: all 8 checks passed>"
    assert repr(replace(solution, lower_bound=0.4).verify()) == "<Verification: failed (lower bound, bracket)>"


def test_printed_bounds_are_bounds():
    """Fewer digits of a lower bound are rounded down, of an upper bound up."""
    problem = optdp.Problem(optdp.LDP(optdp.log(3)), (0, 60), "squared")
    solution = replace(optdp.solve(problem), lower_bound=674.9999999996, value=675.00004023313886)
    assert repr(solution).startswith("<Solution in [674.999999, 675.000041]: ")
    assert "optimum in [674.999999999, 675.000040234]" in str(solution)
    assert "674.999999999<" in solution._repr_html_() and "675.000040234<" in solution._repr_html_()
    assert "674.999999  675.000041" in optdp.gap_report(solution).to_text()
    (proven,) = (note for note in optdp.compare(problem).notes if note.startswith("Proven"))
    assert float(proven.split()[-1].rstrip(".")) < 675


def test_comparisons_take_losses_of_input_and_output():
    """No design has an optimum for them, and each mechanism's value is the loss averaged over its outputs."""
    report = optdp.compare(1.0, optdp.Pinball(0.5))
    assert report.notes[0].startswith("No design solves this problem") and "the bound" not in " ".join(report.notes)
    halves = {row["mechanism"]: row["value"] for row in optdp.compare(1.0, "abs").rows}
    assert len(report.rows) > 5
    for row in report.rows:
        assert row["value"] == pytest.approx(halves[row["mechanism"]] / 2, rel=1e-6)


@pytest.mark.parametrize(("eps", "mechanisms", "words"), [(0.0, None, "eps = 0.0"), (1.0, 3, "mechanisms = 3")])
def test_comparisons_name_a_wrong_argument(eps, mechanisms, words):
    with pytest.raises((TypeError, ValueError), match=words):
        optdp.compare(eps, mechanisms=mechanisms)
    with pytest.raises(TypeError, match=r"solutions_or_spec = \[\]"):
        optdp.gap_report([])


def test_names_of_other_rows_and_columns_are_taken():
    """A mechanism named "optimum" had the optimum's value, and one named "value" its own in place of the attained one."""
    mine = optdp.solve_piecewise(1.0).mechanism
    for name in ("optimum", "moved PM", "value", "gap"):
        for call in (
            optdp.compare,
            lambda _, mechanisms: optdp.gap_report(optdp.solve_piecewise(1.0), mechanisms=mechanisms),
        ):
            with pytest.raises(ValueError, match=f"'{name}' is the name of another"):
                call(1.0, mechanisms={name: mine})


def test_a_mechanism_that_breaks_a_constraint_is_told():
    mine = optdp.solve_piecewise(1.0, loss="squared").mechanism
    unbiased = optdp.Problem(optdp.LDP(1.0), (0, 1), "squared", constraints=(optdp.Unbiased(),))
    fair = baselines.get("Duchi").build(unbiased)  # samples floats, so that its mean has no proof, and is right
    notes = optdp.compare(unbiased, mechanisms={"mine": mine, "fair": fair}, rtol=0.1).notes
    assert "Not shown to be unbiased, so that the bound need not hold for them: mine." in notes
    within = optdp.Problem(optdp.LDP(1.0), (0, 1), "squared", constraints=(optdp.Outputs(0.2, 0.8),))
    assert any(note.endswith("for them: mine.") for note in optdp.compare(within, mechanisms={"mine": mine}).notes)
    assert not any("Not shown" in note for note in optdp.compare(1.0, mechanisms={"mine": mine}).notes)


class Mine(optdp.Mechanism):
    """Uniform outputs, with a density of this height."""

    def __init__(self, height=1.0, claim=None):
        self.domain, self.height, self.claim = optdp.Interval(0, 1), height, claim

    def randomize(self, x, rng=None):
        return np.random.default_rng(rng).random(np.shape(x))

    def density(self, y, x):
        return self.height * np.ones(np.broadcast(y, x).shape)

    def guarantee(self):
        return self.claim


@pytest.mark.parametrize(
    ("change", "words"),
    [({"height": 0.5}, r"add up to 0\.5"), ({"height": np.nan}, "add up to nan"),
     ({"claim": 1.0}, r"guarantee\(\) of Mine gave 1\.0"), ("domain", "Mine has no domain")],
)  # fmt: skip
def test_what_is_wrong_with_ones_own_mechanism_is_said(change, words):
    mine = Mine() if isinstance(change, str) else Mine(**change)
    assert optdp.compare(1.0, mechanisms=Mine()).rows
    if isinstance(change, str):
        delattr(mine, change)
    with pytest.raises((TypeError, ValueError), match=words):
        optdp.compare(1.0, mechanisms=mine)


def test_a_solution_is_compared_as_it_is_and_a_wide_bracket_is_told():
    noise = optdp.compare(optdp.solve_additive(1.0, 0.1)).notes
    assert "truncated staircase: not published, but found here (discovery D-TLAP-2)." in noise
    cube = optdp.solve_vector(2.0, 5, norm="linf")
    report = optdp.compare(cube)
    assert next(row for row in report.rows if row["mechanism"] == "optimum")["value"] == cube.value and cube.gap > 0.1
    assert any('which the row "optimum" attains' in note for note in report.notes)
    narrow = optdp.compare(optdp.solve_frequency(1.0, 4))
    assert not any("attains" in note for note in narrow.notes)
    for shown in (report, narrow):  # no inputs on an axis: bars
        assert [bar.get_width() for bar in shown.plot().axes[0].patches] == [row["value"] for row in shown.rows]


@pytest.mark.parametrize("problem", ["piecewise", "kernel", "unbiased", "composite", "additive", "lip", "vector"])
def test_an_empty_grid_is_refused(problem):
    with pytest.raises(ValueError, match="eps is not allowed to be empty"):
        optdp.gap_report({"problem": problem, "eps": []})


def test_dimensions_stand_beside_epsilons():
    report = optdp.gap_report({"problem": "vector", "eps": 1.0, "dim": [2, 3]})
    assert [c.heading for c in report.columns][:3] == ["eps", "d", "lower bound"]


@pytest.mark.parametrize(("problem", "name"), [("vector", "dim"), ("piecewise", "eps"), ("releases", "releases")])
def test_a_text_is_no_grid(problem, name):
    """The entries of b"1" are 49: a report on dimension 49."""
    with pytest.raises(TypeError, match=rf"{name} = b'1' is not allowed: {name} must be"):
        optdp.gap_report({"problem": problem, name: b"1"})


def test_titles_fit_and_axes_are_axes():
    title = draw(optdp.solve_additive(1.0, 0.05, rtol=0.1).mechanism).get_title()
    assert "(1.0, 0.05)-DP" in title and max(map(len, title.splitlines())) <= 72
    with pytest.raises(TypeError, match=r"ax = 0\.3"):
        optdp.solve_piecewise(1.0).plot(0.3)


def test_probabilities_are_not_drawn_as_densities():
    atoms, both = optdp.solve_kernel(2.0, metric="abs", rtol=0.1), baselines.get("clamped Laplace").build(
        optdp.Problem(optdp.LDP(1.0), (0, 1), "abs")
    )  # fmt: skip
    assert draw(atoms).get_ylabel() == "probability given x" and len(draw(atoms).get_lines()) == 3
    assert draw(both).get_ylabel() == "density given x (dots: probability)"
    assert draw(optdp.solve_piecewise(1.0)).get_ylabel() == "density given x"


def test_the_best_of_all_stands_beside_the_best_of_a_family():
    """Ratios to either differ by one factor, that of the family to all; on a circle they are the same and one column is left."""
    rows = optdp.compare(1.0).rows
    factor = optdp.solve_piecewise(1.0).value / optdp.solve_kernel(1.0).value
    for row in rows:
        assert row["of all"] == pytest.approx(row["ratio"] * factor, rel=1e-12)
    assert min(row["of all"] for row in rows) > 1 > min(row["ratio"] for row in rows)
    assert "of all" not in optdp.compare(1.0, domain=optdp.Circle(1.0)).rows[0]
    report = optdp.gap_report({"problem": "piecewise", "eps": [1.0, 3.0]})
    for row in report.rows:
        assert row["all lower"] <= row["all value"] < row["lower"] and row["of all"] == row["value"] / row["all value"]
    assert "of all" not in optdp.gap_report({"problem": "piecewise", "eps": 1.0, "kernel": False}).rows[0]


def test_composites_have_a_report():
    """A1B1 is the I-PTT, of a quarter of its variance for a range of half the length; its rivals are ratios to it."""
    report = optdp.gap_report({"problem": "composite", "eps": [0.5, 2.0], "objective": "worst"})
    for row in report.rows:
        assert row["value"] == pytest.approx(optdp.solve_ptt(row["eps"]).value / 4, rel=1e-9) and row["verified"]
        assert row["PM-OPT"] == pytest.approx(1, rel=1e-9) and row["A3"] > row["A2"] > 1
        assert row["all lower"] <= row["all value"] < row["value"]
    middle = optdp.gap_report({"problem": "composite", "eps": 1.0})
    assert middle.rows[0]["Laplace"] == pytest.approx(2 / middle.rows[0]["value"], rel=1e-9)
    with pytest.raises(ValueError, match="objective"):
        optdp.gap_report({"problem": "composite", "objective": "side"})


def test_tables_and_solutions_in_latex(tmp_path):
    report = Report("A & B", [Column("a", "100% of_x"), Column("b", "b")], [{"a": "x^2 < {y}", "b": 0.5}], ["n"])
    report.save(tmp_path / "r.tex")
    lines = (tmp_path / "r.tex").read_text().splitlines()
    assert lines[1] == r"\begin{tabular}{lr}" and lines[3] == r"100\% of\_x & b \\"
    assert lines[5] == r"x\textasciicircum{}2 $<$ \{y\} & 0.5 \\"
    text = optdp.solve_piecewise(1.0).to_latex()
    assert r"\text{optimum} \in [0.377540668, 0.377540669]" in text and r"\varepsilon" in text
    assert text.count("\\begin") == text.count("\\end")
    assert r"\text{closed form: } " in optdp.solve_piecewise(1.0).to_latex().splitlines()[3]
    assert len(optdp.solve_kernel(2.0, rtol=0.1).to_latex().splitlines()) == 4  # no closed form: problem and bracket


def test_wide_tables_have_headings_of_two_lines():
    columns = [Column("a", "first mechanism / best of family")] * 5
    wide = Report("t", columns, [{"a": 1.0}]).to_text().splitlines()
    assert "first mechanism" in wide[2] and "/ best of family" in wide[3] and max(map(len, wide)) < 100
    assert len(Report("t", columns[:2], [{"a": 1.0}]).to_text().splitlines()) == len(wide) - 1
    long = Report("t", [Column("a", "a" * 120)], [{"a": 1.0}]).to_text().splitlines()  # nothing for a second line
    assert long[3].startswith("---")
    short = optdp.compare(optdp.solve_additive(1.0, 0.1)).columns
    assert [c.heading for c in short if c.key == "guarantee"] == ["(1.0, 0.1)-DP"]


def test_curves_differ_in_colour_line_or_marker():
    axes = plots.curves([1.0, 2.0], {str(k): [k, k] for k in range(24)})
    styles = {(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.get_lines()}
    assert len(styles) == 24


def _apart(axes):
    """No two labels of an axis overlap, and the title is within the figure."""
    axes.figure.canvas.draw()
    for labels in (axes.get_xticklabels(), axes.get_yticklabels()):
        boxes = [label.get_window_extent() for label in labels if label.get_text()]
        assert boxes and not any(a.overlaps(b) for a, b in pairwise(boxes))
    title = max((t.get_window_extent() for t in (axes.title, axes._left_title)), key=lambda box: box.width)
    return title.x1 <= axes.figure.bbox.x1 and title.y0 >= axes.bbox.y1


def test_names_of_symbols_have_room():
    names = optdp.Alphabet([f"category number {k}" for k in range(12)])
    named = optdp.solve_kernel(1.0, 1 - np.eye(12), domain=names).plot()
    assert _apart(named) and len({label.get_text() for label in named.get_yticklabels()}) == 12
    many = plots.new_axes()
    plots.name_axis(many.xaxis, "output", range(40))
    assert _apart(many) and many.get_xlabel() == "output (position)"
    plots.pyplot().close("all")


def test_places_on_a_line_have_axes_of_some_height():
    places = optdp.Points([[0, 0], [1, 0], [2, 0]])
    axes = optdp.solve_kernel(1.0, domain=optdp.Alphabet([1, 2, 3]), metric=places).plot()
    assert _apart(axes) and axes.bbox.height > 100
    plots.pyplot().close("all")


def test_a_grid_in_any_order_is_one_curve_with_labels_that_have_room():
    axes = plots.curves([3.0, 1.0, 1.01, *np.linspace(1.5, 5, 9)], {"a": range(12)}, logs="x", title="t")
    assert _apart(axes) and np.all(np.diff(axes.lines[0].get_xdata()) >= 0)
    plots.pyplot().close("all")


@pytest.mark.parametrize("longest", [3.0, 250_000.0])
def test_every_bar_is_seen_beside_the_longest_one(longest):
    """Uniform noise at delta = 1e-6 left no pixel to the others."""
    axes = plots.bars({"optimum": 0.96, "Laplace": 1.0, "uniform noise": longest}, "loss", "title").axes[0]
    axes.figure.canvas.draw()
    seen = [bar.get_window_extent().intersection(bar.get_window_extent(), axes.bbox).width for bar in axes.patches]
    assert min(seen) > 0.02 * axes.bbox.width and seen[0] < seen[1] < seen[2] < axes.bbox.width
    plots.pyplot().close("all")


def test_names_of_ones_own_are_drawn_as_they_are_written():
    """Two dollar signs make no formula, an underscore hides nothing in a legend, and a name is one line of every table."""
    names = ["$x^{$", "_mine"]
    own = {name: optdp.solve_piecewise(1.0).mechanism for name in names}
    figure = optdp.gap_report(optdp.solve_piecewise(1.0), mechanisms=own).plot()
    figure.canvas.draw()
    shown = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert [text.replace("\\$", "$").strip() for text in shown][1:] == names
    plots.bars({"$x^{$": 1.0}, "$x^{$", "$x^{$").canvas.draw()
    with pytest.raises(ValueError, match="must be one line"):
        optdp.gap_report(optdp.solve_piecewise(1.0), mechanisms={"a\noptimum": own["_mine"]})
    plots.pyplot().close("all")


def test_what_is_hardly_ever_sent_is_not_drawn():
    """The floor that the solver finds here has a share of 1e-11 besides three atoms."""
    average = optdp.Problem(optdp.LDP(2.0), optdp.Interval(0, 1), optdp.Average("abs"))
    axes = optdp.solve(average).plot()
    assert len(axes.figure.axes) == 1 and "atoms" in axes.get_ylabel()  # no scale of densities
    plots.pyplot().close("all")


def test_what_a_notebook_shows_of_a_report_has_no_figure():
    shown = optdp.compare(1.0)._repr_html_()
    assert "<table>" in shown and "<svg" not in shown


@pytest.mark.parametrize(
    "eps", [1.0000004, optdp.log(3), *(pytest.param(eps, marks=pytest.mark.soak) for eps in (0.7, 1.0, 1.00004))]
)
def test_titles_do_not_understate_epsilon(eps):
    """1.00004 was "1-LDP" in a figure, 1.0000004 in the titles of reports; what has few digits is written as it is."""
    mechanism = optdp.solve_piecewise(eps, 3).mechanism
    titles = [mechanism.plot().get_title(), repr(mechanism), optdp.recommend((0, 1), eps, "answers").statement]
    titles += [releases.gap_report(eps, 1e-6, releases=[1]).title, lip.size_report(float(eps), [2]).title]
    titles.append(lip.plot_kernel(optdp.solve_lip([0.5, 0.5], eps).mechanism).get_title())
    plots.pyplot().close("all")
    for title in titles:
        (told,) = re.findall(r"([0-9][0-9.]*)-LDP|eps = ([0-9][0-9.]*)$|\(([0-9][0-9.]*), 1e-06\)-DP", title)
        told = "".join(told)
        assert Fraction(told) >= Fraction(float(eps)) or float(told) == eps, title
        assert float(told) <= 1.001 * float(eps) and (len(str(eps)) > 4 or told == f"{eps:g}")


def test_what_a_report_does_not_take_is_told_with_what_it_takes():
    with pytest.raises(TypeError, match=r"'epsilon' is not allowed with problem = 'piecewise': it takes eps, loss"):
        optdp.gap_report({"problem": "piecewise", "epsilon": [1.0]})
    with pytest.raises(ValueError, match=r"^claims = 'X' .* a paper \(OPTT, .*\) or an id such as OPTT-1") as caught:
        optdp.audit("X")
    assert len(str(caught.value)) < 200
    with pytest.raises(ValueError, match=r"^claims = 'D-OGPM-8' .*: `optdp discoveries --claim D-OGPM-8`"):
        optdp.audit("D-OGPM-8")
    with pytest.raises(ValueError, match=r"^ids = 'OGPM-3' .*: `optdp audit --claim OGPM-3`"):
        optdp.discoveries("OGPM-3")


def test_counts_have_whole_ticks():
    """The axis of one sign that agrees or not had 0.2, 0.4, ..., and the label "signs of 1"."""
    from optdp.mechanisms.signs import SignMechanism

    cube = optdp.Box((-1,) * 3, (1,) * 3)
    for mechanism, told in (
        (SignMechanism.private(1.0, cube, 1, 1), "whether the one sign that is sent agrees"),
        (SignMechanism.private(1.0, cube, 3, 2), "how many of the 3 signs that are sent agree"),
        (optdp.solve_additive(3.0, 0.1, discrete=True).mechanism, "noise"),
    ):
        axes = mechanism.plot()
        assert told in axes.get_xlabel()
        assert len(axes.get_xticks()) > 1 and all(float(tick).is_integer() for tick in axes.get_xticks())


def test_a_table_says_of_a_mechanism_what_the_mechanism_says():
    """Whatever others with its guarantee do: its KL divergence is 0.4952 where 1-GDP allows 1/2, and its delta(2) below 0.09."""
    for privacy, other in (
        (optdp.GDP(1.0), optdp.KL(0.499)), (optdp.ApproxDP(1.0, 0.1), optdp.ApproxDP(2.0, 0.09)),
    ):  # fmt: skip
        noise = optdp.solve_additive(privacy, loss=optdp.Huber(0.2), rtol=0.1).mechanism
        asked = optdp.Problem(other, optdp.Line(), "abs", optdp.Additive())
        assert noise.satisfies(other) is True and guarantees(noise, asked) == "yes"
        assert other.implied_by(noise.guarantee()) is not True
    laplace = baselines.get("Laplace").build(optdp.Problem(optdp.LDP(1.0), optdp.Interval(0, 1), "abs"))
    for eps, told in ((1.0, "in real arithmetic"), (0.9, "no")):
        assert guarantees(laplace, optdp.Problem(optdp.LDP(eps), (0, 1), "abs")) == told


def test_a_narrow_logarithmic_axis_has_ticks_on_both_sides_of_1():
    axes = optdp.gap_report({"problem": "piecewise", "eps": [0.5, 2.0]}).plot().axes[0]
    bottom, top = axes.get_ylim()
    shown = [tick for tick in axes.get_yticks() if bottom <= tick <= top]
    assert 1 in np.round(shown, 9) and sum(tick > 1.001 for tick in shown) >= 3


def test_one_epsilon_is_drawn_as_a_point():
    """A line through one point is not seen: of a simulation at one epsilon the theory was missing."""
    from optdp.report.plots import curves

    (one,) = curves([1.0], {"theory": [0.5]}, marker=False).lines
    (many, *_) = curves([1.0, 2.0], {"theory": [0.5, 0.4]}, marker=False).lines
    assert one.get_marker() == "o" and many.get_marker() == ""

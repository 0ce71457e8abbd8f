"""The command line, as a user meets it."""

import argparse
import csv
import io
import json
import re
from pathlib import Path

import numpy as np
import pytest

import optdp
from optdp.cli import build_parser, columns, main
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines.noise import Laplace


def run(capsys, *arguments):
    status = main([str(a) for a in arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def test_solve_prints_the_bracket_and_its_verification(capsys):
    status, out, _ = run(capsys, "solve", "piecewise", "--eps", 1, "--m", 3, "--loss", "abs")
    assert status == 0
    assert "[0.377540668798, 0.377540668799]" in out and "1/(exp(eps/2) + 1)" in out and "FAIL" not in out


def test_solve_json_out_plot_and_verify(capsys, tmp_path):
    status, out, _ = run(capsys, "solve", "piecewise", "--eps", 2, "--loss", "power:1.5", "--circle", 6.0, "--json",
                         "--out", tmp_path / "s.json", "--plot", tmp_path / "s.png")  # fmt: skip
    data = json.loads(out)
    assert status == 0 and data["verified"] and data["gap"] <= 1e-9
    assert (tmp_path / "s.png").stat().st_size > 10_000
    status, out, _ = run(capsys, "verify", tmp_path / "s.json")
    assert status == 0 and out.rstrip().endswith("verified")
    saved = json.loads((tmp_path / "s.json").read_text())
    saved["lower_bound"] *= 1.001
    (tmp_path / "forged.json").write_text(json.dumps(saved))
    status, out, _ = run(capsys, "verify", tmp_path / "forged.json")
    assert status == 2 and "FAIL bracket" in out and "NOT verified" in out


def test_mechanisms_and_plans_are_verified_too(capsys, tmp_path):
    """Of a plan nothing is printed that the file merely says: how other strategies would do."""
    made, plan = tmp_path / "m.json", tmp_path / "p.json"
    optdp.solve_kernel(1.0).mechanism.save(made)
    status, out, _ = run(capsys, "verify", made)
    assert (
        status == 0
        and "guarantee: 1-LDP" in out
        and "ok   privacy" in out
        and len(max(out.splitlines(), key=len)) < 200
    )
    optdp.plan(
        {"age": optdp.Number(0, 100), "job": optdp.Category(["a", "b", "c"])}, 2.0, n=500, strategy="split"
    ).save(plan)
    status, out, _ = run(capsys, "verify", plan)
    assert status == 0 and "2.0-LDP" in out and "ok   age, privacy" in out and "ok   job, privacy" in out
    assert "Strategies" not in out and "within about" not in out and out.endswith("\nverified\n")
    data = json.loads(plan.read_text())
    column = data["parts"][0]["mechanism"]
    data["parts"][0]["eps"], data["eps"] = 3, 5  # more than the mechanisms need, who are what is told of
    plan.write_text(json.dumps(data))
    status, out, _ = run(capsys, "verify", plan)
    assert status == 0 and "epsilon = 2)" in out and "e^3" not in out
    assert f"age: {Mechanism.from_dict(column).guarantee()}\n" in out
    data["parts"][0]["eps"] = 1.9
    data["eps"] = 1.9
    plan.write_text(json.dumps(data))
    status, out, err = run(capsys, "verify", plan)
    assert status == 2 and "p.json" in err and not out.endswith("\nverified\n")
    Laplace(1.0).save(made)  # in real arithmetic, by its formula: nothing is checked
    status, out, err = run(capsys, "verify", made)
    assert status == 2 and "its guarantee has no exact check" in err and out.endswith("\nNOT verified\n")
    plan.write_text('{"optdp": 1, "ledger": {}}')
    assert (
        "holds a ledger, which is not allowed: it must hold a solution, a mechanism or a plan"
        in run(capsys, "verify", plan)[2]
    )


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_solution_on_standard_output_stands_alone(capsys, more):
    """`optdp solve ... --out - | optdp verify -`: what is told besides goes to standard error."""
    status, out, err = run(capsys, "solve", "piecewise", "--eps", 1, "--out", "-", *more)
    assert status == 0 and "optdp" in json.loads(out) and "0.37754" in err
    status, out, err = run(capsys, "plan", "--eps", 1, "--flag", "a", "--out", "-")
    assert status == 0 and json.loads(out)["parts"] and "Predicted errors" in err


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["additive", "--eps", 1, "--delta", 0.3, "--rtol", 0.3, "--profile"], "delta"),
        (["lip", "--eps", 1, "--prior", "0.5,0.5", "--kernel"], "mean absolute"),
    ],
)
def test_what_commands_add_to_a_solution_goes_beside_it_too(capsys, asked, said):
    status, out, err = run(capsys, "solve", *asked, "--out", "-")
    assert status == 0 and json.loads(out)["optdp"] and said in err


def test_verify_prints_nothing_that_the_file_merely_says(capsys, tmp_path):
    optdp.solve_piecewise(1, 3, "squared").save(tmp_path / "s.json")
    saved = json.loads((tmp_path / "s.json").read_text())
    saved["program"] |= {"solver": "HEARSAY", "rtol": 1.0, "message": "HEARSAY", "variables": "HEARSAY"}
    (tmp_path / "s.json").write_text(json.dumps(saved))
    status, out, _ = run(capsys, "verify", tmp_path / "s.json")
    assert status == 0 and "HEARSAY" not in out
    assert out.startswith(
        "the least worst-case E(Y - x)^2 over all 1.0-LDP mechanisms from [0, 1] to [0, 1] whose density"
    )


def places(data, path=()):
    """Every place in nested objects and lists."""
    for key, value in data.items() if isinstance(data, dict) else enumerate(data):
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from places(value, (*path, key))


def test_verify_answers_every_broken_file_in_one_line(capsys, tmp_path):
    """Each entry removed, or replaced by something of another type, size or sign: status 0 or 2, never a traceback."""
    solution = optdp.solve_piecewise(optdp.log(3), 3, optdp.Pieces((0, 1), ((0, 0, 1), (-1, 2))))
    text, path, statuses = json.dumps(solution.to_dict()), tmp_path / "s.json", []
    odd = [None, True, "x" * 20_000, -1, 1e308, 10**400, [], {"type": "?"}, "log(0)"]
    for turn, place in enumerate(places(json.loads(text))):
        for change in ["remove", *odd][turn % 2 :: 2]:
            data = json.loads(text)
            where = data
            for key in place[:-1]:
                where = where[key]
            if change == "remove":
                del where[place[-1]]
            else:
                where[place[-1]] = change
            path.write_text(json.dumps(data))
            status, out, err = run(capsys, "verify", path)
            statuses.append(status)
            if status == 2:
                one = err.startswith("optdp: error: s.json") and err.count("\n") == 1 and len(err) < 1000
                assert one and (not out or out.endswith("NOT verified\n")), (place, change)
            else:
                assert out.endswith("\nverified\n") and not err
    assert statuses.count(2) > 100 and {0, 2} == set(statuses)
    for text in ("", "{", "[]", "5", '{"optdp": 1}', '{"a": NaN}', "[" * 100_000, '{"a": 1, "a": 2}', "\x00"):
        path.write_text(text)
        status, _, err = run(capsys, "verify", path)
        assert status == 2 and err.startswith("optdp: error: s.json") and err.count("\n") == 1, (text, err)
    path.write_bytes(b"\xff\xfe{}")
    assert run(capsys, "verify", path)[0] == 2
    assert run(capsys, "verify", tmp_path)[0] == 2


def test_solve_prints_writes_and_still_saves_the_model(capsys, tmp_path):
    status, out, _ = run(capsys, "solve", "piecewise", "--eps", 1, "--m", 2, "--model", "--out", tmp_path / "s.json",
                         "--plot", tmp_path / "s.png", "--write", tmp_path / "m.nl")  # fmt: skip
    assert status == 0 and "worst_case" in out and "mass" in out and "optimum in" in out
    assert optdp.Solution.load(tmp_path / "s.json").verify()
    assert (tmp_path / "s.png").stat().st_size > 10_000 and (tmp_path / "m.nl").read_text().startswith("g3")
    status, _, err = run(capsys, "solve", "piecewise", "--eps", 1, "--write", tmp_path / "m.doc")
    assert status == 2 and ".nl" in err


def test_files_are_written_before_anything_is_printed(monkeypatch, tmp_path):
    """The reader of the output may stop early, as `head` does."""

    def closed(*_args, **_options):
        raise BrokenPipeError

    monkeypatch.setattr("builtins.print", closed)
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert main(["solve", "piecewise", "--eps", "1", "--out", str(tmp_path / "s.json")]) == 0
    assert main(["compare", "--eps", "1", "--html", str(tmp_path / "c.html")]) == 0
    assert (tmp_path / "s.json").exists() and (tmp_path / "c.html").exists()


@pytest.mark.parametrize(
    ("text", "shown"),
    [("0.5", "0.5-LDP"), ("1/2", "1/2-LDP"), ("log(3)", "log(3)-LDP"), ("0.9999999", "0.9999999-LDP")],
)
def test_numbers_on_the_command_line_are_exact(capsys, text, shown):
    status, out, _ = run(capsys, "solve", "piecewise", "--eps", text)
    assert status == 0 and f"over all {shown}" in out


@pytest.mark.parametrize(
    ("loss", "phrase"), [("power:1.5", "|Y - x|^1.5"), ("huber:0.25", "corner 0.25"), ("threshold:0.1", "0.1")]
)
def test_losses_on_the_command_line(capsys, loss, phrase):
    status, out, _ = run(capsys, "solve", "piecewise", "--eps", 1, "--loss", loss)
    assert status == 0 and phrase in out.splitlines()[0]


def test_the_page_of_what_is_solved_is_printed_from_the_registry(capsys):
    status, out, _ = run(capsys, "problems", "--markdown")
    assert status == 0
    assert (Path(__file__).parent.parent / "docs" / "solved.md").read_text() == out
    assert "piecewise" in run(capsys, "problems")[1]


def test_the_plain_list_of_what_is_solved_labels_each_part(capsys):
    status, out, _ = run(capsys, "problems")
    assert status == 0 and "  finite kernel: privacy: LDP; domain: Alphabet; objective: " in out


def test_reports(capsys, tmp_path):
    status, out, _ = run(capsys, "compare", "--eps", 1)
    assert status == 0 and "PM" in out and "0.377541" in out
    status, out, _ = run(capsys, "compare", "--eps", 1, "--loss", "squared", "--markdown", "--html", tmp_path / "c.html",
                         "--plot", tmp_path / "c.svg")  # fmt: skip
    assert status == 0 and out.startswith("### ")
    page = (tmp_path / "c.html").read_text()
    assert "<svg" in page and page.count("<tr>") == out.count("\n| ") - 1
    status, out, _ = run(capsys, "report", "piecewise", "--eps", 1, 2, "--json")
    rows = json.loads(out)["rows"]
    assert [row["eps"] for row in rows] == [1, 2] and rows[0]["moved PM"] == pytest.approx(1)
    status, out, _ = run(capsys, "report", "piecewise", "--eps", 1, "--circle", 1)
    assert status == 0 and "uniform" in out


def test_hypothesis_command(capsys):
    status, out, _ = run(capsys, "hypothesis", "--samples", 50, "--pieces", "3-9", "--loss", "abs", "--seed", 0)
    assert status == 0 and "HOLDS at 50 of 50" in out
    with pytest.raises(SystemExit):  # the argument was said to be "()"
        main(["hypothesis", "--pieces", "9-3"])
    assert "'9-3' is not a number of pieces: use 5 or 3-9" in capsys.readouterr().err


def test_demo_runs_and_leaves_a_figure(capsys, tmp_path):
    pytest.importorskip("statsmodels")
    status, out, _ = run(capsys, "demo", "--out", tmp_path / "d")
    assert status == 0 and "20,190 person-years" in out and "8 of 8 intervals contain it" in out and "FAIL" not in out
    assert (tmp_path / "d" / "private-table.png").stat().st_size > 20_000


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["solve", "piecewise", "--eps", "0"], "eps = 0.0"),
        (["solve", "piecewise", "--eps", "nan"], "eps = nan"),
        (["solve", "piecewise", "--eps", "1", "--m", "1"], "m = 1"),
        (["solve", "piecewise", "--eps", "1", "--domain", "1", "0"], "domain"),
        (["solve", "piecewise", "--eps", "1", "--out", "/nowhere/s.json"], "no folder /nowhere"),
        (["solve", "piecewise", "--eps", "1", "--circle", "1e300", "--loss", "squared"], ""),
        (["solve", "piecewise", "--eps", "1", "--domain", "0", "1e200", "--loss", "squared"], ""),
        (["verify", "/nowhere/s.json"], "error: /nowhere/s.json: No such file or directory"),
        (["solve", "piecewise", "--eps", "1", "--plot", "s.doc"], "s.doc"),
        (["compare", "--eps", "0"], "eps = 0.0"),
        (["compare", "--eps", "1", "--html", "x.docx"], "x.docx"),
    ],
)
def test_errors_are_one_line_and_status_2(capsys, arguments, words):
    status, _, err = run(capsys, *arguments)
    assert status == 2 and err.startswith("optdp: error: ") and words in err and err.count("\n") == 1


def test_unknown_loss_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["solve", "piecewise", "--eps", "1", "--loss", "hubert"])
    assert stop.value.code == 2 and "hubert" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["solve", "piecewise", "--eps", "1", "--loss", "power:x"])
    assert "'x' is not a number" in capsys.readouterr().err
    for eps in ("one", "1/0", "log(-3)"):
        with pytest.raises(SystemExit):
            main(["solve", "piecewise", "--eps", eps])
        assert "use 0.5, 1/2 or log(3)" in capsys.readouterr().err


def test_every_command_has_help(capsys):
    for words in ([], ["solve"], ["solve", "piecewise"], ["report", "piecewise"], ["compare"], ["hypothesis"], ["randomize"],
                  ["verify"], ["problems"], ["demo"]):  # fmt: skip
        with pytest.raises(SystemExit) as stop:
            main([*words, "--help"])
        assert stop.value.code == 0 and "usage: optdp" in capsys.readouterr().out


# --- randomize ------------------------------------------------------------------------------------------------------


def table(path, values, header="id,age,town"):
    path.write_text("\n".join([header, *(f"{k},{v},x" for k, v in enumerate(values))]) + "\n")
    return path


def rows(path):
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def test_randomize_replaces_one_column_and_keeps_the_rest(capsys, tmp_path):
    source = table(tmp_path / "in.csv", np.linspace(0, 100, 70_000))
    status, _, err = run(capsys, "randomize", "--eps", 2, "--column", "age", "--lower", 0, "--upper", 100, "--seed", 1,
                         "--mechanism", "optimal", "--keep", "id,town", "--save-mechanism", tmp_path / "m.json",
                         source, tmp_path / "out.csv")  # fmt: skip
    assert status == 0 and "70000 values" in err
    before, after = rows(source), rows(tmp_path / "out.csv")
    assert [(r["id"], r["town"]) for r in before] == [(r["id"], r["town"]) for r in after]
    moved = np.array([float(b["age"]) - float(a["age"]) for a, b in zip(before, after, strict=True)])
    mechanism = optdp.Mechanism.load(tmp_path / "m.json")
    assert np.abs(moved).mean() == pytest.approx(mechanism.average_loss("abs"), rel=0.02)
    assert mechanism.privacy() <= 2


@pytest.mark.parametrize(("n", "told"), [(1, "1 person"), (90, "90 people")])
def test_randomize_tells_the_error_about_as_many_people_as_there_are(capsys, tmp_path, n, told):
    """It told that about 1000."""
    source = table(tmp_path / "in.csv", [30] * n, "id,age,town")
    words = (
        "randomize",
        "--eps",
        1,
        "--column",
        "age",
        "--lower",
        0,
        "--upper",
        120,
        "--only",
        source,
        tmp_path / "out.csv",
    )
    status, _, err = run(capsys, *words)
    best = optdp.recommend((0, 120), 1.0, n=n).best
    assert (
        status == 0
        and re.search(rf"mean about {told} in the worst case, eps = 1(.0)?: (.*)\n", err)[2] == f"{best.error:.4g}"
    )


def test_randomize_only_and_clip(capsys, tmp_path):
    source = table(tmp_path / "in.csv", [-5, 50, 1e9])
    status, _, _ = run(capsys, "randomize", "--eps", 1, "--column", "age", "--lower", 0, "--upper", 100, "--clip", "--only",
                       "--mechanism", "moved PM", source, tmp_path / "out.csv")  # fmt: skip
    assert status == 0
    values = [float(r["age"]) for r in rows(tmp_path / "out.csv")]
    assert len(values) == 3 and all(0 <= v <= 100 for v in values)


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        ([1, 2, 101], [], "row 3: age is out of range"),
        ([1, ""], [], "row 2: age is missing"),
        ([1, "nan"], ["--clip"], "row 2: age is missing"),
        ([1, "old"], ["--clip"], "row 2: age is not a number"),
        ([1, "2,3"], [], "row 2 has 4 fields"),
        ([1, "x" * 200_000], [], "row 2 has a field longer than 131072 characters"),
        ([*range(66_000), 5], [], "row 102: age is out of range"),
    ],
)
def test_randomize_refuses_with_the_row_and_leaves_nothing(capsys, tmp_path, values, options, words):
    source = table(tmp_path / "in.csv", values)
    target = tmp_path / "out.csv"
    status, _, err = run(capsys, "randomize", "--eps", 1, "--column", "age", "--lower", 0, "--upper", 100, "--only",
                         "--mechanism", "optimal", *options, source, target)  # fmt: skip
    assert status == 2 and words in err
    assert "101" not in err and "old" not in err  # a private value is never printed
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv"]


def test_an_error_in_a_later_chunk_leaves_the_old_output_alone(capsys, tmp_path):
    source = table(tmp_path / "in.csv", [*np.zeros(70_000), 200])
    target = tmp_path / "out.csv"
    target.write_text("precious")
    status, _, err = run(
        capsys, "randomize", "--eps", 1, "--column", "age", "--lower", 0, "--upper", 100, "--only", "--loss", "abs", source,
        target,
    )  # fmt: skip
    assert status == 2 and "row 70001" in err and target.read_text() == "precious"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("id,years,town", "no such column among the 3"),
        ("id;age;town", "whose fields are separated by ','"),
        ("age,age,town", "column 2 has the name of another column"),
    ],
)
def test_randomize_needs_the_column_once(capsys, tmp_path, monkeypatch, header, words):
    monkeypatch.setattr(columns, "_mechanism", lambda args: pytest.fail("computed before the header is read"))
    source = table(tmp_path / "in.csv", [1], header)
    status, _, err = run(
        capsys, "randomize", "--eps", 1, "--column", "age", "--lower", 0, "--upper", 1, "--placement", "linear", source,
        tmp_path / "o.csv",
    )  # fmt: skip
    assert status == 2 and words in err and "town" not in err


def test_several_epsilons_are_separated_by_spaces(capsys):
    for text in ("0.5,1,2", "0,5"):
        with pytest.raises(SystemExit):
            run(capsys, "report", "kernel", "--eps", text)
        assert "several are separated by spaces, and decimals begin with a point" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["moved PM", "moved SW", "moved PTT", "PM", "uniform"])
def test_randomize_takes_baselines_from_the_registry(capsys, tmp_path, name):
    source = table(tmp_path / "in.csv", np.linspace(0, 100, 500))
    status, _, err = run(capsys, "randomize", "--eps", "log(3)", "--column", "age", "--lower", 0, "--upper", 100,
                         "--only", "--mechanism", name, "--save-mechanism", tmp_path / "m.json",
                         source, tmp_path / "out.csv")  # fmt: skip
    assert status == 0, err
    assert optdp.Mechanism.load(tmp_path / "m.json").satisfies(optdp.LDP(optdp.log(3)))
    assert len(rows(tmp_path / "out.csv")) == 500


def test_randomize_refuses_what_samples_floats_and_paths_that_cannot_be_written(capsys, tmp_path):
    source = table(tmp_path / "in.csv", [1, 2])
    common = ["randomize", "--eps", 1, "--column", "age", "--lower", 0, "--upper", 100, "--only"]
    for options, words in [
        (["--mechanism", "Laplace"], "real arithmetic"),
        (["--mechanism", "none"], "one of Laplace"),
        (["--loss", "abs", "--goal", "mean"], "--loss is not allowed with --goal"),
        (["--mechanism", "PM", "--placement", "linear"], "--placement is not allowed"),
        (["--mechanism", "PM", "--save-mechanism", "/nowhere/m.json"], "no folder /nowhere"),
        (["--mechanism", "PM", "--save-mechanism", tmp_path / "out.csv"], "the same file, and another output"),
        (["--mechanism", "PM", "--save-mechanism", source], "--save-mechanism"),
    ]:
        status, _, err = run(capsys, *common, *options, source, tmp_path / "out.csv")
        assert status == 2 and words in err
        assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("solve", "composite", "--eps", 1, "--target", 3), "target = 3.0 is not allowed with backend = 'auto'"),
        (("solve", "composite", "--eps", 1, "--inputs", 2, 5, "--lower", 1), "not allowed beside inputs"),
        (("solve", "composite", "--eps", 1, "--inputs", 2, 5, "--sensitivity", 2), "not allowed beside inputs"),
        (("report", "vector", "--dim", 2, 3, "--plot", "v.png"), "--plot is not allowed with several --dim"),
        (("report", "kernel", "--plot", "v.txt"), "path = 'v.txt' is not allowed: a figure is written as"),
        (("report", "kernel", "--html", "v.txt"), "--html v.txt is not allowed: a page is written as .html"),
        (("evaluate", "--data", "anes96:age", "--range", 0, 10), "--range is not allowed with --data"),
        (("evaluate", "--data", "anes96:age", "--column", "age"), "--column is not allowed with --data"),
        (("recommend",), "eps is missing"),
        (
            ("solve", "lip", "--prior", "0.1,0.9", "--eps", 1, "--kernel", "--json"),
            "--kernel is not allowed with --json",
        ),
        (
            ("solve", "additive", "--eps", 1, "--profile", "--json"),
            "--profile without pairs is not allowed with --json",
        ),
    ],
)
def test_options_that_would_play_no_part_are_refused(capsys, tmp_path, monkeypatch, words, said):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, *words)
    assert status == 2 and said in err and not out and not list(tmp_path.iterdir())


@pytest.mark.parametrize("mechanism", ["PM", "unbiased kernel"])
def test_a_loss_is_for_mechanisms_that_are_designed_for_one(capsys, tmp_path, mechanism):
    (tmp_path / "in.csv").write_text("age\n30\n")
    column = ("--eps", 1, "--column", "age", "--lower", 0, "--upper", 120, tmp_path / "in.csv", tmp_path / "out.csv")
    status, _, err = run(capsys, "randomize", "--mechanism", mechanism, "--loss", "squared", *column)
    assert status == 2 and f"--loss is not allowed with --mechanism {mechanism!r}" in err


def test_a_report_without_a_figure_has_no_option_for_one(capsys):
    with pytest.raises(SystemExit):
        run(capsys, "hypothesis", "--samples", 1, "--plot", "h.png")
    assert "--plot" in capsys.readouterr().err


def test_the_page_about_the_command_line_names_every_command():
    """Also each problem of solve and report, and each option of solve kernel that changes the problem."""
    page = (Path(__file__).parents[1] / "docs" / "command-line.md").read_text(encoding="utf-8")
    words = set(re.findall(r"[\w-]+", page))

    def below(parser):
        return next(a.choices for a in parser._actions if isinstance(a, argparse._SubParsersAction))

    top = below(build_parser())
    options = {"--unbiased", "--circle", "--box", "--metric", "--outputs", "--prior"}
    assert {*top, *below(top["solve"]), *below(top["report"]), *options} <= words


@pytest.mark.parametrize(
    "line",
    ["report all --html no/a.html", "compare --eps 1 --plot no/a.png", "solve kernel --eps 1 --out no/a.json",
     "solve kernel --eps 1 --write no/a.mps", "hypothesis --html no/a.html", "plan --eps 1 --flag a --out no/a.json",
     "randomize --eps 1 --column a --lower 0 --upper 1 --save-mechanism no/a.json in.csv out.csv"],
)  # fmt: skip
def test_what_cannot_be_written_is_told_before_the_work(capsys, tmp_path, monkeypatch, line):
    """`optdp report all` solved for a quarter of a minute, and then said that there is no such folder."""
    monkeypatch.chdir(tmp_path)
    args = build_parser().parse_args(line.split())
    args.run = lambda _: pytest.fail("work before the refusal")
    monkeypatch.setattr("optdp.cli.build_parser", lambda: argparse.Namespace(parse_args=lambda _: args))
    status, out, err = run(capsys)
    assert status == 2 and not out and "cannot be written: there is no folder no" in err

"""`optdp plan`, `optdp randomize --plan`, `optdp estimate`, `optdp recommend`: from a schema to answers."""

import json

import numpy as np
import pytest

import optdp
from optdp.cli import main
from optdp.exact.rounding import TOTAL, Table
from optdp.mechanisms.finite import FiniteMechanism
from optdp.statistics import tables

RNG = np.random.default_rng(0)
AGES, JOBS = RNG.normal(40, 12, 3000).clip(0, 120).round(1), RNG.choice(["a", "b"], 3000, p=[0.7, 0.3])
#: One column to be made private.
AGE = ["--eps", 2, "--column", "age", "--lower", 0, "--upper", 120]


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [f"{age},{job}" for age, job in zip(AGES.tolist(), JOBS.tolist(), strict=True)]
    (tmp_path / "people.csv").write_text("age,job\n" + "\n".join(lines) + "\n")
    return tmp_path


def run(capsys, *words):
    status = main(list(map(str, words)))
    out = capsys.readouterr()
    return status, out.out, out.err


def test_from_a_schema_to_answers(people, capsys):
    schema = {"age": {"type": "number", "lower": 0, "upper": 120}, "job": {"type": "category", "values": ["a", "b"]}}
    full = (
        {**schema["age"], "unit": "years", "outside": "refuse"},
        {**schema["job"], "missing": "refuse", "other": "refuse"},
    )
    goal = ["--goal", "distribution"]
    (people / "schema.json").write_text(json.dumps(dict(zip(schema, full, strict=True))))
    status, out, _ = run(
        capsys, "plan", "--schema", "schema.json", "--eps", "4", "--strategy", "split", *goal, "--out", "a.json"
    )
    assert status == 0 and "4.0-LDP" in out and "age: distribution within" in out
    words = ["--number", "age:0:120:years", "--category", "job:a,b"]
    assert run(capsys, "plan", *words, "--eps", 4, "--strategy", "split", *goal, "--out", "plan.json")[0] == 0
    assert (people / "plan.json").read_text() == (people / "a.json").read_text()
    status, _, err = run(capsys, "randomize", "--plan", "plan.json", "--seed", 1, "people.csv", "private.csv")
    assert status == 0 and err.startswith("3000 rows made private")
    status, out, _ = run(capsys, "estimate", "--plan", "plan.json", "--level", "0.999", "--json", "private.csv")
    found = json.loads(out)
    assert (
        sum(found["age"]["value"]) == pytest.approx(1)
        and found["job"]["interval"][0][0] < 0.7 < found["job"]["interval"][1][0]
    )
    status, out, _ = run(capsys, "estimate", "--plan", "plan.json", "--html", "page.html", "private.csv")
    assert (
        status == 0 and "age (years): Estimate of the histogram" in out and "<svg" in (people / "page.html").read_text()
    )
    status, out, _ = run(
        capsys, "estimate", "--plan", "plan.json", "--column", "age", "--what", "cdf", "--bins", 3, "private.csv"
    )
    assert status == 0 and "Estimate of the cdf: 3 numbers" in out
    for wrong, said in ((["--what", "cdf"], "--column is missing"), (["--mechanism", "a.json"], "only one of them")):
        status, _, err = run(capsys, "estimate", "--plan", "plan.json", *wrong, "private.csv")
        assert status == 2 and said in err
    status, out, _ = run(capsys, "estimate", "--plan", "plan.json", "--column", "age", "private.csv")
    assert status == 0 and out.startswith("age (years): Estimate of the histogram") and "job" not in out
    for wrong, said in (
        (["--column", "nobody"], "the plan is for 'age', 'job'"),
        (["--column", "age", "--q", 0.5], "--q is not allowed without --what"),
        (["--bins", 3], "--bins is not allowed without --what"),
        (["--column", "age", "--what", "quantile"], "--q is missing"),
        (["--pair", "job", "job", "--what", "mean"], "--pair is not allowed with --mechanism, --column, --what"),
    ):
        status, out, err = run(capsys, "estimate", "--plan", "plan.json", *wrong, "private.csv")
        assert (status, out) == (2, "") and said in err


def test_plans_without_a_schema_file_clip_and_have_goals_by_column(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    columns = [
        "--flag",
        "smoker",
        "--number",
        "pay:0:9",
        "--category",
        "city:a,b",
        "--integer",
        "age:0:120",
        "--date",
        "day:2026-01-01:2026-02-01",
    ]
    asked = [
        "--clip",
        "pay,day",
        "--missing",
        "city",
        "--missing",
        "smoker",
        "--other",
        "city",
        "--goal",
        "answers",
        "--goal",
        "age:mean",
    ]
    assert run(capsys, "plan", "--eps", 2, *columns, *asked, "--out", "plan.json")[0] == 0
    schema = {
        "smoker": optdp.Flag(missing="category"),
        "pay": optdp.Number(0, 9, outside="clip"),
        "city": optdp.Category(["a", "b"], "category", "category"),
        "age": optdp.Integer(0, 120),
        "day": optdp.Date("2026-01-01", "2026-02-01", "clip"),
    }
    plan = optdp.Plan.load("plan.json")
    assert {part.name: part.column for part in plan.parts} == schema and plan.names == tuple(schema)
    assert [part.goal for part in plan.parts] == ["frequencies", "answers", "frequencies", "mean", "answers"]
    for wrong, said in (
        (["--clip", "smoker"], "--clip 'smoker' is not allowed: it is for numbers and dates"),
        (["--missing", "age"], "--missing 'age' is not allowed: it is for categories and flags"),
        (["--other", "nobody"], "--other 'nobody' is not allowed: there is no such column"),
        (["--goal", "age:median"], "--goal 'age:median' is not allowed: it must be one of mean, quantile"),
        (["--goal", "mean", "--goal", "answers"], "there is a goal of all already"),
        (["--goal", "age:mean", "--goal", "age:answers"], "there is a goal of 'age' already"),
        (["--goal", "smoker:mean"], "categories have 'frequencies'"),
    ):
        status, _, err = run(capsys, "plan", "--eps", 2, *columns, *wrong, "--out", "other.json")
        assert status == 2 and said in err and not (tmp_path / "other.json").exists()


def test_a_file_with_another_separator_is_told_what_separates(tmp_path, monkeypatch, capsys):
    """It was said to have a column that the plan does not know."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("age;smoker\n40;yes\n")
    assert run(capsys, "plan", "--eps", 1, "--integer", "age:0:120", "--flag", "smoker", "--out", "plan.json")[0] == 0
    status, _, err = run(capsys, "randomize", "--plan", "plan.json", "people.csv", "private.csv")
    assert status == 2 and "allowed: separate the fields by commas" in err and "40" not in err and ";yes" not in err
    (tmp_path / "people.csv").write_text("age\tsmoker\n40\tyes\n")
    status, _, err = run(capsys, "randomize", "--plan", "plan.json", "people.csv", "private.csv")
    assert status == 2 and "tabs; fields are separated by ','" in err and "40" not in err


def test_names_that_differ_in_capitals_or_spaces_are_not_to_be_left_out(tmp_path, monkeypatch, capsys):
    """Whoever left the column out was told that it is missing."""
    monkeypatch.chdir(tmp_path)
    optdp.plan({"age": optdp.Integer(0, 120), "smoker": optdp.Flag()}, 1.0).save("plan.json")
    for head in ("Age,smoker", "age, smoker"):
        (tmp_path / "people.csv").write_text(f"{head}\n40,yes\n")
        status, _, err = run(capsys, "randomize", "--plan", "plan.json", "people.csv", "private.csv")
        assert status == 2 and "capitals and spaces in names count" in err and "leave it out" not in err


def test_values_of_a_category_may_be_listed_with_spaces(tmp_path, monkeypatch, capsys):
    """The category was " b", and everybody who entered "b" was refused."""
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "plan", "--eps", 1, "--category", "job: a, b,c ", "--out", "plan.json")[0] == 0
    assert optdp.Plan.load("plan.json")["job"].column == optdp.Category(["a", "b", "c"])


def test_values_of_a_category_may_have_colons(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "plan", "--eps", 1, "--category", "ratio:1:1,2:1", "--out", "plan.json")[0] == 0
    assert optdp.Plan.load("plan.json")["ratio"].column == optdp.Category(["1:1", "2:1"])


def test_the_least_eps_for_an_error(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    words = ["plan", "--flag", "a", "--flag", "b", "--n", 5000, "--strategy", "split", "--out", "plan.json"]
    status, out, _ = run(capsys, *words, "--error", 0.02, "--error", "b:0.05")
    plan = optdp.Plan.load("plan.json")
    assert status == 0 and f"is {plan.eps!r}-LDP" in out
    assert plan.errors == pytest.approx({"a": 0.02, "b": 0.05}, rel=0.03)
    for more, said in (
        ((), "eps or error is needed"), (("--error", 1, "--eps", 1), "only one of them is allowed"),
        (("--error", "a:1"), "one for each column"), (("--error", 1, "--error", 2), "there is one of all already"),
    ):  # fmt: skip
        status, _, err = run(capsys, *words, *more)
        assert status == 2 and said in err and err.count("\n") == 1


def test_json_lines_are_sent_to_collect(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    optdp.plan({"smoker": optdp.Flag()}, 1.0).save("plan.json")
    (tmp_path / "monday.jsonl").write_text("{}\n")
    status, _, err = run(capsys, "estimate", "--plan", "plan.json", "monday.jsonl")
    assert status == 2 and "`optdp collect` gathers JSON lines" in err


@pytest.mark.parametrize(
    "option",
    [
        ["--eps", 1], ["--goal", "mean"], ["--clip"], ["--keep", "id"], ["--only"], ["--delimiter", ";"], ["--multiline"],
        ["--in-place"], ["--save-mechanism", "m.json"], ["--placement", "linear"],
    ],
    ids=lambda option: option[0],
)  # fmt: skip
def test_a_plan_takes_no_option_of_one_column(people, capsys, option):
    """They were left out without a word: `--clip` refused, `--save-mechanism` wrote nothing."""
    assert run(capsys, "plan", "--eps", 1, "--number", "age:0:120", "--out", "plan.json")[0] == 0
    status, _, err = run(capsys, "randomize", "--plan", "plan.json", *option, "people.csv", "private.csv")
    assert status == 2 and f"{option[0]} is not allowed with --plan" in err


def test_one_column_by_its_goal(people, capsys):
    (people / "ages.csv").write_text("age\n" + "\n".join(map(str, AGES.tolist())) + "\n")
    common = [*AGE, "--seed", 1, "--save-mechanism", "m.json", "ages.csv", "private.csv"]
    for choice, told in (
        (
            [],
            (
                "times the least that any mechanism's unbiased estimate can have",  # a constant may be better
                "Mechanism: unbiased kernel, recommended for the goal 'mean': standard error of the mean",
            ),
        ),
        (["--goal", "distribution"], ("recommended for the goal 'distribution': ",)),
        (["--mechanism", "PM"], ()),
        (["--placement", "linear"], ()),
    ):
        status, _, err = run(capsys, "randomize", *choice, *common)
        assert status == 0 and (all(text in err for text in told) if told else "recommended" not in err)
        status, out, _ = run(
            capsys, "estimate", "--mechanism", "m.json", "--column", "age", "--level", "0.999", "--json", "private.csv"
        )
        low, high = json.loads(out)["age"]["interval"]
        assert status == 0 and low < AGES.mean() < high
    assert run(capsys, "randomize", "--column", "age", "ages.csv", "private.csv")[0] == 2


@pytest.mark.parametrize(
    "symbols, texts",
    [
        (["1", "2"], ["1", "2"]),
        ([2**53, 2**53 + 1, 0.5], ["9007199254740992", "9007199254740993", "0.50"]),
        ([1, "a"], [" 01.0", "a"]),
    ],
)
def test_symbols_in_a_file_are_what_is_written(symbols, texts, people, capsys):
    size = len(symbols)
    weights = np.full((size, size), TOTAL // (2 * size)) + np.eye(size, dtype=int) * (TOTAL // 2)
    weights[:, 0] += TOTAL - weights.sum(axis=1)
    FiniteMechanism(optdp.Alphabet(symbols), tuple(symbols), Table(weights)).save("m.json")
    sent = [*texts, *[texts[1]] * 200]
    (people / "sent.csv").write_text("y\n" + "".join(f"{text}\n" for text in sent))
    words = ["estimate", "--mechanism", "m.json", "--column", "y", "--what", "frequencies", "--json"]
    status, out, _ = run(capsys, *words, "sent.csv")
    assert status == 0 and np.argmax(json.loads(out)["y"]["value"]) == 1
    (people / "sent.csv").write_text("y\n" + texts[0] + "\n0_0secret\n")
    status, _, err = run(capsys, *words, "sent.csv")
    assert status == 2 and "column 'y', row 2: it is none of the mechanism's outputs" in err and "secret" not in err


@pytest.mark.parametrize("text", ["0_0", "\uff11", "nan", "secret"])
def test_what_is_no_number_is_no_output(text, people, capsys):
    optdp.solve_piecewise(1.0).mechanism.save("m.json")
    (people / "sent.csv").write_text(f"y\n0\n 1\n{text}\n", encoding="utf-8")
    status, _, err = run(capsys, "estimate", "--mechanism", "m.json", "--column", "y", "sent.csv")
    assert status == 2 and "column 'y', row 3: it is not a number" in err and text not in err


def test_symbols_that_are_written_alike_are_not_read_from_a_file(people, capsys):
    weights = np.array([[3, 1], [1, 3]]) * (TOTAL // 4)
    FiniteMechanism(optdp.Alphabet([1, "1"]), (1, "1"), Table(weights)).save("m.json")
    (people / "sent.csv").write_text("y\n1\n")
    status, _, err = run(
        capsys, "estimate", "--mechanism", "m.json", "--column", "y", "--what", "frequencies", "sent.csv"
    )
    assert status == 2 and "two outputs that are written alike" in err


def test_bins_of_integers_are_asked_for_with_a_mechanism(people, capsys):
    mechanism = optdp.solve_piecewise(3.0, domain=(0, 4)).mechanism
    mechanism.save("m.json")
    sent = mechanism.randomize(np.repeat([1.0, 3.0], 500), 1)
    (people / "sent.csv").write_text("y\n" + "\n".join(map(repr, sent.tolist())) + "\n")
    words = ["estimate", "--mechanism", "m.json", "--column", "y", "--what"]
    status, out, _ = run(capsys, *words, "histogram", "--whole", "sent.csv")
    assert status == 0 and "5 numbers, n = 1000" in out and "[4, 5)" in out
    status, _, err = run(capsys, *words, "mean", "--whole", "sent.csv")
    assert status == 2 and "whole = True is not allowed with what = 'mean'" in err


def test_recommendations(capsys):
    status, out, _ = run(capsys, "recommend", "--eps", "1", "--categories", "20", "--n", "100")
    assert status == 0 and "recommended: " in out and "k-RR" in out
    status, _, err = run(capsys, "recommend", "--eps", 1, "--categories", 20, "--upper", 5)  # which was forgotten
    assert status == 2 and "--upper is not allowed with --categories" in err


@pytest.mark.parametrize(
    "words", [["recommend", "--n", "1_0"], ["recommend", "--error", "1_0"], ["recommend", "--categories", "\u0663"],
              ["plan", "--n", "1_0"], ["estimate", "--q", "0_5"], ["estimate", "--bins", "\u0663"]],
)  # fmt: skip
def test_numbers_are_read_alike_in_all_options(words, capsys):
    with pytest.raises(SystemExit):
        main(words)
    assert f"argument {words[1]}: {words[2]!r} is not" in capsys.readouterr().err


def test_the_schema_in_the_help_is_taken(tmp_path, monkeypatch, capsys):
    """ "doc.json.age.unit is missing": what has a default may be left out."""
    monkeypatch.chdir(tmp_path)
    schema = {"age": {"type": "number", "lower": 0, "upper": 120}, "job": {"type": "category", "values": ["a", "b"]},
              "born": {"type": "date", "first": "1990-01-01", "last": "2020-12-31"}, "f": {"type": "flag"}}  # fmt: skip
    (tmp_path / "doc.json").write_text(json.dumps(schema))
    assert run(capsys, "plan", "--schema", "doc.json", "--eps", 2, "--out", "plan.json")[0] == 0
    plan = optdp.Plan.load("plan.json")
    assert plan["age"].column == optdp.Number(0, 120) and plan["f"].column == optdp.Flag()
    (tmp_path / "doc.json").write_text(json.dumps({"age": {"type": "integer", "lower": 0, "upper": 2**53 + 1}}))
    status, _, err = run(capsys, "plan", "--schema", "doc.json", "--eps", 2, "--out", "plan.json")
    assert status == 2 and "doc.json.age.upper = 9007199254740993 is not allowed" in err  # it was 9007199254740992
    (tmp_path / "doc.json").write_text(json.dumps({"age": {"type": "number", "lower": 0}}))
    status, _, err = run(capsys, "plan", "--schema", "doc.json", "--eps", 2, "--out", "plan.json")
    assert status == 2 and "doc.json.age.upper is missing" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--date", "d:2020-13-01:2021-01-01"],
            "--date 'd:2020-13-01:2021-01-01' is not allowed: first = '2020-13-01'",
        ),
        (["--number", "x:a:1"], "--number 'x:a:1' is not allowed: 'a' is not a number"),
        (["--flag", "a", "--weight", "a"], "--weight 'a' is not allowed: 'a' is not a number"),
        (["--category", "c:a,,b"], "--category 'c:a,,b' is not allowed: values with ''"),
        (
            ["--flag", "a", "--weight", "a:1", "--weight", "a:2"],
            "--weight 'a:2' is not allowed: there is one of 'a' already",
        ),
        (["--integer", "x:0:9007199254740993"], "upper = 9007199254740993 is not allowed: it must be a float"),
        (["--integer", "x:0.1:0.9"], "--integer 'x:0.1:0.9' is not allowed: lower = 0.1"),
    ],
)
def test_columns_that_are_refused_are_named(people, capsys, words, said):
    status, _, err = run(capsys, "plan", "--eps", 1, *words, "--out", "plan.json")
    assert status == 2 and said in err and err.count("\n") == 1


def test_estimates_without_answers_figures_of_any_names_and_json_without_infinity(tmp_path, monkeypatch, capsys):
    """A column without answers refused all; "$" broke the figure; one output had an infinite error, which is no JSON."""
    monkeypatch.chdir(tmp_path)
    columns = {
        "pay": optdp.Category(["$20k-$50k", r"$\foo$"]),
        "born": optdp.Date("1990-01-01", "2020-12-31"),
        "x": optdp.Number(0, 1),
    }
    survey = optdp.plan(columns, 3.0, strategy="split")
    survey.save("plan.json")
    private = survey.randomize({"pay": ["$20k-$50k"], "born": ["2000-01-01"], "x": [0.5]}, 1)
    tables.write_file("one.csv", private | {"x": np.array([np.nan])})
    status, out, _ = run(capsys, "estimate", "--plan", "plan.json", "--html", "page.html", "--json", "one.csv")
    found = json.loads(out, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert (
        status == 0 and found["born"]["standard_error"] is None and "column 'x' has no answers" in found["x"]["refused"]
    )
    page = (tmp_path / "page.html").read_text()
    assert "<h2>born (days since 1990-01-01)</h2>" in page and "No estimate: column" in page
    status, out, _ = run(capsys, "estimate", "--plan", "plan.json", "one.csv")
    assert status == 0 and "x: no estimate: column 'x' has no answers" in out and "pay: Estimate" in out
    status, _, err = run(capsys, "estimate", "--plan", "plan.json", "--column", "x", "one.csv")
    assert status == 2 and "column 'x' has no answers" in err
    status, _, err = run(capsys, "estimate", "--plan", "plan.json", "--pair", "pay", "nope", "one.csv")
    assert status == 2 and "'nope' is not allowed: it must be a column of the plan" in err
    status, _, err = run(capsys, "collect", "--plan", "plan.json", "--jobs", -2, "--out", "answers", "one.csv")
    assert status == 2 and "jobs = -2 is not allowed" in err
    assert run(capsys, "audit", "--claim", "OGPM-6", "--jobs", 0)[0] == 2  # by the same check


def test_names_are_drawn_as_they_are_written():
    """What stood between two dollar signs was set as mathematics."""
    from optdp.report.plots import new_axes, plain, pyplot, titled

    ax = titled(new_axes(), "$20k-$50k")
    ax.set_yticks([0, 1, 2], [plain(name) for name in ("$20k-$50k", r"$\foo$", "5 $")])
    texts = [*ax.get_yticklabels(), ax.title, ax._left_title]
    ax.figure.canvas.draw()
    assert [text._preprocess_math(text.get_text()) for text in texts] == [
        ("$20k-$50k", False), (r"$\foo$", False), ("5 $", False), ("", False), ("$20k-$50k", False)
    ]  # fmt: skip
    pyplot().close(ax.figure)


def test_line_breaks_in_a_column_that_was_kept(people, capsys):
    """What `randomize --multiline` wrote is read where it is said, and a plan's private tables have none."""
    (people / "notes.csv").write_text('age,note\n30,"a\nb"\n40,c\n')
    words = [*AGE, "--keep", "note", "--multiline", "--save-mechanism", "m.json"]
    assert run(capsys, "randomize", *words, "notes.csv", "private.csv")[0] == 0
    words = ["estimate", "--mechanism", "m.json", "--column", "age", "--json"]
    status, _, err = run(capsys, *words, "private.csv")
    assert status == 2 and "private.csv, row 1 has a quote that is not closed on its line" in err
    status, out, _ = run(capsys, *words, "--multiline", "private.csv")
    assert status == 0 and json.loads(out)["age"]["n"] == 2
    assert run(capsys, "plan", "--eps", 1, "--number", "age:0:120", "--out", "plan.json")[0] == 0
    status, _, err = run(capsys, "estimate", "--plan", "plan.json", "--multiline", "private.csv")
    assert status == 2 and "--multiline is not allowed with --plan" in err


def test_a_frequency_oracle_is_drawn_beside_its_file(tmp_path, monkeypatch, capsys):
    """The figure failed after the solve, and the solution was lost."""
    monkeypatch.chdir(tmp_path)
    status, _, _ = run(
        capsys, "solve", "frequency", "--eps", 1, "--categories", 5, "--plot", "f.png", "--out", "f.json"
    )
    assert status == 0 and sorted(p.name for p in tmp_path.iterdir()) == ["f.json", "f.png"]
    monkeypatch.setattr("optdp.solve_frequency", lambda **_: pytest.fail("solved before the figure was refused"))
    status, _, err = run(capsys, "solve", "frequency", "--eps", 1, "--categories", 5, "--plot", "f.txt")
    assert status == 2 and "a figure is written as .png, .svg, .pdf" in err


def test_an_empty_parquet_file_stays_a_parquet_file(tmp_path):
    """It became a file of 0 bytes."""
    parquet = pytest.importorskip("pyarrow.parquet")
    survey = optdp.plan({"x": optdp.Number(0, 1), "f": optdp.Flag()}, 2.0, strategy="split")
    tables.write_file(tmp_path / "in.parquet", {"x": np.array([], dtype=float), "f": np.array([], dtype=object)})
    assert survey.randomize(tmp_path / "in.parquet", 1, target=tmp_path / "out.parquet") == 0
    assert parquet.read_table(tmp_path / "out.parquet").column_names == ["x", "f"]
    assert "no answers" in str(survey.estimate(tmp_path / "out.parquet"))


def test_paths_with_a_null_character_are_named(people, capsys):
    """ "embedded null byte" did not say of what."""
    for words in (["plan", "--eps", 1, "--flag", "f", "--out", "a\0b"], ["estimate", "--plan", "a\0b", "people.csv"]):
        status, _, err = run(capsys, *words)
        assert status == 2 and r"path = 'a\x00b' is not allowed" in err


def test_no_output_replaces_an_input(people, capsys):
    """A page replaced the private answers, and a client the plan that they need."""
    (people / "schema.json").write_text('{"age": {"type": "number", "lower": 0, "upper": 120}}')
    words = ["--category", "job:a,b", "--number", "age:0:120"]
    assert run(capsys, "plan", *words, "--eps", 1, "--out", "plan.json")[0] == 0
    assert run(capsys, "randomize", "--plan", "plan.json", "people.csv", "private.csv")[0] == 0
    (people / "link").symlink_to("plan.json")
    for words, name in (
        (["estimate", "--plan", "plan.json", "private.csv", "--html"], "private.csv"),
        (["estimate", "--plan", "plan.json", "private.csv", "--html"], "link"),
        (["client", "--plan", "plan.json", "--out"], "plan.json"),
        (["client", "--plan", "plan.json", "--vectors", "people.csv", "--out"], "people.csv"),
        (["plan", "--schema", "schema.json", "--eps", 1, "--out"], "schema.json"),
    ):
        before = (people / name).read_bytes()
        status, out, err = run(capsys, *words, name)
        assert (status, out) == (2, "") and f"{name} is not allowed: it is an input, which would be lost" in err
        assert (people / name).read_bytes() == before


def test_a_plan_without_columns_names_the_options(tmp_path, capsys):
    status, _, err = run(capsys, "plan", "--eps", 1, "--out", tmp_path / "p.json")
    assert status == 2 and "--number, --integer, --date, --category, --flag or --schema" in err

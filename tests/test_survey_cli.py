"""`optdp plan`, `optdp randomize --plan`, `optdp estimate`, `optdp recommend`: from a schema to answers."""

import json

import numpy as np
import pytest

from optdp.cli import main

RNG = np.random.default_rng(0)
AGES, JOBS = RNG.normal(40, 12, 3000).clip(0, 120).round(1), RNG.choice(["a", "b"], 3000, p=[0.7, 0.3])


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
    status, _, err = run(capsys, "randomize", "--plan", "plan.json", "people.csv", "private.csv")
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
        (["--pair", "job", "job", "--what", "mean"], "--pair is not allowed with --mechanism, --column, --what"),
    ):
        status, out, err = run(capsys, "estimate", "--plan", "plan.json", *wrong, "private.csv")
        assert (status, out) == (2, "") and said in err


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
    common = [
        "--eps",
        2,
        "--column",
        "age",
        "--lower",
        0,
        "--upper",
        120,
        "--save-mechanism",
        "m.json",
        "ages.csv",
        "private.csv",
    ]
    for choice, told in (
        ([], "Mechanism: unbiased kernel, recommended for the goal 'mean': standard error of the mean"),
        (["--goal", "distribution"], "recommended for the goal 'distribution': "),
        (["--mechanism", "PM"], ""),
        (["--placement", "linear"], ""),
    ):
        status, _, err = run(capsys, "randomize", *choice, *common)
        assert status == 0 and (told in err if told else "recommended" not in err)
        status, out, _ = run(
            capsys, "estimate", "--mechanism", "m.json", "--column", "age", "--level", "0.999", "--json", "private.csv"
        )
        low, high = json.loads(out)["age"]["interval"]
        assert status == 0 and low < AGES.mean() < high
    assert run(capsys, "randomize", "--column", "age", "ages.csv", "private.csv")[0] == 2


def test_recommendations(capsys):
    status, out, _ = run(capsys, "recommend", "--eps", "1", "--categories", "20", "--n", "100")
    assert status == 0 and "recommended: " in out and "k-RR" in out

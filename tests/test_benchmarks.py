"""The benchmarks: what decides, what is read, and the page that is written from what was measured."""

import importlib
import json
import sys
from pathlib import Path

import pytest

import optdp

ROOT = Path(__file__).parent.parent


@pytest.fixture
def benchmark(monkeypatch):
    """Imports a file of benchmarks/, as Python does when it runs one."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    names = set(sys.modules)
    yield importlib.import_module
    for name in set(sys.modules) - names:
        if str(ROOT / "benchmarks") in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("other", "ours", "told"),
    [
        (2.0, 1.0, "faster"), (2.0, 2.2, "within 10 % or 1 ms"), (2.0, 2.21, "slower"), (1e-4, 1.1e-3, "within 10 % or 1 ms"),
        (1e-4, 1.2e-3, "slower"), ("TypeError", 1.0, "not in the other version"), (1.0, "TypeError", "fails here"),
    ],
)  # fmt: skip
def test_a_call_may_take_ten_per_cent_or_a_millisecond_longer(benchmark, other, ours, told):
    assert benchmark("versions").verdict(other, ours) == told


def test_calls_compared_between_versions_run(benchmark):
    """The cheap groups, here against here; every call of the list is one that this version has."""
    versions = benchmark("versions")
    for group in ("ptt", "verify"):
        warm, calls = versions.groups()[group]
        names = {}
        exec(versions.SETUP.replace("1_000_000", "1_000"), names)
        exec(warm, names)
        for _, setup, call in calls[:3]:
            exec(setup, names)
            assert eval(call, names)


def test_the_page_is_written_from_what_parts_left(benchmark, monkeypatch, tmp_path):
    page = benchmark("page")
    monkeypatch.setattr(page, "RESULTS", tmp_path)
    way = ("optdp", "", lambda: optdp.solve_piecewise(1.0))
    plain = ("half of it", "", lambda: 0.5 * optdp.solve_piecewise(1.0).value)
    absent = ("nothing", "no_such_package", lambda: 1 / 0)
    broken = ("broken", "", lambda: 1 / 0)

    def part(quick):
        yield page.beside("A title", "About it.", [("one", [way, plain, absent, broken])])

    monkeypatch.setitem(page.PARTS, "piecewise", ("Piecewise", "", part))
    page.run("piecewise", True)
    (shown,) = json.loads((tmp_path / "piecewise.json").read_text())["reports"]
    ours, half, missing, failed = shown["rows"]
    assert ours["ratio"] == 1 and ours["note"] == "verified" and ours["gap"] <= 1e-9
    assert half["off"] == pytest.approx(-0.5) and half["ratio"] == pytest.approx(half["ms"] / ours["ms"])
    assert missing["note"] == "not installed" and failed["note"].startswith("ZeroDivisionError")
    text = page.page()
    assert f"| optdp | {optdp.__version__} |" in text and "Run at small sizes, to see that they run: piecewise." in text
    assert (
        text.count("Not run (") == len(page.PARTS) - 1
        and "| one | nothing | - | - | - | - | - | not installed |" in text
    )
    # What was on the page stays, once, where a clone has no results of it.
    committed = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    again = page.page(page.page(committed))
    assert "Not run (" not in again and again.count(page.EARLIER) == 1 and "A title" in again
    assert again.partition("## Windows and composites")[2] == committed.partition("## Windows and composites")[2]


def test_the_readme_has_commands_to_time(benchmark):
    report = benchmark("commands").readme(("demo", "test"))
    assert [row["what"] for row in report.rows[:2]] == ["make demo", "make test"]
    assert (
        report.rows[2]["what"].startswith("Python") and report.rows[2]["status"] == "done" and report.rows[2]["cpu"] > 0
    )


def test_the_committed_page_has_every_part(benchmark):
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for heading, _, _ in benchmark("page").PARTS.values():
        assert f"## {heading}\n" in text

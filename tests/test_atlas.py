"""The atlas: what it says is what solving says, and computing it survives interruptions, executors and repetition."""

import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

import optdp
from optdp import files
from optdp.cli import main
from optdp.design import registry
from optdp.exact.fields import FieldError
from optdp.report import atlas as module
from optdp.report.atlas import CHARTS, Atlas, chart_all, digest
from optdp.report.series import ERROR, SAMPLES, Curve, _few, picture

ROOT = Path(__file__).parent.parent
FAST = ("piecewise-abs", "window-II", "frequency-16", "sphere-10")
LEVELS = (0.5, 2.0)


@pytest.fixture(scope="module")
def known():
    return optdp.atlas()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A small atlas that was computed without any interruption."""
    path = tmp_path_factory.mktemp("atlas") / "atlas.json"
    done = chart_all(path, FAST, levels=LEVELS)
    assert (done.solved, done.kept) == (len(FAST) * len(LEVELS), 0)
    return path


def test_the_package_has_every_chart_at_every_level(known, capsys):
    wanted = {(name, chart.make(level)) for name, chart in CHARTS.items() for level in chart.grid}
    assert {(point.chart, point.problem) for point in known.points} == wanted
    assert known.version == version("optdp")
    assert list(known.points) == sorted(known.points, key=lambda point: point.place)
    size = (ROOT / "optdp" / "data" / "atlas.json").stat().st_size
    assert size < 1_000_000
    certified = sum(point.certified for point in known.points)
    with capsys.disabled():
        print(f"\natlas: {len(CHARTS)} charts, {len(known.points)} points, {certified} certified, {size} bytes")
    assert all(point.verified for point in known.points) and certified > 0.9 * len(known.points)
    assert all((point.status == "OPTIMAL") == (point.gap <= point.rtol) for point in known.points)


def test_every_design_is_in_the_atlas():
    first = {
        next(d.name for d in registry.designs() if d.accepts(chart.make(1.0)) is None) for chart in CHARTS.values()
    }
    known = {design.name for design in registry.designs() if design.accepts.__module__.startswith("optdp.")}
    # Functions of the user's own are not saved, and the chance that an integer is changed is that of an error above 1/2.
    assert first == known - {"pair kernel", "additive change"}


@pytest.mark.parametrize("chart", ["kernel-unbiased", "noise-1e-06-abs", "gdp-squared", "lip-sum"])
def test_brackets_of_points_solved_anew_overlap(known, chart):
    """Where programs are solved in floats, other versions of the solver and other processors may end at other optimal points."""
    point = next(p for p in known.points if p.chart == chart and p.level == 1.0)
    solution = optdp.solve(point.problem, point.rtol)
    assert max(solution.lower_bound, point.lower_bound) <= min(solution.value, point.value)
    assert solution.gap <= point.rtol


@pytest.mark.parametrize("chart", ["piecewise-squared", "integers-1e-06-abs", "frequency-16"])
def test_points_solved_anew_are_the_same(known, chart):
    """Bracket and digest, and the digest of the solution after it was saved and read."""
    point = next(p for p in known.points if p.chart == chart and p.level == 1.0)
    solution = optdp.solve(point.problem, point.rtol)
    assert (solution.lower_bound, solution.value) == (point.lower_bound, point.value)
    assert (
        digest(solution) == point.digest == digest(optdp.Solution.from_dict(json.loads(json.dumps(solution.to_dict()))))
    )


def test_a_digest_is_of_what_is_proven(whole):
    solution = optdp.solve_piecewise(1.0)
    other = optdp.Solution(**{**vars(solution), "lower_bound": np.nextafter(solution.lower_bound, 0.0).item()})
    assert digest(other) != digest(solution)
    program = optdp.Program(**{**vars(solution.program), "seconds": 1e3})
    assert digest(optdp.Solution(**{**vars(solution), "program": program})) == digest(solution)


@pytest.mark.parametrize("chart", ["noise-0.01-abs", "sphere-10", "circle-abs"])
def test_published_values_are_those_of_compare(known, chart):
    point = next(p for p in known.points if p.chart == chart and p.level == 2.0)
    rows = {row["mechanism"]: row for row in optdp.compare(point.problem, rtol=point.rtol).rows}
    best = rows.pop("optimum")["value"]  # by another processor's roundings perhaps
    assert point.lower_bound <= best and best - point.lower_bound <= point.rtol * best
    assert {rival.name for rival in point.rivals} == set(rows)
    for rival in point.rivals:
        row = rows[rival.name]
        told = "proven" if rival.proven else "numerical", rival.guarantee, "yes" if rival.family else "no"
        assert told == (row["numbers"], row["guarantee"], row["family"])
        assert rival.value == (row["value"] if rival.proven else pytest.approx(row["value"], rel=1e-12))


def test_no_mechanism_of_the_family_with_the_guarantee_beats_the_bound(known):
    """Over all mechanisms too, where that is the family: the lower bounds and the published values come by different ways."""
    count = 0
    for point in known.points:
        for rival in point.rivals:
            if rival.family and rival.guarantee == "yes":
                count += 1
                assert rival.value >= point.lower_bound, (point.chart, point.level, rival.name)
    assert count > 500


def test_optima_do_not_increase_with_the_level(known):
    """More is allowed: the bound at a level is at most what is attained at any smaller one."""
    for name in known.charts:
        points = [p for p in known.points if p.chart == name]
        least = np.minimum.accumulate([p.value for p in points])
        assert all(p.lower_bound <= top for p, top in zip(points, least, strict=True)), name


class Interrupted(BaseException):
    """Like KeyboardInterrupt, which pytest keeps for itself."""


def test_interrupted_and_resumed_nothing_is_solved_twice(whole, tmp_path, monkeypatch):
    path, solved, certify = tmp_path / "atlas.json", [], module.certify

    def stopping(*task):
        if len(solved) % 3 == 2:
            solved.append(None)
            raise Interrupted
        solved.append(task[:2])
        return certify(*task)

    monkeypatch.setattr(module, "certify", stopping)
    for _ in range(2):
        before = [task for task in solved if task]
        with pytest.raises(Interrupted):
            chart_all(path, FAST, levels=LEVELS)
        assert [(p.chart, p.level) for p in optdp.atlas(path).points] == [task for task in solved if task] != before
    monkeypatch.setattr(module, "certify", lambda *task: (solved.append(task[:2]), certify(*task))[1])
    done = chart_all(path, FAST, levels=LEVELS)
    tasks = [task for task in solved if task]
    assert (done.solved, done.kept) == (4, 4) and len(tasks) == len(set(tasks)) == 8
    assert path.read_bytes() == whole.read_bytes()
    assert chart_all(path, FAST, levels=LEVELS).solved == 0 and path.read_bytes() == whole.read_bytes()


def test_a_killed_process_leaves_a_valid_file(whole, tmp_path):
    path = tmp_path / "atlas.json"
    line = [
        sys.executable,
        "-m",
        "optdp",
        "atlas",
        "--out",
        str(path),
        "--eps",
        "0.5",
        "2",
        *(f"--chart={n}" for n in FAST),
    ]
    process = subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=os.environ)
    while not path.exists() and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert 1 <= len(optdp.atlas(path).points) <= 8
    assert chart_all(path, FAST, levels=LEVELS).atlas == optdp.atlas(whole)
    assert path.read_bytes() == whole.read_bytes()


def test_a_write_that_fails_keeps_the_file(whole, tmp_path, monkeypatch):
    path = tmp_path / "atlas.json"
    path.write_bytes(whole.read_bytes())

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "replace", full)
    with pytest.raises(OSError):
        chart_all(path, ["piecewise-abs"], levels=[1.0])
    assert path.read_bytes() == whole.read_bytes()


def test_a_point_that_fails_is_told_after_the_others(tmp_path, monkeypatch):
    certify = module.certify

    def failing(chart, level, *rest):
        if level == 0.5:
            raise ArithmeticError("no luck")
        return certify(chart, level, *rest)

    monkeypatch.setattr(module, "certify", failing)
    path = tmp_path / "atlas.json"
    for pool in (None, ThreadPoolExecutor(1)):
        with pytest.raises(
            RuntimeError, match=r"1 of \d points were not solved; frequency-16 at 0.5: ArithmeticError: no luck"
        ):
            chart_all(path, ["frequency-16"], levels=LEVELS, executor=pool)
        assert [p.level for p in optdp.atlas(path).points] == [2.0]


def test_further_levels_and_tolerances_go_into_the_same_file(whole, tmp_path):
    path = tmp_path / "atlas.json"
    path.write_bytes(whole.read_bytes())
    assert chart_all(path, ["sphere-10"], levels=[0.5, optdp.log(3)]).solved == 1
    found = optdp.atlas(path)
    assert len(found.points) == 9 and found.charts == optdp.atlas(whole).charts
    assert [p.level for p in found.points if p.chart == "sphere-10"] == [0.5, float(optdp.log(3)), 2.0]
    assert chart_all(path, ["sphere-10"], levels=[0.5], rtol=1e-2).solved == 1  # another tolerance: in its place
    assert len(optdp.atlas(path).points) == 9


def test_a_dask_cluster_gives_the_same_file(whole, tmp_path):
    distributed = pytest.importorskip("distributed")
    import dask

    path = tmp_path / "atlas.json"
    quiet = {"distributed.worker.daemon": True, "temporary-directory": str(tmp_path)}
    with dask.config.set(quiet), distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
    ) as cluster, distributed.Client(cluster) as client:  # fmt: skip
        done = chart_all(path, FAST[:2], levels=LEVELS, executor=client.get_executor())
        assert (done.solved, done.kept) == (4, 0)
        again = chart_all(path, FAST, levels=LEVELS, executor=client.get_executor())
        assert (again.solved, again.kept) == (4, 4)
    assert path.read_bytes() == whole.read_bytes()


def test_an_atlas_of_another_version_is_not_mixed_up(whole, tmp_path):
    path = tmp_path / "atlas.json"
    path.write_text(whole.read_text().replace(f'"version":"{version("optdp")}"', '"version":"0.0.1"'))
    with pytest.raises(ValueError, match=r"atlas.json is not allowed: optdp 0.0.1 computed it, and this is"):
        chart_all(path, FAST)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        (r'"level":0.5', '"level":null', "level"),
        (r'"digest":"[0-9a-f]{64}"', '"digest":"0"', "digest"),
        (r'"lower_bound":[0-9.e-]+', '"lower_bound":1e300', "lower_bound"),
        (r'"status":"OPTIMAL"', '"status":"BEST"', "status"),
        (r'"rtol"', '"tolerance"', "rtol"),
        (r'"kind":"line"', '"kind":"<script>"', "kind"),
        (r'"guarantee":"[a-z ]+"', '"guarantee":"surely"', "guarantee"),
    ],
)
def test_files_are_read_field_by_field(whole, tmp_path, old, new, told):
    path = tmp_path / "wrong.json"
    text = whole.read_text()
    changed = re.sub(old, new, text, count=1)
    assert changed != text
    path.write_text(changed)
    with pytest.raises((FieldError, ValueError), match=told):
        optdp.atlas(path)


def test_wrong_arguments_are_named(tmp_path):
    path = tmp_path / "atlas.json"
    with pytest.raises(ValueError, match="charts"):
        chart_all(path, ["piecewise"])
    with pytest.raises(ValueError, match="rtol"):
        chart_all(path, rtol=0.0)
    with pytest.raises(ValueError, match="chart"):
        optdp.atlas().report("nothing")
    assert not path.exists()


def test_the_command_line(whole, tmp_path, capsys):
    path = tmp_path / "atlas.json"
    line = ["atlas", "--out", str(path), "--eps", "0.5", "2"]
    assert main([*line, "--chart", "piecewise-abs", "--chart", "window-II"]) == 0
    assert "4 points solved, 0 there before" in capsys.readouterr().out
    assert main([*line, *(f"--chart={name}" for name in FAST)]) == 0
    assert "4 points solved, 4 there before" in capsys.readouterr().out
    assert path.read_bytes() == whole.read_bytes()
    assert main(["atlas", "--atlas", str(path), "--chart", "sphere-10"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("Unbiased vectors: unit vectors, d = 10") and "PrivUnit" in out
    assert main(["atlas"]) == 0
    assert f"{len(CHARTS)} charts" in capsys.readouterr().out
    assert main(["atlas", "--eps", "1"]) == 2
    assert "--eps is not allowed without --out" in capsys.readouterr().err


def test_lines_pass_near_all_samples():
    x = np.linspace(0, 1, SAMPLES)
    for y in (np.exp(-5 * x), np.where(x < 0.3, 1.0, 0.2), np.abs(np.sin(9 * x))):
        curve = _few(Curve.of("", x, y))
        assert len(curve.x) < 80
        assert np.abs(np.interp(x, curve.x, curve.y) - y)[np.abs(x - 0.3) > 2 / SAMPLES].max() < 1.3 * ERROR * y.max()


def test_pictures_hold_all_probability():
    """Density and atoms of each input together, and the rows of tables, have the mass 1."""
    for solution in (
        optdp.solve_piecewise(1.0),
        optdp.solve_kernel(1.0, rtol=0.05),
        optdp.solve_kernel(3.0, metric="abs", rtol=0.05),
    ):
        shown = picture(solution.mechanism)
        for label in {curve.label for curve in shown.curves}:
            mine = [curve for curve in shown.curves if curve.label == label]
            mass = sum(np.trapezoid(c.y, c.x) if c.kind == "line" else sum(c.y) for c in mine)
            assert mass == pytest.approx(1.0, abs=0.02), (repr(solution.mechanism), label)
    for solution in (
        optdp.solve_lip([0.5, 0.3, 0.2], 1.0),
        optdp.solve_kernel(1.0, [[0, 1], [1, 0]], domain=optdp.Alphabet(2)),
    ):
        assert np.sum(picture(solution.mechanism).table, axis=1) == pytest.approx(1.0, abs=1e-3)


def test_the_page_has_its_data(known):
    """What docs/atlas.md loads: every point, with its sentence, and nothing from elsewhere."""
    spec = importlib.util.spec_from_file_location("generated", ROOT / "docs" / "generated.py")
    generated = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generated)
    text = generated.atlas_data()
    head = "window.OPTDP_ATLAS = "
    assert text.startswith(head)
    data = json.loads(text[len(head) :].rstrip(";\n"))
    assert [chart["name"] for chart in data["charts"]] == list(known.charts)
    points = [point for chart in data["charts"] for point in chart["points"]]
    assert [p["statement"] for p in points] == [p.problem.statement() for p in known.points]
    script = (ROOT / "docs" / "_static" / "atlas.js").read_text(encoding="utf-8")
    assert re.findall(r"https?://[^\"]*", script) == ["http://www.w3.org/2000/svg"]
    assert "fetch(" not in script and "import " not in script


def test_an_atlas_saved_and_read_is_the_same(whole, tmp_path):
    found = optdp.atlas(whole)
    found.save(tmp_path / "again.json")
    assert isinstance(found, Atlas) and optdp.atlas(tmp_path / "again.json") == found
    assert (tmp_path / "again.json").read_bytes() == whole.read_bytes()

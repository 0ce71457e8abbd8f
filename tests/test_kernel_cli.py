"""`optdp solve kernel`, `optdp report kernel`, and the pictures of the kernel program."""

import json

import numpy as np
import pytest

import optdp
from optdp.certificates.kernel import KernelCertificate
from optdp.cli import main
from optdp.report.kernel import plot_errors, plot_floor, plot_kernel, plot_prior, plot_structure, plot_windows


def run(capsys, *arguments):
    status = main([str(a) for a in arguments])
    return status, *capsys.readouterr()


def test_solve_prints_saves_and_draws(capsys, tmp_path):
    status, out, _ = run(
        capsys,
        "solve",
        "kernel",
        "--eps",
        1,
        "--loss",
        "abs",
        "--domain",
        0,
        1,
        "--out",
        tmp_path / "s.json",
        "--plot",
        tmp_path / "k.png",
        "--errors",
        tmp_path / "e.png",
        "--structure",
        tmp_path / "s.png",
    )
    assert status == 0
    assert "optimum in [0.316" in out
    assert "FAIL" not in out
    statement = "the least worst-case E|Y - x| over all 1.0-LDP mechanisms from [0, 1] to [0, 1]"
    assert out.startswith(statement) and f"{statement} is at least 0.316" in out
    assert (tmp_path / "k.png").stat().st_size > 10_000
    assert (tmp_path / "e.png").stat().st_size > 10_000
    assert (tmp_path / "s.png").stat().st_size > 10_000
    assert optdp.Solution.load(tmp_path / "s.json").verify()


def test_solve_unbiased_json(capsys):
    status, out, _ = run(capsys, "solve", "kernel", "--eps", 0.5, "--unbiased", "--rtol", 0.01, "--json")
    data = json.loads(out)
    assert status == 0
    assert data["verified"] is True
    assert data["problem"]["domain"] == {"type": "interval", "lower": 0.0, "upper": 1.0}  # as in Python
    assert data["problem"]["constraints"] == [{"type": "unbiased"}]
    assert 4 * data["lower_bound"] <= 16.0028 <= 4 * data["value"]


def test_solve_with_prior_circle_outputs_and_an_exact_epsilon(capsys, tmp_path):
    out = run(capsys, "solve", "kernel", "--eps", 1, "--prior", "0:0.5", "0.75:0.5")[1]
    assert "the least average E|Y - x| under the prior (1/2, 1/2) of 0.0, 0.75 over all" in out
    assert "circle" in run(capsys, "solve", "kernel", "--eps", 1, "--circle", 6.28)[1]
    status, out, _ = run(capsys, "solve", "kernel", "--eps", 1, "--outputs", 0.25, 0.75, "--rtol", 0.01)
    assert status == 0
    assert "from [0, 1] to [0.25, 0.75]" in out
    status, out, _ = run(capsys, "solve", "kernel", "--eps", 1, "--loss", "huber:0.2", "--rtol", 0.02)
    assert status == 0 and "FAIL" not in out
    status, out, _ = run(
        capsys, "solve", "kernel", "--eps", "log(3)", "--loss", "squared", "--write", tmp_path / "m.mps"
    )
    assert status == 0 and "over all log(3)-LDP mechanisms" in out and "closed form" in out
    assert optdp.solvers.read(tmp_path / "m.mps").solve().objective > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--eps", "0"], "eps"),
        (["--eps", "1", "--prior", "half"], "prior"),
        (["--eps", "1", "--unbiased", "--loss", "abs"], "variance"),
        (["--eps", "1", "--unbiased", "--outputs", "-1", "1"], "outputs"),
    ],
)
def test_errors_are_one_line_and_status_2(capsys, arguments, words):
    status, _, err = run(capsys, "solve", "kernel", *arguments)
    assert status == 2
    assert words in err
    assert err.count("\n") == 1


def test_report_shows_ratios_above_one(capsys, tmp_path):
    status, out, _ = run(capsys, "report", "kernel", "--eps", 0.5, 1, "--rtol", 0.01, "--plot", tmp_path / "r.png")
    assert status == 0
    assert "best piecewise" in out and "moved PM" in out and out.count("/ value") > 5
    assert "At eps = 0.5: the least worst-case E|Y - x| over all 0.5-LDP mechanisms from [0, 1] to [0, 1]" in out
    report = optdp.gap_report({"problem": "kernel", "eps": [1.0], "unbiased": True, "rtol": 0.01})
    row = report.rows[0]
    assert row["verified"] and "from [0, 1] to the real line" in str(report)  # as of solve_kernel
    for name in ("Duchi", "PM", "HM", "Three-Outputs", "PM-SUB", "HM-TP", "Laplace"):
        assert row[name] > 1, name


def test_pictures_show_what_they_say():
    import matplotlib.pyplot as plt

    solution = optdp.solve_kernel(1, rtol=0.01)
    axes = plot_kernel(solution.mechanism)
    mesh = axes.collections[0]
    assert mesh.get_array().min() > 0
    plt.close(axes.figure)
    axes = plot_errors(solution)
    curves = {line.get_label(): line.get_ydata() for line in axes.lines}
    assert np.max(curves["best kernel"]) == pytest.approx(solution.value, rel=1e-3)
    assert np.max(curves["best piecewise"]) == pytest.approx(optdp.solve_piecewise(1).value, rel=1e-6)
    plt.close(axes.figure)
    finite = optdp.solve_kernel(1, 1 - np.eye(3), domain=optdp.Alphabet(3)).plot()
    assert finite.images[0].get_array().shape == (3, 3)
    plt.close(finite.figure)
    assert "over all 1.0-LDP" in solution.plot().get_title(loc="left").replace("\n", " ")
    plt.close("all")
    circle = optdp.solve_kernel(1, domain=optdp.Circle(1))
    with pytest.raises(ValueError, match="over an interval"):
        plot_errors(circle)
    with pytest.raises(ValueError, match="no floor"):
        plot_structure(circle)
    with pytest.raises(ValueError, match="no prior"):
        plot_prior(circle)


def area(line):
    """Under a curve that may be interrupted."""
    x, y = (np.ma.masked_invalid(v) for v in line.get_data())
    return float(np.ma.sum((y[1:] + y[:-1]) / 2 * np.ma.masked_less(np.diff(x), 0)))


@pytest.mark.parametrize("unbiased", [False, True])
def test_the_structure_is_drawn_to_scale(unbiased):
    """The floor's density and atoms have its mass; windows are those of the mechanism; the prior has mass 1."""
    import matplotlib.pyplot as plt

    solution = optdp.solve_kernel(2, unbiased=unbiased, rtol=0.05, domain=(1, 3))
    mechanism = solution.mechanism
    for draw, part, mass in ((plot_floor, mechanism, mechanism.floor_mass), (plot_prior, solution, 1.0)):
        left = draw(part)
        stems = [ax for ax in left.figure.axes if ax is not left]
        atoms = sum(float(np.sum(ax.lines[0].get_ydata())) for ax in stems)
        assert sum(area(line) for line in left.lines) + atoms == pytest.approx(mass, rel=1e-9)
        plt.close(left.figure)
    axes = plot_windows(mechanism)
    for x, y in zip(*axes.lines[0].get_data(), strict=True):
        assert y == pytest.approx(float(mechanism.favoured(x)[0]))
    plt.close(axes.figure)
    figure = plot_structure(solution)
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert titles == ["Floor", "Windows", "Prior of the bound"] and isinstance(solution.certificate, KernelCertificate)
    plt.close(figure)

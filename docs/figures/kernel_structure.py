"""The figures of docs/kernel-structure.md, from certified optima: `make docs` runs this file (a minute of one core)."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

import optdp
from optdp.report.kernel import plot_floor, plot_prior, plot_windows

plt.switch_backend("agg")
plt.rcParams["svg.hashsalt"] = "optdp"  # the same file in every run
plt.rcParams["font.size"] = 8
HERE = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
EPS = (0.5, 1.0, 2.0, 4.0, 8.0)
PROBLEMS = {"abs": {"loss": "abs"}, "squared": {"loss": "squared"}, "unbiased": {"unbiased": True}}


def structure(name, solutions):
    """Floors, windows and priors over eps."""
    figure, axes = plt.subplots(3, len(solutions), figsize=(3.0 * len(solutions), 7.2), constrained_layout=True)
    for column, solution in zip(axes.T, solutions, strict=True):
        for ax, draw, what in zip(column, (plot_floor, plot_windows, plot_prior),
                                  (solution.mechanism, solution.mechanism, solution), strict=True):  # fmt: skip
            draw(what, ax)
            ax.set(xlabel="", ylabel="")
        column[0].set_title(rf"$\varepsilon = {float(solution.problem.eps):g}$")
    for ax, label in zip(
        axes[:, 0], ("floor over outputs", "favoured outputs over inputs", "prior over inputs"), strict=True
    ):
        ax.set_ylabel(label)
    figure.savefig(HERE / f"kernel-structure-{name}.png", dpi=80, metadata={"Software": None})
    plt.close(figure)


for name, options in PROBLEMS.items():
    structure(name, [optdp.solve_kernel(eps, rtol=1e-3, **options) for eps in EPS])

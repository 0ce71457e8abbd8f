"""The figure of the README, by the library's own gap report: `make docs-data` runs this file."""

import sys
from pathlib import Path

import matplotlib.pyplot as plt

import optdp
from optdp.report.plots import OUTSIDE, titled

plt.switch_backend("agg")
plt.rcParams["svg.hashsalt"] = "optdp"  # the same file in every run
HERE = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent

report = optdp.gap_report({"problem": "kernel", "unbiased": True, "eps": (0.25, 0.5, 1, 1.5, 2, 3, 4), "rtol": 1e-3})
figure = report.plot()
axes = titled(
    figure.axes[0], "A number in [-1, 1] answered without bias: published mechanisms over the certified optimum"
)
axes.lines[0].set_label("optimum")
axes.set(ylabel="worst-case variance / optimum", ylim=(0.93, 6))
axes.legend(frameon=False, **OUTSIDE)
figure.savefig(HERE / "readme.svg", metadata={"Date": None}, bbox_inches="tight")

"""The figures of docs/kernel-limit.md, from the enclosures of `optdp.closed_forms.bulk`: `make docs-data` runs this file."""

import math
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from optdp.closed_forms import bulk

plt.switch_backend("agg")
plt.rcParams["svg.hashsalt"] = "optdp"  # the same file in every run
HERE = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
P, THETA = float(bulk.bulk_parameter(1)), float(bulk.bulk_parameter(2))


def save(figure, name):
    figure.savefig(HERE / name, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)


def densities():
    """Floor density mu, prior density lambda and window width, on [0, 1]."""
    figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), constrained_layout=True)
    for q, end in ((1, P), (2, THETA)):
        p = np.linspace(-end, end, 401)
        if q == 1:
            top = 1 / (2 * math.sqrt(math.pi) * math.erf(P))
            t, g = np.array([math.erf(v) for v in p]) / (2 * math.erf(P)), top * np.exp(-(p**2))
            floor, prior = 1 / (4 * g), top * math.exp(-(P**2)) * (g + t * p) / g**2
        else:
            r = 1 / (2 * math.sin(THETA))
            t = r * np.sin(p)
            floor = (24 * THETA) ** (-1 / 3) / (r * np.cos(p))
            prior = (t**2 + r**2 * (3 * THETA / math.tan(THETA) - 1)) / (4 * THETA * (r**2 - t**2) ** 1.5)
        label = r"$|y-x|$" if q == 1 else r"$(y-x)^2$"
        for axis, values in zip(axes, (floor, 1 / floor, prior), strict=True):
            axis.plot(t + 0.5, values, label=label)
    for axis, title in zip(axes, (r"floor $\mu$", r"window width $w = 1/\mu$", r"prior $\lambda$"), strict=True):
        axis.set(title=title, xlabel="$x$", ylim=(0, None))
    axes[0].legend()
    save(figure, "kernel-limit-densities.svg")


def brackets():
    """Certified brackets of the scaled optimum, and the ratio of mechanism and bound."""
    figure, axes = plt.subplots(1, 2, figsize=(11, 3.6), constrained_layout=True)
    grid = np.arange(5, 30.5, 0.5)
    for q, colour in ((1, "C0"), (2, "C1")):
        label = r"$|y-x|$, $e^{\varepsilon/2}V$" if q == 1 else r"$(y-x)^2$, $e^{2\varepsilon/3}V$"
        low, high = np.array([[float(b) for b in bulk.bulk_bracket(q, float(e))] for e in grid]).T
        scale = np.exp(q * grid / (q + 1))
        axes[0].fill_between(grid, low * scale, high * scale, color=colour, alpha=0.4, label=label)
        axes[0].axhline(float(bulk.bulk_constant(q)), color=colour, lw=0.8, ls="--")
        axes[1].semilogy(grid, high / low - 1, color=colour, label=label.split(",")[0])
    unbiased = np.array([float(bulk.unbiased_upper(float(e))) for e in grid])
    axes[0].plot(grid, unbiased * np.exp(2 * grid / 3), "C2", lw=1, label="unbiased mechanism")
    axes[1].semilogy(grid, unbiased / low - 1, "C2", label="unbiased")
    axes[0].set(xlabel=r"$\varepsilon$", title="scaled optimum: bracket and limit", ylim=(0.25, 0.65))
    axes[1].set(xlabel=r"$\varepsilon$", title="mechanism over bound, minus 1")
    for axis in axes:
        axis.legend()
    save(figure, "kernel-limit-brackets.svg")


if __name__ == "__main__":
    densities()
    brackets()

"""The gap report of mechanisms for vectors, and their figures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.design.vector import solve_vector
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines import applicable
from optdp.mechanisms.cap import CapMechanism
from optdp.mechanisms.lifted import LiftedMechanism
from optdp.mechanisms.product import ProductMechanism
from optdp.mechanisms.radial import RadialMechanism
from optdp.mechanisms.scaled import ScaledMechanism
from optdp.mechanisms.signs import SignMechanism
from optdp.problem import Problem
from optdp.report.compare import Own, named
from optdp.report.gap import Levels, several, table
from optdp.report.plots import new_axes
from optdp.report.report import Column, Report

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def gap_report(
    eps: Levels = (0.5, 1.0, 2.0, 4.0, 8.0), dim: int | Iterable[int] = 100, norm: str = "l2", inputs: str | None = None,
    *, rtol: float = 1e-3, mechanisms: Own = None,
) -> Report:  # fmt: skip
    """The certified bracket for every dimension and epsilon, and the error of each published mechanism as a ratio to the value.

    **Arguments:** `eps`, `dim`: one or several; `norm`, `inputs`, `rtol`: as in `optdp.solve_vector`;
    `mechanisms`: as in `optdp.gap_report`.
    """
    dims = list(dim) if isinstance(dim, Iterable) else [dim]
    inputs = inputs or ("sphere" if norm == "l2" else "ball")
    solutions = [solve_vector(e, d, norm=norm, inputs=inputs, rtol=rtol) for d in dims for e in several("eps", eps)]
    if not solutions:
        raise ValueError("dim is not allowed to be empty: it must be one integer or several")
    domain = solutions[0].problem.domain
    title = f"Unbiased vectors on {domain}" if len(dims) == 1 else "Unbiased vectors"

    def rivals(problem: Problem) -> dict[str, Mechanism]:
        return applicable(problem) | named(mechanisms, problem)

    report = table(solutions, title, rivals, Column("dim", "d"), note="is at least the lower bound.")
    for row, solution in zip(report.rows, solutions, strict=True):
        row["dim"] = solution.problem.domain.dimension
    first, *rest, dim_column = report.columns
    # A figure over epsilon has no place for several dimensions.
    return replace(report, columns=[first, dim_column, *rest], figure=report.figure if len(dims) == 1 else None)


def plot_cap(mechanism: CapMechanism, *, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
    """The density of t = <u, x>, u the direction of the output for a unit vector x, beside that of a uniform direction."""
    ax = new_axes(ax)
    if mechanism.dim == 1:
        inside = mechanism.coins / 2**124
        ax.vlines([-1, 1], 0, [1 - inside, inside], lw=3)
        ax.set(xlabel="direction along the input", ylabel="probability", ylim=(0, 1))
        return ax
    t, uniform, found = cap_curves(mechanism)
    ax.plot(t, uniform, ":", color="grey", label="uniform direction")
    ax.plot(t, found, lw=1.8, label="output")
    ax.set(xlabel="<u, x>, for the direction u of the output", ylabel="density", ylim=(0, None))
    ax.legend(frameon=False, loc="upper left")
    return ax


def plot_radial(mechanism: RadialMechanism, *, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
    """How far outputs are from 0: the distribution function of |Y| for inputs of three norms (`inputs`: these norms)."""
    ax = new_axes(ax)
    for norm in np.atleast_1d((0.0, 0.5, 1.0) if inputs is None else np.asarray(inputs, dtype=float)).tolist():
        radii, masses = mechanism.norms(norm)
        sums = np.append(0.0, np.cumsum(masses))
        ax.step(np.append(0.0, radii), sums, where="post", label=f"|x| = {norm:.3g}")
    ax.set(xlabel="norm r of the output", ylabel="probability of |Y| <= r", ylim=(0, 1.02))
    ax.legend(frameon=False, loc="upper left")
    return ax


def plot_whole(
    mechanism: LiftedMechanism | ScaledMechanism, *, ax: Axes | None = None, inputs: ArrayLike | None = None
) -> Axes:
    """The mechanism on the ball of one dimension more, or around the cube."""
    chosen: dict[str, Any] = {} if inputs is None else {"inputs": inputs}
    return mechanism.whole.plot(ax, **chosen)


def cap_curves(mechanism: CapMechanism) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(t, density of <u, x> for a uniform direction u, and for that of the output) of a cap in two dimensions or more."""
    from scipy.special import gammaln

    d, g, inside = mechanism.dim, mechanism.height, mechanism.coins / 2**124
    reach = min(1.0, max(6 / np.sqrt(d), g + 3 / np.sqrt(d)))
    t = np.unique(np.concatenate([np.linspace(-reach, reach, 2001)[1:-1], [g - 1e-12, g]]))
    share = float(mechanism.shares[0])
    log = gammaln(d / 2) - gammaln((d - 1) / 2) - np.log(np.pi) / 2 + (d - 3) / 2 * np.log1p(-(t**2))
    uniform = np.exp(log)
    return t, uniform, uniform * np.where(t >= g, inside / share, (1 - inside) / (1 - share))


def plot_signs(mechanism: SignMechanism, *, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
    """The distribution of the number of signs that are right, beside that of random signs."""
    ax = new_axes(ax)
    n, uniform, found = sign_curves(mechanism)
    ax.plot(n, uniform, ":", marker=".", color="grey", label="random signs")
    ax.plot(n, found, marker=".", lw=1.5, label="output")
    ax.set(xlabel=f"signs of {mechanism.k} that agree with the input", ylabel="probability", ylim=(0, None))
    ax.locator_params(axis="x", integer=True)
    ax.legend(frameon=False)
    return ax


def sign_curves(mechanism: SignMechanism) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(n, probability that n random signs are right, that n signs of the output are)."""
    from scipy.stats import binom

    k, least = mechanism.k, mechanism.least
    low = max(0, int(k / 2 - 5 * np.sqrt(k)))
    high = min(k, int(max(k / 2, least) + 5 * np.sqrt(k)))
    n = np.arange(low, high + 1)
    uniform, inside, share = binom.pmf(n, k, 0.5), mechanism.coins / 2**124, binom.sf(least - 1, k, 0.5)
    return n, uniform, uniform * np.where(n >= least, inside / share, (1 - inside) / (1 - share))


def plot_product(mechanism: ProductMechanism, *, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
    """The mechanism of one coordinate."""
    chosen: dict[str, Any] = {} if inputs is None else {"inputs": inputs}
    return mechanism.part.plot(ax, **chosen)

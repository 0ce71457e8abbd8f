"""The gap report of mechanisms for vectors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from optdp.design.vector import solve_vector
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines import applicable
from optdp.problem import Problem
from optdp.report.compare import Own, named
from optdp.report.gap import Levels, listed, several, table
from optdp.report.report import Column, Report


def gap_report(
    eps: Levels = (0.5, 1.0, 2.0, 4.0, 8.0), dim: int | Iterable[int] = 100, norm: str = "l2", inputs: str | None = None,
    *, rtol: float = 1e-3, mechanisms: Own = None,
) -> Report:  # fmt: skip
    """The certified bracket for every dimension and epsilon, and the error of each published mechanism as a ratio to the value.

    **Arguments:** `eps`, `dim`: one or several; `norm`, `inputs`, `rtol`: as in `optdp.solve_vector`;
    `mechanisms`: as in `optdp.gap_report`.
    """
    dims = listed(dim)
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

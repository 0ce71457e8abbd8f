"""The gap report of the piecewise mechanisms: the optimum and the published ones over a range of epsilon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from optdp.design.piecewise import solve_piecewise
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.baselines import applicable
from optdp.problem.problem import Problem
from optdp.report.compare import named
from optdp.report.gap import Rivals, table
from optdp.report.report import Report


def gap_report(
    eps: Sequence[Any] = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0),
    loss: Any = "abs",
    domain: Any = (0.0, 1.0),
    *,
    mechanisms: Rivals = None,
) -> Report:
    """The optimum and its bracket at every epsilon, and the worst-case loss of each baseline as a ratio to the optimum.

    **Arguments:** `eps`: one epsilon or several; `loss`, `domain`: as in `optdp.solve_piecewise`; `mechanisms`: as in
    `optdp.gap_report`.
    """

    def beside(problem: Problem) -> dict[str, Mechanism]:
        own: Any = mechanisms(problem) if callable(mechanisms) else mechanisms
        return applicable(problem) | named(own, problem)

    solutions = [solve_piecewise(e, 3, loss, domain=domain) for e in ([eps] if np.ndim(eps) == 0 else eps)]
    problem = solutions[0].problem
    report = table(solutions, f"Piecewise mechanisms on {problem.domain}: {problem.objective.name}", beside)
    note = f"At eps = {problem.eps}: {problem.statement()} is at least the lower bound. Others may go below it."
    return replace(report, notes=[note, *report.notes])

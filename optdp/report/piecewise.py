"""The gap report of the piecewise mechanisms: the optimum and the published ones over a range of epsilon."""

from __future__ import annotations

from optdp.design.piecewise import solve_piecewise
from optdp.mechanisms.baselines import applicable
from optdp.problem import DomainLike, LossLike
from optdp.report.compare import Own, best_of_all, named
from optdp.report.gap import Levels, several, table
from optdp.report.report import Report


def gap_report(
    eps: Levels = (0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0), loss: LossLike = "abs", domain: DomainLike = (0.0, 1.0),
    *, kernel: bool = True, rtol: float = 1e-2, time_limit: float = 20.0, mechanisms: Own = None,
) -> Report:  # fmt: skip
    """The optimum and its bracket at every epsilon, and the worst-case loss of each baseline as a ratio to the optimum.

    **Arguments:** `eps`: one epsilon or several; `loss`, `domain`: as in `optdp.solve_piecewise`; `kernel`: whether to bracket
    the optimum over all mechanisms as well; `rtol`, `time_limit` (seconds for each epsilon): of that solve; `mechanisms`: as in
    `optdp.gap_report`.
    """
    solutions = [solve_piecewise(e, 3, loss, domain=domain) for e in several("eps", eps)]
    problem = solutions[0].problem
    title = f"Piecewise mechanisms on {problem.domain}: {problem.objective.name}"
    note = "is at least the lower bound. Mechanisms outside of this family may go below it."
    found = [best_of_all(solution.problem, rtol, time_limit) for solution in solutions] if kernel else []
    everyone = [best for best in found if best is not None]  # none at all on a circle, where the family has it
    return table(
        solutions, title, lambda problem: applicable(problem) | named(mechanisms, problem), note=note, everyone=everyone
    )

"""optdp: the best mechanism for a privacy notion, a domain and a loss, with a proof.

    >>> import optdp
    >>> sol = optdp.solve_piecewise(eps=1.0, loss="squared")
    >>> sol.value, sol.lower_bound          # a bracket around the optimum
    >>> sol.mechanism.randomize([0.2, 0.7]) # what you deploy
    >>> print(sol.verify())                 # the proof, checked again without the solver

Importing the package loads numpy and python-flint only; solvers, sympy, pandas and matplotlib load when first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from optdp.design.piecewise import solve_piecewise
from optdp.mechanisms.base import Mechanism
from optdp.problem.domains import Alphabet, Circle, Interval
from optdp.problem.losses import CustomLoss, Power
from optdp.problem.privacy import LDP, ApproxDP
from optdp.solution import Solution, Status

__version__ = "0.1.0"

#: Loaded when first used.
_HOME = {
    "AdditiveMechanism": "optdp.mechanisms.additive",
    "audit": "optdp.audit.audit",
    "check_hypothesis": "optdp.audit.ogpm.hypothesis",
    "compare": "optdp.report.compare",
    "discoveries": "optdp.audit.audit",
    "estimate_histogram": "optdp.statistics.estimation",
    "estimate_mean": "optdp.statistics.estimation",
    "gap_report": "optdp.report.gap",
    "LIP": "optdp.problem.privacy",
    "lip_simulate": "optdp.statistics.simulation",
    "Prior": "optdp.problem.priors",
    "Report": "optdp.report.report",
    "solve_additive": "optdp.design.additive",
    "solve_composite": "optdp.design.composite",
    "solve_kernel": "optdp.design.kernel",
    "solve_lip": "optdp.design.lip",
    "solve_ptt": "optdp.design.ptt",
    "Variance": "optdp.problem.objectives",
}

__all__ = [
    "LDP",
    "Alphabet",
    "ApproxDP",
    "Circle",
    "CustomLoss",
    "Interval",
    "Mechanism",
    "Power",
    "Solution",
    "Status",
    "__version__",
    "solve_piecewise",
    *sorted(_HOME),
]

if TYPE_CHECKING:
    from optdp.audit.audit import audit, discoveries
    from optdp.audit.ogpm.hypothesis import check_hypothesis
    from optdp.design.additive import solve_additive
    from optdp.design.composite import solve_composite
    from optdp.design.kernel import solve_kernel
    from optdp.design.lip import solve_lip
    from optdp.design.ptt import solve_ptt
    from optdp.mechanisms.additive import AdditiveMechanism
    from optdp.problem.objectives import Variance
    from optdp.problem.priors import Prior
    from optdp.problem.privacy import LIP
    from optdp.report.compare import compare
    from optdp.report.gap import gap_report
    from optdp.report.report import Report
    from optdp.statistics.estimation import estimate_histogram, estimate_mean
    from optdp.statistics.simulation import lip_simulate


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'optdp' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

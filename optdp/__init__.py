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

from optdp.domains import Alphabet, Circle, Interval
from optdp.losses import CustomLoss, Power
from optdp.mechanisms.base import Mechanism
from optdp.privacy import LDP, ApproxDP
from optdp.programs.piecewise import solve_piecewise
from optdp.solution import Solution, Status

__version__ = "0.1.0"

#: Loaded when first used.
_HOME = {
    "AdditiveMechanism": "optdp.mechanisms.additive",
    "audit": "optdp.claims.audit",
    "check_hypothesis": "optdp.claims.hypothesis",
    "compare": "optdp.reports.compare",
    "discoveries": "optdp.claims.audit",
    "estimate_histogram": "optdp.estimation",
    "estimate_mean": "optdp.estimation",
    "gap_report": "optdp.reports.gap",
    "LIP": "optdp.privacy",
    "lip_simulate": "optdp.lip_simulation",
    "Prior": "optdp.priors",
    "Report": "optdp.reports.report",
    "solve_additive": "optdp.programs.additive",
    "solve_composite": "optdp.programs.composite",
    "solve_kernel": "optdp.programs.kernel",
    "solve_lip": "optdp.programs.lip",
    "solve_ptt": "optdp.programs.ptt",
    "Variance": "optdp.objectives",
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
    from optdp.claims.audit import audit, discoveries
    from optdp.claims.hypothesis import check_hypothesis
    from optdp.estimation import estimate_histogram, estimate_mean
    from optdp.lip_simulation import lip_simulate
    from optdp.mechanisms.additive import AdditiveMechanism
    from optdp.objectives import Variance
    from optdp.priors import Prior
    from optdp.privacy import LIP
    from optdp.programs.additive import solve_additive
    from optdp.programs.composite import solve_composite
    from optdp.programs.kernel import solve_kernel
    from optdp.programs.lip import solve_lip
    from optdp.programs.ptt import solve_ptt
    from optdp.reports.compare import compare
    from optdp.reports.gap import gap_report
    from optdp.reports.report import Report


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'optdp' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

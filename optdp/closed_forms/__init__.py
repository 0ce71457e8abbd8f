"""Formulas as sympy expressions, each once, by what it describes; `optimum(problem)` finds the one for a problem."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sympy import Expr

from optdp.problem import Problem

#: Modules with a function `optimum(problem)`: a sympy expression, or None where it has none.
MODULES = ("piecewise", "kernel", "squared_window", "varying_window", "additive", "lip", "frequency", "vector")


def optimum(problem: Problem) -> Expr | None:
    """The problem's optimum as a sympy expression in `eps` (and `delta`), where one is proven, else None."""
    for module in MODULES:
        found = importlib.import_module(f"optdp.closed_forms.{module}").optimum(problem)
        if found is not None:
            return found
    return None

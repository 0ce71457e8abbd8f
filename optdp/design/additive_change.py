"""The chance that noise changes an integer: P(X != 0) is P(|X| > 1/2) there, which the designs of additive noise know."""

from __future__ import annotations

from dataclasses import replace

from optdp.certificates.additive import on_integers
from optdp.design.additive_quantile import DESIGNS
from optdp.design.registry import Run, register
from optdp.problem.problem import Problem
from optdp.solution import Solution


def accepts(problem: Problem) -> str | None:
    """The probability of any error at all, on the integers."""
    same = on_integers(problem)
    if same is problem:
        return "the objective must be WorstCase(Threshold(0)) on the integers"
    reasons = [design.accepts(same) for design in DESIGNS]
    return None if None in reasons else next((r for r in reasons if "privacy must be" not in str(r)), reasons[0])


def design(run: Run, *, n: int | None = None) -> Solution:
    """See `optdp.solve_additive`."""
    inner = replace(run, problem=on_integers(run.problem))
    chosen = next(design for design in DESIGNS if design.accepts(inner.problem) is None)
    return replace(chosen.design(inner, n=n), problem=run.problem)


register(
    "additive change",
    ("ApproxDP, Profile, Curve, GDP, KL, RDP", "Integers", "WorstCase(Threshold(0))", "Additive", "Unbiased"),
    accepts, design,
)  # fmt: skip

"""optdp: the best mechanism for a privacy notion, a domain and a loss, with a proof.

    >>> import optdp
    >>> sol = optdp.solve_piecewise(eps=1.0, loss="squared")
    >>> sol.lower_bound <= sol.value             # a bracket around the optimum
    True
    >>> private = sol.mechanism.randomize([0.2, 0.7])      # what you deploy
    >>> bool(sol.verify())                       # the proof, checked again without the solver
    True

Importing the package loads nothing; every name loads what it needs when it is first used.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from optdp import hooks

__version__ = "0.2.0"

logging.getLogger("optdp").addHandler(logging.NullHandler())

#: Public name -> the module that has it.
_HOME = {
    name: module
    for module, names in {
        "optdp.problem": (
            "GDP", "KL", "LDP", "LIP", "RDP", "Additive", "AffineWindow", "AllMechanisms", "Alphabet", "ApproxDP", "At",
            "Average", "Ball", "BayesRisk", "Box", "Circle", "Composite", "Constraint", "Curve", "Density", "DistanceLoss",
            "Distances", "Domain", "Family", "Graph", "Integers", "Interval", "Line", "Loss", "Metric", "MetricLDP",
            "OneHot", "Outputs", "Piecewise", "Points", "Prior", "Privacy", "Problem", "Profile", "Quantile", "Sphere",
            "Unbiased", "WorstCase",
        ),
        "optdp.problem.losses": ("CustomLoss", "Huber", "PairLoss", "Pieces", "Pinball", "Power", "Threshold"),
        "optdp.exact.numbers": ("log",),
        "optdp.mechanisms.base": ("Mechanism",),
        "optdp.mechanisms.additive": ("AdditiveMechanism",),
        "optdp.solution": ("Program", "Solution"),
        "optdp.status": ("Status",),
        "optdp.design.registry": ("solve",),
        "optdp.design.progress": ("Step",),
        "optdp.design.piecewise": ("solve_piecewise",),
        "optdp.design.vector": ("solve_vector",),
        "optdp.design.ptt": ("solve_ptt",),
        "optdp.design.composite": ("solve_composite",),
        "optdp.design.additive": ("solve_additive",),
        "optdp.design.frequency": ("solve_frequency",),
        "optdp.design.kernel": ("solve_kernel",),
        "optdp.design.lip": ("solve_lip",),
        "optdp.statistics.result": ("Estimate", "NotIdentified"),
        "optdp.statistics.estimate": ("estimate",),
        "optdp.statistics.recommend": ("Recommendation", "recommend"),
        "optdp.statistics.estimation": ("estimate_histogram", "estimate_mean"),
        "optdp.statistics.plan": ("Plan", "plan"),
        "optdp.statistics.ledger": ("Ledger",),
        "optdp.statistics.collect": ("collect",),
        "optdp.statistics.tally": ("Tally",),
        "optdp.statistics.schema": ("Category", "Date", "Flag", "Integer", "Number"),
        "optdp.statistics.simulation": ("lip_simulate",),
        "optdp.report.atlas": ("Atlas", "atlas"),
        "optdp.report.compare": ("compare",),
        "optdp.report.gap": ("gap_report",),
        "optdp.report.report": ("Report",),
        "optdp.audit.audit": ("discoveries",),
        "optdp.audit.ogpm.hypothesis": ("check_hypothesis",),
    }.items()
    for name in names
}  # fmt: skip

# Written out, because type checkers read it: `_HOME` and two more.
__all__ = [
    "__version__", "audit", "Additive", "AdditiveMechanism", "AffineWindow", "AllMechanisms", "Alphabet",
    "ApproxDP", "At", "Atlas", "Average", "Ball", "BayesRisk", "Box", "Category", "Circle", "Composite", "Constraint",
    "Curve", "CustomLoss", "Date", "Density", "DistanceLoss", "Distances", "Domain", "Estimate", "Family", "Flag", "GDP",
    "Graph", "Huber", "Integer", "Integers", "Interval", "KL", "LDP", "LIP", "Ledger", "Line", "Loss", "Mechanism",
    "Metric", "MetricLDP", "NotIdentified", "Number", "OneHot", "Outputs", "PairLoss", "Pieces", "Piecewise",
    "Pinball", "Plan", "Points", "Power", "Prior", "Privacy", "Problem", "Profile", "Program", "Quantile", "RDP",
    "Recommendation", "Report", "Solution", "Sphere", "Status", "Step", "Tally", "Threshold", "Unbiased",
    "WorstCase", "atlas", "check_hypothesis", "collect", "compare", "discoveries", "estimate", "estimate_histogram",
    "estimate_mean", "gap_report", "lip_simulate", "log", "plan", "recommend", "solve", "solve_additive",
    "solve_composite", "solve_frequency", "solve_kernel", "solve_lip", "solve_piecewise", "solve_ptt",
    "solve_vector",
]  # fmt: skip

if TYPE_CHECKING:
    from optdp.audit.audit import audit, discoveries
    from optdp.audit.ogpm.hypothesis import check_hypothesis
    from optdp.design.additive import solve_additive
    from optdp.design.composite import solve_composite
    from optdp.design.frequency import solve_frequency
    from optdp.design.kernel import solve_kernel
    from optdp.design.lip import solve_lip
    from optdp.design.piecewise import solve_piecewise
    from optdp.design.progress import Step
    from optdp.design.ptt import solve_ptt
    from optdp.design.registry import solve
    from optdp.design.vector import solve_vector
    from optdp.exact.numbers import log
    from optdp.mechanisms.additive import AdditiveMechanism
    from optdp.mechanisms.base import Mechanism
    from optdp.problem.constraints import Constraint, Outputs, Unbiased
    from optdp.problem.density import Density
    from optdp.problem.domains import Alphabet, Ball, Box, Circle, Domain, Integers, Interval, Line, OneHot, Sphere
    from optdp.problem.families import Additive, AffineWindow, AllMechanisms, Composite, Family, Piecewise
    from optdp.problem.losses import CustomLoss, DistanceLoss, Huber, Loss, PairLoss, Pieces, Pinball, Power, Threshold
    from optdp.problem.metrics import Distances, Graph, Metric, MetricLDP, Points
    from optdp.problem.objectives import At, Average, BayesRisk, Quantile, WorstCase
    from optdp.problem.priors import Prior
    from optdp.problem.privacy import GDP, KL, LDP, LIP, RDP, ApproxDP, Curve, Privacy, Profile
    from optdp.problem.problem import Problem
    from optdp.report.atlas import Atlas, atlas
    from optdp.report.compare import compare
    from optdp.report.gap import gap_report
    from optdp.report.report import Report
    from optdp.solution import Program, Solution
    from optdp.statistics.collect import collect
    from optdp.statistics.estimate import estimate
    from optdp.statistics.estimation import estimate_histogram, estimate_mean
    from optdp.statistics.ledger import Ledger
    from optdp.statistics.plan import Plan, plan
    from optdp.statistics.recommend import Recommendation, recommend
    from optdp.statistics.result import Estimate, NotIdentified
    from optdp.statistics.schema import Category, Date, Flag, Integer, Number
    from optdp.statistics.simulation import lip_simulate
    from optdp.statistics.tally import Tally
    from optdp.status import Status


def _draw(thing: Any, **options: Any) -> Any:
    from optdp.report.plots import draw

    return draw(thing, **options)


hooks.draw = _draw


def __getattr__(name: str) -> Any:
    if name in ("audit", "solvers"):  # packages; `audit` is a function too
        return importlib.import_module(f"optdp.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'optdp' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__

"""Unbiased mechanisms with a window that follows the input: piecewise transformations and composites, on any interval.

The structured method is one variable (`optdp.closed_forms.affine_window`); `optdp.design.ptt` and `optdp.design.composite` hold
the programs of the two papers, their own algorithms, and the front doors `solve_ptt` and `solve_composite`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from optdp.certificates.affine_window import certify, position
from optdp.closed_forms.affine_window import best_window
from optdp.design import composite, ptt
from optdp.design.progress import Progress
from optdp.design.registry import Design, register
from optdp.exact import require
from optdp.mechanisms.composite import CompositeMechanism
from optdp.problem.constraints import Unbiased
from optdp.problem.domains import Interval
from optdp.problem.families import AffineWindow, Composite, Windows
from optdp.problem.objectives import At, WorstCase
from optdp.problem.privacy import LDP
from optdp.problem.problem import Problem
from optdp.problem.shapes import Quartic
from optdp.solution import Program, Solution
from optdp.solvers import nlp

#: How close B2 is taken to the constant that it approaches: t = (1 - 2^-40) y.
EDGE = 1 - Fraction(1, 2**40)


@dataclass(frozen=True)
class Found:
    """What a method gives: the window's share and the middle of the range on [-1, 1], or a mechanism; raw solver output."""

    solver: str
    share: float = 0.0
    shift: float = 0.0
    mechanism: CompositeMechanism | None = None
    objective: float | None = None
    bound: float | None = None
    message: str = ""
    stopped: bool = False
    build: tuple[Callable[..., Any], tuple[Any, ...]] | None = None


def accepts(problem: Problem) -> str | None:
    """Unbiased mechanisms of the families `AffineWindow` and `Composite` on intervals."""
    family, domain, objective = problem.family, problem.domain, problem.objective
    if not isinstance(family, Windows):
        return "the family must be AffineWindow(kind) or Composite(activation, base)"
    if not isinstance(problem.privacy, LDP) or not 0 < float(problem.privacy.eps) <= require.MAX_EPS:
        return "privacy must be LDP with eps in (0, 30]"
    if not isinstance(domain, Interval) or not 1e-150 <= domain.width <= 1e100:
        return "the domain must be an interval of a width in [1e-150, 1e100]"
    if not isinstance(objective, WorstCase | At) or objective.loss.exponent != 2:
        return 'the objective must be the "squared" loss at the worst input or at one input'
    return None if problem.constraints == (Unbiased(),) else "the constraint must be Unbiased(), and no other"


def design(
    problem: Problem,
    *,
    rtol: float,
    time_limit: float,
    method: str,
    solver: Any,
    progress: Progress,
    cells: int = 160,
    target: float | None = None,
    step: float = 0.01,
    iterations: int = 100_000,
    seed: int = 0,
) -> Solution:
    """See `solve_ptt` and `solve_composite`."""
    began = time.perf_counter()
    family, area, eps, x = problem.family, problem.domain, problem.eps, position(problem)
    assert isinstance(family, Windows) and eps is not None
    side, x = (1, None) if x is None else (-1 if x < 0 else 1, abs(x))
    _check_method(problem, method, solver)
    plain = float(eps), None if x is None else float(x)  # what programs in floats see of the problem
    half = area.width / 2
    share, shift, least = best_window(eps, family.activation, family.standing, family.rule, x, x is not None)
    ideal = Found("structured (stationary polynomial, one dimension)", share, shift)
    build = _builder(family, plain, half)
    if method == "auto":
        found = ideal
    else:
        progress(f"{method}: {family.activation}, {family.base}")
        if method == "scip":
            found = _by_scip(build, ideal, time_limit)
        elif method == "lp":
            width, moved, value, message, arguments = ptt.by_linear_programs(
                *plain, require.integer("cells", cells, low=20), solver
            )
            found = Found("a linear program for each range", width, moved, None, value * half**2, None, message, False,
                          (ptt.linear_program, arguments))  # fmt: skip
        else:
            walk = None if method == "grid" else (_goal(target, least, half), step, iterations, seed)
            found = _by_search(problem, walk)
    mechanism = found.mechanism
    if mechanism is None:
        base = Quartic(EDGE) if isinstance(family.base, str) else family.base
        mechanism = CompositeMechanism.private(
            eps, found.share, area, family.activation, base, shift=found.shift * side, rule=family.rule
        )
    certificate = certify(problem, least)
    value = mechanism.enclose(problem.objective)[1]
    model, arguments = found.build or build
    names = (
        "k (slope of the window's middle), a (half-width), f (floor)",
        "mass 1, unbiased, peak <= e^eps times the floor",
    )
    if isinstance(family, Composite):
        names = (
            "k (height of the activation), m (its width), y (height of the base)",
            f"mass 1, unbiased, y + k <= 1, the {family.rule} rule, activation within the range",
        )
    program = Program(
        names[0] + (", r (middle of the range)" if x else ""), names[1], found.solver, time.perf_counter() - began, rtol,
        found.objective, found.bound, found.message, found.stopped, model, arguments,
    )  # fmt: skip
    return Solution(problem, value, min(certificate.value(area), value), mechanism, certificate, program)


register(
    Design(
        "affine window",
        ("LDP", "Interval", 'WorstCase("squared"), At("squared", x)', "AffineWindow(kind), Composite(activation, base, rule)",
         "Unbiased()"),
        accepts,
        design,
        ("auto", "scip", "lp", "grid", "target"),
    )
)  # fmt: skip


def _check_method(problem: Problem, method: str, solver: Any) -> None:
    """Refuse methods of the other family, and what they do not take."""
    family = problem.family
    own = composite.METHODS if isinstance(family, Composite) else ptt.METHODS
    if method not in own:
        raise ValueError(
            f"method = {method!r} is not allowed for a {type(family).__name__}: it must be one of {', '.join(own)}"
        )
    if method == "lp" and isinstance(family, AffineWindow) and family.kind != "free":
        raise ValueError(
            f"method = 'lp' is not allowed for kind = {family.kind!r}: only kind 'free' is linear in the density"
        )
    off = isinstance(problem.objective, At) and problem.objective.x != composite.middle(problem.domain)
    if off and method in ("grid", "target"):
        raise ValueError(
            f"method = {method!r} is not allowed here: it is for the middle of the domain or the worst case"
        )
    if solver is not None and method != "lp":
        raise ValueError("solver is not allowed here: only method 'lp' solves linear programs")


def _builder(
    family: Windows, plain: tuple[float, float | None], half: float
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The model of the plain program and its arguments."""
    eps, x = plain
    if isinstance(family, AffineWindow):
        return ptt.build_model, (eps, family.kind, x, half)
    return composite.build_model, (eps, family.activation, family.base, x, family.rule, 2 * half)


def _by_scip(build: tuple[Callable[..., Any], tuple[Any, ...]], ideal: Found, time_limit: float) -> Found:
    import pyomo.environ as pyo

    model = build[0](*build[1])
    result = nlp.solve(model, "scip", time_limit=time_limit, rel_gap=1e-9)
    share, shift, message = ideal.share, ideal.shift, result.message
    if result.found:
        at = {name: float(variable.value) for name, variable in model.component_map(pyo.Var).items()}
        share = at["m"] / (2 * at["L"]) if "m" in at else at["a"] / at["reach"]
        shift = at.get("r", 0.0)
    else:
        message += "; no feasible point: the mechanism is the structured one"
    return Found("SCIP through Pyomo", share, shift, None, result.objective, result.bound, message, result.timed_out)


def _by_search(problem: Problem, walk: tuple[float, float, int, int] | None) -> Found:
    """The paper's Algorithm 1, or its Algorithm 2 with (goal for sensitivity 1, step, iterations, seed)."""
    family, area, eps = problem.family, problem.domain, problem.eps
    assert isinstance(family, Composite)
    objective = "worst" if isinstance(problem.objective, WorstCase) else "center"
    plain = float(eps), family.activation, family.base  # type: ignore[arg-type]
    if walk is None:
        point, message = composite.algorithm_1(*plain, objective=objective, rule=family.rule)
        solver = "Algorithm 1 (grids of step 0.1, 0.01, 0.001)"
    else:
        goal, step, iterations, seed = walk
        point, message, met = composite.algorithm_2(
            plain[0], goal, *plain[1:], objective=objective, rule=family.rule,
            step=require.real("step", step, low=0.0, open_low=True),
            iterations=require.integer("iterations", iterations, low=1), seed=require.integer("seed", seed, low=0),
        )  # fmt: skip
        solver = f"Algorithm 2 (steps of at most {step:g} towards a target)"
        if not met:
            message += f", target not reached in {iterations} changes: raise iterations or lower step"
    mechanism = composite.from_parameters(
        eps, point.k, point.m, point.y, family.activation, family.base, inputs=area, rule=family.rule
    )
    value = point.variance * area.width**2
    return Found(solver, mechanism=mechanism, objective=value, message=f"{message}; {point}")


def _goal(target: Any, least: float, half: float) -> float:
    """The target for sensitivity 1, if it can be reached at all."""
    if target is None:
        raise TypeError("target = None is not allowed: method 'target' needs the variance to reach")
    goal = require.real("target", target, low=0.0, open_low=True)
    if goal < least * half**2:
        raise ValueError(f"target = {target!r} is not allowed: no (k, m, y) has a variance below {least * half**2:.9g}")
    return goal / (2 * half) ** 2

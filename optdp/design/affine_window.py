"""Unbiased mechanisms with a window that follows the input: piecewise transformations and composites, on any interval.

The structured method is one variable (`optdp.closed_forms.affine_window`); `optdp.design.ptt` and `optdp.design.composite` hold
the programs of the two papers, their own algorithms, and the functions `solve_ptt` and `solve_composite`.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from optdp.certificates.affine_window import certify, position
from optdp.closed_forms.affine_window import best_window
from optdp.design import composite, ptt
from optdp.design.registry import Run, register
from optdp.exact import require
from optdp.mechanisms.composite import CompositeMechanism
from optdp.problem import LDP, AffineWindow, At, Composite, Interval, Problem, Quartic, Unbiased, Windows, WorstCase
from optdp.solution import Solution
from optdp.solvers import nlp
from optdp.solvers.lp import LinearSolver

#: How close B2 is taken to the constant that it approaches: t = (1 - 2^-40 eps) y, eps rounded down to a power of two, at most 1.
EDGE = Fraction(1, 2**40)


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
    run: Run, *, cells: int = 160, target: float | None = None, step: float = 0.01, iterations: int = 100_000, seed: int = 0,
) -> Solution:  # fmt: skip
    """See `solve_ptt` and `solve_composite`."""
    problem, method = run.problem, run.method
    family, area, eps, x = problem.family, problem.domain, problem.eps, position(problem)
    assert isinstance(family, Windows) and eps is not None
    side, x = (1, None) if x is None else (-1 if x < 0 else 1, abs(x))
    _check_method(problem, method, run.solver)
    half, plain = area.width / 2, (float(eps), None if x is None else float(x))
    share, shift, least = best_window(eps, family.activation, family.standing, family.rule, x, x is not None)
    program = _program(family, *plain, half)
    run.progress(f"{method}: {family.activation}, {family.base}")
    if method == "scip":
        share, shift, program = _by_scip(program, share, shift, run.time_limit)
    elif method == "lp":
        cells = require.integer("cells", cells, low=20)
        share, shift, found, message, arguments = ptt.by_linear_programs(*plain, cells, run.solver)
        program |= {"solver": "a linear program for each range", "objective": found * half**2, "message": message,
                    "build": ptt.linear_program, "arguments": arguments}  # fmt: skip
    if method in ("grid", "target"):
        walk = None if method == "grid" else (_goal(target, least, half), step, iterations, seed)
        mechanism, program = _by_search(problem, program, walk)
    else:
        base = (
            Quartic(1 - EDGE * Fraction(2) ** min(math.frexp(float(eps))[1] - 1, 0))
            if isinstance(family.base, str)
            else family.base
        )
        shapes, shift = (family.activation, base), shift * side
        mechanism = CompositeMechanism.private(eps, share, area, *shapes, shift=shift, rule=family.rule)
    return run.solution(mechanism, certify(problem, least), **program)


register(
    "affine window",
    ("LDP", "Interval", 'WorstCase("squared"), At("squared", x)', "AffineWindow(kind), Composite(activation, base, rule)",
     "Unbiased()"),
    accepts, design, ("auto", "scip", "lp", "grid", "target"),
)  # fmt: skip


def _check_method(problem: Problem, method: str, solver: LinearSolver | None) -> None:
    """Refuse methods of the other family, and what they do not take."""
    family = problem.family
    own = composite.METHODS if isinstance(family, Composite) else ptt.METHODS
    refused = f"method = {method!r} is not allowed"
    if method not in own:
        raise ValueError(f"{refused} for a {type(family).__name__}: it must be one of {', '.join(own)}")
    if method == "lp" and isinstance(family, AffineWindow) and family.kind != "free":
        raise ValueError(f"{refused} for kind = {family.kind!r}: only kind 'free' is linear in the density")
    off = isinstance(problem.objective, At) and problem.objective.x != composite.middle(problem.domain)
    if off and method in ("grid", "target"):
        raise ValueError(f"{refused} here: it is for the middle of the domain or the worst case")
    if solver is not None and method != "lp":
        raise ValueError("solver is not allowed here: only method 'lp' solves linear programs")


def _program(family: Windows, eps: float, x: float | None, half: float) -> dict[str, Any]:
    """What is told of the paper's program for the family, as if solved by the structured method."""
    shift, solver = (", r (middle of the range)" if x else ""), "structured (stationary polynomial, one dimension)"
    if isinstance(family, AffineWindow):
        return {
            "variables": f"k (slope of the window's middle), a (half-width), f (floor){shift}", "solver": solver,
            "constraints": "mass 1, unbiased, peak <= e^eps times the floor",
            "build": ptt.build_model, "arguments": (eps, family.kind, x, half),
        }  # fmt: skip
    return {
        "variables": f"k (height of the activation), m (its width), y (height of the base){shift}", "solver": solver,
        "constraints": f"mass 1, unbiased, y + k <= 1, the {family.rule} rule, activation within the range",
        "build": composite.build_model, "arguments": (eps, family.activation, family.base, x, family.rule, 2 * half),
    }  # fmt: skip


def _by_scip(
    program: dict[str, Any], share: float, shift: float, time_limit: float
) -> tuple[float, float, dict[str, Any]]:
    """The window that SCIP finds for the program; the given one where it finds no point."""
    import pyomo.environ as pyo

    model = program["build"](*program["arguments"])
    result = nlp.solve(model, "scip", time_limit=time_limit, rel_gap=1e-9)
    message = result.message
    if result.found:
        at = {name: float(variable.value) for name, variable in model.component_map(pyo.Var).items()}
        top, bottom = (at["m"], 2 * at["L"]) if "m" in at else (at["a"], at["reach"])
        if 0 < top < bottom and 0 <= (moved := at.get("r", 0.0)) < 1:
            share, shift = top / bottom, moved
        else:
            message += "; the point has no window: the mechanism is the structured one"
    else:
        message += "; no feasible point: the mechanism is the structured one"
    found = {"solver": "SCIP through Pyomo", "objective": result.objective, "bound": result.bound, "message": message,
             "stopped": result.timed_out}  # fmt: skip
    return share, shift, program | found


def _by_search(
    problem: Problem, program: dict[str, Any], walk: tuple[float, float, int, int] | None
) -> tuple[CompositeMechanism, dict[str, Any]]:
    """The paper's Algorithm 1, or its Algorithm 2 with (goal for sensitivity 1, step, iterations, seed)."""
    family = problem.family
    assert isinstance(family, Composite)
    plain = float(problem.eps), family.activation, family.base  # type: ignore[arg-type]
    how: Any = {"objective": "worst" if isinstance(problem.objective, WorstCase) else "center", "rule": family.rule}
    if walk is None:
        point, message = composite.algorithm_1(*plain, **how)
        solver = "Algorithm 1 (grids of step 0.1, 0.01, 0.001)"
    else:
        goal, step, iterations, seed = walk
        step = require.real("step", step, low=0.0, open_low=True)
        point, message, met = composite.algorithm_2(
            plain[0], goal, *plain[1:], **how, step=step,
            iterations=require.integer("iterations", iterations, low=1), seed=require.integer("seed", seed, low=0),
        )  # fmt: skip
        solver = f"Algorithm 2 (steps of at most {step:g} towards a target)"
        if not met:
            message += f", target not reached in {iterations} changes: raise iterations or lower step"
    made = point.k, point.m, point.y, family.activation, family.base
    mechanism = composite.from_parameters(problem.eps, *made, inputs=problem.domain, rule=family.rule)  # type: ignore[arg-type]
    value = point.variance * problem.domain.width**2
    return mechanism, program | {"solver": solver, "objective": value, "message": f"{message}; {point}"}


def _goal(target: Any, least: float, half: float) -> float:
    """The target for sensitivity 1, if it can be reached at all."""
    if target is None:
        raise TypeError("target = None is not allowed: method 'target' needs the variance to reach")
    goal = require.real("target", target, low=0.0, open_low=True)
    if goal < least * half**2:
        raise ValueError(f"target = {target!r} is not allowed: no (k, m, y) has a variance below {least * half**2:.9g}")
    return goal / (2 * half) ** 2

"""Which designs there are, what each accepts, and `optdp.solve`, which takes the first that accepts."""

from __future__ import annotations

import importlib
import inspect
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from optdp.certificates.base import Certificate
from optdp.design.progress import Progress, ProgressLike
from optdp.exact import require
from optdp.mechanisms.base import Mechanism
from optdp.problem import LDP, Average, Problem, WorstCase
from optdp.solution import Program, Solution
from optdp.solvers.lp import Guarded, Highs, LinearSolver, SolverFailure

#: Modules that register designs, in the order in which they are asked.
MODULES = (
    "piecewise", "affine_window", "additive.packing", "additive.approximate", "additive.curve", "additive.divergence",
    "additive.quantile", "lip", "finite_kernel", "frequency", "vector", "cube", "kernel", "metric", "metric.line",
    "metric.circle", "plane", "pair_kernel",
)  # fmt: skip

#: The least eps for unbiased vectors: below, coins that prefer one cap cannot be told from fair ones, and the multiplier for
#: categories grows as d/eps^2.
FAINTEST = 1e-20


@dataclass(frozen=True)
class Run:
    """A solve as it was asked for (see `solve`), and its clock: what a design is handed."""

    problem: Problem
    rtol: float
    time_limit: float
    method: str
    solver: LinearSolver | None
    progress: Progress
    began: float = field(default_factory=time.perf_counter)
    #: A design may stop as soon as the optimum is proven to be above this.
    target: float = math.nan

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return time.perf_counter() - self.began

    def left(self) -> float:
        """How many more seconds it may take, at least 0."""
        return max(self.time_limit - self.seconds, 0.0)

    def solution(
        self, mechanism: Mechanism, certificate: Certificate, variables: str, constraints: str, solver: str,
        bracket: tuple[float, float] | None = None, **told: Any,
    ) -> Solution:  # fmt: skip
        """The solution with both sides from scratch: what the mechanism attains, and what is proven for the problem.

        **Arguments:** `variables`, `constraints`, `solver` and what else is `told`: fields of the `Program`; `bracket`:
        both sides, if the design has just computed them from this certificate and this mechanism.
        """
        program = Program(variables, constraints, solver, self.seconds, self.rtol, **told)
        if bracket is None:
            bracket = certificate.bound(self.problem).value, mechanism.enclose(self.problem.objective)[1]
        lower, value = bracket
        return Solution(self.problem, value, lower, mechanism, certificate, program)


def not_unbiased(problem: Problem, domain: type | Any, told: str, averaged: bool) -> str | None:
    """Why a problem is not the squared error of unbiased mechanisms on such a domain, at the worst input or (`averaged`) on the
    uniform average.
    """
    privacy, objective = problem.privacy, problem.objective
    if not isinstance(privacy, LDP) or not FAINTEST <= float(privacy.eps) <= require.MAX_EPS:
        return f"privacy must be LDP with eps in [{FAINTEST:g}, 30]"
    if not isinstance(problem.domain, domain):
        return f"the domain must be {told}"
    uniform = averaged and isinstance(objective, Average) and objective.prior == "uniform"
    if not (uniform or isinstance(objective, WorstCase)) or objective.loss.exponent != 2:
        return f"the objective must be the worst case {'(or the uniform average) ' * averaged}of the squared error"
    if not problem.unbiased or problem.family.clause(problem.eps):
        return "the mechanism must be unbiased, and the family all mechanisms"
    return None


@dataclass(frozen=True)
class Design:
    """A way to solve a kind of problem.

    - `name`; `solves`: one line for the table of what is solved: (privacy, domain, objective, family, constraints).
    - `accepts(problem)`: None if it can solve the problem, else the reason why not, in a few words.
    - `solve(run, **options)`: the solution.
    - `methods`: the allowed values of `method`, "auto" first; `solvers`: whether a `solver` may be chosen.
    - `least`: options with which the value is least, where what is taken by default has a larger one for another good.
    """

    name: str
    solves: tuple[str, str, str, str, str]
    accepts: Callable[[Problem], str | None]
    solve: Callable[..., Solution]
    methods: tuple[str, ...]
    solvers: bool = True
    least: dict[str, Any] = field(default_factory=dict)


_DESIGNS: dict[str, Design] = {}


def register(
    name: str, solves: tuple[str, str, str, str, str], accepts: Callable[[Problem], str | None],
    solve: Callable[..., Solution], methods: tuple[str, ...] = ("auto",), *, solvers: bool = True,
    least: dict[str, Any] | None = None,
) -> None:  # fmt: skip
    """Add a `Design` (again under the same name: replace it). It is asked after those that are there."""
    _DESIGNS[name] = Design(name, solves, accepts, solve, methods, solvers, least or {})


def designs() -> tuple[Design, ...]:
    """All designs, in the order in which they are asked."""
    for module in MODULES:
        importlib.import_module(f"optdp.design.{module}")
    # Not the order of registration, which depends on what was imported before; designs from elsewhere come last.
    order = {f"optdp.design.{module}": place for place, module in enumerate(MODULES)}
    return tuple(sorted(_DESIGNS.values(), key=lambda design: order.get(design.accepts.__module__, len(order))))


@cache
def _options(function: Callable[..., Solution]) -> list[str]:
    """The names of a design's options, read once: microseconds count where the solve itself takes them."""
    return list(inspect.signature(function).parameters)[1:]


def solve(
    problem: Problem, rtol: float = 1e-3, time_limit: float = 60.0, method: str = "auto",
    solver: LinearSolver | None = None, progress: ProgressLike = None, **options: Any,
) -> Solution:  # fmt: skip
    """The best mechanism of a problem, between two certified bounds.

    **Arguments:**

    - `problem`: an `optdp.Problem`.
    - `rtol`: the relative gap (value - lower_bound)/value to reach.
    - `time_limit`: seconds after which the search ends, and what was found by then is proven, which takes a little longer: the
      bracket is then wider, and the status says so.
    - `method`: "auto", or one of the design's methods; `solver`: a solver object such as `optdp.solvers.Highs(method="ipm")`.
      Where a closed form answers neither is asked: `solution.program.solver` says what answered.
    - `progress`: a function of an `optdp.Step`, or True for a line on the terminal.
    - further options of the design that solves it (those of the `solve_*` function).

    **Returns** a `Solution`. **Raises** ValueError with every design's reason, the nearest last, if none solves such problems, or
    naming the argument that is not allowed; `optdp.solvers.lp.SolverFailure` (a RuntimeError) where a solver's answers are of
    no use.

        >>> import optdp
        >>> optdp.solve(optdp.Problem(optdp.LDP(1.0), (0, 1), "abs", optdp.Piecewise(3))).value
        0.3775406687981455
    """
    if not isinstance(problem, Problem):
        raise TypeError(f"problem = {problem!r} is not allowed: it must be an optdp.Problem")
    reasons = []
    for design in designs():
        reason = design.accepts(problem)
        if reason is not None:
            reasons.append(f"  {design.name}: {reason}")
            continue
        require.choice("method", method, design.methods)
        known = _options(design.solve)
        for name in options:
            if name not in known:
                takes = ", ".join(known) or "none"
                raise TypeError(f"{name} is not an option of the design {design.name!r}; it takes {takes}")
        if solver is not None and not isinstance(solver, LinearSolver):
            raise TypeError(f"solver = {solver!r} is not allowed: it must be an optdp.solvers.LinearSolver, or None")
        if solver is not None and not design.solvers:
            these = f"method{'s' * (len(design.methods) > 1)} {', '.join(design.methods)}"
            raise ValueError(f"solver is not allowed here: this design has the {these}")
        if solver is not None and not isinstance(solver, Highs):
            solver = Guarded(solver)
        tell = progress if isinstance(progress, Progress) else Progress(progress)
        rtol = require.real("rtol", rtol, low=0.0, open_low=True, high=1.0)
        time_limit = require.real("time_limit", time_limit, low=0.0, open_low=True)
        try:
            found = design.solve(Run(problem, rtol, time_limit, method, solver, tell), **options)
        except (ArithmeticError, AssertionError, LookupError, TypeError, ValueError) as error:
            # Of the designs' own solvers something is expected: what fails with them is an error of the program.
            if not isinstance(solver, Guarded) or not solver.asked:
                raise
            told = " ".join(f"{type(error).__name__}: {error}".split())
            raise SolverFailure(
                f"what {solver.name} answered is of no use to the design {design.name!r} ({told})"
            ) from error
        tell("done", found.lower_bound, found.value)
        return agreed(found)
    asked = (problem.privacy, problem.domain, problem.objective, problem.family)
    words = [[re.findall(r"\w+", told) for told in d.solves] for d in designs()]
    near = [sum(type(part).__name__ in told for part, told in zip(asked, row, strict=False)) for row in words]
    order = sorted(range(len(reasons)), key=near.__getitem__)
    told = "\n".join(
        ["What is solved:", table(), "Why none of them is this, the nearest last:", *(reasons[k] for k in order)]
    )
    raise ValueError(f"no design solves: {problem.statement()}. {told}")


def agreed(found: Solution) -> Solution:
    """The solution; a bound that is above the value is not cut to it. **Raises** SolverFailure."""
    if found.lower_bound <= found.value:
        return found
    wrong = f"{found.lower_bound!r} is proven, and the mechanism attains {found.value!r}: one of both is wrong"
    given = found.assumptions
    raise SolverFailure(f"{wrong}, or it is not true that {given}" if given else f"{wrong}, an error of optdp")


def table(markdown: bool = False) -> str:
    """What is solved, one line for each design: the documentation's table is printed by this."""
    head = ("design", "privacy", "domain", "objective", "family", "constraints")
    rows = [(d.name, *d.solves) for d in designs()]
    if markdown:
        lines = [head, ("---",) * len(head), *rows]
        return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)
    return "\n".join(
        f"  {name}: " + "; ".join(f"{part}: {cell}" for part, cell in zip(head[1:], cells, strict=True) if cell)
        for name, *cells in rows
    )

"""The best piecewise transformation of a number in [-1, 1] (OPTT).

**The program.** The input x in [-1, 1] gets the density p (1 - (1 - 1/E) (1 - h((y - kx)/a))) on [kx - a, kx + a] and the
floor p/E on the rest of [-(k + a), k + a], with E = e^eps and h a shape of peak 1: h = 1 for I-PTT, a triangle for II-PTT. With
f = p/E and the shape's fill c = (1/2) int h and spread v,

    min_{k, a, f}  max_x  2 f (k + a)^3/3 + 2 a c (E - 1) f (k^2 x^2 + a^2 v) - x^2
    2 f (k + a) + 2 a c (E - 1) f = 1        (mass 1, which the paper's optimisation leaves out)
    2 a c (E - 1) f k = 1                    (unbiased)

One dimension is left (`optdp.closed_forms.affine_window`), the window's share w = a/(k + a) = 1/eta.

**At one input** the range of outputs may be off centre, [r - B, r + B]. **"free"** lets the density be anything between a common
floor and E times it, on any range: the rectangle is then the best window (bathtub, which is the paper's Conjecture 1
for every eps). Its plain formulation is a linear program for each range (method "lp").
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.design.progress import ProgressLike
from optdp.design.registry import solve
from optdp.exact import require
from optdp.exact.numbers import Number
from optdp.mechanisms.composite import CompositeMechanism
from optdp.problem.constraints import Unbiased
from optdp.problem.domains import Interval
from optdp.problem.families import AffineWindow
from optdp.problem.objectives import At, WorstCase
from optdp.problem.privacy import LDP
from optdp.problem.problem import Problem
from optdp.problem.shapes import Shape
from optdp.solution import Solution
from optdp.solvers.lp import LinearProgram, LinearResult, LinearSolver, SolverFailure, stacked

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel

METHODS = ("auto", "scip", "lp")


def solve_ptt(
    eps: Number | str, kind: str = "I", *, objective: str | float = "worst", backend: str = "auto",
    time_limit: float = 60.0, cells: int = 160, progress: ProgressLike = None,
) -> Solution:  # fmt: skip
    """The best unbiased piecewise transformation of a number in [-1, 1] under eps-LDP, with a proof that none is better.

    **Arguments:**

    - `eps`: privacy parameter in (0, 30]: a float, or exactly a Fraction, a decimal string or `optdp.log(3)`.
    - `kind`: "I": a rectangular window; "II": a triangular one; "free": any density between a common floor and e^eps
      times it, on any output range, however it depends on the input.
    - `objective`: "worst" for the largest variance over all inputs, or an input x in [-1, 1] for the variance there.
    - `backend`: "auto": the stationary point in one variable, exact up to rounding; "scip": the plain program in (k, a, f) by
      spatial branch and bound; "lp" (kind "free"): densities on a grid of outputs, a linear program for each range.
      The window found by a backend makes the mechanism; the certificate is the same for all.
    - `time_limit`: seconds, for "scip"; `cells`: outputs on the grid, for "lp"; `progress`: as in `optdp.solve`.

    **Returns** a `Solution`: `value` the variance that `mechanism` attains, `lower_bound` what no mechanism of the kind beats.

    **Raises** TypeError or ValueError naming the argument.

    **Source:** Ma, Zhu and Wang, "OPTT: Optimal piecewise transformation technique"
    (arXiv 2112.04745, 2021), Sections 3.3.1 and 3.3.2, with the mass constraint that Theorems 4 and 9 leave out.

        >>> import optdp
        >>> solution = optdp.solve_ptt(1.0)
        >>> round(solution.value, 6), round(solution.mechanism.eta, 6)
        (5.065681, 2.288757)
    """
    eps = require.exact_epsilon(eps)
    require.choice("backend", backend, METHODS)
    if isinstance(objective, str):
        require.choice("objective", objective, ("worst",), "an input in [-1, 1]")
        goal: WorstCase | At = WorstCase("squared")
    else:
        goal = At("squared", require.real("objective", objective, low=-1.0, high=1.0))
    problem = Problem(LDP(eps), Interval(-1.0, 1.0), goal, AffineWindow(kind), (Unbiased(),))  # type: ignore[arg-type]
    return solve(problem, 1e-9, time_limit, backend, cells=cells, progress=progress)


def ptt_mechanism(eps: Number, eta: float, kind: str = "I") -> CompositeMechanism:
    """The I- or II-PTT with a given eta = (k + a)/a > 1: exactly unbiased, exactly private, of mass 1."""
    eta = require.real("eta", eta, low=1.0, open_low=True)
    require.choice("kind", kind, ("I", "II"))
    return CompositeMechanism.private(eps, 1 / eta, (-1.0, 1.0), shape_of(kind))


def shape_of(kind: str) -> Shape:
    """The window's shape, by kind."""
    return AffineWindow(kind).activation  # type: ignore[arg-type]


def variance_at(eps: float, eta: ArrayLike, x: ArrayLike = 1.0, kind: str = "I") -> np.ndarray:
    """Var(x) of the PTT with ratio eta, elementwise, in floats: the objective as a function, for plots and tests."""
    shape = shape_of(kind)
    s, v, w = math.expm1(eps) * float(shape.level()), float(shape.spread()), 1 / np.asarray(eta, dtype=float)
    return np.square(x) / (s * w) + (1 + s * w) * (1 / 3 + s * v * w**3) / np.square(s * w * (1 - w))


def build_model(eps: float, kind: str = "I", x: float | None = None, half: float = 1.0) -> ConcreteModel:
    """The plain program as a Pyomo `ConcreteModel` in (k, a, f), and for one input the middle r of the range.

    **Arguments:** `x`: the input in [0, 1] whose variance is minimised, None for the worst case; `half`: half the domain's width.

    Lengths are in units of `unit`, the order of magnitude of k, so that a spatial solver sees numbers near 1 at every eps: the
    slope of the window's middle is unit k, its half-width unit a, the floor f/unit and the variance unit^2 value.
    """
    import pyomo.environ as pyo

    shape = shape_of(kind)
    fill, spread = float(shape.level()), float(shape.spread())
    growth = math.expm1(eps)
    unit = 1 + 2 / (growth * fill)
    model = pyo.ConcreteModel(name=f"{kind}-PTT, eps={eps:g}")
    model.unit = pyo.Param(initialize=unit)
    model.k = pyo.Var(bounds=(1 / unit, 10), initialize=1.0)
    model.a = pyo.Var(bounds=(1e-5, 10), initialize=0.5)
    model.f = pyo.Var(bounds=(0, 10), initialize=0.25)
    model.window = pyo.Var(bounds=(0, unit), initialize=0.5)  # unit times the mass of the window
    model.reach = pyo.Var(bounds=(1 / unit, 20), initialize=2.0)
    model.value = pyo.Var(bounds=(0, 20), initialize=2.0)
    model.mass_of_window = pyo.Constraint(expr=model.window == 2 * fill * growth * unit * model.a * model.f)
    model.mass = pyo.Constraint(expr=2 * model.f * model.reach + model.window / unit == 1)
    model.unbiased = pyo.Constraint(expr=model.window * model.k == 1)
    second = 2 * model.f * model.reach**3 / 3 + model.window / unit * model.a**2 * spread
    if x:
        model.r = pyo.Var(bounds=(0, x), initialize=0.0)
        model.range = pyo.Constraint(expr=model.reach == model.k * (1 + model.r) + model.a)
        away: Any = (x - model.r) ** 2
    else:
        model.range = pyo.Constraint(expr=model.reach == model.k + model.a)
        away = 1.0 if x is None else 0.0
    model.variance = pyo.Constraint(expr=model.value >= second + (unit * model.k - 1) * away / unit**2)
    model.objective = pyo.Objective(expr=half**2 * unit**2 * model.value, sense=pyo.minimize)
    return model


def linear_program(eps: float, x: float, cells: int, reach: float, r: float) -> LinearProgram:
    """Kind "free" for the range [r - reach, r + reach], on [-1, 1]: the second moment at the input `x`, all linear.

    Variables are the masses of `cells` equal cells at x and at both ends of the domain, where a mean of +-1 must be
    attainable, and the common floor. Blocks: "moments" (mass and mean of each), "floor", "ceiling".
    """
    from scipy.sparse import csr_matrix, eye, hstack, kron, vstack

    inputs = [1.0, -1.0] if x == 1.0 else [x, 1.0, -1.0]
    y, n = r + reach * (2 * np.arange(cells) + 1 - cells) / cells, len(inputs)
    size = n * cells
    moments = hstack([kron(eye(n), np.stack([np.ones(cells), y])), csr_matrix((2 * n, 1))])
    above = hstack([eye(size), csr_matrix(np.full((size, 1), -1.0))])
    below = hstack([eye(size), csr_matrix(np.full((size, 1), -math.exp(eps)))])
    target = np.stack([np.ones(n), np.asarray(inputs)], axis=1).reshape(-1)
    return LinearProgram(
        np.concatenate([y**2 + (reach / cells) ** 2 / 3, np.zeros(size - cells + 1)]), vstack([moments, above, below]),
        np.concatenate([target, np.zeros(size), np.full(size, -np.inf)]),
        np.concatenate([target, np.full(size, np.inf), np.zeros(size)]), name="free window",
        blocks=stacked([("moments", 2 * n), ("floor", size), ("ceiling", size)]),
        variables=stacked([("masses", size), ("floor", 1)]),
    )  # fmt: skip


def by_linear_programs(
    eps: float, x: float | None, cells: int, solver: LinearSolver | None
) -> tuple[float, float, float, str, tuple[Any, ...]]:
    """(w, r, variance on [-1, 1], message, arguments of the best `linear_program`): the range by golden-section search."""
    from scipy.optimize import minimize_scalar

    point = 1.0 if x is None else x

    def best(reach: float, r: float) -> LinearResult:
        return linear_program(eps, point, cells, reach, r).solve(solver)

    def value(reach: float, r: float) -> float:
        found = best(reach, r)
        return found.objective - point**2 if found.usable else math.inf

    top = 1 + 8 / math.expm1(eps) + 8
    shifts = [0.0] if x is None else np.linspace(0, point, 4).tolist()
    tried = []
    for r in shifts:
        grid = np.geomspace(1.001 * (1 + r), top * (1 + r), 14)
        j = int(np.argmin([value(b, r) for b in grid]))
        bracket = (grid[max(j - 1, 0)], grid[min(j + 1, grid.size - 1)])
        found = minimize_scalar(
            lambda b, r=r: min(value(b, r), 1e300), bounds=bracket, method="bounded", options={"xatol": 1e-3}
        )
        tried.append((float(found.fun), float(found.x), float(r)))
    least, reach, r = min(tried)
    result = best(reach, r)
    if not result.usable:
        raise SolverFailure(f"no range has a usable linear program: {result.message}", result.status)
    floor = float(result.value("floor")[0]) * cells
    width = (1 / floor - 1) / math.expm1(eps) if floor > 0 else 1.0
    if not 0 < width < 1:
        raise SolverFailure(
            f"the linear program for the range {reach:.6g} has no window: its floor has the mass {floor:.6g}"
        )
    told = f"{len(shifts)} shifts, {cells} cells; floor mass {floor:.6g}, range of half-length {reach:.6g}"
    return width, r, least, told, (eps, point, cells, reach, r)

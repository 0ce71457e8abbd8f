"""The best piecewise transformation of a number in [-1, 1] (OPTT).

**The program.** The input x in [-1, 1] gets the density p (1 - (1 - 1/E) (1 - h((y - kx)/a))) on [kx - a, kx + a] and the
floor p/E on the rest of [-(k + a), k + a], with E = e^eps and h a bump of peak 1: h = 1 for I-PTT, a triangle for II-PTT. With
f = p/E and the bump's fill c = (1/2) int h and spread v,

    min_{k, a, f}  max_x  2 f (k + a)^3/3 + 2 a c (E - 1) f (k^2 x^2 + a^2 v) - x^2
    2 f (k + a) + 2 a c (E - 1) f = 1        (mass 1, which the paper's optimisation leaves out)
    2 a c (E - 1) f k = 1                    (unbiased)

**One dimension is left** (`optdp.certificates.affine_window`): with w = a/(k + a) = 1/eta and s = (E - 1) c,

    Var(x) = x^2/(s w) + (1 + s w)(1/3 + s v w^3)/(s^2 w^2 (1 - w)^2).

**"free"** lets the density be anything between a common floor and E times it, on any output range. The rectangle is then
the best bump (bathtub, which is the paper's Conjecture 1 for every eps); what is gained at a given input is a range that is not
centred. Its plain formulation is a linear program for each range (backend "lp").
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from optdp.certificates.affine_window import BumpClass, optimum
from optdp.design.affine_window import conclude
from optdp.exact import require
from optdp.mechanisms.composite import CompositeMechanism
from optdp.problem.domains import Interval
from optdp.problem.objectives import Variance
from optdp.problem.shapes import ACTIVATIONS, Rectangle
from optdp.solution import Program, Solution

KINDS = ("I", "II", "free")
BACKENDS = ("auto", "scip", "lp")

#: The bump of each kind.
BUMPS = {"I": ACTIVATIONS["A1"], "II": ACTIVATIONS["A3"], "free": ACTIVATIONS["A1"]}


def solve_ptt(
    eps: float,
    kind: str = "I",
    *,
    objective: Any = "worst",
    backend: str = "auto",
    time_limit: float = 60.0,
    cells: int = 160,
) -> Solution:
    """The best unbiased piecewise transformation of a number in [-1, 1] under eps-LDP, with a proof that none is better.

    **Arguments:**

    - `eps`: privacy parameter in (0, 30].
    - `kind`: "I": a rectangular window; "II": a triangular one; "free": any density between a common floor and e^eps
      times it, on any output range, however it depends on the input.
    - `objective`: "worst" for the largest variance over all inputs, or an input x in [-1, 1] for the variance there.
    - `backend`: "auto": the stationary point in one variable, exact up to rounding; "scip": the plain program in (k, a, f) by
      spatial branch and bound; "lp" (kind "free"): densities on a grid of outputs, a linear program for each range.
      The window found by a backend makes the mechanism; the certificate is the same for all.
    - `time_limit`: seconds, for "scip"; `cells`: outputs on the grid, for "lp".

    **Returns** a `Solution`: `value` the variance that `mechanism` attains, `lower_bound` what no mechanism of the kind beats.

    **Raises** TypeError or ValueError naming the argument.

    **Source:** OPTT, Sections 3.3.1 and 3.3.2, with the mass constraint that Theorems 4 and 9 leave out.
    """
    eps = require.epsilon(eps)
    require.choice("kind", kind, KINDS)
    loss = _objective(objective)
    require.choice("backend", backend, BACKENDS)
    if backend == "lp" and kind != "free":
        raise ValueError(
            f"backend = 'lp' is not allowed for kind = {kind!r}: only kind 'free' is linear in the density"
        )
    began = time.perf_counter()
    problem = BumpClass(eps, BUMPS[kind], Rectangle(), Interval(-1.0, 1.0), loss, free=kind == "free")
    found: tuple[float | None, float | None, str] = (None, None, "")
    if backend == "auto":
        width, shift, _ = optimum(problem)
        solver = "structured (stationary polynomial, one dimension)"
    elif backend == "scip":
        from optdp.solvers.scip import run

        model = build_model(eps, kind, objective)
        result = run(model, require.real("time_limit", time_limit, low=0.0, open_low=True))
        width, shift = model.a.value / (model.k.value + model.a.value), 0.0
        if problem.shifts:
            sign = 1.0 if loss.at is None or loss.at >= 0 else -1.0
            shift = sign * model.r.value
        solver, found = "SCIP through Pyomo", (result.objective, result.bound, result.message)
    else:
        width, shift, value, message = _by_linear_programs(eps, loss, require.integer("cells", cells, low=20))
        solver, found = "HiGHS, one linear program for each range", (value, None, message)
    if loss.at is not None and loss.at < 0:
        shift = -shift
    mechanism = CompositeMechanism.private(eps, width, (-1.0, 1.0), BUMPS[kind], shift=shift)
    program = Program(
        name=f"{kind}-PTT on [-1, 1], {loss}, eps = {eps:g}" if kind != "free"
        else f"free bump on [-1, 1], {loss}, eps = {eps:g}",
        variables="k (slope of the window's middle), a (half-width), f (floor)"
        + (", r (middle of the range)" if kind == "free" else ""),
        constraints="mass 1, unbiased, peak <= e^eps times the floor",
        solver=solver,
        seconds=time.perf_counter() - began,
        objective=found[0],
        bound=found[1],
        message=found[2],
        build=lambda: build_model(eps, kind, objective),
    )  # fmt: skip
    spec = {
        "problem": "ptt",
        "eps": eps,
        "kind": kind,
        "objective": "worst" if loss.at is None else loss.at,
        "backend": backend,
    }
    return conclude(problem, mechanism, program, spec)


def _objective(objective: Any) -> Variance:
    if isinstance(objective, str):
        require.choice("objective", objective, ("worst",))
        return Variance()
    return Variance(require.real("objective", objective, low=-1.0, high=1.0))


def ptt_mechanism(eps: float, eta: float, kind: str = "I") -> CompositeMechanism:
    """The I- or II-PTT with a given eta = (k + a)/a > 1: exactly unbiased, exactly private, of mass 1."""
    eta = require.real("eta", eta, low=1.0, open_low=True)
    return CompositeMechanism.private(eps, 1 / eta, (-1.0, 1.0), BUMPS[require.choice("kind", kind, ("I", "II"))])


def variance_at(eps: float, eta: Any, x: Any = 1.0, kind: str = "I") -> np.ndarray:
    """Var(x) of the PTT with ratio eta, elementwise, in floats: the objective as a function, for plots and tests."""
    shape = BUMPS[require.choice("kind", kind, KINDS)]
    s, v, w = math.expm1(eps) * float(shape.level()), float(shape.spread()), 1 / np.asarray(eta, dtype=float)
    return np.square(x) / (s * w) + (1 + s * w) * (1 / 3 + s * v * w**3) / np.square(s * w * (1 - w))


def build_model(eps: float, kind: str = "I", objective: Any = "worst") -> Any:
    """The plain program as a Pyomo `ConcreteModel` in (k, a, f), and for kind "free" the middle r of the range.

    Lengths are in units of `unit`, the order of magnitude of k, so that a spatial solver sees numbers near 1 at every eps: the
    slope of the window's middle is unit k, its half-width unit a, the floor f/unit and the variance unit^2 value.
    """
    import pyomo.environ as pyo

    loss, shape = _objective(objective), BUMPS[require.choice("kind", kind, KINDS)]
    fill, spread = float(shape.level()), float(shape.spread())
    growth = math.expm1(require.epsilon(eps))
    x = 1.0 if loss.at is None else abs(loss.at)
    unit = 1 + 2 / (growth * fill)
    model = pyo.ConcreteModel(name=f"{kind}-PTT, eps={eps:g}")
    model.unit = pyo.Param(initialize=unit)
    model.k = pyo.Var(bounds=(1 / unit, 10), initialize=1.0)
    model.a = pyo.Var(bounds=(1e-5, 10), initialize=0.5)
    model.f = pyo.Var(bounds=(0, 10), initialize=0.25)
    model.bump = pyo.Var(bounds=(0, unit), initialize=0.5)  # unit times the mass of the bump
    model.reach = pyo.Var(bounds=(1 / unit, 20), initialize=2.0)
    model.value = pyo.Var(bounds=(0, 20), initialize=2.0)
    model.mass_of_bump = pyo.Constraint(expr=model.bump == 2 * fill * growth * unit * model.a * model.f)
    model.mass = pyo.Constraint(expr=2 * model.f * model.reach + model.bump / unit == 1)
    model.unbiased = pyo.Constraint(expr=model.bump * model.k == 1)
    second = 2 * model.f * model.reach**3 / 3 + model.bump / unit * model.a**2 * spread
    if kind == "free" and loss.at is not None:
        model.r = pyo.Var(bounds=(0, x), initialize=0.0)
        model.range = pyo.Constraint(expr=model.reach == model.k * (1 + model.r) + model.a)
        away: Any = (x - model.r) ** 2
    else:
        model.range = pyo.Constraint(expr=model.reach == model.k + model.a)
        away = x**2
    model.variance = pyo.Constraint(expr=model.value >= second + (unit * model.k - 1) * away / unit**2)
    model.objective = pyo.Objective(expr=unit**2 * model.value, sense=pyo.minimize)
    return model


def _by_linear_programs(eps: float, loss: Variance, cells: int) -> tuple[float, float, float, str]:
    """(w, r, value, message): densities on a grid, the floor a variable, all linear; range by golden-section search.

    For a range [r - B, r + B] the variables are the density at the objective's input and at both ends of the domain, where a
    mean of +-1 must be attainable, over `cells` equal cells, and the common floor.
    """
    from scipy.optimize import linprog, minimize_scalar
    from scipy.sparse import block_diag, csr_matrix, eye, hstack, vstack

    ratio, x = math.exp(eps), 1.0 if loss.at is None else abs(loss.at)
    inputs = [1.0, -1.0] if x == 1.0 else [x, 1.0, -1.0]
    cell = np.arange(cells)
    unit = (2 * cell + 1 - cells) / cells

    def best(reach: float, r: float) -> Any:
        y, n = r + reach * unit, len(inputs)
        second = y**2 + (reach / cells) ** 2 / 3
        rows = csr_matrix(np.stack([np.ones(cells), y]))
        equal = hstack([block_diag([rows] * n), csr_matrix((2 * n, 1))])
        low = hstack([-eye(n * cells), csr_matrix(np.ones((n * cells, 1)))])
        high = hstack([eye(n * cells), csr_matrix(np.full((n * cells, 1), -ratio))])
        cost = np.concatenate([second, np.zeros((n - 1) * cells + 1)])
        target = np.stack([np.ones(n), np.asarray(inputs)], axis=1).reshape(-1)
        return linprog(cost, A_ub=vstack([low, high]).tocsr(), b_ub=np.zeros(2 * n * cells), A_eq=equal.tocsr(),
                       b_eq=target, bounds=(0, None), method="highs")  # fmt: skip

    def value(reach: float, r: float) -> float:
        found = best(reach, r)
        return found.fun - x**2 if found.status == 0 else math.inf

    top = 1 + 8 / math.expm1(eps) + 8
    shifts = [0.0] if loss.at is None else np.linspace(0, x, 4)
    tried = []
    for r in shifts:
        grid = np.geomspace(1.001 * (1 + r), top * (1 + r), 14)
        values = [value(b, r) for b in grid]
        j = int(np.argmin(values))
        bracket = (grid[max(j - 1, 0)], grid[min(j + 1, grid.size - 1)])
        found = minimize_scalar(
            lambda b, r=r: min(value(b, r), 1e300), bounds=bracket, method="bounded", options={"xatol": 1e-3}
        )
        tried.append((float(found.fun), float(found.x), float(r)))
    least, reach, r = min(tried)
    floor = float(best(reach, r).x[-1])
    odds = 1 / (floor * cells) - 1  # the floor is a mass for each cell
    width = odds / math.expm1(eps)
    told = f"{len(shifts)} shifts, {cells} cells; floor mass {floor * cells:.6g}, range of half-length {reach:.6g}"
    return width, r, least, told

"""The best composite of an activation and a base (bounded and unbiased composite DP).

**The program.** A query in an interval as long as its sensitivity Delta is mapped to C_p in [-C_max, C_max], gets the density
P = H + G on [-L, L], and the outcome is mapped back. H is an activation of height k and width m, G a base of height y, and with
area(H) = k m c and area(G) = 2 L y l (c, l the mean heights of the two shapes, v, mu their spreads),

    min_{k, m, y}  (int P x^2 - C_p^2) / C^2,     C = 2 C_max / Delta,    C_max = area(H) (L - m/2)
    area(H) + area(G) = 1      (mass 1 gives L),       the activation's middle at C_p / area(H)      (unbiased),
    y + k <= 1,                y + k <= e^eps inf G    (<= e^eps y for B1; t = (y + k)/e^eps < y for B2).

**Scale-free form.** x -> c x maps (k, m, y) to (k/c, c m, y/c) and leaves the variance: y + k <= 1 never binds. With the window's
share w = m/(2 L) and s the largest odds of the activation per unit of w, two parameters (w, k/y) are left, k/y sits at its bound,
and the variance at an input x in [-1, 1] (C_p = x C_max) is Delta^2/4 times the function V(w) of
`optdp.closed_forms.affine_window`. A1B1 is I-PTT, A3B1 is II-PTT; B2 has the same infimum as B1 and does not attain it.

**The mapping.** gamma(q) = (q - l) C - L and back; outputs lie in [l, u], u = l + 2 L/C, and the queries that can be answered
in the middle of it: [l + (L - C_max)/C, l + (L + C_max)/C], as long as Delta. The mechanism holds the two ends; see `mapping`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.design.progress import ProgressLike
from optdp.design.registry import agreed, solve
from optdp.exact import require
from optdp.exact.numbers import Number
from optdp.mechanisms.composite import CompositeMechanism
from optdp.problem.constraints import Unbiased
from optdp.problem.domains import DomainLike, Interval, as_interval
from optdp.problem.families import Composite, Rule
from optdp.problem.objectives import At, Objective, WorstCase
from optdp.problem.privacy import LDP
from optdp.problem.problem import Problem
from optdp.problem.shapes import Quartic, Shape, ShapeLike, as_activation, as_base
from optdp.solution import Solution

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel

METHODS = ("auto", "grid", "target", "scip")

#: The steps of the paper's Algorithm 1, and how many points it may enumerate at once.
GRID_STEPS = (0.1, 0.01, 0.001)
MOST_POINTS = 10**8


@dataclass(frozen=True)
class Point:
    """A choice of (k, m, y), and what follows from it."""

    k: float
    m: float
    y: float
    variance: float

    def __str__(self) -> str:
        return f"k = {self.k:.6g}, m = {self.m:.6g}, y = {self.y:.6g}"


def solve_composite(
    eps: Number | str, activation: ShapeLike = "A1", base: ShapeLike = "B1", *, sensitivity: float = 1.0,
    lower: float = 0.0, objective: str = "center", inputs: DomainLike | None = None, rule: str = "uniform",
    activation_support: tuple[float, float] = (-1.0, 1.0), base_support: tuple[float, float] = (-1.0, 1.0),
    backend: str = "auto", target: float | None = None, step: float = 0.01, iterations: int = 100_000, seed: int = 0,
    time_limit: float = 60.0, progress: ProgressLike = None,
) -> Solution:  # fmt: skip
    """The best composite mechanism for a bounded query under eps-DP, with a proof that no choice of (k, m, y) is better.

    **Arguments:**

    - `eps`: privacy parameter in (0, 30]: a float, or exactly a Fraction, a decimal string or `optdp.log(3)`.
    - `activation`: "A1" (rectangle), "A2" (sine), "A3" (triangle), or a function on `activation_support`: symmetric about its
      middle, nonnegative, bounded, not 0 on an outer part. Its scale does not matter.
    - `base`: "B1" (constant), "B2" (quartic), or a function on `base_support`, symmetric, bounded, positive. A user's functions
      are kept as step functions on 2^12 steps; mechanism and certificate are exact for those.
    - `sensitivity`: length of the interval of queries. `lower`: the lowest output (the paper's l): the highest follows, and the
      queries that can be answered are in the middle. `inputs`: instead of both, the pair (lowest, highest) of the queries.
    - `objective`: "center": the variance for a query in the middle (the paper's C_p = 0); "worst": the largest one.
    - `rule`: "uniform" or "pointwise", as in `optdp.Composite`. They differ for bases that are not constant; the latter keeps
      K(y|x) <= e^eps K(y|x') for each output wherever the activation stands.
    - `backend`: "auto": one variable, exact up to rounding; "grid": the paper's Algorithm 1, grids of step 0.1, 0.01 and 0.001;
      "target": its Algorithm 2, a walk of size `step` from a random start (`seed`) until the variance is at most `target`, for
      at most `iterations`; "scip": the program in (k, m, y) by spatial branch and bound, for at most `time_limit` seconds.
      The bracket is certified in the same way.
    - `progress`: as in `optdp.solve`.

    **Returns** a `Solution`: `value` the variance that `mechanism` attains, `lower_bound` what no (k, m, y) beats.

    **Raises** TypeError or ValueError naming the argument; for a target below the certified minimum, ValueError.

    **Source:** composite DP, Sections 3.2 and 4.2.

        >>> import optdp
        >>> solution = optdp.solve_composite(1.0, "A2", lower=10.0)
        >>> round(solution.value, 6), round(solution.mechanism.support()[0], 6)
        (1.788558, 10.0)
    """
    eps = require.exact_epsilon(eps)
    family = Composite(as_activation(activation, activation_support), as_base(base, base_support), rule)  # type: ignore[arg-type]
    require.choice("objective", objective, ("center", "worst"))
    require.choice("backend", backend, METHODS)
    if target is not None and backend != "target":
        raise ValueError(f"target = {target!r} is not allowed with backend = {backend!r}: it is for backend = 'target'")
    if inputs is not None and (sensitivity != 1.0 or lower != 0.0):
        raise ValueError("sensitivity and lower are not allowed beside inputs, which is instead of both")
    if inputs is None:  # where queries lie follows from the range that is found: solve around 0, then move
        half = require.real("sensitivity", sensitivity, low=0.0, open_low=True) / 2
        start = require.real("lower", lower)
        area = Interval(-half, half)
    else:
        area = as_interval(inputs, "a query", "inputs")
    problem = Problem(LDP(eps), area, _objective(objective, area), family, (Unbiased(),))
    solution = solve(
        problem, 1e-9, time_limit, backend, target=target, step=step, iterations=iterations, seed=seed, progress=progress
    )  # fmt: skip
    if inputs is not None:
        return solution
    reach = solution.mechanism.support()[1] / half
    low = start + half * (reach - 1)
    low += (2 + reach) * math.ulp(abs(start) + 2 * half * reach)  # rounding must not let outputs slip below `lower`
    area = Interval(low, low + 2 * half)
    mechanism = replace(solution.mechanism, domain=area)
    problem = replace(problem, domain=area, objective=_objective(objective, area))
    value = mechanism.enclose(problem.objective)[1]
    proven = solution.certificate.value(area)  # type: ignore[attr-defined]  # its threshold knows no place and no scale
    return agreed(Solution(problem, value, proven, mechanism, solution.certificate, solution.program))


def _objective(objective: str, area: Interval) -> Objective:
    return WorstCase("squared") if objective == "worst" else At("squared", middle(area))


def middle(area: Interval) -> float:
    """The middle of an interval, as a float."""
    return area.lower / 2 + area.upper / 2


@dataclass(frozen=True)
class Mapping:
    """The mapping of a query's range to [-L, L] (composite DP, Definitions 3.2 and 3.4), its inverse and the output bounds."""

    lower: float
    upper: float
    half_range: float

    @property
    def scale(self) -> float:
        """C: how much longer the range [-L, L] is than the outputs [l, u]."""
        return 2 * self.half_range / (self.upper - self.lower)

    def forward(self, q: ArrayLike) -> np.ndarray:
        """gamma(q) = (q - l) C - L."""
        return (np.asarray(q, dtype=float) - self.lower) * self.scale - self.half_range

    def inverse(self, x: ArrayLike) -> np.ndarray:
        """(x + L)/C + l."""
        return (np.asarray(x, dtype=float) + self.half_range) / self.scale + self.lower


def mapping(mechanism: CompositeMechanism, half_range: float = 1.0) -> Mapping:
    """The mapping of a mechanism's outputs [l, u] to [-L, L], for any L = `half_range` > 0 (the scale is free)."""
    low, high = mechanism.support()
    return Mapping(low, high, require.real("half_range", half_range, low=0.0, open_low=True))


def parameters(mechanism: CompositeMechanism, top: float = 1.0) -> dict[str, float]:
    """(k, m, y, L, C_max) of a mechanism in the scale in which the largest density y + k is `top` (at most 1 in the paper)."""
    mass, w = mechanism.floor_mass, float(mechanism.exact_window)
    c, level = float(mechanism.activation.level()), float(mechanism.base.level())
    above, under = (1 - mass) / (2 * w * c), mass / (2 * level)  # k and y for L = 1
    half = (above + under) / require.real("top", top, low=0.0, open_low=True)
    return {"k": above / half, "m": 2 * w * half, "y": under / half, "L": half, "C_max": (1 - mass) * half * (1 - w)}


def from_parameters(
    eps: Number | str, k: float, m: float, y: float, activation: ShapeLike = "A1", base: ShapeLike = "B1", *,
    inputs: DomainLike, rule: Rule = "uniform",
) -> CompositeMechanism:  # fmt: skip
    """The mechanism with the paper's parameters (k, m, y), for queries in `inputs`; B2 gets its t = (y + k)/e^eps.

    **Raises** ValueError if (k, m, y) breaks a constraint: mass, range or privacy.
    """
    shape, under = as_activation(activation), as_base(base)
    k, m, y = (require.real(n, v, low=0.0, open_low=True) for n, v in (("k", k), ("m", m), ("y", y)))
    eps = require.exact_epsilon(eps)
    ratio = float(eps)
    standing = Quartic(Fraction(min((y + k) / math.exp(ratio) / y, 1.0))) if isinstance(under, str) else under
    if not math.isfinite(evaluate(ratio, k, m, y, shape, under, rule=rule)):
        reason = "it breaks mass 1, y + k <= 1, the likelihood ratio, or has no room for the activation"
        raise ValueError(f"(k, m, y) = ({k:g}, {m:g}, {y:g}) is not allowed at eps = {eps!r}: {reason}")
    area = k * m * float(shape.level())
    half = (1 - area) / (2 * y * float(standing.level()))
    return CompositeMechanism.private(eps, m / (2 * half), inputs, shape, standing, rule=rule, floor_mass=1 - area)


def evaluate(
    eps: float, k: ArrayLike, m: ArrayLike, y: ArrayLike, activation: Shape, base: Shape | str, *,
    objective: str = "center", rule: Rule = "uniform",
) -> np.ndarray:  # fmt: skip
    """The variance for sensitivity 1 at (k, m, y), elementwise with broadcasting; inf where a constraint is broken."""
    k, m, y = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (k, m, y)))
    ratio, c, v = math.exp(eps), float(activation.level()), float(activation.spread())
    slack = 1 + 1e-12
    with np.errstate(all="ignore"):
        valid = (k > 0) & (m > 0) & (y > 0) & (y + k <= slack)
        if isinstance(base, str):
            edge = (y + k) / (ratio * y)
            level, moment = 1 - (1 - edge) / 5, 1 / 3 - (1 - edge) / 7
            valid &= edge <= slack
        else:
            level, least = float(base.level()), float(base.least)
            moment = level * float(base.spread())
            held, factor = (y + k, ratio) if rule == "uniform" else (k, ratio - 1)
            valid &= held <= factor * least * y * slack
        area = k * m * c
        half = (1 - area) / (2 * y * level)
        valid &= (area < 1) & (half > m / 2)
        top = area * (half - m / 2)
        variance = area * m * m / 4 * v + 2 * y * half**3 * moment
        if objective == "worst":
            variance = variance + area * (half - m / 2) ** 2 - top**2
        return np.where(valid, variance / (2 * top) ** 2, np.inf)


def algorithm_1(
    eps: float, activation: ShapeLike = "A1", base: ShapeLike = "B1", *, objective: str = "center",
    rule: Rule = "uniform", steps: tuple[float, ...] = GRID_STEPS, widest: float = 2.0,
) -> tuple[Point, str]:  # fmt: skip
    """The paper's Algorithm 1: enumerate (k, m, y) on a grid, then again around the best point with the next smaller step.

    What the paper leaves open is filled in as in its authors' public program, which matters for digits (the optimum is
    flat): y is the outermost loop, m the innermost; the window of k is centred on the best point whenever the loop over k
    begins, that of m likewise; a window reaches one coarse step to either side; steps are added up in floating point.

    **Arguments:** `steps`: of the grids; `widest`: the largest m on the first one. A grid without a feasible point is passed
    over, and the next one is enumerated in full.

    **Returns** the best point, and how many points were tried.

    **Raises** ValueError if no grid that can be enumerated has a feasible point (a small epsilon needs k far below y).
    """
    shape, under = as_activation(activation), as_base(base)
    best: Point | None = None
    previous, tried = 0.0, 0

    def look(k: np.ndarray, m: np.ndarray, y: float) -> None:
        """Keep the first least variance over the grid k x m, if it is an improvement."""
        nonlocal best, tried
        values = evaluate(eps, k[:, None], m[None, :], y, shape, under, objective=objective, rule=rule)
        tried += values.size
        row, column = divmod(int(np.argmin(values)), m.size)
        if values[row, column] < (math.inf if best is None else best.variance):
            best = Point(float(k[row]), float(m[column]), float(y), float(values[row, column]))

    for step in steps:
        if best is None:
            shares = _counted(0.0, 1.0, step)
            widths = _counted(0.0, widest + step / 2, step)
            if shares.size**2 * widths.size > MOST_POINTS:
                break
            for y in shares:
                look(shares, widths, y)
        else:
            for y in _counted(best.y - previous, best.y + previous, step):
                for k in _counted(best.k - previous, best.k + previous, step):
                    look(np.array([k]), _counted(best.m - previous, best.m + previous, step), y)
        previous = step
    if best is None:
        reason = f"no grid of steps {steps} that can be enumerated has a feasible (k, m, y); use backend 'auto'"
        raise ValueError(f"eps = {eps!r} is not allowed with backend 'grid': {reason}")
    return best, f"{tried} points"


def _counted(start: float, end: float, step: float) -> np.ndarray:
    """What a loop passes that adds `step` to `start` while it is below `end`, rounding as it does; positive points only."""
    points = np.cumsum(np.concatenate([[start], np.full(math.ceil((end - start) / step) + 1, step)]))
    return points[(points < end) & (points > step / 2)]


def algorithm_2(
    eps: float, target: float, activation: ShapeLike = "A1", base: ShapeLike = "B1", *, objective: str = "center",
    rule: Rule = "uniform", step: float = 0.01, iterations: int = 100_000, seed: int = 0,
) -> tuple[Point, str, bool]:  # fmt: skip
    """The paper's Algorithm 2: from a random start, change one parameter by one step and keep what is better, until `target`.

    **Returns** the last point, how many changes were tried, and whether the target (for sensitivity 1) was met.
    """
    shape, under = as_activation(activation), as_base(base)
    rng = np.random.default_rng(seed)
    for _ in range(1000):
        y = rng.uniform(0.05, 1.0)
        k = rng.uniform(0, 1) * min(1 - y, math.expm1(eps) * y)
        m = rng.uniform(0, 1) * 2 / max(k, 1e-9)
        value = float(evaluate(eps, k, m, y, shape, under, objective=objective, rule=rule))
        if math.isfinite(value):
            break
    else:
        reason = "no feasible start was found in 1000 draws"
        raise ValueError(f"eps = {eps!r} is not allowed with backend 'target': {reason}")
    point, size, tried = np.array([k, m, y]), step, 0
    moves = np.concatenate([np.eye(3), -np.eye(3), np.array([[1, 0, 1], [-1, 0, -1]])])
    while value > target and tried < iterations:
        tried += len(moves)
        trial = point + size * moves * rng.random((len(moves), 1))
        values = evaluate(eps, trial[:, 0], trial[:, 1], trial[:, 2], shape, under, objective=objective, rule=rule)
        j = int(np.argmin(values))
        if values[j] < value:
            point, value = trial[j], float(values[j])
    return Point(float(point[0]), float(point[1]), float(point[2]), value), f"{tried} changes", value <= target


def build_model(
    eps: float, activation: ShapeLike = "A1", base: ShapeLike = "B1", x: float | None = 0.0, rule: Rule = "uniform",
    width: float = 1.0,
) -> ConcreteModel:  # fmt: skip
    """The nonlinear program in (k, m, y) as a Pyomo `ConcreteModel`, with the constraints of the paper's Appendix D.

    **Arguments:** `x`: the query in [0, 1], from the middle to the end of the interval, whose variance is minimised, None for the
    worst case; `width`: the sensitivity.

    L, C_max and the variance are variables tied by the mass, range and moment equations; the scale is fixed by y + k = 1,
    which is no restriction (the program is scale-free) and gives a spatial solver a bounded box. So that it sees numbers
    near 1 at every eps, `k`, `area` and `C_max` are the paper's times `unit`, and `variance` is the one for inputs in [-1, 1]
    over unit^2. For one query that is not in the middle, the range of outputs may be off centre, by r: then the further end
    of the interval is at C_max.
    """
    import pyomo.environ as pyo

    shape, under = as_activation(activation), as_base(base)
    c, v = float(shape.level()), float(shape.spread())
    growth = math.expm1(eps)
    unit = 1 + 2 / (growth * c)

    model = pyo.ConcreteModel(name=f"composite {shape} {under}, eps={eps:g}")
    model.unit = pyo.Param(initialize=unit)
    model.k = pyo.Var(bounds=(1e-6, unit), initialize=unit * growth / (1 + growth))
    model.y = pyo.Var(bounds=(0.5 / (1 + growth), 1), initialize=1 / (1 + growth))
    model.m = pyo.Var(bounds=(1e-3, 2 * (1 + growth)), initialize=0.5)
    model.L = pyo.Var(bounds=(1e-3, 2 * (1 + growth)), initialize=0.5)
    model.area = pyo.Var(bounds=(1e-4, unit), initialize=0.5)
    model.C_max = pyo.Var(bounds=(1e-4, 2 * unit * (1 + growth)), initialize=0.2)
    model.variance = pyo.Var(bounds=(0, 100), initialize=5.0)
    model.scale = pyo.Constraint(expr=model.y + model.k / unit == 1)
    model.area_of_activation = pyo.Constraint(expr=model.area == c * model.k * model.m)
    if isinstance(under, str):
        model.dip = pyo.Var(bounds=(0, unit), initialize=0.0)  # unit (y - t), t = (y + k)/e^eps
        model.privacy = pyo.Constraint(expr=model.k + (1 + growth) * model.dip == unit * growth * model.y)
        mass = 2 * model.L * (model.y - model.dip / unit / 5)
        second = 2 * model.L**3 * (model.y / 3 - model.dip / unit / 7)
    else:
        least, level = float(under.least), float(under.level())
        room = (1 + growth) * least - 1 if rule == "uniform" else growth * least
        model.privacy = pyo.Constraint(expr=model.k <= unit * room * model.y)
        mass = 2 * model.L * model.y * level
        second = mass * model.L**2 * float(under.spread())
    model.mass = pyo.Constraint(expr=model.area / unit + mass == 1)
    model.fits = pyo.Constraint(expr=model.m <= 2 * model.L)
    model.range = pyo.Constraint(expr=model.C_max == model.area * (model.L - model.m / 2))
    moment: Any = model.area / unit * model.m**2 / 4 * v + second
    if x is None or x > 0:
        away: Any = 1.0
        if x is not None:
            model.r = pyo.Var(bounds=(0, x), initialize=0.0)
            moment, away = moment * (1 + model.r) ** 2, (x - model.r) ** 2
        moment += away * (model.area / unit * (model.L - model.m / 2) ** 2 - (model.C_max / unit) ** 2)
    model.moments = pyo.Constraint(expr=model.variance * model.C_max**2 >= moment)
    model.objective = pyo.Objective(expr=model.variance * unit**2 * width**2 / 4, sense=pyo.minimize)
    return model

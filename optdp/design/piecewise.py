"""The optimal piecewise mechanism for one bounded number (OGPM).

**The program.** Every input x gets a density of m pieces, heights p_1..p_m (shared by all x) on consecutive intervals
with breakpoints that depend on x. Minimise over heights and breakpoints the worst-case expected loss,

    min_{p, l}  max_x  sum_i p_i int_{l_i(x)}^{l_{i+1}(x)} L(|y - x|) dy,   mass 1 for every x,   p_i <= e^eps p_j.

**The inner maximum sits at an end of the interval.** Fix the heights and put c = min p, E = e^eps. Whatever the
breakpoints, a density at the end a lies between c and E c, and the best such density (bathtub principle) is E c on a
window [a, a + w) and c elsewhere. The same floor and window length at an interior x, with the window around x, loses
no more: seen from x the outputs are at smaller distances, quantile by quantile, than seen from an end, and L is
nondecreasing. So the best worst case over all x equals the best value at an end, and the ends are the only inputs
that the model needs.

**One dimension is left.** With the window's share w of the domain as variable (then c = 1/(1 + (E - 1) w)), distances
uniform over [0, D] at the worst input and I(d) = int_0^d L,

    V(w) = (I(D) + (E - 1) I(w D)) / (D (1 + (E - 1) w))

is quasiconvex, and V'(w) = 0 iff L(w D) = V(w): at the optimum the loss at the window's edge is the optimal value.
For L = d^q and u = 1/w this is the trinomial u^(q+1) - (q + 1) u - q (E - 1) = 0 on u >= 1. The value is also the
threshold of the dual certificate (`optdp.certificates.bathtub`), valid for every m: more pieces never help.

**m = 2 is different on an interval.** Two heights in a fixed order leave no freedom: mass 1 fixes the breakpoint, the
density cannot depend on x, and the uniform one is best, of value I(D)/D. On a circle pieces are arcs, and two suffice.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from optdp.certificates.bathtub import certify
from optdp.certificates.constant import ConstantCertificate
from optdp.exact import require
from optdp.mechanisms.piecewise import CELLS, COINS, PiecewiseMechanism, Placement
from optdp.problem.domains import Circle, Interval, as_domain
from optdp.problem.losses import CustomLoss, Loss, Power, as_loss
from optdp.problem.privacy import LDP
from optdp.solution import Program, Solution, Status

BACKENDS = ("auto", "scip", "slsqp", "gurobi", "ipopt")

#: The gap at which a solution counts as optimal.
RTOL = 1e-9


def solve_piecewise(
    eps: float,
    m: int = 3,
    loss: Any = "abs",
    *,
    domain: Any = (0.0, 1.0),
    backend: str = "auto",
    placement: Placement = "centred",
    time_limit: float = 60.0,
    starts: int = 20,
    seed: int = 0,
) -> Solution:
    """The best m-piece mechanism under eps-LDP for a number in `domain`, with a proof that none is better.

    **Arguments:**

    - `eps`: privacy parameter in (0, 30].
    - `m`: number of pieces, a whole number >= 2 (arcs, on a circle).
    - `loss`: "abs" ("l1"), "squared" ("l2"), `optdp.Power(q)`, or a nondecreasing function of the distance
      (`optdp.CustomLoss` declares it convex or concave, for a tighter bracket).
    - `domain`: a pair (lower, upper), an `optdp.Interval` or an `optdp.Circle(period)`. Inputs and outputs live here.
    - `backend`: "auto": the structured solution, microseconds, exact up to rounding; "scip": the plain nonlinear program
      by spatial branch and bound; "slsqp": the same by local search from many starts; "gurobi", "ipopt": the same, where
      installed. A backend's heights give the floor, the mechanism is the best one with that floor, and the bracket is
      certified in the same way.
    - `placement`: of the window at inputs inside an interval, where the worst case leaves a choice: "centred" keeps every
      answer as close as it can be; "linear" (as in PM) has the same optimum and worst case, and a mean E[Y|x] that is
      affine in x, so that averages can be estimated without bias.
    - `time_limit`: seconds for "scip", "gurobi" and "ipopt"; `starts`, `seed`: for "slsqp".

    **Returns** a `Solution`: `value` the worst-case expected loss that `mechanism` attains at any input of the domain,
    `lower_bound` what no mechanism with m or any other number of pieces can beat (for m = 2: with two pieces).

    **Raises** TypeError or ValueError naming the argument; RuntimeError if a backend is not installed.

    **Source:** OGPM, generalised piecewise mechanism, with its hypothesis for m >= 4 proven.
    """
    privacy = LDP(eps)
    m = require.integer("m", m, low=2)
    area = as_domain(domain)
    law = as_loss(loss, area.exact_reach)
    require.choice("backend", backend, BACKENDS)
    began = time.perf_counter()
    objective: float | None = None
    bound: float | None = None
    solver, message, status = "structured (bathtub, one dimension)", "", Status.OPTIMAL
    if backend == "auto":
        width = 1.0 if _is_constant(m, area) else optimal_window(privacy.eps, law, float(area.exact_reach))
    else:
        from optdp.solvers import nonlinear

        _need_algebraic(law, backend)
        found = nonlinear.solve(
            privacy.eps, m, law, area, backend,
            time_limit=require.real("time_limit", time_limit, low=0.0, open_low=True),
            starts=require.integer("starts", starts, low=1),
            seed=require.integer("seed", seed, low=0),
        )  # fmt: skip
        solver, message, objective, bound = found.solver, found.message, found.objective, found.bound
        width = _window_of_floor(found.floor * area.width, privacy.eps)
        if _is_constant(m, area):
            width = 1.0
        if found.timed_out:
            status = Status.TIME_LIMIT

    if _is_constant(m, area):
        mechanism = PiecewiseMechanism(area, CELLS, COINS, placement)
        certificate: Any = ConstantCertificate.of(privacy.eps, law, area.exact_reach)
    else:
        mechanism = PiecewiseMechanism.private(privacy.eps, width, area, placement)
        estimate = optimal_value(privacy.eps, law, float(area.exact_reach))
        certificate = certify(law, privacy.eps, area.exact_reach, estimate)
    value = mechanism.enclose_value(law)[1]
    lower = min(certificate.bound, value)
    if status is Status.OPTIMAL and value - lower > RTOL * value:
        status = Status.GAP
    program = Program(
        name=f"{m}-piece mechanism on {area}, loss {law}, eps = {privacy.eps:g}",
        variables=f"{m} heights, {m - 1} breakpoints for each of 2 inputs" if isinstance(area, Interval)
        else f"{m} heights, {m} breakpoints",
        constraints=f"{m * (m - 1)} likelihood ratios, mass 1 and worst-case loss for each input, breakpoints in order",
        solver=solver,
        seconds=time.perf_counter() - began,
        objective=objective,
        bound=bound,
        message=message,
        build=lambda: build_model(privacy.eps, m, law, area),
    )  # fmt: skip
    spec = {
        "problem": "piecewise",
        "eps": privacy.eps,
        "m": m,
        "loss": law.name,
        "domain": area.to_dict(),
        "backend": backend,
        "placement": placement,
    }
    return Solution(
        value, lower, mechanism, certificate, program, privacy, law, status, spec, _closed_form(m, law, area)
    )


def _is_constant(m: int, domain: Interval | Circle) -> bool:
    """Whether the pieces are too few for the density to depend on the input."""
    return m == 2 and isinstance(domain, Interval)


def optimal_window(eps: float, loss: Loss, reach: float) -> float:
    """The window's share of the domain in the optimal mechanism, in (0, 1]: the root of L(w reach) = V(w)."""
    growth = math.expm1(eps)
    if isinstance(loss, Power):
        return 1 / _trinomial_root(loss.exponent, growth)
    total = float(loss.integral(reach))

    def slope(w: float) -> float:
        """Sign of V'(w): L(w D) - V(w) up to a positive factor, nondecreasing in w."""
        edge = w * reach
        return float(loss(edge)) * reach * (1 + growth * w) - growth * float(loss.integral(edge)) - total

    low, high = 0.0, 1.0
    while high - low > 2.0**-53 * high and low < (middle := (low + high) / 2) < high:
        low, high = (low, middle) if slope(middle) > 0 else (middle, high)
    return high


def _trinomial_root(q: float, growth: float) -> float:
    """The root u >= 1 of u^(q+1) - (q + 1) u - q growth: Newton from above, where it converges monotonically."""
    # At u = 1 the polynomial is -q (1 + growth) < 0, beyond it convex; at the start both terms are dominated.
    u = max((2 * (q + 1)) ** (1 / q), (2 * q * growth) ** (1 / (q + 1)), 1.0)
    for _ in range(100):
        power = u**q
        step = (u * power - (q + 1) * u - q * growth) / ((q + 1) * (power - 1))
        if step <= 1e-16 * u:
            break
        u -= step
    return max(u, 1.0)


def optimal_value(eps: float, loss: Loss, reach: float) -> float:
    """The optimum to machine precision (an estimate: `certify` turns it into a bound)."""
    width = optimal_window(eps, loss, reach)
    if isinstance(loss, Power):
        return float(loss(width * reach))
    growth = math.expm1(eps)
    near = float(loss.integral(width * reach))
    return (float(loss.integral(reach)) + growth * near) / (reach * (1 + growth * width))


def _window_of_floor(floor: float, eps: float) -> float:
    """The window's share that fills up to mass 1 above a floor of the given mass: the inverse of c = 1/(1 + (E - 1) w)."""
    growth = math.expm1(eps)
    mass = min(max(floor, 1 / (1 + growth)), 1.0)
    return min(max((1 - mass) / (mass * growth), 2.0**-50), 1.0)


def _need_algebraic(loss: Loss, backend: str) -> None:
    if isinstance(loss, CustomLoss) and backend != "slsqp":
        raise ValueError(
            f"backend = {backend!r} is not allowed for the loss {loss.name!r}: a Python function has no algebraic form; "
            "use 'auto' or 'slsqp'"
        )


def _closed_form(m: int, loss: Loss, domain: Interval | Circle) -> Callable[[], Any] | None:
    if not isinstance(loss, Power) or loss.exponent not in (1.0, 2.0):
        return None

    def expression() -> Any:
        from optdp.closed_forms import piecewise as forms

        if _is_constant(m, domain):
            return forms.uniform_value(int(loss.exponent), domain.exact_reach)
        return forms.optimal_value(int(loss.exponent), domain.exact_reach)

    return expression


def build_model(eps: float, m: int, loss: Any = "abs", domain: Any = (0.0, 1.0)) -> Any:
    """The nonlinear program as a Pyomo `ConcreteModel`, on a domain of width 1 (period 1, on a circle).

    Heights `p[i]` times the width and losses over width^q are those of the given domain. On an interval, breakpoints
    `l[x, 0..m]` for the inputs x = 0 and x = 1; on a circle, by rotation, for the single input 0 on [-1/2, 1/2], where
    the first and the last piece are two halves of one arc. `value` is the worst-case loss.

    **Raises** ValueError for a user's own loss, which has no algebraic form.
    """
    import pyomo.environ as pyo

    area = as_domain(domain)
    law = as_loss(loss, area.exact_reach)
    if isinstance(law, CustomLoss):
        raise ValueError(f"loss = {law.name!r} is not allowed here: a Python function has no algebraic form in a model")
    q = int(law.exponent) if law.exponent == int(law.exponent) else law.exponent
    ratio = math.exp(eps)
    circle = isinstance(area, Circle)
    pieces = m + 1 if circle else m
    height = (lambda i: (i - 1) % m + 1) if circle else (lambda i: i)

    model = pyo.ConcreteModel(name=f"piecewise, m={m}, eps={eps:g}")
    model.inputs = pyo.Set(initialize=[0] if circle else [0, 1])
    model.pieces = pyo.RangeSet(pieces)
    model.p = pyo.Var(pyo.RangeSet(m), bounds=(1 / ratio, ratio), initialize=1.0)
    left, right = (-0.5, 0.5) if circle else (0.0, 1.0)

    def spread(_: Any, x: int, i: int) -> float:
        return left + (right - left) * i / pieces

    model.l = pyo.Var(model.inputs, pyo.RangeSet(0, pieces), bounds=(left, right), initialize=spread)
    uniform = float(law.integral(0.5)) * 2 if circle else float(law.integral(1.0))
    model.value = pyo.Var(bounds=(0, uniform), initialize=uniform)
    for x in model.inputs:
        model.l[x, 0].fix(left)
        model.l[x, pieces].fix(right)
    model.order = pyo.Constraint(model.inputs, model.pieces, rule=lambda b, x, i: b.l[x, i - 1] <= b.l[x, i])
    model.privacy = pyo.Constraint(
        pyo.RangeSet(m), pyo.RangeSet(m),
        rule=lambda b, i, j: b.p[i] <= ratio * b.p[j] if i != j else pyo.Constraint.Skip,
    )  # fmt: skip
    model.mass = pyo.Constraint(
        model.inputs,
        rule=lambda b, x: sum(b.p[height(i)] * (b.l[x, i] - b.l[x, i - 1]) for i in b.pieces) == 1,
    )
    if circle:
        # int_0^l L(|y|) dy is odd in l; with l = right - left part, only one of them positive, it is polynomial.
        model.ahead = pyo.Var(model.inputs, pyo.RangeSet(0, pieces), bounds=(0, 0.5), initialize=0.0)
        model.behind = pyo.Var(model.inputs, pyo.RangeSet(0, pieces), bounds=(0, 0.5), initialize=0.0)
        index = [(0, i) for i in range(pieces + 1)]
        for k in index:
            model.ahead[k] = max(pyo.value(model.l[k]), 0.0)
            model.behind[k] = max(-pyo.value(model.l[k]), 0.0)
        model.split = pyo.Constraint(index, rule=lambda b, x, i: b.l[x, i] == b.ahead[x, i] - b.behind[x, i])
        model.one_sign = pyo.Constraint(index, rule=lambda b, x, i: b.ahead[x, i] * b.behind[x, i] == 0)

        def integral(b: Any, x: int, i: int) -> Any:
            return (b.ahead[x, i] ** (q + 1) - b.behind[x, i] ** (q + 1)) / (q + 1)
    else:

        def integral(b: Any, x: int, i: int) -> Any:
            return (b.l[x, i] ** (q + 1) if x == 0 else -((1 - b.l[x, i]) ** (q + 1))) / (q + 1)

    model.worst_case = pyo.Constraint(
        model.inputs,
        rule=lambda b, x: (
            b.value >= sum(b.p[height(i)] * (integral(b, x, i) - integral(b, x, i - 1)) for i in b.pieces)
        ),
    )
    model.objective = pyo.Objective(expr=model.value, sense=pyo.minimize)
    return model


def window_of_height(eps: float, height: float) -> float:
    """The window's share that a peak density `height` (times the width of the domain) leaves, as in the paper's p."""
    return _window_of_floor(height / math.exp(eps), eps)


def value_at_height(eps: float, height: Any, loss: Any = "abs") -> np.ndarray:
    """Worst-case loss on [0, 1] of the three-piece mechanism with peak `height` in [1, e^eps], elementwise."""
    law = as_loss(loss, 1.0)
    mass = np.asarray(height, dtype=float) / math.exp(eps)
    width = (1 - mass) / (mass * math.expm1(eps))
    return mass * law.integral(1.0) + mass * math.expm1(eps) * law.integral(width)

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
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.certificates.base import Certificate
from optdp.certificates.bathtub import certify
from optdp.certificates.constant import ConstantCertificate
from optdp.design import piecewise_plain
from optdp.design.piecewise_plain import build_model
from optdp.design.progress import ProgressLike
from optdp.design.registry import Run, register, solve
from optdp.exact import Number, require
from optdp.mechanisms.piecewise import CELLS, COINS, PiecewiseMechanism, Placement
from optdp.problem import LDP, AllMechanisms, Average, DistanceLoss, LossLike, Piecewise, Problem, WorstCase, as_loss
from optdp.problem.domains import Circle, DomainLike, Interval, as_domain
from optdp.solution import Solution
from optdp.solvers.lp import LinearProgram, stacked

METHODS = ("auto", "scip", "slsqp", "gurobi", "ipopt")


def solve_piecewise(
    eps: Number | str, m: int = 3, loss: LossLike = "abs", *, domain: DomainLike = (0.0, 1.0), backend: str = "auto",
    placement: Placement = "centred", rtol: float = 1e-9, time_limit: float = 60.0, starts: int = 20, seed: int = 0,
    progress: ProgressLike = None,
) -> Solution:  # fmt: skip
    """The best m-piece mechanism under eps-LDP for a number in `domain`, with a proof that none is better.

    **Arguments:**

    - `eps`: privacy parameter in (0, 30]: a float, or exactly a Fraction, a decimal string or `optdp.log(3)`.
    - `m`: number of pieces, an integer >= 2 (arcs, on a circle).
    - `loss`: "abs" ("l1"), "squared" ("l2"), `optdp.Power(q)`, `Huber`, `Threshold`, `Pieces`, or a nondecreasing function of
      the distance (`optdp.CustomLoss` declares it convex or concave, for a tighter bracket).
    - `domain`: a pair (lower, upper), an `optdp.Interval` or an `optdp.Circle(period)`. Inputs and outputs live here.
    - `backend`: "auto": the structured solution, microseconds, exact up to rounding; "scip": the plain nonlinear program
      by spatial branch and bound; "slsqp": the same by local search from many starts; "gurobi", "ipopt": the same, where
      installed. A backend's heights give the floor, the mechanism is the best one with that floor, and the bracket is
      certified in the same way.
    - `placement`: of the window at inputs inside an interval, where the worst case leaves a choice: "centred" keeps every
      answer as close as it can be; "linear" (as in PM) has the same optimum and worst case, and a mean E[Y|x] that is
      affine in x, so that averages can be estimated without bias.
    - `rtol`: the gap at which the status is OPTIMAL; `time_limit`: seconds for "scip", "gurobi" and "ipopt"; `starts`, `seed`:
      for "slsqp" and "ipopt"; `progress`: see `optdp.solve`.

    **Returns** a `Solution`: `value` the worst-case expected loss that `mechanism` attains at any input of the domain,
    `lower_bound` what no mechanism with m or any other number of pieces can beat (for m = 2: with two pieces).

    **Raises** TypeError or ValueError naming the argument; RuntimeError if a backend is not installed.

    **Source:** Zheng, Mishra and Hu, "Optimal piecewise-based mechanism for collecting bounded numerical data under local
    differential privacy" (PoPETs 2025), with its hypothesis for m >= 4 proven.

        >>> import optdp
        >>> optdp.solve_piecewise(1.0).value           # 1/(e^(1/2) + 1)
        0.3775406687981455
    """
    eps = require.exact_epsilon(eps)
    require.choice("backend", backend, METHODS)
    problem = Problem(LDP(eps), as_domain(domain), WorstCase(loss), Piecewise(m))
    return solve(
        problem, rtol, time_limit, backend, progress=progress, placement=placement, starts=starts, seed=seed
    )  # fmt: skip


def accepts(problem: Problem) -> str | None:
    """Piecewise families on intervals and circles; on a circle also all mechanisms, for which it is the optimum."""
    domain, objective, family = problem.domain, problem.objective, problem.family
    circle = isinstance(domain, Circle)
    if not isinstance(problem.privacy, LDP) or not 0 < float(problem.privacy.eps) <= require.MAX_EPS:
        return "privacy must be LDP with eps in (0, 30]"
    if not isinstance(domain, Interval | Circle):
        return "the domain must be an interval or a circle"
    if not (isinstance(family, Piecewise) or (circle and isinstance(family, AllMechanisms))):
        return "the family must be Piecewise(m) (on a circle also all mechanisms)"
    averaged = circle and isinstance(objective, Average) and objective.prior == "uniform"
    if not (isinstance(objective, WorstCase) or averaged):
        return "the objective must be a worst case (on a circle also the average under the uniform prior)"
    if objective.loss.form != "distance" or not objective.loss.monotone:
        return "the loss must be a nondecreasing function of the distance"
    return None if not problem.constraints else "there must be no constraints"


def design(run: Run, *, placement: Placement = "centred", starts: int = 20, seed: int = 0) -> Solution:
    """See `solve_piecewise`."""
    problem, method = run.problem, run.method
    area, law, eps = problem.domain, problem.objective.loss, float(problem.privacy.eps)  # type: ignore[attr-defined]
    m = problem.family.m if isinstance(problem.family, Piecewise) else 2
    constant = m == 2 and isinstance(area, Interval)  # too few pieces for the density to depend on the input
    told: dict[str, Any] = {"solver": "structured (bathtub, one dimension)"}
    if method == "auto":
        width = 1.0 if constant else optimal_window(eps, law, float(area.exact_reach))
    else:
        if law.exponent is None and method != "slsqp":
            reason = "only powers have an algebraic form there; use 'auto' or 'slsqp'"
            raise ValueError(f"backend = {method!r} is not allowed for the loss {law.name!r}: {reason}")
        run.progress(f"{method}: {m} pieces")
        floor, told = piecewise_plain.solve(
            eps, m, law, area, method, time_limit=run.time_limit,
            starts=require.integer("starts", starts, low=1), seed=require.integer("seed", seed, low=0),
        )  # fmt: skip
        width = 1.0 if constant else _window_of_floor(floor * area.width, eps)
    certificate: Certificate = ConstantCertificate()
    if constant:
        mechanism = PiecewiseMechanism(area, CELLS, COINS, placement)
    else:
        mechanism = PiecewiseMechanism.private(problem.privacy.eps, width, area, placement)  # type: ignore[attr-defined]
        certificate = certify(problem, optimal_value(eps, law, float(area.exact_reach)))
    algebraic = law.exponent is not None
    return run.solution(
        mechanism, certificate,
        f"{m} heights, " + (f"{m - 1} breakpoints for each of 2 inputs" if isinstance(area, Interval) else f"{m} breakpoints"),
        f"{m * (m - 1)} likelihood ratios, mass 1 and worst-case loss for each input, breakpoints in order",
        build=build_model if algebraic else build_grid,
        arguments=(eps, m, law, area) if algebraic else (eps, law, float(area.exact_reach)), **told,
    )  # fmt: skip


register(
    "piecewise",
    ("LDP", "Interval, Circle", "WorstCase(any loss nondecreasing in the distance); on a circle also Average(uniform)",
     "Piecewise(m); on a circle also AllMechanisms", ""),
    accepts, design, METHODS, solvers=False,
)  # fmt: skip


def optimal_window(eps: float, loss: DistanceLoss, reach: float) -> float:
    """The window's share of the domain in the optimal mechanism, in (0, 1]: the root of L(w reach) = V(w)."""
    growth = math.expm1(eps)
    if loss.exponent is not None:
        return 1 / _trinomial_root(loss.exponent, growth)
    mean = float(loss.integral(reach)) / reach

    def slope(w: float) -> float:
        """Sign of V'(w): L(w D) - V(w) up to a positive factor, nondecreasing in w; per reach, which may be 1e300."""
        edge = w * reach
        return float(loss(edge)) * (1 + growth * w) - growth * (float(loss.integral(edge)) / reach) - mean

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


def optimal_value(eps: float, loss: DistanceLoss, reach: float) -> float:
    """The optimum to machine precision (an estimate: `certify` turns it into a bound)."""
    width = optimal_window(eps, loss, reach)
    if loss.exponent is not None:
        return float(loss(width * reach))
    growth = math.expm1(eps)
    mean, near = (float(loss.integral(d)) / reach for d in (reach, width * reach))
    return (mean + growth * near) / (1 + growth * width)


def _window_of_floor(floor: float, eps: float) -> float:
    """The window's share that fills up to mass 1 above a floor of the given mass: the inverse of c = 1/(1 + (E - 1) w)."""
    growth = math.expm1(eps)
    mass = min(max(floor, 1 / (1 + growth)), 1.0)
    return min(max((1 - mass) / (mass * growth), 2.0**-50), 1.0)


def build_grid(eps: float, loss: DistanceLoss, reach: float, cells: int = 512) -> LinearProgram:
    """The program seen from the worst input, for losses that have no algebraic form: densities that are constant on cells.

    Variables: `floor` and `density`, in units of the uniform density over the distances [0, reach]; rows: `mass`, `above`
    (density >= floor) and `below` (density <= e^eps floor). Its optimum is that of step densities, at least the true one.
    """
    from scipy.sparse import bmat, csr_matrix, eye

    cost = np.diff(np.asarray(loss.integral(np.linspace(0.0, reach, cells + 1)))) / reach
    one = csr_matrix(np.ones((cells, 1)))
    rows = bmat(
        [[None, csr_matrix(np.full((1, cells), 1 / cells))], [-one, eye(cells)], [math.exp(eps) * one, -eye(cells)]]
    )
    low = np.concatenate([[1.0], np.zeros(2 * cells)])
    high = np.concatenate([[1.0], np.full(2 * cells, np.inf)])
    return LinearProgram(
        np.concatenate([[0.0], cost]), rows, low, high, blocks=stacked([("mass", 1), ("above", cells), ("below", cells)]),
        variables=stacked([("floor", 1), ("density", cells)]), name="piecewise on a grid of distances",
    )  # fmt: skip


def value_at_height(eps: float, height: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
    """Worst-case loss on [0, 1] of the three-piece mechanism with peak `height` in [1, e^eps], elementwise."""
    law = as_loss(loss, 1.0)
    mass = np.asarray(height, dtype=float) / math.exp(eps)
    width = (1 - mass) / (mass * math.expm1(eps))
    return mass * law.integral(1.0) + mass * math.expm1(eps) * law.integral(width)

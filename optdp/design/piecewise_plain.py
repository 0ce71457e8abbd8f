"""The piecewise nonlinear program as it stands, for comparison: SCIP and Gurobi (global), SLSQP and Ipopt (local).

Each returns the floor it found (the smallest height) with its own objective and bound. Heights, floor and losses are
those of the given domain.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp.problem import Circle, DistanceLoss, DomainLike, Interval, LossLike, as_domain, as_loss
from optdp.solvers import nlp

if TYPE_CHECKING:
    from pyomo.environ import ConcreteModel

#: The floor that was found, and what is told of the program: raw and unverified, in units of the domain.
Found = tuple[float, dict[str, Any]]


def solve(
    eps: float, m: int, loss: DistanceLoss, domain: Interval | Circle, method: str, *, time_limit: float, starts: int, seed: int
) -> Found:  # fmt: skip
    """Solve the m-piece program with "scip", "gurobi", "slsqp" or "ipopt". **Raises** RuntimeError if not installed."""
    if method == "slsqp":
        return _slsqp(_Plain(eps, m, loss, domain), starts, seed)
    if method == "ipopt":
        return _ipopt(_Plain(eps, m, loss, domain), starts, seed, time_limit)
    model = build_model(eps, m, loss, domain)
    result = nlp.solve(model, method, time_limit=time_limit)
    assert loss.exponent is not None
    unit = domain.width**loss.exponent
    told = {"solver": f"{method} (spatial branch and bound)", "message": result.message, "stopped": result.timed_out,
            "objective": result.objective and result.objective * unit, "bound": result.bound and result.bound * unit}  # fmt: skip
    # No feasible point in time: the uniform density is one, with floor 1.
    floor = 1.0 if result.objective is None else min(float(model.p[i].value) for i in model.p)
    return floor / domain.width, told


def build_model(eps: float, m: int, loss: LossLike = "abs", domain: DomainLike = (0.0, 1.0)) -> ConcreteModel:
    """The nonlinear program as a Pyomo `ConcreteModel`, on a domain of width 1 (period 1, on a circle).

    Heights `p[i]` times the width and losses over width^q are those of the given domain. On an interval, breakpoints
    `l[x, 0..m]` for the inputs x = 0 and x = 1; on a circle, by rotation, for the single input 0 on [-1/2, 1/2], where
    the first and the last piece are two halves of one arc. `value` is the worst-case loss.

    **Raises** ValueError for a user's own loss, which has no algebraic form.
    """
    import pyomo.environ as pyo

    area = as_domain(domain)
    law = as_loss(loss, area.exact_reach)
    if law.exponent is None:
        raise ValueError(f"loss = {law.name!r} is not allowed here: only powers have an algebraic form in a model")
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

    even = {(x, i): left + (right - left) * i / pieces for x in model.inputs for i in range(pieces + 1)}
    model.l = pyo.Var(model.inputs, pyo.RangeSet(0, pieces), bounds=(left, right), initialize=even)
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
        model.inputs, rule=lambda b, x: sum(b.p[height(i)] * (b.l[x, i] - b.l[x, i - 1]) for i in b.pieces) == 1
    )
    if circle:
        # int_0^l L(|y|) dy is odd in l; with l = right - left part, only one of them positive, it is polynomial.
        model.ahead = pyo.Var(model.inputs, pyo.RangeSet(0, pieces), bounds=(0, 0.5), initialize=0.0)
        model.behind = pyo.Var(model.inputs, pyo.RangeSet(0, pieces), bounds=(0, 0.5), initialize=0.0)
        for k, start in even.items():
            model.ahead[k], model.behind[k] = max(start, 0.0), max(-start, 0.0)
        model.split = pyo.Constraint(list(even), rule=lambda b, x, i: b.l[x, i] == b.ahead[x, i] - b.behind[x, i])
        model.one_sign = pyo.Constraint(list(even), rule=lambda b, x, i: b.ahead[x, i] * b.behind[x, i] == 0)

        def integral(b: Any, x: int, i: int) -> Any:
            return (b.ahead[x, i] ** (q + 1) - b.behind[x, i] ** (q + 1)) / (q + 1)
    else:

        def integral(b: Any, x: int, i: int) -> Any:
            return (b.l[x, i] ** (q + 1) if x == 0 else -((1 - b.l[x, i]) ** (q + 1))) / (q + 1)

    def expected(b: Any, x: int) -> Any:
        return sum(b.p[height(i)] * (integral(b, x, i) - integral(b, x, i - 1)) for i in b.pieces)

    model.worst_case = pyo.Constraint(model.inputs, rule=lambda b, x: b.value >= expected(b, x))
    model.objective = pyo.Objective(expr=model.value, sense=pyo.minimize)
    return model


class _Plain:
    """The program in the vector z = (heights, breakpoints of each input, worst-case loss), with derivatives.

    Width and reach are scaled to 1; on a circle the first piece returns as the last one, across the cut.
    """

    def __init__(self, eps: float, m: int, loss: DistanceLoss, domain: Interval | Circle) -> None:
        self.ratio, self.m, self.domain = float(np.exp(eps)), m, domain
        self.circle = isinstance(domain, Circle)
        self.pieces = m + 1 if self.circle else m
        self.height = np.arange(self.pieces) % m
        self.ends = (-0.5, 0.5) if self.circle else (0.0, 1.0)
        self.inputs = (0.0,) if self.circle else (0.0, 1.0)
        self.loss = loss
        self.unit = float(loss.integral(float(domain.exact_reach))) / float(domain.exact_reach)
        self.inner = self.pieces - 1
        self.size = m + self.inner * len(self.inputs) + 1

    def breakpoints(self, z: np.ndarray, k: int) -> np.ndarray:
        """All breakpoints of input number k, ends included."""
        start = self.m + k * self.inner
        return np.concatenate(([self.ends[0]], z[start : start + self.inner], [self.ends[1]]))

    def _primitive(self, y: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """int_x^y L(|s - x|) ds and L(|y - x|) for input number k, scaled so that the uniform density loses 1."""
        offset = (y - self.inputs[k]) * self.domain.width
        distance = np.clip(np.abs(offset), 0.0, float(self.domain.exact_reach))
        scale = self.unit * self.domain.width
        return np.sign(offset) * self.loss.integral(distance) / scale, self.loss(distance) / self.unit

    def rows(self, z: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Mass - 1 and t - loss for every input, with their Jacobians."""
        p, count = z[: self.m][self.height], len(self.inputs)
        values = np.empty((2, count))
        jacobian = np.zeros((2, count, self.size))
        for k in range(count):
            y = self.breakpoints(z, k)
            integral, density = self._primitive(y, k)
            cells = np.array([np.diff(y), np.diff(integral)])
            values[:, k] = cells @ p
            np.add.at(jacobian[0, k], self.height, cells[0])
            np.add.at(jacobian[1, k], self.height, cells[1])
            where = slice(self.m + k * self.inner, self.m + (k + 1) * self.inner)
            jacobian[0, k, where] = p[:-1] - p[1:]
            jacobian[1, k, where] = (p[:-1] - p[1:]) * density[1:-1]
        slack = -jacobian[1]
        slack[:, -1] = 1.0
        return values[0] - 1.0, z[-1] - values[1], jacobian[0], slack

    def linear(self) -> np.ndarray:
        """Rows of A z >= 0: breakpoints in order and likelihood ratios. The two ends enter through bounds."""
        order = np.kron(np.eye(len(self.inputs)), np.diff(np.eye(self.inner), axis=0))
        i, j = np.nonzero(~np.eye(self.m, dtype=bool))
        ratios = self.ratio * np.eye(self.m)[j] - np.eye(self.m)[i]
        rows = np.zeros((len(order) + len(ratios), self.size))
        rows[: len(order), self.m : -1], rows[len(order) :, : self.m] = order, ratios
        return rows

    def bounds(self) -> list[tuple[float, float]]:
        return [(1 / self.ratio, self.ratio)] * self.m + [self.ends] * (self.inner * len(self.inputs)) + [(0.0, 1.0)]

    def start(self, rng: np.random.Generator) -> np.ndarray:
        """A random start: log-uniform heights between floor and peak, sorted breakpoints, the uniform density's loss."""
        heights = self.ratio ** rng.uniform(-1, 1, self.m)
        points = np.sort(rng.uniform(*self.ends, (len(self.inputs), self.inner)), axis=1)
        return np.concatenate((heights, points.ravel(), [1.0]))

    def found(self, z: np.ndarray, solver: str, message: str) -> Found:
        """A solver's point in units of the domain."""
        floor = float(np.min(z[: self.m])) / self.domain.width
        return floor, {"solver": solver, "message": message, "objective": float(z[-1]) * self.unit}


def _slsqp(plain: _Plain, starts: int, seed: int) -> Found:
    from scipy.optimize import minimize

    linear, bounds = plain.linear(), plain.bounds()
    gradient = np.zeros(plain.size)
    gradient[-1] = 1.0
    rows = lru_cache(2)(lambda point: plain.rows(np.frombuffer(point)))  # four questions at each point
    constraints = [
        {"type": "eq", "fun": lambda z: rows(z.tobytes())[0], "jac": lambda z: rows(z.tobytes())[2]},
        {"type": "ineq", "fun": lambda z: rows(z.tobytes())[1], "jac": lambda z: rows(z.tobytes())[3]},
        {"type": "ineq", "fun": lambda z: linear @ z, "jac": lambda z: linear},
    ]
    rng = np.random.default_rng(seed)
    # The uniform density is feasible, and what remains if no start converges.
    best = np.concatenate((np.ones(plain.m), plain.start(rng)[plain.m : -1], [1.0]))
    converged = 0
    for _ in range(starts):
        with np.errstate(all="ignore"):
            result = minimize(
                lambda z: z[-1], plain.start(rng), jac=lambda z: gradient, bounds=bounds, constraints=constraints,
                method="SLSQP", options={"maxiter": 400, "ftol": 1e-13},
            )  # fmt: skip
        mass, slack, _, _ = plain.rows(result.x)
        feasible = max(np.max(np.abs(mass)), -np.min(slack), -np.min(linear @ result.x)) < 1e-8
        converged += bool(feasible)
        if feasible and result.x[-1] < best[-1]:
            best = result.x
    return plain.found(best, f"SLSQP, {starts} starts", f"{converged} of {starts} starts ended feasible")


def _ipopt(plain: _Plain, starts: int, seed: int, time_limit: float) -> Found:
    """Ipopt as CasADi bundles it, on the same program with CasADi's derivatives."""
    q, inputs = plain.loss.exponent or 1.0, len(plain.inputs)  # a power: the design lets nothing else through
    reach = float(plain.domain.exact_reach) / plain.domain.width

    def rows(ca: Any, z: Any) -> Any:
        mass, slack = [], []
        for k, x in enumerate(plain.inputs):
            inner: list[Any] = [z[plain.m + k * plain.inner + i] for i in range(plain.inner)]
            y: list[Any] = [plain.ends[0], *inner, plain.ends[1]]
            # int_x^y |s - x|^q ds over the uniform density's loss reach^q / (q + 1); the power of 0 has no derivative
            odd = [(s - x) * ca.power(ca.fabs(s - x) + 1e-300, q) / reach**q for s in y]
            p = [z[int(i)] for i in plain.height]
            mass.append(sum(p[i] * (y[i + 1] - y[i]) for i in range(plain.pieces)) - 1)
            slack.append(z[plain.size - 1] - sum(p[i] * (odd[i + 1] - odd[i]) for i in range(plain.pieces)))
        return ca.vertcat(*mass, *slack, ca.mtimes(ca.DM(plain.linear()), z))

    rng = np.random.default_rng(seed)
    points = [plain.start(rng) for _ in range(starts)]
    best, message = nlp.ipopt(rows, plain.size - 1, plain.bounds(), inputs, points, time_limit=time_limit)
    return plain.found(np.ones(plain.size) if best is None else best, f"Ipopt (CasADi), {starts} starts", message)

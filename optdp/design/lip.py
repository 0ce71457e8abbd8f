"""The optimal mechanism for a category with a known prior (Context-aware LIP, put right).

**The program.** A user has category X with prior P on d categories and sends one output Y. The promise, eps-LIP, bounds
what an output may tell, e^-eps <= P(x)/P(x|y) <= e^eps. The curator sums up, or makes a histogram, with the best
estimator E[. | Y], and wants the least mean square error: per user Var(X) - Var(E[X|Y]), or 1 - E sum_x P(x|Y)^2.

**Posteriors instead of probabilities.** A mechanism is a distribution over posteriors r whose mean is P; the promise says
that each lies in a polytope Q, and the error is V - E phi(r) with phi convex, (sum x_i r_i)^2 or sum r_i^2. So

    max sum_k w_k phi(r_k),   r_k the extreme points of Q,   sum_k w_k r_k = P,   w >= 0:

a linear program with d rows, hence at most d outputs. Q has up to d 2^(d-1) extreme points: all but one coordinate at
a bound P_i/E or E P_i. Few categories are enumerated, many are generated as columns (`optdp.design.lip_posteriors`); its
dual is the certificate (`optdp.certificates.lip`).

**Where the paper's closed form holds.** K(j|i) = P_j/E, K(j|j) = 1 - (1-P_j)/E keeps posterior >= P/E, and is optimal for
that ("lip-lower") for every prior and every convex phi: Q is a simplex there. But its posterior of j given j is
P_j/E + 1 - 1/E, which exceeds E P_j unless P_j >= 1/(1 + E): for rare answers, and whenever d > 1 + E, it is not
eps-LIP as the paper defines it.

**Many categories, histogram.** With each coordinate in [lo_i, hi_i], r_i^2 <= (lo_i + hi_i) r_i - lo_i hi_i bounds the error
from below in closed form, and mechanisms that put nearly all coordinates at a bound attain it (`filling_posteriors`).
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from optdp.certificates.lip import LIPCertificate
from optdp.design import lip_posteriors as lp
from optdp.design import lip_pricing as pricing
from optdp.exact import require
from optdp.mechanisms.lip import LIPMechanism
from optdp.problem.priors import Prior
from optdp.problem.privacy import LDP, LIP
from optdp.problem.tasks import Aggregate
from optdp.solution import Program, Solution, Status

TASKS = ("survey", "sum", "histogram")
NOTIONS = ("lip", "lip-lower", "ldp")
BACKENDS = ("auto", "enumeration", "columns", "cvxpy")

#: Up to here "auto" enumerates the extreme posteriors, and up to there it can be asked to.
ENUMERATED = 8
MOST_ENUMERATED = 14


def solve_lip(
    prior: Any,
    eps: float,
    *,
    task: str = "sum",
    values: Any = None,
    notion: str = "lip",
    categories: Any = None,
    weight: float = 1.0,
    backend: str = "auto",
    rtol: float = 1e-6,
    time_limit: float = 60.0,
    seed: int = 0,
) -> Solution:
    """The mechanism with the least mean square error for a user whose category has a known prior, with a proof.

    **Arguments:**

    - `prior`: probabilities of the categories, a sequence or a mapping (dict, pandas Series); they sum to 1 up to 1e-9.
      Categories of prior 0 are left out: the mechanism does not take them, and the solution's name and `spec` say so.
    - `eps`: privacy parameter in (0, 30].
    - `task`: what the curator computes: "survey", how many users answer yes (two categories: no, yes); "sum", the sum of
      the users' values; "histogram", how many users are in each category.
    - `values`: for "sum", the number that each category stands for (default 0, 1, ..., d - 1, or the categories where
      they are numbers). For how many users have one of many categories: 1 there, 0 elsewhere.
    - `notion`: "lip" (two-sided, the definition), "lip-lower" (only posterior >= e^-eps prior), "ldp" (context-free
      promise, but the same prior in the estimator and in the error).
    - `categories`: names for the entries of a sequence `prior`.
    - `weight`: this user's factor in a weighted sum: multiplies the values (an offset changes nothing).
    - `backend`: "auto": closed form for two categories and for "lip-lower", enumeration up to 8 categories, else column
      generation; "enumeration" (up to 14) and "columns" force one; "cvxpy": the same program written in cvxpy.
    - `rtol`: the gap at which to stop; `time_limit`: seconds, after which the bracket is valid but wider; `seed`: for the
      random posteriors that large histograms start from.

    **Returns** a `Solution`: `value` is the mean square error per user of `mechanism` (a `LIPMechanism`) with its
    `estimator`, `lower_bound` what no mechanism with this promise and prior can beat.

    **Raises** TypeError or ValueError naming the argument.
    """
    began = time.perf_counter()
    eps = require.epsilon(eps)
    require.choice("task", task, TASKS)
    require.choice("notion", notion, NOTIONS)
    require.choice("backend", backend, BACKENDS)
    rtol = require.real("rtol", rtol, low=0.0, open_low=True)
    limit = require.real("time_limit", time_limit, low=0.0, open_low=True)
    seed = require.integer("seed", seed, low=0)
    entries = len(prior) if hasattr(prior, "__len__") else 0
    exact = Prior.of(prior, categories)
    loss = _aggregate(task, exact, entries, values, require.real("weight", weight))
    problem = _Problem(exact, eps, loss, notion, rtol, began + limit, seed)

    found = problem.solve(backend)
    promise = LDP(eps) if notion == "ldp" else LIP(eps, lower_only=notion == "lip-lower")
    mechanism = LIPMechanism.private(promise, exact, found.posteriors, found.weights, loss)
    value = mechanism.enclose_value(loss)[1]
    certificate = problem.certify(found)
    lower = min(certificate.bound, value)
    status = Status.OPTIMAL if value - lower <= rtol * value else Status.TIME_LIMIT if found.timed_out else Status.GAP
    d, dropped = len(exact), len(exact.left_out)
    left = f" ({dropped} of prior 0 left out)" if dropped else ""
    program = Program(
        name=f"{task} over {d} categories{left}, {notion}, eps = {eps:g}",
        variables=f"weights of extreme posteriors ({found.columns} used of {_extreme_points(notion, d)})",
        constraints=f"the mean posterior is the prior: {d} rows",
        solver=found.solver,
        seconds=time.perf_counter() - began,
        objective=found.objective,
        bound=found.bound,
        message=f"{found.rounds} rounds" + (f"; left out, having prior 0: {_some(exact.left_out)}" if dropped else ""),
        build=lambda: build_model(exact, eps, loss, notion),
    )
    spec = {
        "problem": "lip", "eps": eps, "task": task, "notion": notion, "categories": list(exact.categories),
        "left_out": list(exact.left_out), "prior": exact.probabilities.tolist(),
        "values": None if loss.values is None else list(loss.values), "backend": backend, "rtol": rtol,
    }  # fmt: skip
    return Solution(
        value, lower, mechanism, certificate, program, promise, loss, status, spec, _closed_form(exact, loss, notion)
    )


def _extreme_points(notion: str, d: int) -> str:
    return {"lip": f"at most {d} 2^{d - 1}", "lip-lower": f"{d}", "ldp": f"2^{d} - 2"}[notion]


def _some(names: tuple[Any, ...]) -> str:
    return ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")


def _aggregate(task: str, prior: Prior, entries: int, values: Any, weight: float) -> Aggregate:
    """The loss, with values for the categories that are left."""
    if task == "histogram":
        if values is not None:
            raise ValueError("values is not allowed for task 'histogram': a histogram counts categories")
        return Aggregate("histogram")
    if task == "survey":
        if len(prior) + len(prior.left_out) != 2:
            raise ValueError(
                f"prior has {len(prior) + len(prior.left_out)} entries, which is not allowed for task 'survey': it must "
                "have two, (P(no), P(yes)); for one of many categories use task='sum' with values 1 there and 0 elsewhere"
            )
        if values is not None:
            raise ValueError("values is not allowed for task 'survey': the answers count 0 and 1")
        values = (0.0, 1.0)
    everything = prior.categories + prior.left_out
    if values is None:
        if not all(isinstance(name, (int, float)) for name in everything):
            raise ValueError("values is missing: task 'sum' needs the number that each category stands for")
        kept = [float(name) for name in prior.categories]
    else:
        kept = _values_of_kept(prior, entries, values)
    kept = [weight * v for v in kept]
    if not all(map(math.isfinite, kept)):
        raise ValueError(f"weight = {weight!r} is not allowed: it must keep the values finite")
    if len(set(kept)) == 1:
        raise ValueError(f"values = {kept[0]!r} for every category is not allowed: there is nothing to estimate")
    return Aggregate("sum", tuple(kept))


def _values_of_kept(prior: Prior, entries: int, values: Any) -> list[float]:
    if hasattr(values, "items"):
        table = {(k.item() if isinstance(k, np.generic) else k): v for k, v in values.items()}
        missing = [name for name in prior.categories if name not in table]
        if missing:
            raise ValueError(f"values has no entry for category {missing[0]!r}: it must have one for each")
        return [require.real(f"values[{name!r}]", table[name]) for name in prior.categories]
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise TypeError(
            f"values = {values!r} is not allowed: values must be a sequence of numbers, one for each category"
        )
    if len(values) == len(prior) and entries == 0:
        entries = len(prior)
    if len(values) not in {entries, len(prior) + len(prior.left_out)}:
        raise ValueError(
            f"values has {len(values)} entries, which is not allowed: it must have one for each of the "
            f"{len(prior) + len(prior.left_out)} entries of prior"
        )
    numbers = [require.real(f"values[{i}]", v.item() if isinstance(v, np.generic) else v) for i, v in enumerate(values)]
    if len(numbers) == len(prior):
        return numbers
    return [numbers[i] for i in _kept_positions(prior)]


def _kept_positions(prior: Prior) -> list[int]:
    """Where the categories that are left stood among the entries as given."""
    return list(prior.given)


@dataclass(frozen=True)
class _Found:
    """A mechanism as posteriors and weights, and the dual point, in the units of the loss."""

    posteriors: np.ndarray
    weights: np.ndarray
    nu: np.ndarray
    method: str
    knots: np.ndarray
    solver: str
    columns: int
    rounds: int
    timed_out: bool
    objective: float
    bound: float


@dataclass(frozen=True)
class _Problem:
    """One problem in the solver's units: values centred at the prior mean, with variance between 1 and 4."""

    prior: Prior
    eps: float
    loss: Aggregate
    notion: str
    rtol: float
    deadline: float
    seed: int

    @property
    def p(self) -> np.ndarray:
        return self.prior.probabilities

    @property
    def ratio(self) -> float:
        return math.exp(self.eps)

    def _units(self) -> tuple[np.ndarray | None, float, float]:
        """(values in the solver's units, the unit: a power of two, the total variance in the solver's units)."""
        if self.loss.values is None:
            return None, 1.0, 1.0 - float(self.p @ self.p)
        x = np.array(self.loss.values) - float(
            sum(q * _fraction(v) for q, v in zip(self.prior.exact, self.loss.values, strict=True))
        )
        largest = 2.0 ** math.frexp(float(np.abs(x).max()))[1]
        deviation = largest * math.sqrt(float(self.p @ (x / largest) ** 2))
        unit = 2.0 ** (math.frexp(deviation)[1] - 1)
        return x / unit, unit, float(self.p @ (x / unit) ** 2)

    def pricer(self) -> Any:
        """The pricing problem that fits, exact wherever it can be."""
        x, _, _ = self._units()
        lip = self.notion == "lip"
        if x is not None:
            return (pricing.BoxSum if lip else pricing.ConeSum)(self.p, x, self.ratio)
        if lip:
            return pricing.BoxHistogram(self.p, self.ratio, self.prior.weights)
        every = pricing.ConeHistogram(self.p, self.ratio, self.prior.weights)
        return every if every.visits_all else pricing.ConeHistogramRelaxed(self.p, self.ratio, self.prior.weights)

    def solve(self, backend: str) -> _Found:
        """The program's solution by the given backend."""
        d = len(self.prior)
        if backend in ("enumeration", "cvxpy") and d > MOST_ENUMERATED:
            raise ValueError(
                f"backend = {backend!r} is not allowed for {d} categories: extreme posteriors are enumerated up to "
                f"{MOST_ENUMERATED}; use 'columns'"
            )
        if self.notion == "lip-lower" and backend != "cvxpy":
            return self._simplex()
        if backend == "auto" and d == 2:
            return self._binary()
        if backend in ("enumeration", "cvxpy") or (backend == "auto" and d <= ENUMERATED):
            return self._enumerated(backend == "cvxpy")
        if self.loss.values is None:
            return self._histogram()
        return self._generated(self._sum(), "HiGHS, column generation (exact pricing)")

    def _tolerance(self) -> float:
        # "lip-lower" promises least, so that its error is below every other's.
        least = 2 / self.ratio - 1 / self.ratio**2
        return max(0.5 * self.rtol * least * self._units()[2], 1e-13)

    def _simplex(self) -> _Found:
        vertices = self.p / self.ratio + (1 - 1 / self.ratio) * np.eye(self.p.size)
        gain = float(self.loss.gain(vertices, self.p) @ self.p)
        empty = np.zeros(0)
        return _Found(
            vertices, self.p, empty, "simplex", empty, "closed form (simplex)", self.p.size, 0, False, gain, gain
        )

    def _binary(self) -> _Found:
        """The two ends of the interval of posteriors; the dual is the line through them."""
        p, pricer = self.p, self.pricer()
        ends = pricing.box_vertices(p, self.ratio) if self.notion == "lip" else pricing.cone_vertices(p, self.ratio)
        ends = ends[[int(np.argmin(ends[:, 1])), int(np.argmax(ends[:, 1]))]]
        low, high = ends[:, 1]
        weights = np.array([high - p[1], p[1] - low]) / (high - low)
        gain_low, gain_high = pricer.gain(ends)
        slope = (gain_high - gain_low) / (high - low)
        nu = gain_low + slope * (np.array([0.0, 1.0]) - low)
        objective = float(weights @ pricer.gain(ends))
        exact = lp.Generated(ends, weights, objective, nu, objective, 2, 0, False)
        return self._generated(exact, "closed form (two posteriors)")

    def _enumerated(self, with_cvxpy: bool) -> _Found:
        pricer = self.pricer()
        rows = extreme_posteriors(self.p, self.ratio, self.notion)
        if not with_cvxpy:
            return self._generated(
                lp.enumerate_all(self.p, self.ratio, rows, pricer.gain(rows)), "HiGHS, all extreme posteriors"
            )
        model = _cvxpy_model(
            self.p, rows, pricer.gain(rows) if self.notion != "lip-lower" else self.loss.gain(rows, self.p)
        )
        with warnings.catch_warnings():  # accuracy is for the certificate to judge
            warnings.filterwarnings("ignore", "Solution may be inaccurate")
            objective = float(model.solve(solver="CLARABEL", **TIGHT))
        weights = np.maximum(model.variables()[0].value, 0.0)
        if self.notion == "lip-lower":
            closed = self._simplex()
            return _Found(
                rows,
                weights,
                closed.nu,
                "simplex",
                closed.knots,
                "cvxpy, Clarabel",
                len(rows),
                1,
                False,
                objective,
                objective,
            )
        nu = -np.asarray(model.constraints[0].dual_value) / self.p
        if nu @ self.p < 0:
            nu = -nu
        keep = weights > 1e-9
        found = lp.Generated(rows[keep], weights[keep], objective, nu, objective, len(rows), 1, False)
        return self._generated(found, "cvxpy, Clarabel")

    def _sum(self) -> lp.Generated:
        pricer = self.pricer()
        return lp.multilevel(pricer, tol=self._tolerance(), deadline=self.deadline, coarsen=pricer.merged)

    def _histogram(self) -> _Found:
        """Column generation where vertices can be visited; else posteriors that fill up, against the chord bound."""
        pricer = self.pricer()
        few = pricer.visits_all
        rng = np.random.default_rng(self.seed)
        p, tol = self.p, self._tolerance()
        if self.notion == "lip":
            chord = pricing.box_chord(p, self.ratio)
            start = pricing.filling_posteriors(p, self.ratio, rng, 4)
            if not few:
                return self._filled(start, chord, rng, tol)
            centre = chord
        else:
            centre = _cone_centre(p, self.ratio)
            start = pricing.shuffled(pricer.price(centre, tol).posteriors, self.prior.weights, rng, 4 * p.size)
        radius = float(np.ptp(centre)) + 1 / p.size
        found = lp.generate(pricer, start, centre, radius, tol=tol, deadline=self.deadline)
        how = "exact pricing" if few else "relaxed pricing"
        return self._generated(found, f"HiGHS, column generation ({how})")

    def _filled(self, start: np.ndarray, chord: np.ndarray, rng: np.random.Generator, tol: float) -> _Found:
        p, columns, rounds, late = self.p, start, 1, False
        bound = float(chord @ p)
        gain = self.pricer().gain
        while True:
            rows = np.vstack([p[None], columns])
            found = lp.enumerate_all(p, self.ratio, rows, gain(rows))
            late = time.perf_counter() > self.deadline
            if bound - found.objective <= tol or rounds >= 12 or late:
                break
            # Keep what was used and the best of the rest, and draw again.
            loss = columns @ chord - gain(columns)
            best = columns[np.argsort(loss)[: 6 * p.size]]
            columns = np.vstack([found.posteriors, best, pricing.filling_posteriors(p, self.ratio, rng, 6, found.nu)])
            rounds += 1
        late = late and bound - found.objective > tol
        posteriors, weights = lp.polish(found, p)
        level = np.array([[0.0, pricing.box_chord_level(p, self.ratio)]])
        return _Found(
            posteriors, weights, chord, "chord", level, "HiGHS, filling posteriors against the chord bound",
            len(rows), rounds, late, found.objective, bound,
        )  # fmt: skip

    def _generated(self, found: lp.Generated, solver: str) -> _Found:
        """Into the units of the loss, with the knots of the proof."""
        pricer = self.pricer()
        posteriors, weights = lp.polish(found, self.p)
        _, unit, _ = self._units()
        nu, accuracy = found.nu, self._tolerance() / 100
        if self.loss.values is None and pricer.visits_all:
            method = "vertices"
        else:
            method = "knots" if self.loss.values is not None else "chord"
        # Prices at which the used posteriors have reduced cost 0 to full precision, if they are better.
        priced = pricer.price(nu, accuracy)
        sharp = (
            nu + np.linalg.lstsq(posteriors / self.p, pricer.gain(posteriors) - posteriors @ nu, rcond=None)[0] / self.p
        )
        again = pricer.price(sharp, accuracy)
        if float(sharp @ self.p) + again.excess < float(nu @ self.p) + priced.excess:
            nu, priced = sharp + again.excess, pricer.price(sharp + again.excess, accuracy)
        knots = priced.knots * [unit, unit**2]
        return _Found(
            posteriors, weights, nu * unit**2, method, knots, solver, found.columns, found.rounds, found.timed_out,
            found.objective * unit**2, found.bound * unit**2,
        )  # fmt: skip

    def certify(self, found: _Found) -> LIPCertificate:
        """The bound that the dual point proves."""
        return LIPCertificate.of(
            self.eps, self.prior, self.loss, self.notion, found.method, found.nu.tolist(), found.knots.tolist()
        )


def _fraction(value: float) -> Any:
    from fractions import Fraction

    return Fraction(value)


def _cone_centre(p: np.ndarray, ratio: float) -> np.ndarray:
    """A dual point near the optimum of an LDP histogram: the chord at tau = (1 + E)/(2 E)."""
    tau = (1 + ratio) / (2 * ratio)
    return (1 + ratio) * tau * p - ratio * tau**2 * float(p @ p)


def extreme_posteriors(p: np.ndarray, ratio: float, notion: str) -> np.ndarray:
    """All extreme points of the set Q of posteriors that the promise allows, one in each row."""
    if notion == "lip":
        return pricing.box_vertices(p, ratio)
    if notion == "ldp":
        return pricing.cone_vertices(p, ratio)
    return p / ratio + (1 - 1 / ratio) * np.eye(p.size)


def _cvxpy_model(p: np.ndarray, posteriors: np.ndarray, gains: np.ndarray) -> Any:
    import cvxpy as cp

    w = cp.Variable(len(gains), nonneg=True, name="w")
    return cp.Problem(cp.Maximize(gains @ w), [(posteriors / p).T @ w == 1])


#: Clarabel's tolerances for the reference model.
TIGHT = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}


def build_model(prior: Any, eps: float, loss: Aggregate, notion: str = "lip") -> Any:
    """The linear program as a cvxpy `Problem`: one weight for each extreme posterior, up to 14 categories.

    Its value is the largest E phi(posterior), in the units of the loss; the mean square error is V minus it.
    """
    exact = Prior.of(prior)
    if len(exact) > MOST_ENUMERATED:
        raise ValueError(
            f"prior has {len(exact)} categories, which is not allowed here: the plain model is written down up to "
            f"{MOST_ENUMERATED}"
        )
    require.choice("notion", notion, NOTIONS)
    rows = extreme_posteriors(exact.probabilities, math.exp(require.epsilon(eps)), notion)
    return _cvxpy_model(exact.probabilities, rows, loss.gain(rows, exact.probabilities))


def _closed_form(prior: Prior, loss: Aggregate, notion: str) -> Callable[[], Any] | None:
    if notion != "lip-lower" and len(prior) != 2:
        return None

    def expression() -> Any:
        from optdp.closed_forms import lip as forms

        p = [_readable(q) for q in prior.exact]
        if notion == "lip-lower":
            return forms.simplex_value(
                p, None if loss.values is None else [_readable(_fraction(v)) for v in loss.values]
            )
        if loss.values is None:
            return 2 * forms.binary_value(min(p), notion)
        step = _readable(_fraction(loss.values[1])) - _readable(_fraction(loss.values[0]))
        return step**2 * forms.binary_value(min(p), notion)

    return expression


def _readable(number: Any) -> Any:
    """The sympy rational with a small denominator that reads as the same float, if there is one: 1/10 for 0.1."""
    import sympy as sp

    short = number.limit_denominator(10**6)
    kept = short if float(short) == float(number) else number
    return sp.Rational(kept.numerator, kept.denominator)

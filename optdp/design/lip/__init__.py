"""The optimal mechanism for a category with a known prior (Context-aware LIP, put right).

**The program.** A user has category X with prior P on d categories and sends one output Y. The guarantee, eps-LIP, bounds
what an output may tell, e^-eps <= P(x)/P(x|y) <= e^eps. The curator sums up, or makes a histogram, with the best
estimator E[. | Y], and wants the least mean square error: per user Var(X) - Var(E[X|Y]), or 1 - E sum_x P(x|Y)^2.

**Posteriors instead of probabilities.** A mechanism is a distribution over posteriors r whose mean is P; the guarantee says
that each lies in a polytope Q, and the error is V - E phi(r) with phi convex, (sum x_i r_i)^2 or sum r_i^2. So

    max sum_k w_k phi(r_k),   r_k the extreme points of Q,   sum_k w_k r_k = P,   w >= 0:

a linear program with d rows, hence at most d outputs. Q has up to d 2^(d-1) extreme points: all but one coordinate at
a bound P_i/E or E P_i. Few categories are enumerated, many are generated as columns (`optdp.design.lip.posteriors`); its
dual is the certificate (`optdp.certificates.lip`).

**Where the paper's closed form holds.** K(j|i) = P_j/E, K(j|j) = 1 - (1-P_j)/E keeps posterior >= P/E, and is optimal for
that ("lip-lower") for every prior and every convex phi: Q is a simplex there. But its posterior of j given j is
P_j/E + 1 - 1/E, which exceeds E P_j unless P_j >= 1/(1 + E): for rare answers, and whenever d > 1 + E, it is not
eps-LIP as the paper defines it.

**Many categories, histogram.** With each coordinate in [lo_i, hi_i], r_i^2 <= (lo_i + hi_i) r_i - lo_i hi_i bounds the error
from below in closed form, and mechanisms that put nearly all coordinates at a bound attain it: the prior is split into them one
by one, without a linear program; for "ldp" a small program finds what is to be split (`optdp.design.lip.histogram`), and where
that leaves a gap columns are generated, by branch and bound over the sets of favoured categories.

**Rare categories.** What a program asks of a category with the prior 1e-20 is below every solver's tolerance. Those too rare to
count are answered as the ones with the nearest values, which LDP and LIP allow; the bound is proven with all of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.certificates.base import Refusal
from optdp.certificates.lip import STEPS, LIPCertificate, Method
from optdp.design.lip import histogram as histogram
from optdp.design.lip import posteriors as lp
from optdp.design.lip import pricing as pricing
from optdp.design.progress import ProgressLike
from optdp.design.registry import Run, register, solve
from optdp.exact import enclosures, require
from optdp.exact.numbers import Number, counted
from optdp.mechanisms.lip import LIPMechanism
from optdp.problem.domains import Alphabet
from optdp.problem.families import AllMechanisms
from optdp.problem.objectives import BayesRisk
from optdp.problem.priors import Prior, PriorLike
from optdp.problem.privacy import LDP, LIP
from optdp.problem.problem import Problem
from optdp.problem.tasks import Aggregate
from optdp.solution import Solution
from optdp.solvers.conic import Clarabel
from optdp.solvers.lp import LinearProgram, LinearSolver, SolverFailure

ValuesLike = Mapping[Any, Any] | Sequence[Number] | np.ndarray

TASKS = ("survey", "sum", "histogram")
NOTIONS = ("lip", "lip-lower", "ldp")
METHODS = ("auto", "enumeration", "columns", "cvxpy")
#: The least eps: e^eps must differ from 1 as a float.
FAINTEST = 1e-15
#: The least probability: quotients by it must be floats.
RAREST = 1e-300
#: The largest value, and the least standard deviation of the values: squares must be floats, and shares of them.
LARGEST, FINEST = 1e150, 1e-150

#: Up to here "auto" enumerates the extreme posteriors, and up to there it can be asked to.
ENUMERATED = 8
MOST_ENUMERATED = 14

#: A histogram over more categories is not improved by linear programs over posteriors if there are many vertices.
COLUMNS = 300

#: One category is all but certain where what one output costs more than the optimum is a smaller share than this.
CERTAIN = 1e-6
#: Categories count for nothing if what they can add to the error is a smaller share of its tolerance than the first of these.
RARE = 1e-4, 1.0, 1e4, 1e8, 1e12
#: Those whose probability is above this are always seen; and those that cost more than this share of the error.
UNSEEN, DEAR = 1e-9, 0.1
#: What the price of a set of categories may be off by, and the e^eps from which on rounding errors show in proofs for sums.
ROUNDING, ROUNDED = 1e-16, 1e4

NO_KNOTS = np.zeros((0, 2))
#: Column generation with a relaxed pricing problem gives up after so many rounds that do not bring bound and value closer.
RELAXED_PATIENCE = 25


def solve_lip(
    prior: PriorLike, eps: Number | str, *, task: str = "sum", values: ValuesLike | None = None, notion: str = "lip",
    categories: Sequence[Any] | None = None, weight: float = 1.0, backend: str = "auto", rtol: float = 1e-6,
    time_limit: float = 60.0, seed: int = 0, solver: LinearSolver | None = None, progress: ProgressLike = None,
) -> Solution:  # fmt: skip
    """The mechanism with the least mean square error for a user whose category has a known prior, with a proof.

    **Arguments:**

    - `prior`: probabilities of the categories, a sequence or a mapping (dict, pandas Series), 0 or at least 1e-300; they sum to
      1 up to 1e-9. Categories of prior 0 are left out: the mechanism does not take them, and the problem's statement says so.
    - `eps`: privacy parameter in [1e-15, 30]: a float, or exactly a Fraction, a decimal string or `optdp.log(3)`.
    - `task`: what the curator computes: "survey", how many users answer yes (two categories: no, yes); "sum", the sum of
      the users' values; "histogram", how many users are in each category.
    - `values`: for "sum", the number that each category stands for (default 0, 1, ..., d - 1, or the categories where
      they are numbers), at most 1e150 in size and with a standard deviation of at least 1e-150 under the prior. For how many
      users have one of many categories: 1 there, 0 elsewhere.
    - `notion`: "lip" (two-sided, the definition), "lip-lower" (only posterior >= e^-eps prior), "ldp" (context-free
      guarantee, but the same prior in the estimator and in the error).
    - `categories`: names for the entries of a sequence `prior`.
    - `weight`: this user's factor in a weighted sum: multiplies the values (an offset changes nothing).
    - `backend`: "auto": closed form for two categories and for "lip-lower", enumeration up to 8 categories, else column
      generation; "enumeration" (up to 14) and "columns" force one; "cvxpy": the enumerated program written in cvxpy.
    - `rtol`: the gap at which to stop; `time_limit`: seconds, after which the bracket is valid but wider; `seed`: for the
      random posteriors that large histograms start from; `solver`: another linear solver than HiGHS's simplex method
      (`optdp.solvers.LinearSolver`); `progress`: see `optdp.solve`.

    **Returns** a `Solution`: `value` is the mean square error per user of `mechanism` (a `LIPMechanism`) with its
    `estimator`, `lower_bound` what no mechanism with this guarantee and prior can beat.

    **Raises** TypeError or ValueError naming the argument.

    **Source:** Jiang, Li, Tandon, "Context-aware data aggregation with localized information privacy" (IEEE CNS 2018), corrected.

        >>> import optdp
        >>> round(optdp.solve_lip([0.9, 0.1], 1.0, task="survey").value, 6)
        0.079138
    """
    eps = require.exact_epsilon(eps, least=FAINTEST)
    require.choice("task", task, TASKS)
    require.choice("notion", notion, NOTIONS)
    require.choice("backend", backend, METHODS)
    entries = len(prior) if isinstance(prior, Sized) else 0
    exact = Prior.of(prior, categories)
    aggregate = _aggregate(task, exact, entries, values, require.real("weight", weight))
    privacy = LDP(eps) if notion == "ldp" else LIP(eps, exact, lower_only=notion == "lip-lower")
    problem = Problem(privacy, Alphabet(exact.categories), BayesRisk(aggregate, exact))
    return solve(problem, rtol, time_limit, backend, solver, progress, seed=seed)


def accepts(problem: Problem) -> str | None:
    """All mechanisms on the alphabet of a prior's categories, under LDP or under LIP for the same prior."""
    privacy, objective = problem.privacy, problem.objective
    if not isinstance(objective, BayesRisk):
        return "the objective must be BayesRisk(task, prior)"
    if not isinstance(privacy, LDP | LIP) or not FAINTEST <= float(privacy.eps) <= require.MAX_EPS:
        return f"privacy must be LIP or LDP with eps in [{FAINTEST:g}, 30]"
    if isinstance(privacy, LIP) and privacy.prior != objective.prior:
        return "the prior of the guarantee must be the prior of the objective"
    if not isinstance(problem.domain, Alphabet) or problem.domain.symbols != objective.prior.categories:
        return "the domain must be the alphabet of the prior's categories"
    if min(objective.prior.exact) < RAREST:
        return f"every category of the prior must have a probability of at least {RAREST:g}, or 0"
    values = objective.task.values
    if values is not None and len(set(values)) == 1:
        return "the values must not all be equal: there is nothing to estimate"
    if values is not None and max(map(abs, values)) > LARGEST:
        return f"the values must be at most {LARGEST:g} in size"
    if values is not None and _centred(objective.prior, values)[1] < FINEST:
        return f"the values must have a standard deviation of at least {FINEST:g} under the prior"
    if not isinstance(problem.family, AllMechanisms):
        return "the family must be all mechanisms"
    return None if not problem.constraints else "there must be no constraints"


def design(run: Run, *, seed: int = 0) -> Solution:
    """See `solve_lip`."""
    if run.solver is not None and run.method == "cvxpy":
        raise ValueError("solver is not allowed with the method 'cvxpy', which brings its own")
    objective: Any = run.problem.objective
    prior, task = objective.prior, objective.task
    work = _Work(run, require.integer("seed", seed, low=0), prior, task)
    run.progress(f"{task.kind} over {len(prior)} categories, {work.notion}")
    best = _Best(work)
    best.search()
    found, d, square = best.found, work.equal[0].size, work.unit**2
    extreme = {"lip": f"at most {d} 2^{d - 1}", "lip-lower": f"{d}", "ldp": f"2^{d} - 2"}[work.notion]
    return run.solution(
        best.mechanism, best.certificate, f"weights of extreme posteriors ({found.columns} used of {extreme})",
        f"the mean posterior is the prior: {d} rows", best.solver, (enclosures.round_down(best.proven), best.value),
        objective=found.objective * square, bound=found.bound * square, stopped=best.timed_out, build=build_model,
        message=f"{counted(found.rounds, 'round')}{prior.missing}",
        arguments=(prior, work.eps, task, work.notion, None if len(prior) <= MOST_ENUMERATED else found.posteriors),
    )  # fmt: skip


register(
    "lip",
    ("LIP, LIP(lower_only) for the objective's prior; LDP", "Alphabet of the prior's categories",
     "BayesRisk(sum or histogram)", "AllMechanisms", ""),
    accepts, design, METHODS,
)  # fmt: skip


def _aggregate(task: str, prior: Prior, entries: int, values: Any, weight: float) -> Aggregate:
    """The task, with values for the categories that are left."""
    every = len(prior) + len(prior.left_out)
    if task != "sum" and values is not None:
        raise ValueError(f"values is not allowed for task {task!r}: a sum takes values")
    if task == "histogram":
        return Aggregate("histogram")
    if task == "survey":
        if every != 2:
            instead = "for one of many categories use task='sum' with values 1 there and 0 elsewhere"
            allowed = f"it must have two, (P(no), P(yes)); {instead}"
            raise ValueError(f"prior has {every} entries, which is not allowed for task 'survey': {allowed}")
        values = (0.0, 1.0)
    if values is None:
        if not all(isinstance(name, int | float) for name in prior.categories + prior.left_out):
            raise ValueError("values is missing: task 'sum' needs the number that each category stands for")
        values = dict(zip(prior.categories, prior.categories, strict=True))
    given = _values_of_kept(prior, entries, values)
    if len(set(given)) == 1:
        raise ValueError(f"values = {given[0]!r} for every category is not allowed: there is nothing to estimate")
    kept = [weight * v for v in given]
    if not all(map(math.isfinite, kept)):
        raise ValueError(f"weight = {weight!r} is not allowed: it must keep the values finite")
    if len(set(kept)) == 1:
        raise ValueError(f"weight = {weight!r} is not allowed: it must keep the values apart")
    return Aggregate("sum", tuple(kept))


def _values_of_kept(prior: Prior, entries: int, values: Any) -> list[float]:
    if hasattr(values, "items"):
        table: dict[Any, Any] = {}
        for name, value in values.items():
            name = name.item() if isinstance(name, np.generic) else name
            if name in table:  # in a pandas Series
                raise ValueError(f"values is not allowed: it has two entries for category {name!r}")
            table[name] = value
        missing = [name for name in prior.categories if name not in table]
        if missing:
            raise ValueError(f"values has no entry for category {missing[0]!r}: it must have one for each")
        return [_value(f"values[{name!r}]", table[name]) for name in prior.categories]
    if isinstance(values, str | bytes) or not hasattr(values, "__len__"):
        raise TypeError(f"values = {values!r} is not allowed: it must be a sequence of numbers, one for each category")
    numbers = [_value(f"values[{i}]", v) for i, v in enumerate(values)]
    if len(numbers) == len(prior) and entries in (0, len(prior)):  # a `Prior` has no entries of probability 0
        return numbers
    every = len(prior) + len(prior.left_out)
    if len(numbers) != every or not prior.given:
        allowed = f"it must have one for each of the {every} of prior"
        raise ValueError(f"values has {len(values)} entries, which is not allowed: {allowed}")
    return [numbers[i] for i in prior.given]


def _value(name: str, value: Any) -> float:
    """A value as a float. **Raises** ValueError for an integer that is none: rounded, it may be that of another category."""
    found = require.real(name, value)
    if isinstance(value, int | np.integer) and int(found) != int(value):
        raise ValueError(f"{name} = {value} is not allowed: it must be a float, as all integers up to 2^53 are")
    return found


def _centred(prior: Prior, values: Sequence[float]) -> tuple[np.ndarray, float]:
    """The values of a sum less their mean, and their standard deviation: of floats that have no squares too."""
    x = np.array(values) - float(sum(q * Fraction(v) for q, v in zip(prior.exact, values, strict=True)))
    largest = 2.0 ** math.frexp(float(np.abs(x).max()))[1]
    return x, largest * math.sqrt(float(prior.probabilities @ (x / largest) ** 2))


#: A mechanism as posteriors and weights with the dual point, in the solver's units; how it was found.
_Found = tuple[lp.Generated, str]


class _Work:
    """One problem in the solver's units: values centred at the prior mean, with variance between 1 and 4."""

    def __init__(self, run: Run, seed: int, prior: Prior, task: Aggregate) -> None:
        privacy: Any = run.problem.privacy
        self.run, self.seed, self.prior, self.task, self.p = run, seed, prior, task, prior.probabilities
        self.notion = "ldp" if isinstance(privacy, LDP) else "lip-lower" if privacy.lower_only else "lip"
        self.eps, self.ratio = float(privacy.eps), math.exp(float(privacy.eps))
        self.deadline = run.began + run.time_limit
        self.solver = Clarabel() if run.method == "cvxpy" else run.solver
        self.name = "HiGHS" if self.solver is None else self.solver.name
        #: Values in the solver's units, the unit (a power of two), and the total variance in the solver's units.
        self.values, self.unit, self.variance = None, 1.0, 1.0 - float(self.p @ self.p)
        #: One category of each value, and for each category which: their rows' mean is as good, the solver sees one of them.
        self.equal = np.arange(self.p.size), np.arange(self.p.size)
        if task.values is not None:
            x, deviation = _centred(prior, task.values)
            self.unit = 2.0 ** (math.frexp(deviation)[1] - 1)
            self.values = x / self.unit
            self.variance = float(self.p @ self.values**2)
            if self.notion != "lip-lower" and run.method in ("auto", "columns") and len(set(task.values)) < self.p.size:
                self.equal = np.unique(task.values, return_index=True, return_inverse=True)[1:]
        #: The error under one-sided LIP, which asks least, so that it is below every other's; and what may be missed of it.
        self.least = (2 / self.ratio - 1 / self.ratio**2) * self.variance
        self.tolerance = max(0.5 * run.rtol * self.least, 1e-13)
        #: To what prices are looked at in the end.
        self.accuracy = ROUNDING if self.values is None else self.tolerance / 100

    @cached_property
    def pricer(self) -> Any:
        """The pricing problem that fits, exact wherever it can be."""
        lip = self.notion == "lip"
        if self.values is not None:
            return (pricing.BoxSum if lip else pricing.ConeSum)(self.p, self.values, self.ratio)
        return (pricing.BoxHistogram if lip else pricing.ConeHistogram)(self.p, self.ratio, self.prior.weights)

    @cached_property
    def relaxed(self) -> pricing.ConeHistogramRelaxed:
        return pricing.ConeHistogramRelaxed(self.p, self.ratio, self.prior.weights)

    def solve(self, method: str) -> _Found:
        p, d, ratio = self.p, self.p.size, self.ratio
        if method in ("enumeration", "cvxpy") and d > MOST_ENUMERATED:
            most = f"extreme posteriors are enumerated up to {MOST_ENUMERATED}; use 'columns'"
            raise ValueError(f"backend = {method!r} is not allowed for {d} categories: {most}")
        if self.notion == "lip-lower":
            return self.closed(extreme_posteriors(p, ratio, self.notion), p, "closed form (simplex)")
        if self.certain:
            return self.closed(p[None], np.ones(1), "closed form (one output)")
        if self.equal[0].size < d:
            weights = [
                sum(self.prior.weights[i] for i in np.flatnonzero(self.equal[1] == k))
                for k in range(self.equal[0].size)
            ]
            return self.merged(
                Prior(tuple(weights), tuple(range(len(weights)))), *self.equal, method, "equal values as one"
            )
        if method == "auto" and d == 2:
            return self._binary()
        if method in ("enumeration", "cvxpy") or (method == "auto" and d <= ENUMERATED):
            rows = extreme_posteriors(p, ratio, self.notion)
            found = lp.enumerate_all(p, ratio, rows, self.pricer.gain(rows), self.solver)
            return self._polished(found), f"{self.name}, all extreme posteriors"
        if self.task.values is None:
            return self._histogram()
        found = lp.multilevel(self.pricer, tol=self.tolerance, deadline=self.deadline, solver=self.solver)
        return self._polished(found), f"{self.name}, column generation (exact pricing)"

    def merged(self, prior: Prior, kept: np.ndarray, groups: np.ndarray, method: str, told: str) -> _Found:
        """`solve` with each category answered as one of those `kept`, the one at its place in `groups`; `prior`: of these."""
        values = self.task.values
        task = self.task if values is None else Aggregate("sum", tuple(values[i] for i in kept))
        inner = _Work(self.run, self.seed, prior, task)
        found, solver = inner.solve(method)
        scale = (inner.unit / self.unit) ** 2
        found = replace(
            found, posteriors=(found.posteriors / inner.p)[:, groups] * self.p, nu=found.nu[groups] * scale,
            objective=found.objective * scale, bound=found.bound * scale,
        )  # fmt: skip
        return found, f"{solver}, {told}"

    def closed(self, rows: np.ndarray, weights: np.ndarray, told: str, nu: np.ndarray | None = None) -> _Found:
        """Posteriors that are known; without prices `nu` they count for nothing."""
        gain, nu = float(self.pricer.gain(rows) @ weights), np.zeros(self.p.size) if nu is None else nu
        return lp.Generated(rows, weights, gain, nu, gain, len(rows), 0, False), told

    @cached_property
    def others(self) -> float:
        """The probability of all categories but the most probable one."""
        return float(1 - max(self.prior.exact))

    @cached_property
    def certain(self) -> bool:
        """Whether one category is all but certain: what can be learned is then a share of about `others` of the loss, and floats
        do not hold it.
        """
        if self.values is not None and self.notion == "ldp":
            return False
        lo, hi = pricing.box(self.p, self.ratio)
        return bool((hi <= lo).any()) or self.others * self.ratio**2 <= min(self.run.rtol, CERTAIN) / 16

    def proofs(self, nu: np.ndarray) -> Iterator[tuple[Fraction, LIPCertificate]]:
        """What these prices prove, in the order in which it is to be tried: one-sided LIP's bound, where a solve stops early or
        floats end, is the last.
        """
        if self.notion == "lip-lower":
            pass
        elif self.certain:
            yield self._constant()
        elif self.values is not None:
            yield self._proof("knots", nu, self.pricer.price(nu, self.accuracy).knots)
            if self.notion == "ldp" and self.ratio > ROUNDED:
                # e^eps times a rounding error is proven away by larger prices, by less than that.
                for raised in nu + np.ldexp(np.abs(nu).max(), np.arange(-54, -44))[:, None]:
                    if time.perf_counter() > self.deadline:
                        break
                    yield self._proof("knots", raised, self.pricer.price(raised, self.accuracy).knots)
        elif self.notion == "lip":
            chord, level = pricing.box_chord(self.p, self.ratio)
            yield self._proof("chord", chord, np.array([[0.0, level]]))
            if self.pricer.visits_all:
                yield self._proof("vertices", nu + self.pricer.price(nu, self.accuracy).excess)
        else:
            priced = self.pricer.price(nu, self.accuracy)
            found = self._proof("chord" if len(priced.knots) else "vertices", nu + priced.excess, priced.knots)
            yield found
            if found[0] < 0:  # in integers, or with rare categories, more sets matter than in floats
                yield self._proof("chord", nu, self.relaxed.price(nu, pricing.RELAXED).knots)
        yield self._proof("simplex", nu[:0])

    def _proof(self, method: Method, nu: np.ndarray, knots: np.ndarray = NO_KNOTS) -> tuple[Fraction, LIPCertificate]:
        """In the units of the loss, with as many of the knots as a proof may have steps for; -1 where that is too few."""
        with np.errstate(over="ignore"):  # of categories that are too rare to count
            nu = np.clip(nu * self.unit**2, -(LARGEST**2), LARGEST**2)
        thin = -(-len(knots) * nu.size // STEPS) or 1
        knots = knots[::thin] * [self.unit, self.unit**2]
        certificate = LIPCertificate(method, tuple(nu.tolist()), tuple((t, v) for t, v in knots.tolist()))
        try:
            return certificate.proven(self.run.problem), certificate
        except Refusal:  # more sets matter than a proof may visit
            return Fraction(-1), certificate

    def _constant(self) -> tuple[Fraction, LIPCertificate]:
        """Prices for one output, whose posterior is the prior, that leave squares of `others`."""
        if self.values is not None:
            return self._proof("knots", np.zeros(self.p.size), np.zeros((1, 2)))
        # sum r_i^2 - nu.r is (1 - r_j)^2 and squares of the others
        nu, ends = np.where(np.arange(self.p.size) == np.argmax(self.p), 1.0, -1.0), [0.0]
        if self.notion == "ldp":  # between these levels the others bound r_j on either side
            ends = sorted([(1 + 2 * self.others + 2**-50) / self.ratio, 1 - self.ratio * self.others - 2**-50])
        return self._proof("chord", nu, np.array([[t, 1.0] for t in ends]))

    def _binary(self) -> _Found:
        """The two ends of the interval of posteriors; the dual is the line through them."""
        p, told = self.p, "closed form (two posteriors)"
        ends = extreme_posteriors(p, self.ratio, self.notion)
        ends = ends[[int(np.argmin(ends[:, 1])), int(np.argmax(ends[:, 1]))]]
        low, high = ends[:, 1]
        if not low < high:
            return self.closed(p[None], np.ones(1), "closed form (one output)")
        weights, gains = np.array([high - p[1], p[1] - low]) / (high - low), self.pricer.gain(ends)
        line = gains[0] + (gains[1] - gains[0]) / (high - low) * (np.array([0.0, 1.0]) - low)
        return self._polished(self.closed(ends, weights, told, line)[0]), told

    def _histogram(self) -> _Found:
        """The prior split into posteriors that fill up, against the chord bound; where they leave a gap, column generation, with
        every vertex visited where they are few.
        """
        pricer, tol, p = self.pricer, self.tolerance, self.p
        rng = np.random.default_rng(self.seed)
        if self.notion == "lip":
            few, found, told = pricer.visits_all, histogram.box_split(p, self.ratio), "the prior split into posteriors"
            tol = max(tol, self.run.rtol / 2 * (1 - found.bound))
            if found.bound - found.objective <= tol or not (few or p.size <= COLUMNS):
                return found, told
            if few:  # of a uniform prior the chord's prices prove the split optimal, once all vertices are looked at
                best = float(found.nu @ p) + pricer.price(found.nu, tol).excess
                if best - found.objective <= tol:
                    return self._polished(replace(found, bound=best)), told
            start = np.vstack([found.posteriors, pricing.filling_posteriors(p, self.ratio, rng, 4)])
            if not few:
                return self._filled(found, start, rng, tol)
        else:
            tau = (1 + self.ratio) / (2 * self.ratio)  # near the optimum: the chord there
            about = 1 - (1 + self.ratio) * tau * float(p @ p) + self.ratio * tau**2 * float(p @ p)
            # Splitting loses some more than the program over levels.
            found = histogram.levels(self.relaxed, max(self.run.rtol / 16 * about, pricing.RELAXED), self.deadline)
            tol, late = max(tol, self.run.rtol / 2 * (1 - found.bound)), time.perf_counter() > self.deadline
            wide = found.bound - found.objective > tol
            if not late and wide and len(pricer.price(found.nu, tol).knots):  # too many sets
                pricer, tol = self.relaxed, max(tol, pricing.RELAXED)
                wide = found.bound - found.objective > tol
            if late or not wide:
                self.pricer = self.relaxed
                return self._polished(replace(found, timed_out=wide)), f"{self.name}, program over levels"
            more = pricing.shuffled(found.posteriors, self.prior.weights, rng, 4 * p.size)
            start = np.vstack([found.posteriors, more])
        found = lp.generate(
            pricer, start, found.weights, found.nu, float(np.ptp(found.nu)) + 1 / p.size, tol=tol, deadline=self.deadline,
            solver=self.solver, patience=lp.PATIENCE if self.notion == "lip" else RELAXED_PATIENCE,
        )  # fmt: skip
        return self._polished(found), f"{self.name}, column generation"

    def _filled(self, split: lp.Generated, start: np.ndarray, rng: np.random.Generator, tol: float) -> _Found:
        """More posteriors that fill up than `split` has, against its bound."""
        p, rows = self.p, np.vstack([self.p[None], start])
        found, columns, master = split, 0, lp.Master(p, self.ratio, self.solver, boxed=False)
        for rounds in range(1, 13):
            master.add(rows, self.pricer.gain(rows))
            columns += len(rows)
            solved = master.within(self.deadline, None)
            if solved is None:
                found = replace(found, timed_out=True)
                break
            objective, nu, weights, _ = solved
            late, missing = time.perf_counter() > self.deadline, split.bound - objective > tol
            used = master.used(weights)
            found = lp.Generated(*used, objective, split.nu, split.bound, columns, rounds, late and missing)
            if late or not missing:
                break
            rows = pricing.filling_posteriors(p, self.ratio, rng, 6, nu)
        posteriors, weights = lp.polish(found, p)
        return replace(
            found, posteriors=posteriors, weights=weights
        ), f"{self.name}, filling posteriors against the chord bound"

    def _polished(self, found: lp.Generated) -> lp.Generated:
        """With prices at which the used posteriors have reduced cost 0 to full precision, if they are better."""
        pricer, p, nu = self.pricer, self.p, found.nu
        posteriors, weights = lp.polish(found, p)
        missing = pricer.gain(posteriors) - posteriors @ nu
        sharp = nu + np.linalg.lstsq(posteriors / p, missing, rcond=None)[0] / p
        excess, again = (pricer.price(prices, self.accuracy).excess for prices in (nu, sharp))
        if float(sharp @ p) + again < float(nu @ p) + excess:
            nu = sharp + again
        return replace(found, posteriors=posteriors, weights=weights, nu=nu)


class _Best:
    """The best mechanism and the best proof that a search came to."""

    found: lp.Generated
    solver: str
    mechanism: LIPMechanism
    certificate: LIPCertificate

    def __init__(self, work: _Work) -> None:
        self.work, self.run, self.timed_out = work, work.run, False
        self.value, self.proven = math.inf, Fraction(-1)

    @property
    def wide(self) -> bool:
        return not 1 - float(self.proven) / self.value <= self.run.rtol

    def search(self) -> None:
        """Solve. Where linear programs fail rare categories are merged, more and more; where floats hold neither mechanism nor
        prices it is one output if eps hides all up to the tolerance, or else every category for itself, answered at random.
        """
        work, failure, ladder = self.work, None, self._rare()
        for rare in ladder:
            try:
                self._take(*(self._without(rare) if rare.any() else work.solve(self.run.method)))
            except SolverFailure as error:
                failure = failure or error
            if not self.wide or (math.isfinite(self.value) and time.perf_counter() > work.deadline):
                return
        if not ladder[-1].any() and failure is None:
            return
        if math.expm1(-work.eps) ** 2 <= self.run.rtol:  # what one-sided LIP gains, as a share of the variance
            self._take(*work.closed(work.p[None], np.ones(1), "closed form (one output)"))
        elif failure is not None and (self.run.method != "auto" or self.run.solver is not None):
            raise failure
        else:
            joint = work.p * (1 + (work.ratio - 1) * np.eye(work.p.size))
            mass = joint.sum(axis=1)
            self._take(*work.closed(joint / mass[:, None], mass / mass.sum(), "randomised response"))

    def _take(self, found: lp.Generated, solver: str) -> None:
        """Keep the mechanism, and what its prices prove, if they are better than what there is."""
        work, problem = self.work, self.run.problem
        privacy: Any = problem.privacy
        try:
            mechanism = (
                LIPMechanism.candid(privacy, work.prior, work.task) if work.notion == "lip-lower" else
                LIPMechanism.private(privacy, work.prior, found.posteriors, found.weights, work.task)
            )  # fmt: skip
        except ValueError as error:
            raise SolverFailure(f"the solver's answer is too inexact: {error}") from None
        self.timed_out |= found.timed_out
        value = mechanism.enclose(problem.objective)[1]
        if value < self.value:
            self.found, self.solver, self.mechanism, self.value = found, solver, mechanism, value
        self.run.progress("certificate")
        for proven, certificate in work.proofs(found.nu):
            if proven > self.proven:
                self.certificate, self.proven = certificate, proven
            if not self.wide:
                break

    def _rare(self) -> list[np.ndarray]:
        """Categories that are so rare that they count for nothing, and where that is of no avail more and more of them.

        Linear programs do not see what prices below every tolerance ask.
        """
        work, p = self.work, self.work.p
        none = np.zeros(p.size, dtype=bool)
        if work.notion == "lip-lower" or self.run.method != "auto" or self.run.solver is not None:
            return [none]
        lost = p if work.values is None else p * (1 + np.abs(work.values)) ** 2
        unseen = (p <= UNSEEN) & (lost <= DEAR * work.least)
        counts = np.where(unseen, lost * work.ratio / work.tolerance, math.inf)
        levels = {int(rare.sum()): rare for rare in (counts <= share for share in RARE)}
        return [rare for number, rare in levels.items() if number < p.size - 1] or [none]

    def _without(self, rare: np.ndarray) -> _Found:
        """`solve` with rare categories answered as the others whose values are nearest."""
        kept, x = np.flatnonzero(~rare), self.work.values
        near = 0 if x is None else np.abs(np.subtract.outer(x, x[kept])).argmin(axis=1)
        groups = np.where(rare, near, np.cumsum(~rare) - 1)
        mass = np.bincount(groups, self.work.p)
        return self.work.merged(Prior.of(mass / mass.sum()), kept, groups, "auto", "rare categories as others")


def extreme_posteriors(p: np.ndarray, ratio: float, notion: str) -> np.ndarray:
    """All extreme points of the set Q of posteriors that the guarantee allows, one in each row."""
    if notion == "lip":
        return pricing.box_vertices(p, ratio)
    if notion == "ldp":
        return pricing.cone_vertices(p, ratio)
    return p / ratio + (1 - 1 / ratio) * np.eye(p.size)


def build_model(
    prior: PriorLike, eps: float, task: Aggregate, notion: str = "lip", posteriors: ArrayLike | None = None
) -> LinearProgram:
    """The linear program over posteriors: one weight for each extreme one, up to 14 categories, or for each of `posteriors`.

    Its value is the largest E phi(posterior), in the units of the loss; the mean square error is V minus it. The rows "prior" say
    that the mean posterior is the prior, each divided by its probability; the duals of category i are P_i nu_i.
    """
    exact = Prior.of(prior)
    if posteriors is None and len(exact) > MOST_ENUMERATED:
        most = f"extreme posteriors are enumerated up to {MOST_ENUMERATED}"
        raise ValueError(f"prior has {len(exact)} categories, which is not allowed here: {most}")
    require.choice("notion", notion, NOTIONS)
    p = exact.probabilities
    if posteriors is None:
        posteriors = extreme_posteriors(p, math.exp(require.epsilon(eps)), notion)
    rows, one = np.asarray(posteriors), np.ones(p.size)
    return LinearProgram(
        task.gain(rows, p), (rows / p).T, one, one, maximise=True, name="posteriors",
        blocks={"prior": slice(0, p.size)}, variables={"weights": slice(0, len(rows))},
    )  # fmt: skip

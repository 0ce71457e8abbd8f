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
from collections.abc import Mapping, Sequence, Sized
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
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
from optdp.exact import require
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
    values = objective.task.values or (0.0, 1.0)
    if len(set(values)) == 1:
        return "the values must not all be equal: there is nothing to estimate"
    if max(map(abs, values)) > LARGEST:
        return f"the values must be at most {LARGEST:g} in size"
    if objective.task.values is not None and _centred(objective)[1] < FINEST:
        return f"the values must have a standard deviation of at least {FINEST:g} under the prior"
    if not isinstance(problem.family, AllMechanisms):
        return "the family must be all mechanisms"
    return None if not problem.constraints else "there must be no constraints"


def design(run: Run, *, seed: int = 0) -> Solution:
    """See `solve_lip`."""
    if run.solver is not None and run.method == "cvxpy":
        raise ValueError("solver is not allowed with the method 'cvxpy', which brings its own")
    work = _Work(run, require.integer("seed", seed, low=0))
    prior, task, notion, d = work.prior, work.task, work.notion, work.size
    run.progress(f"{task.kind} over {len(prior)} categories, {notion}")
    found, certificate, solver, mechanism = work.made(run.method)
    run.progress("certificate")
    extreme = {"lip": f"at most {d} 2^{d - 1}", "lip-lower": f"{d}", "ldp": f"2^{d} - 2"}[notion]
    solution = partial(
        run.solution, mechanism, variables=f"weights of extreme posteriors ({found.columns} used of {extreme})",
        constraints=f"the mean posterior is the prior: {d} rows", solver=solver, objective=found.objective, bound=found.bound,
        message=f"{counted(found.rounds, 'round')}{prior.missing}", stopped=found.timed_out, build=build_model,
        arguments=(prior, work.eps, task, notion, None if len(prior) <= MOST_ENUMERATED else found.posteriors),
    )  # fmt: skip
    try:
        made = solution(certificate)
    except Refusal:  # in integers, or with rare categories, more sets matter than in floats
        if certificate.method != "vertices":
            raise
        made = solution(work.chord(found.nu))
    if made.gap > run.rtol:
        # Prices of a solve that stops early, or where floats end, may prove less than one-sided LIP.
        least = _certificate("simplex", np.zeros(0), np.zeros(0))
        proven = least.bound(run.problem).value
        if proven > made.lower_bound:
            return solution(least, bracket=(proven, made.value))
    return made


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


def _centred(objective: BayesRisk) -> tuple[np.ndarray, float]:
    """The values of a sum less their mean, and their standard deviation: of floats that have no squares too."""
    prior, values = objective.prior, objective.task.values
    assert values is not None
    x = np.array(values) - float(sum(q * Fraction(v) for q, v in zip(prior.exact, values, strict=True)))
    largest = 2.0 ** math.frexp(float(np.abs(x).max()))[1]
    return x, largest * math.sqrt(float(prior.probabilities @ (x / largest) ** 2))


#: A mechanism as posteriors and weights with the dual point, in the units of the loss; its certificate; how it was found.
_Found = tuple[lp.Generated, LIPCertificate, str]


def _certificate(method: Method, nu: np.ndarray, knots: np.ndarray) -> LIPCertificate:
    """With as many of the knots as a proof may have steps for (none where there is no dual point)."""
    thin = -(-len(knots) * nu.size // STEPS) or 1
    return LIPCertificate(method, tuple(nu.tolist()), tuple((t, v) for t, v in knots[::thin].tolist()))


class _Work:
    """One problem in the solver's units: values centred at the prior mean, with variance between 1 and 4."""

    def __init__(self, run: Run, seed: int) -> None:
        privacy: Any = run.problem.privacy
        self.problem = run.problem
        self.privacy, self.prior, self.task = privacy, run.problem.objective.prior, run.problem.objective.task
        self.notion = "ldp" if isinstance(privacy, LDP) else "lip-lower" if privacy.lower_only else "lip"
        self.eps, self.ratio, self.p = float(privacy.eps), math.exp(float(privacy.eps)), self.prior.probabilities
        self.run, self.rtol, self.deadline, self.seed = run, run.rtol, run.began + run.time_limit, seed
        self.solver = Clarabel() if run.method == "cvxpy" else run.solver
        self.name = "HiGHS" if self.solver is None else self.solver.name
        #: Values in the solver's units, the unit (a power of two), and the total variance in the solver's units.
        self.values, self.unit, self.variance = None, 1.0, 1.0 - float(self.p @ self.p)
        if self.task.values is not None:
            x, deviation = _centred(run.problem.objective)
            self.unit = 2.0 ** (math.frexp(deviation)[1] - 1)
            self.values = x / self.unit
            self.variance = float(self.p @ self.values**2)
        #: Categories with equal values may be one: their rows' mean is as good. The solver sees one of each group.
        self.groups = np.arange(self.p.size)
        if self.task.values is not None and self.notion != "lip-lower" and run.method in ("auto", "columns"):
            self.groups = np.unique(self.task.values, return_inverse=True)[1].ravel()
            if self.size == self.p.size:
                self.groups = np.arange(self.p.size)

    @property
    def size(self) -> int:
        """How many categories the solver sees."""
        return int(self.groups.max()) + 1

    @property
    def _first(self) -> np.ndarray:
        """One category of each that the solver sees."""
        return np.unique(self.groups, return_index=True)[1]

    @cached_property
    def pricer(self) -> Any:
        """The pricing problem that fits, exact wherever it can be."""
        lip = self.notion == "lip"
        if self.values is not None:
            p = np.bincount(self.groups, self.p) if self.size < self.p.size else self.p
            return (pricing.BoxSum if lip else pricing.ConeSum)(p, self.values[self._first], self.ratio)
        return (pricing.BoxHistogram if lip else pricing.ConeHistogram)(self.p, self.ratio, self.prior.weights)

    def solve(self, method: str) -> _Found:
        d = len(self.prior)
        if method in ("enumeration", "cvxpy") and d > MOST_ENUMERATED:
            most = f"extreme posteriors are enumerated up to {MOST_ENUMERATED}; use 'columns'"
            raise ValueError(f"backend = {method!r} is not allowed for {d} categories: {most}")
        if self.notion == "lip-lower":
            return self._simplex()
        if self.certain:
            return self._constant()
        if method == "auto" and self.size == 2:
            return self._binary()
        if method in ("enumeration", "cvxpy") or (method == "auto" and self.size <= ENUMERATED):
            pricer, p = self.pricer, self.pricer.probabilities
            rows = extreme_posteriors(p, self.ratio, self.notion)
            found = lp.enumerate_all(p, self.ratio, rows, pricer.gain(rows), self.solver)
            return self._generated(found, f"{self.name}, all extreme posteriors")
        if self.task.values is None:
            return self._histogram()
        found = lp.multilevel(self.pricer, tol=self._tolerance(), deadline=self.deadline, solver=self.solver)
        return self._generated(found, f"{self.name}, column generation (exact pricing)")

    def made(self, method: str) -> tuple[lp.Generated, LIPCertificate, str, LIPMechanism]:
        """The solution with its mechanism. Where floats hold neither it is one output if eps hides all up to the tolerance, or
        else every category for itself, answered at random; where there are several, the best of each.
        """
        levels, tried, failure, wide = self._rare(method), [], None, True
        for rare in levels:
            try:
                tried.append(self._exact(self._merged(rare) if rare.any() else self.solve(method)))
            except SolverFailure as error:
                failure = failure or error
                continue
            wide = bool(levels[-1].any()) and 1 - float(self._proven(tried[-1][1])) / self._value(tried[-1]) > self.rtol
            if not wide or time.perf_counter() > self.deadline:
                break
        if wide:
            if math.expm1(-self.eps) ** 2 <= self.rtol:  # what one-sided LIP gains, as a share of the variance
                found, _, solver = self._constant()
            elif failure is not None and not levels[-1].any():
                raise failure
            else:
                joint = self.p * (1 + (self.ratio - 1) * np.eye(self.p.size))
                mass = joint.sum(axis=1)
                rows, weights, none = joint / mass[:, None], mass / mass.sum(), np.zeros(0)
                gain = float(self.task.gain(rows, self.p) @ weights)
                found, solver = (
                    lp.Generated(rows, weights, gain, none, gain, self.p.size, 0, False),
                    "randomised response",
                )
            tried.append(self._exact((found, _certificate("simplex", np.zeros(0), np.zeros(0)), solver)))
        if len(tried) == 1:
            return tried[0]
        found, _, solver, mechanism = min(tried, key=self._value)
        found = replace(found, timed_out=any(one[0].timed_out for one in tried))
        return found, max((one[1] for one in tried), key=self._proven), solver, mechanism

    def _value(self, made: tuple[Any, Any, str, LIPMechanism]) -> float:
        return made[3].enclose(self.problem.objective)[1]

    def _rare(self, method: str) -> list[np.ndarray]:
        """Categories that are so rare that they count for nothing, and where that is of no avail more and more of them.

        Linear programs do not see what prices below every tolerance ask.
        """
        none = np.zeros(self.p.size, dtype=bool)
        if self.notion == "lip-lower" or method != "auto" or self.run.solver is not None:
            return [none]
        lost = self.p if self.values is None else self.p * (1 + np.abs(self.values)) ** 2
        unseen = (self.p <= UNSEEN) & (lost <= DEAR * self._least())
        counts = np.where(unseen, lost * self.ratio / self._tolerance(), math.inf)
        levels = {int(rare.sum()): rare for rare in (counts <= share for share in RARE)}
        return [rare for number, rare in levels.items() if number < self.p.size - 1] or [none]

    def _merged(self, rare: np.ndarray) -> _Found:
        """`solve` with rare categories answered as the others whose values are nearest."""
        kept = np.flatnonzero(~rare)
        near = 0 if self.values is None else np.abs(np.subtract.outer(self.values, self.values[kept])).argmin(axis=1)
        groups = np.where(rare, near, np.cumsum(~rare) - 1)
        merged = np.bincount(groups, self.p)
        prior = Prior.of(merged / merged.sum(), [self.prior.categories[i] for i in kept])
        task = self.task if self.task.values is None else Aggregate("sum", tuple(self.task.values[i] for i in kept))
        privacy = self.privacy if self.notion == "ldp" else replace(self.privacy, prior=prior)
        problem = Problem(privacy, Alphabet(prior.categories), BayesRisk(task, prior))
        inner = _Work(replace(self.run, problem=problem), self.seed)
        found, _, solver = inner.solve("auto")
        posteriors, nu = (found.posteriors / inner.p)[:, groups] * self.p, found.nu[groups] / self.unit**2
        if self.certain:
            constant, certificate, _ = self._constant()
            nu = constant.nu
        elif self.values is None and self.notion == "lip":
            few = [self._priced(nu)[1]] if self.pricer.visits_all else []
            certificate = max([self.chord(nu), *few], key=self._proven)
        else:
            nu, certificate = self._priced(nu)
        return replace(found, posteriors=posteriors, nu=nu), certificate, f"{solver}, rare categories as others"

    def _proven(self, certificate: LIPCertificate) -> Fraction:
        try:
            return certificate.proven(self.problem)
        except Refusal:  # more sets matter than a proof may visit
            return Fraction(-1)

    def _priced(self, nu: np.ndarray) -> tuple[np.ndarray, LIPCertificate]:
        return self._proof(nu, self.pricer.price(nu[self._first], self._accuracy()))

    def _proof(self, nu: np.ndarray, priced: pricing.Priced) -> tuple[np.ndarray, LIPCertificate]:
        """The prices in the units of the loss, and their certificate."""
        if len(priced.knots) == 0:
            nu = nu + priced.excess
        method: Method = "knots" if self.task.values is not None else "chord" if len(priced.knots) else "vertices"
        with np.errstate(over="ignore"):  # of categories that are too rare to count
            nu = np.clip(nu * self.unit**2, -(LARGEST**2), LARGEST**2)
        return nu, _certificate(method, nu, priced.knots * [self.unit, self.unit**2])

    def _accuracy(self) -> float:
        """To what the certificate's prices are looked at."""
        return self._tolerance() / 100 if self.task.values else ROUNDING

    def _exact(self, made: _Found) -> tuple[lp.Generated, LIPCertificate, str, LIPMechanism]:
        found, certificate, solver = made
        try:
            mechanism = LIPMechanism.private(self.privacy, self.prior, found.posteriors, found.weights, self.task)
            return found, certificate, solver, mechanism
        except ValueError as error:
            raise SolverFailure(f"the solver's answer is too inexact: {error}") from None

    @cached_property
    def others(self) -> float:
        """The probability of all categories but the most probable one."""
        return float(1 - max(self.prior.exact))

    @property
    def certain(self) -> bool:
        """Whether one category is all but certain: what can be learned is then a share of about `others` of the loss, and floats
        do not hold it.
        """
        if self.values is not None and self.notion == "ldp":
            return False
        lo, hi = pricing.box(self.p, self.ratio)
        return bool((hi <= lo).any()) or self.others * self.ratio**2 <= min(self.rtol, CERTAIN) / 16

    def _constant(self) -> _Found:
        """One output, whose posterior is the prior, with prices that leave squares of `others`."""
        p, ratio = self.p, self.ratio
        method: Method = "knots"
        nu, knots = np.zeros(p.size), np.zeros((1, 2))
        if self.values is None:  # sum r_i^2 - nu.r is (1 - r_j)^2 and squares of the others
            method = "chord"
            nu, knots = np.where(np.arange(p.size) == np.argmax(p), 1.0, -1.0), np.array([[0.0, 1.0]])
            if self.notion == "ldp":  # between these levels the others bound r_j on either side
                ends = (1 + 2 * self.others + 2**-50) / ratio, 1 - ratio * self.others - 2**-50
                knots = np.array([[t, 1.0] for t in sorted(ends)])
        gain = 0.0 if self.values is not None else float(p @ p)
        found = lp.Generated(p[None], np.ones(1), gain * self.unit**2, nu, gain * self.unit**2, 1, 0, False)
        return found, _certificate(method, nu, knots), "closed form (one output)"

    def _tolerance(self) -> float:
        return max(0.5 * self.rtol * self._least(), 1e-13)

    def _least(self) -> float:
        """The error under one-sided LIP, which asks least, so that it is below every other's."""
        return (2 / self.ratio - 1 / self.ratio**2) * self.variance

    def _simplex(self) -> _Found:
        """As many extreme posteriors as categories: their weights are the prior."""
        vertices, none = extreme_posteriors(self.p, self.ratio, self.notion), np.zeros(0)
        gain = float(self.task.gain(vertices, self.p) @ self.p)
        found = lp.Generated(vertices, self.p, gain, none, gain, self.p.size, 0, False)
        return found, _certificate("simplex", none, none), "closed form (simplex)"

    def _binary(self) -> _Found:
        """The two ends of the interval of posteriors; the dual is the line through them."""
        p, pricer = self.pricer.probabilities, self.pricer
        ends = extreme_posteriors(p, self.ratio, self.notion)
        ends = ends[[int(np.argmin(ends[:, 1])), int(np.argmax(ends[:, 1]))]]
        low, high = ends[:, 1]
        if not low < high:
            return self._constant()
        weights = np.array([high - p[1], p[1] - low]) / (high - low)
        gain_low, gain_high = pricer.gain(ends)
        nu = gain_low + (gain_high - gain_low) / (high - low) * (np.array([0.0, 1.0]) - low)
        objective = float(weights @ pricer.gain(ends))
        exact = lp.Generated(ends, weights, objective, nu, objective, 2, 0, False)
        return self._generated(exact, "closed form (two posteriors)")

    def _histogram(self) -> _Found:
        """The prior split into posteriors that fill up, against the chord bound; where they leave a gap, column generation, with
        every vertex visited where they are few.
        """
        pricer, tol, p = self.pricer, self._tolerance(), self.p
        rng = np.random.default_rng(self.seed)
        if self.notion == "lip":
            few, found = pricer.visits_all, histogram.box_split(p, self.ratio)
            tol = max(tol, self.rtol / 2 * (1 - found.bound))
            if found.bound - found.objective <= tol or not (few or p.size <= COLUMNS):
                return self._chord(found)
            if few:  # of a uniform prior the chord's prices prove the split optimal, once all vertices are looked at
                best = float(found.nu @ p) + pricer.price(found.nu, tol).excess
                if best - found.objective <= tol:
                    return self._generated(replace(found, bound=best), "the prior split into posteriors")
            start = np.vstack([found.posteriors, pricing.filling_posteriors(p, self.ratio, rng, 4)])
            if not few:
                return self._filled(found, start, rng, tol)
            centre, radius = found.nu, float(np.ptp(found.nu)) + 1 / p.size
        else:
            relaxed = pricing.ConeHistogramRelaxed(p, self.ratio, self.prior.weights)
            tau = (1 + self.ratio) / (2 * self.ratio)  # near the optimum: the chord there
            about = 1 - (1 + self.ratio) * tau * float(p @ p) + self.ratio * tau**2 * float(p @ p)
            # Splitting loses some more than the program over levels.
            found = histogram.levels(relaxed, max(self.rtol / 16 * about, pricing.RELAXED), self.deadline)
            tol, late = max(tol, self.rtol / 2 * (1 - found.bound)), time.perf_counter() > self.deadline
            wide = found.bound - found.objective > tol
            if not late and wide and len(pricer.price(found.nu, tol).knots):  # too many sets
                pricer, tol = relaxed, max(tol, pricing.RELAXED)
                wide = found.bound - found.objective > tol
            if late or not wide:
                self.pricer, found = relaxed, replace(found, timed_out=wide)
                return self._generated(found, f"{self.name}, program over levels")
            start = pricing.shuffled(found.posteriors, self.prior.weights, rng, 4 * p.size)
            start, centre, radius = np.vstack([found.posteriors, start]), found.nu, float(np.ptp(found.nu)) + 1 / p.size
        found = lp.generate(
            pricer, start, found.weights, centre, radius, tol=tol, deadline=self.deadline, solver=self.solver,
            patience=lp.PATIENCE if self.notion == "lip" else RELAXED_PATIENCE,
        )  # fmt: skip
        return self._generated(found, f"{self.name}, column generation")

    def chord(self, nu: np.ndarray) -> LIPCertificate:
        """The certificate of the chord bound: with these prices under LDP, and those of its own under LIP."""
        if self.notion == "lip":
            return self._chord(histogram.box_split(self.p, self.ratio))[1]
        relaxed = pricing.ConeHistogramRelaxed(self.p, self.ratio, self.prior.weights)
        return _certificate("chord", nu, relaxed.price(nu, pricing.RELAXED).knots)

    def _chord(self, found: lp.Generated) -> _Found:
        """The certificate of the chord bound."""
        level = np.array([[0.0, pricing.box_chord(self.p, self.ratio)[1]]])
        return found, _certificate("chord", found.nu, level), "the prior split into posteriors"

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
        made = replace(found, posteriors=posteriors, weights=weights)
        return *self._chord(made)[:2], f"{self.name}, filling posteriors against the chord bound"

    def _generated(self, found: lp.Generated, solver: str) -> _Found:
        """Into the units of the loss, with the knots of the proof."""
        pricer, p, groups = self.pricer, self.pricer.probabilities, self.groups
        posteriors, weights = lp.polish(found, p)
        unit, nu, accuracy = self.unit, found.nu, self._accuracy()
        # Prices at which the used posteriors have reduced cost 0 to full precision, if they are better.
        priced = pricer.price(nu, accuracy)
        missing = pricer.gain(posteriors) - posteriors @ nu
        sharp = nu + np.linalg.lstsq(posteriors / p, missing, rcond=None)[0] / p
        again = pricer.price(sharp, accuracy)
        if float(sharp @ p) + again.excess < float(nu @ p) + priced.excess:
            nu, priced = sharp + again.excess, pricer.price(sharp + again.excess, accuracy)
        if self.size < self.p.size:
            posteriors, solver = (posteriors / p)[:, groups] * self.p, f"{solver}, equal values as one"
        prices, certificate = self._proof(nu[groups], priced)
        found = replace(
            found, posteriors=posteriors, weights=weights, nu=prices, objective=found.objective * unit**2,
            bound=found.bound * unit**2,
        )  # fmt: skip
        if isinstance(pricer, pricing.ConeSum) and self.ratio > ROUNDED:
            # e^eps times a rounding error is proven away by larger prices, by less than that: the least that suffice.
            best = certificate.proven(self.problem)
            for shift in np.ldexp(np.abs(nu).max(), np.arange(-54, -44)):
                if time.perf_counter() > self.deadline:
                    break
                raised, other = self._proof((nu + shift)[groups], pricer.price(nu + shift, accuracy))
                if (proven := other.proven(self.problem)) > best:
                    best, certificate, found = proven, other, replace(found, nu=raised)
        return found, certificate, solver


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

"""`optdp.recommend`: which mechanism is best for what one wants to learn, by the computed error of the estimate.

The error of an estimate about the people asked is the noise's: with the best function g of the output
(`optdp.statistics.estimate`) n times its variance is E Var[g(Y) | x], averaged over the population. Under a prior that is one
number. Without one it is the largest over all populations,

    max_P min_g sum_x P(x) Var[g(Y) | x]  =  min_g max_x Var[g(Y) | x],

(concave in P, convex in g), found by shifting P to the inputs whose variance is largest. g(Y) is itself an unbiased mechanism, so
that the certified bound of `solve_kernel(unbiased=True)` holds for every row of the table for the goal "mean"; those of
`solve_frequency` and `solve_kernel` likewise for "frequencies" and "answers".

Under a prior the least error of a mean is that of the unbiased mechanism with the least variance on average over the prior, and
the least error of an answer that of the kernel with the least loss on average: both are solved for, and ranked with the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from optdp.design.composite import solve_composite
from optdp.design.frequency import solve_frequency
from optdp.design.kernel import solve_kernel
from optdp.design.piecewise import solve_piecewise
from optdp.design.progress import Progress, ProgressLike
from optdp.exact import Number, require
from optdp.exact.enclosures import rounded_up
from optdp.exact.numbers import above, border
from optdp.mechanisms import baselines
from optdp.mechanisms.base import Mechanism
from optdp.problem import LDP, Average, Density, Prior, PriorLike, Problem, Unbiased, WorstCase
from optdp.problem.domains import Alphabet, Circle, DomainLike, Interval, OneHot, as_domain
from optdp.statistics.channel import FLOATS, Channel, mixed, refuse_few_floats, refuse_width
from optdp.statistics.estimate import choose_bins, simulated_quantile
from optdp.statistics.intervals import unbiased
from optdp.statistics.means import ACCURATE, affine_mean, mean_tables, output_variances
from optdp.statistics.result import NotIdentified
from optdp.statistics.tables import Printed, frame

if TYPE_CHECKING:
    import pandas as pd

GOALS = ("mean", "quantile", "distribution", "frequencies", "answers")
#: The most people.
PEOPLE = 10**12
#: Bins in which distributions are compared, and steps of the search for the worst population.
BINS, STEPS = 8, 300
#: Equal parts of a domain in which a population is spread evenly where the error of a quantile is simulated; the most people for
#: it, and how often their number is changed until the error is the wanted one.
EVEN, CROWD, CHANGES = 240, 10**6, 12
#: Mechanisms that are compared for the least eps of a quantile: those that send what they are proven for and are the best ones.
FOR_QUANTILES = ("piecewise, abs", "piecewise, squared", "moved SW")
#: So many people that what a mechanism cannot tell is all that matters.
MANY = 10**6
#: The relative accuracy of the largest variance.
GAP = 0.01
#: How exactly kernels are solved for a table.
RTOL = 0.01
#: Points of a prior for which a kernel is designed, and into how many points a density is read.
ATOMS, POINTS = 32, 240


@dataclass(frozen=True)
class Choice:
    """A row of a recommendation.

    - `name`, `mechanism`; `kind`: "optimum" (of its family, certified), "designed" (for the prior, by a program whose bound may
      be loose) or "published".
    - `error`: of the estimate from n people: the standard error of a mean, the root mean square error of a quantile as 64
      simulated surveys tell it (of a million people where there are more, and then as it falls like 1/sqrt(n)), root mean square
      standard error of probabilities, the expected loss of an answer; `unit`: times the square root of n (for answers: the same).
    - `ratio`: to the smallest error of the table.
    - `people`: how many are needed for the wanted error, if one was given, None where 10^12 are too few; of a quantile for the
      recommended mechanism alone, and None where a million are too few.
    - `exact`: whether what is sent is proven to be private (False: in real arithmetic only).
    """

    name: str
    mechanism: Mechanism
    kind: str
    error: float
    unit: float
    ratio: float
    people: int | None
    exact: bool


@dataclass(frozen=True, repr=False)
class Recommendation(Printed):
    """Mechanisms in the order of their errors for a goal; `best`, `mechanism`: the first that is private as it is sent.

    - `rows`: each has `name`, `mechanism`, `kind` ("optimum", "designed" for the prior, "published"), `error` (of the estimate
      from n people), `ratio` (to the smallest error), `people` (needed for the wanted error) and `exact` (whether what is sent is
      proven to be private); `refused`: (name, why the goal is not identified by its outputs).
    - `bound`: no mechanism's unbiased estimate can have a smaller error, of "answers" no answer (None: not known); an estimate
      that is not unbiased can, such as frequencies moved to probabilities. `statement`: what the errors are.
    - `eps`, `n`, `goal`: what was asked.
    """

    goal: str
    eps: Number
    n: int
    statement: str
    rows: tuple[Choice, ...]
    refused: tuple[tuple[str, str], ...]
    bound: float | None

    @property
    def best(self) -> Choice:
        """The first row that is private as it is sent."""
        return next(row for row in self.rows if row.exact)

    @property
    def mechanism(self) -> Mechanism:
        """That of the best row."""
        return self.best.mechanism

    def __getitem__(self, name: str) -> Choice:
        return next(row for row in self.rows if row.name == name)

    def to_frame(self) -> pd.DataFrame:
        """A pandas table. **Raises** RuntimeError without pandas (`optdp[tables]`)."""
        columns: dict[str, Any] = {k: [getattr(r, k) for r in self.rows] for k in ("kind", "error", "ratio", "exact")}
        if self.bound is not None:
            columns["to_bound"] = [r.error / self.bound for r in self.rows]
        if any(row.people is not None for row in self.rows):
            columns["people"] = [r.people for r in self.rows]
        return frame(columns, [r.name for r in self.rows])

    def __repr__(self) -> str:
        return f"<Recommendation for {self.goal!r}: {self.best.name}, error {self.best.error:.4g}; {len(self.rows)} mechanisms>"

    def __str__(self) -> str:
        width = max(len(row.name) for row in self.rows)
        lines = [f"{self.statement}; recommended: {self.best.name}"]
        for row in self.rows:
            to = "" if self.bound is None else f"  {row.error / self.bound:6.3f} x bound"
            people = "" if row.people is None else f"  {row.people} people"
            ideal = "" if row.exact else "  (private in real arithmetic only)"
            lines.append(
                f"  {row.name:{width}}  {row.error:10.4g}  {row.ratio:6.3f} x best{to}{people}  {row.kind}{ideal}"
            )
        lines += [f"  {name:{width}}  not identified" for name, _ in self.refused]
        return "\n".join(lines)


def recommend(
    domain: DomainLike, eps: Number | str | None = None, goal: str = "mean", *, n: int | None = None,
    error: float | None = None, prior: PriorLike | str | None = None, q: float | None = None, progress: ProgressLike = None,
) -> Recommendation:  # fmt: skip
    """Mechanisms ranked by the error that the estimate will have for a goal: certified optima and published ones.

    **Arguments:**

    - `domain`: of one answer: a pair (lower, upper), an `optdp.Interval` or `Circle`; an `Alphabet` or `OneHot` for categories.
    - `eps`: the privacy parameter of one answer, in (0, 30]; None, but not for "answers": one that gives the wanted `error` with
      `n` people, the least up to 2 % (for quantiles: up to the simulation's noise; kernels, which may need less, count for means
      without a prior alone).
    - `goal`: "mean"; "quantile" (`q`, None: the median); "distribution": probabilities of 8 bins; "frequencies": of categories;
      "answers": each answer by itself, in the mean absolute error.
    - `n`: the number of people; None: 1,000, or as many as the wanted `error` needs with the recommended mechanism. It
      plays no part for "answers".
    - `error`: the wanted error: the standard error of a mean, the root mean square error of a quantile, the root mean square
      standard error of probabilities. Not for "answers", whose error is the same for any number of people.
    - `prior`: how inputs are distributed: an `optdp.Prior` over points, a pair (points, probabilities), an `optdp.Density`,
      "uniform"; None: the worst case over all populations ("uniform" for quantiles, whose error depends on the density). It
      decides which mechanism is best and what errors to expect, never whether an estimate is right: means stay unbiased.
    - `progress`: see `optdp.solve`.

    **Returns** a `Recommendation`; printed, it is a table. **Raises** TypeError or ValueError naming the argument.

        >>> import optdp
        >>> best = optdp.recommend(optdp.OneHot(10), 1.0, "frequencies", n=10_000).best
        >>> best.name, round(best.error, 4)
        ('solve_frequency', 0.0171)
    """
    require.choice("goal", goal, GOALS)
    tell = Progress(progress)
    if n is not None:
        n = require.integer("n", n, low=1, high=PEOPLE)
    if error is not None and goal == "answers":
        raise ValueError(
            "error is not allowed with goal = 'answers': the error of an answer is the same for any number of people"
        )
    if error is not None:
        error = require.real("error", error, low=0.0, open_low=True)
    area: Any = domain if isinstance(domain, Alphabet | OneHot) else as_domain(domain)
    if isinstance(area, Alphabet | OneHot) != (goal == "frequencies"):
        raise ValueError(
            f"goal = {goal!r} is not allowed on {area}: categories have frequencies, numbers the other goals"
        )
    if isinstance(area, Circle) and goal in ("mean", "quantile"):
        raise ValueError(f"goal = {goal!r} is not allowed on {area}: use 'distribution' or 'answers'")
    if isinstance(area, Interval | Circle):
        refuse_width("domain", area)
        refuse_few_floats("domain", area, FLOATS)
    if q is not None and goal != "quantile":
        raise ValueError(f"q = {q!r} is not allowed with goal = {goal!r}: it is for goal = 'quantile'")
    q = require.real("q", 0.5 if q is None else q, low=0.0, high=1.0, open_low=True, open_high=True)
    if eps is None:
        if goal == "answers":
            raise ValueError("eps = None is not allowed with goal = 'answers': it must be a number")
        if n is None or error is None:
            raise ValueError("eps is missing: give eps, or both n and error, from which it is computed")
        eps = _least_eps(area, goal, n, error, prior, q, tell)
    return _ranked(area, require.exact_epsilon(eps), goal, n, error, prior, q, tell, quick=False)


def _least_eps(area: Any, goal: str, n: int, error: float, prior: Any, q: float, tell: Progress) -> float:
    """Without kernels, which could only need less, but for means without a prior: there the unbiased one is the best of all, and
    by itself faster than the others.
    """

    def enough(eps: float) -> bool:
        if goal == "mean" and prior is None:
            tell(f"{goal}: unbiased kernel")
            kernel = _solved(solve_kernel, eps, unbiased=True, domain=area, rtol=RTOL)
            return _unit(kernel, goal, None, q, n) / math.sqrt(n) <= error
        return _ranked(area, eps, goal, n, None, prior, q, tell, quick=True).best.error <= error

    eps = least_eps(enough)
    if eps is None:
        raise ValueError(f"error = {error!r} is not allowed with n = {n}: no eps up to {require.MAX_EPS:g} gives it")
    return eps


def least_eps(enough: Callable[[float], bool], most: float = require.MAX_EPS) -> float | None:
    """An eps up to `most` that is enough, the least one up to 2 %: by bisection of log eps to 1 %, with three digits, rounded up.
    None: not even the largest one is.
    """
    low, high = math.log(1e-3), math.log(most)

    def rounded(at: float) -> float:
        return min(float(above(math.exp(at), 3)), most)

    if not enough(rounded(high)):
        return None
    _, high = border(lambda at: not enough(rounded(at)), low, high, 0.01)
    return rounded(high)


def _ranked(
    area: Any, eps: Number, goal: str, n: int | None, error: float | None, prior: Any, q: float, tell: Progress, *, quick: bool
) -> Recommendation:  # fmt: skip
    population = _population(area, prior, goal)
    squared, crowd = 1.0 if goal == "answers" else 0.5, n or 1000
    key = area, eps, goal, q, quick

    def rated() -> tuple[list[Any], list[Any]]:
        return _rated(area, eps, goal, population, q, crowd, tell, quick=quick)

    def recommended() -> tuple[float, Mechanism]:
        return next((unit, mechanism) for unit, _, _, mechanism in units if _sent(mechanism, eps))

    def people(unit: float, mechanism: Mechanism) -> int | None:
        if error is None:
            return None
        if goal == "quantile":
            found = unit / math.sqrt(crowd)
            return _needed(mechanism, population, q, error, crowd, found) if mechanism is recommended()[1] else None
        return max(1, math.ceil((unit / error) ** 2)) if unit / error <= math.sqrt(PEOPLE) else None

    known = _RATED if population is None else {}
    if key not in known:
        if len(known) >= 8:
            known.clear()
        known[key] = rated()
    units, refused = known[key]
    if n is None and error is not None:
        needed = people(*recommended())
        if needed is None and goal != "quantile":
            raise ValueError(f"error = {error!r} is not allowed: more than 10^12 people would be needed")
        crowd = needed or CROWD
        for turn in range(CHANGES if goal == "quantile" else 0):  # of so many people another mechanism may be the best
            units, refused = rated()
            needed = people(*recommended())
            if needed is None or needed > 0.9 * crowd or turn == CHANGES - 1:  # errors are told for whom they are rated
                break
            crowd = needed
    root = 1.0 if squared == 1.0 else math.sqrt(crowd)
    least = units[0][0]
    rows = tuple(
        Choice(name, mechanism, kind, unit / root, unit, ratio, people(unit, mechanism), _sent(mechanism, eps))
        for unit, name, kind, mechanism in units
        for ratio in [unit / least if least else math.inf if unit else 1.0]
    )
    bound = None if quick else _bound(area, eps, goal, population)
    what = {
        "mean": "standard error of the mean", "quantile": f"root mean square error (simulated) of the {q!r}-quantile",
        "distribution": f"root mean square standard error of the probabilities of {BINS} bins",
        "frequencies": "root mean square standard error of a frequency", "answers": "mean absolute error of an answer",
    }[goal]  # fmt: skip
    under = "under the uniform prior" if prior is None or isinstance(prior, str) else "under the prior"
    told = "in the worst case" if population is None else under
    about = "" if goal == "answers" else f" about {crowd} {'person' if crowd == 1 else 'people'}"
    return Recommendation(
        goal, eps, crowd, f"{what}{about} {told}, eps = {rounded_up(eps, 6)}", rows, tuple(refused),
        None if bound is None else bound / root,
    )  # fmt: skip


#: The last answers for the worst case, which depend on nothing else.
_RATED: dict[Any, tuple[list[Any], list[Any]]] = {}


def _rated(
    area: Any, eps: Number, goal: str, population: Any, q: float, n: int, tell: Progress, *, quick: bool
) -> tuple[list[Any], list[Any]]:  # fmt: skip
    """([(error times the square root of n, name, kind, mechanism)], best first; [(name, why the goal is not identified)])."""
    units, refused = [], []
    for name, kind, make in candidates(area, eps, goal, quick, population):
        if quick and goal == "quantile" and name not in FOR_QUANTILES:
            continue
        tell(f"{goal}: {name}")
        mechanism = make()
        if mechanism is None:
            continue
        try:
            units.append((_unit(mechanism, goal, population, q, n), name, kind, mechanism))
        except NotIdentified as reason:
            refused.append((name, str(reason)))
    return sorted(units, key=lambda row: row[0]), refused


def _needed(mechanism: Mechanism, population: Any, q: float, error: float, n: int, found: float) -> int | None:
    """How many people are enough for the wanted error of a quantile, which is `found` with n; at most so many that it is a tenth
    less, where that is met. None if a million are too few.
    """
    shares, enough = _binned(population, mechanism.domain, EVEN), None
    for _ in range(CHANGES):
        if found <= error:
            enough = min(n, enough or n)
        if 0.9 * error <= found <= error or (found > error and n == CROWD):
            break
        n = min(math.ceil(1.1 * n * (found / error) ** 2), CROWD)
        found = simulated_quantile(mechanism, n, q, shares)
    return enough


def _sent(mechanism: Mechanism, eps: Number) -> bool:
    return mechanism.satisfies(LDP(eps)) is True


def _population(area: Any, prior: Any, goal: str) -> tuple[np.ndarray, np.ndarray] | None:
    """(points, probabilities) of the prior; None for the worst case."""
    if isinstance(area, Alphabet | OneHot):
        if prior is not None:
            raise ValueError("prior is not allowed for frequencies: the error is the same for all populations")
        return None
    if prior is None and goal != "quantile":
        return None
    if prior is None or isinstance(prior, str):
        require.choice("prior", "uniform" if prior is None else prior, ("uniform",))
        return area.lower + area.width * (np.arange(POINTS) + 0.5) / POINTS, np.full(POINTS, 1 / POINTS)
    read: Any = Average("abs", prior).on(area)
    known: Prior | Density = read.prior
    if isinstance(known, Density):
        ends = [known.breaks[0] + (known.breaks[-1] - known.breaks[0]) * Fraction(k, POINTS) for k in range(POINTS + 1)]
        masses = known.masses(ends)
        return np.array([float(a + b) / 2 for a, b in pairwise(ends)]), masses
    return area.check(list(known.categories), "prior points"), known.probabilities


def _coarse(population: tuple[np.ndarray, np.ndarray], area: Any) -> tuple[list[float], list[float]]:
    """The prior on at most `ATOMS` points: the means of what lies in equal parts of the domain."""
    points, p = (values[population[1] > 0] for values in population)
    if points.size > ATOMS:
        place = np.minimum(((points - area.lower) / area.width * ATOMS).astype(int), ATOMS - 1)
        masses, sums = (np.bincount(place, weights=w, minlength=ATOMS) for w in (p, p * points))
        points, p = sums[masses > 0] / masses[masses > 0], masses[masses > 0]
    return points.tolist(), (p / p.sum()).tolist()


def candidates(
    area: Any, eps: Number, goal: str, quick: bool = False, population: Any = None
) -> Iterator[tuple[str, str, Callable[[], Mechanism | None]]]:
    """(name, kind, how it is made) of every mechanism for the domain; `quick`: without kernels, which take a second."""
    if isinstance(area, Alphabet | OneHot):
        one_hot = area if isinstance(area, OneHot) else OneHot(area.symbols)
        names = list(one_hot.names) or one_hot.d
        yield "solve_frequency", "optimum", partial(_solved, solve_frequency, eps, names)
        problem = Problem(LDP(eps), one_hot, WorstCase("squared"), constraints=(Unbiased(),))
        for name, known in baselines.baselines("one-hot", "ldp").items():
            yield name, "published", partial(known.make, problem)
        return
    bounded, losses = Problem(LDP(eps), area, WorstCase("abs")), ("abs", "squared")
    for loss in losses:
        yield f"piecewise, {loss}", "optimum", partial(_solved, solve_piecewise, eps, loss=loss, domain=area)
    if isinstance(area, Circle):
        yield "uniform", "published", partial(baselines.get("uniform").make, bounded)
        return
    for loss in losses:
        make = partial(_solved, solve_piecewise, eps, loss=loss, domain=area, placement="linear")
        yield f"piecewise, {loss}, linear placement", "optimum", make
    yield "composite A3", "optimum", partial(_solved, solve_composite, eps, "A3", inputs=(area.lower, area.upper))
    if not quick:
        yield "unbiased kernel", "optimum", partial(_solved, solve_kernel, eps, unbiased=True, domain=area, rtol=RTOL)
        for loss in losses:
            yield f"kernel, {loss}", "optimum", partial(_solved, solve_kernel, eps, loss, domain=area, rtol=RTOL)
        if population is not None and goal in ("mean", "answers"):
            prior = _coarse(population, area)
            name, asked = ("unbiased kernel", {"unbiased": True}) if goal == "mean" else ("kernel, abs", {})
            make = partial(_solved, solve_kernel, eps, domain=area, prior=prior, rtol=RTOL, **asked)
            if len(prior[0]) > 1:
                yield f"{name}, for the prior", "designed", make
    for name, known in baselines.baselines("interval", "ldp").items():
        yield name, "published", partial(known.make, bounded)


def _solved(solve: Callable[..., Any], *arguments: Any, **options: Any) -> Mechanism:
    mechanism: Mechanism = solve(*arguments, **options).mechanism
    return mechanism


def _bound(area: Any, eps: Number, goal: str, population: Any) -> float | None:
    """What no unbiased estimate (of answers: no mechanism) can beat, times the square root of n (but for answers), or None."""
    if goal == "frequencies":
        d = len(area)
        return math.sqrt(solve_frequency(eps, d).lower_bound / d)
    if population is not None:
        return None
    if goal == "mean":
        return math.sqrt(solve_kernel(eps, unbiased=True, domain=area, rtol=RTOL).lower_bound)
    return solve_kernel(eps, "abs", domain=area, rtol=RTOL).lower_bound if goal == "answers" else None


def unit_error(mechanism: Mechanism, goal: str, domain: Any, prior: Any = None, q: float = 0.5, n: int = 1000) -> float:
    """The error of the estimate times the square root of the number of people; arguments as for `recommend`.

    **Raises** `NotIdentified`.
    """
    return _unit(mechanism, goal, _population(domain, prior, goal), q, n)


def _unit(mechanism: Mechanism, goal: str, population: Any, q: float, n: int) -> float:
    """The error times the square root of n. **Raises** `NotIdentified`.

    That of a quantile is simulated: it does not fall like 1/sqrt(n), for few people have wider bins, and their estimated
    probabilities are not below 0, which matters the more the larger the noise is.
    """
    if goal == "frequencies":
        oracle: Any = mechanism
        return math.sqrt(float(oracle.exact_value) / oracle.domain.d)
    if goal == "answers":
        if population is None:
            return mechanism.worst_case_loss("abs")
        return float(population[1] @ np.asarray(mechanism.expected_loss(population[0], "abs")))
    if goal == "mean":
        return math.sqrt(mean_variance(mechanism, population))
    domain: Any = mechanism.domain
    channel = Channel.of(mechanism)
    if goal == "distribution":
        matrix = mixed(channel, np.linspace(domain.lower, domain.upper, BINS + 1))
        # With a trace of all of them.
        shares = None if population is None else 0.999 * _binned(population, domain, BINS) + 0.001 / BINS
        return math.sqrt(noise(matrix, np.eye(BINS), shares) / BINS)
    choose_bins(channel, MANY, goal)  # what tells two bins apart says nothing of where in them the quantile is
    n = min(n, CROWD)
    return math.sqrt(n) * simulated_quantile(mechanism, n, q, _binned(population, domain, EVEN))


def _binned(population: Any, domain: Any, bins: int) -> np.ndarray:
    """The prior's probabilities of equal bins."""
    points, p = population
    k = np.minimum(((points - domain.lower) / domain.width * bins).astype(int), bins - 1)
    return np.bincount(k, weights=p, minlength=bins) / p.sum()


def noise(matrix: np.ndarray, wanted: np.ndarray, shares: np.ndarray | None) -> float:
    """The sum over functionals of E Var[g(Y) | k] with the best g: under `shares`, or for the worst ones."""
    matrix = matrix[matrix.max(axis=1) > 0]

    def variances(p: np.ndarray) -> np.ndarray:
        g = unbiased(matrix, matrix @ p, wanted)
        return np.asarray(((g**2).T @ matrix - (g.T @ matrix) ** 2).sum(axis=0))

    return _worst(variances, matrix.shape[1])[0] if shares is None else float(shares @ variances(shares))


def _worst(variances: Callable[[np.ndarray], np.ndarray], count: int) -> tuple[float, np.ndarray]:
    """(max_P sum_x P(x) v_P(x), this P), by multiplicative steps towards the inputs with the largest variance v_P."""
    p = np.full(count, 1 / count)
    best, worst = 0.0, p
    for _ in range(STEPS):
        v = variances(p)
        if p @ v > best:
            best, worst = float(p @ v), p
        if v.max() <= best * (1 + GAP):  # min_g max_x is at most v.max(): nothing more is left to gain
            break
        p = p * (v / v.max()) ** 2
        p = 0.9999 * p / p.sum() + 0.0001 / count
    return best, worst


def mean_variance(mechanism: Mechanism, population: Any = None) -> float:
    """n times the variance of `optdp.estimate`'s mean about the people asked: under (points, probabilities), or for the worst.

    **Raises** `NotIdentified` where a bias of more than a thousandth of the domain cannot be avoided.
    """
    return worst_mean(mechanism, population)[0]


def worst_mean(mechanism: Mechanism, population: Any = None) -> tuple[float, tuple[np.ndarray, np.ndarray]]:
    """(the same, the population that it is about): the given one, or the worst one, as (points, probabilities)."""
    domain: Any = mechanism.domain
    line = affine_mean(mechanism)
    tables = mean_tables(mechanism)
    points, p = (tables.inputs, None) if population is None else population
    plain, about = math.inf, np.full(points.size, 1 / points.size) if p is None else p
    if line is not None:
        each = tables.variances if p is None else np.asarray(mechanism.variance(points))
        about = np.eye(1, points.size, int(each.argmax()))[0] if p is None else p
        plain = float(about @ each) / line[1] ** 2
    if Channel.coarse(mechanism).rest:
        return plain, (points, about)
    matrix = tables.matrix if p is None else Channel.coarse(mechanism).matrix(points)
    worst_bias = [0.0]

    def under(shares: np.ndarray) -> np.ndarray:
        found = tables.function(0.99 * matrix @ shares + 0.01 * tables.blocks.mean(axis=1), MANY)
        worst_bias[0] = max(worst_bias[0], found.bias)
        return output_variances(found.function, matrix)

    first = under(np.full(points.size, 1 / points.size) if p is None else p)
    if worst_bias[0] > ACCURATE * domain.width:
        if line is None:
            raise NotIdentified("the mean is not identified by the outputs")
        return plain, (points, about)
    efficient, worst = _worst(under, points.size) if p is None else (float(p @ first), p)
    return (efficient, (points, worst)) if efficient < 0.98 * plain else (plain, (points, about))

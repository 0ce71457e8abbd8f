"""The best of all eps-LDP mechanisms for one bounded number: a convex program in the floor alone.

**The program.** A mechanism is a kernel K(dy|x) with K(dy|x) <= E K(dy|x') for all inputs, E = e^eps. Minimise the
worst-case loss sup_x int L(x, y) K(dy|x), or an average over a prior, possibly subject to int y K(dy|x) = x.
For a given floor m(dy) = inf_x K(dy|x) the best row of each input is a bathtub: E m on the outputs that it favours, m elsewhere.
So everything is a program in one measure m (`design.kernel.master`), and the mechanism *is* its floor: private by
construction, wherever the favoured outputs lie (`optdp.mechanisms.kernel`).

**The bound.** The dual is a prior of inputs with a threshold for each (`design.kernel.prior`), checked on the continuum of
outputs (`optdp.certificates.kernel`).

**Circle.** Rotating inputs and outputs together changes neither the guarantee nor the worst case, and an average over
all rotations is a kernel again: some optimal kernel is K(dy|x) = f(y - x) dy with inf f <= f <= E inf f. So the floor
is constant, and the optimum is that of `optdp.design.piecewise`, with the same certificate. The same holds for the average
under the uniform prior.

**Finite alphabets**: `optdp.design.finite_kernel`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from optdp.certificates.kernel import ATOMS
from optdp.design import finite_kernel, pair_kernel, plane
from optdp.design import metric as finite_metric
from optdp.design.kernel import dense
from optdp.design.kernel.search import Search
from optdp.design.kernel.task import Task
from optdp.design.metric import circle, line
from optdp.design.progress import ProgressLike
from optdp.design.registry import Run, register, solve
from optdp.exact import require
from optdp.exact.numbers import Number, number, plain
from optdp.problem.constraints import Constraint, Outputs, Unbiased
from optdp.problem.domains import Alphabet, Box, Circle, DomainLike, Interval, as_domain, listed
from optdp.problem.families import AllMechanisms
from optdp.problem.losses import LossLike
from optdp.problem.metrics import MetricLDP, MetricLike, as_metric
from optdp.problem.objectives import Average, WorstCase
from optdp.problem.priors import Prior, PriorLike
from optdp.problem.privacy import LDP
from optdp.problem.problem import Problem
from optdp.solution import Solution
from optdp.solvers.lp import LinearSolver
from optdp.solvers.threads import one_thread

METHODS = ("auto", "dense")
#: The least eps for unbiased mechanisms: multipliers of means grow as 1/eps^2.
FAINTEST = 1e-6
#: Losses of powers over the whole domain below this have no digits to spare.
SMALLEST = 1e-280
#: Outputs must have more room than this share of the domain: nodes of meshes are no nearer than 1e-12.
THINNEST = 1e-10
#: Meshes are fine for tolerances below this.
NARROW = 5e-4


def solve_kernel(
    eps: Number | str, loss: LossLike | None = None, *, domain: DomainLike | list[str] = (0.0, 1.0), unbiased: bool = False,
    outputs: Sequence[float] | None = None, prior: PriorLike | str | None = None, metric: MetricLike | None = None,
    rtol: float = 1e-3, time_limit: float = 60.0, backend: str = "auto",
    solver: LinearSolver | None = None, progress: ProgressLike = None,
) -> Solution:  # fmt: skip
    """The best of all eps-LDP mechanisms, with a bracket that holds for the continuum of inputs and outputs.

    **Arguments:**

    - `eps`: privacy parameter in (0, 30]: a float, or exactly a Fraction, a decimal string or `optdp.log(3)`.
    - `loss`: "abs" (the default), "squared", `optdp.Power(q)`, `optdp.Huber(c)`, `optdp.Threshold(t)`, `optdp.Pinball(tau)`,
      `optdp.Pieces(...)`, a nondecreasing function of the distance, or an `optdp.PairLoss` of input and output with its
      Lipschitz constants; for an `optdp.Alphabet`, a matrix with the loss of each output (column) for each input (row), or an
      `optdp.PairLoss` if symbols are numbers. With `unbiased=True` it is the variance: "squared", also
      the default then. On a circle any loss that `optdp.solve_piecewise` takes; on a box "abs" or "squared", Euclidean.
    - `domain`: a pair (lower, upper) or `optdp.Interval`; an `optdp.Circle`; an `optdp.Alphabet`, or a list of names for
      one; an `optdp.Box` with two sides, for places in a rectangle.
    - `unbiased`: ask for E[Y | x] = x at every x of the interval.
    - `outputs`: a pair (lowest, highest) that outputs must stay between; None: the domain itself, or, if unbiased, no
      limit.
    - `prior`: None for the worst case over all inputs. On an interval, to minimise the average loss: a pair (points,
      probabilities), an `optdp.Prior`, an `optdp.Density` or "uniform"; on a circle: "uniform"; on an alphabet: one
      probability for each symbol, or "uniform".
    - `metric`: None for the guarantee eps-LDP; with an `optdp.Alphabet` the distances d between its symbols, for the guarantee
      K(y|x) <= e^(eps d(x, x')) K(y|x'): a matrix, `optdp.Points(places, "haversine")`, `optdp.Graph(edges)`; on an
      interval or a circle "abs", for d = |x - x'| or the arc, and the worst case of "abs" or "squared". `eps` is then per unit of
      distance, any number > 0, and `loss` may be a function of the distance too: outputs are then the symbols.
    - `rtol`: refine until (value - lower_bound)/value is at most this.
    - `time_limit`: seconds after which the search ends, and what was found by then is proven, which takes a little longer: the
      bracket is then wider, and the status says so. Nothing else depends on the clock.
    - `backend`: "auto", or "dense" for the plain linear program on a small grid.
    - `solver`: solves the linear programs; None: HiGHS, and interior points for the large programs of narrow tolerances.
    - `progress`: see `optdp.solve`.

    **Returns** a `Solution`: `value` what `mechanism` attains at its worst input (on average, with a prior),
    `lower_bound` what no eps-LDP mechanism at all can beat.

    **Raises** TypeError or ValueError naming the argument.

    **Source:** on a grid the extreme points are the staircase mechanisms of Kairouz, Oh and Viswanath, "Extremal
    mechanisms for local differential privacy", JMLR 17 (2016).

        >>> import optdp
        >>> best = optdp.solve_kernel(1.0, "squared", rtol=1e-4)
        >>> (eps,) = best.closed_form.free_symbols
        >>> best.lower_bound <= float(best.closed_form.subs(eps, 1.0)) <= best.value
        True
    """
    privacy = LDP(require.exact_epsilon(eps)) if metric is None else MetricLDP(_positive(eps), as_metric(metric))
    require.choice("backend", backend, (*METHODS, *finite_kernel.METHODS))
    if not isinstance(unbiased, bool):
        raise TypeError(f"unbiased = {unbiased!r} is not allowed: it must be True or False")
    names = listed(domain)
    if names is not None and all(isinstance(name, str) for name in names):
        domain = Alphabet(tuple(names))
    others = "an optdp.Circle, Alphabet or Box"
    area = domain if isinstance(domain, Alphabet | Box) else as_domain(domain, others=others)  # type: ignore[arg-type]
    asked: dict[str, object] = {} if isinstance(area, Interval) else {"unbiased": unbiased or None, "outputs": outputs}
    if isinstance(area, Circle) and metric is None:  # solved without a program
        asked |= {"backend": None if backend == "auto" else backend, "solver": solver}
    for name, value in asked.items():
        if value is not None:
            raise ValueError(f"{name} = {value!r} is not allowed with domain = {type(area).__name__}: leave it out")
    constraints: list[Constraint] = [Unbiased()] if unbiased else []
    if outputs is not None:
        if not isinstance(outputs, tuple | list) or len(outputs) != 2:
            raise TypeError(f"outputs = {outputs!r} is not allowed: outputs must be a pair (lowest, highest)")
        constraints.append(Outputs(*outputs))
    if isinstance(area, Alphabet):
        if isinstance(privacy, MetricLDP):
            privacy.on(area)
            loss = finite_metric.loss_of_distances(loss, privacy.metric)
        objective = finite_kernel.objective(loss, area, prior)
    else:
        law = loss if loss is not None else "squared" if unbiased else "abs"
        if isinstance(prior, tuple | list) and not (len(prior) == 2 and np.ndim(prior[0]) == 1):
            raise TypeError(f"prior = {prior!r} is not allowed: prior must be a pair (points, probabilities) of lists")
        objective = WorstCase(law) if prior is None else Average(law, prior)
    problem = Problem(privacy, area, objective, AllMechanisms(), tuple(constraints))
    if isinstance(area, Circle) and metric is None:
        return solve(problem, rtol, time_limit, progress=progress)
    if isinstance(area, Box):
        accepted = plane.accepts
    elif metric is not None:
        accepted = {Alphabet: finite_metric, Circle: circle}.get(type(area), line).accepts
    elif isinstance(area, Alphabet):
        accepted = finite_kernel.accepts
    else:
        accepted = pair_kernel.accepts if problem.loss.form == "pair" else accepts
    refused = accepted(problem)
    if refused is not None:
        raise ValueError(f"{refused}; asked for was {problem.statement()}")
    return solve(problem, rtol, time_limit, backend, solver, progress)


def _positive(eps: Number | str) -> Number:
    found = number(eps, "eps")
    require.real("eps", float(found), low=0.0, open_low=True)
    return found


def accepts(problem: Problem) -> str | None:
    """All mechanisms on an interval: worst cases and averages of losses of y - x."""
    privacy, domain, objective, loss = problem.privacy, problem.domain, problem.objective, problem.loss
    if not isinstance(privacy, LDP) or not 0 < float(privacy.eps) <= require.MAX_EPS:
        return "privacy must be LDP with eps in (0, 30]"
    if not isinstance(domain, Interval) or not isinstance(problem.family, AllMechanisms):
        return "the domain must be an interval and the family all mechanisms"
    if not isinstance(objective, WorstCase | Average):
        return f"objective = {objective} is not allowed: it must be a worst case or an average"
    if loss.slopes is None or loss.branches(domain.exact_width, True, float(privacy.eps)) is None:
        return (
            f"loss = {loss.name!r} is not allowed: it must be a loss of y - x that is known in polynomial pieces, or a power of "
            "|y - x|"
        )
    if isinstance(objective, Average) and isinstance(objective.prior, Prior) and len(objective.prior) > ATOMS // 8:
        return f"prior is not allowed: it must be one of at most {ATOMS // 8} points, or a density"
    above = loss.branches(domain.exact_width, False, float(privacy.eps))
    known = above is not None and above(Fraction(-1)) == above(Fraction(1)) == 0  # 0 everywhere
    if not known and not max(float(loss.of(0.0, domain.width)), float(loss.of(domain.width, 0.0))) > SMALLEST:
        return f"loss = {loss.name!r} is not allowed on {domain}: it underflows there; use larger units"
    if problem.unbiased and loss.exponent != 2:
        return f"loss = {loss.name!r} is not allowed: for unbiased mechanisms it must be the variance, 'squared'"
    if problem.unbiased and float(privacy.eps) < FAINTEST:
        return f"eps must be in [{FAINTEST:g}, 30] for unbiased mechanisms: outputs lie about 1/eps domains away"
    if any(c.tag not in ("unbiased", "outputs") for c in problem.constraints):
        return "constraints must be Unbiased() and Outputs(low, high)"
    if problem.outputs is None:
        return None
    low, high = problem.outputs
    if not problem.unbiased:
        overlap = min(high, domain.upper) - max(low, domain.lower)
        allowed = f"their range must overlap {domain} by more than {THINNEST:g} of its width"
        return (
            None if overlap > THINNEST * domain.width else f"outputs = ({low!r}, {high!r}) are not allowed: {allowed}"
        )
    # Y - low >= 0 has mean 1 - low at the upper end and -low at the lower one, a ratio of at most E; the same from above.
    far = float(domain.width / np.expm1(float(privacy.eps)) * (1 + 1e-6))
    if low > domain.lower - far or high < domain.upper + far:
        return (
            f"outputs = ({plain(low)}, {plain(high)}) are not allowed: no mechanism with this eps is unbiased unless outputs may "
            f"reach width/(e^eps - 1) beyond both ends, [{domain.lower - far:.6g}, {domain.upper + far:.6g}]"
        )
    return None


@one_thread()
def design(run: Run) -> Solution:
    """See `solve_kernel`."""
    if run.method == "dense":
        return dense.design(run)
    return Search(Task(run.problem, (), run.rtol < NARROW, run.solver, run.left), run).solve()


register(
    "kernel",
    ("LDP", "Interval", "WorstCase or Average (points or a density) of a loss of y - x", "AllMechanisms",
     "Unbiased (with squared loss), Outputs"),
    accepts, design, METHODS,
)  # fmt: skip

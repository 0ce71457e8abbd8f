"""The best of all eps-LDP mechanisms for one bounded number: kernels with a free floor.

**The program.** A mechanism is a kernel K(dy|x) with K(dy|x) <= E K(dy|x') for all inputs, E = e^eps. Minimise the
worst-case loss sup_x int L(|y - x|) K(dy|x), or an average over a prior, possibly subject to int y K(dy|x) = x.
Nothing else is assumed: the floor m(dy) = inf_x K(dy|x) may depend on the output, where the piecewise mechanisms fix
it to a constant.

**From a grid to the interval.** Below: only the inputs x_1..x_k are constrained. The dual of that linear program is
checked against outputs on the whole continuum (`optdp.certificates.kernel`). Above: the rows at the grid are mixed
linearly in between, and the linear program itself contains the mixed rows' losses at points between the inputs, so
that it designs for the mixing. The worst case over x is then maximised exactly (`KernelMechanism.enclose`).
Both errors fall like the square of the spacing.

**Circle.** Rotating inputs and outputs together changes neither the guarantee nor the worst case, and an average over
all rotations is a kernel again: some optimal kernel is K(dy|x) = f(y - x) dy with inf f <= f <= E inf f. So the floor
is constant, and the optimum is that of `optdp.design.piecewise`, with the same certificate. The same holds for the average
under the uniform prior.

**Finite alphabets**: `optdp.design.finite_kernel`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from optdp.certificates.kernel import INPUTS, KernelCertificate, certify
from optdp.design import finite_kernel
from optdp.design.progress import ProgressLike
from optdp.design.registry import Run, register, solve
from optdp.exact import enclosures, require
from optdp.exact.numbers import Number, plain
from optdp.exact.rounding import SLACK
from optdp.mechanisms.kernel import UNIT, KernelMechanism
from optdp.problem.constraints import Constraint, Outputs, Unbiased
from optdp.problem.domains import Alphabet, Circle, DomainLike, Interval, as_domain
from optdp.problem.families import AllMechanisms
from optdp.problem.losses import LossLike
from optdp.problem.objectives import Average, WorstCase
from optdp.problem.priors import Prior, PriorLike
from optdp.problem.privacy import LDP
from optdp.problem.problem import Problem
from optdp.solution import Solution
from optdp.solvers import kernel_lp as lp
from optdp.solvers.kernel_interior import solve_interior
from optdp.solvers.lp import LinearProgram, LinearSolver, LinearStatus

METHODS = finite_kernel.METHODS

#: Linear programs with more pairs of input and output than this are not taken to a vertex.
LARGE = 6000

#: Mechanisms on finer grids than this are not designed again for fewer outputs: each trial costs as much as the first.
SIMPLE = 5

#: Grids have 2^level + 1 inputs, so that all of them are short dyadic numbers.
LEVELS = range(3, 11)


def solve_kernel(
    eps: Number | str, loss: LossLike | None = None, *, domain: DomainLike = (0.0, 1.0), unbiased: bool = False,
    outputs: Sequence[float] | None = None, prior: PriorLike | str | None = None, rtol: float = 1e-3,
    time_limit: float = 60.0, simplify: bool = True, level: int | None = None, backend: str = "auto",
    progress: ProgressLike = None,
) -> Solution:  # fmt: skip
    """The best of all eps-LDP mechanisms, with a bracket that holds for the continuum of inputs and outputs.

    **Arguments:**

    - `eps`: privacy parameter in (0, 30]: a float, or exactly a Fraction, a decimal string or `optdp.log(3)`.
    - `loss`: "abs" (the default), "squared" or `optdp.Power(q)` with q >= 1; for an `optdp.Alphabet`, a matrix with
      the loss of each output (column) for each input (row). With `unbiased=True` it is the variance: "squared", also
      the default then. On a circle any loss that `optdp.solve_piecewise` takes.
    - `domain`: a pair (lower, upper) or `optdp.Interval`; an `optdp.Circle`; an `optdp.Alphabet`.
    - `unbiased`: ask for E[Y | x] = x at every x of the interval.
    - `outputs`: a pair (lowest, highest) that outputs must stay between; None: the domain itself, or, if unbiased, no
      limit.
    - `prior`: None for the worst case over all inputs. On an interval: a pair (points, probabilities) or an `optdp.Prior`, to
      minimise the average loss when inputs are distributed so; on a circle: "uniform"; on an alphabet: one probability for
      each symbol, or "uniform".
    - `rtol`: refine until (value - lower_bound)/value is at most this.
    - `time_limit`: seconds after which no finer grid is begun: the bracket is then wider, and the status says so.
    - `simplify`: use as few outputs as the bracket allows.
    - `level`: solve on the grid with 2^level + 1 inputs alone, instead of refining.
    - `backend`: how grid programs are solved: "auto" (blocks of columns, interior point), "columns" (column
      generation over pairs of an output and a set of favoured inputs, simplex), "dense" (the plain linear program;
      small grids).
    - `progress`: see `optdp.solve`.

    **Returns** a `Solution`: `value` what `mechanism` attains at its worst input (on average, with a prior),
    `lower_bound` what no eps-LDP mechanism at all can beat.

    **Raises** TypeError or ValueError naming the argument; RuntimeError if HiGHS fails on the first, coarsest grid.

    **Source:** the extreme points of the program on a grid are the staircase mechanisms of Kairouz, Oh and Viswanath, "Extremal
    mechanisms for local differential privacy", JMLR 17 (2016).

        >>> import optdp
        >>> best = optdp.solve_kernel(1.0, "squared", rtol=1e-6)
        >>> (eps,) = best.closed_form.free_symbols
        >>> best.lower_bound <= float(best.closed_form.subs(eps, 1.0)) <= best.value
        True
    """
    privacy = LDP(require.exact_epsilon(eps))
    require.choice("backend", backend, METHODS)
    if not isinstance(unbiased, bool):
        raise TypeError(f"unbiased = {unbiased!r} is not allowed: it must be True or False")
    area = domain if isinstance(domain, Alphabet) else as_domain(domain)
    if not isinstance(area, Interval):
        for name, value in (("unbiased", unbiased), ("outputs", outputs), ("level", level)):
            if value not in (None, False):
                kind = type(area).__name__
                raise ValueError(f"{name} = {value!r} is not allowed with domain = {kind}: leave it out")
    constraints: list[Constraint] = [Unbiased()] if unbiased else []
    if outputs is not None:
        if not isinstance(outputs, tuple | list) or len(outputs) != 2:
            raise TypeError(f"outputs = {outputs!r} is not allowed: outputs must be a pair (lowest, highest)")
        constraints.append(Outputs(*outputs))
    if isinstance(area, Alphabet):
        objective = finite_kernel.objective(loss, area, prior)
    else:
        law = loss if loss is not None else "squared" if unbiased else "abs"
        if isinstance(prior, tuple | list) and not (len(prior) == 2 and np.ndim(prior[0]) == 1):
            raise TypeError(f"prior = {prior!r} is not allowed: prior must be a pair (points, probabilities) of lists")
        objective = WorstCase(law) if prior is None else Average(law, prior)
    problem = Problem(privacy, area, objective, AllMechanisms(), tuple(constraints))
    if isinstance(area, Circle):
        return solve(problem, rtol, time_limit, progress=progress)
    refused = (accepts if isinstance(area, Interval) else finite_kernel.accepts)(problem)
    if refused is not None:
        raise ValueError(f"{refused}; asked for was {problem.statement()}")
    options: dict[str, Any] = {"simplify": simplify, "level": level} if isinstance(area, Interval) else {}
    return solve(problem, rtol, time_limit, backend, progress=progress, **options)


def accepts(problem: Problem) -> str | None:
    """All mechanisms on an interval: worst cases and averages under finitely many points of |Y - x|^q, q >= 1."""
    privacy, domain, objective, loss = problem.privacy, problem.domain, problem.objective, problem.loss
    if not isinstance(privacy, LDP) or not 0 < float(privacy.eps) <= require.MAX_EPS:
        return "privacy must be LDP with eps in (0, 30]"
    if not isinstance(domain, Interval) or not isinstance(problem.family, AllMechanisms):
        return "the domain must be an interval and the family all mechanisms"
    if not isinstance(objective, WorstCase | Average) or (loss.exponent or 0.0) < 1:
        return f"loss = {loss.name!r} is not allowed: it must be the worst case or average of a power |Y - x|^q with q >= 1"
    if isinstance(objective, Average) and not (isinstance(objective.prior, Prior) and len(objective.prior) <= INPUTS):
        return f"prior is not allowed: on an interval it must be one of at most {INPUTS} points"
    if problem.unbiased and loss.exponent != 2:
        return f"loss = {loss.name!r} is not allowed: for unbiased mechanisms it must be the variance, 'squared'"
    if any(c.tag not in ("unbiased", "outputs") for c in problem.constraints):
        return "constraints must be Unbiased() and Outputs(low, high)"
    if problem.outputs is None:
        return None
    low, high = problem.outputs
    if not problem.unbiased:
        overlap = max(low, domain.lower) < min(high, domain.upper)
        return None if overlap else f"outputs = ({low!r}, {high!r}) are not allowed: their range must overlap {domain}"
    # Y - low >= 0 has mean 1 - low at the upper end and -low at the lower one, a ratio of at most E; the same from above.
    far = float(domain.width / np.expm1(float(privacy.eps)) * (1 + 1e-6))
    if low > domain.lower - far or high < domain.upper + far:
        return (
            f"outputs = ({plain(low)}, {plain(high)}) are not allowed: no mechanism with this eps is unbiased unless outputs may "
            f"reach width/(e^eps - 1) beyond both ends, [{domain.lower - far:.6g}, {domain.upper + far:.6g}]"
        )
    return None


def design(run: Run, *, simplify: bool = True, level: int | None = None) -> Solution:
    """See `solve_kernel`. A `solver` solves the plain linear programs of the method "dense"."""
    if level is not None:
        level = require.integer("level", level, low=LEVELS[0], high=LEVELS[-1])
    task = _Task(run.problem, finite_kernel.method_for(run.method, run.solver), run.solver)
    return _Search(task, run, simplify).solve(level)


register(
    "kernel",
    ("LDP", "Interval", "WorstCase or Average (finitely many points) of |Y - x|^q with q >= 1", "AllMechanisms",
     "Unbiased (with squared loss), Outputs"),
    accepts, design, METHODS,
)  # fmt: skip


def build_model(problem: Problem) -> LinearProgram:
    """The plain linear program on the grid with 17 inputs (an average: on the prior's points) and 33 outputs, in shares."""
    task = _Task(problem, "dense", None)
    grid = task.grid(4, float(np.exp(task.eps)))
    return lp.dense_program(grid, np.union1d(np.linspace(*task.span(), 33), np.clip(grid.knots, *task.span())))


class _Task:
    """The problem in shares of the domain, as grid programs need it.

    `outputs`: where the mechanism's outputs lie, None for no limit (one outside the domain is never better than the nearest end);
    `shares`: the prior's points as shares of the domain, rounded to floats, None for the worst case.
    """

    def __init__(self, problem: Problem, method: str, solver: LinearSolver | None) -> None:
        self.problem, self.method, self.solver, objective = problem, method, solver, problem.objective
        self.eps, self.unbiased = float(problem.eps), problem.unbiased  # type: ignore[arg-type]
        self.exponent = float(problem.loss.exponent)
        self.outputs: tuple[float, float] | None = None
        self.shares: np.ndarray | None = None
        if problem.outputs is not None:
            low, high = map(self._share, problem.outputs)
            if not self.unbiased:
                low, high = max(low, Fraction(0)), min(high, Fraction(1))
            self.outputs = enclosures.round_up(low), enclosures.round_down(high)
        if isinstance(objective, Average):
            self.shares = np.array([float(self._share(point)) for point in objective.prior.categories])
        self.symmetric = self.shares is None and (self.outputs is None or 1 - self.outputs[0] == self.outputs[1])

    def _share(self, point: float) -> Fraction:
        return (Fraction(point) - Fraction(self.problem.domain.lower)) / self.problem.domain.exact_width

    def grid(self, level: int, ratio: float, samples: np.ndarray | None = None, *, ends: bool = False) -> lp.Grid:
        """The program with 2^level + 1 inputs; for an average with those of the prior, and the `ends` of the domain."""
        if self.shares is None:
            knots = np.linspace(0.0, 1.0, 2**level + 1)
            sampled = knots if samples is None else samples
            return lp.Grid(ratio, self.exponent, knots, sampled, self.unbiased, None, self.symmetric)
        knots = np.unique(self.shares)
        if ends or knots.size < 2:
            knots = np.union1d(knots, [0.0, 1.0])
        mass = np.zeros(knots.size)
        np.add.at(mass, np.searchsorted(knots, self.shares), self.problem.objective.prior.probabilities)
        return lp.Grid(ratio, self.exponent, knots, knots, self.unbiased, mass, False)

    def span(self) -> tuple[float, float]:
        """Where outputs are looked for: their range, or one that is far wider than an optimal mechanism's."""
        if self.outputs is not None and not self.unbiased:
            return self.outputs
        # Duchi's two outputs, (E + 1)/(E - 1) times the half width from the middle, and as much again.
        far = 2 * float(1 / np.tanh(self.eps / 2)) + 1
        low, high = self.outputs or (-np.inf, np.inf)
        return max(low, 0.5 - far / 2), min(high, 0.5 + far / 2)

    def certify(self, grid: lp.Grid, dual: lp.Dual) -> KernelCertificate:
        """The certificate of a grid's dual. Multipliers of points that share a knot are split like their probabilities."""
        if self.shares is None:
            return certify(self.problem, grid.knots, dual.weights, dual.masses, dual.means)
        knot = np.searchsorted(grid.knots, self.shares)
        split = self.problem.objective.prior.probabilities / np.asarray(grid.prior)[knot]
        return certify(self.problem, (), (), split * dual.masses[knot], split * dual.means[knot])


class _Search:
    """Finer and finer grids until the bracket is tight enough; keeps the best mechanism and the best bound."""

    def __init__(self, task: _Task, run: Run, simplify: bool) -> None:
        self.task, self.run, self.rtol, self.simplify = task, run, run.rtol, simplify
        self.ratio = float(enclosures.exp_below(task.problem.eps))  # type: ignore[arg-type]
        self.mechanism: KernelMechanism | None = None
        self.certificate: KernelCertificate | None = None
        self.value, self.bound, self.raw = np.inf, 0.0, np.nan
        self.sizes = (0, 0)
        self.hint: lp.Dual | None = None
        self.below: lp.Outcome | None = None
        self.message = ""
        self.first, self.stopped = True, False

    @property
    def left(self) -> float:
        """Seconds left; without limit on the first, coarsest grid, so that there always is a bracket."""
        return 1e9 if self.first else self.run.time_limit - self.run.seconds

    @property
    def gap(self) -> float:
        return (self.value - self.bound) / self.value if self.value else 0.0

    def solve(self, only: int | None) -> Solution:
        level, spent = only or self._first_level(), 0.0
        while True:
            began = time.perf_counter()
            self.run.progress(f"grid of level {level}", self.bound, self.value)
            try:
                self._lower(level)
                if level <= SIMPLE or self.mechanism is None or self.gap > self.rtol:
                    self._upper(level)
            except lp.SolverFailure as failure:
                if self.mechanism is None or self.certificate is None:
                    raise
                self.message, self.stopped = str(failure), failure.status is LinearStatus.TIME_LIMIT
                break
            self.first = False
            if self.gap <= self.rtol or self.task.shares is not None or only is not None or level == LEVELS[-1]:
                break
            spent = time.perf_counter() - began
            # Errors fall fourfold from level to level; times grow about fivefold.
            steps = 1 if level < 5 else max(1, int(np.ceil(np.log(self.gap / self.rtol) / np.log(4))))
            steps = min(steps, 2, LEVELS[-1] - level)
            while steps > 1 and spent * 5**steps > self.left:
                steps -= 1
            level += steps
            if spent * 2.5 > self.left:
                self.stopped = True
                break
        return self._solution()

    def _first_level(self) -> int:
        """A spacing of about a tenth of the width of OGPM's window, the scale on which kernels vary."""
        width = 2 / (np.exp(self.task.eps / 2) + 1)
        if self.task.unbiased:
            return int(np.clip(np.ceil(np.log2(3 / width)), 4, 5))
        # Where outputs are priced on the continuum, the first grid takes several rounds.
        return int(np.clip(np.ceil(np.log2(8 / width)), 4, 8 if self.task.exponent == 1 else 7))

    def _lower(self, level: int) -> None:
        """Solve the relaxation and certify its dual."""
        grid = self.task.grid(level, float(np.exp(self.task.eps)))
        found = self._price(grid, self._start(grid), tolerance=self.rtol / 12)
        made = self.task.certify(grid, found.dual)
        bound = made.bound(self.task.problem).value
        if self.certificate is None or bound > self.bound:
            self.certificate, self.bound = made, bound
        self.hint, self.below = found.dual, found

    def _start(self, grid: lp.Grid) -> np.ndarray:
        """Outputs to begin with: an even grid, the inputs, and what the last grid used."""
        span = self.task.span()
        inside = grid.knots[(grid.knots >= span[0]) & (grid.knots <= span[1])]
        if self.task.exponent == 1:  # optimal outputs are inputs
            return self._half(np.union1d(inside, span))
        y = np.union1d(np.linspace(*span, min(2 * grid.knots.size - 1, 129)), inside)
        if self.below is not None:
            y = np.union1d(np.linspace(*span, 65), self.below.outputs[self.below.floors > 1e-6])
        return self._half(y)

    def _half(self, y: np.ndarray) -> np.ndarray:
        return y[y <= 0.5] if self.task.symmetric else y

    def _price(self, grid: lp.Grid, y: np.ndarray, tolerance: float, rounds: int = 25) -> lp.Outcome:
        """Solve over the outputs `y`, add the outputs at which g is negative, and so on until the bound meets the
        value.
        """
        task, span = self.task, self.task.span()
        if task.method == "columns":
            found = lp.solve_columns(grid, y, span, tolerance=tolerance, time_limit=self.left)
            self.sizes = max(self.sizes, (found.variables, found.constraints))
            return found
        best: lp.Dual | None = None
        bound = -np.inf
        pairs: np.ndarray | None = None
        for _ in range(rounds):
            pairs = self._likely(grid, y) if pairs is None else pairs
            before, found = y, self._given(grid, y, pairs)
            points: list[np.ndarray] = []
            # Stabilised: prices between the best so far and these are often better than both, and their outputs too.
            for dual in [found.dual, *(found.dual.mix(best, share) for share in (0.4, 0.8) if best is not None)]:
                y_low, g = dual.minima(span)
                reached = dual.bound(float(g.min()))
                if reached > bound:
                    best, bound = dual, reached
                points.append(y_low[g < -1e-12 * abs(found.value)])
            if bound >= found.value - tolerance * abs(found.value):
                break
            # Outputs that cannot pay for the remaining gap are dropped.
            y = y[found.dual.value(y) <= found.value - bound]
            new = self._half(_apart(np.concatenate(points), y, 1e-3 * np.sqrt(self.rtol)))
            pays = -1e-12 * abs(found.value) > found.dual.reduced(before).T
            if not new.size and (pairs is None or not (pays & ~pairs).any()):
                break
            y = np.union1d(y, new)
            all_pairs = grid.prior is not None or task.method == "dense"
            pairs = None if all_pairs else _around(1e-9 * abs(found.value) >= found.dual.reduced(y).T)
        assert best is not None
        return replace(found, dual=best)

    def _given(self, grid: lp.Grid, y: np.ndarray, pairs: np.ndarray | None, exact: bool = False) -> lp.Outcome:
        """Solve over the outputs `y`, by the plain linear program or over these pairs."""
        if self.task.method == "dense":
            whole = np.union1d(y, 1 - y) if grid.symmetric else y
            found = lp.solve_dense(grid, whole, solver=self.task.solver, time_limit=self.left)
            found = replace(found, dual=replace(found.dual, grid=grid))
        else:
            found = self._blocks(grid, y, pairs, exact)
        self.sizes = max(self.sizes, (found.variables, found.constraints))
        return found

    def _blocks(self, grid: lp.Grid, y: np.ndarray, pairs: np.ndarray | None, exact: bool = False) -> lp.Outcome:
        """Solve over these pairs; over all of them, if these are too few for a feasible kernel."""
        # A vertex uses fewer outputs, but crossing over to one takes HiGHS very long for large programs, time limit or not.
        size = int(pairs.sum()) if pairs is not None else grid.knots.size * y.size
        if size > (LARGE if exact else LARGE // 3) and grid.prior is None:
            try:
                # Exact means leave less room for repairs.
                close = 1e-10 if grid.unbiased else min(1e-6, 1e-3 * self.rtol)
                return solve_interior(grid, y, pairs=pairs, tolerance=close, time_limit=self.left)
            except lp.SolverFailure as failure:  # without progress: HiGHS may still manage
                if failure.status is LinearStatus.TIME_LIMIT:
                    raise
        try:
            return lp.solve_blocks(
                grid, y, pairs=pairs, vertex=size <= (3 * LARGE if exact else LARGE), time_limit=self.left
            )
        except lp.SolverFailure as failure:
            if pairs is None or failure.status is LinearStatus.TIME_LIMIT:
                raise
        return lp.solve_blocks(grid, y, vertex=False, time_limit=self.left)

    def _likely(self, grid: lp.Grid, y: np.ndarray) -> np.ndarray | None:
        """Pairs near those that the last grid's prices favour: for each output an interval of inputs, with a margin."""
        if self.hint is None or grid.prior is not None or grid.knots.size <= 17 or self.task.method == "dense":
            return None
        knots = self.hint.grid.knots
        good = self.hint.reduced(y) <= 0
        margin, some = 2.5 * float(np.diff(knots).max()), good.any(axis=1)
        low = np.where(some, knots[np.argmax(good, axis=1)], np.minimum(y, 1)) - margin
        high = np.where(some, knots[knots.size - 1 - np.argmax(good[:, ::-1], axis=1)], np.maximum(y, 0)) + margin
        return (grid.knots[:, None] >= low) & (grid.knots[:, None] <= high)

    # The mechanism ----------------------------------------------------------------------------------------------

    def _upper(self, level: int) -> None:
        """Design the mixed kernel, round it to an exactly private mechanism, and keep it if it is the best so far."""
        ratio = self.ratio * (1 - SLACK)
        if self.task.shares is not None:
            grid = self.task.grid(level, ratio, ends=True)
            found = self._price(grid, self._start(grid), self.rtol / 12)
            if self.task.unbiased:
                found = self._blocks(grid, self._short(found.outputs), None, True)
            self._keep(found, grid)
            return
        task, y = self.task, self._outputs_above(level)
        # The mixed loss is bounded at the inputs and between them. A variance mixed linearly bulges by h^2/4 at most.
        samples = np.linspace(0.0, 1.0, (2 if task.unbiased else 4) * 2**level + 1)
        best: tuple[float, Any, Any] = (np.inf, None, None)
        for _ in range(2 if level > SIMPLE else 3 if task.exponent == 1 else 6):
            grid = task.grid(level, ratio, samples)
            found = self._given(grid, y, self._likely(grid, y), task.unbiased)
            worst, peaks = _peaks(found, grid)
            best = min(best, (worst, found, grid), key=lambda round_: round_[0])
            slack = max(self.rtol / 20, 1e-9) * worst
            extra = peaks[:, 0][peaks[:, 1] > found.value + slack / 2]
            new = self._short(_apart(self._gains(found), y, UNIT))
            if worst - found.value <= slack and not new.size:
                break
            samples = np.union1d(samples, np.concatenate([extra, 1 - extra]) if grid.symmetric else extra)
            y = np.union1d(y, new)
        _, found, grid = best
        self._keep(found, grid)
        if self.simplify and self.gap <= self.rtol and level <= SIMPLE:
            self._simplify(grid, found)

    def _gains(self, found: lp.Outcome) -> np.ndarray:
        """Outputs that would lower the mixed kernel's loss by more than its share of the tolerance."""
        if self.task.exponent == 1:  # more kinks would cost more than they gain
            return np.empty(0)
        points, g = found.dual.minima(self.task.span())
        return points[g < -self.rtol / 12 * found.value]

    def _short(self, y: np.ndarray) -> np.ndarray:
        """The half that is solved for, of outputs as short as exact means need them."""
        if not self.task.unbiased:
            return self._half(y)
        low, high = self.task.span()
        units = np.clip(np.round(y / UNIT), np.ceil(low / UNIT), np.floor(high / UNIT))
        return self._half(np.unique(units) * UNIT)

    def _outputs_above(self, level: int) -> np.ndarray:
        span = self.task.span()
        assert self.below is not None
        if self.task.exponent == 1:
            y = np.linspace(0.0, 1.0, 2 ** (level + 1) + 1)
            return self._half(np.union1d(y[(y >= span[0]) & (y <= span[1])], span))
        return self._short(self.below.outputs[self.below.floors > 1e-7])

    def _keep(self, found: lp.Outcome, grid: lp.Grid) -> None:
        self.raw = found.value
        made, value = self._round(found, grid)
        if made is not None and value < self.value:
            self.mechanism, self.value, self.message = made, value, ""

    def _round(self, found: lp.Outcome, grid: lp.Grid) -> tuple[KernelMechanism | None, float]:
        problem, use = self.task.problem, found.floors > 1e-9
        try:
            made = KernelMechanism.private(
                problem.eps, grid.knots, found.outputs[use], found.rows[:, use], found.floors[use],  # type: ignore[arg-type]
                problem.domain, problem.unbiased,
            )  # fmt: skip
        except ValueError as reason:
            self.message = str(reason)
            return None, np.inf
        return made, made.enclose(problem.objective)[1]

    def _simplify(self, grid: lp.Grid, found: lp.Outcome) -> None:
        """The fewest outputs, by bisection, for which the linear program still closes the bracket.

        Neighbouring outputs are merged as long as that moves the least probability the least (Ward's criterion), and
        the rows are designed again for what is left.
        """
        use = found.floors > 1e-9
        y, mass = found.outputs[use], found.rows[:, use].mean(axis=0)
        if grid.symmetric:
            mass = np.where(y == 0.5, mass / 2, mass)[y <= 0.5]
            y = y[y <= 0.5]
        merges = _merges(y, mass)
        few, many = 1, y.size
        patience = self.run.seconds  # no longer than everything before
        while few < many and min(self.left, 2 * patience - self.run.seconds) > 0:
            count = (few + many) // 2
            try:
                short = self._short(merges[count])
                trial = self._blocks(grid, short, self._likely(grid, short), True)
            except lp.SolverFailure:  # infeasible: too few outputs
                few = count + 1
                continue
            made, value = self._round(trial, grid)
            if made is not None and value - self.bound <= self.rtol * value:
                self.mechanism, self.value, many = made, value, count
            else:
                few = count + 1

    def _solution(self) -> Solution:
        task, certificate, mechanism = self.task, self.certificate, self.mechanism
        if certificate is None or mechanism is None or self.below is None:
            raise RuntimeError(f"no exactly private mechanism was found: {self.message}")
        rows = "mass, mean and loss" if task.unbiased else "mass and loss"
        name = task.solver.name if task.solver is not None else f"HiGHS ({task.method})"
        scale = task.problem.domain.width**task.exponent
        return self.run.solution(
            mechanism, certificate,
            f"{self.sizes[0]} columns (floors and favoured pairs of input and output) in the largest linear program",
            f"{self.sizes[1]} rows: {rows} at {len(certificate.masses)} inputs, likelihood ratios",
            name + (", interior point on large grids" if task.method == "auto" else ""),
            objective=self.raw * scale, bound=self.below.value * scale, message=self.message, stopped=self.stopped,
            build=build_model, arguments=(task.problem,),
        )  # fmt: skip


def _merges(y: np.ndarray, mass: np.ndarray) -> dict[int, np.ndarray]:
    """For each number of outputs up to the present one, the outputs after merging the cheapest neighbours one by one."""
    y, mass = y.copy(), mass + 1e-15
    found = {y.size: y}
    while y.size > 1:
        cost = mass[:-1] * mass[1:] / (mass[:-1] + mass[1:]) * np.diff(y) ** 2
        i = int(np.argmin(cost))
        y[i] = (mass[i] * y[i] + mass[i + 1] * y[i + 1]) / (mass[i] + mass[i + 1])
        mass[i] += mass[i + 1]
        y, mass = np.delete(y, i + 1), np.delete(mass, i + 1)
        found[y.size] = y
    return found


def _around(pairs: np.ndarray, reach: int = 2) -> np.ndarray:
    """Pairs (input, output) and those up to `reach` inputs away."""
    wide = pairs.copy()
    for _ in range(reach):
        wide[1:] |= wide[:-1].copy()
        wide[:-1] |= wide[1:].copy()
    return wide


def _apart(new: np.ndarray, old: np.ndarray, distance: float) -> np.ndarray:
    """The entries of `new` that are at least `distance` from `old` and from each other."""
    if not new.size:
        return new
    new = np.unique(np.round(new / distance)) * distance
    return new[np.abs(new[:, None] - old).min(axis=1) > distance]


def _peaks(found: lp.Outcome, grid: lp.Grid, fine: int = 8) -> tuple[float, np.ndarray]:
    """The mixed kernel's largest loss in floats, and for each cell of the grid (place, loss) of its largest one."""
    cells = grid.knots.size - 1
    t = np.linspace(0.0, 1.0, fine, endpoint=False)
    points = (grid.knots[:-1, None] + np.diff(grid.knots)[:, None] * t).reshape(-1)
    points = np.append(points, 1.0)
    dense = replace(grid, samples=points)
    losses = np.einsum("kp,kj,pj->p", dense.mixing(), found.rows, dense.losses(found.outputs), optimize=True)
    table = losses[:-1].reshape(cells, fine)
    best = np.argmax(table, axis=1)
    place = points[:-1].reshape(cells, fine)[np.arange(cells), best]
    return float(losses.max()), np.column_stack([place, table[np.arange(cells), best]])

"""The best of all eps-LDP mechanisms for one bounded number: kernels with a free floor.

**The program.** A mechanism is a kernel K(dy|x) with K(dy|x) <= E K(dy|x') for all inputs, E = e^eps. Minimise the
worst-case loss sup_x int L(|y - x|) K(dy|x), or an average over a prior, possibly subject to int y K(dy|x) = x.
Nothing else is assumed: the floor m(dy) = inf_x K(dy|x) may depend on the output, where the piecewise mechanisms fix
it to a constant.

**From a grid to the interval.** Below: only the inputs x_1..x_k are constrained. The dual of that linear program is
checked against outputs on the whole continuum (`optdp.certificates.kernel`). Above: the rows at the grid are mixed
linearly in between, and the linear program itself contains the mixed rows' losses at points between the inputs, so
that it designs for the mixing. The worst case over x is then maximised exactly (`KernelMechanism.enclose_value`).
Both errors fall like the square of the spacing.

**Circle.** Rotating inputs and outputs together changes neither the promise nor the worst case, and an average over
all rotations is a kernel again: some optimal kernel is K(dy|x) = f(y - x) dy with inf f <= f <= E inf f. So the floor
is constant, and the optimum is that of `solve_piecewise`, with the same certificate. The same holds for the average
under the uniform prior.

**Finite alphabets**: `optdp.design.finite_kernel`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from optdp.certificates.kernel import KernelCertificate, certify
from optdp.exact import enclosures, require
from optdp.exact.rounding import SLACK
from optdp.mechanisms.kernel import UNIT, KernelMechanism
from optdp.problem.domains import Circle, Interval, as_domain
from optdp.problem.losses import CustomLoss, Power, as_loss
from optdp.problem.privacy import LDP
from optdp.solution import Program, Solution, Status
from optdp.solvers import kernel_lp as lp
from optdp.solvers.kernel_interior import solve_interior

BACKENDS = ("auto", "columns", "dense")

#: Linear programs with more pairs of input and output than this are not taken to a vertex.
LARGE = 6000

#: Mechanisms on finer grids than this are not designed again for fewer outputs: each trial costs as much as the first.
SIMPLE = 5

#: Grids have 2^level + 1 inputs, so that all of them are short dyadic numbers.
LEVELS = range(3, 11)


def solve_kernel(
    eps: float,
    loss: Any = None,
    *,
    domain: Any = (0.0, 1.0),
    unbiased: bool = False,
    outputs: Any = None,
    prior: Any = None,
    rtol: float = 1e-3,
    time_limit: float = 60.0,
    simplify: bool = True,
    level: int | None = None,
    backend: str = "auto",
) -> Solution:
    """The best of all eps-LDP mechanisms, with a bracket that holds for the continuum of inputs and outputs.

    **Arguments:**

    - `eps`: privacy parameter in (0, 30].
    - `loss`: "abs" (the default), "squared" or `optdp.Power(q)` with q >= 1; for an `optdp.Alphabet`, a matrix with
      the loss of each output (column) for each input (row). With `unbiased=True` it is the variance: "squared", also
      the default then.
    - `domain`: a pair (lower, upper) or `optdp.Interval`; an `optdp.Circle`; an `optdp.Alphabet`.
    - `unbiased`: ask for E[Y | x] = x at every x of the interval.
    - `outputs`: a pair (lowest, highest) that outputs must stay between; None: the domain itself, or, if unbiased, no
      limit.
    - `prior`: None for the worst case over all inputs. On an interval: a pair (points, probabilities), to minimise
      the average loss when inputs are distributed so; on a circle: "uniform"; on an alphabet: one probability for
      each symbol.
    - `rtol`: refine until (value - lower_bound)/value is at most this.
    - `time_limit`: seconds after which no finer grid is begun: the bracket is then wider, and the status says so.
    - `simplify`: use as few outputs as the bracket allows.
    - `level`: solve on the grid with 2^level + 1 inputs alone, instead of refining.
    - `backend`: how grid programs are solved: "auto" (blocks of columns, interior point), "columns" (column
      generation over pairs of an output and a set of favoured inputs, simplex), "dense" (the plain linear program;
      small grids).

    **Returns** a `Solution`: `value` what `mechanism` attains at its worst input (on average, with a prior),
    `lower_bound` what no eps-LDP mechanism at all can beat.

    **Raises** TypeError or ValueError naming the argument; RuntimeError if HiGHS fails on the first, coarsest grid.
    """
    from optdp.problem.domains import Alphabet

    privacy = LDP(eps)
    require.choice("backend", backend, BACKENDS)
    rtol = require.real("rtol", rtol, low=0.0, open_low=True, high=1.0)
    time_limit = require.real("time_limit", time_limit, low=0.0, open_low=True)
    if not isinstance(unbiased, bool):
        raise TypeError(f"unbiased = {unbiased!r} is not allowed: it must be True or False")
    if level is not None:
        level = require.integer("level", level, low=LEVELS[0], high=LEVELS[-1])
    if isinstance(domain, Alphabet):
        from optdp.design.finite_kernel import solve_finite

        _refuse_with("an Alphabet", unbiased=unbiased, outputs=outputs, level=level)
        return solve_finite(privacy, loss, domain, prior, backend)
    area = as_domain(domain)
    law = _power(loss, area, unbiased)
    if isinstance(area, Circle):
        _refuse_with("a Circle", unbiased=unbiased, outputs=outputs, level=level)
        return _solve_circle(privacy, law, area, prior)
    problem = _Problem(
        privacy,
        law,
        area,
        unbiased,
        _range(outputs, area, privacy.eps if unbiased else None),
        _atoms(prior, area),
        backend,
    )
    return _Search(problem, rtol, time_limit, simplify).run(level)


def _refuse_with(kind: str, **arguments: Any) -> None:
    for name, value in arguments.items():
        if value not in (None, False):
            raise ValueError(f"{name} = {value!r} is not allowed with {kind} as domain: leave it out")


def _power(loss: Any, domain: Interval | Circle, unbiased: bool) -> Power:
    law = as_loss(loss if loss is not None else "squared" if unbiased else "abs", domain.exact_reach)
    if isinstance(law, CustomLoss) or law.exponent < 1:
        raise ValueError(
            f"loss = {law.name!r} is not allowed: solve_kernel takes 'abs', 'squared' and optdp.Power(q) with q >= 1"
        )
    if unbiased and law.exponent != 2:
        raise ValueError(
            f"loss = {law.name!r} is not allowed with unbiased=True: the loss is then the variance, 'squared'"
        )
    return law


def _range(outputs: Any, domain: Interval, unbiased: float | None) -> tuple[float, float] | None:
    """The range of outputs as shares of the domain, None for no limit. `unbiased`: epsilon, if the mechanism must be
    so.
    """
    if outputs is None:
        return None if unbiased else (0.0, 1.0)
    text = "outputs must be a pair (lowest, highest) with lowest < highest"
    if not isinstance(outputs, tuple | list) or len(outputs) != 2:
        raise TypeError(f"outputs = {outputs!r} is not allowed: {text}")
    low, high = (require.real("outputs", end) for end in outputs)
    if not low < high:
        raise ValueError(f"outputs = {outputs!r} is not allowed: {text}")
    share = tuple(float((Fraction(end) - Fraction(domain.lower)) / domain.exact_width) for end in (low, high))
    if unbiased:
        # Y - low >= 0 has mean 1 - low at the upper end and -low at the lower one, a ratio of at most E; the same from above.
        beyond = 1 / np.expm1(unbiased) * (1 + 1e-6)
        if share[0] > -beyond or share[1] < 1 + beyond:
            far = float(beyond * domain.width)
            raise ValueError(
                f"outputs = {outputs!r} is not allowed with unbiased=True: no mechanism with this eps is unbiased unless outputs "
                f"may reach width/(e^eps - 1) beyond both ends, [{domain.lower - far:.6g}, {domain.upper + far:.6g}]"
            )
    else:  # an output outside the domain is never better than the nearest end of it
        share = max(share[0], 0.0), min(share[1], 1.0)
        if not share[0] < share[1]:
            raise ValueError(f"outputs = {outputs!r} is not allowed: their range must overlap {domain}")
    return share[0], share[1]


def _atoms(prior: Any, domain: Interval) -> tuple[np.ndarray, np.ndarray] | None:
    """The prior's points as shares, and its probabilities; points that are not in it get probability 0."""
    if prior is None:
        return None
    text = "prior must be a pair (points, probabilities) of equally long lists"
    if (
        not isinstance(prior, tuple | list)
        or len(prior) != 2
        or len(np.shape(prior[0])) != 1
        or np.shape(prior[0]) != np.shape(prior[1])
    ):
        raise TypeError(f"prior = {prior!r} is not allowed: {text}")
    points, weights = domain.check(prior[0], "prior points"), np.asarray(prior[1], dtype=float)
    if (
        not np.isfinite(weights).all()
        or (weights < 0).any()
        or abs(float(weights.sum()) - 1) > 1e-9
        or np.unique(points).size < points.size
    ):
        raise ValueError(
            f"prior = {prior!r} is not allowed: {text}, the points distinct, the probabilities >= 0 with sum 1"
        )
    share = np.clip((points - domain.lower) / domain.width, 0.0, 1.0)
    knots = np.union1d(share, [0.0, 1.0])
    mass = np.zeros(knots.size)
    mass[np.searchsorted(knots, share)] = weights
    return knots, mass


@dataclass(frozen=True)
class _Problem:
    privacy: LDP
    loss: Power
    domain: Interval
    unbiased: bool
    outputs: tuple[float, float] | None
    prior: tuple[np.ndarray, np.ndarray] | None
    backend: str

    @property
    def symmetric(self) -> bool:
        return self.prior is None and (self.outputs is None or self.outputs[0] + self.outputs[1] == 1)

    def grid(self, level: int, ratio: float, samples: np.ndarray | None = None) -> lp.Grid:
        if self.prior is not None:
            knots, mass = self.prior
            return lp.Grid(ratio, self.loss.exponent, knots, knots, self.unbiased, mass, False)
        knots = np.linspace(0.0, 1.0, 2**level + 1)
        return lp.Grid(
            ratio, self.loss.exponent, knots, knots if samples is None else samples, self.unbiased, None, self.symmetric
        )

    def span(self) -> tuple[float, float]:
        """Where outputs are looked for: their range, or one that is far wider than an optimal mechanism's."""
        if self.outputs is not None:
            return self.outputs
        # Duchi's two outputs, (E + 1)/(E - 1) times the half width from the middle, and as much again.
        far = 2 * float(1 / np.tanh(self.privacy.eps / 2)) + 1
        return 0.5 - far / 2, 0.5 + far / 2

    def spec(self) -> dict[str, Any]:
        prior = None
        if self.prior is not None:
            prior = [(self.domain.lower + self.domain.width * self.prior[0]).tolist(), self.prior[1].tolist()]
        shares = None if self.outputs is None else [self.domain.lower + self.domain.width * s for s in self.outputs]
        return {
            "problem": "kernel",
            "eps": self.privacy.eps,
            "loss": self.loss.name,
            "domain": self.domain.to_dict(),
            "unbiased": self.unbiased,
            "outputs": shares,
            "prior": prior,
        }


class _Search:
    """Finer and finer grids until the bracket is tight enough; keeps the best mechanism and the best bound."""

    def __init__(self, problem: _Problem, rtol: float, time_limit: float, simplify: bool) -> None:
        self.problem, self.rtol, self.simplify = problem, rtol, simplify
        self.began, self.time_limit = time.perf_counter(), time_limit
        self.ratio = float(enclosures.exp_below(problem.privacy.eps))
        self.mechanism: KernelMechanism | None = None
        self.value = np.inf
        self.certificate: KernelCertificate | None = None
        self.sizes = (0, 0)
        self.hint: lp.Dual | None = None
        self.below: lp.Outcome | None = None
        self.message = ""
        self.first = True

    @property
    def left(self) -> float:
        """Seconds left; without limit on the first, coarsest grid, so that there always is a bracket."""
        if self.first:
            return 1e9
        return self.time_limit - (time.perf_counter() - self.began)

    @property
    def gap(self) -> float:
        assert self.certificate is not None
        return (self.value - self.certificate.bound) / self.value if self.value else 0.0

    def run(self, only: int | None) -> Solution:
        status, level, spent = Status.GAP, only or self._first_level(), 0.0
        while True:
            began = time.perf_counter()
            try:
                self._lower(level)
                if level <= SIMPLE or self.mechanism is None or self.gap > self.rtol:
                    self._upper(level)
            except lp.SolverFailure as failure:
                if self.mechanism is None or self.certificate is None:
                    raise
                self.message, status = str(failure), Status.OPTIMAL if self.gap <= self.rtol else failure.status
                break
            self.first = False
            if self.gap <= self.rtol:
                status = Status.OPTIMAL
                break
            if self.problem.prior is not None or only is not None or level == LEVELS[-1]:
                break
            spent = time.perf_counter() - began
            # Errors fall fourfold from level to level; times grow about fivefold.
            steps = 1 if level < 5 else max(1, int(np.ceil(np.log(self.gap / self.rtol) / np.log(4))))
            steps = min(steps, 2, LEVELS[-1] - level)
            while steps > 1 and spent * 5**steps > self.left:
                steps -= 1
            level += steps
            if spent * 2.5 > self.left:
                status = Status.TIME_LIMIT
                break
        return self._solution(status)

    def _first_level(self) -> int:
        """A spacing of about a tenth of the width of OGPM's window, the scale on which kernels vary."""
        width = 2 / (np.exp(self.problem.privacy.eps / 2) + 1)
        if self.problem.unbiased:
            return int(np.clip(np.ceil(np.log2(3 / width)), 4, 5))
        # Where outputs are priced on the continuum, the first grid takes several rounds.
        return int(np.clip(np.ceil(np.log2(8 / width)), 4, 8 if self.problem.loss.exponent == 1 else 7))

    def _lower(self, level: int) -> None:
        """Solve the relaxation and certify its dual."""
        problem = self.problem
        grid = problem.grid(level, float(np.exp(problem.privacy.eps)))
        found = self._price(grid, self._start(grid), tolerance=self.rtol / 12)
        dual = found.dual
        weights = grid.prior if grid.prior is not None else dual.weights
        made = certify(
            problem.privacy.eps,
            problem.loss,
            problem.domain.exact_width,
            grid.knots,
            weights,
            dual.masses,
            dual.means if problem.unbiased else None,
            problem.outputs,
            prior=grid.prior is not None,
        )
        if self.certificate is None or made.bound > self.certificate.bound:
            self.certificate = made
        self.hint, self.below = dual, found

    def _start(self, grid: lp.Grid) -> np.ndarray:
        """Outputs to begin with: an even grid, the inputs, and what the last grid used."""
        span = self.problem.span()
        inside = grid.knots[(grid.knots >= span[0]) & (grid.knots <= span[1])]
        if self.problem.loss.exponent == 1:  # optimal outputs are inputs
            return self._half(np.union1d(inside, span))
        y = np.union1d(np.linspace(*span, min(2 * grid.knots.size - 1, 129)), inside)
        if self.below is not None:
            y = np.union1d(np.linspace(*span, 65), self.below.outputs[self.below.floors > 1e-6])
        return self._half(y)

    def _half(self, y: np.ndarray) -> np.ndarray:
        return y[y <= 0.5] if self.problem.symmetric else y

    def _price(self, grid: lp.Grid, y: np.ndarray, tolerance: float, rounds: int = 25) -> lp.Outcome:
        """Solve over the outputs `y`, add the outputs at which g is negative, and so on until the bound meets the
        value.
        """
        problem, span = self.problem, self.problem.span()
        if problem.backend == "columns":
            return lp.solve_columns(grid, y, span, tolerance=tolerance, time_limit=self.left)
        best: lp.Dual | None = None
        bound = -np.inf
        pairs: np.ndarray | None = None
        for _ in range(rounds):
            if problem.backend == "dense":
                found = lp.solve_dense(grid, np.union1d(y, 1 - y) if grid.symmetric else y, time_limit=self.left)
                found = replace(found, dual=replace(found.dual, grid=grid))
            else:
                pairs = self._likely(grid, y) if pairs is None else pairs
                found = self._blocks(grid, y, pairs)
            before = y
            self.sizes = max(self.sizes, (found.variables, found.constraints))
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
            missing = pairs is not None and bool(
                ((-1e-12 * abs(found.value) > found.dual.reduced(before).T) & ~pairs).any()
            )
            if not new.size and not missing:
                break
            y = np.union1d(y, new)
            pairs = None if problem.prior is not None else _around(1e-9 * abs(found.value) >= found.dual.reduced(y).T)
        assert best is not None
        return replace(found, dual=best)

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
                if failure.status is Status.TIME_LIMIT:
                    raise
        try:
            return lp.solve_blocks(
                grid, y, pairs=pairs, vertex=size <= (3 * LARGE if exact else LARGE), time_limit=self.left
            )
        except lp.SolverFailure as failure:
            if pairs is None or failure.status is Status.TIME_LIMIT:
                raise
        return lp.solve_blocks(grid, y, vertex=False, time_limit=self.left)

    def _likely(self, grid: lp.Grid, y: np.ndarray) -> np.ndarray | None:
        """Pairs near those that the last grid's prices favour: for each output an interval of inputs, with a margin."""
        if self.hint is None or grid.prior is not None or grid.knots.size <= 17:
            return None
        knots = self.hint.grid.knots
        good = self.hint.reduced(y) <= 0
        margin = 2.5 * float(np.diff(knots).max())
        low = np.where(good.any(axis=1), knots[np.argmax(good, axis=1)], np.minimum(y, 1)) - margin
        high = (
            np.where(good.any(axis=1), knots[knots.size - 1 - np.argmax(good[:, ::-1], axis=1)], np.maximum(y, 0))
            + margin
        )
        return (grid.knots[:, None] >= low) & (grid.knots[:, None] <= high)

    # The mechanism ----------------------------------------------------------------------------------------------

    def _upper(self, level: int) -> None:
        """Design the mixed kernel, round it to an exactly private mechanism, and keep it if it is the best so far."""
        problem = self.problem
        ratio = self.ratio * (1 - SLACK)
        if problem.prior is not None:
            found = self._price(problem.grid(level, ratio), self._start(problem.grid(level, ratio)), self.rtol / 12)
            self._keep(found, found.dual.grid)
            return
        knots = np.linspace(0.0, 1.0, 2**level + 1)
        samples = self._samples(knots)
        y = self._outputs_above(knots)
        for _ in range(2 if level > SIMPLE else 3 if problem.loss.exponent == 1 else 6):
            grid = problem.grid(level, ratio, samples)
            if problem.backend == "dense":
                found = lp.solve_dense(grid, np.union1d(y, 1 - y) if grid.symmetric else y, time_limit=self.left)
            else:
                found = self._blocks(grid, y, self._likely(grid, y), problem.unbiased)
            self.sizes = max(self.sizes, (found.variables, found.constraints))
            worst, peaks = _peaks(found, grid)
            slack = max(self.rtol / 20, 1e-9) * worst
            extra = peaks[:, 0][peaks[:, 1] > found.value + slack / 2]
            new = self._short(_apart(self._gains(found), y, UNIT))
            if worst - found.value <= slack and not new.size:
                break
            samples = np.union1d(samples, np.concatenate([extra, 1 - extra]) if grid.symmetric else extra)
            y = np.union1d(y, new)
        self._keep(found, grid)
        if self.simplify and self.gap <= self.rtol and level <= SIMPLE:
            self._simplify(grid, found)

    def _gains(self, found: lp.Outcome) -> np.ndarray:
        """Outputs that would lower the mixed kernel's loss by more than its share of the tolerance."""
        if self.problem.loss.exponent == 1:  # more kinks would cost more than they gain
            return np.empty(0)
        points, g = found.dual.minima(self.problem.span())
        return points[g < -self.rtol / 12 * found.value]

    def _short(self, y: np.ndarray) -> np.ndarray:
        """The half that is solved for, of outputs as short as exact means need them."""
        if not self.problem.unbiased:
            return self._half(y)
        low, high = self.problem.span()
        units = np.clip(np.round(y / UNIT), np.ceil(low / UNIT), np.floor(high / UNIT))
        return self._half(np.unique(units) * UNIT)

    def _samples(self, knots: np.ndarray) -> np.ndarray:
        """Where the mixed loss is bounded: at the inputs, and between them. A variance mixed linearly bulges by h^2/4
        at most.
        """
        return np.linspace(0.0, 1.0, (2 if self.problem.unbiased else 4) * (knots.size - 1) + 1)

    def _outputs_above(self, knots: np.ndarray) -> np.ndarray:
        span = self.problem.span()
        assert self.below is not None
        if self.problem.loss.exponent == 1:
            y = np.linspace(0.0, 1.0, 2 * knots.size - 1)
            return self._half(np.union1d(y[(y >= span[0]) & (y <= span[1])], span))
        return self._short(self.below.outputs[self.below.floors > 1e-7])

    def _keep(self, found: lp.Outcome, grid: lp.Grid) -> bool:
        made = self._round(found, grid)
        if made is None:
            return False
        value = made.enclose_value(self.problem.loss)[1]
        if value < self.value:
            self.mechanism, self.value, self.message = made, value, ""
            return True
        return False

    def _round(self, found: lp.Outcome, grid: lp.Grid) -> KernelMechanism | None:
        problem = self.problem
        use = found.floors > 1e-9
        prior = None if grid.prior is None else tuple(grid.prior.tolist())
        try:
            return KernelMechanism.private(
                problem.privacy.eps,
                grid.knots,
                found.outputs[use],
                found.rows[:, use],
                found.floors[use],
                problem.domain,
                problem.unbiased,
                prior,
            )
        except ValueError as reason:
            self.message = str(reason)
            return None

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
        patience = time.perf_counter() - self.began  # no longer than everything before
        while few < many and min(self.left, 2 * patience - (time.perf_counter() - self.began)) > 0:
            count = (few + many) // 2
            try:
                short = self._short(merges[count])
                trial = self._blocks(grid, short, self._likely(grid, short), True)
            except lp.SolverFailure:  # infeasible: too few outputs
                few = count + 1
                continue
            made = self._round(trial, grid)
            value = np.inf if made is None else made.enclose_value(self.problem.loss)[1]
            assert self.certificate is not None
            if made is not None and value - self.certificate.bound <= self.rtol * value:
                self.mechanism, self.value, many = made, value, count
            else:
                few = count + 1

    def _solution(self, status: Status) -> Solution:
        problem, certificate, mechanism = self.problem, self.certificate, self.mechanism
        if certificate is None or mechanism is None:
            raise RuntimeError(f"no exactly private mechanism was found: {self.message}")
        lower = min(certificate.bound, self.value)
        what = "average" if problem.prior is not None else "worst-case"
        kind = "unbiased kernel" if problem.unbiased else "kernel"
        rows = "mass, mean and loss" if problem.unbiased else "mass and loss"
        program = Program(
            name=f"best {kind} on {problem.domain}, {what} loss {problem.loss}, eps = {problem.privacy.eps:g}",
            variables=f"{self.sizes[0]} columns (floors and favoured pairs of input and output) in the largest linear program",
            constraints=f"{self.sizes[1]} rows: {rows} at {len(certificate.inputs)} inputs, likelihood ratios",
            solver=f"HiGHS ({problem.backend})"
            + (", interior point on large grids" if problem.backend == "auto" else ""),
            seconds=time.perf_counter() - self.began,
            objective=self.value,
            bound=certificate.bound,
            message=self.message,
            build=lambda: problem.grid(4, float(np.exp(problem.privacy.eps))),
        )
        return Solution(
            self.value,
            lower,
            mechanism,
            certificate,
            program,
            problem.privacy,
            problem.loss,
            status,
            problem.spec(),
            _closed_form(problem),
        )


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


def _closed_form(problem: _Problem) -> Callable[[], Any] | None:
    """The optimum as an expression in `eps`, where it is proven to have one (`optdp.closed_forms.kernel`)."""
    if problem.prior is not None or problem.loss.exponent != 2 or problem.outputs not in (None, (0.0, 1.0)):
        return None
    # The limits are ln(3 + 2 sqrt 2) and the root of tanh(tanh(eps/2)) (e^eps + 1) = 1.
    eps = problem.privacy.eps
    if problem.unbiased:
        inside = float(np.tanh(np.tanh(eps / 2)) * (np.exp(eps) + 1)) < 1 - 1e-9
    else:
        inside = eps < float(np.log(3 + 2 * np.sqrt(2))) - 1e-9
    if not inside:
        return None

    def expression() -> Any:
        from optdp.closed_forms import kernel as forms

        form = forms.equaliser_value if problem.unbiased else forms.squared_value
        return form(problem.domain.exact_width)

    return expression


def _solve_circle(privacy: LDP, law: Power, area: Circle, prior: Any) -> Solution:
    """On a circle the optimal kernel is the optimal piecewise mechanism, by averaging over rotations."""
    from optdp.design.piecewise import solve_piecewise

    if prior is not None:
        require.choice("prior", prior, ("uniform",))
    found = solve_piecewise(privacy.eps, 3, law, domain=area)
    spec = {
        "problem": "kernel",
        "eps": privacy.eps,
        "loss": law.name,
        "domain": area.to_dict(),
        "unbiased": False,
        "outputs": None,
        "prior": prior,
    }
    program = replace(
        found.program,
        name=f"best kernel on {area}, loss {law}, eps = {privacy.eps:g}",
        solver="rotation invariance, then bathtub (one dimension)",
    )
    return replace(found, program=program, spec=spec)

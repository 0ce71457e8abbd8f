"""The optimal additive noise under (eps, delta)-differential privacy: lattices, finer and finer, and closed forms beside them.

The program is that of `optdp.design.additive.program`. Here is where noise ends, and how fine its lattice must be.

**The support is cut without loss.** With p = 0 beyond K, the multipliers beyond it can be constant, and the dual is feasible
for the infinite program as soon as c_(K+1) >= t + (E - 1) sum lam / 2, which is checked (and K enlarged otherwise).

**Losses that are constant far out.** Cells there are alike, and noise need not end: a geometric tail as below needs nothing of
delta, which is spent further in, shift n included. For a step function the coarsest lattice with cells that end at its jumps,
around the points or between them (`bins`), has the value of the line.

**delta = 0** (and delta too small to matter): beyond K the masses are continued geometrically, p_(i+n) = p_i/E, which costs
nothing once L(Kh) >= t: the staircase. The dual is continued by the matching recursion until it no longer matters.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from optdp.certificates.additive import AdditiveCertificate, geng_viswanath
from optdp.certificates.base import Refusal
from optdp.certificates.period import PeriodCertificate
from optdp.certificates.spike import SpikeCertificate
from optdp.certificates.staircase import IntegerStaircaseCertificate, StaircaseCertificate
from optdp.certificates.tails import TailsCertificate
from optdp.design.additive import lattice, narrow, rounded
from optdp.design.additive.lattice import BITS, Bracket, LatticeTask, as_weights, cut_off, pairs_of, private_geometric
from optdp.design.additive.program import MAX_ROWS, LatticeProgram, build_model, multipliers_of
from optdp.design.registry import Run, register
from optdp.exact import enclosures, require
from optdp.exact.numbers import counted
from optdp.exact.sampling import LIMB
from optdp.mechanisms.additive import GRID, AdditiveMechanism
from optdp.mechanisms.baselines.noise import truncated_radius
from optdp.mechanisms.rounded import WIDEST, RoundedNoise
from optdp.mechanisms.staircase import PERIOD, LatticeStaircase, noise_of
from optdp.problem.domains import Integers, Line
from optdp.problem.objectives import WorstCase
from optdp.problem.privacy import ApproxDP, Profile
from optdp.problem.problem import Problem
from optdp.solution import Program, Solution
from optdp.solvers.lp import LinearSolver

METHODS = ("auto", "simplex", "ipm", "structured")
#: Peaks below this are resolved by `narrow`; its lattices have so many points in the peak at first, and at most.
NARROW, FIRST, LIMIT = 0.1, 8, 24
#: Lattices with more points are not tried.
MAX_POINTS = 60_000
#: Sums over all periods of a staircase are taken from this eps on; for |x| and x^2 lattices are fast up to this gap.
SUMMED, FAST = 0.3, 1e-3
#: The eps from which on few integers have the staircase too: programs end far from the optimum from about 7 on.
STEEP = 4
#: Noise with more points is not mixed in.
FARTHEST = 8 * MAX_POINTS
#: Of integers with more pairs within a sensitivity, noise is rounded to them.
MAX_PAIRS = 150_000
#: Lattices of at most so many points per sensitivity are solved exactly where a geometric tail and slacks go together: on finer
#: ones that takes long.
COARSE = 24
#: From so many pairs on, a program on few integers is that of delta = 0 at first, where delta saves next to nothing.
MANY = 20_000
#: Where it costs little (n^2 times the radius below CHEAP), refinement goes on to a gap of AIM times rtol.
AIM = 0.1
CHEAP = 10_000
#: Noise that exceeds a limit with less than this probability may never do so. Where it is then to end: a multiple of 1/(2 n) of
#: the sensitivity with n up to ENDS; the share of delta that is kept back.
NOTHING, ENDS, ROOM = 1e-9, 24, 1e-6
#: Tails that fall more slowly are not tried: what keeps so small an eps with delta = 0 reaches too far.
FLATTEST = 1e-4
#: The most points per sensitivity where delta = 0 and the loss jumps.
FINEST = 1500
#: Where a loss is bounded noise reaches as far beyond as noise for this share of delta.
FAR = 1e-3
#: A delta below this counts as 0 in the lattice program (not in what is guaranteed and proven).
TINY = 1e-12
#: The staircase of the integers is written out for sensitivities up to this.
WRITTEN = 10_000
#: Programs on more integers than this per sensitivity are not solved where rounding costs a share of less than FINE.
LATTICE, FINE = 64, 2e-5
#: Lattices that do not divide the sensitivity are used where rounding to them costs less than this share.
SPARE = 2e-4
#: By how much noise of another kind must be better than that of the lattice, of which more is known.
TIE = 1e-6
#: Uniform noise: bits of the sensitivity that its grid resolves.
SHARE = 20
#: What the design returns: noise, and the proof of its bound.
Noise = AdditiveMechanism | LatticeStaircase | RoundedNoise
Proof = AdditiveCertificate | StaircaseCertificate | PeriodCertificate | SpikeCertificate | TailsCertificate


class _Task(LatticeTask):
    """A problem in the numbers that the search works with; `radius`: about how far the noise reaches, in sensitivities."""

    def __init__(self, problem: Problem, deadline: float, method: str, solver: LinearSolver | None) -> None:
        super().__init__(problem)
        self.deadline, self.method, self.solver = deadline, method, solver
        self.eps, self.delta, q = float(self.privacy.eps), float(self.privacy.delta), self.loss.exponent
        self.radius = truncated_radius(self.eps, self.delta) if self.delta > 0 else 40 / self.eps
        #: Where the optimal noise is close to a narrow peak: how wide that is.
        self.peak = narrow.peak(self.eps, int(q)) if q in (1, 2) else 1.0
        peaked = self.peak < NARROW and self.delta > 0
        #: Whether integers are too many, so that noise of the line is rounded to them.
        self.rounds = (
            self.integers and q in (1, 2) and self.width <= WIDEST and (self._large(q) or (peaked and self.width > 1))
        )
        self.discrete = self.integers and not self.rounds
        self.narrow = peaked and not self.discrete
        #: Whether the loss may grow too slowly to end noise.
        self.slow = not self.loss.convex
        #: Where noise is made before it is rounded.
        self.area = Integers() if self.discrete else Line()

    def _large(self, q: float) -> bool:
        """Whether a lattice of all integers is too large, or rounding costs less than a share FINE of the loss of noise."""
        if 2 * self.width * (self.radius + 2) > MAX_POINTS:
            return True
        if self.delta > 0 and self.width**2 * self.radius > 2 * MAX_ROWS:
            return True
        reach = self.width * min(self.radius, 1 / self.eps if self.eps else math.inf, 4 * self.peak)
        return self.width > LATTICE and FINE * reach**q > 1

    @property
    def crowded(self) -> bool:
        """Whether there are more integers than a lattice program may have, and noise is not rounded to them below."""
        points, free = self.width * (self.radius + 2), self.discrete and self.loss.exponent not in (1, 2)
        return free and (2 * points > MAX_POINTS or (self.width > LATTICE and self.width * points > MAX_PAIRS))

    def proof(self, program: LatticeProgram, costs: np.ndarray) -> AdditiveCertificate:
        """What the multipliers of a program prove."""
        return AdditiveCertificate(program.n, self.rounding(program.n), tuple(multipliers_of(program, costs)))

    def about(self, **changes: Any) -> _Task:
        """The same task for a changed problem."""
        return _Task(replace(self.problem, **changes), self.deadline, self.method, self.solver)

    def allowed(self, points: int, value: float = 0.0) -> int:
        """Points per sensitivity near `points`: on the integers at most a point each, and a divisor where there is one, unless
        what rounding to others costs is a small share of the loss, `value`.
        """
        if not self.rounds:
            return lattice.aligned(points, self.jumps, self.loss.steps, bins=not self.discrete)
        most = int(self.width)
        points = min(points, most)
        if self.loss.exponent == 2 and value * SPARE > 1 / 12:
            return points
        return next((n for n in range(points, min(points + points * 2 // 3, most) + 1) if most % n == 0), points)

    def resolved(self, peak: float, value: float) -> int:
        """Points per sensitivity of which about `peak` lie in the peak: on the integers all of them where those are few.

        0 where they are too many.
        """
        points = max(2, round(math.ceil(peak) / self.peak))
        native = min(max(1.25 * points, narrow.NATIVE / self.peak), narrow.FINEST)
        if self.rounds and self.width <= native:
            return int(self.width)
        return self.allowed(points, value) if points <= narrow.FINEST else 0

    def on(self, reach: float) -> _Task:
        """The same with a user's function checked up to `reach` sensitivities (more than was asked before)."""
        if not self.loss.assumptions or (self.loss.reach or 0.0) >= self.width * reach:
            return self
        return self.about(objective=WorstCase(self.loss.on(self.width * reach)))

    @property
    def indifferent(self) -> float:
        """The distance, in sensitivities, at which the loss is that of Laplace noise: the optimum is no larger."""
        q = self.loss.exponent
        if q is not None:
            return math.gamma(q + 1) ** (1 / q) / self.eps
        grid = np.linspace(0.0, 40.0, 20_001)
        x = grid * (self.width / self.eps)
        mean = float(np.trapezoid(self.loss(x) * np.exp(-grid), grid))
        high = np.flatnonzero(self.loss(x) >= mean)
        return float(grid[high[0]]) / self.eps if high.size else 40 / self.eps

    def bracket(
        self, mechanism: AdditiveMechanism | LatticeStaircase, certificate: Proof, solved: bool = True,
        program: LatticeProgram | None = None, kind: str = "closed form",
    ) -> Bracket:  # fmt: skip
        """Both sides, each from scratch and rounded outwards."""
        noise, value = self.sent(mechanism)
        return Bracket(
            noise, value, certificate, certificate.bound(self.problem).value, program, solved, kind, self.loss
        )

    def sent(self, noise: AdditiveMechanism | LatticeStaircase) -> tuple[Noise, float]:
        """Noise for the problem's domain, and its loss."""
        if self.rounds and isinstance(noise, AdditiveMechanism) and noise.n == noise.sensitivity == self.width:
            # The lattice is that of the integers.
            weights = (noise.weights[0] + noise.atom, *noise.weights[1:])
            noise = replace(noise, domain=Integers(), weights=weights, atom=0)
        elif self.rounds:
            whole = RoundedNoise(Integers(), noise)
            return whole, whole.enclose_loss(self.loss)[1]
        exact = {"sent": True} if isinstance(noise, AdditiveMechanism) else {}
        return noise, noise.enclose_loss(self.loss, **exact)[1]

    def costs(self, n: int, last: int) -> np.ndarray:
        """Costs of lattice points in floats."""
        costs = super().costs(n, last)
        if not costs.any():
            told = f"loss = {self.loss.name!r}, sensitivity = {self.width:g} is not allowed"
            raise ValueError(f"{told}: all losses up to {last / n:g} sensitivities are about 0; scale the loss up")
        return costs

    def lattice(self, n: int, costs: np.ndarray, delta: float, **options: Any) -> LatticeProgram:
        """A lattice program of this problem."""
        options |= {"bins": self.bins(n), "method": self.method, "solver": self.solver}
        program = LatticeProgram(self.eps, delta, n, costs, **options)
        # Of a relaxation the multipliers are asked alone.
        if program.atom and not program.short and not (self.rounds and n == self.width):
            ends, unit = np.arange(-1, 2 * program.size, 2) / (2 * n), 1.0 if self.loss.exponent else self.width
            with np.errstate(over="ignore", invalid="ignore"):  # a high power far out
                means = np.diff(np.sign(ends) * self.loss.integral(np.abs(ends) * unit)) * n / unit
            spread = (means - float(self.loss(0.0))) * program.multiplicity * program.scale
            program.spread = spread if np.isfinite(spread).all() else None
        return program


def _refined_pairs(coarse: LatticeProgram, n: int, size: int) -> dict[int, np.ndarray]:
    """Pairs near those that were active on a coarser lattice, and all of shift n from a little left of the centre on."""
    mask = coarse.active()
    grown = mask.copy()
    for ds in (-1, 0, 1):
        for di in (-1, 0, 1):
            grown |= np.roll(np.roll(mask, ds, axis=0), di, axis=1)
    scale = coarse.n / n
    index = np.arange(-size, size)
    column = np.clip(np.round(index * scale).astype(int), -coarse.size, coarse.size) + coarse.size
    pairs = {s: index[grown[round(s * scale), column]] for s in range(1, n + 1)}
    pairs[n] = np.arange(-n, size)
    return pairs


def private_finite(
    privacy: ApproxDP | Profile, domain: Line | Integers, n: int, p: np.ndarray, atom: float = 0.0, bins: bool = False,
    tail: bool = False,
) -> AdditiveMechanism:  # fmt: skip
    """Noise close to the masses p_0, p_1, .. (and an atom) that keeps all of one or more pairs (eps, delta > 0) exactly; `bins`
    as of the mechanism, `tail`: whether masses are continued by p_(i+n) = p_i/E.

    The masses become integers; where an exact divergence exceeds its delta, they are mixed with a reference noise that
    is private with room to spare, just enough (divergences are convex): of each delta less than 0.9 is of use for it.

    **Raises** ArithmeticError where weights are too coarse, or such noise would have more than FARTHEST points.
    """
    pairs = pairs_of(privacy)
    least = pairs[0][0]
    eps, delta = lattice.falling(pairs) if len(pairs) > 1 else float(least), min(float(d) for _, d in pairs)
    limits = [(enclosures.exp_below(e), Fraction(d)) for e, d in pairs]
    rest, decay = np.zeros(0), 0
    if tail:
        p, rest = p[:-n], p[-n:] / -math.expm1(-eps)
        decay = math.ceil(LIMB / enclosures.exp_below(least))
    total = atom + (1 + bins) * p[0] + 2 * p[1:].sum() + 2 * rest.sum()
    if not tail:
        used = np.flatnonzero(p > 1e-15 * delta * total / p.size)
        p = p[: int(used[-1]) + 1] if used.size else p[:1]
    atom = atom if atom > 1e-6 * delta * total else 0.0
    # Private with room to spare: a Laplacian with as long a tail, or one that is truncated, for half of delta.
    count = p.size + n if tail else int((truncated_radius(eps, delta / 2) + 2) * n) + 2
    if count > FARTHEST:
        raise ArithmeticError(f"no noise of fewer than {count} points is known to be private with room to spare")
    reference = np.exp(-eps * (1 - 1e-9 * (not tail)) / n * np.arange(count))
    reference = reference if tail else cut_off(reference, 0.49 * delta, n, bins)
    reference[count - n :] /= -math.expm1(-eps) if tail else 1.0
    wide = np.zeros(max(p.size + rest.size, reference.size))
    wide[: reference.size] = reference / (2 * reference.sum() - (not bins) * reference[0])
    whole = np.concatenate([p, rest])
    share = 0.0
    for _ in range(40):
        mixed, stuck = share * wide, (1 - share) * atom / total
        mixed[: whole.size] += (1 - share) * whole / total
        parts = (mixed[:-n], mixed[-n:]) if tail else (np.trim_zeros(mixed, "b"), rest)
        weights, ends, (stays,) = (tuple(as_weights(part, 1.0)) for part in (*parts, np.array([stuck])))
        notion = privacy if isinstance(privacy, Profile) else None
        noise = AdditiveMechanism(domain, privacy.sensitivity, n, weights, stays, ends, decay, least, notion, bins=bins)
        excess = [(noise.exact_delta(ratio) - limit, limit) for ratio, limit in limits]
        if all(more <= 0 for more, _ in excess):
            return noise
        if share >= 1:
            break
        needed = max(*(float(more / (more + limit / 2)) for more, limit in excess if more > 0), 2.0**-50)
        share = min(1.0, share + needed * 1.01) if share < 0.5 else 1.0
    where = f"for eps = {eps:g}, delta = {delta:g} on a lattice of {n} points"
    raise ArithmeticError(f"no exactly private noise was found {where}")


def integer_staircase(privacy: ApproxDP, n: int, k: int) -> AdditiveMechanism:
    """The staircase on the integers whose first step ends at k, of at most n - 1: (eps, 0)-private exactly."""
    ratio = enclosures.exp_below(privacy.eps)
    decay = math.ceil(LIMB / ratio)
    total = int((1 << BITS) * (1 - Fraction(privacy.delta)))  # type: ignore[arg-type]  # the rest is mixed in at 0
    first = total // math.ceil(2 * k + 1 + 2 * n / math.expm1(float(privacy.eps)))
    second = math.ceil(first / ratio)
    second += second >> 50  # whichever enclosure of e^eps is used
    tail = math.ceil(Fraction(second * LIMB, LIMB - decay))
    return AdditiveMechanism(Integers(), n, n, (first,) * (k + 1), 0, (tail,) * n, decay, privacy.eps)


def _solve_geometric(task: _Task, n: int) -> Bracket | None:
    """delta = 0, or so small that the noise is the staircase cut off where delta allows; or a loss that is constant far out,
    where noise need not end, and delta is of use further in.
    """
    eps, delta = task.eps, task.delta
    reach = 36 / eps if delta == 0 else min(36 / eps, truncated_radius(eps, delta) + 4 / eps)
    budget = delta if delta > TINY else 0.0  # below, slacks are not worth their scale
    loose = budget > 0 and n <= COARSE and 0 < task.beyond < task.radius
    start = n * (math.ceil(task.beyond if loose else task.indifferent) + 1)
    costs = task.costs(n, start + n * (2 if loose else math.ceil(reach) + 2) - 1)
    options = {"loose": loose, "atom": loose and not (task.discrete or task.bins(n))}
    program = task.lattice(n, costs, budget, points=start + n, geometric=True, **options)
    others = {s: np.arange(-s, n) if n <= COARSE else np.array([-s, 0]) for s in range(1, n)}
    program.add({n: np.arange(-(n // 2) - program.bins, start)} | others)
    solved = program.solve(1e-9 if delta == 0 or loose else 1e-5, task.deadline)
    if not program.primal.any():
        return None
    p, atom = program.masses()
    if not 0 < p.sum() < math.inf:  # a solver that answers anything
        return None
    certificate = task.proof(program, costs)
    if loose:
        mechanism = private_finite(task.privacy, task.area, n, p, atom, program.bins, tail=True)
        return task.bracket(mechanism, certificate, solved, program, "geometric tail")
    mechanism = _with_tail(task, n, p)
    if task.slow and delta > 0:  # the program's slacks have no use on a tail that does not end
        pure = _solve_geometric(task.about(privacy=replace(task.privacy, delta=0.0)), n)
        other = _with_tail(task, n, pure.program.masses()[0]) if pure and pure.program else mechanism
        mechanism = min(mechanism, other, key=lambda noise: noise.enclose_loss(task.loss)[1])
    return task.bracket(mechanism, certificate, solved, program, "geometric tail")


def _with_tail(task: _Task, n: int, p: np.ndarray) -> AdditiveMechanism:
    """Noise close to masses whose last n fall geometrically, cut off where delta allows if that is better."""
    bins = task.bins(n)
    mechanism = private_geometric(task.privacy, task.area, n, p, bins)
    if task.delta <= 2.0**-BITS:  # less than a weight may have: the tail stays
        return mechanism
    periods = np.arange(1, int(truncated_radius(task.eps, task.delta)) + 5)  # of the tail, written out
    written = np.concatenate([p, (p[-n:] * np.exp(-task.eps * periods)[:, None]).ravel()])
    try:
        cut = private_finite(task.privacy, task.area, n, cut_off(written, task.delta, n, bins), bins=bins)
    except ArithmeticError:  # delta is below the resolution of the weights: the tail stays
        return mechanism
    return cut if cut.enclose_loss(task.loss)[1] <= mechanism.enclose_loss(task.loss)[1] else mechanism


def _solve_with_slack(
    task: _Task, n: int, every_shift: bool, coarse: LatticeProgram | None, tolerance: float
) -> Bracket | None:
    """delta > 0. `coarse`: the program of a coarser lattice, for its rows and support."""
    eps, delta = task.eps, task.delta
    plain, peak = truncated_radius(eps, delta), task.peak
    radius = 2 + 4 * peak if task.narrow else plain * 1.02 + 0.25 if coarse is None else (coarse.size + 1) / coarse.n
    while True:
        size = math.ceil(radius * n) + 1
        task = task.on(radius + 4)
        costs = task.costs(n, size)
        program = task.lattice(n, costs, delta, points=size, atom=not task.discrete, short=task.narrow)
        if every_shift:
            pairs = {s: np.arange(-size - s, size) for s in range(1, n + 1)}
        elif coarse is not None and coarse.n >= 12:
            pairs = _refined_pairs(coarse, n, size)
        elif task.narrow:  # points under the peak, and the chain of all points for shift n
            pairs = {s: np.arange(-math.ceil(1.25 * peak * n), math.ceil(1.25 * peak * n) + 1) for s in range(1, n + 1)}
            pairs[n] = np.arange(-n // 2, size - n)
        else:  # the longer shifts (all of them on a small lattice), from a little left of the centre on
            first = 1 if n <= 6 or size <= 2 * n else max(1, (11 * n) // 20)
            pairs = {s: np.arange(-(s + n) // 2, size) for s in range(first, n + 1)}
        program.add(pairs)
        solved = program.solve(tolerance, task.deadline)
        if not program.primal.any():
            return None
        if task.narrow:
            break
        t, _, lam = program.duals()
        needed = t + math.expm1(eps) * sum(lam.values()) / 2
        if not solved or costs[-1] >= needed * (1 - 0.02 * tolerance) or radius > (most := 4 * plain + 40):
            break
        if task.slow and task.costs(n, math.ceil(most * n))[-1] < needed:
            break  # it never ends because of what it costs: the bound is that of a geometric tail
        radius = radius * 1.15 + 0.25
    made = program.noise()
    if made is None:
        return None
    mechanism = private_finite(task.privacy, task.area, n, *made)
    return task.bracket(mechanism, task.proof(program, costs), solved, program, "finite support")


def _solve_bounded(task: _Task, n: int, every_shift: bool, tolerance: float) -> Bracket | None:
    """delta > 0, and a loss that is constant from some distance on: noise may reach as far beyond it as is of use.

    The multipliers are those of a relaxation, without rows for pairs that are further out, or (eps = 0) of the program itself.
    """
    size = math.ceil((task.beyond + min(truncated_radius(task.eps, FAR * task.delta), 2 * task.radius) + 1) * n) + n
    costs, programs, bins = task.costs(n, size), [], task.bins(n)
    first = 1 if n <= 6 or every_shift else max(1, (11 * n) // 20)
    for short in (True, False):
        program = task.lattice(n, costs, task.delta, points=size, atom=not (task.discrete or bins), short=short)
        start = size if every_shift else n
        program.add({s: np.arange(-min((s + start) // 2 + bins, size), size) for s in range(first, n + 1)})
        programs.append((program, program.solve(tolerance, task.deadline)))
        if not program.primal.any():
            return None
    (relaxed, _), (program, solved) = programs
    made = program.noise()
    if made is None:
        return None
    own, other = (task.proof(each, costs) for each in (program, relaxed))
    mechanism = private_finite(task.privacy, task.area, n, *made, bins)
    return task.bracket(mechanism, own, solved, program, "finite support").proven(other, task.problem)


def _ending(task: _Task, best: Bracket) -> Bracket:
    """The bracket with noise that ends before the first step, if there is such for a delta that is a little smaller: with
    cells that end at the step, what is sent may lie just beyond it.
    """
    place = max(Fraction(math.ceil(2 * n * task.jumps[0]) - 1, 2 * n) for n in range(1, ENDS + 1))
    n = int(task.width) if task.discrete else lattice.coarsest([place])
    if not place or not n:
        return best
    bins, delta, size = lattice.in_bins(n, [place]), task.delta * (1 - ROOM), math.ceil(n * place)
    if task.discrete:  # the integers that cost nothing
        bins, size = False, int(np.argmax(task.costs(n, math.ceil(n * task.jumps[0]) + 1) > 0))
    options: dict[str, Any] = {"bins": bins, "method": task.method, "solver": task.solver}
    program = LatticeProgram(task.eps, delta, n, np.zeros(size), **options)
    program.add({s: np.arange(-size - s, size) for s in range(1, n + 1)})
    if not program.solve(1e-9, task.deadline):
        return best
    noise = private_finite(task.privacy, task.area, n, program.masses()[0], bins=bins)
    return min(
        best, task.bracket(noise, best.certificate, program=program, kind="finite support"), key=lambda b: b.value
    )


def accepts(problem: Problem) -> str | None:
    """Additive noise on the line or the integers under (eps, delta)-differential privacy."""
    return lattice.refused(problem, ApproxDP, "ApproxDP")


def design(run: Run, *, n: int | None = None, every_shift: bool = False) -> Solution:
    """See `solve_additive`."""
    method, solver = run.method, run.solver
    require.real("rtol", run.rtol, low=1e-12, high=1.0)
    n = None if n is None else require.integer("n", n, low=1, high=10_000)
    if n is not None and isinstance(run.problem.domain, Integers) and n > run.problem.privacy.sensitivity:  # type: ignore[attr-defined]
        raise ValueError(f"n = {n} is not allowed on the integers: it must be at most the sensitivity")
    if solver is not None and method != "auto":
        raise ValueError(f"method = {method!r} is not allowed with a solver object: choose one of them")
    lattice.sized(run.problem)
    task = _Task(run.problem, run.began + run.time_limit, method, solver)
    if task.delta > 0:
        task = task.on(task.radius + 4)  # refuses a function that is not convex there
    free = not (n or every_shift or solver or method != "auto")
    best = _one_period(task, run.rtol) if free else None
    if free and (best is None or best.gap > run.rtol) and task.crowded and rounded.fits(run.problem):
        found = rounded.solution(run, design)
        return rounded.beside(found, _solution(replace(best, kind="one period"), task, run)) if best else found
    with np.errstate(over="ignore"):
        free_of_cost = not task.loss(task.width * (task.radius + 1))
    if best is None and task.delta > TINY and free_of_cost:
        best = _closed_form_bracket(task)  # it ends where errors begin to cost
    near = None if n or (best and best.gap <= run.rtol) else lattice.moved_in(run.problem)
    if near is not None:
        made = _refine(_Task(near[0], task.deadline, method, solver), run, None, every_shift)
        # What is proven there is about the other loss.
        nothing = AdditiveCertificate(1, "nodes", ())
        best = task.bracket(made.mechanism, nothing, program=made.program, kind=made.kind).better(best)
    if best is None or best.gap > run.rtol:
        best = _refine(task, run, n, every_shift, best)
    if not math.isfinite(best.value):
        width = task.width
        raise ValueError(
            f"loss = {task.loss.name!r}, sensitivity = {width:g} is not allowed: the noise's loss is beyond all floats"
        )
    return _solution(best, task, run)


register(
    "additive",
    ("ApproxDP", "Line, Integers", "WorstCase(a power or piecewise polynomial; with delta > 0 also a convex function)",
     "Additive", "Unbiased"),
    accepts, design, METHODS,
)  # fmt: skip


def _solution(best: Bracket, task: _Task, run: Run) -> Solution:
    used = replace(run.problem, objective=WorstCase(best.loss))
    return Solution(used, best.value, best.lower, best.mechanism, best.certificate, _program(best, task, run))


def _one_period(task: _Task, rtol: float) -> Bracket | None:
    """delta = 0 or so little that it is of no use: the staircase, which needs no program; on many integers also beside programs.

    At a small eps its sums are long, and lattices are fast.
    """
    if task.integers and task.width > LATTICE:
        fits = task.width <= WRITTEN
    else:  # at delta = 0 a program is as good for few integers, as long as floats hold e^eps beside 1
        fits = task.delta <= rtol and not (task.integers and task.delta == 0 and task.eps < STEEP)
    other = (task.width > 1 or task.eps < STEEP) if task.integers else rtol >= FAST
    known = task.loss.exponent in (1, 2) and (task.delta == 0 or other)  # by other proofs
    if not fits or known or task.eps < SUMMED or task.loss.assumptions or task.delta > 0.5:
        return None
    pure = replace(task.problem, privacy=replace(task.privacy, delta=0.0))
    family = IntegerStaircaseCertificate if task.integers else StaircaseCertificate
    try:
        certificate = family.best(pure)
        proof: Proof = PeriodCertificate.best(task.problem) if task.delta else certificate
    except Refusal:
        return None
    step = certificate.first_step(pure)
    if task.integers:
        noise: list[Any] = [_integer_steps(task, min(int(step * task.width), int(task.width) - 1))]
    else:  # where the loss jumps at the end of a step, the step is to end a point or two before it
        noise = [made for share in (step, max(step - 3 * 2.0**-PERIOD, 0.0)) for made in noise_of(task.problem, share)]
    best = task.bracket(noise[0], proof)
    for other in noise[1:]:
        best = _with_noise(best, task, other)
    return replace(best, lower=proof.bound(task.problem).value)


def _integer_steps(task: _Task, k: int) -> AdditiveMechanism:
    """The staircase on the integers whose first step ends at k, with delta at 0."""
    made, delta = integer_staircase(task.privacy, int(task.width), k), Fraction(task.privacy.delta)
    more = int(made.total * delta / (1 - delta))
    return replace(made, weights=(made.weights[0] + more, *made.weights[1:]))


def _program(best: Bracket, task: _Task, run: Run) -> Program:
    program, seconds = best.program, run.seconds
    if program is None:
        program = _small_lattice(task)
        solver, kind = "closed form, no solver", f"{best.kind}: the model is that of {program.n} points per sensitivity"
        objective = None
    else:
        names = {"structured": "structured interior points (optdp)", "ipm": "HiGHS interior points"}
        used = names.get(program.used, "HiGHS simplex")
        solver = f"{used if task.solver is None else task.solver.name}, {counted(program.rounds, 'round')} on the last lattice"
        kind, objective = best.kind, program.objective
    atom = "" if task.discrete else ", an atom"
    return Program(
        f"{program.size} masses on a lattice of {program.n} points per sensitivity{atom}; {program.session.size[1]} columns "
        "with the slacks",
        f"mass 1, hockey-stick divergences at shifts 1..{program.n}: {program.rows} rows generated; {kind}",
        solver, seconds, run.rtol, objective, stopped=seconds > run.time_limit, build=build_model, arguments=program.arguments,
    )  # fmt: skip


def closed_form(problem: Problem, run: Run) -> Program:
    """What is told of noise that is found without a program."""
    nothing = Bracket(None, math.inf, None, 0.0, kind="closed form")
    return _program(nothing, _Task(problem, run.began + run.time_limit, "auto", None), run)


def _small_lattice(task: _Task) -> LatticeProgram:
    """The program on a coarse lattice, where the answer is a closed form: what it says of the problem, as a model."""
    n = int(task.width) if task.discrete else 1
    size = math.ceil(min(task.radius, MAX_POINTS / n) * n) + n
    delta = task.delta if task.delta > TINY or task.eps == 0 else 0.0
    costs = LatticeTask.costs(task.on(size / n + 4), n, 2 * size)  # 0 as far as noise reaches, perhaps
    program = task.lattice(n, costs, delta, points=size, geometric=delta == 0)
    program.add({n: np.arange(-n, size)})
    return program


def _refine(task: _Task, run: Run, n: int | None, every_shift: bool, best: Bracket | None = None) -> Bracket:
    """Brackets on finer and finer lattices until the gap is at most rtol, beside what is there (`best`) before."""
    rtol, radius, q = run.rtol, task.radius, task.loss.exponent
    fixed = n is not None or task.discrete
    fits = lattice.coarsest(task.jumps) if task.jumps and task.loss.steps and not task.discrete else None
    points = n or (int(task.width) if task.discrete else fits or task.allowed(4 if radius < 400 else 1))
    small = task.delta == 0
    if not small and task.eps > 0 and q is not None:
        large = not task.discrete or (n is None and not every_shift and points < 24 and points**2 * radius > MANY)
        negligible = large and radius > 6 and _share(task.eps, task.delta, q) < (0.1 if task.discrete else 0.02) * rtol
        small = task.delta <= TINY or negligible
    coarse: LatticeProgram | None = None
    written = task.integers and LATTICE < task.width <= WRITTEN and n is None
    if written and task.delta == 0 and q in (1, 2) and task.eps > FLATTEST:  # the staircase is the optimum: no program
        with contextlib.suppress(ValueError):  # noise that reaches too far
            best = _with_staircase(_closed_form_bracket(task), task, rtol)
            best = best.proven(IntegerStaircaseCertificate.best(task.problem), task.problem)
            if best.gap <= rtol:
                return best
    if task.narrow and not fixed and not every_shift and task.solver is None:
        best, small = _narrow(task, rtol), False
        if best.gap <= rtol:
            return best
        points = task.allowed(math.ceil(FIRST / task.peak), best.value)
    if n is not None and points * 2 * (radius + 2) > MAX_POINTS:
        most = int(MAX_POINTS / (2 * (radius + 2)))
        raise ValueError(
            f"n = {n} is not allowed for noise that reaches over {radius:.3g} sensitivities: at most {most}"
        )
    many = points >= 24 and not every_shift and not task.loss.bounded
    if fixed and many and not small:  # where the support ends is found on a coarser lattice
        rough = _solve_with_slack(task.about(domain=Line()), 12, False, None, 1e-5)
        coarse = rough.program if rough else None
    rows = (2.5 if task.narrow else 2) * MAX_ROWS
    if q is None and task.eps > FLATTEST and points**2 * radius >= rows and not (every_shift or task.loss.assumptions):
        small = True  # noise without an end has a row for each point, whatever delta is
    while points * 2 * (radius + 2) <= MAX_POINTS and (small or points**2 * radius < rows):
        run.progress(f"{points} lattice points per sensitivity", *((best.lower, best.value) if best else ()))
        if small and not task.loss.assumptions:
            found = _solve_geometric(task, points)
        else:
            tolerance = 1e-9 if points == fits else min(1e-4, 0.02 * rtol)
            found = _solve_any(task, points, every_shift, coarse, tolerance, AIM * rtol)
        if found is None:
            break
        coarse = None if found.program.geometric or task.loss.bounded else found.program
        if small and task.delta > 0 and best is not None and found.gap > 0.9 * best.gap:
            small = False  # what delta saves is not negligible after all
        best = found.better(best)
        if task.jumps and best.gap > AIM * rtol:  # a chain of whole sensitivities may be all that there is to it
            best = best.proven(geng_viswanath(task.problem), task.problem)
        if fixed and small and task.delta > TINY and best.gap > AIM * rtol:
            small = False
            continue
        ends = points == fits or (task.discrete and task.loss.steps)
        if n is None and ends and best.lower == 0 and best.value < NOTHING and task.delta > 0:
            best = _ending(task, best)
            break
        if fixed or best.gap <= AIM * rtol or time.perf_counter() > task.deadline or not found.solved:
            break
        order = 1.0 if task.jumps else 0.5  # gaps fall like the step, or its square
        # What rounding to integers may cost stays as it is.
        stays = min(1 / 3 / best.value, rtol / 2) if task.rounds and q == 2 else 0.0
        wanted = math.ceil(points * (found.gap / (0.9 * AIM * rtol)) ** order)
        needed = math.ceil(points * (max(found.gap - stays, 0.0) / (0.85 * rtol - stays)) ** order)
        cheap = int(math.sqrt(CHEAP / (min(radius + 1, 10) if small else radius + 1)))
        if best.gap <= rtol and cheap <= points:
            break
        goal = min(wanted, max(cheap, needed if best.gap > rtol else 0))
        used, most = points, (2 if task.narrow else 6) * points
        points = task.allowed(min(max(goal, points + 1), most), best.value)
        if task.jumps:  # as far as it goes
            most = points if small else int(math.sqrt(1.9 * MAX_ROWS / radius))
            points = min(points, int(MAX_POINTS / (radius + 2) / 2), most)
        if points <= used or points > (FINEST if task.jumps and small else 640 if task.narrow else 400):
            break
    faint = task.discrete and q is not None and task.delta > 0 and task.eps > FLATTEST
    if faint and best is not None and best.gap > rtol:  # small masses far out are precise there
        tailed = _solve_geometric(task, points)
        best = tailed.better(best) if tailed else best
    if best is None:
        best = _closed_form_bracket(task)
    if best.gap > rtol:  # where the lattice's bound is poor, the closed-form one may be better
        best = best.proven(geng_viswanath(task.problem), task.problem)
        if q in (1, 2) and not task.discrete:
            best = best.proven(SpikeCertificate.best(task.problem), task.problem)
    if task.eps > FLATTEST and q in (1, 2) and n is None:
        best = _with_staircase(best, task, rtol)
    return best


def _solve_any(
    task: _Task, n: int, every_shift: bool, coarse: LatticeProgram | None, tolerance: float, enough: float
) -> Bracket | None:
    """The better of noise that ends and of noise with a geometric tail, where either may be."""
    if not task.loss.bounded:
        ended = _solve_with_slack(task, n, every_shift, coarse, tolerance)
        return ended.better(_solve_geometric(task, n)) if ended and task.slow and task.eps > 0 else ended
    tailed = _solve_geometric(task, n) if task.eps > FLATTEST and not every_shift else None
    if tailed is not None and tailed.gap <= enough:  # where delta is small, there is nothing to be had from it far out
        return tailed
    ended = _solve_bounded(task, n, every_shift, tolerance)
    return ended.better(tailed) if ended else tailed


def _narrow(task: _Task, rtol: float) -> Bracket:
    """The staircase with an atom, and the bounds of one period and of finer and finer lattices that resolve the peak."""
    best = _with_staircase(_closed_form_bracket(task), task, rtol)
    for family in (PeriodCertificate, SpikeCertificate):
        if best.gap > rtol:
            with contextlib.suppress(Refusal):  # sums over a wide period of integers are too long
                best = best.proven(family.best(task.problem), task.problem)
    points, used = task.resolved(FIRST, best.value), 0
    while points > used and best.gap > rtol and time.perf_counter() < task.deadline:
        found = narrow.certificate(task.problem, task.costs, points, task.deadline)
        if found is None:
            break
        best, used = best.proven(found, task.problem), points
        peak = points * task.peak
        wanted = min(max(round(peak * math.sqrt(best.gap / (0.85 * rtol))), round(peak) + 1), 3 * round(peak), LIMIT)
        points = task.resolved(wanted, best.value)
    return best


def _with_staircase(best: Bracket, task: _Task, rtol: float) -> Bracket:
    """The bracket with the staircase, which is private for every delta, and for delta = 0 with its own certificate.

    Its first step is matched by cells whose width divides both the step and the sensitivity, up to 1e-6 or so. At large eps it is
    finer than any such lattice: then it is noise of its own kind.
    """
    pure = replace(task.problem, privacy=replace(task.privacy, delta=0.0))
    integers = task.integers
    certificate = (IntegerStaircaseCertificate if integers else StaircaseCertificate).best(pure)
    step = certificate.first_step(pure)
    #: No less has any mixture of noise that needs no delta and a mass of delta at 0.
    least = (1 - task.delta) * certificate.threshold
    on_line, shares = replace(task.problem, domain=Line()), {step}
    if task.rounds:  # the step of noise that is rounded is that of the line, or covers one integer
        line = replace(pure, domain=Line())
        shares = {StaircaseCertificate.best(line).first_step(line), min(1 / task.width, 1.0)}
    peaked = [] if task.discrete else [noise for share in sorted(shares) for noise in noise_of(on_line, share)]
    for cut in [noise for noise in peaked if noise.cut]:
        best = _with_noise(best, task, cut, TIE)
    cells = np.arange(1, 500)
    halves = np.maximum(np.rint(step * cells - 0.5), 0.0)
    misses = np.abs((halves + 0.5) / cells - step)
    n, miss = int(cells[int(np.argmin(misses))]), float(misses.min())
    if least < best.value and miss < 0.1 * step and not task.discrete:
        k = max(round(step * n - 0.5), 0)
        steps = np.concatenate([np.ones(k + 1), np.full(n, math.exp(-task.eps))])
        mechanism = private_geometric(task.privacy, task.area, n, steps)
        if 0 < task.delta < 0.9:  # the staircase needs no delta: an atom at 0 may spend all of it
            delta = Fraction(task.privacy.delta)
            mechanism = replace(mechanism, atom=int(mechanism.total * delta / (1 - delta)))
        best = _with_noise(best, task, mechanism)
    if least < best.value and integers and task.width <= WRITTEN and task.delta < 1 - 2.0**-20:
        n = int(task.width)
        for k in range(max(int(step * n) - 1, 0), min(int(step * n) + 2, n - 1)):
            best = _with_noise(best, task, _integer_steps(task, k))
    for whole in [noise for noise in peaked if not noise.cut and least < (1 - TIE) * best.value]:
        best = _with_noise(best, task, whole, TIE)
    return best.proven(certificate, task.problem) if task.delta == 0 and not (integers and best.gap <= rtol) else best


def _with_noise(best: Bracket, task: _Task, made: AdditiveMechanism | LatticeStaircase, tie: float = 0.0) -> Bracket:
    """The bracket with this noise, if it is better by more than this share."""
    noise, value = task.sent(made)
    return replace(best, mechanism=noise, value=value) if value < (1 - tie) * best.value else best


def _share(eps: float, delta: float, q: float) -> float:
    """The share of E|Z|^q that delta saves, about: that of the truncated Laplacian, for which u = (E - 1)/(2 delta)."""
    u = math.expm1(eps) / (2 * delta)
    x = math.log1p(u)
    return (x + x**q / math.gamma(q + 1) * (q > 1)) / u


def _uniform(task: _Task) -> AdditiveMechanism:
    """eps = 0: one shift of the sensitivity moves a share of delta; cells are as wide as may be, and tell wider neighbours.

    Inputs are rounded to the noise's grid, which is to be finer than the integers, and than 2^-SHARE of a sensitivity on the
    line: by that share a shift may become longer, unless the sensitivity is a multiple of the grid's step.
    """
    delta, width = Fraction(task.privacy.delta), Fraction(task.width)
    most = Fraction(WIDEST) if task.rounds else width * 2 ** (GRID - SHARE)
    count = 2 * math.ceil(width / delta / most / 2) + 1 if task.rounds or width / delta > most else 1
    count = count if task.rounds else min(count, MAX_POINTS - 1)  # odd
    cell, half = width / delta / count, (count + 1) // 2
    for room in (Fraction(1), 1 + cell / width / 2 ** (GRID - 1)) if count <= MAX_POINTS else ():
        wide = max(enclosures.round_up(cell * room), task.width)
        if wide > 1e150:  # what a sensitivity may be
            break
        noise = AdditiveMechanism(task.area, wide, 1, (1,) * half, eps=task.privacy.eps, notion=task.privacy)
        if noise.exact_delta(Fraction(1), task.width) <= delta:
            return noise
    told = f"eps = 0, delta = {task.delta:g} is not allowed at sensitivity {task.width:g}"
    reach = float(min(width / delta / 2, Fraction(sys.float_info.max)))
    raise ValueError(f"{told}: the noise would reach over {reach:.3g}; raise delta")


def _closed_form_bracket(task: _Task) -> Bracket:
    """Where a lattice would be too large: truncated Laplacian (delta = 0: geometric) noise and the closed-form dual."""
    eps, delta, radius = task.eps, task.delta, task.radius
    n = int(task.width) if task.discrete else 1
    if eps == 0 and not task.discrete and task.loss.exponent in (1, 2):
        return task.bracket(_uniform(task), TailsCertificate())
    if 2 * n * (radius + 2) > 4 * MAX_POINTS:
        raise ValueError(
            f"eps = {eps:g}, delta = {delta:g} is not allowed: the noise would reach over {radius * n:.3g} lattice points, "
            f"and at most {2 * MAX_POINTS} are supported; raise eps or delta"
            + (", or scale the data to a smaller sensitivity" if n > 1 else "")
        )
    if delta > TINY:
        masses = cut_off(np.exp(-eps / n * np.arange(math.ceil(radius * n) + 3 * n)), delta, n)
        mechanism = private_finite(task.privacy, task.area, n, masses)
    else:
        mechanism = private_geometric(task.privacy, task.area, n, np.exp(-eps / n * np.arange(2 * n)))
    return task.bracket(mechanism, geng_viswanath(task.problem))

"""The optimal additive noise under a whole privacy profile: several pairs (eps, delta) at once, or Gaussian DP.

**The program** is that of `optdp.design.additive.tails`, solved on lattices: the sandwich between the lattice and the line, the
certificate and the mechanism are those of `optdp.design.additive.program`, the rows' duals its multipliers, one for each set.

**A spike.** At a large mu half of the mass is within a tiny part of the sensitivity. There noise is on a lattice many times as
fine, with masses that are equal on cells which grow with the distance from 0: few variables; between neighbouring ends of cells
the two masses that a shift compares are constant, and distances between ends are the only shifts that matter. The bound is
that of `optdp.design.additive.graded`.

**The Gaussian** itself is near the optimum at a small mu, nearer than a lattice of a few points; it is what comes back where it
is better than the noise found (`optdp.mechanisms.gaussian`). Half-lines alone prove it nearly optimal for x^2 and mu <= 1, and
for |x| at a very small mu (`optdp.certificates.half_lines`).
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from optdp.certificates.additive import AdditiveCertificate, Multiplier
from optdp.certificates.base import Refusal
from optdp.certificates.half_lines import HalfLinesCertificate
from optdp.design.additive import approximate, lattice, rounded
from optdp.design.additive.approximate import MAX_POINTS, private_finite
from optdp.design.additive.graded import DULL, Mesh, Relaxation, spaced
from optdp.design.additive.lattice import HARDLY, Bracket, LatticeTask, as_weights, cut_off, pairs_of, private_geometric
from optdp.design.additive.pairs import LATE, MOST_ROWS, WrittenOut, by_one, from_single, under_curve
from optdp.design.additive.tails import Cut, GaussianCurve, PolygonCurve, TailProgram, multipliers_of, rare_level
from optdp.design.registry import Run, register
from optdp.exact import require, work
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.mechanisms.baselines.noise import truncated_radius
from optdp.mechanisms.gaussian import LatticeGaussian
from optdp.mechanisms.rounded import RoundedGaussian
from optdp.mechanisms.staircase import noise_of
from optdp.problem.domains import Integers, Line
from optdp.problem.objectives import WorstCase
from optdp.problem.privacy import GDP, ApproxDP, Curve, Profile
from optdp.problem.problem import Problem
from optdp.solution import Program, Solution
from optdp.solvers.lp import Highs, LinearProgram, LinearSolver, SolverFailure

#: What counts as breaking the curve; the share of the parameters that noise is for to start from,
#: and the share of the least delta that such noise is cut off for.
BROKEN, CORE, SPARED = 1e-8, 0.97, 0.4
#: The mu from which meshes are sooner fine enough than lattices.
STEEP = 2.5
#: Cells that shrink towards 0 are used where the one at 0 costs more than this share by its width.
SPIKE = 0.03
#: Meshes of such cells for the noise and for the bound: cells far from 0 over mu, and how fast they grow; at most FINE of the
#: smallest in one of the largest, the fewer where nobody could check more. Within a distance that costs less than the share CHEAP
#: nodes are fewer.
MESHES: tuple[tuple[int, float, Mesh], ...] = (
    (4, 0.5, Mesh(0.5)), (4, 0.25, Mesh(0.25)), (6, 0.125, Mesh(0.125)), (6, 0.125, Mesh(0.125, 2, narrow=True)),
)  # fmt: skip
FINE, LOW, BOUND, CHEAP = (4096, 256), (64, 256), 4, 0.03
#: By how much the curve is drawn in for such noise, and how much dearer noise with room to spare, mixed in, may make it where
#: rare masses, raised to what the tail's ratio asks for, cost more; the share of the usual limit that checking it may take.
SLACK, RAISED, PROOF = 3e-6, (1e-3, 1e-2), 0.85
#: The slope of the cost of noise beyond where a loss is constant, as a share of what it costs there.
EVEN = 1e-4
#: Lattices of more points are not tried for a loss that jumps, and for one that is constant up to there and no step function; how
#: many are for where it does.
JUMPY, HEAPED, LATTICES = 16, 48, 4
#: Points per sensitivity of the lattices on which steps, that are at the ends of no cells of few points, are moved to the nearest
#: ones: outwards for bounds, and inwards for noise; the share of the time that is left for such noise; costs that are a smaller
#: share of the largest than solvers tell apart: finer lattices are of no use.
NEAREST, INWARDS, FAINT = (4, 8, 16, 32, 50), 0.4, 1e-9
#: The share of the time for noise where the bound is another program; shares of noise with room to spare that are mixed in where
#: what is not solved breaks the curve by its rounding.
NOISE, MIXED = 0.6, (1e-6, 1e-4, 0.01, 0.03, 0.1, 0.3, 1.0)
#: The largest sensitivity at which integers are points of a lattice: noise is rounded to more of them.
CROWDED = 48
#: More pairs of a shift and a point are not looked at where noise is known already.
MOST_PAIRS = 2_000_000
#: How near a lattice's objectives come, as a share of rtol; the tolerance of noise that is for another loss.
SOLVED, BORROWED = 0.05, 0.01
#: By what share a proof may fall short of its program's value before that of a relaxation is tried.
LACKING = 1e-4


class Task(LatticeTask):
    """A problem in the numbers that the search works with."""

    def __init__(
        self, problem: Problem, deadline: float, solver: LinearSolver | None, target: float = math.nan
    ) -> None:
        super().__init__(problem)
        self.deadline, self.target, self.written, privacy = deadline, target, solver, self.privacy
        self.solver = solver or Highs(tolerance=1e-9, options=(("small_matrix_value", 1e-12),))
        #: For meshes: what it says is tested, and much sooner there.
        rough = ("small_matrix_value", 1e-12), ("presolve", "off")
        self.quick = solver or Highs(tolerance=1e-7, options=rough)
        #: For bounds on meshes: rows are scaled as they come, and scaled again some solves take a hundred times as long.
        self.scaled = solver or Highs(tolerance=1e-7, options=(*rough, ("simplex_scale_strategy", 0)))
        self.gaussian, self.pairs = isinstance(privacy, GDP), pairs_of(privacy)
        self.atoms = not self.gaussian and all(delta > 0 for _, delta in self.pairs) and not self.integers
        if self.gaussian:
            from scipy.special import ndtri

            self.radius = -float(ndtri(rare_level(float(privacy.mu)))) / float(privacy.mu) + 1
        else:  # what the noise of `core` needs
            least = min(float(d) for _, d in self.pairs if d > 0) if any(d > 0 for _, d in self.pairs) else 1.0
            self.rate = lattice.falling(self.pairs)
            low = CORE * self.rate
            steep = min((float(e) for e, d in self.pairs if d == 0), default=0.0)
            cut = truncated_radius(low, SPARED * least) + 1
            self.radius = cut if not steep else min(cut, 40 / max(low, 1e-9)) + 12 / steep if least < 1 else 30 / steep
        self.radius += self.beyond
        fits = lattice.coarsest(self.jumps) if self.jumps and self.loss.steps and not self.integers else None
        #: Points per sensitivity of a lattice that has the value of the line; 0 where there is none of few points.
        self.fits = fits if fits and (fits <= JUMPY or self.whole(fits)) else 0

    def whole(self, n: int) -> bool:
        """Whether the program on a lattice of n points is written out."""
        few = 0 < len(self.pairs) * n * (self.radius + 2) * n < MOST_ROWS
        return few and self.beyond > 0 and all(delta > 0 for _, delta in self.pairs)

    def outwards(self, n: int) -> Fraction:
        """How far beyond steps ends of cells of a lattice are, in sensitivities."""
        return lattice.beyond(n, self.jumps, Fraction(0 if self.bins(n) else 1, 2)) / n

    def curve(self, slack: float) -> GaussianCurve | PolygonCurve:
        """The notion's curve, drawn in."""
        return GaussianCurve(float(self.privacy.mu), slack) if self.gaussian else PolygonCurve(self.pairs, slack)

    def reference(self, n: int, size: int) -> np.ndarray:
        """About what the tail probabilities are."""
        k = np.arange(1, size + 1) - 0.5
        if self.gaussian:
            from scipy.special import ndtr

            found: np.ndarray = ndtr(-float(self.privacy.mu) * k / n)
            return found
        eps = self.rate
        return np.maximum(np.exp(-eps * k / n) / 2, max(1e-9, 0.1 * min(float(d) for _, d in self.pairs)))

    def spent(self, found: Bracket, n: int) -> float:
        """What the cell at 0 costs by its width on a lattice of n points (Gaussian DP and a convex loss or a power; else 0)."""
        if not self.gaussian or self.integers or not (self.loss.convex or self.loss.exponent):
            return 0.0
        half = 0.5 * self.width / n
        return float(found.mechanism.masses[0] * self.loss.integral(half) / half)

    def smallest(self, found: Bracket, cells: int, rtol: float, most: int = FINE[0]) -> int:
        """So many of the smallest cells in one of `cells` per sensitivity, for what the width of the one at 0 costs."""
        rest, fine = found.value - self.spent(found, found.mechanism.n), 16
        while fine < most and self.spent(found, cells * fine) > rtol / 3.5 * rest:
            fine *= 2
        return fine

    def program(
        self, n: int, size: int, slack: float, nodes: np.ndarray | None = None, free: bool = False
    ) -> TailProgram:
        """The program on a lattice of n points per sensitivity, without cuts."""
        curve = self.curve(slack)
        periods = 2 if math.isinf(curve.ratio) else math.ceil(40 / math.log(curve.ratio)) + 2
        costs, reference = self.costs(n, size + periods * n), self.reference(n, size)
        if self.beyond and not free:  # noise may be anything there: let it be near
            slope = EVEN * costs[-1] * reference[min(math.ceil(self.beyond * n), size - 1)] / n
            costs = costs + slope * np.arange(costs.size)
        bins = self.bins(n)
        return TailProgram(
            curve, n, costs, size, reference, atom=self.atoms and not bins, solver=self.solver if nodes is None else self.quick,
            nodes=nodes, free=free, even=self.gaussian and bool(self.beyond), bins=bins,
        )  # fmt: skip

    def start(self, program: TailProgram) -> list[Cut]:
        """Tangents at the half-lines' own levels under the reference, for shift n."""
        n, curve = program.n, program.curve
        starts = np.arange(-(n // 2), program.size - n)
        if isinstance(curve, PolygonCurve):
            pairs = zip(curve.eps, curve.delta, strict=True)
            return [Cut((int(k),), n, float(e), float(d)) for e, d in pairs for k in starts]
        tails = self.reference(n, program.size + 2 * n)
        levels = np.where(starts + n >= 1, tails[np.maximum(starts + n, 1) - 1], 1 - tails[np.maximum(-starts - n, 0)])
        eps, delta = curve.tangent(np.minimum(levels, 0.5))
        return [Cut((int(k),), n, float(e), float(d)) for k, e, d in zip(starts, eps, delta, strict=True)]

    def core(self, program: TailProgram) -> np.ndarray:
        """Tail probabilities of noise that keeps the notion with room to spare, and the atom 0."""
        n, k = program.n, np.arange(1, program.size + 1) - program.mirror / 2
        if self.gaussian:
            from scipy.special import ndtr

            tails: np.ndarray = ndtr(-CORE * float(self.privacy.mu) * k / n)
            rare, start = int(np.flatnonzero(tails > 1.1 * program.curve.rare)[-1]), program.size + program.bins
            line = np.concatenate([1 - tails[::-1], np.full(int(program.bins), 0.5), tails])
            fall = tails[rare] / line[start + rare - n]
            for i in range(rare + 1, program.size):
                tails[i] = line[start + i] = line[start + i - n] * fall
            return np.append(tails, 0.0)
        eps, least = CORE * self.rate, min((float(d) for _, d in self.pairs if d > 0), default=1.0)
        masses, place = np.zeros(program.size + 1), np.arange(program.size + 1 + n * bool(program.fall))
        if program.fall:  # slowly down to where the other pairs' deltas leave room, then as fast as the tail falls
            steep = -math.log(program.fall)
            far = min(truncated_radius(eps, SPARED * least), program.size / n - 1) if least < 1 else 0.0
            kept = np.exp(-min(eps, steep) * np.minimum(place / n, far) - steep * np.maximum(place / n - far, 0.0))
            masses = np.append(kept[: program.size + 1], kept[program.size + 1 :].sum() / (1 - program.fall))
        else:
            kept = cut_off(np.exp(-eps * place / n), max(1e-9, CORE / 2 * least), n, program.bins)
            masses[: kept.size] = kept
        masses /= 2 * masses.sum() - program.mirror * masses[0]
        return np.append(masses[::-1].cumsum()[::-1][1 : program.size + 1], 0.0)

    def known(self, noise: bool) -> Bracket:
        """What is known without a lattice: under Gaussian DP the bound of half-lines, and (`noise`) the Gaussian; integers it is
        rounded to where that is best, at sensitivity 1.
        """
        lower, mechanism, value = 0.0, None, math.inf
        proof: AdditiveCertificate | HalfLinesCertificate = AdditiveCertificate(1, "nodes", ())
        with contextlib.suppress(Refusal):
            lower, proof = HalfLinesCertificate().bound(self.problem).value, HalfLinesCertificate()
        if noise and self.gaussian and (not self.integers or self.width == 1):
            with contextlib.suppress(ValueError):  # floats or its lattice are too coarse
                line = LatticeGaussian(Line(), self.width, self.privacy.mu)
                mechanism = RoundedGaussian(Integers(), line) if self.integers else line
                value = mechanism.enclose(self.problem.objective)[1]
        return Bracket(mechanism, value, proof, lower)

    def mechanism(self, program: TailProgram) -> AdditiveMechanism:
        """The masses as exact noise, not yet tested."""
        p, atom = program.masses()
        domain: Any = self.problem.domain
        if program.fall:
            pure = ApproxDP(math.log(1 / program.fall), 0.0, self.width)
            return replace(private_geometric(pure, domain, program.n, p, program.bins), notion=self.privacy)
        total = atom + (1 + program.bins) * p[0] + 2 * p[1:].sum()
        used = np.trim_zeros(np.where(p > 1e-16, p, 0.0), "b")
        weights, (stuck,) = as_weights(used, total), as_weights(np.array([atom]), total)
        eps = self.pairs[0][0]
        return AdditiveMechanism(
            domain, self.width, program.n, tuple(weights), stuck, eps=eps, notion=self.privacy, bins=program.bins
        )


def _bracket(task: Task, n: int, coarse: TailProgram | None, share: float) -> Bracket | None:
    """Both sides on one lattice; None if no noise there was proven to keep the notion."""
    tolerance, slack, radius = BROKEN, 5 * BROKEN, task.radius
    cuts = [cut.finer(2) for _, cut in coarse.active()] if coarse else []
    relaxed: list[Multiplier] = []
    for last in (False,) * 4 + (True,):
        size = 2 * coarse.size if coarse else math.ceil(radius * n) + n
        program, now = task.program(n, size, slack), time.perf_counter()
        program.deadline, program.target = now + (NOISE if task.beyond else 1.0) * (task.deadline - now), task.target
        program.add([*task.start(program), *cuts])
        solved = program.solve(coarse.spread() if coarse else task.core(program), tolerance, share)
        if coarse and not program.values.any():
            return None
        exact = {float(e): e for e, _ in task.pairs}
        polygon = program.curve if isinstance(program.curve, PolygonCurve) else None
        shrunk = dict(zip(polygon.eps.tolist(), (e for e, _ in task.pairs), strict=True)) if polygon else {}
        multipliers = multipliers_of(program, exact | shrunk) if program.values.any() else []
        steep = sum(math.expm1(float(m.eps)) * m.rest for m in multipliers) / 2  # type: ignore[arg-type, misc]
        ends = not program.fall and not task.beyond and radius < 40 * task.radius + 40
        level = program.objective + sum(value * cut.delta for value, cut in program.active())  # that of the mass
        if ends and solved and program.costs[-1] < level + steep:
            # Too short a support: multipliers beyond it would not be feasible.
            radius, coarse = 1.3 * size / n + 0.5, None
            continue
        if task.beyond and not relaxed:  # which knows of no slack
            relaxed = _relaxed(task, program, exact, share)
        multipliers = relaxed or multipliers
        certificate = AdditiveCertificate(n, task.rounding(n), tuple(multipliers))
        mechanism, inner = task.mechanism(program), program.inner
        kept = mechanism.admitted(task.privacy)
        parts = () if kept or (solved and not last) else MIXED
        for part in parts:
            if part < 1 and time.perf_counter() > task.deadline + LATE * (task.deadline - now):
                continue
            program.inner = (1 - part) * inner + part * task.core(program)
            mechanism = task.mechanism(program)
            if kept := mechanism.admitted(task.privacy):
                break
        if kept:
            value = mechanism.enclose_loss(task.loss, sent=True)[1]
            lower = certificate.bound(task.problem).value
            best = Bracket(mechanism, value, certificate, lower, program, solved)
            aim = (program.objective + program.constant) * task.width ** (task.loss.exponent or 0.0)
            if program.fall and solved and not relaxed and lower < (1 - LACKING) * aim:
                # What lies beyond the variables may be charged more than it can pay.
                multipliers = _relaxed(task, program, exact, share)
                best = best.proven(AdditiveCertificate(n, task.rounding(n), tuple(multipliers)), task.problem)
            return best
        if not solved:
            return None
        slack, coarse, cuts = 10 * slack, None, [cut for _, cut in program.active()]
    return None


def _relaxed(task: Task, program: TailProgram, exact: dict[float, Any], share: float) -> list[Multiplier]:
    """Multipliers of a relaxation: what lies beyond the variables costs what the last of them does, in whichever order it is."""
    free = task.program(program.n, program.size, 0.0, free=True)
    free.deadline, free.target = task.deadline, task.target
    near = [cut for _, cut in program.active() if cut.ends[0] > -free.size and cut.ends[-1] + cut.shift < free.size]
    free.add([*task.start(free), *near])
    free.solve(program.inner, BROKEN, share)
    return multipliers_of(free, exact)


def _written_out(task: Task, n: int, share: float) -> Bracket | None:
    """Both sides on one lattice for a loss that is constant far out, by programs that have all rows."""
    size = math.ceil(task.radius * n) + n
    costs, bins = task.costs(n, size - 1), task.bins(n)
    made = []
    for short in (True, False):
        program = WrittenOut(
            task.pairs, n, costs, atom=task.atoms and not bins, bins=bins, short=short, solver=task.written
        )
        if not program.solve(task.deadline - time.perf_counter()):
            return None
        made.append((program, AdditiveCertificate(n, task.rounding(n), tuple(program.multipliers()))))
    (_, relaxed), (program, own) = made
    domain: Any = task.problem.domain
    try:
        mechanism = private_finite(task.privacy, domain, n, *program.masses(), bins)
    except ArithmeticError:
        return None
    value = mechanism.enclose_loss(task.loss, sent=True)[1]
    best = Bracket(mechanism, value, own, own.bound(task.problem).value, program).proven(relaxed, task.problem)
    # Interior points end short of the optimum where masses are as small as a delta is beside a large eps.
    return replace(best, solved=best.lower > (1 - share) * made[0][0].objective)


def _refined(
    task: Task, best: Bracket, first: Bracket, cells: int, fine: int, growth: float, inner: float, rtol: float
) -> tuple[Bracket, bool]:
    """Noise on a mesh that is fine near 0, where most of the mass is, and near the sensitivity; whether a finer one could do."""
    start, coarse = first.program, best.program
    n = cells * fine
    near = spaced(fine, growth, inner * n, 2 * growth)
    size = math.ceil(start.size / start.n * cells) * fine
    edge = [x for x in spaced(fine, 2 * growth) if x >= fine >> DULL]
    wide = [*range(n + n // 4, 2 * n, 2 * fine), *range(2 * n, size, 4 * fine)]
    flat = [*range((near[-1] // fine + 1) * fine, n + n // 4, fine), *wide, size - n, size]
    inside = [0, *near, *flat, *(n - x for x in edge), *(n + x for x in edge)]
    nodes = np.unique(inside) + 1  # T_k is the probability of what lies beyond k - 1/2
    program = task.program(n, size + 1, SLACK, nodes)
    program.deadline = (time.perf_counter() + task.deadline) / 2
    program.compare_ends(nodes[nodes <= 2 * n + fine], fine)
    r = n / coarse.n
    program.add([cut.finer(r) for _, cut in coarse.active()])
    # The old noise is a point of the new program where its cells are kept; else it is drawn out until it keeps the curve.
    line, m, _ = coarse.line(coarse.inner)
    for wider in (0.0, *(2.0**j for j in range(-14, 0))):
        places = (nodes - 0.5) / (r * (1 + wider)) + 0.5
        before = np.append(np.interp(places, np.arange(-m + 1, m + 1), line), 0.0)
        if not program.broken(before, BROKEN):
            break
    program.solve(before, BROKEN, rtol / 16)
    if time.perf_counter() > task.deadline:  # what is far from private takes long to be made so
        return best, False
    best, found = replace(best, program=program), program.inner
    spare = task.core(program)[np.append(nodes - 1, -1)]
    for dearer in (0.0, *RAISED):
        part = dearer * min(program.cost(found) / program.cost(spare), 1.0)
        program.inner = (1 - part) * found + part * spare
        mechanism = task.mechanism(program)
        value = mechanism.enclose_loss(task.loss, sent=True)[1]
        if value >= best.value:
            break
        try:
            with work.limited(PROOF * work.LIMIT):
                kept = mechanism.admitted(task.privacy)
        except work.Overwork:  # what nobody could check is of no use
            return best, False
        if kept:
            return replace(best, mechanism=mechanism, value=value), True
    return best, True


def _peaked(run: Run, task: Task, best: Bracket, rtol: float) -> Bracket:
    """Meshes that are finer and finer."""
    first, inner, noisy = best, 0.0, True
    relaxed: Relaxation | None = None
    mu, seen = float(task.privacy.mu), (0, 0.0)
    kernels = math.ceil(BOUND * mu)
    fine = min(max(task.smallest(first, kernels, rtol) // 8, LOW[0]), LOW[1])
    for factor, growth, mesh in MESHES:
        if noisy and seen != (factor, growth):
            cells, seen = math.ceil(factor * mu), (factor, growth)
            run.progress(f"noise on a mesh of {cells} cells per sensitivity, finer near 0", best.lower, best.value)
            for smallest in dict.fromkeys(task.smallest(first, cells, rtol, most) for most in FINE):
                best, noisy = _refined(task, best, first, cells, smallest, growth, inner, rtol)
                if noisy or best.mechanism is not first.mechanism or time.perf_counter() > task.deadline:
                    break
            if best.gap <= rtol or time.perf_counter() > task.deadline:
                break
        coarse = relaxed
        relaxed = Relaxation(task.curve(0.0), kernels, fine, mesh, inner, task.radius, task.costs, task.scaled)
        told = f"a bound on a mesh of {relaxed.nodes.size} points, {len(relaxed.kernels)} kernels of shifts"
        run.progress(told, best.lower, best.value)
        if coarse:
            relaxed.follow(coarse)
        certificate = relaxed.solve(_rounded(best.mechanism, relaxed.n, relaxed.end), rtol / 16, task.deadline)
        best = best.proven(certificate, task.problem)
        if best.gap <= rtol or time.perf_counter() > task.deadline:
            break
        inner = _cheap(best.mechanism, task.loss)
    return best


def _cheap(noise: AdditiveMechanism, loss: Any) -> float:
    """A distance, in sensitivities, within which the share CHEAP of the loss is."""
    at = np.arange(noise.masses.size) / noise.n
    spent = np.cumsum(noise.masses * loss(at * noise.sensitivity))
    return float(at[np.searchsorted(spent, CHEAP * spent[-1])])


def _rounded(noise: AdditiveMechanism, n: int, end: int) -> np.ndarray:
    """Probabilities of the distances 0, ..., end of the noise rounded to the nearest point of a lattice."""
    p = np.concatenate([noise.masses, np.zeros(max(math.ceil(end / n * noise.n) + noise.n - noise.masses.size, 1))])
    line = np.concatenate([[0.0], np.cumsum(np.concatenate([p[:0:-1], p]))])
    edges = (np.arange(line.size) - p.size + 0.5) / noise.n
    q = np.diff(np.interp((np.arange(-end, end + 2) - 0.5) / n, edges, line))
    found = q[end:] + np.append(0.0, q[:end][::-1])
    return found / found.sum()


def accepts(problem: Problem) -> str | None:
    """Additive noise on the line or the integers under Gaussian DP or several pairs (eps, delta)."""
    return lattice.refused(problem, GDP | Profile | Curve, "GDP, Profile or Curve")


def design(run: Run, *, n: int | None = None, gaussian: bool = True) -> Solution:
    """See `optdp.solve_additive`; `gaussian`: whether the Gaussian may come back."""
    rtol = require.real("rtol", run.rtol, low=1e-8, high=1.0)
    if n is not None:
        n = require.integer("n", n, low=1, high=10_000)
    problem = run.problem
    lattice.sized(problem)
    privacy: Any = problem.privacy
    if found := by_one(run, lambda part: approximate.design(part, n=n)):
        return found
    if isinstance(privacy, Curve):
        return under_curve(run, lambda part: design(part, n=n))
    if n is None and privacy.sensitivity > CROWDED and rounded.fits(problem):
        narrow = rounded.narrow(problem)
        part = replace(run, time_limit=(run.seconds + run.time_limit) / 2) if narrow else run
        found = rounded.solution(part, lambda part: design(part, gaussian=gaussian))
        if narrow and found.gap > rtol:
            with contextlib.suppress(ValueError):
                return rounded.beside(_on_lattices(run, rtol, n, gaussian), found)
        return found
    if n is None and rounded.fits(problem):  # lattices of integers cannot be as coarse as wide noise needs
        try:
            return _on_lattices(run, rtol, n, gaussian)
        except ValueError:
            with contextlib.suppress(ValueError):
                return rounded.solution(run, lambda part: design(part, gaussian=gaussian))
            raise
    return _on_lattices(run, rtol, n, gaussian)


def _on_lattices(run: Run, rtol: float, n: int | None, gaussian: bool) -> Solution:
    problem = run.problem
    privacy: Any = problem.privacy
    task = Task(problem, run.began + run.time_limit, run.solver, run.target)
    fixed = n is not None or task.integers
    points = n or (int(task.width) if task.integers else math.ceil(4 * float(privacy.mu)) if task.gaussian else 6)
    best: Bracket | None = None
    coarse: TailProgram | None = None
    known = task.known(gaussian and n is None)
    slow = points > approximate.LATTICE if task.integers else n is None and not task.loss.convex
    if slow and len(task.pairs) > 1 and any(delta > 0 for _, delta in task.pairs):
        known = from_single(run, approximate.design).better(known)
    whole = known
    inwards: Iterator[tuple[Problem, int | None] | None] = iter(())
    if task.loss.steps and not fixed and math.isnan(task.target) and not known.gap <= rtol:
        near = lattice.moved_in(problem)
        whole = known = _borrowed(run, gaussian, known, [near] if near else [], run.seconds + run.left() / 2, rtol)
        inwards = (lattice.moved_in(problem, most) for most in NEAREST if not task.fits)
    for size in [] if known.gap <= rtol else [points] if fixed else _sizes(task, points):
        if size * (task.radius + 2) > MAX_POINTS or (known.mechanism and size**2 * (task.radius + 2) > MOST_PAIRS):
            break
        run.progress(f"{size} lattice points per sensitivity", *((best.lower, best.value) if best else ()))
        found = None
        with contextlib.suppress(OverflowError):  # costs far out, of high powers
            if task.whole(size):
                found = _written_out(task, size, SOLVED * rtol)
            if found is None or not found.solved:
                halved = isinstance(coarse, TailProgram) and 2 * coarse.n == size and not task.bins(size)
                cut = _bracket(task, size, coarse if halved else None, SOLVED * rtol)
                found = cut.better(found) if cut else found
        if found is None and not task.jumps:
            break
        if found is not None:
            meshed = task.gaussian and float(privacy.mu) >= STEEP
            peaked = task.spent(found, size) > max(SPIKE, rtol / 4) * found.value
            if meshed and best is None and not fixed and found.gap > rtol and peaked:
                best = _peaked(run, task, found, rtol)
                whole = _whole(best, known)
                break
            coarse, best = found.program, found.better(best)
            whole = _whole(best, known)
        nearer = next(inwards, None)
        if nearer is not None and whole.gap > rtol and run.left():
            whole = known = _borrowed(run, gaussian, whole, [nearer], run.seconds + INWARDS * run.left())
        faint = task.loss.steps and size > NEAREST[0] and whole.value < FAINT * task.loss.polynomials[1][-1][0]
        if faint or time.perf_counter() > task.deadline or whole.gap <= rtol or whole.lower > task.target:
            break
    if task.loss.exponent is None and not fixed and not whole.gap <= rtol and math.isnan(task.target):
        powers = [(replace(problem, objective=WorstCase(power)), None) for power in ("squared", "abs")]
        whole = _borrowed(run, gaussian, whole, powers, (1 + LATE * math.isinf(whole.value)) * run.time_limit)
    if isinstance(privacy, Profile) and not (fixed or task.integers or task.loss.assumptions) and not whole.gap <= rtol:
        whole = _staircases(task, whole)
    if whole.mechanism is None or math.isinf(whole.value):
        raise ValueError(
            f"{problem.privacy.adjective} is not allowed: no noise was found within {MAX_POINTS} lattice points and the time "
            "limit; raise the privacy parameters, the time limit, or scale the data to a smaller sensitivity"
        )
    made = Program("none", "none", "closed form, no solver", run.seconds, run.rtol)
    if isinstance(whole.program, Program):
        made = whole.program
    elif best is not None:
        made = told(task, best.program, run)
    closed = isinstance(whole.mechanism, LatticeGaussian | RoundedGaussian)
    message = "the noise is the Gaussian's" if closed else whole.kind
    made = replace(made, message=message, stopped=run.seconds > run.time_limit)
    return Solution(problem, whole.value, whole.lower, whole.mechanism, whole.certificate, made)


def _whole(best: Bracket, known: Bracket) -> Bracket:
    """The better of both sides; what is told of the noise is that of where it is from."""
    whole = best.better(known)
    return replace(whole, kind=(known if whole.mechanism is known.mechanism else best).kind)


def _staircases(task: Task, best: Bracket) -> Bracket:
    """The bracket with the staircases for the least eps and the least delta, which imply the profile, where one is better."""
    eps, delta = (min(part, key=float) for part in zip(*task.privacy.pairs, strict=True))
    if not (eps or delta):  # no noise is for that
        return best
    least = ApproxDP(eps, delta, task.width)
    for noise in noise_of(replace(task.problem, privacy=least)):
        value = noise.enclose(task.problem.objective)[1]
        if value < best.value:
            kind = f"a staircase for {least.adjective}, which is better than what was found on lattices"
            best = replace(best, mechanism=noise, value=value, kind=kind)
    return best


def told(task: Task, program: Any, run: Run) -> Program:
    """What is kept of a lattice program."""
    variables, rows, rounds = program.told
    found_by = f"powers of tests at all shifts under the curve of {task.privacy.adjective}"
    return Program(
        variables, f"{found_by}: {rows}", f"{task.solver.name}, {rounds}", run.seconds, run.rtol, program.objective,
        build=_model, arguments=(program.model,),
    )  # fmt: skip


def _sizes(task: Task, points: int) -> Iterator[int]:
    """Points per sensitivity, one lattice after the other: about twice as many each time; for a loss that jumps also those at
    which it does so nearly at a lattice point; for a step function those with cells that end nearest beyond its steps. A lattice
    with cells that end at all steps is enough: beside it, where it has many points, one that takes less time.
    """
    if task.fits:
        yield from [lattice.aligned(2, task.jumps, task.loss.steps)] * (task.fits > 3)
        yield task.fits
        return
    if task.loss.steps:
        yield from dict.fromkeys(min(range(1, most + 1), key=task.outwards) for most in NEAREST)
        return
    if not task.jumps:
        while points < 2000:
            yield points
            points *= 2
        return
    tried = [lattice.aligned(points, task.jumps, False)]
    while tried[-1] < (HEAPED if task.heaped else JUMPY):
        yield tried[-1]
        tried.append(lattice.aligned(2 * tried[-1], task.jumps, False))
    yield tried[-1]
    apart = {n: lattice.beyond(n, task.jumps, Fraction(0)) / n for n in range(2, JUMPY + 1)}
    yield from [n for n in sorted(apart, key=apart.__getitem__) if n not in tried][:LATTICES]


def _borrowed(
    run: Run, gaussian: bool, best: Bracket, others: Sequence[tuple[Problem, int | None]], until: float,
    rtol: float = BORROWED,
) -> Bracket:  # fmt: skip
    """Noise that is good for other losses, such as steps moved in a little, where the lattices of a loss are too coarse; in so
    many seconds from the start, all in all, and to this tolerance.

    **Arguments:** `others`: problems, and the points per sensitivity of their lattices, if these are known.
    """
    for other, n in others:
        left = max(until - run.seconds, 0.0)
        if left and best.gap > run.rtol:
            loss: Any = other.objective.loss
            name = loss if loss.exponent else "steps at ends of cells"
            progress = run.progress.part(f"noise for {name}", best.lower, best.value)
            known = replace(run, problem=other, time_limit=left, began=time.perf_counter(), progress=progress)
            with contextlib.suppress(ValueError, SolverFailure):
                close = max(run.rtol, min(rtol, best.gap / 8))
                made = design(replace(known, rtol=close), n=n, gaussian=gaussian)
                if isinstance(made.certificate, AdditiveCertificate):
                    best = best.proven(replace(made.certificate, moved=float(HARDLY)), run.problem)
                value = made.mechanism.enclose(run.problem.objective)[1]
                if value < best.value:
                    kind = f"noise for {name}, which is better than what was found for this loss"
                    told = replace(made.program, rtol=run.rtol, objective=None, seconds=run.seconds)
                    best = replace(best, mechanism=made.mechanism, value=value, program=told, kind=kind)
    return best


def _model(program: LinearProgram) -> LinearProgram:
    return program


register(
    "additive curve",
    ("GDP, Profile, Curve", "Line, Integers",
     "WorstCase(a power or piecewise polynomial; with delta > 0 everywhere also a convex function)",
     "Additive", "Unbiased"),
    accepts, design,
)  # fmt: skip

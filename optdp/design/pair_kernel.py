"""The best of all eps-LDP mechanisms on an interval for a loss L(x, y) of input and output: a bracket.

Inputs and outputs at finitely many points make it a finite problem, whose optimum is a convex program in the floor
(`optdp.solvers.floors`). Its rows, mixed between neighbouring inputs, are a mechanism for the whole interval
(`optdp.mechanisms.mixture`), and its multipliers bound all mechanisms (`optdp.certificates.pair`). Both are evaluated on the
continuum, where the loss is known by its values and by how much it changes at most: many more points than the program has.

**Refinement.** Points are added where they help: inputs where mixtures of two rows lose more than the optimum of the program,
outputs where the price is negative. Each new program begins with the floor of the last. For a prior with a density every entry of
the matrix is a mean of the loss, weighted by the share of the input's row in mixtures, so that the program is that of the
best mixtures.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from optdp.certificates.pair import CELLS, PAIRS, Dual, PairCertificate, certify
from optdp.certificates.pair import POINTS as PROVABLE
from optdp.design.finite_kernel import plain_program
from optdp.design.registry import Run, register
from optdp.exact import enclosures, require
from optdp.exact.rounding import Table
from optdp.mechanisms.finite import FiniteMechanism
from optdp.mechanisms.mixture import MixtureMechanism
from optdp.problem import LDP, AllMechanisms, Alphabet, Average, Interval, Prior, Problem, WorstCase
from optdp.solution import Solution
from optdp.solvers.floors import Floors, solve_floors
from optdp.solvers.lp import LinearProgram
from optdp.solvers.threads import one_thread

#: Inputs of the first program; outputs are twice as many. Entries of the last.
FIRST, ENTRIES = 33, 300_000
#: Programs at most.
LEVELS = 12
#: How often the points of a mechanism are made denser than the program's inputs; how many there are at most, and weights.
DENSER, POINTS, WEIGHTS = 4, 2048, 2**20 + 2**17
#: Places between two points where mixtures and prices are looked at.
BETWEEN = 4
#: Most points of a prior. Domains and losses are at most this large, so that nothing overflows.
ATOMS, LARGEST = 500, 1e100

log = logging.getLogger("optdp")


def accepts(problem: Problem) -> str | None:
    """All mechanisms on an interval: worst cases and averages of a loss of the pair that declares by how much it changes."""
    privacy, domain, objective = problem.privacy, problem.domain, problem.objective
    if not isinstance(privacy, LDP) or not 0 < float(privacy.eps) <= require.MAX_EPS:
        return "privacy must be LDP with eps in (0, 30]"
    if not isinstance(domain, Interval) or not isinstance(problem.family, AllMechanisms):
        return "the domain must be an interval and the family all mechanisms"
    if not isinstance(objective, WorstCase | Average) or objective.loss.form != "pair":
        return "the objective must be the worst case or average of a loss of the pair (input, output)"
    loss = objective.loss
    if loss.rates is None:
        return (
            f"loss = {loss.name!r} is not allowed: on an interval it must declare by how much it changes at most, as in "
            "optdp.PairLoss(..., lipschitz=2.0): its values at finitely many points prove nothing else"
        )
    if problem.unbiased:
        return f"loss = {loss.name!r} is not allowed: for unbiased mechanisms it must be the variance, 'squared'"
    if any(c.tag != "outputs" for c in problem.constraints):
        return "constraints must be Outputs(low, high)"
    if isinstance(objective, Average) and isinstance(objective.prior, Prior) and len(objective.prior) > ATOMS:
        return f"prior is not allowed: it must be one of at most {ATOMS} points, or a density"
    if max(map(abs, (domain.lower, domain.upper, *(problem.outputs or ()), *loss.rates))) > LARGEST:
        return f"the domain, the outputs and by how much the loss changes must be at most {LARGEST:g}: use other units"
    return None


@one_thread()
def design(run: Run) -> Solution:
    """See `optdp.solve_kernel`."""
    return _Search(run).solve()


register(
    "pair kernel",
    ("LDP", "Interval", "WorstCase or Average (points or a density) of a PairLoss with lipschitz", "AllMechanisms", "Outputs"),
    accepts, design, solvers=False,
)  # fmt: skip


def build_model(problem: Problem, inputs: tuple[float, ...], outputs: tuple[float, ...]) -> LinearProgram:
    """The plain linear program of the last points: a relaxation but for outputs in between (worst case, prior of points)."""
    losses, prior, _ = _Task(problem).program(np.array(inputs), np.array(outputs))
    return plain_program(losses, float(problem.eps), prior)  # type: ignore[arg-type]


@dataclass
class _Task:
    """What the finite programs ask of the problem."""

    problem: Problem

    @property
    def atoms(self) -> tuple[np.ndarray, np.ndarray] | None:
        """The points of the prior that have mass, and their probabilities; None without such a prior."""
        prior = getattr(self.problem.objective, "prior", None)
        if not isinstance(prior, Prior):
            return None
        points, chances = np.array(prior.categories, dtype=float), np.array(prior.probabilities)
        order = np.argsort(points)
        order = order[chances[order] > 0]
        return points[order], chances[order]

    @property
    def dense(self) -> bool:
        """Whether the prior has a density."""
        return isinstance(self.problem.objective, Average) and self.atoms is None

    def program(self, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
        """(losses, prior or None, which of the inputs they are about)."""
        loss: Any = self.problem.loss
        everyone = np.arange(x.size)
        if not self.dense:
            return loss.table(x, y), None if self.atoms is None else self.atoms[1], everyone
        objective: Any = self.problem.objective
        domain: Any = self.problem.domain
        # Sixteen cells between two points; of a cell's mass each of the two has its share.
        edges = np.unique(np.concatenate([np.linspace(a, b, 17) for a, b in pairwise(x)]))
        centres = edges[:-1] / 2 + edges[1:] / 2
        shares = [np.clip((v - domain.lower) / domain.width, 0.0, 1.0) for v in (edges, centres)]
        mass, _, mean = objective.cells(domain, *shares)
        low = np.clip(np.searchsorted(x, centres, side="right") - 1, 0, x.size - 2)
        knots = np.clip((x - domain.lower) / domain.width, 0.0, 1.0)
        upper = np.clip((mean - knots[low] * mass) / (knots[low + 1] - knots[low]), 0.0, mass)
        parts = np.zeros((x.size, centres.size))
        parts[low, np.arange(centres.size)] = mass - upper
        parts[low + 1, np.arange(centres.size)] += upper
        prior = parts.sum(axis=1)
        some = np.flatnonzero(prior > 1e-12)
        losses = parts[some] @ loss.table(centres, y) / prior[some, None]
        return losses, prior[some] / prior[some].sum(), some


class _Search:
    """Programs with more and more points, and the best mechanism and bound so far."""

    def __init__(self, run: Run) -> None:
        self.run, self.task = run, _Task(run.problem)
        problem: Any = run.problem
        self.loss, self.eps = problem.loss, float(problem.eps)
        self.ratio = enclosures.exp_below(problem.eps)
        self.value, self.bound = np.inf, -1.0
        self.made: MixtureMechanism | None = None
        self.proof: PairCertificate | None = None
        self.message, self.stopped = "", False

    @property
    def gap(self) -> float:
        """The bracket's relative width."""
        return (self.value - self.bound) / self.value if self.value else 0.0

    def meshes(self) -> tuple[np.ndarray, np.ndarray]:
        """The first points. Outputs are among the inputs' places too, where losses have their kinks."""
        domain, (low, high) = self.run.problem.domain, self.run.problem.outputs  # type: ignore[misc]
        x = self.task.atoms[0] if self.task.atoms else np.unique(np.linspace(domain.lower, domain.upper, FIRST))
        x[0], x[-1] = max(x[0], domain.lower), min(x[-1], domain.upper)
        y = np.linspace(low, high, 2 * FIRST - 1)
        y = np.unique(np.clip(np.concatenate([[low, high], y, x]), low, high))
        if x.size * y.size > ENTRIES:
            y = np.unique(np.clip(np.concatenate([[low, high], x]), low, high))
        return x, y

    def solve(self) -> Solution:
        """Add points until the bracket is as narrow as asked for."""
        run, rtol = self.run, self.run.rtol
        x, y = self.meshes()
        start: np.ndarray | None = None
        share, before, last_value = rtol / 5, np.inf, np.inf
        previous: tuple[MixtureMechanism, PairCertificate, Floors] | None = None
        for level in range(LEVELS):
            losses, prior, some = self.task.program(x, y)
            if losses.max() > LARGEST:
                told = f"its values must be at most {LARGEST:g}: use other units"
                raise ValueError(f"loss = {self.loss.name!r} is not allowed: {told}")
            found = solve_floors(losses, self.eps, prior, tolerance=share / 2, left=run.left, start=start)
            self.stopped = found.stopped or not run.left()
            certificate, mechanism = self.certificate(x, some, found), self.mechanism(x, y, found, share)
            last = level == LEVELS - 1 or self.stopped
            while True:
                more_x = self.inputs(x, mechanism, found, last_value, share)
                more_y = self.outputs(y, certificate, found, share)
                grown_x = x.size + more_x.size
                last = last or grown_x * (y.size + more_y.size) > ENTRIES or grown_x > PROVABLE
                enough = not more_x.size and not more_y.size
                if enough or last:
                    self.keep(mechanism, certificate, found)
                    if found.stopped and previous and found.bound < previous[2].bound:  # nothing is bounded at first
                        self.keep(*previous)
                if not enough or last or self.gap <= rtol or self.gap > 0.9 * before:
                    break
                share, before = share / 2, self.gap
            bracket = (max(self.bound, 0.0), self.value) if self.made else (None, None)
            run.progress(f"{x.size} inputs, {y.size} outputs", *bracket)
            log.debug(
                "%d inputs, %d outputs: program [%.9g, %.9g] after %d rounds; more: %d, %d; bracket [%.9g, %.9g]; %.2f s",
                x.size, y.size, found.bound, found.value, found.rounds, more_x.size, more_y.size, self.bound, self.value,
                run.seconds,
            )  # fmt: skip
            if enough or last:
                break
            grown = np.union1d(y, more_y)
            if prior is None:  # losses bend where the output is the input: both are added
                (low, high), domain = run.problem.outputs, run.problem.domain  # type: ignore[misc]
                grown = np.union1d(grown, more_x[(more_x > low) & (more_x < high)])
                more_x = np.union1d(more_x, more_y[(more_y > domain.lower) & (more_y < domain.upper)])
            x, last_value, previous = np.union1d(x, more_x), found.value, (mechanism, certificate, found)
            start = _spread_over(grown, y, found.floors)
            y = grown
        if self.gap > rtol:
            self.message = f"the {'time limit' if self.stopped else 'finest program'} was reached before the tolerance"
        assert self.made is not None and self.proof is not None
        columns = y.size + (1 if prior is None else len(prior))
        return run.solution(
            self.made, self.proof, f"{columns} columns: floors and losses of {x.size} inputs, {y.size} outputs",
            f"{1 + found.cuts} rows: total mass, cuts", "HiGHS (cutting planes)", (max(self.bound, 0.0), self.value),
            objective=found.value, bound=found.bound, message=self.message, stopped=self.stopped, build=build_model,
            arguments=(run.problem, tuple(x.tolist()), tuple(y.tolist())),
        )  # fmt: skip

    def keep(self, mechanism: MixtureMechanism, certificate: PairCertificate, found: Floors) -> None:
        """Both sides on the continuum, if they are better than those so far."""
        problem, value = self.run.problem, mechanism.enclose(self.run.problem.objective)[1]
        if value < self.value:
            self.value, self.made = value, mechanism
        proof = certify(problem, self.cut(certificate, value, self.run.rtol / 8), value, self.run.rtol / 16)
        bound = proof.bound(problem).value
        if bound > self.bound:
            self.bound, self.proof = bound, proof

    def cut(self, certificate: PairCertificate, value: float, share: float) -> PairCertificate:
        """For a density: with so many cells of inputs that their width costs no more than this share of the value."""
        if not self.task.dense:
            return certificate
        (a, b), domain = self.loss.rates, self.run.problem.domain
        width: Any = domain.width
        span = float(np.ptp(np.array(self.run.problem.outputs)))
        # Cells of inputs and of outputs; where both are too many, fewer of both.
        needed: list[float] = [0.0]  # nothing is to be proven where it is 0
        if value:
            needed = [max(v, 256.0) for v in (a * width / (4 * share * value), b * span / (2 * share * value))]
        fewer = min(1.0, math.sqrt(PAIRS / 2 / max(math.prod(needed), 1.0)))
        return replace(certificate, cells=int(np.clip(fewer * needed[0], 64, CELLS)))

    def inputs(
        self, x: np.ndarray, mechanism: MixtureMechanism, found: Floors, before: float, share: float
    ) -> np.ndarray:
        """Middles between two inputs where the mechanism loses more than this share beyond the program's value."""
        if self.task.atoms is not None:
            return x[:0]
        if self.task.dense:  # until programs agree
            return x[:0] if abs(before - found.value) <= share * found.value else x[:-1] / 2 + x[1:] / 2
        points, excess = self.excess(mechanism, found)
        worst = np.full(x.size - 1, -np.inf)
        np.maximum.at(worst, np.clip(np.searchsorted(x, points[:-1], side="right") - 1, 0, x.size - 2), excess)
        return _middles(x, worst, share)

    def excess(self, mechanism: MixtureMechanism, found: Floors) -> tuple[np.ndarray, np.ndarray]:
        """(the mechanism's points, by which share of the program's value mixtures between each two of them lose more)."""
        points = np.array(mechanism.points)
        at = _between(points)
        first, second = mechanism.sides(self.loss, at)
        part = mechanism.shares(at)
        worst = ((1 - part) * first + part * second).reshape(-1, BETWEEN - 1).max(axis=1)
        return points, worst / found.value - 1 if found.value else 0 * worst

    def outputs(self, y: np.ndarray, certificate: PairCertificate, found: Floors, share: float) -> np.ndarray:
        """Middles between two outputs where thresholds are too high, by more than this share of the program's value."""
        if not found.value:  # none is less
            return y[:0]
        dual = Dual.of(self.cut(certificate, found.value, 0.02), self.run.problem)
        at = _between(y)
        price, slope = dual.prices(at, np.zeros(at.size))
        excess = (-price / slope).reshape(-1, BETWEEN - 1).max(axis=1)
        return _middles(y, excess, share * found.value)

    def mechanism(self, x: np.ndarray, y: np.ndarray, found: Floors, share: float) -> MixtureMechanism:
        """The program's floor in integers, with the best rows above it: at its own inputs, and between them where mixtures lose
        more than the program's value.
        """
        used = np.flatnonzero(found.floors > 0)
        domain: Any = self.run.problem.domain
        points = x
        for _ in range(DENSER):
            losses = self.loss.table(points, y[used])
            alphabet, numbers = Alphabet(tuple(range(points.size))), tuple(range(used.size))
            weights = FiniteMechanism.of_floors(alphabet, numbers, found.floors[used], losses, self.ratio).table.weights
            sent = weights.any(axis=0)
            outputs = tuple(y[used[sent]].tolist())
            made = MixtureMechanism(domain, tuple(points.tolist()), outputs, Table(weights[:, sent]))
            if self.task.atoms is not None:
                break
            halved = points[:-1] / 2 + points[1:] / 2
            more = halved if self.task.dense else _middles(*self.excess(made, found), share / 2)
            if not more.size or (points.size + more.size) > POINTS or (points.size + more.size) * used.size > WEIGHTS:
                break
            points = np.union1d(points, more)
        return made

    def certificate(self, x: np.ndarray, some: np.ndarray, found: Floors) -> PairCertificate:
        """The program's multipliers; thresholds in the units of the loss."""
        known = self.task.dense or self.task.atoms is not None
        kept = np.flatnonzero(found.weights > (0.0 if known else 1e-12 * found.weights.max()))
        weights = found.weights[kept]
        inputs, thresholds = x[some][kept], np.maximum(found.masses[kept] / weights, 0.0)
        told = () if known else tuple(weights.tolist())
        return PairCertificate(tuple(inputs.tolist()), told, tuple(thresholds.tolist()), 256 * self.task.dense)


def _middles(points: np.ndarray, excess: np.ndarray, most: float) -> np.ndarray:
    """The middles of cells in which there is too much, and if there is one, of those that come near."""
    middle = points[:-1] / 2 + points[1:] / 2
    near = excess > (most / 3 if (excess > 1.5 * most).any() else np.inf)
    return middle[near & (middle > points[:-1]) & (middle < points[1:])]


def _between(points: np.ndarray) -> np.ndarray:
    """Places between each two neighbours."""
    parts = np.arange(1, BETWEEN) / BETWEEN
    return np.asarray((points[:-1, None] + parts * np.diff(points)[:, None]).reshape(-1))


def _spread_over(grown: np.ndarray, y: np.ndarray, floors: np.ndarray) -> np.ndarray:
    """A floor on more points: what was spread evenly around each point before is collected around the nearest point."""
    edges, finer = (np.concatenate([v[:1], v[:-1] / 2 + v[1:] / 2, v[-1:]]) for v in (y, grown))
    return np.diff(np.interp(finer, edges, np.concatenate([[0.0], np.cumsum(floors)])))

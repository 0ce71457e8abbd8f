"""The search for the kernel's floor and its bound: meshes that are refined until the bracket is as narrow as asked for.

The gap is the integral of g over the floor plus that of V - J over the prior (`optdp.design.kernel.master`,
`optdp.design.kernel.prior`): both meshes are halved where these are largest.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from dataclasses import replace

import numpy as np

from optdp.certificates.base import Refusal
from optdp.certificates.kernel import KernelCertificate
from optdp.design.kernel import average, finite, master, points, steps
from optdp.design.kernel.floor import Floor, of_pieces
from optdp.design.kernel.master import Cuts, Master, minima
from optdp.design.kernel.prior import Dual, PriorProgram, certificate, layers_of, two_atoms
from optdp.design.kernel.task import Task, between, grid, short
from optdp.design.piecewise import optimal_window
from optdp.design.registry import Run
from optdp.mechanisms.kernel import KernelMechanism, spacing
from optdp.mechanisms.piecewise import PiecewiseMechanism
from optdp.problem.problem import Problem
from optdp.solution import Solution
from optdp.solvers.dense import Dense
from optdp.solvers.lp import LinearProgram, LinearStatus, SolverFailure

log = logging.getLogger("optdp")
#: Refinements, and nodes of a mesh, after which the bracket is taken as it is: counted, whatever the clock says.
LEVELS, FINEST = 14, 1200
#: Windows of the best thresholds that are known, and others near them, are among the first cuts of an average under a density.
AROUND = (0.9, 1.0, 1.1)
#: Values in floats that are 0.
NOTHING = 1e-290
#: At most how many pieces a floor is cut into; where a search was stopped, and then at least.
PIECES, FEW, LEAST = 8192, 2048, 64
#: Pieces times knots of the loss whose exact value takes about a second.
EXACT = 3000
#: At least and at most how many times as many cells a finer mesh has.
GROWS = 1.35, 2.25
#: For a worst case at least a little more than gaps ask for that fall with the square of the number of cells, in these limits.
SAFE, NEEDED = 1.1, (1.2, 1.45)
#: How much wider than the cells before it one may be on a graded mesh; those from so many times nearer to the end on.
STEEPEST, BEHIND = 1.7, 2.0
#: Windows narrower than this lie far within cells, where g must be looked at more closely.
THIN = 1e-4
#: How many cells on from one that is cut are cut, too, each by this share of what the one before is, where they are about as wide
#: as windows: only then errors at a window's two ends cancel.
NEXT, NEARLY = 8, 0.85
#: Which share of what pieces cost is left after a cutting, at least and at most.
LEFT = 0.1, 0.8
#: Windows that must shrink by more than this are too wide for their mesh.
WIDE = 0.1
#: At most how often pieces are cut on; the share of its bracket that a search which was stopped may lose by it.
CUTTINGS, LOST = 40, 0.05
#: Cuttings in a row that make it no better, or bring it nearer to the goal by less than this share.
PATIENCE, LITTLE = 3, 0.05
#: How much earlier or later losses jump, as a share, so that proofs in exact numbers do.
BESIDE = 2.0**-30
#: How often outputs move outwards for means, where some are at a limit; by how much farther than floats say, at least.
STRETCHES, ROOMS = 20, (2.0**-40, 2.0**-35, 2.0**-30)
#: Which share of the tolerance a floor may be above its program at least.
ALIKE = 0.02
#: Which share of the tolerance the meshes' gap may take, the second where meshes are fine: pieces take the rest.
CLOSE, CLOSER = 0.7, 0.88


class Search:
    """Meshes that are refined until the bracket is as narrow as asked for."""

    def __init__(self, task: Task, run: Run) -> None:
        self.task, self.run = task, run
        self.mechanism: KernelMechanism | PiecewiseMechanism
        self.certificate, self.bound, self.value, self.message = KernelCertificate(), 0.0, np.inf, ""
        known = task.prior is None and task.cost.step is not None
        if task.prior is None:
            self.certificate = steps.packing(task) if known else two_atoms(task)
            self.bound = self.certificate.bound(run.problem).value
        elif task.has_density and task.cost.tilted:  # what is there when the time is up: means may be any
            free = Task(replace(run.problem, constraints=()))
            y, inputs = free.meshes(run.rtol)
            self._take(certificate(average.solve(free, None, inputs, y, run.rtol, None)[0], 1e-3))
        simple = [self._simple()]
        if not task.cost.tilted:
            simple += [self._one(), *([self._two()] if task.symmetric else [])]
        if task.cost.step is not None:
            count = len(self.certificate.points) // 2 if known else min(int(1 / (2 * task.cost.step)), FEW // 2)
            for n in (count,) if known else (count or 1, count + 1):
                simple += steps.covers(task, n)
        self._best(*simple)
        #: Whether what is left of the bracket would need other numbers than floats.
        self.settled = known and self.value < 1
        if task.cost.flat and task.prior is None and self.gap > run.rtol:
            for found, proof, whole in steps.stairs(task):
                self._take(proof)
                self._best(found)
                self.settled |= whole
                if self.gap <= run.rtol:
                    break
        #: Whose loss the priors are for.
        self.under = task
        self.stopped, self.close = False, CLOSER if task.fine else CLOSE
        self.reaches: tuple[np.ndarray, np.ndarray] | None = None
        #: The prior that promises most.
        self.proof: Dual | None = None
        #: What `points.solve` found.
        self.multipliers: tuple[Dual, bool] | None = None

    def _best(self, *found: KernelMechanism | PiecewiseMechanism) -> float:
        """Keep the best of these and what is there; the last one's value."""
        value = np.inf
        for made in found:
            value = made.enclose(self.run.problem.objective)[1]
            if value < self.value:
                self.mechanism, self.value = made, value
        self._agree()
        return value

    def _agree(self) -> None:
        """Replace a proof above what is attained, where floats are too far apart for a loss in steps: it is for inputs between
        these, which no mechanism reads.
        """
        task, old = self.task, self.certificate
        if self.bound > self.value and task.prior is None:
            points = tuple(short(task.share(task.read(task.point(x)))) for x in old.points)
            for made in (replace(old, points=points), two_atoms(task)):
                self.certificate, self.bound = made, made.bound(self.run.problem).value
                if self.bound <= self.value:
                    break

    @property
    def gap(self) -> float:
        """The bracket's relative width."""
        return (self.value - self.bound) / self.value if self.value else 0.0

    def _simple(self) -> KernelMechanism:
        """What is known without a program: an even floor, or two outputs where means are exact (Duchi's mechanism)."""
        task, problem = self.task, self.run.problem
        low, high = task.span
        if task.cost.tilted:
            reach = (1 + 2 / task.growth) / 2
            off = 2 * spacing(problem.domain, 0.5 - reach, 0.5 + reach)
            # Outputs are rounded: alike where the domain's middle is a number of their lattice, and else means move.
            for room in (off, off * reach / 4, off * reach / 2, off * reach):
                ends = 0.5 + ((1 + 1e-12) * reach + room) * np.array([-1.0, 1.0])
                made = task.mechanism(ends, ends, window=0.5)
                if made.check_unbiased().passed:
                    break
            return made
        return task.mechanism(np.array([low]), np.array([high]), window=task.width)

    def _one(self) -> KernelMechanism:
        """The best constant, the middle one of equals: all there is where it costs nothing."""
        task = self.task
        x, chances = task.prior or (np.linspace(0.0, 1.0, 65), None)
        marks = task.places if task.places.size else np.array([0.0, 1.0])
        marks = np.clip(np.add.outer(marks, (0.0, *task.cost.knots)).ravel(), *task.span)
        y = between(np.union1d(marks, np.linspace(*task.span, 257)), 1)
        losses = task.cost.of(y - x[:, None])
        losses = losses.max(axis=0) if chances is None else chances @ losses
        best = np.flatnonzero(losses <= losses.min() * (1 + 1e-12))
        y = grid(y[best[best.size // 2], None])
        return task.mechanism(y, y, window=1.0)

    def _two(self) -> KernelMechanism:
        """Two outputs that are mirror images: nearly the best for small eps (the squared error: the best up to 1.76)."""
        task, share = self.task, 1 / (2 + self.task.growth)
        low, x = task.span[0], np.linspace(0.0, 0.5, 17)[:, None]
        # At a high power they are as near to the middle as the ends ask.
        q = max(self.run.problem.loss.exponent or 2.0, 1.5)
        near = [max(low, share), max(low, 0.5 - np.tanh(task.eps / (2 * q - 2)) / 2)]
        y = np.append(np.linspace(low, 0.5, 65), near)
        y = y[np.argmin(((1 - share) * task.cost.of(y - x) + share * task.cost.of(1 - y - x)).max(axis=0))]
        ends = grid(np.array([y, 0.0]))
        ends[1] = 1 - ends[0]
        return task.mechanism(ends, ends, window=0.5)

    def solve(self) -> Solution:
        """Refine, and keep the best mechanism and the best bound."""
        task, rtol = self.task, self.run.rtol
        if task.places.size and not task.cost.tilted:
            return self._finite()
        y, inputs = task.meshes(rtol)
        found: Master | None = None
        best: Master | None = None  # one that was stopped may attain more
        proven: Dual | None = None  # the last whose bound is known,
        enclosed: Master | None = None  # and the last whose value is
        # Where the numbers that can be sent are this far apart a finer program makes the value no better.
        coarse = spacing(self.run.problem.domain, 0.0, 1.0, task.cost.tilted) > rtol * task.width / 4
        if coarse:
            self.message = "the domain's floats are too far apart for a narrower bracket"
        levels = 0 if self.gap <= rtol else 2 if coarse else LEVELS
        if levels and self.settled:
            self.message, levels = "floats are too far apart for the best outputs", 0
        if not levels and isinstance(self.mechanism, KernelMechanism):  # the program has it among its solutions
            y = task.mirrored(np.concatenate([y, self.mechanism.lows, self.mechanism.highs]))
        cuts = self._first(y, inputs)
        if levels and task.smooth:
            self.proof = self._thresholds(None, y, inputs)
        start: tuple[Master, Dual | None] | None = None
        if levels and task.prior is None and task.cost.jumps:
            with suppress(SolverFailure):
                start, y, inputs = self._beside_jumps()
                cuts = self._first(y, inputs)
        for level in range(levels):
            task = self.task
            if self.reaches is not None and task.prior is not None and not task.jumps:
                # A program with the cuts of a dual is worth as much as that from the start.
                x, (a, b) = task.prior[0], task.cost.slopes
                for factor in AROUND:
                    t = factor * np.interp(x, *self.reaches)
                    cuts = cuts + Cuts(x, x + a * t, x + b * t)
            try:
                if not (start or self.run.left()):
                    raise SolverFailure("the time limit was reached before the tolerance", LinearStatus.TIME_LIMIT)
                self.run.progress(f"{y.size} outputs, {inputs.size} inputs", self.bound, self.value)
                found = start[0] if start else master.solve(task, y, cuts, rtol / 20, found)
                best = found if best is None or found.attained <= best.attained else best
                dual, start = start[1] if start else self._dual(found, y, inputs), None
            except SolverFailure as failure:  # the last floor, and the last prior that there was time for
                self.message, self.stopped = str(failure), failure.status is LinearStatus.TIME_LIMIT
                if self.proof is not None and self.proof is not proven:
                    self._keep_bound(self.proof, -np.inf if best is None else best.attained)
                if best is not None and best is not enclosed:
                    self._keep_value(best)
                break
            cuts = found.cuts
            if found.attained <= NOTHING:
                self._keep_value(found)
                if found.attained < 0 and self.proof is not None:  # which no loss is: floats do not hold e^eps beside 1
                    self._keep_bound(self.proof)
                break
            if dual is not None and (self.proof is None or dual.worth > self.proof.worth):
                self.proof = dual
            log.debug(
                "%d outputs, %d inputs: program %.9g, floor %.9g after %d rounds; dual %s; %.2f s", y.size, inputs.size,
                found.value, found.attained, found.rounds, dual and f"{dual.value:.9g} less {dual.shrink:.2g}", self.run.seconds,
            )  # fmt: skip
            close = (0.95 if task.has_density else self.close) * rtol
            last = level == levels - 1 or max(y.size, inputs.size) > FINEST
            most = self.proof.worth / (1 - close) if task.fine and self.proof else -np.inf
            # A better floor costs less than finer meshes; a program that was stopped may be worth 0.
            if max(found.value * (1 + ALIKE * rtol), 0.0) < most < found.attained:
                with suppress(SolverFailure):
                    found = master.solve(task, y, cuts, (1 - found.value / most) / master.ROOM, found)
                    best, cuts = min(best, found, key=lambda one: one.attained), found.cuts
            good = found.attained * task.cost.unit * (1 - 0.9 * rtol)
            for made in (dual,) if dual is self.proof else (self.proof, dual):
                if made is not None and (last or made.worth >= (1 - close) * found.attained):
                    self._keep_bound(made)
                    proven = made
                if self.bound >= good:
                    break
            if last or self.bound >= good:
                late = not self.run.left()  # so that proofs were fewer, and pieces will be
                self._keep_value(best, PIECES if last else PIECES // 2)
                enclosed = best
                unsolved = found.attained - found.value > rtol / 100 * found.value
                late = late or (unsolved and not self.run.left())
                if self.gap > rtol and unsolved and not late:
                    # A floor nearer to the program's value costs less than finer meshes.
                    with suppress(SolverFailure):
                        found = master.solve(task, y, cuts, rtol / 100, found)
                        self._keep_value(found, PIECES if last else PIECES // 2)
            if self.gap <= rtol:
                break
            if last:
                self.stopped = late and not coarse  # where more time is of use
                if self.stopped:
                    self.message = "the time limit was reached before the tolerance"
                elif not coarse:
                    self.message = "the finest mesh was reached before the tolerance"
                break
            y, inputs = self._refined(found, dual, y, inputs)
            if task.jumps:
                cuts = self._first(y, inputs, found.floor)
        self._keep_piecewise()
        used = master.usual(task)
        name = used.name if task.solver or isinstance(used, Dense) else "HiGHS"
        active = tuple(tuple(v.tolist()) for v in (cuts.x, cuts.a, cuts.b))
        return self.run.solution(
            self.mechanism, self.certificate,
            f"{2 * y.size + 1} columns: densities and atoms of the floor at {y.size} outputs, the value",
            f"{cuts.x.size} active cuts: inputs with their favoured outputs", f"{name} (cuts, refined meshes)",
            (self.bound, self.value),
            objective=None if found is None else found.value * task.cost.unit, message=self.message, stopped=self.stopped,
            build=build_model, arguments=(self.run.problem, tuple(y.tolist()), active, rtol / 20),
        )  # fmt: skip

    def _finite(self) -> Solution:
        """The same for an average over finitely many inputs."""
        run, program = self.run, finite.Program(self.task, True)
        best = int((program.chances @ program.losses).argmin())
        self._take(program.certificate(program.losses[:, best]))  # proves that a constant is the best, if it is
        self.message = "the last program was reached before the tolerance"
        try:
            for made, nu, worth, program in finite.solve(self.task, run) if self.gap > run.rtol else ():
                self._best(made)
                goal = worth * self.task.cost.unit * (1 - run.rtol / 20)
                for share in finite.LESS:
                    if self._take(program.certificate((1 - share) * nu)) >= goal:
                        break
                run.progress(f"{len(program.points)} outputs, {program.x.size} inputs", self.bound, self.value)
                if self.gap <= run.rtol:
                    break
        except SolverFailure as failure:
            self.message = str(failure)
        self.stopped = self.gap > run.rtol and not run.left()
        if self.stopped:
            self.message = "the time limit was reached before the tolerance"
        n, m = program.losses.shape
        return run.solution(
            self.mechanism, self.certificate, f"{n + m} columns: losses of {n} inputs, the floor at {m} outputs",
            f"mass, and cuts of {n} inputs", "HiGHS (cutting planes)" if run.solver is None else run.solver.name,
            (self.bound, self.value),
            objective=program.value and program.value * self.task.cost.unit, stopped=self.stopped,
            message=self.message if self.gap > run.rtol else "", build=finite.build_model,
            arguments=(run.problem, tuple(program.y.tolist())),
        )  # fmt: skip

    def _keep_piecewise(self) -> None:
        """The best piecewise mechanism, where it is better than what was found (within the tolerance nobody asks)."""
        problem = self.run.problem
        area, law = problem.domain, problem.loss
        asked = self.gap > self.run.rtol and self.task.prior is None and not problem.constraints
        if asked and law.form == "distance" and law.monotone:
            window = optimal_window(float(problem.eps), law, float(area.exact_reach))  # type: ignore[arg-type]
            self._best(PiecewiseMechanism.private(problem.eps, window, area))  # type: ignore[arg-type]

    def _first(self, y: np.ndarray, inputs: np.ndarray, floor: Floor | None = None) -> Cuts:
        """Windows as wide as the best piecewise mechanism's, or (unbiased, small eps) as its outputs are far; or the floor's."""
        if self.task.jumps:
            self.task = replace(self.task, outputs=tuple(y.tolist()))
        inputs = inputs[inputs <= self.task.half] if self.task.prior is None else self.task.prior[0]
        if floor is not None:
            return Cuts(inputs, *floor.ends(inputs, self.task.cost, self.task.growth))
        if self.task.cost.tilted and self.task.eps < 1:
            reach = 0.6 / np.tanh(self.task.eps / 2)
            return Cuts(inputs, inputs - reach, inputs + reach)
        a, b = self.task.cost.slopes
        t = self.task.width / (b - a)
        return Cuts(inputs, inputs + a * t, inputs + b * t)

    def _beside_jumps(self) -> tuple[tuple[Master, Dual | None], np.ndarray, np.ndarray]:
        """The first floor and prior, with their meshes, where the loss jumps a little earlier for floors, and a little later for
        priors: else what only just meets a jump in floats may not in what is sent. Unless the jump itself tiles the domain.
        """
        rtol = self.run.rtol
        tasks = [replace(self.task, stretch=stretch) for stretch in (1 + BESIDE, 1.0)]
        meshes = [task.meshes(rtol) for task in tasks]
        floors = [
            master.solve(task, mesh[0], self._first(*mesh), rtol / 20) for task, mesh in zip(tasks, meshes, strict=True)
        ]

        def value(k: int) -> float:
            self.task = tasks[k]
            return self._keep_value(floors[k])

        k = 0 if floors[1].value > floors[0].value * (1 - rtol) else min((0, 1), key=value)
        self.task, (y, inputs) = tasks[k], meshes[k]
        unders, duals = [replace(self.task, stretch=stretch) for stretch in (1 - BESIDE, 1.0)], []
        try:
            for self.under in unders:
                duals.append(self._dual(floors[k], y, inputs))
        except SolverFailure as failure:  # the floor, and the first prior if there is one, are what this search has
            log.debug("one prior of two: %s", failure)
            duals += [None] * (2 - len(duals))

        def bound(k: int) -> float:
            dual = duals[k]
            return -np.inf if dual is None else self._take(certificate(dual, 2 * dual.shrink + 1e-12))

        worth = [-np.inf if dual is None else dual.worth for dual in duals]
        j = 0 if worth[1] < worth[0] + rtol * abs(worth[1]) else max((0, 1), key=bound)
        self.under = unders[j]
        log.debug("loss stretched by %.9f for floors, %.9f for priors", self.task.stretch, self.under.stretch)
        return (floors[k], duals[j]), y, inputs

    def _dual(self, found: Master, y: np.ndarray, inputs: np.ndarray) -> Dual | None:
        """The best prior for the floor's windows."""
        task, floor = self.under, found.floor
        if task.smooth:
            goal = found.attained * (1 - self.run.rtol / 2) if task.jumps else np.inf
            return self._thresholds(floor, y, inputs, goal)
        best: Dual | None = None
        far = np.empty(0)
        if task.cost.tilted:
            far = (y[-1] - y[0]) * np.geomspace(1e-3, 4.0, 16)
            far = np.concatenate([y[0] - far, [] if task.symmetric else y[-1] + far])
            far = far if task.limits is None else np.clip(far, *task.limits)
        if task.places.size:  # what is found does not depend on the meshes
            start = Cuts(task.places, *floor.ends(task.places, task.cost, task.growth))
            self.multipliers = self.multipliers or points.solve(task, start, np.union1d(y, far), self.run.rtol)
            best, enough = self.multipliers
            if enough:
                return best
            # Atoms there, with the floor's windows, others near them, none, and the cuts'.
            layers, atoms = layers_of(floor, task.places, task)
            for ends in (*layers, (task.places, task.places)):
                atoms = atoms + Cuts(task.places, *ends)
            layers, atoms = [], atoms + found.cuts
        else:
            layers, atoms = layers_of(floor, inputs, task)
            if task.has_density:
                atoms = atoms.take(np.flatnonzero(np.isinf(atoms.b - atoms.a)))
            elif task.width > 1e-3:
                atoms = atoms + found.cuts
            if task.prior is None and task.cost.jumps and task.stretch == 1:  # they may count at the jump itself
                at = np.union1d([0.0, 1.0], task.tiles)
                at = at[(at >= 0) & (at <= task.half)]
                atoms = atoms + Cuts(at, *floor.ends(at, task.cost, task.growth))
        # The loss of an atom bends there, too: where it has a kink g has a dip.
        kinks = [atoms.x + knot for knot in task.cost.knots]
        kinks += [inputs + knot for knot in task.cost.knots if task.in_steps]
        marks = [inputs, *(end for layer in layers[:1] for end in layer), atoms.a, atoms.b, *kinks]
        base, thin = np.unique(np.concatenate(marks)), task.width < THIN
        low, high = task.span
        bottom, top = y[0] if task.cost.tilted else low, task.half if task.symmetric else high
        top = min(top, y[-1]) if task.cost.tilted else top
        base = base[(base >= bottom) & (base <= top)]
        base = np.unique(np.concatenate([base, [max(low, y[0]), min(top, y[-1])]]))
        base = base[np.append(True, np.diff(base) > 1e-12)]
        outputs = np.union1d(between(base, 3 if thin else 1), far)
        program = PriorProgram(task, inputs, layers, atoms)
        dual: Dual | None = None
        first: Dual | None = None
        goal = self.close * self.run.rtol
        worth = found.value * ((1 + ALIKE * self.run.rtol) * (1 - goal) if task.fine else 1 - 1.4 * self.run.rtol)
        sought = (found.attained if task.fine else found.value) * (1 - goal)
        # All layers, their means, and all layers once more where these alone are good but for what lies between outputs.
        stages = (1,) if thin or not layers else (0, 1, 2) if task.fine else (0, 1)
        for stage in stages:
            if stage == 2:
                assert first is not None
                dual = first
                program = dual.program
                if dual.value < found.attained * (1 - 0.95 * goal):
                    break
            close = self.run.rtol / 16 if stage else np.inf
            dual = program.solve(
                outputs, dual, close=close, worth=worth, rough=stage == 0 and len(stages) > 1, sought=sought
            )
            if dual is None:
                break
            first = first or dual
            if best is None or dual.worth > best.worth:
                best = dual
            good = dual.worth >= sought
            # Windows that must shrink much are of no use on a finer set of outputs, either.
            enough = stage == stages[-1] or (good and (task.fine or dual.shrink <= self.run.rtol / 16))
            if enough or dual.shrink * dual.loss > WIDE * dual.value or not self.run.left():
                break
            lowest = program.lowest(dual)
            outputs = np.union1d(outputs, lowest[program.values(lowest, dual.columns) < 0])
            program = program.mixed(dual) if stage == 0 else program
        return best

    def _thresholds(self, floor: Floor | None, y: np.ndarray, inputs: np.ndarray, goal: float = np.inf) -> Dual:
        """The same for an average under a density: the prior is known, and thresholds are free."""
        start = None if self.reaches is None else np.interp(inputs, *self.reaches)
        dual, reaches = average.solve(self.task, floor, inputs, y, self.run.rtol, start, goal)
        self.reaches = inputs, reaches
        return dual

    def _keep_bound(self, dual: Dual, attained: float = -np.inf) -> None:
        """The exact bound of the dual, with windows that shrink more until it is good; where the time is up, until it makes the
        bracket below what is `attained` at most twice as wide.
        """
        rtol, shrink = self.run.rtol, dual.shrink
        shares = [1.25 * shrink + 1e-12, 4 * shrink + rtol / 200, 4 * shrink + rtol / 20]
        if not self.task.cost.jumps:  # powers are proven from pieces below them, which large eps magnify
            shares += [4 * shrink + share for share in (rtol / 4, rtol, 1e-3) if share <= 1e-3]
        for share in shares:
            bound = self._take(certificate(dual, share)) / self.task.cost.unit
            if bound >= dual.value * (1 - rtol / 20) - 4 * share * dual.loss:
                return
            if bound >= 2 * dual.value - attained > -np.inf and not self.run.left():
                return
        self.proof = None  # another that promises less may prove more

    def _take(self, made: KernelCertificate) -> float:
        """What a certificate proves; it is kept if that is more than before."""
        try:
            bound = made.bound(self.run.problem).value
        except Refusal as reason:
            self.message = str(reason)
            return -np.inf
        if bound > self.bound:
            self.certificate, self.bound = made, bound
            self._agree()
        return bound

    def _keep_value(self, found: Master, most: int = PIECES) -> float:
        """The value of the coarsest pieces of the floor that lose little: little of the bracket, where that stays wide."""
        task, floor, rtol = self.task, found.floor, self.run.rtol
        counts, goal = np.ones(floor.steps.size, dtype=np.int64), self.bound / (1 - 0.97 * rtol) / task.cost.unit
        attained = max(found.attained, NOTHING)
        apart = 1 - self.bound / (attained * task.cost.unit)
        goal = max(goal, attained * (1 + max(rtol / 50, LOST * apart * self.stopped)))
        # What a cell in one piece costs: windows narrower than it meet another density; to wider ones its mass is moved.
        change, masses = np.abs(floor.right - floor.left), np.maximum(floor.masses, 1e-300)
        share = task.growth / max(found.value, attained / 2)  # a program that was stopped has a low value
        narrow, wide = change * floor.steps / (4 * masses), share * change * floor.steps**2 / 12
        broad = floor.steps > task.width / 2
        best: tuple[float, tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None
        idle = 0
        law = task.problem.loss.branches(task.problem.domain.exact_width, True, task.eps)
        second, limit = EXACT / (1 + len(law.knots)), self.run.time_limit
        if self.stopped or not self.run.left():  # three seconds more, and a third of the limit
            few = FEW if task.cost.lines is None else PIECES  # for losses of two lines they are weighed soon
            most = int(np.clip(second * (3 + limit / 3), LEAST, few))
        else:  # not many more than it takes the limit to prove, whatever the clock says
            most = int(np.clip(second * (3 + limit), LEAST, most))
        for _ in range(CUTTINGS):
            pieces = _mirrored(*floor.pieces(counts), task)
            if best is not None and pieces[0].size > most:
                break
            whole = of_pieces(*pieces)
            _, a, b, losses = task.losses(whole, 4, 2**20 / whole.y.size)
            value = task.overall(losses)
            idle = 0 if best is None or value < best[0] - LITTLE * (best[0] - goal) else idle + 1
            if best is None or value < best[0]:
                best = value, pieces
            if value <= goal or idle == PATIENCE:  # the floor itself is no better
                break
            cost, over = (
                np.minimum(narrow / counts, wide / counts**2),
                losses if task.prior is None else 0 * losses + value,
            )
            bad = over > goal
            left = np.clip((goal - attained) / np.maximum(over[bad] - attained, 1e-300), *LEFT)
            # Cells under a window count most.
            under = (a[bad, None] <= floor.y[1:]) & (b[bad, None] >= floor.y[:-1])
            weight = np.where(under, cost, cost / (1 + task.growth))
            factor = (weight / np.maximum(_levels(weight, left), 1e-300)[:, None]).max(axis=0)
            factor = np.where(narrow * counts < wide, factor, np.sqrt(factor))
            factor = np.where(factor > 1, np.clip(factor, 1.2, 4.0), 1.0)
            for _ in range(NEXT if broad.any() else 0):
                near = np.maximum(np.append(1.0, factor[:-1]), np.append(factor[1:], 1.0))
                factor = np.where(broad, np.maximum(factor, 1 + NEARLY * (near - 1)), factor)
            if task.symmetric:
                factor = np.maximum(factor, factor[::-1])
            counts = np.ceil(counts * factor - 1e-9).astype(np.int64)
        assert best is not None
        log.debug("%d pieces: %.9g, goal %.9g; %.2f s", best[1][0].size, best[0], goal, self.run.seconds)
        # Atoms pay for every bit by which means are moved: by as little as will do.
        for room in ROOMS if task.prior is not None else ROOMS[-1:]:
            moved = self._stretched(*best[1], room) if task.cost.tilted else best[1]
            if moved is None:
                return np.inf
            made = task.mechanism(moved[1], moved[2], moved[0])
            if not task.cost.tilted or made.check_unbiased().passed:
                break
        else:
            return np.inf
        return self._best(made)

    def _stretched(
        self, masses: np.ndarray, lows: np.ndarray, highs: np.ndarray, room: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
        """Pieces that reach every mean in exact arithmetic, too: they move with the outputs; None if no mean is in the domain."""
        task = self.task
        room += 4 * spacing(task.problem.domain, float(lows[0]), float(highs[-1]))
        ends = task.limits
        for _ in range(STRETCHES):
            floor = of_pieces(masses, lows, highs)
            first = max(floor.lowest_mean(task.growth), 0.0)
            last = min(floor.lowest_mean(task.growth, highest=True), 1.0)
            if first >= last:
                return None
            lows, highs = (0.5 + ((v - first) / (last - first) - 0.5) * (1 + room) for v in (lows, highs))
            if ends is None or (lows[0] >= ends[0] and highs[-1] <= ends[1]):
                return masses, lows, highs
            lows, highs = (np.clip(v, *ends) for v in (lows, highs))  # what is at an end stays: others move again
        # A little of two outputs alone, which reach beyond what is asked.
        floor = of_pieces(masses, lows, highs)
        lack = max(floor.lowest_mean(task.growth), 1 - floor.lowest_mean(task.growth, highest=True), 0.0) + room
        low, high = np.append(lows, 0 * lows + lows[0]), np.append(0 * highs + highs[-1], highs)
        least = 1 / (2 + task.growth)
        beyond = np.minimum(-low, high - 1) - (high - low) * least
        k = int(np.argmax(beyond))
        share = min(lack / max(beyond[k], 1e-300), 1.0)
        at = [np.searchsorted(lows, low[k], side="left"), np.searchsorted(highs, high[k], side="right")]
        masses = np.insert((1 - share) * masses, at, share * least)
        return masses, np.insert(lows, at, [low[k], high[k]]), np.insert(highs, at, [low[k], high[k]])

    def _refined(
        self, found: Master, dual: Dual | None, y: np.ndarray, inputs: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Both meshes, halved where int g dm and int (V - J) dlam are largest, there and at the other ends of windows."""
        task, floor = self.task, found.floor
        if dual is None or not np.isfinite(found.attained):
            return task.mirrored(between(y, 1)), task.mirrored(between(inputs, 1))
        shares, program, columns = (0.1, 0.3, 0.5, 0.7, 0.9), dual.program, dual.columns
        points = np.concatenate([y[:-1] + f * np.diff(y) for f in shares])
        g = np.maximum(program.values(points, columns), 0.0).reshape(5, -1)
        heights = np.array([floor.left * (1 - f) + floor.right * f for f in shares])
        over = (g * heights).mean(axis=0) * np.diff(y)
        at = np.maximum(program.values(y, columns), 0.0) * floor.atoms
        over += (at[:-1] + at[1:]) / 2
        under = np.zeros(inputs.size - 1)
        if task.prior is None or task.has_density:
            points = np.sort(np.concatenate([inputs[:-1] + f * np.diff(inputs) for f in shares]))
            losses = floor.values(points, *floor.ends(points, task.cost, task.growth), task.cost, task.growth)
        if task.has_density:  # what other windows than its own prove less for an input
            for (low, high), row in zip(program.layers, dual.densities, strict=True):
                a, b, d = (np.interp(points, program.mesh, v) for v in (low, high, row * task.density(program.mesh)))
                lack = d * (losses - floor.values(points, a, b, task.cost, task.growth))
                under += lack.reshape(-1, 5).mean(axis=1) * np.diff(inputs)
        if task.in_steps:
            middle, inner = (inputs[:-1] + inputs[1:]) / 2, under.copy()
            for knot in task.cost.knots:
                _spread(under, inputs, y - knot, at)
                _spread(over, y, middle + knot, inner)
        elif task.prior is None:
            slack = np.maximum(found.attained - losses, 0.0).reshape(-1, 5).T
            density = sum(dual.densities, np.zeros(inputs.size))
            under = (slack * [density[:-1] * (1 - f) + density[1:] * f for f in shares]).mean(axis=0) * np.diff(inputs)
            x = program.atoms.x
            losses = floor.values(x, *floor.ends(x, task.cost, task.growth), task.cost, task.growth)
            _spread(under, inputs, x, dual.weights * np.maximum(found.attained - losses, 0.0))
        if program.layers and not task.in_steps:
            low, high = program.layers[0]
            middle, inner = (y[:-1] + y[1:]) / 2, (inputs[:-1] + inputs[1:]) / 2
            here, there = over.copy(), under.copy()
            for end in (low, high):
                _spread(under, inputs, np.interp(middle, end, program.mesh), here / 2)
                _spread(over, y, np.interp(inner, program.mesh, end), there / 2)
        if task.has_density or task.places.size:  # best are atoms, where g touches 0
            y, inputs = _finer(y, over, 0.5), _finer(inputs, under, 0.5)
            touching = np.flatnonzero(minima(dual.g) & (dual.g <= 0.05 * dual.value))
            # Where means are exact an atom stands off its point, by as little as the others move the mean.
            close = 0.1 / task.growth if task.cost.tilted and task.places.size else 5e-3 * task.width
            new = dual.outputs[touching]
            new = new[np.unique(np.round(new / close), return_index=True)[1]]
            far = np.abs(new[:, None] - y[None]).min(axis=1) > close
            return task.mirrored(np.union1d(y, new[far])), inputs
        if task.symmetric:
            over, under = over + over[::-1], under + under[::-1]
        lack = max((1 - dual.value / found.attained) / self.run.rtol, 1e-300)
        share = min(0.5 / lack, 0.5)
        least = float(np.clip(SAFE * np.sqrt(lack / self.close), *NEEDED))
        y, inputs = (  # of unbiased mechanisms all lack about as much, and graded meshes only have more cells
            _finer(mesh, weights, share, least, grade=not task.cost.tilted)
            for mesh, weights in ((y, over), (inputs, under))
        )
        return task.mirrored(y), task.mirrored(inputs)


def _levels(table: np.ndarray, shares: np.ndarray) -> np.ndarray:
    """For each row the level to which its entries must be cut so that they sum to this share of what they do."""
    rising, count = np.sort(table, axis=1), table.shape[1]
    below = np.cumsum(rising, axis=1) - rising
    levels = (shares[:, None] * table.sum(axis=1, keepdims=True) - below) / np.arange(count, 0, -1)
    first = np.argmax(levels <= rising, axis=1)
    return np.asarray(levels[np.arange(first.size), first])


def _mirrored(
    masses: np.ndarray, lows: np.ndarray, highs: np.ndarray, task: Task
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pieces on the grid of `task.grid`, exactly symmetric if the problem is."""
    lows, highs = grid(lows), grid(highs)
    if task.symmetric:
        count = masses.size // 2
        last = slice(masses.size - count, None)
        masses[last] = masses[:count][::-1]
        lows[last], highs[last] = 1 - highs[:count][::-1], 1 - lows[:count][::-1]
    return masses, lows, highs


def _spread(target: np.ndarray, mesh: np.ndarray, points: np.ndarray, amounts: np.ndarray) -> None:
    """Add each amount to the cell of its point."""
    np.add.at(target, np.clip(np.searchsorted(mesh, points) - 1, 0, mesh.size - 2), amounts)


def _finer(
    mesh: np.ndarray, weights: np.ndarray, share: float, least: float = GROWS[0], *, grade: bool = False
) -> np.ndarray:
    """The mesh with cells in equal parts, as few as leave this share of the weight.

    The weight of a cell falls with the square of the number of its parts, so that this is best as the weight's cubic root.
    `grade`: cells are not much wider than those before them on the way from the domain's ends inwards, on the scale of that
    way: what is not yet seen there will be where the mesh ends to be fine.
    """
    roots, sizes = np.cbrt(weights), np.diff(mesh)
    inwards = np.abs(0.5 - np.abs(mesh[:-1] + sizes / 2 - 0.5))  # how far cells are from the nearer end
    order = np.argsort(inwards, kind="stable")
    far = inwards[order]
    first, after = np.searchsorted(far, far / BEHIND), np.searchsorted(far, far * (1 + 1e-9), side="right")
    lengths = np.append(0.0, np.cumsum(sizes[order]))

    def parts_of(factor: float) -> np.ndarray:
        parts = np.maximum(np.round(factor * roots), 1.0)
        if grade:
            counts = np.append(0.0, np.cumsum(parts[order]))
            usual = (lengths[after] - lengths[first]) / (counts[after] - counts[first])
            parts[order] = np.maximum(parts[order], np.round(sizes[order] / (STEEPEST * usual)))
        return parts

    low, high = 0.0, 8.0 / max(roots.max(), 1e-300)
    for _ in range(40):
        middle = (low + high) / 2
        parts = parts_of(middle)
        enough = (weights / parts**2).sum() <= share * weights.sum() and parts.sum() > least * parts.size
        enough = enough or parts.sum() > GROWS[1] * parts.size
        low, high = (low, middle) if enough else (middle, high)
    parts = parts_of(low).astype(np.int64)
    return np.unique(np.concatenate([mesh, *(a + (b - a) * np.arange(1, k) / k
                                             for a, b, k in zip(mesh, mesh[1:], parts, strict=False) if k > 1)]))  # fmt: skip


def build_model(
    problem: Problem, y: tuple[float, ...], cuts: tuple[tuple[float, ...], ...], rtol: float
) -> LinearProgram:
    """The last master program: floors on the mesh `y`, from the cuts (inputs, lower and upper ends of favoured outputs) on."""
    task = Task(problem, y)
    program = master.solve(task, np.array(y), Cuts(*map(np.array, cuts)), rtol).program
    program.cost = program.cost * (task.cost.unit / task.scale)  # its optimum is the loss in the problem's own units
    return program

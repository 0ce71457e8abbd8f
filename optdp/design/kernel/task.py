"""The problem as the programs of this package see it: shares of the domain, losses of size 1, symmetry."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from optdp.design.kernel.floor import Cost, Floor, of_pieces
from optdp.exact.enclosures import nearest
from optdp.exact.lattice import Lattice
from optdp.exact.numbers import next_float
from optdp.mechanisms.kernel import KernelMechanism
from optdp.problem.density import Density
from optdp.problem.objectives import Average
from optdp.problem.priors import Prior
from optdp.problem.problem import Problem
from optdp.solvers.lp import LinearSolver

#: Cells of the first mesh for gaps of 1e-3, at least and at most: as 1 over the square root of the gap asked for.
COARSE, LEAST, MOST = 32, 8, 64
#: How many times as many for averages under a density, whose best floors have many atoms; narrower windows take longer with them.
FINER, NARROW = 1.4, 4e-3
#: Inputs that stand for a prior's density.
QUADRATURE = 1024
#: At most so many multiples of a jump of the loss are nodes.
TILES = 64
#: At most so many other places have nodes around them, that are half of this apart.
STOPS, STOP = 32, 1e-6
#: At most so many breaks of a prior's density are nodes.
BREAKS = 128
#: Groups of the latter.
GROUPS = 64


def grid(points: np.ndarray) -> np.ndarray:
    """Rounded to multiples of 2^-52: there 1 - x is exact, and symmetric problems stay symmetric."""
    return np.asarray(np.round(points * 2.0**52) / 2.0**52)


def short(q: Fraction) -> float | Fraction:
    """As a float, if it is one."""
    return float(q) if Fraction(float(q)) == q else q


def between(mesh: np.ndarray, count: int) -> np.ndarray:
    """The mesh with `count` more points in each cell."""
    steps = np.diff(mesh)
    return np.unique(np.concatenate([mesh, *(mesh[:-1] + steps * (k / (count + 1)) for k in range(1, count + 1))]))


@dataclass(frozen=True)
class Task:
    """An interval's problem in shares of its domain.

    `outputs`: nodes of the floor; under a density the inputs of losses that jump lie between those where they do. `fine`: whether
    a narrow gap is asked for, so that programs are large; `solver`, `left`: what solves linear programs, and for how many more
    seconds; `stretch`: see `Cost.of_problem`.
    """

    problem: Problem
    outputs: tuple[float, ...] = ()
    fine: bool = False
    solver: LinearSolver | None = None
    left: Callable[[], float] = lambda: math.inf
    stretch: float = 1.0

    @cached_property
    def cost(self) -> Cost:
        """The loss."""
        return Cost.of_problem(self.problem, self.stretch)

    @property
    def eps(self) -> float:
        return float(self.problem.eps)  # type: ignore[arg-type]

    @cached_property
    def growth(self) -> float:
        """e^eps - 1."""
        return float(np.expm1(self.eps))

    def share(self, point: float | Fraction) -> Fraction:
        """A point of the domain's line as a share of the domain."""
        return (Fraction(point) - Fraction(self.problem.domain.lower)) / self.problem.domain.exact_width

    def point(self, share: float | Fraction) -> Fraction:
        """The inverse."""
        return Fraction(self.problem.domain.lower) + self.problem.domain.exact_width * Fraction(share)

    def read(self, point: Fraction, beyond: bool = False) -> Fraction:
        """The input next to a point of the domain, or the least `beyond` it (2^1024 if none is): a float, or an integer where
        floats are coarser.
        """
        if self.whole:
            return Fraction(math.floor(point) + 1 if beyond else round(point))
        found = next_float(point) if beyond else nearest(point)
        return Fraction(found) if math.isfinite(found) else Fraction(2) ** 1024

    @cached_property
    def whole(self) -> bool:
        """Whether integers that are no floats are inputs, too."""
        ends = self.problem.domain.lower, self.problem.domain.upper
        return Lattice.between(*ends).step > 1 and max(map(abs, ends)) < 2**62

    @cached_property
    def width(self) -> float:
        """The window of the best piecewise mechanism: the scale of everything here, at most 1/2."""
        w = np.geomspace(1e-8, 1.0, 400)
        return float(min(w[np.argmin(self._common(w))], 0.5))

    def _common(self, window: np.ndarray) -> np.ndarray:
        """About the losses of piecewise mechanisms with these windows."""
        t, mass = np.linspace(0.0, 1.0, 65)[1:], 1 / (1 + self.growth * window)
        near = self.cost.of(window[:, None] * t / 2).mean(axis=1)
        return np.asarray(mass * np.mean(self.cost.of(t)) + (1 - mass) * near)

    @cached_property
    def scale(self) -> float:
        """About 1/V: the programs work with values times this."""
        if self.cost.tilted and self.eps < 1:
            return float(4 / (1 + 2 / self.growth) ** 2)
        return 1 / float(self._common(np.array([self.width]))[0])

    @cached_property
    def span(self) -> tuple[float, float]:
        """Where outputs may lie; unbiased: at most, to begin with."""
        low, high = Fraction(0), Fraction(1)
        if self.cost.tilted:
            # Small eps: magnitudes up to coth(tanh(eps/2)) + 1 on [-1, 1] (the closed form); large eps: a few windows.
            reach = (1 / np.tanh(np.tanh(self.eps / 2))) / 2
            far = max(min(reach, 6 * float(np.exp(-self.eps / 3))), 2 / self.growth)
            far *= 2 if isinstance(self.problem.objective, Average) or self.limits else 1
            if self.places.size:  # means of 0 and 1 need little mass there, the less the farther, up to a domain away
                far = max(far, 1.0)
            low, high = -Fraction(math.ceil(far * 2.0**30), 2**30), 1 + Fraction(math.ceil(far * 2.0**30), 2**30)
        if self.problem.outputs is not None:
            least, most = map(self.share, self.problem.outputs)
            if self.cost.tilted:  # means are reached after rounding by outputs that are moved outwards
                room = min(Fraction(2.0**-26), (most - least - 1 - 2 / Fraction(self.growth)) / 8)
                least, most = least + room, most - room
            low, high = max(low, least), min(high, most)
        return _inwards(low, high)

    @cached_property
    def limits(self) -> tuple[float, float] | None:
        """What the problem's limits leave of the grid of meshes and pieces."""
        return _inwards(*map(self.share, self.problem.outputs)) if self.problem.outputs else None

    @cached_property
    def prior(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Inputs and weights that the average is designed for; None for the worst case."""
        objective = self.problem.objective
        if not isinstance(objective, Average):
            return None
        if isinstance(objective.prior, Prior):
            points = np.array([float(self.share(p)) for p in objective.prior.categories])
            order = np.argsort(points)
            return points[order], np.array([float(c) for c in objective.prior.exact])[order]
        ends, near = np.linspace(0.0, 1.0, QUADRATURE + 1), 8 / QUADRATURE
        if self.width < near:  # finer, and towards the ends, as the floor is
            ends = between(ends, 1)
            layer = np.geomspace(self.width / 24, near, GROUPS)
            ends = np.unique(np.concatenate([ends, layer, 1 - layer]))
        if self.jumps and self.outputs:
            steps = np.clip(np.subtract.outer([*self.span, *self.outputs], (0.0, *self.cost.knots)), 0.0, 1.0)
            ends = np.unique(steps if self.in_steps else np.append(ends, steps))
            ends = np.append(ends[:-1][np.diff(ends) > 1e-12], 1.0)
        weights = self.masses(ends)
        keep = weights > 0
        return ((ends[:-1] + ends[1:]) / 2)[keep], weights[keep]

    @cached_property
    def places(self) -> np.ndarray:
        """The points of a prior of finitely many."""
        return np.empty(0) if self.prior is None or self.has_density else self.prior[0]

    @cached_property
    def groups(self) -> np.ndarray:
        """For each input of `prior` the number of its group: inputs that stand for a density share their cuts with neighbours."""
        assert self.prior is not None
        points = self.prior[0]
        if not self.has_density:
            return np.arange(points.size)
        return np.unique(np.floor(points * GROUPS), return_inverse=True)[1]

    @cached_property
    def has_density(self) -> bool:
        """Whether the average is under a density."""
        objective = self.problem.objective
        return isinstance(objective, Average) and not isinstance(objective.prior, Prior)

    @property
    def jumps(self) -> bool:
        """Whether it is of a loss that jumps."""
        return self.has_density and bool(self.cost.jumps)

    @cached_property
    def in_steps(self) -> bool:
        """Whether it is of a loss in steps."""
        return self.jumps and self.cost.flat

    @property
    def smooth(self) -> bool:
        """Whether it is of a loss that is not in steps, and means are free: its proofs are thresholds alone."""
        return self.has_density and not self.in_steps and not self.cost.tilted

    def density(self, x: np.ndarray) -> Any:
        """The prior's density per share of the domain, or 1 for other objectives."""
        prior, domain = getattr(self.problem.objective, "prior", None), self.problem.domain
        return float(domain.width) * prior(domain.lower + domain.width * x) if isinstance(prior, Density) else 1.0

    def masses(self, ends: np.ndarray) -> np.ndarray:
        """The prior's masses between neighbouring shares."""
        prior, domain = self.problem.objective.prior, self.problem.domain
        if isinstance(prior, Density):
            return prior.masses(Fraction(domain.lower) + domain.exact_width * Fraction(v) for v in ends)
        return np.diff(ends)

    @cached_property
    def symmetric(self) -> bool:
        """Whether x -> 1 - x maps the problem to itself, so that half of the unknowns will do."""
        low, high = self.span
        even = self.cost.slopes[0] == -self.cost.slopes[1] and low == 1 - high
        return even and self.prior is None

    def mechanism(
        self, lows: np.ndarray, highs: np.ndarray, masses: np.ndarray | None = None, *, window: float | None = None
    ) -> KernelMechanism:  # fmt: skip
        """The mechanism with these pieces of a floor (`masses`: alike), its windows what rows lack to mass 1, or this share."""
        masses = np.ones(lows.size) if masses is None else masses
        if window is None:
            window = of_pieces(masses, lows, highs).window(self.growth) / masses.sum()
        return KernelMechanism.private(
            self.problem.eps, masses, lows, highs, window, self.problem.domain,  # type: ignore[arg-type]
            "mean" if self.cost.tilted else "ends", self.cost.share,
        )  # fmt: skip

    def losses(self, floor: Floor, inner: int, most: float = np.inf) -> tuple[np.ndarray, ...]:
        """Inputs that matter with the ends of their windows and their losses (see `Floor.worst`)."""
        if self.prior is None:
            return floor.worst(self.cost, self.growth, inner, self.half, most)
        x = self.prior[0]
        a, b = floor.ends(x, self.cost, self.growth)
        return x, a, b, floor.values(x, a, b, self.cost, self.growth, most)

    def overall(self, losses: np.ndarray) -> float:
        """The largest or the average loss of these inputs."""
        return float(losses.max() if self.prior is None else losses @ self.prior[1])

    @property
    def half(self) -> float:
        """The largest input that must be looked at."""
        return 0.5 if self.symmetric else 1.0

    def mirrored(self, mesh: np.ndarray) -> np.ndarray:
        """The mesh on the grid, with each node's mirror image if the problem is symmetric."""
        mesh = np.unique(grid(np.minimum(mesh, 1 - mesh) if self.symmetric else mesh))
        mesh = mesh[np.append(np.diff(mesh) > 1e-13, True)]
        return np.unique(np.concatenate([mesh, 1 - mesh])) if self.symmetric else mesh

    @property
    def tiles(self) -> np.ndarray:
        """Where outputs and inputs stand that are as far from the ends or each other as the loss stays low.

        Nodes that are multiples only after rounding are moved together by more than that: else an input falls between two.
        """
        out: list[np.ndarray] = [np.empty(0)]
        for jump in self.cost.jumps:
            count = int(min(1 / jump, TILES))
            exact = count * Fraction(jump) * 2**52 % 1 == 0
            tiles = np.arange(1, count + 1) * (jump if exact else jump * (1 - 2.0**-30))
            out += [tiles, 1 - tiles]
        return np.concatenate(out)

    def _stops(self) -> np.ndarray:
        """Nodes around each place to which jumps up and down lead from the domain's ends: best floors and priors jump there."""
        places = [0.0, 1.0]
        for at in places:  # which grow
            for step in (*self.cost.jumps, *(-jump for jump in self.cost.jumps)):
                new = 0 <= at + step <= 1 and min(abs(at + step - place) for place in places) > STOP
                places += [at + step] * (new and len(places) < STOPS)
        nodes = np.add.outer(places, [-STOP / 4, 0.0, STOP / 4]).ravel()
        return nodes[(nodes > 0) & (nodes < 1)]

    def _breaks(self) -> np.ndarray:
        """Where the prior's density may jump or bend, which integrals over cells do not see; of very many every few."""
        if not self.has_density:
            return np.empty(0)
        pieces = self.problem.objective.density(self.problem.domain)
        starts = [start for start, *_ in pieces[:: len(pieces) // BREAKS + 1]]
        return np.array([float(place) for place in (*starts, pieces[-1][1])])  # it need not cover the domain

    def meshes(self, rtol: float) -> tuple[np.ndarray, np.ndarray]:
        """Nodes of the first floor and of the first prior: even, and finer towards the ends on the scale of a window."""
        finer = FINER if self.smooth and NARROW < self.width < 2 / COARSE else 1.0
        cells = int(np.clip(COARSE * np.sqrt(1e-3 / rtol) * finer, LEAST, MOST))
        w, even = self.width, np.linspace(0.0, 1.0, cells + 1)
        tiles = self.tiles
        if w < 0.3:
            layer = np.geomspace(w / 6, max(6 * w, 3 / cells), 14)
            layer = layer[layer < 0.5]
            even = np.unique(np.concatenate([even, layer, 1 - layer]))
            keep = np.append(True, np.diff(even) > w / 20)
            even = even[keep | (even == 1.0)]
        if self.prior is None and self.cost.jumps:
            even = np.union1d(even, self._stops())
        inputs = self.mirrored(np.concatenate([even, self._breaks(), *([tiles] if self.in_steps else [])]))
        if self.in_steps:
            inputs = np.append(inputs[:-1][np.diff(inputs) > 2.0**-20], 1.0)
        low, high = self.span
        if not self.cost.tilted:
            y = np.union1d(even, tiles)
            y = y[(y > low) & (y < high)]
            return self.mirrored(np.concatenate([y, [low, high]])), inputs
        if self.eps < 1 and self.problem.outputs is None and self.prior is None:
            # Two clusters around 1/2 -+ coth(tanh(eps/2))/2, as wide as the domain.
            off = 1 / np.tanh(np.tanh(self.eps / 2)) / 2
            left = np.concatenate([0.5 - off + np.linspace(-0.5, 0.5, 25), np.linspace(-off, 0.0, 5)[:-1]])
            return self.mirrored(np.concatenate([even, left, 1 - left])), inputs
        beyond = np.concatenate([np.linspace(low, 0.0, 13)[:-1], np.linspace(1.0, high, 13)[1:]])
        return self.mirrored(np.concatenate([even[(even > low) & (even < high)], beyond])), inputs


def _inwards(low: Fraction, high: Fraction) -> tuple[float, float]:
    """Both ends moved inwards to the grid."""
    return math.ceil(low * 2**52) / 2**52, math.floor(high * 2**52) / 2**52


@dataclass(frozen=True)
class Fold:
    """Symmetric vectors over a mesh by their first half; or all of them, if nothing is symmetric."""

    size: int
    symmetric: bool

    @cached_property
    def count(self) -> int:
        """Unknowns for each vector."""
        return (self.size + 1) // 2 if self.symmetric else self.size

    def rows(self, table: np.ndarray) -> np.ndarray:
        """Coefficients of the unknowns, from those of all entries."""
        if not self.symmetric:
            return table
        other = table[:, ::-1][:, : self.count].copy()
        other[:, self.size // 2 :] = 0.0  # the middle is its own image
        return np.asarray(table[:, : self.count] + other)

    def full(self, half: np.ndarray) -> np.ndarray:
        """All entries, from the unknowns."""
        if not self.symmetric:
            return half
        return np.concatenate([half, half[: self.size - self.count][::-1]])

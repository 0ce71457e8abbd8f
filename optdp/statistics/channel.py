"""A mechanism as a matrix: the probabilities of finitely many cells of outputs, for inputs that are asked for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache, wraps
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.mechanisms.base import Mechanism
from optdp.problem import Alphabet, Circle, places, symbol_array

#: Cells of the outputs' continuous part, and points at which the density is averaged in each.
CELLS, POINTS = 256, 64
#: Densities are evaluated in blocks of this size: small enough for the cache, and for any memory.
BLOCK = 2**17
#: Outputs that are drawn once for a mechanism: cells are narrow where there are many, and hold the atoms among them.
DRAWS = 20_000
#: Inputs in all bins of a distribution.
INPUTS = 4096
#: So many of them at a time.
AT_ONCE = 256
#: Cells of the outputs for the mean: an average loses little by them.
MEAN_CELLS = 128
#: Floats in a domain for which there are tables: with fewer, what is sent is too far from where a density says that it is. For
#: surveys that are planned, of any size, `FLOATS`.
FEW, FLOATS = 2**16, 2**20

#: Of domains for which mechanisms are compared.
WIDTHS = 1e-90, 1e90


def few_floats(domain: Any, least: int = FEW) -> bool:
    """Whether there are fewer between the ends."""
    return bool(domain.upper - domain.lower < least * math.ulp(max(abs(domain.lower), abs(domain.upper))))


def refuse_few_floats(name: str, domain: Any, least: int = FEW) -> None:
    """**Raises** ValueError, naming the argument, where floats are too coarse for estimates."""
    if few_floats(domain, least):
        step = math.ulp(max(abs(domain.lower), abs(domain.upper)))
        raise ValueError(
            f"{name} is not allowed: floats of this size are up to {step:g} apart, and fewer than {least} are in {domain}, too "
            f"few for estimates; subtract {domain.lower!r} from the numbers"
        )


def refuse_width(name: str, domain: Any) -> None:
    """**Raises** ValueError, naming the argument, where squares of errors, or cubes, would be no floats."""
    if not WIDTHS[0] <= domain.upper - domain.lower <= WIDTHS[1]:
        allowed = f"the width of {domain} must lie in [{WIDTHS[0]:g}, {WIDTHS[1]:g}]; use other units"
        raise ValueError(f"{name} is not allowed: {allowed}")


def kept(function: Any) -> Any:
    """A function of a mechanism, or of a channel, that remembers its last results, if all arguments can be hashed."""
    remembered = lru_cache(maxsize=64)(function)

    @wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            hash(arguments)
        except TypeError:
            return function(*arguments)
        return remembered(*arguments)

    return call


@dataclass(frozen=True, eq=False)
class Channel:
    """The outputs of a mechanism in cells: its atoms, cells of its range where it has a density, and a rest.

    - `atoms`: outputs of positive probability; `edges`: ends of the cells of the continuous part, empty if there is none;
      `scale`: 0, or, where outputs are unbounded, the s for which edges are those of t in y = middle + s t/(1 - t^2).
    - `rest`: whether a last cell stands for all other outputs of a discrete mechanism that has infinitely many.
    - `fixed`: whether the cells are the same whatever the outputs are: not for integers, whose domain has no ends.

    Continuous outputs are only known by their cell, which costs little: 256 cells.
    """

    mechanism: Mechanism
    atoms: Any
    edges: np.ndarray
    middle: float
    scale: float
    rest: bool

    def __hash__(self) -> int:
        if not self.fixed:
            raise TypeError("a channel for these outputs is not asked for again")
        return id(self)

    @classmethod
    def of(cls, mechanism: Mechanism, outputs: ArrayLike = (), span: tuple[float, float] | None = None) -> Channel:
        """**Arguments:** `outputs`: some that occurred, where the domain has no ends; `span`: of the inputs, there."""
        found: Channel = _made(mechanism, CELLS, span)
        return found if found.fixed or not np.size(outputs) else cls._of(mechanism, outputs, span, CELLS)

    @classmethod
    def coarse(cls, mechanism: Mechanism) -> Channel:
        """With fewer cells: for the mean."""
        found: Channel = _made(mechanism, MEAN_CELLS, None)
        return found

    @classmethod
    def _of(cls, mechanism: Mechanism, outputs: ArrayLike, span: tuple[float, float] | None, cells: int) -> Channel:
        atoms, none = mechanism.atoms(), np.empty(0)
        if isinstance(mechanism.domain, Alphabet):
            return cls(mechanism, atoms, none, 0.0, 0.0, False)
        atoms = np.asarray(atoms, dtype=float)
        low, high = mechanism.support()
        first, last = (mechanism.domain.lower, mechanism.domain.upper) if span is None else span
        finite = np.isfinite(first) and np.isfinite(last)
        middle = (first + last) / 2 if finite else 0.0
        if span is not None:
            low, high = (mechanism.support(np.array([x]))[k] for k, x in enumerate(span))
            middle = float(np.round(middle)) if mechanism.domain.tag == "integers" else middle
        if type(mechanism).density is not Mechanism.density and _continuous(mechanism, low, high, middle):
            if span is not None:  # narrow noise on a wide span
                noise = float(np.sqrt(np.max(mechanism.variance(np.array(span)))))
                cells = int(np.clip(16 * (last - first) / noise, cells, 16 * cells))
            scale = 0.0
            if not (np.isfinite(low) and np.isfinite(high)):
                inputs = [first, last] if finite else [-1.0, 1.0]
                spread = float(np.sqrt(np.max(mechanism.variance(np.array(inputs)))))
                low, high, scale = -1.0, 1.0, max(spread, (last - first) if finite else 0.0)
            edges = np.linspace(low, high, cells + 1)
            if finite:
                edges = _graded(mechanism, np.linspace(first, last, DRAWS), low, high, cells, middle, scale)
            return cls(mechanism, atoms, edges, middle, scale, False)
        known = np.asarray(outputs, dtype=float).reshape(-1)
        if finite and span is None:  # the same cells whatever the outputs are
            known = mechanism.randomize(np.linspace(first, last, DRAWS), np.random.default_rng(0))
        probes = np.array([first, middle, last] if finite else [0.0])
        if span is not None and mechanism.domain.tag == "integers":  # all of the span, and as far as the noise reaches
            reach = 12 * float(np.sqrt(np.max(mechanism.variance(np.array(span))))) + 1
            known = np.concatenate([known, np.arange(np.floor(first - reach), np.ceil(last + reach) + 1)[: 2**16]])
        far = known[np.isfinite(known)]
        far = np.unique(far[_nearest(atoms, far)[1] > 0]) if atoms.size else np.unique(far)
        if span is None:
            found = far[(mechanism.probability(far[:, None], probes) > 0).any(axis=1)] if far.size else far
        else:  # bounded noise may be less than these inputs are apart
            found = far[(low <= far) & (far <= high)]
        atoms = np.unique(np.concatenate([atoms, found]))
        left = 1 - mechanism.probability(atoms[:, None], probes).sum(axis=0)
        return cls(mechanism, atoms, none, middle, 0.0, bool(left.max() > 1e-9))

    @property
    def cells(self) -> int:
        """How many cells there are: those of the density, the atoms, the rest."""
        return max(self.edges.size - 1, 0) + len(self.atoms) + self.rest

    @property
    def fixed(self) -> bool:
        """See above."""
        return self.edges.size > 0 or bool(np.isfinite(getattr(self.mechanism.domain, "lower", 0.0)))

    def same(self, other: Channel) -> bool:
        """Whether another channel of the mechanism has the same cells."""
        return self is other or (
            self.cells == other.cells
            and np.array_equal(self.edges, other.edges)
            and np.array_equal(self.atoms, other.atoms)
        )

    def matrix(self, inputs: ArrayLike) -> np.ndarray:
        """P(cell | input), shape (cells, inputs).

        **Raises** ValueError if density and probabilities do not add up to 1, or describe what is sent, a float, too badly.
        """
        x = np.asarray(inputs)
        if self.edges.size:
            refuse_few_floats("mechanism", self.mechanism.domain)
        parts = [self._between(x)] if self.edges.size else []
        if len(self.atoms):
            parts.append(np.asarray(self.mechanism.probability(self.atoms[:, None], x[None, :]), dtype=float))
        found = np.concatenate(parts)
        total = found.sum(axis=0)
        if self.rest:
            return np.concatenate([found, np.maximum(1 - total, 0.0)[None]])
        if np.abs(total - 1).max() > 0.03:
            worst = total[np.argmax(np.abs(total - 1))]
            told = f"density and probability of {type(self.mechanism).__name__} add up to {worst:.6g} instead of 1"
            raise ValueError(f"{told}: correct them, or define `cumulative` if the density is narrow")
        return np.asarray(found / total)

    def _between(self, x: np.ndarray) -> np.ndarray:
        """P(cell | input) of the continuous part; windows, and the pieces of kernels, may be much narrower than a cell."""
        mechanism, inner = self.mechanism, self.edges[1:-1, None]
        if self.scale:
            inner = self.middle + self.scale * inner / (1 - inner * inner)
        try:
            below = mechanism.cumulative(inner, x[None, :])
        except TypeError:
            return self._quadrature(x)
        atoms = np.asarray(self.atoms)
        at = _compact(atoms, self.middle, self.scale) if self.scale else atoms
        side: Any = "left"
        if mechanism.adds_noise:  # which may be exactly 0: cells hold their left ends
            below, side = below - mechanism.probability(inner, x[None, :]), "right"
        parts = np.diff(below, axis=0, prepend=0.0, append=1.0)
        cells = np.clip(np.searchsorted(self.edges, at, side=side) - 1, 0, len(parts) - 1)
        held = (self.edges[0] <= at) & (at <= self.edges[-1])
        for cell, atom in zip(cells[held].tolist(), atoms[held].tolist(), strict=True):  # they are cells of their own
            parts[cell] -= mechanism.probability(atom, x)
        return np.asarray(np.maximum(parts, 0.0))

    def _quadrature(self, x: np.ndarray) -> np.ndarray:
        """The same from the density alone."""
        y, weight = self._nodes()
        each, parts = max(1, BLOCK // y.size), []
        for i in range(0, x.size, each):
            values = self.mechanism.density(y[:, None], x[None, i : i + each]) * weight[:, None]
            parts.append(values.reshape(self.edges.size - 1, POINTS, -1).sum(axis=1))
        return np.concatenate(parts, axis=1)

    def _nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """Points in the cells, and what each counts in an integral."""
        ends, share = self.edges, (np.arange(POINTS) + 0.5) / POINTS
        t = (ends[:-1, None] + share * np.diff(ends)[:, None]).reshape(-1)
        weight = np.repeat(np.diff(ends) / POINTS, POINTS)
        if not self.scale:
            return t, weight
        return self.middle + self.scale * t / (1 - t * t), weight * self.scale * (1 + t * t) / (1 - t * t) ** 2

    def place(self, outputs: ArrayLike) -> np.ndarray:
        """The cell of each output. **Raises** ValueError for outputs that the mechanism does not send."""
        refusal = "outputs are not allowed: there must be at least one, all of them outputs of this mechanism"
        if isinstance(self.mechanism.domain, Alphabet):
            raw = symbol_array(outputs, ()).reshape(-1)
            found = places(tuple(np.asarray(self.atoms, dtype=object).tolist()), raw)
            if not raw.size or (found < 0).any():
                raise ValueError(refusal)
            return found
        raw = np.asarray(outputs)
        if raw.dtype.kind not in "iuf":
            raise TypeError(f"outputs are of type {raw.dtype}, which is not allowed: they must be real numbers")
        y = raw.reshape(-1).astype(float)
        first = max(self.edges.size - 1, 0)
        if not y.size or not np.isfinite(y).all():
            raise ValueError(refusal)
        if first:
            width = self.edges[-1] - self.edges[0]
            if not self.scale and (y.min() < self.edges[0] - 1e-9 * width or y.max() > self.edges[-1] + 1e-9 * width):
                raise ValueError(refusal)
            cell = self._cell(y)
        else:
            cell = np.full(y.size, self.cells - 1 if self.rest else -1)
        if len(self.atoms):
            near, off = _nearest(self.atoms, y)
            cell = np.where(off == 0 if first else off <= 1e-9 * self._reach, first + near, cell)
        if (cell < 0).any():
            raise ValueError(refusal)
        return np.asarray(cell)

    def _cell(self, y: np.ndarray) -> np.ndarray:
        """The cell of the continuous part that holds y."""
        t = _compact(y, self.middle, self.scale) if self.scale else y
        return np.clip(np.searchsorted(self.edges, t, side="right") - 1, 0, self.edges.size - 2)

    @property
    def _reach(self) -> float:
        """The size of the atoms: files may have rounded them."""
        return float(np.ptp(self.atoms) or np.abs(self.atoms).max() or 1.0)

    def counts(self, outputs: ArrayLike) -> np.ndarray:
        """How many outputs lie in each cell."""
        return np.bincount(self.place(outputs), minlength=self.cells)


@kept
def _made(mechanism: Mechanism, cells: int, span: tuple[float, float] | None) -> Channel:
    return Channel._of(mechanism, (), span, cells)


def _compact(y: np.ndarray, middle: float, scale: float) -> np.ndarray:
    """The t in (-1, 1) with y = middle + scale t/(1 - t^2)."""
    z = (y - middle) / scale
    return np.asarray(2 * z / (1 + np.sqrt(1 + 4 * z * z)))


def _graded(
    mechanism: Mechanism, inputs: np.ndarray, low: float, high: float, cells: int, middle: float, scale: float
) -> np.ndarray:  # fmt: skip
    """Half of the cells of one width, half of one probability: densities may have narrow peaks."""
    drawn = mechanism.randomize(inputs, np.random.default_rng(0))
    if scale:
        drawn = _compact(drawn, middle, scale)
    ends = np.concatenate(
        [np.linspace(low, high, cells // 2 + 1), np.quantile(drawn, np.linspace(0, 1, cells // 2 + 1)[1:-1])]
    )
    ends = np.unique(ends)
    return ends[np.concatenate([np.diff(ends) > 1e-9 * (high - low), [True]])]


def _continuous(mechanism: Mechanism, low: float, high: float, middle: float) -> bool:
    """Whether there is a density at all, not merely a method for one."""
    reach = 1.0
    if not (np.isfinite(low) and np.isfinite(high)):  # as far as noise reaches, in whatever units
        reach = float(np.sqrt(mechanism.variance(mechanism.domain.check(middle))))
    ends = (low if np.isfinite(low) else middle - reach), (high if np.isfinite(high) else middle + reach)
    inner = np.linspace(*ends, 66)[1:-1]
    return bool((mechanism.density(inner, mechanism.domain.check(middle)) > 0).any())


def _nearest(atoms: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(place of the nearest of the sorted atoms, distance to it)."""
    right = np.clip(np.searchsorted(atoms, y), 0, atoms.size - 1)
    left = np.maximum(right - 1, 0)
    near = np.where(np.abs(atoms[left] - y) <= np.abs(atoms[right] - y), left, right)
    return near, np.abs(atoms[near] - y)


def integers(domain: Any, edges: np.ndarray) -> list[np.ndarray]:
    """Those of the domain in each bin: bins hold their left ends, the last one both. **Raises** ValueError where one has none."""
    inside = [np.arange(np.ceil(a), np.ceil(b)) for a, b in pairwise(edges)]
    inside[-1] = np.arange(np.ceil(edges[-2]), np.floor(min(edges[-1], domain.upper)) + 1)
    if not all(part.size for part in inside):
        raise ValueError("bins are not allowed here: each must hold an integer")
    return inside


@kept
def mixed(channel: Channel, edges: ArrayLike, whole: bool = False) -> np.ndarray:
    """P(cell | input spread evenly over the bin), shape (cells, bins), for bins between `edges` of the domain; `whole`: over the
    integers in it.

    Inputs are many in each cell of the outputs: what narrow windows send is elsewhere for each of them.
    """
    domain, edges = channel.mechanism.domain, np.asarray(edges)
    if whole or domain.tag == "integers":
        return np.stack([channel.matrix(part).mean(axis=1) for part in integers(domain, edges)], axis=1)
    refuse_few_floats("mechanism", domain)  # inputs that are spread evenly are elsewhere when read as floats
    points = -(-INPUTS // (edges.size - 1))
    share = (np.arange(points) + 0.5) / points
    x = (edges[:-1, None] + share * np.diff(edges)[:, None]).reshape(-1)
    if isinstance(domain, Circle):
        x = domain.lower + np.mod(x - domain.lower, domain.period)
    step = points * max(1, AT_ONCE // points)
    blocks = [channel.matrix(x[i : i + step]) for i in range(0, x.size, step)]
    return np.concatenate([block.reshape(len(block), -1, points).mean(axis=2) for block in blocks], axis=1)

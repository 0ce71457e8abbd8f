"""Means of numbers, directions and vectors, for `optdp.estimate`.

Where E[Y | x] is affine the outputs' average is corrected for it; functions of the output with less variance are better where
they are nearly unbiased, and their bias is added to the interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from optdp.exact import require
from optdp.mechanisms.base import Mechanism
from optdp.problem import Ball, Box, Interval, Sphere
from optdp.statistics.channel import Channel, few_floats, kept, refuse_few_floats
from optdp.statistics.intervals import BOUNDED, FEW, RARE, UNSEEN, bounded, reach, two_sided, unseen
from optdp.statistics.likelihood import maximise
from optdp.statistics.result import POPULATION, Ask, Estimate, NotIdentified
from optdp.statistics.tally import Data, Moments

#: Widths of domains on whose means there are estimates: third powers of outputs are floats.
LEAST, MOST = 1e-100, 1e100
#: Inputs at which the mean's estimator is fitted, bins of the distribution for which it is best, inputs at which it is checked: a
#: prime number, so that they lie everywhere between those of the fit, where the bias is largest.
GRID, BASIS, CHECKED = 257, 16, 2039
#: Functions of the output whose mean is the input up to this share of the domain's width identify the mean.
ACCURATE = 2e-3
NORMAL = "the average is normally distributed: it is not where a few inputs, which have no ends here, lie far from the others"


@kept
def affine_mean(mechanism: Mechanism) -> tuple[float, float] | None:
    """(a, b) if E[Y | x] = a + b x with b != 0 at every x tried, else None."""
    domain = mechanism.domain
    finite = np.isfinite(domain.lower)
    if few_floats(domain):  # means of floats are none, and those of biased mechanisms may be rounded to the inputs
        return (0.0, 1.0) if mechanism.check_unbiased().passed else None
    x = np.linspace(domain.lower, domain.upper, 129) if finite else np.arange(-64.0, 65.0)
    means = np.asarray(mechanism.mean(x))
    slope = (means[-1] - means[0]) / (x[-1] - x[0])
    off = np.abs(means - means[0] - slope * (x - x[0])).max()
    if not abs(slope) > 1e-9 or off > 1e-9 * abs(slope) * (x[-1] - x[0]):
        return None
    return float(means[0] - slope * x[0]), float(slope)


def mean_of_numbers(mechanism: Mechanism, data: Data, ask: Ask) -> Estimate:
    """The corrected average where E[Y | x] is affine, or the average of a better function of the output."""
    line, domain = affine_mean(mechanism), mechanism.domain
    if np.isfinite(domain.lower) and not LEAST <= domain.upper - domain.lower <= MOST:
        raise ValueError(f"what = 'mean' is not allowed on {domain}: its width must lie in [{LEAST}, {MOST}]")
    if not isinstance(domain, Interval) or Channel.coarse(mechanism).rest:
        if line is None:
            if isinstance(domain, Interval):
                refuse_few_floats("mechanism", domain)  # a density between two floats is seen nowhere
            raise NotIdentified("the mean is not identified: E[Y | x] is not affine in the input")
        return _corrected(mechanism, data, ask, line, _noise(mechanism))
    if line is not None and few_floats(domain):
        return _corrected(mechanism, data, ask, line, _noise(mechanism))  # tables need inputs between the floats
    tables, counts = mean_tables(mechanism), data.counts(Channel.coarse(mechanism))
    n = int(counts.sum())
    shares, cells = tables.fitted(counts)
    found = tables.function(cells, n)
    if line is None:
        # By the mechanism and n alone: of answers that outputs choose, intervals would hold the truth less often.
        even = tables.function(tables.blocks.mean(axis=1), n)
        if even.bias > max(even.error(n), ACCURATE * (domain.upper - domain.lower)):
            raise NotIdentified(
                "the mean is not identified: no function of the output that was tried has the input as its mean. The one for "
                f"{n} outputs misses it by up to {even.bias:.3g}, more than its standard error {even.error(n):.3g}; "
                "use an unbiased mechanism"
            )
    elif found.bias > found.error(n) or not found.variance < 0.98 * tables.plain_variance(shares, line):
        return _corrected(mechanism, data, ask, line, (tables.inputs, tables.variances))
    g = found.function
    method = "average of the function of the output with the least variance"
    noise = tables.inputs, output_variances(g, tables.matrix)
    ends = float(g.min()), float(g.max())
    return _average(Moments.of(g, counts), mechanism, ask, method, found.bias, ends, noise)


@kept
def _noise(mechanism: Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """(inputs, Var[Y | x] at them)."""
    low, high = mechanism.domain.lower, mechanism.domain.upper
    x = np.linspace(low, high, GRID)[::4] if np.isfinite(high - low) else np.zeros(1)
    return x, np.asarray(mechanism.variance(x))


def _corrected(mechanism: Mechanism, data: Data, ask: Ask, line: tuple[float, float], noise: Any) -> Estimate:
    """The average of (y - a)/b."""
    (n, mean, squares, cubes), (a, b) = data.moments(), line
    same = abs(a) < 1e-9 and abs(b - 1) < 1e-9
    method = "average of the outputs" + ("" if same else f", corrected for E[Y | x] = {a:.6g} + {b:.6g} x")
    first, last = sorted((end - a) / b for end in mechanism.support())
    told = Moments(n, (mean - a) / b, squares / b**2, cubes / b**3)
    return _average(told, mechanism, ask, method, 0.0, (first, last), (noise[0], noise[1] / b**2))


def _average(
    moments: Moments, mechanism: Mechanism, ask: Ask, method: str, bias: float, ends: tuple[float, float],
    noise: tuple[np.ndarray, np.ndarray],
) -> Estimate:  # fmt: skip
    """**Arguments:** `moments`: of the numbers whose average is the estimate; `ends`: between which they lie; `noise`: inputs,
    and the variance of one of these numbers at each.

    The interval holds the means x that are at most t standard errors away with the variance of people who all have the input x,
    and what `reach` says.
    """
    (n, value, squares, cubes), domain, (x, least) = moments, mechanism.domain, noise
    value = float(np.clip(value, domain.lower, domain.upper))
    spread = squares / (n - 1) if n > 1 else math.inf
    error = math.sqrt(max(spread, np.interp(value, x, least)) / n)
    t = two_sided(ask.level, n)
    told = POPULATION.format("mean")
    if n < FEW and np.isfinite(ends).all():
        method += f"; {BOUNDED}"
        low, high = map(float, bounded(value, n, ends, ask.level))
    elif x.size == 1:
        low, high = (value + s * t * error for s in (-1, 1))
        told += f"; {NORMAL}"
    else:
        half = t * np.sqrt(least / n)
        noisy = value - _lowest(x, value - x - half), -_lowest(-x[::-1], (x - value - half)[::-1]) - value
        below, above = reach(n, value, squares, cubes, error, domain_ends(mechanism), ask.level)
        low, high = value - max(noisy[0], float(below)), value + max(noisy[1], float(above))
    # The average itself may lie between two floats.
    ends = (math.nextafter(low - bias, -math.inf), math.nextafter(high + bias, math.inf))
    low, high = (float(np.clip(v, domain.lower, domain.upper)) for v in ends)
    told += f"; the interval allows for a bias of {bias:.2g}" if bias else ""
    return ask.answer(n, method, told, value, error, (low, high), (low, high))


def _last(rejected: Callable[[np.ndarray], np.ndarray]) -> float:
    """An angle beyond which all up to a quarter turn are rejected, by 1e-9 of it too large at most; 0 is not rejected."""
    inner, outer, shares = 0.0, np.pi / 2, np.concatenate([[0.0], np.geomspace(1e-9, 1.0, 257)])
    while outer - inner > 1e-9 * outer:
        nodes = inner + (outer - inner) * shares
        last = int(np.flatnonzero(~rejected(nodes)).max(initial=0))
        if last == nodes.size - 1:
            return outer
        inner, outer = float(nodes[last]), float(nodes[last + 1])
    return outer


@kept
def direction_noise(mechanism: Mechanism) -> tuple[float, float]:
    """E sin^2 and |E cos| of the angle between input and output."""
    domain: Any = mechanism.domain
    turn, x = 2 * np.pi / domain.period, np.array([domain.start + domain.period / 2])
    least = mechanism._expectation(x, lambda point, y: np.sin(turn * (y - point)) ** 2)
    length = mechanism._expectation(x, lambda point, y: np.cos(turn * (y - point)))
    return float(least[0]), abs(float(length[0]))


def domain_ends(mechanism: Any) -> tuple[Any, Any]:
    """Between which numbers an input lies, or each coordinate of one."""
    domain = (mechanism if isinstance(mechanism, Mechanism) else mechanism.mechanism).domain
    if isinstance(domain, Box):
        return np.array(domain.lower), np.array(domain.upper)
    return (-1.0, 1.0) if isinstance(domain, Sphere | Ball) else (domain.lower, domain.upper)


def _lowest(x: np.ndarray, excess: np.ndarray) -> float:
    """Where `excess` is first at most 0, by linear interpolation."""
    k = int(np.argmax(excess <= 0))
    return float(x[k] if k == 0 else x[k] - (x[k] - x[k - 1]) * excess[k] / (excess[k] - excess[k - 1]))


@dataclass(frozen=True)
class MeanFunction:
    """A function of the output (by cells) whose mean is the input up to `bias`; its variance under the fitted distribution."""

    function: np.ndarray
    bias: float
    variance: float

    def error(self, n: int) -> float:
        """The standard error of the average of n."""
        return math.sqrt(self.variance / n)

    def interval(self, n: int) -> float:
        """Half the length of a 95 % interval from so many."""
        return 1.96 * self.error(n) + self.bias


@dataclass(frozen=True)
class MeanTables:
    """What estimates of a mean need of a mechanism on an interval, whatever the outputs.

    - `inputs`, `matrix`: a grid of inputs, and P(cell | input); `between`, `elsewhere`: other inputs, and the same.
    - `blocks`: P(cell | inputs spread over each of 16 bins); `means`, `variances`: E[Y | x] and Var[Y | x] on the grid.
    """

    inputs: np.ndarray
    matrix: np.ndarray
    between: np.ndarray
    elsewhere: np.ndarray
    means: np.ndarray
    variances: np.ndarray

    @cached_property
    def gram(self) -> np.ndarray:
        """The matrix times its transpose."""
        return np.asarray(self.matrix @ self.matrix.T)

    @cached_property
    def moments(self) -> np.ndarray:
        """The matrix times the inputs, centred."""
        return np.asarray(self.matrix @ (self.inputs - self.inputs.mean()))

    @cached_property
    def blocks(self) -> np.ndarray:
        """P(cell | inputs spread evenly over each of 16 bins)."""
        return np.stack([part.mean(axis=1) for part in np.array_split(self.matrix, BASIS, axis=1)], axis=1)

    def fitted(self, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(probabilities of the inputs of the grid, the outputs' distribution), fitted by maximum likelihood over the 16 bins;
        equal ones for few outputs.
        """
        blocks = self.blocks
        used = self.matrix.max(axis=1) > 0
        if counts[~used].any():
            raise ValueError(
                "outputs are not allowed: there must be at least one, all of them outputs of this mechanism"
            )
        likely = maximise(blocks[used], counts[used]) if counts.sum() >= FEW else np.full(BASIS, 1 / BASIS)
        weights = 0.99 * likely + 0.01 / BASIS
        sizes = [part.size for part in np.array_split(self.inputs, BASIS)]
        return np.repeat(weights / sizes, sizes), blocks @ weights

    def plain_variance(self, shares: np.ndarray, line: tuple[float, float]) -> float:
        """Of the corrected output (Y - a)/b under the fitted distribution."""
        return float(shares @ (self.variances + (self.means - shares @ self.means) ** 2)) / line[1] ** 2

    def function(self, cells: np.ndarray, n: int) -> MeanFunction:
        """The g with the shortest interval for n outputs among those with the least variance at each accuracy of E[g | x] = x.

        Of few outputs under large noise a constant has the shortest one: where its bias is more than its standard error those are
        taken that are `ACCURATE`, if there are any.

        Singular values of the weighted matrix below a threshold are left out; each threshold gives a bias, the largest
        |E[g | x] - x| at other inputs, and a variance.
        """
        tried = self.tried(cells.tobytes())
        best = min(tried, key=lambda found: found.interval(n))
        accurate = [found for found in tried if found.bias <= ACCURATE * (self.inputs[-1] - self.inputs[0])]
        return (
            best if best.bias <= best.error(n) or not accurate else min(accurate, key=lambda found: found.interval(n))
        )

    @cached_property
    def tried(self) -> Callable[[bytes], list[MeanFunction]]:
        """`_tried`, which remembers the last ones: few outputs have the same cells whatever they are."""
        return lru_cache(maxsize=4)(self._tried)

    def _tried(self, told: bytes) -> list[MeanFunction]:
        """A function for each threshold."""
        cells = np.frombuffer(told)
        weight = np.where(cells > UNSEEN, cells, np.inf) ** -0.5
        centre, tried = float(self.inputs.mean()), []
        squares, vectors = np.linalg.eigh(self.gram * np.outer(weight, weight))  # of the singular values
        parts = vectors.T @ (weight * self.moments)
        for threshold in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6):
            used = squares > threshold**2 * squares[-1]
            g = centre + weight * (vectors[:, used] @ (parts[used] / squares[used]))
            bias = float(np.abs(g @ self.elsewhere - self.between).max())
            tried.append(MeanFunction(g, bias, float(cells @ (g - cells @ g) ** 2)))
        return tried


def output_variances(g: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Var[g(Y) | x] for each column of P(cell | x); about a middle, as numbers may be far from 0 and near one another."""
    g = g - g.mean()
    return np.asarray(g**2 @ matrix - (g @ matrix) ** 2)


@kept
def mean_tables(mechanism: Mechanism) -> MeanTables:
    """The tables of a mechanism on an interval."""
    channel, domain = Channel.coarse(mechanism), mechanism.domain
    x = np.linspace(domain.lower, domain.upper, GRID)
    between = domain.lower + (domain.upper - domain.lower) * (np.arange(CHECKED) + 0.5) / CHECKED
    some = x[::4]
    means, variances = (np.interp(x, some, np.asarray(f(some))) for f in (mechanism.mean, mechanism.variance))
    return MeanTables(x, channel.matrix(x), between, channel.matrix(between), means, variances)


def mean_direction(mechanism: Mechanism, data: Data, ask: Ask) -> Estimate:
    """The mean direction on a circle: noise that turns with the input shortens the mean vector and does not turn it."""
    domain: Any = mechanism.domain
    refuse_few_floats("mechanism", domain)
    turn = 2 * np.pi / domain.period
    n, sums = data.directions()
    c, s, cc, ss, sc = (sums / n).tolist()
    middle = math.atan2(s, c)
    across = ss * math.cos(middle) ** 2 + cc * math.sin(middle) ** 2 - 2 * sc * math.sin(middle) * math.cos(middle)
    least, length = direction_noise(mechanism)
    error = math.sqrt(max(across, least) / n) / math.hypot(c, s) if n > 1 else math.inf

    def rejected(around: np.ndarray, level: float = ask.level) -> np.ndarray:
        """Directions, seen from the mean one, whose normal component of the mean vector is too far from 0."""
        phi = middle + around
        normal = s * np.cos(phi) - c * np.sin(phi)  # the average of sin(angle - phi), and that of its square
        if n < FEW:
            low, high = bounded(normal, n, (-1.0, 1.0), level)
            return np.asarray((low > 0) | (high < 0))
        second = ss * np.cos(phi) ** 2 + cc * np.sin(phi) ** 2 - 2 * sc * np.sin(phi) * np.cos(phi)
        deviation = np.sqrt(np.maximum(second - normal**2, least) / n)
        far = unseen(n, deviation, length + np.abs(normal), level)
        return np.asarray(np.abs(normal) > np.maximum(two_sided(level, n) * deviation, far))

    low, high = -_last(lambda u: rejected(-u)), _last(rejected)
    # A direction and the opposite one have the same normal component: they are told apart where the mean vector is told from 0,
    # by its length, which for two normal variables is above r with the chance exp(-r^2/2). At quarter turns it is the component.
    either = min(math.erf(math.sqrt(-math.log1p(-ask.level))), math.nextafter(1.0, 0.0))
    if not rejected(np.pi / 2 * np.array([-1, 1]), either).all():
        low, high = -np.pi, np.pi
    value = domain.start + (middle % (2 * np.pi)) / turn
    reach = value + low / turn, value + high / turn
    told = f"{POPULATION.format('mean direction')}; the noise turns with the input. Ends may lie beyond the cut of the circle"
    method = "mean direction of the outputs; the interval inverts a test"
    return ask.answer(n, method, told, value, error / turn, reach, reach)


def mean_of_vectors(mechanism: Any, outputs: Any, ask: Ask) -> Estimate:
    """Vectors: each coordinate's average; the band is a region for the whole vector."""
    from scipy.special import stdtrit

    d = mechanism.domain.dimension if isinstance(mechanism, Mechanism) else getattr(mechanism, "d", None)
    if d is None or ask.what != "mean" or ask.prior is not None:
        allowed = "it must be 'mean', without a prior" if d is not None else "it must be an optdp mechanism"
        raise TypeError(f"mechanism = {mechanism!r} is not allowed with what = {ask.what!r}: {allowed}")
    if isinstance(mechanism, Mechanism) and not _keeps_mean(mechanism):
        raise NotIdentified("the mechanism is not known to be unbiased: the average of its outputs says nothing exact")
    y = require.reals(require.unmasked(outputs, "outputs"), "outputs")
    if y.ndim < 2 or y.shape[-1] != d or not y.size or not np.isfinite(y).all():
        raise ValueError(f"outputs are not allowed: they must be finite vectors, with {d} as their last axis")
    rows = y.reshape(-1, d)
    n, value, ends = len(rows), rows.mean(axis=0), mechanism.support()
    away = rows - value
    squares, cubes = (away**2).sum(axis=0), (away**3).sum(axis=0)
    least = vector_noise(mechanism, value, squares / n)
    error = np.sqrt(np.maximum(squares / (n - 1), least) / n) if n > 1 else np.full(d, np.inf)
    method, levels = "average of the outputs", (ask.level, ask.level ** (1 / d))
    told, found = POPULATION.format("mean"), []
    if n < FEW and np.isfinite(ends).all():
        method += f"; {BOUNDED}"
        found = [bounded(value, n, ends, level) for level in levels]
    else:
        most = np.abs(away).max(axis=0)
        sizes = (away / np.where(most > 0, most, 1.0)) ** 2
        total = np.where(most > 0, sizes.sum(axis=0), 1.0)
        few = np.isfinite(ends).all() & (total <= RARE)  # outputs that differ from the others, or none
        # A sum of squares of which few are large scatters like one of so many normal variables, at most n - 1.
        scatter = n * (sizes**2).sum(axis=0) - total**2
        freedom = 2 * n * total**2 / np.maximum(scatter, 2 * n * total**2 / max(n - 1, 1))
        for level in levels:
            half = stdtrit(freedom, (1 + level) / 2) * error
            low, high = reach(n, value, squares, cubes, error, domain_ends(mechanism), level)
            low, high = value - np.maximum(half, low), value + np.maximum(half, high)
            rare = bounded(value, n, ends, level) if few.any() else (low, high)
            found.append((np.where(few, np.minimum(low, rare[0]), low), np.where(few, np.maximum(high, rare[1]), high)))
    domain = domain_ends(mechanism)
    centre = np.clip(value, *domain)  # as near the mean as the average, or nearer; intervals go with it
    if (centre != value).any():
        method += ", and where it lies beyond the domain the domain's end"
    reach_of = [(np.minimum(low, value), np.maximum(high, value)) for low, high in found]
    ends = [tuple(np.clip(end + (centre - value), *domain) for end in pair) for pair in reach_of]
    return ask.answer(n, method, told, centre, error, ends[0], ends[1], range(d))


def vector_noise(mechanism: Any, value: np.ndarray, spread: np.ndarray) -> np.ndarray:
    """Variances of the coordinates with this `spread`, made as large as the noise's of a person at `value` if they are less.

    Mechanisms for whole vectors know the sum alone: all are then raised by one factor, those of none to an equal share.
    """
    domain: Any = (mechanism if isinstance(mechanism, Mechanism) else mechanism.mechanism).domain
    if not isinstance(mechanism, Mechanism):
        return np.asarray(mechanism.variance(np.clip(value, domain.lower, domain.upper)))
    if isinstance(domain, Box):
        place = np.clip(value, domain.lower, domain.upper)
    else:
        place = value / max(float(np.linalg.norm(value)), 1.0)
        if isinstance(domain, Sphere):  # where the noise is the same everywhere
            place = np.eye(1, value.size)[0]
    total, seen = float(mechanism.variance(place)), float(spread.sum())
    even = total / value.size
    return np.where(spread > 1e-12 * even, spread * max(total / max(seen, 1e-300), 1.0), even)


def _keeps_mean(mechanism: Mechanism) -> bool:
    """Whether E[Y | x] = x at a few vectors x."""
    domain: Any = mechanism.domain
    if isinstance(domain, Box):
        low, high = np.array(domain.lower), np.array(domain.upper)
        points = np.stack([low, low + 0.3 * (high - low), high])
    else:
        points = np.concatenate([np.eye(1, domain.dimension), -np.eye(1, domain.dimension)])
    return bool(np.allclose(mechanism.mean(points), points, rtol=1e-9, atol=1e-9))

"""Estimates that are averages, with intervals that hold for few outputs and near the ends of what is possible.

**Every estimate is an average.** Let the outputs have the distribution K pi for unknown probabilities pi of the inputs (or of
bins of them), and let c(pi) = sum_k c_k pi_k be wanted. Any function g of the output with sum_o g(o) K(o | k) = c_k for every k
gives an unbiased estimate, the average of g over the outputs; the best one has the least variance under p = K pi,

    g = W K (K' W K)^- c,    W = diag(1/p),

and its variance is the bound of Cramer and Rao. If there is no such g, different pi with different c(pi) have the same outputs:
then c(pi) cannot be identified, and is refused. The value reported is c at the maximum likelihood estimate (pi >= 0), which is
asymptotically the same average; the interval is built around the average, whose distribution knows no boundary.

**Intervals are score intervals.** They hold the c that are not rejected by the average's distance from c in units of its standard
deviation *under c*, along the least favourable line through the estimate: for one proportion this is Wilson's interval. The
estimate often has nobody in some bins: outputs that these alone send seem impossible then, and the variance is too small. So g is
best for the estimate with `FOLLOWED` evenly spread people more, and intervals hold those along the line through it too. Where few
numbers differ from the others the average is no normal variable: the interval then holds that of Clopper and Pearson too, for two
values with the same three moments. Where few of them make the variance, the normal distribution becomes Student's. Frequency
oracles have exact (Clopper-Pearson) intervals.

**Few outputs** say little of their own variance: three equal ones have none. Functions g that are chosen before the outputs are
seen lie between known ends, and below 30 outputs intervals are those of Clopper and Pearson for the share of the way that their
average goes from one end to the other: proven for two values; for others they cover in simulations, which is no proof. From 30 on
the variance of a mean is at least the noise's, which is known, and intervals hold what a few people at an end of the domain
explain of whom there may be none among those who answered. (Inputs without ends may lie anywhere: their average is taken for
normal.) No interval is empty: where it would lie outside the range of what is estimated, the average counts as one at the end of
this range.

Bands hold all numbers at once: the critical value is the quantile of the largest of normal variables with the correlations of the
averages, or Sidak's bound on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from optdp.statistics.likelihood import maximise
from optdp.statistics.result import NotIdentified, name_of

#: With fewer outputs, or where fewer differ from the others, no average is taken for a normal variable at a level of 95 %.
FEW, RARE = 30, 5
#: With fewer outputs functions of them are the best ones for evenly spread inputs: those that follow so few are not unbiased.
#: With more, for the estimated inputs and so many evenly spread ones: the more there are, the more they are followed.
FOLLOWED = 100
#: What is said of intervals from so few.
BOUNDED = (
    "few outputs: Clopper-Pearson intervals for bounded numbers, whose level is proven where these have two values"
)
#: What cannot be identified up to this relative size counts as identified: rounding of the tables.
RANK = 1e-7
#: Cells of the outputs with a smaller probability are left out: nobody sees them, and squares of their weights overflow.
UNSEEN = 1e-60


@dataclass(frozen=True)
class Averages:
    """Averages of functions g of the output that estimate linear functionals c(pi) without bias; see the top of this file.

    - `functions`: g, a row for each cell, a column for each functional.
    - `cells`: the distribution of the outputs at the maximum likelihood estimate; `values`: c there; `spread`: the distribution
      were there `FOLLOWED` people more, evenly spread.
    - `linear`: the averages themselves; `n`: how many outputs.
    """

    functions: np.ndarray
    cells: np.ndarray
    spread: np.ndarray
    values: np.ndarray
    linear: np.ndarray
    n: int
    ranges: tuple[np.ndarray, np.ndarray]

    @classmethod
    def of(cls, matrix: np.ndarray, counts: np.ndarray, wanted: np.ndarray, names: Any = None) -> Averages:
        """**Arguments:** `matrix`: P(cell | k); `wanted`: a row c for each functional. **Raises** `NotIdentified`."""
        shares, n = maximise(matrix, counts), int(counts.sum())
        cells, even = matrix @ shares, matrix.mean(axis=1)  # positive where any input sends something
        spread = (n * cells + FOLLOWED * even) / (n + FOLLOWED)
        functions = unbiased(matrix, spread if n >= FOLLOWED else even, wanted, names)
        ends = wanted.min(axis=1), wanted.max(axis=1)
        return cls(functions, cells, spread, wanted @ shares, counts @ functions / n, n, ends)

    @property
    def errors(self) -> np.ndarray:
        """Standard errors."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0) / self.n)

    @property
    def covariance(self) -> np.ndarray:
        """Of one output's functions, at the maximum likelihood estimate."""
        return covariance(self.functions, self.cells)

    def intervals(self, critical: float) -> tuple[np.ndarray, np.ndarray]:
        """All theta with n (average - theta)^2 <= critical^2 V(theta), V quadratic in theta along the least favourable line
        through the fit, or along the one through `spread`: outputs that are improbable in the fit, and on which g may be large,
        are not in it.
        """
        first = self._along(self.cells[:, None], critical)
        # Of what does not vary in the fit, how many people may differ of whom there are none is all that there is to say.
        still = _still(self.cells @ self.functions**2, self.cells @ self.functions)
        second = self._along(np.where(still, self.cells[:, None], self.spread[:, None]), critical)
        return np.minimum(first[0], second[0]), np.maximum(first[1], second[1])

    def _along(self, p: np.ndarray, critical: float) -> tuple[np.ndarray, np.ndarray]:
        """The same along one line: on it the cells have the distribution p (1 + (theta - value)(g - value)/Var g), of mass 1, and
        c grows at rate 1.
        """
        from scipy.special import ndtr, stdtrit

        g = self.functions
        value, second = (g * p).sum(axis=0), (g**2 * p).sum(axis=0)
        third = (g**2 * (g - value) * p).sum(axis=0)
        n, linear, v, (least, most) = self.n, self.linear, self.values, self.ranges
        level = 1 - 2 * float(ndtr(-critical))
        if n < FEW:
            low, high = bounded(np.clip(linear, least, most), n, (g.min(axis=0), g.max(axis=0)), level)
            return np.minimum(np.clip(low, least, most), v), np.maximum(np.clip(high, least, most), v)
        variance = second - value**2
        known = _still(second, value)
        variance = np.where(known, 0.0, variance)
        live = np.where(known, 1.0, variance)
        rise = np.where(known, 2 * value, third / live)  # V is 0 along the line
        odd = np.where(known, 0.0, third - 2 * value * variance) / live**1.5
        peak = np.where(known, 0.0, ((g - value) ** 4 * p).sum(axis=0)) / live**2
        # The fitted variance scatters like one of so many normal variables, apart from what it shares with the average; of what
        # fewer than two outputs are expected to make, it says nothing, and `hidden` and `few` do.
        freedom = np.maximum(2 * n / np.maximum(peak - 1 - odd**2, 1e-9), 4.0)
        s, share = (v[:, None] for v in hidden(n, level))
        s = s * stdtrit(freedom, (1 + level) / 2) / critical
        a, b, c = n + s**2, -2 * n * linear - s**2 * rise, n * linear**2 - s**2 * (second - rise * value)
        root = np.sign(s) * np.sqrt(np.maximum(b * b - 4 * a * c, 0.0))
        lows, highs = (-b - root) / (2 * a), (-b + root) / (2 * a)
        half = critical * np.sqrt(variance / n)
        low = np.where(linear > most, np.minimum(lows[-1], most - half), lows[-1])
        high = np.where(linear < least, np.maximum(highs[-1], least + half), highs[-1])
        # Inputs at which the functional is least or largest and of which there are none here have no part in the fitted line.
        low = np.minimum(low, (lows - share * np.clip(linear - least, 0.0, most - least)).min(axis=0))
        high = np.maximum(high, (highs + share * np.clip(most - linear, 0.0, most - least)).max(axis=0))
        # Where few numbers differ from the others the average is binomial rather than normal: of two values with these moments.
        # Of a normal one tails are wrong by the critical value's third power times the skewness, 1 over the root of their number.
        width, upper = np.sqrt(variance * (4 + odd**2)), (1 - odd / np.sqrt(4 + odd**2)) / 2
        few = ~known & (n * np.minimum(upper, 1 - upper) <= RARE * max(1.0, critical / 1.96) ** 6)
        if few.any():
            first = value - upper * width
            ends = bounded(np.clip(linear, least, most), n, (first, first + width), level)
            low, high = np.where(few, np.minimum(low, ends[0]), low), np.where(few, np.maximum(high, ends[1]), high)
        # The value is in the interval even where the average is far outside the range.
        return np.minimum(np.clip(low, least, most), v), np.maximum(np.clip(high, least, most), v)

    def critical(self, level: float) -> float:
        """The factor of the band."""
        return simultaneous(self.covariance, level)


def _still(second: np.ndarray, value: np.ndarray) -> np.ndarray:
    """Which functions with these second moments and means do not vary: sums of all probabilities, and others without noise."""
    return np.asarray(second - value**2 <= 1e-14 * (1 + second))


def covariance(functions: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Of the functions of one output with this distribution."""
    mean = cells @ functions
    return np.asarray(functions.T @ (functions * cells[:, None]) - np.outer(mean, mean))


def unbiased(matrix: np.ndarray, cells: np.ndarray, wanted: np.ndarray, names: Any = None) -> np.ndarray:
    """The functions of the output with E[g | k] = c_k for all k and the least variance under `cells`.

    **Raises** `NotIdentified` if there are none; `names`: of the inputs, for the message.
    """
    weight = np.where(cells > UNSEEN, cells, np.inf) ** -0.5
    scaled = matrix * weight[:, None]
    left, sizes, right = np.linalg.svd(scaled, full_matrices=False)
    kept = sizes > RANK * sizes[0]
    seen = wanted @ right[kept].T
    missing = np.abs(wanted - seen @ right[kept]).max(axis=1)
    if (missing > 1e-5 * np.maximum(np.abs(wanted).max(axis=1), 1e-300)).any():
        raise NotIdentified(reason(matrix, names))
    return np.asarray(weight[:, None] * (left[:, kept] @ (seen / sizes[kept]).T))


def reason(matrix: np.ndarray, names: Any) -> str:
    """Which inputs have the same distribution of outputs, if there are two such; else that there are too few outputs."""
    d = matrix.shape[1]
    gap = np.abs(matrix[:, :, None] - matrix[:, None, :]).sum(axis=0) + 2 * np.eye(d)
    i, j = divmod(int(np.argmin(gap)), d)
    rank = int(np.linalg.matrix_rank(matrix, tol=100 * RANK))
    if gap[i, j] < 1e-6 and names is not None:
        i, j = sorted((i, j))
        why = f"inputs in {name_of(names[i])} and in {name_of(names[j])} have the same distribution of outputs"
    else:
        why = f"the distributions of outputs span {rank} dimensions, and {d} are needed"
    return f"what is asked for is not identified by the outputs, however many there are: {why}"


def simultaneous(cov: np.ndarray, level: float) -> float:
    """The c with P(max |Z_i| <= c) = level for normal Z with this covariance: simulated up to 400 numbers, else Sidak's bound."""
    from scipy.special import ndtri

    deviation = np.sqrt(np.maximum(np.diag(cov), 0.0))
    live = deviation > 1e-12 * deviation.max(initial=0.0)
    k = int(live.sum())
    sidak = float(ndtri((1 + level ** (1 / max(k, 1))) / 2))
    if k <= 1 or k > 400:
        return sidak
    correlation = cov[np.ix_(live, live)] / np.outer(deviation[live], deviation[live])
    values, vectors = np.linalg.eigh(correlation)
    drawn = (vectors * np.sqrt(np.maximum(values, 0.0))).astype(np.float32) @ _normals(k)
    found = np.quantile(np.abs(drawn, out=drawn).max(axis=0), level)
    return float(min(max(found, ndtri((1 + level) / 2)), sidak))


@lru_cache(maxsize=16)
def _normals(k: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((k, 20_000), dtype=np.float32)


def two_sided(level: float, n: int = 10**9) -> float:
    """How many standard errors an average of n is from its mean at most, with this probability: Student's, or the normal one."""
    from scipy.special import stdtrit

    return float(stdtrit(max(n - 1, 1), (1 + level) / 2))


def clopper_pearson(successes: np.ndarray, n: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The exact interval for the probability of a success."""
    from scipy.special import betaincinv

    tail, k = (1 - level) / 2, np.asarray(successes, dtype=float)
    low = np.where(k > 0, betaincinv(np.where(k > 0, k, 1), n - k + 1, tail), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.where(k < n, n - k, 1), 1 - tail), 1.0)
    return low, high


def rates(successes: np.ndarray, n: int, least: float, most: float, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The same for one between `least` and `most`: an interval that lies beyond them is that of the nearest one's successes."""
    low, high = clopper_pearson(successes, n, level)
    beyond = (high <= least) | (low >= most)
    near = clopper_pearson(np.clip(successes, n * least, n * most), n, level) if beyond.any() else (low, high)
    return np.where(beyond, near[0], low), np.where(beyond, near[1], high)


def bounded(average: Any, n: int, ends: tuple[Any, Any], level: float) -> tuple[np.ndarray, np.ndarray]:
    """An interval for the mean of numbers between `ends`, n of which have this average: Clopper and Pearson's for the share of
    the way between them, as if every number were one of the two, which makes its variance as large as can be.
    """
    first, width = ends[0], np.subtract(ends[1], ends[0])
    share = np.clip((average - first) / np.where(width > 0, width, 1.0), 0.0, 1.0)
    low, high = clopper_pearson(n * share, n, level)
    return np.asarray(first + width * low), np.asarray(first + width * high)


def averaged(
    average: np.ndarray, error: np.ndarray, n: int, ends: tuple[float, float], level: float
) -> tuple[np.ndarray, np.ndarray]:
    """Intervals for probabilities, means of numbers between `ends` with these averages and standard errors: Student's, but
    `bounded` for few numbers, or where few differ from the others; and Wilson's where there is no noise: all t with
    n (average - t)^2 <= z^2 (t (1 - t) + the noise's variance).
    """
    half, z2 = two_sided(level, n) * error, two_sided(level) ** 2
    low, high = average - half, average + half
    if np.isfinite(ends).all():
        far = np.maximum(ends[1] - average, average - ends[0])
        few = (n < FEW) | (n * error <= math.sqrt(RARE) * far)  # a sum of squared deviations is n^2 error^2
        rare = bounded(average, n, ends, level)
        low, high = np.where(few, rare[0], low), np.where(few, rare[1], high)
    own = average * (1 - average)
    noise = np.maximum(n * error**2 - own, 0.0)
    middle, root = 2 * n * average + z2, np.sqrt(z2 * z2 + 4 * n * z2 * (own + noise * (1 + z2 / n)))
    return np.minimum(low, (middle - root) / (2 * (n + z2))), np.maximum(high, (middle + root) / (2 * (n + z2)))


def probabilities(ends: Callable[[float], Any], value: np.ndarray, level: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """The interval and the band, by Sidak's bound, of probabilities from the `ends` at each level; the values are in both."""
    both = (np.clip(ends(p), 0.0, 1.0) for p in (level, level ** (1 / value.size)))
    return [(np.minimum(low, value), np.maximum(high, value)) for low, high in both]


def project(values: np.ndarray) -> np.ndarray:
    """The nearest probabilities that sum to 1: they are nearer to the true ones than `values` are."""
    values = values - values.max()  # which moves nothing, and 1 counts beside numbers of any size
    ordered = np.sort(values)[::-1]
    shift = (np.cumsum(ordered) - 1) / np.arange(1, values.size + 1)
    last = int(np.flatnonzero(ordered > shift)[-1])
    return np.asarray(np.maximum(values - shift[last], 0.0))


def reach(
    n: int, average: Any, squares: Any, cubes: Any, error: Any, ends: tuple[Any, Any], level: float
) -> tuple[np.ndarray, np.ndarray]:
    """How far intervals for means of inputs between `ends` go (below, above) averages of n numbers with these sums of squared
    and cubed deviations: along the least favourable line, a parabola, and to what the `unseen` explain.
    """
    t = two_sided(level, n)
    spread = squares / max(n - 1, 1)
    lean = np.where(squares > 0, t * t * cubes * (n - 1) / n / np.where(squares > 0, squares, 1.0), 0.0)
    root = np.sqrt(lean**2 + 4 * (n + t * t) * t * t * spread)
    low, high = (
        np.maximum((sign * lean + root) / (2 * (n + t * t)), unseen(n, error, far, level))
        for sign, far in ((-1, average - ends[0]), (1, ends[1] - average))
    )
    return low, high


def unseen(n: int, error: Any, far: Any, level: float) -> np.ndarray:
    """How far from an average a mean may be for a share of people `far` away, of whom nobody is among n: see `hidden`."""
    if n == 1:  # which has no error
        return np.full(np.shape(error), np.inf)
    s, share = hidden(n, level, n - 1)
    return np.asarray((np.multiply.outer(s, error) + np.multiply.outer(share, far)).max(axis=0))


def hidden(n: int, level: float, freedom: float = math.inf) -> tuple[np.ndarray, np.ndarray]:
    """(s from -t to t, shares w of a population): nobody of the share w is among n with a probability of (1 - w)^n, and this
    together with an average that is s standard errors away is as improbable as one that is t of them away.

    `freedom`: of Student's distribution of the average in units of its error; infinite for the normal one.
    """
    from scipy.special import stdtr, stdtrit

    t = float(stdtrit(freedom, (1 + level) / 2))
    s = np.linspace(-t, t, 65)
    return s, -np.expm1(np.log((1 - level) / 2 / stdtr(freedom, -s)) / n)

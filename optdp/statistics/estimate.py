"""`optdp.estimate`: what private outputs say about the inputs, and how surely.

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

**Quantiles** of numbers are estimated in bins. Their value and standard error take inputs for evenly spread within each; the
interval does not, and so is not much shorter than a bin, however many outputs there are.

**Histograms and distribution functions** of numbers, and posteriors, take inputs for evenly spread within each bin, and so do
their intervals. Where many inputs are at one point and the noise is small, an interval may never hold the truth.

Bands hold all numbers at once: the critical value is the quantile of the largest of normal variables with the correlations of the
averages, or Sidak's bound on it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import cached_property, lru_cache
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp import hooks
from optdp.exact import require
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.frequency import FrequencyOracle
from optdp.problem import Alphabet, Ball, Box, Circle, Interval, Prior, PriorLike, Sphere
from optdp.statistics import bayes
from optdp.statistics.channel import Channel, few_floats, kept, mixed, refuse_few_floats
from optdp.statistics.likelihood import maximise
from optdp.statistics.tables import Printed, frame
from optdp.statistics.tally import Moments, Sample, Tally

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

WHATS = ("mean", "quantile", "cdf", "histogram", "frequencies")
#: Numbers of bins that are tried where none is given.
LADDER = (32, 24, 16, 12, 10, 8, 6, 5, 4, 3, 2)
#: A multiple of all of them.
FINE = 480
#: A distribution function or a quantile needs as many.
FEWEST = 5
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
#: Widths of domains on whose means there are estimates: third powers of outputs are floats.
LEAST, MOST = 1e-100, 1e100
#: Cells of the outputs with a smaller probability are left out: nobody sees them, and squares of their weights overflow.
UNSEEN = 1e-60
#: Inputs at which the mean's estimator is fitted, bins of the distribution for which it is best, inputs at which it is checked: a
#: prime number, so that they lie everywhere between those of the fit, where the bias is largest.
GRID, BASIS, CHECKED = 257, 16, 2039
#: Functions of the output whose mean is the input up to this share of the domain's width identify the mean.
ACCURATE = 2e-3
NORMAL = "the average is normally distributed: it is not where a few inputs, which have no ends here, lie far from the others"
#: What is said of values and standard errors where intervals are without this if.
AS_IF = "as if inputs were spread evenly"
#: For quantiles: mixtures of estimates of the distribution function at neighbouring ends of bins that bound the quantile; inputs
#: at which their means are computed.
MIXED, PLACES = 4, 1024
POPULATION = "the inputs are independent draws from one population, whose {} is estimated"


class NotIdentified(ValueError):
    """The outputs do not determine what is asked for, however many there are; the message says why."""


@dataclass(frozen=True, repr=False)
class Estimate(Printed):
    """An estimate from private outputs, with its uncertainty.

    - `value`: a float, or an array for several numbers; `standard_error`: of the same shape, that of the average behind the
      value if inputs are distributed as estimated (too small where few are seen to differ, for which the interval allows), inf
      for one output; of a quantile its root mean square distance from the two that it would be were the estimated distribution
      function larger and smaller by its standard error (in bins, as if inputs were spread evenly within each).
    - `interval`: (low, high), each of this shape: contains the truth with probability `level`, for each number by itself.
    - `band`: (low, high) that contain all numbers at once with probability `level`.
    - `points`: what each number belongs to: names of categories, (lower, upper) of bins, points of a distribution function.
    - `method`, `assumptions`: how it was computed, and what must hold for the interval to be right.
    - `what`, `level`, `n`: the question, the level, the number of outputs.
    - `unit_error`: the standard error that many outputs of the same population would have, times the square root of their number.
    """

    what: str
    value: Any
    standard_error: Any
    interval: tuple[Any, Any]
    band: tuple[Any, Any]
    level: float
    n: int
    method: str
    assumptions: str
    points: tuple[Any, ...] = ()
    unit_error: Any = field(default=math.nan)

    @property
    def labels(self) -> list[str]:
        """What each number is called, neighbours differently."""
        return _names(self.points) if np.ndim(self.value) else [self.what]

    def to_frame(self) -> pd.DataFrame:
        """A pandas table with a row for each number. **Raises** RuntimeError without pandas (`optdp[tables]`)."""
        index = self.points if len(self.points) == np.size(self.value) else [self.what]
        columns = {
            "value": self.value, "standard_error": self.standard_error, "low": self.interval[0], "high": self.interval[1],
            "band_low": self.band[0], "band_high": self.band[1],
        }  # fmt: skip
        return frame({name: np.ravel(numbers) for name, numbers in columns.items()}, index)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw the numbers with their intervals, a line for each. Returns the matplotlib axes."""
        return hooks.plot(self, ax=ax)

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        numbers = {k: _plain(getattr(self, k)) for k in ("value", "standard_error", "interval", "band")}
        told = {k: getattr(self, k) for k in ("what", "level", "n", "method", "assumptions")}
        return told | numbers | {"points": [list(p) if isinstance(p, tuple) else p for p in self.points]}

    def __repr__(self) -> str:
        if np.ndim(self.value) == 0:
            value, low, high = _told(self.value, *self.interval)
            even = " (as if inputs were spread evenly in bins)" if AS_IF in self.method else ""
            return (
                f"<Estimate of the {self.what}: {value} +- {self.standard_error:.2g}{even}, "
                f"{100 * self.level:.15g} % interval [{low}, {high}], n = {self.n}>"
            )
        return f"<Estimate of the {self.what}: {np.size(self.value)} numbers, n = {self.n}; to_frame() shows them>"

    def __str__(self) -> str:
        lines = [repr(self)[1:-1].removesuffix("; to_frame() shows them")]
        if np.ndim(self.value):
            rows = [_told(*row, digits=4) for row in zip(self.value, *self.interval, strict=True)]
            lines += [f"  {p}: {v} in [{a}, {b}]" for p, (v, a, b) in list(zip(self.labels, rows, strict=True))[:40]]
            lines += [f"  ... {len(rows) - 40} more"] * (len(rows) > 40)
        return "\n".join([*lines, f"  method: {self.method}", f"  assumes: {self.assumptions}"])


def _plain(value: Any) -> Any:
    return [_plain(v) for v in value] if isinstance(value, tuple) else np.asarray(value).tolist()


def _told(value: float, low: float, high: float, digits: int = 6) -> tuple[str, str, str]:
    """A number and its interval, with `digits` of the largest and at least two of the width; ends are rounded outwards."""
    last = _last_digit((value, low, high), high - low, digits)
    ways = ROUND_HALF_EVEN, ROUND_FLOOR, ROUND_CEILING
    one, two, three = (_rounded(v, last, way) for v, way in zip((value, low, high), ways, strict=True))
    return one, two, three


def _last_digit(numbers: Any, width: float, digits: int) -> int:
    """The power of ten of the last digit that is shown of numbers that differ by this width."""
    largest = max((abs(v) for v in numbers if math.isfinite(v)), default=0.0)
    last = math.floor(math.log10(largest)) + 1 - digits if largest else 0
    return min(last, math.floor(math.log10(width)) - 1) if 0 < width < math.inf else last


def _rounded(number: float, last: int, way: str = ROUND_HALF_EVEN) -> str:
    """Up to the digit of this power of ten, without zeros at the end."""
    if not math.isfinite(number) or not number:
        return f"{number + 0.0:g}"
    exact = Decimal(repr(float(number)))
    if exact.adjusted() - last > 15:  # more than a float has
        return repr(float(number))
    exact = exact.quantize(Decimal(1).scaleb(last), way)
    return f"{float(exact) + 0.0:.{max(exact.adjusted() - last + 1, 1)}g}"


def _names(points: Any) -> list[str]:
    """How numbers, bins and symbols are shown: neighbours differently."""
    numbers = [p for p in points if isinstance(p, float)]
    step = 2 * float(np.diff(np.unique(numbers) / 2).min()) if len(set(numbers)) > 1 else 0.0
    last = _last_digit(numbers, step, 6)
    return [_rounded(p, last) if isinstance(p, float) else _name(p) for p in points]


def _name(point: Any) -> str:
    if isinstance(point, tuple):
        last = _last_digit(point, point[1] - point[0], 6)
        return f"[{_rounded(point[0], last)}, {_rounded(point[1], last)})"
    return f"{point:g}" if isinstance(point, float) else str(point)


def estimate(
    mechanism: Mechanism, outputs: ArrayLike | Tally, what: str = "mean", *, q: float | None = None,
    bins: int | ArrayLike | None = None, level: float = 0.95, categories: ArrayLike | None = None,
    prior: PriorLike | str | None = None, strength: float = 1.0, progress: bool = False,
) -> Estimate:  # fmt: skip
    """What private outputs say about the inputs: one number or several, with standard errors, intervals and a band.

    **Arguments:**

    - `mechanism`: the one that gave the outputs (`optdp.Mechanism.load` reads a saved one).
    - `outputs`: what it gave, any shape; for frequency oracles messages, for vectors rows; or an `optdp.Tally` of it.
    - `what`: "mean"; "quantile" (with `q`); "cdf": the distribution function at the upper ends of the bins, or at the symbols of
      an alphabet of numbers; "histogram": probabilities of bins; "frequencies": probabilities of categories.
    - `q`: the level of the quantile, in (0, 1): 0.5 is the median.
    - `bins`: for "histogram", "cdf" and "quantile" of numbers: how many equal bins of the domain, or their ends (which must hold
      all inputs). None: the largest number that the outputs can tell apart with a useful error.
    - `level`: of intervals and band, in (0, 1).
    - `categories`: for "frequencies" of a frequency oracle: some of them, None for all.
    - `prior`: for Bayesian users: an `optdp.Prior` over the categories, symbols or bins (or their probabilities, or "uniform"):
      the population's probabilities then have a Dirichlet distribution with this mean and `strength` times as many
      pseudo-counts as there are categories, and value, standard error and interval are posterior mean, deviation and
      credible interval.
    - `progress`: a bar on stderr where decoding is long.

    **Returns** an `Estimate`. Its intervals are about the population from which the inputs were drawn; they hold for the people
    asked too, with a little to spare.

    **Raises** TypeError or ValueError naming the argument; `NotIdentified` (a ValueError) with the reason where the outputs do
    not determine what is asked, however many there are.

        >>> import numpy as np, optdp
        >>> mechanism = optdp.solve_kernel(1.0, unbiased=True, domain=(0, 120)).mechanism
        >>> ages = np.random.default_rng(0).normal(40, 12, 20_000).clip(0, 120)
        >>> found = optdp.estimate(mechanism, mechanism.randomize(ages, 1))
        >>> low, high = found.interval
        >>> bool(low < ages.mean() < high)
        True
    """
    if isinstance(what, str) and what == "median":
        raise ValueError("what = 'median' is not allowed: use 'quantile' with q = 0.5")
    require.choice("what", what, WHATS)
    level = require.real("level", level, low=0.0, high=1.0, open_low=True, open_high=True)
    if (q is None) == (what == "quantile"):
        allowed = "it must be the level, in (0, 1)" if q is None else "it is for what = 'quantile'"
        raise ValueError(f"q = {q!r} is not allowed with what = {what!r}: {allowed}")
    if q is not None:
        q = require.real("q", q, low=0.0, high=1.0, open_low=True, open_high=True)
    domain = getattr(mechanism, "domain", None)
    oracle, symbols = isinstance(mechanism, FrequencyOracle), isinstance(domain, Alphabet)
    if what == "frequencies" and not (oracle or symbols):
        raise ValueError(f"what = 'frequencies' is not allowed for inputs from {domain}: use 'histogram'")
    if oracle and what != "frequencies":
        raise ValueError(f"what = {what!r} is not allowed for categories: use 'frequencies'")
    if symbols and what == "histogram":
        raise ValueError(f"what = 'histogram' is not allowed for {domain}: use 'frequencies'")
    if bins is not None and (what in ("mean", "frequencies") or symbols):
        raise ValueError(f"bins is not allowed with what = {what!r} on {domain}: it is for distributions of numbers")
    if categories is not None and not oracle:
        raise ValueError("categories is not allowed here: it is for frequency oracles")
    if categories is not None and not np.size(categories):
        raise ValueError("categories is not allowed: there must be one at least")
    ask = _Ask(what, level, q, prior, require.real("strength", strength, low=0.0, open_low=True))
    if isinstance(outputs, Tally) and not (outputs.mechanism is mechanism or outputs.mechanism == mechanism):
        raise ValueError("outputs is not allowed: it is a tally of another mechanism's")
    vectors = isinstance(mechanism, Mechanism) and domain is not None and domain.dimension is not None
    if not oracle and (vectors or not isinstance(mechanism, Mechanism)):
        return _coordinates(mechanism, outputs, ask)
    data = outputs if isinstance(outputs, Tally) else Sample(mechanism, outputs)
    if isinstance(mechanism, FrequencyOracle):
        return _oracle(mechanism, data, ask, categories, progress)
    if symbols:
        return _symbols(mechanism, data, ask)
    if what == "mean" and prior is None:
        return _direction(mechanism, data, ask) if isinstance(domain, Circle) else _mean(mechanism, data, ask)
    return _binned(mechanism, data, ask, bins)


Data = Sample | Tally


@dataclass(frozen=True)
class _Ask:
    """The question."""

    what: str
    level: float
    q: float | None = None
    prior: Any = None
    strength: float = 1.0

    def answer(
        self, n: int, method: str, assumptions: str, value: Any, error: Any, interval: Any, band: Any, points: Any = ()
    ) -> Estimate:
        one = np.ndim(value) == 0
        band = np.minimum(band[0], interval[0]), np.maximum(band[1], interval[1])  # both are approximate
        ends: list[Any] = [tuple(float(e) if one else np.asarray(e) for e in pair) for pair in (interval, band)]
        value, error = (float(value), float(error)) if one else (np.asarray(value), np.asarray(error))
        return Estimate(
            self.what, value, error, ends[0], ends[1], self.level, n, method, assumptions, tuple(points), error * math.sqrt(n)
        )  # fmt: skip


# --- linear functionals of a distribution over finitely many inputs


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
        raise NotIdentified(_reason(matrix, names))
    return np.asarray(weight[:, None] * (left[:, kept] @ (seen / sizes[kept]).T))


def _reason(matrix: np.ndarray, names: Any) -> str:
    """Which inputs have the same distribution of outputs, if there are two such; else that there are too few outputs."""
    d = matrix.shape[1]
    gap = np.abs(matrix[:, :, None] - matrix[:, None, :]).sum(axis=0) + 2 * np.eye(d)
    i, j = divmod(int(np.argmin(gap)), d)
    rank = int(np.linalg.matrix_rank(matrix, tol=100 * RANK))
    if gap[i, j] < 1e-6 and names is not None:
        i, j = sorted((i, j))
        why = f"inputs in {_name(names[i])} and in {_name(names[j])} have the same distribution of outputs"
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


def _z(level: float, n: int = 10**9) -> float:
    from scipy.special import stdtrit

    return float(stdtrit(max(n - 1, 1), (1 + level) / 2))


# --- categories, symbols, bins


def _symbols(mechanism: Mechanism, data: Data, ask: _Ask) -> Estimate:
    """Finite alphabets: frequencies, and for numbers the mean, distribution function and quantiles."""
    domain: Any = mechanism.domain
    symbols = domain.symbols
    numeric = not any(isinstance(s, str) for s in symbols)
    if ask.what != "frequencies" and not numeric:
        raise ValueError(
            f"what = {ask.what!r} is not allowed for {domain}: its symbols are no numbers; use 'frequencies'"
        )
    channel = Channel.of(mechanism)
    counts, matrix = data.counts(channel), channel.matrix(domain.check(symbols))
    order = list(range(len(symbols)))
    if ask.what != "frequencies":
        order.sort(key=symbols.__getitem__)
    if ask.what in ("mean", "quantile"):
        require.reals(list(symbols), "symbols")  # not beyond all floats
    matrix, symbols = matrix[:, order], tuple(symbols[i] for i in order)
    if ask.what == "mean":
        wanted, points = np.array(symbols, dtype=float)[None], ()
    else:
        eye = np.eye(len(symbols))
        wanted, points = (np.tril(np.ones_like(eye)) if ask.what in ("cdf", "quantile") else eye), symbols
    if ask.what == "quantile":
        return _ordered_quantile(matrix, counts, np.array(symbols, dtype=float), ask)
    return _functionals(matrix, counts, wanted, points, symbols, ask, POPULATION.format("distribution"))


def _functionals(
    matrix: np.ndarray, counts: np.ndarray, wanted: np.ndarray, points: Any, names: Any, ask: _Ask, assumptions: str
) -> Estimate:
    """Linear functionals by maximum likelihood with score intervals, or their posterior."""
    n, first, last = int(counts.sum()), float(wanted.min()), float(wanted.max())
    half = 1.0 if math.isfinite(last - first) else 0.5
    width = half * last - half * first
    if ask.what == "mean":  # of numbers in [0, 1], whose squares are floats, and tell what varies from what does not
        wanted = (half * wanted - half * first) / (width or 1.0)
    method = "maximum likelihood" + (", score intervals" if n >= FEW else f"; {BOUNDED}")
    told: tuple[Any, ...]  # value, standard error, interval, band
    if ask.prior is None:
        found = Averages.of(matrix, counts, wanted, names)
        error = found.errors if n > 1 else np.full(len(wanted), np.inf)
        told = found.values, error, found.intervals(_z(ask.level)), found.intervals(found.critical(ask.level))
    else:
        told = bayes.summary(bayes.posterior(matrix, counts, _dirichlet(ask, names)) @ wanted.T, ask.level)
        method, assumptions = bayes.METHOD, f"{assumptions}; {bayes.ASSUMPTIONS}"
    value, error, interval, band = told
    if ask.what == "mean":
        back = [min((half * first + width * float(u[0])) / half, last) for u in (value, *interval)]
        spread = width and width * float(error[0]) / half
        return ask.answer(n, method, assumptions, back[0], spread, back[1:], back[1:])
    return ask.answer(n, method, assumptions, value, error, interval, band, points)


def _dirichlet(ask: _Ask, names: Any) -> np.ndarray:
    """The pseudo-counts of the prior."""
    d = len(names)
    if isinstance(ask.prior, str):
        require.choice("prior", ask.prior, ("uniform",))
        return np.full(d, ask.strength)
    prior = Prior.of(ask.prior)
    if len(prior) != d or prior.left_out:
        raise ValueError(
            f"prior is not allowed: it must have a positive probability for each of the {d} categories or bins"
        )
    by_name = dict(zip(prior.categories, prior.probabilities.tolist(), strict=True))
    named = set(by_name) == set(names)
    return d * ask.strength * (np.array([by_name[name] for name in names]) if named else prior.probabilities)


def _edges(mechanism: Mechanism, bins: Any) -> np.ndarray | None:
    """Ends of bins from a number or a list; None if they are to be chosen."""
    domain = mechanism.domain
    if bins is None or (isinstance(bins, Integral) and not isinstance(bins, bool)):
        if not np.isfinite(domain.lower):
            raise ValueError(f"bins = {bins!r} is not allowed on {domain}: give the ends of bins that hold all inputs")
        if bins is None:
            return None
        return np.linspace(domain.lower, domain.upper, require.integer("bins", bins, low=2, high=1000) + 1)
    allowed = f"bins = {bins!r} is not allowed: it must be an integer >= 2 or at least 3 increasing ends"
    try:
        ends = np.asarray(bins)
    except ValueError:  # rows of several lengths
        raise ValueError(allowed) from None
    if ends.dtype.kind not in "iuf":
        raise TypeError(allowed)
    ends = ends.astype(float)
    if ends.ndim != 1 or ends.size < 3 or not np.isfinite(ends).all() or (np.diff(ends) <= 0).any():
        raise ValueError(allowed)
    if np.isfinite(domain.lower) and (ends[0] != domain.lower or ends[-1] != domain.upper):
        raise ValueError(
            f"bins is not allowed: the ends must go from {domain.lower:g} to {domain.upper:g}, the domain's own"
        )
    return ends


def _binned(mechanism: Mechanism, data: Data, ask: _Ask, bins: Any) -> Estimate:
    """Numbers in bins: histogram, distribution function, quantiles; the mean for Bayesian users."""
    edges = _edges(mechanism, bins)
    span = None if np.isfinite(mechanism.domain.lower) or edges is None else (float(edges[0]), float(edges[-1]))
    channel = Channel.of(mechanism, () if isinstance(data, Tally) else data.outputs, span)
    counts = data.counts(channel)
    if edges is None:
        edges = choose_bins(channel, int(counts.sum()), ask.what)
    matrix = mixed(channel, tuple(edges.tolist()))
    used = matrix.max(axis=1) > 0
    if counts[~used].any():
        raise ValueError("outputs are not allowed: there must be at least one, all of them outputs of this mechanism")
    matrix, counts = matrix[used], counts[used]
    names = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    told = POPULATION.format("distribution") + f"; they are spread evenly within each of the {len(names)} bins"
    if ask.what != "quantile":
        told += " (where they are not, intervals may miss the truth: wide bins that fill unevenly, many at one point or near one)"
    if ask.what == "quantile":
        x, rows = _inputs(channel, float(edges[0]), float(edges[-1]))
        return _quantile(matrix, counts, edges, names, ask, told, (x, rows[used]))
    below = np.tril(np.ones((len(names), len(names))))
    wanted = {"histogram": np.eye(len(names)), "cdf": below, "mean": (edges[:-1] + edges[1:])[None] / 2}[ask.what]
    points: Any = {"histogram": names, "cdf": edges[1:].tolist(), "mean": ()}[ask.what]
    return _functionals(matrix, counts, wanted, points, names, ask, told)


@kept
def _inputs(channel: Channel, low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """(inputs between the ends, in order; P(cell | input))."""
    x = np.linspace(low, high, PLACES + 1)
    if channel.mechanism.domain.tag == "integers":
        x = np.unique(np.round(np.linspace(np.ceil(low), np.floor(high), PLACES + 1)))
    return x, channel.matrix(x)


def evenly(channel: Channel, bins: int) -> np.ndarray:
    """P(cell | input spread evenly over the bin) for so many equal bins of the domain as `FINE` is a multiple of."""
    domain = channel.mechanism.domain
    fine = mixed(channel, tuple(np.linspace(domain.lower, domain.upper, FINE + 1).tolist()))
    return np.asarray(fine.reshape(len(fine), bins, -1).mean(axis=2))


@kept
def choose_bins(channel: Channel, n: int, what: str) -> np.ndarray:
    """Equal bins: as many as can be told apart with a useful standard error if inputs are evenly spread: of their probabilities
    at most one over their number, of distribution functions at most 0.1. A function of the mechanism and n alone.

    **Raises** `NotIdentified` where a distribution function is wanted and fewer than five bins can be told apart: how inputs
    are spread within so wide bins would decide the answer.
    """
    domain, bins_apart = channel.mechanism.domain, 0
    for bins in LADDER:
        edges = np.linspace(domain.lower, domain.upper, bins + 1)
        matrix = evenly(channel, bins)
        matrix = matrix[matrix.max(axis=1) > 0]
        wanted = np.eye(bins) if what == "histogram" else np.tril(np.ones((bins, bins)))
        cells = matrix.mean(axis=1)
        try:
            variance = np.diag(covariance(unbiased(matrix, cells, wanted), cells)) / n
        except NotIdentified:
            continue
        bins_apart = bins_apart or bins
        if what != "histogram" and bins < FEWEST:
            break
        useful = variance.mean() <= bins**-2 if what == "histogram" else variance.max() <= 0.01
        if useful or bins == (2 if what == "histogram" else FEWEST):
            return edges
    half = (domain.lower + domain.upper) / 2
    if what == "histogram" or bins_apart < 2:
        raise NotIdentified(_reason(matrix, [(domain.lower, half), (half, domain.upper)]))
    raise NotIdentified(
        f"the {what} is not identified: the outputs tell only {bins_apart} equal bins apart, and how inputs are spread within so "
        "wide bins would decide the answer; give `bins` to accept that they are spread evenly"
    )


def _quantile(
    matrix: np.ndarray, counts: np.ndarray, edges: np.ndarray, names: Any, ask: _Ask, told: str, fine: tuple[Any, Any]
) -> Estimate:  # fmt: skip
    """Where the estimated distribution function crosses q, if inputs are spread evenly in bins; the interval is without this if.

    **Arguments:** `fine`: inputs in order, and P(cell | input).
    """
    bins, q, n = len(names), ask.q, int(counts.sum())
    assert q is not None
    if ask.prior is not None:
        shares = bayes.posterior(matrix, counts, _dirichlet(ask, names))
        return _credible(np.array([_crossing(np.cumsum(s), edges, q) for s in shares]), n, told, ask)
    found = Averages.of(matrix, counts, np.tril(np.ones((bins + 1, bins)), -1), names)
    here = _crossing(found.values[1:], edges, q)
    # The distribution function moves by one standard error: its slope at one point says little where outputs are few.
    k = int(np.clip(np.searchsorted(edges, here), 1, bins))
    share = (here - edges[k - 1]) / (edges[k] - edges[k - 1])
    g = found.functions[:, k - 1 : k + 1] @ [1 - share, share]
    spread = math.sqrt(found.cells @ (g - found.cells @ g) ** 2 / n)
    moved = [_crossing(found.values[1:], edges, p) if 0 < p < 1 else edges[-(p > 0)] for p in (q - spread, q + spread)]
    error = math.hypot(moved[0] - here, moved[1] - here) / math.sqrt(2)
    least, most = _anyhow(found, ask.level, fine, q)
    reach = min(here, least), max(here, most)
    method = (
        f"value and standard error by maximum likelihood, {AS_IF} within each of the {bins} bins; "
        "the interval follows from a band that holds however they are spread"
    )
    if n < FEW:
        method += f"; {BOUNDED}"
    return ask.answer(n, method, POPULATION.format("distribution"), here, error if n > 1 else math.inf, reach, reach)


def simulated_quantile(mechanism: Mechanism, n: int, q: float, shares: np.ndarray, draws: int = 64) -> float:
    """The root mean square error of `estimate` about the q-quantile of the n people asked, from as many simulated surveys as
    `draws`, with a fixed seed.

    **Arguments:** `shares`: the population's probabilities of equal bins of the domain, within which people are spread evenly;
    their number divides `FINE`.
    **Raises** NotIdentified.
    """
    places = np.linspace(mechanism.domain.lower, mechanism.domain.upper, shares.size + 1)
    channel = Channel.of(mechanism)
    edges = choose_bins(channel, n, "quantile")
    matrix, rows = evenly(channel, edges.size - 1), evenly(channel, shares.size).T
    rows, used = rows / rows.sum(axis=1, keepdims=True), matrix.max(axis=1) > 0
    rng, errors = np.random.default_rng(0), np.empty(draws)
    for i in range(draws):
        people = rng.multinomial(n, shares)
        counts = rng.multinomial(people[people > 0], rows[people > 0]).sum(axis=0)[used]
        errors[i] = _crossing(np.cumsum(maximise(matrix[used], counts)), edges, q) - _crossing(
            np.cumsum(people), places, q
        )
    return math.sqrt(np.mean(errors**2))


def _anyhow(found: Averages, level: float, fine: tuple[Any, Any], q: float) -> tuple[float, float]:
    """Ends of an interval for the quantile that holds whatever the distribution is within the bins.

    Let h(x) = E[g | x]. If less than q of the inputs are at most t, then E g <= q max h(x <= t) + (1 - q) max h(x > t), or the
    second maximum if it is larger: the quantile is at most t where the band for E g lies above. The other end likewise. The band
    holds the averages E g at all ends of bins at once, and so their mixtures, which reach between these.
    """
    x, matrix = fine
    each = found.functions.T @ matrix
    ranges = each.min(axis=1), each.max(axis=1)  # of E g, which is no probability
    low, high = replace(found, ranges=ranges, values=np.clip(found.linear, *ranges)).intervals(found.critical(level))
    share = np.arange(MIXED)[:, None, None] / MIXED

    def blend(rows: np.ndarray) -> np.ndarray:
        """Of neighbours among the ends of bins inside; at the outer ones the distribution function is 0 and 1 anyway."""
        inner = rows[1:-1]
        between = ((1 - share) * inner[:-1] + share * inner[1:]).transpose(1, 0, 2)
        return np.concatenate([between.reshape(-1, rows.shape[1]), inner[-1:]])

    h = blend(each)
    most = _exceeded(blend(low[:, None]), h, q)
    least = _exceeded(1 - blend(high[:, None]), 1 - h[:, ::-1], 1 - q)  # 1 - F, from the other end
    return float(x[x.size - 1 - least]), float(x[most])


def _exceeded(low: np.ndarray, h: np.ndarray, q: float) -> int:
    """The first place for which less than q of the inputs are not at most there: the last one if there is none."""
    upto, beyond = np.maximum.accumulate(h, axis=1), np.maximum.accumulate(h[:, ::-1], axis=1)[:, ::-1]
    limit = np.maximum(q * upto[:, :-1] + (1 - q) * beyond[:, 1:], beyond[:, 1:])
    found = np.flatnonzero((low > limit + 1e-9).any(axis=0))
    return int(found[0]) if found.size else h.shape[1] - 1


def _credible(draws: np.ndarray, n: int, told: str, ask: _Ask) -> Estimate:
    """A quantile from draws of its posterior."""
    value, error, interval, _ = bayes.summary(draws[:, None], ask.level)
    ends = [e[0] for e in interval]
    return ask.answer(n, bayes.METHOD, f"{told}; {bayes.ASSUMPTIONS}", value[0], error[0], ends, ends)


def _crossing(cdf: np.ndarray, edges: np.ndarray, q: float) -> float:
    """Where the piecewise linear distribution function first reaches q."""
    heights = np.concatenate([[0.0], np.maximum.accumulate(cdf)])
    heights /= heights[-1]
    k = int(np.searchsorted(heights, q))
    k = min(max(k, 1), edges.size - 1)
    rise = heights[k] - heights[k - 1]
    share = (q - heights[k - 1]) / rise if rise > 0 else 0.0
    return float(edges[k - 1] + share * (edges[k] - edges[k - 1]))


def _ordered_quantile(matrix: np.ndarray, counts: np.ndarray, symbols: np.ndarray, ask: _Ask) -> Estimate:
    """The least symbol s with P(X <= s) >= q; the interval spans the symbols that no test rejects."""
    q, told, n = ask.q, POPULATION.format("distribution"), int(counts.sum())
    assert q is not None
    wanted = np.tril(np.ones((symbols.size, symbols.size)))
    if ask.prior is not None:
        cdf = bayes.posterior(matrix, counts, _dirichlet(ask, tuple(symbols.tolist()))) @ wanted.T
        return _credible(symbols[np.argmax(cdf >= q - 1e-12, axis=1)], n, told, ask)
    found = Averages.of(matrix, counts, wanted, tuple(symbols.tolist()))
    low, high = found.intervals(_z(ask.level))
    here = float(symbols[int(np.argmax(found.values >= q - 1e-12))])
    # s is the quantile iff F(before s) < q <= F(s): rejected if F(before s) is above q, or F(s) below it.
    before = np.concatenate([[-np.inf], low[:-1]])
    inside = symbols[(before < q) & (high >= q)]
    reach = float(inside.min(initial=here)), float(inside.max(initial=here))
    method = f"maximum likelihood; the interval inverts {'score tests' if n >= FEW else 'tests'}"
    if n < FEW:
        method += f"; {BOUNDED}"
    reached = np.stack([found.values + found.errors, found.values - found.errors]) >= q - 1e-12
    reached[:, -1] = True
    error = math.hypot(*(symbols[np.argmax(reached, axis=1)] - here)) / math.sqrt(2)
    return ask.answer(n, method, told, here, error if n > 1 else math.inf, reach, reach)


def _oracle(oracle: FrequencyOracle, data: Data, ask: _Ask, categories: Any, progress: bool) -> Estimate:
    """Frequencies from the sums of T_c."""
    if ask.prior is not None:
        raise ValueError("prior is not allowed here: it is for mechanisms on an alphabet or an interval")
    sums, squares, n = data.supports(categories, progress)
    own, other = map(float, oracle.exact_rates)
    gap, (least, most) = abs(float(oracle.exact_gap)), sorted((own, other))  # the own category may have the smaller T
    labels = oracle.domain.labels if categories is None else np.ravel(np.asarray(categories)).tolist()
    value = oracle.frequencies(sums / n)
    every = categories is None
    k = sums.size
    sidak = ask.level ** (1 / k)
    if oracle.binary:
        here = np.clip(value, 0.0, 1.0)
        noise = here * own * (1 - own) + (1 - here) * other * (1 - other)
        error = np.sqrt(np.maximum(sums / n * (1 - sums / n), noise) / n) / gap
        ends = [np.sort(oracle.frequencies(_rates(sums, n, least, most, p)), axis=0) for p in (ask.level, sidak)]
        interval, band = (list(np.clip(pair, 0.0, 1.0)) for pair in ends)
        method = "counts of supporting messages, corrected; exact binomial intervals"
    else:
        error = np.sqrt(np.maximum(squares / n - (sums / n) ** 2, 0.0) / n) / gap
        centre = np.clip(value, 0.0, 1.0)
        interval, band = (
            [np.clip(e, 0.0, 1.0) for e in averaged(centre, error, n, oracle.support(), p)] for p in (ask.level, sidak)
        )  # fmt: skip
        method = (
            "averages of the messages' statistics, corrected; score and normal intervals, or those of bounded numbers"
        )
        # Where all messages say the same of a category: the noise, whose sum over the categories is known.
        total = float(oracle.variance(np.array(oracle.domain.labels)).min()) / oracle.domain.d
        error = np.where(error > 0, error, math.sqrt(total / n))
    value = project(value) if every else np.clip(value, 0.0, 1.0)
    if every:
        method += "; the values are the nearest probabilities that sum to 1"
    error = error if n > 1 else np.full(k, np.inf)
    interval = [np.minimum(interval[0], value), np.maximum(interval[1], value)]
    band = [np.minimum(band[0], value), np.maximum(band[1], value)]
    return ask.answer(n, method, POPULATION.format("distribution"), value, error, interval, band, labels)


def clopper_pearson(successes: np.ndarray, n: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """The exact interval for the probability of a success."""
    from scipy.special import betaincinv

    tail, k = (1 - level) / 2, np.asarray(successes, dtype=float)
    low = np.where(k > 0, betaincinv(np.where(k > 0, k, 1), n - k + 1, tail), 0.0)
    high = np.where(k < n, betaincinv(k + 1, np.where(k < n, n - k, 1), 1 - tail), 1.0)
    return low, high


def _rates(successes: np.ndarray, n: int, least: float, most: float, level: float) -> tuple[np.ndarray, np.ndarray]:
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
    half, z2 = _z(level, n) * error, _z(level) ** 2
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


def project(values: np.ndarray) -> np.ndarray:
    """The nearest probabilities that sum to 1: they are nearer to the true ones than `values` are."""
    values = values - values.max()  # which moves nothing, and 1 counts beside numbers of any size
    ordered = np.sort(values)[::-1]
    shift = (np.cumsum(ordered) - 1) / np.arange(1, values.size + 1)
    last = int(np.flatnonzero(ordered > shift)[-1])
    return np.asarray(np.maximum(values - shift[last], 0.0))


# --- means


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


def _mean(mechanism: Mechanism, data: Data, ask: _Ask) -> Estimate:
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


def _corrected(mechanism: Mechanism, data: Data, ask: _Ask, line: tuple[float, float], noise: Any) -> Estimate:
    """The average of (y - a)/b."""
    (n, mean, squares, cubes), (a, b) = data.moments(), line
    same = abs(a) < 1e-9 and abs(b - 1) < 1e-9
    method = "average of the outputs" + ("" if same else f", corrected for E[Y | x] = {a:.6g} + {b:.6g} x")
    first, last = sorted((end - a) / b for end in mechanism.support())
    told = Moments(n, (mean - a) / b, squares / b**2, cubes / b**3)
    return _average(told, mechanism, ask, method, 0.0, (first, last), (noise[0], noise[1] / b**2))


def _average(
    moments: Moments, mechanism: Mechanism, ask: _Ask, method: str, bias: float, ends: tuple[float, float],
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
    t = _z(ask.level, n)
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


def reach(
    n: int, average: Any, squares: Any, cubes: Any, error: Any, ends: tuple[Any, Any], level: float
) -> tuple[np.ndarray, np.ndarray]:
    """How far intervals for means of inputs between `ends` go (below, above) averages of n numbers with these sums of squared
    and cubed deviations: along the least favourable line, a parabola, and to what the `unseen` explain.
    """
    t = _z(level, n)
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
        weight = np.where(cells > UNSEEN, cells, np.inf) ** -0.5
        centre, tried = float(self.inputs.mean()), []
        squares, vectors = np.linalg.eigh(self.gram * np.outer(weight, weight))  # of the singular values
        parts = vectors.T @ (weight * self.moments)
        for threshold in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6):
            used = squares > threshold**2 * squares[-1]
            g = centre + weight * (vectors[:, used] @ (parts[used] / squares[used]))
            bias = float(np.abs(g @ self.elsewhere - self.between).max())
            tried.append(MeanFunction(g, bias, float(cells @ (g - cells @ g) ** 2)))
        best = min(tried, key=lambda found: found.interval(n))
        accurate = [found for found in tried if found.bias <= ACCURATE * (self.inputs[-1] - self.inputs[0])]
        return (
            best if best.bias <= best.error(n) or not accurate else min(accurate, key=lambda found: found.interval(n))
        )


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


def _direction(mechanism: Mechanism, data: Data, ask: _Ask) -> Estimate:
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
        return np.asarray(np.abs(normal) > np.maximum(_z(level, n) * deviation, far))

    low, high = -_last(lambda u: rejected(-u)), _last(rejected)
    # A direction and the opposite one have the same normal component: they are told apart where the mean vector is told from 0,
    # by its length, which for two normal variables is above r with the chance exp(-r^2/2). At quarter turns it is the component.
    either = min(math.erf(math.sqrt(-math.log1p(-ask.level))), math.nextafter(1.0, 0.0))
    if max(-low, high) >= np.pi / 2 or not rejected(np.pi / 2 * np.array([-1, 1]), either).all():
        low, high = -np.pi, np.pi
    value = domain.start + (middle % (2 * np.pi)) / turn
    reach = value + low / turn, value + high / turn
    told = f"{POPULATION.format('mean direction')}; the noise turns with the input. Ends may lie beyond the cut of the circle"
    method = "mean direction of the outputs; the interval inverts a test"
    return ask.answer(n, method, told, value, error / turn, reach, reach)


def _coordinates(mechanism: Any, outputs: Any, ask: _Ask) -> Estimate:
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

"""`optdp.estimate`: what private outputs say about the inputs, and how surely.

Every estimate is an average with an interval: `optdp.statistics.intervals`. Means are in `optdp.statistics.means`.

**Quantiles** of numbers are estimated in bins. Their value and standard error take inputs for evenly spread within each; the
interval does not, and so is not much shorter than a bin, however many outputs there are.

**Histograms and distribution functions** of numbers, and posteriors, take inputs for evenly spread within each bin, and so do
their intervals. Where many inputs are at one point and the noise is small, an interval may never hold the truth. Of inputs that
are known to be integers bins hold these, and where each holds one nothing is taken.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import require
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.frequency import FrequencyOracle
from optdp.problem import Alphabet, Circle, Interval, Prior, PriorLike
from optdp.statistics import bayes
from optdp.statistics.channel import Channel, integers, kept, mixed
from optdp.statistics.intervals import (
    BOUNDED,
    FEW,
    Averages,
    averaged,
    covariance,
    probabilities,
    project,
    rates,
    reason,
    two_sided,
    unbiased,
)
from optdp.statistics.likelihood import maximise
from optdp.statistics.means import mean_direction, mean_of_numbers, mean_of_vectors
from optdp.statistics.result import AS_IF, POPULATION, Ask, Estimate, NotIdentified
from optdp.statistics.tally import Data, Sample, Tally

WHATS = ("mean", "quantile", "cdf", "histogram", "frequencies")
#: Numbers of bins that are tried where none is given.
LADDER = (32, 24, 16, 12, 10, 8, 6, 5, 4, 3, 2)
#: A multiple of all of them.
FINE = 480
#: Most integers that are inputs of a table.
INTEGERS = 4096
#: A distribution function or a quantile needs as many.
FEWEST = 5
#: For quantiles: mixtures of estimates of the distribution function at neighbouring ends of bins that bound the quantile; inputs
#: at which their means are computed.
MIXED, PLACES = 4, 1024


def estimate(
    mechanism: Mechanism, outputs: ArrayLike | Tally, what: str = "mean", *, q: float | None = None,
    bins: int | ArrayLike | None = None, whole: bool = False, level: float = 0.95, categories: ArrayLike | None = None,
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
    - `whole`: for "histogram" and "cdf" of numbers in a domain with 2 to 4,096 integers below 2^53: whether all inputs are
      integers. Bins hold then as many integers each as others, or one more (given ends may go to the domain's upper end plus 1),
      and the distribution function is that at the last one of each.
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
    if not isinstance(whole, bool):
        raise TypeError(f"whole = {whole!r} is not allowed: it must be True or False")
    if whole and (what not in ("histogram", "cdf") or not isinstance(domain, Interval) or not countable(domain)):
        raise ValueError(
            f"whole = True is not allowed with what = {what!r} on {domain}: it is for 'histogram' and 'cdf' of numbers in an "
            f"interval with 2 to {INTEGERS} integers below 2^53"
        )
    if categories is not None and not oracle:
        raise ValueError("categories is not allowed here: it is for frequency oracles")
    if categories is not None and not np.size(categories):
        raise ValueError("categories is not allowed: there must be one at least")
    ask = Ask(what, level, q, prior, require.real("strength", strength, low=0.0, open_low=True))
    if isinstance(outputs, Tally) and not (outputs.mechanism is mechanism or outputs.mechanism == mechanism):
        raise ValueError("outputs is not allowed: it is a tally of another mechanism's")
    vectors = isinstance(mechanism, Mechanism) and domain is not None and domain.dimension is not None
    if not oracle and (vectors or not isinstance(mechanism, Mechanism)):
        return mean_of_vectors(mechanism, outputs, ask)
    data = outputs if isinstance(outputs, Tally) else Sample(mechanism, outputs)
    if isinstance(mechanism, FrequencyOracle):
        return _oracle(mechanism, data, ask, categories, progress)
    if symbols:
        return _symbols(mechanism, data, ask)
    if what == "mean" and prior is None:
        mean = mean_direction if isinstance(domain, Circle) else mean_of_numbers
        return mean(mechanism, data, ask)
    return _binned(mechanism, data, ask, bins, whole)


def countable(domain: Any) -> bool:
    """Whether there are enough integers for bins, and few enough for a table."""
    first, last = math.ceil(domain.lower), math.floor(domain.upper)
    return 2 <= last - first + 1 <= INTEGERS and max(-first, last) < 2**53


def _symbols(mechanism: Mechanism, data: Data, ask: Ask) -> Estimate:
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
    matrix: np.ndarray, counts: np.ndarray, wanted: np.ndarray, points: Any, names: Any, ask: Ask, assumptions: str
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
        told = found.values, error, found.intervals(two_sided(ask.level)), found.intervals(found.critical(ask.level))
    else:
        told = bayes.summary(bayes.posterior(matrix, counts, _dirichlet(ask, names)) @ wanted.T, ask.level)
        method, assumptions = bayes.METHOD, f"{assumptions}; {bayes.ASSUMPTIONS}"
    value, error, interval, band = told
    if ask.what == "mean":
        back = [min((half * first + width * float(u[0])) / half, last) for u in (value, *interval)]
        spread = width and width * float(error[0]) / half
        return ask.answer(n, method, assumptions, back[0], spread, back[1:], back[1:])
    return ask.answer(n, method, assumptions, value, error, interval, band, points)


def _dirichlet(ask: Ask, names: Any) -> np.ndarray:
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


def _parted(domain: Any, bins: int, whole: bool) -> np.ndarray:
    """The ends of equal bins, or of bins of as many integers each, or one more."""
    if not whole:
        return np.linspace(domain.lower, domain.upper, bins + 1)
    first, last = math.ceil(domain.lower), math.floor(domain.upper)
    if bins > last - first + 1:
        raise ValueError(f"bins = {bins} is not allowed: there are {last - first + 1} integers in {domain}")
    return np.round(np.linspace(first, last + 1, bins + 1))


def _edges(mechanism: Mechanism, bins: Any, whole: bool) -> np.ndarray | None:
    """Ends of bins from a number or a list; None if they are to be chosen."""
    domain = mechanism.domain
    if bins is None or (isinstance(bins, Integral) and not isinstance(bins, bool)):
        if not np.isfinite(domain.lower):
            raise ValueError(f"bins = {bins!r} is not allowed on {domain}: give the ends of bins that hold all inputs")
        if bins is None:
            return None
        return _parted(domain, require.integer("bins", bins, low=2, high=1000), whole)
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
    last = (domain.upper, domain.upper + 1) if whole else (domain.upper,)
    if np.isfinite(domain.lower) and (ends[0] != domain.lower or ends[-1] not in last):
        raise ValueError(
            f"bins is not allowed: the ends must go from {domain.lower:g} to {domain.upper:g}, the domain's own"
        )
    return ends


def _binned(mechanism: Mechanism, data: Data, ask: Ask, bins: Any, whole: bool) -> Estimate:
    """Numbers in bins: histogram, distribution function, quantiles; the mean for Bayesian users."""
    edges = _edges(mechanism, bins, whole)
    span = None if np.isfinite(mechanism.domain.lower) or edges is None else (float(edges[0]), float(edges[-1]))
    if span and mechanism.domain.tag == "integers":
        span = float(np.ceil(span[0])), float(np.floor(span[1]))
    channel = Channel.of(mechanism, () if isinstance(data, Tally) else data.outputs, span)
    counts = data.counts(channel)
    if edges is None:
        edges = choose_bins(channel, int(counts.sum()), ask.what, whole)
    matrix = mixed(channel, tuple(edges.tolist()), whole)
    used = matrix.max(axis=1) > 0
    if counts[~used].any():
        raise ValueError("outputs are not allowed: there must be at least one, all of them outputs of this mechanism")
    matrix, counts = matrix[used], counts[used]
    names = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    told = POPULATION.format("distribution")
    inside = integers(mechanism.domain, edges) if whole or mechanism.domain.tag == "integers" else None
    if inside is None:
        told += f"; they are spread evenly within each of the {len(names)} bins"
    elif len(names) < sum(part.size for part in inside):
        told += f"; they are spread evenly over the integers in each of the {len(names)} bins"
    if ask.what != "quantile" and told != POPULATION.format("distribution"):
        told += " (where they are not, intervals may miss the truth: wide bins that fill unevenly, many at one point or near one)"
    if ask.what == "quantile":
        x, rows = _inputs(channel, float(edges[0]), float(edges[-1]))
        return _quantile(matrix, counts, edges, names, ask, told, (x, rows[used]))
    below = np.tril(np.ones((len(names), len(names))))
    last = edges[1:].tolist() if inside is None else [float(part[-1]) for part in inside]
    wanted = {"histogram": np.eye(len(names)), "cdf": below, "mean": (edges[:-1] + edges[1:])[None] / 2}[ask.what]
    points: Any = {"histogram": names, "cdf": last, "mean": ()}[ask.what]
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
def choose_bins(channel: Channel, n: int, what: str, whole: bool = False) -> np.ndarray:
    """Equal bins: as many as can be told apart with a useful standard error if inputs are evenly spread: of their probabilities
    at most one over their number, of distribution functions at most 0.1. A function of the mechanism and n alone.

    **Arguments:** `whole`: bins of integers, at most one for each.

    **Raises** `NotIdentified` where a distribution function is wanted and fewer than five bins can be told apart, each of several
    inputs: how these are spread within so wide bins would decide the answer.
    """
    domain, bins_apart, most = channel.mechanism.domain, 0, LADDER[0]
    if whole:
        most = min(math.floor(domain.upper) - math.ceil(domain.lower) + 1, most)
    least = min(FEWEST, most)
    for bins in (most, *(bins for bins in LADDER if bins < most)):
        edges = _parted(domain, bins, whole)
        matrix = mixed(channel, tuple(edges.tolist()), True) if whole else evenly(channel, bins)
        matrix = matrix[matrix.max(axis=1) > 0]
        wanted = np.eye(bins) if what == "histogram" else np.tril(np.ones((bins, bins)))
        cells = matrix.mean(axis=1)
        try:
            variance = np.diag(covariance(unbiased(matrix, cells, wanted), cells)) / n
        except NotIdentified:
            continue
        bins_apart = bins_apart or bins
        if what != "histogram" and bins < least:
            break
        useful = variance.mean() <= bins**-2 if what == "histogram" else variance.max() <= 0.01
        if useful or bins == (2 if what == "histogram" else least):
            return edges
    half = (domain.lower + domain.upper) / 2
    if what == "histogram" or bins_apart < 2:
        raise NotIdentified(reason(matrix, [(domain.lower, half), (half, domain.upper)]))
    raise NotIdentified(
        f"the {what} is not identified: the outputs tell only {bins_apart} equal bins apart, and how inputs are spread within so "
        "wide bins would decide the answer; give `bins` to accept that they are spread evenly"
    )


def _quantile(
    matrix: np.ndarray, counts: np.ndarray, edges: np.ndarray, names: Any, ask: Ask, told: str, fine: tuple[Any, Any]
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
    g = _height(found.functions, edges, here)
    # The distribution function moves by one standard error: its slope at one point says little where outputs are few.
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


def _height(functions: np.ndarray, edges: np.ndarray, here: float) -> np.ndarray:
    """The function of the output for the distribution function at a place, between those for the ends of its bin."""
    k = int(np.clip(np.searchsorted(edges, here), 1, edges.size - 1))
    share = (here - edges[k - 1]) / (edges[k] - edges[k - 1])
    return np.asarray(functions[:, k - 1 : k + 1] @ [1 - share, share])


def simulated_quantile(mechanism: Mechanism, n: int, q: float, shares: np.ndarray, draws: int = 64) -> float:
    """The root mean square error of `estimate` about the q-quantile of the n people asked, estimated from as many simulated
    surveys as `draws`, with a fixed seed.

    The noise of the distribution function at the quantile, of which the variance is known, is the control variate. Its square's
    variance is known too: of few people the simulations may hold none of the outputs that matter, and would extrapolate.

    **Arguments:** `shares`: the population's probabilities of equal bins of the domain, within which people are spread evenly;
    their number divides `FINE`.
    **Raises** NotIdentified.
    """
    places = np.linspace(mechanism.domain.lower, mechanism.domain.upper, shares.size + 1)
    channel = Channel.of(mechanism)
    edges = choose_bins(channel, n, "quantile")
    matrix, rows = evenly(channel, edges.size - 1), evenly(channel, shares.size).T
    used = matrix.max(axis=1) > 0
    matrix, rows = matrix[used], rows[:, used] / rows.sum(axis=1, keepdims=True)
    wanted = np.tril(np.ones((edges.size, edges.size - 1)), -1)
    g = _height(unbiased(matrix, matrix.mean(axis=1), wanted), edges, _crossing(np.cumsum(shares), places, q))
    means = rows @ g
    rng, errors, noise = np.random.default_rng(0), np.empty(draws), np.empty(draws)
    for i in range(draws):
        people = rng.multinomial(n, shares)
        counts = rng.multinomial(people[people > 0], rows[people > 0]).sum(axis=0)
        errors[i] = _crossing(np.cumsum(maximise(matrix, counts)), edges, q) - _crossing(np.cumsum(people), places, q)
        noise[i] = counts @ g - people @ means
    two, four = (float(shares @ (rows * (g - means[:, None]) ** k).sum(axis=1)) for k in (2, 4))
    squares, known, least = errors**2, n * two, n * four + (2 * n - 3) * n * two**2
    (_, joint), (_, own) = np.cov(squares, noise**2)
    own = max(own, least)
    mean = squares.mean() - (joint / own * (np.mean(noise**2) - known) if own > 0 else 0.0)
    return math.sqrt(mean if mean > 0 else squares.mean())


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


def _credible(draws: np.ndarray, n: int, told: str, ask: Ask) -> Estimate:
    """A quantile from draws of its posterior."""
    value, error, interval, _ = bayes.summary(draws[:, None], ask.level)
    ends = [e[0] for e in interval]
    return ask.answer(n, bayes.METHOD, f"{told}; {bayes.ASSUMPTIONS}", value[0], error[0], ends, ends)


def _crossing(cdf: np.ndarray, edges: np.ndarray, q: float) -> float:
    """Where the piecewise linear distribution function first reaches q."""
    heights = np.concatenate([[0.0], np.maximum.accumulate(cdf)])
    heights /= heights[-1]
    k = min(max(int(np.searchsorted(heights, q)), 1), edges.size - 1)
    rise = heights[k] - heights[k - 1]
    share = (q - heights[k - 1]) / rise if rise > 0 else 0.0
    return float(edges[k - 1] + share * (edges[k] - edges[k - 1]))


def _ordered_quantile(matrix: np.ndarray, counts: np.ndarray, symbols: np.ndarray, ask: Ask) -> Estimate:
    """The least symbol s with P(X <= s) >= q; the interval spans the symbols that no test rejects."""
    q, told, n = ask.q, POPULATION.format("distribution"), int(counts.sum())
    assert q is not None
    wanted = np.tril(np.ones((symbols.size, symbols.size)))
    if ask.prior is not None:
        cdf = bayes.posterior(matrix, counts, _dirichlet(ask, tuple(symbols.tolist()))) @ wanted.T
        return _credible(symbols[np.argmax(cdf >= q - 1e-12, axis=1)], n, told, ask)
    found = Averages.of(matrix, counts, wanted, tuple(symbols.tolist()))
    low, high = found.intervals(two_sided(ask.level))
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


def _oracle(oracle: FrequencyOracle, data: Data, ask: Ask, categories: Any, progress: bool) -> Estimate:
    """Frequencies from the sums of T_c."""
    if ask.prior is not None:
        raise ValueError("prior is not allowed here: it is for mechanisms on an alphabet or an interval")
    sums, squares, n = data.supports(categories, progress)
    gap = abs(float(oracle.exact_gap))
    least, most = sorted(map(float, oracle.exact_rates))  # the own category may have the smaller T
    labels = oracle.domain.labels if categories is None else np.ravel(np.asarray(categories)).tolist()
    found = oracle.frequencies(sums / n)
    here, every = np.clip(found, 0.0, 1.0), categories is None
    value = project(found) if every else here
    if oracle.binary:
        spread = [float(rate * (1 - rate)) for rate in oracle.exact_rates]
        noise = here * spread[0] + (1 - here) * spread[1]
        error = np.sqrt(np.maximum(sums / n * (1 - sums / n), noise) / n) / gap
        interval, band = probabilities(
            lambda p: np.sort(oracle.frequencies(rates(sums, n, least, most, p)), axis=0), value, ask.level
        )
        method = "counts of supporting messages, corrected; exact binomial intervals"
    else:
        error = np.sqrt(np.maximum(squares / n - (sums / n) ** 2, 0.0) / n) / gap
        interval, band = probabilities(partial(averaged, here, error, n, oracle.support()), value, ask.level)
        method = (
            "averages of the messages' statistics, corrected; score and normal intervals, or those of bounded numbers"
        )
        # Where all messages say the same of a category: the noise, whose sum over the categories is known.
        total = float(oracle.variance(np.array(oracle.domain.labels)).min()) / oracle.domain.d
        error = np.where(error > 0, error, math.sqrt(total / n))
    if every:
        method += "; the values are the nearest probabilities that sum to 1"
    error = error if n > 1 else np.full(sums.size, np.inf)
    return ask.answer(n, method, POPULATION.format("distribution"), value, error, interval, band, labels)

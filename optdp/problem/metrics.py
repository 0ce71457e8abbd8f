"""Privacy that falls with distance: inputs that are near each other are hidden from each other well, others less.

A metric says how far the symbols of an alphabet are apart, exactly: `Distances` (a matrix), `Points` (coordinates on a plane or
on the earth), `Graph` (shortest paths); `Apart` is |x - x'| itself, on an interval or a circle. To add one, subclass `Metric`.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from optdp import files
from optdp.exact import Check, Log, Number, Tagged, Within, enclosures, require, show, table, work
from optdp.exact.numbers import digest, latex
from optdp.problem.domains import Alphabet, Circle, Domain, Interval, matrix_of
from optdp.problem.privacy import LDP, Notion, Privacy

#: A metric has at most this many points: there is a factor e^(eps d) for each pair.
POINTS = 2000
#: The mean radius of the earth in kilometres (IUGG).
EARTH = 6371.0088
#: What a probability of 2^-62 or more allows every other one to be: larger factors say nothing.
MOST = 2.0**63
#: The largest power of a rational above 1 that is taken exactly: higher ones are no ratios of integers below 2^63.
POWER = 64


class Metric(Tagged, root=True):
    """Distances between the symbols of an alphabet, in their order: `ball(i, j)` encloses one, `array` has them as floats."""

    def __len__(self) -> int:
        raise NotImplementedError(f"{type(self).__name__} has no size")

    def phrase(self) -> str:
        """How statements name it, exactly."""
        raise NotImplementedError(f"{type(self).__name__} has no phrase")

    def ball(self, i: int, j: int) -> arb:
        """An enclosure of the distance, at the working precision."""
        raise NotImplementedError(f"{type(self).__name__} has no distances")

    @property
    def array(self) -> np.ndarray:
        """All distances, as floats."""
        raise NotImplementedError(f"{type(self).__name__} has no distances")

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Pairs i < j: if K_i <= e^(eps d(i, j)) K_j and the reverse hold for these they hold for all."""
        return np.triu_indices(len(self), 1)

    @property
    def lengths_of_pairs(self) -> np.ndarray:
        """The distance `ball` of each of these pairs, as floats."""
        return np.asarray(self.array[self.pairs])

    #: Where the points are on a map (first across, then up), or None.
    coordinates: np.ndarray | None = None


@dataclass(frozen=True)
class Distances(Metric):
    """Distances given by a matrix.

    **Arguments:** `rows`: a symmetric matrix of finite numbers, 0 on the diagonal and > 0 elsewhere. A distance that is longer
    than a path through others is allowed, and then what follows from the path counts.

    >>> Distances([[0, 1], [1, 0]]).phrase()
    'd = [0, 1; 1, 0]'
    """

    tag = "distances"
    rows: Annotated[
        tuple[Annotated[tuple[float, ...], Within(0.0, 1e150, 2, POINTS)], ...], Within(0.0, 1e150, 2, POINTS)
    ]

    if TYPE_CHECKING:  # what may be given

        def __init__(self, rows: ArrayLike) -> None: ...

    def __post_init__(self) -> None:
        matrix = matrix_of(self.rows)
        if matrix is None or len(matrix) != len(matrix.T):
            raise TypeError("metric is not allowed: a matrix of distances must be square, of numbers")
        if not 2 <= len(matrix) <= POINTS or not np.isfinite(matrix).all():
            raise ValueError(f"metric is not allowed: it must have 2 to {POINTS} rows of finite numbers")
        _sound(matrix.astype(float))
        object.__setattr__(self, "rows", tuple(map(tuple, matrix.astype(float).tolist())))

    def __len__(self) -> int:
        return len(self.rows)

    def phrase(self) -> str:
        if len(self) <= 4:
            return f"d = [{'; '.join(', '.join(f'{v:g}' if float(f'{v:g}') == v else repr(v) for v in r) for r in self.rows)}]"
        return f"d the {len(self)} x {len(self)} distances {digest([self.rows])}"

    def ball(self, i: int, j: int) -> arb:
        return arb(self.rows[i][j])

    @cached_property
    def array(self) -> np.ndarray:
        return np.array(self.rows)


def _sound(matrix: np.ndarray) -> None:
    if (matrix != matrix.T).any() or np.diag(matrix).any():
        raise ValueError("metric is not allowed: distances must be symmetric, and 0 from a symbol to itself")
    off = matrix[~np.eye(len(matrix), dtype=bool)]
    if off.min() < 1e-150 or off.max() > 1e150:
        raise ValueError(
            "metric is not allowed: distances between different symbols must be > 0 (make one of two in the same place), <= 1e150"
        )


@dataclass(frozen=True)
class Points(Metric):
    """Distances between points: on a plane (or in space), or along the surface of the earth.

    **Arguments:** `places`: the coordinates of each point; `kind`: "euclidean", or "haversine" for (latitude, longitude) in
    degrees: kilometres on a sphere with radius 6371.0088.

        >>> print(f"{Points([(52.52, 13.405), (48.8566, 2.3522)], 'haversine').array[0, 1]:.1f}")   # Berlin, Paris
        877.5
    """

    tag = "points"
    places: Annotated[
        tuple[Annotated[tuple[float, ...], Within(-1e150, 1e150, 1, 100)], ...], Within(-1e150, 1e150, 2, POINTS)
    ]
    kind: Literal["euclidean", "haversine"] = "euclidean"

    if TYPE_CHECKING:  # what may be given

        def __init__(self, places: ArrayLike, kind: Literal["euclidean", "haversine"] = "euclidean") -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        matrix = matrix_of(self.places)
        if matrix is None or not 1 <= matrix.shape[1] <= 100:
            raise TypeError("metric is not allowed: points must be lists of equally many numbers")
        if not 2 <= len(matrix) <= POINTS or not (np.abs(matrix) <= 1e150).all():
            raise ValueError(f"metric is not allowed: there must be 2 to {POINTS} points, with finite coordinates")
        if self.kind == "haversine" and (matrix.shape[1] != 2 or (np.abs(matrix) > (90, 360)).any()):
            allowed = "points on the earth must be (latitude, longitude) in degrees, in [-90, 90] and [-360, 360]"
            raise ValueError(f"metric is not allowed: {allowed}")
        object.__setattr__(self, "places", tuple(map(tuple, (matrix.astype(float) + 0.0).tolist())))
        _sound(self.array)

    def __len__(self) -> int:
        return len(self.places)

    def phrase(self) -> str:
        earth = "the distance along the earth (radius 6371.0088 km)"
        what = earth if self.kind == "haversine" else "the Euclidean distance"
        if len(self) * len(self.places[0]) <= 16:
            return f"d {what} of {', '.join(map(str, self.places))}"
        return f"d {what} of {len(self)} points {digest([self.places])}"

    @cached_property
    def _balls(self) -> list[tuple[arb, ...]]:
        """The coordinates; on the earth: latitude and longitude as angles, cosine of the latitude."""
        with ctx.workprec(enclosures.PRECISION):
            if self.kind == "euclidean":
                return [tuple(map(arb, place)) for place in self.places]
            unit = arb.pi() / 180
            return [(arb(a) * unit, arb(b) * unit, (arb(a) * unit).cos()) for a, b in self.places]

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "_balls"}  # balls cannot be pickled

    def ball(self, i: int, j: int) -> arb:
        first, second = self._balls[i], self._balls[j]
        if self.kind == "euclidean":
            return sum(((a - b) ** 2 for a, b in zip(first, second, strict=True)), arb(0)).sqrt()
        up, across = ((a - b) / 2 for a, b in zip(first[:2], second[:2], strict=True))
        height = up.sin() ** 2 + first[2] * second[2] * across.sin() ** 2
        return 2 * arb(EARTH) * height.min(arb(1)).max(arb(0)).sqrt().asin()

    @cached_property
    def array(self) -> np.ndarray:
        return between(self.places, self.places, self.kind)

    @property
    def coordinates(self) -> np.ndarray | None:  # type: ignore[override]
        points = np.array(self.places)
        if points.shape[1] != 2:
            return None
        return points[:, ::-1] if self.kind == "haversine" else points


def between(first: Any, second: Any, kind: str = "euclidean") -> np.ndarray:
    """Distances (first, second) between points, as floats; on the earth in kilometres."""
    a, b = np.asarray(first, dtype=float)[:, None], np.asarray(second, dtype=float)[None]
    if kind == "euclidean":
        off = a - b
        return np.asarray(np.sqrt((off * off).sum(axis=-1)))
    a, b = np.radians(a), np.radians(b)
    height = np.sin((a - b)[..., 0] / 2) ** 2
    height = height + np.cos(a[..., 0]) * np.cos(b[..., 0]) * np.sin((a - b)[..., 1] / 2) ** 2
    return np.asarray(2 * EARTH * np.arcsin(np.sqrt(np.clip(height, 0.0, 1.0))))


@dataclass(frozen=True)
class Graph(Metric):
    """Distances along the edges of a connected graph: the lengths of shortest paths.

    **Arguments:** `edges`: pairs of numbers of symbols; `lengths`: the length of each edge, > 0; left out, all are 1.

    >>> Graph([(0, 1), (1, 2)]).array[0, 2]
    np.float64(2.0)
    """

    tag = "graph"
    edges: Annotated[
        tuple[Annotated[tuple[int, ...], Within(0, POINTS - 1, 2, 2)], ...], Within(0, POINTS - 1, 1, 1_000_000)
    ]
    lengths: Annotated[tuple[float, ...], Within(1e-150, 1e150)] = ()

    if TYPE_CHECKING:  # what may be given

        def __init__(self, edges: ArrayLike, lengths: ArrayLike = ()) -> None: ...

    def __post_init__(self) -> None:
        pairs = []
        for edge in require.listed("edges", self.edges, "pairs of numbers of symbols"):
            if not isinstance(edge, tuple | list) or len(edge) != 2:
                raise TypeError("edges is not allowed: each edge must be a pair of numbers of symbols")
            a, b = (require.integer("end of an edge", end, low=0, high=POINTS - 1) for end in edge)
            pairs.append((min(a, b), max(a, b)))
        if not pairs or any(a == b for a, b in pairs) or len(set(pairs)) < len(pairs):
            raise ValueError("edges is not allowed: edges must lead between different symbols, each given once")
        lengths: Any = require.listed("lengths", self.lengths) or (1.0,) * len(pairs)
        if len(lengths) != len(pairs):
            raise ValueError(f"lengths is not allowed: {len(lengths)} lengths are given for {len(pairs)} edges")
        lengths = tuple(require.real("length of an edge", v, low=1e-150, high=1e150) for v in lengths)
        object.__setattr__(self, "edges", tuple(pairs))
        object.__setattr__(self, "lengths", lengths)
        if not np.isfinite(self.array).all():
            raise ValueError("edges is not allowed: the graph must be connected, with every number up to the largest")

    def __len__(self) -> int:
        return max(b for _, b in self.edges) + 1

    def phrase(self) -> str:
        if len(self.edges) <= 8:
            named = ", ".join(f"{a}-{b}: {v:g}" for (a, b), v in zip(self.edges, self.lengths, strict=True))
            if all(float(f"{v:g}") == v for v in self.lengths):
                return f"d the length of shortest paths along {named}"
        told = f"{len(self.edges)} edges between {len(self)} symbols {digest([self.edges, self.lengths])}"
        return f"d the length of shortest paths along {told}"

    @cached_property
    def _length(self) -> dict[tuple[int, int], float]:
        return {(i, j): length for (i, j), length in zip(self.edges, self.lengths, strict=True)}

    def ball(self, i: int, j: int) -> arb:
        """The length of an edge. **Raises** KeyError for other pairs, whose inequalities follow."""
        return arb(self._length[min(i, j), max(i, j)])

    @property
    def pairs(self) -> tuple[np.ndarray, np.ndarray]:
        ends = np.array(self.edges)
        return ends[:, 0], ends[:, 1]

    @property
    def lengths_of_pairs(self) -> np.ndarray:  # of edges, which may be longer than a path between their ends
        return np.array(self.lengths)

    @cached_property
    def array(self) -> np.ndarray:
        from scipy.sparse import csr_matrix
        from scipy.sparse.csgraph import dijkstra

        count, (i, j) = len(self), self.pairs
        return np.asarray(dijkstra(csr_matrix((self.lengths, (i, j)), shape=(count, count)), directed=False))


@dataclass(frozen=True)
class Apart(Metric):
    """The domain's own distance: |x - x'| on an interval, the shorter arc on a circle."""

    tag = "apart"

    def phrase(self) -> str:
        return "d = |x - x'|"


#: What `as_metric` reads.
MetricLike = Metric | str | np.ndarray | list[Any] | tuple[Any, ...]


def as_metric(metric: MetricLike) -> Metric:
    """A metric from what a user wrote: a `Metric`, "abs" for the domain's own distance, or a matrix of distances.

    **Raises** TypeError or ValueError if it is none of these.
    """
    if isinstance(metric, Metric):
        return metric
    if isinstance(metric, str):
        require.choice("metric", metric, ("abs",), "a matrix of distances, optdp.Points, Graph or Distances")
        return Apart()
    if isinstance(metric, np.ndarray | list | tuple):
        return Distances(metric)
    raise TypeError(
        f"metric = {metric!r} is not allowed: it must be a matrix of distances, optdp.Points, Graph, Distances or 'abs'"
    )


@dataclass(frozen=True)
class MetricLDP(Notion):
    """Metric privacy: K(S|x) <= e^(eps d(x, x')) K(S|x') for all inputs x, x' and sets S of outputs.

    Near inputs are hidden from each other well, far ones less. With places and d in kilometres it is geo-indistinguishability
    with eps per kilometre; with d = 1 for all pairs it is eps-LDP.

    **Arguments:** `eps`: >= 0, an exact number as in `LDP`, per unit of distance; `metric`: `optdp.Points`, `optdp.Graph`,
    `optdp.Distances` or a matrix, in the order of the symbols of the alphabet; "abs" for |x - x'| on an interval or a
    circle. `ideal`: see `Privacy`.

    **Source:** Andres, Bordenabe, Chatzikokolakis, Palamidessi, "Geo-indistinguishability: differential privacy for
    location-based systems" (CCS 2013); Chatzikokolakis et al., "Broadening the scope of differential privacy using metrics" (PETS
    2013).
    """

    tag = "metric-ldp"
    eps: Annotated[Number, Within(0.0)]
    metric: Metric

    if TYPE_CHECKING:  # what may be given

        def __init__(self, eps: Number | str, metric: MetricLike, *, ideal: bool = False) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "metric", as_metric(self.metric))

    @property
    def adjective(self) -> str:
        return f"{show(self.eps)} d-private"

    @property
    def clause(self) -> str:
        return f", where K(S|x) <= e^({show(self.eps)} d(x, x')) K(S|x') with {self.metric.phrase()}"

    def latex(self) -> str:
        return rf"K(S \mid x) \le e^{{{latex(self.eps)}\, d(x, x')}} K(S \mid x')"

    def on(self, domain: Domain) -> Privacy:
        """Itself. **Raises** ValueError where its distances are not those of the domain's inputs."""
        if isinstance(self.metric, Apart):
            if not isinstance(domain, Interval | Circle):
                raise ValueError(f"metric = 'abs' is not allowed on {domain}: it is for an interval or a circle")
        elif not isinstance(domain, Alphabet) or len(domain) != len(self.metric):
            raise ValueError(
                f"metric is not allowed: it has distances between {len(self.metric)} symbols, which {domain} does not have"
            )
        return self

    def _implied_by(self, other: Privacy) -> bool | None:
        if isinstance(other, MetricLDP) and other.metric == self.metric:
            return enclosures.at_most(other.eps, self.eps)
        if isinstance(other, LDP) and not isinstance(self.metric, Apart):
            factors = self.factors[2]
            with ctx.workprec(enclosures.PRECISION):
                return True if enclosures.exp(other.eps) <= arb(float(factors.min())) else None
        return None

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "factors"}

    @cached_property
    def factors(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """(i, j, below, above): for the metric's pairs, floats below and above e^(eps d), none above 2^63 below."""
        i, j = self.metric.pairs
        work.count(20.0 * i.size)
        below, above = np.empty(i.size), np.empty(i.size)
        with ctx.workprec(96):
            eps = enclosures.ball(self.eps)
            for k, (a, b) in enumerate(zip(i.tolist(), j.tolist(), strict=True)):
                grown = eps * self.metric.ball(a, b)
                power = grown.exp() if grown < 600 else arb(MOST * MOST * MOST)
                low, high = float(power.lower()), float(power.upper())  # within an ulp
                below[k] = min(math.nextafter(low, 0.0), MOST)
                above[k] = math.nextafter(high, math.inf) if grown < 600 else math.inf
        return i, j, np.maximum(below, 1.0), above

    @cached_property
    def growth(self) -> np.ndarray:
        """eps d of all pairs as floats, not longer than paths through others."""
        far = float(self.eps) * self.metric.array
        for z in range(len(far)):
            far = np.minimum(far, far[:, z, None] + far[None, z])
        return far

    @property
    def direct(self) -> np.ndarray:
        """Pairs whose inequalities imply all others: those of the metric that are no longer than paths through others."""
        i, j = self.metric.pairs
        found = np.zeros((len(self.metric),) * 2, dtype=bool)
        found[i, j] = found[j, i] = float(self.eps) * self.metric.lengths_of_pairs <= self.growth[i, j] * (1 + 1e-12)
        return found

    def check_rows(self, weights: np.ndarray) -> Check:
        """Whether these rows of integers >= 0 below 2^63, one for each symbol, keep the guarantee, exactly."""
        if len(weights) != len(self.metric):
            told = f"the metric has distances between {len(self.metric)} symbols, the mechanism {len(weights)} of them"
            return Check("privacy", False, told)
        i, j, below, _ = self.factors
        work.count(0.05 * i.size * weights.shape[1])
        shrunk, kept, doubtful = below * (1 - 2.0**-48), True, 0
        for part in np.array_split(np.arange(i.size), max(1, i.size * weights.shape[1] // 2_000_000)):
            for a, b in ((i[part], j[part]), (j[part], i[part])):
                # Where floats decide, they do so with a margin for every rounding; all else is decided by integers.
                high, low = weights[a].astype(float), weights[b].astype(float)
                unsure = np.argwhere(high > low * shrunk[part, None])
                doubtful += len(unsure)
                kept = kept and all(
                    int(weights[a[p], y]) <= int(weights[b[p], y]) * Fraction(float(below[part[p]]))
                    or self._allowed(int(weights[a[p], y]), int(weights[b[p], y]), int(a[p]), int(b[p]))
                    for p, y in unsure.tolist()
                )
        pairs = f"{2 * i.size} pairs of symbols and {weights.shape[1]} outputs"
        told = f"probabilities are at most e^(eps d) times each other for {pairs} ({doubtful} of them in rationals)"
        return Check("privacy", kept, told if kept else f"not true that {told}")

    def _allowed(self, high: int, low: int, i: int, j: int) -> bool:
        """Whether high <= e^(eps d) low, proven."""
        if high == 0 or low == 0:
            return high == 0
        with ctx.workprec(enclosures.PRECISION):
            distance, ratio = self.metric.ball(i, j), Fraction(high, low)
            if isinstance(self.eps, Log) and distance.is_exact():  # ties are possible here alone
                odd, doublings = map(int, distance.man_exp())
                base, power = _root(self.eps.argument, -doublings), odd << max(doublings, 0)
                if base is not None and power <= POWER:
                    return ratio <= base**power
            return bool(enclosures.ball(ratio) < (enclosures.ball(self.eps) * distance).exp())


def _root(base: Fraction, times: int) -> Fraction | None:
    """The square root of a rational, taken so many times, where it is rational."""
    for _ in range(times):
        root = Fraction(math.isqrt(base.numerator), math.isqrt(base.denominator))
        if root * root != base:
            return None
        base = root
    return base


def cities(count: int | None = None) -> tuple[Alphabet, Points, np.ndarray]:
    """The largest cities of Europe: (their names, their places on the earth, their shares of the population).

    **Arguments:** `count`: how many, from the largest on; None: all.

        >>> names, places, shares = cities(3)
        >>> names.symbols
        ('Istanbul', 'Moscow', 'London')
    """
    text = resources.files("optdp").joinpath("data/cities.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(line for line in text.splitlines() if not line.startswith("#")))
    if count is not None:
        rows = rows[: require.integer("count", count, low=2, high=len(rows))]
    people = np.array([float(row["population"]) for row in rows])
    places = Points([(float(row["latitude"]), float(row["longitude"])) for row in rows], "haversine")
    return Alphabet(tuple(row["name"] for row in rows)), places, people / people.sum()


def graph_of(edges: Iterable[tuple[Any, ...]], domain: Alphabet) -> Graph:
    """A graph from edges (symbol, symbol) or (symbol, symbol, length) between the symbols of an alphabet.

    >>> graph_of([("a", "b"), ("b", "c", 2.5)], Alphabet(["a", "b", "c"])).lengths
    (1.0, 2.5)
    """
    listed = [tuple(edge) for edge in edges]
    if any(len(edge) not in (2, 3) for edge in listed):
        raise TypeError("metric is not allowed: each edge must be (symbol, symbol) or (symbol, symbol, length)")
    ends = [tuple(domain.index(list(edge[:2]), "metric: edge").tolist()) for edge in listed]
    return Graph(tuple(ends), tuple(float(edge[2]) if len(edge) == 3 else 1.0 for edge in listed))


def read_metric(path: str | Path) -> tuple[Alphabet, Metric, dict[str, list[str]]]:
    """Places from a CSV file: (their names, their distances, the file's other columns).

    The first column has names. With columns "latitude" and "longitude" (degrees) distances are kilometres along the earth, with
    "x" and "y" they are Euclidean, and otherwise it is a square matrix whose header repeats the names. The format is that of
    `optdp.exact.table`, but lines that begin with # are left out; `path` may be "-" for standard input.

    **Raises** OSError, or ValueError saying what is wrong.
    """
    with files.reading(path) as stream:
        text = stream.read(20_000_001)
    if len(text) > 20_000_000:
        raise ValueError(f"{path} is not allowed: it has more than 20 MB")
    lines = b"".join(line for line in text.splitlines(keepends=True) if not line.startswith(b"#"))
    places = table.Table(io.BytesIO(lines), str(path))
    head, *body = [[cell.strip() for cell in row] for row in (places.header, *places.rows())]
    if len(body) < 2:
        raise ValueError(f"{path} is not allowed: it must have a header and at least two rows")
    columns = dict(zip(head, map(list, zip(*body, strict=True)), strict=True))
    names = [row[0] for row in body]

    def numbers(cells: list[str], what: str) -> list[float]:
        found = [table.real(cell) for cell in cells]
        if None in found:
            raise ValueError(f"{path} is not allowed: {what} must be numbers")
        return found  # type: ignore[return-value]

    for kind, wanted in (("haversine", ("latitude", "longitude")), ("euclidean", ("x", "y"))):
        if set(wanted) <= set(head):
            first, second = (numbers(columns[name], name) for name in wanted)
            metric: Metric = Points(tuple(zip(first, second, strict=True)), kind)  # type: ignore[arg-type]
            return Alphabet(tuple(names)), metric, columns
    if head[1:] != names:
        allowed = "it must have columns latitude and longitude, or x and y, or be a square matrix whose header repeats the names"
        raise ValueError(f"{path} is not allowed: {allowed}")
    return Alphabet(names), Distances([numbers(row[1:], "distances") for row in body]), columns

"""The atlas: certified optima of every kind of problem over a grid, with the published mechanisms beside them, in one file.

`optdp.atlas()` reads the one that comes with the package; `chart_all` (`optdp atlas --out FILE`) computes another, and goes on
where it was interrupted. The documentation shows it as an interactive page.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor, Future, as_completed
from dataclasses import dataclass
from functools import cached_property, partial
from importlib.metadata import version
from importlib.resources import as_file
from importlib.resources import files as resources
from pathlib import Path
from typing import Annotated, Any, Literal

from optdp import files
from optdp.design import registry
from optdp.exact import Fields, Number, Within, require, written
from optdp.exact.fields import load
from optdp.mechanisms.baselines import applicable
from optdp.problem.constraints import Constraint, Unbiased
from optdp.problem.domains import Alphabet, Ball, Box, Circle, Domain, Integers, Interval, Line, OneHot, Sphere
from optdp.problem.families import Additive, AffineWindow, AllMechanisms, Composite, Family, Piecewise
from optdp.problem.losses import MatrixLoss, Threshold
from optdp.problem.metrics import Apart, MetricLDP, Points
from optdp.problem.objectives import Average, BayesRisk, Objective, Quantile, WorstCase
from optdp.problem.priors import Prior
from optdp.problem.privacy import GDP, KL, LDP, LIP, RDP, ApproxDP, Privacy
from optdp.problem.problem import Problem
from optdp.problem.tasks import Aggregate
from optdp.report.compare import guarantees, value_of
from optdp.report.report import Column, Report
from optdp.report.series import Picture, picture
from optdp.solution import Solution
from optdp.status import Status

#: The version of the file format.
FORMAT = 1
#: The grid of each chart that has none of its own.
GRID = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
#: Seconds after which a solve stops: far more than any point takes, so that results do not depend on the clock.
LONG = 3600.0


@dataclass(frozen=True)
class Chart:
    """One curve of the atlas: problems that differ in one number only.

    - `name`: what points and the command line call it; `group`, `variant`: what a reader chooses it by.
    - `privacy`: makes a notion of the number; `domain`, `objective`, `family`, `constraints`: of the problem.
    - `axis`: what the number is called; `grid`: its values; `rtol`: of the solves.
    """

    name: str
    group: str
    variant: str
    privacy: Callable[[Any], Privacy]
    domain: Domain
    objective: Objective
    family: Family = AllMechanisms()  # noqa: RUF009  (frozen)
    constraints: tuple[Constraint, ...] = ()
    axis: str = "eps"
    grid: tuple[float, ...] = GRID
    rtol: float = 1e-3

    def make(self, level: Number) -> Problem:
        """The problem at a number."""
        return Problem(self.privacy(level), self.domain, self.objective, self.family, self.constraints)


#: Losses by name, and how the charts call them.
LOSSES = {"abs": "absolute error", "squared": "squared error"}


def _intervals() -> Iterator[Chart]:
    unit, sides, free = Interval(0.0, 1.0), Interval(-1.0, 1.0), (Unbiased(),)
    group = "One number, common floor (piecewise)"
    domains: tuple[tuple[str, str, Domain], ...] = (("piecewise", "[0, 1]", unit), ("circle", "circle", Circle(1.0)))
    for name, where, domain in domains:
        for loss, text in LOSSES.items():
            yield Chart(f"{name}-{loss}", group, f"{where}, {text}", LDP, domain, WorstCase(loss), Piecewise(3))
    group = "One number, all mechanisms"
    for loss, text in LOSSES.items():
        yield Chart(f"kernel-{loss}", group, f"[0, 1], {text}", LDP, unit, WorstCase(loss), rtol=1e-2)
    text = "[0, 1], absolute error, average of a uniform input"
    yield Chart("kernel-average", group, text, LDP, unit, Average("abs", "uniform"), rtol=1e-2)
    squared = WorstCase("squared")
    text = "[-1, 1], unbiased, squared error"
    yield Chart("kernel-unbiased", group, text, LDP, sides, squared, constraints=free, rtol=1e-2)
    group = "One number, unbiased windows"
    families: dict[str, tuple[str, Family]] = {
        "window-I": ("rectangular window", AffineWindow("I")),
        "window-II": ("triangular window", AffineWindow("II")),
        "window-free": ("any window over a floor", AffineWindow("free")),
        **{
            f"composite-{a}{b}": (f"composite {a}{b}", Composite(a, b))
            for a, b in (("A2", "B1"), ("A3", "B1"), ("A1", "B2"))
        },
    }
    for name, (text, family) in families.items():
        yield Chart(name, group, text, LDP, sides, squared, family, free)


def _noise() -> Iterator[Chart]:
    group = "Additive noise"
    for delta in (0.0, 1e-6, 1e-2):
        for loss, text in LOSSES.items():
            yield Chart(
                f"noise-{delta:g}-{loss}", group, f"real numbers, delta = {delta:g}, {text}",
                partial(ApproxDP, delta=delta), Line(), WorstCase(loss), Additive(),
            )  # fmt: skip
    for delta in (0.0, 1e-6):
        text = f"integers, delta = {delta:g}, absolute error"
        notion = partial(ApproxDP, delta=delta)
        yield Chart(f"integers-{delta:g}-abs", group, text, notion, Integers(), WorstCase("abs"), Additive())
    bars, notion = "real numbers, delta = 1e-06, 0.95-quantile of the error", partial(ApproxDP, delta=1e-6)
    yield Chart("bars-1e-06", group, bars, notion, Line(), Quantile(0.95), Additive(), grid=GRID[:6], rtol=1e-2)
    notions: tuple[tuple[str, str, str, float, int, Callable[[Any], Privacy]], ...] = (
        ("gdp", "Gaussian DP", "mu", 1e-2, 8, GDP),
        ("kl", "Kullback-Leibler divergence", "bound", 2e-2, 6, KL),
        ("rdp", "Rényi divergence of order 2", "bound", 0.15, 6, partial(RDP, 2.0)),
    )
    for name, text, axis, rtol, size, make in notions:
        yield Chart(
            f"{name}-squared", "Additive noise, other notions", f"{text}, squared error", make, Line(), WorstCase("squared"),
            Additive(), axis=axis, grid=GRID[:size], rtol=rtol,
        )  # fmt: skip
    yield Chart(
        "gdp-above", "Additive noise, other notions", "Gaussian DP, probability of an error above 1/50 of the sensitivity", GDP,
        Line(), WorstCase(Threshold(0.02)), Additive(), axis="mu", grid=GRID[:8], rtol=2e-2,
    )  # fmt: skip


def _finite() -> Iterator[Chart]:
    group, size = "One of a few symbols", range(6)
    for name, text, cost in (
        ("hamming", "6 symbols, probability of an error", [[float(i != j) for j in size] for i in size]),
        ("ordered", "6 ordered symbols, absolute error", [[float(abs(i - j)) for j in size] for i in size]),
    ):
        yield Chart(f"symbols-{name}", group, text, LDP, Alphabet(tuple(size)), WorstCase(_matrix(cost)))
    prior, shares = Prior.of([0.4, 0.3, 0.2, 0.1]), (0.1, *GRID[:-1])
    for task in (Aggregate("sum", (0.0, 1.0, 2.0, 3.0)), Aggregate("histogram")):
        yield Chart(
            f"lip-{task.kind}", "Sum and histogram with a known prior", f"{task.kind}, local information privacy",
            partial(LIP, prior=prior), Alphabet(prior.categories), BayesRisk(task, prior), grid=shares,
        )  # fmt: skip
    group = "Places and distances"
    places = Points(tuple((float(i), float(j)) for i in range(3) for j in range(3)))
    apart = WorstCase(_matrix(places.array.tolist()))
    notion = partial(MetricLDP, metric=places)
    yield Chart("places-grid", group, "3 x 3 places, distance", notion, Alphabet(tuple(range(9))), apart)
    for loss, text in LOSSES.items():
        yield Chart(
            f"metric-{loss}", group, f"[0, 1], {text}", partial(MetricLDP, metric=Apart()), Interval(0.0, 1.0),
            WorstCase(loss), grid=GRID[:7], rtol=2e-2,
        )  # fmt: skip
        yield Chart(
            f"metric-circle-{loss}", group, f"the circle of period 1, {text}", partial(MetricLDP, metric=Apart()), Circle(1.0),
            WorstCase(loss), rtol=1e-2,
        )  # fmt: skip
        square = Box((0.0, 0.0), (1.0, 1.0))
        yield Chart(
            f"square-{loss}", group, f"[0, 1] x [0, 1], {text}", LDP, square, WorstCase(loss), grid=GRID[:8], rtol=2e-2
        )


def _matrix(rows: Sequence[Sequence[float]]) -> MatrixLoss:
    return MatrixLoss(tuple(map(tuple, rows)))


def _vectors() -> Iterator[Chart]:
    squared, free = WorstCase("squared"), (Unbiased(),)
    group = "One of d categories, unbiased frequencies"
    for d in (4, 16, 128, 1024):
        yield Chart(f"frequency-{d}", group, f"d = {d}", LDP, OneHot(d), squared, constraints=free)
    group = "Unbiased vectors"
    for d in (2, 10, 100, 1000):
        yield Chart(f"sphere-{d}", group, f"unit vectors, d = {d}", LDP, Sphere(d), squared, constraints=free)
    for d in (10, 100):
        text = f"vectors of length at most 1, d = {d}"
        yield Chart(f"ball-{d}", group, text, LDP, Ball(d), squared, constraints=free, rtol=1e-2)
    for d in (2, 20):
        text = f"vectors of the cube [-1, 1]^d, d = {d}"
        yield Chart(f"cube-{d}", group, text, LDP, Box((-1.0,) * d, (1.0,) * d), squared, constraints=free, rtol=1e-2)


#: The charts by name.
CHARTS: dict[str, Chart] = {
    chart.name: chart for charts in (_intervals, _noise, _finite, _vectors) for chart in charts()
}
_PLACE = {name: place for place, name in enumerate(CHARTS)}


@dataclass(frozen=True)
class Rival:
    """A published mechanism at a point: its objective (rounded up if `proven`, else numerical) and what it guarantees."""

    name: Annotated[str, Within(most=100)]
    value: Annotated[float, Within(0.0)]
    proven: bool
    guarantee: Literal["yes", "no", "in real arithmetic", "not known", "not claimed"]
    family: bool


@dataclass(frozen=True)
class Point:
    """One certified optimum: the bracket [lower_bound, value] of `problem`, and what stands beside it.

    - `chart`, `level`: where in the atlas; `rtol`: the gap that was asked for; `status`: how the solve ended, as computed then.
    - `verified`: whether every check of `solution.verify()` passed.
    - `digest`: of the solution, by `digest`: solved anew by the same version, it is the same.
    - `rivals`: the published mechanisms; `picture`: the optimal mechanism's.
    """

    chart: Annotated[str, Within(most=100)]
    level: float
    problem: Problem
    rtol: Annotated[float, Within(0.0, 1.0)]
    lower_bound: Annotated[float, Within(0.0)]
    value: Annotated[float, Within(0.0)]
    status: Annotated[str, Within(words=tuple(status.name for status in Status))]
    verified: bool
    digest: Annotated[str, Within(most=64)]
    rivals: Annotated[tuple[Rival, ...], Within(most=100)]
    picture: Picture

    def __post_init__(self) -> None:
        if self.lower_bound > self.value:
            raise ValueError(f"lower_bound = {self.lower_bound!r} is not allowed: it must be at most {self.value!r}")
        if len(self.digest) != 64 or set(self.digest) - set("0123456789abcdef"):
            raise ValueError("digest is not allowed: it must be 64 hexadecimal digits")

    @property
    def gap(self) -> float:
        """(value - lower_bound)/value; 0 where value is 0."""
        return (self.value - self.lower_bound) / self.value if self.value else 0.0

    @property
    def certified(self) -> bool:
        """Whether all was verified and the gap is at most `rtol`."""
        return self.verified and self.gap <= self.rtol

    @cached_property
    def line(self) -> str:
        """JSON, as the file has it: made once, because the file is written after every point."""
        return _canonical(written(self))

    @cached_property
    def place(self) -> tuple[int, str, float, str]:
        """What points are sorted by: chart, level, and then whatever is not the same."""
        return _PLACE.get(self.chart, len(_PLACE)), self.chart, self.level, self.line


def digest(solution: Solution) -> str:
    """The SHA-256 of what a saved solution proves: its JSON with sorted names and no spaces, without the entries `optdp`
    (version) and `program` (how it was solved, with the time), as 64 hexadecimal digits.
    """
    data = {name: part for name, part in solution.to_dict().items() if name not in ("optdp", "program")}
    return hashlib.sha256(_canonical(data).encode()).hexdigest()


def _canonical(data: Any) -> str:
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def certify(chart: str, level: float, problem: Problem, rtol: float) -> Point:
    """Solve one problem, verify the solution, and evaluate the published mechanisms: one point."""
    solution = registry.solve(problem, rtol, LONG)
    rivals = []
    for name, mechanism in applicable(problem).items():
        value, proven = value_of(mechanism, problem.objective)
        inside = problem.family.contains(mechanism, problem.eps)
        rivals.append(Rival(name, value, proven, guarantees(mechanism, problem), bool(inside)))  # type: ignore[arg-type]
    return Point(
        chart, level, problem, rtol, solution.lower_bound, solution.value, solution.status.name, bool(solution.verify()),
        digest(solution), tuple(rivals), picture(solution.mechanism),
    )  # fmt: skip


@dataclass(frozen=True, repr=False)
class Atlas:
    """Certified optima over grids: `points`, in the order of the charts, computed by the `version` of this package.

    >>> import optdp
    >>> known = optdp.atlas()
    >>> point = known.find(optdp.Problem(optdp.LDP(1.0), (0, 1), "abs", optdp.Piecewise(3)))
    >>> point.certified, round(point.value, 4)
    (True, 0.3775)
    """

    version: Annotated[str, Within(most=50)]
    points: Annotated[tuple[Point, ...], Within(most=100_000)]

    @cached_property
    def _by_problem(self) -> dict[Problem, Point]:
        return {point.problem: point for point in self.points}

    @property
    def charts(self) -> tuple[str, ...]:
        """The names of the charts that have points."""
        return tuple(dict.fromkeys(point.chart for point in self.points))

    def __repr__(self) -> str:
        return f"<Atlas of version {self.version}: {len(self.points)} points in {len(self.charts)} charts>"

    def find(self, problem: Problem) -> Point | None:
        """The point of a problem, if it is in the atlas."""
        return self._by_problem.get(problem)

    def report(self, chart: str) -> Report:
        """A chart's brackets, and each published mechanism's objective over the optimum. **Raises** ValueError."""
        require.choice("chart", chart, self.charts)
        points = [point for point in self.points if point.chart == chart]
        known = CHARTS.get(chart)
        axis = known.axis if known else "level"
        names = dict.fromkeys(rival.name for point in points for rival in point.rivals)
        rows = [
            {axis: point.level, "lower": point.lower_bound, "value": point.value, "gap": point.gap,
             "certified": point.certified, "digest": point.digest[:12]}
            | {rival.name: rival.value / point.value for rival in point.rivals if point.value}
            for point in points
        ]  # fmt: skip
        columns = [
            Column(axis, axis, "g"), Column("lower", "lower bound", ".9g", "down"), Column("value", "value", ".9g", "up"),
            Column("gap", "gap", ".1e"), Column("certified", "certified"),
            *(Column(name, f"{name} / value", ".4f") for name in names), Column("digest", "digest"),
        ]  # fmt: skip
        title = f"{known.group}: {known.variant}" if known else chart
        return Report(title, columns, rows, [f"In the last row: {points[-1].problem.statement()}."])

    def save(self, path: str | Path) -> None:
        """Write the atlas, a line for each point, whole or not at all."""
        head = _canonical({"format": FORMAT, "version": self.version})
        lines = ",\n".join(point.line for point in self.points)
        files.write_text(path, f'{{"optdp":{head},"points":[\n{lines}\n]}}\n')

    @staticmethod
    def read(fields: Fields) -> Atlas:
        """The atlas from entries that are checked one by one. **Raises** FieldError."""
        head = fields.child("optdp")
        head.integer("format", FORMAT, FORMAT)
        name = head.text("version", 50)
        head.done()
        points = fields.typed("points", Annotated[tuple[Point, ...], Within(most=100_000)])
        fields.done()
        return Atlas(name, points)


def atlas(path: str | Path | None = None) -> Atlas:
    """The certified optima that come with the package, or those of a file that `optdp atlas --out FILE` wrote.

    What is read is what somebody computed: `optdp.solve(point.problem, point.rtol)` proves a point anew, and its digest agrees.

    **Arguments:** `path`: a file, "-" for standard input; None: that of the package.

    **Returns** an `Atlas`. **Raises** OSError, or FieldError (a ValueError) in one sentence.

        >>> import optdp
        >>> known = optdp.atlas()
        >>> all(point.lower_bound <= point.value for point in known.points)
        True
    """
    if path is not None:
        return load(path, Atlas.read, kind="an atlas")
    with as_file(resources("optdp") / "data" / "atlas.json") as file:
        return load(file, Atlas.read)


@dataclass(frozen=True)
class Charted:
    """What `chart_all` did: the atlas in the file, how many points were solved now and how many were there."""

    atlas: Atlas
    solved: int
    kept: int


def chart_all(
    path: str | Path, charts: Sequence[str] | None = None, *, levels: Iterable[Number] | None = None,
    rtol: float | None = None, executor: Executor | None = None, progress: bool | None = None,
) -> Charted:  # fmt: skip
    """Compute an atlas, or what is missing of one: the file is written whole after every point, and nothing is solved twice.

    **Arguments:**

    - `path`: the file; points in it for the same problem and tolerance are kept, and so are those that are not asked for.
    - `charts`: names of `CHARTS`; None: all.
    - `levels`: the grid in place of that of each chart; `rtol`: the tolerance in place of that of each chart.
    - `executor`: any `concurrent.futures.Executor` (a dask client's `get_executor()` is one); None: this process.
    - `progress`: a bar on stderr; None: only if it is a terminal.

    **Returns** the counts and the atlas. **Raises** ValueError if the file was computed by another version of this package;
    RuntimeError, naming the first, after all others have been solved, if points failed.
    """
    from tqdm import tqdm

    names = list(CHARTS) if charts is None else [require.choice("charts", name, tuple(CHARTS)) for name in charts]
    given = None if levels is None else list(levels)
    if rtol is not None:
        rtol = require.real("rtol", rtol, low=0.0, open_low=True, high=1.0)
    wanted = {
        (name, problem): (name, float(level), problem, CHARTS[name].rtol if rtol is None else rtol)
        for name in names
        for level in (CHARTS[name].grid if given is None else given)
        for problem in [CHARTS[name].make(level)]
    }
    own = version("optdp")
    there = load(path, Atlas.read) if Path(path).exists() else Atlas(own, ())
    if there.version != own:
        raise ValueError(f"{Path(path).name} is not allowed: optdp {there.version} computed it, and this is {own}")
    found = {(point.chart, point.problem): point for point in there.points}
    todo = [task for key, task in wanted.items() if key not in found or found[key].rtol != task[3]]
    failed: list[tuple[Any, Exception]] = []
    made = Atlas(own, tuple(sorted(there.points, key=lambda point: point.place)))
    hidden = not (sys.stderr.isatty() if progress is None else progress)
    for task, result in tqdm(_results(todo, executor), total=len(todo), desc="atlas", disable=hidden, leave=False):
        if isinstance(result, Exception):
            failed.append((task, result))
            continue
        found[result.chart, result.problem] = result
        made = Atlas(own, tuple(sorted(found.values(), key=lambda point: point.place)))
        made.save(path)
    if failed:
        (name, level, _, _), error = failed[0]
        told = (
            f"{len(failed)} of {len(todo)} points were not solved; {name} at {level:g}: {type(error).__name__}: {error}"
        )
        raise RuntimeError(told) from error
    if not todo:
        made.save(path)
    return Charted(made, len(todo), len(wanted) - len(todo))


Task = tuple[str, float, Problem, float]


def _results(todo: Sequence[Task], executor: Executor | None) -> Iterator[tuple[Task, Point | Exception]]:
    """(task, its point or why there is none), as they come. When nobody goes on asking, what has not begun is cancelled."""
    if executor is None:
        for task in todo:
            try:
                made: Point | Exception = certify(*task)
            except Exception as error:  # said at the end: the others are worth having
                made = error
            yield task, made
        return
    futures: dict[Future[Point], Task] = {executor.submit(certify, *task): task for task in todo}
    try:
        for future in as_completed(futures):
            failure = future.exception()
            yield futures[future], failure if isinstance(failure, Exception) else future.result()
    finally:
        for future in futures:
            future.cancel()

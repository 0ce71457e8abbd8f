"""Linear programs as plain data, solvers behind one protocol, results with one status and named duals.

To add a solver, subclass `LinearSolver` and write `solve`; `docs/extending/solver.md` is a worked example with scipy.
"""

from __future__ import annotations

import enum
import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import require

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

#: Values for some columns; None: the default, or no change.
Limits = ArrayLike | None
Where = slice | np.ndarray

#: Seconds that a solver is given at least.
SHORTEST = 0.1

log = logging.getLogger("optdp.solvers")


class LinearStatus(enum.Enum):
    """How a linear solve ended. A point is there for OPTIMAL and IMPRECISE alone."""

    OPTIMAL = "optimal"
    IMPRECISE = "a point short of the tolerances: to be checked like any other"
    INFEASIBLE = "infeasible"
    UNBOUNDED = "unbounded, or infeasible"
    TIME_LIMIT = "time limit"
    ITERATION_LIMIT = "iteration limit"
    FAILED = "the solver failed"


class SolverFailure(RuntimeError):
    """A solver gave no usable point; `status` says how it ended."""

    def __init__(self, message: str, status: LinearStatus = LinearStatus.FAILED) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class LinearProgram:
    """min cost.x subject to row_lower <= A x <= row_upper and lower <= x <= upper (or max, if `maximise`).

    **Arguments:** `cost`: n costs; `rows`: A, a scipy sparse matrix or array (m, n); `row_lower`, `row_upper`: m limits, infinite
    where there is none; `lower`, `upper`: n limits (default 0 and infinity); `blocks`: names of groups of rows, whose duals
    `LinearResult.dual(name)` gives; `variables`: names of groups of columns, for `LinearResult.value(name)`.
    """

    cost: np.ndarray
    rows: Any
    row_lower: np.ndarray
    row_upper: np.ndarray
    lower: np.ndarray = None  # type: ignore[assignment]  # the default is made below, from the number of costs
    upper: np.ndarray = None  # type: ignore[assignment]
    maximise: bool = False
    blocks: Mapping[str, slice] = field(default_factory=dict)
    variables: Mapping[str, slice] = field(default_factory=dict)
    name: str = "optdp"

    def __post_init__(self) -> None:
        from scipy.sparse import csr_matrix

        self.cost = np.asarray(self.cost, dtype=float)
        self.rows = csr_matrix(self.rows, dtype=float)
        n, m = self.cost.size, self.rows.shape[0]
        self.lower = np.asarray(np.zeros(n) if self.lower is None else self.lower, dtype=float)
        self.upper = np.asarray(np.full(n, np.inf) if self.upper is None else self.upper, dtype=float)
        self.row_lower, self.row_upper = (np.asarray(v, dtype=float) for v in (self.row_lower, self.row_upper))
        sizes = (self.rows.shape, self.lower.size, self.upper.size, self.row_lower.size, self.row_upper.size)
        if sizes != ((m, n), n, n, m, m):
            raise ValueError(f"a linear program with {n} costs and {m} rows cannot have parts of the sizes {sizes[1:]}")
        for part in ("cost", "lower", "upper", "row_lower", "row_upper"):
            if np.isnan(getattr(self, part)).any():
                raise ValueError(f"{part} is not allowed: a linear program has no NaN")

    def solve(self, solver: LinearSolver | None = None, *, time_limit: float = math.inf) -> LinearResult:
        """Solve it, by default with HiGHS."""
        return (solver or Highs()).solve(self, time_limit=time_limit)

    def write(self, path: str | Path) -> None:
        """Write it as `.mps` or `.lp`. **Raises** ValueError for another ending."""
        if Path(path).suffix not in (".mps", ".lp"):
            raise ValueError(f"path = {str(path)!r} is not allowed: a linear program is written as .mps or .lp")
        _highs_of(self).writeModel(str(path))


@dataclass(frozen=True)
class LinearResult:
    """What a solver says of a program: raw, unverified output.

    `x`: the point (n); `row_dual`: the change of the objective per unit of each row's limit (m); `reduced_cost` (n). They are
    empty unless `usable`. `dual("mass")` and `value("floor")` pick the groups that the program names.
    """

    status: LinearStatus
    objective: float = math.nan
    x: np.ndarray = field(default_factory=lambda: np.empty(0))
    row_dual: np.ndarray = field(default_factory=lambda: np.empty(0))
    reduced_cost: np.ndarray = field(default_factory=lambda: np.empty(0))
    iterations: int = 0
    message: str = ""
    program: LinearProgram | None = field(default=None, repr=False, compare=False)

    @property
    def usable(self) -> bool:
        """Whether there is a finite point."""
        finite = math.isfinite(self.objective) and np.isfinite(self.x).all() and np.isfinite(self.row_dual).all()
        return self.status in (LinearStatus.OPTIMAL, LinearStatus.IMPRECISE) and bool(finite)

    def checked(self) -> LinearResult:
        """The result itself. **Raises** SolverFailure if it is not usable."""
        if not self.usable:
            ended = f"{self.status.value} ({self.message})" if self.message else self.status.value
            raise SolverFailure(f"the solver stopped without a solution: {ended}", self.status)
        return self

    def dual(self, block: str) -> np.ndarray:
        """The duals of a named group of rows."""
        return self.row_dual[self._of("blocks", block)]

    def value(self, variables: str) -> np.ndarray:
        """The values of a named group of columns."""
        return self.x[self._of("variables", variables)]

    def _of(self, kind: str, name: str) -> slice:
        known: Mapping[str, slice] = getattr(self.program, kind) if self.program else {}
        require.choice(kind, name, tuple(known))
        return known[name]


class LinearSolver(ABC):
    """A solver of linear programs. Only `solve` must be written; `session` re-solves from scratch unless overridden."""

    name: str = "a linear solver"

    @abstractmethod
    def solve(self, program: LinearProgram, *, time_limit: float = math.inf) -> LinearResult:
        """Solve `program`. Must not raise for what a `LinearStatus` can say."""

    def session(self, program: LinearProgram) -> Session:
        """A program that will grow and be solved again."""
        return Session(self, program)


class Session:
    """A growing linear program: columns and rows are added between solves.

    This one rebuilds the program each time, which any solver can do; `Highs` keeps its basis.
    """

    def __init__(self, solver: LinearSolver, program: LinearProgram) -> None:
        self.solver, self._program = solver, program
        #: Rows and columns with what has been added, and of that (entries, first row, first column) if not yet in the matrix.
        self.size, self._added = program.rows.shape, list[tuple[Any, int, int]]()

    @property
    def program(self) -> LinearProgram:
        """The program as it stands."""
        if self._added:
            from scipy.sparse import csr_matrix

            parts = [(p.tocoo(), i, j) for p, i, j in [(self._program.rows, 0, 0), *self._added]]
            places = [
                np.concatenate([p.row + i for p, i, _ in parts]),
                np.concatenate([p.col + j for p, _, j in parts]),
            ]
            self._program.rows = csr_matrix((np.concatenate([p.data for p, _, _ in parts]), places), shape=self.size)
            self._added = []
        return self._program

    def add_columns(self, cost: ArrayLike, columns: csr_matrix, lower: Limits = None, upper: Limits = None) -> None:
        """Add k variables: `columns` is a sparse (m, k) matrix of their entries in the present rows."""
        p, k, (m, n) = self._program, np.size(cost), self.size
        self.size = m, n + k
        self._added.append((columns, 0, n))
        p.cost = np.concatenate([p.cost, np.asarray(cost, dtype=float)])
        p.lower = np.concatenate([p.lower, np.zeros(k) if lower is None else lower])
        p.upper = np.concatenate([p.upper, np.full(k, np.inf) if upper is None else upper])

    def add_rows(self, rows: csr_matrix, row_lower: ArrayLike, row_upper: ArrayLike) -> None:
        """Add rows: `rows` is a sparse (k, n) matrix over the present columns."""
        p, k, (m, n) = self._program, np.size(row_lower), self.size
        self.size = m + k, n
        self._added.append((rows, m, 0))
        p.row_lower = np.concatenate([p.row_lower, np.asarray(row_lower, dtype=float)])
        p.row_upper = np.concatenate([p.row_upper, np.asarray(row_upper, dtype=float)])

    def change(self, index: Where, *, cost: Limits = None, lower: Limits = None, upper: Limits = None) -> None:
        """Change costs or limits of the columns `index`."""
        for name, values in (("cost", cost), ("lower", lower), ("upper", upper)):
            if values is not None:
                getattr(self._program, name)[index] = values

    def solve(self, *, time_limit: float = math.inf, method: str | None = None) -> LinearResult:
        """Solve the program as it stands (`method`: another one of the solver's methods, this time)."""
        return self.solver.solve(self.program, time_limit=time_limit)


class Guarded(LinearSolver):
    """Another solver, of which nothing is expected: what it raises, or returns instead of a `LinearResult`, is a failed solve.

    `asked`: whether it has been asked anything.
    """

    def __init__(self, inner: LinearSolver) -> None:
        self.inner, self.name, self.asked = inner, str(inner.name)[:100], False

    def solve(self, program: LinearProgram, *, time_limit: float = math.inf) -> LinearResult:
        return self.session(program).solve(time_limit=time_limit)

    def session(self, program: LinearProgram) -> Session:
        return _GuardedSession(self, program)


class _GuardedSession(Session):
    """Another session beside the plain program, until it raises: then every solve has failed."""

    solver: Guarded

    def __init__(self, solver: Guarded, program: LinearProgram) -> None:
        super().__init__(solver, program)
        self.failure = ""
        self.inner: Any = None
        own = replace(program, rows=program.rows.copy())  # what both would grow
        self._tried(lambda: setattr(self, "inner", solver.inner.session(own)))

    def _tried(self, call: Callable[[], Any]) -> Any:
        if not self.failure:
            try:
                return call()
            except Exception as error:
                log.debug("%s failed", self.solver.name, exc_info=True)
                self.failure = f"{self.solver.name} raised {type(error).__name__}: {error}"
        return None

    def add_columns(self, cost: ArrayLike, columns: csr_matrix, lower: Limits = None, upper: Limits = None) -> None:
        super().add_columns(cost, columns, lower, upper)
        self._tried(lambda: self.inner.add_columns(cost, columns, lower, upper))

    def add_rows(self, rows: csr_matrix, row_lower: ArrayLike, row_upper: ArrayLike) -> None:
        super().add_rows(rows, row_lower, row_upper)
        self._tried(lambda: self.inner.add_rows(rows, row_lower, row_upper))

    def change(self, index: Where, *, cost: Limits = None, lower: Limits = None, upper: Limits = None) -> None:
        super().change(index, cost=cost, lower=lower, upper=upper)
        self._tried(lambda: self.inner.change(index, cost=cost, lower=lower, upper=upper))

    def solve(self, *, time_limit: float = math.inf, method: str | None = None) -> LinearResult:
        self.solver.asked = True
        limit = max(time_limit, SHORTEST)  # what 0 means to a solver nobody knows
        found = self._tried(lambda: self.inner.solve(time_limit=limit, method=method))
        program, message = self.program, self.failure
        if isinstance(found, LinearResult) and isinstance(found.status, LinearStatus):
            made = self._tried(lambda: _as_arrays(found, program))
            if made is not None:
                complete = (made.row_dual.shape, made.x.shape) == (program.row_lower.shape, program.cost.shape)
                if (complete and made.usable) or found.status not in (LinearStatus.OPTIMAL, LinearStatus.IMPRECISE):
                    return made
                message = f"{self.solver.name} called a point {found.status.value} that is not finite or not complete"
        elif not self.failure:
            message = f"{self.solver.name} returned a {type(found).__name__} and not a LinearResult"
        return LinearResult(LinearStatus.FAILED, message=message or self.failure, program=program)


def _as_arrays(found: LinearResult, program: LinearProgram) -> LinearResult:
    """A result of somebody else's with arrays of its own; raises where its parts are no numbers."""
    x, dual, reduced = (np.array(v, dtype=float) for v in (found.x, found.row_dual, found.reduced_cost))
    return LinearResult(
        found.status, float(found.objective), x, dual, reduced, int(found.iterations), str(found.message), program
    )


@dataclass(frozen=True)
class Highs(LinearSolver):
    """HiGHS, in process.

    **Arguments:** `method`: "auto" (simplex), "simplex", "ipm" (interior point) or "pdlp" (first order); `threads`;
    `tolerance`: of feasibility and optimality; `crossover`: from an interior point to a vertex; `iterations`: limit of simplex
    iterations; `options`: further HiGHS options by name. Where HiGHS ends in an error, or does not know without presolve
    or scaling, it solves once more from the start, with its defaults of both.
    """

    method: str = "auto"
    threads: int = 1
    tolerance: float = 1e-9
    crossover: bool = True
    iterations: int | None = None
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        require.choice("method", self.method, ("auto", "simplex", "ipm", "pdlp"))
        require.integer("threads", self.threads, low=1)
        require.real("tolerance", self.tolerance, low=1e-10, high=1e-2)

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"HiGHS {self.method}"

    def solve(self, program: LinearProgram, *, time_limit: float = math.inf) -> LinearResult:
        return self.session(program).solve(time_limit=time_limit)

    def session(self, program: LinearProgram) -> Session:
        return _HighsSession(self, program)


#: HiGHS's defaults of what is switched off for speed.
USUAL: dict[str, Any] = {"presolve": "choose", "simplex_scale_strategy": 2}
#: Iterations for each row and column after which a solve that began with a basis begins anew; HiGHS's own limit.
STALLED, UNLIMITED = 10, 2**31 - 1


class _HighsSession(Session):
    """A live HiGHS model beside the plain program: it keeps its basis from solve to solve."""

    solver: Highs

    def __init__(self, solver: Highs, program: LinearProgram) -> None:
        super().__init__(solver, program)
        self.sign = -1.0 if program.maximise else 1.0  # always minimise: PDLP's duals of maxima have the other sign
        self.highs, self.begun = _highs_of(program, minimise=True), False
        self.bare = [(option, USUAL[option]) for option, _ in solver.options if option in USUAL]
        for option, value in (
            ("threads", solver.threads), ("primal_feasibility_tolerance", solver.tolerance),
            ("dual_feasibility_tolerance", solver.tolerance), ("ipm_optimality_tolerance", max(solver.tolerance, 1e-12)),
            ("run_crossover", "on" if solver.crossover else "off"),
            *solver.options,
        ):  # fmt: skip
            self.highs.setOptionValue(option, value)

    def add_columns(self, cost: ArrayLike, columns: csr_matrix, lower: Limits = None, upper: Limits = None) -> None:
        before = self._program.cost.size
        super().add_columns(cost, columns, lower, upper)
        p, new = self._program, columns.tocsc()
        k = p.cost.size - before
        self.highs.addCols(
            k, self.sign * p.cost[before:], p.lower[before:], p.upper[before:], new.nnz, new.indptr[:-1].astype(np.int32),
            new.indices.astype(np.int32), new.data,
        )  # fmt: skip

    def add_rows(self, rows: csr_matrix, row_lower: ArrayLike, row_upper: ArrayLike) -> None:
        super().add_rows(rows, row_lower, row_upper)
        new = rows.tocsr()
        self.highs.addRows(
            new.shape[0], np.asarray(row_lower, dtype=float), np.asarray(row_upper, dtype=float), new.nnz,
            new.indptr[:-1].astype(np.int32), new.indices.astype(np.int32), new.data,
        )  # fmt: skip

    def change(self, index: Where, *, cost: Limits = None, lower: Limits = None, upper: Limits = None) -> None:
        super().change(index, cost=cost, lower=lower, upper=upper)
        p, which = self._program, np.arange(self._program.cost.size)[index].astype(np.int32)
        if cost is not None:
            self.highs.changeColsCost(which.size, which, self.sign * p.cost[which])
        if lower is not None or upper is not None:
            self.highs.changeColsBounds(which.size, which, p.lower[which], p.upper[which])

    def solve(self, *, time_limit: float = math.inf, method: str | None = None) -> LinearResult:
        chosen = method or self.solver.method
        self.highs.setOptionValue("solver", "choose" if chosen == "auto" else chosen)
        # The user's limit is for the solver's own method, not for one that is asked for instead. From the last solve's basis
        # simplex may go in circles where the start would be a moment's work.
        own = UNLIMITED if self.solver.iterations is None or method is not None else self.solver.iterations
        warm = STALLED * (self.highs.getNumRow() + self.highs.getNumCol()) if self.begun else UNLIMITED
        self.begun = True
        self.highs.setOptionValue("simplex_iteration_limit", min(own, warm))
        if math.isfinite(time_limit):
            self.highs.setOptionValue("time_limit", self.highs.getRunTime() + max(time_limit, SHORTEST))
        self.highs.run()
        if self.highs.getModelStatus().name == "kNotset":
            # HiGHS has one pool of threads for the process, and refuses to run while it is of another size than asked for.
            self.highs.resetGlobalScheduler(True)
            self.highs.run()
        ended = self.highs.getModelStatus().name
        if ended == "kIterationLimit" and warm < own:
            log.debug("HiGHS %s: no end in sight after %d iterations, from the start", chosen, warm)
            self.highs.setOptionValue("simplex_iteration_limit", own)
            self.highs.clearSolver()
            self.highs.run()
            ended = self.highs.getModelStatus().name
        if ended == "kSolveError" or (self.bare and ended == "kUnknown"):
            # The basis it began with may be of no use, and what goes fast without presolve or scaling may need them: once more
            # from the start, with both from here on.
            for option, usual in self.bare:
                self.highs.setOptionValue(option, usual)
            self.bare = []
            self.highs.clearSolver()
            self.highs.run()
        model_status, info = self.highs.getModelStatus(), self.highs.getInfo()
        status = STATUS_OF_HIGHS.get(model_status.name, LinearStatus.FAILED)
        point = self.highs.getSolution()
        if status in (LinearStatus.OPTIMAL, LinearStatus.IMPRECISE) and not (point.value_valid and point.dual_valid):
            status = LinearStatus.FAILED
        size = self.highs.getNumRow(), self.highs.getNumCol()
        log.debug("HiGHS %s: %s, %d rows, %d columns", chosen, model_status.name, *size)
        if status not in (LinearStatus.OPTIMAL, LinearStatus.IMPRECISE):
            return LinearResult(status, message=model_status.name, program=self._program)
        return LinearResult(
            status, self.sign * float(info.objective_function_value), np.array(point.col_value),
            self.sign * np.array(point.row_dual), self.sign * np.array(point.col_dual),
            int(max(info.simplex_iteration_count, info.ipm_iteration_count, 0)),
            model_status.name, self._program,
        )  # fmt: skip


#: HiGHS's own words. "Unknown" is an interior point just short of its tolerance: what it found is checked anyway.
STATUS_OF_HIGHS = {
    "kOptimal": LinearStatus.OPTIMAL, "kUnknown": LinearStatus.IMPRECISE, "kInfeasible": LinearStatus.INFEASIBLE,
    "kUnbounded": LinearStatus.UNBOUNDED, "kUnboundedOrInfeasible": LinearStatus.UNBOUNDED,
    "kTimeLimit": LinearStatus.TIME_LIMIT, "kIterationLimit": LinearStatus.ITERATION_LIMIT,
}  # fmt: skip


def _silent() -> Any:
    """A HiGHS that says nothing: from 1.16 on it has a line about itself before one can ask for silence."""
    import highspy

    class Silent(highspy.Highs):
        def enableCallbacks(self) -> None:
            self.setOptionValue("output_flag", False)
            super().enableCallbacks()

    highs = Silent()
    highs.setOptionValue("output_flag", False)
    return highs


def _highs_of(program: LinearProgram, minimise: bool = False) -> Any:
    import highspy

    if program.rows.shape != (program.row_lower.size, program.cost.size):
        raise ValueError(
            "program is not allowed: rows or columns were added in a session, whose `program` has them all"
        )
    highs = _silent()
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = program.rows.shape
    turned = minimise and program.maximise
    lp.sense_ = highspy.ObjSense.kMaximize if program.maximise and not turned else highspy.ObjSense.kMinimize
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = -program.cost if turned else program.cost, program.lower, program.upper
    lp.row_lower_, lp.row_upper_ = program.row_lower, program.row_upper
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = program.rows.indptr
    lp.a_matrix_.index_ = program.rows.indices
    lp.a_matrix_.value_ = program.rows.data
    lp.model_name_ = program.name
    highs.passModel(lp)
    return highs


def read(path: str | Path) -> LinearProgram:
    """The linear program in an `.mps` or `.lp` file, by HiGHS's own reader."""
    import highspy
    from scipy.sparse import csc_matrix, csr_matrix

    highs = _silent()
    if highs.readModel(str(path)) != highspy.HighsStatus.kOk:
        raise ValueError(f"path = {str(path)!r} is not allowed: HiGHS cannot read it")
    lp = highs.getLp()
    a = lp.a_matrix_
    kind = csr_matrix if a.format_ == highspy.MatrixFormat.kRowwise else csc_matrix
    entries = np.array(a.value_), np.array(a.index_), np.array(a.start_)
    rows = kind(entries, shape=(lp.num_row_, lp.num_col_))
    return LinearProgram(
        np.array(lp.col_cost_), rows, np.array(lp.row_lower_), np.array(lp.row_upper_), np.array(lp.col_lower_),
        np.array(lp.col_upper_), lp.sense_ == highspy.ObjSense.kMaximize,
    )  # fmt: skip


def hats(places: np.ndarray, nodes: np.ndarray) -> Any:
    """A sparse matrix (places, nodes): from values at the nodes to values at places, linearly between, constant beyond."""
    from scipy.sparse import csr_matrix

    at = np.clip(np.searchsorted(nodes, places, side="right") - 1, 0, nodes.size - 2)
    share = np.clip((places - nodes[at]) / (nodes[at + 1] - nodes[at]), 0.0, 1.0)
    where = np.tile(np.arange(places.size), 2), np.concatenate([at, at + 1])
    made = csr_matrix((np.concatenate([1 - share, share]), where), shape=(places.size, nodes.size))
    made.eliminate_zeros()
    return made


def stacked(parts: Sequence[tuple[str, int]]) -> dict[str, slice]:
    """Names of consecutive groups: [("mass", 3), ("loss", 3)] -> {"mass": slice(0, 3), "loss": slice(3, 6)}."""
    out, at = {}, 0
    for name, size in parts:
        out[name] = slice(at, at + size)
        at += size
    return out

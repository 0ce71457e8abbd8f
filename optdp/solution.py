"""What every solve returns: the problem, a mechanism, a bracket around the optimum, and the certificate that proves it."""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from optdp import closed_forms, files, hooks
from optdp.certificates.base import Certificate
from optdp.exact import work
from optdp.exact.check import Check, Verification
from optdp.exact.fields import UNSAVED, FieldError, Fields, Within, load, written
from optdp.exact.numbers import above, below
from optdp.mechanisms.base import Mechanism
from optdp.problem.problem import Problem
from optdp.status import Status

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike
    from sympy import Expr

#: The version of the file format.
FORMAT = 2


@dataclass(frozen=True)
class Program:
    """The mathematical program behind a solution, and how it was solved.

    `variables` and `constraints` describe it in words; `model` is the object itself: a `LinearProgram`, a Pyomo model or a cvxpy
    problem, built when first asked for by `build(*arguments)`. `objective` and `bound` are raw, unverified solver output (see
    `Solution.value` and `Solution.lower_bound` for what is proven), None where that is no finite number. `rtol`: the relative gap
    that was asked for; `stopped`: whether the time limit ended the solve.
    """

    variables: str
    constraints: str
    solver: Annotated[str, Within(most=200)]
    seconds: Annotated[float, Within(0.0)] = field(compare=False)  # solutions of one call are equal
    rtol: Annotated[float, Within(0.0, 1.0)]
    objective: float | None = None
    bound: float | None = None
    message: str = ""
    stopped: bool = False
    build: Callable[..., Any] | None = field(default=None, repr=False, compare=False, metadata=UNSAVED)
    arguments: tuple[Any, ...] = field(default=(), repr=False, compare=False, metadata=UNSAVED)

    def __post_init__(self) -> None:
        object.__setattr__(self, "message", " ".join(self.message.split()))  # one line, as files hold it
        for name in ("objective", "bound"):  # files hold no NaN, and a solver may say anything
            value = getattr(self, name)
            if value is not None and not math.isfinite(value):
                object.__setattr__(self, name, None)

    @cached_property
    def model(self) -> Any:
        """The program as a model object that can be read, printed, changed, written and solved by other means."""
        if self.build is None:
            raise ValueError(
                "there is no model here: files keep none (solve the problem again), and closed forms have none"
            )
        return self.build(*self.arguments)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k != "model"}  # models need not be picklable

    def write(self, path: str | Path) -> None:
        """Write the model in the format of the file's ending: `.mps` or `.lp` for linear programs, `.nl` (which SCIP, Ipopt and
        AMPL read; names stand in `.row` and `.col` beside it) or `.gams` for nonlinear ones.

        **Raises** ValueError if the model is neither, or the ending is not one of its formats.
        """
        files.sound(path)
        model, target = self.model, Path(path)
        if not hasattr(model, "write"):
            kind = f"{type(model).__module__.partition('.')[0]} {type(model).__name__}"
            raise ValueError(
                f"path = {str(path)!r} is not allowed: the program is a {kind}, which has no file format: use program.model"
            )
        nonlinear = hasattr(model, "component_objects")  # Pyomo
        kind, endings = ("nonlinear model", (".nl", ".gams")) if nonlinear else ("linear program", (".mps", ".lp"))
        if target.suffix not in endings:
            raise ValueError(f"path = {str(path)!r} is not allowed: a {kind} is written as {' or '.join(endings)}")
        with tempfile.TemporaryDirectory() as folder, files.together():
            made = Path(folder, "model").with_suffix(target.suffix)
            model.write(str(made), **({"io_options": {"symbolic_solver_labels": True}} if nonlinear else {}))
            for part in sorted(made.parent.iterdir()):
                with files.replacing(target.with_suffix(part.suffix), "wb") as stream:
                    stream.write(part.read_bytes())

    def to_dict(self) -> dict[str, Any]:
        """JSON form, without the model."""
        return written(self)


@dataclass(frozen=True)
class Solution:
    """A mechanism and a bracket [lower_bound, value] that contains the optimum of the problem.

    - `problem`: what was solved; `problem.statement()` says it.
    - `value`: what `mechanism` really attains, rounded up.
    - `lower_bound`: what no mechanism of the problem can beat, proven by `certificate`, rounded down.
    - `mechanism`: private exactly, not up to a tolerance.
    - `program`: what was solved and how.
    """

    problem: Problem
    value: Annotated[float, Within(0.0)]
    lower_bound: Annotated[float, Within(0.0)]
    mechanism: Annotated[Any, Within(kind=Mechanism)]
    certificate: Certificate
    program: Program

    @property
    def gap(self) -> float:
        """(value - lower_bound) / value: at most this share could still be gained. 0 where value is 0."""
        return (self.value - self.lower_bound) / self.value if self.value else 0.0

    @property
    def status(self) -> Status:
        """How the solve ended: computed from the gap and the tolerance."""
        if self.gap <= self.program.rtol:
            return Status.OPTIMAL
        return Status.TIME_LIMIT if self.program.stopped else Status.GAP

    @property
    def closed_form(self) -> Expr | None:
        """The optimum as a sympy expression in `eps` (and `delta`), where one is known for the problem, else None."""
        return closed_forms.optimum(self.problem)

    def verify(self, limit: float = work.LIMIT) -> Verification:
        """Check everything again, without the solver: three statements about the problem, and the order of the numbers.

        **Arguments:** `limit`: how much work the proof may take, in seconds of a common processor. It is counted before it is
        done, not timed: the answer does not depend on the machine.

        **Returns** a `Verification`, true if all passed; printed, it lists each check and says what failed.

        **Raises** `optdp.exact.work.Overwork` (a RuntimeError) where the proof would take more.
        """
        with work.limited(limit):
            return self._verify()

    def _verify(self) -> Verification:
        problem, statement = self.problem, self.problem.statement()
        checks, high = list(self.mechanism.feasible(problem)), math.inf
        kept = all(check.passed for check in checks)  # others may attain less than the optimum
        try:
            low, high = self.mechanism.enclose(problem.objective)
            told = f"the mechanism's {problem.phrase.rstrip(',')} lies in [{low:.17g}, {high:.17g}]"
            checks.append(Check("value", high <= self.value, f"{told}, at most value = {self.value:.17g}"))
        except (TypeError, ValueError, ArithmeticError) as error:
            checks.append(Check("value", False, str(error)))
        try:
            proven = self.certificate.bound(problem)
            given = f", provided that {proven.assumptions}" if proven.assumptions else ""
            holds = self.lower_bound <= proven.value and not (proven.value > high and kept)
            told = f"{statement} is at least {proven.value:.17g} ({proven.method}{given})"
            if proven.value > high and kept:  # no bound is above what a mechanism attains: one of both is wrong
                told += f"; the mechanism's {high:.17g} contradicts it"
            elif not holds:
                told += f"; lower_bound = {self.lower_bound:.17g} is more than is proven"
            checks.append(Check("lower bound", holds, told))
        except (
            TypeError,
            ValueError,
            ArithmeticError,
        ) as error:  # a Refusal, or what a user's function turns out not to be
            checks.append(Check("lower bound", False, str(error)))
        ordered = 0 <= self.lower_bound <= self.value < math.inf
        told = f"lower_bound = {self.lower_bound:.17g} <= value = {self.value:.17g}"
        checks.append(Check("bracket", ordered, told if ordered else f"not true that 0 <= {told} < infinity"))
        return Verification(checks)

    def plot(self, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
        """Draw the mechanism under the problem's statement, for these inputs where the drawing shows a few. Returns the axes."""
        return hooks.plot(self, ax=ax, inputs=inputs)

    def to_dict(self) -> dict[str, Any]:
        """JSON form of everything but the program's model: `Solution.from_dict` gives a solution that verifies again.

        **Raises** TypeError if a Python function is part of the problem.
        """
        return {"optdp": {"format": FORMAT, "version": version("optdp")}} | written(self)

    @staticmethod
    def from_dict(data: object, where: str = "solution") -> Solution:
        """The inverse of `to_dict`. Every field is checked; none is trusted: call `verify()`. **Raises** FieldError."""
        return Solution.read(Fields(data, where))

    @staticmethod
    def read(fields: Fields) -> Solution:
        """The same, from entries that are checked one by one."""
        if fields.data.get("optdp") == 1:
            reason = "whose files do not say which problem they solve"
            raise FieldError(f"{fields.where} was written by optdp 0.1.0, {reason}: solve it again")
        head = fields.child("optdp")
        head.integer("format", FORMAT, FORMAT)
        head.text("version", 50)
        head.done()
        made = fields.into(Solution)
        fields.done()
        return made

    def save(self, path: str | Path) -> None:
        """Write the solution to a JSON file, whole or not at all. **Raises** TypeError for a user's own function."""
        files.write_text(path, json.dumps(self.to_dict(), indent=2) + "\n")

    @staticmethod
    def load(path: str | Path, limit: float = work.LIMIT) -> Solution:
        """Read a solution that `save` wrote, or one from standard input ("-").

        **Arguments:** `limit`: how much work reading may take, as in `verify`.

        **Raises** OSError, FieldError (a ValueError) or `optdp.exact.work.Overwork` in one sentence.
        """
        return load(path, Solution.read, limit, "a solution")

    @property
    def assumptions(self) -> str:
        """What the bracket takes on trust of a user's loss, or an empty string."""
        return str(self.problem.objective.loss.assumptions)

    def __str__(self) -> str:
        given = f"  provided that {self.assumptions}\n" if self.assumptions else ""
        seconds = self.program.seconds
        return (
            f"{self.problem.statement()}\n"
            f"  optimum in [{below(self.lower_bound, 12)}, {above(self.value, 12)}], gap {self.gap:.1e} "
            f"(asked: {self.program.rtol:g}): {self.status.value}\n"
            f"{given}  {self.mechanism!r}\n"
            f"  {self.program.solver}, {f'{seconds:.3g} s' if seconds >= 1 else f'{seconds * 1e3:.3g} ms'}"
        )

    def __repr__(self) -> str:
        return f"<Solution in [{below(self.lower_bound, 9)}, {above(self.value, 9)}]: {self.problem.statement()}>"

    def to_latex(self) -> str:
        """A display in LaTeX: the problem, the bracket of its optimum, and the closed form where one is known."""
        parts = [self.problem.latex(), rf"\text{{optimum}} \in [{below(self.lower_bound, 9)}, {above(self.value, 9)}]"]
        form = self.closed_form
        if form is not None:
            from sympy import latex

            names = {s: rf"\{'varepsilon' if s.name == 'eps' else s.name}" for s in form.free_symbols}
            parts.append(rf"\text{{closed form: }} {latex(form, symbol_names=names)}")
        return "\\begin{gather*}\n" + " \\\\\n".join(parts) + "\n\\end{gather*}\n"

    def _repr_html_(self) -> str:
        from html import escape

        rows = [
            ("value", above(self.value, 12)), ("lower bound", below(self.lower_bound, 12)), ("gap", f"{self.gap:.1e}"),
            ("status", self.status.value), ("mechanism", repr(self.mechanism)), ("solver", self.program.solver),
        ]  # fmt: skip
        if self.assumptions:
            rows.insert(2, ("provided that", self.assumptions))
        body = "".join(f"<tr><th style='text-align:left'>{k}</th><td>{escape(v)}</td></tr>" for k, v in rows)
        return f"<p>{escape(self.problem.statement())}</p><table>{body}</table>"

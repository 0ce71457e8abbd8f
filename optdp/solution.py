"""What every `optdp.solve_*` returns: a mechanism, a bracket around the optimum, and the certificate that proves it."""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from optdp import files
from optdp.exact.check import Check, Verification
from optdp.mechanisms.base import Mechanism


class Status(enum.Enum):
    """How a solve ended. The bracket [lower_bound, value] is valid whatever it says."""

    OPTIMAL = "the bracket is as tight as was asked for"
    GAP = "the tolerance was not reached: the bracket is valid but wider; allow more time or another backend"
    TIME_LIMIT = "the time limit stopped the solver: the bracket is valid but wider; raise time_limit"


class Certificate(Protocol):
    """A proof of a lower bound: `check()` goes through it again without a solver."""

    @property
    def bound(self) -> float:
        """The lower bound that is proven if `check()` passes."""
        ...

    def concerns(self, privacy: Any, mechanism: Any) -> bool:
        """Whether the proof is about this promise and this mechanism's problem, and not about another one."""
        ...

    def check(self) -> Check:
        """Go through the proof again."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        ...


class Verifiable(Protocol):
    """What a mechanism offers so that a solution can be verified without the solver."""

    def check_privacy(self, privacy: Any) -> list[Check]:
        """Exact tests that every row is a distribution and that the promise is kept (and what else the problem asks)."""
        ...

    def enclose_value(self, loss: Any) -> tuple[float, float]:
        """(low, high) proven to contain what the design problem minimises: the worst-case or expected loss."""
        ...


@dataclass(frozen=True)
class Program:
    """The mathematical program behind a solution, and how it was solved.

    `variables` and `constraints` describe it in words; `model` is the object itself (a Pyomo model for
    `solve_piecewise`), built when first asked for. `objective` and `bound` are what the solver said, as it said it:
    neither is trusted (see `Solution.value` and `Solution.lower_bound` for what is proven).
    """

    name: str
    variables: str
    constraints: str
    solver: str
    seconds: float
    objective: float | None = None
    bound: float | None = None
    message: str = ""
    build: Callable[[], Any] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def model(self) -> Any:
        """The program as a model object that can be read, printed, changed and solved by other means."""
        if self.build is None:
            raise ValueError(f"the program '{self.name}' was loaded from a file and carries no model: solve it again")
        return self.build()


@dataclass(frozen=True)
class Solution:
    """A mechanism and a bracket [lower_bound, value] that contains the optimum of the problem.

    - `value`: what `mechanism` really attains, rounded up.
    - `lower_bound`: what no mechanism of the class can beat, proven by `certificate`, rounded down.
    - `mechanism`: private exactly, not up to a tolerance.
    - `program`: what was solved and how.
    - `privacy`: the promise; `loss`: what is minimised; `spec`: the arguments of the solve, for tables and files.
    """

    value: float
    lower_bound: float
    mechanism: Any
    certificate: Certificate
    program: Program
    privacy: Any
    loss: Any
    status: Status
    spec: Mapping[str, Any]
    _closed_form: Callable[[], Any] | None = field(default=None, repr=False, compare=False)

    @property
    def gap(self) -> float:
        """(value - lower_bound) / value: at most this share could still be gained. 0 where value is 0."""
        return (self.value - self.lower_bound) / self.value if self.value else 0.0

    @cached_property
    def closed_form(self) -> Any:
        """The optimum as a sympy expression in `eps`, where one is known, else None."""
        return None if self._closed_form is None else self._closed_form()

    def verify(self) -> Verification:
        """Check everything again, without the solver: privacy, mass, the attained value and the lower bound.

        **Returns** a `Verification`, true if all passed; printed, it lists each check and says what failed.
        """
        low, high = self.mechanism.enclose_value(self.loss)
        bound = self.certificate.bound
        return Verification(
            [
                *self.mechanism.check_privacy(self.privacy),
                Check(
                    "attained value",
                    high <= self.value,
                    f"the mechanism attains a loss in [{low:.17g}, {high:.17g}], not above value = {self.value:.17g}",
                ),
                Check(
                    "same problem",
                    self.certificate.concerns(self.privacy, self.mechanism),
                    "certificate, promise and mechanism are about one problem",
                ),
                self.certificate.check(),
                Check(
                    "bracket",
                    self.lower_bound <= bound and self.lower_bound <= self.value,
                    f"lower_bound = {self.lower_bound:.17g} <= certified {bound:.17g}, value = {self.value:.17g}",
                ),
            ]
        )

    def to_dict(self) -> dict[str, Any]:
        """JSON form of everything but the program's model: `Solution.from_dict` gives a solution that verifies again."""
        program = {k: getattr(self.program, k) for k in Program.__dataclass_fields__ if k != "build"}
        return {
            "optdp": 1,
            "spec": dict(self.spec),
            "value": self.value,
            "lower_bound": self.lower_bound,
            "gap": self.gap,
            "status": self.status.name,
            "privacy": self.privacy.to_dict(),
            "mechanism": self.mechanism.to_dict(),
            "certificate": self.certificate.to_dict(),
            "program": program,
        }

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Solution:
        """The inverse of `to_dict`. Nothing in the file is trusted: call `verify()`."""
        from optdp.certificates.registry import certificate_from_dict
        from optdp.problem.privacy import privacy_from_dict

        if not isinstance(data, dict) or data.get("optdp") != 1:
            raise ValueError("this is not a solution saved by optdp (no entry 'optdp': 1)")
        certificate = certificate_from_dict(data["certificate"])
        return Solution(
            value=data["value"],
            lower_bound=data["lower_bound"],
            mechanism=Mechanism.from_dict(data["mechanism"]),
            certificate=certificate,
            program=Program(**data["program"]),
            privacy=privacy_from_dict(data["privacy"]),
            loss=certificate.loss,
            status=Status[data["status"]],
            spec=data["spec"],
        )

    def save(self, path: str | Path) -> None:
        """Write the solution to a JSON file, whole or not at all. **Raises** TypeError for a user's own loss."""
        files.write_text(path, json.dumps(self.to_dict(), indent=2) + "\n")

    @staticmethod
    def load(path: str | Path) -> Solution:
        """Read a solution that `save` wrote."""
        return Solution.from_dict(json.loads(Path(path).read_text()))

    def __str__(self) -> str:
        return (
            f"{self.program.name}\n"
            f"  optimum in [{self.lower_bound:.12g}, {self.value:.12g}], gap {self.gap:.1e}: {self.status.value}\n"
            f"  {self.mechanism!r}\n"
            f"  {self.program.solver}, {self.program.seconds * 1e3:.3g} ms"
        )

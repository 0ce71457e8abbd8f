"""What every certificate does: prove a lower bound for the problem that it is handed, or refuse."""

import importlib
from dataclasses import dataclass
from typing import Annotated, NoReturn, Self

from optdp.exact import Fields, Tagged, Within, show
from optdp.exact.fields import settle, whole
from optdp.problem import Problem

#: Where certificates are defined: a file's "type" is looked up among these before anything else is imported.
MODULES = (
    "additive", "affine_window", "bathtub", "constant", "coordinates", "cube", "divergence", "finite", "frequency", "graded",
    "half_lines", "kernel", "lip", "metric", "metric_circle", "metric_line", "packing", "pair", "peak", "period", "plane",
    "quantile", "radial", "rounded", "spike", "staircase", "tails", "vector",
)  # fmt: skip


class Refusal(ValueError):
    """A certificate proves nothing for the problem that it was handed; the message says why."""


@dataclass(frozen=True)
class Bound:
    """A proven lower bound on a problem's optimum.

    `value`: rounded down; `method`: how it was proven; `assumptions`: what is taken on trust, or an empty string.
    """

    value: float
    method: str
    assumptions: str = ""


class Certificate(Tagged, root=True):
    """Multipliers of a dual, and nothing of the problem: `bound(problem)` proves with them what can be proven about `problem`.

    No certificate imports a solver or a mechanism, and none trusts a float: there is nothing to forge, because a changed
    problem must be proven from the same multipliers.
    """

    def __post_init__(self) -> None:
        settle(self, whole)

    def bound(self, problem: Problem) -> Bound:
        """The lower bound that these multipliers prove for `problem`.

        **Raises** `Refusal` where they prove nothing: another kind of problem, or multipliers that are not feasible for it.
        """
        raise NotImplementedError(f"{type(self).__name__} proves nothing")

    def _refuse(self, reason: str) -> NoReturn:
        raise Refusal(f"the {self.tag} certificate proves nothing here: {reason}")

    @classmethod
    def read(cls, fields: Fields) -> Self:
        for module in MODULES:
            importlib.import_module(f"optdp.certificates.{module}")
        return super().read(fields)


@dataclass(frozen=True)
class Threshold(Certificate):
    """A number t that is a lower bound wherever `holds` proves an inequality."""

    threshold: Annotated[float, Within(0.0)]

    def holds(self, problem: Problem) -> bool:
        """Whether the inequality is proven, for a problem of the right kind."""
        raise NotImplementedError(f"{type(self).__name__} proves nothing")

    def _check(self, problem: Problem) -> None:
        if self.threshold > 0 and not self.holds(problem):
            self._refuse(f"the threshold {show(self.threshold)} is too high for this problem")

    @classmethod
    def lowered(cls, problem: Problem, estimate: float) -> tuple[Self, float | None]:
        """(certificate of the estimate, lowered until it can be proven; the last threshold refused).

        It is lowered by an ulp at first and doubling: a poor estimate costs tightness, never validity.
        """
        step, proven, refused = abs(estimate) * 2.0**-53, cls(estimate), None
        while proven.threshold > 0 and not proven.holds(problem):
            refused = proven.threshold
            proven = cls(max(0.0, refused - step) if step else 0.0)
            step *= 2
        return proven, refused

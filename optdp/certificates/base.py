"""What every certificate does: prove a lower bound for the problem that it is handed, or refuse."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, Self

from optdp.exact.fields import Fields, Tagged

if TYPE_CHECKING:
    from optdp.problem.problem import Problem

#: Where certificates are defined: a file's "type" is looked up among these before anything else is imported.
MODULES = ("additive", "affine_window", "bathtub", "constant", "divergence", "finite", "kernel", "lip", "staircase")


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

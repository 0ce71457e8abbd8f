"""What a verification says: a list of named checks, each passed or failed, with a sentence on why."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One thing that was checked. `detail` gives the numbers, so that a failure explains itself."""

    name: str
    passed: bool
    detail: str


@dataclass(frozen=True, repr=False)
class Verification:
    """The outcome of `Solution.verify()`: true in a condition if and only if every check passed."""

    checks: tuple[Check, ...]

    def __init__(self, checks: Sequence[Check]) -> None:
        object.__setattr__(self, "checks", tuple(checks))

    @property
    def passed(self) -> bool:
        """Whether there are checks and all of them passed."""
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if not check.passed)

    def __bool__(self) -> bool:
        return self.passed

    def __repr__(self) -> str:
        failed = ", ".join(check.name for check in self.failures) or "no checks"
        said = f"all {len(self.checks)} checks passed" if self.passed else f"failed ({failed})"
        return f"<Verification: {said}>"

    def __str__(self) -> str:
        return "\n".join(f"{'ok  ' if c.passed else 'FAIL'} {c.name}: {c.detail}" for c in self.checks)

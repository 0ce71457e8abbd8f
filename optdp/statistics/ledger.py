"""`optdp.Ledger`: what one person has answered, what all of it together promises, and a limit that it does not pass."""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Any

from optdp import files
from optdp.exact import require
from optdp.exact.enclosures import log_of, rounded_up
from optdp.exact.fields import FieldError, Fields, load
from optdp.exact.numbers import Log, Number, below, encode, plain, show
from optdp.problem.privacy import LDP
from optdp.statistics.plan import Plan

#: Of a plan.
DIGEST = re.compile("[0-9a-f]{64}")
#: Of two answers at once, each might fit alone.
_ADDING = threading.RLock()


class Exhausted(ValueError):
    """An answer that would pass the limit of a ledger, or a second one where there is a single one."""


class Ledger:
    """The answers of one person, to any plans: `add` each before it is sent.

    **Arguments:** `limit`: the epsilon that all answers together may have.

    Answers add up as they compose: likelihood ratios are multiplied, exactly, whatever the answers are about and whenever they
    are given. What is counted is this person's own use of the plans in the ledger; it knows nothing of other surveys, of what the
    same person answers elsewhere, or of what others tell about this person. That an answer to a memoised plan changed, and when,
    is seen by whoever sees both, and not counted.

        >>> import optdp
        >>> first = optdp.plan({"smoker": optdp.Flag()}, 1.0)
        >>> second = optdp.plan({"job": optdp.Category(["a", "b", "c"])}, 1.0)
        >>> ledger = optdp.Ledger(1.5)
        >>> ledger.add(first)
        >>> ledger.allows(second)
        False
        >>> ledger
        <Ledger, plans answered: 1, epsilon 1 of 1.5>
    """

    def __init__(self, limit: Number) -> None:
        self.limit = require.exact_epsilon(limit, name="limit")
        self._answers: dict[str, Fraction] = {}

    @property
    def plans(self) -> tuple[str, ...]:
        """The digests of the plans that were answered."""
        return tuple(self._answers)

    def guarantee(self) -> LDP:
        """What all answers together promise: exactly, or rounded up where that has more than 4096 bits."""
        return LDP(log_of(math.prod(self._answers.values(), start=Fraction(1))))

    def allows(self, plan: Plan, changed: Iterable[str] | None = None) -> bool:
        """Whether `add` would be accepted; arguments as there."""
        return self._refusal(plan, self._cost(plan, changed)) is None

    def add(self, plan: Plan, changed: Iterable[str] | None = None) -> None:
        """Count an answer to a plan.

        **Arguments:** `changed`: for a memoised plan that was answered before, the columns whose true entries were never answered
        before, by name; () where there are none, which costs nothing. Columns that are answered together have one answer for each
        combination of their entries: one of them must be named where this combination was never answered before.

        **Raises** Exhausted (a ValueError), and then nothing is counted: an answer that would pass the limit, or the second one
        to a plan that is answered once. TypeError where `changed` is missing, ValueError where it is not allowed, and where the
        ledger counts less for earlier answers to the plan than one of them spends.
        """
        with _ADDING:
            cost = self._cost(plan, changed)
            refusal = self._refusal(plan, cost)
            if refusal is not None:
                raise Exhausted(refusal)
            counted = log_of(self._answers.get(plan.digest, Fraction(1)) * cost).argument
            self._answers = {**self._answers, plan.digest: counted}  # another one: somebody may be reading this one

    def _cost(self, plan: Plan, changed: Iterable[str] | None) -> Fraction:
        """The likelihood ratio of the new answers: of the columns that one may report, the worst ones."""
        if not isinstance(plan, Plan):
            raise TypeError(f"plan is a {type(plan).__name__}, which is not allowed: it must be an optdp.Plan")
        counted = self._answers.get(plan.digest)
        if counted is not None and counted < plan.ratio(plan.names):
            raise ValueError(
                "the ledger is not allowed here: it counts less than one answer to the plan, which it holds"
            )
        again = counted is not None
        if changed is not None and not isinstance(changed, Iterable):
            raise TypeError(
                f"changed is a {type(changed).__name__}, which is not allowed: it must name columns of the plan"
            )
        names = list(plan.names if changed is None else [changed] if isinstance(changed, str) else changed)
        if any(name not in plan.names for name in names):
            raise ValueError(f"changed is not allowed: it must name columns of the plan: {', '.join(plan.names)}")
        if again and changed is None and plan.repeat == "memoised":
            raise TypeError("changed is missing: which entries of the memoised plan were never answered before?")
        if not again and set(names) != set(plan.names):
            raise ValueError(
                "changed is not allowed: the plan was not answered before, so that all of its entries are new"
            )
        return plan.ratio(names)

    def _refusal(self, plan: Plan, cost: Fraction) -> str | None:
        if plan.repeat == "once" and plan.digest in self._answers:
            return "a second answer is not allowed: the plan is answered once"
        total: Any = self.guarantee().eps
        if not LDP(self.limit).check(total.argument * cost).passed:
            spent = f"{rounded_up(total)} of {self._most()}"
            return f"the answer is not allowed: epsilon {rounded_up(Log(cost))} is wanted where {spent} is spent"
        return None

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact."""
        answers = [{"plan": digest, "eps": encode(Log(ratio))} for digest, ratio in self._answers.items()]
        return {"ledger": 1, "limit": encode(self.limit), "answers": answers}

    @classmethod
    def read(cls, fields: Fields) -> Ledger:
        """The inverse of `to_dict`, every entry checked. **Raises** FieldError, also beyond the limit."""
        fields.integer("ledger", 1, 1)
        limit = fields.number("limit")
        try:
            made = cls(limit)
        except ValueError as error:
            raise FieldError(f"{fields.where}: {error}") from None
        for i, entry in enumerate(fields.entries("answers", 0, 100_000)):
            own = Fields(entry, f"{fields.where}.answers[{i}]")
            digest, eps = own.text("plan", 64), own.number("eps")
            own.done()
            if not DIGEST.fullmatch(digest) or digest in made._answers:
                raise FieldError(
                    f"{own.where}.plan is not allowed: it must be the digest of another plan, 64 of 0-9a-f"
                )
            if not isinstance(eps, Log) or eps.argument <= 1:
                raise FieldError(
                    f"{own.where}.eps is not allowed: it must be log(p/q) with p > q, for no answer is free"
                )
            made._answers[digest] = eps.argument
        fields.done()
        total: Any = made.guarantee().eps
        if not LDP(made.limit).check(total.argument).passed:
            raise FieldError(f"{fields.where} is not allowed: its answers pass its limit")
        return made

    def save(self, path: str | Path) -> None:
        """Write the ledger to a JSON file, whole or not at all."""
        files.write_text(path, json.dumps(self.to_dict(), indent=2) + "\n")

    @classmethod
    def load(cls, path: str | Path) -> Ledger:
        """Read a ledger that `save` wrote. **Raises** OSError, or FieldError (a ValueError) in one sentence."""
        return load(path, cls.read, kind="a ledger")

    def __repr__(self) -> str:
        total: Any = self.guarantee().eps
        return f"<Ledger, plans answered: {len(self._answers)}, epsilon {rounded_up(total)} of {self._most()}>"

    def _most(self) -> str:
        """The limit, or where it is long rounded down."""
        exact = plain(self.limit) if isinstance(self.limit, float) else show(self.limit)
        return exact if len(exact) <= 20 else below(math.nextafter(float(self.limit), 0.0), 4)

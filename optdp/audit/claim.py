"""What a claim is, what a finding says, and the register that the audit goes through.

A new claim is a function in the file of its paper (`optdp/audit/<paper>/claims.py`), written like this:

    @claim("OGPM-4", "the closed form on [0, 1)", "closed form for |y - x| (slides)")
    def closed_form_on_the_interval() -> Finding:
        '''The optimum for |y - x| on [0, 1) has height e^(eps/2) and a window of length 2C = (s - 1)/(E - 1).'''
        ...
        if not proven:
            return Finding.unsettled("what failed", numbers={...})
        return Finding(Verdict.VERIFIED, Proof.SYMBOLIC, "every eps > 0", numbers={...}, note=...)

Its docstring is the claim in our own words, with its conditions. It computes both sides; the verdict follows from the numbers
or the symbols, by an `if`, never typed in. A claim "for all eps" rests on a symbolic identity, on
`optdp.audit.ranges.positive`, or on a monotonicity argument. A step that words carry is an `Argument`: the program checks the
statement that it starts from and the one that it arrives at, and where either fails the claim is unsettled. Numbers are compared
by `near`, whose tolerance is a share of what is compared.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any


@dataclass(frozen=True)
class Paper:
    """A paper whose claims are audited: `name` as in the ids of its claims, and its citation.

    **Arguments:** `audited`: which text was audited, where that is not the published one.
    """

    name: str
    title: str
    authors: str
    venue: str
    year: int
    arxiv: str
    audited: str = ""

    @property
    def citation(self) -> str:
        """One paragraph of Markdown, with a link."""
        link = f"[arXiv:{self.arxiv}](https://arxiv.org/abs/{self.arxiv})"
        return " ".join([f"{self.authors}. *{self.title}.* {self.venue}, {self.year}. {link}.", self.audited]).strip()


class Verdict(enum.Enum):
    """The verdicts of the audit."""

    VERIFIED = "verified"
    REFUTED = "refuted"
    CONDITIONAL = "conditional"
    VACUOUS = "vacuous"
    NOT_TESTABLE = "not testable"
    UNSETTLED = "unsettled"  # a check of ours failed: an error to be mended, never a result


class Proof(enum.Enum):
    """What kind of proof a verdict rests on."""

    SYMBOLIC = "symbolic for all parameters"  # identities and signs of polynomials, in symbols
    CERTIFICATE = "certificate for all parameters"  # inequalities in ball arithmetic over the whole range
    COUNTEREXAMPLE = "exact counterexample"  # a witness in rationals or closed form
    POINTS = "certificate at stated points"  # certified numbers at the points that the range names


@dataclass(frozen=True)
class Argument:
    """A step of a proof that words carry, between two statements that the program checks.

    - `name`: what the step is called.
    - `words`: the step.
    - `start`, `end`: what it starts from and what it arrives at, each with whether the program's check of it went through.
    """

    name: str
    words: str
    start: tuple[str, bool]
    end: tuple[str, bool]

    @property
    def holds(self) -> bool:
        """Whether the checks at both ends went through."""
        return self.start[1] and self.end[1]


@dataclass(frozen=True)
class Finding:
    """What a claim's function found.

    - `verdict`. Where the check at either end of an argument failed it is `Verdict.UNSETTLED`, whatever was given.
    - `proof`: the kind of proof.
    - `range`: for which parameters it is established.
    - `numbers`: both sides, by name, as floats or short exact strings: what a reader recomputes.
    - `condition`: for "conditional", exactly when it is true; for "refuted", the witness.
    - `corrected`: the statement that is true instead, if one is known.
    - `note`: what symbols and numbers alone do not tell.
    - `how`: by which means, in a few words, where the kind of proof does not say it.
    - `arguments`: the steps that words carry.
    """

    verdict: Verdict
    proof: Proof
    range: str
    numbers: dict[str, Any] = field(default_factory=dict)
    condition: str = ""
    corrected: str = ""
    note: str = ""
    how: str = ""
    arguments: tuple[Argument, ...] = ()

    def __post_init__(self) -> None:
        if not all(argument.holds for argument in self.arguments):
            object.__setattr__(self, "verdict", Verdict.UNSETTLED)

    @staticmethod
    def unsettled(why: str, numbers: dict[str, Any] | None = None) -> Finding:
        """What a claim's function returns when its own check does not go through: never a verdict by default."""
        return Finding(Verdict.UNSETTLED, Proof.POINTS, "", numbers or {}, note=why, how="a check did not go through")


@dataclass(frozen=True)
class Claim:
    """One published claim: `id` like "OGPM-4", a short title, its source in the paper, and the function that decides it."""

    id: str
    title: str
    source: str
    decide: Callable[[], Finding]

    @property
    def paper(self) -> str:
        """The paper's short name."""
        return self.id.split("-")[0]

    @property
    def statement(self) -> str:
        """The claim in our own words."""
        return " ".join((self.decide.__doc__ or "").split())


#: The widest tolerance of a comparison between computed and stated numbers, as a share of the stated one.
WIDEST = 0.05


def near(value: Any, stated: Any, share: float, rounding: Any = 0) -> bool:
    """Whether a number is the stated one up to a share of it, and up to the rounding with which it is stated.

    Every comparison of the audit that has a tolerance goes through here, so that none is wider than what it compares.

    **Raises** ValueError unless 0 < `share` <= `WIDEST`, and `rounding` is at most half of the stated number.
    """
    if not 0 < share <= WIDEST:
        raise ValueError(f"share = {share!r} is not allowed: it must be positive and at most {WIDEST}")
    if not 0 <= 2 * rounding <= abs(stated) or stated == 0:
        raise ValueError(f"rounding = {rounding!r} is not allowed: it must be at most half of the stated {stated!r}")
    return bool(abs(value - stated) <= rounding + share * abs(stated))


def is_zero(*expressions: Any) -> bool:
    """Whether they all are zero, identically: as quotients of polynomials where they are, by sympy's simplifications else."""
    import sympy as sp

    return all(_vanishes(sp.sympify(expression)) for expression in expressions)


@cache  # discoveries rest on claims, and so decide the same identities again
def _vanishes(expression: Any) -> bool:
    import sympy as sp

    if not expression.is_rational_function():
        return any(sp.simplify(form) == 0 for form in (expression, sp.expand(expression)))
    # At primes' inverses a quotient with rational coefficients is a rational: if it is another one than 0, that decides.
    names = sorted(expression.free_symbols, key=str)
    at = expression.subs({name: sp.Rational(1, sp.prime(k + 4)) for k, name in enumerate(names)})
    if at.is_Rational and at != 0:
        return False
    return bool(sp.cancel(expression) == 0 or sp.simplify(expression) == 0)


#: Every claim by id, in the order in which the files of the papers define them.
CLAIMS: dict[str, Claim] = {}

#: What the programs found that none of the papers states, decided and printed in the same way.
DISCOVERIES: dict[str, Claim] = {}


def claim(id: str, title: str, source: str) -> Callable[[Callable[[], Finding]], Callable[[], Finding]]:
    """Register a function as the decision of a published claim. **Raises** ValueError for an id used twice."""
    return _register(CLAIMS, id, title, source)


def discovery(id: str, title: str, source: str) -> Callable[[Callable[[], Finding]], Callable[[], Finding]]:
    """Register a function that proves something new; `source` names the paper that it goes past."""
    return _register(DISCOVERIES, id, title, source)


def _register(
    book: dict[str, Claim], id: str, title: str, source: str
) -> Callable[[Callable[[], Finding]], Callable[[], Finding]]:
    def register(function: Callable[[], Finding]) -> Callable[[], Finding]:
        if id in book:
            raise ValueError(f"id = {id!r} is not allowed: another claim has it")
        if not function.__doc__:
            raise ValueError(f"the function of claim {id!r} has no docstring: it must state the claim")
        book[id] = Claim(id, title, source, function)
        return function

    return register

"""One object says what is solved: privacy, domain, objective, family and constraints, and the sentence that they make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from optdp.exact import Number, Tagged, Within, plain, prose
from optdp.problem.constraints import Constraint, Outputs, Unbiased
from optdp.problem.domains import Alphabet, Domain, Interval, as_domain
from optdp.problem.families import AllMechanisms, Family
from optdp.problem.objectives import BayesRisk, Objective, WorstCase
from optdp.problem.privacy import Privacy


@dataclass(frozen=True)
class Problem(Tagged, root=True):
    """The least `objective` over all mechanisms of `family` on `domain` with the guarantee `privacy` and all `constraints`.

    **Arguments:**

    - `privacy`: `optdp.LDP`, `MetricLDP`, `LIP`, `ApproxDP`, `Profile`, `Curve`, `GDP`, `RDP`, `KL`, or a notion of your own.
    - `domain`: `optdp.Interval`, `Circle`, `Box`, `Alphabet`, `OneHot`, `Sphere`, `Ball`, `Line`, `Integers`; a pair of numbers
      is an interval.
    - `objective`: `optdp.WorstCase(loss)`, `Average(loss, prior)`, `At(loss, x)`, `Quantile(level)`, `BayesRisk(task, prior)`; a
      loss stands for its worst case.
    - `family`: `optdp.AllMechanisms()`, `Piecewise(m)`, `AffineWindow(kind)`, `Composite(activation, base)`, `Additive()`.
    - `constraints`: `optdp.Unbiased()`, `Outputs(low, high)`. Without `Outputs`, outputs lie in the domain; they may lie anywhere
      if the mechanism must be unbiased or the family says so.

    Frozen, hashable, comparable, picklable, and (unless a Python function is part of it) written to JSON and back.

        >>> import optdp
        >>> print(optdp.Problem(optdp.LDP(1.0), optdp.Interval(0, 1), optdp.WorstCase("abs")).statement())
        the least worst-case E|Y - x| over all 1.0-LDP mechanisms from [0, 1] to [0, 1]
    """

    tag = "problem"
    privacy: Privacy
    domain: Annotated[Any, Within(kind=Domain)]
    objective: Annotated[Any, Within(kind=Objective)]
    family: Family = AllMechanisms()  # noqa: RUF009  (frozen)
    constraints: Annotated[tuple[Constraint, ...], Within(most=16)] = ()

    def __post_init__(self) -> None:
        domain = (
            self.domain if isinstance(self.domain, Domain) else as_domain(self.domain, others="another optdp.Domain")
        )
        objective = self.objective if isinstance(self.objective, Objective) else WorstCase(self.objective)
        for name, value, kind, such in (
            ("privacy", self.privacy, Privacy, "a privacy notion such as optdp.LDP(1.0)"),
            (
                "family",
                self.family,
                Family,
                "a family of mechanisms such as optdp.AllMechanisms() or optdp.Piecewise(3)",
            ),
        ):
            if not isinstance(value, kind):
                raise TypeError(f"{name} = {value!r} is not allowed: it must be {such}")
        constraints = tuple(self.constraints) if isinstance(self.constraints, tuple | list) else (self.constraints,)
        if not all(isinstance(c, Constraint) for c in constraints):
            such = "optdp.Unbiased() or optdp.Outputs(0, 1)"
            raise TypeError(f"constraints = {constraints!r} is not allowed: each must be a constraint such as {such}")
        kinds = [type(c) for c in constraints]
        if len(set(kinds)) < len(kinds):
            raise ValueError(f"constraints = {constraints!r} is not allowed: each kind may be asked for once")
        if Outputs in kinds and (
            isinstance(domain, Alphabet) or domain.dimension is not None or isinstance(objective, BayesRisk)
        ):
            raise ValueError("constraints: outputs are not allowed to be bounded here: they are no numbers")
        object.__setattr__(self, "domain", domain)
        object.__setattr__(self, "privacy", self.privacy.on(domain))
        object.__setattr__(self, "objective", objective.on(domain))
        object.__setattr__(self, "constraints", tuple(sorted(constraints, key=lambda c: c.tag)))

    @property
    def eps(self) -> Number | None:
        """The privacy notion's epsilon, if it has one."""
        return getattr(self.privacy, "eps", None)

    @property
    def loss(self) -> Any:
        """The objective's loss."""
        return self.objective.loss

    @property
    def unbiased(self) -> bool:
        """Whether E[Y | x] = x is asked for."""
        return any(isinstance(c, Unbiased) for c in self.constraints)

    @property
    def outputs(self) -> tuple[float, float] | None:
        """(lowest, highest) allowed output; None where there is no limit."""
        for constraint in self.constraints:
            if isinstance(constraint, Outputs):
                return constraint.low, constraint.high
        if self.unbiased or self.family.anywhere or not hasattr(self.domain, "exact_width"):
            return None
        return self.domain.lower, self.domain.upper

    def statement(self) -> str:
        """One exact sentence: what the optimum is of. Every title and every printed bound uses it and no other."""
        adjectives = "".join(c.adjective for c in self.constraints)
        clauses = "".join(c.clause for c in self.constraints)
        arithmetic = ", in real arithmetic" if self.privacy.ideal else ""
        return (
            f"the least {self.phrase} over all {adjectives}{self.privacy.adjective} mechanisms from "
            f"{self.domain} to {self._codomain()}{self.family.clause(self.eps)}{clauses}{self.privacy.clause}{arithmetic}"
        )

    @property
    def phrase(self) -> str:
        """The objective's phrase on this domain: the distance of vectors is a norm."""
        phrase: str = self.objective.phrase
        return phrase if self.domain.dimension is None else phrase.replace("(Y - x)^2", "|Y - x|^2")

    def _codomain(self) -> str:
        if self.domain.dimension is not None:
            return f"R^{self.domain.dimension}"
        if isinstance(self.objective, BayesRisk):
            return "any outputs"
        if isinstance(self.domain, Alphabet):
            rows = getattr(self.objective.loss, "rows", None)
            return "any outputs" if rows is None else f"{len(rows[0])} outputs"
        if self.outputs is None:
            return "the real line" if hasattr(self.domain, "exact_width") else "itself"
        if self.outputs == (self.domain.lower, self.domain.upper):
            return str(self.domain) if isinstance(self.domain, Interval) else "itself"
        return f"[{plain(self.outputs[0])}, {plain(self.outputs[1])}]"

    def latex(self) -> str:
        """The problem in LaTeX: objective, the inequality of the guarantee, and what else is asked."""
        asked = [self.privacy.latex()]
        if self.unbiased:
            asked.append(r"\mathbb{E}[Y \mid x] = x")
        if clause := self.family.clause(self.eps).strip():
            asked.append(rf"\text{{mechanisms {prose(clause)}}}")
        for constraint in self.constraints:
            if isinstance(constraint, Outputs):
                asked.append(rf"Y \in [{plain(constraint.low)}, {plain(constraint.high)}]")
        goal = self.objective.latex(self.domain)
        if self.domain.dimension is not None:
            goal = goal.replace("(Y - x)^2", r"\|Y - x\|^2")
        return rf"\min_{{K}}\; {goal} \quad \text{{s.t.}} \quad {', '.join(asked)}"

    def _repr_latex_(self) -> str:
        return f"$\\displaystyle {self.latex()}$"

    def __str__(self) -> str:
        return self.statement()

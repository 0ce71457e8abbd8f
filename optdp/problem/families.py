"""Sets of mechanisms within which the best one is asked for.

A family tests membership by what a mechanism says of itself (`Mechanism.pieces`, `.shapes`, `.adds_noise`), so that
mechanisms and families need not know each other's classes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from optdp.exact import Number, Tagged, Within, exp_of, require
from optdp.problem.constraints import Candidate
from optdp.problem.shapes import Quartic, Rectangle, Shape, Triangle, as_activation, as_base

Rule = Literal["uniform", "pointwise"]


class Family(Tagged, root=True):
    """A set of mechanisms: `contains(mechanism)`, and how statements name it."""

    #: Whether outputs of members may leave the domain of the inputs.
    anywhere: bool = False

    def contains(self, mechanism: Candidate, eps: Number | None = None) -> bool:
        """Whether the mechanism is a member. **Arguments:** `eps`: the privacy parameter, where the family refers to it."""
        raise NotImplementedError(f"{type(self).__name__} has no membership test")

    def clause(self, eps: Number | None) -> str:
        """What follows "mechanisms from ... to ..." in a statement; may be empty."""
        raise NotImplementedError(f"{type(self).__name__} has no clause")


@dataclass(frozen=True)
class AllMechanisms(Family):
    """Every mechanism from the domain to its outputs."""

    tag = "all"

    def contains(self, mechanism: Candidate, eps: Number | None = None) -> bool:
        return True

    def clause(self, eps: Number | None) -> str:
        return ""


@dataclass(frozen=True)
class Piecewise(Family):
    """Densities of at most m pieces on an interval (arcs on a circle): heights p_1, ..., p_m in this order, the same for all
    inputs, with p_i <= e^eps p_j for all i and j; breakpoints depend on the input.

    **Source:** Zheng, Mishra and Hu, "Optimal piecewise-based mechanism for collecting bounded numerical data under local
    differential privacy" (PoPETs 2025).
    """

    tag = "piecewise"
    m: Annotated[int, Within(2, 10**6)] = 3

    def contains(self, mechanism: Candidate, eps: Number | None = None) -> bool:
        return mechanism.pieces is not None and mechanism.pieces <= self.m

    def clause(self, eps: Number | None) -> str:
        consists = f" whose density at every input consists of {self.m} pieces with the same heights in the same order"
        return consists if eps is None else f"{consists}, none more than {exp_of(eps)} times another"


class Windows(Family):
    """Base and activation: with a fixed probability from the base, else from an activation whose centre is affine in x.

    `rule` bounds the heights of the two parts of the density: by "uniform" their largest values add up to at most e^eps times the
    base's least, by "pointwise" the activation's largest is at most e^eps - 1 times the base's least. Both imply eps-LDP; for a
    constant base they agree.
    """

    anywhere = True
    activation: Shape
    base: Shape | str
    rule: Rule

    @property
    def standing(self) -> Shape:
        """The base itself; for "B2" (every quartic base) the constant that its class approaches."""
        return Rectangle() if isinstance(self.base, str) else self.base

    def contains(self, mechanism: Candidate, eps: Number | None = None) -> bool:
        if mechanism.shapes is None:
            return False
        activation, base = mechanism.shapes
        same_base = base == self.base if isinstance(self.base, Shape) else isinstance(base, Quartic)
        return bool(activation == self.activation and same_base and mechanism.keeps_rule(self.rule, eps))


@dataclass(frozen=True)
class AffineWindow(Windows):
    """Piecewise transformations: a constant floor on a fixed range and a window whose centre is affine in the input.

    **Arguments:** `kind`: "I": the density is constant in the window; "II": it rises above the floor as a triangle; "free": any
    density between f and e^eps f for one constant f, on any one range of outputs.

    **Source:** Ma, Zhu and Wang, "OPTT: Optimal piecewise transformation technique"
    (arXiv 2112.04745, 2021), Sections 3.3.1 and 3.3.2.
    """

    tag = "affine-window"
    rule = "uniform"  # for a constant base both rules say the same
    kind: Literal["I", "II", "free"] = "I"

    @property
    def activation(self) -> Shape:  # type: ignore[override]
        return Triangle() if self.kind == "II" else Rectangle()

    @property
    def base(self) -> Shape:  # type: ignore[override]
        return Rectangle()

    def contains(self, mechanism: Candidate, eps: Number | None = None) -> bool:
        if self.kind != "free":
            return super().contains(mechanism, eps)
        # Whatever stands above the constant, the rule keeps the density between f and e^eps f.
        constant = mechanism.shapes is not None and mechanism.shapes[1] == self.base
        return bool(constant and mechanism.keeps_rule(self.rule, eps))

    def clause(self, eps: Number | None) -> str:
        top = "a fixed factor times f" if eps is None else f"{exp_of(eps)} f"
        if self.kind == "free":
            return f" whose densities lie between f and {top} for one constant f, on one bounded range of outputs"
        what = "is another constant" if self.kind == "I" else "rises as a symmetric triangle"
        return (
            f" whose density is a constant f on one bounded range of outputs and {what}, up to at most {top}, in a window of "
            "fixed width and height whose centre is affine in the input"
        )


@dataclass(frozen=True)
class Composite(Windows):
    """An activation that follows the input above a base that does not.

    **Arguments:** `activation`: "A1", "A2", "A3", a `Shape` or a function; `base`: "B1", "B2" (every quartic base), a `Shape` or
    a function; `rule`: "uniform": the largest densities of both parts together are at most e^eps times the base's least (the
    paper's Definition 3.3); "pointwise": the activation's is at most e^eps - 1 times the base's least.

    **Source:** composite differential privacy, Sections 3.2 and 4.2.
    """

    tag = "composite"
    activation: Annotated[Any, Within(kind=Shape)] = "A1"
    base: Annotated[Any, Within(kind=Shape, words=("B2",))] = "B1"
    rule: Rule = field(default="uniform")

    def __post_init__(self) -> None:
        object.__setattr__(self, "activation", as_activation(self.activation))
        object.__setattr__(self, "base", as_base(self.base))
        require.choice("rule", self.rule, ("uniform", "pointwise"))

    def clause(self, eps: Number | None) -> str:
        if self.rule == "uniform":
            factor = "a fixed factor" if eps is None else exp_of(eps)
            rule = f"the largest densities of both parts add up to at most {factor}"
        else:
            factor = "a fixed factor" if eps is None else f"({exp_of(eps)} - 1)"
            rule = f"the activation's part has a density of at most {factor}"
        return (
            f" that draw from the base {_shape(self.base)} on one bounded range of outputs with a fixed probability, and "
            f"otherwise from the activation {_shape(self.activation)} of fixed width whose centre is affine in the input, where "
            f"{rule} times the least density of the base's part"
        )


def _shape(shape: Shape | str) -> str:
    if isinstance(shape, str):
        return "B2 (any quartic)"
    return {"A1": "B1/A1 (constant)", "A2": "A2 (half a sine)", "A3": "A3 (triangle)"}.get(shape.name, shape.phrase())


@dataclass(frozen=True)
class Additive(Family):
    """Y = x + Z with noise Z that does not depend on the input."""

    tag = "additive"
    anywhere = True

    def contains(self, mechanism: Candidate, eps: Number | None = None) -> bool:
        return mechanism.adds_noise

    def clause(self, eps: Number | None) -> str:
        return " that add noise which does not depend on the input"

"""Privacy notions as values: what is guaranteed, for which neighbours, with which exact parameters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, Self

from optdp.exact import enclosures, require
from optdp.exact.check import Check
from optdp.exact.fields import OPTIONAL, Tagged
from optdp.exact.numbers import Log, Number, exp_of, latex, number, prose, show
from optdp.problem.priors import Prior


class Privacy(Tagged, root=True):
    """A guarantee with its parameters and its neighbourhood.

    To add a notion, subclass this as a frozen dataclass with a `tag`, `adjective`, and `implied_by` (or `_implied_by`);
    `docs/extending/privacy.md` is a worked example. `ideal` says that the guarantee holds for the mechanism in real
    arithmetic while its sampler works with floats: it implies nothing about the floats that are sent.
    """

    ideal: bool = False

    @property
    def adjective(self) -> str:
        """What mechanisms with this guarantee are called, e.g. "1.0-LDP"."""
        raise NotImplementedError(f"{type(self).__name__} has no adjective")

    @property
    def clause(self) -> str:
        """What follows the family in a statement: the neighbourhood or the prior; may be empty."""
        return ""

    def latex(self) -> str:
        """The defining inequality."""
        return rf"\text{{{prose(self.adjective)}}}"

    def implied_by(self, other: Privacy) -> bool | None:
        """Whether every mechanism with the guarantee `other` has this one: True, False, or None where it is not known.

        >>> import optdp
        >>> optdp.LDP(1.0).implied_by(optdp.LDP(0.5)), optdp.LDP(0.5).implied_by(optdp.LDP(1.0))
        (True, False)
        """
        answer = self._implied_by(other)
        return None if answer and other.ideal and not self.ideal else answer

    def _implied_by(self, other: Privacy) -> bool | None:
        return True if type(self) is type(other) and self._parameters() == other._parameters() else None

    def _parameters(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "ideal"}

    def in_real_arithmetic(self) -> Self:
        """The same guarantee, for the ideal mechanism whose sampler rounds to floats."""
        return replace(self, ideal=True)  # type: ignore[type-var]

    def __str__(self) -> str:
        """For people: statements use `adjective` and `clause`, which are exact however long."""
        eps = getattr(self, "eps", None)
        text = f"{self.adjective}{self.clause}"
        if isinstance(eps, Log) and len(show(eps)) > 30:
            text = text.replace(show(eps), f"{float(eps):.12g}...", 1) + " (eps is the log of an exact ratio)"
        return text + (" (in real arithmetic; floats are sampled)" if self.ideal else "")


def _nonnegative(value: Any, name: str) -> Number:
    found = number(value, name)
    if (found.argument < 1) if isinstance(found, Log) else found < 0:
        raise ValueError(f"{name} = {found!r} is not allowed: {name} must be >= 0")
    return found


@dataclass(frozen=True)
class LDP(Privacy):
    """eps-local differential privacy: K(S|x) <= e^eps K(S|x') for all inputs x, x' and sets S of outputs.

    **Arguments:** `eps`: >= 0, an exact number: a float stands for its exact value, "1/3" for the rational, and
    `optdp.log(3)` makes e^eps = 3. (Designs solve for eps in (0, 30]; a guarantee may be any.) `ideal`: see `Privacy`.

    **Source:** Kasiviswanathan et al., "What can we learn privately?" (2011).
    """

    tag = "ldp"
    eps: Number
    ideal: bool = field(default=False, repr=False, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", _nonnegative(self.eps, "eps"))

    @property
    def adjective(self) -> str:
        return f"{show(self.eps)}-LDP"

    def latex(self) -> str:
        return rf"K(S \mid x) \le e^{{{latex(self.eps)}}} K(S \mid x')"

    def _implied_by(self, other: Privacy) -> bool | None:
        if isinstance(other, LDP):
            return enclosures.at_most(other.eps, self.eps)
        if isinstance(other, LIP) and not other.lower_only:  # K(y|x) lies between e^-eps P(y) and e^eps P(y)
            twice = Log(other.eps.argument**2) if isinstance(other.eps, Log) else 2 * Fraction(other.eps)
            return True if enclosures.at_most(twice, self.eps) else None
        return None  # of ApproxDP too: neighbours there may be fewer

    def check(self, ratio: Fraction) -> Check:
        """Whether the largest likelihood ratio K(y|x)/K(y|x'), given exactly, is at most e^eps."""
        told = f"the largest likelihood ratio is {float(ratio):.17g} (exact rational), at most {exp_of(self.eps)}"
        return Check("privacy", enclosures.at_most_exp(ratio, self.eps), told)


@dataclass(frozen=True)
class ApproxDP(Privacy):
    """(eps, delta)-differential privacy: P(M(x) in S) <= e^eps P(M(x') in S) + delta whenever |x - x'| <= sensitivity.

    **Arguments:** `eps` in [0, 30] and `delta` in [0, 1), not both 0, exact numbers as in `LDP`; `sensitivity` > 0, a float.

    **Source:** Dwork, Kenthapadi, McSherry, Mironov, Naor, "Our data, ourselves" (2006).
    """

    tag = "approx"
    eps: Number
    delta: Number = 0.0
    sensitivity: float = 1.0
    ideal: bool = field(default=False, repr=False, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", require.exact_epsilon(self.eps, zero=True))
        delta = number(self.delta, "delta")
        require.real("delta", float(delta), low=0.0, high=1.0, open_high=True)
        if isinstance(delta, Log):
            raise TypeError(f"delta = {delta!r} is not allowed: delta must be a rational number")
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "sensitivity", require.real("sensitivity", self.sensitivity, low=1e-150, high=1e150))
        if self.eps == 0 and self.delta == 0:
            raise ValueError("eps = 0, delta = 0 is not allowed: no noise hides everything, so one of them must be > 0")

    @property
    def adjective(self) -> str:
        return f"({show(self.eps)}, {show(self.delta)})-DP"

    @property
    def clause(self) -> str:
        return f", where neighbours are inputs at most {show(self.sensitivity)} apart"

    def latex(self) -> str:
        return (
            rf"K(S \mid x) \le e^{{{latex(self.eps)}}} K(S \mid x') + {latex(self.delta)}, "
            rf"\quad |x - x'| \le {latex(self.sensitivity)}"
        )

    def _implied_by(self, other: Privacy) -> bool | None:
        if isinstance(other, LDP):  # all inputs are neighbours there
            return True if enclosures.at_most(other.eps, self.eps) else None
        if isinstance(other, ApproxDP):
            smaller = enclosures.at_most(other.eps, self.eps) and Fraction(other.delta) <= Fraction(self.delta)  # type: ignore[arg-type]
            if smaller and other.sensitivity >= self.sensitivity:
                return True
            if other.sensitivity == self.sensitivity and other.eps == self.eps:
                return False  # same eps, larger delta: mechanisms that need all of it exist
        return None

    def check(self, divergence: Fraction) -> Check:
        """Whether the largest hockey-stick divergence, bounded from above exactly, is at most delta."""
        what = f"the hockey-stick divergence at {exp_of(self.eps)} over all shifts up to {show(self.sensitivity)}"
        told = f"{what} is at most {float(divergence):.17g} (exact rational), at most delta = {show(self.delta)}"
        return Check("privacy", divergence <= Fraction(self.delta), told)  # type: ignore[arg-type]


@dataclass(frozen=True)
class LIP(Privacy):
    """eps-local information privacy for a prior P: e^-eps <= P(x) / P(x|y) <= e^eps for all categories x and outputs y.

    What anyone knows of a user's category after the output differs from what the prior says by a factor of at most
    e^eps, in both directions. With `lower_only` only posterior >= e^-eps prior is asked for: no category may be ruled
    out, but one may be revealed. eps-LDP implies eps-LIP for every prior.

    **Arguments:** `eps`: >= 0, an exact number as in `LDP`; `prior`: an `optdp.Prior`; `lower_only`.

    **Source:** Jiang, Li, Tandon, "Context-aware data aggregation with localized information privacy" (IEEE CNS 2018).
    """

    tag = "lip"
    eps: Number
    prior: Prior
    lower_only: bool = False
    ideal: bool = field(default=False, repr=False, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", _nonnegative(self.eps, "eps"))
        object.__setattr__(self, "prior", Prior.of(self.prior))

    @property
    def adjective(self) -> str:
        return f"{show(self.eps)}-LIP" if not self.lower_only else f"one-sided {show(self.eps)}-LIP"

    @property
    def clause(self) -> str:
        asked = " (asked: posterior >= e^-eps prior)" if self.lower_only else ""
        return f"{asked}, with {self.prior.phrase()}"

    def latex(self) -> str:
        lower = rf"e^{{-{latex(self.eps)}}} P(x) \le P(x \mid y)"
        return lower if self.lower_only else rf"{lower} \le e^{{{latex(self.eps)}}} P(x)"

    def _implied_by(self, other: Privacy) -> bool | None:
        if isinstance(other, LDP):
            return True if enclosures.at_most(other.eps, self.eps) else None
        if isinstance(other, LIP) and other.prior == self.prior:
            smaller = enclosures.at_most(other.eps, self.eps)
            if self.lower_only or not other.lower_only:
                return smaller if self.lower_only == other.lower_only else smaller or None
        return None

    def check(self, lowest: Fraction, highest: Fraction, where: tuple[str, str] = ("", "")) -> Check:
        """Whether posterior / prior, which lies in [lowest, highest] exactly, keeps the guarantee.

        `where` says at which category and output the two ends are attained.
        """
        eps = show(self.eps)
        from_below = lowest > 0 and enclosures.at_most_exp(1 / lowest, self.eps)
        from_above = self.lower_only or enclosures.at_most_exp(highest, self.eps)
        sides = [f"lowest posterior/prior {float(lowest):.17g}{where[0]} {'>=' if from_below else '< '} e^-{eps}"]
        if not self.lower_only:
            sides += [f"highest posterior/prior {float(highest):.17g}{where[1]} {'<=' if from_above else '> '} e^{eps}"]
        return Check("privacy", from_below and from_above, ", ".join(sides) + " (exact rationals)")

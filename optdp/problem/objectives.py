"""What is minimised: a loss at the worst input, on average over a prior, at one input, after the best decoding; or a quantile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from numbers import Integral
from typing import Annotated, Any

import numpy as np
from flint import fmpq, fmpq_poly

from optdp.exact import Tagged, Within, enclosures, plain, prose, require, work
from optdp.exact.polynomial import exact
from optdp.problem.density import Density, Row
from optdp.problem.domains import Alphabet, Domain, Interval
from optdp.problem.losses import Loss, Power, as_loss
from optdp.problem.priors import Distribution, Prior
from optdp.problem.tasks import Aggregate


class Objective(Tagged, root=True):
    """A number that every mechanism has, and that a problem asks to be least."""

    @property
    def phrase(self) -> str:
        """The number in a statement, after "the least": e.g. "worst-case E|Y - x|"."""
        raise NotImplementedError(f"{type(self).__name__} has no phrase")

    @property
    def name(self) -> str:
        """The short form for tables."""
        return self.phrase

    def latex(self, domain: Domain) -> str:
        """The number in LaTeX."""
        return rf"\text{{{prose(self.phrase)}}}"

    def on(self, domain: Domain) -> Objective:
        """The objective with everything that it takes checked against the domain."""
        return self

    def __str__(self) -> str:
        return self.name


@dataclass(frozen=True)
class _OfLoss(Objective):
    loss: Annotated[Any, Within(kind=Loss)]

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "loss", as_loss(self.loss))

    def on(self, domain: Domain) -> Objective:
        reach = getattr(domain, "exact_reach", None)
        if isinstance(domain, Alphabet):
            return replace(self, loss=self.loss.among(domain.symbols))
        if reach is None:
            return self
        loss = self.loss.on(reach)
        with np.errstate(over="ignore", invalid="ignore"):
            if loss.form == "distance" and not np.isfinite(loss.of(0.0, float(reach)) * float(reach)):
                where = f"on {domain}: it or its integral overflows there; use smaller units"
                raise ValueError(f"loss = {loss.name!r} is not allowed {where}")
        return replace(self, loss=loss)

    def _expected(self) -> str:
        inner = self.loss.phrase
        return f"E{inner}" if inner[0] in "|([" else f"E[{inner}]"


@dataclass(frozen=True)
class WorstCase(_OfLoss):
    """The largest expected loss over all inputs. **Arguments:** `loss`: "abs", "squared", an `optdp.Loss` such as
    `optdp.Power(q)`, a nondecreasing function of the distance, or, on an alphabet, a matrix.
    """

    tag = "worst-case"

    @property
    def phrase(self) -> str:
        return f"worst-case {self._expected()}"

    @property
    def name(self) -> str:
        return f"worst-case {self.loss.name}"

    def latex(self, domain: Domain) -> str:
        return rf"\max_{{x \in {domain.latex()}}} \mathbb{{E}}\left[{self.loss.latex()}\right]"


@dataclass(frozen=True)
class Average(_OfLoss):
    """The expected loss averaged over inputs drawn from a prior.

    **Arguments:** `loss`; `prior`: an `optdp.Prior` whose categories are inputs (anything that `Prior.of` reads), a pair
    (points, probabilities), an `optdp.Density` on an interval, or "uniform" on a bounded domain.
    """

    tag = "average"
    prior: Annotated[Any, Within(kind=Distribution, words=("uniform",))] = "uniform"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.prior, Distribution | str):
            object.__setattr__(self, "prior", _as_prior(self.prior))
        elif isinstance(self.prior, str):
            require.choice(
                "prior", self.prior, ("uniform",), "a pair (points, probabilities), an optdp.Prior or optdp.Density"
            )

    @property
    def phrase(self) -> str:
        prior = "the uniform prior" if isinstance(self.prior, str) else self.prior.phrase()
        return f"average {self._expected()} under {prior}"

    @property
    def name(self) -> str:
        return f"average {self.loss.name}"

    def density(self, domain: Interval) -> list[tuple[Fraction, Fraction, Row]]:
        """For a prior with a density its pieces (start, end, coefficients) over shares of the domain, per share."""
        if isinstance(self.prior, Density):
            return self.prior.on(domain).shares(domain)
        return [(Fraction(0), Fraction(1), (Fraction(1),))]

    def cells(self, domain: Interval, edges: np.ndarray, centres: np.ndarray) -> tuple[np.ndarray, float, np.ndarray]:
        """For a prior with a density, in shares of the domain: (the mass in each cell, the mean distance of an input from its
        cell's centre, the integral of the share over each cell). Masses and integrals are within 2^-51, and the distance is not
        too small.
        """
        below, first = self._moments(domain, edges)
        inner, second = self._moments(domain, centres)
        near, far = inner - below[:-1], below[1:] - inner
        apart = (first[1:] - second - centres * far) + (centres * near - (second - first[:-1]))
        slack = 2.0**-48 * len(centres)
        return near + far, max(float(apart.sum()), 0.0) + slack, first[1:] - first[:-1]

    def _moments(self, domain: Interval, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The integrals of 1 and of the share up to each of these, computed exactly and rounded to the nearest float."""
        starts: list[Fraction] = []
        masses: list[fmpq_poly] = []
        firsts: list[fmpq_poly] = []
        mass, first = fmpq(0), fmpq(0)
        for start, end, row in self.density(domain):
            a, b = exact(start), exact(end)
            body = fmpq_poly([*map(exact, row)])
            for kept, total, power in ((masses, mass, body), (firsts, first, body * fmpq_poly([0, 1]))):
                whole = power.integral()
                kept.append(whole - whole(a) + total)
            mass, first = masses[-1](b), firsts[-1](b)
            starts.append(start)
        terms = max(len(power.coeffs()) for power in firsts)
        work.count(2 * len(shares) * terms * work.flint(1 + terms / 2))
        out = np.empty((2, len(shares)))
        # A float is below a start iff it is below the next float.
        places = np.searchsorted([enclosures.round_up(start) for start in starts], shares, side="right") - 1
        low, high, last = exact(starts[0]), exact(end), enclosures.round_down(end)
        for k, (share, place) in enumerate(zip(shares.tolist(), places.tolist(), strict=True)):
            at = low if place < 0 else high if share > last else exact(share)
            for line, pieces in zip(out, (masses, firsts), strict=True):
                found = pieces[max(place, 0)](at)
                line[k] = int(found.p) / int(found.q)
        return out[0], out[1]

    def on(self, domain: Domain) -> Objective:
        if isinstance(self.prior, Density):
            even = self.prior.on(domain) == Density.uniform(domain)
            return super(Average, replace(self, prior="uniform" if even else self.prior)).on(domain)
        if isinstance(self.prior, Prior):
            domain.check(list(self.prior.categories), "prior points")
            if hasattr(domain, "exact_reach"):  # points of an interval or a circle, and named as such
                points = tuple(_points(self.prior.categories))
                return super(Average, replace(self, prior=replace(self.prior, categories=points))).on(domain)
        return super().on(domain)

    def latex(self, domain: Domain) -> str:
        average = rf"\mathbb{{E}}_{{x \sim P}} \mathbb{{E}}\left[{self.loss.latex()}\right]"
        return average + rf",\; dP/dx = {self.prior.latex()}" if isinstance(self.prior, Density) else average


def _points(given: Any) -> list[float]:
    """Points as floats. **Raises** ValueError for an integer that none is."""
    found: list[float] = require.reals(given, "prior points").tolist()
    if any(isinstance(point, Integral) and int(point) != float(point) for point in given):
        raise ValueError("prior points are not allowed: integers beyond 2^53 must be floats, as 2.0**53 is")
    return found


def _as_prior(prior: Any) -> Prior:
    """(points, probabilities), or whatever `Prior.of` reads."""
    if isinstance(prior, tuple | list | np.ndarray) and len(prior) == 2 and np.ndim(prior[0]) == 1:
        if np.shape(prior[0]) != np.shape(prior[1]):
            raise TypeError("prior is not allowed: it must be a pair (points, probabilities) of equally long lists")
        points = _points(prior[0])
        if len(set(points)) < len(points):
            raise ValueError(
                "prior is not allowed: its points must be distinct (add up the probabilities of equal ones)"
            )
        return Prior.of(list(prior[1]), points)
    return Prior.of(prior)


@dataclass(frozen=True)
class At(_OfLoss):
    """The expected loss at one input `x`."""

    tag = "at"
    x: Annotated[float, Within()] = 0.0

    @property
    def phrase(self) -> str:
        return f"{self._expected()} at x = {plain(self.x)}"

    @property
    def name(self) -> str:
        return f"{self.loss.name} at {plain(self.x)}"

    def on(self, domain: Domain) -> Objective:
        if domain.dimension is not None:
            raise ValueError(f"objective = {self} is not allowed on {domain}: At is for inputs that are numbers")
        domain.check(self.x, "objective's x")
        return super().on(domain)

    def latex(self, domain: Domain) -> str:
        return rf"\mathbb{{E}}\left[{self.loss.latex()}\right] \text{{ at }} x = {plain(self.x)}"


@dataclass(frozen=True)
class Quantile(Objective):
    """The least t with P(|Y - x| <= t) >= level at every input x: how far error bars at that confidence reach to either side.

    It is no expectation: P(|Y - x| > t), which is one, tells for each t whether the quantile is above it.

    **Arguments:** `level`: the confidence, in (0, 1).
    """

    tag = "quantile"
    level: Annotated[float, Within(0.0, 1.0, open_low=True, open_high=True)]

    @property
    def loss(self) -> Power:
        """The error whose quantile it is."""
        return Power(1)

    @property
    def phrase(self) -> str:
        return f"worst-case {plain(self.level)}-quantile of |Y - x|"

    @property
    def name(self) -> str:
        return f"{plain(self.level)}-quantile of |Y - x|"

    def latex(self, domain: Domain) -> str:
        inside = rf"P(|Y - x| \le t \mid x) \ge {plain(self.level)}"
        return rf"\max_{{x \in {domain.latex()}}} \min\{{t : {inside}\}}"


@dataclass(frozen=True)
class BayesRisk(Objective):
    """The mean square error of the best estimate from the output, for users whose category follows a prior.

    **Arguments:** `task`: an `optdp.problem.tasks.Aggregate`, what is estimated; `prior`: an `optdp.Prior`.
    """

    tag = "bayes-risk"
    task: Aggregate
    prior: Prior

    def __post_init__(self) -> None:
        if not isinstance(self.task, Aggregate):
            raise TypeError(f"task = {self.task!r} is not allowed: it must be an optdp.problem.tasks.Aggregate")
        object.__setattr__(self, "prior", Prior.of(self.prior))
        values, needed = self.task.values, len(self.prior)
        if values is not None and len(values) != needed:
            raise ValueError(f"values has {len(values)} entries, which is not allowed: it needs {needed}")

    @property
    def loss(self) -> Power:
        """The squared error."""
        return Power(2)

    @property
    def phrase(self) -> str:
        return f"mean square error of the best estimate of {self.task.phrase}, under {self.prior.phrase()},"

    @property
    def name(self) -> str:
        return self.task.name

    def latex(self, domain: Domain) -> str:
        if self.task.kind == "histogram":
            return r"\mathbb{E}_{X \sim P}\left[\|e_X - \mathbb{E}[e_X \mid Y]\|^2\right]"
        return r"\mathbb{E}_{X \sim P}\left[(v(X) - \mathbb{E}[v(X) \mid Y])^2\right]"

"""Privacy notions as values: what is guaranteed, for which neighbours, with which exact parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from flint import arb, ctx

from optdp.exact import OPTIONAL, Check, Tagged, Within, enclosures, require, work
from optdp.exact.numbers import Log, Number, digest, digits, exp_of, latex, prose, show
from optdp.exact.pairs import Pair
from optdp.problem.priors import Prior

#: Most divergences are told from their bounds in so many bits.
BITS = 96
#: Corners of a power curve are first compared with chords of the Gaussian's, where there are more than MANY outcomes: between
#: vertices at normal quantiles 1/CHORDS apart, from -DEEPEST to 0.
MANY, CHORDS, DEEPEST = 150, 1024, 7
#: Pairs (eps, delta).
Pairs = tuple[tuple[Number, Number], ...]
#: Corners (P(S), Q(S)) of a power curve: what the best tests of one neighbour against the other reach.
Corners = list[tuple[Fraction, Fraction]]


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
        if not isinstance(other, Privacy):
            raise TypeError(f"other = {other!r} is not allowed: it must be a privacy notion such as optdp.LDP(1.0)")
        answer = self._implied_by(other)
        return None if answer and other.ideal and not self.ideal else answer

    def _implied_by(self, other: Privacy) -> bool | None:
        own, others = ({k: v for k, v in vars(notion).items() if k != "ideal"} for notion in (self, other))
        return True if type(self) is type(other) and own == others else None

    def on(self, domain: Any) -> Privacy:
        """The notion with everything that it takes checked against the domain. **Raises** ValueError where it does not fit."""
        return self

    def delta_at(self, eps: Number) -> Fraction | None:
        """A delta for which the guarantee implies (eps, delta)-differential privacy for its neighbours; None: none is known."""
        return None

    def admits(self, pair: Pair) -> bool | None:
        """Whether neighbours may have these two distributions of outputs: True or False where proven, None where not known."""
        return None

    def in_real_arithmetic(self) -> Self:
        """The same guarantee, for the ideal mechanism whose sampler rounds to floats."""
        return replace(self, ideal=True)  # type: ignore[type-var]

    def __str__(self) -> str:
        """For people: numbers of many digits are rounded up, to a guarantee that is implied. Statements use `adjective` and
        `clause`, which are exact however long.
        """
        text = f"{self.adjective}{self.clause}"
        rounded: list[str] = []
        for name in ("eps", "delta"):
            value = getattr(self, name, 0.0)
            if len(show(value)) > 30:
                text, rounded = text.replace(show(value), enclosures.rounded_up(value, 12)), [*rounded, name]
        text += f" ({' and '.join(rounded)} rounded up)" if rounded else ""
        return text + (" (in real arithmetic; floats are sampled)" if self.ideal else "")


@dataclass(frozen=True)
class Notion(Privacy):
    """What all notions here have: they can be those of an ideal mechanism."""

    ideal: bool = field(default=False, repr=False, kw_only=True, metadata=OPTIONAL)


@dataclass(frozen=True)
class LDP(Notion):
    """eps-local differential privacy: K(S|x) <= e^eps K(S|x') for all inputs x, x' and sets S of outputs.

    **Arguments:** `eps`: >= 0, an exact number: a float stands for its exact value, "1/3" for the rational, and
    `optdp.log(3)` makes e^eps = 3. (Designs solve for eps in (0, 30]; a guarantee may be any.) `ideal`: see `Privacy`.

    **Source:** Kasiviswanathan et al., "What can we learn privately?" (2011).
    """

    tag = "ldp"
    eps: Annotated[Number, Within(0.0)]

    if TYPE_CHECKING:  # what may be given

        def __init__(self, eps: Number | str, *, ideal: bool = False) -> None: ...

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
        kept = enclosures.at_most_exp(ratio, self.eps)
        limit = exp_of(self.eps)
        if isinstance(self.eps, Log) and len(limit) > 40:  # as in the guarantee of a mechanism
            limit = digits(Fraction(self.eps.argument))
        most = f"{'' if kept else 'not proven to be '}at most {limit}"
        told = f"the largest likelihood ratio is {digits(ratio)} (exact rational), {most}"
        return Check("privacy", kept, told)


#: How far neighbours may be apart.
SENSITIVITIES = 1e-150, 1e150
Sensitivity = Annotated[float, Within(*SENSITIVITIES)]


class _Central(Notion):
    """Notions whose neighbours are inputs at most `sensitivity` apart."""

    sensitivity: Sensitivity

    @property
    def clause(self) -> str:
        return f", where neighbours are inputs at most {show(self.sensitivity)} apart"

    def _latex(self, inequality: str) -> str:
        return rf"{inequality}, \quad |x - x'| \le {latex(self.sensitivity)}"


class _AtPairs(_Central):
    """Notions that ask for (eps, delta)-privacy at finitely many pairs, `asked`, or at these and more."""

    asked: Pairs

    def delta_at(self, eps: Number) -> Fraction:
        """The least delta that the pairs imply at `eps`, rounded up."""
        return _delta_at(self.asked, eps)

    def admits(self, pair: Pair) -> bool | None:
        return _admits_pairs(self.asked, pair)


@dataclass(frozen=True)
class ApproxDP(_AtPairs):
    """(eps, delta)-differential privacy: P(M(x) in S) <= e^eps P(M(x') in S) + delta whenever |x - x'| <= sensitivity.

    **Arguments:** `eps` in [0, 30] and `delta` in [0, 1), not both 0, exact numbers as in `LDP`; `sensitivity` > 0, a float.

    **Source:** Dwork, Kenthapadi, McSherry, Mironov, Naor, "Our data, ourselves" (2006).
    """

    tag = "approx"
    eps: Number
    delta: Annotated[Number, Within(0.0, 1.0, open_high=True)] = 0.0
    sensitivity: Sensitivity = 1.0

    if TYPE_CHECKING:  # what may be given

        def __init__(
            self, eps: Number | str, delta: Number | str = 0.0, sensitivity: float = 1.0, *, ideal: bool = False
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "eps", require.exact_epsilon(self.eps, zero=True))
        if isinstance(self.delta, Log):
            raise TypeError(f"delta = {self.delta!r} is not allowed: delta must be a rational number")
        if self.delta and not float(self.delta):
            raise ValueError("delta is not allowed: delta must be 0 or a number in [5e-324, 1)")
        if self.delta == 0 and enclosures.at_most(self.eps, 0):
            raise ValueError("eps = 0, delta = 0 is not allowed: no noise hides everything, so one of them must be > 0")

    @property
    def adjective(self) -> str:
        return f"({show(self.eps)}, {show(self.delta)})-DP"

    def latex(self) -> str:
        more = f" + {latex(self.delta)}" if self.delta else ""
        return self._latex(rf"K(S \mid x) \le e^{{{latex(self.eps)}}} K(S \mid x'){more}")

    def _implied_by(self, other: Privacy) -> bool | None:
        if isinstance(other, LDP):  # all inputs are neighbours there
            return True if enclosures.at_most(other.eps, self.eps) else None
        if isinstance(other, ApproxDP):
            smaller = enclosures.at_most(other.eps, self.eps) and Fraction(other.delta) <= Fraction(self.delta)  # type: ignore[arg-type]
            if smaller and other.sensitivity >= self.sensitivity:
                return True
            if other.sensitivity == self.sensitivity and other.eps == self.eps:
                return False  # same eps, larger delta: mechanisms that need all of it exist
        return _implies_pairs(self.asked, other, self.sensitivity)

    @property
    def asked(self) -> Pairs:  # type: ignore[override]
        return ((self.eps, self.delta),)

    def check(self, divergence: Fraction) -> Check:
        """Whether the largest hockey-stick divergence, bounded from above exactly, is at most delta."""
        what = f"the hockey-stick divergence at {exp_of(self.eps)} over all shifts up to {show(self.sensitivity)}"
        kept = divergence <= Fraction(self.delta)  # type: ignore[arg-type]
        most = f"{'' if kept else 'not proven to be '}at most delta = {show(self.delta)}"
        return Check("privacy", kept, f"{what} is at most {digits(divergence)} (exact rational), {most}")


@dataclass(frozen=True)
class LIP(Notion):
    """eps-local information privacy for a prior P: e^-eps <= P(x) / P(x|y) <= e^eps for all categories x and outputs y.

    What anyone knows of a user's category after the output differs from what the prior says by a factor of at most
    e^eps, in both directions. With `lower_only` only posterior >= e^-eps prior is asked for: no category may be ruled
    out, but one may be revealed. eps-LDP implies eps-LIP for every prior.

    **Arguments:** `eps`: >= 0, an exact number as in `LDP`; `prior`: an `optdp.Prior`; `lower_only`.

    **Source:** Jiang, Li, Tandon, "Context-aware data aggregation with localized information privacy" (IEEE CNS 2018).
    """

    tag = "lip"
    eps: Annotated[Number, Within(0.0)]
    prior: Prior
    lower_only: bool = False

    if TYPE_CHECKING:  # what may be given

        def __init__(
            self, eps: Number | str, prior: Prior, lower_only: bool = False, *, ideal: bool = False
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
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
        most = exp_of(self.eps)
        least = str(1 / self.eps.argument) if isinstance(self.eps, Log) else exp_of(-self.eps)
        from_below = lowest > 0 and enclosures.at_most_exp(1 / lowest, self.eps)
        from_above = self.lower_only or enclosures.at_most_exp(highest, self.eps)
        sides = [f"lowest posterior/prior {digits(lowest)}{where[0]} {'>=' if from_below else '<'} {least}"]
        if not self.lower_only:
            sides += [f"highest posterior/prior {digits(highest)}{where[1]} {'<=' if from_above else '>'} {most}"]
        return Check("privacy", from_below and from_above, ", ".join(sides) + " (exact rationals)")


def _delta_at(pairs: Pairs, eps: Number) -> Fraction:
    """The least delta at `eps` that these pairs (eps, delta) imply, rounded up: the largest P(S) - e^eps Q(S) at a corner."""
    if [e for e, _ in pairs] == [eps]:  # one pair implies no more than itself
        return Fraction(pairs[0][1])  # type: ignore[arg-type]
    direct = [Fraction(d) for e, d in pairs if enclosures.at_most(e, eps)]  # type: ignore[arg-type]
    ratio = enclosures.exp_below(eps, 256)
    corners = _power_curve(pairs, enclosures.exp_above)
    return min([*direct, max(value - ratio * place for value, place in corners)])


def _power_curve(pairs: Pairs, rounding: Callable[[Number, int], Fraction]) -> Corners:
    """Corners of the largest power curve that these pairs (eps, delta) allow, from (., 0) to (1, 1).

    P(S) <= e^eps Q(S) + delta, and the same for the complement of S with P and Q exchanged, are lines above the curve.
    """
    work.count((1 + 2 * len(pairs)) * 10 * work.rational(8))
    return list(_corners_of(tuple((rounding(eps, 256), Fraction(delta)) for eps, delta in pairs)))  # type: ignore[arg-type]


@lru_cache(maxsize=64)  # a proof asks for the same at every eps that it prices
def _corners_of(ratios: tuple[tuple[Fraction, Fraction], ...]) -> tuple[tuple[Fraction, Fraction], ...]:
    """The same of pairs (e^eps, delta)."""
    lines = [(Fraction(0), Fraction(1))]
    for ratio, level in ratios:
        lines += [(ratio, level), (1 / ratio, 1 - (1 - level) / ratio)]
    lower: Corners = []  # the lines (slope, height at 0) that are lowest somewhere, from the steepest to the flattest
    for a, b in sorted(lines, key=lambda line: (-line[0], line[1])):
        if lower and a == lower[-1][0]:
            continue
        while len(lower) > 1 and _meet(lower[-2], (a, b)) <= _meet(lower[-2], lower[-1]):
            lower.pop()
        lower.append((a, b))
    ends = [(min(a * place + b for a, b in lower), Fraction(place)) for place in (0, 1)]
    crossings = [(a * place + b, place) for (a, b), place in zip(lower, map(_meet, lower, lower[1:]), strict=False)]
    return ends[0], *(corner for corner in crossings if 0 < corner[1] < 1), ends[1]


def _meet(steep: tuple[Fraction, Fraction], flat: tuple[Fraction, Fraction]) -> Fraction:
    """Where two lines (slope, height at 0) cross."""
    return (flat[1] - steep[1]) / (steep[0] - flat[0])


def _implies_pairs(pairs: Pairs, other: Privacy, sensitivity: float) -> bool | None:
    """Whether `other` implies (eps, delta)-privacy for all of these pairs, for neighbours up to `sensitivity` apart."""
    near = getattr(other, "sensitivity", None)
    known = [other.delta_at(eps) for eps, _ in pairs]
    if near is None or near < sensitivity or any(delta is None for delta in known):
        return None
    excess = [delta - Fraction(limit) for delta, (_, limit) in zip(known, pairs, strict=True)]  # type: ignore[operator, arg-type]
    if max(excess) <= 0:
        return True
    # The curves of pairs and of GDP are those of pairs of distributions, so that there are mechanisms that need all of them.
    attained = near == sensitivity and isinstance(other, ApproxDP | Profile | GDP)
    return False if attained and max(excess) > Fraction(1, 2**100) else None


def _admits_pairs(pairs: Pairs, pair: Pair) -> bool | None:
    answers = []
    for eps, delta in pairs:
        limit = Fraction(delta)  # type: ignore[arg-type]
        within = pair.hockey_stick(enclosures.exp_below(eps)) <= limit
        answers.append(within or (None if pair.hockey_stick(enclosures.exp_above(eps)) <= limit else False))
    return False if False in answers else None if None in answers else True


class Divergence(_Central):
    """Notions that compare the outputs of inputs at most `sensitivity` apart and are decided by the worst pair of them.

    A subclass has `admits`, which must be kept by mixtures of admitted pairs, and `_by_own`, what other divergences imply.
    """

    def _implied_by(self, other: Privacy) -> bool | None:
        local = isinstance(other, LDP)
        near = self.sensitivity if local else getattr(other, "sensitivity", 0.0)
        if near < self.sensitivity:
            return None
        found: bool | None
        if isinstance(other, Curve):  # which may ask for more than its points
            found = self._by_own(other) or (True if self._by_curve(other.asked) else None)
        elif isinstance(other, LDP | _AtPairs):
            found = self._by_curve(((other.eps, 0.0),) if isinstance(other, LDP) else other.asked)
        else:
            found = self._by_own(other)
        return None if found is False and near != self.sensitivity else found

    def _by_curve(self, pairs: Pairs) -> bool | None:
        """By the two distributions with the largest power curve that the pairs allow: they are outputs of some mechanism."""
        if max(float(eps) for eps, _ in pairs) > 300:
            return None
        answers = []
        for rounding in (enclosures.exp_above, enclosures.exp_below):
            corners = [(Fraction(0), Fraction(0)), *_power_curve(pairs, rounding)]
            steps = [(c[0] - b[0], c[1] - b[1]) for b, c in pairwise(corners)]
            total = math.lcm(*(part.denominator for step in steps for part in step))
            p, q = ([int(part * total) for part in parts] for parts in zip(*steps, strict=True))
            answers.append(self.admits(Pair(p, q, total)))
        return True if answers[0] else False if answers[1] is False else None

    def _by_own(self, other: Privacy) -> bool | None:
        """What the other notions of this kind imply."""
        return None


def _ordered(a: Number | arb, b: Number | arb) -> bool | None:
    """Whether a <= b; None where balls cannot tell."""
    if not isinstance(a, arb) and not isinstance(b, arb):
        return enclosures.at_most(a, b)
    with ctx.workprec(enclosures.PRECISION):
        low, high = (x if isinstance(x, arb) else enclosures.ball(x) for x in (a, b))
        return True if low <= high else False if low > high else None


def _two_each(name: str, given: Iterable[Any], least: int, most: int) -> list[tuple[Any, Any]]:
    """A list of pairs. **Raises** TypeError or ValueError if it is none, or too short or too long."""
    try:
        found = [(eps, delta) for eps, delta in given]
    except (TypeError, ValueError):
        raise TypeError(f"{name} are not allowed: they must be a list of (eps, delta)") from None
    if not least <= len(found) <= most:
        raise ValueError(f"{len(found)} {name} are not allowed: there must be {least} to {most}")
    return found


@dataclass(frozen=True)
class Profile(_AtPairs, Divergence):
    """(eps, delta)-differential privacy at several points of the privacy profile at once.

    **Arguments:** `pairs`: a list of (eps, delta) as in `ApproxDP`, each eps once; `sensitivity` > 0, a float.

    **Source:** Balle, Barthe, Gaboardi, "Privacy amplification by subsampling: tight analyses via couplings and divergences"
    (NeurIPS 2018), for privacy profiles.

        >>> import optdp
        >>> optdp.Profile([(2.0, 1e-6), (0.5, 0.01)]).implied_by(optdp.ApproxDP(0.5, 1e-6))
        True
    """

    tag = "profile"
    pairs: Annotated[tuple[tuple[Number, Number], ...], Within(least=1, most=1000)]
    sensitivity: Sensitivity = 1.0

    if TYPE_CHECKING:  # what may be given

        def __init__(
            self, pairs: Iterable[tuple[Number | str, Number | str]], sensitivity: float = 1.0, *, ideal: bool = False
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        made = [ApproxDP(eps, delta, self.sensitivity) for eps, delta in _two_each("pairs", self.pairs, 1, 1000)]
        made.sort(key=lambda pair: float(pair.eps))
        if len({pair.eps for pair in made}) < len(made):
            raise ValueError("pairs are not allowed: each eps may be given once")
        object.__setattr__(self, "pairs", tuple((pair.eps, pair.delta) for pair in made))

    @classmethod
    def under(cls, curve: Callable[[float], float], at: Iterable[float], sensitivity: float = 1.0) -> Profile:
        """The pairs (eps, curve(eps)) at the given eps: the curve is known, and kept, at these points.

        >>> Profile.under(lambda eps: 0.1 / (1 + eps), at=(0.5, 1.0)).pairs[1]
        (1.0, 0.05)
        """
        if not callable(curve):
            raise TypeError(f"curve = {curve!r} is not allowed: it must be a function of eps")
        return cls(tuple((eps, float(curve(float(eps)))) for eps in at), sensitivity)

    @property
    def adjective(self) -> str:
        if len(self.pairs) > 6:
            all_pairs = [f"{show(e)}, {show(d)}" for e, d in self.pairs]
            told = f"at the {len(all_pairs)} pairs {digest('; '.join(all_pairs).encode())}"
            return f"({all_pairs[0]})- to ({all_pairs[-1]})-DP ({told})"
        return " and ".join(f"({show(e)}, {show(d)})" for e, d in self.pairs) + "-DP"

    def latex(self) -> str:
        return self._latex(r"K(S \mid x) \le e^{\varepsilon_j} K(S \mid x') + \delta_j")

    @property
    def asked(self) -> Pairs:  # type: ignore[override]
        return self.pairs

    def _implied_by(self, other: Privacy) -> bool | None:
        if isinstance(other, LDP):
            if float(other.eps) > require.MAX_EPS:
                return None
            pure = ((other.eps, 0.0),)  # for all inputs, however far apart
            return True if all(_delta_at(pure, e) <= Fraction(d) for e, d in self.pairs) else None  # type: ignore[arg-type]
        return _implies_pairs(self.pairs, other, self.sensitivity)


@dataclass(frozen=True)
class Curve(_AtPairs, Divergence):
    """(eps, delta(eps))-differential privacy at every eps >= 0, for a curve delta that is known by points and by its shape.

    What keeps every curve of the shape through the points keeps the one that is meant. `pairs` are finitely many that imply it: a
    privacy profile is convex in e^eps, so that it lies under a broken line if it does at the corners. Lower bounds of solutions
    take the points alone, and so hold whichever curve is meant: more points bring both sides together.

    **Arguments:** `points`: (eps, delta) on the curve, 2 to 500; `shape`: "falling" (nonincreasing) or "convex" (convex in e^eps
    and nonincreasing, as all privacy profiles are); `sensitivity` > 0, a float. `Curve.of(function, at)` asks a function.

        >>> curve = Curve.of(lambda eps: 0.1 / (1 + eps) ** 2, [0, 0.5, 1, 2, 4], shape="falling")
        >>> curve.implied_by(ApproxDP(0.05, 0.0)), curve.implied_by(ApproxDP(1.0, 0.0)), curve.implied_by(ApproxDP(0.0, 0.05))
        (True, False, False)
    """

    tag = "curve"
    points: Annotated[tuple[tuple[Number, Number], ...], Within(least=2, most=500)]
    shape: Literal["falling", "convex"] = "convex"
    sensitivity: Sensitivity = 1.0

    if TYPE_CHECKING:  # what may be given

        def __init__(
            self,
            points: Iterable[tuple[Number | str, Number | str]],
            shape: Literal["falling", "convex"] = "convex",
            sensitivity: float = 1.0,
            *,
            ideal: bool = False,
        ) -> None: ...

    def __post_init__(self) -> None:
        super().__post_init__()
        given = _two_each("points", self.points, 2, 500)
        checked = (
            (require.exact("eps", e, high=require.MAX_EPS), require.exact("delta", d, high=1.0)) for e, d in given
        )
        made = sorted(checked, key=lambda pair: float(pair[0]))
        if any(isinstance(x, Log) for pair in made for x in pair):
            raise TypeError("points are not allowed: they must be rational numbers")
        if any(a == b for (a, _), (b, _) in pairwise(made)):
            raise ValueError("points are not allowed: each eps may be given once")
        if any(c < d for (_, c), (_, d) in pairwise(made)):  # type: ignore[operator]
            raise ValueError("points are not allowed: delta must not grow with eps")
        object.__setattr__(self, "points", tuple(made))
        if self.pairs[0] == (0, 0):
            raise ValueError("points are not allowed: such a curve may be 0 at every eps > 0, which no noise keeps")

    @classmethod
    def of(
        cls,
        function: Callable[[float], float],
        at: Iterable[float],
        *,
        shape: Literal["falling", "convex"] = "convex",
        sensitivity: float = 1.0,
    ) -> Curve:
        """The curve of a function of eps that is declared to have the shape, by its values at some eps: 0 and more.

        The last eps should be so large that hardly anything is left: beyond it pure privacy is asked for.

        **Raises** TypeError or ValueError where the values contradict the shape.
        """
        if not callable(function):
            raise TypeError(f"function = {function!r} is not allowed: it must be a function of eps")
        return cls(tuple((eps, float(function(float(eps)))) for eps in at), shape, sensitivity)

    @cached_property
    def pairs(self) -> Pairs:
        """Pairs that keep every such curve.

        Between points, a falling one is above its next value, a convex one above its secants, continued: corners are added.
        """
        points = [(Fraction(e), Fraction(d)) for e, d in self.points]  # type: ignore[arg-type]
        if self.shape == "convex":
            corners = self._corners(points)
        else:
            corners = [(e, d) for (e, _), (_, d) in pairwise(points)] + [(points[-1][0], Fraction(0))]
            if points[0][0] > 0:
                corners.insert(0, (Fraction(0), points[0][1]))
        least: dict[Fraction, Fraction] = {}
        for eps, delta in corners:
            least[eps] = min(delta, least.get(eps, delta))
        return tuple(sorted((e, d) for e, d in least.items() if d < 1))

    def _corners(self, points: Corners) -> Corners:
        """Corners of the largest broken line that is below every convex curve through the points, rounded down."""
        work.count(100 * len(points))
        with ctx.workprec(enclosures.PRECISION):
            ratio = [enclosures.exp(e) for e, _ in points]
            value = [enclosures.ball(d) for _, d in points]
            slope = [(d - c) / (v - u) for (c, d), (u, v) in zip(pairwise(value), pairwise(ratio), strict=True)]
            if any(bool(left > right) for left, right in pairwise(slope)):
                raise ValueError("points are not allowed: a curve through them is not convex in e^eps")
            slope.append(arb(0))

            def line(k: int, of: int, eps: Fraction) -> Fraction:
                """Through point k with the slope of a secant, at e^eps, rounded down."""
                return enclosures.lower(value[k] + slope[of] * (enclosures.exp(eps) - ratio[k]))

            out = [(points[0][0], max(min(line(1, 1, points[0][0]), points[0][1]), points[1][1]))]
            if points[0][0] > 0:  # and down to 0 it is above the first secant
                out.insert(0, (Fraction(0), max(line(0, 0, Fraction(0)), points[0][1])))
            for k in range(1, len(points) - 1):
                out.append(points[k])
                bend = slope[k + 1] - slope[k - 1]
                if not bend > 0:
                    continue
                place = (value[k] - value[k + 1] - slope[k - 1] * ratio[k] + slope[k + 1] * ratio[k + 1]) / bend
                if not (place > ratio[k] and place < ratio[k + 1]):
                    continue
                # Rounded down: beyond the crossing the lines are no bounds, and before it the second one is the lower one.
                eps = max(points[k][0], Fraction(enclosures.round_down(place.log())))
                out.append((eps, max(line(k + 1, k + 1, eps), points[k + 1][1])))
            out.append(points[-1])
            last = points[-1][0]
            if points[-1][1] > 0 and slope[-2] < 0:  # where the last secant comes down to 0
                last = Fraction(enclosures.round_down((ratio[-1] - value[-1] / slope[-2]).log()))
            return [*out, (min(last, Fraction(require.MAX_EPS)), Fraction(0))]

    @property
    def adjective(self) -> str:
        points = [f"{show(e)}, {show(d)}" for e, d in self.points]
        listed = "; ".join(points)
        if len(points) > 4:
            listed = f"{points[0]} to {points[-1]}: {len(points)} {digest(listed.encode())}"
        convex = " that is convex in e^eps" if self.shape == "convex" else ""
        return f"(eps, delta(eps))-DP (for every nonincreasing curve delta{convex} through the points {listed})"

    def latex(self) -> str:
        return self._latex(r"K(S \mid x) \le e^{\varepsilon} K(S \mid x') + \delta(\varepsilon)")

    @property
    def asked(self) -> Pairs:  # type: ignore[override]
        return self.points

    def admits(self, pair: Pair) -> bool | None:
        if _admits_pairs(self.pairs, pair):
            return True
        return False if _admits_pairs(self.points, pair) is False else None

    def _by_own(self, other: Privacy) -> bool | None:
        if self == other:
            return True
        return True if _implies_pairs(self.pairs, other, self.sensitivity) else None


@dataclass(frozen=True)
class GDP(Divergence):
    """mu-Gaussian differential privacy: neighbours are as hard to tell apart as N(0, 1) and N(mu, 1), at every level.

    Equivalently (eps, delta)-differential privacy for all eps with delta = Phi(mu/2 - eps/mu) - e^eps Phi(-mu/2 - eps/mu).

    **Arguments:** `mu` in (0, 8], an exact number as in `LDP`; `sensitivity` > 0, a float.

    **Source:** Dong, Roth, Su, "Gaussian differential privacy", JRSS B 84(1) (2022).

        >>> import optdp
        >>> optdp.ApproxDP(1.0, 0.13).implied_by(optdp.GDP(1.0)), optdp.ApproxDP(1.0, 0.12).implied_by(optdp.GDP(1.0))
        (True, False)
    """

    tag = "gdp"
    mu: Annotated[Number, Within(0.0, 8.0, open_low=True)]
    sensitivity: Sensitivity = 1.0

    if TYPE_CHECKING:  # what may be given

        def __init__(self, mu: Number | str, sensitivity: float = 1.0, *, ideal: bool = False) -> None: ...

    @property
    def adjective(self) -> str:
        return f"{show(self.mu)}-GDP"

    def latex(self) -> str:
        bound = rf"\Phi(\Phi^{{-1}}(K(S \mid x')) + {latex(self.mu)})"
        return self._latex(rf"K(S \mid x) \le {bound}")

    def delta_at(self, eps: Number) -> Fraction:
        """delta at `eps`, rounded up; with more digits where the two tails have many in common."""
        for bits in (enclosures.PRECISION, 4 * enclosures.PRECISION, 16 * enclosures.PRECISION):
            with ctx.workprec(bits):
                mu, e = enclosures.ball(self.mu), enclosures.ball(eps)
                near, far = e / mu - mu / 2, e / mu + mu / 2
                delta = gauss_tail(near) - enclosures.exp(eps) * gauss_tail(far)
                found = max(Fraction(0), enclosures.upper(delta))
            if delta.rel_accuracy_bits() > 60:
                break
        return found

    def admits(self, pair: Pair) -> bool | None:
        """At every corner of the power curve: between them the curve is straight, and the Gaussian's is concave."""
        known = True
        every = pair.powers() if len(pair.p) <= MANY else pair.corners(self._not_below_chords(pair))
        corners = [(alpha, beta) for alpha, beta in every if 0 < alpha > beta < pair.total]
        work.count(15 * len(corners))
        with ctx.workprec(BITS):  # most are decided at once
            corners = [c for c in corners if not _under_gaussian(*c, pair.total, enclosures.ball(self.mu))]
        work.count(60 * len(corners))
        with ctx.workprec(enclosures.PRECISION):
            mu = enclosures.ball(self.mu)
            for alpha, beta in corners:
                if (least := mu_between(alpha, beta, pair.total)) is None:
                    continue
                if least > mu:
                    return False
                known = known and bool(least <= mu)
        return known or None

    def _not_below_chords(self, pair: Pair) -> list[int]:
        """The places in the pair's order after which a corner is not surely below a chord of the Gaussian's curve: few.

        Sums of m floats >= 0 are off by a share of at most m 2^-53 if each is correctly rounded, and what is interpolated by a
        few 2^-53 of the chord's upper end: `room` is more than both. Levels above 1/2 are seen from the other end, where the
        curve is the same: alpha <= F(beta) if 1 - beta <= F(1 - alpha).
        """
        p, q = pair.shares
        work.count(20 + 0.5 * p.size)
        if not pair.normal:
            return list(range(p.size))
        room = (p.size + 100) * 2.0**-52
        level, power = np.cumsum(q) * (1 - room), np.cumsum(p) * (1 + room)
        rest = [np.append(np.cumsum(v[:0:-1])[::-1], 0.0) for v in (p, q)]
        below = (power <= self._chords(level)) | (rest[1] * (1 + room) <= self._chords(rest[0] * (1 - room)))
        return np.flatnonzero(~below).tolist()

    def _chords(self, level: np.ndarray) -> np.ndarray:
        """The chords' power at levels, but for rounding; beyond the last vertex less."""
        return np.asarray(np.interp(level, *self._vertices))

    @cached_property
    def _vertices(self) -> tuple[np.ndarray, np.ndarray]:
        """(levels, powers) of points on or below the Gaussian's curve, from (0, 0) to the level 1/2."""
        work.count(25 * CHORDS * DEEPEST)
        return _gaussian_curve(self.mu)

    def _by_own(self, other: Privacy) -> bool | None:
        return enclosures.at_most(other.mu, self.mu) if isinstance(other, GDP) else None


@lru_cache(maxsize=64)
def _gaussian_curve(mu: Number) -> tuple[np.ndarray, np.ndarray]:
    with ctx.workprec(BITS):
        apart = enclosures.ball(mu)
        powers = np.array([0.0, *(enclosures.round_down(gauss_tail(-at - apart)) for at in _quantiles())])
    powers.flags.writeable = False
    return _levels(), powers


def _quantiles() -> list[arb]:
    return [arb(place) / CHORDS for place in range(-CHORDS * DEEPEST, 1)]


@cache
def _levels() -> np.ndarray:
    """Of the vertices, whatever mu."""
    with ctx.workprec(BITS):
        found = np.array([0.0, *(enclosures.round_up(gauss_tail(-at)) for at in _quantiles())])
    found.flags.writeable = False
    return found


def gauss_tail(x: arb) -> arb:
    """1 - Phi(x), at the working precision."""
    return (x / arb(2).sqrt()).erfc() / 2


def _under_gaussian(alpha: int, beta: int, total: int, mu: arb) -> bool:
    """Whether alpha/total <= Phi(z + mu) for a z with Phi(z) <= beta/total, proven; z is found in floats."""
    from scipy.special import ndtri

    level = beta / total
    if not 1e-300 < level < 1:
        return False
    z = float(ndtri(level)) if level < 0.5 else -float(ndtri((total - beta) / total))
    point = arb(z - 1e-13 * (1 + abs(z)))
    small, power = gauss_tail(-point) * total <= beta, gauss_tail(point + mu) * total <= total - alpha
    return bool(small) and bool(power)


def mu_between(alpha: int, beta: int, total: int) -> arb | None:
    """Phi^-1(alpha/total) - Phi^-1(beta/total): the mu that a test with this power and level needs; None if any mu will do."""
    if alpha <= beta:
        return None
    if beta == 0 or alpha == total:
        return arb("inf")

    def quantile(mass: int) -> arb:  # from the nearer end, where no digits are lost
        if 2 * mass > total:
            return arb(2).sqrt() * (2 * enclosures.ball(Fraction(total - mass, total))).erfcinv()
        return -arb(2).sqrt() * (2 * enclosures.ball(Fraction(mass, total))).erfcinv()

    return quantile(alpha) - quantile(beta)


@dataclass(frozen=True)
class KL(Divergence):
    """The Kullback-Leibler divergence of neighbours' outputs, sum K(y|x) log(K(y|x)/K(y|x')), is at most `bound`.

    **Arguments:** `bound` > 0, an exact number as in `LDP`; `sensitivity` > 0, a float.

    **Source:** Alghamdi, Asoodeh, Calmon, Kosut, Sankar, Wei, "Cactus mechanisms: optimal differential privacy mechanisms in the
    large-composition regime" (ISIT 2022).
    """

    tag = "kl"
    bound: Annotated[Number, Within(0.0, 1e6, open_low=True)]
    sensitivity: Sensitivity = 1.0

    if TYPE_CHECKING:  # what may be given

        def __init__(self, bound: Number | str, sensitivity: float = 1.0, *, ideal: bool = False) -> None: ...

    @property
    def adjective(self) -> str:
        return f"{show(self.bound)}-KL-private"

    def latex(self) -> str:
        return self._latex(rf"D_\mathrm{{KL}}(K(\cdot \mid x) \,\|\, K(\cdot \mid x')) \le {latex(self.bound)}")

    def admits(self, pair: Pair) -> bool | None:
        quick = _ordered(pair.kl(BITS), self.bound)
        return _ordered(pair.kl(), self.bound) if quick is None else quick

    def _by_own(self, other: Privacy) -> bool | None:
        if isinstance(other, KL):
            return _ordered(other.bound, self.bound)
        if isinstance(other, RDP):  # Renyi divergences grow with their order
            return True if _ordered(other.bound, self.bound) else None
        return _ordered(_renyi_of(other, 1), self.bound) if isinstance(other, GDP) else None


@dataclass(frozen=True)
class RDP(Divergence):
    """The Renyi divergence of order `alpha` of neighbours' outputs is at most `bound`.

    **Arguments:** `alpha` in (1, 10000] and `bound` > 0, exact numbers as in `LDP`; `sensitivity` > 0, a float.

    **Source:** Mironov, "Renyi differential privacy" (CSF 2017).

        >>> import optdp
        >>> optdp.RDP(4, 2.0).implied_by(optdp.GDP(1.0)), optdp.KL(1.0).implied_by(optdp.RDP(2, 1.0))
        (True, True)
    """

    tag = "rdp"
    alpha: Annotated[Number, Within(1.0, 1e4, open_low=True)]
    bound: Annotated[Number, Within(0.0, 1e6, open_low=True)]
    sensitivity: Sensitivity = 1.0

    if TYPE_CHECKING:  # what may be given

        def __init__(
            self, alpha: Number | str, bound: Number | str, sensitivity: float = 1.0, *, ideal: bool = False
        ) -> None: ...

    @property
    def adjective(self) -> str:
        return f"({show(self.alpha)}, {show(self.bound)})-RDP"

    def latex(self) -> str:
        return self._latex(
            rf"D_{{{latex(self.alpha)}}}(K(\cdot \mid x) \,\|\, K(\cdot \mid x')) \le {latex(self.bound)}"
        )

    def limit(self) -> arb:
        """e^((alpha - 1) bound), an enclosure at the working precision: what sum P^alpha Q^(1 - alpha) may be."""
        return ((enclosures.ball(self.alpha) - 1) * enclosures.ball(self.bound)).exp()

    def delta_at(self, eps: Number) -> Fraction:
        """e^((alpha - 1)(bound - eps)) (1 - 1/alpha)^(alpha - 1)/alpha, rounded up (Canonne, Kamath and Steinke 2020)."""
        with ctx.workprec(enclosures.PRECISION):
            a, r, e = (enclosures.ball(x) for x in (self.alpha, self.bound, eps))
            found = ((a - 1) * (r - e)).exp() * ((1 - 1 / a) ** (a - 1)) / a
            return enclosures.upper(found.min(arb(1)))

    def admits(self, pair: Pair) -> bool | None:
        with ctx.workprec(enclosures.PRECISION):
            quick = _ordered(pair.moment(self.alpha, BITS), self.limit())
            return _ordered(pair.moment(self.alpha), self.limit()) if quick is None else quick

    def _by_own(self, other: Privacy) -> bool | None:
        if isinstance(other, RDP):
            within, order = _ordered(other.bound, self.bound), _ordered(self.alpha, other.alpha)
            if within:
                return True if order else None
            return False if within is False and other.alpha == self.alpha else None
        return _ordered(_renyi_of(other, self.alpha), self.bound) if isinstance(other, GDP) else None


def _renyi_of(privacy: GDP, alpha: Number) -> Fraction | arb:
    """alpha mu^2/2, the Renyi divergence of N(0, 1) and N(mu, 1)."""
    if isinstance(alpha, Log) or isinstance(privacy.mu, Log):
        with ctx.workprec(enclosures.PRECISION):
            return enclosures.ball(alpha) * enclosures.ball(privacy.mu) ** 2 / 2
    return Fraction(alpha) * Fraction(privacy.mu) ** 2 / 2

"""What every mechanism can do, and how one is saved and loaded."""

from __future__ import annotations

import importlib
import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from flint import ctx
from numpy.typing import ArrayLike

from optdp import files, hooks
from optdp.exact import Check, FieldError, Fields, Number, Seed, enclosures, require, work, written
from optdp.exact.fields import enter, load, settle, whole
from optdp.problem import (
    LDP,
    Alphabet,
    Circle,
    Interval,
    LossLike,
    Objective,
    Privacy,
    Problem,
    Squared,
    as_loss,
    symbol_array,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


#: Where mechanisms are defined: a file's "mechanism" is looked up among these.
MODULES = (
    "additive", "cap", "composite", "finite", "frequency", "gaussian", "kernel", "lifted", "lip", "metric",
    "metric_line", "mixture", "peak", "piecewise", "plane", "product", "radial", "rounded", "scaled", "signs", "staircase",
    "varying_window", "baselines.calibrated", "baselines.clamped", "baselines.frequency", "baselines.noise",
    "baselines.plane", "baselines.unbiased", "baselines.vector",
)  # fmt: skip


#: Floats in the range of the outputs from which on quadrature has points enough between them.
MANY = 2**30


def asked_for(privacy: object) -> None:
    """**Raises** TypeError if it is no privacy notion."""
    if not isinstance(privacy, Privacy):
        raise TypeError(f"privacy = {privacy!r} is not allowed: it must be a privacy notion such as optdp.LDP(1.0)")


def _comparable(own: Any, privacy: Any) -> bool:
    """Whether two notions of one kind differ in one number alone."""
    if type(own) is not type(privacy) or not is_dataclass(own):
        return False
    names = [f.name for f in dataclass_fields(own) if f.name != "ideal"]
    parts = [part for part in ((getattr(own, name), getattr(privacy, name)) for name in names) if part[0] != part[1]]
    return len(parts) == 1 and not isinstance(parts[0][0], tuple)


class Mechanism(ABC):
    """A randomised map from a domain to outputs: a kernel K(y|x) that can be sampled, queried, plotted and saved.

    A mechanism of your own needs a `domain`, `randomize`, and `density` or `probability`; everything else has a default by
    quadrature or summation, which `exact` = False marks as numerical. `docs/extending/mechanism.md` is a worked example.

    Arrays: every method that takes `x` (and `y`) is vectorised with numpy broadcasting and keeps the shape.
    """

    domain: Any
    #: Whether values, guarantees and samples are exact, given ideal random integers (numpy's default generator is not
    #: cryptographic). False: computed or sampled in floating point.
    exact: ClassVar[bool] = False
    #: What families ask: the number of pieces of a density with heights shared by all inputs (`problem.families.Piecewise`),
    pieces: int | None = None
    #: (activation, base) of a window whose centre is affine in the input (`AffineWindow`, `Composite`),
    shapes: tuple[Any, Any] | None = None
    #: whether the output is the input plus noise that does not depend on it (`Additive`).
    adds_noise: bool = False

    _registry: ClassVar[dict[str, type[Mechanism]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        enter(Mechanism._registry, cls.__name__, cls, f"mechanism {cls.__name__}")

    def __post_init__(self) -> None:
        settle(self, whole)

    # --- what an author writes

    @abstractmethod
    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        """One private output for each entry of `x`, in the shape of `x`.

        **Arguments:** `x`: inputs in the domain; `rng`: None for the cryptographic generator that the operating system keyed; a
        `numpy.random.Generator` or an integer seed only for experiments that are to be repeated: who knows it, or recovers
        the generator's state from outputs, can undo the privacy. Simulated inputs must come from another seed than the noise.
        """

    def density(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        """Density of the output's continuous part at `y` for input `x`, per unit of y; 0 outside the support.

        It is that before outputs are rounded to floats, as are cumulative probabilities and variances of what has a density.

        **Raises** TypeError where the mechanism has no formula for it.
        """
        return self._nothing(y, x)

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        """Probability of the output being exactly `y` for input `x`: nonzero only at atoms. **Raises** as `density`."""
        return self._nothing(y, x)

    def cumulative(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        """P(Y <= y | x), of what has a density before it is rounded to floats: the sum over atoms, where these are all.

        **Raises** TypeError where there is no formula for the rest.
        """
        if type(self).density is not Mechanism.density:
            raise TypeError(f"cumulative is not allowed: {type(self).__name__} on {self.domain} has no formula for it")
        outputs = require.reals(y, "y")
        parts = (self.probability(atom, x) * (atom <= outputs) for atom in self.atoms().tolist())
        return sum(parts, np.where(np.isnan(outputs), np.nan, np.zeros(np.broadcast(outputs, np.asarray(x)).shape)))

    def _nothing(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        """Zeros: where one of the two is defined, it is the whole law."""
        kind = type(self)
        if isinstance(self.domain, Alphabet) and kind.probability is Mechanism.probability:
            raise TypeError(
                f"{kind.__name__} on {self.domain} has no probabilities, which is not allowed where outputs are finitely "
                "many: define the method probability(y, x)"
            )
        if kind.density is Mechanism.density and kind.probability is Mechanism.probability:
            raise TypeError(
                f"{kind.__name__} on {self.domain} has neither a density nor probabilities, which is not allowed where "
                "losses are computed: define the method density(y, x) or probability(y, x)"
            )
        return np.zeros(np.broadcast(np.asarray(y), np.asarray(x)).shape)

    # --- what follows, unless it is known better

    def atoms(self) -> np.ndarray:
        """Outputs of positive probability, sorted. Default: what `randomize` gives repeatedly at a few inputs, if `probability`
        is defined; expectations refuse to go on if these miss some mass.
        """
        return self._drawn_atoms

    @cached_property
    def _drawn_atoms(self) -> np.ndarray:
        if type(self).probability is Mechanism.probability:
            if isinstance(self.domain, Alphabet):
                self._nothing((), ())
            return np.empty(0)
        if isinstance(self.domain, Alphabet):
            inputs = symbol_array(self.domain.symbols[:9], self.domain.symbols)
        elif np.ndim(getattr(self.domain, "lower", ())):
            raise TypeError(
                f"atoms() is not allowed: the outputs of {type(self).__name__} on {self.domain} are no numbers"
            )
        else:
            low, high = self.domain.lower, self.domain.upper
            inputs = np.linspace(low, high, 9) if np.isfinite(low) else np.arange(9) - 4
        rng = np.random.default_rng(0)
        drawn = [np.ravel(self.randomize(np.full(4096, x, inputs.dtype), rng)) for x in inputs]
        values, counts = np.unique(np.concatenate(drawn), return_counts=True)
        return values[counts > 1]

    def support(self, x: ArrayLike | None = None) -> tuple[Any, Any]:
        """(lowest, highest) output that occurs. Default: the domain's ends, or the outermost atoms if they are further out."""
        if isinstance(self.domain, Alphabet):
            ends = self.atoms().tolist()
        elif self._numeric:
            ends = [self.domain.lower, self.domain.upper, *self.atoms().tolist()]
        else:
            raise TypeError(f"{type(self).__name__} must define support: its outputs are no numbers")
        return min(ends), max(ends)

    def mean(self, x: ArrayLike) -> np.ndarray:
        """E[Y | x]. On a circle: the mean direction. Default: numerical."""
        if isinstance(self.domain, Alphabet):
            return self._expectation(x, lambda point, y: y)
        if not isinstance(self.domain, Circle):  # far from 0 quadrature of y itself would be as coarse as y is large
            return self.domain.check(x) + self._expectation(x, lambda point, y: y - point)
        start, turn = self.domain.start, 2 * np.pi / self.domain.period
        sine = self._expectation(x, lambda _, y: np.sin(turn * (y - start)))
        cosine = self._expectation(x, lambda _, y: np.cos(turn * (y - start)))
        return start + np.mod(np.arctan2(sine, cosine), 2 * np.pi) / turn

    def expected_loss(self, x: ArrayLike, loss: LossLike = "abs") -> np.ndarray:
        """E[L(x, Y) | x] for a loss as in `optdp.problem.losses.as_loss`; the columns of a matrix are the `atoms()` in their
        order. Default: numerical. Outputs with a density are taken as they are before they are rounded to floats, which matters
        where the domain holds few: `enclose` is about what is sent.
        """
        law, domain = self._loss(loss), self.domain
        if law.form == "matrix":
            outputs = self.atoms()
            if law.array.shape != (len(domain), outputs.size):
                raise ValueError(f"loss is not allowed: it must have {len(domain)} rows and {outputs.size} columns")
            inputs = domain.check(x)
            rows = self._positive("probability", self.probability(outputs, inputs[..., None]))
            self._adds_up(np.sum(rows, axis=-1))
            return np.sum(rows * law.array[domain.index(inputs)], axis=-1)
        if isinstance(domain, Circle) and law.form == "distance":
            return self._expectation(x, lambda point, y: law(domain.distance(point, y)))
        return self._expectation(x, law.of)

    def variance(self, x: ArrayLike) -> np.ndarray:
        """Var[Y | x], as in `expected_loss` before outputs with a density are rounded to floats. On a circle: the mean squared
        distance from the mean direction.
        """
        inputs, domain = self.domain.check(x), self.domain
        if not isinstance(domain, Circle):
            return self.expected_loss(x, Squared) - np.square(self._bias(inputs))
        centre = self.mean(x)
        if np.array_equal(centre, inputs):
            return self.expected_loss(x, Squared)
        pairs = zip(inputs.reshape(-1), centre.reshape(-1), strict=True)
        spread = [self._expectation(p, lambda _, y, c=c: domain.distance(c, y) ** 2) for p, c in pairs]  # type: ignore[misc]
        return np.array(spread).reshape(inputs.shape)

    def _bias(self, inputs: np.ndarray) -> np.ndarray:
        """E[Y | x] - x, which is small beside its two parts where numbers are far from 0: these are rounded to floats."""
        if type(self).mean is Mechanism.mean:
            return self._expectation(inputs, lambda point, y: y - point)
        return np.asarray(self.mean(inputs) - inputs)

    def worst_case_loss(self, loss: LossLike = "abs") -> float:
        """The largest expected loss over all inputs."""
        return float(self.expected_loss(self.worst_input(loss), loss))

    def worst_input(self, loss: LossLike = "abs") -> Any:
        """An input at which the expected loss is largest: grid search between kinks, then golden-section refinement."""
        from scipy.optimize import minimize_scalar

        law = self._loss(loss)
        if isinstance(self.domain, Alphabet):
            return self.domain.symbols[int(np.argmax(self.expected_loss(list(self.domain.symbols), law)))]
        grid = np.unique(np.concatenate([np.linspace(a, b, 257) for a, b in self._smooth_pieces()]))
        losses = self.expected_loss(grid, law)
        best = int(np.argmax(losses))
        around = grid[max(best - 1, 0)], grid[min(best + 1, grid.size - 1)]
        found = minimize_scalar(lambda x: -float(self.expected_loss(x, law)), bounds=around, method="bounded",
                                options={"xatol": 1e-12 * self.domain.width})  # fmt: skip
        higher = -found.fun > losses[best] + 1e-12 * abs(losses[best])  # by more than roundings
        return float(found.x) if higher else float(grid[best])

    def average_loss(self, loss: LossLike = "abs") -> float:
        """The expected loss averaged over inputs spread uniformly over the domain (adaptive quadrature)."""
        law = self._loss(loss)
        if isinstance(self.domain, Alphabet):
            return float(np.mean(self.expected_loss(list(self.domain.symbols), law)))
        cuts = np.unique(np.concatenate([np.linspace(a, b, 9) for a, b in self._smooth_pieces()]))[None]
        rows = quadrature(lambda x, _: np.stack([self.expected_loss(x, law), 0.0 * x]), cuts, np.zeros(1), 1e-9)
        return float(rows[0, 0]) / self.domain.width

    def _expectation(self, x: Any, function: Callable[[Any, Any], Any]) -> np.ndarray:
        """E[function(x, Y) | x]: adaptive quadrature over the support, cut at the input, and a sum over atoms.

        **Raises** ValueError if density and probabilities do not add up to 1: `support` or `atoms` miss some outputs.
        """
        if not self._numeric:
            raise TypeError(
                f"{type(self).__name__} must define mean, variance and expected_loss: its outputs are no numbers"
            )
        inputs = self.domain.check(x)
        parts = [self._mass_and_mean(p, function) for p in np.array_split(inputs.reshape(-1), inputs.size // 512 + 1)]
        mass, mean = np.concatenate(parts, axis=1)
        self._adds_up(mass)
        return mean.reshape(inputs.shape)

    @property
    def _numeric(self) -> bool:
        """Whether outputs are numbers, of which there are expectations: no vectors and no symbols."""
        vectors = np.ndim(getattr(self.domain, "lower", 0)) or getattr(self.domain, "dimension", None) is not None
        return not vectors and not (isinstance(self.domain, Alphabet) and self.atoms().dtype.kind not in "biuf")

    def _mass_and_mean(self, inputs: np.ndarray, function: Callable[[Any, Any], Any]) -> np.ndarray:
        """Rows P(any output) and E[function]."""
        atoms, (low, high) = self.atoms(), self.support()
        share = self._positive(
            "probability", self.probability(atoms, inputs[:, None]) + np.zeros((inputs.size, atoms.size))
        )
        found = np.stack([share.sum(axis=1), np.sum(share * function(inputs[:, None], atoms), axis=1)])
        if type(self).density is Mechanism.density:
            return found

        def body(y: np.ndarray, x: np.ndarray) -> np.ndarray:
            heights = self._positive("density", self.density(y, x))
            return heights * np.stack([np.ones(y.shape), np.where(heights > 0, function(x, y), 0.0)])

        if np.isfinite(low) and np.isfinite(high):
            cuts = np.tile(np.linspace(low, high, 129), (inputs.size, 1))
            cuts = np.sort(np.concatenate([cuts, np.clip(inputs, low, high)[:, None]], axis=1), axis=1)
            return found + quadrature(body, cuts, inputs)
        width = getattr(self.domain, "width", 1.0)

        def line(t: np.ndarray, x: np.ndarray) -> np.ndarray:  # y = x + width t/(1 - t^2): the whole line
            return body(x + width * t / (1 - t * t), x) * width * (1 + t * t) / (1 - t * t) ** 2

        return found + quadrature(line, np.tile(np.linspace(-1, 1, 129) * (1 - 1e-9), (inputs.size, 1)), inputs)

    def _adds_up(self, mass: np.ndarray) -> None:
        """**Raises** ValueError if the probability of any output, of which there is one for each input, is not 1."""
        if not np.abs(mass - 1).max(initial=0.0) <= 1e-6:  # a NaN is no mass either
            start = getattr(self.domain, "lower", np.nan)
            dense = type(self).density is not Mechanism.density and self._numeric
            if dense and np.isfinite([start, *self.support()]).all():
                low, high = (float(end) for end in self.support())
                if high - low < MANY * math.ulp(max(abs(low), abs(high))):  # this says nothing of the density
                    told = (
                        f"between outputs {low!r} and {high!r} are too few floats; subtract {start!r} from the numbers"
                    )
                    raise ValueError(
                        f"{self.domain} is not allowed where {type(self).__name__} needs quadrature: {told}"
                    )
            total = f"{type(self).__name__} add up to {np.ravel(mass)[np.argmax(np.abs(mass - 1))]:.9g} instead of 1"
            told = "define `support` and `atoms` if outputs are missed, else correct them"
            raise ValueError(f"density and probability of {total}: {told}")

    def _positive(self, name: str, values: np.ndarray) -> np.ndarray:
        """**Raises** ValueError if some are below 0 by more than roundings."""
        if np.any(values < -1e-9 * max(1.0, float(np.max(np.abs(values), initial=0.0)))):
            raise ValueError(f"{name} of {type(self).__name__} is not allowed: it is negative for some outputs")
        return values

    # --- what it guarantees

    def guarantee(self) -> Privacy | None:
        """What the mechanism guarantees: its natural notion with the smallest parameter. None: nothing is claimed.

        Where only the ideal mechanism in real arithmetic has it, because floats are sampled, the guarantee says so (`ideal`).
        """
        return None

    def satisfies(self, privacy: Privacy) -> bool | None:
        """Whether the mechanism has this guarantee: True, False, or None where that is not known."""
        asked_for(privacy)
        own = self.guarantee()
        implied = None if own is None else privacy.implied_by(own)
        # That other mechanisms with the guarantee lack a notion of another kind says nothing of this one, nor do other pairs
        # (eps, delta): of the guarantee's numbers one is the least, beside the others.
        return None if implied is False and not _comparable(own, privacy) else implied

    def privacy(self) -> float:
        """The epsilon of the guarantee, rounded up, for LDP mechanisms.

        **Raises** ValueError where one number would be ambiguous: other notions, other neighbours, none.
        """
        own = self.guarantee()
        if not isinstance(own, LDP):
            what = "no guarantee is claimed" if own is None else f"the guarantee is {own}"
            raise ValueError(f"privacy() is the epsilon of an LDP mechanism, and here {what}: use guarantee()")
        with ctx.workprec(enclosures.PRECISION):
            return own.eps if isinstance(own.eps, float) else enclosures.round_up(enclosures.ball(own.eps))

    def _told(self) -> str:
        """The same as it is printed: rounded up to six digits."""
        return enclosures.rounded_up(self.privacy(), 6)

    # --- verification: statements about a problem

    def feasible(self, problem: Problem) -> list[Check]:
        """Exact checks that the mechanism is one of those that `problem` is about: domain, guarantee, family, constraints."""
        same = self.domain == problem.domain
        told = f"inputs come from {self.domain}" + ("" if same else f", not from {problem.domain}")
        checks = [Check("domain", same, told)]
        if not same:
            return checks
        try:
            checks += self.check_privacy(problem.privacy)
        except TypeError as error:
            checks.append(Check("privacy", False, str(error)))
        member = problem.family.contains(self, problem.eps)
        clause = problem.family.clause(problem.eps).strip() or "every mechanism"
        checks.append(Check("family", member, f"{'is' if member else 'is not'} one of the family: {clause}"))
        checks += [constraint.check(self) for constraint in problem.constraints]
        span = problem.outputs
        if span is not None and not any(c.tag == "outputs" for c in problem.constraints):
            low, high = self.exact_support()
            inside = bool(span[0] <= low and high <= span[1])
            told = f"outputs lie in [{float(low)!r}, {float(high)!r}], the domain being {self.domain}"
            checks.append(Check("outputs", inside, told))
        return checks

    def exact_support(self) -> tuple[Any, Any]:
        """(lowest, highest) output before it is written as a float, for the check against the domain. Default: `support`."""
        return self.support()

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        """Exact tests that every row is a distribution and that the guarantee is kept. Default: by `satisfies`."""
        answer, own = self.satisfies(privacy), self.guarantee()
        said = "no guarantee is claimed" if own is None else f"the mechanism guarantees {own}"
        verdict = {True: "which implies", False: "which contradicts", None: "from which nothing is known about"}[answer]
        return [Check("privacy", answer is True, f"{said}, {verdict} {privacy}")]

    def check_unbiased(self) -> Check:
        """Whether E[Y | x] = x exactly at every input. Default: not known."""
        return Check("unbiased", False, f"{type(self).__name__} has no exact test of its mean")

    def keeps_rule(self, rule: str, eps: Number | None) -> bool:
        """Whether a base-and-activation density keeps the rule of its family; False for other mechanisms."""
        return False

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(low, high) proven to contain the objective's value. **Raises** TypeError where no proof is known."""
        raise TypeError(f"objective = {objective} is not allowed: {type(self).__name__} has no proven value for it")

    # --- showing, saving, loading

    def plot(self, ax: Axes | None = None, inputs: ArrayLike | None = None) -> Axes:
        """Draw the mechanism. Returns the matplotlib axes."""
        return hooks.plot(self, ax=ax, inputs=inputs)

    def _kinks(self) -> list[float]:
        """Inputs where the expected loss, as a function of x, is not smooth."""
        return []

    def _smooth_pieces(self) -> list[tuple[float, float]]:
        a: Any = getattr(self.domain, "lower", ())
        b: Any = getattr(self.domain, "upper", ())
        if np.ndim(a) or not np.isfinite(b - a):
            what = "no interval" if np.ndim(a) else "unbounded"
            raise TypeError(f"{type(self).__name__} must define worst_input and average_loss: its domain is {what}")
        return list(pairwise([a, *sorted(k for k in self._kinks() if a < k < b), b]))

    def _loss(self, loss: Any) -> Any:
        """`loss` as a `Loss`; a user's function is checked up to the largest distance between an input and an output."""
        reach: Any = getattr(self.domain, "exact_reach", None)
        if isinstance(self.domain, Interval):
            low, high = self.support()
            far = max(self.domain.upper - low, high - self.domain.lower)
            reach = max(reach, Fraction(far)) if np.isfinite(far) else None
        law = as_loss(loss, reach)
        if law.form == "matrix" and not isinstance(self.domain, Alphabet):
            raise ValueError(f"loss is not allowed on {self.domain}: a matrix is for mechanisms on an Alphabet")
        return law

    def to_dict(self) -> dict[str, Any]:
        """JSON form; `Mechanism.from_dict` gives back an equal mechanism, bit for bit. Default: the fields of a dataclass."""
        if not is_dataclass(self):
            raise TypeError(f"{type(self).__name__} has no JSON form: define to_dict and _read")
        return {"mechanism": type(self).__name__} | written(self)

    @classmethod
    def _read(cls, fields: Fields) -> Self:
        """The inverse of `to_dict`: each field by its annotation; `metadata` may say by which name it is "saved"."""
        if not is_dataclass(cls):
            raise FieldError(f"{cls.__name__} cannot be read from a file")
        return fields.into(cls)

    def save(self, path: str | Path) -> None:
        """Write the mechanism to a JSON file, whole or not at all."""
        files.write_text(path, json.dumps(self.to_dict(), indent=2) + "\n")

    @staticmethod
    def load(path: str | Path, limit: float = work.LIMIT) -> Mechanism:
        """Read a mechanism that `save` wrote, or one from standard input ("-").

        **Arguments:** `limit`: how much work reading may take, in seconds of a common processor; it is counted, not timed.

        **Raises** OSError, FieldError (a ValueError) or `optdp.exact.work.Overwork` (a RuntimeError) in one sentence.
        """
        return load(path, Mechanism.read, limit, "a mechanism")

    @staticmethod
    def from_dict(data: Any) -> Mechanism:
        """The inverse of `to_dict`, for any mechanism. **Raises** FieldError if it is not the form of a known mechanism."""
        return Mechanism.read(Fields(data, "mechanism"))

    @staticmethod
    def read(fields: Fields) -> Mechanism:
        """The same, from entries that are checked one by one."""
        for module in MODULES:
            importlib.import_module(f"optdp.mechanisms.{module}")
        kind = fields.choice("mechanism", tuple(sorted(Mechanism._registry)))
        return fields.make(Mechanism._registry[kind]._read)


def quadrature(
    function: Callable[[Any, Any], np.ndarray], cuts: np.ndarray, inputs: np.ndarray, rtol: float = 1e-10
) -> np.ndarray:
    """Integrals of function(y, x) over y between the first and the last of the cuts of each input x; the function has two rows.

    Cells are halved until Gauss-Lobatto settles; its nodes include the ends, so that a jump beside one is seen.
    """
    legendre = np.polynomial.legendre.Legendre.basis(7)
    nodes = np.concatenate([[-1.0], np.sort(legendre.deriv().roots().real), [1.0]])
    weights = 2 / (56 * legendre(nodes) ** 2)

    def cells(a: np.ndarray, b: np.ndarray, of: np.ndarray) -> np.ndarray:
        points = (a + b)[:, None] / 2 + (b - a)[:, None] / 2 * nodes
        points = np.clip(points, a[:, None], b[:, None])  # roundings may lead out of the domain
        values = function(points.reshape(-1), np.repeat(inputs[of], nodes.size))
        return values.reshape(2, *points.shape) @ weights * (b - a) / 2

    def add(values: np.ndarray, of: np.ndarray) -> np.ndarray:
        return np.stack([np.bincount(of, row, inputs.size) for row in values])

    a, b = cuts[:, :-1].reshape(-1), cuts[:, 1:].reshape(-1)
    of = np.repeat(np.arange(inputs.size), cuts.shape[1] - 1)
    coarse = cells(a, b, of)
    total, fine_enough = np.zeros((2, inputs.size)), rtol * add(np.abs(coarse), of)
    for _ in range(40):
        middle = (a + b) / 2
        left, right = cells(a, middle, of), cells(middle, b, of)
        rough = np.any(np.abs(left + right - coarse) > fine_enough[:, of], axis=0)
        total += add((left + right)[:, ~rough], of[~rough])
        a, b = np.concatenate([a[rough], middle[rough]]), np.concatenate([middle[rough], b[rough]])
        of, coarse = np.tile(of[rough], 2), np.concatenate([left[:, rough], right[:, rough]], axis=1)
        if not a.size:
            break
    return total + add(coarse, of)

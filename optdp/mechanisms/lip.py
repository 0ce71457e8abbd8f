"""A finite mechanism for users with a prior: kernel, posteriors, the best estimator, and exact sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import Alias, Check, Log, Seed, Within, as_rng, enclosures, require, work
from optdp.mechanisms.base import Mechanism, asked_for
from optdp.problem import (
    LDP,
    LIP,
    Aggregate,
    Alphabet,
    BayesRisk,
    LossLike,
    Objective,
    Prior,
    Privacy,
    places,
    symbol_array,
)

#: Probabilities are multiples of 2^-124.
BITS = 124
UNIT = 1 << BITS

#: Outputs rarer than this are dropped when a mechanism is built from floats.
RAREST = 2.0**-60
#: The eps beyond which a share of 2^-51 of noise costs more than nothing: it is e^eps times as much of the rarest answers.
FAINT = 14.0


@dataclass(frozen=True, repr=False)
class LIPMechanism(Mechanism):
    """Each category i is sent to output y with probability K(y|i) = `kernel[y][i]` / 2^124.

    **Arguments:**

    - `prior`: what the curator knows of the categories: the posteriors and the estimator are with respect to it.
    - `kernel`: one tuple of integers for each output; over the outputs they sum to exactly 2^124 for each category.
    - `aggregate`: what the curator computes, for `estimator` and errors.
    - `labels`: the name of each output. By default the categories, matched to outputs such that the output is as close
      to the input as it can be (`relabelled`).

    **Exactness.** Privacy and errors are those of the integers, and `randomize` draws exactly from them.

        >>> import optdp
        >>> optdp.solve_lip([0.9, 0.1], 1.0).mechanism
        LIPMechanism: 2 categories to 2 outputs; LIP eps = 1, LDP eps = 1.21186
    """

    exact = True
    prior: Prior
    kernel: Annotated[tuple[tuple[int, ...], ...], Within(0, UNIT, 1, 100_000)]
    aggregate: Aggregate
    labels: Annotated[tuple[Any, ...], Within(least=1)] = ()

    def __post_init__(self) -> None:
        d = len(self.prior)
        for y, row in enumerate(self.kernel):
            if len(row) != d:
                raise ValueError(f"kernel[{y}] has {len(row)} entries, which is not allowed: there are {d} categories")
            if min(row) < 0 or not any(row):
                raise ValueError(f"kernel[{y}] is not allowed: it must be integers >= 0, not all 0")
        for name, total in zip(self.prior.categories, map(sum, zip(*self.kernel, strict=True)), strict=False):
            if total != UNIT:
                told = f"the kernel's probabilities given category {name!r} sum to {total}/2^{BITS}"
                raise ValueError(f"{told}, which is not allowed: they must sum to exactly 1")
        if self.aggregate.values is not None and len(self.aggregate.values) != d:
            raise ValueError(f"values has {len(self.aggregate.values)} entries, which is not allowed: it needs {d}")
        if not self.labels:
            object.__setattr__(self, "labels", self._best_labels())
        if not len(set(self.labels)) == len(self.labels) == len(self.kernel):
            needed = f"each of {len(self.kernel)} outputs needs its own"
            raise ValueError(f"labels = {self.labels!r} is not allowed: {needed}")

    @classmethod
    def private(
        cls, privacy: Privacy, prior: Any, posteriors: ArrayLike, weights: ArrayLike, aggregate: Aggregate,
        labels: Sequence[Any] = (),
    ) -> LIPMechanism:  # fmt: skip
        """The mechanism whose outputs have (nearly) these posteriors and probabilities, and keep the guarantee exactly.

        **Arguments:** `posteriors[y, i]`: wanted P(i|y), within the guarantee up to rounding; `weights[y]`: wanted P(y),
        with sum_y weights[y] posteriors[y] = prior up to rounding.

        Floats miss all of this by some ulps. The kernel is therefore mixed with the one that ignores its input but has
        the same output probabilities, which moves every posterior towards the prior, by the least power of two (from
        2^-51 on, or less for large eps) for which the exact check passes.

        **Raises** ValueError if even a share of 2^-10 does not suffice: then it was not rounding.
        """
        prior = Prior.of(prior)
        p = prior.probabilities
        ratios, w = np.asarray(posteriors, dtype=float) / p, np.asarray(weights, dtype=float)
        keep = w > RAREST
        ratios, w = ratios[keep], w[keep] / w[keep].sum()
        kernel = w[:, None] * ratios
        tries = []
        finer = math.ceil((float(privacy.eps) - FAINT) / math.log(2))  # type: ignore[attr-defined]
        if finer > 0 and (kernel.sum(axis=0) > 0.5).all():  # a share of 2^-51 is much beside the rarest answers
            tries.append((kernel / kernel.sum(axis=0), range(51 + finer, 51, -8)))
        for _ in range(3):  # rows to mass 1, without favouring any output
            kernel = np.maximum(kernel + (kernel @ p)[:, None] * (1 - kernel.sum(axis=0)), 0.0)
        tries.append((kernel, range(51, 9, -1)))
        for kernel, powers in tries:
            constant = (kernel @ p)[:, None]
            for share in (2.0**-power for power in powers):
                made = cls._rounded(prior, (1 - share) * kernel + share * constant, aggregate, tuple(labels))
                if all(check.passed for check in made.check_privacy(privacy)):
                    return made._in_order()
        raise ValueError(f"these posteriors and weights do not make a mechanism that is {privacy.adjective}")

    @classmethod
    def candid(cls, privacy: LIP, prior: Any, aggregate: Aggregate) -> LIPMechanism:
        """Each category answers itself, or with the probability e^-eps (rounded up) one drawn from the prior: the best
        mechanism under one-sided LIP, whatever is computed.

        With k the chances of the drawn ones, rounded up, and S their sum, the answer y has the probability k + p_y (1 - S) at
        most e^eps k, since S >= e^-eps and k >= e^-eps p_y.
        """
        prior = Prior.of(prior)
        drawn = [math.ceil(q * UNIT / enclosures.exp_below(privacy.eps, BITS)) for q in prior.exact]
        own = UNIT - sum(drawn)
        kernel = tuple(tuple(k + own * (i == y) for i in range(len(drawn))) for y, k in enumerate(drawn))
        return cls(prior, kernel, aggregate)._in_order()

    def _in_order(self) -> LIPMechanism:
        """The outputs in the order of the categories that they are called by."""
        at = self.prior._positions
        if any(label not in at for label in self.labels):
            return self
        order = sorted(range(len(self.labels)), key=lambda y: at[self.labels[y]])
        return replace(self, kernel=tuple(self.kernel[y] for y in order), labels=tuple(self.labels[y] for y in order))

    @classmethod
    def _rounded(cls, prior: Prior, kernel: np.ndarray, aggregate: Aggregate, labels: tuple[Any, ...]) -> LIPMechanism:
        """Multiples of 2^-124 that sum to 1 for each category: what rounding leaves is spread in proportion."""
        exact = np.array([[int(math.ldexp(k, BITS)) for k in row] for row in kernel.tolist()], dtype=object)
        total = exact.sum(axis=0)
        exact = exact + exact * (UNIT - total) // total
        exact[np.argmax(kernel, axis=0), np.arange(len(prior))] += UNIT - exact.sum(axis=0)
        return cls(prior, tuple(map(tuple, exact.tolist())), aggregate, labels)

    def with_aggregate(self, aggregate: Aggregate) -> LIPMechanism:
        """The same kernel, used for something else."""
        return replace(self, aggregate=aggregate)

    def with_prior(self, prior: Any) -> LIPMechanism:
        """The same kernel seen by someone with another prior on the same categories, or (a mapping) on some of them.

        Its privacy and error say what a wrong prior costs, if the curator's estimator is corrected afterwards;
        `mse_under` is the error if it is not. **Raises** ValueError if a category is not one of the mechanism's.
        """
        other = Prior.of(prior, None if isinstance(prior, Prior) or hasattr(prior, "items") else self.categories)
        unknown = [name for name in other.categories if name not in self.prior._positions]
        if unknown:
            raise ValueError(f"prior is not allowed: {unknown[0]!r} is not a category of the mechanism")
        kept, values = [self.prior._positions[name] for name in other.categories], self.aggregate.values
        kernel = tuple(tuple(row[i] for i in kept) for row in self.kernel)
        task = self.aggregate if values is None else Aggregate("sum", tuple(values[i] for i in kept))
        return LIPMechanism(other, kernel, task, self.labels)

    @cached_property
    def domain(self) -> Alphabet:
        return Alphabet(self.prior.categories)

    @property
    def categories(self) -> tuple[Any, ...]:
        return self.prior.categories

    @cached_property
    def probabilities(self) -> np.ndarray:
        """K(y|i) as floats, one row for each output y."""
        return np.array([[k / UNIT for k in row] for row in self.kernel])

    @cached_property
    def exact_output(self) -> tuple[Fraction, ...]:
        """The probability of each output under the prior, exactly."""
        size = work.words([UNIT * self.prior.total])
        work.count(len(self.kernel) * (len(self.prior) * (0.2 + work.product(size, 2)) + 3 * work.rational(size)))
        sums = (sum(a * k for a, k in zip(self.prior.weights, row, strict=True)) for row in self.kernel)
        return tuple(Fraction(total, UNIT * self.prior.total) for total in sums)

    @cached_property
    def output(self) -> np.ndarray:
        """The probability of each output under the prior."""
        return np.array([float(w) for w in self.exact_output])

    @cached_property
    def posteriors(self) -> np.ndarray:
        """P(i|y), one row for each output y."""
        return self.probabilities * self.prior.probabilities / self.output[:, None]

    def posterior(self, y: ArrayLike) -> np.ndarray:
        """The posterior over categories given each output in `y`: one more axis than `y`."""
        return self.posteriors[self._positions(y)]

    @cached_property
    def estimates(self) -> np.ndarray:
        """The best estimate for each output: E[value | y] (sum), or the posterior (histogram, one row for each y)."""
        if self.aggregate.values is None:
            return self.posteriors
        # The posterior's floats sum to 1 up to rounding only: centred values make that harmless.
        centre = float(self.prior.probabilities @ self.aggregate.values)
        return centre + self.posteriors @ (np.array(self.aggregate.values) - centre)

    def estimator(self, y: ArrayLike) -> np.ndarray:
        """What the curator adds up: the estimate with the least mean square error for each output in `y`.

        For a sum, in the shape of `y`; for a histogram with one more axis, over categories.
        """
        return self.estimates[self._positions(y)]

    def _positions(self, y: Any) -> np.ndarray:
        found = places(self.labels, y)
        if (found < 0).any():
            raise ValueError(f"y = {y!r} is not allowed: y must be one of the outputs {self.labels!r}")
        return found

    @cached_property
    def _alias(self) -> Alias:
        return Alias(list(zip(*self.kernel, strict=True)), UNIT)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        return symbol_array(self.labels, self.labels)[self.randomize_positions(self.prior.positions(x), rng)]

    def randomize_positions(self, position: ArrayLike, rng: Seed = None) -> np.ndarray:
        """The same in numbers: from positions of categories (0 to d - 1) to positions of outputs."""
        return self._alias.draw(np.asarray(position), as_rng(rng))

    def mse(self) -> float:
        """The mean square error of one user's share, with the best estimator, under the prior: rounded up."""
        return self.enclose(BayesRisk(self.aggregate, self.prior))[1]

    def enclose(self, objective: Objective) -> tuple[float, float]:
        """(low, high) proven to contain the mean square error of the best estimator of the objective's task under its prior.

        Neither need be the curator's own. **Raises** ValueError if the prior has a category that the mechanism has not.
        """
        if not isinstance(objective, BayesRisk):
            return super().enclose(objective)
        rows = [list(row) for row in self.with_prior(objective.prior).kernel]
        low, high = objective.task.enclose_mse(objective.prior.weights, rows, UNIT)
        return enclosures.round_down(max(low, Fraction(0))), enclosures.round_up(high)

    def conditional_mse(self) -> np.ndarray:
        """E[(estimate - truth)^2 | category], for each category (for a histogram, summed over its entries)."""
        if self.aggregate.values is None:
            square = np.sum(self.estimates**2, axis=1)
            return np.einsum("yi,yi->i", self.probabilities, square[:, None] - 2 * self.estimates + 1)
        x = np.array(self.aggregate.values)
        return np.sum(self.probabilities * (self.estimates[:, None] - x) ** 2, axis=0)

    def mse_under(self, prior: Any) -> float:
        """The mean square error if categories follow another prior and the curator does not know it."""
        return float(self._spread(prior) @ self.conditional_mse())

    def _spread(self, prior: Any) -> np.ndarray:
        """Another prior on all categories of this one, with zeros where it has none."""
        other = self.with_prior(prior).prior
        true = np.zeros(len(self.prior))
        true[[self.prior._positions[name] for name in other.categories]] = other.probabilities
        return true

    def bias_under(self, prior: Any) -> np.ndarray:
        """E[estimate - truth] of one user's share, if categories follow another prior: what averaging does not remove."""
        true, values = self._spread(prior), self.aggregate.values
        expected = self.probabilities @ true @ self.estimates
        return np.asarray(expected - (true if values is None else true @ values))

    def mae(self) -> float:
        """E|value - value of the output's label| under the prior (for a histogram: the probability that they differ).

        With the default labels this is the least over all relabellings (Context-aware LIP, Proposition 3).
        """
        cost = self._label_costs()
        at = [self.prior._positions.get(label, -1) for label in self.labels]
        if -1 in at:
            raise ValueError(f"labels = {self.labels!r} are not categories: no distance to them; use relabelled()")
        return float(cost[np.arange(len(at)), at].sum())

    def _label_costs(self) -> np.ndarray:
        """cost[y, j]: what output y contributes to the MAE if it is called j."""
        joint = self.probabilities * self.prior.probabilities
        if self.aggregate.values is None:
            return joint.sum(axis=1, keepdims=True) - joint
        x = np.array(self.aggregate.values)
        return joint @ np.abs(x[:, None] - x)

    def _best_labels(self) -> tuple[Any, ...]:
        """Distinct categories for the outputs, of least MAE: an assignment problem."""
        if len(self.kernel) > len(self.prior):
            return tuple(range(len(self.kernel)))
        from scipy.optimize import linear_sum_assignment

        _, chosen = linear_sum_assignment(self._label_costs())
        return tuple(self.prior.categories[j] for j in chosen)

    def relabelled(self) -> LIPMechanism:
        """The same mechanism with the outputs' labels that minimise the MAE."""
        return replace(self, labels=())

    @cached_property
    def _extremes(self) -> tuple[tuple[Fraction, int, int], tuple[Fraction, int, int]]:
        """Lowest and highest posterior / prior over all (category, output), each with where it is attained."""
        lowest, highest = [], []
        size = work.words([self.prior.total])
        work.count(len(self.kernel) * (0.2 * len(self.prior) + 4 * work.rational(size + 4)))
        for y, (row, mass) in enumerate(zip(self.kernel, self.exact_output, strict=True)):
            small, large = min(row), max(row)
            lowest.append((Fraction(small, UNIT) / mass, row.index(small), y))
            highest.append((Fraction(large, UNIT) / mass, row.index(large), y))
        return min(lowest), max(highest)

    @cached_property
    def likelihood_ratio(self) -> Fraction | None:
        """The largest K(y|x) / K(y|x'), exactly; None if it is infinite."""
        if any(min(row) == 0 for row in self.kernel):
            return None
        return max(Fraction(max(row), min(row)) for row in self.kernel)

    def _level(self, notion: str) -> Fraction | None:
        """e^eps of `epsilon`, exactly."""
        if notion == "ldp":
            return self.likelihood_ratio
        (lowest, _, _), (highest, _, _) = self._extremes
        if lowest == 0:
            return None
        return 1 / lowest if notion == "lip-lower" else max(1 / lowest, highest)

    def epsilon(self, notion: str = "lip") -> float:
        """The smallest epsilon, rounded up, for which the mechanism has "lip", "lip-lower" or "ldp"; infinite if none.

        The LIP notions are with respect to the mechanism's own prior; `with_prior` for others.
        """
        level = self._level(require.choice("notion", notion, ("lip", "lip-lower", "ldp")))
        return math.inf if level is None else enclosures.log_above(level)

    def guarantee(self) -> LIP | None:
        """LIP for the mechanism's prior, with the smallest epsilon, exactly; None if an output rules a category out."""
        level = self._level("lip")
        return None if level is None else LIP(enclosures.log_of(level), self.prior)

    def satisfies(self, privacy: Privacy) -> bool | None:
        """Exact for LDP, and for LIP with any prior on all categories; what LDP implies of other notions and priors."""
        asked_for(privacy)
        if isinstance(privacy, LDP) or (isinstance(privacy, LIP) and not self._leaves_out(privacy.prior)):
            return self.check_privacy(privacy)[0].passed
        ratio = self.likelihood_ratio
        # That some mechanism with this ratio lacks the guarantee says nothing of this one.
        return None if ratio is None else privacy.implied_by(LDP(Log(ratio))) or None

    def _leaves_out(self, prior: Prior) -> bool:
        """Whether a prior is one on some of the categories, but not on all: those left out have no probability there."""
        return set(prior.categories) < set(self.categories)

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        if not isinstance(privacy, LDP | LIP):
            return super().check_privacy(privacy)
        total = {sum(column) for column in zip(*self.kernel, strict=True)}
        mass = Check("mass", total == {UNIT}, f"for each category the probabilities sum to exactly 1 (times 2^{BITS})")
        if isinstance(privacy, LDP):
            ratio, impossible = self.likelihood_ratio, "an output is impossible for one input and possible for another"
            return [Check("privacy", False, impossible) if ratio is None else privacy.check(ratio), mass]
        if set(privacy.prior.categories) != set(self.categories):
            return [Check("privacy", False, "the guarantee is for a prior on other categories"), mass]
        seen = self if privacy.prior == self.prior else self.with_prior(privacy.prior)
        (lowest, i, y), (highest, j, z) = seen._extremes
        return [privacy.check(lowest, highest, (seen._pair(i, y), seen._pair(j, z))), mass]

    def _pair(self, i: int, y: int) -> str:
        return f" at category {self.prior.categories[i]!r}, output {self.labels[y]!r}"

    def probability(self, y: ArrayLike, x: ArrayLike) -> np.ndarray:
        outputs, inputs = np.broadcast_arrays(self._positions(y), self.prior.positions(x))
        return self.probabilities[outputs, inputs]

    def atoms(self) -> np.ndarray:
        """The outputs, in their order."""
        found = np.empty(len(self.labels), dtype=object)
        found[:] = self.labels
        return found

    def support(self, x: ArrayLike | None = None) -> tuple[Any, ...]:
        """The outputs that occur (for the category `x`, for one of several, or for any)."""
        if x is None:
            return self.labels
        rows = np.max(self.probabilities[:, np.ravel(self.prior.positions(x))], axis=1, initial=0).tolist()
        return tuple(label for label, occurs in zip(self.labels, rows, strict=True) if occurs)

    def mean(self, x: ArrayLike) -> np.ndarray:
        """E[estimate | x] for each category in `x` (for a histogram with one more axis)."""
        return np.asarray((self.probabilities.T @ self.estimates)[self.prior.positions(x)])

    def variance(self, x: ArrayLike) -> np.ndarray:
        """Var[estimate | x] for each category in `x` (for a histogram, summed over its entries)."""
        rows = self.estimates.reshape(len(self.kernel), -1)
        rows = rows - rows[0]  # squares far from 0, or from the mean, are rounded by more than they differ
        mean, (asked, back) = self.probabilities.T @ rows, np.unique(self.prior.positions(x), return_inverse=True)
        found = [self.probabilities[:, i] @ np.sum((rows - mean[i]) ** 2, axis=1) for i in asked.tolist()]
        return np.array(found)[back].reshape(np.shape(self.prior.positions(x)))

    def expected_loss(self, x: ArrayLike, loss: LossLike = "squared") -> np.ndarray:
        """E[(estimate - truth)^2 | x] for each category in `x`. `loss` must be "squared"."""
        require.choice("loss", loss, ("squared", "l2"))
        return np.asarray(self.conditional_mse()[self.prior.positions(x)])

    def worst_input(self, loss: LossLike = "squared") -> Any:
        return self.categories[int(np.argmax(self.expected_loss(self.categories, loss)))]

    def worst_case_loss(self, loss: LossLike = "squared") -> float:
        return float(self.expected_loss(self.categories, loss).max())

    def average_loss(self, loss: LossLike = "squared") -> float:
        """The mean square error averaged over the prior."""
        require.choice("loss", loss, ("squared", "l2"))
        return self.mse()

    def to_dict(self) -> dict[str, Any]:
        return super().to_dict() | {"kernel": [[str(k) for k in row] for row in self.kernel]}

    def __repr__(self) -> str:
        left = f" ({len(self.prior.left_out)} more of prior 0 left out)" if self.prior.left_out else ""
        sizes = f"{len(self.prior)} categories{left} to {len(self.kernel)} outputs"
        own, local = (enclosures.rounded_up(self.epsilon(notion), 6) for notion in ("lip", "ldp"))
        return f"LIPMechanism: {sizes}; LIP eps = {own}, LDP eps = {local}"

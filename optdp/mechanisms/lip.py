"""A finite mechanism for users with a prior: kernel, posteriors, the best estimator, and exact sampling."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from optdp.exact import enclosures, require
from optdp.exact.check import Check
from optdp.mechanisms.base import Mechanism, as_rng
from optdp.problem.priors import Prior
from optdp.problem.privacy import LDP, LIP
from optdp.problem.tasks import Aggregate

#: Probabilities are multiples of 2^-124: a coin tossed with a 62-bit integer, and another one on a tie.
BITS = 124
UNIT = 1 << BITS
HALF_BITS = 62

#: Outputs rarer than this are dropped when a mechanism is built from floats.
RAREST = 2.0**-60


@dataclass(frozen=True, repr=False)
class LIPMechanism(Mechanism):
    """Each category i is sent to output y with probability K(y|i) = `kernel[y][i]` / 2^124.

    **Arguments:**

    - `prior`: the prior for which it was designed; posteriors and errors are with respect to it.
    - `kernel`: one tuple of whole numbers for each output; over the outputs they sum to exactly 2^124 for each category.
    - `aggregate`: what the curator computes, for `estimator` and errors.
    - `labels`: the name of each output. By default the categories, matched to outputs such that the output is as close
      to the input as it can be (`relabelled`).

    **Exactness.** Privacy and errors are those of the integers, and `randomize` draws exactly from them (given ideal
    random integers: numpy's default generator is not cryptographic).
    """

    prior: Prior
    kernel: tuple[tuple[int, ...], ...]
    aggregate: Aggregate
    labels: tuple[Any, ...] = ()

    def __post_init__(self) -> None:
        d = len(self.prior)
        for y, row in enumerate(self.kernel):
            if len(row) != d:
                raise ValueError(f"kernel[{y}] has {len(row)} entries, which is not allowed: there are {d} categories")
            if min(row) < 0 or not any(row):
                raise ValueError(f"kernel[{y}] is not allowed: it must be whole numbers >= 0, not all 0")
        for i, total in enumerate(map(sum, zip(*self.kernel, strict=True))):
            if total != UNIT:
                raise ValueError(
                    f"the kernel's probabilities given category {self.prior.categories[i]!r} sum to {total}/2^{BITS}, "
                    "which is not allowed: they must sum to exactly 1"
                )
        if self.aggregate.values is not None and len(self.aggregate.values) != d:
            raise ValueError(f"values has {len(self.aggregate.values)} entries, which is not allowed: it needs {d}")
        if not self.labels:
            object.__setattr__(self, "labels", self._best_labels())
        if len(set(self.labels)) != len(self.kernel):
            raise ValueError(
                f"labels = {self.labels!r} is not allowed: each of {len(self.kernel)} outputs needs its own"
            )

    @classmethod
    def private(
        cls,
        privacy: LDP | LIP,
        prior: Any,
        posteriors: Any,
        weights: Any,
        aggregate: Aggregate,
        labels: Sequence[Any] = (),
    ) -> LIPMechanism:
        """The mechanism whose outputs have (nearly) these posteriors and probabilities, and keep the promise exactly.

        **Arguments:** `posteriors[y, i]`: wanted P(i|y), within the promise up to rounding; `weights[y]`: wanted P(y),
        with sum_y weights[y] posteriors[y] = prior up to rounding.

        Floats miss all of this by some ulps. The kernel is therefore mixed with the one that ignores its input but has
        the same output probabilities, which moves every posterior towards the prior, by the least power of two (from
        2^-51 on) for which the exact check passes.

        **Raises** ValueError if even a share of 2^-10 does not suffice: then it was not rounding.
        """
        prior = Prior.of(prior)
        p = prior.probabilities
        ratios, w = np.asarray(posteriors, dtype=float) / p, np.asarray(weights, dtype=float)
        keep = w > RAREST
        ratios, w = ratios[keep], w[keep] / w[keep].sum()
        kernel = w[:, None] * ratios
        for _ in range(3):  # rows to mass 1, without favouring any output
            kernel = np.maximum(kernel + (kernel @ p)[:, None] * (1 - kernel.sum(axis=0)), 0.0)
        constant = (kernel @ p)[:, None]
        for power in range(51, 9, -1):
            share = 2.0**-power
            made = cls._rounded(prior, (1 - share) * kernel + share * constant, aggregate, tuple(labels))
            if all(check.passed for check in made.check_privacy(privacy)):
                return made._in_order()
        raise ValueError(f"these posteriors and weights do not make a mechanism that keeps {privacy}")

    def _in_order(self) -> LIPMechanism:
        """The outputs in the order of the categories that they are called by."""
        places = self.prior._positions
        if any(label not in places for label in self.labels):
            return self
        order = sorted(range(len(self.labels)), key=lambda y: places[self.labels[y]])
        kernel, labels = tuple(self.kernel[y] for y in order), tuple(self.labels[y] for y in order)
        return LIPMechanism(self.prior, kernel, self.aggregate, labels)

    @classmethod
    def _rounded(cls, prior: Prior, kernel: np.ndarray, aggregate: Aggregate, labels: tuple[Any, ...]) -> LIPMechanism:
        """Multiples of 2^-124 that sum to 1 for each category: what rounding leaves is spread in proportion."""
        exact = np.array([[int(math.ldexp(k, BITS)) for k in row] for row in kernel.tolist()], dtype=object)
        total = exact.sum(axis=0)
        rest = UNIT - total
        exact = exact + exact * rest // total
        largest = np.argmax(kernel, axis=0)
        exact[largest, np.arange(len(prior))] += UNIT - exact.sum(axis=0)
        return cls(prior, tuple(map(tuple, exact.tolist())), aggregate, labels)

    def with_aggregate(self, aggregate: Aggregate) -> LIPMechanism:
        """The same kernel, used for something else."""
        return LIPMechanism(self.prior, self.kernel, aggregate, self.labels)

    def with_prior(self, prior: Any) -> LIPMechanism:
        """The same kernel seen by someone with another prior on the same categories, or (a mapping) on some of them.

        Its privacy and error say what a wrong prior costs, if the curator's estimator is corrected afterwards;
        `mse_under` is the error if it is not.
        """
        other = Prior.of(prior, None if isinstance(prior, Prior) or hasattr(prior, "items") else self.categories)
        unknown = [name for name in other.categories if name not in self.prior._positions]
        if unknown:
            raise ValueError(f"prior is not allowed: {unknown[0]!r} is not a category of the mechanism")
        kept = [self.prior._positions[name] for name in other.categories]
        kernel = tuple(tuple(row[i] for i in kept) for row in self.kernel)
        values = self.aggregate.values
        loss = self.aggregate if values is None else Aggregate("sum", tuple(values[i] for i in kept))
        return LIPMechanism(other, kernel, loss, self.labels)

    # --- what comes out

    @property
    def categories(self) -> tuple[Any, ...]:
        """The inputs."""
        return self.prior.categories

    @cached_property
    def probabilities(self) -> np.ndarray:
        """K(y|i) as floats, one row for each output y."""
        return np.array([[k / UNIT for k in row] for row in self.kernel])

    @cached_property
    def exact_output(self) -> tuple[Fraction, ...]:
        """The probability of each output under the prior, exactly."""
        unit = UNIT * self.prior.total
        return tuple(
            Fraction(sum(a * k for a, k in zip(self.prior.weights, row, strict=True)), unit) for row in self.kernel
        )

    @cached_property
    def output(self) -> np.ndarray:
        """The probability of each output under the prior."""
        return np.array([float(w) for w in self.exact_output])

    @cached_property
    def posteriors(self) -> np.ndarray:
        """P(i|y), one row for each output y."""
        return self.probabilities * self.prior.probabilities / self.output[:, None]

    def posterior(self, y: Any) -> np.ndarray:
        """The posterior over categories given each output in `y`: one more axis than `y`."""
        return self.posteriors[self._positions(y)]

    @cached_property
    def estimates(self) -> np.ndarray:
        """The best estimate for each output: E[value | y] (sum), or the posterior (histogram, one row for each y)."""
        if self.aggregate.values is None:
            return self.posteriors
        # The posterior's floats sum to 1 up to rounding only: centred values make that harmless.
        x = np.array(self.aggregate.values)
        centre = float(self.prior.probabilities @ x)
        return centre + self.posteriors @ (x - centre)

    def estimator(self, y: Any) -> np.ndarray:
        """What the curator adds up: the estimate with the least mean square error for each output in `y`.

        For a sum, in the shape of `y`; for a histogram with one more axis, over categories.
        """
        return self.estimates[self._positions(y)]

    def _positions(self, y: Any) -> np.ndarray:
        asked = np.asarray(y)
        if asked.dtype.kind in "iu" and self._counts_up:
            if np.any((asked < 0) | (asked >= len(self.labels))):
                raise ValueError(f"y = {y!r} is not allowed: y must be one of the outputs 0 to {len(self.labels) - 1}")
            return asked.astype(np.int64)
        table = {label: k for k, label in enumerate(self.labels)}
        known, inverse = np.unique(asked, return_inverse=True)
        for label in known.tolist():
            if label not in table:
                raise ValueError(f"y = {label!r} is not allowed: y must be one of the outputs {self.labels!r}")
        return np.array([table[label] for label in known.tolist()], dtype=np.int64)[inverse].reshape(asked.shape)

    @cached_property
    def _counts_up(self) -> bool:
        return self.labels == tuple(range(len(self.kernel)))

    # --- sampling

    @cached_property
    def _alias(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Alias tables, one row for each category: thresholds (high and low 62 bits) and the other output."""
        n, d = len(self.kernel), len(self.prior)
        high, low = np.zeros((d, n), dtype=np.int64), np.zeros((d, n), dtype=np.int64)
        other = np.zeros((d, n), dtype=np.int64)
        for i in range(d):
            thresholds, other[i] = _alias_table([row[i] for row in self.kernel])
            high[i] = [t >> HALF_BITS for t in thresholds]
            low[i] = [t & ((1 << HALF_BITS) - 1) for t in thresholds]
        return high, low, other

    def randomize(self, x: Any, rng: Any = None) -> np.ndarray:
        """One output label for each category in `x`, in its shape."""
        outputs = np.array(self.labels)
        return outputs[self.randomize_positions(self.prior.positions(x), rng)]

    def randomize_positions(self, position: Any, rng: Any = None) -> np.ndarray:
        """The same in numbers: from positions of categories (0 to d - 1) to positions of outputs."""
        position, rng = np.asarray(position), as_rng(rng)
        high, low, other = self._alias
        column = rng.integers(0, len(self.kernel), size=position.shape)
        toss = rng.integers(0, 1 << HALF_BITS, size=position.shape)
        bar = high[position, column]
        heads = np.asarray(toss < bar)
        tie = np.asarray(toss == bar)
        if tie.any():
            heads[tie] = rng.integers(0, 1 << HALF_BITS, size=int(tie.sum())) < low[position, column][tie]
        return np.where(heads, column, other[position, column])

    # --- errors

    def mse(self) -> float:
        """The mean square error of one user's share, with the best estimator, under the prior: rounded up."""
        return self.enclose_value(self.aggregate)[1]

    def enclose_value(self, loss: Any) -> tuple[float, float]:
        """(low, high) proven to contain the mean square error of the best estimator of `loss` (an `Aggregate`)."""
        if not isinstance(loss, Aggregate):
            raise TypeError(f"loss = {loss!r} is not allowed: loss must be an optdp.problem.tasks.Aggregate")
        low, high = loss.enclose_mse(self.prior.weights, [list(row) for row in self.kernel], UNIT)
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
        true = self._spread(prior)
        output = self.probabilities @ true
        if self.aggregate.values is None:
            return output @ self.estimates - true
        return np.asarray(output @ self.estimates - true @ np.array(self.aggregate.values))

    def mae(self) -> float:
        """E|value - value of the output's label| under the prior (for a histogram: the probability that they differ).

        With the default labels this is the least over all relabellings (Context-aware LIP, Proposition 3).
        """
        cost = self._label_costs()
        places = [self.prior._positions.get(label, -1) for label in self.labels]
        if -1 in places:
            raise ValueError(f"labels = {self.labels!r} are not categories: no distance to them; use relabelled()")
        return float(cost[np.arange(len(places)), places].sum())

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

        _, places = linear_sum_assignment(self._label_costs())
        return tuple(self.prior.categories[j] for j in places)

    def relabelled(self) -> LIPMechanism:
        """The same mechanism with the outputs' labels that minimise the MAE."""
        return LIPMechanism(self.prior, self.kernel, self.aggregate)

    # --- privacy

    def _extremes(self) -> tuple[tuple[Fraction, int, int], tuple[Fraction, int, int]]:
        """Lowest and highest posterior / prior over all (category, output), each with where it is attained."""
        lowest, highest = [], []
        for y, (row, mass) in enumerate(zip(self.kernel, self.exact_output, strict=True)):
            small, large = min(row), max(row)
            lowest.append((Fraction(small, UNIT) / mass, row.index(small), y))
            highest.append((Fraction(large, UNIT) / mass, row.index(large), y))
        return min(lowest), max(highest)

    def likelihood_ratio(self) -> Fraction | None:
        """The largest K(y|x) / K(y|x'), exactly; None if it is infinite."""
        if any(min(row) == 0 for row in self.kernel):
            return None
        return max(Fraction(max(row), min(row)) for row in self.kernel)

    def check_privacy(self, privacy: LDP | LIP) -> list[Check]:
        """Exact tests of the promise (for LIP: with respect to the prior, naming the worst pairs) and of the mass."""
        total = {sum(column) for column in zip(*self.kernel, strict=True)}
        mass = Check("mass", total == {UNIT}, f"for each category the probabilities sum to exactly 1 (times 2^{BITS})")
        if isinstance(privacy, LDP):
            ratio = self.likelihood_ratio()
            if ratio is None:
                return [Check("privacy", False, "an output is impossible for one input and possible for another"), mass]
            return [privacy.check(ratio), mass]
        (lowest, i, y), (highest, j, z) = self._extremes()
        where = (self._pair(i, y), self._pair(j, z))
        return [privacy.check(lowest, highest, where), mass]

    def _pair(self, i: int, y: int) -> str:
        return f" at category {self.prior.categories[i]!r}, output {self.labels[y]!r}"

    def privacy(self, notion: str = "lip") -> float:
        """The smallest epsilon, rounded up, for which the mechanism keeps "lip", "lip-lower" or "ldp"; infinite if none."""
        require.choice("notion", notion, ("lip", "lip-lower", "ldp"))
        if notion == "ldp":
            ratio = self.likelihood_ratio()
            return math.inf if ratio is None else enclosures.log_above(ratio)
        (lowest, _, _), (highest, _, _) = self._extremes()
        if lowest == 0:
            return math.inf
        worst = 1 / lowest if notion == "lip-lower" else max(1 / lowest, highest)
        return enclosures.log_above(worst)

    # --- what every mechanism can do

    def probability(self, y: Any, x: Any) -> np.ndarray:
        """K(y|x) for output labels `y` and categories `x`, broadcast."""
        return self.probabilities[self._positions(y), self.prior.positions(x)]

    def density(self, y: Any, x: Any) -> np.ndarray:
        """Zero: outputs are discrete, see `probability`."""
        return np.zeros(np.broadcast(np.asarray(y), np.asarray(x)).shape)

    def support(self, x: Any = None) -> tuple[Any, ...]:
        """The outputs that occur (for category `x`, or for any)."""
        if x is None:
            return self.labels
        i = int(self.prior.positions(x))
        return tuple(label for label, row in zip(self.labels, self.kernel, strict=True) if row[i])

    def mean(self, x: Any) -> np.ndarray:
        """E[estimate | x] for each category in `x` (for a histogram with one more axis)."""
        per_category = np.tensordot(self.probabilities.T, self.estimates, axes=1)
        return per_category[self.prior.positions(x)]

    def variance(self, x: Any) -> np.ndarray:
        """Var[estimate | x] for each category in `x` (for a histogram, summed over its entries)."""
        mean = np.tensordot(self.probabilities.T, self.estimates, axes=1)
        square = self.estimates**2 if self.aggregate.values is not None else np.sum(self.estimates**2, axis=1)
        of_mean = mean**2 if self.aggregate.values is not None else np.sum(mean**2, axis=1)
        return (self.probabilities.T @ square - of_mean)[self.prior.positions(x)]

    def expected_loss(self, x: Any, loss: Any = "squared") -> np.ndarray:
        """E[(estimate - truth)^2 | x] for each category in `x`. `loss` must be "squared"."""
        require.choice("loss", loss, ("squared", "l2"))
        return self.conditional_mse()[self.prior.positions(x)]

    def worst_input(self, loss: Any = "squared") -> Any:
        """The category with the largest mean square error."""
        require.choice("loss", loss, ("squared", "l2"))
        return self.prior.categories[int(np.argmax(self.conditional_mse()))]

    def worst_case_loss(self, loss: Any = "squared") -> float:
        """The largest mean square error over categories."""
        require.choice("loss", loss, ("squared", "l2"))
        return float(self.conditional_mse().max())

    def average_loss(self, loss: Any = "squared") -> float:
        """The mean square error averaged over the prior."""
        require.choice("loss", loss, ("squared", "l2"))
        return self.mse()

    def plot(self, ax: Any = None, inputs: Any = None) -> Any:
        """Draw posterior/prior for each output and category as a picture. Returns the matplotlib axes."""
        from optdp.report.lip import plot_kernel

        return plot_kernel(self, ax=ax, inputs=inputs)

    def to_dict(self) -> dict[str, Any]:
        """JSON form, exact: probabilities as numerators over 2^124, the prior as whole numbers."""
        return {
            "mechanism": "LIPMechanism",
            "prior": self.prior.to_dict(),
            "denominator_bits": BITS,
            "kernel": [[format(k, "x") for k in row] for row in self.kernel],
            "aggregate": self.aggregate.to_dict(),
            "labels": list(self.labels),
        }

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> LIPMechanism:
        if data["denominator_bits"] != BITS:
            raise ValueError(f"denominator_bits = {data['denominator_bits']!r} is not allowed: it must be {BITS}")
        kernel = tuple(tuple(int(k, 16) for k in row) for row in data["kernel"])
        aggregate = Aggregate.from_dict(data["aggregate"])
        return cls(Prior.from_dict(data["prior"]), kernel, aggregate, tuple(data["labels"]))

    def __repr__(self) -> str:
        left = f" ({len(self.prior.left_out)} more of prior 0 left out)" if self.prior.left_out else ""
        return (
            f"LIPMechanism: {len(self.prior)} categories{left} to {len(self.kernel)} outputs; "
            f"LIP eps = {self.privacy():.6g}, LDP eps = {self.privacy('ldp'):.6g}"
        )


def _alias_table(weights: list[int]) -> tuple[list[int], list[int]]:
    """Walker's alias table of whole numbers with sum 2^124: column j keeps j below thresholds[j], else takes aliases[j]."""
    n = len(weights)
    scaled = [n * weight for weight in weights]
    aliases = list(range(n))
    small = [j for j in range(n) if scaled[j] < UNIT]
    large = [j for j in range(n) if scaled[j] >= UNIT]
    while small and large:
        j, donor = small.pop(), large[-1]
        aliases[j] = donor
        scaled[donor] -= UNIT - scaled[j]
        if scaled[donor] < UNIT:
            small.append(large.pop())
    return [min(s, UNIT) for s in scaled], aliases

"""What a curator computes from many users' categories, and the exact mean square error of one user's share in it.

Users are independent, so the error of a sum over users is the sum of the users' errors, and each user's problem can be
solved alone (Context-aware LIP, Proposition 2). With the posterior r_y of the category given the output y, and w_y the
probability of that output, the best estimator is the posterior mean and its mean square error is

    sum:        sum_i P_i x_i^2 - sum_y w_y (sum_i x_i r_y(i))^2,
    histogram:  1               - sum_y w_y sum_i r_y(i)^2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Literal

import numpy as np

from optdp.exact import Tagged, plain, require, work
from optdp.exact.numbers import digest

#: Enclosures of quotients carry this many binary digits more than the variance needs.
_BITS = 224


@dataclass(frozen=True)
class Aggregate(Tagged, root=True):
    """Mean square error of one user's share in a sum or a histogram.

    **Arguments:** `kind`: "sum" or "histogram"; `values`: for a sum, the number that each category stands for, as floats.

        >>> from optdp.problem.tasks import Aggregate
        >>> Aggregate("sum", (0, 1)).phrase
        "the user's value, one of (0, 1) by category"
    """

    tag = "aggregate"
    kind: Literal["sum", "histogram"]
    values: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.values is None) != (self.kind == "histogram"):
            allowed = "a sum needs values, a histogram has none"
            raise ValueError(f"values = {self.values!r} is not allowed for a {self.kind}: {allowed}")
        if self.values is not None:
            values = tuple(require.real("values", value) for value in self.values)
            object.__setattr__(self, "values", values)

    @property
    def name(self) -> str:
        return f"squared error of a {self.kind}"

    @cached_property
    def exact_values(self) -> tuple[list[int], int]:
        """(numerators, bits): the values minus a common offset near their middle, as numerators over 2^bits.

        An offset changes no error, and a small one keeps the integers short.
        """
        if self.values is None:
            raise ValueError("a histogram has no values")
        middle = Fraction(max(self.values) / 2 + min(self.values) / 2)
        exact = [Fraction(v) - middle for v in self.values]
        denominator = math.lcm(*(v.denominator for v in exact))
        return [v.numerator * (denominator // v.denominator) for v in exact], denominator.bit_length() - 1

    def gain(self, posteriors: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
        """phi(r) for each row r, in floats: (sum x_i r_i)^2 with the values centred at the prior mean, or sum r_i^2."""
        if self.values is None:
            return np.asarray(np.sum(posteriors**2, axis=-1))
        x = np.array(self.values)
        return np.asarray(np.square(posteriors @ (x - probabilities @ x)))

    def enclose_mse(self, weights: tuple[int, ...], joint: list[list[int]], unit: int) -> tuple[Fraction, Fraction]:
        """(low, high) around the mean square error of the best estimator, at most 2^-200 of the prior's variance apart.

        **Arguments:** `weights`: of the categories; `joint[y][i] / unit`: the probability of output y given category i.
        """
        total, low, high = sum(weights), 0, 0
        digits = _BITS + total.bit_length()  # of integers that are not all equal, the variance is above 1 / (2 total)
        x, bits = (None, 0) if self.values is None else self.exact_values
        own, size = work.words(weights), 1.0 if x is None else work.words(x)
        entry = 0.5 + work.product(own, 2) + work.product(own + 2, own + 2 if x is None else size)
        quotient = work.product(3 * own + 2 * size + 8, own + size + 8)
        work.count(len(joint) * (len(weights) * entry + 3 * quotient) + len(weights) * work.product(own + size, size))
        for row in joint:
            mass = [a * k for a, k in zip(weights, row, strict=True)]
            square = sum(m * m for m in mass) if x is None else sum(m * v for m, v in zip(mass, x, strict=True)) ** 2
            if any(mass):  # else an output that never occurs
                quotient, rest = divmod(square << digits, total * unit * sum(mass))
                low, high = low + quotient, high + quotient + bool(rest)
        second = Fraction(total if x is None else sum(a * v * v for a, v in zip(weights, x, strict=True)), total)
        scale = 1 << (2 * bits)
        return (second - Fraction(high, 1 << digits)) / scale, (second - Fraction(low, 1 << digits)) / scale

    @property
    def phrase(self) -> str:
        """How statements name it."""
        if self.values is None:
            return "each user's entry in a histogram"
        if len(self.values) <= 8:
            return f"the user's value, one of ({', '.join(map(plain, self.values))}) by category"
        content = np.array(self.values, dtype="<f8").tobytes()
        return f"the user's value, one of {len(self.values)} by category {digest(content)}"

    def __str__(self) -> str:
        return self.name

"""Surveys, sums and histograms over many simulated users: what the curator really gets, beside what theory says.

Context-aware LIP, Figures 5 to 8, with kernels that keep the guarantee. Schemes:

- "lip", "lip-lower", "ldp": the optimal mechanisms of `solve_lip` for each user's prior, with its estimator;
- "randomised response": context-free, eps-LDP, unbiased: the true answer with probability E/(E + d - 1), else another;
- "oue": context-free optimised unary encoding for histograms (Wang et al., USENIX Security 2017): one bit for each category,
  kept with probability 1/2 if it is 1, set with probability 1/(1 + E) if it is 0; unbiased;
- "central": a trusted curator sees the number S of yes answers and publishes a value, such that no user's answer is
  better known than under eps-LIP (Definition 4 there); see `CentralMechanism`.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from optdp.closed_forms import lip as forms
from optdp.design.lip import solve_lip
from optdp.exact import Seed, as_rng, require
from optdp.exact.numbers import counted
from optdp.problem import Prior, PriorLike

SCHEMES = ("lip", "lip-lower", "ldp", "randomised response", "oue", "central")


@dataclass(frozen=True)
class Scheme:
    """One scheme's outcome: squared error of the aggregate over the number of users.

    `theory` is its expectation, `empirical` the mean over the rounds, and `standard_error` that of such a mean if the error
    of the aggregate is normal: theory * sqrt(2 / rounds). (For a histogram, a sum of squares, it is an upper limit.)
    """

    name: str
    eps: float
    theory: float
    empirical: float
    standard_error: float
    seconds: float

    @property
    def deviations(self) -> float:
        """(empirical - theory) / standard_error: large where they disagree."""
        return (self.empirical - self.theory) / self.standard_error if self.standard_error else 0.0


@dataclass(frozen=True)
class Simulation:
    """What `lip_simulate` returns: one `Scheme` for each scheme and epsilon. `optdp.report.lip.simulation_report` draws it."""

    users: int
    rounds: int
    task: str
    schemes: tuple[Scheme, ...]

    def __str__(self) -> str:
        head = f"{self.task}, {self.users:,} users, {counted(self.rounds, 'round')}; squared error over the number of users:"
        rows = [f"  eps = {s.eps:g}, {s.name}: {s.empirical:.6g} ({s.theory:.6g})" for s in self.schemes]
        return "\n".join([head, *rows])


def lip_simulate(
    prior: PriorLike, eps: ArrayLike, users: int | None = None, *, task: str = "survey", values: ArrayLike | None = None,
    weights: ArrayLike | None = None, schemes: Sequence[str] = ("lip", "ldp", "randomised response"), rounds: int = 20,
    seed: Seed = 0,
) -> Simulation:  # fmt: skip
    """Draw users, let each send a private output, estimate the aggregate, and compare with theory.

    **Arguments:**

    - `prior`: one prior for all users (as in `solve_lip`), or an array with a row for each user; `eps`: one epsilon or several.
    - `users`: how many; for a prior of each user's own, the number of rows (the default there).
    - `task`, `values`: as in `solve_lip`; `weights`: each user's factor in a weighted sum.
    - `schemes`: names from `optdp.statistics.simulation.SCHEMES`. "oue" is for histograms, "central" for a survey with one
      common prior.
    - `rounds`: how often everything is drawn anew; `seed`: a seed or a numpy Generator.

    **Returns** a `Simulation`. Every user draws and is perturbed individually, in vectorised code.

    **Raises** TypeError or ValueError naming the argument.

        >>> import optdp
        >>> (scheme,) = optdp.lip_simulate([0.9, 0.1], 1.0, 1000, schemes=["lip"], rounds=5).schemes
        >>> round(scheme.theory, 6)
        0.079138
    """
    rng = as_rng(seed)
    rounds = require.integer("rounds", rounds, low=1)
    require.choice("task", task, ("survey", "sum", "histogram"))
    for name in schemes:
        require.choice("schemes", name, SCHEMES)
    population = _Population.of(prior, users, task, values, weights)
    if "oue" in schemes and task != "histogram":
        raise ValueError("schemes = 'oue' is not allowed here: unary encoding is for task 'histogram'")
    if "central" in schemes and (task != "survey" or len(population.priors) > 1 or population.factor is not None):
        allowed = "it is for task 'survey' with one prior for all users"
        raise ValueError(f"schemes = 'central' is not allowed here: {allowed}")
    found = []
    for e in np.atleast_1d(np.asarray(eps, dtype=float)).tolist():
        e = require.epsilon(e)
        for name in schemes:
            began = time.perf_counter()
            theory, errors = population.run(name, e, rounds, rng)
            spread = theory * math.sqrt(2 / rounds)
            found.append(Scheme(name, e, theory, float(np.mean(errors)), spread, time.perf_counter() - began))
    return Simulation(population.users, rounds, task, tuple(found))


@dataclass(frozen=True)
class _Population:
    """Users by kinds: `priors[k]` is the prior of the `counts[k]` users of kind k; `members[k]` are their places."""

    priors: list[Prior]
    members: list[np.ndarray]
    users: int
    task: str
    values: np.ndarray
    factor: np.ndarray | None

    @classmethod
    def of(
        cls, prior: PriorLike, users: int | None, task: str, values: ArrayLike | None, weights: ArrayLike | None
    ) -> _Population:
        own = np.asarray(prior, dtype=float) if not hasattr(prior, "items") and not isinstance(prior, Prior) else None
        if own is not None and own.ndim == 2:
            if users is not None and users != len(own):
                raise ValueError(f"users = {users!r} is not allowed: prior has a row for each of {len(own)} users")
            unique, inverse = np.unique(own, axis=0, return_inverse=True)
            kinds = [Prior.of(row) for row in unique.tolist()]
            users, d = own.shape
            order = np.argsort(inverse.ravel(), kind="stable")
            members = np.split(order, np.cumsum(np.bincount(inverse.ravel(), minlength=len(kinds)))[:-1])
        else:
            kinds = [Prior.of(prior)]
            d = len(kinds[0]) + len(kinds[0].left_out)
            if users is None:
                raise TypeError("users is missing: how many users share this prior?")
            users = require.integer("users", users, low=1)
            members = [np.arange(users)]
        if task == "survey" and d != 2:
            raise ValueError(f"prior has {d} entries, which is not allowed for task 'survey': it must have two")
        numbers = np.arange(d, dtype=float) if values is None else np.asarray(values, dtype=float)
        if numbers.shape != (d,) or not np.isfinite(numbers).all():
            raise ValueError(f"values = {values!r} is not allowed: values must be {d} finite numbers")
        factor = None if weights is None else np.asarray(weights, dtype=float)
        if factor is not None and (task == "histogram" or factor.shape != (users,) or not np.isfinite(factor).all()):
            raise ValueError("weights is not allowed: it must be one finite number for each user of a sum")
        return cls(kinds, members, users, task, numbers, factor)

    def run(self, scheme: str, eps: float, rounds: int, rng: np.random.Generator) -> tuple[float, np.ndarray]:
        """(expected squared error over the number of users, the squared error of each round over it)."""
        if scheme == "central":
            return self._central(eps, rounds, rng)
        theory, d = 0.0, self.values.size
        errors = np.zeros((rounds, d) if self.task == "histogram" else rounds)
        if len(self.priors) > 1 and d == 2 and self.task != "histogram":
            return self._own_binary(scheme, eps, rounds, rng)
        for prior, members in zip(self.priors, self.members, strict=True):
            kept = np.array(prior.given if prior.given else range(len(prior)))
            weight = np.ones(members.size) if self.factor is None else self.factor[members]
            error, read = self._channel(scheme, prior, kept, eps, d)
            theory += error * float(weight @ weight)
            for k in range(rounds):
                x = rng.choice(len(prior), size=members.size, p=prior.probabilities)
                if self.task == "histogram":
                    errors[k] += read(x, rng) - np.bincount(kept[x], minlength=d)
                else:
                    errors[k] += weight @ (read(x, rng) - self.values[kept[x]])
        squared = np.square(errors) if errors.ndim == 1 else np.sum(np.square(errors), axis=1)
        return theory / self.users, squared / self.users

    def _own_binary(self, scheme: str, eps: float, rounds: int, rng: np.random.Generator) -> tuple[float, np.ndarray]:
        """Two answers, each user with a prior of their own: the closed forms of all users at once, in floats."""
        p, ratio, step = np.zeros(self.users), math.exp(eps), float(self.values[1] - self.values[0])
        for prior, members in zip(self.priors, self.members, strict=True):
            p[members] = prior.probabilities @ (np.array(prior.categories) == 1)
        factor = step * (np.ones(self.users) if self.factor is None else self.factor)
        if scheme == "randomised response":
            one_given = np.tile([[1 / (1 + ratio)], [ratio / (1 + ratio)]], self.users)
            estimate = np.tile([[-1 / (ratio - 1)], [ratio / (ratio - 1)]], self.users)
            error = np.full(self.users, forms.unbiased_response(ratio))
        else:
            low, high = binary_posteriors(p, ratio, scheme)
            share = (p - low) / (high - low)  # of the output that makes 1 more probable
            one_given = np.array([share * (1 - high) / (1 - p), share * high / p])
            estimate = np.array([low, high])
            error = p * (1 - p) - (high - p) * (p - low)
        users, errors = np.arange(self.users), np.zeros(rounds)
        for k in range(rounds):
            x = (rng.random(self.users) < p).astype(int)
            y = (rng.random(self.users) < one_given[x, users]).astype(int)
            errors[k] = factor @ (estimate[y, users] - x)
        return float(factor**2 @ error) / self.users, np.square(errors) / self.users

    def _channel(self, scheme: str, prior: Prior, kept: np.ndarray, eps: float, d: int) -> tuple[float, Reader]:
        if scheme == "oue":
            return _unary_encoding(eps, kept, d)
        if scheme == "randomised response":
            return _response(eps, kept, d, None if self.task == "histogram" else self.values, prior)
        if self.task != "histogram":
            solved = solve_lip(prior, eps, task="sum", values=self.values[kept].tolist(), notion=scheme)
            return solved.value, _reader(solved.mechanism.randomize_positions, solved.mechanism.estimates)
        solved = solve_lip(prior, eps, task="histogram", notion=scheme)
        estimates = np.zeros((len(solved.mechanism.estimates), d))
        estimates[:, kept] = solved.mechanism.estimates
        return solved.value, _reader(solved.mechanism.randomize_positions, estimates)

    def _central(self, eps: float, rounds: int, rng: np.random.Generator) -> tuple[float, np.ndarray]:
        p = float(self.priors[0].exact[-1]) if len(self.priors[0]) == 2 else float(self.priors[0].given == (1,))
        law = central_mechanism(p, self.users, eps)
        step = float(self.values[1] - self.values[0])
        answers = ((rng.random(self.users) < p).sum() for _ in range(rounds))
        errors = np.array([law.publish(int(s), rng) - s for s in answers])
        return step**2 * law.error / self.users, step**2 * errors**2 / self.users


#: What the curator estimates of users in these categories: the value of each, or the histogram of all of them.
Reader = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def _reader(send: Reader, estimates: np.ndarray) -> Reader:
    """Users `send` outputs, which stand for `estimates`: a number for each output, or a row of the histogram."""

    def read(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        y = send(x, rng)
        return estimates[y] if estimates.ndim == 1 else np.bincount(y, minlength=len(estimates)) @ estimates

    return read


def _response(eps: float, kept: np.ndarray, d: int, values: np.ndarray | None, prior: Prior) -> tuple[float, Reader]:
    """Randomised response over all d categories with the unbiased estimator, which knows no prior."""
    ratio, p = math.exp(eps), np.zeros(d)
    true, other, gap = ratio / (ratio + d - 1), 1 / (ratio + d - 1), (ratio - 1) / (ratio + d - 1)
    p[kept] = prior.probabilities
    if values is None:
        error = (true * (1 - true) + (d - 1) * other * (1 - other)) / gap**2
        estimates = (np.eye(d) - other) / gap
    else:
        # The estimate of the value v_y is (v_y - q sum v)/(p - q); its variance given x, averaged over the prior.
        mean = gap * values + other * values.sum()
        error = float((other + gap * p) @ values**2 - p @ mean**2) / gap**2
        estimates = (values - other * values.sum()) / gap

    def send(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        x, lie = kept[x], rng.random(x.size) >= true
        instead = rng.integers(0, d - 1, size=x.size)
        return np.where(lie, instead + (instead >= x), x)

    return error, _reader(send, estimates)


def _unary_encoding(eps: float, kept: np.ndarray, d: int) -> tuple[float, Reader]:
    """Optimised unary encoding. Bits are independent, so that the number of ones in each column is two binomials."""
    ratio, false = math.exp(eps), 1 / (1 + math.exp(eps))

    def read(x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        true = np.bincount(kept[x], minlength=d)
        ones = rng.binomial(true, 0.5) + rng.binomial(x.size - true, false)
        return (ones - x.size * false) / (0.5 - false)

    return forms.unary_encoding(d, ratio), read


def binary_posteriors(p: np.ndarray, ratio: float, notion: str) -> tuple[np.ndarray, np.ndarray]:
    """The two posteriors of answer 1 in the optimal mechanism, elementwise in its prior p in (0, 1)."""
    low, *highs = forms.interval(p, notion, ratio)
    return (np.maximum(low, 1 - ratio * (1 - p)), np.minimum(*highs)) if notion == "lip" else (low, highs[0])


@dataclass(frozen=True)
class CentralMechanism:
    """The optimal central mechanism for a binomial count: publish S, but pool the tails that would tell too much.

    **Why optimal.** With one prior for all users, P(X_i = 1 | Y) = E[S | Y] / n: the guarantee says that m = E[S | Y] lies in
    [n low, n high], the interval of `binary_posteriors`, and nothing else; the error is Var S - Var m. Pool all of S above
    c = n high with the nearest values below, the last in part, until the pool's mean is c, and the other tail likewise.
    Let f be s^2 in between and beyond the first pooled value a the line through (a, a^2) and (c, c^2): f is convex and
    f(m) >= m^2 on the interval, so that E m^2 <= E f(m) <= E f(S) for every mechanism, with equality here. If the two
    pools would overlap (few users), m takes the two ends only, which no distribution on the interval can beat.

    `low` and `high` are the pools' means; `to_low[k]`, `to_high[k]` how often S = first + k goes there; else it is published.
    """

    users: int
    first: int
    low: float
    high: float
    to_low: np.ndarray
    to_high: np.ndarray
    error: float

    def publish(self, answers: int, rng: np.random.Generator) -> float:
        """The estimate that the curator publishes for `answers` yes answers."""
        k = answers - self.first
        if not 0 <= k < self.to_low.size:
            return float(np.clip(answers, self.low, self.high))
        toss = rng.random()
        if toss < self.to_low[k]:
            return self.low
        return self.high if toss < self.to_low[k] + self.to_high[k] else float(answers)


def central_mechanism(p: float, users: int, eps: float) -> CentralMechanism:
    """The optimal central mechanism (Context-aware LIP, Proposition 5) for `users` answers with P(yes) = p.

    Its `error` is the mean square error of the published count. In floats; counts further than 40 deviations from the
    mean, which do not occur, are clipped.
    """
    from scipy.stats import binom

    p = require.real("p", p, low=0.0, high=1.0, open_low=True, open_high=True)
    users = require.integer("users", users, low=1)
    low, high = (users * float(end) for end in binary_posteriors(np.array(p), math.exp(require.epsilon(eps)), "lip"))
    spread = 40 * math.sqrt(users * p * (1 - p)) + 40
    s = np.arange(max(0, math.floor(users * p - spread)), min(users, math.ceil(users * p + spread)) + 1)
    law = binom.pmf(s, users, p)
    to_low, to_high = _pool(law, low - s), _pool(law[::-1], (s - high)[::-1])[::-1]
    if law @ (to_low + to_high) > law.sum():  # they overlap: two groups of means low and high
        share = (users * p - low) / (high - low)
        above = np.cumsum(law[::-1])[::-1] - law
        top = np.clip((share - above) / np.maximum(law, 1e-300), 0.0, 1.0)
        mean = float(law * top @ s) / share
        mix = (high - users * p) / (mean - users * p)
        to_high = mix * top + (1 - mix) * share
        to_low = 1 - to_high
        error = float(law @ s**2.0) - (share * high**2 + (1 - share) * low**2)
    else:
        error = float(law @ (to_low * (s - low) ** 2 + to_high * (s - high) ** 2))
    return CentralMechanism(users, int(s[0]), low, high, to_low, to_high, max(error, 0.0))


def _pool(law: np.ndarray, beyond: np.ndarray) -> np.ndarray:
    """How much of each value joins the pool: all with beyond > 0, then the next ones until the mean of `beyond` is 0."""
    lacking = np.concatenate(([0.0], np.cumsum(law * beyond)))  # rises, then falls to below 0
    before, after = lacking[:-1], lacking[1:]
    drop = np.maximum(before - after, 1e-300)
    return np.where(beyond > 0, 1.0, np.where(after >= 0, 1.0, np.clip(before / drop, 0.0, 1.0))) * (lacking.max() > 0)

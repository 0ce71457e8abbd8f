"""The posterior of a population's probabilities, given outputs and a Dirichlet prior.

Private outputs say much about some linear functions of the probabilities and nearly nothing about others, so that samplers which
make up the inputs hardly move. Slice sampling along lines is as fast whatever is known: along random directions, as far as the
outputs allow each, and between one probability and all others, where the prior is a beta distribution and may be infinite at 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from optdp.statistics.likelihood import maximise

#: Chains that are followed at once, draws of each that are kept, and draws before them that are not; the seed is fixed, so that
#: results are a function of their arguments.
CHAINS, DRAWS, WARM = 80, 50, 15
#: Directions that are drawn once, and how many probabilities each moves at most.
DIRECTIONS, MOVED = 400, 64
#: How many of them are followed from one draw to the next: for each probability, and in all.
FOLLOWED, MOST = 4, 400
#: How far one step goes at most, in standard deviations.
REACH = 10.0
#: No probability is smaller; sums that are smaller than the second are not told by what is missing to 1.
LEAST, SMALL = 1e-300, 1e-6
#: Tails of priors that are smaller are no floats; 1 less a tail that is smaller than the second has lost its digits.
TAIL, FAR = 1e-290, 1e-8
METHOD = f"posterior mean and central credible interval, {CHAINS * DRAWS} draws of a slice sampler"
ASSUMPTIONS = "their probabilities have the given Dirichlet prior"


def posterior(matrix: np.ndarray, counts: np.ndarray, pseudo: np.ndarray) -> np.ndarray:
    """Draws of the inputs' probabilities, shape (draws, inputs)."""
    size, rng, out = pseudo.size, np.random.default_rng(0), []
    if size > 1000:
        raise ValueError(f"prior is not allowed with {size} categories or bins: there may be at most 1000")
    start = (counts.sum() * maximise(matrix, counts) + pseudo) / (counts.sum() + pseudo.sum())
    chains = _Chains(matrix[counts > 0], counts[counts > 0].astype(float), pseudo, start, rng)
    directions = _directions(matrix, counts.sum(), start, np.maximum(start, pseudo / pseudo.sum()), rng)
    for step in range(-WARM, DRAWS):
        for j in rng.integers(DIRECTIONS, size=min(FOLLOWED * size, MOST)):
            chains.along(directions[j])
        for k in rng.permutation(size):
            chains.towards(k)
        chains.settle()
        if step >= 0:
            out.append(chains.shares.copy())
    return np.concatenate(out)


class _Chains:
    """Probabilities of the inputs, `shares`, a row for each chain, and of the outputs that occurred, `cells`."""

    def __init__(
        self, rows: np.ndarray, numbers: np.ndarray, pseudo: np.ndarray, start: np.ndarray, rng: np.random.Generator
    ) -> None:
        self.rows, self.numbers, self.pseudo, self.rng = rows, numbers, pseudo, rng
        self.shares = np.tile(start, (CHAINS, 1))
        self.settle()

    def settle(self) -> None:
        """Take off what roundings add."""
        self.shares = np.maximum(self.shares, LEAST)
        self.shares /= self.shares.sum(axis=1, keepdims=True)
        self.cells = self.shares @ self.rows.T

    def likelihood(self, cells: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(np.maximum(cells, LEAST)) @ self.numbers)

    def along(self, direction: np.ndarray) -> None:
        """Move on a line."""
        part = np.flatnonzero(direction)
        v, q, own, power = direction[part], self.rows @ direction, self.shares[:, part], self.pseudo[part] - 1

        def density(t: np.ndarray, i: np.ndarray) -> np.ndarray:
            found = self.likelihood(self.cells[i] + t[:, None] * q)
            return found + np.log(np.maximum(own[i] + t[:, None] * v, LEAST)) @ power if power.any() else found

        ends, back = -own / v, REACH * self.rng.random(CHAINS)
        low = np.maximum(np.where(v > 0, ends, -np.inf).max(axis=1), -back)
        high = np.minimum(np.where(v < 0, ends, np.inf).min(axis=1), REACH - back)
        t = _slice(density, np.zeros(CHAINS), low, high, self.rng)[:, None]
        self.shares[:, part] = np.maximum(own + t * v, LEAST)
        self.cells = self.cells + t * q

    def towards(self, k: int) -> None:
        """Move one probability and, in proportion, all others: by the prior's distribution function of the first."""
        from scipy.special import betainc, betaincinv

        prior, column = (self.pseudo[k], self.pseudo.sum() - self.pseudo[k]), self.rows[:, k]
        own, others = self.shares[:, k].copy(), self.shares.copy()
        others[:, k] = 0.0
        left = others.sum(axis=1)  # 1 - own has lost its digits where it is small, and so have differences
        rest, small = (self.cells - own[:, None] * column) / left[:, None], left < SMALL
        rest[small] = others[small] @ self.rows.T / left[small, None]

        # Of the two tails of the prior the smaller one, whose digits the other has not: what is known may lie far in it.
        # Where not even floats have it, the probability stays, and moves along lines alone.
        tails = betainc(*prior, np.minimum(own, 1.0)), betainc(*prior[::-1], np.minimum(left, 1.0))
        upper, now = tails[1] < tails[0], np.maximum(np.minimum(*tails), TAIL)

        def both(w: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            """The probability and what remains: the one that w tells, and 1 less it unless digits are lost by that."""
            a, b = np.where(upper, *prior[::-1]), np.where(upper, *prior)
            told = betaincinv(a, b, w)
            other, lost = 1 - told, ~((w < FAR) | (told < 0.5))
            other[lost] = betaincinv(b[lost], a[lost], 1 - w[lost])
            return np.where(upper, other, told), np.where(upper, told, other)

        def density(w: np.ndarray, i: np.ndarray) -> np.ndarray:
            t = both(w, upper[i])[0][:, None]
            return self.likelihood(rest[i] + t * (column - rest[i]))

        still = np.minimum(*tails) <= TAIL
        w = _slice(density, now, np.full(CHAINS, TAIL), np.where(still, TAIL, 1.0), self.rng)
        t, remains = both(w, upper)
        t, remains = np.where(still, own, t), np.where(still, left, remains)
        self.shares = others * (np.maximum(remains, LEAST) / left)[:, None]
        self.shares[:, k] = t
        self.shares = np.maximum(self.shares, LEAST)
        self.cells = rest + t[:, None] * (column - rest)


def _slice(
    density: Callable[[np.ndarray, np.ndarray], np.ndarray],
    now: np.ndarray, low: np.ndarray, high: np.ndarray, rng: np.random.Generator,
) -> np.ndarray:  # fmt: skip
    """The next place of each chain between two ends: uniform where the density is above a level below what it is now.

    **Source:** Neal, "Slice sampling", Annals of Statistics 31(3), 2003, Figure 5.
    """
    found, left = now.copy(), np.arange(now.size)
    level = density(now, left) - rng.exponential(size=now.size)
    while left.size:
        new = low[left] + (high[left] - low[left]) * rng.random(left.size)
        good = (density(new, left) >= level[left]) | (new == now[left])
        found[left[good]] = new[good]
        left, new = left[~good], new[~good]
        below = new < now[left]
        low[left], high[left] = np.where(below, new, low[left]), np.where(below, high[left], new)
    return found


def _directions(
    matrix: np.ndarray, n: int, shares: np.ndarray, scale: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Changes of some probabilities that keep their sum, distributed as what n outputs and the scale of each leave open."""
    cells = matrix @ shares
    weights = np.where(cells > 0, n / np.where(cells > 0, cells, 1.0), 0.0)
    known, found = (matrix.T * weights) @ matrix + np.diag(scale**-2.0), np.zeros((DIRECTIONS, shares.size))
    for row in found:
        most = min(shares.size, MOVED)
        part = rng.choice(shares.size, round(2 ** rng.uniform(1, np.log2(most))), replace=False)
        drawn, one = _solved(known[np.ix_(part, part)], rng)
        drawn -= one * (drawn.sum() / one.sum())
        row[part] = drawn - drawn.mean()
    return found


def _solved(known: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A normal variable with this inverse covariance, and the covariance times ones."""
    root = np.linalg.cholesky(known)
    drawn = np.linalg.solve(root.T, rng.standard_normal(len(root)))
    return drawn, np.linalg.solve(root.T, np.linalg.solve(root, np.ones(len(root))))


def summary(draws: np.ndarray, level: float) -> tuple[np.ndarray, np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """(mean, deviation, intervals, a band): the band's ends are quantiles of one level and hold `level` of the draws."""
    mean, deviation = draws.mean(axis=0), draws.std(axis=0)
    tail = (1 - level) / 2
    interval = list(np.quantile(draws, [tail, 1 - tail], axis=0))
    ranks = np.argsort(np.argsort(draws, axis=0), axis=0) / (len(draws) - 1)
    depth = np.minimum(ranks, 1 - ranks).min(axis=1)  # of the least central coordinate of each draw
    cut = float(np.quantile(depth, 1 - level))
    return mean, deviation, interval, list(np.quantile(draws, [cut, 1 - cut], axis=0))

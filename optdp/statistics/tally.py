"""What estimates need of many outputs: counts of cells and sums, which parts of the outputs add up to.

A `Tally` of a file, of the partitions of a cluster, or of the answers of each day holds a few thousand numbers however many
outputs there are: `optdp.estimate` takes one in place of the outputs, and gives the same estimate.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from optdp.exact import require
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.frequency import FrequencyOracle
from optdp.problem.domains import Alphabet, Circle, symbol_array
from optdp.statistics.channel import Channel

NONE = "outputs are not allowed: there must be at least one"


class Moments(NamedTuple):
    """How many numbers, their mean, and the sums of the squares and cubes of what they deviate from it."""

    n: int = 0
    mean: float = 0.0
    squares: float = 0.0
    cubes: float = 0.0

    @classmethod
    def of(cls, y: np.ndarray, counts: np.ndarray | None = None) -> Moments:
        """Of numbers, each of which occurs so often (once)."""
        n = y.size if counts is None else int(counts.sum())
        mean = float(y.mean() if counts is None else counts @ y / n)
        deviations = y - mean
        with np.errstate(over="ignore", invalid="ignore"):
            squares = deviations**2 if counts is None else counts * deviations**2
            return cls(n, mean, float(squares.sum()), float(squares @ deviations))

    def joined(self, other: Moments) -> Moments:
        """Of these numbers and others."""
        if not self.n or not other.n:
            return other if not self.n else self
        n, move = self.n + other.n, other.mean - self.mean
        a, b = self.n / n, other.n / n
        between = move * move * n * a * b
        cubes = self.cubes + other.cubes + move * (between * (a - b) + 3 * (a * other.squares - b * self.squares))
        return Moments(n, self.mean + b * move, self.squares + other.squares + between, cubes)


class Sample:
    """Outputs as they are: of them is computed what a question needs. A `Tally` answers to the same names."""

    def __init__(self, mechanism: Mechanism, outputs: ArrayLike) -> None:
        self.mechanism, self.outputs = mechanism, _array(mechanism, outputs)

    def counts(self, channel: Channel) -> np.ndarray:
        """How many outputs lie in each cell."""
        return channel.counts(self.outputs)

    def moments(self) -> Moments:
        """Of the outputs. **Raises** ValueError, TypeError."""
        if self.outputs.dtype.kind not in "iuf":
            raise TypeError(
                f"outputs are of type {self.outputs.dtype}, which is not allowed: they must be real numbers"
            )
        y = self.outputs.astype(float).reshape(-1)
        if not y.size or not np.isfinite(y).all():
            raise ValueError(f"{NONE}, all finite")
        return Moments.of(y)

    def directions(self) -> tuple[int, np.ndarray]:
        """(number, sums of cos, sin, cos^2, sin^2, cos sin) of the outputs as angles on the domain, a circle."""
        domain: Any = self.mechanism.domain
        angles = 2 * np.pi / domain.period * (domain.check(self.outputs, "outputs").reshape(-1) - domain.start)
        if not angles.size:
            raise ValueError(NONE)
        c, s = np.cos(angles), np.sin(angles)
        return angles.size, np.array([c.sum(), s.sum(), (c * c).sum(), (s * s).sum(), (c * s).sum()])

    def supports(self, categories: Any, progress: bool) -> tuple[np.ndarray, np.ndarray, int]:
        """(sums of T_c, sums of T_c^2, number) for the messages of a frequency oracle."""
        oracle: Any = self.mechanism
        sums, n = oracle.tally(self.outputs, categories, progress=progress)
        if not n:
            raise ValueError(NONE)
        return sums, sums if oracle.binary else oracle.second(self.outputs, categories) * n, n


def _array(mechanism: Mechanism, outputs: ArrayLike) -> np.ndarray:
    """Outputs, none of them masked, as an array; symbols as they are. **Raises** TypeError, ValueError."""
    array = require.array(outputs, "outputs")
    return symbol_array(outputs, ()) if isinstance(getattr(mechanism, "domain", None), Alphabet) else array


class Tally:
    """What `optdp.estimate` needs of a mechanism's outputs, without the outputs: tallies of parts add up.

    **Arguments:** `mechanism`: the one that gives the outputs, on an interval, a circle, an alphabet, or categories;
    `mean_only`: count only what the mean of numbers on an interval needs, which takes half the time.

    **Raises** TypeError for noise on the line: what is needed of its outputs depends on the bins that are asked for.

        >>> import numpy as np, optdp
        >>> mechanism = optdp.solve_frequency(1.0, 4).mechanism
        >>> days = [optdp.Tally(mechanism).add(mechanism.randomize(np.full(500, 2), seed)) for seed in range(3)]
        >>> found = optdp.estimate(mechanism, sum(days[1:], days[0]), "frequencies")
        >>> found.n, int(found.value.argmax())
        (1500, 2)
    """

    def __init__(self, mechanism: Mechanism, *, mean_only: bool = False) -> None:
        self.mechanism, self.mean_only, self._moments = mechanism, mean_only, Moments()
        self._oracle = mechanism if isinstance(mechanism, FrequencyOracle) else None
        self._sums: np.ndarray | None = None  # T_c and T_c^2; or directions
        self._channels: tuple[Channel, ...] = ()
        self._counts: list[np.ndarray] = []
        if self._oracle is not None:
            return
        domain = getattr(mechanism, "domain", None)
        if not isinstance(domain, Alphabet) and not np.isfinite(getattr(domain, "lower", np.inf)):
            raise TypeError(
                f"mechanism = {mechanism!r} is not allowed: its inputs must be numbers between ends, symbols or categories"
            )
        channels = [Channel.of(mechanism)]
        if not isinstance(domain, Alphabet | Circle):
            channels = [Channel.coarse(mechanism)] if mean_only else [*channels, Channel.coarse(mechanism)]
        self._channels = tuple(channels)
        self._counts = [np.zeros(channel.cells, dtype=np.int64) for channel in channels]

    @property
    def n(self) -> int:
        """How many outputs."""
        return self._moments.n

    @property
    def numeric(self) -> bool:
        """Whether outputs are numbers on an interval, which have a mean."""
        return self._oracle is None and not isinstance(self.mechanism.domain, Alphabet | Circle)

    def add(self, outputs: ArrayLike) -> Self:
        """Count more outputs. **Returns** itself. **Raises** TypeError or ValueError for what the mechanism does not send."""
        array = _array(self.mechanism, outputs)
        if not array.size:
            return self
        sample = Sample(self.mechanism, array)
        if self._oracle is not None:
            sums, squares, n = sample.supports(None, False)
            return self._join(Moments(n), np.array([sums, squares]), [])
        counts = [sample.counts(channel) for channel in self._channels]
        if self.numeric:
            return self._join(sample.moments(), None, counts)
        turns: Any = sample.directions()[1] if isinstance(self.mechanism.domain, Circle) else None
        return self._join(Moments(array.size), turns, counts)

    @classmethod
    def each(cls, mechanism: Mechanism, outputs: ArrayLike, *, mean_only: bool = False) -> list[Self]:
        """A tally of each row of the outputs (messages of frequency oracles have more axes): for simulations of many surveys."""
        rows = _array(mechanism, outputs)
        found = [cls(mechanism, mean_only=mean_only) for _ in rows]
        if not found or found[0]._oracle is not None or isinstance(mechanism.domain, Circle):
            return [tally.add(row) for tally, row in zip(found, rows, strict=True)]
        places = [channel.place(rows).reshape(rows.shape) for channel in found[0]._channels]
        for i, tally in enumerate(found):
            counts = [np.bincount(p[i], minlength=c.cells) for p, c in zip(places, tally._channels, strict=True)]
            tally._join(Moments.of(rows[i]) if tally.numeric else Moments(rows[i].size), None, counts)
        return found

    def _join(self, moments: Moments, sums: Any, counts: list[np.ndarray]) -> Self:
        """Add what was counted of other outputs."""
        self._moments = self._moments.joined(moments)
        if sums is not None:
            self._sums = sums if self._sums is None else self._sums + sums
        self._counts = [one + two for one, two in zip(self._counts, counts, strict=True)]
        return self

    def __add__(self, other: Tally) -> Tally:
        if not isinstance(other, Tally) or not (other.mechanism is self.mechanism or other.mechanism == self.mechanism):
            raise ValueError("a tally can only be added to one of the same mechanism")
        if other.mean_only != self.mean_only:
            raise ValueError("a tally for the mean only can only be added to another such one")
        both = Tally(self.mechanism, mean_only=self.mean_only)
        for part in (self, other):
            both._join(part._moments, part._sums, part._counts)
        return both

    # --- what a Sample answers

    def counts(self, channel: Channel) -> np.ndarray:
        """How many outputs lie in each cell of a channel of the mechanism."""
        self._some()
        for known, counts in zip(self._channels, self._counts, strict=True):
            if known.same(channel):
                return counts
        raise ValueError("this tally is for the mean only: make one without mean_only")

    def moments(self) -> Moments:
        """As of a `Sample`."""
        self._some()
        return self._moments

    def directions(self) -> tuple[int, np.ndarray]:
        """As of a `Sample`."""
        self._some()
        return self.n, np.asarray(self._sums)

    def supports(self, categories: Any, progress: bool) -> tuple[np.ndarray, np.ndarray, int]:
        """As of a `Sample`."""
        self._some()
        sums: Any = self._sums
        domain: Any = self.mechanism.domain
        asked: Any = slice(None) if categories is None else np.ravel(domain.check(categories, "categories"))
        return sums[0][asked], sums[1][asked], self.n

    def _some(self) -> None:
        if not self.n:
            raise ValueError(NONE)

    def __repr__(self) -> str:
        return f"<Tally of {self.n} outputs of {self.mechanism!r}>"


#: Outputs, or what was kept of them.
Data = Sample | Tally

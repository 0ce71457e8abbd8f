"""Optimal additive noise: a density that is constant on cells of width sensitivity/n, or noise on the integers.

**Privacy at every shift.** Let p_i be the mass of cell i (centred at ih, h = Delta/n) and f the density. A shift by d = (k + u)h,
0 <= u < 1, matches a share 1 - u of every cell with the cell k places on and a share u with the cell k + 1 places on, so

    int (f(x) - R f(x + d))_+ dx  =  (1 - u) D_k(R) + u D_(k+1)(R),      D_k(R) = sum_i (p_i - R p_(i+k))_+,

a convex combination: the shifts k = 1..n (0 is harmless for R >= 1) decide about all of [0, Delta]. An atom at 0 meets no
atom under a shift, and adds its mass to the divergence at every d != 0. For noise on the integers the D_k are all there is.

The same holds for every notion that mixtures keep: the noise and its shift by d are a mixture of the two neighbouring pairs of
lattice noises, and hockey-stick divergences (hence profiles and Gaussian DP), KL and Renyi moments are jointly convex.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property
from itertools import pairwise
from typing import Annotated, Any

import numpy as np
from flint import arb, ctx, fmpz
from numpy.typing import ArrayLike

from optdp.exact import (
    OPTIONAL,
    Alias,
    Check,
    Geometric,
    Log,
    Number,
    Seed,
    Within,
    as_rng,
    enclosures,
    in_blocks,
    polynomial,
    require,
    show,
    work,
)
from optdp.exact.numbers import below, border
from optdp.exact.pairs import Pair
from optdp.exact.sampling import LIMB
from optdp.mechanisms.base import asked_for
from optdp.mechanisms.noise import StairNoise, Stairs, added
from optdp.problem import (
    RDP,
    ApproxDP,
    At,
    Average,
    Curve,
    Divergence,
    Integers,
    Line,
    LossLike,
    Objective,
    Privacy,
    Profile,
    Quantile,
    WorstCase,
)
from optdp.problem.privacy import Sensitivity, mu_between

#: Weights add up to less than 2^124: what the alias table can draw from. Numbers of weights that a file may have.
TOTAL = LIMB * LIMB
LENGTH = 1_000_000
#: The sampler works on a grid of at least 2^GRID points per cell.
GRID = 40
#: Tails fall by a share of at least 2^-16 each sensitivity: the sampler looks at a few periods at a time.
SLOWEST = LIMB - (LIMB >> 16)
#: Binary digits of e^eps, at first and where these do not show that a delta is kept.
DIGITS = (56, 160)
#: Binary places of a quantile within a cell of the tail.
PLACES = 100
#: Cells around a break that are looked at one by one.
FEW = 64
#: Cells from which on grid points are counted in Python's integers.
FAR = 2**21


@dataclass(frozen=True, repr=False)
class AdditiveMechanism(StairNoise):
    """Noise with integer weights on cells of width sensitivity/n, an optional atom at 0 and an optional geometric tail.

    **Arguments:**

    - `domain`: a `Line` or the `Integers`; `sensitivity`: how far apart neighbours are.
    - `n`: cells per sensitivity (on the integers: the sensitivity).
    - `weights`: integers; `weights[a]` belongs to the cell centred at a h and, for a > 0, to the one at -a h as well.
    - `atom`: weight of the outcome Z = 0 exactly.
    - `tail`: () or n integers: `tail[r]` is the total weight of the cells at distance K + r, K + r + n, K + r + 2n, ...
      (K = len(weights)), which share it in proportion 1 : b : b^2 : ..., b = `decay` / 2^62.
    - `eps`: the point of the privacy profile at which `guarantee()` states delta; the profile itself is `delta(eps)`.
    - `notion`: what `guarantee()` states instead, where the noise is proven to have it: a `Profile`, `GDP`, `RDP` or `KL`.
    - `bins`: whether cells lie between multiples of h: cell a is (ah, (a + 1)h), its mirror image (-(a + 1)h, -ah). On the line.

    Probabilities are these weights over their total, hence exact rationals, and they sum to exactly 1.

    **Exactness.** `randomize` draws the cell with an alias table of exact integers, the place within the cell as an integer
    on a grid (of spacing g = a power of two, at most h/2^40), rounds the input down to that grid and adds in integers; the
    sum is turned into a float at the very end, which is post-processing. Rounding up the cell to whole grid points only
    makes it wider (by a share of at most 2^-40), so that the guarantee covers at least the stated sensitivity. An output of
    `randomize` differs from one drawn from the density by at most 2^-40 (|z| + 3h), which `enclose` counts, and, where the
    sum is beyond 2^53 grid points, by its rounding to a float, which it does not: it is about inputs that are nearer to 0.
    """

    exact = True
    domain: Line | Integers
    sensitivity: Sensitivity
    n: Annotated[int, Within(1, LENGTH)]
    weights: Annotated[tuple[int, ...], Within(0, TOTAL, 1, LENGTH)]
    atom: Annotated[int, Within(0, TOTAL)] = 0
    tail: Annotated[tuple[int, ...], Within(0, TOTAL)] = ()
    decay: Annotated[int, Within(0, LIMB - 1)] = 0
    eps: Number = 0.0
    notion: Privacy | None = field(default=None, metadata=OPTIONAL)
    bins: bool = field(default=False, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "eps", require.exact_epsilon(self.eps, zero=True))
        if self.discrete and self.n != self.sensitivity:
            raise ValueError(f"n = {self.n} is not allowed: on the integers it must be the sensitivity")
        if self.discrete and self.bins:
            raise ValueError("bins = True is not allowed on the integers: cells are the integers themselves")
        if self.discrete and self.atom:
            raise ValueError("atom is not allowed on the integers: it belongs to weights[0]")
        if len(self.tail) not in (0, self.n):
            raise ValueError(f"tail is not allowed: it must have 0 or n = {self.n} entries")
        if self.tail and self.decay > SLOWEST:
            raise ValueError("decay is not allowed: where there is a tail, it must be at most 2^62 - 2^46")
        if not 0 < self.total < TOTAL:
            raise ValueError("the weights must add up to a positive number below 2^124")

    @cached_property
    def total(self) -> int:
        """The sum of all weights: the common denominator of the probabilities."""
        return self.atom + 2 * (sum(self.weights) + sum(self.tail)) - (not self.bins) * self.weights[0]

    @property
    def _twice(self) -> np.ndarray:
        """How many cells are at each distance that has a weight."""
        return np.where(np.arange(len(self.weights)) > 0, 2, 1 + self.bins)

    @property
    def _middle(self) -> Fraction:
        """Where the middle of cell 0 is, in cells."""
        return Fraction(self.bins, 2)

    @property
    def step(self) -> Fraction:
        """Width of a cell, exactly."""
        return Fraction(self.sensitivity) / self.n

    @property
    def _b(self) -> Fraction:
        return Fraction(self.decay, LIMB)

    @cached_property
    def _line(self) -> tuple[np.ndarray, int]:
        """(integers proportional to the masses at -a..a with tails cut off after two periods, unit of proportion)."""
        b, d, periods = self.decay, LIMB, 3 if self.tail else 0
        work.count(2 * len(self.weights) + 3 * len(self.tail))
        half = [w * d**periods for w in self.weights]
        half += [t * (d - b) * b**k * d ** (2 - k) for k in range(periods) for t in self.tail]
        up = np.array(half, dtype=object)
        return np.concatenate([up[::-1] if self.bins else up[:0:-1], up]), d**periods

    @cached_property
    def _starts(self) -> np.ndarray:
        """Where in `_line` runs of equal masses begin, and where the last one ends."""
        line, _ = self._line
        work.count(0.1 * line.size)
        return np.concatenate([[0], np.flatnonzero(line[1:] != line[:-1]) + 1, [line.size]])

    @cached_property
    def _falls(self) -> bool:
        """Whether masses fall with the distance from 0, or stay."""
        line, _ = self._line
        work.count(0.1 * line.size)
        half = line[line.size // 2 :]
        return bool((half[1:] <= half[:-1]).all())

    def deciding(self, last: int) -> list[int]:
        """The shifts in 1..`last`, in cells, that decide about all.

        Of noise whose masses fall with the distance from 0, `last`: where p(x) > E p(x + s) with E >= 1, x is nearer to 0 than
        x + s, that is x > -s/2, and a longer shift takes x + s further away. So that all hockey-stick divergences grow with it,
        and with them all that is monotone under post-processing.

        Else distances between ends of runs of equal masses, and `last`. While a shift meets no such distance, the runs overlap
        in the same order, each pair of masses on a length that is affine in the shift: the two neighbours are a mixture of what
        they are at the ends, which divergences are convex in.
        """
        if last < 1:
            return []
        if self._falls:
            return [last]
        ends = self._starts[1:-1] if self.tail else self._starts
        marked = np.zeros(self._line[0].size + last + 1, dtype=bool)
        marked[ends] = True
        found = np.zeros(last, dtype=bool)
        found[-1] = True
        for end in ends.tolist():
            if found.all():
                break
            work.count(1 + 5e-4 * last)
            found |= marked[end + 1 : end + last + 1]
        return (np.flatnonzero(found) + 1).tolist()

    def hockey_stick(self, shift: Fraction | float, ratio: Fraction) -> Fraction:
        """The divergence int (f(x) - ratio f(x + shift))_+ dx, atom included, as an exact rational, for ratio >= 1.

        **Arguments:** `shift`: any real number (on the integers, an integer) as a float or Fraction.
        """
        cells = abs(Fraction(shift)) / self.step
        k, u = divmod(cells, 1)
        if self.discrete and u:
            raise ValueError(f"shift = {shift!r} is not allowed: on the integers shifts must be integers")
        if cells == 0:
            return Fraction(0)
        near = (1 - u) * self._cell_divergence(int(k), ratio)
        far = u * self._cell_divergence(int(k) + 1, ratio) if u else Fraction(0)
        return near + far + Fraction(self.atom, self.total)

    def _cell_divergence(self, k: int, ratio: Fraction) -> Fraction:
        """D_k(ratio) without the atom, exactly."""
        if k == 0:
            return Fraction(0)  # ratio >= 1
        if self.tail and k > self.n:
            refusal = f"shifts above the sensitivity {self.sensitivity:g} are not supported"
            raise ValueError(f"{refusal} for noise with a tail")
        (line, unit), stay = self._line, max(self._line[0].size - k, 0)
        if 8 * self._starts.size < line.size:
            return self.pair(k).hockey_stick(ratio) - Fraction(self.atom, self.total)
        work.count((line.size + k) * (0.6 + 2 * work.product(7 if self.tail else 2, work.words([ratio]))))
        # All shifts are asked for the same ratio. What is kept is read once: threads may share the noise.
        found = self.__dict__.get("_products")
        if found is None or found[0] != ratio:
            self.__dict__["_products"] = found = ratio, line * ratio.denominator, line * ratio.numerator
        _, own, other = found
        both = own[:stay] - other[k:]
        excess = np.concatenate([np.zeros(k, dtype=object), np.where(both > 0, both, 0), own[stay:]])
        scale = unit * ratio.denominator * self.total
        if not self.tail:
            return Fraction(int(excess.sum()), scale)
        # Point j of the line is at distance (j - k) - reach; both tails repeat with period n and factor b: the last but one
        # whole period of each, [K + n, K + 2n) at distance from 0, stands for itself and all that follow.
        end = k + line.size // 2 + len(self.weights)
        start = end - 2 * len(self.weights) - self.n + (not self.bins)
        tails = excess[end : end + self.n].sum() + excess[start - self.n : start].sum()
        return Fraction(int(excess[start:end].sum()), scale) + Fraction(int(tails), scale) / (1 - self._b)

    def exact_delta(self, ratio: Fraction, reach: float | None = None) -> Fraction:
        """The largest divergence over all shifts up to `reach` for a rational likelihood ratio >= 1, exactly.

        **Arguments:** `reach`: by default, and at most where there is a tail, the sensitivity. What is sent counts: of inputs
        that are so far apart, both rounded down to the grid.
        """
        cells = self.n if reach is None else self._apart(reach)
        last = min(int(cells), max(2 * len(self.weights), self.n))  # beyond twice the support nothing overlaps
        worst = max((self._cell_divergence(k, ratio) for k in self.deciding(last)), default=Fraction(0))
        if last < cells and not self.discrete:  # between lattice points the divergence is linear in the shift
            share = min(cells - last, Fraction(1))
            ends = self._cell_divergence(last, ratio), self._cell_divergence(last + 1, ratio)
            worst = max(worst, (1 - share) * ends[0] + share * ends[1])
        return worst + Fraction(self.atom, self.total)

    def _apart(self, reach: float | Fraction) -> Fraction:
        """Inputs up to `reach` apart are at most so many cells apart on the grid, where m points are a cell."""
        if self.discrete or reach == self.sensitivity:
            return Fraction(reach) / self.step
        g, m = self._grid()
        return Fraction(math.ceil(Fraction(reach) / Fraction(g)), m)

    def pair(self, k: int) -> Pair:
        """The noise and the noise k cells on, 1 <= k <= n where there is a tail, as a pair of distributions; exactly."""
        if self.tail and not 1 <= k <= self.n:
            raise ValueError(f"k = {k} is not allowed: noise with a tail is compared at shifts of 1 to {self.n} cells")
        (line, unit), starts = self._line, self._starts
        size, n, centre = len(self.weights), self.n, line.size // 2
        work.count(60 + 1.5 * starts.size)
        if not self.tail:
            spans, scale = [(-k, line.size, 1)], 1
        else:  # one period of each tail stands for itself and all that follow: 1 + b + b^2 + ... = LIMB/(LIMB - decay)
            scale, low, high = LIMB - self.decay, centre - size - n + (not self.bins), centre + size
            spans = [(low - n, low, LIMB), (high, high + n, LIMB), (low, high, scale)]
        values = np.concatenate([np.zeros(1, dtype=object), line[starts[:-1]], np.zeros(1, dtype=object)])
        p: list[int] = []
        q: list[int] = []
        for low, high, times in spans:
            inside = (at[slice(*np.searchsorted(at, [low, high]))] for at in (starts, starts - k))
            cuts = np.sort(np.concatenate([*inside, [low, high]]), kind="stable")  # runs in order are merged
            cuts = cuts[np.diff(cuts, prepend=low - 1) > 0]
            lengths = np.diff(cuts).astype(object) * times
            for masses, at in ((p, cuts[:-1]), (q, cuts[:-1] + k)):
                masses += (values[np.searchsorted(starts, at, side="right")] * lengths).tolist()
        stuck = self.atom * unit * scale
        return Pair([*p, stuck, 0], [*q, 0, stuck], self.total * unit * scale)

    def admitted(self, privacy: Privacy) -> bool | None:
        """Whether every shift up to `privacy`'s sensitivity keeps it: True or False where proven.

        For notions that are decided by the worst pair of neighbours and kept by mixtures of pairs.
        """
        cells = self._apart(getattr(privacy, "sensitivity", self.sensitivity))
        last, share = divmod(cells, 1)
        if self.tail and cells > self.n:
            return None
        if isinstance(privacy, Profile | Curve):
            # Of pairs (eps, delta) divergences are all that is asked, and those of integers are sooner found.
            exact = ((self.exact_delta(enclosures.exp_below(e), privacy.sensitivity), d) for e, d in privacy.pairs)
            if all(found <= Fraction(d) for found, d in exact):  # type: ignore[arg-type]
                return True
        end = (
            int(last) if self.tail else min(int(last), 2 * len(self.weights))
        )  # beyond twice the support nothing overlaps
        answers = []
        for k in self.deciding(end)[::-1]:
            answers.append(privacy.admits(self.pair(k)))
            if answers[-1] is False:
                return False
        # A shift between lattice points is a mixture of its neighbours: what they both keep it keeps.
        beyond = privacy.admits(self.pair(end + 1)) if share and not self.discrete and end == last else True
        return True if beyond and None not in answers else None

    def mu(self) -> float:
        """The least mu, rounded up, for which the noise is mu-GDP for its sensitivity; inf where there is none."""
        worst = arb(0)
        with ctx.workprec(enclosures.PRECISION):
            for k in self.deciding(self.n):
                pair = self.pair(k)
                for alpha, beta in pair.powers():
                    needed = mu_between(alpha, beta, pair.total)
                    worst = worst if needed is None else worst.max(needed)
                if not worst.is_finite():
                    return float("inf")
            return enclosures.round_up(worst)

    def kl(self) -> float:
        """The largest Kullback-Leibler divergence over shifts up to the sensitivity, rounded up; inf for bounded noise."""
        return self._largest([self.pair(k).kl() for k in self.deciding(self.n)])

    def renyi(self, alpha: Number) -> float:
        """The largest Renyi divergence of order `alpha` > 1 over shifts up to the sensitivity, rounded up."""
        alpha = RDP(alpha, 1.0).alpha
        with ctx.workprec(enclosures.PRECISION):
            order = enclosures.ball(alpha) - 1
            return self._largest([self.pair(k).moment(alpha).log() / order for k in self.deciding(self.n)])

    @staticmethod
    def _largest(found: list[arb]) -> float:
        return (
            enclosures.round_up(max(map(enclosures.upper, found)))
            if all(x.is_finite() for x in found)
            else float("inf")
        )

    @cached_property
    def exact_ratio(self) -> Fraction | None:
        """The largest likelihood ratio over shifts up to the sensitivity, exactly; None where it is infinite."""
        if self.atom or not self.tail or not self.decay or not min(*self.weights, *self.tail):
            return None
        b, d, n = self.decay, LIMB, self.n
        half = [w * d**2 for w in self.weights] + [t * (d - b) * factor for factor in (d, b) for t in self.tail]
        work.count((len(half) + n) * (1 + work.rational(8)))
        line = [
            *(half[:n][::-1] if self.bins else half[n:0:-1]),
            *half,
        ]  # a window of n cells around each distance; further out it repeats
        top = largest_around(line, n)[len(line) - len(half) :]
        return max(Fraction(most, w) for most, w in zip(top, half, strict=True))

    def delta(self, eps: Number) -> float:
        """The smallest delta for which the noise is (eps, delta)-private, rounded up: exact hockey-stick divergences."""
        eps = require.exact_epsilon(eps, zero=True)
        return min(1.0, enclosures.round_up(self.exact_delta(enclosures.exp_below(eps))))

    def eps_at(self, delta: float = 0.0) -> float:
        """An eps, at most 1e-9 above the smallest, for which the noise is (eps, delta)-private; inf if there is none up to 30."""
        delta = require.real("delta", delta, low=0.0, high=1.0, open_high=True)
        if self.delta(0.0) <= delta:
            return 0.0
        if self.delta(require.MAX_EPS) > delta:
            return float("inf")
        return border(lambda eps: self.delta(eps) > delta, 0.0, require.MAX_EPS, 1e-9)[1]

    def guarantee(self) -> Privacy | None:
        """The `notion`, if it is kept; else the smallest eps with delta = 0, or delta at the mechanism's `eps`.

        None where two neighbours have no output in common.
        """
        if self.notion is not None and self.satisfies(self.notion):
            return self.notion
        ratio = self.exact_ratio
        if ratio is not None and float(Log(ratio)) <= require.MAX_EPS:
            return ApproxDP(Log(ratio), 0.0, self.sensitivity)
        worst = self.exact_delta(enclosures.exp_below(self.eps))
        return ApproxDP(self.eps, worst, self.sensitivity) if float(worst) < 1 else None

    def satisfies(self, privacy: Privacy) -> bool | None:
        """Decided from the exact profile, for neighbours up to any distance (with a tail: up to the sensitivity)."""
        asked_for(privacy)
        if not isinstance(privacy, ApproxDP) or (self.tail and privacy.sensitivity > self.sensitivity):
            own = replace(self, notion=None).guarantee()
            if own is not None and privacy.implied_by(own):
                return True
            return self.admitted(privacy) if isinstance(privacy, Divergence) else None
        if self.discrete and privacy.sensitivity < 1:  # no two integers are so near
            return True
        for bound, answer in ((enclosures.exp_below, True), (enclosures.exp_above, False)):
            kept = self.exact_delta(bound(privacy.eps), privacy.sensitivity) <= Fraction(privacy.delta)  # type: ignore[arg-type]
            if kept is answer:
                return answer
        return None

    def privacy(self) -> float:
        """The smallest eps, rounded up, of noise that needs no delta. **Raises** ValueError for other noise."""
        own = replace(self, notion=None).guarantee()
        if not isinstance(own, ApproxDP) or own.delta != 0:
            instead = "use delta(eps), eps_at(delta), guarantee() or satisfies(optdp.ApproxDP(...))"
            profile = "this noise has a whole profile of pairs (eps, delta)"
            raise ValueError(f"privacy() is ambiguous here: {profile}; {instead}")
        assert isinstance(own.eps, Log)
        return enclosures.log_above(own.eps.argument)

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        if not isinstance(privacy, ApproxDP | Divergence):
            return super().check_privacy(privacy)
        reach = privacy.sensitivity <= self.sensitivity
        told = f"the guarantee is for neighbours up to {privacy.sensitivity:g} apart"
        sides = self.weights[0] * (1 + self.bins) + 2 * sum(self.weights[1:]) + 2 * sum(self.tail)
        mass = Fraction(self.atom + sides, self.total)
        checks = [
            Check("sensitivity", reach, f"{told}, the noise for {self.sensitivity:g}"),
            Check("mass", mass == 1 and min(self.weights) >= 0, f"the masses add up to {mass} in exact rationals"),
        ]
        if not reach:
            return checks
        if isinstance(privacy, Divergence):
            kept = self.admitted(privacy)
            verdict = {True: "is proven to be", False: "is not", None: "is not proven to be"}[kept]
            text = f"the noise beside itself at every shift up to {show(privacy.sensitivity)} {verdict} {privacy.adjective}"
            return [
                Check("privacy", kept is True, f"{text} (exact rationals and balls at the lattice's shifts)"),
                *checks,
            ]
        same = None if privacy.sensitivity == self.sensitivity else privacy.sensitivity
        pure = self.exact_ratio is not None and enclosures.at_most_exp(self.exact_ratio, privacy.eps)
        divergence = Fraction(0)
        for bits in () if pure else DIGITS:
            divergence = self.exact_delta(enclosures.exp_below(privacy.eps, bits), same)
            if divergence <= Fraction(privacy.delta):  # type: ignore[arg-type]
                break
        return [privacy.check(divergence), *checks]

    @cached_property
    def masses(self) -> np.ndarray:
        """P(cell at distance a h on one side), a = 0, 1, ... without tail and atom, in floats."""
        return np.array([float(Fraction(w, self.total)) for w in self.weights])

    @cached_property
    def _law(self) -> Stairs:
        size, cells = len(self.weights), np.arange(len(self.weights) + len(self.tail) + 1)
        ends = np.maximum(cells + float(self._middle) - 0.5, 0.0) * float(self.step)
        decay = float(self._b)
        masses = np.concatenate(
            [self.masses * self._twice / 2, [float(Fraction(t, self.total)) * (1 - decay) for t in self.tail]]
        )
        return Stairs(ends, masses, atom=self.atom_mass, start=float(ends[size]), fall=decay if self.tail else 0.0)

    @property
    def atom_mass(self) -> float:
        """P(Z = 0) from the atom alone."""
        return float(Fraction(self.atom, self.total))

    def noise_radius(self) -> float:
        if self.tail:
            return np.inf
        half = Fraction(0) if self.discrete else Fraction(1, 2)
        return enclosures.round_up((len(self.weights) - 1 + self._middle + half) * self.step)

    @property
    def _farthest(self) -> int:
        """How many grid points what is drawn is from 0 at most, without a tail: cells are rounded up to whole points."""
        m, last = self._grid()[1], len(self.weights) - 1
        return (last + 1) * m if self.bins else last * m + m // 2

    def _far(self) -> float:
        if self.discrete or self.tail:
            return self.noise_radius()
        return enclosures.round_up((self._farthest + 1) * Fraction(self._grid()[0]))

    def noise_loss(self, loss: LossLike = "abs") -> float:
        low, high = self.enclose_loss(loss)
        return (low + high) / 2

    def enclose(self, objective: Objective) -> tuple[float, float]:
        if isinstance(objective, Quantile):
            return self.enclose_quantile(objective.level, sent=True)
        if not isinstance(objective, WorstCase | Average | At) or objective.loss.form != "distance":
            return super().enclose(objective)
        return self.enclose_loss(objective.loss, sent=True)

    def enclose_loss(self, loss: LossLike = "abs", *, sent: bool = False) -> tuple[float, float]:
        """(low, high) proven to contain E L(|Z|), in exact rationals for |z| and z^2, in ball arithmetic else.

        **Arguments:** `sent`: whether it is about what `randomize` sends (but for a user's function): E L(|Y - x|), before the
        rounding of sums beyond 2^53 grid points to floats.
        """
        law = self._loss(loss)
        if law.assumptions:
            return self._sampled_value(law)
        with ctx.workprec(2 * enclosures.PRECISION):
            moved, norm = sent and not self.discrete, law.exponent is not None and law.exponent >= 1
            if law.exponent in (1, 2):
                value = enclosures.ball(self._moment(int(law.exponent)))
            else:
                value = self._integrated_value(law, Fraction(1 if moved and not norm else 0, 2**GRID))
            if moved and norm:
                value = self._as_sent(value, law.exponent)
            return max(0.0, enclosures.round_down(value)), enclosures.round_up(value)

    def enclose_quantile(self, level: float, *, sent: bool = False) -> tuple[float, float]:
        """(low, high) proven to contain the least t with P(|Z| <= t) >= level, in exact rationals.

        **Arguments:** `sent`: as for `enclose_loss`: for |Y - x|, by the same |D| <= 2^-GRID (|Z| + 3 h).
        """
        low, high = (place * self.step for place in self._reached(Fraction(level)))
        if sent and not self.discrete:
            share = Fraction(1, 2**GRID)
            low, high = low - share * (low + 3 * self.step), high + share * (high + 3 * self.step)
        return max(0.0, enclosures.round_down(low)), enclosures.round_up(high)

    def _reached(self, level: Fraction) -> tuple[Fraction, Fraction]:
        """The least distance from 0, in cells, that holds a share `level` of the noise: (below, above)."""
        wanted, inside = level * self.total, self.atom
        work.count(2 * len(self.weights) + 4 * len(self.tail))
        if wanted <= inside:
            return Fraction(0), Fraction(0)
        for a, weight in enumerate(self.weights):
            both = weight * (2 if a or self.bins else 1)
            if inside + both >= wanted:
                return self._placed(a, (wanted - inside) / both)
            inside += both
        # Of what lies beyond whole periods the shares are b, b^2, ...; how many are passed.
        beyond, left = 2 * sum(self.tail), self.total - wanted
        passed = 0
        if self.decay:
            passed = max(round(math.log(left / beyond) / math.log(self._b)) - 2, 0)
            work.count(work.product(1 + passed, 1 + passed) + 10)
        top, bottom = fmpz(self.decay) ** passed, fmpz(LIMB) ** passed
        while fmpz(beyond) * top * self.decay * left.denominator > fmpz(left.numerator) * bottom * LIMB:
            top, bottom, passed = top * self.decay, bottom * LIMB, passed + 1
        # The rest in units of 1/(bottom LIMB): entries t (LIMB - decay) top, each twice.
        rest = (fmpz(beyond) * top * left.denominator - fmpz(left.numerator) * bottom) * LIMB
        for r, t in enumerate(self.tail, len(self.weights) + passed * self.n):
            both = 2 * fmpz(t) * (LIMB - self.decay) * top * left.denominator
            if both >= rest:
                share = Fraction(int(rest * 2**PLACES // both), 2**PLACES)
                return self._placed(r, share)[0], self._placed(r, min(share + Fraction(1, 2**PLACES), Fraction(1)))[1]
            rest -= both
        raise AssertionError("the tail holds all that is left")

    def _placed(self, a: int, share: Fraction) -> tuple[Fraction, Fraction]:
        """Where a share of the cells at distance a is passed, from the inside."""
        if self.discrete:
            return Fraction(a), Fraction(a)
        place = a + self._middle + share - Fraction(1, 2) if a or self.bins else share / 2
        return place, place

    def _as_sent(self, value: arb, exponent: float) -> arb:
        """E |Z + D|^q from E |Z|^q, where |D| <= 2^-GRID (|Z| + 3 h): by Minkowski's inequality (q >= 1)."""
        q, share = enclosures.ball(exponent), enclosures.ball(Fraction(1, 2**GRID))
        move = 3 * enclosures.ball(self.step)
        norm = value ** (1 / q)
        low = (norm * (1 - share) - move * share).max(arb(0))
        return (low**q).union((norm * (1 + share) + move * share) ** q)

    def _moment(self, q: int) -> Fraction:
        """E|Z|^q for q = 1, 2, exactly."""
        # Integers: distances from 0 in cells, or in halves of cells.
        size, unit, b = len(self.weights), 1 + self.bins, self._b
        n = self.n * unit
        work.count(0.5 * size + 1.5 * len(self.tail))
        body = sum(w * (unit * a + self.bins) ** q for a, w in enumerate(self.weights))
        places = range(unit * size + self.bins, unit * (size + len(self.tail)) + self.bins, unit)
        mean = b * n / (1 - b)  # of n times the number of further periods
        ours, first = sum(self.tail), sum(r * t for r, t in zip(places, self.tail, strict=True))
        if q == 1:
            tail = first + mean * ours
        else:
            second = sum(r * r * t for r, t in zip(places, self.tail, strict=True))
            tail = second + 2 * mean * first + n * n * b * (1 + b) / (1 - b) ** 2 * ours
        cells = Fraction(2 * (body + tail)) / unit**q
        if not self.discrete:  # the spread within a cell
            cells += Fraction((not self.bins) * self.weights[0], 4) if q == 1 else Fraction(self.total - self.atom, 12)
        return Fraction(cells) * self.step**q / self.total

    def _sampled_value(self, law: Any) -> tuple[float, float]:
        if self.discrete:
            # The sum of the products is rounded once: a million terms, each rounded the same way, may be off by 1e-12 and more.
            value = math.fsum(self._twice * self.masses * law(np.arange(len(self.weights)) * 1.0))
            return value * (1 - 2.0**-50), value * (1 + 2.0**-50)
        ends, heights = self._law.pieces()
        low, high = law.integral_bracket(ends)
        below, above = (2 * float(heights @ part) for part in (low[1:] - high[:-1], high[1:] - low[:-1]))
        zero = float(law(0.0)) * self.atom_mass
        scale = float(law.integral(np.asarray(self.noise_radius()))) / float(self.step) * 1e-15
        return below * (1 - 1e-12) - scale + zero, above * (1 + 1e-12) + scale + zero

    def _integrated_value(self, law: Any, share: Fraction) -> arb:
        """For a loss known through its integral I, which is nondecreasing: E L(|Z + D|) for any |D| <= share (|Z| + 3 h)."""
        cost, loose = self._costs(law, share)
        total = self._in_pieces(law, share, cost) if law.polynomials else self._in_runs(law.exponent or 0.0, cost)
        return (total + loose * self.atom) / self.total

    def _costs(self, law: Any, share: Fraction) -> tuple[Callable[..., arb], arb]:
        """The means of L(|Z + D|) over the cells at distance a (on the line, if it is given, up to `end`, which is not among
        them), for any |D| <= share (|Z| + 3 h), and what the atom costs.
        """
        h, middle, integral = enclosures.ball(self.step), enclosures.ball(self._middle), law.integral_ball

        @cache
        def up_to(twice: int) -> tuple[arb, arb]:
            """The place `twice / 2` and the integral up to there: where one cell ends and the next begins."""
            place = (arb(twice) / 2 + middle) * h
            return place, integral(place)

        def mean(a: int, end: int | None = None) -> arb:
            """Of L over these cells, or the right half of that around 0, and over both moved inwards and outwards."""
            last = a if end is None else end - 1
            ends = (2 * a - 1 if a or self.bins else 0, 2 * last + 1)
            if not share:
                (low, below), (high, above) = map(up_to, ends)
                return (above - below) / (high - low)
            low, high = ((arb(twice) / 2 + middle) * h for twice in ends)
            move = (last + 4) * h * enclosures.ball(share)
            near, far = (high - move).max(arb(0)), (low - move).max(arb(0))
            inner, outer = integral(near) - integral(far), integral(high + move) - integral(low + move)
            return inner.union(outer) / (high - low)

        def at(a: int, _: int = 0) -> arb:
            """L(a h), and what a move outwards to 3 h share more may cost."""
            places = (a * self.step, (a + 3 * share) * self.step)
            if law.exponent is None:
                low, high = (enclosures.ball(law.exact(place)) for place in places)
            else:
                q = enclosures.ball(law.exponent)
                low, high = (enclosures.ball(place) ** q if place else arb(0) for place in places)
            return low.union(high)

        return at if self.discrete else mean, at(0) if self.atom else arb(0)

    def _in_runs(self, exponent: float, cost: Callable[..., arb]) -> arb:
        """The sum of weights times costs for a loss of at most |z|^exponent, of cells with the same weight together."""
        runs = _runs(self.weights, self.discrete)
        work.count(60.0 * len(runs))
        both = 1 + self.bins  # of a cell around 0 there is one
        total = sum((cost(a, end) * ((2 if a else both) * self.weights[a] * (end - a)) for a, end in runs), arb(0))
        if not self.tail:
            return total
        h, q, b = enclosures.ball(self.step), enclosures.ball(exponent), enclosures.ball(self._b)
        size, n, periods = len(self.weights), self.n, 8
        # Terms (K + kn + n)^q b^k fall at least by rho once k >= periods; extend until the rest is negligible.
        while True:
            edge = size + periods * n + n
            rho = b * (arb(edge + n) / edge) ** q
            if rho < (1 + b) / 2 and float((arb(edge) ** q * b**periods).upper()) < 1e-25:
                break
            periods *= 2
        runs = _runs(self.tail, self.discrete)
        work.count(60.0 * len(runs) * periods)
        for low, high in runs:
            costs = (b**k * cost(*(size + k * n + r for r in (low, high))) for k in range(periods))
            total += 2 * self.tail[low] * (high - low) * (1 - b) * sum(costs, arb(0))
        rest = 2 * sum(self.tail) * (1 - b) * b**periods * (h * (edge + 1)) ** q / (1 - rho)
        return total + rest * arb(0.5, 0.5)

    def _in_pieces(self, law: Any, share: Fraction, cost: Callable[[int], arb]) -> arb:
        """The same for a loss in polynomial pieces, for any |D| <= share (|Z| + 3 h).

        Where a cell, and what it may be moved by, lies within one piece, the mean of L over it is a polynomial in its number:
        such cells together ask for sums of powers of their numbers alone. Those around a break are taken one by one.
        """
        h, half, total, done = self.step, Fraction(0 if self.discrete else 1, 2), arb(0), 0
        breaks, rows = law.polynomials
        for row, start, end in zip(rows, breaks, (*breaks[1:], None), strict=True):
            # Cells first <= a < last, moved inwards or outwards, are within the piece; cell 0 may be two halves around 0.
            first = max(done, 1, math.floor((start / h - self._middle + half + 4 * share) / (1 - share)) + 1)
            last = None if end is None else math.ceil((end / h - self._middle - half - 4 * share) / (1 + share))
            short = last is not None and last <= first
            before = max(done, last or 0) if short else first
            far = min(before, done + FEW)
            total += sum((cost(a) * self._weight(a) for a in range(done, far)), arb(0))
            if far < before:  # so far out that a move crosses many cells: costs do not fall
                total += cost(far).union(cost(before - 1)) * self._sums(far, before, 1)[0]
            done = before
            if short:
                continue
            means = [self._mean(row, first, side * share) for side in ((-1, 1) if share else (0,))]
            sums = self._sums(first, last, len(means[0]))
            values = [sum((enclosures.ball(c) * s for c, s in zip(mean, sums, strict=True)), arb(0)) for mean in means]
            total += values[0].union(values[-1])
            done = last or 0
            if done >= len(self.weights) and not self.tail:
                break
        return total

    def _mean(self, row: Sequence[Fraction], first: int, share: Fraction) -> list[Fraction]:
        """Coefficients in v of the mean of a polynomial over cell first + v, moved outwards by share (first + v + 4) h."""
        h = self.step
        if self.discrete:
            return polynomial.moved(row, Fraction(first))
        start, rise = h * (first + self._middle - Fraction(1, 2) + (first + 4) * share), h * (1 + share)
        low, high = (polynomial.moved(polynomial.primitive(row), end) for end in (start, start + h))
        return [(upper - lower) / h * rise**k for k, (lower, upper) in enumerate(zip(low, high, strict=True))]

    def _weight(self, a: int) -> arb:
        """The weight of the cells at distance a."""
        if a < len(self.weights):
            return arb((2 if a or self.bins else 1) * self.weights[a])
        if not self.tail:
            return arb(0)
        period, r = divmod(a - len(self.weights), self.n)
        b = enclosures.ball(self._b)
        return 2 * (1 - b) * b**period * self.tail[r]

    def _sums(self, first: int, last: int | None, count: int) -> list[arb]:
        """Over the cells at distances first <= a < last (None: all beyond): weights times (a - first)^j, for j < `count`."""
        size = len(self.weights)
        terms = [2 * w for w in self.weights[first:last]]
        if terms and not first and not self.bins:
            terms[0] //= 2
        sums = _moments(terms, range(len(terms)), count)
        if self.tail and (last is None or last > size):
            sums = [s + t for s, t in zip(sums, self._tail_sums(max(first, size), first, count), strict=True)]
            if last is not None:
                sums = [s - t for s, t in zip(sums, self._tail_sums(last, first, count), strict=True)]
        return sums

    def _tail_sums(self, start: int, origin: int, count: int) -> list[arb]:
        """Over the cells of the tail at distances a >= start: weights times (a - origin)^j, for j < `count`."""
        n, b, size = self.n, enclosures.ball(self._b), len(self.weights)
        period, left_out = divmod(start - size, n)  # what is left out of its first period comes in the next
        later = [r < left_out for r in range(n)]
        terms = [t * (self.decay if out else LIMB) for t, out in zip(self.tail, later, strict=True)]
        places = [size + r + (period + out) * n - origin for r, out in enumerate(later)]
        moments = _moments(terms, places, count)
        series = [1 / (1 - b)]  # sum_k k^j b^k, by (k + 1)^j = sum_i comb(j, i) k^i
        for j in range(1, count):
            series.append(b / (1 - b) * sum((math.comb(j, i) * s for i, s in enumerate(series)), arb(0)))
        scale = 2 * (1 - b) * b**period / LIMB
        return [
            scale * sum((math.comb(j, i) * n**i * series[i] * moments[j - i] for i in range(j + 1)), arb(0))
            for j in range(count)
        ]

    @cached_property
    def _alias(self) -> Alias:
        both = [times * w for times, w in zip(self._twice.tolist(), self.weights, strict=True)]
        sizes = [self.atom, *both, *(2 * t for t in self.tail)]
        return Alias([sizes], self.total)

    @cached_property
    def _periods(self) -> Geometric:
        return Geometric(Fraction(self.decay, LIMB))

    def _places(self, size: int, rng: np.random.Generator) -> np.ndarray:
        """Draws of the noise in grid points (on the integers: as it is), exactly distributed."""
        distance = self._alias.draw(np.zeros(size, dtype=np.int64), rng)
        inside = distance > 0  # 0: the atom
        distance -= inside
        if self.tail:
            going = np.flatnonzero(distance >= len(self.weights))
            distance[going] += self._periods.draw(going.size, rng) * self.n
        left = rng.integers(0, 2, size=size)
        distance *= 1 - 2 * left
        if self.bins:
            distance -= left
        if not self.discrete:
            m = self._grid()[1]
            if distance.size and np.abs(distance).max() >= FAR:  # m is at most 2^41
                distance = distance.astype(object)
            within = rng.integers(0, m, size=size)
            within -= 0 if self.bins else m // 2
            distance *= m
            distance += within
            if self.atom:
                distance *= inside
        return distance

    def _grid(self) -> tuple[float, int]:
        """(spacing g = a power of two, grid points per cell m), m g >= step."""
        g = math.ldexp(1.0, math.frexp(float(self.step))[1] - 1 - GRID)
        share = self.step / Fraction(g)
        return g, -(-share.numerator // share.denominator)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        drawn = self._places(math.prod(shape), rng).reshape(shape) * (1.0 if self.discrete else self._grid()[0])
        return drawn.astype(float)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, rng, g = self.domain.check(x), as_rng(rng), 1.0 if self.discrete else self._grid()[0]
        return in_blocks(lambda part: added(part, self._places(part.size, rng), g), inputs)

    def to_dict(self) -> dict[str, Any]:
        """JSON form; weights are strings, which no reader of JSON rounds."""
        strings = {"weights": list(map(str, self.weights)), "tail": list(map(str, self.tail))}
        return super().to_dict() | strings | {"atom": str(self.atom), "decay": str(self.decay)}

    def __repr__(self) -> str:
        kind = "integer" if self.discrete else "piecewise-constant"
        reach = "unbounded" if self.tail else f"|z| <= {self.noise_radius():.6g}"
        atom = f", atom {below(self.atom_mass, 6)} at 0" if self.atom else ""
        losses = f"E|Z| = {self.noise_loss('abs'):.6g}, sd = {self.noise_loss('squared') ** 0.5:.6g}"
        return f"AdditiveMechanism, {kind} noise for sensitivity {self.sensitivity:g}: {reach}{atom}, {losses}"


def _moments(terms: list[int], places: Iterable[int], count: int) -> list[arb]:
    """The sums of terms times places^j, for j < `count`."""
    found, at, sums = np.array(terms, dtype=object), np.array(list(places), dtype=object), []
    work.count(len(terms) * count * (0.3 + 0.02 * count))
    for _ in range(count):
        sums.append(arb(int(found.sum())))
        found = found * at
    return sums


def _runs(weights: Sequence[int], single: bool) -> list[tuple[int, int]]:
    """(first, last + 1) of equal neighbours, the first of all apart; `single`: each for itself."""
    values = np.array(weights, dtype=object)
    new = np.ones(values.size, dtype=bool)
    if not single:
        new[2:] = values[2:] != values[1:-1]
    starts = np.flatnonzero(new).tolist()
    return list(pairwise([*starts, values.size]))


def largest_around(values: list[int], reach: int) -> list[int]:
    """max(values[i - reach], ..., values[i + reach]) for each i, as far as they exist; values >= 0. In linear time.

    >>> largest_around([3, 0, 1, 5, 2], 1)
    [3, 3, 5, 5, 5]
    """
    block = 2 * reach + 1
    padded = [0] * reach + values + [0] * (reach + -(len(values) + 2 * reach) % block)
    blocks = np.array(padded, dtype=object).reshape(-1, block)
    up = np.maximum.accumulate(blocks, axis=1).reshape(-1).tolist()
    down = np.maximum.accumulate(blocks[:, ::-1], axis=1)[:, ::-1].reshape(-1).tolist()
    return [max(down[i], up[i + block - 1]) for i in range(len(values))]

r"""Additive noise with a peak that may be far narrower than the sensitivity: nested steps on a lattice of big integers.

The noise is g J, g = 2^-`grid`, for an integer J with weights w(j) that do not grow with |j|. A period, the sensitivity rounded
up, has M points. With 0 <= e_1 < ... < e_K the `ends` of the peak's steps, w is `heights`[i] up to e_i, `plateau` = h for M
points further out on either side, h b for the next M, h b^2, and so on, b = `decay`/2^512.

**Privacy.** For a shift |s| <= M, w(j + s) >= w(|j| + M), which is h under the peak and b w(j) beyond it. So the noise P and its
shift are no easier to tell apart than P and the law with P's masses times h/w under the peak and times b beyond, the rest on an
outcome that P does not have: every test of the first has no more power than one of the second, whatever the ratio. That pair
has K + 2 outcomes and decides about all shifts.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np
from flint import arb, ctx
from numpy.typing import ArrayLike

from optdp.exact import OPTIONAL, Check, Log, Number, Seed, Within, as_rng, enclosures, require, show, work
from optdp.exact.pairs import Pair
from optdp.exact.sampling import BITS
from optdp.mechanisms.base import asked_for
from optdp.mechanisms.noise import ProvenNoise, StairNoise, Stairs
from optdp.problem import ApproxDP, Divergence, Line, LossLike, Privacy
from optdp.problem.privacy import Sensitivity

#: b is a multiple of 2^-FALL; integers in files have at most HUGE bits; steps of the peak; periods that are summed one by one.
FALL, HUGE, STEPS, PERIODS = 512, 2000, 2000, 64
#: The largest b.
FLATTEST = 0.01


@dataclass(frozen=True, repr=False)
class PeakNoise(StairNoise, ProvenNoise):
    """Noise with a narrow peak on a plateau, whose probabilities are exact rationals: see the module.

    **Arguments:** `domain`: a `Line`; `sensitivity`: how far apart neighbours are; `grid`, `ends`, `heights`, `plateau`, `decay`:
    see above; `notion`: what `guarantee()` states if the noise is proven to have it.

    Inputs are rounded down to the lattice, and a sum is turned into a float at the very end, which is post-processing;
    `enclose` counts the first. Outputs near inputs that are large beside the noise are these inputs, as floats.
    """

    exact = True
    domain: Line
    sensitivity: Sensitivity
    grid: Annotated[int, Within(-600, 1020)]
    ends: Annotated[tuple[int, ...], Within(0, 2**HUGE, 1, STEPS)]
    heights: Annotated[tuple[int, ...], Within(1, 2**HUGE, 1, STEPS)]
    plateau: Annotated[int, Within(1, 2**HUGE)]
    decay: Annotated[int, Within(1, 2**FALL)]
    notion: Privacy | None = field(default=None, metadata=OPTIONAL)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.ends) != len(self.heights):
            raise ValueError("ends and heights must have the same length")
        if any(a >= b for a, b in itertools.pairwise(self.ends)):
            raise ValueError("ends must be increasing")
        if any(a < b for a, b in itertools.pairwise((*self.heights, self.plateau))):
            raise ValueError("heights must be nonincreasing, down to the plateau")
        if Fraction(self.decay, 2**FALL) > Fraction(FLATTEST):
            raise ValueError(f"decay is not allowed: a period must hold at most {FLATTEST:g} of the one before")

    @property
    def step(self) -> Fraction:
        """g."""
        return Fraction(2) ** -self.grid

    @cached_property
    def period(self) -> int:
        """M."""
        return math.ceil(Fraction(self.sensitivity) / self.step)

    @cached_property
    def _weights(self) -> tuple[list[int], int]:
        """(weights of the peak's steps, that of all beyond), over one total."""
        work.count(2.0 * len(self.ends))
        counts = [2 * self.ends[0] + 1, *(2 * (b - a) for a, b in itertools.pairwise(self.ends))]
        steps = [n * w * (2**FALL - self.decay) for n, w in zip(counts, self.heights, strict=True)]
        return steps, 2 * self.period * self.plateau * 2**FALL

    @cached_property
    def total(self) -> int:
        """The common denominator of the masses."""
        steps, beyond = self._weights
        return sum(steps) + beyond

    @cached_property
    def pair(self) -> Pair:
        """Two laws that are no harder to tell apart than the noise and any shift of it by at most the sensitivity."""
        steps, beyond = self._weights
        scale = 2**FALL * math.lcm(*set(self.heights))
        work.count(len(steps) * work.product(work.words([scale]), work.words([self.total])))
        p = [w * scale for w in (*steps, beyond)]
        q = [w * scale // height * self.plateau for w, height in zip(steps, self.heights, strict=True)]
        q.append(beyond * (scale >> FALL) * self.decay)
        return Pair([*p, 0], [*q, self.total * scale - sum(q)], self.total * scale)

    # --- privacy

    def admitted(self, privacy: Privacy) -> bool | None:
        """True where the noise is proven to keep it; None where that is not known."""
        if getattr(privacy, "sensitivity", math.inf) > self.sensitivity:
            return None
        return True if privacy.admits(self.pair) else None

    def delta(self, eps: Number) -> float:
        """A delta for which the noise is (eps, delta)-private."""
        return min(
            1.0,
            enclosures.round_up(self.pair.hockey_stick(enclosures.exp_below(require.exact_epsilon(eps, zero=True)))),
        )

    def guarantee(self) -> Privacy | None:
        if self.notion is not None and self.satisfies(self.notion):
            return self.notion
        ratio = max(Fraction(self.heights[0], self.plateau), Fraction(2**FALL, self.decay))
        return ApproxDP(Log(ratio), 0.0, self.sensitivity) if float(Log(ratio)) <= require.MAX_EPS else None

    def satisfies(self, privacy: Privacy) -> bool | None:
        asked_for(privacy)
        return self.admitted(privacy) if isinstance(privacy, ApproxDP | Divergence) else None

    def privacy(self) -> float:
        """**Raises** ValueError: the noise keeps no eps that is worth a name."""
        raise ValueError(
            "privacy() is ambiguous here: this noise has a Renyi divergence; use guarantee() or satisfies(...)"
        )

    def check_privacy(self, privacy: Privacy) -> list[Check]:
        if not isinstance(privacy, ApproxDP | Divergence):
            return super().check_privacy(privacy)
        reach = privacy.sensitivity <= self.sensitivity
        kept = reach and self.admitted(privacy) is True
        told = (
            f"the noise beside every shift up to {show(privacy.sensitivity)} {'is' if kept else 'is not'} proven to be"
        )
        return [
            Check("privacy", kept, f"{told} {privacy.adjective} (exact rationals and balls, by the worst pair)"),
            Check(
                "sensitivity", reach,
                f"the guarantee is for neighbours up to {privacy.sensitivity:g} apart, the noise for {self.sensitivity:g}",
            ),
        ]  # fmt: skip

    # --- values

    def enclose_loss(self, loss: LossLike = "abs") -> tuple[float, float]:
        """(low, high) proven to contain E|Y - x|^q, q >= 1, the rounding of the input included."""
        law = self._loss(loss)
        if law.exponent is None or law.exponent < 1:
            raise TypeError(
                f"loss = {law.name!r} is not allowed: for this noise powers of degree at least 1 have a proven value"
            )
        with ctx.workprec(2 * enclosures.PRECISION):
            q, g = enclosures.ball(law.exponent), enclosures.ball(self.step)
            norm = self._moment(q) ** (1 / q) * g  # Minkowski: what is rounded off is below g
            low, high = (norm - g).max(arb(0)) ** q, (norm + g) ** q
            return max(0.0, enclosures.round_down(low)), enclosures.round_up(high)

    def _moment(self, q: arb) -> arb:
        """E|J|^q: a sum of j^q over a run lies between integrals."""
        b, m, edge = enclosures.ball(Fraction(self.decay, 2**FALL)), self.period, self.ends[-1]
        work.count(30.0 * (len(self.ends) + PERIODS))

        def run(first: int, last: int) -> arb:
            """sum over first < j <= last."""
            ends = [arb(x) ** (q + 1) if x else arb(0) for x in (first, last, first + 1, last + 1)]
            return (ends[1] - ends[0]).union(ends[3] - ends[2]) / (q + 1)

        starts = (0, *self.ends[:-1])
        peak = sum((run(a, e) * w for a, e, w in zip(starts, self.ends, self.heights, strict=True)), arb(0))
        tail = sum((b**k * run(edge + k * m, edge + (k + 1) * m) for k in range(PERIODS)), arb(0))
        # The terms that are left are below b^k (edge + (k+1) m + 1)^(q+1), which fall by b 2^(q+1) at least.
        rest = b**PERIODS * arb(edge + (PERIODS + 1) * m + 1) ** (q + 1)
        fall = b * 2 ** (q + 1)
        if not fall < 1:
            raise ValueError("the loss grows too fast for this noise")
        tail += rest / (1 - fall) * arb(0.5, 0.5)
        return 2 * (peak + tail * self.plateau) * (2**FALL - self.decay) / self.total

    def noise_loss(self, loss: LossLike = "abs") -> float:
        low, high = self.enclose_loss(loss)
        return (low + high) / 2

    @cached_property
    def _law(self) -> Stairs:
        steps, beyond = self._weights
        ends = [(Fraction(e) + Fraction(1, 2)) * self.step for e in (*self.ends, self.ends[-1] + self.period)]
        first = beyond * (2**FALL - self.decay) >> FALL  # of the first period
        masses = np.array([float(Fraction(w, self.total)) for w in (*steps, first)])
        places = np.array([0.0, *map(float, ends)])
        return Stairs(places, masses, start=float(places[-2]), fall=float(Fraction(self.decay, 2**FALL)))

    # --- sampling

    def _places(self, count: int, rng: np.random.Generator) -> list[int]:
        """Draws of J, exactly distributed."""
        steps, beyond = self._weights
        counts = [2 * self.ends[0] + 1, *(2 * (b - a) for a, b in itertools.pairwise(self.ends)), 2 * self.period]
        lowest, sums = (0, *self.ends), list(itertools.accumulate([*steps, beyond]))
        edges, out = np.array(sums, dtype=object), []
        for place in _below(self.total, count, rng):
            i = int(np.searchsorted(edges, place, side="right"))
            start = sums[i - 1] if i else 0
            point = (place - start) * counts[i] // (sums[i] - start)  # steps' weights are multiples of their counts
            if i == 0:
                out.append(point - self.ends[0])
                continue
            sign, distance = -1 if point & 1 else 1, (point >> 1) + lowest[i] + 1
            while i == len(steps) and _below(2**FALL, 1, rng)[0] < self.decay:
                distance += self.period
            out.append(sign * distance)
        return out

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        drawn = self._places(int(np.prod(shape, dtype=int)), rng)
        return np.array([float(j * self.step) for j in drawn]).reshape(shape)

    def randomize(self, x: ArrayLike, rng: Seed = None) -> np.ndarray:
        inputs, g = self.domain.check(x), self.step
        drawn = self._places(inputs.size, as_rng(rng))
        sums = [float((Fraction(float(v)) // g + j) * g) for v, j in zip(inputs.flat, drawn, strict=True)]
        return np.array(sums).reshape(inputs.shape)

    def to_dict(self) -> dict[str, Any]:
        """JSON form; big integers are strings, which no reader of JSON rounds."""
        lists = {"ends": list(map(str, self.ends)), "heights": list(map(str, self.heights))}
        return super().to_dict() | lists | {"plateau": str(self.plateau), "decay": str(self.decay)}

    def __repr__(self) -> str:
        width = float(self.ends[-1] * self.step)
        return self._shown(f"a peak on |z| <= {width:.6g} in {len(self.ends)} steps")


def _below(total: int, count: int, rng: np.random.Generator) -> list[int]:
    """Uniform integers below `total`."""
    bits = max((total - 1).bit_length(), 1)
    limbs, out = -(-bits // BITS), list[int]()
    while len(out) < count:
        parts = rng.integers(0, 1 << BITS, size=(count - len(out), limbs)).tolist()
        for row in parts:
            drawn = 0
            for limb in row:
                drawn = drawn << BITS | limb
            if (drawn := drawn >> (limbs * BITS - bits)) < total:
                out.append(drawn)
    return out

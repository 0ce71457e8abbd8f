"""Optimal additive noise: a density that is constant on cells of width sensitivity/n, or noise on the integers.

**Privacy at every shift.** Let p_i be the mass of cell i (centred at ih, h = Delta/n) and f the density. A shift by d = (k + u)h,
0 <= u < 1, matches a share 1 - u of every cell with the cell k places on and a share u with the cell k + 1 places on, so

    int (f(x) - R f(x + d))_+ dx  =  (1 - u) D_k(R) + u D_(k+1)(R),      D_k(R) = sum_i (p_i - R p_(i+k))_+,

a convex combination: the shifts k = 1..n (0 is harmless for R >= 1) decide about all of [0, Delta]. An atom at 0 meets no
atom under a shift, and adds its mass to the divergence at every d != 0. For noise on the integers the D_k are all there is.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from optdp.exact import enclosures, require
from optdp.exact.check import Check
from optdp.mechanisms.base import as_rng
from optdp.mechanisms.noise import AdditiveNoise
from optdp.problem.domains import AdditiveLine
from optdp.problem.losses import CustomLoss, Loss, Power
from optdp.problem.privacy import ApproxDP

#: Limbs of the sampler's integers, and the denominator of the tail's decay.
LIMB = 2**62
#: The sampler works on a grid of at least 2^GRID points per cell.
GRID = 40


@dataclass(frozen=True, repr=False)
class AdditiveMechanism(AdditiveNoise):
    """Noise with whole-number weights on cells of width sensitivity/n, an optional atom at 0 and an optional geometric tail.

    **Arguments:**

    - `domain`: an `AdditiveLine`: the sensitivity, and whether numbers are whole.
    - `n`: cells per sensitivity (on the integers: the sensitivity).
    - `weights`: whole numbers; `weights[a]` belongs to the cell centred at a h and, for a > 0, to the one at -a h as well.
    - `atom`: weight of the outcome Z = 0 exactly.
    - `tail`: () or n whole numbers: `tail[r]` is the total weight of the cells at distance K + r, K + r + n, K + r + 2n, ...
      (K = len(weights)), which share it in proportion 1 : b : b^2 : ..., b = `decay` / 2^62.

    Probabilities are these weights over their total, hence exact rationals, and they sum to exactly 1.

    **Exactness.** `randomize` draws the cell with an alias table of exact integers, the place within the cell as an integer
    on a grid (of spacing g = a power of two, at most h/2^40), rounds the input down to that grid and adds in integers; the
    sum is turned into a float at the very end, which is post-processing. Rounding up the cell to whole grid points only
    makes it wider (by a share of at most 2^-40), so that the promise covers at least the stated sensitivity. (Given ideal random
    integers: numpy's default generator is not cryptographic.)
    """

    domain: AdditiveLine
    n: int
    weights: tuple[int, ...]
    atom: int = 0
    tail: tuple[int, ...] = ()
    decay: int = 0

    def __post_init__(self) -> None:
        require.integer("n", self.n, low=1)
        if self.domain.discrete and self.n != self.domain.sensitivity:
            raise ValueError(f"n = {self.n} is not allowed: on the integers it must be the sensitivity")
        if self.domain.discrete and self.atom:
            raise ValueError("atom is not allowed on the integers: it belongs to weights[0]")
        for name, numbers in (("weights", self.weights), ("atom", (self.atom,)), ("tail", self.tail)):
            if any(not isinstance(w, int) or w < 0 for w in numbers):
                raise ValueError(f"{name} must be whole numbers >= 0")
        if len(self.tail) not in (0, self.n) or not 0 <= self.decay < LIMB or (self.tail and len(self.weights) < 1):
            raise ValueError(f"tail must have 0 or n = {self.n} entries, and decay must be a whole number in [0, 2^62)")
        if not 0 < self.total < LIMB * LIMB:
            raise ValueError("the weights must add up to a positive number below 2^124")

    @cached_property
    def total(self) -> int:
        """The sum of all weights: the common denominator of the probabilities."""
        return self.atom + sum(self.weights[:1]) + 2 * sum(self.weights[1:]) + 2 * sum(self.tail)

    @property
    def step(self) -> Fraction:
        """Width of a cell, exactly."""
        return Fraction(self.domain.sensitivity) / self.n

    @property
    def _b(self) -> Fraction:
        return Fraction(self.decay, LIMB)

    # --- privacy -----------------------------------------------------------------------------------------------

    def _line(self) -> tuple[np.ndarray, int]:
        """(whole numbers proportional to the masses at -a..a with tails cut off after two periods, unit of proportion)."""
        half = list(self.weights)
        unit = 1
        if self.tail:
            unit = LIMB**3
            b, d = self.decay, LIMB
            half = [w * unit for w in half]
            for k in range(3):
                half += [t * (d - b) * b**k * d ** (2 - k) for t in self.tail]
        up = np.array(half, dtype=object)
        return np.concatenate([up[:0:-1], up]), unit

    def hockey_stick(self, shift: Fraction | float, ratio: Fraction) -> Fraction:
        """The divergence int (f(x) - ratio f(x + shift))_+ dx, atom included, as an exact rational, for ratio >= 1.

        **Arguments:** `shift`: any real number (on the integers, a whole one) as a float or Fraction.
        """
        cells = abs(Fraction(shift)) / self.step
        k, u = divmod(cells, 1)
        if self.domain.discrete and u:
            raise ValueError(f"shift = {shift!r} is not allowed: on the integers shifts must be whole numbers")
        if cells == 0:
            return Fraction(0)
        near = (1 - u) * self._cell_divergence(int(k), ratio) if u != 1 else Fraction(0)
        far = u * self._cell_divergence(int(k) + 1, ratio) if u else Fraction(0)
        return near + far + Fraction(self.atom, self.total)

    def _cell_divergence(self, k: int, ratio: Fraction) -> Fraction:
        """D_k(ratio) without the atom, exactly."""
        if k == 0:
            return Fraction(0)  # ratio >= 1
        if self.tail and k > self.n:
            raise ValueError(
                f"shifts above the sensitivity {self.domain.sensitivity:g} are not supported for noise with a tail"
            )
        line, unit = self._line()
        top, bottom = ratio.numerator, ratio.denominator
        pad = np.zeros(k, dtype=object)
        left = np.concatenate([pad, line]) * bottom
        excess = left - np.concatenate([line, pad]) * top
        excess = np.where(excess > 0, excess, 0)
        if not self.tail:
            return Fraction(int(excess.sum()), unit * bottom * self.total)
        # Point j of the line is at distance (j - k) - reach; both tails repeat with period n and factor b: the last but one
        # whole period of each, [K + n, K + 2n) at distance from 0, stands for itself and all that follow.
        size, reach = len(self.weights), (line.size - 1) // 2
        middle = excess[k + reach - (size + self.n - 1) : k + reach + size].sum()
        right = excess[k + reach + size : k + reach + size + self.n].sum()
        left_part = excess[k + reach - (size + 2 * self.n - 1) : k + reach - (size + self.n - 1)].sum()
        scale = unit * bottom * self.total
        return Fraction(int(middle), scale) + Fraction(int(right + left_part), scale) / (1 - self._b)

    def exact_delta(self, ratio: Fraction) -> Fraction:
        """The largest divergence over all shifts up to the sensitivity for a rational likelihood ratio >= 1, exactly."""
        worst = max(self._cell_divergence(k, ratio) for k in range(1, self.n + 1))
        return worst + Fraction(self.atom, self.total)

    def delta(self, eps: float) -> float:
        """The smallest delta for which the noise is (eps, delta)-private, rounded up: exact hockey-stick divergences."""
        eps = require.epsilon(eps, zero=True)
        return min(1.0, enclosures.round_up(self.exact_delta(enclosures.exp_below(eps))))

    def privacy(self, delta: float = 0.0) -> float:
        """An eps, at most 1e-9 above the smallest, for which the noise is (eps, delta)-private; inf if there is none up to 30."""
        delta = require.real("delta", delta, low=0.0, high=1.0, open_high=True)
        low, high = 0.0, require.MAX_EPS
        if self.delta(0.0) <= delta:
            return 0.0
        if self.delta(high) > delta:
            return float("inf")
        while high - low > 1e-9:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high

    def check_privacy(self, privacy: ApproxDP) -> list[Check]:
        """Exact tests: masses are nonnegative and sum to 1, and no shift up to the sensitivity exceeds delta."""
        mass = Fraction(self.atom + sum(self.weights[:1]) + 2 * sum(self.weights[1:]) + 2 * sum(self.tail), self.total)
        reach = Check(
            "sensitivity",
            Fraction(privacy.sensitivity) <= Fraction(self.domain.sensitivity),
            f"the promise for shifts up to {privacy.sensitivity:g}, the noise for {self.domain.sensitivity:g}",
        )
        return [
            privacy.check(self.exact_delta(enclosures.exp_below(privacy.eps))),
            reach,
            Check("mass", mass == 1 and min(self.weights) >= 0, f"the masses add up to {mass} in exact rationals"),
        ]

    # --- the noise ---------------------------------------------------------------------------------------------

    @cached_property
    def masses(self) -> np.ndarray:
        """P(cell at distance a h on one side), a = 0, 1, ... without tail and atom, in floats."""
        return np.array([float(Fraction(w, self.total)) for w in self.weights])

    @cached_property
    def _tails(self) -> np.ndarray:
        return np.array([float(Fraction(t, self.total)) for t in self.tail])

    @property
    def atom_mass(self) -> float:
        """P(Z = 0) from the atom alone."""
        return float(Fraction(self.atom, self.total))

    def _mass_at(self, a: np.ndarray) -> np.ndarray:
        """Mass of the cell at distance a >= 0 (whole numbers)."""
        size = len(self.weights)
        out = np.where(a < size, self.masses[np.minimum(a, size - 1)], 0.0)
        if self.tail:
            far = a >= size
            k, r = np.divmod(np.where(far, a - size, 0), self.n)
            b = float(self._b)
            out = np.where(far, self._tails[r] * (1 - b) * b ** k.astype(float), out)
        return out

    def noise_radius(self) -> float:
        if self.tail:
            return np.inf
        half = Fraction(0) if self.domain.discrete else Fraction(1, 2)
        return enclosures.round_up((len(self.weights) - 1 + half) * self.step)

    def noise_density(self, z: Any) -> np.ndarray:
        if self.domain.discrete:
            return np.zeros(np.shape(z))
        h = float(self.step)
        return self._mass_at(np.floor(np.abs(np.asarray(z, dtype=float)) / h + 0.5).astype(np.int64)) / h

    def noise_probability(self, z: Any) -> np.ndarray:
        points = np.abs(np.asarray(z, dtype=float))
        if self.domain.discrete:
            return np.where(points == np.round(points), self._mass_at(np.round(points).astype(np.int64)), 0.0)
        return np.where(points == 0, self.atom_mass, 0.0)

    @cached_property
    def _cumulative(self) -> np.ndarray:
        """P(|cell index| <= a), without the atom, for a within `weights`."""
        return np.cumsum(np.concatenate([self.masses[:1], 2 * self.masses[1:]]))

    def _within(self, a: np.ndarray) -> np.ndarray:
        """P(|cell index| <= a) without the atom; a = -1 gives 0."""
        size = len(self.weights)
        out = np.where(a < 0, 0.0, self._cumulative[np.clip(a, 0, size - 1)])
        if self.tail:
            k, r = np.divmod(np.maximum(a - size, 0) + 1, self.n)  # k whole periods and r entries of the next
            b = float(self._b)
            sums = np.concatenate([[0.0], np.cumsum(self._tails)])
            more = 2 * (sums[-1] * (1 - b ** k.astype(float)) + (1 - b) * b ** k.astype(float) * sums[r])
            out = np.where(a >= size, out + more, out)
        return out

    def cdf(self, z: Any) -> np.ndarray:
        points = np.asarray(z, dtype=float)
        distance, h = np.abs(points), float(self.step)
        if self.domain.discrete:
            a = np.floor(distance).astype(np.int64)
            whole = distance == a
            inside = self._within(np.where((points < 0) & whole, a - 1, a))
        else:
            a = np.floor(distance / h + 0.5).astype(np.int64)
            share = distance / h + 0.5 - a
            centre = np.where(a == 0, 2 * distance / h, share)  # the central cell is one, not two
            inside = self._within(a - 1) * (a > 0) + np.where(a == 0, 1.0, 2.0) * self._mass_at(a) * centre
            inside = inside + self.atom_mass
        return np.where(points >= 0, (1 + inside) / 2, (1 - inside) / 2)

    def quantile(self, level: Any) -> np.ndarray:
        levels = np.asarray(level, dtype=float)
        if not ((levels > 0) & (levels < 1)).all():
            raise ValueError(f"level = {level!r} is not allowed: levels must lie strictly between 0 and 1")
        inside = np.abs(2 * levels - 1)  # P(|Z| <= radius)
        ends = self._cumulative + self.atom_mass
        size = len(self.weights)
        a = np.searchsorted(ends, inside, side="left")
        if self.tail:
            # Beyond the weights: find the cell by its cumulative mass, period by period.
            b = float(self._b)
            rest = np.maximum((1 - inside) / (2 * float(self._tails.sum())), 1e-300)
            k = np.where(a >= size, np.floor(np.log(np.minimum(rest, 1.0)) / np.log(b)), 0).astype(np.int64)
            guess = size + np.maximum(k - 1, 0) * self.n
            offsets = np.arange(3 * self.n)
            table = self._within(guess[..., None] + offsets) + self.atom_mass
            a = np.where(a >= size, guess + (table < inside[..., None]).sum(axis=-1), a)
        else:
            a = np.minimum(a, size - 1)
        h = float(self.step)
        if self.domain.discrete:
            return np.where(levels > 0.5, a, -a) * 1.0 + 0.0
        before = self._within(a - 1) * (a > 0) + self.atom_mass
        mass = self._mass_at(a)
        share = np.clip((inside - before) / np.where(mass > 0, mass, 1.0) / np.where(a == 0, 1.0, 2.0), 0.0, 1.0)
        radius = np.where(a == 0, share / 2, a - 0.5 + share) * h
        return np.where(levels >= 0.5, radius, -radius) + 0.0

    def _cell_losses(self, cells: np.ndarray, law: Loss) -> np.ndarray:
        """Mean of L over the cells at these distances."""
        h = float(self.step)
        if self.domain.discrete:
            return np.asarray(law(cells * 1.0), dtype=float)
        upper = law.integral((cells + 0.5) * h)
        lower = np.where(cells > 0, law.integral(np.maximum(cells - 0.5, 0.0) * h), -law.integral(0.5 * h))
        return (upper - lower) / h

    def noise_loss(self, loss: Any = "abs") -> float:
        low, high = self.enclose_value(loss)
        return (low + high) / 2

    def enclose_value(self, loss: Any = "abs") -> tuple[float, float]:
        """(low, high) proven to contain the expected loss: exact rationals for |z| and z^2, ball arithmetic for other powers."""
        law = self._loss(loss)
        if isinstance(law, CustomLoss):
            return self._sampled_value(law)
        if law.exponent in (1, 2):
            exact = self._moment(int(law.exponent))
            return enclosures.round_down(exact), enclosures.round_up(exact)
        return self._power_value(law)

    def _moment(self, q: int) -> Fraction:
        """E|Z|^q for q = 1, 2, exactly."""
        n, b = self.n, self._b
        body = sum(w * a**q for a, w in enumerate(self.weights))
        tail = Fraction(0)
        for r, t in enumerate(self.tail, len(self.weights)):
            mean = b * n / (1 - b)  # of n times the number of further periods
            tail += t * (r + mean if q == 1 else r * r + 2 * r * mean + n * n * b * (1 + b) / (1 - b) ** 2)
        cells = 2 * (body + tail)
        if not self.domain.discrete:  # the spread within a cell
            central = Fraction(self.weights[0])
            cells += central / 4 if q == 1 else Fraction(self.total - self.atom, 12)
        return Fraction(cells) * self.step**q / self.total

    def _power_value(self, law: Power) -> tuple[float, float]:
        from flint import arb, ctx

        with ctx.workprec(enclosures.PRECISION):
            q, n, size = enclosures.ball(law.exponent), self.n, len(self.weights)

            def cost(a: int) -> arb:  # in units of the step
                if self.domain.discrete:
                    return arb(a) ** q if a else arb(0)
                half = arb(1) / 2
                return (a + half) ** (q + 1) / (q + 1) - (
                    (a - half) ** (q + 1) / (q + 1) if a else -(half ** (q + 1)) / (q + 1)
                )

            total = sum((cost(a) * w * (2 if a else 1) for a, w in enumerate(self.weights)), arb(0))
            if self.tail:
                b, periods = enclosures.ball(self._b), 8
                # Terms (K + kn + n)^q b^k fall at least by rho once k >= periods; extend until the rest is negligible.
                while True:
                    edge = size + periods * n + n
                    rho = b * (arb(edge + n) / edge) ** q
                    if rho < (1 + b) / 2 and float((arb(edge) ** q * b**periods).upper()) < 1e-25:
                        break
                    periods *= 2
                for r, t in enumerate(self.tail, size):
                    total += 2 * t * (1 - b) * sum((b**k * cost(r + k * n) for k in range(periods)), arb(0))
                rest = 2 * sum(self.tail) * (1 - b) * b**periods * arb(edge + 1) ** q / (1 - rho)
                total += rest * arb(0.5, 0.5)
            value = total * enclosures.ball(self.step) ** q / self.total
            return max(0.0, enclosures.round_down(value)), enclosures.round_up(value)

    def _sampled_value(self, law: CustomLoss) -> tuple[float, float]:
        cells = np.arange(len(self.weights))
        mass = np.concatenate([self.masses[:1], 2 * self.masses[1:]])
        if self.domain.discrete:
            value = float(mass @ law(cells * 1.0))
            return value * (1 - 1e-12), value * (1 + 1e-12)
        h = float(self.step)
        low_up, high_up = law.integral_bracket((cells + 0.5) * h)
        low_down, high_down = law.integral_bracket(np.maximum(cells - 0.5, 0.0) * h)
        low, high = (low_up - high_down) / h, (high_up - low_down) / h
        low[0], high[0] = low_up[0] * 2 / h, high_up[0] * 2 / h
        zero = float(law(0.0)) * self.atom_mass
        scale = float(law.integral(np.asarray(self.noise_radius()))) / h * 1e-15
        return float(mass @ low) * (1 - 1e-12) - scale + zero, float(mass @ high) * (1 + 1e-12) + scale + zero

    # --- sampling ----------------------------------------------------------------------------------------------

    @cached_property
    def _alias(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Walker's table over (atom, weights, tail), in exact integers: (other entry, cut in two limbs)."""
        sizes = [self.atom, *self.weights[:1], *(2 * w for w in self.weights[1:]), *(2 * t for t in self.tail)]
        count, total = len(sizes), self.total
        scaled = [w * count for w in sizes]
        other = list(range(count))
        cut = [total] * count
        small = [i for i, w in enumerate(scaled) if w < total]
        large = [i for i, w in enumerate(scaled) if w >= total]
        while small:
            s, g = small.pop(), large[-1]
            cut[s], other[s] = scaled[s], g
            scaled[g] -= total - scaled[s]
            if scaled[g] < total:
                small.append(large.pop())
        high = np.array([c // LIMB for c in cut], dtype=np.int64)
        low = np.array([c % LIMB for c in cut], dtype=np.int64)
        return np.array(other, dtype=np.int64), high, low

    def _below_total(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Uniform whole numbers below `total`, in two limbs."""
        top, bottom = divmod(self.total, LIMB)
        high = rng.integers(0, top + 1, size=count)
        low = rng.integers(0, LIMB, size=count)
        while (bad := (high == top) & (low >= bottom)).any():
            high[bad] = rng.integers(0, top + 1, size=int(bad.sum()))
            low[bad] = rng.integers(0, LIMB, size=int(bad.sum()))
        return high, low

    def _draw(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """(signed cell index, whether the atom was drawn), exactly distributed."""
        other, cut_high, cut_low = self._alias
        column = rng.integers(0, other.size, size=count)
        high, low = self._below_total(count, rng)
        stay = (high < cut_high[column]) | ((high == cut_high[column]) & (low < cut_low[column]))
        entry = np.where(stay, column, other[column])
        distance = entry - 1
        if self.tail:
            going = np.flatnonzero(distance >= len(self.weights))
            while going.size:
                going = going[rng.integers(0, LIMB, size=going.size) < self.decay]
                distance[going] += self.n
        sign = np.where(rng.integers(0, 2, size=count) == 1, 1, -1)
        return np.where(entry == 0, 0, distance * sign), entry == 0

    def _grid(self) -> tuple[float, int]:
        """(spacing g = a power of two, grid points per cell m), m g >= step."""
        g = 2.0 ** (int(np.floor(np.log2(float(self.step)))) - GRID)
        share = self.step / Fraction(g)
        return g, -(-share.numerator // share.denominator)

    def _places(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draws of the noise in whole grid points (on the integers: as it is)."""
        cells, atom = self._draw(int(np.prod(shape, dtype=int)), rng)
        if not self.domain.discrete:
            m = self._grid()[1]
            cells = cells * m + np.where(atom, 0, rng.integers(0, m, size=cells.size) - m // 2)
        return cells.reshape(shape)

    def sample(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        return self._places(shape, rng) * (1.0 if self.domain.discrete else self._grid()[0])

    def randomize(self, x: Any, rng: Any = None) -> np.ndarray:
        inputs = self.domain.check(x)
        places = self._places(inputs.shape, as_rng(rng))
        g = 1.0 if self.domain.discrete else self._grid()[0]
        with np.errstate(over="ignore"):
            scaled = np.floor(inputs / g)  # exact: g is a power of two
        if (np.abs(scaled) < 2.0**62).all():
            return (scaled.astype(np.int64) + places) * g
        exact = [
            float((Fraction(x) // Fraction(g) + int(z)) * Fraction(g))
            for x, z in zip(inputs.flat, places.flat, strict=True)
        ]
        return np.array(exact).reshape(inputs.shape)

    def to_dict(self) -> dict[str, Any]:
        return {
            "mechanism": "AdditiveMechanism",
            "domain": self.domain.to_dict(),
            "n": self.n,
            "weights": [str(w) for w in self.weights],
            "atom": str(self.atom),
            "tail": [str(t) for t in self.tail],
            "decay": str(self.decay),
        }

    @classmethod
    def _from_dict(cls, data: dict[str, Any]) -> AdditiveMechanism:
        line = AdditiveLine(data["domain"]["sensitivity"], data["domain"]["discrete"])
        weights, tail = tuple(map(int, data["weights"])), tuple(map(int, data["tail"]))
        return cls(line, data["n"], weights, int(data["atom"]), tail, int(data["decay"]))

    def __repr__(self) -> str:
        kind = "whole-number" if self.domain.discrete else "piecewise-constant"
        reach = "unbounded" if self.tail else f"|z| <= {self.noise_radius():.6g}"
        atom = f", atom {self.atom_mass:.6g} at 0" if self.atom else ""
        return (
            f"AdditiveMechanism, {kind} noise for sensitivity {self.domain.sensitivity:g}: {reach}{atom}, "
            f"E|Z| = {self.noise_loss('abs'):.6g}, sd = {self.noise_loss('squared') ** 0.5:.6g}"
        )

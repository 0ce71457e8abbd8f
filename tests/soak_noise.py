"""The guarantee of additive noise at random eps and shifts, from its saved form alone, in integers and balls.

    python -m tests.soak_noise --count 1000

No line is shared with the library's accounting: masses come from the file, a shift by any real number is taken by
intersecting cells, and the sums are compared with the definitions: hockey-stick divergences at random eps for (eps,
delta), profiles and Gaussian DP, relative entropies and moments for KL and Renyi DP.
"""

from __future__ import annotations

import argparse
import bisect
import math
import time
from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
from flint import arb, ctx, fmpq

import optdp

#: Random shifts are multiples of a cell's width over PARTS; checks of one solution.
PARTS, EACH = 2**20, 25
BITS = 200


def ball(x):
    """An exact number as a ball."""
    if isinstance(x, str):
        x = Fraction(x)
    exact = Fraction(x)
    return arb(fmpq(exact.numerator, exact.denominator))


def line(noise):
    """(integers proportional to the masses of the cells -m..m, atom, their total, the mass beyond them over the total)."""
    weights, tail = [int(w) for w in noise["weights"]], [int(w) for w in noise.get("tail", ())]
    atom, decay, one = int(noise.get("atom", 0)), int(noise.get("decay", 0)), 2**62
    if not tail:
        return weights[:0:-1] + weights, atom, atom + weights[0] + 2 * sum(weights[1:]), 0.0
    periods = min(max(3, math.ceil(400 / math.log2(one / max(decay, 1)))), 400)
    scale = one ** (periods + 1)
    side = [w * scale for w in weights]
    for k in range(periods):
        side += [t * (one - decay) * decay**k * one ** (periods - k) for t in tail]
    total = atom + weights[0] + 2 * sum(weights[1:]) + 2 * sum(tail)
    beyond = 2 * sum(tail) / total * (decay / one) ** periods
    return side[:0:-1] + side, atom * scale, total * scale, beyond


def overlaps(noise, masses, steps):
    """(mass p, mass q) of the pieces on which the density and its shift by `steps`/PARTS cells are both constant, times PARTS."""
    whole, part = divmod(steps, PARTS)
    m = len(masses)
    for i in range(-whole - 1, m):
        here = masses[i] if 0 <= i < m else 0
        for j, share in ((i + whole, PARTS - part), (i + whole + 1, part)):
            there = masses[j] if 0 <= j < m else 0
            if share and (here or there):
                yield here * share, there * share


def stairs(noise, shift):
    """The same for staircase noise and a shift by so many points of its lattice: runs of points with one weight, b^k."""
    b, first, cut, period = Fraction(int(noise["decay"]), 2**80), int(noise["first"]), int(noise["cut"]), points(noise)
    last = (cut // period if cut else math.ceil(250 / -math.log2(b))) + 2
    ends = [first + k * period for k in range(last)]
    if cut:
        ends = [e for e in ends if e <= cut] + [cut + 1]
    heights = [b**k for k in range(len(ends))]
    # From starts[i] on the weight is weights[i]; beyond the outermost runs it is 0.
    starts = [-e + 1 for e in ends[::-1]] + ends
    weights = [*heights[::-1], *heights[1:], Fraction(0)]
    total = sum(w * (high - low) for w, low, high in zip(weights, starts, starts[1:], strict=False))

    def weight(j):
        return Fraction(0) if j < starts[0] else weights[bisect.bisect_right(starts, j) - 1]

    cuts = sorted({*starts, *(start - shift for start in starts)})
    share = Fraction(int(noise["atom"]), 2**62)
    both = [
        ((1 - share) * weight(low) * (high - low) / total, (1 - share) * weight(low + shift) * (high - low) / total)
        for low, high in pairwise(cuts)
    ]
    with ctx.workprec(BITS):
        balls = [(ball(p), ball(q)) for p, q in [*both, (share, 0), (0, share)]]
    return balls, 1, 0.0 if cut else 2.0**-240


def points(noise):
    """Points of a staircase's lattice in a sensitivity, rounded up: 2^40 to 2^41, as its step is a power of two."""
    width = Fraction(float(noise["sensitivity"]))
    return next(n for e in range(-1100, 1100) if 2**40 <= (n := math.ceil(width * Fraction(2) ** e)) <= 2**41)


def pieces(noise, steps):
    """(list of (p, q) for the noise and its shift, their total, the mass left out)."""
    if "decay" in noise and "first" in noise:
        return stairs(noise, steps)
    masses, atom, total, beyond = line(noise)
    both = list(overlaps(noise, masses, steps)) + ([(atom * PARTS, 0), (0, atom * PARTS)] if atom and steps else [])
    return both, total * PARTS, beyond


def hockey_stick(noise, steps, eps):
    """An enclosure's upper end of sum (P - e^eps Q)_+."""
    both, total, beyond = pieces(noise, steps)
    with ctx.workprec(BITS):
        growth = ball(eps).exp()
        found = sum((excess for p, q in both if not (excess := arb(p) - growth * q) < 0), arb(0)) / total
        return found + beyond


def divergence(noise, steps, alpha):
    """The KL divergence (alpha None), or the logarithm of the moment of order alpha, of the noise from its shift."""
    both, total, beyond = pieces(noise, steps)
    both = [(p, q) for p, q in both if p and q]  # what the cut-off left without a partner is in `beyond`
    assert beyond < 1e-60
    with ctx.workprec(BITS):
        logs = [(arb(p), (arb(p) / q).log()) for p, q in both]
        if alpha is None:
            return sum((p * x for p, x in logs), arb(0)) / total
        order = ball(alpha) - 1
        return (sum((p * (x * order).exp() for p, x in logs), arb(0)) / total).log()


def gauss_delta(mu, eps):
    """delta of mu-GDP at eps."""
    with ctx.workprec(3 * BITS):
        m, e, root = ball(mu), ball(eps), arb(2).sqrt()
        return ((e / m - m / 2) / root).erfc() / 2 - e.exp() * ((e / m + m / 2) / root).erfc() / 2


def kept(notion, noise, steps, eps):
    """Whether the noise keeps the notion at this shift (at this eps, for Gaussian DP), proven."""
    if isinstance(notion, optdp.GDP):
        return bool(hockey_stick(noise, steps, eps) <= gauss_delta(notion.mu, eps))
    if isinstance(notion, optdp.ApproxDP | optdp.Profile):
        pairs = notion.pairs if isinstance(notion, optdp.Profile) else [(notion.eps, notion.delta)]
        return all(bool(hockey_stick(noise, steps, e) <= ball(d) + arb(1e-60)) for e, d in pairs)
    with ctx.workprec(BITS):
        if isinstance(notion, optdp.KL):
            return bool(divergence(noise, steps, None) <= ball(notion.bound))
        return bool(divergence(noise, steps, notion.alpha) <= (ball(notion.alpha) - 1) * ball(notion.bound))


def random_notion(rng):
    """A notion with parameters that are not round."""
    eps, delta = float(rng.uniform(0.2, 3)), float(10 ** rng.uniform(-5, -0.7))
    kind = int(rng.integers(5))
    if kind == 0:
        return optdp.GDP(float(rng.uniform(0.3, 3.0)))
    if kind == 1:
        return optdp.Profile([(eps, delta), (2 * eps, delta / 7), (eps / 3, min(0.5, 3 * delta))])
    if kind == 2:
        return optdp.KL(float(rng.uniform(0.1, 2.0)))
    if kind == 3:
        return optdp.RDP(float(rng.uniform(1.2, 20)), float(rng.uniform(0.2, 3)))
    return optdp.ApproxDP(eps, delta)


def solved(number):
    """A random problem's solution."""
    rng = np.random.default_rng([7, number])
    notion, loss = random_notion(rng), str(rng.choice(["abs", "squared"]))
    problem = optdp.Problem(notion, optdp.Line(), optdp.WorstCase(loss), optdp.Additive())
    if rng.random() < 0.2:
        wide = type(notion).from_dict(notion.to_dict() | {"sensitivity": float(rng.integers(1, 5))})
        problem = optdp.Problem(wide, optdp.Integers(), optdp.WorstCase(loss), optdp.Additive())
    return optdp.solve(problem, rtol=0.05)


def gaussian_excess(noise, share, eps):
    """The largest P(K >= k - m) - e^eps P(K >= k) of a Gaussian rounded to its lattice, for a shift by m steps: at half-lines
    next to where the likelihood ratio of the Gaussian is e^eps; the law of K is log-concave."""
    width, mu = Fraction(float(noise["sensitivity"])), Fraction(noise["mu"])
    step = next(2 ** Fraction(e) for e in range(-1100, 1100) if 2**49 <= width / mu / 2 ** Fraction(e) < 2**50)
    apart = math.ceil(width / step)
    m = max(round(share * apart), 1)
    with ctx.workprec(3 * BITS):
        s = ball(Fraction(apart) / mu)

        def beyond(k):
            """P(K >= k) = s int_((k-1)/s)^(k/s) Q."""
            ends = []
            for z in (ball(k - 1) / s, ball(k) / s):
                ends.append((-(z**2) / 2).exp() / (2 * arb.pi()).sqrt() - z * (z / arb(2).sqrt()).erfc() / 2)
            return s * (ends[0] - ends[1])

        best = round(Fraction(eps) * (Fraction(apart) / mu) ** 2 / m) + m // 2
        around = (best + j for j in (-(2**44), -2, -1, 0, 1, 2, 2**44))
        return max((beyond(k - m) - ball(eps).exp() * beyond(k) for k in around), key=lambda x: float(x.mid()))


def judged(solution, rng):
    """Whether the returned noise keeps its promise at a random eps and shift; with what was asked."""
    noise, problem = solution.mechanism.to_dict(), solution.problem
    if noise["mechanism"] == "LatticeGaussian":
        share, eps = float(rng.uniform()) if rng.random() < 0.8 else 1.0, float(rng.uniform(0, 4 * problem.privacy.mu))
        with ctx.workprec(3 * BITS):
            most, mu = gauss_delta(problem.privacy.mu, eps), Fraction(noise["mu"])
            good = mu == Fraction(problem.privacy.mu) and bool(gaussian_excess(noise, share, eps) <= most)
        return good, f"{problem.statement()}: a share {share} of the sensitivity, eps = {eps}"
    if "first" in noise:
        steps, eps = int(rng.integers(1, points(noise) + 1)), 0.0
        return kept(
            problem.privacy, noise, steps, eps
        ), f"{problem.statement()}: shift {steps} of {points(noise)} points"
    n, whole = int(noise["n"]), isinstance(problem.domain, optdp.Integers)
    steps = int(rng.integers(1, n + 1)) * PARTS if whole or rng.random() < 0.2 else int(rng.integers(1, n * PARTS + 1))
    eps = float(rng.uniform(0, 4 * float(getattr(problem.privacy, "mu", 1.0))))
    return kept(
        problem.privacy, noise, steps, eps
    ), f"{problem.statement()}: shift {steps / PARTS} of {n} cells, eps = {eps}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    args = parser.parse_args()
    seen, began = Counter(), time.perf_counter()
    for number in range(-(-args.count // EACH)):
        solution, rng = solved(number), np.random.default_rng([8, number])
        for _ in range(EACH):
            good, told = judged(solution, rng)
            seen[type(solution.problem.privacy).__name__, "kept" if good else "BROKEN"] += 1
            if not good:
                print(told, flush=True)
    print(f"{sum(seen.values())} checks in {time.perf_counter() - began:.0f} s: {dict(seen)}")
    raise SystemExit(any(verdict == "BROKEN" for _, verdict in seen))


if __name__ == "__main__":
    main()

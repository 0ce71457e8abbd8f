"""Additive noise under Gaussian DP, KL, Renyi DP, profiles and for many releases: gap, time, and the value over the
Gaussian's.

    python benchmarks/notions.py                  # every table
    python benchmarks/notions.py gdp kl --rtol 2e-3

CPU seconds (process time) of one call of `optdp.solve_additive`; `verified`: `solution.verify()`; `/Gaussian`: the
value over the loss of the Gaussian that spends the same budget (for pairs and releases: the least of the Gaussians
that keep the budget). The promise of Gaussian DP is checked at 1,000 random eps and shifts by another route as well.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from flint import arb, ctx
from scipy.special import ndtr

import optdp
from optdp.mechanisms.accounting import composed_delta, gaussian_budget
from optdp.mechanisms.baselines.noise import Gaussian
from optdp.mechanisms.gaussian import LatticeGaussian
from optdp.report.report import Column, Report

MU = (0.25, 0.5, 1.0, 2.0, 3.0, 5.0)
VARIANCES = (0.25, 1.0, 4.0)
ORDERS = (2, 4, 16, 64)
LOSSES = ("abs", "squared")
PROFILES = (
    ((1.0, 0.01),), ((0.5, 0.1), (1.0, 0.05), (2.0, 0.001)), ((0.1, 0.01), (1.0, 1e-4), (3.0, 1e-8)), ((0.5, 0.1), (2.0, 0.0)),
)  # fmt: skip
RELEASES = (1, 10, 100)
TOTAL = (1.0, 1e-6)
#: Default tolerances of the tables.
RTOL = {"gdp": 1e-2, "gdp-closer": 2e-3, "kl": 5e-3, "rdp": 5e-3, "profiles": 1e-2, "releases": 1e-2}


def gaussian(loss: str, deviation: float) -> float:
    """The Gaussian's loss."""
    return deviation**2 if loss == "squared" else math.sqrt(2 / math.pi) * deviation


def checked(solution: Any) -> bool | str:
    """Whether it verifies within the usual limit of work."""
    try:
        return bool(solution.verify())
    except RuntimeError as error:
        return str(error)[:60]


def row(name: str, notion: str, loss: str, least: float, call: Callable[[], Any]) -> dict[str, Any]:
    """One line of a table, printed as soon as it is there."""
    began = time.process_time()
    found: dict[str, Any] = {"table": name, "notion": notion, "loss": loss}
    try:
        solution = call()
    except ValueError as error:
        found |= {"gap": None, "verified": None, "refused": str(error)}
    else:
        found["seconds"] = time.process_time() - began
        found |= {"lower": solution.lower_bound, "value": solution.value, "gap": float(solution.gap),
                  "verified": checked(solution), "over": solution.value / least}  # fmt: skip
        found["solution"] = solution
    print({k: v for k, v in found.items() if k not in ("table", "solution")}, flush=True)
    return found


def spent(noise: Any, mu: float, count: int = 1000) -> float:
    """The largest share of delta(eps) that random eps and shifts take, by quadrature between all ends of cells."""
    if isinstance(noise, LatticeGaussian):
        return spent_as_sent(noise, mu, count)
    rng, b = np.random.default_rng(0), noise.decay / 2**62
    tail = np.array([float(Fraction(t, noise.total)) for t in noise.tail]) * (1 - b)
    p = np.concatenate([noise.masses, tail, b * tail, b**2 * tail, np.zeros(noise.n)])
    density = np.concatenate([p[:0:-1], p]) * noise.n
    jumps = np.flatnonzero(np.diff(density, prepend=0.0, append=0.0))
    edges, values = (jumps - p.size + 0.5) / noise.n, density[jumps[:-1]]
    most = 0.0
    for eps, shift in zip(rng.uniform(0, mu**2 / 2 + 2 * mu, count), rng.uniform(0, 1, count), strict=True):
        at = np.sort(np.concatenate([edges, edges - shift]))
        middle = (at[1:] + at[:-1]) / 2
        i, j = (np.searchsorted(edges, x) - 1 for x in (middle, middle + shift))
        f, g = (np.where((k >= 0) & (k < values.size), values[np.clip(k, 0, values.size - 1)], 0.0) for k in (i, j))
        delta = float(np.diff(at) @ np.maximum(f - math.exp(eps) * g, 0.0))
        most = max(most, (delta - 1e-11) / float(ndtr(mu / 2 - eps / mu) - math.exp(eps) * ndtr(-mu / 2 - eps / mu)))
    return most


def spent_as_sent(noise: LatticeGaussian, mu: float, count: int) -> float:
    """The same of the Gaussian on its lattice, in balls: of the law of K itself, at half-lines {K >= k} around the best one.

    With I(z) = int_z^oo Q the chance of K >= k, the mean of N/g - k + 1 cut off at 0 and 1, is s (I((k - 1)/s) - I(k/s)). The law
    is log-concave, so that half-lines are the best tests.
    """
    rng, most = np.random.default_rng(0), 0.0
    with ctx.workprec(400):
        apart, m = math.ceil(noise.sensitivity / noise.step), arb(mu)
        s = apart / m

        def tail(z: arb) -> arb:
            return (z / arb(2).sqrt()).erfc() / 2

        def beyond(k: int) -> arb:
            ends = [(-(z**2) / 2).exp() / (2 * arb.pi()).sqrt() - z * tail(z) for z in ((k - 1) / s, k / s)]
            return s * (ends[0] - ends[1])

        for eps, share in zip(rng.uniform(0, mu**2 / 2 + 2 * mu, count), rng.uniform(0, 1, count), strict=True):
            shift, e = max(round(share * apart), 1), arb(float(eps))
            best = round(float(e * s * s / shift)) + shift // 2
            found = max(
                float((beyond(best + j - shift) - e.exp() * beyond(best + j)).upper())
                for j in (-(2**40), -1, 0, 1, 2**40)
            )
            allowed = tail(e / m - m / 2) - e.exp() * tail(e / m + m / 2)
            most = max(most, found / float(allowed.lower()))
    return most


def gdp(rtol: float, limit: float) -> Iterator[dict[str, Any]]:
    """mu-GDP."""
    for mu in MU:
        for loss in LOSSES:
            solve = lambda m=mu, q=loss: optdp.solve_additive(optdp.GDP(m), loss=q, rtol=rtol, time_limit=limit)  # noqa: E731
            found = row("gdp", f"mu = {mu:g}", loss, gaussian(loss, 1 / mu), solve)
            if "solution" in found:
                most = spent(found["solution"].mechanism, mu)
                assert most <= 1 + 1e-6, f"mu = {mu:g} at {loss}: {most} of what the promise allows"
                # Values are rounded up, and what is sent lies on a lattice.
                allowed = math.nextafter(gaussian(loss, 1 / mu) * (1 + 2e-16), math.inf)
                assert found["value"] <= allowed, f"mu = {mu:g} at {loss}: above the Gaussian"
            yield found


def kl(rtol: float, limit: float) -> Iterator[dict[str, Any]]:
    """KL divergences that Gaussians spend."""
    for variance in VARIANCES:
        for loss in LOSSES:
            notion = optdp.KL(0.5 / variance)
            solve = lambda p=notion, q=loss: optdp.solve_additive(p, loss=q, rtol=rtol, time_limit=limit)  # noqa: E731
            yield row("kl", f"variance {variance:g}", loss, gaussian(loss, variance**0.5), solve)


def rdp(rtol: float, limit: float) -> Iterator[dict[str, Any]]:
    """Renyi divergences that Gaussians spend."""
    for alpha in ORDERS:
        for variance in VARIANCES:
            for loss in LOSSES:
                notion = optdp.RDP(alpha, alpha / (2 * variance))
                exponent = (alpha - 1) * alpha / (2 * variance)
                solve = lambda p=notion, q=loss: optdp.solve_additive(p, loss=q, rtol=rtol, time_limit=limit)  # noqa: E731
                name = f"alpha {alpha}, variance {variance:g}, exponent {exponent:g}"
                yield row("rdp", name, loss, gaussian(loss, variance**0.5), solve)


def profiles(rtol: float, limit: float) -> Iterator[dict[str, Any]]:
    """Several pairs; `/Gaussian` is over the Gaussian that keeps them all."""
    for pairs in PROFILES:
        for loss in LOSSES:
            known = all(delta > 0 for _, delta in pairs)
            deviation = max(Gaussian(eps, delta).sigma for eps, delta in pairs) if known else math.inf
            solve = lambda p=pairs, q=loss: optdp.solve_additive(optdp.Profile(p), loss=q, rtol=rtol, time_limit=limit)  # noqa: E731
            yield row("profiles", str(pairs), loss, gaussian(loss, deviation), solve)


def releases(rtol: float, limit: float) -> Iterator[dict[str, Any]]:
    """Several releases under one budget; the Gaussian is composed exactly."""
    for k in RELEASES:
        for loss in LOSSES:
            deviation = 1 / gaussian_budget(*TOTAL, k)
            solve = lambda k=k, q=loss: optdp.solve_additive(*TOTAL, q, releases=k, rtol=rtol, time_limit=limit)  # noqa: E731
            found = row("releases", f"{k} releases", loss, gaussian(loss, deviation), solve)
            if "solution" in found:
                print(
                    "   ",
                    found["solution"].problem.privacy,
                    composed_delta(found["solution"].mechanism, TOTAL[0], k),
                    flush=True,
                )
            yield found


TABLES = {"gdp": gdp, "gdp-closer": gdp, "kl": kl, "rdp": rdp, "profiles": profiles, "releases": releases}


def report(name: str, rows: list[dict[str, Any]], rtol: float) -> Report:
    """The rows as a table."""
    columns = [Column("notion", "notion"), Column("loss", "loss"), Column("lower", "lower bound", ".7g", "down"),
               Column("value", "value", ".7g", "up"), Column("gap", "gap", ".1e"), Column("verified", "verified"),
               Column("over", "/Gaussian", ".5f"), Column("seconds", "CPU s", ".2f")]  # fmt: skip
    rows = [{k: v for k, v in r.items() if k != "solution"} for r in rows]
    return Report(f"{name} at rtol = {rtol:g}", columns, rows, [])


def main() -> None:
    """Parse the options and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", help=f"which of {', '.join(TABLES)} (default: all)")
    parser.add_argument("--rtol", type=float, help="tolerance, in place of each table's own")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for each solution")
    args = parser.parse_args()
    optdp.solve_additive(1.0, 0.1, n=4)  # loads libraries
    for name in args.tables or TABLES:
        rtol = args.rtol or RTOL[name]
        print(f"\n{report(name, list(TABLES[name](rtol, args.limit)), rtol)}\n", flush=True)


if __name__ == "__main__":
    main()

"""Noise for k releases under one budget: what each accounting leaves, and our composition beside dp-accounting's.

    python benchmarks/releases.py                     # the total (1, 1e-6), k = 1, 10, 100, squared error
    python benchmarks/releases.py --releases 1 30 --delta 1e-5

The first table is `optdp report releases`. The second composes the noise found, and the analytic Gaussian, with
`optdp.mechanisms.accounting` and with dp-accounting (`pip install 'optdp[accounting]'`), on the same pairs of distributions.
"""

from __future__ import annotations

import argparse
import math
import time
from typing import Any

import optdp
from optdp.mechanisms.accounting import composed_delta, gaussian_budget
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.mechanisms.baselines.calibrated import GaussianNoise
from optdp.report import releases
from optdp.report.report import Column, Report

#: dp-accounting rounds the losses of each release up to multiples of this over the number of releases.
FINE = 2e-4


def reference(noise: Any, eps: float, count: int) -> float:
    """delta by dp-accounting: of the pair at the full sensitivity, rounded pessimistically."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    if isinstance(noise, AdditiveMechanism):
        pair = noise.pair(noise.n)
        shared = [k for k, (p, q) in enumerate(zip(pair.p, pair.q, strict=True)) if p or q]
        logs = [{k: math.log(part[k]) - math.log(pair.total) for k in shared if part[k]} for part in (pair.q, pair.p)]
        one = pld.from_two_probability_mass_functions(*logs, value_discretization_interval=FINE / count)
    else:
        one = pld.from_gaussian_mechanism(noise.sigma, value_discretization_interval=FINE / count)
    return float(one.self_compose(count).get_delta_for_epsilon(eps))


def both(eps: float, delta: float, counts: list[int], rtol: float) -> Report:
    """Our composition and dp-accounting's."""
    rows = []
    for k in counts:
        mu = gaussian_budget(eps, delta, k)
        found = optdp.solve_additive(optdp.GDP(mu), loss="squared", n=math.ceil(4 * mu), rtol=rtol).mechanism
        for name, noise in (("on a lattice, Gaussian DP", found), ("Gaussian", GaussianNoise(mu))):
            began = time.process_time()
            ours = composed_delta(noise, eps, k)
            middle = time.process_time()
            theirs = reference(noise, eps, k)
            seconds = middle - began, time.process_time() - middle
            rows.append({"k": k, "noise": name, "ours": ours, "theirs": theirs, "apart": ours / theirs - 1,
                         "seconds": seconds[0], "their seconds": seconds[1]})  # fmt: skip
    columns = [
        Column("k", "releases", "g"), Column("noise", "noise"), Column("ours", "delta, optdp", ".5g"),
        Column("theirs", "delta, dp-accounting", ".5g"), Column("apart", "apart", ".2%"),
        Column("seconds", "CPU s", ".3f"), Column("their seconds", "CPU s, dp-accounting", ".3f"),
    ]  # fmt: skip
    return Report(f"delta at eps = {eps:g} of k releases for ({eps:g}, {delta:g}) in total", columns, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eps", type=float, default=1.0)
    parser.add_argument("--delta", type=float, default=1e-6)
    parser.add_argument("--releases", type=int, nargs="+", default=[1, 10, 100])
    parser.add_argument("--rtol", type=float, default=0.02)
    args = parser.parse_args()
    print(releases.gap_report(args.eps, args.delta, args.releases, rtol=args.rtol), end="\n\n", flush=True)
    print(both(args.eps, args.delta, args.releases, args.rtol))


if __name__ == "__main__":
    main()

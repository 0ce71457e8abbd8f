"""The unbiased families: certified optima beside the published searches, the composite paper's Table II, and samplers.

    python benchmarks/unbiased.py               # optima, backends and Table II (about a minute)
    python benchmarks/unbiased.py --sampling    # draws per second beside numpy's, and the bias of 10^6 draws at 20 inputs
                                                # x 6 functions x 4 epsilons, in standard errors (some minutes)

Times are CPU seconds of this process, the best of three calls for those under a second; ratios compare within one run.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import optdp
from optdp.audit.comp.claims import PRINTED_H1, PRINTED_VARIANCE
from optdp.mechanisms import baselines
from optdp.mechanisms.composite import CompositeMechanism
from optdp.problem.shapes import Quartic
from optdp.report.report import Column, Report

#: The columns of the paper's Table II.
ORDER = ("A1B1", "A2B1", "A3B1", "A1B2", "A2B2", "A3B2")


def cpu(call: Callable[[], Any]) -> tuple[Any, float]:
    """Result and CPU seconds of a call: the best of three if it is short."""
    best, result = np.inf, None
    for _ in range(3):
        began = time.process_time()
        result = call()
        best = min(best, time.process_time() - began)
        if best > 1:
            break
    return result, best


def optima(epsilons: list[float]) -> Report:
    """I- and II-PTT: the certified optimum beside PM, PM-SUB and Duchi, and the plain program by SCIP."""
    rows = []
    for eps in epsilons:
        for kind in ("I", "II"):
            solution, seconds = cpu(lambda e=eps, k=kind: optdp.solve_ptt(e, k))
            row = {"kind": kind, "eps": eps, "value": solution.value, "gap": solution.gap, "eta": solution.mechanism.eta,
                   "limit": eps**2 * solution.value, "ms": 1e3 * seconds, "verified": bool(solution.verify())}  # fmt: skip
            if kind == "I":
                beside = {name: baselines.get(name).build(solution.problem) for name in ("PM", "PM-SUB", "Duchi")}
                row |= {name: made.worst_case_loss("squared") / solution.value for name, made in beside.items()}
                found, slow = cpu(lambda e=eps: optdp.solve_ptt(e, "I", backend="scip", time_limit=20.0))
                row |= {"scip": found.program.objective / solution.value - 1, "scip time": slow / seconds}
            rows.append(row)
    columns = [
        Column("kind", "kind"), Column("eps", "eps", "g"), Column("value", "worst variance", ".9g"), Column("gap", "gap", ".1e"),
        Column("eta", "eta", ".7g"), Column("limit", "eps^2 value", ".5g"), Column("ms", "CPU ms", ".2f"),
        Column("verified", "verified"), Column("PM", "PM /", ".5f"), Column("PM-SUB", "PM-SUB /", ".5f"),
        Column("Duchi", "Duchi /", ".5f"), Column("scip", "SCIP - 1", ".1e"), Column("scip time", "SCIP time /", ".0f"),
    ]  # fmt: skip
    return Report("Piecewise transformations on [-1, 1], worst-case variance", columns, rows)


def table_two() -> Report:
    """The composite paper's Table II beside the certified optimum and its own Algorithm 1."""
    rows = []
    for eps, printed in PRINTED_VARIANCE.items():
        for j, pair in enumerate(ORDER):
            solution, seconds = cpu(lambda e=eps, p=pair: optdp.solve_composite(e, p[:2], p[2:]))
            grid, slow = cpu(lambda e=eps, p=pair: optdp.solve_composite(e, p[:2], p[2:], backend="grid"))
            slope = math.expm1(eps) * float(solution.mechanism.activation.level())
            share = 1 / (slope * PRINTED_H1[eps][j])  # the window that the printed H1 stands for
            there = CompositeMechanism.private(eps, share, solution.problem.domain, solution.mechanism.activation)
            below = printed[j] + 5e-4 < solution.lower_bound
            rows.append(
                {"eps": eps, "pair": pair, "bound": solution.lower_bound, "gap": solution.gap, "grid": grid.program.objective,
                 "excess": grid.program.objective / solution.value - 1, "grid time": slow / seconds, "printed": printed[j],
                 "ratio": printed[j] / solution.value, "below": "impossible" if below else "", "h1": solution.mechanism.h1(),
                 "h1 grid": grid.mechanism.h1(), "h1 printed": PRINTED_H1[eps][j],
                 "cost": there.enclose(solution.problem.objective)[1] / solution.value - 1 if pair.endswith("B1") else None,
                 "same": "yes" if f"{grid.mechanism.h1():.3f}" == f"{PRINTED_H1[eps][j]:.3f}" else ""}
            )  # fmt: skip
    columns = [
        Column("eps", "eps", "g"), Column("pair", "pair"), Column("bound", "lower bound", ".6g", "down"),
        Column("gap", "gap", ".0e"),
        Column("grid", "Algorithm 1", ".6g"), Column("excess", "excess", ".2%"), Column("grid time", "time /", ".1f"),
        Column("printed", "printed", "g"), Column("ratio", "/ optimum", ".4f"), Column("below", "below the bound"),
        Column("h1", "H1 optimum", ".4f"), Column("h1 grid", "H1 grid", ".4f"), Column("h1 printed", "H1 printed", ".3f"),
        Column("same", "to the digit"), Column("cost", "excess at it", ".2%"),
    ]  # fmt: skip
    impossible = sum(row["below"] != "" for row in rows)
    same = sum(row["same"] != "" for row in rows if row["pair"].endswith("B1"))
    notes = [
        f"{impossible} of {len(rows)} printed variances lie below the certified minimum: they cannot have been computed.",
        f"H1 of Algorithm 1 equals the printed one to three decimals in {same} of 15 B1 entries.",
    ]
    notes.append("excess at it: what the window that the printed H1 stands for costs; the optimum is flat, H1 is not.")
    return Report("Composite mechanisms at C_p = 0, sensitivity 1", columns, rows, notes)


def sampling(draws: int) -> Report:
    """Throughput beside numpy's uniform generator, and the largest bias in standard errors over inputs and epsilons."""
    rng = np.random.default_rng(0)
    _, reference = cpu(lambda: rng.random(draws))
    rows = []
    for pair in ORDER:
        base: Any = pair[2:] if pair.endswith("B1") else Quartic(0.9)
        worst, inside, private, seconds = 0.0, True, True, np.inf
        for eps in (0.2, 0.5, 1.0, 3.0):
            mechanism = optdp.solve_composite(eps, pair[:2], base).mechanism
            private &= all(c.passed for c in mechanism.check_privacy(optdp.LDP(eps)))
            low, high = mechanism.support()
            for x in np.linspace(mechanism.domain.lower, mechanism.domain.upper, 20):
                inputs = np.full(draws, x)
                began = time.process_time()
                y = mechanism.randomize(inputs, rng)
                seconds = min(seconds, time.process_time() - began)
                inside &= bool(low <= y.min() and y.max() <= high)
                worst = max(worst, abs(y.mean() - x) / np.sqrt(float(mechanism.variance(x)) / draws))
        rows.append({"pair": pair, "bias": worst, "inside": inside, "private": private, "rate": draws / seconds / 1e6,
                     "ratio": seconds / reference})  # fmt: skip
    columns = [
        Column("pair", "pair"), Column("bias", "bias, s.e.", ".2f"), Column("inside", "bounded"),
        Column("private", "private"), Column("rate", "million draws / s", ".1f"), Column("ratio", "time / numpy uniform", ".1f"),
    ]  # fmt: skip
    notes = [
        f"20 inputs x 4 epsilons x {draws} draws for each function; B2 with t = 0.9 y, so that it differs from B1."
    ]
    return Report("Samplers", columns, rows, notes)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--eps", type=float, nargs="+", default=[0.01, 0.1, 0.5, 1.0, 2.0, 5.0])
    parser.add_argument("--sampling", action="store_true")
    parser.add_argument("--draws", type=int, default=10**6)
    args = parser.parse_args()
    if args.sampling:
        print(sampling(args.draws))
        return
    print(optima(args.eps))
    print()
    print(table_two())


if __name__ == "__main__":
    main()

"""All mechanisms on an interval: certified gaps, CPU seconds, pieces, samples per second and sizes of files of `solve_kernel`.

    python benchmarks/kernel.py                       # gaps of 1e-3 for all epsilons, 1e-4 up to 10, 1e-5 up to 6
    python benchmarks/kernel.py --table 1e-4 --loss abs
    python benchmarks/kernel.py --table losses        # further losses and priors
    python benchmarks/kernel.py --table limit         # how values fall with epsilon: e^(eps/2) V and e^(2 eps/3) V

Seconds are CPU seconds of this process: set OMP_NUM_THREADS=1 and OPENBLAS_NUM_THREADS=1 for those of one thread.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import optdp
from optdp.report.report import Column, Report

EPS = (1e-6, 0.01, 0.1, 0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 30.0)
#: Relative gap -> largest epsilon.
TABLES = {1e-3: 30.0, 1e-4: 10.0, 1e-5: 6.0}
LOSSES = {
    "power:1.5": optdp.Power(1.5), "power:3": optdp.Power(3), "huber:0.1": optdp.Huber(0.1),
    "threshold:0.1": optdp.Threshold(0.1), "pinball:0.8": optdp.Pinball(0.8),
    "pieces": optdp.Pieces((0, "1/2"), ((0, 1), ("-1/2", 2))), "own": lambda d: np.log1p(5 * d),
}  # fmt: skip
#: Seconds on the clock after which a search ends: out of reach, so that a busy machine gets the same answers.
LIMIT = 3600.0
#: Samples drawn at once, with the bits that are used in earnest, and how often.
COUNT, TIMES = 1_000_000, 3


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Result and CPU seconds of one call."""
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


def measured(name: str, eps: float, rtol: float, options: dict[str, Any]) -> dict[str, Any]:
    """One row: the bracket, what it took, and what the mechanism is like to use."""
    row: dict[str, Any] = {"loss": name, "eps": eps}
    try:
        solution, row["seconds"] = timed(lambda: optdp.solve_kernel(eps, rtol=rtol, time_limit=LIMIT, **options))
    except (ValueError, ArithmeticError, RuntimeError) as error:
        return row | {"status": f"{type(error).__name__}: {error}"[:60]}
    verification, row["checking"] = timed(lambda: solution.verify(limit=LIMIT))
    mechanism = solution.mechanism
    x = np.random.default_rng(0).uniform(mechanism.domain.lower, mechanism.domain.upper, COUNT)
    mechanism.randomize(x[:10])
    seconds = min(timed(lambda: mechanism.randomize(x))[1] for _ in range(TIMES))
    return row | {
        "lower": solution.lower_bound, "value": solution.value, "gap": solution.gap, "status": solution.status.name,
        "verified": bool(verification), "pieces": len(mechanism.cells), "rate": COUNT / seconds / 1e6,
        **({} if name == "own" else {"size": len(json.dumps(solution.to_dict())) / 1e3}),  # functions have no JSON form
    }  # fmt: skip


COLUMNS = [
    Column("loss", "loss"), Column("eps", "eps", "g"), Column("lower", "lower bound", ".7g", "down"),
    Column("value", "value", ".7g", "up"), Column("gap", "gap", ".1e"), Column("status", "status"),
    Column("seconds", "seconds", ".2f"), Column("verified", "verified"), Column("checking", "verify s", ".2f"),
    Column("pieces", "pieces"), Column("rate", "million samples/s", ".3g"), Column("size", "JSON kB", ".3g"),
]  # fmt: skip


def asked(name: str) -> dict[str, Any]:
    """Options of `solve_kernel` for a problem by name."""
    return {"unbiased": True} if name == "unbiased" else {"loss": LOSSES.get(name, name)}


def brackets(rtol: float, names: list[str], epsilons: list[float]) -> Report:
    """Every problem at every epsilon at which this gap is asked for."""
    optdp.solve_kernel(1.0, rtol=0.1).verify()  # load libraries
    rows = [measured(name, e, rtol, asked(name)) for name in names for e in epsilons if e <= TABLES.get(rtol, 30.0)]
    return Report(f"solve_kernel on [0, 1], relative gap {rtol:g}", COLUMNS, rows)


def losses() -> Report:
    """Further losses, and averages under priors of points and densities, at three epsilons."""
    optdp.solve_kernel(1.0, rtol=0.1).verify()
    points = {"two points": ([0.0, 1.0], [0.5, 0.5]), "nine points": (np.linspace(0, 1, 9).tolist(), [1 / 9] * 9)}
    data = np.random.default_rng(0).beta(2, 5, 1000)
    densities = {
        "uniform": "uniform",
        "Beta(2, 5)": optdp.Density.beta(2, 5),
        "data": optdp.Density.histogram(data, domain=(0, 1)),
    }
    priors = points | densities
    cases = {name: asked(name) for name in LOSSES} | {name: {"prior": prior} for name, prior in priors.items()}
    rows = [measured(name, e, 1e-3, options) for name, options in cases.items() for e in (0.5, 2.0, 6.0)]
    return Report("Other losses and priors on [0, 1], relative gap 0.001", COLUMNS, rows)


def limit() -> Report:
    """Values times the rate at which they fall with epsilon."""
    rows: list[dict[str, Any]] = []
    for name, rate in (("abs", 1 / 2), ("squared", 2 / 3), ("unbiased", 2 / 3)):
        for eps in (10.0, 20.0, 30.0):
            row = measured(name, eps, 1e-3, asked(name))
            if "value" in row:
                row |= {"from": row["lower"] * math.exp(rate * eps), "to": row["value"] * math.exp(rate * eps)}
            rows.append(row | {"rate": f"e^({rate:.3g} eps) V"})
    columns = [
        Column("loss", "loss"), Column("eps", "eps", "g"), Column("rate", "scaled value"),
        Column("from", "from", ".6g", "down"), Column("to", "to", ".6g", "up"), Column("gap", "gap", ".1e"),
    ]  # fmt: skip
    return Report("How the optimum falls with epsilon", columns, rows)


def main() -> None:
    """Parse the arguments and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = ["1e-3", "1e-4", "1e-5", "losses", "limit"]
    parser.add_argument("--table", nargs="+", default=kinds[:3], choices=kinds)
    parser.add_argument("--eps", type=float, nargs="+", default=list(EPS))
    names = ["abs", "squared", "unbiased"]
    parser.add_argument("--loss", nargs="+", default=names, choices=[*names, *LOSSES])
    args = parser.parse_args()
    for kind in args.table:
        report = losses() if kind == "losses" else limit() if kind == "limit" else None
        print(report or brackets(float(kind), args.loss, args.eps), end="\n\n", flush=True)


if __name__ == "__main__":
    main()

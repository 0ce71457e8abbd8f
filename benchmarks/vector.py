"""Vectors: certified optima on spheres, brackets of balls and cubes, published mechanisms beside them, samplers.

    python benchmarks/vector.py                  # all tables but the last (about two minutes)
    python benchmarks/vector.py --part sphere    # unit vectors, and what the published mechanisms lose
    python benchmarks/vector.py --part ball      # brackets, and the best published mechanism; --part cube the same
    python benchmarks/vector.py --part sizes     # how many coordinates of a cube to report
    python benchmarks/vector.py --part samples   # means, lengths and caps of samples in standard errors; coordinates per second

Times are CPU seconds of this process. pfl 0.6.0 on PyPI has no PrivUnit: the baseline of that name is ours.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import optdp
from optdp.mechanisms import baselines
from optdp.report.report import Column, Report

DIMS = (1, 2, 3, 10, 100, 1000, 10**5, 10**6)
EPS = (0.1, 1.0, 4.0, 10.0, 30.0)


def sphere() -> Report:
    """The optimum for unit vectors, and what the published mechanisms lose."""
    rows: list[dict[str, Any]] = []
    for d in DIMS:
        for eps in EPS:
            began = time.process_time()
            best = optdp.solve_vector(eps, d)
            row = {"d": d, "eps": eps, "value": best.value, "gap": best.gap, "verified": bool(best.verify()),
                   "ms": 1e3 * (time.process_time() - began)}  # fmt: skip
            for name, other in baselines.applicable(best.problem).items():
                row[name] = other.worst_case_loss("squared") / best.value
                assert row[name] >= 1 - 1e-12, (name, d, eps)
            rows.append(row)
    names = [name for name in rows[0] if name not in ("d", "eps", "value", "gap", "verified", "ms")]
    columns = [Column("d", "d"), Column("eps", "eps", "g"), Column("value", "value", ".12g", "up"), Column("gap", "gap", ".1e"),
               Column("verified", "verified"), *(Column(n, f"{n} / value", ".5g") for n in names),
               Column("ms", "ms", ".3g")]  # fmt: skip
    return Report("Unit vectors", columns, rows, [])


def brackets(norm: str, dims: tuple[int, ...], levels: tuple[float, ...]) -> Report:
    """The brackets of a ball or a cube; the least of the published mechanisms beside them."""
    rows: list[dict[str, Any]] = []
    for d in dims:
        for eps in levels:
            began = time.process_time()
            best = optdp.solve_vector(eps, d, norm=norm, inputs="ball", rtol=1e-3 if norm == "l2" else 0.01)
            others = {n: m.worst_case_loss("squared") for n, m in baselines.applicable(best.problem).items()}
            least = min(others, key=lambda n: others[n])
            assert others[least] >= best.lower_bound
            rows.append({"d": d, "eps": eps, "lower": best.lower_bound, "value": best.value, "gap": best.gap,
                         "mechanism": type(best.mechanism).__name__.removesuffix("Mechanism"),
                         "k": getattr(best.mechanism, "k", None), "least": least, "ratio": others[least] / best.value,
                         "verified": bool(best.verify()), "s": time.process_time() - began})  # fmt: skip
    columns = [Column("d", "d"), Column("eps", "eps", "g"), Column("lower", "lower bound", ".9g", "down"),
               Column("value", "value", ".9g", "up"), Column("gap", "gap", ".1e"), Column("mechanism", "mechanism"),
               Column("k", "k"), Column("least", "best published"), Column("ratio", "its error / value", ".4f"),
               Column("verified", "verified"), Column("s", "s", ".3g")]  # fmt: skip
    return Report("The Euclidean ball" if norm == "l2" else "The cube", columns, rows, [])


def sizes() -> Report:
    """How many coordinates of a cube to report, beside the published rule eps/2.5."""
    from optdp.closed_forms.cube import best_signs

    rows = [
        {"eps": eps, "rule": max(1, math.floor(eps / 2.5))}
        | {f"d = {d}": "{} (at least {})".format(*best_signs(eps, d)) for d in (10, 100, 1000)}
        for eps in (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 20.0)
    ]
    columns = [
        Column("eps", "eps", "g"),
        Column("rule", "rule of eps/2.5"),
        *(Column(f"d = {d}", f"d = {d}") for d in (10, 100, 1000)),
    ]
    return Report("Coordinates whose signs are sent (and how many agree in the favoured set)", columns, rows, [])


def samples(most: int) -> Report:
    """Mean along the input, error and share of the cap, in standard errors; at most `most` coordinates a case."""
    rows: list[dict[str, Any]] = []
    for d in DIMS:
        for eps in (1.0, 10.0):
            best = optdp.solve_vector(eps, d)
            mechanism, rng = best.mechanism, np.random.default_rng(d)
            x = rng.standard_normal(d)
            x /= np.linalg.norm(x)
            n, block = max(20, min(most // d, 200_000)), max(1, 10**6 // d)
            along, error, spent = [], [], 0.0
            while sum(map(len, along)) < n:
                inputs = np.tile(x, (min(block, n), 1))
                began = time.process_time()
                y = mechanism.randomize(inputs)
                spent += time.process_time() - began
                along.append(y @ x)
                error.append(np.einsum("ij,ij->i", y, y))
            t, square = np.concatenate(along), np.concatenate(error)
            share = (t >= mechanism.height * math.sqrt(float(mechanism.least))).mean()
            p = mechanism.coins / 2**124
            rows.append({"d": d, "eps": eps, "n": t.size, "rate": t.size * d / spent,
                         "mean": (t.mean() - 1) / max(t.std() / math.sqrt(t.size), 1e-12),
                         "length": (square.mean() - best.value - 1)
                         / max(square.std() / math.sqrt(t.size), 1e-12 * (best.value + 1)),
                         "cap": (share - p) / math.sqrt(p * (1 - p) / t.size)})  # fmt: skip
    columns = [Column("d", "d"), Column("eps", "eps", "g"), Column("n", "vectors"), Column("rate", "coordinates/s", ".3g"),
               Column("mean", "E<Y, x> - 1 (s.e.)", ".2f"), Column("length", "E|Y|^2 (s.e.)", ".2f"),
               Column("cap", "cap (s.e.)", ".2f")]  # fmt: skip
    return Report("Samples", columns, rows, [])


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parts: dict[str, Callable[[], Report]] = {
        "sphere": sphere,
        "ball": lambda: brackets("l2", (1, 2, 3, 5, 10, 30, 100, 1000), (0.1, 1.0, 4.0, 10.0, 30.0)),
        "cube": lambda: brackets("linf", (2, 10, 100, 1000), (0.1, 1.0, 2.0, 4.0, 10.0, 20.0)),
        "sizes": sizes,
        "samples": lambda: samples(args.most),
    }
    parser.add_argument("--part", choices=tuple(parts), help="only this part")
    parser.add_argument("--most", type=int, default=10**8, help="coordinates of a case, samples")
    args = parser.parse_args()
    for name in [args.part] if args.part else [name for name in parts if name != "samples"]:
        print(parts[name]().to_markdown(), end="\n\n", flush=True)


if __name__ == "__main__":
    main()

"""Finite alphabets: `solve_kernel` with a matrix of losses, beside the plain linear program, and many symbols.

    python benchmarks/finite.py                  # everything (several minutes)
    python benchmarks/finite.py --part small     # against the plain program, and qif's min_loss_given_d where it is installed
    python benchmarks/finite.py --part large     # 300 and 1,000 symbols
    python benchmarks/finite.py --part eps       # a grid of 100 points for eps from 1e-6 to 30

Seconds are CPU seconds of this process, single-threaded, after one call that loads libraries; ratios are within one run.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import optdp
from optdp.report.report import Column, Report


def losses(kind: str, d: int) -> np.ndarray:
    """A matrix of losses: distances of points of a grid, or numbers drawn independently."""
    x, rng = np.linspace(0, 1, d), np.random.default_rng(0)
    return {
        "abs": lambda: abs(x[:, None] - x), "squared": lambda: (x[:, None] - x) ** 2,
        "uniform": lambda: rng.random((d, d)), "heavy": lambda: rng.exponential(size=(d, d)) ** 3,
    }[kind]()  # fmt: skip


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Result and CPU seconds of one call."""
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


def solved(kind: str, d: int, eps: float, average: bool, **options: Any) -> tuple[optdp.Solution, float]:
    """A solution and its CPU seconds; averages are under a prior that was drawn."""
    prior = np.random.default_rng(1).dirichlet(np.ones(d)) if average else None
    matrix = losses(kind, d)
    return timed(lambda: optdp.solve_kernel(eps, matrix, domain=optdp.Alphabet(d), prior=prior, **options))


def qif_value(kind: str, d: int, eps: float) -> tuple[float, float]:
    """The average loss of the mechanism that qif finds with its own linear program, and CPU seconds."""
    import qif.mechanism

    matrix, prior = losses(kind, d), np.random.default_rng(1).dirichlet(np.ones(d))
    channel, seconds = timed(
        lambda: qif.mechanism.d_privacy.min_loss_given_d(
            prior, d, lambda i, j: eps * (i != j), lambda i, j: matrix[i, j]
        )
    )
    return float(prior @ (np.array(channel) * matrix).sum(axis=1)), seconds


def small(args: argparse.Namespace) -> Report:
    """The floor alone, the plain linear program over all pairs, and qif's."""
    rows: list[dict[str, Any]] = []
    for kind in ("abs", "uniform"):
        for d in args.small:
            for average in (False, True):
                found, seconds = solved(kind, d, args.eps, average)
                plain, dense = solved(kind, d, args.eps, average, backend="dense")
                row = {
                    "loss": kind, "objective": "average" if average else "worst", "d": d, "value": found.value, "gap": found.gap,
                    "difference": abs(plain.value - found.value) / found.value, "seconds": seconds, "dense": dense / seconds,
                }  # fmt: skip
                if average and importlib.util.find_spec("qif"):
                    value, theirs = qif_value(kind, d, args.eps)
                    row |= {"theirs": abs(value - found.value) / found.value, "qif": theirs / seconds}
                rows.append(row)
    columns = [
        Column("loss", "loss"), Column("objective", "objective"), Column("d", "symbols"), Column("value", "value", ".10g"),
        Column("gap", "gap", ".1e"), Column("difference", "|plain - value|", ".1e"), Column("seconds", "seconds", ".3f"),
        Column("dense", "plain / this", ".2f"), Column("theirs", "|qif - value|", ".1e"), Column("qif", "qif / this", ".2f"),
    ]  # fmt: skip
    return Report(f"Alphabets at eps = {args.eps:g}", columns, rows)


def bracketed(title: str, cases: list[tuple[str, int, float, bool]], rtol: float) -> Report:
    """Bracket, size and time of each case."""
    rows = []
    for kind, d, eps, average in cases:
        found, seconds = solved(kind, d, eps, average, rtol=rtol, time_limit=3600.0)
        verified, checking = timed(found.verify)
        used = int((found.mechanism.table.weights.max(axis=0) > 0).sum())  # type: ignore[attr-defined]
        rows.append(
            {
                "loss": kind, "objective": "average" if average else "worst", "d": d, "eps": eps, "value": found.value,
                "gap": found.gap, "used": used, "rounds": found.program.message, "seconds": seconds, "verified": bool(verified),
                "checking": checking,
            }
        )  # fmt: skip
    columns = [
        Column("loss", "loss"), Column("objective", "objective"), Column("d", "symbols"), Column("eps", "eps", "g"),
        Column("value", "value", ".7g"), Column("gap", "gap", ".1e"), Column("used", "outputs used"), Column("rounds", "rounds"),
        Column("seconds", "seconds", ".2f"), Column("verified", "verified"), Column("checking", "verify s", ".2f"),
    ]  # fmt: skip
    return Report(title, columns, rows)


def large(args: argparse.Namespace) -> Report:
    """Many symbols."""
    kinds = ("abs", "squared", "uniform", "heavy")
    cases = [(k, d, e, a) for d in args.large for k in kinds for e in args.epsilons for a in (False, True)]
    return bracketed(f"Many symbols, rtol = {args.rtol:g}", cases, args.rtol)


def everywhere(args: argparse.Namespace) -> Report:
    """One size for every eps."""
    epsilons = (1e-6, 0.01, 0.1, 0.5, 1, 2, 4, 8, 12, 16, 20, 25, 30)
    cases = [(k, 100, e, a) for k in ("abs", "uniform") for e in epsilons for a in (False, True)]
    return bracketed(f"100 symbols, rtol = {args.rtol:g}", cases, args.rtol)


PARTS = {"small": small, "large": large, "eps": everywhere}


def main() -> None:
    """Print the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=tuple(PARTS), help="only this part")
    parser.add_argument("--eps", type=float, default=1.0, help="epsilon of the small part (default 1)")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[1.0], help="of the large part")
    parser.add_argument("--small", type=int, nargs="+", default=[5, 10, 20, 40], help="symbols, small part")
    parser.add_argument("--large", type=int, nargs="+", default=[300, 1000], help="symbols, large part")
    parser.add_argument("--rtol", type=float, default=1e-3, help="relative gap asked for")
    parser.add_argument("--out", help="also write the tables to this Markdown file")
    args = parser.parse_args()
    for backend in ("auto", "dense"):
        optdp.solve_kernel(1.0, 1 - np.eye(3), domain=optdp.Alphabet(3), backend=backend)
    texts = []
    for name in [args.part] if args.part else list(PARTS):
        report = PARTS[name](args)
        print(report.to_text(), end="\n\n", flush=True)
        texts.append(report.to_markdown())
    if args.out:
        from optdp import files

        files.write_text(args.out, "\n".join(texts))


if __name__ == "__main__":
    main()

"""Value, gap and time of `solve_lip`: column generation against enumeration and the cvxpy model, then many categories.

    python benchmarks/lip.py                     # everything (a few minutes)
    python benchmarks/lip.py --part small        # d = 2 to 12: columns, enumeration, cvxpy
    python benchmarks/lip.py --part large        # d = 83, 500 and 1,000
    python benchmarks/lip.py --part users        # a million users

Times are CPU seconds of this process (solve and certificate), after one call that loads libraries. Ratios are to column
generation within one run.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np

import optdp
from optdp.report.report import Column, Report


def prior(kind: str, d: int) -> np.ndarray:
    """A prior of the given shape."""
    raw = {
        "uniform": np.ones(d),
        "zipf": 1 / np.arange(1, d + 1),
        "random": np.random.default_rng(0).dirichlet(np.ones(d)),
    }[kind]
    return raw / raw.sum()


def timed(*arguments: Any, **options: Any) -> tuple[optdp.Solution, float]:
    """A solution and its CPU seconds."""
    began = time.process_time()
    solution = optdp.solve_lip(*arguments, **options)
    return solution, time.process_time() - began


def small(args: argparse.Namespace) -> Report:
    """Three ways to the same number."""
    rows: list[dict[str, Any]] = []
    for task in ("sum", "histogram"):
        for d in args.small:
            p = prior("random", d)
            solved = {
                b: timed(p, args.eps, task=task, backend=b, rtol=1e-10) for b in ("columns", "enumeration", "cvxpy")
            }
            columns, seconds = solved["columns"]
            every, _ = solved["enumeration"]
            rows.append(
                {
                    "task": task, "d": d, "value": columns.value, "gap": columns.gap,
                    "difference": abs(columns.value - every.value) / every.value, "seconds": seconds,
                    "enumeration": solved["enumeration"][1] / seconds, "cvxpy": solved["cvxpy"][1] / seconds,
                    "points": int(every.program.variables.split("(")[1].split()[0]),
                }
            )  # fmt: skip
    columns_shown = [
        Column("task", "task"), Column("d", "d"), Column("value", "value", ".10g"), Column("gap", "gap", ".1e"),
        Column("difference", "|columns - enumeration|", ".1e"), Column("points", "extreme points"),
        Column("seconds", "columns, s", ".3f"), Column("enumeration", "enumeration / columns", ".2f"),
        Column("cvxpy", "cvxpy / columns", ".2f"),
    ]  # fmt: skip
    return Report(f"Column generation, enumeration, cvxpy at eps = {args.eps:g}", columns_shown, rows)


def large(args: argparse.Namespace) -> Report:
    """Many categories."""
    rows = []
    for task, sizes in (("sum", args.large), ("histogram", args.large), ("histogram, ldp", args.large)):
        for d in sizes:
            for kind in ("uniform", "random", "zipf"):
                for eps in args.epsilons:
                    name, _, notion = task.partition(", ")
                    solution, seconds = timed(prior(kind, d), eps, task=name, notion=notion or "lip", rtol=args.rtol)
                    began = time.process_time()
                    verified = bool(solution.verify())
                    rows.append(
                        {
                            "task": task, "d": d, "prior": kind, "eps": eps, "value": solution.value, "gap": solution.gap,
                            "outputs": len(solution.mechanism.kernel), "status": solution.status.name, "seconds": seconds,
                            "verified": verified, "check": time.process_time() - began,
                        }
                    )  # fmt: skip
    columns = [
        Column("task", "task"), Column("d", "d"), Column("prior", "prior"), Column("eps", "eps", "g"),
        Column("value", "value", ".9g"), Column("gap", "gap", ".1e"), Column("outputs", "outputs"),
        Column("status", "status"), Column("seconds", "solve, s", ".2f"), Column("verified", "verified"),
        Column("check", "verify, s", ".2f"),
    ]  # fmt: skip
    return Report(f"Many categories (rtol {args.rtol:g})", columns, rows)


def users(args: argparse.Namespace) -> Report:
    """A million users, one round."""
    rows = []
    for task, p, schemes in (
        ("survey", [0.9, 0.1], ("lip", "ldp", "randomised response", "central")),
        ("histogram", prior("random", 83), ("lip", "randomised response", "oue")),
    ):
        began = time.process_time()
        found = optdp.lip_simulate(p, args.eps, 1_000_000, task=task, schemes=schemes, rounds=1)
        rows += [{"task": task, "scheme": s.name, "theory": s.theory, "seconds": s.seconds} for s in found.schemes]
        rows.append({"task": task, "scheme": "all", "theory": None, "seconds": time.process_time() - began})
    columns = [
        Column("task", "task"),
        Column("scheme", "scheme"),
        Column("theory", "error/user"),
        Column("seconds", "seconds", ".2f"),
    ]
    return Report("A million users, one round (design included)", columns, rows)


PARTS = {"small": small, "large": large, "users": users}


def main() -> None:
    """Print the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=tuple(PARTS), help="only this part")
    parser.add_argument("--eps", type=float, default=1.0, help="epsilon of the small and users parts (default 1)")
    parser.add_argument("--epsilons", type=float, nargs="+", default=[0.5, 1.0, 2.0, 4.0], help="of the large part")
    parser.add_argument("--small", type=int, nargs="+", default=[2, 4, 6, 8, 10, 12], help="categories, small part")
    parser.add_argument("--large", type=int, nargs="+", default=[83, 500, 1000], help="categories, large part")
    parser.add_argument("--rtol", type=float, default=1e-3, help="relative gap asked for, large part")
    parser.add_argument("--out", help="also write the tables to this Markdown file")
    args = parser.parse_args()
    for backend in ("columns", "enumeration", "cvxpy"):
        optdp.solve_lip([0.5, 0.3, 0.2], 1.0, backend=backend)
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

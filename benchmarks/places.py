"""Metric privacy between places: the structured interior point beside the plain linear program, and qif's, in CPU seconds.

    python benchmarks/places.py --part small     # 9 to 25 places, uniform and skewed priors and the worst case, three eps
    python benchmarks/places.py --part growth    # seconds as the number of places grows
    python benchmarks/places.py --part large     # brackets for hundreds of places
    python benchmarks/places.py --part cities    # cities of Europe beside the published mechanisms
    python benchmarks/places.py --part plane     # rectangles under eps-LDP beside noise in the plane and the optima of both sides
    python benchmarks/places.py --part circle    # metric privacy on a circle: the closed form and what is attained
    python benchmarks/places.py --part large --large 400 --gaps 0.05

Run it with OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1: seconds are then those of one thread.
"""

from __future__ import annotations

import argparse
import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import optdp
from optdp.mechanisms import baselines
from optdp.problem.metrics import cities
from optdp.report.places import each_side
from optdp.report.report import Column, Report


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """Result and CPU seconds of one call."""
    began = time.process_time()
    result = call()
    return result, time.process_time() - began


def places(n: int) -> optdp.Points:
    """Points drawn evenly from the unit square."""
    return optdp.Points(np.random.default_rng(n).random((n, 2)).tolist())  # type: ignore[arg-type]


def prior_of(kind: str, n: int) -> np.ndarray | None:
    """Uniform, skewed, or None for the worst case."""
    skewed = np.random.default_rng(n + 1).dirichlet(np.full(n, 0.5))
    return {"uniform": np.full(n, 1 / n), "skewed": skewed, "worst": None}[kind]


def solved(kind: str, n: int, eps: float, **options: Any) -> tuple[optdp.Solution, float]:
    """A solution for the expected distance, and its CPU seconds."""
    metric, prior, options = places(n), prior_of(kind, n), {"time_limit": 1e5} | options
    return timed(lambda: optdp.solve_kernel(eps, domain=optdp.Alphabet(n), metric=metric, prior=prior, **options))


def qif_value(kind: str, n: int, eps: float) -> tuple[float, float]:
    """The average loss of the mechanism that qif finds with its own linear program, and CPU seconds."""
    import qif.mechanism

    far, prior = places(n).array, prior_of(kind, n)
    assert prior is not None
    channel, seconds = timed(
        lambda: qif.mechanism.d_privacy.min_loss_given_d(prior, n, lambda i, j: eps * far[i, j], lambda i, j: far[i, j])
    )
    return float(prior @ (np.array(channel) * far).sum(axis=1)), seconds


def beside(cases: list[tuple[str, int, float]], title: str, rtol: float) -> Report:
    """This, the plain program, and qif's."""
    rows: list[dict[str, Any]] = []
    for kind, n, eps in cases:
        found, seconds = solved(kind, n, eps, rtol=rtol)
        plain, dense = solved(kind, n, eps, backend="dense")
        row = {
            "kind": kind, "n": n, "eps": eps, "value": found.value, "gap": found.gap, "seconds": seconds, "dense": dense,
            "difference": abs(plain.value - found.value) / found.value, "verified": bool(found.verify(1e4)),
        }  # fmt: skip
        if kind != "worst" and importlib.util.find_spec("qif"):
            value, theirs = qif_value(kind, n, eps)
            row |= {"theirs": abs(value - found.value) / found.value, "qif": theirs}
        rows.append(row)
    columns = [
        Column("kind", "prior"), Column("n", "places"), Column("eps", "eps", "g"), Column("value", "value", ".10g"),
        Column("gap", "gap", ".1e"), Column("difference", "|plain - value|", ".1e"), Column("seconds", "seconds", ".2f"),
        Column("dense", "plain, s", ".2f"), Column("theirs", "|qif - value|", ".1e"), Column("qif", "qif, s", ".2f"),
        Column("verified", "verified"),
    ]  # fmt: skip
    return Report(title, columns, rows)


def small(args: argparse.Namespace) -> Report:
    """Few places, to many digits."""
    kinds, sizes, levels = ("uniform", "skewed", "worst"), (9, 16, 25), (0.5, 2.0, 6.0)
    return beside([(k, n, e) for n in sizes for k in kinds for e in levels], "Few places", 1e-9)


def growth(args: argparse.Namespace) -> Report:
    """More and more places, at eps = 6."""
    cases = [(k, n, 6.0) for n in args.sizes for k in ("skewed", "worst")]
    return beside(
        cases, f"More and more places, rtol = {args.rtol:g} here, the optimum of the plain program", args.rtol
    )


def large(args: argparse.Namespace) -> Report:
    """Brackets alone."""
    rows = []
    for n, rtol in zip(args.large, args.gaps, strict=True):
        found, seconds = solved("skewed", n, 6.0, rtol=rtol)
        verified, checking = timed(lambda found=found: found.verify(1e4))
        rows.append({"n": n, "low": found.lower_bound, "value": found.value, "gap": found.gap, "seconds": seconds,
                     "message": found.program.message, "verified": bool(verified), "checking": checking})  # fmt: skip
    columns = [
        Column("n", "places"), Column("low", "lower bound", ".7g", "down"),
        Column("value", "value", ".7g", "up"), Column("gap", "gap", ".1e"),
        Column("seconds", "seconds", ".1f"), Column("message", "work"), Column("verified", "verified"),
        Column("checking", "verify, s", ".1f"),
    ]  # fmt: skip
    return Report("Hundreds of places, eps = 6", columns, rows)


def european(args: argparse.Namespace) -> Report:
    """Cities beside the published mechanisms: mean distance in kilometres."""
    names, metric, shares = cities(40)
    rows = []
    for eps in (0.0005, 0.001, 0.002, 0.005, 0.01):
        found, seconds = timed(lambda eps=eps: optdp.solve_kernel(eps, domain=names, metric=metric, prior=shares))
        others = {
            name: mechanism.enclose(found.problem.objective)[1]
            for name, mechanism in baselines.applicable(found.problem).items()
        }
        rows.append({"eps": eps, "low": found.lower_bound, "value": found.value, "seconds": seconds, **others})
    columns = [
        Column("eps", "eps per km", "g"), Column("low", "lower bound", ".2f"), Column("value", "optimum", ".2f"),
        Column("planar Laplace", "planar Laplace", ".2f"), Column("exponential", "exponential", ".2f"),
        Column("seconds", "seconds", ".2f"),
    ]  # fmt: skip
    return Report("40 cities of Europe, by inhabitants: expected distance in km", columns, rows)


def plane(args: argparse.Namespace) -> Report:
    """Rectangles beside what there is without planar mechanisms."""
    rows = []
    for box in (optdp.Box((0, 0), (1, 1)), optdp.Box((0, 0), (4, 3))):
        for loss in ("abs", "squared"):
            for eps in args.eps:
                found, seconds = timed(
                    lambda box=box, loss=loss, eps=eps: optdp.solve_kernel(
                        eps, loss, domain=box, rtol=args.rtol, time_limit=600
                    )
                )
                verified, checking = timed(lambda found=found: found.verify(1e3))
                noise = baselines.get("clamped planar Laplace").build(found.problem).worst_case_loss(loss)
                sides = each_side(found.problem).worst_case_loss(loss)
                assert min(noise, sides) >= found.lower_bound
                rows.append({"box": str(box), "loss": loss, "eps": eps, "low": found.lower_bound, "value": found.value,
                             "gap": found.gap, "seconds": seconds, "outputs": len(found.mechanism.outputs), "noise": noise,
                             "sides": sides, "verified": bool(verified), "checking": checking})  # fmt: skip
    columns = [
        Column("box", "rectangle"), Column("loss", "loss"), Column("eps", "eps", "g"),
        Column("low", "lower bound", ".6g", "down"),
        Column("value", "value", ".6g", "up"), Column("gap", "gap", ".1e"), Column("outputs", "outputs"),
        Column("seconds", "seconds", ".2f"), Column("verified", "verified"), Column("checking", "verify, s", ".2f"),
        Column("noise", "planar Laplace, clamped", ".4g"), Column("sides", "each side with eps/2", ".4g"),
    ]  # fmt: skip
    return Report("Places in a rectangle under eps-LDP, Euclidean distance", columns, rows)


def circle(args: argparse.Namespace) -> Report:
    """The closed form."""
    rows = []
    for loss in ("abs", "squared"):
        for eps in (0.1, 0.5, 1.0, 2.0, 5.0):
            found, seconds = timed(
                lambda loss=loss, eps=eps: optdp.solve_kernel(
                    eps, loss, domain=optdp.Circle(2 * np.pi), metric="abs", rtol=args.rtol
                )
            )
            rows.append({"loss": loss, "eps": eps, "low": found.lower_bound, "value": found.value, "gap": found.gap,
                         "steps": found.mechanism.steps, "seconds": seconds, "verified": bool(found.verify())})  # fmt: skip
    columns = [
        Column("loss", "loss"), Column("eps", "eps per radian", "g"), Column("low", "optimum (closed form)", ".10g"),
        Column("value", "value", ".10g"), Column("gap", "gap", ".1e"), Column("steps", "outputs"),
        Column("seconds", "seconds", ".2f"), Column("verified", "verified"),
    ]  # fmt: skip
    return Report("Metric privacy on the circle of angles", columns, rows)


PARTS = {"small": small, "growth": growth, "large": large, "cities": european, "plane": plane, "circle": circle}


def main() -> None:
    """Print the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=tuple(PARTS), help="only this part")
    parser.add_argument("--sizes", type=int, nargs="+", default=[16, 25, 36, 49], help="numbers of places, growth part")
    parser.add_argument("--large", type=int, nargs="+", default=[100, 225], help="numbers of places, large part")
    parser.add_argument(
        "--gaps", type=float, nargs="+", default=[1e-3, 1e-2], help="relative gaps asked for, large part"
    )
    parser.add_argument(
        "--rtol", type=float, default=1e-3, help="relative gap asked for: growth, plane and circle parts"
    )
    parser.add_argument("--eps", type=float, nargs="+", default=[0.5, 1.0, 2.0, 3.0], help="levels, plane part")
    parser.add_argument("--out", help="also write the tables to this Markdown file")
    args = parser.parse_args()
    optdp.solve_kernel(1.0, domain=optdp.Alphabet(3), metric=places(3))
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

"""Surveys: frequencies and tables beside other libraries, certificates, predicted against measured errors, large files.

    python benchmarks/surveys.py --part peers --peers peers/bin/python    # see benchmarks/peers.py for the other Python
    python benchmarks/surveys.py --part certificates                      # solve_frequency, d up to 10^6; clients per second
    python benchmarks/surveys.py --part mean --runs 2000                  # every mechanism for a mean: bias, error (minutes)
    python benchmarks/surveys.py --part column --runs 2000                # the demo's column: error of the mean (minutes)
    python benchmarks/surveys.py --part columns                           # plans of 2, 5 and 20 columns
    python benchmarks/surveys.py --part files --rows 10000000             # memory of files of any size (minutes)

Seconds are CPU seconds of one process; memory is the largest resident set that the system saw of it.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import json
import math
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import peers

import optdp
from optdp.mechanisms import baselines
from optdp.report.report import Column, Report
from optdp.statistics.answers import WHAT
from optdp.statistics.recommend import mean_variance, worst_mean


def compared(args: argparse.Namespace) -> Report:
    """The same data, eps and task as `benchmarks/peers.py`, which another Python runs, or whose output a file has."""
    told: dict[str, Any] = {}
    if args.peers and args.peers.endswith(".json"):
        told = json.loads(Path(args.peers).read_text())
    elif args.peers:
        words = [args.peers, str(Path(__file__).with_name("peers.py")), "--part", "frequencies"]
        told = json.loads(subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()[-1])
    return frequencies(told.get("frequencies", {}))


def frequencies(told: dict[str, list[list[Any]]]) -> Report:
    """optdp beside what `peers.frequencies` found: task -> rows [name, error, clients per second] or [name, what went wrong]."""
    rows: list[dict[str, Any]] = []

    def add(task: str, name: str, error: float, speed: float, best: float) -> None:
        rows.append({"task": task, "name": name, "error": error, "ratio": error / best, "speed": speed})

    for d, eps in peers.ONE:
        task, key = f"{d} categories, eps = {eps:g}", f"{d} {eps}"
        oracle: Any = optdp.solve_frequency(eps, d).mechanism
        errors, seconds = [], 0.0
        for run in range(peers.RUNS):
            column = peers.people(run, d)[:, 0]
            began = time.process_time()
            sent = oracle.randomize(column, run)
            seconds += time.process_time() - began
            value = optdp.estimate(oracle, sent, "frequencies").value
            errors.append(float(((value - peers.shares(column, d)) ** 2).sum()))
        own = float(np.mean(errors))
        add(task, "optdp solve_frequency", own, peers.RUNS * peers.PEOPLE / seconds, own)
        for name, *found in told.get(key, []):
            if len(found) == 2:
                add(task, name, found[0], found[1], own)
    sizes, task = peers.MANY, f"columns of {peers.MANY} categories, eps = {peers.TOTAL:g}"
    names = [f"c{d}" for d in sizes]
    schema = {name: optdp.Category(range(d)) for name, d in zip(names, sizes, strict=True)}
    plan, errors, seconds = optdp.plan(schema, peers.TOTAL, n=peers.PEOPLE), [], 0.0
    for run in range(peers.RUNS):
        table = peers.people(run, *sizes)
        columns = {name: table[:, j] for j, name in enumerate(names)}
        began = time.process_time()
        private = plan.randomize(columns, run)
        seconds += time.process_time() - began
        answers = plan.estimate(private)
        errors.append(
            sum(
                float(((answers[name].value - peers.shares(columns[name], d)) ** 2).sum())
                for name, d in zip(names, sizes, strict=True)
            )
        )
    own = float(np.mean(errors))
    add(
        task, f"optdp plan ({plan.reported} of {len(sizes)} columns each)", own, peers.RUNS * peers.PEOPLE / seconds, own
    )  # fmt: skip
    for name, *found in told.get(f"{'x'.join(map(str, sizes))} {peers.TOTAL}", []):
        if len(found) == 2:
            add(task, name, found[0], found[1], own)
    shown = [
        Column("task", "task"), Column("name", "library"), Column("error", "sum of squared errors", ".3e"),
        Column("ratio", "/ optdp", ".2f"), Column("speed", "clients/s", ".3g"),
    ]  # fmt: skip
    notes = [
        f"{peers.PEOPLE} people with Zipf frequencies, means over {peers.RUNS} runs; all clients of one process.",
        "optdp draws cryptographic bits and proves the ratio of what is sent; the others draw floats of a Mersenne Twister.",
    ]
    return Report("Frequencies and tables beside other libraries", shown, rows, notes)


def certificates(args: argparse.Namespace) -> Report:
    """The bracket of `solve_frequency`, and the message of two integers."""
    rows = []
    for d in (2, 3, 10, 100, 1000, 10**6):
        for eps in (0.5, 1.0, 2.0, 4.0, 10.0):
            began = time.process_time()
            best, pair = (optdp.solve_frequency(eps, d, message=m) for m in ("set", "pair"))
            seconds = time.process_time() - began
            row = {
                "d": d, "eps": eps, "value": best.value, "bound": best.lower_bound, "gap": best.gap, "pair": pair.gap,
                "verified": bool(best.verify() and pair.verify()), "ms": 1e3 * seconds,
            }  # fmt: skip
            if d <= 10 and args.plain:
                plain: Any = optdp.solve_frequency(eps, d, backend="plain").program.objective
                row["plain"] = abs(plain - best.value) / best.value
            if d == 1000:
                oracle, x = pair.mechanism, np.random.default_rng(0).integers(0, d, 10**6)
                oracle.randomize(x[:1000], None)
                began = time.process_time()
                oracle.randomize(x, None)
                row["speed"] = x.size / (time.process_time() - began)
            rows.append(row)
    shown = [
        Column("d", "categories"), Column("eps", "eps", "g"), Column("value", "value (sets)", ".10g", "up"),
        Column("bound", "certified bound", ".10g", "down"), Column("gap", "gap (sets)", ".1e"),
        Column("pair", "gap (two integers)", ".1e"), Column("plain", "|plain program - value|", ".1e"),
        Column("verified", "verified"), Column("ms", "ms", ".1f"), Column("speed", "clients/s (two integers)", ".3g"),
    ]  # fmt: skip
    return Report("solve_frequency: certificates", shown, rows)


#: People asked in `means`, surveys simulated at a time, and how near to the best a prediction is that is measured twice as long.
PEOPLE, BLOCK, CLOSE = 20_000, 50, 1.035


def surveys(mechanism: Any, people: np.ndarray, runs: int) -> np.ndarray:
    """Errors of the mean of these people in so many surveys, each estimated as users do."""
    rng, values = np.random.default_rng(7), list[float]()
    for start in range(0, runs, BLOCK):
        outputs = mechanism.randomize(np.tile(people, (min(BLOCK, runs - start), 1)), rng)
        values += [
            optdp.estimate(mechanism, tally).value for tally in optdp.Tally.each(mechanism, outputs, mean_only=True)
        ]
    return np.array(values) - people.mean()


def normal() -> tuple[np.ndarray, np.ndarray]:
    """N(40, 12) clipped to [0, 120], in steps of a half, with its atoms at the ends."""
    from scipy.stats import norm

    points = np.arange(241) / 2
    ends = np.concatenate([[-np.inf], points[:-1] + 0.25, [np.inf]])
    return points, np.diff(norm.cdf((ends - 40) / 12))


def asked(points: np.ndarray, probabilities: np.ndarray, count: int) -> np.ndarray:
    """So many people with this distribution, up to rounding."""
    place = np.searchsorted(np.cumsum(probabilities), (np.arange(count) + 0.5) / count * (1 - 1e-12))
    return points[np.minimum(place, points.size - 1)]


def mirrored(points: np.ndarray, probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Half of the people mirrored in the middle of [0, 120]: as bad for a symmetric mechanism, and no estimate is clipped."""
    both = np.concatenate([points, 120 - points])
    order = np.argsort(both, kind="stable")
    return both[order], np.tile(probabilities / 2, 2)[order]


#: How many times the runs a mechanism gets that was measured to be better than the recommended one.
LONGER = 4


def means(args: argparse.Namespace) -> list[Report]:
    """Every mechanism that `recommend` offers for a mean on [0, 120] at eps = 1: bias, predicted and measured errors."""
    return [_means(args, normal(), PEOPLE), _means(args, None, PEOPLE // 10)]


def _measured(mechanism: Any, people: np.ndarray, runs: int, predicted: float) -> dict[str, Any]:
    """Bias in units of the error, and the error itself."""
    errors = surveys(mechanism, people, runs)
    measured = float(np.sqrt(np.mean(errors**2)))
    return {"bias": float(errors.mean()) / measured, "measured": measured, "ratio": measured / predicted, "runs": runs}


def _means(args: argparse.Namespace, prior: Any, count: int) -> Report:
    """Under a prior; or (None) each mechanism at the population that is the worst one for it."""
    given = None if prior is None else tuple(values.tolist() for values in prior)
    ranked, rows = optdp.recommend((0, 120), 1.0, "mean", n=count, prior=given), []
    for row in ranked.rows:
        people = asked(*(mirrored(*worst_mean(row.mechanism)[1]) if prior is None else prior), count)
        values, times = np.unique(people, return_counts=True)
        predicted = math.sqrt(mean_variance(row.mechanism, (values, times / count)) / count)
        # Those that are close are told apart by more runs.
        runs = args.runs * (2 if prior is not None and row.ratio <= CLOSE else 1)
        rows.append(
            {
                "name": row.name, "sent": "exactly" if row.exact else "in real arithmetic", "ranked": row.error,
                "predicted": predicted, **_measured(row.mechanism, people, runs, predicted),
                "best": "recommended" if row is ranked.best else "",
            }
        )  # fmt: skip
        if args.watch:
            print(rows[-1], file=sys.stderr, flush=True)
    if prior is not None:  # what chance put before the recommended one, and that one, are measured longer
        first = next(row["measured"] for row in rows if row["best"])
        again = {row["name"]: row for row in rows if row["measured"] <= first}
        for own in ranked.rows:
            if len(again) > 1 and own.name in again:
                row = again[own.name]
                row |= _measured(own.mechanism, asked(*prior, count), LONGER * args.runs, row["predicted"])
                if args.watch:
                    print(row, file=sys.stderr, flush=True)
    shown = [
        Column("name", "mechanism"), Column("sent", "private"), Column("bias", "bias / error", ".3f"),
        Column("ranked", "error in the ranking", ".4f"), Column("predicted", "predicted error", ".4f"),
        Column("measured", "measured error", ".4f"), Column("ratio", "measured / predicted", ".3f"), Column("runs", "runs"),
        Column("best", ""),
    ]  # fmt: skip
    least = min(rows, key=lambda r: r["measured"])
    notes = [
        f"{count} people; refused because their outputs do not determine the mean: {', '.join(n for n, _ in ranked.refused)}.",
        f"Chance moves the bias by {1 / math.sqrt(args.runs):.3f} and the measured error by "
        f"{100 / math.sqrt(2 * args.runs):.1f} % (one standard deviation in {args.runs} runs). "
        f"The least measured error: {least['name']}; the recommended one: {ranked.best.name}.",
    ]
    where = "under the prior N(40, 12), clipped to [0, 120]" if prior else "each at the worst population for it"
    return Report(f"Error of the mean, eps = 1, {where}", shown, rows, notes)


def column(args: argparse.Namespace) -> Report:
    """The error of the mean on the demo's column: the default of `optdp randomize` beside the published mechanisms."""
    from optdp.report.evaluate import DATASETS, load_column

    data, described = load_column("randhie", "disea")[0], "Chronic diseases (RAND Health Insurance Experiment)"
    ends = DATASETS["randhie"]["disea"]
    problem = optdp.Problem(optdp.LDP(1.0), ends, "abs")
    best = optdp.recommend(ends, 1.0, "mean", n=data.size).best
    made = {f"default of randomize: {best.name}": best.mechanism}
    made["piecewise, linear placement"] = optdp.solve_piecewise(
        1.0, 3, "squared", domain=ends, placement="linear"
    ).mechanism
    made |= {
        name: m for name, known in baselines.baselines("interval", "ldp").items() if (m := known.make(problem)) is not None
    }  # fmt: skip
    values, times = np.unique(data, return_counts=True)
    predictions: dict[str, float] = {}
    for name, mechanism in made.items():
        with contextlib.suppress(optdp.NotIdentified):
            predictions[name] = math.sqrt(mean_variance(mechanism, (values, times / data.size)) / data.size)
    rows = []
    for name, predicted in predictions.items():
        close = predicted <= CLOSE * min(predictions.values())
        errors = np.abs(surveys(made[name], data, args.runs * (2 if close else 1)))
        sent = "exactly" if made[name].satisfies(problem.privacy) else "in real arithmetic"
        rows.append(
            {
                "name": name, "sent": sent, "predicted": predicted * math.sqrt(2 / math.pi), "measured": errors.mean(),
                "deviation": errors.std() / math.sqrt(errors.size), "runs": errors.size,
            }
        )  # fmt: skip
        if args.watch:
            print(rows[-1], file=sys.stderr, flush=True)
    shown = [
        Column("name", "mechanism"), Column("sent", "private"), Column("predicted", "predicted E|error|", ".4f"),
        Column("measured", "measured E|error|", ".4f"), Column("deviation", "+-", ".4f"), Column("runs", "runs"),
    ]  # fmt: skip
    least = min(rows, key=lambda r: r["measured"])
    notes = [f"{data.size} people, eps = 1. The least measured error: {least['name']}."]
    return Report(f"{described}: error of the mean", shown, rows, notes)


def columns(args: argparse.Namespace) -> Report:
    """Each strategy of a plan: its predicted and its measured error, on evenly spread data."""
    rows, n = [], 2000
    kinds: dict[str, list[optdp.Category | optdp.Number]] = {
        "categories": [optdp.Category(range(4))], "numbers": [optdp.Number(0, 1)],
        "both": [optdp.Category(range(10)), optdp.Number(0, 120), optdp.Flag()],
    }  # fmt: skip
    for k in (2, 5, 20):
        for kind, some in kinds.items():
            schema = {f"c{j}": some[j % len(some)] for j in range(k)}
            for eps in (1.0, 4.0):
                chosen = optdp.plan(schema, eps, n=n)
                measured, predicted = {}, {}
                for strategy in ("split", "sample", "joint"):
                    if strategy == "joint" and (kind == "numbers" or (kind == "both" and k == 2)):
                        continue  # fewer than two categories
                    plan = optdp.plan(schema, eps, n=n, strategy=strategy)
                    predicted[strategy] = min(error for _, error in plan.compared)
                    measured[strategy] = plan_error(plan, n, args.runs)
                better = min(measured, key=lambda s: measured[s])
                took = min(chosen.compared, key=lambda row: row[1])[0].split()[0]
                rows.append(
                    {"k": k, "kind": kind, "eps": eps, "took": took, "better": better}
                    | {f"{s} predicted": predicted[s] for s in measured}
                    | {f"{s} measured": measured[s] for s in measured}
                )
    shown = [Column("k", "columns"), Column("kind", "of"), Column("eps", "eps", "g")]
    shown += [
        Column(f"{s} {w}", f"{s}, {w}", ".4f") for s in ("split", "sample", "joint") for w in ("predicted", "measured")
    ]
    shown += [Column("took", "plan takes"), Column("better", "better measured")]
    right = sum(row["took"] == row["better"] for row in rows)
    notes = [
        f"Root mean square errors in units of the columns' widths, {n} people, {args.runs} runs; sampling with the best number.",
        f"The plan takes the better one in {right} of {len(rows)} cases.",
    ]
    return Report("Splitting the budget, sampling columns, or answering categories together", shown, rows, notes)


def plan_error(plan: optdp.Plan, n: int, runs: int) -> float:
    """Measured in the way in which plans predict it, on evenly spread data."""
    rng, squares = np.random.default_rng(len(plan.parts)), []
    for _ in range(runs):
        table, truth = {}, {}
        for part in plan.parts:
            kind: Any = part.column
            if WHAT[part.goal] == "frequencies":
                table[part.name] = rng.choice(np.array(kind.names), n)
                truth[part.name] = np.array([np.mean(table[part.name] == name) for name in kind.names])
            else:
                table[part.name] = kind.lower + (kind.upper - kind.lower) * rng.random(n)
                truth[part.name] = table[part.name].mean()
        answers, each = plan.estimate(plan.randomize(table, rng)), []
        for part in plan.parts:
            sent = answers.outputs[part.name][1]
            oracle: Any = part.mechanism
            if WHAT[part.goal] == "frequencies":
                found, width = oracle.decode(sent), 1.0
            else:
                found, width = optdp.estimate(oracle, sent).value, oracle.domain.width
            each.append(np.mean((found - truth[part.name]) ** 2) / width**2)
        squares.append(np.mean(each))
    return math.sqrt(float(np.mean(squares)))


SCHEMA = {"age": optdp.Number(0, 120), "job": optdp.Category(["a", "b", "c", "d"]), "smoker": optdp.Flag()}
CHILD = """
import resource, sys, time, optdp
plan = optdp.Plan.load(sys.argv[1])
began = time.process_time()
rows = plan.randomize(sys.argv[2], target=sys.argv[3])
middle = time.process_time()
found = plan.estimate(sys.argv[3])
low, high = found["age"].interval
end = time.process_time()
print(rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, middle - began, end - middle, low, high)
"""


def large_files(args: argparse.Namespace) -> Report:
    """A CSV and a Parquet file made private, and estimated, by a process of its own each."""
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        optdp.plan(SCHEMA, 2.0, n=args.rows).save(folder / "plan.json")
        for suffix in ("csv", "parquet"):
            total = write_people(folder / f"people.{suffix}", args.rows)
            words = [str(folder / text) for text in ("plan.json", f"people.{suffix}", f"private.{suffix}")]
            printed = subprocess.run([sys.executable, "-c", CHILD, *words], check=True, capture_output=True, text=True)
            count, memory, first, second, low, high = map(float, printed.stdout.split())
            rows.append(
                {
                    "kind": suffix, "rows": int(count), "size": (folder / f"people.{suffix}").stat().st_size / 2**20,
                    "memory": memory, "randomize": first, "estimate": second, "low": low, "truth": total / args.rows,
                    "high": high,
                }
            )  # fmt: skip
            for path in folder.glob(f"*.{suffix}"):
                path.unlink()
    shown = [
        Column("kind", "file"), Column("rows", "rows"), Column("size", "MB of the file", ".0f"),
        Column("memory", "peak memory, MB", ".0f"), Column("randomize", "randomize, s", ".0f"),
        Column("estimate", "estimate, s", ".0f"), Column("low", "mean age: low", ".3f"), Column("truth", "truth", ".3f"),
        Column("high", "high", ".3f"),
    ]  # fmt: skip
    return Report("Files of any size", shown, rows)


def write_people(path: Path, rows: int) -> float:
    """Three columns, in parts. **Returns** the sum of the ages."""
    import pyarrow as pa
    from pyarrow import parquet

    rng, total, size = np.random.default_rng(0), 0.0, 100_000
    with path.open("w", newline="") if path.suffix == ".csv" else path.open("wb") as sink:
        writer: Any = csv.writer(sink) if path.suffix == ".csv" else None
        if writer is not None:
            writer.writerow(SCHEMA)
        for start in range(0, rows, size):
            count = min(size, rows - start)
            age = np.round(rng.normal(40, 12, count).clip(0, 120), 1)
            job, smoker = rng.choice(["a", "b", "c", "d"], count), rng.random(count) < 0.2
            total += float(age.sum())
            if path.suffix == ".csv":
                writer.writerows(zip(age.tolist(), job.tolist(), smoker.tolist(), strict=True))
            else:
                table = pa.table({"age": age, "job": job.tolist(), "smoker": smoker})
                writer = writer or parquet.ParquetWriter(sink, table.schema)
                writer.write_table(table)
        if path.suffix == ".parquet":
            writer.close()
    return total


PARTS: dict[str, Any] = {
    "peers": compared, "certificates": certificates, "mean": means, "column": column, "columns": columns, "files": large_files,
}  # fmt: skip


def main() -> None:
    """Print the parts asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=tuple(PARTS), help="only this part")
    parser.add_argument(
        "--peers", metavar="PYTHON", help="a Python that has multi-freq-ldpy and pure-ldp, or what peers.py printed"
    )
    parser.add_argument(
        "--plain", action="store_true", help="certificates: the plain program over all 2^d sets too, d <= 10"
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the files")
    parser.add_argument("--runs", type=int, default=100, help="of the measured errors")
    parser.add_argument("--watch", action="store_true", help="mean, column: tell of each mechanism as it is done")
    parser.add_argument("--out", help="also write the tables to this Markdown file")
    args = parser.parse_args()
    texts = []
    for name in [args.part] if args.part else list(PARTS):
        told = PARTS[name](args)
        for report in told if isinstance(told, list) else [told]:
            print(report.to_text(), end="\n\n", flush=True)
            texts.append(report.to_markdown())
    if args.out:
        from optdp import files

        files.write_text(args.out, "\n".join(texts))


if __name__ == "__main__":
    main()

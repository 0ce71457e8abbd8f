"""Calls of the public functions, and command lines, with arguments that are often not what they should be.

    python -m tests.soak_calls --calls 50000 --lines 5000 --processes 200

A call is silently wrong if it ends in anything but a result that holds or a sentence (ValueError, TypeError or RuntimeError): an
uncaught exception, a bracket that does not verify or is not finite, an output that is not finite or of another shape.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import math
import random
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np

import optdp
from optdp.cli import main as command

#: What may be given for anything.
HOSTILE = [
    0,
    -0.0,
    -1,
    1e-9,
    1e-320,
    30.1,
    1e308,
    1e155,
    math.inf,
    -math.inf,
    math.nan,
    True,
    None,
    "",
    "x",
    "1/0",
    "log(0)",
    "1e999",
    b"1",
    1j,
    10**400,
    -(10**400),
    Decimal("0.1"),
    Fraction(1, 10**40),
    np.float32(0.5),
    np.int64(2),
    np.array(1.0),
    np.array([1.0]),
    np.array([]),
    np.array([[1.0, 2.0]]),
    [],
    [1.0],
    (),
    {},
    {"a": 1},
    set(),
    object(),
    len,
    np.ma.masked_array([1.0, 2.0], [True, False]),
    np.array(["a"]),
    np.array([None]),
    np.array([1.0, np.nan]),
    "0.1",
    "log(3)",
    range(3),
    optdp,
    optdp.Interval,
    float,
]
EPS = [0.5, 1, 1.0, 2.0, "0.1", "1/2", Fraction(1, 3), 1e-9, 0.01, 10.0, 30, np.float64(1.5), np.int64(1)]
LOSS = [
    "abs",
    "squared",
    "l1",
    "l2",
    optdp.Power(1.5),
    optdp.Huber(0.2),
    optdp.Threshold(0.25),
    lambda d: d,
    optdp.Pinball(0.3),
    optdp.Power(100),
]
DOMAIN = [
    (0, 1),
    (-1.0, 1.0),
    (0, 1e-200),
    (1e15, 1e15 + 1),
    (-1e100, 1e100),
    optdp.Interval(0, 60),
    optdp.Circle(1.0),
    (0, 1e300),
]
SMALL = {"time_limit": [0.5], "rtol": [0.2, 0.5]}
PRIOR = [[0.5, 0.5], [0.5, 0.3, 0.2], {"a": 0.5, "b": 0.5}, [1e-12, 1 - 1e-12], [0.25] * 4]
MATRIX = [[[0, 1], [1, 0]], (1 - np.eye(3)).tolist(), [[0.0, 2.0, 1.0]] * 2]

#: Each function with good arguments; calls leave some out and replace some by hostile ones.
SOLVES = {
    optdp.solve_piecewise: {
        "eps": EPS,
        "m": [2, 3, 7],
        "loss": LOSS,
        "domain": DOMAIN,
        "placement": ["centred", "linear"],
        "rtol": [1e-6],
    },
    optdp.solve_ptt: {"eps": EPS, "kind": ["I", "II", "free"], "objective": ["worst", 0.5, -1]},
    optdp.solve_composite: {
        "eps": EPS,
        "activation": ["A1", "A2", "A3"],
        "base": ["B1", "B2"],
        "sensitivity": [1.0, 5.0],
        "lower": [0.0, 10.0],
    },
    optdp.solve_additive: {
        "eps": [0.5, 1.0, "2"],
        "delta": [0.1, 0.3, "0.2"],
        "loss": LOSS[:5],
        "sensitivity": [1.0, 3.0],
        "discrete": [True, False],
        **SMALL,
    },
    optdp.solve_kernel: {
        "eps": [0.5, 1.0, "2"],
        "loss": LOSS[:4],
        "domain": DOMAIN[:4],
        "unbiased": [False, True],
        "outputs": [None, (0, 1)],
        "prior": [None, ([0.0, 1.0], [0.5, 0.5])],
        **SMALL,
    },
    optdp.solve_lip: {
        "prior": PRIOR,
        "eps": EPS,
        "task": ["sum", "histogram"],
        "values": [None, [0, 1], [1, 2, 5]],
        "notion": ["lip", "lip-lower", "ldp"],
    },
    optdp.solve_frequency: {"eps": EPS, "categories": [2, 5, 100, ["a", "b"]], "message": ["auto", "set", "pair"]},
}
MAKES = {
    optdp.Interval: {"lower": [0, -1.0, 1e15], "upper": [1, 5.0, 2e15]},
    optdp.Circle: {"period": [1.0, 6.28], "start": [0.0, 1.0]},
    optdp.Alphabet: {"symbols": [3, ["a", "b"], 10]},
    optdp.OneHot: {"categories": [3, 10]},
    optdp.LDP: {"eps": EPS},
    optdp.ApproxDP: {"eps": EPS, "delta": [0, 0.1, "1/10"], "sensitivity": [1.0, 2.0]},
    optdp.GDP: {"mu": EPS},
    optdp.RDP: {"alpha": [2, 1.5], "bound": [0.5]},
    optdp.KL: {"bound": [0.5]},
    optdp.Profile: {"pairs": [[(1.0, 0.1)], [(0.5, 0.2), (1, 0)]]},
    optdp.LIP: {"eps": EPS, "prior": PRIOR},
    optdp.Power: {"exponent": [0.5, 2]},
    optdp.Huber: {"c": [1.0]},
    optdp.Threshold: {"t": [0.5]},
    optdp.Pinball: {"tau": [0.3]},
    optdp.Pieces: {"knots": [(0, 1)], "coefficients": [((0, 1), (1, 1))]},
    optdp.Prior.of: {"prior": PRIOR},
    optdp.log: {"argument": [3, "5/2", Fraction(7, 2)]},
    optdp.Outputs: {"low": [0.0], "high": [1.0]},
    optdp.WorstCase: {"loss": LOSS},
    optdp.Average: {"loss": LOSS, "prior": ["uniform", ([0.0, 1.0], [0.5, 0.5])]},
    optdp.At: {"loss": LOSS, "x": [0.5]},
}
#: What the arguments of these are called where it is not as above.
POSITIONAL = set(MAKES)
SENTENCES = (ValueError, TypeError, RuntimeError)


@cache
def mechanisms():
    """Mechanisms with good inputs for them."""
    grid = np.linspace(0, 1, 5)
    return (
        (optdp.solve_piecewise(1.0).mechanism, grid),
        (optdp.solve_piecewise(1.0, domain=optdp.Circle(1.0)).mechanism, grid[:-1]),
        (optdp.solve_ptt(1.0).mechanism, grid),
        (optdp.solve_kernel(1.0, rtol=0.05).mechanism, grid),
        (optdp.solve_composite(1.0, "A2").mechanism, grid / 2),
        (optdp.solve_additive(1.0, 0.1, rtol=0.1).mechanism, 100 * grid),
        (optdp.solve_additive(1.0, 0.1, discrete=True).mechanism, np.arange(5)),
        (optdp.solve_additive(20.0).mechanism, grid),
        (optdp.solve_frequency(1.0, 5, message="set").mechanism, np.arange(5)),
        (optdp.solve_frequency(1.0, 12, message="pair").mechanism, np.arange(5)),
        (optdp.solve_kernel(1.0, 1 - np.eye(3), domain=optdp.Alphabet(3)).mechanism, np.arange(3)),
        (optdp.solve_lip([0.5, 0.3, 0.2], 1.0).mechanism, np.arange(3)),
    )


def arguments(spec, rng, most=0.25):
    """Good ones, of which some are missing and some hostile."""
    out = {}
    for place, (name, good) in enumerate(spec.items()):
        if place and rng.random() < 0.5:
            continue
        out[name] = rng.choice(HOSTILE) if rng.random() < most else rng.choice(good)
    return out


def holds(found):
    """What is wrong with a result, or None."""
    if isinstance(found, optdp.Solution):
        if not 0 <= found.lower_bound <= found.value < math.inf:
            return f"[{found.lower_bound}, {found.value}]"
        with contextlib.suppress(RuntimeError):  # more work than is allowed
            if not (verdict := found.verify(3.0)):
                return str(verdict)
    return None


def call(rng):
    """(what is called, a function that calls and says what is wrong)."""
    kind = rng.random()
    if kind < 0.35:
        function = rng.choice(list(SOLVES))
        given = arguments(SOLVES[function], rng, rng.choice((0.05, 0.3, 0.6)))
        given |= {k: v[0] for k, v in SMALL.items() if k in SOLVES[function] and k not in given}
        if "time_limit" in given and not isinstance(given["time_limit"], str | bytes | bool):
            given["time_limit"] = 0.5
        return f"{function.__name__}({given})", lambda: holds(function(**given))
    if kind < 0.6:
        function = rng.choice(list(MAKES))
        given = tuple(arguments(MAKES[function], rng).values())

        def made():
            thing = function(*given)
            text = repr(thing)
            return None if text and "nan" not in text.lower().split("(")[-1].split(",") else f"it is {text}"

        return f"{getattr(function, '__qualname__', function)}{given}", made
    mechanism, good = rng.choice(mechanisms())
    x = (
        rng.choice(HOSTILE)
        if rng.random() < 0.4
        else rng.choice([good, good[0], good.tolist(), good[:0], good.reshape(1, -1), good[::-1]])
    )
    method = rng.choice(
        [
            "randomize",
            "randomize",
            "density",
            "probability",
            "mean",
            "variance",
            "expected_loss",
            "support",
            "satisfies",
            "estimate",
        ]
    )
    other = rng.choice(HOSTILE) if rng.random() < 0.3 else rng.choice([0.5, 1, None])

    def asked():
        if method == "randomize":
            y = np.asarray(mechanism.randomize(x, rng.randrange(100)))
            if y.dtype.kind == "f" and not np.isfinite(y).all():
                return f"it sends {y}"
            if y.shape[: np.ndim(x)] != np.shape(x):
                return f"the shape is {y.shape} for {np.shape(x)}"
        elif method in ("density", "probability"):
            y = getattr(mechanism, method)(other, x)
            if np.isnan(y).any() or (np.asarray(y) < 0).any():
                return f"it is {y}"
        elif method == "expected_loss":
            y = mechanism.expected_loss(x, rng.choice(LOSS) if rng.random() < 0.7 else other)
            if np.isnan(y).any() or (np.asarray(y) < 0).any():
                return f"it is {y}"
        elif method == "satisfies":
            given = optdp.LDP(rng.choice(EPS)) if rng.random() < 0.7 else other
            if mechanism.satisfies(given) not in (True, False, None):
                return "no answer"
        elif method == "estimate":
            sent = mechanism.randomize(np.resize(good, 50), 1) if rng.random() < 0.6 else x
            what = rng.choice(["mean", "quantile", "cdf", "histogram", "frequencies", other])
            found = optdp.estimate(mechanism, sent, what)
            if np.isnan(np.asarray(found.value, dtype=float)).any():
                return f"it is {found}"
        else:
            y = getattr(mechanism, method)(x)
            if np.isnan(np.asarray(y, dtype=float)).any():
                return f"it is {y}"
        return None

    return f"{type(mechanism).__name__}.{method}({x!r}, {other!r})", asked


def judged_call(number):
    """("result", "sentence" or "wrong", what)."""
    rng = random.Random(number)
    name, asked = call(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            wrong = asked()
        except SENTENCES as error:
            deep = traceback.extract_tb(error.__traceback__)[-1].filename
            told = str(error)
            # A sentence is this library's own, not one of numpy's or Python's about the insides.
            return (
                "sentence" if told and type(error).__name__ != "Refusal" else "wrong"
            ), f"{name}: {type(error).__name__} {told} ({deep})"
        except Exception:
            return "wrong", f"{name}\n{traceback.format_exc()}"
    return ("wrong", f"{name}: {wrong}") if wrong else ("result", name)


# --- command lines

WORDS = {
    "solve piecewise": {
        "--eps": ["1", "1/2", "log(3)"],
        "--m": ["2", "3"],
        "--loss": ["abs", "squared", "power:1.5", "huber:0.2"],
        "--circle": ["2"],
        "--domain": ["0 1"],
        "--json": [""],
    },
    "solve ptt": {"--eps": ["1", "2"], "--kind": ["I", "II", "free"], "--json": [""]},
    "solve composite": {"--eps": ["1", "2"], "--activation": ["A1", "A2"], "--base": ["B1", "B2"]},
    "solve additive": {
        "--eps": ["1", "1/2"],
        "--delta": ["0.1", "0.3"],
        "--loss": ["abs", "squared"],
        "--rtol": ["0.2"],
        "--time-limit": ["1"],
        "--discrete": [""],
    },
    "solve kernel": {
        "--eps": ["1", "1/2"],
        "--loss": ["abs", "squared"],
        "--rtol": ["0.2"],
        "--time-limit": ["1"],
        "--unbiased": [""],
        "--json": [""],
    },
    "solve lip": {"--prior": ["0.1,0.9", "0.5,0.3,0.2"], "--eps": ["1", "1/2"], "--task": ["histogram", "sum"]},
    "compare": {"--eps": ["1", "2"], "--loss": ["abs", "squared"]},
    "problems": {"--markdown": [""]},
    "verify": {"": ["SOLUTION", "TABLE", "-", "missing.json"]},
    "randomize": {
        "--eps": ["1", "log(3)"],
        "--column": ["age", "name"],
        "--lower": ["0"],
        "--upper": ["120", "30"],
        "--keep": ["name", "id"],
        "--clip": [""],
        "--seed": ["1"],
        "": ["TABLE OUT"],
    },
}
BAD_WORDS = [
    "",
    "0",
    "-1",
    "nan",
    "inf",
    "1e400",
    "x",
    "1/0",
    "log(0)",
    "--eps",
    "--help=1",
    "1_0",
    "\u0661",
    "9" * 400,
    "-",
    "/",
    "/dev/null",
    "TABLE",
    "SOLUTION",
    "1 2 3",
    "power:x",
    "huber:-1",
    "\x00",
    "é",
    "--json",
    "1e-320",
]


@cache
def folder():
    """A folder with a table and a solution."""
    place = Path(tempfile.mkdtemp(prefix="optdp-soak-"))
    (place / "table.csv").write_text("id,name,age\n1,ada,36\n2,bob,41\n3,eve,29\n")
    optdp.solve_piecewise(1.0).save(place / "solution.json")
    return place


def line(rng):
    """The words of a command line."""
    name = rng.choice(list(WORDS))
    words = name.split()
    for option, values in WORDS[name].items():
        if rng.random() < (0.15 if option in ("--eps", "--prior", "", "--column", "--lower", "--upper") else 0.6):
            continue
        value = rng.choice(BAD_WORDS) if rng.random() < 0.15 else rng.choice(values)
        words += ([option] if option else []) + value.split(" " if option != "" or " " in value else None)
    if rng.random() < 0.1:
        words.insert(rng.randrange(len(words) + 1), rng.choice(BAD_WORDS))
    replaced = {"TABLE": "table.csv", "SOLUTION": "solution.json", "OUT": "out.csv"}
    return [str(folder() / replaced[w]) if w in replaced else w for w in words if w != ""]


def judged_line(number, *, process=False):
    """As `judged_call`."""
    words = line(random.Random(-number - 1))
    if process:
        if any("\x00" in w for w in words):
            return "sentence", "a NUL cannot be passed"
        try:
            ended = subprocess.run(
                [sys.executable, "-m", "optdp", *words],
                capture_output=True,
                text=True,
                timeout=300,
                stdin=subprocess.DEVNULL,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return "wrong", f"{words}: no end"
        status, out, err = ended.returncode, ended.stdout, ended.stderr
    else:
        stdout, stderr, before = io.StringIO(), io.StringIO(), sys.stdin
        sys.stdin = io.TextIOWrapper(io.BytesIO(b""))
        try:
            with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    status = command(words)
                except SystemExit as ended:
                    status = ended.code
        except Exception:
            return "wrong", f"{words}\n{traceback.format_exc()}"
        finally:
            sys.stdin = before
        out, err = stdout.getvalue(), stderr.getvalue()
    if status not in (0, 1, 2) or "Traceback" in err or (status == 0 and ("FAIL" in out or "NOT verified" in out)):
        return "wrong", f"{words}: status {status}\n{out}\n{err}"
    if status == 2 and not err.strip() and "NOT verified" not in out:
        return "wrong", f"{words}: status 2 without a word\n{out}"
    return ("result" if status == 0 else "sentence"), f"{words}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=50_000)
    parser.add_argument("--lines", type=int, default=5000)
    parser.add_argument("--processes", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    began, bad, slowest = time.process_time(), 0, (0.0, "")
    for title, judge, count in (
        ("calls", judged_call, args.calls),
        ("command lines", judged_line, args.lines),
        ("processes", lambda n: judged_line(n, process=True), args.processes),
    ):
        seen = Counter()
        for number in range(args.first, args.first + count):
            start = time.process_time()
            verdict, what = judge(number)
            slowest = max(slowest, (time.process_time() - start, what[:200]))
            seen[verdict] += 1
            if verdict == "wrong":
                bad += 1
                print(f"WRONG {title} {number}: {what}", flush=True)
        told = f"{seen['result']} results that hold, {seen['sentence']} refused with a sentence"
        print(f"{count} {title}: {told}; silently wrong: {seen['wrong']}", flush=True)
    print(f"{time.process_time() - began:.0f} s of CPU; the slowest took {slowest[0]:.1f} s: {slowest[1]}")
    return 1 if bad else 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Solves with solvers that fail (`tests.faults`): every one must end in a true bracket with a status, or in a clear error.

    python -m tests.soak_faults --count 1000

Wrong is a bracket that does not verify or contradicts the one of a sound solver, and any other exception than a sentence.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import time
import traceback
import warnings
from collections import Counter
from functools import cache

import numpy as np

import optdp
from optdp.solvers.lp import SolverFailure
from tests import checkers, faults

HAMMING = np.ones((4, 4)) - np.eye(4)
LETTERS = optdp.Alphabet(4)
PRIOR = [0.4, 0.3, 0.2, 0.1]
WIDE = np.arange(1, 31) / np.arange(1, 31).sum()
POINTS = ([0.0, 0.5, 1.0], [0.25, 0.25, 0.5])
ROUGH = {"rtol": 0.02, "time_limit": 5.0}

#: Solves that take a solver.
LINEAR = {
    "kernel": lambda s: optdp.solve_kernel(1.0, solver=s, **ROUGH),
    "kernel squared": lambda s: optdp.solve_kernel(2.0, "squared", solver=s, **ROUGH),
    "kernel unbiased": lambda s: optdp.solve_kernel(1.0, unbiased=True, solver=s, **ROUGH),
    "kernel eps=10": lambda s: optdp.solve_kernel(10.0, solver=s, rtol=0.1, time_limit=5.0),
    "kernel points": lambda s: optdp.solve_kernel(1.0, prior=POINTS, solver=s, **ROUGH),
    "kernel uniform": lambda s: optdp.solve_kernel(1.0, prior="uniform", solver=s, **ROUGH),
    "kernel pinball": lambda s: optdp.solve_kernel(1.0, optdp.Pinball(0.3), solver=s, **ROUGH),
    "kernel dense": lambda s: optdp.solve_kernel(1.0, solver=s, backend="dense", **ROUGH),
    "kernel dense unbiased": lambda s: optdp.solve_kernel(1.0, unbiased=True, solver=s, backend="dense", **ROUGH),
    "finite": lambda s: optdp.solve_kernel(1.0, HAMMING, domain=LETTERS, solver=s, **ROUGH),
    "finite prior": lambda s: optdp.solve_kernel(1.0, HAMMING, domain=LETTERS, prior=PRIOR, solver=s, **ROUGH),
    "additive": lambda s: optdp.solve_additive(1.0, 0.1, solver=s, **ROUGH),
    "additive squared": lambda s: optdp.solve_additive(1.0, 0.01, "squared", solver=s, **ROUGH),
    "additive delta=0": lambda s: optdp.solve_additive(1.0, solver=s, **ROUGH),
    "additive discrete": lambda s: optdp.solve_additive(1.0, 0.05, discrete=True, solver=s, **ROUGH),
    "additive GDP": lambda s: optdp.solve_additive(optdp.GDP(1.0), solver=s, rtol=0.1, time_limit=5.0),
    "additive Profile": lambda s: optdp.solve_additive(
        optdp.Profile([(0.5, 0.1), (1.0, 0.02)]), solver=s, rtol=0.1, time_limit=5.0
    ),
    "lip": lambda s: optdp.solve_lip(PRIOR, 1.0, solver=s),
    "lip histogram": lambda s: optdp.solve_lip(PRIOR, 1.0, task="histogram", solver=s),
    "lip ldp": lambda s: optdp.solve_lip(PRIOR, 1.0, notion="ldp", solver=s),
    "lip columns": lambda s: optdp.solve_lip(PRIOR, 1.0, backend="columns", solver=s),
    "lip many": lambda s: optdp.solve_lip(WIDE, 1.0, values=range(30), solver=s, rtol=1e-2, time_limit=5.0),
    "lip many histogram": lambda s: optdp.solve_lip(WIDE, 1.0, task="histogram", solver=s, rtol=1e-2, time_limit=5.0),
    "ptt lp": lambda s: optdp.solve(optdp.solve_ptt(1.0, "free").problem, method="lp", cells=20, solver=s),
}  # fmt: skip
#: Solves that bring HiGHS.
OWN = {
    "finite cuts": lambda: optdp.solve_kernel(1.0, HAMMING, domain=LETTERS, **ROUGH),
    "lip levels": lambda: optdp.solve_lip(WIDE, 1.0, task="histogram", notion="ldp", rtol=1e-2, time_limit=5.0),
}
NONLINEAR = {
    "piecewise scip": lambda: optdp.solve_piecewise(1.0, backend="scip", time_limit=3.0),
    "ptt scip": lambda: optdp.solve_ptt(1.0, backend="scip", time_limit=3.0),
    "composite scip": lambda: optdp.solve_composite(1.0, backend="scip", time_limit=3.0),
}
CONIC = {
    "additive KL": lambda: optdp.solve_additive(optdp.KL(0.5), rtol=0.2, time_limit=5.0),
    "additive RDP": lambda: optdp.solve_additive(optdp.RDP(2, 0.5), rtol=0.2, time_limit=5.0),
    "lip cvxpy": lambda: optdp.solve_lip(PRIOR, 1.0, backend="cvxpy"),
    "frequency plain": lambda: optdp.solve_frequency(1.0, 4, backend="plain"),
}
#: What the two checkers said of the solutions.
COMPARED: Counter[str] = Counter()
#: Calls before the first fault, one in how many.
RHYTHMS = ((0, 1), (0, 2), (1, 1), (2, 3), (5, 1))


def cases():
    """(name, fault, how): all of them, problems and faults varying fastest."""
    kinds = [
        *((name, "solver") for name in LINEAR),
        *((name, "own") for name in OWN),
        *((name, "conic") for name in CONIC),
    ]
    kinds += [(name, "nonlinear") for name in NONLINEAR]
    for number in itertools.count():
        for k, (name, kind) in enumerate(kinds):
            # Every fault meets every problem, in an order in which a short run sees all of both.
            fault = faults.ANSWERS[(7 * number + 3 * k) % len(faults.ANSWERS)]
            yield name, kind, fault, RHYTHMS[(number + k) % len(RHYTHMS)], number


def call(name, kind, fault, rhythm, number):
    """The solution."""
    after, every = rhythm
    if kind == "solver":
        return LINEAR[name](faults.Faulty(fault, after, every, number))
    table, broken = {
        "own": (OWN, lambda: faults.linear(fault, after=after, every=every)),
        "conic": (CONIC, lambda: faults.conic(fault, number)), "nonlinear": (NONLINEAR, lambda: faults.nonlinear(fault, number)),
    }[kind]  # fmt: skip
    with broken():
        return table[name]()


@cache
def sound(name):
    """The bracket by sound solvers."""
    made = {**OWN, **CONIC, **NONLINEAR}
    with contextlib.suppress(KeyError):
        return made[name]()
    return LINEAR[name](None)


def judged(name, kind, fault, rhythm, number):
    """("bracket", "optimal" or "refused", what) or ("wrong", what is wrong)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = call(name, kind, fault, rhythm, number)
        except (SolverFailure, ValueError, RuntimeError) as error:
            text = str(error)
            if type(error) in (SolverFailure, ValueError, RuntimeError) and text and "\n" not in text:
                return "refused", f"{type(error).__name__}: {text}"
            return "wrong", traceback.format_exc()
        except Exception:
            return "wrong", traceback.format_exc()
        true = sound(name)
        verdict = found.verify()
        both = checkers.compared(found, verdict)
        COMPARED[both] += 1
    if both == checkers.DISAGREE:
        return "wrong", f"{both}: the first says {verdict}"
    if not verdict:
        return "wrong", str(verdict)
    if not 0 <= found.lower_bound <= found.value < math.inf:
        return "wrong", f"[{found.lower_bound}, {found.value}]"
    if found.lower_bound > true.value or found.value < true.lower_bound:
        return "wrong", f"[{found.lower_bound}, {found.value}] beside [{true.lower_bound}, {true.value}]"
    return ("optimal" if found.status is optdp.Status.OPTIMAL else "bracket"), found.status.name


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--part", default="0/1", help="k/n: every n-th case, from the k-th on")
    args = parser.parse_args()
    part, parts = map(int, args.part.split("/"))
    count, wrong, began, slowest = Counter(), [], time.process_time(), (0.0, "")
    for case in itertools.islice(cases(), part, args.count, parts):
        start = time.process_time()
        verdict, what = judged(*case)
        taken = time.process_time() - start
        slowest = max(slowest, (taken, str(case)))
        count[verdict] += 1
        if args.verbose:
            print(f"{verdict} {taken:.1f}s {case}: {what.splitlines()[-1] if what else ''}", flush=True)
        if verdict == "wrong":
            wrong.append(case)
            print(f"WRONG {case}\n{what}", flush=True)
    total = sum(count.values())
    print(
        f"{total} faulted solves: {count['optimal']} within the tolerance all the same, {count['bracket']} wider brackets "
        f"with a status, {count['refused']} refused with a sentence; wrong: {len(wrong)} "
        f"({time.process_time() - began:.0f} s of CPU; "
        f"the slowest took {slowest[0]:.1f} s: {slowest[1]})"
    )
    print(checkers.summary(COMPARED))
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())

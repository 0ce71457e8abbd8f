"""One noise for several releases under a total budget (eps, delta): what each way of accounting leaves for one release.

- "basic": (eps/k, delta/k) for each of k releases, or floats just below these.
- "gaussian": mu/sqrt(k)-GDP for each, mu being the largest for which mu-GDP implies (eps, delta).
- "numerical": mu'-GDP for each, where mu' is the largest, found by bisection, for which the numerical composition of the optimal
  noise itself (`optdp.mechanisms.accounting`) stays within (eps, delta): exact up to the rounding of floats. The Gaussian, of
  which sqrt(k) mu'-GDP says all, stays within it for no larger mu' than above: noise is looked for on lattices alone.
- "best": whichever of these costs least.

What comes back is the solution of the problem of *one* release. That k releases keep the budget is a theorem for the first two.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Any

from flint import ctx

from optdp.exact import Log, Number, enclosures, require
from optdp.exact.numbers import number
from optdp.mechanisms.accounting import composed_delta, gaussian_budget
from optdp.problem.privacy import GDP, ApproxDP, Privacy
from optdp.solution import Solution

ACCOUNTING = ("best", "basic", "gaussian", "numerical")
#: The solution of one release to a relative gap; with `gaussian=False` by noise on a lattice.
Trial = Callable[..., Solution]
#: Relative accuracy of the bisection for eps', and of the solutions that it tries.
ACCURACY, ROUGH = 1e-3, 2e-2
#: Shares of a budget are fractions with denominators up to this one, else floats.
SHORT = 10**9


def below(value: Number) -> float:
    """The largest float that is not above it."""
    with ctx.workprec(enclosures.PRECISION):
        return enclosures.round_down(enclosures.ball(value) if isinstance(value, Log) else Fraction(value))


def share(value: Number, parts: int) -> Number:
    """value/parts where that is short to write, else a float just below it."""
    exact = Fraction(below(value) if isinstance(value, Log) else value) / parts
    return exact if exact.denominator <= SHORT else below(exact)


def budgets(
    eps: Any, delta: Any, releases: int, sensitivity: float, accounting: str, trial: Trial, deadline: float = math.inf,
) -> dict[str, Privacy]:  # fmt: skip
    """What one of k releases may cost, by way of accounting.

    **Arguments:** `trial(privacy, rtol, gaussian=True)`: the solution of one release; `deadline`: when the bisection stops, a
    reading of `time.perf_counter`.
    """
    total = ApproxDP(number(eps, "eps"), number(delta, "delta"), sensitivity)
    releases = require.integer("releases", releases, low=1, high=10**6)
    require.choice("accounting", accounting, ACCOUNTING)
    if total.delta == 0 and accounting in ("gaussian", "numerical"):
        raise ValueError(f"accounting = {accounting!r} is not allowed with delta = 0: only basic composition keeps it")
    asked = ACCOUNTING[1:] if accounting == "best" else (accounting,)
    out: dict[str, Privacy] = {}
    if "basic" in asked:
        one = ApproxDP(share(total.eps, releases), share(total.delta, releases), sensitivity)
        out["basic"] = total if releases == 1 else one
    if total.delta == 0:
        return out
    if "gaussian" in asked:
        out["gaussian"] = GDP(gaussian_budget(total.eps, total.delta, releases), sensitivity)
    if "numerical" in asked:
        low = gaussian_budget(total.eps, total.delta, releases)
        high = 1.25 * low

        def kept(mu: float) -> bool:
            try:
                noise = trial(GDP(mu, sensitivity), ROUGH, gaussian=False).mechanism
            except ValueError:  # none was found in the time that is left
                return False
            return composed_delta(noise, below(total.eps), releases) <= below(total.delta)

        with contextlib.suppress(ValueError) if accounting == "best" else contextlib.nullcontext():
            while high - low > ACCURACY * high and time.perf_counter() < deadline:
                middle = (low + high) / 2
                low, high = (middle, high) if kept(middle) else (low, middle)
            out["numerical"] = GDP(low, sensitivity)
    return out


def solve_releases(
    eps: Any, delta: Any, releases: int, sensitivity: float, accounting: str, trial: Trial, rtol: float,
    deadline: float = math.inf,
) -> Solution:  # fmt: skip
    """The solution of one release, with the way of accounting that leaves most for it.

    **Arguments:** `trial`: see `budgets`, to end by `deadline`, a reading of `time.perf_counter`.
    """
    now = time.perf_counter()
    ways = budgets(eps, delta, releases, sensitivity, accounting, trial, now + (deadline - now) / 2)
    least = gaussian_budget(eps, delta, releases) if set(ways) != {"basic"} else 0.0

    def one(name: str, privacy: Privacy, gap: float) -> Solution:
        """Of one way; where only noise itself says that the total is kept it is noise on a lattice."""
        return trial(privacy, gap, gaussian=name != "numerical" or privacy.mu <= least)  # type: ignore[attr-defined]

    rough: dict[str, Solution] = {}
    for name, privacy in ways.items() if len(ways) > 1 else ():
        with contextlib.suppress(ValueError):  # what one way leaves may be too little to be solved
            rough[name] = one(name, privacy, ROUGH)
    # What may still be the best: its bound is below what is attained.
    attained = min((found.value for found in rough.values()), default=math.inf)
    names = [name for name in rough if rough[name].lower_bound < attained or rough[name].value == attained]
    found: list[Solution] = []
    for name in sorted(names, key=lambda name: rough[name].value) or [next(iter(ways))]:
        if found and time.perf_counter() > deadline:
            break
        made = _solved(ways[name], rtol, lambda privacy, gap, name=name: one(name, privacy, gap), rough.get(name))
        if name == "numerical":  # the noise that is returned is composed, not the one that was tried
            own: Any = ways[name]
            mu = own.mu
            while composed_delta(made.mechanism, below(number(eps, "eps")), releases) > below(number(delta, "delta")):
                mu *= 1 - ACCURACY
                if mu <= least or time.perf_counter() > deadline:  # what is kept by a theorem
                    made = _solved(GDP(least, sensitivity), rtol, trial, rough.get("gaussian"))
                    break
                made = one(name, GDP(mu, sensitivity), rtol)
            if "gaussian" not in rough and own.mu > least:  # the Gaussian may be better at what is kept by a theorem
                with contextlib.suppress(ValueError):
                    found.append(trial(GDP(least, sensitivity), rtol))
        found.append(made)
    return min(found, key=lambda solution: solution.value)


def _solved(privacy: Privacy, rtol: float, trial: Trial, rough: Solution | None) -> Solution:
    """The solution to `rtol`, or what there is already where time is too short for a better one."""
    if rough is not None:
        rough = replace(rough, program=replace(rough.program, rtol=rtol))
        if rough.gap <= rtol:
            return rough
    try:
        found = trial(privacy, rtol)
    except ValueError:
        if rough is None:
            raise
        return rough
    return found if rough is None or found.value <= rough.value else rough


def told(solution: Solution, eps: Any, delta: Any, releases: int) -> str:
    """Of how many releases the solution is one, and what says that together they keep the total."""
    one: Any = solution.problem.privacy
    theorem = isinstance(one, ApproxDP) or one.mu <= gaussian_budget(eps, delta, releases)
    why = "a theorem" if theorem else "by the composition of this noise, exact up to the rounding of floats"
    total = ApproxDP(number(eps, "eps"), number(delta, "delta"), one.sensitivity)
    return f"this is one of {releases} releases, each with noise of its own, which together keep {total}: {why}"

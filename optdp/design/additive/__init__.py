"""The optimal additive noise: one number plus noise, on the line or the integers, under every notion that has a sensitivity.

- `approximate`: (eps, delta) (truncated-Laplacian paper), by the `program` on a lattice; `narrow`: where nearly all is at 0.
- `curve`: Gaussian DP, profiles and other trade-off curves, by cuts, on `graded` meshes; `pairs`: profiles written out.
- `divergence`: KL and Renyi, by a convex program; `peak`: where their bounds are large.
- `quantile`: error bars in place of expected losses, under any of them; `packing`: small parts of the sensitivity.
- `rounded`: many integers; `releases`: one budget for several answers; `lattice`: what they share.
"""

from __future__ import annotations

import time
from typing import Any

from optdp.design.progress import ProgressLike
from optdp.design.registry import solve
from optdp.exact import require
from optdp.exact.numbers import Number
from optdp.problem.domains import Integers, Line
from optdp.problem.families import Additive
from optdp.problem.losses import CustomLoss, Loss, LossLike
from optdp.problem.objectives import Objective, WorstCase
from optdp.problem.privacy import GDP, ApproxDP, Privacy
from optdp.problem.problem import Problem
from optdp.solution import Solution
from optdp.solvers.lp import LinearSolver


def solve_additive(
    eps: Number | str | Privacy, delta: Number | str = 0.0, loss: LossLike | Objective = "abs", *, sensitivity: float = 1.0,
    rtol: float = 1e-3, discrete: bool = False, n: int | None = None, time_limit: float = 60.0, method: str = "auto",
    every_shift: bool = False, solver: LinearSolver | None = None, progress: ProgressLike = None, releases: int = 1,
    accounting: str = "best",
) -> Solution:  # fmt: skip
    """The best additive noise under (eps, delta)-differential privacy or another notion, between two certified bounds.

    **Arguments:**

    - `eps`, `delta`: the guarantee: eps in [0, 30], delta in [0, 1), not both 0; exactly: Fractions, "0.1", `optdp.log(3)`. In
      place of eps also a notion with a sensitivity of its own: `optdp.Profile`, `Curve`, `GDP`, `RDP` or `KL`. Under GDP on the
      line the noise is the Gaussian's where none was found that is better.
    - `loss`: "abs" ("l1"), "squared" ("l2"), `optdp.Power(q)`, `Huber`, `Threshold`, `Pieces`, or a convex function of the
      distance (delta > 0 only: without it noise is unbounded, and a function is known through samples on a bounded range); or
      `optdp.Quantile(0.95)`, how far error bars at that confidence reach.
    - `sensitivity`: how far apart the true values of neighbouring data sets can be.
    - `rtol`: the relative gap to reach, by refining the lattice.
    - `discrete`: noise on the integers, for integer data and sensitivity. Where they are few, nothing is refined: the program is
      exact. At larger sensitivities, from about 50 on and to 2^36, and where nearly all noise is at or near 0, bounds are
      refined up to `rtol` or in closed form, and noise is a staircase on the integers, or noise of the line that is rounded.
    - `n`: lattice points per sensitivity, in place of refinement up to `rtol`.
    - `time_limit`: seconds; the best bracket found so far is returned.
    - `method`: "simplex" (HiGHS, warm-started), "ipm" (HiGHS), "structured" (`optdp.solvers.hockeystick`, for many rows) or
      "auto"; `every_shift`: all rows from the start (the plain program, for comparison).
    - `solver`: an `optdp.solvers.LinearSolver` in place of these; where a closed form answers none is asked, as
      `solution.program.solver` then says. `progress`: see `optdp.solve`.

    - `releases`: (eps, delta) is the total budget of so many releases, each with noise of its own from the returned mechanism;
      `accounting`: "basic", "gaussian", "numerical" or "best" (`optdp.design.additive.releases`). The solution's problem is that
      of one release.

    **Returns** a `Solution`: `value` is the expected loss (or the quantile) of the noise in `mechanism`, `lower_bound` what no
    noise with this guarantee can beat.

    **Raises** TypeError or ValueError naming the argument.

    **Source:** Geng, Ding, Guo, Kumar, "Privacy and utility tradeoff in approximate differential privacy" (truncated
    Laplacian), whose two bounds this replaces by the optimum.

        >>> import optdp
        >>> solution = optdp.solve_additive(1.0, 0.01)
        >>> round(solution.lower_bound, 2), round(solution.value, 2)
        (0.91, 0.91)
        >>> optdp.solve_additive(optdp.GDP(3.0), rtol=0.1).value < 0.65 * (2 / 3.1416) ** 0.5 / 3    # 0.65 of the Gaussian's
        True
    """
    if callable(loss) and not isinstance(loss, Loss):
        loss = CustomLoss(loss, shape="convex", name=getattr(loss, "__name__", "custom"))
    if releases != 1 or accounting != "best":
        from optdp.design.additive.releases import solve_releases

        if isinstance(eps, Privacy):
            raise TypeError(
                "releases and accounting are not allowed beside a privacy notion: they are about (eps, delta). Of k releases "
                "that keep GDP(mu), RDP(alpha, bound) or KL(bound) in all, each may have GDP(mu/sqrt(k)), RDP(alpha, bound/k) or "
                "KL(bound/k)"
            )

        require.real("time_limit", time_limit, low=0.0, open_low=True)
        deadline = time.perf_counter() + time_limit

        def trial(privacy: Privacy, gap: float, gaussian: bool = True) -> Solution:
            left = max((deadline - time.perf_counter()) / 2, 0.02 * time_limit)  # more of them may be needed
            one = additive_noise(privacy, loss, discrete)
            choice = isinstance(privacy, GDP) and isinstance(one.objective, WorstCase)
            own: dict[str, Any] = {"gaussian": gaussian} if choice else {}
            return solve(one, gap, left, method, solver, progress, n=n, **own)

        return solve_releases(eps, delta, releases, sensitivity, accounting, trial, rtol, deadline)
    if isinstance(eps, Privacy):
        if delta != 0 or sensitivity != 1.0:
            raise TypeError(
                "delta and sensitivity are not allowed beside a privacy notion: it has its own (a loss is passed as loss=...)"
            )
        privacy: Privacy = eps
    else:
        privacy = ApproxDP(eps, delta, sensitivity)  # strings are read there
    own = {"every_shift": True} if every_shift else {}
    return solve(additive_noise(privacy, loss, discrete), rtol, time_limit, method, solver, progress, n=n, **own)


def additive_noise(privacy: Privacy, loss: LossLike | Objective, discrete: bool) -> Problem:
    """The problem of additive noise on the line or the integers."""
    if not isinstance(discrete, bool):
        raise TypeError(f"discrete = {discrete!r} is not allowed: it must be True or False")
    width = getattr(privacy, "sensitivity", 1.0)
    if discrete and width != int(width):
        raise ValueError(f"sensitivity = {width!r} is not allowed on the integers: it must be an integer")
    objective = loss if isinstance(loss, Objective) else WorstCase(loss)
    return Problem(privacy, Integers() if discrete else Line(), objective, Additive())

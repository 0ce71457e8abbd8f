"""OGPM's hypothesis (OGPM): for |y - x| and (y - x)^2 the optimal piecewise mechanism has three pieces.

The paper draws 10^4 epsilons and solves the m-piece program at each with a solver. Here each epsilon is decided by
proof: the bathtub certificate bounds every m at once, and the three-piece mechanism attains the bound.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from optdp.design.piecewise import solve_piecewise
from optdp.design.sweep import sweep
from optdp.exact import require
from optdp.problem.domains import as_domain
from optdp.problem.losses import as_loss
from optdp.report.report import Column, Report, Tabled

#: The relative gap below which a value and a bound count as equal.
RTOL = 1e-9


@dataclass(frozen=True, repr=False)
class HypothesisReport(Tabled):
    """What was found at each epsilon.

    - `eps`: the draws, sorted; `value`: what the three-piece mechanism attains, shape of `eps`; `bound`: what no
      mechanism with any number of pieces goes below.
    - `proven`: where value and bound agree to 1e-9 (relative) and the certificate passed its check.
    - `attack`: for each attacked epsilon, {m: the best value that local search over m pieces reached}.
    - `assumptions`: what the bounds take on trust of a user's loss, or an empty string.
    """

    eps: np.ndarray
    value: np.ndarray
    bound: np.ndarray
    proven: np.ndarray
    pieces: tuple[int, ...]
    loss: str
    attack: dict[float, dict[int, float]]
    assumptions: str = ""

    @property
    def holds(self) -> bool:
        """Whether three pieces are proven optimal at every epsilon drawn, and no attack got below a bound."""
        return bool(self.proven.all()) and self.best_attack >= -RTOL

    @property
    def gap(self) -> np.ndarray:
        """(value - bound)/value at each epsilon, of nothing 0: what more pieces could gain at most."""
        return (self.value - self.bound) / np.where(self.value > 0, self.value, 1.0)

    @property
    def best_attack(self) -> float:
        """The smallest (value reached by m pieces - bound)/bound over all attacks; infinite without attacks."""
        bounds = dict(zip(self.eps.tolist(), self.bound.tolist(), strict=True))
        return min((v / bounds[e] - 1 for e, found in self.attack.items() for v in found.values()), default=np.inf)

    def to_report(self, bins: int = 10) -> Report:
        """The draws in equal bins of epsilon: how many, how many proven, the largest gap."""
        edges = np.linspace(self.eps.min(), self.eps.max(), bins + 1)
        index = np.clip(np.searchsorted(edges, self.eps, side="right") - 1, 0, bins - 1)
        rows: list[dict[str, Any]] = [
            {"low": edges[k], "high": edges[k + 1], "draws": int(inside.sum()), "proven": int(self.proven[inside].sum()),
             "gap": float(self.gap[inside].max())}
            for k in range(bins) if (inside := index == k).any()
        ]  # fmt: skip
        columns = [Column("low", "eps from", ".4f"), Column("high", "to", ".4f"), Column("draws", "draws", "d"),
                   Column("proven", "proven", "d"), Column("gap", "largest gap", ".1e")]  # fmt: skip
        span = f"{self.pieces[0]} to {self.pieces[-1]}" if len(self.pieces) > 1 else f"{self.pieces[0]}"
        draws, left = self.eps.size, self.eps.size - int(self.proven.sum())
        verdict = f"HOLDS at {draws}" if self.holds else f"IS NOT PROVEN at {left or draws}"
        notes = [
            f"The hypothesis {verdict} of {draws} epsilons: no piecewise mechanism with {span} pieces (nor any other number), "
            "their heights the same for all inputs, beats three by more than the gap.",
            "Each row is a proof, not a sample: one certificate per epsilon, checked in exact arithmetic, valid for every m.",
        ]
        if left:
            notes[1] = (
                f"Proven: the gap is at most {RTOL:g}, by a certificate for every m, checked in exact arithmetic."
            )
        if self.assumptions:
            notes.append(f"Provided that {self.assumptions}.")
        if self.attack:
            notes.append(f"Local search with {span} pieces at {len(self.attack)} of the epsilons, in floating point: its least "
                         f"error is {self.best_attack:+.1e} of the bound away from it.")  # fmt: skip
        return Report(f"Can more than three pieces help? Loss {self.loss}", columns, rows, notes)


def check_hypothesis(
    samples: int = 10_000,
    pieces: int | Iterable[int] = range(3, 10),
    loss: Any = "abs",
    *,
    domain: Any = (0.0, 1.0),
    eps_range: tuple[float, float] = (0.01, 10.0),
    seed: int = 0,
    attack: int = 0,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> HypothesisReport:
    """Decide, at random epsilons, whether m pieces can beat three: by certificate.

    **Arguments:** `samples`: how many epsilons, drawn uniformly from `eps_range`; `pieces`: the m asked about, one
    or several, each >= 3; `loss`, `domain`: as in `solve_piecewise`; `attack`: at so many of them, SLSQP also tries to beat the
    bound with every m (a test of the certificate); `executor`, `progress`: as in `optdp.design.sweep.sweep`.

    **Returns** a `HypothesisReport`. **Raises** TypeError or ValueError naming the argument.
    """
    samples = require.integer("samples", samples, low=1)
    asked = pieces if isinstance(pieces, Iterable) and not isinstance(pieces, str) else [pieces]
    numbers = tuple(sorted({require.integer("pieces", m, low=3) for m in asked}))
    if not numbers:
        raise ValueError("pieces = () is not allowed: pieces must name at least one m >= 3")
    if not isinstance(eps_range, list | tuple) or len(eps_range) != 2:
        raise TypeError(f"eps_range = {eps_range!r} is not allowed: it must be a pair (low, high)")
    low = require.epsilon(eps_range[0], name="eps_range[0]")
    high = require.epsilon(eps_range[1], name="eps_range[1]")
    if not low < high:
        raise ValueError(f"eps_range = {eps_range!r} is not allowed: the lower end must be below the upper end")
    attacked = require.integer("attack", attack, low=0, high=samples)
    domain = as_domain(domain)
    loss = as_loss(loss, domain.exact_reach)
    rng = np.random.default_rng(require.integer("seed", seed, low=0))
    eps = np.sort(rng.uniform(low, high, samples))
    results = sweep(partial(_decide, loss=loss, domain=domain), eps.tolist(), executor=executor, progress=progress,
                    label="proving", chunksize=64)  # fmt: skip
    value, bound, proven = (np.array(column) for column in zip(*results, strict=True))
    chosen = np.sort(rng.choice(eps, attacked, replace=False)).tolist()
    tries = sweep(partial(_attack, pieces=numbers, loss=loss, domain=domain), chosen, executor=executor, progress=progress,
                  label="attacking")  # fmt: skip
    return HypothesisReport(eps, value, bound, proven, numbers, loss.name,
                            dict(zip(chosen, tries, strict=True)), str(loss.assumptions))  # fmt: skip


def _decide(eps: float, *, loss: Any, domain: Any) -> tuple[float, float, bool]:
    solution = solve_piecewise(eps, 3, loss, domain=domain)
    return solution.value, solution.lower_bound, solution.gap <= RTOL and bool(solution.verify())


def _attack(eps: float, *, pieces: tuple[int, ...], loss: Any, domain: Any) -> dict[int, float]:
    found = {
        m: solve_piecewise(eps, m, loss, domain=domain, backend="slsqp", starts=3).program.objective for m in pieces
    }
    return {m: float(value) for m, value in found.items() if value is not None}

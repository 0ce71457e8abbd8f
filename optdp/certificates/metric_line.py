"""A bound for metric privacy on an interval, d = |x - x'|, from the multipliers of a grid.

Inputs on a grid alone, with the inequalities of the grid, are a relaxation: more mechanisms, and fewer inputs that count. Their
outputs may lie anywhere, and a multiplier u_y for an output y between two grid points is taken to be linear in between. Then the
reduced loss lam_x L(x, y) + ... of `optdp.certificates.metric` is, for L = |y - x|, linear in y between the grid points, which
are the kinks too: least at one of them. (y - x)^2 is at most (cell)^2 / 4 below its chord, and so is the bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated

import numpy as np

from optdp.certificates.base import Bound, Certificate
from optdp.certificates.finite import LARGEST
from optdp.certificates.metric import FLOWS, MetricCertificate
from optdp.exact import Within, enclosures, work
from optdp.problem import Alphabet, Apart, Graph, Interval, MetricLDP, Problem, WorstCase

#: A grid has at most this many cells.
CELLS = 512


@dataclass(frozen=True)
class MetricLineCertificate(Certificate):
    """Multipliers that bound every mechanism with metric privacy from an interval to itself.

    **Arguments:** `cells`: of the grid; `weights`, `outputs`, `highs`, `lows`, `flows`: those of a `MetricCertificate` whose
    symbols and outputs are its points.

    **Proves** bounds for the worst case of |y - x| and (y - x)^2.
    """

    tag = "metric-line"
    cells: Annotated[int, Within(1, CELLS)]
    weights: Annotated[tuple[float, ...], Within(0.0, LARGEST, most=CELLS + 1)]
    outputs: Annotated[tuple[int, ...], Within(0, CELLS, most=FLOWS)]
    highs: Annotated[tuple[int, ...], Within(0, CELLS, most=FLOWS)]
    lows: Annotated[tuple[int, ...], Within(0, CELLS, most=FLOWS)]
    flows: Annotated[tuple[float, ...], Within(0.0, LARGEST, most=FLOWS)]

    def bound(self, problem: Problem) -> Bound:
        privacy, domain, objective = problem.privacy, problem.domain, problem.objective
        if (
            not isinstance(privacy, MetricLDP)
            or not isinstance(privacy.metric, Apart)
            or not isinstance(domain, Interval)
        ):
            self._refuse("it is for metric privacy with d = |x - x'| on an interval")
        if not isinstance(objective, WorstCase) or objective.loss.exponent not in (1, 2):
            self._refuse("it is for the worst case of |y - x| or (y - x)^2")
        if problem.outputs != (domain.lower, domain.upper):
            self._refuse("outputs must lie in the domain, and nothing else be asked")
        inner = MetricCertificate(self.weights, self.outputs, self.highs, self.lows, self.flows)
        found = inner.bound(on_grid(problem, self.cells)).value
        dip = Fraction(0) if objective.loss.exponent == 1 else (domain.exact_width / self.cells) ** 2 / 4
        value = enclosures.round_down(Fraction(found) - dip)
        return Bound(max(0.0, value), "dual of the privacy inequalities on a grid, exact rationals")


def on_grid(problem: Problem, cells: int) -> Problem:
    """The problem of inputs and outputs on a grid, of no larger optimum: losses are rounded down, distances up."""
    domain, eps = problem.domain, problem.privacy.eps  # type: ignore[attr-defined]
    work.count(3.0 * (cells + 1) ** 2)
    step = domain.exact_width / cells
    losses = [enclosures.round_down((k * step) ** int(problem.loss.exponent)) for k in range(cells + 1)]
    apart = np.abs(np.subtract.outer(np.arange(cells + 1), np.arange(cells + 1)))
    chain = Graph(tuple((k, k + 1) for k in range(cells)), (enclosures.round_up(step),) * cells)
    return Problem(MetricLDP(eps, chain), Alphabet(cells + 1), WorstCase(np.array(losses)[apart]))

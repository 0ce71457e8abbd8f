"""The best of all eps-LDP mechanisms from a finite alphabet to finitely many answers, for a given matrix of losses.

The linear program of `optdp.design.kernel` without the geometry: floors m_j, favoured pairs u_ij <= (E - 1) m_j,
mass 1 for each input; the worst-case loss is minimised, or the average under a prior. Its extreme points are the
staircase mechanisms of Kairouz, Oh and Viswanath (JMLR 2016): every output is a set of inputs that get it with the
high probability.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from optdp.certificates.finite import FiniteCertificate
from optdp.exact import enclosures
from optdp.exact.rounding import SLACK, Table, private_weights
from optdp.mechanisms.finite import FiniteMechanism
from optdp.problem.domains import Alphabet
from optdp.problem.losses import MatrixLoss
from optdp.problem.privacy import LDP
from optdp.solution import Program, Solution, Status
from optdp.solvers import kernel_lp as lp

#: Relative gap at which a finite problem counts as solved: what rounding the ratio to a rational costs.
RTOL = 1e-6


def solve_finite(privacy: LDP, loss: Any, domain: Alphabet, prior: Any, backend: str) -> Solution:
    """`optdp.solve_kernel` on an `optdp.Alphabet`; see there. Outputs are the columns of the loss matrix, 0, 1, 2,
    ..., or the symbols themselves if the matrix is square.
    """
    began = time.perf_counter()
    if loss is None or isinstance(loss, str):
        raise TypeError(
            f"loss = {loss!r} is not allowed: with an Alphabet it must be a matrix, "
            "a row for each input, a column for each output"
        )
    law = loss if isinstance(loss, MatrixLoss) else MatrixLoss(loss)
    d, m = np.shape(law.rows)
    if d != len(domain):
        raise ValueError(f"loss is not allowed: it has {d} rows for the {len(domain)} symbols of {domain}")
    chances = _prior(prior, d)
    scale = float(law.array.max()) or 1.0
    answers = np.arange(m)

    def solve(ratio: float) -> lp.Outcome:
        grid = lp.Grid(
            ratio, 1.0, np.arange(d, dtype=float), np.arange(d, dtype=float), False, chances, False, law.array / scale
        )
        if backend == "columns":
            return lp.solve_columns(grid, answers)
        return lp.solve_dense(grid, answers) if backend == "dense" else lp.solve_blocks(grid, answers, vertex=True)

    below = solve(float(np.exp(privacy.eps)))
    weights = chances if chances is not None else below.dual.weights
    certificate = FiniteCertificate.of(privacy.eps, law, weights, below.dual.masses * scale, chances is not None)
    ratio = enclosures.exp_below(privacy.eps)
    above = solve(float(ratio) * (1 - SLACK))
    use = above.floors > 1e-10
    columns = above.outputs[use].astype(int)
    table = np.zeros((d, m), dtype=np.int64)
    table[:, columns] = private_weights(above.rows[:, use], above.floors[use], ratio)
    outputs = domain.symbols if m == d else tuple(range(m))
    mechanism = FiniteMechanism(domain, outputs, Table(table), None if chances is None else tuple(chances.tolist()))
    value = mechanism.enclose_value(law)[1]
    lower = min(certificate.bound, value)
    what = "average" if chances is not None else "worst-case"
    program = Program(
        name=f"best kernel on {domain}, {what} loss {law}, eps = {privacy.eps:g}",
        variables=f"{above.variables} columns (floors and favoured pairs of input and output)",
        constraints=f"{above.constraints} rows: mass and loss of {d} inputs, likelihood ratios",
        solver=f"HiGHS ({backend})",
        seconds=time.perf_counter() - began,
        objective=above.value * scale,
        bound=below.value * scale,
        build=lambda: below.dual.grid,
    )
    spec = {
        "problem": "kernel",
        "eps": privacy.eps,
        "loss": law.to_dict(),
        "domain": domain.to_dict(),
        "unbiased": False,
        "outputs": None,
        "prior": None if chances is None else chances.tolist(),
    }
    status = Status.OPTIMAL if value - lower <= RTOL * value else Status.GAP
    return Solution(value, lower, mechanism, certificate, program, privacy, law, status, spec)


def _prior(prior: Any, count: int) -> np.ndarray | None:
    if prior is None:
        return None
    text = f"prior must be {count} probabilities >= 0 with sum 1, one for each symbol"
    array = np.asarray(prior)
    if array.dtype.kind not in "iuf" or array.ndim != 1:
        raise TypeError(f"prior = {prior!r} is not allowed: {text}")
    chances = array.astype(float)
    if (
        chances.size != count
        or not np.isfinite(chances).all()
        or (chances < 0).any()
        or abs(float(chances.sum()) - 1) > 1e-9
    ):
        raise ValueError(f"prior = {prior!r} is not allowed: {text}")
    return chances

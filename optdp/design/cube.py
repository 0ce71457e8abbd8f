"""Unbiased mechanisms for the vectors of a cube, between a proven bound and what is attained.

**The mechanism.** The signs of k random coordinates, of which at least a threshold agree with the input (rounded at random to
a vertex) with the probability that e^eps allows; or every coordinate by itself with the optimal kernel for numbers at eps/d; or
the mechanism for the ball around the cube (`optdp.mechanisms.scaled`), whichever has the smallest error. k and the threshold are
those of the largest mean per unit of length, found by going through them.

**The bound** (`optdp.certificates.cube`) is about the vertices alone, on which the error is d^2/a^2 - d if a is the best mean
per unit of length of any output direction. Which direction is best is not known for all eps; the moments of random signs bound
a from above by a linear program in their multipliers. Up to eps = log 3 that bound is attained by one coordinate at a time.
Where eps is large, what is known of the unit ball in the cube says more: the bracket is at most about d wide then.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from optdp.certificates.base import Certificate, Refusal
from optdp.certificates.coordinates import CoordinatesCertificate
from optdp.certificates.cube import CubeCertificate
from optdp.closed_forms.cube import best_signs, threshold
from optdp.design.kernel import FAINTEST as KERNEL
from optdp.design.kernel import solve_kernel
from optdp.design.registry import Run, not_unbiased, register, solve
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.product import ProductMechanism, share_of
from optdp.mechanisms.scaled import ScaledMechanism
from optdp.mechanisms.signs import SignMechanism
from optdp.mechanisms.unbiased_vectors import UnbiasedVectors
from optdp.problem import Ball, Box, Problem
from optdp.solution import Solution
from optdp.solvers.lp import LinearProgram

#: The bound is raised above what the linear program, on points, says: it must hold between them too.
MARGIN = 1e-5
#: The gap that is asked for on the ball, which is not the cube.
ROUGH = 1e-2


def accepts(problem: Problem) -> str | None:
    """Unbiased mechanisms on a cube: the worst case of the squared error."""
    if isinstance(problem.domain, Box) and not problem.domain.is_cube:
        return "the domain must be the cube [-1, 1]^d"
    return not_unbiased(problem, Box, "the cube [-1, 1]^d", averaged=False)


def design(run: Run) -> Solution:
    """See `optdp.design.vector.solve_vector`."""
    problem = run.problem
    domain: Any = problem.domain
    eps, d = problem.eps, domain.dimension
    assert eps is not None
    mechanism: Mechanism = SignMechanism.private(eps, domain)
    attained = mechanism.enclose(problem.objective)[1]
    numbers = float(eps) >= KERNEL if d == 1 else float(eps) > d
    if numbers:  # less than 1 for each of several coordinates is never enough
        run.progress("every coordinate by itself")
        part = solve_kernel(
            share_of(eps, d), "squared", unbiased=True, domain=(-1, 1), rtol=run.rtol, time_limit=_left(run)
        )
        product = ProductMechanism(domain, part.mechanism)
        if product.enclose(problem.objective)[1] < attained:
            mechanism = product
    run.progress("linear programs for the bound")
    vertices, model = certify(problem)
    certificate: Certificate = vertices
    gain = vertices.gain
    rows, columns = model.rows.shape
    if numbers:  # the vertices tell less than the numbers between them
        each = solve_kernel(eps, "squared", unbiased=True, domain=(-1, 1), rtol=run.rtol, time_limit=_left(run))
        other = CoordinatesCertificate(each.certificate)  # type: ignore[arg-type]
        certificate = max((vertices, other), key=lambda c: c.bound(problem).value)
    value = mechanism.enclose(problem.objective)[1]
    if d > 1 and value - certificate.bound(problem).value > run.rtol * value:
        run.progress("the balls in and around the cube")
        ball = solve(replace(problem, domain=Ball(d)), ROUGH, _left(run))
        assert isinstance(ball.mechanism, UnbiasedVectors)
        around = ScaledMechanism.private(domain, ball.mechanism)
        mechanism = min((mechanism, around), key=lambda m: m.enclose(problem.objective)[1])
        certificate = max((certificate, ball.certificate), key=lambda c: c.bound(problem).value)
    return run.solution(
        mechanism, certificate, f"{columns} multipliers", f"{rows} points", "HiGHS", build=moment_program,
        arguments=(float(eps), d, gain), stopped=run.left() <= 0,
    )  # fmt: skip


register(
    "cube",
    ("LDP", "Box: the cube [-1, 1]^d", "WorstCase of squared", "AllMechanisms", "Unbiased"),
    accepts, design,
)  # fmt: skip


def _left(run: Run) -> float:
    """Seconds for a part of the work: what closed forms take, where none are left."""
    return max(run.left(), 0.1)


def _slopes(eps: float, d: int) -> np.ndarray:
    gain = threshold(eps, best_signs(eps, d)[0])[0]
    return np.unique(np.concatenate([np.geomspace(0.25, 1.0, 4), gain * np.linspace(0.6, 2.5, 14)]))


def moment_program(eps: float, d: int, gain: float) -> LinearProgram:
    """The multipliers for a gain a, all times (e^eps - 1)/a: their sum is at most 1 if a is a bound."""
    slopes, root, ratio = _slopes(eps, d), math.sqrt(d), math.expm1(eps) / gain
    far = min(root, gain + 12.0)
    parts = [np.linspace(0, far, 1201), np.array([min(gain, root), root]), np.geomspace(far, root, 60)]
    x: np.ndarray = np.unique(np.concatenate(parts))

    def log_cosh(z: np.ndarray) -> np.ndarray:
        return z + np.log1p(np.exp(-2 * z)) - math.log(2)

    powers = log_cosh(np.outer(x, slopes)) - d * log_cosh(slopes / root)
    columns = np.concatenate([np.stack([x**0, x**2, x**4], axis=1), np.exp(np.minimum(powers, 600.0))], axis=1)
    bars = ratio * np.maximum(x - gain, 0.0) / 2
    scale = np.maximum(columns.max(axis=1), bars)[:, None]
    cost = np.array([1.0, 1.0, 3 - 2 / d] + [1.0] * slopes.size)
    low = np.array([-np.inf, -np.inf] + [0.0] * (1 + slopes.size))
    return LinearProgram(cost, columns / scale, bars / scale[:, 0], np.full(x.size, np.inf), low, name="moments")


def certify(problem: Problem) -> tuple[CubeCertificate, LinearProgram]:
    """The least gain for which there are multipliers, and they."""
    d: Any = problem.domain.dimension
    eps = float(problem.eps)  # type: ignore[arg-type]
    low = threshold(eps, best_signs(eps, d)[0])[0]
    high = root = math.nextafter(math.sqrt(d), math.inf)
    top = min(high, 2 * low)
    if moment_program(eps, d, top).solve().checked().objective <= 1:
        high = top
    while high > low * (1 + MARGIN / 2):
        middle = (low + high) / 2
        if moment_program(eps, d, middle).solve().checked().objective <= 1:
            high = middle
        else:
            low = middle
    slack = MARGIN
    while (gain := high * (1 + slack)) < root:
        model = moment_program(eps, d, gain)
        found = model.solve().checked()
        x = np.array(found.x) * gain / math.expm1(eps)
        x[2:] = np.maximum(x[2:], 0.0)
        # What is left of the gain covers the places between the points: half of it by a factor, half as a constant.
        total, limit = float(model.cost @ x), gain / math.expm1(eps) * (1 - 1e-12)
        x *= 1 + max(0.0, limit / total - 1) / 2
        x[0] += limit - float(model.cost @ x)
        used = x[3:] > 0
        slopes, weights = tuple(_slopes(eps, d)[used].tolist()), tuple(x[3:][used].tolist())
        certificate = CubeCertificate(gain, float(x[0]), float(x[1]), float(x[2]), slopes, weights)
        try:
            certificate.bound(problem)
            return certificate, model
        except Refusal:
            slack *= 4
    # No sum of d signs with this norm is larger than sqrt(d).
    return CubeCertificate(root, 0.0, 0.0, 0.0, (), ()), moment_program(eps, d, root)

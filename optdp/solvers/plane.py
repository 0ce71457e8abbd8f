"""Floors and priors on a rectangle that are smooth: two linear programs in few unknowns, for eps at which windows are small.

A floor is a sum of products of functions of one coordinate, each alike at both ends of its side: hats between the nodes of a mesh
that is finer near the ends, and an atom at both ends. On the outputs of a lattice, which is what is sent, the best coefficients
are found by `optdp.solvers.floors`. So is a prior of inputs, as a density with atoms on the sides: given how far inputs favour
outputs, which is known from the floor, a prior and a little shift of these thresholds that promise most are a linear program,
with a row for each output of a grid.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from optdp.mechanisms.plane import grid_of
from optdp.solvers.floors import Bathtubs
from optdp.solvers.lp import Highs, LinearProgram

#: Nodes are at half a side times shares to this power, closer near the ends: of floors; of priors, and of what is looked at.
GRADED, INNER = 1.6, 1.3
#: By how much thresholds are moved up or down, as shares, in each of so many programs.
SHIFTS = (0.03, 0.012)
#: Pairs that are computed at once.
BLOCK = 2**22


@dataclass(frozen=True)
class Axis:
    """Coordinates from 0 to a side, or half of it, and the weight of each in each of the functions, in rows that sum to 1."""

    at: np.ndarray
    table: np.ndarray


def axis(side: float, cells: int, count: int, power: float, *, half: bool = False) -> Axis:
    """Of so many `cells` of half a side, with about `count` coordinates in all, evenly: at least one in each."""
    nodes = side / 2 * (np.arange(cells + 1) / cells) ** power
    steps = np.diff(nodes)
    parts = np.maximum(1, np.round(steps / (side / 2) * count)).astype(int)
    cell = np.repeat(np.arange(cells), parts)
    share = np.concatenate([(np.arange(k) + 0.5) / k for k in parts])
    at = np.concatenate([[0.0], nodes[cell] + steps[cell] * share])
    table = np.zeros((cells + 2, at.size))
    table[cells + 1, 0] = 1.0
    mass = (steps / parts)[cell]
    table[cell, np.arange(1, at.size)] = mass * (1 - share)
    table[cell + 1, np.arange(1, at.size)] = mass * share
    if not half:
        at, table = np.concatenate([at, side - at[::-1]]), np.hstack([table, table[:, ::-1]])
    return Axis(at, table / table.sum(axis=1, keepdims=True))


def products(first: Axis, second: Axis) -> tuple[np.ndarray, np.ndarray]:
    """(points, one in each row; the weight of each point, in rows, in each product of two functions).

    In squares, where two axes are alike, so are the weights of points that are each other's image.
    """
    points, n = grid_of(first.at, second.at), len(first.table)
    table = np.kron(first.table, second.table)
    if np.array_equal(first.at, second.at):
        one, two = np.triu_indices(n)
        table = (table[one * n + two] + table[two * n + one]) / 2
    return points, table.T


def lattice(
    sides: np.ndarray, cells: int, count: int, power: float, *, half: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """`products` of axes with so many cells and coordinates along half of the longer side (1 long)."""
    return products(
        *(axis(s, max(1, round(cells * s)), max(1, round(count * s)), power, half=half) for s in sides.tolist())
    )


def inputs_of(sides: np.ndarray, count: int) -> np.ndarray:
    """Inputs of the lower quarter (of a square: half of it), `count` + 1 along half of the longer side, in rows."""
    counts = np.maximum(1, np.round(count * sides)).astype(int)
    found = grid_of(*(s / 2 * np.linspace(0, 1, k + 1) ** INNER for s, k in zip(sides, counts, strict=True)))
    return found[found[:, 0] <= found[:, 1]] if sides[0] == sides[1] else found


def losses(inputs: np.ndarray, outputs: np.ndarray, power: int) -> np.ndarray:
    """|y - x|^power in rows of inputs."""
    squares = np.square(inputs[:, None, 0] - outputs[:, 0]) + np.square(inputs[:, None, 1] - outputs[:, 1])
    return np.asarray(np.sqrt(squares) if power == 1 else squares)


@dataclass(frozen=True)
class Prior:
    """Inputs in the lower quarter, with weights and thresholds that promise `bound` for the outputs of a grid."""

    inputs: np.ndarray
    weights: np.ndarray
    thresholds: np.ndarray
    bound: float


def thresholds_of(inputs: np.ndarray, outputs: np.ndarray, floors: np.ndarray, eps: float, power: int) -> np.ndarray:
    """The loss of the last output that each input favours."""
    found = []
    for some in np.array_split(inputs, len(inputs) * len(outputs) // BLOCK + 1):
        tubs = Bathtubs.of(losses(some, outputs, power), eps, None)
        found.append(tubs.rows(math.exp(eps) * floors)[1])
    return np.concatenate(found)


def best_prior(
    sides: np.ndarray, eps: float, power: int, thresholds: Callable[[np.ndarray], np.ndarray], cells: int, count: int,
    outputs: int, left: Callable[[], float],
) -> Prior | None:  # fmt: skip
    """The prior that promises most with about these thresholds; None without an answer of the solver.

    **Arguments:** `cells`, `count`: of the density's mesh and of inputs along half of the longer side (1 long); `outputs`: cells
    of the grid along it.
    """
    inputs, table = lattice(sides, cells, count, INNER, half=True)
    y = inputs_of(sides, outputs)
    mirrored = [np.where(flip, sides - y, y) for flip in ((0, 0), (0, 1), (1, 0), (1, 1))]
    far, nu, more = [losses(image, inputs, power) for image in mirrored], thresholds(inputs), math.expm1(eps)
    best: Prior | None = None

    def prices(nu: np.ndarray) -> np.ndarray:
        total = np.zeros((len(y), len(nu)))
        for image in far:
            reduced = image - nu
            total += reduced + more * np.minimum(reduced, 0.0)
        return np.asarray(total / 4 @ table)

    for shift in SHIFTS:
        layers = [nu * (1 + share) for share in (-shift, 0.0, shift)]
        columns = np.hstack([*map(prices, layers), np.ones((len(y), 1))])
        worth = np.concatenate([layer @ table for layer in layers])
        whole = np.append(np.ones(worth.size), 0.0)
        program = LinearProgram(
            np.append(-worth, 1.0), np.vstack([whole, columns]), np.append(1.0, np.zeros(len(y))),
            np.append(1.0, np.full(len(y), np.inf)), blocks={"mass": slice(0, 1), "price": slice(1, 1 + len(y))},
            variables={"prior": slice(0, worth.size), "shortfall": slice(worth.size, worth.size + 1)}, name="optdp-plane-prior",
        )  # fmt: skip
        solved = Highs(method="ipm").solve(program, time_limit=max(left(), 5.0))
        if (
            not solved.usable
            or solved.x.size != worth.size + 1
            or not -solved.objective > (best.bound if best else 0.0)
        ):
            break
        shares = np.maximum(solved.x[:-1], 0.0).reshape(len(layers), -1) @ table.T
        weights = shares.sum(axis=0)
        # The price is concave in the threshold: one for each input, their mean, promises no less.
        mean = (shares * layers).sum(axis=0) / np.maximum(weights, 1e-300)
        nu = np.where(weights > 0, mean, nu)
        best = Prior(inputs, weights, nu, -solved.objective)
        if not left():
            break
    return best

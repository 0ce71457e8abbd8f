"""Pictures of mechanisms as few numbers: curves, dots and tables, for pages that draw them without this package."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np

from optdp.exact.fields import Within
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.cap import CapMechanism
from optdp.mechanisms.finite import FiniteMechanism
from optdp.mechanisms.frequency import FrequencyOracle
from optdp.mechanisms.lifted import LiftedMechanism
from optdp.mechanisms.lip import UNIT, LIPMechanism
from optdp.mechanisms.noise import AdditiveNoise
from optdp.mechanisms.plane import PlaneMechanism
from optdp.mechanisms.product import ProductMechanism
from optdp.mechanisms.radial import RadialMechanism
from optdp.mechanisms.scaled import ScaledMechanism
from optdp.mechanisms.signs import SignMechanism
from optdp.problem.domains import Integers
from optdp.report.vector import cap_curves, sign_curves

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

#: A curve is sampled at this many places, and may then leave its samples by this share of its height.
SAMPLES, ERROR = 1201, 5e-3
#: More atoms than these are shown as a density: their mass in each of so many bins.
ATOMS, BINS = 24, 80


@dataclass(frozen=True)
class Curve:
    """Points (x, y): a line through them, or dots of height y above each x."""

    label: Annotated[str, Within(most=200)]
    x: Annotated[tuple[float, ...], Within(most=2 * SAMPLES)]
    y: Annotated[tuple[float, ...], Within(most=2 * SAMPLES)]
    kind: Literal["line", "dots"] = "line"

    def __post_init__(self) -> None:
        if len(self.x) != len(self.y):
            raise ValueError(f"x and y are not allowed: they have {len(self.x)} and {len(self.y)} entries")


@dataclass(frozen=True)
class Picture:
    """Curves over one axis, or (where there are no curves) a table of probabilities of outputs (columns) for inputs (rows)."""

    across: Annotated[str, Within(most=200)]
    up: Annotated[str, Within(most=200)]
    curves: Annotated[tuple[Curve, ...], Within(most=20)] = ()
    table: Annotated[tuple[tuple[float, ...], ...], Within(0.0, 1.0, most=1000)] = ()
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    note: str = ""


def picture(mechanism: Mechanism) -> Picture:
    """A mechanism's picture: what `mechanism.plot()` shows, or a part of it, to three or four digits.

    Noise: its density; on an interval or a circle: the densities of the outputs for three inputs; between finite sets: the table;
    sets of categories: how often the own category and another one is in the set; vectors: how outputs agree with the input, or
    how long they are; on a rectangle: how far outputs are from three inputs.
    """
    if isinstance(mechanism, AdditiveNoise):
        return _noise(mechanism)
    if isinstance(mechanism, LIPMechanism):
        table = np.array([[float(Fraction(p, UNIT)) for p in row] for row in mechanism.kernel]).T
        return _table(table, mechanism.domain.symbols, mechanism.labels)
    if isinstance(mechanism, FiniteMechanism):
        return _table(np.array(mechanism.table.rows, dtype=float), mechanism.domain.symbols, mechanism.outputs)
    if isinstance(mechanism, FrequencyOracle):
        own, other = map(float, mechanism.exact_rates)
        rows = ((_short(own), _short(other)),)
        up = "probability that a message supports the category"
        return Picture("category", up, table=rows, inputs=("",), outputs=("own", "another"))
    if isinstance(mechanism, LiftedMechanism | ScaledMechanism):
        return picture(mechanism.whole)
    if isinstance(mechanism, ProductMechanism):
        shown = picture(mechanism.part)
        return Picture(shown.across, shown.up, shown.curves, shown.table, shown.inputs, shown.outputs, "one coordinate")
    if isinstance(mechanism, CapMechanism) and mechanism.dim > 1:
        t, uniform, found = cap_curves(mechanism)
        curves = (_line("uniform direction", t, uniform), _line("output", t, found))
        return Picture("cosine of the angle between output and input", "density", curves)
    if isinstance(mechanism, CapMechanism):
        inside = mechanism.coins / 2**124
        return Picture("output along the input", "probability", (_dots("output", [-1, 1], [1 - inside, inside]),))
    if isinstance(mechanism, RadialMechanism):
        laws = [(norm, *mechanism.norms(norm)) for norm in (0.0, 0.5, 1.0)]
        steps = tuple(_line(f"|x| = {norm:g}", radii, np.cumsum(masses)) for norm, radii, masses in laws)
        return Picture("norm r of the output", "probability of |Y| <= r", steps)
    if isinstance(mechanism, SignMechanism):
        n, uniform, found = sign_curves(mechanism)
        made = _dots if n.size <= BINS else _line
        curves = (made("random signs", n, uniform), made("output", n, found))
        return Picture(f"signs of {mechanism.k} that agree with the input", "probability", curves)
    if isinstance(mechanism, PlaneMechanism):
        return _distances(mechanism)
    return _densities(mechanism)


def _distances(mechanism: PlaneMechanism) -> Picture:
    low, high = np.array(mechanism.domain.lower), np.array(mechanism.domain.upper)
    curves = []
    for share in (0.0, 0.3, 0.5):
        x = low + share * (high - low)
        far = np.linalg.norm(mechanism.atoms() - x, axis=1)
        order = np.argsort(far, kind="stable")
        label = f"x = ({', '.join(f'{c:.3g}' for c in x)})"
        curves.append(_line(label, far[order], np.cumsum(mechanism.rows(x).reshape(-1)[order])))
    return Picture("distance r", "probability that the output is within r of x", tuple(curves))


def _noise(mechanism: AdditiveNoise) -> Picture:
    low, high = mechanism.confidence_interval(0.999)
    if isinstance(mechanism.domain, Integers):
        z = np.arange(np.floor(low), np.ceil(high) + 1)
        p = mechanism.noise_probability(z)
        made = _dots if z.size <= BINS else _line
        return Picture("noise", "probability", (made("noise", z, p),))
    z = np.linspace(low, high, SAMPLES)
    curves = [_line("noise", z, mechanism.noise_density(z))]
    atom = float(mechanism.noise_probability(0.0))
    note = f"and the noise is 0 with probability {atom:.3g}" if atom > 0 else ""
    return Picture("noise", "density", tuple(curves), note=note)


def _densities(mechanism: Mechanism) -> Picture:
    low, high = mechanism.support()
    a, b = mechanism.domain.lower, mechanism.domain.upper
    atoms = np.asarray(mechanism.atoms(), dtype=float)
    curves: list[Curve] = []
    for x in (a, a + 0.3 * (b - a), a + 0.5 * (b - a)):
        label, mass = f"x = {x:.3g}", np.zeros(0)
        y = np.linspace(low, high, SAMPLES)
        density = np.asarray(mechanism.density(y, x), dtype=float)
        if atoms.size:
            mass = np.asarray(mechanism.probability(atoms, x), dtype=float)
        if atoms.size > ATOMS:
            edges = np.linspace(low, high, BINS + 1)
            held = np.histogram(atoms, edges, weights=mass)[0] / (edges[1] - edges[0])
            density = density + held[np.minimum(np.searchsorted(edges, y, side="right") - 1, BINS - 1)]
        curves.append(_line(label, y, density))
        if 0 < atoms.size <= ATOMS and mass.any():
            curves.append(_dots(label, atoms[mass > 0], mass[mass > 0]))
    return Picture("output y", "density given x; dots: probability", tuple(curves))


def _table(rows: np.ndarray, inputs: Sequence[object], outputs: Sequence[object]) -> Picture:
    cells = tuple(tuple(_short(p) for p in row) for row in rows)
    return Picture("output", "input", table=cells, inputs=tuple(map(str, inputs)), outputs=tuple(map(str, outputs)))


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _dots(label: str, x: ArrayLike, y: ArrayLike) -> Curve:
    places, heights = (tuple(_short(v) for v in np.asarray(part)) for part in (x, y))
    return Curve(label, places, heights, "dots")


def _line(label: str, x: np.ndarray, y: np.ndarray) -> Curve:
    """The fewest samples, nearly, whose line passes within ERROR of all of them: what lies farthest from a chord is kept."""
    keep, spans = {0, len(x) - 1}, [(0, len(x) - 1)]
    allowed = ERROR * float(np.max(y)) if y.size else 0.0
    while spans:
        i, j = spans.pop()
        if j - i < 2:
            continue
        off = np.abs(y[i + 1 : j] - np.interp(x[i + 1 : j], x[[i, j]], y[[i, j]]))
        if off.max() > allowed:
            middle = i + 1 + int(off.argmax())
            keep.add(middle)
            spans += [(i, middle), (middle, j)]
    chosen = sorted(keep)
    # Places get a digit more, so that jumps stay upright.
    return Curve(label, tuple(float(f"{v:.5g}") for v in x[chosen]), tuple(_short(v) for v in y[chosen]))

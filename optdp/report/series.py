"""What is drawn of a mechanism: curves, dots or a table, for figures and for pages that draw them without this package."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import singledispatch
from typing import Annotated, Any, Literal

import numpy as np

from optdp.exact.fields import Within
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.cap import CapMechanism
from optdp.mechanisms.frequency import FrequencyOracle
from optdp.mechanisms.lifted import LiftedMechanism
from optdp.mechanisms.noise import AdditiveNoise
from optdp.mechanisms.plane import PlaneMechanism
from optdp.mechanisms.product import ProductMechanism
from optdp.mechanisms.radial import RadialMechanism
from optdp.mechanisms.scaled import ScaledMechanism
from optdp.mechanisms.signs import SignMechanism
from optdp.problem.domains import Alphabet, Ball, Integers

#: A curve is sampled at this many places, and may then leave its samples by this share of its height.
SAMPLES, ERROR = 1201, 5e-3
#: More atoms than these are stored as a density: their mass in each of so many bins.
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

    @classmethod
    def of(cls, label: str, x: Any, y: Any, kind: Literal["line", "dots"] = "line") -> Curve:
        """From arrays."""
        places, heights = (tuple(np.asarray(part, dtype=float).tolist()) for part in (x, y))
        return cls(label, places, heights, kind)


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
    """The outline of a mechanism as few numbers of three or four digits, for files."""
    whole = outline(mechanism)
    curves = _binned(whole.curves)
    table = tuple(tuple(_short(p) for p in row) for row in whole.table)
    up = whole.up if len(curves) == len(whole.curves) else "density given x"
    return replace(whole, curves=tuple(map(_few, curves)), table=table, up=up)


# --- what is drawn of each kind of mechanism


@singledispatch
def outline(mechanism: Mechanism, inputs: Any = None) -> Picture:
    """What there is to see of a mechanism, with all digits.

    Noise: its density; on an interval or a circle: the densities of the outputs for a few inputs; between finite sets: the table;
    sets of categories: how often the own category and another one is in the set; vectors: how outputs agree with the input, or
    how long they are; on a rectangle: how far outputs are from three inputs.

    **Arguments:** `inputs`: for which inputs, where there are a few.
    """
    if isinstance(mechanism.domain, Alphabet) and (outputs := mechanism.atoms()).size:
        inputs = mechanism.domain.check(list(mechanism.domain.symbols))
        return _table(mechanism.probability(outputs, inputs[:, None]), mechanism.domain.symbols, outputs.tolist())
    if np.ndim(getattr(mechanism.domain, "lower", ())):
        raise TypeError(
            f"a mechanism on {mechanism.domain} is not allowed here: its inputs and outputs must be numbers"
        )
    low, high = mechanism.support()
    a, b = mechanism.domain.lower, mechanism.domain.upper
    if not np.isfinite(b - a):  # numbers of any size: what is sent for one of them
        a = b = 0.0
        inputs = [0.0] if inputs is None else inputs
        drawn = mechanism.randomize(np.tile(np.ravel(inputs), 4096), np.random.default_rng(0))
        low, high = np.quantile(drawn, [0.001, 0.999]).tolist()
    if not np.isfinite([low, high]).all():  # unbounded noise: what is near the domain
        low, high = 3 * a - 2 * b, 3 * b - 2 * a
    y, atoms = np.linspace(low, high, SAMPLES), np.union1d(mechanism.atoms(), [low, high])
    curves: list[Curve] = []
    for label, x in _named([a, a + 0.3 * (b - a), a + 0.5 * (b - a)] if inputs is None else inputs):
        mass = np.asarray(mechanism.probability(atoms, x))
        curves.append(Curve.of(label, y, mechanism.density(y, x)))
        if mass.any():
            curves.append(Curve.of(label, atoms[mass > 0], mass[mass > 0], "dots"))
    smooth = any(any(curve.y) for curve in curves if curve.kind == "line")
    dotted = any(curve.kind == "dots" for curve in curves)
    up = "density given x" + " (dots: probability)" * dotted if smooth else "probability given x"
    return Picture("output y", up, tuple(curves))


def _named(inputs: Any) -> list[tuple[str, Any]]:
    """Inputs with their labels: of as many digits as tell them apart."""
    points = np.unique(inputs)
    digits = next((d for d in range(3, 17) if len({f"{x:.{d}g}" for x in points}) == points.size), 17)
    return [(f"x = {x:.{digits}g}", x) for x in np.atleast_1d(inputs)]


@outline.register
def _(mechanism: AdditiveNoise, inputs: Any = None) -> Picture:
    low, high = mechanism.confidence_interval(0.999)
    discrete = isinstance(mechanism.domain, Integers)
    z = np.linspace(low, high, SAMPLES)
    if discrete:
        low, high = np.floor(low), np.ceil(high)
        z = np.unique(np.rint(np.linspace(low, high, int(min(high - low + 1, SAMPLES)))))  # of very many integers some
    law = mechanism.noise_probability(z) if discrete else mechanism.noise_density(z)
    kind: Any = "dots" if discrete and z.size <= BINS else "line"
    moved = [("noise", 0.0)] if inputs is None else _named(inputs)
    curves = tuple(Curve.of(label, x + z, law, kind) for label, x in moved)
    atom = 0.0 if discrete else float(mechanism.noise_probability(0.0))
    note = f"and the noise is 0 with probability {atom:.3g}" if atom > 0 else ""
    across = "noise" if inputs is None else "output"
    return Picture(across, "probability" if discrete else "density", curves, note=note)


@outline.register
def _(mechanism: FrequencyOracle, inputs: Any = None) -> Picture:
    rates = np.array([mechanism.exact_rates], dtype=float)
    return replace(
        _table(rates, [""], ["own", "another"]),
        across="category",
        up="probability that a message supports the category",
    )


@outline.register
def _(mechanism: LiftedMechanism, inputs: Any = None) -> Picture:
    d = mechanism.dim
    told = f"for inputs x with a coordinate more, unit vectors of R^{d + 1}; outputs are sent without their last coordinate"
    return replace(outline(mechanism.whole), note=told)


@outline.register
def _(mechanism: ScaledMechanism, inputs: Any = None) -> Picture:
    if isinstance(mechanism.whole, RadialMechanism):
        return _norms(mechanism.whole, inputs, mechanism.scale)
    shown = outline(mechanism.whole)
    return replace(shown, note=f"of x/{mechanism.scale:.4g}, before outputs are scaled; {shown.note}")


@outline.register
def _(mechanism: ProductMechanism, inputs: Any = None) -> Picture:
    return replace(outline(mechanism.part, inputs), note="one coordinate")


@outline.register
def _(mechanism: CapMechanism, inputs: Any = None) -> Picture:
    from scipy.special import gammaln

    d, g, inside = mechanism.dim, mechanism.height, mechanism.coins / 2**124
    if d == 1:
        both = Curve.of("output", [-1, 1], [1 - inside, inside], "dots")
        return Picture("output along the input", "probability", (both,))
    reach = min(1.0, max(6 / np.sqrt(d), g + 3 / np.sqrt(d)))
    t = np.unique(np.concatenate([np.linspace(-reach, reach, 2001)[1:-1], [g - 1e-12, g]]))
    share = float(mechanism.shares[0])
    log = gammaln(d / 2) - gammaln((d - 1) / 2) - np.log(np.pi) / 2 + (d - 3) / 2 * np.log1p(-(t**2))
    uniform = np.exp(log)
    found = uniform * np.where(t >= g, inside / share, (1 - inside) / (1 - share))
    curves = Curve.of("uniform direction", t, uniform), Curve.of("output", t, found)
    note = "for inputs of norm 1" if isinstance(mechanism.domain, Ball) else ""
    return Picture("cosine of the angle between output and input", "density", curves, note=note)


@outline.register
def _norms(mechanism: RadialMechanism, inputs: Any = None, scale: float = 1.0) -> Picture:
    """How long the outputs are, `scale` times as long as those of the ball's mechanism for inputs of norm |x|/scale."""
    longest = 1.0 if scale == 1 else math.sqrt(mechanism.dim)
    curves = []
    for norm in (0.0, longest / 2, longest) if inputs is None else np.ravel(np.asarray(inputs, dtype=float)).tolist():
        radii, masses = mechanism.norms(norm / scale)
        sums = np.append(0.0, np.cumsum(masses))
        label = f"|x| = {norm:.3g}"
        curves.append(Curve.of(label, np.repeat(scale * radii, 2), np.repeat(sums, 2)[1:-1]))  # in steps
    return Picture("norm r of the output", "probability of |Y| <= r", tuple(curves))


@outline.register
def _(mechanism: SignMechanism, inputs: Any = None) -> Picture:
    from scipy.stats import binom

    k, least, inside = mechanism.k, mechanism.least, mechanism.coins / 2**124
    low = max(0, int(k / 2 - 5 * np.sqrt(k)))
    n = np.arange(low, min(k, int(max(k / 2, least) + 5 * np.sqrt(k))) + 1)
    uniform, share = binom.pmf(n, k, 0.5), binom.sf(least - 1, k, 0.5)
    found = uniform * np.where(n >= least, inside / share, (1 - inside) / (1 - share))
    kind: Any = "dots" if n.size <= BINS else "line"
    curves = Curve.of("random signs", n, uniform, kind), Curve.of("output", n, found, kind)
    agree = f"how many of the {k} signs that are sent agree with the input"
    if k == 1:
        agree = "whether the one sign that is sent agrees with the input (1) or not (0)"
    return Picture(agree, "probability", curves)


@outline.register
def _(mechanism: PlaneMechanism, inputs: Any = None) -> Picture:
    low, high = np.array(mechanism.domain.lower), np.array(mechanism.domain.upper)
    curves = []
    for share in (0.0, 0.3, 0.5):
        x = low + share * (high - low)
        far = np.linalg.norm(mechanism.atoms() - x, axis=1)
        order = np.argsort(far, kind="stable")
        label = f"x = ({', '.join(f'{c:.3g}' for c in x)})"
        curves.append(Curve.of(label, far[order], np.cumsum(mechanism.rows(x).reshape(-1)[order])))
    return Picture("distance r", "probability that the output is within r of x", tuple(curves))


def _table(rows: np.ndarray, inputs: Sequence[object], outputs: Sequence[object]) -> Picture:
    cells = tuple(map(tuple, rows.tolist()))
    return Picture("output", "input", table=cells, inputs=tuple(map(str, inputs)), outputs=tuple(map(str, outputs)))


# --- as few numbers


def _short(value: float) -> float:
    return float(f"{value:.4g}")


def _binned(curves: Sequence[Curve]) -> list[Curve]:
    """Curves, where the mass of many dots is added to the density of the same label: it is the curve before them."""
    found: list[Curve] = []
    for curve in curves:
        if curve.kind == "line" or len(curve.x) <= ATOMS or not found or found[-1].label != curve.label:
            found.append(curve)
            continue
        y, density = map(np.array, (found[-1].x, found[-1].y))
        edges = np.linspace(y[0], y[-1], BINS + 1)
        held = np.histogram(curve.x, edges, weights=curve.y)[0] / (edges[1] - edges[0])
        within = np.minimum(np.searchsorted(edges, y, side="right") - 1, BINS - 1)
        found[-1] = Curve.of(curve.label, y, density + held[within])
    return found


def _few(curve: Curve) -> Curve:
    """A line through the fewest samples, nearly, that passes within ERROR of all: what lies farthest from a chord is kept."""
    if curve.kind == "dots":
        return replace(curve, x=tuple(map(_short, curve.x)), y=tuple(map(_short, curve.y)))
    x, y = np.array(curve.x), np.array(curve.y)
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
    return replace(curve, x=tuple(float(f"{v:.5g}") for v in x[chosen]), y=tuple(_short(v) for v in y[chosen]))

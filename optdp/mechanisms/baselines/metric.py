"""Published mechanisms with metric privacy between finitely many places."""

from __future__ import annotations

import numpy as np

from optdp.mechanisms.metric import MetricMechanism
from optdp.problem import Alphabet, MetricLDP, Points
from optdp.problem.metrics import EARTH, between

#: The plane is cut into so many cells each way, and reaches so many mean radii beyond the places.
CELLS, BEYOND = 300, 8.0


def exponential(privacy: MetricLDP, domain: Alphabet) -> MetricMechanism | None:
    """A place y with probability in proportion to e^(-eps d(x, y) / 2): the sums differ by e^(eps d / 2) at most, too."""
    if not float(privacy.eps) > 0:
        return None
    rows = np.exp(-privacy.growth / 2)
    return MetricMechanism.of_rows(domain, domain.symbols, rows / rows.sum(axis=1, keepdims=True), privacy)


def planar_laplace(privacy: MetricLDP, domain: Alphabet) -> MetricMechanism | None:
    """Noise with density eps^2 / (2 pi) e^(-eps |z - x|) on the plane, moved to the nearest place.

    The chance of each place is a sum over small cells of the plane, which is private up to what is cut off, and is then made
    private exactly. None unless the metric is of points on a plane or on the earth, all of them on one half of it.
    """
    metric, eps = privacy.metric, float(privacy.eps)
    if not isinstance(metric, Points) or metric.coordinates is None or not eps > 0:
        return None
    points, earth = np.array(metric.places), metric.kind == "haversine"
    low, high = points.min(axis=0), points.max(axis=0)
    pad = np.minimum(BEYOND / eps, 20 * metric.array.max())
    beyond = np.array([pad, pad])
    if earth:
        degree = np.pi * EARTH / 180
        widest = np.cos(np.radians(min(np.abs(points[:, 0]).max(), 85.0)))
        beyond = np.minimum(np.array([pad / degree, pad / degree / widest]), [89.0, 179.0])
        low, high = np.maximum(low - beyond, [-90, -360]), np.minimum(high + beyond, [90, 360])
    else:
        low, high = low - beyond, high + beyond
    ways = [np.linspace(a, b, 2 * CELLS + 1)[1::2] for a, b in zip(low, high, strict=True)]
    rows = np.zeros((len(metric), len(metric)))
    for first in ways[0]:  # one strip of cells after another
        strip = np.stack([np.full(CELLS, first), ways[1]], axis=1)
        far = between(points, strip, metric.kind)
        area = np.cos(np.radians(first)) if earth else 1.0
        nearest = np.argmin(far, axis=0)
        density = area * np.exp(-eps * far)
        for y in np.unique(nearest):
            rows[:, y] += density[:, nearest == y].sum(axis=1)
    total = rows.sum(axis=1, keepdims=True)
    if not (total > 0).all():
        return None
    return MetricMechanism.of_rows(domain, domain.symbols, rows / total, privacy)

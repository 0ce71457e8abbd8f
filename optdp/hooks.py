"""What earlier packages call in later ones without importing them; `optdp` itself fills it in. Imports nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Draws a mechanism or a solution: draw(thing, ax=None, **options) -> matplotlib axes.
draw: Callable[..., Any] | None = None


def plot(thing: object, **options: Any) -> Axes:
    """Draw with what is registered. **Raises** RuntimeError if nothing is."""
    if draw is None:
        raise RuntimeError("nothing that draws is registered: import optdp first")
    return draw(thing, **options)

"""Inequalities for every epsilon of a range, by ball arithmetic: no samples, no gaps between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from flint import arb, ctx

from optdp.exact import enclosures


@dataclass(frozen=True)
class Cover:
    """The outcome of a covering proof on [low, high].

    - `proven`: whether the function is positive on the whole of [low, high].
    - `pieces`: how many intervals the proof needed.
    - `failed_at`: where it got stuck (a point of the first interval that resisted), or None.
    - `least`: a proven lower bound of the function over the range, if `proven`.
    """

    proven: bool
    pieces: int
    failed_at: float | None
    least: float | None


def positive(
    function: Callable[[Any], Any],
    low: float,
    high: float,
    *,
    precision: int = 96,
    pieces: int = 20_000,
    depth: int = 40,
) -> Cover:
    """Prove that `function`, written in ball arithmetic, is > 0 for every argument in [low, high].

    **Arguments:** `function`: takes an Arb ball and returns one that contains all values over it; `low`, `high`: floats,
    taken exactly; `precision`: bits; `pieces`, `depth`: give up after so many intervals or halvings.

    **Returns** a `Cover`. The range is cut into intervals until the enclosure over each of them is positive. An inequality
    that becomes an equality inside the range can never be proven this way: factor the zero out first.
    """
    stack = [(low, high, 0)]
    done, least = 0, float("inf")
    with ctx.workprec(precision):
        while stack:
            a, b, level = stack.pop()
            value = function(arb(a).union(arb(b)))
            if value > 0:
                done += 1
                least = min(least, enclosures.round_down(value))
                continue
            middle = (a + b) / 2
            if level >= depth or done + len(stack) >= pieces or not a < middle < b:
                return Cover(False, done, a, None)
            stack += [(middle, b, level + 1), (a, middle, level + 1)]
    return Cover(True, done, None, least)

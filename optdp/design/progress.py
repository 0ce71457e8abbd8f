"""Progress of a solve: logged, and told to a callback or a line on the terminal."""

from __future__ import annotations

import logging
import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

log = logging.getLogger("optdp")


@dataclass(frozen=True)
class Step:
    """Where a solve stands: what it is doing, and the bracket so far (None: not known yet)."""

    stage: str
    lower: float | None = None
    value: float | None = None


ProgressLike = Callable[[Step], None] | bool | None


class Progress:
    """Tells every `Step` to the logger "optdp" (level INFO) and to a callback.

    **Arguments:** `callback`: a function of a `Step`; True for one line on stderr, if that is a terminal; None for the log alone.
    """

    def __init__(self, callback: ProgressLike = None) -> None:
        if callback is True:
            callback = _line if sys.stderr.isatty() else None
        if callback is False:
            callback = None
        if callback is not None and not callable(callback):
            raise TypeError(f"progress = {callback!r} is not allowed: it must be a function of a Step, True or None")
        self._callback = callback

    def __call__(self, stage: str, lower: float | None = None, value: float | None = None) -> None:
        """Report a step."""
        log.info("%s%s", stage, "" if value is None else f": bracket [{lower!r}, {value!r}]")
        if self._callback is not None:
            self._callback(Step(stage, lower, value))

    def part(self, told: str, lower: float | None = None, value: float | None = None) -> Progress:
        """For the solve of another problem on the way: its stages, and the bracket so far of this one (inf: none yet)."""
        known = value is not None and math.isfinite(value)
        return _Part(self, told, *((lower, value) if known else (None, None)))


class _Part(Progress):
    def __init__(self, whole: Progress, told: str, lower: float | None, value: float | None) -> None:
        self._whole, self._told, self._bracket = whole, told, (lower, value)

    def __call__(self, stage: str, lower: float | None = None, value: float | None = None) -> None:
        self._whole(f"{self._told}: {stage}", *self._bracket)


def _line(step: Step) -> None:
    bracket = "" if step.value is None or step.lower is None else f"  [{step.lower:.6g}, {step.value:.6g}]"
    sys.stderr.write(f"\r\033[K{step.stage}{bracket}" if step.stage != "done" else "\r\033[K")
    sys.stderr.flush()

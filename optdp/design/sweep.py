"""Many problems at once: any `concurrent.futures.Executor`, a progress bar, results in order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def sweep(
    function: Callable[[Item], Result], items: Iterable[Item], *, executor: Executor | None = None,
    progress: bool | None = None, label: str = "solving", chunksize: int = 1,
) -> list[Result]:  # fmt: skip
    """`[function(item) for item in items]`, with a progress bar on stderr.

    **Arguments:**

    - `function`: with a process pool it must be picklable (a module's function or a `functools.partial` of one).
    - `executor`: processes, not threads, which would share the working precision of ball arithmetic (bounds stay valid,
      last digits may differ): any `concurrent.futures.Executor` (a dask client's `get_executor()` is one); None: this process.
    - `progress`: show the bar; None: only if stderr is a terminal.
    - `chunksize`: items sent to a worker process at a time.

    **Returns** the results in the order of the items. An exception in `function` is raised here.
    """
    from tqdm import tqdm

    work: Sequence[Item] = list(items)
    results = map(function, work) if executor is None else executor.map(function, work, chunksize=chunksize)
    hidden = not (sys.stderr.isatty() if progress is None else progress)
    return list(tqdm(results, total=len(work), desc=label, disable=hidden, leave=False))

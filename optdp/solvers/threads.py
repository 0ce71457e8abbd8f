"""How many threads linear algebra has: with more than one its last digits differ, and they wait on a busy machine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any


class _Solves:
    """How many there are at a time, in threads of Python, and what the last one of them restores."""

    lock, count = Lock(), 0
    limit: Any = None


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which linear algebra has one thread, whichever thread of Python enters it, and beside how many others."""
    with _Solves.lock, _in_charge():
        if not _Solves.count:
            _Solves.limit = _pools().limit(limits=1, user_api="blas")
        # Of these each thread of Python has its own number.
        mine = _pools().select(threading_layer="openmp").limit(limits=1)
        _Solves.count += 1
    try:
        yield
    finally:
        with _Solves.lock, _in_charge():
            _Solves.count -= 1
            mine.restore_original_limits()
            if not _Solves.count:
                _Solves.limit.restore_original_limits()


@contextmanager
def _in_charge() -> Iterator[None]:
    """Since threadpoolctl 3.8 only the thread of Python that came first changes OpenBLAS, until it clears this."""
    clears = [getattr(pool, "clear_controlling_thread", None) for pool in _pools().lib_controllers]
    for clear in filter(None, clears):
        clear(force=True)
    yield
    for clear in filter(None, clears):
        clear(force=True)


@cache
def _pools() -> Any:
    import scipy.linalg  # noqa: F401  # it has a library of its own, which must be there to be found
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()

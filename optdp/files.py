"""Atomic writes: a file appears whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any


@contextmanager
def replacing(path: str | Path, mode: str = "w", **open_options: Any) -> Iterator[IO[Any]]:
    """Open a temporary file beside `path` that takes its place at a clean exit and vanishes at an error.

    **Arguments:** `mode`: "w" for text (UTF-8), "wb" for bytes; `open_options`: of `open`.

    **Raises** FileNotFoundError if there is no such folder.
    """
    target = Path(path)
    directory = target.parent
    if not directory.is_dir():
        raise FileNotFoundError(f"{target} cannot be written: there is no folder {directory}")
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", suffix=".part", dir=directory)
    try:
        with os.fdopen(handle, mode, encoding=None if "b" in mode else "utf-8", **open_options) as stream:
            yield stream
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(name, target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~umask)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path`, atomically."""
    with replacing(path) as stream:
        stream.write(text)

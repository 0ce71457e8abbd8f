"""Reading and writing files: outputs appear whole or not at all, several of them together; "-" is standard input or output.

Symbolic links are followed. A pipe, a terminal or another device is not replaced: what belongs there is gathered first and
copied when everything else has succeeded. Temporary files vanish at errors, and at SIGTERM, SIGHUP and SIGINT.
"""

from __future__ import annotations

import io
import os
import re
import secrets
import shutil
import signal
import stat
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

#: Names of what a process has open already: opening them anew would lose the place in a file, replacing them the file.
_OPEN = re.compile(r"/dev/(?:std(in|out|err)|fd/(\d+))|/proc/(?:self|thread-self)/fd/(\d+)")


@contextmanager
def replacing(path: str | Path, mode: str = "w", **open_options: Any) -> Iterator[IO[Any]]:
    """A stream whose content takes the place of `path` at a clean exit (of `together`, inside one) and vanishes at an error.

    **Arguments:** `path`: a file, or "-" for standard output; `mode`: "w" for text (UTF-8), "wb" for bytes; `open_options`: of
    `open`.

    **Raises** OSError if it cannot be written: FileNotFoundError or NotADirectoryError if there is no such folder; ValueError if
    another output of the same `together` is the same file.
    """
    with together() as outputs, outputs.open(path, mode, **open_options) as stream:
        yield stream


def write_text(path: str | Path, text: str) -> None:
    """Write `text` to `path` ("-": standard output), whole or not at all."""
    with replacing(path) as stream:
        stream.write(text)


@contextmanager
def together() -> Iterator[Outputs]:
    """Whatever `replacing` and `write_text` write inside appears together at a clean exit, or not at all."""
    outer = _current.get()
    if outer is not None:
        yield outer
        return
    outputs = Outputs()
    token = _current.set(outputs)
    try:
        with _stopping():
            try:
                yield outputs
                outputs.commit()
            finally:
                outputs.discard()
    finally:
        _current.reset(token)


@dataclass(eq=False)
class _Output:
    """One output: a regular file goes to `target`, and is called `part` until then; for others `gathered` is copied to `sink`.

    `backup`: what was there, until all outputs are in their places; `placed`: whether `part` has (perhaps) become `target`.
    """

    shown: str
    where: tuple[Path, int | None]
    part: Path | None = None
    backup: Path | None = None
    fresh: bool = True
    placed: bool = False
    gathered: IO[bytes] | None = None
    sink: IO[bytes] | None = None

    @property
    def target(self) -> Path:
        """Where the file goes."""
        return self.where[0]

    def place(self, mask: int, keep: bool) -> None:
        """Let `part` become `target`; `keep`: what was there can be brought back."""
        assert self.part is not None
        self.fresh = not self.target.exists()
        self.part.chmod(0o666 & ~mask if self.fresh else self.target.stat().st_mode & 0o777)
        if keep and not self.fresh:
            self.backup = self.part.with_suffix(".old")
            try:
                os.link(self.target, self.backup)
            except OSError:  # a file system without hard links
                shutil.copy2(self.target, self.backup)
        self.placed = True  # said first: a signal may come in between
        os.replace(self.part, self.target)

    def undo(self) -> None:
        """Bring back what was at `target`."""
        if self.placed and self.part is not None and not self.part.exists():
            if self.backup is not None:
                os.replace(self.backup, self.target)
            elif self.fresh:
                self.target.unlink(missing_ok=True)

    def send(self) -> None:
        """Copy what was gathered."""
        if self.gathered is not None and self.sink is not None:
            self.gathered.seek(0)
            try:
                shutil.copyfileobj(self.gathered, self.sink)
                self.sink.flush()
            except OSError as error:
                error.filename = error.filename or self.shown
                with suppress(OSError):  # what could not be written is written again when a file is closed
                    self.sink.close()
                raise

    def discard(self, stack: ExitStack) -> None:
        """Remove what is temporary when `stack` unwinds."""
        for path in (self.part, self.backup):
            if path is not None:
                stack.callback(path.unlink, missing_ok=True)
        for stream in (self.gathered, self.sink):
            if stream is not None:
                stack.callback(stream.close)


def _name(error: BaseException, output: _Output | None) -> None:
    """Let what the system says of an output, or of its temporary file, name the path that was given."""
    named = error.filename if isinstance(error, OSError) else None
    if output is not None and named is not None and str(named) in (str(output.part), str(output.target)):
        error.filename, error.filename2 = output.shown, None  # type: ignore[attr-defined]


@dataclass
class Outputs:
    """The outputs that `together` gathers."""

    _all: list[_Output] = field(default_factory=list)

    @contextmanager
    def open(self, path: str | Path, mode: str = "w", **options: Any) -> Iterator[IO[Any]]:
        """A stream for `path`, as `replacing` gives it."""
        target, number, regular = _place(path)
        for other in self._all:
            if (target, number) == other.where:
                raise ValueError(f"{path} is not allowed: {other.shown} is the same file, and another output")
        output = _Output(str(path), (target, number))
        self._all.append(output)
        if "b" not in mode:
            options = {"encoding": "utf-8", "newline": "\n"} | options
        try:
            if regular:
                # The name is known before the file is there: a signal in between leaves nothing behind.
                output.part = target.parent / f".{target.name[:100]}.{secrets.token_hex(6)}.part"
                handle = os.open(output.part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            else:
                output.sink = _sink(target, number)
                output.gathered = tempfile.TemporaryFile()  # noqa: SIM115 - closed by discard
                handle = os.dup(output.gathered.fileno())
            with os.fdopen(handle, mode, **options) as stream:
                yield stream
                stream.flush()
                if regular:
                    os.fsync(stream.fileno())
        except BaseException as error:
            _name(error, output)
            self._all.remove(output)  # the others may still appear, if the error is handled
            with ExitStack() as stack:
                output.discard(stack)
            raise

    def commit(self) -> None:
        """Put all files in their places, then copy to the streams; undone if one of these fails."""
        mask = os.umask(0)
        os.umask(mask)
        output = None
        try:
            for output in self._all:
                if output.part is not None:
                    output.place(mask, keep=len(self._all) > 1)
            for output in self._all:
                output.send()
        except BaseException as error:
            _name(error, output)
            for output in self._all:
                output.undo()
            raise

    def discard(self) -> None:
        """Remove what is temporary, also if a signal comes while doing so."""
        with ExitStack() as stack:
            for output in self._all:
                output.discard(stack)


_current: ContextVar[Outputs | None] = ContextVar("outputs", default=None)


def _descriptor(path: str | Path) -> int | None:
    """The number of the open stream that a path names, by itself or as a symbolic link; None if it names no such."""
    text = "/dev/stdout" if str(path) == "-" else os.path.abspath(path)
    for _ in range(40):
        found = _OPEN.fullmatch(text)
        if found is not None:
            return {"in": 0, "out": 1, "err": 2}[found[1]] if found[1] else int(found[2] or found[3])
        if not os.path.islink(text):
            return None
        text = os.path.normpath(os.path.join(os.path.dirname(text), os.readlink(text)))
    return None


def _place(path: str | Path) -> tuple[Path, int | None, bool]:
    """(where `path` leads through links, the number of what is open already, whether a regular file is or will be there)."""
    sound(path)
    number = _descriptor(path)
    if number is not None:
        return Path("-"), number, False
    target = Path(os.path.realpath(path))
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        if not target.parent.is_dir():
            raise FileNotFoundError(f"{path} cannot be written: there is no folder {Path(path).parent}") from None
        return target, None, True
    except NotADirectoryError:
        raise NotADirectoryError(f"{path} cannot be written: what is above it is a file, and no folder") from None
    if stat.S_ISREG(mode):
        if not os.access(target, os.W_OK):
            raise PermissionError(f"{path} cannot be written: it is read-only")
    elif not (stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)):
        kind = "a folder" if stat.S_ISDIR(mode) else "a disk or a socket"
        raise OSError(f"{path} cannot be written: it is {kind}, and only files, pipes and terminals can be")
    return target, None, stat.S_ISREG(mode)


def writable(path: str | Path) -> None:
    """**Raises** what opening it for writing would, as far as can be seen: before work that would be lost."""
    _place(path)


def sound(path: str | Path) -> None:
    """**Raises** TypeError for what is no path, ValueError for one that no file has: systems do not name the argument."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path = {path!r} is not allowed: it must be a str or a pathlib.Path")
    if "\0" in str(path):
        raise ValueError(f"path = {str(path)!r} is not allowed: no file has a name with a null character")


def _sink(target: Path, number: int | None) -> IO[bytes]:
    """Where the bytes for a stream go."""
    if number == 1:
        sys.stdout.flush()
        try:
            number = sys.stdout.fileno()
        except (OSError, ValueError, AttributeError):  # an object that takes text, as in notebooks
            return _Printed()
    return open(target, "wb") if number is None else os.fdopen(os.dup(number), "wb")


class _Printed(io.BytesIO):
    """Bytes for a standard output that is no file."""

    def flush(self) -> None:
        if not self.closed:
            sys.stdout.write(self.getvalue().decode("utf-8"))
            self.seek(0)
            self.truncate()


def same(first: str | Path, second: str | Path) -> bool:
    """Whether an input and an output are one file: by any name, through links, or as a redirected standard stream."""
    one, two = _identity(first, 0), _identity(second, 1)
    return one is not None and one == two


def _identity(path: str | Path, standard: int) -> tuple[int, int] | None:
    """Device and inode of a regular file (None for others); `standard`: the descriptor that "-" means."""
    number = standard if str(path) == "-" else _descriptor(path)
    try:
        if number in (0, 1):  # which may have been exchanged for other streams
            number = (sys.stdin, sys.stdout)[number].fileno()
        found = os.stat(path) if number is None else os.fstat(number)
    except (OSError, ValueError, AttributeError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


@contextmanager
def reading(path: str | Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, or of standard input for "-". **Raises** OSError."""
    sound(path)
    if str(path) != "-":
        with open(path, "rb") as stream:
            yield stream
        return
    source = getattr(sys.stdin, "buffer", None)
    yield source if source is not None else io.BytesIO(sys.stdin.read().encode("utf-8", "surrogatepass"))


# --- signals


class Stopped(BaseException):
    """A signal that ends the process arrived while files were being written."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextmanager
def _stopping() -> Iterator[None]:
    """Signals that would end the process at once end it after the temporary files have been removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise Stopped(number)

    known = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP", "SIGINT") if hasattr(signal, name)]
    changed = [number for number in known if signal.getsignal(number) == signal.SIG_DFL]
    for number in changed:
        signal.signal(number, stop)
    try:
        yield
    except Stopped as stopped:
        signal.signal(stopped.number, signal.SIG_DFL)
        os.kill(os.getpid(), stopped.number)
        raise
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)

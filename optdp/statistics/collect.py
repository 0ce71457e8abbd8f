"""`optdp collect`: private records from many files, those that the plan cannot have made refused and counted.

Files are read in parts that fit any memory. Each part becomes a file of the target folder, and a note says how far a source has
been read: what was interrupted, or has grown, goes on from there. Each source is a task of its own, for processes or a cluster.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from optdp import files
from optdp.design.sweep import sweep
from optdp.exact import require
from optdp.exact.fields import Fields, load
from optdp.exact.table import Table
from optdp.mechanisms.base import Mechanism
from optdp.mechanisms.frequency import FrequencyOracle
from optdp.mechanisms.kernel import KernelMechanism
from optdp.mechanisms.piecewise import PiecewiseMechanism
from optdp.statistics import tables
from optdp.statistics.client import STAMP
from optdp.statistics.part import UNREAD, Part, as_column, as_outputs, reader
from optdp.statistics.plan import Plan, refuse_another

KINDS = (".jsonl", ".ndjson", ".csv", ".parquet")
#: Records at a time, their bytes, and the longest line.
CHUNK, BYTES, LINE = 65_536, 2**24, 2**20
#: So many of its first bytes tell whether a source is the one that was read before.
HEAD = 4096


@dataclass(frozen=True)
class Collected:
    """What `collect` has read so far.

    - `rows`: private records that were taken; `refused`: how many were not, by reason.
    - `waiting`: sources whose last line has no end yet: it is read when it has one.
    - `folder`: where the parts are, for `Plan.estimate`.
    """

    rows: int
    refused: dict[str, int]
    waiting: tuple[str, ...]
    folder: Path

    def __str__(self) -> str:
        lines = [
            f"{self.rows} private records of these sources are in {self.folder}, {sum(self.refused.values())} refused"
        ]
        lines += [f"  {count}: {why}" for why, count in sorted(self.refused.items())]
        lines += [f"  {name}: its last line has no end, and waits for it" for name in self.waiting]
        return "\n".join(lines)


def collect(
    plan: Plan, sources: Sequence[str | Path], folder: str | Path, *, parts: str = "csv", executor: Executor | None = None,
    progress: bool | None = None,
) -> Collected:  # fmt: skip
    """Gather private records, and refuse those that the plan cannot have made.

    **Arguments:**

    - `plan`: that of the clients.
    - `sources`: files of JSON lines (.jsonl, .ndjson), .csv or .parquet; each record has an entry for every column, null (an
      empty field) where it is not reported, and may have the plan's digest as "optdp".
    - `folder`: where the parts go. Called again, it reads only what is new.
    - `parts`: "csv" or "parquet".
    - `executor`: for the sources, any `concurrent.futures.Executor` (a dask client's `get_executor()` is one).
    - `progress`: a bar on stderr.

    **Returns** the counts. **Raises** TypeError, ValueError or OSError, naming the file.

        >>> import json, pathlib, tempfile, optdp
        >>> survey = optdp.plan({"smoker": optdp.Flag()}, 1.0)
        >>> folder = pathlib.Path(tempfile.mkdtemp())
        >>> private = survey.randomize({"smoker": [True, False, False]}, 1)["smoker"]
        >>> lines = [json.dumps({"smoker": answer}) for answer in [*private, "perhaps"]]
        >>> _ = (folder / "in.jsonl").write_text("".join(line + "\\n" for line in lines))
        >>> found = optdp.collect(survey, [folder / "in.jsonl"], folder / "answers")
        >>> found.rows, found.refused
        (3, {"an entry of 'smoker' that the plan does not send": 1})

    What is refused is told by reason and number alone. A record is possible if every entry is one of those that its mechanism
    sends, and as many columns are reported as the plan says; whether a person sent it twice, or made it up, is not seen in it.
    """
    if not isinstance(plan, Plan):
        raise TypeError(f"plan is a {type(plan).__name__}, which is not allowed: it must be an optdp.Plan")
    require.choice("parts", parts, ("csv", "parquet"))
    if isinstance(sources, str | Path):
        raise TypeError("sources is not allowed: it must be a list of paths")
    found = [Path(source).resolve() for source in sources]
    for source in found:
        if source.suffix.lower() not in KINDS:
            raise ValueError(f"{source.name} is not allowed: its name must end in one of {', '.join(KINDS)}")
    if not found or len(set(found)) < len(found):
        raise ValueError("sources are not allowed: there must be one at least, and each only once")
    target = Path(folder).resolve()
    for source in found:
        if source.parent == target and source.name.startswith("part-"):
            raise ValueError(f"{source.name} is not allowed: it is a part of {folder}, and would be counted twice")
        source.stat()  # one that is missing is named before a folder is made
    try:
        target.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise NotADirectoryError(
            f"{folder} is not allowed: it must be a folder, and it or one above it is a file"
        ) from None
    read = partial(_read_on, plan, folder=target, parts=parts)
    with _alone(target):
        refuse_another(plan, target)
        notes = sweep(read, found, executor=executor, progress=progress, label="collecting")
    refused: Counter[str] = Counter()
    for note in notes:
        refused.update(note.refused)
    waiting = tuple(Path(note.source).name for note in notes if note.waiting)
    return Collected(sum(note.rows for note in notes), dict(refused), waiting, target)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """No other `collect` reads into the folder: of two, each would write parts over those of the other, or beside them.

    A database that stays empty is a lock on every system, and lets go however a process ends.
    """
    path = folder / "lock"
    path.touch()  # what forbids it is an error that names the file
    with closing(sqlite3.connect(path, timeout=0.0, isolation_level=None)) as lock:
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise OSError(f"{path} cannot be locked: {error}") from None
            raise ValueError(
                f"{folder.name} is not allowed: another collect is reading into it; try again when that has ended"
            ) from None
        yield


@dataclass
class _Note:
    """How far a source is read: `position` (bytes, or rows of Parquet), `parts` written, the digest of its first `head` bytes."""

    plan: str
    source: str
    position: int = 0
    parts: int = 0
    rows: int = 0
    head: int = 0
    digest: str = ""
    waiting: bool = False
    refused: dict[str, int] | None = None

    @classmethod
    def read(cls, fields: Fields) -> _Note:
        made = cls(fields.text("plan", 64), fields.text("source"))
        for name in ("position", "parts", "rows", "head"):
            setattr(made, name, fields.integer(name, 0, 2**62))
        made.digest, made.waiting, counts = fields.text("digest", 64), fields.flag("waiting"), fields.child("refused")
        made.refused = {why: counts.integer(why, 0, 2**62) for why in list(counts.data)}
        fields.done()
        return made


def _read_on(plan: Plan, source: Path, folder: Path, parts: str) -> _Note:
    """Read what is new in a source, part by part."""
    name = hashlib.sha256(str(source).encode()).hexdigest()[:16]
    path = folder / f"read-{name}.json"
    note = load(path, _Note.read) if path.exists() else _Note(plan.digest, str(source))
    _same_parts(folder, f"part-{name}-", note)
    least = note.head if source.suffix.lower() == ".parquet" else note.position  # of what was read, nothing is gone
    if source.stat().st_size < least or _head(source, note.head) != (note.digest or _head(source, 0)):
        raise _another(source)
    refused = Counter(note.refused or {})
    reader = {".csv": _csv, ".parquet": _parquet}.get(source.suffix.lower(), _jsonl)
    for records, position, waiting in reader(source, note.position):
        columns, rows = _take(plan, records, refused)
        with files.together():
            if rows:
                tables.write_file(folder / f"part-{name}-{note.parts:06d}.{parts}", columns)
                note.parts += 1
            note.position, note.waiting, note.rows, note.refused = position, waiting, note.rows + rows, dict(refused)
            note.head = min(HEAD, position if source.suffix.lower() != ".parquet" else source.stat().st_size)
            note.digest = _head(source, note.head)
            files.write_text(path, json.dumps(vars(note)) + "\n")
    note.refused = dict(refused)
    return note


def _same_parts(folder: Path, start: str, note: _Note) -> None:
    """**Raises** ValueError unless there are the parts that the note knows; one that a run could not note any more is removed."""
    found = {part: part.stem.removeprefix(start) for part in folder.glob(f"{start}*")}
    for part in [part for part, number in found.items() if number == f"{note.parts:06d}"]:
        part.unlink()
        del found[part]
    if sorted(found.values()) != sorted(f"{number:06d}" for number in range(note.parts)):
        raise ValueError(
            f"{folder.name} is not allowed: parts of {Path(note.source).name} are missing or there twice; collect again into a "
            "new folder"
        )


def _another(source: Path) -> ValueError:
    return ValueError(f"{source.name} is not allowed: it is another file than the one that was read before, or shorter")


def _head(source: Path, size: int) -> str:
    with source.open("rb") as stream:
        return hashlib.sha256(stream.read(size)).hexdigest()


# --- readers: records (or the reason why a line is none), how far they reach, whether an unfinished line is left

Records = list[dict[str, Any] | str]


def _lines(stream: IO[bytes], start: int) -> Iterator[tuple[str | None, int]]:
    """(line, where it ends) from `start` on, without one that has no end; None for one that is too long or no UTF-8."""
    stream.seek(start)
    while line := stream.readline(LINE):
        code = "utf-8" if start else "utf-8-sig"
        start += len(line)
        if not line.endswith(b"\n"):
            if len(line) < LINE:
                return
            while line and not line.endswith(b"\n"):
                line = stream.readline(LINE)
                start += len(line)
            if not line:
                return
            yield None, start
            continue
        try:
            yield line.decode(code), start
        except UnicodeDecodeError:
            yield None, start


def _chunks(records: Iterator[tuple[dict[str, Any] | str | None, int]], source: Path, start: int) -> Iterator[Any]:
    chunk: Records = []
    begin = end = start
    for record, end in records:
        if record is not None:
            chunk.append(record)
        if len(chunk) == CHUNK or end - begin > BYTES:
            yield chunk, end, False
            chunk, begin = [], end
    yield chunk, end, source.stat().st_size > end


def _jsonl(source: Path, start: int) -> Iterator[Any]:
    with source.open("rb") as stream:
        yield from _chunks(((_record(line), end) for line, end in _lines(stream, start)), source, start)


def _record(line: str | None) -> dict[str, Any] | str | None:
    """The object in a line of JSON, None for an empty line."""
    if line is not None and not line.strip():
        return None
    try:
        found = json.loads(line or "", object_pairs_hook=_once, parse_constant=_never)
    except (ValueError, RecursionError):
        return "no record"
    return found if isinstance(found, dict) else "no record"


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


def _never(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _csv(source: Path, start: int) -> Iterator[Any]:
    with source.open("rb") as stream:
        first = next(_lines(stream, 0), None)
        if first is None:
            yield [], 0, source.stat().st_size > 0
            return
        stream.seek(0)
        header = Table(stream, source.name).header
        yield from _chunks(_rows(stream, header, max(start, first[1])), source, max(start, first[1]))


def _rows(stream: IO[bytes], header: list[str], start: int) -> Iterator[tuple[dict[str, Any] | str | None, int]]:
    """Rows as records; a row is one line."""
    for line, end in _lines(stream, start):
        try:
            row = next(csv.reader(io.StringIO(line or "", newline=""), strict=True), None)
        except csv.Error:
            row = [""] if header != [""] else ["", ""]
        if line is None or (row is not None and len(row) != len(header)):
            yield "no record", end
        else:
            yield None if row is None else dict(zip(header, row, strict=True)), end


def _parquet(source: Path, start: int) -> Iterator[Any]:
    with tables.parquet_file(source) as file:
        if file.metadata.num_rows < start:
            raise _another(source)
        rows = 0
        for group in range(file.num_row_groups):
            size = file.metadata.row_group(group).num_rows
            if rows + size > start:
                done = rows
                for batch in file.iter_batches(batch_size=CHUNK, row_groups=[group]):
                    new = batch.slice(max(start - done, 0))
                    done += batch.num_rows
                    yield new.to_pylist(), max(start, done), False
            rows += size


# --- what a plan can have made


def _take(plan: Plan, records: Records, refused: Counter[str]) -> tuple[dict[str, np.ndarray], int]:
    """(the columns of the records that the plan can have made, their number); the others are counted."""
    found, names, digest = list[dict[str, Any]](), set(plan.names), plan.digest
    for record in records:
        if isinstance(record, str):
            refused[record] += 1
        elif STAMP in record and STAMP not in names and record[STAMP] != digest:
            refused["made for another plan"] += 1
        elif set(record) - {STAMP} | (names & {STAMP}) != names:
            refused["other columns than the plan's"] += 1
        else:
            found.append(record)
    good, columns = np.ones(len(found), dtype=bool), {}
    there, whole = np.zeros(len(found), dtype=int), good.copy()
    first = {unit[0].name for unit in plan.units}
    together: dict[int, np.ndarray] = {}
    for part in plan.parts:
        column, possible, reported = _read(part, [record[part.name] for record in found])
        refused[f"an entry of {part.name!r} that the plan does not send"] += int((good & ~possible).sum())
        columns[part.name], good, there = column, good & possible, there + reported * (part.name in first)
        if part.group:
            whole &= together.setdefault(part.group, reported) == reported
    for fits, why in (
        (whole, "columns that are answered together, some of them alone"),
        (there == plan.reported, f"another number of {plan.counted} than the plan reports"),
    ):
        refused[why] += int((good & ~fits).sum())
        good &= fits
    for why in [why for why, count in refused.items() if not count]:
        del refused[why]
    return {name: column[good] for name, column in columns.items()}, int(good.sum())


def _read(part: Part, entries: list[Any]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(the column, which of its entries are possible, which are reported)."""
    gone, read, found = tables.missing(entries), reader(part), []
    reported = ~gone
    known = reported.copy()
    for row in np.flatnonzero(reported).tolist():
        try:
            found.append(read(entries[row]))
        except UNREAD:
            known[row] = False
    given, mechanism = as_outputs(part, found), part.mechanism
    possible = _each(mechanism, given) if isinstance(mechanism, FrequencyOracle) else sends(mechanism, given)
    known[known] = possible
    return as_column(part, given[possible], known), gone | known, reported


def _each(oracle: FrequencyOracle, sent: np.ndarray) -> np.ndarray:
    """Which rows an oracle sends: halved until those that it refuses are alone."""
    try:
        oracle.check_messages(sent)
        return np.ones(len(sent), dtype=bool)
    except ValueError:
        half = len(sent) // 2
        return np.concatenate([_each(oracle, sent[:half]), _each(oracle, sent[half:])]) if half else np.zeros(1, bool)


def sends(mechanism: Mechanism, y: np.ndarray) -> np.ndarray:
    """Which of these numbers, infinity among them, a mechanism can send; of one that is not known here: its support."""
    if isinstance(mechanism, PiecewiseMechanism):
        lattice = mechanism.tables()[0]
    elif isinstance(mechanism, KernelMechanism):
        lattice = mechanism.tables()["sent"]
    else:
        low, high = mechanism.support()
        return np.asarray((y >= low) & (y <= high))
    with np.errstate(over="ignore"):
        place = y / float(lattice.step)
    good = np.asarray((place == np.rint(place)) & (place >= lattice.first) & (place <= lattice.last))
    if isinstance(mechanism, KernelMechanism):  # pieces may be apart; roundings reach one number beyond
        lows, highs = np.array(mechanism.tables()["places"]).T
        piece = np.maximum(np.searchsorted(lows, place + 1, side="right") - 1, 0)
        good &= (place <= highs[piece] + 1) & (place >= lows[piece] - 1)
    return good

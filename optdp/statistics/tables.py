"""Tables of several kinds (pandas, polars, pyarrow, a dict of arrays, files) as columns, and back to the same kind."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from optdp import files
from optdp.exact import table as csv_table
from optdp.statistics import portable

if TYPE_CHECKING:
    import pandas as pd

Part = TypeVar("Part")
#: Rows of a file at a time.
CHUNK = 65_536
#: Columns that are named where a table is told in one line.
SHOWN = 12


class Refused(ValueError):
    """An entry of a column, by its row and why, never by its value."""

    def __init__(self, name: str, row: int, why: str) -> None:
        super().__init__(f"column {name!r}, row {row}: {why}")
        self.name, self.row, self.why = name, row, why


class Printed:
    """What notebooks show as it is printed."""

    def _repr_html_(self) -> str:
        from html import escape

        return f"<pre>{escape(str(self))}</pre>"


def few(names: Sequence[str]) -> str:
    """Columns in a line: the first ones, and how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN + 1 else ""
    return ", ".join(names[:SHOWN] if more else names) + more


def frame(columns: Mapping[str, Any], index: Sequence[Any]) -> pd.DataFrame:
    """A pandas table. **Raises** RuntimeError without pandas."""
    try:
        import pandas as pd
    except ImportError:
        raise RuntimeError("data frames need the package pandas: pip install 'optdp[tables]'") from None
    return pd.DataFrame(
        {k: np.atleast_1d(v) for k, v in columns.items()}, index=pd.Index(list(index), tupleize_cols=False)
    )


def missing(values: Any) -> np.ndarray:
    """Which entries are missing: see `portable.missing`."""
    return np.array([portable.missing(v) for v in values], dtype=bool)


def entries(values: Any) -> np.ndarray:
    """A column as an array. Lists of texts and of entries of several types keep them as they are: numpy would make texts of all
    of them, also of what is missing, or numbers of true and false, and leave out the zero bytes at the end of a text.
    """
    if not isinstance(values, list | tuple):
        return np.asarray(values)
    kinds = set(map(type, values))
    if len(kinds) < 2 and str not in kinds:
        with suppress(ValueError):  # lists of several lengths
            return np.asarray(values)
    return np.fromiter((None if v is np.ma.masked else v for v in values), dtype=object, count=len(values))


def names(table: Any) -> list[str]:
    """The names of the columns. **Raises** TypeError for what is no table."""
    if isinstance(table, Mapping):
        return list(table)
    found = getattr(table, "column_names", getattr(table, "columns", None))  # pyarrow; pandas and polars
    if found is None:
        raise _no_table(table)
    return list(found)


def _no_table(table: Any) -> TypeError:
    return TypeError(
        f"table is a {type(table).__name__}, which is not allowed: it must be a pandas or polars frame, a pyarrow table, a "
        "dict of arrays, a dask DataFrame or a file"
    )


def column(table: Any, name: str) -> np.ndarray:
    """One column as an array."""
    part = table[name]
    if isinstance(part, np.ma.MaskedArray) and part.mask.any():  # what lies under a mask is no entry
        return np.where(part.mask, np.array(None), part.data)
    found = _array(part)
    if found.dtype == float and (np.abs(found) >= 2**53).any():
        held: Any = getattr(part, "type", getattr(part, "dtype", ""))
        held = getattr(held, "value_type", getattr(getattr(held, "categories", None), "dtype", held))  # of a dictionary
        kind = str(held).lower()
        if kind.startswith(("int", "uint")):  # of which numpy makes floats where some are missing
            return entries(part.to_pylist() if hasattr(part, "to_pylist") else list(part))
    return found


def _array(part: Any) -> np.ndarray:
    """A column as numpy has it."""
    package = type(part).__module__.split(".")[0]
    if package == "polars" and getattr(part.dtype, "time_zone", None):  # numpy would have the day of UTC
        part = part.dt.replace_time_zone(None)
    if package != "pyarrow":
        return entries(part)
    if hasattr(part.type, "index_type"):  # a dictionary, whose last value pyarrow would give for what is missing
        part = part.cast(part.type.value_type)
    if getattr(part.type, "tz", None):
        from pyarrow import compute

        part = compute.local_timestamp(part)
    return np.asarray(part.to_numpy(zero_copy_only=False))


def like(table: Any, columns: dict[str, np.ndarray]) -> Any:
    """A table of the same kind with these columns, and for pandas the same index."""
    if isinstance(table, Mapping):
        return columns
    kind = type(table).__module__.split(".")[0]
    if kind == "pandas":
        return type(table)(columns, index=table.index)
    if kind == "polars":
        return type(table)({k: _missing(v, None) for k, v in columns.items()})
    if kind == "pyarrow":
        return _arrow_table(columns)
    raise _no_table(table)


def map_file(
    source: str | Path, target: str | Path, change: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]], progress: bool
) -> int:  # fmt: skip
    """Write `change` of each chunk of a CSV or Parquet file to another of the same kind. **Returns** the number of rows.

    "-" is standard input or output, and CSV.
    """
    from tqdm import tqdm

    kinds = {kind(p) for p in (source, target)}
    if len(kinds) > 1:
        raise ValueError(f"files {source} and {target} are not allowed: both must be .csv, or both .parquet")
    done = 0
    with tqdm(unit=" rows", disable=not progress, leave=False) as bar:
        try:
            for count in (_csv if kinds == {".csv"} else _parquet)(source, target, change):
                done += count
                bar.update(count)
        except Refused as entry:  # its row is counted in its chunk
            raise Refused(entry.name, done + entry.row, entry.why) from None
    return done


def kind(path: str | Path) -> str:
    """ ".csv" (also of "-", a standard stream) or ".parquet", by the name of a file. **Raises** ValueError."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    found = ".csv" if str(path) == "-" else suffixes[-1] if suffixes else ""
    if found not in (".csv", ".parquet"):
        inner = len(suffixes) > 1 and suffixes[-2] in (".csv", ".parquet")
        why = "what is compressed must be unpacked first" if inner else "it must be .csv or .parquet"
        why = "`optdp collect` gathers JSON lines" if found == ".jsonl" else why
        raise ValueError(f"file {path} is not allowed: {why}")
    return found


def each(table: Any, function: Callable[[Any], Part], *, multiline: bool = False) -> Iterator[Part]:
    """`function` of each part of a table: of the chunks of a file or of the parts in a folder that `collect` filled, of the
    partitions of a dask DataFrame (on its cluster), or of the table itself. `multiline`: fields of CSV may hold line breaks.
    """
    if isinstance(table, str | Path) and Path(table).is_dir():
        found = sorted(Path(table).glob("part-*"))
        if not found:
            raise ValueError(f"{table} is not allowed: there are no parts in it")
        for part in found:
            yield from each(part, function, multiline=multiline)
    elif isinstance(table, str | Path):
        yield from map(function, _batches(table) if kind(table) == ".parquet" else _chunks(table, multiline=multiline))
    elif hasattr(table, "to_delayed"):
        import dask  # there is a dask DataFrame, so that it is installed; else: optdp[dask]

        yield from dask.compute(*map(dask.delayed(function), table.to_delayed()))
    else:
        yield function(table)


def streamed(table: Any) -> bool:
    """Whether a table is looked at part by part: a file, or a dask DataFrame."""
    return isinstance(table, str | Path) or hasattr(table, "to_delayed")


def read_file(source: str | Path, *, multiline: bool = False) -> dict[str, np.ndarray]:
    """A whole CSV or Parquet file as columns: texts, or what Parquet holds; or all parts in a folder that `collect` filled."""
    parts = list(each(source, lambda part: part, multiline=multiline))
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}


def write_file(target: str | Path, columns: Mapping[str, np.ndarray]) -> None:
    """Columns as a CSV or Parquet file, whole or not at all; numbers that are nan, and None, are empty."""
    if Path(target).suffix.lower() == ".parquet":
        parquet = _arrow()
        with files.replacing(target, "wb") as sink:
            parquet.write_table(_arrow_table(columns), sink)
        return
    with files.replacing(target, newline="") as sink:
        writer = csv.writer(sink, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(_rows(columns))


def _missing(column: np.ndarray, gone: Any) -> list[Any]:
    """A column's entries, with `gone` for None and for numbers that are nan."""
    return [gone if v is None or v != v else v for v in column.tolist()]


def _rows(columns: Mapping[str, np.ndarray]) -> Iterator[tuple[Any, ...]]:
    """Rows of a CSV file: what is missing is empty."""
    return zip(*(_missing(c, "") for c in columns.values()), strict=True)


def _arrow_table(columns: Mapping[str, np.ndarray]) -> Any:
    """Numbers or texts; what is missing is null, and the types are the same where a whole column is."""
    import pyarrow as pa

    kinds = [pa.float64() if c.dtype.kind == "f" else pa.string() for c in columns.values()]
    arrays = [pa.array(c, type=kind, from_pandas=True) for c, kind in zip(columns.values(), kinds, strict=True)]
    return pa.Table.from_arrays(arrays, names=list(columns))


@contextmanager
def parquet_file(source: str | Path) -> Iterator[Any]:
    """A Parquet file that is open. **Raises** RuntimeError without pyarrow, ValueError for what is no such file."""
    parquet = _arrow()
    from pyarrow import ArrowException

    try:
        with parquet.ParquetFile(source, pre_buffer=False) as file:
            yield file
    except (ArrowException, OSError) as error:
        if getattr(error, "errno", None) is not None:  # of the file system, which names the file
            raise
        raise ValueError(
            f"{source} is not allowed: it cannot be read as a Parquet file, is another one or damaged"
        ) from None


def _batches(source: str | Path) -> Iterator[dict[str, np.ndarray]]:
    with parquet_file(source) as file:
        for batch in file.iter_batches(batch_size=CHUNK):
            yield {name: column(batch, name) for name in batch.schema.names}
        if not file.metadata.num_rows:
            yield {name: np.array([], dtype=object) for name in file.schema_arrow.names}


def _chunks(source: str | Path, *, multiline: bool = False) -> Iterator[dict[str, np.ndarray]]:
    """The rows of a CSV file, read as `optdp.exact.table` says."""
    with csv_table.reading(source, multiline=multiline) as found:
        rows: list[list[str]] = []
        some = False
        for row in found.rows():
            rows.append(row)
            if len(rows) == CHUNK:
                yield _transposed(found.header, rows)
                rows, some = [], True
        if rows or not some:
            yield _transposed(found.header, rows)


def _transposed(header: list[str], rows: list[list[str]]) -> dict[str, np.ndarray]:
    return {name: np.array([row[i] for row in rows], dtype=object) for i, name in enumerate(header)}


def _csv(source: Any, target: Any, change: Any) -> Iterator[int]:
    with files.replacing(target, newline="") as sink:
        writer, first = csv.writer(sink, lineterminator="\n"), True
        for part in _chunks(source):
            out = change(part)
            if first:
                writer.writerow(out)
                first = False
            writer.writerows(_rows(out))
            yield len(next(iter(part.values())))


def _parquet(source: Any, target: Any, change: Any) -> Iterator[int]:
    parquet = _arrow()
    with files.replacing(target, "wb") as sink:
        writer = None
        try:
            for part in _batches(source):
                out = _arrow_table(change(part))
                writer = writer or parquet.ParquetWriter(sink, out.schema)
                writer.write_table(out)
                yield out.num_rows
        finally:  # after a refused entry too: else it complains of the closed file when it is collected
            if writer is not None:
                writer.close()


def _arrow() -> Any:
    try:
        import pyarrow.parquet
    except ImportError:
        raise RuntimeError("Parquet files need the package pyarrow: pip install 'optdp[tables]'") from None
    return pyarrow.parquet

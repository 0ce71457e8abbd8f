"""Tables in files: CSV read strictly, row by row. What is not certain to mean what it seems to mean is refused with its row.

**The format.** UTF-8, with or without a byte order mark; a header with different names, then one line for each row, ending in
LF or CR LF, with as many fields as the header. Fields are separated by one character; a field that holds the separator or a quote
stands in double quotes, with quotes inside doubled (RFC 4180). Blank lines, quotes inside a field that does not begin with one,
text after a closing quote, control characters, and fields over 131,072 characters are refused. So is a field with a line
break, unless it is asked for: a quote that is missing turns the rows after it into one such field.

**Numbers.** An optional sign, digits with at most one point among them, an optional exponent: 12, -0.5, .5, 6.02e23. Nothing else
is one: no spaces, no thousands separators, no underscores, no other digits than 0 to 9, no "nan" and no "inf".

Python's `csv` (strict) splits what contains quotes; it takes some of what is refused here, so that each line is checked first.
"""

from __future__ import annotations

import csv
import math
import os
import re
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import IO

from optdp import files

#: A row may have this many bytes, a field this many characters.
ROW, FIELD = 2**22, 131_072

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
#: Control characters but the tab, and what other readers take for the end of a line; CR and LF are looked at by themselves.
_CONTROL = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x9f\\u2028\\u2029]")


def real(text: str) -> float | None:
    """The number that `text` is in the grammar above (infinite if it is beyond floats), or None.

    >>> real("-1.5e3"), real(".5"), real("1_0"), real("nan"), real(" 1")
    (-1500.0, 0.5, None, None, None)
    """
    return float(text) if len(text) <= 1000 and _NUMBER.fullmatch(text) else None


def exact(text: str) -> Fraction | None:
    """The same as a rational, or one written as p/q: "1/3"; None if it is neither, or has more than 1000 digits."""
    parts = text.split("/")
    if len(parts) == 2 and all(part.isascii() and part.isdigit() and len(part) <= 1000 for part in parts):
        return Fraction(int(parts[0]), int(parts[1])) if int(parts[1]) else None
    found = real(text)
    return None if found is None or not math.isfinite(found) or (found == 0) != _zero(text) else Fraction(text)


def _zero(text: str) -> bool:
    """Whether the digits before the exponent are all 0: what is smaller than all floats is not."""
    return not re.search("[1-9]", text.lower().partition("e")[0])


def one_line(text: str) -> bool:
    """Whether a field can hold a text: no line breaks, control characters or halves of surrogate pairs."""
    return not (_CONTROL.search(text) or "\n" in text or "\r" in text or re.search("[\ud800-\udfff]", text))


def separator(text: str) -> str:
    r"""The one character that separates fields; "\t" is the tab. **Raises** ValueError."""
    found = "\t" if text == r"\t" else text
    if len(found) != 1 or not (found == "\t" or found.isprintable()) or found.isalnum() or found in "\"'.+-_ ":
        raise ValueError(
            f"delimiter = {text!r} is not allowed: delimiter must be one character such as , ; | or \\t, "
            "and no letter, digit, quote, space, point or sign"
        )
    return found


class Records:
    """The lines of a CSV file, split into fields.

    **Arguments:** `stream`: its bytes; `name`: the file in messages; `multiline`: whether fields may hold line breaks; `hint`:
    how to allow them.

    **Raises** ValueError where the format above is not kept, naming the row, never a value: it may be private.
    """

    def __init__(
        self, stream: IO[bytes], name: str, delimiter: str = ",", *, multiline: bool = False, hint: str = ""
    ) -> None:
        self.name, self.delimiter, self.multiline, self.hint = name, separator(delimiter), multiline, hint
        self.read = 0  # bytes
        self._stream, self._where = stream, "row 1"
        mark = re.escape(self.delimiter)
        one = rf'(?:"[^"]*(?:""[^"]*)*"|[^"{mark}\n]*)'
        self._quoted = re.compile(rf"{one}(?:{mark}{one})*")

    def rows(self) -> Iterator[list[str]]:
        """All rows."""
        number = 1
        while True:
            self._where = f"row {number}"
            row = self._next()
            if row is None:
                return
            yield row
            number += 1

    def _refuse(self, told: str) -> ValueError:
        return ValueError(f"{self.name}, {self._where} {told}")

    def _next(self) -> list[str] | None:
        line = self._line()
        if line is None:
            return None
        if not line:
            raise self._refuse("is a blank line, which is not allowed")
        if '"' not in line:  # by the grammar, separators then separate
            row = line.split(self.delimiter)
        else:
            while line.count('"') % 2:
                more = self._line() if self.multiline else None
                if more is None or len(line) > ROW:
                    raise self._refuse(
                        "has a quote that is not closed" + ("" if self.multiline else f" on its line{self.hint}")
                    )
                line += "\n" + more
            row = self._split(line)
        if len(line) > FIELD and any(len(cell) > FIELD for cell in row):
            raise self._refuse(f"has a field longer than {FIELD} characters, which is not allowed")
        return row

    def _split(self, line: str) -> list[str]:
        if not self._quoted.fullmatch(line):
            raise self._refuse('has a quote inside a field, which is not allowed: write "a ""b"" c"')
        try:
            (row,) = csv.reader([line], delimiter=self.delimiter, strict=True)
        except csv.Error:  # after the check above, only the reader's own limit is left
            raise self._refuse(f"has a field longer than {FIELD} characters, which is not allowed") from None
        return row

    def _line(self) -> str | None:
        raw = self._stream.readline(ROW + 1)
        if not raw:
            return None
        if len(raw) > ROW:
            raise self._refuse(f"is longer than {ROW} bytes, which is not allowed")
        first, self.read = not self.read, self.read + len(raw)
        if first and raw.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ValueError(f"{self.name} is UTF-16, which is not allowed: convert it to UTF-8")
        try:
            text = raw.decode("utf-8-sig" if first else "utf-8")
        except UnicodeDecodeError:
            raise self._refuse("is not UTF-8, which is not allowed: convert the file, as with iconv -t UTF-8") from None
        text = text.removesuffix("\n").removesuffix("\r") if text.endswith("\n") else text
        if "\r" in text:
            raise self._refuse("has a carriage return that ends no line, which is not allowed")
        if _CONTROL.search(text):
            raise self._refuse("has a control character, which is not allowed")
        return text


class Table(Records):
    """A CSV file with a header, of which all rows have a field for each column. Row 1 is the first after the header."""

    def __init__(
        self, stream: IO[bytes], name: str, delimiter: str = ",", *, multiline: bool = False, hint: str = ""
    ) -> None:
        super().__init__(stream, name, delimiter, multiline=multiline, hint=hint)
        self._where = "the header"
        header = self._next()
        if header is None:
            raise ValueError(f"{name} is empty: it must start with a header")
        seen: set[str] = set()
        for place, title in enumerate(
            header, 1
        ):  # no name is quoted: in a file without a header they are private values
            if title in seen:
                raise ValueError(f"{name}: column {place} has the name of another column, which is not allowed")
            if not title.isprintable():
                tabs = f" (tabs; fields are separated by {delimiter!r})" if "\t" in title else ""
                raise ValueError(
                    f"{name}: the name of column {place} has characters that do not show{tabs}: not allowed"
                )
            seen.add(title)
        self.header: list[str] = header

    def column(self, name: str, what: str = "column") -> int:
        """The place of a column. **Raises** ValueError."""
        if name not in self.header:
            told = f"among the {len(self.header)} of its header"
            told += f", whose fields are separated by {self.delimiter!r}" if len(self.header) == 1 else ""
            raise ValueError(f"{what} = {name!r} is not allowed: {self.name} has no such column {told}")
        return self.header.index(name)

    def rows(self) -> Iterator[list[str]]:
        for row in super().rows():
            if len(row) != len(self.header):
                raise self._refuse(f"has {len(row)} fields where the header has {len(self.header)}")
            yield row


@contextmanager
def reading(path: str | Path, delimiter: str = ",", *, multiline: bool = False, hint: str = "") -> Iterator[Table]:
    """The table in a file, or in standard input for "-"."""
    with files.reading(path) as stream:
        name = "standard input" if str(path) == "-" else str(path)
        yield Table(stream, name, delimiter, multiline=multiline, hint=hint)


def size(path: str | Path) -> int | None:
    """The bytes of a regular file, for a progress bar; None for a pipe."""
    found = None if str(path) == "-" else os.stat(path)
    return found.st_size if found is not None and stat.S_ISREG(found.st_mode) else None


def written(row: Sequence[str], delimiter: str) -> str:
    """A row as a line that reads back the same."""
    line = delimiter.join(row)
    if not line or '"' in line or "\n" in line or line.count(delimiter) >= len(row):
        special = ('"', "\n", delimiter)
        cells = ['"' + c.replace('"', '""') + '"' if any(s in c for s in special) else c for c in row]
        line = delimiter.join(cells) or '""'
    return line + "\n"

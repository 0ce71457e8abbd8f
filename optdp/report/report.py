"""One table with its notes and its figure, for a terminal, a notebook, Markdown, a page or a data frame."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from optdp import files
from optdp.exact.numbers import above, below

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame


@dataclass(frozen=True)
class Column:
    """A column: the key of its values in the rows, the heading that people see, and how numbers are written.

    `rounding`: "down" or "up" for bounds, whose `style` is then ".<digits>g".
    """

    key: str
    heading: str
    style: str = ".6g"
    rounding: Literal["nearest", "down", "up"] = "nearest"

    def text(self, row: dict[str, Any]) -> str:
        """The cell as people see it; missing values are a dash."""
        value = row.get(self.key)
        if value is None:
            return "-"
        if not isinstance(value, int | float) or isinstance(value, bool):
            return str(value)
        if self.rounding == "nearest":
            return format(value, self.style)
        return (below if self.rounding == "down" else above)(value, int(self.style[1:-1]))


@dataclass(frozen=True, repr=False)
class Report:
    """A table of results: `rows` hold exact numbers, `columns` say how they are shown, `notes` how to read them.

    `to_text()`, `to_markdown()`, `to_html()`, `to_latex()`, `to_frame()`, `to_json()`, `plot()`, and `save(path)` by file ending.
    """

    title: str
    columns: Sequence[Column]
    rows: Sequence[dict[str, Any]]
    notes: Sequence[str] = ()
    figure: Callable[[], Figure] | None = field(default=None, compare=False)

    def _cells(self) -> list[list[str]]:
        return [[c.heading for c in self.columns], *([c.text(row) for c in self.columns] for row in self.rows)]

    def _numeric(self) -> list[bool]:
        return [all(isinstance(r.get(c.key), int | float | None) for r in self.rows) for c in self.columns]

    def to_text(self) -> str:
        """The table for a terminal: numbers right-aligned under their headings, which take two lines in a wide table."""
        (head, *cells), numeric = self._cells(), self._numeric()
        heads = [head]
        if sum(map(len, head)) + 2 * len(head) > WIDE:
            parts = [cell.partition(" / ") for cell in head]
            heads = [[first for first, _, _ in parts], [slash.lstrip() + rest for _, slash, rest in parts]]
            heads = heads if any(heads[1]) else [head]
        widths = [max(map(len, column)) for column in zip(*heads, *cells, strict=True)]

        def line(row: list[str]) -> str:
            parts = [t.rjust(w) if n else t.ljust(w) for t, w, n in zip(row, widths, numeric, strict=True)]
            return "  ".join(parts).rstrip()

        above, body = list(map(line, heads)), list(map(line, cells))
        bar = "-" * max(map(len, [*above, *body]))
        return "\n".join([self.title, "", *above, bar, *body, "", *self.notes]).rstrip()

    def to_latex(self) -> str:
        """The table as a LaTeX `tabular` with rules of the package booktabs, the title and the notes as comments."""
        head, *body = ([_escaped(cell) for cell in row] for row in self._cells())
        align = "".join("r" if numeric else "l" for numeric in self._numeric())
        rows = [" & ".join(row) + r" \\" for row in (head, *body)]
        lines = [
            rf"\begin{{tabular}}{{{align}}}",
            r"\toprule",
            rows[0],
            r"\midrule",
            *rows[1:],
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join([f"% {self.title}", *lines, *(f"% {note}" for note in self.notes)]) + "\n"

    def to_markdown(self) -> str:
        """The table in GitHub Markdown."""
        head, *body = self._cells()
        bar = ["---:" if numeric else "---" for numeric in self._numeric()]
        lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in [head, bar, *body]]
        return "\n".join([f"### {self.title}", "", *lines, "", *(f"{note}\n" for note in self.notes)]).rstrip() + "\n"

    def to_html(self, *, page: bool = True) -> str:
        """One self-contained page (or, with `page=False`, its body), with the figure as inline SVG."""
        parts = [f"<h2>{html.escape(self.title)}</h2>", self._html_table()]
        if self.figure is not None:
            from optdp.report.plots import svg

            parts.insert(1, f"<figure>{svg(self.plot())}</figure>")
        content = "\n".join(parts)
        return html_page(self.title, content) if page else content

    def _html_table(self) -> str:
        """The table and the notes under it."""
        head, *body = ([html.escape(cell) for cell in row] for row in self._cells())
        rows = "\n".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body)
        headings = "".join(f"<th>{cell}</th>" for cell in head)
        table = f"<table><thead><tr>{headings}</tr></thead><tbody>\n{rows}\n</tbody></table>"
        return "\n".join([f"<div class='wide'>{table}</div>", *(f"<p>{html.escape(note)}</p>" for note in self.notes)])

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame of the exact numbers, one column for each entry of the rows."""
        try:
            from pandas import DataFrame
        except ImportError:
            raise RuntimeError("data frames need the package pandas: pip install 'optdp[tables]'") from None
        return DataFrame(list(self.rows))

    def to_csv(self) -> str:
        """The exact numbers as comma-separated values, one column for each entry of the rows."""
        stream = io.StringIO()
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        writer = csv.DictWriter(stream, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(self.rows)
        return stream.getvalue()

    def to_json(self) -> str:
        """The exact numbers as JSON."""
        return json.dumps({"title": self.title, "rows": list(self.rows), "notes": list(self.notes)}, indent=2) + "\n"

    def plot(self) -> Figure:
        """The report's figure, a matplotlib Figure. **Raises** ValueError if it has none."""
        if self.figure is None:
            raise ValueError(f"the report '{self.title}' has no figure")
        return self.figure()

    def save(self, path: str | Path) -> None:
        """Write .md, .html, .tex, .json, .csv, .txt, or the figure as .png, .svg or .pdf, atomically."""
        files.sound(path)
        suffix = Path(path).suffix.lower()
        if suffix in (".png", ".svg", ".pdf"):
            from optdp.report.plots import save_figure

            save_figure(self.plot(), path)
            return
        writers: dict[str, Callable[[], str]] = {
            ".md": self.to_markdown, ".html": self.to_html, ".tex": self.to_latex, ".json": self.to_json,
            ".csv": self.to_csv, ".txt": lambda: self.to_text() + "\n",
        }  # fmt: skip
        if suffix not in writers:
            allowed = f"it must end in {', '.join(writers)}, .png, .svg or .pdf"
            raise ValueError(f"path = {str(path)!r} is not allowed: {allowed}")
        files.write_text(path, writers[suffix]())

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<Report '{self.title}': {len(self.rows)} rows x {len(self.columns)} columns>"

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(self.title)}</b></p>\n{self._html_table()}"  # `plot()` draws the figure


class Tabled:
    """What shows itself as the table that its `to_report()` gives. Dataclasses among these need `repr=False`."""

    def to_report(self) -> Report:
        """The table."""
        raise NotImplementedError(f"{type(self).__name__} has no table")

    def __str__(self) -> str:
        return self.to_report().to_text()

    def __repr__(self) -> str:
        return repr(self.to_report()).replace("Report", type(self).__name__, 1)

    def _repr_html_(self) -> str:
        return self.to_report()._repr_html_()


#: A table of more characters gets headings of two lines.
WIDE = 110


def _escaped(text: str) -> str:
    """Plain text for LaTeX."""
    marks = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"} | {
        c: f"\\{c}" for c in "&%$#_{}"
    }
    return "".join(marks.get(c, c) for c in text).replace("<", "$<$").replace(">", "$>$").replace("|", "$|$")


def html_page(title: str, body: str) -> str:
    """A self-contained page."""
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{html.escape(title)}</title><style>{STYLE}"
        f"</style></head>\n<body>\n{body}\n</body></html>\n"
    )


STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #1a1a1a; max-width: 68rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2 { font-weight: 600; line-height: 1.2; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; font-size: 0.92em; }
th, td { padding: 0.25rem 0.6rem; border-bottom: 1px solid #ddd; text-align: right; }
td { white-space: nowrap; } th { vertical-align: bottom; }
.wide { overflow-x: auto; }
th:first-child, td:first-child { text-align: left; }
thead th { border-bottom: 2px solid #444; }
figure { margin: 1rem 0; } figure svg { max-width: 100%; height: auto; }
@media print { body { margin: 0; max-width: none; } h2 { break-after: avoid; } table, figure { break-inside: avoid; } }
"""

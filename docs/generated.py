"""What the documentation takes from the package: the reference, the published mechanisms, the notebooks, the list of pages."""

import importlib
import inspect
import json
import re
import shutil
from pathlib import Path

import optdp

#: The pages of the reference: heading, introduction, and the packages whose public names stand there.
REFERENCE = {
    "problem": ("Problems", "What is asked: privacy notion, domain, objective, family and constraints.", ("problem", "exact")),
    "solve": ("Solving", "`optdp.solve` takes any problem; the others are shorthands for one kind each.", ("design",)),
    "solution": ("Solutions and mechanisms", "What a solve returns, and what is deployed.",
                 ("solution", "status", "mechanisms")),
    "statistics": ("Surveys and estimates", "From a table to private answers, and from these to statistics.", ("statistics",)),
    "report": ("Reports and the audit", "Comparisons, gap reports and published claims.", ("report", "audit")),
}  # fmt: skip


def write(docs: Path) -> None:
    """Write docs/api, docs/published.md, docs/notebooks and the atlas's data (all ignored by git), if they changed."""
    for name, text in reference().items():
        _write(docs / "api" / f"{name}.md", text)
    _write(docs / "published.md", published())
    _write(docs / "_static" / "atlas-data.js", atlas_data())
    (docs / "notebooks").mkdir(exist_ok=True)
    for notebook in (docs.parent / "notebooks").glob("*.ipynb"):
        copy = docs / "notebooks" / notebook.name
        if not copy.exists() or copy.read_bytes() != notebook.read_bytes():
            shutil.copyfile(notebook, copy)
    for old in (docs / "notebooks").glob("*.ipynb"):
        if not (docs.parent / "notebooks" / old.name).exists():
            old.unlink()


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def homes() -> dict[str, str]:
    """Public name -> the page of the reference that has it. What fits no page stands on one of its own package."""
    pages = {package: page for page, (_, _, packages) in REFERENCE.items() for package in packages}
    found = {}
    for name in optdp.__all__:
        if name not in ("__version__", "audit"):
            package = importlib.import_module(optdp._HOME[name]).__name__.split(".")[1]
            found[name] = pages.get(package, package)
    return found | {"audit": "report"}


def reference() -> dict[str, str]:
    """The pages of the reference: every public name, with its docstring."""
    where, shown = homes(), examples()
    made = {}
    for page in [*REFERENCE, *sorted(set(where.values()) - set(REFERENCE))]:
        title, about, _ = REFERENCE.get(page, (page.capitalize(), "", ()))
        names = sorted((name for name in where if where[name] == page), key=lambda n: (n[0].isupper(), n.lower()))
        parts = [f"# {title}", "", about, ""]
        for name in names:
            parts += [f"## {name}", "", "```{eval-rst}", *_directive(name), "```", ""]
            if name in shown and ">>>" not in (getattr(optdp, name).__doc__ or ""):
                parts += ["```pycon", shown[name].rstrip(), "```", ""]
        made[page] = "\n".join(parts)
    listed = "\n".join(made)
    made["index"] = (
        "# Reference\n\nEvery public name of the package, as its docstring describes it. Their examples are run by the tests.\n\n"
        f"```{{toctree}}\n:maxdepth: 2\n\n{listed}\n```\n"
    )
    return made


def examples() -> dict[str, str]:
    """The examples of docs/examples.md by name."""
    text = (Path(__file__).parent / "examples.md").read_text(encoding="utf-8")
    return dict(re.findall(r"^## (\w+)\n```pycon\n(.*?)^```", text, re.S | re.M))


def _directive(name: str) -> list[str]:
    if name == "audit":  # a package that is also a function
        return [".. autofunction:: optdp.audit.audit.audit"]
    thing = getattr(optdp, name)
    if inspect.isclass(thing):
        return [f".. autoclass:: optdp.{name}", "   :members:"]
    return [f".. autofunction:: optdp.{name}" if callable(thing) else f".. autodata:: optdp.{name}"]


def published() -> str:
    """The registry of published mechanisms as a page."""
    from optdp.mechanisms.baselines import baselines

    lines = [
        "# Published mechanisms",
        "",
        "Every mechanism from the literature that comparisons and gap reports know, printed from the registry",
        "`optdp.mechanisms.baselines`. Short names are explained in the [glossary](glossary.md).",
        "",
        "| name | privacy | domain | unbiased | source |",
        "| --- | --- | --- | --- | --- |",
    ]
    for name, known in baselines().items():
        row = (
            name,
            ", ".join(known.privacy),
            ", ".join(known.domains),
            "yes" if known.unbiased else "no",
            known.source,
        )
        lines.append("| " + " | ".join(row) + " |")
    return "\n".join(lines) + "\n"


def atlas_data() -> str:
    """The atlas of the package as a script for docs/atlas.md: browsers do not let pages that are files read other files."""
    from optdp.exact.fields import written
    from optdp.exact.numbers import above, below
    from optdp.report.atlas import CHARTS

    known = optdp.atlas()
    charts = {}
    for point in known.points:
        chart = CHARTS[point.chart]
        about = {"name": chart.name, "group": chart.group, "variant": chart.variant, "axis": chart.axis, "points": []}
        shown = {
            "level": point.level, "statement": point.problem.statement(), "lower": point.lower_bound, "value": point.value,
            "shownLower": below(point.lower_bound, 7), "shownValue": above(point.value, 7), "gap": point.gap,
            "rtol": point.rtol, "certified": point.certified, "digest": point.digest, "picture": written(point.picture),
            "rivals": [written(rival) for rival in point.rivals],
        }  # fmt: skip
        charts.setdefault(point.chart, about)["points"].append(shown)
    made = {"version": known.version, "charts": list(charts.values())}
    return f"window.OPTDP_ATLAS = {json.dumps(made, separators=(',', ':'))};\n"


def prepare(app, name: str, source: list[str]) -> None:
    """Blocks of {plot} are run by matplotlib's directive, which reads reStructuredText; what a benchmark printed gets a title; in
    index.md, @REST@ stands for the pages of docs/ that are not listed there by name, so that a new page is in the tree.
    """
    if name.startswith("benchmark-") and not source[0].startswith("# "):  # tables that a benchmark printed
        source[0] = f"# Benchmark: {name.removeprefix('benchmark-')}\n\n" + re.sub(r"^###", "##", source[0], flags=re.M)
    source[0] = re.sub(r"\]\((audit|discoveries)\.md", r"](\1/index.md", source[0])  # where these were one page
    source[0] = re.sub(r"^```\{plot\}\n(.*?)^```$", _plot, source[0], flags=re.M | re.S)
    if name == "index":
        named = set(re.findall(r"^(\w[\w\-]*)$", source[0], re.M))
        rest = sorted({Path(page).name for page in app.env.found_docs if "/" not in page} - named - {"index"})
        source[0] = source[0].replace("@REST@", "\n".join(rest))


def _plot(block: re.Match[str]) -> str:
    code = "".join(f"   {line}\n" if line else "\n" for line in block[1].splitlines())
    return f"```{{eval-rst}}\n.. plot::\n\n{code}\n```"


def markdown_docstring(app, what, name, thing, options, lines: list[str]) -> None:
    """The docstrings of optdp are Markdown as people type it; autodoc reads reStructuredText."""
    made, example = [], False
    for line in lines:
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        made.append(line if example else _rst(line))
    if any(line.lstrip().startswith("- ") for line in made):  # a blank line before a list
        spaced: list[str] = []
        for line in made:
            item = line.lstrip().startswith("- ")
            if (
                item
                and spaced
                and spaced[-1].strip()
                and not spaced[-1].lstrip().startswith("- ")
                and not _inside(spaced, line)
            ):
                spaced.append("")
            spaced.append(line)
        made = spaced
    lines[:] = made


def _inside(before: list[str], line: str) -> bool:
    """Whether a list item follows the continuation of another item."""
    indent = len(line) - len(line.lstrip())
    for old in reversed(before):
        if not old.strip():
            return False
        if len(old) - len(old.lstrip()) <= indent:
            return old.lstrip().startswith("- ")
    return False


def _rst(line: str) -> str:
    parts = re.split(r"(`[^`]+`)", line)
    for k, part in enumerate(parts):
        if k % 2:
            parts[k] = f"`{part}`"  # literal
            if k + 1 < len(parts) and parts[k + 1][:1].isalnum():
                parts[k + 1] = "\\ " + parts[k + 1]
            if parts[k - 1][-1:].isalnum():
                parts[k] = "\\ " + parts[k]
        else:
            text = part.replace("\\", "\\\\").replace("|", "\\|")
            text = re.sub(r"(?<!\*)\*(?!\*)", r"\\*", text)
            parts[k] = re.sub(r"(\w)_(?=\W|$)", r"\1\\_", text)
    return "".join(parts)

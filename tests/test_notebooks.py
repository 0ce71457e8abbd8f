"""Every notebook runs from top to bottom, and is stored with the outputs that it gives. Run by `make notebooks`."""

import ast
import json
import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
#: Times are those of the machine.
TIME = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)? ?(?:ms|s|seconds|(?:\w+ )?per second)\b")
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def told(notebook):
    """The plain text that each cell prints and shows."""
    for cell in notebook.cells:
        parts = []
        for output in cell.get("outputs", []):
            if output.output_type == "stream" and output.name == "stdout":
                parts.append(output.text)
            elif output.output_type == "execute_result":
                parts.append(output.data.get("text/plain", ""))
        yield TIME.sub("", "".join(parts))


def same(one, other):
    """Whether two texts agree: their words exactly, their numbers to five digits, or as far as they are printed but for one in
    the last decimal, which processors that multiply matrices in another order may round otherwise.
    """
    a, b = (NUMBER.findall(text) for text in (one, other))

    def near(x, y):
        unit = 10.0 ** -max(len(v.partition(".")[2]) for v in (x, y)) if "." in x + y and "e" not in x + y else 0.0
        return float(x) == pytest.approx(float(y), rel=1e-5, abs=max(1e-12, 1.01 * unit))

    return NUMBER.sub("", one) == NUMBER.sub("", other) and all(near(x, y) for x, y in zip(a, b, strict=True))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_uses_the_public_api(path):
    """No private names."""
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            source = "".join(cell["source"])
            for node in ast.walk(ast.parse(re.sub(r"^[%!].*$", "", source, flags=re.M))):
                names = [node.module] if isinstance(node, ast.ImportFrom) else []
                names += [a.name for a in node.names] if isinstance(node, ast.Import | ast.ImportFrom) else []
                names += [node.attr] if isinstance(node, ast.Attribute) else []
                assert not [name for name in names if name and re.search(r"(^|\.)_[^_]", name)], source


@pytest.mark.notebook
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_is_stored_with_the_outputs_that_it_gives(path, tmp_path):
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    stored = list(told(notebook))
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code and all(cell.execution_count for cell in code), "stored without outputs"
    assert path.stat().st_size < 1_000_000
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    ).execute()
    for cell, before, now in zip(notebook.cells, stored, told(notebook), strict=True):
        assert same(before, now), cell.source

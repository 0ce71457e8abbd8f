"""The worked examples of docs/extending run as they stand: a loss, a privacy notion, a solver, a claim."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs" / "extending"


@pytest.mark.parametrize("name", ["loss", "privacy", "solver", "claim"])
def test_worked_examples_run(name, taken_back):
    """Block after block in one namespace; what they register is taken back."""
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    assert len(blocks) >= 3 and sum(block.count("assert ") for block in blocks) >= 4
    namespace = {"__name__": f"docs_extending_{name}"}
    for block in blocks:
        exec(compile(block, f"{name}.md", "exec"), namespace)


def test_every_way_to_extend_has_its_page():
    assert {path.stem for path in DOCS.glob("*.md")} >= {"loss", "privacy", "baseline", "mechanism", "solver", "claim"}

"""The worked examples of docs/extending run as they stand: a loss, a privacy notion, a solver, a claim."""

import re
from pathlib import Path

import pytest

from optdp.audit import claim
from optdp.certificates.base import Certificate
from optdp.design import registry
from optdp.problem.losses import Loss
from optdp.problem.privacy import Privacy

DOCS = Path(__file__).parents[1] / "docs" / "extending"


@pytest.fixture
def taken_back():
    """The registers as they were: the very dictionaries, which other modules hold too."""
    registry.designs()
    books = [registry._DESIGNS, claim.CLAIMS, Loss._known, Privacy._known, Certificate._known]
    before = [dict(book) for book in books]
    yield
    for book, content in zip(books, before, strict=True):
        book.clear()
        book.update(content)


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

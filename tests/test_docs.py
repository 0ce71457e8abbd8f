"""The documentation: its examples are true, nothing is missing in it, and what it says can be read from the package."""

import doctest
import importlib.util
import os
import re
import tomllib
from pathlib import Path

import pytest

import optdp
from optdp.audit.audit import PAPERS, AuditReport, Row, load_claims
from optdp.audit.claim import CLAIMS, DISCOVERIES, Finding, Proof, Verdict
from optdp.audit.pages import _anchor, pages, typeset
from optdp.mechanisms import baselines

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def generated():
    """The module docs/generated.py."""
    spec = importlib.util.spec_from_file_location("generated", DOCS / "generated.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def examples():
    """The pages of docs/ with an interactive example."""
    found = [DOCS.glob("*.md"), (DOCS / "problems").glob("*.md")]
    return sorted(p for pages in found for p in pages if "```pycon" in p.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", examples(), ids=lambda page: page.stem)
def test_examples_of_pages_are_true(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(re.findall(r"^```pycon\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M))
    test = doctest.DocTestParser().get_doctest(code, {}, page.name, str(page), 0)
    assert test.examples
    told: list[str] = []
    assert not doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=told.append).failed, "".join(told)


def test_every_problem_has_its_page_with_all_parts():
    solves = {name.removeprefix("solve_") for name in optdp.__all__ if name.startswith("solve_")}
    found = {page.stem: page.read_text(encoding="utf-8") for page in (DOCS / "problems").glob("*.md")}
    named = {
        name
        for name in solves
        for text in [*found.values(), (DOCS / "choosing.md").read_text()]
        if f"solve_{name}(" in text
    }
    assert {"piecewise", "ptt", "composite", "additive", "kernel", "lip", "frequency"} <= named
    for name, text in found.items():
        parts = re.findall(r"^## (.*)$", text, re.M)
        wanted = ["Statement", "Structure", "Proof of the bound", "Mechanism", "Example", "Figure", "Source"]
        assert parts == wanted, name


def test_the_reference_has_every_public_name_once():
    made = generated().reference()
    names = [name for page, text in made.items() for name in re.findall(r"^## (\w+)$", text, re.M)]
    assert sorted(names) == sorted(set(optdp.__all__) - {"__version__"})


def test_the_reference_has_an_example_of_each_name_once():
    """In its docstring, or in docs/examples.md, which `test_examples_of_pages_are_true` runs."""
    shown = generated().examples()
    assert len(shown) > 40 and set(shown) <= set(optdp.__all__)
    made = "\n".join(generated().reference().values())
    assert made.count("```pycon") == sum(">>>" not in (getattr(optdp, name).__doc__ or "") for name in shown)


def test_every_paper_is_in_the_bibliography():
    text = (DOCS / "bibliography.md").read_text(encoding="utf-8")
    for paper in PAPERS.values():
        assert paper.arxiv in text
    entries = re.split(r"^\(\w+\)=$", text, flags=re.M)[1:]
    for name, known in baselines.baselines().items():
        if year := re.search(r"\b(?:19|20)\d\d\b", known.source):
            first = re.search(r"[A-Z]\w+", known.source)[0]
            years = set(re.findall(r"\b(?:19|20)\d\d\b", known.source))
            assert any(first in e and years & set(re.findall(r"\b(?:19|20)\d\d\b", e)) for e in entries), (name, year)


def test_places_that_pages_link_to_exist():
    known = set(re.findall(r"^\((\w+)\)=$", (DOCS / "bibliography.md").read_text(encoding="utf-8"), re.M))
    for page in DOCS.rglob("*.md"):
        if "_build" not in page.parts:
            assert set(re.findall(r"\]\(#(\w+)\)", page.read_text(encoding="utf-8"))) <= known, page


def test_the_glossary_is_in_order_and_explains_the_published_names():
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    terms = [line for line in text.splitlines() if line and not line.startswith((" ", "#", "`"))]
    words = {word for term in terms for word in term.split(", ")}
    assert {
        *PAPERS,
        "PM",
        "HM",
        "PM-SUB",
        "PM-OPT",
        "HM-TP",
        "Three-Outputs",
        "SW",
        "PTT",
        "SS",
        "OUE",
        "OLH",
        "HR",
    } <= words


@pytest.mark.parametrize(("kind", "book"), [("audit", CLAIMS), ("discoveries", DISCOVERIES)])
def test_every_claim_has_its_section(kind, book):
    load_claims()
    found = [
        id
        for page in (DOCS / kind).glob("*.md")
        for id in re.findall(r"^## ([A-Z]+(?:-[A-Z]+)?-\w+): ", page.read_text(encoding="utf-8"), re.M)
    ]
    assert sorted(found) == sorted(book)


def test_pages_of_the_audit_link_to_their_sections():
    finding = Finding(Verdict.REFUTED, Proof.SYMBOLIC, "every | eps <= 1", {"a*b": 0.5, "q": "E**2"}, "E_1 < e^(eps/2)")
    row = Row("OGPM-1", "p_i < E * p_j for |x| > 1", "Eq. 1", "A [claim] of $5", finding, 0.0)
    made = pages(AuditReport((row,)))
    assert set(made) == {"index.md", "ogpm.md"}
    (link,) = re.findall(r"\]\(ogpm\.md#(.*?)\)", made["index.md"])
    (heading,) = re.findall(r"^## (OGPM-1.*)$", made["ogpm.md"], re.M)
    assert link == _anchor(heading)
    assert "| a·b | 0.5 |" in made["ogpm.md"] and "| q | E<sup>2</sup> |" in made["ogpm.md"]
    assert "**Witness.** E<sub>1</sub> &lt; e<sup>ε/2</sup>" in made["ogpm.md"]
    for text in made.values():  # cells do not break their table
        assert all(line.count("|") in (3, 7) for line in text.splitlines() if line.startswith("|"))


@pytest.mark.parametrize(
    ("plain", "shown"),
    [
        ("eps >= 0 and e^-eps", "ε ≥ 0 and e<sup>-ε</sup>"),
        ("steps and `eps <= 1`", "steps and `eps <= 1`"),
        ("eta**4*t**2", "η<sup>4</sup>·t<sup>2</sup>"),
        ("[x](https://a.b/c_d)", "[x](https://a.b/c_d)"),
        ("x -> oo", "x → ∞"),
        ("sqrt 5", "√5"),
    ],
)
def test_formulas_in_text_are_set(plain, shown):
    assert typeset(plain) == shown


def test_the_command_line_writes_the_pages(tmp_path, capsys):
    from optdp.cli import main

    assert main(["audit", "--claim", "OGPM-5", "--out", f"{tmp_path}/pages/"]) == 0
    assert sorted(os.listdir(tmp_path / "pages")) == ["index.md", "ogpm.md"]
    assert pages(optdp.audit("OGPM-5", progress=False))["ogpm.md"] == (tmp_path / "pages" / "ogpm.md").read_text(
        encoding="utf-8"
    )


def test_the_citation_has_this_version():
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(r"^version: (.*)$", text, re.M)[1] == optdp.__version__


def test_licence_notes_name_what_is_needed():
    text = (ROOT / "LICENSES.md").read_text(encoding="utf-8")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [
        p
        for e in ("plot", "tables", "scip", "gurobi", "ipopt", "dask", "data")
        for p in project["optional-dependencies"][e]
    ]
    for needed in [*project["dependencies"], *extras]:
        assert re.search(rf"[|,] {re.split('[><=]', needed)[0]}[ ,]", text), needed  # not the extra of the same name
    assert set(project["license-files"]) <= {path.name for path in ROOT.iterdir()}


def test_broken_links_are_found(tmp_path):
    spec = importlib.util.spec_from_file_location("check_links", DOCS / "check_links.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    (tmp_path / "a.html").write_text(
        "<a href='b.html#here'>x</a><a href='b.html#gone'>x</a><img src='no.png'><a href='https://x.y'>"
    )
    (tmp_path / "b.html").write_text("<p id='here'>")
    assert module.broken(tmp_path) == (3, ["a.html: b.html#gone", "a.html: no.png"])

"""What the audit tells, row by row: its prose, its stored pages, and the table of what a review of it led to."""

from __future__ import annotations

import functools
import re
from fractions import Fraction
from pathlib import Path
from unittest import mock

import pytest

import optdp
from optdp.audit.audit import PAPERS, AuditReport, Row
from optdp.audit.claim import CLAIMS, Argument, Finding, Proof, Verdict
from optdp.audit.pages import pages
from tests import test_audit_comp, test_audit_lip, test_audit_ogpm, test_audit_optt, test_audit_tlap
from tests.solutions import audited

VERDICTS = {
    "OGPM": test_audit_ogpm.VERDICTS, "OPTT": test_audit_optt.VERDICTS, "COMP": test_audit_comp.VERDICTS,
    "TLAP": test_audit_tlap.VERDICTS, "LIP": test_audit_lip.VERDICTS,
}  # fmt: skip
DOCS = Path(__file__).parent.parent / "docs"

DECIMAL = re.compile(r"(?<![\w.^])\d+\.\d{2,}(?![\d^])")
NUMBER = re.compile(r"\d+\.?\d*(?:e[-+]?\d+)?")
#: Fractions with a denominator of at least 20: smaller ones belong to formulas.
FRACTION = re.compile(r"(?<![\w./^)])(\d+)/([2-9]\d|\d{3,})(?![\w.^])")
#: Numbers that are quoted from a paper or define an interval of a proof: each with the reason.
QUOTED = {
    "COMP-7": ("13.065", "0.335"),  # Table II
    "COMP-8x": ("5.536", "0.335"),  # Table II
    "COMP-13x": ("0.35",),  # where one argument of a proof ends and the next begins
    "D-COMP-3": ("0.35",),
    "COMP-14": ("1.25",),  # the Gaussian mechanism's constant
    "COMP-15x": ("5.53", "0.42"),  # where Zhao et al. change their formula
    "D-COMP-2": ("5.53", "0.42"),
}


def stray(row: Row) -> list[str]:
    """The decimals and fractions in a row's prose that its numbers do not contain, rounded to the digits given."""
    found = row.finding
    told = [str(v) for pair in found.numbers.items() for v in pair]
    values = [float(x) for text in told for x in NUMBER.findall(text)]
    exact = {Fraction(int(a), int(b)) for text in told for a, b in re.findall(r"(\d+)/(\d+)", text) if int(b)}
    values += [float(x) for x in exact]
    prose = " ".join(
        [found.condition, found.corrected, found.note, found.range, row.title if row.id[:2] == "D-" else ""]
    )
    missing = []
    for text in DECIMAL.findall(prose):
        unit = 10.0 ** -len(text.split(".")[1])
        near = any(abs(v * scale - float(text)) <= 1.001 * unit for v in values for scale in (1, 100))
        if not near and text not in QUOTED.get(row.id, ()):
            missing.append(text)
    missing += [f"{a}/{b}" for a, b in FRACTION.findall(prose) if Fraction(int(a), int(b)) not in exact]
    return missing


@functools.cache
def decided(paper):
    """The claims and the discoveries of a paper, decided once for all tests of this file."""
    with mock.patch("optdp.audit.audit._run", audited):  # some rows are looked at by other files too
        return optdp.audit(paper, progress=False), optdp.discoveries(paper, progress=False)


@pytest.mark.parametrize("paper", PAPERS)
def test_every_claim_is_decided_as_it_is_known_to_be(paper):
    report, known = decided(paper)[0], VERDICTS[paper]
    assert {row.id: row.finding.verdict for row in report.rows} == known and report.settled
    assert {id for id in CLAIMS if id.startswith(f"{paper}-")} == set(known)
    assert {row["id"]: row["verdict"] for row in report.to_json_rows()} == {id: v.value for id, v in known.items()}
    told = report.to_markdown()
    for row in report.rows:
        assert row.id in told and row.statement and row.finding.proof and row.finding.range
        assert row.finding.condition or row.finding.verdict is not Verdict.CONDITIONAL
        assert "samples" not in row.finding.how or paper != "OPTT"


@pytest.mark.parametrize("paper", PAPERS)
def test_every_discovery_is_proven(paper):
    report = decided(paper)[1]
    assert report.rows and report.settled
    for row in report.rows:
        assert (
            row.finding.verdict is Verdict.VERIFIED and row.finding.note and row.finding.range and row.finding.numbers
        ), row.id


@pytest.mark.parametrize("paper", PAPERS)
def test_numbers_in_prose_are_computed(paper):
    rows = [row for report in decided(paper) for row in report.rows]
    assert {row.id: missing for row in rows if (missing := stray(row))} == {}


def same_up_to_rounding(made, kept):
    """Whether two texts have the same words, and the same numbers but for what another machine may round otherwise: solves to a
    gap of 1e-3 end 1.5e-6 apart on processors that multiply matrices in another order, and bounds rounded outwards (whose zeros
    at the end are left out) by one in the last digit.
    """
    split = re.compile(r"(-?\d+\.\d+(?:e[-+]?\d+)?|\d+e[-+]?\d+)")
    ours, theirs = split.split(made), split.split(kept)

    def same(a, b):
        unit = 10.0 ** -max(len(v.partition(".")[2]) for v in (a, b)) if "e" not in a + b else 0.0
        return float(a) == pytest.approx(float(b), rel=5e-6, abs=max(1e-9, 1.01 * unit))

    return len(ours) == len(theirs) and all(
        same(a, b) if k % 2 else a == b for k, (a, b) in enumerate(zip(ours, theirs, strict=True))
    )


@pytest.mark.parametrize("paper", PAPERS)
def test_stored_pages_are_what_the_audit_says(paper):
    for folder, report in zip(("audit", "discoveries"), decided(paper), strict=True):
        name = f"{paper.lower()}.md"
        kept = (DOCS / folder / name).read_text(encoding="utf-8")
        assert same_up_to_rounding(pages(report)[name], kept), (
            f"make docs-data: docs/{folder}/{name} is not what is found"
        )


def test_every_line_of_the_review_says_what_is_found_today():
    """docs/audit-settled.md: each statement once, with its verdict and kind of proof, or said to be removed."""
    found = {row.id: row.finding for paper in PAPERS for report in decided(paper) for row in report.rows}
    text = (DOCS / "audit-settled.md").read_text(encoding="utf-8")
    lines = [re.split(r" ?\| ?", line)[1:5] for line in text.splitlines() if line.startswith("| ")]
    lines = [line for line in lines if line[0] not in ("statement", "---")]
    assert len({line[0] for line in lines}) == len(lines) > 55
    for id, wrong, done, today in lines:
        assert wrong and done, id
        if done.startswith("removed"):
            assert id not in found and today == "removed"
            assert all(other in found for other in re.findall(r"D-[A-Z]+-\d+", done))
        elif not id.startswith("notebook"):
            assert today == f"{found[id].verdict.value}; {found[id].proof.value}", id


def test_counts_of_the_stored_index_are_those_of_the_rows():
    for k, folder in enumerate(("audit", "discoveries")):
        rows = [row.finding for paper in PAPERS for row in decided(paper)[k].rows]
        text = (DOCS / folder / "index.md").read_text(encoding="utf-8")
        for kind in (*Verdict, *Proof):
            count = sum(kind in (found.verdict, found.proof) for found in rows)
            assert (f"| {kind.value} | {count} |" in text) == (count > 0)


def test_a_step_whose_end_fails_unsettles_its_claim():
    for start, end in ((True, False), (False, True), (True, True)):
        step = Argument("a name", "Words.", ("what was known", start), ("what follows", end))
        found = Finding(Verdict.VERIFIED, Proof.SYMBOLIC, "every eps", arguments=(step,))
        assert (found.verdict is Verdict.VERIFIED) == step.holds == (start and end)
        row = Row("OGPM-1", "t", "s", "Statement.", found, 0.0)
        told = AuditReport((row,)).to_markdown()
        assert ("(failed)" in told) != step.holds and "Argument (a name)" in told


def test_counts_by_kind_of_proof_are_told_and_nothing_depends_on_the_clock():
    report = optdp.audit(["OGPM-4", "OGPM-10", "LIP-28"], progress=False)
    verdicts, proofs = report.counts()
    assert sum(verdicts.values()) == sum(proofs.values()) == 3
    assert proofs == {Proof.SYMBOLIC.value: 2, Proof.COUNTEREXAMPLE.value: 1}
    assert f"2 {Proof.SYMBOLIC.value}" in report.to_markdown()
    again = optdp.audit(["OGPM-4", "OGPM-10", "LIP-28"], progress=False)
    assert again.to_markdown() == report.to_markdown() and again.to_json_rows() == report.to_json_rows()
    assert all("arXiv" in row["citation"] and row["source"] for row in report.to_json_rows())

"""Decimals and fractions in the prose of verdicts: each stands among the numbers that the verdict computed."""

from __future__ import annotations

import re
from fractions import Fraction

import pytest

import optdp
from optdp.audit.audit import PAPERS, Row

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


@pytest.mark.parametrize("paper", PAPERS)
def test_numbers_in_prose_are_computed(paper):
    rows = [*optdp.audit(paper, progress=False).rows, *optdp.discoveries(paper, progress=False).rows]
    assert {row.id: missing for row in rows if (missing := stray(row))} == {}

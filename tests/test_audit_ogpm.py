"""The claims of OGPM: the verdicts, their witnesses recomputed exactly, and checks that can fail."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy as sp
from hypothesis import given
from hypothesis import strategies as st

import optdp
from optdp.audit import ranges
from optdp.audit.claim import Finding, Verdict, claim
from optdp.audit.ogpm import claims as ogpm
from optdp.mechanisms.baselines.clamped import ClampedStaircase

VERDICTS = {
    "OGPM-1": Verdict.CONDITIONAL, "OGPM-2": Verdict.CONDITIONAL, "OGPM-3": Verdict.VERIFIED, "OGPM-4": Verdict.VERIFIED,
    "OGPM-5": Verdict.VERIFIED, "OGPM-6": Verdict.CONDITIONAL, "OGPM-6x": Verdict.REFUTED,
    "OGPM-8": Verdict.VERIFIED, "OGPM-9": Verdict.CONDITIONAL, "OGPM-10": Verdict.CONDITIONAL,
}  # fmt: skip


@given(st.fractions(min_value=Fraction(101, 100), max_value=Fraction(58, 10)))
def test_two_outputs_beat_the_closed_form_in_exact_arithmetic(ratio):
    """For a rational ratio R < 3 + 2 sqrt 2 = 5.828: (1 + R)/(4R) < 1/(1 + sqrt R), squared to stay rational."""
    c, error = ogpm.exact_two_point_witness(ratio)
    assert error == (1 + ratio) / (4 * ratio) and 0 < c < Fraction(1, 2)
    if ratio < Fraction(58, 10):
        assert ratio < (1 / error - 1) ** 2


@given(st.floats(0.02, 12))
def test_staircase_closed_form_is_that_of_the_mechanism_and_below_the_published_optimum(eps):
    s = math.exp(eps / 2)
    closed = (7 * s * s - 4 * s + 1) / (8 * s**3)
    staircase = ClampedStaircase(eps)
    assert float(staircase.expected_loss(0.5)) == pytest.approx(closed, rel=1e-9)
    assert np.all(staircase.expected_loss(np.linspace(0, 1, 101)) <= closed * (1 + 1e-9))
    assert closed < optdp.solve_piecewise(eps, 3, "abs").lower_bound or eps < 1e-3


def test_ranges_prove_what_holds_and_refuse_what_does_not():
    assert ranges.positive(lambda x: x * x - x + 1, -5.0, 5.0).proven
    assert ranges.positive(lambda x: x * x - x + 1, -5.0, 5.0).least <= 0.75
    failed = ranges.positive(lambda x: x * x - x + 0.2, -5.0, 5.0)
    assert not failed.proven and 0.2 < failed.failed_at < 0.8
    assert not ranges.positive(lambda x: x * x, -1.0, 1.0).proven  # touches zero: never proven


def test_a_claim_needs_a_statement_and_an_id_of_its_own():
    with pytest.raises(ValueError, match="no docstring"):
        claim("OGPM-99", "t", "s")(lambda: Finding.unsettled("x"))
    with pytest.raises(ValueError, match="another claim"):
        claim("OGPM-1", "t", "s")(ogpm.merging)
    with pytest.raises(ValueError, match="claims = 'NOPE'"):
        optdp.audit("NOPE")


def test_every_paper_is_cited_in_full():
    from optdp.audit.audit import PAPERS

    assert list(PAPERS) == ["OPTT", "OGPM", "TLAP", "LIP", "COMP"]
    for name, paper in PAPERS.items():
        assert paper.name == name and paper.authors and paper.venue and 2018 <= paper.year <= 2025
        assert f"https://arxiv.org/abs/{paper.arxiv}" in paper.citation and paper.title in paper.citation
    assert PAPERS["OGPM"].citation in optdp.audit("OGPM-4").to_markdown()


def test_discoveries_are_proven_again():
    report = optdp.discoveries(["D-OGPM-1", "D-OGPM-2", "D-OGPM-3", "D-OGPM-4", "D-OGPM-5"])
    assert report.settled and all(row.finding.verdict is Verdict.VERIFIED for row in report.rows)
    assert "1/(4 cosh" in report.to_markdown()
    with pytest.raises(ValueError, match="ids = 'D-0'"):
        optdp.discoveries("D-0")


def test_perturbed_closed_forms_are_caught(monkeypatch):
    """Each closed form off by one part in a million: the claim that rests on it is no longer verified."""
    from optdp.closed_forms import piecewise as forms

    height, share = forms.optimal_height, forms.window_share
    monkeypatch.setattr(forms, "optimal_height", lambda q, width=1: height(q, width) * (1 + sp.Rational(1, 10**6)))
    assert not optdp.audit(["OGPM-4", "OGPM-5"]).settled
    monkeypatch.setattr(forms, "optimal_height", height)
    monkeypatch.setattr(forms, "window_share", lambda q: share(q) * (1 + sp.Rational(1, 10**6)))
    assert {row.finding.verdict for row in optdp.audit(["OGPM-4", "OGPM-5"]).rows} == {Verdict.UNSETTLED}

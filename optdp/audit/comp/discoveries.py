"""What the programs found beyond COMP: the positive side of rows of its audit, decided by the same computations."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from optdp.audit.claim import Finding, Proof, Verdict, discovery
from optdp.audit.comp import claims as comp


def _established(decide: Callable[[], Finding], expected: Verdict) -> Finding:
    """The evidence of an audited claim, as a discovery: only if the claim was decided as expected."""
    found = decide()
    if found.verdict is not expected:
        return Finding.unsettled(f"the claim behind it is {found.verdict.value}", found.numbers)
    parts = [part for part in (found.corrected, found.note) if part]
    return replace(found, verdict=Verdict.VERIFIED, condition="", corrected="", note=" ".join(parts))


@discovery("D-COMP-1", "A1B1 is the best of all composites, in closed form", "COMP")
def best_composite() -> Finding:
    """Among all activations and bases under the paper's privacy condition, the rectangle over a constant with k = (E - 1) y has
    the least variance at every query; its parameters are a curve in closed form.
    """
    return _established(comp.further_improvement, Verdict.CONDITIONAL)


@discovery("D-COMP-2", "two and three outputs beat every composite in the middle, at every eps", "COMP")
def few_outputs() -> Finding:
    """At C_p = 0 Duchi's two outputs (eps < 0.6076) or three outputs with P(0) = E/(E + 2) at the middle query (eps > 0.4232)
    have a lower variance than every composite; the three have (Delta^2/2)(E + 2)/(E - 1)^2.
    """
    numbers, proven = comp.few_outputs_win()
    if not proven:
        return Finding.unsettled("an interval of eps is left over", numbers)
    return Finding(
        Verdict.VERIFIED,
        Proof.CERTIFICATE,
        "every eps > 0, C_p = 0",
        numbers,
        note="Three outputs -b, 0, b, b = (Delta/2)(E + 2)/(E - 1), with P(0) = E/(E + 2) at the middle query and P(b) = "
        "E/(E + 2) at the highest, linear between: of the family of Zhao et al. (2020), who take this P(0) from eps = ln 5.53 "
        "on and smaller ones before, to lower the worst case (COMP-15x). By COMP-16 it is enough to compare with best A1B1. "
        "Its ratio to Duchi falls (COMP-15), its ratio to the three outputs rises from eps = 0.42 on: a + b > (E - 1)/(E + 2) "
        "with a, b as in COMP-13x, by balls up to E = 50 and by a + b >= 1 beyond.",
        how="ball arithmetic over a range, proof at both ends",
    )


@discovery("D-COMP-3", "from which eps each composite beats Laplace", "COMP")
def thresholds() -> Finding:
    """At best parameters and C_p = 0, A1 beats Laplace at every eps, A2 exactly for eps > 0.8088752 and A3 exactly for
    eps > 1.4357032; the ratio to Laplace falls strictly in eps.
    """
    return _established(comp.four_cross_laplace, Verdict.CONDITIONAL)


@discovery("D-COMP-4", "how wide the outputs of a bounded and unbiased mechanism must be", "COMP")
def range_law() -> Finding:
    """Unbiased answers to queries in an interval of length Delta need outputs in an interval of length at least Delta/tanh(eps/2)
    under eps-DP, and at least Delta/tanh(eps/4) with a floor shared by all inputs.
    """
    return _established(comp.every_input_in_the_range, Verdict.CONDITIONAL)

"""What the programs found beyond OPTT: each rests on the check of the claim that led to it (`optdp.audit.optt.claims`)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from optdp.audit.claim import Finding, Proof, Verdict, discovery
from optdp.audit.optt import claims as optt


def _proven_by(decide: Callable[[], Finding], range: str, note: str = "") -> Finding:
    """The finding of a discovery that the check of a claim proves: its numbers, and its argument unless `note` gives
    one.
    """
    found = decide()
    if found.verdict is Verdict.UNSETTLED:
        return found
    return replace(found, verdict=Verdict.VERIFIED, range=range, note=note or found.note, condition="", corrected="")


@discovery("D-OPTT-1", "the best unbiased mechanism for a number, up to eps = 0.712285", "OPTT")
def best_unbiased_mechanism() -> Finding:
    """Over all unbiased eps-LDP mechanisms for x in [-1, 1] the least worst-case variance is coth(eps/2) coth(tau) -
    1, tau = tanh(eps/2), as long as 2 tanh(tau) + tau <= 1 (eps <= 0.712285). It is attained at every input by a
    window [x - r, x + r] of varying length, r = sqrt(x^2 + 1/sinh(tau)^2), in which outputs are e^eps times as likely
    as the log-uniform floor 1/(2 (E - 1)|y|) on coth(tau) - 1 <= |y| <= coth(tau) + 1.
    `optdp.mechanisms.varying_window.VaryingWindow` samples it.
    """
    return _proven_by(optt.gain_of_a_free_window, "0 < eps <= 0.712285")


@discovery("D-OPTT-2", "the best unbiased mechanism for a number, from eps = 0.712285 to 1.393027", "OPTT")
def best_unbiased_mechanism_beyond() -> Finding:
    """With sigma = log(1 + 2/E)/2 and z = 1/(E - (E + 1) sigma) the least worst-case variance over all unbiased
    eps-LDP mechanisms on [-1, 1] is (E (E + 2) z - (E - 2))/(E - 1), up to (E + 1) log(1 + 2/E) = E - 2, and no
    unbiased mechanism is below it for any larger eps. It is attained, at every input, by outputs at 0 and at Ez <=
    |y| <= (E + 2) z (`optdp.mechanisms.varying_window.VaryingWindow`).
    """
    return _proven_by(optt.gain_beyond_a_window, "0.712286 <= eps <= 1.393027; a lower bound for every larger eps")


@discovery("D-OPTT-3", "a window of varying length beats Duchi at every eps", "OPTT")
def varying_window_beats_duchi() -> Finding:
    """The mechanism of D-OPTT-1 is private, unbiased and of the same variance at every input for every eps, not only
    where it is optimal: more than 2/3 below Duchi's worst case always, and below every I-PTT's worst case up to eps =
    2.14.
    """
    found = _proven_by(optt.varying_windows, "every eps > 0")
    return replace(
        found,
        proof=Proof.CERTIFICATE,
        how="symbolic identities; beyond ln 5 the comparison with I-PTTs by ball arithmetic",
    )


@discovery("D-OPTT-4", "nothing unbiased beats Duchi at an end of the domain", "OPTT")
def duchi_at_the_ends() -> Finding:
    """At x = 1 and x = -1 every unbiased eps-LDP mechanism has a variance of at least 4E/(E - 1)^2 = 1/sinh(eps/2)^2,
    Duchi's; and no other mechanism has a variance at most Duchi's at every input.
    """
    return _proven_by(optt.none_dominates_duchi, "every eps > 0, every unbiased eps-LDP mechanism")


@discovery("D-OPTT-5", "where constant windows begin to beat Duchi", "OPTT")
def where_windows_beat_duchi() -> Finding:
    """Some I-PTT has a smaller worst-case variance than Duchi exactly for e^eps > (r^2 + 3)/(r^2 - 1), r^4 = 4r + 1
    (eps > 1.183102); the one with eta = 2, k = a = coth(eps/2), of worst case 4/(3 sinh(eps/2)^2) + 1/3, exactly for
    eps > ln(2 + sqrt 3).
    """
    return _proven_by(optt.some_beat_duchi, "every eps > 0, every eta > 1")


@discovery("D-OPTT-6", "the best constant window in closed form", "OPTT")
def best_constant_window() -> Finding:
    """Let v = eta - 1 and t = 1/(E - 1). The best I-PTT lies on the curve E = v (v^2 - 1 + sqrt(v^4 - v^2 + 1)), v > 1. Its
    worst-case variance, (1 + v) t + (1 + (1 + v) t)((1 + v)^3 t + 1)/(3 v^2), is above 16 t^2/3 + 5 t and at most 16 (t^2 +
    t)/3 + 1/3, for every eps. The mechanism itself is PM-OPT of Zhao et al. (2020).
    """
    first = _proven_by(optt.optimum_for_given_q, "every eps > 0")
    second = optt.order_of_the_optimum()
    if Verdict.UNSETTLED in (first.verdict, second.verdict):
        return Finding.unsettled("the curve or its bounds", first.numbers | second.numbers)
    kept = {name: first.numbers[name] for name in ("optimum over q", "its eta", "E from the curve at its eta")}
    return replace(first, numbers=kept | second.numbers, note=f"{first.note} {second.note}")


@discovery("D-OPTT-7", "Theorem 4's mechanism leaks ln 2 however small eps is", "OPTT")
def theorem_four_leaks() -> Finding:
    """Algorithm 2 at the optimum printed for q = 1/2 has likelihood ratio 2 cosh(acosh(E)/3) > 2: whatever eps it is
    asked for, it is not ln 2-LDP, and it breaks its guarantee for every E < sqrt 5.
    """
    return _proven_by(
        optt.optimum_for_given_q,
        f"every eps > 0; the guarantee is broken for eps < log(5)/2 = {math.log(5) / 2:.6f}",
        "The sampler's ratio is q v/(1 - q) with v = eta0 - 1, v^3 - 3v = 2E; v > 2 because 2^3 - 3 * 2 = 2 < 2E, and v > E iff "
        "E^3 - 3E < 2E, that is E < sqrt 5.",
    )


@discovery("D-OPTT-8", "half the window of a triangle", "OPTT")
def half_the_window() -> Finding:
    """For every II-PTT the I-PTT with the same k and half as wide a window relative to its range has a smaller
    variance at every input.
    """
    return _proven_by(optt.one_before_two, "every eps > 0, every eta > 1")


@discovery("D-OPTT-9", "PM keeps two thirds of Laplace's variance at every eps", "OPTT")
def pm_against_laplace() -> Finding:
    """PM's worst-case variance is 1/(3 sinh(eps/4)^2), less than 16/(3 eps^2), two thirds of Laplace's 8/eps^2, for
    every eps.
    """
    return _proven_by(optt.some_beat_laplace, "every eps > 0")


@discovery("D-OPTT-10", "unbiased mechanisms for large eps: the least variance and an explicit mechanism", "OPTT")
def limit_for_large_eps() -> Finding:
    """On [-1, 1] the least worst-case variance V over all unbiased eps-LDP mechanisms has e^(2 eps/3) V -> 4 c_2 =
    1.222146, c_2 as in D-OGPM-6, within factors 1 - (5/4) e^(-2 eps/3) and 1 + 2 e^(-eps/3) for eps >= 8. Let T = (E -
    1)(tan w - w) with w < T < pi/2: the mechanism with outputs sin(p)/(cos(w) sin(T - w)), p uniform on [-T, T] with
    probability 1 - w cot w, else on [a - w, a + w] with sin(a) = x sin(T - w), is unbiased and has the same variance at
    every x; the best w attains the limit.
    """
    from flint import ctx

    from optdp.audit.ogpm import bulk as checks
    from optdp.closed_forms import bulk
    from optdp.exact.enclosures import PRECISION

    below, _ = checks.squared_rate_below()
    numbers: dict[str, object] = {}
    with ctx.workprec(PRECISION):
        numbers["4 c_2"] = (4 * bulk.bulk_constant(2)).str(20, radius=False)
        for eps in (4, 10, 20, 30):
            upper, lower = bulk.unbiased_upper(eps), bulk.bulk_bracket(2, eps).lower
            numbers[f"eps = {eps}: variance of the mechanism on [-1, 1]"] = float((4 * upper).upper())
            if eps >= 10:
                numbers[f"eps = {eps}: mechanism over bound, minus 1"] = float((upper / lower - 1).upper())
    numbers["e^(2 eps/3) times the worst variance of the best I-PTT, limit"] = 2 ** (2 / 3)
    steps = {"identities of the bound": checks.squared_identities(), "rate below": below,
             "identities of the mechanism": checks.equaliser_identities(), "rate above": checks.unbiased_rate()}  # fmt: skip
    failed = [name for name, held in steps.items() if not held]
    if failed:
        return Finding.unsettled("; ".join(failed), numbers)
    return Finding(
        Verdict.VERIFIED,
        Proof.CERTIFICATE,
        "limit and rates: eps >= 8; the mechanism's mean and variance: every eps and w with w < T < pi/2",
        numbers,
        note="An unbiased mechanism's variance is its squared error, so that the bound for all mechanisms holds. The mean "
        "of sin(p) over a window [a - w, a + w] is sin(a) sin(w)/w and the mean of sin(p)^2 is affine in sin(a)^2: the share "
        "1 - w cot w of the floor is the one for which the variance does not depend on x.",
        how="symbolic identities, inequalities over the whole range by ball arithmetic",
    )


@discovery("D-OPTT-11", "the best unbiased mechanism for a number, from eps = 1.393027 to 2.016032", "OPTT")
def best_unbiased_mechanism_with_a_split_middle() -> Finding:
    """Over all unbiased eps-LDP mechanisms on [-1, 1] the least worst-case variance is (E (E + 2) t^2 + 4 E t + 8)/((E - 1) (4 +
    2 E t - E t^2)), log(t) + E t/4 = ((E + 1)(E + 4) log(1 + 2/E) + 8)/(4 (E + 2)), from (E + 1) log(1 + 2/E) = E - 2, where t =
    1, to eps = 2.016032. Its floor is log-uniform in |y| away from 0 and log-uniform in the distance from a point beyond its
    end on both sides of 0, with an atom at 0, which vanishes at the upper limit.
    """
    import sympy as sp
    from flint import arb

    from optdp.audit.optt import split as checks
    from optdp.closed_forms import varying_window as forms

    steps = checks.identities() | checks.ranges()
    equation = (sp.exp(forms.eps) + 1) * sp.log(1 + 2 * sp.exp(-forms.eps)) - (sp.exp(forms.eps) - 2)
    low, high = 2.01, 2.02  # the atom at 0 vanishes between them
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if checks.signs(arb(middle))["beta"] > 0 else (low, middle)
    numbers: dict[str, object] = {"from eps": str(sp.nsolve(equation, forms.eps, 1.4)), "to eps": low}
    for eps in (1.4, 1.5, 1.6, 1.8, 2.0):
        numbers[f"eps = {eps}"] = str(forms.split_variance().subs(forms.eps, sp.Rational(str(eps))).evalf(15))
    failed = [name for name, held in steps.items() if not held]
    if failed:
        return Finding.unsettled("; ".join(failed), numbers)
    return Finding(
        Verdict.VERIFIED,
        Proof.CERTIFICATE,
        "1.393028 <= eps <= 2.016032",
        numbers,
        note="Dual: a density around 0, one towards each end, atoms at the ends; the reduced cost is 0 on the floor's support, "
        "and a convex quadratic with slope 0 at both sides of each gap. Primal: where the prior has a density, the ends of the "
        "window add up to 2x, so that mean x and a constant variance go together; in the gap between the densities three outputs "
        "give way to one another, with rising sums of what leaves and what enters, so that the variance first falls, then rises, "
        "and is below that at both sides. The mechanism closes, and its variance meets the bound, where the bound is stationary "
        "in its parameter: that is the equation for t.",
        how="symbolic proof, inequalities over the range by ball arithmetic",
    )

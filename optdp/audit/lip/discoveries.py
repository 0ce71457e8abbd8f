"""What the programs found beyond Context-aware LIP. E = e^eps, P the prior, tau = (E-1)/(E+1) = tanh(eps/2)."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from optdp.audit.claim import Argument, Finding, Proof, Verdict, discovery, is_zero, near
from optdp.audit.lip import claims as lip
from optdp.audit.lip import exact, forms
from optdp.design.lip import solve_lip


def _rests_on(*claims: Any) -> str:
    """Empty if the claims' own checks go through, else what failed."""
    findings = [decide() for decide in claims]
    return next((f.note for f in findings if f.verdict is Verdict.UNSETTLED), "")


@discovery("D-LIP-1", "local information privacy is a cap, and the published kernel on groups is always legal", "LIP")
def guarantee_as_a_cap() -> Finding:
    """A posterior r = P/E + (1 - 1/E) l keeps eps-LIP if and only if 0 <= l <= (1+E) P. Hence a sum's error is
    (2/E - 1/E^2) Var(X) plus (1 - 1/E)^2 times the mean of Var(X|l), and the published kernel, used on groups of categories
    that each have prior probability >= 1/(1+E), is eps-LIP for every prior.
    """
    import sympy as sp

    prior, ratio, spread, inner, left = sp.symbols("P E V W l", positive=True)
    posterior = prior / ratio + (1 - 1 / ratio) * left
    upper = is_zero((ratio * prior - posterior) - (1 - 1 / ratio) * ((1 + ratio) * prior - left))
    lower = is_zero((posterior - prior / ratio) - (1 - 1 / ratio) * left)
    error = is_zero(
        spread - (1 - 1 / ratio) ** 2 * (spread - inner) - forms.published(spread, ratio) - (1 - 1 / ratio) ** 2 * inner
    )
    groups = [range(6), range(6, 13), range(13, 20)]
    joint = exact.grouped([Fraction(1, 20)] * 20, groups, Fraction(27, 10))  # 27/10 < e
    legal = exact.lip(joint) <= Fraction(27, 10)
    found = solve_lip([Fraction(1, 20)] * 20, 1.0)
    ldp = solve_lip([Fraction(1, 20)] * 20, 1.0, notion="ldp")
    grouped = float(exact.sum_error(joint, [Fraction(i) for i in range(20)]))
    numbers = {
        "uniform on 20 values, eps = 1: published kernel's level e^eps'": forms.published_level(0.05, math.e),
        "groups of 6, 7 and 7 neighbours (E = 2.7)": grouped,
        "certified optimum": found.lower_bound,
        "optimal LDP": ldp.value,
        "randomised response (LDP)": 399 / 12 * forms.response_sum(20, math.e),
    }
    if not (upper and lower and error and legal and found.verify() and ldp.verify()) or grouped >= ldp.lower_bound:
        return Finding.unsettled("the cap or the grouped kernel did not come out", numbers)
    return Finding(
        Verdict.VERIFIED,
        Proof.SYMBOLIC,
        "every eps, prior and task with a convex gain",
        numbers,
        note="The constant part P/E makes the lower half of the guarantee free; what is left may concentrate on a "
        "category, or a group, up to 1 + E times its prior. The published kernel concentrates on single categories, "
        "which is too much for those with P < 1/(1+E).",
        how="certificates checked in exact arithmetic besides",
    )


@discovery("D-LIP-2", "the optimum for rare answers, and where prior-aware privacy pays most", "LIP")
def rare_answers() -> Finding:
    """For two answers with p <= 1/(1+E) the least error is p (1-p) - p^2 (E-1)^2/E, attained with K(rare|rare) = E/(1+E). Of the
    error of optimal LDP it saves c p^2 (c + (2-p)/(1-p)), c = (E-1)^2/E: most at p = 1/(1+E), and nothing in the limit p -> 0.
    """
    failed = _rests_on(lip.binary_optimum, lip.never_worse, lip.advantage_of_skew)
    rows = {}
    for p in (0.25, 0.1, 0.01):
        best, ldp = solve_lip([1 - p, p], 1.0, task="survey"), solve_lip([1 - p, p], 1.0, task="survey", notion="ldp")
        rows[f"p = {p}, eps = 1: optimum, optimal LDP, saving"] = (
            f"{best.value:.8g}, {ldp.value:.8g}, {1 - best.value / ldp.value:.4f} (formula {forms.advantage(p, math.e):.4f})"
        )
        saved = near(1 - best.value / ldp.value, forms.advantage(p, math.e), 1e-6)
        if not (best.verify() and ldp.verify() and saved):
            failed = failed or f"the saving at p = {p} is not the formula's"
    if failed:
        return Finding.unsettled(failed, rows)
    return Finding(
        Verdict.VERIFIED,
        Proof.SYMBOLIC,
        "every eps > 0 and p <= 1/(1+E)",
        rows,
        note="Claims LIP-7, LIP-11 and LIP-12 have the proofs. The paper says the opposite of skewed priors, because "
        "its kernel is not eps-LIP there.",
        how="certificates checked in exact arithmetic besides",
    )


@discovery("D-LIP-3", "how much LDP a LIP mechanism has, and the converse, exactly, for each prior", "LIP")
def exact_sandwich() -> Finding:
    """With m = min P: eps-LDP implies ln(E - (E-1) m)-LIP, and nothing better. eps-LIP implies ln(1 + (E-1)/m)-LDP if
    m >= 1/(1+E), else 2 eps for three categories or more and ln(E (1-m)/(1 - E m)) for two, and nothing better.
    """
    failed = _rests_on(lip.implies_twice_ldp, lip.implied_by_ldp)
    numbers = {
        "fair bit, eps = 1: LIP implies LDP at": math.log(forms.ldp_level(0.5, math.e)),
        "p = 1/10": math.log(forms.ldp_level_rare(0.1, math.e)),
        "p = 1/10: LDP implies LIP at": math.log(forms.lip_level(0.1, math.e)),
        "p = 1/10: largest LDP budget that is 1-LIP": math.log((math.e - 0.1) / 0.9),
        "published, LIP implies LDP at": 2.0,
    }
    quarter, half = Fraction(1, 4), Fraction(1, 2)
    joint = [[half * (1 - quarter), half * quarter], [half * quarter, half * (1 - quarter)]]  # fair bit, E = 2
    attained = exact.lip(joint) == 2 and exact.ldp(joint) == 3 == forms.ldp_level(half, Fraction(2))
    occurs, corners = lip._every_posterior_occurs(), lip._corners_attain()
    rarest = lip._rarest_against_all()
    if failed or not (attained and occurs and corners and rarest):
        return Finding.unsettled(failed or "a level is not attained", numbers)
    return Finding(
        Verdict.VERIFIED,
        Proof.SYMBOLIC,
        "every eps and prior",
        numbers,
        arguments=(
            Argument(
                "nothing better",
                "Each bound is attained at every prior. LDP: randomised response on 'is it the rarest category'. LIP: "
                "a posterior that the guarantee allows and whose likelihoods have the ratio in question; any such "
                "posterior occurs, with probability 1/(1+E), in a mechanism of two outputs.",
                (
                    "the bounds themselves, in symbols (LIP-2, LIP-3); every posterior that is allowed occurs, in symbols",
                    not failed and occurs,
                ),
                (
                    "the levels are attained for every prior: the rarest against all, and posteriors for m >= 1/(1+E), for two "
                    "categories and for three or more below that, in symbols; fair bit, E = 2, in rationals",
                    attained and corners and rarest,
                ),
            ),
        ),
        note="Theorem 1 has eps and 2 eps for all priors at once. For a fair bit the two coincide: eps-LIP is "
        "ln(2E-1)-LDP and nothing else. The factor 2 is reached by every prior on d >= 1 + E categories.",
    )


@discovery("D-LIP-4", "eps-LIP allows at most eps tanh(eps/2) of mutual information", "LIP")
def least_information() -> Finding:
    """I(X; Y) <= eps tanh(eps/2) nats for every eps-LIP mechanism, and no smaller bound holds for all priors."""
    failed = _rests_on(lip.implies_information)
    joint = lip.subsets_of_six(Fraction(2))
    up = sum(m for row in joint for m in row if m == max(row))
    numbers = {
        "eps = 0.1: bound, published bound": f"{forms.information(math.exp(0.1), 0.1):.6f}, 0.1",
        "E = 2, six categories, pairs raised: information over ln 2": str(2 * up - 1),
        "tanh(ln(2)/2)": str(forms.information(Fraction(2), 1)),
    }
    if failed or 2 * up - 1 != forms.information(Fraction(2), 1) or exact.lip(joint) != 2:
        return Finding.unsettled(failed or "the example does not attain the bound", numbers)
    return Finding(
        Verdict.VERIFIED,
        Proof.SYMBOLIC,
        "every eps > 0",
        numbers,
        arguments=(
            Argument(
                "the chord of s ln s",
                "Given an output, the information is the mean of s ln s over the prior, s = posterior/prior in [1/E, "
                "E] with mean 1; the function is convex, hence below its chord over [1/E, E].",
                ("chord and convexity, in symbols (LIP-1)", not failed),
                (
                    "six categories, E = 2: the bound is attained, in rationals",
                    2 * up - 1 == forms.information(Fraction(2), 1),
                ),
            ),
        ),
        note="Proposition 1 has eps: for small eps the truth, eps^2/2, is far less.",
        how="attained in exact arithmetic",
    )


@discovery("D-LIP-5", "sums of evenly spread values: two halves under LDP, groups of neighbours under LIP", "LIP")
def even_sums() -> Finding:
    """Let d values in a row be equally likely. Under eps-LDP with E <= 3 + 2 sqrt 3 and d even the least error of a sum is
    (d^2 (1 - (3/4) tau^2) - 1)/12, by randomised response on the two halves. Under eps-LIP it is at least
    (d^2 (1 - tau^2 (E+2)/E) - 1)/12, attained by the published kernel on 1 + E groups of neighbours if 1 + E divides d.
    """
    failed = _rests_on(lip.many_inputs, lip.many_inputs_ldp)
    e, most = Fraction(2), math.log(3 + 2 * math.sqrt(3))
    numbers: dict[str, Any] = {"two halves are optimal up to eps": most}
    for d in (6, 12, 60):
        both = forms.even_sum_lip(Fraction(d), e), forms.even_sum_ldp(Fraction(d), e)
        response = Fraction(d * d - 1, 12) * forms.response_sum(d, e)
        numbers[f"E = 2, d = {d}: LIP, LDP, d-ary randomised response"] = f"{both[0]}, {both[1]}, {float(response):.4f}"
    found = solve_lip([Fraction(1, 40)] * 40, 1.0, notion="ldp")
    numbers["d = 40, eps = 1, LDP: two halves, certified"] = (
        f"{forms.even_sum_ldp(40, math.e):.8f}, {found.lower_bound:.8f}"
    )
    if failed or not found.verify() or not near(forms.even_sum_ldp(40, math.e), found.lower_bound, 1e-6):
        return Finding.unsettled(failed or "the certified optimum is not that of two halves", numbers)
    return Finding(
        Verdict.VERIFIED,
        Proof.CERTIFICATE,
        f"LDP: every even d, 0 < eps <= ln(3 + 2 sqrt 3) = {most:.3f}; LIP: every d and eps as a bound, attained if 1 + E "
        "divides d",
        numbers,
        note="LIP explains 4 (E+2)/(3E) times as much of the variance as LDP, whatever d. The paper takes d-ary "
        "randomised response for the LDP optimum; its share of the variance explained falls to 0 with d, that of two "
        "halves is (3/4) tau^2 d^2/(d^2 - 1) for every d.",
        how="symbolic proof, one inequality by ball arithmetic",
    )


@discovery("D-LIP-6", "histograms: a closed-form bound for every prior, and a factor of exactly four over LDP", "LIP")
def histograms() -> Finding:
    """No eps-LIP histogram has an error below 1 - sum [P^2 + (h - P)(P - l)] with l = max(P/E, 1 - E (1-P)) and
    h = min(E P, 1 - (1-P)/E). For d equally likely categories and 1 + E dividing d, LIP removes (E-1)^2/(E d) from the prior's
    error 1 - 1/d, LDP a quarter of that.
    """
    failed = _rests_on(lip.histogram, lip.advantage_of_size)
    numbers: dict[str, Any] = {}
    zipf = [Fraction(1, k) for k in range(1, 41)]
    zipf = [q / sum(zipf) for q in zipf]
    for name, prior in {
        "uniform on 20": [Fraction(1, 20)] * 20,
        "Zipf on 40": zipf,
        "(2/3, 1/6, 1/6)": [Fraction(2, 3)] + [Fraction(1, 6)] * 2,
    }.items():
        found = solve_lip(prior, 1.0, task="histogram", rtol=1e-4)
        bound = float(forms.histogram_bound([float(q) for q in prior], math.e))
        claimed = forms.published(1 - float(sum(q * q for q in prior)), math.e)
        numbers[f"{name}, eps = 1: attained, bound, published"] = f"{found.value:.6f}, {bound:.6f}, {claimed:.6f}"
        if not found.verify() or found.value < bound * (1 - 1e-9):
            failed = failed or f"the bound is above what is attained for {name}"
    if failed:
        return Finding.unsettled(failed, numbers)
    return Finding(
        Verdict.VERIFIED,
        Proof.SYMBOLIC,
        "bound: every eps and prior; factor four: uniform prior, 1 + E divides d",
        numbers,
        note="Each coordinate of a posterior lies in [l, h] and has mean P. The bound is the published value if min P "
        ">= 1/(1+E), the optimum for two categories, and 1 - (E + 1/E - 1) sum P^2 if max P <= 1/(1+E).",
        how="certificates checked in exact arithmetic besides",
    )


@discovery("D-LIP-7", "a trusted server may do worse than local users, or better by any factor", "LIP")
def central_and_local() -> Finding:
    """If central information privacy protects the whole database and p >= 1/(1+E), the server's error is at least that of N local
    users, and more by at least (1 - 1/E)^2 q (1 - (1+E) q) as soon as q = min(p, 1-p)^N < 1/(1+E). If it protects each user, its
    error falls exponentially in N.
    """
    import sympy as sp

    # Any l <= (1+E) P has l_* <= c = (1+E) q at the rarest sum, and mean q there: Var(S|l) >= l_*(1 - l_*) >= (1 - c) l_*.
    rarest, apart, rest, cap, slack = sp.symbols("l d V c r", nonnegative=True)
    # Law of total variance for "S is the rarest sum", the others having mean d away and variance V.
    total = rarest * (1 - rarest) * apart**2 + (1 - rarest) * rest
    mean = (1 - rarest) * apart
    split = sp.expand(rarest * mean**2 + (1 - rarest) * (rest + (rarest * apart) ** 2) - total) == 0
    least = sp.expand((rarest * (1 - rarest) - (1 - cap) * rarest).subs(cap, rarest + slack)) == rarest * slack
    failed = _rests_on(lip.central_is_better, lip.central_gap)
    numbers: dict[str, Any] = {}
    decided, worse = not failed, []
    for users in (2, 10):
        found = solve_lip(exact.binomial(users, Fraction(1, 2)), 1.0)
        local = users * forms.published(0.25, math.e)
        numbers[f"{users} fair bits, eps = 1: local, central (database)"] = f"{local:.6f}, {found.lower_bound:.6f}"
        rare = 0.5**users
        gap = (1 - 1 / math.e) ** 2 * rare * (1 - (1 + math.e) * rare)
        worse.append(found.verify().passed and found.lower_bound > local + gap > local)
        numbers[f"{users} fair bits, eps = 1: central above local by at least"] = gap
    central = exact.tail_revealed_as_one(100, Fraction(1, 4), Fraction(3, 4))
    numbers["100 fair bits, E = 2: local, central (users) at most"] = f"75/4, {float(central):.3g}"
    pooled, falls = lip._pooling_is_legal(), lip.exponential_examples()
    if failed or not (split and least and all(worse) and pooled and falls):
        return Finding.unsettled(failed or "the rarest sum or the pool did not come out", numbers)
    return Finding(
        Verdict.VERIFIED,
        Proof.SYMBOLIC,
        "every N, p and eps as stated",
        numbers,
        arguments=(
            Argument(
                "the rarest sum",
                "Database protected: the server loses (2/E - 1/E^2) Var(S), which the users attain, and (1 - 1/E)^2 "
                "times the mean of Var(S|l), l <= (1+E) P (LIP-13). The rarest sum is at an end, all others at least "
                "1 away, its share of l is at most (1+E) q and q on average.",
                (
                    "the server against N users (LIP-19, LIP-20); Var(S|l) >= l(1 - l) >= (1 - c) l for a share l <= "
                    "c, in symbols",
                    bool(decided and split and least),
                ),
                (
                    "certified optima for 2 and 10 users are above the local error by more than the stated amount, eps = 1",
                    all(worse),
                ),
            ),
            lip._pool(pooled, falls),
        ),
        note="One budget for the database is N times as strict as one for each of its users. The paper says that the "
        "server always does better, and not by much.",
        how="certificates checked in exact arithmetic besides",
    )

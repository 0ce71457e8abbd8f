"""What each way of accounting leaves for one of several releases of the same noise, beside Gaussian noise composed optimally."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from optdp.design.additive import additive_noise
from optdp.design.additive.releases import budgets
from optdp.design.registry import solve
from optdp.exact import Number, number, require
from optdp.exact.enclosures import rounded_up
from optdp.mechanisms.accounting import composed_delta, gaussian_budget
from optdp.mechanisms.baselines.calibrated import GaussianNoise
from optdp.problem import GDP, LossLike, Privacy
from optdp.report.additive import closed_loss
from optdp.report.gap import listed, ratio_figure
from optdp.report.report import Column, Report
from optdp.solution import Solution


def gap_report(
    eps: Number | str = 1.0, delta: Number | str = 1e-6, releases: int | Iterable[int] = (1, 10, 100),
    loss: LossLike = "squared", *, sensitivity: float = 1.0, discrete: bool = False, rtol: float = 0.02,
) -> Report:  # fmt: skip
    """For every number of releases and way of accounting: the optimum for one release, and the Gaussian with that total.

    **Arguments:** `eps`, `delta` > 0: the total budget; `releases`: one number or several; the others as in
    `optdp.solve_additive`, with a loss in closed form.

    Gaussian noise composes exactly, to sqrt(k) mu-GDP: its standard deviation is the least that keeps the total budget.
    """
    law = closed_loss(loss)
    total, share = number(eps, "eps"), number(delta, "delta")
    if float(share) == 0:
        raise ValueError("delta = 0 is not allowed here: only basic composition keeps it")
    counts: list[int] = listed(releases)
    if not counts:
        raise ValueError("releases = () is not allowed: it must be one number or several")

    def trial(privacy: Privacy, gap: float, gaussian: bool = True) -> Solution:
        own: dict[str, Any] = {"gaussian": gaussian} if isinstance(privacy, GDP) else {}
        return solve(additive_noise(privacy, law, discrete), gap, **own)

    rows: list[dict[str, Any]] = []
    for k in counts:
        require.integer("releases", k, low=1, high=10**6)
        mu = gaussian_budget(total, share, k)
        for name, privacy in budgets(total, share, k, sensitivity, "best", trial).items():
            # Of the Gaussian a mu that is larger than this keeps no total.
            found = trial(privacy, rtol, not isinstance(privacy, GDP) or float(privacy.mu) <= mu)
            rival = GaussianNoise(mu, sensitivity, found.problem.domain).noise_loss(law)
            rows.append({
                "releases": k, "accounting": name, "privacy": _told(privacy), "lower": found.lower_bound,
                "value": found.value, "gap": found.gap, "gaussian": rival, "ratio": found.value / rival,
                "delta": composed_delta(found.mechanism, float(total), k), "verified": bool(found.verify()),
                "mu": float(privacy.mu) if isinstance(privacy, GDP) else None,
            })  # fmt: skip
    columns = [
        Column("releases", "releases", "g"), Column("accounting", "accounting"), Column("privacy", "one release is"),
        Column("lower", "lower bound", ".5g", "down"), Column("value", "optimum", ".5g", "up"), Column("gap", "gap", ".1e"),
        Column("gaussian", "Gaussian", ".5g"), Column("ratio", "optimum / Gaussian", ".4f"),
        Column("delta", f"delta at eps = {rounded_up(total, 6)}", ".3g"), Column("verified", "verified"),
    ]  # fmt: skip
    together = f"({rounded_up(total, 6)}, {rounded_up(share, 6)})-DP together"
    title = f"Additive noise for one of k releases that are {together}: worst-case {law.name}"
    notes = [
        "basic: (eps/k, delta/k) for each; gaussian: mu/sqrt(k)-GDP for each, mu-GDP implying the total; numerical: the "
        "largest mu for which the noise itself, composed numerically, keeps the total.",
        "optimum: of one release, proven for what is in the third column. Gaussian: rounded to integers where noise is; the "
        "least one whose composition, which is exact, keeps the total.",
        "delta: of all releases together, by numerical composition of the noise found: what is left of delta shows what the "
        "accounting gives away.",
    ]
    known = {(row["accounting"], row["releases"]): row["ratio"] for row in rows}
    x = sorted(set(counts))
    ratios = {way: [known.get((way, k)) for k in x] for way in dict.fromkeys(way for way, _ in known)}
    figure = ratio_figure(
        title, x, ratios, "Gaussian, composed exactly", "expected loss / Gaussian's", xlabel="releases"
    )
    return Report(title, columns, rows, notes, figure if len(counts) > 1 else None)


def _told(privacy: Any) -> str:
    """Shorter than the exact adjective."""
    if isinstance(privacy, GDP):
        return f"{rounded_up(privacy.mu, 5)}-GDP"
    return f"({rounded_up(privacy.eps, 5)}, {rounded_up(privacy.delta, 5)})-DP"

"""Noise for every promise, as users meet it: baselines with their proofs, several releases, reports, commands, discoveries."""

from __future__ import annotations

import importlib.util
import math
from fractions import Fraction
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import optdp
from optdp.audit.claim import Verdict
from optdp.audit.tlap import discoveries as tlap
from optdp.cli import main
from optdp.design.additive.releases import budgets
from optdp.exact.numbers import show
from optdp.mechanisms import accounting, baselines
from optdp.mechanisms.accounting import composed_delta, gaussian_budget
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.mechanisms.baselines.calibrated import CalibratedLaplace, GaussianNoise, laplace
from optdp.mechanisms.baselines.noise import Laplace, TruncatedLaplacian
from optdp.mechanisms.gaussian import LatticeGaussian
from optdp.mechanisms.staircase import LatticeStaircase
from optdp.report import notions, releases
from optdp.report.additive import profile_report

NOTIONS = [
    optdp.GDP(1.0), optdp.GDP("1/2", 2.0), optdp.KL(0.5), optdp.RDP(4, 2.0), optdp.Profile([(0.5, 0.01), (2.0, 1e-5)]),
    optdp.Profile([(0.5, 0.01), (2.0, 0)], 3.0),
]  # fmt: skip


def problem(notion, discrete=False, loss="squared"):
    return optdp.Problem(notion, optdp.Integers() if discrete else optdp.Line(), loss, optdp.Additive())


# --- baselines ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("notion", NOTIONS, ids=str)
def test_baselines_keep_the_notion_and_are_saved(notion, discrete):
    found = baselines.applicable(problem(notion, discrete))
    assert ({"discrete Laplace"} if discrete else {"Laplace", "staircase"}) <= set(found)
    for name, noise in found.items():
        assert notion.in_real_arithmetic().implied_by(noise.guarantee()) is True, name
        assert notion.implied_by(noise.guarantee()) is (True if noise.exact else None), name  # floats are sampled
        assert optdp.Mechanism.from_dict(noise.to_dict()) == noise
        drawn = noise.randomize(np.zeros(4000), rng=0)
        spread = noise.noise_loss("squared") ** 0.5
        assert abs(float(drawn.mean())) < 6 * spread / 4000**0.5


@pytest.mark.parametrize("mu", [0.3, 1.0, 2.5])
def test_laplace_is_calibrated_to_gaussian_dp_as_far_as_it_goes(mu):
    """Its profile is under the Gaussian's at every eps, and touches it at eps = 0."""
    noise = laplace(optdp.GDP(mu))
    limit = [float(optdp.GDP(mu).delta_at(float(e))) for e in np.linspace(0, 4 * mu, 60)]
    own = [noise.delta(float(e)) for e in np.linspace(0, 4 * mu, 60)]
    assert all(a <= b * (1 + 1e-12) + 1e-15 for a, b in zip(own, limit, strict=True))
    assert own[0] == pytest.approx(limit[0], rel=1e-9)


@pytest.mark.parametrize(
    ("notion", "alpha"), [(optdp.KL(0.3), 1), (optdp.RDP(3, 0.8), 3), (optdp.RDP("3/2", 2.0), 1.5)]
)
def test_laplace_spends_its_divergence(notion, alpha):
    """By quadrature, at the full shift."""
    scale = laplace(notion).scale

    def density(z):
        return math.exp(-abs(z) / scale) / (2 * scale)

    def term(z):
        p, q = density(z), density(z - 1)
        return p * math.log(p / q) if alpha == 1 else p**alpha * q ** (1 - alpha)

    total = sum(quad(term, a, b, epsabs=0, epsrel=1e-12)[0] for a, b in ((-50 * scale, 0), (0, 1), (1, 1 + 50 * scale)))
    spent = total if alpha == 1 else math.log(total) / (alpha - 1)
    assert spent == pytest.approx(float(notion.bound), rel=1e-9)


@pytest.mark.parametrize("eps", [0.0, 0.3, 1.0, 4.0])
def test_the_delta_of_a_gaussian_is_rounded_up(eps):
    for mu in (0.01, 0.7, 1.0):
        assert GaussianNoise(mu).delta(eps) >= optdp.GDP(mu).delta_at(eps) > 0


@settings(max_examples=8, deadline=None)
@given(mu=st.floats(0.2, 3.0), width=st.integers(1, 3), eps=st.floats(0.0, 4.0))
def test_rounded_and_discrete_gaussians(mu, width, eps):
    rounded = GaussianNoise(mu, width, optdp.Integers())
    half = rounded.noise_probability(np.arange(200))
    line = np.concatenate([np.zeros(width), half[:0:-1], half, np.zeros(width)])
    excess = np.maximum(line[:-width] - math.exp(eps) * line[width:], 0.0).sum()
    assert excess <= float(optdp.GDP(mu).delta_at(eps)) + 1e-13
    assert line.sum() == pytest.approx(1.0, abs=1e-12)
    assert rounded.cdf(1.5) == pytest.approx(0.5 + half[0] / 2 + half[1], abs=1e-12)
    k = rounded.quantile(0.9)
    assert rounded.cdf(k) >= 0.9 > rounded.cdf(k - 1) and rounded.quantile(0.1) <= 0
    low = rounded.quantile(0.1)
    assert rounded.cdf(low) >= 0.1 > rounded.cdf(low - 1)
    discrete = GaussianNoise(mu, width, optdp.Integers(), "discrete", 2)
    p = discrete.noise_probability(np.arange(-150, 151))
    kept = (p[width:] > 1e-250) & (p[:-width] > 1e-250)
    moment = (p[width:][kept] ** 2 / p[:-width][kept]).sum()
    assert math.log(moment) <= float(discrete.guarantee().bound) * (1 + 1e-9) + 1e-12


def test_wrong_calibrations_are_refused():
    good = laplace(optdp.GDP(1.0))
    with pytest.raises(ValueError, match="not proven"):
        CalibratedLaplace(2 * float(good.eps), notion=optdp.GDP(1.0))
    forged = good.to_dict() | {"eps": 1.5}
    with pytest.raises(ValueError, match="not proven"):
        optdp.Mechanism.from_dict(forged)
    for bad in (None, optdp.LDP(1.0), optdp.GDP(1.0, 2.0)):
        with pytest.raises(TypeError, match="notion"):
            CalibratedLaplace(0.1, notion=bad)
    with pytest.raises(ValueError, match="kind"):
        GaussianNoise(1.0, kind="discrete")
    with pytest.raises(TypeError, match="domain"):
        GaussianNoise(1.0, domain=optdp.Interval(0, 1))
    with pytest.raises(ValueError, match="sensitivity"):
        GaussianNoise(1.0, 1.5, optdp.Integers())


# --- several releases ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 10, 100])
def test_composition_of_gaussians_is_exact(k):
    for mu in (0.25, 1.0):
        exact = float(optdp.GDP(mu).delta_at(1.0))
        found = composed_delta(GaussianNoise(mu / math.sqrt(k)), 1.0, k)
        assert exact * (1 - 1e-9) <= found <= exact * 1.001
    spent = composed_delta(GaussianNoise(gaussian_budget(1.0, 1e-6, k)), 1.0, k)
    assert spent == pytest.approx(1e-6, rel=1e-3)


def test_composition_where_a_guarantee_is_a_kink():
    """Basic composition is exact for what may happen with probability delta: 1 - (1 - delta)^k, and nothing else beyond."""
    noise = TruncatedLaplacian(0.1, 1e-4)
    for k in (1, 3, 10):
        assert composed_delta(noise, 0.1 * k, k) == pytest.approx(1 - (1 - 1e-4) ** k, rel=2e-3)
    assert composed_delta(Laplace(0.5), 1.0, 2) <= 1e-11
    assert composed_delta(Laplace(0.5), 0.5, 2) > composed_delta(Laplace(0.5), 0.5, 1)


class Rare:
    """Outputs tell everything with probability `lost`, else with probability `often` a coin of the odds e^size."""

    def __init__(self, often, size, lost=0.0):
        self.often, self.size, self.lost = often, size, lost

    def delta(self, eps):
        told = -math.expm1(min(0.0, eps - self.size)) / (1 + math.exp(-self.size))
        return self.lost + (1 - self.lost) * self.often * told


def test_composition_counts_sums_of_a_few_rare_losses():
    """Ten standard deviations of these losses are less than what eight of the hundred releases may tell."""
    k, often, size, eps, exact = 100, 1e-3, 12.0, 0.5, []
    for n in range(20):
        for up in range(n + 1):
            if (loss := (2 * up - n) * size) > eps:
                chance = math.comb(n, up) * math.exp(-size * (n - up)) / (1 + math.exp(-size)) ** n
                exact.append(math.comb(k, n) * often**n * (1 - often) ** (k - n) * chance * -math.expm1(eps - loss))
    assert math.fsum(exact) <= composed_delta(Rare(often, size), eps, k) <= math.fsum(exact) + 1e-11


def test_composition_of_a_million_releases_is_not_below_the_exact_delta():
    """A delta that 1 less it rounds to 1 counts a million times, and so does the rounding of each profile."""
    noise = Rare(1.0, 1e-6, 5e-17)
    assert 4.9999999998e-11 <= composed_delta(noise, 0.012, 10**6) <= 1e-9
    assert 1.9769187284028375e-4 <= composed_delta(noise, 0.0005005, 10**6) <= 1.9770e-4  # by binomials, to 60 digits


def test_the_profile_of_many_cells_is_right_to_a_rounding():
    """Floats of nearly equal masses, added one by one, were off by more than composed deltas allow for each release."""
    weights = tuple(int(w) for w in np.exp(-np.arange(40_000) / 1600) * 1e15)
    noise = AdditiveMechanism(optdp.Integers(), 1.0, 1, weights)
    for eps in (0.0, 2e-4):
        exact = float(noise.exact_delta(Fraction(math.exp(eps))))
        assert abs(float(accounting.profile(noise, np.array([eps]))[0]) - exact) <= accounting.UNIT


def test_composition_up_to_the_largest_epsilon_and_of_noise_that_tells_all():
    """Profiles are asked for up to eps = 30 alone, and two integers next to each other have no answer in common."""
    for noise in (Laplace(30.0), LatticeStaircase.private(29.5)):
        assert 0.9 < composed_delta(noise, 7.3, 1) <= 1 and composed_delta(noise, 60.0, 2) <= 1e-11
    silent = AdditiveMechanism(optdp.Integers(), 1, 1, (1,))
    assert composed_delta(silent, 1.0, 3) == silent.delta(1.0) == 1.0


@settings(max_examples=25, deadline=None)
@given(
    weights=st.lists(st.integers(0, 40), min_size=1, max_size=5).filter(any),
    n=st.integers(1, 2), k=st.integers(1, 3), eps=st.floats(0, 4), coarse=st.sampled_from([None, 0.3, 1.7]),
)  # fmt: skip
def test_composition_against_all_outputs_written_out(weights, n, k, eps, coarse):
    """Up to three answers of noise on few integers, whose masses need not fall with the distance, nor losses be finite."""
    noise = AdditiveMechanism(optdp.Integers(), float(n), n, tuple(weights))
    exact = []
    for shift in range(1, n + 1):
        pair = noise.pair(shift)
        p, q = (np.array([float(Fraction(x, pair.total)) for x in part]) for part in (pair.p, pair.q))
        ps, qs = np.ones(1), np.ones(1)
        for _ in range(k):
            ps, qs = np.outer(ps, p).ravel(), np.outer(qs, q).ravel()
        exact.append(float(np.maximum(ps - math.exp(eps) * qs, 0.0).sum()))
    found = composed_delta(noise, eps, k, step=coarse)
    assert max(exact) - 1e-15 <= found <= 1.0
    with mock.patch.object(accounting, "OUTSIDE", 0.05):  # what is left out of the convolution is allowed for
        assert composed_delta(noise, eps, k, step=coarse) >= min(1.0, max(exact) + 0.01)
    if n == 1 and not coarse:  # one pair of neighbours decides
        assert found <= max(exact) + 2e-3


@pytest.mark.parametrize("k", [1, 10, 100])
def test_composition_agrees_with_dp_accounting(k):
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    mu = gaussian_budget(1.0, 1e-6, k)
    noise = optdp.solve_additive(optdp.GDP(mu), loss="squared", n=math.ceil(4 * mu)).mechanism
    assert isinstance(noise, AdditiveMechanism)
    pair = noise.pair(noise.n)
    logs = [{i: math.log(x) - math.log(pair.total) for i, x in enumerate(part) if x} for part in (pair.q, pair.p)]
    one = pld.from_two_probability_mass_functions(*logs, value_discretization_interval=2e-4 / k)
    assert composed_delta(noise, 1.0, k) == pytest.approx(one.self_compose(k).get_delta_for_epsilon(1.0), rel=0.01)


def test_numerical_accounting_is_that_of_lattices_and_never_above_the_gaussian():
    """Noise on a lattice keeps a total at a larger mu than the Gaussian's, of which sqrt(k) mu-GDP says all."""
    found = optdp.solve_additive(10.0, 1e-3, optdp.Huber(0.5), releases=2, accounting="numerical", rtol=0.02)
    plain = optdp.solve_additive(10.0, 1e-3, optdp.Huber(0.5), releases=2, accounting="gaussian", rtol=0.02)
    assert isinstance(found.mechanism, AdditiveMechanism) and found.problem.privacy.mu > plain.problem.privacy.mu
    assert composed_delta(found.mechanism, 10.0, 2) <= 1e-3 and found.value < plain.value and found.verify()
    small = optdp.solve_additive(1.0, 1e-6, "squared", releases=10, accounting="numerical", rtol=0.02)
    best = optdp.solve_additive(1.0, 1e-6, "squared", releases=10, rtol=0.02)
    assert small.value == best.value and isinstance(best.mechanism, LatticeGaussian)
    assert composed_delta(best.mechanism, 1.0, 10) <= 1e-6


def test_the_report_on_releases():
    report = releases.gap_report(1.0, 1e-3, (1, 20), rtol=0.05, discrete=True)
    rows = {(row["releases"], row["accounting"]): row for row in report.rows}
    assert set(rows) == {(k, way) for k in (1, 20) for way in ("basic", "gaussian", "numerical")}
    for row in report.rows:
        assert row["verified"] and row["lower"] <= row["value"] and row["delta"] <= 1e-3 * (1 + 1e-6)
    assert rows[1, "basic"]["ratio"] < rows[1, "gaussian"]["ratio"] and rows[20, "basic"]["ratio"] > 2
    for k in (1, 20):  # what exact composition buys beyond Gaussian DP
        assert rows[k, "numerical"]["mu"] >= rows[k, "gaussian"]["mu"]
    assert report.plot() is not None
    for bad in ({"delta": 0}, {"releases": (0,)}, {"releases": ()}):
        with pytest.raises(ValueError, match=r"delta|releases"):
            releases.gap_report(**bad)


def test_the_report_on_notions():
    report = notions.gap_report("gdp", (2, 3), "abs", rtol=0.1)
    assert [row["at"] for row in report.rows] == [2, 3] and all(row["verified"] for row in report.rows)
    assert report.rows[1]["Gaussian / optimum"] > 1.5 and report.plot() is not None
    (whole,) = notions.gap_report("kl", 0.5, discrete=True, rtol=0.2).rows
    assert {"discrete Gaussian", "rounded Gaussian", "discrete Laplace"} <= set(whole)
    assert optdp.gap_report({"problem": "notions", "at": 2, "rtol": 0.2}).rows[0]["verified"]
    for bad, named in ((("zcdp",), "notion"), (("gdp", ()), "at")):
        with pytest.raises(ValueError, match=named):
            notions.gap_report(*bad)
    ranked = optdp.compare(problem(optdp.GDP(3.0), loss="abs"), rtol=0.1).rows
    assert [row["mechanism"] for row in ranked] == ["optimum", "Laplace", "Gaussian", "staircase"]
    assert ranked[1]["guarantee"] == "in real arithmetic"


# --- commands -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--gdp", "3", "--rtol", "0.1", "--profile"), "3.0-GDP"),
        (("--kl", "1/2", "--rtol", "0.2", "--loss", "squared"), "1/2-KL"),
        (("--profile", "1:0.1", "2:0.05", "--rtol", "0.1"), "(1.0, 0.1) and (2.0, 0.05)-DP"),
        (("--eps", "1", "--delta", "1e-3", "--releases", "9", "--accounting", "gaussian", "--rtol", "0.1"), "-GDP"),
    ],
)  # fmt: skip
def test_solve_additive(capsys, given, said):
    assert main(["solve", "additive", *given]) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--gdp", "2", "--eps", "1"), "beside another notion"),
        (("--gdp", "2", "--profile", "1:0.1"), "beside another notion"),
        (("--gdp", "9"), "mu"), ((), "--gdp"), (("--gdp", "1", "--kl", "1"), "not allowed with"),
        (("--profile", "1"), "EPS:DELTA"),
        (("--rdp", "1", "1"), "alpha"),
    ],
)  # fmt: skip
def test_wrong_notions_are_told(capsys, given, said):
    try:
        assert main(["solve", "additive", *given]) != 0
    except SystemExit as error:
        assert error.code == 2
    assert said in capsys.readouterr().err


def test_reports_on_the_command_line(capsys):
    assert main(["report", "notions", "--at", "3", "--rtol", "0.1"]) == 0
    assert main(["report", "releases", "--releases", "9", "--delta", "1e-3", "--rtol", "0.1"]) == 0
    out = capsys.readouterr().out
    assert "Gaussian / optimum" in out and "numerical" in out


def test_profiles_of_other_notions():
    solution = optdp.solve_additive(optdp.GDP(2.0), rtol=0.1)
    report = profile_report(solution)
    for row in report.rows:
        assert (
            row["optimal"] <= float(optdp.GDP(2.0).delta_at(row["eps"])) + 1e-9
            and row["staircase"] <= row["Gaussian"] + 1e-12
        )
    assert report.plot() is not None


# --- discoveries --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "ids", [("D-TLAP-8", "D-TLAP-9", "D-TLAP-10"), pytest.param(("D-TLAP-7",), marks=pytest.mark.soak)]
)
def test_discoveries_are_decided_by_their_checks(ids, monkeypatch):
    monkeypatch.setattr(tlap, "variance_share", lambda mu: arb(1.2))
    monkeypatch.setattr(tlap, "half_lines", lambda mu, q: arb(9))
    monkeypatch.setattr(tlap, "staircase_share", lambda mu: arb("1.01"))
    assert all(row.finding.verdict is Verdict.UNSETTLED for row in optdp.discoveries(ids, progress=False).rows)


@settings(max_examples=5, deadline=None)
@given(mu=st.floats(0.3, 4.0))
def test_the_bounds_hold_for_private_noise_that_is_not_optimal(mu):
    """Laplace noise for mu-GDP, and the half-line bounds against plain sums in floats."""
    noise = laplace(optdp.GDP(mu))
    assert noise.noise_loss("squared") >= float(tlap.variance_share(mu)) / mu**2
    assert noise.noise_loss("abs") >= float(tlap.half_lines(mu, 1))
    rounded = GaussianNoise(mu, 1.0, optdp.Integers())
    for q, loss in ((1, "abs"), (2, "squared")):
        assert float(tlap.half_lines(mu, q)) == pytest.approx(rounded.noise_loss(loss), rel=1e-9)


def test_the_benchmark_runs():
    pytest.importorskip("dp_accounting")
    path = Path(__file__).parent.parent / "benchmarks" / "releases.py"
    spec = importlib.util.spec_from_file_location("benchmark_releases", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert all(abs(row["apart"]) < 0.01 for row in module.both(1.0, 1e-6, [10], 0.05).rows)


@pytest.mark.parametrize(("eps", "delta", "width"), [(1.0, 0.01, 1), (0.5, 1e-3, 2), (2.0, 1e-4, 1)])
def test_composition_is_no_less_than_all_pairs_of_outcomes(eps, delta, width):
    """Against sums over pairs: it was 1e-10 too small, where probabilities were made to sum to 1 after rounding."""
    noise = optdp.solve_additive(eps, delta, "squared", sensitivity=width, discrete=True).mechanism
    p = noise.noise_probability(np.arange(-400, 401))
    shifts = [s for s in range(-width, width + 1) if s]
    for at in (eps, 1.3 * eps, 2 * eps):
        two = max(
            np.maximum(np.outer(p, p) - math.exp(at) * np.outer(np.roll(p, a), np.roll(p, b)), 0).sum()
            for a in shifts for b in shifts
        )  # fmt: skip
        assert two - 1e-14 <= composed_delta(noise, at, 2) <= two * (1 + 1e-9) + 2e-12
        assert noise.delta(at) <= composed_delta(noise, at, 1) <= noise.delta(at) * (1 + 1e-9) + 2e-12


def test_one_release_is_what_was_asked_for():
    """Its share was written as a fraction, and rounded down where it is a logarithm."""
    alone = optdp.solve_additive(optdp.log(3), 0.1, releases=1, accounting="basic", rtol=0.1)
    assert alone.problem.privacy == optdp.ApproxDP(optdp.log(3), 0.1)


def test_a_notion_with_releases_is_refused_with_what_one_of_them_may_have():
    with pytest.raises(TypeError, match=r"GDP\(mu/sqrt\(k\)\), RDP\(alpha, bound/k\) or KL\(bound/k\)"):
        optdp.solve_additive(optdp.GDP(1.0), releases=50)


@pytest.mark.parametrize("eps", [1.0, 0.3, Fraction(1, 3), optdp.log(3)])
@pytest.mark.parametrize("delta", [0.0, 1e-6, Fraction(1, 7)])
@pytest.mark.parametrize("releases", [2, 3, 10])
def test_shares_of_a_budget_are_no_more_than_it_and_short_to_write(eps, delta, releases):
    """A tenth of 1e-6 was 944473296573929/9444732965739290427392."""
    one = budgets(eps, delta, releases, 1.0, "basic", None)["basic"]
    for part, whole in ((one.eps, eps), (one.delta, delta)):
        exact = math.log(3) if isinstance(whole, type(optdp.log(3))) else Fraction(whole)
        assert Fraction(part) * releases <= exact and float(part) * releases == pytest.approx(float(exact), rel=1e-15)
        assert len(show(part)) <= 24


def test_what_is_shared_is_said(capsys):
    """Only one release was spoken of."""
    asked = ["--eps", "1", "--delta", "1e-6", "--sensitivity", "2", "--releases", "10", "--accounting", "basic"]
    assert main(["solve", "additive", *asked]) == 0
    said = capsys.readouterr().out
    together = "(1.0, 1e-06)-DP, where neighbours are inputs at most 2.0 apart: a theorem"
    assert f"this is one of 10 releases, each with noise of its own, which together keep {together}" in said
    assert "over all (1/10, 1e-07)-DP mechanisms" in said

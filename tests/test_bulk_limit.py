"""The limit for large eps: constants by weak duality on both sides, mechanisms and priors by quadrature, the discoveries."""

import math

import numpy as np
import pytest
from flint import arb

import optdp
from optdp.audit.claim import Verdict
from optdp.audit.ogpm import bulk as checks
from optdp.closed_forms import bulk

P, THETA = float(bulk.bulk_parameter(1)), float(bulk.bulk_parameter(2))
C = {q: float(bulk.bulk_constant(q)) for q in (1, 2)}


def gauss(low, high, count=400):
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return (high - low) / 2 * nodes + (high + low) / 2, (high - low) / 2 * weights


def quantile(q, p):
    """Q(p) on [-1/2, 1/2], floor p with the measure dp/2 (q = 1) or dp (24 Theta)^(-1/3) (q = 2)."""
    if q == 1:
        return np.vectorize(math.erf)(p) / (2 * math.erf(P))
    return np.sin(p) / (2 * math.sin(THETA))


def slope(q, p):
    """Q'(p)."""
    return np.exp(-(p**2)) / (math.sqrt(math.pi) * math.erf(P)) if q == 1 else np.cos(p) / (2 * math.sin(THETA))


def end(q):
    return (P, THETA)[q - 1]


def rate(q):
    """The floor's density per unit of p, in the limit."""
    return 0.5 if q == 1 else (24 * THETA) ** (-1 / 3)


def prior(q, p):
    """The prior's density with respect to x at Q(p)."""
    x = quantile(q, p)
    if q == 1:
        top = 1 / (2 * math.sqrt(math.pi) * math.erf(P))
        g = top * np.exp(-(p**2))
        return top * math.exp(-(P**2)) * (g + x * p) / g**2
    r = 1 / (2 * math.sin(THETA))
    return (x**2 + r**2 * (3 * THETA / math.tan(THETA) - 1)) / (4 * THETA * (r**2 - x**2) ** 1.5)


@pytest.mark.parametrize("q", [1, 2])
def test_the_floor_makes_the_limit_loss_the_same_at_every_input(q):
    for at in np.linspace(-end(q), end(q), 7):
        x, near = quantile(q, at), 0.0
        for low, high in ((-end(q), at), (at, end(q))):
            if low < high:
                p, weights = gauss(low, high)
                near += rate(q) * np.sum(weights * np.abs(quantile(q, p) - x) ** q)
        mu = rate(q) / slope(q, at)
        assert near + mu**-q / (2**q * (q + 1)) == pytest.approx(C[q], abs=1e-12)


@pytest.mark.parametrize("q", [1, 2])
def test_the_prior_proves_the_constant_by_weak_duality(q):
    """A = int lambda |x - y|^q: min over mu of int [A mu + k lambda mu^-q] = int (q+1)/q A^(q/(q+1)) (qk lambda)^(1/(q+1))."""
    p, weights = gauss(-end(q), end(q))
    x, dx = quantile(q, p), weights * slope(q, p)
    density = prior(q, p)
    assert np.sum(dx * density) == pytest.approx(1, abs=1e-12) and density.min() > 0
    if q == 2:
        costs = np.array([np.sum(dx * density * (x - y) ** 2) for y in x])
    else:  # |x - y| has a kink: integrate on both sides of it
        costs = []
        for at, y in zip(p, x, strict=True):
            total = 0.0
            for low, high in ((-end(q), at), (at, end(q))):
                inner, share = gauss(low, high, 60)
                total += np.sum(share * slope(q, inner) * prior(q, inner) * np.abs(quantile(q, inner) - y))
            costs.append(total)
        costs = np.array(costs)
    k = 1 / (2**q * (q + 1))
    bound = (q + 1) / q * (q * k) ** (1 / (q + 1)) * np.sum(dx * costs ** (q / (q + 1)) * density ** (1 / (q + 1)))
    assert bound == pytest.approx(C[q], abs=1e-11)


def test_constants_are_enclosed_tightly_and_least():
    for q in (1, 2):
        assert bulk.bulk_constant(q).rad() < arb("1e-30")
        at = end(q)
        assert all(float(bulk.bulk_value(q, arb(at + d))) > C[q] for d in (-0.2, -0.01, 0.01, 0.2))
    with pytest.raises(ValueError, match="q = 3 is not allowed"):
        bulk.bulk_constant(3)
    with pytest.raises(ValueError, match="eps = 0 is not allowed"):
        bulk.bulk_bracket(1, 0)


def losses(q, eps, window, inner, grid):
    """E|Y - x|^q of the mechanism with atoms: outputs Q(p) cut off at the ends, p from the whole range or from a window."""
    atom = window - inner
    reach = end(q) + atom
    floor = 1 / (math.expm1(eps) * window + 2 * reach)  # per unit of p

    def integral(low, high, x):
        total = 0.0
        for a, b in ((low, min(high, -end(q))), (max(low, end(q)), high)):
            total += max(0.0, b - a) * abs(math.copysign(0.5, a + b) - x) ** q
        cuts = [max(low, -end(q)), min(high, end(q))]
        at = float(np.clip(place(q, x), *cuts))
        for a, b in ((cuts[0], at), (at, cuts[1])):
            p, weights = gauss(a, b, 60)
            total += np.sum(weights * np.abs(quantile(q, p) - x) ** q)
        return total

    out = []
    for x in grid:
        low = float(np.clip(place(q, x) - window / 2, -reach, reach - window))
        out.append(floor * (integral(-reach, reach, x) + math.expm1(eps) * integral(low, low + window, x)))
    return np.array(out)


def place(q, x):
    """Q^-1(x)."""
    if q == 2:
        return math.asin(2 * x * math.sin(THETA))
    low, high = -P, P
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if quantile(1, middle) < x else (low, middle)
    return low


@pytest.mark.parametrize("eps", [5.0, 8.0, 12.0])
def test_the_mechanisms_losses_are_below_their_bound_and_close_to_it(eps):
    excess = arb(eps).exp() - 1
    window = 2 * math.exp(-eps / 2)
    inner = window / math.sqrt(2) * math.exp(-P * window / math.sqrt(2))
    grid = np.concatenate([np.linspace(-0.5, 0.5, 9), 0.5 - window * np.linspace(0, 2, 9) * slope(1, P)])
    found = losses(1, eps, window, inner, grid).max()
    assert found <= float(bulk.bulk_bracket(1, eps).upper) <= found * (1 + 6 * math.exp(-eps))
    if eps >= 8:
        s = math.exp(-eps / 3)
        window = (24 * THETA) ** (1 / 3) * s * (1 + 0.35 * s + 1.6 * s * s)
        inner = 4 ** (-1 / 3) * window * (1 - 2.9 * s + 7 * s * s)
        balls = arb(THETA), arb(window), arb(inner)
        assert bulk.squared_fits(excess, *balls)
        grid = np.concatenate([np.linspace(-0.5, 0.5, 9), 0.5 - window * np.linspace(0, 1.5, 9) * slope(2, THETA)])
        assert losses(2, eps, window, inner, grid).max() <= float(bulk.squared_cost(excess, *balls)) * (1 + 1e-12)


@pytest.mark.parametrize("eps", [4.0, 7.0, 12.0])
@pytest.mark.parametrize("q", [1, 2])
def test_the_priors_are_feasible_at_every_output(q, eps):
    """A(y) - N >= (E - 1) int lambda (rho^q - |x - y|^q)_+ by quadrature, for the parameters of the bracket."""
    excess = arb(eps).exp() - 1
    if q == 1:
        at = bisect(lambda p: bulk.abs_feasible(excess, arb(p)), P, 1.5)
        bound, delta = (float(t) for t in bulk.abs_slack(arb(at)))
        top = 1 / (2 * math.sqrt(math.pi) * math.erf(at))
        x, dx = (lambda p: np.vectorize(math.erf)(p) / (2 * math.erf(at))), (lambda p: 2 * top * np.exp(-(p**2)))
        density = lambda p: math.exp(-(at**2)) * (np.exp(-(p**2)) + x(p) * p / top) / np.exp(-2 * p**2)  # noqa: E731
        rho = lambda p: 2 * delta * top * np.exp(-(p**2))  # noqa: E731
    else:
        at, tan = THETA, math.tan(THETA)
        shift = bisect(lambda t: bulk.squared_prior(excess, arb(at), arb(t))[1] >= 0, 0.0, 1.0)
        bound, r, scale = (
            float(bulk.squared_prior(excess, arb(at), arb(shift))[0]),
            0.5 / math.sin(at),
            0.5 / ((1 + shift) * tan - at),
        )
        x, dx = (lambda p: r * np.sin(p)), (lambda p: r * np.cos(p))
        density = lambda p: scale * (np.sin(p) ** 2 + shift) / (r * np.cos(p) ** 3)  # noqa: E731
        reach = (3 / (4 * scale * math.expm1(eps))) ** (1 / 3)
        rho = lambda p: reach * r * np.cos(p)  # noqa: E731
    assert bound == pytest.approx(float(bulk.bulk_bracket(q, eps).lower), rel=1e-6)

    def integral(f, low, high):
        p, weights = gauss(low, high, 80)
        return np.sum(weights * dx(p) * density(p) * f(p))

    assert integral(np.ones_like, -at, at) == pytest.approx(1, abs=1e-12)
    assert integral(lambda p: rho(p) ** q, -at, at) == pytest.approx(bound, rel=1e-9)
    for middle in np.linspace(-at, at, 15):
        y = float(x(middle))
        low = -bisect(lambda p, y=y: y - x(-p) < rho(-p), -middle, at)
        high = bisect(lambda p, y=y: x(p) - y < rho(p), middle, at)
        halves = ((low, middle), (middle, high))
        gain = sum(integral(lambda p, y=y: rho(p) ** q - np.abs(x(p) - y) ** q, *half) for half in halves)
        cost = sum(integral(lambda p, y=y: np.abs(x(p) - y) ** q, *half) for half in ((-at, middle), (middle, at)))
        assert cost - bound >= math.expm1(eps) * gain - 1e-9


def bisect(holds, low, high):
    """The largest argument up to which `holds`."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def test_brackets_agree_with_what_is_known_exactly():
    for eps in (0.5, 1.0, 1.7):
        low, high = bulk.bulk_bracket(2, eps)
        assert low <= arb(eps).exp() / (1 + arb(eps).exp()) ** 2 <= high
    solution = optdp.solve_kernel(2, "abs", rtol=1e-2)
    low, high = bulk.bulk_bracket(1, 2)
    assert low < solution.value and solution.lower_bound < high
    assert bulk.bulk_bracket(1, 40).lower > 0


@pytest.mark.parametrize("eps", [2.5, 4.0, 9.0])
def test_the_unbiased_mechanism_has_mean_x_and_one_variance(eps):
    excess = math.expm1(eps)
    for half in (0.9 * (3 * 1.146 / excess) ** (1 / 3), (3 * 1.146 / excess) ** (1 / 3)):
        spread = excess * (math.tan(half) - half)
        r = 1 / (2 * math.cos(half) * math.sin(spread - half))
        floor, variances = 1 / (2 * excess * half + 2 * spread), []
        p, weights = gauss(-spread, spread, 80)
        for x in np.linspace(-0.5, 0.5, 5):
            at = math.asin(2 * x * math.sin(spread - half))
            near, share = gauss(at - half, at + half, 80)
            assert abs(at) + half <= spread + 1e-12

            powers = [(r * np.sin(p)) ** k @ weights + excess * ((r * np.sin(near)) ** k @ share) for k in range(3)]
            mass, mean, square = (floor * k for k in powers)
            assert (mass, mean) == pytest.approx((1, x), abs=1e-12)
            variances.append(square - x**2)
        stated = float(bulk.equaliser_variance(arb(excess), arb(half)))
        assert variances == pytest.approx([stated] * 5, rel=1e-11)
        assert float(bulk.unbiased_upper(eps)) <= stated * (1 + 1e-12)


def test_no_unbiased_bound_is_below_a_proven_optimum():
    for eps in (0.5, 1.3):
        problem = optdp.solve_kernel(eps, "squared", domain=(-1, 1), unbiased=True, rtol=5e-2)
        assert 4 * bulk.unbiased_upper(eps) >= problem.lower_bound


def test_the_discoveries_are_decided_by_their_checks(monkeypatch):
    report = optdp.discoveries(["D-OGPM-6", "D-OPTT-10"])
    assert report.settled and all(row.finding.verdict is Verdict.VERIFIED for row in report.rows)
    said = {row.id: row.statement for row in report.rows}
    assert f"{C[1]:.6f}" in said["D-OGPM-6"] and f"{4 * C[2]:.6f}" in said["D-OPTT-10"]
    for name, change in {
        "bulk_value": lambda f: lambda q, p: f(q, p) * (1 - arb(1) / 50),
        "bulk_parameter": lambda f: lambda q: f(q) + arb(1) / 1000,
        "abs_curvature": lambda f: lambda p, d: 3 * f(p, d),
    }.items():
        with monkeypatch.context() as patch:
            patch.setattr(bulk, name, change(getattr(bulk, name)))
            assert not all(
                holds()
                for holds in (
                    lambda: checks.abs_rate()[0],
                    lambda: checks.squared_rate_below()[0],
                    checks.squared_rate_above,
                    checks.unbiased_rate,
                )
            )

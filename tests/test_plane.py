"""Rectangles under local privacy: brackets that hold for all inputs and outputs, and the mechanism's own numbers."""

import math
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

import optdp
from optdp.certificates.base import Refusal
from optdp.certificates.plane import PlaneCertificate, Prices
from optdp.exact import work
from optdp.exact.rounding import TOTAL
from optdp.mechanisms import baselines
from optdp.mechanisms.baselines.clamped import ClampedLaplace
from optdp.mechanisms.baselines.plane import SidesMechanism
from optdp.mechanisms.plane import PlaneMechanism
from optdp.report.places import each_side
from optdp.solvers import plane as smooth
from optdp.solvers.floors import solve_floors

SQUARE, WIDE = optdp.Box((0, 0), (1, 1)), optdp.Box((-1, 2), (3, 5))


@pytest.fixture(scope="module")
def found():
    return optdp.solve_kernel(3.0, domain=WIDE, rtol=0.03)


def test_the_bracket_is_proven(found):
    assert found.verify(), str(found.verify())
    assert found.gap <= 0.03 and "R^2" in found.problem.statement()
    assert not replace(found, lower_bound=found.value * (1 - 1e-3)).verify()
    assert not replace(found, problem=replace(found.problem, privacy=optdp.LDP(2.99))).verify()
    assert found.program.model is not None


@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_brackets_of_grids_and_units_overlap(loss):
    """The optimum lies in each of them; places and units do not matter, nor which side is the longer one."""
    boxes = (WIDE, optdp.Box((0, 0), (4, 3)), optdp.Box((0, 0), (30, 40)))
    units = (1, 1, 10)
    cases = [
        optdp.solve_kernel(2.0, loss, domain=box, rtol=rtol) for box, rtol in zip(boxes, (0.1, 0.01, 0.03), strict=True)
    ]
    power = 1 if loss == "abs" else 2
    lows = [s.lower_bound / k**power for s, k in zip(cases, units, strict=True)]
    highs = [s.value / k**power for s, k in zip(cases, units, strict=True)]
    assert max(lows) <= min(highs)


@pytest.mark.parametrize("eps", [0.5, 1.0])
def test_squared_loss_for_small_eps_tells_one_coordinate(eps):
    """One coordinate by the best mechanism for numbers, E/(1 + E)^2, and the middle for the other one, 1/4."""
    best = optdp.solve_kernel(eps, "squared", domain=SQUARE, rtol=1e-3)
    odds = np.exp(eps)
    assert best.lower_bound <= odds / (1 + odds) ** 2 + 0.25 <= best.value * (1 + 1e-9)
    assert best.gap <= 1e-3


def test_few_inputs_prove_nearly_what_they_promise():
    """The convex part of their price bends most: with as many cells as for thousands of inputs the gap was 1.1e-4."""
    assert optdp.solve_kernel(0.5, "squared", domain=SQUARE, rtol=5e-5).gap <= 5e-5


def test_a_thin_rectangle_is_an_interval():
    thin = optdp.solve_kernel(2.0, domain=optdp.Box((0, 0), (1, 1e-6)), rtol=0.02)
    line = optdp.solve_kernel(2.0, rtol=1e-3)
    assert thin.lower_bound <= line.value * (1 + 1e-5) and line.lower_bound <= thin.value


def test_nothing_that_is_published_lies_below_the_bound(found):
    for eps, loss in ((1.0, "abs"), (3.0, "squared")):
        best = optdp.solve_kernel(eps, loss, domain=SQUARE, rtol=0.04)
        noise = baselines.get("clamped planar Laplace").build(best.problem)
        sides = each_side(best.problem, 0.01)
        for other in (noise, sides):
            assert other.worst_case_loss(loss) > best.value
            assert other.satisfies(optdp.LDP(eps).in_real_arithmetic())
        if loss == "squared":  # the sum of the two
            assert sides.worst_case_loss(loss) == pytest.approx(2 * sides.first.worst_case_loss(loss), rel=1e-3)


def test_noise_and_sides_draw_what_they_say():
    noise = baselines.get("clamped planar Laplace").build(optdp.Problem(optdp.LDP(2.0), WIDE, "abs"))
    sides = each_side(optdp.Problem(optdp.LDP(2.0), WIDE, "abs"), 0.05)
    x = np.array([0.3, 2.5])
    for mechanism in (noise, sides):
        drawn = mechanism.randomize(np.tile(x, (40_000, 1)), 3)
        far = np.linalg.norm(drawn - x, axis=1)
        assert abs(far.mean() - mechanism.expected_loss(x, "abs")) < 5 * far.std() / 200 + 5e-3
        assert np.abs(drawn.mean(axis=0) - mechanism.mean(x)).max() < 0.05
        assert ((drawn >= WIDE.lower) & (drawn <= WIDE.upper)).all()


def test_probabilities_lie_between_floors_and_tops_and_sum_to_one(found):
    mechanism = found.mechanism
    x = np.random.default_rng(1).uniform(WIDE.lower, WIDE.upper, (500, 2))
    rows = mechanism.rows(x) * TOTAL
    assert (rows >= np.array(mechanism.floors) * (1 - 1e-12)).all() and (
        rows <= np.array(mechanism.tops) * (1 + 1e-12)
    ).all()
    assert np.allclose(rows.sum(axis=1), TOTAL)
    assert np.allclose(mechanism.probability(mechanism.atoms()[:, None], x[:3]), mechanism.rows(x[:3]).T)
    assert mechanism.probability([0.123456, 3.0], x[0]) == 0
    assert mechanism.guarantee().eps.argument == max(
        Fraction(b, a) for a, b in zip(mechanism.floors, mechanism.tops, strict=True)
    )


def test_no_input_loses_more_than_the_value(found):
    x = np.concatenate([np.random.default_rng(2).uniform(WIDE.lower, WIDE.upper, (4000, 2)), found.mechanism._grid(32)])
    losses = found.mechanism.expected_loss(x, "abs")
    low, high = found.mechanism.enclose(found.problem.objective)
    assert losses.max() <= high and high == found.value
    assert low <= found.mechanism.worst_case_loss("abs") * (1 + 1e-3)
    assert low >= high * (1 - 1e-3)


@pytest.mark.parametrize("loss", ["abs", "squared"])
def test_values_are_attained_where_there_are_few_floats(loss):
    """Beside the exact rows of all floats of the rectangle: between two of them nobody loses more."""
    across, up = [2.0**53, 2.0**53 + 2], [-(2.0**53) - 4, -(2.0**53) - 2, -(2.0**53)]
    inputs, domain = list(product(across, up)), optdp.Box((across[0], up[0]), (across[-1], up[-1]))
    outputs = (inputs[0], inputs[1], inputs[5])
    made = PlaneMechanism(domain, outputs, (TOTAL // 9, 1, TOTAL // 50), (TOTAL // 2, TOTAL // 3, TOTAL // 3))
    order, more = made._favoured(made._distances(made._inputs(np.array(inputs))))
    values = []
    for (x, z), near, extra in zip(inputs, order.tolist(), more.tolist(), strict=True):
        squares = [
            (Fraction(outputs[j][0]) - Fraction(x)) ** 2 + (Fraction(outputs[j][1]) - Fraction(z)) ** 2 for j in near
        ]
        far = squares if loss == "squared" else [Fraction(math.isqrt(int(d) << 200), 1 << 100) for d in squares]
        values.append(sum((made.floors[j] + e) * d for j, e, d in zip(near, extra, far, strict=True)) / TOTAL)
    low, high = made.enclose(optdp.WorstCase(loss))
    assert max(values) * (1 - Fraction(1, 2**40)) <= low <= max(values) <= high


@pytest.mark.parametrize(
    ("y", "x", "kind", "told"),
    [
        ([0.0, 3.0], ["31.5", "secret"], TypeError, "x is of type"),
        ([0.0, 3.0], [9.5, 3.0], ValueError, "x is not allowed: x must lie in"),
        (["a", "b"], [0.0, 3.0], TypeError, "y is not allowed: y must be real numbers"),
        ([0.5], [0.0, 3.0], ValueError, "y of shape (1,) is not allowed"),
        (0.5, [0.0, 3.0], ValueError, "y of shape () is not allowed"),
        ([[0.0, 3.0]] * 3, [[0.0, 3.0]] * 2, ValueError, "y of shape (3, 2) is not allowed"),
    ],
)
def test_questions_that_are_refused_name_the_argument_and_no_input(found, y, x, kind, told):
    """Texts were quoted, and one number counted as two equal coordinates."""
    with pytest.raises(kind) as refused:
        found.mechanism.probability(y, x)
    assert str(refused.value).startswith(told) and "secret" not in str(refused.value)


def test_samples_follow_the_probabilities(found):
    mechanism, x = found.mechanism, np.array([0.4, 2.2])
    drawn = mechanism.randomize(np.tile(x, (30_000, 1)), 7)
    place = {tuple(p): j for j, p in enumerate(mechanism.atoms().tolist())}
    counts = np.bincount([place[tuple(p)] for p in drawn.tolist()], minlength=len(place))
    expected = mechanism.rows(x) * 30_000
    big = expected > 10
    assert (counts[expected == 0] == 0).all()
    assert chisquare(counts[big], expected[big] * counts[big].sum() / expected[big].sum()).pvalue > 1e-4
    assert np.abs(drawn.mean(axis=0) - mechanism.mean(x)).max() < 0.05
    assert np.square(drawn - mechanism.mean(x)).sum(axis=1).mean() == pytest.approx(
        float(mechanism.variance(x)), rel=0.05
    )


points = st.tuples(st.floats(0, 0.5), st.floats(0, 0.5))


@pytest.mark.parametrize(("ratio", "few"), [(50, 12), (50, 60), (3, 30)])
def test_what_is_sent_is_the_same_sought_among_few_outputs(ratio, few):
    rng = np.random.default_rng(1)
    across, up = (part.ravel() for part in np.meshgrid(np.arange(16) / 16, np.arange(16) / 16))
    outputs = np.stack([across, up], axis=1)
    floors = rng.random(256) + 0.1
    mechanism = PlaneMechanism.of_floors(SQUARE, outputs, floors / floors.sum() / 10, Fraction(ratio))
    assert 0.6 < mechanism._rest / TOTAL < 0.95  # also more than `few` outputs take
    ties = np.concatenate([outputs, outputs + 1 / 32, rng.random((2000, 2))])
    asked = rng.integers(0, mechanism._rest, len(ties))
    everywhere = mechanism._among_all(ties, asked)
    assert (mechanism._among_few(ties, asked, few) == everywhere).all()
    order, more = mechanism._favoured(mechanism._distances(ties))
    for k, asked_end in (
        (3, more[:, :3].sum(axis=1)),
        (2, more[:, :3].sum(axis=1) - 1),
    ):  # three have all integers below
        assert (mechanism._among_few(ties, asked_end, few) == order[:, k]).all()
        assert (mechanism._among_all(ties, asked_end) == order[:, k]).all()
    distances = np.hypot(*(ties[:, None] - outputs).transpose(2, 0, 1))
    rows, order = mechanism.rows(ties) * TOTAL - mechanism.floors, np.argsort(distances, axis=1, kind="stable")
    sums = np.cumsum(np.take_along_axis(rows, order, axis=1), axis=1)
    direct = np.take_along_axis(order, (sums <= asked[:, None]).sum(axis=1).clip(0, 255)[:, None], axis=1)[:, 0]
    assert np.mean(direct == everywhere) > 0.99  # these sums are rounded


@settings(max_examples=settings.default.max_examples * 3 // 8, deadline=None)
@given(
    st.lists(st.tuples(points, st.floats(0.01, 1), st.floats(0, 1)), min_size=1, max_size=5), st.sampled_from(["abs", "squared"]),
    st.floats(0.1, 5), st.floats(0.05, 1),
)  # fmt: skip
def test_no_output_has_a_price_below_the_proven_one(rows, loss, eps, side):
    """Whatever the multipliers: g at random outputs of the whole rectangle, and beyond, from its definition."""
    certificate = PlaneCertificate(*zip(*rows, strict=True))
    problem = optdp.Problem(optdp.LDP(eps), optdp.Box((0, 0), (2, 2 * side)), loss)
    dual = Prices.of(certificate, problem)
    proven = -dual.shortfall(1e-3) * sum(certificate.weights) / dual.weights.sum()
    y = np.random.default_rng(0).uniform(-0.1, 1.1, (400, 2)) * (1, side)
    y = np.concatenate([y, dual.inputs])
    total = np.zeros(len(y))
    for share, weight, threshold in rows:
        for flip in ((0, 0), (0, 1), (1, 0), (1, 1)):
            x = [abs(f - s) * w for f, s, w in zip(flip, share, (1, side), strict=True)]
            r = np.hypot(*(y - x).T) ** (1 if loss == "abs" else 2) - threshold
            total += weight / 4 * (r + np.expm1(eps) * np.minimum(r, 0))
    assert total.min() >= proven - 1e-9
    best = optdp.solve_kernel(eps, loss, domain=problem.domain, rtol=0.3).value if rows[0][1] > 0.99 else np.inf
    assert certificate.bound(problem).value <= best


@given(st.integers(0, 10**6), st.sampled_from([1, 2]))
def test_prices_on_a_cell_of_any_size(seed, power):
    """g on the whole of a large cell is not below what is said of it: where a kink crosses the cell, and beside it."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 4))
    inputs, centre, half = rng.random((n, 2)), rng.random(2), rng.uniform(0.01, 0.5, 2)
    far = np.hypot(*(centre - inputs).T) ** power
    prices = Prices(
        inputs, rng.random(n), np.abs(far + rng.normal(0, 0.3, n)), float(rng.uniform(0, 30)), power, np.ones(2)
    )
    planes, _, near = prices._plane(centre[None], half)
    ways = np.linspace(-1, 1, 41)
    for shrunk, moved in ((1.0, 0.0), (0.25, 0.75)):  # the whole cell, and a part of it in its corner
        middle, some, plane = centre + moved * half, half * shrunk, planes.copy()
        plane[:, 0] += plane[0, 1:] @ (middle - centre)
        ((at, proven),) = prices._cells(middle[None], some, plane, near, np.array([near.size]))
        y = middle + np.stack(np.meshgrid(ways, ways), axis=-1).reshape(-1, 2) * some
        r = np.hypot(*(y[:, None] - inputs).transpose(2, 0, 1)) ** power - prices.thresholds
        g = (r + prices.more * np.minimum(r, 0)) @ prices.weights
        assert at <= g[len(g) // 2] + 1e-12 and g.min() >= proven - 1e-9
        assert moved or at == pytest.approx(g[len(g) // 2], abs=1e-12)


@given(st.integers(0, 10**6))
def test_roundings_of_prices_are_allowed_for(seed):
    """On a sliver distances from its ends are linear and cells lose nothing: what is left are roundings, of large thresholds."""
    rng, thin = np.random.default_rng(seed), 2.0**-60
    n = int(rng.integers(1, 8))
    points, eps = [(0.0, 0.0)] * n, float(rng.uniform(0.1, 3))
    certificate = PlaneCertificate(tuple(points), tuple(rng.random(n)), tuple(rng.uniform(1e5, 1e6, n)))
    problem = optdp.Problem(optdp.LDP(eps), optdp.Box((0, 0), (1, thin)), "abs")
    dual, exactly = Prices.of(certificate, problem), Fraction(0)
    for (x, _), weight, threshold in zip(
        dual.inputs.tolist(), dual.weights.tolist(), dual.thresholds.tolist(), strict=True
    ):
        exactly += Fraction(weight) * (1 + Fraction(dual.more)) * (Fraction(x) + Fraction(thin) - Fraction(threshold))
    assert -Fraction(dual.shortfall(1e-3)) <= exactly  # not below the price of the output in the corner


@settings(max_examples=settings.default.max_examples // 2)
@given(st.integers(0, 10**6), st.sampled_from([1, 2]))
def test_near_inputs_are_all_that_count_below_the_convex_part(seed, power):
    """Many small windows: g from its definition at random outputs and at inputs is not below what is proven, which is near."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(20, 60))
    inputs, more = rng.random((n, 2)) * (1.0, 0.6), float(np.expm1(rng.uniform(4, 10)))
    prices = Prices(inputs, rng.random(n) / n, rng.uniform(0.0, 0.1, n) ** power, more, power, np.array([1.0, 0.6]))
    low, where = prices.least(1e-3)
    y = np.concatenate([rng.random((2000, 2)) * (0.5, 0.3), where[None], inputs[(inputs < (0.5, 0.3)).all(axis=1)]])
    r = np.hypot(*(y[:, None] - inputs).transpose(2, 0, 1)) ** power - prices.thresholds
    g = (r + more * np.minimum(r, 0)) @ prices.weights
    assert g.min() >= low - 1e-9 and min(g.min(), 0.0) <= low + 0.05 * (1 + abs(low))


@settings(max_examples=settings.default.max_examples // 5, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["abs", "squared"]), st.booleans())
def test_no_input_loses_more_than_is_proven_of_many_outputs(seed, loss, even):
    """Where outputs that inputs favour are sought in a tree, and windows of uneven floors take more of them than on average."""
    rng, box = np.random.default_rng(seed), optdp.Box((0, 0), (1, 0.5))
    outputs = np.unique(rng.random((400, 2)) * (1, 0.5), axis=0)
    floors = np.ones(len(outputs)) if even else rng.random(len(outputs)) ** 4 + 1e-3
    made = PlaneMechanism.of_floors(box, outputs, floors / floors.sum(), Fraction(300))
    assert made._few < len(outputs) // 4
    low, high = made.enclose(optdp.WorstCase(loss))
    x = np.concatenate([rng.random((2000, 2)) * (1, 0.5), made._grid(16), outputs])
    losses = made.expected_loss(x, loss)
    assert losses.max() <= high and low <= high <= 1.01 * losses.max()


def test_functions_of_an_axis_are_masses_that_are_alike_at_both_ends():
    for cells, count, half in ((1, 1, False), (6, 24, False), (12, 7, False), (5, 20, True)):
        found = smooth.axis(0.8, cells, count, 1.6, half=half)
        assert np.allclose(found.table.sum(axis=1), 1.0) and found.table.min() >= 0 and len(found.table) == cells + 2
        assert (np.diff(found.at) > 0).all() and found.at[0] == 0 and found.at[-1] <= 0.8
        if not half:
            assert np.allclose(found.table, found.table[:, ::-1]) and np.allclose(found.at, 0.8 - found.at[::-1])
        nodes = 0.4 * (np.arange(cells + 1) / cells) ** 1.6
        steps = np.append(np.diff(nodes), 0) + np.append(0, np.diff(nodes))
        inner = found.at[(found.at > 0) & (found.at < 0.4)]  # hats with these masses sum to an even density
        even = (steps / 2 @ found.table[:-1])[1 : 1 + inner.size] * (1 if half else 2)
        width = np.diff(nodes)[np.searchsorted(nodes, inner) - 1]
        parts = np.array([np.sum((inner > a) & (inner < b)) for a, b in pairwise(nodes)])
        assert np.allclose(even, width / parts[np.searchsorted(nodes, inner) - 1])


@pytest.mark.parametrize(("box", "loss"), [pytest.param(SQUARE, "squared", marks=pytest.mark.soak), (WIDE, "abs")])
def test_large_eps_are_solved_by_smooth_floors_and_priors(box, loss):
    """Windows of a few hundredths of the side; the program that is kept has the value of the floor, and its file too."""
    best = optdp.solve_kernel(7.0, loss, domain=box, rtol=0.09)
    assert best.gap <= 0.09 and best.verify(), str(best.verify())
    solved = best.program.model.solve()
    assert solved.objective == pytest.approx(best.program.objective, rel=0.02)
    x = np.random.default_rng(3).uniform(box.lower, box.upper, (500, 2))
    losses = best.mechanism.expected_loss(x, loss)
    assert best.lower_bound <= losses.max() <= best.value
    assert len(best.mechanism.outputs) > 1000


def test_squares_have_one_function_for_two_images():
    points, table = smooth.lattice(np.ones(2), 4, 8, 1.6)
    _, apart = smooth.lattice(np.array([1.0, 0.999]), 4, 8, 1.6)
    assert table.shape[1] == 6 * 7 // 2 and apart.shape[1] == 36 and np.allclose(table.sum(axis=0), 1.0)
    swapped = {tuple(p): row for p, row in zip(points.tolist(), table, strict=True)}
    assert all(np.array_equal(row, swapped[y, x]) for (x, y), row in swapped.items())
    inputs = smooth.inputs_of(np.ones(2), 6)
    assert len(inputs) == 28 and (inputs[:, 0] <= inputs[:, 1]).all() and inputs.max() == 0.5


def test_images_are_solved_as_one_block():
    """The program with symmetry has the value of the one without."""
    from optdp.certificates.plane import images
    from optdp.design.plane import quarter

    shares = quarter([4, 4])
    outputs = images(shares)
    fold = np.tile(np.eye(len(outputs) // 4) / 4, (4, 1))
    folded = solve_floors(np.linalg.norm(shares[:, None] - outputs, axis=2), 2.0, basis=fold)
    every = np.unique(outputs, axis=0)
    whole = solve_floors(np.linalg.norm(every[:, None] - every, axis=2), 2.0)
    assert folded.value == pytest.approx(whole.value, rel=1e-7) and folded.bound == pytest.approx(whole.bound, rel=1e-7)


def test_what_is_not_solved_is_named():
    for options, words in (
        ({"loss": optdp.Power(1.5)}, "objective = worst-case power"), ({"prior": "uniform"}, "objective = average abs"),
        ({"domain": optdp.Box.cube(3)}, "two sides"),
        ({"unbiased": True}, "unbiased"), ({"outputs": (0, 1)}, "outputs"), ({"backend": "dense"}, "method"),
        ({"metric": "abs"}, "metric"),
        ({"domain": optdp.Box((0, 0), (1e200, 1))}, "units"), ({"eps": 10.5}, "eps"),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=words):
            optdp.solve_kernel(**{"eps": 1.0, "domain": SQUARE, **options})


def test_mechanisms_are_checked():
    whole, half = TOTAL, TOTAL // 2
    corners = ((0.0, 0.0), (1.0, 1.0))
    made = PlaneMechanism(SQUARE, corners, (half // 2, half // 2), (half + half // 2, half + half // 2))
    assert made.guarantee().eps.argument == 3 and made.check_privacy(optdp.LDP(optdp.log(3)))[0].passed
    assert not made.check_privacy(optdp.LDP(1.09))[0].passed
    for floors, tops in (
        ((0, 1), (whole, whole)),
        ((2, 2), (1, 2)),
        ((1, 1), (2, 2)),
        ((whole, whole), (whole, whole)),
        ((1,), (whole,)),
    ):
        with pytest.raises(ValueError, match="not allowed"):
            PlaneMechanism(SQUARE, corners, floors, tops)
    with pytest.raises(ValueError, match="not allowed"):
        PlaneMechanism(SQUARE, ((0.0, 0.0), (2.0, 0.0)), (1, 1), (whole, whole))
    with pytest.raises(TypeError, match="two sides"):
        PlaneMechanism(optdp.Box.cube(3), corners, (1, 1), (whole, whole))
    with pytest.raises(ValueError, match="x"):
        made.randomize([2.0, 0.0])
    # Tops may be as large as 2^62 each: sums go beyond 64 bits.
    wide = PlaneMechanism(SQUARE, (*corners, (0.0, 1.0)), (1, 1, 1), (whole, whole, whole))
    assert wide.rows([[0.1, 0.1], [0.9, 0.9]]).argmax(axis=1).tolist() == [0, 1]


def test_the_certificate_refuses_other_problems(found):
    for problem in (
        optdp.Problem(optdp.LDP(3.0), (0, 1), "abs"),
        replace(found.problem, privacy=optdp.ApproxDP(3.0, 1e-3)),
        replace(found.problem, objective=optdp.WorstCase(optdp.Power(1.5))),
        replace(found.problem, objective=optdp.Average("abs", "uniform")),
        replace(found.problem, privacy=optdp.LDP(20.0)),
        replace(found.problem, domain=optdp.Box.cube(3)),
    ):
        with pytest.raises(Refusal):
            found.certificate.bound(problem)
    count = len(found.certificate.weights)
    for wrong in (
        {"weights": (0.0,) * count}, {"weights": (1.0,)}, {"weights": (-0.1, *found.certificate.weights[1:])},
        {"thresholds": (-0.1, *found.certificate.thresholds[1:])}, {"points": ((0.7, 0.2), *found.certificate.points[1:])},
    ):  # fmt: skip
        with pytest.raises(ValueError):
            replace(found.certificate, **wrong).bound(found.problem)
    # Fewer mechanisms: the bound holds.
    assert found.certificate.bound(replace(found.problem, constraints=(optdp.Unbiased(),))).value > 0


def test_files_and_drawings(found, tmp_path):
    found.save(tmp_path / "plane.json")
    again = optdp.Solution.load(tmp_path / "plane.json")
    assert again == found and again.verify()
    assert len(found.plot(inputs=[[0.0, 3.0]]).collections) == 2


@pytest.mark.parametrize("end", [(30, 12), (12, 30)])
def test_a_drawing_has_the_shape_of_its_rectangle(end):
    """Of one that is 30 x 12 half of the height was empty."""
    found = optdp.solve(optdp.Problem(optdp.LDP(1.0), optdp.Box((0, 0), end), "abs"), rtol=0.5)
    ax = found.plot()
    ax.figure.canvas.draw()
    shown = np.ptp([ax.get_xlim(), ax.get_ylim()], axis=1)
    assert end[0] * end[1] > 0.7 * shown.prod()


def test_baselines_stand_beside_the_optimum_for_both_losses():
    for loss in ("abs", "squared"):
        problem = optdp.Problem(optdp.LDP(1.0), optdp.Box((0, 0), (1, 1)), loss)
        assert "clamped planar Laplace" in str(optdp.compare(problem))


@pytest.mark.parametrize(("eps", "both"), [(optdp.log(3), optdp.log(9)), (1.0, Fraction(2))])
def test_sides_in_floats_promise_nothing_of_what_is_sent(eps, both):
    """Two Laplace noises of log(3) were log(9)-LDP as they are sent, by floats whose last bits tell inputs apart."""
    sides = SidesMechanism(optdp.Box((0, 0), (1, 1)), ClampedLaplace(eps), ClampedLaplace(eps))
    assert sides.guarantee() == optdp.LDP(both, ideal=True)
    assert sides.satisfies(optdp.LDP(3.0)) is None and sides.satisfies(optdp.LDP(3.0, ideal=True))


def test_tops_beyond_what_the_floors_leave_are_not_reached():
    """A quarter is left: outputs with the floors 1/2 and 1/4 have at most 3/4 and 1/2, wherever their tops are."""
    mechanism = PlaneMechanism(optdp.Box((0, 0), (1, 1)), ((0, 0), (1, 1)), (2**61, 2**60), (2**62, 2**62))
    ratios = [
        float(mechanism.probability(y, y)) / m * 2.0**62
        for y, m in zip(mechanism.outputs, mechanism.floors, strict=True)
    ]
    assert ratios == [1.5, 2.0] and mechanism.guarantee() == optdp.LDP(optdp.log(2))
    assert mechanism.satisfies(optdp.LDP(optdp.log(2))) and mechanism.satisfies(optdp.LDP(0.69)) is False


def test_floors_that_no_input_leaves_prove_nothing():
    """An output alone, or one in the middle of two whose tops are low, has more than its floor for every input."""
    square = optdp.Box((0, 0), (1, 1))
    alone = PlaneMechanism(square, ((0.5, 0.5),), (2**61,), (2**62,))
    middle = PlaneMechanism(square, ((0, 0), (0.5, 0.5), (1, 1)), (2**60,) * 3, (2**60 + 1, 2**62, 2**60 + 1))
    for mechanism in (alone, middle):
        assert mechanism.guarantee() == optdp.LDP(optdp.log(2)) and mechanism.satisfies(optdp.LDP(0.5)) is None
        assert np.ptp(mechanism.rows([(0, 0), (0.5, 0.5), (1, 1), (0, 1)]), axis=0).max() < 1e-9


def test_a_side_that_underflows_loses_nothing():
    """In units of the longer side the other one is 0: the rectangle is an interval."""
    line = optdp.Box((0, 0), (1e200, 1e-200))
    made = PlaneMechanism(line, ((0.0, 0.0), (1e200, 1e-200)), (TOTAL // 4,) * 2, (TOTAL,) * 2)
    low, high = made.enclose(optdp.WorstCase("abs"))
    assert 0.5e200 * (1 - 1e-3) <= low <= 0.5e200 <= high <= 0.5e200 * (1 + 1e-3)


def test_outputs_without_room_make_no_proof_long():
    """Where few inputs have many near outputs with nothing to give, as many outputs were looked at for all other inputs too."""
    at = (np.arange(20) + 0.5) / 20
    turn = np.linspace(0, 2 * np.pi, 150, endpoint=False)
    outputs = [*product(at.tolist(), at.tolist()), *(0.5 + 1e-6 * np.stack([np.cos(turn), np.sin(turn)], 1)).tolist()]
    tops = (TOTAL,) * 400 + (1,) * 150
    made = PlaneMechanism(SQUARE, tuple(map(tuple, outputs)), (1,) * 550, tops)
    looked = []
    seek = made._nearest
    object.__setattr__(made, "_nearest", lambda x, *few: looked.append(found := seek(x, *few)) or found)
    with work.limited(10.0) as meter:
        low, high = made.enclose(optdp.WorstCase("abs"))
    pairs = sum(near.size for near, _ in looked)
    assert low <= 2**0.5 / 40 <= high <= low * (1 + 2.0**-12) and 0.15 * pairs + 0.02 * 550 * 129**2 <= meter.done


@pytest.mark.parametrize(("side", "most"), [(1e-6, 200), (0.01, 4000)])
def test_cells_of_slivers_are_halved_the_long_way_alone(side, most):
    """Both ways they took 26225 and 8798 units of work. The worst inputs are the two corners that are no outputs."""
    made = PlaneMechanism(optdp.Box((0, 0), (1, side)), ((0.0, 0.0), (1.0, side)), (TOTAL // 4,) * 2, (TOTAL,) * 2)
    with work.limited(most) as meter:
        low, high = made.enclose(optdp.WorstCase("squared"))
    assert meter.done < most and low <= 0.25 + 0.75 * side**2 <= high <= low + 1e-12


def test_smooth_floors_are_sent_where_floats_are_coarse():
    """Outputs of the finer mesh had no floats between them: they are one."""
    found = optdp.solve_kernel(5.5, domain=optdp.Box((2.0**53, 0), (2.0**53 + 8, 1)), time_limit=1)
    assert found.verify() and len(set(found.mechanism.outputs)) == len(found.mechanism.outputs)


def test_prices_on_a_cell_where_slopes_cancel():
    """A chord that is too steep makes the bound level, by the pull of an input on the other side: g falls towards a corner."""
    prices = Prices(np.array([[0.0, 0.5], [1.0, 0.5]]), np.array([1.0, 4.0]), np.array([0.5, 0.0]), 3.0, 1, np.ones(2))
    centre, half = np.array([0.5, 0.5]), np.array([0.1, 0.1])
    planes, _, near = prices._plane(centre[None], half)
    ((_, proven),) = prices._cells(centre[None], half, planes, near, np.array([near.size]))
    assert near.tolist() == [0]
    corner = 0.1 + 4 * 0.4  # of the output (0.6, 0.5)
    assert corner - 0.2 <= proven <= corner


@pytest.mark.parametrize("share", list(product((0.2501, 0.2545, 0.2575), repeat=2)))
def test_no_dip_lies_between_the_cells(share):
    """A dip that is smaller than the cells of the first round, in each part of them: g at its bottom, from its definition."""
    certificate = PlaneCertificate((share,), (1.0,), (1e-3,))
    dual = Prices.of(certificate, optdp.Problem(optdp.LDP(12.0), SQUARE, "abs"))
    assert dual.more + 1 >= math.exp(12.0) * (1 - 1e-12)
    far = np.hypot(*(dual.inputs - share).T) - 1e-3
    bottom = float((far + math.expm1(12.0) * np.minimum(far, 0)) @ dual.weights)
    assert bottom < -15 and bottom - 1 <= -dual.shortfall(1e-2) <= bottom


def test_what_near_outputs_do_not_take_goes_to_farther_ones():
    """A hundred outputs in one corner have no room: all that the floors leave is sent to the opposite one."""
    near = [(i / 1e5, j / 1e5) for i, j in product(range(10), repeat=2)]
    outputs = (*near, *((1 - x, 1 - y) for x, y in near))
    made = PlaneMechanism(SQUARE, outputs, (1,) * 200, (1,) * 100 + (TOTAL,) * 100)
    for loss, least in (("abs", 1.413), ("squared", 1.999)):
        low, high = made.enclose(optdp.WorstCase(loss))
        assert least <= low <= made.expected_loss((0.0, 0.0), loss) + 1e-9 <= high + 2e-9 <= least + 0.0015


def test_nothing_is_attained_between_floats():
    """The corners are the only floats of this square, and each of them is sent where it is an input."""
    corners = tuple(product((2.0**53, 2.0**53 + 2), repeat=2))
    made = PlaneMechanism(optdp.Box(corners[0], corners[3]), corners, (1,) * 4, (TOTAL,) * 4)
    low, high = made.enclose(optdp.WorstCase("abs"))
    assert low < 1e-9 and high >= 2**0.5


@pytest.mark.parametrize(("loss", "power"), [("abs", 1), ("squared", 2)])
def test_bounds_have_the_units_of_the_loss(loss, power):
    certificate = PlaneCertificate(((0.0, 0.0),), (1.0,), (0.25,))
    whole, small = (
        certificate.bound(optdp.Problem(optdp.LDP(0.5), optdp.Box((0, 0), (k, k)), loss)).value for k in (1, 0.25)
    )
    assert whole > 0 and small == pytest.approx(whole / 4**power, rel=1e-9)


def test_oblong_rectangles_have_as_many_points_as_squares():
    found = optdp.solve_kernel(3.0, "abs", domain=optdp.Box([0, 0], [1, 0.05]), rtol=4e-3)
    assert found.status is optdp.Status.OPTIMAL and found.gap <= 4e-3


def test_the_proof_for_a_sliver_is_not_in_cells_across_it():
    found = optdp.solve_kernel(10.0, "abs", domain=optdp.Box([0, 0], [1, 1e-8]), rtol=0.96)
    with work.limited(0.01):  # seconds: more than one where cells were halved both ways
        assert found.certificate.bound(found.problem).value == found.lower_bound
    line = optdp.solve_kernel(10.0, "abs")  # outputs moved to the line are no further from its inputs
    assert found.lower_bound <= line.value and line.lower_bound <= found.value


@pytest.mark.parametrize("ratio", [3, 10**12])
@pytest.mark.parametrize("corner", [(0.0, 0.0), (1e15, 1e15), (2.0**52, 0.0)])
def test_mean_and_variance_are_those_of_the_integers(corner, ratio):
    """Far from 0 sums of rows times places were off by more than a float; squares were subtracted from squares."""
    box = optdp.Box(corner, (corner[0] + 8, corner[1] + 4))
    places = [(corner[0] + a, corner[1] + b) for a, b in ((0, 0), (8, 0), (4, 2), (0, 4), (8, 4))]
    mechanism = PlaneMechanism.of_floors(box, places, np.array([2.0, 1, 3, 1, 1]) / 8 / ratio, Fraction(ratio))
    for x in ((0.0, 0.0), (4.0, 2.0), (6.0, 3.0)):
        x = (corner[0] + x[0], corner[1] + x[1])
        far = [sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(x, y, strict=True)) for y in places]
        law, left = [Fraction(f, TOTAL) for f in mechanism.floors], Fraction(mechanism._rest, TOTAL)
        for j in sorted(range(5), key=lambda j: (far[j], j)):
            more = min(left, Fraction(mechanism.tops[j] - mechanism.floors[j], TOTAL))
            law[j], left = law[j] + more, left - more
        mean = [sum(p * Fraction(y[k]) for p, y in zip(law, places, strict=True)) for k in (0, 1)]
        variance = sum(
            p * sum((Fraction(y[k]) - mean[k]) ** 2 for k in (0, 1)) for p, y in zip(law, places, strict=True)
        )
        for found, true in zip(mechanism.mean(x).tolist(), mean, strict=True):
            assert abs(Fraction(found) - true) <= Fraction(math.ulp(found)) / 2 + Fraction(1, 10**12)
        assert float(mechanism.variance(x)) == pytest.approx(float(variance), rel=1e-10, abs=0)

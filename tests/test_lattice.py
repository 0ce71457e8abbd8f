"""What is sent: numbers of a lattice, with the value, the mean and the guarantee that are stated, for those very numbers."""

import math
from fractions import Fraction
from functools import cache

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

import optdp
from optdp.exact import lattice as module
from optdp.exact.lattice import LARGEST, Lattice, dither
from optdp.mechanisms.additive import AdditiveMechanism
from optdp.mechanisms.composite import CompositeMechanism
from optdp.mechanisms.piecewise import CELLS, COINS, PiecewiseMechanism
from optdp.problem.losses import as_loss
from optdp.problem.shapes import ACTIVATIONS, Quartic, Steps

FAR = [
    (0.0, 1.0),
    (1e15, 1e15 + 1),
    (1.7e18, 1.7e18 + 1e6),
    (-1e150, 1e150),
    (2.0**53, 2.0**53 + 2),
    (0.1, 0.7),
    (-3.0, 1e-9),
]


def ends():
    """Pairs of floats that make an interval, of all sizes and places."""
    size = st.floats(-300, 300).map(lambda e: 10.0**e)
    places = st.one_of(size, size.map(lambda v: -v), st.just(0.0), st.floats(-1e3, 1e3))
    return st.tuples(places, places).filter(lambda p: p[1] - p[0] >= 1e-300)


@given(ends())
def test_all_numbers_of_a_lattice_are_floats_in_the_domain(pair):
    lower, upper = pair
    lattice = Lattice.between(lower, upper)
    assert lattice.count >= 1 and max(abs(lattice.first), abs(lattice.last)) <= LARGEST
    k = np.array([lattice.first, lattice.last, (lattice.first + lattice.last) // 2])
    for value, place in zip(lattice.sent(k).tolist(), k.tolist(), strict=True):
        assert Fraction(value) == place * lattice.step and lower <= value <= upper
    first, last = (k * lattice.step for k in (lattice.first, lattice.last))
    assert {first - Fraction(lower), Fraction(upper) - last} <= {0, lattice.slack(lower, upper)}
    assert 0 <= lattice.slack(lower, upper) < lattice.step
    x = np.array([lower, upper, lower / 2 + upper / 2])
    for value, place in zip(x.tolist(), lattice.index(x).tolist(), strict=True):
        nearest = abs(Fraction(value) - place * lattice.step)
        assert nearest <= lattice.step / 2 or place in (lattice.first, lattice.last)


class Tosses:
    """A generator whose integers are given."""

    def __init__(self, *answers):
        self.answers = list(answers)

    def integers(self, low, high, size=None):
        answer = np.asarray(self.answers.pop(0), dtype=np.int64)
        return answer if size is None else np.broadcast_to(answer, size).copy()


@pytest.mark.parametrize("ends", [(-(2**53) - 2, 0), (0, 2**53 + 2), (-(2**60), 2**60), (-(2**53), 2**53), (-1, 1)])
def test_integers_are_sent_exactly(ends):
    """Those beyond 2^53 as integers, on either side of 0."""
    lattice = Lattice.between(*ends, whole=True)
    for k in (lattice.first, lattice.first + 1, lattice.last - 1, lattice.last):
        assert lattice.sent(np.array([k])).tolist() == [k]


@given(
    st.integers(0, 2**54),
    st.fractions(-(2**40), 2**40),
    st.fractions(0, 1, max_denominator=10**30),
    st.integers(0, 2**62 - 1),
)
@settings(max_examples=300)
def test_dither_takes_the_upper_integer_with_the_exact_probability(index, offset, factor, toss):
    """For every toss of 62 bits that does not tie, the answer is that of exact arithmetic; the mean is therefore exact."""
    exact = (offset + index * factor) / 4 if index * factor > 2**52 else offset + index * factor
    if index * factor > 2**52:
        offset, factor = offset / 4, factor / 4
    share = exact - math.floor(exact)
    for part in {toss, max(math.floor(share * 2**62) - 1, 0), min(math.floor(share * 2**62) + 1, 2**62 - 1)}:
        found = int(dither(np.array([index]), offset, factor, Tosses([part], 0))[0])
        cut = math.floor(share * 2**62)
        if part != cut:
            assert found == math.floor(exact) + (part < cut)
        else:
            assert found in (math.floor(exact), math.floor(exact) + 1)


def test_a_tie_is_tossed_on():
    share = Fraction(1, 3)
    cut = math.floor(share * 2**62)
    rest = share * 2**62 - cut
    assert module.tossed(cut, share, Tosses(math.floor(rest * 2**62) - 1)) is True
    assert module.tossed(cut, share, Tosses(math.floor(rest * 2**62) + 1)) is False
    assert module.tossed(2**61, Fraction(1, 2), Tosses()) is False  # never a toss more than is needed


def law(mechanism, x):
    """The exact probabilities of what a piecewise mechanism sends for the float x: {number: probability}."""
    lattice = Lattice.between(mechanism.domain.lower, mechanism.domain.upper)
    at = lattice.index(np.array([x]))
    first, n = int(mechanism._first(at, lattice)[0]), mechanism._numbers(lattice)
    mass = mechanism.exact_floor_mass
    found = dict.fromkeys(range(lattice.count), mass / lattice.count)
    for k in range(first, first + n):
        found[k % lattice.count] += (1 - mass) / n
    assert sum(found.values()) == 1
    return {(k + lattice.first) * lattice.step: p for k, p in found.items()}


COARSE = [
    (1e15, 1e15 + 1),
    (2.0**53, 2.0**53 + 2),
    (1e15 - 2, 1e15),
    (2.0**50 - 0.3, 2.0**50 + 7),
    (1.7e18, 1.7e18 + 1e5),
]


@cache
def laws(eps, ends, placement):
    """A mechanism, and what it sends for floats all over the domain and those next to them."""
    domain = optdp.Interval(*ends) if placement != "circle" else optdp.Circle(ends[1] - ends[0], ends[0])
    kind = {} if placement == "circle" else {"placement": placement}
    mechanism = PiecewiseMechanism.private(eps, 0.3 if eps < 9 else 1e-4, domain, **kind)
    lattice = Lattice.between(domain.lower, domain.upper)
    k = np.unique(np.linspace(lattice.first, lattice.last, 9).astype(np.int64))
    inputs = {float(v) for v in lattice.sent(k)} | {domain.lower, domain.upper}
    inputs |= {v for x in list(inputs) for v in (math.nextafter(x, 0), math.nextafter(x, math.inf))}
    return mechanism, [(x, law(mechanism, x)) for x in sorted(inputs) if domain.lower <= x <= domain.upper]


@pytest.mark.parametrize("ends", COARSE)
@pytest.mark.parametrize("placement", ["centred", "linear", "circle"])
@pytest.mark.parametrize(
    "loss",
    [
        "abs",
        *(pytest.param(loss, marks=pytest.mark.soak) for loss in ("squared", optdp.Power(0.3))),
        optdp.Threshold(0.2),
    ],
)
def test_value_and_privacy_are_those_of_the_numbers_sent(ends, placement, loss):
    """On domains of few floats the law of what is sent is listed: its ratios and its loss at every float are as stated."""
    cost = as_loss(loss)
    for eps in (0.5, 2.0, 9.0):
        mechanism, found = laws(eps, ends, placement)
        low, high = mechanism.enclose(optdp.WorstCase(loss))
        least = [min(p) for p in zip(*(law.values() for _, law in found), strict=True)]
        most = [max(p) for p in zip(*(law.values() for _, law in found), strict=True)]
        assert max(b / a for a, b in zip(least, most, strict=True)) <= mechanism.exact_ratio
        worst = 0.0
        for x, probabilities in found:
            distance = np.array([float(abs(y - Fraction(x))) for y in probabilities])
            if placement == "circle":
                distance = np.minimum(distance, mechanism.domain.period - distance)
            worst = max(worst, float(np.array([float(p) for p in probabilities.values()]) @ cost(distance)))
        assert worst <= high * (1 + 1e-12) and low <= high


@pytest.mark.parametrize("ends", FAR)
@pytest.mark.parametrize("eps", [0.01, 1.0, 10.0, 30.0])
def test_solutions_on_far_domains_are_true_or_wide(ends, eps):
    solution = optdp.solve_piecewise(eps, domain=ends)
    assert solution.verify()
    width = ends[1] - ends[0]
    steps = Lattice.between(*ends).count
    assert solution.value - solution.lower_bound <= 3 * width / steps
    mechanism = solution.mechanism
    x = np.linspace(0, 1, 2001) * width + ends[0]
    y = mechanism.randomize(np.clip(x, *ends), 1)
    assert ((y >= ends[0]) & (y <= ends[1])).all()


@pytest.mark.parametrize("q", [0.5, 1, 2])
def test_the_error_on_a_circle_of_few_floats_is_at_most_half_of_it(q):
    """Between 2^53 and 2^53 + 2 there are two floats, both the same point: errors up to 4 were not ruled out, nor below 0."""
    for period, most in ((2.0, 1), (4.0, 2)):
        mechanism = PiecewiseMechanism.private(2.0, 0.5, optdp.Circle(period, 2.0**53))
        low, high = mechanism.enclose(optdp.WorstCase(optdp.Power(q)))
        assert 0 <= low <= high <= most**q * (1 + 2.0**-10)


def test_integers_are_answered_by_integers():
    """Nanoseconds: floats there are 256 apart, the integers are read and sent as they are."""
    start = 1_700_000_000_000_000_000
    mechanism = optdp.solve_piecewise(2.0, domain=(start, start + 10**6)).mechanism
    x = np.full(200_000, start + 123_457, dtype=np.int64)
    y = mechanism.randomize(x, 1)
    assert y.dtype == np.int64 and y.min() >= start and y.max() <= start + 10**6
    assert set(range(8)) == set((y % 8).tolist())
    assert len(np.unique(y)) > 90_000
    assert abs(np.mean(y == np.clip(y, start + 10, start + 10**6 - 10)) - 1) < 1e-3
    lattice = Lattice.between(start, start + 10**6, whole=True)
    assert mechanism._numbers(lattice) * CELLS >= mechanism.width_cells * lattice.count
    with pytest.raises(ValueError, match=r"entry 1"):
        mechanism.randomize(np.array([start, start - 1]))
    small = optdp.solve_piecewise(2.0, domain=(0, 120)).mechanism
    assert small.randomize(np.array([5, 7]), 1).dtype == float


def test_where_one_number_is_all_there_is():
    """One float in the domain beside its end: the answer is constant or fair, and says what it loses."""
    lower = 1e15
    mechanism = PiecewiseMechanism(optdp.Interval(lower, math.nextafter(lower, 2e15)), CELLS // 2, COINS // 2)
    y = mechanism.randomize(np.full(1000, lower), 1)
    assert set(y.tolist()) <= {lower, math.nextafter(lower, 2e15)}
    assert mechanism.enclose(optdp.WorstCase("abs"))[1] >= np.mean(y - lower) * 0.9


# --- unbiased mechanisms


@cache
def windows():
    return {
        "A1B1": CompositeMechanism.private(1.0, 0.4), "shifted": CompositeMechanism.private(2.0, 0.3, (0.1, 0.7), shift=0.25),
        "A2B2": CompositeMechanism.private(2.0, 0.3, (-3, 8), ACTIVATIONS["A2"], Quartic(Fraction(3, 4))),
        "A3B1": CompositeMechanism.private(0.5, 0.2, (1e15, 1e15 + 1), ACTIVATIONS["A3"]),
        "far": CompositeMechanism.private(1.0, 0.4, (1e16, 1e16 + 4)),
        "wide": CompositeMechanism.private(0.01, 0.4, (-1e150, 1e150)),
        "steep": CompositeMechanism.private(20.0, 1e-4, (0, 120)),
    }  # fmt: skip


class Recorded:
    """Stands for `dither` and keeps what it was asked."""

    def __init__(self):
        self.asked = []

    def __call__(self, index, offset, factor, rng):
        self.asked.append((index.copy(), offset, factor))
        return dither(index, offset, factor, rng)


@pytest.mark.parametrize("name", list(windows()))
def test_the_mean_of_what_is_sent_is_the_input_exactly(name, monkeypatch):
    """The two roundings have exact means; with them E[Y | x] = x in rationals at every x of the lattice that is tried."""
    mechanism, recorded = windows()[name], Recorded()
    domain = mechanism.domain
    lattice = Lattice.between(domain.lower, domain.upper)
    k = np.unique(np.linspace(lattice.first, lattice.last, 7).astype(np.int64))
    monkeypatch.setattr("optdp.mechanisms.composite.dither", recorded)
    x = lattice.sent(k)
    y = mechanism.randomize(np.repeat(x, 4000), 1)
    (places, offset, factor), (_, low, unit) = recorded.asked
    (left, right), mass = mechanism.exact_range, mechanism.exact_floor_mass
    step = mechanism._sent().step
    assert low == left / step + unit / 2 and unit == (right - left) / CELLS / step
    for value, place in zip(x.tolist(), np.unique(places).tolist(), strict=True):  # of outputs from the window
        start = offset + place * factor
        assert mechanism.first_cell <= start <= mechanism.last_cell
        middle = low + (start + Fraction(mechanism.width_cells - 1, 2)) * unit  # of the window's cells, in steps
        base = low + Fraction(CELLS - 1, 2) * unit
        assert (mass * base + (1 - mass) * middle) * step == Fraction(value)
    assert all((Fraction(v) / step).denominator == 1 for v in y.tolist())
    assert mechanism.check_unbiased().passed


@pytest.mark.parametrize("name", list(windows()))
def test_far_windows_are_unbiased_and_as_good_as_stated(name):
    """Samples at inputs of the domain: the mean is the input, and the mean square error at most the stated one."""
    mechanism = windows()[name]
    domain, high = mechanism.domain, mechanism.enclose(optdp.WorstCase("squared"))[1]
    for share in (0.0, 0.3, 1.0):
        x = min(domain.lower + share * domain.width, domain.upper)
        error = (mechanism.randomize(np.full(100_000, x), 5) - x) / math.sqrt(high)
        assert abs(error.mean()) < 5 / math.sqrt(error.size)  # the largest standard deviation is 1
        assert np.mean(error**2) < 1 + 5 * np.std(error**2) / math.sqrt(error.size)
        low, top = mechanism.support()
        y = mechanism.randomize(np.full(1000, x), 6)
        assert (y >= low).all() and (y <= top).all()


def test_moments_of_drawn_cells_stay_below_what_is_added():
    """The second moment of the cells, by counting them, against the continuous one and its excess."""
    for cells in (2**10, 2**10 - 1):
        u = (2 * np.arange(cells) + 1 - cells) / cells
        for shape in (*ACTIVATIONS.values(), Quartic(0.6), Quartic(1e-3), Steps((1, 5, 5, 1))):
            if shape.fit(cells) != cells:
                continue
            if shape is ACTIVATIONS["A3"]:
                half = (cells + 1) // 2
                weights = np.convolve(np.ones(half), np.ones(half))
            else:
                weights = shape.height(u)
            moment = float(weights @ u**2 / weights.sum())
            assert moment <= float(shape.spread().upper()) + float(shape.excess(cells)) + 1e-15


def test_unbiased_integers():
    start = 1_700_000_000_000_000_000
    mechanism = CompositeMechanism.private(1.0, 0.4, (start, start + 10**6))
    x = np.full(200_000, start + 123_457)
    y = mechanism.randomize(x, 1)
    error = (y - x).astype(float)
    assert y.dtype == np.int64 and set((y % 4).tolist()) == {0, 1, 2, 3}
    assert abs(error.mean()) < 5 * error.std() / math.sqrt(error.size)


# --- additive noise


@pytest.mark.parametrize("q", [0.5, 1.0, 1.7, 2.0])
@pytest.mark.parametrize("grid", [2, 3, 6])
def test_the_value_of_additive_noise_is_that_of_the_sums_sent(q, grid, monkeypatch):
    """On a coarse grid the law of what is sent is listed; its loss at every input lies in the stated interval."""
    monkeypatch.setattr("optdp.mechanisms.additive.GRID", grid)
    noise = AdditiveMechanism(optdp.Line(), 1.3, 3, (5, 7, 3, 1), atom=4)
    low, high = noise.enclose(optdp.WorstCase(optdp.Power(q)))
    g, m = noise._grid()
    weights = {0: Fraction(noise.atom)}
    for a, w in enumerate(noise.weights):
        for cell in {a, -a}:
            for r in range(m):
                k = cell * m + r - m // 2
                weights[k] = weights.get(k, Fraction(0)) + Fraction(w, m)
    assert sum(weights.values()) == noise.total
    rng = np.random.default_rng(1)
    seen = set(((noise.randomize(np.zeros(3000), rng)) / g).astype(int).tolist())
    assert seen <= set(weights)
    for x in (0.0, 0.1, g / 2, -0.3, 17.77, math.nextafter(g, 0)):
        floor = math.floor(Fraction(x) / Fraction(g))
        losses = [float(abs((floor + k) * Fraction(g) - Fraction(x))) ** q * float(w) for k, w in weights.items()]
        assert low * (1 - 1e-12) <= sum(losses) / noise.total <= high * (1 + 1e-12)

"""What kernels send: numbers of a lattice, with the guarantee, the value and the mean that are stated, for those very numbers."""

import math
from bisect import bisect_left
from dataclasses import replace
from fractions import Fraction
from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import optdp
from optdp.exact.lattice import Lattice
from optdp.exact.sampling import LIMB
from optdp.mechanisms import kernel as module
from optdp.mechanisms.kernel import KernelMechanism, spacing
from optdp.mechanisms.piecewise import CELLS
from optdp.problem.losses import as_loss
from tests.kernels import mechanisms, unbiased
from tests.test_lattice import Tosses

#: Domains with few floats, so that the law of what is sent can be listed.
COARSE = [(1e15, 1e15 + 1), (2.0**53, 2.0**53 + 2), (2.0**50 - 0.3, 2.0**50 + 7), (1.7e18, 1.7e18 + 1e4)]
NANOSECONDS = 1_700_000_000_000_000_000


def counts(mechanism, first, last):
    """How many cells from `first` up to `last` send each number of the lattice: by bisection, as Q does not decrease on a piece
    (from one piece to the next what is sent may, by a rounding).
    """
    found = [0] * mechanism._sent.count

    def sent(cell):
        return int(mechanism._quantile(np.array([cell]))[0]) - mechanism._sent.first

    for start, end in pairwise(mechanism._edges.tolist()):
        cells = range(max(first, start), min(last, end))
        if cells:
            low, high = sent(cells[0]), sent(cells[-1])
            below = [0, *(bisect_left(cells, k, key=sent) for k in range(low + 1, high + 1)), len(cells)]
            for k, (a, b) in enumerate(pairwise(below), low):
                found[k] += b - a
    return found


def law(mechanism, x):
    """The exact probabilities of the numbers that are sent for the float x."""
    start, n, mass = int(mechanism._first_cell(np.array([x]))[0]), mechanism.width_cells, mechanism.exact_floor_mass
    far, near = counts(mechanism, 0, CELLS), counts(mechanism, start, start + n)
    found = [mass * a / CELLS + (1 - mass) * b / n for a, b in zip(far, near, strict=True)]
    assert sum(found) == 1
    return found


@settings(max_examples=8)
@given(
    mechanisms(beyond=False, domain=(0.0, 1.0)), st.sampled_from(COARSE), st.sampled_from(["abs", "squared", "huber"])
)
def test_value_and_privacy_are_those_of_the_numbers_sent(made, ends, loss):
    """On domains of few floats the law is listed: its ratios and its loss at every float are as stated."""
    mechanism = on(made, ends)
    cost = as_loss(optdp.Huber((ends[1] - ends[0]) / 5) if loss == "huber" else loss)
    lattice, sent = Lattice.between(*ends), mechanism._sent
    k = np.unique(np.linspace(lattice.first, lattice.last, 7).astype(np.int64))
    inputs = {float(v) for v in lattice.sent(k)} | set(ends)
    inputs |= {math.nextafter(x, side) for x in list(inputs) for side in (0, math.inf)}
    laws = {x: law(mechanism, x) for x in inputs if ends[0] <= x <= ends[1]}
    for column in zip(*laws.values(), strict=True):
        assert max(column) <= mechanism.exact_ratio * min(column)
    high = mechanism.enclose(optdp.WorstCase(cost))[1]
    for x, row in laws.items():
        places = [k * sent.step for k in range(sent.first, sent.last + 1)]
        losses = [Fraction(float(cost(float(abs(y - Fraction(x)))))) for y in places]
        assert sum(p * v for p, v in zip(row, losses, strict=True)) <= Fraction(high) * (1 + Fraction(1, 2**50))


def on(made, ends):
    """The same mechanism on another domain."""
    fields = {name: getattr(made, name) for name in made.__dataclass_fields__}
    return KernelMechanism(**(fields | {"domain": optdp.Interval(*ends)}))


@given(mechanisms(domain=(0.0, 1.0)), st.sampled_from(COARSE), st.integers(0, CELLS - 1))
def test_what_is_sent_is_within_a_step_of_q(made, ends, cell):
    """Where Q begins between two numbers, that piece was moved up with its start, and sent what is up to 1.5 steps away."""
    mechanism = on(made, ends)
    sent = int(mechanism._quantile(np.array([cell]))[0]) * mechanism._sent.step
    k = int(mechanism._piece(np.array([cell]))[0])
    low, high = Fraction(mechanism.lows[k]), Fraction(mechanism.highs[k])
    q = low + (high - low) * Fraction(2 * (cell - int(mechanism._edges[k])) + 1, 2 * mechanism.cells[k])
    width = mechanism.domain.exact_width
    off, step = abs(sent - Fraction(ends[0]) - width * q), Lattice.between(*mechanism.exact_ends).step
    assert off <= step + width * (high - low) / 2**50 and off <= mechanism._blur * width


def test_a_floor_that_begins_between_two_numbers():
    """Floats 2 apart: 2^53 + 4 was sent in three of four draws, and an error above 3.8 said to be made by 0.53 at most."""
    ends, limit = (2.0**53, 2.0**53 + 4), optdp.Threshold(3.8)
    mechanism = KernelMechanism.private(1.0, [1.0], [0.01], [1.0], 0.9, ends)
    lost = sum(p for k, p in enumerate(law(mechanism, ends[0])) if abs((mechanism._sent.first + k) * 2 - 2**53) > 3.8)
    low, high = mechanism.enclose(optdp.WorstCase(limit))
    assert Fraction(low) <= lost <= Fraction(high)


#: Losses of an exact distance, in exact numbers (of a power of 3/2: the nearest float); `share`: of the domain's width.
EXACT = {
    "abs": lambda share, width: ("abs", abs),
    "cubed": lambda share, width: (optdp.Power(3), lambda d: abs(d) ** 3),
    "power": lambda share, width: (optdp.Power(1.5), lambda d: Fraction(float(abs(d)) ** 1.5)),
    "root": lambda share, width: (optdp.Power(0.5), lambda d: Fraction(math.sqrt(abs(d)))),
    "threshold": lambda share, width: (
        optdp.Threshold(float(share * width)),
        lambda d: Fraction(abs(d) > share * width),
    ),
}


@settings(max_examples=6)
@given(
    mechanisms(domain=(0.0, 1.0)), st.sampled_from(COARSE[:3]), st.sampled_from([*EXACT]), st.integers(1, 7), st.data()
)
def test_both_ends_hold_for_the_numbers_sent(made, ends, name, eighths, data):
    """Worst cases over all floats there are, and averages over some of them, whether outputs are atoms, or lie beyond.

    In windows of few cells, where they begin and that cells are sent as a whole changes losses by much.
    """
    mechanism = replace(on(made, ends), width_cells=data.draw(st.sampled_from([made.width_cells, 1, 2, 5])))
    width, tie = mechanism.domain.exact_width, Fraction(1, 2**40)
    loss, exactly = EXACT[name](Fraction(eighths, 8), width)
    inputs = [ends[0]]
    while inputs[-1] < ends[1]:
        inputs.append(math.nextafter(inputs[-1], math.inf))
    places = [k * mechanism._sent.step for k in range(mechanism._sent.first, mechanism._sent.last + 1)]
    far, n, mass = counts(mechanism, 0, CELLS), mechanism.width_cells, mechanism.exact_floor_mass
    lost = []
    for x, start in zip(inputs, mechanism._first_cell(np.array(inputs)).tolist(), strict=True):
        losses = [exactly(y - Fraction(x)) for y in places]
        near = counts(mechanism, start, start + n)
        lost.append(sum((mass * a / CELLS + (1 - mass) * b / n) * v for a, b, v in zip(far, near, losses, strict=True)))
    low, high = mechanism.enclose(optdp.WorstCase(loss))
    assert Fraction(low) * (1 - tie) <= max(lost) <= Fraction(high) * (1 + tie)
    some = sorted(data.draw(st.sets(st.sampled_from(range(len(inputs))), min_size=2, max_size=3)))
    low, high = mechanism.enclose(optdp.Average(loss, ([inputs[i] for i in some], [1 / len(some)] * len(some))))
    assert Fraction(low) * (1 - tie) <= sum(lost[i] for i in some) / len(some) <= Fraction(high) * (1 + tie)


@settings(max_examples=15)
@given(
    st.lists(st.tuples(st.integers(1, 3), st.floats(0, 1)), min_size=1, max_size=4), st.integers(1, 4),
    st.sampled_from([0.5, 0.5, 0.2, 1.0]), st.sampled_from(["abs", "squared", "threshold"]), st.integers(1, 7),
)  # fmt: skip
@example([(1, 2.2250738585e-313)], 2, 0.5, "squared", 1)
@example([(1, 2.2250738585e-313)], 2, 0.5, "abs", 1)
def test_windows_of_few_cells_that_are_far_apart(pieces, size, share, name, eighths):
    """Q rises from 0 to 1 within a few cells, which are sent as their middles, and at whole ones of which windows begin."""
    ends = [0.0, *sorted(place for _, place in pieces), 1.0]
    inner = [count for count, _ in pieces] + [1]
    cells = (CELLS // 2, *inner, CELLS // 2 - sum(inner))
    mechanism = KernelMechanism(
        optdp.Interval(0, 1), cells, (0.0, *ends[:-1], 1.0), (0.0, *ends[1:], 1.0), size, 2**120, "ends", share
    )
    loss = optdp.Threshold(eighths / 8) if name == "threshold" else name
    law, mass = as_loss(loss), mechanism.floor_mass
    inputs = np.linspace(0, 1, 2001)
    starts = mechanism._first_cell(inputs)
    sent = float(mechanism._sent.step) * mechanism._quantile(starts[:, None] + np.arange(size))
    lost = mass * (law(inputs) + law(1 - inputs)) / 2 + (1 - mass) * law(np.abs(sent - inputs[:, None])).mean(axis=1)
    low, high = mechanism.enclose(optdp.WorstCase(loss))
    assert lost.max() <= high * (1 + 1e-9)
    if name in ("abs", "squared"):  # at the inputs between, no more than a slope of 2 adds
        assert low <= lost.max() + 2 / 2000 + 1e-9
    some = [0.25, 0.5, 0.8125]
    low, high = mechanism.enclose(optdp.Average(loss, (some, [0.25, 0.25, 0.5])))
    assert low - 1e-9 <= np.interp(some, inputs, lost) @ [0.25, 0.25, 0.5] <= high + 1e-9


def mean_of(mechanism, start):
    """E[Y] in exact rationals with the window at a cell: from the pieces' ends on the lattice, piece by piece."""
    n, mass, sent = mechanism.width_cells, mechanism.exact_floor_mass, mechanism._sent

    def total(low, high):
        edge, out = 0, Fraction(0)
        for count, (a, b) in zip(mechanism.cells, mechanism._places, strict=True):
            i, j = max(low - edge, 0), min(high - edge, count)
            if i < j:  # the middles of cells i, ..., j - 1
                out += (j - i) * a + Fraction((b - a) * (j * j - i * i), 2 * count)
            edge += count
        return out

    return sent.step * (mass * total(0, CELLS) / CELLS + (1 - mass) * total(start, start + n) / n)


@settings(max_examples=25)
@given(unbiased(), st.floats(0, 1), st.integers(0, LIMB - 1))
def test_the_mean_of_what_is_sent_is_the_input_exactly(mechanism, share, toss):
    """The two starts have means around x, and the toss takes the second one with the probability that makes the mean x."""
    domain = mechanism.domain
    lattice = Lattice.between(domain.lower, domain.upper)
    place = lattice.first + round(share * (lattice.count - 1))
    x = place * lattice.step
    first, second, chance = mechanism._nodes(module.exact((x - Fraction(domain.lower)) / domain.exact_width))
    assert 0 <= first <= second <= CELLS - mechanism.width_cells and 0 <= chance <= 1
    assert (1 - chance) * mean_of(mechanism, first) + chance * mean_of(mechanism, second) == x
    cut = math.floor(chance * LIMB)
    for tried in {toss, max(cut - 1, 0), min(cut + 1, LIMB - 1)} - {cut}:
        start = int(mechanism._tossed_start(np.array([place]), Tosses(tried))[0])
        assert start == (second if tried < cut else first)


@settings(max_examples=25)
@given(unbiased(), st.integers(0, CELLS - 1), st.integers(0, LIMB - 1))
def test_the_mean_of_what_is_sent_for_a_cell_is_q_at_its_middle(mechanism, cell, toss):
    k = int(mechanism._piece(np.array([cell]))[0])
    (a, b), count = mechanism._places[k], mechanism.cells[k]
    exactly = a + Fraction((b - a) * (2 * (cell - int(mechanism._edges[k])) + 1), 2 * count)
    share = exactly - math.floor(exactly)
    cut = math.floor(share * LIMB)
    for tried in {toss, max(cut - 1, 0), min(cut + 1, LIMB - 1)} - {cut}:
        found = int(mechanism._quantile(np.array([cell]), Tosses(LIMB - 1 - tried))[0])
        assert found == math.floor(exactly) + (tried < cut)


@cache
def solved(ends, eps, exact):
    return optdp.solve_kernel(eps, domain=ends, unbiased=exact, rtol=0.02)


FAR = [(1e15, 1e15 + 1), (0.1, 0.7), (-3.0, 1e-9), (NANOSECONDS, NANOSECONDS + 10**6), (1e-100, 2e-100)]


@pytest.mark.parametrize("ends", [*FAR, (-1e150, 1e150)])
@pytest.mark.parametrize("eps", [0.01, 4.0])
def test_solutions_on_far_domains_are_true_or_wide(ends, eps):
    """Verified; numbers of the lattice alone; and as good as stated at the ends and inside."""
    solution = solved(ends, eps, False)
    assert solution.verify(), str(solution.verify())
    domain = solution.mechanism.domain
    step = getattr(solution.mechanism, "_sent", Lattice.between(*ends)).step  # or a piecewise one
    assert solution.gap <= 0.02 or Lattice.between(*ends).count < 2**20
    for share in (0.0, 0.31, 1.0):
        x = min(domain.lower + share * domain.width, domain.upper)
        y = solution.mechanism.randomize(np.full(20_000, x), 1)
        assert all((Fraction(v) / step).denominator == 1 for v in y[:50].tolist())
        assert ((y >= ends[0]) & (y <= ends[1])).all()
        error = np.abs(y / solution.value - x / solution.value)
        assert error.mean() <= 1 + 5 * error.std() / math.sqrt(error.size)


@pytest.mark.parametrize("ends", FAR[:4])
@pytest.mark.parametrize("eps", [0.01, 4.0])
def test_far_unbiased_solutions_are_unbiased(ends, eps):
    solution = solved(ends, eps, True)
    assert solution.verify(), str(solution.verify())
    domain = solution.mechanism.domain
    for share in (0.0, 0.31, 1.0):
        x = min(domain.lower + share * domain.width, domain.upper)
        error = (solution.mechanism.randomize(np.full(100_000, x), 1) - x) / math.sqrt(solution.value)
        assert abs(error.mean()) < 5 / math.sqrt(error.size)
        assert np.mean(error**2) < 1 + 5 * np.std(error**2) / math.sqrt(error.size)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("wide", [10**6, 3 * 10**16])
def test_integers_are_answered_by_integers(exact, wide):
    """Nanoseconds: floats there are 256 apart, the integers are read and sent as they are."""
    solution = solved((NANOSECONDS, NANOSECONDS + wide), 1.0, exact)
    x = np.full(100_000, NANOSECONDS + wide // 3 + 1, dtype=np.int64)
    y = solution.mechanism.randomize(x, 1)
    assert y.dtype == np.int64 and solution.verify()
    step = int(solution.mechanism._whole._sent.step)
    assert step == 1 or (exact and wide / step >= 2**37)
    assert set((y // step % 8).tolist()) == set(range(8)) and (y % step == 0).all()
    error = (y - x).astype(float)
    if exact:
        assert abs(error.mean()) < 5 * error.std() / math.sqrt(error.size)
    loss = error**2 if exact else np.abs(error)
    assert loss.mean() < solution.value + 5 * loss.std() / math.sqrt(loss.size)
    with pytest.raises(ValueError, match="entry 1"):
        solution.mechanism.randomize(np.array([NANOSECONDS, NANOSECONDS - 1]))


def test_a_knot_of_the_loss_under_a_window_that_stays():
    """Windows end inside a piece: the expected loss changes its polynomial where an input is a knot away from there."""
    mechanism = KernelMechanism.private(4.0, [1.0], [0.0], [1.0], 0.75, share=0.0)
    law = optdp.Huber(0.2)
    low, high = mechanism.enclose(optdp.WorstCase(law))
    brute = float(mechanism.expected_loss(np.linspace(0, 1, 1001), law).max())
    assert low <= brute * (1 + 1e-9) and brute <= high * (1 + 1e-12) and high <= brute * (1 + 1e-9)


@pytest.mark.parametrize("exact", [False, True])
def test_where_losses_overflow_the_solve_says_so(exact):
    with pytest.raises(ValueError, match="it or its integral overflows there; use smaller units"):
        optdp.solve_kernel(1.0, domain=(-1e300, 1e300), unbiased=exact)


def error_of(mechanism, start, x):
    """E(Y - x)^2 in exact rationals with the window at a cell; where floats are many, without what the rounding of Q adds."""
    n, mass, sent = mechanism.width_cells, mechanism.exact_floor_mass, mechanism._sent
    at = x / sent.step

    def total(low, high):
        edge, out = 0, Fraction(0)
        for count, (a, b) in zip(mechanism.cells, mechanism._places, strict=True):
            i, j = max(low - edge, 0), min(high - edge, count)
            edge += count
            # Runs of cells with the same two numbers around Q, of which the mean square is on the chord.
            marks = (
                [math.ceil(Fraction((v - a) * 2 * count, b - a) / 2 - Fraction(1, 2)) for v in range(a + 1, b)]
                if few
                else []
            )
            for p, q in pairwise([i, *(k for k in marks if i < k < j), j] if i < j else []):
                middle = a + Fraction((b - a) * (p + q), 2 * count)
                v = min(a + bisect_left(marks, q), max(b - 1, a))
                if few:
                    share = middle - v
                    out += (q - p) * ((1 - share) * (v - at) ** 2 + share * (v + 1 - at) ** 2)
                else:
                    out += (q - p) * ((middle - at) ** 2 + Fraction((b - a) ** 2 * ((q - p) ** 2 - 1), 12 * count**2))
        return out

    few = sent.count < 1000
    return sent.step**2 * (mass * total(0, CELLS) / CELLS + (1 - mass) * total(start, start + n) / n)


def unbiased_error(mechanism, x):
    """The same for an input, whose window begins at one of two places."""
    read, domain = mechanism._reads, mechanism.domain
    place = min(max(round(Fraction(x) / read.step), read.first), read.last) * read.step
    first, second, chance = mechanism._nodes(module.exact((place - Fraction(domain.lower)) / domain.exact_width))
    near = (1 - chance) * error_of(mechanism, first, Fraction(x))
    return near + (chance * error_of(mechanism, second, Fraction(x)) if chance else 0)


#: In the second one what is read is finer than what is sent.
FEW = [(2.0**53, 2.0**53 + 4), (2.0**53 - 5, 2.0**53 - 1), (2.0**53 - 1, 2.0**53 + 2), (2.0**50 - 0.3, 2.0**50 + 2),
       (2.0**60, 2.0**60 + 1024)]  # fmt: skip


def check_unbiased_errors(mechanism, data):
    ends = mechanism.domain.lower, mechanism.domain.upper
    inputs = [ends[0]]
    while inputs[-1] < ends[1]:
        inputs.append(math.nextafter(inputs[-1], math.inf))
    errors = [unbiased_error(mechanism, x) for x in inputs]
    whole = mechanism._whole
    most = [unbiased_error(whole, x) for x in range(math.ceil(ends[0]), math.floor(ends[1]) + 1, 7)] if whole else []
    low, high = mechanism.enclose(optdp.WorstCase("squared"))
    assert Fraction(low) <= max(errors) and max(errors + most) <= Fraction(high)
    some = sorted(data.draw(st.sets(st.sampled_from(range(len(inputs))), min_size=2, max_size=3)))
    low, high = mechanism.enclose(optdp.Average("squared", ([inputs[i] for i in some], [1 / len(some)] * len(some))))
    tie = Fraction(1, 2**50)
    assert Fraction(low) * (1 - tie) <= sum(errors[i] for i in some) / len(some) <= Fraction(high) * (1 + tie)


@settings(max_examples=12)
@given(st.sampled_from(FEW), st.data())
def test_errors_of_unbiased_mechanisms_hold_for_the_numbers_sent(ends, data):
    """Worst cases over all floats and integers, averages over some floats: the law of what is sent, in exact rationals."""
    check_unbiased_errors(data.draw(unbiased(ends)), data)


@settings(max_examples=25)
@given(
    st.sampled_from(FEW), st.lists(st.tuples(st.integers(1, 3), st.integers(-8, 16)), min_size=1, max_size=4),
    st.integers(1, 4), st.sampled_from([2**60, 2**110, 2**120]), st.data(),
)  # fmt: skip
def test_errors_of_unbiased_windows_of_few_cells(ends, pieces, size, coins, data):
    """Q rises within a few cells: where windows begin, and that a cell is sent as its middle, changes errors by much."""
    inner, places = [count for count, _ in pieces] + [1], [-1.0, *sorted(place / 8 for _, place in pieces), 2.0]
    cells = (CELLS // 2, *inner, CELLS // 2 - sum(inner))
    mechanism = KernelMechanism(
        optdp.Interval(*ends), cells, (-1.0, *places[:-1], 2.0), (-1.0, *places[1:], 2.0), size, coins, "mean"
    )
    assert mechanism.check_unbiased().passed
    check_unbiased_errors(mechanism, data)


def test_where_windows_begin_adds_to_the_error():
    """Next to its largest value the error is flat, and what two places to begin at add to it was the larger part."""
    mechanism = KernelMechanism.private(1.0, [1, 1], [-1.375, 2.375], [-1.0, 2.5], 0.5, (0, 1), "mean")
    error = unbiased_error(mechanism, float.fromhex("0x1.3eb41907cf3e3p-1"))
    low, high = mechanism.enclose(optdp.WorstCase("squared"))
    assert Fraction(low) <= error <= Fraction(high)


def test_an_input_between_two_windows_of_few_cells():
    """Windows of two of six cells, with a slope of 1/2: half of each of two that begin next to each other adds 1/16 to the
    variance; that cells are sent as their middles takes 1/48 off.
    """
    cells = (CELLS // 2, 6, CELLS // 2 - 6)
    mechanism = KernelMechanism(
        optdp.Interval(0, 1), cells, (-1.0, -1.0, 2.0), (-1.0, 2.0, 2.0), 2, 2**100, "mean"
    )  # fmt: skip
    error, high = unbiased_error(mechanism, 0.25), Fraction(mechanism.enclose(optdp.WorstCase("squared"))[1])
    assert float(error) == pytest.approx(1 / 8, rel=1e-5) and error <= high <= Fraction("0.146")


def test_that_numbers_sent_are_apart_adds_to_the_error():
    """On floats 1 apart numbers 2 apart are sent: between two of them the square is on the chord, up to 1 above."""
    mechanism = KernelMechanism.private(3.0, [1.0], [-1.0], [2.0], 0.5, (2.0**53 - 5, 2.0**53 - 1), "mean")
    errors = [unbiased_error(mechanism, 2.0**53 - k) for k in range(1, 6)]
    assert mechanism._sent.step == 2 and max(errors) <= Fraction(mechanism.enclose(optdp.WorstCase("squared"))[1])


def test_that_inputs_are_read_elsewhere_adds_to_the_error():
    """2^53 - 1 is read as a number 1 away, where the error is as large as anywhere, and its own square comes on top."""
    ends = (2.0**53 - 1, 2.0**53 + 2)
    mechanism = KernelMechanism.private(5.0, [1.0], [-3.0], [4.0], 0.5, ends, "mean")
    error, high = unbiased_error(mechanism, ends[0]), Fraction(mechanism.enclose(optdp.WorstCase("squared"))[1])
    assert high - 1 < error <= high


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("inner", [(1, 1), (1, 2), (3, 1)])
def test_that_cells_are_sent_as_their_middles_changes_errors(size, inner):
    """Windows of a cell or three, within which Q rises by more than the domain; x changes the error by 2 |Y - x| at most."""
    cells = (CELLS // 2, *inner, CELLS // 2 - sum(inner))
    mechanism = KernelMechanism(
        optdp.Interval(0, 1), cells, (-1.0, -1.0, 0.5, 2.0), (-1.0, 0.5, 2.0, 2.0), size, 2**110, "mean"
    )
    errors = [unbiased_error(mechanism, k / 256) for k in range(257)]
    low, high = mechanism.enclose(optdp.WorstCase("squared"))
    assert mechanism.check_unbiased().passed
    assert Fraction(low) <= max(errors) + Fraction(4, 512) and max(errors) <= Fraction(high)


@pytest.mark.parametrize(
    ("lows", "highs"), [((-2.0, 0.5), (-2.0, 0.5)), ((0.5, 3.0), (0.5, 3.0)), ((0.25, 0.75), (0.25, 0.75))]
)
@pytest.mark.parametrize("ends", [(0.0, 1.0), (2.0**60, 2.0**60 + 1024)])
def test_means_must_reach_both_ends(lows, highs, ends):
    """Below the upper end, above the lower one, or neither: inputs there have another mean than they should."""
    mechanism = KernelMechanism.private(1.0, [1, 1], lows, highs, 0.5, ends, "mean")
    assert not mechanism.check_unbiased().passed
    assert KernelMechanism.private(3.0, [1, 1], [-2.0, 3.0], [-2.0, 3.0], 0.5, ends, "mean").check_unbiased().passed


def test_means_must_reach_both_ends_for_floats_and_for_integers():
    """Integers would reach them, but between floats 256 apart outputs are rounded to the inside by more than is left."""
    ends, places = (2.0**60, 2.0**60 + 1024), (-0.583, 1.583)
    mechanism = KernelMechanism.private(1.0, [1, 1], places, places, 0.5, ends, "mean")
    whole = mechanism._whole
    assert whole._targets[0][0] <= 0 and whole._targets[-1][1] >= 1 and not mechanism.check_unbiased().passed


def near_a_gap(places, rise, share):
    """Two narrow pieces, and windows of half of the floor: one input moves them from one piece to the other."""
    return KernelMechanism.private(
        6.0, [1, 1], places, [a + rise for a in places], 0.5, (0, 1), "ends", share
    )  # fmt: skip


def absolute_error(mechanism, x):
    """E|Y - x| on the continuum, with the window where the sampler has it; no piece passes x."""
    start, n, mass = int(mechanism._first_cell(np.array([x]))[0]), mechanism.width_cells, mechanism.exact_floor_mass
    edges, total = mechanism._edges.tolist(), Fraction(0)
    for low, high, (a, b) in zip(mechanism.lows, mechanism.highs, pairwise(edges), strict=True):
        rise = (Fraction(high) - Fraction(low)) / (b - a)
        for p, q, chance in ((a, b, mass / CELLS), (max(a, start), min(b, start + n), (1 - mass) / n)):
            total += max(q - p, 0) * chance * abs(Fraction(low) + rise * Fraction(p + q - 2 * a, 2) - Fraction(x))
    return total


@pytest.mark.parametrize(
    ("places", "rise", "share", "x"),
    [
        ((0.6028489052411163, 0.8135340641796355), 0.0, 0.7, 0.7503285164980797),
        ((0.4726175288334824, 0.9275588094659627), 0.0, 0.2, 0.5636057849599785),
        ((0.04097352393619469, 0.2697867137638703), 2.0**-46, 0.1, 0.06385484291897132),
        ((0.8894878343490003, 0.9340435159562497), 2.0**-46, 0.2, 0.8983989706704572),
    ],
    ids=["across, above", "across, below", "on the way, above", "on the way, below"],
)
def test_points_next_to_a_gap_may_have_the_window_of_an_input_beside_them(places, rise, share, x):
    """Floats place the window as for an input up to some roundings away, where losses may be others: by a gap of Q, or fast."""
    mechanism = near_a_gap(places, rise, share)
    prior = optdp.Prior(weights=[2**60 - 1, 1], categories=[x, 0.0])
    lost = (absolute_error(mechanism, x) * (2**60 - 1) + absolute_error(mechanism, 0.0)) / 2**60
    low, high = mechanism.enclose(optdp.Average("abs", prior))
    assert Fraction(low) <= lost <= Fraction(high)


def read_average(mechanism, loss, ends):
    """The average over reals evenly spread between two, all of which are read as the same float, of an exact primitive of the
    loss of distances.
    """
    a, b = ends
    read = mechanism._reads.step * round((a + b) / 2 / mechanism._reads.step)
    places = [k * mechanism._sent.step for k in range(mechanism._sent.first, mechanism._sent.last + 1)]
    chances = law(mechanism, float(read))
    return sum(p * (loss(b - y) - loss(a - y)) for p, y in zip(chances, places, strict=True)) / (b - a)


@pytest.mark.parametrize(
    ("places", "rise", "share", "limit", "between"),
    [
        ((0.25, 0.75), 0.0, 0.3, "1/5", ("401/1000", "13/32")),
        ((0.25, 0.75), 0.0, 0.2, "1/4", ("11/32", "349/1000")),
        ((0.0, 0.6875), 2.0**-20, 1.0, None, ("6885/10000", "23/32")),
        ((0.5, 0.8125), 2.0**-20, 0.0, None, ("501/1000", "17/32")),
    ],
    ids=["gap, below", "gap, above", "fast, above", "fast, below"],
)
def test_averages_over_reals_hold_for_the_floats_that_they_are_read_as(places, rise, share, limit, between):
    """Between a gap of Q and the middle of two floats: all these inputs have the window from beyond the gap."""
    lower, width = 2**53, 32
    mechanism = KernelMechanism.private(
        6.0, [1, 1], places, [a + rise for a in places], 0.5, (lower, lower + width), "ends", share
    )
    loss, primitive = "abs", lambda d: d * abs(d) / 2
    if limit is not None:
        most = Fraction(limit) * width
        loss, primitive = optdp.Threshold(most), lambda d: d - min(max(d, -most), most)
    a, b = (lower + width * Fraction(end) for end in between)
    low, high = mechanism.enclose(optdp.Average(loss, optdp.Density((a, b), ((1 / (b - a),),))))
    assert Fraction(low) <= read_average(mechanism, primitive, (a, b)) <= Fraction(high)


@pytest.mark.parametrize("loss", ["abs", "squared", optdp.Huber(0.25)], ids=["abs", "squared", "huber"])
@pytest.mark.parametrize("ends", [(0.0, 1.0), (2.0**52, 2.0**52 + 3)], ids=["fine", "coarse"])
def test_averages_where_a_density_is_high_hold_on_both_sides(loss, ends):
    """What windows may be placed elsewhere adds to the bound above in proportion to the density, and is no part of the value.

    The end below was taken from the one above: it was too high.
    """
    place, near = Fraction(9, 16), Fraction(1, 2**45)
    mechanism = KernelMechanism.private(2.0, [1.0], [0.25], [0.25], 0.5, ends)
    width, lower = mechanism.domain.exact_width, Fraction(ends[0])
    a, b = (lower + width * (place + side) for side in (-near, near))
    low, high = mechanism.enclose(optdp.Average(loss, optdp.Density((a, b), ((1 / (b - a),),))))
    y = mechanism._places[0][0] * mechanism._sent.step
    lost = [Fraction(float(as_loss(loss)(float(abs(y - x))))) for x in (a, b)]
    assert Fraction(low) <= max(lost) and min(lost) <= Fraction(high)


def test_windows_of_a_few_billionths_are_far_above_what_floats_tell():
    """What outputs of exact means may be is coarser by far, and was asked for here, too: the search ended after two meshes."""
    domain = optdp.Interval(0, 1)
    assert spacing(domain, 0.0, 1.0) > 1e-12 > 1e-14 > spacing(domain, 0.0, 1.0, mean=False)
    assert spacing(optdp.Interval(2**52, 2**52 + 8), 0.0, 1.0, mean=False) == 1 / 8
    found = optdp.solve_kernel(30.0, "abs", rtol=1e-6, time_limit=0.5)
    assert "floats" not in found.program.message and found.lower_bound <= found.value


@pytest.mark.parametrize(
    ("ends", "places", "limit"),
    [
        ((1000 * 2.0**50, 1001 * 2.0**50), [0.5], 2.0**49),
        ((2.0**58, 2.0**58 + 1216), [0.19, 0.55, 0.8], 780.08),
        ((-(2.0**57) - 480, -(2.0**57)), [0.21, 0.3, 0.8], 158.3),
        ((2.0**54, 2.0**54 + 28), [0.31, 0.64], 22.0),
    ],
)
@pytest.mark.parametrize("listed", [False, True])
def test_steps_are_met_exactly_by_integers_that_are_no_floats(ends, places, limit, listed):
    """At every integer (of the first domain those around the steps), summed from the cells; the middle alone had the loss 1."""
    mechanism = KernelMechanism.private(1.6, [1.0] * len(places), places, places, 0.45, ends)
    objective, loss, integers = optdp.WorstCase(optdp.Threshold(limit)), optdp.Threshold(limit), mechanism._whole
    few = ends[1] - ends[0] < 2000
    inputs = list(range(int(ends[0]), int(ends[1]) + 1)) if few else [int(x) for x in (*ends, sum(ends) / 2)]
    if listed:
        inputs = [int(ends[0]), int(ends[0] + (ends[1] - ends[0]) / 4), int(ends[1])]
        objective = optdp.Average(loss, ([float(x) for x in inputs], [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]))
    starts = integers._start((np.array(inputs) - int(ends[0])) / (ends[1] - ends[0])).tolist()
    sent, edges, lost = [a for a, _ in integers._places], mechanism._edges.tolist(), []
    floor, n = mechanism.exact_floor_mass, mechanism.width_cells
    for x, start in zip(inputs, starts, strict=True):
        far = [(a, b) for y, (a, b) in zip(sent, pairwise(edges), strict=True) if abs(y - x) > Fraction(limit)]
        near = sum(max(min(b, start + n) - max(a, start), 0) for a, b in far)
        lost.append(floor * Fraction(sum(b - a for a, b in far), CELLS) + (1 - floor) * Fraction(near, n))
    value = (lost[0] + lost[1] + 2 * lost[2]) / 4 if listed else max(lost)
    low, high = mechanism.enclose(objective)
    floats = replace(mechanism)
    floats.__dict__.update(_whole=None)
    also = floats.enclose(objective)
    assert low <= value <= high
    assert low >= min(float(value), also[0]) * (1 - 1e-15) and high <= max(float(value), also[1]) * (1 + 1e-15)


def test_a_constant_that_costs_nothing_is_found_among_integers_that_are_no_floats():
    """The bracket was [0, 0.49996]."""
    w = 2.0**50
    for prior in (None, ([1000 * w, 1000.5 * w, 1001 * w], [0.25, 0.25, 0.5])):
        best = optdp.solve_kernel(1.6e-4, optdp.Threshold(0.5 * w), domain=(1000 * w, 1001 * w), prior=prior)
        assert best.lower_bound == best.value == 0

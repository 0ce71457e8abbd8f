"""The one coin and the one alias table: exact distributions by counting every random integer, not by statistics."""

from fractions import Fraction
from unittest import mock

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from optdp.exact import sampling
from optdp.exact.sampling import BITS, LIMB, Alias, as_rng, below, coin


class Script:
    """A generator that hands out prepared integers, and records the ranges that were asked for."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def integers(self, low, high, size=None):
        self.asked.append((low, high))
        answer = np.asarray(self.answers.pop(0), dtype=np.int64)
        assert (answer >= low).all() and (answer < high).all()
        return np.broadcast_to(answer, size).copy() if size is not None else answer


def distribution(table, count):
    """The exact probabilities of each outcome of each row of an `Alias`, from its cells."""
    rows = len(table.low) // table.columns
    out = [[Fraction(0)] * count for _ in range(rows)]
    capacity = table.total >> table.bits if table.single else table.total
    for row in range(rows):
        for j in range(table.columns):
            cell = row * table.columns + j
            cut = (int(table.high[cell]) << BITS) + int(table.low[cell])
            assert 0 <= cut <= capacity
            for outcome, mass in ((j, cut), (int(table.other[cell]), capacity - cut)):
                if mass:
                    assert 0 <= outcome < count, "an outcome that does not exist has positive probability"
                    out[row][outcome] += Fraction(mass, capacity * table.columns)
    return out


@st.composite
def weights(draw):
    count = draw(st.integers(1, 9))
    total = draw(st.sampled_from([LIMB, LIMB * LIMB, 2**124 - 59, 7, 1, 2**53, LIMB + 1, LIMB - 1]))
    rows = []
    for _ in range(draw(st.integers(1, 3))):
        cuts = sorted(
            draw(
                st.lists(
                    st.one_of(st.integers(0, total), st.sampled_from([0, total])),
                    min_size=count - 1,
                    max_size=count - 1,
                )
            )
        )
        rows.append([b - a for a, b in zip([0, *cuts], [*cuts, total], strict=True)])
    return rows, total


@given(weights())
def test_the_alias_table_has_exactly_the_weights(case):
    rows, total = case
    table = Alias(rows, total)
    assert distribution(table, len(rows[0])) == [[Fraction(w, total) for w in row] for row in rows]


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_draw_reads_the_table_with_one_integer(count):
    """With total 2^62 every ticket is one integer: at both sides of each cut, and the two ends of each cell."""
    row = [LIMB // 9 + 3 * j for j in range(count - 1)]
    row.append(LIMB - sum(row))
    table = Alias([row, row[::-1]], LIMB)
    assert table.single
    width = LIMB >> table.bits
    for which in (0, 1):
        for j in range(table.columns):
            cell = which * table.columns + j
            cut = int(table.low[cell]) + (int(table.high[cell]) << BITS)
            for inside in {0, cut - 1, cut, width - 1}:
                if not 0 <= inside < width:
                    continue
                rng = Script([j * width + inside])
                found = table.draw(np.array([which]), rng)
                assert rng.asked == [(0, LIMB)]
                assert found[0] == (j if inside < cut else table.other[cell])


def test_draw_reads_the_table_with_three_integers():
    total = LIMB * LIMB
    row = [total // 3, total // 5, total - total // 3 - total // 5]
    table = Alias([row], total)
    assert not table.single
    for j in range(3):
        cut = (int(table.high[j]) << BITS) + int(table.low[j])
        for inside in {0, cut - 1, cut, cut + 1, total - 1}:
            if not 0 <= inside < total:
                continue
            high, low = divmod(inside, LIMB)
            rng = Script([j], [high], [low])
            assert table.draw(np.array([0]), rng)[0] == (j if inside < cut else table.other[j])


@given(st.integers(0, 2**10), st.sampled_from([2**k for k in (0, 1, 10, 61, 62, 63, 100, 124)]))
def test_the_coin_is_exact(part, total):
    """P(heads) is high/2^62 + [tie] low/2^124: every toss and tie that decides is tried."""
    heads = part * total // 2**10
    if heads >= total:
        assert coin(heads, total, (5,), Script()).all()  # no random integer at all
        return
    scaled = heads * (LIMB * LIMB // total)
    high, low = divmod(scaled, LIMB)
    assert Fraction(high, LIMB) + Fraction(low, LIMB * LIMB) == Fraction(heads, total)
    for toss in {0, max(high - 1, 0), high, high + 1, LIMB - 1}:
        if toss >= LIMB:
            continue
        for second in {0, max(low - 1, 0), low, LIMB - 1}:
            rng = Script([toss], [second])
            expected = toss < high or (toss == high and second < low)
            assert coin(heads, total, (1,), rng)[0] == expected
            assert rng.asked[0] == (0, LIMB) and (len(rng.asked) == 2) == bool(toss == high and low)


def test_ties_alone_are_tossed_again():
    heads = 5 * LIMB + 17
    rng = Script([3, 5, 5, 9], [16, 17])
    assert coin(heads, LIMB * LIMB, (4,), rng).tolist() == [True, True, False, False]


@given(st.integers(1, 2**124))
def test_below_is_uniform(total):
    """The pairs (high, low) that are kept are those below the total, each once: the first draw covers them, the last is refused."""  # noqa: E501
    top, bottom = divmod(total, LIMB)
    with mock.patch.object(sampling, "LIMB", LIMB):
        if top == 0:
            rng = Script([bottom - 1])
            high, low = below(total, 1, rng)
            assert (high[0], low[0]) == (0, bottom - 1) and rng.asked == [(0, bottom)]
            return
        if bottom:
            rng = Script([top], [bottom], [0], [bottom])  # refused, then (0, bottom)
            high, low = below(total, 1, rng)
            assert (high[0], low[0]) == (0, bottom) and rng.asked == [(0, top + 1), (0, LIMB)] * 2
            rng = Script([top], [bottom - 1])
            high, low = below(total, 1, rng)
            assert int(high[0]) * LIMB + int(low[0]) == total - 1
        else:
            rng = Script([top - 1], [LIMB - 1])
            high, low = below(total, 1, rng)
            assert rng.asked == [(0, top), (0, LIMB)] and int(high[0]) * LIMB + int(low[0]) == total - 1


@pytest.mark.parametrize("total", [1, 2, 3, 5, 8, 9, 15, 16])
def test_below_counts_every_outcome(total):
    """With limbs of 2 bits all random integers can be listed: every outcome below the total has the same probability."""
    with mock.patch.object(sampling, "LIMB", 4), mock.patch.object(sampling, "BITS", 2):
        top, bottom = divmod(total, 4)
        kept = []
        for high in range(top + (bottom > 0)) if top else [0]:
            for low in range(4 if top else bottom):
                answers = [[high], [low], [0], [0]] if top else [[low]]
                got = below(total, 1, Script(*answers))
                value = int(got[0][0]) * 4 + int(got[1][0])
                if high * 4 + low < total:
                    assert value == high * 4 + low
                    kept.append(value)
                else:
                    assert value == 0  # drawn again
        assert sorted(kept) == list(range(total))


@pytest.mark.parametrize("total", [4, 16])
def test_alias_counts_every_outcome(total):
    """Limbs of 2 bits: all weights of three outcomes, all random integers."""
    with mock.patch.object(sampling, "LIMB", 4), mock.patch.object(sampling, "BITS", 2):
        for a in range(total + 1):
            for b in range(total + 1 - a):
                row = [a, b, total - a - b]
                table = Alias([row], total)
                counts = [0, 0, 0]
                if table.single:
                    for ticket in range(4):
                        counts[int(table.draw(np.array([0]), Script([ticket]))[0])] += 1
                    scale = 4
                else:
                    for column in range(table.columns):
                        for value in range(total):
                            high, low = divmod(value, 4)
                            answers = ([column], [low]) if total <= 3 else ([column], [high], [low])
                            counts[int(table.draw(np.array([0]), Script(*answers))[0])] += 1
                    scale = total * table.columns
                assert [Fraction(c, scale) for c in counts] == [Fraction(w, total) for w in row]


def test_as_rng():
    generator = np.random.default_rng(1)
    assert as_rng(generator) is generator
    assert as_rng(7).integers(10**9) == as_rng(7).integers(10**9)
    assert as_rng(None).integers(10**18) != as_rng(None).integers(10**18)


def test_shapes():
    table = Alias([[1, 6], [3, 4]], 7)
    rows = np.array([[0, 1, 0], [1, 1, 1]])
    assert table.draw(rows, as_rng(0)).shape == (2, 3)
    assert coin(1, 2, (), as_rng(0)).shape == () and coin(1, 2, (2, 3), as_rng(0)).shape == (2, 3)

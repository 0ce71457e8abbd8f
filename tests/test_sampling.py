"""The one coin, alias table and geometric law: exact distributions by counting every random integer, not by statistics."""

from fractions import Fraction
from unittest import mock

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import example, given

from optdp.exact import sampling
from optdp.exact.sampling import LIMB, Alias, Geometric, Guide, SystemGenerator, as_rng, coin, either, in_blocks, limbs


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
    rows, width = len(table.bars) // table.columns, 2**table.rest
    assert table.columns * width == LIMB
    out = [[Fraction(0)] * count for _ in range(rows)]
    for row in range(rows):
        for j in range(table.columns):
            cell = row * table.columns + j
            cut = (int(table.bars[cell]) + table.ties.get(cell, 0)) / Fraction(width)
            assert 0 <= cut <= 1 and 0 < table.ties.get(cell, Fraction(1, 2)) < 1
            for outcome, mass in ((j, cut), (int(table.other[cell]), 1 - cut)):
                if mass:
                    assert 0 <= outcome < count, "an outcome that does not exist has positive probability"
                    out[row][outcome] += mass / table.columns
    return out


def tree(call, depth=12):
    """The exact probability of each result of `call(rng)`, by trying every random integer; what is still open after `depth`."""
    found, left, todo = {}, Fraction(0), [((), Fraction(1))]
    while todo:
        answers, chance = todo.pop()
        rng = Script(*answers)
        try:
            outcome = call(rng)
        except IndexError:  # one more is asked for
            low, high = rng.asked[-1]
            if len(answers) == depth:
                left += chance
            else:
                todo += [((*answers, k), chance / (high - low)) for k in range(low, high)]
        else:
            assert not rng.answers
            found[outcome] = found.get(outcome, Fraction(0)) + chance
    return found, left


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
@pytest.mark.parametrize("total", [LIMB, LIMB * LIMB, 7**20])
def test_draw_reads_the_table_with_one_integer(count, total):
    """At both sides of each cut, and at the two ends of each cell; a tie is tossed on, where it leaves anything open."""
    row = [total // 9 + 3 * j for j in range(count - 1)]
    row.append(total - sum(row))
    table = Alias([row, row[::-1]], total)
    width = LIMB >> table.bits
    for which in (0, 1):
        for j in range(table.columns):
            cell = which * table.columns + j
            cut, share = int(table.bars[cell]), table.ties.get(cell)
            for inside in {0, cut - 1, cut, width - 1}:
                if not 0 <= inside < width:
                    continue
                rng = Script([j * width + inside])
                if inside == cut and share:
                    for second in (0, int(share * LIMB) - 1, int(share * LIMB) + 1, LIMB - 1):
                        if 0 <= second < LIMB and second != int(share * LIMB):
                            rng = Script([j * width + inside], second)
                            first = second < share * LIMB
                            assert table.draw(np.array([which]), rng)[0] == (j if first else table.other[cell])
                            assert not rng.answers
                    continue
                assert table.draw(np.array([which]), rng)[0] == (j if inside < cut else table.other[cell])
                # Only a tie that the other bits decide, with nothing left to toss for, is looked at again.
                assert rng.asked == [(0, LIMB)]


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


@pytest.mark.parametrize("total", [4, 7, 16])
def test_alias_counts_every_outcome(total):
    """Limbs of 2 bits: all weights of three outcomes, all random integers."""
    with mock.patch.object(sampling, "LIMB", 4), mock.patch.object(sampling, "BITS", 2):
        for a in range(total + 1):
            for b in range(total + 1 - a):
                row = [a, b, total - a - b]
                table = Alias([row], total)
                found, left = tree(lambda rng, table=table: int(table.draw(np.array([0]), rng)[0]), 6)
                assert left < Fraction(1, 4**5) if total == 7 else left == 0
                for k, weight in enumerate(row):
                    assert 0 <= Fraction(weight, total) - found.get(k, 0) <= left


@pytest.mark.parametrize("share", [Fraction(1, 16), Fraction(3, 8), Fraction(5, 7), Fraction(1, 4)])
def test_geometric_counts_every_outcome(share):
    """Limbs of 2 bits, with which nearly every number ties, and whole runs of the table lie within one."""
    with mock.patch.object(sampling, "LIMB", 4), mock.patch.object(sampling, "BITS", 2):
        law = Geometric(share)
        law.fewer = law.fewer[:3]
        law.guide = Guide(np.array([int(4 * f) for f in law.fewer]), 2)
        found, left = tree(lambda rng: int(law.draw(1, rng)[0]), 6)
        assert left < Fraction(1, 4) and len(found) >= 3
        for k in range(12):
            assert 0 <= (1 - share) * share**k - found.get(k, 0) <= left


def test_geometric_tables_hold_the_law():
    """The table of a share is that of the probabilities; far shares too, of which hardly a number is looked up."""
    for share in (Fraction(9, 10), Fraction(1, 3), Fraction(1, 2**50), 1 - Fraction(1, 2**62)):
        law = Geometric(share)
        assert law.fewer == [1 - share**k for k in range(len(law.fewer))] and len(law.fewer) <= 66
        for k, fewer in enumerate(law.fewer[1:], 1):
            cut = int(fewer * LIMB)
            for toss, expected in ((cut - 1, k - 1), (cut + 1, k)):
                if law.fewer[k - 1] * LIMB <= toss and (k + 1 == len(law.fewer) or toss + 1 <= law.fewer[k + 1] * LIMB):
                    assert law._drawn(1, Script([toss]))[0] == expected
    drawn = Geometric(Fraction(99, 100)).draw(50_000, np.random.default_rng(0))
    assert abs(drawn.mean() - 99) < 6 * 99.5 / 50_000**0.5 and drawn.max() > 600


@example([0, 0, 0, 5], [0, 4, 5])
@given(st.lists(st.integers(0, 2**20 - 1), min_size=1, max_size=40), st.lists(st.integers(0, 2**20 - 1), min_size=1))
def test_guides_find_the_stretch(starts, at):
    starts, at = np.sort(np.array(starts, dtype=np.int64)), np.array(at, dtype=np.int64)
    expected = np.maximum(np.searchsorted(starts, at, side="right") - 1, 0)
    assert np.array_equal(Guide(starts, 20)(at), expected)
    assert np.array_equal(Guide(starts << 42, 62)(at << 42), expected)
    shares, far = starts / 2**20, np.concatenate([at / 2**20, [-1e-9, -3.0, 1.0, 1.5]])
    expected = np.maximum(np.searchsorted(shares, far, side="right") - 1, 0)
    assert np.array_equal(Guide(shares, 0)(far), expected)
    assert np.array_equal(Guide(starts[:1], 0)(at * 0), at * 0)


def test_limbs_are_62_bits_of_the_words():
    for size in ((), 5, (2, 3)):
        words = np.random.default_rng(3).integers(0, 2**64, size=size, dtype=np.uint64)
        assert np.array_equal(limbs(size, np.random.default_rng(3)), (words >> np.uint64(2)).astype(np.int64))
    rng = as_rng(None)
    assert isinstance(rng, SystemGenerator) and limbs((2, 3), rng).shape == (2, 3) and limbs(9, rng).min() >= 0
    rng = Script([1, 2, LIMB - 1])
    assert limbs(3, rng).tolist() == [1, 2, LIMB - 1] and rng.asked == [(0, LIMB)]


@given(st.integers(0, 30), st.integers(1, 9))
def test_blocks_are_put_together(size, block):
    seen = []

    def draw(part):
        seen.append(part.size)
        return part * 2

    with mock.patch.object(sampling, "BLOCK", block):
        x = np.arange(size, dtype=np.int32)
        assert np.array_equal(in_blocks(draw, x), 2 * x) and in_blocks(draw, x).dtype == np.int32
        assert sum(seen) == 2 * size and max(seen) <= block
        assert in_blocks(draw, x.reshape(1, size, 1)).shape == (1, size, 1)
        assert in_blocks(draw, np.asarray(3)).shape == ()


def test_either_chooses():
    first, a, b = np.array([True, False, True]), np.array([2**61, 5, -(2**61)]), np.array([7, -(2**61), 2**61])
    assert np.array_equal(either(first, a, b), np.where(first, a, b))


def test_noise_is_not_made_of_the_numbers_that_data_with_the_same_seed_are_made_of():
    data, noise = np.random.default_rng(0).random(10_000), as_rng(0).random(10_000)
    assert abs(np.corrcoef(data, noise)[0, 1]) < 0.04  # four standard deviations; 1 where the integers mean the same


def test_as_rng():
    generator = np.random.default_rng(1)
    assert as_rng(generator) is generator
    assert as_rng(7).integers(10**9) == as_rng(7).integers(10**9)
    assert as_rng(None).integers(10**18) != as_rng(None).integers(10**18)
    assert as_rng(np.int64(7)).integers(10**18) == as_rng(7).integers(10**18) != as_rng(8).integers(10**18)


def test_shapes():
    table = Alias([[1, 6], [3, 4]], 7)
    rows = np.array([[0, 1, 0], [1, 1, 1]])
    assert table.draw(rows, as_rng(0)).shape == (2, 3)
    assert coin(1, 2, (), as_rng(0)).shape == () and coin(1, 2, (2, 3), as_rng(0)).shape == (2, 3)

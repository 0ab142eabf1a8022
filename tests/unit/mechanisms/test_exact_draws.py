"""Tables draw what they say: every boundary is checked bit by bit, so that no sample is needed to see the law."""

from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.core.entropy import Entropy, SeededStream
from faircount.core.errors import ParameterError
from faircount.mechanisms.exact_draws import ONE, DrawTable, flips


class Scripted(Entropy):
    """Hands out prepared bytes, and complains when asked for more or fewer."""

    def __init__(self, data):
        self.data = bytes(data)

    def fill(self, out):
        out[:] = np.frombuffer(self.data[: out.size], dtype=np.uint8)
        self.data = self.data[out.size :]

    @classmethod
    def of(cls, draws):
        """The bytes for which a table sees these 128-bit numbers: upper halves first, then lower ones."""
        halves = [each >> 64 for each in draws] + [each & (2**64 - 1) for each in draws]
        return cls(b"".join(half.to_bytes(8, "little") for half in halves))


def around(table):
    """Every 128-bit number at which the outcome changes, with its neighbours."""
    near = {c + step for c in (0, *table.cumulative) for step in (-2, -1, 0, 1, 2)}
    return sorted(each for each in near if 0 <= each < ONE)


def expected(table, draws):
    return [table.values[bisect_right(table.cumulative, each)] for each in draws]


weights = st.one_of(st.integers(0, 3), st.integers(0, 2**66), st.integers(0, ONE // 50))


@given(st.lists(weights, max_size=40), st.integers(0, 40), st.lists(st.integers(0, ONE - 1), max_size=10))
def test_every_boundary_of_any_table_is_exact(parts, place, more):
    parts.insert(min(place, len(parts)), ONE - sum(parts))
    table = DrawTable(tuple(range(len(parts))), tuple(accumulate(parts)))
    draws = around(table) + more
    entropy = Scripted.of(draws)
    assert table.draw(len(draws), entropy).tolist() == expected(table, draws)
    assert entropy.data == b""


def test_outcomes_of_probability_zero_are_never_drawn():
    table = DrawTable((7, 8, 9, 10, 11, 12), (0, 5, 5, ONE, ONE, ONE))
    draws = around(table)
    assert set(table.draw(len(draws), Scripted.of(draws)).tolist()) == {8, 10}


@pytest.mark.parametrize("p", [1.0, 0.5, 0.1, 1 - 2**-53, 2.0**-70])
def test_a_coin_has_exactly_the_probability_of_its_float(p):
    table = DrawTable.coin(p)
    assert Fraction(table.weights[0], ONE) == Fraction(p)
    draws = around(table)
    assert table.draw(len(draws), Scripted.of(draws)).tolist() == [int(each < Fraction(p) * ONE) for each in draws]


def test_symmetric_tables_are_symmetric_to_the_last_bit():
    table = DrawTable.symmetric([ONE // 5, ONE // 7, 1])
    assert table.values == (-3, -2, -1, 0, 1, 2, 3)
    assert table.weights == table.weights[::-1]
    assert sum(table.weights) == ONE
    assert table.weights[4:] == (ONE // 5, ONE // 7, 1)
    assert table.probabilities.sum() == pytest.approx(1, abs=1e-15)


def test_the_same_bytes_give_the_same_outcomes():
    table = DrawTable.symmetric([ONE // 5, ONE // 9, ONE // 50])
    first, again = (table.draw(1000, SeededStream(3)) for _ in range(2))
    assert np.array_equal(first, again)
    assert set(first.tolist()) == set(table.values)
    assert table.draw(0, SeededStream(3)).size == 0


def test_a_table_does_not_print_itself():
    assert repr(DrawTable.symmetric([1] * 500)) == "DrawTable(1001 outcomes)"


@pytest.mark.parametrize(
    "make",
    [
        lambda: DrawTable((), ()),
        lambda: DrawTable((1, 2), (ONE,)),
        lambda: DrawTable((1, 2), (5, 4)),
        lambda: DrawTable((1, 2), (5, ONE - 1)),
        lambda: DrawTable((1, 2), (-1, ONE)),
        lambda: DrawTable.symmetric([ONE // 2 + 1]),
        lambda: DrawTable.symmetric([-1, 5]),
        lambda: DrawTable.coin(0.0),
        lambda: DrawTable.coin(float("nan")),
    ],
)
def test_what_is_no_distribution_is_refused(make):
    with pytest.raises(ParameterError):
        make()


def test_flips_compare_leading_words_first_and_the_next_ones_on_a_tie():
    every_word = np.arange(1 << 16, dtype=np.uint16)
    heads = (300 << 112) + (40_000 << 96) + 1
    for second, outcome in ((39_999, True), (40_001, False)):
        script = Scripted(every_word.tobytes() + np.array([second], dtype=np.uint16).tobytes())
        assert Counter(flips(heads, 1 << 16, script).tolist())[True] == 300 + outcome
    assert not flips(0, 9, Scripted(b"")).any()
    assert flips(ONE, 1 << 16, Scripted(every_word.tobytes())).all()


class Fixed(Entropy):
    """Bytes given beforehand."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def fill(self, out: np.ndarray) -> None:
        out[:] = np.frombuffer(self.data[: out.nbytes], dtype=np.uint8)
        self.data = self.data[out.nbytes :]


@pytest.mark.parametrize(
    "cuts",
    [
        [],
        [1],
        [ONE - 1],
        [0, ONE],
        [2**64 - 1, 2**64, ONE - 2**64],
        [0, 0, 1, 2**63, 2**64, 2**64 + 1, ONE - 1, ONE, ONE],
        [(7 << 64) - 1, 7 << 64, (7 << 64) + 1, 8 << 64, (2**64 - 1) << 64],
    ],
    ids=len,
)
def test_tables_at_every_edge(cuts: list[int]) -> None:
    table = DrawTable(tuple(range(len(cuts) + 1)), (*cuts, ONE))
    edges = {0, ONE - 1, *(cut + step for cut in cuts for step in (-(2**64), -1, 0, 1, 2**64))}
    drawn = sorted(each for each in edges if 0 <= each < ONE)
    halves = [[each >> 64 for each in drawn], [each & (2**64 - 1) for each in drawn]]
    expected = [sum(cut <= each for cut in cuts) for each in drawn]
    assert table.draw(len(drawn), Fixed(np.array(halves, dtype=np.uint64).tobytes())).tolist() == expected


@pytest.mark.parametrize("heads", [0, 1, 2**112, 2**112 - 1, 2**112 + 1, 3 << 96, ONE - 1, ONE])
def test_coins_at_every_edge(heads: int) -> None:
    for drawn in (each for each in (0, ONE - 1, heads - 1, heads, heads + 1) if 0 <= each < ONE):
        words = np.array([(drawn >> (112 - 16 * i)) & 0xFFFF for i in range(8)] + [0] * 8, dtype=np.uint16)
        assert bool(flips(heads, 1, Fixed(words.tobytes()))[0]) == (drawn < heads)

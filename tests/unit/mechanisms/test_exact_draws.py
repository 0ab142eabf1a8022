"""Exact sampling: every boundary of a table is checked bit by bit, without drawing samples."""

from bisect import bisect_right
from collections import Counter
from fractions import Fraction
from itertools import accumulate, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scripted_entropy import ScriptedEntropy

from faircount.core.entropy import SeededStream
from faircount.core.errors import ParameterError
from faircount.mechanisms.exact_draws import ONE, DrawTable, flip_coins


def script_draws(draws):
    """Entropy with which a table sees these 128-bit numbers."""
    # The stream has all upper halves first, then all lower halves.
    upper = [number >> 64 for number in draws]
    lower = [number & (2**64 - 1) for number in draws]
    return ScriptedEntropy(np.array(upper + lower, dtype="<u8").tobytes())


def numbers_around(cuts, steps):
    """All 128-bit numbers at these distances from the given ones."""
    near = {cut + step for cut, step in product(cuts, steps)}
    return sorted(number for number in near if 0 <= number < ONE)


def draws_around(table):
    """Every 128-bit number at which the outcome changes, with its neighbours."""
    return numbers_around((0, *table.cumulative), (-2, -1, 0, 1, 2))


def outcomes_of(table, draws):
    """Outcomes by bisection of the whole numbers, the definition of a table."""
    return [table.values[bisect_right(table.cumulative, number)] for number in draws]


# Weights with equal upper halves, with neighbouring ones, and large ones.
weights = st.one_of(st.integers(0, 3), st.integers(0, 2**66), st.integers(0, ONE // 50))


@given(
    st.lists(weights, max_size=40),
    st.integers(0, 40),
    st.lists(st.integers(0, ONE - 1), max_size=10),
)
def test_every_boundary_of_any_table_is_exact(parts, place, more):
    parts.insert(min(place, len(parts)), ONE - sum(parts))
    table = DrawTable(tuple(range(len(parts))), tuple(accumulate(parts)))
    draws = draws_around(table) + more
    entropy = script_draws(draws)
    assert table.draw(len(draws), entropy).tolist() == outcomes_of(table, draws)
    assert entropy.data == b""


def test_outcomes_of_probability_zero_are_never_drawn():
    # Only 8 and 10 have a positive probability.
    table = DrawTable((7, 8, 9, 10, 11, 12), (0, 5, 5, ONE, ONE, ONE))
    draws = draws_around(table)
    assert set(table.draw(len(draws), script_draws(draws)).tolist()) == {8, 10}


@pytest.mark.parametrize("p", [1.0, 0.5, 0.1, 1 - 2**-53, 2.0**-70])
def test_a_coin_has_exactly_the_probability_of_its_float(p):
    table = DrawTable.coin(p)
    assert Fraction(table.weights[0], ONE) == Fraction(p)
    draws = draws_around(table)
    assert table.draw(len(draws), script_draws(draws)).tolist() == [
        int(number < Fraction(p) * ONE) for number in draws
    ]


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


def test_coins_compare_leading_words_first_and_the_next_ones_on_a_tie():
    every_word = np.arange(1 << 16, dtype=np.uint16)
    # The first word of the threshold is 300 and the second one 40,000.
    heads = (300 << 112) + (40_000 << 96) + 1
    for second, outcome in ((39_999, True), (40_001, False)):
        script = ScriptedEntropy(
            every_word.tobytes() + np.array([second], dtype=np.uint16).tobytes()
        )
        assert Counter(flip_coins(heads, 1 << 16, script).tolist())[True] == 300 + outcome
    assert not flip_coins(0, 9, ScriptedEntropy(b"")).any()
    assert flip_coins(ONE, 1 << 16, ScriptedEntropy(every_word.tobytes())).all()


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
    # Distances of 2^64 change the upper half only.
    drawn = numbers_around((0, ONE - 1, *cuts), (-(2**64), -1, 0, 1, 2**64))
    assert table.draw(len(drawn), script_draws(drawn)).tolist() == outcomes_of(table, drawn)


@pytest.mark.parametrize("heads", [0, 1, 2**112, 2**112 - 1, 2**112 + 1, 3 << 96, ONE - 1, ONE])
def test_coins_at_every_edge(heads: int) -> None:
    for drawn in numbers_around((0, ONE - 1, heads), (-1, 0, 1)):
        # The words of 16 bits in the order in which they are compared, the leading one first.
        big_endian = np.frombuffer(drawn.to_bytes(16, "big"), dtype=">u2")
        script = ScriptedEntropy(big_endian.astype("<u2").tobytes())
        assert bool(flip_coins(heads, 1, script)[0]) == (drawn < heads)

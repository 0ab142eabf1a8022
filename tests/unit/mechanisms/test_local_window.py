"""The coin and the window of GRR, Duchi and PM: exact distributions from scripted words."""

from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from faircount.core.entropy import Entropy, SeededStream
from faircount.mechanisms.exact_draws import ONE, flip_coins
from faircount.mechanisms.local import Window, exp_rounded_down
from faircount.sharing.field import word_for

EPSILONS = [1e-6, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0, 60.0, 100.0, 1e4]


class Script(Entropy):
    """Returns one prepared array of words per request."""

    def __init__(self, *words: NDArray[np.generic]) -> None:
        self.words_left = list(words)

    def fill(self, out: NDArray[np.uint8]) -> None:
        word = self.words_left.pop(0)
        out[:] = np.frombuffer(word.tobytes(), dtype=np.uint8)


def digits(number: int) -> list[int]:
    """The eight 16-bit digits of a 128-bit number, leading one first."""
    return [number >> (112 - 16 * k) & 0xFFFF for k in range(8)]


def power(epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(150):
        return mpmath.exp(mpmath.mpf(epsilon))


def as_mpf(number: Fraction) -> mpmath.mpf:
    with mpmath.workdps(150):
        return mpmath.mpf(number.numerator) / number.denominator


@given(heads=st.integers(0, ONE), data=st.data())
def test_a_coin_compares_128_bits_with_its_threshold(heads: int, data: st.DataObject) -> None:
    # Numbers next to the threshold, or equal to it up to one bit, are decided late.
    near = st.integers(-2, 2).map(lambda shift: min(max(heads + shift, 0), ONE - 1))
    same_start = st.integers(0, 127).map(lambda bit: min(heads, ONE - 1) ^ (1 << bit))
    drawn = data.draw(st.one_of(near, same_start, st.integers(0, ONE - 1)))
    script = Script(*(np.array([digit], dtype=np.uint16) for digit in digits(drawn)))
    assert flip_coins(heads, 1, script)[0] == (drawn < heads)


def test_ties_are_resolved_independently() -> None:
    heads = 3 << 112 | 5 << 96
    first = np.array([2, 3, 4, 3, 3], dtype=np.uint16)
    second = np.array([4, 5, 6], dtype=np.uint16)
    assert flip_coins(heads, 5, Script(first, second)).tolist() == [True, True, False, False, False]


def test_certain_coins_and_numbers_of_coins() -> None:
    entropy = SeededStream(1)
    assert not flip_coins(0, 1000, entropy).any()
    assert flip_coins(ONE, 1000, entropy).all()
    assert flip_coins(ONE // 3, 0, entropy).size == 0
    # More coins than are flipped at a time.
    many = flip_coins(ONE // 4, 300_001, entropy)
    assert many.size == 300_001
    assert abs(many.mean() - 0.25) < 5 * (0.25 * 0.75 / 300_001) ** 0.5


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_exponential_is_rounded_down_and_close(epsilon: float) -> None:
    assert exp_rounded_down(epsilon) >= 1
    with mpmath.workdps(150):
        gap = 1 - as_mpf(exp_rounded_down(epsilon)) / power(min(epsilon, 100.0))
        assert 0 <= gap < mpmath.mpf(10) ** -78


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(
    ("cells", "width"), [(2, 1), (3, 1), (30, 1), (1024, 387), (1000, 1), (7, 5)]
)
def test_no_ratio_exceeds_e_to_the_epsilon(epsilon: float, cells: int, width: int) -> None:
    window = Window(cells, width, epsilon)
    assert window.own * width + window.other * (cells - width) == 1
    assert 0 < window.other < window.own
    with mpmath.workdps(150):
        assert as_mpf(window.own / window.other) <= power(epsilon)
        # Nor is it far below: 128 bits are precise enough.
        if epsilon <= 20:
            assert as_mpf(window.own / window.other) > power(epsilon) * (1 - mpmath.mpf(2) ** -80)


def test_rounding_the_other_way_would_break_the_promise() -> None:
    window = Window(3, 1, 1.0)
    # The next larger threshold already exceeds e^epsilon.
    up = Fraction(window.threshold + 1, ONE)
    with mpmath.workdps(150):
        assert as_mpf(up / ((1 - up) / 2)) > power(1.0)


@pytest.mark.parametrize(("cells", "width"), [(2, 1), (5, 1), (7, 3), (6, 4)])
def test_draw_reaches_every_cell_by_exactly_one_way(cells: int, width: int) -> None:
    """Every one of the w numbers leads to another cell of the window, and likewise outside.

    Together with the coin this gives the probabilities `own` and `other`.
    """
    window = Window(cells, width, 1.0)
    rest = cells - width
    starts = np.arange(rest + 1)
    for inside in (True, False):
        drawn = []
        for i, o in product(range(width), range(rest)):
            script = script_window(starts.size, (width, i), (rest, o), inside)
            drawn.append(window.draw(starts, script))
        for start in starts:
            wanted = set(range(start, start + width))
            # The number that is not used runs through all its values.
            times = rest
            if not inside:
                wanted = set(range(cells)) - wanted
                times = width
            reports = [int(cells_drawn[start]) for cells_drawn in drawn]
            assert sorted(reports) == sorted(list(wanted) * times)


def script_window(users: int, own: tuple[int, int], other: tuple[int, int], inside: bool) -> Script:
    """Words with which all users draw these numbers, given as (bound, number).

    A number below 1 is not drawn, so it takes no word. The coin is the last word.
    """
    words = []
    for bound, number in (own, other):
        if bound > 1:
            words.append(np.full(users, number, dtype=word_for(bound)))
    coin = 0 if inside else 0xFFFF
    return Script(*words, np.full(users, coin, dtype=np.uint16))


@pytest.mark.parametrize(("cells", "width"), [(2, 1), (4, 1), (7, 3), (6, 4)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_divergence_is_the_largest_over_all_pairs(cells: int, width: int, epsilon: float) -> None:
    window = Window(cells, width, epsilon)
    distributions = [distribution(window, start) for start in range(cells - width + 1)]
    for growth in (
        Fraction(1),
        exp_rounded_down(epsilon / 2),
        exp_rounded_down(epsilon),
        Fraction(10**4),
    ):
        largest = Fraction(0)
        for p, q in product(distributions, repeat=2):
            terms = [max(Fraction(0), a - growth * b) for a, b in zip(p, q, strict=True)]
            largest = max(largest, sum(terms))
        assert window.divergence(growth) == largest
    assert window.divergence(exp_rounded_down(epsilon)) == 0


def distribution(window: Window, start: int) -> list[Fraction]:
    """Probabilities of all cells when the user's window begins at `start`."""
    after = window.cells - window.width - start
    return [window.other] * start + [window.own] * window.width + [window.other] * after


def test_simulate_is_the_same_mixture() -> None:
    """Uniform over all cells, or over the window with probability w * excess."""
    window = Window(7, 3, 1.5)
    uniform = (1 - window.width * window.excess) / window.cells
    assert uniform == window.other
    assert uniform + window.excess == window.own
    drawn = window.simulate(np.full(200_000, 2), np.random.default_rng(3))
    shares = np.bincount(drawn, minlength=7) / drawn.size
    expected = np.array(distribution(window, 2), dtype=np.float64)
    assert np.all(np.abs(shares - expected) < 6 * np.sqrt(expected / drawn.size))


def test_epsilon_is_the_callers_float_to_the_last_bit() -> None:
    assert exp_rounded_down(0.1) < exp_rounded_down(float(np.nextafter(0.1, 1)))

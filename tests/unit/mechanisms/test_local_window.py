"""The coin and the window that GRR, Duchi and PM are drawn with: exact laws, from scripted bytes and integers."""

from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from faircount.core.entropy import Entropy, SeededStream
from faircount.mechanisms.exact_draws import ONE, flips
from faircount.mechanisms.local import Window, exp_below
from faircount.sharing.field import word_for

EPSILONS = [1e-6, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 20.0, 60.0, 100.0, 1e4]


class Script(Entropy):
    """Plays back words one after another, whatever type they are asked for in."""

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
def test_a_flip_compares_128_bits_with_heads(heads: int, data: st.DataObject) -> None:
    near = st.integers(-2, 2).map(lambda shift: min(max(heads + shift, 0), ONE - 1))
    same_start = st.integers(0, 127).map(lambda bit: min(heads, ONE - 1) ^ (1 << bit))
    drawn = data.draw(st.one_of(near, same_start, st.integers(0, ONE - 1)))
    script = Script(*(np.array([digit], dtype=np.uint16) for digit in digits(drawn)))
    assert flips(heads, 1, script)[0] == (drawn < heads)


def test_ties_are_resolved_each_for_itself() -> None:
    heads = 3 << 112 | 5 << 96
    first = np.array([2, 3, 4, 3, 3], dtype=np.uint16)
    second = np.array([4, 5, 6], dtype=np.uint16)
    assert flips(heads, 5, Script(first, second)).tolist() == [True, True, False, False, False]


def test_flips_at_the_ends_and_in_number() -> None:
    entropy = SeededStream(1)
    assert not flips(0, 1000, entropy).any()
    assert flips(ONE, 1000, entropy).all()
    assert flips(ONE // 3, 0, entropy).size == 0
    many = flips(ONE // 4, 300_001, entropy)  # more than one chunk
    assert many.size == 300_001
    assert abs(many.mean() - 0.25) < 5 * (0.25 * 0.75 / 300_001) ** 0.5


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_exp_below_is_below_and_near(epsilon: float) -> None:
    assert exp_below(epsilon) >= 1
    with mpmath.workdps(150):
        gap = 1 - as_mpf(exp_below(epsilon)) / power(min(epsilon, 100.0))
        assert 0 <= gap < mpmath.mpf(10) ** -78


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize(("cells", "width"), [(2, 1), (3, 1), (30, 1), (1024, 387), (1000, 1), (7, 5)])
def test_no_ratio_exceeds_e_to_the_epsilon(epsilon: float, cells: int, width: int) -> None:
    window = Window(cells, width, epsilon)
    assert window.own * width + window.other * (cells - width) == 1
    assert 0 < window.other < window.own
    with mpmath.workdps(150):
        assert as_mpf(window.own / window.other) <= power(epsilon)
        if epsilon <= 20:  # and it is not far below: the table is fine enough
            assert as_mpf(window.own / window.other) > power(epsilon) * (1 - mpmath.mpf(2) ** -80)


def test_rounding_the_other_way_would_break_the_promise() -> None:
    window = Window(3, 1, 1.0)
    up = Fraction(window.heads + 1, ONE)
    with mpmath.workdps(150):
        assert as_mpf(up / ((1 - up) / 2)) > power(1.0)


@pytest.mark.parametrize(("cells", "width"), [(2, 1), (5, 1), (7, 3), (6, 4)])
def test_draw_reaches_every_cell_by_exactly_one_way(cells: int, width: int) -> None:
    """Own window: one way for each of w numbers; outside: one for each of K - w. So the law is own and other."""
    window, rest = Window(cells, width, 1.0), cells - width
    starts = np.arange(rest + 1)
    for inside in (True, False):
        seen = [window.draw(starts, scripted(starts.size, width, rest, i, o, inside)) for i, o in ways(width, rest)]
        for start in starts:
            own = set(range(start, start + width))
            wanted = own if inside else set(range(cells)) - own
            times = rest if inside else width  # the unused number runs through all its values
            assert sorted(int(each[start]) for each in seen) == sorted(list(wanted) * times)


def ways(width: int, rest: int) -> list[tuple[int, int]]:
    return list(product(range(width), range(rest)))


def scripted(users: int, width: int, rest: int, i: int, o: int, inside: bool) -> Script:
    """The words that make every user draw number i of its window, number o outside, and land inside or not."""
    numbers = [np.full(users, each, dtype=word_for(of)) for of, each in ((width, i), (rest, o)) if of > 1]
    return Script(*numbers, np.full(users, 0 if inside else 0xFFFF, dtype=np.uint16))


@pytest.mark.parametrize(("cells", "width"), [(2, 1), (4, 1), (7, 3), (6, 4)])
@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
def test_divergence_is_the_largest_over_all_pairs(cells: int, width: int, epsilon: float) -> None:
    window = Window(cells, width, epsilon)
    laws = [law(window, start) for start in range(cells - width + 1)]
    for growth in (Fraction(1), exp_below(epsilon / 2), exp_below(epsilon), Fraction(10**4)):
        sticks = [sum(max(Fraction(0), a - growth * b) for a, b in zip(p, q, strict=True)) for p in laws for q in laws]
        assert window.divergence(growth) == max(sticks)
    assert window.divergence(exp_below(epsilon)) == 0


def law(window: Window, start: int) -> list[Fraction]:
    return [window.own if start <= cell < start + window.width else window.other for cell in range(window.cells)]


def test_simulate_is_the_same_mixture() -> None:
    """Uniform over all cells, or over the window with probability w * excess: own and other come out, exactly."""
    window = Window(7, 3, 1.5)
    uniform = (1 - window.width * window.excess) / window.cells
    assert uniform == window.other
    assert uniform + window.excess == window.own
    drawn = window.simulate(np.full(200_000, 2), np.random.default_rng(3))
    shares = np.bincount(drawn, minlength=7) / drawn.size
    expected = np.array([float(each) for each in law(window, 2)])
    assert np.all(np.abs(shares - expected) < 6 * np.sqrt(expected / drawn.size))


def test_epsilon_is_the_callers_float_to_the_last_bit() -> None:
    assert exp_below(0.1) < exp_below(float(np.nextafter(0.1, 1)))

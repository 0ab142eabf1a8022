"""The one bisection: exact for whole numbers, on the safe side for others."""

import math

import pytest

from faircount.core.search import first_integer, last_float, last_integer


@pytest.mark.parametrize(("low", "high"), [(0, 0), (0, 1), (-3, 9), (5, 6), (0, 1000)])
def test_the_first_whole_number_is_found_wherever_it_is(low: int, high: int) -> None:
    for first in range(low, high + 1):
        asked: list[int] = []

        def holds(value: int, first: int = first, asked: list[int] = asked) -> bool:
            asked.append(value)
            return value >= first

        assert first_integer(holds, low, high) == first
        assert len(asked) <= math.ceil(math.log2(high - low + 1))
        assert high not in asked or high == low  # what is known is not asked


@pytest.mark.parametrize("edge", [0.0, 0.3, 0.7499999, 1.0])
def test_the_last_real_number_was_seen_to_hold(edge: float) -> None:
    asked = {0.0: True}

    def holds(value: float) -> bool:
        asked[value] = value <= edge
        return asked[value]

    found = last_float(holds, 0.0, 1.5, 1e-9)
    assert asked[found]
    assert edge - 1e-9 <= found <= edge


@pytest.mark.parametrize("start", [-5, 0, 3, 7, 40])
def test_the_last_whole_number_is_found_from_any_guess(start: int) -> None:
    for last in range(-1, 11):
        assert last_integer(lambda value, last=last: value <= last, start, 2, 0, 10) == last  # type: ignore[misc]  # the default binds the value


def test_a_good_guess_of_the_last_whole_number_saves_evaluations() -> None:
    asked: list[int] = []

    def holds(value: int) -> bool:
        asked.append(value)
        return value <= 5000

    assert last_integer(holds, 4998, 4, 0, 10**9) == 5000
    assert len(asked) < 8

import math

import numpy as np
import pytest

from faircount.core import validation
from faircount.core.errors import AnswerError, FaircountError, InputError, ParameterError

NOT_NUMBERS = [None, "1", True, float("nan"), float("inf"), [1], 1j]


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 1.0, -1, np.bool_(True)])
def test_integers(value: object) -> None:
    with pytest.raises(ParameterError, match="x must be"):
        validation.integer("x", value)


def test_integers_accept_numpy_and_bounds() -> None:
    assert validation.integer("x", np.int32(5), least=5, most=5) == 5
    with pytest.raises(ParameterError, match="between 1 and 4"):
        validation.integer("x", 5, least=1, most=4)


@pytest.mark.parametrize(
    ("check", "bad"),
    [
        (validation.positive, [0, -1]),
        (validation.probability, [0, 1.1, -0.1]),
        (validation.fraction, [0, 1]),
    ],
)
def test_reals(check, bad) -> None:  # type: ignore[no-untyped-def]
    for value in [*NOT_NUMBERS, *bad]:
        with pytest.raises(ParameterError, match="x must"):
            check("x", value)
    assert check("x", np.float32(0.5)) == 0.5


def test_epsilon_may_be_zero_and_not_negative() -> None:
    assert validation.epsilon(0) == 0
    with pytest.raises(ParameterError, match="negative"):
        validation.epsilon(-0.1)


@pytest.mark.parametrize("values", [[], [[1]], [-1, 2], [0, 0], [0.5, 1], [math.nan], ["a"], 3])
def test_counts(values: object) -> None:
    with pytest.raises(AnswerError):
        validation.counts(values)  # type: ignore[arg-type] # that is the point
    assert validation.counts([1.0, 2]).dtype == np.int64


@pytest.mark.parametrize("values", [[], [0.5], [-0.5, 1.5], [math.nan, 1], [[1.0]]])
def test_frequencies(values: list[float]) -> None:
    with pytest.raises(AnswerError):
        validation.frequencies(values)


def test_lengths_and_items() -> None:
    assert validation.same_length(a=[1, 2], b=[3, 4]) == 2
    with pytest.raises(ParameterError, match="a has 1, b has 2"):
        validation.same_length(a=[1], b=[3, 4])
    with pytest.raises(AnswerError, match="2 entries for 3 items"):
        validation.counts([1, 2], items=3)
    with pytest.raises(AnswerError, match="2 entries for 3 items"):
        validation.frequencies([0.5, 0.5], items=3)


def test_input_errors_are_also_value_errors() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(InputError, FaircountError)

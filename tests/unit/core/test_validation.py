import math

import numpy as np
import pytest

from faircount.core import validation
from faircount.core.errors import AnswerError, FaircountError, InputError, ParameterError

NOT_NUMBERS = [None, "1", True, float("nan"), float("inf"), [1], 1j]


@pytest.mark.parametrize("value", [*NOT_NUMBERS, 1.0, -1, np.bool_(True)])
def test_integers(value: object) -> None:
    with pytest.raises(ParameterError, match="x must be"):
        validation.check_integer("x", value)


def test_integers_accept_numpy_and_bounds() -> None:
    assert validation.check_integer("x", np.int32(5), least=5, most=5) == 5
    with pytest.raises(ParameterError, match="between 1 and 4"):
        validation.check_integer("x", 5, least=1, most=4)


@pytest.mark.parametrize(
    ("check", "bad"),
    [
        (validation.check_positive, [0, -1]),
        (validation.check_probability, [0, 1.1, -0.1]),
        (validation.check_fraction, [0, 1]),
    ],
)
def test_reals(check, bad) -> None:  # type: ignore[no-untyped-def]
    for value in [*NOT_NUMBERS, *bad]:
        with pytest.raises(ParameterError, match="x must"):
            check("x", value)
    assert check("x", np.float32(0.5)) == 0.5


def test_epsilon_may_be_zero_and_not_negative() -> None:
    assert validation.check_epsilon(0) == 0
    with pytest.raises(ParameterError, match="negative"):
        validation.check_epsilon(-0.1)


@pytest.mark.parametrize("values", [[], [[1]], [-1, 2], [0, 0], [0.5, 1], [math.nan], ["a"], 3])
def test_counts(values: object) -> None:
    with pytest.raises(AnswerError):
        validation.check_counts(values)  # type: ignore[arg-type] # that is the point
    assert validation.check_counts([1.0, 2]).dtype == np.int64


@pytest.mark.parametrize("values", [[], [0.5], [-0.5, 1.5], [math.nan, 1], [[1.0]]])
def test_frequencies(values: list[float]) -> None:
    with pytest.raises(AnswerError):
        validation.check_frequencies(values)


def test_lengths_and_items() -> None:
    assert validation.check_same_length(a=[1, 2], b=[3, 4]) == 2
    with pytest.raises(ParameterError, match="a has 1, b has 2"):
        validation.check_same_length(a=[1], b=[3, 4])
    with pytest.raises(AnswerError, match="2 entries for 3 items"):
        validation.check_counts([1, 2], items=3)
    with pytest.raises(AnswerError, match="2 entries for 3 items"):
        validation.check_frequencies([0.5, 0.5], items=3)


def test_input_errors_are_also_value_errors() -> None:
    assert issubclass(InputError, ValueError)
    assert issubclass(InputError, FaircountError)


@pytest.mark.parametrize("users", [1, 3, 10, 100, 999, 1000, 12_345])
def test_a_share_of_users_loses_nobody_to_floating_point(users: int) -> None:
    """Shares with up to three digits and shares that are quotients are never one user off.

    0.29 * 100 is 28.999999999999996 and 0.07 * 100 is 7.000000000000001 in floating point.
    """
    for thousandths in range(1000):
        exact = -(-thousandths * users // 1000)
        assert validation.share_of_users("share", thousandths / 1000, users) == exact
    for some in range(min(users, 1000)):
        assert validation.share_of_users("share", some / users, users) == some


@pytest.mark.parametrize("share", [-0.1, 1.0, 1.5])
def test_a_share_of_users_lies_from_0_to_below_1(share: float) -> None:
    with pytest.raises(ParameterError, match="dropout is a share of the users"):
        validation.share_of_users("dropout", share, 10)


@pytest.mark.parametrize(
    "value", [10**400, -(10**5000), 10**5000], ids=["400 digits", "negative", "5000 digits"]
)
def test_numbers_that_no_float_holds_are_refused(value: int) -> None:
    with pytest.raises(ParameterError, match="x must be"):
        validation.check_real("x", value)


def test_messages_repeat_no_endless_value() -> None:
    for value in (10**5000, "x" * 10_000, list(range(10_000))):
        with pytest.raises(ParameterError) as caught:
            validation.check_integer("x", value, most=5)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "values",
    [[1e300, 1], [2**62] * 3, np.array([2**63], dtype=np.uint64), [[1, 2], [3]], [2**70, 1]],
    ids=str,
)
def test_counts_that_would_wrap_around_are_refused(values: object) -> None:
    with pytest.raises(AnswerError):
        validation.check_counts(values)  # type: ignore[arg-type] # that is the point


@pytest.mark.parametrize(
    "values", [["secret"], [[1, 2], [3]], {"a": 1}, [10**400], [1j]], ids=range(5)
)
def test_lists_that_are_no_numbers_are_refused_without_being_repeated(values: object) -> None:
    for check in (
        validation.check_frequencies,
        lambda values: validation.check_numbers("answers", values),
    ):
        with pytest.raises(AnswerError) as caught:
            check(values)  # type: ignore[operator] # that is the point
        assert "secret" not in str(caught.value)

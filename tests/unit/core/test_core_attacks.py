"""Input that once got past the checks, or stopped them with an error of Python's own."""

import numpy as np
import pytest

from faircount.core import validation
from faircount.core.domain import Domain
from faircount.core.errors import AnswerError, ParameterError


@pytest.mark.parametrize("value", [10**400, -(10**5000), 10**5000], ids=["400 digits", "negative", "5000 digits"])
def test_numbers_that_no_float_holds_are_refused(value: int) -> None:
    with pytest.raises(ParameterError, match="x must be"):
        validation.real("x", value)


def test_messages_repeat_no_endless_value() -> None:
    for value in (10**5000, "x" * 10_000, list(range(10_000))):
        with pytest.raises(ParameterError) as caught:
            validation.integer("x", value, most=5)
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "values", [[1e300, 1], [2**62] * 3, np.array([2**63], dtype=np.uint64), [[1, 2], [3]], [2**70, 1]], ids=str
)
def test_counts_that_would_wrap_around_are_refused(values: object) -> None:
    with pytest.raises(AnswerError):
        validation.counts(values)  # type: ignore[arg-type] # that is the point


@pytest.mark.parametrize("values", [["secret"], [[1, 2], [3]], {"a": 1}, [10**400], [1j]], ids=range(5))
def test_lists_that_are_no_numbers_are_refused_without_being_repeated(values: object) -> None:
    for check in (validation.frequencies, lambda each: validation.numbers("answers", each)):
        with pytest.raises(AnswerError) as caught:
            check(values)  # type: ignore[operator] # that is the point
        assert "secret" not in str(caught.value)


@pytest.mark.parametrize("items", [10**12, 10**400, np.array(3), [[1], [2]], [{"a"}, {"b"}]], ids=range(5))
def test_item_lists_that_once_hung_or_crashed_are_refused(items: object) -> None:
    with pytest.raises(ParameterError):
        Domain.of(items)  # type: ignore[arg-type] # that is the point

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.core.domain import Domain, escape_controls
from faircount.core.errors import AnswerError, FaircountError, ParameterError


@given(st.lists(st.text(max_size=5), min_size=2, max_size=8, unique=True), st.data())
def test_encode_is_the_position_in_the_list(labels: list[str], data: st.DataObject) -> None:
    answers = data.draw(st.lists(st.sampled_from(labels), min_size=1, max_size=20))
    positions = Domain.of(labels).encode(answers)
    assert [labels[j] for j in positions] == answers


def test_a_number_of_items_takes_whole_numbers() -> None:
    domain = Domain.of(3)
    assert domain.labels == (0, 1, 2)
    assert domain.encode(np.array([2, 0], dtype=np.uint8)).tolist() == [2, 0]
    assert domain.encode([2, 0]).tolist() == [2, 0]
    assert Domain.of(domain) == domain


@pytest.mark.parametrize("items", [0, 1, -3, "city", ["a"], ["a", "a"], 2.5, True, []])
def test_bad_item_lists_are_refused(items: object) -> None:
    with pytest.raises(ParameterError):
        Domain.of(items)  # type: ignore[arg-type] # that is the point


@pytest.mark.parametrize("items", [{"a", "b"}, frozenset({"a", "b"})], ids=["set", "frozenset"])
def test_a_set_is_refused_because_it_has_no_order(items: object) -> None:
    with pytest.raises(ParameterError, match="give a list"):
        Domain.of(items)  # type: ignore[arg-type] # that is the point


@pytest.mark.parametrize(
    "answers", [[], ["x"], [None], [["a"]], [float("nan")], np.array([["a"]]), 5]
)
def test_bad_answers_are_refused_without_being_repeated(answers: object) -> None:
    with pytest.raises(AnswerError) as caught:
        Domain.of(["a", "b"]).encode(answers)  # type: ignore[arg-type] # that is the point
    assert "'x'" not in str(caught.value)


def test_where_the_first_unknown_answer_stands_is_said() -> None:
    with pytest.raises(FaircountError, match=r"2 of 4 answers .* position 1"):
        Domain.of(["a", "b"]).encode(["a", "zebra", "b", "zebra"])


@pytest.mark.parametrize("missing", [None, float("nan"), " ", pd.NaT, pd.NA])
@pytest.mark.parametrize("kind", [list, pd.Series, iter])
def test_no_answer_is_called_that(missing: object, kind: Callable[[object], Any]) -> None:
    with pytest.raises(AnswerError, match=r"1 of 3 users have no answer \(first at position 1\)"):
        Domain.of(["a", "b"]).encode(kind(["a", missing, "zebra"]))


def test_a_numbered_list_says_which_numbers_it_holds() -> None:
    with pytest.raises(AnswerError, match=r"The items are the numbers 0 to 3\.$"):
        Domain.of(4).encode(["a", "b"])
    with pytest.raises(AnswerError, match="one of its items"):
        Domain.of(["a", "b"]).encode(["c"])


@given(st.text())
def test_labels_are_shown_without_anything_that_a_terminal_obeys(label: str) -> None:
    words = escape_controls(label)
    assert not any(
        character < " " or "\x7f" <= character < "\xa0" or "\u202a" <= character <= "\u202e"
        for character in words
    )
    assert escape_controls(words) == words


def test_ordinary_labels_are_shown_as_they_are() -> None:
    for label in ("Zürich", "東京", "a b\\n", "👩\u200d🚀", "می\u200cخواهم", "\xa0", 7):
        assert escape_controls(label) == str(label)
    assert escape_controls("a\x1b[0m\n\x9b\u2028") == r"a\x1b[0m\n\x9b\u2028"


@pytest.mark.parametrize(
    "items", [10**12, 10**400, np.array(3), [[1], [2]], [{"a"}, {"b"}]], ids=range(5)
)
def test_item_lists_that_once_hung_or_crashed_are_refused(items: object) -> None:
    with pytest.raises(ParameterError):
        Domain.of(items)  # type: ignore[arg-type] # that is the point

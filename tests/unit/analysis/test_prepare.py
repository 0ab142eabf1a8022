"""The rules by which cells become answers."""

import datetime
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.analysis.prepare import ROWS_ARE_PEOPLE, Prepared, Rules, first_rows, is_missing, prepare, text_of
from faircount.core.errors import AnswerError, ParameterError, RefusedError

NOTHING = [None, "", "  ", math.nan, float("nan"), np.float64("nan"), pd.NA, pd.NaT, np.datetime64("NaT")]


def encoded(answers: list[Any], items: Any, **rules: Any) -> Prepared:
    return prepare(answers, items=items, rules=Rules(**rules))


@pytest.mark.parametrize("cell", NOTHING, ids=repr)
def test_missing_values_are_known_in_every_form(cell: object) -> None:
    assert is_missing(cell)
    with pytest.raises(AnswerError, match="1 of 3 users have no answer"):
        encoded(["a", cell, "b"], ["a", "b"])


@pytest.mark.parametrize("cell", ["NaN", "NA", "null", 0, 0.0, False, "0", pd.Timestamp("2024-01-01")], ids=repr)
def test_these_are_answers(cell: object) -> None:
    assert not is_missing(cell)


def test_answers_are_compared_as_text() -> None:
    cells: list[Any] = [" Paris", "Paris ", "Cafe\u0301", "Caf\u00e9", 1, 1.0, "1", np.int64(1), Decimal(1)]
    found = encoded(cells, ["Paris", "Caf\u00e9", 1])
    assert found.positions.tolist() == [0, 0, 1, 1, 2, 2, 2, 2, 2]
    assert found.domain.labels == ("Paris", "Caf\u00e9", 1)


def test_truth_and_one_are_not_the_same_answer() -> None:
    assert encoded([True, 1, 1.0, False, 0], ["True", "False", "1", "0"]).positions.tolist() == [0, 2, 2, 1, 3]


def test_upper_case_is_another_answer() -> None:
    with pytest.raises(AnswerError, match="1 of 2 users have an answer outside the list"):
        encoded(["a", "A"], ["a", "b"])


def test_refusals_say_how_many_and_what_to_do() -> None:
    with pytest.raises(AnswerError, match=r"2 of 4 users .* outside .*--other ITEM.*--outside drop"):
        encoded(["a", "x", "y", "b"], ["a", "b"])
    with pytest.raises(AnswerError, match=r"1 of 3 users .* no answer.*--missing other"):
        encoded(["a", "", "b"], ["a", "b"])


def test_left_out_answers_become_a_condition() -> None:
    found = encoded(["a", "x", "", "b"], ["a", "b"], outside="drop", missing="drop")
    assert found.positions.tolist() == [0, 1]
    assert found.kept.tolist() == [0, 3]
    dropped = ("it is public who has no answer", "it is public who has an answer outside the list")
    assert found.assumed == (*dropped, ROWS_ARE_PEOPLE)


def test_answers_counted_as_another_item_need_no_condition() -> None:
    found = encoded(["a", "x", "", "b"], ["a", "b", "rest"], outside="other", missing="other", other="rest")
    assert found.positions.tolist() == [0, 2, 2, 1]
    assert found.assumed == (ROWS_ARE_PEOPLE,)
    with pytest.raises(ParameterError, match="not on the list"):
        encoded(["a", "x"], ["a", "b"], outside="other", other="rest")
    with pytest.raises(ParameterError, match="name it"):
        encoded(["a", "x"], ["a", "b"], outside="other")


@given(st.lists(st.sampled_from(["a", "b", "x", "", None]), min_size=1))
def test_what_is_noted_does_not_depend_on_the_answers(cells: list[Any]) -> None:
    """A note goes out with the result, so it may not count answers, nor tell whether there were any."""
    rules = {"missing": "other", "outside": "other", "other": "rest"}
    some, none = encoded(cells, ["a", "b", "rest"], **rules), encoded(["a"], ["a", "b", "rest"], **rules)
    assert (some.notes, some.assumed) == (none.notes, none.assumed)


def test_the_first_row_of_a_user_counts() -> None:
    users = ["u", "v", " u", 3, "3", 3.0]
    assert first_rows(users).tolist() == [0, 1, 3]
    found = prepare(["a", "b", "b", "a", "b", "b"], items=["a", "b"], users=users)
    assert found.positions.tolist() == [0, 1, 0]
    assert found.notes == ("of users with several rows the first counts",)
    with pytest.raises(AnswerError, match="no user"):
        prepare(["a", "b"], items=["a", "b"], users=["u", ""])


def test_a_later_row_does_not_stand_in_for_a_missing_first_one() -> None:
    found = prepare(["", "b", "a"], items=["a", "b"], users=["u", "u", "v"], rules=Rules(missing="drop"))
    assert found.kept.tolist() == [2]


def test_a_list_from_the_answers_must_be_asked_for() -> None:
    with pytest.raises(RefusedError, match="gives away"):
        prepare(["a", "b"], items=None)
    found = prepare(["b", "a", "é", ""], items=None, from_data=True, rules=Rules(missing="drop"))
    assert found.domain.labels == ("a", "b", "é")
    assert found.assumed[0] == "the list of items is public (it was taken from the answers)"
    with pytest.raises(AnswerError, match="1 different item:"):
        prepare(["a", "a"], items=None, from_data=True)
    with pytest.raises(ParameterError, match="not both"):
        prepare(["a", "a"], items=["a", "b"], from_data=True)


@pytest.mark.parametrize(
    ("items", "words"),
    [
        (["a"], "at least 2 items"),
        (["a", "a"], "distinct"),
        (["a", " a"], "read alike"),
        ([1, "1"], "read alike"),
        (["a", " "], "blank"),
        ("abc", "not one string"),
    ],
    ids=str,
)
def test_bad_lists_are_refused(items: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        encoded(["a"], items)


def test_a_number_of_items_stands_for_labels_from_zero() -> None:
    assert encoded([0, 2, "1"], 3).positions.tolist() == [0, 2, 1]


def test_cells_that_are_lists_are_refused() -> None:
    for cell in ([1, 2], {"a": 1}, np.array([1, 2])):
        with pytest.raises(AnswerError, match="single values"):
            encoded(["a", cell], ["a", "b"])


def test_nobody_left_is_an_error() -> None:
    with pytest.raises(AnswerError, match="no user has an answer"):
        encoded(["x", "y"], ["a", "b"], outside="drop")


def test_unknown_rules_are_refused() -> None:
    with pytest.raises(ParameterError, match="missing must be one of refuse, drop, other"):
        Rules(missing="ignore")


@given(st.text())
def test_reading_a_text_twice_changes_nothing(text: str) -> None:
    assert text_of(text_of(text)) == text_of(text)


@pytest.mark.parametrize(
    ("cells", "items", "words"),
    [
        (["a", "ALPHA", "Beta"], ["a", "alpha", "beta"], "2 of them differ from an item only in upper and lower case"),
        (["20.0", "20", "30"], [20, 30], "1 of them are the same number as an item"),
        (["1,50", "2"], ["1.5", "2"], "1 of them are the same number as an item"),
        (["NA", "null", "x", "a"], ["a", "b"], "2 of them look like no answer"),
        ([pd.Timestamp("2024-01-01"), "2024-01-02"], ["2024-01-01", "2024-01-02"], "1 of them are dates"),
        ([datetime.date(2024, 1, 1), "b"], ["1.1.2024", "b"], "1 of them are dates, and the items are text"),
    ],
)
def test_refusals_say_why_without_repeating_an_answer(cells: list[Any], items: list[Any], words: str) -> None:
    with pytest.raises(AnswerError, match="outside the list") as refusal:
        encoded(cells, items)
    assert words in str(refusal.value)
    for each in ("ALPHA", "1,50"):
        assert each not in str(refusal.value)


def test_a_refusal_without_a_likely_reason_names_none() -> None:
    with pytest.raises(AnswerError) as refusal:
        encoded(["x", "b"], ["a", "b"])
    assert "of them" not in str(refusal.value)


def test_spellings_of_no_answer_are_named_by_the_analyst() -> None:
    found = encoded(["a", "NA", " n/a", None, "b"], ["a", "b"], missing="drop", spellings=("NA", "n/a "))
    assert found.positions.tolist() == [0, 1]
    with pytest.raises(AnswerError, match="2 of 3 users have no answer"):
        encoded(["a", "NA", ""], ["a", "b"], spellings=("NA",))
    with pytest.raises(ParameterError, match="is an item of the list"):
        encoded(["a"], ["a", "NA"], spellings=("NA",))


def test_a_list_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "items.txt"
    path.write_text('\ufeffZürich\n\n "Brook", Lower \n', encoding="utf-8")
    for given_list in (path, f"@{path}"):
        found = encoded(["Zürich"], given_list)
        assert found.domain.labels == ("Zürich", '"Brook", Lower')
    with pytest.raises(AnswerError, match="cannot be opened"):
        encoded(["a"], tmp_path / "nothing.txt")


def test_a_list_from_categories() -> None:
    column = pd.Series(["b", "a"], dtype=pd.CategoricalDtype(["a", "b", "never"]))
    for given_list in (column, column.dtype, column.array, column.cat.categories):
        assert encoded(["a"], given_list).domain.labels == ("a", "b", "never")
    assert encoded(["a"], pd.Series(["a", "b"])).domain.labels == ("a", "b")

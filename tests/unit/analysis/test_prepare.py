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

from faircount.accounting.conditions import ROWS_ARE_PEOPLE, ConditionCode, condition_of
from faircount.analysis.cells import text_of
from faircount.analysis.prepare import (
    Prepared,
    Rules,
    first_rows,
    prepare,
)
from faircount.core.domain import is_missing
from faircount.core.errors import AnswerError, ParameterError, RefusedError

NOTHING = [
    None,
    "",
    "  ",
    math.nan,
    float("nan"),
    np.float64("nan"),
    pd.NA,
    pd.NaT,
    np.datetime64("NaT"),
]


def encode(answers: list[Any], items: Any, **rules: Any) -> Prepared:
    return prepare(answers, items=items, rules=Rules(**rules))


def test_a_set_of_items_is_refused_because_it_has_no_order() -> None:
    with pytest.raises(ParameterError, match="domain: give the items as a list"):
        encode(["a", "b"], {"a", "b"})


@pytest.mark.parametrize("cell", NOTHING, ids=repr)
def test_missing_values_are_known_in_every_form(cell: object) -> None:
    assert is_missing(cell)
    with pytest.raises(AnswerError, match="1 of 3 users have no answer"):
        encode(["a", cell, "b"], ["a", "b"])


@pytest.mark.parametrize(
    "cell", ["NaN", "NA", "null", 0, 0.0, False, "0", pd.Timestamp("2024-01-01")], ids=repr
)
def test_these_are_answers(cell: object) -> None:
    assert not is_missing(cell)


def test_answers_are_compared_as_text() -> None:
    cells: list[Any] = [
        " Paris",
        "Paris ",
        "Cafe\u0301",
        "Caf\u00e9",
        1,
        1.0,
        "1",
        np.int64(1),
        Decimal(1),
    ]
    found = encode(cells, ["Paris", "Caf\u00e9", 1])
    assert found.positions.tolist() == [0, 0, 1, 1, 2, 2, 2, 2, 2]
    assert found.domain.labels == ("Paris", "Caf\u00e9", 1)


def test_truth_and_one_are_not_the_same_answer() -> None:
    assert encode([True, 1, 1.0, False, 0], ["True", "False", "1", "0"]).positions.tolist() == [
        0,
        2,
        2,
        1,
        3,
    ]


def test_upper_case_is_another_answer() -> None:
    with pytest.raises(AnswerError, match="1 of 2 users have an answer outside the list"):
        encode(["a", "A"], ["a", "b"])


def test_refusals_say_how_many_and_what_to_do() -> None:
    with pytest.raises(
        AnswerError, match=r"2 of 4 users .* outside .*--other ITEM.*--outside drop"
    ):
        encode(["a", "x", "y", "b"], ["a", "b"])
    with pytest.raises(AnswerError, match=r"1 of 3 users .* no answer.*--missing other"):
        encode(["a", "", "b"], ["a", "b"])


def test_left_out_answers_become_a_condition() -> None:
    found = encode(["a", "x", "", "b"], ["a", "b"], outside="drop", missing="drop")
    assert found.positions.tolist() == [0, 1]
    assert found.kept.tolist() == [0, 3]
    dropped = condition_of(ConditionCode.PUBLIC_MISSING), condition_of(ConditionCode.PUBLIC_OUTSIDE)
    assert found.conditions == (*dropped, ROWS_ARE_PEOPLE)


def test_answers_counted_as_another_item_need_no_condition() -> None:
    found = encode(
        ["a", "x", "", "b"], ["a", "b", "rest"], outside="other", missing="other", other="rest"
    )
    assert found.positions.tolist() == [0, 2, 2, 1]
    assert found.conditions == (ROWS_ARE_PEOPLE,)
    with pytest.raises(ParameterError, match="not on the list"):
        encode(["a", "x"], ["a", "b"], outside="other", other="rest")
    with pytest.raises(ParameterError, match="name the item"):
        encode(["a", "x"], ["a", "b"], outside="other")


@given(st.lists(st.sampled_from(["a", "b", "x", "", None]), min_size=1))
def test_what_is_noted_does_not_depend_on_the_answers(cells: list[Any]) -> None:
    """Notes are published, so they may not count answers, nor reveal whether there were any."""
    rules = {"missing": "other", "outside": "other", "other": "rest"}
    some = encode(cells, ["a", "b", "rest"], **rules)
    none = encode(["a"], ["a", "b", "rest"], **rules)
    assert some.notes == none.notes
    assert some.conditions == none.conditions


def test_the_first_row_of_a_user_counts() -> None:
    users = ["u", "v", " u", 3, "3", 3.0]
    assert first_rows(users).tolist() == [0, 1, 3]
    answers = ["a", "b", "b", "a", "b", "b"]
    first = Rules(repeated="first")
    found = prepare(answers, items=["a", "b"], users=users, rules=first)
    assert found.positions.tolist() == [0, 1, 0]
    assert found.notes == ("of users with several rows, only the first row counts",)
    with pytest.raises(AnswerError, match="no user"):
        prepare(["a", "b"], items=["a", "b"], users=["u", ""])


def test_a_later_row_does_not_stand_in_for_a_missing_first_one() -> None:
    found = prepare(
        ["", "b", "a"],
        items=["a", "b"],
        users=["u", "u", "v"],
        rules=Rules(missing="drop", repeated="first"),
    )
    assert found.kept.tolist() == [2]


def test_several_answers_of_a_person_are_refused_and_not_cut_to_the_first() -> None:
    """The rows of a choose-all question: only the first tick of everybody was counted."""
    answers = ["tea", "coffee", "tea", "coffee", ""]
    users = ["u", "u", "v", "w", "w"]
    with pytest.raises(AnswerError, match=r"2 of 3 users have several rows with different.*first"):
        prepare(answers, items=["tea", "coffee"], users=users, rules=Rules(missing="drop"))
    with pytest.raises(ParameterError, match="repeated must be one of refuse, first"):
        Rules(repeated="last")


def test_several_rows_are_noted_only_where_there_are_some() -> None:
    once = prepare(["a", "b"], items=["a", "b"], users=["u", "v"])
    assert once.notes == ()
    twice = prepare(["a", "b", " a"], items=["a", "b"], users=["u", "v", "u"])
    assert twice.notes == ("of users with several rows, only the first row counts",)
    assert twice.positions.tolist() == [0, 1]


def test_naming_the_item_for_other_answers_is_enough() -> None:
    """In Python `other` alone was ignored, and the answers were refused."""
    found = encode(["a", "x"], ["a", "rest"], other="rest")
    assert found.positions.tolist() == [0, 1]
    with pytest.raises(ParameterError, match="no answers count as 'rest'"):
        encode(["a", "x"], ["a", "rest"], other="rest", outside="drop")


def test_a_list_from_the_answers_must_be_asked_for() -> None:
    with pytest.raises(RefusedError, match="reveals that somebody gave"):
        prepare(["a", "b"], items=None)
    found = prepare(["b", "a", "é", ""], items=None, from_data=True, rules=Rules(missing="drop"))
    assert found.domain.labels == ("a", "b", "é")
    assert str(found.conditions[0]) == "the list of items is public (it was taken from the answers)"
    with pytest.raises(AnswerError, match="fewer than 2 different answers"):
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
        ("abc", "there is no file 'abc'.*a list of items"),
        (pd.CategoricalDtype(), "the categorical dtype has no categories yet"),
        (2.5, "items must be"),
        (np.array(3.5), "items must be"),
    ],
    ids=str,
)
def test_bad_lists_are_refused(items: Any, words: str) -> None:
    with pytest.raises(ParameterError, match=words):
        encode(["a"], items)


def test_a_number_of_items_stands_for_labels_from_zero() -> None:
    assert encode([0, 2, "1"], 3).positions.tolist() == [0, 2, 1]
    assert encode([0, 2, "1"], np.int64(3)).positions.tolist() == [0, 2, 1]
    with pytest.raises(AnswerError, match=r"outside the list\. The items are the numbers 0 to 3\."):
        encode(["a", "b"], 4)


def test_the_answers_are_not_taken_for_the_list_of_items() -> None:
    repeated = pd.Series(["a", "b", "a"])
    distinct = pd.Series(["a", "b", "c"])
    for column in (repeated, repeated.tolist(), repeated.to_numpy(), distinct):
        with pytest.raises(ParameterError, match="these are the answers, not the list"):
            encode(list(column), column)
    with pytest.raises(ParameterError, match="these are the answers, not the list"):
        encode(["a", "b", None, "a"], repeated)
    assert encode(["a", "b"], ["a", "b"]).positions.tolist() == [0, 1]


def test_cells_that_are_lists_are_refused() -> None:
    for cell in ([1, 2], {"a": 1}, np.array([1, 2])):
        with pytest.raises(AnswerError, match="single values"):
            encode(["a", cell], ["a", "b"])


def test_nobody_left_is_an_error() -> None:
    with pytest.raises(AnswerError, match="no user has an answer"):
        encode(["x", "y"], ["a", "b"], outside="drop")


def test_unknown_rules_are_refused() -> None:
    with pytest.raises(ParameterError, match="missing must be one of refuse, drop, other"):
        Rules(missing="ignore")


@given(st.text())
def test_reading_a_text_twice_changes_nothing(text: str) -> None:
    assert text_of(text_of(text)) == text_of(text)


@pytest.mark.parametrize(
    ("cells", "items", "words"),
    [
        (
            ["a", "ALPHA", "Beta"],
            ["a", "alpha", "beta"],
            "2 of them differ from an item only in upper and lower case",
        ),
        (["20.0", "20", "30"], [20, 30], "1 of them are the same number as an item"),
        (["1,50", "2"], ["1.5", "2"], "1 of them are the same number as an item"),
        (["NA", "null", "x", "a"], ["a", "b"], "2 of them look like a missing answer"),
        (
            [pd.Timestamp("2024-01-01"), "2024-01-02"],
            ["2024-01-01", "2024-01-02"],
            "1 of them are dates",
        ),
        (
            [datetime.date(2024, 1, 1), "b"],
            ["1.1.2024", "b"],
            "1 of them are dates, but the items are text",
        ),
        ([True, False, "yes"], ["yes", "no"], "2 of them are true or false, but the items are not"),
        (["x"], ["a", "b"], "In pandas, set(df[column]) - set(domain) shows them"),
    ],
)
def test_refusals_say_why_without_repeating_an_answer(
    cells: list[Any], items: list[Any], words: str
) -> None:
    with pytest.raises(AnswerError, match="outside the list") as refusal:
        encode(cells, items)
    assert words in str(refusal.value)
    for answer in ("ALPHA", "1,50"):
        assert answer not in str(refusal.value)


def test_a_refusal_without_a_likely_reason_names_none() -> None:
    with pytest.raises(AnswerError) as refusal:
        encode(["x", "b"], ["a", "b"])
    assert "of them" not in str(refusal.value)


def test_spellings_of_no_answer_are_named_by_the_analyst() -> None:
    found = encode(
        ["a", "NA", " n/a", None, "b"], ["a", "b"], missing="drop", spellings=("NA", "n/a ")
    )
    assert found.positions.tolist() == [0, 1]
    with pytest.raises(AnswerError, match="2 of 3 users have no answer"):
        encode(["a", "NA", ""], ["a", "b"], spellings=("NA",))
    with pytest.raises(ParameterError, match="is an item of the list"):
        encode(["a"], ["a", "NA"], spellings=("NA",))


def test_one_text_is_one_spelling_of_no_answer() -> None:
    found = encode(["a", "n", "n/a"], ["a", "n"], missing="drop", spellings="n/a")
    assert found.positions.tolist() == [0, 1]


def test_a_list_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "items.txt"
    path.write_text('\ufeffZürich\n\n "Brook", Lower \n', encoding="utf-8")
    for given_list in (path, f"@{path}", str(path)):
        found = encode(["Zürich"], given_list)
        assert found.domain.labels == ("Zürich", '"Brook", Lower')
    with pytest.raises(AnswerError, match="cannot be opened"):
        encode(["a"], tmp_path / "nothing.txt")
    with pytest.raises(AnswerError, match="cannot be opened"):
        encode(["a"], f"@{tmp_path / 'nothing.txt'}")


def test_a_list_from_categories() -> None:
    column = pd.Series(["b", "a"], dtype=pd.CategoricalDtype(["a", "b", "never"]))
    for given_list in (column, column.dtype, column.array, column.cat.categories):
        assert encode(["a"], given_list).domain.labels == ("a", "b", "never")
    assert encode(["a"], pd.Series(["a", "b"])).domain.labels == ("a", "b")

"""Answers become the sheet that they mean, or an error that names the question and no answer."""

from fractions import Fraction
from typing import Any

import pytest

from faircount.client.answers import describe_answer, read_sheet
from faircount.core.errors import AnswerError
from faircount.core.questions import Questionnaire
from faircount.core.questions.form import make_form

FIELDS: list[dict[str, Any]] = [
    {"kind": "one", "text": "Which site?", "items": ["North", "South", "East"], "skip": True},
    {"kind": "yes", "text": "Recommend us?"},
    {"kind": "any", "text": "What do you use?", "items": ["a", "b", "c"], "skip": True},
    {"kind": "most", "text": "Best two?", "items": ["x", "y", "z"], "most": 2},
    {"kind": "number", "text": "How tall?", "low": 1, "high": 2.5, "step": 0.1},
    {"kind": "number", "text": "How old?", "bands": [0, 18, 65, 120], "skip": True},
    {"kind": "scale", "text": "Happy?", "items": ["1", "2", "3"], "open": "mean"},
    {
        "kind": "table",
        "text": ["Shift?", "Day?"],
        "rows": ["early", "late"],
        "columns": ["Mo", "Tu", "We"],
    },
    {
        "kind": "one",
        "text": "Why not?",
        "items": ["pay", "work"],
        "only_if": {"question": 2, "items": ["no"]},
    },
]
ALL = make_form(FIELDS).questionnaire
GOOD = ["South", "yes", ["a", "c"], ["z"], 1.8, 40, "2", ["late", "We"], None]


def one(**fields: Any) -> Questionnaire:
    return make_form(
        [{"kind": "one", "text": "Which?", "items": ["a", "b"], **fields}]
    ).questionnaire


def test_a_list_in_order() -> None:
    assert read_sheet(ALL, GOOD) == (1, 1, (0, 2), (2,), 8, 1, 1, 5, 2)


@pytest.mark.parametrize(
    ("number", "given", "answer"),
    [
        (1, 2, 2),
        (1, None, 3),
        (1, "prefer not to say", 3),
        (2, True, 1),
        (2, False, 0),
        (3, [], ()),
        (3, None, None),
        (3, {"b", "a"}, (0, 1)),
        (3, "b", (1,)),
        (4, [0, 2], (0, 2)),
        (5, "2.5", 15),
        (5, Fraction(1), 0),
        (6, 17.999, 0),
        (6, 18, 1),
        (6, "65 to 120", 2),
        (6, None, 3),
        (7, 3, 2),
        (7, "1", 0),
        (8, ("early", "Mo"), 0),
        (8, "late / Tu", 4),
        (8, 5, 5),
    ],
)
def test_every_way_to_write_an_answer(number: int, given: Any, answer: Any) -> None:
    sheet = read_sheet(ALL, {**dict(enumerate(GOOD, 1)), number: given} | _reason(number, given))
    assert sheet[number - 1] == answer


def _reason(number: int, given: Any) -> dict[int, Any]:
    """The last question is asked of those who would not recommend us."""
    return {9: "pay"} if number == 2 and given is False else {}


@pytest.mark.parametrize(
    ("number", "given"),
    [
        (1, "north"),
        (1, 3),
        (1, -1),
        (1, 1.0),
        (1, True),
        (1, ["North"]),
        (2, None),
        (2, 2),
        (3, ["a", "a"]),
        (3, ["d"]),
        (3, 1),
        (4, ["x", "y", "z"]),
        (4, None),
        (5, 1.85),
        (5, 2.6),
        (5, "much"),
        (5, True),
        (5, float("nan")),
        (5, float("inf")),
        (5, "1e999999999"),
        (5, "1/0"),
        (5, "9" * 5000),
        (6, 121),
        (6, [40]),
        (7, 0),
        (7, "4"),
        (8, "late"),
        (8, ["late"]),
        (8, ["late", "Th"]),
        (1, {"a": 1}),
        (3, [["a"]]),
    ],
)
def test_what_is_not_offered_is_refused_without_repeating_it(number: int, given: Any) -> None:
    answers = {**dict(enumerate(GOOD, 1)), number: given}
    with pytest.raises(AnswerError) as problem:
        read_sheet(ALL, answers)
    text = str(problem.value)
    asked = ALL.questions[number - 1].text
    assert text.startswith(f"question {number} ({asked!r}): the answer must be ")
    if isinstance(given, str) and given != "late":
        assert given not in text.replace("the 4 ", "")


def test_texts_numbers_and_translations_name_a_question() -> None:
    named = {question["text"]: answer for question, answer in zip(FIELDS[:7], GOOD, strict=False)}
    named |= {"Shift? / Day?": ["late", "We"]}
    assert read_sheet(ALL, named) == read_sheet(ALL, GOOD)
    for name in ("Which?", 0, 10, "10", None, 1.5, "which site?"):
        with pytest.raises(AnswerError, match="there is no such question: name every question"):
            read_sheet(ALL, {**named, name: "x"})
    with pytest.raises(AnswerError, match=r"question 1 \('Which site\?'\): there are two answers"):
        read_sheet(ALL, {**named, 1: "North"})
    twice = make_form([FIELDS[1], FIELDS[1]]).questionnaire
    with pytest.raises(AnswerError, match="several questions have this text"):
        read_sheet(twice, {"Recommend us?": "yes"})
    assert read_sheet(twice, {1: "yes", 2: "no"}) == (1, 0)


def test_a_question_called_like_a_number_is_found_by_its_text() -> None:
    years = make_form(
        [
            {"kind": "yes", "text": "2"},
            {"kind": "yes", "text": "1"},
        ]
    ).questionnaire
    assert read_sheet(years, {"1": "yes", "2": "no"}) == (0, 1)
    assert read_sheet(years, {1: "yes", 2: "no"}) == (1, 0)


def test_who_is_not_asked_leaves_the_question_out() -> None:
    answers = dict(enumerate(GOOD, 1))
    del answers[9]
    assert read_sheet(ALL, answers)[8] == 2
    assert read_sheet(ALL, {**answers, 9: "does not apply"})[8] == 2
    with pytest.raises(AnswerError, match="is not asked after your answer to question 2: leave it"):
        read_sheet(ALL, {**answers, 9: "pay"})
    with pytest.raises(AnswerError, match=r"question 9 .*: there is no answer; it must be one of"):
        read_sheet(ALL, {**answers, 2: "no"})
    assert read_sheet(ALL, {**answers, 2: "no", 9: "pay"})[8] == 0
    # Asked, but with the answer of those who are not.
    with pytest.raises(AnswerError, match=r"question 9"):
        read_sheet(ALL, {**answers, 2: "no", 9: "does not apply"})


def test_an_answer_that_is_left_out_is_no_refusal_to_say() -> None:
    answers = dict(enumerate(GOOD, 1))
    del answers[1]
    with pytest.raises(AnswerError, match="or None for 'prefer not to say'"):
        read_sheet(ALL, answers)


def test_one_question_needs_no_dictionary_and_no_number() -> None:
    assert read_sheet(one(), "b") == read_sheet(one(), ["b"]) == read_sheet(one(), {1: "b"}) == (1,)
    several = make_form([FIELDS[2]]).questionnaire
    assert read_sheet(several, ["a", "b"]) == ((0, 1),)
    assert read_sheet(several, ["a"]) == ((0,),)
    with pytest.raises(
        AnswerError, match=r"^the answer must be one of the 2 items that the survey"
    ):
        read_sheet(one(), "c")
    with pytest.raises(AnswerError, match="give a dictionary of questions and answers"):
        read_sheet(ALL, "South")
    with pytest.raises(AnswerError, match="give 9 answers, one per question"):
        read_sheet(ALL, GOOD[:-1])


def test_items_that_are_numbers_are_never_taken_for_positions() -> None:
    numbers = one(items=["10", "2", "1"])
    assert read_sheet(numbers, 1) == (2,)
    with pytest.raises(AnswerError):
        read_sheet(numbers, 0)
    # 1 and "1" may be told apart only where one of them is an item.
    assert read_sheet(one(items=["x", "1"]), 1) == (1,)


def test_a_text_that_is_two_pairs_of_a_table_is_not_guessed() -> None:
    asked = {"rows": ["a", "a / b"], "columns": ["b / c", "c"]}
    table = make_form([{"kind": "table", "text": ["One?", "Two?"], **asked}]).questionnaire
    assert read_sheet(table, "a / c") == (1,)
    assert read_sheet(table, ["a / b", "c"]) == (3,)
    with pytest.raises(AnswerError, match="a pair of one of"):
        read_sheet(table, "a / b / c")


def test_answers_in_words_are_what_was_meant() -> None:
    words = [
        describe_answer(question, answer)
        for question, answer in zip(ALL.questions, read_sheet(ALL, GOOD), strict=True)
    ]
    assert words == [
        "South",
        "yes",
        "a, c",
        "z",
        "1.8",
        "18 to below 65",
        "2",
        "late / We",
        "does not apply",
    ]
    skipped = read_sheet(ALL, [None, "no", None, [], 1, None, "1", 0, "pay"])
    texts = [
        describe_answer(question, answer)
        for question, answer in zip(ALL.questions, skipped, strict=True)
    ]
    assert texts[0] == texts[2] == texts[5] == "prefer not to say"
    assert texts[3] == "none of them"

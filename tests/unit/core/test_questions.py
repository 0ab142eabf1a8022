"""Questions as bits, constraints and cells: every pattern of bits of small questions is tried."""

from collections.abc import Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from faircount.core.errors import AnswerError, ParameterError
from faircount.core.questions import (
    AnyOf,
    Bands,
    Block,
    BlockKind,
    Constraint,
    MostOf,
    Number,
    OneOf,
    Question,
    QuestionGroup,
    Questionnaire,
    ScaleCounts,
    ScaleMean,
    Table,
    YesNo,
)
from faircount.core.questions.blocks import number_bits, number_weights, weighted_sum
from faircount.core.questions.form import make_form, read_form

ABC = ("a", "b", "c")


def subsets(size: int, most: int) -> list[tuple[int, ...]]:
    chosen = [
        tuple(place for place in range(size) if bits[place])
        for bits in product((0, 1), repeat=size)
    ]
    return [answer for answer in chosen if len(answer) <= most]


# A question, and all of its canonical answers.
QUESTIONS: list[tuple[Question, Sequence[object]]] = [
    (OneOf(text="q", items=ABC), [0, 1, 2]),
    (OneOf(text="q", items=ABC, skip=True), [0, 1, 2, 3]),
    (OneOf(text="q", items=("a", "b")), [0, 1]),
    (YesNo(text="q"), [0, 1]),
    (YesNo(text="q", skip=True), [0, 1, 2]),
    (AnyOf(text="q", items=ABC), subsets(3, 3)),
    (AnyOf(text="q", items=ABC, skip=True), [None, *subsets(3, 3)]),
    (MostOf(text="q", items=(*ABC, "d"), most=2), subsets(4, 2)),
    (MostOf(text="q", items=(*ABC, "d"), most=3, skip=True), [None, *subsets(4, 3)]),
    (ScaleCounts(text="q", items=ABC), [0, 1, 2]),
    (ScaleMean(text="q", items=(*ABC, "d", "e", "f")), range(6)),
    (ScaleMean(text="q", items=(*ABC, "d"), skip=True), [None, *range(4)]),
    (Number(text="q", low=0, high=10), range(11)),
    (Number(text="q", low=-1, high=2, step=Fraction(1, 2), skip=True), [None, *range(7)]),
    (Bands(text="q", edges=(0, 10, 20, 50)), [0, 1, 2]),
    (Table(text="r", columns_text="c", rows=("a", "b"), columns=ABC), range(6)),
]


@pytest.mark.parametrize(("question", "answers"), QUESTIONS, ids=lambda value: str(value)[:40])
def test_exactly_the_answers_are_valid_bits_and_the_cells_are_theirs(
    question: Question, answers: Sequence[object]
) -> None:
    """All patterns of bits: valid ones open to the cells of an answer, and every answer is one."""
    form = Questionnaire((question,))
    encoded = [form.encode([answer]) for answer in answers]
    valid = {bits for bits in product((0, 1), repeat=question.bits) if form.is_valid(bits)}
    assert set(encoded) <= valid
    assert {form.cells_from_bits(bits) for bits in valid} == {
        form.cells_from_bits(bits) for bits in encoded
    }
    # Different answers open to different cells, so that nothing is lost.
    assert len({form.cells_from_bits(bits) for bits in encoded}) == len(list(answers))
    assert (
        len(form.cells_from_bits(encoded[0]))
        == question.cells
        == sum(b.cells for b in question.blocks)
    )


@pytest.mark.parametrize(("question", "answers"), QUESTIONS, ids=lambda value: str(value)[:40])
def test_a_modulus_that_is_large_enough_admits_no_other_bits(
    question: Question, answers: Sequence[object]
) -> None:
    constraint = question.constraint
    if constraint is None:
        return
    for modulus in range(constraint.least_modulus, constraint.least_modulus + 3):
        for bits in product((0, 1), repeat=question.bits):
            total = weighted_sum(constraint.weights, bits) - constraint.value
            assert (total % modulus == 0) == constraint.is_met(bits)
    with pytest.raises(ParameterError, match="wrap around"):
        Questionnaire((question,)).check_modulus(constraint.least_modulus - 1)


def test_weights_that_wrap_around_admit_a_false_report() -> None:
    """2a + 3b + 4c = 2 modulo 7 holds for b and c: the condition refuses this modulus."""
    wrapping = Constraint(((0, 2), (1, 3), (2, 4)), 2)
    assert weighted_sum(wrapping.weights, (0, 1, 1)) % 7 == 0
    assert wrapping.least_modulus == 8
    with pytest.raises(ParameterError, match="at least 8, not 7"):
        wrapping.check_modulus(7)


def test_slack_that_fills_up_to_a_power_of_two_would_admit_too_many_items() -> None:
    """With slack 0..3 and the value 3, three items pass where two are allowed."""
    items = tuple((bit, 1) for bit in range(4))
    planted = Constraint((*items, (4, 1), (5, 2)), 3)
    assert planted.is_met((1, 1, 1, 0, 0, 0))
    question = MostOf(text="q", items=(*ABC, "d"), most=2)
    assert question.constraint == Constraint((*items, (4, 1), (5, 1)), 2)


@pytest.mark.parametrize(
    ("largest", "weights"),
    [(1, (1,)), (2, (1, 1)), (3, (1, 2)), (5, (1, 2, 2)), (6, (1, 2, 3)), (7, (1, 2, 4)),
     (10, (1, 2, 4, 3)), (100, (1, 2, 4, 8, 16, 32, 37))],
)  # fmt: skip
def test_the_weights_of_numbers(largest: int, weights: tuple[int, ...]) -> None:
    assert number_weights(largest) == weights
    sums = {
        sum(w * b for w, b in zip(weights, bits, strict=True))
        for bits in product((0, 1), repeat=len(weights))
    }
    assert sums == set(range(largest + 1))
    for number in range(largest + 1):
        bits = number_bits(number, largest)
        assert sum(w * b for w, b in zip(weights, bits, strict=True)) == number


def test_a_skipped_number_adds_nothing_and_is_not_counted() -> None:
    question = Number(text="q", low=0, high=10, skip=True)
    form = Questionnaire((question,))
    assert form.cells_from_bits(form.encode([None])) == (0, 0)
    assert form.cells_from_bits(form.encode([7])) == (7, 1)
    # A report that adds 7 without an answer breaks the tie.
    untied = list(form.encode([7]))
    untied[len(number_weights(10))] = 0
    assert not form.is_valid(untied)


def test_the_blocks_of_questions() -> None:
    assert QUESTIONS[1][0].blocks == (Block(BlockKind.ONE, 4),)
    assert QUESTIONS[3][0].blocks == (Block(BlockKind.ANY, 1),)
    assert QUESTIONS[8][0].blocks == (Block(BlockKind.MOST, 4, 3), Block(BlockKind.ANY, 1))
    assert QUESTIONS[13][0].blocks == (Block(BlockKind.NUMBER, 1, 6), Block(BlockKind.ANY, 1))


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        (OneOf(text="q", items=ABC), 3),
        (OneOf(text="q", items=ABC), None),
        (OneOf(text="q", items=ABC), True),
        (AnyOf(text="q", items=ABC), None),
        (AnyOf(text="q", items=ABC), [0, 0]),
        (AnyOf(text="q", items=ABC), "ab"),
        (MostOf(text="q", items=ABC, most=1), [0, 1]),
        (Number(text="q", low=0, high=10), 11),
        (Number(text="q", low=0, high=10), None),
    ],
)
def test_other_answers_are_refused_without_repeating_them(
    question: Question, answer: object
) -> None:
    with pytest.raises(AnswerError, match="question 1"):
        Questionnaire((question,)).encode([answer])


def test_numbers_and_bands_are_read_from_decimal_numbers() -> None:
    number = Number(text="q", low=0, high=1, step=0.1)
    assert number.largest == 10
    assert number.count_steps(Fraction("0.3")) == 3
    assert number.count_steps(Fraction("0.25")) == 3
    bands = Bands(text="q", edges=(0, 10, 20, 50))
    assert [bands.find_band(Fraction(value)) for value in (0, 9, 10, 20, 50)] == [0, 0, 1, 2, 2]
    assert bands.choices == ("0 to below 10", "10 to below 20", "20 to 50")
    fine = Bands(text="q", edges=(0, 1.0000001, 1.0000002))
    assert fine.choices == ("0 to below 1.0000001", "1.0000001 to 1.0000002")
    with pytest.raises(AnswerError):
        bands.find_band(Fraction(51))


GROUP_FAULTS = {
    "in no group": [(1, [0])],
    "in two groups": [(0.5, [0, 1]), (0.5, [1])],
    "too much epsilon": [(0.75, [0]), (0.5, [1])],
    "an empty group": [(0.5, [0, 1]), (0.5, [])],
    "without epsilon": [(1, [0]), (0, [1])],
    "unknown": [(1, [0, 1, 2])],
}


@pytest.mark.parametrize("fault", GROUP_FAULTS)
def test_groups_that_would_break_the_guarantee_are_refused(fault: str) -> None:
    form = Questionnaire((YesNo(text="a"), YesNo(text="b")))
    groups = [QuestionGroup.of(epsilon, numbers) for epsilon, numbers in GROUP_FAULTS[fault]]
    with pytest.raises(ParameterError):
        form.check_groups(groups, Fraction(1))


def test_groups_with_all_questions_once_are_accepted() -> None:
    form = Questionnaire((YesNo(text="a"), YesNo(text="b")))
    form.check_groups([QuestionGroup.of(0.25, [1]), QuestionGroup.of(0.75, [0])], Fraction(1))
    third = QuestionGroup.of(Fraction(1, 3), [0])
    assert third.epsilon < Fraction(1, 3)
    assert third.scaled_epsilon == (1 << 128) // 3


def test_the_limits_of_a_questionnaire() -> None:
    long = OneOf(text="q", items=tuple(map(str, range(1301))))
    with pytest.raises(ParameterError, match="2,602 bits together, and 2,600 are possible"):
        Questionnaire((long, long)).check_size()
    with pytest.raises(ParameterError, match="1 to 100 questions"):
        Questionnaire((YesNo(text="q"),) * 101)
    with pytest.raises(ParameterError, match="1 to 100 questions"):
        Questionnaire(())


STAFF = """
title = "Working here"

[[question]]
kind = "one"
text = "Which site?"
items = ["North", "South", "East"]
skip = true
column = "site"
target = 5

[[question]]
kind = "scale"
text = "How satisfied are you?"
items = ["not at all", "somewhat", "very"]
open = "mean"

[[question]]
kind = "table"
text = ["Site?", "Shift?"]
rows = ["N", "S"]
columns = ["early", "late"]
column = ["site", "shift"]
"""


def test_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "staff.toml"
    path.write_text(STAFF)
    form = read_form(path)
    assert form.questionnaire.title == "Working here"
    assert [type(question) for question in form.questionnaire.questions] == [
        OneOf,
        ScaleMean,
        Table,
    ]
    assert [source.columns for source in form.sources] == [
        ("site",),
        ("How satisfied are you?",),
        ("site", "shift"),
    ]
    assert form.targets == (5.0, None, None)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"kind": "two", "text": "q"}, "question 1 .'q'.: kind must be one of one, yes"),
        ({"kind": "one", "items": ["a", "b"]}, "question 1: text is missing"),
        ({"kind": "one", "text": "q"}, "items is missing: a question of kind 'one' needs it"),
        ({"kind": "one", "text": "q", "items": ["a", "a"]}, "items must differ"),
        ({"kind": "one", "text": "q", "items": "ab"}, "items must be a list"),
        ({"kind": "one", "text": "q", "item": ["a"]}, "has no field 'item'; did you mean items?"),
        ({"kind": "one", "text": "q", "items": ["a", "b"], "most": 1}, "has no field 'most'"),
        ({"kind": "most", "text": "q", "items": ["a", "b"], "most": 2}, "most must be a whole"),
        ({"kind": "yes", "text": "q", "items": ["a", "b", "c"]}, "use kind 'one'"),
        ({"kind": "yes", "text": "q", "skip": 1}, "skip must be true or false"),
        ({"kind": "scale", "text": "q", "items": ["a", "b"], "open": "sum"}, "open must be"),
        ({"kind": "number", "text": "q", "low": 0}, "high is missing"),
        ({"kind": "number", "text": "q", "low": 0, "high": 1, "step": 0.3}, "step must divide"),
        ({"kind": "number", "text": "q", "low": 0, "high": 10**6}, "choose a larger step"),
        ({"kind": "number", "text": "q", "bands": [0, 5], }, "at least 3 edges"),
        ({"kind": "number", "text": "q", "bands": [0, 5, 9], "low": 0}, "leave low out"),
        ({"kind": "table", "text": "q", "rows": ["a", "b"], "columns": ["c", "d"]}, "list of two"),
        ({"kind": "any", "text": "q", "items": ["a", "b"], "column": ["x"]}, "2 different names"),
        ({"kind": "one", "text": "q", "items": ["a", "b"], "column": ["x"]}, "name of one column"),
        ({"kind": "yes", "text": "q", "target": -1}, "target must be above 0"),
        ({"kind": "one", "text": "q", "items": ["a", "prefer not to say"]}, "set skip to true"),
        # Both read alike in a table, so all of their answers would be counted as one of them.
        ({"kind": "one", "text": "q", "items": ["\u00e9", "e\u0301"]}, "items must differ"),
        ({"kind": "one", "text": "q", "items": ["a", " prefer not to say"]}, "set skip to true"),
        ({"kind": "any", "text": "q", "items": ["a", "b", "a;b"]}, "an item contains ';'"),
        ({"kind": "any", "text": "q", "items": ["a", "b"], "column": [[1], [2]]}, "different names"),
        ({"kind": "number", "text": "q", "low": 0, "high": 10**400, "step": 10**399}, "too large"),
        ({"kind": "number", "text": "q", "bands": [0, 1, 10**400]}, "bands is too large"),
        ({"kind": "yes", "text": "\ud800"}, "not valid Unicode"),
        ({"kind": "yes", "text": "q", 3: 4}, "has no field '3'"),
        ("yes", "question 1: give its fields"),
    ],
)  # fmt: skip
def test_a_wrong_field_is_named_with_its_question(fields: object, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        make_form([fields])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[question]", "is not TOML"),
        ("questions = 1", "unknown field 'questions'"),
        ("[question]\nkind = 'yes'", "double brackets"),
        ("title = 1", "title must be a text"),
        ("", "1 to 100 questions"),
        (f"title = 1{'0' * 5000}", "too large to be read"),
        (f"title = {'[' * 3000}{']' * 3000}", "too large to be read"),
    ],
)
def test_a_wrong_file_is_explained(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "staff.toml"
    path.write_text(text)
    with pytest.raises(ParameterError, match=message):
        read_form(path)
    with pytest.raises(ParameterError, match="cannot be read"):
        read_form(tmp_path / "missing.toml")


def test_groups_are_named_for_all_questions_or_for_none() -> None:
    named = {"kind": "yes", "text": "a", "group": "g"}
    assert make_form([named, named]).groups == ("g", "g")
    with pytest.raises(ParameterError, match="question 2: name its group"):
        make_form([named, {"kind": "yes", "text": "b"}])

"""Results as the page shows them: every kind of row, in parts, with codes for the page's words."""

import numpy as np
import pytest

from faircount.core.questions import Questionnaire
from faircount.dashboard.question_fields import questions_of
from faircount.dashboard.question_results import describe_changes, describe_result
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.estimation.trend import trend_of
from faircount.mechanisms.joint_noise.mechanism import JointNoise, split_epsilon

ASKED = [
    {"kind": "one", "text": "Site?", "items": "North\nno answer", "skip": True},
    {"kind": "any", "text": "Which?", "items": "a\nb", "skip": True},
    {"kind": "number", "text": "Years?", "low": "10", "high": "30", "step": "2", "skip": True},
    {"kind": "mean", "text": "How?", "items": "bad\nfair\ngood"},
    {"kind": "scale", "text": "How?", "items": "bad\nfair\ngood"},
    {"kind": "bands", "text": "Age?", "bands": "0\n18\n40.5\n99"},
    {"kind": "table", "text": "Team?", "columns_text": "Shift?"}
    | {"rows": "a\nall", "columns": "day\nnight"},
    {"kind": "bands", "text": "Pay?", "bands": "0\n1\n2"}
    | {"only_if": {"question": 0, "items": [0]}},
]
QUESTIONS: Questionnaire = questions_of({"questions": ASKED}).questionnaire


def result_of(count: int) -> QuestionnaireResult:
    groups = split_epsilon(50.0, [list(range(len(QUESTIONS)))])
    noise = JointNoise(questionnaire=QUESTIONS, groups=groups, epsilon=50.0, users=40)
    cells = np.full(sum(question.cells for question in QUESTIONS.questions), count)
    return QuestionnaireResult(QUESTIONS, noise, cells, 40)


@pytest.fixture(scope="module")
def shown() -> list[dict]:
    return describe_result(result_of(8))


def labels(question: dict, part: str) -> list:
    rows = [row for row in question["rows"] if row["part"] == part]
    return [row["label"] or row["word"] or row["band"] for row in rows]


def test_answers_of_the_owner_are_texts_and_all_others_are_codes(shown) -> None:
    one, several = shown[:2]
    # An owner's answer may be called like one of the program's.
    assert labels(one, "shares") == ["North", "no answer", "preferNotToSay"]
    assert labels(one, "answered") == ["North", "no answer"]
    assert labels(several, "shares") == ["a", "b", "preferNotToSay"]
    assert labels(several, "answered") == ["a", "b"]


def test_means_have_the_range_of_their_question(shown) -> None:
    number, mean, scale = shown[2:5]
    assert labels(number, "measure") == ["meanAnswered"]
    assert labels(number, "shares") == ["answeredShare"]
    assert (number["range"], number["is_mean"]) == ([10.0, 30.0], True)
    assert (labels(mean, "measure"), mean["range"]) == (["mean"], [1.0, 3.0])
    assert labels(scale, "shares") == ["bad", "fair", "good"]
    assert (labels(scale, "measure"), scale["is_mean"]) == (["mean"], False)


def test_bands_are_positions_between_edges(shown) -> None:
    bands = shown[5]
    assert bands["bands"] == ["0", "18", "40.5", "99"]
    assert [row["band"] for row in bands["rows"]] == [0, 1, 2, None]
    assert labels(bands, "measure") == ["median"]
    asked_of_some = shown[7]
    assert [(row["part"], row["band"], row["word"]) for row in asked_of_some["rows"]] == [
        ("shares", 0, None),
        ("shares", 1, None),
        ("shares", None, "doesNotApply"),
        ("answered", 0, None),
        ("answered", 1, None),
    ]


def test_a_table_has_its_cells_and_both_margins(shown) -> None:
    table = shown[6]
    assert table["sides"] == [["a", "all"], ["day", "night"]]
    assert table["texts"] == ["Team?", "Shift?"]
    assert labels(table, "shares") == ["a / day", "a / night", "all / day", "all / night"]
    assert (labels(table, "rows"), labels(table, "columns")) == (["a", "all"], ["day", "night"])


def test_numbers_have_the_decimals_of_exported_files(shown) -> None:
    # All shares of a question have as many, so that they can be compared.
    assert {row["decimals"] for row in shown[0]["rows"]} == {1}
    (mean, answered) = shown[2]["rows"]
    assert (mean["decimals"] >= 1, answered["decimals"]) == (True, 1)


def test_changes_are_described_like_results() -> None:
    found = describe_changes(trend_of([result_of(8), result_of(10)], ["spring", "autumn"]))
    assert [question["number"] for question in found] == list(range(1, 9))
    first = found[0]["changes"]
    assert [change["label"] for change in first[:2]] == ["North", "no answer"]
    assert first[0]["estimate"] == pytest.approx(2 / 40)
    assert found[5]["bands"] == ["0", "18", "40.5", "99"]

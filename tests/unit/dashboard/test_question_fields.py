"""Questions as the page sends them: every kind, what is refused, and the way back to the form."""

import base64
from fractions import Fraction

import pytest

from faircount.core.errors import ParameterError
from faircount.core.questions.choices import Bands, OneOf, ScaleCounts, Table, YesNo
from faircount.core.questions.question import Branch
from faircount.core.questions.several_items import AnyOf, MostOf
from faircount.core.questions.sums import Number, ScaleMean
from faircount.dashboard.form import advice, facts_of
from faircount.dashboard.question_fields import fields_of, questions_of, read_file

SITE = {"kind": "one", "text": "Site?", "items": "North\nSouth\n\nSouth\nEast"}
KINDS = {
    "one": (SITE, OneOf(text="Site?", items=("North", "South", "East"))),
    "yes": (
        {"kind": "yes", "text": "Well?", "items": "No\nYes", "skip": True},
        YesNo(text="Well?", items=("No", "Yes"), skip=True),
    ),
    "any": (
        {"kind": "any", "text": "Which?", "items": "a\nb"},
        AnyOf(text="Which?", items=("a", "b")),
    ),
    "most": (
        {"kind": "most", "text": "Best?", "items": "a\nb\nc", "most": "2"},
        MostOf(text="Best?", items=("a", "b", "c"), most=2),
    ),
    "scale": (
        {"kind": "scale", "text": "How?", "items": "bad\nfair\ngood"},
        ScaleCounts(text="How?", items=("bad", "fair", "good")),
    ),
    "mean": (
        {"kind": "mean", "text": "How?", "items": "bad\nfair\ngood"},
        ScaleMean(text="How?", items=("bad", "fair", "good")),
    ),
    "number": (
        {"kind": "number", "text": "Hours?", "low": "0", "high": "40", "step": "0.5"},
        Number(text="Hours?", low=Fraction(0), high=Fraction(40), step=Fraction(1, 2)),
    ),
    "bands": (
        {"kind": "bands", "text": "Age?", "bands": "0\n18\n40,5"},
        Bands(text="Age?", edges=(Fraction(0), Fraction(18), Fraction(81, 2))),
    ),
    "table": (
        {"kind": "table", "text": "Team?", "columns_text": "Shift?"}
        | {"rows": "a\nb", "columns": "day\nnight"},
        Table(text="Team?", columns_text="Shift?", rows=("a", "b"), columns=("day", "night")),
    ),
}
GOOD = {"users": "300", "epsilon": "1", "delta": "1e-6", "open_for": "3", "unit": "days"}


def refusal(*questions) -> tuple[str, dict]:
    with pytest.raises(ParameterError) as found:
        questions_of({"questions": list(questions)})
    return found.value.code, found.value.values


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_made_from_its_fields(kind) -> None:
    fields, expected = KINDS[kind]
    (found,) = questions_of({"questions": [fields]}).questionnaire.questions
    assert found == expected


def test_the_form_of_a_copy_makes_the_same_questionnaire() -> None:
    asked = [fields for fields, _ in KINDS.values()]
    asked[2] = {**asked[2], "only_if": {"question": 0, "items": [0, 2]}}
    made = questions_of({"questions": asked, "title": "All of them"}).questionnaire
    assert made.title == "All of them"
    assert made.questions[2].only_if == Branch(0, (0, 2))
    assert questions_of(fields_of(made)).questionnaire == made


def test_one_question_has_no_title() -> None:
    asked = {"questions": [SITE], "title": "left from before"}
    assert questions_of(asked).questionnaire.title == ""


def test_a_branch_may_depend_on_a_band() -> None:
    later = {**SITE, "only_if": {"question": 0, "items": [1]}}
    found = questions_of({"questions": [KINDS["bands"][0], later]}).questionnaire
    assert found.questions[1].only_if == Branch(0, (1,))


@pytest.mark.parametrize(
    ("kind", "change", "code"),
    [
        ("one", {"items": "a"}, "too_few_items"),
        ("one", {"items": "a\nprefer not to say"}, "reserved_item"),
        ("one", {"items": "a\nA\u200bb\nAb"}, "same_items"),
        ("one", {"text": "x" * 1001}, "text_too_long"),
        ("yes", {"items": "a\nb\nc"}, "two_items"),
        ("most", {"most": "3"}, "most_range"),
        ("most", {"most": "many"}, "most_range"),
        ("number", {"low": "x"}, "not_a_number"),
        ("number", {"low": "1/3"}, "not_a_number"),
        ("number", {"high": "inf"}, "not_a_number"),
        ("number", {"high": "0"}, "number_range"),
        ("number", {"step": "0.3"}, "number_step"),
        ("number", {"step": "-1"}, "number_step"),
        ("number", {"high": "1e9"}, "number_steps"),
        ("bands", {"bands": "0\n10"}, "bands"),
        ("bands", {"bands": "0\n10\n5"}, "bands"),
        ("bands", {"bands": "0\nten\n50"}, "not_a_number"),
        ("table", {"rows": "a"}, "too_few_rows"),
        ("table", {"columns": ""}, "too_few_columns"),
        ("one", {"kind": "essay"}, "bad_call"),
    ],
)
def test_what_cannot_be_used_has_a_code_and_the_number_of_the_question(kind, change, code) -> None:
    wrong = {**KINDS[kind][0], **change}
    alone, values = refusal(wrong)
    assert alone == code
    # One question is named by nothing: there is no other.
    assert "question" not in values
    several, values = refusal(SITE, wrong)
    assert (several, values["question"]) == (code, 2)


@pytest.mark.parametrize(
    ("branch", "code"),
    [
        ({"question": 1, "items": [0]}, "branch_question"),
        ({"question": 2, "items": [0]}, "branch_question"),
        ({"question": -1, "items": [0]}, "branch_question"),
        ({"question": True, "items": [0]}, "branch_question"),
        ("Site?", "branch_question"),
        ({"question": 0, "items": []}, "branch_items"),
        ({"question": 0, "items": [3]}, "branch_items"),
        ({"question": 0, "items": "North"}, "branch_items"),
    ],
)
def test_a_branch_names_answers_to_an_earlier_question_with_one_answer(branch, code) -> None:
    several = KINDS["any"][0]
    found, values = refusal(SITE, several, {**SITE, "only_if": branch})
    assert (found, values["question"]) == (code, 3)


@pytest.mark.parametrize("questions", [None, [], ["Why?"], {"0": SITE}])
def test_something_else_than_a_list_of_questions_is_refused(questions) -> None:
    with pytest.raises(ParameterError) as found:
        questions_of({"questions": questions})
    assert found.value.code == "bad_call"
    assert refusal(*([SITE] * 201))[0] == "too_many_questions"


def test_texts_are_required_only_when_the_survey_is_created() -> None:
    asked = {**GOOD, "questions": [SITE, {**KINDS["table"][0], "columns_text": " "}]}
    assert "problem" not in advice(asked)
    with pytest.raises(ParameterError) as found:
        facts_of(asked)
    assert (found.value.code, found.value.values) == ("no_question", {"question": 2})


def test_the_preview_states_the_error_of_every_question_in_its_own_unit() -> None:
    asked = [KINDS[kind][0] for kind in ("one", "number", "mean", "table")]
    found = advice({**GOOD, "questions": asked})
    lines = found["questions"]
    assert [line["unit"] for line in lines] == ["points", "units", "units", "points"]
    assert [line["number"] for line in lines] == [1, 2, 3, 4]
    shares = {line["group"]: line["epsilon"] for line in lines}
    assert sum(shares.values()) == pytest.approx(1.0)
    assert found["items"] == []
    # The error of the hours is a part of their range of 40, that of the scale of its two steps.
    assert 0 < lines[1]["error"] < 20
    assert 0 < lines[2]["error"] < 1
    assert [line["is_useless"] for line in lines] == [False] * 4


def test_the_preview_of_one_question_is_that_of_the_plan() -> None:
    found = advice({**GOOD, "questions": [SITE]})
    (line,) = found["questions"]
    assert (line["error"], line["epsilon"]) == (100 * found["half_width_95"], 1.0)
    assert found["items"] == ["North", "South", "East"]
    alone = advice({**GOOD, "questions": [KINDS["number"][0]]})
    assert alone["questions"][0]["error"] == pytest.approx(40 * alone["half_width_95"])


def test_questions_from_which_nothing_is_learned_are_marked() -> None:
    few = {**GOOD, "users": "8", "questions": [SITE, KINDS["any"][0]]}
    found = advice(few)
    assert not found["worthwhile"]
    assert any(line["is_useless"] for line in found["questions"])


FILE = """
title = "Working here"
language = "en"
[translation.de]
title = "Arbeiten hier"
[[question]]
kind = "one"
text = "Which site?"
items = ["North", "South"]
target = 5
translation.de = {text = "Welcher Standort?", items = ["Nord", "Süd"]}
[[question]]
kind = "number"
text = "How many years?"
low = 0
high = 40
only_if = {question = 1, items = ["South"]}
translation.de = {text = "Wie viele Jahre?"}
"""


def load(content: str, name: str = "q.toml") -> dict:
    data = base64.b64encode(content.encode()).decode()
    return read_file({"file": {"name": name, "data": data}})


def test_a_file_fills_the_form_with_its_other_languages() -> None:
    found = load(FILE)
    assert [fields["kind"] for fields in found["questions"]] == ["one", "number"]
    assert found["questions"][1]["only_if"] == {"question": 0, "items": [1]}
    assert found["questions"][0]["target"] == 5
    made = questions_of(found)
    assert made.targets == (5.0, None)
    assert made.questionnaire.languages == ("en", "de")
    assert made.questionnaire.in_language("de").title == "Arbeiten hier"
    assert advice({**GOOD, **found})["questions"][0]["target"] == 5


def test_other_languages_that_no_longer_fit_are_refused_with_a_code() -> None:
    found = load(FILE)
    with pytest.raises(ParameterError, match="translation into de is missing") as problem:
        questions_of({**found, "questions": [*found["questions"], SITE]})
    assert problem.value.code == "translations"


def test_groups_of_a_file_hold_as_long_as_every_question_has_one() -> None:
    grouped = [{**SITE, "group": "a"}, {**KINDS["any"][0], "group": "b"}]
    assert questions_of({"questions": grouped}).groups == ("a", "b")
    assert questions_of({"questions": [*grouped, SITE]}).groups == (None, None, None)


@pytest.mark.parametrize("content", ["title = ", "[[question]]\nkind = 'essay'", "x = 1"])
def test_a_file_that_is_no_questionnaire_is_named(content) -> None:
    with pytest.raises(ParameterError) as problem:
        load(content, "/home/ada/wrong.toml")
    assert (problem.value.code, problem.value.values) == ("questions_file", {"file": "wrong.toml"})


def test_a_file_that_is_too_large_or_no_file_is_refused() -> None:
    with pytest.raises(ParameterError) as problem:
        load("#" * 1_000_001)
    assert problem.value.code == "questions_file"
    with pytest.raises(ParameterError) as problem:
        read_file({"file": "q.toml"})
    assert problem.value.code == "bad_call"

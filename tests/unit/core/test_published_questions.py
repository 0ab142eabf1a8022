"""Questions as published parameters spell them, with branches and translations."""

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from faircount.core.errors import FaircountError, MalformedError, ParameterError
from faircount.core.questions import (
    AnyOf,
    Bands,
    Branch,
    MostOf,
    Number,
    OneOf,
    Questionnaire,
    ScaleCounts,
    ScaleMean,
    Table,
    YesNo,
)
from faircount.core.questions.form import make_form
from faircount.core.questions.published import (
    format_decimal,
    from_plain,
    parse_decimal,
    to_plain,
)
from faircount.core.questions.question import NOT_APPLICABLE_LABEL, SKIP_LABEL

ALL_KINDS = Questionnaire(
    (
        OneOf(text="Which site?", items=("North", "South", "East"), skip=True),
        YesNo(text="Would you recommend us?"),
        AnyOf(text="What do you use?", items=("a", "b", "c"), skip=True),
        MostOf(text="What matters most?", items=("a", "b", "c", "d"), most=2),
        ScaleCounts(text="How satisfied?", items=("low", "middle", "high")),
        ScaleMean(text="How tired?", items=("low", "middle", "high"), only_if=Branch(1, (1,))),
        Number(text="Years?", low=Fraction(0), high=Fraction(5, 2), step=Fraction(1, 2), skip=True),
        Bands(
            text="Age?", edges=(Fraction(0), Fraction(30), Fraction(99)), only_if=Branch(0, (0,))
        ),
        Table(text="Site?", columns_text="Shift?", rows=("N", "S"), columns=("early", "late")),
    ),
    "Working here",
    "en",
)


def published(questionnaire: Questionnaire) -> Any:
    return json.loads(json.dumps(to_plain(questionnaire)))


def test_every_kind_is_read_as_it_was_written() -> None:
    assert from_plain(published(ALL_KINDS)) == ALL_KINDS


@given(st.integers(-(10**12), 10**12), st.integers(0, 12))
def test_decimals_are_exact_and_have_one_form(digits: int, places: int) -> None:
    number = Fraction(digits, 10**places)
    text = format_decimal(number)
    assert parse_decimal(text) == number
    assert "e" not in text
    assert not ("." in text and text.endswith("0"))


@pytest.mark.parametrize("text", ["1.0", "01", "+1", "-0", "1e3", "", ".5", "5.", 1, None, "1/3"])
def test_other_forms_of_a_number_are_refused(text: object) -> None:
    with pytest.raises(MalformedError):
        parse_decimal(text)


def test_a_third_is_no_decimal() -> None:
    with pytest.raises(ParameterError, match="decimals"):
        format_decimal(Fraction(1, 3))


@pytest.mark.parametrize("number", range(len(ALL_KINDS)))
def test_missing_and_unknown_keys_are_refused(number: int) -> None:
    plain = published(ALL_KINDS)
    for key in list(plain["questions"][number]):
        less = json.loads(json.dumps(plain))
        del less["questions"][number][key]
        with pytest.raises(FaircountError):
            from_plain(less)
    plain["questions"][number]["extra"] = 1
    with pytest.raises(MalformedError, match="missing or an unknown key"):
        from_plain(plain)


@pytest.mark.parametrize("skip", [0, 1, None, "true"])
def test_skip_is_true_or_false(skip: object) -> None:
    plain = published(ALL_KINDS)
    plain["questions"][0]["skip"] = skip
    with pytest.raises(MalformedError):
        from_plain(plain)


def test_a_branch_adds_an_answer_like_others() -> None:
    question = OneOf(text="Why?", items=("a", "b", "c"), skip=True, only_if=Branch(0, (0,)))
    assert question.answers == ("a", "b", "c", NOT_APPLICABLE_LABEL, SKIP_LABEL)
    assert question.not_applicable == 3
    assert question.encode(3) == (0, 0, 0, 1, 0)
    assert question.encode(None) == (0, 0, 0, 0, 1)


@pytest.mark.parametrize(
    "question",
    [
        AnyOf(text="q", items=("a", "b"), only_if=Branch(0, (0,))),
        MostOf(text="q", items=("a", "b", "c"), most=1, only_if=Branch(0, (0,))),
        Number(text="q", low=Fraction(0), high=Fraction(3), only_if=Branch(0, (0,))),
        ScaleMean(text="q", items=("a", "b", "c"), only_if=Branch(0, (0,))),
    ],
    ids=lambda question: question.kind,
)
def test_elsewhere_a_branch_has_the_cells_of_skip(question: Any) -> None:
    from dataclasses import replace

    skipped = replace(question, only_if=None, skip=True)
    assert question.not_applicable is None
    assert (question.bits, question.constraint, question.cell_weights, question.blocks) == (
        skipped.bits,
        skipped.constraint,
        skipped.cell_weights,
        skipped.blocks,
    )
    assert question.encode(None) == skipped.encode(None)


def test_who_is_asked_follows_from_the_answers_before() -> None:
    form = Questionnaire(
        (
            YesNo(text="a"),
            YesNo(text="b", only_if=Branch(0, (1,))),
            YesNo(text="c", only_if=Branch(1, (0,))),
        )
    )
    assert [form.is_asked(number, (1, 0, 0)) for number in range(3)] == [True, True, True]
    assert [form.is_asked(number, (0, 2, 2)) for number in range(3)] == [True, False, False]
    # An answer to a question that was not asked leads nowhere.
    assert not form.is_asked(2, (0, 0, 0))


@pytest.mark.parametrize(
    ("branch", "message"),
    [
        (Branch(2, (0,)), "earlier question"),
        (Branch(5, (0,)), "earlier question"),
        (Branch(-1, (0,)), "earlier question"),
        (Branch(1, (0,)), "exactly one answer"),
        (Branch(0, (3,)), "answers of question 1"),
        (Branch(0, ()), "answers of question 1"),
        (Branch(0, (1, 0)), "in their order"),
        (Branch(0, (0, 1, 2)), "leave it out"),
    ],
)
def test_branches_that_lead_nowhere_are_refused(branch: Branch, message: str) -> None:
    first = OneOf(text="a", items=("x", "y", "z"))
    second = AnyOf(text="b", items=("x", "y"))
    with pytest.raises(ParameterError, match=message):
        Questionnaire((first, second, YesNo(text="c", only_if=branch)))


def test_a_form_names_branches_and_translations() -> None:
    form = make_form(
        [
            {
                "kind": "one",
                "text": "Which site?",
                "items": ["North", "South", "East"],
                "translation": {"de": {"text": "Wo?", "items": ["Nord", "Süd", "Ost"]}},
            },
            {
                "kind": "yes",
                "text": "By train?",
                "only_if": {"question": "Which site?", "items": ["East", "North"]},
                "translation": {"de": {"text": "Mit der Bahn?", "items": ["nein", "ja"]}},
            },
        ],
        "Sites",
        language="en",
        titles={"de": {"title": "Standorte"}},
    )
    questionnaire = form.questionnaire
    assert questionnaire.questions[1].only_if == Branch(0, (0, 2))
    (german,) = questionnaire.translations
    assert german.title == "Standorte"
    assert german.questions[0].items == ("Nord", "Süd", "Ost")
    assert from_plain(published(questionnaire)) == questionnaire


@pytest.mark.parametrize(
    ("translation", "message"),
    [
        ({"text": "Wo?"}, "as many texts and items"),
        ({"text": "Wo?", "items": ["Nord", "Süd"]}, "as many texts and items"),
        ({"text": "Wo?", "items": ["Nord", "Süd", "Süd"]}, "differ"),
        ({"text": " ", "items": ["Nord", "Süd", "Ost"]}, "must be a text"),
        ({"items": ["Nord", "Süd", "Ost"]}, "translate all"),
        ({"text": "Wo?", "item": ["Nord"]}, "unknown field"),
    ],
)
def test_incomplete_translations_are_refused(translation: dict[str, Any], message: str) -> None:
    question = {
        "kind": "one",
        "text": "Which site?",
        "items": ["North", "South", "East"],
        "translation": {"de": translation},
    }
    with pytest.raises(ParameterError, match=message):
        make_form([question], language="en")


@pytest.mark.parametrize(
    ("translation", "message"),
    [
        ("de", "write its texts in another language as"),
        (3, "write its texts in another language as"),
        ({1: {"text": "Nun?"}}, "a language is a tag"),
        ({"Deutsch": {"text": "Nun?"}}, "a language is a tag"),
    ],
)
def test_translations_that_are_no_table_are_refused(translation: Any, message: str) -> None:
    question = {"kind": "yes", "text": "Well?", "translation": translation}
    with pytest.raises(ParameterError, match=message):
        make_form([question], language="en")


@pytest.mark.parametrize("moved", [["yes", "no"], ["ja", " no "]])
def test_a_text_that_means_another_answer_in_another_language_is_refused(moved: list[str]) -> None:
    """An answer is a position, so readers of the translation would have answered the opposite."""
    question = {
        "kind": "yes",
        "text": "Well?",
        "items": ["no", "yes"],
        "translation": {"de": {"text": "Nun?", "items": moved}},
    }
    with pytest.raises(ParameterError, match="is one answer in one language and another one"):
        make_form([question], language="en")


def test_a_table_may_not_exchange_columns_between_two_translations() -> None:
    def translated(columns: list[str]) -> dict[str, Any]:
        return {"text": ["a", "b"], "rows": ["r", "s"], "columns": columns}

    question = {
        "kind": "table",
        "text": ["Site?", "Shift?"],
        "rows": ["North", "South"],
        "columns": ["early", "late"],
        "translation": {"de": translated(["x", "y"]), "fr": translated(["y", "x"])},
    }
    with pytest.raises(ParameterError, match="translate the answers in the same order"):
        make_form([question], language="en")


def test_translations_need_the_language_of_the_original() -> None:
    question = {
        "kind": "yes",
        "text": "Well?",
        "translation": {"de": {"text": "Nun?", "items": ["nein", "ja"]}},
    }
    with pytest.raises(ParameterError, match="in which language"):
        make_form([question])
    with pytest.raises(ParameterError, match="named once"):
        make_form([question], language="de")

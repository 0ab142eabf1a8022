"""The questions of a survey as its owner gives them: one with its items, a file, or a list."""

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from faircount.core.domain import visible_form
from faircount.core.errors import ParameterError
from faircount.core.questions import Questionnaire
from faircount.core.questions.form import Form, as_form, make_form
from faircount.core.questions.translations import texts_of

Questions = str | os.PathLike[str] | Sequence[Mapping[str, Any]] | Questionnaire | Form
"""A questionnaire: the path of a TOML file, the fields of its questions, or itself."""

_EXAMPLE = '[{"kind": "yes", "text": "Would you recommend us?"}]'


def read_questions(
    question: str | None, items: Iterable[str] | None, questionnaire: Questions | None
) -> Form:
    """The questions of a survey: one with its items, or a questionnaire, and never both."""
    if questionnaire is None:
        if question is None or items is None:
            message = "say what is asked: --question and --items, or --questionnaire FILE"
            raise ParameterError(message).with_code("no_question")
        return one_question(question, items)
    if question is not None or items is not None:
        raise ParameterError(
            "a questionnaire has its own questions and items: leave --question and --items out"
        )
    return as_form(questionnaire, f"questionnaire={_EXAMPLE}")


def one_question(text: str, items: Iterable[str]) -> Form:
    """A questionnaire with one question, of which people choose one of these items."""
    # Checked first: these messages have codes, which the dashboard translates.
    listed = [str(item) for item in items]
    check_question(text)
    check_items(listed)
    return make_form([{"kind": "one", "text": text, "items": listed}])


def check_question(text: str) -> str:
    """What people are asked; refused if there is nothing to read."""
    if not visible_form(text):
        message = "the question is empty: write what people are asked"
        raise ParameterError(message).with_code("no_question")
    return text


def check_items(items: Sequence[str]) -> None:
    """Refuse answers that are blank, or that a reader could not tell apart."""
    shown: dict[str, str] = {}
    for item in items:
        # What a reader sees: two items that differ in case, spaces or invisible characters would
        # look like one.
        form = visible_form(item)
        if not form:
            message = "an answer to choose from is empty: write every answer out"
            raise ParameterError(message).with_code("empty_item")
        if form in shown:
            message = (
                f"people could not tell the answers {shown[form]!r} and {item!r} apart: remove or "
                "rename one of them"
            )
            raise ParameterError(message).with_code("same_items", first=shown[form], second=item)
        shown[form] = item


def check_readable(questionnaire: Questionnaire) -> None:
    """Refuse questions and items that a reader could not see, in any language."""
    # In every language: a blank item in a translation would be chosen by mistake.
    languages = [tuple(texts_of(question) for question in questionnaire.questions)]
    languages += [translation.questions for translation in questionnaire.translations]
    for questions in languages:
        for question in questions:
            for text in question.texts:
                check_question(text)
            check_items(question.items)
            check_items(question.columns)

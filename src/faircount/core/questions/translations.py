"""The texts of a questionnaire in further languages.

A participant chooses the language in which the questions are shown. Positions mean the same in all
of them, so the answers, and the bytes that leave a device, do not depend on the choice.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from faircount.core.errors import ParameterError
from faircount.core.questions.choices import Bands, Table
from faircount.core.questions.question import Question, check_items, check_text, read_label
from faircount.core.questions.sums import Number

# A tag such as "de" or "pt-br", as BCP 47 writes them, in lower case.
_LANGUAGE = re.compile("[a-z]{2,3}(-[a-z0-9]{2,8}){0,2}")


@dataclass(frozen=True, slots=True)
class TranslatedQuestion:
    """The texts of one question.

    texts: what is asked; two texts for a table
    items: the items, or the rows of a table, or nothing where the question has none
    columns: the columns of a table
    """

    texts: tuple[str, ...]
    items: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Translation:
    """All texts of a questionnaire in one language."""

    language: str
    title: str
    questions: tuple[TranslatedQuestion, ...]


def texts_of(question: Question) -> TranslatedQuestion:
    """Return the texts of a question in the form of its translations."""
    if isinstance(question, Table):
        texts = (question.text, question.columns_text)
        return TranslatedQuestion(texts, question.rows, question.columns)
    if isinstance(question, Number | Bands):
        return TranslatedQuestion((question.text,))
    items: tuple[str, ...] = getattr(question, "items", ())
    return TranslatedQuestion((question.text,), items)


def reword(question: Question, own: TranslatedQuestion) -> Question:
    """Return the question with its texts in another language; positions stay the same."""
    texts: dict[str, Any] = {"text": own.texts[0]}
    if isinstance(question, Table):
        texts |= {"columns_text": own.texts[1], "rows": own.items, "columns": own.columns}
    elif own.items:
        texts["items"] = own.items
    return replace(question, **texts)


def check_language(language: Any) -> str:
    """Return the tag of a language, or raise."""
    if not isinstance(language, str) or not _LANGUAGE.fullmatch(language):
        raise ParameterError("a language is a tag in lower case, such as 'en', 'de' or 'pt-br'")
    return language


def check_translation(translation: Translation, questions: Sequence[Question]) -> None:
    """Refuse a translation that does not have every text of the questions once."""
    language = check_language(translation.language)
    if translation.title != "":
        check_text(f"title in {language}", translation.title)
    if len(translation.questions) != len(questions):
        raise ParameterError(
            f"the translation into {language} needs all {len(questions)} questions"
        )
    for number, (own, question) in enumerate(zip(translation.questions, questions, strict=True)):
        original = texts_of(question)
        name = f"question {number + 1} in {language}"
        sizes = (len(own.texts), len(own.items), len(own.columns))
        # Answers are positions, so a missing text would give a position another meaning.
        if sizes != (len(original.texts), len(original.items), len(original.columns)):
            raise ParameterError(f"{name} needs as many texts and items as the original")
        for text in own.texts:
            check_text(name, text)
        for items in (own.items, own.columns):
            if items:
                check_items(f"items of {name}", items)


def check_positions(questions: Sequence[Question], translations: Sequence[Translation]) -> None:
    """Refuse a text that stands for one answer in one language and for another one in the next."""
    for number, question in enumerate(questions):
        texts = [texts_of(question)]
        texts += [translation.questions[number] for translation in translations]
        for lists in ([own.items for own in texts], [own.columns for own in texts]):
            text = _find_moved(lists)
            # check: moved-translation - "no" counts as yes for the readers of a translation
            if text is not None:
                raise ParameterError(
                    f"question {number + 1}: {text!r:.60} is one answer in one language and "
                    "another one in another: translate the answers in the same order"
                )


def _find_moved(lists: Sequence[Sequence[str]]) -> str | None:
    """Return a text that has different positions in two lists, as people read them."""
    positions: dict[str, int] = {}
    for items in lists:
        for position, item in enumerate(items):
            if positions.setdefault(read_label(item), position) != position:
                return item
    return None

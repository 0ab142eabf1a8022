"""One person's answers as people and programs write them, as the sheet that a report is made of.

    {"Which site?": "North", "Years here?": 4}     by the texts of the questions
    {1: "North", 3: None}                          by their numbers, from 1
    ["North", ["tea", "water"], 4]                 in their order

An item is given by its text, or by its position from 0 unless items are numbers themselves; several
items are a list; a number is a number; None is "prefer not to say". Errors name the question and
what is possible. They never repeat what was given, which may be somebody's answer.
"""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from faircount.core.domain import escape_controls
from faircount.core.errors import AnswerError
from faircount.core.questions import (
    Bands,
    Number,
    OneOf,
    Question,
    Questionnaire,
    ScaleMean,
    Sheet,
    Table,
)
from faircount.core.questions.choices import ChoiceQuestion
from faircount.core.questions.question import NOT_APPLICABLE_LABEL, SKIP_LABEL, Answer, format_exact
from faircount.core.questions.several_items import SeveralItems
from faircount.core.questions.sums import SumQuestion
from faircount.core.questions.translations import TranslatedQuestion, texts_of

# Items that an error lists; a longer list is cut off.
LISTED_ITEMS = 20

# Numbers of questions have far fewer characters; a longer text would only take time.
_MAX_DIGITS = 60


class _Left:
    """Stands for a question to which no answer was given."""


_LEFT_OUT = _Left()


def read_sheet(questionnaire: Questionnaire, given: Any) -> Sheet:
    """Return the canonical answers; raises where one is missing or not offered."""
    answers = _by_question(questionnaire, given)
    sheet: list[Answer] = []
    for number, answer in enumerate(answers):
        # Only answers to earlier questions decide, and these are in the sheet already.
        if questionnaire.is_asked(number, sheet):
            sheet.append(read_answer(questionnaire, number, answer))
        else:
            sheet.append(_not_asked(questionnaire, number, answer))
    return questionnaire.check_sheet(sheet)


def _by_question(questionnaire: Questionnaire, given: Any) -> list[Any]:
    """What was given for every question, in their order."""
    if isinstance(given, Mapping):
        return _from_mapping(questionnaire, given)
    if len(questionnaire) == 1:
        return [_only_answer(questionnaire.questions[0], given)]
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise AnswerError(
            f"the survey has {len(questionnaire)} questions: give a dictionary of questions and "
            "answers, or a list of answers in their order"
        )
    if len(given) != len(questionnaire):
        raise AnswerError(
            f"give {len(questionnaire)} answers, one per question in their order; None for a "
            "question that is not asked"
        )
    return list(given)


def _only_answer(question: Question, given: Any) -> Any:
    """The answer to a single question, which may also stand in a list of one."""
    has_list = isinstance(question, SeveralItems | Table)
    is_sheet = isinstance(given, list | tuple) and len(given) == 1
    return given[0] if is_sheet and not has_list else given


def _from_mapping(questionnaire: Questionnaire, given: Mapping[Any, Any]) -> list[Any]:
    answers: list[Any] = [_LEFT_OUT] * len(questionnaire)
    for name, answer in given.items():
        number = find_question(questionnaire, name)
        if answers[number] is not _LEFT_OUT:
            raise AnswerError(f"{_name(questionnaire, number)}: there are two answers to it")
        answers[number] = answer
    return answers


def find_question(questionnaire: Questionnaire, name: Any) -> int:
    """The place, from 0, of a question that is given by its text or its number."""
    found = [
        number
        for number in range(len(questionnaire))
        if any(_names_question(texts, name) for texts in _texts(questionnaire, number))
    ]
    if len(found) == 1:
        return found[0]
    # JSON has texts as keys only, so a number may be one.
    number = int(name) if isinstance(name, str) and name.isascii() and name.isdigit() else name
    if type(number) is int and 1 <= number <= len(questionnaire):
        return number - 1
    problem = "several questions have this text" if found else "there is no such question"
    raise AnswerError(
        f"{problem}: name every question by its text, as the survey spells it, or by its number "
        f"from 1 to {len(questionnaire)}"
    )


def _names_question(texts: TranslatedQuestion, name: Any) -> bool:
    # A table has two texts. Results join them, so that is accepted as well.
    return name in (texts.texts[0], " / ".join(texts.texts))


def _texts(questionnaire: Questionnaire, number: int) -> list[TranslatedQuestion]:
    """The texts of a question in all languages, beginning with the original."""
    translated = [translation.questions[number] for translation in questionnaire.translations]
    return [texts_of(questionnaire.questions[number]), *translated]


def read_answer(questionnaire: Questionnaire, number: int, given: Any) -> Answer:
    """Return the canonical answer to a question that is asked, from 0; raises if it is not one."""
    question = questionnaire.questions[number]
    try:
        return _read(question, _texts(questionnaire, number), given)
    except AnswerError:
        described = describe_possible(question)
        # A survey with one question has no need to say which.
        where = f"{_name(questionnaire, number)}: " if len(questionnaire) > 1 else ""
        what = "there is no answer; it" if given is _LEFT_OUT else "the answer"
        # The items are public. What was given may be somebody's answer, so it is not repeated.
        raise AnswerError(f"{where}{what} must be {described}") from None


def _not_asked(questionnaire: Questionnaire, number: int, given: Any) -> Answer:
    question = questionnaire.questions[number]
    if given is _LEFT_OUT or given is None or given == NOT_APPLICABLE_LABEL:
        return question.not_applicable
    if isinstance(question, ChoiceQuestion) and given == question.not_applicable:
        return question.not_applicable
    branch = question.only_if
    earlier = 0 if branch is None else branch.question + 1
    raise AnswerError(
        f"{_name(questionnaire, number)} is not asked after your answer to question {earlier}: "
        "leave it out"
    )


def _name(questionnaire: Questionnaire, number: int) -> str:
    text = escape_controls(questionnaire.questions[number].text)
    return f"question {number + 1} ({text!r:.60})"


def _read(question: Question, languages: Sequence[TranslatedQuestion], given: Any) -> Answer:
    if given is _LEFT_OUT:
        raise AnswerError("no answer")
    if question.skip and (given is None or given == SKIP_LABEL):
        return question.check_answer(None)
    if isinstance(question, Table):
        return _read_pair(question, languages, given)
    if isinstance(question, SeveralItems):
        chosen = [given] if isinstance(given, str) else given
        if not isinstance(chosen, list | tuple | set | frozenset):
            raise AnswerError("not a list")
        lists = [texts.items for texts in languages]
        return question.check_answer([_position(lists, item) for item in chosen])
    if isinstance(question, Bands):
        return _read_band(question, given)
    if isinstance(question, Number):
        return read_number(question, given)
    return _read_choice(question, languages, given)


def _read_choice(question: Question, languages: Sequence[TranslatedQuestion], given: Any) -> Answer:
    lists = [texts.items for texts in languages]
    # True is the second of two answers, such as yes.
    if isinstance(given, bool) and len(lists[0]) == 2:
        return int(given)
    return _position(lists, given)


def _position(lists: Sequence[Sequence[str]], given: Any) -> int:
    """The position of an item that is given by its text in any language, or by its position."""
    # A number as its text, too: an item may be called "1".
    text = str(given)
    for items in lists:
        if text in items:
            return items.index(text)
    items = lists[0]
    is_position = type(given) is int and 0 <= given < len(items)
    # Where items are numbers, 2 could be the item "2" or the third one: only the text counts.
    if not is_position or any(_is_number(item) for item in items):
        raise AnswerError("not among the items")
    return int(given)


def _is_number(text: str) -> bool:
    return text.strip().lstrip("+-").isdigit()


def _read_pair(question: Table, languages: Sequence[TranslatedQuestion], given: Any) -> int:
    if isinstance(given, list | tuple) and len(given) == 2:
        row = _position([texts.items for texts in languages], given[0])
        column = _position([texts.columns for texts in languages], given[1])
        return row * len(question.columns) + column
    # "a / b / c" may be row "a" and column "b / c", or row "a / b" and column "c".
    if question.choices.count(str(given)) > 1:
        raise AnswerError("the text of two pairs")
    return _position([question.choices], given)


def read_number(question: Number, given: Any) -> int:
    """Return a number in steps from the lowest one; raises if it is not among them."""
    number = _parse_number(given)
    steps = (number - question.low) / question.step
    # Between two steps a person has not answered; a device must not choose for them.
    if steps.denominator != 1 or not 0 <= steps <= question.largest:
        raise AnswerError("outside the range, or between two steps")
    return int(steps)


def _read_band(question: Bands, given: Any) -> int:
    if isinstance(given, str) and given in question.choices:
        return question.choices.index(given)
    return question.find_band(_parse_number(given))


def _parse_number(given: Any) -> Fraction:
    if isinstance(given, bool) or not isinstance(given, int | float | str | Fraction):
        raise AnswerError("not a number")
    if isinstance(given, float) and not math.isfinite(given):
        raise AnswerError("not a number")
    text = str(given).strip()
    # An exponent could make a number of billions of digits.
    if len(text) > _MAX_DIGITS or "e" in text.lower():
        raise AnswerError("not a number of a usual size")
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise AnswerError("not a number") from None


def describe_possible(question: Question) -> str:
    """What may be answered to a question, as the end of "the answer must be"."""
    text = _describe_kind(question)
    return f"{text}; or None for {SKIP_LABEL!r}" if question.skip else text


def _describe_kind(question: Question) -> str:
    if isinstance(question, Table):
        return f"a pair of one of {_list(question.rows)}, and one of {_list(question.columns)}"
    if isinstance(question, SeveralItems):
        most = "" if question.limit == len(question.items) else f"at most {question.limit} "
        return f"a list of {most}of the {len(question.items):,} items: {_list(question.items)}"
    if isinstance(question, Number):
        low, high, step = map(format_exact, (question.low, question.high, question.step))
        return f"a number from {low} to {high} in steps of {step}"
    if isinstance(question, Bands):
        low = format_exact(question.edges[0])
        high = format_exact(question.edges[-1])
        return f"a number from {low} to {high}"
    items = question.items if isinstance(question, OneOf | ScaleMean) else ()
    return (
        f"one of the {len(items):,} items that the survey offers, spelled as here, in upper and "
        f"lower case: {_list(items)}"
    )


def _list(items: Sequence[str]) -> str:
    listed = ", ".join(escape_controls(item) for item in items[:LISTED_ITEMS])
    if len(items) > LISTED_ITEMS:
        listed += f" and {len(items) - LISTED_ITEMS:,} more"
    return listed


def describe_answer(question: Question, answer: Answer) -> str:
    """A canonical answer in words, for the person who gave it."""
    if isinstance(question, ChoiceQuestion):
        return question.answers[answer] if isinstance(answer, int) else NOT_APPLICABLE_LABEL
    if answer is None:
        return question.missing_label
    if isinstance(question, SeveralItems) and isinstance(answer, tuple):
        return ", ".join(question.items[place] for place in answer) or "none of them"
    if isinstance(question, ScaleMean) and isinstance(answer, int):
        return question.items[answer]
    if isinstance(question, SumQuestion) and isinstance(answer, int):
        return format_exact(question.origin + answer * question.unit)
    return SKIP_LABEL

"""The questions of a survey in a terminal: shown, and asked one by one."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from faircount.core.domain import escape_controls
from faircount.core.errors import AnswerError

if TYPE_CHECKING:
    from rich.console import Console

    from faircount.accounting.levels import Levels
    from faircount.core.questions import Question, Questionnaire, Sheet
    from faircount.core.questions.question import Answer
    from faircount.core.questions.several_items import SeveralItems

NONE_OF_THEM = "0"
NOT_SAID = "-"


def show_questions(out: "Console", questionnaire: "Questionnaire") -> None:
    """Print all questions with what may be answered."""
    if questionnaire.title:
        out.print(f"{escape_controls(questionnaire.title)}\n", markup=False)
    for number, question in enumerate(questionnaire.questions):
        # A single question needs no number.
        name = f"{number + 1}. " if len(questionnaire) > 1 else ""
        out.print(f"{name}{escape_controls(_text_of(question))}", markup=False)
        out.print(f"{_describe_branch(questionnaire, number)}", markup=False, end="")
        _show_possible(out, question)
        out.print()


def _text_of(question: "Question") -> str:
    from faircount.core.questions import Table

    if isinstance(question, Table):
        return f"{question.text} / {question.columns_text}"
    return question.text


def _describe_branch(questionnaire: "Questionnaire", number: int) -> str:
    """Who is asked a question; empty if everybody is."""
    from faircount.core.questions.choices import ChoiceQuestion

    branch = questionnaire.questions[number].only_if
    if branch is None:
        return ""
    earlier = questionnaire.questions[branch.question]
    # A questionnaire allows no other kind; the test is for the type checker.
    choices = earlier.choices if isinstance(earlier, ChoiceQuestion) else ()
    listed = " or ".join(escape_controls(choices[item]) for item in branch.items)
    return f"(only after {listed} in question {branch.question + 1})\n"


def _show_possible(out: "Console", question: "Question") -> None:
    from faircount.cli.show import make_definitions
    from faircount.core.questions import Number, Table
    from faircount.core.questions.question import SKIP_LABEL
    from faircount.core.questions.several_items import SeveralItems

    if isinstance(question, Number):
        lines = [("", _range_of(question))]
    elif isinstance(question, Table):
        lines = [*_number_lines(question.rows), ("", "and"), *_number_lines(question.columns)]
    else:
        lines = _number_lines(_items_of(question))
    if isinstance(question, SeveralItems):
        # A limit of all items limits nothing, and is not worth a number.
        limit = "any of them" if question.limit == len(question.items) else f"{question.limit}"
        lines.append(("", limit if limit == "any of them" else f"at most {limit} of them"))
    if question.skip:
        lines.append((NOT_SAID, SKIP_LABEL))
    out.print(make_definitions(lines))


def _number_lines(items: Sequence[str]) -> list[tuple[str, str]]:
    return [(f"{number}.", item) for number, item in enumerate(items, 1)]


def _items_of(question: "Question") -> tuple[str, ...]:
    """What a person chooses from; empty for a number."""
    from faircount.core.questions.choices import ChoiceQuestion

    if isinstance(question, ChoiceQuestion):
        return question.choices
    items: tuple[str, ...] = getattr(question, "items", ())
    return items


def _range_of(question: Any) -> str:
    from faircount.core.questions.question import format_exact

    low, high, step = map(format_exact, (question.low, question.high, question.step))
    return f"a number from {low} to {high}" + ("" if step == "1" else f" in steps of {step}")


def ask_questions(out: "Console", questionnaire: "Questionnaire") -> "Sheet":
    """Ask every question that concerns this person, and return the answers."""
    sheet: list[Answer] = []
    for number, question in enumerate(questionnaire.questions):
        if not questionnaire.is_asked(number, sheet):
            # Answered for them: the report must have all bits, whoever was asked.
            sheet.append(question.not_applicable)
            continue
        if len(questionnaire) > 1:
            title = f"{number + 1}. {escape_controls(_text_of(question))}"
            out.print(f"\n{title}", markup=False)
            _show_possible(out, question)
        sheet.append(_ask(question))
    # Once more as a whole, as the page and Python do it: what is sent was checked in one place.
    return questionnaire.check_sheet(sheet)


def _ask(question: "Question") -> "Answer":
    from faircount.core.questions import Number, Table
    from faircount.core.questions.question import SKIP_LABEL
    from faircount.core.questions.several_items import SeveralItems

    skip = f" ({NOT_SAID} for {SKIP_LABEL})" if question.skip else ""
    if isinstance(question, SeveralItems):
        return _ask_several(question, skip)
    if isinstance(question, Number):
        return _ask_number(question, skip)
    if isinstance(question, Table):
        row = _ask_position(f"Number of your answer to {question.text}", len(question.rows), False)
        text = f"Number of your answer to {question.columns_text}"
        column = _ask_position(text, len(question.columns), False)
        # The cells of a table are numbered row by row. Neither is None, since a table has no skip.
        return (row or 0) * len(question.columns) + (column or 0)
    position = _ask_position(f"Number of your answer{skip}", len(_items_of(question)), bool(skip))
    return question.check_answer(position)


def _ask_position(text: str, items: int, has_skip: bool) -> int | None:
    """The position of one item, or None for "prefer not to say"."""

    def read(given: str) -> int | None:
        if has_skip and given.strip() == NOT_SAID:
            return None
        return _read_number_of_item(given, items)

    answer: int | None = click.prompt(text, value_proc=read)
    return answer


def _read_number_of_item(given: str, items: int) -> int:
    """The position, from 0, of an item that is given by its number, from 1."""
    written = given.strip().rstrip(".")
    # Other digits than 0 to 9 would pass `isdigit`.
    number = int(written) if written.isascii() and written.isdigit() else 0
    if not 1 <= number <= items:
        raise click.UsageError(f"give a number from 1 to {items}")
    return number - 1


def _ask_several(question: "SeveralItems", skip: str) -> "Answer":
    some = question.limit < len(question.items)
    limit = f"at most {question.limit}, " if some else ""
    text = f"Numbers of your answers, such as 1,2 ({limit}{NONE_OF_THEM} for none of them){skip}"

    def read(given: str) -> "Answer":
        written = given.strip()
        if skip and written == NOT_SAID:
            return None
        # An empty line would do as well, but click takes it for no answer and asks again.
        if written == NONE_OF_THEM:
            return ()
        # People separate numbers by commas, by spaces or by both.
        parts = written.replace(",", " ").split()
        chosen = [_read_number_of_item(part, len(question.items)) for part in parts]
        try:
            return question.check_answer(chosen)
        except AnswerError as problem:
            raise click.UsageError(str(problem)) from None

    answer: Answer = click.prompt(text, value_proc=read)
    return answer


def _ask_number(question: Any, skip: str) -> "Answer":
    from faircount.client.answers import read_number

    text = _range_of(question)

    def read(given: str) -> "Answer":
        if skip and given.strip() == NOT_SAID:
            return None
        try:
            steps: int = question.check_answer(read_number(question, given))
            return steps
        # The message of the parser speaks of steps, which nobody here has seen.
        except AnswerError:
            raise click.UsageError(f"your answer must be {text}") from None

    answer: Answer = click.prompt(f"{text[0].upper()}{text[1:]}{skip}", value_proc=read)
    return answer


def ask_level(out: "Console", levels: "Levels", language: str) -> int:
    """Ask how well the answer shall be hidden, and return the position of the level."""
    from faircount.accounting.guarantee import attacker_certainty
    from faircount.cli.show import make_definitions
    from faircount.estimation.level_texts import level_words

    words = level_words(language)
    out.print(f"\n{words.question}\n", markup=False)
    lines = []
    for number, name in enumerate(levels.names):
        answer, both = (
            f"{attacker_certainty(loss):.1f}".replace(".", words.decimal)
            for loss in levels.stated_losses(number)
        )
        meaning = words.meaning(number, len(levels), answer, both)
        lines.append((f"{number + 1}. {escape_controls(words.name(name))}", meaning))
    out.print(make_definitions(lines))
    out.print(f"\n{words.hidden}", markup=False)

    def read(given: str) -> int:
        return _read_number_of_item(given, len(levels))

    # The strongest is what somebody gets who only presses return.
    position: int = click.prompt(words.number_of_level, default="1", value_proc=read)
    return position


def show_answers(out: "Console", questionnaire: "Questionnaire", sheet: "Sheet") -> None:
    """Print every answer as it will be sent, for the person to confirm."""
    from faircount.cli.show import make_table
    from faircount.client.answers import describe_answer

    rows = []
    pairs = zip(questionnaire.questions, sheet, strict=True)
    for number, (question, answer) in enumerate(pairs, 1):
        name = f"{number}. {_text_of(question)}" if len(sheet) > 1 else _text_of(question)
        rows.append((name, describe_answer(question, answer)))
    heading = "your answers" if len(sheet) > 1 else "your answer"
    out.print(make_table(["question", heading], rows, left=(0, 1)))

"""Turn the columns of a table into answers to a questionnaire, and add their cells up.

A cell is compared with the answers as text, as in `cells`. Blank cells are "prefer not to say"
where a question offers it. Otherwise they choose nothing where any items may be chosen, and are
refused everywhere else. Who is not asked a question (`only_if`) has the answer "does not apply",
and a blank cell or that text in the table. Errors say how many users have an answer that cannot be
read, and never which one.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import compress
from typing import Any

import numpy as np

from faircount.analysis.cells import text_of
from faircount.core.arrays import Bools, Ints
from faircount.core.domain import is_missing
from faircount.core.errors import AnswerError
from faircount.core.questions import (
    Bands,
    Number,
    OneOf,
    Question,
    ScaleMean,
    Table,
    YesNo,
)
from faircount.core.questions.blocks import weighted_sum
from faircount.core.questions.choices import ChoiceQuestion
from faircount.core.questions.form import Form, Source
from faircount.core.questions.question import NOT_APPLICABLE_LABEL, SKIP_LABEL, Answer
from faircount.core.questions.several_items import SeveralItems

Cells = tuple[object, ...]
Reader = Callable[[Cells], Answer]

# Numbers of a table have fewer characters, and exponents of fewer digits: "1e999999999" would be
# computed for minutes.
_MAX_DIGITS = 400
_MAX_EXPONENT = 3

# Stands for a cell that is neither a value nor a list; it is none of the answers.
_NO_ANSWER = object()

# How tables write no and yes, besides the words of the question.
_TRUTH = {"false": 0, "0": 0, "no": 0, "true": 1, "1": 1, "yes": 1}


class _UnreadableError(AnswerError):
    """A cell that is no answer to its question."""


class _BlankError(AnswerError):
    """A cell without an answer where one is needed."""


def count_cells(form: Form, columns: Sequence[Sequence[Any]]) -> Ints:
    """Return the sums of all cells over the rows of a table.

    columns: those that the sources of the form name, in their order
    """
    questions = form.questionnaire.questions
    # Only these decide who is asked, so only their answers are needed person by person.
    deciding = {question.only_if.question for question in questions if question.only_if}
    answers: dict[int, list[Answer]] = {}
    asked: dict[int, Bools] = {}
    totals: list[int] = []
    start = 0
    for number, (question, source) in enumerate(zip(questions, form.sources, strict=True)):
        own = columns[start : start + len(source.columns)]
        start += len(source.columns)
        try:
            asked[number] = _find_asked(question, len(own[0]), answers, asked)
            totals += _count_asked(question, source, own, asked[number])
            if number in deciding:
                answers[number] = _read_rows(question, source, own, asked[number])
        except AnswerError as problem:
            name = f"question {number + 1} ({question.text!r:.60})"
            raise AnswerError(f"{name}: {problem}") from None
    return np.array(totals, dtype=np.int64)


def _find_asked(
    question: Question, rows: int, answers: dict[int, list[Answer]], asked: dict[int, Bools]
) -> Bools:
    """Return which users are asked a question, by their answers to the one that decides it."""
    branch = question.only_if
    if branch is None:
        return np.ones(rows, dtype=bool)
    chosen = np.array([answer in branch.items for answer in answers[branch.question]], dtype=bool)
    return chosen & asked[branch.question]


def _read_rows(
    question: Question, source: Source, columns: Sequence[Sequence[Any]], asked: Bools
) -> list[Answer]:
    """Return every user's answer; all of them can be read, because they were counted before."""
    read = _reader_of(question, source)
    rows = zip(*columns, strict=True)
    return [
        question.check_answer(read(tuple(row))) if is_asked else question.not_applicable
        for row, is_asked in zip(rows, asked, strict=True)
    ]


def _count_asked(
    question: Question, source: Source, columns: Sequence[Sequence[Any]], asked: Bools
) -> list[int]:
    """Return the sums of one question's cells, where some users are not asked."""
    if asked.all():
        return _count_question(question, source, columns)
    kept = [list(compress(column, asked)) for column in columns]
    sums = _count_question(question, source, kept) if asked.any() else [0] * question.cells
    others = [list(compress(column, ~asked)) for column in columns]
    has_marks = isinstance(question, SeveralItems) and len(columns) > 1
    wrong = 0
    for row in zip(*others, strict=True):
        wrong += not all(_is_empty(cell, has_marks) for cell in row)
    if wrong:
        raise AnswerError(
            f"{wrong:,} of {len(asked):,} users have an answer although they are not asked: leave "
            "these cells blank, or see only_if of the question"
        )
    bits = question.encode(question.not_applicable)
    users = int((~asked).sum())
    return [
        total + users * weighted_sum(weights, bits)
        for total, weights in zip(sums, question.cell_weights, strict=True)
    ]


def _is_empty(cell: object, has_marks: bool) -> bool:
    """Whether a cell may stand in the row of somebody who is not asked."""
    if is_missing(cell):
        return True
    text = text_of(cell)
    # In a column per item, "no" says as little as a blank cell.
    return text == NOT_APPLICABLE_LABEL or (has_marks and _TRUTH.get(text.casefold()) == 0)


def _count_question(
    question: Question, source: Source, columns: Sequence[Sequence[Any]]
) -> list[int]:
    """Return the sums of one question's cells."""
    read = _reader_of(question, source)
    sums = [0] * question.cells
    blank = 0
    unreadable = 0
    # Tables repeat few distinct answers many times, so each is read once.
    distinct = _count_distinct(columns)
    for key, users in distinct.items():
        try:
            bits = question.encode(read(key[len(columns) :]))
        except _BlankError:
            blank += users
            continue
        except (AnswerError, ValueError):
            # Python refuses to write an integer of thousands of digits as text (ValueError).
            unreadable += users
            continue
        for cell, weights in enumerate(question.cell_weights):
            sums[cell] += users * weighted_sum(weights, bits)
    rows = sum(distinct.values())
    if blank:
        raise AnswerError(
            f"{blank:,} of {rows:,} users have no answer: offer 'prefer not to say' with "
            "skip = true, or leave these rows out if it is public who they are"
        )
    if unreadable:
        raise AnswerError(
            f"{unreadable:,} of {rows:,} users have an answer that is not offered: see the items, "
            "the range or the separator of the question"
        )
    return sums


def _count_distinct(columns: Sequence[Sequence[Any]]) -> Counter[Cells]:
    """Return how many users have the same cells, by the types and then the values of a row."""
    # True, 1 and 1.0 are equal but do not read alike, so the types are part of the key.
    keyed: list[Any] = [list(map(type, column)) for column in columns]
    keyed += columns
    try:
        return Counter(zip(*keyed, strict=True))
    except TypeError:
        # A cell that is a list cannot be counted as it is.
        keyed = [list(map(_hashable, column)) for column in keyed]
        return Counter(zip(*keyed, strict=True))


def _hashable(cell: object) -> object:
    """Return a cell that holds several items as a tuple of texts, and others as they are."""
    if isinstance(cell, list | set | tuple | np.ndarray):
        return tuple(map(text_of, cell))
    try:
        hash(cell)
    except TypeError:
        # Such as a dictionary: no question has an answer like that.
        return _NO_ANSWER
    return cell


def _reader_of(question: Question, source: Source) -> Reader:
    """Return what reads the cells of a row as an answer to the question."""
    if isinstance(question, Table):
        return _table_reader(question)
    if isinstance(question, SeveralItems):
        if len(source.columns) > 1:
            return _marks_reader(question)
        return _items_reader(question, source.separator)
    if isinstance(question, Number | Bands):
        return _number_reader(question)
    if isinstance(question, OneOf | ScaleMean):
        return _choice_reader(question)
    raise AnswerError(f"answers to a question of kind {question.kind} cannot be read from a table")


def _positions(items: Sequence[str]) -> dict[str, int]:
    return {text_of(item): position for position, item in enumerate(items)}


def _find(positions: dict[str, int], cell: object) -> int:
    position = positions.get(text_of(cell))
    if position is None:
        raise _UnreadableError("not among the items")
    return position


def _is_skipped(question: Question, cell: object) -> bool:
    """Whether a cell is "prefer not to say"; a blank one without that answer is refused."""
    if is_missing(cell):
        if not question.skip:
            raise _BlankError("no answer")
        return True
    return question.skip and text_of(cell) == SKIP_LABEL


def _choice_reader(question: OneOf | ScaleMean) -> Reader:
    positions = _positions(question.items)
    # Where the answers are no and yes, cells may be truth values in any spelling.
    is_truth = isinstance(question, YesNo) and question.items == ("no", "yes")

    def read(cells: Cells) -> Answer:
        cell = cells[0]
        if _is_skipped(question, cell):
            return None
        return _find(_TRUTH, text_of(cell).casefold()) if is_truth else _find(positions, cell)

    return read


def _table_reader(question: Table) -> Reader:
    rows = _positions(question.rows)
    columns = _positions(question.columns)

    def read(cells: Cells) -> Answer:
        if any(map(is_missing, cells)):
            raise _BlankError("no answer")
        return _find(rows, cells[0]) * len(question.columns) + _find(columns, cells[1])

    return read


def _items_reader(question: SeveralItems, separator: str) -> Reader:
    positions = _positions(question.items)

    def read(cells: Cells) -> Answer:
        cell = cells[0]
        if isinstance(cell, tuple | frozenset):
            chosen: Sequence[object] = tuple(cell)
        elif is_missing(cell):
            # A blank cell chooses nothing, which is an answer to "any of these".
            return None if question.skip else ()
        elif question.skip and text_of(cell) == SKIP_LABEL:
            return None
        else:
            chosen = [part for part in text_of(cell).split(separator) if part.strip()]
        return tuple(_find(positions, item) for item in chosen)

    return read


def _marks_reader(question: SeveralItems) -> Reader:
    def read(cells: Cells) -> Answer:
        if question.skip and all(map(is_missing, cells)):
            return None
        chosen = []
        for position, cell in enumerate(cells):
            if not is_missing(cell) and _find(_TRUTH, text_of(cell).casefold()):
                chosen.append(position)
        return tuple(chosen)

    return read


def _number_reader(question: Number | Bands) -> Reader:
    def read(cells: Cells) -> Answer:
        if _is_skipped(question, cells[0]):
            return None
        number = _parse_number(text_of(cells[0]))
        if isinstance(question, ChoiceQuestion):
            return question.find_band(number)
        return question.count_steps(number)

    return read


def _parse_number(text: str) -> Fraction:
    exponent = text.lower().partition("e")[2].lstrip("+-")
    if len(text) > _MAX_DIGITS or len(exponent) > _MAX_EXPONENT:
        raise _UnreadableError("not a number of a usual size")
    try:
        return Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise _UnreadableError("not a number") from None

"""The questions of a form: from what the owner typed to a questionnaire, and back.

The page sends a list of questions, each with the texts of its fields. Lists of answers have one
entry per line. `kind` is that of a questionnaire file, and two more: `mean` is a scale of which the
mean is counted, `bands` a number that is asked in bands. `only_if` is nothing or {question, items}:
the place of an earlier question, from 0, and positions of its answers.

What cannot be used has a code, with the number of the question where there are several: the page
says in its own language what to do.
"""

import base64
import binascii
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from faircount.core.errors import FaircountError, InputError, ParameterError
from faircount.core.questions import Question, Questionnaire, Table
from faircount.core.questions.choices import Bands
from faircount.core.questions.form import Form, make_form, parse_form
from faircount.core.questions.published import format_decimal, to_plain
from faircount.core.questions.question import (
    MAX_STEPS,
    MAX_TEXT,
    NOT_APPLICABLE_LABEL,
    SKIP_LABEL,
)
from faircount.core.questions.questionnaire import MAX_QUESTIONS
from faircount.core.questions.several_items import MostOf
from faircount.core.questions.sums import Number, ScaleMean
from faircount.owner.questions import check_items, check_question

Fields = Mapping[str, Any]

MAX_BYTES = 1_000_000
"""More would not be a questionnaire; the page reads a file into memory."""

UNWRITTEN = "?"
"""Stands for a text that the owner has not typed yet, so that the planner can give advice."""

CHOICE_KINDS = ("one", "yes", "scale", "bands")
"""Kinds with exactly one answer, on which it can depend that another question is asked."""


def questions_of(values: Fields) -> Form:
    """The questionnaire in a form; texts may be missing while the owner types."""
    asked = _read_questions(values)
    made: list[dict[str, Any]] = []
    for place, fields in enumerate(asked):
        with _NumberedProblems(place, len(asked)):
            made.append(_read_question(fields, made, asked))
    if not all("group" in fields for fields in made):
        # Groups come from a file. With a question that has none they mean nothing any more, and
        # the planner looks for the best ones.
        for fields in made:
            fields.pop("group", None)
    # A survey with one question has no title: the question says what it is about.
    title = _text(values, "title") if len(made) > 1 else ""
    try:
        return make_form(
            made, title, language=_text(values, "language"), titles=values.get("titles") or {}
        )
    except InputError as problem:
        if values.get("titles"):
            # The owner has changed questions, and their texts in other languages are as before.
            raise ParameterError(str(problem)).with_code("translations") from None
        # What no check above foresees.
        raise ParameterError(str(problem)).with_code("questions_unusable") from None


def check_texts(values: Fields) -> None:
    """Refuse questions without a text: what people are asked must be written now."""
    asked = _read_questions(values)
    for place, fields in enumerate(asked):
        with _NumberedProblems(place, len(asked)):
            check_question(_text(fields, "text"))
            if fields.get("kind") == "table":
                check_question(_text(fields, "columns_text"))


def fields_of(questionnaire: Questionnaire, form: Form | None = None) -> dict[str, Any]:
    """The fields of the form from which this questionnaire is made.

    form: where it comes from a file, with the errors that are wanted, and groups
    """
    plain = to_plain(questionnaire)
    questions = []
    for place, question in enumerate(questionnaire.questions):
        fields = _fields_of_question(question)
        translated = {
            language: texts["questions"][place] for language, texts in plain["translations"].items()
        }
        if translated:
            fields["translation"] = translated
        if form is not None:
            wanted = {"target": form.targets[place], "group": form.groups[place]}
            fields |= {name: value for name, value in wanted.items() if value is not None}
        questions.append(fields)
    titles = {
        language: {"title": texts["title"]} for language, texts in plain["translations"].items()
    }
    found = {"questions": questions, "title": questionnaire.title}
    return {**found, "language": questionnaire.language, "titles": titles}


def read_file(values: Fields) -> dict[str, Any]:
    """The fields of the questions in a TOML file {name, data} that the owner chose."""
    try:
        # `validate`: without it foreign characters are skipped, and half of a file would be read.
        data = base64.b64decode(values["file"]["data"], validate=True)
        # The name alone, for messages: nothing is read from or written to that path.
        name = Path(str(values["file"]["name"])).name
    except (KeyError, TypeError, binascii.Error):
        message = "a questionnaire is sent as its name and its bytes in base64"
        raise ParameterError(message).with_code("bad_call") from None
    if len(data) > MAX_BYTES:
        message = f"{name} has more than {MAX_BYTES:,} bytes: give a questionnaire in TOML"
        raise ParameterError(message).with_code("questions_file", file=name)
    try:
        form = parse_form(data, name)
    except FaircountError as problem:
        raise ParameterError(str(problem)).with_code("questions_file", file=name) from None
    return fields_of(form.questionnaire, form)


class _NumberedProblems:
    """Adds the number of the question to whatever is refused, if there are several questions."""

    def __init__(self, place: int, count: int) -> None:
        self._number = place + 1
        self._is_needed = count > 1

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, problem: BaseException | None, trace: object) -> None:
        if not isinstance(problem, FaircountError) or not self._is_needed:
            return
        message = f"question {self._number}: {problem}"
        # The code stays, so that the page says the same sentence with the number before it.
        values = {**problem.values, "question": self._number}
        raise ParameterError(message).with_code(problem.code, **values) from None


def _read_questions(values: Fields) -> list[Fields]:
    asked = values.get("questions")
    is_list = isinstance(asked, list) and all(isinstance(fields, Mapping) for fields in asked)
    if not isinstance(asked, list) or not is_list or not asked:
        raise ParameterError("the form has a list of questions").with_code("bad_call")
    # Before the planner: its search takes minutes for a few hundred questions.
    if len(asked) > MAX_QUESTIONS:
        message = f"a survey has at most {MAX_QUESTIONS} questions"
        raise ParameterError(message).with_code("too_many_questions", most=MAX_QUESTIONS)
    return asked


def _read_question(
    fields: Fields, earlier: Sequence[dict[str, Any]], asked: Sequence[Fields]
) -> dict[str, Any]:
    """The fields of a question as in a questionnaire file."""
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in _READERS:
        message = f"kind must be one of {', '.join(_READERS)}"
        raise ParameterError(message).with_code("bad_call")
    found = {"text": _asked_text(fields, "text"), **_READERS[kind](fields)}
    # A table names such an answer among its rows or columns.
    if kind != "table":
        found["skip"] = fields.get("skip") is True
        branch = _read_branch(fields.get("only_if"), earlier, asked)
        if branch is not None:
            found["only_if"] = branch
    carried = ("translation", "target", "group")
    return {**found, **{name: fields[name] for name in carried if fields.get(name)}}


def _read_branch(
    branch: Any, earlier: Sequence[dict[str, Any]], asked: Sequence[Fields]
) -> dict[str, Any] | None:
    if not branch:
        return None
    place = branch.get("question") if isinstance(branch, Mapping) else None
    # `type` and not isinstance: True is an integer in Python.
    is_earlier = type(place) is int and 0 <= place < len(earlier)
    if type(place) is not int or not is_earlier or asked[place].get("kind") not in CHOICE_KINDS:
        message = "only_if must name an earlier question with exactly one answer"
        raise ParameterError(message).with_code("branch_question")
    choices = _choices_of(earlier[place])
    positions = branch.get("items")
    known = range(len(choices))
    if (
        not isinstance(positions, list)
        or not positions
        or any(type(position) is not int or position not in known for position in positions)
    ):
        message = f"choose the answers to question {place + 1} with which this one is asked"
        raise ParameterError(message).with_code("branch_items", earlier=place + 1)
    return {"question": place + 1, "items": [choices[position] for position in positions]}


def _choices_of(fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The answers of a question on which another one depends."""
    if "bands" in fields:
        return Bands(text=UNWRITTEN, edges=tuple(fields["bands"])).choices
    return tuple(fields["items"])


def _read_items(fields: Fields) -> list[str]:
    items = _distinct_lines(fields, "items")
    if len(items) < 2:
        raise ParameterError("write at least two answers, one per line").with_code("too_few_items")
    return _check_answers(items)


def _distinct_lines(fields: Fields, name: str) -> list[str]:
    """An answer written twice counts once: two equal ones could not be told apart."""
    return list(dict.fromkeys(_lines(fields, name)))


def _check_answers(items: list[str]) -> list[str]:
    check_items(items)
    for item in items:
        _check_length(item)
        # Both are offered by ticks: a second answer of the same name would not be told apart.
        if item in (SKIP_LABEL, NOT_APPLICABLE_LABEL):
            message = f"{item!r} cannot be an answer: use the tick or the condition for it"
            raise ParameterError(message).with_code("reserved_item", item=item)
    return items


def _read_yes(fields: Fields) -> dict[str, Any]:
    items = _read_items(fields)
    if len(items) != 2:
        message = "a yes/no question has two answers: for more, choose another kind"
        raise ParameterError(message).with_code("two_items")
    return {"kind": "yes", "items": items}


def _read_most(fields: Fields) -> dict[str, Any]:
    items = _read_items(fields)
    written = _text(fields, "most")
    # ASCII digits, and few of them: `int` reads other digits too, and takes long for thousands.
    most = int(written) if written.isascii() and written.isdecimal() and len(written) < 9 else 0
    if not 1 <= most < len(items):
        message = f"at most a whole number from 1 to {len(items) - 1} of {len(items)} answers"
        raise ParameterError(message).with_code("most_range", largest=len(items) - 1)
    return {"kind": "most", "items": items, "most": most}


def _read_number(fields: Fields) -> dict[str, Any]:
    low, high = (_decimal(fields, name) for name in ("low", "high"))
    step = _decimal(fields, "step") if _text(fields, "step") else Fraction(1)
    if low >= high:
        message = "the largest number must be above the smallest one"
        raise ParameterError(message).with_code("number_range")
    # Exact fractions: with floats 40 / 0.1 would not be a whole number.
    if step <= 0 or ((high - low) / step).denominator != 1:
        message = "step must be above 0 and divide the range: 0 to 40 in steps of 0.5"
        raise ParameterError(message).with_code("number_step")
    if (high - low) / step > MAX_STEPS:
        message = f"a number has at most {MAX_STEPS:,} steps: choose a larger step"
        raise ParameterError(message).with_code("number_steps", most=MAX_STEPS)
    return {"kind": "number", "low": low, "high": high, "step": step}


def _read_bands(fields: Fields) -> dict[str, Any]:
    edges = [_decimal({"bands": line}, "bands") for line in _lines(fields, "bands")]
    if len(edges) < 3 or any(low >= high for low, high in pairwise(edges)):
        message = "bands have at least 3 edges, one per line, each above the one before"
        raise ParameterError(message).with_code("bands")
    return {"kind": "number", "bands": edges}


def _read_table(fields: Fields) -> dict[str, Any]:
    rows = _distinct_lines(fields, "rows")
    if len(rows) < 2:
        raise ParameterError("write at least two rows, one per line").with_code("too_few_rows")
    columns = _distinct_lines(fields, "columns")
    if len(columns) < 2:
        message = "write at least two columns, one per line"
        raise ParameterError(message).with_code("too_few_columns")
    return {
        "kind": "table",
        "text": [_asked_text(fields, "text"), _asked_text(fields, "columns_text")],
        "rows": _check_answers(rows),
        "columns": _check_answers(columns),
    }


# Kind in the form -> what makes the fields of a questionnaire file.
_READERS: dict[str, Callable[[Fields], dict[str, Any]]] = {
    "one": lambda fields: {"kind": "one", "items": _read_items(fields)},
    "yes": _read_yes,
    "any": lambda fields: {"kind": "any", "items": _read_items(fields)},
    "most": _read_most,
    "scale": lambda fields: {"kind": "scale", "items": _read_items(fields), "open": "counts"},
    "mean": lambda fields: {"kind": "scale", "items": _read_items(fields), "open": "mean"},
    "number": _read_number,
    "bands": _read_bands,
    "table": _read_table,
}


def _fields_of_question(question: Question) -> dict[str, Any]:
    branch = None
    if question.only_if is not None:
        branch = {"question": question.only_if.question, "items": list(question.only_if.items)}
    found: dict[str, Any] = {"kind": question.kind, "text": question.text, "only_if": branch}
    found["skip"] = question.skip
    if isinstance(question, Table):
        lists = {"rows": "\n".join(question.rows), "columns": "\n".join(question.columns)}
        return {**found, "columns_text": question.columns_text, **lists}
    if isinstance(question, Bands):
        return {**found, "kind": "bands", "bands": "\n".join(map(format_decimal, question.edges))}
    if isinstance(question, Number):
        names = ("low", "high", "step")
        return {**found, **{name: format_decimal(getattr(question, name)) for name in names}}
    found["items"] = "\n".join(getattr(question, "items", ()))
    if isinstance(question, MostOf):
        found["most"] = str(question.most)
    return {**found, "kind": "mean"} if isinstance(question, ScaleMean) else found


def _asked_text(fields: Fields, name: str) -> str:
    """What is asked; a mark while the owner has typed nothing yet."""
    text = _text(fields, name)
    _check_length(text)
    return text or UNWRITTEN


def _check_length(text: str) -> None:
    if len(text) > MAX_TEXT:
        message = f"questions and answers have at most {MAX_TEXT} characters"
        raise ParameterError(message).with_code("text_too_long", most=MAX_TEXT)


def _decimal(fields: Fields, name: str) -> Fraction:
    """A number exactly as it is written; a decimal comma is one, too."""
    written = _text(fields, name).replace(",", ".")
    try:
        is_finite = math.isfinite(float(written))
        # "1/3" is a fraction too, and no decimal.
        number = Fraction(written) if is_finite and "/" not in written else None
    except ValueError:
        number = None
    if number is None:
        raise ParameterError(f"{name} must be a number").with_code("not_a_number", field=name)
    return number


def _text(fields: Fields, name: str) -> str:
    return str(fields.get(name, "")).strip()


def _lines(fields: Fields, name: str) -> list[str]:
    lines = (line.strip() for line in _text(fields, name).splitlines())
    return [line for line in lines if line]

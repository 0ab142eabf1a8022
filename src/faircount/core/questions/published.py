"""Questions as plain values: how published parameters spell them, the same in all programs.

Numbers of a range or of bands are decimals in text, so that no reader rounds them. Every kind has
exactly its own keys; a reader that finds another key, or misses one, refuses the question.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from faircount.core.errors import MalformedError, ParameterError
from faircount.core.questions.choices import Bands, OneOf, ScaleCounts, Table, YesNo
from faircount.core.questions.question import Branch, Question
from faircount.core.questions.questionnaire import Questionnaire
from faircount.core.questions.several_items import AnyOf, MostOf
from faircount.core.questions.sums import Number, ScaleMean
from faircount.core.questions.translations import TranslatedQuestion, Translation

# One spelling per number, or else two digests for the same questions; at most 300 digits on either
# side of the point, since the work of a fraction grows with their square.
_DECIMAL = re.compile(r"-?(0|[1-9][0-9]{0,299})(\.[0-9]{0,299}[1-9])?")


def to_plain(questionnaire: Questionnaire) -> dict[str, Any]:
    """Return the keys of published parameters that describe the questions."""
    return {
        "title": questionnaire.title,
        "language": questionnaire.language,
        "questions": [_question_to_plain(question) for question in questionnaire.questions],
        "translations": {
            translation.language: _translation_to_plain(translation)
            for translation in questionnaire.translations
        },
    }


def from_plain(plain: Mapping[str, Any]) -> Questionnaire:
    """Return the questionnaire in published parameters, or raise."""
    translations = []
    # An object of JSON has no order; sorted, all programs read the same list.
    for language, texts in sorted(_read_object(plain["translations"]).items()):
        translations.append(_translation_from_plain(language, texts))
    return Questionnaire(
        tuple(_question_from_plain(fields) for fields in _read_list(plain["questions"])),
        plain["title"],
        plain["language"],
        tuple(translations),
    )


def format_decimal(number: Fraction) -> str:
    """Return the shortest decimal text of a number."""
    # A decimal's denominator has no other factors than 2 and 5.
    places = 0
    scaled = number
    while scaled.denominator != 1:
        places += 1
        scaled = number * 10**places
        if places > 300:
            raise ParameterError("numbers of a question must be decimals, such as 0.25")
    digits = str(abs(scaled.numerator)).rjust(places + 1, "0")
    sign = "-" if number < 0 else ""
    whole = digits[: len(digits) - places]
    return f"{sign}{whole}.{digits[-places:]}" if places else f"{sign}{whole}"


def parse_decimal(text: object) -> Fraction:
    """Return the number of a decimal text in its shortest form."""
    # The pattern allows the sign before a 0, which is needed for -0.5.
    if not isinstance(text, str) or not _DECIMAL.fullmatch(text) or text == "-0":
        raise MalformedError("a number of a question must be the shortest decimal text")
    return Fraction(text)


def _question_to_plain(question: Question) -> dict[str, Any]:
    branch = question.only_if
    common = {
        "kind": question.kind,
        "text": question.text,
        "skip": question.skip,
        "only_if": None,
    }
    if branch is not None:
        common["only_if"] = {"question": branch.question, "items": list(branch.items)}
    if isinstance(question, Table):
        texts = [question.text, question.columns_text]
        own = {"text": texts, "rows": list(question.rows), "columns": list(question.columns)}
        return {**common, **own}
    if isinstance(question, Bands):
        return {**common, "bands": [format_decimal(edge) for edge in question.edges]}
    if isinstance(question, Number):
        names = ("low", "high", "step")
        return {**common, **{name: format_decimal(getattr(question, name)) for name in names}}
    with_items = {**common, "items": list(getattr(question, "items", ()))}
    if isinstance(question, MostOf):
        return {**with_items, "most": question.most}
    if isinstance(question, ScaleCounts | ScaleMean):
        opened = "mean" if isinstance(question, ScaleMean) else "counts"
        return {**with_items, "open": opened}
    return with_items


def _question_from_plain(fields: Any) -> Question:
    plain = _read_object(fields)
    kind = plain.get("kind")
    # One kind for authors, two in what they open: the counts of bands, or a sum.
    if kind == "number" and "bands" in plain:
        kind = "bands"
    if kind == "scale" and plain.get("open") == "mean":
        kind = "scale as a mean"
    if not isinstance(kind, str) or kind not in _READERS:
        raise MalformedError("a question has an unknown kind")
    names, make = _READERS[kind]
    # check: question-keys - a key that one reader knows and another one ignores
    if set(plain) != {"kind", "text", "skip", "only_if", *names}:
        raise MalformedError("a question has a missing or an unknown key")
    # 0 and 1 would pass as truth in Python, and as another digest everywhere.
    if type(plain["skip"]) is not bool:
        raise MalformedError("skip of a question must be true or false")
    common = {"text": plain["text"], "skip": plain["skip"], "only_if": _read_branch(plain)}
    return make(plain, common)


def _read_branch(plain: Mapping[str, Any]) -> Branch | None:
    if plain["only_if"] is None:
        return None
    branch = _read_object(plain["only_if"])
    if set(branch) != {"question", "items"}:
        raise MalformedError("only_if of a question names a question and items")
    positions = [branch["question"], *_read_list(branch["items"])]
    # `type` and not isinstance: True is an integer in Python, and another value in JSON.
    if any(type(position) is not int for position in positions):
        raise MalformedError("only_if of a question consists of whole numbers")
    return Branch(positions[0], tuple(positions[1:]))


def _read_items(plain: Mapping[str, Any], name: str = "items") -> tuple[str, ...]:
    return tuple(_read_list(plain[name]))


def _make_most(plain: Mapping[str, Any], common: dict[str, Any]) -> Question:
    # True is an integer in Python, and would be read as 1.
    if type(plain["most"]) is not int:
        raise MalformedError("most of a question must be a whole number")
    return MostOf(items=_read_items(plain), most=plain["most"], **common)


def _make_scale(plain: Mapping[str, Any], common: dict[str, Any]) -> Question:
    if plain["open"] not in ("counts", "mean"):
        raise MalformedError("open of a scale is counts or mean")
    kind = ScaleMean if plain["open"] == "mean" else ScaleCounts
    return kind(items=_read_items(plain), **common)


def _make_number(plain: Mapping[str, Any], common: dict[str, Any]) -> Question:
    low, high, step = (parse_decimal(plain[name]) for name in ("low", "high", "step"))
    return Number(low=low, high=high, step=step, **common)


def _make_bands(plain: Mapping[str, Any], common: dict[str, Any]) -> Question:
    edges = tuple(parse_decimal(edge) for edge in _read_list(plain["bands"]))
    return Bands(edges=edges, **common)


def _make_table(plain: Mapping[str, Any], common: dict[str, Any]) -> Question:
    texts = _read_list(common.pop("text"))
    if len(texts) != 2:
        raise MalformedError("a table has two texts: for its rows and for its columns")
    return Table(
        text=texts[0],
        columns_text=texts[1],
        rows=_read_items(plain, "rows"),
        columns=_read_items(plain, "columns"),
        **common,
    )


# Kind -> its own keys, and what makes the question.
_READERS: dict[
    str, tuple[tuple[str, ...], Callable[[Mapping[str, Any], dict[str, Any]], Question]]
] = {
    "one": (("items",), lambda plain, common: OneOf(items=_read_items(plain), **common)),
    "yes": (("items",), lambda plain, common: YesNo(items=_read_items(plain), **common)),
    "any": (("items",), lambda plain, common: AnyOf(items=_read_items(plain), **common)),
    "most": (("items", "most"), _make_most),
    "scale": (("items", "open"), _make_scale),
    "scale as a mean": (("items", "open"), _make_scale),
    "number": (("low", "high", "step"), _make_number),
    "bands": (("bands",), _make_bands),
    "table": (("rows", "columns"), _make_table),
}


def _translation_to_plain(translation: Translation) -> dict[str, Any]:
    questions = []
    for question in translation.questions:
        plain: dict[str, Any] = {"text": question.texts[0]}
        if question.columns:
            texts = list(question.texts)
            rows = list(question.items)
            plain = {"text": texts, "rows": rows, "columns": list(question.columns)}
        elif question.items:
            plain["items"] = list(question.items)
        questions.append(plain)
    return {"title": translation.title, "questions": questions}


def _translation_from_plain(language: str, texts: Any) -> Translation:
    plain = _read_object(texts)
    if set(plain) != {"title", "questions"}:
        raise MalformedError("a translation has a title and questions")
    questions = []
    for fields in _read_list(plain["questions"]):
        own = _read_object(fields)
        if set(own) == {"text", "rows", "columns"}:
            found = TranslatedQuestion(
                tuple(_read_list(own["text"])),
                _read_items(own, "rows"),
                _read_items(own, "columns"),
            )
        elif set(own) == {"text", "items"}:
            found = TranslatedQuestion((own["text"],), _read_items(own))
        elif set(own) == {"text"}:
            found = TranslatedQuestion((own["text"],))
        else:
            raise MalformedError(
                "a translated question has its text, and items or rows and columns"
            )
        questions.append(found)
    return Translation(language, plain["title"], tuple(questions))


def _read_object(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise MalformedError("a question or a translation is not an object")
    return value


def _read_list(value: Any) -> Sequence[Any]:
    # Not any sequence: a text would be read as a list of its characters.
    if not isinstance(value, list):
        raise MalformedError("items, texts or numbers of a question are not a list")
    return value

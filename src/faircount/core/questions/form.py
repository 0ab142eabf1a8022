"""Read a questionnaire from a TOML file, or from the same fields in Python.

    title = "Working here"

    [[question]]
    kind = "one"
    text = "Which site?"
    items = ["North", "South", "East"]
    skip = true
    column = "site"

Fields of every question: kind, text, skip, target (the wanted half-width of its intervals, in
percentage points), group (a name: questions with the same name share their noise), and column, the
column of a data table that holds the answers; it is called like the text if it is left out. For
`any` and `most`, column may be a list of one column per item, and for a table it is a list of two.
`only_if = {question = 1, items = ["North"]}` asks only those who gave one of these answers to an
earlier question, which is named by its number, from 1, or by its text. The other fields depend on
the kind:

    one, any        items
    yes             items, the second of which is counted; no and yes if left out
    most            items, most
    scale           items, open ("counts" or "mean")
    number          low, high, step; or bands, a list of edges
    table           text (two of them), rows, columns

The texts may be given in further languages. Then `language` says which one is above:

    language = "en"
    [translation.de]
    title = "Arbeiten hier"
    [[question]]
    ...
    translation.de = {text = "Welcher Standort?", items = ["Nord", "Sued", "Ost"]}
"""

import os
import tomllib
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from faircount.core.errors import InputError, ParameterError
from faircount.core.files import describe_os_error
from faircount.core.questions.choices import Bands, ChoiceQuestion, OneOf, ScaleCounts, Table, YesNo
from faircount.core.questions.question import Branch, Question, check_text
from faircount.core.questions.questionnaire import Questionnaire
from faircount.core.questions.several_items import AnyOf, MostOf
from faircount.core.questions.sums import Number, ScaleMean
from faircount.core.questions.translations import TranslatedQuestion, Translation, check_language
from faircount.core.validation import check_positive

SEPARATOR = ";"
"""Between the items of a cell that holds several."""

_COMMON = (
    "kind",
    "text",
    "skip",
    "only_if",
    "translation",
    "target",
    "group",
    "column",
    "separator",
)


@dataclass(frozen=True, slots=True)
class Source:
    """Where the answers to a question are in a table.

    columns:   one column; for `any` and `most` also one per item, for a table two
    separator: stands between the items of a cell that holds several
    """

    columns: tuple[str, ...]
    separator: str = SEPARATOR


@dataclass(frozen=True)
class Form:
    """A questionnaire as its author wrote it.

    questionnaire: the questions
    sources:       where the answers to every question are in a table
    targets:       wanted half-widths in percentage points; None where none is wanted
    groups:        the name of the group of every question; None where none is named
    """

    questionnaire: Questionnaire
    sources: tuple[Source, ...]
    targets: tuple[float | None, ...]
    groups: tuple[str | None, ...]


def as_form(questions: Any, example: str) -> Form:
    """Return the form of questions that are given in any way that Python offers.

    questions: a form, a questionnaire, the path of a TOML file, or the fields of all questions
    example:   how to give them, for the message of an error
    """
    if isinstance(questions, Form):
        return questions
    if isinstance(questions, Questionnaire):
        return form_of(questions)
    if isinstance(questions, str | os.PathLike):
        return read_form(Path(questions))
    # A single question without the list around it is a mapping, too.
    if isinstance(questions, Mapping) or not isinstance(questions, Sequence):
        raise ParameterError(
            "questions must be the path of a TOML file or a list of questions, as in " + example
        )
    return make_form(questions)


def read_form(path: Path) -> Form:
    """Read a questionnaire from a TOML file."""
    try:
        data = path.read_bytes()
    except OSError as problem:
        raise ParameterError(f"{path} cannot be read: {describe_os_error(problem)}") from None
    return parse_form(data, str(path))


def parse_form(data: bytes, path: str) -> Form:
    """Read a questionnaire from the bytes of a TOML file; `path` is for messages only."""
    try:
        # With or without a byte order mark, which editors on Windows write.
        fields = tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise ParameterError(f"{path} is not UTF-8 text") from None
    except tomllib.TOMLDecodeError as problem:
        raise ParameterError(f"{path} is not TOML: {problem}") from None
    except (ValueError, RecursionError):
        # Integers of thousands of digits, and brackets inside thousands of brackets.
        raise ParameterError(
            f"{path} has a number or a nesting that is too large to be read"
        ) from None
    # An unknown field is refused and not ignored: a misspelt `skip` would ask another question than
    # its author meant, and participants have answered before anybody notices.
    unknown = set(fields) - {"title", "question", "language", "translation"}
    if unknown:
        raise ParameterError(
            f"{path} has the unknown field {sorted(unknown)[0]!r}: a questionnaire has a title and "
            "one [[question]] for each question"
        )
    questions = fields.get("question", [])
    if not isinstance(questions, list):
        raise ParameterError(f"{path}: write [[question]] in double brackets above each question")
    return make_form(
        questions,
        fields.get("title", ""),
        language=fields.get("language", ""),
        titles=fields.get("translation", {}),
    )


def make_form(
    questions: Sequence[Mapping[str, Any]],
    title: str = "",
    *,
    language: str = "",
    titles: Mapping[str, Any] | None = None,
) -> Form:
    """Make a questionnaire from the fields of its questions.

    language: in which the texts are written
    titles:   language -> {"title": ...} for every translation
    """
    if title != "":
        check_text("title", title)
    made: list[Question] = []
    sources = []
    targets = []
    groups = []
    for number, fields in enumerate(questions, 1):
        if not isinstance(fields, Mapping):
            raise ParameterError(
                f"question {number}: give its fields, as in "
                "{'kind': 'yes', 'text': 'Would you recommend us?'}"
            )
        try:
            question = _make_question(fields)
            # Only among the questions before it, which `made` holds so far.
            branch = _find_branch(fields.get("only_if"), made)
            if branch is not None:
                question = replace(question, only_if=branch)
            made.append(question)
            sources.append(_find_source(question, fields))
            targets.append(_find_target(fields))
            groups.append(_find_group(fields))
        # The message of a kind knows nothing about the other questions: here it gets a number.
        except InputError as problem:
            text = fields.get("text")
            name = f" ({text!r:.60})" if isinstance(text, str) else ""
            raise ParameterError(f"question {number}{name}: {problem}") from None
    # With names for some of them only, it would be a guess which noise the others share.
    if any(groups) and not all(groups):
        missing = groups.index(None) + 1
        raise ParameterError(
            f"question {missing}: name its group, or leave group out of all questions"
        )
    translations = _find_translations(questions, titles or {})
    questionnaire = Questionnaire(tuple(made), title, language, translations)
    return Form(questionnaire, tuple(sources), tuple(targets), tuple(groups))


def form_of(questionnaire: Questionnaire) -> Form:
    """Return the form of a questionnaire about which nothing else is said."""
    sources = tuple(_find_source(question, {}) for question in questionnaire.questions)
    nothing = (None,) * len(questionnaire)
    return Form(questionnaire, sources, nothing, nothing)


def _find_branch(fields: Any, earlier: Sequence[Question]) -> Branch | None:
    """Return on which answers to an earlier question it depends that a question is asked."""
    if fields is None:
        return None
    example = 'write only_if = {question = 1, items = ["North"]}'
    if not isinstance(fields, Mapping) or set(fields) != {"question", "items"}:
        raise ParameterError(f"only_if needs a question and items: {example}")
    number = _find_question(fields["question"], earlier)
    question = earlier[number]
    items = fields["items"]
    if not isinstance(question, ChoiceQuestion) or not isinstance(items, list | tuple):
        raise ParameterError(f"only_if names answers to a question with exactly one: {example}")
    # Among what the author wrote: "prefer not to say" leads to no further question.
    unknown = [item for item in items if item not in question.choices]
    if unknown:
        raise ParameterError(
            f"only_if names {unknown[0]!r:.60}, which is no answer to question {number + 1}"
        )
    # Sorted and without repetition, so that the same question has one digest.
    return Branch(number, tuple(sorted({question.choices.index(item) for item in items})))


def _find_question(name: Any, earlier: Sequence[Question]) -> int:
    """Return the number, from 0, of an earlier question that is given by number or by text."""
    texts = [question.text for question in earlier]
    # Two questions may have the same text; then only the number tells them apart.
    if isinstance(name, str) and texts.count(name) == 1:
        return texts.index(name)
    if type(name) is int and 1 <= name <= len(earlier):
        return name - 1
    raise ParameterError("only_if must name an earlier question, by its number or its text")


def _find_translations(
    questions: Sequence[Mapping[str, Any]], titles: Mapping[str, Any]
) -> tuple[Translation, ...]:
    """Return the translations of all questions, sorted by language."""
    if not isinstance(titles, Mapping):
        raise ParameterError("write the title of a translation under [translation.de]")
    languages = set(map(check_language, titles))
    for number, fields in enumerate(questions, 1):
        languages |= set(map(check_language, _own_translations(fields, number)))
    found = []
    # In a fixed order, since translations are part of the digest in invitations.
    for language in sorted(languages):
        texts = [_translate(fields, language, number) for number, fields in enumerate(questions, 1)]
        title = titles.get(language, {})
        if not isinstance(title, Mapping) or set(title) - {"title"}:
            raise ParameterError(f"[translation.{language}] has a title and nothing else")
        found.append(Translation(language, title.get("title", ""), tuple(texts)))
    return tuple(found)


def _own_translations(fields: Mapping[str, Any], number: int) -> Mapping[str, Any]:
    """Return the texts of one question in all further languages."""
    texts = fields.get("translation", {})
    if not isinstance(texts, Mapping):
        raise ParameterError(
            f"question {number}: write its texts in another language as translation.de = {{text = "
            '"...", items = [...]}'
        )
    return texts


def _translate(fields: Mapping[str, Any], language: str, number: int) -> TranslatedQuestion:
    """Return the texts of one question in a language."""
    texts = _own_translations(fields, number).get(language)
    name = f"question {number}: its translation into {language}"
    if not isinstance(texts, Mapping) or "text" not in texts:
        raise ParameterError(f"{name} is missing: translate all questions, or none")
    unknown = set(texts) - {"text", "items", "rows", "columns"}
    if unknown:
        raise ParameterError(f"{name} has the unknown field {sorted(unknown)[0]!r:.40}")
    asked = texts["text"]
    lists = [texts.get(key, []) for key in ("items", "rows", "columns")]
    if not all(isinstance(entries, list | tuple) for entries in lists):
        raise ParameterError(f"{name} needs lists of texts")
    items, rows, columns = map(tuple, lists)
    both = tuple(asked) if isinstance(asked, list | tuple) else (asked,)
    # A table has rows where other kinds have items.
    return TranslatedQuestion(both, items or rows, columns)


def _make_question(fields: Mapping[str, Any]) -> Question:
    kind = fields.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise ParameterError(f"kind must be one of {', '.join(_KINDS)}, not {kind!r:.40}")
    if "text" not in fields:
        raise ParameterError("text is missing: what is asked")
    known, make = _KINDS[kind]
    for name in map(str, fields):
        # A field of another kind is refused too: `most` in an `any` question limits nothing.
        if name not in (*_COMMON, *known):
            similar = get_close_matches(name, (*_COMMON, *known), n=1)
            advice = f"; did you mean {similar[0]}?" if similar else ""
            raise ParameterError(f"a question of kind {kind} has no field {name!r:.40}{advice}")
    return make(fields)


def _require(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return these fields and skip; a missing one is an error."""
    for name in names:
        if name not in fields:
            raise ParameterError(
                f"{name} is missing: a question of kind {fields['kind']!r} needs it"
            )
    found = {name: fields[name] for name in names}
    return {"text": fields["text"], "skip": fields.get("skip", False), **found}


def _make_yes(fields: Mapping[str, Any]) -> Question:
    names = ("items",) if "items" in fields else ()
    return YesNo(**_require(fields, *names))


def _make_scale(fields: Mapping[str, Any]) -> Question:
    opened = fields.get("open", "counts")
    if opened not in ("counts", "mean"):
        raise ParameterError(f"open must be counts or mean, not {opened!r:.40}")
    given = _require(fields, "items")
    return ScaleMean(**given) if opened == "mean" else ScaleCounts(**given)


def _make_number(fields: Mapping[str, Any]) -> Question:
    if "bands" not in fields:
        names = ("low", "high", "step") if "step" in fields else ("low", "high")
        return Number(**_require(fields, *names))
    extra = [name for name in ("low", "high", "step") if name in fields]
    if extra:
        raise ParameterError(f"bands have their own edges: leave {extra[0]} out")
    given = _require(fields, "bands")
    edges = given.pop("bands")
    if isinstance(edges, str) or not isinstance(edges, Sequence):
        raise ParameterError("bands must be a list of numbers, as in [0, 10, 20, 50]")
    return Bands(edges=tuple(edges), **given)


def _make_table(fields: Mapping[str, Any]) -> Question:
    given = _require(fields, "rows", "columns")
    texts = given.pop("text")
    if isinstance(texts, str) or not isinstance(texts, Sequence) or len(texts) != 2:
        raise ParameterError("text of a table must be a list of two: for its rows and its columns")
    row_text, column_text = texts
    columns = given.pop("columns")
    return Table(text=row_text, columns_text=column_text, columns=columns, **given)


# Kind -> the fields of its own, and what makes the question.
_KINDS: dict[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any]], Question]]] = {
    "one": (("items",), lambda fields: OneOf(**_require(fields, "items"))),
    "yes": (("items",), _make_yes),
    "any": (("items",), lambda fields: AnyOf(**_require(fields, "items"))),
    "most": (("items", "most"), lambda fields: MostOf(**_require(fields, "items", "most"))),
    "scale": (("items", "open"), _make_scale),
    "number": (("low", "high", "step", "bands"), _make_number),
    "table": (("rows", "columns"), _make_table),
}


def _find_source(question: Question, fields: Mapping[str, Any]) -> Source:
    separator = fields.get("separator", SEPARATOR)
    if not isinstance(separator, str) or not separator:
        raise ParameterError("separator must be a text, such as ';'")
    # Without names, the columns are called like the questions.
    default: Any = question.text
    if isinstance(question, Table):
        default = [question.text, question.columns_text]
    column = fields.get("column", default)
    if not isinstance(column, list | tuple):
        if isinstance(question, Table):
            raise ParameterError("column of a table must be a list of two: for rows and columns")
        _check_separator(question, separator)
        return Source((column,), separator)
    if not isinstance(question, AnyOf | MostOf | Table):
        raise ParameterError("column must be the name of one column")
    wanted = 2 if isinstance(question, Table) else len(question.items)
    are_names = all(isinstance(name, Hashable) for name in column)
    # One column given twice would count the same answers as two items.
    if not are_names or len(column) != wanted or len(set(column)) < wanted:
        raise ParameterError(f"column must be a list of {wanted} different names")
    return Source(tuple(column), separator)


def _check_separator(question: Question, separator: str) -> None:
    """Refuse items that a cell with several items would break into others."""
    if isinstance(question, AnyOf | MostOf) and any(separator in item for item in question.items):
        raise ParameterError(
            f"an item contains {separator!r:.20}, which stands between the items of a cell: choose "
            "another separator, or give column as a list of one column per item"
        )


def _find_target(fields: Mapping[str, Any]) -> float | None:
    target = fields.get("target")
    return None if target is None else check_positive("target", target)


def _find_group(fields: Mapping[str, Any]) -> str | None:
    group = fields.get("group")
    return None if group is None else check_text("group", group)

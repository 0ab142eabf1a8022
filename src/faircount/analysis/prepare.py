"""Turn the raw cells of a table into one item per user.

    one user    Every user is counted once. Several rows of a user with different answers, as of
                a question with several answers, are refused, or the first of them counts. Without a
                user column every row is a user, and the guarantee then holds on condition that
                every row is another person.
    missing     None, blank text, NaN, NaT, NA, and the spellings that the analyst names. Such rows
                are refused, left out, or counted as the item named by `other`. All other text is
                an answer, "NA" and "null" included.
    outside     Answers that are not on the public list are refused, left out, or counted as the
                item named by `other`.

The number of users is published, so leaving users out because of their answers leaks something
about those answers: that becomes a condition of the guarantee. So does a list of items that was
taken from the answers. The notes that accompany a result name these rules, but never how many rows
a rule affected, which would be an exact count of answers. An error does give that number, because
only the analyst sees it.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from faircount.accounting.conditions import ROWS_ARE_PEOPLE, Condition, ConditionCode, condition_of
from faircount.analysis.cells import explain_mismatches, text_of
from faircount.analysis.coded_column import CodedColumn, take
from faircount.core.arrays import Ints
from faircount.core.domain import ONE_VALUE_PER_CELL, Domain, is_missing
from faircount.core.errors import AnswerError, ParameterError, RefusedError

_DROP_CONDITIONS = {
    "missing": condition_of(ConditionCode.PUBLIC_MISSING),
    "outside": condition_of(ConditionCode.PUBLIC_OUTSIDE),
}
"""What leaving such rows out shows, by the kind of row."""

REFUSE = "refuse"
DROP = "drop"
OTHER = "other"
RULES = (REFUSE, DROP, OTHER)
FIRST = "first"
REPEATED = (REFUSE, FIRST)

MISSING_CODE = -1
OUTSIDE_CODE = -2

# The two kinds of rows without an item of the list: their code and a description.
KINDS = {
    "missing": (MISSING_CODE, "no answer"),
    "outside": (OUTSIDE_CODE, "an answer outside the list"),
}


@dataclass(frozen=True)
class Rules:
    """How to treat rows that have no item of the list.

    missing, outside: "refuse", "drop" or "other"; `outside` is by default "other" if `other` is
                      given, else "refuse"
    other:            the item that such rows count as
    spellings:        texts that count as no answer; one text is one spelling
    repeated:         "refuse" or "first", where rows of one user hold different answers
    """

    missing: str = REFUSE
    outside: str | None = None
    other: object | None = None
    spellings: str | Sequence[str] = ()
    repeated: str = REFUSE

    def __post_init__(self) -> None:
        if self.outside is None:
            # Whoever names an item for other answers wants them to be counted as that item.
            object.__setattr__(self, "outside", REFUSE if self.other is None else OTHER)
        if self.repeated not in REPEATED:
            raise ParameterError(
                f"repeated must be one of {', '.join(REPEATED)}, not {self.repeated!r}"
            )
        for kind in KINDS:
            rule = getattr(self, kind)
            if rule not in RULES:
                raise ParameterError(f"{kind} must be one of {', '.join(RULES)}, not {rule!r}")
        if OTHER in (self.missing, self.outside) and self.other is None:
            raise ParameterError(
                "to count such answers as an item of the list, name the item: --other ITEM "
                "(other= in Python)"
            )
        if self.other is not None and OTHER not in (self.missing, self.outside):
            raise ParameterError(
                f"no answers count as {self.other!r}: leave --other out (other= in Python), or set "
                "--missing or --outside to other"
            )

    def apply(self, codes: Ints, domain: Domain, cells: Sequence[object]) -> Ints:
        """Codes of the cells under these rules; rows whose code stays negative are left out."""
        for kind, (code, description) in KINDS.items():
            rule = getattr(self, kind)
            rows = np.flatnonzero(codes == code)
            if rows.size and rule == REFUSE:
                message = f"{rows.size:,} of {codes.size:,} users have {description}. "
                if kind == "outside":
                    message += explain_mismatches([cells[row] for row in rows.tolist()], domain)
                raise AnswerError(message + _ADVICE[kind])
            if rule == OTHER:
                codes = np.where(codes == code, self._position_of_other(domain), codes)
        return codes

    def _position_of_other(self, domain: Domain) -> int:
        wanted = text_of(self.other)
        for position, label in enumerate(domain.labels):
            if text_of(label) == wanted:
                return position
        raise ParameterError(
            f"the item {self.other!r} that such answers count as is not on the list: add it"
        )

    def missing_texts(self, domain: Domain) -> list[str]:
        """The spellings that count as no answer, as texts; none of them may be an item."""
        items = {text_of(label) for label in domain.labels}
        # A text is a sequence of letters, each of which would count as no answer.
        spellings = (self.spellings,) if isinstance(self.spellings, str) else self.spellings
        texts = [text_of(spelling) for spelling in spellings]
        # Otherwise an answer on the list would be left out or counted as another one.
        if items.intersection(texts):
            raise ParameterError(
                "a spelling that counts as missing is an item of the list: remove one of the two"
            )
        return texts

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for the reader of a result; they do not depend on the answers."""
        effects = {DROP: "are left out", OTHER: f"count as {self.other}"}
        sentences = []
        for kind, (_, description) in KINDS.items():
            rule = getattr(self, kind)
            if rule != REFUSE:
                sentences.append(f"users with {description} {effects[rule]}")
        return tuple(sentences)

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Conditions of the guarantee where users are left out because of their answer."""
        return tuple(
            condition for kind, condition in _DROP_CONDITIONS.items() if getattr(self, kind) == DROP
        )


_DROPPING = (
    "--{kind} drop leaves them out; the published number of users then shows how many were left "
    "out, and the guarantee says so. (In Python: {kind}='other', other=..., or {kind}='drop'.)"
)

_ADVICE = {
    "missing": "Count them as an item of the list: --missing other --other ITEM. "
    + _DROPPING.format(kind="missing"),
    "outside": "In pandas, set(df[column]) - set(domain) shows them. Add them to the list if "
    "everybody may know that they are possible answers, or count them as an item of the list: "
    "--other ITEM. " + _DROPPING.format(kind="outside"),
}


@dataclass(frozen=True)
class Prepared:
    """Encoded answers, one per user.

    domain:      the items
    positions:   the position of every user's answer in the list of items
    kept:        the rows of the table that these answers come from
    notes:       what a reader of the result must know
    conditions: conditions of the guarantee
    """

    domain: Domain
    positions: Ints
    kept: Ints
    notes: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()


def prepare(
    answers: Sequence[object],
    *,
    items: Any,
    from_data: bool = False,
    users: Sequence[object] | None = None,
    rules: Rules | None = None,
) -> Prepared:
    """Encode the answer of every user as a position in the list of items."""
    rules = rules or Rules()
    notes: tuple[str, ...] = ()
    conditions: tuple[Condition, ...] = ()
    if users is None:
        rows = np.arange(len(answers))
        conditions = (ROWS_ARE_PEOPLE,)
    else:
        rows = first_rows(users)
        if rows.size < len(users):
            if rules.repeated == REFUSE:
                check_rows_agree(users, answers)
            notes = ("of users with several rows, only the first row counts",)
    if from_data:
        conditions = (condition_of(ConditionCode.PUBLIC_ITEMS), *rules.conditions, *conditions)
    else:
        conditions = (*rules.conditions, *conditions)

    domain = item_list(items, answers, from_data)
    cells = take(answers, rows)
    codes = rules.apply(_encode(cells, domain, rules.missing_texts(domain)), domain, cells)
    kept = codes >= 0
    if not kept.any():
        raise AnswerError(
            "no user has an answer on the list: check the column and the list of items"
        )
    return Prepared(domain, codes[kept], rows[kept], notes + rules.notes, conditions)


def first_rows(users: Sequence[object]) -> Ints:
    """Row number of every user's first row."""
    seen: dict[str, int] = {}
    for row, user in enumerate(users):
        if is_missing(user):
            raise AnswerError(
                "a row has no user: fill the user column, so that nobody is counted twice"
            )
        # The first row, even if it has no answer: choosing the row by its content would leak that
        # content.
        seen.setdefault(text_of(user), row)
    return np.fromiter(seen.values(), dtype=np.int64, count=len(seen))


def check_rows_agree(users: Sequence[object], answers: Sequence[object]) -> None:
    """Refuse users whose rows hold different answers, such as those to a choose-all question."""
    answer_of: dict[str, str | None] = {}
    disagreeing = set()
    for user, cell in zip(map(text_of, users), answers, strict=True):
        answer = None if is_missing(cell) else text_of(cell)
        if answer_of.setdefault(user, answer) != answer:
            disagreeing.add(user)
    if disagreeing:
        raise AnswerError(
            f"{len(disagreeing):,} of {len(answer_of):,} users have several rows with different "
            "answers. Each user counts for one item: if people could choose several, ask about "
            "each item in a run of its own, with a column of yes and no. If only the first row of "
            "each person is meant to count, use --repeated first (repeated='first' in Python)"
        )


def item_list(given: Any, answers: Sequence[object], from_data: bool) -> Domain:
    """The public list of items, or one taken from the answers where that is asked for."""
    if given is not None and from_data:
        raise ParameterError("give the list of items, or take it from the data: not both")
    if given is not None:
        return _given_list(given, answers)
    if not from_data:
        raise RefusedError(
            "no list of items was given. A list taken from the answers reveals that somebody gave "
            "each answer on it, which no noise can hide. Give the public list: --domain a,b,c or "
            "--domain @FILE (in Python domain=, a list, a file's path, or a column's categories if "
            "they are public). To take the list from the answers nevertheless, use "
            "--domain-from-data; the guarantee then does not cover the list"
        )
    # Sorted below, because the order of rows tells which answer came first.
    texts = {text_of(answer) for answer in answers if not is_missing(answer)}
    if len(texts) < 2:
        raise AnswerError(
            "the table holds fewer than 2 different answers, too few for a list of items"
        )
    return Domain(tuple(sorted(texts)))


def _given_list(given: Any, answers: Sequence[object]) -> Domain:
    """Read and check a list that the analyst gives."""
    if isinstance(given, str | os.PathLike):
        # Never the letters of a text: a single text is always the name of a file.
        path = Path(os.fspath(given).removeprefix("@"))
        if given == str(path) and not path.exists():
            raise ParameterError(
                f"domain: there is no file {given!r}; give the path of a file with one item a "
                "line, or a list of items, as in ['yes', 'no']"
            )
        labels: Any = read_lines(path)
    else:
        # A categorical Series or array has a dtype, and the dtype has the categories.
        dtype = getattr(given, "dtype", given)
        labels = getattr(dtype, "categories", given)
    if labels is None:
        raise ParameterError(
            "domain: the categorical dtype has no categories yet; name them, as in "
            "pd.CategoricalDtype(['yes', 'no'])"
        )
    if isinstance(labels, set | frozenset):
        raise ParameterError(
            "domain: give the items as a list, because their order matters and a set has none; "
            "sorted(...) makes one"
        )
    if isinstance(labels, Iterable) and getattr(labels, "ndim", 1) == 1:
        is_column = labels is given and hasattr(given, "dtype")
        labels = list(labels)
        _check_not_answers(labels, answers, is_column)
    domain = Domain.of(labels)
    if any(is_missing(label) for label in domain.labels):
        raise ParameterError(
            "an item of the list is blank: remove it, and see the rule for missing answers"
        )
    # Two items that read alike would share their answers, and one of them would count nobody.
    if len({text_of(label) for label in domain.labels}) < len(domain):
        raise ParameterError(
            "two items of the list read alike (blanks around an item do not count): remove one"
        )
    return domain


def _check_not_answers(
    labels: Sequence[object], answers: Sequence[object], is_column: bool
) -> None:
    """Refuse the column of answers in place of the list of items."""
    texts = [text_of(label) for label in labels]
    repeats = len(set(texts)) < len(texts)
    same = len(texts) == len(answers) and texts == [text_of(answer) for answer in answers]
    # A list that the analyst wrote may hold, in a tiny table, the same as the rows do.
    are_answers = (repeats or same) if is_column else (repeats and same)
    if are_answers:
        raise ParameterError(
            "domain: these are the answers, not the list of items to choose from; give the public "
            "list, as in ['yes', 'no']"
        )


def read_lines(path: Path) -> list[str]:
    """The lines of a text file that are not blank."""
    try:
        # With or without a byte order mark, which Excel and Windows editors write.
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as problem:
        raise AnswerError(
            f"{path} cannot be opened: {(problem.strerror or 'unknown reason').lower()}"
        ) from None
    except UnicodeDecodeError:
        raise AnswerError(f"{path} cannot be read as a list: one entry a line, in UTF-8") from None
    return [line.strip() for line in lines if line.strip()]


def _encode(cells: Sequence[object], domain: Domain, missing_texts: Sequence[str]) -> Ints:
    """Positions of the cells in the list, or a negative code."""
    if isinstance(cells, CodedColumn):
        return _encode(cells.distinct, domain, missing_texts)[cells.codes]
    code_of_text = {text_of(label): position for position, label in enumerate(domain.labels)}
    code_of_text |= dict.fromkeys(missing_texts, MISSING_CODE)
    # Tables repeat few distinct cells many times, so each distinct cell is normalized once. The
    # type is part of the key because True, 1 and 1.0 are equal but do not read alike.
    known: dict[object, int] = {}
    codes = np.empty(len(cells), dtype=np.int64)
    try:
        for row, cell in enumerate(cells):
            key = cell if isinstance(cell, str) else (type(cell), cell)
            if key not in known:
                if is_missing(cell):
                    known[key] = MISSING_CODE
                else:
                    known[key] = code_of_text.get(text_of(cell), OUTSIDE_CODE)
            codes[row] = known[key]
    except TypeError:  # a list or dict is not hashable
        raise AnswerError(ONE_VALUE_PER_CELL) from None
    return codes

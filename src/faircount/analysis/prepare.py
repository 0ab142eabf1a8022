"""From raw cells to one item per user, by rules that are stated with the result and part of its guarantee.

    one user      the first row of a user counts, further ones are left out; without a user column every row is a user,
                  and that each row is another person becomes a condition of the guarantee
    missing       None, blank text, NaN, NaT, NA, and the spellings that were named: refused, or left out, or counted as
                  the item named by `other`; any other text, "NA" and "null" too, is an answer
    outside       not on the public list: refused, or left out, or counted as the item named by `other`
    comparing     as text: blanks around it do not count, Unicode in composed form, upper and lower case differ

Leaving users out by what they answered shows in the number of users, which is published; so it becomes a condition of
the guarantee, and so does a list of items that was taken from the answers themselves. What is noted for the reader
names the rules and never how many rows they met: such a number is an exact count of answers. A refusal, which only
the analyst sees, does say the number.
"""

import os
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from faircount.analysis.hints import hints
from faircount.core.arrays import Ints
from faircount.core.domain import Domain
from faircount.core.errors import AnswerError, ParameterError, RefusedError

ROWS_ARE_PEOPLE = "each row is another person"
"""What a guarantee per person needs where no column tells people apart."""

REFUSE, DROP, OTHER = RULES = ("refuse", "drop", "other")


KINDS = {"missing": (-1, "no answer"), "outside": (-2, "an answer outside the list")}
"""Code of a row without an item of the list, and what that is called."""


@dataclass(frozen=True)
class Rules:
    """What to do with rows that have no item of the list; `spellings` are texts that count as no answer."""

    missing: str = REFUSE
    outside: str = REFUSE
    other: object | None = None
    spellings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for kind in KINDS:
            if getattr(self, kind) not in RULES:
                raise ParameterError(f"{kind} must be one of {', '.join(RULES)}, not {getattr(self, kind)!r}")
        if OTHER in (self.missing, self.outside) and self.other is None:
            raise ParameterError(
                "to count such answers as an item of the list, name it: --other ITEM (other= in Python)"
            )

    def applied(self, codes: Ints, domain: Domain, cells: Sequence[object]) -> Ints:
        """The codes of the cells after the rules; those that stay negative are left out."""
        for kind, (code, what) in KINDS.items():
            rule, met = getattr(self, kind), np.flatnonzero(codes == code)
            if met.size and rule == REFUSE:
                why = hints([cells[row] for row in met.tolist()], domain, text_of) if kind == "outside" else ""
                raise AnswerError(_refusal(met.size, codes.size, kind, what, why))
            if rule == OTHER:
                codes = np.where(codes == code, _place(self.other, domain), codes)
        return codes

    def checked(self, domain: Domain) -> tuple[str, ...]:
        """The spellings as they are compared; an item of the list cannot count as no answer."""
        texts = tuple(text_of(each) for each in self.spellings)
        if {text_of(each) for each in domain.labels} & set(texts):
            raise ParameterError("a spelling that counts as missing is an item of the list: leave one of them out")
        return texts

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know, the same whatever the answers are."""
        words = {DROP: "are left out", OTHER: f"count as {self.other}"}
        rules = [(getattr(self, kind), what) for kind, (_, what) in KINDS.items()]
        return tuple(f"users with {what} {words[rule]}" for rule, what in rules if rule != REFUSE)

    @property
    def assumed(self) -> tuple[str, ...]:
        """What the guarantee depends on where users are left out for their answer."""
        return tuple(f"it is public who has {what}" for kind, (_, what) in KINDS.items() if getattr(self, kind) == DROP)


@dataclass(frozen=True)
class Prepared:
    """Encoded answers, one per user, in the rows `kept`; what was done, and what the guarantee now assumes."""

    domain: Domain
    positions: Ints
    kept: Ints
    notes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()


def text_of(value: object) -> str:
    """How a value is compared: whole numbers without a point, everything else as it prints."""
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value.strip())
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value).strip()


def is_missing(value: object) -> bool:
    """None, blank text, NaN, NaT and pandas' NA."""
    if value is None or isinstance(value, str):
        return not (value and value.strip())
    try:
        return bool(value != value)
    except TypeError:  # NA is neither equal to itself nor different
        return True
    except ValueError:
        raise AnswerError("answers must be single values, one per row: a cell holds a list") from None


def listed(given: Any) -> Any:
    """The list of items in a file ("@FILE" or a path, one item a line), or the categories of a categorical column."""
    if isinstance(given, os.PathLike) or (isinstance(given, str) and given.startswith("@")):
        return lines_of(Path(given[1:] if isinstance(given, str) else given))
    kind = getattr(given, "dtype", given)  # a Series or Categorical has a dtype, which has the categories
    found = getattr(kind, "categories", given)
    return found if isinstance(found, str | int) else list(found)


def lines_of(path: Path) -> list[str]:
    """The lines of a text file that are not blank."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as problem:
        raise AnswerError(f"{path} cannot be opened: {(problem.strerror or 'unknown reason').lower()}") from None
    except UnicodeDecodeError:
        raise AnswerError(f"{path} cannot be read as a list: one entry a line, in UTF-8") from None
    return [each.strip() for each in lines if each.strip()]


def item_list(given: Any, answers: Sequence[object], from_data: bool) -> Domain:
    """The public list; from the answers only where that was asked for in so many words."""
    if given is not None and from_data:
        raise ParameterError("give the list of items, or take it from the data: not both")
    if given is not None:
        domain = Domain.of(listed(given))
        if any(is_missing(each) for each in domain.labels):
            raise ParameterError("an item of the list is blank: remove it, and see the rule for missing answers")
        if len({text_of(each) for each in domain.labels}) < len(domain):
            raise ParameterError("two items of the list read alike (blanks around an item do not count): remove one")
        return domain
    if not from_data:
        raise RefusedError(
            "no list of items was given. A list taken from the answers gives away that somebody gave each answer on "
            "it, which no noise can hide. Give the public list: --domain a,b,c or --domain @FILE (in Python domain=, a "
            "list, a file's path, or a column's categories if they are public). --domain-from-data takes it from the "
            "answers all the same; the guarantee then does not cover the list"
        )
    found = sorted({text_of(each) for each in answers if not is_missing(each)})
    if len(found) < 2:
        raise AnswerError(
            f"the answers hold {len(found)} different item{'s' * (len(found) != 1)}: at least 2 are needed"
        )
    return Domain(tuple(found))


def first_rows(users: Sequence[object]) -> Ints:
    """Row numbers of each user's first row."""
    if any(is_missing(each) for each in users):
        raise AnswerError("a row has no user: fill the user column, so that nobody is counted twice")
    seen: dict[str, int] = {}
    for row, each in enumerate(users):
        seen.setdefault(text_of(each), row)
    return np.fromiter(seen.values(), dtype=np.int64, count=len(seen))


def prepare(
    answers: Sequence[object],
    *,
    items: Any,
    from_data: bool = False,
    users: Sequence[object] | None = None,
    rules: Rules | None = None,
) -> Prepared:
    """One position in the list of items per user, after the rules of this file."""
    how = rules or Rules()
    rows = np.arange(len(answers)) if users is None else first_rows(users)
    domain = item_list(items, answers, from_data)
    cells = [answers[row] for row in rows]
    codes = how.applied(_encode(cells, domain, how.checked(domain)), domain, cells)
    kept = codes >= 0
    if not kept.any():
        raise AnswerError("no user has an answer on the list: check the column and the list of items")
    one = () if users is None else ("of users with several rows the first counts",)
    people = (ROWS_ARE_PEOPLE,) if users is None else ()
    listed = ("the list of items is public (it was taken from the answers)",) if from_data else ()
    return Prepared(domain, codes[kept], rows[kept], one + how.notes, listed + how.assumed + people)


def _encode(answers: Sequence[object], domain: Domain, spellings: Sequence[str] = ()) -> Ints:
    """Positions, or a negative code; every distinct cell is looked at once."""
    (missing, _), (outside, _) = KINDS.values()
    place = {text_of(label): j for j, label in enumerate(domain.labels)} | dict.fromkeys(spellings, missing)
    known: dict[object, int] = {}
    codes = np.empty(len(answers), dtype=np.int64)
    try:
        for row, cell in enumerate(answers):
            key = (
                cell if isinstance(cell, str) else (type(cell), cell)
            )  # True, 1 and 1.0 are equal but read differently
            code = known.get(key)
            if code is None:
                code = known[key] = missing if is_missing(cell) else place.get(text_of(cell), outside)
            codes[row] = code
    except TypeError:
        raise AnswerError("answers must be single values, one per row: a cell holds a list") from None
    return codes


def _place(wanted: object, domain: Domain) -> int:
    for j, label in enumerate(domain.labels):
        if text_of(label) == text_of(wanted):
            return j
    raise ParameterError(f"the item {wanted!r} that such answers count as is not on the list: add it")


def _refusal(count: int, users: int, kind: str, what: str, why: str) -> str:
    """For the analyst alone."""
    head = f"{count:,} of {users:,} users have {what}. {why}"
    if kind == "outside":
        head += "Add those answers to the list, or count them as one of its items: --other ITEM. "
    else:
        head += "Count them as an item of the list: --missing other --other ITEM. "
    return head + (
        f"--{kind} drop leaves them out, which the published number of users then shows: the guarantee will say so. "
        f"(In Python: {kind}='other', other=..., or {kind}='drop'.)"
    )

"""What a guarantee depends on, as values: codes with parameters, from which English is made.

A condition is a conjunction of clauses. They are compared, joined and translated by their
codes; the sentences below are the only English ones, and a page has sentences of its own under the
same codes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Value = int | str


class ConditionCode(StrEnum):
    """Everything that a guarantee can depend on."""

    FLOOR = "floor"  # with insiders, dropouts, and left_out: 1 if S1 may choose who drops out
    NOBODY_LEFT_OUT = "nobody_left_out"
    NO_HELPER_LOOKS = "no_helper_looks"
    S1_NOISE = "s1_noise"
    S2_NOISE = "s2_noise"
    EITHER_NOISE = "either_noise"
    PUBLIC_GROUPS = "public_groups"
    PUBLIC_GROUPS_BY = "public_groups_by"  # with the column that tells them
    ONE_GROUP = "one_group"
    PUBLIC_ITEMS = "public_items"
    PUBLIC_MISSING = "public_missing"
    PUBLIC_OUTSIDE = "public_outside"
    ROWS_ARE_PEOPLE = "rows_are_people"
    ONE_OPERATOR = "one_operator"  # of both servers, which hold all shares of an answer
    OTHER = "other"  # of a mechanism from elsewhere, with a text of its own


ENGLISH: Mapping[ConditionCode, str] = {
    ConditionCode.FLOOR: (
        "every item has at least {floor} holders besides the participant in question"
    ),
    ConditionCode.NOBODY_LEFT_OUT: (
        "the coordinator (S1) leaves nobody out because of the items that they report"
    ),
    ConditionCode.NO_HELPER_LOOKS: (
        "no helper looks at what it gets (the one helper of an item with one reporter sees that "
        "participant's bit)"
    ),
    ConditionCode.S1_NOISE: "the coordinator (S1) adds its noise and keeps it secret",
    ConditionCode.S2_NOISE: "the aggregator (S2) adds its noise and keeps it secret",
    ConditionCode.EITHER_NOISE: (
        "the coordinator (S1) or the aggregator (S2) adds its noise and keeps it secret"
    ),
    ConditionCode.PUBLIC_GROUPS: "it is public which group a participant is in",
    ConditionCode.PUBLIC_GROUPS_BY: (
        "it is public which group a participant is in (column {column!r})"
    ),
    ConditionCode.ONE_GROUP: "nobody takes part in two of the groups",
    ConditionCode.PUBLIC_ITEMS: "the list of items is public (it was taken from the answers)",
    ConditionCode.PUBLIC_MISSING: "it is public who has no answer",
    ConditionCode.PUBLIC_OUTSIDE: "it is public who has an answer outside the list",
    ConditionCode.ROWS_ARE_PEOPLE: "each row is another person",
    ConditionCode.ONE_OPERATOR: "nobody who runs both servers combines their shares",
    ConditionCode.OTHER: "{text}",
}


@dataclass(frozen=True, slots=True)
class Clause:
    """One thing that must be true: a code with its parameters, as pairs; the same are equal."""

    code: ConditionCode
    parameters: tuple[tuple[str, Value], ...] = ()

    @property
    def values(self) -> dict[str, Value]:
        """The parameters by name."""
        return dict(self.parameters)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON: what a page needs in order to translate."""
        return {"code": str(self.code), "values": self.values}

    def __str__(self) -> str:
        # Only our own constants are templates: braces in a value, such as the name of a column,
        # stay as they are.
        sentence = ENGLISH[self.code].format(**self.values)
        if self.code is ConditionCode.FLOOR:
            sentence += _those_who_do_not_count(self.values)
        return sentence


def _those_who_do_not_count(values: Mapping[str, Value]) -> str:
    """Which of the other holders a floor does not count on."""
    # Named in the sentence, because they weaken it: a floor of ten of whom nine collude hides
    # nobody.
    lost = []
    if values["insiders"]:
        lost.append(f"{values['insiders']} may collude")
    if values["dropouts"]:
        by_choice = " or be left out by the coordinator (S1)" if values["left_out"] else ""
        lost.append(f"{values['dropouts']} may drop out{by_choice}")
    return f" (of whom {' and '.join(lost)})" if lost else ""


@dataclass(frozen=True, slots=True)
class Condition:
    """Everything that must hold for a guarantee not to be empty, at least one clause."""

    clauses: tuple[Clause, ...]

    def has(self, *codes: ConditionCode) -> bool:
        """Whether it has a clause with one of these codes."""
        return any(clause.code in codes for clause in self.clauses)

    def to_list(self) -> list[dict[str, Any]]:
        """Plain values, for JSON."""
        return [clause.to_dict() for clause in self.clauses]

    def __str__(self) -> str:
        return " and ".join(map(str, self.clauses))


def condition_of(code: ConditionCode, **values: Value) -> Condition:
    """The condition with a single clause."""
    # Pairs and not a dictionary: clauses are compared and put into sets.
    return Condition((Clause(code, tuple(values.items())),))


def floor_condition(
    floor: int, insiders: int = 0, dropouts: int = 0, *, left_out: bool = False
) -> Condition:
    """Every item has `floor` other holders, of whom some collude or drop out.

    left_out: whether S1 may choose who drops out
    """
    numbers = {"floor": floor, "insiders": insiders, "dropouts": dropouts}
    return condition_of(ConditionCode.FLOOR, **numbers, left_out=int(left_out))


def joint_condition(conditions: Iterable[Condition | None]) -> Condition | None:
    """The condition under which all of these hold, each clause once; None for nothing."""
    # A dictionary keeps the order in which they were found, a set would not; the sentence must be
    # the same each time, because pages quote it.
    found: dict[Clause, None] = {}
    for condition in conditions:
        if condition is not None:
            found |= dict.fromkeys(condition.clauses)
    return Condition(tuple(found)) if found else None


def in_english(condition: Condition | None) -> str | None:
    """The condition as a sentence, for JSON; None stays None."""
    return None if condition is None else str(condition)


S1_NOISE = condition_of(ConditionCode.S1_NOISE)
S2_NOISE = condition_of(ConditionCode.S2_NOISE)
EITHER_NOISE = condition_of(ConditionCode.EITHER_NOISE)
NOBODY_LEFT_OUT = condition_of(ConditionCode.NOBODY_LEFT_OUT)
NO_HELPER_LOOKS = condition_of(ConditionCode.NO_HELPER_LOOKS)
MEMBERSHIP = condition_of(ConditionCode.PUBLIC_GROUPS)
ROWS_ARE_PEOPLE = condition_of(ConditionCode.ROWS_ARE_PEOPLE)
ONE_OPERATOR = condition_of(ConditionCode.ONE_OPERATOR)

"""What a guarantee assumes, as values: codes with parameters, from which English is made.

A condition is a conjunction of assumptions. They are compared, joined and translated by their
codes; the sentences below are the only English ones, and a page has sentences of its own under the
same codes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

Value = int | str


class AssumptionCode(StrEnum):
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


ENGLISH: Mapping[AssumptionCode, str] = {
    AssumptionCode.FLOOR: (
        "every item has at least {floor} holders besides the participant in question"
    ),
    AssumptionCode.NOBODY_LEFT_OUT: (
        "the coordinator (S1) leaves nobody out because of the items that they report"
    ),
    AssumptionCode.NO_HELPER_LOOKS: (
        "no helper looks at what it gets (the one helper of an item with one reporter sees that "
        "participant's bit)"
    ),
    AssumptionCode.S1_NOISE: "the coordinator (S1) adds its noise and keeps it secret",
    AssumptionCode.S2_NOISE: "the aggregator (S2) adds its noise and keeps it secret",
    AssumptionCode.EITHER_NOISE: (
        "the coordinator (S1) or the aggregator (S2) adds its noise and keeps it secret"
    ),
    AssumptionCode.PUBLIC_GROUPS: "it is public which group a participant is in",
    AssumptionCode.PUBLIC_GROUPS_BY: (
        "it is public which group a participant is in (column {column!r})"
    ),
    AssumptionCode.ONE_GROUP: "nobody takes part in two of the groups",
    AssumptionCode.PUBLIC_ITEMS: "the list of items is public (it was taken from the answers)",
    AssumptionCode.PUBLIC_MISSING: "it is public who has no answer",
    AssumptionCode.PUBLIC_OUTSIDE: "it is public who has an answer outside the list",
    AssumptionCode.ROWS_ARE_PEOPLE: "each row is another person",
    AssumptionCode.ONE_OPERATOR: "nobody who runs both servers combines their shares",
    AssumptionCode.OTHER: "{text}",
}


@dataclass(frozen=True, slots=True)
class Assumption:
    """One code with its parameters, as pairs: two with the same are equal."""

    code: AssumptionCode
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
        if self.code is AssumptionCode.FLOOR:
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
    """Everything that must hold for a guarantee not to be empty, at least one assumption."""

    assumptions: tuple[Assumption, ...]

    def has(self, *codes: AssumptionCode) -> bool:
        """Whether it makes an assumption with one of these codes."""
        return any(assumption.code in codes for assumption in self.assumptions)

    def to_list(self) -> list[dict[str, Any]]:
        """Plain values, for JSON."""
        return [assumption.to_dict() for assumption in self.assumptions]

    def __str__(self) -> str:
        return " and ".join(map(str, self.assumptions))


def assume(code: AssumptionCode, **values: Value) -> Condition:
    """The condition that makes one assumption."""
    # Pairs and not a dictionary: assumptions are compared and put into sets.
    return Condition((Assumption(code, tuple(values.items())),))


def assume_floor(
    floor: int, insiders: int = 0, dropouts: int = 0, *, left_out: bool = False
) -> Condition:
    """Every item has `floor` other holders, of whom some collude or drop out.

    left_out: whether S1 may choose who drops out
    """
    numbers = {"floor": floor, "insiders": insiders, "dropouts": dropouts}
    return assume(AssumptionCode.FLOOR, **numbers, left_out=int(left_out))


def joint_condition(conditions: Iterable[Condition | None]) -> Condition | None:
    """The condition under which all of these hold, each assumption once; None for nothing."""
    # A dictionary keeps the order in which they were found, a set would not; the sentence must be
    # the same each time, because pages quote it.
    found: dict[Assumption, None] = {}
    for condition in conditions:
        if condition is not None:
            found |= dict.fromkeys(condition.assumptions)
    return Condition(tuple(found)) if found else None


def in_english(condition: Condition | None) -> str | None:
    """The condition as a sentence, for JSON; None stays None."""
    return None if condition is None else str(condition)


S1_NOISE = assume(AssumptionCode.S1_NOISE)
S2_NOISE = assume(AssumptionCode.S2_NOISE)
EITHER_NOISE = assume(AssumptionCode.EITHER_NOISE)
NOBODY_LEFT_OUT = assume(AssumptionCode.NOBODY_LEFT_OUT)
NO_HELPER_LOOKS = assume(AssumptionCode.NO_HELPER_LOOKS)
MEMBERSHIP = assume(AssumptionCode.PUBLIC_GROUPS)
ROWS_ARE_PEOPLE = assume(AssumptionCode.ROWS_ARE_PEOPLE)
ONE_OPERATOR = assume(AssumptionCode.ONE_OPERATOR)

"""Which public group everybody of a table of people is in, and what they read about it."""

import unicodedata

from faircount.core.errors import ParameterError, RefusedError
from faircount.owner.invitation_texts import ENGLISH
from faircount.owner.people import People

# What participants read about their group, after the purpose of the survey.
_SENTENCES = {
    ENGLISH: "The result is published for this group by itself: {column} {name}, {count} people. "
    "Whoever invited you knows who is in it.",
    "de": "Das Ergebnis wird für diese Gruppe allein veröffentlicht: {column} {name}, {count} "
    "Personen. Wer Sie eingeladen hat, weiß, wer dazugehört.",
}

PUBLIC_MEMBERSHIP = (
    "it is public which groups there are, how many people each has, and how many of them answer; "
    "you know who is in which, and participants are told so. Nobody may be in two groups: "
    "everybody has the whole epsilon in one, and every group a budget of its own: whoever changes "
    "groups between surveys, or is asked in a survey of everybody besides, loses the sum"
)


def split_people(people: People, column: str, noun: str = "group") -> dict[str, People]:
    """The people of every group, by the name of the group, in the order of the table."""
    if column not in people.header:
        titles = ", ".join(people.header) or "none: it has one person a line"
        message = f"the table of people has no column {column!r}; its columns are {titles}"
        raise ParameterError(message).with_code("no_group_column", column=column)
    # check: one-group - somebody who is in two groups answers twice, and loses epsilon twice
    if len(set(people.names)) < len(people):
        message = f"the table names a person twice: everybody is in one {noun}"
        raise ParameterError(message).with_code("person_twice")
    place = people.header.index(column)
    found: dict[str, list[int]] = {}
    for row, cells in enumerate(people.rows):
        # Composed, so that two spellings of one name that look alike are one group.
        name = unicodedata.normalize("NFC", cells[place].strip())
        found.setdefault(name, []).append(row)
    if "" in found:
        raise ParameterError(
            f"{len(found['']):,} people have no {column}: write it into the table, or leave these "
            "people out"
        ).with_code("people_without_group", column=column, people=len(found[""]))
    alone = [name for name, rows in found.items() if len(rows) < 2]
    if alone:
        raise RefusedError(
            f"the {noun} {alone[0]!r:.60} has one person, whose answer would be its result: merge "
            f"it with another {noun} in the table"
        ).with_code("group_of_one", group=alone[0])
    members = {}
    for name, rows in found.items():
        names = tuple(people.names[row] for row in rows)
        members[name] = People(names, people.header, tuple(people.rows[row] for row in rows))
    return members


def describe_group(language: str, column: str, name: str, count: int) -> str:
    """What the participants of a group read about it."""
    sentence = _SENTENCES.get(language, _SENTENCES[ENGLISH])
    return sentence.format(column=column, name=name, count=f"{count:,}")

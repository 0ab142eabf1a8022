"""Public privacy levels: a group of people for each level, with an epsilon of its own.

This is the form of the paper: people have chosen, before any question was known, how well they want
to be protected, and the owner has that choice in the table of people. So it is public who is in
which level, and a choice that depends on the answer gives something away about it, which no noise
repairs. Participants read that.
"""

import unicodedata
from collections.abc import Mapping
from itertools import pairwise

from faircount.core.domain import escape_controls
from faircount.core.errors import ParameterError
from faircount.core.validation import check_positive
from faircount.estimation.level_texts import level_words
from faircount.owner.invitation_texts import ENGLISH
from faircount.owner.membership import split_people
from faircount.owner.people import People

MAX_LEVELS = 8
LONGEST_NAME = 40

PUBLIC_LEVELS = (
    "levels are public: you know who is in which, their names, sizes and epsilons are in the "
    "parameters of the surveys, and participants are told so. Use levels that people chose before "
    "they knew the questions: a choice that depends on the answer gives some of it away"
)

# What participants read about their level, after the purpose of the survey. What a level means is
# said as a certainty, which people understand better than epsilon.
_SENTENCES = {
    ENGLISH: (
        "Your privacy level is {name}, like that of {count} people in all. Whoever invited you "
        "knows that, and so does anybody who sees which survey you take part in. How sure somebody "
        "can become which of two answers is yours, where 50 % would be a guess: {levels}. The "
        "results of all levels are published and combined."
    ),
    "de": (
        "Ihre Schutzstufe ist {name}, wie die von insgesamt {count} Personen. Wer Sie eingeladen "
        "hat, weiß das, und auch alle, die sehen, an welcher Umfrage Sie teilnehmen. Wie sicher "
        "jemand höchstens werden kann, welche von zwei Antworten Ihre ist (50\u00a0% wären "
        "geraten): {levels}. Die Ergebnisse aller Stufen werden veröffentlicht und zusammengefasst."
    ),
}
_CERTAINTIES = {ENGLISH: "in {name} at most {sure} %", "de": "in {name} höchstens {sure}\u00a0%"}


def check_levels(levels: Mapping[str, float]) -> dict[str, float]:
    """Return the levels by their composed names; refused unless protection weakens in this order.

    levels: epsilon of every level, by its name
    """
    if not 2 <= len(levels) <= MAX_LEVELS:
        message = f"give 2 to {MAX_LEVELS} levels, not {len(levels)}: for one, use epsilon"
        raise ParameterError(message).with_code("number_of_levels", most=MAX_LEVELS)
    found: dict[str, float] = {}
    for given, epsilon in levels.items():
        name = unicodedata.normalize("NFC", str(given).strip())
        # Participants read the names, and folders are named after them.
        if not 1 <= len(name) <= LONGEST_NAME or escape_controls(name) != name:
            message = f"the name of a level has 1 to {LONGEST_NAME} visible characters"
            raise ParameterError(f"{message}, unlike {name!r:.60}").with_code("level_name")
        if name in found:
            message = f"the level {name!r} is given twice"
            raise ParameterError(message).with_code("level_twice", level=name)
        found[name] = check_positive(f"epsilon of level {name!r}", epsilon)
    epsilons = list(found.values())
    # Ascending, so that nobody mistakes the weakest level for the strongest: a list of names alone
    # does not show which end is which.
    if any(here >= after for here, after in pairwise(epsilons)):
        raise ParameterError(
            "levels are given from the strongest to the weakest, each with a larger epsilon than "
            f"the one before: not {', '.join(f'{name}={value:g}' for name, value in found.items())}"
        ).with_code("levels_not_ascending")
    return found


def split_by_level(people: People, column: str, levels: Mapping[str, float]) -> dict[str, People]:
    """The people of every level, the strongest first; refused if a level is unknown or empty."""
    found = split_people(people, column, "level")
    known = ", ".join(levels)
    unknown = [name for name in found if name not in levels]
    if unknown:
        raise ParameterError(
            f"{len(found[unknown[0]]):,} people have the {column} {unknown[0]!r:.60}, which is no "
            f"level: correct the table, or give it an epsilon too; the levels are {known}"
        ).with_code("unknown_level", level=unknown[0], names=known)
    empty = [name for name in levels if name not in found]
    if empty:
        raise ParameterError(
            f"nobody has the {column} {empty[0]!r}: leave this level out, or write it into the "
            "table"
        ).with_code("empty_level", level=empty[0])
    return {name: found[name] for name in levels}


def describe_level(language: str, name: str, count: int, levels: Mapping[str, float]) -> str:
    """What the participants of a level read about it, and about the others."""
    spoken = language if language in _SENTENCES else ENGLISH
    words = level_words(spoken)
    certainty = _CERTAINTIES[spoken]
    parts = []
    for other, epsilon in levels.items():
        parts.append(certainty.format(name=words.name(other), sure=words.percent(epsilon)))
    facts = {"name": words.name(name), "count": words.number(count), "levels": ", ".join(parts)}
    return _SENTENCES[spoken].format(**facts)

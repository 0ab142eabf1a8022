"""The form of a new survey as the page sends it: read and checked, and what to expect of the survey."""

import math
import sys
from typing import Any

from faircount.core.errors import FaircountError, ParameterError
from faircount.dashboard.said import condition_code, said
from faircount.planning.question import WEAK, WEAK_DELTA
from faircount.service.owner.advice import Wishes, advise
from faircount.service.owner.invitations import numbered
from faircount.service.owner.printed_words import ENGLISH, printed_words
from faircount.service.owner.survey import Facts

Given = dict[str, Any]
LONGEST_NAME = 60
FEWEST, MOST = 2, 1_000_000
"""People whom the form invites: more would not fit into a page, nor into one table."""

SMALLEST = sys.float_info.min
"""A delta of 0 is none that the planner takes."""

TEXTS = ("question", "owner", "purpose", "contact", "population")


def wishes_of(given: Given) -> Wishes:
    """What is asked of the planner."""
    items = tuple(dict.fromkeys(_lines(given, "items")))
    if len(items) < 2:
        raise ParameterError("write at least two answers, one a line").coded("too_few_items")
    absent = _share(given, "absent") if str(given.get("absent", "")).strip() else None  # empty: the usual room
    delta = _share(given, "delta", least=SMALLEST)
    return Wishes(items, _users(given), _positive(given, "epsilon"), delta, absent=absent)


def people_of(given: Given) -> list[str]:
    """Who is invited: those who are named, or as many as the form says."""
    return _lines(given, "people") or numbered(_users(given), language_of(given))


def language_of(given: Given) -> str:
    """In which language invitations are printed."""
    return printed_words(str(given.get("invitation_language", ENGLISH))).language


def _users(given: Given) -> int:
    """How many are invited; not made into a list, because somebody may type any number."""
    users = len(_lines(given, "people")) or _whole(given, "users")
    if not FEWEST <= users <= MOST:
        raise ParameterError(f"invite {FEWEST} to {MOST:,} people").coded("people", fewest=FEWEST, most=MOST)
    return users


def facts_of(given: Given) -> Facts:
    """What a person reads before answering."""
    texts = {each: str(given.get(each, "")).strip() for each in TEXTS}
    return Facts(seconds=_whole(given, "hours") * 3600, **texts)


def budget_of(given: Given, wishes: Wishes) -> tuple[float, float]:
    """What a new population may lose in all its surveys; one without a name has this survey alone."""
    if not str(given.get("population", "")).strip():
        return wishes.epsilon, wishes.delta
    return _real(given, "budget_epsilon"), _real(given, "budget_delta")


def plain_name(name: str) -> str:
    """The name of a survey, which is the name of a folder too."""
    if not name or not all(each.isalnum() or each in "-_" for each in name) or len(name) > LONGEST_NAME:
        raise ParameterError("the name of a survey is made of letters, digits, - and _").coded("bad_name")
    return name


def advice(given: Given) -> dict[str, Any]:
    """What to expect of a survey that is being written down, from the planner; or why there is nothing to expect."""
    try:
        wishes = wishes_of(given)
        found = advise(wishes)
    except FaircountError as problem:
        return {"refused": said(problem)}
    return {
        "mechanism": found.mechanism.name, "proven": found.proven, "invited": wishes.users,
        "needed": found.needed, "condition": found.condition, "condition_code": condition_code(found.condition),
        "worthwhile": found.tells_something, "half_width_95": found.half_width_95, "items": list(wishes.items),
        "weak_epsilon": wishes.epsilon > WEAK, "weak_delta": wishes.delta > WEAK_DELTA,
    }  # fmt: skip


def _lines(given: Given, name: str) -> list[str]:
    return [each.strip() for each in str(given.get(name, "")).splitlines() if each.strip()]


def _whole(given: Given, name: str) -> int:
    value = _real(given, name)
    if value != int(value) or value < 1:
        raise ParameterError(f"{name} must be a whole number above 0").coded("not_whole", field=name)
    return int(value)


def _positive(given: Given, name: str) -> float:
    value = _real(given, name)
    if value <= 0:
        raise ParameterError(f"{name} must be above 0").coded("not_above_zero", field=name)
    return value


def _share(given: Given, name: str, least: float = 0.0) -> float:
    value = _real(given, name)
    if not least <= value < 1:
        words = f"{name} must be {'above' if least else 'at least'} 0 and below 1"
        raise ParameterError(words).coded("not_inside" if least else "not_share", field=name)
    return value


def _real(given: Given, name: str) -> float:
    try:
        value = float(given[name])
    except (KeyError, TypeError, ValueError):
        value = math.nan
    if not math.isfinite(value):
        raise ParameterError(f"{name} must be a number").coded("not_a_number", field=name)
    return value

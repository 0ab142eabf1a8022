"""The form of a new survey as the page sends it: read and checked, and what to expect of the survey."""

from typing import Any

from faircount.core.errors import FaircountError, ParameterError
from faircount.planning.question import WEAK, WEAK_DELTA
from faircount.service.owner.advice import Wishes, advise
from faircount.service.owner.invitations import numbered
from faircount.service.owner.survey import Facts

Given = dict[str, Any]
LONGEST_NAME = 60
TEXTS = ("question", "owner", "purpose", "contact", "population")


def wishes_of(given: Given) -> Wishes:
    """What is asked of the planner."""
    items = tuple(dict.fromkeys(_lines(given, "items")))
    if len(items) < 2:
        raise ParameterError("write at least two answers, one a line")
    absent = _real(given, "absent") if str(given.get("absent", "")).strip() else None  # empty: the usual room
    return Wishes(items, len(people_of(given)), _real(given, "epsilon"), _real(given, "delta"), absent=absent)


def people_of(given: Given) -> list[str]:
    """Who is invited: those who are named, or as many as the form says."""
    return _lines(given, "people") or numbered(_whole(given, "users"))


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
        raise ParameterError("the name of a survey is made of letters, digits, - and _")
    return name


def advice(given: Given) -> dict[str, Any]:
    """What to expect of a survey that is being written down, from the planner; or why there is nothing to expect."""
    try:
        wishes = wishes_of(given)
        found = advise(wishes)
    except FaircountError as problem:
        return {"refused": str(problem)}
    return {
        "mechanism": found.mechanism.name, "proven": found.proven, "invited": wishes.users,
        "needed": found.needed, "condition": found.condition,
        "worthwhile": found.tells_something, "half_width_95": found.half_width_95, "items": list(wishes.items),
        "weak_epsilon": wishes.epsilon > WEAK, "weak_delta": wishes.delta > WEAK_DELTA,
    }  # fmt: skip


def _lines(given: Given, name: str) -> list[str]:
    return [each.strip() for each in str(given.get(name, "")).splitlines() if each.strip()]


def _whole(given: Given, name: str) -> int:
    value = _real(given, name)
    if value != int(value) or value < 1:
        raise ParameterError(f"{name} must be a whole number above 0")
    return int(value)


def _real(given: Given, name: str) -> float:
    try:
        return float(given[name])
    except (KeyError, TypeError, ValueError):
        raise ParameterError(f"{name} must be a number") from None

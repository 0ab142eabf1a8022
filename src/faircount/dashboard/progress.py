"""Where a survey stands, as values that the page puts into words of its own language."""

from datetime import UTC, datetime
from typing import Any

from faircount.protocol import SurveyParameters
from faircount.protocol.survey.states import FINAL, State

EARLY = 0.1
"""Before this share of the time has passed, the pace says nothing."""


def phases_of(params: SurveyParameters) -> list[str]:
    """The states that a survey of this topology goes through and stays in for a while, in their order."""
    stays = {State.DRAFT, *params.topology.phases, State.CLAIMED, State.PUBLISHED}
    return [str(each) for each in State if each in stays]


def phase_of(params: SurveyParameters, state: str) -> int:
    """Position of the phase in which a survey is; -1 for one that ended without a result."""
    order = list(State)
    begun = [each for each in phases_of(params) if order.index(State(each)) <= order.index(State(state))]
    return -1 if state == State.ABORTED else len(begun) - 1


def waits_for(params: SurveyParameters, status: dict[str, Any]) -> str:
    """Whom a survey waits for: nobody, the owner, people, s1 or s2."""
    state = State(status["state"])
    if state in FINAL:
        return "nobody"
    if state is State.DRAFT:
        return "owner"
    if status["tries_again_at"] is not None:
        return "s2"
    return "people" if state in params.topology.phases else "s1"


def too_few(status: dict[str, Any], now: datetime | None = None) -> dict[str, int] | None:
    """Where at the pace of now fewer than the minimum will have answered: how many, and how many must; else nothing."""
    if status["state"] != State.SUBMITTING or not status["closes_at"] or status["users"] >= status["minimum"]:
        return None
    opened, closes = (datetime.fromisoformat(status[each]) for each in ("opened_at", "closes_at"))
    passed = ((now or datetime.now(tz=UTC)) - opened) / (closes - opened)
    expected = int(status["users"] / max(passed, EARLY))
    if passed < EARLY or expected >= status["minimum"]:
        return None
    return {"expected": max(expected, status["users"]), "minimum": status["minimum"]}

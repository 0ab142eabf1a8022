"""The progress of a survey, as values that the page translates into its own language."""

from datetime import UTC, datetime
from typing import Any

from faircount.protocol import SurveyParameters
from faircount.protocol.survey.phases import FINAL, Phase

EARLY = 0.1
"""Before this share of the time has passed, the pace of responses predicts nothing."""


def phases_of(params: SurveyParameters) -> list[str]:
    """The phases in which a survey of this topology stays for a while, in order."""
    lasting = {Phase.DRAFT, *params.topology.phases, Phase.COUNTING, Phase.PUBLISHED}
    return [str(phase) for phase in Phase if phase in lasting]


def phase_index(params: SurveyParameters, phase: str) -> int:
    """The position of the current phase; -1 for a survey that ended without a result."""
    if phase == Phase.ABORTED:
        return -1
    order = list(Phase)
    current = order.index(Phase(phase))
    # Short phases that the page does not list belong to the listed phase before them.
    begun = [listed for listed in phases_of(params) if order.index(Phase(listed)) <= current]
    return len(begun) - 1


def waits_for(params: SurveyParameters, status: dict[str, Any]) -> str:
    """Whom a survey waits for: nobody, the owner, people, the coordinator or the aggregator."""
    phase = Phase(status["phase"])
    if phase in FINAL:
        return "nobody"
    if phase is Phase.DRAFT:
        return "owner"
    # The coordinator has been waiting since some time only while a message is unanswered.
    if status["waiting_since"] is not None:
        return "aggregator"
    # Participants act in the phases of the topology; between them the coordinator works alone.
    if phase in params.topology.phases:
        return "people"
    return "coordinator"


def predict_too_few(status: dict[str, Any], now: datetime | None = None) -> dict[str, int] | None:
    """Expected and minimum number of responses, if the pace is too slow to reach the minimum."""
    if status["phase"] != Phase.SUBMITTING or not (status["opened_at"] and status["closes_at"]):
        return None
    # It did not reach the minimum in time, which the page says instead of a prediction.
    if status["held_since"] is not None:
        return None
    responses = status["responses"]
    minimum = status["minimum"]
    if responses >= minimum:
        return None
    opened = datetime.fromisoformat(status["opened_at"])
    closes = datetime.fromisoformat(status["closes_at"])
    # A dishonest coordinator may name any times.
    if closes <= opened:
        return None
    passed = ((now or datetime.now(tz=UTC)) - opened) / (closes - opened)
    if passed < EARLY:
        return None
    # After the closing time `passed` exceeds 1: never expect fewer than have responded already.
    expected = max(int(responses / passed), responses)
    if expected >= minimum:
        return None
    return {"expected": expected, "minimum": minimum}

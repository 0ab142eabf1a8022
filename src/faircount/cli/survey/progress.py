"""The status of a survey in an owner's words, with times of this machine's time zone.

Programs read the coordinator's own values with `--json`.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faircount.owner.survey import Survey

PHASES = {
    "draft": "not open yet",
    "enrolling": "people sign up",
    "confirmed": "the list of participants is confirmed",
    "indicating": "people say which answers they report",
    "sharing": "participants exchange shares",
    "submitting": "people can answer",
    "counting": "both servers count the answers",
    "unmasking": "participants help to remove the masks of those who left",
    "aggregated": "the result is being computed",
    "published": "over: there is a result",
    "aborted": "over: it ended without a result",
}
"""What a phase means to the owner."""

REASONS = {
    "malformed": "unreadable",
    "conflict": "something else was sent before by the same device",
    "unknown": "unknown invitation",
    "unsigned": "wrong signature",
    "late": "too late",
    "early": "too early",
    "full": "the survey is full",
    "wrong_digest": "made for another survey",
    "too_few": "too few people",
    "too_many_attempts": "too many attempts",
    "disconnected": "the remaining people cannot hide each other",
    "wrong_shares": "shares that do not match the coordinator's list",
    "closed": "the survey or its budget is closed",
    "invitation_used": "another device has used the invitation",
    "invitation_replaced": "the invitation was exchanged",
}
"""Why a server rejected a message."""

_UNITS = (("day", 86400), ("hour", 3600), ("minute", 60))


def describe_status(
    survey: "Survey", status: dict[str, Any], now: datetime | None = None
) -> Iterator[tuple[str, str]]:
    """Labels and texts about what the coordinator reports."""
    phase = PHASES[status["phase"]]
    if status.get("attempt"):
        # Counted from 0 on the wire, from 1 by people.
        phase += f" (attempt {status['attempt'] + 1})"
    yield "status", phase
    yield "answers", _describe_answers(status)
    # Nobody is reminded who has withdrawn, so answers and reminders may not add up.
    if status["withdrawn"]:
        yield "withdrawn", f"{status['withdrawn']:,}, not among the answers"
    if status["opened_at"]:
        yield "opened", format_local_time(status["opened_at"])
    if status["closes_at"]:
        yield "closes", _format_with_distance(status["closes_at"], now or datetime.now(tz=UTC))
    yield "next", describe_next(survey, status)


def _describe_answers(status: dict[str, Any]) -> str:
    text = f"{status['responses']:,} of {status['invited']:,} people"
    # By the coordinator's count: reports that the aggregator refuses later are still among them.
    missing = status["minimum"] - status["responses"]
    if missing <= 0:
        return f"{text}; the minimum of {status['minimum']:,} is reached"
    return f"{text}; at least {status['minimum']:,} are needed, {missing:,} to go"


def describe_next(survey: "Survey", status: dict[str, Any]) -> str:
    """What comes next, and what the owner can do about it."""
    from faircount.dashboard.progress import waits_for

    folder = survey.folder.path
    whom = waits_for(survey.params, status)
    if whom == "nobody":
        what = "says why" if status["phase"] == "aborted" else "shows it"
        return f"faircount survey result {folder} {what}"
    if whom == "owner":
        return f"open it, and people can answer: faircount survey open {folder}"
    if whom == "aggregator":
        return _describe_waiting(survey, status)
    if whom == "coordinator":
        return "the coordinator is about to write to the aggregator. You don't have to do anything"
    return _describe_open(status, str(folder))


def _describe_waiting(survey: "Survey", status: dict[str, Any]) -> str:
    """That the coordinator waits for the aggregator, and why, if it knows."""
    # The usual case after closing: the aggregator has only just been asked.
    if not status["problem"]:
        return (
            "the coordinator and the aggregator count, which takes seconds for a few hundred "
            f"people: faircount survey result {survey.folder.path} --wait"
        )
    operator = survey.params.s2_operator or "its operator"
    return (
        "the coordinator has been waiting for the aggregator since "
        f"{format_local_time(status['waiting_since'])}, and keeps asking. Nothing is lost, and you "
        f"don't have to do anything; if it takes longer than an hour, tell {operator}, who runs "
        f"it. The coordinator says: {status['problem']}"
    )


def describe_silence(survey: "Survey", status: dict[str, Any]) -> str | None:
    """What it means that the aggregator cannot be reached; None if the status has said so."""
    from faircount.dashboard.progress import waits_for

    whom = waits_for(survey.params, status)
    if whom in ("aggregator", "nobody"):
        return None
    away = "The aggregator cannot be reached right now."
    if whom == "people":
        return f"{away} People can answer nevertheless: it is needed when the answers are counted."
    return f"{away} Nothing is lost: it is needed when the answers are counted."


def _describe_open(status: dict[str, Any], folder: str) -> str:
    """What comes after the answers of a survey that is open."""
    if status["held_since"] is not None:
        return (
            "there were too few answers at the closing time, so the survey is held open. Remind "
            f"people (faircount survey remind {folder}), give them more time (faircount survey "
            f"extend {folder} --by 3d), or close it as soon as the minimum is reached (faircount "
            f"survey close {folder}). It ends by itself at the time above, without a result if "
            "there are still too few"
        )
    close = f"faircount survey close {folder}"
    if status["closes_at"]:
        return f"at that time, both servers count the answers. To close it earlier: {close}"
    return f"once you close it ({close}), both servers count the answers"


def format_local_time(time: str) -> str:
    """A time as people here read it, such as Tuesday 17 November 2026, 14:15 CET."""
    when = datetime.fromisoformat(time).astimezone()
    return f"{when:%A} {when.day} {when:%B %Y, %H:%M} {when.tzname() or ''}".strip()


def _format_with_distance(time: str, now: datetime) -> str:
    """A time with how long that is from now."""
    seconds = (datetime.fromisoformat(time) - now).total_seconds()
    if seconds <= 0:
        # The deadline has passed, and no worker has noticed it yet.
        return f"{format_local_time(time)} (now)"
    for unit, length in _UNITS:
        count = round(seconds / length)
        # Above one and a half of a unit: "in 36 hours" says more than "in 2 days".
        if seconds >= 1.5 * length:
            return f"{format_local_time(time)} (in about {count:,} {unit}s)"
    return f"{format_local_time(time)} (in about a minute)"

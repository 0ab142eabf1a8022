"""Which survey a result is about, so that a result that was filed can be understood later."""

from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

ENGLISH = "en"


@dataclass(frozen=True, slots=True)
class SurveyRecord:
    """The survey behind a result.

    survey:    its id, in hexadecimal
    name:      the owner's name for it
    question, owner: as participants read them
    opened, ended: when, as ISO 8601; None where nobody recorded it
    invited:   people who were invited
    responded: people whose report arrived and was not withdrawn
    counted:   people in the result
    language:  of the survey, in which files and figures are written
    """

    survey: str
    name: str
    question: str
    owner: str
    opened: str | None
    ended: str | None
    invited: int
    responded: int
    counted: int
    language: str = ENGLISH

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Labels and texts for people."""
        lines = (
            ("Survey", f"{self.name} ({self.survey})"),
            ("Question", self.question),
            ("Asked by", self.owner),
            ("Open", self.dates),
            ("People", self.people),
        )
        return tuple((label, text) for label, text in lines if text)

    @property
    def people(self) -> str:
        """How many were invited, responded and were counted, in words."""
        rate = f" ({self.responded / self.invited:.0%})" if self.invited else ""
        return (
            f"{self.invited:,} invited, {self.responded:,} responded{rate}, "
            f"{self.counted:,} counted"
        )

    @property
    def dates(self) -> str:
        """When the survey was open, in words; empty if nobody recorded it."""
        parts = []
        if self.opened:
            parts.append(f"from {format_time(self.opened)}")
        if self.ended:
            parts.append(f"to {format_time(self.ended)}")
        return " ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def format_time(time: str) -> str:
    """A time as people read it, such as 17 November 2026, 14:15 UTC."""
    when = datetime.fromisoformat(time)
    return f"{when.day} {when:%B %Y, %H:%M} {when.tzname() or ''}".strip()

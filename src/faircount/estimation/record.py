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
    question, owner: as participants read them; of several questions their title
    opened, ended: when, as ISO 8601; None where nobody recorded it
    invited:   people who were invited
    responded: people whose report arrived and was not withdrawn
    counted:   people in the result
    language:  of the survey, in which files and figures are written
    s1_operator, s2_operator: who ran the servers, as they signed it; empty without a name
    one_operator: whether one operator ran both of them, as far as names and keys tell
    questions: how many there were
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
    s1_operator: str = ""
    s2_operator: str = ""
    one_operator: bool = False
    questions: int = 1

    @property
    def lines(self) -> tuple[tuple[str, str], ...]:
        """Labels and texts for people."""
        lines = (
            ("Survey", f"{self.name} ({self.survey})"),
            self.asked,
            ("Asked by", self.owner),
            ("Open", self.dates),
            ("People", self.people),
            ("Servers", self.servers),
        )
        # What nobody recorded has an empty text, and then no line.
        return tuple((label, text) for label, text in lines if text)

    @property
    def asked(self) -> tuple[str, str]:
        """The question, or the title and how many questions there were, with its label."""
        if self.questions == 1:
            return "Question", self.question
        return "Questions", f"{self.questions}: {self.question}"

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

    @property
    def servers(self) -> str:
        """Who ran both servers, in words; empty if nobody recorded it."""
        if not self.one_operator:
            if not self.s1_operator:
                return ""
            return (
                f"{self.s1_operator} ran the coordinator (S1), {self.s2_operator} the aggregator "
                "(S2)"
            )
        # Two servers without names may well be one organization's, and nobody could tell.
        who = "nobody is named, so one operator may have run both servers"
        if self.s1_operator:
            who = f"one operator, {self.s1_operator}, ran both servers"
        return f"{who} and could have read every answer: this was a trial"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def format_time(time: str) -> str:
    """A time as people read it, such as 17 November 2026, 14:15 UTC."""
    when = datetime.fromisoformat(time)
    return f"{when.day} {when:%B %Y, %H:%M} {when.tzname() or ''}".strip()

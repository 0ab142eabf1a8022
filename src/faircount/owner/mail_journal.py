"""The record of which mails were sent, so that nobody gets one twice because a program stopped.

The journal is a file of lines that only grows. Before a mail is handed to the mail server its line
`sending` is on the disk, and `sent` follows when the server has accepted it. If the program is
killed in between, nobody can know whether the mail was accepted: that person is *unsure* and is
reported to the owner, who decides. A line that was cut off by a crash is dropped. It was either
`sending`, and then no mail was sent, or a later one, and then the person is unsure.

Invitations are one round: every invitation is sent once. Each reminder is a round of its own, which
a command continues if it was interrupted within the last day; otherwise a new round begins.
"""

import json
import os
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any

from faircount.core.errors import FaircountError
from faircount.core.files import PRIVATE, read_file, write_error
from faircount.owner.mail_texts import REMINDER

BETWEEN_REMINDERS = timedelta(hours=24)
"""A second reminder within this time needs the owner's explicit word."""


class Event(StrEnum):
    """What happened to a mail, or to a round."""

    SENDING = "sending"
    SENT = "sent"
    REFUSED = "refused"  # for good, by the mail server
    POSTPONED = "postponed"  # it was not sent, and may be tried again
    FINISHED = "finished"  # the round; without a user


@dataclass
class Journal:
    """The journal of one survey.

    events: the last event of every mail, by kind, round and user
    times: of the last event of every round
    finished: rounds in which nobody was left
    """

    path: Path
    events: dict[tuple[str, int, str], Event] = field(default_factory=dict)
    times: dict[tuple[str, int], datetime] = field(default_factory=dict)
    finished: set[tuple[str, int]] = field(default_factory=set)

    @classmethod
    def open(cls, path: Path) -> "Journal":
        """Read what was recorded; a last line that was cut off is removed from the file."""
        journal = cls(path)
        if not path.exists():
            return journal
        data = read_file(path, "it records which mails were sent")
        # Lines end when they are complete. Cut off in the file as well, or the next line would be
        # appended to the rest of this one.
        whole = data[: data.rfind(b"\n") + 1]
        if whole != data:
            try:
                os.truncate(path, len(whole))
            except OSError as problem:
                raise write_error(path, problem) from None
        for line in whole.splitlines():
            try:
                journal._apply(json.loads(line))
            except (ValueError, KeyError, TypeError):
                message = f"{path} is damaged: restore it from a copy, or nobody knows who has mail"
                raise FaircountError(message).with_code("file_damaged", file=str(path)) from None
        return journal

    def _apply(self, line: dict[str, Any]) -> None:
        kind = str(line["kind"])
        number = int(line["round"])
        event = Event(line["event"])
        self.times[kind, number] = datetime.fromisoformat(line["at"])
        if event is Event.FINISHED:
            self.finished.add((kind, number))
        else:
            self.events[kind, number, str(line["user"])] = event

    def record(self, kind: str, number: int, event: Event, user: str = "") -> None:
        """Append an event; it is on the disk when this returns."""
        line = {
            "at": datetime.now(tz=UTC).isoformat(timespec="seconds"),
            "kind": kind,
            "round": number,
            "event": str(event),
            "user": user,
        }
        try:
            # Appended in one write and never rewritten: a crash can only lose the end.
            handle = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, PRIVATE)
            with os.fdopen(handle, "wb") as target:
                target.write(json.dumps(line).encode() + b"\n")
                target.flush()
                os.fsync(target.fileno())
        except OSError as problem:
            raise write_error(self.path, problem) from None
        self._apply(line)

    def current_round(self, kind: str) -> int:
        """The round to continue, or a new one."""
        # An invitation is sent once: one that replaces a lost one belongs to the same round.
        if kind != REMINDER:
            return 1
        last = max((number for key, number in self.times if key == kind), default=0)
        if not last:
            return 1
        # Whoever reminds people days after an interrupted round wants to reach all of them.
        is_old = datetime.now(tz=UTC) - self.times[kind, last] > BETWEEN_REMINDERS
        return last + 1 if is_old or (kind, last) in self.finished else last

    def event(self, kind: str, number: int, user: str) -> Event | None:
        """The last event of a mail."""
        return self.events.get((kind, number, user))

    def count_sent(self, kind: str) -> int:
        """How many mails of a kind were accepted, in all rounds."""
        found = self.events.items()
        return sum(key[0] == kind and event is Event.SENT for key, event in found)

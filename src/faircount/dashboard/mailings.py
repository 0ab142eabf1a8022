"""Mails that the dashboard sends in the background, one mailing of a survey at a time.

A mailing takes minutes, because it keeps to a rate. The journal of the survey decides what is sent,
so a dashboard that is stopped in between continues later where it was.
"""

from dataclasses import dataclass, field
from email import message_from_bytes, policy
from threading import Event, Lock, Thread
from typing import Any

from faircount.core.errors import FaircountError, RefusedError
from faircount.core.files import lock_file
from faircount.dashboard.error_payload import error_payload
from faircount.owner.mail import Mailing, MailReport
from faircount.owner.mail_journal import Journal
from faircount.owner.mail_server import MailServer
from faircount.owner.mail_texts import INVITATION, REMINDER
from faircount.owner.survey import Survey

RUNNING = "running"
DONE = "done"
STOPPED = "stopped"
FAILED = "failed"

PEOPLE_LISTED = 20
"""How many people a report names, so that a page stays readable."""


class _StopError(Exception):
    """The owner wants no more mails to be sent now."""


@dataclass
class MailJob:
    """One mailing: its progress, and how it ended."""

    kind: str
    state: str = RUNNING
    due: int = 0
    report: MailReport | None = None
    problem: dict[str, Any] | None = None
    stop_request: Event = field(default_factory=Event)

    def run(self, mailing: Mailing, server: MailServer, terms: dict[str, Any]) -> None:
        """Send, and keep how it ended instead of raising."""
        try:
            mailing.send(server, pause=self._pause, on_progress=self._note, **terms)
            self.state = DONE
        except _StopError:
            self.state = STOPPED
        except FaircountError as problem:
            self.problem = error_payload(problem)
            self.state = FAILED
        # The owner must not be left with a bar that stands still for ever.
        except Exception as problem:
            self.problem = error_payload(FaircountError(type(problem).__name__))
            self.state = FAILED
            raise

    def _pause(self, seconds: float) -> None:
        # Between two mails, so that no mail is left half sent.
        if self.stop_request.wait(seconds):
            raise _StopError

    def _note(self, report: MailReport, due: int) -> None:
        self.report = report
        self.due = due

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the page."""
        report = self.report or MailReport(self.kind)
        return {
            "kind": self.kind,
            "state": self.state,
            "due": self.due,
            "sent": len(report.sent),
            "before": report.before,
            "refused": report.refused[:PEOPLE_LISTED],
            "postponed": report.postponed[:PEOPLE_LISTED],
            "unsure": report.unsure[:PEOPLE_LISTED],
            "problem": self.problem,
        }


@dataclass
class MailJobs:
    """The mailings of all surveys of this program."""

    jobs: dict[str, MailJob] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def start(self, name: str, mailing: Mailing, server: MailServer, **terms: Any) -> None:
        """Begin to send in the background; refused while an earlier mailing goes on."""
        # Two clicks at once must not begin two mailings.
        with self.lock:
            if self.is_running(name):
                message = "mails of this survey are being sent: wait until they are, or stop it"
                raise RefusedError(message).with_code("mail_running")
            job = MailJob(mailing.kind)
            self.jobs[name] = job
        Thread(target=job.run, args=(mailing, server, terms), daemon=True).start()

    def is_running(self, name: str) -> bool:
        """Whether mails of a survey are being sent."""
        return name in self.jobs and self.jobs[name].state == RUNNING

    def stop(self, name: str) -> None:
        """Send no further mail of a survey."""
        if name in self.jobs:
            self.jobs[name].stop_request.set()

    def describe(self, name: str) -> dict[str, Any] | None:
        """The latest mailing of a survey."""
        return self.jobs[name].to_dict() if name in self.jobs else None


def sent_mails(survey: Survey) -> dict[str, int]:
    """How many mails of each kind were sent before; empty while another program sends some."""
    path = survey.folder.mail_journal
    if not path.exists():
        return {}
    try:
        # Reading repairs a line that was cut off, so nobody may write meanwhile.
        with lock_file(path):
            journal = Journal.open(path)
    except RefusedError:
        return {}
    return {kind: journal.count_sent(kind) for kind in (INVITATION, REMINDER)}


def preview_mail(mailing: Mailing) -> dict[str, Any]:
    """Write all mails as files, and show the first of them."""
    report = mailing.write()
    shown: dict[str, Any] = {"files": len(report.files), "folder": "", "subject": "", "text": ""}
    if not report.files:
        return shown
    first = message_from_bytes(report.files[0].read_bytes(), policy=policy.default)
    return {
        **shown,
        "folder": str(report.files[0].parent),
        "to": str(first["To"]),
        "subject": str(first["Subject"]),
        "text": first.get_content(),
    }

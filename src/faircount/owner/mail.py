"""Invitations and reminders by mail, through the owner's own mail server.

A link is a secret, so mails travel encrypted to the mail server unless the owner says otherwise, at
a bounded rate, and every step is journalled first (`mail_journal`). Reminders go only to people
whose invitation was not used: the coordinator tells its owner which ones were, and nobody tells
what was answered.
"""

import smtplib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime, formataddr, make_msgid, parseaddr
from pathlib import Path
from typing import Any

from faircount.core.errors import ParameterError, RefusedError, UnreachableError
from faircount.core.files import lock_file, make_private_folder, write_durably
from faircount.owner.invitation_texts import printed_words
from faircount.owner.invitations import COLUMNS, Invitee
from faircount.owner.mail_journal import BETWEEN_REMINDERS, Event, Journal
from faircount.owner.mail_server import MAILS_PER_MINUTE, MailServer
from faircount.owner.mail_texts import (
    INVITATION,
    REMINDER,
    Template,
    format_closing_time,
    own_template,
)
from faircount.owner.page_export import PageFacts
from faircount.owner.people import is_email
from faircount.owner.survey import Survey
from faircount.protocol.survey.phases import Phase

MAILS_BETWEEN_QUESTIONS = 50
"""After so many reminders the coordinator is asked again who has answered meanwhile."""

PERMANENT = 500
"""From this reply code on a mail server refuses for good; below, it may accept later."""


@dataclass(frozen=True)
class Letter:
    """A mail to one person."""

    invitee: Invitee
    message: EmailMessage


@dataclass
class MailReport:
    """What a command has sent, and to whom it did not.

    sent: people whose mail was accepted now
    before: how many had it before
    refused: people whose address the mail server refused for good
    postponed: people whose mail may be tried again
    unsure: people who may have got their mail when an earlier command was interrupted
    files: mails that were written instead of sent
    """

    kind: str
    round: int = 1
    sent: list[str] = field(default_factory=list)
    before: int = 0
    refused: list[str] = field(default_factory=list)
    postponed: list[str] = field(default_factory=list)
    unsure: list[str] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)

    @property
    def is_complete(self) -> bool:
        """Whether nobody is left to whom a mail should go."""
        return not self.postponed and not self.unsure


@dataclass(frozen=True)
class Mailing:
    """Mails about one survey: an invitation or a reminder.

    survey: an open survey
    sender: the address they come from, also as "Name <address>"
    remind: reminders to those who have not answered, instead of invitations to all
    template: the owner's own text; by default ours in the survey's language
    """

    survey: Survey
    sender: str
    remind: bool = False
    template: Template | None = None

    def __post_init__(self) -> None:
        _, address = parseaddr(self.sender)
        if not is_email(address):
            message = f"mails need a sender such as name@example.org: {self.sender!r}"
            raise ParameterError(message).with_code("mail_sender")

    @property
    def kind(self) -> str:
        """Invitation or reminder."""
        return REMINDER if self.remind else INVITATION

    @property
    def journal_file(self) -> Path:
        """The record of what was sent."""
        return self.survey.folder.mail_journal

    def letters(self) -> list[Letter]:
        """All mails of this kind, in the order of the invitations."""
        status = self.survey.status()
        # A draft is allowed, because mails may be written as files before the survey is open.
        if status["phase"] not in (Phase.DRAFT, *self.survey.params.topology.phases):
            message = "this survey is closed: nobody can answer any more"
            raise RefusedError(message).with_code("mail_over")
        invitees = self.survey.invitees()
        if self.remind:
            invitees = self.survey.pending_invitees()
        template = self.template or self._own_template()
        facts = self._facts(status)
        titles = [title for title, _ in invitees[0].columns] if invitees else []
        # Before the first mail: a wrong name in the owner's text must not stop a mailing in its
        # middle.
        template.check(frozenset((*facts, *COLUMNS, *titles)) - {"user"})
        not_mail = [invitee.person for invitee in invitees if not is_email(invitee.person)]
        if not_mail:
            raise RefusedError(
                f"{len(not_mail):,} people have no e-mail address, such as {not_mail[0]!r}: create "
                "the survey with a table of people and its --address-column"
            ).with_code("no_addresses")
        return [self._letter(template, invitee, facts) for invitee in invitees]

    def _own_template(self) -> Template:
        several = len(self.survey.params.questionnaire) > 1
        return own_template(self.kind, self.survey.owner.language, several=several)

    def _facts(self, status: dict[str, Any]) -> dict[str, str]:
        """What all mails say alike."""
        params = self.survey.params
        language = self.survey.owner.language
        facts = {name: getattr(params, name) for name in ("owner", "purpose", "contact")}
        words = printed_words(language)
        facts["question"] = words.name_survey(params.questionnaire)
        facts["questions"] = str(len(params.questionnaire))
        facts["closes"] = format_closing_time(status["closes_at"], language)
        facts["promise"] = words.promise(params.epsilon, params.single_epsilon)
        page = PageFacts.of(self.survey.owner)
        facts |= {"page_hash": page.hash, "server": page.server}
        return facts

    def _letter(self, template: Template, invitee: Invitee, facts: dict[str, str]) -> Letter:
        own = {
            "person": invitee.person,
            "link": invitee.code.link(self.survey.owner.link_address),
            "code": invitee.code.grouped_text,
        }
        # Ours win over a column of the same name: a template that says {link} needs the link.
        subject, text = template.fill({**dict(invitee.columns), **facts, **own})
        name, address = parseaddr(self.sender)
        message = EmailMessage()
        message["From"] = formataddr((name, address))
        message["To"] = invitee.person
        message["Subject"] = subject
        message["Date"] = format_datetime(datetime.now(tz=UTC))
        # With the sender's domain: by default it would tell the name of this machine.
        message["Message-ID"] = make_msgid(domain=address.rpartition("@")[2])
        # So that holiday notices are not sent back to the owner, one per person (RFC 3834).
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(text)
        # After the content, which would replace it.
        message["Content-Language"] = self.survey.owner.language
        return Letter(invitee, message)

    def write(self) -> MailReport:
        """Write the mails as .eml files into the survey's folder, and send nothing."""
        folder = make_private_folder(self.survey.folder.path / "mail")
        # Files of an earlier call may be of people who have answered since.
        for old in folder.glob(f"{self.kind}-*.eml"):
            old.unlink()
        report = MailReport(self.kind)
        letters = self.letters()
        width = len(str(len(letters)))
        for number, letter in enumerate(letters, start=1):
            path = folder / f"{self.kind}-{number:0{width}d}.eml"
            write_durably(path, letter.message.as_bytes())
            report.files.append(path)
        return report

    def send(
        self,
        server: MailServer,
        *,
        rate: float = MAILS_PER_MINUTE,
        retry_unsure: bool = False,
        again: bool = False,
        pause: Callable[[float], None] = time.sleep,
        on_progress: Callable[[MailReport, int], None] = lambda report, due: None,
    ) -> MailReport:
        """Send what was not sent yet; an interrupted command is continued.

        rate: mails per minute, at most
        retry_unsure: also to people who may have got the mail when a command was interrupted
        again: remind within a day of the last reminder
        on_progress: called after every mail, with the report so far and how many are to be sent
        """
        if not rate > 0:
            message = "rate is a number of mails per minute above 0"
            raise ParameterError(message).with_code("mail_rate")
        phase = self.survey.status()["phase"]
        if phase == Phase.DRAFT:
            raise RefusedError(
                "this survey is not open yet, so the links would not work: open it first"
            ).with_code("mail_not_open")
        # Two commands at once would both find that a mail was not sent.
        with lock_file(self.journal_file):
            journal = Journal.open(self.journal_file)
            number = journal.current_round(self.kind)
            if self.remind and not again:
                _check_not_too_soon(journal, number)
            report = MailReport(self.kind, number)
            due = self._due(journal, report, retry_unsure=retry_unsure)
            on_progress(report, len(due))
            if due:
                dispatch = _Dispatch(self, server, journal, report, 60 / rate, pause)
                dispatch.send(due, lambda: on_progress(report, len(due)))
            # A round that is not finished is continued by the next command, instead of begun anew.
            if report.is_complete:
                journal.record(self.kind, number, Event.FINISHED)
        return report

    def _due(self, journal: Journal, report: MailReport, *, retry_unsure: bool) -> list[Letter]:
        """The mails that are to be sent now; the report gets the others."""
        due = []
        for letter in self.letters():
            event = journal.event(self.kind, report.round, letter.invitee.user)
            if event is Event.SENT:
                report.before += 1
            elif event is Event.REFUSED:
                report.refused.append(letter.invitee.person)
            # check: unsure-mail - after a kill a mail may have been accepted: never twice silently
            elif event is Event.SENDING and not retry_unsure:
                report.unsure.append(letter.invitee.person)
            else:
                due.append(letter)
        return due


def _check_not_too_soon(journal: Journal, number: int) -> None:
    last = journal.times.get((REMINDER, number - 1))
    if last is not None and datetime.now(tz=UTC) - last < BETWEEN_REMINDERS:
        raise RefusedError(
            f"the last reminder was sent at {last:%Y-%m-%d %H:%M} UTC, less than a day ago: to "
            "remind the same people again now, say --again"
        ).with_code("reminded_lately")


@dataclass
class _Dispatch:
    """One connection to the mail server, and what goes through it."""

    mailing: Mailing
    server: MailServer
    journal: Journal
    report: MailReport
    seconds_between: float
    pause: Callable[[float], None]
    connection: smtplib.SMTP | None = None
    answered: frozenset[str] = frozenset()

    def send(self, letters: Sequence[Letter], on_mail: Callable[[], None]) -> None:
        """Send all, one after the other; what a mail server postpones is left for another time."""
        try:
            for number, letter in enumerate(letters):
                if number:
                    self.pause(self.seconds_between)
                if self.mailing.remind and number and number % MAILS_BETWEEN_QUESTIONS == 0:
                    self._ask_who_answered()
                # Who answered while the mailing ran is left out without a line in the journal:
                # nothing was sent, and nothing is owed.
                if letter.invitee.user not in self.answered:
                    self._send_one(letter)
                    on_mail()
        finally:
            if self.connection is not None:
                self.connection.close()

    def _ask_who_answered(self) -> None:
        """Learn who has answered since the command began: they need no reminder any more."""
        survey = self.mailing.survey
        users = survey.servers.users_who_answered(survey.params)
        self.answered = frozenset(user.hex() for user in users)

    def _send_one(self, letter: Letter) -> None:
        connection = self._live_connection()
        # On the disk before the mail leaves: after a crash this line says who may have it.
        self._record(Event.SENDING, letter)
        person = letter.invitee.person
        try:
            connection.send_message(letter.message)
        except smtplib.SMTPRecipientsRefused as problem:
            # Every mail has one recipient, so there is one reply.
            code, _ = next(iter(problem.recipients.values()))
            if code >= PERMANENT:
                self._record(Event.REFUSED, letter)
                self.report.refused.append(person)
            else:
                self._record(Event.POSTPONED, letter)
                self.report.postponed.append(person)
        except (smtplib.SMTPResponseException, smtplib.SMTPNotSupportedError) as problem:
            # The mail server answered that it does not take the mail, and the reason is not this
            # address: it would refuse all others as well.
            self._record(Event.POSTPONED, letter)
            raise self._stopped_error(f"the mail server refuses: {_reason(problem)}") from None
        except (OSError, smtplib.SMTPException):
            # Without an answer nobody knows whether the mail was accepted: it stays `sending`.
            raise self._stopped_error(
                f"the mail server went away while it had the mail to {person}, who may have got it"
            ) from None
        else:
            self._record(Event.SENT, letter)
            self.report.sent.append(person)

    def _live_connection(self) -> smtplib.SMTP:
        """The connection, opened again if the mail server has closed it between two mails."""
        if self.connection is not None:
            try:
                # Asked before each mail: a server may close an idle connection during the pause,
                # and finding out while it has a mail would leave that person unsure.
                if self.connection.noop()[0] == 250:
                    return self.connection
            except (OSError, smtplib.SMTPException):
                pass
            self.connection.close()
        self.connection = self.server.connect()
        return self.connection

    def _record(self, event: Event, letter: Letter) -> None:
        self.journal.record(self.report.kind, self.report.round, event, letter.invitee.user)

    def _stopped_error(self, reason: str) -> UnreachableError:
        sent = len(self.report.sent)
        return UnreachableError(
            f"{reason}. {sent:,} mails were sent before; run the command again to continue"
        ).with_code("mail_stopped", sent=sent)


def _reason(problem: Exception) -> str:
    if isinstance(problem, smtplib.SMTPResponseException):
        text = problem.smtp_error
        words = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
        return f"{problem.smtp_code} {words}"
    return str(problem)

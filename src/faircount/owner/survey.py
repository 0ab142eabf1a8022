"""A survey of an owner: create it, invite people, watch it, read its result.

Every method may be called again after an interruption: files are written before the servers hear of
what is in them, and the servers take the same bytes twice.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircount.accounting.levels import Levels
from faircount.client.calls import RetryPolicy
from faircount.core.durations import parse_duration, seconds_until
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import RefusedError, RemoteError
from faircount.core.files import write_durably
from faircount.estimation.sheet_result import QuestionnaireResult
from faircount.estimation.trend import Trend, trend_of
from faircount.owner.advice import AUTO, Advice
from faircount.owner.final_statements import FinalStatements
from faircount.owner.folder import (
    COMMAND_RETRY,
    PUBLIC,
    OwnerFile,
    SurveyFolder,
    read_servers,
)
from faircount.owner.invitation_texts import ENGLISH
from faircount.owner.invitations import (
    Invitee,
    invitations_csv,
    invitations_html,
    invite,
    numbered_people,
    read_invitations,
)
from faircount.owner.page_export import PageFacts
from faircount.owner.people import People
from faircount.owner.questions import Questions, read_questions
from faircount.owner.remote import BothServers
from faircount.protocol import SurveyParameters
from faircount.protocol.survey.endings import describe_abort
from faircount.protocol.survey.phases import Phase
from faircount.protocol.wire.messages import Aborted, Reason

if TYPE_CHECKING:
    from faircount.owner.label import PrivacyLabel
    from faircount.owner.mail import MailReport
    from faircount.owner.mail_server import MailServer

SECONDS_BETWEEN_POLLS = 1.0


def survey(folder: str | os.PathLike[str]) -> "Survey":
    """Open the survey in a folder.

    folder: what `faircount survey create`, `Survey.create` or the dashboard wrote

    returns: the survey, as its owner

    >>> try:
    ...     fc.survey("nowhere").result()
    ... except fc.FaircountError as problem:
    ...     print(problem)
    there is no nowhere/owner.json: make a survey there first, with faircount survey create
    """
    return Survey.at(Path(folder))


@dataclass(frozen=True, repr=False)
class Survey:
    """A survey of this owner: its folder, its parameters and both servers.

    Every subcommand of `faircount survey` is a method here, and works on the same folder.

    folder: its files
    params: the published parameters
    owner: access to both servers
    servers: connections to them
    advice: what to expect of it; only right after it was created

    >>> terms = {"question": "Which city?", "items": ["Aldmoor", "Carrow"], "users": 100}
    >>> try:
    ...     fc.Survey.create("cities", servers="servers.json", **terms).invite()
    ... except fc.FaircountError as problem:
    ...     print(str(problem).partition(":")[0])
    there is no servers.json
    """

    folder: SurveyFolder
    params: SurveyParameters
    owner: OwnerFile
    servers: BothServers
    advice: Advice | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return f"<Survey {self.params.questionnaire.text!r} in {self.folder.path}>"

    @classmethod
    def at(cls, path: Path, retry: RetryPolicy = COMMAND_RETRY) -> "Survey":
        """The survey in a folder."""
        folder = SurveyFolder(path)
        owner = folder.owner()
        return cls(folder, folder.parameters(), owner, BothServers.of(owner, retry))

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        *,
        servers: str | os.PathLike[str],
        question: str | None = None,
        items: Iterable[str] | None = None,
        questionnaire: Questions | None = None,
        people: "str | os.PathLike[str] | People | Sequence[str] | None" = None,
        address_column: str | None = None,
        users: int | None = None,
        open_for: str = "3d",
        closes: str | None = None,
        grace: str = "30d",
        minimum: int | str | None = None,
        response_rate: float | str | None = None,
        budget: tuple[float, float] | None = None,
        topology: str = "servers",
        address: str | None = None,
        page: str | None = None,
        language: str = ENGLISH,
        anyway: bool = False,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        levels: Mapping[str, float] | None = None,
        mechanism: str = AUTO,
        floor: int = 0,
        colluding: float = 0.0,
        **texts: str,
    ) -> "Survey":
        """Plan a survey, get its keys from both servers, and write its folder.

        Nobody is invited yet. Options mean the same as those of `faircount survey create`.

        folder: where its files go; there must be no survey yet
        servers: file with address and token of both servers
        question, items: what is asked, and the possible answers, for a survey with one question
        questionnaire: several questions: the path of a TOML file, a list of dictionaries with the
            same fields, or a `Questionnaire`
        people: whom to invite: a file, or a list of names; by default as many numbered people as
            `users`
        address_column: column of the file that tells people apart
        users: largest number of people to invite; by default those of `people`
        open_for: time for each visit, such as 12h or 3d
        closes: closing time such as "2026-11-19 18:00", in this computer's time zone, instead of
            `open_for`
        grace: how much longer it is held open if there are too few answers at its closing time
        minimum: minimum number of responses, or a rate of the invited such as "40%"; by default
            one that fits the mechanism
        response_rate: expected response rate, such as 0.6 or "60%": errors are stated for so many
            responses; by default nearly all respond
        budget: epsilon and delta of the population in all its surveys; by default what it has
            already or, if it is new, this survey's
        address: address of the coordinator in invitations, if a proxy gives it another one
        page: address of the participant's page, if another place than the coordinator serves it;
            `faircount page export` writes it
        language: of invitations, mails and results, en or de
        anyway: create it even if the error exceeds the average frequency, or too few are expected
        epsilon, delta: privacy loss of the survey
        levels: two or three hidden privacy levels, names with epsilons, from which everybody
            chooses without anybody learning it; instead of `epsilon`
        mechanism, topology, floor, colluding: how it is run
        texts: owner, purpose, contact, population; s1_operator and s2_operator: the names that
            you expect, refused if a server states another one
        """
        # That module imports this one, and loads the planner, which most commands do not need.
        from faircount.owner.creation import SurveyOptions, create_survey

        form = read_questions(question, items, questionnaire)
        offered = None if levels is None else Levels.of(levels)
        options = SurveyOptions(
            servers=servers,
            people=people,
            address_column=address_column,
            users=users,
            open_for=open_for,
            closes=closes,
            grace=grace,
            minimum=minimum,
            response_rate=response_rate,
            budget=budget,
            topology=topology,
            address=address,
            page=page,
            language=language,
            anyway=anyway,
            # The most that anybody can lose: promised, and charged to the population.
            epsilon=epsilon if offered is None else offered.most,
            delta=delta,
            mechanism=mechanism,
            floor=floor,
            colluding=colluding,
            levels=offered,
        )
        return create_survey(folder, form, options, texts)

    def invite(self, people: People | Sequence[str] | None = None) -> tuple[Invitee, ...]:
        """Make the invitations and register them; existing invitations are used again.

        people: who is invited; by default those listed when the survey was created, or as many
            numbered people as it was planned for
        """
        if people is not None and not isinstance(people, People):
            people = People.from_names(people)
        if self.folder.invitations_file.exists():
            self._refuse_if_over()
            invitees = self.invitees()
            invited = tuple(invitee.person for invitee in invitees)
            # Compared in their order: a table that was sorted meanwhile would give people the
            # invitations of others.
            if people is not None and invited != people.names:
                raise RefusedError(
                    f"{self.folder.invitations_file} has invitations for other people, who may "
                    "have them already: make another survey for these"
                ).with_code("others_invited")
        else:
            if people is None:
                people = self.folder.people() or self._numbered_people()
            invitees = invite(self.params, people, SystemEntropy())
            # Written before the servers know them: nobody is admitted whose invitation is lost.
            self.write_invitations(invitees)
        # Repeated after an interruption: both servers know these bytes, and nothing happens twice.
        self.servers.set_up(self.params, self.owner.budget)
        invitations = [invitee.code.invitation for invitee in invitees]
        self.servers.register_invitations(self.params, invitations)
        return invitees

    def _refuse_if_over(self) -> None:
        """Refuse to invite people to a survey that takes no more answers."""
        # A folder that knows how the survey ended asks nobody: servers may have deleted it.
        if not self.folder.statement_file.exists():
            try:
                phase = self.servers.status(self.params)["phase"]
                if phase in (Phase.DRAFT, *self.params.topology.phases):
                    return
            except RemoteError as problem:
                # Inviting was interrupted before the servers knew the survey, and goes on now.
                if problem.status == HTTPStatus.NOT_FOUND:
                    return
                raise
        message = (
            f"nobody can answer the survey in {self.folder.path} any more: it is closed. faircount "
            f"survey result {self.folder.path} shows what came of it"
        )
        raise RefusedError(message).with_code("mail_over")

    def _numbered_people(self) -> People:
        return People.from_names(numbered_people(self.params.n_max, self.owner.language))

    def write_invitations(self, invitees: Sequence[Invitee]) -> None:
        """Write the printable pages and the table."""
        address = self.owner.link_address
        page = PageFacts.of(self.owner)
        pages = invitations_html(self.params, invitees, address, self.owner.language, page)
        # The table comes last, because `invite` takes its presence as a sign that all is written.
        write_durably(self.folder.printable_file, pages)
        write_durably(self.folder.invitations_file, invitations_csv(invitees, address))

    def invitees(self) -> tuple[Invitee, ...]:
        """The invited people with their invitations."""
        return read_invitations(self.folder.invitations_file)

    def pending_invitees(self) -> tuple[Invitee, ...]:
        """The invited people who have not used their invitation."""
        with self._missing_invitations_explained():
            # Ids, which only this folder can turn into people.
            answered = self.servers.users_who_answered(self.params)
        invitees = self.invitees()
        return tuple(item for item in invitees if item.code.invitation.user not in answered)

    def open(self) -> dict[str, Any]:
        """Let the invited people answer from now on; the status after that."""
        # The coordinator opens only if it knows everybody whom this folder invites.
        terms: dict[str, int] = {"invited": len(self.invitees())}
        if self.owner.closes_at:
            # As a duration: the clocks of this machine and the coordinator may differ.
            terms["seconds"] = self._seconds_left()
        with self._missing_invitations_explained():
            return self.servers.request(self.params, "open", **terms)

    def _seconds_left(self) -> int:
        """Seconds until the closing time that the owner gave; refused if it has passed."""
        closes = datetime.fromisoformat(self.owner.closes_at)
        left = seconds_until(closes, datetime.now(tz=UTC))
        if left <= 0:
            message = (
                "the closing time of this survey has passed before it was opened: create it again "
                "with another one"
            )
            raise RefusedError(message).with_code("closing_time_passed")
        return left

    def status(self) -> dict[str, Any]:
        """The phase of the survey and what it waits for, as the coordinator reports it."""
        with self._missing_invitations_explained():
            return self.servers.status(self.params)

    @contextmanager
    def _missing_invitations_explained(self) -> Iterator[None]:
        """Say what is to do where a server knows no such survey, because nobody is invited yet."""
        try:
            yield
        except RemoteError as problem:
            # A survey that has ended was deleted by its owner or an operator.
            is_unknown = problem.status == HTTPStatus.NOT_FOUND
            if not is_unknown or self.folder.statement_file.exists():
                raise
            path = self.folder.path
            if self.folder.invitations_file.exists():
                message = (
                    "the coordinator knows no such survey of yours: inviting was interrupted, or "
                    "the survey was deleted or handed over. If it was interrupted, continue with "
                    f"faircount survey invite {path}, which keeps the same invitations"
                )
                raise RefusedError(message).with_code("inviting_interrupted") from None
            message = (
                f"nobody is invited to the survey in {path} yet: make the invitations first, "
                f"with faircount survey invite {path}"
            )
            raise RefusedError(message).with_code("nobody_invited") from None

    def remind(self, path: Path | None = None) -> tuple[Invitee, ...]:
        """Write a table of the people who have not answered, and return them.

        path: the table; by default reminders.csv in the folder
        """
        # Asked for anew each time: a table of last week would remind people who have answered
        # since.
        missing = self.pending_invitees()
        # With the rights of a secret file, because a link lets anybody answer.
        table = invitations_csv(missing, self.owner.link_address)
        write_durably(path or self.folder.reminders_file, table)
        return missing

    def mail(
        self, sender: str, server: "MailServer", *, remind: bool = False, **terms: Any
    ) -> "MailReport":
        """Send invitations by mail, or reminders to those who have not answered.

        sender: the address that the mails come from
        server: your mail server, a `faircount.owner.mail_server.MailServer`
        terms: rate, retry_unsure, again, as in `faircount survey mail`
        """
        from faircount.owner.mail import Mailing

        return Mailing(self, sender, remind).send(server, **terms)

    def reissue(self, person: str) -> Invitee:
        """Replace the unused invitation of a person who has lost it."""
        from faircount.owner.reissue import reissue

        return reissue(self, person)

    def extend(self, by: str) -> dict[str, Any]:
        """Give people more time, such as 12h or 3d; the status after that."""
        seconds = parse_duration("--by", by)
        with self._missing_invitations_explained():
            return self.servers.request(self.params, "extend", seconds=seconds)

    def close(self) -> dict[str, Any]:
        """Accept no more answers and count those received; the status after that."""
        # The phase is named, so that a visit which begins meanwhile is not closed by mistake.
        now = self.status()
        phase = {"phase": now["phase"], "attempt": now["attempt"]}
        return self.servers.request(self.params, "close", **phase)

    def abort(self, reason: str = "") -> dict[str, Any]:
        """End the survey for good, without a result; the status after that."""
        with self._missing_invitations_explained():
            return self.servers.request(self.params, "abort", reason=reason)

    def delete(self) -> None:
        """Delete the finished survey from both servers; its folder stays."""
        # The aggregator keeps the charge in its ledger, so nobody can spend that privacy again.
        self.servers.delete(self.params)

    def hand_over(self, *, coordinator: str | None = None, aggregator: str | None = None) -> None:
        """Give the survey to another owner; the budget stays with the owner who opened it.

        coordinator: the new owner's id there, which the operator knows; None for no change there
        aggregator: the same at the aggregator
        """
        self.servers.hand_over(self.params, coordinator, aggregator)

    def use_tokens(self, servers: str | os.PathLike[str]) -> None:
        """Use other tokens from now on: replaced ones, or those of the survey's new owner.

        servers: file with addresses and tokens of both servers
        """
        # Only the tokens change: another server could not hold this survey's keys.
        s1, s2 = read_servers(Path(servers))
        self.folder.replace_access(s1, s2)

    def receipts(self, path: Path | None = None) -> Path:
        """Save what the aggregator signed about the budget, which it needs after a restore.

        path: the file; by default receipts.json in the folder
        """
        # From the coordinator, which has them even if the aggregator was lost.
        reservations = self.servers.reservations(self.params)
        document = {"population": self.params.population, "reservations": reservations}
        target = path or self.folder.path / "receipts.json"
        # Signed by the aggregator, so a changed file is noticed.
        write_durably(target, json.dumps(document, indent=2).encode() + b"\n", PUBLIC)
        return target

    def repeat(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        question: str | None = None,
        open_for: str | None = None,
    ) -> "Survey":
        """Make the next survey among the same people, from the same budget.

        Everything else is as in this one. Refused if the budget does not allow it.

        folder: of the new survey; by default beside this one, with the next number
        question: another wording; by default the same
        open_for: time for each visit, such as 12h or 3d; by default the same
        """
        from faircount.owner.repeat import repeat

        return repeat(self, folder, question, open_for)

    def trend(self, *others: "Survey", confidence: float = 0.95, covers: str = "users") -> "Trend":
        """Compare the result of this survey with later ones, in the order of time.

        others: surveys with the same answers to choose from
        confidence, covers: as in `QuestionnaireResult.estimates`
        """
        from faircount.owner.combining import finished_result

        surveys = (self, *others)
        names = [survey.folder.path.resolve().name for survey in surveys]
        results = [
            finished_result(str(survey.folder.path), survey, "compare") for survey in surveys
        ]
        return trend_of(results, names, confidence, covers)

    def label(self) -> "PrivacyLabel":
        """Compute what the survey promises, as a document for programs and for participants."""
        from faircount.owner.label import make_label

        return make_label(self)

    def result(self, *, wait: bool = False) -> QuestionnaireResult:
        """The result that the aggregator signed; a survey that ended without one is refused.

        The signature is checked against the parameters. A result that was read once is kept in the
        folder and needs no server any more.

        wait: until there is a result
        """
        ending = self.latest_ending(wait=wait)
        if isinstance(ending, Aborted):
            message = f"the survey ended without a result: {describe_abort(ending)}"
            raise RefusedError(message).with_code("no_result")
        return ending

    def latest_ending(self, *, wait: bool = False) -> QuestionnaireResult | Aborted:
        """The result, or why the survey ended without one, from the folder or the servers."""
        # The kept one first: a survey may be deleted on the servers once its result was read.
        return self._statements.read_kept() or self.ending(wait=wait)

    def ending(self, *, wait: bool = False) -> QuestionnaireResult | Aborted:
        """The result, or why the survey ended without one, as the servers tell it now."""
        while True:
            try:
                with self._missing_invitations_explained():
                    data = self.servers.fetch_final_statement(self.params)
                break
            except RemoteError as problem:
                # Other rejections do not go away by waiting.
                if not wait or problem.reason != Reason.EARLY:
                    raise
                time.sleep(SECONDS_BETWEEN_POLLS)
        # After the statement, so that the numbers in the status are final.
        status = self.status()
        places: list[int] = []
        # If users draw different amounts of noise, the estimate depends on who was accepted.
        if not self.params.mechanism.identical_for_all_users and status["phase"] == "published":
            places = self.servers.accepted_places(self.params)
        return self._statements.keep(data, status, places)

    @property
    def _statements(self) -> FinalStatements:
        return FinalStatements(self.folder, self.params, self.owner.language)

"""A survey of an owner: create it, invite people, watch it, read its result.

Every method may be called again after an interruption: files are written before the servers hear of
what is in them, and the servers take the same bytes twice.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faircount.client.calls import RetryPolicy
from faircount.client.invitation_codes import server_address
from faircount.core.domain import visible_form
from faircount.core.durations import parse_duration
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import FaircountError, ParameterError, RefusedError, RemoteError
from faircount.core.files import read_file, write_durably
from faircount.estimation.record import SurveyRecord
from faircount.estimation.result import Result
from faircount.estimation.trend import Trend, trend_of
from faircount.owner.advice import AUTO, Advice, SurveyRequirements, advise
from faircount.owner.budget import check_budget, existing_budget
from faircount.owner.exports import export_result
from faircount.owner.folder import (
    COMMAND_RETRY,
    PUBLIC,
    OwnerFile,
    SurveyFolder,
    read_servers,
)
from faircount.owner.invitation_texts import ENGLISH, printed_words
from faircount.owner.invitations import (
    Invitee,
    invitations_csv,
    invitations_html,
    invite,
    numbered_people,
    read_invitations,
    too_many_invited,
)
from faircount.owner.page_export import PageFacts
from faircount.owner.people import People, read_people
from faircount.owner.remote import BothServers, verify_final_statement
from faircount.planning.minimum import parse_minimum
from faircount.protocol import SurveyParameters, propose, topology_named
from faircount.protocol.survey.endings import describe_abort
from faircount.protocol.survey.release import decode_release
from faircount.protocol.wire.messages import Aborted, Published, Reason

if TYPE_CHECKING:
    from faircount.owner.label import PrivacyLabel
    from faircount.owner.mail import MailReport, MailServer

SECONDS_BETWEEN_POLLS = 1.0
TEXTS = ("owner", "purpose", "contact", "s1_operator", "s2_operator", "population")
"""What participants read besides the question, and the population whose budget is charged."""
DAY = 86400
GRACE = 30 * DAY
"""Seconds for which a survey with too few answers is held open, unless the owner says otherwise."""


@dataclass(frozen=True)
class SurveyDescription:
    """What participants read before they answer, and how long every phase is open, in seconds.

    s1_operator, s2_operator: names that the servers must state; empty takes whatever they state
    grace: how much longer a phase is held open if there are too few answers at its deadline
    """

    question: str
    owner: str = ""
    purpose: str = ""
    contact: str = ""
    s1_operator: str = ""
    s2_operator: str = ""
    population: str = ""
    seconds: int = 3 * DAY
    grace: int = GRACE

    def __post_init__(self) -> None:
        check_question(self.question)


def check_question(text: str) -> str:
    """The question that people are asked; refused if there is nothing to read."""
    if not visible_form(text):
        message = "the question is empty: write what people are asked"
        raise ParameterError(message).with_code("no_question")
    return text


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
        return f"<Survey {self.params.question!r} in {self.folder.path}>"

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
        question: str,
        items: Iterable[str],
        people: "str | os.PathLike[str] | People | Sequence[str] | None" = None,
        address_column: str | None = None,
        users: int | None = None,
        open_for: str = "3d",
        grace: str = "30d",
        minimum: int | str | None = None,
        budget: tuple[float, float] | None = None,
        topology: str = "servers",
        address: str | None = None,
        page: str | None = None,
        language: str = ENGLISH,
        anyway: bool = False,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        mechanism: str = AUTO,
        floor: int = 0,
        colluding: float = 0.0,
        **texts: str,
    ) -> "Survey":
        """Plan a survey, get its keys from both servers, and write its folder.

        Nobody is invited yet. Options mean the same as those of `faircount survey create`.

        folder: where its files go; there must be no survey yet
        servers: file with address and token of both servers
        question, items: what is asked, and the possible answers
        people: whom to invite: a file, or a list of names; by default as many numbered people as
            `users`
        address_column: column of the file that tells people apart
        users: largest number of people to invite; by default those of `people`
        open_for: time for each visit, such as 12h or 3d
        grace: how much longer it is held open if there are too few answers at its closing time
        minimum: minimum number of responses, or a response rate such as "40%"; by default one
            that fits the mechanism
        budget: epsilon and delta of the population in all its surveys; by default what it has
            already or, if it is new, this survey's
        address: address of the coordinator in invitations, if a proxy gives it another one
        page: address of the participant's page, if another place than the coordinator serves it;
            `faircount page export` writes it
        language: of invitations, mails and results, en or de
        anyway: create it even if the error exceeds the average frequency
        epsilon, delta: privacy loss of the survey
        mechanism, topology, floor, colluding: how it is run
        texts: owner, purpose, contact, population; s1_operator and s2_operator: the names that
            you expect, refused if a server states another one
        """
        unknown = sorted(set(texts) - set(TEXTS))
        if unknown:
            raise ParameterError(f"a survey has no {unknown[0]!r}: it has {', '.join(TEXTS)}")
        listed = _people_given(people, address_column)
        if users is None:
            if listed is None:
                message = "say whom you invite: --people FILE, or their number with --users"
                raise ParameterError(f"{message} (people= or users= in Python)")
            users = len(listed)
        # Everything that can be refused without a server is refused before the first call.
        requirements = SurveyRequirements(
            tuple(items),
            users,
            epsilon,
            delta,
            mechanism,
            topology_named(topology),
            None if minimum is None else parse_minimum(str(minimum), users),
            floor,
            colluding,
        )
        seconds = parse_duration("--open-for", open_for)
        description = SurveyDescription(
            question, seconds=seconds, grace=parse_duration("--grace", grace), **texts
        )
        s1, s2 = read_servers(Path(servers))
        if budget is None:
            # A population that was asked before has its budget; it is not raised.
            both = BothServers(s1.server("S1"), s2.server("S2"))
            budget = existing_budget(both, description.population) or (epsilon, delta)
        owner = OwnerFile(
            s1,
            s2,
            # Participants may reach the coordinator under another address than the owner.
            s1.address if address is None else server_address(address),
            budget,
            printed_words(language).language,
            "" if page is None else server_address(page),
        )
        made, advice = create(
            Path(folder), requirements, description, owner, people=listed, anyway=anyway
        )
        return replace(made, advice=advice)

    def invite(self, people: People | Sequence[str] | None = None) -> tuple[Invitee, ...]:
        """Make the invitations and register them; existing invitations are used again.

        people: who is invited; by default those listed when the survey was created, or as many
            numbered people as it was planned for
        """
        if people is not None and not isinstance(people, People):
            people = People.named(people)
        if self.folder.invitations_file.exists():
            invitees = self.invitees()
            invited = tuple(invitee.person for invitee in invitees)
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

    def _numbered_people(self) -> People:
        return People.named(numbered_people(self.params.n_max, self.owner.language))

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
            answered = self.servers.users_who_answered(self.params)
        invitees = self.invitees()
        return tuple(item for item in invitees if item.code.invitation.user not in answered)

    def open(self) -> dict[str, Any]:
        """Let the invited people answer from now on; the status after that."""
        # The coordinator opens only if it knows everybody whom this folder invites.
        return self.servers.request(self.params, "open", invited=len(self.invitees()))

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
            is_unknown = problem.status == HTTPStatus.NOT_FOUND
            if is_unknown and not self.folder.invitations_file.exists():
                path = self.folder.path
                message = (
                    f"nobody is invited to the survey in {path} yet: make the invitations first, "
                    f"with faircount survey invite {path}"
                )
                raise RefusedError(message).with_code("nobody_invited") from None
            raise

    def remind(self, path: Path | None = None) -> tuple[Invitee, ...]:
        """Write a table of the people who have not answered, and return them.

        path: the table; by default reminders.csv in the folder
        """
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
        server: your mail server, a `faircount.owner.mail.MailServer`
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
        s1, s2 = read_servers(Path(servers))
        self.folder.replace_access(s1, s2)

    def receipts(self, path: Path | None = None) -> Path:
        """Save what the aggregator signed about the budget, which it needs after a restore.

        path: the file; by default receipts.json in the folder
        """
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

    def trend(self, *others: "Survey", level: float = 0.95, covers: str = "users") -> "Trend":
        """Compare the result of this survey with later ones, in the order of time.

        others: surveys with the same answers to choose from
        level, covers: as in `Result.interval`
        """
        surveys = (self, *others)
        names = [survey.folder.path.resolve().name for survey in surveys]
        return trend_of([survey.result() for survey in surveys], names, level, covers)

    def label(self) -> "PrivacyLabel":
        """Compute what the survey promises, as a document for programs and for participants."""
        from faircount.owner.label import make_label

        return make_label(self)

    def result(self, *, wait: bool = False) -> Result:
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

    def latest_ending(self, *, wait: bool = False) -> Result | Aborted:
        """The result, or why the survey ended without one, from the folder or the servers."""
        return self._kept_ending() or self.ending(wait=wait)

    def ending(self, *, wait: bool = False) -> Result | Aborted:
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
        status = self.status()
        record = {
            "version": 1,
            "opened_at": status["opened_at"],
            "ended_at": status["since"],
            "invited": status["invited"],
            "places": [],
        }
        # If users draw different amounts of noise, the estimate depends on who was accepted.
        if not self.params.mechanism.identical_for_all_users and status["phase"] == "published":
            record["places"] = self.servers.accepted_places(self.params)
        # The signature is checked before anything is kept: a file in the folder is believed later.
        ending = self._interpret(data, record)
        # The servers may delete the survey one day: the owner's folder keeps what was published.
        # The statement comes last, because a folder with it is complete.
        write_durably(self.folder.record_file, json.dumps(record).encode() + b"\n", PUBLIC)
        if isinstance(ending, Result):
            write_durably(self.folder.result_file, export_result(ending, "json"), PUBLIC)
        write_durably(self.folder.statement_file, data, PUBLIC)
        return ending

    def _kept_ending(self) -> Result | Aborted | None:
        """How the survey ended, from the folder; None if it does not know yet."""
        if not self.folder.statement_file.exists():
            return None
        hint = "read the result again, with faircount survey result"
        data = read_file(self.folder.statement_file, hint)
        try:
            record = json.loads(read_file(self.folder.record_file, hint))
            # Verified again each time: whoever can write to the folder still cannot make a result.
            return self._interpret(data, record)
        except (ValueError, KeyError, TypeError):
            message = "record.json is damaged: restore it from a copy"
            raise FaircountError(message).with_code("file_damaged", file="record.json") from None

    def _interpret(self, data: bytes, record: dict[str, Any]) -> Result | Aborted:
        """Verify a final statement and decode it."""
        ending = verify_final_statement(self.params, data).message
        if isinstance(ending, Aborted):
            return ending
        if not isinstance(ending, Published):
            raise RefusedError(
                "The coordinator shows a message that is not the final statement of the "
                "aggregator: ask both operators"
            ).with_code("unsigned_result")
        result = decode_release(self.params, ending, record["places"])
        about = SurveyRecord(
            survey=self.params.survey.hex(),
            name=self.folder.path.resolve().name,
            question=self.params.question,
            owner=self.params.owner,
            opened=record["opened_at"],
            ended=record["ended_at"],
            invited=record["invited"],
            # Signed by the aggregator: what the coordinator reports would also count people who
            # have withdrawn.
            responded=ending.included + ending.rejected,
            counted=ending.included,
            language=self.owner.language,
        )
        return replace(result, facts={**result.facts, "record": about})


def _people_given(
    people: str | os.PathLike[str] | People | Sequence[str] | None, column: str | None
) -> People | None:
    if isinstance(people, str | os.PathLike):
        return read_people(Path(people), column)
    if people is None or isinstance(people, People):
        return people
    return People.named(people)


def create(
    path: Path,
    requirements: SurveyRequirements,
    description: SurveyDescription,
    owner: OwnerFile,
    *,
    people: People | None = None,
    anyway: bool = False,
) -> tuple[Survey, Advice]:
    """Plan a survey and write it into a new folder; the servers do not know it yet."""
    # Noticed now, and not when the survey exists and cannot be changed any more.
    if people is not None and len(people) > requirements.users:
        raise too_many_invited(requirements.users, len(people))
    # Planned again here, although the owner may have planned before: parameters follow from what is
    # computed now, and from nothing that somebody typed.
    advice = advise(requirements)
    if not advice.is_informative and not anyway:
        raise RefusedError(
            f"do not run this survey: {advice.mechanism.name}, the best mechanism, has a 95% error "
            f"of {advice.error_text}, more than the share of an average item. Ask more people, "
            "offer fewer items or allow a larger epsilon, or create the survey nevertheless with "
            "--anyway"
        ).with_code("not_worthwhile")
    folder = SurveyFolder(path)
    # Before the servers make keys, which nobody would use.
    folder.check_is_free()
    servers = BothServers.of(owner)
    # Before anybody is invited: the aggregator would refuse only when the answers are there.
    cost = (requirements.epsilon, requirements.delta)
    check_budget(servers, description.population, owner.budget, cost)
    params = make_parameters(advice, description, servers)
    folder.create(params, owner, people)
    return Survey(folder, params, owner, servers), advice


def make_parameters(
    advice: Advice, description: SurveyDescription, servers: BothServers
) -> SurveyParameters:
    """The survey's public parameters, with fresh keys of both servers."""
    requirements = advice.requirements
    # Keys are never used for two surveys, so a signature of one survey says nothing in another.
    survey_keys = servers.survey_keys()
    # Drawn by the owner and not by a server, which could choose one that it knows already.
    survey = SystemEntropy().bytes(16)
    return propose(
        advice.mechanism,
        survey_keys.keys,
        survey=survey,
        topology=requirements.topology,
        epsilon=requirements.epsilon,
        delta=requirements.delta,
        minimum=advice.minimum,
        phase_seconds=(description.seconds,) * len(requirements.topology.phases),
        grace=description.grace,
        # Without a name, a survey is a population of its own and shares no budget.
        population=description.population or f"survey {survey.hex()}",
        question=description.question,
        owner=description.owner,
        purpose=description.purpose,
        contact=description.contact,
        s1_operator=_operator_name("coordinator", description.s1_operator, survey_keys.s1_operator),
        s2_operator=_operator_name("aggregator", description.s2_operator, survey_keys.s2_operator),
    )


def _operator_name(server: str, expected: str, stated: str) -> str:
    """The name that a server states; refused if the owner expects another."""
    if expected and expected != stated:
        raise RefusedError(
            f"the {server} says that {stated or 'nobody with a name'} runs it, not {expected}: "
            "check the address in the servers file, or ask its operator for its name"
        ).with_code("operator_differs", server=server)
    return stated

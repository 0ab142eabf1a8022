"""The owner's commands as functions: create a survey, invite people, read the result.

Every function may be run again after an interruption: files are written before the servers hear of
what is in them, and the servers take the same bytes twice.
"""

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faircount.client.calls import RetryPolicy
from faircount.core.entropy import SystemEntropy
from faircount.core.errors import RefusedError, RemoteError
from faircount.core.files import write_durably
from faircount.estimation.result import Result
from faircount.owner.advice import Advice, SurveyRequirements, advise
from faircount.owner.folder import COMMAND_RETRY, PUBLIC, OwnerFile, SurveyFolder
from faircount.owner.invitations import (
    Invitee,
    invitations_csv,
    invitations_html,
    invite,
    read_invitations,
)
from faircount.owner.remote import BothServers
from faircount.protocol import SurveyParameters, propose
from faircount.protocol.survey.release import decode_release
from faircount.protocol.wire.messages import Aborted, Published, Reason

SECONDS_BETWEEN_POLLS = 1.0
DAY = 86400
GRACE = 30 * DAY
"""Seconds for which a survey with too few answers is held open, unless the owner says otherwise."""


@dataclass(frozen=True)
class SurveyDescription:
    """What participants read before they answer, and how long every phase is open, in seconds.

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


@dataclass(frozen=True)
class Survey:
    """A survey of this owner: its folder, its parameters and both servers."""

    folder: SurveyFolder
    params: SurveyParameters
    owner: OwnerFile
    servers: BothServers

    @classmethod
    def at(cls, path: Path, retry: RetryPolicy = COMMAND_RETRY) -> "Survey":
        """The survey in a folder."""
        folder = SurveyFolder(path)
        owner = folder.owner()
        return cls(folder, folder.parameters(), owner, BothServers.of(owner, retry))

    def invite(self, people: Sequence[str]) -> tuple[Invitee, ...]:
        """Make the invitations and register them; existing invitations are used again."""
        if self.folder.invitations_file.exists():
            invitees = self.invitees()
            invited = [invitee.person for invitee in invitees]
            if people and invited != list(people):
                raise RefusedError(
                    f"{self.folder.invitations_file} has invitations for other people, who may "
                    "have them already: make another survey for these"
                ).with_code("others_invited")
        else:
            invitees = invite(self.params, people, SystemEntropy())
            # Written before the servers know them: nobody is admitted whose invitation is lost.
            self.write_invitations(invitees)
        self.servers.set_up(self.params, self.owner.budget)
        invitations = [invitee.code.invitation for invitee in invitees]
        self.servers.register_invitations(self.params, invitations)
        return invitees

    def write_invitations(self, invitees: Sequence[Invitee]) -> None:
        """Write the printable pages and the table."""
        address = self.owner.public_address
        pages = invitations_html(self.params, invitees, address, self.owner.language)
        # The table comes last, because `invite` takes its presence as a sign that all is written.
        write_durably(self.folder.printable_file, pages)
        write_durably(self.folder.invitations_file, invitations_csv(invitees, address))

    def invitees(self) -> tuple[Invitee, ...]:
        """The invited people with their invitations."""
        return read_invitations(self.folder.invitations_file)

    def pending_invitees(self) -> tuple[Invitee, ...]:
        """The invited people who have not used their invitation."""
        answered = self.servers.users_who_answered(self.params)
        invitees = self.invitees()
        return tuple(item for item in invitees if item.code.invitation.user not in answered)

    def result(self, *, wait: bool = False) -> Result | Aborted:
        """The result that the aggregator signed, or why the survey ended without one."""
        while True:
            try:
                ending = self.servers.final_statement(self.params).message
                break
            except RemoteError as problem:
                # Other rejections do not go away by waiting.
                if not wait or problem.reason != Reason.EARLY:
                    raise
                time.sleep(SECONDS_BETWEEN_POLLS)
        if isinstance(ending, Aborted):
            return ending
        if not isinstance(ending, Published):
            raise RefusedError(
                "The coordinator shows a message that is not the final statement of the "
                "aggregator: ask both operators"
            ).with_code("unsigned_result")
        # If users draw different amounts of noise, the estimate depends on who was accepted.
        places: Sequence[int] = ()
        if not self.params.mechanism.identical_for_all_users:
            places = self.servers.accepted_places(self.params)
        return decode_release(self.params, ending, places)

    def save_result(self, result: dict[str, Any]) -> None:
        """Write the result into the folder."""
        data = json.dumps(result, indent=2, allow_nan=False).encode() + b"\n"
        write_durably(self.folder.result_file, data, PUBLIC)


def create(
    path: Path,
    requirements: SurveyRequirements,
    description: SurveyDescription,
    owner: OwnerFile,
    *,
    anyway: bool = False,
) -> tuple[Survey, Advice]:
    """Plan a survey and write it into a new folder; the servers do not know it yet."""
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
    params = make_parameters(advice, description, servers)
    folder.create(params, owner)
    return Survey(folder, params, owner, servers), advice


def make_parameters(
    advice: Advice, description: SurveyDescription, servers: BothServers
) -> SurveyParameters:
    """The survey's public parameters, with fresh keys of both servers."""
    requirements = advice.requirements
    # Keys are never used for two surveys, so a signature of one survey says nothing in another.
    survey_keys = servers.survey_keys()
    survey = SystemEntropy().bytes(16)
    return propose(
        advice.mechanism,
        survey_keys.keys,
        survey=survey,
        topology=requirements.topology,
        epsilon=requirements.epsilon,
        delta=requirements.delta,
        minimum=advice.minimum,
        phases=(description.seconds,) * len(requirements.topology.phases),
        grace=description.grace,
        # Without a name, a survey is a population of its own and shares no budget.
        population=description.population or f"survey {survey.hex()}",
        question=description.question,
        owner=description.owner,
        purpose=description.purpose,
        contact=description.contact,
        s1_operator=description.s1_operator or survey_keys.s1_operator,
        s2_operator=description.s2_operator or survey_keys.s2_operator,
    )

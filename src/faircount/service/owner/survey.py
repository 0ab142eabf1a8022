"""The owner's commands as functions: create a survey, invite people, read the result. Each may be run again."""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faircount.core.entropy import SystemEntropy
from faircount.core.errors import RefusedError, RemoteError
from faircount.core.files import write_durably
from faircount.estimation.result import Result
from faircount.protocol import SurveyParameters, propose
from faircount.protocol.play import opened
from faircount.protocol.wire.messages import Aborted, Published, Reason
from faircount.service.calls import Patience
from faircount.service.owner.advice import Advice, Wishes, advise
from faircount.service.owner.folder import PATIENT, PUBLIC, OwnerFile, SurveyFolder
from faircount.service.owner.invitations import Invited, as_page, as_table, invite, read_table
from faircount.service.owner.remote import BothServers

SECONDS_BETWEEN_LOOKS = 1.0


@dataclass(frozen=True)
class Facts:
    """What a person reads before answering, and how long each visit is open, in seconds."""

    question: str
    owner: str = ""
    purpose: str = ""
    contact: str = ""
    s1_operator: str = ""
    s2_operator: str = ""
    population: str = ""
    seconds: int = 3 * 86400


@dataclass(frozen=True)
class Survey:
    """A survey of this owner: its folder, its parameters and both servers."""

    folder: SurveyFolder
    params: SurveyParameters
    owner: OwnerFile
    servers: BothServers

    @classmethod
    def at(cls, path: Path, patience: Patience = PATIENT) -> "Survey":
        """The survey in a folder."""
        folder = SurveyFolder(path)
        owner = folder.owner()
        return cls(folder, folder.parameters(), owner, BothServers.of(owner, patience))

    def invite(self, people: Sequence[str]) -> tuple[Invited, ...]:
        """Make the invitations, write them down, then tell both servers; what was made before is used again."""
        if self.folder.invitations_file.exists():
            made = read_table(self.folder.invitations_file)
            if people and [each.person for each in made] != list(people):
                raise RefusedError(
                    f"{self.folder.invitations_file} has invitations for other people, which may be on their way: make "
                    "another survey for these"
                )
        else:
            made = invite(self.params, people, SystemEntropy())
            self.write_invitations(made)
        self.servers.set_up(self.params, self.owner.budget)
        self.servers.admit(self.params, [each.code.invitation for each in made])
        return made

    def write_invitations(self, made: Sequence[Invited]) -> None:
        """The table and the page; the table last, because it says that all is there."""
        address = self.owner.public_address
        write_durably(self.folder.printable_file, as_page(self.params, made, address, self.owner.language))
        write_durably(self.folder.invitations_file, as_table(made, address))

    def invited(self) -> tuple[Invited, ...]:
        """The people, with their invitations."""
        return read_table(self.folder.invitations_file)

    def not_answered(self) -> tuple[Invited, ...]:
        """The people who have not used their invitation."""
        done = self.servers.answered(self.params)
        return tuple(each for each in self.invited() if each.code.invitation.user not in done)

    def result(self, *, wait: bool = False, sleep: Callable[[float], None] = time.sleep) -> Result | Aborted:
        """The result as S2 signed it, or how the survey ended without one."""
        while True:
            try:
                said = self.servers.last_word(self.params).says
            except RemoteError as problem:
                if not wait or problem.reason != Reason.EARLY:
                    raise
                sleep(SECONDS_BETWEEN_LOOKS)
                continue
            if isinstance(said, Aborted):
                return said
            if not isinstance(said, Published):
                words = "S1 shows something else than the last word of S2: ask both operators"
                raise RefusedError(words).coded("unsigned_result")
            alike = self.params.mechanism.every_user_alike
            return opened(self.params, said, () if alike else self.servers.places(self.params))

    def keep_result(self, said: dict[str, Any]) -> None:
        """Write the result into the folder."""
        write_durably(self.folder.result_file, json.dumps(said, indent=2, allow_nan=False).encode() + b"\n", PUBLIC)


def create(
    path: Path, wishes: Wishes, facts: Facts, owner: OwnerFile, *, anyway: bool = False
) -> tuple[Survey, Advice]:
    """Parameters from the planner's advice and offers of both servers, in a new folder; nobody is told of it yet."""
    advice = advise(wishes)
    if not advice.tells_something and not anyway:
        raise RefusedError(
            f"do not run this: {advice.words}, which is more than an average item has; ask more people, offer fewer "
            "items or allow a larger epsilon. --anyway makes it all the same"
        ).coded("not_worthwhile")
    folder = SurveyFolder(path)
    if folder.parameters_file.exists():
        raise RefusedError(f"{path} holds a survey already: choose another folder").coded("survey_exists")
    servers = BothServers.of(owner)
    params = parameters(advice, facts, servers)
    folder.create(params, owner)
    return Survey(folder, params, owner, servers), advice


def parameters(advice: Advice, facts: Facts, servers: BothServers) -> SurveyParameters:
    """The public parameters, with fresh keys that both servers offer for this survey."""
    wishes, offers = advice.wishes, servers.offers()
    texts: dict[str, Any] = {name: getattr(facts, name) for name in ("question", "owner", "purpose", "contact")}
    survey = SystemEntropy().bytes(16)
    return propose(
        advice.mechanism,
        offers.keys,
        survey=survey,
        topology=wishes.topology,
        epsilon=wishes.epsilon,
        delta=wishes.delta,
        minimum=advice.needed,
        phases=(facts.seconds,) * len(wishes.topology.phases),
        population=facts.population or f"survey {survey.hex()}",
        s1_operator=facts.s1_operator or offers.s1_operator,
        s2_operator=facts.s2_operator or offers.s2_operator,
        **texts,
    )
